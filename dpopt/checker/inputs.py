"""The input of a Wasserstein objective: a named distribution, as integer weights on the lattice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING

from dpopt.checker.effort import afford
from dpopt.checker.lattice import Lattice
from dpopt.checker.reading import (
    MAX_POINTS,
    brief,
    read_index,
    read_object,
    read_rational,
    read_rationals,
    read_type,
    reject,
)
from dpopt.errors import InputError
from dpopt.work import Work

if TYPE_CHECKING:
    from dpopt.distributions import Distribution

__all__ = ["Input", "read_input"]


@dataclass(frozen=True)
class Input:
    """A law x with finitely many points: weights from index `start`, the first and the last positive."""

    start: int
    weights: Sequence[int]

    @property
    def width(self) -> int:
        """The number of cuts between its first and its last point; cut i lies right of index ``start + i``."""
        return len(self.weights) - 1

    @cached_property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(self.weights)

    @property
    def below(self) -> list[int]:
        """At every point of the range, the weight up to it: the distribution function times the total."""
        return list(accumulate(self.weights))

    @property
    def mean(self) -> Fraction:
        """The mean, from the first point on."""
        return Fraction(sum(i * w for i, w in enumerate(self.weights)), self.total)


def read_input(data: object, where: str, lattice: Lattice) -> Input:
    """The input's weights on the lattice."""
    if lattice.step.numerator != 1:
        reject(where, f"needs the integers, which the lattice of step {brief(lattice.step)} does not contain")
    fine = lattice.step.denominator  # lattice points from one integer to the next
    build = _distribution(data, where)
    try:
        pmf = build().pmf
    except InputError as error:
        raise error.inside(where) from None
    if len(pmf.weights) * fine > MAX_POINTS:
        reject(where, f"makes more than {MAX_POINTS} lattice points")
    try:
        points = len(pmf.weights) * fine
        afford(Work.on_integers(4 * points, max(pmf.weights).bit_length()), f"makes {points} lattice points")
    except InputError as error:
        raise error.inside(where) from None
    weights = [0] * ((len(pmf.weights) - 1) * fine + 1)
    weights[::fine] = pmf.weights
    first = next(i for i, w in enumerate(weights) if w)
    last = max(i for i, w in enumerate(weights) if w)
    return Input(pmf.start * fine + first, weights[first : last + 1])


def _distribution(data: object, where: str) -> Callable[[], Distribution]:
    """The input of a Wasserstein objective, still to be made of what was read."""
    from dpopt.distributions import Gaussian, Point, Poisson, Table, Uniform  # for these certificates alone

    kind = read_type(data, where)
    if kind == "poisson":
        data = read_object(data, where, ("type", "rate"))
        return partial(Poisson, read_rational(data["rate"], f"{where}.rate"))
    if kind == "gaussian":
        data = read_object(data, where, ("type", "mean", "sd"))
        return partial(Gaussian, read_rational(data["mean"], f"{where}.mean"), read_rational(data["sd"], f"{where}.sd"))
    if kind == "uniform":
        data = read_object(data, where, ("type", "low", "high"))
        return partial(Uniform, read_index(data["low"], f"{where}.low"), read_index(data["high"], f"{where}.high"))
    if kind == "point":
        data = read_object(data, where, ("type", "at"))
        return partial(Point, read_index(data["at"], f"{where}.at"))
    if kind != "table":
        reject(f"{where}.type", f"must be poisson, gaussian, uniform, point or table, not {brief(kind)}")
    data = read_object(data, where, ("type", "low", "weights"))
    weights = read_rationals(data["weights"], f"{where}.weights", MAX_POINTS)
    return partial(Table, read_index(data["low"], f"{where}.low"), weights)
