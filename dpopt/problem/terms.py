"""What a constraint or an objective says exactly, in lattice steps: the vocabulary between problems and programs.

A term knows its definition and how to check a pmf against it in exact arithmetic. What a solver needs to be told
about it (float rows) is in `dpopt.program.blocks`, one block a term.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from flint import fmpz_poly

from dpopt.arithmetic import Enclosure, exp_enclosure, log_enclosure
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.privacy import largest_ratio, worst_hockey_stick

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


@dataclass(frozen=True)
class ExpectationTerm(Term):
    """``at_least <= E f(Z) <= at_most``; None leaves a side open, equal sides make an equality."""

    function: LatticeFunction
    at_least: Fraction | None = None
    at_most: Fraction | None = None

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
        """W1 between two multiples of 2^-128.

        The exact rational would carry tail ratios to the power of the input's range; masses are rounded down to
        2^-bits instead, and the rounding of a whole distribution function is at most `unit` of these.
        """
        reach, step = self.input.end - self.input.start, self.input.step
        bits = _W1_BITS + 4 * (reach + 2).bit_length()
        masses, below = _masses_within(pmf, reach, bits)
        convolved = fmpz_poly(masses) * fmpz_poly(list(self.input.cumulative()))
        total, scale = self.input.total.numerator, 1 << bits
        unit = 4 * (reach + 2) ** 2  # masses within the reach, each off by at most their tail step
        lower = upper = 0
        for position, k in enumerate(self.cuts):
            # F_y(k) = P(Z < k - end) + sum of p(j) F(k - j) for k - end <= j <= k - start, times total * scale
            here = int(convolved[position + reach]) + total * below[position]
            apart = abs(self.input.cumulative()[position] * scale - here)
            lower += max(apart - unit * total, 0)
            upper += apart + unit * total
        outside = pmf.expectation(self.cost)
        low, high = outside + step * Fraction(lower, total * scale), outside + step * Fraction(upper, total * scale)
        return _outward(low, high)


_W1_BITS = 192


def _outward(low: Fraction, high: Fraction) -> Enclosure:
    """Both ends as they are where they are short, else rounded outward to multiples of 2^-128."""
    if low == high and low.denominator.bit_length() <= 4096:
        return Enclosure(low, high)
    scale = 1 << 128
    return Enclosure(Fraction(low.numerator * scale // low.denominator, scale), Fraction(-(-high.numerator * scale // high.denominator), scale))


def _masses_within(pmf: Pmf, reach: int, bits: int) -> tuple[list[int], list[int]]:
    """floor(p(j) 2^bits) for j = -reach..reach, and floor(P(Z < j) 2^bits) for j = -reach..-1, up to rounding."""
    total, scale = pmf.total, 1 << bits

    def scaled(weight: Fraction) -> int:
        value = weight * scale / total
        return value.numerator // value.denominator

    masses = [0] * (2 * reach + 1)
    for k in range(max(-reach, pmf.start), min(reach, pmf.end) + 1):
        masses[k + reach] = scaled(Fraction(pmf.weights[k - pmf.start]))
    started = 0  # floor of the mass below -reach that a right tail begins with
    rest = Fraction(sum(pmf.weights[: max(min(-reach, pmf.end + 1) - pmf.start, 0)]))
    if pmf.tails is not None:
        period = pmf.tails.period
        for ratio, sign in ((pmf.tails.right, 1), (pmf.tails.left, -1)):
            if ratio is None:
                continue
            first = pmf.end + 1 if sign > 0 else pmf.start - 1
            block = [scaled(pmf.weight(first + sign * i)) for i in range(period)]
            for i in range(max(reach + 1 - sign * first, 0)):
                if -reach <= first + sign * i <= reach:
                    masses[first + sign * i + reach] = block[i % period]
                elif sign > 0:
                    started += block[i % period]
                block[i % period] = block[i % period] * ratio.numerator // ratio.denominator
        if pmf.tails.left is not None:
            rest += _left_tail_beyond(pmf, -reach)
    below, running = [], scaled(rest) + started
    for k in range(-reach, 0):
        below.append(running)
        running += masses[k + reach]
    return masses, below


def _left_tail_beyond(pmf: Pmf, low: int) -> Fraction:
    """The weight of the left tail strictly below `low`."""
    assert pmf.tails is not None and pmf.tails.left is not None
    ratio, period = pmf.tails.left, pmf.tails.period
    found = Fraction(0)
    for k in range(pmf.start, pmf.start + period):
        steps = max(1, (k - low) // period + 1)  # the first t with k - t period < low
        found += pmf.weights[k - pmf.start] * ratio**steps / (1 - ratio)
    return found
