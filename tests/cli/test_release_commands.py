"""`dpopt sample` and `dpopt add-noise`: draws of a proved pmf, and what is refused before anything is drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from dpopt.family.members import family_pmf
from dpopt.family.profile import family_rate
from dpopt.release import randomness

from .command_line import ENVIRONMENT

DATA = 'area,count,note\nA,5,x\nB,0,"y, z"\nC,123456789012345678901234567890,\n'
TAILS = '[objective]\ntype = "min-expected-cost"\ncost = "absolute"\n[[constraints]]\ntype = "pure-dp"\nepsilon = 1\n'


@pytest.fixture
def no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any read of random bits fails the test."""
    monkeypatch.setattr(randomness.SystemRandomness, "read", lambda *_: pytest.fail("bits were read"))


def test_draws_follow_the_pmf(dpopt_run) -> None:
    """20,000 seeded draws against the exact law: chi-square over the points that are expected at least five times."""
    run = dpopt_run("sample --D 3 --V 2 --size 20000 --insecure-seed 7")
    assert (
        run.status == 0 and run.err == "dpopt: drawn with --insecure-seed: whoever knows the seed can undo the noise\n"
    )
    mark, *values = run.out.splitlines()
    assert mark == "# insecure seed: for tests only, not for release"
    seen = Counter(map(int, values))
    pmf = family_pmf(3, family_rate(3, 2).upper)
    expected = {k: 20000 * float(pmf.probability(k)) for k in range(-3, 4)}
    assert set(seen) <= set(expected)
    assert sum((seen[k] - e) ** 2 / e for k, e in expected.items()) < 33  # p = 1e-5 at 6 degrees of freedom


def test_a_seed_is_reproducible_and_marked(dpopt_run) -> None:
    words = "sample --D 11 --V 4 --size 5 --json"
    secure = dpopt_run(words).json()
    assert secure["secure"] is True and len(secure["values"]) == 5
    first, second = (dpopt_run(words + " --insecure-seed 3") for _ in range(2))
    assert first == second and json.loads(first.out)["secure"] is False and "can undo the noise" in first.err


def test_an_insecure_seed_is_written_where_its_draws_are(dpopt_run) -> None:
    """In files and on standard output, where no reader loses it; and nothing of the kind without a seed."""
    Path("d.csv").write_text(DATA)
    seed = "--D 3 --V 2 --insecure-seed 1"
    assert dpopt_run(f"sample --size 2 {seed} --csv out.csv").status == 0
    assert Path("out.csv").read_text().splitlines()[0] == "noise (insecure seed)"
    assert dpopt_run(f"add-noise d.csv {seed}").out.splitlines()[0] == "area,count (insecure seed),note"
    run = dpopt_run(f"add-noise d.csv {seed} --csv out.csv --force")
    assert run.out == "# insecure seed: for tests only, not for release\n3 rows written to out.csv\n"
    assert "columns are area, count (insecure seed), note" in dpopt_run("add-noise out.csv --D 3 --V 2").refusal()
    again = ["add-noise", "out.csv", *seed.split(), "--column", "count (insecure seed)"]
    assert dpopt_run(*again).out.splitlines()[0] == "area,count (insecure seed),note"
    for words in ("sample --D 3 --V 2 --csv out.csv --force", "add-noise d.csv --D 3 --V 2 --csv out.csv --force"):
        assert "insecure" not in dpopt_run(words).out + Path("out.csv").read_text()


def test_a_step_gives_fractions_and_tails_are_drawn(dpopt_run) -> None:
    Path("half.json").write_text(json.dumps({"start": "-1", "weights": ["1", "1", "1"], "step": "1/2"}))
    values = dpopt_run("sample half.json --size 60 --json").json()["values"]
    assert {Fraction(v) for v in values} == {Fraction(-1, 2), Fraction(0), Fraction(1, 2)}
    Path("t.toml").write_text(TAILS)
    assert dpopt_run("solve t.toml --certificate t.json").status == 0
    assert len(dpopt_run("sample t.json --size 10").out.split()) == 10
    assert dpopt_run("sample t.json --size 3 --csv out.csv").status == 0
    assert Path("out.csv").read_text().splitlines()[0] == "noise"


def test_noise_is_added_to_one_column(dpopt_run) -> None:
    """Integers of any size, every other cell untouched, every row perturbed by at most D."""
    Path("d.csv").write_text(DATA)
    run = dpopt_run("add-noise d.csv --D 11 --V 4 --csv out.csv")
    assert (run.status, run.err, run.out) == (0, "", "3 rows written to out.csv\n")
    before, after = ([line.split(",") for line in Path(f).read_text().splitlines()] for f in ("d.csv", "out.csv"))
    for old, new in zip(before, after, strict=True):
        assert [old[0], *old[2:]] == [new[0], *new[2:]]
    moved = [int(new[1]) - int(old[1]) for old, new in zip(before[1:], after[1:], strict=True)]
    assert all(abs(m) <= 11 for m in moved)


def test_fractions_of_a_lattice_go_in_and_come_out(dpopt_run) -> None:
    """What the command writes it can read again."""
    Path("half.json").write_text(json.dumps({"start": "-1", "weights": ["1", "2", "1"], "step": "1/2"}))
    Path("d.csv").write_text("count\n3\n1/2\n-1.5\n")
    assert dpopt_run("add-noise d.csv half.json --csv out.csv").status == 0
    assert dpopt_run("add-noise out.csv half.json").status == 0
    moved = [
        Fraction(b) - Fraction(a)
        for a, b in zip(("3", "1/2", "-1.5"), Path("out.csv").read_text().split()[1:], strict=True)
    ]
    assert all(abs(m) <= Fraction(1, 2) and (2 * m).denominator == 1 for m in moved)


@pytest.mark.parametrize(
    "words", ["sample --D 3 --V 1", "add-noise d.csv --D 3 --V 1", "figure 1", "privacy --D 3 --V 1"]
)
def test_only_regular_files_are_written(dpopt_run, words: str) -> None:
    """A pipe or device stays what it is; a link keeps pointing where it points, and its target gets the content."""
    Path("d.csv").write_text("count\n3\n")
    os.mkfifo("pipe")
    assert "--csv: pipe cannot be written: it is not a regular file" in dpopt_run(f"{words} --csv pipe").refusal()
    assert Path("pipe").is_fifo()
    Path("target.csv").write_text("old")
    Path("link.csv").symlink_to("target.csv")
    assert dpopt_run(f"{words} --csv link.csv --force").status == 0
    assert Path("link.csv").is_symlink() and Path("target.csv").read_text() != "old"


@pytest.mark.slow
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dpopt", "sample", "--D", "3", "--V", "1"],
            cwd=tmp_path, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "dpopt: error: the result cannot be written to standard output: No space left on device\n"


@pytest.mark.slow
def test_first_and_last_row_are_perturbed(dpopt_run) -> None:
    Path("d.csv").write_text("count\n" + "1000\n" * 3)
    columns = list(zip(*(dpopt_run("add-noise d.csv --D 11 --V 40").out.split()[1:] for _ in range(40)), strict=True))
    assert len(columns) == 3 and all(len(set(column)) > 1 for column in columns)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sample --D 11 --V 4 --size 0", "--size: must lie between 1"),
        ("sample --size 3", "SOURCE: is missing"),
        ("sample --D 11 --V 4 --insecure-seed -1", "--insecure-seed: must not be negative"),
        ("sample nowhere.json", "nowhere.json: cannot be read"),
        ("sample bad.json", "bad.json: the certificate does not hold, and nothing was drawn"),
        ("add-noise bad.csv --D 11 --V 4", "bad.csv:3: count: must be an integer, not 5/2"),
        ("add-noise short.csv --D 11 --V 4", "short.csv:2: has 1 cells, but there are 2 columns"),
        ("add-noise empty.csv --D 11 --V 4", "empty.csv: needs a line of column names and at least one row"),
        ("add-noise d.csv --D 11 --V 4 --column coun", "d.csv has no column 'coun'; its columns are area, count, note"),
        ("add-noise d.csv --D 11 --V 4 --csv d.csv", "--csv: d.csv cannot be written"),
        ("add-noise nowhere.csv --D 11 --V 4", "nowhere.csv: cannot be read as CSV"),
        ("add-noise d.csv step.json", "d.csv:2: count: must be a multiple of the lattice step 3 of the noise, not 5"),
    ],
)
def test_bad_input_is_one_line_and_draws_nothing(dpopt_run, no_draw: None, words: str, said: str) -> None:
    Path("d.csv").write_text(DATA)
    Path("bad.csv").write_text("count\n1\n2.5\n")
    Path("short.csv").write_text("a,count\n1\n")
    Path("empty.csv").write_text("count\n")
    Path("step.json").write_text(json.dumps({"start": "-1", "weights": ["1", "1", "1"], "step": "3"}))
    Path("t.toml").write_text(TAILS)
    assert dpopt_run("solve t.toml --certificate bad.json").status == 0
    stated = json.loads(Path("bad.json").read_text())
    stated["laws"][0]["weights"][1] = "1"
    Path("bad.json").write_text(json.dumps(stated))
    assert said in dpopt_run(words).refusal()
