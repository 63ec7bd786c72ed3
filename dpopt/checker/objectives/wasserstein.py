"""The Wasserstein distance W1 between an input X and X + Z, and its relaxation over fewer cuts.

W1 is the step times the sum over all cuts k of ``abs(F_x(k) - F_{x+Z}(k))``. Beyond the input's range a..b the signs
are known, and these cuts are the expectation of an outer cost. A cut within is at least its slope in -1..1 times the
difference: the witness is one slope for each of the cuts a..b-1, from the first on, 0 for those that it leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor, lcm
from typing import Any, Self

from dpopt.arithmetic import Enclosure
from dpopt.checker.effort import afford, gcd_work, product_work
from dpopt.checker.inputs import Input, read_input
from dpopt.checker.lattice import table_work
from dpopt.checker.law import Law
from dpopt.checker.objectives.expected_cost import Cost
from dpopt.checker.reading import MAX_POINTS, read_integer, read_integers, read_object, read_rational, reject
from dpopt.checker.reduced_cost import ReducedCost
from dpopt.checker.stated import Enclosures, Objective, Setting, objective
from dpopt.checker.sums import convolution, convolution_work, expected, short, tail_work
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.patience import patiently
from dpopt.work import STEP, Work

# --- the distance --------------------------------------------------------------------------------------------------


@objective("min-wasserstein")
@dataclass(frozen=True)
class _MinWasserstein(Objective):
    source: Input
    step: Fraction

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type", "input"))
        return cls(read_input(data["input"], f"{where}.input", setting.lattice), setting.lattice.step)

    def value(self, law: Law, enclosures: Enclosures) -> Enclosure:
        return short(self.step * _distance(law, self.source))

    def add_cost(self, cost: ReducedCost) -> None:
        """The cuts outside the input's range; those within cost at least 0."""
        afford(costs_work(self.source), f"takes the costs of {self.source.width} cuts")
        cost.add_function(outer_cost(self.source), self.step)

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> _Slopes:
        """``slopes`` from the cut at ``start``, which is the input's first point."""
        read_object(data, where, ("of", "start", "slopes"))
        if read_integer(data["start"], f"{where}.start") != self.source.start:
            reject(f"{where}.start", f"must be the input's first point, index {self.source.start}")
        slopes = read_integers(data["slopes"], f"{where}.slopes", -one, one, self.source.width)
        return _Slopes(self.source, slopes, self.step)


@dataclass(frozen=True)
class _Slopes:
    """Slopes in -1..1, as integers over 2^scale: a potential of Lipschitz constant 1."""

    source: Input
    slopes: Sequence[int]
    step: Fraction
    key: str = "slopes"

    def add_to(self, cost: ReducedCost) -> None:
        """Add j -> ``sum over the cuts k of slope_k (F_x(k) - F_x(k - j))``, each at most the cut's absolute value."""
        work = table_work(2 * self.source.width, 2 * self.source.total.bit_length() + cost.one.bit_length())
        afford(work, f"takes the costs of {self.source.width} cuts with their slopes")
        cost.add_function(inner_cost(self.source, self.slopes, cost.one), self.step)


def outer_cost(source: Input) -> LatticeFunction:
    """j -> E(a - j - X)+ + E(X + j - b)+ for an input X on a..b: the cuts outside a..b when Z = j."""
    total, width, mean = source.total, source.width, source.mean
    rising = [0, *accumulate(accumulate(reversed(source.weights)))]  # E(X + j - b)+ at j = 0, 1, ..., times total
    falling = [0, *accumulate(source.below)]  # E(a - j - X)+ at j = 0, -1, ..., times total
    table = [*reversed(falling[1:width]), *rising[:width]]
    entries = tuple(Fraction(v, total) for v in table)
    return LatticeFunction(1 - width if width else 0, entries, (-mean, Fraction(-1)), (mean - width, Fraction(1)))


def inner_cost(source: Input, slopes: Sequence[int], one: int) -> LatticeFunction:
    """j -> sum over the cuts k in a..b-1 of ``slope_k / one * (F_x(k) - F_x(k - j))``."""
    total, width = source.total, source.width
    unit = total * one
    padded = [*slopes, *(0,) * (width - len(slopes))]
    own = sum(s * f for s, f in zip(padded, source.below, strict=False))
    # sum_k s_k F(k - j) grows by step(j) = sum_k s_k x(k - j) from j + 1 to j, and is 0 from j = width on
    steps = convolution(padded, source.weights[::-1])  # steps[j + width] is step(j)
    sums = list(accumulate(reversed(steps)))[::-1]  # sums[j + width] is sum_k s_k F(k - j)
    table = tuple(Fraction(own - sums[j + width], unit) for j in range(1 - width, width))
    return LatticeFunction(1 - width, table, (Fraction(own - sum(padded) * total, unit),), (Fraction(own, unit),))


def _distance(law: Law, source: Input) -> Fraction:
    """The sum over all cuts k of ``abs(F_x(k) - F_{x+Z}(k))``, in lattice steps.

    Within the input's range ``F_{x+Z}(k) = sum_j p(j) F_x(k - j)`` is the flow of the core and of both tails, the left
    one mirrored.
    """
    afford(distance_work(law, source), f"takes a distance over the {source.width + 1} points of the input")
    outer = expected(law, outer_cost(source))
    mass, period = source.total, law.period
    cdf = source.below[:-1]
    survival = [mass - c for c in reversed(cdf)]  # the mirrored input's distribution function
    core, _ = _flow(law.weights, law.start, None, cdf, mass)
    right, right_unit = _flow(law.weights[-period:], law.end - period + 1, law.right, cdf, mass)
    left, left_unit = _flow(law.weights[:period][::-1], 1 - law.start - period, law.left, survival, mass)
    unit = lcm(right_unit, left_unit, law.total.denominator, law.left_mass.denominator)
    left_mass = int(unit * law.left_mass) * mass  # all of it, less what survives a cut
    whole, right_weight, left_weight = int(unit * law.total), unit // right_unit, unit // left_unit
    cuts = 0
    for own, c, r, s in zip(patiently(cdf), core, right, reversed(left), strict=True):
        cuts += abs(own * whole - c * unit - r * right_weight - left_mass + s * left_weight)
    return outer + Fraction(cuts, whole * mass)


def costs_work(source: Input) -> Work:
    """A table of the input's length to either side."""
    return table_work(2 * source.width, 2 * source.total.bit_length())


def distance_work(law: Law, source: Input) -> Work:
    """The outer cost and its expectation, the flow of either tail through all cuts, and what meets at each cut."""
    width, mass, longest = source.width, source.total.bit_length(), max(law.weights).bit_length()
    work, met = costs_work(source), 0
    for ratio, outward in ((law.right, -law.end), (law.left, law.start)):
        count = width + outward + law.period
        if ratio and count > 0:
            bits = -(-count // law.period) * ratio.denominator.bit_length()
            numbers = Work.on_integers(2 * count, bits + longest + mass, steps=3)
            numbers = numbers.plus(Work(count * (25 * STEP + 2 * bits)))  # the outer cost's terms
            work = work.plus(numbers).plus(tail_work(law, 2 * mass + longest, bits, 2, count))
            work = work.plus(Work(count * bits * ratio.denominator.bit_length() // 25 + product_work(bits)))
            met += bits
    work = work.plus(Work(gcd_work(met) + product_work(met), width * met // 8))
    core = convolution_work(len(law.weights) + width, longest + mass)
    return work.plus(core).plus(Work(width * (4 * STEP + 4 * met)))


def _flow(
    block: Sequence[int], first: int, ratio: Fraction | None, cdf: Sequence[int], mass: int
) -> tuple[list[int], int]:
    """At the cuts k = 0, 1, ... of an input: ``sum_j p(j) F(k - j)`` as integers, and the denominator of these.

    F is `cdf` from 0 on, 0 before and `mass` after it. Without a ratio p is the block itself, at ``first, first + 1,
    ...``; with one, p is what continues the block to the right: by ratio, ratio^2, ... every len(block) places.
    """
    width, period = len(cdf), len(block)
    lump = 0
    if ratio is None and first < -width:  # these points move the whole input beyond every cut
        lump, block, first = sum(block[: -width - first]) * mass, block[-width - first :], -width
    count = width - first
    if count <= 0:
        return [lump] * width, 1
    steps = convolution(block[:count], [*cdf[:count], *(mass,) * (count - width)])[:count]
    steps += [0] * (count - len(steps))
    unit = 1
    if ratio is not None:
        unit = ratio.denominator ** (count // period)
        flow = [0] * count  # flow(v) = ratio * (steps(v - period) + flow(v - period)); the divisions are exact
        for v in patiently(range(period, count)):
            flow[v] = ratio.numerator * (steps[v - period] * unit + flow[v - period]) // ratio.denominator
        steps = flow
    return [lump + (steps[u - first] if u >= first else 0) for u in range(width)], unit


# --- the relaxation ------------------------------------------------------------------------------------------------


@objective("min-wasserstein-relaxation")
@dataclass(frozen=True)
class _MinWassersteinRelaxation(Cost):
    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        """E of the sum over the cuts k of |F(k) - F(k - Z)|: |Z| when all cuts count."""
        read_object(data, where, ("type", "input"), ("cut",))
        source = read_input(data["input"], f"{where}.input", setting.lattice)
        if data.get("cut") is None:
            return cls(setting.lattice.function("absolute", where))
        where = f"{where}.cut"
        cut, step = read_object(data["cut"], where, ("from", "to")), setting.lattice.step
        low, high = (read_rational(cut[end], f"{where}.{end}") for end in ("from", "to"))
        first, last = ceil(low / step), floor(high / step)
        if low > high or max(last - source.start, source.start + len(source.weights) - first) > MAX_POINTS:
            reject(where, f"must go upward and end within {MAX_POINTS} lattice points of the input")
        points = max(last - source.start + 1, 0) + max(source.start + len(source.weights) - first, 0)
        try:
            afford(table_work(2 * points, source.total.bit_length()), f"takes the costs of shifts over {points} points")
        except InputError as error:
            raise error.inside(where) from None
        return cls(_cost_of_cuts(source, first, last, step))


def _cost_of_cuts(source: Input, first: int, last: int, step: Fraction) -> LatticeFunction:
    """The step times the sum over k = first..last of |F(k) - F(k - j)|, by its increments in j from 0 outward."""
    below, start, size = [0, *source.below], source.start, len(source.weights)

    def crossed(k: int) -> int:
        """The weight of the points k - (last - first)..k."""
        upto, before = (min(max(i - start + 1, 0), size) for i in (k, k - (last - first) - 1))
        return below[upto] - below[before]

    right, left = max(last - start + 1, 0), max(start + size - first, 0)  # no increments beyond these
    outward = list(accumulate((crossed(last - j) for j in range(right)), initial=0))
    inward = list(accumulate((crossed(last + j) for j in range(1, left + 1)), initial=0))
    scale = step / below[-1]
    table = tuple(scale * value for value in [*reversed(inward[1:]), *outward])
    return LatticeFunction(-left, table, (scale * inward[-1],), (scale * outward[-1],))
