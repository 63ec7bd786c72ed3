"""The conformance suite: what every backend has to get right, run with one call by whoever writes one.

>>> from dpopt.backends import get_backend
>>> from dpopt.backends.conformance import Outcome, run_conformance
>>> results = run_conformance(get_backend("highs"))
>>> [result.name for result in results if result.outcome is Outcome.FAILED]
[]

A case that the backend does not support is reported with the backend's reason and is not a pass.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from dpopt.backends._conformance_case import Capability, Case
from dpopt.backends._conformance_cases import CASES
from dpopt.backends._shared import worst_violation
from dpopt.backends.base import Backend, Claim, Claimed
from dpopt.errors import InputError
from dpopt.patience import Stopped, in_force, running
from dpopt.program.program import Program

__all__ = ["CASES", "Capability", "Case", "CaseResult", "Outcome", "check_claim", "run_case", "run_conformance"]

ANY_SIGN = 2


class Outcome(Enum):
    """How a case went."""

    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, eq=False)
class CaseResult:
    """One case on one backend: the outcome, every complaint in words, and the claim."""

    name: str
    backend: str
    outcome: Outcome
    reason: str
    claim: Claim | None = None

    def __str__(self) -> str:
        return f"{self.backend}: {self.name}: {self.outcome.value}" + (f" ({self.reason})" if self.reason else "")


def run_conformance(
    backend: Backend,
    options: Mapping[str, Any] | None = None,
    *,
    tolerance: float = 1e-6,
    cases: tuple[Case, ...] = CASES,
) -> list[CaseResult]:
    """Run every case on `backend`, and the checks that an unknown option is refused and an early end is no failure.

    Parameters
    ----------
    backend : Backend
    options : mapping, optional
        Options passed to every solve.
    tolerance : float
        Largest error of objectives and rows; multipliers may be off by 100 times as much, which is what a gap of
        `tolerance` leaves open on well-conditioned programs of this size.
    cases : tuple of Case
        Which cases to run.
    """
    results = [run_case(backend, case, options, tolerance=tolerance) for case in cases]
    return [*results, _run_cancelled(backend, options, tolerance), _run_unknown_option(backend)]


def run_case(
    backend: Backend, case: Case, options: Mapping[str, Any] | None = None, *, tolerance: float = 1e-6
) -> CaseResult:
    """Run one case on `backend`."""
    available = backend.availability()
    if not available.available:
        return CaseResult(case.name, backend.name, Outcome.UNAVAILABLE, available.reason)
    support = backend.supports(case.program)
    if not support.supported:
        needs = ", ".join(sorted(case.needs))
        return CaseResult(case.name, backend.name, Outcome.UNSUPPORTED, f"needs {needs}: {support.reason}")
    before = _snapshot(case.program)
    try:
        claim = backend.solve(case.program, dict(options or {}))
    except Exception as error:  # a suite that stops at the first broken backend is of no use to its author
        return CaseResult(case.name, backend.name, Outcome.FAILED, f"raised {type(error).__name__}: {error}")
    complaints = check_claim(case, claim, tolerance=tolerance)
    if claim.backend != backend.name:
        complaints.append(f"the claim says backend {claim.backend!r}, not {backend.name!r}")
    if _snapshot(case.program) != before:
        complaints.append("the backend changed the program")
    outcome = Outcome.FAILED if complaints else Outcome.PASSED
    return CaseResult(case.name, backend.name, outcome, "; ".join(complaints), claim)


def _snapshot(program: Program) -> tuple[bytes, ...]:
    """The numbers of a program, to see whether a backend changed them."""
    rows = program.rows.tocsr(copy=True)
    rows.sum_duplicates()
    arrays = (program.cost, program.row_lower, program.row_upper, program.lower, program.upper, program.entropy)
    return tuple(array.tobytes() for array in (*arrays, program.integer, rows.data, rows.indices, rows.indptr))


def check_claim(case: Case, claim: Claim, *, tolerance: float = 1e-6) -> list[str]:
    """Everything that is wrong with a claim about a case, in words; empty when it is right."""
    complaints = _form_complaints(claim)
    if claim.status is not case.status:
        return [*complaints, f"status {claim.status.value}, right is {case.status.value} (message: {claim.message})"]
    if case.status is not Claimed.OPTIMAL:
        return complaints
    complaints += _point_complaints(case, claim, tolerance)
    if not case.program.has_integers:
        complaints += _multiplier_complaints(case, claim, tolerance)
    return complaints


def _form_complaints(claim: Claim) -> list[str]:
    """What any claim owes, whatever its status."""
    complaints = []
    if not claim.version or not claim.message:
        complaints.append("version and message must not be empty")
    if not np.isfinite(claim.seconds) or claim.seconds < 0:
        complaints.append(f"seconds is {claim.seconds}")
    for name, values in (("x", claim.x), ("y", claim.y)):
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            complaints.append(f"{name} is not a vector")
        elif not np.all(np.isfinite(values)):
            complaints.append(f"{name} has entries that are not finite")
    try:
        pickle.loads(pickle.dumps(claim))
    except Exception as error:  # anything that a foreign object may raise
        complaints.append(f"the claim cannot be pickled ({error})")
    return complaints


def _point_complaints(case: Case, claim: Claim, tolerance: float) -> list[str]:
    """The point and the objective against the known optimum."""
    program = case.program
    if claim.x.shape != program.cost.shape:
        return [f"x has shape {claim.x.shape}, right is {program.cost.shape}"]
    if not np.all(np.isfinite(claim.x)):
        return []
    complaints = []
    violation = worst_violation(program, claim.x)
    if not violation <= tolerance:
        complaints.append(f"x violates a row or bound by {violation:.1e}")
    room = tolerance * max(1.0, abs(case.objective))
    for name, value in (("the claimed objective", claim.objective), ("the objective at x", program.objective(claim.x))):
        if not abs(value - case.objective) <= room:
            complaints.append(f"{name} is {value!r}, right is {case.objective!r}")
    fractional = np.abs(claim.x - np.round(claim.x))[program.integer]
    if np.any(fractional > tolerance):
        complaints.append(f"an integer column is off by {fractional.max():.1e}")
    return complaints


def _multiplier_complaints(case: Case, claim: Claim, tolerance: float) -> list[str]:
    """Signs, sizes and stationarity of the multipliers."""
    program, room = case.program, 100 * tolerance
    if claim.y.shape != program.row_lower.shape:
        return [f"y has shape {claim.y.shape}, right is {program.row_lower.shape}"]
    if not np.all(np.isfinite(claim.y)) or claim.x.shape != program.cost.shape:
        return []
    complaints = []
    wrong = [i for i, sign in enumerate(case.signs) if not _has_sign(claim.y[i], sign, room)]
    if wrong:
        complaints.append(f"y has the wrong sign in rows {wrong}: {claim.y[wrong].tolist()}")
    if case.multipliers is not None:
        error = np.abs(claim.y - case.multipliers)
        if np.any(error > room * np.maximum(1.0, np.abs(case.multipliers))):
            complaints.append(f"y is {claim.y.tolist()}, right is {case.multipliers.tolist()}")
    missing = (np.isinf(program.row_lower) & (claim.y > room)) | (np.isinf(program.row_upper) & (claim.y < -room))
    if np.any(missing):
        complaints.append(f"y pulls at a side that rows {np.flatnonzero(missing).tolist()} do not have")
    worst = _stationarity_error(program, claim.x, claim.y)
    if not worst <= room:
        complaints.append(f"reduced costs contradict the point by {worst:.1e}")
    return complaints


def _has_sign(value: float, sign: int, room: float) -> bool:
    """Whether a multiplier has the sign asked for; a non-zero one may be as small as its case makes it."""
    if sign == ANY_SIGN:
        return True
    return abs(value) <= room if sign == 0 else value * sign > 0


def _stationarity_error(program: Program, x: np.ndarray, y: np.ndarray) -> float:
    """By how much the reduced costs have the wrong sign for where x is between its bounds."""
    if x.size == 0:
        return 0.0
    positive = np.where(x > 0, x, 1.0)
    reduced = program.cost + program.entropy * (np.log(positive) + 1.0) - program.rows.T @ y
    free = program.lower < program.upper
    # A reduced cost is weighed by the room there is to use it, so that a column almost at its bound is at its bound.
    # The derivative of x ln x changes as soon as x does by its own size.
    own = np.where(program.entropy > 0, np.maximum(x, 0.0), 1.0)
    up, down = np.minimum(program.upper - x, own), np.minimum(x - program.lower, own)
    error = np.maximum(-reduced * up, reduced * down) * free
    return float(np.max(error, initial=0.0))


def _supported_case(name: str, backend: Backend) -> Case | CaseResult:
    """Any case that the backend takes, or why there is none."""
    if not backend.availability().available:
        return CaseResult(name, backend.name, Outcome.UNAVAILABLE, backend.availability().reason)
    case = next((case for case in CASES if backend.supports(case.program).supported), None)
    return case or CaseResult(name, backend.name, Outcome.UNSUPPORTED, "the backend supports none of the cases")


def _run_cancelled(backend: Backend, options: Mapping[str, Any] | None, tolerance: float) -> CaseResult:
    """When nobody waits any more: `Stopped`, a claim that says limit, or a right answer all the same."""
    name = "cancelled"
    case = _supported_case(name, backend)
    if isinstance(case, CaseResult):
        return case
    patience = in_force().for_worker()
    patience.cancel()
    try:
        with running(patience):
            claim = backend.solve(case.program, dict(options or {}))
    except Stopped:
        return CaseResult(name, backend.name, Outcome.PASSED, "stopped at a checkpoint")
    except Exception as error:  # to be stopped is no failure of the solver's
        words = f"raised {type(error).__name__}: {error}; right is Stopped, or a claim"
        return CaseResult(name, backend.name, Outcome.FAILED, words)
    complaints = [] if claim.status is Claimed.LIMIT else check_claim(case, claim, tolerance=tolerance)
    outcome = Outcome.FAILED if complaints else Outcome.PASSED
    return CaseResult(name, backend.name, outcome, "; ".join(complaints) or f"claims {claim.status.value}", claim)


def _run_unknown_option(backend: Backend) -> CaseResult:
    """An unknown option must be refused with `InputError`, not ignored."""
    name = "unknown-option"
    case = _supported_case(name, backend)
    if isinstance(case, CaseResult):
        return case
    try:
        backend.solve(case.program, {"an_option_that_nobody_has": 1})
    except InputError:
        return CaseResult(name, backend.name, Outcome.PASSED, "")
    except Exception as error:  # the wrong exception is a finding
        return CaseResult(name, backend.name, Outcome.FAILED, f"raised {type(error).__name__}, right is InputError")
    return CaseResult(name, backend.name, Outcome.FAILED, "an unknown option was ignored, right is InputError")
