"""What a run of the command line left behind, and runs in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ENVIRONMENT", "Run", "in_process_of_its_own"]

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@dataclass(frozen=True)
class Run:
    """Exit status, standard output and standard error of one run."""

    status: int
    out: str
    err: str

    def json(self, status: int = 0) -> dict[str, Any]:
        """The strict JSON object of a run that ended as it should and said nothing else."""

        def refuse(word: str) -> None:
            raise AssertionError(f"not strict JSON: {word}")

        assert (self.status, self.err) == (status, ""), self
        found = json.loads(self.out, parse_constant=refuse)
        assert isinstance(found, dict)
        return found

    def refusal(self) -> str:
        """The message of a refusal: exit status 2, one line on standard error, nothing on standard output."""
        assert (self.status, self.out) == (2, ""), self
        assert self.err.startswith("dpopt: error: ")
        assert self.err.count("\n") == 1 and self.err.endswith("\n")
        assert "Traceback" not in self.err
        return self.err.removeprefix("dpopt: error: ").strip()


def in_process_of_its_own(folder: Path, *words: str) -> Run:
    """Run `python -m dpopt`: for plugins, whose registrations would outlive the test."""
    done = subprocess.run(
        [sys.executable, "-m", "dpopt", *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Run(done.returncode, done.stdout, done.stderr)
