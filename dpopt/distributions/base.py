"""What the named distributions have in common: reading parameters, and rounding masses and decays to rationals."""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from dpopt.arithmetic import ball, floor_scaled
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.reading import read_choice

__all__ = [
    "BITS",
    "MAX_FALL",
    "MAX_POINTS",
    "Discretisation",
    "Distribution",
    "bounded",
    "decay",
    "falling_block",
    "read_discretisation",
    "read_rate",
    "set_field",
    "weight_bits",
    "width_bits",
]

BITS = 128  # a probability below 2^-129 has weight 0
MAX_POINTS = 2_000_000
_RATE_BITS = 64  # relative accuracy of the decay of a geometric tail
_LONGEST_PERIOD = 4096
MAX_FALL = 2700  # e^-2700 needs weights of 4,096 bits, the most that dpopt gives a pmf
_LEAST_RATE = Fraction(1, 10**150)  # a variance of 1e300 is still a float


class Discretisation(StrEnum):
    """How a density becomes a pmf on the lattice: by the nearest lattice point, or by the one below.

    Rounding keeps a symmetric density symmetric; floor moves its mean by half a step to the left.
    """

    ROUND = "round"
    FLOOR = "floor"


class Distribution:
    """Base of the named distributions: frozen data with a `type` name and an exact `pmf` on its lattice."""

    type: ClassVar[str]

    @cached_property
    def pmf(self) -> Pmf:
        """The exact pmf that this distribution is."""
        return self._build()

    def _build(self) -> Pmf:
        raise TypeError(f"{type(self).__name__} does not say how to build its pmf")


# --- decays as rationals ----------------------------------------------------------------------------------


def width_bits(rate: Fraction) -> int:
    """About log2(1/rate) where that is positive: the bits that masses of a law of this width lose."""
    if not rate:
        return 0
    return max((1 / rate).numerator.bit_length() - (1 / rate).denominator.bit_length() + 1, 0)


def decay(rate: Fraction) -> Fraction:
    """A rational a little above ``e**-rate``: the ratio of a geometric tail that falls no faster than it may.

    It is one or two units of ``2**-bits`` above, so that ``decay(rate)**-n <= e**(n rate)`` for every n at once. At 128
    bits, which do for rates from 2^-64 on, that unit also keeps it below the lower end of the usual enclosure of
    ``e**(n rate)``. Smaller rates get more bits, so that the rate itself keeps a relative accuracy of 2^-63.

    Examples
    --------
    >>> ratio = decay(Fraction(1, 3))
    >>> ratio.denominator <= 2**128, round(float(ratio), 12)
    (True, 0.716531310574)
    """
    bits = _decay_bits(rate)
    return Fraction(floor_scaled(lambda: (-ball(rate)).exp(), bits) + 2, 1 << bits)


def _decay_bits(rate: Fraction) -> int:
    return max(BITS, _RATE_BITS + width_bits(rate)) + int(rate * Fraction(7213, 5000))  # a little below rate / ln 2


def weight_bits(rate: Fraction) -> int:
    """Bits for the first weight of `falling_block`: rounding each weight up must not stop the fall."""
    return _decay_bits(rate) + 2 * width_bits(rate) + 8


def falling_block(first: int, rate: Fraction) -> tuple[list[int], Fraction]:
    """One period of a geometric tail that starts at the weight `first`, and the ratio of the next period to it.

    Each weight is the one before times `decay`, rounded up, and the first of the next period closes the ratio: two
    neighbours never differ by more than 1/decay, anywhere in the tail. A period of about 1/rate points, instead of one,
    keeps integers short where a tail has to be written out.

    Examples
    --------
    >>> block, ratio = falling_block(2**200, Fraction(1, 3))
    >>> len(block), round(float(ratio), 12)
    (3, 0.367879441171)
    """
    factor = decay(rate)
    if rate >= 1:
        return [first], factor
    block = [first]
    for _ in range(min(math.ceil(1 / rate), _LONGEST_PERIOD)):
        block.append(-(-block[-1] * factor.numerator // factor.denominator))
    return block[:-1], Fraction(block[-1], first)


# --- reading ---------------------------------------------------------------------------------------------------------


def set_field(part: object, name: str, value: object) -> None:
    """Set a field of a frozen dataclass while it is made."""
    object.__setattr__(part, name, value)


def bounded(value: Fraction, argument: str) -> None:
    """Refuse what would need too many points."""
    if value > 100_000:
        raise InputError(argument, f"must be at most 100000 (the pmf is stored point by point), not {value}")


def read_rate(rate: Fraction, argument: str, allowed: str, given: Fraction) -> None:
    """Refuse a decay in one lattice step that no exact pmf can hold, or whose variance is no float."""
    if not _LEAST_RATE <= rate <= MAX_FALL:
        raise InputError(argument, f"must lie {allowed} to be held exactly, not {_short(given)}")


def read_discretisation(value: object) -> Discretisation:
    """One of the two names."""
    return read_choice(Discretisation, value, "discretisation")


def _short(number: Fraction) -> str:
    from dpopt.text import decimal_text

    return decimal_text(number, 6, up=None)
