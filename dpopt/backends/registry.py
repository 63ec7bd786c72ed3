"""Which backends there are: a name for each, loaded when it is used.

Importing this module imports no solver. Third parties add theirs with `register_backend` or with an entry point in the
group ``dpopt.backends`` whose name is the backend's.
"""

from __future__ import annotations

import difflib
import logging
import threading
from collections.abc import Iterator
from importlib import import_module, metadata
from typing import Any

import numpy as np

from dpopt.backends.base import Availability, Backend
from dpopt.errors import BackendError, InputError
from dpopt.program.program import BlockKind, Program, RowBlock
from dpopt.reading import read_flag, read_text

__all__ = [
    "BUILT_IN",
    "available_backends",
    "backend_availability",
    "backend_names",
    "candidates",
    "choose_backend",
    "get_backend",
    "register_backend",
    "unregister_backend",
]

logger = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "dpopt.backends"

PAIR = 2

BUILT_IN = {
    "highs": "dpopt.backends.highs:Highs",
    "scipy": "dpopt.backends.scipy_:Scipy",
    "pulp": "dpopt.backends.pulp_:Pulp",
    "cvxpy": "dpopt.backends.cvxpy_:Cvxpy",
    "newton": "dpopt.backends.newton:Newton",
}
"""The built-in backends in the order of preference, each as ``module:Class``."""

_MEMBERS = ("name", "requires", "options", "availability", "supports", "solve")

_registered: dict[str, str | Backend] = dict(BUILT_IN)
_loaded: dict[str, Backend] = {}
_reading = threading.Lock()
_entry_points_read = False  # all of them


def register_backend(backend: Backend | str, *, name: str | None = None, replace: bool = False) -> None:
    """Add a backend under its name.

    Parameters
    ----------
    backend : Backend or str
        The object, or ``"module:Class"``, which is imported when the backend is first used.
    name : str, optional
        The name to register; required with a string, and otherwise the backend's own.
    replace : bool
        Whether a backend of the same name may be replaced.

    Raises
    ------
    BackendError
        When the name is taken or reserved.
    InputError
        When the object lacks a member of the protocol, or a string is no ``"module:Class"`` with a name.
    """
    replace = read_flag(replace, "replace")
    if name is not None:
        read_text(name, "name")
    if isinstance(backend, str):
        if ":" not in backend:
            raise InputError("backend", f"must be a backend object or 'module:Class', not {backend!r}")
        if name is None:
            raise InputError("name", f"must be given for {backend!r}: register_backend('module:Class', name=...)")
    else:
        missing = [member for member in _MEMBERS if not hasattr(backend, member)]
        if missing:
            why = f"{backend!r}, which has no {', '.join(missing)}"
            raise InputError("backend", f"must be a backend (see dpopt.backends.base.Backend), not {why}")
        name = backend.name if name is None else name
    _read_entry_points()
    if name == "auto":
        raise BackendError("backend 'auto': the name is reserved for the choice by dpopt; choose another name")
    if name in _registered and not replace:
        raise BackendError(f"backend '{name}' is registered already; choose another name or pass replace=True")
    _registered[name] = backend
    _loaded.pop(name, None)


def unregister_backend(name: str) -> None:
    """Take a registered backend out again; a built-in one that was replaced comes back."""
    _loaded.pop(name, None)
    if name in BUILT_IN:
        _registered[name] = BUILT_IN[name]
    elif _registered.pop(name, None) is None:
        raise BackendError(_unknown(name))


def backend_names() -> tuple[str, ...]:
    """The names of all registered backends, in the order of preference.

    >>> backend_names()[:5]
    ('highs', 'scipy', 'pulp', 'cvxpy', 'newton')
    """
    _read_entry_points()
    return tuple(_registered)


def get_backend(name: str) -> Backend:
    """The backend registered as `name`.

    >>> get_backend("highs").name
    'highs'
    """
    read_text(name, "name")
    _read_entry_points()
    if name not in _registered:
        raise BackendError(_unknown(name))
    if name not in _loaded:
        registered = _registered[name]
        _loaded[name] = _load(name, registered) if isinstance(registered, str) else registered
    return _loaded[name]


def read_backend(wanted: object, argument: str = "backend", *, auto: str = "highs") -> Backend:
    """The backend of a name, or an object that is one; "auto" is `auto`, for questions with one kind of program.

    >>> read_backend("auto").name
    'highs'
    """
    if isinstance(wanted, str):
        return get_backend(auto if wanted == "auto" else wanted)
    if isinstance(wanted, type) or not isinstance(wanted, Backend):
        raise InputError(argument, f"must be a registered name, 'auto' or a backend object, not {wanted!r}")
    return wanted


def require_backend(wanted: object, argument: str = "backend") -> None:
    """Refuse what names no backend and is none before any work is done; nothing is loaded.

    >>> require_backend("auto")
    """
    if not isinstance(wanted, str):
        read_backend(wanted, argument)
    elif wanted != "auto" and wanted not in backend_names():
        raise BackendError(_unknown(wanted))


def backend_availability() -> dict[str, Availability]:
    """Every registered backend with whether it can run here, and if not why. Imports the solvers."""
    answers = {}
    for name in backend_names():
        try:
            answers[name] = get_backend(name).availability()
        except BackendError as error:
            answers[name] = Availability(False, str(error))
    return answers


def available_backends() -> tuple[str, ...]:
    """The names of the backends that can run here, in the order of preference. Imports the solvers."""
    return tuple(name for name, answer in backend_availability().items() if answer.available)


def choose_backend(program: Program) -> tuple[Backend, str]:
    """What ``backend="auto"`` means for this program, and why: the first of `candidates`."""
    return next(candidates(program))


def candidates(program: Program) -> Iterator[tuple[Backend, str]]:
    """The backends that ``backend="auto"`` tries for this program, each with the reason, best first.

    Newton for an entropy over a pmf alone with few rows (ratios of neighbours not counted), cvxpy for other entropies,
    HiGHS for linear programs; then the others that support the program. Solvers are imported as their turn comes.

    Raises
    ------
    BackendError
        No backend can take the program.
    """
    first, why = _preference(program)
    refusals, found = [], False
    for name in (first, *(other for other in backend_names() if other != first)):
        try:
            backend = get_backend(name)
        except BackendError as error:
            refusals.append(str(error))
            continue
        support = backend.supports(program)
        availability = backend.availability() if support.supported else Availability(False, support.reason)
        if not availability.available:
            refusals.append(f"{name}: {availability.reason}")
            continue
        if name == first:
            reason = why
        elif found:
            reason = f"{why}, but nothing could be proved from what it answered"
        else:
            reason = f"{why}, but '{first}' cannot take it here; '{name}' can"
        found = True
        yield backend, reason
    if not found:
        raise BackendError("no backend can take this program: " + "; ".join(refusals))


def _preference(program: Program) -> tuple[str, str]:
    """The first choice for a program, in words that a user can read."""
    if not program.has_entropy:
        return "highs", f"'highs' for a {'mixed integer ' if program.has_integers else ''}linear program"
    from dpopt.backends.newton import FEW_ROWS, Newton

    ratios = sum(block.count for block in program.blocks if _compares_neighbours(program, block))
    others = program.rows.shape[0] - ratios
    if Newton().supports(program).supported and others <= FEW_ROWS:
        beside = f" beside {ratios} ratio rows" if ratios else ""
        return "newton", f"'newton' for an entropy over a pmf with {others} rows{beside}"
    return "cvxpy", "'cvxpy' for an entropy with many rows, auxiliary columns or integer columns"


def _compares_neighbours(program: Program, block: RowBlock) -> bool:
    """Whether a block has only ratios of neighbouring columns, which Newton's interior point method is best at."""
    if block.kind is not BlockKind.RATIO:
        return False
    rows = program.rows[block.rows].tocsr()
    rows.sort_indices()
    pairs = bool(np.all(np.diff(rows.indptr) == PAIR))
    return pairs and bool(np.all(np.diff(rows.indices.reshape(-1, PAIR), axis=1) == 1))


def _read_entry_points() -> None:
    """Register what other packages offer, once; a name that is taken stays with whoever has it."""
    global _entry_points_read  # noqa: PLW0603
    if _entry_points_read:
        return
    taken = []
    with _reading:
        if _entry_points_read:  # by another thread, meanwhile
            return
        for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
            if point.name in _registered or point.name == "auto":
                taken.append(point)
            else:
                _registered[point.name] = point.value
        _entry_points_read = True
    for point in taken:
        logger.warning("entry point %s = %s ignored: the name is taken", point.name, point.value)


def _load(name: str, target: str) -> Backend:
    """Import ``module:Class`` (or ``module:instance``) and check that it is a backend."""
    module_name, _, attribute = target.partition(":")
    try:
        found: Any = getattr(import_module(module_name), attribute)
        backend: Any = found() if isinstance(found, type) else found
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise BackendError(f"backend '{name}' cannot be loaded from {target} ({why})") from error
    _require_protocol(backend, f"backend '{name}' ({target})")
    loaded: Backend = backend
    return loaded


def _require_protocol(backend: object, subject: str) -> None:
    """Refuse an object that lacks a member of the protocol, and name the members."""
    missing = [member for member in _MEMBERS if not hasattr(backend, member)]
    if missing:
        listed = ", ".join(missing)
        raise BackendError(f"{subject} is not a backend: it has no {listed} (see dpopt.backends.base.Backend)")


def _unknown(name: str) -> str:
    """The message for an unknown name, with the closest known one."""
    close = difflib.get_close_matches(name, _registered, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return f"backend '{name}' is unknown{hint} (known: {', '.join(_registered)})"
