"""Work before the estimate: a certificate of a few hundred bytes is refused or verified at once, whatever it asks for.

A watchdog of 20 s stands over every case; estimates are held against what was counted, and raised limits are kept.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt as dp
from dpopt.checker import derive
from dpopt.checker.effort import afford, one_account
from dpopt.checker.inputs import Input
from dpopt.checker.law import Law
from dpopt.checker.objectives.wasserstein import distance_work
from dpopt.checker.sums import (
    expected,
    expected_work,
    hockey_stick_work,
    stretched,
    stretched_bits,
    stretched_work,
    values_bits,
    walk_work,
    worst_hockey_stick,
)
from dpopt.cli import main
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction, geometric_moments, geometric_sum
from dpopt.work import Work

from .statements import FORMAT, chain, event, integers, law, pairs, statement

pytestmark = pytest.mark.timeout(20)

LONGEST_REASON = 460
THIRD = law(0, [1], left="1/3", right="1/3")


def pure(sensitivity: object) -> dict[str, str]:
    """Pure DP."""
    return {"type": "pure-dp", "epsilon": "2", "sensitivity": str(sensitivity)}


def approx(sensitivity: object) -> dict[str, str]:
    """Approximate DP."""
    return {"type": "approx-dp", "epsilon": "2", "delta": "1/10", "sensitivity": str(sensitivity)}


def wasserstein(source: dict[str, str], pmf: dict[str, Any] = THIRD, step: str = "1") -> dict[str, Any]:
    """A distance of an input."""
    support = None if step == "1" else {"type": "lattice", "step": step}
    objective = {"type": "min-wasserstein", "input": source}
    return statement(pmf | {"step": step}, pure(step), objective=objective, support=support)


def cost(form: object, pmf: dict[str, Any] = THIRD, step: str = "1", **support: str) -> dict[str, Any]:
    """An expected cost on a lattice."""
    objective = {"type": "min-expected-cost", "cost": form}
    return statement(pmf | {"step": step}, objective=objective, support={"type": "lattice", "step": step, **support})


def target(**changes: Any) -> dict[str, Any]:
    """A target certificate."""
    question = {"epsilon": "1", "delta": "1/10", "family": "tablebuilder", **changes.pop("target", {})}
    nothing = {"gamma": "0", "refuted_gamma": None, "design": None, "refutation": None}
    return {"format": FORMAT, "kind": "target", "target": question, "D": "3", **nothing, **changes}


TOO_MUCH: dict[str, dict[str, Any]] = {  # within no limit that is the default
    "pure-dp, tails": statement(THIRD, pure(10**9)),
    "pure-dp, tails, 1e5": statement(THIRD, pure(10**5)),
    "approx-dp, tails": statement(THIRD, approx(20_000)),
    "approx-dp, tails, 1e15": statement(THIRD, approx(10**15)),
    "symmetric, far out": statement(law(-(10**6), [1], left="1/3", right="1/3"), {"type": "symmetric"}),
    "gaussian input": wasserstein({"type": "gaussian", "mean": "0", "sd": "1e5"}),
    "wide uniform input, tails": wasserstein({"type": "uniform", "low": "0", "high": "1999999"}),
    "fine lattice": wasserstein({"type": "gaussian", "mean": "0", "sd": "1"}, step="1/100000"),
    "far law": statement(law(10**15, [1], left="1/3", right="1/3")),
    "far law, nearer": statement(law(-(10**6), [1], left="1/3", right="1/3")),
    "power of a huge step, window": cost({"power": "64"}, law(0, [1]), "1e200", low="0", high="4999999e200"),
    "wide entropy": statement(law(0, [1]), support=integers(0, 4_999_999), objective={"type": "max-entropy"}),
    "wide event": statement(THIRD, {"type": "probability", "of": {"from": "0", "to": "4999998"}, "at_least": "0"}),
    "far points": statement(THIRD, {"type": "probability", "of": ["0", "4999998"], "at_least": "0"}),
    "many cuts": statement(
        THIRD,
        objective={
            "type": "min-wasserstein-relaxation", "input": {"type": "point", "at": "0"},
            "cut": {"from": "-4000000", "to": "4000000"},
        },
    ),
    "chain": statement(THIRD, pure(10**6), chains=[chain(-2_500_000, 2_499_998)]),
    "D": target(D="1000000"),
    "D, analytic": target(D="1000000", target={"family": "analytic"}, gamma="1/1999999"),
    "D and a tiny delta": target(
        D="20000", target={"delta": "1e-3000", "then": "min-variance"}, gamma="1/39999", refuted_gamma="1/3"
    ),
    "long ratios": statement(law(0, [1], left="1/" + "9" * 90_000, right="1/" + "7" * 90_000), pure(10)),
}  # fmt: skip

UNREADABLE: dict[str, dict[str, Any]] = {  # no limit lets them in
    "gamma": target(gamma="1e999999999"),
    "gamma, long": target(gamma="1e3999"),
    "refuted gamma": target(target={"then": "min-variance"}, D="2", gamma="1/3", refuted_gamma="1e999999999"),
    "D, exponent": target(D="1e999999999"),
    "D, digits": target(D="9" * 5000),
    "delta": target(target={"delta": "1e-999999999"}),
    "epsilon": target(target={"epsilon": "1e999999999"}),
    "sensitivity": target(target={"sensitivity": "1e999999999"}),
    "poisson": wasserstein({"type": "poisson", "rate": "1e999999999"}),
    "poisson, large": wasserstein({"type": "poisson", "rate": "1e9"}),
    "sd": wasserstein({"type": "gaussian", "mean": "0", "sd": "1e999999999"}),
    "mean": wasserstein({"type": "gaussian", "mean": "1e999999999", "sd": "1"}),
    "uniform": wasserstein({"type": "uniform", "low": "0", "high": "1" + "0" * 15}),
    "precision": statement(THIRD, precision="9" * 4000),
    "precision, exponent": statement(THIRD, precision="1e9"),
    "scale": statement(THIRD, scale="99999999999"),
    "power": cost({"power": "99999999999"}),
    "step": cost("absolute", step="1e999999999"),
    "support": statement(law(0, [1]), support=integers(-(10**20), 10**20)),
    "polynomial": cost({"polynomial": ["1"] * 1000}),
    "epsilon, pure": statement(THIRD, pure(1) | {"epsilon": "1e999999999"}),
    "pairs far out": statement(THIRD, pure(100), entries={"0": pairs((0, 50, 1), (4_999_990, 5_000_050, 1))}),
    "event far out": statement(law(0, [1]), approx(2), entries={"0": event(2, 1, 10**16, [1])}),
}

AT_ONCE: dict[str, dict[str, Any]] = {  # looks large, and is not
    "approx-dp, no tails": statement(law(0, [1]), approx(10**9) | {"delta": "1"}),
    "power, long step": cost({"power": "3"}, step="1e300"),
    "power 64": cost({"power": "64"}),
    "min-delta, huge shift": statement(
        law(0, [1, 1]), support=integers(0, 1), objective={"type": "min-delta", "epsilon": "1", "sensitivity": "1e20"}
    ),
    "window, huge shift": statement(law(0, [1, 1]), pure(10**20) | {"boundary": "window"}, support=integers(0, 1)),
    "polynomial of long numbers": cost({"polynomial": ["-1e3999"] * 64 + ["1"]}),
    "tiny epsilon": statement(law(0, [1, 1]), pure(1) | {"epsilon": "1e-3999", "boundary": "window"},
                              support=integers(0, 1)),
    "most precision": statement(THIRD, pure(1), precision="8192", scale="4096"),
}  # fmt: skip


def content(data: dict[str, Any]) -> bytes:
    """The file of a certificate."""
    return json.dumps({"derived": {}} | data).encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_takes_too_much_says_what_it_takes_and_how_to_raise_the_limit(name: str) -> None:
    verdict = dp.verify(content(TOO_MUCH[name]))
    assert not verdict.holds and verdict.verified == "failed"
    assert "more than the limit" in verdict.reason and "dpopt --limit" in verdict.reason
    assert ": " in verdict.reason.partition("about")[0] and len(verdict.reason) <= LONGEST_REASON


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_no_limit_allows_is_refused_where_it_stands(name: str) -> None:
    verdict = dp.verify(content(UNREADABLE[name]))
    assert not verdict.holds and "derived" not in verdict.reason
    assert len(verdict.reason) <= LONGEST_REASON and "readable" not in verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_ONCE)
def test_what_only_looks_large_is_decided(name: str) -> None:
    assert derive(AT_ONCE[name])["verified"] in ("feasible", "optimal")


def test_a_place_is_named_once() -> None:
    verdict = dp.verify(content(UNREADABLE["poisson"]))
    assert verdict.reason.startswith("problem.objective.input.rate: has more than 4000 digits")


# --- limits ----------------------------------------------------------------------------------------------------------


def test_a_limit_is_lowered_and_raised() -> None:
    data = statement(THIRD, approx(300) | {"delta": "1"})
    assert derive(data)["verified"] == "feasible"
    with dp.limits(bit_operations=10**6):
        refused = dp.verify(content(data))
        assert not refused.holds and "bit_operations = 1e6" in refused.reason
    assert derive(data)["verified"] == "feasible"


def test_the_command_line_says_so_and_raises_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = statement(THIRD, approx(300) | {"delta": "1"})
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps({**data, "derived": derive(data)}))
    assert main(["--limit", "bit_operations=1e6", "verify", str(file)]) == 1
    assert "does not hold" in (said := capsys.readouterr().out) and "dpopt --limit bit_operations=" in said
    assert main(["--limit", "bit_operations=1e10", "verify", str(file)]) == 0


def test_what_a_certificate_asks_for_counts_together() -> None:
    step = Work(bit_operations=6 * 10**10)
    with one_account():
        for _ in range(3):
            afford(step, "takes a third")
        with pytest.raises(InputError, match="takes a fourth after what was checked before"), one_account():
            afford(Work(bit_operations=3 * 10**10), "takes a fourth")
    with one_account():
        afford(step, "takes a new account")
    data = statement(THIRD, *[approx(300) | {"delta": "1"}] * 40)
    with dp.limits(bit_operations=10**9):
        assert derive(statement(THIRD, approx(300) | {"delta": "1"}))["verified"] == "feasible"
        assert "after what was checked before" in dp.verify(content(data)).reason


# --- shifts beyond the support ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "constraints"),
    [
        (lambda m: dp.MinDelta(epsilon=1, sensitivity=m), lambda m: []),
        (lambda m: dp.MinExpectedCost("absolute"), lambda m: [dp.PureDP(1, m, boundary="window")]),
    ],
)
def test_shifts_as_long_as_the_support_and_more_are_one_shift(
    objective: Callable[[int], Any], constraints: Callable[[int], list[Any]]
) -> None:
    values = []
    for sensitivity in (7, 10**20):
        problem = dp.Problem(
            support=dp.Integers(-3, 3), objective=objective(sensitivity), constraints=constraints(sensitivity)
        )
        solution = dp.solve(problem)
        assert solution.verified is dp.Verified.OPTIMAL and dp.verify(solution.certificate).holds
        values.append(solution.value)
    assert values[0] == values[1]


def test_an_event_of_a_shift_beyond_the_support_is_what_it_is() -> None:
    """Mass that nobody can reach: the event of all points at such a shift has probability 1, and delta is 1."""
    objective = {"type": "min-delta", "epsilon": "1", "sensitivity": "1e20"}
    everything = event(10**20, 1 << 96, 0, [1 << 96, 1 << 96])
    everything["theta"] = everything.pop("y")
    found = derive(
        statement(law(0, [1, 1]), support=integers(0, 1), objective=objective, entries={"objective": everything})
    )
    assert found["value"] == ["1", "1"] and found["bound"] == "1" and found["verified"] == "optimal"


# --- estimates against what was counted ------------------------------------------------------------------------------

SIZES = [(1, 1), (1, 40), (3, 200), (50, 7), (200, 1000), (2, 3000)]


@pytest.mark.slow
def test_stretched_weights_are_as_long_as_estimated() -> None:
    for n, by in SIZES:
        for ratio in ("1/3", "1/" + str(2**128 + 1), "7/11"):
            found = Law(0, [5] * n, min(n, 2), Fraction(ratio), Fraction(ratio))
            weights, _ = stretched(found, by)
            longest, estimate = max(w.bit_length() for w in weights), stretched_bits(found, by)
            assert longest <= estimate + 1 <= 3 * longest + 300
            held, counted = stretched_work(found, by).bytes, sum(sys.getsizeof(w) + 8 for w in weights)
            assert counted / 3 <= held <= 4 * counted + 1000


def test_values_are_as_long_as_estimated() -> None:
    rng = random.Random(1)
    for degree in (0, 1, 2, 8, 64):
        for reach in (1, 100, 10**9):
            polynomial = tuple(Fraction(rng.randrange(1, 10**9), rng.randrange(1, 100)) for _ in range(degree + 1))
            function = LatticeFunction(0, (Fraction(1, 7),), polynomial, polynomial)
            longest = max(abs(n).bit_length() for n in function.integers(reach - 9, reach)[0])
            assert longest <= values_bits(function, reach - 9, reach) <= 2 * longest + 100


class Count:
    """Lines that Python ran while it was in force, a measure of its loops."""

    def __init__(self) -> None:
        self.lines = 0

    def __enter__(self) -> Count:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, *_: object) -> Any:
        self.lines += 1
        return self._trace


@pytest.mark.parametrize("shift", [3, 10, 40])
@pytest.mark.parametrize("n", [1, 20, 100])
def test_hockey_stick_steps_are_those_that_were_estimated(n: int, shift: int) -> None:
    """A step is a pair of points: as many as the shifts have in both directions."""
    found = Law(0, [*range(1, n + 1), 7], 1, Fraction(1, 3), Fraction(2, 7))
    shifts = range(1, shift + 1)
    pairs_of_points = sum(2 * (len(found.weights) + s) for s in shifts)
    estimate = hockey_stick_work(found, 130, shifts).bit_operations
    longest = stretched_bits(found, shift) + 130
    assert pairs_of_points * 1000 <= estimate <= 6 * pairs_of_points * (1000 + longest)
    assert worst_hockey_stick(found, Fraction(3), shift) >= 0


def test_expectations_over_tables_that_tails_pass_through() -> None:
    """Term by term: the lines that ran are at most a fifth of the steps, each some hundred bit operations."""
    for length in (100, 1000, 4000):
        function = LatticeFunction(0, tuple(map(Fraction, range(length))), (Fraction(0), Fraction(-1)), (Fraction(1),))
        found = Law(0, [1], 1, Fraction(1, 3), Fraction(1, 3))
        with Count() as count:
            expected(found, function)
        steps = walk_work(found, function).plus(expected_work(found, function)).bit_operations / 1000
        assert count.lines / 5 <= steps <= 20 * count.lines


def test_distances_grow_with_the_input_as_estimated() -> None:
    """Twice the width: the flow takes four times the bits, and the estimate two to eight times the work."""
    tails = Law(0, [1], 1, Fraction(1, 3), Fraction(1, 3))
    works = [distance_work(tails, Input(0, [1] * width)) for width in (200, 400, 800, 1600, 3200)]
    for before, after in zip(works, works[1:], strict=False):
        assert 2 * before.bit_operations <= after.bit_operations <= 9 * before.bit_operations
        assert 2 * before.bytes <= after.bytes + 1000 and after.bytes <= 5 * before.bytes


def test_geometric_moments_are_the_sums_that_they_replace() -> None:
    """Against the recursion in fractions, and against partial sums."""
    for ratio in (Fraction(1, 3), Fraction(5, 7), Fraction(0)):
        moments = geometric_moments(6, ratio)
        for power, moment in enumerate(moments):
            partial = sum(ratio**t * t**power for t in range(200))
            assert abs(moment - partial) < Fraction(1, 10**12)
            assert moment == geometric_sum((Fraction(0),) * power + (Fraction(1),), ratio)


# --- a fuzz of certificates ------------------------------------------------------------------------------------------

ABSOLUTE = dp.MinExpectedCost("absolute")
QUESTIONS: dict[str, Callable[[], Any]] = {
    "entropy": lambda: dp.tablebuilder(D=3, V=1),
    "expected cost": lambda: dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 2), dp.Mean("1/2")]),
    "window": lambda: dp.Problem(
        support=dp.Integers(-3, 3), objective=ABSOLUTE, constraints=[dp.PureDP(1, 1, boundary="window"), dp.Unimodal()]
    ),
    "approx-dp": lambda: dp.Problem(objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "1/10", 2), dp.Symmetric()]),
    "wasserstein": lambda: dp.wasserstein(input=dp.table(0, [1, 3, 2]), epsilon=1, sensitivity=2),
    "poisson": lambda: dp.wasserstein(input=dp.poisson(1), epsilon=1, sensitivity=1),
    "min-delta": lambda: dp.Problem(support=dp.Integers(-3, 3), objective=dp.MinDelta(1, 2)),
    "probability": lambda: dp.Problem(
        support=dp.Lattice("1/2", -1, 1), objective=dp.MinExpectedCost({"table": {"-1": 1, "1": 3}, "outside": 2}),
        constraints=[dp.Probability(of={"from": 0}, at_most="1/2"), dp.Forbidden(["1/2"])],
    ),
    "infeasible": lambda: dp.Problem(
        objective=ABSOLUTE, constraints=[dp.PureDP(1, 1), dp.Expectation(of="absolute", at_most="1/10")]
    ),
    "analytic": lambda: dp.target(epsilon=1, delta="1/100", family="analytic"),
    "tablebuilder": lambda: dp.target(epsilon=1, delta="1/100", family="tablebuilder", then="min-variance"),
    "any": lambda: dp.target(epsilon=1, delta="1/10", family="any"),
}  # fmt: skip
TRUSTED = statement(
    THIRD, {"type": "x-own"}, objective={"type": "x-cost"},
    trusted={
        "constraints": {"0": [
            {"term": "linear", "at_least": None, "at_most": "9", "function": [
                {"row": "0", "start": "0", "table": ["1", "1/2"], "left": ["0", "-1"], "right": ["0", "1"]}]},
            {"term": "zero", "row": "0", "indices": []}]},
        "objective": {"term": "cost", "function": [
            {"row": "0", "start": "-1", "table": ["1", "0", "1"], "left": ["0", "-1"], "right": ["0", "1"]}]},
    },
)  # fmt: skip
STRANGE = [
    "1e999999999", "-1e999999999", "1e-999999999", "1e3999", "1e-3999", "9" * 5000, "1" * 3000 + "/" + "7" * 3000,
    "1000000", "-1000000", "1000000000000000", "100000000000000000000", "5000000", "-4999999", "20000", "1/3", "0",
    "65536", "8192", "4096", "1/100000", "1e20", "99999", "700",
]  # fmt: skip


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every leaf and of every list."""
    if isinstance(value, dict | list) and value:
        if isinstance(value, list):
            yield path
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def strange(value: Any, rng: random.Random) -> Any:
    """A number that asks for much in place of a leaf; a list that is long, deep or of such numbers."""
    if isinstance(value, list) and value:
        deep: list[Any] = []
        for _ in range(400):
            deep = [deep]
        return rng.choice([value * rng.choice([3, 300]), [value[0]] * 2000, deep, [rng.choice(STRANGE)] * 3])
    return rng.choice(STRANGE) if rng.random() < 0.9 else rng.choice([value, None, [], {}, True])


def mutated(data: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The certificate with one to three places changed; those outside the claims, which only follow."""
    changed = copy.deepcopy(data)
    changed["derived"] = {}
    paths = [path for path in leaves(data) if path and path[0] not in ("derived", "format")]
    for path in rng.sample(paths, rng.choice([1, 1, 2, 3])):
        place: Any = changed
        with contextlib.suppress(LookupError, TypeError):  # an earlier change may have taken the place away
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = strange(place[path[-1]], rng)
    return changed


@pytest.fixture(scope="module")
def certificates() -> dict[str, dict[str, Any]]:
    """One of each kind."""
    found = {name: dict(dp.solve(question()).certificate.data) for name, question in QUESTIONS.items()}
    return json.loads(json.dumps({**found, "trusted": TRUSTED}))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", [*QUESTIONS, "trusted"])
def test_a_mutated_certificate_is_judged_within_the_limits(name: str, certificates: dict[str, Any]) -> None:
    """Within a limit of some seconds in all; what is found is a verdict, short, and never an error of Python's."""
    rng = random.Random(f"work {name}")
    with dp.limits(bit_operations=2 * 10**9, bytes=2 * 10**8):
        for _ in range(25):
            verdict = dp.verify(content(mutated(certificates[name], rng)))
            assert not verdict.holds and len(verdict.reason) <= LONGEST_REASON
            assert "not a readable certificate" not in verdict.reason, verdict.reason


DEEP = {"objects": '{"format":' * 100_000, "lists": "[" * 1_000_000, "closed": "[" * 3000 + "]" * 3000}


@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_deeply_is_no_certificate(name: str) -> None:
    assert not dp.verify(DEEP[name].encode()).holds


@pytest.mark.slow
def test_memory_stays_within_a_gigabyte() -> None:
    """The cases that are refused for their size, in a process that may not have more."""
    chosen = ["pure-dp, tails", "approx-dp, tails", "wide entropy", "fine lattice", "many cuts", "long ratios", "D",
              "power of a huge step, window"]  # fmt: skip
    code = (
        "import json, resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from dpopt.checker import verify\n"
        "for data in json.load(sys.stdin): print(verify(data).reason)"
    )
    cases = json.dumps([{"derived": {}} | TOO_MUCH[name] for name in chosen])
    done = subprocess.run([sys.executable, "-c", code], input=cases, capture_output=True, text=True, check=True)
    reasons = done.stdout.splitlines()
    assert len(reasons) == len(chosen) and all("more than the limit" in reason for reason in reasons)
