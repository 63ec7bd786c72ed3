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
from dpopt.checker.effort import afford, product_work
from dpopt.checker.law import Law
from dpopt.checker.reading import brief
from dpopt.errors import CertificateError
from dpopt.lattice_function import LatticeFunction
from dpopt.patience import patiently
from dpopt.work import STEP, Work

__all__ = [
    "BITS",
    "convolution",
    "convolution_work",
    "expected",
    "expected_work",
    "hockey_stick_work",
    "refuse_mass",
    "room",
    "short",
    "stretched",
    "stretched_bits",
    "stretched_work",
    "tail_work",
    "values_bits",
    "values_work",
    "walk_work",
    "worst_hockey_stick",
]

BITS = 64  # logarithms are rounded to multiples of 2^-64
_LONGEST = 4096  # bits of a denominator that is still written out


# --- what is left of a limit, and what is too long to write ----------------------------------------------------------


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
    what = "takes the exact expectation of a function"
    afford(walk_work(law, function), what)
    afford(expected_work(law, function), what)
    values, unit = function.integers(law.start, law.end)
    result = Fraction(sum(map(mul, law.weights, values)), unit)
    period = law.period
    for ratio, first, step in ((law.right, law.end - period + 1, period), (law.left, law.start, -period)):
        if ratio:
            block = law.weights[first - law.start : first - law.start + period]
            result += function.block_tail_sum(block, first, step, ratio)
    return result / law.total


def expected_work(law: Law, function: LatticeFunction) -> Work:
    """The core's values and products, and what a tail's come to, in closed form beyond the table."""
    longest, count = max(law.weights).bit_length(), len(law.weights)
    values = values_bits(function, law.start, law.end)
    work = values_work(function, law.start, law.end).plus(Work(count * (STEP + longest * values // 50)))
    size = max(len(function.left), len(function.right))
    for ratio, beyond in _walked(law, function):
        if ratio:
            reach, one = abs(law.start) + len(law.weights) + beyond, ratio.denominator.bit_length()
            own, long = longest + values_bits(function, -reach, reach), (size + 1 - -beyond // law.period) * one
            work = work.plus(tail_work(law, own, long, size, beyond))
    return work


def walk_work(law: Law, function: LatticeFunction) -> Work:
    """The terms of tails that lie within the table, whose sums have a power of the ratio for their denominator."""
    work = Work()
    for ratio, beyond in _walked(law, function):
        long = -(-beyond // law.period) * ratio.denominator.bit_length() if ratio else 0
        work = work.plus(Work(beyond * (25 * STEP + 2 * long) if ratio else 0, long // 4))
    return work


def _walked(law: Law, function: LatticeFunction) -> list[tuple[Fraction, int]]:
    """For either side the ratio, and how many points of the tail lie within the table."""
    ahead = (law.right, function.end - law.end), (law.left, law.start - function.start)
    return [(ratio, max(beyond, 0)) for ratio, beyond in ahead]


def tail_work(law: Law, own: int, long: int, size: int, beyond: int) -> Work:
    """What the sums of a tail come to: `beyond` values, and a polynomial of `size` coefficients from there.

    Its terms have `own` bits, and the powers of the ratio up to `long` bits, which are the denominators.
    """
    short, fraction = size**2 * (4 * STEP + own), 4 * STEP + (own + long) * (long + 64) // 20
    moments = Work(law.period * size * (STEP + own) + short + size * (3 * fraction + size * product_work(long)))
    if not beyond:
        return moments
    terms = beyond * own
    return Work(terms + law.period * (short + (size + 2) * fraction), (own + long) // 2)


def values_bits(function: LatticeFunction, low: int, high: int) -> int:
    """At most how long a value at ``low..high`` is, over the common denominator."""
    reach = max(abs(low), abs(high), 1).bit_length()
    numerators = [c.numerator.bit_length() + i * reach for side in (function.left, function.right)
                  for i, c in enumerate(side)]  # fmt: skip
    numerators += [max(function.numerators, key=abs).bit_length()] if function.table else []
    return max(numerators, default=0) + function.denominator.bit_length() + 8


def values_work(function: LatticeFunction, low: int, high: int) -> Work:
    """Writing out a function at ``low..high``."""
    degree = max(len(function.left), len(function.right))
    return Work.on_integers(max(high - low + 1, 0), values_bits(function, low, high), steps=1 + degree // 3)


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
    afford(stretched_work(law, by), f"takes the weights written out to {brief(by)} points beyond the core")
    period, blocks = law.period, -(-by // law.period)
    scale = lcm(law.left.denominator, law.right.denominator) ** blocks
    core = [w * scale for w in law.weights]
    left = _continued(core[:period][::-1], law.left, blocks)[:by][::-1]
    right = _continued(core[-period:], law.right, blocks)[:by]
    return left + core + right, scale


def stretched_work(law: Law, by: int) -> Work:
    """The weights over their denominator, and a product and a quotient by the ratio for each of a tail."""
    bits, ratio = stretched_bits(law, by), max(law.left.denominator, law.right.denominator).bit_length()
    held = Work.on_integers(len(law.weights) + 2 * by, bits, steps=2)
    return held.plus(Work(product_work(bits) + 2 * by * bits * ratio // 25 if law.left or law.right else 0))


def stretched_bits(law: Law, by: int) -> int:
    """How long the longest of the weights is that `stretched` writes out: the ratio counts once a period."""
    one = lcm(law.left.denominator, law.right.denominator).bit_length() if law.left or law.right else 0
    return max(law.weights).bit_length() + one * -(-by // law.period)


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
    work = hockey_stick_work(law, factor.numerator.bit_length(), shifts)
    afford(work, f"takes hockey-stick sums of {brief(n)} weights at {brief(len(shifts))} shifts")
    shift = shifts[-1]
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


def hockey_stick_work(law: Law, factor: int, shifts: range) -> Work:
    """For each shift and direction the excess at every point of both; the factor has so many bits."""
    n, last, bits = len(law.weights), shifts[-1], stretched_bits(law, shifts[-1]) + factor
    points = len(shifts) * (n + (shifts[0] + last) // 2)
    held = Work.on_integers(3 * (n + 2 * last) + 2 * (n + last), bits)
    return Work(held.bit_operations + 2 * points * (STEP + bits // 2), held.bytes)


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
    afford(convolution_work(count, bits), f"takes a convolution of {count} points")
    found = [int(c) for c in (fmpz_poly(list(first)) * fmpz_poly(list(second))).coeffs()]
    return found + [0] * (count - len(found))  # flint leaves out leading zeros


def convolution_work(count: int, bits: int) -> Work:
    """`count` sums of products of so many bits, by fast multiplication of polynomials, in and out of its integers."""
    longest = bits + count.bit_length()
    return Work.on_integers(3 * count, longest, steps=2).plus(Work(count * longest * count.bit_length()))
