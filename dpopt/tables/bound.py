"""No table does better: weak duality in integers, then an enumeration of what it leaves open.

For any multipliers the Lagrangian splits into the points, each a convex function of one count, whose least value over
all counts 1..K is found exactly. Their sum bounds every table, however far from the ideal one (the solver's box does
not enter). A table that beats a known one must stay within the gap between that table and the bound, point by point:
few counts a point survive. They are combined by a dynamic program over the partial sums of n, z n, z^2 n (and the
hockey-stick sums), where of two beginnings with the same sums the cheaper is enough. If it finishes, the optimum is
proved and known; if it would take too many steps, a smaller gap is tried and proves a smaller bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpopt.searching import first_that
from dpopt.tables.costs import TableCost
from dpopt.tables.offsets import Dual
from dpopt.tables.question import Question

__all__ = ["Lagrangian", "Search", "search"]

_MULTIPLIER_BITS = 48
_MOST_CANDIDATES = 256
_Chain = tuple[int, Any] | None


class Lagrangian:
    """The separable lower bound of given multipliers, all in integers.

    Everything is measured in cost units times `denominator`, the denominator of the factor e^epsilon (1 without it).

    Parameters
    ----------
    question, cost
    dual : Dual
        Multipliers, in the cost of one key; any give a bound.
    base : sequence of int
        Counts to start the search for the least value of each point from.
    """

    def __init__(self, question: Question, cost: TableCost, dual: Dual, base: Sequence[int]) -> None:
        self.question, self.cost = question, cost
        privacy = question.privacy
        self.denominator = 1 if privacy is None else privacy.factor_above.denominator
        self.constant, self.gradients = self._combine(dual)
        self.least: list[int] = []
        self.lowest: list[int] = []
        for place, needed in enumerate(question.wanted):
            count, value = self._descend(place, base[place]) if needed else (0, self.reduced(place, 0))
            self.lowest.append(count)
            self.least.append(value)
        self.bound = self.constant + sum(self.least)

    @property
    def value(self) -> Fraction:
        """The bound as a distance."""
        return self.bound * self.cost.unit / self.denominator

    def _combine(self, dual: Dual) -> tuple[int, list[int]]:
        """The constant of the Lagrangian and the price of one key at each point."""
        question, unit = self.question, self.cost.scale * self.denominator

        def read(multiplier: float) -> int:
            return round(Fraction(round(multiplier * (1 << _MULTIPLIER_BITS)), 1 << _MULTIPLIER_BITS) * unit)

        total, bias, second = read(dual.total), read(dual.bias), max(read(dual.second), 0)
        constant = total * question.key_size - second * question.second_moment
        prices = [total + bias * z - second * z * z for z in question.points]
        if question.privacy is None:
            return constant, prices
        factor = question.privacy.factor_above
        # Fractions, rounded down once: a price that is off by one is still a price, the constant is rounded down.
        exact_constant, exact = Fraction(constant), [Fraction(price) for price in prices]
        for shift, places in dual.terms.items():
            most = max(read(dual.sums[shift]), 0)
            exact_constant -= most * question.privacy.delta * question.key_size
            for i, multiplier in places.items():
                weight = min(max(read(multiplier), 0), most)
                exact[i] -= weight
                if 0 <= i - shift < len(exact):
                    exact[i - shift] += weight * factor
        # Rounding a price down by less than 1 moves the Lagrangian by less than one unit a key: taken off here.
        rounded = [price.numerator // price.denominator for price in exact]
        loss = any(price.denominator != 1 for price in exact) * question.key_size
        return exact_constant.numerator // exact_constant.denominator - loss, rounded

    def reduced(self, place: int, count: int) -> int:
        """A lower bound of the cost minus the price of a count; the true one is less than `slack` above."""
        return self.cost.at(place, count) * self.denominator - self.gradients[place] * count

    def _descend(self, place: int, start: int) -> tuple[int, int]:
        """The least of a convex function over 1..K: a count near it, and a value that none is below."""
        top, slack = self.question.largest_count, self.cost.slack * self.denominator
        low, high = 1, top
        start = min(max(start, low), high)
        # Gallop to a bracket, then bisect on the slope; values are floors, so a slope is certain beyond the slack.
        step = 1
        while start + step <= top and self.reduced(place, start + step) < self.reduced(place, start):
            start, step = start + step, 2 * step
        high = min(start + step, top)
        step = 1
        while start - step >= 1 and self.reduced(place, start - step) < self.reduced(place, start):
            high = start
            start, step = start - step, 2 * step
        low = max(start - step, 1)
        low = first_that(lambda n: self.reduced(place, n + 1) >= self.reduced(place, n), low - 1, high)
        value = self.reduced(place, low)
        if slack == 0:
            return low, value
        for sign, edge in ((1, top), (-1, 1)):
            near = low
            while near != edge and self.reduced(place, near + sign) < self.reduced(place, near) + slack:
                near += sign
                value = min(value, self.reduced(place, near))
        return low, value

    def candidates(self, place: int, gap: int) -> list[tuple[int, int]] | None:
        """Every count whose excess over the least is at most `gap`, with it; None when there are too many."""
        if not self.question.wanted[place]:
            return [(0, 0)]
        found = []
        for sign, edge in ((1, self.question.largest_count), (-1, 1)):
            count = self.lowest[place] if sign > 0 else self.lowest[place] - 1
            while (count <= edge) if sign > 0 else (count >= edge):
                excess = self.reduced(place, count) - self.least[place]
                if excess > gap:
                    break
                found.append((count, excess))
                if len(found) > _MOST_CANDIDATES:
                    return None
                count += sign
        return found


@dataclass(frozen=True)
class Search:
    """What an enumeration within a gap found: whether it finished, and the best table within it.

    `crowded`: it did not begin, since the multipliers leave too many counts open at a point.
    """

    finished: bool
    counts: tuple[int, ...] | None = None
    crowded: bool = False


class _Ranges:
    """The least and most that the points still to come can add to each moment."""

    def __init__(self, points: Sequence[int], chosen: Sequence[Sequence[tuple[int, int]]]) -> None:
        self.low, self.high = [(0, 0, 0)], [(0, 0, 0)]
        for z, counts in zip(reversed(points), reversed(chosen), strict=True):
            few, many = min(n for n, _ in counts), max(n for n, _ in counts)
            ends = sorted((z * few, z * many))
            a, b = self.low[-1], self.high[-1]
            self.low.append((a[0] + few, a[1] + ends[0], a[2] + z * z * few))
            self.high.append((b[0] + many, b[1] + ends[1], b[2] + z * z * many))
        self.low.reverse()
        self.high.reverse()


def search(lagrangian: Lagrangian, gap: int, budget: int) -> Search:
    """The best table whose excesses sum to at most `gap`, by dynamic programming, in at most `budget` steps.

    `finished` with no counts proves that every table costs more than ``lagrangian.bound + gap``.
    """
    question = lagrangian.question
    places = list(range(len(question.wanted)))
    if question.privacy is None:  # the outermost points move the moments most: they leave the least open first
        places.sort(key=lambda i: -abs(i + question.ideal.start))
    chosen = []
    for place in places:
        options = lagrangian.candidates(place, gap)
        if options is None:
            return Search(False, crowded=True)
        if not options:
            return Search(True)
        chosen.append(options)
    points = [place + question.ideal.start for place in places]
    ranges = _Ranges(points, chosen)
    window = _Window(question)
    # state: moments and what the hockey-stick sums need -> (cost so far, excess so far, counts so far)
    states: dict[Any, tuple[int, int, _Chain]] = {(0, 0, 0, window.empty): (0, 0, None)}
    for level, (place, z) in enumerate(zip(places, points, strict=True)):
        low, high = ranges.low[level + 1], ranges.high[level + 1]
        following: dict[Any, tuple[int, int, _Chain]] = {}
        budget -= len(states) * len(chosen[level])
        if budget < 0:
            return Search(False)
        for (total, first, second, seen), (paid, excess, chain) in states.items():
            for count, more in chosen[level]:
                if excess + more > gap:
                    continue
                a, b, c = total + count, first + z * count, second + z * z * count
                if not (
                    a + low[0] <= question.key_size <= a + high[0]
                    and b + low[1] <= 0 <= b + high[1]
                    and c + low[2] <= question.second_moment
                ):
                    continue
                kept = window.push(seen, count)
                if kept is None:
                    continue
                key, cost = (a, b, c, kept), paid + lagrangian.cost.at(place, count)
                if key not in following or cost < following[key][0]:
                    following[key] = (cost, excess + more, (count, chain))
        states = following
    return _best(question, places, states)


def _best(question: Question, places: Sequence[int], states: dict[Any, tuple[int, int, _Chain]]) -> Search:
    """The cheapest of the final states that answers the question, points back in order."""
    for _, _, last in sorted(states.values(), key=lambda state: state[0]):
        counts, chain = [0] * len(places), last
        for place in reversed(places):
            assert chain is not None
            counts[place], chain = chain
        if question.holds(counts):
            return Search(True, tuple(counts))
        if not question.excluded(counts):
            return Search(False)
    return Search(True)


class _Window:
    """What the hockey-stick sums of a beginning depend on: its last counts, and the sums so far.

    Counts come in ascending noise. Two beginnings that agree in this can be finished alike.
    """

    def __init__(self, question: Question) -> None:
        self.privacy = question.privacy
        self.empty: Any = ()
        if self.privacy is not None:
            self.numerator, self.denominator = (
                self.privacy.factor_above.numerator,
                self.privacy.factor_above.denominator,
            )
            limit = self.privacy.delta * question.key_size * self.denominator
            self.limit = limit.numerator // limit.denominator
            self.empty = ((), (0,) * (2 * self.privacy.shift))

    def push(self, seen: Any, count: int) -> Any:
        """The window after one more count; None when a sum already exceeds what delta allows."""
        if self.privacy is None:
            return seen
        last, sums = seen
        moved = list(sums)
        for s in range(1, self.privacy.shift + 1):
            before = last[-s] if len(last) >= s else 0
            moved[2 * s - 2] += max(count * self.denominator - before * self.numerator, 0)
            if len(last) >= s:
                moved[2 * s - 1] += max(before * self.denominator - count * self.numerator, 0)
        if max(moved) > self.limit:
            return None
        return (*last, count)[-self.privacy.shift :], tuple(moved)
