"""Truncated noise: the least half width of the discrete law for a wanted (epsilon, delta), and the continuous law.

At epsilon = m rate the truncated geometric law on -D..D loses exactly the mass of its m outermost points on a side,

    delta(D) = q^(D - m + 1) (1 - q^m) / (1 + q - 2 q^(D + 1)),     q = e^-rate,

which falls with D. For D < m these points reach over the middle, and the formula is another one (`_outermost`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dpopt.arithmetic import Enclosure, Number, ball, enclosed, exact, exp_enclosure, sign
from dpopt.distributions import TruncatedGeometric, truncated_geometric
from dpopt.distributions.base import MAX_FALL, MAX_POINTS
from dpopt.errors import InputError
from dpopt.privacy.divergence import delta as delta_at
from dpopt.record import Record
from dpopt.searching import first_that

__all__ = ["TruncatedLaplace", "least_truncated_geometric", "truncated_laplace"]


def least_truncated_geometric(epsilon: Fraction, delta: Fraction, shift: int, step: Fraction) -> TruncatedGeometric:
    """The truncated geometric noise of rate epsilon / m with the least half width that is (epsilon, delta)-DP.

    Examples
    --------
    >>> least_truncated_geometric(Fraction(1), Fraction(1, 1000), 1, Fraction(1)).half_width
    Fraction(7, 1)
    """
    rate = epsilon / shift
    low, high = -1, max(shift, 1)
    most = min(MAX_POINTS // 2 - 1, int(MAX_FALL / rate))
    while high < most and not _reaches(rate, high, shift, delta):
        low, high = high, 2 * high
    high = first_that(lambda half_width: _reaches(rate, half_width, shift, delta), low, min(high, most))
    for half_width in (high, high + 1):  # at a knife edge the rounding of the masses costs a point
        noise = truncated_geometric(rate / step, half_width * step, step=step) if half_width <= most else None
        if noise is not None and delta_at(noise.pmf, epsilon, shift * step).upper <= delta:
            return noise
    raise InputError("delta", f"asks for truncated noise beyond {most} steps; geometric noise has delta = 0")


def _reaches(rate: Fraction, half_width: int, shift: int, delta: Fraction) -> bool:
    """Whether the ideal law's outermost mass is at most delta; where no precision decides, it does not count."""
    if 2 * half_width + 1 <= shift:
        return delta >= 1
    try:
        return sign(lambda: _outermost(rate, half_width, shift) - ball(delta)) < 0
    except ArithmeticError:
        return False


def _outermost(rate: Fraction, half_width: int, shift: int) -> arb:
    """The mass of the `shift` outermost points of a side, which may reach over the middle."""

    def tail(k: int) -> arb:  # q^k + ... + q^half_width, over 1/(1 - q)
        return (-ball(rate * k)).exp() - (-ball(rate * (half_width + 1))).exp()

    q = (-ball(rate)).exp()
    total = 1 + q - 2 * (-ball(rate * (half_width + 1))).exp()
    first = half_width - shift + 1
    return tail(first) / total if first > 0 else 1 - tail(1 - first) / total


@dataclass(frozen=True, repr=False)
class TruncatedLaplace(Record):
    """The continuous truncated Laplace law of an (epsilon, delta), in closed form. Made by `truncated_laplace`.

    Parameters
    ----------
    half_width, mean_absolute, variance : Enclosure
        A, E|X| and E X^2, in data units.
    """

    half_width: Enclosure
    mean_absolute: Enclosure
    variance: Enclosure


def truncated_laplace(epsilon: Number, delta: Number, sensitivity: Number = 1) -> TruncatedLaplace:
    """The truncated Laplace mechanism on real numbers: a density proportional to e^(-epsilon |x| / m) on [-A, A].

    With Q = (e^epsilon - 1) / (2 delta) and L = ln(1 + Q): A = (m/epsilon) L, E|X| = (m/epsilon) (1 - L/Q) and
    E X^2 = 2 (m/epsilon)^2 (1 - (L + L^2/2) / Q) (Geng, Ding, Guo and Kumar, Tight Analysis of Privacy and Utility
    Tradeoff in Approximate Differential Privacy, 2020). It is what noise on a lattice is compared with.

    Examples
    --------
    >>> found = truncated_laplace(1, "1e-3")
    >>> print(found.half_width, found.variance)
    6.75709622958 1.93112591784
    """
    rate, excess, moved = exact(epsilon, "epsilon"), exact(delta, "delta"), exact(sensitivity, "sensitivity")
    if rate <= 0:
        raise InputError("epsilon", f"must be positive, not {rate}")
    if not 0 < excess < Fraction(1, 2):
        raise InputError("delta", f"must lie strictly between 0 and 1/2, not {excess}")
    if moved <= 0:
        raise InputError("sensitivity", f"must be positive, not {moved}")
    exp_enclosure(rate, 1)  # refuses what is too large
    scale = moved / rate

    def growth() -> tuple[arb, arb]:
        q = ball(rate).expm1() / (2 * ball(excess))
        return q, q.log1p()

    def mean_absolute() -> arb:
        q, logarithm = growth()
        return ball(scale) * (1 - logarithm / q)

    def variance() -> arb:
        q, logarithm = growth()
        return 2 * ball(scale**2) * (1 - (logarithm + logarithm**2 / 2) / q)

    return TruncatedLaplace(enclosed(lambda: ball(scale) * growth()[1]), enclosed(mean_absolute), enclosed(variance))
