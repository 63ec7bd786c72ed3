"""Attacks on certificates: change any field, and it is rejected, or what it then states is true of the changed problem.

Numbers under "derived" follow from the rest: a change to any of them must be rejected with a reason. A change elsewhere
may leave another true statement; the test decides by solving the changed problem and comparing the proved intervals.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import dpopt as dp

ABSOLUTE = dp.MinExpectedCost("absolute")
QUESTIONS: dict[str, Any] = {
    "tablebuilder": dp.tablebuilder(D=4, V=2),
    "pure-dp": dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 2)]),
    "pure-dp-mean": dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 2), dp.Mean("1/2")]),
    "window": dp.Problem(
        support=dp.Integers(-4, 4), objective=ABSOLUTE, constraints=[dp.PureDP(1, 1, boundary="window"), dp.Unimodal()]
    ),
    "approx-dp": dp.Problem(objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "1/10", 2)]),
    "min-delta": dp.Problem(support=dp.Integers(-3, 3), objective=dp.MinDelta(1), constraints=[dp.Symmetric()]),
    "wasserstein": dp.wasserstein(input=dp.table(0, [1, 3, 2]), epsilon=1, sensitivity=2),
    "probability": dp.Problem(
        support=dp.Lattice("1/2", -1, 1),
        objective=dp.MinExpectedCost({"table": {"-1": 1, "1": 3}, "outside": 2}),
        constraints=[dp.Probability(of={"from": 0}, at_most="1/2"), dp.Forbidden(["1/2"])],
    ),
    "infeasible": dp.Problem(
        objective=ABSOLUTE, constraints=[dp.PureDP(1, 1), dp.Expectation(of="absolute", at_most="1/10")]
    ),
    "target": dp.target(epsilon=1, delta="1/100", family="tablebuilder", then="min-variance"),
    "target-any": dp.target(epsilon=1, delta="1/10", family="any"),
}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every leaf of JSON data."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for index in range(len(value)):
            yield from leaves(value[index], (*path, index))
    else:
        yield path


def changed(value: Any, rng: random.Random) -> Any:
    """Another value of the same or another kind."""
    if isinstance(value, str):
        try:
            number = Fraction(value)
        except (ValueError, ZeroDivisionError):
            return rng.choice([value + "x", "", "mean", "0", None])
        near = [number + 1, number - 1, number * 2, -number, number / 2, number + Fraction(1, 10**9)]
        return rng.choice([*map(str, near), "nan", "1e-5", str(number) + " ", None])
    return rng.choice(["1", 1, 1.5, None, [], {}]) if value is not True else False


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A deep copy with one leaf replaced."""
    copied = copy.deepcopy(data)
    place = copied
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copied


@pytest.fixture(scope="module", params=QUESTIONS)
def certificate(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A certificate as a file would hold it."""
    data = json.loads(json.dumps(dp.solve(QUESTIONS[request.param]).certificate.data))
    assert dp.verify(data).holds
    return data


def test_every_derived_number_is_checked(certificate: dict[str, Any]) -> None:
    """Whatever replaces a derived leaf, the certificate is rejected, and the reason says something."""
    rng = random.Random(1)
    for path in leaves(certificate["derived"], ("derived",)):
        place: Any = certificate
        for step in path:
            place = place[step]
        for _ in range(3):
            value = changed(place, rng)
            if value == place:
                continue
            verdict = dp.verify(replaced(certificate, path, value))
            assert not verdict.holds, (path, place, value)
            assert verdict.reason


def test_derived_keys_are_all_needed(certificate: dict[str, Any]) -> None:
    """A missing or an added derived key is rejected."""
    for key in certificate["derived"]:
        smaller = copy.deepcopy(certificate)
        del smaller["derived"][key]
        assert not dp.verify(smaller).holds, key
    assert not dp.verify({**certificate, "derived": {**certificate["derived"], "more": "1"}}).holds


def test_other_changes_are_rejected_or_true(certificate: dict[str, Any]) -> None:
    """A changed statement that still verifies states a truth about the changed problem: solve that one to see."""
    rng = random.Random(2)
    paths = [path for path in leaves(certificate) if path[0] != "derived"]
    for path in rng.sample(paths, min(len(paths), 150)):
        place: Any = certificate
        for step in path:
            place = place[step]
        mutated = replaced(certificate, path, changed(place, rng))
        if mutated == certificate or not dp.verify(mutated).holds:
            continue
        assert_true(mutated, path)


@pytest.mark.slow
def test_recomputed_digests_do_not_help(certificate: dict[str, Any]) -> None:
    """Deriving anew after a change gives another statement, never the old claim about it.

    An attacker who recomputes everything that can be recomputed ends with a true certificate of the changed problem.
    """
    from dpopt import checker
    from dpopt.errors import CertificateError

    rng, forgeries = random.Random(3), 0
    paths = [path for path in leaves(certificate) if path[0] != "derived"]
    for path in rng.sample(paths, min(len(paths), 60)):
        place: Any = certificate
        for step in path:
            place = place[step]
        mutated = replaced(certificate, path, changed(place, rng))
        del mutated["derived"]
        try:
            forged = checker.certify(mutated)
        except CertificateError:
            continue
        assert dp.verify(forged).holds
        assert_true(forged, path)
        forgeries += 1
    # The attack got through the reader and the comparison above was made; a target's few numbers hang together too
    # tightly: any change of one leaves another smaller D, or a rate that is not the best.
    assert forgeries > 0 or certificate["kind"] == "target"


def assert_true(certificate: dict[str, Any], path: tuple[Any, ...]) -> None:
    """What the certificate states agrees with what solving its problem proves."""
    if certificate["kind"] == "target":
        solution = dp.solve(dp.Target.from_dict({"target": certificate["target"]}))
        if solution.verified is not dp.Verified.FAILED:
            assert str(solution.design.D) == certificate["derived"]["D"], path
        return
    problem = dp.Problem.from_dict(certificate["problem"])
    solution = dp.solve(problem)
    if certificate["kind"] == "infeasible":
        assert solution.verified is dp.Verified.INFEASIBLE, path
        return
    assert solution.verified in (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE), (path, solution.message)
    low, high = map(Fraction, certificate["derived"]["value"])
    stated = certificate["derived"]["bound"]
    if problem.objective_term.maximise:
        assert low <= solution.bound, path
        assert stated is None or Fraction(stated) >= solution.value.lower, path
    else:
        assert solution.bound is None or high >= solution.bound, path
        assert stated is None or Fraction(stated) <= solution.value.upper, path
