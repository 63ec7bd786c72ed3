"""Problem files: TOML in, with data embedded on load."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpopt.arithmetic import exact, exact_integer
from dpopt.errors import InputError
from dpopt.problem.problem import Problem
from dpopt.problem.target import Target
from dpopt.text import brief

__all__ = ["load", "read_table"]

_MAX_BYTES = 64 << 20


def load(path: str | Path) -> Problem | Target:
    """Read a problem file.

    Parameters
    ----------
    path : path
        A TOML file with a problem, or one [target]. An input ``{type = "csv", file, value, count}`` is read relative to
        the file and embedded as a table.

    Raises
    ------
    InputError
        The file is missing, is not TOML, or says something that is not a problem; the message gives the location.
    """
    table = read_table(path)
    return Target.from_dict(table) if "target" in table else Problem.from_dict(table)


def read_table(path: str | Path) -> dict[str, Any]:
    """The TOML table of a problem file, with its data embedded."""
    path = Path(path)
    text = _read_text(path, "problem file")
    try:
        table = tomllib.loads(text, parse_float=_decimal)  # floats keep their digits: 0.1 is one tenth
    except tomllib.TOMLDecodeError as error:
        raise InputError(str(path), f"is not TOML: {error}") from None
    except RecursionError:
        raise InputError(str(path), "cannot be read as TOML: it is nested too deeply") from None
    except ValueError as error:
        reason = "it holds an integer of too many digits" if "integer string conversion" in str(error) else error
        raise InputError(str(path), f"cannot be read as TOML: {reason}") from None
    objective = table.get("objective")
    if (
        isinstance(objective, dict)
        and isinstance(objective.get("input"), dict)
        and objective["input"].get("type") == "csv"
    ):
        objective["input"] = _embed_csv(objective["input"], path.parent)
    return table


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all reach
        raise ValueError(f"{brief(text)} has too many digits") from None


def _read_text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(str(path), f"is larger than {_MAX_BYTES >> 20} MB, too large for a {what}")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(str(path), f"there is no such {what}") from None
    except UnicodeDecodeError:
        raise InputError(str(path), "must be UTF-8 text") from None
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from None


def _embed_csv(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Turn a CSV of values and counts into the table input that it describes."""
    where = "objective.input"
    keys = {"type", "file", "value", "count"}
    for key in table:
        if key not in keys:
            raise InputError(f"{where}.{key}", "is not a key of input 'csv' (known: count, file, value)")
    if not isinstance(table.get("file"), str):
        raise InputError(f"{where}.file", "must name a CSV file, relative to the problem file")
    path = folder / table["file"]
    rows = list(csv.reader(_read_text(path, "CSV file").splitlines()))
    if not rows:
        raise InputError(str(path), "is empty: it needs a header line with the column names")
    columns = {key: _column(rows[0], table.get(key), f"{where}.{key}", path) for key in ("value", "count")}
    counts: dict[int, Fraction] = {}
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        value = _cell(row, columns["value"], path, number, lambda t: exact_integer(t, "value"))
        count = _cell(row, columns["count"], path, number, lambda t: exact(t, "count"))
        if count < 0:
            raise InputError(f"{path}:{number}", f"has the negative count {count}")
        counts[value] = counts.get(value, Fraction(0)) + count
    if not any(counts.values()):
        raise InputError(str(path), "has no positive count")
    low, high = min(counts), max(counts)
    if high - low > 1_000_000:
        raise InputError(str(path), f"spans {high - low + 1} values, more than a million")
    weights = [counts.get(k, Fraction(0)) for k in range(low, high + 1)]
    return {"type": "table", "low": low, "weights": weights}


def _column(header: list[str], name: object, where: str, path: Path) -> int:
    names = [cell.strip() for cell in header]
    if not isinstance(name, str):
        raise InputError(where, f"must name a column of {path.name} (it has: {', '.join(names)})")
    if name not in names:
        raise InputError(where, f"{name!r} is not a column of {path.name} (it has: {', '.join(names)})")
    return names.index(name)


def _cell(row: list[str], column: int, path: Path, number: int, read: Callable[[str], Any]) -> Any:
    if column >= len(row):
        raise InputError(f"{path}:{number}", f"has {len(row)} columns, fewer than the header")
    try:
        return read(row[column])
    except InputError as error:
        raise error.inside(f"{path}:{number}") from None
