"""Where a solver's digits end, the closed form takes over: more epsilon never costs more, and all stays proved."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpopt as dp


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [20, 30, 40, 50, 100])
def test_large_epsilons_cost_what_the_staircase_costs(epsilon: int) -> None:
    """At epsilon = 50 the repaired pmf of a float solver costs 1e10 times as much as the best staircase."""
    problem = dp.wasserstein(input=dp.poisson(10), epsilon=epsilon, sensitivity=3)
    solution = dp.solve(problem)
    best = min(problem.objective_term.value(dp.optimal_staircase(epsilon, 3, r).pmf).upper for r in (1, 2, 3))
    assert solution.value.upper <= best
    assert all(check.holds for check in solution.checks)
    assert dp.verify(solution.certificate.data).holds
    assert dp.least_epsilon(solution.pmf, 3).epsilon.upper <= epsilon + Fraction(1, 10**15)


def test_it_stays_away_where_it_does_not_belong() -> None:
    """Other constraints, a window, an optimal answer: the solver's own pmf."""
    bounded = dp.Problem(
        objective=dp.MinExpectedCost("absolute"), constraints=[dp.PureDP(12, 1), dp.Mean(at_least="1/10")]
    )
    found = dp.solve(bounded)
    assert "closed form" not in found.message
    assert found.verified in (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)
    assert found.pmf.mean >= Fraction(1, 10)
    assert dp.solve(dp.wasserstein(input=dp.poisson(10), epsilon=2, sensitivity=3)).message == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("input_law", "epsilon", "m"),
    [
        (dp.gaussian(0, 5), 2, 45),
        (dp.poisson(3), 1, 41),
        (dp.table(0, [5, 0, 0, 0, 0, 1, 0, 7]), "1/2", 40),  # its optimum is no staircase of the kind
        (dp.table(-9, [1] + [0] * 11 + [4, 2]), 4, 44),
    ],
)
def test_the_tight_rows_alone_give_the_same_optimum(
    input_law: dp.Distribution, epsilon: object, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At large sensitivities: proved optimal either way, at the same value."""
    problem = dp.wasserstein(input=input_law, epsilon=epsilon, sensitivity=m)
    quick = dp.solve(problem)
    assert dp.verify(quick.certificate.data).verified == "optimal"
    monkeypatch.setattr("dpopt.solving.slow_without_staircase", lambda problem: False)
    whole = dp.solve(problem)
    assert quick.verified is whole.verified is dp.Verified.OPTIMAL
    assert float(quick.value) == pytest.approx(float(whole.value), rel=1e-8)
    assert quick.bound <= whole.value.upper and whole.bound <= quick.value.upper


@pytest.mark.parametrize("backend", ["scipy", "cvxpy"])
def test_other_backends_take_the_tight_rows_as_well(backend: str) -> None:
    found = dp.solve(dp.wasserstein(input=dp.poisson(3), epsilon=1, sensitivity=41), backend)
    assert found.verified is dp.Verified.OPTIMAL and found.backend == backend


@pytest.mark.slow
def test_expected_costs_at_large_sensitivities() -> None:
    """E|Z| and E Z^2 at 150 lattice points, against the closed forms."""
    for cost in ("absolute", "square"):
        found = dp.solve(dp.Problem(objective=dp.MinExpectedCost(cost), constraints=[dp.PureDP(1, 150)]))
        wanted = dp.staircase_moment(1, 150, dp.best_r(1, 150, cost=cost), cost=cost)
        assert found.verified is dp.Verified.OPTIMAL
        assert float(found.value) == pytest.approx(float(wanted), rel=1e-9)
