"""Random problems and random documents: a proved answer, an honest failure or a clear error, and nothing else.

Backends are compared with each other by their proved intervals, and on finite supports with a second method: a
dense linear program written here from the problem's text, with none of the package's blocks, given to SciPy.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import dpopt as dp
from dpopt.errors import DpoptError
from dpopt.lattice_function import LatticeFunction

BOUNDED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
PROVED = (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)
LP_BACKENDS = ("highs", "scipy", "pulp", "cvxpy")
ENTROPY_BACKENDS = ("newton", "cvxpy")


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


# --- random problems as plain data -----------------------------------------------------------------------------------

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


# --- the second method -----------------------------------------------------------------------------------------------


class Dense:
    """A dense linear program built from a problem's plain text, the obvious way."""

    def __init__(self, table: dict[str, Any]) -> None:
        support = table["support"]
        self.step = Fraction(support.get("step", 1))
        count = int((support["high"] - support["low"]) / self.step) + 1
        self.z = [support["low"] + i * self.step for i in range(count)]
        self.columns = count
        self.equal: list[tuple[dict[int, float], float]] = [(dict.fromkeys(range(count), 1.0), 1.0)]
        self.less: list[tuple[dict[int, float], float]] = []
        self.free_of_mass: set[int] = set()
        constraints = table["constraints"]
        means = [Fraction(c["equals"]) for c in constraints if c["type"] == "mean" and "equals" in c]
        self.mean = means[0] if means else Fraction(0)
        self.cost = self.objective(table["objective"])
        for constraint in constraints:
            self.add(constraint)

    def new(self, count: int) -> range:
        """More columns, non-negative."""
        self.columns += count
        return range(self.columns - count, self.columns)

    def bounded(self, values: list[Any], constraint: dict[str, Any]) -> None:
        """A row with its bound."""
        row = {i: float(v) for i, v in enumerate(values)}
        if "equals" in constraint:
            self.equal.append((row, float(Fraction(constraint["equals"]))))
        if "at_least" in constraint:
            self.less.append(({i: -v for i, v in row.items()}, -float(Fraction(constraint["at_least"]))))
        if "at_most" in constraint:
            self.less.append((row, float(Fraction(constraint["at_most"]))))

    def add(self, c: dict[str, Any]) -> None:
        """The rows of one constraint."""
        z, n = self.z, len(self.z)
        match c["type"]:
            case "mean":
                self.bounded(list(z), c)
            case "variance":
                self.bounded([(v - self.mean) ** 2 for v in z], c)
            case "second-moment":
                self.bounded([v**2 for v in z], c)
            case "expectation":
                self.bounded([abs(v) for v in z], c)
            case "probability" if isinstance(c["of"], dict):
                self.bounded([c["of"]["from"] <= v <= c["of"]["to"] for v in z], c)
            case "probability":
                self.bounded([v in c["of"] for v in z], c)
            case "random-tail-mass":
                self.bounded([abs(v) >= c["size"] for v in z], {"at_most": c["at_most"]})
            case "forbidden":
                self.free_of_mass |= {i for i, v in enumerate(z) if v in c["values"]}
            case "symmetric":
                for i, v in enumerate(z):
                    if -v in z:
                        if v < 0:
                            self.equal.append(({i: 1.0, z.index(-v): -1.0}, 0.0))
                    else:
                        self.free_of_mass.add(i)
            case "unimodal":
                for i in range(n - 1):
                    rising = z[i] < c["mode"]
                    self.less.append(({i: 1.0 if rising else -1.0, i + 1: -1.0 if rising else 1.0}, 0.0))
            case "pure-dp":
                grow = math.exp(float(Fraction(c["epsilon"])))
                shift = int(c["sensitivity"] / self.step)
                for i in range(n):
                    for j in range(max(0, i - shift), min(n, i + shift + 1)):
                        if i != j:
                            self.less.append(({i: 1.0, j: -grow}, 0.0))
            case "approx-dp":
                self.hockey_sticks(c, None, float(Fraction(c["delta"])))
            case other:
                raise AssertionError(other)

    def hockey_sticks(self, c: dict[str, Any], delta: int | None, limit: float) -> None:
        """For each shift and direction: slacks above p(k) - e^eps p(k - s), their sum at most delta."""
        n, grow = len(self.z), math.exp(float(Fraction(c["epsilon"])))
        shift = int(c["sensitivity"] / self.step)
        for s in (*range(1, shift + 1), *range(-shift, 0)):
            slack = self.new(n)
            for k in range(n):
                row = {k: 1.0, slack[k]: -1.0}
                if 0 <= k - s < n:
                    row[k - s] = -grow
                self.less.append((row, 0.0))
            total = dict.fromkeys(slack, 1.0)
            if delta is not None:
                total[delta] = -1.0
            self.less.append((total, limit))

    def objective(self, o: dict[str, Any]) -> dict[int, float]:
        """The cost of the columns."""
        z = self.z
        match o["type"]:
            case "max-entropy":
                return {}
            case "min-delta":
                (delta,) = self.new(1)
                self.hockey_sticks(o, delta, 0.0)
                return {delta: 1.0}
            case "min-wasserstein":
                return self.wasserstein(o["input"]["weights"])
        cost = o["cost"]
        if cost == "absolute":
            return {i: float(abs(v)) for i, v in enumerate(z)}
        if cost == "square":
            return {i: float(v * v) for i, v in enumerate(z)}
        if cost == "error":
            return {i: float(v != 0) for i, v in enumerate(z)}
        if "power" in cost:
            return {i: float(abs(v) ** cost["power"]) for i, v in enumerate(z)}
        table = {Fraction(k): v for k, v in cost["table"].items()}
        return {i: float(table.get(v, cost["outside"])) for i, v in enumerate(z)}

    def wasserstein(self, weights: list[int]) -> dict[int, float]:
        """One auxiliary for every cut of the whole output range, none left out."""
        mass = [w / sum(weights) for w in weights]
        low, high = self.z[0], self.z[-1] + len(weights) - 1
        cuts = [low + i * self.step for i in range(int((high - low) / self.step) + 1)]
        for cut in cuts:
            (t,) = self.new(1)
            here = sum(m for x, m in enumerate(mass) if x <= cut)
            after = {i: sum(m for x, m in enumerate(mass) if x + v <= cut) for i, v in enumerate(self.z)}
            self.less.append(({**after, t: -1.0}, here))
            self.less.append(({**{i: -v for i, v in after.items()}, t: -1.0}, -here))
            self.last = t
        first = self.last - len(cuts) + 1
        return dict.fromkeys(range(first, self.last + 1), float(self.step))

    def solve(self) -> tuple[str, float]:
        """'infeasible' or 'optimal' with the value, by SciPy's linprog as it comes."""

        def matrix(rows: list[tuple[dict[int, float], float]]) -> tuple[np.ndarray, np.ndarray]:
            dense = np.zeros((len(rows), self.columns))
            for r, (row, _) in enumerate(rows):
                for column, value in row.items():
                    dense[r, column] = value
            return dense, np.array([side for _, side in rows])

        cost = np.zeros(self.columns)
        for column, value in self.cost.items():
            cost[column] = value
        limits = [(0, 0 if i in self.free_of_mass else None) for i in range(self.columns)]
        a_eq, b_eq = matrix(self.equal)
        a_ub, b_ub = matrix(self.less) if self.less else (None, None)
        found = linprog(cost, A_ub=a_ub, b_ub=b_ub, A_eq=a_eq, b_eq=b_eq, bounds=limits)
        if found.status == 2:
            return "infeasible", math.nan
        assert found.status == 0, found.message
        return "optimal", float(found.fun)


# --- the properties --------------------------------------------------------------------------------------------------


def proved_interval(solution: dp.Solution) -> tuple[Fraction | float, Fraction | float]:
    """Where the optimum lies, by what this solution proves."""
    open_end = math.inf if solution.problem.objective.type == "max-entropy" else -math.inf
    bound = open_end if solution.bound is None else solution.bound
    if solution.problem.objective.type == "max-entropy":
        return solution.value.lower, bound
    return bound, solution.value.upper


def answers(table: dict[str, Any], backends: tuple[str, ...]) -> dict[str, dp.Solution]:
    """Every backend's solution, after the checks that hold for each alone."""
    problem = dp.Problem.from_dict(table)
    found = {}
    for backend in backends:
        solution = found[backend] = dp.solve(problem, backend)
        if solution.verified in PROVED:
            assert all(check.holds for check in problem.check(solution.pmf))
            assert solution.value.lower <= solution.value.upper
            low, high = proved_interval(solution)
            assert low <= high
        elif solution.verified is dp.Verified.FAILED:
            assert solution.message.strip()
        else:
            assert solution.conflict or not problem.constraints
            assert set(solution.conflict) <= set(problem.constraint_names)
    return found


def assert_agreement(found: dict[str, dp.Solution]) -> None:
    """No backend's proof contradicts another's."""
    verdicts = {name: s.verified for name, s in found.items()}
    if dp.Verified.INFEASIBLE in verdicts.values():
        assert not any(v in PROVED for v in verdicts.values()), verdicts
        return
    intervals = {name: proved_interval(s) for name, s in found.items() if s.verified in PROVED}
    if intervals:
        assert max(low for low, _ in intervals.values()) <= min(high for _, high in intervals.values()), {
            name: (float(low), float(high)) for name, (low, high) in intervals.items()
        }


def assert_second_method(table: dict[str, Any], found: dict[str, dp.Solution]) -> None:
    """Proved values and proved infeasibility agree with the dense program (to its solver's tolerance)."""
    verdict, value = Dense(table).solve()
    entropy = table["objective"]["type"] == "max-entropy"
    for name, solution in found.items():
        if solution.verified is dp.Verified.INFEASIBLE:
            assert verdict == "infeasible", (name, value)
        elif solution.verified in PROVED and verdict == "optimal" and not entropy:
            low, high = proved_interval(solution)
            allowed = 1e-5 * (1 + abs(value))
            assert float(low) - allowed <= value <= float(high) + allowed, (name, float(low), value, float(high))


def run(strategy: Any, examples: int) -> Counter[str]:
    """Check the properties on random problems; how often each verdict came up."""
    seen: Counter[str] = Counter()

    @settings(BOUNDED, max_examples=examples)
    @given(strategy)
    def properties(table: dict[str, Any]) -> None:
        try:
            problem = dp.Problem.from_dict(table)
        except dp.InputError as error:
            assert "\n" not in str(error)
            seen["refused"] += 1
            return
        backends = ENTROPY_BACKENDS if problem.objective.type == "max-entropy" else LP_BACKENDS
        try:
            found = answers(table, ("auto", *backends))
        except dp.BackendError as error:
            assert "newton" in str(error), "only newton may refuse a program"
            found = answers(table, ("auto", "cvxpy"))
        assert_agreement(found)
        if "support" in table:
            assert_second_method(table, found)
        seen[found["auto"].verified.value] += 1

    properties()
    return seen


@cache
def run_finite() -> Counter[str]:
    """Random problems on finite supports."""
    return run(finite_problems(), 120)


@cache
def run_infinite() -> Counter[str]:
    """Random problems on all integers."""
    return run(infinite_problems(), 60)


def test_finite_supports() -> None:
    """Finite supports: proofs of all backends and the second method agree, nothing else than our errors is raised."""
    run_finite()


def test_all_integers() -> None:
    """All integers: proofs of all backends agree, nothing else than our errors is raised."""
    run_infinite()


def test_most_random_problems_are_answered() -> None:
    """The properties are not met by failing: nearly all random problems that are accepted are answered by `auto`."""
    for seen in (run_finite(), run_infinite()):
        accepted = sum(n for verdict, n in seen.items() if verdict != "refused")
        answered = seen["optimal"] + seen["infeasible"]
        assert accepted >= 30, seen
        assert answered >= 0.9 * accepted, seen
        assert seen["optimal"] >= 10, seen
    assert run_finite()["infeasible"] >= 3


# --- random documents ------------------------------------------------------------------------------------------------

LIBRARY = sorted((Path(__file__).parent.parent / "problems").glob("*.toml"))

WORDS = st.sampled_from([
    "name", "support", "objective", "constraints", "target", "type", "low", "high", "step", "cost", "table", "outside",
    "power", "polynomial", "input", "rate", "mean", "sd", "weights", "at", "epsilon", "delta", "sensitivity",
    "boundary",
    "equals", "at_least", "at_most", "of", "from", "to", "values", "mode", "family", "then", "file", "value", "count",
    "x",
])  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([
        "integers", "lattice", "max-entropy", "min-expected-cost", "min-wasserstein", "min-delta", "mean", "variance",
        "expectation", "probability", "forbidden", "symmetric", "unimodal", "pure-dp", "approx-dp", "second-moment",
        "absolute", "square", "error", "window", "exact", "poisson", "gaussian", "uniform", "point", "table", "csv",
        "analytic", "tablebuilder", "any", "1/2", "1e-6", "1/0", "nan", "inf", "", " ", "-1", "1e9999", "0x10", "ε",
    ]),
    st.integers(-5, 20), st.sampled_from([10**30, -(10**30), 2**63, 700, 701]), st.booleans(),
    st.floats(-5, 5), st.sampled_from([math.inf, -math.inf, math.nan, 1e308, 5e-324, -0.0]),
)  # fmt: skip
TREES = st.recursive(
    VALUES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=12,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document that looks like a problem file, with anything anywhere."""
    table: dict[str, Any] = draw(st.dictionaries(WORDS, TREES, max_size=2))
    for key in ("support", "objective", "target"):
        if draw(st.booleans()):
            table[key] = draw(st.dictionaries(WORDS, TREES, max_size=4))
    if draw(st.booleans()):
        table["constraints"] = draw(st.lists(st.dictionaries(WORDS, TREES, max_size=4), max_size=3))
    return table


@st.composite
def mutations(draw: st.DrawFn) -> dict[str, Any]:
    """A library file with one to three entries replaced, dropped, renamed or added."""
    import tomllib

    table = tomllib.loads(draw(st.sampled_from(LIBRARY)).read_text(encoding="utf-8"))
    for _ in range(draw(st.integers(1, 3))):
        node: Any = table
        while True:
            inner = [
                k
                for k, v in (node.items() if isinstance(node, dict) else enumerate(node))
                if isinstance(v, dict | list) and v
            ]
            if not inner or draw(st.booleans()):
                break
            node = node[draw(st.sampled_from(inner))]
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            continue
        key = draw(st.sampled_from(keys))
        action = draw(st.sampled_from(["replace", "drop", "rename", "add"]))
        if action == "replace":
            node[key] = draw(TREES)
        elif action == "drop":
            del node[key]
        elif isinstance(node, dict):
            value = node.pop(key) if action == "rename" else draw(TREES)
            node[draw(WORDS)] = value
    return table


def assert_error_or_problem(path: Path) -> None:
    """Loading gives a problem or target that survives the round trip, or one line that says what is wrong."""
    try:
        question = dp.load(path)
    except dp.InputError as error:
        message = str(error)
        assert message.strip()
        assert "\n" not in message
        assert "Traceback" not in message
        return
    again = path.with_name("again.toml")
    again.write_text(question.to_toml(), encoding="utf-8")
    assert dp.load(again) == question


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all the documents of this module."""
    return tmp_path_factory.mktemp("documents")


def test_random_documents(folder: Path) -> None:
    """Structured garbage: never an exception other than InputError, always one line."""

    @settings(BOUNDED, max_examples=400)
    @given(documents())
    def check(table: dict[str, Any]) -> None:
        path = folder / "document.toml"
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
        assert_error_or_problem(path)

    check()


def test_mutated_library_files(folder: Path) -> None:
    """Near misses of real files: a problem, or InputError in one line."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for source in (LIBRARY[0].parent / "data").iterdir():
        (data / source.name).write_bytes(source.read_bytes())

    @settings(BOUNDED, max_examples=400)
    @given(mutations())
    def check(table: dict[str, Any]) -> None:
        path = folder / "mutated.toml"
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
        assert_error_or_problem(path)

    check()


def test_random_bytes(folder: Path) -> None:
    """Bytes that are no TOML, no UTF-8 or cut short: InputError that names the file."""

    @settings(BOUNDED, max_examples=150)
    @given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda t: t.encode("utf-8", "surrogatepass"))))
    def check(content: bytes) -> None:
        path = folder / "bytes.toml"
        path.write_bytes(content)
        with pytest.raises(dp.InputError):
            dp.load(path)

    check()


@pytest.mark.parametrize("cut", [1, 5, 17, 40, 80, 120])
def test_truncated_files(cut: int, folder: Path) -> None:
    """A real file cut anywhere (a half-finished download)."""
    for source in LIBRARY:
        path = folder / "cut.toml"
        path.write_bytes(source.read_bytes()[:-cut])
        assert_error_or_problem(path)


def test_random_python_arguments() -> None:
    """The Python constructors meet the same garbage as the files: InputError, and nothing else."""
    makers = [
        lambda a, b: dp.PureDP(a, b), lambda a, b: dp.ApproxDP(a, b), lambda a, b: dp.Mean(a, at_most=b),
        lambda a, b: dp.Expectation(a, of=b), lambda a, b: dp.Probability(a, of=b), lambda a, b: dp.Forbidden(a),
        lambda a, b: dp.Unimodal(a), lambda a, b: dp.Integers(a, b), lambda a, b: dp.Lattice(a, b, b),
        lambda a, b: dp.MinExpectedCost(a), lambda a, b: dp.MinWasserstein(a), lambda a, b: dp.MinDelta(a, b),
        lambda a, b: dp.poisson(a), lambda a, b: dp.gaussian(a, b), lambda a, b: dp.uniform(a, b),
        lambda a, b: dp.point(a), lambda a, b: dp.table(a, b), lambda a, b: dp.tablebuilder(a, b),
        lambda a, b: dp.wasserstein(input=a, epsilon=b),
        lambda a, b: dp.Problem(objective=a, constraints=b),
        lambda a, b: dp.Problem(objective=dp.MaxEntropy(), support=a),
        lambda a, b: dp.Problem(objective=dp.MaxEntropy(), support=dp.Integers(0, 1), name=a),
    ]  # fmt: skip
    anything = st.one_of(TREES, st.none(), st.just(object()), st.binary(max_size=3), st.just(print), st.just(1j))

    @settings(BOUNDED, max_examples=500)
    @given(st.sampled_from(makers), anything, anything)
    def check(make: Any, a: Any, b: Any) -> None:
        try:
            make(a, b)
        except DpoptError as error:
            assert isinstance(error, dp.InputError)
            assert "\n" not in str(error)

    check()
