"""Scores as integers: how many units of the resolution fit into each, rounded down, exactly.

Rounding down before the noise keeps the sensitivity, since that is a multiple of the resolution: from q' <= q + s it
follows that floor(q' / g) <= floor(q / g) + s / g (the gap paper, arXiv 2308.08057, before its Algorithm 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, NoReturn

import numpy as np

from dpopt.arithmetic import exact
from dpopt.errors import InputError
from dpopt.frames import is_frame, series_array
from dpopt.reading import read_flag

__all__ = ["Wide", "WideFloats", "read_scores", "read_wide_scores"]

_INT64_MAX = (1 << 63) - 1
_ROOM = 1 << 62  # half of the range is left to the noise
_WHOLE = 2.0**53  # integers up to here are floats, and so is their product while it stays here
_SPLITTER = 2.0**27 + 1
_SAFE_LOW = 2.0**-900  # from there to 2^900 the error of a product is a float itself (Dekker 1971)


def read_scores(scores: Any, units: int, *, round_down: bool = False) -> np.ndarray:
    """``floor(score * units)`` for each score.

    Parameters
    ----------
    scores : sequence, one-dimensional array, or Series of pandas or Polars
        Integers, fractions, decimals or strings of one of these; floats only with `round_down`.
    units : int
        Units of the resolution in 1: the reciprocal of the resolution.
    round_down : bool
        Allow floats. Each is read as the binary number that it is, and not as its shortest decimal: 0.1 is a little
        more than one tenth, 0.7 a little less than seven tenths.

    Returns
    -------
    array, shape (n,)
        int64 where every value lies within 2^62, so that there is room for noise; Python integers otherwise.

    Raises
    ------
    InputError
        The scores are empty, not one-dimensional, or one of them is a truth value, NaN, infinite or no number; or
        `round_down` is neither True nor False.

    Examples
    --------
    >>> read_scores([3, "2.55", Fraction(-1, 3)], 10)
    array([30, 25, -4])
    >>> read_scores(np.array([0.1, 0.7]), 10, round_down=True)
    array([1, 6])
    >>> read_scores([2**70], 1)
    array([1180591620717411303424], dtype=object)
    """
    round_down = read_flag(round_down, "round_down")
    found = _as_array(scores)
    if found.ndim != 1:
        raise InputError("scores", f"must be one-dimensional, not of shape {found.shape}")
    if found.size == 0:
        raise InputError("scores", "must hold at least one score")
    if found.dtype.kind in "iu" or (found.dtype == object and set(map(type, found.tolist())) == {int}):
        return _of_integers(found, units)
    if found.dtype.kind == "f":
        if not round_down:
            _refuse_floats()
        return _of_floats(found, units)
    return _narrowed([_of_number(value, place, units, round_down) for place, value in enumerate(found.tolist())])


@dataclass(frozen=True, eq=False)
class Wide:
    """Scores whose values in units are too far apart for 64 bits: ``numbers * units``, not multiplied yet.

    Parameters
    ----------
    numbers : array of int64, shape (n,)
        The scores themselves, moved by one common number where they are unsigned: only differences matter.
    units : int
    """

    numbers: np.ndarray
    units: int

    @property
    def size(self) -> int:
        """The number of scores."""
        return self.numbers.size

    def window(self, last: float, bridged: int) -> tuple[float, float]:
        """Two numbers on either side of `last` that so many units do not bridge from there."""
        reach, info = bridged // self.units + 2, np.iinfo(np.int64)
        return max(last - reach, info.min), min(last + reach, info.max)

    def near(self, low: float, high: float) -> np.ndarray:
        """In units, with numbers beyond the two moved there; counted from any one number."""
        near = np.clip(self.numbers, low, high)
        if (int(high) - int(low)) * self.units >= _ROOM:
            return (near.astype(object) - int(low)) * self.units
        return (near - int(low)) * np.int64(self.units)

    def beyond(self, items: np.ndarray, high: float) -> list[int]:
        """How many units lie from `high` to each of these numbers."""
        return [(number - int(high)) * self.units for number in self.numbers[items].tolist()]


class WideFloats(Wide):
    """The same for floats, which are rounded down to whole units."""

    def window(self, last: float, bridged: int) -> tuple[float, float]:
        reach = (bridged // self.units + 3) * (1 + 2.0**-40) + abs(last) * 2.0**-40  # enough is left by rounding
        most = float(np.finfo(np.float64).max)
        return max(last - reach, -most), min(last + reach, most)

    def near(self, low: float, high: float) -> np.ndarray:
        near = np.clip(self.numbers, low, high)
        if max(abs(low), abs(high)) < _ROOM / (2 * self.units):
            return _of_floats(near, self.units)
        above = np.flatnonzero(near > low)  # as a rule few: floats of this size are far apart
        found = np.zeros(near.size, dtype=object)
        found[above] = self._from(low, near[above])
        return found

    def beyond(self, items: np.ndarray, high: float) -> list[int]:
        return self._from(high, self.numbers[items])

    def _from(self, edge: float, numbers: np.ndarray) -> list[int]:
        first = _floor(Fraction(edge) * self.units)
        return [_floor(Fraction(number) * self.units) - first for number in numbers.tolist()]


def read_wide_scores(scores: Any, units: int, *, round_down: bool = False) -> np.ndarray | Wide:
    """The scores as `read_scores` reads them, but for 64-bit numbers that grow beyond 64 bits in units.

    Examples
    --------
    >>> read_wide_scores([3, -4], 10)
    array([ 30, -40])
    >>> read_wide_scores([3, 2**62], 10).numbers
    array([                  3, 4611686018427387904])
    """
    found = _as_array(scores)
    if found.ndim == 1 and found.size and found.dtype == np.float64 and read_flag(round_down, "round_down"):
        largest = float(np.abs(found).max())
        if np.isfinite(largest) and units < _WHOLE and largest >= _ROOM / (2 * units):
            return WideFloats(found, units)
    if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu" or _has_room(found, units):
        return read_scores(found, units, round_down=round_down)
    read_flag(round_down, "round_down")
    if found.dtype == np.uint64:
        return Wide((found ^ np.uint64(1 << 63)).view(np.int64), units)
    return Wide(found.astype(np.int64), units)


def _as_array(scores: Any) -> np.ndarray:
    """One array; of objects wherever numpy would have to convert, since it converts without asking."""
    if isinstance(scores, np.ma.MaskedArray):
        if bool(np.ma.getmaskarray(scores).any()):
            raise InputError("scores", "must not have masked entries")
        scores = scores.data
    if is_frame(scores):
        return series_array(scores, "scores", "iuf")
    if not isinstance(scores, np.ndarray) and hasattr(scores, "__array__"):
        scores = np.asarray(scores)
    if isinstance(scores, np.ndarray):
        if scores.dtype.kind in "iufOU":
            return scores
        raise InputError("scores", f"must be numbers, not an array of {scores.dtype}")
    if isinstance(scores, str | bytes | bytearray | Mapping | Set) or not isinstance(scores, Iterable):
        raise InputError("scores", f"must be a sequence or an array of numbers, not {type(scores).__name__}")
    values = list(scores)
    if set(map(type, values)) == {int} and min(values) >= -_INT64_MAX and max(values) <= _INT64_MAX:
        return np.array(values, dtype=np.int64)
    if set(map(type, values)) == {float}:
        return np.array(values, dtype=np.float64)
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _of_integers(found: np.ndarray, units: int) -> np.ndarray:
    return found.astype(np.int64) * np.int64(units) if _has_room(found, units) else found.astype(object) * units


def _has_room(found: np.ndarray, units: int) -> bool:
    return max(abs(int(found.min())), abs(int(found.max()))) * units < _ROOM


def _of_number(value: object, place: int, units: int, round_down: bool) -> int:
    where = f"scores[{place}]"
    if isinstance(value, list | tuple | np.ndarray):
        raise InputError("scores", f"must be one-dimensional, but {where} is a {type(value).__name__}")
    if isinstance(value, Real) and not isinstance(value, Rational | Decimal):
        if not round_down:
            _refuse_floats(where)
        return _floor(_binary(value, where) * units)
    return _floor(exact(value, where) * units)


def _floor(number: Fraction) -> int:
    return number.numerator // number.denominator


def _binary(value: Any, where: str) -> Fraction:
    """A float of any kind as the rational number that it is."""
    if not np.isfinite(value):
        raise InputError(where, f"must be finite, not {value}")
    return Fraction(*(int(part) for part in value.as_integer_ratio()))


def _refuse_floats(where: str = "scores") -> NoReturn:
    raise InputError(
        where,
        "must be exact (integers, fractions, decimals or strings), not floats; "
        "pass round_down=True to round floats down to the resolution",
    )


def _of_floats(found: np.ndarray, units: int) -> np.ndarray:
    """Vectorised: two floats hold each product exactly, of the whole and of the broken part of a large number apart."""
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise InputError(f"scores[{int(bad[0])}]", f"must be finite, not {found[bad[0]]}")
    if found.dtype.itemsize > 8 or units >= _WHOLE:
        return _narrowed([_floor(_binary(value, "scores") * units) for value in found])
    values = found.astype(np.float64)
    largest = float(np.abs(values).max())
    if largest < _WHOLE / (2 * units):
        return _floors(values, units)
    whole = np.trunc(values)  # and what is left of each is a float as well
    floors = _floors(values - whole, units)
    if largest < _ROOM / (2 * units):
        return floors + whole.astype(np.int64) * units
    return _narrowed([int(value) * units + floor for value, floor in zip(whole.tolist(), floors.tolist(), strict=True)])


def _floors(values: np.ndarray, units: int) -> np.ndarray:
    """``floor(value * units)`` of floats whose products are well below 2^53."""
    safe = np.abs(values) > _SAFE_LOW  # what is not is 0, or so small that its product lies within 1 of it
    product, error = _product(np.where(safe, values, 0.0), float(units))
    # A product that is no integer has rounded across none (they are floats themselves): its floor is right. One that
    # is an integer stands for a number just below it where the error is negative.
    floors = np.floor(product)
    floors -= ((floors == product) & (error < 0)) | (~safe & (values < 0))
    return floors.astype(np.int64)


def _product(values: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Each product rounded to a float and its error, a float as well: ``values * factor == product + error``.

    Veltkamp's splitting and Dekker's product (Numerische Mathematik 18, 1971, 224-242).
    """
    product = values * factor
    high, low = _halves(values)
    factor_high, factor_low = _halves(np.float64(factor))
    error = ((high * factor_high - product) + high * factor_low + low * factor_high) + low * factor_low
    return product, error


def _halves(values: Any) -> tuple[Any, Any]:
    wide = values * _SPLITTER
    high = wide - (wide - values)
    return high, values - high


def _narrowed(values: list[int]) -> np.ndarray:
    """int64 where there is room for noise."""
    if max(abs(min(values)), abs(max(values))) < _ROOM:
        return np.array(values, dtype=np.int64)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
