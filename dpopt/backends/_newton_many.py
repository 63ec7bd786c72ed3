"""Entropy over the pmfs with many sparse rows: a primal-dual interior point method in ``u = ln x``.

With equalities ``F x = f`` (the mass row first) and inequalities ``G x - s = h``, ``s >= 0``, the conditions are

    cost + u + 1 - F^T v - G^T z = 0,    x = exp(u),    s z = target,

where the first is linear in u and the third is driven to 0. The target of each inequality is proportional to the size
of its own terms ``sum |G| x``: a ratio between two tail masses of 1e-12 needs a slack far below 1e-12, and one target
for all rows would leave it at the mercy of the mass in the middle.

Eliminating z of the sparse rows leaves the banded matrix ``I + D G^T (z/s) G D`` with ``D = sqrt(x)``; rows with many
entries stay outside in a small Schur complement.

The start is uniform and tails fall by about 1 in ``ln x`` a step, so that the depth of the tail decides how long it
takes. Ratios between neighbours converge to 1e-10 however deep the tail. With ratios between points further apart, or
with lower bounds on many points, the steps can stay short; the method then ends at its limit without a point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dpopt.backends._newton_rows import DualResult, Stop
from dpopt.patience import checkpoint

__all__ = ["ManyRows", "interior_point"]

CONVERGED = 1e-10
"""Relative residual of every condition at the end."""

DENSE_SHARE = 0.05
"""Share of non-zero entries above which a row is handled outside the banded matrix."""

FLOOR = 1e-13
"""The relative complementarity at which the path ends."""

SHORT = 0.3
"""A step length below which the products ``s z`` are evened out first."""

LONGEST = 2.0
"""Largest change of ``ln x`` in a step, as the linearisation of ``exp`` means nothing beyond."""

HOPELESS = 1e12
"""Multipliers beyond this size say that the rows are infeasible, or nearly so; no claim is made then."""


@dataclass(frozen=True, eq=False)
class ManyRows:
    """The problem without its mass row: sparse rows over the columns that may be positive, for a pmf of total 1."""

    matrix: sp.csr_array
    low: np.ndarray
    high: np.ndarray
    cost: np.ndarray


@dataclass(frozen=True, eq=False)
class _Form:
    """Equalities ``F x = f`` with the mass row first, and inequalities ``G x >= h``, the `dense` ones marked."""

    equalities: sp.csr_array
    f: np.ndarray
    inequalities: sp.csr_array
    h: np.ndarray
    dense: np.ndarray
    cost: np.ndarray


@dataclass(eq=False)
class _Iterate:
    """One point of the path."""

    u: np.ndarray
    v: np.ndarray
    s: np.ndarray
    z: np.ndarray


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What is left of the conditions, and the sizes against which to judge them."""

    dual: np.ndarray
    equality: np.ndarray
    inequality: np.ndarray
    equality_size: np.ndarray
    inequality_size: np.ndarray

    @property
    def feasibility(self) -> float:
        """The largest relative residual of a row."""
        equality = np.max(np.abs(self.equality) / self.equality_size, initial=0.0)
        return float(max(equality, np.max(np.abs(self.inequality) / self.inequality_size, initial=0.0)))

    def product_size(self, point: _Iterate) -> np.ndarray:
        """The size of ``s z``: beside a large multiplier the slack must stay above the rounding of its row."""
        size: np.ndarray = self.inequality_size * np.maximum(point.z, 1.0)
        return size

    def worst(self, point: _Iterate) -> float:
        """The largest relative residual, complementarity included."""
        complementarity = np.max(point.s * point.z / self.product_size(point), initial=0.0)
        return float(max(self.feasibility, np.max(np.abs(self.dual), initial=0.0), complementarity))


def interior_point(problem: ManyRows, iterations: int) -> DualResult:
    """Follow the central path to its end; the answer's `y` are the multipliers of the problem's rows."""
    form, rows_of = _standard_form(problem)
    point = _start(form)
    stop, steps = Stop.LIMIT, 0
    residuals = _residuals(form, point)
    best, best_point, idle = residuals.worst(point), point, 0
    while steps < iterations:
        checkpoint()
        worst = residuals.worst(point)
        if worst < best / 2:
            best, best_point, idle = worst, point, 0
        else:
            idle += 1
        if worst <= 2 * FLOOR or (best <= CONVERGED and idle > 1):
            stop = Stop.CONVERGED
            break
        if not np.isfinite(worst) or np.max(point.z, initial=0.0) > HOPELESS:
            break
        following = _step(form, point, residuals)
        if following is None:
            break
        point, steps = following, steps + 1
        residuals = _residuals(form, point)
    if best <= CONVERGED:
        stop = Stop.CONVERGED
    elif best <= np.sqrt(CONVERGED):
        stop = Stop.STALLED
    return _result(problem, best_point, rows_of, stop, best, steps)


def _standard_form(problem: ManyRows) -> tuple[_Form, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Equalities and inequalities with one side each, and the rows they come from."""
    equal = np.flatnonzero(problem.low == problem.high)
    unequal = problem.low != problem.high
    below = np.flatnonzero(unequal & np.isfinite(problem.low))
    above = np.flatnonzero(unequal & np.isfinite(problem.high))
    size = problem.cost.size
    ones = sp.csr_array(np.ones((1, size)))
    inequalities = sp.csr_array(sp.vstack([problem.matrix[below], -problem.matrix[above]]))
    form = _Form(
        equalities=sp.csr_array(sp.vstack([ones, problem.matrix[equal]])),
        f=np.concatenate([[1.0], problem.low[equal]]),
        inequalities=inequalities,
        h=np.concatenate([problem.low[below], -problem.high[above]]),
        dense=np.diff(inequalities.indptr) > max(10.0, DENSE_SHARE * size),
        cost=problem.cost,
    )
    return form, (equal, below, above)


def _start(form: _Form) -> _Iterate:
    """The uniform pmf, slacks of at least a tenth of the size of their rows, and multipliers to match."""
    size = form.cost.size
    u = np.full(size, -np.log(size))
    activity = form.inequalities @ np.exp(u) - form.h
    scale = _sizes(form.inequalities, np.exp(u), form.h)
    s = np.maximum(activity, 0.1 * scale)
    return _Iterate(u, np.zeros(form.f.size), s, 0.1 * scale / s)


def _sizes(rows: sp.csr_array, x: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """The size of each row's terms, its side included."""
    sizes: np.ndarray = abs(rows) @ x + np.abs(sides)
    return np.where(sizes > 0, sizes, 1.0)


def _residuals(form: _Form, point: _Iterate) -> _Residuals:
    """All conditions but the complementarity at `point`."""
    x = np.exp(point.u)
    return _Residuals(
        dual=form.cost + point.u + 1.0 - form.equalities.T @ point.v - form.inequalities.T @ point.z,
        equality=form.equalities @ x - form.f,
        inequality=form.inequalities @ x - point.s - form.h,
        equality_size=_sizes(form.equalities, x, form.f),
        inequality_size=_sizes(form.inequalities, x, form.h),
    )


class _System:
    """The Newton system at one point, factorised once and solved for several targets."""

    def __init__(self, form: _Form, point: _Iterate, residuals: _Residuals) -> None:
        from scipy.sparse.linalg import splu

        self.form, self.point, self.residuals = form, point, residuals
        self.root = np.exp(point.u / 2)
        scale = sp.diags_array(self.root)
        self.sparse, self.outside = ~form.dense, form.dense
        banded = sp.csr_array(form.inequalities[self.sparse] @ scale)
        weights = sp.diags_array(point.z[self.sparse] / point.s[self.sparse])
        matrix = sp.csc_array(sp.eye_array(self.root.size) + banded.T @ (weights @ banded))
        self.factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        self.border = sp.vstack([form.equalities, form.inequalities[self.outside]]).toarray() * self.root
        self.solved_border = self.factor.solve(np.ascontiguousarray(self.border.T))
        corner = np.concatenate([np.zeros(form.f.size), point.s[self.outside] / point.z[self.outside]])
        self.schur = self.border @ self.solved_border + np.diag(corner)

    def solve(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Directions of u, v, s and z towards ``s z = target``."""
        form, point, residuals = self.form, self.point, self.residuals
        wish = (target - point.s * point.z) / point.s - point.z / point.s * residuals.inequality
        inside = np.where(self.sparse, wish, 0.0)
        right = self.root * (-residuals.dual + form.inequalities.T @ inside)
        beside = (target - point.s * point.z) / point.z - residuals.inequality
        lower = np.concatenate([-residuals.equality, beside[self.outside]])
        solved = self.factor.solve(right)
        edge = _solve_small(self.schur, lower - self.border @ solved)
        q = solved + self.solved_border @ edge
        dv, dz_outside = edge[: form.f.size], edge[form.f.size :]
        ds = form.inequalities @ (self.root * q) + residuals.inequality
        dz = (target - point.s * point.z - point.z * ds) / point.s
        dz[self.outside] = dz_outside
        du = -residuals.dual + form.equalities.T @ dv + form.inequalities.T @ dz
        return du, dv, ds, dz


def _solve_small(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve with a unit diagonal, by least squares when rows repeat each other."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    try:
        solution: np.ndarray = np.linalg.solve(scaled, right * scale)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(scaled, right * scale, rcond=None)[0]
    return solution * scale


def _step(form: _Form, point: _Iterate, residuals: _Residuals) -> _Iterate | None:
    """Predictor, then corrector, then as far as the signs of s and z and the linearisation allow."""
    try:
        system = _System(form, point, residuals)
    except RuntimeError:  # an exactly singular factor
        return None
    size = residuals.product_size(point)
    _, _, ds, dz = system.solve(np.zeros(point.s.size))
    reach_s, reach_z = _reach(point.s, ds), _reach(point.z, dz)
    now = float(np.mean(point.s * point.z / size)) if point.s.size else 0.0
    ahead = float(np.mean((point.s + reach_s * ds) * (point.z + reach_z * dz) / size)) if point.s.size else 0.0
    centring = (ahead / now) ** 3 if now > 0 else 0.0
    # Slacks that vanish before their rows hold make the matrix singular and the step short: wait for the rows.
    wait = min(0.1 * residuals.feasibility, now)
    target = max(max(centring, 1e-3) * now, wait, FLOOR) * size
    following, length = _along(point, system.solve(target - reach_s * reach_z * ds * dz))
    if length < SHORT:
        # Some products have run ahead of the others; a step that only evens them out gets the path going again.
        evened, longer = _along(point, system.solve(max(now, FLOOR) * size))
        following = evened if longer > length else following
    return following


def _along(
    point: _Iterate, direction: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
) -> tuple[_Iterate | None, float]:
    """The point as far along a direction as the signs of s and z and the linearisation allow, and how far that is."""
    du, dv, ds, dz = direction
    if not all(np.all(np.isfinite(part)) for part in direction):
        return None, 0.0
    longest = LONGEST / max(float(np.max(np.abs(du), initial=0.0)), LONGEST)
    length = min(longest, 0.995 * _reach(point.s, ds), 0.995 * _reach(point.z, dz))
    following = _Iterate(point.u + length * du, point.v + length * dv, point.s + length * ds, point.z + length * dz)
    return following, length


def _reach(values: np.ndarray, change: np.ndarray) -> float:
    """The largest step in (0, 1] that leaves `values` at least 0."""
    falling = change < 0
    return float(min(1.0, np.min(-values[falling] / change[falling], initial=np.inf)))


def _result(
    problem: ManyRows,
    point: _Iterate,
    rows_of: tuple[np.ndarray, np.ndarray, np.ndarray],
    stop: Stop,
    worst: float,
    steps: int,
) -> DualResult:
    """The pmf and the multipliers by row; the mass row's multiplier is 1 - ln Z."""
    equal, below, above = rows_of
    y = np.zeros(problem.low.size)
    y[equal] = point.v[1:]
    y[below] = point.z[: below.size]
    y[above] -= point.z[below.size :]
    return DualResult(stop, np.exp(point.u), y, 1.0 - float(point.v[0]), worst, steps)
