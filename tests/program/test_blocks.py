"""Each block's float rows against nested loops; its exact multipliers against the reduced costs of the floats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.problem.families.expectation import ExpectationTerm
from dpopt.problem.families.wasserstein import WassersteinTerm
from dpopt.program.assembly import integers
from dpopt.program.core import Core
from dpopt.program.formulate import Formulation, core_for, formulate
from dpopt.program.program import BlockKind
from dpopt.program.rows.base import MassBlock
from dpopt.program.rows.expectation import ExpectationBlock
from dpopt.program.rows.hockey_stick import HockeyStickBlock
from dpopt.program.rows.mirror import MirrorBlock
from dpopt.program.rows.pairs import OrderBlock, RatioBlock
from dpopt.program.rows.wasserstein import WassersteinBlock

from .linear import dense, in_any_order, reduced_costs

INF = math.inf
SCALE = 128
ABSOLUTE = dp.MinExpectedCost("absolute")
SUPPORTS = [
    dp.Integers(-3, 3), dp.Integers(-2, 5), dp.Integers(4, 9), dp.Integers(0, 0), dp.Integers(-1, 0),
    dp.Lattice("1/2", -1, "5/2"), dp.Lattice("3/4", "-9/4", "3/4"),
]  # fmt: skip
supports = pytest.mark.parametrize("support", SUPPORTS, ids=lambda s: f"{s.step}-{s.low}-{s.high}".replace("/", "_"))


def formulated(support: dp.Support, *constraints: dp.Constraint, objective: dp.Objective = ABSOLUTE) -> Formulation:
    """The program over the support, or over the core to start with."""
    question = dp.Problem(support=support, objective=objective, constraints=constraints)
    return formulate(question, core_for(question))


def the(form: Formulation, kind: type) -> Any:
    """The one block of a kind."""
    (found,) = [b for b in form.blocks if isinstance(b, kind)]
    return found


def written(form: Formulation, block: Any) -> list[tuple[Any, ...]]:
    """The block's rows over the pmf's columns with both sides, as tuples."""
    rows = dense(form.program)[block.first : block.first + block.count, : form.core.size]
    sides = zip(form.program.row_lower[block.first :], form.program.row_upper[block.first :], strict=True)
    return [(*row, low, high) for row, (low, high) in zip(rows.tolist(), sides, strict=False)]


def row(core: Core, entries: dict[int, float], low: float, high: float) -> tuple[Any, ...]:
    """A row from index and coefficient."""
    return (*(entries.get(k, 0.0) for k in range(core.first, core.last + 1)), low, high)


# --- rows ------------------------------------------------------------------------------------------------------------


@supports
@pytest.mark.parametrize("m", ["1", "2", "7/2", "50"])
def test_ratio_rows(support: dp.Support, m: str) -> None:
    """p(i) - e^epsilon p(j) <= 0 for all pairs i != j of the core at most m apart, each once, nothing else."""
    form = formulated(support, dp.PureDP("0.7", m, boundary="window"))
    reach, core = math.floor(Fraction(m) / support.step), form.core
    pairs = [(i, j) for i in core.indices.tolist() for j in core.indices.tolist() if 0 < abs(i - j) <= reach]
    wanted = [row(core, {i: 1.0, j: -math.exp(0.7)}, -INF, 0.0) for i, j in pairs]
    assert in_any_order(written(form, the(form, RatioBlock))) == in_any_order(wanted)


@supports
def test_expectation_rows(support: dp.Support) -> None:
    """One row: the values of the function, between its two bounds."""
    form = formulated(support, dp.Expectation(of={"power": 3}, at_least="1/3", at_most="7/2"))
    entries = {k: float(abs(k * support.step) ** 3) for k in form.core.indices.tolist()}
    wanted = row(form.core, entries, 1 / 3, 3.5)
    assert in_any_order(written(form, the(form, ExpectationBlock))) == in_any_order([wanted])


@supports
@pytest.mark.parametrize("end", ["low", "middle", "high"])
def test_order_rows(support: dp.Support, end: str) -> None:
    """Each point at most its neighbour one step towards the mode, the mode itself at either end as well."""
    core = core_for(dp.Problem(support=support, objective=ABSOLUTE))
    mode = {"low": core.first, "middle": (core.first + core.last) // 2, "high": core.last}[end]
    form = formulated(support, dp.Unimodal(mode * support.step))
    wanted = []
    for k in core.indices.tolist():
        if k != mode:
            wanted.append(row(core, {k: 1.0, k + (1 if k < mode else -1): -1.0}, -INF, 0.0))
    assert in_any_order(written(form, the(form, OrderBlock))) == in_any_order(wanted)


@supports
def test_mirror_rows(support: dp.Support) -> None:
    """p(k) = p(-k); a point whose mirror image lies outside has no mass."""
    form = formulated(support, dp.Symmetric())
    inside = set(form.core.indices.tolist())
    wanted = []
    for k in range(1, 20):
        entries = {j: float(np.sign(j)) for j in (k, -k) if j in inside}
        if entries:
            wanted.append(row(form.core, entries, 0.0, 0.0))
    assert in_any_order(written(form, the(form, MirrorBlock))) == in_any_order(wanted)


@supports
def test_mass_row_and_forbidden_columns(support: dp.Support) -> None:
    """The mass is 1; a forbidden value has an upper bound of 0, one outside the support changes nothing."""
    gone = support.low + support.step if support.high > support.low else support.low
    form = formulated(support, dp.Forbidden([gone, 10**6 * support.step]))
    assert written(form, the(form, MassBlock)) == [
        row(form.core, dict.fromkeys(form.core.indices.tolist(), 1.0), 1.0, 1.0)
    ]
    upper = [0.0 if k * support.step == gone else INF for k in form.core.indices.tolist()]
    assert form.program.upper[: form.core.size].tolist() == upper


@supports
@pytest.mark.parametrize("m", ["1", "2", "40"])
def test_hockey_stick_rows(support: dp.Support, m: str) -> None:
    """With the least auxiliaries that their rows allow, each total is the divergence of that shift, 0 outside."""
    form = formulated(support, dp.ApproxDP("0.4", "0.3", m))
    block, core = the(form, HockeyStickBlock), form.core
    reach = min(math.floor(Fraction(m) / support.step), core.size)  # longer shifts separate it from itself alike
    p = np.random.default_rng(5).random(core.size)
    x, rows, kinds_seen = np.zeros(form.program.cost.size), dense(form.program), []
    x[: core.size] = p
    mine = slice(block.column, block.column + block.columns)
    for r in range(block.first, block.first + block.count):
        kinds_seen.append(rows[r, mine].min(initial=0.0) < 0)
        if kinds_seen[-1]:  # a pair: one auxiliary, with coefficient -1
            (aux,) = np.flatnonzero(rows[r, mine])
            assert rows[r, block.column + aux] == -1.0 and form.program.row_upper[r] == 0.0
            x[block.column + aux] = max(0.0, rows[r, : core.size] @ p)
    totals = [r for r, pair in zip(range(block.first, block.first + block.count), kinds_seen, strict=True) if not pair]
    wanted = []
    for s in block.shifts.tolist():
        moved = {k + s: p[k - core.first] for k in core.indices.tolist()}
        wanted.append(sum(max(p[k - core.first] - math.exp(0.4) * moved.get(k, 0.0), 0) for k in core.indices.tolist()))
    assert sorted(block.shifts.tolist()) == sorted([*range(1, reach + 1), *range(-reach, 0)])
    assert (rows @ x)[totals] == pytest.approx(wanted, rel=1e-13)
    assert form.program.row_upper[totals] == pytest.approx([0.3] * len(totals))
    assert form.program.lower[mine].tolist() == [0.0] * block.columns


def test_min_delta_rows() -> None:
    """The same totals below one column, which is all that costs."""
    form = formulated(dp.Integers(-2, 3), objective=dp.MinDelta("0.4", 2))
    block = the(form, HockeyStickBlock)
    last = block.column + block.columns - 1
    assert np.flatnonzero(form.program.cost).tolist() == [last]
    assert form.program.cost[last] == 1
    column = dense(form.program)[:, last]
    assert column[np.flatnonzero(column)].tolist() == [-1.0] * 4
    assert form.program.row_upper[np.flatnonzero(column)].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "law", [dp.poisson(2), dp.uniform(-3, 4), dp.table(0, [1, 0, 0, 5]), dp.point(3)], ids=lambda x: x.type
)
@pytest.mark.parametrize("support", [dp.Integers(-3, 3), dp.Integers(2, 6), dp.Lattice("1/2", -2, 1)])
def test_wasserstein_rows(law: dp.Distribution, support: dp.Support) -> None:
    """Linear cost plus |g_k(p)| summed over the open cuts is W1 of any finite pmf, by the sum over all cuts."""
    form = formulated(support, objective=dp.MinWasserstein(law))
    block, core, term = the(form, WassersteinBlock), form.core, form.problem.objective_term
    assert isinstance(term, WassersteinTerm)
    weights = np.random.default_rng(3).integers(0, 9, core.size) + (np.arange(core.size) == 0)
    noise = dp.Pmf(core.first, weights, support.step)
    p = noise.probabilities()
    gaps = dense(form.program)[block.first : block.first + block.count, : core.size] @ p
    assert form.program.cost[block.column : block.column + block.columns].tolist() == [1.0] * block.columns
    source = term.input
    total = source.convolve(noise)
    f = g = Fraction(0)
    wanted = Fraction(0)
    for k in range(min(source.start, total.start), max(source.end, total.end) + 1):
        f, g = f + source.probability(k), g + total.probability(k)
        wanted += abs(f - g) * support.step
    assert form.program.cost[: core.size] @ p + np.abs(gaps).sum() == pytest.approx(float(wanted), rel=1e-12)
    auxiliaries = dense(form.program)[
        block.first : block.first + block.count, block.column : block.column + block.columns
    ]
    size = len(term.open_cuts)
    assert np.array_equal(auxiliaries, np.hstack([-np.eye(size), np.eye(size)]))


def test_row_blocks_cover_all_rows() -> None:
    """What a structured backend reads: kinds and names, in order, without a gap."""
    form = formulated(
        dp.Integers(-3, 3), dp.Mean(0), dp.Mean(at_most=1), dp.PureDP(1, 2, boundary="window"), dp.ApproxDP(1, "0.5"),
        dp.Symmetric(), dp.Unimodal(), dp.Forbidden([2, -2]),
    )  # fmt: skip
    place = 0
    for part in form.program.blocks:
        assert part.first == place
        place += part.count
    assert place == form.program.row_lower.size
    assert [(b.kind, b.name) for b in form.program.blocks] == [
        (BlockKind.MASS, "mass"), (BlockKind.EXPECTATION, "mean 1"), (BlockKind.EXPECTATION, "mean 2"),
        (BlockKind.RATIO, "pure-dp"), (BlockKind.HOCKEY_STICK, "approx-dp"), (BlockKind.HOCKEY_STICK, "approx-dp"),
        (BlockKind.MIRROR, "symmetric"), (BlockKind.ORDER, "unimodal"),
    ]  # fmt: skip


def test_some_constraints_only() -> None:
    """For a conflict: the kept constraints with their own numbers, without cost and entropy."""
    question = dp.tablebuilder(D=3, V=1)
    form = formulate(question, core_for(question), keep=[1], with_objective=False)
    assert [b.owner for b in form.blocks] == [-1, 1]
    assert not form.program.cost.any() and not form.program.has_entropy
    assert formulate(question, core_for(question)).program.has_entropy


# --- multipliers -----------------------------------------------------------------------------------------------------


def added(form: Formulation, block: Any, witnesses: list[dict[str, Any]]) -> dict[int, Fraction]:
    """What witnesses add to the reduced cost of each index, by the theory of infinite supports, section 4 and 7-8."""
    found = dict.fromkeys(form.core.indices.tolist(), Fraction(0))
    unit = Fraction(1, 1 << SCALE)
    question = form.problem
    terms = question.terms[block.owner] if block.owner >= 0 else (question.objective_term,)
    if isinstance(block, ExpectationBlock):
        term = next(t for t in terms if isinstance(t, ExpectationTerm))
        for k, value in zip(found, form.core.coefficients(term.of).tolist(), strict=True):
            found[k] -= sum(w["y"] for w in witnesses) * unit * Fraction(value)
    elif isinstance(block, RatioBlock | OrderBlock):
        factor = Fraction(math.exp(float(terms[0].epsilon))) if isinstance(block, RatioBlock) else Fraction(1)
        for i, j, v in (pair for w in witnesses for pair in w["pairs"]):
            assert v > 0
            found[i] += v * unit
            found[j] -= v * unit * factor
    elif isinstance(block, MirrorBlock):
        for k, v in (pair for w in witnesses for pair in w["pairs"]):
            for j, sign in ((k, 1), (-k, -1)):
                if j in found:
                    found[j] += sign * v * unit
    elif isinstance(block, HockeyStickBlock):
        factor = Fraction(math.exp(float(terms[0].epsilon)))
        for part in witnesses:
            most = part["theta"] if block.owner < 0 else part["y"]
            assert min(part["weights"]) >= 0 and max(part["weights"]) <= most
            for k, v in enumerate(part["weights"], part["start"]):
                found[k] += v * unit
                if k - part["shift"] in found:
                    found[k - part["shift"]] -= v * unit * factor
    elif isinstance(block, WassersteinBlock):
        term = question.objective_term
        assert isinstance(term, WassersteinTerm)
        for k, v in ((k, v) for w in witnesses for k, v in enumerate(w["slopes"], w["start"])):
            for j in found:
                found[j] += v * unit * term.crossing(k)(j)
    return found


QUESTIONS = {
    "ratio": lambda: formulated(dp.Integers(-2, 5), dp.PureDP("0.7", 3, boundary="window")),
    "ratio-with-closure": lambda: formulated(dp.Integers(), dp.PureDP(1, 2), dp.Mean(3), dp.SecondMoment(at_most=30)),
    "expectation": lambda: formulated(dp.Lattice("1/2", -1, 2), dp.Mean(0), dp.Expectation(of="absolute", at_most=1)),
    "order": lambda: formulated(dp.Integers(-2, 5), dp.Unimodal(1)),
    "mirror": lambda: formulated(dp.Integers(-2, 5), dp.Symmetric()),
    "hockey-stick": lambda: formulated(dp.Integers(-2, 4), dp.ApproxDP("0.3", "0.2", 2)),
    "hockey-stick-all-integers": lambda: formulated(dp.Integers(), dp.ApproxDP(1, "0.2", 2)),
    "hockey-stick-wide": lambda: formulated(dp.Integers(-1, 1), dp.ApproxDP("0.3", "0.9", 5)),
    "min-delta": lambda: formulated(dp.Integers(-3, 2), objective=dp.MinDelta("0.5", 2)),
    "wasserstein": lambda: formulated(dp.Integers(-6, 4), objective=dp.MinWasserstein(dp.uniform(-2, 2))),
    "everything": lambda: formulated(
        dp.Integers(-3, 3), dp.Mean(0), dp.PureDP(1, 2, boundary="window"), dp.ApproxDP(1, "0.5", 2), dp.Symmetric(),
        dp.Unimodal(), dp.Probability(of={"from": 2}, at_most="0.2"), objective=dp.MinWasserstein(dp.point(0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
@given(seed=st.integers(0, 10**6))
@settings(derandomize=True, max_examples=8, deadline=None)
def test_witnesses_give_the_reduced_costs(name: str, seed: int) -> None:
    """cost - A^T y of the floats, at every point of the core, from the exact witnesses of all blocks together."""
    form = QUESTIONS[name]()
    generator = np.random.default_rng(seed)
    y = generator.normal(size=form.program.row_lower.size) * 10.0 ** generator.integers(
        -6, 1, form.program.row_lower.size
    )
    y[~np.isfinite(form.program.row_lower)] = -np.abs(y[~np.isfinite(form.program.row_lower)])
    for block in form.blocks:
        if isinstance(block, HockeyStickBlock):  # events within their bounds, bounds of an objective at most 1
            pairs = block.pair_k.size
            totals = -generator.random(block.count - pairs) / (block.count - pairs)
            y[block.first + pairs : block.first + block.count] = totals
            place = dict(zip(block.shifts.tolist(), totals, strict=True))
            limits = np.array([place[s] for s in block.pair_shift.tolist()])
            y[block.first : block.first + pairs] = limits * generator.random(pairs)
        if isinstance(block, WassersteinBlock):
            y[block.first : block.first + block.count] = generator.uniform(-1, 1, block.count)
    wanted = reduced_costs(form.program, y)[: form.core.size]
    found = np.array([float(Fraction(c)) for c in form.program.cost[: form.core.size]])
    for block in form.blocks:
        if isinstance(block, MassBlock):
            found -= y[block.first] * form.core.coefficients(dp.LatticeFunction.constant(1))
        else:
            found += np.array([float(v) for v in added(form, block, block.witnesses(y, SCALE)).values()])
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-11)


def test_wrong_signs_are_clipped() -> None:
    """Multipliers on the wrong side prove nothing: they are left out, slopes and events are cut to their range."""
    form = formulated(dp.Integers(-2, 2), dp.PureDP(1, 1, boundary="window"), dp.Unimodal(), dp.ApproxDP(1, "0.3"))
    y = np.full(form.program.row_lower.size, 3.0)
    for kind in (RatioBlock, OrderBlock, HockeyStickBlock):
        assert the(form, kind).witnesses(y, SCALE) == []
    form = formulated(dp.Integers(-6, 6), objective=dp.MinWasserstein(dp.uniform(-2, 2)))
    block = the(form, WassersteinBlock)
    one = 1 << SCALE
    for value, wanted in ((7.0, -one), (-7.0, one), (math.nan, 0), (0.25, -one // 4)):
        (witness,) = block.witnesses(np.full(form.program.row_lower.size, value), SCALE)
        assert witness["slopes"] == [wanted] * block.count


@pytest.mark.parametrize("size", [0.1, 1.0, 50.0])
def test_bounds_of_min_delta_sum_to_at_most_one(size: float) -> None:
    """The weights of the shifts are a sub-probability, to the last unit; each event at most its shift's weight."""
    form = formulated(dp.Integers(-3, 2), objective=dp.MinDelta("0.5", 3))
    y = -np.random.default_rng(1).random(form.program.row_lower.size) * size
    shifts = the(form, HockeyStickBlock).witnesses(y, SCALE)
    assert sum(s["theta"] for s in shifts) <= 1 << SCALE
    assert all(0 <= v <= s["theta"] for s in shifts for v in s["weights"])
    assert all(s["left"] == s["right"] == 0 for s in shifts)


def test_outward_pairs_on_all_integers() -> None:
    """Beyond the core the event holds on pairs that lead outward: on the left for s > 0, on the right for s < 0."""
    form = formulated(dp.Integers(), dp.ApproxDP(1, "0.2", 2))
    y = -np.ones(form.program.row_lower.size)
    for part in the(form, HockeyStickBlock).witnesses(y, SCALE):
        outward = (part["left"], part["right"])
        assert outward == ((part["y"], 0) if part["shift"] > 0 else (0, part["y"]))


@given(st.lists(st.floats(width=64), min_size=1, max_size=6), st.integers(0, 1100))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_floats_as_integers(values: list[float], scale: int) -> None:
    """Nearest integer over 2^scale, exact where it can be; what is not finite becomes 0."""
    for value, found in zip(values, integers(np.array(values), scale), strict=True):
        wanted = Fraction(value) * (1 << scale) if math.isfinite(value) else Fraction(0)
        assert abs(found - wanted) <= Fraction(1, 2)
        if wanted.denominator == 1:
            assert found == wanted
