"""Rows of hockey-stick divergences, with their bound given or as a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpopt.arithmetic import exp_enclosure
from dpopt.problem.families.base import ROW
from dpopt.problem.families.hockey_stick import HockeyStickTerm, MinDeltaTerm
from dpopt.program.assembly import INF, Assembly, integers
from dpopt.program.core import Core
from dpopt.program.program import BlockKind
from dpopt.program.rows.base import LEAST_UNIT, Block, Folding, Place, rows_of
from dpopt.program.rows.pairs import joined

__all__ = ["HockeyStickBlock"]


@rows_of(HockeyStickTerm, MinDeltaTerm)
@dataclass(frozen=True, eq=False)
class HockeyStickBlock(Block):
    """``sum_k (p(k) - e^epsilon p(k - s))+ <= delta`` for every shift, both directions.

    One auxiliary v >= p(k) - e^epsilon p(k - s) for each pair inside the core; where k - s lies outside, the term is
    p(k) itself. Rows: the pairs (plus directions, then their mirror images), then one total a shift in the same order.
    Where delta is None, it is the objective: one more column, of cost 1.
    """

    shifts: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    pair_shift: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    pair_k: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    core: Core = field(default_factory=lambda: Core(0, 0))
    infinite: bool = False
    delta: float | None = None

    @classmethod
    def write(cls, assembly: Assembly, term: HockeyStickTerm | MinDeltaTerm, place: Place) -> HockeyStickBlock:
        core, wanted = assembly.core, term.guarantee.delta
        reach = term.shift if place.infinite else min(term.shift, core.size)  # beyond: the same shift again
        delta = None if wanted is None else float(wanted)
        plus = np.arange(1, reach + 1)
        k = [np.arange(core.first + s, core.last + 1) for s in range(1, reach + 1) if s < core.size]
        half_k = joined(k)
        half_s = np.repeat(np.arange(1, len(k) + 1), [part.shape[0] for part in k]) if k else half_k
        centre = core.first + core.last
        pair_k, pair_shift = np.concatenate([half_k, centre - half_k]), np.concatenate([half_s, -half_s])
        shifts = np.concatenate([plus, -plus])
        pairs, totals = pair_k.shape[0], shifts.shape[0]

        factor = float(exp_enclosure(term.epsilon, 64).lower)
        column = assembly.add_columns(np.concatenate([np.zeros(pairs), np.ones(1 if delta is None else 0)]))
        first = assembly.add_rows(BlockKind.HOCKEY_STICK, place.name, np.full(pairs, -INF), np.zeros(pairs))
        rows = np.arange(first, first + pairs)
        assembly.add_entries(rows, pair_k - core.first, 1.0)
        assembly.add_entries(rows, pair_k - pair_shift - core.first, -factor)
        assembly.add_entries(rows, column + np.arange(pairs), -1.0)

        limits = np.full(totals, 0.0 if delta is None else delta)
        total_row = assembly.add_rows(BlockKind.HOCKEY_STICK, place.name, np.full(totals, -INF), limits)
        row_of_pair = np.where(pair_shift > 0, pair_shift - 1, reach - pair_shift - 1)
        assembly.add_entries(total_row + row_of_pair, column + np.arange(pairs), 1.0)
        for number, s in enumerate(shifts.tolist()):
            alone = (
                np.arange(core.first, min(core.first + s - 1, core.last) + 1)
                if s > 0
                else np.arange(max(core.last + s + 1, core.first), core.last + 1)
            )
            assembly.add_entries(np.full(alone.shape, total_row + number), alone - core.first, 1.0)
        if delta is None:
            assembly.add_entries(total_row + np.arange(totals), np.full(totals, column + pairs), -1.0)
        return cls(
            place.owner, first, pairs + totals, column, pairs + (delta is None),
            Folding(paired=core.is_symmetric, columns=pairs), shifts, pair_shift, pair_k, core, place.infinite, delta,
        )  # fmt: skip

    def column_unit(self, envelope: np.ndarray) -> float:
        """The size of a total: the wanted delta, or what the truncated geometric law reaches."""
        if self.delta is None:
            outermost = min(int(self.shifts.max(initial=1)), envelope.size)
            return max(float(envelope[-outermost:].sum() / envelope.sum()), LEAST_UNIT)
        return max(self.delta, LEAST_UNIT) if self.delta > 0 else 1.0

    def witnesses(self, y: np.ndarray, scale: int) -> list[dict[str, Any]]:
        pairs = self.pair_k.shape[0]
        weights = np.maximum(-self.own(y), 0.0)
        events, bounds = weights[:pairs], weights[pairs:]
        with np.errstate(over="ignore", invalid="ignore"):  # multipliers are whatever a solver claims
            if self.delta is None and bounds.sum() > 1:
                events, bounds = events / bounds.sum(), bounds / bounds.sum()
        weighed, found = "y" if self.delta is not None else "theta", []
        for number, s in enumerate(self.shifts.tolist()):
            bound = integers(bounds[number : number + 1], scale)[0]
            if bound <= 0:
                continue
            table = np.full(self.core.size, bounds[number])  # where k - s lies outside, the event holds
            mine = self.pair_shift == s
            table[self.pair_k[mine] - self.core.first] = events[mine]
            inside = [min(max(v, 0), bound) for v in integers(table, scale)]
            left, right = (bound, 0) if s > 0 else (0, bound)  # outward pairs beyond the core
            if not self.infinite:
                left = right = 0
            event = {"start": self.core.first, "weights": inside, "left": left, "right": right}
            found.append({"row": ROW, "shift": s, weighed: bound, **event})
        return found if self.delta is not None else _at_most_one(found, scale)


def _at_most_one(found: list[dict[str, Any]], scale: int) -> list[dict[str, Any]]:
    """Thetas that sum to at most 1: the last unit that rounding added is taken off the largest."""
    excess = sum(event["theta"] for event in found) - (1 << scale)
    if excess > 0 and found:
        largest = max(found, key=lambda event: event["theta"])
        largest["theta"] -= excess
        for key in ("left", "right"):
            largest[key] = min(largest[key], largest["theta"])
        largest["weights"] = [min(v, largest["theta"]) for v in largest["weights"]]
    return found
