"""The TableBuilder family p(z) proportional to e^(-gamma z^2) on [-D, D]: exact members, and its delta in balls.

The family is log-concave, so at a sensitivity m the worst shift is m itself and the worst event is a tail:
delta = P(Z >= t) - e^epsilon P(Z >= t + m), with t the least z at which p(z) > e^epsilon p(z + m) (ABS paper,
Proposition 2, in tail form). For each D the delta is smallest at a breakpoint gamma = epsilon / (m (2j - m)), or for
the uniform pmf (gamma = 0).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, log

from flint import arb, ctx

from dpopt.arithmetic import ball, round_scaled
from dpopt.errors import InputError
from dpopt.pmf import Pmf

__all__ = ["analytic_rate", "breakpoints", "delta_exceeds", "family_pmf", "worst_tail"]

_RELATIVE_BITS = 128
_MAX_BITS = 1 << 16


def analytic_rate(half_width: int, epsilon: Fraction, shift: int) -> Fraction | None:
    """The paper's gamma for a D, epsilon / (m (2D - m)): equation (33) with iota = 0; None where 2D <= m."""
    if 2 * half_width <= shift:
        return None
    return epsilon / (shift * (2 * half_width - shift))


def breakpoints(half_width: int, epsilon: Fraction, shift: int) -> list[Fraction]:
    """The rates among which the smallest delta over the family lies, ascending, the uniform pmf first.

    Between two of them the set of contributing outputs is fixed and delta is quasi-concave in gamma.
    """
    if epsilon == 0:
        return [Fraction(0)]
    wide = range(half_width, shift // 2, -1)
    return [Fraction(0), *(epsilon / (shift * (2 * j - shift)) for j in wide)]


@lru_cache(maxsize=32)
def family_pmf(half_width: int, rate: Fraction) -> Pmf:
    """The canonical exact member: weights are the nearest integers to ``2**bits * e^(-rate z^2)``.

    The bits give the outermost weight 128 significant ones.

    Examples
    --------
    >>> family_pmf(1, Fraction(0)).weights == (2**128,) * 3
    True
    """
    needed = _RELATIVE_BITS + ceil(float(rate) * half_width**2 / log(2))
    if needed > _MAX_BITS:
        raise InputError(
            "gamma", f"= {float(rate):.6g} with D = {half_width} needs weights of {needed} bits, more than {_MAX_BITS}"
        )
    half = [_weight(rate * z * z, needed) for z in range(half_width + 1)]
    return Pmf(-half_width, [*reversed(half[1:]), *half])


def _weight(exponent: Fraction, bits: int) -> int:
    """The nearest integer to ``2**bits * e^-exponent``."""
    return round_scaled(lambda: (-ball(exponent)).exp(), bits) if exponent else 1 << bits


def worst_tail(half_width: int, rate: Fraction, epsilon: Fraction, shift: int) -> int:
    """The t of the worst event {Z >= t}: the least z with p(z) > e^epsilon p(z + shift)."""
    if rate == 0:
        return max(half_width - shift + 1, -half_width)
    crossing = (epsilon / rate - shift * shift) / (2 * shift)  # rate (shift^2 + 2 shift z) = epsilon
    first = crossing.numerator // crossing.denominator + 1
    return max(min(first, half_width - shift + 1), -half_width)


def delta_exceeds(half_width: int, rate: Fraction, epsilon: Fraction, shift: int, level: Fraction) -> bool:
    """Whether the ideal member's delta is above `level`, decided by balls that are refined until they do.

    Examples
    --------
    >>> delta_exceeds(17, Fraction(1, 33), Fraction(1), 1, Fraction(1, 10**5))
    True
    >>> delta_exceeds(18, Fraction(1, 35), Fraction(1), 1, Fraction(1, 10**5))
    False
    """
    if rate == 0:
        return Fraction(min(shift, 2 * half_width + 1), 2 * half_width + 1) > level
    start, precision = worst_tail(half_width, rate, epsilon, shift), 96
    while precision <= 1 << 20:
        with ctx.workprec(precision + 2 * half_width.bit_length()):
            excess = _excess(half_width, rate, epsilon, shift, start, level)
            if excess > 0:
                return True
            if excess < 0:
                return False
        precision *= 2
    raise ArithmeticError("a delta of the family could not be separated from the wanted one")


def _excess(half_width: int, rate: Fraction, epsilon: Fraction, shift: int, start: int, level: Fraction) -> arb:
    """(delta - level) times the normaliser, as a ball at the working precision."""
    masses = _masses(half_width, rate)
    cumulative = [arb(0)]
    for z in range(half_width, -1, -1):
        cumulative.append(cumulative[-1] + masses[z])
    total = 2 * cumulative[-1] - masses[0]

    def tail(t: int) -> arb:  # the mass at and above t
        if t > half_width:
            return arb(0)
        if t >= 0:
            return cumulative[half_width - t + 1]
        return total - cumulative[half_width + t]

    return tail(start) - ball(epsilon).exp() * tail(start + shift) - ball(level) * total


def _masses(half_width: int, rate: Fraction) -> list[arb]:
    """e^(-rate z^2) for z = 0..D by two multiplications a point: the ratio of neighbours is geometric."""
    factor = (-ball(rate)).exp()
    square, ratio, mass = factor * factor, factor, arb(1)
    found = []
    for _ in range(half_width + 1):
        found.append(mass)
        mass = mass * ratio
        ratio = ratio * square
    return found
