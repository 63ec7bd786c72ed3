"""`dpopt mechanism`: one kind of noise, all side by side, JSON and CSV, and what it refuses."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest


def test_one_mechanism(dpopt_run) -> None:
    """Parameters, the proved epsilon with its pair, delta, Theorem 2, and the costs."""
    run = dpopt_run("mechanism optimal-staircase --epsilon 2 --sensitivity 15")
    status, out, err = run.status, run.out, run.err
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "optimal-staircase noise with r 5, at sensitivity 15"
    assert lines[1].startswith("epsilon 2 (proved); attained by p(-14) = 0.00988171 beside p(-29) = 0.00133734")
    assert lines[2] == "delta 0 (proved) at epsilon 2; by Theorem 2 0"
    assert lines[4] == "E|Z| 6.37947955198, mean 0, variance 95.3234796965"


def test_noise_that_is_not_epsilon_dp(dpopt_run) -> None:
    """The pair that breaks it, and the paper's claim."""
    run = dpopt_run("mechanism exponential --epsilon 1 --delta 0.1")
    assert run.status == 0
    out = run.out
    assert "with delta = 0 there is none: p(0) = 0.1 beside p(-1) = 0\n" in out
    assert "closed form: epsilon = rate m, which is wrong\n" in out


def test_json(dpopt_run) -> None:
    """One strict object; the numbers are nearest floats."""
    run = dpopt_run("mechanism gaussian --epsilon 0.5 --delta 1e-2 --sensitivity 1 --json")
    found = run.json()
    assert found["mechanism"] == "gaussian" and found["is_pure"] is False
    assert found["delta"] <= 0.01 < found["theorem2_delta"] == found["paper"]["delta"]
    assert found["epsilon"] <= 0.5 and found["paper"]["holds"] is True
    assert found["variance"] == pytest.approx(found["parameters"]["sd"] ** 2 + 1 / 12, rel=1e-3)


def test_all_side_by_side(dpopt_run) -> None:
    """Table V for one privacy; widths may be chosen; CSV has a line a mechanism."""
    run = dpopt_run("mechanism all --epsilon 2 --sensitivity 15 --csv table.csv")
    status, out, err = run.status, run.out, run.err
    assert (status, err) == (0, "")
    assert "staircase          2        0      0          12.909411" in out
    assert "staircase, width 20, height 0.13533528: closed form" in out
    assert "gaussian: delta: must be positive" in out
    rows = list(csv.reader(Path("table.csv").read_text(encoding="utf-8").splitlines()))
    assert [row[0] for row in rows[1:]] == ["laplace", "geometric", "staircase", "staircase", "optimal-staircase"]
    assert rows[0][6] == "mean_absolute" and float(rows[1][6]) == pytest.approx(7.4944473237535264547, rel=1e-15)
    run = dpopt_run("mechanism all --epsilon 1 --delta 0.01 --width 1 --step 0.5 --json")
    found = run.json()
    assert len(found["mechanisms"]) == 8 and found["missing"] == []
    assert found["step"] == 0.5


@pytest.mark.parametrize(("words", "message"), [
    ("gaussian --epsilon 1", "delta: must be positive: no gaussian noise is epsilon-DP; take laplace noise"),
    ("nothing --epsilon 1", "mechanism: must be one of laplace,"),
    ("staircase --epsilon 1", "--width: is needed once with staircase"),
    ("staircase --epsilon 1 --width 1 --width 2", "--width: is needed once with staircase"),
    ("laplace --epsilon 1 --width 2", "width: is for staircase noise, not for laplace"),
    ("all --epsilon 1 --pmf x.json", "--pmf: goes with one mechanism, not with all"),
    ("laplace --epsilon 1 --pmf nowhere/x.json", "--pmf: nowhere/x.json cannot be written"),
    ("all --epsilon 1 --cost square", "--cost: goes with one mechanism, not with all"),
    ("laplace --epsilon 1e-300", "epsilon: asks for noise that is out of reach: scale"),
    ("laplace --epsilon 1 --sensitivity 1e7", "sensitivity: must be at most 1000000, not 1e7"),
    ("laplace --epsilon 1 --csv nowhere/x.csv", "--csv: nowhere/x.csv cannot be written: there is no directory"),
    ("laplace", "Missing option '--epsilon'."),
])  # fmt: skip
def test_what_is_refused(dpopt_run, words: str, message: str) -> None:
    """One line on standard error, exit status 2, nothing on standard output."""
    assert dpopt_run(f"mechanism {words}").refusal().startswith(message)


def test_noise_by_name_goes_on_to_the_release(dpopt_run) -> None:
    """What `mechanism` writes is what `privacy`, `sample` and `add-noise` read."""
    assert dpopt_run("mechanism optimal-staircase --epsilon 2 --sensitivity 15 --pmf noise.json").status == 0
    curve = dpopt_run("privacy noise.json --sensitivity 15 --epsilon 2 --json").json()["curve"]
    assert curve[0]["delta_upper"] == 0
    Path("counts.csv").write_text("count\n100\n200\n")
    assert dpopt_run("add-noise counts.csv noise.json").status == 0
    assert len(dpopt_run("sample noise.json --size 7").out.split()) == 7
