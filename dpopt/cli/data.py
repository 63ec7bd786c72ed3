"""What the release commands read: a CSV table of data, and where the random bits come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpopt.cli.files import name_of, option_words, read_input
from dpopt.errors import InputError
from dpopt.files.csv_table import Column, CsvFormat, CsvTable, Found, read_csv
from dpopt.files.kinds import FileKind, unexpected

if TYPE_CHECKING:
    from dpopt.release.randomness import Randomness

__all__ = [
    "Decimal",
    "Delimiter",
    "Encoding",
    "InsecureSeed",
    "found_in",
    "heading_of",
    "marked",
    "read_data",
    "read_seed",
    "warning_of",
]

InsecureSeed = Annotated[
    int | None,
    typer.Option("--insecure-seed", metavar="N", help="Repeatable draws, for tests only: the seed undoes the noise."),
]
_DATA = (FileKind.CSV,)
Delimiter = Annotated[
    str | None, typer.Option(metavar="C", help="What stands between the cells of the CSV file, such as ';' or tab.")
]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Its encoding, such as latin-1; UTF-8 by default.")]
Decimal = Annotated[str | None, typer.Option(metavar="C", help="The decimal sign of its numbers, '.' or ','.")]


def read_data(path: Path, delimiter: str | None, encoding: str | None, decimal: str | None) -> CsvTable:
    """A table with a line of column names and at least one row, from a file or from standard input."""
    try:
        given = CsvFormat(delimiter, encoding, decimal)
    except InputError as error:
        raise InputError(f"--{error.location}", error.problem) from None
    content, name = read_input(path, " as CSV"), name_of(path)
    try:
        table = read_csv(content, name, given, say=option_words)
    except InputError as error:
        raise unexpected(content, name, _DATA) or error from None
    wrong = unexpected(content, name, _DATA) if len(table.heading) == 1 else None  # any text can be one column
    if wrong is not None:
        raise wrong
    return table


def found_in(table: CsvTable, *columns: Column) -> str:
    """What is said on standard error of a format that was found rather than given."""
    found: list[Found] = [*table.found, *(part for column in columns for part in column.found)]
    return "; ".join(f"{table.name} is read with {option_words(f.option, f.value)}: {f.why}" for f in found)


def read_seed(seed: int | None) -> Randomness:
    """The operating system's generator, or the one that a seed makes."""
    from dpopt.release.randomness import InsecureRandomness, SystemRandomness

    if seed is None:
        return SystemRandomness()
    try:
        return InsecureRandomness(seed)
    except InputError as error:
        raise InputError("--insecure-seed", error.problem) from None


def warning_of(randomness: Randomness) -> str:
    """What is said on standard error about draws that must not be released."""
    return "" if randomness.secure else "drawn with --insecure-seed: whoever knows the seed can undo the noise"


def heading_of(column: str, randomness: Randomness) -> str:
    """The name of a column of draws, which says where they must not be released: no reader of the table loses it."""
    from dpopt.release.randomness import INSECURE

    return column if randomness.secure or INSECURE in column else f"{column} ({INSECURE})"


def marked(text: str, randomness: Randomness) -> str:
    """Printed draws, below a line that says where they must not be released: a comment to whoever reads numbers."""
    from dpopt.release.randomness import NOT_FOR_RELEASE

    return text if randomness.secure else f"# {NOT_FOR_RELEASE}\n{text}"
