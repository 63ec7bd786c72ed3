"""What the phases are compared with. A peer gets its best case: loading the model is not timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import Verb
from dpopt.program.program import Program

__all__ = ["PeerClaim", "exp_once", "plain_highs"]


@dataclass(frozen=True)
class PeerClaim:
    """What HiGHS says about the program as it stands, and how many of its masses are zero or less."""

    status: str
    objective: float
    zeros: int


def plain_highs(program: Program, masses: int) -> Callable[[], Verb]:
    """HiGHS with its own options and tolerances on the program as it stands; the timed verb is `run` alone."""
    from highspy import _core  # the constructor of highspy.Highs prints before an option can stop it

    columns = sp.csc_array(program.rows)
    model = _core.HighsLp()
    model.num_col_, model.num_row_ = columns.shape[1], columns.shape[0]
    model.col_cost_, model.col_lower_, model.col_upper_ = program.cost, program.lower, program.upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = _core.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = columns.indptr, columns.indices
    model.a_matrix_.value_ = columns.data

    def set_up() -> Verb:
        solver = _core._Highs()
        solver.setOptionValue("output_flag", False)
        solver.passModel(model)

        def verb() -> PeerClaim:
            solver.run()
            status = solver.modelStatusToString(solver.getModelStatus())
            x = np.asarray(solver.getSolution().col_value)[:masses]
            return PeerClaim(status, float(solver.getInfo().objective_function_value), int(np.sum(x <= 0)))

        return verb

    return set_up


def exp_once(points: int) -> Callable[[], Verb]:
    """One exponential a support point: what writing the max-entropy pmf down costs when its multipliers are known."""
    exponents = np.linspace(-15.0, 0.0, points)
    return lambda: lambda: np.exp(exponents)
