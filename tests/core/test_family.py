"""The TableBuilder family: delta of the ideal member against exact pmfs, and breakpoints against a fine grid."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.arithmetic import exp_enclosure
from dpopt.errors import InputError
from dpopt.family.members import analytic_rate, breakpoints, delta_exceeds, family_pmf, worst_tail
from dpopt.privacy.divergence import worst_hockey_stick

from .series import decimal, gauss_weights

CURVES: dict[str, Any] = json.loads((Path(__file__).parent / "delta_curves.json").read_text(encoding="utf-8"))
epsilons = st.fractions(min_value=0, max_value=4, max_denominator=20)
rates = st.fractions(min_value=0, max_value=2, max_denominator=60)


def float_delta(half: int, gamma: Any, epsilon: float, m: int) -> Any:
    """delta in floats by its definition, vectorised over gamma."""
    z = np.arange(-half, half + 1)
    p = np.exp(-np.multiply.outer(np.asarray(gamma, dtype=float), z * z))
    p /= p.sum(axis=-1, keepdims=True)
    moved = np.zeros_like(p)
    if m < 2 * half + 1:
        moved[..., m:] = p[..., :-m]
    return np.maximum(p - math.exp(epsilon) * moved, 0).sum(axis=-1)


def unit(text: str) -> Fraction:
    """One unit of the last digit printed."""
    mantissa, _, exponent = text.partition("e")
    return Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


@given(st.integers(0, 9), rates, epsilons, st.integers(1, 5))
@settings(derandomize=True, max_examples=120, deadline=None)
def test_delta_exceeds_is_the_delta_of_the_exact_pmf(half: int, gamma: Fraction, epsilon: Fraction, m: int) -> None:
    """All shifts up to m of a pmf from decimal exponentials: just below its delta the answer is yes, above no."""
    exact = worst_hockey_stick(gauss_weights(half, gamma), exp_enclosure(epsilon, 300).lower, m)
    room = Fraction(1, 10**40)
    assert not delta_exceeds(half, gamma, epsilon, m, exact + room)
    if exact > room:
        assert delta_exceeds(half, gamma, epsilon, m, exact - room)


@given(st.integers(0, 12), rates)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_canonical_weights(half: int, gamma: Fraction) -> None:
    """Nearest integers to 2^bits e^(-gamma z^2), 128 significant bits at the edge: recomputed in 120-digit decimals."""
    pmf = family_pmf(half, gamma)
    assert (pmf.start, pmf.end) == (-half, half) and pmf.is_symmetric
    unit_weight = pmf.weights[half]
    assert unit_weight & (unit_weight - 1) == 0
    assert pmf.weights[0].bit_length() >= 128
    with localcontext() as context:
        context.prec = 120
        for z in range(half + 1):
            ideal = Decimal(unit_weight) * (-decimal(gamma) * z * z).exp()
            assert abs(pmf.weights[half + z] - ideal) <= Decimal("0.5") + ideal * Decimal("1e-110")


def test_too_steep_a_member_is_refused() -> None:
    """Weights of more bits than could be handled are refused in words."""
    with pytest.raises(InputError, match=r"^gamma: = 10 with D = 100 needs weights of \d+ bits"):
        family_pmf(100, Fraction(10))


@pytest.mark.parametrize(("half", "epsilon", "m"), [
    (1, "1", 1), (3, "0.3", 1), (6, "1", 1), (11, "0.5", 1), (11, "1", 1), (8, "2", 2), (6, "1", 3), (9, "0.7", 4),
    (5, "1", 5), (4, "0.5", 3),
])  # fmt: skip
def test_breakpoints_hold_the_optimum(half: int, epsilon: str, m: int) -> None:
    """No gamma of a fine grid has a smaller delta than the best breakpoint."""
    value = Fraction(epsilon)
    points = breakpoints(half, value, m)
    assert points == sorted(set(points)) and points[0] == 0
    best = min(float_delta(half, float(g), float(value), m) for g in points)
    grid = np.concatenate([np.linspace(0, 1.2 * float(points[-1]), 60_001), np.geomspace(1e-6, 20, 20_001)])
    assert best <= float_delta(half, grid, float(value), m).min() * (1 + 1e-12)


def test_breakpoints_at_epsilon_zero() -> None:
    """Only the uniform pmf is left: delta = p(0) falls as gamma does."""
    assert breakpoints(7, Fraction(0), 2) == [0]
    assert not delta_exceeds(7, Fraction(0), Fraction(0), 1, Fraction(1, 15))
    assert delta_exceeds(7, Fraction(0), Fraction(0), 1, Fraction(1, 15) - Fraction(1, 10**30))
    assert delta_exceeds(7, Fraction(1, 1000), Fraction(0), 1, Fraction(1, 15))


@pytest.mark.parametrize("row", CURVES["figure2"], ids=lambda r: f"D{r['D']}-{r['epsilon']}")
def test_figure_2(row: dict[str, Any]) -> None:
    """The paper's figure: delta and V of its rule, the best of its grid, the exact best, to the digits printed."""
    half, epsilon = row["D"], Fraction(row["epsilon"])
    gamma = analytic_rate(half, epsilon, 1)
    assert gamma == epsilon / (2 * half - 1)
    assert_delta(half, gamma, epsilon, row["delta_eq29"])
    assert abs(family_pmf(half, gamma).variance - Fraction(row["V_eq28"])) <= unit(row["V_eq28"])
    assert_delta(half, Fraction(row["grid_gamma"]), epsilon, row["grid_delta"])
    grid = np.arange(1, 3001) / 10_000
    assert grid[float_delta(half, grid, float(epsilon), 1).argmin()] == pytest.approx(
        float(row["grid_gamma"]), abs=1e-9
    )
    best = epsilon / (2 * (half - row["best_j"]) - 1)
    assert best in breakpoints(half, epsilon, 1)
    assert_delta(half, best, epsilon, row["best_delta"])
    for other in breakpoints(half, epsilon, 1):
        assert delta_exceeds(half, other, epsilon, 1, Fraction(row["best_delta"]) - 2 * unit(row["best_delta"]))


def assert_delta(half: int, gamma: Fraction, epsilon: Fraction, text: str) -> None:
    """The ideal member's delta is the number printed, to one unit of its last digit."""
    assert delta_exceeds(half, gamma, epsilon, 1, Fraction(text) - unit(text))
    assert not delta_exceeds(half, gamma, epsilon, 1, Fraction(text) + unit(text))


@pytest.mark.parametrize("row", CURVES["breakpoint_optimum"], ids=lambda r: f"D{r['D']}-{r['epsilon']}")
def test_breakpoint_optimum(row: dict[str, Any]) -> None:
    """The exact best over gamma for D = 5 and 10."""
    half, epsilon, gamma = row["D"], Fraction(row["epsilon"]), Fraction(row["gamma"])
    assert gamma == epsilon / (2 * (half - row["best_j"]) - 1)
    assert_delta(half, gamma, epsilon, row["delta"])
    assert abs(family_pmf(half, gamma).variance - Fraction(row["V"])) <= unit(row["V"])
    deltas = {
        g: worst_hockey_stick(family_pmf(half, g), exp_enclosure(epsilon).lower, 1)
        for g in breakpoints(half, epsilon, 1)
    }
    assert min(deltas, key=deltas.__getitem__) == gamma


@pytest.mark.parametrize("row", CURVES["range"], ids=["D11"])
def test_ranges(row: dict[str, Any]) -> None:
    """Both ends of the ranges (23) and (25)-(27) of the paper."""
    half, epsilon = row["D"], Fraction(row["epsilon"])
    for side in ("low", "high"):
        gamma = Fraction(row[f"gamma_{side}"])
        assert_delta(half, gamma, epsilon, row[f"delta_at_gamma_{side}"])
        pmf = family_pmf(half, gamma)
        assert abs(pmf.variance - Fraction(row[f"V_at_gamma_{side}"])) <= unit(row[f"V_at_gamma_{side}"])
        assert abs(pmf.probability(0) - Fraction(row[f"C_at_gamma_{side}"])) <= unit(row[f"C_at_gamma_{side}"])


@given(st.integers(0, 9), rates, epsilons, st.integers(1, 6))
@settings(derandomize=True, max_examples=100, deadline=None)
def test_worst_tail_by_search(half: int, gamma: Fraction, epsilon: Fraction, m: int) -> None:
    """The least z with p(z) > e^epsilon p(z + m), point by point: gamma (m^2 + 2 m z) > epsilon, or z + m outside."""
    wanted = next(z for z in range(-half, half + 1) if z + m > half or gamma * (m * m + 2 * m * z) > epsilon)
    assert worst_tail(half, gamma, epsilon, m) == wanted


def test_the_analytic_rule() -> None:
    """epsilon / (m (2D - m)), and nothing where the support is not wider than the shift."""
    assert analytic_rate(18, Fraction(1), 1) == Fraction(1, 35)
    assert analytic_rate(5, Fraction(2), 3) == Fraction(2, 21)
    assert analytic_rate(1, Fraction(1), 2) is None
    assert analytic_rate(0, Fraction(1), 1) is None
