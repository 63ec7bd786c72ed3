"""From a sampler and a size to an array: what every public sampler does around its draws."""

from __future__ import annotations

from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt.errors import InputError
from dpopt.release.lazy import CHUNK, Draws
from dpopt.release.randomness import Randomness

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Size", "drawn", "read_size"]

_MOST = 1 << 40  # draws: 8 TB

Size = int | tuple[int, ...] | None
"""A number of draws, the shape of an array of draws, or None for one Python number."""


def read_size(size: Size) -> tuple[int, ...] | None:
    """The shape to draw, or None for a single number.

    Raises
    ------
    InputError
        `size` is no integer of at least 0 and no tuple of them, or more than memory could hold.

    Examples
    --------
    >>> read_size(3), read_size((2, 3))
    ((3,), (2, 3))
    """
    if size is None:
        return None
    sides = size if isinstance(size, tuple) else (size,)
    for side in sides:
        if isinstance(side, bool) or not isinstance(side, Integral):
            raise InputError("size", f"must be an integer, a tuple of integers or None, not {size!r}")
        if side < 0:
            raise InputError("size", f"must not be negative, not {side}")
    if prod(int(side) for side in sides) > _MOST:
        raise InputError("size", f"must ask for at most {_MOST} draws, not {size!r}")
    return tuple(int(side) for side in sides)


def drawn(draws: Draws, shape: tuple[int, ...] | None, randomness: Randomness) -> Any:
    """An array of draws, made a chunk at a time, or one Python integer.

    int64, or Python integers in an object array where the sampler says that it is `wide`.
    """
    if shape is None:
        return int(draws.draw(1, randomness)[0])
    total = prod(shape)
    found: NDArray[Any] = np.empty(total, dtype=object if draws.wide else np.int64)
    for start in range(0, total, CHUNK):
        part = draws.draw(min(CHUNK, total - start), randomness)
        if part.dtype == object and not draws.wide:  # beyond 62 bits: possible, with a probability below e^-1000
            found = found.astype(object)
        found[start : start + CHUNK] = part
    return found.reshape(shape)
