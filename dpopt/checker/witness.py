"""Witnesses that more than one family has: pairs of points, and events with their shifts.

Read from the certificate and checked: a multiplier of the wrong sign, a weight beyond its bound and a shift that the
sensitivity does not allow are refused. What pairs are legal only a family knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpopt.checker.reading import (
    MAX_POINTS,
    brief,
    read_index,
    read_integer,
    read_integers,
    read_list,
    read_object,
    read_row,
    reject,
)
from dpopt.checker.reduced_cost import ReducedCost, Weights

__all__ = ["Event", "Pairs", "read_event", "read_inequalities", "read_pairs"]


@dataclass(frozen=True)
class Pairs:
    """For each (i, j, y) the row ``p(i) - e^epsilon p(j) <= 0`` with the multiplier y >= 0 (free for an equality)."""

    row: int
    pairs: tuple[tuple[int, int, int], ...]
    epsilon: Fraction = Fraction(0)

    @property
    def key(self) -> str:
        """One list for each row."""
        return f"row {self.row}"

    def add_to(self, cost: ReducedCost) -> None:
        """Add the rows, times their multipliers."""
        cost.add_pairs(self.pairs, self.epsilon)


@dataclass(frozen=True)
class Event:
    """``sum_k w(k) (p(k) - e^epsilon p(k - shift)) <= most * limit`` for weights w in 0..most.

    It holds wherever the hockey-stick divergence at the shift is at most `limit`: that is the largest of these sums
    over all weights in 0..1.
    """

    shift: int
    most: int
    weights: Weights
    epsilon: Fraction
    limit: Fraction = Fraction(0)

    @property
    def key(self) -> str:
        """One event for each shift."""
        return f"shift {self.shift}"

    def add_to(self, cost: ReducedCost) -> None:
        """Add the event, and its limit as what every feasible law pays."""
        cost.add_constant(-self.limit * Fraction(self.most, cost.one))
        cost.add_event(self.weights, self.shift, self.epsilon)


def read_pairs(data: Mapping[str, Any], where: str, size: int) -> tuple[int, list[tuple[int, ...]]]:
    """The row, and a list of so many integers for each pair; the last is the multiplier."""
    read_object(data, where, ("of", "row", "pairs"))
    row, found = read_row(data["row"], f"{where}.row"), []
    for i, pair in enumerate(read_list(data["pairs"], f"{where}.pairs")):
        at = f"{where}.pairs[{i}]"
        if not isinstance(pair, list | tuple) or len(pair) != size:
            reject(at, f"must be a list {'[k, y]' if size == 2 else '[i, j, y]'}")
        found.append(tuple(read_integer(number, at) for number in pair))
    return row, found


def read_inequalities(
    data: Mapping[str, Any], where: str, kind: str, has: Callable[[int, int], bool], epsilon: Fraction
) -> Pairs:
    """Pairs of a constraint `kind` that consists of inequalities; `has` says whether it has the row of i and j."""
    row, found = read_pairs(data, where, 3)
    for number, (i, j, y) in enumerate(found):
        at = f"{where}.pairs[{number}]"
        if y < 0:
            reject(at, f"has the negative multiplier {brief(y)}")
        if not has(i, j):
            reject(at, f"is not a row of {kind!r}: indices {brief(i)} and {brief(j)}")
    return Pairs(row, tuple((i, j, y) for i, j, y in found), epsilon)


def read_event(
    data: Mapping[str, Any], where: str, multiplier: str, reach: int, epsilon: Fraction, limit: Fraction
) -> Event:
    """An event of a shift up to `reach`; the key `multiplier` holds the bound of its weights."""
    read_object(data, where, ("of", "row", "shift", multiplier, "start", "weights", "left", "right"))
    read_row(data["row"], f"{where}.row")
    shift = read_integer(data["shift"], f"{where}.shift", -reach, reach)
    if shift == 0:
        reject(f"{where}.shift", "must not be 0")
    most = read_integer(data[multiplier], f"{where}.{multiplier}", 0)
    left, right = (read_integer(data[side], f"{where}.{side}", 0, most) for side in ("left", "right"))
    table = read_integers(data["weights"], f"{where}.weights", 0, most, MAX_POINTS)
    start = read_index(data["start"], f"{where}.start")
    return Event(shift, most, Weights(start, table, left, right), epsilon, limit)
