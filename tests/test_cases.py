"""Cases that break other tools: small inputs, the behaviour that is right, and why each is here.

The labels (S1, L1, ...) number the cases by subject: S solving p-table rows, L linear programs, P shapes, T tiny
numbers, D diagnosis, M state, R refusals. "Other tools" are the published ones in which the case was seen to fail.
"""

from __future__ import annotations

import copy
import logging
import math
import pickle
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpopt as dp
from dpopt.backends.registry import get_backend
from dpopt.program.formulate import core_for, formulate

ABSOLUTE = dp.MinExpectedCost("absolute")
OPTIMAL, INFEASIBLE, FEASIBLE, FAILED = (
    dp.Verified.OPTIMAL, dp.Verified.INFEASIBLE, dp.Verified.FEASIBLE, dp.Verified.FAILED,
)  # fmt: skip
LP_BACKENDS = ("highs", "scipy", "pulp", "cvxpy")


def row(low: object, high: object, variance: object, *extra: dp.Constraint, step: object = 1) -> dp.Problem:
    """Max entropy on [low, high] with mean 0 and exactly this variance: a row of a p-table."""
    return dp.Problem(
        support=dp.Lattice(step, low, high),
        objective=dp.MaxEntropy(),
        constraints=[dp.Mean(0), dp.Variance(variance), *extra],
    )


def proved(problem: dp.Problem, backend: str = "auto", **options: Any) -> dp.Solution:
    """The solution, which has to be verified optimal."""
    solution = dp.solve(problem, backend, options=options or None)
    assert solution.verified is OPTIMAL, solution.message
    assert all(check.holds for check in solution.checks)
    return solution


def family(points: Sequence[Fraction], mean: Fraction, variance: Fraction) -> list[Decimal]:
    """The max-entropy pmf p ~ exp(-a z - b z^2) with this mean and variance, in 60-digit decimals.

    A second method: Newton on the two moments in plain decimal arithmetic, with damping, nothing of the package.
    """
    with localcontext() as context:
        context.prec = 60
        zs = [Decimal(z.numerator) / Decimal(z.denominator) for z in points]
        wanted = [Decimal(v.numerator) / Decimal(v.denominator) for v in (mean, variance + mean * mean)]
        a, b = Decimal(0), Decimal(0)

        def state(a: Decimal, b: Decimal) -> tuple[list[Decimal], Decimal, list[Decimal]]:
            exponents = [-a * z - b * z * z for z in zs]
            top = max(exponents)
            weights = [(e - top).exp() for e in exponents]
            total = sum(weights)
            p = [w / total for w in weights]
            moments = [sum(q * z**n for q, z in zip(p, zs, strict=True)) for n in range(1, 5)]
            return p, top + total.ln() + a * wanted[0] + b * wanted[1], moments

        for _ in range(400):
            p, value, m = state(a, b)
            g = (m[0] - wanted[0], m[1] - wanted[1])
            if max(abs(g[0]), abs(g[1])) < Decimal(10) ** -50:
                return p
            c11, c12, c22 = m[1] - m[0] ** 2, m[2] - m[0] * m[1], m[3] - m[1] ** 2
            determinant = c11 * c22 - c12 * c12
            da, db = (c22 * g[0] - c12 * g[1]) / determinant, (c11 * g[1] - c12 * g[0]) / determinant
            step = Decimal(1)
            while state(a + step * da, b + step * db)[1] > value + Decimal(10) ** -52:
                step /= 2
            a, b = a + step * da, b + step * db
    raise AssertionError("the decimal Newton iteration did not converge")


def assert_family(solution: dp.Solution, variance: object) -> None:
    """Every mass of a row, however small, to 1e-9 relative of the decimal computation."""
    pmf = solution.pmf
    points = [k * pmf.step for k in range(pmf.start, pmf.end + 1)]
    for k, wanted in zip(range(pmf.start, pmf.end + 1), family(points, Fraction(0), Fraction(variance)), strict=True):
        assert abs(pmf.probability(k) / Fraction(wanted) - 1) <= Fraction(1, 10**9), (k, float(wanted))


# --- S: rows of p-tables ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", [1, 5, 8])
def test_s1_magnitude_rows_on_halves(i: int) -> None:
    """Step 1/2, D = 8: converges everywhere, mean and variance exact, tails below 1e-8 kept (one tool never ended)."""
    solution = proved(row(-i, 8, 1, step="1/2"))
    assert solution.pmf.step == Fraction(1, 2)
    assert solution.pmf.mean == 0
    assert solution.pmf.variance == 1
    assert_family(solution, 1)
    if i == 8:
        assert 0 < solution.pmf.probability(solution.pmf.end) < Fraction(1, 10**13)


def test_s2_row_has_its_whole_variance() -> None:
    """D = 2, V = 1, count 1: variance 1 exactly (another tool returns 0.93188 without a word)."""
    pmf = proved(row(-1, 2, 1)).pmf
    assert pmf.variance == 1
    for k, digits in zip(
        range(-1, 3), (".398064711138", ".305805866585", ".194194133415", ".101935288862"), strict=True
    ):
        assert abs(pmf.probability(k) - Fraction(digits)) <= Fraction(1, 10**12)


@pytest.mark.parametrize("shape", [
    dp.Expectation(of={"table": {"-1": -1, "0": 1}, "outside": 0}, at_least=0), dp.Unimodal(),
], ids=["left-monotone", "unimodal"])  # fmt: skip
def test_s2_shape_when_it_is_asked_for(shape: dp.Constraint) -> None:
    """With p(-1) <= p(0) asked for, three tight equations leave (3/8, 3/8, 1/8, 1/8)."""
    pmf = proved(row(-1, 2, 1, shape)).pmf
    for k, wanted in zip(range(-1, 3), (3, 3, 1, 1), strict=True):
        assert abs(pmf.probability(k) - Fraction(wanted, 8)) <= Fraction(1, 10**9)


def test_s3_too_large_a_variance() -> None:
    """D = 2: the largest variance with mean 0 on [-1, 2] is 2; beyond it a conflict is named."""
    boundary = proved(row(-1, 2, 2)).pmf
    assert [boundary.probability(k) for k in range(-1, 3)] == [Fraction(2, 3), 0, 0, Fraction(1, 3)]
    for variance in ("2.0001", "5"):
        solution = dp.solve(row(-1, 2, variance))
        assert solution.verified is INFEASIBLE
        assert "variance" in solution.conflict
        assert "'variance'" in solution.message


@pytest.mark.parametrize(("half", "variance"), [(15, 3), (20, 4), (3, "1.2345"), (3, "1.2"), (5, "0.001")])
def test_s8_s9_s13_symmetric_rows(half: int, variance: object) -> None:
    """Thin tails, an underflowing Hessian (V = 0.001) and an awkward decimal: quick, exact, no floor on the tail."""
    solution = proved(row(-half, half, variance))
    assert solution.pmf.mean == 0
    assert solution.pmf.variance == Fraction(variance)
    assert_family(solution, variance)
    assert solution.timings["solve"] < 2  # other tools need seconds or never end; this takes milliseconds


def test_s9_masses() -> None:
    """The published digits of the V = 0.001 row, down to 3e-83."""
    pmf = proved(row(-5, 5, "0.001")).pmf
    for k, digits in ((0, "0.999"), (1, "0.000499999999749"), (2, "6.26878755001e-14"), (5, "3.05265964507e-83")):
        for side in (k, -k):
            assert float(pmf.probability(side)) == pytest.approx(float(digits), rel=1e-11)


def test_s10_lower_end_of_the_variance() -> None:
    """js = 1, D = 2, count 1: V = 1 is solved on the boundary (1/2, 1/2), V = 0.999 is infeasible."""
    pmf = proved(row(-1, 2, 1, dp.Forbidden([0]))).pmf
    assert [pmf.probability(k) for k in range(-1, 3)] == [Fraction(1, 2), 0, Fraction(1, 2), 0]
    solution = dp.solve(row(-1, 2, "0.999", dp.Forbidden([0])))
    assert solution.verified is INFEASIBLE
    assert {"variance", "forbidden"} <= set(solution.conflict)


@pytest.mark.parametrize(("variance", "masses"), [
    ("1/2", ("1/4", "1/2", "1/4")), (1, ("1/2", 0, "1/2")), ("2/3", ("1/3", "1/3", "1/3")),
])  # fmt: skip
def test_s12_three_points(variance: object, masses: tuple[object, ...]) -> None:
    """D = 1 in closed form, the boundary V = 1 with an exact zero in the middle."""
    pmf = proved(row(-1, 1, variance)).pmf
    for k, wanted in zip((-1, 0, 1), masses, strict=True):
        assert abs(pmf.probability(k) - Fraction(wanted)) <= Fraction(1, 10**12)
    if variance == 1:
        assert pmf.probability(0) == 0


@pytest.mark.parametrize("half", [0, 3])
def test_s14_no_variance_is_a_point_mass(half: int) -> None:
    """V = 0: all mass at 0, exactly."""
    solution = dp.solve(dp.tablebuilder(D=half, V=0))
    assert solution.verified in (OPTIMAL, FEASIBLE)
    assert solution.pmf.probability(0) == 1
    assert solution.value.upper <= Fraction(1, 10**12)


@pytest.mark.parametrize(("argument", "value"), [
    ("V", -1), ("V", math.inf), ("V", math.nan), ("V", "two"), ("V", [1, 1, 2]), ("V", None), ("V", True), ("V", "1/0"),
    ("D", -2), ("D", 2.01), ("D", True), ("D", "x"), ("D", None), ("D", math.nan), ("D", [2]),
])  # fmt: skip
def test_s14_wrong_arguments(argument: str, value: object) -> None:
    """Every wrong type or sign is an error that begins with the argument's name and says what was found."""
    arguments = {"D": 2, "V": 1, argument: value}
    with pytest.raises(dp.InputError) as caught:
        dp.tablebuilder(**arguments)
    assert str(caught.value).startswith(f"{argument}: ")
    assert "\n" not in str(caught.value)


def test_s14_strings_are_numbers() -> None:
    """ "2" and 2.0 are two, a decimal string is what it says: one problem, not three."""
    assert dp.tablebuilder(D="2", V="1") == dp.tablebuilder(D=2, V=1) == dp.tablebuilder(D=2.0, V=1.0)
    assert dp.tablebuilder(D=2, V=0.1) == dp.tablebuilder(D=2, V="1/10")


# --- L: linear programs ----------------------------------------------------------------------------------------------


def window(half: int, sensitivity: int, epsilon: object = 1) -> dp.Problem:
    """Least E|Z| on [-half, half] with interior rows only."""
    return dp.Problem(
        support=dp.Integers(-half, half),
        objective=ABSOLUTE,
        constraints=[dp.PureDP(epsilon, sensitivity, boundary="window")],
    )


def assert_private_inside(pmf: dp.Pmf, sensitivity: int, epsilon: int = 1) -> None:
    """Every interior pair by cross-multiplication: no zero beside a mass, no ratio above e^epsilon (Taylor series)."""
    factor = sum(Fraction(epsilon**n, math.factorial(n)) for n in range(60)) + Fraction(1, 10**40)
    weights = pmf.weights
    assert min(weights) > 0
    for shift in range(1, sensitivity + 1):
        for a, b in zip(weights, weights[shift:], strict=False):
            assert a <= factor * b
            assert b <= factor * a


def truncated_staircase(half: int, sensitivity: int, epsilon: int = 1) -> float:
    """The window optimum in closed form: the best staircase, cut at the window (agrees with the reference values)."""
    best = math.inf
    for width in range(1, sensitivity + 1):
        levels = [k // sensitivity + (k % sensitivity >= width) for k in range(half + 1)]
        masses = [math.exp(-epsilon * level) for level in levels]
        cost = 2 * math.fsum(k * mass for k, mass in enumerate(masses))
        best = min(best, cost / (2 * math.fsum(masses) - masses[0]))
    return best


@pytest.mark.parametrize("backend", LP_BACKENDS)
@pytest.mark.parametrize(("half", "sensitivity", "text"), [
    (50, 1, "0.85091812823932"), (50, 5, "4.784246959019"), (50, 15, "12.712296153646"),
])  # fmt: skip
def test_l1_window_programs(half: int, sensitivity: int, text: str, backend: str) -> None:
    """Programs whose raw answers have infinite epsilon from every solver: private here, and no better than possible."""
    solution = dp.solve(window(half, sensitivity), backend)
    assert solution.claimed in (dp.Claimed.OPTIMAL, dp.Claimed.INACCURATE)
    assert solution.verified in (OPTIMAL, FEASIBLE), solution.message
    assert_private_inside(solution.pmf, sensitivity)
    wanted = Fraction(text)
    assert truncated_staircase(half, sensitivity) == pytest.approx(float(text), rel=1e-13)
    assert solution.value.lower >= wanted * (1 - Fraction(1, 10**13))
    assert solution.value.upper <= wanted * (1 + Fraction(1, 10**6))
    assert solution.bound is not None and solution.bound <= wanted * (1 + Fraction(1, 10**13))


@pytest.mark.slow
def test_l1_zeros_beside_masses_at_800() -> None:
    """[-800, 800], sensitivity 15: the raw claim of the unreduced program has zeros beside masses and is too cheap."""
    question = window(800, 15)
    program = formulate(question, core_for(question)).program
    raw = get_backend("highs").solve(program, {})
    masses = raw.x[:1601]
    assert raw.status is dp.Claimed.OPTIMAL
    beside = (masses[:-15] <= 0) & (masses[15:] > 0) | (masses[15:] <= 0) & (masses[:-15] > 0)
    assert beside.any(), "the case has lost its point: the raw claim is private"
    solution = proved(question, "highs")
    assert_private_inside(solution.pmf, 15)
    assert len(solution.pmf.weights) == 1601
    truth = truncated_staircase(800, 15)
    assert raw.objective < truth - 1e-7, "the raw claim is better than any private pmf can be"
    assert float(solution.bound) <= truth * (1 + 1e-14)
    assert float(solution.value) == pytest.approx(truth, rel=1e-9)
    assert float(solution.value) >= truth * (1 - 1e-14)
    assert solution.repair is not None


def test_l1_sensitivity_1_at_800() -> None:
    """[-800, 800], sensitivity 1: masses down to e^-800, beyond every float, are part of the answer."""
    solution = proved(window(800, 1))
    assert_private_inside(solution.pmf, 1)
    assert float(solution.value) == pytest.approx(truncated_staircase(800, 1), rel=1e-9)
    assert 0 < solution.pmf.probability(800) < Fraction(1, 10**340)


def test_l9_unknown_options_are_errors() -> None:
    """An option that a solver does not have is refused by name, not dropped; so is one of the wrong type."""
    with pytest.raises(dp.InputError, match=r"options\.feasibility"):
        dp.solve(window(5, 1), "highs", options={"feasibility": 1e-12})
    for backend in LP_BACKENDS:
        name = next(iter(get_backend(backend).options))
        with pytest.raises(dp.InputError, match=rf"options\.{name}"):
            dp.solve(window(5, 1), backend, options={name: object()})


@pytest.mark.parametrize("backend", LP_BACKENDS)
def test_l11_who_answered_is_in_the_result(backend: str) -> None:
    """Backend, reason, version and the tolerances in force are part of the solution."""
    solution = dp.solve(window(5, 1), backend)
    assert solution.backend == backend
    assert solution.backend_reason
    assert any(c.isdigit() for c in solution.solver_version)
    assert solution.tolerances
    assert all(isinstance(v, float | int) for v in solution.tolerances.values())


def test_l12_degenerate_problems() -> None:
    """One point, no constraint, a constant objective: answered or proved infeasible, never "optimal" by accident."""
    for problem in (
        dp.Problem(support=dp.Integers(0, 0), objective=dp.MaxEntropy()),
        dp.Problem(support=dp.Integers(7, 7), objective=ABSOLUTE),
        dp.Problem(support=dp.Integers(-3, 3), objective=ABSOLUTE),
        dp.Problem(support=dp.Integers(0, 0), objective=ABSOLUTE, constraints=[dp.Mean(0), dp.SecondMoment(0)]),
    ):
        solution = proved(problem)
        assert sum(solution.pmf.probability(k) for k in range(-10, 11)) == 1
    off = dp.solve(dp.Problem(support=dp.Integers(2, 2), objective=dp.MaxEntropy(), constraints=[dp.Mean(0)]))
    assert (off.verified, off.conflict) == (INFEASIBLE, ("mean",))
    all_forbidden = dp.Problem(support=dp.Integers(0, 1), objective=ABSOLUTE, constraints=[dp.Forbidden([0, 1])])
    solution = dp.solve(all_forbidden)
    assert (solution.verified, solution.conflict) == (INFEASIBLE, ("forbidden",))


def test_l12_constant_objective() -> None:
    """A constant cost has its constant as value and bound."""
    solution = proved(dp.Problem(objective=dp.MinExpectedCost({"polynomial": [3]}), constraints=[dp.PureDP(1, 2)]))
    assert solution.value.lower == solution.value.upper == 3
    assert 0 <= 3 - solution.bound <= Fraction(1, 10**60)


# --- P: shapes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("i", "free"), [(1, ".339500640692"), (2, ".391499619708"), (3, ".398214587627")])
def test_p1_stay_probability_equals_and_at_least(i: int, free: str) -> None:
    """D = 3, V = 1, 0.2: "equals" binds in every row, "at least" is inactive in every row (it was once mixed up)."""
    pinned = proved(row(-i, 3, 1, dp.Probability("0.2", of=[0])))
    assert pinned.pmf.probability(0) == Fraction(1, 5)
    at_least = proved(row(-i, 3, 1, dp.Probability(of=[0], at_least="0.2")))
    assert abs(at_least.pmf.probability(0) - Fraction(free)) <= Fraction(1, 10**12)
    assert abs(at_least.pmf.probability(0) - proved(row(-i, 3, 1)).pmf.probability(0)) <= Fraction(1, 10**12)
    assert pinned.value.upper < at_least.value.lower


@pytest.mark.parametrize(("i", "largest"), [(1, "4/5"), (2, "9/10"), (3, "14/15"), (4, "19/20"), (5, "24/25")])
def test_p2_largest_stay_probability(i: int, largest: str) -> None:
    """D = 5, V = 1: the largest P(Z = 0) is 1 - 1/(5 i); 0.97 is refused in every row instead of silently missed."""
    constraints = [dp.Mean(0), dp.Variance(1)]
    cheapest = proved(
        dp.Problem(support=dp.Integers(-i, 5), objective=dp.MinExpectedCost("error"), constraints=constraints)
    )
    assert abs(cheapest.pmf.probability(0) - Fraction(largest)) <= Fraction(1, 10**12)
    assert abs(1 - cheapest.bound - Fraction(largest)) <= Fraction(1, 10**12)
    too_much = dp.solve(row(-i, 5, 1, dp.Probability(of=[0], at_least="0.97")))
    assert too_much.verified is INFEASIBLE
    assert "probability" in too_much.conflict


def test_p4_p5_populated_cells_need_a_bias() -> None:
    """D = 3, V = 1, no move to 0: impossible with mean 0, possible once the mean may be off by a stated amount."""
    stay_populated = dp.Forbidden([-1])
    impossible = dp.solve(row(-1, 3, 1, stay_populated))
    assert (impossible.verified, set(impossible.conflict)) == (INFEASIBLE, {"mean", "variance", "forbidden"})
    biased = dp.Problem(
        support=dp.Integers(-1, 3),
        objective=dp.MaxEntropy(),
        constraints=[dp.Mean(at_least="-2/3", at_most="2/3"), dp.SecondMoment(1), stay_populated],
    )
    pmf = proved(biased).pmf
    assert pmf.probability(-1) == 0
    assert pmf.mean <= Fraction(2, 3)


@pytest.mark.parametrize(("monotone", "text"), [(False, "1.03255211"), (True, "1.07101507")])
def test_p6_monotone_only_when_asked(monotone: bool, text: str) -> None:
    """(1, 0.2) at sensitivity 2: the optimum is not monotone, and monotone noise is 3.7 % dearer."""
    shape = [dp.Unimodal()] if monotone else []
    question = dp.Problem(
        support=dp.Integers(-20, 20), objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "0.2", 2), *shape]
    )
    solution = proved(question)
    assert abs(solution.value.upper - Fraction(text)) <= Fraction(1, 10**8)
    assert (solution.pmf.probability(2) <= solution.pmf.probability(1)) is monotone


@pytest.mark.parametrize(("shape", "largest"), [("unimodal", Fraction(4, 3)), ("left", Fraction(12, 7))])
def test_p7_two_shapes_two_variances(shape: str, largest: Fraction) -> None:
    """D = 3, count 1: unimodal allows V up to (D+1)/3, monotone on the left only V up to D(D+1)/(2D+1)."""
    left = dp.Expectation(of={"table": {"-1": -1, "0": 1}, "outside": 0}, at_least=0)
    constraint = dp.Unimodal() if shape == "unimodal" else left

    def with_variance(value: Fraction) -> dp.Problem:
        return dp.Problem(
            support=dp.Integers(-1, 3),
            objective=ABSOLUTE,
            constraints=[dp.Mean(0), dp.Variance(value), constraint],
        )

    proved(with_variance(largest))
    beyond = dp.solve(with_variance(largest + Fraction(1, 10**4)))
    assert beyond.verified is INFEASIBLE
    assert constraint.type in beyond.conflict


# --- T: tiny numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["1e-8", "1e-10", "1e8"])
def test_t2_scaled_objectives(scale: str) -> None:
    """The objective times 1e-8: other layers return 6.00 for 0.85 after unscaling. Value and bound scale exactly."""
    factor = Fraction(scale)
    table = {str(z): factor * abs(z) for z in range(-50, 51)}
    finite = dp.Problem(
        support=dp.Integers(-50, 50),
        objective=dp.MinExpectedCost({"table": table}),
        constraints=[dp.PureDP(1, 1, boundary="window")],
    )
    infinite = dp.Problem(objective=dp.MinExpectedCost({"polynomial": [0, 0, factor]}), constraints=[dp.PureDP(1, 5)])
    for question, wanted in ((finite, "0.85091812823932"), (infinite, "48.03367971038961594727")):
        solution = proved(question)
        for end in (solution.value.upper, solution.bound):
            assert abs(end / factor - Fraction(wanted)) <= Fraction(1, 10**6) * Fraction(wanted)
        assert abs(solution.value.upper / factor - Fraction(wanted)) <= Fraction(1, 10**12) * Fraction(wanted)


def test_t3_least_delta_below_a_tolerance() -> None:
    """D = 15, epsilon = 1: 1.41362734e-7 in closed form, where solvers answer 0."""
    question = dp.Problem(support=dp.Integers(-15, 15), objective=dp.MinDelta(1))
    solution = proved(question)
    assert solution.value.lower > 0
    assert float(solution.value) == pytest.approx(1.413627340093132225e-7, rel=1e-9)


@pytest.mark.parametrize("finite", [True, False])
def test_t3_delta_of_1e_10(finite: bool) -> None:
    """(1, 1e-10): feasible, and not the same as delta = 0 (unscaled rows are called infeasible or lose the delta)."""
    support = dp.Integers(-50, 50) if finite else None
    solution = proved(dp.Problem(support=support, objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "1e-10")]))
    # closed form at sensitivity 1: T_0 = (1 - d)/(1 + e), T_k+1 = max(0, (T_k - d)/e), E|Z| = 2 sum T
    with localcontext() as context:
        context.prec = 40
        e, d = Decimal(1).exp(), Decimal("1e-10")
        tail, total = (1 - d) / (1 + e), Decimal(0)
        while tail > 0:
            total += tail
            tail = (tail - d) / e
        wanted = 2 * total
    assert float(solution.value) == pytest.approx(float(wanted), rel=1e-9)
    assert float(wanted) < 0.85091812823932  # the private optimum with delta = 0
    reached = dp.delta(solution.pmf, 1)
    assert reached.upper <= Fraction(1, 10**10)
    assert reached.upper >= Fraction(99, 10**12)


def test_t6_input_with_a_tail_of_1e_30() -> None:
    """A mass of 1e-30 far from the rest: it stays in the input, and W1 is that of the whole input."""
    weights = [1, 2, 1, *[0] * 10, "1e-30"]
    solution = proved(dp.wasserstein(input=dp.table(0, weights), epsilon=1, sensitivity=2))
    law = solution.problem.objective.input.pmf
    assert law.end == 13
    assert law.probability(13) == Fraction("1e-30") / (4 + Fraction("1e-30"))
    without = proved(dp.wasserstein(input=dp.table(0, [1, 2, 1]), epsilon=1, sensitivity=2))
    difference = solution.value.upper - without.value.upper
    assert abs(difference) <= Fraction(1, 10**9)
    assert dp.epsilon(solution.pmf, 0, 2).upper <= 1 + Fraction(1, 1 << 60)


def test_t7_entropy_is_in_nats() -> None:
    """Entropy is defined once: the uniform pmf on 7 points has ln 7 (not log2, not x ln x - x + y)."""
    solution = proved(dp.Problem(support=dp.Integers(-3, 3), objective=dp.MaxEntropy()))
    assert float(solution.value) == pytest.approx(math.log(7), rel=1e-15)
    assert [solution.pmf.probability(k) for k in range(-3, 4)] == [Fraction(1, 7)] * 7


# --- D: diagnosis ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", LP_BACKENDS)
@pytest.mark.parametrize("finite", [True, False])
def test_d1_conflict_is_named(finite: bool, backend: str) -> None:
    """1-DP and E|Z| <= 0.1: the two are named, the innocent zero mean is not, whichever solver answers."""
    dp_row = dp.PureDP(1, 1, boundary="window") if finite else dp.PureDP(1, 1)
    question = dp.Problem(
        support=dp.Integers(-50, 50) if finite else None,
        objective=dp.MinExpectedCost("square"),
        constraints=[dp.Mean(0), dp_row, dp.Expectation(of="absolute", at_most="0.1")],
    )
    solution = dp.solve(question, backend)
    assert solution.verified is INFEASIBLE
    assert solution.conflict == ("pure-dp", "expectation")
    assert "'pure-dp'" in solution.message and "'expectation'" in solution.message
    assert "mean" not in solution.message


def test_d1_repeated_types_are_numbered() -> None:
    """Of two constraints of a type, the one in the conflict is named by its number."""
    question = dp.Problem(
        support=dp.Integers(-5, 5),
        objective=ABSOLUTE,
        constraints=[
            dp.Expectation(of="absolute", at_most=4),
            dp.Expectation(of="square", at_least=4),
            dp.Expectation(of="absolute", at_most="1/2"),
        ],
    )
    solution = dp.solve(question)
    assert solution.verified is INFEASIBLE
    assert solution.conflict == ("expectation 2", "expectation 3")


def test_false_infeasibility() -> None:
    """E Z = 10, sensitivity 5, epsilon = 1: a core of [-9, 9] is infeasible, the problem has the value 10.647753."""
    question = dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 5), dp.Mean(10)])
    for backend in LP_BACKENDS:
        solution = dp.solve(question, backend)
        assert solution.verified in (OPTIMAL, FEASIBLE), (backend, solution.message)
        assert solution.pmf.mean == 10
        assert abs(float(solution.value) - 10.647753) <= 1e-6


def test_d2_require_verified_raises_with_the_summary() -> None:
    """An unproved result cannot be used by accident: it raises, with what was claimed and what was proved."""
    solution = dp.solve(row(-1, 2, 3))
    assert solution.verified is INFEASIBLE
    with pytest.raises(dp.NotVerifiedError, match="infeasible") as caught:
        solution.require_verified()
    assert "variance" in str(caught.value)
    good = proved(row(-1, 2, 1))
    assert good.require_verified() is good
    assert not isinstance(good.claimed, dp.Verified)
    assert dp.Claimed.OPTIMAL != dp.Verified.OPTIMAL


@pytest.mark.parametrize("backend", [*LP_BACKENDS, "newton"])
def test_d3_nothing_is_printed(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    """No banner, no log line, no warning on the console, from Python or from native code."""
    question = row(-3, 3, 1) if backend == "newton" else window(20, 3)
    dp.solve(question, backend)
    infeasible = row(-1, 2, 3)
    dp.solve(infeasible if backend in ("newton", "cvxpy") else dp.Problem(
        support=infeasible.support, objective=ABSOLUTE, constraints=infeasible.constraints
    ), backend)  # fmt: skip
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_d3_no_warnings_and_no_log_configuration(recwarn: pytest.WarningsRecorder) -> None:
    """Neither Python warnings from tiny numbers nor handlers on the root logger."""
    handlers = list(logging.getLogger().handlers)
    dp.solve(window(200, 1), "highs")
    dp.solve(dp.tablebuilder(D=15, V="0.01"))
    assert [str(w.message) for w in recwarn.list] == []
    assert logging.getLogger().handlers == handlers


def test_d6_timings_are_seconds_by_phase() -> None:
    """The clock is the package's own, and the phases are those of the contract."""
    timings = proved(window(20, 3)).timings
    assert {"formulate", "reduce", "solve", "repair", "bound"} <= set(timings)
    assert all(0 <= seconds < 60 for seconds in timings.values())


# --- M: state --------------------------------------------------------------------------------------------------------

QUESTIONS = {
    "entropy": (row(-2, 5, 1), "newton"),
    "cone": (row(-2, 5, 1), "cvxpy"),
    "window": (window(10, 2), "highs"),
    "infinite": (dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(2, 3)], name="n"), "scipy"),
    "cbc": (dp.Problem(objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "0.1", 2)]), "pulp"),
    "wasserstein": (dp.wasserstein(input=dp.poisson(2), epsilon=1, sensitivity=2), "highs"),
    "infeasible": (row(-1, 2, 3), "newton"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_m1_pickle(name: str) -> None:
    """Problems and solutions are plain values: they pickle after a solve by any solver, and stay equal."""
    question, backend = QUESTIONS[name]
    again = pickle.loads(pickle.dumps(question))
    assert again == question
    assert hash(again) == hash(question)
    solution = dp.solve(question, backend)
    copied = pickle.loads(pickle.dumps(solution))
    assert copied.verified is solution.verified
    assert copied.problem == question
    assert copied.checks == solution.checks
    assert copied.conflict == solution.conflict
    assert copied.certificate.data == solution.certificate.data
    if solution.proved_pmf is not None:
        assert copied.pmf == solution.pmf
        assert copied.value == solution.value


@pytest.mark.parametrize("name", QUESTIONS)
def test_m2_copies_are_the_same_problem(name: str) -> None:
    """A copy and a deep copy ask the same question and get the same answer; nothing refers to a hidden variable."""
    question, backend = QUESTIONS[name]
    solution = dp.solve(question, backend)
    for duplicate in (copy.copy(question), copy.deepcopy(question)):
        assert duplicate == question
        other = dp.solve(duplicate, backend)
        assert other.verified is solution.verified
        assert other.proved_pmf == solution.proved_pmf


@pytest.mark.parametrize("name", QUESTIONS)
def test_m3_solving_twice(name: str) -> None:
    """No hidden state: the second solve is the first, and a solve in between, of another problem, changes nothing."""
    question, backend = QUESTIONS[name]
    first = dp.solve(question, backend)
    dp.solve(row(-4, 4, 2) if backend in ("newton", "cvxpy") else window(6, 1, "1/2"), backend)
    second = dp.solve(question, backend)
    assert second.verified is first.verified
    assert second.proved_pmf == first.proved_pmf
    assert second.certificate.data == first.certificate.data


def test_m3_options_are_not_frozen() -> None:
    """An option given once does not stay, and one given later is honoured."""
    question = row(-5, 5, 2)
    before = dp.solve(question, "cvxpy")
    scs = dp.solve(question, "cvxpy", options={"solver": "SCS"})
    after = dp.solve(question, "cvxpy")
    assert scs.solver_version != before.solver_version
    assert after.solver_version == before.solver_version
    assert after.proved_pmf == before.proved_pmf


def test_m3_arguments_are_not_changed() -> None:
    """Options and input lists are read, not kept: changing them later changes nothing."""
    options: dict[str, Any] = {"solver": "CLARABEL"}
    constraints = [dp.Mean(0), dp.Variance(1)]
    weights = [1, 2, 1]
    question = dp.Problem(support=dp.Integers(-2, 2), objective=dp.MaxEntropy(), constraints=constraints)
    input_law = dp.table(0, weights)
    dp.solve(question, "cvxpy", options=options)
    assert options == {"solver": "CLARABEL"}
    constraints.append(dp.Mean(1))
    weights[0] = 100
    assert len(question.constraints) == 2
    assert input_law.pmf.probability(0) == Fraction(1, 4)


def test_u4_every_bound_is_on_its_side() -> None:
    """Tightening a problem never improves its bound beyond the looser one's value (monotone in epsilon)."""
    values = [proved(window(30, 3, epsilon)) for epsilon in ("1/2", "1", "3/2", "2")]
    for tight, loose in zip(values, values[1:], strict=False):
        assert loose.value.upper < tight.bound


# --- R: what has no finite exact answer ------------------------------------------------------------------------------

SUPPORT_IS_THE_WAY_OUT = r"\[support\]"


@pytest.mark.parametrize(("arguments", "words"), [
    # a variance without a fixed mean is not convex
    ({"support": dp.Integers(-5, 5), "objective": dp.MaxEntropy(), "constraints": [dp.Variance(at_most=1)]},
     ["variance", "fixed mean", "equals", "symmetric"]),
    ({"support": dp.Integers(-5, 5), "objective": dp.MaxEntropy(),
      "constraints": [dp.Mean(at_most=0), dp.Variance(at_most=1)]}, ["fixed mean", "equals", "symmetric"]),
    # Gaussian tails have no finite description
    ({"objective": dp.MaxEntropy(), "constraints": [dp.Mean(0), dp.Variance(at_most=4)]},
     ["objective", "max-entropy", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": dp.MaxEntropy(), "constraints": [dp.PureDP(1, 1)]}, ["objective", SUPPORT_IS_THE_WAY_OUT]),
    # pure DP on a finite support: three ways out
    ({"support": dp.Integers(-5, 5), "objective": ABSOLUTE, "constraints": [dp.PureDP(1, 1)]},
     ["pure-dp", "drop low and high", "approx-dp", "window"]),
    ({"support": dp.Lattice("1/2", -5, 5), "objective": ABSOLUTE, "constraints": [dp.PureDP(1, 1)]},
     ["pure-dp", "drop low and high", "approx-dp", "window"]),
    # no minimum is attained
    ({"objective": dp.MinDelta(1)}, ["min-delta", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": dp.MinDelta(1), "constraints": [dp.SecondMoment(at_most=4)]},
     ["min-delta", SUPPORT_IS_THE_WAY_OUT]),
    # mass escapes far out
    ({"objective": ABSOLUTE, "constraints": [dp.PureDP(1, 1), dp.SecondMoment(3)]},
     ["constraints[1]", "escapes", "grows as fast", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": ABSOLUTE, "constraints": [dp.PureDP(1, 1), dp.SecondMoment(at_least=3)]},
     ["constraints[1]", "escapes", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": ABSOLUTE, "constraints": [dp.PureDP(1, 1), dp.Mean(0), dp.Variance(at_least=3)]},
     ["constraints[2]", "escapes", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": dp.MinWasserstein(dp.poisson(3)), "constraints": [dp.PureDP(1, 1), dp.SecondMoment(at_least=3)]},
     ["constraints[1]", "escapes", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": dp.MinExpectedCost("square"),
      "constraints": [dp.PureDP(1, 1), dp.Expectation(of={"power": 3}, at_least=30)]},
     ["constraints[1]", "escapes", SUPPORT_IS_THE_WAY_OUT]),
    # no proof yet
    ({"objective": ABSOLUTE, "constraints": [dp.ApproxDP(1, "0.1"), dp.Unimodal()]},
     ["constraints[1]", "unimodal", SUPPORT_IS_THE_WAY_OUT]),
    # a bounded cost does not keep (epsilon, delta) noise together
    ({"objective": dp.MinExpectedCost("error"), "constraints": [dp.ApproxDP(1, "0.1")]},
     ["approx-dp", "bounded cost", SUPPORT_IS_THE_WAY_OUT]),
    # contradictions and readings
    ({"objective": ABSOLUTE, "constraints": [dp.PureDP(1, 1), dp.Forbidden([1])]}, ["forbidden", "pure-dp", "drop"]),
    ({"objective": ABSOLUTE, "constraints": [dp.PureDP(1, 1, boundary="window")]}, ["window", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": dp.MinExpectedCost({"polynomial": [0, -1]}), "constraints": [dp.PureDP(1, 1)]},
     ["objective", "falls without bound", SUPPORT_IS_THE_WAY_OUT]),
    ({"objective": dp.MinExpectedCost({"table": {"0": 0}}), "constraints": [dp.PureDP(1, 1)]}, ["outside"]),
    ({"objective": ABSOLUTE, "constraints": [dp.PureDP(1, "1/2")]}, ["sensitivity", "lattice step"]),
])  # fmt: skip
def test_refused_with_the_way_out(arguments: dict[str, Any], words: list[str]) -> None:
    """What has no finite exact answer is refused on construction, in one line that names the place and the way out."""
    with pytest.raises(dp.InputError) as caught:
        dp.Problem(**arguments)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word.replace("\\", "") in message, (word, message)


def test_ways_out_work() -> None:
    """Each way out that a refusal names is open."""
    finite = dp.Integers(-20, 20)
    for question in (
        dp.Problem(support=finite, objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "0.01")]),
        window(20, 1),
        dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 1)]),
        dp.Problem(support=finite, objective=dp.MinDelta(1)),
        dp.Problem(support=finite, objective=dp.MaxEntropy(), constraints=[dp.Symmetric(), dp.Variance(at_most=1)]),
        dp.Problem(objective=dp.MinExpectedCost("square"), constraints=[dp.PureDP(1, 1), dp.SecondMoment(at_least=3)]),
        dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 1), dp.SecondMoment(at_most=3)]),
        dp.Problem(support=finite, objective=dp.MinExpectedCost("error"), constraints=[dp.ApproxDP(1, "0.1")]),
    ):
        proved(question)


def test_escaping_mass_is_why() -> None:
    """On growing windows E Z^2 >= 3 costs ever less, down to what no constraint costs: no optimum is attained."""
    values = []
    for half in (6, 12, 25):
        question = dp.Problem(
            support=dp.Integers(-half, half),
            objective=ABSOLUTE,
            constraints=[dp.PureDP(1, 1, boundary="window"), dp.SecondMoment(at_least=3)],
        )
        values.append(float(proved(question).value))
    assert all(a > b + 0.01 for a, b in zip(values, values[1:], strict=False)), values
    assert 0.8509 < values[-1] < 0.9, values


def test_window_solution_says_what_it_is() -> None:
    """The paper's window reading is not epsilon-DP: no epsilon reaches delta = 0, the true delta is the edge mass."""
    pmf = proved(window(10, 1)).pmf
    with pytest.raises(dp.InputError, match="delta"):
        dp.epsilon(pmf, 0, 1)
    edge = pmf.probability(10)
    reached = dp.delta(pmf, 1, 1)
    assert abs(reached.upper - edge) <= Fraction(1, 10**30)
    assert np.all(pmf.probabilities() > 0)
