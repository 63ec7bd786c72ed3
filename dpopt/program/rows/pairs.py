"""Rows that compare two masses: bounded ratios and the order of neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpopt.arithmetic import exp_enclosure
from dpopt.problem.families.base import ROW
from dpopt.problem.families.order import OrderTerm
from dpopt.problem.families.ratio import RatioTerm
from dpopt.program.assembly import INF, Assembly, integers
from dpopt.program.program import BlockKind
from dpopt.program.rows.base import Block, Folding, Place, rows_of

__all__ = ["OrderBlock", "RatioBlock", "joined"]


@dataclass(frozen=True, eq=False)
class _PairBlock(Block):
    """Rows ``p(i) - factor * p(j) <= 0``."""

    i: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    j: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))

    @classmethod
    def _write(
        cls,
        assembly: Assembly,
        place: Place,
        kind: BlockKind,
        i: np.ndarray,
        j: np.ndarray,
        factor: float,
        *,
        paired: bool,
    ) -> Any:
        size = i.shape[0]
        first = assembly.add_rows(kind, place.name, np.full(size, -INF), np.zeros(size))
        rows, origin = np.arange(first, first + size), assembly.core.first
        assembly.add_entries(rows, i - origin, 1.0)
        assembly.add_entries(rows, j - origin, -factor)
        return cls(place.owner, first, size, folding=Folding(paired=paired), i=i, j=j)

    def witnesses(self, y: np.ndarray, scale: int) -> list[dict[str, Any]]:
        own = np.maximum(-self.own(y), 0.0)
        used = np.flatnonzero(own > 0)
        weighed = zip(self.i[used].tolist(), self.j[used].tolist(), integers(own[used], scale), strict=True)
        pairs = [[i, j, v] for i, j, v in weighed if v > 0]
        return [{"row": ROW, "pairs": pairs}] if pairs else []


@rows_of(RatioTerm)
@dataclass(frozen=True, eq=False)
class RatioBlock(_PairBlock):
    """``p(i) <= e^epsilon p(j)`` for all pairs of the core at most `shift` apart; no rows across the seam."""

    @classmethod
    def write(cls, assembly: Assembly, term: RatioTerm, place: Place) -> RatioBlock:
        core = assembly.core
        low = [np.arange(core.first, core.last - s + 1) for s in range(1, min(term.shift, core.size - 1) + 1)]
        high = [points + s for s, points in enumerate(low, 1)]
        i, j = joined(low), joined(high)
        centre = core.first + core.last
        i, j = np.concatenate([i, centre - i]), np.concatenate([j, centre - j])
        factor = float(exp_enclosure(term.epsilon, 64).lower)
        return cls._write(assembly, place, BlockKind.RATIO, i, j, factor, paired=core.is_symmetric)


@rows_of(OrderTerm)
@dataclass(frozen=True, eq=False)
class OrderBlock(_PairBlock):
    """``p(i) <= share * p(j)`` with j the neighbour of i one step towards the mode."""

    @classmethod
    def write(cls, assembly: Assembly, term: OrderTerm, place: Place) -> OrderBlock:
        core = assembly.core
        right = np.arange(term.mode + 1, core.last + 1)
        left = np.arange(term.mode - 1, core.first - 1, -1)
        i, j = np.concatenate([right, left]), np.concatenate([right - 1, left + 1])
        paired = core.is_symmetric and term.mode == 0
        return cls._write(assembly, place, BlockKind.ORDER, i, j, float(term.share), paired=paired)


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """The parts in a row; no integers where there are none."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=int)
