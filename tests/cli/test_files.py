"""What every command does with files: none is overwritten unasked, `-` is standard input or output, formats are found
or asked for, and a file of the wrong kind is named."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import stat
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import dpopt as dp

from .command_line import Run

PROBLEM = dp.tablebuilder(D=2, V=1)
COIN = dp.Pmf(-1, (1, 2, 1))
WRITING = [
    "solve p.toml --certificate out.json",
    "target --epsilon 1 --delta 0.1 --family analytic --certificate out.json",
    "privacy pmf.json --csv out.csv",
    "keys pmf.json --key-size 64 --csv out.csv",
    "mechanism geometric --epsilon 1 --pmf out.json",
    "mechanism geometric --epsilon 1 --csv out.csv",
    "sample pmf.json --csv out.csv",
    "add-noise d.csv pmf.json --csv out.csv",
    "figure 1 --csv out.csv",
    "figure 1 --plot out.png",
]


@pytest.fixture(scope="module")
def certificate() -> str:
    return dp.solve(PROBLEM).certificate.to_json()


@pytest.fixture
def files(dpopt_run: Callable[..., Run], certificate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file of every kind in the working directory of `dpopt_run`."""
    monkeypatch.setattr("dpopt.plot.require_matplotlib", lambda: None)
    monkeypatch.setattr("dpopt.plot.draw", lambda figure, kind: f"{figure.name} as {kind}".encode())
    Path("p.toml").write_text(PROBLEM.to_toml())
    Path("c.json").write_text(certificate)
    Path("pmf.json").write_text(json.dumps(COIN.to_dict()))
    table = dp.KeyTable(-1, (1, 2, 1), 4)
    Path("k.csv").write_text(table.to_csv())
    Path("k.json").write_text(json.dumps(table.to_dict()))
    Path("d.csv").write_text("area,count\nnorth,8120\nsouth,5\n")
    Path("d.txt").write_text("area;count\nK\xf6ln;5\n", encoding="latin-1")
    Path("s.json").write_text('{"claimed": "optimal", "verified": "optimal", "value": 1.0}')
    Path("t.txt").write_text("0 0 1.0\n1 0 0.5\n")
    Path("b.bin").write_bytes(b"\x89PNG\r\n\0\0")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Put something on standard input."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# --- overwriting -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("words", WRITING)
def test_nothing_is_overwritten_unasked(dpopt_run, files: None, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before any work; with --force written, permissions kept."""
    option, out = shlex.split(words)[-2:]
    Path(out).write_text("old")
    Path(out).chmod(0o600)
    for name in dp.__all__:
        getattr(dp, name)  # a module that is first imported below would keep what is put in for good
    with monkeypatch.context() as patch:
        for worker in ("solve", "privacy.profile.privacy_profile", "mechanisms.calibration.calibrate"):
            patch.setattr(f"dpopt.{worker}", lambda *_, **__: pytest.fail("worked before looking"))
        assert dpopt_run(words).refusal() == f"{option}: {out} cannot be written: it exists; --force overwrites it"
    assert Path(out).read_text() == "old"
    assert dpopt_run(f"{words} --force").status == 0
    assert Path(out).read_text() != "old" and stat.S_IMODE(Path(out).stat().st_mode) == 0o600
    Path(out).unlink()
    assert dpopt_run(words).status == 0 and Path(out).exists()


def test_a_file_that_comes_while_the_command_works(dpopt_run, files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    solve = dp.solve

    def meanwhile(*words: object, **options: object) -> object:
        Path("out.json").write_text("somebody's")
        return solve(*words, **options)

    monkeypatch.setattr(dp, "solve", meanwhile)
    assert "out.json: cannot be written: File exists" in dpopt_run("solve p.toml --certificate out.json").refusal()
    assert Path("out.json").read_text() == "somebody's"


def test_two_outputs_in_one_place(dpopt_run, files: None) -> None:
    Path("link").symlink_to("x")
    for words in ("mechanism laplace --epsilon 1 --csv x --pmf x", "mechanism laplace --epsilon 1 --csv x --pmf link"):
        assert "--pmf: " in (said := dpopt_run(words).refusal()) and "is where the table goes" in said


# --- standard input and output ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("p.toml", "solve -"),
        ("p.toml", "compare - --backends newton"),
        ("c.json", "verify -"),
        ("c.json", "privacy - --epsilon 1"),
        ("k.csv", "privacy - --epsilon 1"),
        ("pmf.json", "keys - --key-size 64"),
        ("c.json", "sample - --size 3"),
        ("d.csv", "add-noise - pmf.json"),
        ("c.json", "add-noise d.csv -"),
        ("d.csv", "top-k - --k 1 --epsilon 1 --scores count"),
    ],
)
def test_standard_input(dpopt_run, files: None, given: Callable[[bytes], None], file: str, words: str) -> None:
    given(Path(file).read_bytes())
    run = dpopt_run(words)
    assert (run.status, run.err) == (0, "") and run.out


def test_standard_input_in_messages(dpopt_run, files: None, given: Callable[[bytes], None]) -> None:
    given(b"objective = 3\n")
    assert dpopt_run("solve -").refusal().startswith("standard input: objective")
    given(b"count\nx\n")
    assert dpopt_run("add-noise - pmf.json").refusal().startswith("standard input:2: count: must be a number")
    given(b"\xff")
    assert dpopt_run("solve -").refusal() == "standard input: must be UTF-8 text"
    for words in ("add-noise - -", "compare - -"):
        assert "standard input, which can be read only once" in dpopt_run(words).refusal()


@pytest.mark.parametrize("words", WRITING)
def test_standard_output(dpopt_run, files: None, words: str) -> None:
    """`-` prints the file and nothing else."""
    words = re.sub(r"out\.\w+$", "-", words)
    run = dpopt_run(words)
    assert run.status == 0 and run.err == ""
    if "--certificate" in words:
        Path("again.json").write_text(run.out)
        assert dp.verify("again.json").holds
    elif "--pmf" in words:
        assert dp.Pmf.from_dict(json.loads(run.out)).step == 1
    elif "--plot" in words:
        assert run.out == "1 as png"
    else:
        rows = list(csv.reader(run.out.splitlines(), strict=True))
        assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}
    if "add-noise" not in words:
        assert "- and --json both want standard output" in dpopt_run(f"{words} --json").refusal()


def test_a_table_goes_through_unchanged(dpopt_run, files: None, given: Callable[[bytes], None]) -> None:
    """Noise of 0: bytes in, the same bytes out, whatever the format."""
    Path("zero.json").write_text(json.dumps(dp.Pmf(0, (1,)).to_dict()))
    for content in (
        b'area,count\r\n"x\ry",5\r\n\r\nz,7', b"count\n\n5\n\n\n7\n\n", b"\xef\xbb\xbfarea;count\nK\xc3\xb6ln;5\n",
        "area\tcount\nKöln\t5\n".encode("utf-16"),
    ):  # fmt: skip
        Path("in.csv").write_bytes(content)
        assert dpopt_run("add-noise in.csv zero.json --csv out.csv --force").status == 0
        assert Path("out.csv").read_bytes() == content


# --- formats ---------------------------------------------------------------------------------------------------------


def test_formats_are_found_and_said_or_asked_for(dpopt_run, files: None) -> None:
    said = dpopt_run("add-noise d.txt pmf.json").refusal()
    assert said.endswith("byte 0xf6 on line 2; name its encoding, such as --encoding latin-1 or cp1252")
    run = dpopt_run("add-noise d.txt pmf.json --encoding latin-1 --csv out.csv")
    assert run.err == "dpopt: d.txt is read with --delimiter ';': its heading has no other\n"
    assert Path("out.csv").read_bytes().startswith(b"area;count\nK\xf6ln;")
    Path("e.csv").write_text('item,score\na,"8,120"\nb,9\n')
    words = "top-k e.csv --k 1 --epsilon 1e6 --resolution 1/1000 --scores score --names item --json"
    assert "e.csv:2: score: '8,120' can be two numbers: --decimal . reads 8120, --decimal , reads 8.120" in (
        dpopt_run(words).refusal()
    )
    assert dpopt_run(f"{words} --decimal ,").json()["items"] == ["b"]
    assert dpopt_run(f"{words} --decimal .").json()["items"] == ["a"]
    Path("e.csv").write_text("item\tscore\na\t8,5\nb\t9\n")
    run = dpopt_run(words)
    assert json.loads(run.out)["items"] == ["b"]
    assert "--delimiter tab: its heading has no other; e.csv is read with --decimal ,: column score can be" in run.err
    for option in ("--delimiter xx", "--encoding nonsense", "--decimal x"):
        assert dpopt_run(f"{words} {option}").refusal().startswith(f"{option.split()[0]}: must be ")


def test_a_problem_file_states_the_format(dpopt_run, files: None) -> None:
    """What has to be found in the data is missing in the problem."""
    text = (
        '[objective]\ntype = "min-wasserstein"\n[objective.input]\ntype = "csv"\nfile = "v.csv"\nvalue = "v"\n'
        'count = "n"\n[[constraints]]\ntype = "pure-dp"\nepsilon = 1\n'
    )
    Path("v.csv").write_text("v;n\n0;1,5\n1;2\n")
    for stated in ('delimiter = ";"', 'decimal = ","'):
        Path("q.toml").write_text(text)
        said = dpopt_run("solve q.toml").refusal()
        assert f"objective.input.{stated.split()[0]}: is missing: v.csv seems to need {stated}" in said
        text = text.replace('type = "csv"\n', f'type = "csv"\n{stated}\n')
    Path("q.toml").write_text(text)
    law = dp.load("q.toml").objective.input.pmf
    assert [law.probability(k) for k in (0, 1)] == [Fraction(3, 7), Fraction(4, 7)]
    Path("q.toml").write_text(text.replace('";"', '"ab"'))
    assert "objective.input.delimiter: must be one character" in dpopt_run("solve q.toml").refusal()


# --- files of the wrong kind -----------------------------------------------------------------------------------------

KINDS = {
    "p.toml": "a problem file: ", "c.json": "a certificate: ", "pmf.json": "a pmf: ", "k.json": "a key table (JSON): ",
    "k.csv": "a key table (CSV): ", "d.csv": "a CSV table: ", "d.txt": "a CSV table: ",
    "s.json": "what --json printed: ", "t.txt": "text that begins with '0'", "b.bin": "no text",
}  # fmt: skip
SOURCES = {"c.json", "pmf.json", "k.json", "k.csv"}
READING = {
    "solve": ({"p.toml"}, "a problem file (TOML)"),
    "compare": ({"p.toml"}, "a problem file (TOML)"),
    "verify": ({"c.json"}, "a certificate (JSON"),
    "privacy": (SOURCES, "a certificate (JSON"),
    "keys": (SOURCES, "a certificate (JSON"),
    "sample": (SOURCES, "a certificate (JSON"),
    "add-noise d.csv": (SOURCES, "a certificate (JSON"),
    "add-noise --D 2 --V 1": ({"d.csv", "d.txt", "k.csv"}, "a CSV table"),
    "top-k --k 1 --epsilon 1": ({"d.csv", "d.txt", "k.csv"}, "a CSV table"),
}
OWN_ERROR = {  # what may be the wanted kind, damaged: the reader says what is wrong in it
    *((command, "t.txt") for command in ("solve", "compare", "add-noise --D 2 --V 1", "top-k --k 1 --epsilon 1")),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", READING)
def test_a_file_of_the_wrong_kind(dpopt_run, files: None, command: str) -> None:
    """One line: what was expected and what this is."""
    right, expected = READING[command]
    for name in sorted(KINDS.keys() - right):
        said = dpopt_run(f"{command} {name}").refusal()
        assert name in said
        if (command, name) not in OWN_ERROR:
            assert said.startswith(f"{name}: must be {expected}") and f"; this is {KINDS[name]}" in said, said


def test_a_damaged_certificate_is_no_other_kind(dpopt_run, files: None, certificate: str) -> None:
    """It does not hold, which is an answer."""
    for text in (certificate[:-20], "{}", certificate.replace('"kind"', '"sort"', 1)):
        Path("bad.json").write_text(text)
        run = dpopt_run("verify bad.json")
        assert run.status == 1 and run.out.startswith("bad.json: does not hold: ")
