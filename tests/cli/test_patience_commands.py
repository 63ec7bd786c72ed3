"""Time limits, progress and Ctrl-C on the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .command_line import ENVIRONMENT, Run

LARGE = """
[objective]
type = "min-wasserstein"
input = { type = "poisson", rate = 1000 }

[[constraints]]
type = "pure-dp"
epsilon = "1/10"
sensitivity = 200

[[constraints]]
type = "mean"
equals = "1/3"
"""

SMALL = """
[objective]
type = "min-expected-cost"
cost = "absolute"

[[constraints]]
type = "pure-dp"
epsilon = 1
"""

Runner = Callable[..., Run]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_text(LARGE)
    (tmp_path / "small.toml").write_text(SMALL)


def interrupted(folder: Path, *words: str, when: str) -> tuple[int, list[str], float]:
    """Status, the lines on standard error after Ctrl-C, and how long it took; Ctrl-C when a line holds `when`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dpopt", *words],
        cwd=folder,
        env={**ENVIRONMENT, "TMPDIR": str(folder / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if when in line:
                break
        process.send_signal(signal.SIGINT)
        started = time.perf_counter()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out == ""
    return process.returncode, err.splitlines(), time.perf_counter() - started


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["highs", "scipy", "cvxpy", "pulp"])
def test_an_interrupt_ends_a_solver(backend: str, tmp_path: Path) -> None:
    """At once, with one line, and with no file left behind, CBC's included."""
    (tmp_path / "temporary").mkdir()
    words = ("solve", "large.toml", "--backend", backend, "--certificate", "noise.json", "--verbose")
    status, lines, seconds = interrupted(tmp_path, *words, when=f"solving with {backend}")
    said = [line for line in lines if " s: " not in line]
    assert (status, len(said)) == (130, 1), lines
    assert said[0].startswith("dpopt: interrupted after ")
    assert said[0].endswith(" s; proved by then: nothing; noise.json was not written")
    assert seconds < 5  # it takes a few tenths of a second
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["large.toml", "small.toml", "temporary"]


@pytest.mark.slow
def test_an_interrupt_ends_a_search(tmp_path: Path) -> None:
    """For which no solver is needed."""
    (tmp_path / "target.toml").write_text('[target]\nepsilon = "1/5000"\ndelta = "1e-9"\nfamily = "tablebuilder"\n')
    status, lines, seconds = interrupted(tmp_path, "solve", "target.toml", "--verbose", when=" s: ")
    assert (status, seconds < 5) == (130, True)
    assert "proved by then: nothing (" in lines[-1]


@pytest.mark.slow
def test_an_interrupt_before_anything_has_begun(tmp_path: Path) -> None:
    """While the command line is still being imported: no traceback."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dpopt", "backends"], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(0.25)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # the interpreter itself may not have begun
    assert "dpopt" not in err or err.startswith("dpopt: interrupted")


@pytest.mark.slow
def test_a_time_limit(dpopt_run: Runner) -> None:
    """It is part of the answer; a certificate that is not there is not written."""
    run = dpopt_run("solve large.toml --time-limit 0.5 --certificate noise.json")
    assert run.status == 1
    assert "the time limit of 0.5 s ended the search while" in run.out
    assert run.err == "dpopt: noise.json was not written: nothing was proved\n"
    assert not Path("noise.json").exists()
    assert "auto ()" not in dpopt_run("solve large.toml --time-limit 1e-9").out
    assert "optimal" in dpopt_run("solve small.toml --time-limit 60").out


@pytest.mark.slow
def test_a_time_limit_in_json(dpopt_run: Runner) -> None:
    """The status, and the reason."""
    found = dpopt_run("solve large.toml --time-limit 0.5 --json").json(status=1)
    assert (found["claimed"], found["verified"]) == ("limit", "failed")
    assert "the time limit of 0.5 s" in found["message"]


@pytest.mark.parametrize("command", ["solve large.toml", "solve large.toml --option time_limit=3", "compare small.toml",
                                     "target --epsilon 1 --delta 1e-3"])  # fmt: skip
@pytest.mark.parametrize("limit", ["0", "-1", "nan"])
def test_what_is_no_time_limit(command: str, limit: str, dpopt_run: Runner) -> None:
    """Refused with the option's name."""
    run = dpopt_run(f"{command} --time-limit {limit}")
    assert run.refusal().startswith("--time-limit: must be a number of seconds above 0, not ")


def test_two_time_limits_must_agree(dpopt_run: Runner) -> None:
    """One that is given twice is given once."""
    run = dpopt_run("solve small.toml --time-limit 5 --option time_limit=7")
    assert run.refusal() == "time_limit: is 5 here and 7 in options: it is one limit, give it once"
    assert dpopt_run("solve small.toml --time-limit 50 --option time_limit=50").status == 0
    assert dpopt_run("solve small.toml --option time_limit=never").refusal().startswith("options.time_limit: must be")


@pytest.mark.slow
def test_a_time_limit_of_any_question_about_targets(dpopt_run: Runner) -> None:
    """The design of one family, all three, and the questions the other way round."""
    hard = "target --delta 1e-9 --epsilon 1/5000 --time-limit 0.2"
    for words in (f"{hard} --family tablebuilder", hard, f"{hard} --frontier 3", f"{hard} --D 200000"):
        run = dpopt_run(words)
        assert run.status == 1, words
        assert "the time limit of 0.2 s ended" in run.out + run.err
        assert "Traceback" not in run.err and run.err.count("\n") <= 1


@pytest.mark.slow
def test_a_line_a_second(dpopt_run: Runner) -> None:
    """Where there is no terminal, when it is asked for; otherwise nothing is said."""
    run = dpopt_run("solve large.toml --time-limit 2.5 --verbose")
    lines = run.err.splitlines()
    assert lines[0] == "dpopt: solving large.toml with auto"
    assert 1 <= len(lines) - 1 <= 3
    assert all(line.startswith("dpopt: ") and " s: " in line for line in lines[1:])
    assert dpopt_run("solve small.toml").err == ""


@pytest.mark.slow
def test_a_comparison_with_a_time_limit(dpopt_run: Runner) -> None:
    """Whoever was not asked says so."""
    run = dpopt_run("compare large.toml --backends highs,scipy --time-limit 1")
    assert run.status == 1
    assert "scipy: not asked: the time limit of 1 s was over" in run.out
