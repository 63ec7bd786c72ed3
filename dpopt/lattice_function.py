"""Functions of a lattice index that have a finite exact description: a table, then a polynomial on either side.

Every cost and every linear constraint of dpopt is one of these: |z|, z**2, an indicator, a table with a value
outside, the marginal cost of a Wasserstein distance. That is why sums over geometric tails have closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, lcm

from dpopt.arithmetic import exact_integer
from dpopt.reading import read_numbers

__all__ = ["LatticeFunction", "Polynomial", "evaluate", "geometric_moments", "geometric_sum", "shifted"]

Polynomial = tuple[Fraction, ...]  # coefficients in ascending order; () is zero


def evaluate(polynomial: Polynomial, at: int | Fraction) -> Fraction:
    """The value of `polynomial` at a point (Horner)."""
    value = Fraction(0)
    for coefficient in reversed(polynomial):
        value = value * at + coefficient
    return value


def shifted(polynomial: Polynomial, by: int | Fraction, *, step: int | Fraction = 1) -> Polynomial:
    """The polynomial t -> polynomial(by + step * t)."""
    result = [Fraction(0)] * len(polynomial)
    for degree, coefficient in enumerate(polynomial):
        for power in range(degree + 1):
            result[power] += (
                coefficient * comb(degree, power) * Fraction(by) ** (degree - power) * Fraction(step) ** power
            )
    return tuple(result)


def geometric_sum(polynomial: Polynomial, ratio: Fraction) -> Fraction:
    """The sum over t >= 0 of ``ratio**t * polynomial(t)`` for 0 <= ratio < 1, in closed form.

    Examples
    --------
    >>> geometric_sum((Fraction(0), Fraction(1)), Fraction(1, 2))
    Fraction(2, 1)
    """
    sums = geometric_moments(len(polynomial), ratio)
    return sum((c * s for c, s in zip(polynomial, sums, strict=True)), Fraction(0))


def geometric_moments(count: int, ratio: Fraction) -> list[Fraction]:
    """S_j, the sum over t >= 0 of ``ratio**t t**j``, for the first `count` powers j and 0 <= ratio < 1.

    S_0 = 1/(1-ratio) and (1-ratio) S_j = ratio * sum_{i<j} C(j,i) S_i. With ratio = n/d and q = d - n this is the
    integer T_j = S_j q^(j+1), which takes no common denominators on its way.

    Examples
    --------
    >>> geometric_moments(3, Fraction(1, 2))
    [Fraction(2, 1), Fraction(2, 1), Fraction(6, 1)]
    """
    ours, rest = ratio.numerator, ratio.denominator - ratio.numerator
    raised = [1]  # powers of q
    sums: list[int] = []
    for power in range(count):
        terms = (comb(power, i) * sums[i] * raised[power - 1 - i] for i in range(power))
        sums.append(ours * sum(terms) if power else ratio.denominator)
        raised.append(raised[-1] * rest)
    return [Fraction(total, raised[power + 1]) for power, total in enumerate(sums)]


def _numbers(values: Sequence[Fraction | int], argument: str) -> tuple[Fraction, ...]:
    """What was given as exact numbers; quickly where it is that already, since functions are made by the thousand."""
    if type(values) is tuple and set(map(type, values)) <= {Fraction, int}:
        return tuple(v if type(v) is Fraction else Fraction(v) for v in values)
    return read_numbers(values, argument)


def _trim(polynomial: Iterable[Fraction]) -> Polynomial:
    coefficients = list(polynomial)
    while coefficients and coefficients[-1] == 0:
        coefficients.pop()
    return tuple(coefficients)


@dataclass(frozen=True)
class LatticeFunction:
    """An exact function of the lattice index k.

    Parameters
    ----------
    start : int
        Index of the first entry of `table`.
    table : tuple of Fraction
        Values at ``start, start + 1, ...``; may be empty.
    left, right : tuple of Fraction
        Polynomials in k (ascending coefficients) for ``k < start`` and ``k >= start + len(table)``.

    Examples
    --------
    >>> absolute = LatticeFunction(0, (), left=(0, -1), right=(0, 1))
    >>> absolute(-3), (absolute + absolute.scaled(2))(2)
    (Fraction(3, 1), Fraction(6, 1))
    """

    start: int = 0
    table: tuple[Fraction, ...] = ()
    left: Polynomial = ()
    right: Polynomial = ()

    def __post_init__(self) -> None:
        if type(self.start) is not int:
            object.__setattr__(self, "start", exact_integer(self.start, "start"))
        object.__setattr__(self, "table", _numbers(self.table, "table"))
        object.__setattr__(self, "left", _trim(_numbers(self.left, "left")))
        object.__setattr__(self, "right", _trim(_numbers(self.right, "right")))

    @classmethod
    def constant(cls, value: Fraction | int) -> LatticeFunction:
        """The function that is `value` everywhere."""
        return cls(0, (), (Fraction(value),), (Fraction(value),))

    @classmethod
    def polynomial(cls, coefficients: Sequence[Fraction | int]) -> LatticeFunction:
        """The same polynomial on both sides."""
        return cls(0, (), tuple(map(Fraction, coefficients)), tuple(map(Fraction, coefficients)))

    @property
    def end(self) -> int:
        """The first index on the right of the table."""
        return self.start + len(self.table)

    def __call__(self, k: int) -> Fraction:
        if k < self.start:
            return evaluate(self.left, k)
        if k >= self.end:
            return evaluate(self.right, k)
        return self.table[k - self.start]

    def values(self, low: int, high: int) -> list[Fraction]:
        """The exact values at ``low..high``."""
        numerators, denominator = self.integers(low, high)
        return [Fraction(n, denominator) for n in numerators]

    def integers(self, low: int, high: int) -> tuple[list[int], int]:
        """Numerators of the values at ``low..high`` over one common denominator."""
        denominator = self.denominator
        left = [int(c * denominator) for c in reversed(self.left)]
        right = [int(c * denominator) for c in reversed(self.right)]
        table = self.numerators
        first, last = max(low, self.start), min(high + 1, self.end)
        numerators = _horner(left, range(low, min(high + 1, self.start)))
        if first < last:
            numerators += table[first - self.start : last - self.start]
        numerators += _horner(right, range(max(low, self.end), high + 1))
        return numerators, denominator

    @cached_property
    def denominator(self) -> int:
        return lcm(*(v.denominator for v in (*self.table, *self.left, *self.right)))

    @cached_property
    def numerators(self) -> list[int]:
        return [v.numerator * (self.denominator // v.denominator) for v in self.table]

    def __add__(self, other: LatticeFunction) -> LatticeFunction:
        return self._combine(other, lambda a, b: a + b)

    def __sub__(self, other: LatticeFunction) -> LatticeFunction:
        return self._combine(other, lambda a, b: a - b)

    def _combine(self, other: LatticeFunction, join: Callable[[Fraction, Fraction], Fraction]) -> LatticeFunction:
        start, end = min(self.start, other.start), max(self.end, other.end)
        pairs = zip(self.values(start, end - 1), other.values(start, end - 1), strict=True)
        table = tuple(join(a, b) for a, b in pairs)
        return LatticeFunction(start, table, _join(self.left, other.left, join), _join(self.right, other.right, join))

    def scaled(self, factor: Fraction | int) -> LatticeFunction:
        """The function times `factor`."""
        factor = Fraction(factor)
        return LatticeFunction(
            self.start,
            tuple(v * factor for v in self.table),
            tuple(c * factor for c in self.left),
            tuple(c * factor for c in self.right),
        )

    def mirrored(self) -> LatticeFunction:
        """The function k -> f(-k)."""
        left = shifted(self.right, 0, step=-1)
        right = shifted(self.left, 0, step=-1)
        return LatticeFunction(1 - self.end, tuple(reversed(self.table)), left, right)

    def equals(self, other: LatticeFunction, *, scale: int = 1) -> bool:
        """Whether ``self(k) == scale * other(k)`` for every integer k."""
        start, end = min(self.start, other.start), max(self.end, other.end)
        other = other.scaled(scale)
        same_tails = self.left == other.left and self.right == other.right
        return same_tails and self.values(start, end - 1) == other.values(start, end - 1)

    @cached_property
    def is_even(self) -> bool:
        """Whether f(-k) = f(k) for all k."""
        return self.equals(self.mirrored())

    @cached_property
    def is_odd(self) -> bool:
        """Whether f(-k) = -f(k) for all k."""
        return self.equals(self.mirrored(), scale=-1)

    @property
    def outward(self) -> tuple[Polynomial, Polynomial]:
        """The two polynomials, left and right, as functions of the distance from 0."""
        return tuple(c * (-1) ** i for i, c in enumerate(self.left)), self.right

    @property
    def reach(self) -> int:
        """The largest |k| at which the function may differ from its two polynomials."""
        return max(abs(self.start), abs(self.end))

    def tail_sum(self, first: int, step: int, ratio: Fraction) -> Fraction:
        """The sum over t >= 0 of ``ratio**t * self(first + t * step)``, for a step of either sign, 0 <= ratio < 1."""
        count = 0  # explicit terms, until the progression has left the table for good
        if step > 0 and first < self.end:
            count = -(-(self.end - first) // step)
        elif step < 0 and first >= self.start:
            count = (first - self.start) // -step + 1
        last = first + count * step
        side = self.right if step > 0 else self.left
        closed = geometric_sum(shifted(side, last, step=step), ratio)
        if count == 0:
            return closed
        numerator, denominator, unit = ratio.numerator, ratio.denominator, self.denominator
        total, scale = 0, 1  # integer Horner from the far end: the partial sum is total / scale / unit
        for t in range(count - 1, -1, -1):
            if t < count - 1:
                scale *= denominator
            total = total * numerator + int(self(first + t * step) * unit) * scale
        return Fraction(total, unit * scale) + ratio**count * closed

    def block_tail_sum(self, weights: Sequence[int], first: int, step: int, ratio: Fraction) -> Fraction:
        """The sum over i and t >= 1 of ``weights[i] * ratio**t * self(first + i + t * step)``.

        A block of a pmf's core with everything that a geometric tail makes of it. Where the tail has left the table,
        a polynomial's sum needs the moments of the block only.

        Examples
        --------
        >>> LatticeFunction.polynomial((0, 1)).block_tail_sum((1,), 0, 1, Fraction(1, 2))
        Fraction(2, 1)
        """
        last = first + len(weights) - 1
        outside = first + step >= self.end if step > 0 else last + step < self.start
        if not outside and (self.table or self.left != self.right):
            sums = (w * self.tail_sum(first + i + step, step, ratio) for i, w in enumerate(weights) if w)
            return ratio * sum(sums, Fraction(0))
        polynomial = self.right if step > 0 else self.left
        size = len(polynomial)
        moments = [sum(w * k**q for k, w in enumerate(weights, first)) for q in range(size)]
        powers = [moment - (p == 0) for p, moment in enumerate(geometric_moments(size, ratio))]
        total = Fraction(0)
        for p in range(size):  # what has the ratio's long denominator comes in once a power
            part = sum((polynomial[q] * (comb(q, p) * moments[q - p]) for q in range(p, size)), Fraction(0))
            total += powers[p] * (part * step**p)
        return total


def _horner(descending: Sequence[int], points: range) -> list[int]:
    if not descending:
        return [0] * len(points)
    if len(descending) == 1:
        return [descending[0]] * len(points)
    if len(descending) == 2:
        slope, level = descending
        return [slope * k + level for k in points]
    if len(descending) == 3:
        square, slope, level = descending
        return [(square * k + slope) * k + level for k in points]
    values = []
    for k in points:
        value = 0
        for coefficient in descending:
            value = value * k + coefficient
        values.append(value)
    return values


def _join(a: Polynomial, b: Polynomial, join: Callable[[Fraction, Fraction], Fraction]) -> Polynomial:
    size = max(len(a), len(b))
    pad_a = (*a, *(Fraction(0),) * (size - len(a)))
    pad_b = (*b, *(Fraction(0),) * (size - len(b)))
    return tuple(join(x, y) for x, y in zip(pad_a, pad_b, strict=True))
