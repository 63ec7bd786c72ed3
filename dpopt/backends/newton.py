"""Newton's method for maximum entropy over a pmf: few rows through the dual, many sparse rows by an interior point.

With the mass row ``sum x = s`` apart, the minimiser of ``cost @ x + sum x ln x`` is ``x = s exp(A^T y - cost) / Z``, so
that millions of support points are a matter of one multiplier a row.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpopt.backends._newton_few import ACCEPTED, DualResult, FewRows, Stop, minimise_dual
from dpopt.backends._newton_many import ManyRows, interior_point
from dpopt.backends._scaling import finite_or_error
from dpopt.backends._shared import package_versions, require
from dpopt.backends.base import Availability, Claim, Claimed, Option, Support, installed, read_options
from dpopt.errors import InputError
from dpopt.program.program import BlockKind, Program

__all__ = ["FEW_ROWS", "Newton", "polish"]

logger = logging.getLogger(__name__)

FEW_ROWS = 50
"""Rows besides the mass row up to which the dual method with dense rows is used."""

STATUS = {
    Stop.CONVERGED: Claimed.OPTIMAL,
    Stop.BOUNDARY: Claimed.INACCURATE,
    Stop.STALLED: Claimed.INACCURATE,
    Stop.INFEASIBLE: Claimed.INFEASIBLE,
    Stop.LIMIT: Claimed.ERROR,
}
"""What a stop of the method claims. At the limit the rows may well be infeasible, so that no point is offered."""


class Newton:
    """Maximum entropy with linear rows on the pmf itself.

    Takes programs with ``x ln x`` of weight 1 on every column, bounds ``x >= 0`` (or a column fixed at 0) and one
    row of kind `BlockKind.MASS`.

    Examples
    --------
    The pmf on {-1, 0, 1} of mean square 1/2 with the largest entropy is (1/4, 1/2, 1/4).

    >>> import numpy as np, scipy.sparse as sp
    >>> from dpopt.program.program import BlockKind, Program, RowBlock
    >>> program = Program(cost=np.zeros(3), rows=sp.csr_array(np.array([[1.0, 1, 1], [1, 0, 1]])),
    ...                   row_lower=np.array([1.0, -np.inf]), row_upper=np.array([1.0, 0.5]),
    ...                   lower=np.zeros(3), upper=np.full(3, np.inf), entropy=np.ones(3),
    ...                   blocks=(RowBlock(BlockKind.MASS, "mass", 0, 1),))
    >>> claim = Newton().solve(program, {})
    >>> claim.status.value, claim.x.round(12).tolist()
    ('optimal', [0.25, 0.5, 0.25])
    """

    name: ClassVar[str] = "newton"
    requires: ClassVar[tuple[str, ...]] = ("numpy", "scipy")
    options: ClassVar[Mapping[str, Option]] = {
        "iterations": Option(int, 1000, "Newton steps after which the method gives up"),
    }

    def availability(self) -> Availability:
        """Always available: dpopt itself needs NumPy and SciPy."""
        return installed(self.requires)

    def supports(self, program: Program) -> Support:
        """Entropy over a pmf alone: weight 1 on every column, one mass row, no upper bounds that could be active."""
        reason = _refusal(program)
        return Support(not reason, reason or "an entropy over a pmf with linear rows")

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        """Answer the program; see `dpopt.backends.base.Backend`."""
        values = read_options(self, options)
        require(self, program)
        if values["iterations"] < 1:
            raise InputError("options.iterations", f"must be at least 1, not {values['iterations']}")
        version = f"dual Newton with {package_versions('numpy', 'scipy')}"
        reduced = _reduce(program)
        started = time.perf_counter()
        with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
            if reduced.free.size == 0:
                return Claim(Claimed.INFEASIBLE, self.name, version, "every column is fixed to 0, and the mass is not")
            if reduced.others.size <= FEW_ROWS:
                result = minimise_dual(reduced.few(program), np.zeros(reduced.others.size), values["iterations"])
            else:
                result = interior_point(reduced.many(program), values["iterations"])
        seconds = time.perf_counter() - started
        status = STATUS[result.stop]
        words = f"{result.stop.value} after {result.iterations} steps; imbalance of the rows {result.imbalance:.1e}"
        logger.debug("newton: %s in %.3f s", words, seconds)
        tolerances = {"imbalance": ACCEPTED}
        if status in (Claimed.INFEASIBLE, Claimed.ERROR):
            return Claim(status, self.name, version, words, tolerances=tolerances, seconds=seconds)
        x, y = reduced.back(program, result)
        objective = program.objective(x)
        return finite_or_error(Claim(status, self.name, version, words, x, y, objective, tolerances, seconds))


def polish(program: Program, y: np.ndarray, iterations: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Point and multipliers of a program with few rows, improved by dual Newton steps from given multipliers.

    Parameters
    ----------
    program : Program
        One that `Newton` supports, with at most `FEW_ROWS` rows besides the mass row.
    y : array, shape (m,)
        Multipliers of the rows in dpopt's convention, from any backend; those of the wrong sign start at 0, and the
        mass row's is not read.
    iterations : int
        The most Newton steps to take.

    Returns
    -------
    x, y : array
        The pmf that belongs exactly to the multipliers ``y``, and those multipliers.
    """
    reason = _refusal(program)
    if reason:
        raise InputError("program", f"cannot be polished: {reason}")
    if y.shape != program.row_lower.shape:
        raise InputError("y", f"must have one multiplier a row, shape {program.row_lower.shape}, not {y.shape}")
    reduced = _reduce(program)
    if reduced.others.size > FEW_ROWS:
        raise InputError("program", f"can have {FEW_ROWS} rows besides the mass row, not {reduced.others.size}")
    start = np.where(np.isfinite(y), y, 0.0)[reduced.others]
    with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
        result = minimise_dual(reduced.few(program), start, iterations)
    return reduced.back(program, result)


@dataclass(frozen=True, eq=False)
class _Reduced:
    """Where the mass row is, which columns may be positive, and which rows are left."""

    mass_row: int
    coefficient: float
    mass: float
    free: np.ndarray
    others: np.ndarray

    def few(self, program: Program) -> FewRows:
        """Dense rows over the free columns, for a pmf of total 1."""
        sparse = self.many(program)
        return FewRows(np.ascontiguousarray(sparse.matrix.toarray()), sparse.low, sparse.high, sparse.cost)

    def many(self, program: Program) -> ManyRows:
        """Sparse rows over the free columns, for a pmf of total 1."""
        rows = sp.csr_array(program.rows[self.others])
        if self.free.size < program.cost.size:
            rows = sp.csr_array(rows[:, self.free])
        low, high = program.row_lower[self.others] / self.mass, program.row_upper[self.others] / self.mass
        return ManyRows(rows, low, high, program.cost[self.free])

    def back(self, program: Program, result: DualResult) -> tuple[np.ndarray, np.ndarray]:
        """Point and multipliers of the program; the mass row's makes ``cost + ln x + 1 - A^T y`` vanish."""
        x, y = np.zeros(program.cost.size), np.zeros(program.row_lower.size)
        x[self.free] = self.mass * result.x
        y[self.others] = result.y
        y[self.mass_row] = (1.0 + np.log(self.mass) - result.log_z) / self.coefficient
        return x, y


def _refusal(program: Program) -> str:
    """Why the program is not of the form that the method takes; empty when it is."""
    if not program.has_entropy:
        return "backend 'newton' is for entropy objectives; use 'highs'"
    if program.has_integers:
        return "backend 'newton' takes no integer columns"
    free = program.upper > 0
    if np.any(program.entropy[free] != 1) or np.any(program.lower != 0) or np.any(program.upper < 0):
        return "backend 'newton' needs x ln x of weight 1 and the lower bound 0 on every column; use 'cvxpy'"
    equalities = int(np.sum(program.row_lower == program.row_upper))
    if program.row_lower.size > FEW_ROWS + 1 and equalities > FEW_ROWS:
        return f"backend 'newton' takes many rows with at most {FEW_ROWS} equalities, not {equalities}; use 'cvxpy'"
    return _mass_refusal(program, free)


def _mass_refusal(program: Program, free: np.ndarray) -> str:
    """Why the mass row is not ``c sum x = s`` with positive c and s; empty when it is."""
    blocks = [block for block in program.blocks if block.kind is BlockKind.MASS]
    if len(blocks) != 1 or blocks[0].count != 1:
        return "backend 'newton' needs exactly one mass row, marked by a block of kind 'mass'"
    row = blocks[0].first
    side = program.row_lower[row]
    weights = program.rows[[row]].toarray().ravel()[free]
    if weights.size and (weights[0] <= 0 or np.any(weights != weights[0])):
        return "backend 'newton' needs the same positive coefficient on every column of the mass row"
    if side != program.row_upper[row] or not 0 < side < np.inf:
        return "backend 'newton' needs a mass row that equals a positive number"
    if weights.size and np.any(program.upper[free] * weights < side):
        return "backend 'newton' takes no upper bounds below the mass; use 'cvxpy'"
    return ""


def _reduce(program: Program) -> _Reduced:
    """The parts of a program that `_refusal` has nothing against."""
    row = next(block.first for block in program.blocks if block.kind is BlockKind.MASS)
    free = np.flatnonzero(program.upper > 0)
    weights = program.rows[[row]].toarray().ravel()[free]
    coefficient = float(weights[0]) if weights.size else 1.0
    others = np.delete(np.arange(program.row_lower.size), row)
    return _Reduced(row, coefficient, float(program.row_lower[row]) / coefficient, free, others)
