"""Privacy profiles against `dpopt.delta`, brute force, closed forms and the reference curves."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import Enclosure, exp_enclosure, log_enclosure
from dpopt.errors import InputError
from dpopt.family.members import family_pmf
from dpopt.family.profile import family_delta, family_rate
from dpopt.pmf import Pmf, Tails
from dpopt.privacy.divergence import hockey_stick, worst_hockey_stick
from dpopt.privacy.losses import Curve, Losses
from dpopt.privacy.profile import Profile, privacy_profile
from dpopt.privacy.profile import epsilon as least_epsilon
from dpopt.privacy.ratios import largest_ratio

from .series import exp_between, gauss_weights, laws, written_out

CURVES: dict[str, Any] = json.loads((Path(__file__).parent / "delta_curves.json").read_text(encoding="utf-8"))
bounded = settings(derandomize=True, max_examples=80, deadline=None)
epsilons = st.fractions(min_value=0, max_value=6, max_denominator=50)
HALF = Fraction(1, 2)


def unit(text: str) -> Fraction:
    """One unit of the last digit that a reference value prints."""
    mantissa, _, exponent = text.partition("e")
    return Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def agrees(found: Enclosure, text: str) -> bool:
    """To the digits printed; gamma itself has 22 digits."""
    wanted = Fraction(text)
    room = unit(text) + abs(wanted) / 10**15
    return found.lower - room <= wanted <= found.upper + room and found.width <= room


def two_sided(scale: Fraction, half: int) -> Pmf:
    """The discrete Laplace pmf e^(-|z| / scale), cut off at -half and half."""
    side = [int(exp_between(-z / scale, 300)[0] * (1 << 300)) for z in range(half + 1)]
    return Pmf(-half, [*reversed(side[1:]), *side])


# --- the same as dpopt.delta -----------------------------------------------------------------------------------------


@pytest.mark.slow
@given(laws(), st.integers(1, 7), st.lists(epsilons, min_size=1, max_size=8))
@bounded
def test_a_profile_is_delta_at_each_epsilon(pmf: Pmf, m: int, values: list[Fraction]) -> None:
    """Equal as rationals, both ends: cores with zeros, tails of any period, shifts beyond the core."""
    profile = privacy_profile(pmf, values, sensitivity=m)
    assert profile.epsilons == tuple(values)
    for value, low, high in zip(values, profile.lower, profile.upper, strict=True):
        assert (low, high) == dp.delta(pmf, value, m) == profile.at(value)


@pytest.mark.slow
@given(laws(longest=4), st.fractions(min_value=Fraction(1, 3), max_value=3, max_denominator=6), epsilons)
@bounded
def test_on_a_lattice(pmf: Pmf, step: Fraction, value: Fraction) -> None:
    """Sensitivity in data units: floor(m / step) lattice steps."""
    fine = Pmf(pmf.start, pmf.weights, step, pmf.tails)
    for m in (step, Fraction(7, 2) * step, 4 * step):
        profile = privacy_profile(fine, [value], sensitivity=m)
        assert profile.at(value) == dp.delta(fine, value, m) == dp.delta(pmf, value, int(m // step))
        assert profile.sensitivity == m


@given(laws(longest=5), st.integers(1, 5), st.integers(1, 4), st.integers(0, 60))
@bounded
def test_ties_at_any_resolution(pmf: Pmf, m: int, bits: int, above: int) -> None:
    """With few bits almost all ratios share a floor: the sums stay exact, and so does the inverse."""
    coarse, fine = Losses(pmf, m, bits), Losses(pmf, m, 200)
    factor = (1 << bits) + above
    exactly = worst_hockey_stick(pmf, Fraction(factor, 1 << bits), m)
    assert Fraction(coarse.worst([factor])[0], 1 << bits) / coarse.unit == exactly
    for level in (exactly, coarse.floor, (exactly + coarse.floor) / 2, (1 + coarse.floor) / 2):
        found = coarse.least_factor(level)
        assert found == fine.least_factor(level)
        assert found >= 1
        if level > coarse.floor and found > 1:
            assert worst_hockey_stick(pmf, found, m) == level


@pytest.mark.slow
@given(laws(longest=5), st.integers(1, 5))
@bounded
def test_the_least_factor_is_where_the_floor_begins(pmf: Pmf, m: int) -> None:
    """At a breakpoint hit exactly: a rational ratio, at which the sum is at its floor, and not just below it."""
    losses = Losses(pmf, m, 128)
    start = losses.least_factor(losses.floor)
    assert worst_hockey_stick(pmf, start, m) == losses.floor
    if start > 1:
        assert worst_hockey_stick(pmf, (start + max(1, start - Fraction(1, 10**60))) / 2, m) > losses.floor
    numerator, denominator = largest_ratio(pmf, m)
    if denominator:
        assert losses.floor == 0
        assert start == Fraction(numerator, denominator)
    else:
        assert losses.floor > 0


@pytest.mark.parametrize("others", [[(3, 2), (2, 0), (1, 5)], []])
def test_a_curve_of_tied_ratios(others: list[tuple[int, int]]) -> None:
    """Seven ratios between 1 and 3/2 with one floor, in every order of arrival: sums and inverse are exact."""
    ratios = [(7, 6), (9, 8), (5, 4), (8, 7), (9, 7), (4, 3), (7, 5)]
    for turn in range(len(ratios)):
        pairs = [*ratios[turn:], *ratios[:turn], *others]
        curve = Curve.of(pairs, 1)
        values = sorted(Fraction(a, b) for a, b in ratios)
        inner = [(a + b) / 2 for a, b in zip(values, values[1:], strict=False)]
        for factor in (*values, *inner, Fraction(21, 20)):
            level = sum((max(a - factor * b, Fraction(0)) for a, b in pairs), Fraction(0))
            assert curve.least_factor(level) == factor


@given(laws(longest=5), st.integers(1, 4), st.integers(1, 3))
@settings(derandomize=True, max_examples=50, deadline=None)
def test_the_inverse_at_and_beside_each_breakpoint(pmf: Pmf, m: int, bits: int) -> None:
    """Levels at, just above, just below and between the values at all ratios; most ratios share a floor."""
    losses = Losses(pmf, m, bits)
    points = range(pmf.start - m, pmf.end + m + 1)
    pairs = [(pmf.weight(k), pmf.weight(k - s)) for k in points for s in range(-m, m + 1) if s]
    values = sorted({worst_hockey_stick(pmf, a / b, m) for a, b in pairs if a > b > 0})
    near = Fraction(1, 10**9)
    between = [(a + b) / 2 for a, b in zip(values, values[1:], strict=False)]
    for level in [*values, *(v - near for v in values), *(v + near for v in values), *between]:
        if level < losses.floor:
            continue
        found = losses.least_factor(level)
        if found > 1:
            assert worst_hockey_stick(pmf, found, m) == level
            assert worst_hockey_stick(pmf, max(Fraction(1), found - near**2), m) > level
        else:
            assert found == 1 and worst_hockey_stick(pmf, found, m) <= level


# --- by brute force --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(laws(longest=5), st.integers(1, 5), st.fractions(min_value=0, max_value=3, max_denominator=20))
@settings(derandomize=True, max_examples=30, deadline=None)
def test_against_long_sums(pmf: Pmf, m: int, value: Fraction) -> None:
    """(p(k) - e^epsilon p(k - s))+ over 150 periods, all shifts, e^epsilon from a Taylor series."""
    explicit = written_out(pmf, 150)
    zero, total = Fraction(0), sum(explicit.values(), Fraction(0))
    left = pmf.tails is not None and pmf.tails.left is not None
    right = pmf.tails is not None and pmf.tails.right is not None
    first = min(explicit) + m if left else min(explicit)
    last = max(explicit) - m if right else max(explicit)
    low, high = privacy_profile(pmf, [value], sensitivity=m).at(value)
    below, above = exp_between(value, 200)
    room = Fraction(1, 2**90)
    sums = {
        factor: max(
            sum((max(explicit.get(k, zero) - factor * explicit.get(k - s, zero), zero) for k in range(first, last + 1)),
                zero)
            for s in range(-m, m + 1) if s
        ) / total
        for factor in (below, above)
    }  # fmt: skip
    assert low - room <= sums[above]
    assert sums[below] <= high + room
    assert high - low <= Fraction(1, 2**100)


@pytest.mark.slow
@given(laws(tails=False, longest=5), st.integers(1, 6), epsilons)
@bounded
def test_every_event_is_a_lower_bound(pmf: Pmf, m: int, value: Fraction) -> None:
    """P(Z in S) - e^epsilon P(Z + s in S) over all 2^n events of all shifts: the largest is the profile."""
    low, high = privacy_profile(pmf, [value], sensitivity=m).at(value)
    factor = exp_enclosure(value, 128)
    best = {f: Fraction(0) for f in factor}
    for s, chosen in product((*range(1, m + 1), *range(-m, 0)), range(1 << len(pmf.weights))):
        event = [pmf.start + i for i in range(len(pmf.weights)) if chosen >> i & 1]
        here = sum(map(pmf.probability, event), Fraction(0))
        there = sum((pmf.probability(k - s) for k in event), Fraction(0))
        for f in factor:
            best[f] = max(best[f], here - f * there)
    assert (low, high) == (best[factor.upper], best[factor.lower])


# --- shape of the curve ----------------------------------------------------------------------------------------------


@given(laws(), st.integers(1, 4), st.integers(0, 5000), st.integers(1, 3000))
@bounded
def test_falling_and_convex_in_e_to_the_epsilon(pmf: Pmf, m: int, first: int, gap: int) -> None:
    """Exactly, at three evenly spaced values of e^epsilon."""
    losses = Losses(pmf, m, 10)
    a, b, c = losses.worst([1024 + first, 1024 + first + gap, 1024 + first + 2 * gap])
    assert a >= b >= c >= 0
    assert a + c >= 2 * b
    assert Fraction(c, 1024) >= losses.floor * losses.unit


@given(laws(), st.integers(1, 4))
@bounded
def test_total_variation_at_zero(pmf: Pmf, m: int) -> None:
    """epsilon = 0, ties included: the total variation distance of the worst shift, exactly."""
    low, high = privacy_profile(pmf, [0], sensitivity=m).at(0)
    assert low == high == max(hockey_stick(pmf, Fraction(1), s) for s in range(1, m + 1))


@given(laws(), st.integers(1, 4))
@bounded
def test_beyond_the_plateau(pmf: Pmf, m: int) -> None:
    """From plateau_start on delta is the floor, exactly; before it, it is above."""
    profile = privacy_profile(pmf, [0, 700], sensitivity=m)
    start = profile.plateau_start
    assert start.width <= Fraction(1, 1 << 64)
    assert profile.at(start.upper) == profile.at(700) == (profile.floor, profile.floor)
    if start.lower > Fraction(1, 1000):
        assert profile.at(start.lower - Fraction(1, 1000)).lower > profile.floor


@pytest.mark.parametrize(("pmf", "end"), [
    (family_pmf(11, Fraction(1, 8)), 21 / 8),
    (Pmf(0, (1,), tails=Tails(1, HALF, HALF)), math.log(2)),
    (Pmf(0, (3, 0, 5), tails=Tails(1, HALF, HALF)), math.log(2)),
    (Pmf(0, (1, 10**9, 1)), math.log(10**9)),
])  # fmt: skip
def test_default_epsilons(pmf: Pmf, end: float) -> None:
    """200 short decimals, evenly spaced, from 0 to a little beyond the plateau."""
    profile = privacy_profile(pmf)
    values = profile.epsilons
    assert len(values) == 200 and values[0] == 0
    assert {b - a for a, b in zip(values, values[1:], strict=False)} == {values[1]}
    assert 1.02 * end <= values[-1] <= 1.13 * end
    assert float(profile.plateau_start) == pytest.approx(end, rel=1e-12)
    assert profile.upper[-1] == profile.lower[-1] == profile.floor
    assert all(a >= b for a, b in zip(profile.upper, profile.upper[1:], strict=False))


def test_default_epsilons_at_the_extremes() -> None:
    """No plateau to reach, one at once, and one beyond what e^epsilon may be."""
    assert privacy_profile(Pmf(0, (1,) * 10)).epsilons[-1] == 199 * Fraction(52, 10_000)
    assert privacy_profile(Pmf(0, (1,))).upper == (1,) * 200
    deep = privacy_profile(Pmf(0, (1,), tails=Tails(1, Fraction(1, 1 << 2000), Fraction(1, 1 << 2000))))
    assert float(deep.plateau_start) == pytest.approx(2000 * math.log(2), rel=1e-12)
    assert deep.epsilons[-1] == 700
    assert deep.upper[-1] > deep.floor == 0
    close = Pmf(-1, (1 << 80, (1 << 80) + 1, 1 << 80))
    assert 0 < privacy_profile(close).epsilons[-1] < Fraction(1, 10**18)


# --- which shifts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pmf", [
    family_pmf(9, Fraction(1, 12)),
    two_sided(Fraction(3), 12),
    Pmf(0, (1,), tails=Tails(1, Fraction(2, 3), HALF)),
    Pmf(2, (4, 2), tails=Tails(1, right=HALF)),
    Pmf(0, (4, 3, 1), tails=Tails(1, left=HALF, right=Fraction(1, 4))),
    Pmf(0, (4, 3, 1), tails=Tails(1, left=HALF, right=HALF)),  # neither unimodal nor log-concave where the tail begins
    Pmf(0, (2, 1), tails=Tails(2, Fraction(3, 4), Fraction(3, 4))),  # a shift by the period is harmless, by 1 it is not
    Pmf(0, (3, 4), tails=Tails(2, HALF, HALF)),  # looks unimodal as far as one point beyond the core
    Pmf(0, (9, 6, 4), tails=Tails(3, right=Fraction(8, 27))),  # geometric, in periods of three
    Pmf(0, (9, 6, 4), tails=Tails(3, right=Fraction(9, 27))),
    Pmf(0, (1, 0, 0, 1)),  # w(k)^2 >= w(k-1) w(k+1) holds at every k
    Pmf(0, (0, 1, 3, 0)),
    Pmf(0, (5, 5, 3, 3), tails=Tails(2, right=Fraction(3, 5))),
    Pmf(0, (1, 4, 6, 4, 1)),
    Pmf(-1, (2, 1, 2)),
])  # fmt: skip
@pytest.mark.parametrize("m", [2, 3, 7])
def test_all_shifts_count(pmf: Pmf, m: int) -> None:
    """The short cut for unimodal pmfs changes nothing, and is not taken for others."""
    for value in (0, "0.2", "0.9", 1, 3):
        low, high = exp_enclosure(Fraction(value))
        upper, lower = (
            max(hockey_stick(pmf, e, sign * s) for s in range(1, m + 1) for sign in (1, -1)) for e in (low, high)
        )
        assert privacy_profile(pmf, [value], sensitivity=m).at(value) == (lower, upper)


def test_a_huge_sensitivity_costs_nothing() -> None:
    """Beyond its length all shifts separate a finite pmf from itself."""
    profile = privacy_profile(Pmf(0, (1, 2, 0, 4)), [0, 1], sensitivity=10**12)
    assert profile.upper == profile.lower == (1, 1)
    assert profile.floor == 1
    assert profile.plateau_start == (0, 0)


def test_what_is_not_remembered_is_built_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers when the sorted losses are too many to keep."""
    pmf = Pmf(0, (5, 2, 5, 3), tails=Tails(3, Fraction(1, 3), Fraction(2, 5)))
    kept = privacy_profile(pmf, sensitivity=4)
    monkeypatch.setattr("dpopt.privacy.losses._KEPT", 0)
    anew = privacy_profile(pmf, sensitivity=4)
    assert anew == kept
    assert (anew.floor, anew.plateau_start, anew.epsilon("0.3")) == (
        kept.floor, kept.plateau_start, kept.epsilon("0.3"),
    )  # fmt: skip


def test_a_ratio_at_the_ends_of_the_enclosure() -> None:
    """Ratios equal to E_lo and E_hi of e^1, and one unit of the last place beside: no rounding, no loss."""
    unit_, (low, high) = 1 << 128, exp_enclosure(Fraction(1))
    for ratio in (low, high, low - Fraction(1, unit_ << 9), high + Fraction(1, unit_ << 9)):
        pmf = Pmf(-1, (ratio.denominator, ratio.numerator, ratio.denominator))
        assert privacy_profile(pmf, [1]).at(1) == dp.delta(pmf, 1)
    curve = Curve.of([(2 * unit_, unit_), (3, 3), (1, 2), (5, 0)], 128)
    assert (curve.keys, curve.floor, curve.excess(2 * unit_)) == ([2 * unit_], 5, 5 * unit_)


# --- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3, 10, 12])
def test_uniform(m: int) -> None:
    """min(m / N, 1) at every epsilon."""
    profile = privacy_profile(Pmf(3, (1,) * 10), [0, "0.5", 20, 700], sensitivity=m)
    assert set(profile.lower) == set(profile.upper) == {min(Fraction(m, 10), Fraction(1))}
    assert profile.plateau_start == (0, 0)
    assert profile.epsilon(profile.floor) == profile.epsilon(1) == (0, 0)


@pytest.mark.parametrize("m", [1, 5])
def test_one_sided_exponential(m: int) -> None:
    """p(k) = (1 - r) r^k for k >= 0: delta is 1 - r^m at every epsilon, also at the breakpoint m ln(1/r)."""
    r = Fraction(9, 10)
    for pmf in (Pmf(0, (1,), tails=Tails(1, right=r)), Pmf(5, (7,), tails=Tails(1, left=r))):
        profile = privacy_profile(pmf, [0, "0.05", "0.5268025782891315", 1, 30], sensitivity=m)
        assert set(profile.upper) == {1 - r**m} == {profile.floor}
        assert max(profile.upper) - min(profile.lower) <= Fraction(1, 1 << 120)
        assert float(profile.plateau_start) == 0


@pytest.mark.parametrize("row", [
    (1, "1", "0.2119415576170854"), (2, "0.5", "0.1247547886951049"), (3, "1", "0.02364054302159139"),
    (5, "0.7", "0.01036538063395472"), (8, "0.5", "0.004548750068250854"), (11, "0.5", "0.001004024859193498"),
    (11, "1", "7.718211827601505e-6"), (15, "1", "1.413627340093132e-7"),
])  # fmt: skip
def test_smallest_delta_of_any_pmf(row: tuple[int, str, str]) -> None:
    """The truncated discrete Laplace pmf attains (e^eps - 1) / (e^(D eps) (e^eps + 1) - 2), at its breakpoint."""
    half, value, wanted = row
    found = privacy_profile(two_sided(1 / Fraction(value), half), [value]).at(value)
    assert agrees(found, wanted)


def test_a_breakpoint_that_a_grid_misses() -> None:
    """Scale 20, 1,001 points, epsilon 1/20: dp_accounting's default grid reports 1.27e-5 (cases-release 12)."""
    found = privacy_profile(two_sided(Fraction(20), 500), ["1/20"]).at("1/20")
    assert agrees(found, "3.4712628e-13")


# --- epsilon(delta) --------------------------------------------------------------------------------------------------


@given(laws(), st.integers(1, 4), st.fractions(min_value=0, max_value=1, max_denominator=200))
@bounded
def test_epsilon_inverts_delta(pmf: Pmf, m: int, wanted: Fraction) -> None:
    """Re-proved on both sides of the answer; an unreachable delta is refused with the floor."""
    profile = privacy_profile(pmf, [0], sensitivity=m)
    if wanted < profile.floor:
        with pytest.raises(InputError, match=r"^delta: must be at least 0\.|^delta: must be at least 1: "):
            profile.epsilon(wanted)
        assert dp.delta(pmf, 700, m).lower > wanted
        return
    low, high = profile.epsilon(wanted)
    assert 0 <= low <= high <= low + Fraction(1, 1 << 64)
    assert (low, high) == least_epsilon(pmf, wanted, m)
    assert dp.delta(pmf, high, m).upper <= wanted
    if low > 0:
        assert dp.delta(pmf, max(low - Fraction(1, 1 << 66), Fraction(0)), m).lower > wanted


@given(laws(positive=True), st.integers(1, 3), st.fractions(min_value=0, max_value=1, max_denominator=50))
@bounded
def test_epsilon_is_dpopt_epsilon(pmf: Pmf, m: int, wanted: Fraction) -> None:
    """Within the wider enclosure of the bisection; the same where delta = 0."""
    if wanted < privacy_profile(pmf, [0], sensitivity=m).floor or largest_ratio(pmf, m)[1] == 0:
        return
    low, high = least_epsilon(pmf, wanted, m)
    wide = dp.epsilon(pmf, wanted, m)
    assert wide.lower <= high and low <= wide.upper
    if wanted == 0:
        assert (low, high) == wide


def test_epsilon_between_two_breakpoints() -> None:
    """By hand: p = (1, 4, 2) / 7, shift 1 up: (1 + (4 - E) + 0) / 7; shift 1 down: (2 + (4 - 2E)+) / 7."""
    profile = privacy_profile(Pmf(0, (1, 4, 2)), [0])
    assert profile.floor == Fraction(2, 7)
    assert profile.at(0) == (Fraction(4, 7),) * 2
    assert profile.epsilon(Fraction(3, 7)) == log_enclosure(Fraction(2))  # (5 - E) / 7 = 3/7; down 2/7
    assert profile.epsilon(Fraction(7, 14) + Fraction(1, 14)) == (0, 0)
    assert profile.epsilon(Fraction(2, 7)) == profile.plateau_start == log_enclosure(Fraction(3))


def test_unreachable_delta_counts_the_tails() -> None:
    """Zeros all along a tail separate everything; a tail beyond an explicit window is no edge."""
    with pytest.raises(InputError, match=r"^delta: must be at least 1: that mass has a zero"):
        privacy_profile(Pmf(0, (1, 0), tails=Tails(2, right=HALF))).epsilon("0.9")
    hole = privacy_profile(Pmf(0, (3, 0, 3), tails=Tails(1, Fraction(1, 3), Fraction(2, 5))), [600], sensitivity=2)
    assert hole.upper == (hole.floor,) and float(hole.floor) == pytest.approx(6 / 19)
    found = hole.epsilon("0.35")
    assert dp.delta(hole.pmf, found.upper, 2).upper <= Fraction("0.35") < dp.delta(hole.pmf, found.lower, 2).upper


# --- the reference curves --------------------------------------------------------------------------------------------


def gamma_of(row: dict[str, Any]) -> Enclosure:
    """The row's gamma, or that of its variance."""
    if "gamma" in row:
        return Enclosure(Fraction(row["gamma"]), Fraction(row["gamma"]))
    return family_rate(row["D"], row["V"])


@pytest.mark.parametrize(
    "row", CURVES["curve"], ids=lambda r: f"D{r['D']}-{r.get('V', 'g')}-{r['sensitivity']}-{r['epsilon']}"
)
def test_reference_curve(row: dict[str, Any]) -> None:
    """Proposition 2 in balls, the profile of weights from decimal exponentials, and that of the exact member."""
    half, value, m, gamma = row["D"], row["epsilon"], row["sensitivity"], gamma_of(row)
    assert agrees(family_delta(half, gamma, value, m), row["delta"])
    assert agrees(privacy_profile(gauss_weights(half, gamma.lower), [value], sensitivity=m).at(value), row["delta"])
    assert agrees(privacy_profile(family_pmf(half, gamma.upper), [value], sensitivity=m).at(value), row["delta"])


@pytest.mark.parametrize("row", CURVES["plateau_start"], ids=lambda r: f"D{r['D']}-{r['V']}")
def test_reference_plateau(row: dict[str, Any]) -> None:
    """(2D - 1) gamma, to the digits printed; the floor is p(D)."""
    gamma = family_rate(row["D"], row["V"])
    pmf = family_pmf(row["D"], gamma.upper)
    profile = privacy_profile(pmf)
    assert agrees(profile.plateau_start, row["epsilon"])
    assert abs((2 * row["D"] - 1) * gamma.lower - Fraction(row["epsilon"])) <= unit(row["epsilon"])
    assert profile.floor == pmf.probability(row["D"])


def test_reference_range() -> None:
    """Equations (23) and (25)-(27): V, C and delta at both ends of the range of gamma."""
    (row,) = CURVES["range"]
    for end in ("low", "high"):
        gamma = Fraction(row[f"gamma_{end}"])
        pmf = family_pmf(row["D"], gamma)
        for value, name in ((pmf.variance, "V"), (pmf.probability(0), "C")):
            assert agrees(Enclosure(value, value), row[f"{name}_at_gamma_{end}"])
        assert agrees(family_delta(row["D"], gamma, row["epsilon"]), row[f"delta_at_gamma_{end}"])
        assert agrees(privacy_profile(pmf, [row["epsilon"]]).at(row["epsilon"]), row[f"delta_at_gamma_{end}"])
        assert abs(family_rate(row["D"], pmf.variance).lower - gamma) <= Fraction(1, 10**30)


@pytest.mark.parametrize(
    "row", [*CURVES["figure2"], *CURVES["breakpoint_optimum"]], ids=lambda r: f"{r['D']}-{r['epsilon']}"
)
def test_reference_designs(row: dict[str, Any]) -> None:
    """delta by (29), on the grid, and at the best breakpoint gamma = epsilon / (2 (D - j) - 1)."""
    half, value = row["D"], Fraction(row["epsilon"])
    wanted = {value / (2 * (half - row["best_j"]) - 1): row.get("best_delta", row.get("delta"))}
    if "delta_eq29" in row:
        wanted |= {value / (2 * half - 1): row["delta_eq29"], Fraction(row["grid_gamma"]): row["grid_delta"]}
    for gamma, delta in wanted.items():
        assert agrees(family_delta(half, gamma, value), delta)
        assert agrees(privacy_profile(family_pmf(half, gamma), [value]).at(value), delta)


# --- the family in closed form ---------------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.integers(0, 12), st.fractions(min_value=0, max_value=2, max_denominator=60), epsilons, st.integers(1, 5)
)  # fmt: skip
@settings(derandomize=True, max_examples=150, deadline=None)
def test_proposition_two(half: int, gamma: Fraction, value: Fraction, m: int) -> None:
    """The closed form against the profile of an exact pmf, at any sensitivity, to 100 bits and more."""
    closed = family_delta(half, gamma, value, m)
    low, high = privacy_profile(gauss_weights(half, gamma), [value], sensitivity=m).at(value)
    room = Fraction(1, 1 << 100)
    assert low - room <= closed.upper and closed.lower <= high + room
    assert closed.width <= closed.upper / (1 << 62)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("j", range(4))
def test_proposition_two_at_a_boundary(j: int, m: int) -> None:
    """Where z* is an integer the borderline term is 0: rates on either side of it give the same delta."""
    half, value = 9, Fraction(1)
    gamma = value / (m * (2 * (half - j) - m))
    shaken = Enclosure(gamma * (1 - Fraction(1, 1 << 100)), gamma * (1 + Fraction(1, 1 << 100)))
    here, around = family_delta(half, gamma, value, m), family_delta(half, shaken, value, m)
    assert around.lower <= here.lower <= here.upper <= around.upper
    assert around.width <= here.upper / (1 << 90)
    found = privacy_profile(family_pmf(half, gamma), [value], sensitivity=m).at(value)
    assert around.lower <= found.lower <= found.upper <= around.upper + Fraction(1, 1 << 90)


@pytest.mark.parametrize(("half", "variance", "wanted"), [
    (1, "1/4", "1.791759469228055000812477"),
    (1, HALF, "0.6931471805599453094172321"),
    (2, 1, "0.44793986730701375020311937263978"),
    (11, 4, "0.12499997198488771"),
    (11, 10, "0.0498087160843"),
    (15, 10, "0.04999891"),
])  # fmt: skip
def test_rate_of_a_variance(half: int, variance: Any, wanted: str) -> None:
    """ln 6, ln 2 and (ln 6) / 4 in closed form, and the rates behind the curves."""
    assert agrees(family_rate(half, variance), wanted)


@given(st.integers(1, 40), st.fractions(min_value=Fraction(1, 999), max_value=600, max_denominator=999))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_rate_brackets_the_variance(half: int, variance: Fraction) -> None:
    """V lies between the variances at both ends; uniform from D(D+1)/3 on."""
    low, high = family_rate(half, variance)
    if variance >= Fraction(half * (half + 1), 3):
        assert low == high == 0
        return
    assert 0 < low < high <= low * (1 + Fraction(1, 1 << 126))
    wider = Fraction(1, 1 << 120)
    at = [gauss_weights(half, rate).variance for rate in (low * (1 - wider), high * (1 + wider))]
    assert at[0] > variance > at[1]


def test_rate_at_the_extremes() -> None:
    """Just below the uniform variance, at it, and next to no variance at all."""
    assert family_rate(3, 4) == family_rate(3, 10**9) == family_rate(0, 1) == (0, 0)
    assert 0 < family_rate(3, 4 - Fraction(1, 10**30)).upper < Fraction(1, 10**28)
    low, high = family_rate(11, Fraction(1, 10**300))
    assert low < log_enclosure(Fraction(2 * 10**300), 200).upper + Fraction(1, 10**200)
    assert float(high) == pytest.approx(math.log(2) + 300 * math.log(10), rel=1e-15)


# --- what people see -------------------------------------------------------------------------------------------------


def test_printed_and_stored() -> None:
    """A short table rounded upwards, a pickle without the sorted losses, floats that keep their side."""
    profile = privacy_profile(family_pmf(11, Fraction(1, 8)))
    lines = str(profile).splitlines()
    assert lines[0] == "privacy profile at sensitivity 1, 200 epsilons; delta 5.38489e-8 from epsilon 2.625 on"
    assert len(lines) == 14
    for line in lines[3:]:
        value, printed = line.split()
        assert 0 <= Fraction(printed) - profile.at(value).upper <= Fraction(printed) / 10**5 + Fraction(1, 10**9)
    again = pickle.loads(pickle.dumps(profile))
    assert again == profile and "_losses" not in vars(again)
    assert again.at(1) == profile.at(1)
    assert repr(profile).startswith("Profile(Pmf(")
    values, low, high = profile.floats()
    assert values.shape == low.shape == high.shape == (200,)
    assert all(map(lambda f, exact: Fraction(f) <= exact, low.tolist(), profile.lower))
    assert all(map(lambda f, exact: Fraction(f) >= exact, high.tolist(), profile.upper))
    assert np.all(high - low <= 2 * np.spacing(high))
    assert np.allclose(values, [float(v) for v in profile.epsilons], rtol=0, atol=0)


def test_what_a_list_of_epsilons_may_be() -> None:
    """Any order, repeated, floats as they print, arrays; a solution stands for its pmf."""
    pmf = Pmf(-1, (1, 2, 1))
    profile = privacy_profile(pmf, np.array([1.0, 0.1, 1.0]))
    assert profile.epsilons == (1, Fraction(1, 10), 1)
    assert isinstance(profile, Profile) and profile.upper[0] == profile.upper[2] < profile.upper[1]

    class Holder:
        pass

    holder: Any = Holder()
    holder.pmf = pmf
    assert privacy_profile(holder, (x for x in (1, "1/10", 1))) == profile
    assert privacy_profile(pmf, [1], bits=8).upper[0] >= profile.upper[0]


@pytest.mark.parametrize(("build", "message"), [
    (lambda p: privacy_profile(p, [0, -1]), "epsilons[1]: must be at least 0, not -1"),
    (lambda p: privacy_profile(p, [701]), "epsilons[0]: must be at most 700, not 701"),
    (lambda p: privacy_profile(p, [math.nan]), "epsilons[0]: must be finite"),
    (lambda p: privacy_profile(p, []), "epsilons: must hold at least one number"),
    (lambda p: privacy_profile(p, "12"), "epsilons: must be a list of numbers, not '12'"),
    (lambda p: privacy_profile(p, 1), "epsilons: must be a list of numbers, not 1"),
    (lambda p: privacy_profile(p, sensitivity=0), "sensitivity: must be positive, not 0"),
    (lambda p: privacy_profile(p, sensitivity="0.5"), "sensitivity: must be at least the lattice step 1"),
    (lambda p: privacy_profile(p, bits=0), "bits: must be at least 1, not 0"),
    (lambda p: privacy_profile([1, 2, 1]), "pmf: must be a Pmf or have one as its attribute 'pmf', not list"),
    (lambda p: privacy_profile(p).at(-1), "epsilon: must be at least 0, not -1"),
    (lambda p: privacy_profile(p).at(10**6), "epsilon: must be at most 700, not 1000000"),
    (lambda p: privacy_profile(p).epsilon("0.2"), "delta: must be at least 0.25: that mass has a zero"),
    (lambda p: privacy_profile(p).epsilon(2), "delta: must lie between 0 and 1, not 2"),
    (lambda p: family_delta(-1, 1, 1), "D: must be at least 0, not -1"),
    (lambda p: family_delta(3, -1, 1), "gamma: must be at least 0, not -1"),
    (lambda p: family_delta(3, Enclosure(Fraction(2), Fraction(1)), 1), "gamma: must be an enclosure whose lower end"),
    (lambda p: family_delta(3, 1, -1), "epsilon: must be at least 0, not -1"),
    (lambda p: family_delta(3, 1, 701), "epsilon: must be at most 700, not 701"),
    (lambda p: family_delta(3, 1, 1, "1/2"), "sensitivity: must be at least the lattice step 1"),
    (lambda p: family_rate(3, 0), "V: must be positive, not 0"),
    (lambda p: family_rate("x", 1), "D: must be a number"),
])  # fmt: skip
def test_what_is_wrong_is_said(build: Callable[[Any], Any], message: str) -> None:
    """Each message says what its check checks."""
    with pytest.raises(InputError) as caught:
        build(Pmf(-1, (1, 2, 1)))
    assert str(caught.value).startswith(message)
