"""The door of the command line: the application, what a command returns, and how anything ends.

Exit status: 0 verified optimal or feasible (`verify`: the certificate holds); 1 proved infeasible, or failed (`verify`:
it does not hold); 2 bad input, with one line on standard error; 130 interrupted, with one line that says what was
proved by then.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextvars import copy_context
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from dpopt.arithmetic import exact_integer
from dpopt.errors import DpoptError, NotVerifiedError
from dpopt.plugins import raised_by_plugin
from dpopt.reading import read_pairs
from dpopt.work import set_limits

__all__ = ["NOT_PROVED", "PROVED", "Result", "app", "main", "say"]


class _Commands(TyperGroup):
    """The commands; an interrupt says what it has to say before the parser takes it for any other exit."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            notes = getattr(interrupt, "__notes__", None) or ["interrupted"]
            say("; ".join(note.removeprefix("dpopt: ") for note in notes))
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="dpopt",
    cls=_Commands,
    help="Optimal noise for differential privacy: a solver claims, dpopt proves.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

PROVED, NOT_PROVED, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

_SILENT = logging.NullHandler()  # without a handler Python prints the library's warnings, tracebacks included


class Result(NamedTuple):
    """What a command has to say on standard output, and the exit status; it is printed when all is done.

    Text gets a line end; bytes are a file, and are written as they are.
    """

    text: str | bytes
    status: int = PROVED
    note: str = ""


def _print_version(wanted: bool) -> None:
    if wanted:
        import dpopt

        typer.echo(f"dpopt {dpopt.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Raise what one computation may take: bytes (2e9), bit_operations (2e11); repeatable.",
        ),
    ] = None,
) -> None:
    """The options before the command."""
    if limit:
        given = read_pairs(limit, "--limit", "bytes=8e9")
        set_limits({name: exact_integer(text, f"--limit {name}") for name, text in given.items()})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``dpopt``; those of the process by default.
    """
    logging.getLogger("dpopt").addHandler(_SILENT)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # a dependency's deprecations are no business of the user's
    command = typer.main.get_command(app)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # in a context of its own: what `--limit` raises is as it was when the command has ended
        result = copy_context().run(command.main, args=words, prog_name="dpopt", standalone_mode=False)
        return result if isinstance(result, int) else _show(result)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _close_stdout()
        return BROKEN_PIPE
    except (DpoptError, typer.TyperException) as error:
        message = _worded(error) if isinstance(error, typer.TyperException) else str(error)
        return _complain(message, NOT_PROVED if isinstance(error, NotVerifiedError) else BAD_INPUT)
    except Exception as error:  # a plugin's mistake, or ours: one line either way
        if (where := raised_by_plugin(error)) is not None:
            return _complain(f"{where}: {_described(error)}", BAD_INPUT)
        if os.environ.get("DPOPT_TRACEBACK"):
            traceback.print_exc()
        return _complain(
            f"internal error, please report it: {_described(error)} (DPOPT_TRACEBACK=1 shows where)", NOT_PROVED
        )


def _show(result: Result | None) -> int:
    """Print a result, all of it or nothing."""
    if result is None:
        return PROVED
    if result.note:
        say(result.note)
    try:
        if isinstance(result.text, bytes):
            sys.stdout.buffer.write(result.text)
        else:
            sys.stdout.write(result.text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _close_stdout()
        return _complain(f"the result cannot be written to standard output: {error.strerror}", BAD_INPUT)
    return result.status


def _worded(error: typer.TyperException) -> str:
    """The parser's words, unless the option is right and its place is not."""
    if getattr(error, "option_name", None) == "--limit":
        return "--limit: stands before the command, as in: dpopt --limit bytes=8e9 solve FILE"
    return error.format_message()


def _complain(message: str, status: int) -> int:
    """One line about an error."""
    say(f"error: {message}")
    return status


def say(text: str) -> None:
    """One line on standard error."""
    print(f"dpopt: {_one_line(text)}", file=sys.stderr, flush=True)


def _one_line(text: str) -> str:
    """Without line breaks, and without characters that could steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split()))


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _close_stdout() -> None:
    """Nothing more may be written, not even by the interpreter's last flush."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
