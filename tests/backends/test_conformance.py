"""Every backend through every case, and the suite through backends that it must reject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from dpopt.backends import (
    Availability,
    Claim,
    Claimed,
    Option,
    Support,
    backend_names,
    get_backend,
)
from dpopt.backends.conformance import (
    CASES,
    Case,
    Outcome,
    check_claim,
    run_case,
    run_conformance,
)
from dpopt.backends.registry import BUILT_IN
from dpopt.program.program import Program

TESTED = ("highs", "scipy", "pulp", "cvxpy", "newton")

UNSUPPORTED = {
    "highs": lambda case: "entropy" in case.name,
    "scipy": lambda case: "entropy" in case.name,
    "pulp": lambda case: "entropy" in case.name,
    "cvxpy": lambda case: "integer" in case.name,
    "newton": lambda case: "entropy" not in case.name or case.name in ("entropy-weights", "entropy-auxiliary"),
}
"""Which cases a backend may turn down; anything else it turns down is a failure of this test."""


def test_every_built_in_backend_is_tested() -> None:
    assert set(TESTED) == set(BUILT_IN) == set(UNSUPPORTED)
    assert set(BUILT_IN) <= set(backend_names())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", TESTED)
def test_conformance(name: str, case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    result = run_case(get_backend(name), case)
    if UNSUPPORTED[name](case):
        assert result.outcome is Outcome.UNSUPPORTED
        assert result.reason
    else:
        assert result.outcome is Outcome.PASSED, str(result)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", TESTED)
def test_unknown_option_is_refused(name: str) -> None:
    last = run_conformance(get_backend(name), cases=())[-1]
    assert (last.name, last.outcome) == ("unknown-option", Outcome.PASSED)


@pytest.mark.parametrize("name", TESTED)
def test_an_early_end_is_no_failure(name: str) -> None:
    found = next(result for result in run_conformance(get_backend(name), cases=()) if result.name == "cancelled")
    assert found.outcome is Outcome.PASSED, str(found)
    if name in ("highs", "newton"):  # which can be stopped from within
        assert found.reason in ("claims limit", "stopped at a checkpoint")


def test_case_names_are_unique_and_say_what_they_guard() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.guards and case.needs for case in CASES)


@pytest.mark.parametrize("case", [case for case in CASES if case.multipliers is not None], ids=lambda case: case.name)
def test_the_known_answers_agree_with_each_other(case: Case) -> None:
    """Weak duality closes at the stated multipliers: the cases are right without any solver."""
    program, y = case.program, case.multipliers
    assert y is not None
    side = np.where(y > 0, program.row_lower, np.where(y < 0, program.row_upper, 0.0))
    reduced = program.cost - program.rows.T @ y
    terms = np.zeros(reduced.size)
    for j, (slope, weight, low, high) in enumerate(
        zip(reduced, program.entropy, program.lower, program.upper, strict=True)
    ):
        if weight > 0:
            terms[j] = 0.0 if high == 0 else -weight * np.exp(-slope / weight - 1.0)
        elif abs(slope) > 1e-9:
            terms[j] = slope * (low if slope > 0 else high)
    assert y @ side + terms.sum() == pytest.approx(case.objective, rel=1e-12, abs=1e-9)


class Scripted:
    """HiGHS with one mistake."""

    name: ClassVar[str] = "scripted"
    requires: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, mistake: Callable[[Claim], Claim]) -> None:
        self.mistake = mistake

    def availability(self) -> Availability:
        return Availability(True, "")

    def supports(self, program: Program) -> Support:
        return get_backend("highs").supports(program)

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        claim = get_backend("highs").solve(program, {})
        return self.mistake(replace(claim, backend=self.name))


def _optimal_case(name: str = "at-least") -> Case:
    return next(case for case in CASES if case.name == name)


MISTAKES: dict[str, tuple[str, Callable[[Claim], Claim], str]] = {
    "sign": ("at-least", lambda claim: replace(claim, y=-claim.y), "wrong sign"),
    "sign of one side": ("two-sided-both", lambda claim: replace(claim, y=np.abs(claim.y)), "wrong sign"),
    "no sign at all": ("degenerate", lambda claim: replace(claim, y=-claim.y), "a side that rows"),
    "size of y": ("at-most", lambda claim: replace(claim, y=2 * claim.y), "right is [-2.0, -1.0]"),
    "status": ("at-least", lambda claim: replace(claim, status=Claimed.INACCURATE), "status inaccurate"),
    "false infeasible": ("no-cost", lambda claim: replace(claim, status=Claimed.INFEASIBLE), "status infeasible"),
    "false optimal": ("infeasible-rows", lambda claim: replace(claim, status=Claimed.OPTIMAL), "status optimal"),
    "nan in x": ("at-least", lambda claim: replace(claim, x=claim.x * np.nan), "not finite"),
    "nan in y": ("at-least", lambda claim: replace(claim, y=claim.y * np.nan), "not finite"),
    "nan objective": ("at-least", lambda claim: replace(claim, objective=float("nan")), "claimed objective"),
    "no y": ("at-least", lambda claim: replace(claim, y=np.zeros(0)), "y has shape (0,)"),
    "no x": ("at-least", lambda claim: replace(claim, x=np.zeros(0)), "x has shape (0,)"),
    "x off by 1e-5": ("equality-positive", lambda claim: replace(claim, x=claim.x - 1e-4), "violates"),
    "objective": ("at-least", lambda claim: replace(claim, objective=claim.objective + 1e-3), "claimed objective"),
    "negative x": ("no-cost", lambda claim: replace(claim, x=np.array([1.001, -0.001])), "violates"),
    "fraction": ("integer", lambda claim: replace(claim, x=np.array([3.2, 1.0])), "integer column"),
    "no words": ("at-least", lambda claim: replace(claim, message=""), "must not be empty"),
    "other name": ("at-least", lambda claim: replace(claim, backend="highs"), "says backend 'highs'"),
    "unpicklable": ("at-least", lambda claim: replace(claim, message=lambda: "x"), "pickled"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_rejects(mistake: str) -> None:
    name, change, complaint = MISTAKES[mistake]
    result = run_case(Scripted(change), _optimal_case(name))
    assert result.outcome is Outcome.FAILED
    assert complaint in result.reason


def test_the_suite_accepts_the_unchanged_claim() -> None:
    assert run_case(Scripted(lambda claim: claim), _optimal_case()).outcome is Outcome.PASSED


def test_the_suite_rejects_an_exception_and_goes_on() -> None:
    def fail(claim: Claim) -> Claim:
        raise ZeroDivisionError("by design")

    results = run_conformance(Scripted(fail), cases=CASES[:3])
    assert [result.outcome for result in results] == [Outcome.FAILED] * 5  # and an early end, and an option
    assert "ZeroDivisionError: by design" in results[0].reason


def test_the_suite_rejects_an_ignored_option() -> None:
    last = run_conformance(Scripted(lambda claim: claim), cases=())[-1]
    assert last.outcome is Outcome.FAILED
    assert "ignored" in last.reason


def test_the_suite_rejects_a_changed_program() -> None:
    case = _optimal_case("tiny-coefficient")
    kept = case.program.cost.copy()

    def spoil(claim: Claim) -> Claim:
        case.program.cost[0] += 1.0
        return claim

    result = run_case(Scripted(spoil), case)
    case.program.cost[:] = kept
    assert "changed the program" in result.reason


def test_unavailable_is_reported_by_name() -> None:
    backend = Scripted(lambda claim: claim)
    backend.availability = lambda: Availability(False, "no licence")  # type: ignore[method-assign]
    results = run_conformance(backend, cases=CASES[:2])
    assert {result.outcome for result in results} == {Outcome.UNAVAILABLE}
    assert str(results[0]) == "scripted: at-least: unavailable (no licence)"


def test_check_claim_lists_everything_wrong() -> None:
    case = _optimal_case()
    claim = get_backend("highs").solve(case.program, {})
    complaints = check_claim(case, replace(claim, y=-claim.y, objective=0.0, message=""))
    assert len(complaints) >= 3
