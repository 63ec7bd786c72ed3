"""Bounds far from 0: the core follows the mean, and what no program can hold is refused with its reason."""

from __future__ import annotations

from typing import Any

import pytest

import dpopt as dp

ABSOLUTE = dp.MinExpectedCost("absolute")


@pytest.mark.parametrize(
    ("constraints", "least"),
    [
        ([dp.Mean(at_least=50)], 50),
        ([dp.Mean(at_least=20), dp.PureDP(1)], 20),
        ([dp.Mean(at_most=-50), dp.PureDP(1)], 50),
        ([dp.Mean(at_most=-50), dp.ApproxDP(1, "0.01")], 50),
        ([dp.Expectation(of={"polynomial": [1, -2]}, at_least=99)], 49),
    ],
)
def test_bounds_on_the_mean_move_the_core(constraints: list[Any], least: int) -> None:
    """E|Z| >= |E Z|, and nearly equal so far out: a core around 0 would call these infeasible."""
    solution = dp.solve(dp.Problem(objective=ABSOLUTE, constraints=constraints))
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert float(solution.value) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([dp.PureDP(1), dp.Mean("1e400")], r"constraints\[1\]: holds a number beyond 1e300"),
        ([dp.PureDP(1), dp.Mean(10**6)], "constraints: put the mean at lattice index 1e\\+06"),
        ([dp.ApproxDP(1, "0.1"), dp.Mean(at_most="-1e9")], "support: makes a program of about"),
        ([dp.ApproxDP(1, "0.1"), dp.Mean(10**13)], "constraints: put the mean at lattice index 1e\\+13"),
    ],
)
def test_too_far_is_refused_with_the_reason(constraints: list[Any], words: str) -> None:
    """A clear error at once, not an overflow and not an endless sum."""
    with pytest.raises(dp.InputError, match=words):
        dp.solve(dp.Problem(objective=ABSOLUTE, constraints=constraints))


def test_supports_too_far_out() -> None:
    """Lattice indices are 64-bit integers in a program."""
    with pytest.raises(dp.InputError, match="low: must lie within 1e\\+12 steps of 0"):
        dp.Integers(10**30, 10**30 + 2)
