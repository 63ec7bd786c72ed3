"""The paper's windowed linear program: every shift, every pair, no closed tail. The headline, and the depth axis."""

from __future__ import annotations

import dpopt as dp
from benchmarks.registry import Axis, Case, Demand, register


def windowed(half_width: int, epsilon: object) -> dp.Problem:
    """Least E|Z| on [-D, D], the ratio rows read inside the window."""
    return dp.Problem(
        support=dp.Integers(-half_width, half_width),
        objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.PureDP(epsilon=epsilon, sensitivity=15, boundary="window")],
    )


register(
    Case(
        name="windowed",
        text="least E|Z|, epsilon 1, sensitivity 15, window [-D, D]; size: D",
        make=lambda D: windowed(D, 1),  # noqa: N803
        sizes=(50, 200, 800),
        demands=(
            Demand("build and scaling", "formulate+reduce", 0.25, 800),
            Demand("proof", "all proof", 1.0, 800),
        ),
    )
)
register(
    Case(
        name="windowed-depth",
        text="least E|Z|, sensitivity 15, window [-200, 200], the same arrays at every depth; size: epsilon",
        make=lambda epsilon: windowed(200, epsilon),
        sizes=("1/4", "1", "2", "4"),
        axis=Axis.DEPTH,
    )
)
