"""What is measured: frozen cases that register themselves when `benchmarks.cases` is read."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any

from dpopt.problem.problem import Problem

__all__ = ["Axis", "Case", "Demand", "ImportCase", "Peer", "Size", "all_cases", "register"]

Size = int | str


class Axis(StrEnum):
    """What grows along the sizes of a case."""

    SIZE = "size"
    DEPTH = "depth of tail"


class Peer(StrEnum):
    """What the phases are compared with, measured in the same run."""

    HIGHS = "HiGHS on the unfolded, unscaled program"
    EXP = "numpy.exp once over the support"


@dataclass(frozen=True)
class Demand:
    """What was asked of a case: a group of phases takes less than `at_most` times the peer, at one size."""

    name: str
    group: str
    at_most: float
    size: Size


@dataclass(frozen=True)
class Case:
    """A problem at several sizes, the smallest first.

    Parameters
    ----------
    name : str
        Kebab case; never renamed, so that histories stay comparable.
    text : str
        The question in one line, with the meaning of a size.
    make : callable
        The problem at a size, built anew at every call: what a problem remembers must not flatter a phase.
    """

    name: str
    text: str
    make: Callable[[Any], Problem]
    sizes: tuple[Size, ...]
    axis: Axis = Axis.SIZE
    backend: str = "auto"
    peer: Peer = Peer.HIGHS
    demands: tuple[Demand, ...] = ()


@dataclass(frozen=True)
class ImportCase:
    """Statements, each timed in a fresh interpreter; the first is the peer of the others.

    Parameters
    ----------
    absent : tuple of str
        Modules that none of the statements but the first may load.
    """

    name: str
    text: str
    statements: tuple[str, ...]
    absent: tuple[str, ...] = ()


_cases: dict[str, Case | ImportCase] = {}


def register(case: Case | ImportCase) -> None:
    """Add a case; a name can be taken once."""
    if case.name in _cases:
        raise ValueError(f"case {case.name!r} is registered already")
    _cases[case.name] = case


def all_cases() -> dict[str, Case | ImportCase]:
    """Every case by name, in the order of the files and of registration."""
    from benchmarks import cases

    for module in sorted(found.name for found in pkgutil.iter_modules(cases.__path__)):
        import_module(f"{cases.__name__}.{module}")
    return dict(_cases)
