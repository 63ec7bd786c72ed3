"""The TableBuilder family p(z) = C e^(-gamma z^2) on [-D, D] in balls: its privacy profile in closed form, and gamma.

Nothing here looks at a pmf's weights, so that it is a second opinion on `dpopt.privacy.profile`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from flint import arb

from dpopt.arithmetic import Enclosure, Number, ball, dyadic, exact, exact_integer, exp_enclosure
from dpopt.balls import at_precision, decided
from dpopt.errors import InputError
from dpopt.family.members import require_half_width
from dpopt.privacy.shifts import lattice_shift
from dpopt.text import brief
from dpopt.work import Work, require

__all__ = ["family_delta", "family_rate"]

_BITS = 64  # relative, of what is returned where the arguments are exact
_RATE_BITS = 128
_MOST_BITS = 1 << 20


def family_delta(
    D: int,  # noqa: N803
    gamma: Number | Enclosure,
    epsilon: Number,
    sensitivity: Number = 1,
) -> Enclosure:
    """delta(epsilon) of the ideal member by Proposition 2 of the ABS paper, equation (21), for any sensitivity m.

    With z* = floor(m/2 - epsilon / (2 m gamma)), the last output whose ratio p(z) / p(z - m) is above e^epsilon,
    delta = sum_{z = -D}^{-D+m-1} p(z) + sum_{z = -D+m}^{z*} (p(z) - e^epsilon p(z - m)): the mass that one neighbour
    never sees, and the excess over the other outputs. Borderline terms are 0, so that the rounding of z* cannot matter.

    Parameters
    ----------
    D : int
        Half width of the support.
    gamma : number or Enclosure
        At least 0. The delta of every gamma within an enclosure lies within the result.
    epsilon : number
        At least 0.
    sensitivity : number

    Examples
    --------
    >>> print(family_delta(11, "1/21", 1))
    0.000387356823687
    >>> print(family_delta(11, family_rate(11, 4), 3))
    5.38489770589e-8
    """
    half = exact_integer(D, "D", at_least=0)
    low, high = map(Fraction, gamma) if isinstance(gamma, tuple) else (exact(gamma, "gamma"),) * 2
    if low < 0:
        raise InputError("gamma", f"must be at least 0, not {low}")
    if low > high:
        raise InputError("gamma", f"must be an enclosure whose lower end {low} is at most its upper end {high}")
    value = exact(epsilon, "epsilon")
    if value < 0:
        raise InputError("epsilon", f"must be at least 0, not {value}")
    exp_enclosure(value, 1)  # refuses what is too large
    shift = lattice_shift(sensitivity, Fraction(1))
    require_half_width(half)
    if high == 0 or shift > 2 * half:
        exactly = Fraction(min(shift, 2 * half + 1), 2 * half + 1)
        return Enclosure(exactly, exactly)
    least = ceil(high * half * half * Fraction(3, 2))  # bits of the outermost mass
    require(
        "gamma",
        Work(bit_operations=least * least.bit_length() ** 2, bytes=least),
        f"= {brief(high)} makes masses of 2^-{brief(least)}",
        "give a smaller one",
    )
    return _refined(lambda: _closed_form(half, low, high, value, shift), 128 + 2 * half.bit_length())


def _closed_form(half: int, low: Fraction, high: Fraction, epsilon: Fraction, shift: int) -> arb:
    """delta for all gamma between `low` and `high`, as a ball at the working precision."""
    masses = _masses_between(half, low, high)
    total = masses[0] + 2 * sum(masses[1:], arb(0))
    found = sum((masses[abs(z)] for z in range(-half, -half + shift)), arb(0))
    surely, perhaps = _last_output(half, low, epsilon, shift), _last_output(half, high, epsilon, shift)
    factor = ball(epsilon).exp()
    for z in range(-half + shift, perhaps + 1):
        term = masses[abs(z)] - factor * masses[abs(z - shift)]
        found += term if z <= surely else term.union(arb(0)).nonnegative_part()
    return found / total


def _masses(half: int, rate: Fraction) -> list[arb]:
    """e^(-rate z^2) for z = 0..D: its ratio of neighbours is itself geometric."""
    ratio = (-ball(rate)).exp()
    factor, found = ratio * ratio, [arb(1)]
    for _ in range(half):
        found.append(found[-1] * ratio)
        ratio = ratio * factor
    return found


def _masses_between(half: int, low: Fraction, high: Fraction) -> list[arb]:
    if low == high:
        return _masses(half, low)
    return [(-ball(low) * z * z).exp().union((-ball(high) * z * z).exp()) for z in range(half + 1)]


def _last_output(half: int, rate: Fraction, epsilon: Fraction, shift: int) -> int:
    """z*, at most D: it grows with gamma."""
    if rate == 0:
        return -half
    last = Fraction(shift, 2) - epsilon / (2 * shift * rate)
    return min(last.numerator // last.denominator, half)


def family_rate(D: int, V: Number) -> Enclosure:  # noqa: N803
    """gamma of the max-entropy pmf on [-D, D] with mean 0 and variance at most V, enclosed to a relative 2^-128.

    The root of sum_z (z^2 - V) e^(-gamma z^2), which falls through 0 once (ABS paper, equations (8)-(10): one sign
    change of the polynomial (10)). From V = D(D+1)/3 on (Proposition 1, equation (11)) the pmf is uniform: gamma = 0.

    Examples
    --------
    >>> print(family_rate(11, 10))
    0.0498087160844
    >>> family_rate(3, 4)
    Enclosure(lower=Fraction(0, 1), upper=Fraction(0, 1))
    """
    half = exact_integer(D, "D", at_least=0)
    variance = exact(V, "V")
    if variance <= 0:
        raise InputError("V", f"must be positive, not {variance}")
    require_half_width(half, 16)
    if variance >= Fraction(half * (half + 1), 3):
        return Enclosure(Fraction(0), Fraction(0))
    low, high = Fraction(0), min(1 / variance, Fraction(int(1 / variance).bit_length() + 2))  # small V: about ln(2/V)
    while _newton(half, high, variance).is_below:
        low, high = high, 2 * high
    guess, before = _short((low + high) / 2), high - low
    while high - low > high / (1 << _RATE_BITS):
        point = _newton(half, guess, variance)
        low, high = (guess, high) if point.is_below else (low, guess)
        after, step = _short(guess + point.step), abs(point.step)
        if step * (1 << _RATE_BITS // 2 + 16) < guess:  # the error of `after` is about the square of that
            left, right = (_short(after * (1 + side * Fraction(1, 1 << _RATE_BITS + 2))) for side in (-1, 1))
            if _newton(half, left, variance).is_below and not _newton(half, right, variance).is_below:
                return Enclosure(left, right)
        if not low < after < high or 2 * step > before:  # Newton strays or dawdles: halve the bracket instead
            after, step = _short((low + high) / 2), (high - low) / 2
        guess, before = after, step
    return Enclosure(low, high)


class _Point(NamedTuple):
    """Whether a rate lies below the root, proved, and about how far Newton's method would move it."""

    is_below: bool
    step: Fraction


def _newton(half: int, rate: Fraction, variance: Fraction) -> _Point:
    """Newton's step for ln variance(gamma) = ln V, close to linear both near gamma = 0 and for large gamma."""

    def point() -> _Point | None:
        zeroth, second, fourth = _moments(half, rate)
        excess = second - ball(variance) * zeroth  # no rational gamma > 0 is a root (Lindemann)
        if not (excess > 0 or excess < 0):
            return None
        found, slope = second / zeroth, fourth / zeroth - (second / zeroth) ** 2
        step = (found / ball(variance)).log() * found / slope
        return _Point(bool(excess > 0), dyadic(step.mid()))

    undecided = "a variance of the family could not be separated from V"
    return decided(point, 2 * _RATE_BITS + 2 * half.bit_length(), most=_MOST_BITS, undecided=undecided)


def _moments(half: int, rate: Fraction) -> tuple[arb, arb, arb]:
    """The sums of e^(-rate z^2), z^2 e^(-rate z^2) and z^4 e^(-rate z^2)."""
    masses = _masses(half, rate)
    second = fourth = arb(0)
    for z in range(1, half + 1):
        part = masses[z] * (z * z)
        second += part
        fourth += part * (z * z)
    return masses[0] + 2 * sum(masses[1:], arb(0)), 2 * second, 2 * fourth


def _short(rate: Fraction) -> Fraction:
    """A dyadic number within a relative 2^-192: the iteration must not grow the denominators."""
    bits = 192 + max(rate.denominator.bit_length() - rate.numerator.bit_length(), 0)
    return Fraction(round(rate * (1 << bits)), 1 << bits)


def _refined(compute: Callable[[], arb], precision: int) -> Enclosure:
    """The ends of what `compute` encloses, at growing precision until they are close or come no closer."""
    width: Fraction | None = None
    while True:
        found = at_precision(precision, compute)
        middle, radius = dyadic(found.mid()), dyadic(found.rad())
        close = radius * (1 << _BITS) <= abs(middle)
        if close or precision > _MOST_BITS or (width is not None and 2 * radius > width):
            return Enclosure(max(middle - radius, Fraction(0)), middle + radius)
        width, precision = radius, 2 * precision
