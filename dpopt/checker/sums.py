"""Exact sums over a law, its tails included: expectations, zeros, a core written out further, hockey-stick sums.

A law with tails is infinite, but its sums are finite sums and geometric series. All of them are exact integers over
common denominators; only what is irrational is rounded, to multiples of 2^-64, by those who need it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm
from operator import mul

from flint import fmpz_poly

from dpopt.arithmetic import Enclosure
from dpopt.checker.law import Law
from dpopt.checker.reading import brief
from dpopt.errors import CertificateError
from dpopt.lattice_function import LatticeFunction
from dpopt.patience import patiently

__all__ = [
    "BITS",
    "affordable",
    "convolution",
    "expected",
    "refuse_mass",
    "room",
    "short",
    "stretched",
    "worst_hockey_stick",
]

BITS = 64  # logarithms are rounded to multiples of 2^-64
_LONGEST = 4096  # bits of a denominator that is still written out
_MAX_BITS = 8_000_000_000  # of all integers of one computation together (1 GB)
_MAX_STEPS = 5_000_000_000  # comparisons of hockey-stick sums


# --- what fits, and what is left of a limit ------------------------------------------------------------------------


def affordable(bits: int, count: int) -> None:
    """Raise unless `count` integers of so many bits fit into the memory."""
    if bits * count > _MAX_BITS:
        raise CertificateError("too large to check: the exact numbers involved would fill the memory")


def short(exact: Fraction) -> Enclosure:
    """The number itself, or its neighbours at 2^-128 where it is too long to be written down.

    A tail ratio to the power of a wide input's range makes exact values of a hundred thousand digits.
    """
    if exact.denominator.bit_length() <= _LONGEST:
        return Enclosure(exact, exact)
    low = (exact.numerator << 128) // exact.denominator
    return Enclosure(Fraction(low, 1 << 128), Fraction(low + 1, 1 << 128))


def room(left: Fraction, what: str) -> Fraction:
    """What is left up to a limit; an error if it is less than nothing."""
    if left < 0:
        raise CertificateError(f"{what} is beyond its limit by {brief(-left)}")
    return left


# --- expectations and zeros ----------------------------------------------------------------------------------------


def expected(law: Law, function: LatticeFunction) -> Fraction:
    """E h(Z), exactly."""
    values, unit = function.integers(law.start, law.end)
    result = Fraction(sum(map(mul, law.weights, values)), unit)
    period = law.period
    for ratio, first, step, beyond in (
        (law.right, law.end - period + 1, period, function.end - law.end),
        (law.left, law.start, -period, law.start - function.start),
    ):
        if ratio:
            affordable(max(beyond, 0) // period * ratio.denominator.bit_length(), max(beyond, 0) + period)
            block = law.weights[first - law.start : first - law.start + period]
            result += function.block_tail_sum(block, first, step, ratio)
    return result / law.total


def refuse_mass(law: Law, points: Collection[int]) -> None:
    """Raise if there is mass at one of the points, in the core or in a tail (which repeats the block it grows from)."""
    for k in points:
        if k < law.start:
            zero = law.left == 0 or law.weights[(k - law.start) % law.period] == 0
        elif k > law.end:
            zero = law.right == 0 or law.weights[-1 - (law.end - k) % law.period] == 0
        else:
            zero = law.weights[k - law.start] == 0
        if not zero:
            raise CertificateError(f"the probability at index {k} is not 0")


# --- a law written out further -------------------------------------------------------------------------------------


def stretched(law: Law, by: int) -> tuple[list[int], int]:
    """The weights on ``start - by .. end + by`` as integers over one denominator.

    >>> stretched(Law(0, [3], left=Fraction(1, 2)), 2)
    ([3, 6, 12, 0, 0], 4)
    """
    period, blocks = law.period, -(-by // law.period)
    scale = lcm(law.left.denominator, law.right.denominator) ** blocks
    affordable(scale.bit_length() + max(law.weights).bit_length(), len(law.weights) + 2 * by)
    core = [w * scale for w in law.weights]
    left = _continued(core[:period][::-1], law.left, blocks)[:by][::-1]
    right = _continued(core[-period:], law.right, blocks)[:by]
    return left + core + right, scale


def _continued(block: list[int], ratio: Fraction, blocks: int) -> list[int]:
    """`blocks` further blocks outward, each `ratio` times the one before (the divisions are exact)."""
    if ratio == 0:
        return [0] * (blocks * len(block))
    result: list[int] = []
    for _ in range(blocks):
        block = [w * ratio.numerator // ratio.denominator for w in block]
        result += block
    return result


# --- hockey-stick sums ---------------------------------------------------------------------------------------------


def worst_hockey_stick(law: Law, factor: Fraction, shift: int) -> Fraction:
    """The largest ``sum over k of (p(k) - factor * p(k - s))+`` of the shifts s with ``1 <= abs(s) <= shift``.

    Beyond the core and s further points both masses lie in one tail, and so the terms repeat every period, times
    the ratio: the last block of terms stands for its whole tail. Of a palindromic law s and -s have the same sum.
    """
    n, period = len(law.weights), law.period
    shifts = _deciding_shifts(law, shift)
    shift = shifts[-1]
    if 2 * len(shifts) * (n + shift) > _MAX_STEPS:
        raise CertificateError(f"too large to check: {len(shifts)} shifts of {n} weights")
    weights, scale = stretched(law, shift)
    ours, theirs = [w * factor.denominator for w in weights], [w * factor.numerator for w in weights]
    left, right = law.left, law.right
    left_rest, right_rest = left.denominator - left.numerator, right.denominator - right.numerator
    one_way = left == right and law.weights == law.weights[::-1]
    worst = 0
    for s in patiently(shifts, every=1):
        forward = ours[shift : shift + n + s], theirs[shift - s : shift + n]
        backward = ours[shift - s : shift + n], theirs[shift : shift + n + s]
        for here, there in (forward,) if one_way else (forward, backward):
            excess = [a - b if a > b else 0 for a, b in zip(here, there, strict=True)]
            found = sum(excess) * left_rest * right_rest
            if left or right:
                found += sum(excess[:period]) * left.numerator * right_rest
                found += sum(excess[-period:]) * right.numerator * left_rest
            worst = max(worst, found)
    return worst / (scale * factor.denominator * left_rest * right_rest * law.total)


def _deciding_shifts(law: Law, shift: int) -> range:
    """The shifts that can have the largest sum, for a factor of at least 1.

    From a shift by the whole length on, a finite law and its shift have no point in common. Of a finite law that
    rises and then falls the last shift alone decides: with s growing from 0, (p(k) - E p(k + s))+ grows from the mode
    on, since p(k + s) falls; left of the mode it is 0 until k + s has passed the mode, since p(k + s) >= p(k) there,
    and grows from then on. Negative s likewise.

    >>> _deciding_shifts(Law(0, [1, 2, 1]), 2), _deciding_shifts(Law(0, [2, 1, 2]), 9)
    (range(2, 3), range(1, 4))
    """
    if law.left or law.right:
        return range(1, shift + 1)
    last = min(shift, len(law.weights))
    moves = [a < b for a, b in pairwise(law.weights) if a != b]
    return range(last if moves == sorted(moves, reverse=True) else 1, last + 1)


def convolution(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """All sums of products of two lists of integers.

    >>> convolution([1, 2], [3, -4, 0])
    [3, 2, -8, 0]
    """
    if not first or not second:
        return []
    bits = sum(max(map(abs, side)).bit_length() for side in (first, second))
    count = len(first) + len(second) - 1
    affordable(bits + count.bit_length(), 2 * count)
    found = [int(c) for c in (fmpz_poly(list(first)) * fmpz_poly(list(second))).coeffs()]
    return found + [0] * (count - len(found))  # flint leaves out leading zeros
