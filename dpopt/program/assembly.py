"""Sparse rows and columns under construction, and the way back from floats to exact integers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from dpopt.program.core import Core
from dpopt.program.program import BlockKind, Program, RowBlock

__all__ = ["INF", "Assembly", "integers"]

INF = float("inf")


@dataclass
class Assembly:
    """Sparse rows and columns under construction (vectorised: arrays are appended, never single entries)."""

    core: Core
    cost: list[np.ndarray] = field(default_factory=list)
    lower: list[np.ndarray] = field(default_factory=list)
    upper: list[np.ndarray] = field(default_factory=list)
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    row_lower: list[np.ndarray] = field(default_factory=list)
    row_upper: list[np.ndarray] = field(default_factory=list)
    row_blocks: list[RowBlock] = field(default_factory=list)
    columns: int = 0
    rows: int = 0

    def add_columns(self, cost: np.ndarray, lower: float = 0.0, upper: np.ndarray | float = INF) -> int:
        """Append columns and return the position of the first."""
        size = cost.shape[0]
        self.cost.append(cost)
        self.lower.append(np.full(size, lower))
        self.upper.append(np.broadcast_to(np.asarray(upper, dtype=float), (size,)))
        self.columns += size
        return self.columns - size

    def add_rows(self, kind: BlockKind, name: str, lower: np.ndarray, upper: np.ndarray) -> int:
        """Append rows (their entries come with `add_entries`) and return the position of the first."""
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        self.row_blocks.append(RowBlock(kind, name, self.rows, lower.shape[0]))
        self.rows += lower.shape[0]
        return self.rows - lower.shape[0]

    def add_entries(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray | float) -> None:
        """Append matrix entries at absolute positions."""
        self.entries.append((rows, columns, np.broadcast_to(np.asarray(values, dtype=float), rows.shape)))

    def program(self, entropy: bool) -> Program:
        """The finished arrays."""
        row, column, value = (np.concatenate(parts) for parts in zip(*self.entries, strict=True))
        matrix = sp.coo_array((value, (row, column)), shape=(self.rows, self.columns)).tocsr()
        weights = np.zeros(self.columns)
        if entropy:
            weights[: self.core.size] = 1.0
        return Program(
            cost=np.concatenate(self.cost),
            rows=matrix,
            row_lower=np.concatenate(self.row_lower),
            row_upper=np.concatenate(self.row_upper),
            lower=np.concatenate(self.lower),
            upper=np.concatenate(self.upper),
            entropy=weights,
            blocks=tuple(self.row_blocks),
        )


def integers(values: np.ndarray, scale: int) -> list[int]:
    """Floats as integers over 2**scale, exactly where the float is a multiple, nearest elsewhere; nan becomes 0."""
    clean = np.where(np.isfinite(values), values, 0.0)
    mantissa, exponent = np.frexp(clean)
    whole = (mantissa * 2.0**53).astype(np.int64).tolist()
    shifts = (exponent.astype(int) - 53 + scale).tolist()
    return [
        m << s if s >= 0 else (m + (1 << (-s - 1))) >> -s if s > -2000 else 0
        for m, s in zip(whole, shifts, strict=True)
    ]
