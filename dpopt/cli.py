"""The command line: a thin door. Parse, call a public function, print, and take the exit status from what was verified.

Exit status: 0 verified optimal or feasible (`verify`: the certificate holds); 1 proved infeasible, or failed (`verify`:
it does not hold); 2 bad input, with one line on standard error; 130 interrupted.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn, TextIO

import typer

from dpopt.errors import DpoptError, InputError
from dpopt.plugins import load_plugin, raised_by_plugin

__all__ = ["app", "main"]

app = typer.Typer(
    name="dpopt",
    help="Optimal noise for differential privacy: a solver claims, dpopt proves.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

PROVED, NOT_PROVED, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

_SILENT = logging.NullHandler()  # without a handler Python prints the library's warnings, tracebacks included


class Result(NamedTuple):
    """What a command has to say on standard output, and the exit status; it is printed when all is done."""

    text: str
    status: int = PROVED
    note: str = ""


# --- commands --------------------------------------------------------------------------------------------------------

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


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(metavar="FILE", readable=False, help="Problem file (TOML).")],
    backend: Annotated[str, typer.Option(metavar="NAME", help="A backend, or auto; see: dpopt backends.")] = "auto",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="Option of the backend; repeatable.")
    ] = None,
    as_json: Json = False,
    certificate: Annotated[
        Path | None, typer.Option(metavar="OUT", readable=False, help="Write the certificate here.")
    ] = None,
    plugin: Plugins = None,
) -> Result:
    """Solve a problem or target and print what is proved."""
    import dpopt

    _load_plugins(plugin)
    options = _read_options(option or [])
    if certificate is not None:
        _require_writable(certificate, file)
    question = _read(file)
    with _progress(f"solving {file.name} with {backend}"):
        solution = dpopt.solve(question, backend, options=options)
    note = ""
    if certificate is not None and solution.certificate:
        solution.certificate.save(certificate)
    elif certificate is not None:
        note = f"{certificate} was not written: nothing was proved"
    from dpopt.report import solution_json, summary

    text = _json(solution_json(solution)) if as_json else summary(solution, plain=_needs_ascii(sys.stdout))
    return Result(text, PROVED if _is_proved(solution.verified) else NOT_PROVED, note)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", readable=False, help="Certificate written by solve.")],
    as_json: Json = False,
    plugin: Plugins = None,
) -> Result:
    """Check a certificate without any solver."""
    import dpopt

    _load_plugins(plugin)
    with _progress(f"checking {certificate.name}"):
        try:
            verdict = dpopt.verify(certificate)
        except InputError as error:
            raise InputError(str(certificate), error.problem) from None
    if as_json:
        text = _json({"holds": verdict.holds, "verified": verdict.verified, "reason": verdict.reason})
    else:
        text = f"{certificate}: {'holds' if verdict.holds else 'does not hold'}: {verdict.reason}"
    return Result(text, PROVED if verdict.holds else NOT_PROVED)


@app.command()
def compare(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", readable=False, help="Problem files (TOML).")],
    backends: Annotated[str, typer.Option(metavar="A,B", help="Backends to compare; all by default.")] = "",
    as_json: Json = False,
    plugin: Plugins = None,
) -> Result:
    """Put problems to several backends: what each claims, and what dpopt proves from it."""
    import dpopt

    _load_plugins(plugin)
    names = [name.strip() for name in backends.split(",") if name.strip()] or None
    problems = [(file, _read(file)) for file in files]  # a bad file stops before any solve
    found = []
    for file, problem in problems:
        with _progress(f"comparing backends on {file.name}"):
            try:
                found.append(dpopt.compare(problem, names))
            except InputError as error:
                raise error.inside(str(file)) from None
    proved = all(any(_is_proved(row.verified) for row in comparison.rows) for comparison in found)
    if as_json:
        text = _json({"comparisons": [comparison.to_dict() for comparison in found]})
    else:
        text = "\n\n\n".join(str(comparison) for comparison in found)
    return Result(text, PROVED if proved else NOT_PROVED)


@app.command("backends")
def list_backends(as_json: Json = False, plugin: Plugins = None) -> Result:
    """List the backends: whether each can run here, and its options."""
    from dpopt.backends.registry import backend_availability, get_backend
    from dpopt.report import aligned

    _load_plugins(plugin)
    with _progress("importing the solvers"):
        answers = backend_availability()
    options = {name: _options_of(get_backend(name)) if answer.available else [] for name, answer in answers.items()}
    if as_json:
        entries = [
            {"name": name, "available": answer.available, "reason": answer.reason, "options": options[name]}
            for name, answer in answers.items()
        ]
        return Result(_json({"backends": entries}))
    table = [("backend", "available", "versions, or what is missing")]
    table += [(name, "yes" if answer.available else "no", answer.reason) for name, answer in answers.items()]
    listed = [("backend", "option", "default", "meaning")]
    for name, entry in [(name, entry) for name, found in options.items() for entry in found]:
        default = "none" if entry["default"] is None else json.dumps(entry["default"])
        listed.append((name, entry["name"], default, entry["text"]))
    return Result("\n".join([*aligned(table), "", *aligned(listed)]))


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
) -> None:
    """The options before the command."""


# --- the door --------------------------------------------------------------------------------------------------------


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
        result = command.main(args=words, prog_name="dpopt", standalone_mode=False)
        return result if isinstance(result, int) else _show(result)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _broken_pipe()
    except (DpoptError, typer.TyperException) as error:
        return _complain(error.format_message() if isinstance(error, typer.TyperException) else str(error), BAD_INPUT)
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
        print(f"dpopt: {_one_line(result.note)}", file=sys.stderr)
    sys.stdout.write(result.text + "\n")
    sys.stdout.flush()
    return result.status


def _complain(message: str, status: int) -> int:
    """One line on standard error."""
    print(f"dpopt: error: {_one_line(message)}", file=sys.stderr)
    return status


def _one_line(text: str) -> str:
    """Without line breaks, and without characters that could steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split()))


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _broken_pipe() -> int:
    """The reader has gone: nothing more may be written, not even by the interpreter's last flush."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


# --- reading what was typed ------------------------------------------------------------------------------------------


def _load_plugins(paths: Sequence[Path] | None) -> None:
    for path in paths or ():
        load_plugin(path)


def _read(file: Path) -> Any:
    """The problem or target of a file; the error names the file and the place in it."""
    import dpopt

    try:
        return dpopt.load(file)
    except InputError as error:
        if error.location.startswith((str(file), str(file.parent) + os.sep)):
            raise
        raise InputError(str(file), str(error)) from None


def _read_options(pairs: Sequence[str]) -> dict[str, Any]:
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


def _require_writable(path: Path, problem_file: Path) -> None:
    """Refuse a place where the certificate cannot be written before any time is spent on it."""
    folder = path.parent

    def refuse(why: str) -> NoReturn:
        raise InputError("--certificate", f"{path} cannot be written: {why}")

    if path.is_dir():
        refuse("it is a directory")
    if not folder.is_dir():
        refuse(f"there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        refuse("permission denied")
    if path.exists() and problem_file.exists() and path.samefile(problem_file):
        refuse("it is the problem file")


# --- writing ---------------------------------------------------------------------------------------------------------


def _json(data: dict[str, Any]) -> str:
    """Strict JSON: NaN and Infinity are refused here rather than by whoever reads it."""
    return json.dumps(data, indent=1, allow_nan=False)


def _is_proved(verified: Any) -> bool:
    """Whether there is a proved pmf."""
    return verified is not None and verified.value in ("optimal", "feasible")


def _options_of(backend: Any) -> list[dict[str, Any]]:
    """A backend's options as plain data; a default that is not finite means there is none."""
    found = []
    for name, option in backend.options.items():
        default = None if option.default in (float("inf"), float("-inf")) else option.default
        found.append({"name": name, "type": option.kind.__name__, "default": default, "text": option.text})
    return found


def _needs_ascii(stream: TextIO) -> bool:
    """Whether the stream's encoding lacks block characters."""
    try:
        "█▏".encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


@contextlib.contextmanager
def _progress(what: str) -> Iterator[None]:
    """A spinner on standard error, when a person is looking at it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
