"""Exact weights: the least private majorant against a brute-force fixpoint, and floats turned into integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.arithmetic import exp_enclosure
from dpopt.pmf import Pmf, Tails
from dpopt.privacy.majorant import least_majorant
from dpopt.privacy.ratios import largest_ratio
from dpopt.proof.weights import BIT_CAP, to_weights

bounded = settings(derandomize=True, max_examples=150, deadline=None)
weight_lists = st.lists(st.one_of(st.just(0), st.integers(0, 10**6)), min_size=1, max_size=14)
factors = st.fractions(min_value=1, max_value=20, max_denominator=12)


def fixpoint(weights: Sequence[int], factor: Fraction, shift: int) -> list[int]:
    """Raise whatever is too small for one of its neighbours until nothing changes: the least majorant by definition."""
    found = list(weights)
    changed = True
    while changed:
        changed = False
        for i in range(len(found)):
            for j in range(max(0, i - shift), min(len(found), i + shift + 1)):
                needed = math.ceil(Fraction(found[i]) / factor)
                if needed > found[j]:
                    found[j] = needed
                    changed = True
    return found


@pytest.mark.slow
@given(weight_lists, factors, st.integers(1, 6), st.integers(0, 5))
@bounded
def test_the_least_majorant_is_the_least(weights: list[int], factor: Fraction, shift: int, beyond: int) -> None:
    """Equal to the fixpoint, in the core and beyond it, for masses on either side of a gap."""
    found = least_majorant(weights, factor, shift, beyond=beyond)
    assert found == fixpoint([0] * beyond + weights + [0] * beyond, factor, shift)


@given(weight_lists, factors, st.integers(1, 6))
@bounded
def test_the_majorant_is_private_and_minimal(weights: list[int], factor: Fraction, shift: int) -> None:
    """Never below what it majorises, every pair within the factor, and a second pass changes nothing."""
    found = least_majorant(weights, factor, shift)
    assert all(a >= b for a, b in zip(found, weights, strict=True))
    for i, a in enumerate(found):
        for b in found[max(0, i - shift) : i + shift + 1]:
            assert a <= factor * b
    assert least_majorant(found, factor, shift) == found
    assert least_majorant(weights[::-1], factor, shift) == found[::-1]
    for i, (a, b) in enumerate(zip(found, weights, strict=True)):
        if a > b:  # one less anywhere that was raised, and some pair is too far apart
            near = found[max(0, i - shift) : i] + found[i + 1 : i + shift + 1]
            assert any(c > factor * (a - 1) for c in near)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_with_tails_it_is_private_on_all_integers(m: int) -> None:
    """m - 1 points beyond each end, then tails of ratio 1/E: every pair of integers within E, in exact arithmetic."""
    low = exp_enclosure(Fraction(1)).lower
    weights = [0, 3 << 150, 0, 0, 7 << 160, 1 << 20, 0, 0, 0, 1 << 158]
    found = least_majorant(weights, low, m, beyond=m - 1)
    pmf = Pmf(-(m - 1), found, tails=Tails(m, 1 / low, 1 / low))
    numerator, denominator = largest_ratio(pmf, m)
    assert denominator > 0 and Fraction(numerator, denominator) <= low
    assert all(pmf.weight(k) >= w for k, w in enumerate(weights))


def test_one_mass_becomes_the_geometric_law() -> None:
    """From a single mass: levels 2^20 / 2^ceil(d / m), and never below 1."""
    assert least_majorant([1 << 20], Fraction(2), 1, beyond=3) == [1 << n for n in (17, 18, 19, 20, 19, 18, 17)]
    assert least_majorant([8], Fraction(2), 2, beyond=5) == [1, 2, 2, 4, 4, 8, 4, 4, 2, 2, 1]
    assert least_majorant([1], Fraction(2), 1, beyond=2) == [1] * 5
    assert least_majorant([0, 0], Fraction(2), 1) == [0, 0]
    assert least_majorant([5, 0, 9], Fraction(1), 1) == [9, 9, 9]


@given(st.lists(st.floats(0, 1).map(lambda x: 0.0 if x < 1e-300 else x), min_size=1, max_size=9).filter(any))
@bounded
def test_floats_become_their_own_ratios(p: list[float]) -> None:
    """96 bits for the smallest mass, a zero stays zero; within the cap the weights are the floats exactly."""
    weights = to_weights(np.array(p))
    assert [w == 0 for w in weights] == [x == 0 for x in p]
    place = p.index(max(p))
    unit = Fraction(weights[place]) / Fraction(p[place])
    for x, w in zip(p, weights, strict=True):
        assert Fraction(x) * unit == w
    assert min(w.bit_length() for w in weights if w) >= 96


def test_depth_and_cap() -> None:
    """Room for a tail of e^-depth below 1, but never more than 4,096 bits."""
    shallow, deep = (to_weights(np.array([0.5, 0.25]), depth=d)[0].bit_length() for d in (0.0, 1000.0))
    assert deep >= 1000 / math.log(2) + 90 > shallow >= 96
    assert to_weights(np.array([1.0, 0.5]), depth=1e9)[0] == 1 << BIT_CAP
    assert to_weights(np.array([0.0, 5e-324, 1.0]))[1] > 0
