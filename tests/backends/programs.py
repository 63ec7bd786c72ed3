"""Programs that several test files of the backends share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt.program.program import BlockKind, Program, RowBlock

INF = float("inf")


def linear(
    cost: Sequence[float], rows: Sequence[Sequence[float]], sides: Sequence[tuple[float, float]], **more: Any
) -> Program:
    """A linear program with columns >= 0 from lists."""
    low, high = np.array(sides, dtype=float).reshape(-1, 2).T
    size = len(cost)
    return Program(
        np.array(cost, dtype=float),
        sp.csr_array(np.array(rows, dtype=float).reshape(-1, size)),
        low,
        high,
        more.pop("lower", np.zeros(size)),
        more.pop("upper", np.full(size, INF)),
        **more,
    )


def max_entropy(
    reach: int, low: float, high: float, *, mean: float = 0.0, extra: Sequence[tuple[np.ndarray, float, float]] = ()
) -> Program:
    """Maximum entropy on [-reach, reach] with a mean and a second moment between two sides."""
    k = np.arange(-reach, reach + 1.0)
    rows = [np.ones(k.size), k, k * k, *(row for row, _, _ in extra)]
    sides = [(1.0, 1.0), (mean, mean), (low, high), *((below, above) for _, below, above in extra)]
    row_low, row_high = np.array(sides).T
    return Program(
        np.zeros(k.size),
        sp.csr_array(np.array(rows)),
        row_low,
        row_high,
        np.zeros(k.size),
        np.full(k.size, INF),
        entropy=np.ones(k.size),
        blocks=(RowBlock(BlockKind.MASS, "mass", 0, 1),),
    )


def window_private(reach: int, second_moment: float, epsilon: float) -> Program:
    """Maximum entropy with a mean, a second moment and all ratios of neighbours at most e^epsilon."""
    k = np.arange(-reach, reach + 1.0)
    eye, ratio = sp.eye_array(k.size, format="csr"), np.exp(epsilon)
    rows = sp.csr_array(
        sp.vstack(
            [
                sp.csr_array(np.array([np.ones(k.size), k, k * k])),
                eye[:-1] - ratio * eye[1:],
                eye[1:] - ratio * eye[:-1],
            ]
        )
    )
    ratios = 2 * (k.size - 1)
    return Program(
        np.zeros(k.size),
        rows,
        np.r_[1, 0, -INF, np.full(ratios, -INF)],
        np.r_[1, 0, second_moment, np.zeros(ratios)],
        np.zeros(k.size),
        np.full(k.size, INF),
        entropy=np.ones(k.size),
        blocks=(RowBlock(BlockKind.MASS, "mass", 0, 1), RowBlock(BlockKind.RATIO, "ratios", 3, ratios)),
    )


def stationarity(program: Program, x: np.ndarray, y: np.ndarray) -> float:
    """The largest entry of ``cost + ln x + 1 - A^T y`` where x is a normal positive number."""
    positive = x > 1e-290
    residual = program.cost + np.log(np.where(positive, x, 1.0)) + 1.0 - program.rows.T @ y
    return float(np.abs(residual[positive]).max())
