"""Parameters of each mechanism for a wanted (epsilon, delta) (noise paper, Table V), proved on the pmf they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

from dpopt.arithmetic import (
    Enclosure,
    Number,
    ball,
    exact,
    exact_integer,
    exact_nonnegative,
    exp_enclosure,
    floor_scaled,
)
from dpopt.distributions import (
    Distribution,
    exponential,
    geometric,
    laplace,
    optimal_staircase,
    staircase,
    uniform,
)
from dpopt.distributions.base import MAX_POINTS, decay, width_bits
from dpopt.errors import InputError
from dpopt.mechanisms.conditions import (
    LeastEpsilon,
    SufficientDelta,
    least_epsilon,
    sufficient_delta,
)
from dpopt.mechanisms.gaussian_search import least_gaussian
from dpopt.mechanisms.optimal import Moment, best_r, read_moment
from dpopt.mechanisms.paper import PaperGuarantee, paper_guarantee
from dpopt.mechanisms.truncated import least_truncated_geometric
from dpopt.pmf import Pmf
from dpopt.privacy.divergence import delta as delta_at
from dpopt.privacy.shifts import lattice_shift
from dpopt.reading import read_choice
from dpopt.record import Record

__all__ = ["Calibrated", "Mechanism", "calibrate"]


class Mechanism(StrEnum):
    """The kinds of noise that `calibrate` knows."""

    LAPLACE = "laplace"
    GEOMETRIC = "geometric"
    STAIRCASE = "staircase"
    OPTIMAL_STAIRCASE = "optimal-staircase"
    GAUSSIAN = "gaussian"
    TRUNCATED_GEOMETRIC = "truncated-geometric"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"

    @property
    def is_pure(self) -> bool:
        """Whether it reaches delta = 0."""
        return self not in _APPROXIMATE


_APPROXIMATE = (Mechanism.GAUSSIAN, Mechanism.TRUNCATED_GEOMETRIC, Mechanism.UNIFORM, Mechanism.EXPONENTIAL)

_EVERY_EPSILON = {
    Mechanism.EXPONENTIAL: "the noise is one-sided: its first points, up to the sensitivity, have no mass when moved",
    Mechanism.UNIFORM: "the noise ends: its outermost points, up to the sensitivity, have no mass when moved",
}


@dataclass(frozen=True, repr=False)
class Calibrated(Record):
    """Noise that is proved to be (epsilon, delta)-DP, with the parameters that make it so. Made by `calibrate`.

    Parameters
    ----------
    mechanism : Mechanism
    noise : Distribution
    epsilon, delta, sensitivity : Fraction
        As they were asked for; the sensitivity in data units.
    parameters : tuple of (str, Fraction)
        By the names of the noise's own arguments; those of uniform noise come from its number of points N.
    proved_delta : Enclosure
        The tight delta at `epsilon`; its upper end is at most `delta`.
    """

    mechanism: Mechanism
    noise: Distribution
    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    parameters: tuple[tuple[str, Fraction], ...]
    proved_delta: Enclosure

    @property
    def pmf(self) -> Pmf:
        """The noise as an exact pmf."""
        return self.noise.pmf

    @cached_property
    def least_epsilon(self) -> LeastEpsilon:
        """Theorem 1: the pair of points that decides, and whether any epsilon holds with delta = 0."""
        return least_epsilon(self.pmf, self.sensitivity)

    @cached_property
    def proved_epsilon(self) -> Enclosure:
        """The least epsilon: with delta = 0 for the mechanisms that reach it, at the wanted delta for the others."""
        if self.mechanism.is_pure:
            low, high = self.least_epsilon.epsilon
            return Enclosure(low, min(high, self.epsilon))  # proved to be at most that
        if delta_at(self.pmf, 0, self.sensitivity).upper <= self.delta:
            return Enclosure(Fraction(0), Fraction(0))
        from dpopt.privacy.profile import epsilon

        return epsilon(self.pmf, self.delta, self.sensitivity)

    @cached_property
    def sufficient(self) -> SufficientDelta:
        """Theorem 2 at the wanted epsilon."""
        return sufficient_delta(self.pmf, self.epsilon, self.sensitivity)

    @cached_property
    def mean_absolute(self) -> Fraction:
        """E|Z| in data units, exactly."""
        return self.pmf.absolute_moment(1)

    @cached_property
    def paper(self) -> PaperGuarantee:
        """The closed form of the noise paper, and whether it is true of this noise."""
        return paper_guarantee(self.noise, self.sensitivity, epsilon=self.epsilon)

    @property
    def variance(self) -> Fraction:
        """The variance in squared data units, exactly."""
        return self.pmf.variance

    def to_dict(self) -> dict[str, Any]:
        """Plain data: names, and nearest floats (None where no finite float is near)."""
        found, claim = self.least_epsilon, self.paper
        return {
            "mechanism": str(self.mechanism),
            "parameters": {name: _nearest(value) for name, value in self.parameters},
            "epsilon": _nearest(self.proved_epsilon.upper),
            "delta": _nearest(self.proved_delta.upper),
            "is_pure": found.is_finite,
            "pair": [_nearest(found.likely), _nearest(found.unlikely)],
            "pair_masses": [_nearest(found.likely_mass), _nearest(found.unlikely_mass)],
            "theorem2_delta": _nearest(self.sufficient.sufficient),
            "paper": {
                "formula": claim.formula,
                "epsilon": _nearest(claim.epsilon.upper),
                "delta": _nearest(claim.delta),
                "holds": claim.holds,
            },
            "remark": self.remark,
            "mean": _nearest(self.pmf.mean),
            "mean_absolute": _nearest(self.mean_absolute),
            "variance": _nearest(self.variance),
        }

    @cached_property
    def remark(self) -> str:
        """Why the noise is wide for its epsilon, where it is; else empty."""
        if self.mechanism not in _EVERY_EPSILON or not self.epsilon:
            return ""
        from dpopt.text import decimal_text

        other = calibrate(Mechanism.GEOMETRIC, epsilon=self.epsilon, sensitivity=self.sensitivity, step=self.pmf.step)
        least = decimal_text(other.mean_absolute, 3, up=None)
        return (
            f"remark: {_EVERY_EPSILON[self.mechanism]}, so that delta is that mass at every epsilon, and a larger "
            f"epsilon does not help; geometric noise has E|Z| {least} at this epsilon, with delta 0"
        )

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        from dpopt.text import decimal_text

        def plain(number: Fraction) -> str:
            return decimal_text(number, 12, up=None)

        def bound(number: Fraction, digits: int) -> str:
            return decimal_text(number, digits, up=True)

        found = self.least_epsilon
        named = ", ".join(f"{name} {plain(value)}" for name, value in self.parameters)
        reach = "attained by" if found.is_finite else "with delta = 0 there is none:"
        lines = [
            f"{self.mechanism} noise with {named}, at sensitivity {plain(self.sensitivity)}",
            f"epsilon {bound(self.proved_epsilon.upper, 12)} (proved); {reach} {found}",
            f"delta {bound(self.proved_delta.upper, 6)} (proved) at epsilon {plain(self.epsilon)}; "
            f"by Theorem 2 {bound(self.sufficient.sufficient, 6)}",
            f"closed form: {self.paper.formula}" + ("" if self.paper.holds else ", which is wrong"),
            *filter(None, [self.remark]),
            f"E|Z| {plain(self.mean_absolute)}, mean {plain(self.pmf.mean)}, variance {plain(self.variance)}",
        ]
        return "\n".join(lines)


def _nearest(number: Fraction) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


@dataclass(frozen=True)
class _Wanted:
    """What is asked for; `shift` is the sensitivity in whole steps, the most that a lattice point can move."""

    epsilon: Fraction
    delta: Fraction
    shift: int
    step: Fraction
    width: int
    cost: Moment

    @property
    def moved(self) -> Fraction:
        """The most that a lattice point moves, in data units."""
        return self.shift * self.step


def calibrate(
    mechanism: Mechanism | str,
    *,
    epsilon: Number,
    delta: Number = 0,
    sensitivity: Number = 1,
    step: Number = 1,
    width: int = 0,
    cost: Moment | str = Moment.ABSOLUTE,
) -> Calibrated:
    """The parameters at which a mechanism is (epsilon, delta)-DP, and its noise, proved.

    | mechanism | parameters |
    |---|---|
    | laplace | scale = m / epsilon |
    | geometric | rate = epsilon / m |
    | staircase | height rho = e^(-epsilon / ceil(m / (width step))) |
    | optimal-staircase | the best r for the cost (`best_r`) |
    | gaussian | the least sd on a grid of step/1000 (`least_gaussian`) |
    | truncated-geometric | rate = epsilon / m and the least half width (`truncated_geometric`) |
    | uniform | N = ceil(m / (step delta)) points |
    | exponential | rate = -ln(1 - delta) / m, which serves every epsilon |

    m is the sensitivity, rounded down to whole steps: lattice points cannot differ by less. The first four reach
    delta = 0 and take no notice of a larger one.

    Parameters
    ----------
    mechanism : Mechanism or str
    epsilon, delta : number
        The privacy wanted.
    sensitivity, step : number
        In data units.
    width : int
        Lattice points in a stair, for ``"staircase"``.
    cost : {"absolute", "square"}
        What r is the best for, for ``"optimal-staircase"``.

    Raises
    ------
    InputError
        The mechanism cannot reach that privacy, or no exact pmf can hold its noise.

    Examples
    --------
    >>> found = calibrate("optimal-staircase", epsilon=2, sensitivity=15)
    >>> found.noise.r, round(float(found.mean_absolute), 9), found.proved_delta.upper
    (5, 6.379479552, Fraction(0, 1))
    """
    kind = _read_mechanism(mechanism)
    wanted = _read(kind, epsilon, delta, sensitivity, step, width, cost)
    try:
        noise, parameters = _MAKERS[kind](wanted)
    except InputError as error:
        if error.location in ("scale", "rate"):
            raise InputError("epsilon", f"asks for noise that is out of reach: {error}") from None
        raise
    moved = exact(sensitivity, "sensitivity")
    found = delta_at(noise.pmf, wanted.epsilon, moved)
    if found.upper > wanted.delta:
        raise ArithmeticError(f"{kind} noise missed its target: delta is {float(found.upper)}")
    return Calibrated(kind, noise, wanted.epsilon, wanted.delta, moved, parameters, found)


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_mechanism(name: Mechanism | str) -> Mechanism:
    return read_choice(Mechanism, name, "mechanism")


def _read(
    kind: Mechanism,
    epsilon: Number,
    delta: Number,
    sensitivity: Number,
    step: Number,
    width: int,
    cost: Moment | str,
) -> _Wanted:
    """Everything that can be wrong before any noise is made."""
    rate, excess, unit = exact_nonnegative(epsilon, "epsilon"), exact(delta, "delta"), exact(step, "step")
    if not 0 <= excess <= 1:
        raise InputError("delta", f"must lie between 0 and 1, not {excess}")
    if unit <= 0:
        raise InputError("step", f"must be positive, not {unit}")
    exp_enclosure(rate, 1)  # refuses what is too large
    if (kind.is_pure or kind is Mechanism.TRUNCATED_GEOMETRIC) and rate == 0:
        raise InputError(
            "epsilon", f"must be positive: no {kind} noise reaches 0; take uniform noise and a delta above 0"
        )
    if not kind.is_pure and excess == 0:
        raise InputError("delta", f"must be positive: no {kind} noise is epsilon-DP; take laplace noise for delta = 0")
    if kind is Mechanism.EXPONENTIAL and excess == 1:
        raise InputError("delta", "must be below 1 for exponential noise; at 1 no noise is needed")
    if kind is Mechanism.STAIRCASE:
        width = exact_integer(width, "width", at_least=1)
    elif width:
        raise InputError("width", f"is for staircase noise, not for {kind}")
    moment = read_moment(cost)
    if kind is not Mechanism.OPTIMAL_STAIRCASE and moment is not Moment.ABSOLUTE:
        raise InputError("cost", f"is for optimal-staircase noise, not for {kind}")
    return _Wanted(rate, excess, lattice_shift(sensitivity, unit), unit, width, moment)


# --- one function a mechanism ----------------------------------------------------------------------------------------

_Made = tuple[Distribution, tuple[tuple[str, Fraction], ...]]


def _laplace(wanted: _Wanted) -> _Made:
    scale = wanted.moved / wanted.epsilon
    return laplace(scale, step=wanted.step), (("scale", scale),)


def _geometric(wanted: _Wanted) -> _Made:
    rate = wanted.epsilon / wanted.moved
    return geometric(rate, step=wanted.step), (("rate", rate),)


def _staircase(wanted: _Wanted) -> _Made:
    stairs = -(-wanted.shift // wanted.width)
    height = decay(wanted.epsilon / stairs)
    noise = staircase(wanted.width, height, step=wanted.step)
    return noise, (("width", Fraction(wanted.width)), ("height", height))


def _optimal_staircase(wanted: _Wanted) -> _Made:
    r = best_r(wanted.epsilon, wanted.shift, cost=wanted.cost)
    noise = optimal_staircase(wanted.epsilon, wanted.moved, r, step=wanted.step)
    return noise, (("r", Fraction(r)),)


def _gaussian(wanted: _Wanted) -> _Made:
    noise = least_gaussian(wanted.epsilon, wanted.delta, wanted.shift, wanted.step)
    return noise, (("sd", noise.sd),)


def _truncated_geometric(wanted: _Wanted) -> _Made:
    noise = least_truncated_geometric(wanted.epsilon, wanted.delta, wanted.shift, wanted.step)
    return noise, (("rate", noise.rate), ("half_width", noise.half_width))


def _uniform(wanted: _Wanted) -> _Made:
    points = ceil(wanted.shift / wanted.delta)
    if points > MAX_POINTS:
        raise InputError(
            "delta", f"asks for uniform noise on more than {MAX_POINTS} points; gaussian noise needs fewer"
        )
    low, high = -((points - 1) // 2), points // 2
    return uniform(low * wanted.step, high * wanted.step, step=wanted.step), (("N", Fraction(points)),)


def _exponential(wanted: _Wanted) -> _Made:
    bits = 128 + width_bits(wanted.delta / wanted.shift)  # -ln(1 - delta) is at least delta
    scaled = floor_scaled(lambda: -(1 - ball(wanted.delta)).log() / wanted.shift, bits)
    rate = Fraction(scaled, 1 << bits) / wanted.step
    return exponential(rate, step=wanted.step), (("rate", rate),)


_MAKERS: dict[Mechanism, Callable[[_Wanted], _Made]] = {
    Mechanism.LAPLACE: _laplace,
    Mechanism.GEOMETRIC: _geometric,
    Mechanism.STAIRCASE: _staircase,
    Mechanism.OPTIMAL_STAIRCASE: _optimal_staircase,
    Mechanism.GAUSSIAN: _gaussian,
    Mechanism.TRUNCATED_GEOMETRIC: _truncated_geometric,
    Mechanism.UNIFORM: _uniform,
    Mechanism.EXPONENTIAL: _exponential,
}
