"""The command line, run in this process."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from dpopt.cli import main

from .command_line import Run


@pytest.fixture
def dpopt_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Run]:
    """Run the command line in a directory of its own: one text that a shell would split, or the words themselves."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Run:
        status = main(shlex.split(words[0]) if len(words) == 1 else list(words))
        captured = capsys.readouterr()
        return Run(status, captured.out, captured.err)

    return run
