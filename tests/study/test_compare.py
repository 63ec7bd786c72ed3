"""Comparing backends: the raw answer is measured as it is, and no backend is left out in silence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

import dpopt as dp
from dpopt.backends.base import Availability, Claim, Option, Support
from dpopt.program.program import Program
from dpopt.study.compare import Comparison

WINDOW = dp.Problem(
    support=dp.Integers(-3, 3),
    objective=dp.MinExpectedCost("absolute"),
    constraints=[dp.PureDP(1, 1, boundary="window")],
    name="window",
)


class Scripted:
    """A backend that returns the pmf it was made with."""

    name: ClassVar[str] = "scripted"
    requires: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, answer: Any = None, *, available: bool = True) -> None:
        self.answer, self.available = answer, available

    def availability(self) -> Availability:
        return Availability(self.available, "" if self.available else "the moon is not full")

    def supports(self, program: Program) -> Support:
        return Support(True, "everything")

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        if isinstance(self.answer, Exception):
            raise self.answer
        x = np.zeros(program.cost.size)
        x[: len(self.answer)] = self.answer
        return Claim(dp.Claimed.OPTIMAL, self.name, "1", "scripted", x, np.zeros(0), float(program.cost @ x))


def raw(*p: float, problem: dp.Problem = WINDOW) -> Any:
    """The row of a scripted answer."""
    (row,) = dp.compare(problem, [Scripted(p)]).rows
    return row


def test_a_zero_beside_a_mass_is_an_infinite_epsilon() -> None:
    assert raw(0, 0.1, 0.2, 0.4, 0.2, 0.1, 0).raw_epsilon == math.inf
    assert raw(-1e-12, 0.1, 0.2, 0.4, 0.2, 0.1, 1e-3).raw_epsilon == math.inf
    assert raw(math.nan, 0.1, 0.2, 0.4, 0.2, 0.1, 0).raw_epsilon == math.inf
    assert raw(*[0] * 7).raw_epsilon == math.inf


def test_the_true_epsilon_is_the_largest_log_ratio() -> None:
    row = raw(0.01, 0.1, 0.2, 0.4, 0.2, 0.1, 0.05)
    assert row.raw_epsilon == pytest.approx(math.log(10))
    assert row.raw_violation == pytest.approx(max(0.1 - math.e * 0.01, 0.06), rel=1e-9)  # the mass is 1.06
    assert row.raw_objective == pytest.approx(0.03 + 0.2 + 0.2 + 0.2 + 0.2 + 0.15)
    assert raw(*[1 / 7] * 7).raw_epsilon == 0


def test_shifts_up_to_the_sensitivity_count() -> None:
    wide = dp.Problem(
        support=dp.Integers(-3, 3),
        objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.PureDP(1, 2, boundary="window")],
    )
    assert raw(1, 2, 4, 8, 4, 2, 1, problem=wide).raw_epsilon == pytest.approx(math.log(4))


def test_the_true_delta_of_a_raw_answer() -> None:
    problem = dp.Problem(
        support=dp.Integers(-1, 1), objective=dp.MinExpectedCost("absolute"), constraints=[dp.ApproxDP(0, "1/10")]
    )
    row = raw(0.25, 0.5, 0.25, problem=problem)
    assert row.raw_epsilon is None
    assert row.raw_delta == pytest.approx(float(dp.delta(dp.Pmf(-1, (1, 2, 1)), 0).upper))


def test_unavailable_unsupported_and_raising_backends_have_their_row() -> None:
    rows = dp.compare(WINDOW, [Scripted(available=False), "newton", Scripted(ValueError("boom"))]).rows
    assert [row.claimed for row in rows] == [None, None, dp.Claimed.ERROR]
    assert rows[0].message == "not available: the moon is not full"
    assert rows[1].message.startswith("not supported: ")
    assert "ValueError: boom" in rows[2].message and rows[2].verified is dp.Verified.FAILED


def test_every_registered_backend_is_there_by_default() -> None:
    comparison = dp.compare(WINDOW)
    assert [row.backend for row in comparison.rows] == list(dp.backend_names())
    asked = [row for row in comparison.rows if row.claimed is not None]
    assert {"highs", "scipy", "pulp", "cvxpy"} <= {row.backend for row in asked}
    for row in asked:
        assert row.value is not None and row.bound is not None
        assert row.value == pytest.approx(asked[0].value, rel=1e-5)
        assert row.timings["solve"] >= 0 and row.raw_seconds is not None


def test_the_answers_of_a_maximum_have_its_sign() -> None:
    (row,) = dp.compare(dp.tablebuilder(D=2, V=1), ["newton"]).rows
    assert row.raw_objective == pytest.approx(row.value, rel=1e-9)
    assert row.raw_epsilon is None and row.raw_violation < 1e-9


def test_prints_and_becomes_strict_json() -> None:
    comparison = dp.compare(WINDOW, ["highs", "newton", Scripted((0, 0.1, 0.2, 0.4, 0.2, 0.1, 0))])
    text = str(comparison)
    assert "raw epsilon (wanted 1)" in text and "newton: not supported" in text
    assert text.count("\nscripted") == 3  # answers, seconds, message
    plain = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert plain["name"] == "window"
    assert [row["backend"] for row in plain["rows"]] == ["highs", "newton", "scripted"]
    assert plain["rows"][2]["raw_epsilon"] == "inf"
    assert plain["rows"][1]["verified"] is None


def test_refusals() -> None:
    with pytest.raises(dp.InputError, match=r"^problem: "):
        dp.compare(dp.target(epsilon=1, delta="1e-5", family="any"))  # type: ignore[arg-type]
    with pytest.raises(dp.InputError, match=r"^backends: "):
        dp.compare(WINDOW, "highs")
    with pytest.raises(dp.BackendError, match="did you mean 'highs'"):
        dp.compare(WINDOW, ["higs"])
    with pytest.raises(dp.InputError, match=r"options\.speed"):
        dp.compare(WINDOW, ["highs"], {"highs": {"speed": 9}})
    with pytest.raises(dp.InputError, match=r"options\.scipy"):
        dp.compare(WINDOW, ["highs"], {"scipy": {}})
    assert isinstance(dp.compare(WINDOW, []), Comparison)
