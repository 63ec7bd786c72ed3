"""Geometric laws of any ratio, drawn digit by digit.

P(V = j) = (1 - q) q^j forgets what lies behind it: the digits of V in base 2^w are independent, digit i a geometric of
ratio q^(2^(w i)) truncated to 0..2^w - 1, and what lies above all of them is geometric again. So a rate of 1e-30 costs
twelve small tables, and a table that does not reach far enough is simply entered again from its end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb

from dpopt.arithmetic import ball
from dpopt.release.lazy import BallSurvival, LazyTable, RationalSurvival
from dpopt.release.randomness import Randomness

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Digits",
    "ExponentialRatio",
    "GeometricDraws",
    "Ratio",
    "RationalRatio",
    "TruncatedDraws",
    "draw_again",
    "geometric_draws",
    "truncated_draws",
]

_WIDTH = 8  # bits of a digit: 255 boundaries leave 0.4 percent of the 16-bit prefixes undecided
_LEAST_RATE = Fraction(1, 32)  # of the part above the digits, whose table is then at most 356 long
_REACH = 12  # e^-12 < 2^-16: a table this many units of 1/rate long is left about once in 2^17 draws
_NARROW = 62  # bits that fit an int64 with room for one sum


class Ratio(ABC):
    """The ratio q of a geometric law, 0 < q < 1, through its powers."""

    @abstractmethod
    def power(self, n: int) -> arb:
        """q^n as a ball, exact where q is a dyadic rational and the precision holds it."""

    @abstractmethod
    def complement(self, n: int) -> arb:
        """1 - q^n as a ball."""

    @abstractmethod
    def powers(self, unit: int, count: int) -> list[arb]:
        """q^(unit k) for k = 0..count."""

    @abstractmethod
    def complements(self, unit: int, count: int) -> list[arb]:
        """1 - q^(unit k) for k = 0..count."""

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """A positive number at most -ln q, near it where q is near 1: for the sizes of tables only."""


@dataclass(frozen=True)
class ExponentialRatio(Ratio):
    """q = e^-exponent for a positive rational exponent: no power of it is rational (Lindemann)."""

    exponent: Fraction

    def power(self, n: int) -> arb:
        """e^(-exponent n)."""
        return ball(-self.exponent * n).exp()

    def powers(self, unit: int, count: int) -> list[arb]:
        """One exponential each."""
        step = ball(-self.exponent * unit)
        return [(step * k).exp() for k in range(count + 1)]

    def complements(self, unit: int, count: int) -> list[arb]:
        """Without cancellation."""
        step = ball(-self.exponent * unit)
        return [-(step * k).expm1() for k in range(count + 1)]

    def complement(self, n: int) -> arb:
        """Without cancellation."""
        return -ball(-self.exponent * n).expm1()

    @property
    def rate(self) -> Fraction:
        """The exponent."""
        return self.exponent


@dataclass(frozen=True)
class RationalRatio(Ratio):
    """A rational q."""

    value: Fraction

    def power(self, n: int) -> arb:
        """By repeated multiplication."""
        return ball(self.value) ** n

    def powers(self, unit: int, count: int) -> list[arb]:
        """The rational, of a thousand bits where tails are wide, becomes a ball once."""
        return list(accumulate([self.power(unit)] * count, mul, initial=arb(1)))

    def complements(self, unit: int, count: int) -> list[arb]:
        """By subtraction."""
        return [1 - power for power in self.powers(unit, count)]

    def complement(self, n: int) -> arb:
        """By subtraction: what cancels is won back by more precision."""
        return 1 - self.power(n)

    @property
    def rate(self) -> Fraction:
        """1 - q <= -ln q."""
        return 1 - self.value


class Digits:
    """V modulo 2^bits for a geometric V: independent truncated geometric digits, the lowest first.

    A truncated table has T(k) = q^k (1 - q^(B - k)) / (1 - q^B), B a power of two of at least 4. Let q = (a/c)^u in
    lowest terms and n = u B: c^(n/2) + a^(n/2), a sum of two coprime squares above 2, has an odd prime factor, and that
    divides the denominator c^n - a^n but not the numerator a^(uk) (c^(n-uk) - a^(n-uk)). So no T(k) is a multiple of
    any 2^-b, and balls decide every floor.

    Parameters
    ----------
    ratio : Ratio
        q.
    bits : int
        At least 2.
    """

    def __init__(self, ratio: Ratio, bits: int) -> None:
        count = -(-bits // _WIDTH)
        widths = [bits // count + (i < bits % count) for i in range(count)]
        self.bits = bits
        self._tables: list[tuple[int, int, LazyTable]] = []
        below = 0
        for width in widths:
            table = LazyTable(BallSurvival(_truncated(ratio, 1 << width, 1 << below)))
            self._tables.append((below, width, table))
            below += width

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` numbers below 2^bits: int64 up to 62 bits, Python integers beyond."""
        total: NDArray[Any] = np.zeros(count, dtype=np.int64)
        limb, start = total, 0  # digits gather in 64 bits before they go to Python integers
        for below, width, table in self._tables:
            if below + width - start > _NARROW:
                total = total.astype(object) + (limb.astype(object) << start) if start else limb.astype(object)
                limb, start = np.zeros(count, dtype=np.int64), below
            limb += table.draw(count, randomness).astype(np.int64) << (below - start)
        return total.astype(object) + (limb.astype(object) << start) if start else limb


def _truncated(ratio: Ratio, base: int, unit: int) -> Any:
    """T(k) of a geometric of ratio q^unit truncated to 0..base - 1."""

    def balls(_: int) -> list[arb]:
        powers, complements = ratio.powers(unit, base), ratio.complements(unit, base)
        return [powers[k] * complements[base - k] / complements[base] for k in range(1, base)]

    return balls


class GeometricDraws:
    """Draws of j >= 0 with probability (1 - q) q^j: int64 where the rate is at least 2^-51, Python integers below.

    The kind of number follows from the ratio. A draw beyond 62 bits of a law that is kept in int64 has a probability
    below e^-1000; it would turn its array into Python integers and not be wrong.
    """

    def __init__(self, ratio: Ratio) -> None:
        shift = 0
        while ratio.rate * (1 << shift) < _LEAST_RATE:
            shift += 1
        shift = max(shift, 2) if shift else 0
        self._low = Digits(ratio, shift) if shift else None
        self._shift = shift
        self._length = int(_REACH / (ratio.rate * (1 << shift))) + 1
        unit, length = 1 << shift, self._length
        # T(k) = q^(unit k) for k = 1..length: the last outcome says "at least length"
        self._high = LazyTable(BallSurvival(lambda _: ratio.powers(unit, length)[1:]))
        self.bits = shift + 16  # a draw needs more with a probability below e^-1000
        self.wide = self.bits > _NARROW

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` independent draws."""
        low = self._low.draw(count, randomness) if self._low is not None else None
        high = self._high.draw(count, randomness).astype(np.int64)
        leaving = np.flatnonzero(high == self._length)
        while leaving.size:
            more = self._high.draw(leaving.size, randomness)
            high[leaving] += more
            leaving = leaving[more == self._length]
        if low is None:
            return high
        if self.wide or (count and int(high.max()).bit_length() + self._shift > _NARROW):
            return low.astype(object) + (high.astype(object) << self._shift)
        return low + (high << self._shift)


class TruncatedDraws:
    """Draws of 0 <= j < below with probability proportional to q^j.

    Up to a few hundred outcomes one table; beyond, a geometric modulo `below` where that is short beside 1/rate,
    or else the digits of the next power of two, drawn again when they reach `below`: at least half of them do not.
    """

    def __init__(self, ratio: Ratio, below: int) -> None:
        self._below = below
        self._table = self._digits = self._geometric = None
        if below <= 1 << _WIDTH:
            self._table = LazyTable(BallSurvival(_truncated(ratio, below, 1), _exact_truncated(ratio, below)))
        elif ratio.rate * below >= 1:
            self._geometric = geometric_draws(ratio)
        else:
            self._digits = Digits(ratio, (below - 1).bit_length())
        self.wide = below > 1 << _NARROW

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` independent draws."""
        if self._table is not None:
            return self._table.draw(count, randomness).astype(np.int64)
        if self._geometric is not None:
            drawn = self._geometric.draw(count, randomness)
            reduced = (drawn.astype(object) if self.wide else drawn) % self._below
            return reduced if self.wide else reduced.astype(np.int64)
        assert self._digits is not None
        return draw_again(self._digits.draw, lambda drawn: drawn < self._below, count, randomness)


def _exact_truncated(ratio: Ratio, below: int) -> Any:
    """T(k) of a rational ratio in integers: with a bound that is no power of two it may be dyadic."""
    if not isinstance(ratio, RationalRatio):
        return None
    a, c = ratio.value.numerator, ratio.value.denominator
    return lambda: RationalSurvival([a**j * c ** (below - 1 - j) for j in range(below)])


def draw_again(draw: Any, accepted: Any, count: int, randomness: Randomness) -> NDArray[Any]:
    """`count` outcomes of `draw`, each drawn until it is accepted."""
    outcomes = draw(count, randomness)
    refused = np.flatnonzero(~accepted(outcomes).astype(bool))
    outcomes = outcomes.copy() if refused.size else outcomes  # words as they were read are not writable
    while refused.size:
        again = draw(refused.size, randomness)
        outcomes[refused] = again
        refused = refused[~accepted(again).astype(bool)]
    return outcomes


@lru_cache(maxsize=32)
def geometric_draws(ratio: Ratio) -> GeometricDraws:
    """`GeometricDraws`, its tables kept for the next call."""
    return GeometricDraws(ratio)


@lru_cache(maxsize=32)
def truncated_draws(ratio: Ratio, below: int) -> TruncatedDraws:
    """`TruncatedDraws`, its tables kept for the next call."""
    return TruncatedDraws(ratio, below)
