"""(epsilon, delta): hockey-stick rows, whose delta may lie far below a solver's tolerance."""

from __future__ import annotations

import dpopt as dp
from benchmarks.registry import Axis, Case, register


def approximate(delta: str, sensitivity: int) -> dp.Problem:
    """Least E|Z| on all integers at epsilon = 1."""
    return dp.Problem(
        support=dp.Integers(),
        objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.ApproxDP(epsilon=1, delta=delta, sensitivity=sensitivity)],
    )


register(
    Case(
        name="approx-dp-depth",
        text="least E|Z| on all integers, epsilon 1, sensitivity 1; size: delta",
        make=lambda delta: approximate(delta, 1),
        sizes=("1e-2", "1e-6", "1e-10"),
        axis=Axis.DEPTH,
    )
)
register(
    Case(
        name="approx-dp",
        text="least E|Z| on all integers, epsilon 1, delta 1e-3; size: sensitivity",
        make=lambda sensitivity: approximate("1e-3", sensitivity),
        sizes=(1, 2, 5),
    )
)
