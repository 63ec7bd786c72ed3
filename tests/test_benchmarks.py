"""The benchmarks run: every registered case once, at its smallest size, through every phase. Never a time."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # benchmarks/ is beside the package, not in it

from benchmarks.__main__ import main  # noqa: E402
from benchmarks.phases import AGAIN, PHASES  # noqa: E402
from benchmarks.registry import Case, ImportCase, Peer, all_cases, register  # noqa: E402
from benchmarks.results import GROUPS, Result, run  # noqa: E402
from dpopt.backends.registry import BUILT_IN  # noqa: E402

CASES = all_cases()
PROBLEMS = [name for name, case in CASES.items() if isinstance(case, Case)]
IMPORTS = [name for name, case in CASES.items() if isinstance(case, ImportCase)]


def smallest(name: str) -> Result:
    """The only result of a case at its smallest size."""
    case = CASES[name]
    sizes = case.sizes[:1] if isinstance(case, Case) else None
    (result,) = run(case, repeat=1, sizes=sizes)
    return result


def test_the_cases_are_there() -> None:
    assert len(PROBLEMS) >= 10
    assert IMPORTS == ["import"]
    assert any(isinstance(case, Case) and case.demands for case in CASES.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_case_runs_through_every_phase(name: str) -> None:
    result = smallest(name)
    again = AGAIN if AGAIN[0] in result.phases else ()
    assert tuple(result.phases) == tuple(phase for phase in PHASES if phase in again or phase not in AGAIN)
    assert result.facts["verified"] in ("optimal", "feasible")
    assert result.facts["bound"] is not None
    assert {ratio.name for ratio in result.ratios} == set(GROUPS)
    for times in (*result.phases.values(), result.peer_times):
        assert len(times.wall) == len(times.cpu) == 1
        assert all(math.isfinite(seconds) and seconds >= 0 for seconds in (*times.wall, *times.cpu))
    assert ("peer_claimed" in result.facts) == (result.peer == Peer.HIGHS)


@pytest.mark.slow
@pytest.mark.parametrize("name", IMPORTS)
def test_an_import_case_names_what_is_loaded(name: str) -> None:
    result = smallest(name)
    assert result.facts["loaded"]["import dpopt"] == []
    assert result.facts["loaded"]["from dpopt import verify"] == []


def test_every_backend_has_a_case() -> None:
    used = {case.backend for case in CASES.values() if isinstance(case, Case)}
    assert set(BUILT_IN) <= used


def test_a_demand_names_a_group_of_phases_at_a_size_of_its_case() -> None:
    for case in CASES.values():
        for demand in case.demands if isinstance(case, Case) else ():
            assert demand.group in GROUPS
            assert demand.size in case.sizes


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        register(CASES["windowed"])


@pytest.mark.slow
def test_the_command_lists_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in CASES)
    out = tmp_path / "found.json"
    assert main(["--case", "tablebuilder", "--smallest", "--repeat", "1", "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert all(phase in printed for phase in PHASES if phase not in AGAIN)
    found = json.loads(out.read_text(encoding="utf-8"))
    assert set(found) == {"environment", "repeat", "results", "limitations"}
    assert {"python", "dpopt", "highspy", "cvxpy", "numpy", "scipy", "cores"} <= set(found["environment"])


@pytest.mark.parametrize("arguments", [["--case", "nothing"], ["--repeat", "0"]])
def test_the_command_refuses(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert arguments[0] in capsys.readouterr().err
