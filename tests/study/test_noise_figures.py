"""The noise paper's figures: closed forms, reference values, files on the curves, drawing, and the command."""

from __future__ import annotations

import csv
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt as dp
from dpopt.cli import main
from dpopt.plot import draw
from dpopt.study.figure_table import Figure, input_text, number_text
from dpopt.study.noise_figures import (
    optimal_noise,
    optimal_noise_for_inputs,
    pmfs_of_exponential_noise,
    pmfs_of_gaussian_noise,
    pmfs_of_laplace_and_uniform_noise,
    pmfs_of_staircase_noise,
    private_noises,
    proved_optimum,
    shipped_problems,
    wasserstein_against_epsilon,
    wasserstein_against_sensitivity,
)
from dpopt.study.noise_simulation import simulated_wasserstein
from dpopt.study.utility import optimum_beside_relaxation

ROOT = Path(__file__).parents[2]
REFERENCE: dict[str, Any] = json.loads((ROOT / "tests" / "values" / "reference.json").read_text(encoding="utf-8"))
COLUMNS = {
    "optimal": "w1_optimal",
    "Laplace": "w1_laplace",
    "staircase 5": "w1_staircase_5",
    "staircase 20": "w1_staircase_20",
}


def law(table: dict[str, Any]) -> dp.Distribution:
    return getattr(dp, table["type"])(**{key: value for key, value in table.items() if key != "type"})


# --- Figs. 1, 2, 3, 5 ------------------------------------------------------------------------------------------------


def test_figure_1_is_the_normal_law_rounded() -> None:
    figure = pmfs_of_gaussian_noise([1, "2.5"], reach=12)
    assert figure.columns == ("noise", "sd = 1", "sd = 2.5")
    for name, sd in (("sd = 1", 1), ("sd = 2.5", 2.5)):
        for k, mass in zip(figure.column("noise"), figure.column(name), strict=True):
            near, far = ((abs(k) + side) / (sd * math.sqrt(2)) for side in (-0.5, 0.5))
            assert mass == pytest.approx((math.erfc(near) - math.erfc(far)) / 2, rel=1e-12)


def test_figure_2_has_the_reference_masses_and_the_zeros() -> None:
    figure = pmfs_of_laplace_and_uniform_noise()
    noise = figure.column("noise")
    laplace = dict(zip(noise, figure.column("Laplace, scale 7.5"), strict=True))
    assert laplace[0] == pytest.approx(0.0644930149683822623, rel=1e-15)
    assert laplace[1] == laplace[-1] == pytest.approx(0.0583881159768179395, rel=1e-15)
    uniform = dict(zip(noise, figure.column("uniform on -10..10"), strict=True))
    assert uniform[-10] == uniform[10] == 1 / 21 and uniform[11] == uniform[-11] == 0


def test_figure_3_has_the_reference_heights() -> None:
    figure = pmfs_of_staircase_noise()
    peaks = {5: 0.051147014251477286483, 20: 0.022094220236149638386}
    for (width, peak), name in zip(peaks.items(), figure.columns[1:], strict=True):
        masses = dict(zip(figure.column("noise"), figure.column(name), strict=True))
        height = math.exp(-2 / math.ceil(15 / width))
        assert name == f"a = {width}, rho = {height:.6f}"
        for k, mass in masses.items():
            assert mass == pytest.approx(peak * height ** (abs(k) // width), rel=1e-14)


def test_figure_5_has_no_mass_below_0() -> None:
    figure = pmfs_of_exponential_noise(["0.1", 1], reach=9)
    for name, rate in (("eta = 0.1", 0.1), ("eta = 1", 1)):
        for k, mass in zip(figure.column("noise"), figure.column(name), strict=True):
            assert mass == (pytest.approx((1 - math.exp(-rate)) * math.exp(-rate * k), rel=1e-14) if k >= 0 else 0)


# --- Figs. 6 and 7 ---------------------------------------------------------------------------------------------------


def staircase(epsilon: float, reach: int, r: int, k: int) -> float:
    """P_r of Geng and Viswanath at k, from its closed form."""
    b = math.exp(-epsilon)
    peak = (1 - b) / (2 * r + 2 * b * (reach - r) - (1 - b))
    blocks, place = divmod(abs(k), reach)
    return peak * b ** (blocks + (place >= r))


@pytest.mark.parametrize("epsilon", ["1.5", "2", "3", "4"])
def test_figure_6_is_a_staircase_of_its_own_width(epsilon: str) -> None:
    """The optimum and P2's noise, both from closed forms with the widths of the reference table."""
    row = next(
        r
        for r in REFERENCE["wasserstein"]
        if (r["input"].get("sd"), r["epsilon"], r["sensitivity"], r["support"]) == ("5", epsilon, 15, "all integers")
    )
    figure = optimal_noise(law(row["input"]), epsilon=epsilon, reach=40)
    for name, r in (("optimal", row["r_optimal"]), ("least E|Z|", row["r_min_abs"])):
        for k, mass in zip(figure.column("noise"), figure.column(name), strict=True):
            assert mass == pytest.approx(staircase(float(epsilon), 15, r, k), rel=1e-6)


def test_figure_7_shows_both_inputs() -> None:
    figure = optimal_noise_for_inputs(reach=30)
    for name in ("gaussian(0, 5)", "poisson(10)"):
        for k, mass in zip(figure.column("noise"), figure.column(name), strict=True):
            assert mass == pytest.approx(staircase(2, 15, 5, k), rel=1e-6)
    wide = optimal_noise_for_inputs([dp.gaussian(0, 5), dp.poisson(10)], epsilon=1, reach=7)
    # the reference widths are 7 and 6
    assert [wide.column(name)[7 + 6] < wide.column(name)[7] / 2 for name in wide.columns[1:]] == [False, True]


def test_an_optimum_that_is_not_proved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpopt.study.noise_figures.Verified", type("V", (), {"OPTIMAL": "something else"}))
    with pytest.raises(
        dp.NotVerifiedError, match=r"no optimum was proved for poisson\(3\), epsilon = 1, sensitivity 2"
    ):
        proved_optimum(dp.poisson(3), 1, 2)


# --- Figs. 8 and 9 ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "poisson"])
def test_figures_8_and_9_hold_the_reference_values(kind: str) -> None:
    """Every row of the reference group for this input, all four mechanisms, to its ten digits."""
    rows = [r for r in REFERENCE["wasserstein"] if r["input"]["type"] == kind and r["support"] == "all integers"]
    rows = [r for r in rows if r["input"].get("sd", "5") == "5" and r["input"].get("rate", "10") == "10"]
    against_epsilon = [r for r in rows if r["sensitivity"] == 15]
    against_sensitivity = [r for r in rows if r["epsilon"] == "2"]
    assert len(against_epsilon) >= 5 and len(against_sensitivity) >= 6
    inputs = [law(rows[0]["input"])]
    figures = [
        (wasserstein_against_epsilon([r["epsilon"] for r in against_epsilon], inputs=inputs), against_epsilon),
        (
            wasserstein_against_sensitivity([r["sensitivity"] for r in against_sensitivity], inputs=inputs),
            against_sensitivity,
        ),
    ]
    compared = 0
    for figure, wanted in figures:
        assert set(figure.column("input")) == {input_text(inputs[0])}
        for name, key in COLUMNS.items():
            for found, row in zip(figure.column(name), wanted, strict=True):
                if key in row:
                    assert abs(found - float(row[key])) <= 2e-9, (name, row)
                    compared += 1
        assert all(0 <= gap <= 1e-7 for gap in figure.column("gap"))
    assert compared >= 35


@pytest.mark.slow
def test_the_shipped_figures_have_the_shape_that_the_paper_describes() -> None:
    """W1 falls with epsilon and rises with m; the optimum is never beaten; stairs of 20 are flat up to m = 20."""
    for figure, falls in ((wasserstein_against_epsilon(), True), (wasserstein_against_sensitivity(), False)):
        for panel in figure.panels:
            ((column, value),) = panel.only
            rows = [row for row in figure.rows if row[figure.columns.index(column)] == value]
            curves = {name: [row[figure.columns.index(name)] for row in rows] for name in panel.y}
            assert len(rows) >= 10
            for curve in curves.values():
                ordered = curve if falls else curve[::-1]
                assert all(a >= b - 1e-12 for a, b in zip(ordered, ordered[1:], strict=False))
            for name in panel.y[1:]:
                assert all(best < other for best, other in zip(curves["optimal"], curves[name], strict=True))
    flat = figure.column("staircase 20")[:13]
    assert figure.column("sensitivity")[:13].index(21) == 10
    assert len(set(flat[:10])) == 1 and flat[10] > 1.8 * flat[9]


def test_the_compared_noises_are_private() -> None:
    for epsilon, reach in (("0.5", 15), (2, 21)):
        for pmf in private_noises(epsilon, reach, (3, 20)).values():
            assert dp.epsilon(pmf, 0, reach).upper <= Fraction(epsilon) + Fraction(1, 1 << 60)


# --- problem files ---------------------------------------------------------------------------------------------------


def test_the_problem_files_are_the_figures_problems() -> None:
    folder = ROOT / "problems" / "figures"
    shipped = shipped_problems()
    assert {path.stem for path in folder.glob("noise-*.toml")} == set(shipped)
    for stem, problem in shipped.items():
        assert dp.load(folder / f"{stem}.toml") == problem
        assert (folder / f"{stem}.toml").read_text(encoding="utf-8").startswith("# ")
    eight = wasserstein_against_epsilon([4])
    nine = wasserstein_against_sensitivity([30])
    for figure, stem in ((eight, "noise-8"), (nine, "noise-9")):
        for kind, value in zip(("gaussian", "poisson"), figure.column("optimal"), strict=True):
            assert float(dp.solve(dp.load(folder / f"{stem}-{kind}.toml")).value) == pytest.approx(value, rel=1e-9)


# --- tables, drawing, the command ------------------------------------------------------------------------------------


def small_figures() -> list[Figure]:
    return [
        pmfs_of_gaussian_noise(reach=2),
        pmfs_of_laplace_and_uniform_noise(reach=2),
        pmfs_of_staircase_noise(reach=2),
        pmfs_of_exponential_noise(reach=2),
        optimal_noise(dp.poisson(3), epsilon=1, sensitivity=2, reach=2),
        optimal_noise_for_inputs([dp.poisson(3)], epsilon=1, sensitivity=2, reach=2),
        wasserstein_against_epsilon([1, 2], sensitivity=2, inputs=[dp.poisson(3), dp.point(0)], widths=[1]),
        wasserstein_against_sensitivity([1, 2], inputs=[dp.poisson(3)], widths=[1]),
        simulated_wasserstein([(1, 2), (2, 2)], input=dp.poisson(3), size=50, runs=5, bins=3),
        optimum_beside_relaxation(dp.poisson(3), epsilon=1, sensitivity=2, half_width=6),
    ]


def test_a_noise_figure_is_a_table_that_can_be_drawn(drawn) -> None:
    curves = {"noise-6": 2, "noise-7": 1, "noise-8": 6, "noise-9": 3, "noise-10": 8, "noise-programs": 3}
    for figure in small_figures():
        assert json.loads(json.dumps(figure.to_dict(), allow_nan=False))["rows"] == [list(row) for row in figure.rows]
        assert all(len(row) == len(figure.columns) for row in figure.rows)
        for panel in figure.panels:
            assert {panel.x, *panel.y, *(column for column, _ in panel.only)} <= set(figure.columns)
        assert draw(figure, "svg") == b"svg"
        found = drawn[-1]
        assert len(found.curves) == curves.get(figure.name, len(figure.columns) - 1)
        assert all(len(x) == len(y) >= 2 and None not in x for x, y, _ in found.curves)
        assert (" ".join(found.title.split())) == figure.title
        steps = {drawstyle for _, drawstyle in found.styles}
        assert steps == ({"steps-mid"} if figure.panels[0].steps else {""})
    assert all(style in "os^x+" for style, _ in drawn[-1].styles)  # programs are names: nothing lies between them
    eight = drawn[6]
    assert [x for x, _, _ in eight.curves] == [[1.0, 2.0]] * 6 and eight.curves[0][1] != eight.curves[3][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("noise-1", 31, 4),
        ("noise-2", 31, 5),
        ("noise-3", 121, 3),
        ("noise-5", 36, 4),
        ("noise-6", 121, 3),
        ("noise-7", 121, 3),
        ("noise-8", 24, 7),
        ("noise-9", 26, 7),
        ("noise-10 --runs 3 --size 20", 96, 8),
        ("noise-programs", 5, 8),
    ],
)
def test_the_command(name: str, rows: int, columns: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figure.csv"
    assert main(["figure", *name.split(), "--csv", str(path)]) == 0
    shown = capsys.readouterr()
    assert (len(shown.out.splitlines()), shown.err) == (rows + 4, "")
    with path.open(newline="", encoding="utf-8") as file:
        written = list(csv.reader(file))
    assert len(written) == rows + 1 and {len(row) for row in written} == {columns}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("noise-4", "NAME: must be one of 1, 2, keys, noise-1, "),
        ("noise-8 --runs 5", "--runs: is for noise-10, not for noise-8"),
        ("1 --size 5", "--size: is for noise-10, not for 1"),
        ("noise-10 --runs 0", "runs: must be at least 1, not 0"),
        ("noise-10 --size 0", "size: must be at least 1, not 0"),
    ],
)
def test_the_command_refuses(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", *words.split()]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(f"dpopt: error: {message}")


@pytest.mark.parametrize(
    ("make", "location"),
    [
        (lambda: pmfs_of_gaussian_noise([]), "deviations"),
        (lambda: pmfs_of_gaussian_noise("12"), "deviations"),
        (lambda: pmfs_of_gaussian_noise([0]), "sd"),
        (lambda: pmfs_of_gaussian_noise(reach=0), "reach"),
        (lambda: pmfs_of_laplace_and_uniform_noise(half_widths=[-1]), "half_widths[0]"),
        (lambda: pmfs_of_exponential_noise(["x"]), "rates[0]"),
        (lambda: wasserstein_against_epsilon([]), "epsilons"),
        (lambda: wasserstein_against_epsilon([0], inputs=[dp.point(0)]), "epsilon"),
        (lambda: wasserstein_against_sensitivity([1], widths=[0], inputs=[dp.point(0)]), "widths[0]"),
        (lambda: optimum_beside_relaxation(half_width=-1), "half_width"),
    ],
)
def test_bad_arguments(make: Any, location: str) -> None:
    with pytest.raises(dp.InputError) as caught:
        make()
    assert caught.value.location == location


def test_names_of_inputs_and_numbers() -> None:
    assert input_text(dp.table(2, [1, 0, 3])) == "table on 2..4"
    assert input_text(dp.Pmf(-1, (1, 2))) == "pmf on -1..0"
    assert [number_text(value) for value in (15, "0.25", "1/3", 1e-6)] == ["15", "0.25", "1/3", "1e-06"]
