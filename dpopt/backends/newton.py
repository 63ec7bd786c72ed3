"""Newton's method for maximum entropy over a pmf: few rows through the dual, many sparse rows by an interior point.

With the mass row ``sum x = s`` apart, the minimiser of ``cost @ x + sum x ln x`` is ``x = s exp(A^T y - cost) / Z``, so
that millions of support points are a matter of one multiplier a row.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpopt.backends._newton_few import ACCEPTED, minimise_dual, minimise_thinned
from dpopt.backends._newton_many import ManyRows, interior_point
from dpopt.backends._newton_rows import CHUNK, DualResult, FewRows, NearlyFull, Stop
from dpopt.backends._scaling import finite_or_error
from dpopt.backends._shared import package_versions
from dpopt.backends.base import Availability, Claim, Claimed, Option, Support, installed, read_options
from dpopt.errors import BackendError, InputError
from dpopt.program.program import BlockKind, Program

__all__ = ["FEW_ROWS", "Newton", "polish"]

logger = logging.getLogger(__name__)

FEW_ROWS = 50
"""Rows besides the mass row up to which the dual method with dense rows is used."""

GAPS = 16
"""Zeros in a row up to which its entries stay where they are in the sparse matrix."""

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
        reduced = _reduce(program)
        if isinstance(reduced, str):
            return Support(False, reduced)
        return Support(True, "an entropy over a pmf with linear rows")

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        """Answer the program; see `dpopt.backends.base.Backend`."""
        values = read_options(self, options)
        reduced = _reduce(program)
        if isinstance(reduced, str):
            raise BackendError(f"backend '{self.name}' cannot take this program: {reduced}")
        if values["iterations"] < 1:
            raise InputError("options.iterations", f"must be at least 1, not {values['iterations']}")
        # Whether NumPy and SciPy are there need not be asked: this file imports them.
        version = f"dual Newton with {package_versions('numpy', 'scipy')}"
        started = time.perf_counter()
        with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
            if reduced.columns == 0:
                return Claim(Claimed.INFEASIBLE, self.name, version, "every column is fixed to 0, and the mass is not")
            if reduced.others.size <= FEW_ROWS:
                result = minimise_thinned(reduced.few(program), values["iterations"])
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
        if result.is_finite:
            objective = reduced.objective(result)
            return Claim(status, self.name, version, words, x, y, objective, tolerances, seconds)
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
    reduced = _reduce(program)
    if isinstance(reduced, str):
        raise InputError("program", f"cannot be polished: {reduced}")
    if y.shape != program.row_lower.shape:
        raise InputError("y", f"must have one multiplier a row, shape {program.row_lower.shape}, not {y.shape}")
    if reduced.others.size > FEW_ROWS:
        raise InputError("program", f"can have {FEW_ROWS} rows besides the mass row, not {reduced.others.size}")
    start = np.where(np.isfinite(y), y, 0.0)[reduced.others]
    with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
        result = minimise_dual(reduced.few(program), start, iterations)
    return reduced.back(program, result)


@dataclass(frozen=True, eq=False)
class _Reduced:
    """Where the mass row is, which columns may be positive (None for all of them), and which rows are left."""

    mass_row: int
    coefficient: float
    mass: float
    columns: int
    free: np.ndarray | None
    others: np.ndarray

    def few(self, program: Program) -> FewRows:
        """The rows over the free columns, for a pmf of total 1."""
        nearly = _nearly_full(program.rows, self.others) if self.free is None else None
        matrix = nearly or _dense(program.rows, self.others)
        low, high = program.row_lower[self.others] / self.mass, program.row_upper[self.others] / self.mass
        if self.free is None:
            return FewRows(matrix, low, high, program.cost)
        assert isinstance(matrix, np.ndarray)
        return FewRows(np.ascontiguousarray(matrix[:, self.free]), low, high, program.cost[self.free])

    def many(self, program: Program) -> ManyRows:
        """Sparse rows over the free columns, for a pmf of total 1."""
        rows, cost = sp.csr_array(program.rows[self.others]), program.cost
        if self.free is not None:
            rows, cost = sp.csr_array(rows[:, self.free]), cost[self.free]
        low, high = program.row_lower[self.others] / self.mass, program.row_upper[self.others] / self.mass
        return ManyRows(rows, low, high, cost)

    def back(self, program: Program, result: DualResult) -> tuple[np.ndarray, np.ndarray]:
        """Point and multipliers of the program; the mass row's makes ``cost + ln x + 1 - A^T y`` vanish."""
        x, y = result.x, np.zeros(program.row_lower.size)
        if self.mass != 1:
            x = self.mass * x
        if self.free is not None:
            some, x = x, np.zeros(program.cost.size)
            x[self.free] = some
        y[self.others] = result.y
        y[self.mass_row] = (1.0 + np.log(self.mass) - result.log_z) / self.coefficient
        return x, y

    def objective(self, result: DualResult) -> float:
        """The program's objective from the one for a pmf of total 1."""
        return float(self.mass * (result.value + np.log(self.mass)))


def _reduce(program: Program) -> _Reduced | str:
    """The parts of a program that the method takes, or why it does not.

    Each array of a column's length is read once, and whole: to pick the free columns first would copy them all.
    """
    everything = bool(program.upper.min(initial=np.inf) > 0)
    free = np.zeros(0, dtype=bool) if everything else program.upper > 0
    if not program.entropy[:1].any() and not program.has_entropy:
        return "backend 'newton' is for entropy objectives; use 'highs'"
    if program.has_integers:
        return "backend 'newton' takes no integer columns"
    odd = program.entropy != 1
    unbounded = everything or not np.any(program.upper < 0)
    if np.any(odd if everything else odd & free) or np.any(program.lower != 0) or not unbounded:
        return "backend 'newton' needs x ln x of weight 1 and the lower bound 0 on every column; use 'cvxpy'"
    equalities = int(np.sum(program.row_lower == program.row_upper))
    if program.row_lower.size > FEW_ROWS + 1 and equalities > FEW_ROWS:
        return f"backend 'newton' takes many rows with at most {FEW_ROWS} equalities, not {equalities}; use 'cvxpy'"
    return _around_the_mass(program, None if everything else np.flatnonzero(free))


def _around_the_mass(program: Program, free: np.ndarray | None) -> _Reduced | str:
    """The program without its mass row; why not, when that is not ``c sum x = s`` with positive c and s."""
    blocks = [block for block in program.blocks if block.kind is BlockKind.MASS]
    if len(blocks) != 1 or blocks[0].count != 1:
        return "backend 'newton' needs exactly one mass row, marked by a block of kind 'mass'"
    row = blocks[0].first
    side = float(program.row_lower[row])
    weights, upper = _dense(program.rows, np.array([row]))[0], program.upper
    if free is not None:
        weights, upper = weights[free], upper[free]
    coefficient = float(weights[0]) if weights.size else 1.0
    if coefficient <= 0 or np.any(weights != coefficient):
        return "backend 'newton' needs the same positive coefficient on every column of the mass row"
    if side != program.row_upper[row] or not 0 < side < np.inf:
        return "backend 'newton' needs a mass row that equals a positive number"
    if float(upper.min(initial=np.inf)) * coefficient < side:
        return "backend 'newton' takes no upper bounds below the mass; use 'cvxpy'"
    others = np.delete(np.arange(program.row_lower.size), row)
    return _Reduced(row, coefficient, side / coefficient, weights.size, free, others)


def _nearly_full(matrix: sp.csr_array, numbers: np.ndarray) -> NearlyFull | None:
    """Some rows of a sparse matrix where they lie; None where that does not pay."""
    first, last, size = matrix.indptr[numbers], matrix.indptr[numbers + 1], matrix.shape[1]
    missing = size - (last - first)
    long = size > CHUNK and matrix.data.dtype == np.float64 and matrix.has_canonical_format
    if not long or not numbers.size or not 0 < missing.max() <= GAPS:
        return None
    values, gaps = [], []
    for start, stop, count in zip(first.tolist(), last.tolist(), missing.tolist(), strict=True):
        indices = matrix.indices[start:stop]
        # How many columns an entry's column is ahead of its place never falls from one entry to the next.
        places = [bisect_right(range(stop - start), i, key=lambda j: indices[j] - j) for i in range(count)]
        gaps.append([place + i for i, place in enumerate(places)])
        values.append(matrix.data[start:stop])
    return NearlyFull(values, gaps, size)


def _dense(matrix: sp.csr_array, numbers: np.ndarray) -> np.ndarray:
    """Some rows of a sparse matrix as a dense array: a view of its data where these rows are full and adjacent."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    size = matrix.shape[1]
    first, last = matrix.indptr[numbers], matrix.indptr[numbers + 1]
    # Indices that increase strictly and are as many as the columns are all of them.
    full_rows = numbers.size and matrix.data.dtype == np.float64 and np.all(last - first == size)
    if full_rows and last[-1] - first[0] == numbers.size * size:
        full: np.ndarray = matrix.data[first[0] : last[-1]].reshape(numbers.size, size)
        return full
    dense = np.zeros((numbers.size, size))
    for row, start, stop in zip(dense, first.tolist(), last.tolist(), strict=True):
        for begin in range(start, stop, CHUNK):
            end = min(begin + CHUNK, stop)
            columns, values = matrix.indices[begin:end], matrix.data[begin:end]
            if columns[-1] - columns[0] == end - begin - 1:  # a run without a gap, which is copied much faster
                row[columns[0] : columns[-1] + 1] = values
            else:
                row[columns] = values
    return dense
