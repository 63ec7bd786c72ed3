"""Random problems: a proved answer, an honest failure or a clear error, and nothing else.

Backends are compared with each other by their proved intervals, and on finite supports with a second method.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings

import dpopt as dp

from .dense import Dense
from .drawing import BOUNDED, finite_problems, infinite_problems

PROVED = (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)
LP_BACKENDS = ("highs", "scipy", "pulp", "cvxpy")
ENTROPY_BACKENDS = ("newton", "cvxpy")


def proved_interval(solution: dp.Solution) -> tuple[Fraction | float, Fraction | float]:
    """Where the optimum lies, by what this solution proves."""
    open_end = math.inf if solution.problem.objective.type == "max-entropy" else -math.inf
    bound = open_end if solution.bound is None else solution.bound
    if solution.problem.objective.type == "max-entropy":
        return solution.value.lower, bound
    return bound, solution.value.upper


def answers(table: dict[str, Any], backends: tuple[str, ...]) -> dict[str, dp.Solution]:
    """Every backend's solution, after the checks that hold for each alone."""
    problem = dp.Problem.from_dict(table)
    found = {}
    for backend in backends:
        solution = found[backend] = dp.solve(problem, backend)
        if solution.verified in PROVED:
            assert all(check.holds for check in problem.check(solution.pmf))
            assert solution.value.lower <= solution.value.upper
            low, high = proved_interval(solution)
            assert low <= high
        elif solution.verified is dp.Verified.FAILED:
            assert solution.message.strip()
        else:
            assert solution.conflict or not problem.constraints
            assert set(solution.conflict) <= set(problem.constraint_names)
    return found


def assert_agreement(found: dict[str, dp.Solution]) -> None:
    """No backend's proof contradicts another's."""
    verdicts = {name: s.verified for name, s in found.items()}
    if dp.Verified.INFEASIBLE in verdicts.values():
        assert not any(v in PROVED for v in verdicts.values()), verdicts
        return
    intervals = {name: proved_interval(s) for name, s in found.items() if s.verified in PROVED}
    if intervals:
        assert max(low for low, _ in intervals.values()) <= min(high for _, high in intervals.values()), {
            name: (float(low), float(high)) for name, (low, high) in intervals.items()
        }


def assert_second_method(table: dict[str, Any], found: dict[str, dp.Solution]) -> None:
    """Proved values and proved infeasibility agree with the dense program (to its solver's tolerance)."""
    verdict, value = Dense(table).solve()
    entropy = table["objective"]["type"] == "max-entropy"
    for name, solution in found.items():
        if solution.verified is dp.Verified.INFEASIBLE:
            assert verdict == "infeasible", (name, value)
        elif solution.verified in PROVED and verdict == "optimal" and not entropy:
            low, high = proved_interval(solution)
            allowed = 1e-5 * (1 + abs(value))
            assert float(low) - allowed <= value <= float(high) + allowed, (name, float(low), value, float(high))


def run(strategy: Any, examples: int) -> Counter[str]:
    """Check the properties on random problems; how often each verdict came up."""
    seen: Counter[str] = Counter()

    @settings(BOUNDED, max_examples=examples)
    @given(strategy)
    def properties(table: dict[str, Any]) -> None:
        try:
            problem = dp.Problem.from_dict(table)
        except dp.InputError as error:
            assert "\n" not in str(error)
            seen["refused"] += 1
            return
        backends = ENTROPY_BACKENDS if problem.objective.type == "max-entropy" else LP_BACKENDS
        try:
            found = answers(table, ("auto", *backends))
        except dp.BackendError as error:
            assert "newton" in str(error), "only newton may refuse a program"
            found = answers(table, ("auto", "cvxpy"))
        assert_agreement(found)
        if "support" in table:
            assert_second_method(table, found)
        seen[found["auto"].verified.value] += 1

    properties()
    return seen


def assert_answered(seen: Counter[str]) -> None:
    """The properties are not met by failing: nearly all random problems that are accepted are answered by `auto`."""
    accepted = sum(n for verdict, n in seen.items() if verdict != "refused")
    assert accepted >= 30, seen
    assert seen["optimal"] + seen["infeasible"] >= 0.9 * accepted, seen
    assert seen["optimal"] >= 10, seen


@pytest.mark.slow
def test_finite_supports() -> None:
    """Finite supports: proofs of all backends and the second method agree, nothing else than our errors is raised."""
    seen = run(finite_problems(), 120)
    assert_answered(seen)
    assert seen["infeasible"] >= 3


@pytest.mark.slow
def test_all_integers() -> None:
    """All integers: proofs of all backends agree, nothing else than our errors is raised."""
    assert_answered(run(infinite_problems(), 60))
