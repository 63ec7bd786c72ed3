"""Distributions of inputs on the integers, with finitely many points.

A Poisson or Gaussian probability is irrational. dpopt replaces it, once and for all, by the nearest integer to
``2**128 * p`` (computed with balls, so the rounding is certain); what is proved later is proved for that pmf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count, takewhile
from typing import ClassVar

from flint import arb, fmpz

from dpopt.arithmetic import ball, exact, exact_integer, exact_positive, round_scaled
from dpopt.balls import at_precision
from dpopt.distributions.base import BITS, MAX_POINTS, Distribution, bounded, set_field
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.reading import read_numbers
from dpopt.work import Work, require

_ERROR_FUNCTION = 300_000  # bit operations

__all__ = ["Gaussian", "Point", "Poisson", "Table", "Uniform", "gaussian_points", "gaussian_work"]


@dataclass(frozen=True)
class Poisson(Distribution):
    """P(k) = e^-rate rate^k / k!, rounded to multiples of 2^-128.

    Examples
    --------
    >>> round(float(Poisson(10).pmf.mean), 12)
    10.0
    """

    rate: Fraction
    type: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        if exact(self.rate, "rate") == 0:
            raise InputError("rate", "must be positive, not 0: counts that are always 0 are dpopt.point(0)")
        set_field(self, "rate", exact_positive(self.rate, "rate"))
        bounded(self.rate, "rate")

    def _build(self) -> Pmf:
        rate = self.rate

        def mass(k: int) -> Callable[[], arb]:
            return lambda: (ball(rate).log() * k - ball(rate) - arb(k + 1).lgamma()).exp()

        mode = int(rate)
        right = _until_none(mass(k) for k in count(mode))
        left = _until_none(mass(k) for k in range(mode - 1, -1, -1))
        return Pmf(mode - len(left), (*reversed(left), *right))


@dataclass(frozen=True)
class Gaussian(Distribution):
    """The normal distribution rounded to the nearest integer: Phi((k+1/2-mean)/sd) - Phi((k-1/2-mean)/sd).

    Examples
    --------
    >>> Gaussian(mean=0, sd=5).pmf.is_symmetric
    True
    """

    mean: Fraction
    sd: Fraction
    type: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        set_field(self, "mean", exact(self.mean, "mean"))
        set_field(self, "sd", exact_positive(self.sd, "sd"))
        bounded(self.sd, "sd")

    def _build(self) -> Pmf:
        require(
            "sd", gaussian_work(self.sd), f"makes about {gaussian_points(self.sd)} points", "take a coarser lattice"
        )
        half = Fraction(1, 2)
        right, left = math.ceil(self.mean + half), math.floor(self.mean - half)  # the first cells beside the mean
        above = self._arm(right - half - self.mean)
        below = above if self.mean - half - left == right - half - self.mean else self._arm(self.mean - half - left)
        middle = []
        if right - left == 2:  # the mean lies inside a cell
            edges = left + half - self.mean, right - half - self.mean
            middle = [round_scaled(lambda: self._upper(edges[0]) - self._upper(edges[1]), BITS)]
        return Pmf(left + 1 - len(below), (*reversed(below), *middle, *above))

    def _upper(self, x: Fraction) -> arb:
        """The survival function at a distance x from the mean, accurate far out."""
        return (ball(x / self.sd) / arb(2).sqrt()).erfc() / 2

    def _arm(self, edge: Fraction) -> list[int]:
        """The masses of the cells from an edge outward, until one rounds to 0."""
        return at_precision(BITS + 64, lambda: list(takewhile(bool, self._cells(edge))))

    def _cells(self, edge: Fraction) -> Iterator[int]:
        """The masses of all cells from an edge outward; neighbours share an edge's ball."""
        root = 1 / (ball(self.sd * edge.denominator) * arb(2).sqrt())  # one division for all edges
        near, numerator = self._upper(edge), edge.numerator
        while True:
            edge += 1
            numerator += edge.denominator
            far = (fmpz(numerator) * root).erfc() / 2
            found = ((near - far) * arb(2) ** BITS + arb("0.5")).floor().unique_fmpz()
            # None: the ball lies across a tie of the rounding
            yield round_scaled(partial(self._cell, edge), BITS) if found is None else int(found)
            near = far

    def _cell(self, edge: Fraction) -> arb:
        return self._upper(edge - 1) - self._upper(edge)


def gaussian_points(sd: Fraction) -> int:
    """About how many integers have a mass of at least 2^-129: the density falls below it 13.2 sds from the mean."""
    return math.ceil(Fraction(264, 10) * sd) + 1


def gaussian_work(sd: Fraction) -> Work:
    """What a rounded normal takes: an error function of 192 bits for each point of one side, or of both."""
    points = gaussian_points(sd)
    return Work(points * _ERROR_FUNCTION, points * 80)


@dataclass(frozen=True)
class Uniform(Distribution):
    """Equal mass on the integers low..high.

    Examples
    --------
    >>> Uniform(0, 3).pmf
    Pmf(start=0, weights=(1, 1, 1, 1))
    """

    low: int
    high: int
    type: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        set_field(self, "low", exact_integer(self.low, "low"))
        set_field(self, "high", exact_integer(self.high, "high"))
        if self.high < self.low:
            raise InputError("high", f"must be at least low = {self.low}, not {self.high}")
        if self.high - self.low >= MAX_POINTS:
            raise InputError("high", f"makes more than {MAX_POINTS} points")

    def _build(self) -> Pmf:
        return Pmf(self.low, (1,) * (self.high - self.low + 1))


@dataclass(frozen=True)
class Point(Distribution):
    """All mass at one integer.

    Examples
    --------
    >>> Point(3).pmf
    Pmf(start=3, weights=(1,))
    """

    at: int
    type: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        set_field(self, "at", exact_integer(self.at, "at"))

    def _build(self) -> Pmf:
        return Pmf(self.at, (1,))


@dataclass(frozen=True)
class Table(Distribution):
    """Weights, or data counts, at low, low + 1, ...; rational weights are brought to integers.

    Examples
    --------
    >>> Table(0, ("1/2", "1/3", "1/6")).pmf
    Pmf(start=0, weights=(3, 2, 1))
    """

    low: int
    weights: tuple[Fraction, ...]
    type: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        set_field(self, "low", exact_integer(self.low, "low"))
        weights = read_numbers(self.weights, "weights")
        set_field(self, "weights", weights)
        for i, weight in enumerate(weights):
            if weight < 0:
                raise InputError(f"weights[{i}]", f"must not be negative, not {weight}")
        if not any(weights):
            raise InputError("weights", "must hold at least one positive weight")

    def _build(self) -> Pmf:
        unit = math.lcm(*(w.denominator for w in self.weights))
        integers = [int(w * unit) for w in self.weights]
        first = next(i for i, w in enumerate(integers) if w)
        last = len(integers) - next(i for i, w in enumerate(reversed(integers)) if w)
        return Pmf(self.low + first, integers[first:last])


def _until_none(masses: Iterable[Callable[[], arb]]) -> list[int]:
    """Masses rounded to multiples of 2^-128, as far as they do not round to 0."""
    return list(takewhile(bool, (round_scaled(mass, BITS) for mass in masses)))
