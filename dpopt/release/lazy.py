"""Inversion of a uniform number whose binary digits are read only as far as the outcome needs them.

A law on the outcomes 0, 1, 2, ... is given by its survival function T(k) = P(outcome >= k), and an infinite fair bit
string U in [0, 1) chooses the outcome: the number of k >= 1 with U < T(k). That is exact for every law. What is read:

1. 16 bits. A table says for each of the 65,536 prefixes which outcome all their continuations have, or that a T(k)
   lies among them.
2. 48 more where one does (64 are read, the rest dropped): a search among the floors of T(k) 2^64.
3. Where the 64 bits equal the floor of a T(k) that has more digits, once in about 2^64 / outcomes draws: 64 more bits
   at a time against floors as fine, until no T(k) agrees with all of them.

A floor is exact, whether T(k) is a ratio of integers or an irrational number: a ball is refined until it holds no
integer. No float takes part, and an outcome of weight 0 has no continuation at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from flint import arb

from dpopt.balls import at_precision
from dpopt.release.randomness import Randomness

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CHUNK", "BallSurvival", "Draws", "Floor", "LazyTable", "RationalSurvival", "Survival"]

CHUNK = 1 << 18  # draws made at once: the arrays of one chunk stay in the cache, and memory small

Floor = tuple[int, bool]
"""``floor(T * 2**bits)``, and whether T has more digits than these."""

_PREFIX, _KEY = 16, 64  # bits read at the first and up to the second stage
_MOST_PRECISION = 1 << 22


class Draws(Protocol):
    """What a sampler consists of: `draw` gives an array of independent outcomes, of Python integers when `wide`."""

    @property
    def wide(self) -> bool:
        """Whether the law reaches beyond 62 bits."""
        ...

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` outcomes: int64, or Python integers where the law reaches too far."""
        ...


class Survival(ABC):
    """The decreasing numbers T(1) > T(2) > ... > 0 of a law, all below 1, as floors at any number of bits."""

    @abstractmethod
    def floors(self, bits: int) -> list[Floor]:
        """A floor for each T(k), k = 1, 2, ...; of an endless law up to the first that is 0."""


class RationalSurvival(Survival):
    """T(k) of positive masses in the ratio of integers."""

    def __init__(self, masses: Sequence[int]) -> None:
        suffixes = list(accumulate(reversed(masses)))
        self._total = suffixes.pop()
        self._suffixes = suffixes[::-1]

    def floors(self, bits: int) -> list[Floor]:
        """By integer division."""
        return [self.floor(k, bits) for k in range(1, len(self._suffixes) + 1)]

    def floor(self, k: int, bits: int) -> Floor:
        """The floor of one T(k)."""
        floor, rest = divmod(self._suffixes[k - 1] << bits, self._total)
        return floor, rest != 0


class BallSurvival(Survival):
    """T(k) that are computed as balls, at whatever precision they need.

    Parameters
    ----------
    balls : callable
        The list of T(k), k = 1, 2, ..., at the working precision. The argument is the number of bits after the point
        that matter: an endless law ends its list beyond the first T(k) below ``2**-bits``.
    exact : callable, optional
        The same law in integers, for one of which some T(k) may be a multiple of 2^-bits without its ball showing it:
        no ball would ever decide that.
    """

    def __init__(self, balls: Callable[[int], list[arb]], exact: Callable[[], RationalSurvival] | None = None) -> None:
        self._balls, self._exact = balls, exact

    def floors(self, bits: int) -> list[Floor]:
        """By balls of growing precision."""

        def by_balls() -> list[Floor | None]:
            unit, top = arb(2) ** bits, arb(2) ** bits - 1
            return [_floor(ball * unit, top) for ball in self._balls(bits)]

        precision = bits + 96
        while True:
            found = at_precision(precision, by_balls)
            if self._exact is not None and None in found:
                exact = self._exact()
                found = [exact.floor(k, bits) if pair is None else pair for k, pair in enumerate(found, 1)]
            decided = [pair for pair in found if pair is not None]
            if len(decided) == len(found):
                return decided
            if precision > _MOST_PRECISION:
                raise ArithmeticError("a ball could not be separated from a multiple of its rounding unit")
            precision *= 2


def _floor(scaled: arb, top: arb) -> Floor | None:
    """The floor of a number strictly between 0 and top + 1, or None when its ball does not decide it."""
    if scaled < 1:
        return 0, True
    whole = scaled.contains_integer()
    if scaled > top:
        floor, whole = top.unique_fmpz(), False
    elif whole and not scaled.is_exact():
        return None
    else:
        floor = scaled.floor().unique_fmpz()  # None where it rounds across an integer that the ball just misses
    return None if floor is None else (int(floor), not whole)


class LazyTable:
    """A law ready to be drawn from.

    Parameters
    ----------
    survival : Survival

    Examples
    --------
    >>> from dpopt.release.randomness import InsecureRandomness
    >>> LazyTable(RationalSurvival([1, 2, 1])).draw(8, InsecureRandomness(1)).tolist()
    [0, 1, 1, 1, 1, 0, 1, 0]
    """

    wide = False

    def __init__(self, survival: Survival) -> None:
        self._survival = survival
        self._finer: dict[int, tuple[list[int], list[bool]]] = {}
        floors = survival.floors(_KEY)
        ascending = floors[::-1]  # among equal floors the exact one comes first
        self._thresholds = np.array([floor for floor, _ in ascending], dtype=np.uint64)
        self._inexact = np.array([inexact for _, inexact in ascending], dtype=bool)
        self._cells = self._first_stage()

    def _first_stage(self) -> NDArray[Any]:
        """The outcome of each 16-bit prefix, or -1 where a T(k) lies strictly between it and the next."""
        first = np.arange(1 << _PREFIX, dtype=np.uint64) << np.uint64(_KEY - _PREFIX)
        last = first | np.uint64((1 << (_KEY - _PREFIX)) - 1)
        # A T(k) is at most `first` when its ceiling is. No `first` ends in ones: 2^64 - 1 may stand for 2^64.
        full = self._thresholds == np.uint64((1 << _KEY) - 1)
        ceilings = self._thresholds + (self._inexact & ~full).astype(np.uint64)
        at_most_first = np.searchsorted(ceilings, first, side="right")
        below_end = np.searchsorted(self._thresholds, last, side="right")
        outcomes = np.where(at_most_first == below_end, len(self._thresholds) - below_end, -1)
        return outcomes.astype(np.int16 if len(self._thresholds) < 1 << 15 else np.int32)

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` independent outcomes; signed integers of 16 or 32 bits. A law of one outcome reads no bits."""
        if not self._thresholds.size:
            return np.zeros(count, dtype=np.int16)
        prefixes = randomness.halves(count)
        outcomes = self._cells.take(prefixes)
        undecided = np.flatnonzero(outcomes < 0)
        if undecided.size:
            outcomes[undecided] = self._second_stage(prefixes[undecided], randomness)
        return outcomes

    def _second_stage(self, prefixes: NDArray[np.uint16], randomness: Randomness) -> NDArray[np.int64]:
        keys = prefixes.astype(np.uint64) << np.uint64(_KEY - _PREFIX)
        keys |= randomness.words(len(prefixes)) >> np.uint64(_PREFIX)
        at_most = np.searchsorted(self._thresholds, keys, side="right")
        outcomes = (len(self._thresholds) - at_most).astype(np.int64)
        last = at_most - 1  # -1 where all thresholds are larger: the largest of them is then not equal either
        for place in np.flatnonzero((self._thresholds[last] == keys) & self._inexact[last]).tolist():
            outcomes[place] = self._third_stage(int(keys[place]), randomness)
        return outcomes

    def _third_stage(self, read: int, randomness: Randomness) -> int:
        bits = _KEY
        while True:
            bits += 64
            read = read << 64 | randomness.integer(64)
            if bits not in self._finer:
                floors = self._survival.floors(bits)
                self._finer[bits] = [-floor for floor, _ in floors], [inexact for _, inexact in floors]
            negated, inexact = self._finer[bits]
            larger, not_smaller = bisect_left(negated, -read), bisect_right(negated, -read)
            if not any(inexact[larger:not_smaller]):
                return larger
