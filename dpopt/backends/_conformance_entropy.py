"""Entropy cases: closed forms, or built backwards from ``cost = A^T y - w (ln x + 1)``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpopt.backends._conformance_case import INF, MASS_FIRST, Capability, Case, make_program
from dpopt.backends.base import Claimed
from dpopt.program.program import BlockKind, RowBlock

__all__ = ["entropy_cases"]


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
    program = make_program(
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


def entropy_cases() -> list[Case]:
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
            make_program([0] * 5, [[1] * 5, squares], [(1, 1), (5, 5)], entropy=[1] * 5, blocks=MASS_FIRST),
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
    program = make_program(
        cost.tolist(),
        rows.tolist(),
        sides,
        entropy=[1.0] * size,
        blocks=(*MASS_FIRST, RowBlock(BlockKind.RATIO, "ratios", 1, 2 * (size - 1))),
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
    program = make_program(cost.tolist(), rows.tolist(), [(1, 1), (-INF, 1.75)], entropy=weights.tolist())
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
    program = make_program(
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
