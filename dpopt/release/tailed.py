"""Draws from integer weights on a lattice with geometric tails, rational or e^-x.

One table chooses a point of the core, or a side; a side is a number of whole periods, which is geometric, and a place
in the period, which is independent of it. Where tails fall quickly the table reaches into them, so that a side is
chosen less than once in 2^16 draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, fmpz

from dpopt.release.digits import Ratio, RationalRatio, geometric_draws
from dpopt.release.lazy import BallSurvival, LazyTable, RationalSurvival, Survival
from dpopt.release.randomness import Randomness

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Tail", "TailedDraws", "TailedLaw"]

_MOST_POINTS = 1 << 11  # that a table reaches into both tails together
_REACH = 12  # e^-12 < 2^-16
_NARROW = 62  # bits


@dataclass(frozen=True)
class Tail:
    """One side: beyond the core, ``block[i]`` times ratio, ratio^2, ... on period after period outward.

    Parameters
    ----------
    block : tuple of int
        The weights of the core's outermost period, in the order met when walking away from the core.
    ratio : Ratio
    """

    block: tuple[int, ...]
    ratio: Ratio


@dataclass(frozen=True)
class TailedLaw:
    """Weights at start, start + 1, ..., and a tail or none on each side."""

    start: int
    weights: tuple[int, ...]
    left: Tail | None = None
    right: Tail | None = None


class TailedDraws:
    """Draws of lattice indices of a `TailedLaw`: int64, or Python integers where points or tails reach too far."""

    def __init__(self, law: TailedLaw) -> None:
        self._sides = _sides(law)
        core = [(law.start + i, w) for i, w in enumerate(law.weights) if w]
        points = [index for index, _ in core]
        for side in self._sides:
            points += [side.point(periods, i) for periods in range(side.written) for i in side.places]
        self._first_side = len(points)
        points += [side.point(side.written, 0) for side in self._sides]
        self._table = LazyTable(_survival([w for _, w in core], self._sides))
        self.bits = max([*(abs(point).bit_length() for point in points), *(side.bits for side in self._sides)])
        self.wide = self.bits > _NARROW
        self._points = np.array(points, dtype=object if self.wide else np.int64)

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` independent lattice indices."""
        outcomes = self._table.draw(count, randomness)
        points = self._points.take(outcomes)
        for number, side in enumerate(self._sides, self._first_side):
            leaving = np.flatnonzero(outcomes == number)
            if leaving.size:
                distance = side.outward * side.draw(leaving.size, randomness)
                if distance.dtype == object:
                    points = points.astype(object)
                points[leaving] += distance
        return points


class _Side:
    """A tail from the point `first` on, `outward` = 1 or -1, whose first `written` periods are in the table."""

    def __init__(self, tail: Tail, first: int, outward: int, written: int) -> None:
        self.tail, self.written, self.outward = tail, written, outward
        self.places = [i for i, w in enumerate(tail.block) if w]
        self._first, self._period = first, len(tail.block)
        self._place_of = np.array(self.places, dtype=np.int64)
        self._place = LazyTable(RationalSurvival([tail.block[i] for i in self.places]))
        self._periods = geometric_draws(tail.ratio)
        self._weight = sum(tail.block)
        self.bits = self._periods.bits + self._period.bit_length()

    def point(self, periods: int, place: int) -> int:
        """The lattice index of a place in a period of the tail."""
        return self._first + self.outward * (periods * self._period + place)

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` distances from the first point, by the tail's own law."""
        periods = self._periods.draw(count, randomness)
        if self.bits > _NARROW or int(periods.max()).bit_length() + self._period.bit_length() > _NARROW:
            periods = periods.astype(object)
        return periods * self._period + self._place_of.take(self._place.draw(count, randomness))

    def masses(self) -> tuple[list[arb], arb]:
        """The masses of the written points and of all that follow, as balls."""
        ratio = self.tail.ratio
        written = [ratio.power(n) for n in range(1, self.written + 1)]
        return self._spread(written), ratio.power(self.written + 1) / ratio.complement(1) * self._weight

    def integer_masses(self) -> tuple[list[int], int, int]:
        """The same of a rational ratio a/c times c^(written + 1) (c - a), which is the last of the three."""
        assert isinstance(self.tail.ratio, RationalRatio)
        a, c = self.tail.ratio.value.numerator, self.tail.ratio.value.denominator
        written = [a**n * c ** (self.written + 1 - n) * (c - a) for n in range(1, self.written + 1)]
        rest = a ** (self.written + 1) * c * self._weight
        return self._spread(written), rest, c ** (self.written + 1) * (c - a)

    def _spread(self, factors: list[Any]) -> list[Any]:
        return [factor * self.tail.block[i] for factor in factors for i in self.places]


def _sides(law: TailedLaw) -> list[_Side]:
    """The tails that have mass; both are written out, or neither, so far that less than 2^-16 of a tail is left."""
    found = [(law.right, law.start + len(law.weights), 1), (law.left, law.start - 1, -1)]
    tails = [(tail, first, outward) for tail, first, outward in found if tail is not None and any(tail.block)]
    written = [int(_REACH / tail.ratio.rate) + 1 for tail, _, _ in tails]
    if sum(n * len(tail.block) for n, (tail, _, _) in zip(written, tails, strict=True)) > _MOST_POINTS:
        written = [0] * len(tails)
    return [_Side(*tail, n) for tail, n in zip(tails, written, strict=True)]


def _survival(core: list[int], sides: list[_Side]) -> Survival:
    """Outcomes in the order: core, written points of each side, sides."""
    if not sides:
        return RationalSurvival(core)

    def balls(_: int) -> list[arb]:
        found = [side.masses() for side in sides]
        masses = [arb(fmpz(w)) for w in core] + [mass for written, _ in found for mass in written]
        suffixes = list(accumulate(reversed(masses + [rest for _, rest in found])))
        return [suffix / suffixes[-1] for suffix in suffixes[-2::-1]]

    def integers() -> RationalSurvival:
        found = [side.integer_masses() for side in sides]
        whole = prod(unit for _, _, unit in found)
        masses = [w * whole for w in core]
        masses += [mass * (whole // unit) for written, _, unit in found for mass in written]
        return RationalSurvival(masses + [rest * (whole // unit) for _, rest, unit in found])

    rational = all(isinstance(side.tail.ratio, RationalRatio) for side in sides)
    return BallSurvival(balls, integers if rational else None)
