"""Noise on a lattice: closed forms by the Taylor series of e^x, definitions point by point, privacy at every shift."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from decimal import localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.distributions import (
    Discretisation,
    Distribution,
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
from dpopt.pmf import Pmf
from dpopt.privacy.ratios import largest_ratio

from .series import decimal, exp_between
from .test_distributions import survival

bounded = settings(derandomize=True, max_examples=60, deadline=None)
HALF = Fraction(1, 2)
scales = st.fractions(min_value=Fraction(1, 40), max_value=60, max_denominator=50)
steps = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(7)])
heights = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50)


def close(found: Fraction, low: Fraction, high: Fraction, bits: int = 60) -> bool:
    """Whether a mass agrees with what encloses it, to a relative 2^-bits."""
    return low * (1 - Fraction(1, 2**bits)) <= found <= high * (1 + Fraction(1, 2**bits))


def falls_no_faster(pmf: Pmf, rate: Fraction, shift: int) -> bool:
    """Whether the noise is exactly epsilon-DP with epsilon = shift * rate, and for hardly less."""
    numerator, denominator = largest_ratio(pmf, shift)
    low, high = exp_between(shift * rate, 400)
    return high * (1 - Fraction(1, 2**60)) <= Fraction(numerator, denominator) <= low


# --- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["7.5", "1", "1/3", "1/250", "1000", "1e5", "1e15"])
@pytest.mark.parametrize("step", ["1", "0.3"])
def test_laplace_masses(scale: str, step: str) -> None:
    """p(0) = 1 - e^(-x/2) and p(k) = sinh(x/2) e^(-x k), x = step/scale, in the core and far out."""
    noise = laplace(scale, step=step).pmf
    x = Fraction(step) / Fraction(scale)
    root_low, root_high = exp_between(-x / 2, 800)
    assert noise.is_symmetric and noise.step == Fraction(step)
    assert close(noise.probability(0), 1 - root_high, 1 - root_low)
    for k in (1, 2, 3, 11, noise.end, noise.end + 1, noise.end + 5):
        low, high = exp_between(-x * k, 800)
        sinh = ((1 / root_high - root_high) / 2, (1 / root_low - root_low) / 2)
        assert close(noise.probability(k), sinh[0] * low, sinh[1] * high, 50), k


@given(scales, st.fractions(-3, 3, max_denominator=20), steps, st.integers(1, 12), st.sampled_from(Discretisation))
@bounded
def test_laplace_is_private_at_every_shift(
    scale: Fraction, mean: Fraction, step: Fraction, shift: int, discretisation: Discretisation
) -> None:
    """epsilon = m/scale for every centre, step and way to make it discrete; tight, and not beyond it by a bit."""
    noise = laplace(scale, mean, step=step, discretisation=discretisation).pmf
    assert falls_no_faster(noise, step / scale, shift)


@pytest.mark.parametrize("mean", ["0.499999999999999999999999999", "1/2", "-1e-30", "1e-60", "0.5000000000001"])
@pytest.mark.parametrize("scale", ["1/10", "3", "1e6"])
def test_laplace_with_its_centre_at_an_edge(mean: str, scale: str) -> None:
    """Rounding leaves no slack there: the middle is held to its neighbours."""
    for shift in (1, 2, 7):
        assert falls_no_faster(laplace(scale, mean).pmf, 1 / Fraction(scale), shift)


def test_laplace_off_the_lattice_by_integrals() -> None:
    """Mean 1/3: each cell is a difference of the distribution function."""
    noise, mean = laplace(2, "1/3").pmf, Fraction(1, 3)

    def below(x: Fraction) -> tuple[Fraction, Fraction]:
        low, high = exp_between(-abs(x - mean) / 2, 300)
        return (low / 2, high / 2) if x < mean else (1 - high / 2, 1 - low / 2)

    for k in range(-9, 10):
        (first, second), (third, fourth) = below(k - HALF), below(k + HALF)
        assert close(noise.probability(k), third - second, fourth - first), k


def test_floor_is_the_mass_of_a_cell_to_the_right() -> None:
    """[k, k+1]: the Laplace cell is (1 - 1/e) e^-k / 2, mirrored about -1/2; the Gaussian by survival functions."""
    noise = laplace(1, discretisation="floor").pmf
    for k in range(6):
        (low, high), (unit_low, unit_high) = exp_between(Fraction(-k), 300), exp_between(Fraction(-1), 300)
        assert close(noise.probability(k), (1 - unit_high) * low / 2, (1 - unit_low) * high / 2)
        assert noise.probability(k) == noise.probability(-1 - k)
    assert noise.mean == -HALF
    floored = gaussian("0.1", 3, step="1/2", discretisation=Discretisation.FLOOR).pmf
    assert floored.step == HALF
    with localcontext() as context:
        context.prec = 160
        for k in (-9, -1, 0, 1, 4):
            at = [decimal((Fraction(k + side, 2) - Fraction(1, 10)) / 3) for side in (0, 1)]
            mass = Fraction(survival(at[0]) - survival(at[1]))
            assert abs(floored.probability(k) - mass) < Fraction(1, 2**110)
    assert float(floored.mean) == pytest.approx(0.1 - 0.25, abs=1e-12)


def test_gaussian_on_a_lattice_is_the_scaled_one() -> None:
    """Rounded to multiples of 1/2: twice the spread on the integers."""
    assert gaussian(1, 2, step="1/2").pmf == Pmf((whole := gaussian(2, 4).pmf).start, whole.weights, HALF)
    assert type(gaussian(0, 5, step=1.0, discretisation="round")) is type(gaussian(0, 5))


@pytest.mark.parametrize("rate", ["0.1", "2/15", "1", "4", "1e-4"])
def test_geometric_and_exponential_masses(rate: str) -> None:
    """(1-q)/(1+q) q^|k| and (1-q) q^k."""
    q_low, q_high = exp_between(-Fraction(rate), 600)
    two, one = geometric(rate).pmf, exponential(rate).pmf
    assert two.is_symmetric and one.weight(-1) == 0 and one.start == 0
    for k in (0, 1, 2, 30, two.end + 3):
        assert close(two.probability(k), (1 - q_high) / (1 + q_high) * q_low**k, (1 - q_low) / (1 + q_low) * q_high**k)
        assert close(one.probability(k), (1 - q_high) * q_low**k, (1 - q_low) * q_high**k)
    for shift in (1, 5, 40):
        assert falls_no_faster(two, Fraction(rate), shift)


# --- staircases, point by point --------------------------------------------------------------------------------------


@given(st.integers(1, 7), heights, st.integers(-40, 40), st.integers(1, 25))
@bounded
def test_equal_staircase_is_its_formula(width: int, height: Fraction, k: int, shift: int) -> None:
    """C h^floor(|k|/a), C = (1-h)/(2a-1+h); half open C = (1-h)/(2a) and mean -1/2; c_b = h^-ceil(m/a), exactly."""
    centred, half_open = staircase(width, height).pmf, staircase(width, height, form="half-open").pmf
    assert centred.probability(k) == (1 - height) / (2 * width - 1 + height) * height ** (abs(k) // width)
    level = k // width if k >= 0 else (-k - 1) // width
    assert half_open.probability(k) == (1 - height) / (2 * width) * height**level
    assert (centred.mean, half_open.mean) == (0, -HALF)
    for noise in (centred, half_open):
        numerator, denominator = largest_ratio(noise, shift)
        assert Fraction(numerator, denominator) == height ** (-shift // width)


@given(st.sampled_from(["0.1", "1", "2.5", "9"]), st.integers(1, 9), st.data())
@bounded
def test_optimal_staircase_is_its_definition(epsilon: str, m: int, data: st.DataObject) -> None:
    """a b^k on the inner part of a stair and a b^(k+1) on the outer; private at exactly this epsilon, for any r."""
    r = data.draw(st.integers(1, m))
    noise = optimal_staircase(epsilon, m, r).pmf
    b = noise.tails.left  # type: ignore[union-attr]
    low, high = exp_between(-Fraction(epsilon), 300)
    assert close(b, low, high, 100)
    top = (1 - b) / (2 * r + 2 * b * (m - r) - (1 - b))
    for i in range(-3 * m, 3 * m + 1):
        k, j = divmod(abs(i), m)
        assert noise.probability(i) == top * b ** (k + (j >= r)), i
    assert dp.delta(noise, epsilon, m) == (0, 0)
    assert dp.delta(noise, Fraction(epsilon) - Fraction(1, 10**9), m).lower > 0


def test_rounded_laplace_is_not_the_geometric_mechanism() -> None:
    """P(0) = 1 - e^(-1/2) = 0.393 against (1 - 1/e)/(1 + 1/e) = 0.462: each family has its own name and its own p."""
    assert round(float(laplace(1).pmf.probability(0)), 3) == 0.393
    assert round(float(geometric(1).pmf.probability(0)), 3) == 0.462


# --- far parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-17", "1e-9", "1e-3", "50", "699"])
def test_far_parameters_are_exact(epsilon: str) -> None:
    """E|Z| near 1/epsilon for small epsilon, privacy exact in every case, and no float anywhere."""
    value = Fraction(epsilon)
    for noise in (laplace(1 / value).pmf, geometric(value).pmf, optimal_staircase(value, 1, 1).pmf):
        assert dp.delta(noise, value, 1) == (0, 0)
        if value < Fraction(1, 100):
            assert float(noise.absolute_moment(1) * value) == pytest.approx(1, abs=1e-3)
            assert float(noise.variance * value**2) == pytest.approx(2, abs=1e-3)


def test_tails_written_out_stay_short() -> None:
    """A wide law has a long period, so that 3,000 points of its tail need a few blocks and not 3,000 powers of e^-x."""
    for noise in (laplace(1000).pmf, geometric("1/1000").pmf, exponential("1/1000").pmf):
        assert max(w.bit_length() for w in noise.extended(3000).weights) < 2500


@pytest.mark.parametrize("noise", [
    laplace(3), geometric("1/2", step=2), exponential(1), staircase(3, "1/2"), optimal_staircase(1, 5, 2),
    gaussian(0, 2, step="1/3"), uniform(-1, "1/2", step="1/2"),
], ids=lambda noise: noise.type)  # fmt: skip
def test_noise_is_a_value(noise: Distribution) -> None:
    """Equal, hashable, pickled and copied with and without the cached pmf."""
    for _ in range(2):
        for other in (pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)):
            assert other == noise and hash(other) == hash(noise) and other.pmf == noise.pmf
    assert laplace("3") == laplace(3.0) != laplace(4)


def test_uniform_on_a_lattice() -> None:
    """Ends in data units."""
    assert uniform(-1, "1/2", step="1/2").pmf == Pmf(-2, (1, 1, 1, 1), HALF)
    assert uniform(-1, 2, step=1.0) == uniform(-1, 2)


def test_inputs_keep_their_form() -> None:
    """The laws that problem files and certificates know have the keys they always had."""
    assert dp.MinWasserstein(gaussian(0, 5)).plain()["input"] == {"type": "gaussian", "mean": 0, "sd": 5}
    assert dp.MinWasserstein(uniform(0, 5)).plain()["input"] == {"type": "uniform", "low": 0, "high": 5}
    assert dp.MinWasserstein(poisson(5)).plain()["input"] == {"type": "poisson", "rate": 5}


@pytest.mark.parametrize(("build", "message"), [
    (lambda: laplace(0), "scale: must be positive, not 0"),
    (lambda: laplace("1e300"), "scale: must lie between step/2700 and 1e150 step to be held exactly, not 1e300"),
    (lambda: laplace("1e-4"), "scale: must lie between step/2700 and 1e150 step to be held exactly, not 0.0001"),
    (lambda: laplace(1, discretisation="ceil"), "discretisation: must be one of round, floor, not 'ceil'"),
    (lambda: laplace(1, step=0), "step: must be positive, not 0"),
    (lambda: laplace(1, math.inf), "mean: must be finite"),
    (lambda: geometric("1e-300"), "rate: must lie between 1e-150/step and 2700/step to be held exactly, not 1e-300"),
    (lambda: geometric(1, step=3000), "rate: must lie between"),
    (lambda: exponential(-1), "rate: must be positive, not -1"),
    (lambda: staircase(0, "1/2"), "width: must be at least 1, not 0"),
    (lambda: staircase("3/2", "1/2"), "width: must be an integer"),
    (lambda: staircase(10**7, "1/2"), "width: makes more than"),
    (lambda: staircase(2, 1), "height: must lie strictly between 0 and 1, not 1"),
    (lambda: staircase(2, "1/2", form="left"), "form: must be one of centred, half-open, not 'left'"),
    (lambda: optimal_staircase(0, 3, 1), "epsilon: must be positive, not 0"),
    (lambda: optimal_staircase(701, 3, 1), "epsilon: must be at most 700"),
    (lambda: optimal_staircase("1e-300", 3, 1), "epsilon: must be at least 1e-140"),
    (lambda: optimal_staircase(1, 3, 4), "r: must be at most the sensitivity in steps, 3, not 4"),
    (lambda: optimal_staircase(1, "0.5", 1), "sensitivity: must be at least the step 1, not 1/2"),
    (lambda: optimal_staircase(1, 10**6, 1), "sensitivity: must be at most 100000 steps"),
    (lambda: gaussian(0, 10**6, step="1/2"), "sd / step: must be at most 100000"),
    (lambda: gaussian(0, 1, discretisation="up"), "discretisation: must be one of round, floor, not 'up'"),
    (lambda: uniform(0, "1/3", step="1/2"), "high: must be a multiple of the step 1/2, not 1/3"),
    (lambda: uniform(1, 0, step="1/2"), "high: must be at least low = 1, not 0"),
    (lambda: uniform(0, 10**7, step="1/2"), "high: makes more than"),
])  # fmt: skip
def test_what_cannot_be_held_is_said(build: Callable[[], Any], message: str) -> None:
    """At once, with the argument and its bounds; never a pmf that is something else."""
    with pytest.raises(InputError) as caught:
        build()
    assert str(caught.value).startswith(message)


def test_moments_of_noise_that_lies_far_out() -> None:
    """The tail on the near side passes over millions of points that are all below 2^-128: no powers are written out."""
    far, near = dp.laplace(3, 10**6).pmf, dp.laplace(3).pmf
    assert (far.mean - 10**6, far.start - 10**6) == (near.mean, near.start)
    assert dp.delta(far, 1) == dp.delta(near, 1) == (0, 0)
