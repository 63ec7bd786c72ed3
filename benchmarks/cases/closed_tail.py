"""Pure DP on all integers: the tails are closed, a core of a few shifts is the whole program. One case a backend."""

from __future__ import annotations

import dpopt as dp
from benchmarks.registry import Case, register

LP_BACKENDS = ("highs", "scipy", "pulp", "cvxpy")
SHAPES = {"eps1-m5": (1, 5), "eps2-m15": (2, 15)}


def closed_tail(shape: str) -> dp.Problem:
    """Least E|Z| on all integers."""
    epsilon, sensitivity = SHAPES[shape]
    return dp.Problem(
        support=dp.Integers(),
        objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.PureDP(epsilon=epsilon, sensitivity=sensitivity)],
    )


for _backend in LP_BACKENDS:
    register(
        Case(
            name=f"closed-tail-{_backend}",
            text=f"least E|Z| on all integers by {_backend}; size: epsilon and sensitivity",
            make=closed_tail,
            sizes=tuple(SHAPES),
            backend=_backend,
        )
    )
