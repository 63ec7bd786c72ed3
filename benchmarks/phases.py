"""The measured verbs. A phase is a function that sets up untimed and returns the one call that is timed.

The verbs are the steps of `dpopt.solve` over the core at which it ends. `check` stands alone here; within `dpopt.solve`
it is part of repair and is done once more, independently, within bound: the sum repair + check + bound is therefore
more than the proof that a user waits for. Where the first multipliers leave a gap, `dpopt.solve` asks a second time,
in unscaled rows; the phases "... again" are that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import log10
from pathlib import Path

import numpy as np

import dpopt as dp
from benchmarks.measure import Verb
from benchmarks.registry import Case, Size
from dpopt import checker
from dpopt.backends.base import Backend
from dpopt.backends.registry import choose_backend, get_backend
from dpopt.program.core import Core
from dpopt.program.formulate import Formulation, core_for, formulate, grown
from dpopt.program.reductions import reduce
from dpopt.proof.infeasible import strictly_feasible
from dpopt.proof.multipliers import multipliers, statement
from dpopt.proof.prove import Outcome, Verified, _polished, better_bound, prove_point
from dpopt.proof.repair import repair

__all__ = ["AGAIN", "PHASES", "TOLERANCE", "Subject", "decades_below_tolerance"]

TOLERANCE = 1e-7  # what HiGHS, CBC and SciPy call feasible by default
_CORES = 6  # as many as `dpopt.solve` tries


class Subject:
    """A case at one size, brought to the end once, so that every phase finds its input ready."""

    def __init__(self, case: Case, size: Size, folder: Path) -> None:
        self.case, self.size = case, size
        problem = case.make(size)
        self.solution = dp.solve(problem, backend=case.backend)
        self.backend = self._backend(problem)
        self.core, self.cores_tried = core_for(problem), 1
        best = self._attempt(self.core)
        core, most = self.core, 1 if problem.support.is_finite else _CORES
        while best.outcome.verified is not Verified.OPTIMAL and self.cores_tried < most:
            core, self.cores_tried = grown(core), self.cores_tried + 1
            other = self._attempt(core)
            if not _is_tighter(other.outcome, best.outcome):
                break
            self.core, best = core, other
        self.attempt = best
        self.certificate_file = folder / "certificate.json"
        if self.proves:
            self.solution.certificate.save(self.certificate_file)

    @property
    def proves(self) -> bool:
        """Whether there is a repaired pmf: without one the phases end with solve."""
        return self.attempt.outcome.repaired is not None

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that this subject reaches."""
        if not self.proves:
            return ("formulate", "reduce", "solve", "whole")
        return tuple(name for name in PHASES if self.asks_again or name not in AGAIN)

    @property
    def asks_again(self) -> bool:
        """Whether `dpopt.solve` asks once more, in unscaled rows, for the multipliers of a tighter bound."""
        entropy = self.attempt.formulation.program.has_entropy
        return self.attempt.outcome.verified is Verified.FEASIBLE and not entropy

    def fresh(self) -> Formulation:
        """A formulation of a problem that remembers nothing of earlier repetitions."""
        return formulate(self.case.make(self.size), self.core)

    def centre(self, formulation: Formulation) -> Callable[[], np.ndarray | None]:
        """The strictly feasible pmf that a repair may ask for, computed when it does."""
        return cache(lambda: strictly_feasible(formulation, self.backend))

    def _backend(self, problem: dp.Problem) -> Backend:
        if self.case.backend != "auto":
            return get_backend(self.case.backend)
        return choose_backend(reduce(formulate(problem, core_for(problem))).program)[0]

    def _attempt(self, core: Core) -> _Attempt:
        formulation = formulate(self.case.make(self.size), core)
        reduction = reduce(formulation)
        claim = self.backend.solve(reduction.program, {})
        if not claim.has_point:
            nothing = Outcome(Verified.FAILED, claim.message)
            return _Attempt(formulation, reduction.program.rows.shape, np.zeros(0), np.zeros(0), nothing)
        x = reduction.point(claim.x)
        y = reduction.multipliers(claim.y) if claim.y.size else np.zeros(0)
        outcome = prove_point(formulation, x, y, self.centre(formulation))
        return _Attempt(formulation, reduction.program.rows.shape, x, y, outcome)


@dataclass(frozen=True, eq=False)
class _Attempt:
    """One core: the claim in the formulation's coordinates, and what it proves."""

    formulation: Formulation
    reduced: tuple[int, ...]
    x: np.ndarray
    y: np.ndarray
    outcome: Outcome


def _is_tighter(outcome: Outcome, best: Outcome) -> bool:
    if outcome.gap is None or best.gap is None:
        return outcome.gap is not None
    return outcome.gap < best.gap * Fraction(9, 10)


def _formulate(subject: Subject) -> Verb:
    problem = subject.case.make(subject.size)
    return lambda: formulate(problem, subject.core)


def _reduce(subject: Subject) -> Verb:
    formulation = subject.fresh()
    return lambda: reduce(formulation)


def _solve(subject: Subject) -> Verb:
    program = reduce(subject.fresh()).program
    return lambda: subject.backend.solve(program, {})


def _repair(subject: Subject) -> Verb:
    formulation, attempt = subject.fresh(), subject.attempt
    centre = subject.centre(formulation)
    return lambda: repair(formulation, _polished(formulation, attempt.x, attempt.y)[0], centre)


def _check(subject: Subject) -> Verb:
    problem = subject.case.make(subject.size)
    repaired = subject.attempt.outcome.repaired
    assert repaired is not None
    pmf = replace(repaired.pmf)  # without the sums that the other one remembers
    return lambda: problem.check(pmf)


def _bound(subject: Subject) -> Verb:
    formulation, attempt = subject.fresh(), subject.attempt
    repaired = attempt.outcome.repaired
    assert repaired is not None
    pmf = replace(repaired.pmf)
    _, y = _polished(formulation, attempt.x, attempt.y)
    y = y if y.size else np.zeros(formulation.program.row_lower.size)
    return lambda: checker.certify(statement(formulation.problem, pmf, multipliers(formulation, y)))


def _reduce_again(subject: Subject) -> Verb:
    formulation = subject.fresh()
    return lambda: reduce(formulation, scaled=False)


def _solve_again(subject: Subject) -> Verb:
    program = reduce(subject.fresh(), scaled=False).program
    return lambda: subject.backend.solve(program, {})


def _bound_again(subject: Subject) -> Verb:
    formulation, outcome = subject.fresh(), subject.attempt.outcome
    plain = reduce(formulation, scaled=False)
    claim = subject.backend.solve(plain.program, {})
    return lambda: better_bound(formulation, outcome, plain.multipliers(claim.y))


def _verify(subject: Subject) -> Verb:
    return lambda: dp.verify(subject.certificate_file)


def _whole(subject: Subject) -> Verb:
    problem = subject.case.make(subject.size)
    return lambda: dp.solve(problem, backend=subject.case.backend)


PHASES: dict[str, Callable[[Subject], Verb]] = {
    "formulate": _formulate,
    "reduce": _reduce,
    "solve": _solve,
    "repair": _repair,
    "check": _check,
    "bound": _bound,
    "reduce again": _reduce_again,
    "solve again": _solve_again,
    "bound again": _bound_again,
    "verify": _verify,
    "whole": _whole,
}
"""The phases in their order; `verify` re-checks the saved certificate, `whole` is `dpopt.solve` from end to end."""

AGAIN = ("reduce again", "solve again", "bound again")
"""Only where the first proof leaves a gap."""


def decades_below_tolerance(pmf: dp.Pmf) -> float:
    """How many decades the smallest positive mass of the core lies below the tolerance of common solvers."""
    smallest = min(w for w in pmf.weights if w)
    return log10(TOLERANCE) - (log10(smallest) - log10(sum(pmf.weights)))
