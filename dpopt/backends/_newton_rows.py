"""Few rows over many columns, held so that a pass over them costs one read, and what a method for them returns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

__all__ = ["CHUNK", "DualResult", "FewRows", "NearlyFull", "Stop"]

CHUNK = 1 << 16
"""Matrix entries handled at once: with what is computed from them they stay in the cache."""


class Stop(Enum):
    """Why the method stopped."""

    CONVERGED = "converged"
    BOUNDARY = "the optimum is at a boundary, where multipliers run to infinity"
    INFEASIBLE = "the multipliers are a Farkas combination: no pmf satisfies the rows"
    STALLED = "no step improves the dual any further"
    LIMIT = "the iteration limit was reached"


@dataclass(frozen=True, eq=False)
class NearlyFull:
    """Rows with a few zeros, as the entries of a sparse matrix: to write them densely would double the memory traffic.

    Parameters
    ----------
    values : sequence of array
        The entries of each row that are stored, in order.
    gaps : sequence of list of int
        The columns of each row, in order, that are not.
    columns : int
    """

    values: list[np.ndarray]
    gaps: list[list[int]]
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.values), self.columns

    def take(self, columns: np.ndarray) -> np.ndarray:
        """Some columns, densely."""
        taken = np.zeros((len(self.values), columns.size))
        for row, values, gaps in zip(taken, self.values, self.gaps, strict=True):
            before = np.searchsorted(gaps, columns)
            stored = ~np.isin(columns, gaps)
            row[stored] = values[(columns - before)[stored]]
        return taken

    def write(self, part: slice, out: np.ndarray) -> None:
        """Write adjacent columns to `out`."""
        for row, values, gaps in zip(out, self.values, self.gaps, strict=True):
            first, last = bisect_left(gaps, part.start), bisect_left(gaps, part.stop)
            start = part.start
            for passed, gap in enumerate(gaps[first:last], first):
                row[start - part.start : gap - part.start] = values[start - passed : gap - passed]
                row[gap - part.start] = 0.0
                start = gap + 1
            row[start - part.start :] = values[start - last : part.stop - last]


@dataclass(frozen=True, eq=False)
class FewRows:
    """The problem without its mass row: its rows over the columns that may be positive.

    Parameters
    ----------
    matrix : array or NearlyFull, shape (m, n)
    low, high : array, shape (m,)
        Sides of the rows for ``x`` of total 1.
    cost : array, shape (n,)
    """

    matrix: np.ndarray | NearlyFull
    low: np.ndarray
    high: np.ndarray
    cost: np.ndarray

    @cached_property
    def has_cost(self) -> bool:
        """Whether the cost is not 0 everywhere."""
        return bool(self.cost.any())

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest absolute value in each row."""
        rows = self.matrix if isinstance(self.matrix, np.ndarray) else self.matrix.values
        return np.array([max(float(row.max(initial=0.0)), -float(row.min(initial=0.0))) for row in rows])

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The columns in parts that fit into the cache."""
        rows, columns = self.matrix.shape
        step = max(CHUNK // max(rows, 1), 1 << 10)
        return tuple(slice(first, min(first + step, columns)) for first in range(0, columns, step))

    def blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Each part of the columns, its rows, and memory of their shape to compute in, which may be the rows' own."""
        memory = np.empty((self.low.size, self.parts[0].stop))
        for part in self.parts:
            free = memory[:, : part.stop - part.start]
            if isinstance(self.matrix, np.ndarray):
                yield part, self.matrix[:, part], free
            else:
                self.matrix.write(part, free)
                yield part, free, free

    def take(self, columns: np.ndarray) -> np.ndarray:
        """The rows in some of the columns."""
        if isinstance(self.matrix, np.ndarray):
            return np.ascontiguousarray(self.matrix[:, columns])
        return self.matrix.take(columns)


@dataclass(frozen=True, eq=False)
class DualResult:
    """Where the method ended: ``x`` of total 1, the multipliers, ``ln Z``, and how far from balance.

    `value` is ``cost @ x + sum x ln x``; NaN where the method does not know it.
    """

    stop: Stop
    x: np.ndarray
    y: np.ndarray
    log_z: float
    imbalance: float
    iterations: int
    value: float = float("nan")

    @property
    def is_finite(self) -> bool:
        """Whether the sums say that every number is finite; no mass that is not leaves ``ln Z`` finite."""
        return bool(np.isfinite(self.log_z) and np.isfinite(self.value) and np.all(np.isfinite(self.y)))
