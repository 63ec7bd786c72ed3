"""How far a table is from its ideal pmf, point by point, in integers.

Both distances are sums over the points of convex functions of the count. Total variation is rational: its cost is
an exact integer in units of 1/(2 K W). The Kullback-Leibler divergence is a sum of q ln(q/p) - q + p (the last two
cancel over the support), each term >= 0 and irrational unless q = p: its cost is a floor, so that the true value lies
within one unit above. The units are fine enough, 2^-(2 log2 K + 64), for terms of the order of 1/K^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cache

from flint import arb

from dpopt.arithmetic import Enclosure, ball, floor_scaled
from dpopt.pmf import Pmf

__all__ = ["Distance", "DivergenceCost", "TableCost", "VariationCost", "table_cost"]

_GUARD_BITS = 64


class Distance(StrEnum):
    """The distance of a table q from the ideal pmf p that is made least.

    TOTAL_VARIATION: half the sum of |q - p|. KULLBACK_LEIBLER: the sum of q ln(q/p), in nats.
    """

    TOTAL_VARIATION = "total-variation"
    KULLBACK_LEIBLER = "kullback-leibler"


class TableCost:
    """The cost of a count at a point, as an integer.

    Attributes
    ----------
    unit : Fraction
        What one unit is worth.
    scale : int
        Units for about one key more or less: what multipliers are measured in.
    slack : int
        The true cost of a point lies in [cost, cost + slack].
    """

    unit: Fraction
    scale: int
    slack: int

    def __init__(self, ideal: Pmf, key_size: int) -> None:
        self.weights, self.total, self.key_size = ideal.weights, sum(ideal.weights), key_size
        self.at = cache(self._at)

    def _at(self, place: int, count: int) -> int:
        raise TypeError(f"{type(self).__name__} does not say what a count costs")

    def value(self, counts: Sequence[int]) -> Enclosure:
        """The distance of a whole table, enclosed."""
        units = sum(self.at(place, count) for place, count in enumerate(counts))
        exact = sum(count * self.total == self.weights[i] * self.key_size for i, count in enumerate(counts))
        return Enclosure(units * self.unit, (units + self.slack * (len(counts) - exact)) * self.unit)


class VariationCost(TableCost):
    """Total variation, exact.

    >>> cost = VariationCost(Pmf(-1, (1, 1, 1)), 4)
    >>> str(cost.value((1, 2, 1)).upper)
    '1/6'
    """

    def __init__(self, ideal: Pmf, key_size: int) -> None:
        super().__init__(ideal, key_size)
        self.unit, self.scale, self.slack = Fraction(1, 2 * key_size * self.total), self.total, 0

    def _at(self, place: int, count: int) -> int:
        return abs(count * self.total - self.weights[place] * self.key_size)


class DivergenceCost(TableCost):
    """Kullback-Leibler divergence of the table from the ideal pmf, enclosed.

    >>> cost = DivergenceCost(Pmf(-1, (1, 1, 1)), 4)
    >>> round(float(cost.value((1, 2, 1))), 12)  # (1/2) ln(3/4) + (1/2) ln(3/2)
    0.058891517828
    """

    def __init__(self, ideal: Pmf, key_size: int) -> None:
        super().__init__(ideal, key_size)
        self.bits = 2 * key_size.bit_length() + _GUARD_BITS
        self.unit, self.scale, self.slack = Fraction(1, 1 << self.bits), (1 << self.bits) // key_size**2, 1

    def _at(self, place: int, count: int) -> int:
        if count * self.total == self.weights[place] * self.key_size:
            return 0
        q, p = Fraction(count, self.key_size), Fraction(self.weights[place], self.total)
        if count == 0:
            return int(p * (1 << self.bits))

        def term() -> arb:
            return ball(q) * ball(q / p).log() - ball(q - p)

        return floor_scaled(term, self.bits)


def table_cost(distance: Distance, ideal: Pmf, key_size: int) -> TableCost:
    """The cost of a distance for a pmf and a key size."""
    kind = VariationCost if distance is Distance.TOTAL_VARIATION else DivergenceCost
    return kind(ideal, key_size)
