"""Attacks on the witnesses alone: with the problem and the law left as they are, no lie may prove more than is true.

The certificates are sound and mostly optimal, so that their law's value is the truth to a part in a million. Whatever
becomes of the witnesses, the bound stays on its side of that value, and a feasible problem is never proved infeasible.
"""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from typing import Any

import pytest

import dpopt as dp
from dpopt.checker import derive
from dpopt.errors import CertificateError

from .statements import chain

COST = dp.MinExpectedCost("absolute")
QUESTIONS: dict[str, dp.Problem] = {
    "entropy": dp.tablebuilder(D=3, V=1),
    "entropy-everything": dp.Problem(
        support=dp.Integers(-3, 3), objective=dp.MaxEntropy(),
        constraints=[dp.Mean(0), dp.Variance(at_most=2), dp.ApproxDP(1, "2/5", 1), dp.Unimodal(), dp.Forbidden([3])],
    ),
    "pure-dp": dp.Problem(objective=COST, constraints=[dp.PureDP(1, 2)]),
    "pure-dp-mean": dp.Problem(objective=COST, constraints=[dp.PureDP(1, 2), dp.Mean("1/2"), dp.PureDP("3/2", 1)]),
    "window": dp.Problem(
        support=dp.Integers(-4, 4), objective=COST, constraints=[dp.PureDP(1, 1, boundary="window"), dp.Unimodal()]
    ),
    "mirrored": dp.Problem(
        support=dp.Integers(-3, 4), objective=dp.MinExpectedCost({"table": {"-1": -3, "2": -1}, "outside": 0}),
        constraints=[dp.Symmetric(), dp.SecondMoment(at_least=2)],
    ),
    "approx-dp": dp.Problem(objective=COST, constraints=[dp.ApproxDP(1, "1/10", 2)]),
    "min-delta": dp.Problem(support=dp.Integers(-3, 3), objective=dp.MinDelta(1, 2), constraints=[dp.Symmetric()]),
    "wasserstein": dp.wasserstein(input=dp.table(0, [1, 3, 2]), epsilon=1, sensitivity=2),
    "probability": dp.Problem(
        support=dp.Lattice("1/2", -1, 1), objective=dp.MinExpectedCost({"table": {"-1": 1, "1": 3}, "outside": 2}),
        constraints=[dp.Probability(of={"from": 0}, at_most="1/2"), dp.Forbidden(["1/2"])],
    ),
}  # fmt: skip
NUMBERS = ("y", "theta", "part", "shift", "start", "left", "right", "low", "high", "constraint", "of", "row")


def moved(number: int, rng: random.Random) -> str:
    """Another integer: near, mirrored, doubled, 0, huge."""
    near = number + rng.choice([-1, 1, -(2**100), 2**100])
    choices = [near, -number, 2 * number, number // 2, number * 3 // 2, 0, 1, 2**128, 2**127, -(2**128), 10**50]
    return str(rng.choice(choices))


def lie(data: dict[str, Any], rng: random.Random) -> None:
    """Change something about the witnesses, the chains, or what their integers are counted in."""
    witnesses, chains = data["witnesses"], data["chains"]
    kind = rng.randrange(9)
    if kind == 0 and witnesses:
        witnesses.pop(rng.randrange(len(witnesses)))
    elif kind == 1 and witnesses:
        again = copy.deepcopy(rng.choice(witnesses))
        again["of"] = rng.choice(["objective", *map(str, range(len(data["problem"]["constraints"]) + 1))])
        witnesses.append(again)
    elif kind == 2:
        data["scale"] = str(int(data["scale"]) + rng.choice([-40, -1, 1, 40]))
    elif kind == 3:
        data["precision"] = rng.choice(["32", "33", "64", "256"])
    elif kind == 4 and chains:
        place = rng.choice(chains)
        place[rng.choice(["low", "high"])] = str(int(place["low"]) + rng.randrange(-9, 40))
    elif kind == 5:
        owner, low = rng.randrange(len(data["problem"]["constraints"]) + 1), rng.randrange(-9, 9)
        data["chains"] = rng.choice([[], [chain(low, low + rng.randrange(12), owner)], [*chains, *chains]])
    elif witnesses:
        numbers(rng.choice([*witnesses, *chains]), rng)


def numbers(witness: dict[str, Any], rng: random.Random) -> None:
    """Change one number of a witness, or one in four of its list."""
    lists = [key for key, value in witness.items() if isinstance(value, list) and value]
    if lists and rng.random() < 0.6:
        key = rng.choice(lists)
        for i in range(len(witness[key])):
            if rng.random() < 0.25 and key == "pairs":
                place = rng.randrange(len(witness[key][i]))
                step = rng.choice([-2, -1, 1, 2])
                old = int(witness[key][i][place])
                witness[key][i][place] = str(old + step) if abs(old) < 99 else moved(old, rng)
            elif rng.random() < 0.25:
                witness[key][i] = moved(int(witness[key][i]), rng) if key != "pairs" else witness[key][i]
        return
    key = rng.choice([key for key in NUMBERS if key in witness])
    old = witness[key]
    number = 0 if old == "objective" else int(old)
    witness[key] = str(number + rng.choice([-1, 1])) if abs(number) < 99 else moved(number, rng)


def attack(problem: dp.Problem, rounds: int, seed: int) -> int:
    """Lie `rounds` times; how many lies were read as witnesses, all of them harmless."""
    rng = random.Random(seed)
    certificate = copy.deepcopy(dict(dp.solve(problem).certificate.data))
    value = [Fraction(end) for end in certificate.pop("derived")["value"]]
    maximise, accepted = problem.objective_term.maximise, 0
    for _ in range(rounds):
        data = copy.deepcopy(certificate)
        for _ in range(rng.choice([1, 1, 2, 4])):
            lie(data, rng)
        forged = {**data, "kind": "infeasible", "laws": None}
        forged["witnesses"] = [w for w in data["witnesses"] if w["of"] != "objective"]
        with pytest.raises(CertificateError):
            derive(forged)
        try:
            found = derive(data)["bound"]
        except CertificateError as error:
            assert "beyond its own bound" not in str(error), data["witnesses"]
            continue
        accepted += 1
        if found is not None:
            assert Fraction(found) >= value[0] if maximise else Fraction(found) <= value[1]
    return accepted


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_lie_about_the_witnesses_proves_more(name: str) -> None:
    assert attack(QUESTIONS[name], 120, 1) > 0
