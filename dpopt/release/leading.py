"""The leading items of noisy scores, with ties broken: what every noisy top-k selects from.

The cell of a score ``b + E`` with exponential noise E is ``floor(b + E)``: b plus a geometric number. The remainders
beyond the cells are independent of them and of each other, and identically distributed (memorylessness). Two ways to
break ties, with the same law:

- *Permutation.* A selection and its rounded gaps depend on the remainders through their order alone, and that order is
  uniformly random: one permutation of the items that are still in the race ranks tied items and decides how gaps are
  rounded. Nothing is drawn twice, and of the permutation only what the leading items need: its highest ranks, as many
  as there are places.
- *Refinement* (the gap paper, arXiv 2308.08057, Algorithms 3 and 4). Tied items get finer cells, of 1/M, 1/M^2, ... of
  a unit, by truncated geometric remainders, until the first places all differ; a permutation then stands for what is
  left of the remainders. How often it refines tells about the scores beyond what epsilon covers (for scores (5, 1, 0)
  and (4, 2, 1), k = 1, twice epsilon), so that nobody may learn it, from a clock for one.

Items strictly below the last place are dropped at once. No order of sorting ever decides between tied items.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpopt.release.randomness import Randomness
from dpopt.release.samplers import sample_geometric, sample_permutation, sample_truncated_geometric
from dpopt.release.scores import Wide
from dpopt.release.uniform import first_shuffled, shuffled

__all__ = ["Leading", "ranked_items", "refined_items"]

_LIMIT = 1 << 62  # sums of two numbers below it are 64-bit integers
_SAMPLE, _MARGIN = 1 << 12, 1 << 7  # of a selection's pivots: four standard deviations of a sample's median
_ROUNDS = 4  # of pivots; a sample that misleads so often is given up


@dataclass(frozen=True)
class Leading:
    """The leading items, from the first on: their cells, and the order of the remainders beyond the cells.

    Parameters
    ----------
    items : array of int
        Positions in the scores.
    cells : array of int
        Decreasing, counted from the last one, in units of 1 / `fineness`.
    ranks : array of int
        All different; where two cells are equal, the item with the higher rank comes first.
    fineness : int
        Cells in a unit of the resolution.
    """

    items: np.ndarray
    cells: np.ndarray
    ranks: np.ndarray
    fineness: int = 1

    def gaps(self) -> tuple[int, ...]:
        """How far each item is ahead of the next, in whole units, rounded down.

        The difference of the cells, less one where the remainder of the upper item is the smaller one (Lemma 11).
        """
        steps = self.cells[:-1] - self.cells[1:] - (self.ranks[:-1] < self.ranks[1:])
        wide = steps.dtype == object or self.fineness > np.iinfo(np.int64).max
        return tuple(((steps.astype(object) if wide else steps) // self.fineness).tolist())


def ranked_items(values: np.ndarray | Wide, places: int, rate: Fraction, source: Randomness) -> Leading:
    """Draw noise for every score and find the leading `places` items, ties ranked by one permutation.

    Parameters
    ----------
    values : array, shape (n,), or Wide
        Scores in units of the resolution, as `read_wide_scores` returns them.
    places : int
        1 to n.
    rate : Fraction
        x of the geometric noise in one unit.
    source : Randomness
    """
    items, cells = _leading_noisy(values, places, rate, source)
    if items.size == places:
        ranks = sample_permutation(places, randomness=source)
    else:
        chosen, ranks = _best_ranked(cells > 0, places, source)
        items, cells = items[chosen], cells[chosen]
    order = _ordered(cells, ranks)
    return Leading(items[order], cells[order], ranks[order])


def _best_ranked(ahead: np.ndarray, places: int, source: Randomness) -> tuple[np.ndarray, np.ndarray]:
    """Who gets a place in one uniformly random ranking of all, and the ranks of those relative to each other.

    Those `ahead` of the last place do, and the best ranked of the others. The `places` highest ranks go to enough of
    the others; an item ahead that has none of them ranks below all these, in an order that is uniformly random again.
    """
    highest = first_shuffled(places, ahead.size, source)  # the highest rank first
    is_ahead = ahead[highest]
    tied = np.flatnonzero(~is_ahead)[places - int(np.count_nonzero(ahead)) :]
    named = np.delete(highest, tied)
    unnamed = ahead.copy()
    unnamed[highest] = False
    rest = np.flatnonzero(unnamed)
    chosen = np.concatenate([named, rest[shuffled(rest.size, source)]])
    return chosen, np.arange(places - 1, -1, -1)


def refined_items(values: np.ndarray | Wide, places: int, rate: Fraction, factor: int, source: Randomness) -> Leading:
    """The same by Algorithm 4's loop: cells finer by `factor` until the leading ones all differ.

    Parameters
    ----------
    values, places, rate, source
        As for `ranked_items`.
    factor : int
        M, at least 2.
    """
    items, cells = _leading_noisy(values, places, rate, source)
    fineness = 1
    while items.size > places or _has_ties(cells):
        fineness *= factor
        fresh = sample_truncated_geometric(rate / fineness, factor, items.size, randomness=source)
        kept, cells = _leading(_sum(_product(cells, factor), fresh), places)
        items = items[kept]
    order = np.argsort(cells)[::-1]  # of distinct cells: there is one order only
    return Leading(items[order], cells[order], sample_permutation(places, randomness=source), fineness)


def _leading_noisy(
    values: np.ndarray | Wide, places: int, rate: Fraction, source: Randomness
) -> tuple[np.ndarray, np.ndarray]:
    """`_leading` of the scores with noise."""
    noise = sample_geometric(rate, values.size, randomness=source)
    if isinstance(values, Wide):
        return _leading_of_wide(values, noise, places)
    cells = values
    if values.dtype == object and max(values) - min(values) < _LIMIT:
        cells = (values - min(values)).astype(np.int64)  # only differences matter
    return _leading(_sum(cells, noise), places)


def _leading_of_wide(values: Wide, noise: np.ndarray, places: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in 64 bits, for scores that are farther apart than the noise of this draw can bridge.

    Let T be the score at the last place without noise and G a distance that no noise here bridges. Scores below T - G
    have fallen behind `places` others for sure. Fewer than `places` scores are above T, and they alone can pass a score
    above T + G, which so has a place for sure, ahead of the one at the last place. Neither changes who leads when it is
    moved to one beyond that distance. Where a leading item was moved, its cell is moved back.
    """
    last = _largest(values.numbers, places)
    low, high = values.window(last, int(noise.max()))
    cells = values.near(low, high)
    items, cells = _leading(_sum(cells, noise), places)
    moved = values.numbers[items] > high
    if np.any(moved):
        cells = cells.astype(object)
        cells[moved] += np.array(values.beyond(items[moved], high), dtype=object)
    return items, cells


def _ordered(cells: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Positions by falling cells and, among equal ones, falling ranks."""
    if cells.dtype == object:
        return np.array(sorted(range(cells.size), key=lambda i: (cells[i], ranks[i]), reverse=True))
    return np.lexsort((ranks, cells))[::-1]


def _leading(cells: np.ndarray, places: int) -> tuple[np.ndarray, np.ndarray]:
    """Where cells are at or above the last place, ties included; and they, counted from it, which keeps them small."""
    threshold = _largest(cells, places)
    kept = np.flatnonzero(cells >= threshold)
    leading = cells[kept]
    if int(leading.max()) - threshold >= _LIMIT:
        return kept, leading.astype(object) - threshold
    return kept, (leading - threshold).astype(np.int64)


def _largest(cells: np.ndarray, place: int) -> Any:
    """The value at this place among the falling cells, by pivots from a sample on both sides of it (Floyd and Rivest).

    What lies at or beyond a pivot is counted and left, ties with it included: `numpy.partition` takes twenty times as
    long where nearly all cells are equal.
    """
    if cells.dtype == object:
        return int(sorted(cells.tolist())[cells.size - place])
    for _ in range(_ROUNDS):
        if cells.size <= 2 * _SAMPLE:
            break
        sample = np.sort(cells[:: cells.size // _SAMPLE])
        centre = sample.size - 1 - sample.size * place // cells.size
        for pivot in sample[[max(centre - _MARGIN, 0), min(centre + _MARGIN, sample.size - 1)]]:
            above = cells[cells > pivot]
            if above.size >= place:
                cells = above
                continue
            below = cells < pivot
            counted = cells.size - int(np.count_nonzero(below))
            if counted >= place:
                return pivot.item()
            cells, place = cells[below], place - counted
    return np.sort(cells)[cells.size - place].item()


def _has_ties(cells: np.ndarray) -> bool:
    ordered = np.sort(cells)
    return bool(np.any(ordered[1:] == ordered[:-1]))


def _sum(cells: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """64-bit, in the memory of the noise, where the largest sum provably is; noise is not negative."""
    if cells.dtype != object and noise.dtype != object and int(cells.max()) + int(noise.max()) < 2 * _LIMIT:
        noise += cells
        return noise
    return cells.astype(object) + noise.astype(object)


def _product(cells: np.ndarray, factor: int) -> np.ndarray:
    if cells.dtype != object and max(int(cells.max()), 1) * factor < _LIMIT:
        return cells * np.int64(factor)
    return cells.astype(object) * factor
