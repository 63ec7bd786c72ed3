"""Objectives without rows of their own: an expected cost, and the entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpopt.arithmetic import Enclosure
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.families.base import GIVE_A_SUPPORT, Asked, ObjectiveTerm, require_function, stated_function

__all__ = ["CostTerm", "EntropyTerm"]


@dataclass(frozen=True)
class CostTerm(ObjectiveTerm):
    """Minimise the expectation of a function."""

    of: LatticeFunction

    def __post_init__(self) -> None:
        require_function(self.of, "of")

    def stated(self) -> dict[str, Any]:
        return {"term": "cost", "function": stated_function(self.of)}

    @property
    def cost(self) -> LatticeFunction:
        """The function itself."""
        return self.of

    def value(self, pmf: Pmf) -> Enclosure:
        value = pmf.expectation(self.of)
        return Enclosure(value, value)


@dataclass(frozen=True)
class EntropyTerm(ObjectiveTerm):
    """Maximise the entropy in nats."""

    maximise: ClassVar[bool] = True
    has_entropy: ClassVar[bool] = True

    def value(self, pmf: Pmf) -> Enclosure:
        return pmf.entropy

    def refuse(self, asked: Asked) -> None:
        if not asked.support.is_finite:
            raise InputError(
                "", f"max-entropy on all integers has Gaussian tails, not a finite description: {GIVE_A_SUPPORT}"
            )

    @property
    def is_symmetric(self) -> bool:
        return False  # entropy programs are cheap as they are
