"""cvxpy: linear programs and entropy, auxiliary columns included, through Clarabel, SCS or any installed solver."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from math import isinf
from typing import Any, ClassVar

import numpy as np

from dpopt.backends._quiet import quiet
from dpopt.backends._scaling import tame
from dpopt.backends._shared import (
    claim_without_columns,
    estimate,
    package_versions,
    require,
    require_available,
    split_sides,
    worst_violation,
)
from dpopt.backends.base import Availability, Claim, Claimed, Option, Support, installed, read_options
from dpopt.errors import BackendError, InputError
from dpopt.patience import in_force
from dpopt.program.program import Program

__all__ = ["Cvxpy"]

logger = logging.getLogger(__name__)

STATUS = {
    "optimal": Claimed.OPTIMAL,
    "optimal_inaccurate": Claimed.INACCURATE,
    "infeasible": Claimed.INFEASIBLE,
    "infeasible_inaccurate": Claimed.INFEASIBLE,
    "unbounded": Claimed.UNBOUNDED,
    "unbounded_inaccurate": Claimed.UNBOUNDED,
    "user_limit": Claimed.LIMIT,
}
"""cvxpy's status to ours; the words are kept in the message."""

REFUSED = {
    "HIGHS": "highspy prints a banner that no option stops; use backend 'highs', or solver 'SCIPY'",
    "OSQP": "osqp 1.1.3 can crash the interpreter beside other native solvers; use 'CLARABEL' or 'SCS'",
}
"""Installed solvers that are refused, with the reason."""

DROPS_SMALL = {"SCIPY": 1e-9}
"""Solvers that take coefficients up to this size for zero."""

BELIEVABLE = 1e-5
"""A violation, relative to the terms of the row, above which the word "optimal" is not passed on."""


@dataclass(frozen=True)
class _Settings:
    """How a solver is told its tolerance, iteration limit and time limit."""

    tolerance: float
    tolerance_names: tuple[str, ...]
    iterations_name: str
    iterations: int
    time_name: str


SETTINGS = {
    "CLARABEL": _Settings(1e-10, ("tol_gap_abs", "tol_gap_rel", "tol_feas"), "max_iter", 500, "time_limit"),
    "SCS": _Settings(1e-9, ("eps_abs", "eps_rel"), "max_iters", 200_000, "time_limit_secs"),
}
"""The solvers whose tolerances we set; any other runs with its own, and the claim says so."""


class Cvxpy:
    """Linear programs and programs with entropy terms on any columns.

    cvxpy's multiplier of an equality has the opposite sign of ours, those of inequalities are never negative; both are
    brought to the convention of `Claim`. Bounds are constraints and the point is returned as the solver left it, small
    negative entries included.
    """

    name: ClassVar[str] = "cvxpy"
    requires: ClassVar[tuple[str, ...]] = ("cvxpy",)
    options: ClassVar[Mapping[str, Option]] = {
        "solver": Option(str, "CLARABEL", "any solver that cvxpy.installed_solvers() names"),
        "tolerance": Option(float, 0.0, "gap and residual tolerance; 0 for ours: 1e-10 for Clarabel, 1e-9 for SCS"),
        "iterations": Option(int, 0, "iteration limit; 0 for ours: 500 for Clarabel, 200000 for SCS"),
        "time_limit": Option(float, float("inf"), "seconds after which the solver stops (Clarabel and SCS only)"),
    }

    def availability(self) -> Availability:
        """Whether cvxpy can be imported."""
        return installed(self.requires)

    def supports(self, program: Program) -> Support:
        """Linear programs and entropy; integer columns only with a solver for them, which the default is not."""
        if program.has_entropy and program.has_integers:
            return Support(False, "entropy together with integer columns is out of reach of cvxpy's solvers")
        if program.has_integers:
            return Support(False, "the default solver takes no integer columns; use 'highs', or solver='SCIPY'")
        return Support(True, "entropy through an exponential cone" if program.has_entropy else "a linear program")

    def seconds(self, program: Program, options: Mapping[str, Any]) -> float:
        """About how long it takes, since none of its solvers can be stopped: 0.6 s for 79,000 entries with Clarabel."""
        return estimate(program, entries_a_second=20_000 if options.get("solver") == "SCS" else 100_000)

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        """Answer the program; see `dpopt.backends.base.Backend`."""
        values = read_options(self, options)
        require_available(self)
        solver = values["solver"]
        settings, tolerances = _settings(values)
        if not (program.has_integers and _takes_integers(program, solver)):
            require(self, program)
        _refuse_entropy(program, solver)
        version = f"{package_versions('cvxpy', solver.lower())}"
        if program.cost.size == 0:
            return claim_without_columns(program, backend=self.name, version=version, tolerances=tolerances)
        scaled, scaling = tame(program, threshold=DROPS_SMALL.get(solver, 0.0))
        started = time.perf_counter()
        with quiet():  # what cvxpy warns about is in the status, which the claim keeps
            model = _build(scaled)
            status, words = _run(model, solver, settings)
            x, y, objective = _answer(model, scaled, status)
        seconds = time.perf_counter() - started
        if solver not in SETTINGS:
            words += f"; tolerances are those of {solver}"
        claim = scaling.back(Claim(status, self.name, version, words, x, y, objective, tolerances, seconds))
        logger.debug("cvxpy: %s in %.3f s", claim.message, seconds)
        return _measured(claim, program)


@dataclass(frozen=True, eq=False)
class _Model:
    """cvxpy's problem, its variable, and the constraints of the three kinds of side with their rows."""

    problem: Any
    variable: Any
    parts: tuple[tuple[np.ndarray, Any, float], ...]


def _settings(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """The solver's own options and the tolerances in force; what cannot be passed on is refused."""
    cp: Any = import_module("cvxpy")

    solver, limited = values["solver"], bool(np.isfinite(values["time_limit"]))
    if solver in REFUSED:
        raise InputError("options.solver", f"{solver!r} is not offered: {REFUSED[solver]}")
    if solver not in cp.installed_solvers():
        usable = ", ".join(sorted(set(cp.installed_solvers()) - set(REFUSED)))
        raise InputError("options.solver", f"cvxpy does not find {solver!r} (it finds: {usable})")
    if values["tolerance"] < 0 or values["iterations"] < 0 or values["time_limit"] <= 0:
        raise InputError("options", "tolerance and iterations must be at least 0, and time_limit above 0")
    known = SETTINGS.get(solver)
    if known is None:
        if values["tolerance"] or values["iterations"] or (limited and isinf(in_force().remaining)):
            raise InputError("options", f"tolerance, iterations and time_limit cannot be set for solver {solver!r}")
        return {}, {}
    tolerance = values["tolerance"] or known.tolerance
    tolerances = dict.fromkeys(known.tolerance_names, tolerance)
    settings: dict[str, Any] = {**tolerances, known.iterations_name: values["iterations"] or known.iterations}
    if limited:
        settings[known.time_name] = values["time_limit"]
    return settings, tolerances


def _takes_integers(program: Program, solver: str) -> bool:
    """Whether the chosen solver, unlike the default, takes integer columns (and there is no entropy)."""
    from cvxpy.reductions.solvers.defines import INSTALLED_MI_SOLVERS

    return not program.has_entropy and solver in INSTALLED_MI_SOLVERS


def _refuse_entropy(program: Program, solver: str) -> None:
    """Refuse an entropy term for a solver without exponential cones, in our words rather than cvxpy's."""
    if program.has_entropy and solver == "SCIPY":
        raise BackendError(f"solver {solver!r} has no exponential cone for the entropy term; use CLARABEL or SCS")


def _build(program: Program) -> _Model:
    """The program in cvxpy's terms, one vector expression a kind of constraint."""
    cp: Any = import_module("cvxpy")

    size = program.cost.size
    x = cp.Variable(size, integer=np.nonzero(program.integer)) if program.has_integers else cp.Variable(size)
    objective = program.cost @ x
    low, high = np.isfinite(program.lower), np.isfinite(program.upper)
    fixed = low & high & (program.lower == program.upper)
    # A column fixed at 0 is at the apex of its exponential cone, where solvers lose digits: its term is a constant.
    constant = program.entropy * fixed * np.where(program.lower > 0, program.lower, 1.0)
    objective = objective + float(constant @ np.log(np.where(program.lower > 0, program.lower, 1.0)))
    weighted = np.flatnonzero((program.entropy > 0) & ~fixed)
    if weighted.size:
        objective = objective - cp.sum(cp.multiply(program.entropy[weighted], cp.entr(x[weighted])))
    equal, below, above = split_sides(program)
    rows, parts, constraints = program.rows, [], []
    if equal.size:
        parts.append((equal, rows[equal] @ x == program.row_lower[equal], -1.0))
    if below.size:
        parts.append((below, rows[below] @ x >= program.row_lower[below], 1.0))
    if above.size:
        parts.append((above, rows[above] @ x <= program.row_upper[above], -1.0))
    for columns, relation in ((fixed, "=="), (low & ~fixed, ">="), (high & ~fixed, "<=")):
        chosen = np.flatnonzero(columns)
        if chosen.size == 0:
            continue
        part = x if chosen.size == size else x[chosen]
        if relation == "==":
            constraints.append(part == program.lower[chosen])
        elif relation == ">=":
            constraints.append(part >= program.lower[chosen])
        else:
            constraints.append(part <= program.upper[chosen])
    problem = cp.Problem(cp.Minimize(objective), [constraint for _, constraint, _ in parts] + constraints)
    return _Model(problem, x, tuple(parts))


def _run(model: _Model, solver: str, settings: Mapping[str, Any]) -> tuple[Claimed, str]:
    """Solve, and translate the status; an exception of cvxpy's is the solver's failure."""
    cp: Any = import_module("cvxpy")

    try:
        model.problem.solve(solver=solver, verbose=False, **settings)
    except (cp.SolverError, ValueError, ArithmeticError) as error:
        return Claimed.ERROR, f"{solver} failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    status = str(model.problem.status)
    return STATUS.get(status, Claimed.ERROR), f"{solver}: {status}"


def _answer(model: _Model, program: Program, status: Claimed) -> tuple[np.ndarray, np.ndarray, float]:
    """Point, multipliers in our signs, and the solver's objective."""
    nothing = np.zeros(0)
    usable = status in (Claimed.OPTIMAL, Claimed.INACCURATE, Claimed.LIMIT)
    if not usable or model.variable.value is None:
        return nothing, nothing, float("nan")
    x = np.asarray(model.variable.value, dtype=float)
    objective = float(model.problem.value)
    if not np.isfinite(objective):  # cvxpy's entropy of a negative entry, however small, is minus infinity
        objective = program.objective(x)
    if program.has_integers or any(constraint.dual_value is None for _, constraint, _ in model.parts):
        return x, nothing, objective
    y = np.zeros(program.rows.shape[0])
    for rows, constraint, sign in model.parts:
        y[rows] += sign * np.asarray(constraint.dual_value, dtype=float).ravel()
    return x, y, objective


def _measured(claim: Claim, program: Program) -> Claim:
    """The claim with the violation of its point, measured by us."""
    if not claim.has_point:
        return claim
    violation = worst_violation(program, claim.x)
    words = f"{claim.message}; worst violation {violation:.1e}"
    negative = claim.x[program.lower == 0]
    if np.any(negative < 0):
        words += f"; {np.count_nonzero(negative < 0)} entries below their bound 0, the least {negative.min():.1e}"
    doubtful = claim.status is Claimed.OPTIMAL and violation > BELIEVABLE
    return replace(claim, message=words, status=Claimed.INACCURATE if doubtful else claim.status)
