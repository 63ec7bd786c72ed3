"""The least change of integer weights that makes their ratios private: the least majorant, in integers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction

from dpopt.patience import patiently

__all__ = ["least_majorant"]


def least_majorant(weights: Sequence[int], factor: Fraction, shift: int, *, beyond: int = 0) -> list[int]:
    """The least integer weights >= `weights` with ``w(i) <= factor * w(j)`` for all |i - j| <= shift.

    The least multiple above i's weight that a point at distance d needs is g applied ceil(d/shift) times, with
    g(w) = ceil(w / factor). Paths that turn back are longer, so one sweep in each direction finds the maximum.

    Parameters
    ----------
    beyond : int
        Continue this many points beyond each end (weights there start from 0).
    """
    numerator, denominator = factor.numerator, factor.denominator
    padded = [0] * beyond + list(weights) + [0] * beyond
    right = _sweep(padded, numerator, denominator, shift)
    left = _sweep(padded[::-1], numerator, denominator, shift)[::-1]
    return [max(a, b) for a, b in zip(left, right, strict=True)]


def _sweep(weights: Sequence[int], numerator: int, denominator: int, shift: int) -> list[int]:
    """One direction: each point at least g(maximum of the `shift` results before it), with a monotone queue."""
    result: list[int] = []
    queue: deque[int] = deque()
    for k, weight in enumerate(patiently(weights)):
        least = weight
        if queue:
            if queue[0] < k - shift:
                queue.popleft()
            needed = -(-result[queue[0]] * denominator // numerator)
            least = max(weight, needed)
        result.append(least)
        while queue and result[queue[-1]] <= least:
            queue.pop()
        queue.append(k)
    return result
