"""The one way to solve: problem -> program -> backend -> claim -> proof -> solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, singledispatch
from time import perf_counter
from typing import Any

import numpy as np

from dpopt.backends.base import Backend, Claim, Claimed, ask, read_given
from dpopt.backends.registry import candidates, read_backend
from dpopt.errors import BackendError, InputError
from dpopt.patience import Phase, Progress, Stopped, checkpoint, in_force, limited, read_time_limit, tell_interrupted
from dpopt.problem.problem import Problem
from dpopt.program.core import Core
from dpopt.program.formulate import Formulation, core_for, formulate, grown
from dpopt.program.program import Program
from dpopt.program.reductions import Reduction, reduce, tight_rows
from dpopt.proof.infeasible import conflicts, strictly_feasible
from dpopt.proof.prove import Outcome, Verified, better_bound, prove_point
from dpopt.proof.staircases import best_staircase, prove_staircase, slow_without_staircase, with_best_staircase
from dpopt.solution import Certificate, Repair, Solution
from dpopt.text import decimal_text

__all__ = ["answer", "read_limit", "solve"]

_ROUNDS = 6  # cores tried on all integers, each half as long again


def solve(
    problem: Any,
    backend: str | Backend = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Answer a problem or a target, and prove the answer.

    Parameters
    ----------
    problem : Problem or Target
        From Python, or from a file with `load`.
    backend : str or Backend
        A registered name, a backend object, or ``"auto"``.
    options : mapping, optional
        Options of that backend; unknown ones are errors. ``time_limit`` among them is the `time_limit` below.
    time_limit : float, optional
        Seconds for the whole call, retries, proofs and the search for a conflict included. What is proved by then is
        returned, and `verified` is FAILED, with the reason, if that is nothing.
    progress : callable, optional
        Gets a `Progress` at every change of phase and about ten times a second, in the thread of the caller.

    Returns
    -------
    Solution
        Its `verified` says what was proved; a failure is a solution with `verified` FAILED and the reason.

    Raises
    ------
    InputError
        `problem` is not a problem, an option is unknown, or `time_limit` is not a number above 0.
    BackendError
        The backend is unknown, not installed, or cannot take this program.
    KeyboardInterrupt
        After Ctrl-C, at once: its notes say what was proved by then, and its attribute ``solution`` holds it.

    Examples
    --------
    >>> import dpopt as dp
    >>> solution = dp.solve(dp.tablebuilder(D=2, V=1))
    >>> solution.verified, round(float(solution.pmf.probability(0)), 12)
    (<Verified.OPTIMAL: 'optimal'>, 0.382962820239)
    """
    given, seconds = read_limit(options, time_limit)
    with limited(seconds, progress):
        return answer(problem, backend, options=given)


@singledispatch
def answer(problem: Any, backend: str | Backend, *, options: dict[str, Any]) -> Solution:
    """What `solve` does for each kind of question; a kind registers its own."""
    raise InputError(
        "problem", f"must be a Problem or a Target (dpopt.load reads one from a file), not {type(problem).__name__}"
    )


@answer.register
def answer_problem(problem: Problem, backend: str | Backend, *, options: dict[str, Any]) -> Solution:
    return _Run(problem, backend, options).solution()


class _Run:
    """One call of `solve`: what was chosen, how long each phase took, the best outcome so far."""

    def __init__(self, problem: Problem, backend: str | Backend, options: dict[str, Any]) -> None:
        self.problem, self.options = problem, options
        self.wanted = None if backend == "auto" else read_backend(backend)
        self.backend: Backend | None = None
        self.backend_reason = ""
        self.timings = dict.fromkeys(("formulate", "reduce", "solve", "repair", "bound"), 0.0)
        self.claim: Claim | None = None
        self.objective = float("nan")
        self.candidates: Iterator[tuple[Backend, str]] = iter(())
        self.failures: list[str] = []
        self.staircase = cache(lambda: best_staircase(problem))
        self.kept: tuple[Outcome, Claim | None, float] | None = None

    @property
    def name(self) -> str:
        """Whose answer it is, or will be."""
        backend = self.backend or self.wanted
        return "auto" if backend is None else backend.name

    def solution(self) -> Solution:
        """The best that can be proved in the time there is."""
        try:
            outcome = self.best_of_all()
        except Stopped as stop:
            outcome = self.proved_by_then(f"{stop} ended the search")
        except KeyboardInterrupt as interrupt:
            found = "nothing" if self.kept is None else self.in_words(self.kept[0])
            interrupt.solution = self.report(self.proved_by_then("an interrupt ended the search"))  # type: ignore[attr-defined]
            tell_interrupted(interrupt, f"proved by then: {found}")
            raise
        return self.report(outcome)

    def best_of_all(self) -> Outcome:
        """The best that the wanted backend, or one after the other of `auto`'s, lets dpopt prove."""
        outcome = self.widened()
        while outcome.verified is Verified.FAILED and self.next_candidate():
            self.failures.append(outcome.reason)
            outcome = self.widened()
        if outcome.verified is Verified.FAILED and self.failures:
            outcome = replace(outcome, reason="; ".join([*self.failures, outcome.reason]))
        return outcome

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
        checkpoint()
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
        other = self.proved(prove_point(formulation, plain.point(claim.x), plain_y, centre), claim, plain.scale)
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
        """A proof that nothing is feasible, from the smallest conflicting set that was found."""

        def smallest() -> Outcome | None:
            found = None
            for found in conflicts(formulation, backend):
                self.keep(found, self.claim, self.objective)
            return found

        return self.timed("bound", smallest)

    def chosen(self, program: Program) -> Backend:
        """The backend, chosen once."""
        if self.backend is None:
            if self.wanted is None:
                self.candidates = candidates(program)
                self.backend, self.backend_reason = next(self.candidates)
            else:
                self.backend, self.backend_reason = self.wanted, "asked for"
            available = self.backend.availability()
            if not available.available:
                raise BackendError(f"backend '{self.backend.name}' cannot run here: {available.reason}")
        supported = self.backend.supports(program)
        if not supported.supported:
            raise BackendError(f"backend '{self.backend.name}' cannot take this program: {supported.reason}")
        return self.backend

    def proved(self, outcome: Outcome, claim: Claim | None = None, scale: float = math.nan) -> Outcome:
        """Book the seconds of a proof, and keep it in case that the time is up before a better one is found."""
        for phase, seconds in outcome.seconds.items():
            self.timings[phase] += seconds
        if claim is None:
            self.keep(outcome, self.claim, self.objective)
        else:
            self.keep(outcome, claim, claim.objective * scale)
        return outcome

    def keep(self, outcome: Outcome, claim: Claim | None, objective: float) -> None:
        """What is proved by now, with the claim that it came from."""
        if outcome.verified is Verified.FAILED or (self.kept is not None and self.kept[0].is_better_than(outcome)):
            return
        self.kept = (outcome, claim, objective)
        value, bound = _ends(outcome)
        in_force().tell_proved(self.in_words(outcome), value, bound)

    def in_words(self, outcome: Outcome) -> str:
        """What is proved, in one line; value and bound rounded to the side on which they stay true."""
        if outcome.verified is Verified.INFEASIBLE:
            return f"infeasible, {outcome.reason}"
        bound, maximise = outcome.bound, self.problem.objective_term.maximise
        value = decimal_text(outcome.lower if maximise else outcome.value, 6, up=not maximise)
        words = f"{outcome.verified.value}, value at {'least' if maximise else 'most'} {value}"
        return words if bound is None else f"{words}, bound {decimal_text(bound, 6, up=maximise)}"

    def proved_by_then(self, reason: str) -> Outcome:
        """The best outcome so far, where the search was ended; a failure if there is none."""
        if self.kept is None:
            why = f"{reason} while {in_force().doing}, before anything was proved"
            return Outcome(Verified.FAILED, "; ".join([*self.failures, why]))
        outcome, self.claim, self.objective = self.kept
        if outcome.verified is Verified.INFEASIBLE:
            reason = f"{outcome.reason} ({reason} for a smaller set)"
        return outcome if outcome.verified is Verified.OPTIMAL else replace(outcome, reason=reason)

    def timed(self, phase: str, work: Any) -> Any:
        """Run `work` and book its wall time."""
        checkpoint()
        in_force().tell(Phase(phase), self.doing(phase))
        started = perf_counter()
        try:
            return work()
        finally:
            self.timings[phase] += perf_counter() - started

    def doing(self, phase: str) -> str:
        """The phase for people."""
        return {
            "formulate": "writing the program",
            "reduce": "reducing the program",
            "solve": f"solving with {self.name}",
            "repair": "making the pmf exact",
            "bound": "proving",
        }[phase]

    def report(self, outcome: Outcome) -> Solution:
        """The solution object."""
        claim = self.claim or Claim(Claimed.LIMIT, "", "", "")
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
            backend=self.name,
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


def read_limit(options: object, time_limit: object) -> tuple[dict[str, Any], float]:
    """The options without their time limit, and the seconds of the whole call: one number under two names."""
    given, seconds = read_given(options), read_time_limit(time_limit)
    if "time_limit" not in given:
        return given, seconds
    other = read_time_limit(given.pop("time_limit"), "options.time_limit")
    if time_limit is not None and other != seconds:
        raise InputError("time_limit", f"is {seconds:g} here and {other:g} in options: it is one limit, give it once")
    return given, other


def _ends(outcome: Outcome) -> tuple[float | None, float | None]:
    """Value and bound as floats, for information."""
    if outcome.verified is Verified.INFEASIBLE:
        return None, None
    return float(outcome.value), None if outcome.bound is None else float(outcome.bound)
