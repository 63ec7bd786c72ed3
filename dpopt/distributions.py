"""Named input distributions, each *defined* as an exact rational pmf.

A Poisson or Gaussian probability is irrational. dpopt replaces it, once and for all, by the nearest integer to
``2**128 * p`` (computed with balls, so the rounding is certain); what is proved later is proved for that pmf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import ClassVar

from flint import arb

from dpopt.arithmetic import Number, ball, exact, exact_integer, round_scaled
from dpopt.errors import InputError
from dpopt.pmf import Pmf

__all__ = [
    "Distribution",
    "Gaussian",
    "Point",
    "Poisson",
    "Table",
    "Uniform",
    "gaussian",
    "point",
    "poisson",
    "table",
    "uniform",
]

BITS = 128  # a probability below 2^-129 has weight 0
_MAX_POINTS = 2_000_000


class Distribution:
    """Base of the named distributions: frozen data with a `type` name and an exact `pmf` on the integers."""

    type: ClassVar[str]

    @cached_property
    def pmf(self) -> Pmf:
        """The exact pmf that this distribution is."""
        return self._build()

    def _build(self) -> Pmf:
        raise TypeError(f"{type(self).__name__} does not say how to build its pmf")


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
        _set(self, "rate", _positive(self.rate, "rate"))
        _bounded(self.rate, "rate")

    def _build(self) -> Pmf:
        rate = self.rate

        def mass(k: int) -> Callable[[], arb]:
            return lambda: (ball(rate).log() * k - ball(rate) - arb(k + 1).lgamma()).exp()

        return _from_masses(mass, mode=int(rate), lowest=0)


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
        _set(self, "mean", exact(self.mean, "mean"))
        _set(self, "sd", _positive(self.sd, "sd"))
        _bounded(self.sd, "sd")

    def _build(self) -> Pmf:
        def upper(x: Fraction) -> arb:  # the survival function, accurate far out on the right
            return (ball(x / self.sd) / arb(2).sqrt()).erfc() / 2

        def mass(k: int) -> Callable[[], arb]:
            near, far = k - self.mean - Fraction(1, 2), k - self.mean + Fraction(1, 2)
            if far <= 0:
                near, far = -far, -near  # by symmetry: no cancellation between two values near 1
            return lambda: upper(near) - upper(far)

        return _from_masses(mass, mode=round(self.mean), lowest=None)


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
        _set(self, "low", exact_integer(self.low, "low"))
        _set(self, "high", exact_integer(self.high, "high"))
        if self.high < self.low:
            raise InputError("high", f"must be at least low = {self.low}, not {self.high}")
        if self.high - self.low >= _MAX_POINTS:
            raise InputError("high", f"makes more than {_MAX_POINTS} points")

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
        _set(self, "at", exact_integer(self.at, "at"))

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
        _set(self, "low", exact_integer(self.low, "low"))
        if isinstance(self.weights, str) or not isinstance(self.weights, Iterable):
            raise InputError("weights", f"must be a list of numbers >= 0, not {self.weights!r}")
        weights = tuple(exact(w, f"weights[{i}]") for i, w in enumerate(self.weights))
        _set(self, "weights", weights)
        for i, weight in enumerate(weights):
            if weight < 0:
                raise InputError(f"weights[{i}]", f"must not be negative, not {weight}")
        if not any(weights):
            raise InputError("weights", "must hold at least one positive weight")

    def _build(self) -> Pmf:
        unit = lcm(*(w.denominator for w in self.weights))
        integers = [int(w * unit) for w in self.weights]
        first = next(i for i, w in enumerate(integers) if w)
        last = len(integers) - next(i for i, w in enumerate(reversed(integers)) if w)
        return Pmf(self.low + first, integers[first:last])


def poisson(rate: Number) -> Poisson:
    """Poisson counts with the given rate. See `Poisson`."""
    return Poisson(rate)  # type: ignore[arg-type]  # the constructor reads any exact number


def gaussian(mean: Number, sd: Number) -> Gaussian:
    """A normal distribution rounded to the integers. See `Gaussian`."""
    return Gaussian(mean, sd)  # type: ignore[arg-type]  # the constructor reads any exact number


def uniform(low: int, high: int) -> Uniform:
    """Equal mass on low..high. See `Uniform`."""
    return Uniform(low, high)


def point(at: int) -> Point:
    """All mass at one integer. See `Point`."""
    return Point(at)


def table(low: int, weights: Iterable[Number]) -> Table:
    """Weights or counts from `low` upward. See `Table`."""
    return Table(low, tuple(weights) if isinstance(weights, Iterable) and not isinstance(weights, str) else weights)  # type: ignore[arg-type]


def _from_masses(mass: Callable[[int], Callable[[], arb]], *, mode: int, lowest: int | None) -> Pmf:
    """Round every mass outward from the mode until it rounds to 0 on each side."""
    right: list[int] = []
    k = mode
    while (weight := round_scaled(mass(k), BITS)) > 0:
        right.append(weight)
        k += 1
    left: list[int] = []
    k = mode - 1
    while (lowest is None or k >= lowest) and (weight := round_scaled(mass(k), BITS)) > 0:
        left.append(weight)
        k -= 1
    return Pmf(mode - len(left), tuple(reversed(left)) + tuple(right))


def _set(part: object, name: str, value: object) -> None:
    object.__setattr__(part, name, value)


def _positive(value: object, argument: str) -> Fraction:
    number = exact(value, argument)
    if number <= 0:
        raise InputError(argument, f"must be positive, not {number}")
    return number


def _bounded(value: Fraction, argument: str) -> None:
    if value > 100_000:
        raise InputError(argument, f"must be at most 100000 (the pmf is stored point by point), not {value}")
