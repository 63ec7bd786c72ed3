"""The one way to solve: problem -> program -> backend -> claim -> proof -> solution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, singledispatch
from time import perf_counter
from typing import Any

import numpy as np

from dpopt.backends.base import Backend, Claim, Claimed, ask, read_given
from dpopt.backends.registry import candidates, read_backend
from dpopt.errors import BackendError, InputError
from dpopt.problem.problem import Problem
from dpopt.program.core import Core
from dpopt.program.formulate import Formulation, core_for, formulate, grown
from dpopt.program.program import Program
from dpopt.program.reductions import Reduction, reduce, tight_rows
from dpopt.proof.infeasible import find_conflict, strictly_feasible
from dpopt.proof.prove import Outcome, Verified, better_bound, prove_point
from dpopt.proof.staircases import best_staircase, prove_staircase, slow_without_staircase, with_best_staircase
from dpopt.solution import Certificate, Repair, Solution

__all__ = ["answer", "solve"]

_ROUNDS = 6  # cores tried on all integers, each half as long again


def solve(problem: Any, backend: str | Backend = "auto", *, options: Mapping[str, Any] | None = None) -> Solution:
    """Answer a problem or a target, and prove the answer.

    Parameters
    ----------
    problem : Problem or Target
        From Python, or from a file with `load`.
    backend : str or Backend
        A registered name, a backend object, or ``"auto"``.
    options : mapping, optional
        Options of that backend; unknown ones are errors.

    Returns
    -------
    Solution
        Its `verified` says what was proved; a failure is a solution with `verified` FAILED and the reason.

    Raises
    ------
    InputError
        `problem` is not a problem, or an option is unknown.
    BackendError
        The backend is unknown, not installed, or cannot take this program.

    Examples
    --------
    >>> import dpopt as dp
    >>> solution = dp.solve(dp.tablebuilder(D=2, V=1))
    >>> solution.verified, round(float(solution.pmf.probability(0)), 12)
    (<Verified.OPTIMAL: 'optimal'>, 0.382962820239)
    """
    return answer(problem, backend, options=options)


@singledispatch
def answer(problem: Any, backend: str | Backend, *, options: Mapping[str, Any] | None) -> Solution:
    """What `solve` does for each kind of question; a kind registers its own."""
    raise InputError(
        "problem", f"must be a Problem or a Target (dpopt.load reads one from a file), not {type(problem).__name__}"
    )


@answer.register
def answer_problem(problem: Problem, backend: str | Backend, *, options: Mapping[str, Any] | None) -> Solution:
    return _Run(problem, backend, read_given(options)).solution()


class _Run:
    """One call of `solve`: what was chosen, how long each phase took, the best outcome so far."""

    def __init__(self, problem: Problem, backend: str | Backend, options: dict[str, Any]) -> None:
        self.problem, self.options = problem, options
        self.wanted = backend
        self.backend: Backend | None = None
        self.backend_reason = ""
        self.timings = dict.fromkeys(("formulate", "reduce", "solve", "repair", "bound"), 0.0)
        self.claim: Claim | None = None
        self.objective = float("nan")
        self.candidates: Iterator[tuple[Backend, str]] = iter(())
        self.failures: list[str] = []
        self.staircase = cache(lambda: best_staircase(problem))

    def solution(self) -> Solution:
        """The best that the wanted backend, or one after the other of `auto`'s, lets dpopt prove."""
        outcome = self.widened()
        while outcome.verified is Verified.FAILED and self.next_candidate():
            self.failures.append(outcome.reason)
            outcome = self.widened()
        if outcome.verified is Verified.FAILED and self.failures:
            outcome = replace(outcome, reason="; ".join([*self.failures, outcome.reason]))
        return self.report(outcome)

    def widened(self) -> Outcome:
        """One backend: solve, prove, and widen the core on all integers until both sides close."""
        core = core_for(self.problem)
        best = self.by_staircase(core) if slow_without_staircase(self.problem) else None
        if best is not None:
            return best
        for _ in range(1 if self.problem.support.is_finite else _ROUNDS):
            outcome, stop = self.attempt(core)
            if best is None or outcome.is_better_than(best):
                best, claim, objective = outcome, self.claim, self.objective
            elif best.verified is Verified.FEASIBLE:
                stop = True  # a longer core did not help: the solver's digits are the limit
            if stop or best.verified in (Verified.OPTIMAL, Verified.INFEASIBLE):
                break
            core = grown(core)
        assert best is not None
        self.claim, self.objective = claim, objective
        return self.timed("repair", lambda: with_best_staircase(self.problem, best, self.staircase))

    def next_candidate(self) -> bool:
        """Whether `auto` has another backend to try; it then is the current one."""
        found = next(self.candidates, None)
        if found is not None:
            self.backend, self.backend_reason = found
        return found is not None

    def attempt(self, core: Core) -> tuple[Outcome, bool]:
        """One core: formulate, reduce, solve, prove. The flag says that a longer core cannot help."""
        formulation = self.timed("formulate", lambda: formulate(self.problem, core))
        reduction = self.timed("reduce", lambda: reduce(formulation))
        backend = self.chosen(reduction.program)
        claim = self.claim = self.timed("solve", lambda: ask(backend, reduction.program, self.options))
        self.objective = claim.objective * reduction.scale
        if claim.status is Claimed.INFEASIBLE or not claim.has_point:
            return self.without_point(formulation, backend, claim), claim.status is Claimed.ERROR
        x = reduction.point(claim.x)
        y = _mapped_back(reduction, claim)
        centre = _Lazy(lambda: strictly_feasible(formulation, backend))
        outcome = self.proved(prove_point(formulation, x, y, centre))
        if outcome.verified is Verified.FAILED:
            infeasible = self.conflict(formulation, backend)
            return (infeasible, True) if infeasible is not None else (outcome, False)
        if outcome.verified is Verified.FEASIBLE and not reduction.program.has_entropy:
            outcome = self.without_scaling(formulation, backend, outcome, y, centre)
        return outcome, False

    def by_staircase(self, core: Core) -> Outcome | None:
        """A staircase in closed form, where the program of its tight rows alone proves it optimal."""
        found = self.timed("reduce", self.staircase)
        if found is None:
            return None
        formulation = self.timed("formulate", lambda: formulate(self.problem, core))
        reduction = self.timed("reduce", lambda: reduce(formulation))
        backend = self.chosen(reduction.program)
        x = np.zeros(formulation.program.cost.size)
        x[: core.size] = [float(found.probability(k)) for k in range(core.first, core.last + 1)]
        tight = self.timed("reduce", lambda: tight_rows(reduction, x))
        claim = self.timed("solve", lambda: ask(backend, tight.program, self.options))
        if not claim.y.size:
            return None
        outcome = prove_staircase(formulation, found, tight.multipliers(claim.y))
        if outcome is not None:
            self.claim, self.objective = claim, claim.objective * tight.scale
            self.proved(outcome)
        return outcome

    def without_scaling(
        self, formulation: Formulation, backend: Backend, outcome: Outcome, y: np.ndarray, centre: _Lazy
    ) -> Outcome:
        """A second opinion from unscaled rows, where the gap stayed open.

        Multipliers mapped back through a steep envelope lose their small digits, and an optimum that puts mass where
        the envelope expects none is lost with its coefficients. The better point and the better bound are kept.
        """
        plain = self.timed("reduce", lambda: reduce(formulation, scaled=False))
        claim = self.timed("solve", lambda: ask(backend, plain.program, self.options))
        if not claim.has_point:
            return outcome
        plain_y = _mapped_back(plain, claim)
        other = self.proved(prove_point(formulation, plain.point(claim.x), plain_y, centre))
        if other.verified is Verified.FAILED or other.value >= outcome.value:
            return self.proved(better_bound(formulation, outcome, plain_y))
        self.claim, self.objective = claim, claim.objective * plain.scale
        return self.proved(better_bound(formulation, other, y))

    def without_point(self, formulation: Formulation, backend: Backend, claim: Claim) -> Outcome:
        """No point to repair: is the problem infeasible, or did the solver just fail?"""
        infeasible = self.conflict(formulation, backend)
        if infeasible is not None:
            return infeasible
        said = f"backend '{backend.name}' claims {claim.status.value} ({claim.message})"
        if claim.status is Claimed.INFEASIBLE:
            return Outcome(Verified.FAILED, f"{said}, but no proof of infeasibility was found")
        return Outcome(Verified.FAILED, f"{said} and returned no point")

    def conflict(self, formulation: Formulation, backend: Backend) -> Outcome | None:
        """A proof that nothing is feasible, under the caller's time limit for each run of a solver."""
        return self.timed("bound", lambda: find_conflict(formulation, backend, self.options))

    def chosen(self, program: Program) -> Backend:
        """The backend, chosen once."""
        if self.backend is None:
            if self.wanted == "auto":
                self.candidates = candidates(program)
                self.backend, self.backend_reason = next(self.candidates)
            else:
                self.backend = read_backend(self.wanted)
                self.backend_reason = "asked for"
            available = self.backend.availability()
            if not available.available:
                raise BackendError(f"backend '{self.backend.name}' cannot run here: {available.reason}")
        supported = self.backend.supports(program)
        if not supported.supported:
            raise BackendError(f"backend '{self.backend.name}' cannot take this program: {supported.reason}")
        return self.backend

    def proved(self, outcome: Outcome) -> Outcome:
        """Book the seconds of a proof."""
        for phase, seconds in outcome.seconds.items():
            self.timings[phase] += seconds
        return outcome

    def timed(self, phase: str, work: Any) -> Any:
        """Run `work` and book its wall time."""
        started = perf_counter()
        result = work()
        self.timings[phase] += perf_counter() - started
        return result

    def report(self, outcome: Outcome) -> Solution:
        """The solution object."""
        claim = self.claim
        assert self.backend is not None
        assert claim is not None
        repaired = outcome.repaired
        proved = outcome.verified in (Verified.OPTIMAL, Verified.FEASIBLE)
        repair = None
        if proved and repaired is not None:
            low = Fraction(outcome.certificate["derived"]["value"][0])
            sign = -1 if self.problem.objective_term.maximise else 1
            paid = sign * float(low) - self.objective
            repair = Repair(repaired.mass_moved, paid, repaired.mixed)
        return Solution(
            problem=self.problem,
            backend=self.backend.name,
            backend_reason=self.backend_reason,
            claimed=claim.status,
            verified=outcome.verified,
            message=outcome.reason,
            certificate=Certificate(outcome.certificate),
            checks=repaired.checks if proved and repaired is not None else (),
            conflict=outcome.conflict,
            repair=repair,
            solver_message=claim.message,
            solver_version=claim.version,
            tolerances=dict(claim.tolerances),
            timings=dict(self.timings),
            proved_pmf=repaired.pmf if proved and repaired is not None else None,
        )


class _Lazy:
    """A value computed at most once, when first asked for."""

    def __init__(self, work: Any) -> None:
        self.work, self.done, self.value = work, False, None

    def __call__(self) -> np.ndarray | None:
        if not self.done:
            self.value, self.done = self.work(), True
        return self.value


def _mapped_back(reduction: Reduction, claim: Claim) -> np.ndarray:
    """The claim's multipliers in the formulation's rows; empty when the solver gave none."""
    return reduction.multipliers(claim.y) if claim.y.size else claim.y
