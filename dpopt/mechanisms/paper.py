"""What the noise paper says of each kind of noise (Table V and section IV-B), and whether it is true.

The claim is checked on the pmf itself: it holds where the tight delta at the claimed epsilon is at most the claimed
delta. It does for all but the one-sided exponential noise, which the paper calls epsilon-DP although it has no mass
below 0. Nor is any noise on finitely many points epsilon-DP: uniform noise, or any noise cut to a window. Of its
optimisation problem the paper says that it is not convex; it is, since the 1-Wasserstein distance is a sum of absolute
values of linear functions of the noise's pmf.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpopt.arithmetic import Enclosure, Number, exact, log_enclosure
from dpopt.distributions import (
    Distribution,
    EqualStaircase,
    Exponential,
    Geometric,
    Laplace,
    LatticeGaussian,
    LatticeUniform,
    OptimalStaircase,
    TruncatedGeometric,
)
from dpopt.distributions.inputs import Gaussian, Uniform
from dpopt.errors import InputError
from dpopt.mechanisms.conditions import least_epsilon, sufficient_delta
from dpopt.privacy.divergence import delta as delta_at
from dpopt.privacy.shifts import lattice_shift
from dpopt.record import Record

__all__ = ["PaperGuarantee", "paper_guarantee"]


@dataclass(frozen=True, repr=False)
class PaperGuarantee(Record):
    """A closed form for the privacy of noise, and whether it is true of its pmf.

    Parameters
    ----------
    formula : str
        With m the sensitivity, in data units.
    epsilon : Enclosure
    delta : Fraction
    holds : bool
        Whether the noise is proved to be (epsilon, delta)-DP.
    """

    formula: str
    epsilon: Enclosure
    delta: Fraction
    holds: bool


def paper_guarantee(noise: Distribution, sensitivity: Number = 1, *, epsilon: Number = 1) -> PaperGuarantee:
    """The closed form of the noise paper for named noise, checked on its pmf.

    Parameters
    ----------
    noise : Distribution
        Made by `laplace`, `geometric`, `staircase`, `optimal_staircase`, `gaussian`, `uniform` or `exponential` (the
        paper's), or by `truncated_geometric`.
    sensitivity : number
        In data units; rounded down to whole steps, since lattice points cannot differ by less.
    epsilon : number
        Where delta is stated for any epsilon: for Gaussian and uniform noise.

    Examples
    --------
    >>> from dpopt.distributions import exponential, laplace
    >>> claim = paper_guarantee(laplace("7.5"), 15)
    >>> print(claim.formula, claim.epsilon, claim.holds)
    epsilon = m/scale 2 True
    >>> claim = paper_guarantee(exponential("0.1"), 5)
    >>> print(claim.formula, claim.epsilon, claim.holds)
    epsilon = rate m 0.5 False
    """
    if not isinstance(noise, Distribution):
        raise InputError("noise", f"must be named noise such as dpopt.laplace(3), not {noise!r}")
    shift = lattice_shift(sensitivity, noise.pmf.step)
    moved = shift * noise.pmf.step
    if isinstance(noise, EqualStaircase):
        stairs = -(-shift // noise.width)
        claimed = noise.height**-stairs
        holds = least_epsilon(noise.pmf, moved).ratio <= claimed
        return PaperGuarantee("epsilon = ceil(m/(width step)) ln(1/height)", log_enclosure(claimed), Fraction(0), holds)
    formula, value, delta = _claim(noise, shift, moved, exact(epsilon, "epsilon"))
    holds = delta_at(noise.pmf, value, moved).upper <= delta
    return PaperGuarantee(formula, Enclosure(value, value), delta, holds)


def _claim(noise: Distribution, shift: int, moved: Fraction, epsilon: Fraction) -> tuple[str, Fraction, Fraction]:
    """The formula, its epsilon and its delta, where both are rational."""
    nothing = Fraction(0)
    if isinstance(noise, Laplace):
        return "epsilon = m/scale", moved / noise.scale, nothing
    if isinstance(noise, Geometric | Exponential):
        return "epsilon = rate m", noise.rate * moved, nothing
    if isinstance(noise, OptimalStaircase):
        return "epsilon, by Geng and Viswanath", noise.epsilon * -(-shift // noise.shift), nothing
    if isinstance(noise, Uniform | LatticeUniform):
        points = len(noise.pmf.weights)
        return "delta = min(1, m/(N step)) at every epsilon", epsilon, Fraction(min(shift, points), points)
    if isinstance(noise, TruncatedGeometric):
        outermost = sum(noise.pmf.weights[-shift:]) / noise.pmf.total
        return "delta = mass of the m/step outermost points, at epsilon = rate m", noise.rate * moved, outermost
    if isinstance(noise, Gaussian | LatticeGaussian):
        sufficient = sufficient_delta(noise.pmf, epsilon, moved).sufficient
        return "delta = P(|Z - mean| > K), p(K)/p(K + m) <= e^epsilon", epsilon, sufficient
    raise InputError("noise", f"must be a kind of noise that the noise paper treats, not {noise.type}")
