"""Measurements and gaps combined: dense generalised least squares, closed forms, and simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.errors import InputError
from dpopt.release.gap_estimates import GapEstimates, combine_gaps
from dpopt.release.randomness import InsecureRandomness
from dpopt.release.selection_design import SelectionDesign
from dpopt.release.top_k import TopK, noisy_top_k
from dpopt.text import decimal_text

FRACTIONS = st.fractions(-50, 50, max_denominator=20)
POSITIVE = st.fractions("1/10", 50, max_denominator=20)


def dense(
    measurements: list[Fraction], gaps: list[Fraction], variances: list[Fraction], own: Fraction, shared: Fraction
) -> tuple[np.ndarray, np.ndarray]:
    """(A' W^-1 A)^-1 A' W^-1 y, with the measurements and the gaps as one vector of observations."""
    k = len(measurements)
    differences = np.eye(k)[:-1] - np.eye(k)[1:]
    design = np.vstack([np.eye(k), differences])
    covariance = np.zeros((2 * k - 1, 2 * k - 1))
    covariance[:k, :k] = np.diag([float(v) for v in variances])
    inner = np.diag([float(own)] * (k - 1)) + float(shared) * (np.eye(k - 1, k=1) + np.eye(k - 1, k=-1))
    covariance[k:, k:] = inner
    weights = np.linalg.inv(covariance)
    after = np.linalg.inv(design.T @ weights @ design)
    seen = np.array([float(v) for v in [*measurements, *gaps]])
    return after @ design.T @ weights @ seen, np.diag(after)


@given(st.data(), st.integers(1, 9), POSITIVE, st.sampled_from(["-1/2", "-1/3", "0", "1/4"]))
@settings(max_examples=60, deadline=None)
def test_against_dense_least_squares(data: st.DataObject, k: int, own: Fraction, share: str) -> None:
    measurements = data.draw(st.lists(FRACTIONS, min_size=k, max_size=k))
    gaps = data.draw(st.lists(FRACTIONS, min_size=k - 1, max_size=k - 1))
    variances = data.draw(st.lists(POSITIVE, min_size=k, max_size=k))
    shared = own * Fraction(share)
    found = combine_gaps(measurements, gaps, variances=variances, gap_variance=own, gap_covariance=shared)
    estimates, after = dense(measurements, gaps, variances, own, shared)
    assert all(type(number) is Fraction for number in (*found.estimates, *found.variances))
    np.testing.assert_allclose([float(e) for e in found.estimates], estimates, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose([float(v) for v in found.variances], after, rtol=1e-7)
    assert all(v <= before for v, before in zip(found.variances, found.measured, strict=True))
    assert 0 <= found.gain < 1


@pytest.mark.slow
@given(st.lists(FRACTIONS, min_size=2, max_size=8), POSITIVE, POSITIVE)
def test_gaps_that_agree_change_no_estimate(truth: list[Fraction], variance: Fraction, own: Fraction) -> None:
    """The estimates are unbiased: without noise they are the truth, exactly, whatever the weights."""
    bias = Fraction(-1, 20)
    gaps = [a - b + bias for a, b in zip(truth, truth[1:], strict=False)]
    found = combine_gaps(truth, gaps, variances=variance, gap_variance=own, gap_bias=bias)
    assert list(found.estimates) == truth
    shifted = combine_gaps(truth, gaps, variances=variance, gap_variance=own)
    assert list(shifted.estimates) != truth


@given(st.lists(FRACTIONS, min_size=2, max_size=8), st.data(), POSITIVE)
def test_the_total_is_the_measurements_alone(measured: list[Fraction], data: st.DataObject, own: Fraction) -> None:
    """Gaps are differences: with equal variances they say nothing about the sum."""
    gaps = data.draw(st.lists(FRACTIONS, min_size=len(measured) - 1, max_size=len(measured) - 1))
    found = combine_gaps(measured, gaps, variances=3, gap_variance=own)
    assert sum(found.estimates) == sum(measured)


def test_two_items_in_closed_form() -> None:
    """Half of the difference is weighed between 2 v and the gap's variance w: var = v/2 + (1/4) 2 v w / (2 v + w)."""
    for v, w in ((8, 16), (1, Fraction(1, 3)), (100, 1)):
        found = combine_gaps([3, 1], ["5/2"], variances=v, gap_variance=w)
        assert found.variances[0] == found.variances[1] == Fraction(v) / 2 + Fraction(v * w) / (2 * v + w) / 2
        middle = (2 * Fraction(w) + Fraction(5, 2) * 2 * v) / (2 * v + w)
        assert found.estimates[0] - found.estimates[1] == middle


def test_the_last_gap_tells_nothing() -> None:
    with_it = combine_gaps([9, 5, 4], [3, 1, 1000], variances=2, gap_variance=3)
    assert with_it == combine_gaps([9, 5, 4], [3, 1], variances=2, gap_variance=3)
    assert combine_gaps([9], [7], variances=2, gap_variance=3).estimates == (9,)
    assert combine_gaps([9], [], variances=2, gap_variance=3).variances == (2,)


def test_many_items_with_equal_variances() -> None:
    """As noisy as the selection: two equally good views of all but the common level, which only one of them has."""
    found = combine_gaps([0] * 101, [0] * 100, variances=1, gap_variance=2)
    _, after = dense([Fraction(0)] * 101, [Fraction(0)] * 100, [Fraction(1)] * 101, Fraction(2), Fraction(-1))
    assert [float(v) for v in found.variances] == pytest.approx(list(after), rel=1e-9)
    assert 0.45 < found.gain < 0.5


def test_simulated_far_apart_scores() -> None:
    """The variance promised is the one seen, and smaller than that of the measurements alone."""
    rng = np.random.default_rng(11)
    scores, k, epsilon, draws = [9000, 6000, 3000, 0], 3, 2, 1500
    variance = 2 * 3**2  # Laplace noise of scale 3
    source = InsecureRandomness(3)
    errors = np.empty((draws, k))
    for row in range(draws):
        top = noisy_top_k(scores, k, epsilon, randomness=source)
        assert top.ids == (0, 1, 2)
        measured = [Fraction(round(16 * (scores[i] + rng.laplace(0, 3))), 16) for i in top.ids]
        found = top.combine(measured, variance)
        errors[row] = [float(e - scores[i]) for e, i in zip(found.estimates, top.ids, strict=True)]
    promised = np.array([float(v) for v in found.variances])
    assert np.all(promised < 0.95 * variance)
    np.testing.assert_allclose(errors.mean(axis=0), 0, atol=4.5 * np.sqrt(promised.max() / draws))
    np.testing.assert_allclose(errors.var(axis=0), promised, rtol=0.25)


def test_selection_among_equal_scores_biases_the_gaps() -> None:
    """What the docstring warns of: equal scores have positive gaps."""
    source = InsecureRandomness(4)
    gaps = [noisy_top_k([0] * 20, 2, 1, randomness=source).gaps[0] for _ in range(200)]
    assert sum(gaps) / len(gaps) > 1


def test_a_selection_knows_its_variances() -> None:
    top = TopK((5, 2, 7), (31, 4, 1), SelectionDesign(3, 1), secure=True)
    found = top.combine([10, 8, "7.5"], [4, 4, 5])
    exactly = combine_gaps(
        [10, 8, "7.5"],
        ["3.1", "0.4", "0.1"],
        variances=[4, 4, 5],
        gap_variance=top.design.gap_variance.lower,
        gap_covariance=top.design.gap_covariance.lower,
        gap_bias="-0.05",
    )
    for a, b in zip(found.estimates + found.variances, exactly.estimates + exactly.variances, strict=True):
        assert float(a) == pytest.approx(float(b), rel=1e-8)
    assert str(found).splitlines()[0].split() == ["estimate", "variance", "measured", "alone"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"measurements": []}, "measurements: must hold at least one"),
        ({"measurements": 5}, "measurements: must be a list of numbers"),
        ({"measurements": "55"}, "measurements: must be a list of numbers"),
        ({"measurements": [1, True]}, r"measurements\[1\]: must be a number"),
        ({"gaps": [1, 2, 3]}, "gaps: must be 1 or 2 for 2 measurements, not 3"),
        ({"gaps": []}, "gaps: must be 1 or 2"),
        ({"variances": [1]}, "variances: must be one number, or one for each of the 2"),
        ({"variances": 0}, "variances: must be positive, not 0"),
        ({"variances": [1, -1]}, "variances: must be positive, not -1"),
        ({"gap_variance": 0}, "gap_variance: must be positive"),
        ({"gap_variance": "x"}, "gap_variance: must be a number"),
        ({"gap_bias": float("nan")}, "gap_bias: must be finite"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"measurements": [2, 1], "gaps": [1], "variances": 1, "gap_variance": 1, **changed}
    with pytest.raises(InputError, match=message):
        combine_gaps(arguments.pop("measurements"), arguments.pop("gaps"), **arguments)


@pytest.mark.parametrize(
    ("count", "shared", "possible"),
    [
        (2, 16, True),  # two gaps that always agree: cos(pi / 3) = 1/2
        (2, "-16.0000001", False),
        (3, "11.313", True),  # 16 / sqrt 2 = 11.3137
        (3, "11.314", False),
        (5, "9.2376", True),  # 16 / sqrt 3 = 9.23760
        (5, "-9.2377", False),
        (5, 10, False),
        (300, 8, True),
        (300, -8, True),
        (300, "8.0004", True),  # 8 / cos(pi / 301) = 8.000436
        (300, "8.0005", False),
        (2000, "8.0001", False),
        (1, 1000, True),  # there is no other gap
    ],
)
def test_a_covariance_that_gaps_can_have(count: int, shared: Any, possible: bool) -> None:
    """The eigenvalues of their matrix are ``16 + 2 shared cos(pi j / (count + 1))``."""

    def found(measurements: int) -> GapEstimates:
        return combine_gaps([1] * measurements, [0] * count, variances=8, gap_variance=16, gap_covariance=shared)

    for measurements in (count, count + 1):  # with and without the gap that tells nothing
        if possible:
            assert all(0 < variance <= 8 for variance in found(measurements).variances)
        else:
            with pytest.raises(InputError, match=f"gap_covariance: must lie within about .* of 0 for {count} gaps"):
                found(measurements)


def test_a_matrix_that_is_singular_too_early_is_refused() -> None:
    """Minors 1, 1, 0, -1: two gaps may have it, three may not."""
    with pytest.raises(
        InputError, match="gap_covariance: must lie within about 0.707107 of 0 for 3 gaps of variance 1"
    ):
        combine_gaps([1] * 4, [0] * 3, variances=1, gap_variance=1, gap_covariance=1)


def test_a_thousand_items() -> None:
    """Exact fractions of tens of thousands of bits."""
    k = 1000
    top = TopK(tuple(range(k)), tuple(range(1, k + 1)), SelectionDesign(k, 1), secure=True)
    truth = [Fraction(0)]
    for gap in top.gaps[: k - 1]:
        truth.append(truth[-1] - gap + top.design.gap_bias)
    found = top.combine(truth, 8_000_000)
    assert list(found.estimates) == truth  # gaps that agree change nothing
    assert all(v.denominator > 10**1000 and 0 < v < 8_000_000 for v in found.variances)
    assert 0.66 < found.gain < 0.67  # the gaps of one variance, and covariances that telescope: a third is left
    assert len(found.text().splitlines()) == k + 2


@given(st.integers(2, 7), st.data())
@settings(max_examples=25, deadline=None)
def test_the_fractions_are_in_lowest_terms(k: int, data: st.DataObject) -> None:
    measured = data.draw(st.lists(FRACTIONS, min_size=k, max_size=k))
    spread = data.draw(st.lists(POSITIVE, min_size=k, max_size=k))
    found = combine_gaps(measured, [0] * (k - 1), variances=spread, gap_variance=2)
    for number in (*found.estimates, *found.variances, found.gain):
        assert math.gcd(number.numerator, number.denominator) == 1
        assert number.denominator > 0
    assert found.gain == 1 - sum(found.variances) / sum(spread)
    cells = [line.split() for line in str(found).splitlines()[2:]]
    assert [row[0] for row in cells] == [decimal_text(number, 6, up=None) for number in found.estimates]


@pytest.mark.parametrize("odd", [{0: 5, 1: 4}, {5, 4}, frozenset({5, 4}), {5: 1, 4: 2}.keys()])
def test_numbers_without_an_order_are_refused(odd: Any) -> None:
    top = TopK((4, 0), (5, 1), SelectionDesign(2, 1), secure=True)
    with pytest.raises(InputError, match="measurements: must be a list of numbers in their order"):
        top.combine(odd, 1)
    with pytest.raises(InputError, match="variances: must be a list of numbers in their order"):
        top.combine([5, 4], odd)
    for argument in ("measurements", "gaps", "variances"):
        arguments = {"measurements": [5, 4], "gaps": [1, 1], "variances": [1, 1], argument: odd}
        with pytest.raises(InputError, match=f"{argument}: must be a list of numbers in their order"):
            combine_gaps(arguments.pop("measurements"), arguments.pop("gaps"), gap_variance=1, **arguments)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_measurement_for_each_selected_item(count: int) -> None:
    """The last gap is to an item that is not selected: it has no measurement."""
    top = TopK((4, 0), (5, 1), SelectionDesign(2, 1), secure=True)
    message = f"measurements: must be 2 numbers, one for each of the selected items, not {count}"
    with pytest.raises(InputError, match=message):
        top.combine([5] * count, 1)
