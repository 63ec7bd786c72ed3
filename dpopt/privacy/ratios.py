"""The largest ratio of two masses a shift apart: e^epsilon of pure differential privacy (noise paper, Theorem 1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.privacy.shifts import explicit_weights

_MOST_BITS = 1 << 20  # of the power of a tail ratio: a few seconds

__all__ = ["RatioPair", "is_too_long", "largest_ratio", "largest_ratio_pair", "sliding_argmax"]


def sliding_argmax(values: Sequence[int], reach: int) -> Iterator[int]:
    """Where the maximum of ``values[j - reach : j + reach + 1]`` lies, for each j, in O(n) (monotone queue)."""
    queue: deque[int] = deque()
    ahead = 0
    for j in range(len(values)):
        while ahead < len(values) and ahead <= j + reach:
            while queue and values[queue[-1]] <= values[ahead]:
                queue.pop()
            queue.append(ahead)
            ahead += 1
        if queue[0] < j - reach:
            queue.popleft()
        yield queue[0]


def sliding_maximum(values: Sequence[int], reach: int) -> Iterator[int]:
    """The maximum of ``values[j - reach : j + reach + 1]`` for each j, in O(n)."""
    return (values[i] for i in sliding_argmax(values, reach))


def largest_ratio(pmf: Pmf, shift: int, *, window: tuple[int, int] | None = None) -> tuple[int, int]:
    """The largest p(i)/p(j) over all |i - j| <= `shift`, as a pair numerator, denominator (denominator 0: infinite).

    Without `window` every pair of integers counts: with tails the finitely many pairs with one point in the core and
    the other at most `shift` beyond it decide (``theory: a pair wholly beyond the core moves inward by a period with
    its ratio unchanged``). With `window`, only pairs inside it.
    """
    if window is None:
        _, weights, _ = explicit_weights(pmf, shift)
    else:
        first, last = window
        weights = [int(pmf.weight(k)) for k in range(first, last + 1)]
    best, over = 1, 1
    for maximum, weight in zip(sliding_maximum(weights, shift), weights, strict=True):
        if maximum * over > best * weight:
            best, over = maximum, weight
            if weight == 0:
                break
    return best, over


class RatioPair(NamedTuple):
    """Two lattice points at most the shift apart and the ratio of their masses, infinite where `denominator` is 0."""

    likely: int
    unlikely: int
    numerator: int
    denominator: int


@lru_cache(maxsize=8)  # asked for by each of a pmf's guarantees
def largest_ratio_pair(pmf: Pmf, shift: int) -> RatioPair:
    """The largest p(i)/p(j) over all |i - j| <= `shift`, with the pair that attains it, for any shift in O(n + period).

    An infinite ratio has neighbours for a pair. A long shift needs no long window: beyond n + period the best pair
    with j in a tail has i in the core (a pair wholly in a tail moves inward by a period with its ratio unchanged) and j
    in the last period that i reaches (there is less mass than in the one before), so that one period more multiplies
    its ratio by 1/r. Pairs with j in the core stay as they are.

    Examples
    --------
    >>> from dpopt.pmf import Tails
    >>> half = Fraction(1, 2)
    >>> pair = largest_ratio_pair(Pmf(0, (1,), tails=Tails(1, half, half)), 3)
    >>> pair.likely, pair.unlikely, Fraction(pair.numerator, pair.denominator)
    (0, -3, Fraction(8, 1))
    """
    beside = _mass_beside_zero(pmf)
    if beside is not None:
        return beside
    size, tails = len(pmf.weights), pmf.tails
    assert tails is not None  # a finite support ends beside zeros
    assert tails.left is not None
    assert tails.right is not None
    blocks = _blocks_beyond(pmf, shift)
    if is_too_long(pmf, shift):
        raise InputError(
            "sensitivity",
            f"is {shift} lattice steps, too many for the exact ratio of such short tails; use a coarser step",
        )
    near = shift - blocks * tails.period
    start, weights, _ = explicit_weights(pmf, near)
    best = [(-1, -1, 1, 1)] * 3  # the unlikely point to the left of the core, in it, to the right
    for j, (i, weight) in enumerate(zip(sliding_argmax(weights, near), weights, strict=True)):
        side = (j >= near) + (j >= near + size)
        if weights[i] * best[side][3] > best[side][2] * weight:
            best[side] = (i, j, weights[i], weight)
    found = RatioPair(0, 0, 1, 1)
    outward = ((tails.left, -tails.period), (Fraction(1), 0), (tails.right, tails.period))
    for (i, j, numerator, denominator), (ratio, period) in zip(best, outward, strict=True):
        growth = ratio**-blocks
        over, under = numerator * growth.numerator, denominator * growth.denominator
        if i >= 0 and over * found.denominator > found.numerator * under:
            found = RatioPair(start + i, start + j + blocks * period, over, under)
    return found


def is_too_long(pmf: Pmf, shift: int) -> bool:
    """Whether the largest ratio would be a number of more than a million bits."""
    if pmf.tails is None or pmf.tails.left is None or pmf.tails.right is None:
        return False
    longest = max(ratio.denominator.bit_length() for ratio in (pmf.tails.left, pmf.tails.right))
    return _blocks_beyond(pmf, shift) * longest > _MOST_BITS


def _blocks_beyond(pmf: Pmf, shift: int) -> int:
    """Periods of a tail that a shift passes over, whatever the two points are."""
    assert pmf.tails is not None
    return max((shift - len(pmf.weights) - pmf.tails.period) // pmf.tails.period, 0)


def _mass_beside_zero(pmf: Pmf) -> RatioPair | None:
    """The largest mass that has a zero next to it, if any has: core and one point more, which the tails only repeat."""
    weights: list[Fraction | int] = [pmf.weight(pmf.start - 1), *pmf.weights, pmf.weight(pmf.end + 1)]
    found, largest = None, Fraction(0)
    for i, (a, b) in enumerate(zip(weights, weights[1:], strict=False), pmf.start - 1):
        mass, likely, unlikely = (a, i, i + 1) if a else (b, i + 1, i)
        if mass > largest and not (a and b):
            found, largest = RatioPair(likely, unlikely, 1, 0), Fraction(mass)
    return found
