"""The command line: exit statuses, one-line errors, strict JSON, and nothing on standard output beside the result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dpopt

from .command_line import ENVIRONMENT, Run, in_process_of_its_own

ROOT = Path(__file__).parents[2]

KEYS = [
    "name", "backend", "claimed", "verified", "value", "bound", "gap", "low", "high", "step", "probabilities", "tail",
    "mean", "variance", "checks", "design", "timings", "message",
]  # fmt: skip

SOLVABLE = """
name = "small"
[support]
type = "integers"
low = -2
high = 2
[objective]
type = "max-entropy"
[[constraints]]
type = "mean"
equals = 0
[[constraints]]
type = "variance"
at_most = 1
"""
INFEASIBLE = SOLVABLE + '[[constraints]]\ntype = "second-moment"\nat_least = 3\n'
TAILS = """
[objective]
type = "min-expected-cost"
cost = "absolute"
[[constraints]]
type = "pure-dp"
epsilon = 1
sensitivity = 2
"""
TARGET = '[target]\nepsilon = 1\ndelta = "1e-5"\nfamily = "analytic"\n'

CONSTRAINT = """
from dataclasses import dataclass
from typing import ClassVar
import dpopt as dp
print("hello from the plugin")

@dp.register_constraint
@dataclass(frozen=True)
class NoZero(dp.Constraint):
    type: ClassVar[str] = "no-zero"

    def terms(self, setting):
        return (dp.ZeroTerm((0,)),)
"""


def write(name: str, text: str) -> str:
    """Write a file in the test's directory."""
    Path(name).write_text(text, encoding="utf-8")
    return name


# --- answers ---------------------------------------------------------------------------------------------------------


def test_solve_prints_a_summary_and_nothing_else(dpopt_run) -> None:
    run = dpopt_run("solve", write("small.toml", SOLVABLE))
    assert run.status == 0
    assert run.err == ""
    assert run.out.startswith("small\n  verified       optimal (claimed: optimal)\n")
    assert "█" in run.out


@pytest.mark.parametrize(
    ("text", "status", "verified"),
    [(SOLVABLE, 0, "optimal"), (TAILS, 0, "optimal"), (TARGET, 0, "optimal"), (INFEASIBLE, 1, "infeasible")],
    ids=["finite", "tails", "target", "infeasible"],
)
def test_json(dpopt_run, text: str, status: int, verified: str) -> None:
    run = dpopt_run("solve", write("p.toml", text), "--json")
    assert run.status == status
    found = run.json(status)
    assert list(found) == KEYS
    assert found["verified"] == verified
    if verified == "infeasible":
        assert found["value"] is None and found["probabilities"] is None and found["low"] is None
        assert "'variance'" in found["message"] and "'second-moment'" in found["message"]
    else:
        assert len(found["probabilities"]) == (found["high"] - found["low"]) / found["step"] + 1
        assert all(set(check) == {"constraint", "holds", "margin"} for check in found["checks"])
    assert (found["design"] is not None) == (text == TARGET)
    assert (found["tail"] is not None) == (text == TAILS)


def test_json_of_a_target(dpopt_run) -> None:
    design = dpopt_run("solve", write("t.toml", TARGET), "--json").json()["design"]
    assert list(design) == ["D", "V", "gamma", "delta"]
    assert design["D"] == 18
    assert design["V"] == pytest.approx(17.496636849498, abs=1e-11)
    assert design["delta"] <= 1e-5


def test_an_infeasible_problem_names_its_conflict(dpopt_run) -> None:
    run = dpopt_run("solve", write("p.toml", INFEASIBLE))
    assert run.status == 1
    assert "conflict       mean, variance, second-moment" in run.out
    assert run.err == ""


def test_a_backend_and_its_option(dpopt_run) -> None:
    run = dpopt_run("solve", write("p.toml", TAILS), "--backend", "highs", "--option", "solver=ipm", "--json")
    assert run.status == 0
    assert run.json()["backend"] == "highs"


def test_certificate_and_verify(dpopt_run) -> None:
    assert dpopt_run("solve", write("p.toml", TAILS), "--certificate", "c.json").status == 0
    run = dpopt_run("verify", "c.json")
    assert (run.status, run.err) == (0, "")
    assert "holds" in run.out
    found = dpopt_run("verify", "c.json", "--json").json()
    assert found["holds"] is True and found["verified"] == "optimal"


def test_certificate_of_infeasibility(dpopt_run) -> None:
    assert dpopt_run("solve", write("p.toml", INFEASIBLE), "--certificate", "c.json").status == 1
    assert dpopt_run("verify", "c.json").status == 0


def test_a_damaged_certificate_does_not_hold(dpopt_run) -> None:
    dpopt_run("solve", write("p.toml", SOLVABLE), "--certificate", "c.json")
    data = json.loads(Path("c.json").read_text())
    data["derived"]["bound"] = "2"
    write("c.json", json.dumps(data))
    run = dpopt_run("verify", "c.json")
    assert (run.status, run.err) == (1, "")
    assert "derived.bound" in run.out
    assert dpopt_run("verify", write("d.json", '{"derived": ')).status == 1
    assert dpopt_run("verify", "d.json", "--json").json(1)["holds"] is False


def test_compare(dpopt_run) -> None:
    write("a.toml", SOLVABLE)
    write("b.toml", TAILS)
    run = dpopt_run("compare", "a.toml", "b.toml", "--backends", "highs,newton")
    assert (run.status, run.err) == (0, "")
    assert run.out.count("raw value") == 2
    assert "not supported: " in run.out
    found = dpopt_run("compare", "a.toml", "--backends", "newton", "--json").json()
    (comparison,) = found["comparisons"]
    assert comparison["rows"][0]["verified"] == "optimal"


def test_compare_without_any_proof_is_status_1(dpopt_run) -> None:
    assert dpopt_run("compare", write("p.toml", INFEASIBLE), "--backends", "newton").status == 1


def test_backends(dpopt_run) -> None:
    run = dpopt_run("backends")
    assert (run.status, run.err) == (0, "")
    found = dpopt_run("backends", "--json").json()["backends"]
    assert [entry["name"] for entry in found] == list(dpopt.backend_names())
    for entry in found:
        assert f"\n{entry['name']} " in run.out
        assert isinstance(entry["available"], bool) and entry["reason"]


def test_version_and_help(dpopt_run) -> None:
    assert dpopt_run("--version") == Run(0, f"dpopt {dpopt.__version__}\n", "")
    for words in (["--help"], ["solve", "--help"], ["verify", "--help"], ["compare", "--help"], ["backends", "--help"]):
        run = dpopt_run(*words)
        assert run.status == 0 and run.out.startswith("Usage: dpopt")


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "small"', "name =", ["p.toml", "not TOML", "line 2"]),
        ('name = "small"', "nmae = 'small'", ["p.toml", "nmae"]),
        ("at_most = 1", "at_msot = 1", ["constraints[1].at_msot", "at_most"]),
        ("at_most = 1", "at_most = true", ["constraints[1].at_most", "number"]),
        ("at_most = 1", "at_most = nan", ["p.toml"]),
        ('"max-entropy"', '"max-entrpy"', ["objective.type", "max-entropy"]),
        ("low = -2", "low = 3", ["support.high", "at least"]),
        ("low = -2", "", ["support.low", "missing"]),
        ('[[constraints]]\ntype = "mean"\nequals = 0\n', "", ["variance", "mean"]),
    ],
)
def test_a_bad_problem_is_one_line_with_its_place(dpopt_run, old: str, new: str, said: list[str]) -> None:
    assert old in SOLVABLE
    message = dpopt_run("solve", write("p.toml", SOLVABLE.replace(old, new))).refusal()
    assert message.startswith("p.toml: ")
    assert all(part in message for part in said), message


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Missing command"),
        (["solve"], "FILE"),
        (["frobnicate"], "frobnicate"),
        (["solve", "p.toml", "--colour"], "--colour"),
        (["solve", "nowhere.toml"], "there is no such problem file"),
        (["solve", "."], "cannot be read"),
        (["solve", "p.toml", "--backend", "higs"], "did you mean 'highs'"),
        (["solve", "p.toml", "--backend", "highs"], "entropy"),
        (["solve", "p.toml", "--option", "speed=9"], "options.speed"),
        (["solve", "p.toml", "--option", "iterations=many"], "options.iterations"),
        (["solve", "p.toml", "--option", "iterations"], "NAME=VALUE"),
        (["solve", "p.toml", "--option", "iterations=9", "--option", "iterations=8"], "twice"),
        (["solve", "p.toml", "--certificate", "no/such/place.json"], "no directory"),
        (["solve", "p.toml", "--certificate", "."], "is a directory"),
        (["solve", "p.toml", "--certificate", "p.toml"], "problem file"),
        (["solve", "p.toml", "--plugin", "nowhere.py"], "no such plugin"),
        (["verify", "nowhere.json"], "nowhere.json: cannot be read"),
        (["compare", "p.toml", "--backends", "newton,higs"], "did you mean 'highs'"),
        (["compare", "p.toml", "nowhere.toml"], "nowhere.toml"),
        (["compare", "t.toml"], "t.toml"),
    ],
    ids=" ".join,
)
def test_a_bad_command_is_one_line(dpopt_run, words: list[str], said: str) -> None:
    write("p.toml", SOLVABLE)
    write("t.toml", TARGET)
    before = sorted(Path().iterdir())
    assert said in dpopt_run(*words).refusal()
    assert sorted(Path().iterdir()) == before
    assert Path("p.toml").read_text() == SOLVABLE


def test_an_unwritable_certificate_is_refused_before_the_solve(dpopt_run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpopt, "solve", lambda *_, **__: pytest.fail("solved before looking"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    message = dpopt_run("solve", write("p.toml", SOLVABLE), "--certificate", "c.json").refusal()
    assert "permission denied" in message


def test_control_characters_do_not_reach_the_terminal(dpopt_run) -> None:
    message = dpopt_run("solve", "a\nb\x1b[31m.toml").refusal()
    assert "\x1b" not in message


# --- plugins ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plugin_adds_a_constraint_and_prints_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CONSTRAINT)
    (tmp_path / "p.toml").write_text(SOLVABLE + '[[constraints]]\ntype = "no-zero"\n')
    run = in_process_of_its_own(tmp_path, "solve", "p.toml", "--plugin", "mine.py", "--json")
    assert run.status == 0, run.err
    found = replace(run, err="").json()
    assert found["probabilities"][2] == 0
    assert [check["constraint"] for check in found["checks"]] == ["mean", "variance", "no-zero"]
    assert run.err == "hello from the plugin\n"


@pytest.mark.slow
def test_a_plugin_confirms_what_was_taken_on_trust(tmp_path: Path) -> None:
    """With the definition at hand nothing is left on trust; another definition of the same type is found out."""
    (tmp_path / "mine.py").write_text(CONSTRAINT)
    (tmp_path / "p.toml").write_text(SOLVABLE + '[[constraints]]\ntype = "no-zero"\n')
    run = in_process_of_its_own(tmp_path, "solve", "p.toml", "--plugin", "mine.py", "--certificate", "c.json")
    assert run.status == 0, run.err
    without = in_process_of_its_own(tmp_path, "verify", "c.json")
    assert without.status == 0 and "taken on trust: the stored rows of constraint 2" in without.out
    with_it = in_process_of_its_own(tmp_path, "verify", "c.json", "--plugin", "mine.py")
    assert with_it.status == 0 and "derived again from the plugin" in with_it.out and "trust" not in with_it.out
    (tmp_path / "other.py").write_text(CONSTRAINT.replace("ZeroTerm((0,))", "ZeroTerm((1,))"))
    other = in_process_of_its_own(tmp_path, "verify", "c.json", "--plugin", "other.py")
    assert other.status == 1 and "does not hold: trusted: the stored rows are not the ones" in other.out
    (tmp_path / "none.py").write_text("")
    none = in_process_of_its_own(tmp_path, "verify", "c.json", "--plugin", "none.py")
    assert none.status == 1 and "no-zero" in none.out


@pytest.mark.slow
def test_a_constraints_own_check_is_asked(tmp_path: Path) -> None:
    """A definition that gives the same rows but refuses the pmf: what is not linear is in its check alone."""
    (tmp_path / "mine.py").write_text(CONSTRAINT)
    (tmp_path / "p.toml").write_text(SOLVABLE + '[[constraints]]\ntype = "no-zero"\n')
    in_process_of_its_own(tmp_path, "solve", "p.toml", "--plugin", "mine.py", "--certificate", "c.json")
    strict_one = CONSTRAINT + "    def check(self, pmf, setting):\n        return dp.TermCheck(False, -1)\n"
    (tmp_path / "strict.py").write_text(strict_one)
    run = in_process_of_its_own(tmp_path, "verify", "c.json", "--plugin", "strict.py")
    assert run.status == 1 and "does not meet 'no-zero'" in run.out


def test_verify_states_value_and_bound(dpopt_run) -> None:
    """An entropy from below with its bound above, a cost from above with its bound below; both in the JSON."""
    for text in (SOLVABLE, TAILS):
        assert dpopt_run("solve", write("p.toml", text), "--certificate", "c.json", "--force").status == 0
        lines = dpopt_run("verify", "c.json").out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["value", "bound"]
        value, bound = (float(line.split()[1]) for line in lines[1:])
        assert value == pytest.approx(bound, rel=1e-9)
        assert value <= bound if text is SOLVABLE else bound <= value
        found = dpopt_run("verify", "c.json", "--json").json()
        assert found["value"] == pytest.approx(value) and found["bound"] == pytest.approx(bound)
    assert dpopt_run("solve", write("i.toml", INFEASIBLE), "--certificate", "i.json").status == 1
    found = dpopt_run("verify", "i.json", "--json").json()
    assert found["verified"] == "infeasible" and found["value"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import dpopt\n1 / 0\n", "mine.py:2: the plugin cannot be loaded (ZeroDivisionError"),
        ("x = (\n", "mine.py:1: the plugin cannot be loaded (SyntaxError"),
        ("raise SystemExit(0)\n", "SystemExit"),
        ("import dpopt\ndpopt.register_constraint(int)\n", "must be a frozen dataclass"),
    ],
)
def test_a_broken_plugin_is_one_line(dpopt_run, text: str, said: str) -> None:
    write("mine.py", text)
    assert said in dpopt_run("solve", write("p.toml", SOLVABLE), "--plugin", "mine.py").refusal()


def test_a_plugin_that_fails_later_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CONSTRAINT.replace("return (dp.ZeroTerm((0,)),)", "return setting.nonsense"))
    (tmp_path / "p.toml").write_text(SOLVABLE + '[[constraints]]\ntype = "no-zero"\n')
    run = in_process_of_its_own(tmp_path, "solve", "p.toml", "--plugin", "mine.py")
    assert "mine.py:13: AttributeError" in replace(run, err=run.err.replace("hello from the plugin\n", "")).refusal()


# --- the process -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(SOLVABLE)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "dpopt", "solve", "p.toml"],
        cwd=tmp_path, env=ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_interrupt(dpopt_run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpopt, "solve", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    found = dpopt_run("solve", write("p.toml", SOLVABLE))
    assert found == Run(130, "", "dpopt: interrupted while solving p.toml with auto\n")


def test_our_own_mistake_is_one_line_and_no_proof(dpopt_run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpopt, "solve", lambda *_, **__: {}["missing"])
    run = dpopt_run("solve", write("p.toml", SOLVABLE))
    assert run.status == 1 and run.out == ""
    assert run.err.startswith("dpopt: error: internal error") and run.err.count("\n") == 1


def test_verifying_loads_no_solver(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{}")
    code = (
        "import sys; from dpopt.cli import main; main(['verify', 'c.json']);"
        "print([m for m in ('numpy', 'scipy', 'cvxpy', 'pulp', 'highspy', 'dpopt.solving') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_compare_takes_options_for_all_backends_that_know_them_or_for_one(dpopt_run) -> None:
    Path("p.toml").write_text(dpopt.tablebuilder(D=2, V=1).to_toml())
    run = dpopt_run("compare p.toml --backends cvxpy,newton --option cvxpy.solver=SCS")
    assert run.status == 0 and "SCS" in run.out
    assert dpopt_run("compare p.toml --backends cvxpy,newton --option solver=CLARABEL").status == 0
    for wrong in ("nope=1", "highs.presolve=on", "newton.nope=1"):
        run = dpopt_run(f"compare p.toml --backends cvxpy,newton --option {wrong}")
        assert run.status == 2 and len(run.err.splitlines()) == 1


def test_compare_sends_a_target_to_solve(dpopt_run) -> None:
    Path("t.toml").write_text(dpopt.target(epsilon=1, delta="1/10", family="any").to_toml())
    run = dpopt_run("compare t.toml")
    assert run.status == 2 and "t.toml: holds a target, which has no single program: dpopt solve t.toml" in run.err
