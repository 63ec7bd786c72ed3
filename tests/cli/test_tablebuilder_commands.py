"""The commands for TableBuilder noise: privacy, target, keys and figure, with what they refuse."""

from __future__ import annotations

import csv
import dataclasses
import json
import sys
import types
from pathlib import Path

import pytest

import dpopt
from dpopt.tables.key_table import KeyTable

from .command_line import Run


def rows_of(path: str) -> list[list[str]]:
    """A CSV file's rows."""
    return list(csv.reader(Path(path).read_text(encoding="utf-8").splitlines()))


# --- privacy ---------------------------------------------------------------------------------------------------------


def test_privacy_of_a_member_by_variance(dpopt_run) -> None:
    run = dpopt_run("privacy --D 11 --V 4 --epsilon 1 --epsilon 3 --delta 1e-5")
    assert (run.status, run.err) == (0, "")
    assert "1        0.00724878\n" in run.out  # theory, section 3
    assert "3        5.3849e-8\n" in run.out
    assert "1e-5   2.01165258715\n" in run.out


def test_privacy_as_json(dpopt_run) -> None:
    found = dpopt_run("privacy --D 11 --gamma 1/21 --epsilon 1 --delta 0.001 --sensitivity 1 --json").json()
    (point,) = found["curve"]
    assert point["delta_lower"] <= 3.8735682368659970113e-4 <= point["delta_upper"]
    assert point["delta_upper"] == pytest.approx(3.8735682368659970113e-4, rel=1e-13)
    assert found["plateau_start"] == 1
    assert found["least_epsilon"][0]["epsilon"] < 1


def test_privacy_decides(dpopt_run) -> None:
    """An epsilon that the noise was made for is not rounded past, and yes or no is exact."""
    found = dpopt.solve(dpopt.wasserstein(input=dpopt.poisson(3), epsilon="0.1", sensitivity=2))
    found.certificate.save("c.json")
    assert "delta 0 from epsilon 0.1 on" in dpopt_run("privacy c.json --sensitivity 2").out
    epsilons = "--epsilon 0.1 --epsilon 0.0999999999999999999"
    run = dpopt_run(f"privacy c.json --sensitivity 2 {epsilons} --delta 0 --delta 1e-9")
    assert "(0.1, 0)-DP: yes, decided exactly" in run.out
    assert "(0.0999999999999999999, 0)-DP: no, decided exactly" in run.out
    assert "(0.0999999999999999999, 1e-9)-DP: yes, decided exactly" in run.out
    assert "0      0.1\n" in run.out  # the least epsilon at delta 0
    plain = dpopt_run("privacy c.json --sensitivity 2 --epsilon 0.1 --delta 0 --json").json()
    assert plain["private"] == [{"epsilon": 0.1, "delta": 0.0, "private": True}]
    finite = dpopt_run("privacy --D 11 --V 4 --epsilon 1 --delta 0")  # no epsilon at all reaches delta 0
    assert finite.status == 0 and "(1, 0)-DP: no" in finite.out and "0      none\n" in finite.out


def test_privacy_curve_and_csv(dpopt_run) -> None:
    found = dpopt_run("privacy --D 11 --V 10 --points 50 --csv curve.csv --json").json()
    rows = rows_of("curve.csv")
    assert rows[0] == ["epsilon", "delta_lower", "delta_upper"]
    assert [list(map(float, row)) for row in rows[1:]] == [list(point.values()) for point in found["curve"]]
    assert len(rows) == 51 and rows[1][0] == "0.0"
    assert len(dpopt_run("privacy --D 11 --V 10 --json").json()["curve"]) == 200
    assert "200 epsilons" in dpopt_run("privacy --D 11 --V 10").out
    assert dpopt_run("privacy --D 11 --V 10 --delta 0.01 --json").json()["curve"] == []


@pytest.mark.parametrize("family", ["analytic", "tablebuilder", "any"])
def test_privacy_of_a_target_certificate(dpopt_run, family: str) -> None:
    assert dpopt_run(f"target --epsilon 1 --delta 1e-3 --family {family} --certificate c.json").status == 0
    wanted = dpopt.solve(dpopt.target(epsilon=1, delta="1e-3", family=family)).pmf
    found = dpopt_run("privacy c.json --epsilon 1 --json").json()
    assert found["curve"][0]["delta_upper"] == pytest.approx(float(dpopt.delta(wanted, 1).upper), rel=1e-14)
    assert found["curve"][0]["delta_upper"] <= 1e-3


def test_privacy_of_other_files(dpopt_run) -> None:
    pmf = dpopt.Pmf(-1, (1, 2, 1))
    Path("pmf.json").write_text(json.dumps(pmf.to_dict()))
    Path("plain.json").write_text('{"start": -1, "weights": [1, 2, 1]}')
    table = KeyTable(-1, (1, 2, 1), 4)
    Path("table.json").write_text(json.dumps(table.to_dict()))
    table.to_csv("table.csv")
    dpopt.solve(dpopt.wasserstein(input=dpopt.point(0), epsilon=1)).certificate.save("tails.json")
    for name in ("pmf.json", "plain.json", "table.json", "table.csv"):
        found = dpopt_run(f"privacy {name} --delta 1/4 --json").json()
        assert found["least_epsilon"][0]["epsilon"] == pytest.approx(0.693147180559945)
    assert dpopt_run("privacy tails.json --delta 0 --json").json()["least_epsilon"][0]["epsilon"] <= 1


def test_numbers_beyond_floats(dpopt_run) -> None:
    Path("far.json").write_text(json.dumps({"start": "1" + "0" * 400, "weights": [1, 2, 1]}))
    assert "support [1e400, 1e400], mean 1e400, variance 0.5" in dpopt_run("privacy far.json").out
    found = dpopt_run("keys far.json --key-size 64 --json").json()
    assert found["bias"] is None and found["variance"] == 0.5
    found = dpopt_run("keys --D 3 --gamma 1/5 --key-size 64 --epsilon 1 --delta 1 --sensitivity 1e6 --json").json()
    assert found["privacy"] == {"epsilon": 1, "sensitivity": 1e6, "delta_forward": 1, "delta_reverse": 1}


# --- target ----------------------------------------------------------------------------------------------------------


def test_target_side_by_side(dpopt_run) -> None:
    run = dpopt_run("target --epsilon 1 --delta 1e-3")
    assert (run.status, run.err) == (0, "")
    assert [line.split()[:2] for line in run.out.splitlines()[1:]] == [
        ["analytic", "10"],
        ["tablebuilder", "9"],
        ["any", "7"],
    ]
    found = dpopt_run("target --epsilon 1 --delta 1e-3 --json").json()
    assert [design["D"] for design in found["designs"]] == [10, 9, 7]
    assert found["designs"][0]["V"] == pytest.approx(9.424888062)


def test_target_of_one_family(dpopt_run) -> None:
    run = dpopt_run("target --epsilon 1 --delta 1e-5 --family analytic --certificate c.json")
    assert (run.status, run.err) == (0, "")
    assert "  D              18 (no design" in run.out
    assert dpopt_run("verify c.json").status == 0
    found = dpopt_run("target --epsilon 1 --delta 1e-5 --family any --then min-variance --json").json()
    assert found["design"]["D"] == 11 and found["verified"] == "optimal"
    found = dpopt_run("target --epsilon 1 --delta 1e-2 --family analytic --sensitivity 2 --json").json()
    assert (
        found["design"]["D"]
        > dpopt_run("target --epsilon 1 --delta 1e-2 --family analytic --json").json()["design"]["D"]
    )


def test_the_inverse_questions(dpopt_run) -> None:
    run = dpopt_run("target --D 11 --V 4 --delta 1e-5")
    assert run == Run(0, "least epsilon 2.01165258715 (proved) for D 11, delta 1e-5, sensitivity 1, V 4\n", "")
    found = dpopt_run("target --D 17 --epsilon 1 --delta 1e-5 --json").json()
    assert found["V"] == pytest.approx(14.4811689947) and found["family"] == "tablebuilder"
    assert dpopt_run("target --epsilon 1 --delta 1e-5 --frontier 2").out.splitlines()[1].split()[0] == "17"
    found = dpopt_run("target --epsilon 1 --delta 1e-5 --frontier 2 --family analytic --json").json()
    assert [point["D"] for point in found["points"]] == [18, 19]


def test_what_is_not_proved_is_status_1(dpopt_run, monkeypatch: pytest.MonkeyPatch) -> None:
    solution = dataclasses.replace(
        dpopt.solve(dpopt.target(epsilon=1, delta="1e-3", family="analytic")),
        verified=dpopt.Verified.FAILED,
        message="no luck",
    )
    failed = types.SimpleNamespace(rows=[types.SimpleNamespace(family="analytic", solution=solution)])
    monkeypatch.setattr(dpopt, "designs", lambda *_, **__: failed)
    for words in ("target --epsilon 1 --delta 1e-3", "target --epsilon 1 --delta 1e-3 --json"):
        assert dpopt_run(words) == Run(1, "family 'analytic': not proved: no luck\n", "")

    def refuse(*_: object, **__: object) -> None:
        raise dpopt.NotVerifiedError("no luck\nat all")

    monkeypatch.setattr(dpopt, "frontier", refuse)
    run = dpopt_run("target --epsilon 1 --delta 1e-3 --frontier 2")
    assert run == Run(1, "", "dpopt: error: no luck at all\n")


# --- keys ------------------------------------------------------------------------------------------------------------


def test_the_smallest_key_size(dpopt_run) -> None:
    run = dpopt_run("keys --D 11 --gamma 1/21")
    assert (run.status, run.err) == (0, "")
    assert "key size         4096\n" in run.out  # theory, section 7
    assert "2048: the noise 11 is lost" in run.out
    assert "paper (45)-(46)  epsilon 1.01160091168, delta 0.00048828125: does not hold\n" in run.out
    assert "forward 0.00048828125, reverse 0.000549316406\n" in run.out
    assert len(run.out.splitlines()) == 15 + 23
    found = dpopt_run("keys --D 11 --gamma 1/21 --epsilon 1 --delta 4e-4 --rule symmetric --json").json()
    assert found["verified"] == "optimal" and found["bias"] == 0
    assert max(found["privacy"]["delta_forward"], found["privacy"]["delta_reverse"]) <= 4e-4
    assert [r["key_size"] for r in found["refuted"]][:3] == ["1", "2", "4"]


def test_keys_of_a_size(dpopt_run) -> None:
    found = dpopt_run("keys --D 11 --gamma 1/21 --key-size 2^16 --csv k.csv --json").json()
    table = KeyTable.from_csv(Path("k.csv"))
    assert KeyTable.from_dict(found["key_table"]) == table == dpopt.key_table((11, "1/21"), 65536, rule="ceiling")
    assert found["variance"] == pytest.approx(10.44731137)  # theory, section 8, with the pair and what is true
    assert found["paper"]["epsilon"] == pytest.approx(0.9760099666)
    assert not found["paper"]["holds"]
    assert found["paper"]["delta_reverse"] == pytest.approx(4.21964e-4, rel=1e-5)
    assert found["corrected"]["epsilon"] == pytest.approx(1.015230680)


def test_optimal_keys(dpopt_run) -> None:
    found = dpopt_run("keys --D 2 --gamma 1/3 --key-size 256 --rule optimal --json").json()
    assert found["verified"] == "optimal"
    assert found["key_table"]["counts"] == ["22", "62", "88", "62", "22"]
    run = dpopt_run("keys --D 2 --gamma 1/3 --key-size 4 --rule optimal --csv k.csv")
    assert run.status == 1 and "infeasible" in run.out
    assert "k.csv was not written" in run.err and not Path("k.csv").exists()


def test_keys_that_do_not_hold_are_status_1(dpopt_run) -> None:
    run = dpopt_run("keys --D 11 --gamma 1/8 --key-size 2^16 --csv k.csv")
    assert run.status == 1
    assert "[-11, 8], 5 of 23 values lost" in run.out and "full support: FAILS" in run.out
    assert not Path("k.csv").exists()
    found = dpopt_run("keys --D 11 --gamma 1/21 --key-size 4096 --epsilon 1 --delta 4e-4 --json").json(1)
    assert found["verified"] == "failed"
    assert {c["constraint"]: c["holds"] for c in found["checks"]} == {"full support": True, "approx-dp": False}
    found = dpopt_run("keys --D 11 --gamma 1/21 --key-size 4096 --variance 10 --json").json(1)
    assert found["checks"][-1] == {"constraint": "variance", "holds": False}
    found = dpopt_run("keys --D 11 --gamma 1/8 --key-size 2^16 --json").json(1)
    assert found["paper"]["epsilon"] is None and found["corrected"]["delta"] is None
    assert dpopt_run("keys --D 11 --gamma 1/21 --epsilon 1 --delta 1e-4 --json").json(1)["key_table"] is None


def test_keys_of_a_certificate(dpopt_run) -> None:
    assert dpopt_run("target --epsilon 1 --delta 1e-5 --family tablebuilder --certificate c.json").status == 0
    found = dpopt_run("keys c.json --key-size 18446744073709551616 --json").json()
    assert found["key_table"]["key_size"] == str(2**64)
    assert sum(map(int, found["key_table"]["counts"])) == 2**64


# --- figure ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rows", "columns"), [("1", 81, 5), ("2", 152, 10), ("keys", 50, 13)])
def test_figure(dpopt_run, name: str, rows: int, columns: int) -> None:
    run = dpopt_run(f"figure {name} --csv f.csv")
    assert (run.status, run.err) == (0, "")
    assert len(run.out.splitlines()) == rows + 4
    written = rows_of("f.csv")
    assert len(written) == rows + 1 and {len(row) for row in written} == {columns}
    found = dpopt_run(f"figure {name} --json").json()
    assert found["columns"] == written[0]
    assert [["" if cell is None else str(cell) for cell in row] for row in found["rows"]] == written[1:]


def test_figure_without_matplotlib(dpopt_run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # importing it fails
    run = dpopt_run("figure 1 --plot f.png --csv f.csv")
    assert (run.status, run.out) == (2, "")
    assert run.err == "dpopt: error: drawing needs matplotlib, which is not installed: pip install 'dpopt[plot]'\n"
    assert not list(Path().iterdir())


def test_figure_with_a_plot(dpopt_run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpopt.plot.require_matplotlib", lambda: None)
    monkeypatch.setattr("dpopt.plot.draw", lambda figure, kind: f"{figure.name} as {kind}".encode())
    assert dpopt_run("figure 2 --plot f.SVG").status == 0
    assert Path("f.SVG").read_text() == "2 as svg"


# --- refusals --------------------------------------------------------------------------------------------------------

FILES = {
    "pmf.json": '{"start": -1, "weights": [1, 2, 1]}',
    "tails.json": '{"start": 0, "weights": [1], "tails": {"period": 1, "left": "1/2", "right": "1/2"}}',
    "list.json": "[1, 2]",
    "broken.json": '{"start": ',
    "nan.json": '{"start": 0, "weights": [NaN]}',
    "half.json": '{"start": 0, "weights": [0.5, 0.5]}',
    "empty.json": "{}",
    "text.json": '{"start": 0, "weights": "12"}',
    "none.json": '{"format": "dpopt-certificate/2", "kind": "infeasible", "laws": null}',
    "target.json": '{"kind": "target", "D": "3"}',
    "odd.json": '{"start": 0, "weights": [1], "tails": "x"}',
    "deep.json": "[" * 100_000,
    "bad.csv": "noise,count\n1,2\n",
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("privacy", "SOURCE"),
        ("privacy nowhere.json", "nowhere.json: cannot be read"),
        ("privacy .", "cannot be read"),
        ("privacy list.json", "list.json: must hold a JSON object"),
        ("privacy broken.json", "broken.json: is not JSON"),
        ("privacy nan.json", "NaN"),
        ("privacy half.json", "weights[0]: must be an integer"),
        ("privacy empty.json", "lacks the entry 'weights'"),
        ("privacy text.json", "a list 'weights'"),
        ("privacy none.json", "proves that there are none"),
        ("privacy target.json", "lacks the entry 'gamma'"),
        ("privacy deep.json", "nested too deeply"),
        ("privacy bad.csv", "bad.csv"),
        ("privacy pmf.json --D 3", "--D: cannot stand beside the file"),
        ("privacy --D 3", "--D: needs --V or --gamma"),
        ("privacy --D 3 --V 1 --gamma 1", "--D: needs --V or --gamma"),
        ("privacy --V 1", "SOURCE"),
        ("privacy --D -1 --V 1", "D: must be at least 0"),
        ("privacy --D 2.5 --V 1", "D: must be an integer"),
        ("privacy --D 10000000000 --V 1", "D: must be at most"),
        ("privacy --D 3 --V 1 --sensitivity 1e400", "sensitivity: must be at most 1000000"),
        ("target --epsilon 1 --delta 0.1 --sensitivity 1e400", "sensitivity: must be at most 1000000"),
        ("target --D 1e9 --V 1 --delta 0.1", "D: must be at most"),
        ("target --epsilon 1 --delta 0.1 --frontier 100000", "--frontier: must be at most 1000"),
        ("privacy odd.json", "tails: must be a mapping"),
        ("privacy --D 3 --V 0", "V: must be positive"),
        ("privacy --D 3 --V nan", "V: must be a number"),
        ("privacy --D 3 --gamma -1", "gamma: must be at least 0"),
        ("privacy --D 1000 --gamma 1000", "gamma"),
        ("privacy pmf.json --epsilon -1", "epsilons[0]: must be at least 0"),
        ("privacy pmf.json --epsilon inf", "epsilons[0]"),
        ("privacy pmf.json --delta 2", "delta: must lie between 0 and 1"),
        ("privacy pmf.json --delta 0", "delta: must be at least 0.25"),
        ("privacy pmf.json --sensitivity 0", "sensitivity"),
        ("privacy pmf.json --points 1", "--points: must lie between 2"),
        ("privacy pmf.json --points 10 --epsilon 1", "--points: is for the curve"),
        ("privacy pmf.json --points many", "--points"),
        ("privacy pmf.json --csv no/such.csv", "--csv: no/such.csv cannot be written: there is no directory"),
        ("privacy pmf.json --csv pmf.json", "it is what is read"),
        ("target --epsilon 1", "--delta"),
        ("target --delta 1e-5", "--epsilon: is missing"),
        ("target --epsilon 1 --delta 0", "delta: must lie strictly between 0 and 1"),
        ("target --epsilon -1 --delta 0.1", "epsilon"),
        ("target --epsilon one --delta 0.1", "epsilon: must be a number"),
        ("target --epsilon 1 --delta 0.1 --family all", "family: must be one of"),
        ("target --epsilon 1 --delta 0.1 --family any --then best", "then: must be one of"),
        ("target --epsilon 1 --delta 0.1 --family analytic --then min-delta", "then: is not for family"),
        ("target --epsilon 1 --delta 0.1 --then min-delta", "--then: goes with the design of one family"),
        ("target --epsilon 1 --delta 0.1 --certificate c.json", "--certificate: goes with"),
        ("target --epsilon 1 --delta 0.1 --family any --certificate no/c.json", "no directory"),
        ("target --epsilon 1 --delta 0.1 --sensitivity 0.5", "sensitivity: must be at least 1"),
        ("target --epsilon 1 --delta 0.1 --frontier 0", "points: must be at least 1"),
        ("target --epsilon 1 --delta 0.1 --V 3", "--D: goes with --V"),
        ("target --epsilon 1 --delta 0.1 --D 3 --V 3", "--D: goes with --V"),
        ("target --delta 0.1 --D 3", "--D: goes with --V"),
        ("target --delta 0.1 --D 3 --V 1 --family any", "--family: does not go with --V"),
        ("target --delta 1e-9 --D 3 --V 1", "delta: must be at least"),
        ("target --delta 1e-9 --D 3 --epsilon 1", "D: = 3 is too small"),
        ("target --epsilon 1 --delta 0.1 --sensitivity 2 --backend higs", "did you mean 'highs'"),
        ("keys", "SOURCE"),
        ("keys tails.json", "pmf: must have a finite support"),
        ("keys pmf.json --key-size 0", "key_size: must be at least 1"),
        ("keys pmf.json --key-size 2^9999", "key_size: must be at most 2^4096"),
        ("keys pmf.json --key-size many", "key_size: must be a number"),
        ("keys pmf.json --rule floor", "rule: must be one of ceiling, symmetric, cumulative, optimal"),
        ("keys pmf.json --epsilon 1", "--delta: must be given as well"),
        ("keys pmf.json --delta 0.1", "--epsilon: must be given as well"),
        ("keys pmf.json --epsilon 1 --delta 2", "delta: must lie between 0 and 1"),
        ("keys pmf.json --epsilon -1 --delta 0.1", "epsilon: must be at least 0"),
        ("keys pmf.json --variance 1", "--variance: needs --key-size"),
        ("keys pmf.json --variance -1 --key-size 8", "variance: must be at least 0"),
        ("keys pmf.json --sensitivity 0.5 --key-size 8", "sensitivity: must be at least 1"),
        ("keys pmf.json --key-size 8 --rule optimal --backend higs", "did you mean 'highs'"),
        ("figure", "NAME"),
        ("figure 3", "NAME: must be one of 1, 2, keys"),
        ("figure 1 --plot f.jpg", "--plot: must end in .png, .pdf, .svg"),
        ("figure 1 --plot no/f.png", "--plot: no/f.png cannot be written: there is no directory"),
        ("figure 1 --csv no/f.csv", "--csv: no/f.csv cannot be written: there is no directory"),
        ("figure 1 --csv f.png --plot f.png", "--plot: f.png is where the table goes"),
        ("keys pmf.json --csv .", "--csv: . cannot be written: it is a directory"),
    ],
)
def test_bad_input_is_one_line(dpopt_run, words: str, said: str) -> None:
    for name, text in FILES.items():
        Path(name).write_text(text)
    before = sorted(Path().iterdir())
    run = dpopt_run(words)
    assert (run.status, run.out) == (2, ""), run
    assert run.err.startswith("dpopt: error: ") and run.err.count("\n") == 1 and "internal" not in run.err
    assert said in run.err
    assert sorted(Path().iterdir()) == before
    assert Path("pmf.json").read_text() == FILES["pmf.json"]


@pytest.mark.parametrize("command", ["privacy", "target", "keys", "figure"])
def test_help(dpopt_run, command: str) -> None:
    run = dpopt_run(f"{command} --help")
    assert run.status == 0 and run.out.startswith(f"Usage: dpopt {command}")
