"""The checker's reading of a pmf: margins against closed forms and long truncated sums, and what each refusal says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.arithmetic import exp_enclosure
from dpopt.checker import derive
from dpopt.errors import CertificateError

from .statements import integers, law, statement

E1 = exp_enclosure(Fraction(1), 128)
EXACT = {"type": "pure-dp", "epsilon": "1"}
ALL = None


def margin(pmf: Mapping[str, Any], constraint: Mapping[str, Any], support: Mapping[str, Any] | None = ALL) -> Fraction:
    (check,) = derive(statement(pmf, constraint, support=support))["checks"]
    assert check["constraint"] == constraint["type"] and check["holds"] is True
    return Fraction(check["margin"])


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(CertificateError) as caught:
        derive(statement(*arguments, **options))
    return str(caught.value)


GEOMETRIC = law(0, [1], left=1 / E1.lower, right=1 / E1.lower)
TRIANGLE = law(-1, [1, 2, 1])


# --- linear constraints, by hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"type": "mean", "equals": "0"}, "0"),
        ({"type": "mean", "at_least": "-1", "at_most": "1/4"}, "1/4"),
        ({"type": "second-moment", "at_most": "1"}, "1/2"),
        ({"type": "second-moment", "at_least": "0.5"}, "0"),
        ({"type": "expectation", "of": "absolute", "at_most": "1"}, "1/2"),
        ({"type": "expectation", "of": "error", "equals": "1/2"}, "0"),
        ({"type": "expectation", "of": {"power": "3"}, "at_least": "0"}, "1/2"),
        ({"type": "expectation", "of": {"power": "0"}, "equals": "1"}, "0"),
        ({"type": "expectation", "of": {"polynomial": ["1", "1", "2"]}, "equals": "2"}, "0"),
        ({"type": "expectation", "of": {"table": {"-1": "3", "1": "5"}, "outside": "1"}, "equals": "5/2"}, "0"),
        ({"type": "probability", "of": ["0", "1"], "at_least": "1/2"}, "1/4"),
        ({"type": "probability", "of": {"from": "0"}, "at_least": "1/2"}, "1/4"),
        ({"type": "probability", "of": {"to": "-1/2"}, "at_most": "1"}, "3/4"),
        ({"type": "probability", "of": {"from": "-1", "to": "0"}, "equals": "3/4"}, "0"),
        ({"type": "forbidden", "values": ["2", "-7"]}, "0"),
        ({"type": "symmetric"}, "0"),
    ],
)
@pytest.mark.parametrize("support", [ALL, integers(-3, 3)])
def test_a_margin_is_what_the_hand_computes(
    constraint: Mapping[str, Any], expected: str, support: Mapping[str, Any] | None
) -> None:
    assert margin(TRIANGLE, constraint, support) == Fraction(expected)


def test_a_table_without_outside_needs_every_point_of_a_finite_support() -> None:
    of = {"table": {"-1": "3", "0": "0", "1": "5"}}
    constraint = {"type": "expectation", "of": of, "equals": "2"}
    assert margin(TRIANGLE, constraint, integers(-1, 1)) == 0
    assert "outside" in refused(TRIANGLE, constraint, support=integers(-2, 1))
    assert "outside" in refused(TRIANGLE, constraint)


def test_a_variance_is_about_the_fixed_mean() -> None:
    moved = law(1, [1, 2, 1])
    mean, variance = {"type": "mean", "equals": "2"}, {"type": "variance", "at_most": "1"}
    assert derive(statement(moved, variance, mean))["checks"][0]["margin"] == "1/2"
    assert derive(statement(TRIANGLE, variance, {"type": "symmetric"}))["checks"][0]["margin"] == "1/2"
    assert "fixed mean" in refused(moved, variance, {"type": "mean", "at_most": "2"})


def test_data_units_are_turned_into_lattice_steps() -> None:
    half = {"type": "lattice", "step": "1/2", "low": "-1", "high": "1"}
    pmf = law(-2, [0, 1, 2, 1, 0]) | {"step": "1/2"}
    done = derive(statement(pmf, {"type": "second-moment", "equals": "1/8"}, support=half))
    assert done["value"] == ["1/4", "1/4"]
    # sensitivity 1/2 is one step, 5/4 two steps
    window = {"type": "pure-dp", "epsilon": "1", "boundary": "window"}
    inner = {"type": "lattice", "step": "1/2", "low": "-1/2", "high": "1/2"}
    assert margin(pmf | {"weights": ["1", "2", "1"], "start": "-1"}, window | {"sensitivity": "5/4"}, inner) > 0
    assert "at least the step" in refused(pmf, window | {"sensitivity": "1/3"}, support=half)
    assert "multiple of the step" in refused(pmf, {"type": "forbidden", "values": ["1/3"]}, support=half)
    assert "laws[0].step" in refused(TRIANGLE, support=half)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ({"type": "mean", "equals": "1/1000"}, "the value 0 is beyond its limit by 0.001"),
        ({"type": "second-moment", "at_most": "1/4"}, "by 0.25"),
        ({"type": "probability", "of": ["0"], "at_least": "3/4"}, "by 0.25"),
        ({"type": "forbidden", "values": ["1"]}, "index 1 is not 0"),
        ({"type": "pure-dp", "epsilon": "1", "sensitivity": "2"}, "ratio is infinite"),
        ({"type": "approx-dp", "epsilon": "0", "delta": "1/8"}, "divergence is beyond its limit by 0.375"),
    ],
)
def test_a_broken_constraint_is_named_with_its_excess(constraint: Mapping[str, Any], message: str) -> None:
    reason = refused(TRIANGLE, {"type": "mean", "equals": "0"}, constraint)
    assert reason.startswith(f"problem.constraints[1] ({constraint['type']})") and message in reason


def test_an_equality_is_missed_by_the_smallest_excess() -> None:
    weights = [10**300, 2 * 10**300, 10**300 + 1]
    assert "mean" in refused(law(-1, weights), {"type": "mean", "equals": "0"})


def test_mass_outside_the_support_is_refused() -> None:
    assert "outside the support" in refused(TRIANGLE, support=integers(0, 2))
    assert "on a finite support" in refused(GEOMETRIC, support=integers(-5, 5))
    assert derive(statement(law(-9, [0] * 8 + [1, 2, 1] + [0] * 9), support=integers(-1, 1)))["value"] == ["1/2", "1/2"]


# --- shape -------------------------------------------------------------------------------------------------------


def test_unimodal_takes_the_least_step_of_the_whole_window() -> None:
    assert margin(law(-1, [1, 4, 2]), {"type": "unimodal"}, integers(-1, 1)) == Fraction(2, 7)
    assert margin(law(-1, [1, 4, 2]), {"type": "unimodal"}, integers(-3, 1)) == 0
    assert margin(law(0, [1, 4, 7]), {"type": "unimodal", "mode": "2"}, integers(0, 2)) == Fraction(3, 12)
    assert "between indices 0 and 1" in refused(law(-1, [3, 2, 4]), {"type": "unimodal"}, support=integers(-1, 1))


def test_symmetry_compares_cores_of_any_position_and_both_ratios() -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert margin(law(0, [4, 2], left=half, right=half), {"type": "symmetric"}) == 0
    assert margin(law(-1, [6, 8, 6, 4], period=2, left=half, right=half), {"type": "symmetric"}) == 0
    assert "differ" in refused(law(-1, [6, 8, 6, 4], period=1, left=half, right=half), {"type": "symmetric"})
    assert "differ" in refused(law(0, [4, 1], left=half, right=half), {"type": "symmetric"})
    assert "differ" in refused(law(0, [4], left=half, right=third), {"type": "symmetric"})
    assert "-3 and 3 differ" in refused(law(-1, [5, 0, 5], period=2, left=half, right=third), {"type": "symmetric"})
    assert "differ" in refused(law(0, [4], left=half), {"type": "symmetric"})
    assert "differ" in refused(law(-1, [1, 2, 2]), {"type": "symmetric"})


# --- pure DP -----------------------------------------------------------------------------------------------------


def test_the_geometric_law_meets_pure_dp_with_nothing_to_spare() -> None:
    assert margin(GEOMETRIC, {"type": "pure-dp", "epsilon": "1"}) == 0
    room = margin(GEOMETRIC, {"type": "pure-dp", "epsilon": "1.5"})
    assert 0 <= Fraction(1, 2) - room <= Fraction(1, 2**63)
    assert "privacy loss" in refused(GEOMETRIC, {"type": "pure-dp", "epsilon": "0.999999999999"})


def test_a_ratio_of_exactly_the_lower_end_holds_and_of_the_upper_end_fails() -> None:
    fine = exp_enclosure(Fraction(1), 700)
    for ratio, holds in ((fine.lower, True), (fine.upper, False)):
        pmf = law(0, [ratio.numerator, ratio.denominator])
        constraint = {"type": "pure-dp", "epsilon": "1", "boundary": "window"}
        if holds:
            assert margin(pmf, constraint, integers(0, 1)) == 0
        else:
            assert "privacy loss" in refused(pmf, constraint, support=integers(0, 1))


def test_epsilon_zero_allows_equal_masses_only() -> None:
    zero = {"type": "pure-dp", "epsilon": "0", "sensitivity": "3", "boundary": "window"}
    assert margin(law(0, [7, 7, 7]), zero, integers(0, 2)) == 0
    assert "above e^0" in refused(law(0, [7, 7, 8]), zero, support=integers(0, 2))
    assert margin(law(0, [7, 7, 7]), zero | {"epsilon": "1/3"}, integers(0, 2)) == Fraction((1 << 64) // 3, 1 << 64)


def test_zero_beside_mass_is_an_infinite_ratio_however_far_out() -> None:
    for pmf in (
        law(0, [1, 0, 1], period=3, left="1/2", right="1/2"),
        law(0, [1, 0, 1], left="1/2", right="1/2"),
        law(0, [4, 2], left="1/2"),
        TRIANGLE,
    ):
        assert "ratio is infinite" in refused(pmf, {"type": "pure-dp", "epsilon": "100", "sensitivity": "1"})


def test_a_tail_of_ratio_1e_minus_300_is_seen() -> None:
    tiny = law(0, [1], left="1e-300", right="1e-300")
    assert "privacy loss" in refused(tiny, {"type": "pure-dp", "epsilon": "690"})
    room = margin(tiny, {"type": "pure-dp", "epsilon": "691"})
    assert abs(float(room) - (691 - 300 * math.log(10))) < 1e-12
    last = law(-1, [1, 10**300, 1], left=1 / E1.lower, right=1 / E1.lower)
    assert "problem.constraints[0] (pure-dp)" in refused(last, {"type": "pure-dp", "epsilon": "1"})


def test_a_zero_is_named_by_its_index() -> None:
    assert "index 1 is 0" in refused(law(0, [4, 0, 2]), EXACT | {"boundary": "window"}, support=integers(0, 2))
    assert "index -1 is 0" in refused(law(0, [4, 2], right="1/2"), EXACT)


def test_pure_dp_on_a_finite_support_means_the_window() -> None:
    assert "impossible on a finite support" in refused(TRIANGLE, EXACT, support=integers(-1, 1))
    window = EXACT | {"boundary": "window"}
    assert margin(TRIANGLE, window, integers(-1, 1)) > 0
    assert "needs a finite support" in refused(GEOMETRIC, window)
    assert "ratio is infinite" in refused(TRIANGLE, window, support=integers(-1, 2))


# --- against long truncated sums ---------------------------------------------------------------------------------


@st.composite
def laws(draw: st.DrawFn, positive: bool = False) -> dict[str, Any]:
    weights = draw(st.lists(st.integers(1 if positive else 0, 9), min_size=1, max_size=7).filter(any))
    start = draw(st.integers(-6, 4))
    ratios = st.sampled_from(["3/8", "1/3", "2/5", "1/7"] + ([] if positive else [None]))
    period = draw(st.integers(1, len(weights)))
    return law(start, weights, period, draw(ratios), draw(ratios))


def naive(pmf: Mapping[str, Any], reach: int = 90) -> dict[int, Fraction]:
    """The masses at -reach..reach, walking outward one point at a time, divided by the total of a longer walk."""
    start, weights = int(pmf["start"]), [Fraction(w) for w in pmf["weights"]]
    masses = dict(enumerate(weights, start))
    if pmf["tails"] is not None:
        period = int(pmf["tails"]["period"])
        right, left = (Fraction(pmf["tails"][side] or 0) for side in ("right", "left"))
        for k in range(start + len(weights), 400):
            masses[k] = right * masses[k - period]
        for k in range(start - 1, -400, -1):
            masses[k] = left * masses[k + period]
    total = sum(masses.values())
    return {k: masses.get(k, Fraction(0)) / total for k in range(-reach, reach + 1)}


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(laws(), st.integers(-3, 3), st.integers(0, 3), st.data())
def test_expectations_are_the_limit_of_truncated_sums(
    pmf: Mapping[str, Any], jump: int, power: int, data: st.DataObject
) -> None:
    table = {str(jump): "10", str(jump + data.draw(st.integers(1, 9))): "-4"}
    masses = naive(pmf, 300)
    for of, h in (
        ({"power": str(power)}, lambda z: abs(z) ** power),
        ({"table": table, "outside": "1/2"}, lambda z: Fraction(table.get(str(z), "1/2"))),
        ({"polynomial": ["1", "-2", "1/3"]}, lambda z: 1 - 2 * z + Fraction(z * z, 3)),
    ):
        found = Fraction(derive(statement(pmf, objective={"type": "min-expected-cost", "cost": of}))["value"][0])
        assert abs(found - sum(p * h(k) for k, p in masses.items())) < Fraction(1, 10**6)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(laws(positive=True), st.integers(1, 5))
def test_the_privacy_loss_is_the_largest_of_a_long_window(pmf: Mapping[str, Any], shift: int) -> None:
    masses = naive(pmf, 60)
    pairs = ((masses[i], masses[j]) for i in range(-50, 51) for j in range(i - shift, i + shift + 1))
    ratio = max(p / q for p, q in pairs)
    room = margin(pmf, {"type": "pure-dp", "epsilon": "50", "sensitivity": str(shift)})
    assert abs(float(50 - room) - math.log(ratio)) < 1e-12


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(laws(), st.integers(1, 5), st.sampled_from(["0", "1/4", "1"]))
def test_the_divergence_is_the_largest_of_long_sums(pmf: Mapping[str, Any], shift: int, epsilon: str) -> None:
    masses = naive(pmf, 300)
    factor = exp_enclosure(Fraction(epsilon)).lower
    sums = [
        sum(max(p - factor * masses.get(k - s, Fraction(0)), Fraction(0)) for k, p in masses.items() if abs(k) < 290)
        for s in range(-shift, shift + 1)
        if s
    ]
    constraint = {"type": "approx-dp", "epsilon": epsilon, "delta": "1", "sensitivity": str(shift)}
    found = 1 - margin(pmf, constraint)
    assert abs(found - max(sums)) < Fraction(1, 10**9)
    wide = integers(-30, 30)
    core = law(int(pmf["start"]), [int(w) for w in pmf["weights"]])
    assert margin(core, constraint, wide) == margin(core, constraint)  # a finite law, read in two ways


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(laws(), laws(), st.sampled_from(["1", "1/2"]))
def test_the_wasserstein_distance_is_the_sum_over_all_cuts(
    pmf: dict[str, Any], source: Mapping[str, Any], step: str
) -> None:
    inputs = {"type": "table", "low": source["start"], "weights": source["weights"]}
    support = {"type": "lattice", "step": step}
    objective = {"type": "min-wasserstein", "input": inputs}
    found = derive(statement(pmf | {"step": step}, objective=objective, support=support))["value"]
    masses, fine = naive(pmf, 250), Fraction(step).denominator
    x = {k * fine: p for k, p in naive(law(int(source["start"]), [int(w) for w in source["weights"]]), 20).items() if p}
    both: dict[int, Fraction] = {}
    for i, p in x.items():
        for j, q in masses.items():
            if q:
                both[i + j] = both.get(i + j, Fraction(0)) + p * q
    gap, distance = Fraction(0), Fraction(0)
    for k in range(-300, 300):
        gap += x.get(k, 0) - both.get(k, 0)
        distance += abs(gap)
    assert found[0] == found[1]
    assert abs(Fraction(found[0]) - distance / fine) < Fraction(1, 10**7)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8).filter(any))
def test_entropy_is_enclosed_within_2_to_minus_64(weights: list[int]) -> None:
    done = derive(statement(law(0, weights), objective={"type": "max-entropy"}, support=integers(0, len(weights))))
    low, high = map(Fraction, done["value"])
    total = sum(weights)
    expected = -sum(w / total * math.log(w / total) for w in weights if w)
    assert high - low in (0, Fraction(1, 1 << 64)) and abs(float(low) - expected) < 1e-12
    assert (low == high) == (sum(w > 0 for w in weights) == 1)


def test_min_delta_encloses_the_true_delta() -> None:
    pmf = law(-1, [1, 2, 1])
    objective = {"type": "min-delta", "epsilon": "1/2", "sensitivity": "1"}
    low, high = map(Fraction, derive(statement(pmf, objective=objective, support=integers(-1, 1)))["value"])
    expected = 1 / 4 + (2 - math.exp(0.5)) / 4
    assert low <= high < low + Fraction(1, 2**120) and abs(float(low) - expected) < 1e-15


def test_every_end_of_an_enclosure_is_the_safe_one() -> None:
    """At 32 bits the two ends of e^epsilon differ visibly: the pmf is held to the lower, a delta spans both."""
    low, high = exp_enclosure(Fraction(1, 2), 32)
    constraint, objective = {"type": "approx-dp", "delta": "1"}, {"type": "min-delta"}
    epsilon = {"epsilon": "1/2"}
    done = derive(
        statement(
            TRIANGLE, constraint | epsilon, objective=objective | epsilon, support=integers(-1, 1), precision="32"
        )
    )
    assert Fraction(done["checks"][0]["margin"]) == 1 - (1 + (2 - low)) / 4
    assert [Fraction(v) for v in done["value"]] == [(1 + (2 - end)) / 4 for end in (high, low)]
    assert done["enclosures"] == {"1/2": [str(low), str(high)]}
