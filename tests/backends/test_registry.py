"""Names, laziness and the choice of a backend."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest

from dpopt.backends import (
    available_backends,
    backend_availability,
    backend_names,
    choose_backend,
    get_backend,
    register_backend,
    registry,
    unregister_backend,
)
from dpopt.backends.highs import Highs
from dpopt.errors import BackendError, InputError

from .programs import linear, max_entropy, window_private


class Mine(Highs):
    name = "mine"


@pytest.fixture
def mine() -> Iterator[Mine]:
    backend = Mine()
    register_backend(backend)
    yield backend
    unregister_backend("mine")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["dpopt.backends", "dpopt.backends.registry", "dpopt.backends.conformance"])
def test_import_loads_no_solver(module: str) -> None:
    heavy = ("highspy", "cvxpy", "pulp", "scipy.optimize")
    code = f"import {module}, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr.strip()) == ("[]", "")


def test_names_in_order_of_preference() -> None:
    assert backend_names()[:5] == ("highs", "scipy", "pulp", "cvxpy", "newton")
    assert set(available_backends()) <= set(backend_availability()) == set(backend_names())


def test_unknown_name_suggests_the_closest() -> None:
    with pytest.raises(BackendError, match=r"backend 'cvxpi' is unknown; did you mean 'cvxpy'\? \(known: highs, "):
        get_backend("cvxpi")


def test_registered_object_and_string(mine: Mine) -> None:
    assert get_backend("mine") is mine
    register_backend("dpopt.backends.highs:Highs", name="lazy")
    try:
        assert isinstance(get_backend("lazy"), Highs)
        assert backend_names()[-1] == "lazy"
    finally:
        unregister_backend("lazy")
    with pytest.raises(BackendError, match="'lazy' is unknown"):
        get_backend("lazy")


def test_a_taken_name_needs_replace(mine: Mine) -> None:
    with pytest.raises(BackendError, match="'mine' is registered already"):
        register_backend(Mine())
    other = Mine()
    register_backend(other, replace=True)
    assert get_backend("mine") is other


def test_a_replaced_built_in_comes_back() -> None:
    register_backend(Mine(), name="highs", replace=True)
    assert isinstance(get_backend("highs"), Mine)
    unregister_backend("highs")
    assert type(get_backend("highs")) is Highs


@pytest.mark.parametrize(
    ("backend", "name", "kind", "message"),
    [
        ("dpopt.backends.highs:Highs", None, InputError, "name=..."),
        ("dpopt.backends.highs", "x", InputError, "module:Class"),
        (SimpleNamespace(name="x", solve=None), None, InputError, "has no requires, options, availability, supports"),
        (Mine(), "auto", BackendError, "reserved"),
    ],
)
def test_bad_registrations(backend: object, name: str | None, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        register_backend(backend, name=name)  # type: ignore[arg-type]


def test_a_broken_lazy_backend_is_unavailable_with_the_reason() -> None:
    register_backend("no_such_module_here:Backend", name="broken")
    try:
        answer = backend_availability()["broken"]
        assert not answer.available
        assert "ModuleNotFoundError" in answer.reason
        assert "broken" not in available_backends()
    finally:
        unregister_backend("broken")


def test_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = {"plugged": "dpopt.backends.scipy_:Scipy", "highs": "x:y"}
    points = [SimpleNamespace(name=name, value=value) for name, value in targets.items()]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == "dpopt.backends" else [])
    monkeypatch.setattr(registry, "_entry_points_read", False)
    try:
        assert get_backend("plugged").name == "scipy"
        assert type(get_backend("highs")) is Highs
    finally:
        unregister_backend("plugged")


def test_choice() -> None:
    program = linear([1, 1], [[1, 1]], [(1, 1)])
    neighbours = window_private(40, 10.0, 0.5)
    shuffled = neighbours.rows[:, np.r_[0:81:2, 1:81:2]]
    further_apart = replace(neighbours, rows=shuffled)
    for given, name in [
        (program, "highs"),
        (linear([1, 1], [[1, 1]], [(1, 1)], integer=np.array([True, False])), "highs"),
        (max_entropy(3, -np.inf, 1.0), "newton"),
        (window_private(40, 10.0, 0.5), "newton"),
        (replace(window_private(40, 10.0, 0.5), blocks=max_entropy(3, -np.inf, 1.0).blocks), "cvxpy"),
        (further_apart, "cvxpy"),
        (linear([1, 1], [[1, 1]], [(1, 1)], entropy=np.array([2.0, 1.0])), "cvxpy"),
    ]:
        backend, reason = choose_backend(given)
        assert backend.name == name
        assert name in reason


def test_choice_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"highs": "no_such_module_here:Highs", "scipy": registry.BUILT_IN["scipy"]}
    monkeypatch.setattr(registry, "_registered", broken)
    monkeypatch.setattr(registry, "_loaded", {})
    backend, reason = choose_backend(linear([1, 1], [[1, 1]], [(1, 1)]))
    assert backend.name == "scipy"
    assert reason == "'highs' for a linear program, but 'highs' cannot take it here; 'scipy' can"


def test_nobody_can() -> None:
    program = linear([1, 1], [[1, 1]], [(1, 1)], entropy=np.ones(2), integer=np.array([True, False]))
    with pytest.raises(BackendError, match="no backend can take this program: cvxpy: entropy together with integer"):
        choose_backend(program)


def test_unsupported_program_is_a_backend_error() -> None:
    with pytest.raises(BackendError, match="'highs' cannot take this program: .*entropy term; use newton or cvxpy"):
        get_backend("highs").solve(max_entropy(2, -np.inf, 1.0), {})
