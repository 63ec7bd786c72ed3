"""Symmetry about 0."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.families.base import Cut, Term, TermCheck, Window

__all__ = ["MirrorTerm"]


@dataclass(frozen=True)
class MirrorTerm(Term):
    """``p(-k) = p(k)`` for every k. A witness is a point k other than 0: ``p(k) <= p(-k)``."""

    is_linear: ClassVar[bool] = True
    mirrors: ClassVar[bool] = True

    def check(self, pmf: Pmf, window: Window) -> TermCheck:
        if pmf.is_symmetric:
            return TermCheck(True, Fraction(0))
        (worst,) = self.cuts(pmf, window)
        return TermCheck(False, -self.function(worst).excess(pmf))

    def cuts(self, pmf: Pmf, window: Window) -> tuple[int, ...]:
        """The point that has most more mass than its image; two periods beyond the arms show what tails do."""
        period = 0 if pmf.tails is None else pmf.tails.period
        reach = max(abs(pmf.start), abs(pmf.end)) + 2 * period
        points = [k for k in range(-reach, reach + 1) if k]
        return (max(points, key=lambda k: pmf.weight(k) - pmf.weight(-k)),) if points else ()

    def function(self, witness: int) -> Cut:
        one, apart = Fraction(1), (Fraction(0),) * (2 * abs(witness) - 1)
        table = (-one, *apart, one) if witness > 0 else (one, *apart, -one)
        return Cut(LatticeFunction(-abs(witness), table), Fraction(0))

    def row_count(self, size: int) -> int:
        return size // 2

    @property
    def is_symmetric(self) -> bool:
        return True
