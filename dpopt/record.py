"""What results have in common: they print within a screen, and give all that they hold as plain data.

A printed number has at most twelve digits, a printed result at most 100 columns and 40 lines: `text()` is all of it,
and the attributes and `to_dict()` are exact.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any

from flint import fmpz

from dpopt.arithmetic import Enclosure
from dpopt.text import decimal_text

__all__ = ["Record", "brief_value", "fitted", "plain_data"]

COLUMNS, LINES, DIGITS = 100, 40, 12
_LISTED = 4  # entries of a list that a line shows


class Record:
    """Base of results, which are frozen dataclasses."""

    def text(self) -> str:
        """All of the result for people, however long: what `print` shows is cut to 100 columns and 40 lines."""
        found = [(field.name, brief_value(getattr(self, field.name))) for field in _fields(self)]
        width = max(len(name) for name, _ in found)
        return "\n".join([type(self).__name__, *(f"  {name:<{width}}  {value}" for name, value in found)])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: exact numbers as text, an enclosure as its two ends."""
        return {field.name: plain_data(getattr(self, field.name)) for field in _fields(self)}

    def __str__(self) -> str:
        return fitted(self.text())

    def __repr__(self) -> str:
        return _cut(_in_a_line(self), COLUMNS)


def _fields(record: object) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(record)  # type: ignore[arg-type]  # every record is a dataclass


def fitted(text: str, columns: int = COLUMNS, lines: int = LINES) -> str:
    """Text within a screen: long lines are continued on the next one, and lines in the middle are left out.

    Examples
    --------
    >>> print(fitted("one two three", columns=8))
    one two
      three
    """
    found: list[str] = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        wrapped = textwrap.wrap(line, columns, subsequent_indent=indent, drop_whitespace=True, replace_whitespace=False)
        found += [line] if len(line) <= columns else wrapped
    if len(found) > lines:
        last = lines // 4
        first = lines - last - 1
        found = [*found[:first], f"... {len(found) - first - last} more lines: text() has them", *found[-last:]]
    return "\n".join(found)


def brief_value(value: object) -> str:
    """A value in a few words and at most twelve digits.

    Examples
    --------
    >>> brief_value(Fraction(2, 3)), brief_value((1, 2, 3, 4, 5, 6))
    ('0.666666666667', '(1, 2, 3, ... 6 in all)')
    """
    match value:
        case Enclosure() | Enum():
            return str(value.value if isinstance(value, Enum) else value)
        case bool() | None:
            return str(value)
        case int() if abs(value) < 10**DIGITS:
            return str(value)
        case int() | Fraction():
            return decimal_text(Fraction(value), DIGITS, up=None)
        case float():
            return f"{value:.{DIGITS}g}"
        case str():
            return repr(_cut(value, 60))
        case Mapping():
            return f"<{len(value)} entries>"
        case tuple() | list():
            shown = [brief_value(entry) for entry in value[: _LISTED if len(value) <= _LISTED else _LISTED - 1]]
            rest = [f"... {len(value)} in all"] if len(value) > _LISTED else []
            return f"({', '.join([*shown, *rest])})"
    if dataclasses.is_dataclass(value) and not isinstance(value, Record | type):
        return _cut(_in_a_line(value), 60)
    return _cut(repr(value), 60)


def _in_a_line(record: object) -> str:
    values = ", ".join(f"{field.name}={brief_value(getattr(record, field.name))}" for field in _fields(record))
    return f"{type(record).__name__}({values})"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def plain_data(value: Any) -> Any:
    """A value as JSON can hold it, exactly: ``"1/3"``, ``{"lower": ..., "upper": ...}``, ``"inf"``.

    Examples
    --------
    >>> plain_data({"a": (Fraction(1, 3), None, 2)})
    {'a': ['1/3', None, 2]}
    """
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Fraction):  # of any length, which Python's own integers refuse to print
        number, unit = fmpz(value.numerator), fmpz(value.denominator)
        return str(number) if value.denominator == 1 else f"{number}/{unit}"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain_data(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): plain_data(part) for key, part in value.items()}
    if dataclasses.is_dataclass(value):
        return {field.name: plain_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Iterable):
        return [plain_data(part) for part in value]
    return str(value)
