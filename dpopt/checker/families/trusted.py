"""Custom constraints: the checker cannot know what such a type means, and takes its stored rows on trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpopt.checker.families.expectation import Line, Lines
from dpopt.checker.law import Law
from dpopt.checker.reading import (
    MAX_POINTS,
    read_function,
    read_index,
    read_list,
    read_object,
    read_row,
    read_sides,
    reject,
)
from dpopt.checker.stated import Enclosures
from dpopt.checker.sums import refuse_mass

__all__ = ["Trusted"]

_MAX_ROWS = 10_000  # of one constraint


@dataclass(frozen=True)
class Trusted(Lines):
    """Linear rows, and points without mass, of a type that no file registers."""

    type: str = ""
    points: frozenset[int] = frozenset()

    @classmethod
    def of(cls, kind: str, rows: object, where: str) -> Trusted:
        """The stored rows of a type; those that are linear are its parts, in their order."""
        lines: list[Line] = []
        points: set[int] = set()
        for i, row in enumerate(read_list(rows, where, _MAX_ROWS)):
            at = f"{where}[{i}]"
            term = row.get("term") if isinstance(row, Mapping) else None
            if term == "zero":
                read_object(row, at, ("term", "row", "indices"))
                read_row(row["row"], f"{at}.row")
                indices = read_list(row["indices"], f"{at}.indices", MAX_POINTS)
                points.update(read_index(k, f"{at}.indices[{j}]") for j, k in enumerate(indices))
            elif term == "linear":
                lines.append(_line(read_object(row, at, ("term", "function", "at_least", "at_most")), at))
            else:
                reject(at, "must be an object with term 'linear' or 'zero'")
        return cls(tuple(lines), kind, frozenset(points))

    @property
    def kind(self) -> str:
        """The custom type."""
        return self.type

    @property
    def zeros(self) -> frozenset[int]:
        """The points of the stored rows that allow no mass."""
        return self.points

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        """The least room of a linear row; a point without mass leaves none."""
        refuse_mass(law, self.points)
        found = super().margin(law, enclosures)
        return Fraction(0) if self.points else found


def _line(data: Mapping[str, Any], where: str) -> Line:
    sides = read_sides({"at_least": data["at_least"], "at_most": data["at_most"]}, where)
    return Line(read_function(data["function"], f"{where}.function"), *sides)
