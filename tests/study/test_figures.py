"""The figures: values of the paper's curves, proved optima, the study over key sizes, and drawing."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

import dpopt as dp
from dpopt.plot import draw, require_matplotlib
from dpopt.study.figures import Figure, delta_against_epsilon, design_against_epsilon, study_of_key_sizes

ROOT = Path(__file__).parents[2]
VALUES = json.loads((ROOT / "tests" / "core" / "delta_curves.json").read_text())


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", sorted({point["sensitivity"] for point in VALUES["curve"]}))
def test_figure_1_has_the_reference_curves(sensitivity: int) -> None:
    points = [p for p in VALUES["curve"] if p["sensitivity"] == sensitivity and "V" in p]
    members = sorted({(p["D"], p["V"]) for p in points})
    epsilons = sorted({p["epsilon"] for p in points}, key=float)
    figure = delta_against_epsilon(members, epsilons, sensitivity=sensitivity)
    for p in points:
        found = figure.column(f"D={p['D']}, V={p['V']}")[epsilons.index(p["epsilon"])]
        assert found == pytest.approx(float(p["delta"]), rel=1e-14)


def test_the_shipped_figure_1_holds_the_reference_values() -> None:
    figure = delta_against_epsilon()
    epsilons, compared = figure.column("epsilon"), 0
    for p in VALUES["curve"]:
        name = f"D={p['D']}, V={p.get('V')}"
        if p["sensitivity"] == 1 and name in figure.columns and float(p["epsilon"]) in epsilons:
            found = figure.column(name)[epsilons.index(float(p["epsilon"]))]
            assert found == pytest.approx(float(p["delta"]), rel=1e-14)
            compared += 1
    assert compared >= 20


def test_figure_1_falls_to_the_plateau() -> None:
    figure = delta_against_epsilon()
    for name in figure.columns[1:]:
        curve = figure.column(name)
        assert all(a >= b for a, b in zip(curve, curve[1:], strict=False))
    start = float(next(p["epsilon"] for p in VALUES["plateau_start"] if (p["D"], p["V"]) == (11, "4")))
    after = [d for e, d in zip(figure.column("epsilon"), figure.column("D=11, V=4"), strict=True) if e > start]
    assert len(set(after)) == 1


def test_figure_2_has_the_reference_values() -> None:
    compared = 0
    figure = design_against_epsilon()
    rows = {(row[0], row[1]): dict(zip(figure.columns, row, strict=True)) for row in figure.rows}
    for p in VALUES["figure2"]:
        row = rows[p["D"], float(p["epsilon"])]
        assert row["delta analytic"] == pytest.approx(float(p["delta_eq29"]), rel=1e-14)
        assert row["V analytic"] == pytest.approx(float(p["V_eq28"]), rel=1e-14)
        assert row["delta best"] == pytest.approx(float(p["best_delta"]), rel=1e-10)
        assert row["j"] == p["best_j"]
        assert row["delta best"] <= float(p["grid_delta"]) * (1 + 1e-9)
        compared += 1
    assert compared == 9
    assert all(ratio >= 1 for ratio in figure.column("times the best"))


def test_the_study_of_key_sizes_has_the_reference_values() -> None:
    figure = study_of_key_sizes(bits=[12, 16, 20, 32])
    rows = {(row[0], row[1]): dict(zip(figure.columns, row, strict=True)) for row in figure.rows}
    for bits, epsilon, reverse_ratio, delta, forward, reverse in [  # theory, section 8
        (12, 1.011600912, 1.386294361, 4.8828125e-4, 4.88281e-4, 5.49316e-4),
        (16, 0.9760099666, 1.015230680, 3.96728516e-4, 3.96729e-4, 4.21964e-4),
        (20, 0.9978820414, 1.000342067, 3.88145447e-4, 3.88145e-4, 3.89779e-4),
        (32, 1.000000066, 1.000000667, 3.87356849e-4, 3.87356849e-4, 3.87357249e-4),
    ]:
        row = rows["ceiling", bits]
        assert row["paper epsilon"] == pytest.approx(epsilon, rel=1e-9)
        assert row["corrected epsilon"] == pytest.approx(reverse_ratio, rel=1e-9)
        assert row["paper delta"] == pytest.approx(delta, rel=1e-8)
        assert row["true forward"] == pytest.approx(forward, rel=2e-6)
        assert row["true reverse"] == pytest.approx(reverse, rel=2e-6)
        assert row["holds"] is False
        assert rows["symmetric", bits]["bias"] == 0 and rows["symmetric", bits]["holds"] is True
    lost = study_of_key_sizes(epsilon=2, bits=[16], rules=["ceiling"])
    assert lost.column("paper epsilon") == [None] and lost.column("lost")[0] > 0


def test_a_key_size_too_small_for_a_rule_has_no_row() -> None:
    assert study_of_key_sizes(D=3, epsilon="1/100", bits=[2, 6], rules=["symmetric"]).column("bits") == [6]


def test_the_problem_files_lie_on_the_figures() -> None:
    folder = ROOT / "problems" / "figures"
    figure = delta_against_epsilon(epsilons=[1])
    for path in sorted(folder.glob("figure-1-*.toml")):
        half, variance = path.stem.removeprefix("figure-1-d").split("-v")
        pmf = dp.solve(dp.load(path)).pmf
        assert float(dp.delta(pmf, 1).upper) == pytest.approx(figure.column(f"D={half}, V={variance}")[0], rel=1e-6)
    row = dict(zip(*(lambda f: (f.columns, f.rows[0]))(design_against_epsilon([11], [1])), strict=True))
    for word in ("analytic", "best"):
        design = dp.solve(dp.load(folder / f"figure-2-{word}.toml")).design
        assert design.D == 11 and float(design.gamma) == row[f"gamma {word}"]
        assert float(design.delta) == pytest.approx(row[f"delta {word}"], rel=1e-14)
    assert len(list(folder.glob("figure-*.toml"))) == 6


# --- tables ----------------------------------------------------------------------------------------------------------


def test_a_figure_is_a_table() -> None:
    figure = study_of_key_sizes(bits=[8], rules=["ceiling"])
    assert figure.to_csv().splitlines()[0].startswith("rule,bits,lost,")
    assert ",,0.00390625,False,,," in figure.to_csv()
    assert str(figure).splitlines()[0] == figure.title and " no " in str(figure)
    assert json.loads(json.dumps(figure.to_dict(), allow_nan=False))["rows"] == [list(row) for row in figure.rows]
    for made in (figure, delta_against_epsilon(epsilons=[1]), design_against_epsilon([3], [1])):
        for panel in made.panels:
            assert {panel.x, *panel.y, *([panel.by] if panel.by else [])} <= set(made.columns)


@pytest.mark.parametrize(
    ("make", "location"),
    [
        (lambda: delta_against_epsilon(epsilons=[]), "epsilons"),
        (lambda: delta_against_epsilon(epsilons="12"), "epsilons"),
        (lambda: delta_against_epsilon(epsilons=["x"]), "epsilons[0]"),
        (lambda: delta_against_epsilon([(11, 0)]), "V"),
        (lambda: delta_against_epsilon([(-1, 4)]), "members[0][0]"),
        (lambda: design_against_epsilon(epsilons=[0]), "epsilons"),
        (lambda: design_against_epsilon([0]), "half_widths[0]"),
        (lambda: study_of_key_sizes(D=0), "D"),
        (lambda: study_of_key_sizes(epsilon=0), "epsilon"),
        (lambda: study_of_key_sizes(bits=[-1]), "bits[0]"),
        (lambda: study_of_key_sizes(bits=[8], rules=["floor"]), "rules[0]"),
        (lambda: design_against_epsilon([3], [1]).column("delta"), "column"),
        (lambda: draw(design_against_epsilon([3], [1]), "gif"), "kind"),
    ],
)
def test_bad_arguments(make, location: str) -> None:
    with pytest.raises(dp.InputError) as caught:
        make()
    assert caught.value.location == location


# --- drawing ---------------------------------------------------------------------------------------------------------


def test_every_curve_is_drawn(drawn) -> None:
    figures: list[tuple[Figure, int, int]] = [
        (delta_against_epsilon(epsilons=[1, 2]), 4, 1),
        (design_against_epsilon([3, 4], [1, 2]), 6, 1),
        (study_of_key_sizes(bits=[8, 12]), 10, 1),
    ]
    for figure, curves, log in figures:
        assert draw(figure, "pdf") == b"pdf"
        assert len(drawn[-1].curves) == curves and drawn[-1].log == log
        assert all(len(x) == len(y) == 2 for x, y, _ in drawn[-1].curves)
        assert len({label for _, _, label in drawn[-1].curves}) == curves
    epsilons = drawn[-1].curves[0][1]
    assert math.isnan(epsilons[0]) and epsilons[1] > 1  # a lost value: a gap


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(dp.BackendError, match=r"pip install 'dpopt\[plot\]'"):
        require_matplotlib()
