"""What a constraint or an objective says exactly, in lattice steps: the vocabulary between problems and programs.

A term knows its definition and how to check a pmf against it in exact arithmetic. What a solver needs to be told
about it (float rows) is in `dpopt.program.blocks`, one block a term.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from dpopt.arithmetic import Enclosure, exact, exp_enclosure, log_enclosure
from dpopt.distance import wasserstein_distance
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.privacy.divergence import worst_hockey_stick
from dpopt.privacy.ratios import largest_ratio
from dpopt.reading import read_integers

__all__ = [
    "CostTerm",
    "EntropyTerm",
    "ExpectationTerm",
    "HockeyStickTerm",
    "MinDeltaTerm",
    "MirrorTerm",
    "ObjectiveTerm",
    "OrderTerm",
    "RatioTerm",
    "Term",
    "TermCheck",
    "WassersteinTerm",
    "ZeroTerm",
]


class TermCheck(NamedTuple):
    """Whether a term holds, and a rational lower bound of the margin it holds by (negative when it does not)."""

    holds: bool
    margin: Fraction


@dataclass(frozen=True)
class Term:
    """Base of the constraint terms."""

    def check(self, pmf: Pmf, window: tuple[int, int] | None) -> TermCheck:
        """Check `pmf` exactly; `window` is the finite support, None for all points."""
        raise TypeError(f"{type(self).__name__} does not say how it is checked")


def _require_function(function: object) -> None:
    if not isinstance(function, LatticeFunction):
        raise InputError("function", f"must be a LatticeFunction of the lattice index, not {function!r}")


@dataclass(frozen=True)
class ExpectationTerm(Term):
    """``at_least <= E f(Z) <= at_most``; None leaves a side open, equal sides make an equality."""

    function: LatticeFunction
    at_least: Fraction | None = None
    at_most: Fraction | None = None

    def __post_init__(self) -> None:
        _require_function(self.function)
        for side in ("at_least", "at_most"):
            if getattr(self, side) is not None:
                object.__setattr__(self, side, exact(getattr(self, side), side))

    def check(self, pmf: Pmf, window: tuple[int, int] | None) -> TermCheck:
        value = pmf.expectation(self.function)
        room = []
        if self.at_least is not None:
            room.append(value - self.at_least)
        if self.at_most is not None:
            room.append(self.at_most - value)
        margin = min(room, default=Fraction(0))
        return TermCheck(margin >= 0, margin)


@dataclass(frozen=True)
class RatioTerm(Term):
    """``p(i) <= e^epsilon p(j)`` for all |i - j| <= shift: all integers, or inside the window only."""

    epsilon: Fraction
    shift: int
    inside_window: bool = False

    def check(self, pmf: Pmf, window: tuple[int, int] | None) -> TermCheck:
        numerator, denominator = largest_ratio(pmf, self.shift, window=window if self.inside_window else None)
        if denominator == 0:
            return TermCheck(False, Fraction(-(10**6)))
        ratio, bits = Fraction(numerator, denominator), 128
        while True:  # a rational ratio never equals e^epsilon unless epsilon = 0: more bits always decide
            low, high = exp_enclosure(self.epsilon, bits)
            if ratio <= low:
                return TermCheck(True, max(self.epsilon - log_enclosure(ratio).upper, Fraction(0)))
            if ratio > high:
                return TermCheck(False, self.epsilon - log_enclosure(ratio, 128).lower)
            bits *= 2


@dataclass(frozen=True)
class HockeyStickTerm(Term):
    """``sum (p(k) - e^epsilon p(k - s))+ <= delta`` for every shift 1 <= |s| <= shift."""

    epsilon: Fraction
    shift: int
    delta: Fraction

    def check(self, pmf: Pmf, window: tuple[int, int] | None) -> TermCheck:
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


@dataclass(frozen=True)
class OrderTerm(Term):
    """Non-decreasing up to the mode, non-increasing after it (finite windows).

    A `share` below 1 asks for more: each step away from the mode falls at least to that share.
    """

    mode: int
    share: Fraction = Fraction(1)

    def check(self, pmf: Pmf, window: tuple[int, int] | None) -> TermCheck:
        first, last = window or (pmf.start, pmf.end)
        weights = [pmf.weight(k) for k in range(first, last + 1)]
        at = min(max(self.mode - first, 0), len(weights) - 1)
        rises = [b - a for a, b in zip(weights[:at], weights[1 : at + 1], strict=True)]
        falls = [a - b for a, b in zip(weights[at:], weights[at + 1 :], strict=False)]
        margin = min([*rises, *falls], default=Fraction(0)) / pmf.total
        return TermCheck(margin >= 0, margin)


@dataclass(frozen=True)
class MirrorTerm(Term):
    """``p(-k) = p(k)`` for every k."""

    def check(self, pmf: Pmf, window: tuple[int, int] | None) -> TermCheck:
        if pmf.is_symmetric:
            return TermCheck(True, Fraction(0))
        if pmf.tails is not None:
            same = pmf.tails.left == pmf.tails.right and pmf.start == -pmf.end
            if not same:
                return TermCheck(False, Fraction(-1))
        reach = max(abs(pmf.start), abs(pmf.end))
        worst = max(abs(pmf.weight(k) - pmf.weight(-k)) for k in range(1, reach + 1)) if reach else Fraction(0)
        return TermCheck(worst == 0, -worst / pmf.total)


@dataclass(frozen=True)
class ZeroTerm(Term):
    """``p(k) = 0`` at the given lattice indices."""

    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", read_integers(self.indices, "indices"))

    def check(self, pmf: Pmf, window: tuple[int, int] | None) -> TermCheck:
        mass = sum((pmf.weight(k) for k in self.indices), Fraction(0)) / pmf.total
        return TermCheck(mass == 0, -mass)


# --- objectives ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectiveTerm:
    """Base of the objective terms."""

    maximise = False

    def value(self, pmf: Pmf) -> Enclosure:
        """The objective of `pmf`, enclosed."""
        raise TypeError(f"{type(self).__name__} does not say what its value is")

    @property
    def cost(self) -> LatticeFunction:
        """The part of the objective that is linear in the pmf."""
        return LatticeFunction()


@dataclass(frozen=True)
class CostTerm(ObjectiveTerm):
    """Minimise the expectation of a function."""

    function: LatticeFunction

    def __post_init__(self) -> None:
        _require_function(self.function)

    @property
    def cost(self) -> LatticeFunction:
        """The function itself."""
        return self.function

    def value(self, pmf: Pmf) -> Enclosure:
        value = pmf.expectation(self.function)
        return Enclosure(value, value)


@dataclass(frozen=True)
class EntropyTerm(ObjectiveTerm):
    """Maximise the entropy in nats."""

    maximise = True

    def value(self, pmf: Pmf) -> Enclosure:
        return pmf.entropy


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


@dataclass(frozen=True)
class WassersteinTerm(ObjectiveTerm):
    """Minimise W1 between the input and input plus noise (noise paper, equations (25)-(31)).

    With F the input's distribution function, W1 is the step times the sum over cuts k of |E g_k(Z)|,
    g_k(j) = F(k) - F(k - j). Only for min <= k < max of the input is the sign open; the other cuts add up to the
    linear cost E(min - j - X)+ + E(X + j - max)+.
    """

    input: Pmf  # on lattice indices

    @property
    def cuts(self) -> range:
        """The cuts whose sign is open."""
        return range(self.input.start, self.input.end)

    @cached_property
    def distribution(self) -> tuple[Fraction, ...]:
        """F at the points of the input's support."""
        return tuple(Fraction(c) / self.input.total for c in self.input.cumulative())

    def cut(self, k: int) -> LatticeFunction:
        """g_k times the step, as a function of the noise index j."""
        step, here = self.input.step, self.distribution[k - self.input.start]
        # j from k - max to k - min: F(k - j) runs through the distribution from its last entry to its first
        table = tuple(step * (here - f) for f in reversed(self.distribution))
        return LatticeFunction(k - self.input.end, table, (step * (here - 1),), (step * here,))

    @cached_property
    def cost(self) -> LatticeFunction:
        """The linear cost of all the other cuts."""
        start, end, step = self.input.start, self.input.end, self.input.step
        mean = self.input.mean / step
        below = [Fraction(0)]  # sum of F over the points before index i: E(i - X)+
        for f in self.distribution[:-1]:
            below.append(below[-1] + f)
        reach = end - start
        table = []
        for j in range(-reach, reach + 1):
            left = below[-j] if j < 0 else Fraction(0)  # E(start - j - X)+
            # E(X + j - end)+ = (mean + j - end) + E(end - j - X)+
            right = mean + j - end + below[reach - j] if j > 0 else Fraction(0)
            table.append(step * (left + right))
        return LatticeFunction(-reach, tuple(table), (step * (start - mean), -step), (step * (mean - end), step))

    def value(self, pmf: Pmf) -> Enclosure:
        """W1 in data units, enclosed; see `dpopt.distance.wasserstein_distance`."""
        return wasserstein_distance(self.input, pmf, pmf.expectation(self.cost))
