"""Blocks: each exact term as float rows for a solver, and the map of its multipliers back to exact ones.

A block writes its rows into an `Assembly` and remembers where. Rows and auxiliary columns that come in mirror images
are written as two halves of equal order, so that folding a symmetric program is one averaging of halves.

Signs follow `Claim.y`: the multiplier of a row is <= 0 where the upper side is active. `entry` turns the multipliers
of a block's rows into the certificate's form: integers over 2**scale, non-negative where the theory wants them so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpopt.arithmetic import exp_enclosure
from dpopt.problem.terms import (
    ExpectationTerm,
    HockeyStickTerm,
    MinDeltaTerm,
    MirrorTerm,
    OrderTerm,
    RatioTerm,
    WassersteinTerm,
)
from dpopt.program.assembly import INF, Assembly, integers
from dpopt.program.core import Core
from dpopt.program.program import BlockKind

__all__ = [
    "Block",
    "ExpectationBlock",
    "Folding",
    "HockeyStickBlock",
    "MassBlock",
    "MirrorBlock",
    "OrderBlock",
    "RatioBlock",
    "WassersteinBlock",
]

_UNTOUCHED = 1e-9  # largest coefficient on the core below which a cut's slope is chosen by its side


@dataclass(frozen=True)
class Folding:
    """How a block folds about 0: rows and auxiliary columns that stay, pair up in halves, or vanish."""

    paired: bool = False
    vanishes: bool = False


@dataclass(frozen=True, eq=False)
class Block:
    """Base of the blocks.

    Parameters
    ----------
    owner : int
        Index of the constraint, or -1 for the mass row and the objective.
    first, count : int
        The rows it wrote.
    column, columns : int
        The auxiliary columns it wrote.
    folding : Folding
    """

    owner: int
    first: int
    count: int
    column: int = 0
    columns: int = 0
    folding: Folding = Folding()

    def entry(self, y: np.ndarray, scale: int) -> dict[str, Any]:
        """The multipliers of this block's rows (`y` is the whole vector) in the certificate's form."""
        raise TypeError(f"{type(self).__name__} has no multipliers to state")

    def own(self, y: np.ndarray) -> np.ndarray:
        """This block's part of a row vector."""
        return y[self.first : self.first + self.count]


@dataclass(frozen=True, eq=False)
class MassBlock(Block):
    """Total mass 1. Its multiplier is not stated: the checker takes the best one."""

    @classmethod
    def write(cls, assembly: Assembly, coefficients: np.ndarray) -> MassBlock:
        first = assembly.add_rows(BlockKind.MASS, "mass", np.ones(1), np.ones(1))
        columns = np.arange(assembly.core.size)
        assembly.add_entries(np.full(columns.shape, first), columns, coefficients)
        return cls(-1, first, 1)


@dataclass(frozen=True, eq=False)
class ExpectationBlock(Block):
    """``at_least <= E f <= at_most``."""

    @classmethod
    def write(cls, assembly: Assembly, owner: int, name: str, term: ExpectationTerm) -> ExpectationBlock:
        low = -INF if term.at_least is None else float(term.at_least)
        high = INF if term.at_most is None else float(term.at_most)
        first = assembly.add_rows(BlockKind.EXPECTATION, name, np.array([low]), np.array([high]))
        values = assembly.core.coefficients(term.function)
        columns = np.flatnonzero(values)
        assembly.add_entries(np.full(columns.shape, first), columns, values[columns])
        vanishes = low == high == 0 and term.function.is_odd
        return cls(owner, first, 1, folding=Folding(vanishes=vanishes))

    def entry(self, y: np.ndarray, scale: int) -> dict[str, Any]:
        return {"values": integers(self.own(y), scale)}


@dataclass(frozen=True, eq=False)
class _PairBlock(Block):
    """Rows ``p(i) - factor * p(j) <= 0``."""

    i: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    j: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))

    @classmethod
    def _write(
        cls,
        assembly: Assembly,
        owner: int,
        name: str,
        kind: BlockKind,
        i: np.ndarray,
        j: np.ndarray,
        factor: float,
        paired: bool,
    ) -> Any:
        size = i.shape[0]
        first = assembly.add_rows(kind, name, np.full(size, -INF), np.zeros(size))
        rows, origin = np.arange(first, first + size), assembly.core.first
        assembly.add_entries(rows, i - origin, 1.0)
        assembly.add_entries(rows, j - origin, -factor)
        return cls(owner, first, size, folding=Folding(paired=paired), i=i, j=j)

    def entry(self, y: np.ndarray, scale: int) -> dict[str, Any]:
        own = np.maximum(-self.own(y), 0.0)
        used = np.flatnonzero(own > 0)
        pairs = zip(self.i[used].tolist(), self.j[used].tolist(), integers(own[used], scale), strict=True)
        return {"pairs": [[i, j, v] for i, j, v in pairs if v > 0]}


@dataclass(frozen=True, eq=False)
class RatioBlock(_PairBlock):
    """``p(i) <= e^epsilon p(j)`` for all pairs of the core at most `shift` apart; no rows across the seam."""

    @classmethod
    def write(cls, assembly: Assembly, owner: int, name: str, term: RatioTerm) -> RatioBlock:
        core = assembly.core
        low = [np.arange(core.first, core.last - s + 1) for s in range(1, min(term.shift, core.size - 1) + 1)]
        high = [points + s for s, points in enumerate(low, 1)]
        i, j = _joined(low), _joined(high)
        centre = core.first + core.last
        i, j = np.concatenate([i, centre - i]), np.concatenate([j, centre - j])
        factor = float(exp_enclosure(term.epsilon, 64).lower)
        return cls._write(assembly, owner, name, BlockKind.PURE_DP, i, j, factor, core.is_symmetric)


@dataclass(frozen=True, eq=False)
class OrderBlock(_PairBlock):
    """``p(i) <= share * p(j)`` with j the neighbour of i one step towards the mode."""

    @classmethod
    def write(cls, assembly: Assembly, owner: int, name: str, term: OrderTerm) -> OrderBlock:
        core = assembly.core
        right = np.arange(term.mode + 1, core.last + 1)
        left = np.arange(term.mode - 1, core.first - 1, -1)
        i, j = np.concatenate([right, left]), np.concatenate([right - 1, left + 1])
        paired = core.is_symmetric and term.mode == 0
        return cls._write(assembly, owner, name, BlockKind.ORDER, i, j, float(term.share), paired)


@dataclass(frozen=True, eq=False)
class MirrorBlock(Block):
    """``p(k) - p(-k) = 0`` for k > 0; a point without a mirror image in the core has no mass."""

    k: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))

    @classmethod
    def write(cls, assembly: Assembly, owner: int, name: str, term: MirrorTerm) -> MirrorBlock:
        core = assembly.core
        k = np.arange(1, max(abs(core.first), abs(core.last)) + 1)
        here = (k >= core.first) & (k <= core.last)
        there = (-k >= core.first) & (-k <= core.last)
        k, here, there = k[here | there], here[here | there], there[here | there]
        first = assembly.add_rows(BlockKind.MIRROR, name, np.zeros(k.shape), np.zeros(k.shape))
        rows = np.arange(first, first + k.shape[0])
        assembly.add_entries(rows[here], k[here] - core.first, 1.0)
        assembly.add_entries(rows[there], -k[there] - core.first, -1.0)
        return cls(owner, first, k.shape[0], folding=Folding(vanishes=True), k=k)

    def entry(self, y: np.ndarray, scale: int) -> dict[str, Any]:
        pairs = zip(self.k.tolist(), integers(-self.own(y), scale), strict=True)
        return {"pairs": [[k, v] for k, v in pairs if v]}


@dataclass(frozen=True, eq=False)
class HockeyStickBlock(Block):
    """``sum_k (p(k) - e^epsilon p(k - s))+ <= delta`` for every shift, both directions.

    One auxiliary v >= p(k) - e^epsilon p(k - s) for each pair inside the core; where k - s lies outside, the term is
    p(k) itself. Rows: the pairs (plus directions, then their mirror images), then one total a shift in the same order.
    With `objective` the totals are bounded by a column of cost 1 in place of delta.
    """

    shifts: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    pair_shift: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    pair_k: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    totals: int = 0
    core: Core = field(default_factory=lambda: Core(0, 0))
    infinite: bool = False
    total_column: int = -1

    @classmethod
    def write(
        cls, assembly: Assembly, owner: int, name: str, term: HockeyStickTerm | MinDeltaTerm, *, infinite: bool = False
    ) -> HockeyStickBlock:
        core, reach = assembly.core, term.shift
        plus = np.arange(1, reach + 1)
        k = [np.arange(core.first + s, core.last + 1) for s in range(1, reach + 1) if s < core.size]
        half_k = _joined(k)
        half_s = np.repeat(np.arange(1, len(k) + 1), [part.shape[0] for part in k]) if k else half_k
        centre = core.first + core.last
        pair_k, pair_shift = np.concatenate([half_k, centre - half_k]), np.concatenate([half_s, -half_s])
        shifts = np.concatenate([plus, -plus])
        pairs, totals = pair_k.shape[0], shifts.shape[0]

        factor = float(exp_enclosure(term.epsilon, 64).lower)
        column = assembly.add_columns(np.zeros(pairs))
        first = assembly.add_rows(BlockKind.HOCKEY_STICK, name, np.full(pairs, -INF), np.zeros(pairs))
        rows = np.arange(first, first + pairs)
        assembly.add_entries(rows, pair_k - core.first, 1.0)
        assembly.add_entries(rows, pair_k - pair_shift - core.first, -factor)
        assembly.add_entries(rows, column + np.arange(pairs), -1.0)

        limit = float(term.delta) if isinstance(term, HockeyStickTerm) else 0.0
        total_row = assembly.add_rows(BlockKind.HOCKEY_STICK, name, np.full(totals, -INF), np.full(totals, limit))
        place = np.where(pair_shift > 0, pair_shift - 1, reach - pair_shift - 1)
        assembly.add_entries(total_row + place, column + np.arange(pairs), 1.0)
        for number, s in enumerate(shifts.tolist()):
            alone = (
                np.arange(core.first, min(core.first + s - 1, core.last) + 1)
                if s > 0
                else np.arange(max(core.last + s + 1, core.first), core.last + 1)
            )
            assembly.add_entries(np.full(alone.shape, total_row + number), alone - core.first, 1.0)
        total_column = -1
        if isinstance(term, MinDeltaTerm):
            total_column = assembly.add_columns(np.ones(1))
            assembly.add_entries(total_row + np.arange(totals), np.full(totals, total_column), -1.0)
        return cls(
            owner, first, pairs + totals, column, pairs, Folding(paired=core.is_symmetric),
            shifts, pair_shift, pair_k, total_row, core, infinite, total_column,
        )  # fmt: skip

    def entry(self, y: np.ndarray, scale: int) -> dict[str, Any]:
        pairs = self.pair_k.shape[0]
        weights = np.maximum(-self.own(y), 0.0)
        events, bounds = weights[:pairs], weights[pairs:]
        with np.errstate(over="ignore", invalid="ignore"):  # multipliers are whatever a solver claims
            if self.owner < 0 and bounds.sum() > 1:
                events, bounds = events / bounds.sum(), bounds / bounds.sum()
        shifts = []
        for number, s in enumerate(self.shifts.tolist()):
            bound = integers(bounds[number : number + 1], scale)[0]
            if bound <= 0:
                continue
            table = np.full(self.core.size, bounds[number])  # where k - s lies outside, the event holds
            mine = self.pair_shift == s
            table[self.pair_k[mine] - self.core.first] = events[mine]
            values = [min(max(v, 0), bound) for v in integers(table, scale)]
            left, right = (bound, 0) if s > 0 else (0, bound)  # outward pairs beyond the core
            if not self.infinite:
                left = right = 0
            shifts.append(
                {"shift": s, "bound": bound, "start": self.core.first, "events": values, "left": left, "right": right}
            )
        return {"shifts": _at_most_one(shifts, scale) if self.owner < 0 else shifts}


@dataclass(frozen=True, eq=False)
class WassersteinBlock(Block):
    """``g_k(p) - u_k + v_k = 0`` with cost 1 on u and v: the absolute value of each open cut.

    A cut far in the input's tail hardly touches the core, so the solver's slope for it is noise; yet far out, where g_k
    is near 1, the slope decides whether the cost keeps growing. There `outer` has the slope that makes it grow.
    """

    start: int = 0
    outer: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def write(cls, assembly: Assembly, term: WassersteinTerm) -> WassersteinBlock:
        core, cuts = assembly.core, term.cuts
        size = len(cuts)
        column = assembly.add_columns(np.ones(2 * size))
        first = assembly.add_rows(BlockKind.ABSOLUTE_VALUE, "wasserstein", np.zeros(size), np.zeros(size))
        rows = np.arange(first, first + size)
        assembly.add_entries(rows, column + np.arange(size), -1.0)
        assembly.add_entries(rows, column + size + np.arange(size), 1.0)
        outer = np.zeros(size)
        if size:
            values = _cut_coefficients(core, term)
            assembly.add_entries(np.repeat(rows, core.size), np.tile(np.arange(core.size), size), values.ravel())
            sides = np.where(np.array(_distribution(term)[:-1]) > 0.5, 1.0, -1.0)
            outer = np.where(np.abs(values).max(axis=1) < _UNTOUCHED, sides, 0.0)
        return cls(-1, first, size, column, 2 * size, start=cuts.start, outer=outer)

    def entry(self, y: np.ndarray, scale: int) -> dict[str, Any]:
        one = 1 << scale
        slopes = np.where(self.outer != 0, self.outer, -self.own(y))
        values = [min(max(v, -one), one) for v in integers(slopes, scale)]
        return {"slopes": {"start": self.start, "values": values}}


def _distribution(term: WassersteinTerm) -> list[float]:
    total = term.input.total.numerator
    return [c / total for c in term.input.cumulative()]


def _cut_coefficients(core: Core, term: WassersteinTerm) -> np.ndarray:
    """What a unit of each column contributes to E g_k of every cut k, its tail chain included; shape (cuts, size).

    The same numbers as ``core.coefficients(term.cut(k))`` for each k, read off one array: g_k(j) = F(k) - F(k - j).
    """
    known = np.array([0.0, *_distribution(term)])  # F at one point before the input's range, then on it
    here, start, reach = known[1:-1, None], term.input.start, len(term.cuts)
    shift, ratio = (core.closure.shift, core.closure.ratio) if core.closure else (1, 0.0)
    right, left = (max(-(-(reach - end) // shift), 0) + 1 for end in (core.last, -core.first))
    j = np.arange(core.first - left * shift, core.last + right * shift + 1)
    k = np.arange(start, start + reach)[:, None]
    wide = here - known[np.clip(k - j - start, -1, reach) + 1]
    values = wide[:, left * shift : left * shift + core.size].copy()
    if core.closure is not None:
        beyond_right, beyond_left = here * ratio / (1 - ratio), (here - 1) * ratio / (1 - ratio)
        for block in range(right, 0, -1):
            at = left * shift + core.size + (block - 1) * shift
            beyond_right = ratio * (wide[:, at : at + shift] + beyond_right)
        for block in range(left, 0, -1):
            at = (left - block) * shift
            beyond_left = ratio * (wide[:, at : at + shift] + beyond_left)
        values[:, -shift:] += beyond_right
        values[:, :shift] += beyond_left
    return values * float(term.input.step)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=int)


def _at_most_one(shifts: list[dict[str, Any]], scale: int) -> list[dict[str, Any]]:
    """Bounds that sum to at most 1: the last unit that rounding added is taken off the largest."""
    excess = sum(s["bound"] for s in shifts) - (1 << scale)
    if excess > 0 and shifts:
        largest = max(shifts, key=lambda s: s["bound"])
        largest["bound"] -= excess
        for key in ("left", "right"):
            largest[key] = min(largest[key], largest["bound"])
        largest["events"] = [min(v, largest["bound"]) for v in largest["events"]]
    return shifts
