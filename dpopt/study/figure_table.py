"""A figure as a table, with words on how to draw it (`dpopt.plot` does).

Cells are nearest floats: of rationals, or of enclosures that are narrower than a float.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from dpopt.arithmetic import Enclosure, Number, exact, exact_integer
from dpopt.distributions import Distribution
from dpopt.errors import InputError
from dpopt.files.csv_table import csv_text
from dpopt.pmf import Pmf
from dpopt.reading import read_numbers
from dpopt.record import Record
from dpopt.text import aligned

__all__ = ["Cell", "Figure", "Panel", "input_text", "nearest", "number_text", "read_axis", "read_reach"]

Cell = int | float | str | bool | None


@dataclass(frozen=True)
class Panel:
    """One diagram of a figure: columns against a column, one curve for each column and each value of `by`.

    `only` holds the cells, as (column, value), of the rows that belong to this diagram; `steps` draws a pmf's masses as
    stairs about their points. Rows without an x are not drawn.
    """

    title: str
    x: str
    y: tuple[str, ...]
    y_label: str
    by: str | None = None
    log_y: bool = False
    only: tuple[tuple[str, Cell], ...] = ()
    steps: bool = False


@dataclass(frozen=True, repr=False)
class Figure(Record):
    """A figure as a table; prints as one.

    Parameters
    ----------
    name : str
        As in ``dpopt figure NAME``.
    title : str
    columns : tuple of str
    rows : tuple of tuples
        None stands for what is infinite or undefined.
    panels : tuple of Panel
        How to draw it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    panels: tuple[Panel, ...]

    def column(self, name: str) -> list[Cell]:
        """The cells of a column, top to bottom."""
        if name not in self.columns:
            raise InputError("column", f"must be one of {', '.join(self.columns)}, not {name!r}")
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for strict JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }

    def to_csv(self) -> str:
        """The table as CSV text (comma, decimal point, one header line); None is an empty cell."""
        return csv_text(self.columns, self.rows)

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        return "\n".join(
            [self.title, "", *aligned([self.columns, *([_text(cell) for cell in row] for row in self.rows)])]
        )

    def __repr__(self) -> str:
        return f"Figure({self.name!r}, <{len(self.rows)} rows of {len(self.columns)} columns>)"


def _text(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if cell is None:
        return "-"
    return f"{cell:.9g}" if isinstance(cell, float) else str(cell)


def nearest(number: Enclosure | Fraction | None) -> float | None:
    """The cell of an exact number."""
    return None if number is None else float(number)


def read_axis(given: Iterable[Number], argument: str) -> tuple[Fraction, ...]:
    """The numbers along an axis, at least one."""
    values = read_numbers(given, argument)
    if not values:
        raise InputError(argument, "must hold at least one number")
    return values


def read_reach(given: int) -> int:
    """How far from 0 a figure shows noise."""
    return exact_integer(given, "reach", at_least=1)


def number_text(value: Number) -> str:
    """A number as titles and columns name it: ``1/3``, ``0.5``, ``15``.

    Examples
    --------
    >>> number_text("1.50"), number_text("1/3")
    ('1.5', '1/3')
    """
    number = exact(value, "number")
    short = f"{float(number):.9g}"
    return short if Fraction(short) == number else str(number)


def input_text(law: Distribution | Pmf) -> str:
    """An input law in a word: ``gaussian(0, 5)``.

    Examples
    --------
    >>> from dpopt.distributions import gaussian
    >>> input_text(gaussian(0, 5))
    'gaussian(0, 5)'
    """
    if isinstance(law, Pmf):
        return f"pmf on {number_text(law.low)}..{number_text(law.high)}"
    values = [getattr(law, field.name) for field in fields(law)]  # type: ignore[arg-type]  # each is a dataclass
    if any(isinstance(value, tuple) for value in values):
        return f"{law.type} on {number_text(law.pmf.low)}..{number_text(law.pmf.high)}"
    return f"{law.type}({', '.join(map(number_text, values))})"
