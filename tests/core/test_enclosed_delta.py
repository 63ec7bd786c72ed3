"""Divergences in fixed point against the exact ones, and at shifts that no exact sum can reach."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import Enclosure, exp_enclosure
from dpopt.pmf import Pmf, Tails
from dpopt.privacy.divergence import hockey_stick, worst_hockey_stick
from dpopt.privacy.enclosed import enclosed_delta, is_long


@st.composite
def tailed(draw: st.DrawFn) -> Pmf:
    """Any pmf with a tail on one side or both, zeros and hills included."""
    weights = draw(st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any))
    ratios = st.none() | st.fractions(Fraction(1, 9), Fraction(8, 9), max_denominator=12)
    left, right = draw(st.tuples(ratios, ratios).filter(any))
    period = draw(st.integers(1, len(weights)))
    return Pmf(draw(st.integers(-3, 3)), weights, tails=Tails(period, left, right))


@pytest.mark.slow
@given(tailed(), st.fractions(0, 4, max_denominator=8), st.integers(1, 9))
@settings(max_examples=120, deadline=None)
def test_it_encloses_the_exact_divergence(pmf: Pmf, epsilon: Fraction, shift: int) -> None:
    growth = exp_enclosure(epsilon)
    found = enclosed_delta(pmf, growth, shift)
    low, high = (worst_hockey_stick(pmf, factor, shift) for factor in (growth.upper, growth.lower))
    assert found.lower <= low <= high <= found.upper
    assert found.width <= max(found.upper / 2**60, Fraction(1, 2**1000))


def test_a_small_divergence_keeps_its_digits() -> None:
    """Near the largest loss, where delta is 1e-60: relative accuracy all the same."""
    noise = Pmf(0, (1,), tails=Tails(1, Fraction(1, 2), Fraction(1, 2)))
    factor = Fraction(2) ** 200 * (1 - Fraction(1, 10**9))
    found = enclosed_delta(noise, Enclosure(factor, factor), 200)
    exactly = hockey_stick(noise, factor, 200)
    assert 0 < exactly < Fraction(1, 10**9)
    assert found.lower <= exactly <= found.upper <= exactly * (1 + Fraction(1, 2**60))


@pytest.mark.parametrize("m", [1000, 10**5, 10**9])
def test_long_shifts_are_quick(m: int) -> None:
    """Laplace noise of scale 3: delta = 1 - e^((epsilon - m/scale)/2) up to the mass of a point; 1 in the limit."""
    noise = dp.laplace(3)
    assert is_long(noise.pmf, m)
    found = dp.delta(noise.pmf, 1, m)
    assert found.upper <= 1
    assert float(found.lower) == pytest.approx(1 - exp((1 - m / 3) / 2), abs=1e-12)


def test_long_shifts_of_private_noise_lose_nothing() -> None:
    noise = dp.calibrate("laplace", epsilon=1, sensitivity=10**6)
    assert noise.proved_delta == (0, 0)
    assert dp.delta(dp.laplace(3).pmf, 334, 1000) == (0, 0)


def test_a_tail_below_the_fixed_point_is_counted() -> None:
    """A last period of hardly any mass whose tail falls so slowly that it adds up."""
    slow = Pmf(0, (1 << 300, 1), tails=Tails(1, right=1 - Fraction(1, 1 << 9)))
    growth = exp_enclosure(Fraction(1))
    found = enclosed_delta(slow, growth, 1)
    assert found.lower <= worst_hockey_stick(slow, growth.upper, 1)
    assert worst_hockey_stick(slow, growth.lower, 1) <= found.upper


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda noise: dp.least_epsilon(noise, 10**6),
            "sensitivity: is 1000000 lattice steps, too many",
        ),
        (
            lambda noise: dp.privacy_profile(noise.pmf, sensitivity=10**4),
            "sensitivity: is 10000 lattice steps, too many",
        ),
        (
            lambda noise: dp.sufficient_delta(noise, 1, 10**4),
            "sensitivity: is 10000 lattice steps, too many",
        ),
        (lambda noise: dp.cut_guarantee(noise, 10**4), "cut: reaches too far"),
    ],
)
def test_what_has_no_short_exact_answer_is_refused(ask, said: str) -> None:
    with pytest.raises(dp.InputError, match=said):
        ask(dp.laplace(3))
