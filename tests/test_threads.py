"""Public functions in eight threads: every answer equals the single-threaded one, bit for bit.

The threads take the questions in different orders and are switched every 10 microseconds; what dpopt keeps for the next
call is thrown away first, so that they compute. A question gives plain data, or frozen exact data that compare.
"""

from __future__ import annotations

import decimal
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import ctx

import dpopt as dp
from dpopt.backends import registry
from dpopt.mechanisms.calibration import Mechanism
from dpopt.privacy.enclosed import enclosed_delta
from dpopt.problem import parts

THREADS = 8
OTHER_CONTEXTS = [(5000, 1000), (30, 3)]  # the tests' own is (2, 1)
NOISE = dp.Pmf(-4, (1, 2, 5, 9, 20, 9, 5, 2, 1))
TAILED = dp.Pmf(-1, (1, 3, 1), tails=dp.Tails(1, left="1/3", right="1/3"))
ENOUGH = {
    Mechanism.STAIRCASE: {"width": 2},
    Mechanism.EXPONENTIAL: {"delta": "1e-2"},
    Mechanism.GAUSSIAN: {"delta": "1e-2"},
    Mechanism.TRUNCATED_GEOMETRIC: {"delta": "1e-4"},
    Mechanism.UNIFORM: {"epsilon": 0, "delta": "1e-2"},
}


def calibrated(kind: Mechanism) -> Any:
    found = dp.calibrate(kind, **{"epsilon": 1, "sensitivity": 2, **ENOUGH.get(kind, {})})
    return found, found.pmf, found.proved_epsilon


def certificate(solution: Any) -> Any:
    """All that is proved: of floats only what the checker needs not."""
    return solution.verified, solution.value, solution.bound, solution.certificate.data, solution.proved_pmf


def seeded(draw: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[], Any]:
    """Draws from a generator of their own."""
    return lambda: plain(draw(*arguments, **options, randomness=dp.InsecureRandomness(5)))


def plain(found: Any) -> Any:
    """Arrays as lists, and what compares by identity as its text."""
    if isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(found, dp.TopK):
        return plain(found.ids), plain(found.gaps)
    return found


def fields(found: Any) -> Any:
    """A frozen dataclass that compares by identity, as its fields."""
    return {name: str(value) if name == "solution" else value for name, value in vars(found).items()}


def privacy_questions() -> Iterator[tuple[str, Callable[[], Any]]]:
    small = dp.gaussian(0, "0.7").pmf
    yield "delta", lambda: dp.delta(NOISE, "0.3", 2)
    yield "delta of tails", lambda: dp.delta(TAILED, "0.7", 3)
    yield "delta between", lambda: dp.delta_between(NOISE, small, "0.2")
    yield "delta enclosed", lambda: enclosed_delta(TAILED, dp.Enclosure(Fraction(3), Fraction(4)), 2)
    yield "epsilon", lambda: dp.epsilon(NOISE, "0.1", 2)
    yield "profile", lambda: dp.privacy_profile(NOISE, ["0", "1/3", "2"]).upper
    yield "entropy", lambda: dp.Pmf(NOISE.start, NOISE.weights).entropy
    yield "entropy of tails", lambda: dp.Pmf(TAILED.start, TAILED.weights, tails=TAILED.tails).entropy
    yield "least epsilon", lambda: dp.least_epsilon(TAILED, 2)
    yield "sufficient delta", lambda: dp.sufficient_delta(NOISE, "0.5", 2)
    yield "cut", lambda: dp.cut_guarantee(dp.gaussian(0, 3), 9)
    yield "audit", lambda: dp.audit_laws({1: "1/3", 2: "2/3"}, {1: "1/2", 2: "1/2"}, 1)
    yield "losses for accounting", lambda: dp.to_dp_accounting(NOISE).get_delta_for_epsilon(0.5)


def mechanism_questions() -> Iterator[tuple[str, Callable[[], Any]]]:
    for kind in Mechanism:
        yield f"calibrate {kind}", lambda kind=kind: calibrated(kind)
    yield "best r", lambda: (dp.best_r(2, 15), dp.best_r(2, 15, cost="square"))
    yield "staircase moment", lambda: dp.staircase_moment(2, 15, 6, cost="square")
    yield "truncated Laplace", lambda: dp.truncated_laplace(1, "1e-6")
    yield "paper's guarantee", lambda: dp.paper_guarantee(dp.laplace(3), 1)
    for name, made in {
        "poisson": lambda: dp.poisson("3.3"),
        "gaussian": lambda: dp.gaussian("0.2", "1.7"),
        "laplace": lambda: dp.laplace("2.5"),
        "geometric": lambda: dp.geometric("2/3"),
        "staircase": lambda: dp.staircase(2, "0.7"),
        "optimal staircase": lambda: dp.optimal_staircase(1, 3, 2),
    }.items():
        yield name, lambda made=made: made().pmf


def family_questions() -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "family delta", lambda: dp.family_delta(9, dp.family_rate(9, 7), "1/2", 2)
    yield "family rate", lambda: dp.family_rate(9, "6.5")
    yield "best rate", lambda: dp.best_rate(9, 1, 2)
    yield "paper's ranges", lambda: dp.paper_ranges(1, 9)
    yield "best epsilon", lambda: dp.best_epsilon(D=11, V=4, delta="1e-4")
    yield "least variance", lambda: fields(dp.least_variance(D=17, epsilon=1, delta="1e-5"))
    yield "frontier", lambda: dp.frontier(1, "1e-3", points=2).points
    for family in ("analytic", "tablebuilder"):
        wanted = dp.target(epsilon=1, delta="1e-3", family=family)
        yield f"target {family}", lambda wanted=wanted: certificate(dp.solve(wanted))
    yield "key table of the ideal", lambda: dp.key_table((5, "1/9"), 1 << 12, rule="ceiling").counts
    yield "symmetric key table", lambda: dp.key_table((5, "1/9"), 1 << 12, rule="symmetric").counts
    yield "guarantee of a key table", lambda: dp.key_table(NOISE, 1 << 8, rule="ceiling").delta("0.4")
    yield "optimal table", lambda: dp.optimal_table(NOISE, 100, distance="kullback-leibler").table.counts
    yield "key sizes", lambda: dp.smallest_key_size(NOISE, 2, "0.1").key_size


def release_questions() -> Iterator[tuple[str, Callable[[], Any]]]:
    design = dp.SelectionDesign(2, 1, resolution="1/2")  # type: ignore[arg-type]
    scores = [9, 7, 7, 3, *[0] * 20]
    law = dp.selection_law([3, 1, 0], 1, 1, resolution="1/2")
    yield "gaps", lambda: (design.gap_variance, design.gap_covariance)
    yield "chance of a set", lambda: design.chance(scores)
    yield "chance of an order", lambda: design.chance(scores, "order")
    yield "chance of an outcome", lambda: (law.probability([1], [2]), law.chance_of([0]))
    yield "least epsilon of a selection", lambda: dp.least_selection_epsilon([4, 3, 1, 0], 2, "0.9")
    yield "combined gaps", lambda: dp.combine_gaps([9, 7], [2], variances=2, gap_variance=3).estimates
    yield "sample", seeded(dp.sample, TAILED, 300)
    yield "coins", seeded(dp.sample_bernoulli_exp, "0.3", 300)
    yield "geometric draws", seeded(dp.sample_geometric, "1/300", 300)
    yield "truncated geometric draws", seeded(dp.sample_truncated_geometric, "1/30", 99, 300)
    yield "Laplace draws", seeded(dp.sample_discrete_laplace, "7/3", 300)
    yield "Gaussian draws", seeded(dp.sample_discrete_gaussian, "2.5", 300)
    yield "wide Gaussian draws", seeded(dp.sample_discrete_gaussian, 5000, 50)
    yield "noisy top-k", seeded(dp.noisy_top_k, list(range(50)), 3, 1)
    yield "noisy counts", seeded(dp.add_noise, [5, 0, 9] * 20, NOISE)


def solved_questions(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    files = {}
    for name, problem in {
        "tablebuilder": dp.tablebuilder(D=5, V=4),
        "private tablebuilder": dp.Problem(
            support=dp.Integers(-6, 6),
            objective=dp.MaxEntropy(),
            constraints=[dp.Mean(0), dp.Variance(at_most=4), dp.ApproxDP(1, "0.05")],  # type: ignore[arg-type]
        ),
        "wasserstein": dp.wasserstein(input=dp.poisson(2), epsilon=1, sensitivity=2),
    }.items():
        files[name] = folder / f"{name}.json"
        dp.solve(problem).certificate.save(files[name])
        backends = ("newton", "cvxpy") if name == "tablebuilder" else ("auto",)
        for backend in backends:
            yield f"{name} by {backend}", lambda p=problem, b=backend: certificate(dp.solve(p, backend=b))
    for backend in ("highs", "scipy", "pulp"):
        problem = dp.Problem(
            support=dp.Integers(-4, 4),
            objective=dp.MinExpectedCost("absolute"),
            constraints=[dp.ApproxDP(1, "0.01")],  # type: ignore[arg-type]
        )
        yield f"linear program by {backend}", lambda p=problem, b=backend: certificate(dp.solve(p, backend=b))
    for name, file in files.items():
        yield f"verify {name}", lambda file=file: dp.verify(file)


def forget() -> None:
    """Empty every cache of the package."""
    for module in [module for name, module in sys.modules.items() if name.startswith("dpopt")]:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def global_state() -> dict[str, Any]:
    """What a library could change behind its user's back, as this thread sees it."""
    return {
        "flint": (ctx.prec, ctx.cap),
        "numpy errors": np.geterr(),
        "numpy printing": np.get_printoptions(),
        "numpy seed": np.random.get_state()[1].tolist(),  # type: ignore[index, union-attr]
        "random": random.getstate(),
        "decimal": str(decimal.getcontext()),
        "warnings": list(warnings.filters),
        "digits": sys.get_int_max_str_digits(),
        "streams": (sys.stdout, sys.stderr, warnings.showwarning, threading.excepthook),
    }


@pytest.fixture
def nervous() -> Iterator[None]:
    """Threads are switched every 10 microseconds."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def in_threads(questions: dict[str, Callable[[], Any]]) -> list[dict[str, Any]]:
    """The answers of eight threads, each of which begins elsewhere."""
    names, start = list(questions), threading.Barrier(THREADS)

    def ask(place: int) -> dict[str, Any]:
        first = place * len(names) // THREADS
        start.wait(60)
        return {name: questions[name]() for name in names[first:] + names[:first]}

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(ask, range(THREADS)))


GROUPS = [privacy_questions, mechanism_questions, family_questions, release_questions]


def differing(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    return [name for name, answer in expected.items() if found[name] != answer]


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_eight_threads_answer_as_one(group: Callable[..., Any], nervous: None) -> None:
    questions = dict(group())
    expected, before = {name: question() for name, question in questions.items()}, global_state()
    forget()
    for found in in_threads(questions):
        assert not differing(found, expected)
    assert global_state() == before


@pytest.mark.slow
def test_eight_threads_solve_and_verify_as_one(nervous: None, tmp_path: Path) -> None:
    questions = dict(solved_questions(tmp_path))
    expected, before = {name: question() for name, question in questions.items()}, global_state()
    forget()
    for found in in_threads(questions):
        assert not differing(found, expected)
    assert global_state() == before


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_no_answer_depends_on_the_precision_outside(group: Callable[..., Any]) -> None:
    """An operation outside of the door would have that precision."""
    questions = dict(group())
    expected = {name: question() for name, question in questions.items()}
    try:
        for ctx.prec, ctx.cap in OTHER_CONTEXTS:
            forget()
            assert not differing({name: question() for name, question in questions.items()}, expected)
    finally:
        ctx.prec, ctx.cap = 2, 1


@pytest.mark.parametrize("group", ["dpopt.backends", "dpopt.constraints"])
def test_entry_points_are_there_for_every_thread(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread reads them, no other takes some of them for all."""
    reading, others_wait = threading.Event(), threading.Event()

    def load() -> type[dp.Constraint]:
        if not reading.is_set():
            reading.set()
            others_wait.wait(0.2)
        assert known in parts.constraint_types()  # a package may ask while it is loaded
        return SlowToCome

    def entry_points(*, group: str) -> list[SimpleNamespace]:
        if group == "dpopt.backends":
            load()
        return [SimpleNamespace(name="slow-to-come", value="no.module:Class", load=load)] if group == asked else []

    asked, known = group, dp.Symmetric.type
    monkeypatch.setattr(metadata, "entry_points", entry_points)
    monkeypatch.setattr(registry, "_entry_points_read", False)
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(parts, "_loaded_entry_points", False)
    monkeypatch.setattr(parts, "_constraints", dict(parts._constraints))
    names = dp.backend_names if group == "dpopt.backends" else parts.constraint_types
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(names)
        assert reading.wait(60)
        second = pool.submit(names)
        assert "slow-to-come" in second.result(60)
        others_wait.set()
        assert "slow-to-come" in first.result(60)


@dataclass(frozen=True)
class SlowToCome(dp.Constraint):
    """What a package registers."""

    type = "slow-to-come"


@pytest.mark.slow
def test_chances_from_eight_threads_contain_the_truth(nervous: None) -> None:
    """29 of 120,000 enclosures did not, when each thread set the number of terms for all."""
    sizes = range(3, 43)
    truths = {n: one_ahead_of(n) for n in sizes}

    def ask(place: int) -> list[int]:
        design = dp.SelectionDesign(1, Fraction(2, 5), resolution=1)  # type: ignore[arg-type]
        asked = [sizes[(place * 5 + i) % len(sizes)] for i in range(3 * len(sizes))]
        chances = {n: design.chance([1, *[0] * n]) for n in asked}
        return [n for n, (low, high) in chances.items() if not low <= truths[n] <= high]

    with ThreadPoolExecutor(THREADS) as pool:
        assert not any(pool.map(ask, range(THREADS)))


def one_ahead_of(n: int) -> Fraction:
    """P(one score stays ahead of n that are 1 below), x = 1/5: (1 - (1 - a)^(n + 1)) / ((n + 1) a), a = e^-x."""
    with decimal.localcontext() as decimals:
        decimals.prec = 100
        a = (decimal.Decimal(-1) / 5).exp()
        return Fraction((1 - (1 - a) ** (n + 1)) / ((n + 1) * a))
