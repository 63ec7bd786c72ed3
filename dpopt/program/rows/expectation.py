"""Rows of a bounded expectation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpopt.problem.families.expectation import ExpectationTerm
from dpopt.program.assembly import INF, Assembly, integers
from dpopt.program.program import BlockKind
from dpopt.program.rows.base import Block, Folding, Place, rows_of

__all__ = ["ExpectationBlock"]


@rows_of(ExpectationTerm)
@dataclass(frozen=True, eq=False)
class ExpectationBlock(Block):
    """``at_least <= E f <= at_most``."""

    part: int = 0

    @classmethod
    def write(cls, assembly: Assembly, term: ExpectationTerm, place: Place) -> ExpectationBlock:
        low = -INF if term.at_least is None else float(term.at_least)
        high = INF if term.at_most is None else float(term.at_most)
        first = assembly.add_rows(BlockKind.EXPECTATION, place.name, np.array([low]), np.array([high]))
        values = assembly.core.coefficients(term.of)
        columns = np.flatnonzero(values)
        assembly.add_entries(np.full(columns.shape, first), columns, values[columns])
        vanishes = low == high == 0 and term.of.is_odd
        return cls(place.owner, first, 1, folding=Folding(vanishes=vanishes), part=place.part)

    def witnesses(self, y: np.ndarray, scale: int) -> list[dict[str, Any]]:
        return [{"part": self.part, "y": value} for value in integers(self.own(y), scale) if value]
