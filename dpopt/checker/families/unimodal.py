"""A rise up to the mode and a fall from there. A witness is a point i and its neighbour j towards the mode.

Its row is ``p(i) - p(j) <= 0``, with a multiplier y >= 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

from dpopt.checker.lattice import Lattice
from dpopt.checker.law import Law
from dpopt.checker.reading import read_object
from dpopt.checker.stated import Enclosures, Family, Setting, family
from dpopt.checker.sums import short
from dpopt.checker.witness import Pairs, read_inequalities
from dpopt.errors import CertificateError


@family("unimodal")
@dataclass(frozen=True)
class _Unimodal(Family):
    lattice: Lattice
    mode: int

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type",), ("mode",))
        setting.lattice.needs_window(cls.name, where)
        return cls(setting.lattice, setting.lattice.index(data.get("mode", "0"), f"{where}.mode"))

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        """The least rise towards the mode from one point of the window to the next."""
        rises = [b - a if k < self.mode else a - b for k, (a, b) in enumerate(pairwise(law.weights), law.start)]
        least = min(rises, default=0)
        if least < 0:
            place = law.start + rises.index(least)
            raise CertificateError(f"the probability falls towards the mode between indices {place} and {place + 1}")
        return short(least / law.total).lower

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> Pairs:
        """``pairs`` of i, j and y."""
        return read_inequalities(data, where, self.kind, self._has, Fraction(0))

    def _has(self, i: int, j: int) -> bool:
        towards = 1 if i < self.mode else -1
        return i != self.mode and j - i == towards and self.lattice.holds(i) and self.lattice.holds(j)
