"""Reductions: linear changes of coordinates, each a pure pair of maps for points and for multipliers.

Every reduction here is one substitution: x = columns @ x', and new rows = rows @ (old rows) @ columns, with the
objective divided by a scale. Points come back by ``columns @ x'`` and multipliers by ``rows.T @ y' * scale``. Folding
a symmetric program and scaling by an envelope are two choices of these matrices, and composing is multiplying them.
(The third reduction of the design, tail closure, is where a core's columns come from: `dpopt.program.core`.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dpopt.problem.terms import (
    EntropyTerm,
    ExpectationTerm,
    HockeyStickTerm,
    MinDeltaTerm,
    OrderTerm,
    RatioTerm,
    WassersteinTerm,
    ZeroTerm,
)
from dpopt.program.blocks import HockeyStickBlock
from dpopt.program.formulate import Formulation, expected_centre
from dpopt.program.program import BlockKind, Program, RowBlock

__all__ = ["Reduction", "elastic", "fold", "identity", "is_foldable", "reduce", "scale_by_envelope", "tight_rows"]

_NEGLIGIBLE = 2e-12  # beside coefficients of 1 and masses of 1: below every solver's resolution, and upsetting to some
_LARGE = 1e3  # for columns so far out that neither cost nor mass holds them: a multiple of what they are expected to be
_TIGHT = 1e-9  # of the terms of a ratio row, beside which its slack counts as none
_FLOOR = 1e-280  # the envelope stays a normal float times anything a program multiplies it with


@dataclass(frozen=True, eq=False)
class Reduction:
    """A program in new coordinates, with the way back.

    Parameters
    ----------
    program : Program
        The reduced program, with n' columns and m' rows.
    columns : sparse array, shape (n, n')
    rows : sparse array, shape (m', m)
    scale : float
        The reduced objective is the original one divided by `scale`.
    """

    program: Program
    columns: sp.csr_array
    rows: sp.csr_array
    scale: float = 1.0

    def point(self, x: np.ndarray) -> np.ndarray:
        """A point of the reduced program in the original coordinates."""
        return self.columns @ x

    def multipliers(self, y: np.ndarray) -> np.ndarray:
        """Multipliers of the reduced program as multipliers of the original one."""
        with np.errstate(over="ignore", invalid="ignore"):  # a solver may claim anything: the proof sees what came out
            return (self.rows.T @ y) * self.scale

    def then(self, other: Reduction) -> Reduction:
        """This reduction followed by one of its program."""
        return Reduction(
            other.program,
            (self.columns @ other.columns).tocsr(),
            (other.rows @ self.rows).tocsr(),
            self.scale * other.scale,
        )


def identity(program: Program) -> Reduction:
    """The reduction that changes nothing."""
    columns, rows = sp.eye_array(program.cost.size, format="csr"), sp.eye_array(program.row_lower.size, format="csr")
    return Reduction(program, columns, rows)


def reduce(formulation: Formulation, *, scaled: bool = True) -> Reduction:
    """The reductions that dpopt chooses for a formulation: folding where it is symmetric, then envelope scaling."""
    reduction = fold(formulation) if is_foldable(formulation) else identity(formulation.program)
    if scaled and not formulation.program.has_entropy:
        reduction = reduction.then(scale_by_envelope(formulation, reduction))
    return reduction


# --- symmetric folding -----------------------------------------------------------------------------------------------


def is_foldable(formulation: Formulation) -> bool:
    """Whether reflecting about 0 maps the program to itself: then symmetric noise loses nothing (it is convex)."""
    problem, core = formulation.problem, formulation.core
    objective = problem.objective_term
    if not core.is_symmetric or isinstance(objective, WassersteinTerm | EntropyTerm):
        return False  # W1 rows flip sign under reflection; entropy programs are cheap as they are
    if not objective.cost.is_even:
        return False
    for term in (term for group in problem.terms for term in group):
        if isinstance(term, ExpectationTerm):
            odd_zero = term.function.is_odd and term.at_least == term.at_most == 0
            if not (term.function.is_even or odd_zero):
                return False
        if isinstance(term, OrderTerm) and term.mode != 0:
            return False
        if isinstance(term, ZeroTerm) and set(term.indices) != {-k for k in term.indices}:
            return False
    return True


def fold(formulation: Formulation) -> Reduction:
    """Identify p(k) with p(-k): half the columns, and each pair of mirror rows averaged into one."""
    program = formulation.program
    columns = _folding_columns(formulation)
    rows, blocks = _folding_rows(formulation)
    pick = _first_of_each(columns)
    folded = Program(
        cost=columns.T @ program.cost,
        rows=(rows @ program.rows @ columns).tocsr(),
        row_lower=_side(rows, program.row_lower),
        row_upper=_side(rows, program.row_upper),
        lower=program.lower[pick],
        upper=program.upper[pick],
        entropy=columns.T @ program.entropy,
        integer=program.integer[pick],
        blocks=blocks,
    )
    return Reduction(folded, columns, rows)


def _folding_columns(formulation: Formulation) -> sp.csr_array:
    core, size = formulation.core, formulation.program.cost.size
    target = np.empty(size, dtype=int)
    target[: core.size] = np.abs(core.indices)
    count = core.last + 1
    for block in formulation.blocks:
        span = np.arange(block.columns)
        half = block.columns // 2 if block.folding.paired else block.columns
        target[block.column : block.column + block.columns] = count + span % max(half, 1)
        count += half
        if isinstance(block, HockeyStickBlock) and block.total_column >= 0:
            target[block.total_column] = count
            count += 1
    return sp.csr_array((np.ones(size), (np.arange(size), target)), shape=(size, count))


def _folding_rows(formulation: Formulation) -> tuple[sp.csr_array, tuple[RowBlock, ...]]:
    """Averages of mirror rows, row block by row block."""
    vanishing = np.zeros(formulation.program.row_lower.size, dtype=bool)
    paired = np.zeros(formulation.program.row_lower.size, dtype=bool)
    for block in formulation.blocks:
        vanishing[block.first : block.first + block.count] = block.folding.vanishes
        paired[block.first : block.first + block.count] = block.folding.paired
    new, old, weight, blocks, count = [], [], [], [], 0
    for rows in formulation.program.blocks:
        if rows.count == 0 or vanishing[rows.first]:
            continue
        here = np.arange(rows.first, rows.first + rows.count)
        halves = 2 if paired[rows.first] else 1
        size = rows.count // halves
        new.append(count + np.arange(rows.count) % size)
        old.append(here)
        weight.append(np.full(rows.count, 1.0 / halves))
        blocks.append(RowBlock(rows.kind, rows.name, count, size))
        count += size
    index = (np.concatenate(new), np.concatenate(old))
    matrix = sp.csr_array((np.concatenate(weight), index), shape=(count, formulation.program.row_lower.size))
    return matrix, tuple(blocks)


def _first_of_each(columns: sp.csr_array) -> np.ndarray:
    """For each new column the first old one that maps to it."""
    _, first = np.unique(columns.indices, return_index=True)
    return first


def _side(rows: sp.csr_array, side: np.ndarray) -> np.ndarray:
    """Row sides under averaging: infinite ones stay infinite (0 * inf never arises)."""
    finite = np.where(np.isfinite(side), side, 0.0)
    infinite = (abs(rows) @ (~np.isfinite(side)).astype(float)) > 0
    return np.where(infinite, np.sign(side[np.isinf(side)][0]) * np.inf if infinite.any() else 0.0, rows @ finite)


# --- envelope scaling ------------------------------------------------------------------------------------------------


def envelope(formulation: Formulation) -> np.ndarray:
    """The expected decay of the pmf over the core: max(e^(-epsilon |k - centre| / shift), delta), floored."""
    core = formulation.core
    terms = [t for group in formulation.problem.terms for t in group]
    terms.append(formulation.problem.objective_term)  # type: ignore[arg-type]  # a min-delta term has a rate as well
    centre = min(max(expected_centre(formulation.problem), core.first), core.last)
    distance = np.abs(core.indices - centre)
    rates = [float(t.epsilon) / t.shift for t in terms if isinstance(t, RatioTerm)]
    floor = _FLOOR
    if not rates:
        loose = [t for t in terms if isinstance(t, HockeyStickTerm | MinDeltaTerm)]
        rates = [float(t.epsilon) / t.shift for t in loose]
        floor = max([float(t.delta) for t in loose if isinstance(t, HockeyStickTerm)], default=_FLOOR)
    if not rates:
        return np.ones(core.size)
    return np.maximum(np.exp(-min(rates) * distance), max(floor, _FLOOR))


def scale_by_envelope(formulation: Formulation, folded: Reduction) -> Reduction:
    """Scale columns by the envelope and rows to coefficients of at most 1, and the objective to size 1.

    Absolute tolerances then mean relative ones, in the tail as well as in the middle.
    """
    program = folded.program
    full = np.ones(formulation.program.cost.size)
    full[: formulation.core.size] = envelope(formulation)
    for block in formulation.blocks:
        if isinstance(block, HockeyStickBlock):
            unit = _delta_unit(formulation, block)
            full[block.column : block.column + block.columns] = unit
            if block.total_column >= 0:
                full[block.total_column] = unit
    column = full[_first_of_each(folded.columns)]
    matrix = program.rows @ sp.diags_array(column)
    largest = abs(matrix).max(axis=1).toarray().ravel() if matrix.shape[0] else np.zeros(0)
    row = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 1.0)
    matrix = (sp.diags_array(row) @ matrix).tocsr()
    matrix.data[np.abs(matrix.data) < _NEGLIGIBLE] = 0.0
    matrix.eliminate_zeros()
    cost = program.cost * column
    scale = float(np.max(np.abs(cost), initial=0.0)) or 1.0
    cost = np.where(np.abs(cost) < _NEGLIGIBLE * scale, 0.0, cost)
    upper = program.upper / column
    weightless = (cost == 0) & (abs(matrix[[0]]).toarray().ravel() == 0)  # the first row is the mass
    upper[weightless] = np.minimum(upper[weightless], _LARGE)
    scaled = replace(
        program,
        cost=cost / scale,
        rows=matrix,
        row_lower=program.row_lower * row,
        row_upper=program.row_upper * row,
        lower=program.lower / column,
        upper=upper,
    )
    return Reduction(scaled, sp.diags_array(column).tocsr(), sp.diags_array(row).tocsr(), scale)


def _delta_unit(formulation: Formulation, block: HockeyStickBlock) -> float:
    """The size of a hockey-stick total: the wanted delta, or what the truncated geometric law reaches."""
    if block.owner >= 0:
        terms = formulation.problem.terms[block.owner]
        wanted = next(float(t.delta) for t in terms if isinstance(t, HockeyStickTerm))
        return max(wanted, _FLOOR) if wanted > 0 else 1.0
    decay = envelope(formulation)
    outermost = min(int(block.shifts.max(initial=1)), decay.size)
    return max(float(decay[-outermost:].sum() / decay.sum()), _FLOOR)


# --- rows that a point meets with equality ---------------------------------------------------------------------------


def tight_rows(reduction: Reduction, x: np.ndarray) -> Reduction:
    """Of the ratio rows only those that the point `x`, in the original coordinates, meets with equality.

    A relaxation, whose multipliers bound the original program all the same; if `x` is optimal they bound it by as
    much, since the multipliers of an optimum live on the rows that are tight there.
    """
    program = reduction.program
    here = np.zeros(program.cost.size)
    here[reduction.columns.indices] = x / reduction.columns.data  # each original column is one new one times a factor
    keep = np.ones(program.row_lower.size, dtype=bool)
    for block in program.blocks:
        if block.kind is BlockKind.PURE_DP:
            rows = program.rows[block.first : block.first + block.count]
            keep[block.rows] = np.abs(rows @ here) <= _TIGHT * (abs(rows) @ np.abs(here))
    select = sp.eye_array(keep.size, format="csr")[np.flatnonzero(keep)]
    fewer = replace(
        program,
        rows=(select @ program.rows).tocsr(),
        row_lower=program.row_lower[keep],
        row_upper=program.row_upper[keep],
        blocks=(),
    )
    return reduction.then(Reduction(fewer, sp.eye_array(here.size, format="csr"), select))


# --- elastic phase 1 -------------------------------------------------------------------------------------------------


def elastic(program: Program) -> Program:
    """Phase 1: every row but the mass may be violated at cost 1 a unit. Its optimum is 0 iff the rows can be met.

    Its multipliers prove infeasibility: a positive bound with zero cost is a Farkas combination.
    """
    size, rows = program.cost.size, program.row_lower.size
    hard = np.zeros(rows, dtype=bool)
    for block in program.blocks:
        if block.kind is BlockKind.MASS:
            hard[block.rows] = True
    below = np.flatnonzero(
        np.isfinite(program.row_lower) & ~hard
    )  # rows that may need +slack to reach their lower side
    above = np.flatnonzero(np.isfinite(program.row_upper) & ~hard)
    plus = sp.csr_array((np.ones(below.size), (below, np.arange(below.size))), shape=(rows, below.size))
    minus = sp.csr_array((-np.ones(above.size), (above, np.arange(above.size))), shape=(rows, above.size))
    slacks = below.size + above.size
    return Program(
        cost=np.concatenate([np.zeros(size), np.ones(slacks)]),
        rows=sp.hstack([program.rows, plus, minus], format="csr"),
        row_lower=program.row_lower,
        row_upper=program.row_upper,
        lower=np.concatenate([program.lower, np.zeros(slacks)]),
        upper=np.concatenate([program.upper, np.full(slacks, np.inf)]),
        blocks=program.blocks,
    )
