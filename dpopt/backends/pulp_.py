"""CBC, or any solver that PuLP finds, through PuLP."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpopt.backends._quiet import quiet
from dpopt.backends._scaling import tame
from dpopt.backends._shared import (
    claim_without_columns,
    estimate,
    package_versions,
    require,
    split_sides,
    supports_linear,
    worst_violation,
)
from dpopt.backends.base import Availability, Claim, Claimed, Option, Support, installed, read_options
from dpopt.errors import InputError
from dpopt.program.program import Program

__all__ = ["Pulp"]

logger = logging.getLogger(__name__)

CBC = "PULP_CBC_CMD"

NOISY = {"HiGHS": "highspy prints a banner that no option stops; use backend 'highs'"}
"""Solvers that PuLP finds and that are refused, with the reason."""

SMALLEST_COEFFICIENT = 1e-9
"""Entries up to this size are scaled away, as CBC's preprocessing takes them for zero."""

BELIEVABLE = 1e-5
"""A violation, relative to the terms of the row, above which CBC's word "optimal" is not passed on."""


class Pulp:
    """Linear and mixed integer linear programs through PuLP.

    PuLP wants one Python object a row and writes a file; it is here for its solvers, not for its speed. CBC reads 13
    significant digits and prints about 9, which bounds what can be proved from its answer.
    """

    name: ClassVar[str] = "pulp"
    requires: ClassVar[tuple[str, ...]] = ("pulp",)
    options: ClassVar[Mapping[str, Option]] = {
        "solver": Option(str, CBC, "any solver that pulp.listSolvers(onlyAvailable=True) names"),
        "primal_tolerance": Option(float, 1e-9, "CBC's primalTolerance"),
        "dual_tolerance": Option(float, 1e-9, "CBC's dualTolerance"),
        "time_limit": Option(float, float("inf"), "seconds after which the solver stops"),
    }

    def availability(self) -> Availability:
        """Whether PuLP can be imported."""
        return installed(self.requires)

    def supports(self, program: Program) -> Support:
        """Linear and mixed integer linear programs."""
        return supports_linear(program, name=self.name)

    def seconds(self, program: Program, options: Mapping[str, Any]) -> float:
        """About how long it takes; what is killed is PuLP with its solver and their files."""
        return estimate(program, entries_a_second=100_000)

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        """Answer the program; see `dpopt.backends.base.Backend`."""
        values = read_options(self, options)
        require(self, program)
        version = f"{package_versions('pulp')} with {values['solver']}"
        with quiet():  # PuLP announces the end of its own bundled CBC on every use
            solver, tolerances = _solver(values, options)
            if program.cost.size == 0:
                return claim_without_columns(program, backend=self.name, version=version, tolerances=tolerances)
            impossible = _impossible_empty_rows(program)
            if impossible.size:
                words = f"row {impossible[0]} has no entries and does not allow 0; the solver was not called"
                return Claim(Claimed.INFEASIBLE, self.name, version, words, tolerances=tolerances)
            scaled, scaling = tame(program, threshold=SMALLEST_COEFFICIENT)
            model = _build(scaled)
            started = time.perf_counter()
            status, words = _run(model, solver)
            seconds = time.perf_counter() - started
        x, y, objective = _answer(model, scaled, status)
        claim = scaling.back(Claim(status, self.name, version, words, x, y, objective, tolerances, seconds))
        logger.debug("PuLP: %s in %.3f s", claim.message, seconds)
        return _measured(claim, program, values["solver"])


@dataclass(frozen=True, eq=False)
class _Model:
    """PuLP's problem, its columns, and its constraints by the side of the row that they say."""

    problem: Any
    columns: list[Any]
    equal: dict[int, Any]
    below: dict[int, Any]
    above: dict[int, Any]


def _solver(values: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Any, dict[str, float]]:
    """PuLP's solver object and the tolerances in force."""
    import pulp

    name = values["solver"]
    if name in NOISY:
        raise InputError("options.solver", f"{name!r} is not offered: {NOISY[name]}")
    found = pulp.listSolvers(onlyAvailable=True)
    if name not in found:
        usable = ", ".join(sorted(set(found) - set(NOISY)))
        raise InputError("options.solver", f"PuLP does not find {name!r} (it finds: {usable})")
    limit = values["time_limit"] if np.isfinite(values["time_limit"]) else None
    names = ("primal_tolerance", "dual_tolerance")
    if name not in (CBC, "COIN_CMD"):
        for option in names:
            if option in given:
                raise InputError(f"options.{option}", f"is for CBC; PuLP has no such option for {name!r}")
        return pulp.getSolver(name, msg=False, timeLimit=limit), {}
    arguments = [f"primalTolerance {values['primal_tolerance']:g}", f"dualTolerance {values['dual_tolerance']:g}"]
    solver = pulp.getSolver(name, msg=False, timeLimit=limit, gapRel=1e-9, keepFiles=False, options=arguments)
    tolerances = {option: float(values[option]) for option in names}
    return solver, {**tolerances, "ratioGap": 1e-9, "printed_relative_precision": 1e-8}


def _impossible_empty_rows(program: Program) -> np.ndarray:
    """Rows without entries that do not allow 0; PuLP cannot write them."""
    empty = np.diff(program.rows.indptr) == 0
    return np.flatnonzero(empty & ((program.row_lower > 0) | (program.row_upper < 0)))


def _build(program: Program) -> _Model:
    """The program in PuLP's objects; names are numbers, since PuLP merges names that differ in odd characters."""
    import pulp

    problem = pulp.LpProblem("program", pulp.LpMinimize)
    columns = [
        pulp.LpVariable(f"x{j}", _side(low), _side(high), pulp.LpInteger if integer else pulp.LpContinuous)
        for j, (low, high, integer) in enumerate(zip(program.lower, program.upper, program.integer, strict=True))
    ]
    problem.setObjective(pulp.LpAffineExpression(zip(columns, program.cost.tolist(), strict=True)))
    equal, below, above = (set(part.tolist()) for part in split_sides(program))
    rows = program.rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    model = _Model(problem, columns, {}, {}, {})
    parts = (
        (equal, pulp.LpConstraintEQ, program.row_lower, model.equal, "e"),
        (below, pulp.LpConstraintGE, program.row_lower, model.below, "l"),
        (above, pulp.LpConstraintLE, program.row_upper, model.above, "u"),
    )
    for i in range(rows.shape[0]):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        values = rows.data[entries].tolist()
        terms = [(columns[j], value) for j, value in zip(rows.indices[entries], values, strict=True)]
        for numbers, sense, sides, made, letter in parts:
            if terms and i in numbers:
                expression = pulp.LpAffineExpression(terms)
                made[i] = pulp.LpConstraint(expression, sense, f"{letter}{i}", float(sides[i]))
                problem.addConstraint(made[i])
    return model


def _side(value: float) -> float | None:
    """PuLP's word for an infinite bound is None."""
    return float(value) if np.isfinite(value) else None


def _run(model: _Model, solver: Any) -> tuple[Claimed, str]:
    """Solve, and read both of PuLP's statuses: the first says optimal also for what a time limit left behind."""
    import pulp

    try:
        with tempfile.TemporaryDirectory(prefix="dpopt-") as directory:
            solver.tmpDir = directory  # PuLP leaves its files behind when a solver fails
            model.problem.solve(solver)
    except pulp.PulpError as error:
        return Claimed.ERROR, f"PuLP failed: {error}"
    status, found = model.problem.status, model.problem.sol_status
    words = f"{pulp.LpStatus[status]}; {pulp.LpSolution.get(found, found)}"
    if status == pulp.LpStatusOptimal:
        return (Claimed.OPTIMAL if found == pulp.LpSolutionOptimal else Claimed.LIMIT), words
    table = {
        pulp.LpStatusInfeasible: Claimed.INFEASIBLE,
        pulp.LpStatusUnbounded: Claimed.UNBOUNDED,
        pulp.LpStatusNotSolved: Claimed.LIMIT,
    }
    return table.get(status, Claimed.ERROR), words


def _answer(model: _Model, program: Program, status: Claimed) -> tuple[np.ndarray, np.ndarray, float]:
    """Point, multipliers and objective as PuLP read them."""
    nothing = np.zeros(0)
    values = [column.varValue for column in model.columns]
    if status not in (Claimed.OPTIMAL, Claimed.LIMIT) or all(value is None for value in values):
        return nothing, nothing, float("nan")
    # A column in no row and without cost never reaches the file: PuLP leaves it None.
    idle = np.clip(0.0, program.lower, program.upper)
    x = np.array([idle[j] if value is None else value for j, value in enumerate(values)], dtype=float)
    objective = float(program.cost @ x)
    made = [*model.equal.items(), *model.below.items(), *model.above.items()]
    if program.has_integers or any(constraint.pi is None for _, constraint in made):
        return x, nothing, objective
    y = np.zeros(program.rows.shape[0])
    for i, constraint in made:
        y[i] += constraint.pi  # PuLP's pi is the derivative by the side, whatever the sense
    return x, y, objective


def _measured(claim: Claim, program: Program, solver: str) -> Claim:
    """The claim with the violation of its point, measured by us, and the warning about digits."""
    words = claim.message
    if solver == CBC:
        words += "; CBC prints about 9 significant digits"
    if not claim.has_point:
        return replace(claim, message=words)
    violation = worst_violation(program, claim.x)
    words += f"; worst violation {violation:.1e}"
    doubtful = claim.status is Claimed.OPTIMAL and violation > BELIEVABLE
    return replace(claim, message=words, status=Claimed.INACCURATE if doubtful else claim.status)
