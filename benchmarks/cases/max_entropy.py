"""Question 1: max-entropy TableBuilder noise, by dual Newton and by a generic cone solver.

    python -m benchmarks.cases.max_entropy

is the demand alone, a million points on each side without the proof; `--case tablebuilder-wide` has every phase.
"""

from __future__ import annotations

import sys

import dpopt as dp
from benchmarks.measure import Verb, measure
from benchmarks.peers import exp_once
from benchmarks.registry import Axis, Case, Demand, Peer, register
from dpopt.backends.registry import get_backend
from dpopt.program.formulate import core_for, formulate
from dpopt.program.reductions import reduce

WIDEST = 10**6
AT_MOST = 20.0  # times the peer


def tablebuilder(half_width: int) -> dp.Problem:
    """Variance D^2/30, so that the edge lies equally deep at every D (D = 11: the papers' V = 4)."""
    return dp.tablebuilder(D=half_width, V=half_width**2 // 30)


def wide(half_width: int) -> dp.Problem:
    """Variance D^2/100: the law is Gaussian to ten standard deviations."""
    return dp.tablebuilder(D=half_width, V=half_width**2 // 100)


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
register(
    Case(
        name="tablebuilder-wide",
        text="max entropy on [-D, D], mean 0, variance at most D^2/100, by newton; size: D",
        make=wide,
        sizes=(1_000, WIDEST),
        backend="newton",
        peer=Peer.EXP,
        demands=(Demand("solve over exp", "solve", AT_MOST, WIDEST),),
    )
)


def solve_alone(half_width: int) -> Verb:
    """The solve phase and nothing after it: the proof of a million masses takes a thousand times as long."""
    problem = wide(half_width)
    program, backend = reduce(formulate(problem, core_for(problem))).program, get_backend("newton")
    return lambda: backend.solve(program, {})


def main(repeat: int = 9) -> int:
    """Print the solve phase over its peer; status 1 where the demand is not met."""
    peer, _ = measure(exp_once(2 * WIDEST + 1), repeat)
    ours, claim = measure(lambda: solve_alone(WIDEST), repeat)
    by_median, by_least = ours.median / peer.median, ours.least / peer.least
    line = f"solve median {1000 * ours.median:.1f} ms over exp {1000 * peer.median:.2f} ms: {by_median:.1f}; "
    sys.stdout.write(f"{line}least {by_least:.1f}; {claim.status.value}, {claim.message}\n")
    sys.stdout.write(f"demand: solve over exp under {AT_MOST:g}: {'met' if by_median < AT_MOST else 'NOT MET'}\n")
    return int(by_median >= AT_MOST)


if __name__ == "__main__":
    sys.exit(main())
