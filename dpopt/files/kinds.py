"""What a file is, told from its content: for the message when it is not what was expected."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection
from enum import StrEnum

from dpopt.errors import InputError
from dpopt.files.csv_table import CsvFormat, read_csv

__all__ = ["FileKind", "file_kind", "unexpected"]

_QUESTIONS = {"support", "objective", "constraints", "target", "channel"}
_KEY_TABLE = ["noise", "count", "cumulative"]


class FileKind(StrEnum):
    """The kinds of files that dpopt reads or writes, and what cannot be any of them."""

    PROBLEM = "a problem file"
    CERTIFICATE = "a certificate"
    PMF = "a pmf"
    KEY_TABLE = "a key table (JSON)"
    KEY_TABLE_CSV = "a key table (CSV)"
    PRINTED = "what --json printed"
    CSV = "a CSV table"
    JSON = "JSON of another kind"
    TEXT = "text of another kind"
    BINARY = "no text"
    EMPTY = "empty"


_USES = {
    FileKind.PROBLEM: "`dpopt solve` with --certificate OUT solves it and writes a certificate",
    FileKind.CERTIFICATE: "`dpopt verify` checks it, `dpopt privacy` says what its noise guarantees",
    FileKind.PMF: "`dpopt privacy` says what it guarantees",
    FileKind.KEY_TABLE: "`dpopt privacy` says what it guarantees",
    FileKind.KEY_TABLE_CSV: "`dpopt privacy` says what it guarantees",
    FileKind.PRINTED: "its numbers are rounded; --certificate OUT writes the exact ones",
    FileKind.CSV: "`dpopt add-noise` and `dpopt top-k` read one; a problem file names one as an input of type csv",
}


_EXPECTED = {
    FileKind.PROBLEM: "a problem file (TOML)",
    FileKind.CERTIFICATE: "a certificate (JSON, written by --certificate)",
    FileKind.PMF: "a pmf (JSON)",
    FileKind.KEY_TABLE: "a key table (JSON)",
    FileKind.KEY_TABLE_CSV: f"a key table (CSV with the columns {', '.join(_KEY_TABLE)})",
    FileKind.CSV: "a CSV table",
}
_OF_JSON = frozenset({FileKind.JSON})
_OF_TEXT = frozenset({FileKind.TEXT, FileKind.EMPTY})
_CAN_BE = {  # what else a file of a kind can look like, mostly when something is wrong in it
    FileKind.PROBLEM: _OF_TEXT,
    FileKind.CERTIFICATE: _OF_JSON,
    FileKind.PMF: _OF_JSON,
    FileKind.KEY_TABLE: _OF_JSON,
    FileKind.KEY_TABLE_CSV: frozenset(),
    FileKind.CSV: _OF_TEXT | {FileKind.KEY_TABLE_CSV},
}
_SHOWN = 40


def file_kind(content: bytes) -> FileKind:
    """The kind of a file.

    Examples
    --------
    >>> file_kind(b'[target]\\nepsilon = 1\\n'), file_kind(b'noise,count,cumulative\\n0,1,1\\n')
    (<FileKind.PROBLEM: 'a problem file'>, <FileKind.KEY_TABLE_CSV: 'a key table (CSV)'>)
    """
    if not content.strip():
        return FileKind.EMPTY
    if content.lstrip().removeprefix(b"\xef\xbb\xbf")[:1] == b"{":
        return _kind_of_json(content)
    try:
        if _QUESTIONS & tomllib.loads(content.decode("utf-8-sig")).keys():
            return FileKind.PROBLEM
    except (ValueError, RecursionError):
        pass
    return FileKind.JSON if content.lstrip()[:1] == b"[" and _is_json(content) else _kind_of_text(content)


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _kind_of_json(content: bytes) -> FileKind:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return FileKind.JSON
    if "claimed" in data and "verified" in data:
        return FileKind.PRINTED
    if "kind" in data:
        return FileKind.CERTIFICATE
    if data.get("type") == "key-table":
        return FileKind.KEY_TABLE
    return FileKind.PMF if "weights" in data else FileKind.JSON


def _kind_of_text(content: bytes) -> FileKind:
    for given in (CsvFormat(), CsvFormat(encoding="latin-1")):
        try:
            table = read_csv(content, "", given)
        except InputError:
            continue
        if table.heading == _KEY_TABLE:
            return FileKind.KEY_TABLE_CSV
        is_data = len(table.heading) > 1 or all(map(str.isdecimal, table.cells(0)))
        return FileKind.CSV if is_data else FileKind.TEXT
    return FileKind.BINARY if b"\0" in content else FileKind.TEXT


def unexpected(content: bytes, name: str, expected: Collection[FileKind]) -> InputError | None:
    """The error that says what a file is, and what was expected in its place.

    None where it may be one of the expected kinds, damaged: whoever read it knows more about that.

    Examples
    --------
    >>> print(unexpected(b"area,count\\nnorth,3\\n", "counts.csv", (FileKind.CERTIFICATE,)))
    counts.csv: must be a certificate (JSON, written by --certificate); this is a CSV table: `dpopt add-noise` and ...
    >>> unexpected(b'{"kind": ', "cut.json", (FileKind.CERTIFICATE,)) is None
    True
    """
    kind = file_kind(content)
    if kind in expected or any(kind in _CAN_BE[wanted] for wanted in expected):
        return None
    words = [_EXPECTED[wanted] for wanted in expected]
    wanted = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    return InputError(name, f"must be {wanted}; this is {_described(kind, content)}")


def _described(kind: FileKind, content: bytes) -> str:
    if kind is FileKind.TEXT:
        first = content.decode("utf-8-sig", "replace").split(maxsplit=1)[0]
        return f"text that begins with {first if len(first) <= _SHOWN else first[:_SHOWN] + '...'!r}"
    return kind + (f": {_USES[kind]}" if kind in _USES else "")
