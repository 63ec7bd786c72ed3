"""Conflicts: proved, named, irreducible, and never claimed where a longer core would find a pmf."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt as dp
from dpopt.backends.highs import Highs
from dpopt.backends.registry import get_backend
from dpopt.program.core import Core
from dpopt.program.formulate import core_for, formulate
from dpopt.proof.infeasible import conflicts, strictly_feasible

ABSOLUTE = dp.MinExpectedCost("absolute")
INFEASIBLE = dp.Verified.INFEASIBLE
PROVED = (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)


def question(*constraints: dp.Constraint, support: Any = None, objective: dp.Objective = ABSOLUTE) -> dp.Problem:
    """A problem on a support, or on all integers."""
    return dp.Problem(support=support, objective=objective, constraints=constraints)


def window(half: int) -> dp.Integers:
    """[-half, half]."""
    return dp.Integers(-half, half)


CASES: dict[str, tuple[dp.Problem, set[str]]] = {
    # E Z^2 <= 1 leaves P(|Z| >= 3) at most 1/9 (Markov)
    "markov": (
        question(
            dp.Mean(0),
            dp.SecondMoment(at_most=1),
            dp.Probability(of={"from": 3}, at_least="1/8"),
            dp.Unimodal(),
            support=window(5),
        ),
        {"second-moment", "probability"},
    ),
    "mean outside": (question(dp.SecondMoment(at_most=40), dp.Mean(at_least=5), support=window(4)), {"mean"}),
    "two means": (question(dp.Mean(at_most=-1), dp.Symmetric(), dp.Mean(at_least="-0.9"), support=window(4)), None),
    "symmetric and a mean": (
        question(dp.PureDP(1, 1, boundary="window"), dp.Mean("1/2"), dp.Symmetric(), support=window(4)),
        {"mean", "symmetric"},
    ),
    # unimodal at 0 with p(3) >= 0.2 has p(0) + ... + p(3) >= 0.8, so the left half has at most 0.2
    "shape": (
        question(
            dp.Probability(of=[3], at_least="0.2"),
            dp.Unimodal(),
            dp.Probability(of={"to": -1}, at_least="1/4"),
            dp.Mean(at_most=9),
            support=window(4),
        ),
        {"probability 1", "unimodal", "probability 2"},
    ),
    # p(0) >= 0.9 and p(1) >= e^-0.1 p(0) is more than 1
    "private and spiky": (
        question(
            dp.Probability(of=[0], at_least="0.9"),
            dp.PureDP("0.1", 1, boundary="window"),
            dp.Forbidden([4]),
            support=window(3),
        ),
        {"probability", "pure-dp"},
    ),
    # the least delta of any pmf on [-2, 2] at epsilon 1 is 0.06745
    "delta too small": (question(dp.ApproxDP(1, "0.06"), dp.Mean(0), support=window(2)), {"approx-dp"}),
    "delta and variance": (
        question(dp.ApproxDP(1, "0.01"), dp.Mean(0), dp.SecondMoment(at_most=1), support=window(8)),
        {"approx-dp", "second-moment"},
    ),
    "all forbidden": (question(dp.Mean(at_least=-1), dp.Forbidden([-1, 0, 1]), support=window(1)), {"forbidden"}),
    # on [-1, 1] without 0: mean 0 and p(1) >= 0.6
    "hole": (
        question(dp.Mean(0), dp.Forbidden([0]), dp.Probability(of=[1], at_least="0.6"), support=window(1)),
        {"mean", "probability"},
    ),
    "halves": (
        question(dp.Mean("1/4"), dp.Probability(of=["1/2", 1], at_most="0.1"), support=dp.Lattice("1/2", -1, 1)),
        {"mean", "probability"},
    ),
    # all integers: E|Z| >= 4.786 at epsilon 1, sensitivity 5
    "too cheap": (
        question(dp.Mean(0), dp.PureDP(1, 5), dp.Expectation(of="absolute", at_most="4.78")),
        {"pure-dp", "expectation"},
    ),
    # p(0) <= tanh(1/2) = 0.462 at epsilon 1, sensitivity 1
    "too spiky": (question(dp.PureDP(1, 1), dp.Probability(of=[0], at_least="0.47")), {"pure-dp", "probability"}),
    "two privacies": (
        question(dp.PureDP(1, 2), dp.PureDP(3, 1), dp.Expectation(of="absolute", at_most="1.8")),
        {"pure-dp 1", "expectation"},
    ),
    "approximate on all integers": (
        question(dp.ApproxDP(1, "0.01"), dp.Expectation(of="absolute", at_most="0.79"), dp.Mean(0)),
        {"approx-dp", "expectation"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_conflicts_are_proved_and_named(name: str) -> None:
    """Infeasible with exactly the constraints that a hand argument names, in the message and in the certificate."""
    problem, wanted = CASES[name]
    solution = dp.solve(problem)
    assert solution.verified is INFEASIBLE, solution.message
    if wanted is not None:
        assert set(solution.conflict) == wanted
    assert all(f"'{part}'" in solution.message for part in solution.conflict)
    assert dp.verify(solution.certificate.data).verified == "infeasible"
    with pytest.raises(dp.NotVerifiedError, match="no proved pmf"):
        _ = solution.pmf


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_conflicts_are_irreducible(name: str) -> None:
    """The conflict alone is infeasible; without any one of its constraints a pmf is found and proved."""
    problem, _ = CASES[name]
    conflict = dp.solve(problem).conflict
    kept = [c for c, label in zip(problem.constraints, problem.constraint_names, strict=True) if label in conflict]

    def rest(parts: list[dp.Constraint]) -> dp.Problem:
        return dp.Problem(support=problem.support, objective=problem.objective, constraints=parts)

    assert dp.solve(rest(kept)).verified is INFEASIBLE
    for i in range(len(kept)):
        solution = dp.solve(rest(kept[:i] + kept[i + 1 :]))
        assert solution.verified in PROVED, (conflict, i, solution.message)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["highs", "scipy", "pulp", "cvxpy"])
@pytest.mark.parametrize("name", ["markov", "private and spiky", "delta and variance", "too cheap"])
def test_every_linear_backend_proves_them(name: str, backend: str) -> None:
    """Whatever the solver says about feasibility, its phase-1 multipliers are proof enough."""
    solution = dp.solve(CASES[name][0], backend)
    assert solution.verified is INFEASIBLE, solution.message
    assert set(solution.conflict) == CASES[name][1]


def test_entropy_problems_are_refuted_by_a_linear_backend() -> None:
    """The chosen backend for an entropy may take no linear program: the proof comes all the same."""
    problem = question(dp.Mean(0), dp.Variance("4.01"), support=window(2), objective=dp.MaxEntropy())
    for backend in ("auto", "newton", "cvxpy"):
        solution = dp.solve(problem, backend)
        assert solution.verified is INFEASIBLE
        assert set(solution.conflict) == {"mean", "variance"}  # a variance is centred at the mean that is fixed


def test_a_variance_brings_the_mean_that_it_is_centred_at() -> None:
    """By `mean` or by `symmetric`; and both leave a conflict that needs neither."""
    for centre in (dp.Mean(0), dp.Symmetric()):
        solution = dp.solve(question(centre, dp.Variance(at_least=5), support=window(2)))
        assert solution.verified is INFEASIBLE
        assert set(solution.conflict) == {centre.type, "variance"}
    other = dp.Probability(of=[0], at_least="9/10")
    solution = dp.solve(
        question(dp.Mean(0), dp.Variance(at_most=3), dp.PureDP(1, boundary="window"), other, support=window(2))
    )
    assert set(solution.conflict) == {"pure-dp", "probability"}


def test_the_time_limit_holds_in_the_search_for_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of the solver gets what is left of the call's time, whatever it is for, and its seconds are booked."""
    given: list[float] = []
    asked = Highs.solve
    monkeypatch.setattr(Highs, "solve", lambda *a: given.append(a[2]["time_limit"]) or asked(*a))
    solution = dp.solve(CASES["markov"][0], "highs", options={"time_limit": 50.0})
    assert solution.verified is INFEASIBLE
    assert len(given) > 3 and given[0] < 50 and all(x > y > 0 for x, y in zip(given, given[1:], strict=False))
    assert solution.timings["bound"] > 0


# --- what only looks infeasible --------------------------------------------------------------------------------------


def least_absolute(mean: float, m: int, epsilon: float, low: int, high: int) -> float:
    """Least E|Z| with this mean and pure DP inside a long window: scipy, in units that decay like the optimum."""
    k = np.arange(low, high + 1)
    scale = np.exp(-epsilon * np.abs(k - mean) / m)
    pairs = [(i, j) for i in range(k.size) for j in range(max(i - m, 0), min(i + m, k.size - 1) + 1) if i != j]
    rows = np.zeros((len(pairs), k.size))
    for n, (i, j) in enumerate(pairs):
        rows[n, i], rows[n, j] = 1, -math.exp(epsilon) * scale[j] / scale[i]
    equal = np.vstack([scale, scale * k])
    found = linprog(np.abs(k) * scale, A_ub=rows, b_ub=np.zeros(len(pairs)), A_eq=equal, b_eq=[1, mean], method="highs")
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize(("mean", "m", "epsilon"), [(10, 5, 1), (-10, 5, 1), (30, 2, 2), ("7/2", 3, "1/2")])
def test_a_mean_far_from_zero_is_feasible(mean: Any, m: int, epsilon: Any) -> None:
    """Mean 10 at sensitivity 5 needs a core beyond 9 (10.647753 by the theory): solved, not called infeasible."""
    solution = dp.solve(question(dp.PureDP(epsilon, m), dp.Mean(mean)))
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    centre, e = float(Fraction(mean)), float(Fraction(epsilon))
    reach = int(20 * m / e)
    wide = least_absolute(centre, m, e, min(0, round(centre)) - reach, max(0, round(centre)) + reach)
    assert float(solution.value) == pytest.approx(wide, rel=1e-6)
    if (mean, m) == (10, 5):
        assert float(solution.value) == pytest.approx(10.647753, abs=5e-7)


@pytest.mark.parametrize("half", [5, 7, 9])
def test_a_small_core_proves_nothing(half: int) -> None:
    """On a core of [-9, 9] the program with mean 10 is infeasible, but no multipliers of it refute the problem."""
    problem = question(dp.PureDP(1, 5), dp.Mean(10))
    form = formulate(problem, Core(-half, half, core_for(problem).closure))
    assert list(conflicts(form, get_backend("highs"))) == []


def test_a_core_that_misses_an_event_proves_nothing() -> None:
    """P(Z >= 50) >= 0.4 on a core that ends at 10 with closure: not refuted."""
    problem = question(dp.PureDP(1, 5), dp.Expectation(of={"polynomial": [0, 1]}, at_least=45, at_most=46))
    form = formulate(problem, Core(-10, 10, core_for(problem).closure))
    assert list(conflicts(form, get_backend("highs"))) == []
    assert dp.solve(problem).verified is not INFEASIBLE


@pytest.mark.parametrize("parts", [
    (dp.Mean(0), dp.SecondMoment("2")), (dp.PureDP(1, 1, boundary="window"), dp.Mean(0)), (dp.ApproxDP(1, "0.0675"),),
    (dp.Mean(2),), (dp.Symmetric(), dp.Unimodal(), dp.Probability(of=[0], equals="1/5")),
    (dp.Forbidden([-2, -1, 1, 2]),),
])  # fmt: skip
def test_feasible_problems_have_no_conflict(parts: tuple[dp.Constraint, ...]) -> None:
    """Also where only a boundary pmf is left."""
    form = formulate(question(*parts, support=window(2)), Core(-2, 2))
    assert list(conflicts(form, get_backend("highs"))) == []


# --- strictly feasible points ----------------------------------------------------------------------------------------


def test_a_strictly_feasible_point_has_room() -> None:
    """Every inequality with room, every equality nearly met."""
    problem = question(
        dp.Mean(0),
        dp.PureDP(1, 2, boundary="window"),
        dp.SecondMoment(at_most=9),
        dp.ApproxDP("0.5", "0.4"),
        support=window(6),
    )
    form = formulate(problem, core_for(problem))
    p = strictly_feasible(form, get_backend("highs"))
    assert p is not None
    k = form.core.indices
    assert p.sum() == pytest.approx(1) and p @ k == pytest.approx(0, abs=1e-6)
    assert p @ k**2 < 9 - 1e-4
    for s in (1, 2):
        assert np.max(np.maximum(p[s:] / p[:-s], p[:-s] / p[s:])) < math.exp(1) - 1e-4
    moved = np.concatenate([[0], p]), np.concatenate([p, [0]])
    assert np.maximum(moved[0] - math.exp(0.5) * moved[1], 0).sum() < 0.4 - 1e-4


def test_no_strictly_feasible_point() -> None:
    """E Z^2 >= D^2 leaves two points only: nothing has room."""
    problem = question(dp.SecondMoment(at_least=4), dp.Mean(0), support=window(2))
    assert strictly_feasible(formulate(problem, core_for(problem)), get_backend("highs")) is None
