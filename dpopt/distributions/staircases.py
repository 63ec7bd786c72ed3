"""Staircase noise: the noise paper's stairs of equal width, and the optimal staircase of Geng and Viswanath."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar

from dpopt.arithmetic import exact, exact_integer, exact_positive, exp_enclosure
from dpopt.distributions.base import BITS, MAX_POINTS, Distribution, set_field, width_bits
from dpopt.errors import InputError
from dpopt.pmf import Pmf, Tails
from dpopt.reading import read_choice

__all__ = ["EqualStaircase", "OptimalStaircase", "StaircaseForm"]

_COARSE_BITS = 64  # an epsilon below 2^-64 gets a finer enclosure of e^epsilon than the usual one
_MOST_STEPS = 100_000  # the pmf is stored point by point
_LEAST_EPSILON = Fraction(1, 10**140)  # with that many points in a stair the variance is still a float


class StaircaseForm(StrEnum):
    """Where the stairs of equal width lie: about 0, or with an edge at 0 (mean -step/2)."""

    CENTRED = "centred"
    HALF_OPEN = "half-open"


@dataclass(frozen=True)
class EqualStaircase(Distribution):
    """Stairs of equal width a and height h (noise paper, (20)): p(k step) = C h^floor(|k| / a), C = (1-h)/(2a-1+h).

    At a sensitivity of m lattice steps it is epsilon-DP with epsilon = ceil(m / a) ln(1/h), exactly. Half open, the
    density of stairs is floored: h^floor(k / a) for k >= 0, mirrored about -1/2, and C = (1-h)/(2a).

    Parameters
    ----------
    width : int
        Lattice points in a stair; a stair has the length width * step in data units.
    height : number
        The ratio of a stair to the one before, between 0 and 1, exact: `dpopt.calibrate` finds it for an epsilon.

    Examples
    --------
    >>> EqualStaircase(width=3, height="1/2").pmf.probability(3)
    Fraction(1, 22)
    """

    width: int
    height: Fraction
    step: Fraction = Fraction(1)
    form: StaircaseForm = StaircaseForm.CENTRED
    type: ClassVar[str] = "staircase"

    def __post_init__(self) -> None:
        set_field(self, "width", exact_integer(self.width, "width", at_least=1))
        set_field(self, "height", exact(self.height, "height"))
        set_field(self, "step", exact_positive(self.step, "step"))
        if not 0 < self.height < 1:
            raise InputError("height", f"must lie strictly between 0 and 1, not {self.height}")
        if 2 * self.width > MAX_POINTS:
            raise InputError("width", f"makes more than {MAX_POINTS} points")
        set_field(self, "form", read_choice(StaircaseForm, self.form, "form"))

    def _build(self) -> Pmf:
        tails = Tails(self.width, self.height, self.height)
        if self.form is StaircaseForm.HALF_OPEN:
            return Pmf(-self.width, (1,) * (2 * self.width), self.step, tails)
        return Pmf(1 - self.width, (1,) * (2 * self.width - 1), self.step, tails)


@dataclass(frozen=True)
class OptimalStaircase(Distribution):
    """The discrete staircase P_r of Geng and Viswanath (arXiv 1212.1186): for some r the best epsilon-DP noise.

    With |i| = k m + j, 0 <= j < m, and b = e^-epsilon: p(i) = a b^k where j < r, and a b^(k+1) elsewhere. Some r is
    optimal for every symmetric cost that does not fall with |z|; `dpopt.calibrate` finds it for E|Z| and for E Z^2.
    The base of this pmf is the lower end of the enclosure of e^epsilon instead of e^epsilon: exactly private.

    Parameters
    ----------
    epsilon : number
        Above 0.
    sensitivity : number
        In data units; m is the number of whole steps in it.
    r : int
        Lattice points in the inner part of a stair, 1..m.

    Examples
    --------
    >>> noise = OptimalStaircase(epsilon=2, sensitivity=15, r=5).pmf
    >>> [round(float(noise.probability(k)), 12) for k in (0, 4, 5)]
    [0.073016528195, 0.073016528195, 0.009881712524]
    """

    epsilon: Fraction
    sensitivity: Fraction
    r: int
    step: Fraction = Fraction(1)
    type: ClassVar[str] = "optimal-staircase"

    def __post_init__(self) -> None:
        set_field(self, "epsilon", exact_positive(self.epsilon, "epsilon"))
        set_field(self, "step", exact_positive(self.step, "step"))
        set_field(self, "sensitivity", exact_positive(self.sensitivity, "sensitivity"))
        set_field(self, "r", exact_integer(self.r, "r", at_least=1))
        exp_enclosure(self.epsilon, 1)  # refuses what is too large
        if self.epsilon < _LEAST_EPSILON:
            raise InputError("epsilon", "must be at least 1e-140: the variance would be no float")
        if self.shift < 1:
            raise InputError("sensitivity", f"must be at least the step {self.step}, not {self.sensitivity}")
        if self.shift > _MOST_STEPS:
            raise InputError(
                "sensitivity", f"must be at most {_MOST_STEPS} steps (take a coarser one), not {self.shift}"
            )
        if self.r > self.shift:
            raise InputError("r", f"must be at most the sensitivity in steps, {self.shift}, not {self.r}")

    @property
    def shift(self) -> int:
        """The sensitivity in whole lattice steps, m."""
        return int(self.sensitivity // self.step)

    def _build(self) -> Pmf:
        bits = BITS + max(width_bits(self.epsilon) - _COARSE_BITS, 0)
        base = exp_enclosure(self.epsilon, bits).lower
        outer = (base.denominator,) * (self.shift - self.r)
        inner = (base.numerator,) * (2 * self.r - 1)
        return Pmf(1 - self.shift, (*outer, *inner, *outer), self.step, Tails(self.shift, 1 / base, 1 / base))
