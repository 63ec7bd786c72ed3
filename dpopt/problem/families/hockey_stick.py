"""Bounded hockey-stick divergences: (epsilon, delta)-differential privacy, with delta given or to be made small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, expm1, log1p
from typing import NamedTuple, Self

from dpopt.arithmetic import Enclosure, exp_enclosure
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.privacy.divergence import hockey_stick, worst_hockey_stick
from dpopt.privacy.majorant import least_majorant
from dpopt.privacy.shifts import deciding_shifts, explicit_weights
from dpopt.problem.families.base import (
    GIVE_A_SUPPORT,
    Asked,
    Cut,
    Decay,
    Guarantee,
    ObjectiveTerm,
    Term,
    TermCheck,
    Window,
    pair_count,
)

__all__ = ["Event", "HockeyStickTerm", "MinDeltaTerm"]

_TINY_DELTA = Fraction(1, 10**7)
_MOST_STEPS = 100_000  # of a support that is expected


class Event(NamedTuple):
    """A set of outputs: those of `points` (which is a range of the noise's indices), seen from `shift` away."""

    shift: int
    points: frozenset[int]


@dataclass(frozen=True)
class HockeyStickTerm(Term):
    """``sum (p(k) - e^epsilon p(k - s))+ <= delta`` for every shift 1 <= |s| <= shift.

    A witness is an event S at a shift s: ``P(S) - e^epsilon P(S - s) <= delta``.
    """

    epsilon: Fraction
    shift: int
    delta: Fraction

    # --- what it means

    def check(self, pmf: Pmf, window: Window) -> TermCheck:
        bits = 128
        while True:
            low, high = exp_enclosure(self.epsilon, bits)
            upper = worst_hockey_stick(pmf, low, self.shift)
            if upper <= self.delta:
                return TermCheck(True, self.delta - upper)
            lower = worst_hockey_stick(pmf, high, self.shift)
            if lower > self.delta:
                return TermCheck(False, self.delta - upper)
            bits *= 2

    def cuts(self, pmf: Pmf, window: Window) -> tuple[Event, ...]:
        """The event of each shift and direction that decides, the worst first (pmfs without tails)."""
        factor = exp_enclosure(self.epsilon).upper
        shifts = [sign * s for s in deciding_shifts(pmf, self.shift) for sign in (1, -1)]
        shifts.sort(key=lambda s: -hockey_stick(pmf, factor, s))
        reach = max(map(abs, shifts))
        first, weights, _ = explicit_weights(pmf, reach)
        found = []
        for s in shifts:
            pairs = ((k, k - s) for k in range(reach, len(weights) - reach))
            found.append(Event(s, frozenset(first + k for k, j in pairs if weights[k] > factor * weights[j])))
        return tuple(found)

    def function(self, witness: Event) -> Cut:
        indicator = _indicator(witness.points)
        moved = _indicator(frozenset(k - witness.shift for k in witness.points))
        return Cut(indicator - moved.scaled(exp_enclosure(self.epsilon).upper), self.delta)

    # --- how it is solved

    def refuse(self, asked: Asked) -> None:
        if asked.support.is_finite:
            return
        if any(term.tail is not None for term in asked.terms):
            raise InputError(
                "", f"approx-dp beside pure-dp needs a finite support or one of the two alone: {GIVE_A_SUPPORT}"
            )
        if min(map(len, asked.cost.outward)) <= 1:
            raise InputError(
                "", f"approx-dp with a bounded cost on all integers has no attained optimum: {GIVE_A_SUPPORT}"
            )

    def row_count(self, size: int) -> int:
        return pair_count(self.shift, size) + 2 * self.shift  # a total for each shift

    @property
    def reach(self) -> int:
        """Half-width of the optimum's support, from the truncated geometric law, with some room."""
        if self.delta == 0:
            return 64 * self.shift
        epsilon, delta = float(self.epsilon), float(self.delta)
        steps = log1p(expm1(min(epsilon, 500.0)) / (2 * delta)) / epsilon if epsilon > 0 else 1 / (2 * delta)
        return ceil(self.shift * (min(steps, _MOST_STEPS) + 2))

    @property
    def decay(self) -> Decay:
        return Decay(float(self.epsilon) / self.shift, float(self.delta))

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon, self.delta, self.shift)

    @property
    def is_symmetric(self) -> bool:
        return True

    def tightened(self, by: Fraction) -> Self:
        return replace(self, epsilon=self.epsilon * (1 - by), delta=self.delta * (1 - by))

    # --- how a pmf is repaired

    @property
    def leaves_edges(self) -> bool:
        return self.delta <= _TINY_DELTA

    def inside(self, weights: Sequence[int]) -> list[int]:
        """Pure DP between the first and the last point with mass, so that delta is left to the edges alone."""
        dust = sum(weights) * self.delta / 10**6  # less than this beyond the edge is a solver's rounding
        kept = [w if w > dust else 0 for w in weights]
        used = [k for k, w in enumerate(kept) if w]
        if not used:
            return kept
        first, last = used[0], used[-1] + 1
        factor = exp_enclosure(self.epsilon).lower
        return [*kept[:first], *least_majorant(kept[first:last], factor, self.shift), *kept[last:]]


@dataclass(frozen=True)
class MinDeltaTerm(ObjectiveTerm):
    """Minimise the worst hockey-stick divergence at `epsilon` over the shifts up to `shift`."""

    epsilon: Fraction
    shift: int

    def value(self, pmf: Pmf) -> Enclosure:
        bits = 128
        while True:  # deltas of 1e-300 need an e^epsilon that is finer than they are
            low, high = exp_enclosure(self.epsilon, bits)
            lower, upper = worst_hockey_stick(pmf, high, self.shift), worst_hockey_stick(pmf, low, self.shift)
            if upper - lower <= upper / (1 << 40) or bits > 8192:
                return Enclosure(lower, upper)
            bits *= 2

    def refuse(self, asked: Asked) -> None:
        if not asked.support.is_finite:
            raise InputError(
                "", f"min-delta on all integers has no minimum (spreading out always helps): {GIVE_A_SUPPORT}"
            )

    def row_count(self, size: int) -> int:
        return pair_count(self.shift, size) + 2 * self.shift  # a total for each shift

    @property
    def decay(self) -> Decay:
        return Decay(float(self.epsilon) / self.shift)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon, None, self.shift)


def _indicator(points: frozenset[int]) -> LatticeFunction:
    if not points:
        return LatticeFunction()
    first, last = min(points), max(points)
    return LatticeFunction(first, tuple(Fraction(k in points) for k in range(first, last + 1)))
