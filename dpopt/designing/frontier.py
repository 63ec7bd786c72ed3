"""The frontier: which pairs (D, V) reach a wanted (epsilon, delta).

What is said of a whole interval of rates holds by the lemma of `dpopt.family.members`, and of its inside by a bound on
delta that is monotone in gamma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from flint import arb

from dpopt.arithmetic import Enclosure, Number, ball, exact_integer
from dpopt.balls import at_precision
from dpopt.designing.inverse import LeastVariance, least_variance, variances_between
from dpopt.designing.side_by_side import member_variance, text_table, working_bits
from dpopt.designing.targeting import log_delta, outermost_rate, solve
from dpopt.family.members import IdealMember, breakpoints, delta_exceeds, reaching_rate, worst_tail
from dpopt.problem.problem import Problem
from dpopt.problem.target import Family, Target
from dpopt.record import Record

__all__ = ["Frontier", "FrontierPoint", "frontier"]


@dataclass(frozen=True, repr=False)
class FrontierPoint(Record):
    """The variances on [-D, D] whose member of the family reaches (epsilon, delta).

    Parameters
    ----------
    least, most : Enclosure
        The least and the largest such variance.
    rates : tuple of pairs of Fraction
        Intervals of gamma, ascending, all of whose members reach the target: the proof of this is the lemma of
        `dpopt.family.members` at its ends. Delta rises between breakpoints: for large epsilon there can be several.
    """

    D: int
    least: Enclosure
    most: Enclosure
    rates: tuple[tuple[Fraction, Fraction], ...]

    @cached_property
    def variances(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The intervals in V, ascending, rounded inwards; for family `any` the one between `least` and `most`."""
        if not self.rates:
            return ((self.least.upper, self.most.lower),)
        found = []
        for flat, steep in reversed(self.rates):
            low, high = member_variance(self.D, steep), member_variance(self.D, flat)
            found.append((low.upper, max(low.upper, high.lower)))
        return tuple(found)


@dataclass(frozen=True, repr=False)
class Frontier(Record):
    """The pairs (D, V) that reach one (epsilon, delta), for consecutive D from the smallest on; prints as a table."""

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    family: Family
    points: tuple[FrontierPoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: exact numbers of the question as text, the nearest floats of the answers."""
        question = {"epsilon": str(self.epsilon), "delta": str(self.delta), "sensitivity": str(self.sensitivity)}
        rows = [
            {
                "D": p.D,
                "least": float(p.least),
                "most": float(p.most),
                "intervals": [list(map(float, v)) for v in p.variances],
            }
            for p in self.points
        ]
        return {**question, "family": str(self.family), "points": rows}

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        rows = [(str(p.D), f"{float(p.least):.8g}", f"{float(p.most):.8g}", str(len(p.variances))) for p in self.points]
        return text_table(("D", "least V", "most V", "intervals"), rows)


def frontier(
    epsilon: Number,
    delta: Number,
    sensitivity: Number = 1,
    *,
    family: Family | str = Family.TABLEBUILDER,
    points: int = 10,
    backend: Any = "auto",
) -> Frontier:
    """Which (D, V) reach (epsilon, delta): for `points` values of D, from the smallest that works, its variances.

    Family `analytic` has one V for each D; for `any`, V is the variance of pmfs with mean 0, and every value between
    the two ends is reached (mixtures), the ends by linear programs.

    Examples
    --------
    >>> print(frontier(1, "1e-5", points=3))
    D     least V     most V  intervals
    17   14.481169  14.568129          1
    18  14.115118  17.686687          1
    19  14.020917  19.829939          1
    """
    read = Target(epsilon, delta, family, sensitivity)  # type: ignore[arg-type]  # read by the constructor
    count = exact_integer(points, "points", at_least=1)
    design = solve(read, backend).require_verified().design
    assert design is not None
    build = {Family.ANALYTIC: _analytic_point, Family.TABLEBUILDER: _member_point}
    found = tuple(
        _any_point(read, d, backend) if read.family is Family.ANY else build[read.family](read, d)
        for d in range(design.D, design.D + count)
    )
    return Frontier(read.epsilon, read.delta, read.sensitivity, read.family, found)


def _analytic_point(read: Target, half_width: int) -> FrontierPoint:
    found = _least(read, half_width, "auto")
    assert found.gamma is not None
    return FrontierPoint(half_width, found.V, found.V, ((found.gamma, found.gamma),))


def _least(read: Target, half_width: int, backend: Any) -> LeastVariance:
    question = {"epsilon": read.epsilon, "delta": read.delta, "sensitivity": read.sensitivity}
    return least_variance(D=half_width, family=read.family, backend=backend, **question)


def _any_point(read: Target, half_width: int, backend: Any) -> FrontierPoint:
    """The variances of pmfs with mean 0 that reach the target are an interval, since mixtures reach it as well."""
    least_found = _least(read, half_width, backend)
    assert least_found.solution is not None
    table = least_found.solution.problem.to_dict()
    table["objective"] = {
        "type": "min-expected-cost",
        "cost": {"table": {str(z): str(-z * z) for z in range(-half_width, half_width + 1)}, "outside": "0"},
    }
    largest = solve(Problem.from_dict(table), backend).require_verified()
    ceiling = half_width**2 if largest.bound is None else -largest.bound
    most = Enclosure(-largest.value.upper, Fraction(ceiling))
    return FrontierPoint(half_width, least_found.V, most, ())


def _member_point(read: Target, half_width: int) -> FrontierPoint:
    question = read.epsilon, read.shift, read.delta
    some = reaching_rate(half_width, *question)
    assert some is not None  # delta falls as D grows
    low, below = outermost_rate(half_width, *question, some, upward=False)
    high, above = outermost_rate(half_width, *question, some, upward=True)
    assert above is not None
    inner = (b for b in breakpoints(half_width, read.epsilon, read.shift) if low < b < high)
    nodes = [low, *inner, high] if low < high else [low]
    rates = _working_intervals(half_width, question, nodes)
    least, most = (
        variances_between(half_width, above, high),
        variances_between(half_width, low, low if below is None else below),
    )
    return FrontierPoint(half_width, least, most, tuple(rates))


def _working_intervals(
    half_width: int, question: tuple[Fraction, int, Fraction], nodes: Sequence[Fraction]
) -> list[tuple[Fraction, Fraction]]:
    """The rates between the first and the last node, both of which work, that work: piece by piece.

    On a piece the failing rates are an interval (the lemma), which ends where a bisection finds it to end.
    """
    epsilon, shift, delta = question
    pieces, ends = _Pieces(half_width, epsilon, shift, delta), (nodes[0], nodes[-1])
    broken = set(breakpoints(half_width, epsilon, shift))
    works = [n in ends or not pieces.fails(n) for n in nodes]
    found, start = [], nodes[0]
    for (a, a_works), (b, b_works) in pairwise(zip(nodes, works, strict=True)):
        # A failing rate lies next to either end, outside. If the end is no breakpoint, it is in the same piece, and the
        # failing rates of a piece are an interval: they are all outside.
        if a_works and b_works and any(end in ends and end not in broken for end in (a, b)):
            continue
        failing = pieces.failing(a, b, a_works, b_works)
        if failing is not None:
            found += [(start, failing[0])] if a_works else []
            start = failing[1]
    return [*found, (start, nodes[-1])]


@dataclass(frozen=True)
class _Pieces:
    """Where delta exceeds a level within a piece between two breakpoints."""

    half_width: int
    epsilon: Fraction
    shift: int
    delta: Fraction

    def failing(self, a: Fraction, b: Fraction, a_works: bool, b_works: bool) -> tuple[Fraction, Fraction] | None:
        """Two rates with all failing ones of [a, b] between them, at a working rate on each side that has one."""
        if not a_works and not b_works:
            return a, b
        if a_works and b_works:
            if self.stays_below(a, b, 6):
                return None
            peak = self.peak(a, b)
            if not self.fails(peak):
                return None if self.stays_below(a, b, 14) else (a, b)  # cannot be told: leave the inside out
        else:
            peak = b if a_works else a
        return self.edge(a, peak) if a_works else a, self.edge(b, peak) if b_works else b

    def fails(self, rate: Fraction) -> bool:
        """Whether the member misses the target."""
        return delta_exceeds(self.half_width, rate, self.epsilon, self.shift, self.delta)

    def edge(self, works: Fraction, fails: Fraction) -> Fraction:
        """A working rate next to the first failing one on the way from one to the other."""
        while abs(fails - works) * (1 << 34) > works:
            middle = (works + fails) / 2
            works, fails = (works, middle) if self.fails(middle) else (middle, fails)
        return works

    def peak(self, a: Fraction, b: Fraction) -> Fraction:
        """About where delta is largest between a and b."""
        for _ in range(40):
            low, high = a + (b - a) * Fraction(3, 8), a + (b - a) * Fraction(5, 8)
            low, high = (Fraction(float(x)) for x in (low, high))
            if not a < low < high < b:
                break
            values = [log_delta(self.half_width, x, self.epsilon, self.shift) for x in (low, high)]
            a, b = (low, b) if values[0] < values[1] else (a, high)
        return (a + b) / 2

    def stays_below(self, a: Fraction, b: Fraction, depth: int) -> bool:
        """Whether delta is at most the level on all of [a, b], within one piece: a proof, by halving.

        delta N is the sum over z >= t of e^(-gamma z^2) (1 - e^(epsilon - gamma m (m + 2 z))), the bracket being 1
        where z + m is outside. The exponential falls as gamma grows, the bracket grows, and N falls.
        """
        if at_precision(working_bits(self.half_width), lambda: self._is_below(a, b)):
            return True
        middle = (a + b) / 2
        return depth > 0 and all(self.stays_below(*ends, depth - 1) for ends in ((a, middle), (middle, b)))

    def _is_below(self, a: Fraction, b: Fraction) -> bool:
        flat, steep = IdealMember(self.half_width, a), IdealMember(self.half_width, b)
        growth, m = ball(self.epsilon).exp(), self.shift
        total = arb(0)
        for z in range(worst_tail(self.half_width, (a + b) / 2, self.epsilon, m), self.half_width + 1):
            mass = flat.masses[abs(z)]
            inside = z + m <= self.half_width
            total += mass * (1 - growth * steep.masses[abs(z + m)] / steep.masses[abs(z)]) if inside else mass
        return bool(total <= ball(self.delta) * steep.total)
