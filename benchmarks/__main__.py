"""The command: `python -m benchmarks [--case NAME ...] [--repeat N] [--smallest] [--json OUT] [--list]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.environment import LIMITATIONS, environment
from benchmarks.registry import Case, all_cases
from benchmarks.report import as_text, header
from benchmarks.results import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen cases and print each result as soon as it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="dpopt, phase by phase, beside its peers")
    parser.add_argument("--case", action="append", nargs="+", metavar="NAME", help="only these cases (see --list)")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="timed repetitions of each verb (default 5)")
    parser.add_argument("--smallest", action="store_true", help="each case at its smallest size only")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write every repetition as JSON")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    given = parser.parse_args(arguments)
    cases = all_cases()
    if given.list:
        _print("\n".join(f"{name:<22}{case.text}" for name, case in cases.items()))
        return 0
    names = [name for group in given.case or [list(cases)] for name in group]
    unknown = [name for name in names if name not in cases]
    if unknown:
        parser.error(f"--case {unknown[0]} is unknown (known: {', '.join(cases)})")
    if given.repeat < 1:
        parser.error(f"--repeat must be at least 1, not {given.repeat}")
    machine, results = environment(), []
    _print(header(machine, given.repeat))
    for name in names:
        case = cases[name]
        sizes = case.sizes[:1] if given.smallest and isinstance(case, Case) else None
        for result in run(case, given.repeat, sizes):
            results.append(result.to_dict())
            _print(as_text(result))
    _print("\nKnown limitations:\n" + "\n".join(f"- {limitation}" for limitation in LIMITATIONS))
    if given.json is not None:
        found = {"environment": machine, "repeat": given.repeat, "results": results, "limitations": LIMITATIONS}
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
