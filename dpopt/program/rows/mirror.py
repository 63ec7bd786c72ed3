"""Rows of symmetry about 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpopt.problem.families.base import ROW
from dpopt.problem.families.mirror import MirrorTerm
from dpopt.program.assembly import Assembly, integers
from dpopt.program.program import BlockKind
from dpopt.program.rows.base import Block, Folding, Place, rows_of

__all__ = ["MirrorBlock"]


@rows_of(MirrorTerm)
@dataclass(frozen=True, eq=False)
class MirrorBlock(Block):
    """``p(k) - p(-k) = 0`` for k > 0; a point without a mirror image in the core has no mass."""

    k: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))

    @classmethod
    def write(cls, assembly: Assembly, term: MirrorTerm, place: Place) -> MirrorBlock:
        core = assembly.core
        k = np.arange(1, max(abs(core.first), abs(core.last)) + 1)
        here = (k >= core.first) & (k <= core.last)
        there = (-k >= core.first) & (-k <= core.last)
        k, here, there = k[here | there], here[here | there], there[here | there]
        first = assembly.add_rows(BlockKind.MIRROR, place.name, np.zeros(k.shape), np.zeros(k.shape))
        rows = np.arange(first, first + k.shape[0])
        assembly.add_entries(rows[here], k[here] - core.first, 1.0)
        assembly.add_entries(rows[there], -k[there] - core.first, -1.0)
        return cls(place.owner, first, k.shape[0], folding=Folding(vanishes=True), k=k)

    def witnesses(self, y: np.ndarray, scale: int) -> list[dict[str, Any]]:
        pairs = [[k, v] for k, v in zip(self.k.tolist(), integers(-self.own(y), scale), strict=True) if v]
        return [{"row": ROW, "pairs": pairs}] if pairs else []
