"""The checker's bounds: closed forms are reached, and no multipliers whatever give more than the true optimum.

The true optimum comes from a closed form, or from an LP solved here in floats; the multipliers of that LP must
reach it, which fixes every sign and every factor of the weak duality that the checker evaluates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpopt.arithmetic import exp_enclosure
from dpopt.checker import derive
from dpopt.distributions import Distribution, poisson, table, uniform
from dpopt.errors import CertificateError

from .statements import ABSOLUTE, ONE, chain, event, function, integers, law, part, share, statement
from .statements import pairs as listed


def bound(*arguments: Any, **options: Any) -> float:
    found = derive(statement(*arguments, **options))["bound"]
    return -math.inf if found is None else float(Fraction(found))


def pairs(rows: Sequence[tuple[int, int]], values: Sequence[float]) -> dict[str, Any]:
    kept = [(row, round(y * ONE)) for row, y in zip(rows, values, strict=True) if y > 1e-13]
    return listed(*((i, j, y) for (i, j), y in kept))


def staircase(epsilon: str, m: int, r: int, centre: int = 0) -> dict[str, Any]:
    """Noise with mass 1 on the first r points of |z| < m and E_lo^-level beyond, tails of ratio 1/E_lo."""
    growth = exp_enclosure(Fraction(epsilon)).lower
    levels = [abs(i) // m + (abs(i) % m >= r) for i in range(1 - 2 * m, 2 * m)]
    weights = [str(growth.numerator ** (2 - level) * growth.denominator**level) for level in levels]
    ratio = str(1 / growth)
    tails = {"period": str(m), "left": ratio, "right": ratio}
    return {"start": str(1 - 2 * m + centre), "weights": weights, "step": "1", "tails": tails}


def closed_program(
    cost: Callable[[int], float], reach: int, m: int, epsilon: float, elastic: float | None = None
) -> tuple[Any, list[tuple[int, int]]]:
    """The tail-closed LP on -reach..reach; with `elastic`, its phase 1 for a mean of that value."""
    points, terms = range(-reach, reach + 1), int(45 / epsilon) + 5

    def folded(h: Callable[[int], float]) -> list[float]:
        column = []
        for k in points:
            side = [s for s, last in ((1, k > reach - m), (-1, k < m - reach)) if last]
            tails = sum(math.exp(-epsilon * t) * h(k + s * t * m) for s in side for t in range(1, terms))
            column.append(h(k) + tails)
        return column

    rows = [(i, j) for i in points for j in range(max(-reach, i - m), min(reach, i + m) + 1) if i != j]
    matrix = np.zeros((len(rows), len(points)))
    for place, (i, j) in enumerate(rows):
        matrix[place, i + reach], matrix[place, j + reach] = 1, -math.exp(epsilon)
    mass = folded(lambda k: 1.0)
    if elastic is None:
        found = linprog(folded(cost), matrix, np.zeros(len(rows)), [mass], [1])
    else:
        wide = np.hstack([matrix, np.zeros((len(rows), 2))])
        equal = [[*mass, 0, 0], [*folded(float), 1, -1]]
        found = linprog([0.0] * len(points) + [1, 1], wide, np.zeros(len(rows)), equal, [1, elastic])
    return found, rows


# --- pure DP on all integers -------------------------------------------------------------------------------------


def test_the_geometric_law_is_proved_optimal_by_its_chain_alone() -> None:
    done = derive(statement(staircase("1", 1, 1), {"type": "pure-dp", "epsilon": "1"}, chains=[chain(0, 0)]))
    expected = 1 / math.sinh(1)  # 2b/(1 - b^2)
    assert done["verified"] == "optimal"
    assert float(Fraction(done["value"][0])) == pytest.approx(expected, abs=1e-15)
    assert float(Fraction(done["bound"])) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("epsilon", "m", "r", "expected"),
    [("1", 5, 2, 4.786284298996885), ("2", 3, 1, 1.196000523), ("1/2", 2, 1, 3.943439839), ("4", 5, 1, 0.4863799969)],
)
@pytest.mark.parametrize("reach", [1, 3])
def test_staircases_are_proved_optimal(epsilon: str, m: int, r: int, expected: float, reach: int) -> None:
    dp = {"type": "pure-dp", "epsilon": epsilon, "sensitivity": str(m)}
    found, rows = closed_program(abs, reach * m, m, float(Fraction(epsilon)))
    entries = {"0": pairs(rows, -found.ineqlin.marginals)}
    done = derive(statement(staircase(epsilon, m, r), dp, entries=entries, chains=[chain(-reach * m, reach * m)]))
    assert done["verified"] == "optimal"
    assert float(Fraction(done["value"][0])) == pytest.approx(expected, rel=1e-9)


DIP = function("-2", ["2", "1", "0", "1", "2"], ["0", "-1"], ["16", "-4", "1/4"])
DIP_TRUSTED = {"objective": {"term": "cost", "function": DIP}}
DIP_OPTIMUM = 0.44314821969996


def dip(z: int) -> float:
    return abs(z) if z <= 2 else (z - 8) ** 2 / 4


def test_a_cost_that_dips_far_out_is_seen_by_the_horizon() -> None:
    """Section 4 of the theory: on the last block alone f >= 0 would prove 0.90653, twice the optimum."""
    results = {}
    for reach in (2, 4, 12):
        found, rows = closed_program(dip, reach, 1, 1.0)
        results[reach] = (
            found.fun,
            bound(
                staircase("1", 1, 1),
                {"type": "pure-dp", "epsilon": "1"},
                objective={"type": "dip"},
                trusted=DIP_TRUSTED,
                entries={"0": pairs(rows, -found.ineqlin.marginals)},
                chains=[chain(-reach, reach)],
            ),
        )
    assert results[2][0] == pytest.approx(0.906530, abs=1e-6)  # what the careless program believes
    assert results[2][1] <= DIP_OPTIMUM and results[4][1] <= DIP_OPTIMUM
    assert results[12][1] == pytest.approx(DIP_OPTIMUM, abs=1e-10) and results[12][1] <= DIP_OPTIMUM + 1e-13


def test_a_cost_that_falls_without_end_has_no_bound() -> None:
    grows = ["0", "-1"]  # on the left
    for tail, left in ((["0", "-1"], grows), (["5", "3", "-1/100"], grows), (["0", "1"], ["0", "0", "0", "1"])):
        cost = function("0", [], left, tail)
        trusted = {"objective": {"term": "cost", "function": cost}}
        for chains in ([], [chain(-3, 3)]):
            done = derive(
                statement(
                    staircase("1", 1, 1),
                    {"type": "pure-dp", "epsilon": "1"},
                    objective={"type": "mine"},
                    trusted=trusted,
                    chains=chains,
                )
            )
            assert done["bound"] is None and done["verified"] == "feasible"


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_multipliers_on_all_integers_bound_more_than_a_private_law_costs(data: st.DataObject) -> None:
    small = st.fractions(-3, 9, max_denominator=4)
    table = [str(v) for v in data.draw(st.lists(small, max_size=8))]
    slope = st.fractions(0, 2, max_denominator=8)
    left, right = data.draw(slope), data.draw(slope)
    start, sides = str(data.draw(st.integers(-6, 3))), [[str(data.draw(small)), str(grows)] for grows in (-left, right)]
    cost = function(start, table, *sides)
    m = data.draw(st.integers(1, 3))
    low = data.draw(st.integers(-6, 2))
    high = low + data.draw(st.integers(m - 1, 8))
    y = st.integers(0, 3 * ONE) | st.sampled_from([0, 1, 10**40])
    rows = st.tuples(st.integers(-9, 9), st.integers(-m, m).filter(bool), y)
    drawn = data.draw(st.lists(rows, max_size=8))
    entry = listed(*((i, i + s, w) for i, s, w in drawn))
    laws = [staircase("1/2", m, r, centre) for r in range(1, m + 1) for centre in (-5, -2, 0, 2, 5)]
    for pmf in laws:
        done = derive(
            statement(
                pmf,
                {"type": "pure-dp", "epsilon": "1/2", "sensitivity": str(m)},
                objective={"type": "mine"},
                trusted={"objective": {"term": "cost", "function": cost}},
                entries={"0": entry},
                chains=data.draw(st.sampled_from([[chain(low, high)], []])),
            )
        )
        assert done["bound"] is None or Fraction(done["bound"]) <= Fraction(done["value"][1])


def test_a_linear_row_joins_the_chain() -> None:
    """min E|Z| with mean 0 and multiplier 3/5: the reduced cost |z| - 3z/5 is an LP of the same shape."""
    m, reach, slack = 2, 8, 0.6
    found, rows = closed_program(lambda z: abs(z) - slack * z, reach, m, 1.0)
    assert found.fun < closed_program(abs, reach, m, 1.0)[0].fun - 0.01
    dp, mean = {"type": "pure-dp", "epsilon": "1", "sensitivity": "2"}, {"type": "mean", "equals": "0"}
    entries = {"0": pairs(rows, -found.ineqlin.marginals), "1": part(round(slack * ONE))}
    noise = staircase("1", 2, 1)
    assert bound(noise, dp, mean, entries=entries, chains=[chain(-reach, reach)]) == pytest.approx(found.fun, abs=1e-9)
    steep = {"1": part(2 * ONE)}  # |z| - 2z falls to the right
    assert bound(noise, dp, mean, entries=steep, chains=[chain(-reach, reach)]) == -math.inf
    with pytest.raises(CertificateError, match=r"constraints\[1\] \(mean\): the value 0 is beyond its limit by 0.5"):
        derive(statement(noise, dp, mean | {"equals": "1/2"}))


# --- infeasibility -----------------------------------------------------------------------------------------------


def infeasible(*constraints: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    return derive(statement(None, *constraints, **options))


def test_noise_below_the_optimum_is_proved_impossible() -> None:
    dp, small = {"type": "pure-dp", "epsilon": "1"}, {"type": "expectation", "of": "absolute", "at_most": "17/20"}
    done = infeasible(dp, small, entries={"1": part(-ONE)}, chains=[chain(0, 0)])
    assert done["verified"] == "infeasible" and done["value"] is None and done["checks"] == []
    assert float(Fraction(done["bound"])) == pytest.approx(1 / math.sinh(1) - 0.85, abs=1e-12)
    with pytest.raises(CertificateError, match="do not prove infeasibility"):
        infeasible(dp, small | {"at_most": "0.851"}, entries={"1": part(-ONE)}, chains=[chain(0, 0)])


def test_a_mean_that_only_a_small_core_excludes_is_not_infeasible() -> None:
    """E Z = 10, m = 5, epsilon = 1 (section 7): the finite programs up to N = 9 are infeasible, the question is not."""
    dp, mean = {"type": "pure-dp", "epsilon": "1", "sensitivity": "5"}, {"type": "mean", "equals": "10"}
    found, rows = closed_program(abs, 9, 5, 1.0, elastic=10.0)
    assert found.fun > 0.1  # phase 1 of the finite program: no solution there
    y = round(found.eqlin.marginals[1] * ONE)
    entries = {"0": pairs(rows, -found.ineqlin.marginals), "1": part(y)}
    assert y > 0
    for chains in ([chain(-9, 9)], [chain(-20, 20)], []):
        with pytest.raises(CertificateError, match="no bound at all"):
            infeasible(dp, mean, entries=entries, chains=chains)


def test_a_finite_support_excludes_what_it_cannot_hold() -> None:
    far = {"type": "mean", "at_least": "5"}
    done = infeasible(far, support=integers(-2, 2), entries={"0": part(ONE)})
    assert done["bound"] == "3"
    with pytest.raises(CertificateError, match="which is not above 0"):
        infeasible(far, support=integers(-2, 5), entries={"0": part(ONE)})
    with pytest.raises(CertificateError, match="does not have"):
        infeasible(far, support=integers(-2, 2), entries={"0": part(-ONE)})
    nothing = {"type": "forbidden", "values": ["0", "1"]}
    assert infeasible(nothing, support=integers(0, 1))["verified"] == "infeasible"


def test_the_objective_plays_no_part_in_an_infeasibility_proof() -> None:
    with pytest.raises(
        CertificateError, match=r"witnesses\[0\]\.of: must be a constraint: an infeasibility proof has no objective"
    ):
        infeasible(
            objective={"type": "min-wasserstein", "input": {"type": "uniform", "low": "0", "high": "3"}},
            entries={"objective": {"start": "0", "slopes": ["1", "1", "1"]}},
        )
    with pytest.raises(CertificateError, match="bound 0, which is not above 0"):
        infeasible(objective=ABSOLUTE)


# --- every kind of row, on a finite support ------------------------------------------------------------------------

LOW, HIGH, SHIFT = -4, 5, 2
POINTS = range(LOW, HIGH + 1)
COSTS = {str(k): str(Fraction((7 * k * k + 3 * k) % 11, 2)) for k in POINTS}
EPSILON = 0.5

CONSTRAINTS: dict[str, dict[str, Any]] = {
    "mean": {"type": "mean", "equals": "1/3"},
    "variance": {"type": "variance", "at_least": "1", "at_most": "3"},
    "moment": {"type": "second-moment", "at_least": "2"},
    "probability": {"type": "probability", "of": {"from": "2"}, "at_most": "1/3"},
    "forbidden": {"type": "forbidden", "values": ["1", "-3"]},
    "symmetric": {"type": "symmetric"},
    "unimodal": {"type": "unimodal", "mode": "1"},
    "window": {"type": "pure-dp", "epsilon": "1/2", "sensitivity": str(SHIFT), "boundary": "window"},
    "approx": {"type": "approx-dp", "epsilon": "1/2", "delta": "2/5", "sensitivity": str(SHIFT)},
}


def point_rows(kind: str) -> list[tuple[list[float], float, str]]:
    """The rows on p of the linear constraints: coefficients, right-hand side, '<' or '='."""
    if kind == "mean":
        return [([float(k) for k in POINTS], 1 / 3, "=")]
    if kind == "variance":
        h = [(k - 1 / 3) ** 2 for k in POINTS]
        return [(h, 3.0, "<"), ([-v for v in h], -1.0, "<")]
    if kind == "moment":
        return [([-float(k * k) for k in POINTS], -2.0, "<")]
    assert kind == "probability"
    return [([float(k >= 2) for k in POINTS], 1 / 3, "<")]


def pair_rows(kind: str) -> list[tuple[int, int, float]]:
    if kind == "symmetric":
        return [(k, -k, 1.0) for k in range(1, 6)]
    if kind == "unimodal":
        return [(k, k + (1 if k < 1 else -1), 1.0) for k in POINTS if k != 1]
    near = [(i, j) for i in POINTS for j in POINTS if i != j and abs(i - j) <= SHIFT]
    return [(i, j, math.exp(EPSILON)) for i, j in near]


def solve(
    kinds: Sequence[str], min_delta: bool = False, reach: tuple[int, int] = (LOW, HIGH), shift: int = SHIFT
) -> tuple[float, dict[str, Any], list[dict[str, Any]]]:
    """The optimum in floats, and its multipliers in the certificate's form (of the constraints, of the objective)."""
    low, high = reach
    points, shifts = range(low, high + 1), [s for s in range(-shift, shift + 1) if s]
    n, shifted = len(points), "approx" in kinds or min_delta
    events = [(s, k) for s in shifts for k in range(low - shift, high + shift + 1)] if shifted else []
    size = n + len(events) + 1
    upper: list[tuple[np.ndarray, float, tuple[Any, ...]]] = []
    equal: list[tuple[np.ndarray, float, tuple[Any, ...]]] = []

    def row(entries: Mapping[int, float]) -> np.ndarray:
        found = np.zeros(size)
        for place, value in entries.items():
            found[place] += value
        return found

    for kind in kinds:
        if kind in ("mean", "variance", "moment", "probability"):
            for h, side, sense in point_rows(kind):
                sign = -1 if kind == "moment" or (kind == "variance" and side < 0) else 1
                (equal if sense == "=" else upper).append((row(dict(enumerate(h))), side, (kind, sign)))
        elif kind in ("symmetric", "unimodal", "window"):
            for i, j, factor in pair_rows(kind):
                entries = {k - low: v for k, v in ((i, 1.0), (j, -factor)) if k in points}
                (equal if kind == "symmetric" else upper).append((row(entries), 0.0, (kind, i, j)))
    for place, (s, k) in enumerate(events):
        entries = {n + place: -1.0}
        entries |= {q - low: v for q, v in ((k, 1.0), (k - s, -math.exp(EPSILON))) if q in points}
        upper.append((row(entries), 0.0, ("event", s, k)))
    for s in shifts if shifted else []:
        entries = {n + place: 1.0 for place, (t, _) in enumerate(events) if t == s}
        upper.append((row(entries | ({size - 1: -1.0} if min_delta else {})), 0.0 if min_delta else 0.4, ("shift", s)))
    equal.append((row(dict.fromkeys(range(n), 1.0)), 1.0, ("mass",)))
    cost = row({size - 1: 1.0}) if min_delta else row({k - low: float(Fraction(COSTS[str(k)])) for k in points})
    closed = [(0, 0 if "forbidden" in kinds and k in (1, -3) else None) for k in points]
    matrices: dict[str, Any] = {}
    if upper:
        matrices = {"A_ub": np.array([r for r, _, _ in upper]), "b_ub": [b for _, b, _ in upper]}
    bounds = closed + [(0, None)] * (len(events) + 1)
    matrices |= {"A_eq": np.array([r for r, _, _ in equal]), "b_eq": [b for _, b, _ in equal]}
    found = linprog(cost, bounds=bounds, **matrices)
    if found.status == 2:
        return math.inf, {}, []
    y = {name: v for (_, _, name), v in zip(upper, -found.ineqlin.marginals, strict=True)} if upper else {}
    z = {name: v for (_, _, name), v in zip(equal, found.eqlin.marginals, strict=True)}
    return found.fun, *certificate_form(kinds, y, z, min_delta)


def certificate_form(
    kinds: Sequence[str], y: Mapping[Any, float], z: Mapping[Any, float], min_delta: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    def integer(value: float) -> str:
        return str(round(value * ONE))

    events = []
    for name in [name for name in y if name[0] == "shift"]:
        mu = max(round(y[name] * (1 - 1e-12) * ONE), 0)  # a sum of 1 + 1e-16 would be refused
        own = sorted((key[2], v) for key, v in y.items() if key[:2] == ("event", name[1]))
        weights = [min(max(round(v * ONE), 0), mu) for _, v in own]
        events.append(event(name[1], mu, own[0][0], weights))
    entries: dict[str, Any] = {}
    for index, kind in enumerate(kinds):
        if kind == "approx":
            entries[str(index)] = events
        elif kind == "symmetric":
            entries[str(index)] = listed(*((k, integer(-z[kind, k, -k])) for k in range(1, 6)))
        elif kind in ("unimodal", "window"):
            rows = [(i, j) for i, j, _ in pair_rows(kind)]
            entries[str(index)] = pairs(rows, [y[kind, i, j] for i, j in rows])
        elif kind == "mean":
            entries[str(index)] = part(integer(z[kind, 1]))
        elif kind != "forbidden":
            entries[str(index)] = part(integer(y.get((kind, -1), 0.0) - y.get((kind, 1), 0.0)))
    return entries, [share(one) for one in events] if min_delta else []


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        ("mean",),
        ("mean", "variance"),
        ("moment", "probability"),
        ("forbidden", "mean"),
        ("symmetric", "moment"),
        ("unimodal", "mean"),
        ("window",),
        ("window", "mean", "probability"),
        ("approx",),
        ("approx", "mean", "forbidden"),
        ("approx", "unimodal"),
    ],
)
def test_the_multipliers_of_a_linear_program_reach_its_optimum(kinds: tuple[str, ...]) -> None:
    optimum, entries, _ = solve(kinds)
    assert math.isfinite(optimum)
    assert dual_bound(kinds, entries) == pytest.approx(optimum, abs=1e-8)


def dual_bound(kinds: Sequence[str], entries: Mapping[str, Any]) -> float:
    """The bound alone: with cost - 1000 the infeasibility form proves `bound` from the same rows.

    A statement needs a pmf that meets everything, which random problems have no easy one of. So the objective is
    asked for as a constraint, E cost <= -1000, whose multiplier 1 makes the reduced costs those of the objective.
    """
    cost = {"type": "expectation", "of": {"table": COSTS}, "at_most": "-1000"}
    listed = [*(CONSTRAINTS[kind] for kind in kinds), cost]
    whole = dict(entries) | {str(len(kinds)): part(-ONE)}
    return float(Fraction(infeasible(*listed, support=integers(LOW, HIGH), entries=whole)["bound"]) - 1000)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.data())
def test_no_multipliers_bound_more_than_the_optimum(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(CONSTRAINTS)), unique=True, max_size=3))
    if "variance" in kinds and not {"mean"} & set(kinds):
        kinds.append("mean")
    optimum, entries, _ = solve(kinds)
    if not math.isfinite(optimum):
        return
    wild = st.integers(-3 * ONE, 3 * ONE) | st.sampled_from([0, 1, -1, 10**33, -(10**33)])
    tame = st.integers(-ONE // 50, ONE // 50)
    noise = data.draw(st.sampled_from([wild, tame]))

    def disturbed(entry: Any, kind: str) -> Any:
        if kind == "approx":
            found = []
            for one in entry:
                moved = [int(w) + data.draw(noise) for w in one["weights"]]
                found.append(one | {"weights": [str(min(max(w, 0), int(one["y"]))) for w in moved]})
            return found
        if kind == "symmetric":
            return listed(*((k, int(y) + data.draw(noise)) for k, y in entry["pairs"]))
        if kind in ("unimodal", "window"):
            legal = pair_rows(kind)
            chosen = data.draw(st.lists(st.sampled_from(legal), max_size=6))
            return listed(*entry["pairs"], *((i, j, abs(data.draw(noise))) for i, j, _ in chosen))
        y = int(entry["y"]) + data.draw(noise)
        return part(max(y, 0) if kind == "moment" else min(y, 0) if kind == "probability" else y)

    changed = {i: disturbed(entry, kinds[int(i)]) for i, entry in entries.items()}
    try:
        found = dual_bound(kinds, changed)
    except CertificateError as error:  # so bad that not even -1000 is proved impossible
        assert "do not prove infeasibility" in str(error)
        return
    assert found <= optimum + 1e-7


# --- min-delta and approximate DP ----------------------------------------------------------------------------------


def test_min_delta_of_the_truncated_laplace_law_is_optimal() -> None:
    """With m = 1 the best law on [-D, D] grows by e^epsilon from the edges to 0, and delta is its edge mass."""
    reach, growth = 4, exp_enclosure(Fraction(1, 2)).lower
    levels = [abs(k) for k in range(-reach, reach + 1)]
    weights = [str(growth.numerator ** (reach - level) * growth.denominator**level) for level in levels]
    pmf = {"start": str(-reach), "weights": weights, "step": "1", "tails": None}
    e = math.exp(0.5)
    expected = 1 / (e**reach + 2 * (e**reach - 1) / (e - 1))
    optimum, _, objective = solve((), min_delta=True, reach=(-reach, reach), shift=1)
    objective_data = {"type": "min-delta", "epsilon": "1/2"}
    done = derive(
        statement(pmf, support=integers(-reach, reach), objective=objective_data, entries={"objective": objective})
    )
    assert float(Fraction(done["value"][0])) == pytest.approx(expected, rel=1e-12)
    assert optimum == pytest.approx(expected, rel=1e-9) and done["verified"] == "optimal"


def test_a_sum_of_bounds_above_one_is_refused() -> None:
    shares = [share(event(s, ONE, 0, [])) for s in (1, -1)]
    options: dict[str, Any] = {"support": integers(0, 3), "objective": {"type": "min-delta", "epsilon": "1"}}
    with pytest.raises(CertificateError, match="sum above 1"):
        bound(law(0, [1]), entries={"objective": shares}, **options)
    assert bound(law(0, [1]), entries={"objective": shares[:1]}, **options) == 0


def test_approximate_dp_on_all_integers() -> None:
    """Events run on beyond the tables as constants; the reduced cost there is |z| - (E - 1) mu."""
    dp = {"type": "approx-dp", "epsilon": "1", "delta": "1/10"}
    growth = exp_enclosure(Fraction(1)).lower
    weights = [growth.denominator, growth.numerator, growth.denominator]
    pmf = {"start": "-1", "weights": [str(w) for w in weights], "step": "1", "tails": None}
    loose = dp | {"delta": "1/4"}
    one, two = event(1, ONE, 0, [], left=ONE), event(-1, ONE, 1, [], right=ONE)
    value = derive(statement(pmf, loose))["value"][0]
    found = bound(pmf, loose, entries={"0": [one, two]})
    e = math.e
    reduced = [abs(z) + (z < 0) - e * (z + 1 < 0) + (z >= 1) - e * (z - 1 >= 1) for z in range(-9, 10)]
    expected = min(reduced) - 2 / 4
    assert found == pytest.approx(expected, abs=1e-12) and found <= float(Fraction(value))


def test_constant_tails_cap_the_bound() -> None:
    """With a bounded cost the reduced cost far out is 1 - (E_hi - 1) w on the side whose events run on."""
    high = exp_enclosure(Fraction(1), 32).upper
    point = {"start": "0", "weights": ["1"], "step": "1", "tails": None}
    dp, cost = {"type": "approx-dp", "epsilon": "1", "delta": "1"}, {"type": "min-expected-cost", "cost": "error"}
    for side, other, shift in (("left", "right", "1"), ("right", "left", "-1"), ("right", "left", "1")):
        events = event(int(shift), ONE, 0, []) | {side: str(ONE), other: "0"}
        data = statement(point, dp, objective=cost, entries={"0": events}, precision="32")
        inside = -high if (side, shift) == ("right", "1") else 0  # index -1 feeds the first event, 0 onwards both
        assert Fraction(derive(data)["bound"]) == min(1 + 1 - high, 1 + inside, 1 - high * (inside != 0)) - 1


def test_pairs_use_the_upper_end() -> None:
    high = exp_enclosure(Fraction(1), 32).upper
    pmf = {"start": "0", "weights": ["1", "1"], "step": "1", "tails": None}
    dp = {"type": "pure-dp", "epsilon": "1", "boundary": "window"}
    zero = {"type": "min-expected-cost", "cost": {"polynomial": []}}
    entries = {"0": listed((0, 1, ONE))}
    data = statement(pmf, dp, objective=zero, entries=entries, support=integers(0, 1), precision="32")
    assert Fraction(derive(data)["bound"]) == -high


def test_a_forbidden_point_is_no_column_on_all_integers_either() -> None:
    pmf = {"start": "-2", "weights": ["1", "0", "0", "0", "1"], "step": "1", "tails": None}
    done = derive(statement(pmf, {"type": "forbidden", "values": ["0", "-1", "1"]}))
    assert done["bound"] == "2" and done["verified"] == "optimal"


# --- entropy -------------------------------------------------------------------------------------------------------


def test_the_uniform_law_has_the_largest_entropy() -> None:
    pmf = {"start": "-5", "weights": ["1"] * 11, "step": "1", "tails": None}
    done = derive(statement(pmf, support=integers(-5, 5), objective={"type": "max-entropy"}))
    assert done["verified"] == "optimal" and done["bound"] == done["value"][1]
    assert Fraction(done["value"][0]) < Fraction(str(math.log(11))) + Fraction(1, 10**12)
    single = {"start": "0", "weights": ["3"], "step": "1", "tails": None}
    done = derive(statement(single, support=integers(0, 0), objective={"type": "max-entropy"}))
    assert done["value"] == ["0", "0"] and done["bound"] == "0" and done["verified"] == "optimal"


def test_the_discrete_gaussian_has_the_largest_entropy_at_its_variance() -> None:
    beta, reach = Fraction(1, 10), 9
    weights = [round(math.exp(-float(beta) * k * k) * 2**50) for k in range(-reach, reach + 1)]
    variance = Fraction(sum(w * k * k for w, k in zip(weights, range(-reach, reach + 1), strict=True)), sum(weights))
    pmf = {"start": str(-reach), "weights": [str(w) for w in weights], "step": "1", "tails": None}
    rows = {"type": "symmetric"}, {"type": "variance", "at_most": str(variance)}
    options: dict[str, Any] = {"support": integers(-reach, reach), "objective": {"type": "max-entropy"}}
    done = derive(statement(pmf, *rows, entries={"1": part(int(-beta * ONE))}, **options))
    assert done["verified"] == "optimal"
    for y in (0, -1, -ONE, -(10**60), -(10**200)):
        value = derive(statement(pmf, *rows, entries={"1": part(y)}, **options))
        assert Fraction(value["bound"]) >= Fraction(done["value"][0])
    with pytest.raises(CertificateError, match="sign of a bound"):
        derive(statement(pmf, *rows, entries={"1": part(1)}, **options))


@pytest.mark.timeout(20)
def test_a_multiplier_of_any_size_is_decided_at_once() -> None:
    """Where the other terms are e^-(2^40) of the largest, no precision shows that the bound is no multiple of 2^-64."""
    options: dict[str, Any] = {"support": integers(-3, 3), "objective": {"type": "max-entropy"}}
    pmf, mean = law(-3, [1] * 7), {"type": "mean", "equals": "0"}
    for exponent in (12, 40, 200, 4000):
        found = Fraction(derive(statement(pmf, mean, entries={"0": part(-ONE << exponent)}, **options))["bound"])
        assert 3 << exponent < found <= (3 << exponent) + Fraction(1, 1 << 64)


# --- Wasserstein ---------------------------------------------------------------------------------------------------


def test_a_point_input_makes_the_distance_the_mean_absolute_noise() -> None:
    objective = {"type": "min-wasserstein", "input": {"type": "point", "at": "7"}}
    noise, dp = staircase("1", 1, 1), {"type": "pure-dp", "epsilon": "1"}
    done = derive(statement(noise, dp, objective=objective, chains=[chain(0, 0)]))
    plain = derive(statement(noise, dp, chains=[chain(0, 0)]))
    assert done["value"] == plain["value"] and done["bound"] == plain["bound"] and done["verified"] == "optimal"


@pytest.mark.parametrize(
    ("source", "law"),
    [
        ({"type": "uniform", "low": "-3", "high": "5"}, uniform(-3, 5)),
        ({"type": "poisson", "rate": "2"}, poisson(2)),
        ({"type": "table", "low": "4", "weights": ["5", "0", "0", "1", "1/3"]}, table(4, (5, 0, 0, 1, "1/3"))),
    ],
)
@pytest.mark.parametrize("step", ["1", "1/2"])
def test_slopes_of_the_linear_program_reach_its_distance(source: dict[str, Any], law: Distribution, step: str) -> None:
    """The inner LP over the noise for fixed slopes must give the same number as the chain."""
    pmf = law.pmf
    fine = Fraction(step).denominator
    x = {(pmf.start + i) * fine: w / sum(pmf.weights) for i, w in enumerate(pmf.weights)}
    first, last = min(x), max(x)
    middle = sum(k * w for k, w in x.items())
    slopes = {k: math.tanh((k - middle) / 3) if k % 3 else math.cos(k) for k in range(first, last)}

    def cdf(k: int) -> float:
        return sum(w for point, w in x.items() if point <= k)

    def cost(j: int) -> float:
        inner = sum(s * (cdf(k) - cdf(k - j)) for k, s in slopes.items())
        outer = sum(w * (max(first - j - p, 0) + max(p + j - last, 0)) for p, w in x.items())
        return (inner + outer) / fine

    values = [str(round(slopes[k] * ONE)) for k in range(first, last)]
    private = {"type": "pure-dp", "epsilon": "1", "sensitivity": str(Fraction(2, fine))}
    for reach in (6, 40):
        found, rows = closed_program(cost, reach, 2, 1.0)
        reached = bound(
            staircase("1", 2, 1) | {"step": step},
            private,
            support={"type": "lattice", "step": step},
            objective={"type": "min-wasserstein", "input": source},
            entries={
                "objective": {"start": str(first), "slopes": values},
                "0": pairs(rows, -found.ineqlin.marginals),
            },
            chains=[chain(-reach, reach)],
        )
        assert reached <= found.fun + 1e-9
    assert reached == pytest.approx(found.fun, abs=1e-7)  # the larger core leaves nothing to the horizon


def test_steep_slopes_are_refused() -> None:
    objective = {"type": "min-wasserstein", "input": {"type": "uniform", "low": "0", "high": "2"}}
    for values, message in ((["0", str(ONE + 1)], "must be at most"), (["0"] * 3, "more than 2 entries")):
        with pytest.raises(CertificateError, match=message):
            bound(staircase("1", 1, 1), objective=objective, entries={"objective": {"start": "0", "slopes": values}})
    with pytest.raises(CertificateError, match="must be the input's first point, index 0"):
        bound(staircase("1", 1, 1), objective=objective, entries={"objective": {"start": "1", "slopes": []}})


@pytest.mark.parametrize("epsilon", [20, 40, 60])
def test_a_cost_that_is_never_negative_has_no_bound_below_zero(epsilon: int) -> None:
    """Where float multipliers are too coarse for an optimum of e^-epsilon, no multipliers at all prove 0."""
    import dpopt as dp

    solution = dp.solve(dp.wasserstein(input=dp.poisson(3), epsilon=epsilon, sensitivity=2))
    assert solution.bound is not None and 0 <= solution.bound <= solution.value.upper
