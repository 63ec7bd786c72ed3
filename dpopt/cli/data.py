"""What the release commands read: a CSV table of data, and where the random bits come from."""

from __future__ import annotations

import re
from csv import Error, reader
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dpopt.arithmetic import exact
from dpopt.errors import InputError

if TYPE_CHECKING:
    from dpopt.release.randomness import Randomness

__all__ = ["DataTable", "InsecureSeed", "heading_of", "marked", "read_data", "read_seed", "warning_of"]

InsecureSeed = Annotated[
    int | None,
    typer.Option("--insecure-seed", metavar="N", help="Repeatable draws, for tests only: the seed undoes the noise."),
]

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9.]+([eE/][+-]?[0-9]+)?", re.ASCII)


class DataTable(NamedTuple):
    """A CSV file: its column names, its rows, and the line that each row ends on."""

    path: Path
    heading: list[str]
    rows: list[list[str]]
    lines: list[int]

    def place(self, column: str | None, option: str) -> int:
        """Where a column stands; without a name, the only one."""
        if column is None:
            if len(self.heading) > 1:
                raise InputError(option, f"is missing: {self.path} has the columns {', '.join(self.heading)}")
            return 0
        found = self.heading.count(column.strip())
        if found != 1:
            many = "more than one column" if found else "no column"
            columns = f"its columns are {', '.join(self.heading)}"
            raise InputError(option, f"{self.path} has {many} {column!r}; {columns}")
        return self.heading.index(column.strip())

    def cells(self, place: int) -> list[str]:
        """The cells of a column, without the blanks around them."""
        return [row[place].strip() for row in self.rows]

    def where(self, row: int, place: int) -> str:
        """A cell's place in the file, for messages."""
        return f"{self.path}:{self.lines[row]}: {self.heading[place]}"

    def numbers(self, place: int) -> list[Fraction | int]:
        """The cells of a column as exact numbers; whole ones, the most of them, at the speed of int."""
        return [
            int(cell) if _WHOLE.fullmatch(cell) else exact(cell, self.where(row, place))
            for row, cell in enumerate(self.cells(place))
        ]


def read_data(path: Path) -> DataTable:
    """A table with a line of column names and at least one row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = reader(file, strict=True)
            found = [(lines.line_num, row) for row in lines if row]
    except (OSError, UnicodeDecodeError, ValueError, Error) as error:
        raise InputError(str(path), f"cannot be read as CSV: {getattr(error, 'strerror', None) or error}") from None
    if len(found) < 2:
        raise InputError(str(path), "needs a line of column names and at least one row below it")
    heading = [cell.strip() for cell in found[0][1]]
    if all(_NUMBER.fullmatch(cell) for cell in heading):
        raise InputError(str(path), f"must begin with a line of column names, not with {', '.join(heading)}")
    for line, row in found[1:]:
        if len(row) != len(heading):
            raise InputError(f"{path}:{line}", f"has {len(row)} cells, but there are {len(heading)} columns")
    return DataTable(path, heading, [row for _, row in found[1:]], [line for line, _ in found[1:]])


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
