"""Rows of the Wasserstein distance: the absolute value of each open cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpopt.problem.families.wasserstein import WassersteinTerm
from dpopt.program.assembly import Assembly, integers
from dpopt.program.core import Core
from dpopt.program.program import BlockKind
from dpopt.program.rows.base import Block, Place, rows_of

__all__ = ["WassersteinBlock"]

_UNTOUCHED = 1e-9  # largest coefficient on the core below which a cut's slope is chosen by its side


@rows_of(WassersteinTerm)
@dataclass(frozen=True, eq=False)
class WassersteinBlock(Block):
    """``g_k(p) - u_k + v_k = 0`` with cost 1 on u and v: the absolute value of each open cut.

    A cut far in the input's tail hardly touches the core, so the solver's slope for it is noise; yet far out, where g_k
    is near 1, the slope decides whether the cost keeps growing. There `outer` has the slope that makes it grow.
    """

    start: int = 0
    outer: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def write(cls, assembly: Assembly, term: WassersteinTerm, place: Place) -> WassersteinBlock:
        core, cuts = assembly.core, term.open_cuts
        size = len(cuts)
        column = assembly.add_columns(np.ones(2 * size))
        first = assembly.add_rows(BlockKind.ABSOLUTE_VALUE, place.name, np.zeros(size), np.zeros(size))
        rows = np.arange(first, first + size)
        assembly.add_entries(rows, column + np.arange(size), -1.0)
        assembly.add_entries(rows, column + size + np.arange(size), 1.0)
        outer = np.zeros(size)
        if size:
            values = _cut_coefficients(core, term)
            assembly.add_entries(np.repeat(rows, core.size), np.tile(np.arange(core.size), size), values.ravel())
            sides = np.where(np.array(_distribution(term)[:-1]) > 0.5, 1.0, -1.0)
            outer = np.where(np.abs(values).max(axis=1) < _UNTOUCHED, sides, 0.0)
        return cls(place.owner, first, size, column, 2 * size, start=cuts.start, outer=outer)

    def witnesses(self, y: np.ndarray, scale: int) -> list[dict[str, Any]]:
        one = 1 << scale
        slopes = np.where(self.outer != 0, self.outer, -self.own(y))
        values = [min(max(v, -one), one) for v in integers(slopes, scale)]
        return [{"start": self.start, "slopes": values}]


def _distribution(term: WassersteinTerm) -> list[float]:
    total = term.input.total.numerator
    return [c / total for c in term.input.cumulative()]


def _cut_coefficients(core: Core, term: WassersteinTerm) -> np.ndarray:
    """What a unit of each column contributes to E g_k of every cut k, its tail chain included; shape (cuts, size).

    The same numbers as ``core.coefficients(term.cut(k))`` for each k, read off one array: g_k(j) = F(k) - F(k - j).
    """
    known = np.array([0.0, *_distribution(term)])  # F at one point before the input's range, then on it
    here, start, reach = known[1:-1, None], term.input.start, len(term.open_cuts)
    shift, ratio = (core.closure.shift, core.closure.ratio) if core.closure else (1, 0.0)
    right, left = (max(-(-(reach - end) // shift), 0) + 1 for end in (core.last, -core.first))
    j = np.arange(core.first - left * shift, core.last + right * shift + 1)
    k = np.arange(start, start + reach)[:, None]
    wide = here - known[np.clip(k - j - start, -1, reach) + 1]
    values = wide[:, left * shift : left * shift + core.size].copy()
    if core.closure is not None:
        beyond_right, beyond_left = here * ratio / (1 - ratio), (here - 1) * ratio / (1 - ratio)
        for block in range(right, 0, -1):
            at = left * shift + core.size + (block - 1) * shift
            beyond_right = ratio * (wide[:, at : at + shift] + beyond_right)
        for block in range(left, 0, -1):
            at = (left - block) * shift
            beyond_left = ratio * (wide[:, at : at + shift] + beyond_left)
        values[:, -shift:] += beyond_right
        values[:, :shift] += beyond_left
    return values * float(term.input.step)
