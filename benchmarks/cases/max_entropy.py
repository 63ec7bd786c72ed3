"""Question 1: max-entropy TableBuilder noise, by dual Newton and by a generic cone solver."""

from __future__ import annotations

import dpopt as dp
from benchmarks.registry import Axis, Case, Peer, register


def tablebuilder(half_width: int) -> dp.Problem:
    """Variance D^2/30, so that the edge lies equally deep at every D (D = 11: the papers' V = 4)."""
    return dp.tablebuilder(D=half_width, V=half_width**2 // 30)


register(
    Case(
        name="tablebuilder",
        text="max entropy on [-D, D], mean 0, variance at most D^2/30, by newton; size: D",
        make=tablebuilder,
        sizes=(11, 1_000, 100_000),
        backend="newton",
        peer=Peer.EXP,
    )
)
register(
    Case(
        name="tablebuilder-depth",
        text="max entropy on [-1000, 1000], mean 0, by newton; size: the variance V",
        make=lambda V: dp.tablebuilder(D=1_000, V=V),  # noqa: N803
        sizes=(100_000, 10_000, 2_000),
        axis=Axis.DEPTH,
        backend="newton",
        peer=Peer.EXP,
    )
)
register(
    Case(
        name="tablebuilder-cvxpy",
        text="max entropy on [-D, D], mean 0, variance at most D^2/30, by cvxpy; size: D",
        make=tablebuilder,
        sizes=(11, 100, 1_000),
        backend="cvxpy",
        peer=Peer.EXP,
    )
)
