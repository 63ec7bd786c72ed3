"""A time limit is a limit on the whole call, whatever a backend does, and what is proved by then is returned."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

import dpopt as dp
from dpopt.backends.base import Availability, Option, Support, ask
from dpopt.backends.child import ElsewhereError, ask_child
from dpopt.backends.registry import get_backend
from dpopt.patience import Phase, Progress, Stopped, checkpoint, in_force, limited, patiently
from dpopt.program.formulate import core_for, formulate
from dpopt.program.program import Program
from dpopt.program.reductions import reduce

SLACK = 4.0  # seconds, for a busy machine; a limit that does not hold takes tens of them

EASY = dp.Problem(objective=dp.MinExpectedCost("absolute"), constraints=[dp.PureDP(1, 1)])
IMPOSSIBLE = dp.Problem(
    support=dp.Integers(-5, 5), objective=dp.MaxEntropy(), constraints=[dp.Mean(0), dp.Mean(1), dp.Symmetric()]
)


def large(sensitivity: int, *more: dp.Constraint) -> dp.Problem:
    """A hundred thousand rows and more."""
    private = dp.PureDP("1/10", sensitivity)
    return dp.Problem(objective=dp.MinWasserstein(dp.poisson(1000)), constraints=[private, *more])


def program_of(problem: dp.Problem) -> Program:
    return reduce(formulate(problem, core_for(problem))).program


class Patient:
    """A backend of a kind: what it does before, or instead of, an honest answer."""

    name: ClassVar[str] = "patient"
    requires: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self) -> None:
        self.calls = 0
        self.leave = threading.Event()

    def availability(self) -> Availability:
        return Availability(True, "")

    def supports(self, program: Program) -> Support:
        return Support(True, "")

    def solve(self, program: Program, options: Mapping[str, Any]) -> dp.Claim:
        self.calls += 1
        self.wait()
        return get_backend("newton" if program.has_entropy else "highs").solve(program, {})

    def wait(self) -> None:
        """Answers at once."""


class Sleeper(Patient):
    """Never answers, and uses no time."""

    def wait(self) -> None:
        self.leave.wait(60)


class Spinner(Patient):
    """Never answers, and looks at nothing."""

    def wait(self) -> None:
        while not self.leave.is_set():
            pass


class Watcher(Patient):
    """Never answers, but looks whether it is still wanted."""

    stopped = False

    def wait(self) -> None:
        try:
            while True:
                checkpoint()
        except Stopped:
            self.stopped = True
            raise


class OnlyOnce(Patient):
    """Answers the first question and no other."""

    def wait(self) -> None:
        if self.calls > 1:
            self.leave.wait(60)


class Deaf(Sleeper):
    """Takes a time limit and does not keep it."""

    options: ClassVar[Mapping[str, Option]] = {"time_limit": Option(float, float("inf"), "not kept")}


# --- one limit for the whole call ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Sleeper, Spinner, Watcher, Deaf])
def test_a_backend_that_never_answers_is_left(kind: type[Patient]) -> None:
    """Whatever it does in the meantime, and whether or not it notices."""
    backend, started = kind(), time.perf_counter()
    solution = dp.solve(EASY, backend, time_limit=0.3)
    backend.leave.set()
    assert time.perf_counter() - started < 0.3 + SLACK
    assert (solution.claimed, solution.verified) == (dp.Claimed.LIMIT, dp.Verified.FAILED)
    assert solution.message == (
        "the time limit of 0.3 s ended the search while solving with patient, before anything was proved"
    )
    assert solution.backend == "patient"
    assert not isinstance(backend, Watcher) or backend.stopped
    with pytest.raises(dp.NotVerifiedError, match="the time limit of 0.3 s"):
        solution.require_verified()


@pytest.mark.slow
def test_what_is_proved_by_then_is_returned() -> None:
    """A first answer with a gap is proved; a second opinion never comes."""

    class Rough(OnlyOnce):
        def solve(self, program: Program, options: Mapping[str, Any]) -> dp.Claim:
            claim = super().solve(program, options)
            return replace(claim, y=np.zeros(claim.y.size))

    problem = dp.Problem(
        support=dp.Integers(-8, 8),
        objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.PureDP(1, 1, boundary="window")],
    )
    backend = Rough()
    solution = dp.solve(problem, backend, time_limit=1.0)
    backend.leave.set()
    best = dp.solve(problem).value.upper
    assert backend.calls > 1
    assert solution.verified is dp.Verified.FEASIBLE
    assert solution.message == "the time limit of 1 s ended the search"
    assert solution.claimed is dp.Claimed.OPTIMAL
    assert solution.value.upper >= best and all(check.holds for check in solution.checks)
    assert dp.verify(solution).holds


@pytest.mark.slow
def test_a_conflict_is_returned_while_a_smaller_one_is_looked_for() -> None:
    """Infeasible is proved by the first proof, and what names fewer constraints comes later."""

    class Slow(Patient):
        def wait(self) -> None:
            if self.calls > 2:
                self.leave.wait(60)

    backend = Slow()
    solution = dp.solve(IMPOSSIBLE, backend, time_limit=1.0)
    backend.leave.set()
    assert solution.verified is dp.Verified.INFEASIBLE
    assert len(solution.conflict) == 3
    assert "(the time limit of 1 s ended the search for a smaller set)" in solution.message
    assert dp.verify(solution).holds


@pytest.mark.slow
def test_the_limit_has_one_meaning_and_two_names() -> None:
    """As an option it is the limit of the whole call as well, for a backend without such an option too."""
    backend = Sleeper()
    solution = dp.solve(EASY, backend, options={"time_limit": 0.2})
    backend.leave.set()
    assert "the time limit of 0.2 s" in solution.message
    assert dp.solve(EASY, time_limit=50, options={"time_limit": 50.0}).verified is dp.Verified.OPTIMAL
    with pytest.raises(dp.InputError, match="^time_limit: is 5 here and 7 in options: it is one limit, give it once$"):
        dp.solve(EASY, time_limit=5, options={"time_limit": 7})


@pytest.mark.parametrize("wrong", [0, -1, "5", True, float("nan"), [5]])
def test_what_is_no_limit(wrong: Any) -> None:
    """With the argument that it came in."""
    for question in (EASY, dp.target(epsilon=1, delta="0.01", family="analytic")):
        with pytest.raises(dp.InputError, match="^time_limit: must be a number of seconds above 0"):
            dp.solve(question, time_limit=wrong)
        with pytest.raises(dp.InputError, match="^options.time_limit: must be a number of seconds above 0"):
            dp.solve(question, options={"time_limit": wrong})
    with pytest.raises(dp.InputError, match="^time_limit: must be a number of seconds above 0"):
        dp.compare(EASY, ["highs"], time_limit=wrong)


@pytest.mark.parametrize("seconds", [None, 60, float("inf")])
def test_a_limit_that_is_not_reached_changes_nothing(seconds: float | None) -> None:
    """Not a digit."""
    assert dp.solve(EASY, time_limit=seconds).certificate == dp.solve(EASY).certificate


# --- the cases -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sensitivity", "more", "seconds", "backend"),
    [
        (300, (dp.Mean("1/3"),), 2, "auto"),  # not done after 300 s with time_limit = 5
        (100, (), 1, "auto"),  # 24 solver calls, 31 to 200 s
        (200, (dp.Mean("1/3"),), 2, "scipy"),
        (200, (dp.Mean("1/3"),), 2, "cvxpy"),
        (200, (dp.Mean("1/3"),), 2, "pulp"),
    ],
)
def test_large_programs(sensitivity: int, more: tuple[Any, ...], seconds: float, backend: str) -> None:
    """The call returns in time, and what it returns is proved or says that nothing is."""
    started = time.perf_counter()
    solution = dp.solve(large(sensitivity, *more), backend, time_limit=seconds)
    assert time.perf_counter() - started < seconds + SLACK
    if solution.verified is dp.Verified.FAILED:
        assert solution.claimed is dp.Claimed.LIMIT
        assert f"the time limit of {seconds} s ended the search" in solution.message
    else:
        assert dp.verify(solution).holds


@pytest.mark.slow
@pytest.mark.parametrize("family", ["analytic", "tablebuilder", "any"])
def test_a_target_ends_in_time(family: str) -> None:
    """At a support of ten thousand points."""
    target = dp.target(epsilon="1/5000", delta="1e-9", family=family, sensitivity=2 if family == "any" else 1)
    started = time.perf_counter()
    with dp.limits(bit_operations=10**16):  # or the design for any pmf would be refused
        solution = dp.solve(target, time_limit=0.2)
    assert time.perf_counter() - started < 0.2 + SLACK
    assert (solution.claimed, solution.verified) == (dp.Claimed.LIMIT, dp.Verified.FAILED)
    assert solution.message.startswith("the time limit of 0.2 s ended the search while ")


@pytest.mark.slow
def test_a_comparison_ends_in_time() -> None:
    """The backends whose turn does not come say so; the others have their rows."""
    backend = Sleeper()
    comparison = dp.compare(EASY, ["highs", backend, "scipy"], time_limit=1.0)
    backend.leave.set()
    quick, left, unasked = comparison.rows
    assert quick.verified is dp.Verified.OPTIMAL
    assert (left.claimed, left.verified) == (dp.Claimed.LIMIT, dp.Verified.FAILED)
    assert (unasked.claimed, unasked.message) == (None, "not asked: the time limit of 1 s was over")


@pytest.mark.slow
def test_each_backend_of_a_comparison_may_have_its_own_limit() -> None:
    """For either of its answers, and the next one is asked."""
    backend = Sleeper()
    left, quick = dp.compare(EASY, [backend, "highs"], options={"patient": {"time_limit": 0.2}}).rows
    backend.leave.set()
    assert (left.claimed, left.verified) == (dp.Claimed.LIMIT, dp.Verified.FAILED)
    assert quick.verified is dp.Verified.OPTIMAL


# --- a process of its own --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scipy", "pulp", "cvxpy"])
def test_a_process_gives_the_same_answer(name: str) -> None:
    """To the last bit, its errors included."""
    backend, program = get_backend(name), program_of(EASY)
    here, there = backend.solve(program, {}), ask_child(backend, program, {})
    assert np.array_equal(here.x, there.x) and np.array_equal(here.y, there.y)
    assert (here.status, here.message, here.version) == (there.status, there.message, there.version)
    refused = ask_child(backend, program, {"nonsense": 1})
    assert isinstance(refused, dp.InputError) and refused.location == "options.nonsense"


def test_a_backend_that_another_process_does_not_know() -> None:
    """A thread has to do."""

    class Estimated(Patient):
        def seconds(self, program: Program, options: Mapping[str, Any]) -> float:
            return 1e9

    with pytest.raises(ElsewhereError):
        ask_child(Estimated(), program_of(EASY), {})
    assert dp.solve(EASY, Estimated()).verified is dp.Verified.OPTIMAL


def test_a_process_that_dies_is_a_claim() -> None:
    """As after a crash of a native solver."""
    claim = ask(_Crashing(), program_of(EASY), {})
    assert claim.status is dp.Claimed.ERROR
    assert "process ended without an answer" in claim.message


class _Crashing:
    """Pickles as something that ends the process that reads it."""

    name, requires, options = "crashing", (), {}

    def availability(self) -> Availability:
        return Availability(True, "")

    def supports(self, program: Program) -> Support:
        return Support(True, "")

    def solve(self, program: Program, options: Mapping[str, Any]) -> dp.Claim:
        raise AssertionError("asked in this process")

    def seconds(self, program: Program, options: Mapping[str, Any]) -> float:
        return 1e9

    def __reduce__(self) -> Any:
        import os

        return os._exit, (7,)


# --- progress --------------------------------------------------------------------------------------------------------


def test_progress_tells_the_phases_and_what_is_proved() -> None:
    """On the caller's thread, in order, with the numbers of the answer in the end."""
    heard: list[Progress] = []
    threads = set()

    def hear(now: Progress) -> None:
        heard.append(now)
        threads.add(threading.current_thread())

    solution = dp.solve(EASY, progress=hear)
    assert threads == {threading.current_thread()}
    assert {now.phase for now in heard} >= {Phase.FORMULATE, Phase.REDUCE, Phase.SOLVE, Phase.REPAIR, Phase.BOUND}
    assert all(a.seconds <= b.seconds for a, b in zip(heard, heard[1:], strict=False))
    assert (heard[0].value, heard[0].proved) == (None, "")
    assert heard[-1].value == float(solution.value.upper) and heard[-1].bound == float(solution.bound or 0)
    assert heard[-1].proved.startswith("optimal, value at most 0.850919, bound 0.850918")


@pytest.mark.slow
def test_progress_comes_while_a_solver_works() -> None:
    """About ten times a second."""
    heard: list[Progress] = []
    backend = Sleeper()
    dp.solve(EASY, backend, time_limit=0.6, progress=heard.append)
    backend.leave.set()
    assert sum(now.doing == "solving with patient" for now in heard) >= 3


def test_progress_of_a_target_is_about_the_target() -> None:
    """Not about the problems that are solved on the way."""
    heard: list[Progress] = []
    dp.solve(dp.target(epsilon=1, delta="0.1", family="any", sensitivity=2), progress=heard.append)
    assert any("smallest D, at" in now.doing for now in heard)
    assert all(now.proved == "" for now in heard)


def test_an_exception_of_the_listener_ends_the_call() -> None:
    """It is the listener's, and reaches the caller."""
    backend = Watcher()

    def refuse(now: Progress) -> None:
        if now.phase is Phase.SOLVE and now.seconds > 0.1:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        dp.solve(EASY, backend, progress=refuse)
    assert backend.stopped


# --- patience itself -------------------------------------------------------------------------------------------------


def test_an_inner_limit_does_not_outlast_the_outer_one() -> None:
    """And the outer one comes back."""
    with limited(0.05):
        with limited(50), pytest.raises(Stopped, match="0.05 s"):
            time.sleep(0.06)
            checkpoint()
        with pytest.raises(Stopped):
            list(patiently([1, 2]))
    checkpoint()
    assert in_force().remaining == float("inf")


def test_each_thread_has_its_own() -> None:
    """A limit here is none there."""
    found = []
    with limited(0.001):
        time.sleep(0.002)
        thread = threading.Thread(target=lambda: found.append(in_force().is_over))
        thread.start()
        thread.join()
        assert found == [False] and in_force().is_over


def test_stopping_is_not_an_exception_that_anybody_catches_by_accident() -> None:
    assert not issubclass(Stopped, Exception)


def test_an_interrupted_call_says_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt itself holds the solution."""

    def interrupt(now: Progress) -> None:
        if now.proved:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        dp.solve(EASY, progress=interrupt)
    (note,) = caught.value.__notes__
    assert note == "dpopt: interrupted after 0 s; proved by then: optimal, value at most 0.850919, bound 0.850918"
    solution = caught.value.solution
    assert solution.verified is dp.Verified.OPTIMAL and dp.verify(solution).holds
    assert solution.value.upper - Fraction("0.85091812823932154513") < Fraction(1, 10**9)
