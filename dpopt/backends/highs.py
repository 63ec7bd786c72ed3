"""HiGHS through highspy: linear and mixed integer linear programs, passed as arrays."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpopt.backends._scaling import tame
from dpopt.backends._shared import claim_without_columns, package_versions, require, supports_linear
from dpopt.backends.base import Availability, Claim, Claimed, Option, Support, installed, read_options
from dpopt.errors import InputError
from dpopt.patience import in_force
from dpopt.program.program import Program

__all__ = ["Highs"]

logger = logging.getLogger(__name__)

SMALLEST_COEFFICIENT = 1e-12
"""HiGHS drops matrix entries up to this size; 1e-12 is the least it accepts for ``small_matrix_value``."""

STATUS = {
    "kOptimal": Claimed.OPTIMAL,
    "kModelEmpty": Claimed.OPTIMAL,
    "kInfeasible": Claimed.INFEASIBLE,
    "kUnbounded": Claimed.UNBOUNDED,
    "kTimeLimit": Claimed.LIMIT,
    "kIterationLimit": Claimed.LIMIT,
    "kMemoryLimit": Claimed.LIMIT,
    "kSolutionLimit": Claimed.LIMIT,
    "kInterrupt": Claimed.LIMIT,
    "kHighsInterrupt": Claimed.LIMIT,
    "kUnknown": Claimed.INACCURATE,
}
"""HiGHS model status to ours; whatever is not listed is an error."""

WITH_POINT = (Claimed.OPTIMAL, Claimed.INACCURATE, Claimed.LIMIT)
"""The statuses for which the solver's arrays are an answer rather than what the last iteration left behind."""


class Highs:
    """HiGHS, the default for linear and mixed integer linear programs.

    The low-level object of highspy is used, because the constructor of ``highspy.Highs`` prints a banner before any
    option can stop it. The number of threads is never set: HiGHS refuses a second setting in one process.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from dpopt.program.program import Program
    >>> program = Program(cost=np.array([1.0, 2.0]), rows=sp.csr_array(np.array([[1.0, 1.0]])),
    ...                   row_lower=np.array([1.0]), row_upper=np.array([1.0]),
    ...                   lower=np.zeros(2), upper=np.full(2, np.inf))
    >>> claim = Highs().solve(program, {})
    >>> claim.status.value, claim.x.tolist(), claim.y.tolist()
    ('optimal', [1.0, 0.0], [1.0])
    """

    name: ClassVar[str] = "highs"
    requires: ClassVar[tuple[str, ...]] = ("highspy",)
    options: ClassVar[Mapping[str, Option]] = {
        "primal_feasibility_tolerance": Option(float, 1e-10, "absolute row and bound violation that HiGHS accepts"),
        "dual_feasibility_tolerance": Option(float, 1e-10, "absolute reduced cost violation that HiGHS accepts"),
        "mip_feasibility_tolerance": Option(float, 1e-9, "distance from an integer that HiGHS accepts"),
        "mip_rel_gap": Option(float, 1e-9, "relative gap at which the integer search stops"),
        "time_limit": Option(float, float("inf"), "seconds after which HiGHS stops"),
        "solver": Option(str, "choose", "algorithm: choose, simplex or ipm"),
        "presolve": Option(str, "choose", "presolve: off, choose or on"),
    }

    def availability(self) -> Availability:
        """Whether highspy can be imported."""
        return installed(self.requires)

    def supports(self, program: Program) -> Support:
        """Linear and mixed integer linear programs."""
        return supports_linear(program, name=self.name)

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        """Answer the program; see `dpopt.backends.base.Backend`."""
        values = read_options(self, options)
        require(self, program)
        from highspy import _core

        version = package_versions("highspy")
        solver = _core._Highs()
        solver.setOptionValue("output_flag", False)
        _set_options(solver, values)
        tolerances = {name: value for name, value in values.items() if name.endswith(("_tolerance", "_gap"))}
        tolerances["small_matrix_value"] = SMALLEST_COEFFICIENT
        if program.cost.size == 0:
            return claim_without_columns(program, backend=self.name, version=version, tolerances=tolerances)
        scaled, scaling = tame(program, threshold=SMALLEST_COEFFICIENT)
        _let_stop(_core, solver)
        started = time.perf_counter()
        passed = solver.passModel(_model(_core, scaled))
        ran = solver.run() if passed != _core.HighsStatus.kError else passed
        seconds = time.perf_counter() - started
        status, words = _status(_core, solver, ran)
        x, y, objective = _answer(solver, program, status)
        logger.debug("HiGHS: %s in %.3f s", words, seconds)
        return scaling.back(Claim(status, self.name, version, words, x, y, objective, tolerances, seconds))


def _set_options(solver: Any, values: Mapping[str, Any]) -> None:
    """Set every option, and refuse loudly what HiGHS refuses: it would go on with its default without a word."""
    settings = {"small_matrix_value": SMALLEST_COEFFICIENT, **values}
    for name, value in settings.items():
        accepted = solver.setOptionValue(name, value)
        if accepted.name != "kOk":
            _, in_force = solver.getOptionValue(name)
            raise InputError(f"options.{name}", f"HiGHS refuses {value!r}; in force would stay {in_force!r}")


def _let_stop(core: Any, solver: Any) -> None:
    """Have HiGHS ask now and then whether its answer is still wanted, in all of its algorithms."""
    patience = in_force()

    def ask(kind: Any, message: str, out: Any, into: Any, data: Any) -> None:
        if patience.is_over:
            into.user_interrupt = True

    kinds = core.cb.HighsCallbackType
    solver.setCallback(ask, None)
    for kind in (kinds.kCallbackSimplexInterrupt, kinds.kCallbackIpmInterrupt, kinds.kCallbackMipInterrupt):
        solver.startCallback(kind)


def _model(core: Any, program: Program) -> Any:
    """The program as HiGHS's own structure, column-wise, which is what its simplex wants."""
    columns = sp.csc_array(program.rows)
    columns.sum_duplicates()
    model = core.HighsLp()
    model.num_col_ = columns.shape[1]
    model.num_row_ = columns.shape[0]
    model.sense_ = core.ObjSense.kMinimize
    model.col_cost_ = program.cost
    model.col_lower_ = program.lower
    model.col_upper_ = program.upper
    model.row_lower_ = program.row_lower
    model.row_upper_ = program.row_upper
    model.a_matrix_.format_ = core.MatrixFormat.kColwise
    model.a_matrix_.start_ = columns.indptr
    model.a_matrix_.index_ = columns.indices
    model.a_matrix_.value_ = columns.data
    if program.has_integers:
        kinds = (core.HighsVarType.kContinuous, core.HighsVarType.kInteger)
        model.integrality_ = [kinds[int(flag)] for flag in program.integer]
    return model


def _status(core: Any, solver: Any, ran: Any) -> tuple[Claimed, str]:
    """Our status, and HiGHS's words with the size of the violations that it measured itself."""
    model_status = solver.getModelStatus()
    words = solver.modelStatusToString(model_status)
    if ran == core.HighsStatus.kError:
        return Claimed.ERROR, f"HiGHS returned an error status ({words})"
    info = solver.getInfo()
    status = STATUS.get(model_status.name, Claimed.ERROR)
    if status in WITH_POINT:
        words += f"; max primal infeasibility {info.max_primal_infeasibility:.1e}"
        if np.isfinite(info.max_dual_infeasibility):
            words += f", max dual infeasibility {info.max_dual_infeasibility:.1e}"
    return status, words


def _answer(solver: Any, program: Program, status: Claimed) -> tuple[np.ndarray, np.ndarray, float]:
    """Point, multipliers and objective, each empty when HiGHS does not vouch for it."""
    solution = solver.getSolution()
    nothing = np.zeros(0)
    if status not in WITH_POINT or not solution.value_valid:
        return nothing, nothing, float("nan")
    x = np.asarray(solution.col_value, dtype=float)
    # HiGHS's row duals are the derivatives of the minimum by the active side: our convention. A mixed integer
    # program has none; the arrays are there all the same, full of zeros.
    y = np.asarray(solution.row_dual, dtype=float) if solution.dual_valid and not program.has_integers else nothing
    return x, y, float(solver.getInfo().objective_function_value)
