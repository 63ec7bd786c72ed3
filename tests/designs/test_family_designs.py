"""The best gamma for a D, the paper's ranges, and the three families side by side, to the digits printed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import Enclosure
from dpopt.designing.side_by_side import best_rate, designs, paper_ranges
from dpopt.errors import InputError
from dpopt.family.members import analytic_rate, family_pmf

HERE = Path(__file__).resolve().parent.parent
CURVES: dict[str, Any] = json.loads((HERE / "core" / "delta_curves.json").read_text(encoding="utf-8"))
TARGETED: list[dict[str, Any]] = json.loads((HERE / "proof" / "targeted.json").read_text(encoding="utf-8"))


def assert_printed(found: Enclosure, text: str) -> None:
    """The enclosure is narrow and within one unit of the last digit printed."""
    mantissa, _, exponent = text.partition("e")
    unit = Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    assert found.width <= abs(found.upper) / 10**30
    assert Fraction(text) - unit <= found.lower <= found.upper <= Fraction(text) + unit


@pytest.mark.parametrize("row", CURVES["figure2"], ids=lambda r: f"D{r['D']}-{r['epsilon']}")
def test_figure_2(row: dict[str, Any]) -> None:
    """(29) and (28) at the paper's gamma, and the exact best with its breakpoint."""
    half, epsilon = row["D"], row["epsilon"]
    best, ranges = best_rate(half, epsilon), paper_ranges(epsilon, half)
    assert best.j == row["best_j"] and best.gamma == Fraction(epsilon) / (2 * (half - best.j) - 1)
    assert_printed(best.delta, row["best_delta"])
    assert_printed(ranges.delta[0], row["delta_eq29"])
    assert_printed(ranges.V[0], row["V_eq28"])
    grid = dp.delta(family_pmf(half, Fraction(row["grid_gamma"])), epsilon)
    assert best.delta.upper <= grid.lower and abs(float(grid) / float(row["grid_delta"]) - 1) < 1e-11


@pytest.mark.parametrize("row", CURVES["breakpoint_optimum"], ids=lambda r: f"D{r['D']}-{r['epsilon']}")
def test_breakpoint_optimum(row: dict[str, Any]) -> None:
    """gamma, j, delta and V of the exact optimum."""
    best = best_rate(row["D"], row["epsilon"])
    assert (best.gamma, best.j) == (Fraction(row["gamma"]), row["best_j"])
    assert_printed(best.delta, row["delta"])
    assert_printed(best.V, row["V"])


@pytest.mark.parametrize("row", CURVES["range"], ids=["D11"])
def test_ranges(row: dict[str, Any]) -> None:
    """Equations (23), (25)-(27)."""
    found = paper_ranges(row["epsilon"], row["D"])
    assert found.gamma == (Fraction(row["gamma_low"]), Fraction(row["gamma_high"]))
    assert_printed(found.V[0], row["V_at_gamma_high"])
    assert_printed(found.V[1], row["V_at_gamma_low"])
    assert_printed(found.C[0], row["C_at_gamma_low"])
    assert_printed(found.C[1], row["C_at_gamma_high"])
    assert_printed(found.delta[0], row["delta_at_gamma_high"])
    assert_printed(found.delta[1], row["delta_at_gamma_low"])


@given(st.integers(0, 16), st.fractions(min_value=0, max_value=4, max_denominator=12), st.integers(1, 4))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_best_rate_is_a_fine_grid_search(half: int, epsilon: Fraction, m: int) -> None:
    """No gamma of a grid is better, and gamma attains the value."""
    best = best_rate(half, epsilon, m)
    z = np.arange(-half, half + 1)
    grid = np.concatenate([np.linspace(0, 1.2 * float(epsilon) + 0.1, 4001), np.geomspace(1e-5, 20, 2001)])
    grid = np.append(grid, float(best.gamma))
    p = np.exp(-np.multiply.outer(grid, z * z))
    p /= p.sum(axis=1, keepdims=True)
    moved = np.zeros_like(p)
    if m <= 2 * half:
        moved[:, m:] = p[:, :-m]
    deltas = np.maximum(p - np.exp(float(epsilon)) * moved, 0).sum(axis=1)
    assert deltas.min() >= float(best.delta) * (1 - 1e-10)
    assert deltas[-1] == pytest.approx(float(best.delta), rel=1e-9)


def test_one_best_rate_of_thousands_of_breakpoints() -> None:
    """epsilon = 0.01, D = 3,815: the delta of the proved target, better than both neighbours."""
    best = best_rate(3815, "0.01")
    assert best.gamma == Fraction(1, 100) / (2 * (3815 - best.j) - 1)
    assert float(best.delta) == pytest.approx(9.982809130184609e-13, rel=1e-12)


@pytest.mark.parametrize("row", TARGETED, ids=lambda r: f"{r['family'][:3]}-{r['epsilon']}-{r['target_delta']}")
def test_targeted(row: dict[str, Any]) -> None:
    """D, gamma, V and the delta reached, for the paper's rule and for any pmf; tablebuilder lies between."""
    found = designs(row["epsilon"], row["target_delta"])
    solution = found["any" if row["family"] == "any pmf" else "analytic"]
    assert solution.verified is dp.Verified.OPTIMAL and row["D"] == solution.design.D
    assert float(solution.design.delta) == pytest.approx(float(row["achieved_delta"]), rel=1e-11)
    if "V" in row:
        assert solution.design.gamma == Fraction(row["gamma"])
        assert_printed(Enclosure(solution.design.V, solution.design.V), row["V"])
    widths = [found[family].design.D for family in ("any", "tablebuilder", "analytic")]
    assert widths == sorted(widths)


def test_side_by_side() -> None:
    """A row says what its pmf is; the table prints a line for each family."""
    found = designs("0.7", "1e-2", 2)
    table = found.to_dict()
    assert json.loads(json.dumps(table)) == table
    assert [row["family"] for row in table["designs"]] == ["analytic", "tablebuilder", "any"]
    for row in table["designs"]:
        p = found[row["family"]].pmf.probabilities()
        z = np.arange(-row["D"], row["D"] + 1)
        assert row["V"] == pytest.approx((p * z * z).sum(), rel=1e-12)
        assert row["mean_absolute"] == pytest.approx((p * abs(z)).sum(), rel=1e-12)
        assert row["entropy"] == pytest.approx(-(p * np.log(p)).sum(), rel=1e-12)
        assert row["changed"] == pytest.approx(1 - p[row["D"]], rel=1e-12)
    assert len(str(found).splitlines()) == 4


def test_the_slips_of_the_paper() -> None:
    """(33) with -iota leaves the range (23) and claims too small a delta; with +iota it stays within."""
    epsilon, half, iota = Fraction(1), 11, Fraction(-1, 1000)
    low, high = paper_ranges(epsilon, half).gamma
    assert high == analytic_rate(half, epsilon, 1)
    printed, corrected = high - iota, high + iota
    assert printed > high and low <= corrected < high
    for gamma, claimed, true in ((printed, 3.4678e-4, 3.6678e-4), (corrected, None, None)):
        pmf = family_pmf(half, gamma)
        edge, delta = float(pmf.probability(half)), float(dp.delta(pmf, epsilon))
        assert edge == pytest.approx(claimed or delta, rel=2e-5 if claimed else 1e-30)
        assert delta == pytest.approx(true or edge, rel=2e-5 if true else 1e-30)
    with pytest.raises(InputError, match=r"^delta: must lie strictly between 0 and 1, not 1$"):  # "1 < delta < 1"
        designs(1, 1)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: best_rate(-1, 1), "D: must be at least 0"),
    (lambda: best_rate("1/2", 1), "D: must be an integer"),
    (lambda: best_rate(3, -1), "epsilon: "),
    (lambda: best_rate(3, 1, "1/2"), "sensitivity: must be at least 1"),
    (lambda: paper_ranges(1, 0), "D: must be at least 1"),
    (lambda: designs("x", "1e-3"), "epsilon: must be a number"),
])  # fmt: skip
def test_bad_input(call: Any, message: str) -> None:
    """One line that names the argument."""
    with pytest.raises(InputError, match=f"^{message}"):
        call()
