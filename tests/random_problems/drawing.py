"""Random problems as plain data: their TOML tables, feasible or not, and a constraint that only a user would have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.lattice_function import LatticeFunction

BOUNDED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@dp.register_constraint
@dataclass(frozen=True)
class TailMass(dp.Constraint):
    """A user's own constraint: P(|Z| >= size) is at most this much."""

    size: int
    at_most: Fraction
    type: ClassVar[str] = "random-tail-mass"

    def terms(self, setting: dp.Setting) -> tuple[Any, ...]:
        """One expectation of an indicator that is 1 far out."""
        steps = math.ceil(Fraction(self.size) / setting.support.step)
        inside = LatticeFunction(-steps + 1, (Fraction(0),) * (2 * steps - 1), (Fraction(1),), (Fraction(1),))
        return (dp.ExpectationTerm(inside, None, Fraction(self.at_most)),)


fractions = st.builds(lambda n, d: f"{n}/{d}", st.integers(0, 12), st.sampled_from([1, 2, 3, 4, 8]))
epsilons = st.sampled_from(["1/10", "1/2", "1", "3/2", "2"])
deltas = st.sampled_from(["1e-6", "1e-3", "1/100", "1/10", "1/5"])


def bounds(values: st.SearchStrategy[str], kinds: tuple[str, ...] = ("equals", "at_least", "at_most")) -> Any:
    """One of the three kinds of bound with a value."""
    return st.builds(lambda kind, value: {kind: value}, st.sampled_from(kinds), values)


def table_cost(values: list[int], outside: int) -> dict[str, Any]:
    """A cost of three points, and one for everything else."""
    zero, up, down = values
    return {"type": "min-expected-cost", "cost": {"table": {"0": zero, "1": up, "-1": down}, "outside": outside}}


@st.composite
def finite_problems(draw: st.DrawFn) -> dict[str, Any]:
    """A problem on a small finite support, as its TOML table."""
    low, high = draw(st.integers(-6, 0)), draw(st.integers(1, 6))
    support: dict[str, Any] = {"type": "integers", "low": low, "high": high}
    if draw(st.booleans()) and high - low <= 6:
        support = {"type": "lattice", "step": "1/2", "low": low, "high": high}
    objective = draw(st.one_of(
        st.builds(lambda c: {"type": "min-expected-cost", "cost": c}, st.sampled_from(["absolute", "square", "error"])),
        st.builds(lambda p: {"type": "min-expected-cost", "cost": {"power": p}}, st.integers(0, 4)),
        st.builds(
            table_cost,
            st.lists(st.integers(-3, 5), min_size=3, max_size=3), st.integers(0, 6),
        ),
        st.just({"type": "max-entropy"}),
        st.builds(lambda e, m: {"type": "min-delta", "epsilon": e, "sensitivity": m}, epsilons, st.integers(1, 3)),
        st.builds(
            lambda w: {"type": "min-wasserstein", "input": {"type": "table", "low": 0, "weights": [*w, 1]}},
            st.lists(st.integers(0, 5), min_size=0, max_size=3),
        ),
    ))  # fmt: skip
    constraints = draw(st.lists(finite_constraints(low, high), max_size=3))
    if any(c["type"] == "variance" for c in constraints):
        constraints = [{"type": "mean", "equals": 0}, *[c for c in constraints if c["type"] != "mean"]]
    return {"support": support, "objective": objective, "constraints": constraints}


def finite_constraints(low: int, high: int) -> st.SearchStrategy[dict[str, Any]]:
    """One constraint that makes sense on low..high, feasible or not."""
    inside = st.integers(low, high)
    return st.one_of(
        bounds(st.sampled_from(["0", "1/2", "-1/2", "1", "-1"])).map(lambda b: {"type": "mean", **b}),
        bounds(fractions).map(lambda b: {"type": "variance", **b}),
        bounds(fractions).map(lambda b: {"type": "second-moment", **b}),
        bounds(fractions, ("at_least", "at_most")).map(lambda b: {"type": "expectation", "of": "absolute", **b}),
        st.builds(
            lambda of, b: {"type": "probability", "of": of, **b},
            st.lists(inside, min_size=1, max_size=3, unique=True), bounds(st.sampled_from(["0", "1/10", "1/2", "1"])),
        ),
        st.builds(
            lambda a, b, c: {"type": "probability", "of": {"from": min(a, b), "to": max(a, b)}, **c},
            inside, inside, bounds(st.sampled_from(["1/10", "1/2", "9/10"])),
        ),
        st.lists(inside, min_size=1, max_size=2, unique=True).map(lambda v: {"type": "forbidden", "values": v}),
        st.just({"type": "symmetric"}),
        inside.map(lambda m: {"type": "unimodal", "mode": m}),
        st.builds(
            lambda e, m: {"type": "pure-dp", "epsilon": e, "sensitivity": m, "boundary": "window"},
            epsilons, st.integers(1, 4),
        ),
        st.builds(
            lambda e, d, m: {"type": "approx-dp", "epsilon": e, "delta": d, "sensitivity": m},
            epsilons, deltas, st.integers(1, 3),
        ),
        st.builds(
            lambda s, p: {"type": "random-tail-mass", "size": s, "at_most": p},
            st.integers(1, 4), st.sampled_from(["0", "1/100", "1/4"]),
        ),
    )  # fmt: skip


@st.composite
def infinite_problems(draw: st.DrawFn) -> dict[str, Any]:
    """A problem on all integers under a privacy constraint."""
    objective = draw(st.one_of(
        st.builds(
            lambda c: {"type": "min-expected-cost", "cost": c}, st.sampled_from(["absolute", "square", {"power": 3}])
        ),
        st.builds(
            table_cost, st.lists(st.integers(-3, 5), min_size=3, max_size=3), st.just(6),
        ),
        st.builds(
            lambda w: {"type": "min-wasserstein", "input": {"type": "table", "low": 0, "weights": [*w, 1]}},
            st.lists(st.integers(0, 5), min_size=0, max_size=3),
        ),
    ))  # fmt: skip
    privacy = draw(st.one_of(
        st.builds(lambda e, m: {"type": "pure-dp", "epsilon": e, "sensitivity": m}, epsilons, st.integers(1, 4)),
        st.builds(
            lambda e, d, m: {"type": "approx-dp", "epsilon": e, "delta": d, "sensitivity": m},
            epsilons, deltas, st.integers(1, 2),
        ),
    ))  # fmt: skip
    extra = st.one_of(
        bounds(st.sampled_from(["0", "1/2", "-2", "3"])).map(lambda b: {"type": "mean", **b}),
        fractions.map(lambda v: {"type": "second-moment", "at_most": v}),
        bounds(st.sampled_from(["1/10", "1/4", "1/2"])).map(lambda b: {"type": "probability", "of": [0, 1], **b}),
        st.builds(
            lambda s, p: {"type": "random-tail-mass", "size": s, "at_most": p},
            st.integers(1, 6),
            st.sampled_from(["1/100", "1/4", "1/2"]),
        ),
        st.just({"type": "symmetric"}),
    )
    return {"objective": objective, "constraints": [privacy, *draw(st.lists(extra, max_size=2))]}
