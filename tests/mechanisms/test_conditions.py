"""Theorems 1 and 2 on exact pmfs: by brute force over long windows, by closed forms, and where the paper is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import exp_enclosure, is_at_most_exp
from dpopt.distributions import exponential, gaussian, geometric, laplace, staircase, uniform
from dpopt.errors import InputError, NotVerifiedError
from dpopt.mechanisms.conditions import (
    cut_guarantee,
    least_epsilon,
    sufficient_delta,
)
from dpopt.pmf import Pmf, Tails
from dpopt.privacy.divergence import hockey_stick
from dpopt.privacy.ratios import largest_ratio
from dpopt.privacy.shifts import is_unimodal

from .reference_values import REFERENCE, is_to_the_digits

bounded = settings(derandomize=True, max_examples=100, deadline=None)
HALF = Fraction(1, 2)
shifts = st.integers(1, 40)
epsilons = st.fractions(min_value=0, max_value=4, max_denominator=8)


@st.composite
def noises(draw: st.DrawFn) -> Pmf:
    """A short core, zeros and dips among its weights, with tails of any period on both sides, on one or on none."""
    weights = draw(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
    start, step = draw(st.integers(-5, 5)), draw(st.sampled_from([Fraction(1), HALF]))
    left, right = draw(st.sampled_from([(True, True), (True, True), (True, False), (False, True), (False, False)]))
    if not (left or right):
        return Pmf(start, weights, step)
    ratios = st.fractions(min_value=Fraction(1, 5), max_value=Fraction(9, 10), max_denominator=10)
    period = draw(st.integers(1, len(weights)))
    return Pmf(start, weights, step, Tails(period, draw(ratios) if left else None, draw(ratios) if right else None))


def window(pmf: Pmf, shift: int) -> range:
    """Core, shift and two periods on either side, twice over."""
    reach = 2 * (shift + 2 * len(pmf.weights) + 2)
    return range(pmf.start - reach, pmf.end + reach + 1)


# --- Theorem 1 -------------------------------------------------------------------------------------------------------


@given(noises(), shifts)
@bounded
def test_the_pair_of_theorem_1(pmf: Pmf, shift: int) -> None:
    """The largest ratio of all pairs of a long window, attained by the pair named; infinite exactly with a zero."""
    found = least_epsilon(pmf, shift * pmf.step)
    numerator, denominator = largest_ratio(pmf, shift)
    assert found.is_finite == (denominator > 0)
    assert abs(found.likely - found.unlikely) <= shift * pmf.step
    for point, mass in ((found.likely, found.likely_mass), (found.unlikely, found.unlikely_mass)):
        assert mass == pmf.probability(int(point / pmf.step))
    if found.is_finite:
        assert found.ratio == Fraction(numerator, denominator) == found.likely_mass / found.unlikely_mass
        low, high = found.epsilon
        assert exp_enclosure(low).lower <= found.ratio <= exp_enclosure(high).upper
    else:
        assert found.likely_mass > 0 == found.unlikely_mass and abs(found.likely - found.unlikely) == pmf.step


@given(noises(), st.integers(1, 12))
@bounded
def test_a_long_shift_by_brute_force(pmf: Pmf, shift: int) -> None:
    """Without the package's own windows: every pair within the shift."""
    weights = {k: pmf.weight(k) for k in window(pmf, shift)}
    pairs = [(a, weights.get(k + s, a)) for k, a in weights.items() for s in range(-shift, shift + 1) if a]
    found = least_epsilon(pmf, shift * pmf.step)
    if found.is_finite:
        assert found.ratio == max(a / b for a, b in pairs)
    else:
        assert any(b == 0 for _, b in pairs)


def test_a_dip_in_the_core_beside_slow_tails() -> None:
    """The dip decides for short shifts, the far end of a tail for long ones; both in closed form."""
    r = Fraction(99, 100)
    pmf = Pmf(-1, (1000, 1, 1000), tails=Tails(1, r, r))
    for m in (1, 5, 100):
        assert least_epsilon(pmf, m).ratio == 1000
        assert least_epsilon(pmf, m).unlikely == 0
    found = least_epsilon(pmf, 2000)
    assert found.ratio == r**-2000 > 1000
    assert abs(found.likely - found.unlikely) == 2000
    assert found.ratio == found.likely_mass / found.unlikely_mass


@pytest.mark.parametrize("m", [1, 4, 15, 1000])
def test_theorem_1_in_closed_form(m: int) -> None:
    """Laplace m/scale, geometric rate m, staircase ceil(m/a) ln(1/h): at any sensitivity."""
    assert float(least_epsilon(laplace(7), m).epsilon) == pytest.approx(m / 7, rel=1e-15)
    assert least_epsilon(laplace(7), m).epsilon.upper <= Fraction(m, 7) + Fraction(1, 2**60)
    assert float(least_epsilon(geometric("1/8"), m).epsilon) == pytest.approx(m / 8, rel=1e-15)
    assert least_epsilon(staircase(5, "4/5"), m).ratio == Fraction(5, 4) ** -(-m // 5)


def test_small_epsilons_keep_their_digits() -> None:
    """A relative accuracy of 2^-64, where an absolute one would say 0."""
    low, high = least_epsilon(geometric("1e-30"), 1).epsilon
    assert 0 < low <= high < low * (1 + Fraction(1, 2**50))
    assert float(low) == pytest.approx(1e-30, rel=1e-12)


@pytest.mark.parametrize("noise", [
    uniform(0, 9), gaussian(0, 3), exponential("0.1"),
    Pmf(-20, [int(laplace(2).pmf.probability(k) * 2**60) for k in range(-20, 21)]),
], ids=["uniform", "gaussian", "exponential", "laplace in a window"])  # fmt: skip
def test_what_is_not_epsilon_dp(noise: Any) -> None:
    """The precondition (9): a zero beside a mass. The paper calls the one-sided exponential epsilon-DP; it is not."""
    found = least_epsilon(noise, 2)
    assert not found.is_finite and found.likely_mass > 0 == found.unlikely_mass
    with pytest.raises(NotVerifiedError, match="not epsilon-DP for any epsilon: p"):
        _ = found.epsilon
    for epsilon in (1, 50):
        assert dp.delta(noise, epsilon, 2).lower > 0


def test_a_ratio_close_to_e_is_decided() -> None:
    """Rationals far closer to e than 2^-128, on both sides; at epsilon 0 by equality."""
    low, high = exp_enclosure(Fraction(1), 700)
    assert is_at_most_exp(low, Fraction(1)) and not is_at_most_exp(high, Fraction(1))
    assert is_at_most_exp(Fraction(1), Fraction(0)) and not is_at_most_exp(1 + Fraction(1, 10**300), Fraction(0))


# --- the tight delta -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(noises(), epsilons, st.integers(1, 9))
@bounded
def test_delta_is_the_worst_of_all_shifts(pmf: Pmf, epsilon: Fraction, shift: int) -> None:
    """What Theorem 1 and the lemma on unimodal noise leave out changes nothing but the width of the enclosure."""
    low, high = exp_enclosure(epsilon)
    upper, lower = (
        max(hockey_stick(pmf, e, sign * s) for s in range(1, shift + 1) for sign in (1, -1)) for e in (low, high)
    )
    found = dp.delta(pmf, epsilon, shift * pmf.step)
    assert found.lower == lower and found.upper in (upper, 0)
    assert found.upper == upper or least_epsilon(pmf, shift * pmf.step).epsilon.lower <= epsilon


@given(noises())
@bounded
def test_unimodal_by_looking(pmf: Pmf) -> None:
    """A rise after a fall anywhere in a long window, or none."""
    weights = [pmf.weight(k) for k in window(pmf, 9)]
    moves = [b > a for a, b in zip(weights, weights[1:], strict=False) if a != b]
    assert is_unimodal(pmf) == (moves == sorted(moves, reverse=True))


@pytest.mark.slow
@given(noises().filter(is_unimodal), epsilons, st.integers(1, 8))
@bounded
def test_of_unimodal_noise_the_longest_shift_is_the_worst(pmf: Pmf, epsilon: Fraction, shift: int) -> None:
    """The lemma: delta for shifts up to s does not change when the shorter shifts are left out."""
    factor = exp_enclosure(epsilon).lower
    every = [hockey_stick(pmf, factor, sign * s) for s in range(1, shift + 1) for sign in (1, -1)]
    assert max(every) == max(every[-2:])


# --- Theorem 2 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", REFERENCE["theorem2"], ids=lambda row: row["epsilon"])
def test_theorem_2_reference_values(row: dict[str, Any]) -> None:
    """Group `theorem2`: the sufficient and the tight delta of rounded Gaussian noise, to the digits printed."""
    found = sufficient_delta(gaussian(0, row["sigma"]), row["epsilon"], row["sensitivity"])
    assert is_to_the_digits(found.sufficient, row["theorem2_delta"])
    assert is_to_the_digits(found.tight.upper, row["tight_delta"])


@pytest.mark.slow
@given(noises(), epsilons, st.integers(1, 9))
@bounded
def test_theorem_2_by_its_definition(pmf: Pmf, epsilon: Fraction, shift: int) -> None:
    """Theta_0 point by point; its mass is at least the tight delta, and the points and the rest add up to it."""
    found = sufficient_delta(pmf, epsilon, shift * pmf.step)
    assert found.tight.lower <= found.sufficient <= 1
    low, high = exp_enclosure(epsilon, 300)
    points, seen = {}, Fraction(0)
    for k in range(pmf.start - shift - 40, pmf.end + shift + 41):
        seen += pmf.probability(k)
        least = min(pmf.weight(k + s) for s in range(-shift, shift + 1))
        assert (pmf.weight(k) > low * least) == (pmf.weight(k) > high * least) or epsilon == 0
        if pmf.weight(k) > low * least:
            points[k * pmf.step] = pmf.probability(k)
    inner = [pmf.probability(int(point / pmf.step)) for point in found.points]
    assert set(found.points) <= set(points) and found.sufficient == sum(inner) + found.beyond
    assert 0 <= found.sufficient - sum(points.values()) <= 1 - seen
    if pmf.tails is None:
        assert set(found.points) == set(points) and found.beyond == 0


@pytest.mark.slow
@given(noises(), epsilons, st.integers(1, 6))
@bounded
def test_theorem_2_beyond_the_window(pmf: Pmf, epsilon: Fraction, shift: int) -> None:
    """A core written out farther changes neither the mass of Theta_0 nor what the text's wording leaves out."""
    near, far = (sufficient_delta(p, epsilon, shift * p.step) for p in (pmf, pmf.extended(20)))
    assert (near.sufficient, near.as_printed) == (far.sufficient, far.as_printed)
    assert far.beyond <= near.beyond


@pytest.mark.parametrize(("points", "m"), [(10, 1), (10, 3), (7, 2)])
def test_theorem_2_as_printed_is_false_for_uniform_noise(points: int, m: int) -> None:
    """Indexed by the denominator the split leaves out only points without mass: delta = 0. The truth is m/N."""
    noise = uniform(0, points - 1)
    found = sufficient_delta(noise, 2, m)
    assert found.as_printed == 0
    assert found.tight == (Fraction(m, points), Fraction(m, points))
    assert found.sufficient == Fraction(2 * m, points)
    event = sum(noise.pmf.probability(k) for k in range(m))  # the outputs 0..m-1, which data moved by m cannot give
    moved = sum(noise.pmf.probability(k - m) for k in range(m))
    assert event > math.exp(2) * moved + found.as_printed


def test_theorem_2_with_all_ratios_bounded() -> None:
    """Theta_0 is empty from the least epsilon on, which is Theorem 1; below it geometric noise has nothing else."""
    noise = geometric("1/2")
    assert sufficient_delta(noise, 1, 2).points == ()
    assert sufficient_delta(noise, 1, 2).sufficient == sufficient_delta(noise, 1, 2).tight.upper == 0
    below = sufficient_delta(noise, "0.999", 2)
    assert below.sufficient == 1 and 0 < below.tight.upper < Fraction(1, 1000)


def test_a_cut_of_gaussian_noise() -> None:
    """Group `mechanisms`: epsilon = ln p(K)/p(K+m), the mass outside, and the tight delta at that epsilon."""
    (row,) = (row for row in REFERENCE["mechanisms"] if row["name"] == "gaussian (rounded), cut at K")
    noise = gaussian(0, row["sigma"])
    found = cut_guarantee(noise, row["K"], row["sensitivity"])
    assert found.ratio == noise.pmf.probability(9) / noise.pmf.probability(10)
    assert is_to_the_digits(found.epsilon.upper, row["epsilon"])
    assert is_to_the_digits(found.sufficient, row["mass_outside"])
    assert is_to_the_digits(found.tight, row["tight_delta"])
    assert cut_guarantee(gaussian(4, row["sigma"]), 9, 1, centre=4) == found
    assert cut_guarantee(gaussian(0, 6, step=2), 18, 2).tight == found.tight


# --- what is wrong, and what the paper says of the distance ----------------------------------------------------------


masses = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)


@given(masses, masses, masses, st.fractions(0, 1, max_denominator=9))
@bounded
def test_the_wasserstein_distance_is_convex_in_the_noise(
    law: list[int], first: list[int], second: list[int], share: Fraction
) -> None:
    """The paper calls its problem non-convex; at no mixture is W1 above the mixture of the two distances."""

    def distance(noise: list[Fraction]) -> Fraction:
        """W1 between the law on 0..4 and law plus noise on -2..2, by distribution functions."""
        apart, total = Fraction(0), Fraction(0)
        for k in range(-2, 7):
            output = sum(law[i] * noise[k - i + 2] for i in range(5) if 0 <= k - i + 2 < 5)
            apart += (law[k] if 0 <= k < 5 else 0) - output
            total += abs(apart)
        return total

    one, other = ([Fraction(w, sum(noise)) for w in noise] for noise in (first, second))
    mixed = [share * x + (1 - share) * y for x, y in zip(one, other, strict=True)]
    assert distance(mixed) <= share * distance(one) + (1 - share) * distance(other)


@pytest.mark.parametrize(("ask", "message"), [
    (lambda: least_epsilon(laplace(1), 0), "sensitivity: must be positive, not 0"),
    (lambda: least_epsilon(laplace(1), "0.5"), "sensitivity: must be at least the lattice step 1"),
    (lambda: least_epsilon([1, 2]), "pmf: must be a Pmf or have one as its attribute 'pmf', not list"),
    (lambda: sufficient_delta(laplace(1), -1), "epsilon: must be at least 0, not -1"),
    (lambda: sufficient_delta(uniform(0, 3), 701), "epsilon: must be at most 700"),
    (lambda: cut_guarantee(gaussian(0, 1), -1), "cut: must be at least 0, not -1"),
    (lambda: cut_guarantee(gaussian(0, 1), 100), "cut: must leave out every point with a zero"),
])  # fmt: skip
def test_what_is_wrong_is_said(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ask()
    assert str(caught.value).startswith(message)
