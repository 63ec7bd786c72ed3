"""Truncated noise: published tables, the closed form, the least half width, the continuous law by integration."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import dpopt as dp
from dpopt.arithmetic import log_enclosure

from .reference_values import REFERENCE, is_to_the_digits

TABLES = [row for row in REFERENCE["mechanisms"] if row["name"] == "truncated discrete Laplace"]
(CONTINUOUS,) = [row for row in REFERENCE["mechanisms"] if row["name"] == "continuous truncated Laplace"]


@pytest.mark.parametrize("row", TABLES, ids=lambda row: row["epsilon"])
def test_published_tables(row: dict[str, Any]) -> None:
    """D = 7: the named law, and the noise of least delta that a solver finds, to the digits that are printed."""
    noise = dp.truncated_geometric(row["epsilon"], row["D"]).pmf
    window = dp.Integers(-row["D"], row["D"])
    found = dp.solve(dp.Problem(support=window, objective=dp.MinDelta(row["epsilon"]))).pmf
    for k, printed in enumerate(row["p_0_to_7"]):
        digits = len(printed.partition(".")[2])
        for pmf in (noise, found):
            assert abs(pmf.probability(k) - Fraction(printed)) <= Fraction(1, 2 * 10**digits) + Fraction(1, 10**9)


def test_the_continuous_law() -> None:
    """Published half width and variance."""
    found = dp.truncated_laplace(CONTINUOUS["epsilon"], CONTINUOUS["delta"], CONTINUOUS["sensitivity"])
    assert is_to_the_digits(found.half_width.lower, CONTINUOUS["half_width"])
    assert is_to_the_digits(found.variance.upper, CONTINUOUS["variance"])


@pytest.mark.parametrize(("epsilon", "delta", "m"), [(1.0, 1e-3, 1), (0.5, 1e-2, 4), (3.0, 0.2, 2)])
def test_the_continuous_law_by_integration(epsilon: float, delta: float, m: int) -> None:
    law = dp.truncated_laplace(epsilon, delta, m)
    edge = float(law.half_width)

    def integral(power: int, low: float) -> float:
        return quad(lambda x: x**power * exp(-epsilon * x / m), low, edge)[0]

    mass = 2 * integral(0, 0)
    assert float(law.mean_absolute) == pytest.approx(2 * integral(1, 0) / mass, rel=1e-9)
    assert float(law.variance) == pytest.approx(2 * integral(2, 0) / mass, rel=1e-9)
    assert integral(0, edge - m) / mass == pytest.approx(delta, rel=1e-9)


@given(
    st.fractions(Fraction(1, 20), 4, max_denominator=40),
    st.fractions(Fraction(1, 10**6), Fraction(99, 100)),
    st.integers(1, 9),
)
@settings(max_examples=40, deadline=None)
def test_the_least_half_width(epsilon: Fraction, delta: Fraction, m: int) -> None:
    """It reaches delta by the pmf alone, and one step less does not."""
    found = dp.calibrate("truncated-geometric", epsilon=epsilon, delta=delta, sensitivity=m)
    assert found.proved_delta.upper <= delta
    half_width = found.noise.half_width
    if half_width > 0:
        smaller = dp.truncated_geometric(epsilon / m, half_width - 1)
        assert dp.delta(smaller, epsilon, m).lower > delta - Fraction(1, 2**100)


@pytest.mark.parametrize(("half_width", "m"), [(7, 1), (7, 3), (7, 7), (3, 5), (2, 5), (1, 9)])
def test_delta_is_the_outermost_mass(half_width: int, m: int) -> None:
    """At epsilon = m rate; and no two neighbours inside differ by more than e^rate."""
    rate = Fraction(2, 5)
    noise = dp.truncated_geometric(rate, half_width)
    claim = dp.paper_guarantee(noise, m)
    outermost = sum(noise.pmf.weights[-m:]) / noise.pmf.total
    assert (claim.delta, claim.epsilon.upper, claim.holds) == (outermost, m * rate, True)
    assert dp.delta(noise, m * rate, m).upper == outermost
    weights = noise.pmf.weights
    assert max(Fraction(max(a, b), min(a, b)) for a, b in zip(weights, weights[1:], strict=False)) < Fraction(3, 2)
    assert log_enclosure(Fraction(weights[half_width], weights[half_width + 1])).lower <= rate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: dp.truncated_geometric(1, "1/2"), "half_width: must be a multiple of the step 1"),
        (lambda: dp.truncated_geometric(1, -1), "half_width: must be a multiple of the step 1 and at least 0, not -1"),
        (lambda: dp.truncated_geometric(1, 10**7), "half_width: makes more than"),
        (lambda: dp.truncated_geometric(1, 3000), "half_width: must be at most 2700/rate"),
        (lambda: dp.truncated_geometric(0, 3), "rate: must be positive, not 0"),
        (lambda: dp.calibrate("truncated-geometric", epsilon=0, delta="0.1"), "epsilon: must be positive"),
        (lambda: dp.calibrate("truncated-geometric", epsilon=1), "delta: must be positive"),
        (lambda: dp.calibrate("truncated-geometric", epsilon="1e-7", delta="1e-9"), "delta: asks for truncated noise"),
        (lambda: dp.truncated_laplace(1, "1/2"), "delta: must lie strictly between 0 and 1/2"),
        (lambda: dp.truncated_laplace(0, "1/9"), "epsilon: must be positive"),
        (lambda: dp.truncated_laplace(1, "1/9", -1), "sensitivity: must be positive"),
    ],
)
def test_what_is_refused(make: Any, said: str) -> None:
    with pytest.raises(dp.InputError, match=said):
        make()
