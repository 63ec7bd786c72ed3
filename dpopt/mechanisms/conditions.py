"""The noise paper's Theorems 1 and 2 on an exact pmf, beside the tight delta.

*Theorem 1*: noise is epsilon-DP if and only if c_b, the supremum of p(k - s)/p(k) over all lattice points k and all
shifts |s| <= m, is finite; epsilon = ln c_b is then tight. No p(k) may be 0.

*Theorem 2* is sufficient only: split the lattice into Theta_1, where all ratios are at most e^epsilon, and the rest
Theta_0; delta is the mass of Theta_0. A point k belongs to Theta_0 by the ratios p(k)/p(k + s) in which it is the
*numerator*: those are the outputs that the excess p(k) - e^epsilon p(k + s) comes from. The text indexes the split by
the denominator, c_b over p(k - s)/p(k), under which uniform noise would get delta = 0. That is false, and kept here as
`SufficientDelta.as_printed` so that it can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpopt.arithmetic import Enclosure, Number, exact, exact_nonnegative, exp_enclosure, log_enclosure
from dpopt.errors import InputError, NotVerifiedError
from dpopt.pmf import Pmf, read_pmf
from dpopt.privacy.divergence import delta, hockey_stick, is_pure
from dpopt.privacy.enclosed import is_long
from dpopt.privacy.ratios import largest_ratio_pair, sliding_argmax
from dpopt.privacy.shifts import explicit_weights, lattice_shift
from dpopt.record import Record

__all__ = [
    "CutGuarantee",
    "LeastEpsilon",
    "SufficientDelta",
    "cut_guarantee",
    "least_epsilon",
    "sufficient_delta",
]

_BITS = 64  # of logarithms, relative
_MOST_BITS = 1 << 16


# --- Theorem 1 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class LeastEpsilon(Record):
    """What Theorem 1 finds: the two points, at most the sensitivity apart, whose masses have the largest ratio.

    Parameters
    ----------
    sensitivity : Fraction
        In data units, and so are the points.
    likely, unlikely : Fraction
        The points. Where `unlikely` has no mass, the noise is not epsilon-DP for any epsilon.
    likely_mass, unlikely_mass : Fraction
        Their probabilities.
    """

    sensitivity: Fraction
    likely: Fraction
    unlikely: Fraction
    likely_mass: Fraction
    unlikely_mass: Fraction

    @property
    def is_finite(self) -> bool:
        """Whether the noise is epsilon-DP for some epsilon."""
        return self.unlikely_mass > 0

    @property
    def ratio(self) -> Fraction:
        """c_b, exactly.

        Raises
        ------
        NotVerifiedError
            It is infinite.
        """
        if not self.is_finite:
            raise NotVerifiedError(f"the noise is not epsilon-DP for any epsilon: {self}")
        return self.likely_mass / self.unlikely_mass

    @cached_property
    def epsilon(self) -> Enclosure:
        """ln c_b, enclosed to a relative 2^-64; raises like `ratio`."""
        excess = self.ratio - 1
        small = (1 / excess).numerator.bit_length() - (1 / excess).denominator.bit_length() if excess else 0
        return log_enclosure(self.ratio, _BITS + max(small, 0) + 1)

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        from dpopt.text import decimal_text

        at, to = (decimal_text(point, 12, up=None) for point in (self.likely, self.unlikely))
        masses = [decimal_text(mass, 6, up=None) for mass in (self.likely_mass, self.unlikely_mass)]
        return f"p({at}) = {masses[0]} beside p({to}) = {masses[1]}"


def least_epsilon(pmf: Pmf, sensitivity: Number = 1) -> LeastEpsilon:
    """The least epsilon at which noise is epsilon-DP (Theorem 1), with the pair of points that decides it.

    Parameters
    ----------
    pmf : Pmf
        The noise, or anything with a `pmf` attribute.
    sensitivity : number
        In data units; all shifts up to ``floor(sensitivity / step)`` lattice steps count, in both directions.

    Examples
    --------
    >>> from dpopt.distributions import laplace, uniform
    >>> print(least_epsilon(laplace(3), sensitivity=2).epsilon)
    0.666666666667
    >>> found = least_epsilon(uniform(0, 9))
    >>> found.is_finite, print(found)
    p(0) = 0.1 beside p(-1) = 0
    (False, None)
    """
    noise = read_pmf(pmf, "pmf")
    shift = lattice_shift(sensitivity, noise.step)
    pair = largest_ratio_pair(noise, shift)
    return LeastEpsilon(
        exact(sensitivity, "sensitivity"),
        pair.likely * noise.step,
        pair.unlikely * noise.step,
        noise.probability(pair.likely),
        noise.probability(pair.unlikely),
    )


# --- Theorem 2 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SufficientDelta(Record):
    """What Theorem 2 gives at an epsilon, beside the tight delta.

    Parameters
    ----------
    epsilon, sensitivity : Fraction
    sufficient : Fraction
        The mass of Theta_0, exactly: the noise is (epsilon, sufficient)-DP.
    tight : Enclosure
        The least delta at this epsilon.
    as_printed : Fraction
        The mass of the points that the paper's own wording leaves out; no bound on anything.
    points : tuple of Fraction
        Theta_0 on the core and up to the sensitivity beyond it, in data units.
    beyond : Fraction
        The mass of Theta_0 farther out.
    """

    epsilon: Fraction
    sensitivity: Fraction
    sufficient: Fraction
    tight: Enclosure
    as_printed: Fraction
    points: tuple[Fraction, ...]
    beyond: Fraction


def sufficient_delta(pmf: Pmf, epsilon: Number, sensitivity: Number = 1) -> SufficientDelta:
    """Theorem 2, corrected: the delta that the mass of Theta_0 proves at `epsilon`, beside the tight one.

    Parameters
    ----------
    pmf : Pmf
        The noise, or anything with a `pmf` attribute.
    epsilon : number
        At least 0.
    sensitivity : number
        In data units.

    Examples
    --------
    >>> from dpopt.distributions import gaussian, uniform
    >>> found = sufficient_delta(gaussian(0, 3), "0.5")
    >>> f"{float(found.sufficient):.10g}", f"{float(found.tight.upper):.10g}"
    ('0.1336144025', '0.01177864327')
    >>> found = sufficient_delta(uniform(0, 9), 1)
    >>> found.sufficient, found.tight.upper, found.as_printed
    (Fraction(1, 5), Fraction(1, 10), Fraction(0, 1))
    """
    noise = read_pmf(pmf, "pmf")
    value = exact_nonnegative(epsilon, "epsilon")
    shift = lattice_shift(sensitivity, noise.step)
    tight = delta(noise, value, sensitivity)
    moved = exact(sensitivity, "sensitivity")
    if is_pure(noise, value, shift):
        return SufficientDelta(value, moved, Fraction(0), tight, Fraction(0), (), Fraction(0))
    if is_long(noise, shift):
        raise InputError(
            "sensitivity", f"is {shift} lattice steps, too many for the sets of Theorem 2 on so short tails"
        )
    reach = shift if noise.tails is not None else min(shift, len(noise.weights))
    start, weights, unit = explicit_weights(noise, 2 * reach)
    numerators, denominators = _exceptional(weights, reach, value)
    inner = range(reach, len(weights) - reach)  # farther out the sets repeat with the tails
    sufficient, beyond = _mass(noise, weights, numerators, inner, unit)
    as_printed, _ = _mass(noise, weights, denominators, inner, unit)
    points = tuple((start + i) * noise.step for i in inner if numerators[i])
    return SufficientDelta(value, moved, sufficient, tight, as_printed, points, beyond)


def _exceptional(weights: Sequence[int], reach: int, epsilon: Fraction) -> tuple[list[bool], list[bool]]:
    """Which points are the numerator, and which the denominator, of a ratio above e^epsilon.

    Decided by both ends of the enclosure of e^epsilon, which is refined until they agree.
    """
    lows = [weights[i] for i in sliding_argmax([-w for w in weights], reach)]
    highs = [weights[i] for i in sliding_argmax(weights, reach)]
    bits = 128
    while bits <= _MOST_BITS:
        found = [
            (
                [w * factor.denominator > low * factor.numerator for w, low in zip(weights, lows, strict=True)],
                [high * factor.denominator > w * factor.numerator for w, high in zip(weights, highs, strict=True)],
            )
            for factor in exp_enclosure(epsilon, bits)
        ]
        if found[0] == found[1]:
            return found[0]
        bits *= 2
    raise ArithmeticError("a ratio could not be told apart from e^epsilon")


def _mass(
    pmf: Pmf, weights: Sequence[int], chosen: Sequence[bool], inner: range, unit: Fraction
) -> tuple[Fraction, Fraction]:
    """The probability of the chosen points, and the part of it beyond the inner ones."""
    kept = [weights[i] if chosen[i] else 0 for i in inner]
    beyond = Fraction(0)
    if pmf.tails is not None:
        period = pmf.tails.period
        for ratio, block in ((pmf.tails.left, kept[:period]), (pmf.tails.right, kept[-period:])):
            if ratio is not None:
                beyond += sum(block) * ratio / (1 - ratio)
    return (sum(kept) + beyond) / unit, beyond / unit


# --- a cut -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class CutGuarantee(Record):
    """Theorem 2 with Theta_0 = {|z - centre| > K}: how the paper gives Gaussian noise an epsilon.

    Parameters
    ----------
    ratio : Fraction
        The largest p(k)/p(k + s) over |k - centre| <= K, exactly.
    epsilon : Enclosure
        Its logarithm.
    sufficient : Fraction
        The mass outside: the noise is (epsilon, sufficient)-DP.
    tight : Fraction
        The least delta at this epsilon, exactly.
    """

    ratio: Fraction
    epsilon: Enclosure
    sufficient: Fraction
    tight: Fraction


def cut_guarantee(pmf: Pmf, cut: Number, sensitivity: Number = 1, *, centre: Number = 0) -> CutGuarantee:
    """The (epsilon, delta) of noise by a cut at distance K from its centre (noise paper, (12)-(15), inferred).

    Raises
    ------
    InputError
        A point within the cut has no mass within the sensitivity: no epsilon covers it.

    Examples
    --------
    >>> from dpopt.distributions import gaussian
    >>> found = cut_guarantee(gaussian(0, 3), 9)
    >>> print(found.epsilon, f"{float(found.sufficient):.9g} {float(found.tight):.9g}")
    1.04599347625 0.00154196957 0.000108870136
    """
    noise = read_pmf(pmf, "pmf")
    shift = lattice_shift(sensitivity, noise.step)
    distance, middle = exact(cut, "cut"), exact(centre, "centre")
    if distance < 0:
        raise InputError("cut", f"must be at least 0, not {distance}")
    if is_long(noise, int(distance / noise.step) + shift):
        raise InputError("cut", f"reaches too far into tails as short as these, at {cut}; their ratio repeats anyway")
    first = -((distance - middle) // noise.step)
    last = (middle + distance) // noise.step
    best, inside = Fraction(1), Fraction(0)
    window = range(first - shift, last + shift + 1)
    weights = [noise.weight(k) for k in window]
    for i in range(shift, len(window) - shift):
        least = min(weights[i - shift : i + shift + 1])
        inside += weights[i]
        if weights[i] and not least:
            raise InputError("cut", f"must leave out every point with a zero within the sensitivity, not {cut}")
        best = max(best, weights[i] / least if least else best)
    tight = max(hockey_stick(noise, best, sign * s) for s in range(1, shift + 1) for sign in (1, -1))
    return CutGuarantee(best, log_enclosure(best), 1 - inside / noise.total, tight)
