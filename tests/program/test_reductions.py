"""Reductions: points and multipliers there and back, optima by scipy on both sides, and phase 1 against feasibility."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpopt as dp
from dpopt.program.core import Core
from dpopt.program.formulate import Formulation, core_for, formulate
from dpopt.program.reductions import (
    Reduction,
    elastic,
    fold,
    identity,
    is_foldable,
    reduce,
    scale_by_envelope,
    tight_rows,
)

from .linear import dense, dual_value, optimum, reduced_costs

ABSOLUTE, SQUARE = dp.MinExpectedCost("absolute"), dp.MinExpectedCost("square")
WINDOW = dp.Integers(-6, 6)


def formulated(*constraints: dp.Constraint, objective: dp.Objective = ABSOLUTE, support: Any = WINDOW) -> Formulation:
    """The program over the core to start with."""
    question = dp.Problem(support=support, objective=objective, constraints=constraints)
    return formulate(question, core_for(question))


SYMMETRIC = {
    "window": lambda: formulated(dp.PureDP("0.8", 2, boundary="window")),
    "closure": lambda: formulated(dp.PureDP(1, 3), objective=SQUARE, support=None),
    "approx": lambda: formulated(dp.ApproxDP("0.8", "0.2", 2)),
    "approx-all-integers": lambda: formulated(dp.ApproxDP(1, "0.05", 2), support=None),
    "min-delta": lambda: formulated(objective=dp.MinDelta("0.4", 2)),
    "moments": lambda: formulated(dp.Mean(0), dp.SecondMoment(at_least=3), dp.PureDP(1, 1, boundary="window")),
    "mirror": lambda: formulated(dp.Symmetric(), dp.Unimodal(), dp.ApproxDP("0.7", "0.1")),
    "forbidden": lambda: formulated(dp.Forbidden([-3, 3, 0]), dp.ApproxDP("0.7", "0.3")),
    "halves": lambda: formulated(dp.PureDP(1, 1, boundary="window"), support=dp.Lattice("1/2", -3, 3)),
    "point": lambda: formulated(dp.Mean(0), support=dp.Integers(0, 0)),
}
UNEVEN = {
    "uneven-support": lambda: formulated(dp.PureDP(1, 2, boundary="window"), support=dp.Integers(-3, 6)),
    "uneven-cost": lambda: formulated(
        dp.PureDP(1, 2), objective=dp.MinExpectedCost({"polynomial": [0, "1/3", 1]}), support=None
    ),
    "mean": lambda: formulated(dp.Mean(2), dp.PureDP(1, 2), support=None),
    "probability": lambda: formulated(
        dp.Probability(of={"from": 1}, at_least="0.6"), dp.PureDP(1, 1, boundary="window")
    ),
    "mode": lambda: formulated(dp.Unimodal(2), dp.ApproxDP(1, "0.1")),
    "forbidden": lambda: formulated(dp.Forbidden([2]), dp.ApproxDP(1, "0.3")),
    "wasserstein": lambda: formulated(dp.PureDP(1, 2), objective=dp.MinWasserstein(dp.uniform(-2, 2)), support=None),
    "mean-from-one-side": lambda: formulated(dp.Mean(at_least=0), dp.PureDP(1, 1, boundary="window")),
}
ALL = {**{f"even-{k}": v for k, v in SYMMETRIC.items()}, **{f"uneven-{k}": v for k, v in UNEVEN.items()}}


def mirrored(form: Formulation, p: np.ndarray) -> np.ndarray:
    """The pmf part of a point, seen from the other side."""
    return p[: form.core.size][::-1]


# --- folding ---------------------------------------------------------------------------------------------------------


def test_what_folds() -> None:
    """Only what reflection about 0 maps to itself; an entropy program is cheap as it is."""
    for name, build in SYMMETRIC.items():
        assert is_foldable(build()), name
    for name, build in UNEVEN.items():
        assert not is_foldable(build()), name
    assert not is_foldable(formulated(dp.Mean(0), objective=dp.MaxEntropy()))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_folding_keeps_the_optimum(name: str) -> None:
    """Half the columns, the same optimum; the point comes back symmetric and feasible at the same cost."""
    form = SYMMETRIC[name]()
    reduction = fold(form)
    whole, half = optimum(form.program), optimum(reduction.program)
    assert whole.feasible and half.feasible
    assert half.value == pytest.approx(whole.value, rel=1e-7, abs=1e-8)
    assert reduction.program.cost.size <= form.program.cost.size // 2 + 2
    x = reduction.point(half.x)
    assert x[: form.core.size] == pytest.approx(mirrored(form, x), abs=0)
    assert form.program.violation(x) <= 1e-7
    assert form.program.objective(x) == pytest.approx(half.value, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_folded_multipliers_prove_the_same_bound(name: str) -> None:
    """Mapped back they are dual feasible for the whole program, with the same dual objective."""
    form = SYMMETRIC[name]()
    reduction = fold(form)
    half = optimum(reduction.program)
    y = reduction.multipliers(half.y)
    assert dual_value(form.program, y, 1e-7) == pytest.approx(half.value, rel=1e-6, abs=1e-7)
    folded = reduction.columns.T @ reduced_costs(form.program, y)
    assert folded == pytest.approx(reduced_costs(reduction.program, half.y), abs=1e-9)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_folded_rows_are_averages(name: str) -> None:
    """Each folded row is the mean of rows of one block with equal sides; what vanishes is an odd row or a mirror."""
    form = SYMMETRIC[name]()
    reduction = fold(form)
    weights = reduction.rows.toarray()
    assert weights.sum(axis=1) == pytest.approx(np.ones(weights.shape[0]))
    assert set(np.unique(weights)) <= {0.0, 0.5, 1.0}
    for new, old in zip(reduction.program.row_lower, weights, strict=True):
        assert {float(v) for v in form.program.row_lower[old > 0]} == {float(new)}
    for new, old in zip(reduction.program.row_upper, weights, strict=True):
        assert {float(v) for v in form.program.row_upper[old > 0]} == {float(new)}
    symmetric = np.zeros(form.program.cost.size)
    half = np.random.default_rng(2).random(form.core.last + 1)
    symmetric[: form.core.size] = half[np.abs(form.core.indices)]
    activity = form.program.rows @ symmetric
    for r in np.flatnonzero(weights.sum(axis=0) == 0):
        assert activity[r] == pytest.approx(0.0, abs=1e-12)
        assert form.program.row_lower[r] == form.program.row_upper[r] == 0.0
    for old in weights:
        assert np.ptp(activity[old > 0]) <= 1e-9 * (1 + np.abs(activity).max())


def test_a_symmetric_point_folds_and_unfolds() -> None:
    """Forward: a symmetric pmf has exactly one folded form, and it comes back."""
    form = SYMMETRIC["window"]()
    reduction = fold(form)
    half = np.array([0.3, 0.1, 0.1, 0.05, 0.05, 0.03, 0.02])
    p = reduction.point(half)
    assert p == pytest.approx(half[np.abs(form.core.indices)], abs=0)
    assert reduction.program.objective(half) == pytest.approx(form.program.objective(p), rel=1e-14)
    assert reduction.program.rows @ half == pytest.approx(reduction.rows @ (form.program.rows @ p), rel=1e-13)


# --- envelope scaling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_scaling_keeps_the_optimum(name: str) -> None:
    """Coefficients of at most 1, a cost of size 1, and the same optimum in the old units."""
    form = ALL[name]()
    scaled = scale_by_envelope(form, identity(form.program))
    assert np.abs(dense(scaled.program)).max() <= 1 + 1e-12
    assert np.abs(scaled.program.cost).max() == pytest.approx(1.0) or not form.program.cost.any()
    whole, small = optimum(form.program), optimum(scaled.program)
    assert small.value * scaled.scale == pytest.approx(whole.value, rel=1e-6, abs=1e-7)
    x = scaled.point(small.x)
    assert form.program.violation(x) <= 1e-7
    assert form.program.objective(x) == pytest.approx(small.value * scaled.scale, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_scaling_there_and_back(name: str) -> None:
    """Columns and rows are positive multiples: any point and any multipliers have one scaled form."""
    form = ALL[name]()
    scaled = scale_by_envelope(form, identity(form.program))
    generator = np.random.default_rng(4)
    column, row = scaled.columns.diagonal(), scaled.rows.diagonal()
    assert column.min() > 0 and row.min() > 0
    x, y = generator.random(form.program.cost.size), generator.normal(size=form.program.row_lower.size)
    assert scaled.point(x / column) == pytest.approx(x, rel=1e-14)
    assert scaled.multipliers(y / row / scaled.scale) == pytest.approx(y, rel=1e-13)
    assert scaled.program.rows @ (x / column) == pytest.approx(row * (form.program.rows @ x), abs=1e-8)
    old, new = reduced_costs(form.program, y), reduced_costs(scaled.program, y / row / scaled.scale)
    tiny = 2e-11 * (1 + np.abs(y / row / scaled.scale).max())  # what is dropped is below every solver's resolution
    assert new == pytest.approx(column * old / scaled.scale, rel=1e-9, abs=tiny * len(y))


@pytest.mark.parametrize(
    "name", ["even-window", "even-approx", "even-min-delta", "uneven-mean", "uneven-probability", "uneven-wasserstein"]
)
def test_scaled_multipliers_prove_the_bound(name: str) -> None:
    """Mapped back they are dual feasible for the plain program up to the solver's digits."""
    form = ALL[name]()
    scaled = scale_by_envelope(form, identity(form.program))
    small = optimum(scaled.program)
    bound = dual_value(form.program, scaled.multipliers(small.y), 1e-6)
    assert bound == pytest.approx(small.value * scaled.scale, rel=1e-5, abs=1e-6)


def test_delta_rows_are_scaled_too() -> None:
    """delta = 1e-10: its row has coefficients and a side of size 1, so a solver that works to 1e-7 can see it."""
    form = formulated(dp.ApproxDP(1, "1e-10"), support=dp.Integers(-30, 30))
    program = reduce(form).program
    sides = program.row_upper[np.isfinite(program.row_upper) & (program.row_upper > 0)]
    assert sides.min() >= 1e-3
    answer = optimum(program)
    assert answer.feasible


# --- composition -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYMMETRIC)
def test_one_after_the_other(name: str) -> None:
    """`then` maps points and multipliers as the two in turn do, and its program is the last one's."""
    form = SYMMETRIC[name]()
    first = fold(form)
    second = scale_by_envelope(form, first)
    both = first.then(second)
    generator = np.random.default_rng(6)
    x, y = generator.random(second.program.cost.size), generator.normal(size=second.program.row_lower.size)
    assert both.program is second.program
    assert both.point(x) == pytest.approx(first.point(second.point(x)), rel=1e-13)
    assert both.multipliers(y) == pytest.approx(first.multipliers(second.multipliers(y)), rel=1e-13, abs=1e-300)
    assert both.scale == first.scale * second.scale
    assert isinstance(identity(form.program).then(first), Reduction)
    chosen = reduce(form)
    assert chosen.program.cost == pytest.approx(both.program.cost)
    assert optimum(chosen.program).value * chosen.scale == pytest.approx(
        optimum(form.program).value, rel=1e-6, abs=1e-7
    )


def test_entropy_is_left_alone() -> None:
    """An entropy program keeps its columns and its cost."""
    form = formulated(dp.Mean(0), dp.Variance(2), objective=dp.MaxEntropy())
    reduction = reduce(form)
    assert reduction.program is form.program and reduction.scale == 1


# --- phase 1 ---------------------------------------------------------------------------------------------------------

PHASES: dict[str, tuple[dp.Constraint, ...]] = {
    "nothing": (),
    "met": (dp.Mean(1), dp.SecondMoment(at_most=9)),
    "just": (dp.Mean(6),),
    "mean-outside": (dp.Mean(7),),
    "variance-too-large": (dp.Mean(0), dp.SecondMoment(at_least="36.5")),
    "private": (dp.PureDP(1, 1, boundary="window"), dp.Probability(of=[0], at_most="0.1")),
    "too-private": (dp.PureDP("0.1", 1, boundary="window"), dp.Probability(of=[0], at_least="0.9")),
    "approx-met": (dp.ApproxDP(1, "0.01"),),
    "approx-missed": (dp.ApproxDP(1, "0.001"), dp.SecondMoment(at_most=1)),
    "mirror-missed": (dp.Symmetric(), dp.Mean(1)),
    "order-missed": (dp.Unimodal(-6), dp.Probability(of=[6], at_least="1/2")),
    "forbidden": (dp.Forbidden(range(-6, 6)), dp.Mean(at_most=5)),
}


@pytest.mark.parametrize("name", PHASES)
def test_phase_1_is_zero_just_where_the_rows_can_be_met(name: str) -> None:
    """Plain and reduced: the optimum is 0 when scipy finds a point, and positive when it finds none."""
    form = formulated(*PHASES[name])
    feasible = optimum(form.program).feasible
    assert feasible == (name in ("nothing", "met", "just", "private", "approx-met"))
    for program in (form.program, reduce(form).program):
        phase = elastic(program)
        answer = optimum(phase)
        assert answer.feasible
        assert (answer.value <= 1e-9) == feasible
        assert phase.cost[: program.cost.size].any() == 0
        assert np.array_equal(phase.rows.toarray()[:, : program.cost.size], program.rows.toarray())


def test_phase_1_counts_what_is_missing() -> None:
    """Mean 7 on [-6, 6] misses by 1; the mass row is never bent."""
    form = formulated(dp.Mean(7))
    answer = optimum(elastic(form.program))
    assert answer.value == pytest.approx(1.0)
    assert answer.x[: form.core.size].sum() == pytest.approx(1.0)
    assert answer.x[form.core.size - 1] == pytest.approx(1.0)


def test_phase_1_multipliers_are_a_farkas_combination() -> None:
    """With zero cost on the old columns, the multipliers of a positive optimum bound every feasible point away."""
    form = formulated(*PHASES["too-private"])
    answer = optimum(elastic(form.program))
    zero = np.zeros(form.program.cost.size)
    y = answer.y
    side = np.where(y > 0, form.program.row_lower, form.program.row_upper)
    assert (-(form.program.rows.T @ y) >= -1e-8 + zero).all()
    assert np.where(y == 0, 0.0, y * np.where(np.isfinite(side), side, 0.0)).sum() == pytest.approx(
        answer.value, rel=1e-6
    )


def test_a_core_off_centre_is_not_folded() -> None:
    """The same problem over another core."""
    question = dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 2)])
    closure = core_for(question).closure
    assert is_foldable(formulate(question, Core(-5, 5, closure)))
    assert not is_foldable(formulate(question, Core(-5, 6, closure)))


@pytest.mark.parametrize("name", ["window", "closure"])
@pytest.mark.parametrize("folded", [True, False])
def test_the_tight_rows_of_an_optimum_have_its_optimum(name: str, folded: bool) -> None:
    """Fewer rows; at an optimal point the same optimum, at any other no more; multipliers bound the whole program."""
    form = SYMMETRIC[name]()
    reduction = fold(form) if folded else identity(form.program)
    whole = optimum(form.program)
    best = reduction.point(optimum(reduction.program).x)
    tight = tight_rows(reduction, best)
    few = optimum(tight.program)
    assert tight.program.row_lower.size < reduction.program.row_lower.size
    assert few.value == pytest.approx(whole.value, rel=1e-7)
    assert dual_value(form.program, tight.multipliers(few.y), 1e-7) == pytest.approx(whole.value, rel=1e-6)
    elsewhere = reduction.point(np.linspace(1.0, 2.0, reduction.program.cost.size))
    assert optimum(tight_rows(reduction, elsewhere).program).value <= whole.value + 1e-9
