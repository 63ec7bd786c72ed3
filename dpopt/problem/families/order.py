"""One mode: the masses rise up to it and fall from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.families.base import GIVE_A_SUPPORT, Asked, Cut, Term, TermCheck, Window

__all__ = ["OrderTerm"]


@dataclass(frozen=True)
class OrderTerm(Term):
    """Non-decreasing up to the mode, non-increasing after it (finite windows).

    A `share` below 1 asks for more: each step away from the mode falls at least to that share. A witness is a point k
    other than the mode: ``p(k) <= share * p(its neighbour towards the mode)``.
    """

    mode: int
    share: Fraction = Fraction(1)
    is_linear: ClassVar[bool] = True

    def check(self, pmf: Pmf, window: Window) -> TermCheck:
        first, last = window or (pmf.start, pmf.end)
        weights = [pmf.weight(k) for k in range(first, last + 1)]
        at = min(max(self.mode - first, 0), len(weights) - 1)
        rises = [b * self.share - a for a, b in zip(weights[:at], weights[1 : at + 1], strict=True)]
        falls = [a * self.share - b for a, b in zip(weights[at:], weights[at + 1 :], strict=False)]
        margin = min([*rises, *falls], default=Fraction(0)) / pmf.total
        return TermCheck(margin >= 0, margin)

    def cuts(self, pmf: Pmf, window: Window) -> tuple[int, ...]:
        first, last = window or (pmf.start, pmf.end)
        points = [k for k in range(first, last + 1) if k != self.mode]
        return tuple(sorted(points, key=lambda k: -self.function(k).excess(pmf)))

    def function(self, witness: int) -> Cut:
        one = Fraction(1)
        if witness < self.mode:
            return Cut(LatticeFunction(witness, (one, -self.share)), Fraction(0))
        return Cut(LatticeFunction(witness - 1, (-self.share, one)), Fraction(0))

    def refuse(self, asked: Asked) -> None:
        window = asked.support.window
        if window is None:
            raise InputError("", f"unimodal on all integers has no proof yet: {GIVE_A_SUPPORT}")
        if not window[0] <= self.mode <= window[1]:
            raise InputError("mode", f"must lie in the support, not {self.mode * asked.support.step}")

    def row_count(self, size: int) -> int:
        return size

    @property
    def is_symmetric(self) -> bool:
        return self.mode == 0

    def tightened(self, by: Fraction) -> Self:
        return replace(self, share=self.share * (1 - by))

    def active(self, pmf: Pmf, first: int, last: int) -> list[LatticeFunction]:
        """p(i) - p(j) for neighbours of nearly equal mass (two zeros need no row)."""
        near, found = max(pmf.weights) // 10**9, []
        for k in range(first, last):
            left, right = pmf.weight(k), pmf.weight(k + 1)
            if (left or right) and abs(left - right) <= near:
                found.append(LatticeFunction(k, (Fraction(1), Fraction(-1))))
        return found
