"""The golden corpus: what was proved of every problem file and of 300 random problems, once and for all.

A change of the package's inside must prove the same, or more. ``python -m tests.random_problems.golden`` draws the
problems again and writes what is proved today; do so only when the corpus itself is meant to change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings

import dpopt as dp

from .drawing import BOUNDED, finite_problems, infinite_problems

CORPUS = Path(__file__).with_name("golden.json")
LIBRARY = Path(__file__).parent.parent.parent / "problems"
COUNTS = ((finite_problems, 200), (infinite_problems, 100))
EXIT = {"optimal": 0, "feasible": 0, "infeasible": 1, "failed": 1, "refused": 2}  # of the command line


def answer(question: Any) -> dict[str, Any]:
    """What is proved of a problem's table, of a loaded problem or of a target."""
    try:
        loaded = dp.Problem.from_dict(question) if isinstance(question, dict) else question
        solution = dp.solve(loaded)
    except dp.InputError as error:
        return {"verified": "refused", "location": error.location}
    found: dict[str, Any] = {"verified": solution.verified.value}
    if solution.conflict:
        found["conflict"] = sorted(solution.conflict)
    if solution.proved_pmf is not None:
        ends = (solution.value.lower, solution.value.upper)
        found["value"] = [float(end) for end in ends]
        found["bound"] = None if solution.bound is None else float(solution.bound)
        found["maximise"] = solution.problem.objective.type == "max-entropy" if hasattr(loaded, "objective") else False
    return found


def drawn() -> list[dict[str, Any]]:
    """Different random problems, the same ones every time for one version of Hypothesis."""
    return [table for strategy, count in COUNTS for table in _different(strategy(), count)]


def _different(strategy: Any, count: int) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    @settings(BOUNDED, max_examples=5 * count, phases=[Phase.generate])
    @given(strategy)
    def collect(table: dict[str, Any]) -> None:
        if len(found) < count:
            found.setdefault(json.dumps(table, sort_keys=True), table)

    collect()
    return list(found.values())


def files() -> list[Path]:
    """Every problem file, those of the figures included."""
    return sorted(LIBRARY.rglob("*.toml"))


def corpus() -> dict[str, Any]:
    """The corpus as it was written."""
    return json.loads(CORPUS.read_text(encoding="utf-8"))


def write() -> None:
    """Draw, solve and write."""
    library = {str(file.relative_to(LIBRARY)): answer(dp.load(file)) for file in files()}
    random = [{"problem": table, "answer": answer(table)} for table in drawn()]
    lines = [json.dumps(entry, separators=(",", ":")) for entry in random]
    text = json.dumps({"library": library}, indent=1)[:-2] + ',\n "random": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"
    CORPUS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
