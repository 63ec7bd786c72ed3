"""Named distributions, each *defined* as an exact rational pmf: laws of inputs, and noise on a lattice.

`inputs` has finite laws on the integers, `lattice_noise` and `staircases` noise, mostly with geometric tails, `base`
what they share. The functions here are how they are made.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpopt.arithmetic import Number, exact
from dpopt.distributions.base import Discretisation, Distribution
from dpopt.distributions.inputs import Gaussian, Point, Poisson, Table, Uniform
from dpopt.distributions.lattice_noise import (
    Exponential,
    Geometric,
    Laplace,
    LatticeGaussian,
    LatticeUniform,
    TruncatedGeometric,
)
from dpopt.distributions.staircases import EqualStaircase, OptimalStaircase, StaircaseForm

__all__ = [
    "Discretisation",
    "Distribution",
    "EqualStaircase",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Laplace",
    "LatticeGaussian",
    "LatticeUniform",
    "OptimalStaircase",
    "Point",
    "Poisson",
    "StaircaseForm",
    "Table",
    "TruncatedGeometric",
    "Uniform",
    "exponential",
    "gaussian",
    "geometric",
    "laplace",
    "optimal_staircase",
    "point",
    "poisson",
    "staircase",
    "table",
    "truncated_geometric",
    "uniform",
]


def poisson(rate: Number) -> Poisson:
    """Poisson counts with the given rate. See `Poisson`."""
    return Poisson(rate)  # type: ignore[arg-type]  # the constructor reads any exact number


def gaussian(
    mean: Number, sd: Number, *, step: Number = 1, discretisation: Discretisation | str = Discretisation.ROUND
) -> Gaussian | LatticeGaussian:
    """A normal distribution rounded to the integers, or on a lattice of another step. See `LatticeGaussian`.

    On the integers and rounded it is a `Gaussian`, which problems take as their input.
    """
    if exact(step, "step") == 1 and discretisation == Discretisation.ROUND:
        return Gaussian(mean, sd)  # type: ignore[arg-type]  # the constructor reads any exact number
    return LatticeGaussian(mean, sd, step, discretisation)  # type: ignore[arg-type]


def uniform(low: Number, high: Number, *, step: Number = 1) -> Uniform | LatticeUniform:
    """Equal mass on low..high, on the integers or on a lattice of another step. See `LatticeUniform`."""
    if exact(step, "step") == 1:
        return Uniform(low, high)  # type: ignore[arg-type]
    return LatticeUniform(low, high, step)  # type: ignore[arg-type]


def point(at: int) -> Point:
    """All mass at one integer. See `Point`."""
    return Point(at)


def table(low: int, weights: Iterable[Number]) -> Table:
    """Weights or counts from `low` upward. See `Table`."""
    return Table(low, weights)  # type: ignore[arg-type]  # the constructor reads any list of numbers


def laplace(
    scale: Number,
    mean: Number = 0,
    *,
    step: Number = 1,
    discretisation: Discretisation | str = Discretisation.ROUND,
) -> Laplace:
    """A Laplace density on a lattice, with exact geometric tails. See `Laplace`."""
    return Laplace(scale, mean, step, discretisation)  # type: ignore[arg-type]


def geometric(rate: Number, *, step: Number = 1) -> Geometric:
    """Two-sided geometric noise, p(z) proportional to e^(-rate |z|). See `Geometric`."""
    return Geometric(rate, step)  # type: ignore[arg-type]


def truncated_geometric(rate: Number, half_width: Number, *, step: Number = 1) -> TruncatedGeometric:
    """Two-sided geometric noise cut at +-half_width (truncated discrete Laplace). See `TruncatedGeometric`."""
    return TruncatedGeometric(rate, half_width, step)  # type: ignore[arg-type]


def exponential(rate: Number, *, step: Number = 1) -> Exponential:
    """One-sided geometric noise, p(z) proportional to e^(-rate z) for z >= 0. See `Exponential`."""
    return Exponential(rate, step)  # type: ignore[arg-type]


def staircase(
    width: int, height: Number, *, step: Number = 1, form: StaircaseForm | str = StaircaseForm.CENTRED
) -> EqualStaircase:
    """Stairs of equal width and falling by the factor `height`. See `EqualStaircase`."""
    return EqualStaircase(width, height, step, form)  # type: ignore[arg-type]


def optimal_staircase(epsilon: Number, sensitivity: Number, r: int, *, step: Number = 1) -> OptimalStaircase:
    """The staircase of Geng and Viswanath with r lattice points in the inner part. See `OptimalStaircase`."""
    return OptimalStaircase(epsilon, sensitivity, r, step)  # type: ignore[arg-type]
