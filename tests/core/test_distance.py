"""W1 between an input and input plus noise against the exact sum over all cuts of the convolved law."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.distance import wasserstein_distance
from dpopt.pmf import Pmf, Tails
from dpopt.problem.families.wasserstein import WassersteinTerm

from .series import laws, written_out

bounded = settings(derandomize=True, max_examples=60, deadline=None)


def by_cuts(source: Pmf, noise: Pmf) -> tuple[Fraction, Fraction]:
    """Lower and upper bounds of the sum over all cuts k of |F(k) - G(k)|, from 120 periods of the noise written out.

    Beyond what is written out both distribution functions are within the missing mass of their limits, and the
    missing cuts add at most the missing mass's expected distance.
    """
    blocks = 120
    explicit = written_out(noise, blocks)
    sums: dict[int, Fraction] = {}
    for j, w in explicit.items():
        for i, v in enumerate(source.weights):
            k = source.start + i + j
            sums[k] = sums.get(k, Fraction(0)) + w * v
    total = noise.total * source.total
    low = min([*sums, source.start])
    high = max([*sums, source.end])
    missing = noise.total - sum(explicit.values(), Fraction(0))
    left_missing = Fraction(0)  # the part of it that lies to the left, below every cut of the window
    if noise.tails is not None and noise.tails.left is not None:
        r, period = noise.tails.left, noise.tails.period
        left_missing = sum(noise.weights[:period]) * r ** (blocks + 1) / (1 - r)
    distance = Fraction(0)
    f, g = Fraction(0), left_missing / noise.total
    for k in range(low, high + 1):
        if source.start <= k <= source.end:
            f += Fraction(source.weights[k - source.start]) / source.total
        g += sums.get(k, Fraction(0)) / total
        distance += abs(f - g)
    reach = (high - low + 1) * 4 + 1000
    return distance, distance + missing / noise.total * reach


@given(laws(tails=False, longest=6), laws())
@bounded
def test_the_sum_over_all_cuts(source: Pmf, noise: Pmf) -> None:
    """Enclosed, with tails of any period on one side or both, noise far to either side of 0 and gaps."""
    low, high = WassersteinTerm(source).value(noise)
    below, above = by_cuts(source, noise)
    assert low <= above and below <= high
    assert high - low <= Fraction(1, 2**100)
    assert above - below <= Fraction(1, 2**90), "the second method is not fine enough"


@given(laws(tails=False, longest=4), laws(longest=4), st.integers(-40, 40))
@bounded
def test_noise_far_from_zero(source: Pmf, noise: Pmf, by: int) -> None:
    """A core far outside the input's range: its tail runs through the range, or the range lies beyond it."""
    moved = Pmf(noise.start + by, noise.weights, tails=noise.tails)
    low, high = WassersteinTerm(source).value(moved)
    below, above = by_cuts(source, moved)
    assert low <= above and below <= high
    if noise.tails is None and (moved.start >= 0 or moved.end <= 0):
        assert low <= abs(moved.mean) <= high  # everything moves the same way: the distance is the mean shift


@pytest.mark.parametrize("noise", [Pmf(-1, (1, 2, 1)), Pmf(0, (1,), tails=Tails(1, "1/3", "1/2")), Pmf(2, (1, 0, 4))])
def test_a_point_input_makes_it_the_mean_absolute_noise(noise: Pmf) -> None:
    """No open cut: the linear cost alone, exactly."""
    low, high = WassersteinTerm(dp.point(7).pmf).value(noise)
    assert low == high == noise.absolute_moment(1)


def test_no_noise_is_no_distance() -> None:
    """W1 = 0 is enclosed for an input with a long range."""
    low, high = WassersteinTerm(dp.poisson(10).pmf).value(Pmf(0, (1,)))
    assert 0 <= low <= high <= Fraction(1, 2**100)


def test_a_lattice_scales_the_distance() -> None:
    """Data units: the same weights on a step of 1/4 are a quarter as far apart."""
    source, noise = (1, 2, 3), (1, 4, 1)
    coarse = WassersteinTerm(Pmf(0, source)).value(Pmf(-1, noise))
    fine = WassersteinTerm(Pmf(0, source, "1/4")).value(Pmf(-1, noise, "1/4"))
    assert coarse.lower <= 4 * fine.upper and 4 * fine.lower <= coarse.upper


def test_a_long_exact_value_is_rounded_outward() -> None:
    """A value with a denominator of 8,000 bits is enclosed by two short numbers."""
    noise = Pmf(0, (1,), tails=Tails(1, Fraction(1, (1 << 4000) - 1), Fraction(1, (1 << 4000) + 1)))
    low, high = WassersteinTerm(dp.point(0).pmf).value(noise)
    assert low <= noise.absolute_moment(1) <= high
    assert max(low.denominator, high.denominator) <= 1 << 128
    assert wasserstein_distance(dp.point(0).pmf, noise, Fraction(3)) == (3, 3)
