"""Second methods for programs: dense rows, scipy's simplex on the arrays, multipliers with their dual objective."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from dpopt.lattice_function import LatticeFunction
from dpopt.program.program import Program

FACTOR = 1 << 128


class Optimum(NamedTuple):
    """What scipy says; `y` in the convention of claims (<= 0 where the upper side is active)."""

    value: float
    x: np.ndarray
    y: np.ndarray
    feasible: bool


def optimum(program: Program) -> Optimum:
    """The linear program as it stands, by scipy.optimize.linprog."""
    equal = program.row_lower == program.row_upper
    above = np.isfinite(program.row_upper) & ~equal
    below = np.isfinite(program.row_lower) & ~equal
    rows = program.rows.tocsr()
    left = sp.vstack([rows[np.flatnonzero(above)], -rows[np.flatnonzero(below)]])
    right = np.concatenate([program.row_upper[above], -program.row_lower[below]])
    found = linprog(
        program.cost,
        A_ub=left if right.size else None,
        b_ub=right if right.size else None,
        A_eq=rows[np.flatnonzero(equal)] if equal.any() else None,
        b_eq=program.row_lower[equal] if equal.any() else None,
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs",
    )
    y = np.zeros(program.row_lower.size)
    if found.status != 0:
        return Optimum(float("nan"), np.zeros(0), y, False)
    if equal.any():
        y[equal] = found.eqlin.marginals
    if right.size:
        y[above] += found.ineqlin.marginals[: above.sum()]
        y[below] -= found.ineqlin.marginals[above.sum() :]
    return Optimum(float(found.fun), found.x, y, True)


def reduced_costs(program: Program, y: np.ndarray) -> np.ndarray:
    """cost - A^T y."""
    return program.cost - program.rows.T @ y


def dual_value(program: Program, y: np.ndarray, slack: float) -> float:
    """The bound that the multipliers prove, when no reduced cost of an unbounded column is below -slack."""
    side = np.where(y > 0, program.row_lower, program.row_upper)
    terms = np.where(y == 0, 0.0, y * np.where(np.isfinite(side), side, 0.0))
    assert not np.any((np.abs(y) > slack) & ~np.isfinite(side)), "a multiplier of a side that does not exist"
    reduced = reduced_costs(program, y)
    free = ~np.isfinite(program.upper)
    assert reduced[free].min(initial=0.0) >= -slack, reduced[free].min()
    ends = np.where(reduced >= 0, program.lower, np.where(free, 0.0, program.upper))
    return float(terms.sum() + (reduced * ends).sum())


def chained(function: LatticeFunction, first: int, last: int, shift: int, ratio: Fraction) -> list[Fraction]:
    """What one unit of each column first..last adds to E f with both geometric continuations, by exact tail sums."""
    found = [function(k) for k in range(first, last + 1)]
    for k in range(last - shift + 1, last + 1):
        found[k - first] += ratio * function.tail_sum(k + shift, shift, ratio)
    for k in range(first, first + shift):
        found[k - first] += ratio * function.tail_sum(k - shift, -shift, ratio)
    return found


def dense(program: Program) -> np.ndarray:
    """The rows as a full array."""
    return np.asarray(program.rows.todense())


def in_any_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows sorted, with floats rounded to 12 digits: equal multisets of rows have equal lists."""
    return sorted(tuple(0.0 if v == 0 else float(f"{v:.12g}") for v in row) for row in rows)


def windowed(cost: LatticeFunction, m: int, epsilon: float, half: int) -> float:
    """Least expected cost over [-half, half] with all pairs inside: own rows, in units that decay like the optimum.

    Without these units a solver's absolute tolerances swallow the tail.
    """
    k = np.arange(-half, half + 1)
    unit = np.exp(-epsilon * np.abs(k) / m)
    rows, columns, entries = [], [], []
    count = 0
    for i in range(k.size):
        for j in range(max(i - m, 0), min(i + m, k.size - 1) + 1):
            if i != j:
                rows += [count, count]
                columns += [i, j]
                entries += [1.0, -np.exp(epsilon) * unit[j] / unit[i]]
                count += 1
    found = linprog(
        unit * np.array([float(cost(int(z))) for z in k]),
        A_ub=sp.csr_array((entries, (rows, columns)), shape=(count, k.size)),
        b_ub=np.zeros(count),
        A_eq=unit.reshape(1, -1),
        b_eq=[1.0],
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)
