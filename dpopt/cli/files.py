"""What commands read and write: files, and standard input and output by the name ``-``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from dpopt.cli.door import PROVED, Result
from dpopt.errors import InputError
from dpopt.files.writing import create_file, write_file

__all__ = ["STANDARD", "Csv", "Force", "Outputs", "name_of", "option_words", "read_input", "require_one_standard_input"]

STANDARD = Path("-")  # standard input among the arguments, standard output among the options

# readable=False leaves the files to the functions that read them, whose messages say more than the parser's
Csv = Annotated[
    Path | None, typer.Option("--csv", metavar="OUT", readable=False, help="Write the table here as CSV; - prints it.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there already.")]

_GOES = {"--csv": "the table", "--certificate": "the certificate", "--pmf": "the noise", "--plot": "the plot"}


def option_words(option: str, value: str) -> str:
    """How the command line says an option."""
    return f"--{option} {shlex.quote(value)}" if value.isprintable() else f"--{option} tab"


def name_of(path: Path) -> str:
    """What messages call a file."""
    return "standard input" if path == STANDARD else str(path)


def read_input(path: Path, what: str = "") -> bytes:
    """The content of a file, or of standard input; messages say what it was to be read as."""
    try:
        if path != STANDARD:
            return path.read_bytes()
        if sys.stdin is None:
            raise InputError(name_of(path), "is closed")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:
        wrong = getattr(error, "strerror", None) or getattr(error, "problem", None) or error
        raise InputError(name_of(path), f"cannot be read{what}: {wrong}") from None


class Outputs:
    """Where a command's options write; refused before any work is done where that cannot be.

    Parameters
    ----------
    options : mapping
        Options and their paths; None where one is not given, ``-`` for standard output, which then carries that file
        and nothing else.
    force : bool
        Overwrite what is there.
    inputs : iterable of path
        What the command reads: never overwritten, and standard input only once among them.
    as_json : bool
        Whether standard output is wanted for JSON.
    """

    def __init__(
        self,
        options: Mapping[str, Path | None],
        *,
        force: bool = False,
        inputs: Iterable[Path | None] = (),
        as_json: bool = False,
    ) -> None:
        self._paths = {option: path for option, path in options.items() if path is not None}
        self._force = force
        self._printed: bytes | None = b"" if STANDARD in self._paths.values() else None
        read = [path for path in inputs if path is not None]
        require_one_standard_input(read)
        places: dict[Path, str] = {}
        for option, path in self._paths.items():
            if path == STANDARD and as_json:
                raise InputError(option, "- and --json both want standard output: name a file for one of them")
            if path != STANDARD:
                _require_writable(option, path, [given for given in read if given != STANDARD], force=force)
            place = path if path == STANDARD else path.resolve()
            if place in places:
                raise InputError(option, f"{path} is where {_GOES[places[place]]} goes")
            places[place] = option

    def save(self, option: str, content: str | bytes) -> None:
        """Write what an option asks for; nothing where it was not given."""
        path = self._paths.get(option)
        if path == STANDARD:
            self._printed = content.encode() if isinstance(content, str) else content
        elif path is not None:
            (write_file if self._force else create_file)(path, content)

    def wants(self, option: str) -> bool:
        """Whether an option was given."""
        return option in self._paths

    def not_written(self, option: str, why: str) -> str:
        """The note about a file that there is nothing to write to."""
        path = self._paths[option]
        return f"{'standard output' if path == STANDARD else path} was not written: {why}"

    def result(self, text: str, status: int = PROVED, note: str = "") -> Result:
        """What the command says; where standard output belongs to a file, that file instead of the text."""
        return Result(text if self._printed is None else self._printed, status, note)


def require_one_standard_input(paths: Sequence[Path]) -> None:
    """Refuse to read standard input twice."""
    if paths.count(STANDARD) > 1:
        raise InputError("-", "stands for standard input, which can be read only once: name a file for the other")


def _require_writable(option: str, path: Path, inputs: Sequence[Path], *, force: bool) -> None:
    folder = path.parent

    def refuse(why: str) -> NoReturn:
        raise InputError(option, f"{path} cannot be written: {why}")

    if path.is_dir():
        refuse("it is a directory")
    if path.exists() and not path.is_file():
        refuse("it is not a regular file")
    if not folder.is_dir():
        refuse(f"there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        refuse("permission denied")
    if path.exists() and any(given.exists() and path.samefile(given) for given in inputs):
        refuse("it is the problem file" if option == "--certificate" else "it is what is read")
    if path.exists() and not force:
        refuse("it exists; --force overwrites it")
