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


class _Itself:
    """A pmf by identity: to hash or to compare it takes no look at its weights."""

    __slots__ = ("pmf",)

    def __init__(self, pmf: Pmf) -> None:
        self.pmf = pmf  # and kept, so that no other object takes over its id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.pmf is other.pmf

    def __hash__(self) -> int:
        return id(self.pmf)


def pmf_draws(pmf: Pmf) -> TailedDraws:
    """Draws of the lattice indices of a pmf, tables kept for the next call: of this object, and of one that equals it.

    The weights of an object are looked at when it is first drawn from. Two threads that come first both make the
    tables, which are the same.
    """
    return _draws_of(_Itself(pmf))


@lru_cache(maxsize=16)
def _draws_of(itself: _Itself) -> TailedDraws:
    return _equal_draws(itself.pmf)


@lru_cache(maxsize=16)
def _equal_draws(pmf: Pmf) -> TailedDraws:
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
