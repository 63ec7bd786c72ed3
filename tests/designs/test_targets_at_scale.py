"""Targets whose D is in the thousands: proved, and rejected as soon as a field is changed."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import pytest

import dpopt as dp
from dpopt import checker
from dpopt.family.members import breakpoints
from dpopt.proof.closed_form import some_pmf_reaches

SMALL = {"epsilon": "0.01", "delta": "1e-12"}


@pytest.mark.slow
@pytest.mark.parametrize(("family", "half", "variance", "delta"), [
    ("analytic", 4051, 405049.99673850986, 9.987002221287257e-13),
    ("tablebuilder", 3815, 346849.9986214461, 9.982809130184609e-13),
    ("any", 2234, 19999.832259497398, 9.927220299249802e-13),
])  # fmt: skip
def test_the_demand(family: str, half: int, variance: float, delta: float) -> None:
    """epsilon = 0.01, delta = 1e-12: proved at both ends, no solver, and the certificate holds."""
    solution = dp.solve(dp.target(**SMALL, family=family))
    assert solution.verified is dp.Verified.OPTIMAL and solution.backend == "closed form"
    assert half == solution.design.D
    assert float(solution.design.V) == pytest.approx(variance, rel=1e-12)
    assert float(solution.design.delta) == pytest.approx(delta, rel=1e-12)
    assert dp.verify(solution.certificate.data).holds


@pytest.mark.slow
@pytest.mark.parametrize("then", ["min-delta", "min-variance", "max-entropy"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "m"), [("1", "1e-5", 1), ("3", "1e-300", 1), ("0.5", "1e-3", 2), ("0", "0.2", 3)]
)
def test_every_then(epsilon: str, delta: str, m: int, then: str) -> None:
    """All three choices end, at any depth and at epsilon = 0, and their certificates hold."""
    solution = dp.solve(dp.target(epsilon=epsilon, delta=delta, sensitivity=m, family="tablebuilder", then=then))
    assert solution.require_verified().design.delta.upper <= Fraction(delta)
    assert dp.verify(solution.certificate.data).holds


def test_any_pmf_at_a_depth_beyond_128_bits() -> None:
    """All ratios of its design are e^epsilon: the enclosure has to be as fine as delta."""
    solution = dp.solve(dp.target(epsilon=3, delta="1e-100", family="any"))
    assert solution.verified is dp.Verified.OPTIMAL and solution.design.delta.upper <= Fraction(1, 10**100)
    assert dp.verify(solution.certificate.data).holds


def rederived(data: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The certificate with fields changed, and derived anew where that is possible."""
    statement = copy.deepcopy({**data, **changed})
    statement.pop("derived")
    return checker.certify(statement)


@pytest.mark.parametrize("then", ["min-delta", "min-variance", "max-entropy"])
def test_mutated_members_are_rejected(then: str) -> None:
    """A larger D, another gamma and another bracket prove nothing, derived anew or not."""
    data = dict(dp.solve(dp.target(epsilon=1, delta="1e-5", family="tablebuilder", then=then)).certificate.data)
    assert dp.verify(rederived(data)).holds
    half, gamma = int(data["D"]), Fraction(data["gamma"])
    points = breakpoints(half, Fraction(1), 1)
    mutations: list[dict[str, Any]] = [
        {"D": str(half + 1)},
        {"D": str(half - 1)},
        {"gamma": str(points[1])},
        {"gamma": str(-gamma)},
        {"refutation": {}},
        {"target": {**data["target"], "delta": "1/1000000"}},
        {"target": {**data["target"], "delta": "1/10000"}},
        {"target": {**data["target"], "epsilon": "2"}},
    ]
    if then == "min-delta":
        mutations += [{"refuted_gamma": str(gamma + 1)}, {"gamma": str(gamma + Fraction(1, 10**9))}]
    else:
        mutations += [
            {"refuted_gamma": None},
            {"refuted_gamma": str(gamma)},
            {"refuted_gamma": "-1"},
            {"refuted_gamma": "9"},
        ]
    for changed in mutations:
        assert not dp.verify({**data, **changed}).holds, changed
        with pytest.raises(dp.CertificateError):
            rederived(data, **changed)


@pytest.mark.slow
def test_an_unrefuted_smaller_support_is_named() -> None:
    """A design one step too wide: the smaller support that works is found by the checker itself."""
    data = dict(dp.solve(dp.target(**SMALL, family="tablebuilder")).certificate.data)
    with pytest.raises(dp.CertificateError, match=r"^D: the smaller support \[-3815, 3815\] reaches the target at"):
        rederived(data, D="3816")


@pytest.mark.parametrize("epsilon", ["0", "1/100", "1", "3", "700"])
def test_the_closed_form_decides(epsilon: str) -> None:
    """Equal to 1 / (2 (1 + E + ... + E^(D-1)) + E^D) in floats; at epsilon = 0 exactly."""
    value = Fraction(epsilon)
    if value == 0:
        edge = Fraction(1, 11)
        assert some_pmf_reaches(5, value, edge) and not some_pmf_reaches(5, value, edge - Fraction(1, 10**50))
        return
    growth = Fraction("1.010050167084168") if value < 1 else Fraction("2.718281828459045") ** value.numerator
    for half in (0, 1, 5):
        smallest = 1 / (2 * sum((growth**j for j in range(half)), Fraction(0)) + growth**half)
        assert some_pmf_reaches(half, value, smallest * (1 + Fraction(1, 10**9)))
        assert not some_pmf_reaches(half, value, smallest * (1 - Fraction(1, 10**9)))
