"""Scaling by powers of two, so that a solver which drops small coefficients has none to drop.

HiGHS takes ``|a| <= 1e-9`` for zero without a word (1e-12 when told to). A program with such entries is another program
afterwards, and "optimal" is then said of the wrong one. Powers of two scale without rounding.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dpopt.backends.base import Claim, Claimed
from dpopt.program.program import Program

__all__ = ["Scaling", "finite_or_error", "tame"]

logger = logging.getLogger(__name__)

_WIDEST = 500  # a factor of a row times one of a column is still a float
ROUNDS = 6
"""Sweeps of geometric scaling; the factors barely move after a few."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """The way back from a scaled program: ``x = columns * x'`` and ``y = rows * y'``.

    Parameters
    ----------
    rows, columns : array or None
        The factors, powers of two; None when nothing was scaled.
    dropped : int
        Entries that are still too small for the solver.
    threshold : float
        The size up to which the solver drops an entry.
    """

    rows: np.ndarray | None
    columns: np.ndarray | None
    dropped: int
    threshold: float

    def back(self, claim: Claim) -> Claim:
        """The claim in the coordinates of the unscaled program; what is not finite, or was dropped, is said."""
        if self.rows is not None and self.columns is not None:
            x = claim.x * self.columns if claim.x.size else claim.x
            y = claim.y * self.rows if claim.y.size else claim.y
            words = f"{claim.message}; scaled by powers of two, tolerances are in force after scaling"
            claim = replace(claim, x=x, y=y, message=words)
        if self.dropped:
            words = f"{claim.message}; {self.dropped} coefficients of at most {self.threshold:g} were dropped"
            status = Claimed.INACCURATE if claim.status is Claimed.OPTIMAL else claim.status
            claim = replace(claim, message=words, status=status)
        return finite_or_error(claim)


def finite_or_error(claim: Claim) -> Claim:
    """The claim, or an error when a number in it is not finite: solvers can be optimal at NaN."""
    finite = bool(np.all(np.isfinite(claim.x)) and np.all(np.isfinite(claim.y)))
    if finite and not (claim.has_point and np.isnan(claim.objective)):
        return claim
    words = f"the solver's answer is not finite ({claim.message})"
    return replace(claim, status=Claimed.ERROR, message=words, x=np.zeros(0), y=np.zeros(0), objective=float("nan"))


def tame(program: Program, *, threshold: float) -> tuple[Program, Scaling]:
    """The program itself when no entry is at most `threshold` in size, else the program scaled, and the way back.

    Integer columns keep their unit.
    """
    if not _count_small(program.rows, threshold):
        return program, Scaling(None, None, 0, threshold)
    rows, columns = _geometric_factors(program)
    matrix = sp.csr_array(sp.diags_array(rows) @ program.rows @ sp.diags_array(columns))
    scaled = replace(
        program,
        cost=program.cost * columns,
        rows=matrix,
        row_lower=program.row_lower * rows,
        row_upper=program.row_upper * rows,
        lower=program.lower / columns,
        upper=program.upper / columns,
    )
    dropped = _count_small(matrix, threshold)
    if dropped:
        logger.warning("%d coefficients are at most %g even after scaling and will be dropped", dropped, threshold)
    return scaled, Scaling(rows, columns, dropped, threshold)


def _count_small(matrix: sp.csr_array, threshold: float) -> int:
    """How many non-zero entries are at most `threshold` in size."""
    size = np.abs(matrix.data)
    return int(np.count_nonzero((size > 0) & (size <= threshold)))


def _geometric_factors(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Row and column factors that bring ``sqrt(min * max)`` of each row and column to about 1."""
    entries = sp.coo_array(program.rows)
    keep = entries.data != 0
    row, column = entries.coords[0][keep], entries.coords[1][keep]
    log_size = np.log2(np.abs(entries.data[keep]))
    row_log = np.zeros(program.rows.shape[0])
    column_log = np.zeros(program.rows.shape[1])
    for _ in range(ROUNDS):
        row_log = -_middle(log_size + column_log[column], row, row_log.size)
        column_log = -_middle(log_size + row_log[row], column, column_log.size)
        column_log[program.integer] = 0.0
    factors = (np.exp2(np.clip(np.round(log), -_WIDEST, _WIDEST)) for log in (row_log, column_log))
    return next(factors), next(factors)


def _middle(values: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """The middle between the least and the greatest value of each group; 0 for an empty group."""
    least, greatest = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, group, values)
    np.maximum.at(greatest, group, values)
    middle, used = np.zeros(groups), np.isfinite(least)
    middle[used] = (least[used] + greatest[used]) / 2
    return middle
