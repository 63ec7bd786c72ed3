"""The objectives that the checker knows, one file each, and how one is read by its type.

A new objective is a file with a class that `dpopt.checker.stated.objective` registers, and its module's name in the
import below. A type that no file registers costs what its function in ``"trusted"`` says.
"""

from __future__ import annotations

from dpopt.checker.objectives import entropy, expected_cost, least_delta, wasserstein  # noqa: F401
from dpopt.checker.objectives.trusted import TrustedCost
from dpopt.checker.stated import OBJECTIVES, Objective, Setting, read_part

__all__ = ["read_objective"]


def read_objective(data: object, where: str, setting: Setting, trusted: object, trusted_where: str) -> Objective:
    """The objective of a problem's data; a custom one is its trusted cost."""
    return read_part(OBJECTIVES, TrustedCost.of, data, where, setting, trusted, trusted_where)
