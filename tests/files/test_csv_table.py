"""The CSV reader and writer: what is written reads back, rows keep their places, no doubt is settled in silence."""

from __future__ import annotations

import codecs
import csv
import io
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpopt.errors import InputError
from dpopt.files.csv_table import CsvFormat, csv_text, read_csv

some = settings(derandomize=True, max_examples=80, deadline=None)
MARKS = {"utf-8": b"", "utf-8-sig": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16}
SIGNS = st.sampled_from('ab1,;"\t|\r\n \ufeff\u2028\x0bé')
CELLS = st.text(SIGNS | st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
TABLES = st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=5))


@given(TABLES)
@example([["x\ry"], [""], ["\n"]])
@example([["\ufeffname", "b"], ["", ""]])
@some
def test_new_tables_read_back(rows: list[list[str]]) -> None:
    """By a strict reader that is not ours, and by ours."""
    names = [f"column {i}" for i in range(len(rows[0]))]
    text = csv_text(names, rows)
    assert list(csv.reader(io.StringIO(text, newline=""), strict=True)) == [names, *rows]
    table = read_csv(text.encode(), "t.csv", CsvFormat(delimiter=","))
    assert table.rows == rows and table.found == ()
    assert csv_text(["name", *names], [["\ufeff", *row] for row in rows]).encode()[:3] != b"\xef\xbb\xbf"


@pytest.mark.slow
@given(TABLES, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n", "\r"]), st.data())
@some
def test_written_back_in_its_own_format(rows: list[list[str]], delimiter: str, end: str, data: st.DataObject) -> None:
    """A column replaced: every other cell, blank lines, line ends, encoding and byte order mark stay."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    lines: list[str] = []
    for row in [[f"name{i}" for i in range(len(rows[0]))], *rows]:
        writer.writerow(row)
        lines += [out.getvalue()[:-2] + end] + [end] * data.draw(st.integers(0, 2))
        out.seek(0), out.truncate()
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    content = "".join(lines).encode(encoding)
    table = read_csv(content, "t.csv", CsvFormat(delimiter=delimiter))
    assert table.rows == rows
    place = data.draw(st.integers(0, len(rows[0]) - 1))
    again = table.with_column(place, ["7"] * len(rows)).to_bytes()
    same = read_csv(again, "t.csv", CsvFormat(delimiter=delimiter))
    assert same.rows == [[*row[:place], "7", *row[place + 1 :]] for row in rows]
    assert same.lines == [line - _inside(rows[: i + 1], place) for i, line in enumerate(table.lines)]
    assert [record.end for record in same.records] == [record.end for record in table.records]
    assert [bool(record.cells) for record in same.records] == [bool(record.cells) for record in table.records]
    assert same.format == table.format and same.mark == table.mark == MARKS[encoding]


def _inside(rows: list[list[str]], place: int) -> int:
    """Line ends inside the cells that are replaced."""
    return sum(len(io.StringIO(row[place] + "x", newline="").readlines()) - 1 for row in rows)


def test_what_was_reported() -> None:
    """A bare carriage return in a quoted cell, blank lines in one column, a last line without an end."""
    content = b'area,count\r\n"x\ry",5\r\n\r\nz,7'
    assert read_csv(content, "d.csv").with_column(1, ["8", "9"]).to_bytes() == b'area,count\r\n"x\ry",8\r\n\r\nz,9'
    column = b"count\n\n5\n\n\n7\n\n"
    assert read_csv(column, "d.csv").with_column(0, ["6", "8"]).to_bytes() == b"count\n\n6\n\n\n8\n\n"
    assert read_csv(b'count\n""\n5\n', "d.csv").with_column(0, ["", "5"]).to_bytes() == b'count\n""\n5\n'


@pytest.mark.parametrize(
    ("content", "given", "numbers", "found"),
    [
        ("a;n\nx;1,5\ny;8,120\n", {}, ["1.5", "8.12"], {"delimiter": ";", "decimal": ","}),
        ("a;n\nx;1.234,5\n", {}, ["1234.5"], {"delimiter": ";", "decimal": ","}),
        ("a\tn\nx\t7\n", {}, ["7"], {"delimiter": "\t"}),
        ('a,n\nx,"1,234,567"\n', {}, ["1234567"], {"decimal": "."}),
        ('a,n\nx,"8,120"\ny,1.5\n', {}, ["8120", "1.5"], {"decimal": "."}),
        ('a,n\nx,"8,120"\n', {"decimal": "."}, ["8120"], {}),
        ('a,n\nx,"8,120"\n', {"decimal": ","}, ["8.12"], {}),
        ("a;n\nx;8.120\n", {"decimal": ","}, ["8120"], {"delimiter": ";"}),
        ("a;n\nx;8.120\n", {"decimal": "."}, ["8.12"], {"delimiter": ";"}),
        ("a,n\nx,8.120\ny,1/3\nz,2e3\n", {}, ["8.12", "1/3", "2000"], {}),
        ("a;b,n\nx,7\n", {}, ["7"], {}),
        ('"a;b",n\n"x;y",7\n', {}, ["7"], {}),
        ("n\n5\n", {"delimiter": ";"}, ["5"], {}),
    ],
)
def test_numbers_and_what_is_found(content: str, given: dict[str, str], numbers: list[str], found: dict) -> None:
    table = read_csv(content.encode(), "d.csv", CsvFormat(**given))
    column = table.numbers(len(table.heading) - 1)
    assert column.numbers == [Fraction(number) for number in numbers]
    assert {part.option: part.value for part in (*table.found, *column.found)} == found


@pytest.mark.parametrize(
    ("content", "given", "said"),
    [
        (b'a,n\nx,"8,120"\n', {}, r"d\.csv:2: n: '8,120' can be two numbers: decimal='\.' reads 8120, decimal=','"),
        (b"a;n\nx;8.120\n", {}, r"'8\.120' can be two numbers: decimal='\.' reads 8\.120, decimal=',' reads 8120"),
        (b"a;n\nx;1.5\ny;1,5\n", {}, "'1,5' here and '1.5' in the same column cannot both be read"),
        (b"a;n\nx;1,5,5\n", {}, "n: must be a number"),
        (b"a;n\nx;1,5\n", {"decimal": "."}, "n: must be a number"),
        (b"a\tb;n\nx\ty;7\n", {}, r"may have ';' or '\\t' between its cells: say delimiter=';' or"),
        (b"a;n\n5\n", {}, "has 1 cells, but there are 2 columns .*delimiter='comma' says that it is none"),
        ("K\xf6ln,n\nx,7\n".encode("latin-1"), {}, "0xf6 on line 1; name its encoding, such as encoding='latin-1'"),
        ("a,n\nx,7\n".encode("utf-16-le"), {}, "NUL character: .*encoding='utf-16-le'"),
        ("a,n\nx,7\n".encode("utf-16-le"), {"encoding": "utf-16"}, "no byte order mark .*'utf-16-le' or"),
        ("a,n\nx,7\n".encode("utf-16"), {"encoding": "latin-1"}, "order mark of utf-16-le, and is not latin-1"),
        (b"\xff\xfea", {}, "cannot be read as utf-16-le"),
        (b"a,n\nx,\0\n", {}, "line 2 holds a NUL character"),
        (b"a,n\r\nx\ry,7\r\n", {}, r"d\.csv:2: ends in a bare carriage return, as other lines do not"),
        (b'a,n\nx,"7\n', {}, "cannot be read as CSV: line 2: unexpected end of data"),
        (b'a,n\nx,"7"8\n', {}, "cannot be read as CSV: line 2: ',' expected after '\"'"),
    ],
)  # fmt: skip
def test_doubt_and_defects_are_refused(content: bytes, given: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        table = read_csv(content, "d.csv", CsvFormat(**given))
        table.numbers(len(table.heading) - 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delimiter": "ab"}, "delimiter: must be one character"),
        ({"delimiter": '"'}, "delimiter: must be one character"),
        ({"delimiter": 3}, "delimiter: must be one character"),
        ({"encoding": "latin"}, None),
        ({"encoding": "nonsense"}, "encoding: must be a text encoding such as utf-8, latin-1 or cp1252"),
        ({"encoding": "hex"}, "encoding: must be a text encoding"),
        ({"encoding": 8}, "encoding: must be a text encoding"),
        ({"decimal": "x"}, "decimal: must be '.' or ','"),
    ],
)
def test_formats(given: dict, said: str | None) -> None:
    if said is None:
        assert CsvFormat(**given).encoding == "latin"
        return
    with pytest.raises(InputError, match=said):
        CsvFormat(**given)


def test_what_an_encoding_lacks() -> None:
    table = read_csv("Köln,n\nx,7\n".encode("latin-1"), "d.csv", CsvFormat(encoding="latin-1"))
    assert table.with_column(1, ["8"]).to_bytes() == "Köln,n\nx,8\n".encode("latin-1")
    with pytest.raises(InputError, match="cannot be written in latin-1, which lacks '→'"):
        table.with_column(1, ["→"]).to_bytes()
    with pytest.raises(InputError, match="NUL"):
        csv_text(["a"], [["\0"]])
