"""Noisy top-k with gap item by item, in Python integers alone: the slow twin that the fast path is compared with.

It follows the gap paper's Algorithm 4 (arXiv 2308.08057) word for word, without pruning, on the integer-only draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dpopt.release.integers import geometric, permutation, truncated_geometric
from dpopt.release.randomness import Randomness

__all__ = ["IntegerTopK", "integer_top_k"]


class IntegerTopK(NamedTuple):
    """The selected items, their gaps in units, and the number of refinement loops."""

    ids: tuple[int, ...]
    gaps: tuple[int, ...]
    loops: int


def integer_top_k(
    values: Sequence[int], k: int, rate: Fraction, *, refinement: int = 10, randomness: Randomness | None = None
) -> IntegerTopK:
    """Algorithm 4 on scores in units of the resolution, with geometric noise of this rate.

    Examples
    --------
    >>> integer_top_k([9000, 0, 500], 2, Fraction(1, 2)).ids
    (0, 2)
    """
    cells = [value + geometric(rate, randomness) for value in values]
    seen, loops = min(k + 2, len(values)), 0
    while True:
        order = sorted(range(len(cells)), key=cells.__getitem__, reverse=True)
        first = [cells[item] for item in order[:seen]]
        if len(set(first)) == seen:  # no two neighbours tie, so that the sort has decided nothing
            break
        loops += 1
        rate /= refinement
        cells = [refinement * cell + truncated_geometric(rate, refinement, randomness) for cell in cells]
    remainders = permutation(k + 1, randomness)
    gaps = []
    for place in range(k):
        smaller = remainders[place] < remainders[place + 1]
        gaps.append((first[place] - first[place + 1] - smaller) // refinement**loops)
    return IntegerTopK(tuple(order[:k]), tuple(gaps), loops)
