"""The expected cost E c(Z): its reduced cost is c itself, and it has no witnesses of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpopt.arithmetic import Enclosure
from dpopt.checker.law import Law
from dpopt.checker.reading import read_object
from dpopt.checker.reduced_cost import ReducedCost
from dpopt.checker.stated import Enclosures, Objective, Setting, objective
from dpopt.checker.sums import expected, short
from dpopt.lattice_function import LatticeFunction

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost(Objective):
    """The expectation of a cost of the lattice index."""

    cost: LatticeFunction

    def value(self, law: Law, enclosures: Enclosures) -> Enclosure:
        """E c(Z)."""
        return short(expected(law, self.cost))

    def add_cost(self, cost: ReducedCost) -> None:
        """c."""
        cost.add_function(self.cost, Fraction(1))


@objective("min-expected-cost")
@dataclass(frozen=True)
class _MinExpectedCost(Cost):
    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type", "cost"))
        return cls(setting.lattice.function(data["cost"], f"{where}.cost"))
