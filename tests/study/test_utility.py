"""What noise does to an input, and the optimum beside its relaxation."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.study.utility import optimum_beside_relaxation, relaxation_problems, utility

REFERENCE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "values" / "reference.json").read_text(encoding="utf-8")
)


def law(table: dict[str, Any]) -> dp.Distribution:
    return getattr(dp, table["type"])(**{key: value for key, value in table.items() if key != "type"})


finite = st.builds(
    lambda start, weights: dp.Pmf(start, weights),
    st.integers(-5, 5),
    st.lists(st.integers(0, 6), min_size=1, max_size=7).filter(any),
)


@settings(max_examples=60, deadline=None)
@given(noise=finite, given_input=finite)
def test_utility_is_its_definition(noise: dp.Pmf, given_input: dp.Pmf) -> None:
    """W1 as the sum of |F - G|, the moments as sums; |E Z| <= W1 <= E|Z|."""
    found = utility(noise, given_input)
    output = given_input.convolve(noise)
    here = there = distance = Fraction(0)
    for k in range(-30, 31):
        here, there = here + given_input.probability(k), there + output.probability(k)
        distance += abs(here - there)
    assert found.wasserstein.lower <= distance <= found.wasserstein.upper
    assert found.wasserstein.width <= Fraction(1, 1 << 120)
    masses = {k: noise.probability(k) for k in range(noise.start, noise.end + 1)}
    assert found.mean_absolute == sum(abs(k) * p for k, p in masses.items())
    assert found.mean == sum(k * p for k, p in masses.items())
    assert found.variance == sum((k - found.mean) ** 2 * p for k, p in masses.items())
    assert abs(found.mean) <= distance <= found.mean_absolute


def test_utility_of_noise_on_a_finer_lattice() -> None:
    """In data units: half a step of noise costs half as much."""
    found = utility(dp.Pmf(-1, (1, 2, 1), step=Fraction(1, 2)), dp.point(3))
    assert found.wasserstein.upper == found.mean_absolute == Fraction(1, 4)
    assert found.variance == Fraction(1, 8)
    assert str(found) == "W1 0.25, E|Z| 0.25, mean 0, variance 0.125"


def test_utility_takes_whatever_has_a_pmf() -> None:
    solution = dp.solve(dp.wasserstein(input=dp.poisson(3), epsilon=1, sensitivity=2))
    found = utility(solution, dp.poisson(3))
    assert found == utility(solution.pmf, dp.poisson(3).pmf)
    assert abs(float(found.wasserstein) - float(solution.value)) <= 1e-15


@pytest.mark.parametrize(
    ("noise", "given_input", "message"),
    [
        ([1, 2], dp.point(0), "noise: must be a Pmf or have one as its attribute 'pmf', not list"),
        (dp.point(0), "poisson", "input: must be a distribution"),
        (dp.point(0), dp.Pmf(0, (1,), tails=dp.Tails(1, right="1/2")), "input: must be finite and on the integers"),
        (dp.Pmf(0, (1, 1), step=2), dp.point(0), "the step 2 must be 1/n"),
    ],
)
def test_bad_arguments(noise: Any, given_input: Any, message: str) -> None:
    with pytest.raises(dp.InputError, match=message):
        utility(noise, given_input)


WIDE = [r for r in REFERENCE["wasserstein"] if (r["input"].get("sd"), r.get("figure")) == ("5", 8)]


@pytest.mark.parametrize("row", WIDE, ids=lambda row: f"epsilon={row['epsilon']}")
def test_optimum_and_relaxation_have_the_reference_values(row: dict[str, Any]) -> None:
    """On all integers: W1 of P1's and of P2's noise; on windows: below them, and no epsilon of their own."""
    figure = optimum_beside_relaxation(
        law(row["input"]), epsilon=row["epsilon"], sensitivity=row["sensitivity"], half_width=30
    )
    rows = {cells[0]: dict(zip(figure.columns, cells, strict=True)) for cells in figure.rows}
    optimum, relaxed, window = rows["P1"], rows["P2"], rows["P1, window"]
    assert abs(optimum["W1"] - float(row["w1_optimal"])) <= 2e-9
    assert abs(relaxed["W1"] - float(row["w1_staircase_min_abs"])) <= 2e-9
    for found in rows.values():
        assert abs(found["mean"]) - 1e-12 <= found["W1"] <= found["E|Z|"] + 1e-12
        assert (found["epsilon"] is None) == ("window" in found["program"])
        assert (found["delta at epsilon"] == 0) == ("window" not in found["program"])
    for found in (optimum, relaxed):
        assert found["epsilon"] == pytest.approx(float(row["epsilon"]), rel=1e-12)
    assert optimum["objective"] == optimum["W1"] and relaxed["objective"] == relaxed["E|Z|"]
    assert relaxed["E|Z|"] <= optimum["E|Z|"] + 1e-9
    assert window["W1"] < optimum["W1"]
    assert rows["P2, window, cuts in it"]["objective"] <= rows["P2, window"]["objective"] + 1e-9


def test_the_window_of_the_reference() -> None:
    """D = 30, epsilon = 2: all three window programs find noise with the end mass of the reference."""
    (row,) = [r for r in REFERENCE["wasserstein"] if r.get("D") == 30]
    figure = optimum_beside_relaxation(epsilon=2)
    rows = {cells[0]: dict(zip(figure.columns, cells, strict=True)) for cells in figure.rows}
    cut = rows["P2, window, cuts in it"]
    assert abs(cut["objective"] - float(row["objective"])) <= 2e-9
    assert abs(cut["W1"] - float(row["w1_of_that_noise"])) <= 2e-9
    assert abs(cut["E|Z|"] - float(row["mean_absolute"])) <= 2e-9
    assert cut["delta at epsilon"] == pytest.approx(float(row["mass_of_outermost_m_points_per_side"]), rel=2e-6)
    assert "input gaussian(0, 5), epsilon = 2, sensitivity 15" in figure.title


def test_the_relaxation_on_all_integers_does_not_know_its_input() -> None:
    """P2 of two inputs has the same cost, P1 has not."""
    narrow, wide = (
        relaxation_problems(given_input, epsilon=3, sensitivity=5, half_width=10)
        for given_input in (dp.point(0), dp.gaussian(0, 5))
    )
    costs = [[problem.objective_term.cost for problem in problems] for problems in (narrow, wide)]
    assert costs[0][1] == costs[1][1] and costs[0][3] == costs[1][3]
    assert costs[0][4] != costs[1][4]
    values = [float(dp.solve(problems[0]).value) for problems in (narrow, wide)]
    assert values[1] < 0.6 * values[0]
