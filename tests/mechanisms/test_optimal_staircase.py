"""The closed forms of the optimal staircase against reference values, sums over its pmf, and each r in turn."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.distributions import optimal_staircase
from dpopt.errors import InputError
from dpopt.mechanisms.optimal import best_r, staircase_moment

from .reference_values import REFERENCE, is_to_the_digits

bounded = settings(derandomize=True, max_examples=60, deadline=None)
epsilons = st.fractions(min_value=Fraction(1, 20), max_value=9, max_denominator=20)
OPTIMA = [row for row in REFERENCE["staircase"] if row["kind"] == "optimum"]


@pytest.mark.parametrize("row", OPTIMA, ids=lambda row: f"{row['epsilon']}-{row['sensitivity']}")
def test_best_r_and_its_cost(row: dict[str, Any]) -> None:
    """Group `staircase`, to the digits printed; the ideal moment and the exact one of the pmf."""
    epsilon, m = row["epsilon"], row["sensitivity"]
    for cost, power in (("absolute", 1), ("square", 2)):
        r = best_r(epsilon, m, cost=cost)
        assert r == row[f"r_{cost}"]
        low, high = staircase_moment(epsilon, m, r, cost=cost)
        assert low <= high <= low * (1 + Fraction(1, 2**90))
        assert is_to_the_digits(low, row[f"mean_{cost}"])
        assert is_to_the_digits(optimal_staircase(epsilon, m, r).pmf.absolute_moment(power), row[f"mean_{cost}"])


@pytest.mark.parametrize("row", [row for row in REFERENCE["staircase"] if row["kind"] == "by_r"], ids=lambda r: r["r"])
def test_cost_of_a_given_r(row: dict[str, Any]) -> None:
    assert is_to_the_digits(staircase_moment(row["epsilon"], row["sensitivity"], row["r"]).lower, row["mean_absolute"])


@given(epsilons, st.integers(1, 30), st.sampled_from([("absolute", 1), ("square", 2)]), st.data())
@bounded
def test_moments_are_sums_over_the_pmf(epsilon: Fraction, m: int, cost: tuple[str, int], data: st.DataObject) -> None:
    """Any r, any step: closed form in e^epsilon against the exact sum over the rational pmf."""
    r, step = data.draw(st.integers(1, m)), data.draw(st.sampled_from(["1", "1/2", "3"]))
    moved = m * Fraction(step)
    found = optimal_staircase(epsilon, moved, r, step=step).pmf.absolute_moment(cost[1])
    low, high = staircase_moment(epsilon, moved, r, step=step, cost=cost[0])
    assert low * (1 - Fraction(1, 2**85)) <= found <= high * (1 + Fraction(1, 2**85))


@given(epsilons, st.integers(1, 30), st.sampled_from([("absolute", 1), ("square", 2)]))
@bounded
def test_best_r_is_the_best_of_all(epsilon: Fraction, m: int, cost: tuple[str, int]) -> None:
    """By the exact moments of every r's pmf: they fall up to the best and rise from there."""
    costs = [optimal_staircase(epsilon, m, r).pmf.absolute_moment(cost[1]) for r in range(1, m + 1)]
    best = best_r(epsilon, m, cost=cost[0])
    assert costs[:best] == sorted(costs[:best], reverse=True)
    assert costs[best - 1 :] == sorted(costs[best - 1 :])


@given(epsilons, st.integers(1, 400))
@bounded
def test_best_r_is_next_to_the_stationary_point(epsilon: Fraction, m: int) -> None:
    """The floor or ceiling of r* = 1/2 + sqrt(Q) - m b/c, clipped to 1..m; and E|Z| >= sqrt(Q) for every r."""
    with localcontext() as context:
        context.prec = 60
        b = (-Decimal(epsilon.numerator) / epsilon.denominator).exp()
        Q = m * m * b / (1 - b) ** 2 - Decimal("0.25")  # noqa: N806
        best = best_r(epsilon, m)
        if Q <= 0:
            assert best == 1
            return
        stationary = Decimal("0.5") + Q.sqrt() - m * b / (1 - b)
        assert best in {min(max(side, 1), m) for side in (floor(stationary), ceil(stationary))}
        assert staircase_moment(epsilon, m, best).upper >= Fraction(Q.sqrt()) * (1 - Fraction(1, 10**50))


def test_far_parameters() -> None:
    """Small and large epsilon and a million steps: at once, with all digits that the closed form has."""
    assert best_r(2, 10**6) == 268942  # floor(10^6 / (1 + e)) + 1
    assert best_r(700, 3) == best_r(700, 3, cost="square") == 1
    assert float(staircase_moment("1e-140", 3, 2).lower) == pytest.approx(3e140, rel=1e-12)
    assert float(staircase_moment(700, 1, 1).lower) == pytest.approx(2 * 9.8596765437597708567e-305, rel=1e-12)


@pytest.mark.parametrize(("ask", "message"), [
    (lambda: best_r(0, 3), "epsilon: must be positive, not 0"),
    (lambda: best_r(701, 3), "epsilon: must be at most 700"),
    (lambda: best_r(1, 3, step=0), "step: must be positive, not 0"),
    (lambda: best_r(1, "1/2"), "sensitivity: must be at least the lattice step 1"),
    (lambda: best_r(1, 3, cost="cube"), "cost: must be one of absolute, square, not 'cube'"),
    (lambda: staircase_moment(1, 3, 0), "r: must be at least 1, not 0"),
    (lambda: staircase_moment(1, 3, 4), "r: must be at most the sensitivity in steps, 3, not 4"),
])  # fmt: skip
def test_what_is_wrong_is_said(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ask()
    assert str(caught.value).startswith(message)
