"""What a case of the conformance suite is, and how programs with a known answer are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import scipy.sparse as sp

from dpopt.backends.base import Claimed
from dpopt.program.program import BlockKind, Program, RowBlock

__all__ = ["INF", "MASS_FIRST", "Capability", "Case", "make_backwards", "make_program"]

INF = float("inf")
MASS_FIRST = (RowBlock(BlockKind.MASS, "mass", 0, 1),)


class Capability(StrEnum):
    """What a backend must be able to do to take a case."""

    LINEAR = "linear"
    ENTROPY = "entropy"
    ENTROPY_GENERAL = "entropy with weights or auxiliary columns"
    INTEGER = "integer"


@dataclass(frozen=True, eq=False)
class Case:
    """One program with its known answer.

    Parameters
    ----------
    name : str
    guards : str
        Which mistake of a backend the case is there to find.
    program : Program
    needs : frozenset of Capability
    status : Claimed
        The only status that is right.
    objective : float
        The exact optimum; nan when there is none.
    signs : tuple of int
        The sign that each multiplier must have: 1, -1, 0 for "zero"; 2 for "any". Empty when not checked.
    multipliers : array or None
        The multipliers when they are unique.
    """

    name: str
    guards: str
    program: Program
    needs: frozenset[Capability]
    status: Claimed = Claimed.OPTIMAL
    objective: float = float("nan")
    signs: tuple[int, ...] = ()
    multipliers: np.ndarray | None = None


def make_program(
    cost: Sequence[float],
    rows: Sequence[Sequence[float]],
    sides: Sequence[tuple[float, float]],
    bounds: Sequence[tuple[float, float]] | None = None,
    *,
    entropy: Sequence[float] = (),
    integer: Sequence[bool] = (),
    blocks: tuple[RowBlock, ...] = (),
) -> Program:
    """A small program from lists; bounds are 0 and infinity unless given."""
    size = len(cost)
    matrix = np.array(rows, dtype=float).reshape(len(sides), size)
    low_high = np.array(sides, dtype=float).reshape(len(sides), 2)
    limits = np.array(bounds if bounds is not None else [(0.0, INF)] * size, dtype=float).reshape(size, 2)
    return Program(
        cost=np.array(cost, dtype=float),
        rows=sp.csr_array(matrix),
        row_lower=low_high[:, 0].copy(),
        row_upper=low_high[:, 1].copy(),
        lower=limits[:, 0].copy(),
        upper=limits[:, 1].copy(),
        entropy=np.array(entropy, dtype=float),
        integer=np.array(integer, dtype=bool),
        blocks=blocks,
    )


def make_backwards(
    name: str,
    guards: str,
    *,
    rows: Sequence[Sequence[float]],
    x: Sequence[float],
    y: Sequence[float],
    reduced: Sequence[float],
    kinds: Sequence[str],
    bounds: Sequence[tuple[float, float]] | None = None,
    unique: bool = True,
) -> Case:
    """A linear case whose optimal point is `x` and whose multipliers are `y`.

    `kinds` has one word a row: ``>=``, ``<=``, ``=``, ``low`` or ``high`` (two-sided, that side active), ``inside``
    or ``free``.
    """
    activity = np.array(rows, dtype=float) @ np.array(x, dtype=float)
    room = 5.0
    reach = {  # how far below and above the activity the two sides are
        ">=": (0.0, INF),
        "<=": (INF, 0.0),
        "=": (0.0, 0.0),
        "low": (0.0, room),
        "high": (room, 0.0),
        "inside": (room, room),
        "free": (INF, INF),
    }
    sides = [(value - reach[kind][0], value + reach[kind][1]) for kind, value in zip(kinds, activity, strict=True)]
    cost = np.array(rows, dtype=float).T @ np.array(y, dtype=float) + np.array(reduced, dtype=float)
    program = make_program(cost.tolist(), rows, sides, bounds)
    return Case(
        name=name,
        guards=guards,
        program=program,
        needs=frozenset({Capability.LINEAR}),
        objective=float(cost @ np.array(x, dtype=float)),
        signs=tuple(int(np.sign(value)) for value in y) if unique else (),
        multipliers=np.array(y, dtype=float) if unique else None,
    )
