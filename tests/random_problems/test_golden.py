"""The golden corpus: nothing that was proved before is proved less well now."""

from __future__ import annotations

from typing import Any

import pytest

import dpopt as dp

from . import golden

CORPUS = golden.corpus()
GROUP = 20  # random problems a test
RANK = {"refused": 0, "failed": 0, "feasible": 1, "optimal": 2}
ROUNDING = 1e-9  # of a value's size: what another version of a solver may change in a float


def assert_no_worse(found: dict[str, Any], before: dict[str, Any]) -> None:
    """The same verdict or a better one, a value and a bound that are no worse."""
    was, now = before["verified"], found["verified"]
    if was in ("infeasible", "refused"):
        assert found == before
        return
    assert RANK.get(now, -1) >= RANK[was], (now, was)
    assert golden.EXIT[now] <= golden.EXIT[was]
    if "value" not in before:
        return
    sign = -1 if before["maximise"] else 1
    slack = ROUNDING * max(abs(v) for v in [*before["value"], before["bound"] or 0.0]) + 1e-300
    assert max(sign * v for v in found["value"]) <= max(sign * v for v in before["value"]) + slack
    if before["bound"] is not None:
        assert found["bound"] is not None
        assert sign * found["bound"] >= sign * before["bound"] - slack


def test_the_corpus_is_whole() -> None:
    """Every problem file is in it, 300 random problems, and every verdict."""
    assert set(CORPUS["library"]) == {str(file.relative_to(golden.LIBRARY)) for file in golden.files()}
    assert len(CORPUS["random"]) == 300
    verdicts = [entry["answer"]["verified"] for entry in CORPUS["random"]]
    assert {"optimal", "infeasible", "refused"} <= set(verdicts)
    assert verdicts.count("optimal") >= 150


@pytest.mark.parametrize("name", CORPUS["library"])
def test_a_problem_file(name: str) -> None:
    """A file of the library."""
    assert_no_worse(golden.answer(dp.load(golden.LIBRARY / name)), CORPUS["library"][name])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, GROUP))
def test_random_problems(first: int) -> None:
    """Twenty of the random problems."""
    for number, entry in enumerate(CORPUS["random"][first : first + GROUP], first):
        try:
            assert_no_worse(golden.answer(entry["problem"]), entry["answer"])
        except AssertionError as error:
            raise AssertionError(f"random problem {number}, {entry['problem']}: {error}") from error
