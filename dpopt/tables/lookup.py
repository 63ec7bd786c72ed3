"""Record keys to cell keys to noise: integers only, no float anywhere.

The convention is half open (equation (40)): with c(z) the number of keys that yield at most z, a key yields z + 1
exactly when c(z) <= key < c(z + 1), and the smallest value when key < c(-D). A key outside 0..K-1 is an error. The
cell key is the sum of the record keys of the contributors modulo K, so that the order of records does not matter and
the noise of a cell depends on nothing but who is in it. It follows that repeating a query repeats the noise: the
privacy of a key table is that of one static query, over the randomness of the record keys.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, overload

import numpy as np

from dpopt.arithmetic import exact_integer
from dpopt.errors import InputError
from dpopt.frames import arrays_of, is_frame, like, numbered_like, require_same_labels, series_array
from dpopt.reading import read_choice
from dpopt.release.randomness import Randomness
from dpopt.release.samplers import sample_uniform
from dpopt.tables.key_table import KeyTable

__all__ = ["Negatives", "Zeros", "cell_keys", "noise", "perturb", "random_record_keys"]

_WORD = 1 << 64
_INT64_MAX = (1 << 63) - 1
_LOW_HALF = np.uint64(0xFFFFFFFF)


class Negatives(StrEnum):
    """What `perturb` does with a count that would become negative.

    CLAMP replaces it by 0: post-processing, so that (epsilon, delta) is kept, but small counts become biased upwards.
    """

    ERROR = "error"
    CLAMP = "clamp"


class Zeros(StrEnum):
    """What `perturb` does with a count of 0.

    KEEP leaves it 0, as statistical offices do. Then nothing hides whether a count is 0 or 1: no (epsilon, delta)
    statement may include counts of 0. PERTURB looks its key up like any other; note that an empty cell has no record,
    so that its key is always 0 and its noise always the smallest one.
    """

    KEEP = "keep"
    PERTURB = "perturb"


@overload
def noise(table: KeyTable, keys: int) -> int: ...
@overload
def noise(table: KeyTable, keys: Sequence[int] | np.ndarray) -> np.ndarray: ...
@overload
def noise(table: KeyTable, keys: Any) -> Any: ...  # a frame
def noise(table: KeyTable, keys: Any) -> Any:
    """The noise that each cell key yields.

    Parameters
    ----------
    table : KeyTable
    keys : int, sequence or array of int, or Series or DataFrame of pandas or Polars
        Each in 0..K-1.

    Returns
    -------
    int, or int64 array of the shape of `keys`; a Series or DataFrame gives its own kind, with the same labels

    Raises
    ------
    InputError
        A key lies outside the table, or is not an integer (a real key belongs to a table of intervals).

    Examples
    --------
    >>> table = KeyTable(-1, (64, 128, 64), 256)
    >>> [noise(table, key) for key in (0, 63, 64, 191, 192, 255)]
    [-1, -1, 0, 0, 1, 1]
    >>> noise(table, np.array([63, 64]))
    array([-1,  0])
    """
    table = _require_table(table)
    size = table.key_size
    # c(z) = K needs no entry: no key reaches it (and K itself may not fit the keys' type).
    bounds = [c for c in table.cumulative[:-1] if c < size]
    if is_frame(keys):
        return like(keys, [noise(table, column) for column in arrays_of(keys, "keys")])
    if isinstance(keys, int | np.integer) and not isinstance(keys, bool):
        return table.start + bisect_right(bounds, int(_keys(np.array([keys], dtype=object), size, "keys")[0]))
    array = _keys(keys, size, "keys")
    if array.dtype == object:
        found = [table.start + bisect_right(bounds, key) for key in array.ravel().tolist()]
        return np.array(found, dtype=np.int64).reshape(array.shape)
    places = np.searchsorted(np.array(bounds, dtype=np.uint64), array, side="right")
    return table.start + places.astype(np.int64)


@overload
def cell_keys(
    record_keys: Sequence[int] | np.ndarray,
    cells: Sequence[int] | np.ndarray,
    key_size: int,
    n_cells: int | None = None,
) -> np.ndarray: ...
@overload
def cell_keys(record_keys: Any, cells: Any, key_size: int, n_cells: int | None = None) -> Any: ...  # Series
def cell_keys(record_keys: Any, cells: Any, key_size: int, n_cells: int | None = None) -> Any:
    """The cell key of every cell: the sum of the record keys of its contributors modulo K.

    Parameters
    ----------
    record_keys : sequence, array or Series of int, one for each record
        Each in 0..K-1, uniform and kept with its record (see `random_record_keys`).
    cells : sequence, array or Series of int, one for each record
        The cell that the record contributes to, 0..n_cells-1.
    key_size : int
        K. Sums are exact for every K, powers of two or not, also beyond 2^64.
    n_cells : int, optional
        The number of cells; by default the largest cell that occurs plus 1. A cell without records has the key 0.

    Returns
    -------
    array, shape (n_cells,)
        uint64, or Python integers when K exceeds 2^64. Record keys in a Series give a Series, whose index is the cell.

    Examples
    --------
    >>> cell_keys([200, 100, 7], [0, 0, 2], 256)
    array([44,  0,  7], dtype=uint64)
    """
    if is_frame(record_keys):
        held = series_array(record_keys, "record_keys")
        if is_frame(cells):
            require_same_labels(record_keys, cells, "cells", "record_keys")
        found = cell_keys(held, _held(cells, "cells"), key_size, n_cells)
        return numbered_like(record_keys, found, getattr(cells, "name", None))
    size = exact_integer(key_size, "key_size", at_least=1)
    keys = _keys(record_keys, size, "record_keys")
    places = _integers(_held(cells, "cells"), "cells")
    if keys.ndim != 1 or places.shape != keys.shape:
        raise InputError("cells", f"must give one cell for each of the {keys.size} record keys, not {places.size}")
    least = int(places.max()) + 1 if places.size else 0
    if places.size and int(places.min()) < 0:
        raise InputError("cells", f"must not be negative, not {int(places.min())}")
    count = least if n_cells is None else exact_integer(n_cells, "n_cells", at_least=0)
    if count < least:
        raise InputError("n_cells", f"must be at least {least}, since cell {least - 1} occurs, not {count}")
    index = places.astype(np.intp)
    if keys.dtype == object:
        sums = np.zeros(count, dtype=object)
        np.add.at(sums, index, keys)
        return sums % size
    if _WORD % size == 0:  # the sum wraps at 2^64, a multiple of K: nothing is lost modulo K
        wrapped = np.zeros(count, dtype=np.uint64)
        np.add.at(wrapped, index, keys)
        return wrapped if size == _WORD else wrapped % np.uint64(size)
    return _sums_in_halves(keys, index, count) % size


class _Halves:
    """Exact sums as upper and lower 32 bits; reduced modulo K in Python integers, one a cell."""

    def __init__(self, upper: np.ndarray, lower: np.ndarray) -> None:
        self.upper, self.lower = upper, lower

    def __mod__(self, size: int) -> np.ndarray:
        total = (self.upper.astype(object) * (1 << 32) + self.lower.astype(object)) % size
        return total.astype(np.uint64)


def _sums_in_halves(keys: np.ndarray, index: np.ndarray, count: int) -> _Halves:
    """Sums of 32-bit halves do not overflow below 2^32 records."""
    upper, lower = np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
    np.add.at(upper, index, keys >> np.uint64(32))
    np.add.at(lower, index, keys & _LOW_HALF)
    return _Halves(upper, lower)


@overload
def perturb(
    counts: Sequence[int] | np.ndarray,
    keys: Sequence[int] | np.ndarray,
    table: KeyTable,
    *,
    negatives: Negatives | str = ...,
    zeros: Zeros | str = ...,
) -> np.ndarray: ...
@overload
def perturb(
    counts: Any, keys: Any, table: KeyTable, *, negatives: Negatives | str = ..., zeros: Zeros | str = ...
) -> Any: ...  # frames
def perturb(
    counts: Any,
    keys: Any,
    table: KeyTable,
    *,
    negatives: Negatives | str = Negatives.ERROR,
    zeros: Zeros | str = Zeros.KEEP,
) -> Any:
    """Counts plus the noise that their cell keys yield.

    Parameters
    ----------
    counts : sequence or array of int, or Series or DataFrame of pandas or Polars
        True counts, at least 0.
    keys : the same
        Cell keys of the same shape, and where both are frames with the same labels.
    table : KeyTable
    negatives : Negatives or str
        The paper assumes counts of at least D, so that nothing becomes negative: what does is an error by default.
    zeros : Zeros or str

    Returns
    -------
    int64 array of the shape of `counts`; a Series or DataFrame gives its own kind, with the same labels

    Examples
    --------
    >>> table = KeyTable(-1, (64, 128, 64), 256)
    >>> perturb([5, 0, 7], [0, 0, 255], table)
    array([4, 0, 8])
    """
    on_negative = read_choice(Negatives, negatives, "negatives")
    on_zero = read_choice(Zeros, zeros, "zeros")
    if is_frame(counts):
        if not is_frame(keys):
            raise InputError("keys", f"must be a {type(counts).__name__} with the labels of the counts")
        require_same_labels(counts, keys, "keys", "counts")
        pairs = zip(arrays_of(counts, "counts"), arrays_of(keys, "keys"), strict=True)
        return like(counts, [perturb(*pair, table, negatives=negatives, zeros=zeros) for pair in pairs])
    true = _integers(counts, "counts")
    table = _require_table(table)
    drawn = noise(table, _keys(keys, table.key_size, "keys"))
    if true.shape != drawn.shape:
        raise InputError("keys", f"must have the shape {true.shape} of the counts, not {drawn.shape}")
    if true.size == 0:
        return np.zeros(true.shape, dtype=np.int64)
    if int(true.min()) < 0:
        raise InputError("counts", f"must not be negative, not {int(true.min())}")
    if int(true.max()) > _INT64_MAX - max(table.end, 0):
        raise InputError("counts", f"must leave room for the noise in 64 bits; {int(true.max())} does not")
    whole = true.astype(np.int64)
    result = whole + drawn
    if on_zero is Zeros.KEEP:
        result[whole == 0] = 0
    if bool(np.any(result < 0)):
        if on_negative is Negatives.ERROR:
            place = int(np.flatnonzero(result.ravel() < 0)[0])
            was, value = int(whole.ravel()[place]), int(result.ravel()[place])
            raise InputError(
                "counts", f"{was} (place {place}) would become {value}; pass negatives='clamp' to publish 0 instead"
            )
        result = np.maximum(result, 0)
    return result


def random_record_keys(size: int, key_size: int, *, randomness: Randomness | None = None) -> np.ndarray:
    """One uniform key on 0..K-1 for each record.

    Parameters
    ----------
    size : int
        Number of records.
    key_size : int
    randomness : Randomness, optional
        The operating system's secure generator by default, which is what a release needs.

    Returns
    -------
    array, shape (size,)
        uint64, or Python integers when K exceeds 2^64.

    Examples
    --------
    >>> from dpopt.release.randomness import InsecureRandomness
    >>> random_record_keys(3, 256, randomness=InsecureRandomness(1))
    array([255,  34, 243], dtype=uint64)
    """
    n, limit = exact_integer(size, "size", at_least=0), exact_integer(key_size, "key_size", at_least=1)
    drawn = sample_uniform(limit, n, randomness=randomness)
    return np.asarray(drawn, dtype=np.uint64 if limit <= _WORD else object)


def _held(values: Any, argument: str) -> Any:
    """What a Series holds; anything else as it is."""
    return series_array(values, argument) if is_frame(values) else values


def _require_table(table: object) -> KeyTable:
    found = getattr(table, "table", table)
    if not isinstance(found, KeyTable):
        raise InputError(
            "table", f"must be a KeyTable or have one as its attribute 'table', not {type(table).__name__}"
        )
    return found


def _integers(values: Any, argument: str) -> np.ndarray:
    """An array of integers as it came (any width, or Python integers), or an error that says what it holds instead."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(argument, f"must be a sequence of integers, not {values!r}")
    if not hasattr(values, "__array__"):
        listed = list(values)
        values = np.empty(len(listed), dtype=object)
        values[:] = listed  # integers beyond 64 bits stay what they are; a mixture with floats is not cast
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "O":
        for place, value in enumerate(array.ravel()):
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
                raise InputError(f"{argument}[{place}]", f"must be an integer, not {value!r}")
        return _narrowed(array)
    held = {"b": "truth values", "f": "real numbers"}.get(array.dtype.kind, f"{array.dtype}")
    raise InputError(argument, f"must be integers, not {held}")


def _narrowed(array: np.ndarray) -> np.ndarray:
    """Python integers as int64 or uint64 where they fit."""
    whole = [int(value) for value in array.ravel()]
    if not whole or (min(whole) >= -(1 << 63) and max(whole) <= _INT64_MAX):
        return np.array(whole, dtype=np.int64).reshape(array.shape)
    if min(whole) >= 0 and max(whole) < _WORD:
        return np.array(whole, dtype=np.uint64).reshape(array.shape)
    exact_values = np.empty(len(whole), dtype=object)
    exact_values[:] = whole
    return exact_values.reshape(array.shape)


def _keys(values: Any, size: int, argument: str) -> np.ndarray:
    """Keys in 0..K-1 as uint64, or as Python integers when K exceeds 2^64."""
    array = _integers(values, argument)
    if array.size:
        for extreme in (int(array.min()), int(array.max())):
            if not 0 <= extreme < size:
                raise InputError(argument, f"must lie in 0..{size - 1} (key size {size}), not {extreme}")
    if size > _WORD:
        whole = np.empty(array.size, dtype=object)
        whole[:] = [int(value) for value in array.ravel()]
        return whole.reshape(array.shape)
    return array.astype(np.uint64)
