"""The optimal staircase P_r in closed form: its E|Z| and E Z^2, and the best r, decided exactly.

With b = e^-epsilon, c = 1 - b, m lattice steps of sensitivity, u = r - 1/2 + m b/c and Q = m^2 b/c^2 - 1/4,

    E|Z| = (u + Q/u) / 2,       E Z^2 = 2 N(r) / D(r),    D = 2 S0 - c,
    N = m^2 b (1+b) S0/c^2 + 2 m b S1/c + S2,             S0 = r + b (m - r),
    S1 = (c r (r-1) + b m (m-1)) / 2,                     S2 = (c (r-1) r (2r-1) + b (m-1) m (2m-1)) / 6.

*The best r.* E|Z| rises from r to r + 1 where u(r) u(r+1) > Q, that is (r c + m b)^2 > m^2 b, that is
r > m / (1 + e^(epsilon/2)): the best r is one more than the whole part of that, which is the floor or the ceiling of
r* = 1/2 + sqrt(Q) - m b/c. For E Z^2 let G(r) = (N(r+1) - N(r)) D(r) - N(r) (D(r+1) - D(r)), whose sign is that of the
step from r to r + 1. Since D is linear, G(r+1) - G(r) = D(r+1) (N(r+2) - 2 N(r+1) + N(r)), and N is convex: G rises,
E Z^2 falls up to the best r and rises from there, and bisection finds it. No tie is possible between rational numbers
and the transcendental e^epsilon.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

from flint import arb

from dpopt.arithmetic import Enclosure, Number, ball, enclosed, exact, exact_integer, exp_enclosure, floor_scaled, sign
from dpopt.errors import InputError
from dpopt.privacy.shifts import lattice_shift
from dpopt.reading import read_choice
from dpopt.searching import first_that

__all__ = ["Moment", "best_r", "staircase_moment"]

_BITS = 96  # relative, of what is returned


class Moment(StrEnum):
    """What noise costs: E|Z| or E Z^2."""

    ABSOLUTE = "absolute"
    SQUARE = "square"


def best_r(epsilon: Number, sensitivity: Number = 1, *, step: Number = 1, cost: Moment | str = Moment.ABSOLUTE) -> int:
    """The r of the optimal epsilon-DP staircase for E|Z| or E Z^2 on a lattice.

    Examples
    --------
    >>> best_r(2, 15), best_r(2, 15, cost="square")
    (5, 6)
    """
    rate, shift, _ = _read(epsilon, sensitivity, step)
    if read_moment(cost) is Moment.ABSOLUTE:
        return floor_scaled(lambda: shift / (1 + ball(rate / 2).exp()), 0) + 1
    return first_that(lambda r: _square_rises(rate, shift, r), 0, shift)  # from which on the next one costs more


def staircase_moment(
    epsilon: Number,
    sensitivity: Number,
    r: int,
    *,
    step: Number = 1,
    cost: Moment | str = Moment.ABSOLUTE,
) -> Enclosure:
    """E|Z| or E Z^2 of the ideal P_r in data units, enclosed to a relative 2^-96.

    Examples
    --------
    >>> print(staircase_moment(2, 15, 5), staircase_moment(2, 15, 6, cost="square"))
    6.37947955198 95.2463410371
    """
    rate, shift, unit = _read(epsilon, sensitivity, step)
    r = exact_integer(r, "r", at_least=1)
    if r > shift:
        raise InputError("r", f"must be at most the sensitivity in steps, {shift}, not {r}")
    if read_moment(cost) is Moment.ABSOLUTE:
        return enclosed(lambda: ball(unit) * _absolute(rate, shift, r), _BITS)
    return enclosed(lambda: ball(unit**2) * _square(rate, shift, r), _BITS)


def read_moment(cost: Moment | str) -> Moment:
    """One of the two names."""
    return read_choice(Moment, cost, "cost")


def _read(epsilon: Number, sensitivity: Number, step: Number) -> tuple[Fraction, int, Fraction]:
    """epsilon, the sensitivity in whole steps, and the step."""
    rate, unit = exact(epsilon, "epsilon"), exact(step, "step")
    if rate <= 0:
        raise InputError("epsilon", f"must be positive, not {rate}")
    if unit <= 0:
        raise InputError("step", f"must be positive, not {unit}")
    exp_enclosure(rate, 1)  # refuses what is too large
    return rate, lattice_shift(sensitivity, unit), unit


def _absolute(rate: Fraction, shift: int, r: int) -> arb:
    growth = ball(rate).expm1()  # b/c = 1 / growth, b/c^2 = (1 + growth) / growth^2
    u = r - arb("0.5") + shift / growth
    Q = shift**2 * (1 + growth) / growth**2 - arb("0.25")  # noqa: N806
    return (u + Q / u) / 2


def _square(rate: Fraction, shift: int, r: int) -> arb:
    numerator, denominator = _square_parts(rate, shift, r)
    return 2 * numerator / denominator


def _square_parts(rate: Fraction, shift: int, r: int) -> tuple[arb, arb]:
    """N(r) and D(r)."""
    m, c = shift, -(-ball(rate)).expm1()
    b = 1 - c
    s0 = r + b * (m - r)
    s1 = (c * (r * (r - 1)) + b * (m * (m - 1))) / 2
    s2 = (c * ((r - 1) * r * (2 * r - 1)) + b * ((m - 1) * m * (2 * m - 1))) / 6
    return m**2 * b * (1 + b) * s0 / c**2 + 2 * m * b * s1 / c + s2, 2 * s0 - c


def _square_rises(rate: Fraction, shift: int, r: int) -> bool:
    """Whether E Z^2 is larger at r + 1 than at r: the sign of G."""

    def difference() -> arb:
        numerator, denominator = _square_parts(rate, shift, r)
        numerator_next, denominator_next = _square_parts(rate, shift, r + 1)
        return numerator_next * denominator - numerator * denominator_next

    return sign(difference) > 0
