"""Random documents and arguments: a problem, or one line that says what is wrong."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.errors import DpoptError

from .drawing import BOUNDED

LIBRARY = sorted((Path(__file__).parent.parent.parent / "problems").glob("*.toml"))

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


@pytest.mark.slow
def test_random_documents(folder: Path) -> None:
    """Structured garbage: never an exception other than InputError, always one line."""

    @settings(BOUNDED, max_examples=400)
    @given(documents())
    def check(table: dict[str, Any]) -> None:
        path = folder / "document.toml"
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
        assert_error_or_problem(path)

    check()


@pytest.mark.slow
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


@pytest.mark.slow
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
