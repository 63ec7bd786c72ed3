"""The frontier of (D, V): its ends proved again, its inside against a grid."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import dpopt as dp
from dpopt.designing.frontier import frontier
from dpopt.family.members import delta_exceeds, family_pmf, reaching_rate

QUESTIONS = [
    ("1", "1e-5", 1),
    ("3", "1e-8", 1),
    ("5", "1e-8", 1),
    ("0.1", "1e-2", 1),
    ("0.5", "1e-2", 2),
    ("1", "0.6", 4),
]


@pytest.mark.parametrize(("epsilon", "delta", "m"), QUESTIONS)
def test_ends_and_inside(epsilon: str, delta: str, m: int) -> None:
    """Within the intervals every member works, beyond their ends none does, and one D less has none at all."""
    question = Fraction(epsilon), m, Fraction(delta)
    found = frontier(epsilon, delta, m, points=3)
    first = found.points[0].D
    assert [p.D for p in found.points] == [first, first + 1, first + 2]
    assert reaching_rate(first - 1, *question) is None
    for point in found.points:
        low, high = point.rates[0][0], point.rates[-1][1]
        for a, b in point.rates:
            assert all(not delta_exceeds(point.D, a + (b - a) * i / 60, *question) for i in range(61))
        for (_, a), (b, _) in zip(point.rates, point.rates[1:], strict=False):
            assert delta_exceeds(point.D, (a + b) / 2, *question)
        assert reaching_rate(point.D, *question, high * (1 + Fraction(1, 10**8)), None) is None
        assert low == 0 or reaching_rate(point.D, *question, Fraction(0), low * (1 - Fraction(1, 10**8))) is None
        for rate, end in ((high, point.least), (low, point.most)):
            assert end.lower <= family_pmf(point.D, rate).variance + Fraction(1, 10**30)
            assert family_pmf(point.D, rate).variance - Fraction(1, 10**30) <= end.upper
            assert end.width <= end.upper / 10**6
        assert all(low <= high for low, high in point.variances)


def test_delta_rises_between_breakpoints() -> None:
    """At epsilon = 3 the rates that work are two intervals: between them the member fails, though both ends work."""
    point = frontier(3, "1e-8", points=1).points[0]
    assert len(point.rates) == 2 and len(point.variances) == 2


def test_epsilon_zero() -> None:
    """Only total variation is left: the uniform pmf is the best, and at the edge the only one."""
    points = frontier(0, "0.2", 3, points=2).points
    assert points[0].D == 7 and points[0].rates == ((0, 0),)
    assert points[0].most.lower <= Fraction(56, 3) <= points[0].most.upper
    assert points[1].rates[0][0] == 0 < points[1].rates[0][1]


def test_the_rule_and_all_pmfs() -> None:
    """`analytic` has one V for each D; what any pmf reaches contains what the family reaches."""
    rule, anyone, family = (frontier(1, "1e-3", family=f, points=4) for f in ("analytic", "any", "tablebuilder"))
    assert [p.D for p in rule.points] == [10, 11, 12, 13]
    assert all(p.least == p.most for p in rule.points)
    for point in anyone.points:
        assert point.least.lower <= point.least.upper <= point.most.lower <= point.most.upper <= point.D**2
        for other in family.points:
            if other.D == point.D:
                assert point.least.lower <= other.least.upper and other.most.lower <= point.most.upper


def test_it_prints_and_converts() -> None:
    """A line for each D, and plain data."""
    found = frontier(1, "1e-2", points=2)
    assert len(str(found).splitlines()) == 3
    table = found.to_dict()
    assert json.loads(json.dumps(table)) == table and table["points"][0]["D"] == found.points[0].D


def test_bad_input() -> None:
    """The number of points is an integer of at least one."""
    with pytest.raises(dp.InputError, match=r"^points: must be at least 1, not 0$"):
        frontier(1, "1e-2", points=0)
