"""The optimal table as a linear program over offsets from a table near it.

A key size of 2^64 is no bound for a solver's integer variable and no number for its floats. So the columns are
offsets x_z = n_z - base_z from integers near p K, and every constant of the rows (what is left of the sum, of the
bias, of the second moment, of the hockey-stick sums) is worked out exactly before it becomes a float. The convex cost
of a point is cut into segments between nodes of the offset: a column for each segment, slopes ascending, so that they
fill in order. The nodes lie one apart near the base and double outwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from dpopt.program.program import BlockKind, Program, RowBlock
from dpopt.tables.costs import TableCost
from dpopt.tables.question import Question

__all__ = ["Dual", "OffsetProgram", "offset_program"]

_UNIT_NODES = 4
_FREE = 1e12  # a side beyond this, in keys, is no side within the nodes


@dataclass(frozen=True)
class Dual:
    """Multipliers of the constraints, in the cost of one key: free for sum and bias, >= 0 for the rest.

    `terms[s][i]` belongs to the term n_i - e^epsilon n_{i-s} of the hockey-stick sum of shift s, at most `sums[s]`.
    """

    total: float
    bias: float
    second: float
    sums: dict[int, float] = field(default_factory=dict)
    terms: dict[int, dict[int, float]] = field(default_factory=dict)

    def scaled(self, by: float) -> Dual:
        """Every multiplier times `by` > 0."""
        sums = {shift: by * most for shift, most in self.sums.items()}
        terms = {shift: {i: by * value for i, value in row.items()} for shift, row in self.terms.items()}
        return Dual(by * self.total, by * self.bias, by * self.second, sums, terms)


@dataclass(frozen=True, eq=False)
class OffsetProgram:
    """The program, and the maps from its points to counts and from its multipliers to a `Dual`."""

    program: Program
    base: tuple[int, ...]
    unit: int
    price: float
    first: tuple[int, ...]
    owner: np.ndarray
    always: dict[int, list[int]]
    undecided: dict[int, list[int]]

    def counts(self, x: np.ndarray) -> list[int]:
        """The counts that a point stands for, each offset rounded to the nearest integer."""
        moved = np.zeros(len(self.base))
        np.add.at(moved, self.owner, x[: self.owner.size])
        return [b + f + round(float(m) * self.unit) for b, f, m in zip(self.base, self.first, moved, strict=True)]

    def dual(self, y: np.ndarray) -> Dual:
        """The multipliers of a linear solve; the Lagrangian subtracts y times (row - side)."""
        y, row = y * self.price, 3
        sums: dict[int, float] = {}
        terms: dict[int, dict[int, float]] = {}
        for shift, places in self.undecided.items():
            most = max(-float(y[row + len(places)]), 0.0)
            sums[shift] = most
            terms[shift] = dict.fromkeys(self.always[shift], most)
            terms[shift].update((i, min(max(float(y[row + k]), 0.0), most)) for k, i in enumerate(places))
            row += len(places) + 1
        return Dual(float(y[0]), float(y[1]), max(-float(y[2]), 0.0), sums, terms)


class _Builder:
    """Entries of the rows as they come."""

    def __init__(self) -> None:
        self.row: list[int] = []
        self.column: list[int] = []
        self.value: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, columns: Sequence[int], values: Sequence[float], lower: float, upper: float) -> None:
        """One row."""
        self.row += [len(self.lower)] * len(columns)
        self.column += columns
        self.value += values
        self.lower.append(lower)
        self.upper.append(upper)


def _nodes(least: int, most: int, unit: int, reach: int) -> list[int]:
    """Offsets least..most that segments run between: 0, +-1, ..., then doubling, in multiples of `unit`."""
    steps, step = list(range(_UNIT_NODES + 1)), 2 * _UNIT_NODES
    while step <= reach:
        steps.append(step)
        step *= 2
    wide = {sign * s * unit for s in steps for sign in (1, -1)}
    inside = {offset for offset in wide if least <= offset <= most}
    ends = {max(least, -steps[-1] * unit), min(most, steps[-1] * unit)}
    return sorted(inside | ends)


def offset_program(
    question: Question,
    cost: TableCost,
    base: Sequence[int],
    *,
    unit: int,
    reach: int,
    integer: bool,
    margin: float = 0.0,
) -> OffsetProgram:
    """The program for offsets of up to `reach` units from `base`, linear or with integer columns.

    `margin` tightens the hockey-stick rows, in keys: for a solver whose answer missed them by its own tolerance.
    """
    nodes = [
        _nodes(1 - b, question.largest_count - b, unit, reach) if needed else [0]
        for b, needed in zip(base, question.wanted, strict=True)
    ]
    owner, widths, slopes = [], [], []
    for place, ends in enumerate(nodes):
        for low, high in zip(ends, ends[1:], strict=False):
            rise = cost.at(place, base[place] + high) - cost.at(place, base[place] + low)
            owner.append(place)
            widths.append((high - low) / unit)
            slopes.append(float(Fraction(rise, (high - low) * cost.scale)))
    first = [ends[0] for ends in nodes]
    places, rows = np.array(owner, dtype=np.intp), _Builder()
    _moment_rows(question, base, first, places, unit, rows)
    hockey = _Hockey(question, base, nodes, places, unit)
    always, undecided, extra = hockey.add(rows, margin) if question.privacy is not None else ({}, {}, 0)
    columns = len(owner) + extra
    price = max(map(abs, slopes), default=0.0) or 1.0  # a divergence far from its least has slopes of any size
    matrix = sp.csr_array((rows.value, (rows.row, rows.column)), shape=(len(rows.lower), columns))
    program = Program(
        cost=np.array([*slopes, *[0.0] * extra]) / price,
        rows=matrix,
        row_lower=np.array(rows.lower),
        row_upper=np.array(rows.upper),
        lower=np.zeros(columns),
        upper=np.array([*widths, *[np.inf] * extra]),
        integer=np.array([integer] * len(owner) + [False] * extra, dtype=bool),
        blocks=(RowBlock(BlockKind.MIXED, "key table", 0, len(rows.lower)),),
    )
    return OffsetProgram(program, tuple(base), unit, price, tuple(first), places, always, undecided)


def _moment_rows(
    question: Question, base: Sequence[int], first: Sequence[int], owner: np.ndarray, unit: int, rows: _Builder
) -> None:
    """Counts sum to K, bias 0, second moment at most floor(V K): what is left of each after base and first node."""
    total, bias, second = question.moments([b + f for b, f in zip(base, first, strict=True)])
    columns, z = list(range(owner.size)), owner + question.ideal.start
    left = float(Fraction(question.key_size - total, unit))
    rows.add(columns, [1.0] * owner.size, left, left)
    left = float(Fraction(-bias, unit))
    rows.add(columns, [float(v) for v in z], left, left)
    left = float(Fraction(question.second_moment - second, unit))
    rows.add(columns, [float(v) * float(v) for v in z], -np.inf, left if left < _FREE else np.inf)


class _Hockey:
    """The rows of (epsilon, delta): for each shift, the sum of max(n_i - E n_{i-s}, 0) is at most delta K.

    A term whose sign the nodes decide needs no auxiliary column: always positive, it enters the sum as it is; never
    positive, it is left out. At a large key size only the terms near a tie remain.
    """

    def __init__(
        self, question: Question, base: Sequence[int], nodes: Sequence[Sequence[int]], owner: np.ndarray, unit: int
    ) -> None:
        self.question, self.base, self.nodes, self.unit = question, base, nodes, unit
        self.columns: list[list[int]] = [[] for _ in base]
        for column, place in enumerate(owner.tolist()):
            self.columns[place].append(column)
        self.next = owner.size

    def add(self, rows: _Builder, margin: float) -> tuple[dict[int, list[int]], dict[int, list[int]], int]:
        """Append the rows; returns the decided and the undecided terms of each shift and the auxiliary columns."""
        privacy = self.question.privacy
        if privacy is None:
            return {}, {}, 0
        always: dict[int, list[int]] = {}
        undecided: dict[int, list[int]] = {}
        before = self.next
        for shift in privacy.signed_shifts:
            self._shift(rows, shift, margin, always, undecided)
        return always, undecided, self.next - before

    def _shift(
        self,
        rows: _Builder,
        shift: int,
        margin: float,
        always: dict[int, list[int]],
        undecided: dict[int, list[int]],
    ) -> None:
        privacy = self.question.privacy
        assert privacy is not None
        factor, size = privacy.factor, len(self.base)
        left = privacy.delta * self.question.key_size
        columns: list[int] = []
        values: list[float] = []
        always[shift], undecided[shift] = [], []
        for i in range(size):
            j = i - shift
            inside = 0 <= j < size
            lowest = self.base[i] + self.nodes[i][0]
            at_first = lowest - (factor * (self.base[j] + self.nodes[j][0]) if inside else 0)
            least = lowest - (factor * (self.base[j] + self.nodes[j][-1]) if inside else 0)
            most = self.base[i] + self.nodes[i][-1] - (factor * (self.base[j] + self.nodes[j][0]) if inside else 0)
            if most <= 0:
                continue
            moving = self.columns[i] + (self.columns[j] if inside else [])
            weights = [1.0] * len(self.columns[i]) + ([-float(factor)] * len(self.columns[j]) if inside else [])
            if least >= 0:
                always[shift].append(i)
                left -= at_first
                columns += moving
                values += weights
                continue
            undecided[shift].append(i)  # h - (x_i - E x_j) >= its constant
            rows.add([self.next, *moving], [1.0, *(-w for w in weights)], float(at_first / self.unit), np.inf)
            columns.append(self.next)
            values.append(1.0)
            self.next += 1
        side = float(left / self.unit) - margin
        rows.add(columns, values, -np.inf, side if side < _FREE else np.inf)
