"""Where a solver's digits end, the closed form takes over: more epsilon never costs more, and all stays proved."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpopt as dp


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
