"""From a solver's floats to exact integer weights that satisfy pure epsilon-DP: the least majorant, in integers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, log, log2

import numpy as np

from dpopt.patience import patiently
from dpopt.program.assembly import integers

__all__ = ["BIT_CAP", "least_majorant", "to_weights"]

BIT_CAP = 4096  # weights stay printable, and no mass that a constraint could care about is finer
_RELATIVE_BITS = 96


def to_weights(p: np.ndarray, *, depth: float = 0.0) -> list[int]:
    """Integer weights proportional to `p` (>= 0), with 96 significant bits for the smallest positive mass, capped.

    `depth` is how many powers of e below 1 the tail will reach that a majorant is going to fill in.

    Floats are multiples of powers of two: within the cap the weights are exactly the floats.
    """
    positive = p[p > 0]
    bits = ceil(max(-log2(float(positive.min(initial=1.0))), depth / log(2))) + _RELATIVE_BITS
    return integers(p, min(max(bits, 128), BIT_CAP))


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
