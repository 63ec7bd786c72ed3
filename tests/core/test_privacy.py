"""Privacy guarantees by brute force over long windows, by closed forms, and against the reference curves."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import exp_enclosure, log_enclosure
from dpopt.errors import InputError
from dpopt.pmf import Pmf, Tails
from dpopt.privacy.divergence import hockey_stick, worst_hockey_stick
from dpopt.privacy.ratios import largest_ratio
from dpopt.privacy.shifts import lattice_shift

from .series import decimal, exp_between, gauss_weights, laws, written_out

CURVES: dict[str, Any] = json.loads((Path(__file__).parent / "delta_curves.json").read_text(encoding="utf-8"))
bounded = settings(derandomize=True, max_examples=80, deadline=None)
shifts = st.integers(1, 9)
factors = st.fractions(min_value=1, max_value=9, max_denominator=7)
HALF = Fraction(1, 2)


def geometric(r: Fraction) -> Pmf:
    """p(k) proportional to r^|k|."""
    return Pmf(0, (1,), tails=Tails(1, r, r))


def unit(text: str) -> Fraction:
    """One unit of the last digit that a reference value prints."""
    mantissa, _, exponent = text.partition("e")
    return Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


# --- by brute force --------------------------------------------------------------------------------------------------


@given(laws(), shifts)
@bounded
def test_largest_ratio_is_the_largest_of_all_pairs(pmf: Pmf, shift: int) -> None:
    """All pairs of a window much longer than core, period and shift; a zero beside a mass is infinite."""
    blocks = 40
    explicit = written_out(pmf, blocks)
    low, high = pmf.start - 3 * shift - 8, pmf.end + 3 * shift + 8
    best: Fraction | None = Fraction(1)
    for i in range(low, high + 1):
        for j in range(i - shift, i + shift + 1):
            a, b = explicit.get(i, Fraction(0)), explicit.get(j, Fraction(0))
            if a > 0 and b == 0:
                best = None
            elif best is not None and b > 0:
                best = max(best, a / b)
    numerator, denominator = largest_ratio(pmf, shift)
    assert (None if denominator == 0 else Fraction(numerator, denominator)) == best


@pytest.mark.slow
@given(laws(longest=5), shifts, st.integers(0, 4), st.integers(0, 4))
@bounded
def test_largest_ratio_inside_a_window(pmf: Pmf, shift: int, left: int, right: int) -> None:
    """With a window only pairs inside it count; points of it without mass count as zeros."""
    first, last = pmf.start - left, pmf.end + right
    weights = [pmf.weight(k) for k in range(first, last + 1)]
    pairs = [(a, b) for i, a in enumerate(weights) for j, b in enumerate(weights) if abs(i - j) <= shift]
    if pmf.tails is not None:
        first, last = pmf.start, pmf.end  # tail weights inside a window are no integers; the core alone is
        pairs = [(a, b) for i, a in enumerate(pmf.weights) for j, b in enumerate(pmf.weights) if abs(i - j) <= shift]
    infinite = any(a > 0 and b == 0 for a, b in pairs)
    numerator, denominator = largest_ratio(pmf, shift, window=(first, last))
    assert (denominator == 0) == infinite
    if not infinite:
        assert Fraction(numerator, denominator) == max([Fraction(a, b) for a, b in pairs if b], default=Fraction(1))


@given(laws(), st.integers(-9, 9).filter(bool), factors)
@bounded
def test_hockey_stick_is_the_limit_of_long_sums(pmf: Pmf, shift: int, factor: Fraction) -> None:
    """Sum of (p(k) - E p(k - s))+ over 150 periods: what is left is at most the mass beyond them."""
    explicit = written_out(pmf, 150)
    window = range(min(explicit) - abs(shift), max(explicit) + 1 - abs(shift))
    if pmf.tails is not None:
        window = range(min(explicit) + abs(shift), max(explicit) + 1 - abs(shift))
        if pmf.tails.left is None:
            window = range(pmf.start, window.stop)
        if pmf.tails.right is None:
            window = range(window.start, pmf.end + 1)
    else:
        window = range(pmf.start, pmf.end + 1)
    zero = Fraction(0)
    total = sum((max(explicit.get(k, zero) - factor * explicit.get(k - shift, zero), zero) for k in window), zero)
    found = hockey_stick(pmf, factor, shift)
    assert 0 <= found - total / pmf.total <= Fraction(1, 2**100)
    assert 0 <= found <= 1


@given(laws(longest=4), st.integers(1, 5), factors)
@bounded
def test_the_worst_shift_is_the_worst_of_all(pmf: Pmf, shift: int, factor: Fraction) -> None:
    """Every shift, both directions; the flag of symmetry must not hide the worse one."""
    every = [hockey_stick(pmf, factor, s) for s in range(-shift, shift + 1) if s]
    assert worst_hockey_stick(pmf, factor, shift) == max(every)


@given(laws(tails=False, longest=7), st.integers(1, 9), factors)
@bounded
def test_finite_divergence_is_the_largest_over_events(pmf: Pmf, shift: int, factor: Fraction) -> None:
    """The definition itself: the largest of P(Z + s in S) - E P(Z in S) over all 2^n events."""
    for s in (shift, -shift):
        points = range(min(pmf.start, pmf.start + s), max(pmf.end, pmf.end + s) + 1)
        gains = [pmf.probability(k) - factor * pmf.probability(k - s) for k in points]
        best = Fraction(0)
        for mask in range(1 << min(len(gains), 8)):
            part = sum((g for i, g in enumerate(gains[:8]) if mask >> i & 1), Fraction(0))
            best = max(best, part)
        best += sum((max(g, Fraction(0)) for g in gains[8:]), Fraction(0))
        assert hockey_stick(pmf, factor, s) == best


# --- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, "0.5", 1, 20, 700])
@pytest.mark.parametrize(("sensitivity", "wanted"), [(1, "1/10"), (3, "3/10"), ("3.9", "3/10"), (10, 1), (12, 1)])
def test_uniform_on_ten_points(epsilon: Any, sensitivity: Any, wanted: str) -> None:
    """min(m / N, 1) at every epsilon, exactly."""
    low, high = dp.delta(Pmf(3, (1,) * 10), epsilon, sensitivity)
    assert low == high == Fraction(wanted)


@pytest.mark.parametrize("epsilon", [0, "0.05", "0.5", 1, 30])
@pytest.mark.parametrize("m", [1, 5])
def test_one_sided_exponential(epsilon: Any, m: int) -> None:
    """P(k) = (1 - r) r^k for k >= 0: delta is 1 - r^m at every epsilon, since m outputs are new to one neighbour.

    Both directions: above the gap the ratio is r^-m in the other one, which adds nothing where it stays below it.
    """
    r = 1 / exp_enclosure(Fraction(1, 10)).upper
    for pmf in (Pmf(0, (1,), tails=Tails(1, right=r)), Pmf(5, (7,), tails=Tails(1, left=r))):
        low, high = dp.delta(pmf, epsilon, m)
        assert low <= 1 - r**m <= high
        assert high - low <= Fraction(1, 2**100)
        assert float(high) == pytest.approx(1 - math.exp(-m / 10), rel=1e-15)


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("r", ["1/2", "4/5"])
def test_two_sided_geometric(r: str, m: int) -> None:
    """Pure DP at epsilon = m ln(1/r); at epsilon = 0 the total variation distance (1 - r^ceil.. by its own sum)."""
    q = Fraction(r)
    pmf = geometric(q)
    numerator, denominator = largest_ratio(pmf, m)
    assert Fraction(numerator, denominator) == 1 / q**m
    low, high = dp.epsilon(pmf, 0, m)
    assert low <= high and float(low) == pytest.approx(-m * math.log(q), rel=1e-15)
    assert dp.delta(pmf, high, m).upper == 0
    # mass above m/2 minus mass above -m/2: P(Z in (-m/2, m/2]) is the distance of the law and its shift by m
    distance = sum((pmf.probability(k) for k in range(-((m - 1) // 2), m // 2 + 1)), Fraction(0))
    if m % 2:
        assert dp.delta(pmf, 0, m) == (distance, distance)


def test_even_shift_at_epsilon_zero() -> None:
    """m = 2, ratio 1/2: P(Z >= 1) - P(Z >= 3) ... = P(Z in {0, 1}) = 1/2 by hand."""
    assert dp.delta(geometric(HALF), 0, 2).upper == HALF


def test_delta_one_and_zero() -> None:
    """A point mass hides nothing at any epsilon; a law wide enough hides everything at its own epsilon."""
    assert dp.delta(dp.point(0), 700) == (1, 1)
    assert dp.epsilon(dp.point(0), 1) == (0, 0)
    assert dp.epsilon(geometric(HALF), 1) == (0, 0)
    for tiny in (0, "1/1000000"):
        assert dp.delta(geometric(HALF), Fraction(7, 10) + Fraction(tiny)).upper == 0
    assert dp.delta(geometric(HALF), Fraction(69, 100)).lower > 0


def test_huge_epsilon() -> None:
    """At epsilon = 700 of a finite law only the outermost mass is left, exactly."""
    pmf = Pmf(-2, (1, 50, 10**6, 50, 2))
    assert dp.delta(pmf, 700).upper == dp.delta(pmf, 700).lower == Fraction(2, 10**6 + 103)
    with pytest.raises(InputError, match=r"^epsilon: must be at most 700"):
        dp.delta(pmf, 701)


def test_a_zero_inside() -> None:
    """A hole is as bad as an edge: the mass beside it is what no epsilon hides. The tails beyond are no edge."""
    pmf = Pmf(0, (3, 0, 5), tails=Tails(1, HALF, HALF))
    assert largest_ratio(pmf, 1)[1] == 0
    worst = Fraction(5, 16)
    assert dp.delta(pmf, 100) == (worst, worst)
    with pytest.raises(InputError, match=r"^delta: must be at least 0\.3125: that mass has a zero"):
        dp.epsilon(pmf, "0.3")
    low, high = dp.epsilon(pmf, "0.35")
    assert high > 0 and dp.delta(pmf, high).upper <= Fraction(35, 100)
    assert low == 0 or dp.delta(pmf, low - Fraction(1, 1 << 50)).lower > Fraction(35, 100)


def test_zeros_all_along_a_tail() -> None:
    """Mass on even points only: one neighbour never sees the other's outputs, and no delta below 1 is reached."""
    pmf = Pmf(0, (1, 0), tails=Tails(2, right=HALF))
    assert dp.delta(pmf, 600) == (1, 1)
    with pytest.raises(InputError, match=r"^delta: must be at least 1: that mass has a zero"):
        dp.epsilon(pmf, HALF)


# --- the reference curves --------------------------------------------------------------------------------------------


def curve_pmf(row: dict[str, Any]) -> Pmf:
    """The pmf of a curve row, from decimal exponentials at the row's gamma."""
    gamma = row.get("gamma")
    if gamma is None:
        (gamma,) = [g["gamma"] for g in CURVES["gamma"] if (g["D"], g["V"]) == (row["D"], row["V"])]
    return gauss_weights(row["D"], Fraction(gamma))


@pytest.mark.parametrize(
    "row", CURVES["curve"], ids=lambda r: f"D{r['D']}-{r.get('V', 'g')}-{r['sensitivity']}-{r['epsilon']}"
)
def test_reference_curve(row: dict[str, Any]) -> None:
    """delta(epsilon) of the TableBuilder pmfs, to the digits printed."""
    low, high = dp.delta(curve_pmf(row), row["epsilon"], row["sensitivity"])
    assert low <= high <= low + Fraction(1, 2**110)
    wanted = Fraction(row["delta"])
    assert abs(high - wanted) <= unit(row["delta"]) + wanted / 10**15  # gamma itself has 22 digits


@pytest.mark.parametrize("row", CURVES["plateau_start"], ids=lambda r: f"D{r['D']}-{r['V']}")
def test_plateau(row: dict[str, Any]) -> None:
    """From (2D - 1) gamma on, delta stays at p(D); just before it is larger."""
    pmf, start = curve_pmf(row), Fraction(row["epsilon"])
    end = pmf.probability(row["D"])
    assert dp.delta(pmf, start + Fraction(1, 10**12)) == (end, end)
    assert dp.delta(pmf, start - Fraction(1, 10**6)).lower > end


# --- epsilon(delta) as the inverse -----------------------------------------------------------------------------------


@given(laws(), st.integers(1, 4), st.fractions(min_value=0, max_value=1, max_denominator=200))
@bounded
def test_epsilon_inverts_delta(pmf: Pmf, m: int, wanted: Fraction) -> None:
    """At the upper end the law is (epsilon, delta)-DP, just below the lower end it is not; at most 2^-40 wide."""
    try:
        low, high = dp.epsilon(pmf, wanted, m)
    except InputError as error:
        assert error.location == "delta"
        assert dp.delta(pmf, 700, m).lower > wanted or (wanted == 0 and largest_ratio(pmf, m)[1] == 0)
        return
    assert 0 <= low <= high <= low + Fraction(1, 1 << 40)
    assert dp.delta(pmf, high, m).upper <= wanted
    if low > 0:
        below = max(low - Fraction(1, 1 << 50), Fraction(0))
        assert dp.delta(pmf, below, m).lower > wanted


@given(laws(), st.integers(1, 4), st.fractions(min_value=0, max_value=6, max_denominator=50))
@bounded
def test_delta_falls_with_epsilon_and_grows_with_sensitivity(pmf: Pmf, m: int, value: Fraction) -> None:
    """Monotone both ways, and between 0 and 1."""
    low, high = dp.delta(pmf, value, m)
    assert 0 <= low <= high <= 1
    assert dp.delta(pmf, value + HALF, m).upper <= high
    assert dp.delta(pmf, value, m + 1).upper >= high


def test_epsilon_of_steep_tails() -> None:
    """A ratio of 2^-2000 has epsilon 2000 ln 2 = 1386.3; asking for a little delta as well must not cost more."""
    steep = geometric(Fraction(1, 1 << 2000))
    assert float(dp.epsilon(steep, 0)) == pytest.approx(2000 * math.log(2), rel=1e-12)
    low, high = dp.epsilon(steep, Fraction(1, 1 << 3000))
    assert 0 <= low <= high <= dp.epsilon(steep, 0).upper


def test_the_lower_end_of_epsilon_is_proved() -> None:
    """The true epsilon ln(R) lies below 1 by less than the enclosure of e^1 can tell: the lower end must not be 1."""
    ratio = exp_enclosure(Fraction(1), 256).lower
    pmf = Pmf(-1, (ratio.denominator, ratio.numerator, ratio.denominator))
    truth = log_enclosure(ratio, 400)  # delta is p(1) from epsilon = ln(ratio) on
    assert truth.upper < 1
    low, high = dp.epsilon(pmf, pmf.probability(1))
    assert low <= truth.upper and truth.lower <= high


def test_enclosures_of_delta_by_a_second_method() -> None:
    """Staircase, m = 3: e^epsilon between two Taylor sums gives the same delta."""
    pmf = Pmf(-2, (2, 2, 5, 2, 2), tails=Tails(3, Fraction(2, 5), Fraction(2, 5)))
    below, above = exp_between(Fraction(1, 3), 300)
    for m in (1, 2, 3, 7):
        low, high = dp.delta(pmf, "1/3", m)
        assert low <= worst_hockey_stick(pmf, above, m) <= worst_hockey_stick(pmf, below, m) <= high


def test_log_concave_laws_have_their_worst_event_in_a_tail() -> None:
    """max over t of P(Z >= t) - e^epsilon P(Z >= t + m), in 120-digit decimals, at m = 1, 2, 4."""
    pmf = gauss_weights(9, Fraction(1, 12))
    with localcontext() as context:
        context.prec = 60
        p = [decimal(pmf.probability(k)) for k in range(-9, 10)]
        for m in (1, 2, 4):
            e = Decimal(1).exp()
            wanted = max(sum(p[t:]) - e * sum(p[t + m :]) for t in range(19))
            assert abs(decimal(dp.delta(pmf, 1, m).upper) - wanted) <= Decimal("1e-35")


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("build", "message"), [
    (lambda p: dp.delta(p, -1), "epsilon: must be at least 0, not -1"),
    (lambda p: dp.delta(p, math.nan), "epsilon: must be finite"),
    (lambda p: dp.delta(p, 1, 0), "sensitivity: must be positive, not 0"),
    (lambda p: dp.delta(p, 1, "0.5"), "sensitivity: must be at least the lattice step 1"),
    (lambda p: dp.epsilon(p, -1), "delta: must lie between 0 and 1, not -1"),
    (lambda p: dp.epsilon(p, "1.5"), "delta: must lie between 0 and 1, not 3/2"),
    (lambda p: dp.epsilon(p, 0), "delta: must be at least 0.25"),
    (lambda p: dp.epsilon(p, "0.2"), "delta: must be at least 0.25"),
    (lambda p: dp.epsilon(p, "0.2", "x"), "sensitivity: must be a number"),
])  # fmt: skip
def test_what_is_wrong_is_said(build: Callable[[Pmf], Any], message: str) -> None:
    """Wrong signs and sizes, and a delta that no epsilon reaches."""
    with pytest.raises(InputError) as caught:
        build(Pmf(-1, (1, 2, 1)))
    assert str(caught.value).startswith(message)


def test_lattice_steps() -> None:
    """A sensitivity in data units is floor(m / step) steps."""
    assert [lattice_shift(m, Fraction(1, 4)) for m in (1, "0.25", "0.49", "0.5", 2.3)] == [4, 1, 1, 2, 9]
    fine, coarse = Pmf(-1, (1, 2, 1), step="1/2"), Pmf(-1, (1, 2, 1))
    assert dp.delta(fine, 1, "1/2") == dp.delta(coarse, 1, 1)
    assert dp.delta(fine, 1, 1) == dp.delta(coarse, 1, 2)
    assert dp.delta(fine, 1, "0.99") == dp.delta(fine, 1, "0.5")


def test_anything_with_a_pmf_is_measured() -> None:
    """A named law and a solution stand for their pmf."""
    assert dp.delta(dp.uniform(0, 9), 1).upper == Fraction(1, 10)
    solution = dp.solve(dp.tablebuilder(D=3, V=5))
    assert dp.delta(solution, 1) == dp.delta(solution.pmf, 1)
    assert dp.epsilon(solution, "0.5") == dp.epsilon(solution.pmf, "0.5")
