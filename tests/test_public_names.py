"""The public names, what importing loads, and that no module hides a function of the same name."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
import types
from collections.abc import Iterable
from pathlib import Path

import pytest

import dpopt as dp

SOLVING = ("numpy", "scipy", "highspy", "cvxpy", "pulp", "clarabel", "scs")
LAZY = ("dpopt.program", "dpopt.backends", "dpopt.solving", "dpopt.designing.targeting", "dpopt.solution")
MODULES = sorted(m.name for m in pkgutil.walk_packages(dp.__path__, "dpopt.") if not m.name.endswith("__main__"))


def python(code: str, *arguments: str) -> str:
    """Run code in a fresh interpreter; its standard output."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(code: str, wanted: Iterable[str], *arguments: str) -> list[str]:
    """Which of these modules are loaded after the code."""
    tail = f"\nimport sys, json; print(json.dumps([m for m in {list(wanted)!r} if m in sys.modules]))"
    return json.loads(python(code + tail, *arguments).splitlines()[-1])


def test_every_name_resolves() -> None:
    """Each public name is there, is no module, and knows its documentation."""
    assert len(dp.__all__) == len(set(dp.__all__)) == len(dp._HOME)
    for name in dp.__all__:
        value = getattr(dp, name)
        assert not isinstance(value, types.ModuleType), name
        assert getattr(value, "__doc__", None), name
    assert set(dp.__all__) <= set(dir(dp))


def test_the_contract_is_public() -> None:
    """The names that other people's scripts may rely on."""
    contract = {
        "Problem", "Integers", "Lattice", "MaxEntropy", "MinExpectedCost", "MinWasserstein", "MinDelta", "Mean",
        "Variance",
        "SecondMoment", "Expectation", "Probability", "Forbidden", "Symmetric", "Unimodal", "PureDP", "ApproxDP",
        "solve",
        "load", "verify", "tablebuilder", "wasserstein", "target", "compare", "delta", "epsilon", "poisson", "gaussian",
        "uniform", "point", "table", "Pmf", "Tails", "Solution", "Verified", "Claimed", "register_constraint",
        "register_objective", "register_backend", "InputError",
    }  # fmt: skip
    assert contract <= set(dp.__all__)


@pytest.mark.slow
def test_a_star_import_gives_the_public_names() -> None:
    """`from dpopt import *` works and brings in just these."""
    code = "a = set(globals())\nfrom dpopt import *\nimport json; print(json.dumps(sorted(set(globals()) - a - {'a'})))"
    found = json.loads(python(code))
    assert set(dp.__all__) <= set(found) <= {*dp.__all__, "json"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    """With the name in it."""
    with pytest.raises(AttributeError, match="'dpopt' has no attribute 'slove'"):
        _ = dp.slove


def test_importing_is_light() -> None:
    """`import dpopt` loads no array library, no solver, no exact arithmetic, and none of its own rooms."""
    heavy = (*SOLVING, "flint", "typer", "rich", "tomli_w", *LAZY, "dpopt.problem", "dpopt.proof")
    assert loaded("import dpopt", heavy) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "Pmf",
        "Problem",
        "Integers",
        "PureDP",
        "MaxEntropy",
        "target",
        "delta",
        "poisson",
        "load",
        "verify",
        "InputError",
    ],
)
def test_describing_a_problem_loads_no_solver(name: str) -> None:
    """Data and exact arithmetic come without numpy and without a solver."""
    assert loaded(f"import dpopt; dpopt.{name}", (*SOLVING, *LAZY)) == []


def test_backends_load_their_solver_when_used() -> None:
    """Listing the backends' names imports none of the slow ones."""
    assert loaded("import dpopt; dpopt.backend_names()", ("cvxpy", "pulp", "highspy")) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["solution", "entropy", "infeasible", "target", "target-any"])
def test_verifying_a_saved_certificate_loads_no_solving_path(kind: str, tmp_path: Path) -> None:
    """Each kind of certificate is re-checked by a process that has neither numpy nor a solver nor the solving rooms."""
    absolute, entropy, five = dp.MinExpectedCost("absolute"), dp.MaxEntropy(), dp.Integers(-2, 2)
    question: dp.Problem | dp.Target = {
        "solution": lambda: dp.Problem(objective=absolute, constraints=[dp.PureDP(1, 2), dp.Mean(0)]),
        "entropy": lambda: dp.tablebuilder(D=4, V=2),
        "infeasible": lambda: dp.Problem(support=five, objective=entropy, constraints=[dp.Mean(3)]),
        "target": lambda: dp.target(epsilon=1, delta="0.01", family="tablebuilder", then="max-entropy"),
        "target-any": lambda: dp.target(epsilon=1, delta="0.1", family="any", sensitivity=2),
    }[kind]()  # fmt: skip
    path = tmp_path / "noise.json"
    dp.solve(question).certificate.save(path)
    code = "import dpopt, sys\nv = dpopt.verify(sys.argv[1])\nassert v.holds, v.reason\n"
    assert loaded(code, (*SOLVING, *LAZY), str(path)) == []


def test_no_module_hides_a_public_function() -> None:
    """No module directly under the package has a public name: importing it would put itself in the function's place."""
    assert not {m.split(".")[1] for m in MODULES} & set(dp.__all__)


CHECK = """
import importlib, sys, types
import dpopt

def check(first):
    for name in dpopt.__all__:
        assert not isinstance(vars(dpopt).get(name), types.ModuleType), (first, name)
"""


@pytest.mark.slow
def test_every_module_imports_alone_and_hides_nothing() -> None:
    """No module needs another to be imported before it, and none puts itself in a function's place: one child each."""
    code = (
        CHECK
        + """
import os
import flint, numpy, scipy.optimize, scipy.sparse  # in the parent: the children are about dpopt's own modules
failed = []
for module in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(module)
            check(module)
        except BaseException as error:
            print(module, type(error).__name__, error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    failed += [module] if os.waitpid(child, 0)[1] else []
assert not failed, failed
"""
    )
    python(code, *MODULES)


@pytest.mark.slow
@pytest.mark.parametrize("backwards", [False, True])
def test_importing_all_modules_hides_nothing(backwards: bool) -> None:
    """After all modules, in order and in reverse, every public name is what its home module says, twice."""
    code = (
        CHECK
        + """
for module in sys.argv[1:]:
    importlib.import_module(module)
    check(module)
for _ in range(2):
    for name in dpopt.__all__:
        assert getattr(dpopt, name) is getattr(importlib.import_module(dpopt._HOME[name]), name), name
    check("all names")
"""
    )
    python(code, *(MODULES[::-1] if backwards else MODULES))
