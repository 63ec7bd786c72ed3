"""What draws from a pmf: a sampler of its exact weights and tails, and indices brought to data units."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt.pmf import Pmf
from dpopt.release.digits import RationalRatio
from dpopt.release.tailed import Tail, TailedDraws, TailedLaw

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["in_data_units", "pmf_draws"]

_NARROW = 62  # bits


@lru_cache(maxsize=16)
def pmf_draws(pmf: Pmf) -> TailedDraws:
    """Draws of the lattice indices of a pmf, tables kept for the next call."""
    if pmf.tails is None:
        return TailedDraws(TailedLaw(pmf.start, pmf.weights))
    period, left, right = pmf.tails.period, pmf.tails.left, pmf.tails.right
    return TailedDraws(
        TailedLaw(
            pmf.start,
            pmf.weights,
            left=None if left is None else Tail(pmf.weights[period - 1 :: -1], RationalRatio(left)),
            right=None if right is None else Tail(pmf.weights[-period:], RationalRatio(right)),
        )
    )


def in_data_units(indices: Any, pmf: Pmf) -> Any:
    """Lattice indices, one or an array, as the values they stand for: integers, or fractions where the step is none."""
    step = pmf.step
    if step == 1:
        return indices
    if not isinstance(indices, np.ndarray):
        return indices * step.numerator if step.denominator == 1 else indices * step
    if step.denominator == 1:
        return _whole_steps(indices, step.numerator, pmf_draws(pmf).bits)
    return _fractions(indices, step)


def _whole_steps(indices: NDArray[Any], step: int, bits: int) -> NDArray[Any]:
    """Indices times an integer step, in Python integers where the pmf may reach beyond 62 bits."""
    largest = 0 if indices.size == 0 else max(abs(int(indices.min())), abs(int(indices.max())))
    if bits + step.bit_length() > _NARROW or (largest * step).bit_length() > _NARROW:
        indices = indices.astype(object)
    return np.asarray(indices * step, dtype=indices.dtype)  # without a shape NumPy multiplies to a scalar


def _fractions(indices: NDArray[Any], step: Fraction) -> NDArray[Any]:
    """Indices times a fraction; each value is made once."""
    values, places = np.unique(indices, return_inverse=True)
    exact = np.empty(len(values), dtype=object)
    exact[:] = [int(value) * step for value in values]
    return exact[places.ravel()].reshape(indices.shape)
