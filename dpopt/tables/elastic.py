"""A proof that no table exists: the inequalities made elastic, and a combination of them that is exact.

With a column that every inequality may borrow from, the program always has a point, and its least loan is positive
exactly when no real table meets the constraints. Its multipliers, read as integers, bound the loan from below (weak
duality with no cost on the counts): a positive bound is a proof, whatever the solver said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt.backends.base import Backend, ask
from dpopt.pmf import Pmf
from dpopt.program.program import Program
from dpopt.tables.bound import Lagrangian
from dpopt.tables.costs import VariationCost
from dpopt.tables.offsets import OffsetProgram, offset_program
from dpopt.tables.question import Question

__all__ = ["impossible"]

_COARSE_BITS = 12
_PRECISION = 1 << 80


class _NoCost(VariationCost):
    """Every table costs nothing; the scale is only the resolution of the multipliers."""

    def __init__(self, ideal: Pmf, key_size: int) -> None:
        super().__init__(ideal, key_size)
        self.scale = _PRECISION

    def _at(self, place: int, count: int) -> int:
        return 0


def impossible(question: Question, solver: Backend, options: Mapping[str, Any]) -> bool:
    """Whether it is proved that no table answers the question."""
    cost, base = _NoCost(question.ideal, question.key_size), question.floors()
    unit = 1 << max(question.key_size.bit_length() - _COARSE_BITS, 0)
    offsets = offset_program(question, cost, base, unit=unit, reach=1 << _COARSE_BITS, integer=False)
    claim = ask(solver, _elastic(offsets), options)
    if claim.y.size == 0 or not np.all(np.isfinite(claim.y)):
        return False
    return Lagrangian(question, cost, offsets.dual(claim.y), base).bound > 0


def _elastic(offsets: OffsetProgram) -> Program:
    """The program with one more column, the loan, which relaxes each side that a constraint holds from above."""
    program = offsets.program
    rows, columns = program.rows.shape
    loans = np.where(np.isinf(program.row_lower) & np.isfinite(program.row_upper), -1.0, 0.0)
    loans[2] *= float(np.max(np.abs(program.rows[[2]].toarray()), initial=1.0))  # second moments are larger
    column = sp.csr_array(loans.reshape(rows, 1))
    return replace(
        program,
        cost=np.append(np.zeros(columns), 1.0),
        rows=sp.csr_array(sp.hstack([program.rows, column])),
        lower=np.append(program.lower, 0.0),
        upper=np.append(program.upper, np.inf),
        integer=np.zeros(columns + 1, dtype=bool),
        entropy=np.zeros(columns + 1),
    )
