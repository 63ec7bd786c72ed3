"""A proof that no table exists: the rows made elastic, and a combination of them that is exact.

With slacks in every row the program always has a point, and its least slack is positive when no real table meets the
constraints, and only then. Its multipliers, read as integers, bound the slack from below (weak duality with no cost on
the counts): a positive bound is a proof, whatever the solver said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpopt.backends.base import Backend, ask
from dpopt.pmf import Pmf
from dpopt.program.reductions import elastic
from dpopt.tables.bound import Lagrangian
from dpopt.tables.costs import VariationCost
from dpopt.tables.offsets import offset_program
from dpopt.tables.question import Question

__all__ = ["impossible"]

_COARSE_BITS = 12
_PRECISION = 1 << 80


class _NoCost(VariationCost):
    """Every table costs nothing; the scale is only the resolution of the multipliers."""

    def __init__(self, ideal: Pmf, key_size: int) -> None:
        super().__init__(ideal, key_size)
        self.scale = _PRECISION

    def _at(self, place: int, count: int) -> int:
        return 0


def impossible(question: Question, solver: Backend, options: Mapping[str, Any]) -> bool:
    """Whether it is proved that no table answers the question."""
    cost, base = _NoCost(question.ideal, question.key_size), question.floors()
    unit = 1 << max(question.key_size.bit_length() - _COARSE_BITS, 0)
    offsets = offset_program(question, cost, base, unit=unit, reach=1 << _COARSE_BITS, integer=False)
    claim = ask(solver, elastic(offsets.program), options)
    if claim.y.size == 0 or not np.all(np.isfinite(claim.y)):
        return False
    return Lagrangian(question, cost, offsets.dual(claim.y), base).bound > 0
