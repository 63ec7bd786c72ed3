"""`dpopt top-k`: what it prints, and one line on standard error for everything that is wrong."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dpopt.release.top_k import TopK

COUNTS = "name,count,region\napples,1200,north\nbananas,40,south\ncherries,700,north\ndates,3,south\n"
BASE = ["--k", "2", "--epsilon", "2"]
COLUMNS = ["--scores", "count", "--names", "name"]


@pytest.fixture
def counts(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS, encoding="utf-8")
    return str(path)


def test_a_table(counts: str, dpopt_run) -> None:
    run = dpopt_run("top-k", counts, *BASE, *COLUMNS)
    assert (run.status, run.err) == (0, "")
    out, err = run.out, run.err
    first, heading, _, *rows = out.splitlines()
    assert first == "top 2 of 4: epsilon = 2, sensitivity 1, resolution 1/10"
    assert heading.split("  ")[0] == "place"
    assert [row.split()[:2] for row in rows] == [["1", "apples"], ["2", "cherries"]]
    assert all(abs(float(row.split()[2]) - ahead) < 100 for row, ahead in zip(rows, (500, 660), strict=True))
    assert err == ""


def test_json_is_exact(counts: str, dpopt_run) -> None:
    words = ["top-k", counts, *BASE, *COLUMNS, "--monotonic", "--resolution", "1/8", "--sensitivity", "3/2", "--json"]
    data = dpopt_run(*words).json()
    assert data["items"] == ["apples", "cherries"]
    assert [(Fraction(gap) * 8).denominator for gap in data["gaps"]] == [1, 1]
    again = TopK.from_dict({key: value for key, value in data.items() if key != "items"})
    assert (again.ids, [str(gap) for gap in again.gaps]) == ((0, 2), data["gaps"])
    assert {**data, "gaps": []} == {
        "items": ["apples", "cherries"], "ids": [0, 2], "gaps": [], "k": 2, "epsilon": "2", "resolution": "1/8",
        "sensitivity": "3/2", "monotonic": True, "secure": True,
    }  # fmt: skip


def test_a_seed_repeats_and_is_marked(counts: str, dpopt_run) -> None:
    found = []
    for _ in range(2):
        run = dpopt_run("top-k", counts, *BASE, *COLUMNS, "--insecure-seed", "7", "--json")
        assert run.status == 0
        out, err = run.out, run.err
        found.append(out)
        assert len(err.splitlines()) == 1
        assert "whoever knows the seed can undo the noise" in err
    assert found[0] == found[1]
    assert json.loads(found[0])["secure"] is False
    for more in ([], ["--no-gaps"]):
        printed = dpopt_run("top-k", counts, *BASE, *COLUMNS, "--insecure-seed", "7", *more)
        assert printed.out.splitlines()[0] == "# insecure seed: for tests only, not for release"
        assert "insecure" not in dpopt_run("top-k", counts, *BASE, *COLUMNS, *more).out


def test_without_gaps_all_items_can_be_ordered(counts: str, dpopt_run) -> None:
    data = dpopt_run("top-k", counts, "--k", "4", "--epsilon", "1e6", *COLUMNS, "--no-gaps", "--json").json()
    assert data["items"] == ["apples", "cherries", "bananas", "dates"]
    assert data["gaps"] is None
    run = dpopt_run("top-k", counts, "--k", "1", "--epsilon", "1e6", *COLUMNS, "--no-gaps")
    assert run.out.splitlines()[1:] == ["place  item", "-----  ------", "1      apples"]


def test_a_single_column_and_line_numbers(tmp_path: Path, dpopt_run) -> None:
    """With a byte order mark, an empty line, blanks, and every way to write a number."""
    path = tmp_path / "one.csv"
    path.write_text("\ufeffscore\n 1/2 \n\n2e3\n-7.5\n", encoding="utf-8")
    assert dpopt_run("top-k", str(path), "--k", "1", "--epsilon", "1", "--json").json()["items"] == ["4"]


def test_scores_between_multiples_need_leave(tmp_path: Path, dpopt_run) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("score\n500.05\n1\n", encoding="utf-8")
    line = dpopt_run("top-k", str(path), "--k", "1", "--epsilon", "1").refusal()
    assert "scores.csv:2: score: 10001/20 is no multiple of the resolution 1/10; pass --round-down" in line
    assert dpopt_run("top-k", str(path), "--k", "1", "--epsilon", "1", "--round-down").status == 0
    assert dpopt_run("top-k", str(path), "--k", "1", "--epsilon", "1", "--resolution", "1/20").status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--k", "0", "--epsilon", "1", *COLUMNS], "k: must be at least 1, not 0"),
        (["--k", "4", "--epsilon", "1", *COLUMNS], "k: must be less than the 4 scores"),
        (["--k", "5", "--epsilon", "1", *COLUMNS, "--no-gaps"], "k: must be at most the 4 scores, not 5"),
        (["--k", "x", "--epsilon", "1", *COLUMNS], "Invalid value for '--k'"),
        (["--k", "1", *COLUMNS], "epsilon"),
        (["--k", "1", "--epsilon", "0", *COLUMNS], "epsilon: must be positive, not 0"),
        (["--k", "1", "--epsilon", "nan", *COLUMNS], "epsilon: must be a number"),
        ([*BASE, *COLUMNS, "--resolution", "3/10"], "resolution: must be 1 over an integer, not 3/10"),
        ([*BASE, *COLUMNS, "--sensitivity", "1/3"], "sensitivity: must be an integer multiple of the resolution"),
        ([*BASE, *COLUMNS, "--insecure-seed", "-1"], "--insecure-seed: must not be negative, not -1"),
        (BASE, "--scores: is missing: "),
        ([*BASE, "--scores", "counts"], "no column 'counts'; its columns are name, count, region"),
        ([*BASE, "--scores", "count", "--names", "id"], "--names: "),
        ([*BASE, "--scores", "count", "--names", "region"], ":4: region: is the name 'north' again, as on line 2"),
        ([*BASE, "--scores", "count", "--names", "count"], "--names: 'count' is the column of the scores"),
        ([*BASE, "--scores", "name"], ":2: name: must be a number"),
    ],
)
def test_one_line_for_what_is_wrong(words: list[str], message: str, counts: str, dpopt_run) -> None:
    assert message in dpopt_run("top-k", counts, *words).refusal()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "needs a line of column names and at least one row"),
        (b"score\n", "needs a line of column names and at least one row"),
        (b"score\n1\n2,3\n", ":3: has 2 cells, but there are 1 columns"),
        (b"1\n2\n3\n", "must begin with a line of column names, not with 1"),
        (b"score,score\n1,2\n", "more than one column 'score'"),
        (b"score\n1\n\xff\n", "cannot be read"),
        (b'score\n"1\n', "cannot be read"),
        (b"score\n1\nnan\n", ":3: score: must be a number"),
        (b"score\n1\n''\n", ":3: score: must be a number"),
    ],
)
def test_one_line_for_a_wrong_file(content: bytes, message: str, tmp_path: Path, dpopt_run) -> None:
    path = tmp_path / "wrong.csv"
    path.write_bytes(content)
    scores = ["--scores", "score"]
    assert message in dpopt_run("top-k", str(path), "--k", "1", "--epsilon", "1", *scores).refusal()


def test_one_line_for_no_file(tmp_path: Path, dpopt_run) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        assert "cannot be read" in dpopt_run("top-k", str(path), *BASE).refusal()


def test_nothing_is_drawn_before_all_is_read(counts: str, monkeypatch: pytest.MonkeyPatch, dpopt_run) -> None:
    """Neither for a bad line at the end nor for a bad option."""

    def forbidden(count: int) -> bytes:
        raise AssertionError("a random bit was drawn")

    monkeypatch.setattr("dpopt.release.randomness.os.urandom", forbidden)
    Path(counts).write_text(COUNTS + "elderberries,many,west\n", encoding="utf-8")
    assert dpopt_run("top-k", counts, *BASE, *COLUMNS).status == 2
    Path(counts).write_text(COUNTS, encoding="utf-8")
    assert dpopt_run("top-k", counts, *BASE, *COLUMNS, "--resolution", "2").status == 2
