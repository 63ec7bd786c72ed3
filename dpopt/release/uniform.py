"""Uniform integers below a bound, and permutations: by rejection from whole words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt.release.digits import draw_again
from dpopt.release.randomness import Randomness

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UniformDraws", "first_shuffled", "shuffled"]

_SPARE = 4  # a word has at least this many bits more than the bound where one is long enough: 1 in 16 is drawn again


@dataclass(frozen=True)
class UniformDraws:
    """Draws of 0 <= j < below: int64 up to a bound of 2^63, Python integers beyond.

    A word is kept when it lies below the largest multiple of the bound, and then reduced. Bounds that leave no room in
    64 bits take as many bits as they have, and draw again.
    """

    below: int

    @property
    def wide(self) -> bool:
        """Whether draws are Python integers."""
        return self.below > 1 << 63

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` independent draws; the bound 1 reads no bits."""
        needed = (self.below - 1).bit_length()
        if needed == 0:
            return np.zeros(count, dtype=np.int64)
        if needed <= 16 - _SPARE:
            return self._reduced(16, lambda n, source: source.halves(n), count, randomness)
        if needed <= 32 - _SPARE:
            return self._reduced(32, lambda n, source: source.halves(2 * n).view(np.uint32), count, randomness)
        if needed <= 64 - _SPARE:
            return self._reduced(64, lambda n, source: source.words(n), count, randomness)
        return draw_again(
            lambda n, source: _integers(needed, n, source), lambda found: found < self.below, count, randomness
        )

    def _reduced(self, width: int, read: Any, count: int, randomness: Randomness) -> NDArray[np.int64]:
        last = (1 << width) // self.below * self.below - 1
        words = draw_again(read, lambda found: found <= last, count, randomness)
        return (words % self.below).astype(np.int64)


def _integers(bits: int, count: int, randomness: Randomness) -> NDArray[Any]:
    """`count` uniform integers of `bits` bits, more than 60 of them."""
    if bits <= 63:
        return (randomness.words(count) >> np.uint64(64 - bits)).astype(np.int64)
    found = np.zeros(count, dtype=object)
    for start in range(0, bits, 64):
        taken = min(64, bits - start)
        found += (randomness.words(count) >> np.uint64(64 - taken)).astype(object) << start
    return found


def shuffled(count: int, randomness: Randomness) -> NDArray[np.int64]:
    """A uniformly random order of 0..count - 1: the exchanges of Fisher and Yates, their places drawn all at once.

    The place for i is uniform on 0..i, i from count - 1 down to 1. A word is kept when it lies below the largest
    multiple of i + 1 up to 2^64.
    """
    bounds = np.arange(count, 1, -1, dtype=np.uint64)
    words = randomness.words(len(bounds)).copy()
    excess = (np.uint64(0) - bounds) % bounds  # 2^64 modulo the bound
    refused = np.flatnonzero(words > ~excess)
    while refused.size:
        words[refused] = randomness.words(refused.size)
        refused = refused[words[refused] > ~excess[refused]]
    order = list(range(count))
    for i, j in zip(range(count - 1, 0, -1), (words % bounds).tolist(), strict=True):
        order[i], order[j] = order[j], order[i]
    return np.array(order, dtype=np.int64)


def first_shuffled(count: int, total: int, randomness: Randomness) -> NDArray[np.int64]:
    """The first `count` of a uniformly random order of 0..total - 1, at the cost of `count` draws.

    Uniform draws, of which repeats are dropped: each new number is uniform on those that are left.
    """
    if 2 * count > total:
        return shuffled(total, randomness)[:count]
    found, draws = np.zeros(0, dtype=np.int64), UniformDraws(total)
    while found.size < count:
        found = np.concatenate([found, draws.draw(count - found.size, randomness)])
        _, places = np.unique(found, return_index=True)
        found = found[np.sort(places)]
    return found
