"""Backends that lie: whatever they return, the result is never a wrong `optimal`, `feasible` or `infeasible`.

Each liar asks an honest solver and corrupts its claim, or makes one up. The truth is known from outside: closed forms
and reference values, or an argument why the problem has no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dpopt as dp
from dpopt.backends.base import Availability, Option, Support
from dpopt.backends.registry import get_backend, unregister_backend
from dpopt.program.program import Program

ABSOLUTE = dp.MinExpectedCost("absolute")

# name -> (problem, true optimum or None where nothing is feasible); values from the reference values of this project
QUESTIONS: dict[str, tuple[dp.Problem, str | None]] = {
    "pure-dp": (dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 5)]), "4.7862842989968850205"),
    "window": (
        dp.Problem(
            support=dp.Integers(-10, 10), objective=ABSOLUTE, constraints=[dp.PureDP("0.5", 2, boundary="window")]
        ),
        "3.1348562871153",
    ),
    "approx-dp": (dp.Problem(objective=ABSOLUTE, constraints=[dp.ApproxDP(1, "0.01")]), "0.79849776972071807803"),
    "mean": (dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 1), dp.Mean(0)]), "0.85091812823932154513"),
    "wasserstein": (dp.wasserstein(input=dp.point(3), epsilon=1, sensitivity=5), "4.7862842989968850205"),
    "min-delta": (
        dp.Problem(support=dp.Integers(-5, 5), objective=dp.MinDelta("0.7")), "0.01036538063395472",
    ),
    "entropy": (dp.tablebuilder(D=5, V=2), "1.7654393361756080091"),
    "no-noise": (
        # E|Z| >= 0.8509 under 1-DP, so at most 0.1 is impossible
        dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 1), dp.SecondMoment(at_most="0.1")]), None,
    ),
    "no-row": (
        # mean 0 on [-1, 2] has variance 2 at most
        dp.Problem(support=dp.Integers(-1, 2), objective=dp.MaxEntropy(), constraints=[dp.Mean(0), dp.Variance(3)]),
        None,
    ),
}  # fmt: skip

Lie = Callable[[dp.Claim, Program], Any]


class Liar:
    """A backend that passes an honest solver's claim through a lie."""

    name: ClassVar[str] = "liar"
    requires: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, lie: Lie) -> None:
        self.lie = lie
        self.calls = 0

    def availability(self) -> Availability:
        """Always there."""
        return Availability(True, "")

    def supports(self, program: Program) -> Support:
        """Everything."""
        return Support(True, "")

    def solve(self, program: Program, options: Mapping[str, Any]) -> Any:
        """Ask an honest solver, then lie."""
        self.calls += 1
        honest = get_backend("newton" if program.has_entropy else "highs").solve(program, {})
        return self.lie(replace(honest, backend="liar"), program)


def points(change: Callable[[np.ndarray], Any]) -> Lie:
    """A lie about the point."""
    return lambda claim, program: replace(claim, x=change(claim.x.copy()) if claim.has_point else claim.x)


def multipliers(change: Callable[[np.ndarray], Any]) -> Lie:
    """A lie about the multipliers."""
    return lambda claim, program: replace(claim, y=change(claim.y.copy()))


def status(said: dp.Claimed, *, keep: bool = True) -> Lie:
    """A lie about the status, with or without the point."""
    nothing = np.zeros(0)
    return lambda claim, program: (
        replace(claim, status=said) if keep else replace(claim, status=said, x=nothing, y=nothing)
    )


def spread(claim: dp.Claim, program: Program) -> dp.Claim:
    """Says optimal, whatever the program: the same mass on every column."""
    size = program.cost.size
    return replace(claim, status=dp.Claimed.OPTIMAL, x=np.full(size, 1.0 / size), y=np.ones(program.row_lower.size))


def at(index: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    """Change one entry."""

    def change(x: np.ndarray) -> np.ndarray:
        x[index % x.size] = value
        return x

    return change


def _rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


def jitter(size: float) -> Callable[[np.ndarray], np.ndarray]:
    """Every entry off by up to `size`, in both directions."""
    return lambda x: x + size * _rng().uniform(-1, 1, x.size)


def _fail(error: BaseException) -> Lie:
    def lie(claim: dp.Claim, program: Program) -> Any:
        raise error

    return lie


LIES: dict[str, Lie] = {
    # the point
    "honest": lambda claim, program: claim,
    "all-nan": points(lambda x: np.full_like(x, np.nan)),
    "one-nan": points(at(3, np.nan)),
    "infinite": points(at(2, np.inf)),
    "minus-infinite": points(at(0, -np.inf)),
    "negative-mass": points(at(0, -0.3)),
    "slightly-negative": points(lambda x: x - 2e-5),
    "all-negative": points(lambda x: -x),
    "permuted": points(lambda x: _rng().permutation(x)),
    "reversed-halves": points(lambda x: np.concatenate([x[x.size // 2 :], x[: x.size // 2]])),
    "shifted": points(lambda x: np.roll(x, 1)),
    "off-by-1e-9": points(jitter(1e-9)),
    "off-by-1e-6": points(jitter(1e-6)),
    "off-by-1e-3": points(jitter(1e-3)),
    "scaled-mass": points(lambda x: 3 * x),
    "mass-1.005": points(lambda x: 1.005 * x),
    "no-mass": points(np.zeros_like),
    "point-mass": points(lambda x: at(x.size // 2, 1.0)(np.zeros_like(x))),
    "huge": points(lambda x: np.full_like(x, 1e308)),
    "tiny": points(lambda x: np.full_like(x, 5e-324)),
    "zeros-beside-masses": points(lambda x: np.where(x < 1e-2, 0.0, x)),
    "every-second-is-zero": points(lambda x: np.where(np.arange(x.size) % 2, 0.0, x)),
    "spread": spread,
    # the multipliers
    "flipped-multipliers": multipliers(lambda y: -y),
    "huge-multipliers": multipliers(lambda y: 1e30 * (y + 1)),
    "nan-multipliers": multipliers(lambda y: np.full_like(y, np.nan)),
    "infinite-multipliers": multipliers(lambda y: np.full_like(y, np.inf)),
    "one-nan-multiplier": multipliers(lambda y: at(0, np.nan)(y) if y.size else y),
    "doubled-multipliers": multipliers(lambda y: 2 * y),
    "zero-multipliers": multipliers(np.zeros_like),
    "random-multipliers": multipliers(lambda y: _rng().normal(size=y.size) * 10),
    "permuted-multipliers": multipliers(lambda y: _rng().permutation(y)),
    "no-multipliers": multipliers(lambda y: np.zeros(0)),
    # the sizes
    "point-too-long": points(lambda x: np.append(x, 0.0)),
    "point-too-short": points(lambda x: x[:-1]),
    "one-entry": points(lambda x: x[:1]),
    "matrix-point": points(lambda x: x.reshape(1, -1)),
    "scalar-point": points(lambda x: np.float64(1.0)),
    "multipliers-too-long": multipliers(lambda y: np.append(y, 7.0)),
    "multipliers-too-short": multipliers(lambda y: y[:-1]),
    "matrix-multipliers": multipliers(lambda y: y.reshape(1, -1)),
    # the status
    "says-infeasible": status(dp.Claimed.INFEASIBLE, keep=False),
    "says-infeasible-with-a-point": status(dp.Claimed.INFEASIBLE),
    "says-unbounded": status(dp.Claimed.UNBOUNDED, keep=False),
    "says-limit": status(dp.Claimed.LIMIT),
    "says-error": status(dp.Claimed.ERROR),
    "says-error-without-a-point": status(dp.Claimed.ERROR, keep=False),
    "says-optimal-without-a-point": status(dp.Claimed.OPTIMAL, keep=False),
    "says-optimal": status(dp.Claimed.OPTIMAL),
    "objective-too-good": lambda claim, program: replace(claim, objective=-1e6),
    "objective-nan": lambda claim, program: replace(claim, objective=float("nan")),
    "objective-huge": lambda claim, program: replace(claim, objective=1e300),
    # the types
    "returns-none": lambda claim, program: None,
    "returns-text": lambda claim, program: "optimal",
    "returns-array": lambda claim, program: claim.x,
    "returns-dictionary": lambda claim, program: {"status": "optimal", "x": claim.x},
    "status-is-text": lambda claim, program: replace(claim, status="optimal"),
    "status-is-verified": lambda claim, program: replace(claim, status=dp.Verified.OPTIMAL),
    "point-is-list": points(lambda x: x.tolist()),
    "point-is-none": points(lambda x: None),
    "point-is-text": points(lambda x: np.array(["half"] * x.size)),
    "point-is-objects": points(lambda x: np.array([object()] * x.size, dtype=object)),
    "point-is-complex": points(lambda x: x.astype(complex) + 0.5j),
    "point-is-boolean": points(lambda x: x > 0),
    "multipliers-are-none": multipliers(lambda y: None),
    "multipliers-are-text": multipliers(lambda y: np.array(["one"] * y.size)),
    "objective-is-none": lambda claim, program: replace(claim, objective=None),
    "objective-is-text": lambda claim, program: replace(claim, objective="good"),
    "tolerances-are-none": lambda claim, program: replace(claim, tolerances=None),
    "message-is-none": lambda claim, program: replace(claim, message=None, version=None),
    # exceptions
    "raises-value-error": _fail(ValueError("the solver's own words")),
    "raises-memory-error": _fail(MemoryError()),
    "raises-arithmetic-error": _fail(ZeroDivisionError("float division by zero")),
    "raises-assertion": _fail(AssertionError()),
    "raises-recursion": _fail(RecursionError("too deep")),
    "raises-stop-iteration": _fail(StopIteration()),
}

# claims that are no claims: whatever the problem, nothing can be proved from them
HOPELESS = ("returns-none", "returns-text", "returns-array", "returns-dictionary", "raises-value-error",
            "raises-memory-error", "raises-arithmetic-error", "raises-assertion", "raises-recursion",
            "raises-stop-iteration", "says-error-without-a-point")  # fmt: skip

# lies that leave too little of the answer for a proof on these problems
MUST_FAIL = ("all-nan", "one-nan", "infinite", "minus-infinite", "negative-mass", "all-negative", "scaled-mass",
             "no-mass", "huge", "tiny", "point-too-long", "point-too-short", "one-entry", "matrix-point",
             "scalar-point", "point-is-none", "point-is-text", "point-is-objects", "point-is-complex")  # fmt: skip


def assert_never_wrong(solution: dp.Solution, truth: str | None) -> None:
    """What the result states is true: compared with the known optimum, and every constraint checked once more."""
    if solution.verified is dp.Verified.FAILED:
        assert solution.message.strip(), "a failure must carry its reason"
        with pytest.raises(dp.NotVerifiedError):
            _ = solution.pmf
        with pytest.raises(dp.NotVerifiedError):
            solution.require_verified()
        return
    if solution.verified is dp.Verified.INFEASIBLE:
        assert truth is None, "a feasible problem was called infeasible"
        return
    assert truth is not None, f"an infeasible problem was called {solution.verified.value}"
    wanted, digits = Fraction(truth), Fraction(1, 10**12)
    sign = -1 if solution.problem.objective.type == "max-entropy" else 1
    worst = solution.value.upper if sign == 1 else solution.value.lower
    assert all(check.holds and check.margin >= 0 for check in solution.problem.check(solution.pmf))
    assert sign * (worst - wanted) >= -digits, "better than the optimum: not feasible after all"
    if solution.bound is not None:
        assert sign * (wanted - solution.bound) >= -digits, "the bound cuts off the optimum"
    if solution.verified is dp.Verified.OPTIMAL:
        assert abs(worst - wanted) <= Fraction(2, 10**6) * abs(wanted), "not optimal"


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_never_a_wrong_result(lie: str, question: str) -> None:
    """The heart of the package: a solver's lie costs the answer, never its truth."""
    problem, truth = QUESTIONS[question]
    liar = Liar(LIES[lie])
    solution = dp.solve(problem, liar)
    assert liar.calls > 0
    assert_never_wrong(solution, truth)
    assert solution.backend == "liar"


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_harness_can_succeed(question: str) -> None:
    """An honest claim through the same harness is proved: the tests above do not pass by failing always."""
    problem, truth = QUESTIONS[question]
    solution = dp.solve(problem, Liar(LIES["honest"]))
    assert solution.verified is (dp.Verified.INFEASIBLE if truth is None else dp.Verified.OPTIMAL), solution.message


@pytest.mark.parametrize("lie", HOPELESS)
@pytest.mark.parametrize("question", ["pure-dp", "entropy", "no-row"])
def test_no_claim_at_all_fails_with_the_reason(question: str, lie: str) -> None:
    """Exceptions and objects that are no claims: `failed`, and the message says what came back."""
    solution = dp.solve(QUESTIONS[question][0], Liar(LIES[lie]))
    assert solution.verified is dp.Verified.FAILED
    assert "liar" in solution.message or "backend" in solution.message
    if lie == "raises-value-error":
        assert "the solver's own words" in solution.message + solution.solver_message


@pytest.mark.slow
@pytest.mark.parametrize("lie", MUST_FAIL)
@pytest.mark.parametrize("question", ["pure-dp", "approx-dp"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ruined_points_fail(question: str, lie: str) -> None:
    """A point that is no pmf is not made one: `failed`, with the reason in words."""
    solution = dp.solve(QUESTIONS[question][0], Liar(LIES[lie]))
    assert solution.verified is dp.Verified.FAILED
    assert len(solution.message) > 10


@pytest.mark.slow
@pytest.mark.parametrize("lie", ["says-infeasible", "says-infeasible-with-a-point", "says-unbounded"])
@pytest.mark.parametrize("question", [q for q, (_, truth) in QUESTIONS.items() if truth is not None])
def test_a_solvers_word_infeasible_is_not_trusted(question: str, lie: str) -> None:
    """Only a Farkas combination, checked exactly, makes a problem infeasible."""
    solution = dp.solve(QUESTIONS[question][0], Liar(LIES[lie]))
    assert solution.verified is not dp.Verified.INFEASIBLE
    assert solution.claimed in (dp.Claimed.INFEASIBLE, dp.Claimed.UNBOUNDED)


def test_zeros_beside_masses_are_repaired() -> None:
    """Zeros beside masses, the usual lie of LP solvers: what is returned is private, in exact arithmetic."""
    problem, truth = QUESTIONS["pure-dp"]
    solution = dp.solve(problem, Liar(LIES["zeros-beside-masses"]))
    assert_never_wrong(solution, truth)
    assert solution.verified in (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)
    assert dp.epsilon(solution.pmf, 0, 5).upper <= 1 + Fraction(1, 1 << 60)
    assert solution.repair is not None and solution.repair.mass_moved > 0


def test_slightly_wrong_points_are_still_proved() -> None:
    """A pmf off by 1e-9 is within reach of the repair: proved, and the mass moved is of that size."""
    problem, truth = QUESTIONS["pure-dp"]
    solution = dp.solve(problem, Liar(LIES["off-by-1e-9"]))
    assert_never_wrong(solution, truth)
    assert solution.verified is dp.Verified.OPTIMAL
    assert solution.repair is not None and 1e-11 < solution.repair.mass_moved < 1e-6


class Stale(Liar):
    """Answers every program with the answer to the first one that it saw."""

    def __init__(self) -> None:
        super().__init__(lambda claim, program: claim)
        self.first: Any = None

    def solve(self, program: Program, options: Mapping[str, Any]) -> Any:
        """The first answer, again and again."""
        self.first = self.first or super().solve(program, options)
        return self.first


@pytest.mark.parametrize("second", ["pure-dp", "window", "approx-dp", "mean", "min-delta", "no-noise", "no-row"])
@pytest.mark.parametrize("first", ["pure-dp", "window", "approx-dp", "entropy"])
def test_stale_answers(first: str, second: str) -> None:
    """The answer to another problem, of the same size or not, is never sold as the answer to this one."""
    liar = Stale()
    dp.solve(QUESTIONS[first][0], liar)
    problem, truth = QUESTIONS[second]
    assert_never_wrong(dp.solve(problem, liar), truth)


def test_stale_answer_of_the_same_shape() -> None:
    """Another epsilon gives programs of the same shape: the stale, less private pmf is not accepted."""
    liar = Stale()
    dp.solve(dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(2, 5)]), liar)
    problem, truth = QUESTIONS["pure-dp"]
    solution = dp.solve(problem, liar)
    assert_never_wrong(solution, truth)
    if solution.verified in (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE):
        assert dp.epsilon(solution.pmf, 0, 5).upper <= 1 + Fraction(1, 1 << 60)


@pytest.fixture
def registered() -> Iterator[str]:
    """A liar registered through the public API, taken out again afterwards."""
    dp.register_backend(Liar(LIES["permuted"]))
    yield "liar"
    unregister_backend("liar")


def test_registered_by_name(registered: str) -> None:
    """A registered backend is found by its name and proved like any other."""
    assert registered in dp.backend_names()
    problem, truth = QUESTIONS["window"]
    solution = dp.solve(problem, registered)
    assert solution.backend == registered
    assert_never_wrong(solution, truth)


@pytest.mark.parametrize("thing", [None, 3, object(), "no-such-solver", Liar, lambda program: program, ["highs"]])
def test_things_that_are_no_backends(thing: Any) -> None:
    """Anything that is no backend is an error that names what is wrong, not an AttributeError."""
    with pytest.raises((dp.BackendError, dp.InputError), match="backend"):
        dp.solve(QUESTIONS["window"][0], thing)


@pytest.mark.parametrize("member", ["name", "requires", "options", "availability", "supports", "solve"])
def test_incomplete_backends_are_refused(member: str) -> None:
    """A backend without a member of the protocol is refused at registration, and the member is named."""
    members = {m: getattr(Liar, m) for m in ("name", "requires", "options", "availability", "supports", "solve")}
    del members[member]
    incomplete = type("Incomplete", (), members)()
    with pytest.raises(dp.InputError, match=member):
        dp.register_backend(incomplete)


@pytest.mark.parametrize("lie", ["permuted", "off-by-1e-9", "zeros-beside-masses", "random-multipliers", "says-limit"])
@pytest.mark.parametrize("question", ["pure-dp", "approx-dp", "entropy", "wasserstein"])
def test_certificates_from_lies_are_true(question: str, lie: str, tmp_path: Path) -> None:
    """What is proved from a lie verifies on its own, and its interval contains the truth."""
    problem, truth = QUESTIONS[question]
    solution = dp.solve(problem, Liar(LIES[lie]))
    assert_never_wrong(solution, truth)
    if solution.certificate:
        path = tmp_path / "certificate.json"
        solution.certificate.save(path)
        assert dp.verify(path).holds
    else:
        assert solution.verified is dp.Verified.FAILED
