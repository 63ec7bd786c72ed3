"""Bounded ratios of masses: pure differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

from dpopt.arithmetic import exp_enclosure, log_enclosure
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.privacy.majorant import least_majorant
from dpopt.privacy.ratios import largest_ratio, sliding_argmax
from dpopt.privacy.shifts import explicit_weights
from dpopt.problem.families.base import (
    GIVE_A_SUPPORT,
    Asked,
    Cut,
    Decay,
    Guarantee,
    Tail,
    Term,
    TermCheck,
    Window,
    pair_count,
)

__all__ = ["RatioTerm"]

_LEAST_EPSILON = Fraction(1, 10**6)  # on all integers
_INFINITE = Fraction(10**6)  # stands for the loss of a mass beside a zero


@dataclass(frozen=True)
class RatioTerm(Term):
    """``p(i) <= e^epsilon p(j)`` for all |i - j| <= shift: all integers, or inside the window only.

    A witness is such a pair (i, j).
    """

    epsilon: Fraction
    shift: int
    inside_window: bool = False
    has_majorant: ClassVar[bool] = True

    # --- what it means

    def check(self, pmf: Pmf, window: Window) -> TermCheck:
        numerator, denominator = largest_ratio(pmf, self.shift, window=window if self.inside_window else None)
        if denominator == 0:
            return TermCheck(False, -_INFINITE)
        ratio, bits = Fraction(numerator, denominator), 128
        while True:  # a rational ratio never equals e^epsilon unless epsilon = 0: more bits always decide
            low, high = exp_enclosure(self.epsilon, bits)
            if ratio <= low:
                return TermCheck(True, max(self.epsilon - log_enclosure(ratio).upper, Fraction(0)))
            if ratio > high:
                return TermCheck(False, self.epsilon - log_enclosure(ratio, 128).lower)
            bits *= 2

    def cuts(self, pmf: Pmf, window: Window) -> tuple[tuple[int, int], ...]:
        """The pair of each point j with the heaviest point within the shift, the most violated one first."""
        first, weights, _ = explicit_weights(pmf, 0 if self.inside_window else self.shift)
        factor = exp_enclosure(self.epsilon).lower
        pairs = [(i, j) for j, i in enumerate(sliding_argmax(weights, self.shift)) if i != j]
        pairs.sort(key=lambda pair: factor * weights[pair[1]] - weights[pair[0]])
        return tuple((first + i, first + j) for i, j in pairs)

    def function(self, witness: tuple[int, int]) -> Cut:
        i, j = witness
        table = [Fraction(0)] * (abs(i - j) + 1)
        table[i - min(i, j)] = Fraction(1)
        table[j - min(i, j)] = -exp_enclosure(self.epsilon).upper
        return Cut(LatticeFunction(min(i, j), tuple(table)), Fraction(0))

    # --- how it is solved

    def refuse(self, asked: Asked) -> None:
        if asked.support.is_finite and not self.inside_window:
            raise InputError(
                "",
                "pure-dp is impossible on a finite support (an output next to the edge tells the neighbours apart). "
                "Ways out: drop low and high; ask for approx-dp with a delta; or set boundary = 'window' to compare "
                "points inside the support only, and read the true (epsilon, delta) off the solution",
            )
        if asked.support.is_finite:
            return
        if self.epsilon < _LEAST_EPSILON:
            raise InputError(
                "epsilon",
                f"must be at least {_LEAST_EPSILON} on all integers (nothing there is 0-DP, and the noise would be "
                f"wider than any solver resolves): {GIVE_A_SUPPORT}",
            )
        if self.inside_window:
            raise InputError("boundary", f"'window' needs a finite support: {GIVE_A_SUPPORT}, or leave boundary out")

    def row_count(self, size: int) -> int:
        return pair_count(self.shift, size)

    @property
    def decay(self) -> Decay:
        return Decay(float(self.epsilon) / self.shift, is_strict=True)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon, Fraction(0), self.shift, self.inside_window)

    @property
    def tail(self) -> Tail | None:
        return None if self.inside_window else Tail(self.shift, self.epsilon)

    @property
    def is_symmetric(self) -> bool:
        return True

    def tightened(self, by: Fraction) -> Self:
        return replace(self, epsilon=self.epsilon * (1 - by))

    # --- how a pmf is repaired

    def depth(self, size: int) -> float:
        return float(self.epsilon) * (size // (2 * self.shift) + 1)

    def enforced(self, weights: Sequence[int], *, strictness: Fraction, beyond: int) -> list[int]:
        factor = max(exp_enclosure(self.epsilon).lower * (1 - strictness), Fraction(1))
        return least_majorant(weights, factor, self.shift, beyond=beyond)
