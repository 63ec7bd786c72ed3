"""CSV: one strict reader and one writer, which gives back what the reader read.

Where nothing is said a table is UTF-8 with commas between its cells and points in its numbers. Another format is found
where the file leaves no doubt, and then listed in `CsvTable.found`; where there is doubt the file is refused, with the
ways to say what is meant. A table is written back in its own format: line ends, blank lines and byte order mark stay.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

from dpopt.arithmetic import exact
from dpopt.errors import InputError

__all__ = ["Column", "CsvFormat", "CsvTable", "Found", "Record", "csv_text", "keyword", "read_csv", "toml_entry"]

_DELIMITERS = (",", ";", "\t", "|")
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
_NAMES = {"\t": "tab"}  # what is better named than shown
_MARKS = (  # a byte order mark, the encoding that it announces, and the name of either order; UTF-32 begins like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
    (codecs.BOM_UTF8, "utf-8", "utf-8-sig"),
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9.,]+([eE/][+-]?[0-9]+)?", re.ASCII)


def _pattern(point: str, group: str) -> re.Pattern[str]:
    whole = rf"(?:[0-9]{{1,3}}(?:{re.escape(group)}[0-9]{{3}})+|[0-9]+)"
    rest = rf"{re.escape(point)}[0-9]*"
    return re.compile(rf"[+-]?(?:{whole}(?:{rest})?|{re.escape(point)}[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


_READINGS = {".": _pattern(".", ","), ",": _pattern(",", ".")}  # a number with this sign before its fraction
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+", re.ASCII)  # points that may stand between thousands


def keyword(option: str, value: str) -> str:
    """How Python says an option."""
    return f"{option}={value!r}"


def toml_entry(option: str, value: str) -> str:
    """How a problem file says an option."""
    return f'{option} = "{_NAMES.get(value, value)}"'


# --- what a table is -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written; what is None is found in the file.

    Parameters
    ----------
    delimiter : str, optional
        The character between cells, or "tab", "comma", "semicolon".
    encoding : str, optional
        A text encoding that Python knows, such as "latin-1".
    decimal : str, optional
        "." or ",": the sign before the fraction of a number. The other one may stand between thousands.

    Examples
    --------
    >>> CsvFormat(delimiter="tab").delimiter
    '\\t'
    >>> CsvFormat(decimal=" ")
    Traceback (most recent call last):
    ...
    dpopt.errors.InputError: decimal: must be '.' or ',', not ' '
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        given = self.delimiter
        if given is not None:
            named = _NAMED.get(given, given) if isinstance(given, str) else ""
            if len(named) != 1 or named.isalnum() or named in '"+-./\\\r\n\0':
                wanted = "must be one character such as ';', or tab, comma or semicolon"
                raise InputError("delimiter", f"{wanted}, not {given!r}")
            object.__setattr__(self, "delimiter", named)
        if self.encoding is not None:
            try:
                b"a".decode(self.encoding, "ignore")  # Python looks no encoding up for nothing
            except (LookupError, TypeError, ValueError):
                raise InputError(
                    "encoding", f"must be a text encoding such as utf-8, latin-1 or cp1252, not {self.encoding!r}"
                ) from None
        if self.decimal not in (None, ".", ","):
            raise InputError("decimal", f"must be '.' or ',', not {self.decimal!r}")


class Found(NamedTuple):
    """Part of a format that was not given and left no doubt."""

    option: str
    value: str
    why: str


class Record(NamedTuple):
    """A row with what ends it in the file, and the number of its last line; a blank line has no cells."""

    cells: list[str]
    end: str
    line: int


class Column(NamedTuple):
    """The exact numbers of a column, and what their decimal sign was found to be."""

    numbers: list[Fraction | int]
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, eq=False)
class CsvTable:
    """A table with a line of column names; blank lines are no rows, but keep their places.

    Parameters
    ----------
    name : str
        What messages call it.
    records : tuple of Record
        Every line of the file.
    format : CsvFormat
        As given or found.
    found : tuple of Found
        What of the format was found.
    mark : bytes
        The byte order mark at its beginning.
    say : callable
        How messages spell an option and its value.
    """

    name: str
    records: tuple[Record, ...]
    format: CsvFormat
    found: tuple[Found, ...]
    mark: bytes
    say: Callable[[str, str], str]

    @cached_property
    def _filled(self) -> list[Record]:
        return [record for record in self.records if record.cells]

    @cached_property
    def heading(self) -> list[str]:
        """The names of the columns, without the blanks around them."""
        return [cell.strip() for cell in self._filled[0].cells]

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells below the heading, as they are."""
        return [record.cells for record in self._filled[1:]]

    @cached_property
    def lines(self) -> list[int]:
        """The line that each row ends on."""
        return [record.line for record in self._filled[1:]]

    def place(self, column: str | None, option: str) -> int:
        """Where a column stands; without a name, the only one."""
        if column is None:
            if len(self.heading) > 1:
                raise InputError(option, f"is missing: {self.name} has the columns {', '.join(self.heading)}")
            return 0
        found = self.heading.count(column.strip())
        if found != 1:
            many = "more than one column" if found else "no column"
            columns = f"its columns are {', '.join(self.heading)}"
            raise InputError(option, f"{self.name} has {many} {column!r}; {columns}")
        return self.heading.index(column.strip())

    def cells(self, place: int) -> list[str]:
        """The cells of a column, without the blanks around them."""
        return [row[place].strip() for row in self.rows]

    def where(self, row: int, place: int) -> str:
        """A cell's place in the file, for messages."""
        return f"{self.name}:{self.lines[row]}: {self.heading[place]}"

    def numbers(self, place: int) -> Column:
        """A column as exact numbers; whole ones, the most of them, at the speed of int."""
        cells = self.cells(place)
        signed = [row for row, cell in enumerate(cells) if "," in cell or "." in cell]
        decimal, found = self.format.decimal or ".", tuple[Found, ...]()
        if signed and self.format.decimal is None:
            decimal, found = self._decimal(cells, signed, place)
        return Column(
            [
                int(cell) if _WHOLE.fullmatch(cell) else exact(_with_point(cell, decimal), self.where(row, place))
                for row, cell in enumerate(cells)
            ],
            found,
        )

    def _decimal(self, cells: list[str], signed: list[int], place: int) -> tuple[str, tuple[Found, ...]]:
        """The decimal sign of a column whose cells in the rows `signed` have points or commas."""
        commas = [row for row in signed if "," in cells[row]]
        doubtful = commas or [row for row in signed if self.format.delimiter == ";" and _GROUPED.fullmatch(cells[row])]
        if not doubtful:
            return ".", ()
        can = {sign: [bool(reading.fullmatch(cells[row])) for row in signed] for sign, reading in _READINGS.items()}
        signs = [sign for sign, each in can.items() if all(each)]
        first = cells[doubtful[0]]
        if len(signs) == 2:
            ways = (f"{self.say('decimal', sign)} reads {_with_point(first, sign)}" for sign in signs)
            raise InputError(self.where(doubtful[0], place), f"{first!r} can be two numbers: {', '.join(ways)}")
        if not signs and all(map(any, zip(*can.values(), strict=True))):
            other = next(cells[row] for row, fits in zip(signed, can[","], strict=True) if not fits)
            wrong = f"{first!r} here and {other!r} in the same column cannot both be read"
            raise InputError(self.where(doubtful[0], place), f"{wrong}: write all numbers in one way")
        if signs == [","]:
            return ",", (Found("decimal", ",", f"column {self.heading[place]} can be read in no other way"),)
        if signs and commas:
            return ".", (Found("decimal", ".", f"commas stand between thousands in column {self.heading[place]}"),)
        return ".", ()  # a cell that is no number in either way: its own error follows

    def with_column(self, place: int, cells: Sequence[str], heading: str | None = None) -> CsvTable:
        """The same table with other cells in one column, and with another heading there where one is given."""
        pairs = zip(self._filled, (heading or self.heading[place], *cells), strict=True)
        new = iter([[*row.cells[:place], cell, *row.cells[place + 1 :]] for row, cell in pairs])
        return replace(self, records=tuple(r._replace(cells=next(new)) if r.cells else r for r in self.records))

    def to_bytes(self) -> bytes:
        """The file, in its own format: what was not replaced reads back equal."""
        lines = _lines((record.cells for record in self.records), self.format.delimiter or ",")
        text = "".join(line + record.end for line, record in zip(lines, self.records, strict=True))
        encoding = self.format.encoding or "utf-8"
        try:
            return self.mark + text.encode(encoding)
        except UnicodeEncodeError as error:
            odd = text[error.start]
            raise InputError(self.name, f"cannot be written in {encoding}, which lacks {odd!r}") from None


# --- reading ---------------------------------------------------------------------------------------------------------


def read_csv(
    content: bytes, name: str, given: CsvFormat | None = None, *, say: Callable[[str, str], str] = keyword
) -> CsvTable:
    """Read a table with a line of column names and at least one row.

    Parameters
    ----------
    content : bytes
        The file.
    name : str
        What messages call it.
    given : CsvFormat, optional
        What is known of its format.
    say : callable, optional
        How messages spell an option and its value; as keywords by default.

    Raises
    ------
    InputError
        The content is no text in the encoding, no CSV, or its rows differ in length; or there is a doubt about its
        format.

    Examples
    --------
    >>> table = read_csv(b"area;share\\nnorth;8,5\\n", "shares.csv")
    >>> table.numbers(1).numbers, table.found
    ([Fraction(17, 2)], (Found(option='delimiter', value=';', why='its heading has no other'),))
    """
    given = given or CsvFormat()
    text, encoding, mark, found = _decoded(content, name, given.encoding, say)
    delimiter = given.delimiter
    if delimiter is None:
        delimiter = _delimiter(text, name, say)
        if delimiter != ",":
            found += (Found("delimiter", delimiter, "its heading has no other"),)
    records = tuple(_records(text, delimiter, name))
    table = CsvTable(name, records, CsvFormat(delimiter, encoding, given.decimal), found, mark, say)
    _check(table)
    return table


def _decoded(
    content: bytes, name: str, encoding: str | None, say: Callable[[str, str], str]
) -> tuple[str, str, bytes, tuple[Found, ...]]:
    """Text, its encoding, its byte order mark, and what of that was found."""
    mark, announced, family = next((m for m in _MARKS if content.startswith(m[0])), (b"", "utf-8", "utf-8-sig"))
    given = announced if encoding is None else codecs.lookup(encoding).name
    if mark and given not in (announced, family):
        raise InputError(name, f"begins with the byte order mark of {announced}, and is not {encoding}")
    if not mark and given in ("utf-16", "utf-32"):
        ways = " or ".join(say("encoding", f"{given}-{order}") for order in ("le", "be"))
        raise InputError(name, f"has no byte order mark that says which {given} it is: say {ways}")
    actual = announced if mark or given == family or encoding is None else encoding
    found: tuple[Found, ...] = ()
    if encoding is None and announced != "utf-8":
        found = (Found("encoding", announced, "it begins with that byte order mark"),)
    try:
        text = content[len(mark) :].decode(actual)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start + len(mark)) + 1
        wrong = f"cannot be read as {actual}: byte 0x{error.object[error.start]:02x} on line {line}"
        way = "" if encoding else f"; name its encoding, such as {say('encoding', 'latin-1')} or cp1252"
        raise InputError(name, wrong + way) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        way = f"it is no text, or UTF-16 without its mark ({say('encoding', 'utf-16-le')})"
        raise InputError(name, f"cannot be read as CSV: line {line} holds a NUL character: {way}")
    return text, actual, mark, found


def _delimiter(text: str, name: str, say: Callable[[str, str], str]) -> str:
    """The comma where the heading has one, or nothing that could be another; else the one sign that it has."""
    kinds = []
    for sign in _DELIMITERS:
        first = next((record.cells for record in _records(text, sign, name, strict=False) if record.cells), [])
        if len(first) > 1:
            kinds.append(sign)
    if "," in kinds or not kinds:
        return ","
    if len(kinds) > 1:
        ways = " or ".join(say("delimiter", sign) for sign in kinds)
        raise InputError(name, f"may have {' or '.join(map(repr, kinds))} between its cells: say {ways}")
    return kinds[0]


def _records(text: str, delimiter: str, name: str, *, strict: bool = True) -> Iterator[Record]:
    """The rows of a text; a bare carriage return ends all of them or none."""
    lines = _Lines(text)
    rows, bare, other = csv.reader(lines, delimiter=delimiter, strict=strict), 0, False
    try:
        for cells in rows:
            end = lines.end()
            if strict and end != "\n":
                bare, other = bare or (rows.line_num if end == "\r" else 0), other or end == "\r\n"
            else:
                other = True
            if bare and other:
                wrong = "ends in a bare carriage return, as other lines do not"
                raise InputError(f"{name}:{bare}", f"{wrong}: put a cell that holds one in quotes")
            yield Record(cells, end, rows.line_num)
    except csv.Error as error:
        raise InputError(name, f"cannot be read as CSV: line {rows.line_num}: {error}") from None


class _Lines:
    """The lines of a text with their ends, for a reader that takes them one by one."""

    def __init__(self, text: str) -> None:
        self._lines = io.StringIO(text, newline="")
        self._last = ""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self._last = next(self._lines)
        return self._last

    def end(self) -> str:
        """What ends the line that was taken last."""
        if self._last.endswith("\r\n"):
            return "\r\n"
        return self._last[-1:] if self._last.endswith(("\n", "\r")) else ""


def _check(table: CsvTable) -> None:
    """Refuse a table without names or rows, or with rows of other lengths."""
    if sum(1 for record in table.records if record.cells) < 2:
        raise InputError(table.name, "needs a line of column names and at least one row below it")
    if all(_NUMBER.fullmatch(cell) for cell in table.heading):
        shown = ", ".join(table.heading)
        raise InputError(table.name, f"must begin with a line of column names, not with {shown}")
    for row, line in zip(table.rows, table.lines, strict=True):
        if len(row) != len(table.heading):
            way = next(
                (f" (found the delimiter {f.value!r}; {table.say('delimiter', 'comma')} says that it is none)"
                 for f in table.found if f.option == "delimiter"), ""
            )  # fmt: skip
            wrong = f"has {len(row)} cells, but there are {len(table.heading)} columns{way}"
            raise InputError(f"{table.name}:{line}", wrong)


def _with_point(cell: str, decimal: str) -> str:
    """A number as `exact` reads it; what is no number with this decimal sign as it is."""
    if not _READINGS[decimal].fullmatch(cell):
        return cell
    return cell.replace(",", "") if decimal == "." else cell.replace(".", "").replace(",", ".")


# --- writing ---------------------------------------------------------------------------------------------------------


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A new table: comma, decimal point, one heading line; None is an empty cell.

    Examples
    --------
    >>> csv_text(("noise", "note"), [(1, "a, b"), (2, None)])
    'noise,note\\n1,"a, b"\\n2,\\n'
    """
    return "".join(line + "\n" for line in _lines([columns, *rows], ","))


def _lines(rows: Iterable[Sequence[Any]], delimiter: str) -> list[str]:
    """Each row as text without its end, which a strict reader reads back equal."""
    lines: list[str] = []
    out, first = SimpleNamespace(write=lines.append), True
    # with this line end the writer quotes both of its characters, in every version of Python
    usual = csv.writer(out, delimiter=delimiter, lineterminator="\r\n")
    for cells in rows:
        if first and cells and str(cells[0]).startswith("\ufeff"):  # unquoted, a reader takes it for a byte order mark
            csv.writer(out, delimiter=delimiter, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerow(cells)
        else:
            usual.writerow(cells)
        first = False
    if any("\0" in line for line in lines):
        raise InputError("csv", "cannot hold a NUL character")
    return [line[:-2] for line in lines]
