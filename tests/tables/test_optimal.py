"""Optimal tables: against brute force, the same from both solvers, proved without the solver's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import exp_enclosure
from dpopt.backends.base import Availability, Claim, Claimed, Option
from dpopt.backends.base import Support as Answers
from dpopt.backends.highs import Highs
from dpopt.backends.registry import register_backend, unregister_backend
from dpopt.errors import InputError, NotVerifiedError
from dpopt.privacy.divergence import worst_hockey_stick
from dpopt.program.program import Program
from dpopt.proof.prove import Verified
from dpopt.tables.bound import Lagrangian
from dpopt.tables.costs import Distance, table_cost
from dpopt.tables.offsets import Dual
from dpopt.tables.optimal import TableSolution, _question, optimal_table
from dpopt.tables.quantise import key_table
from dpopt.tables.question import Question

BOTH = ["highs", "pulp"]


def tables(question: Question) -> Iterator[tuple[int, ...]]:
    """Every table that answers a small question."""
    size, points = question.key_size, len(question.points)
    for head in product(range(size + 1), repeat=points - 1):
        if sum(head) <= size and question.holds(counts := (*head, size - sum(head))):
            yield counts


SMALL: list[tuple[Any, int, dict[str, Any]]] = [
    ((1, "1/2"), 7, {}),
    ((1, "1/2"), 10, {"variance": "1/2"}),
    ((2, "1/3"), 16, {}),
    ((2, "1/3"), 21, {"epsilon": 1, "delta": "1/7"}),
    ((2, "1/3"), 21, {"epsilon": 1, "delta": "2/21"}),
    ((2, "1/3"), 20, {"epsilon": 2, "delta": "1/5", "sensitivity": 2}),
    ((2, "1/3"), 20, {"epsilon": "1/2", "delta": "1/10"}),
    (dp.Pmf(-1, (5, 3, 2, 1)), 17, {"variance": 2}),
    (dp.Pmf(-1, (5, 0, 2, 1)), 17, {"variance": 3}),
    (dp.Pmf(-1, (5, 3, 2, 1)), 16, {"variance": 2, "epsilon": 1, "delta": "1/2"}),
    (dp.Pmf(-2, (1, 1, 1, 1, 1)), 15, {}),
    (dp.Pmf(0, (1,)), 9, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize("distance", list(Distance))
@pytest.mark.parametrize(("pmf", "size", "wanted"), SMALL)
def test_against_brute_force(pmf: Any, size: int, wanted: dict[str, Any], distance: Distance, backend: str) -> None:
    question = _question(
        pmf, size, wanted.get("variance"), wanted.get("epsilon"), wanted.get("delta"), wanted.get("sensitivity", 1)
    )
    cost = table_cost(distance, question.ideal, size)
    values = [cost.value(counts) for counts in tables(question)]
    solution = optimal_table(pmf, size, distance=distance, backend=backend, **wanted)
    if not values:
        assert solution.verified is Verified.INFEASIBLE, solution.message
        with pytest.raises(NotVerifiedError, match="no proved key table"):
            _ = solution.table
        return
    best = min(value.lower for value in values)
    assert solution.verified is Verified.OPTIMAL, solution.message
    assert solution.value.lower == best
    assert solution.bound is not None
    assert solution.bound <= best
    assert all(check.holds for check in solution.checks)


@pytest.mark.slow
@pytest.mark.parametrize("distance", list(Distance))
@pytest.mark.parametrize(
    ("ideal", "size"), [((6, "1/11"), 1024), ((11, "1/21"), 4096), ((11, "1/21"), 2**16), ((15, "2/29"), 2**64)]
)
def test_both_backends_agree(ideal: tuple[int, str], size: int, distance: Distance) -> None:
    first, second = (optimal_table(ideal, size, distance=distance, backend=backend) for backend in BOTH)
    for solution in (first, second):
        assert solution.verified is Verified.OPTIMAL
        assert solution.table.bias == 0
        assert solution.table.has_full_support
        assert sum(solution.table.counts) == size
    assert abs(first.value.lower - second.value.lower) <= Fraction(1, 10**6) * first.value.upper


@pytest.mark.slow
def test_it_is_closer_than_symmetric_rounding() -> None:
    """Where symmetric rounding happens to meet the constraints, nothing beats the optimum; elsewhere it breaks V."""
    met = 0
    for size in range(600, 700):
        question = _question((6, "1/11"), size, None, None, None, 1)
        cost = table_cost(Distance.TOTAL_VARIATION, question.ideal, size)
        rounded = key_table((6, "1/11"), size, rule="symmetric")
        if question.holds(rounded.counts):
            met += 1
            assert optimal_table((6, "1/11"), size).value.upper <= cost.value(rounded.counts).lower
        else:
            assert rounded.variance > question.ideal.variance
    assert 10 < met < 90


@pytest.mark.slow
@pytest.mark.parametrize("backend", BOTH)
def test_privacy_on_the_integers(backend: str) -> None:
    """4e-4 at K = 2^12 and 3.8e-4 at K = 2^64, below the ideal delta: the table has to move far from the pmf."""
    for size, delta in ((2**12, "4e-4"), (2**64, "3.8e-4")):
        solution = optimal_table((11, "1/21"), size, epsilon=1, delta=delta, backend=backend)
        assert solution.verified in (Verified.OPTIMAL, Verified.FEASIBLE)
        assert solution.table.keeps(1, delta)
        assert solution.gap is not None
        assert solution.gap >= 0
    assert not key_table((11, "1/21"), 2**64, rule="ceiling").keeps(1, "3.8e-4")


@pytest.mark.slow
@pytest.mark.parametrize("distance", list(Distance))
def test_a_smaller_variance_at_64_bits(distance: Distance) -> None:
    """The table is 10^17 keys away from floor(p K): the base moves there, no integer column does."""
    solution = optimal_table((11, "1/21"), 2**64, variance=9, distance=distance)
    assert solution.verified is Verified.OPTIMAL
    assert solution.table.variance <= 9
    assert solution.table.bias == 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", BOTH)
def test_infeasible_is_proved(backend: str) -> None:
    """At sensitivity 2 and epsilon 1 no pmf on [-11, 11] with that variance has a delta of 3.8e-4."""
    for size in (2**16, 2**64):
        solution = optimal_table((11, "1/21"), size, epsilon=1, delta="3.8e-4", sensitivity=2, backend=backend)
        assert solution.verified is Verified.INFEASIBLE
        with pytest.raises(NotVerifiedError):
            solution.require_verified()


@pytest.mark.parametrize(
    ("pmf", "size", "wanted", "words"),
    [
        ((11, "1/21"), 16, {}, "at least 23 keys"),
        ((11, "1/21"), 32, {}, "second moment"),
        ((2, "1/3"), 16, {"epsilon": 9, "delta": "1/32"}, "end points have a key"),
        ((3, "1/5"), 2**20, {"epsilon": 1, "delta": "0.0236"}, "no pmf on 7 consecutive points"),
        (dp.Pmf(0, (1, 1)), 16, {}, "both sides of 0"),
    ],
)
def test_refuted_by_arithmetic(pmf: Any, size: int, wanted: dict[str, Any], words: str) -> None:
    solution = optimal_table(pmf, size, **wanted)
    assert solution.verified is Verified.INFEASIBLE
    assert words in solution.message


class _Liar:
    """HiGHS with its answers bent: what is proved must not depend on the solver's word."""

    name: ClassVar[str] = "liar"
    requires: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, way: str) -> None:
        self.way = way

    def availability(self) -> Availability:
        return Availability(True, "")

    def supports(self, program: Program) -> Answers:
        return Answers(True, "")

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        claim = Highs().solve(program, {})
        if self.way == "infeasible":
            return Claim(Claimed.INFEASIBLE, "liar", "", "infeasible")
        if self.way == "zeros":
            return replace(claim, x=np.zeros_like(claim.x))
        if self.way == "huge":
            return replace(claim, x=claim.x + 1e15)
        if self.way == "nan":
            return replace(claim, x=claim.x * np.nan, y=claim.y * np.nan)
        if self.way == "slip":
            return replace(claim, x=claim.x + 0.6 * (np.arange(claim.x.size) % 7 == 0))
        return replace(claim, y=-1e6 * np.ones_like(claim.y) if claim.y.size else claim.y)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["infeasible", "zeros", "huge", "nan", "slip", "multipliers"])
def test_a_lying_solver_changes_nothing_that_is_proved(way: str) -> None:
    truth = optimal_table((2, "1/3"), 256)
    register_backend(_Liar(way))
    try:
        solution = optimal_table((2, "1/3"), 256, backend="liar")
    finally:
        unregister_backend("liar")
    assert solution.verified in (Verified.OPTIMAL, Verified.FEASIBLE, Verified.FAILED)
    if solution.verified is Verified.FAILED:
        return
    assert all(check.holds for check in solution.checks)
    assert solution.bound is not None
    assert solution.bound <= truth.value.upper <= solution.value.upper
    if solution.verified is Verified.OPTIMAL:
        assert solution.value == truth.value


@settings(max_examples=30, deadline=None)
@given(
    st.floats(-10, 10),
    st.floats(-3, 3),
    st.floats(0, 3),
    st.floats(0, 100),
    st.floats(0, 100),
    st.sampled_from(Distance),
)
def test_any_multipliers_bound_every_table(
    total: float, bias: float, second: float, hockey: float, term: float, distance: Distance
) -> None:
    """U4: weak duality does not care where the multipliers come from."""
    question = _question((2, "1/3"), 21, None, 1, "1/7", 1)
    cost = table_cost(distance, question.ideal, 21)
    dual = Dual(total, bias, second, {1: hockey, -1: hockey}, {1: dict.fromkeys(range(5), term), -1: {2: term}})
    bound = (
        Lagrangian(question, cost, dual, question.floors()).bound
        * cost.unit
        / question.privacy.factor_above.denominator
    )  # type: ignore[union-attr]
    assert bound <= optimal_table((2, "1/3"), 21, epsilon=1, delta="1/7", distance=distance).value.upper


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6), st.integers(2, 30), st.integers(10, 64), st.sampled_from(Distance))
def test_properties(half_width: int, denominator: int, bits: int, distance: Distance) -> None:
    solution = optimal_table((half_width, Fraction(1, denominator)), 2**bits, distance=distance)
    if solution.verified is Verified.INFEASIBLE:  # a small variance may leave no room for full support
        return
    table: Any = solution.require_verified().table
    question = _question((half_width, Fraction(1, denominator)), 2**bits, None, None, None, 1)
    assert sum(table.counts) == 2**bits
    assert table.bias == 0
    assert table.variance <= question.ideal.variance
    assert table.has_full_support
    assert solution.verified is Verified.OPTIMAL


def test_the_solution_prints_and_compares_by_what_was_proved() -> None:
    solution: TableSolution = optimal_table((2, "1/3"), 256)
    assert "verified         optimal (claimed: optimal, backend highs)" in str(solution)
    assert "verified=optimal" in repr(solution)
    assert solution.require_verified() is solution
    import pickle

    assert pickle.loads(pickle.dumps(solution)).table == solution.table


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"epsilon": 1}, "delta: must be given as well"),
        ({"delta": 1}, "epsilon: must be given as well"),
        ({"epsilon": -1, "delta": "1/2"}, "epsilon: must be at least 0"),
        ({"epsilon": 1, "delta": 2}, "delta: must lie between 0 and 1"),
        ({"variance": -1}, "variance: must be at least 0"),
        ({"variance": float("nan")}, "variance: must be finite"),
        ({"distance": "hellinger"}, "distance: must be one of total-variation, kullback-leibler"),
        ({"epsilon": 1, "delta": "1/2", "sensitivity": "1/2"}, "sensitivity: must be at least the lattice step"),
        ({"options": {"threads": 4}}, "options.threads: is not an option"),
    ],
)
def test_wrong_input_is_named(wanted: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        optimal_table((2, "1/3"), 256, **wanted)


def test_a_delta_between_the_ends_of_the_enclosure_neither_holds_nor_is_excluded() -> None:
    """A table is private with the lower end of e^epsilon, and refuted with the upper one only."""
    ideal, counts = dp.Pmf(-1, (1, 3, 1)), (2, 7, 2)
    least, most = (worst_hockey_stick(dp.Pmf(-1, counts), end, 1) for end in exp_enclosure(Fraction(1))[::-1])
    assert least < most  # the true divergence lies between
    for delta, holds, excluded in ((most, True, False), ((least + most) / 2, False, False), (least / 2, False, True)):
        question = _question(ideal, 11, 4, 1, delta, 1)
        assert (question.holds(counts), question.excluded(counts)) == (holds, excluded)
