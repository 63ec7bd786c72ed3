"""Independent reference values (reference.json, its notes say where each comes from) against the solving path.

Every value was computed without this package: closed forms with 50 to 60 digits, or linear programs that were
repaired and compared with closed forms where one exists.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt as dp

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))
COSTS = ("absolute", "square")
OPTIMAL = dp.Verified.OPTIMAL
PROVED = (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)
HEADLINES = [(2, 15, "6.3794795519837922576"), (1, 5, "4.7862842989968850205")]
LP_BACKENDS = ("highs", "scipy", "pulp", "cvxpy")


def rows(group: str, **wanted: Any) -> list[Any]:
    """The rows of a group as pytest parameters with readable names."""
    found = []
    for row in REFERENCE[group]:
        if any(row.get(key) != value for key, value in wanted.items()):
            continue
        label = "-".join(str(v) for k, v in row.items() if k in ("input", "D", "V", "epsilon", "delta", "sensitivity"))
        found.append(pytest.param(row, id="".join(c if c.isalnum() or c in "-." else "_" for c in label)))
    assert found
    return found


def unit(text: str) -> Fraction:
    """One unit of the last digit that a reference value prints."""
    mantissa, _, exponent = text.lower().partition("e")
    return Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def assert_value(solution: dp.Solution, text: str, *, verified: Any = (OPTIMAL,), relative: str = "1e-14") -> None:
    """The proved value is the reference value to its printed digits (floats reach `relative`), the gap is closed."""
    assert solution.verified in verified, solution.message
    assert all(check.holds for check in solution.checks)
    wanted = Fraction(text)
    allowed = unit(text) + abs(wanted) * Fraction(relative)
    assert abs(solution.value.lower - wanted) <= allowed, (float(solution.value), text)
    assert abs(solution.value.upper - wanted) <= allowed, (float(solution.value), text)


def pure_dp(cost: str, row: dict[str, Any]) -> dp.Problem:
    """Least expected cost under pure DP on all integers."""
    return dp.Problem(objective=dp.MinExpectedCost(cost), constraints=[dp.PureDP(row["epsilon"], row["sensitivity"])])


def law(table: dict[str, Any]) -> dp.Distribution:
    """The input distribution of a Wasserstein row."""
    arguments = {key: value for key, value in table.items() if key != "type"}
    return getattr(dp, table["type"])(**arguments)


# --- max entropy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows("tablebuilder"))
def test_tablebuilder(row: dict[str, Any]) -> None:
    """Entropy to 1e-13, proved gap at most 1e-9, both end masses and the centre with relative error at most 1e-9."""
    solution = dp.solve(dp.tablebuilder(D=row["D"], V=row["V"]))
    assert_value(solution, row["entropy_nats"], relative="1e-13")
    assert solution.gap is not None and solution.gap <= Fraction(1, 10**9)
    for key, points in (("p_D", (-row["D"], row["D"])), ("C", (0,))):
        if key in row:
            for k in points:
                assert abs(solution.pmf.probability(k) / Fraction(row[key]) - 1) <= Fraction(1, 10**9), (key, k)


@pytest.mark.parametrize("row", [p for p in rows("ptable_rows") if "kind" not in p.values[0]])
def test_ptable_row(row: dict[str, Any]) -> None:
    """Rows of p-tables, blocked targets and boundary variances included: every mass to the printed digits."""
    noise = row["noise"]
    blocked = [k for k in range(noise[0], noise[-1] + 1) if k not in noise]
    question = dp.Problem(
        support=dp.Integers(noise[0], noise[-1]),
        objective=dp.MaxEntropy(),
        constraints=[dp.Mean(0), dp.Variance(row["V"]), *([dp.Forbidden(blocked)] if blocked else [])],
    )
    solution = dp.solve(question)
    assert solution.verified is OPTIMAL, solution.message
    assert solution.pmf.mean == 0
    assert solution.pmf.variance == Fraction(row["V"])
    for k, text in zip(noise, row["p"], strict=True):
        wanted = Fraction(text)
        assert abs(solution.pmf.probability(k) - wanted) <= Fraction(1, 10**10), (k, text)
    assert all(solution.pmf.probability(k) == 0 for k in blocked)


@pytest.mark.parametrize("row", [p for p in rows("curve") if "V" in p.values[0]])
def test_delta_of_solved_noise(row: dict[str, Any]) -> None:
    """delta(epsilon) of the *solved* TableBuilder noise: what the entropy's flat optimum could get wrong."""
    solution = dp.solve(dp.tablebuilder(D=row["D"], V=row["V"]))
    found = dp.delta(solution.pmf, row["epsilon"], row["sensitivity"])
    wanted = Fraction(row["delta"])
    assert abs(found.upper - wanted) <= unit(row["delta"]) + wanted / 10**9
    assert found.lower <= found.upper


# --- least delta -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows("min_delta_any_pmf"))
def test_min_delta(row: dict[str, Any]) -> None:
    """The least delta of any pmf on [-D, D]; closed form at sensitivity 1, else linear programs to 1e-11."""
    question = dp.Problem(
        support=dp.Integers(-row["D"], row["D"]), objective=dp.MinDelta(row["epsilon"], row["sensitivity"])
    )
    solution = dp.solve(question)
    assert_value(solution, row["delta"], relative="1e-10")
    assert dp.delta(solution.pmf, row["epsilon"], row["sensitivity"]).upper <= solution.value.upper


# --- pure DP ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("row", rows("staircase", kind="optimum"))
def test_staircase(row: dict[str, Any], cost: str) -> None:
    """E|Z| and E Z^2 of the best staircase on all integers: 18 digits, a float's worth of them from HiGHS."""
    solution = dp.solve(pure_dp(cost, row))
    assert_value(solution, row[f"mean_{cost}"], relative="1e-13")
    assert dp.epsilon(solution.pmf, 0, row["sensitivity"]).upper <= Fraction(row["epsilon"]) + Fraction(1, 1 << 60)
    # no noise is better than the reference optimum: the pmf is really private, the value really its expectation
    assert solution.value.upper >= Fraction(row[f"mean_{cost}"]) - unit(row[f"mean_{cost}"])


def test_staircase_masses() -> None:
    """The optimal pmf itself at epsilon = 2, sensitivity 15: two levels, and steps of e^-2 every 15 points."""
    (row,) = [r for r in REFERENCE["staircase"] if r["kind"] == "pmf"]
    pmf = dp.solve(pure_dp("absolute", row)).pmf
    for k in (*range(-4, 5),):
        assert float(pmf.probability(k)) == pytest.approx(float(row["p_0_to_4"]), rel=1e-12)
    for k in (*range(-14, -4), *range(5, 15)):
        assert float(pmf.probability(k)) == pytest.approx(float(row["p_5"]), rel=1e-12)
    for k in (-200, 31, 300):  # far out: the chain continues exactly
        assert pmf.probability(k) > 0
        outward = 15 if k > 0 else -15
        ratio = pmf.probability(k + outward) / pmf.probability(k)
        assert float(ratio) == pytest.approx(0.1353352832366127, rel=1e-14)


@pytest.mark.parametrize("row", rows("window_lp"))
def test_window(row: dict[str, Any]) -> None:
    """The noise paper's finite programs: interior rows on [-D, D] only."""
    question = dp.Problem(
        support=dp.Integers(-row["D"], row["D"]),
        objective=dp.MinExpectedCost(row["cost"]),
        constraints=[dp.PureDP(row["epsilon"], row["sensitivity"], boundary="window")],
    )
    solution = dp.solve(question)
    assert_value(solution, row["value"], relative="1e-13")
    weights, reach = solution.pmf.weights, row["sensitivity"]
    assert len(weights) == 2 * row["D"] + 1
    assert min(weights) > 0
    # a second check of every interior pair, against an independent series for e^epsilon
    factor = _exp_series(row["epsilon"])
    for i, weight in enumerate(weights):
        best = max(weights[max(0, i - reach) : i + reach + 1])
        assert best <= factor * weight


def _exp_series(epsilon: str) -> Fraction:
    """An upper end of e^epsilon by its Taylor series, with an explicit remainder: not the package's own enclosure."""
    x, term, total = Fraction(epsilon), Fraction(1), Fraction(1)
    for n in range(1, 60):
        term = term * x / n
        total += term
    return total + term  # the remainder is below the last term


# --- (epsilon, delta) ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("row", rows("approx_dp_m1"))
def test_approx_dp_sensitivity_1(row: dict[str, Any], cost: str) -> None:
    """Discrete Tulap noise is the optimum at sensitivity 1: value, p(0), and the largest noise with mass."""
    question = dp.Problem(objective=dp.MinExpectedCost(cost), constraints=[dp.ApproxDP(row["epsilon"], row["delta"])])
    solution = dp.solve(question)
    assert_value(solution, row[f"mean_{cost}"], relative="1e-12")
    assert abs(solution.pmf.probability(0) - Fraction(row["p_0"])) <= Fraction(1, 10**9)
    assert dp.delta(solution.pmf, row["epsilon"]).upper <= Fraction(row["delta"])
    beyond = sum(solution.pmf.probability(k) for k in _core(solution.pmf) if abs(k) > row["largest_noise"])
    assert beyond <= Fraction(1, 10**9)
    assert solution.pmf.probability(row["largest_noise"]) > Fraction(1, 10**6)


def _core(pmf: dp.Pmf) -> range:
    return range(pmf.start, pmf.end + 1)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("row", [p for p in rows("approx_dp") if "kind" not in p.values[0]])
def test_approx_dp(row: dict[str, Any], cost: str) -> None:
    """Sensitivity 2 and more, where no closed form is known and the optimum need not be monotone."""
    question = dp.Problem(
        objective=dp.MinExpectedCost(cost),
        constraints=[dp.ApproxDP(row["epsilon"], row["delta"], row["sensitivity"])],
    )
    assert_value(dp.solve(question), row[f"mean_{cost}"])


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("row", [p for p in rows("approx_dp") if "kind" not in p.values[0]])
def test_approx_dp_unimodal(row: dict[str, Any], cost: str) -> None:
    """The same with unimodality asked for, on a support well beyond the largest noise: always dearer."""
    constraint = dp.ApproxDP(row["epsilon"], row["delta"], row["sensitivity"])
    question = dp.Problem(
        support=dp.Integers(-45, 45), objective=dp.MinExpectedCost(cost), constraints=[constraint, dp.Unimodal()]
    )
    solution = dp.solve(question)
    assert_value(solution, row[f"mean_{cost}_monotone"])
    weights = [solution.pmf.weight(k) for k in range(-45, 46)]
    assert all(a <= b for a, b in zip(weights[:45], weights[1:46], strict=True))
    assert all(a >= b for a, b in zip(weights[45:], weights[46:], strict=False))
    assert solution.bound is not None
    assert solution.bound > Fraction(row[f"mean_{cost}"])


def test_shape_of_the_non_monotone_optimum() -> None:
    """The masses of the (1, 0.2) optimum at sensitivity 2 to their four digits."""
    (row,) = [r for r in REFERENCE["approx_dp"] if "kind" in r]
    question = dp.Problem(
        objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.ApproxDP(row["epsilon"], row["delta"], row["sensitivity"])],
    )
    pmf = dp.solve(question).pmf
    for k, text in enumerate(row["p_0_to_3"]):
        assert float(pmf.probability(k)) == pytest.approx(float(text), abs=6e-5)


# --- Wasserstein -----------------------------------------------------------------------------------------------------


def wasserstein(row: dict[str, Any]) -> dp.Problem:
    """The problem of a Wasserstein row: all integers, or the window with interior rows."""
    if row["support"] == "all integers":
        return dp.wasserstein(input=law(row["input"]), epsilon=row["epsilon"], sensitivity=row["sensitivity"])
    return dp.Problem(
        support=dp.Integers(-row["D"], row["D"]),
        objective=dp.MinWasserstein(law(row["input"])),
        constraints=[dp.PureDP(row["epsilon"], row["sensitivity"], boundary="window")],
    )


@pytest.mark.parametrize("row", [p for p in rows("wasserstein") if "w1_optimal" in p.values[0]])
def test_wasserstein(row: dict[str, Any]) -> None:
    """The least W1 on all integers and on windows, to the references' ten digits; the noise is really private."""
    solution = dp.solve(wasserstein(row))
    assert solution.verified is OPTIMAL, (solution.message, float(solution.value), float(solution.bound or 0))
    assert abs(float(solution.value) - float(row["w1_optimal"])) <= 2e-9
    if row["support"] == "all integers":
        assert dp.epsilon(solution.pmf, 0, row["sensitivity"]).upper <= Fraction(row["epsilon"]) + Fraction(1, 1 << 60)


@pytest.mark.parametrize("row", rows("wasserstein", support="all integers"))
def test_wasserstein_of_the_relaxation(row: dict[str, Any]) -> None:
    """W1 of the noise that minimises E|Z| (the paper's relaxation): never below the optimum, to ten digits."""
    noise = dp.solve(pure_dp("absolute", row)).pmf
    value = wasserstein(row).objective_term.value(noise)
    assert abs(float(value) - float(row["w1_staircase_min_abs"])) <= 2e-9
    assert float(value) >= float(row["w1_optimal"]) - 2e-9


@pytest.mark.slow
@pytest.mark.parametrize("row", [p for p in rows("wasserstein") if "problem" in p.values[0]])
def test_relaxation_cut_to_a_window(row: dict[str, Any]) -> None:
    """The paper's relaxation with its sum over cuts cut to [-D, D] too: a table cost, one value a point."""
    half, pmf = row["D"], law(row["input"]).pmf

    def distribution(k: int) -> Fraction:
        return sum((pmf.probability(i) for i in range(pmf.start, min(k, pmf.end) + 1)), Fraction(0))

    below = {k: distribution(k) for k in range(-2 * half, 2 * half + 1)}
    cost = {str(j): sum(abs(below[k] - below[k - j]) for k in range(-half, half + 1)) for j in range(-half, half + 1)}
    question = dp.Problem(
        support=dp.Integers(-half, half),
        objective=dp.MinExpectedCost({"table": cost}),
        constraints=[dp.PureDP(row["epsilon"], row["sensitivity"], boundary="window")],
    )
    solution = dp.solve(question)
    assert solution.verified is OPTIMAL
    assert abs(float(solution.value) - float(row["objective"])) <= 2e-9


# --- every backend ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", LP_BACKENDS)
@pytest.mark.parametrize(("epsilon", "sensitivity", "text"), HEADLINES)
def test_headline_values(epsilon: int, sensitivity: int, text: str, backend: str) -> None:
    """The two headline values from every LP backend: to 1e-13 from highs, 1e-7 from the others, always private."""
    question = pure_dp("absolute", {"epsilon": epsilon, "sensitivity": sensitivity})
    solution = dp.solve(question, backend)
    assert solution.backend == backend
    assert solution.verified in PROVED
    wanted = Fraction(text)
    allowed = wanted * Fraction("1e-13" if backend == "highs" else "1e-7")
    assert abs(solution.value.lower - wanted) <= allowed
    assert abs(solution.value.upper - wanted) <= allowed
    assert solution.value.upper >= wanted - unit(text)
    assert solution.bound is not None and solution.bound <= wanted + unit(text)
    (check,) = solution.checks
    assert check.holds and check.margin >= 0
    # the largest ratio over every shift, core against core and tails, compared with an independent series for e^epsilon
    pmf = solution.pmf
    span = range(pmf.start - 3 * sensitivity, pmf.end + 3 * sensitivity + 1)
    weights = {k: pmf.weight(k) for k in range(span[0] - sensitivity, span[-1] + sensitivity + 1)}
    factor = _exp_series(str(epsilon))
    for k in span:
        assert max(weights[k + s] for s in range(-sensitivity, sensitivity + 1)) <= factor * weights[k]
    assert dp.epsilon(pmf, 0, sensitivity).upper <= epsilon + Fraction(1, 1 << 60)


@pytest.mark.parametrize("backend", LP_BACKENDS)
@pytest.mark.parametrize("group", ["staircase", "window_lp", "approx_dp_m1", "approx_dp", "wasserstein", "min_delta"])
def test_every_backend_on_one_row_of_each_group(group: str, backend: str) -> None:
    """One row of each group by each LP backend: proved, the reference inside [bound, value], value within 1e-6."""
    absolute = dp.MinExpectedCost("absolute")
    question, text = {
        "staircase": (
            dp.Problem(objective=dp.MinExpectedCost("square"), constraints=[dp.PureDP("0.5", 5)]),
            "197.884904451638188",
        ),
        "window_lp": (
            dp.Problem(
                support=dp.Integers(-50, 50), objective=absolute, constraints=[dp.PureDP(1, 15, boundary="window")]
            ),
            "12.712296153646",
        ),
        "approx_dp_m1": (dp.Problem(objective=absolute, constraints=[dp.ApproxDP(1, "0.01")]), "0.7984977697207"),
        "approx_dp": (dp.Problem(objective=absolute, constraints=[dp.ApproxDP(1, "0.2", 2)]), "1.03255211"),
        "wasserstein": (dp.wasserstein(input=dp.poisson(10), epsilon=2, sensitivity=15), "4.5732512377"),
        "min_delta": (dp.Problem(support=dp.Integers(-5, 5), objective=dp.MinDelta("0.7")), "0.01036538063395472"),
    }[group]
    assert text in json.dumps(REFERENCE)
    solution = dp.solve(question, backend)
    wanted = Fraction(text)
    assert solution.verified in PROVED, solution.message
    assert abs(solution.value.upper - wanted) <= wanted / 10**6
    assert solution.bound is not None
    assert solution.bound - unit(text) <= wanted <= solution.value.upper + unit(text)


@pytest.mark.parametrize("backend", ["newton", "cvxpy"])
@pytest.mark.parametrize(("half", "bound"), [(11, 4), (2, 1), (5, 10)])
def test_entropy_backends(half: int, bound: int, backend: str) -> None:
    """Both entropy backends reach the tail to 1e-9: what a cone solver misses by 4 % is polished first."""
    (row,) = [r for r in REFERENCE["tablebuilder"] if (r["D"], r["V"]) == (half, str(bound))]
    solution = dp.solve(dp.tablebuilder(D=half, V=bound), backend)
    assert_value(solution, row["entropy_nats"], relative="1e-13")
    assert solution.gap is not None and solution.gap <= Fraction(1, 10**9)
    for k in (-half, half):
        assert abs(solution.pmf.probability(k) / Fraction(row["p_D"]) - 1) <= Fraction(1, 10**9)


@pytest.mark.slow
@pytest.mark.parametrize("clarabel_or_scs", ["CLARABEL", "SCS"])
def test_cone_solvers_by_option(clarabel_or_scs: str) -> None:
    """cvxpy with a named solver: the answer is proved whichever it is, and the solver's name is in the result."""
    solution = dp.solve(dp.tablebuilder(D=11, V=4), "cvxpy", options={"solver": clarabel_or_scs})
    assert solution.verified in PROVED
    assert clarabel_or_scs.lower() in (solution.solver_version + solution.solver_message).lower()
    assert abs(float(solution.value) - 2.1120857074123836748) <= 1e-5
