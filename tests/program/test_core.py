"""The core: coefficients with closure against exact tail sums, the value of a closed program, where cores start."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.program.core import Closure, Core
from dpopt.program.formulate import chain_owner, core_for, formulate, grown

from .linear import chained, optimum, windowed

values = st.fractions(min_value=-9, max_value=9, max_denominator=6)
polynomials = st.lists(values, max_size=3).map(tuple)
functions = st.builds(
    LatticeFunction, st.integers(-12, 12), st.lists(values, max_size=9).map(tuple), polynomials, polynomials
)
ABSOLUTE = dp.MinExpectedCost("absolute")


@pytest.mark.slow
@given(functions, st.integers(-9, 5), st.integers(1, 12), st.integers(1, 6), st.integers(1, 15))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_coefficients_with_closure(f: LatticeFunction, first: int, size: int, shift: int, sixteenths: int) -> None:
    """Every column's own value, and its chain's on the last block of a side (on both when the blocks overlap)."""
    size = max(size, shift)
    ratio = Fraction(sixteenths, 16)
    core = Core(first, first + size - 1, Closure(shift, float(ratio)))
    wanted = chained(f, core.first, core.last, shift, ratio)
    scale = chained(
        LatticeFunction(f.start, tuple(map(abs, f.table)), (Fraction(99),), (Fraction(99),)),
        core.first,
        core.last,
        shift,
        ratio,
    )
    size_of = np.array([float(max(abs(w), s, 1)) for w, s in zip(wanted, scale, strict=True)])
    assert np.all(np.abs(core.coefficients(f) - np.array([float(w) for w in wanted])) <= 1e-10 * size_of * 200)


@given(functions, st.integers(-9, 5), st.integers(1, 12))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_coefficients_without_closure(f: LatticeFunction, first: int, size: int) -> None:
    """The values themselves."""
    core = Core(first, first + size - 1)
    assert core.size == size and core.indices.tolist() == list(range(first, first + size))
    assert core.coefficients(f) == pytest.approx(
        [float(f(k)) for k in range(first, first + size)], rel=1e-13, abs=1e-12
    )


@pytest.mark.parametrize(("m", "core", "cost"), [
    (1, (-3, 3), "absolute"), (2, (-4, 4), "absolute"), (3, (-6, 6), "square"), (2, (-4, 4), {"power": 3}),
    (2, (-5, 6), {"polynomial": [0, "1/4", 1]}),
    (3, (-7, 6), {"table": {"-1": 0, "0": "1/2", "1": 0, "2": 1}, "outside": 2}),
])  # fmt: skip
def test_a_closed_program_is_the_limit_of_long_windows(m: int, core: tuple[int, int], cost: Any) -> None:
    """A dozen columns with closure give what a window of 141 points gives, for even and uneven costs."""
    question = dp.Problem(objective=dp.MinExpectedCost(cost), constraints=[dp.PureDP(1, m)])
    closure = core_for(question).closure
    assert closure is not None and closure.shift == m and closure.ratio == pytest.approx(np.exp(-1), rel=1e-15)
    small = optimum(formulate(question, Core(*core, closure)).program)
    wide = windowed(question.objective_term.cost, m, 1.0, 70)
    assert small.value == pytest.approx(wide, rel=1e-7, abs=1e-8)


def test_cores_to_start_with() -> None:
    """The support where it is finite; around the fixed mean under pure DP; as wide as a truncated law's optimum."""
    finite = dp.Problem(support=dp.Lattice("1/2", -1, 3), objective=ABSOLUTE)
    assert core_for(finite) == Core(-2, 6)
    pure = core_for(dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 5)]))
    assert pure.is_symmetric and pure.size >= 11
    moved = core_for(dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 5), dp.Mean(40)]))
    assert moved.first <= 30 and moved.last >= 50 and moved.first + moved.last == 80
    halves = dp.Problem(support=dp.Lattice("1/2"), objective=ABSOLUTE, constraints=[dp.PureDP(1, 5), dp.Mean("3/2")])
    assert core_for(halves).closure.shift == 10 and core_for(halves).first + core_for(halves).last == 6
    table = dp.Probability(of=[-33, 20], at_least="1/2")
    assert core_for(dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 2), table])).first <= -33
    loose = core_for(dp.Problem(objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "0.001")]))
    assert loose.closure is None and loose.last >= 7  # the optimum's largest noise, reference values


def test_growing() -> None:
    """On both sides, by whole periods under a closure, and always by something."""
    for core in (Core(0, 0), Core(-3, 3), Core(5, 90), Core(-7, 7, Closure(3, 0.5)), Core(-2, 40, Closure(2, 0.1))):
        longer = grown(core)
        assert longer.first < core.first and longer.last > core.last
        assert longer.closure == core.closure
        if core.closure is not None:
            assert (core.first - longer.first) % core.closure.shift == 0
            assert (longer.last - core.last) % core.closure.shift == 0


def test_who_closes_the_tails() -> None:
    """The pure-DP constraint with the least epsilon per step; none on a finite support or without one."""
    pure = [dp.PureDP(2, 1), dp.Mean(0), dp.PureDP(3, 6), dp.PureDP(1, 1)]
    assert chain_owner(dp.Problem(objective=ABSOLUTE, constraints=pure)) == 2
    assert chain_owner(dp.Problem(objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "0.1")])) is None
    window = [dp.PureDP(1, 1, boundary="window")]
    assert chain_owner(dp.Problem(support=dp.Integers(-5, 5), objective=ABSOLUTE, constraints=window)) is None


def test_too_large_a_program_is_refused_before_it_is_built() -> None:
    """Rows are counted first: a sensitivity of a thousand on a million points is an error of one line."""
    question = dp.Problem(
        support=dp.Integers(-500_000, 500_000), objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "0.1", 1000)]
    )
    with pytest.raises(InputError, match=r"^support: makes a program of about .* rows"):
        formulate(question, core_for(question))


def test_tightened_terms_are_stricter() -> None:
    """What meets a tightened term meets the original with room; equalities stay as they are."""
    question = dp.Problem(
        support=dp.Integers(-5, 5),
        objective=ABSOLUTE,
        constraints=[
            dp.PureDP(1, 2, boundary="window"), dp.ApproxDP(1, "0.1"), dp.Mean(0), dp.SecondMoment(at_most=4),
            dp.Expectation(of="absolute", at_least="1/2"), dp.Expectation(of="value", at_least=-1, at_most=1),
            dp.Unimodal(),
        ],
    )  # fmt: skip
    by = Fraction(1, 8)
    ratio, hockey, mean, above, below, both, order = (terms[0].tightened(by) for terms in question.terms)
    assert ratio.epsilon == Fraction(7, 8) and hockey.epsilon == Fraction(7, 8) and hockey.delta == Fraction(7, 80)
    assert mean == question.terms[2][0]
    assert above.at_most == Fraction(7, 2) and below.at_least == Fraction(9, 16)
    assert (both.at_least, both.at_most) == (Fraction(-3, 4), Fraction(3, 4))
    assert order.share == Fraction(7, 8)
