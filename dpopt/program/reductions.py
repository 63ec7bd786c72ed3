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

from dpopt.program.formulate import Formulation, expected_centre
from dpopt.program.program import BlockKind, Program, RowBlock
from dpopt.program.rows.base import LEAST_UNIT

__all__ = ["Reduction", "elastic", "fold", "identity", "is_foldable", "reduce", "scale_by_envelope", "tight_rows"]

_NEGLIGIBLE = 2e-12  # beside coefficients of 1 and masses of 1: below every solver's resolution, and upsetting to some
_LARGE = 1e3  # for columns so far out that neither cost nor mass holds them: a multiple of what they are expected to be
_TIGHT = 1e-9  # of the terms of a ratio row, beside which its slack counts as none


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
    problem = formulation.problem
    parts = (problem.objective_term, *problem.all_terms)
    return formulation.core.is_symmetric and all(part.is_symmetric for part in parts)


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
        span, pairs = np.arange(block.columns), block.folding.columns if block.folding.paired else 0
        half = pairs // 2
        target[block.column : block.column + block.columns] = count + np.where(
            span < pairs, span % max(half, 1), span - half
        )
        count += block.columns - half
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
    core, problem = formulation.core, formulation.problem
    decays = [part.decay for part in (problem.objective_term, *problem.all_terms)]
    expected = [decay for decay in decays if decay is not None]
    expected = [decay for decay in expected if decay.is_strict] or expected
    if not expected:
        return np.ones(core.size)
    centre = min(max(expected_centre(problem), core.first), core.last)
    rate, floor = min(decay.rate for decay in expected), max(decay.floor for decay in expected)
    return np.maximum(np.exp(-rate * np.abs(core.indices - centre)), max(floor, LEAST_UNIT))


def scale_by_envelope(formulation: Formulation, folded: Reduction) -> Reduction:
    """Scale columns by the envelope and rows to coefficients of at most 1, and the objective to size 1.

    Absolute tolerances then mean relative ones, in the tail as well as in the middle.
    """
    program = folded.program
    full = np.ones(formulation.program.cost.size)
    full[: formulation.core.size] = expected = envelope(formulation)
    for block in formulation.blocks:
        full[block.column : block.column + block.columns] = block.column_unit(expected)
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
        if block.kind is BlockKind.RATIO:
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
