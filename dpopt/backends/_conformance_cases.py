"""The programs of the conformance suite, each with an optimum that no solver was asked for.

Linear cases are built backwards: choose a point, multipliers and reduced costs, and let the sides and the costs follow
from them. Entropy cases have closed forms or are built backwards from ``cost = A^T y - w (ln x + 1)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import scipy.sparse as sp

from dpopt.backends.base import Claimed
from dpopt.program.program import BlockKind, Program, RowBlock

__all__ = ["CASES", "Capability", "Case"]

INF = float("inf")
MASS_FIRST = (RowBlock(BlockKind.MASS, "mass", 0, 1),)


class Capability(StrEnum):
    """What a backend must be able to do to take a case."""

    LINEAR = "linear"
    ENTROPY = "entropy"
    ENTROPY_GENERAL = "entropy with weights or auxiliary columns"
    INTEGER = "integer"


@dataclass(frozen=True, eq=False)
class Case:
    """One program with its known answer.

    Parameters
    ----------
    name : str
    guards : str
        Which mistake of a backend the case is there to find.
    program : Program
    needs : frozenset of Capability
    status : Claimed
        The only status that is right.
    objective : float
        The exact optimum; nan when there is none.
    signs : tuple of int
        The sign that each multiplier must have: 1, -1, 0 for "zero"; 2 for "any". Empty when not checked.
    multipliers : array or None
        The multipliers when they are unique.
    """

    name: str
    guards: str
    program: Program
    needs: frozenset[Capability]
    status: Claimed = Claimed.OPTIMAL
    objective: float = float("nan")
    signs: tuple[int, ...] = ()
    multipliers: np.ndarray | None = None


def _program(
    cost: Sequence[float],
    rows: Sequence[Sequence[float]],
    sides: Sequence[tuple[float, float]],
    bounds: Sequence[tuple[float, float]] | None = None,
    *,
    entropy: Sequence[float] = (),
    integer: Sequence[bool] = (),
    blocks: tuple[RowBlock, ...] = (),
) -> Program:
    """A small program from lists; bounds are 0 and infinity unless given."""
    size = len(cost)
    matrix = np.array(rows, dtype=float).reshape(len(sides), size)
    low_high = np.array(sides, dtype=float).reshape(len(sides), 2)
    limits = np.array(bounds if bounds is not None else [(0.0, INF)] * size, dtype=float).reshape(size, 2)
    return Program(
        cost=np.array(cost, dtype=float),
        rows=sp.csr_array(matrix),
        row_lower=low_high[:, 0].copy(),
        row_upper=low_high[:, 1].copy(),
        lower=limits[:, 0].copy(),
        upper=limits[:, 1].copy(),
        entropy=np.array(entropy, dtype=float),
        integer=np.array(integer, dtype=bool),
        blocks=blocks,
    )


def _backwards(
    name: str,
    guards: str,
    *,
    rows: Sequence[Sequence[float]],
    x: Sequence[float],
    y: Sequence[float],
    reduced: Sequence[float],
    kinds: Sequence[str],
    bounds: Sequence[tuple[float, float]] | None = None,
    unique: bool = True,
) -> Case:
    """A linear case whose optimal point is `x` and whose multipliers are `y`.

    `kinds` has one word a row: ``>=``, ``<=``, ``=``, ``low`` or ``high`` (two-sided, that side active), ``inside``
    or ``free``.
    """
    activity = np.array(rows, dtype=float) @ np.array(x, dtype=float)
    room = 5.0
    reach = {  # how far below and above the activity the two sides are
        ">=": (0.0, INF),
        "<=": (INF, 0.0),
        "=": (0.0, 0.0),
        "low": (0.0, room),
        "high": (room, 0.0),
        "inside": (room, room),
        "free": (INF, INF),
    }
    sides = [(value - reach[kind][0], value + reach[kind][1]) for kind, value in zip(kinds, activity, strict=True)]
    cost = np.array(rows, dtype=float).T @ np.array(y, dtype=float) + np.array(reduced, dtype=float)
    program = _program(cost.tolist(), rows, sides, bounds)
    return Case(
        name=name,
        guards=guards,
        program=program,
        needs=frozenset({Capability.LINEAR}),
        objective=float(cost @ np.array(x, dtype=float)),
        signs=tuple(int(np.sign(value)) for value in y) if unique else (),
        multipliers=np.array(y, dtype=float) if unique else None,
    )


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
        _backwards(name, guards + words, rows=rows, x=at, y=y, reduced=none, kinds=kinds)
        for name, words, rows, y, kinds in table
    ]


def _linear_cases() -> list[Case]:
    """Bounds, free columns, rows without effect, degeneracy and scale."""
    free = [(-INF, INF), (-INF, INF)]
    return [
        _backwards(
            "free-columns",
            "columns without bounds, negative at the optimum",
            rows=[[1.0, 1.0], [1.0, -1.0]],
            x=[-3.0, 2.0],
            y=[1.0, -2.0],
            reduced=[0.0, 0.0],
            kinds=(">=", "<="),
            bounds=free,
        ),
        _backwards(
            "upper-bounds",
            "columns at their upper bounds keep their reduced cost out of the rows' multipliers",
            rows=[[1.0, 1.0, 1.0]],
            x=[2.0, 5.0, 3.0],
            y=[1.0],
            reduced=[-1.0, -2.0, 0.0],
            kinds=("=",),
            bounds=[(0.0, 2.0), (1.0, 5.0), (0.0, INF)],
        ),
        _backwards(
            "lower-bounds",
            "lower bounds other than 0, a negative one included",
            rows=[[1.0, 2.0, 1.0]],
            x=[-4.0, 1.0, 9.0],
            y=[1.0],
            reduced=[1.0, 2.0, 0.0],
            kinds=(">=",),
            bounds=[(-4.0, INF), (1.0, 8.0), (0.0, INF)],
        ),
        _backwards(
            "fixed-column",
            "a column with equal bounds",
            rows=[[1.0, 1.0]],
            x=[2.0, 3.0],
            y=[1.5],
            reduced=[-4.0, 0.0],
            kinds=(">=",),
            bounds=[(2.0, 2.0), (0.0, INF)],
        ),
        _backwards(
            "idle-rows",
            "a free row, a row without entries and a row strictly inside its sides have multiplier 0",
            rows=[[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, -1.0]],
            x=[2.0, 0.0],
            y=[1.0, 0.0, 0.0, 0.0],
            reduced=[0.0, 1.0],
            kinds=(">=", "inside", "free", "inside"),
        ),
        _backwards(
            "degenerate",
            "more active rows than columns: any optimal multipliers will do, with the right signs",
            rows=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
            x=[1.0, 1.0],
            y=[1.0, 1.0, 1.0, 0.0],
            reduced=[0.0, 0.0],
            kinds=(">=", ">=", ">=", ">="),
            unique=False,
        ),
        _backwards(
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
            _program([0, -1], [[-1e-9, 1], [1, 0]], [(-INF, 0), (-INF, 1e9)], [(0, INF), (0, 10)]),
            frozenset({Capability.LINEAR}),
            objective=-1.0,
        ),
        Case(
            "no-rows",
            "a program with bounds alone",
            _program([-1, 2], [], [], [(0, 4), (1, 9)]),
            frozenset({Capability.LINEAR}),
            objective=-2.0,
        ),
        Case(
            "no-cost",
            "a feasibility problem",
            _program([0, 0], [[1, 1]], [(1, 1)]),
            frozenset({Capability.LINEAR}),
            objective=0.0,
        ),
        Case(
            "no-columns",
            "a program without columns whose rows allow 0",
            _program([], [], [(-1, 2)]),
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
            _program([1, 1], [[1, 1], [1, 1]], [(3, INF), (-INF, 2)]),
            linear,
            infeasible,
        ),
        Case(
            "infeasible-bounds",
            "a row out of reach of the bounds",
            _program([1, 0], [[1, 1]], [(5, 5)], [(0, 2), (0, 2)]),
            linear,
            infeasible,
        ),
        Case(
            "infeasible-empty-row",
            "a row without entries that does not allow 0",
            _program([1, 1], [[0, 0], [1, 1]], [(1, 2), (1, INF)]),
            linear,
            infeasible,
        ),
        Case(
            "infeasible-no-columns",
            "a program without columns whose rows do not allow 0",
            _program([], [], [(1, 2)]),
            linear,
            infeasible,
        ),
        Case("unbounded", "a cost that falls for ever", _program([-1, 0], [[1, -1]], [(0, INF)]), linear, unbounded),
    ]


def _integer_cases() -> list[Case]:
    """Small integer programs, solved by enumeration on paper."""
    needs = frozenset({Capability.INTEGER})
    rows, sides = [[6, 4], [1, 2]], [(-INF, 24), (-INF, 6)]
    return [
        Case(
            "integer",
            "integer columns: the relaxation's optimum is -21",
            _program([-5, -4], rows, sides, integer=[True, True]),
            needs,
            objective=-20.0,
        ),
        Case(
            "integer-mixed",
            "one integer column and one that is not: x = 3 and y = 1.5",
            _program([-5, -4], rows, sides, integer=[True, False]),
            needs,
            objective=-21.0,
        ),
        Case(
            "integer-infeasible",
            "2 x = 1 has no integer solution",
            _program([1], [[2]], [(1, 1)], [(0, 5)], integer=[True]),
            needs,
            Claimed.INFEASIBLE,
        ),
    ]


def _pmf_case(
    name: str,
    guards: str,
    reach: int,
    extra: Sequence[Sequence[float]],
    sides: Sequence[tuple[float, float]],
    y: Sequence[float],
    *,
    cost: Sequence[float] = (),
    forbidden: Sequence[int] = (),
) -> Case:
    """Maximum entropy on [-reach, reach] whose multipliers `y` of the `extra` rows are known; the rest is a formula."""
    k = np.arange(-reach, reach + 1)
    costs = np.array(cost, dtype=float) if len(cost) else np.zeros(k.size)
    rows = np.array(extra, dtype=float).reshape(len(sides), k.size)
    free = ~np.isin(k, forbidden)
    weights = np.where(free, np.exp(np.array(y, dtype=float) @ rows - costs), 0.0)
    pmf = weights / weights.sum()
    program = _program(
        costs.tolist(),
        [[1.0] * k.size, *rows.tolist()],
        [(1, 1), *sides],
        [(0.0, INF if allowed else 0.0) for allowed in free],
        entropy=[1.0] * k.size,
        blocks=MASS_FIRST,
    )
    return Case(
        name,
        guards,
        program,
        frozenset({Capability.ENTROPY}),
        objective=program.objective(pmf),
        signs=(2, *(int(np.sign(value)) for value in y)),
        multipliers=np.array([1.0 - np.log(weights.sum()), *y]),
    )


def _entropy_cases() -> list[Case]:
    """Maximum entropy in closed form."""
    squares = [4.0, 1.0, 0.0, 1.0, 4.0]
    steps = [-2.0, -1.0, 0.0, 1.0, 2.0]
    known = float(np.log(6.0)) / 4  # sum k^2 r^(k^2) = sum r^(k^2) on [-2, 2] says 6 r^4 = 1
    up = float(np.exp(np.log(2.0) * np.array(squares)) @ np.array(squares) / np.exp2(squares).sum())
    general = frozenset({Capability.ENTROPY_GENERAL})
    return [
        _pmf_case("entropy-uniform", "the mass row alone: the uniform pmf", 3, [], [], []),
        _pmf_case(
            "entropy-second-moment",
            "E[Z^2] <= 1 on [-2, 2], whose multiplier is -(ln 6)/4",
            2,
            [steps, squares],
            [(0, 0), (-INF, 1)],
            [0.0, -known],
        ),
        _pmf_case(
            "entropy-negated",
            "the row of 'entropy-second-moment' negated, whose multiplier is (ln 6)/4",
            2,
            [[-s for s in squares]],
            [(-1, INF)],
            [known],
        ),
        _pmf_case(
            "entropy-two-sided", "the same row between two sides, active above", 2, [squares], [(0.5, 1)], [-known]
        ),
        _pmf_case(
            "entropy-lower-side",
            "E[Z^2] bounded from below: mass at the ends",
            2,
            [squares],
            [(up, INF)],
            [float(np.log(2.0))],
        ),
        _pmf_case(
            "entropy-slack",
            "an inequality that the uniform pmf meets with room has multiplier 0",
            2,
            [steps, squares],
            [(-1, 1), (-INF, 3)],
            [0.0, 0.0],
        ),
        _pmf_case(
            "entropy-cost",
            "a linear cost beside the entropy: the discrete Laplace law",
            3,
            [],
            [],
            [],
            cost=[1.5, 1.0, 0.5, 0.0, 0.5, 1.0, 1.5],
        ),
        _pmf_case("entropy-forbidden", "columns fixed to 0 stay at 0", 3, [], [], [], forbidden=[-1, 2]),
        Case(
            "entropy-infeasible",
            "a second moment that no pmf on [-2, 2] has",
            _program([0] * 5, [[1] * 5, squares], [(1, 1), (5, 5)], entropy=[1] * 5, blocks=MASS_FIRST),
            frozenset({Capability.ENTROPY}),
            Claimed.INFEASIBLE,
        ),
        _many_rows_case(),
        _weighted_case(general),
        _auxiliary_case(general),
    ]


def _many_rows_case() -> Case:
    """Ratios between neighbours by the dozen, most of them active: the shape of pure differential privacy."""
    size, ratio = 41, 2.0
    distance = np.abs(np.arange(size) - size // 2)
    pmf = ratio ** -distance.astype(float)
    pmf /= pmf.sum()
    left, right = np.eye(size)[:-1], np.eye(size)[1:]
    rows = np.vstack([np.ones(size), left - ratio * right, right - ratio * left])
    active = np.isclose(rows @ pmf, 0.0, atol=1e-15)
    y = np.where(active, -1.0, 0.0)
    y[0] = 0.5
    cost = rows.T @ y - np.log(pmf) - 1.0
    sides = [(1.0, 1.0), *([(-INF, 0.0)] * (2 * (size - 1)))]
    program = _program(
        cost.tolist(),
        rows.tolist(),
        sides,
        entropy=[1.0] * size,
        blocks=(*MASS_FIRST, RowBlock(BlockKind.PURE_DP, "ratios", 1, 2 * (size - 1))),
    )
    return Case(
        "entropy-many-rows",
        "eighty ratio rows, half of them active with multiplier -1",
        program,
        frozenset({Capability.ENTROPY}),
        objective=program.objective(pmf),
        multipliers=y,
    )


def _weighted_case(needs: frozenset[Capability]) -> Case:
    """Two weights: built backwards from x = (1/4, 3/4)."""
    x, weights, y = np.array([0.25, 0.75]), np.array([2.0, 1.0]), np.array([0.5, -1.0])
    rows = np.array([[1.0, 1.0], [1.0, 2.0]])
    cost = rows.T @ y - weights * (np.log(x) + 1)
    program = _program(cost.tolist(), rows.tolist(), [(1, 1), (-INF, 1.75)], entropy=weights.tolist())
    # Both rows are active and there are two columns: the pair determines the multipliers.
    return Case(
        "entropy-weights",
        "entropy terms of different weight",
        program,
        needs,
        objective=program.objective(x),
        signs=(2, -1),
        multipliers=y,
    )


def _auxiliary_case(needs: frozenset[Capability]) -> Case:
    """A column t >= |x_1 - x_2| without an entropy term, beside a pmf (x_1, x_2) = (1/3, 2/3)."""
    x, y = np.array([1 / 3, 2 / 3, 1 / 3]), np.array([0.25, 0.5, 0.0])
    rows = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
    cost = rows.T @ y
    cost[:2] -= np.log(x[:2]) + 1
    program = _program(
        cost.tolist(),
        rows.tolist(),
        [(1, 1), (0, INF), (0, INF)],
        [(0, INF), (0, INF), (-INF, INF)],
        entropy=[1, 1, 0],
        blocks=MASS_FIRST,
    )
    return Case(
        "entropy-auxiliary",
        "a column without an entropy term",
        program,
        needs,
        objective=program.objective(x),
        signs=(2, 1, 0),
        multipliers=y,
    )


CASES: tuple[Case, ...] = (
    *_sign_cases(),
    *_linear_cases(),
    *_hopeless_cases(),
    *_integer_cases(),
    *_entropy_cases(),
)
"""All cases of the suite."""
