"""Linear cases, built backwards: a point, multipliers and reduced costs are chosen, sides and costs follow."""

from __future__ import annotations

from dpopt.backends._conformance_case import INF, Capability, Case, make_backwards, make_program
from dpopt.backends.base import Claimed

__all__ = ["linear_cases"]


def linear_cases() -> tuple[Case, ...]:
    """Signs of multipliers, optima, programs without an answer, integers."""
    return (*_sign_cases(), *_linear_cases(), *_hopeless_cases(), *_integer_cases())


def _sign_cases() -> list[Case]:
    """Every kind of row with its active side on either end, and the same rows negated."""
    square = [[2.0, 1.0], [1.0, 3.0]]
    negated = [[-entry for entry in row] for row in square]
    positive, negative = [2.0, 1.0], [-2.0, -1.0]
    at, none = [3.0, 4.0], [0.0, 0.0]
    guards = "the sign of a multiplier, when "
    table = [
        ("at-least", "both rows are >=", square, positive, (">=", ">=")),
        ("at-least-negated", "both rows of 'at-least' are written as <=", negated, negative, ("<=", "<=")),
        ("at-most", "both rows are <=", square, negative, ("<=", "<=")),
        ("at-most-negated", "both rows of 'at-most' are written as >=", negated, positive, (">=", ">=")),
        ("equality-positive", "equalities pull up", square, positive, ("=", "=")),
        ("equality-negated", "the rows of 'equality-positive' are negated", negated, negative, ("=", "=")),
        ("two-sided-low", "two-sided rows are active at their lower sides", square, positive, ("low", "low")),
        ("two-sided-high", "two-sided rows are active at their upper sides", square, negative, ("high", "high")),
        ("two-sided-both", "one two-sided row is active below, one above", square, [2.0, -1.0], ("low", "high")),
        ("mixed-sides", "an equality stands beside an inequality", square, [-2.0, 1.0], ("=", ">=")),
    ]
    return [
        make_backwards(name, guards + words, rows=rows, x=at, y=y, reduced=none, kinds=kinds)
        for name, words, rows, y, kinds in table
    ]


def _linear_cases() -> list[Case]:
    """Bounds, free columns, rows without effect, degeneracy and scale."""
    free = [(-INF, INF), (-INF, INF)]
    return [
        make_backwards(
            "free-columns",
            "columns without bounds, negative at the optimum",
            rows=[[1.0, 1.0], [1.0, -1.0]],
            x=[-3.0, 2.0],
            y=[1.0, -2.0],
            reduced=[0.0, 0.0],
            kinds=(">=", "<="),
            bounds=free,
        ),
        make_backwards(
            "upper-bounds",
            "columns at their upper bounds keep their reduced cost out of the rows' multipliers",
            rows=[[1.0, 1.0, 1.0]],
            x=[2.0, 5.0, 3.0],
            y=[1.0],
            reduced=[-1.0, -2.0, 0.0],
            kinds=("=",),
            bounds=[(0.0, 2.0), (1.0, 5.0), (0.0, INF)],
        ),
        make_backwards(
            "lower-bounds",
            "lower bounds other than 0, a negative one included",
            rows=[[1.0, 2.0, 1.0]],
            x=[-4.0, 1.0, 9.0],
            y=[1.0],
            reduced=[1.0, 2.0, 0.0],
            kinds=(">=",),
            bounds=[(-4.0, INF), (1.0, 8.0), (0.0, INF)],
        ),
        make_backwards(
            "fixed-column",
            "a column with equal bounds",
            rows=[[1.0, 1.0]],
            x=[2.0, 3.0],
            y=[1.5],
            reduced=[-4.0, 0.0],
            kinds=(">=",),
            bounds=[(2.0, 2.0), (0.0, INF)],
        ),
        make_backwards(
            "idle-rows",
            "a free row, a row without entries and a row strictly inside its sides have multiplier 0",
            rows=[[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, -1.0]],
            x=[2.0, 0.0],
            y=[1.0, 0.0, 0.0, 0.0],
            reduced=[0.0, 1.0],
            kinds=(">=", "inside", "free", "inside"),
        ),
        make_backwards(
            "degenerate",
            "more active rows than columns: any optimal multipliers will do, with the right signs",
            rows=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
            x=[1.0, 1.0],
            y=[1.0, 1.0, 1.0, 0.0],
            reduced=[0.0, 0.0],
            kinds=(">=", ">=", ">=", ">="),
            unique=False,
        ),
        make_backwards(
            "large-rows",
            "a row a million times larger than the other, its multiplier a million times smaller",
            rows=[[2e6, 1e6], [1.0, 3.0]],
            x=[3.0, 4.0],
            y=[2e-6, -1.0],
            reduced=[0.0, 0.0],
            kinds=("=", "<="),
        ),
        Case(
            "tiny-coefficient",
            "a coefficient of 1e-9, dropped by solvers without a word",
            make_program([0, -1], [[-1e-9, 1], [1, 0]], [(-INF, 0), (-INF, 1e9)], [(0, INF), (0, 10)]),
            frozenset({Capability.LINEAR}),
            objective=-1.0,
        ),
        Case(
            "no-rows",
            "a program with bounds alone",
            make_program([-1, 2], [], [], [(0, 4), (1, 9)]),
            frozenset({Capability.LINEAR}),
            objective=-2.0,
        ),
        Case(
            "no-cost",
            "a feasibility problem",
            make_program([0, 0], [[1, 1]], [(1, 1)]),
            frozenset({Capability.LINEAR}),
            objective=0.0,
        ),
        Case(
            "no-columns",
            "a program without columns whose rows allow 0",
            make_program([], [], [(-1, 2)]),
            frozenset({Capability.LINEAR}),
            objective=0.0,
        ),
    ]


def _hopeless_cases() -> list[Case]:
    """Programs without an optimum."""
    linear = frozenset({Capability.LINEAR})
    infeasible, unbounded = Claimed.INFEASIBLE, Claimed.UNBOUNDED
    return [
        Case(
            "infeasible-rows",
            "two rows that contradict each other",
            make_program([1, 1], [[1, 1], [1, 1]], [(3, INF), (-INF, 2)]),
            linear,
            infeasible,
        ),
        Case(
            "infeasible-bounds",
            "a row out of reach of the bounds",
            make_program([1, 0], [[1, 1]], [(5, 5)], [(0, 2), (0, 2)]),
            linear,
            infeasible,
        ),
        Case(
            "infeasible-empty-row",
            "a row without entries that does not allow 0",
            make_program([1, 1], [[0, 0], [1, 1]], [(1, 2), (1, INF)]),
            linear,
            infeasible,
        ),
        Case(
            "infeasible-no-columns",
            "a program without columns whose rows do not allow 0",
            make_program([], [], [(1, 2)]),
            linear,
            infeasible,
        ),
        Case(
            "unbounded", "a cost that falls for ever", make_program([-1, 0], [[1, -1]], [(0, INF)]), linear, unbounded
        ),
    ]


def _integer_cases() -> list[Case]:
    """Small integer programs, solved by enumeration on paper."""
    needs = frozenset({Capability.INTEGER})
    rows, sides = [[6, 4], [1, 2]], [(-INF, 24), (-INF, 6)]
    return [
        Case(
            "integer",
            "integer columns: the relaxation's optimum is -21",
            make_program([-5, -4], rows, sides, integer=[True, True]),
            needs,
            objective=-20.0,
        ),
        Case(
            "integer-mixed",
            "one integer column and one that is not: x = 3 and y = 1.5",
            make_program([-5, -4], rows, sides, integer=[True, False]),
            needs,
            objective=-21.0,
        ),
        Case(
            "integer-infeasible",
            "2 x = 1 has no integer solution",
            make_program([1], [[2]], [(1, 1)], [(0, 5)], integer=[True]),
            needs,
            Claimed.INFEASIBLE,
        ),
    ]
