"""Repair: from floats that almost meet the constraints to an exact pmf that does, at the least change."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import exp_enclosure
from dpopt.privacy.divergence import worst_hockey_stick
from dpopt.privacy.ratios import largest_ratio
from dpopt.program.formulate import Formulation, core_for, formulate
from dpopt.proof.repair import Repaired, RepairFailed, repair, sanitised

ABSOLUTE = dp.MinExpectedCost("absolute")
HALF = Fraction(1, 2)


def formulated(*constraints: dp.Constraint, support: Any = None, objective: dp.Objective = ABSOLUTE) -> Formulation:
    """The program over the core to start with."""
    question = dp.Problem(support=support, objective=objective, constraints=constraints)
    return formulate(question, core_for(question))


def claim(form: Formulation, masses: Any) -> np.ndarray:
    """A point with these masses over the core (a callable of the index, or an array) and zero auxiliaries."""
    x = np.zeros(form.program.cost.size)
    x[: form.core.size] = [masses(k) for k in form.core.indices.tolist()] if callable(masses) else masses
    return x


def nothing() -> None:
    """No strictly feasible point is known."""


def mended(form: Formulation, masses: Any, centre: Callable[[], Any] = nothing) -> Repaired:
    """The repaired pmf; every check is true and agrees with the problem's own."""
    found = repair(form, claim(form, masses), centre)
    assert all(c.holds for c in found.checks)
    assert found.checks == form.problem.check(found.pmf)
    assert 0 <= found.mass_moved <= 1
    return found


@pytest.mark.parametrize(("epsilon", "m"), [(1, 1), (1, 2), ("0.5", 5), (3, 3)])
def test_zeros_beside_masses(epsilon: Any, m: int) -> None:
    """All mass on five points of all integers: the majorant fills in the rest, with tails, privately."""
    form = formulated(dp.PureDP(epsilon, m))
    decay = np.exp(-float(Fraction(epsilon)) / m * np.abs(form.core.indices))
    cut = np.where(np.abs(form.core.indices) <= 2, decay, 0.0)
    mass = (form.program.rows[[0]] @ claim(form, cut))[0]
    pmf = mended(form, cut / mass).pmf
    assert pmf.tails is not None and pmf.tails.period == m
    numerator, denominator = largest_ratio(pmf, m)
    assert denominator > 0 and Fraction(numerator, denominator) <= exp_enclosure(Fraction(epsilon)).lower


def test_what_is_private_already_keeps_its_masses() -> None:
    """The geometric law in floats: next to nothing is moved, nothing mixed in."""
    form = formulated(dp.PureDP(1, 1))
    found = mended(form, lambda k: np.exp(-abs(k)) * np.tanh(0.5))
    assert found.mixed == 0
    assert found.mass_moved <= 1e-15
    assert abs(float(found.pmf.absolute_moment(1)) - 0.850918128239321545) <= 1e-15


@given(st.integers(1, 3), st.lists(st.floats(-1e-9, 1e-9), min_size=13, max_size=13))
@settings(derandomize=True, max_examples=25, deadline=None)
def test_noise_in_the_last_digits(m: int, noise: list[float]) -> None:
    """A private law with a solver's dust on it (negative as well) is private again after moving no more than dust."""
    form = formulated(dp.PureDP(1, m, boundary="window"), dp.Mean(0), support=dp.Integers(-6, 6))
    p = np.exp(-np.abs(form.core.indices) / m * 0.9)
    p = p / p.sum() + np.array(noise)
    found = mended(form, p)
    assert found.pmf.mean == 0
    assert found.mass_moved <= 2e-7


@pytest.mark.parametrize("off", [1e-6, -1e-7, 1e-9, 0.0])
def test_equalities_become_exact(off: float) -> None:
    """Mean, second moment and one probability of a known law, missed by the claim: hit exactly, by moving as little."""
    law = dp.Pmf(-4, (1, 2, 4, 6, 8, 6, 3, 3, 1))
    second, at_two = law.absolute_moment(2), law.probability(2)
    form = formulated(
        dp.Mean(law.mean), dp.SecondMoment(second), dp.Probability(of=[2], equals=at_two), support=dp.Integers(-4, 4)
    )
    found = mended(form, law.probabilities() + off * np.cos(form.core.indices))
    pmf = found.pmf
    assert pmf.mean == law.mean and pmf.absolute_moment(2) == second and pmf.probability(2) == at_two
    assert found.mass_moved <= 1e-14 + 30 * abs(off)


def test_an_equality_under_pure_dp_on_all_integers() -> None:
    """The mean of a claim off by 1e-9, tails included, is made exact without touching privacy."""
    form = formulated(dp.PureDP(1, 2), dp.Mean(0))
    decay = np.exp(-0.45 * np.abs(form.core.indices + 1e-9))
    mass = (form.program.rows[[0]] @ claim(form, decay))[0]
    centre = np.exp(-0.3 * np.abs(form.core.indices))
    pmf = mended(form, decay / mass, lambda: centre / (form.program.rows[[0]] @ claim(form, centre))[0]).pmf
    assert pmf.mean == 0
    assert largest_ratio(pmf, 2)[0] <= exp_enclosure(Fraction(1)).lower * largest_ratio(pmf, 2)[1]


def test_contradictory_equalities() -> None:
    """Two means cannot both be exact: no pmf comes out, and the reason says why."""
    form = formulated(dp.Mean(0), dp.Mean("1/10"), support=dp.Integers(-3, 3))
    with pytest.raises(RepairFailed, match="could not be repaired: the equalities"):
        repair(form, claim(form, np.full(7, 1 / 7)), nothing)


def test_equalities_that_say_the_same() -> None:
    """A redundant row (mean 0 three times, once scaled) is no contradiction."""
    twice = dp.Expectation(of={"polynomial": [0, 2]}, equals=0)
    form = formulated(dp.Mean(0), twice, dp.Mean(0), support=dp.Integers(-3, 3))
    assert mended(form, np.array([1, 2, 3, 4, 3, 2, 1.0001]) / 16.0001).pmf.mean == 0


def test_nothing_strictly_feasible_but_an_exact_basis() -> None:
    """D = 1, V = 1: only (1/2, 0, 1/2); the dust in the middle has to go."""
    form = formulated(dp.Mean(0), dp.Variance(1), support=dp.Integers(-1, 1), objective=dp.MaxEntropy())
    for middle in (0.0, 1e-12, 1e-9):
        pmf = mended(form, np.array([(1 - middle) / 2, middle, (1 - middle) / 2])).pmf
        assert [pmf.probability(k) for k in (-1, 0, 1)] == [HALF, 0, HALF]


def test_active_inequalities_with_one_solution() -> None:
    """Mean 0, E|Z| at most 1, E Z^2 at least 2 on {-2..2}: one boundary pmf, found from floats that miss by 1e-10."""
    form = formulated(
        dp.Mean(0), dp.Expectation(of="absolute", at_most=1), dp.SecondMoment(at_least=2), support=dp.Integers(-2, 2)
    )
    pmf = mended(form, np.array([0.25 - 1e-11, 1e-11, 0.5, 0.0, 0.25])).pmf
    assert [pmf.probability(k) for k in range(-2, 3)] == [Fraction(1, 4), 0, HALF, 0, Fraction(1, 4)]


def test_forbidden_points_stay_empty() -> None:
    """Dust on a forbidden point is dropped, also where its neighbours are full."""
    form = formulated(dp.Forbidden([0, 2]), dp.Mean(0), support=dp.Integers(-2, 2))
    pmf = mended(form, np.array([1 / 9, 1 / 3, 1e-7, 5 / 9 - 2e-7, 1e-7])).pmf
    assert pmf.weight(0) == pmf.weight(2) == 0
    assert pmf.mean == 0


@given(st.lists(st.floats(0.01, 1), min_size=9, max_size=9))
@settings(derandomize=True, max_examples=30, deadline=None)
def test_symmetry_is_exact(masses: list[float]) -> None:
    """A claim that is nearly symmetric becomes exactly so; equalities are then corrected in mirror pairs."""
    half = np.array(masses[:5])
    p = np.concatenate([half[:0:-1], half]) + 1e-9 * np.array(masses)
    p /= p.sum()
    k = np.arange(-4, 5)
    wanted = Fraction(round(float(p @ k**2) * 10**6), 10**6)
    form = formulated(dp.Symmetric(), dp.Variance(wanted), support=dp.Integers(-4, 4))
    pmf = mended(form, p).pmf
    assert all(pmf.weight(j) == pmf.weight(-j) for j in range(5))
    assert pmf.variance == wanted and pmf.mean == 0


def test_a_little_of_a_strictly_feasible_pmf() -> None:
    """E|Z| missed by 1e-7 and no equality to bend: some of the given point is mixed in, as little as needed."""
    form = formulated(dp.SecondMoment(at_most=1), support=dp.Integers(-3, 3))
    p = np.array([0, 0, 0.5 + 1e-7, 0, 0.5 - 2e-7, 1e-7, 0])
    inner = np.array([0, 0, 0.1, 0.8, 0.1, 0, 0.0])
    found = mended(form, p, lambda: inner)
    assert found.pmf.absolute_moment(2) <= 1
    assert 0 < found.mixed <= 1e-5
    assert found.mass_moved <= 2e-5


@pytest.mark.parametrize("delta", ["0.01", "1e-10"])
def test_approximate_privacy(delta: str) -> None:
    """A truncated Laplace law whose delta is a little too large: repaired for wide and for tiny deltas."""
    form = formulated(dp.ApproxDP(1, delta), support=dp.Integers(-30, 30))
    p = np.exp(-np.abs(form.core.indices) * (1 + 1e-9))
    inner = np.exp(-np.abs(form.core.indices) * 0.9)
    found = mended(form, p / p.sum(), lambda: inner / inner.sum())
    assert worst_hockey_stick(found.pmf, exp_enclosure(Fraction(1)).lower, 1) <= Fraction(delta)
    assert found.mass_moved <= 1e-3


@pytest.mark.parametrize(("masses", "message"), [
    ([0.5, np.nan, 0.5], "1 values that are not finite"), ([0.5, np.inf, 0.5], "not finite"),
    ([0.6, -0.2, 0.6], r"negative mass -0\.2 at index 0"), ([0.5, 0.2, 0.5], r"total mass 1\.2, not 1"),
    ([0, 0, 0], "total mass 0"),
])  # fmt: skip
def test_what_is_no_pmf_at_all(masses: list[float], message: str) -> None:
    """Not-a-number, masses clearly below 0 and totals clearly off are refused, not repaired."""
    form = formulated(support=dp.Integers(-1, 1))
    with pytest.raises(RepairFailed, match=message):
        repair(form, claim(form, masses), nothing)


def test_dust_below_zero_is_rounding() -> None:
    """Masses a little below 0, and on columns that may hold none, count as 0."""
    form = formulated(dp.Forbidden([1]), support=dp.Integers(-1, 1))
    assert sanitised(form, claim(form, [1.0, -1e-6, 1e-6])).tolist() == [1.0, 0.0, 0.0]


def test_a_claim_that_answers_another_question() -> None:
    """A point mass where privacy and a variance are asked for, and no feasible point known: a reason with the miss."""
    form = formulated(dp.SecondMoment(at_least=4), support=dp.Integers(-3, 3))
    with pytest.raises(RepairFailed, match=r"constraint 'second-moment' is missed by"):
        repair(form, claim(form, [0, 0, 0, 1, 0, 0, 0]), nothing)


def test_lattice_steps_are_kept() -> None:
    """The pmf lives on the support's lattice."""
    form = formulated(dp.Mean("1/4"), support=dp.Lattice("1/2", -1, 1))
    pmf = mended(form, np.array([0.1, 0.1, 0.3, 0.2, 0.3])).pmf
    assert pmf.step == HALF and pmf.mean == Fraction(1, 4) and pmf.start == -2
