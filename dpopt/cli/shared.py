"""What the commands share: options, reading what was typed, and showing solutions."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from dpopt.cli.door import NOT_PROVED, PROVED, Result
from dpopt.cli.files import STANDARD, Outputs, name_of, read_input
from dpopt.errors import InputError
from dpopt.plugins import load_plugin

if TYPE_CHECKING:
    from dpopt.solution import Solution

__all__ = [
    "Json",
    "Plugins",
    "is_proved",
    "json_text",
    "load_plugins",
    "needs_ascii",
    "progress",
    "read_options",
    "read_question",
    "solution_result",
]

# readable=False leaves the files to the functions that read them, whose messages say more than the parser's
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        readable=False,
        help="Python file that registers constraints, objectives or backends.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


# --- reading what was typed ------------------------------------------------------------------------------------------


def load_plugins(paths: Sequence[Path] | None) -> None:
    for path in paths or ():
        load_plugin(path)


def read_question(file: Path) -> Any:
    """The problem or target of a file; the error names the file and the place in it."""
    import dpopt

    try:
        if file != STANDARD:
            return dpopt.load(file)
        from dpopt.problem.files import parse_problem

        return parse_problem(read_input(file), name_of(file), Path())
    except InputError as error:
        if error.location.startswith((name_of(file), str(file.parent) + os.sep)):
            raise
        raise InputError(name_of(file), str(error)) from None


def read_options(pairs: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` pairs: true, false, numbers, and text otherwise."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InputError("--option", f"must be NAME=VALUE, not {pair!r}")
        if name in options:
            raise InputError("--option", f"gives {name!r} twice")
        options[name] = _value(text)
    return options


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


# --- showing ---------------------------------------------------------------------------------------------------------


def json_text(data: dict[str, Any]) -> str:
    """Strict JSON: NaN and Infinity are refused here rather than by whoever reads it."""
    return json.dumps(data, indent=1, allow_nan=False)


def is_proved(verified: Any) -> bool:
    """Whether there is a proved pmf."""
    return verified is not None and verified.value in ("optimal", "feasible")


def solution_result(solution: Solution, outputs: Outputs, as_json: bool) -> Result:
    """A solution as `solve` prints it, its certificate saved where one is wanted and there is one."""
    from dpopt.report import solution_json, summary

    note = ""
    if solution.certificate:
        outputs.save("--certificate", solution.certificate.to_json())
    elif outputs.wants("--certificate"):
        note = outputs.not_written("--certificate", "nothing was proved")
    text = json_text(solution_json(solution)) if as_json else summary(solution, plain=needs_ascii(sys.stdout))
    return outputs.result(text, PROVED if is_proved(solution.verified) else NOT_PROVED, note)


def needs_ascii(stream: TextIO) -> bool:
    """Whether the stream's encoding lacks block characters."""
    try:
        "█▏".encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner on standard error, when a person is looking at it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
