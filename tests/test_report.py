"""The summary and the JSON object of a solution."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt as dp
from dpopt.report import histogram, solution_json, summary
from dpopt.text import decimal_text


def lines_of(solution: dp.Solution) -> dict[str, str]:
    """The labelled lines of a summary, the first of each label."""
    found: dict[str, str] = {}
    for line in summary(solution).split("\n\n")[0].splitlines()[1:]:
        label, text = line[2:16].strip(), line[17:]
        if label:
            found.setdefault(label, text)
    return found


@given(st.fractions(), st.integers(1, 30))
def test_rounding_goes_the_way_it_says(number: Fraction, digits: int) -> None:
    up, down = (Fraction(decimal_text(number, digits, up=way)) for way in (True, False))
    assert down <= number <= up
    assert up - down <= abs(number) * Fraction(10) ** (1 - digits) * 10
    assert Fraction(decimal_text(number, digits, up=None)) in (up, down)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(4), "4"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(10) ** 20, "1e20"),
        (Fraction(1, 3 * 10**400), "3.33e-401"),
        (Fraction(2**20000), "3.98e6020"),  # longer than what Python prints as an integer
    ],
)
def test_decimal_text(number: Fraction, text: str) -> None:
    assert decimal_text(number, 3, up=None) == text


def test_a_maximum_is_rounded_down_and_its_bound_up() -> None:
    solution = dp.solve(dp.tablebuilder(D=11, V=4))
    found = lines_of(solution)
    value, bound, gap = (Fraction(found[label].split()[0]) for label in ("entropy", "bound", "gap"))
    assert value <= solution.value.lower and value > solution.value.lower - Fraction(1, 10**15)
    assert solution.bound is not None and bound >= solution.bound
    assert solution.gap is not None and gap >= solution.gap
    assert found["privacy"].endswith("(nothing asked for)")
    assert "holds" in found["check"]


def test_a_minimum_is_rounded_up_and_its_epsilon_stays_within() -> None:
    problem = dp.Problem(objective=dp.MinExpectedCost("absolute"), constraints=[dp.PureDP("0.1", 3)])
    solution = dp.solve(problem)
    found = lines_of(solution)
    assert Fraction(found["expected cost"].split()[0]) >= solution.value.upper
    assert solution.bound is not None and Fraction(found["bound"].split()[0]) <= solution.bound
    assert found["privacy"] == "epsilon 0.1, delta 0 at sensitivity 3"
    assert "geometric tails" in found["noise"]


def test_a_window_states_its_true_delta() -> None:
    problem = dp.Problem(
        support=dp.Integers(-20, 20),
        objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.PureDP(1, 2, boundary="window"), dp.ApproxDP(2, "1/10")],
    )
    solution = dp.solve(problem)
    text = summary(solution)
    true = dp.delta(solution.pmf, 1, 2).upper
    assert f"delta {decimal_text(true, 6, up=True)} at epsilon 1, sensitivity 2" in text
    assert "at epsilon 2, sensitivity 1" in text


def test_min_delta_a_lattice_and_the_unproved() -> None:
    smallest = dp.solve(dp.Problem(support=dp.Integers(-5, 5), objective=dp.MinDelta("1/2")))
    assert "at epsilon 0.5, sensitivity 1" in lines_of(smallest)["privacy"]
    coarse = dp.solve(dp.Problem(support=dp.Lattice(3, -6, 6), objective=dp.MaxEntropy(), constraints=[dp.Mean(0)]))
    assert "sensitivity 3" in lines_of(coarse)["privacy"]  # no smaller move reaches another point
    assert "in steps of 3" in lines_of(coarse)["noise"]
    contradiction = [dp.Mean(0), dp.Variance(at_most=1), dp.SecondMoment(at_least=2)]
    nothing = dp.solve(dp.Problem(support=dp.Integers(-5, 5), objective=dp.MaxEntropy(), constraints=contradiction))
    assert lines_of(nothing)["conflict"] == "mean, variance, second-moment"
    assert "pmf," not in summary(nothing)
    assert nothing.text() == summary(nothing)


@pytest.mark.parametrize("family", ["analytic", "tablebuilder", "any"])
def test_a_target(family: str) -> None:
    solution = dp.solve(dp.target(epsilon=1, delta="1e-5", family=family))
    found = lines_of(solution)
    assert solution.design is not None
    assert found["D"].startswith(f"{solution.design.D} (no design")
    assert ("gamma" in found) == (family != "any")
    assert "at epsilon 1, sensitivity 1" in found["privacy"]


def test_json_is_strict_and_near() -> None:
    for question in (dp.tablebuilder(D=3, V=1), dp.target(epsilon=1, delta="1e-3", family="any")):
        solution = dp.solve(question)
        found = json.loads(json.dumps(solution_json(solution), allow_nan=False))
        assert found["probabilities"] == solution.pmf.probabilities().tolist()
        assert found["value"] == pytest.approx(float(solution.value), rel=1e-15)
        assert found["claimed"] == solution.claimed.value and found["verified"] == solution.verified.value


# --- histogram -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10**30), min_size=1, max_size=400).filter(any), st.integers(-500, 500))
def test_histogram_is_short_and_complete(weights: list[int], start: int) -> None:
    lines = histogram(dp.Pmf(start, weights))
    assert 2 <= len(lines) <= 26
    assert max(len(line.split("█")[-1]) for line in lines) < 100
    masses = [float(line.rsplit(" ", 1)[1]) for line in lines[1:]]
    assert sum(masses) == pytest.approx(1, abs=0.02)


def test_histogram_of_symmetric_noise_is_symmetric() -> None:
    weights = [1 + min(k, 100 - k) for k in range(101)]
    lines = histogram(dp.Pmf(-50, weights))[1:]
    bars = [line.split(" ", 1)[-1].strip() for line in lines]
    assert [b.split()[-1] for b in bars] == [b.split()[-1] for b in bars][::-1]


def test_histogram_scale() -> None:
    assert histogram(dp.Pmf(0, (1, 2)))[0] == "pmf, linear scale"
    assert histogram(dp.Pmf(0, (1, 10**6)))[0] == "pmf, log scale from 1e-7"
    tailed = dp.Pmf(0, (1,), tails=dp.Tails(1, Fraction(1, 2), Fraction(1, 2)))
    assert histogram(tailed)[0] == "pmf, linear scale; the tails hold 0.667"


def test_histogram_in_ascii() -> None:
    assert all(line.isascii() for line in histogram(dp.Pmf(0, (1, 2, 10**9)), plain=True))
