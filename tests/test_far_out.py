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


@pytest.mark.parametrize(
    ("cost", "constraints", "support", "least"),
    [
        ({"polynomial": [400, -40, 1]}, [dp.PureDP(1)], None, "1.84134718841558464"),
        ({"polynomial": [2500, -100, 1]}, [dp.PureDP(1)], None, "1.84134718841558464"),
        ("absolute", [dp.PureDP(1, boundary="window"), dp.Mean(20)], dp.Integers(-50, 50), "20.00000000175387"),
    ],
)
def test_noise_that_is_not_centred_at_0(cost: Any, constraints: list[Any], support: Any, least: str) -> None:
    """A cost with its minimum far out is a moved copy of the one at 0 (group staircase: epsilon 1, E Z^2)."""
    question = dp.Problem(objective=dp.MinExpectedCost(cost), constraints=constraints, support=support)
    solution = dp.solve(question)
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert float(solution.value) == pytest.approx(float(least), rel=1e-9)


def test_a_solution_and_its_certificate_are_verified_as_they_are() -> None:
    """No detour over a file."""
    solution = dp.solve(dp.tablebuilder(D=2, V=1))
    assert dp.verify(solution).holds and dp.verify(solution.certificate).holds


def test_targets_refuse_unknown_backends_and_options() -> None:
    """A closed form needs no solver, but a slip is a slip."""
    question = dp.target(epsilon=1, delta="1e-3", family="any")
    with pytest.raises(dp.BackendError, match="backend 'nope' is unknown"):
        dp.solve(question, "nope")
    with pytest.raises(dp.InputError, match="options.foo: is not an option"):
        dp.solve(question, options={"foo": 1})
    with pytest.raises(dp.InputError, match="backend: must be a registered name"):
        dp.solve(question, 3)
    with pytest.raises(dp.InputError, match="options: must be a mapping"):
        dp.solve(question, options=3)
