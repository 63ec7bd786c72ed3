"""Privacy losses in order: what decides a privacy profile, sorted once.

For one shift s the hockey-stick divergence is f(E) = sum_k (p(k) - E p(k - s))+ with E = e^epsilon (ABS paper,
equations (12)-(20)): convex, falling and piecewise linear in E, with a breakpoint at each ratio p(k) / p(k - s). Sorted
by ratio once, with running sums of integer weights, f costs a bisection at each E. Ratios are ordered by the integers
``floor(2^bits a / b)``. The ends of the enclosure of e^epsilon are multiples of 2^-bits, and such a multiple never
separates two ratios with the same floor, so that the order is decided where it matters, without any float.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, cmp_to_key
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from dpopt.errors import InputError
from dpopt.pmf import Pmf, extension_bits
from dpopt.privacy.enclosed import is_long
from dpopt.privacy.shifts import deciding_shifts, explicit_weights
from dpopt.searching import first_that
from dpopt.work import Work, require

__all__ = ["Curve", "Losses", "sorting_work"]

_KEPT = 1_000_000  # pairs that are remembered; beyond, their order is built anew for each question


# --- one shift in one direction --------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """f(E) = sum of (a - E b)+ over the pairs of one shift in one direction, in units of weight.

    ``keys`` are the floors of 2^bits a/b over the pairs with a > b > 0, ascending; ``masses[i]`` is the sum of a from
    pair i on, the pairs with b = 0 included, and ``moved[i]`` the sum of b.
    """

    bits: int
    keys: list[int]
    masses: list[int]
    moved: list[int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], bits: int) -> Curve:
        """The curve of pairs (a, b); those with a <= b never count, since E >= 1."""
        rising = [pair for pair in pairs if pair[0] > pair[1]]
        bounded = [pair for pair in rising if pair[1]]
        keys = [(a << bits) // b for a, b in bounded]
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
        floor = sum(a for a, b in rising if not b)
        masses = list(accumulate([bounded[i][0] for i in order], initial=floor))
        moved = list(accumulate([bounded[i][1] for i in order], initial=0))
        return cls(bits, [keys[i] for i in reversed(order)], masses[::-1], moved[::-1])

    @property
    def floor(self) -> int:
        """The limit of f: the mass of the points whose shifted point has none."""
        return self.masses[-1]

    def excess(self, factor: int) -> int:
        """2^bits f(E) at E = factor / 2^bits >= 1, exactly: a pair counts when its ratio is at least E."""
        first = bisect_left(self.keys, factor)
        return (self.masses[first] << self.bits) - factor * self.moved[first]

    def least_factor(self, level: Fraction) -> Fraction:
        """The least E >= 1 with f(E) <= level, exactly, for a level that f reaches."""
        low, wanted = 1 << self.bits, math.floor(level * (1 << self.bits))
        if self.excess(low) <= wanted:
            return Fraction(1)
        high = first_that(
            lambda factor: self.excess(factor) <= wanted, low, self.keys[-1] + 1
        )  # f is at its floor there
        low = high - 1
        # f crosses the level between two neighbouring multiples of 2^-bits: only here do ties need their exact order
        first, last = bisect_left(self.keys, low), bisect_left(self.keys, high)
        mass, moved = self.masses[last], self.moved[last]
        for a, b in self._descending(first, last):
            if (mass * b - a * moved) * level.denominator > level.numerator * b:
                break  # at E = a/b f is still above the level: it meets it on the piece beyond
            mass, moved = mass + a, moved + b
        return (mass - level) / moved

    def _descending(self, first: int, last: int) -> list[tuple[int, int]]:
        """The pairs ``first..last - 1`` by exact ratio, the largest first."""
        pairs = [(self.masses[i] - self.masses[i + 1], self.moved[i] - self.moved[i + 1]) for i in range(first, last)]
        return sorted(pairs, key=cmp_to_key(_falling))


def _falling(pair: tuple[int, int], other: tuple[int, int]) -> int:
    """Negative where the ratio of `pair` is the larger one."""
    return other[0] * pair[1] - pair[0] * other[1]


def sorting_work(pmf: Pmf, shifts: range, bits: int) -> Work:
    """What the curves of all shifts take, each a division and a place in an order for every pair of points.

    All are held where they are few (`_KEPT`), one at a time where they are many.
    """
    directions, pairs = (1 if pmf.is_symmetric else 2), len(pmf.weights) + shifts[-1]
    longest = max(pmf.weights).bit_length() + extension_bits(pmf, shifts[-1]) + bits
    curve = Work.on_integers(pairs, longest, steps=8)
    return Work(directions * len(shifts) * curve.bit_operations, 8 * curve.bytes)


# --- all shifts, both directions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Losses:
    """What decides a profile: the pmf, the largest shift, and the resolution of the ratios."""

    pmf: Pmf
    shift: int
    bits: int

    def __post_init__(self) -> None:
        if is_long(self.pmf, self.shift):
            raise InputError(
                "sensitivity",
                f"is {self.shift} lattice steps, too many for a whole profile of noise with such short tails "
                "(dpopt.delta answers one epsilon at a time; or take a coarser step)",
            )

        require(
            "sensitivity",
            sorting_work(self.pmf, self.shifts, self.bits),
            f"takes the sorted privacy losses of {len(self.shifts)} shifts, up to {self.shifts[-1]} lattice steps",
            "give a coarser step or a smaller sensitivity, or ask dpopt.delta for one epsilon at a time",
        )

    def __iter__(self) -> Iterator[Curve]:
        return iter(self._kept) if self._kept is not None else self._built()

    @cached_property
    def unit(self) -> Fraction:
        """Probability 1 in the unit of the curves."""
        return self._written_out[1] * math.prod(size for size, _ in self._closures)

    @cached_property
    def floor(self) -> Fraction:
        """The largest limit, as a probability."""
        return max(curve.floor for curve in self) / self.unit

    def worst(self, factors: Sequence[int]) -> list[int]:
        """The largest of all curves, times 2^bits, at each E = factor / 2^bits."""
        found = [0] * len(factors)
        for curve in self:
            found = [max(known, curve.excess(factor)) for known, factor in zip(found, factors, strict=True)]
        return found

    def least_factor(self, delta: Fraction) -> Fraction:
        """The least E at which every curve is at most `delta`, exactly."""
        return max(curve.least_factor(delta * self.unit) for curve in self)

    @cached_property
    def shifts(self) -> range:
        """The shifts that can be the worst."""
        return deciding_shifts(self.pmf, self.shift)

    @cached_property
    def _kept(self) -> tuple[Curve, ...] | None:
        directions = 1 if self.pmf.is_symmetric else 2
        size = directions * len(self.shifts) * (len(self.pmf.weights) + self.shifts[-1])
        return tuple(self._built()) if size <= _KEPT else None

    @cached_property
    def _written_out(self) -> tuple[list[int], Fraction]:
        """Integer weights over the core and the last shift on either side, and their total with all that is beyond."""
        _, weights, total = explicit_weights(self.pmf, self.shifts[-1])
        return weights, total

    @cached_property
    def _closures(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """For each side (size, extra): a pair that repeats outward counts 1 + r/(1-r) = (size + extra) / size times."""
        if self.pmf.tails is None:
            return (1, 0), (1, 0)
        ratios = [ratio or Fraction(0) for ratio in (self.pmf.tails.left, self.pmf.tails.right)]
        left, right = [(ratio.denominator - ratio.numerator, ratio.numerator) for ratio in ratios]
        return left, right

    def _built(self) -> Iterator[Curve]:
        for shift in self.shifts:
            here, moved = self._pairs(shift)
            yield Curve.of(zip(here, moved, strict=True), self.bits)
            if not self.pmf.is_symmetric:
                yield Curve.of(zip(moved, here, strict=True), self.bits)

    def _pairs(self, shift: int) -> tuple[list[int], list[int]]:
        """p(k) and p(k - shift) for k from the core's start to `shift` beyond its end; the tails beyond folded in.

        Once k and k - shift both lie where p repeats, a pair repeats with the tail's period and ratio: the first and
        the last period of the pairs stand for all beyond them. The reverse direction has the same pairs, exchanged.
        """
        weights, margin, size = self._written_out[0], self.shifts[-1], len(self.pmf.weights)
        here, moved = weights[margin : margin + size + shift], weights[margin - shift : margin + size]
        if self.pmf.tails is None:
            return here, moved
        (left, left_extra), (right, right_extra) = self._closures
        counts = [left * right] * len(here)
        for i in range(self.pmf.tails.period):
            counts[i] += left_extra * right
            counts[-1 - i] += right_extra * left
        return list(map(mul, here, counts)), list(map(mul, moved, counts))
