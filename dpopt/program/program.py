"""The question as arrays: what a solver sees, and the blocks its rows are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

__all__ = ["BlockKind", "Program", "RowBlock"]

from enum import StrEnum


class BlockKind(StrEnum):
    """What a range of rows says; a structured backend recognises the kinds it can handle."""

    MASS = "mass"
    EXPECTATION = "expectation"
    RATIO = "ratio"
    HOCKEY_STICK = "hockey-stick"
    ABSOLUTE_VALUE = "absolute-value"
    ORDER = "order"
    MIRROR = "mirror"
    MIXED = "mixed"


@dataclass(frozen=True)
class RowBlock:
    """Rows ``first .. first + count - 1`` of a program and the constraint that they come from."""

    kind: BlockKind
    name: str
    first: int
    count: int

    @property
    def rows(self) -> slice:
        """The rows of the block as a slice."""
        return slice(self.first, self.first + self.count)


@dataclass(frozen=True, eq=False)
class Program:
    """A linear program, optionally with an entropy term and integer columns.

    Minimise ``cost @ x + sum(entropy * x * ln(x))`` over x with ``row_lower <= rows @ x <= row_upper`` and
    ``lower <= x <= upper``. Infinite sides are ``+-inf``; equal sides make an equality.

    Parameters
    ----------
    cost : array, shape (n,)
    rows : sparse array, shape (m, n)
    row_lower, row_upper : array, shape (m,)
    lower, upper : array, shape (n,)
    entropy : array, shape (n,)
        Weights >= 0 of the terms ``x ln x``; all zero for a linear program.
    integer : bool array, shape (n,)
        Columns that must be integers.
    blocks : tuple of RowBlock
        What the rows say.
    """

    cost: np.ndarray
    rows: sp.csr_array
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    entropy: np.ndarray = field(default_factory=lambda: np.zeros(0))
    integer: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    blocks: tuple[RowBlock, ...] = ()

    def __post_init__(self) -> None:
        columns = self.cost.shape[0]
        if self.entropy.shape != (columns,):
            object.__setattr__(self, "entropy", np.zeros(columns))
        if self.integer.shape != (columns,):
            object.__setattr__(self, "integer", np.zeros(columns, dtype=bool))

    @property
    def has_entropy(self) -> bool:
        """Whether the objective has terms ``x ln x``."""
        return bool(np.any(self.entropy > 0))

    @property
    def has_integers(self) -> bool:
        """Whether some column must be an integer."""
        return bool(np.any(self.integer))

    def objective(self, x: np.ndarray) -> float:
        """The objective at `x`, with ``0 ln 0 = 0``."""
        positive = np.where(x > 0, x, 1.0)
        return float(self.cost @ x + np.sum(self.entropy * positive * np.log(positive)))

    def violation(self, x: np.ndarray) -> float:
        """The largest violation of a row or bound at `x`, relative to 1 + |side|; infinite where `x` is not finite."""
        if not np.all(np.isfinite(x)):
            return float("inf")
        activity = self.rows @ x
        pairs = ((self.row_lower, activity), (activity, self.row_upper), (self.lower, x), (x, self.upper))
        worst = 0.0
        for low, high in pairs:
            size = 1 + np.minimum(np.abs(low), np.abs(high))
            worst = max(worst, float(np.max((low - high) / size, initial=0.0)))
        return worst
