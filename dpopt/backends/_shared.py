"""Small things that every backend file needs; no native solver is imported here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata

import numpy as np

from dpopt.backends.base import Backend, Claim, Claimed, Support
from dpopt.errors import BackendError
from dpopt.program.program import Program

__all__ = [
    "claim_without_columns",
    "estimate",
    "package_versions",
    "require",
    "require_available",
    "split_sides",
    "supports_linear",
    "worst_violation",
]

_FEW_INTEGERS = 20
_ENTRIES_AN_ENTROPY = 10  # an exponential cone costs an interior point method as much as so many entries


@cache
def package_versions(*packages: str) -> str:
    """The installed versions of `packages`, such as ``"highspy 1.16.0"``; ``"package ?"`` when there is no metadata."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"{package} ?")
    return ", ".join(found)


def estimate(program: Program, *, entries_a_second: float) -> float:
    """Seconds for a program, for large ones too few: a hundred thousand entries and an entropy are solved in a second.

    An integer search may last for ever, whatever its size.
    """
    if np.count_nonzero(program.integer) > _FEW_INTEGERS:
        return float("inf")
    return float((program.rows.nnz + _ENTRIES_AN_ENTROPY * np.count_nonzero(program.entropy)) / entries_a_second)


def supports_linear(program: Program, *, name: str) -> Support:
    """Support of a backend that takes every linear and mixed integer linear program, and no entropy term."""
    if program.has_entropy:
        return Support(False, f"backend '{name}' is linear and the objective has an entropy term; use newton or cvxpy")
    return Support(True, "a mixed integer linear program" if program.has_integers else "a linear program")


def claim_without_columns(program: Program, *, backend: str, version: str, tolerances: Mapping[str, float]) -> Claim:
    """The answer to a program without columns, which solvers treat in as many ways as there are solvers.

    Every activity is 0, so that the program is feasible exactly when each row allows 0.
    """
    allowed = bool(np.all((program.row_lower <= 0) & (program.row_upper >= 0)))
    return Claim(
        status=Claimed.OPTIMAL if allowed else Claimed.INFEASIBLE,
        backend=backend,
        version=version,
        message="the program has no columns; every activity is 0 and no solver was called",
        y=np.zeros(program.row_lower.shape[0]) if allowed else np.zeros(0),
        objective=0.0 if allowed else float("nan"),
        tolerances=tolerances,
    )


def split_sides(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row numbers of the equalities, of the finite lower sides and of the finite upper sides, in this order.

    A two-sided row is in both of the last two; a free row is in none. Solvers with one side a row need this.
    """
    equal = program.row_lower == program.row_upper
    below = ~equal & np.isfinite(program.row_lower)
    above = ~equal & np.isfinite(program.row_upper)
    return np.flatnonzero(equal), np.flatnonzero(below), np.flatnonzero(above)


def require(backend: Backend, program: Program) -> None:
    """Refuse a program that the backend does not support, and an environment in which it cannot run."""
    support = backend.supports(program)
    if not support.supported:
        raise BackendError(f"backend '{backend.name}' cannot take this program: {support.reason}")
    require_available(backend)


def require_available(backend: Backend) -> None:
    """Refuse an environment in which the backend cannot run, and name the interpreter: it is often another one."""
    availability = backend.availability()
    if not availability.available:
        raise BackendError(f"backend '{backend.name}' is not available in {sys.executable}: {availability.reason}")


def worst_violation(program: Program, x: np.ndarray) -> float:
    """The largest violation of a row or bound at `x`, each row relative to the size of its own terms (at least 1)."""
    activity = program.rows @ x
    size = np.maximum(abs(program.rows) @ np.abs(x), 1.0)
    rows = np.maximum(program.row_lower - activity, activity - program.row_upper) / size
    bounds = np.maximum(program.lower - x, x - program.upper)
    return float(max(rows.max(initial=0.0), bounds.max(initial=0.0)))
