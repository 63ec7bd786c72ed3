"""The noise paper's programs: the optimum P1, its relaxation P2, their windows; every program from every backend."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.checker.lattice import Lattice
from dpopt.checker.objectives import read_objective
from dpopt.checker.stated import Setting
from dpopt.problem.objectives import MinWassersteinRelaxation
from dpopt.report import summary

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))
OPTIMAL = dp.Verified.OPTIMAL
PROVED = (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)


def law(table: dict[str, Any]) -> dp.Distribution:
    """The input distribution of a row."""
    return getattr(dp, table["type"])(**{key: value for key, value in table.items() if key != "type"})


# --- P2 --------------------------------------------------------------------------------------------------------------


def cost_of(objective: MinWassersteinRelaxation, support: dp.Support | None = None) -> dp.LatticeFunction:
    """The objective's cost as a function of the lattice index."""
    return objective.term(dp.Setting(support or dp.Integers(), None)).cost


def test_over_all_cuts_the_cost_is_the_size_of_the_noise() -> None:
    """Whatever the input, and on a window as well."""
    for support in (None, dp.Integers(-30, 30), dp.Lattice("1/2")):
        cost = cost_of(MinWassersteinRelaxation(dp.poisson(10)), support)
        step = support.step if support is not None else 1
        assert [cost(j) for j in (-70, -3, 0, 1, 15)] == [70 * step, 3 * step, 0, step, 15 * step]


def test_the_cost_of_cuts_levels_off() -> None:
    """The reference values of a normal input with the cuts -20..20."""
    cost = cost_of(MinWassersteinRelaxation(dp.gaussian(0, 5), cut={"from": -20, "to": 20}))
    for j, wanted in ((15, 14.72), (30, 20.93), (60, 21.0), (1000, 21.0)):
        assert float(cost(j)) == pytest.approx(wanted, abs=0.005)
    assert cost(1000) == cost(200)


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    low=st.integers(-4, 4),
    ends=st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(sorted),
    denominator=st.integers(1, 3),
)
def test_the_cost_of_cuts_is_its_definition(weights: list[int], low: int, ends: list[int], denominator: int) -> None:
    """At every noise value and on every lattice; and the checker, which reads the objective anew, agrees."""
    objective = MinWassersteinRelaxation(dp.table(low, weights), cut={"from": ends[0], "to": ends[1]})
    support = dp.Integers() if denominator == 1 else dp.Lattice(Fraction(1, denominator))
    cost = cost_of(objective, support)
    reach = 20 * denominator
    fine = {(low + i) * denominator: weight for i, weight in enumerate(weights)}
    span = range(-3 * reach, 3 * reach + 1)
    running = dict(zip(span, accumulate(fine.get(k, 0) for k in span), strict=True))
    for j in range(-reach, reach + 1):
        cuts = range(ends[0] * denominator, ends[1] * denominator + 1)
        assert cost(j) * denominator * sum(weights) == sum(abs(running[k] - running[k - j]) for k in cuts)
    problem = dp.Problem(objective=objective, constraints=[dp.PureDP(1, 1)], support=support)
    stated = _as_stated(problem.to_dict())
    setting = Setting(Lattice.of(stated.get("support"), "support"), lambda: None)
    reread = read_objective(stated["objective"], "objective", setting, None, "trusted")
    assert reread.cost.equals(cost)


def _as_stated(value: Any) -> Any:
    """Numbers as strings, as a certificate states a problem."""
    if isinstance(value, dict):
        return {key: _as_stated(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_stated(item) for item in value]
    return value if isinstance(value, str) else str(value)


CUT_ROWS = [row for row in REFERENCE["wasserstein"] if "problem" in row]


@pytest.mark.parametrize("row", CUT_ROWS, ids=lambda row: f"D={row['D']}")
def test_everything_cut_to_a_window(row: dict[str, Any]) -> None:
    """The paper's finite P2: optimum, W1 and end mass of its noise, and the true privacy in the summary."""
    half = row["D"]
    question = dp.Problem(
        support=dp.Integers(-half, half),
        objective=MinWassersteinRelaxation(law(row["input"]), cut={"from": -half, "to": half}),
        constraints=[dp.PureDP(row["epsilon"], row["sensitivity"], boundary="window")],
    )
    solution = dp.solve(question)
    assert solution.verified is OPTIMAL, solution.message
    assert abs(float(solution.value) - float(row["objective"])) <= 2e-9
    assert dp.verify(solution.certificate).holds
    weights, reach = solution.pmf.weights, row["sensitivity"]
    lost = max(sum(weights[:reach]), sum(weights[-reach:])) / solution.pmf.total
    assert float(lost) == pytest.approx(float(row["mass_of_outermost_m_points_per_side"]), rel=1e-5)
    # that mass is the noise's tight delta on the integers, and the summary gives it
    delta = dp.delta(solution.pmf, row["epsilon"], reach)
    assert abs(delta.upper - lost) <= Fraction(1, 10**30)
    assert f"delta {float(delta.upper):.6g}"[:12] in summary(solution)
    assert f"at epsilon {row['epsilon']}, sensitivity {reach}" in summary(solution)


def test_a_window_of_the_optimum_says_what_it_really_guarantees() -> None:
    """P1 with interior rows: proved optimal, and not private at any epsilon with delta 0."""
    question = dp.Problem(
        support=dp.Integers(-30, 30),
        objective=dp.MinWasserstein(dp.gaussian(0, 5)),
        constraints=[dp.PureDP(2, 15, boundary="window")],
    )
    solution = dp.solve(question)
    assert solution.verified is OPTIMAL
    assert abs(float(solution.value) - float(CUT_ROWS[0]["w1_of_that_noise"])) <= 2e-9
    assert "delta 0.0551745 at epsilon 2, sensitivity 15" in summary(solution)
    with pytest.raises(dp.InputError, match="delta: must be at least 0.0551"):
        dp.epsilon(solution.pmf, "0.055", 15)


@pytest.mark.parametrize("half", [20, 50])
def test_cut_cuts_on_all_integers(half: int) -> None:
    """The support need not be cut with the cuts: under pure DP a bounded cost has a proved optimum, at most E|Z|."""
    cut = {"from": -half, "to": half}
    question = dp.Problem(
        objective=MinWassersteinRelaxation(dp.gaussian(0, 5), cut=cut), constraints=[dp.PureDP(2, 15)]
    )
    solution = dp.solve(question)
    assert solution.verified is OPTIMAL
    assert 5.8 <= float(solution.value) <= 6.3794795519838
    assert dp.epsilon(solution.pmf, 0, 15).upper <= 2 + Fraction(1, 1 << 60)


def test_a_bounded_cost_is_refused_where_it_has_no_optimum() -> None:
    """Under (epsilon, delta) on all integers, as every bounded cost; without a cut it is E|Z| and is not bounded."""
    rows = [dp.ApproxDP(1, "0.01", 2)]
    objective = MinWassersteinRelaxation(dp.poisson(3), cut={"from": -5, "to": 5})
    with pytest.raises(dp.InputError, match="bounded cost on all integers has no attained optimum"):
        dp.Problem(objective=objective, constraints=rows)
    whole = dp.Problem(objective=MinWassersteinRelaxation(dp.poisson(3)), constraints=rows)
    plain = dp.Problem(objective=dp.MinExpectedCost("absolute"), constraints=rows)
    assert dp.solve(whole).value.upper == pytest.approx(dp.solve(plain).value.upper, rel=1e-9)


@pytest.mark.parametrize("objective", ["plain", "cut"])
def test_the_relaxation_is_data(objective: str, tmp_path: Path) -> None:
    """TOML without loss, equality and hash, from a pmf, a distribution or the TOML form."""
    cut = None if objective == "plain" else {"from": "-1/2", "to": 20}
    made = MinWassersteinRelaxation(dp.poisson(10), cut=cut)
    assert made == MinWassersteinRelaxation({"type": "poisson", "rate": 10}, cut=cut)
    assert len({made, MinWassersteinRelaxation(dp.poisson(10), cut=made.cut)}) == 1
    problem = dp.Problem(objective=made, constraints=[dp.PureDP(2, 3)], name="a name")
    path = tmp_path / "problem.toml"
    path.write_text(problem.to_toml(), encoding="utf-8")
    assert dp.load(path) == problem
    assert ("cut" in problem.to_dict()["objective"]) == (cut is not None)


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ({"from": 1}, "cut: must be {from = a, to = b}"),
        ({"from": 1, "to": 2, "step": 1}, "cut: must be {from = a, to = b}"),
        ([1, 2], r"cut: must be {from = a, to = b}, not \[1, 2\]"),
        ({"from": 3, "to": 2}, "cut.from: must not exceed cut.to = 2, not 3"),
        ({"from": "x", "to": 2}, "cut.from: must be a number"),
        ({"from": 0, "to": 10**7}, "cut: must end within 100000 lattice points of the input, not at 0..10000000"),
        ({"from": 10**30, "to": 10**30}, "cut: must end within 100000 lattice points of the input"),
        ({"from": "-1e9", "to": 0}, "cut: must end within 100000 lattice points of the input"),
    ],
)
def test_bad_cuts(cut: object, message: str) -> None:
    with pytest.raises(dp.InputError, match=message):
        cost_of(MinWassersteinRelaxation(dp.poisson(3), cut=cut))


def test_bad_inputs() -> None:
    infinite = dp.Pmf(0, (1,), tails=dp.Tails(1, right="1/2"))
    for given_input in (infinite, "poisson", dp.Pmf(0, (1, 1), step="1/2")):
        with pytest.raises(dp.InputError, match="input: must be "):
            MinWassersteinRelaxation(given_input)  # type: ignore[arg-type]
    for cut in (None, {"from": 0, "to": 1}):
        with pytest.raises(dp.InputError, match="the step 2/3 must be 1/n"):
            cost_of(MinWassersteinRelaxation(dp.poisson(3), cut=cut), dp.Lattice("2/3"))


# --- the bound of the Wasserstein objective on all integers ----------------------------------------------------------


BOUNDED = {
    "poisson": (dp.poisson(3), 1, 2),
    "gaussian": (dp.gaussian(0, 2), 2, 3),
    "two-points": (dp.table(0, [1, 0, 0, 0, 0, 0, 2]), 1, 3),
}


@cache
def solved(name: str) -> dp.Solution:
    """The optimum of one of the inputs."""
    given_input, epsilon, reach = BOUNDED[name]
    solution = dp.solve(dp.wasserstein(input=given_input, epsilon=epsilon, sensitivity=reach))
    assert solution.verified is OPTIMAL
    return solution


def private_noise(weights: list[int], at: int, epsilon: int, reach: int, loosened: Fraction) -> dp.Pmf:
    """The least epsilon-DP majorant of some masses: the max over j of w(j) r^ceil(|i-j|/m) for an r >= e^-epsilon."""
    tightest = Fraction(10**9, 2718281828) ** epsilon
    share = tightest + loosened * (1 - tightest)
    span = range(1 - reach, len(weights) + reach - 1)
    masses = [max(w * share ** -(-abs(i - j) // reach) for j, w in enumerate(weights)) for i in span]
    unit = lcm(*(mass.denominator for mass in masses))
    pmf = dp.Pmf(at + span[0], [int(mass * unit) for mass in masses], tails=dp.Tails(reach, share, share))
    assert dp.epsilon(pmf, 0, reach).upper <= epsilon
    return pmf


def in_floats(pmf: dp.Pmf, reach: int) -> np.ndarray:
    """Probabilities at -reach..reach."""
    return np.array([float(pmf.probability(k)) for k in range(-reach, reach + 1)])


def witness(solution: dp.Solution, reach: int) -> np.ndarray:
    """f at -reach..reach, from the slopes in the certificate: 1 to the right of the input's cuts, -1 to the left."""
    data = solution.certificate.data
    (slopes,) = [w for w in data["witnesses"] if w["of"] == "objective"]
    start, values = int(slopes["start"]), [int(v) / (1 << int(data["scale"])) for v in slopes["slopes"]]
    assert all(abs(v) <= 1 for v in values)
    rises = [
        -1.0 if k < start else 1.0 if k >= start + len(values) else values[k - start] for k in range(-reach, reach)
    ]
    return np.concatenate([[0.0], np.cumsum(rises)])


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDED)
@settings(max_examples=40, deadline=None)
@given(
    weights=st.lists(st.integers(0, 20), min_size=1, max_size=9).filter(any),
    at=st.integers(-8, 4),
    loosened=st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 50), Fraction(1, 5)]),
)
def test_no_private_noise_beats_the_bound(name: str, weights: list[int], at: int, loosened: Fraction) -> None:
    """W1 >= E[f(x + Z) - f(x)] >= bound for private noise of any shape: the two steps of the proof, in plain sums."""
    given_input, epsilon, reach = BOUNDED[name]
    noise = private_noise(weights, at, epsilon, reach, loosened)
    span = 120
    here, moving = in_floats(given_input.pmf, span), in_floats(noise, span)
    there = np.convolve(here, moving)  # at -2 span..2 span
    apart = np.cumsum(np.pad(here, span) - there)
    distance = np.abs(apart).sum()
    f = witness(solved(name), 2 * span)
    gained = float(there @ f - np.pad(here, span) @ f)
    far = 1e-9 + 4 * span * abs(1 - moving.sum())
    assert distance >= gained - far
    assert solved(name).bound is not None
    assert gained >= float(solved(name).bound) - far
    # the exact value, computed in another way, is the same
    value = solved(name).problem.objective_term.value(noise)
    assert float(value) == pytest.approx(distance, abs=far)
    assert value.upper >= solved(name).bound


@pytest.mark.parametrize("name", BOUNDED)
def test_the_witness_is_tight_at_the_optimum(name: str) -> None:
    """At the optimal noise both steps are equalities up to the gap."""
    span, solution = 120, solved(name)
    here, moving = in_floats(BOUNDED[name][0].pmf, span), in_floats(solution.pmf, span)
    f = witness(solution, 2 * span)
    gained = float(np.convolve(here, moving) @ f - np.pad(here, span) @ f)
    assert gained == pytest.approx(float(solution.value), abs=1e-7)


# --- every program from every backend --------------------------------------------------------------------------------

# (value, bound), relative: CBC prints eight digits of the pmf and of the multipliers, and the interior point of cvxpy
# stops at 1e-8; the references of the Wasserstein group have ten digits
LOOSENED = {"scipy": ("3e-9", "3e-8"), "pulp": ("1e-7", "2e-5"), "cvxpy": ("1e-8", "2e-6")}


def programs() -> list[Any]:
    """Every program of the groups staircase, window_lp and wasserstein with its reference value."""
    found = []
    for row in REFERENCE["staircase"]:
        for cost in ("absolute", "square") if row["kind"] == "optimum" else ():
            question = dp.Problem(
                objective=dp.MinExpectedCost(cost), constraints=[dp.PureDP(row["epsilon"], row["sensitivity"])]
            )
            found.append(("staircase", question, row[f"mean_{cost}"]))
    for row in REFERENCE["window_lp"]:
        found.append(("window_lp", on_window(dp.MinExpectedCost(row["cost"]), row), row["value"]))
    for row in REFERENCE["wasserstein"]:
        objective = dp.MinWasserstein(law(row["input"]))
        if "w1_optimal" in row and row["support"] == "all integers":
            constraints = [dp.PureDP(row["epsilon"], row["sensitivity"])]
            found.append(("wasserstein", dp.Problem(objective=objective, constraints=constraints), row["w1_optimal"]))
        elif "w1_optimal" in row:
            found.append(("wasserstein", on_window(objective, row), row["w1_optimal"]))
        else:
            cut = {"from": -row["D"], "to": row["D"]}
            relaxed = MinWassersteinRelaxation(law(row["input"]), cut=cut)
            found.append(("wasserstein", on_window(relaxed, row), row["objective"]))
    return [pytest.param(*program, id=f"{program[0]}-{i}") for i, program in enumerate(found)]


def on_window(objective: dp.Objective, row: dict[str, Any]) -> dp.Problem:
    """The objective of a row with interior rows on [-D, D]."""
    constraints = [dp.PureDP(row["epsilon"], row["sensitivity"], boundary="window")]
    return dp.Problem(support=dp.Integers(-row["D"], row["D"]), objective=objective, constraints=constraints)


@pytest.mark.slow
@pytest.mark.parametrize("backend", LOOSENED)
@pytest.mark.parametrize(("group", "question", "text"), programs())
def test_every_program_from_every_backend(group: str, question: dp.Problem, text: str, backend: str) -> None:
    """Proved, the value within the backend's digits of the reference, the reference between bound and value."""
    assert group in REFERENCE
    solution = dp.solve(question, backend)
    assert solution.backend == backend
    assert solution.verified in PROVED, solution.message
    assert all(check.holds for check in solution.checks)
    wanted, unit = Fraction(text), Fraction(10) ** -len(text.partition(".")[2])
    near, far = (wanted * Fraction(digits) for digits in LOOSENED[backend])
    assert wanted - unit - Fraction(1, 10**9) <= solution.value.lower <= solution.value.upper <= wanted + near + unit
    assert solution.bound is not None
    assert wanted - far - unit <= solution.bound <= wanted + unit + Fraction(1, 10**9)


def test_the_programs_are_all_there() -> None:
    groups = [parameter.values[0] for parameter in programs()]
    assert {group: groups.count(group) for group in groups} == {
        "staircase": 2 * sum(row["kind"] == "optimum" for row in REFERENCE["staircase"]),
        "window_lp": len(REFERENCE["window_lp"]),
        "wasserstein": len(REFERENCE["wasserstein"]),
    }
