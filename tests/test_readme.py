"""The README and docs/ are executed: every Python block, every file shown, every command after a prompt."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dpopt.cli import main

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the file name of a first comment line."""

    language: str
    text: str
    file: str


def blocks() -> list[Block]:
    """All fenced blocks in order."""
    found = []
    for marked, language, text in re.findall(
        r"^(?:<!-- (\S+\.csv) -->\n)?```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
    ):
        named = re.match(r"# (\S+\.(?:py|toml))\n", text)
        found.append(Block(language, text, named[1] if named else marked))
    return found


def after(marker: str) -> str:
    """The command in the block after a marker."""
    found = re.findall(rf"^<!-- {marker} -->\n```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return str(found[0]).strip()


def test_every_block_is_of_a_kind_that_is_executed() -> None:
    for block in blocks():
        assert block.language in ("sh", "console", "toml", "python", "csv")
        assert block.file or block.language in ("sh", "console") or ">>>" in block.text


def test_python_sessions() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    names: dict[str, object] = {}
    sessions = [block.text for block in blocks() if block.language == "python" and not block.file]
    assert len(sessions) >= 3
    for number, text in enumerate(sessions):
        example = parser.get_doctest(text, names, f"README block {number}", "README.md", 0)
        complaints: list[str] = []
        runner.run(example, out=complaints.append, clear_globs=False)
        names = example.globs
        assert not complaints, "".join(complaints)


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_documents(path: Path) -> None:
    found = doctest.DocTestParser().get_doctest(path.read_text(encoding="utf-8"), {}, path.name, str(path), 0)
    assert len(found.examples) >= 3
    complaints: list[str] = []
    doctest.DocTestRunner(verbose=False).run(found, out=complaints.append)
    assert not complaints, "".join(complaints)


@pytest.mark.slow
def test_files_and_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = []
    for block in blocks():
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        if block.language == "console":
            lines = block.text.splitlines()
            assert all(line.startswith("$ dpopt ") for line in lines)
            commands += [shlex.split(line)[2:] for line in lines]
    assert len(commands) >= 6
    for words in commands:
        if "--plugin" in words:  # in a process of its own: what a plugin registers stays registered
            ran = subprocess.run(
                [sys.executable, "-m", "dpopt", *words], capture_output=True, text=True, env=ENVIRONMENT
            )
            assert ran.returncode == 0, (words, ran.stderr)
        else:
            assert main(words) == 0, (words, capsys.readouterr().err)
    assert Path("counts.json").exists()


def test_the_two_commands() -> None:
    solve, test = after("solve command"), after("test command")
    assert "\n" not in solve and "\n" not in test
    assert (ROOT / shlex.split(solve)[-1]).is_file()
    assert test.endswith("-m pytest")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert 'for name in "test command" "solve command"' in ci  # the script reads them out of the README
    assert "-m pytest" not in ci
