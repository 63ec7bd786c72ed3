"""SciPy's linprog and milp: the HiGHS that SciPy carries, behind another door."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpopt.backends._quiet import quiet
from dpopt.backends._scaling import tame
from dpopt.backends._shared import (
    claim_without_columns,
    estimate,
    package_versions,
    require,
    split_sides,
    supports_linear,
)
from dpopt.backends.base import Availability, Claim, Claimed, Option, Support, installed, read_options
from dpopt.errors import InputError
from dpopt.program.program import Program

__all__ = ["Scipy"]

logger = logging.getLogger(__name__)

SMALLEST_COEFFICIENT = 1e-9
"""SciPy's HiGHS drops matrix entries up to this size, and SciPy has no option for it."""

STATUS = {
    0: Claimed.OPTIMAL,
    1: Claimed.LIMIT,
    2: Claimed.INFEASIBLE,
    3: Claimed.UNBOUNDED,
    4: Claimed.ERROR,
}
"""The status numbers of linprog and milp, which agree."""

MILP_TOLERANCES = {"primal_feasibility_tolerance": 1e-7, "mip_feasibility_tolerance": 1e-6}
"""What is in force in milp, which takes no tolerances."""


class Scipy:
    """Linear and mixed integer linear programs through ``scipy.optimize``.

    Rows with two different finite sides become two inequalities, and their two marginals one multiplier: at most one
    side is active, so that their sum is the multiplier of the active one.
    """

    name: ClassVar[str] = "scipy"
    requires: ClassVar[tuple[str, ...]] = ("scipy",)
    options: ClassVar[Mapping[str, Option]] = {
        "method": Option(str, "highs", "linprog's method: highs, highs-ds or highs-ipm"),
        "primal_feasibility_tolerance": Option(float, 1e-10, "row and bound violation accepted (not in milp)"),
        "dual_feasibility_tolerance": Option(float, 1e-10, "reduced cost violation accepted (not in milp)"),
        "mip_rel_gap": Option(float, 1e-9, "relative gap at which the integer search stops"),
        "time_limit": Option(float, float("inf"), "seconds after which HiGHS stops"),
        "presolve": Option(bool, True, "whether HiGHS presolves"),
    }

    def availability(self) -> Availability:
        """Whether SciPy can be imported."""
        return installed(self.requires)

    def supports(self, program: Program) -> Support:
        """Linear and mixed integer linear programs."""
        return supports_linear(program, name=self.name)

    def seconds(self, program: Program, options: Mapping[str, Any]) -> float:
        """About how long it takes, since SciPy's HiGHS cannot be stopped: 0.4 s for 79,000 entries."""
        return estimate(program, entries_a_second=200_000)

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        """Answer the program; see `dpopt.backends.base.Backend`."""
        values = read_options(self, options)
        require(self, program)
        if values["method"] not in ("highs", "highs-ds", "highs-ipm"):
            raise InputError("options.method", f"must be highs, highs-ds or highs-ipm, not {values['method']!r}")
        tolerances = self._tolerances(program, options, values)
        version = package_versions("scipy")
        if program.cost.size == 0:
            return claim_without_columns(program, backend=self.name, version=version, tolerances=tolerances)
        scaled, scaling = tame(program, threshold=SMALLEST_COEFFICIENT)
        started = time.perf_counter()
        try:
            status, words, x, y, objective = (_milp if program.has_integers else _linprog)(scaled, values)
        except InputError:
            raise
        except ValueError as error:  # SciPy's answer to data it does not like
            status, words, x, y, objective = Claimed.ERROR, str(error), np.zeros(0), np.zeros(0), float("nan")
        seconds = time.perf_counter() - started
        logger.debug("SciPy: %s in %.3f s", words, seconds)
        return scaling.back(Claim(status, self.name, version, words, x, y, objective, tolerances, seconds))

    def _tolerances(self, program: Program, given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, float]:
        """The tolerances in force; a tolerance asked of milp, which has no place for it, is refused."""
        if not program.has_integers:
            names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
            return {**{name: values[name] for name in names}, "small_matrix_value": SMALLEST_COEFFICIENT}
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            if name in given:
                raise InputError(f"options.{name}", "cannot be set for integer programs in SciPy; use backend 'highs'")
        return {**MILP_TOLERANCES, "mip_rel_gap": values["mip_rel_gap"], "small_matrix_value": SMALLEST_COEFFICIENT}


Answer = tuple[Claimed, str, np.ndarray, np.ndarray, float]


def _linprog(program: Program, values: Mapping[str, Any]) -> Answer:
    """The linear program, its rows split by side and its marginals joined again."""
    from scipy.optimize import linprog

    equal, below, above = split_sides(program)
    rows = program.rows
    keys = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "presolve", "time_limit")
    result = _strictly(
        linprog,
        program.cost,
        A_ub=sp.vstack([-rows[below], rows[above]], format="csr"),
        b_ub=np.concatenate([-program.row_lower[below], program.row_upper[above]]),
        A_eq=rows[equal],
        b_eq=program.row_lower[equal],
        bounds=np.column_stack([program.lower, program.upper]),
        method=values["method"],
        options={key: values[key] for key in keys},
    )
    status = STATUS.get(result.status, Claimed.ERROR)
    if result.x is None or status in (Claimed.INFEASIBLE, Claimed.UNBOUNDED):
        return status, str(result.message), np.zeros(0), np.zeros(0), float("nan")
    y = np.zeros(rows.shape[0])
    marginals = result.ineqlin.marginals
    y[equal] = result.eqlin.marginals
    y[below] = -marginals[: below.size]  # the derivative by the side of -row, hence the sign
    y[above] += marginals[below.size :]
    return status, str(result.message), np.asarray(result.x, dtype=float), y, float(result.fun)


def _milp(program: Program, values: Mapping[str, Any]) -> Answer:
    """The mixed integer program; it has no multipliers."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    result = _strictly(
        milp,
        program.cost,
        integrality=program.integer.astype(int),
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(sp.csc_array(program.rows), program.row_lower, program.row_upper),
        options={key: values[key] for key in ("mip_rel_gap", "presolve", "time_limit")},
    )
    status = STATUS.get(result.status, Claimed.ERROR)
    if result.x is None:
        return status, str(result.message), np.zeros(0), np.zeros(0), float("nan")
    return status, str(result.message), np.asarray(result.x, dtype=float), np.zeros(0), float(result.fun)


def _strictly(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call SciPy, and take its warning about an option that it ignores for the error that it is."""
    from scipy.optimize import OptimizeWarning

    with quiet(OptimizeWarning):
        try:
            return function(*arguments, **options)
        except OptimizeWarning as warning:
            given = options["options"]
            raise InputError("options", f"SciPy refuses one of {given} and would use its default ({warning})") from None
