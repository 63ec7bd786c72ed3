"""Targets: the reference table, both ends by a second method, every choice, and certificates changed field by field."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt as dp
from dpopt.checker import certify, derive
from dpopt.designing.targeting import least

VALUES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "targeted.json").read_text(encoding="utf-8"))
OPTIMAL = dp.Verified.OPTIMAL
THENS = (None, "min-delta", "min-variance", "max-entropy")


@cache
def answered(epsilon: Any, delta: str, family: str, sensitivity: int = 1, then: str | None = None) -> dp.Solution:
    """One solve for each question asked in this file."""
    return dp.solve(dp.target(epsilon=epsilon, delta=delta, family=family, sensitivity=sensitivity, then=then))


def unit(text: str) -> Fraction:
    """One unit of the last digit printed."""
    mantissa, _, exponent = text.partition("e")
    return Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


# --- second methods, in floats ---------------------------------------------------------------------------------------


def divergence(p: np.ndarray, epsilon: float, m: int) -> float:
    """The worst hockey-stick divergence over all shifts and directions, by its definition."""
    worst = 0.0
    for s in range(1, m + 1):
        padded = np.concatenate([p, np.zeros(s)])
        moved = np.concatenate([np.zeros(s), p])
        for a, b in ((padded, moved), (moved, padded)):
            worst = max(worst, float(np.maximum(a - math.exp(epsilon) * b, 0).sum()))
    return worst


def member(half: int, gamma: float) -> np.ndarray:
    """e^(-gamma z^2) on [-half, half], normalised."""
    z = np.arange(-half, half + 1)
    p = np.exp(-gamma * z * z)
    return p / p.sum()


def analytic_delta(half: int, epsilon: float, m: int) -> float:
    """What the paper's rule reaches at this D; 1 where it has no member."""
    if 2 * half <= m:
        return 1.0
    return divergence(member(half, epsilon / (m * (2 * half - m))), epsilon, m)


def best_delta(half: int, epsilon: float, m: int) -> float:
    """The best of the family on a grid of rates, fine enough for a few parts in 10^4, and at the exact breakpoints."""
    top = 2 * epsilon / m + 1e-9
    points = [epsilon / (m * (2 * j - m)) for j in range(half, 0, -1) if 2 * j > m]
    return min(divergence(member(half, g), epsilon, m) for g in [0.0, *points, *np.linspace(0, top, 300)])


def least_delta_of_any(half: int, epsilon: float, m: int) -> float:
    """The smallest delta of any pmf on [-half, half] as a linear program, rows written by hand."""
    n = 2 * half + 1
    shifts = [s for s in range(-m, m + 1) if s]
    rows, columns = [], n + len(shifts) * n + 1
    for number, s in enumerate(shifts):
        total = np.zeros(columns)
        for k in range(n):
            row = np.zeros(columns)
            row[k] = 1
            if 0 <= k - s < n:
                row[k - s] -= math.exp(epsilon)
            row[n + number * n + k] = -1
            rows.append(row)
            total[n + number * n + k] = 1
        total[-1] = -1
        rows.append(total)
    cost, mass = np.zeros(columns), np.zeros((1, columns))
    cost[-1], mass[0, :n] = 1, 1
    found = linprog(cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=mass, b_eq=[1], method="highs")
    assert found.status == 0
    return float(found.fun)


SMALLEST: dict[str, Callable[[int, float, int], float]] = {
    "analytic": analytic_delta, "tablebuilder": best_delta, "any": least_delta_of_any,
}  # fmt: skip


# --- the reference table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", VALUES, ids=lambda r: f"{r['family'][:3]}-{r['epsilon']}-{r['target_delta']}")
def test_reference_targets(row: dict[str, Any]) -> None:
    """D, gamma, V and delta of the paper's routine and of the best pmf, to the digits printed."""
    family = "any" if row["family"] == "any pmf" else "analytic"
    solution = answered(row["epsilon"], row["target_delta"], family)
    design = solution.design
    assert solution.verified is OPTIMAL and design is not None, solution.message
    assert row["D"] == design.D
    assert design.delta.lower <= design.delta.upper <= Fraction(row["target_delta"])
    assert abs(design.delta.upper - Fraction(row["achieved_delta"])) <= unit(row["achieved_delta"])
    assert design.gamma == (Fraction(row["gamma"]) if "gamma" in row else None)
    if "V" in row:
        assert abs(design.V - Fraction(row["V"])) <= unit(row["V"])
    assert dp.verify(solution.certificate.data).holds


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [("1", "1e-6"), ("1", "1e-8"), ("0.1", "1e-6"), ("3", "0.2"), ("0.01", "0.4"), ("1/3", "0.0123")],
)
def test_any_pmf_by_its_closed_form(epsilon: str, delta: str) -> None:
    """D = ceil(ln(((e^epsilon - 1)/delta + 2)/(e^epsilon + 1)) / epsilon), theory section 5."""
    e, d = float(Fraction(epsilon)), float(Fraction(delta))
    exact = math.log((math.expm1(e) / d + 2) / (math.exp(e) + 1)) / e
    assert abs(exact - round(exact)) > 1e-6, "too near an integer for floats"
    assert math.ceil(exact) == answered(epsilon, delta, "any").design.D


# --- both ends -------------------------------------------------------------------------------------------------------

CASES = [
    (1, "1e-3", 1), ("0.5", "0.1", 2), ("0.7", "0.05", 1), (1, "0.05", 3), (2, "1e-4", 2), ("1", "0.9", 1),
    ("1/100", "0.1", 1), (4, "1e-6", 1),
]  # fmt: skip


@pytest.mark.parametrize("family", list(SMALLEST))
@pytest.mark.parametrize(("epsilon", "delta", "m"), CASES)
def test_both_ends(epsilon: Any, delta: str, m: int, family: str) -> None:
    """The design's own floats reach the target at D; at D - 1 the best of the family does not."""
    solution = answered(epsilon, delta, family, m)
    design = solution.design
    assert solution.verified is OPTIMAL and design is not None, solution.message
    e, d = float(Fraction(epsilon)), float(delta)
    assert (solution.pmf.start, solution.pmf.end) == (-design.D, design.D)
    assert divergence(solution.pmf.probabilities(), e, m) <= d * (1 + 1e-9)
    assert divergence(solution.pmf.probabilities(), e, m) == pytest.approx(float(design.delta), rel=1e-9)
    assert float(design.V) == pytest.approx(
        float(solution.pmf.probabilities() @ np.arange(-design.D, design.D + 1) ** 2), rel=1e-9
    )
    assert SMALLEST[family](design.D, e, m) == pytest.approx(float(design.delta), rel=1e-6)
    if design.D > 0:
        assert SMALLEST[family](design.D - 1, e, m) > d
    assert solution.value == (design.D, design.D) and solution.bound == design.D and solution.gap == 0


@pytest.mark.parametrize(("epsilon", "delta", "m"), CASES)
def test_wider_families_need_no_more(epsilon: Any, delta: str, m: int) -> None:
    """Any pmf does with the least D, the paper's rule needs the most."""
    needed = [answered(epsilon, delta, family, m).design.D for family in ("any", "tablebuilder", "analytic")]
    assert needed == sorted(needed)


@pytest.mark.parametrize("family", list(SMALLEST))
def test_epsilon_zero_is_the_uniform_law(family: str) -> None:
    """delta = 1/(2D + 1) at epsilon 0: D = 5 for 0.1, D = 50 for 0.0099999; sensitivity 2 needs twice the width."""
    for delta, m, half in (("0.1", 1, 5), ("0.0099999", 1, 50), ("0.2", 2, 5)):
        solution = answered(0, delta, family, m)
        assert solution.verified is OPTIMAL, solution.message
        assert half == solution.design.D
        uniform = m / (2 * half + 1)  # at sensitivity 2 other pmfs do a little better
        assert float(solution.design.delta.upper) <= uniform * (1 + 1e-6)
        assert float(solution.design.delta.upper) == pytest.approx(uniform, rel=1e-6) or (family, m) == ("any", 2)


@pytest.mark.parametrize("family", list(SMALLEST))
@pytest.mark.parametrize("delta", ["0.9999999", "0.67", "1/3"])
def test_delta_close_to_one(family: str, delta: str) -> None:
    """Half a step is the least there is: D = 1 at sensitivity 1 for every delta between p(1)'s and 1."""
    solution = answered(1, delta, family)
    assert solution.verified is OPTIMAL and solution.design.D == 1
    assert SMALLEST[family](1, 1.0, 1) <= float(Fraction(delta))


@pytest.mark.timeout(10)
@pytest.mark.parametrize("family", list(SMALLEST))
@pytest.mark.parametrize(("epsilon", "delta", "half"), [(50, "1e-20", 1), (700, "1e-200", 1), (700, "1e-310", 2)])
def test_huge_epsilon(epsilon: int, delta: str, half: int, family: str) -> None:
    """One step each side leaves e^-epsilon, a second one far less: the digits of p(0) must not drown it."""
    solution = answered(epsilon, delta, family)
    assert solution.verified in (OPTIMAL, dp.Verified.FEASIBLE), solution.message
    assert half == solution.design.D
    assert 0 < solution.design.delta.upper <= Fraction(delta)
    assert dp.verify(solution.certificate.data).holds


def test_tiny_epsilon_is_nearly_uniform() -> None:
    """epsilon = 1e-9 needs the same support as epsilon = 0 when delta is not at the edge."""
    for family in SMALLEST:
        assert answered("1e-9", "0.1", family).design.D == 5
    assert least_delta_of_any(4, 1e-9, 1) > 0.1


@pytest.mark.timeout(10)
@pytest.mark.parametrize("exponent", [20, 40, 100])
def test_tiny_delta_of_any_pmf(exponent: int) -> None:
    """delta = 1e-40 is below the width of a 128-bit e^epsilon: the closed form's D all the same."""
    solution = answered(1, f"1e-{exponent}", "any")
    assert solution.verified in (OPTIMAL, dp.Verified.FEASIBLE), solution.message
    assert math.ceil(math.log(math.expm1(1) / (math.e + 1)) + exponent * math.log(10)) == solution.design.D
    assert solution.design.delta.upper <= Fraction(1, 10**exponent)


@pytest.mark.timeout(10)
def test_tiny_delta_of_the_rule() -> None:
    """delta = 1e-100: ln of the paper's sum 2 sum e^(k (2D - k)/(2D - 1)) + e^(D^2/(2D - 1)) passes 100 ln 10 at D."""

    def inverse(d: int) -> float:
        terms = [math.exp(k * (2 * d - k) / (2 * d - 1) - 250) for k in range(d)]
        return 250 + math.log(2 * math.fsum(terms) + math.exp(d * d / (2 * d - 1) - 250))

    solution = answered(1, "1e-100", "analytic")
    assert solution.verified is OPTIMAL, solution.message
    assert inverse(solution.design.D) >= 100 * math.log(10) > inverse(solution.design.D - 1)


# --- then ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "m"), [(1, "1e-3", 1), ("0.5", "0.1", 2), ("0.7", "0.05", 1), (1, "0.05", 3), (1, "0.9", 1)]
)
@pytest.mark.parametrize("family", ["tablebuilder", "any"])
def test_every_choice(epsilon: Any, delta: str, m: int, family: str) -> None:
    """The same D; each choice is at least as good as the others in what it is for, and really reaches the target."""
    found = {then: answered(epsilon, delta, family, m, then) for then in THENS}
    for then, solution in found.items():
        assert solution.verified is OPTIMAL, (then, solution.message)
        assert divergence(solution.pmf.probabilities(), float(Fraction(epsilon)), m) <= float(delta) * (1 + 1e-9)
        assert solution.pmf.mean == 0
        assert dp.verify(solution.certificate.data).holds
    assert len({s.design.D for s in found.values()}) == 1
    assert found[None].pmf == found["min-delta"].pmf
    near = 1 + 1e-6
    for solution in found.values():
        assert float(found["min-delta"].design.delta.lower) <= float(solution.design.delta.upper) * near
        assert float(found["min-variance"].design.V) <= float(solution.design.V) * near
        assert float(found["max-entropy"].pmf.entropy) >= float(solution.pmf.entropy) - 2e-6


def test_min_variance_in_the_family_is_at_the_edge() -> None:
    """The largest rate that reaches the target: a slightly larger one does not, in floats; max-entropy: the least."""
    for then, factor in (("min-variance", 1 + 1e-6), ("max-entropy", 1 - 1e-6)):
        design = answered(1, "1e-3", "tablebuilder", 1, then).design
        assert divergence(member(design.D, float(design.gamma)), 1.0, 1) <= 1e-3 * (1 + 1e-9)
        assert divergence(member(design.D, float(design.gamma) * factor), 1.0, 1) > 1e-3


@pytest.mark.timeout(10)
@pytest.mark.parametrize(("epsilon", "delta", "m"), [(0, "0.1", 1), (1, "0.9", 2)], ids=["epsilon-0", "wide-shift"])
def test_min_variance_where_the_uniform_pmf_is_the_only_breakpoint(epsilon: Any, delta: str, m: int) -> None:
    """The search for a failing rate beyond the uniform pmf's has to end: some rate above 0 does fail."""
    solution = dp.solve(
        dp.target(epsilon=epsilon, delta=delta, family="tablebuilder", sensitivity=m, then="min-variance")
    )
    design = solution.design
    assert solution.verified is OPTIMAL, solution.message
    assert divergence(member(design.D, float(design.gamma)), float(epsilon), m) <= float(delta) * (1 + 1e-9)
    assert divergence(member(design.D, float(design.gamma) * (1 + 1e-6) + 1e-9), float(epsilon), m) > float(delta)


@pytest.mark.parametrize("then", THENS[1:])
def test_analytic_leaves_no_choice(then: str) -> None:
    """The paper's rule has one design for each D."""
    with pytest.raises(dp.InputError, match=r"^then: is not for family 'analytic'"):
        dp.target(epsilon=1, delta="0.1", family="analytic", then=then)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"delta": 0}, "delta: must lie strictly between 0 and 1, not 0"), ({"delta": 1}, "delta: must lie strictly"),
    ({"delta": "-0.1"}, "delta: must lie strictly"), ({"epsilon": -1}, "epsilon: must be at least 0, not -1"),
    ({"epsilon": 701}, "epsilon: must be at most 700"),
    ({"family": "normal"}, "family: must be one of analytic, tablebuilder, any"),
    ({"family": None}, "family: must be one of"), ({"then": "cheapest"}, "then: must be one of min-delta"),
    ({"sensitivity": "0.5"}, "sensitivity: must be at least 1"), ({"sensitivity": 0}, "sensitivity: must be positive"),
    ({"name": 3}, "name: must be text"),
])  # fmt: skip
def test_wrong_targets(arguments: dict[str, Any], message: str) -> None:
    """Each wrong argument is named with what would be right."""
    with pytest.raises(dp.InputError) as caught:
        dp.target(**{"epsilon": 1, "delta": "0.1", "family": "any", **arguments})
    assert str(caught.value).startswith(message)


def test_a_target_beyond_all_supports_is_failed_with_a_way_out() -> None:
    """No support up to a million reaches delta 1e-9 at epsilon 0 within the family... said, not searched for ever."""
    solution = dp.solve(dp.target(epsilon=0, delta="1e-9", family="analytic"))
    assert solution.verified is dp.Verified.FAILED
    assert "choose a larger epsilon or delta" in solution.message
    with pytest.raises(dp.NotVerifiedError):
        _ = solution.pmf


def test_the_least_that_works() -> None:
    """The search finds the least D from any guess, for any threshold."""
    for threshold in range(40):
        for guess in (0, 1, 5, 39, 64):
            calls: list[int] = []

            def works(d: int, t: int = threshold, calls: list[int] = calls) -> bool:
                calls.append(d)
                return d >= t

            assert least(works, guess) == threshold
            assert len(calls) <= 20


def test_solutions_pickle_and_print() -> None:
    """A design survives pickling, and both printed forms name D."""
    solution = answered(1, "1e-3", "tablebuilder")
    other = pickle.loads(pickle.dumps(solution))
    assert other.design == solution.design and other.pmf == solution.pmf and other.certificate == solution.certificate
    assert "9" in str(solution) and "tablebuilder" in str(solution)


# --- certificates, field by field ------------------------------------------------------------------------------------


def changed(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one field replaced."""
    found = copy.deepcopy(data)
    *outer, last = path.split(".")
    place: Any = found
    for key in outer:
        place = place[int(key) if isinstance(place, list) else key]
    place[last] = value
    return found


FAMILY = (1, "1e-3", "tablebuilder")  # D = 9, gamma = 1/15
RULE = (1, "1e-3", "analytic")  # D = 10, gamma = 1/19
BRACKET = (1, "1e-3", "tablebuilder", 1, "min-variance")
NARROW = (1, "1e-3", "tablebuilder", 1, "max-entropy")
ANY = (1, "1e-3", "any")  # D = 7
ANY_TWO = ("0.5", "0.1", "any", 2, "min-variance")

WRONG: list[tuple[tuple[Any, ...], str, Any]] = [
    (FAMILY, "D", "8"), (FAMILY, "D", "10"), (FAMILY, "D", "0"), (FAMILY, "D", "-9"), (FAMILY, "D", "9.5"),
    (FAMILY, "D", 9), (FAMILY, "D", None),
    (FAMILY, "D", "9" * 30), (FAMILY, "gamma", "1/17"), (FAMILY, "gamma", "1/16"), (FAMILY, "gamma", "0"),
    (FAMILY, "gamma", "-1/15"),
    (FAMILY, "gamma", None), (FAMILY, "gamma", "1/0"), (FAMILY, "gamma", "100000"), (FAMILY, "gamma", "x"),
    (FAMILY, "refuted_gamma", "1/13"), (FAMILY, "design", {}), (FAMILY, "refutation", {}),
    (FAMILY, "target.epsilon", "9/10"), (FAMILY, "target.epsilon", "11/10"), (FAMILY, "target.delta", "1/2000"),
    (FAMILY, "target.delta", "1/100"),
    (FAMILY, "target.family", "analytic"), (FAMILY, "target.family", "any"), (FAMILY, "target.sensitivity", "2"),
    (FAMILY, "target.then", "min-variance"),
    (FAMILY, "target.then", "other"), (FAMILY, "target.delta", "1"), (FAMILY, "target.sensitivity", "1/2"),
    (FAMILY, "target.epsilon", "-1"), (FAMILY, "target.epsilon", 1), (FAMILY, "target.family", ["any"]),
    (FAMILY, "target", None), (FAMILY, "target.extra", "1"), (FAMILY, "extra", "1"),
    (FAMILY, "format", "dpopt-certificate/0"), (FAMILY, "format", "dpopt-certificate/1"),
    (FAMILY, "kind", "solution"), (FAMILY, "kind", "aim"),
    (FAMILY, "derived.D", "8"), (FAMILY, "derived.V", "7"), (FAMILY, "derived.value", ["8", "9"]),
    (FAMILY, "derived.bound", "8"),
    (FAMILY, "derived.delta", ["0", "1/1000"]), (FAMILY, "derived.verified", "feasible"),
    (FAMILY, "derived.checks", []), (FAMILY, "derived", None),
    (FAMILY, "derived.then", {"gamma": "1/15"}),
    (RULE, "D", "9"), (RULE, "D", "11"), (RULE, "gamma", "1/17"), (RULE, "target.epsilon", "2"),
    (RULE, "target.delta", "1/10"),
    (RULE, "refuted_gamma", "1"), (RULE, "derived.D", "11"), (RULE, "target.family", "tablebuilder"),
    (BRACKET, "gamma", "1/15"), (BRACKET, "refuted_gamma", "1/15"), (BRACKET, "refuted_gamma", "1/2"),
    (BRACKET, "refuted_gamma", None),
    (BRACKET, "refuted_gamma", "1/100"), (BRACKET, "target.then", "max-entropy"),
    (BRACKET, "target.then", "min-delta"), (BRACKET, "derived.then", None),
    (BRACKET, "target.delta", "1/999"),
    (NARROW, "refuted_gamma", "1/18"), (NARROW, "refuted_gamma", "0"), (NARROW, "refuted_gamma", None),
    (NARROW, "gamma", "1/15"),
    (ANY, "D", "6"), (ANY, "D", "8"), (ANY, "gamma", "1/15"), (ANY, "refuted_gamma", "1"), (ANY, "design", None),
    (ANY, "refutation", None),
    (ANY, "target.epsilon", "2"), (ANY, "target.delta", "1/10000"), (ANY, "target.delta", "1/2"),
    (ANY, "target.then", "min-variance"),
    (ANY, "design.problem.support.high", "8"), (ANY, "design.problem.objective.epsilon", "2"),
    (ANY, "design.laws.0.weights", ["1"] * 15),
    (ANY, "design.derived", None), (ANY, "design.derived.bound", "0"), (ANY, "refutation.derived.bound", "1"),
    (ANY, "refutation.kind", "infeasible"),
    (ANY, "refutation.witnesses", []), (ANY, "derived.V", "1"),
    (ANY, "derived.then", {"value": ["0", "0"], "bound": "0"}),
    (ANY_TWO, "D", "5"), (ANY_TWO, "target.sensitivity", "1"), (ANY_TWO, "target.sensitivity", "3"),
    (ANY_TWO, "target.then", None),
    (ANY_TWO, "design.problem.constraints", []), (ANY_TWO, "derived.bound", "5"), (ANY_TWO, "derived.then.bound", "8"),
]  # fmt: skip


@pytest.mark.parametrize("question", [FAMILY, RULE, BRACKET, NARROW, ANY, ANY_TWO], ids=lambda q: "-".join(map(str, q)))
def test_sound_certificates_hold(question: tuple[Any, ...], tmp_path: Path) -> None:
    """As data and as a file; derived again it is the same to the last digit."""
    data = answered(*question).certificate.data
    verdict = dp.verify(data)
    assert verdict.holds and verdict.verified == "optimal", verdict.reason
    answered(*question).certificate.save(tmp_path / "target.json")
    assert dp.verify(tmp_path / "target.json").holds
    assert derive(data) == data["derived"]


@pytest.mark.parametrize(
    ("question", "path", "value"), WRONG, ids=lambda x: str(x)[:40] if isinstance(x, str) else None
)
def test_a_changed_field_is_rejected_with_a_reason(question: tuple[Any, ...], path: str, value: Any) -> None:
    """Whatever is changed, the verdict is no, with a reason of one line."""
    verdict = dp.verify(changed(dict(answered(*question).certificate.data), path, value))
    assert not verdict.holds and verdict.verified == "failed"
    assert verdict.reason and "\n" not in verdict.reason and len(verdict.reason) < 400


FALSE_CLAIMS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (FAMILY, {"D": "10", "gamma": "1/19"}),  # D = 9 works as well
    (FAMILY, {"D": "8", "gamma": "1/15"}),  # does not reach the target
    (FAMILY, {"gamma": "1/17"}),  # another breakpoint with a larger delta
    (FAMILY, {"gamma": "2/31"}),  # no breakpoint
    (RULE, {"D": "11", "gamma": "1/21"}),
    (RULE, {"D": "9", "gamma": "1/17"}),
    (BRACKET, {"gamma": "1/15"}),  # the gap to refuted_gamma is wide: it would be feasible, never optimal
    (ANY, {"D": "8"}),
]


@pytest.mark.parametrize(
    ("question", "changes"), FALSE_CLAIMS, ids=lambda x: None if isinstance(x, tuple) else "-".join(x.values())
)
def test_false_statements_are_not_derived(question: tuple[Any, ...], changes: dict[str, Any]) -> None:
    """Also when everything derived is computed afresh, a design that is not the smallest or not the best is refused."""
    data = {k: v for k, v in answered(*question).certificate.data.items() if k != "derived"} | changes
    if question is BRACKET:
        assert certify(data)["derived"]["verified"] == "feasible"
        return
    with pytest.raises(dp.CertificateError):
        certify(data)


def test_swapped_parts_are_rejected() -> None:
    """Design and refutation exchanged, and the parts of another target's certificate."""
    data, other = dict(answered(*ANY).certificate.data), answered(1, "1e-4", "any").certificate.data
    swapped = {**data, "design": data["refutation"], "refutation": data["design"]}
    for wrong in (swapped, {**data, "design": other["design"]}, {**data, "refutation": other["refutation"]},
                  {**data, "refutation": data["design"]}, {**other, "target": data["target"]}):  # fmt: skip
        assert not dp.verify(wrong).holds
        with pytest.raises(dp.CertificateError):
            certify({k: v for k, v in wrong.items() if k != "derived"})


def test_a_target_changed_within_its_room_proves_the_changed_target() -> None:
    """delta 1/1000 to 1/1001: D = 9 stays the smallest, so certified afresh it holds; solving the new target agrees."""
    data = {k: v for k, v in answered(*FAMILY).certificate.data.items() if k != "derived"}
    fresh = certify(changed(data, "target.delta", "1/1001"))
    assert dp.verify(fresh).holds
    assert answered(1, "1/1001", "tablebuilder").design.D == 9
    assert not dp.verify(changed(dict(answered(*FAMILY).certificate.data), "target.delta", "1/1001")).holds
