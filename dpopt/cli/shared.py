"""What the commands share: options, reading what was typed, and showing solutions."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from dpopt.cli.door import NOT_PROVED, PROVED, Result, say
from dpopt.cli.files import STANDARD, Outputs, name_of, read_input
from dpopt.errors import InputError, NotVerifiedError
from dpopt.plugins import load_plugin
from dpopt.reading import read_pairs

if TYPE_CHECKING:
    from dpopt.patience import Progress
    from dpopt.solution import Solution

__all__ = [
    "Json",
    "Plugins",
    "TimeLimit",
    "Verbose",
    "is_proved",
    "json_text",
    "load_plugins",
    "needs_ascii",
    "not_written",
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
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="What is proved by then is the answer.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Where there is no terminal, a line a second on standard error.")
]


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
    return {name: _value(text) for name, text in read_pairs(pairs, "--option", "solver=CLARABEL").items()}


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
def not_written(path: Path | None) -> Iterator[None]:
    """Have an interrupt say that a wanted file was not written."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if path is not None:
            interrupt.add_note(f"{path} was not written")
        raise


@contextlib.contextmanager
def progress(
    what: str, verbose: bool = False, seconds: float | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """A spinner on standard error when a person is looking at it, and with `verbose` a line a second when none is.

    What comes is the callback for a call that tells how far it is, None where nobody listens. Whatever is called within
    is heard, and has so many `seconds`.

    Raises
    ------
    NotVerifiedError
        They were over, and what was called has nothing to show for them.
    """
    from dpopt.patience import Stopped, limited, read_time_limit

    with _spinner(what, verbose) as tell, limited(read_time_limit(seconds, "--time-limit"), tell):
        try:
            yield tell
        except Stopped as stop:
            raise NotVerifiedError(f"{stop} ended it, {what}, before anything was proved") from None
        except KeyboardInterrupt as interrupt:
            if not getattr(interrupt, "__notes__", None):
                interrupt.add_note(f"interrupted while {what}")
            raise


@contextlib.contextmanager
def _spinner(what: str, verbose: bool) -> Iterator[Callable[[Progress], None] | None]:
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(what) as status:
            yield lambda now: status.update(f"{what}: {now}")
    elif verbose:
        say(what)
        yield _Lines()
    else:
        yield None


class _Lines:
    """A line a second."""

    def __init__(self) -> None:
        self.next = 1.0

    def __call__(self, now: Progress) -> None:
        if now.seconds >= self.next:
            self.next = now.seconds + 1
            say(str(now))
