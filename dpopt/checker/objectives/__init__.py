"""The objectives that the checker knows, one file each, and how one is read by its type.

A new objective is a file with a class that `dpopt.checker.stated.objective` registers, and its module's name in the
list below. A type that no file registers costs what its function in ``"trusted"`` says.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpopt.checker.lattice import Lattice
from dpopt.checker.objectives import entropy, expected_cost, least_delta, wasserstein
from dpopt.checker.objectives.trusted import TrustedCost
from dpopt.checker.reading import brief, read_type, reject
from dpopt.checker.stated import OBJECTIVES, Objective

__all__ = ["entropy", "expected_cost", "least_delta", "read_objective", "wasserstein"]


def read_objective(data: object, where: str, lattice: Lattice, trusted: object, trusted_where: str) -> Objective:
    """The objective of a problem's data; a custom one is its trusted cost."""
    kind = read_type(data, where)
    assert isinstance(data, Mapping)
    if kind in OBJECTIVES:
        if trusted is not None:
            reject(trusted_where, f"must be absent: {kind!r} is not a custom type")
        return OBJECTIVES[kind].read(data, where, lattice)
    if trusted is None:
        reject(where, f"has the custom type {brief(kind)}, whose cost must be given in {trusted_where}")
    return TrustedCost.of(kind, trusted, trusted_where)
