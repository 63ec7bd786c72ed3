"""Newton's method against closed forms, at its limits, and from a given start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.backends import Claimed, _newton_few, get_backend
from dpopt.backends._newton_few import DIRECT, minimise_dual
from dpopt.backends._newton_rows import DualResult, FewRows
from dpopt.backends.newton import FEW_ROWS, Newton, polish
from dpopt.errors import InputError
from dpopt.program.program import Program

from .programs import INF, linear, max_entropy, stationarity, window_private

P11 = 5.384897705894860e-8
"""The mass at 11 for D = 11, V = 4, to 16 digits, from the root of the variance equation in multiple precision."""


def solve(program: Program, **options: int) -> tuple[Claimed, np.ndarray, np.ndarray, str]:
    claim = Newton().solve(program, options)
    return claim.status, claim.x, claim.y, claim.message


def test_tail_mass_to_ten_digits() -> None:
    program = max_entropy(11, -INF, 4.0)
    status, x, y, _ = solve(program)
    assert status is Claimed.OPTIMAL
    assert x[-1] == pytest.approx(P11, rel=1e-12)
    assert x[0] == pytest.approx(P11, rel=1e-12)
    assert stationarity(program, x, y) < 1e-13
    assert abs(y[1]) < 1e-14
    assert y[2] < 0


def test_known_multiplier() -> None:
    _, x, y, _ = solve(max_entropy(2, -INF, 1.0))
    assert y[2] == pytest.approx(-np.log(6) / 4, rel=1e-14)
    assert x[0] / x[2] == pytest.approx(1 / 6, rel=1e-13)


def test_slack_variance_is_exactly_uniform() -> None:
    status, x, y, message = solve(max_entropy(5, -INF, 11.0))
    assert status is Claimed.OPTIMAL
    assert np.ptp(x) == 0
    assert y[1:].tolist() == [0, 0]
    assert "after 0 steps" in message


def test_tiny_variance() -> None:
    _, x, _, _ = solve(max_entropy(5, -INF, 0.001))
    assert x[5] == pytest.approx(0.999, rel=1e-12)
    assert x[7] == pytest.approx(6.26878755e-14, rel=1e-8)
    ratio = x[6] / x[5]
    assert x[8] / x[5] == pytest.approx(ratio**9, rel=1e-9)


@pytest.mark.parametrize("variance", [1e-2, 1e-6, 1e-10])
def test_variance_far_below_the_square_of_the_reach(variance: float) -> None:
    program = max_entropy(1000, -INF, variance)
    status, x, _, _ = solve(program)
    assert status is Claimed.OPTIMAL
    assert program.rows[[2]] @ x == pytest.approx(variance, rel=1e-12)


@pytest.mark.slow
def test_a_million_points() -> None:
    program = max_entropy(10**6, -INF, 1e10)
    status, x, y, message = solve(program)
    assert status is Claimed.OPTIMAL, message
    assert y[2] == pytest.approx(-0.5e-10, rel=1e-11)  # far from the ends the law is the discrete Gaussian
    assert (program.rows @ x)[2] == pytest.approx(1e10, rel=1e-11)
    assert x.sum() == pytest.approx(1.0, rel=1e-13)
    assert stationarity(program, x, y) < 1e-12
    assert np.isfinite(x).all()


WIDE = DIRECT + 3_001
"""Half-width at which a problem is thinned, and its thinned problem is not."""


def without_zeros(program: Program) -> Program:
    """The program whose sparse rows store no zero, as those of a formulation."""
    rows = program.rows.copy()
    rows.eliminate_zeros()
    return replace(program, rows=rows)


def dual_from_zero(program: Program) -> DualResult:
    """The answer without any thinning."""
    low, high = program.row_lower[1:], program.row_upper[1:]
    with np.errstate(all="ignore"):
        return minimise_dual(FewRows(program.rows.toarray()[1:], low, high, program.cost), np.zeros(low.size), 1000)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("variance", [WIDE**2 / 30, WIDE**2 / 1e4, 2.0, 0.3 * WIDE**2, 1e9])
def test_thinning_changes_nothing(variance: float, gaps: bool) -> None:
    program = max_entropy(WIDE, -INF, variance)
    status, x, y, message = solve(without_zeros(program) if gaps else program)
    plain = dual_from_zero(program)
    assert status is Claimed.OPTIMAL, message
    assert x == pytest.approx(plain.x, rel=1e-11, abs=1e-300)
    assert y[1:] == pytest.approx(plain.y, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("gaps", [False, True])
def test_wide_rows_that_are_not_smooth(gaps: bool) -> None:
    """Parity, noise, one column and every 63rd one: what the thinned problem sees of them is wrong or nothing."""
    k = np.arange(-WIDE, WIDE + 1.0)
    noise = np.random.default_rng(3).standard_normal(k.size)
    every = (np.arange(k.size) % 63 == 31) * 1.0
    extra = [(k % 2, 0.3, 0.3), (noise, 0.2, 0.25), ((k == 5) * 1.0, 0.1, 0.1), (every, -INF, 0.01)]
    program = max_entropy(WIDE, -INF, WIDE**2 / 40, extra=extra)
    program = without_zeros(program) if gaps else program
    status, x, y, message = solve(program)
    assert status is Claimed.OPTIMAL, message
    assert (program.rows @ x)[[0, 2, 3, 4, 5, 6]] == pytest.approx([1, WIDE**2 / 40, 0.3, 0.2, 0.1, 0.01], rel=1e-10)
    assert stationarity(program, x, y) < 1e-11


def test_one_wide_row_that_the_thinned_problem_calls_infeasible() -> None:
    program = max_entropy(WIDE, -INF, INF, extra=[((np.arange(-WIDE, WIDE + 1) == 7) * 1.0, 0.25, 0.25)])
    status, x, _, message = solve(program)
    assert status is Claimed.OPTIMAL, message
    assert x[WIDE + 7] == pytest.approx(0.25, rel=1e-12)


def test_wide_rows_that_no_pmf_satisfies() -> None:
    status, x, _, message = solve(max_entropy(WIDE, -INF, INF, mean=WIDE + 0.1))
    assert status is Claimed.INFEASIBLE, message
    assert x.size == 0


def test_wide_with_forbidden_columns_cost_and_another_mass() -> None:
    k = np.arange(-WIDE, WIDE + 1.0)
    program = max_entropy(WIDE, -INF, WIDE**2 / 30)
    upper = np.where(k % 3 == 0, 0.0, INF)
    program = replace(
        program, upper=upper, cost=np.cos(k / 500), row_lower=3 * program.row_lower, row_upper=3 * program.row_upper
    )
    claim = Newton().solve(program, {})
    assert claim.status is Claimed.OPTIMAL, claim.message
    assert np.all(claim.x[upper == 0] == 0)
    assert program.rows @ claim.x == pytest.approx([3, 0, WIDE**2 / 10], rel=1e-11, abs=1e-8)
    assert stationarity(program, claim.x, claim.y) < 1e-12
    assert claim.objective == pytest.approx(program.objective(claim.x), rel=1e-13)


def test_rows_that_are_neither_sorted_nor_unique() -> None:
    program = max_entropy(4, -INF, 2.0)
    _, x, _, _ = solve(program)
    flat = program.rows.tocoo()
    row, column = (np.repeat(index[::-1], 2) for index in flat.coords)
    order = np.argsort(row, kind="stable")
    starts = np.searchsorted(row[order], np.arange(4))
    data = np.repeat(flat.data[::-1] / 2, 2)[order]
    messy = sp.csr_array((data, column[order], starts), shape=program.rows.shape)
    assert not messy.has_canonical_format
    _, same, _, _ = solve(replace(program, rows=messy))
    assert same == pytest.approx(x, rel=1e-14)
    assert messy.nnz == 2 * flat.nnz


def test_the_thinned_multipliers_of_smooth_rows_need_one_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the time at a million points depends on; and a polish of an answer is one evaluation as well."""
    program = without_zeros(max_entropy(50_000, -INF, 50_000**2 / 100))
    widths: list[int] = []
    once = _newton_few._pass

    def counted(problem: FewRows, y: np.ndarray, side: np.ndarray) -> object:
        widths.append(problem.cost.size)
        return once(problem, y, side)

    monkeypatch.setattr(_newton_few, "_pass", counted)
    claim = Newton().solve(program, {})
    assert claim.status is Claimed.OPTIMAL
    assert widths.count(100_001) == 1
    widths.clear()
    x, y = polish(program, claim.y)
    assert widths == [100_001]
    assert np.array_equal(x, claim.x)
    assert np.array_equal(y, claim.y)


def test_boundary_stops_with_finite_numbers() -> None:
    status, x, y, message = solve(max_entropy(1, 1.0, 1.0))
    assert status is Claimed.INACCURATE
    assert x == pytest.approx([0.5, 0, 0.5], abs=1e-15)
    assert np.isfinite(y).all()
    assert "boundary" in message


@pytest.mark.parametrize(
    ("reach", "low", "high", "mean"),
    [(3, 9.5, 9.5, 0.0), (3, -INF, -1.0, 0.0), (10, -INF, 4.0, 9.99), (1000, -INF, INF, 1000.1), (5, 0.2, 0.2, 0.5)],
)
def test_infeasible_rows_end(reach: int, low: float, high: float, mean: float) -> None:
    status, x, _, message = solve(max_entropy(reach, low, high, mean=mean))
    assert status is Claimed.INFEASIBLE, message
    assert x.size == 0


def test_two_sided_redundant_and_empty_rows() -> None:
    k = np.arange(-10, 11.0)
    fourth = (k**4, 30.0, 38.0)
    extra = [fourth, ((k == 0) * 1.0, 0.3, 0.4), fourth, (np.abs(k), -INF, INF), (0 * k, -1.0, 1.0)]
    program = max_entropy(10, -INF, 4.0, extra=extra)
    status, x, y, message = solve(program)
    assert status is Claimed.OPTIMAL, message
    activity = program.rows @ x
    assert np.all(activity >= program.row_lower - 1e-10)
    assert np.all(activity <= program.row_upper + 1e-10)
    assert np.all((y[2:] >= 0) | (np.abs(activity - program.row_upper) < 1e-9)[2:])
    assert stationarity(program, x, y) < 1e-12
    assert y[6:].tolist() == [0, 0]


@settings(max_examples=60, deadline=None)
@given(
    reach=st.integers(2, 60),
    share=st.floats(0.01, 0.99),
    lean=st.floats(-0.8, 0.8),
    price=st.floats(0, 2),
)
def test_random_pmfs_are_found_again(reach: int, share: float, lean: float, price: float) -> None:
    """Backwards: a pmf of the family determines its own mean and second moment, and must be the answer to them."""
    k = np.arange(-reach, reach + 1.0)
    theta = lean * k / reach - share * k * k / reach
    pmf = np.exp(theta - theta.max())
    pmf /= pmf.sum()
    program = max_entropy(reach, float(k * k @ pmf), float(k * k @ pmf), mean=float(k @ pmf))
    program = replace(program, cost=price * np.abs(k))
    with_cost = np.exp(theta - price * np.abs(k))
    with_cost /= with_cost.sum()
    program.row_lower[1:] = program.row_upper[1:] = program.rows[[1, 2]] @ with_cost
    status, x, y, message = solve(program)
    assert status is Claimed.OPTIMAL, message
    assert x == pytest.approx(with_cost, rel=1e-7)
    assert y[2] == pytest.approx(-share / reach, rel=1e-6, abs=1e-9)


def test_mass_and_its_coefficient_may_be_any_positive_numbers() -> None:
    plain = max_entropy(4, -INF, 2.0)
    scaled = replace(plain, rows=plain.rows.copy(), row_lower=3 * plain.row_lower, row_upper=3 * plain.row_upper)
    scaled.rows.data[: scaled.cost.size] = 2.0
    scaled.row_lower[0] = scaled.row_upper[0] = 6.0
    _, x, y, _ = solve(plain)
    _, x3, y3, _ = solve(scaled)
    assert x3 == pytest.approx(3 * x, rel=1e-13)
    assert y3[2] == pytest.approx(y[2], rel=1e-12)
    assert stationarity(scaled, x3, y3) < 1e-13


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"entropy": np.r_[2.0, np.ones(6)]}, "weight 1"),
        ({"lower": np.full(7, 0.01)}, "lower bound 0"),
        ({"upper": np.full(7, 0.3)}, "upper bounds below the mass"),
        ({"integer": np.ones(7, dtype=bool)}, "integer"),
        ({"blocks": ()}, "exactly one mass row"),
        ({"upper": np.full(7, -1.0)}, "lower bound 0"),
        ({"entropy": np.zeros(7)}, "entropy objectives"),
    ],
)
def test_what_is_not_supported_says_why(change: dict[str, object], reason: str) -> None:
    support = Newton().supports(replace(max_entropy(3, -INF, 1.0), **change))  # type: ignore[arg-type]
    assert not support.supported
    assert reason in support.reason


def test_bad_iteration_limit() -> None:
    with pytest.raises(InputError, match="options.iterations: must be at least 1"):
        Newton().solve(max_entropy(3, -INF, 1.0), {"iterations": 0})
    status, x, _, message = solve(max_entropy(50, -INF, 0.5), iterations=2)
    assert (status, x.size) == (Claimed.ERROR, 0)
    assert "limit" in message


def test_polish_improves_the_multipliers_of_any_backend() -> None:
    program = max_entropy(11, -INF, 4.0)
    rough = get_backend("cvxpy").solve(program, {"tolerance": 1e-6})
    x, y = polish(program, rough.y)
    assert x[-1] == pytest.approx(P11, rel=1e-12)
    assert abs(rough.x[-1] / P11 - 1) > 1e-9
    assert stationarity(program, x, y) < 1e-13


@pytest.mark.parametrize("start", [np.zeros(3), np.array([1e3, -5.0, 7.0]), np.array([np.nan, 0.1, -np.inf])])
def test_polish_from_poor_starts(start: np.ndarray) -> None:
    x, _ = polish(max_entropy(11, -INF, 4.0), start)
    assert x[-1] == pytest.approx(P11, rel=1e-12)


def test_polish_without_steps_belongs_to_its_multipliers() -> None:
    program = max_entropy(11, -INF, 4.0)
    x, y = polish(program, np.array([0.0, 0.0, -0.1]), iterations=0)
    assert y[2] == -0.1
    assert stationarity(program, x, y) < 1e-13


def test_polish_refuses() -> None:
    with pytest.raises(InputError, match="program: cannot be polished: .*entropy objectives"):
        polish(linear([1, 1], [[1, 1]], [(1, 1)]), np.zeros(1))
    with pytest.raises(InputError, match=r"y: must have one multiplier a row, shape \(3,\), not \(2,\)"):
        polish(max_entropy(2, -INF, 1.0), np.zeros(2))
    with pytest.raises(InputError, match=f"can have {FEW_ROWS} rows"):
        polish(window_private(40, 10.0, 0.5), np.zeros(163))


@pytest.mark.slow
@pytest.mark.parametrize(("reach", "second_moment", "epsilon"), [(30, 10.0, 0.5), (60, 3.0, 1.0), (400, 3.0, 1.0)])
def test_many_ratio_rows(reach: int, second_moment: float, epsilon: float) -> None:
    program = window_private(reach, second_moment, epsilon)
    status, x, y, message = solve(program)
    assert status is Claimed.OPTIMAL, message
    k = np.arange(-reach, reach + 1.0)
    assert np.max(np.abs(np.diff(np.log(x)))) <= epsilon * (1 + 1e-9)
    assert k * k @ x == pytest.approx(second_moment, rel=1e-9)
    assert np.all(y[2:] <= 0)
    assert stationarity(program, x, y) < 1e-9
    assert x == pytest.approx(x[::-1], rel=1e-6)


def test_many_equalities_are_left_to_others() -> None:
    program = window_private(60, 10.0, 0.5)
    program.row_lower[3:60] = program.row_upper[3:60]
    support = Newton().supports(program)
    assert not support.supported
    assert "at most 50 equalities, not 59" in support.reason


@pytest.mark.slow
def test_many_infeasible_rows_end_without_a_point() -> None:
    status, x, _, _ = solve(window_private(30, 0.1, 0.5))
    assert status in (Claimed.ERROR, Claimed.INFEASIBLE)
    assert x.size == 0
