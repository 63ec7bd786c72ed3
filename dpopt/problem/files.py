"""Problem files: TOML in, with data embedded on load."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpopt.errors import InputError
from dpopt.files.csv_table import CsvFormat, CsvTable, Found, read_csv, toml_entry
from dpopt.files.kinds import FileKind, unexpected
from dpopt.problem.problem import Problem
from dpopt.problem.target import Target
from dpopt.text import brief

__all__ = ["load", "parse_problem", "read_table"]

_MAX_BYTES = 64 << 20
_PROBLEM = (FileKind.PROBLEM,)
_FORMAT = ("delimiter", "encoding", "decimal")  # the keys of an input 'csv' that are those of a CsvFormat


def load(path: str | Path) -> Problem | Target:
    """Read a problem file.

    Parameters
    ----------
    path : path
        A TOML file with a problem, or one [target]. An input ``{type = "csv", file, value, count}`` is read relative to
        the file and embedded as a table; ``delimiter``, ``encoding`` and ``decimal`` say how the CSV file is written
        where that is not comma, UTF-8 and point.

    Raises
    ------
    InputError
        The file is missing, is not TOML, or says something that is not a problem; the message gives the location.
    """
    return _question(read_table(path))


def parse_problem(content: bytes, name: str, folder: Path) -> Problem | Target:
    """The problem of a file that has been read: its content, what messages call it, and where its data lie.

    Examples
    --------
    >>> content = b'[target]\\nepsilon = 1\\ndelta = "1e-5"\\nfamily = "analytic"\\n'
    >>> parse_problem(content, "standard input", Path()).epsilon
    Fraction(1, 1)
    """
    return _question(_parse_table(content, name, folder))


def _question(table: dict[str, Any]) -> Problem | Target:
    return Target.from_dict(table) if "target" in table else Problem.from_dict(table)


def read_table(path: str | Path) -> dict[str, Any]:
    """The TOML table of a problem file, with its data embedded."""
    if not isinstance(path, str | os.PathLike):
        raise InputError("path", f"must be the path of a problem file, not {path!r}")
    path = Path(path)
    return _parse_table(_content(path, "problem file"), str(path), path.parent)


def _parse_table(content: bytes, name: str, folder: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(content.decode("utf-8-sig"), parse_float=_decimal)  # 0.1 is one tenth
    except UnicodeDecodeError:
        raise unexpected(content, name, _PROBLEM) or InputError(name, "must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise unexpected(content, name, _PROBLEM) or InputError(name, f"is not TOML: {error}") from None
    except RecursionError:
        raise InputError(name, "cannot be read as TOML: it is nested too deeply") from None
    except ValueError as error:
        reason = "it holds an integer of too many digits" if "integer string conversion" in str(error) else error
        raise unexpected(content, name, _PROBLEM) or InputError(name, f"cannot be read as TOML: {reason}") from None
    objective = table.get("objective")
    if (
        isinstance(objective, dict)
        and isinstance(objective.get("input"), dict)
        and objective["input"].get("type") == "csv"
    ):
        objective["input"] = _embed_csv(objective["input"], folder)
    return table


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all reach
        raise ValueError(f"{brief(text)} has too many digits") from None


def _content(path: Path, what: str) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(str(path), f"is larger than {_MAX_BYTES >> 20} MB, too large for a {what}")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(str(path), f"there is no such {what}") from None
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from None


def _embed_csv(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Turn a CSV of values and counts into the table input that it describes."""
    where = "objective.input"
    known = ("count", "file", "value", *_FORMAT)
    for key in table:
        if key not in ("type", *known):
            raise InputError(f"{where}.{key}", f"is not a key of input 'csv' (known: {', '.join(sorted(known))})")
    if not isinstance(table.get("file"), str):
        raise InputError(f"{where}.file", "must name a CSV file, relative to the problem file")
    path = folder / table["file"]
    try:
        given = CsvFormat(**{key: table[key] for key in _FORMAT if key in table})
    except InputError as error:
        raise error.inside(where) from None
    read = read_csv(_content(path, "CSV file"), str(path), given, say=toml_entry)
    _require_stated(read, read.found, where)
    values, masses = (_column(read, table.get(key), f"{where}.{key}") for key in ("value", "count"))
    counts: dict[int, Fraction] = {}
    for row, (value, count) in enumerate(zip(values, masses, strict=True)):
        if value.denominator != 1:
            raise InputError(f"{path}:{read.lines[row]}: {table['value']}", f"must be an integer, not {value}")
        if count < 0:
            raise InputError(f"{path}:{read.lines[row]}", f"has the negative count {count}")
        counts[int(value)] = counts.get(int(value), Fraction(0)) + count
    if not any(counts.values()):
        raise InputError(str(path), "has no positive count")
    low, high = min(counts), max(counts)
    if high - low > 1_000_000:
        raise InputError(str(path), f"spans {high - low + 1} values, more than a million")
    weights = [counts.get(k, Fraction(0)) for k in range(low, high + 1)]
    return {"type": "table", "low": low, "weights": weights}


def _column(read: CsvTable, name: object, where: str) -> list[Fraction | int]:
    """The numbers of a column that a problem file names."""
    if not isinstance(name, str):
        columns = f"{Path(read.name).name} (it has: {', '.join(read.heading)})"
        raise InputError(where, f"must name a column of {columns}")
    found = read.numbers(read.place(name, where))
    _require_stated(read, found.found, where.rpartition(".")[0])
    return found.numbers


def _require_stated(read: CsvTable, found: Sequence[Found], where: str) -> None:
    """A problem file says itself how its data are read: what had to be found is missing in it."""
    for part in found:
        stated = toml_entry(part.option, part.value)
        raise InputError(f"{where}.{part.option}", f"is missing: {read.name} seems to need {stated} ({part.why})")
