"""Blocks: a family as float rows for a solver, and the map of its multipliers back to exact ones.

A block writes its rows into an `Assembly` and remembers where. Rows and auxiliary columns that come in mirror images
are written as two halves of equal order, so that folding a symmetric program is one averaging of halves.

Signs follow `Claim.y`: the multiplier of a row is <= 0 where the upper side is active. `witnesses` turns the
multipliers of a block's rows into the certificate's form: integers over 2**scale, non-negative where the theory wants
them so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from dpopt.program.assembly import Assembly
from dpopt.program.program import BlockKind

__all__ = ["LEAST_UNIT", "Block", "Folding", "MassBlock", "Place", "rows_of", "write"]

LEAST_UNIT = 1e-280  # of a column: a normal float still, times anything that a program multiplies it with


class Place(NamedTuple):
    """Where a family stands.

    Parameters
    ----------
    owner : int
        Index of the constraint, or -1 for the objective.
    name : str
    infinite : bool
        Whether the support is all points.
    part : int
        How many linear rows of the same constraint stand before it.
    """

    owner: int
    name: str
    infinite: bool = False
    part: int = 0


@dataclass(frozen=True)
class Folding:
    """How a block folds about 0: its rows stay, pair up in halves, or vanish; its first `columns` pair up with them."""

    paired: bool = False
    vanishes: bool = False
    columns: int = 0


@dataclass(frozen=True, eq=False)
class Block:
    """Base of the blocks.

    Parameters
    ----------
    owner : int
        Index of the constraint, or -1 for the mass row and the objective.
    first, count : int
        The rows it wrote.
    column, columns : int
        The auxiliary columns it wrote.
    folding : Folding
    """

    owner: int
    first: int
    count: int
    column: int = 0
    columns: int = 0
    folding: Folding = Folding()
    is_stated: ClassVar[bool] = True  # whether a certificate holds its multipliers

    def witnesses(self, y: np.ndarray, scale: int) -> list[dict[str, Any]]:
        """What the multipliers of this block's rows (`y` is the whole vector) weigh, in the certificate's form."""
        raise TypeError(f"{type(self).__name__} has no multipliers to state")

    def own(self, y: np.ndarray) -> np.ndarray:
        """This block's part of a row vector."""
        return y[self.first : self.first + self.count]

    def column_unit(self, envelope: np.ndarray) -> float:
        """The expected size of its auxiliary columns, where the pmf has the given envelope."""
        return 1.0


@dataclass(frozen=True, eq=False)
class MassBlock(Block):
    """Total mass 1. Its multiplier is not stated: the checker takes the best one."""

    is_stated: ClassVar[bool] = False

    @classmethod
    def write(cls, assembly: Assembly, coefficients: np.ndarray) -> MassBlock:
        first = assembly.add_rows(BlockKind.MASS, "mass", np.ones(1), np.ones(1))
        columns = np.arange(assembly.core.size)
        assembly.add_entries(np.full(columns.shape, first), columns, coefficients)
        return cls(-1, first, 1)


# --- which family writes which block ---------------------------------------------------------------------------------

Writer = Callable[[Assembly, Any, Place], Block]
B = TypeVar("B", bound=type[Block])

_writers: dict[type, Writer] = {}


def rows_of(*families: type) -> Callable[[B], B]:
    """Class decorator: the block whose class method ``write(assembly, family, place)`` writes these families."""

    def register(block: B) -> B:
        for family in families:
            _writers[family] = block.write  # type: ignore[attr-defined]  # what the decorator is for
        return block

    return register


def write(assembly: Assembly, family: object, place: Place) -> Block | None:
    """Write a family's rows; None for one without (bounds of columns, costs, entropies)."""
    writers = (_writers[cls] for cls in type(family).__mro__ if cls in _writers)
    writer = next(writers, None)
    return None if writer is None else writer(assembly, family, place)
