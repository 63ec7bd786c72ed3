"""Calibrated noise: proved again by other means, tight, at its reference values; and the claims of the paper."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import exp_enclosure
from dpopt.distributions import (
    exponential,
    gaussian,
    geometric,
    laplace,
    optimal_staircase,
    poisson,
    staircase,
    uniform,
)
from dpopt.errors import InputError
from dpopt.mechanisms.calibration import Mechanism, calibrate
from dpopt.mechanisms.paper import paper_guarantee
from dpopt.mechanisms.side_by_side import mechanism_table
from dpopt.privacy.ratios import largest_ratio

from .reference_values import REFERENCE, is_to_the_digits

bounded = settings(derandomize=True, max_examples=25, deadline=None)
PURE = [mechanism for mechanism in Mechanism if mechanism.is_pure]
OTHERS = [Mechanism.GAUSSIAN, Mechanism.TRUNCATED_GEOMETRIC, Mechanism.UNIFORM, Mechanism.EXPONENTIAL]
epsilons = st.fractions(min_value=Fraction(1, 10), max_value=5, max_denominator=10)
deltas = st.sampled_from(["1e-2", "1/37", "0.3"])
small_deltas = st.sampled_from(["1e-12", "1e-6", "1e-2", "0.3"])
steps = st.sampled_from(["1", "0.3", "5/2"])


def width_for(mechanism: Mechanism, width: int) -> dict[str, int]:
    return {"width": width} if mechanism is Mechanism.STAIRCASE else {}


# --- proved ----------------------------------------------------------------------------------------------------------


@given(st.sampled_from(PURE), epsilons, st.integers(1, 12), steps, st.integers(1, 15))
@bounded
def test_pure_mechanisms_are_private_and_no_more_than_asked(
    mechanism: Mechanism, epsilon: Fraction, m: int, step: str, width: int
) -> None:
    """At most epsilon by the largest ratio of all, and at least epsilon less a part in 2^60; delta is 0 as it says."""
    moved = m * Fraction(step)
    found = calibrate(mechanism, epsilon=epsilon, sensitivity=moved, step=step, **width_for(mechanism, width))
    numerator, denominator = largest_ratio(found.pmf, m)
    low, high = exp_enclosure(epsilon)
    assert high * (1 - Fraction(1, 2**60)) <= Fraction(numerator, denominator) <= low
    assert dp.delta(found.pmf, epsilon, moved) == found.proved_delta == (0, 0)
    assert found.pmf.step == Fraction(step) and found.pmf.mean == 0
    assert epsilon * (1 - Fraction(1, 2**55)) <= found.proved_epsilon.upper <= epsilon
    assert found.least_epsilon.is_finite and found.sufficient.sufficient == 0 and found.paper.holds
    assert pickle.loads(pickle.dumps(found)) == found


@given(st.sampled_from(OTHERS), epsilons, deltas, st.integers(1, 6), steps)
@bounded
def test_the_others_reach_their_delta(mechanism: Mechanism, epsilon: Fraction, delta: str, m: int, step: str) -> None:
    """The tight delta of the pmf that is returned, by the exact sum over every shift; Theorem 2 never says less."""
    moved = m * Fraction(step)
    found = calibrate(mechanism, epsilon=epsilon, delta=delta, sensitivity=moved, step=step)
    proved = dp.delta(found.pmf, epsilon, moved)
    assert proved.upper <= Fraction(delta) and found.proved_delta.upper <= proved.upper
    assert found.proved_epsilon.upper <= epsilon
    assert not found.least_epsilon.is_finite
    assert found.sufficient.sufficient >= proved.lower
    assert found.paper.holds == (mechanism is not Mechanism.EXPONENTIAL)


@pytest.mark.slow
@given(epsilons, small_deltas, st.integers(1, 6))
@bounded
def test_gaussian_sd_is_the_least_of_its_grid(epsilon: Fraction, delta: str, m: int) -> None:
    """A thousandth of a step less is not (epsilon, delta)-DP, by the exact divergence."""
    found = calibrate("gaussian", epsilon=epsilon, delta=delta, sensitivity=m)
    sd = dict(found.parameters)["sd"]
    assert (sd * 1000).denominator == 1
    assert dp.delta(gaussian(0, sd - Fraction(1, 1000)).pmf, epsilon, m).lower > Fraction(delta)


def test_gaussian_where_masses_are_too_small_to_hold() -> None:
    """At epsilon 700 the masses that would have to count lie below 2^-128: the pmf decides, not the ideal law."""
    for m in (1, 10):
        found = calibrate("gaussian", epsilon=700, delta="1e-5", sensitivity=m)
        sd = dict(found.parameters)["sd"]
        assert dp.delta(found.pmf, 700, m).upper <= Fraction("1e-5")
        assert dp.delta(gaussian(0, sd - Fraction(1, 1000)).pmf, 700, m).lower > Fraction("1e-5")
    assert calibrate("gaussian", epsilon=1, delta=1).proved_delta.upper <= 1


@pytest.mark.parametrize(("delta", "m", "points"), [("0.1", 1, 10), ("0.3", 3, 10), ("1e-3", 15, 15000), ("2/7", 1, 4)])
def test_uniform_has_as_few_points_as_can_be(delta: str, m: int, points: int) -> None:
    """N = ceil(m / delta); with one less, m/N is above delta. Centred to half a step."""
    found = calibrate("uniform", epsilon=0, delta=delta, sensitivity=m)
    assert dict(found.parameters) == {"N": points} and len(found.pmf.weights) == points
    assert found.proved_delta.upper == Fraction(m, points) <= Fraction(delta) < Fraction(m, points - 1)
    assert 0 <= found.pmf.mean <= Fraction(1, 2)


@pytest.mark.parametrize(("delta", "m"), [("0.1", 1), ("0.1", 5), ("1e-30", 1), ("0.999", 2)])
def test_exponential_rate(delta: str, m: int) -> None:
    """-ln(1 - delta)/m, and the delta wanted at every epsilon, 0 among them."""
    found = calibrate("exponential", epsilon=0, delta=delta, sensitivity=m)
    rate = dict(found.parameters)["rate"]
    assert float(rate) == pytest.approx(-math.log1p(-float(Fraction(delta))) / m, rel=1e-15)
    wanted = Fraction(delta)
    for epsilon in (0, 1, 30):
        low, high = calibrate("exponential", epsilon=epsilon, delta=delta, sensitivity=m).proved_delta
        assert wanted * (1 - Fraction(1, 2**60)) <= low <= high <= wanted


def test_the_number_of_stairs_is_exact() -> None:
    """2.1 / 0.3 = 7 stairs, not the 8 of floats (2.1/0.3 = 7.000000000000001); and moves that exist."""
    assert math.ceil(2.1 / 0.3) == 8
    found = calibrate("staircase", epsilon=7, sensitivity="2.1", step="0.3", width=1)
    assert dict(found.parameters)["height"] == pytest.approx(math.exp(-1), rel=1e-15)
    found = calibrate("staircase", epsilon=3, sensitivity=21, width=7)
    assert dict(found.parameters)["height"] == pytest.approx(math.exp(-1), rel=1e-15)
    assert calibrate("laplace", epsilon=1, sensitivity="2.9").noise == laplace(2)  # integers move by 2 at most


@pytest.mark.parametrize(
    "row", [row for row in REFERENCE["mechanisms"] if "mean_absolute" in row], ids=lambda r: r["name"]
)
def test_reference_costs(row: dict[str, Any]) -> None:
    """Group `mechanisms` at epsilon = 2, m = 15, to the digits printed."""
    name = row["name"].split(" ")[0].replace("two-sided", "geometric")
    found = calibrate(
        name, epsilon=row["epsilon"], sensitivity=row["sensitivity"], **({"width": row["a"]} if "a" in row else {})
    )
    assert is_to_the_digits(found.mean_absolute, row["mean_absolute"])
    if "mean_square" in row:
        assert is_to_the_digits(found.variance, row["mean_square"])
    if "C" in row:
        assert is_to_the_digits(found.pmf.probability(0), row["C"])
    if "p_0" in row:
        assert is_to_the_digits(found.pmf.probability(0), row["p_0"])
        assert is_to_the_digits(found.pmf.probability(1), row["p_1"])


@pytest.mark.parametrize("row", [row for row in REFERENCE["mechanisms"] if "tight_delta" in row and "K" not in row])
def test_reference_deltas(row: dict[str, Any]) -> None:
    """One-sided exponential and uniform noise: the same delta at every epsilon, to the digits printed."""
    noise = exponential(row["eta"]) if "eta" in row else uniform(0, row["N"] - 1)
    for epsilon in (0, "0.5", 1):
        low, high = dp.delta(noise.pmf, epsilon, row["sensitivity"])
        if "eta" in row:
            assert is_to_the_digits(low, row["tight_delta"]) and is_to_the_digits(high, row["tight_delta"])
        else:
            assert low == high == Fraction(row["tight_delta"])


def test_the_optimal_staircase_costs_least() -> None:
    """For both costs, below every other pure mechanism and every width."""
    for cost, power in (("absolute", 1), ("square", 2)):
        best = calibrate("optimal-staircase", epsilon=1, sensitivity=5, cost=cost).pmf.absolute_moment(power)
        for mechanism in PURE:
            for width in range(1, 8) if mechanism is Mechanism.STAIRCASE else [0]:
                other = calibrate(mechanism, epsilon=1, sensitivity=5, **width_for(mechanism, width))
                assert other.pmf.absolute_moment(power) >= best


# --- what the paper says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "epsilon", "delta", "holds"), [
    (laplace("7.5"), 2, 0, True),
    (laplace("7.5", "1/3", discretisation="floor"), 2, 0, True),
    (geometric("2/15"), 2, 0, True),
    (staircase(4, "1/2"), 4 * math.log(2), 0, True),
    (optimal_staircase(2, 15, 5), 2, 0, True),
    (uniform(0, 29), 3, "1/2", True),
    (uniform(0, 9), 3, 1, True),
    (gaussian(0, 30), 3, None, True),
    (exponential("2/15"), 2, 0, False),
], ids=lambda x: getattr(x, "type", None))  # fmt: skip
def test_the_closed_forms_at_sensitivity_15(noise: Any, epsilon: float, delta: Any, holds: bool) -> None:
    """Table V: true of all but the one-sided exponential, which has no epsilon at all."""
    claim = paper_guarantee(noise, 15, epsilon=3)
    assert float(claim.epsilon) == pytest.approx(epsilon, rel=1e-15)
    assert claim.holds == holds
    if delta is not None:
        assert claim.delta == Fraction(delta)
    tight = dp.delta(noise.pmf, claim.epsilon.upper, 15)
    assert (tight.upper <= claim.delta) == holds


def test_table_v_side_by_side() -> None:
    """Every mechanism for one privacy; those that cannot reach it are named with the reason."""
    found = mechanism_table(2, 15, widths=[5, 20])
    costs = [(row.mechanism.value, round(float(row.mean_absolute), 10)) for row in found.rows]
    assert costs == [
        ("laplace", 7.4944473238), ("geometric", 7.4778237821), ("staircase", 7.6478741634),
        ("staircase", 12.9094106526), ("optimal-staircase", 6.379479552),
    ]  # fmt: skip
    assert [name for name, _ in found.missing] == OTHERS
    assert "take laplace noise for delta = 0" in found.missing[0][1]
    both = mechanism_table(1, 2, delta="0.01", widths=[1])
    assert [row.mechanism for row in both.rows] == list(Mechanism) and both.missing == ()
    assert str(both).count("wrong") == 1
    none = mechanism_table(0, 2, delta="0.01")
    assert [row.mechanism for row in none.rows] == [
        name for name in OTHERS if name is not Mechanism.TRUNCATED_GEOMETRIC
    ]


# --- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ask", "message"), [
    (lambda: calibrate("laplac", epsilon=1), "mechanism: must be one of laplace, geometric,"),
    (lambda: calibrate("laplace", epsilon=0), "epsilon: must be positive: no laplace noise reaches 0; take uniform"),
    (lambda: calibrate("laplace", epsilon=-1), "epsilon: must be at least 0, not -1"),
    (lambda: calibrate("laplace", epsilon=701), "epsilon: must be at most 700"),
    (lambda: calibrate("laplace", epsilon="1e-300"), "epsilon: asks for noise that is out of reach: scale: must lie"),
    (lambda: calibrate("geometric", epsilon="1e-300"), "epsilon: asks for noise that is out of reach: rate: must lie"),
    (lambda: calibrate("optimal-staircase", epsilon="1e-300"), "epsilon: must be at least 1e-140"),
    (lambda: calibrate("gaussian", epsilon=1), "delta: must be positive: no gaussian noise is epsilon-DP; take"),
    (lambda: calibrate("uniform", epsilon=1), "delta: must be positive: no uniform noise is epsilon-DP; take laplace"),
    (lambda: calibrate("exponential", epsilon=1), "delta: must be positive: no exponential noise is epsilon-DP"),
    (lambda: calibrate("exponential", epsilon=1, delta=1), "delta: must be below 1 for exponential noise"),
    (lambda: calibrate("uniform", epsilon=1, delta="1e-9"), "delta: asks for uniform noise on more than 2000000"),
    (lambda: calibrate("gaussian", epsilon=1, delta="1e-40"), "delta: must be at least 1e-29 for gaussian noise"),
    (lambda: calibrate("gaussian", epsilon="1e-9", delta="1e-9"), "epsilon: asks for gaussian noise with an sd beyond"),
    (lambda: calibrate("gaussian", epsilon=1, delta=2), "delta: must lie between 0 and 1, not 2"),
    (lambda: calibrate("staircase", epsilon=1), "width: must be at least 1, not 0"),
    (lambda: calibrate("laplace", epsilon=1, width=3), "width: is for staircase noise, not for laplace"),
    (lambda: calibrate("laplace", epsilon=1, cost="square"), "cost: is for optimal-staircase noise, not for laplace"),
    (lambda: calibrate("laplace", epsilon=1, step=0), "step: must be positive, not 0"),
    (lambda: calibrate("laplace", epsilon=1, step=2), "sensitivity: must be at least the lattice step 2"),
    (lambda: paper_guarantee(3), "noise: must be named noise such as dpopt.laplace(3), not 3"),
    (lambda: paper_guarantee(poisson(3)), "noise: must be a kind of noise that the noise paper treats, not poisson"),
    (lambda: mechanism_table(0), "epsilon: 0 with delta 0 is reached by no mechanism"),
    (lambda: mechanism_table(float("nan")), "epsilon: must be finite, not nan"),
    (lambda: mechanism_table(1, widths=5), "widths: must be a list of integers, not 5"),
    (lambda: mechanism_table(1, widths="15"), "widths: must be a list of integers, not '15'"),
    (lambda: mechanism_table(1, widths=[3, 3]), "widths: must not name a width twice"),
])  # fmt: skip
def test_what_is_wrong_is_said(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ask()
    assert str(caught.value).startswith(message)
