"""The reduced cost: what a cost and all witnesses with their multipliers add up to at every lattice point.

A witness adds what it is (a linear function with a side, pairs of points, an event and its shift) and knows nothing
of the others. Then `total` writes out ``d = cost - sum y h + ...`` over one denominator, with polynomials beyond the
tables. Every e^epsilon is its upper end E_hi here: a pair or an event then never claims more than its constraint does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from dpopt.arithmetic import Enclosure
from dpopt.checker.effort import afford, common_work
from dpopt.checker.reading import MAX_POINTS, brief
from dpopt.checker.sums import values_bits, values_work
from dpopt.errors import CertificateError
from dpopt.lattice_function import LatticeFunction, Polynomial
from dpopt.patience import patiently
from dpopt.work import STEP, Work

__all__ = ["ReducedCost", "Total", "Weights"]


@dataclass(frozen=True)
class Weights:
    """Integers over 2^scale at ``start, start + 1, ...``, constant outside."""

    start: int
    table: Sequence[int]
    left: int
    right: int

    def spread(self, first: int, count: int) -> list[int]:
        """The values at ``first, first + 1, ...``.

        >>> Weights(0, [5, 6], 1, 2).spread(-2, 6)
        [1, 1, 5, 6, 2, 2]
        """
        before = min(max(self.start - first, 0), count)
        after = min(max(first + count - self.start - len(self.table), 0), count)
        middle = self.table[max(first - self.start, 0) : max(first + count - self.start, 0)]
        return [self.left] * before + list(middle) + [self.right] * after


@dataclass(frozen=True)
class Total:
    """The reduced cost d: ``values[k - low] / unit`` at index k, polynomials in k left and right of the values.

    Every feasible law p has ``objective >= constant + sum d p``.
    """

    constant: Fraction
    low: int
    values: list[int]
    unit: int
    left: Polynomial
    right: Polynomial


class ReducedCost:
    """Collects what the objective and the witnesses add.

    Parameters
    ----------
    enclosures : mapping
        The enclosure of e^epsilon, at `precision` bits, for every epsilon that a witness may name.
    precision, scale : int
        Multipliers are integers over 2^scale.
    """

    def __init__(self, enclosures: Mapping[Fraction, Enclosure], precision: int, scale: int) -> None:
        self.one = 1 << scale
        self.fine = 1 << precision  # the unit of `growth` is its inverse
        self._upper = {epsilon: int(ends.upper * self.fine) for epsilon, ends in enclosures.items()}
        self._amounts: list[Fraction] = []
        self._functions: list[tuple[LatticeFunction, Fraction]] = []
        self._pairs: list[tuple[Sequence[tuple[int, int, int]], int]] = []
        self._events: list[tuple[Weights, int, int]] = []

    def growth(self, epsilon: Fraction) -> int:
        """E_hi in units of 2^-precision."""
        return self._upper[epsilon] if epsilon else self.fine

    # --- what is added

    def add_constant(self, amount: Fraction) -> None:
        """A number that every feasible law pays."""
        self._amounts.append(amount)

    def add_function(self, function: LatticeFunction, factor: Fraction) -> None:
        """`factor` times E of a function."""
        self._functions.append((function, factor))

    def add_pairs(self, pairs: Sequence[tuple[int, int, int]], epsilon: Fraction) -> None:
        """For each (i, j, y): ``y (p(i) - e^epsilon p(j))``, which no feasible law has above 0."""
        self._pairs.append((pairs, self.growth(epsilon)))

    def add_event(self, weights: Weights, shift: int, epsilon: Fraction) -> None:
        """``sum over k of w(k) (p(k) - e^epsilon p(k - shift))``."""
        self._events.append((weights, shift, self.growth(epsilon)))

    # --- the sum

    def total(self, window: tuple[int, int] | None, points: Iterable[int]) -> Total:
        """d over the window, or, on all integers, over all tables and `points`, beyond which it is a polynomial."""
        low, high = window or self._hull(points)
        count, small = high - low + 1, self.fine * self.one  # 1 / small is the unit of pairs and events
        afford(common_work(amount.denominator for amount in self._amounts), "takes the sum of the witnesses' sides")
        constant = sum(self._amounts, Fraction(0))
        denominators = [f.denominator * factor.denominator for f, factor in self._functions]
        afford(common_work(denominators), "takes the common denominator of the witnesses' functions")
        unit = lcm(small, *denominators)
        afford(self._work(low, high, unit), f"takes the reduced costs of {brief(count)} points")
        values = [0] * count
        for pairs, growth in self._pairs:
            for i, j, y in pairs:
                if low <= i <= high:  # a symmetric pair may have one point outside a window
                    values[i - low] += y * self.fine
                if low <= j <= high:
                    values[j - low] -= y * growth
        for weights, shift, growth in patiently(self._events, every=1):
            here, ahead = weights.spread(low, count), weights.spread(low + shift, count)
            values = [v + self.fine * w - growth * x for v, w, x in zip(values, here, ahead, strict=True)]
        values = [v * (unit // small) for v in values]
        for function, factor in patiently(self._functions, every=1):
            numerators, denominator = function.integers(low, high)
            weight = factor.numerator * (unit // (denominator * factor.denominator))
            values = [v + n * weight for v, n in zip(values, numerators, strict=True)]
        left, right = ([(getattr(f, side), factor) for f, factor in self._functions] for side in ("left", "right"))
        for weights, _, growth in self._events:
            left.append(((Fraction(weights.left),), Fraction(self.fine - growth, small)))
            right.append(((Fraction(weights.right),), Fraction(self.fine - growth, small)))
        return Total(constant, low, values, unit, _combined(left), _combined(right))

    def _work(self, low: int, high: int, unit: int) -> Work:
        """One value a point, to which every function and every event adds, and two that every pair changes."""
        count, small = high - low + 1, (self.fine * self.one).bit_length()
        longest = [values_bits(f, low, high) + factor.numerator.bit_length() for f, factor in self._functions]
        work = Work.on_integers(2 * count, unit.bit_length() + max(longest, default=0))
        for function, _ in self._functions:
            work = work.plus(values_work(function, low, high)._replace(bytes=0))
            work = work.plus(Work(count * (STEP + unit.bit_length() * values_bits(function, low, high) // 50)))
        size = max((max(len(f.left), len(f.right)) for f, _ in self._functions), default=0)
        below = unit.bit_length()
        ends = size * len(self._functions) * (4 * STEP + (below + max(longest, default=0)) * below // 40)
        additions = 3 * count * len(self._events) + 2 * sum(len(pairs) for pairs, _ in self._pairs)
        most = max((abs(y).bit_length() for pairs, _ in self._pairs for _, _, y in pairs), default=0)
        for weights, _, _ in self._events:
            most = max(most, weights.left.bit_length(), weights.right.bit_length(), *map(int.bit_length, weights.table))
        held = Work.on_integers(3 * count if additions else 0, small + most)
        return work.plus(Work(additions * (STEP + small * 3 + most) + ends, held.bytes))

    def _hull(self, points: Iterable[int]) -> tuple[int, int]:
        """The least range beyond which nothing has a table entry, so that d is a polynomial on either side."""
        firsts, lasts = [0], [-1]
        for function, _ in self._functions:
            firsts.append(function.start)
            lasts.append(function.end - 1)
        for weights, shift, _ in self._events:
            firsts += [weights.start, weights.start - shift]
            lasts += [weights.start + len(weights.table) - 1 - by for by in (0, shift)]
        named = [*points, *(k for pairs, _ in self._pairs for i, j, _ in pairs for k in (i, j))]
        low, high = min(firsts + named), max(lasts + named)
        if high - low >= MAX_POINTS:
            raise CertificateError(f"witnesses: span more than {MAX_POINTS} lattice points")
        return low, high


def _combined(parts: Iterable[tuple[Polynomial, Fraction]]) -> Polynomial:
    """The sum of polynomials, each times its factor."""
    result: list[Fraction] = []
    for polynomial, factor in parts:
        result += [Fraction(0)] * (len(polynomial) - len(result))
        for degree, coefficient in enumerate(polynomial):
            result[degree] += coefficient * factor
    while result and result[-1] == 0:
        result.pop()
    return tuple(result)
