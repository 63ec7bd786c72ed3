"""Noise on a lattice of any step: Gaussian, Laplace, geometric (also truncated, or one-sided) and uniform.

Each *is* a rational pmf, as in `dpopt.distributions.inputs`. Geometric tails are exact; they are rounded to the private
side (`falling_block`), so that no two neighbouring points have a larger ratio than e^(step/scale), and the noise is
epsilon-DP at every sensitivity with the epsilon of its closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from flint import arb

from dpopt.arithmetic import ball, exact, exact_positive, round_scaled
from dpopt.distributions.base import (
    MAX_FALL,
    MAX_POINTS,
    Discretisation,
    Distribution,
    bounded,
    decay,
    falling_block,
    read_discretisation,
    read_rate,
    set_field,
    weight_bits,
)
from dpopt.distributions.inputs import Gaussian, Uniform
from dpopt.errors import InputError
from dpopt.pmf import Pmf, Tails

__all__ = ["Exponential", "Geometric", "Laplace", "LatticeGaussian", "LatticeUniform", "TruncatedGeometric"]


@dataclass(frozen=True)
class LatticeGaussian(Distribution):
    """The normal distribution on a lattice (noise paper, (2)): `Gaussian` with a step, by rounding or by floor.

    Rounding: Phi((z + step/2 - mean)/sd) - Phi((z - step/2 - mean)/sd) at each lattice point z. Masses are rounded to
    multiples of 2^-128, so that the support is finite.

    Examples
    --------
    >>> noise = LatticeGaussian(mean=0, sd=3, step="1/2", discretisation="floor").pmf
    >>> noise.step, round(float(noise.mean), 12)
    (Fraction(1, 2), -0.25)
    """

    mean: Fraction
    sd: Fraction
    step: Fraction = Fraction(1)
    discretisation: Discretisation = Discretisation.ROUND
    type: ClassVar[str] = "lattice-gaussian"

    def __post_init__(self) -> None:
        set_field(self, "mean", exact(self.mean, "mean"))
        set_field(self, "sd", exact_positive(self.sd, "sd"))
        set_field(self, "step", exact_positive(self.step, "step"))
        set_field(self, "discretisation", read_discretisation(self.discretisation))
        bounded(self.sd / self.step, "sd / step")

    def _build(self) -> Pmf:
        centre = _rounded_centre(self.mean / self.step, self.discretisation)
        steps = Gaussian(centre, self.sd / self.step).pmf
        return Pmf(steps.start, steps.weights, self.step)


@dataclass(frozen=True)
class Laplace(Distribution):
    """The Laplace density e^(-|z - mean|/scale) / (2 scale) on a lattice, by rounding or by floor (noise paper, (16)).

    Rounded about a lattice point: p(mean) = 1 - e^(-step/2 scale), else sinh(step/2 scale) e^(-|z - mean|/scale). It is
    epsilon-DP with epsilon = m/scale at each sensitivity m, which is tight where m is a multiple of the step. This is
    not `Geometric`, which has more mass at 0.

    Examples
    --------
    >>> noise = Laplace(scale="7.5").pmf
    >>> [round(float(noise.probability(k)), 12) for k in (0, 1)], round(float(noise.absolute_moment(1)), 12)
    ([0.064493014968, 0.058388115977], 7.494447323754)
    """

    scale: Fraction
    mean: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    discretisation: Discretisation = Discretisation.ROUND
    type: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        set_field(self, "scale", exact_positive(self.scale, "scale"))
        set_field(self, "mean", exact(self.mean, "mean"))
        set_field(self, "step", exact_positive(self.step, "step"))
        set_field(self, "discretisation", read_discretisation(self.discretisation))
        read_rate(self.step / self.scale, "scale", "between step/2700 and 1e150 step", self.scale)

    def _build(self) -> Pmf:
        rate = self.step / self.scale
        bits, edge = weight_bits(rate), Fraction(1, 2)
        centre = _rounded_centre(self.mean / self.step, self.discretisation)
        middle = math.floor(centre + edge)
        left = centre + edge - middle  # from the lower edge of the middle cell to the centre
        if left == 0:  # an edge at the centre: two equal halves
            block, ratio = falling_block(1 << bits, rate)
            return Pmf(middle - len(block), (*reversed(block), *block), self.step, Tails(len(block), ratio, ratio))

        def beyond(gap: Fraction) -> arb:  # the mass beyond an edge at this distance from the centre
            return (-ball(rate * gap)).exp() / 2

        def next_to(gap: Fraction) -> int:  # the mass of the cell beyond that edge
            return round_scaled(lambda: beyond(gap) * (1 - (-ball(rate)).exp()), bits)

        below, above = next_to(left), next_to(1 - left)
        inside = round_scaled(lambda: 1 - beyond(left) - beyond(1 - left), bits)
        # a centre close to an edge leaves no slack for rounding: the ratio to either neighbour stays at most 1/decay
        inside = min(inside, math.floor(min(below, above) / decay(rate)))
        down, left_ratio = falling_block(below, rate)
        up, right_ratio = falling_block(above, rate)
        tails = Tails(len(up), left_ratio, right_ratio)
        return Pmf(middle - len(down), (*reversed(down), inside, *up), self.step, tails)


@dataclass(frozen=True)
class _OfRate(Distribution):
    """What falls by e^-(rate step) from one lattice point to the next."""

    rate: Fraction
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        set_field(self, "rate", exact_positive(self.rate, "rate"))
        set_field(self, "step", exact_positive(self.step, "step"))
        read_rate(self.rate * self.step, "rate", "between 1e-150/step and 2700/step", self.rate)

    @cached_property
    def _period(self) -> tuple[list[int], Fraction]:
        """The masses from 0 on for one period, and the ratio of the next."""
        rate = self.rate * self.step
        return falling_block(1 << weight_bits(rate), rate)


@dataclass(frozen=True)
class Geometric(_OfRate):
    """Two-sided geometric noise, p(z) proportional to e^(-rate |z|): epsilon = m rate at each sensitivity m.

    With rate = epsilon / m the best noise of the equal-width family, and at m = 1 the best of all. It is the discrete
    Laplace distribution of scale 1/rate.

    Examples
    --------
    >>> round(float(Geometric(rate=1).pmf.probability(0)), 12)  # (1 - 1/e) / (1 + 1/e)
    0.46211715726
    """

    type: ClassVar[str] = "geometric"

    def _build(self) -> Pmf:
        block, ratio = self._period
        return Pmf(1 - len(block), (*reversed(block[1:]), *block), self.step, Tails(len(block), ratio, ratio))


@dataclass(frozen=True)
class Exponential(_OfRate):
    """One-sided geometric noise, p(z) proportional to e^(-rate z) for z >= 0 (noise paper, (23)).

    The paper calls it epsilon-DP with epsilon = m rate. It is not: p(z) = 0 for z < 0. At every epsilon >= 0 its tight
    delta is 1 - e^(-m rate).

    Examples
    --------
    >>> round(float(Exponential(rate="0.1").pmf.probability(0)), 12)
    0.095162581964
    """

    type: ClassVar[str] = "exponential"

    def _build(self) -> Pmf:
        block, ratio = self._period
        return Pmf(0, block, self.step, Tails(len(block), right=ratio))


@dataclass(frozen=True)
class TruncatedGeometric(Distribution):
    """The truncated discrete Laplace law: p(z) proportional to e^(-rate |z|) for |z| <= half_width.

    At epsilon = m rate its tight delta is the mass of the m outermost points of a side. Of all noise on [-D, D] it has
    the least delta at sensitivity 1.

    Examples
    --------
    >>> noise = TruncatedGeometric(rate="1.5", half_width=7).pmf
    >>> [round(float(noise.probability(k)), 5) for k in range(4)]
    [0.63516, 0.14172, 0.03162, 0.00706]
    """

    rate: Fraction
    half_width: Fraction
    step: Fraction = Fraction(1)
    type: ClassVar[str] = "truncated-geometric"

    def __post_init__(self) -> None:
        set_field(self, "rate", exact_positive(self.rate, "rate"))
        set_field(self, "step", exact_positive(self.step, "step"))
        width = exact(self.half_width, "half_width")
        if width < 0 or (width / self.step).denominator != 1:
            raise InputError("half_width", f"must be a multiple of the step {self.step} and at least 0, not {width}")
        set_field(self, "half_width", width)
        if 2 * width / self.step >= MAX_POINTS:
            raise InputError("half_width", f"makes more than {MAX_POINTS} points")
        read_rate(self.rate * self.step, "rate", "between 1e-150/step and 2700/step", self.rate)
        if self.rate * width > MAX_FALL:
            raise InputError(
                "half_width", f"must be at most {MAX_FALL}/rate: e^-{MAX_FALL} is the least mass held exactly"
            )

    def _build(self) -> Pmf:
        rate, steps = self.rate * self.step, int(self.half_width / self.step)
        bits = weight_bits(rate) + math.ceil(self.rate * self.half_width * Fraction(3, 2))  # 3/2 > 1 / ln 2
        factor, weights = decay(rate), [1 << bits]
        for _ in range(steps):
            weights.append(-(-weights[-1] * factor.numerator // factor.denominator))
        return Pmf(-steps, (*reversed(weights[1:]), *weights), self.step)


@dataclass(frozen=True)
class LatticeUniform(Distribution):
    """Equal mass on the lattice points low, low + step, ..., high, all in data units.

    Examples
    --------
    >>> LatticeUniform(low=-1, high="1/2", step="1/2").pmf
    Pmf(start=-2, weights=(1, 1, 1, 1), step=1/2)
    """

    low: Fraction
    high: Fraction
    step: Fraction = Fraction(1)
    type: ClassVar[str] = "lattice-uniform"

    def __post_init__(self) -> None:
        set_field(self, "step", exact_positive(self.step, "step"))
        for name in ("low", "high"):
            value = exact(getattr(self, name), name)
            if (value / self.step).denominator != 1:
                raise InputError(name, f"must be a multiple of the step {self.step}, not {value}")
            set_field(self, name, value)
        if self.high < self.low:
            raise InputError("high", f"must be at least low = {self.low}, not {self.high}")
        if (self.high - self.low) / self.step >= MAX_POINTS:
            raise InputError("high", f"makes more than {MAX_POINTS} points")

    def _build(self) -> Pmf:
        steps = Uniform(int(self.low / self.step), int(self.high / self.step)).pmf
        return Pmf(steps.start, steps.weights, self.step)


def _rounded_centre(mean: Fraction, discretisation: Discretisation) -> Fraction:
    """The mean, in steps, of what is rounded: floor(X) is X - 1/2 rounded to the nearest."""
    return mean if discretisation is Discretisation.ROUND else mean - Fraction(1, 2)
