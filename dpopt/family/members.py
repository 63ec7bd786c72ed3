"""The TableBuilder family p(z) proportional to e^(-gamma z^2) on [-D, D]: exact members, and its delta in balls.

The family is log-concave, so at a sensitivity m the worst shift is m itself and the worst event is a tail:
delta = P(Z >= t) - e^epsilon P(Z >= t + m), with t the least z at which p(z) > e^epsilon p(z + m) (ABS paper,
Proposition 2, in tail form). For each D the delta is smallest at a breakpoint gamma = epsilon / (m (2j - m)), or for
the uniform pmf (gamma = 0).

Why few members speak for all
-----------------------------
Write N for the normaliser, T(t) for the mass e^(-gamma z^2) at and above t, E = e^epsilon, and

    f_t(gamma) = (T(t) - E T(t + m)) / N,        delta(gamma) = max over t of f_t(gamma) >= f_t(gamma) for every t.

*Lemma.* For a fixed t > -m/2 and any level 0 < L < 1 the set of gamma in (-infinity, infinity) with f_t(gamma) > L is
an interval. *Proof.* It is the set where F = T(t) - E T(t + m) - L N > 0, and F is a sum over k = |z| = 0..D of
c_k e^(-gamma k^2). Because t + m > |t|, the c_k are, in the order of growing k and up to positive factors,

    t >= 1:   -L (k < t),                          1 - 2L (t <= k < t + m),    1 - E - 2L (k >= t + m);
    t <= 0:   1 - L (k = 0), 2 - 2L (k <= -t),     1 - 2L (-t < k < t + m),    1 - E - 2L (k >= t + m),

where 1 - E - 2L < 0. So for t >= 1 the signs change at most twice, and begin with -; for t <= 0 they change at most
once, and begin with +. By Descartes' rule for exponential sums F has at most as many zeros, and the sign of F as gamma
grows to infinity is that of c_0. So F > 0 between two zeros, or on one side of one: for t <= 0 from there upward.

Two consequences carry every refutation here: **if f_t exceeds L at both ends of a range of rates, with one and the same
t, then delta exceeds L all over the range**; and for t <= 0 one end is enough, for all rates above it. Between two
breakpoints one t is the worst throughout, so that delta there is at least its smaller end: the breakpoints hold the
optimum. A range of many pieces mostly passes at once, since f_t falls below delta only by the square of the distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, log
from typing import Any

from flint import arb

from dpopt.arithmetic import ball, round_scaled
from dpopt.balls import at_precision, decided
from dpopt.errors import InputError
from dpopt.patience import patiently
from dpopt.pmf import Pmf
from dpopt.text import brief
from dpopt.work import STEP, Work, require

__all__ = [
    "IdealMember",
    "analytic_rate",
    "breakpoints",
    "delta_exceeds",
    "family_pmf",
    "masses_work",
    "reaching_rate",
    "require_half_width",
    "worst_tail",
]

_RELATIVE_BITS = 128
_MAX_BITS = 1 << 16
_MOST_PRECISION = 1 << 20


def analytic_rate(half_width: int, epsilon: Fraction, shift: int) -> Fraction | None:
    """The paper's gamma for a D, epsilon / (m (2D - m)): equation (33) with iota = 0; None where 2D <= m."""
    if 2 * half_width <= shift:
        return None
    return epsilon / (shift * (2 * half_width - shift))


def breakpoints(half_width: int, epsilon: Fraction, shift: int) -> list[Fraction]:
    """The rates among which the smallest delta over the family lies, ascending, the uniform pmf first.

    Between two of them the set of contributing outputs is fixed and delta is quasi-concave in gamma.
    """
    if epsilon == 0:
        return [Fraction(0)]
    wide = range(half_width, shift // 2, -1)
    return [Fraction(0), *(epsilon / (shift * (2 * j - shift)) for j in wide)]


@lru_cache(maxsize=32)
def family_pmf(half_width: int, rate: Fraction, more_bits: int = 0) -> Pmf:
    """The canonical exact member: weights are the nearest integers to ``2**bits * e^(-rate z^2)``.

    The bits give the outermost weight 128 significant ones, and `more_bits`.

    Examples
    --------
    >>> family_pmf(1, Fraction(0)).weights == (2**128,) * 3
    True
    """
    require_half_width(half_width)
    needed = _RELATIVE_BITS + more_bits + ceil(rate * half_width**2 / Fraction(log(2)))
    if needed > _MAX_BITS:
        raise InputError(
            "gamma",
            f"= {brief(rate)} with D = {half_width} needs weights of {brief(needed)} bits, more than {_MAX_BITS}",
        )
    half = [_weight(rate * z * z, needed) for z in range(half_width + 1)]
    return Pmf(-half_width, [*reversed(half[1:]), *half])


def _weight(exponent: Fraction, bits: int) -> int:
    """The nearest integer to ``2**bits * e^-exponent``."""
    return round_scaled(lambda: (-ball(exponent)).exp(), bits) if exponent else 1 << bits


def worst_tail(half_width: int, rate: Fraction, epsilon: Fraction, shift: int) -> int:
    """The t of the worst event {Z >= t}: the least z with p(z) > e^epsilon p(z + shift)."""
    if rate == 0:
        return max(half_width - shift + 1, -half_width)
    crossing = (epsilon / rate - shift * shift) / (2 * shift)  # rate (shift^2 + 2 shift z) = epsilon
    first = crossing.numerator // crossing.denominator + 1
    return max(min(first, half_width - shift + 1), -half_width)


class IdealMember:
    """The pmf proportional to e^(-rate z^2) on [-D, D] with real masses, as balls at the precision it is made at.

    Use it within `at_precision` of some bits more than wanted: sums of D balls lose about 2 log2 D. The rate may be a
    ball: then the masses are those of all its rates.

    Examples
    --------
    >>> from dpopt.arithmetic import as_enclosure
    >>> def facts():
    ...     member = IdealMember(11, Fraction(1, 21))
    ...     return as_enclosure(member.variance()), as_enclosure(member.delta(Fraction(1), 1))
    >>> print(*at_precision(128, facts))
    10.4473073733 0.000387356823687
    """

    def __init__(self, half_width: int, rate: Fraction | arb) -> None:
        self.half_width = half_width
        self.rate: Any = rate  # as it was given: a Fraction wherever breakpoints are compared
        self.masses = _masses(half_width, rate if isinstance(rate, arb) else ball(rate))
        self.above = list(accumulate(reversed(self.masses), initial=arb(0)))  # above[i]: the outermost i points
        self.total = 2 * self.above[-1] - self.masses[0]

    def tail(self, t: int) -> arb:
        """The mass at and above t, before division by the total."""
        if t > self.half_width:
            return arb(0)
        if t > 0:
            return self.above[self.half_width - t + 1]
        return self.total - self.above[self.half_width + t]

    def excess(self, start: int, shift: int, growth: arb, level: arb) -> arb:
        """The F of the lemma: (f_start - level) times the normaliser; `growth` is e^epsilon."""
        return self.tail(start) - growth * self.tail(start + shift) - level * self.total

    def delta(self, epsilon: Fraction, shift: int) -> arb:
        """The hockey-stick divergence at the worst shift, by the worst tail."""
        start = worst_tail(self.half_width, self.rate, epsilon, shift)
        return self.excess(start, shift, ball(epsilon).exp(), arb(0)) / self.total

    def variance(self) -> arb:
        """Equation (24)."""
        return 2 * sum((mass * (z * z) for z, mass in enumerate(patiently(self.masses))), arb(0)) / self.total


def delta_exceeds(half_width: int, rate: Fraction, epsilon: Fraction, shift: int, level: Fraction) -> bool:
    """Whether the ideal member's delta is above `level`, decided by balls that are refined until they do.

    Examples
    --------
    >>> delta_exceeds(17, Fraction(1, 33), Fraction(1), 1, Fraction(1, 10**5))
    True
    >>> delta_exceeds(18, Fraction(1, 35), Fraction(1), 1, Fraction(1, 10**5))
    False
    """
    if rate == 0:
        return Fraction(min(shift, 2 * half_width + 1), 2 * half_width + 1) > level
    start = worst_tail(half_width, rate, epsilon, shift)

    def shown() -> bool | None:
        excess = IdealMember(half_width, rate).excess(start, shift, ball(epsilon).exp(), ball(level))
        return bool(excess > 0) if excess > 0 or excess < 0 else None

    undecided = "a delta of the family could not be separated from the wanted one"
    return decided(shown, 96 + 2 * half_width.bit_length(), most=_MOST_PRECISION, undecided=undecided)


def reaching_rate(
    half_width: int,
    epsilon: Fraction,
    shift: int,
    level: Fraction,
    low: Fraction = Fraction(0),
    high: Fraction | None = None,
) -> Fraction | None:
    """A rate in [low, high] (no upper end: None) whose delta is at most `level`, or None: there is none.

    None is a proof, by the lemma of this module: the range is cut into few ranges on each of which one tail event
    exceeds the level at both ends. The cuts are breakpoints; where a single piece between two of them does not pass,
    one of its ends reaches the level, because on a piece the event is the worst one.

    Examples
    --------
    >>> reaching_rate(16, Fraction(1), 1, Fraction(1, 10**5)) is None
    True
    >>> reaching_rate(17, Fraction(1), 1, Fraction(1, 10**5))
    Fraction(1, 29)
    """
    inner = (b for b in breakpoints(half_width, epsilon, shift) if b > low and (high is None or b < high))
    nodes = [low, *inner] if high is None or high == low else [low, *inner, high]
    judge = _Judge(half_width, epsilon, shift, level)
    return at_precision(96 + 2 * half_width.bit_length(), lambda: judge.passing(nodes, endless=high is None))


@dataclass(frozen=True)
class _Judge:
    """Decisions about delta > level, at the working precision."""

    half_width: int
    epsilon: Fraction
    shift: int
    level: Fraction

    def passing(self, nodes: list[Fraction], *, endless: bool) -> Fraction | None:
        """A rate from the first to the last of `nodes`, or beyond if `endless`, that does not fail; None: all fail."""
        left, right = (IdealMember(self.half_width, rate) for rate in (nodes[0], nodes[-1]))
        if not self.fails(right) or (endless and not self.stays(right)):
            return nodes[-1]
        ranges = [(0, left, len(nodes) - 1, right)]
        while ranges:
            i, left, k, right = ranges.pop()
            middle = (i + k) // 2
            if k == i or self.excludes(left, right, (nodes[middle] + nodes[middle + 1]) / 2):
                continue
            if k - i == 1:  # a single piece: one event is the worst on all of it, its ends included
                if not self.fails(left):
                    return nodes[i]
                continue
            half = IdealMember(self.half_width, nodes[middle])
            if not self.fails(half):
                return nodes[middle]
            ranges += [(middle, half, k, right), (i, left, middle, half)]
        return None

    def event(self, rate: Fraction) -> int:
        """The worst event's beginning at a rate."""
        start = worst_tail(self.half_width, rate, self.epsilon, self.shift)
        if 2 * start <= -self.shift:
            raise ArithmeticError("the lemma needs a tail event that begins above -m/2")
        return start

    def excess(self, member: IdealMember, start: int) -> arb:
        """The F of the lemma."""
        return member.excess(start, self.shift, ball(self.epsilon).exp(), ball(self.level))

    def fails(self, member: IdealMember) -> bool:
        """Whether the member's delta is above the level; decided at whatever precision it takes."""
        excess = self.excess(member, self.event(member.rate))
        if excess > 0 or excess < 0:
            return bool(excess > 0)
        return delta_exceeds(self.half_width, member.rate, self.epsilon, self.shift, self.level)

    def excludes(self, left: IdealMember, right: IdealMember, within: Fraction) -> bool:
        """Whether the event that is worst at `within` exceeds the level at both ends: then it does so between them."""
        start = self.event(within)
        return bool(self.excess(left, start) > 0 and self.excess(right, start) > 0)

    def stays(self, last: IdealMember) -> bool:
        """Whether a failing member at or above every breakpoint speaks for all rates above its own.

        Beyond the breakpoints one event is the worst for good, at the last breakpoint too; it begins at or below 0.
        """
        return self.event(2 * last.rate or Fraction(1)) <= 0


def masses_work(half_width: int, bits: int) -> Work:
    """What the masses of one member take, as balls of so many bits: two products and a few sums a point."""
    return Work(
        bit_operations=(half_width + 1) * (8 * STEP + 20 * bits), bytes=3 * (half_width + 1) * (120 + bits // 8)
    )


def require_half_width(half_width: int, members: int = 1) -> None:
    """Refuse a D whose members take too much.

    Parameters
    ----------
    members : int
        About how many of them are looked at.
    """
    one = masses_work(half_width, 256)
    require(
        "D", Work(members * one.bit_operations, one.bytes), f"makes sums over {half_width} points", "give a smaller D"
    )


def _masses(half_width: int, rate: arb) -> list[arb]:
    """e^(-rate z^2) for z = 0..D by two multiplications a point: the ratio of neighbours is geometric."""
    factor = (-rate).exp()
    square, ratio, mass = factor * factor, factor, arb(1)
    found = []
    for _ in patiently(range(half_width + 1)):
        found.append(mass)
        mass = mass * ratio
        ratio = ratio * square
    return found
