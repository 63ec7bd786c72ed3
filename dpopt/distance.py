"""The 1-Wasserstein distance between an input and input plus noise, enclosed between rationals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import fmpz_poly

from dpopt.arithmetic import Enclosure
from dpopt.pmf import Pmf

__all__ = ["wasserstein_distance"]

_BITS = 192
_SHORT = 4096  # an exact value with a longer denominator is rounded outward: it would be unprintable


def wasserstein_distance(input: Pmf, noise: Pmf, outside: Fraction) -> Enclosure:  # noqa: A002  # the paper's word
    """W1 in data units: the expected cost of the cuts outside the input's range, plus the cuts inside it.

    The exact rational would carry tail ratios to the power of the input's range. Masses are rounded down to
    multiples of 2^-bits instead; a whole distribution function is then off by at most `unit` of these.

    Parameters
    ----------
    input : Pmf
        Finite, on the noise's lattice.
    noise : Pmf
        With or without tails.
    outside : Fraction
        The expected linear cost of the cuts at which the sign of the difference is known.

    Examples
    --------
    >>> wasserstein_distance(Pmf(0, (1,)), Pmf(-1, (1, 2, 1)), Fraction(1, 2))
    Enclosure(lower=Fraction(1, 2), upper=Fraction(1, 2))
    """
    reach = input.end - input.start
    bits = _BITS + 4 * (reach + 2).bit_length()
    unit = 4 * (reach + 2) ** 2
    masses, below = _masses_within(noise, reach, bits)
    cumulative = input.cumulative()
    convolved = fmpz_poly(masses) * fmpz_poly(list(cumulative))
    total = input.total.numerator
    lower = upper = 0
    for cut in range(reach):
        # F_y(k) = P(Z < k - end) + sum of p(j) F(k - j) for k - end <= j <= k - start, in units of total * 2^bits
        here = int(convolved[cut + reach]) + total * below[cut]
        apart = abs((cumulative[cut] << bits) - here)
        lower += max(apart - unit * total, 0)
        upper += apart + unit * total
    scale = total << bits
    return _outward(outside + input.step * Fraction(lower, scale), outside + input.step * Fraction(upper, scale))


def _outward(low: Fraction, high: Fraction) -> Enclosure:
    """Both ends as they are where they agree and are short, else rounded outward to multiples of 2^-128."""
    if low == high and low.denominator.bit_length() <= _SHORT:
        return Enclosure(low, high)
    scale = 1 << 128
    below, above = low.numerator * scale // low.denominator, -(-high.numerator * scale // high.denominator)
    return Enclosure(Fraction(below, scale), Fraction(above, scale))


def _masses_within(pmf: Pmf, reach: int, bits: int) -> tuple[list[int], list[int]]:
    """floor(p(j) 2^bits) for j = -reach..reach, and floor(P(Z < j) 2^bits) for j = -reach..-1, up to rounding."""
    total, scale = pmf.total, 1 << bits

    def scaled(weight: Fraction) -> int:
        value = weight * scale / total
        return value.numerator // value.denominator

    masses = [0] * (2 * reach + 1)
    for k in range(max(-reach, pmf.start), min(reach, pmf.end) + 1):
        masses[k + reach] = scaled(Fraction(pmf.weights[k - pmf.start]))
    farther_left = Fraction(sum(pmf.weights[: max(min(-reach, pmf.end + 1) - pmf.start, 0)]))
    started = _add_tails(pmf, masses, reach, scaled)
    if pmf.tails is not None and pmf.tails.left is not None:
        farther_left += _left_tail_beyond(pmf, -reach)
    below, running = [], scaled(farther_left) + started
    for k in range(-reach, 0):
        below.append(running)
        running += masses[k + reach]
    return masses, below


def _add_tails(pmf: Pmf, masses: list[int], reach: int, scaled: Callable[[Fraction], int]) -> int:
    """Write both tails into the window; returns what a right tail has to the left of it."""
    started = 0
    if pmf.tails is None:
        return started
    period = pmf.tails.period
    for ratio, sign in ((pmf.tails.right, 1), (pmf.tails.left, -1)):
        if ratio is None:
            continue
        first = pmf.end + 1 if sign > 0 else pmf.start - 1
        block = [scaled(pmf.weight(first + sign * i)) for i in range(period)]
        for i in range(max(reach + 1 - sign * first, 0)):
            at = first + sign * i
            if -reach <= at <= reach:
                masses[at + reach] = block[i % period]
            elif sign > 0:
                started += block[i % period]
            block[i % period] = block[i % period] * ratio.numerator // ratio.denominator
    return started


def _left_tail_beyond(pmf: Pmf, low: int) -> Fraction:
    """The weight of the left tail strictly below `low`."""
    assert pmf.tails is not None
    assert pmf.tails.left is not None
    ratio, period = pmf.tails.left, pmf.tails.period
    found = Fraction(0)
    for k in range(pmf.start, pmf.start + period):
        steps = max(1, (k - low) // period + 1)  # the first t with k - t period < low
        found += pmf.weights[k - pmf.start] * ratio**steps / (1 - ratio)
    return found
