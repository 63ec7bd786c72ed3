"""The lemma at work: whole ranges of rates excluded at once, against every breakpoint and a grid, one by one."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.arithmetic import ball
from dpopt.designing.targeting import guessed_rate, log_delta
from dpopt.family.members import IdealMember, breakpoints, delta_exceeds, reaching_rate

epsilons = st.fractions(min_value=0, max_value=5, max_denominator=20)
levels = st.builds(lambda n, e: Fraction(n, 1000 * 10**e), st.integers(1, 999), st.integers(0, 6))
rates = st.fractions(min_value=0, max_value=1, max_denominator=100)


@given(st.integers(0, 14), epsilons, st.integers(1, 6), levels)
@settings(derandomize=True, max_examples=250, deadline=None)
def test_all_rates_are_the_breakpoints(half: int, epsilon: Fraction, m: int, level: Fraction) -> None:
    """There is a rate that reaches the level if and only if a breakpoint does."""
    found = reaching_rate(half, epsilon, m, level)
    working = [g for g in breakpoints(half, epsilon, m) if not delta_exceeds(half, g, epsilon, m, level)]
    assert (found in working) if working else found is None


@pytest.mark.slow
@given(st.integers(0, 12), epsilons, st.integers(1, 5), levels, rates, rates, st.booleans())
@settings(derandomize=True, max_examples=150, deadline=None)
def test_a_range_against_a_grid(
    half: int, epsilon: Fraction, m: int, level: Fraction, low: Fraction, width: Fraction, unbounded: bool
) -> None:
    """What is found lies in the range and works; where nothing is found, nothing on a grid works."""
    high = None if unbounded else low + width
    found = reaching_rate(half, epsilon, m, level, low, high)
    if found is None:
        step = (Fraction(6) if high is None else width) / 40
        assert all(delta_exceeds(half, low + i * step, epsilon, m, level) for i in range(41))
    else:
        assert low <= found and (high is None or found <= high)
        assert not delta_exceeds(half, found, epsilon, m, level)


@pytest.mark.slow
@given(st.integers(0, 10), epsilons, st.integers(1, 5), levels, st.integers(-2, 10))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_the_lemma(half: int, epsilon: Fraction, m: int, level: Fraction, start: int) -> None:
    """For one event the rates at which it exceeds a level are an interval; from 0 downwards unbounded above."""
    if 2 * start <= -m or start < -half:
        return
    with ctx.workprec(200):
        members = [IdealMember(half, Fraction(i, 24)) for i in range(49)]
        signs = [bool(x.excess(start, m, ball(epsilon).exp(), ball(level)) > 0) for x in members]
    changes = sum(a != b for a, b in zip(signs, signs[1:], strict=False))
    assert changes <= (1 if start <= 0 or signs[0] else 2)
    if start <= 0 and any(signs):
        assert signs[-1]


@pytest.mark.parametrize(("half", "epsilon", "m"), [(11, "1", 1), (25, "0.3", 2), (9, "2", 3), (6, "1", 6)])
def test_float_guesses(half: int, epsilon: str, m: int) -> None:
    """ln delta in floats is the balls' to 12 digits, and the guessed rate is the best breakpoint."""
    value = Fraction(epsilon)
    found = {}
    with ctx.workprec(200):
        for g in breakpoints(half, value, m):
            found[g] = IdealMember(half, g).delta(value, m)
            assert abs(arb(log_delta(half, g, value, m)) - found[g].log()) < 1e-12
    assert guessed_rate(half, value, m) == min(found, key=lambda g: float(found[g]))


def test_no_tail_is_too_deep_for_a_guess() -> None:
    """delta near 1e-4343 is no float, its logarithm is."""
    assert log_delta(1000, Fraction(10, 1999), Fraction(10), 1) == pytest.approx(-5002.5 - 3.22, abs=0.5)
