"""Noise added to data: integers in, integers out, and nothing in between that could round or wrap."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt.arithmetic import exact
from dpopt.errors import InputError
from dpopt.frames import arrays_of, is_frame, like
from dpopt.pmf import HasPmf, Pmf, read_pmf
from dpopt.reading import read_choice
from dpopt.release.drawing import drawn
from dpopt.release.pmf_sampler import in_data_units, pmf_draws
from dpopt.release.randomness import Randomness, read_randomness

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Overflow", "add_noise"]

_ROOM = 1 << 62  # two numbers below it have a sum that fits an int64
_WAY_OUT = "floats keep no lattice: round them to it first, and pass integers, or fractions where the step is one"


class Overflow(StrEnum):
    """What `add_noise` does with noisy values that do not fit the type of their array.

    Whether one does not fit is a function of the noisy values alone, and so is what happens then: post-processing.
    """

    ERROR = "error"
    EXACT = "exact"


def add_noise(
    values: Any,
    noise: Pmf | HasPmf,
    *,
    overflow: Overflow | str = Overflow.ERROR,
    randomness: Randomness | None = None,
) -> Any:
    """Add one independent draw of a noise to every element.

    This is the mechanism of n dimensions: where neighbouring data differ in one element, by at most the sensitivity
    that the noise was made for, the whole array has the epsilon and delta of a single element. Where a person changes
    c elements, the c guarantees compose.

    Parameters
    ----------
    values : array, nested list, number, or Series or DataFrame of pandas or Polars
        True values, multiples of the step of the noise. Floats are refused, whole ones too: their type says that
        something was rounded somewhere. So are missing values.
    noise : Pmf, or anything with a `pmf`
    overflow : Overflow or str
        For arrays and columns of NumPy integers: "error" raises when a noisy value does not fit the type, "exact"
        returns Python integers then.
    randomness : Randomness, optional
        The operating system's generator by default.

    Returns
    -------
    array of the same shape, one number, or a Series or DataFrame of the same kind
        A NumPy integer array keeps its type. Object arrays keep Python integers. A list gives int64 where all noisy
        values fit and Python integers otherwise. With a step that is no integer: fractions in an object array. A
        Series or DataFrame keeps its index and names, and the type of each column by the same rules.

    Raises
    ------
    InputError
        Before anything is drawn: values of another kind, or between the points of the lattice. After the draw: a noisy
        value does not fit. Nothing is returned then, but the draw has happened: to try again until it fits changes the
        law of the result, and adding up the privacy losses of all trials is the least one owes.

    Examples
    --------
    >>> from dpopt.release.randomness import InsecureRandomness
    >>> coin = Pmf(-1, (1, 2, 1))
    >>> add_noise([5, 0, 2**53 + 1], coin, randomness=InsecureRandomness(1))
    array([               4,                0, 9007199254740993])
    >>> import pandas
    >>> counts = pandas.Series([5, 9], index=["north", "south"], name="count", dtype="Int64")
    >>> noisy = add_noise(counts, coin)
    >>> noisy.index.tolist(), noisy.name, str(noisy.dtype)
    (['north', 'south'], 'count', 'Int64')
    >>> add_noise(np.array([7, 9], dtype=np.int8), coin).dtype
    dtype('int8')
    """
    law, source = read_pmf(noise, "noise"), read_randomness(randomness)
    on_overflow = read_choice(Overflow, overflow, "overflow")
    if is_frame(values):
        columns = [_read(column, law.step) for column in arrays_of(values, "values")]  # all before anything is drawn
        return like(values, [_noisy(column, law, source, on_overflow) for column in columns])
    true = _read(values, law.step)
    if not hasattr(values, "__array__"):
        noisy = _plus_draws(true, law, source)
        return noisy.item() if noisy.shape == () else _narrowed(noisy)
    noisy = _noisy(true, law, source, on_overflow)
    return noisy if isinstance(values, np.ndarray) else noisy[()]


def _noisy(true: NDArray[Any], law: Pmf, source: Randomness, overflow: Overflow) -> NDArray[Any]:
    """An array with noise, in its own type."""
    noisy = _plus_draws(true, law, source)
    return _fitted(noisy, true.dtype, overflow) if true.dtype != object and law.step.denominator == 1 else noisy


def _plus_draws(true: NDArray[Any], law: Pmf, source: Randomness) -> NDArray[Any]:
    return _sum(true, in_data_units(drawn(pmf_draws(law), true.shape, source), law))


def _read(values: Any, step: Fraction) -> NDArray[Any]:
    """NumPy integers as they are, anything else as Python integers or fractions; all multiples of the step."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(
            "values", "must not be a masked array: its mask would be lost; pass the values that are to stay"
        )
    try:
        array = np.asarray(values) if hasattr(values, "__array__") else np.array(values, dtype=object)
    except ValueError:
        raise InputError("values", "must be one number, or nested lists of equal lengths") from None
    if array.dtype.kind in "iu":
        _require_multiples(array, step)
        return array
    if array.dtype != object:
        held = {"b": "truth values", "f": "floats", "c": "complex floats"}.get(array.dtype.kind, f"{array.dtype}")
        raise InputError("values", f"must be integers, not {held}: {_WAY_OUT}")
    found = np.empty(array.size, dtype=object)
    found[:] = [_element(value, place, step) for place, value in enumerate(array.ravel())]
    return found.reshape(array.shape)


def _require_multiples(array: NDArray[Any], step: Fraction) -> None:
    """An integer is a multiple of a/b in lowest terms where it is one of a."""
    a = step.numerator
    if a == 1:
        return
    wide = array if a <= np.iinfo(array.dtype).max else array.astype(object)
    between = np.flatnonzero(wide.ravel() % a)
    if between.size:
        raise InputError(f"values[{between[0]}]", _between(step))


def _element(value: object, place: int, step: Fraction) -> int | Fraction:
    if type(value) is int and step == 1:
        return value
    argument = f"values[{place}]"
    if not isinstance(value, Rational | Decimal):
        way_out = f": {_WAY_OUT}" if isinstance(value, Real) else ""
        raise InputError(argument, f"must be an integer or a fraction, not a {type(value).__name__}{way_out}")
    number = exact(value, argument)
    if (number / step).denominator != 1:
        raise InputError(argument, _between(step))
    return number.numerator if step.denominator == 1 else number


def _between(step: Fraction) -> str:
    return f"must be a multiple of the lattice step {step}: round the values to the lattice before the noise is added"


def _sum(true: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """The exact sum: int64 where no sum can leave it, Python numbers otherwise."""
    if true.dtype != object and noise.dtype != object and _small(true) and _small(noise):
        return np.asarray(true.astype(np.int64) + noise)  # without a shape NumPy adds to a scalar
    total = np.empty(true.size, dtype=object)
    total[:] = true.astype(object).ravel() + noise.astype(object).ravel()
    return total.reshape(true.shape)


def _small(array: NDArray[Any]) -> bool:
    return array.size == 0 or (int(array.max()) < _ROOM and int(array.min()) > -_ROOM)


def _fitted(noisy: NDArray[Any], kind: np.dtype[Any], overflow: Overflow) -> NDArray[Any]:
    """Noisy values in the type that the true ones had, where all fit."""
    limits = np.iinfo(kind)
    if noisy.size == 0 or (int(noisy.min()) >= limits.min and int(noisy.max()) <= limits.max):
        return noisy.astype(kind)
    if overflow is Overflow.EXACT:
        return noisy.astype(object)
    raise InputError(
        "values",
        f"with the noise added do not all fit {kind} ({limits.min}..{limits.max}), and nothing is returned; the draw "
        "has happened, so that another try costs privacy again: pass a wider signed type, or overflow='exact'",
    )


def _narrowed(noisy: NDArray[Any]) -> NDArray[Any]:
    """int64 where all noisy values are integers that fit it."""
    integral = all(type(value) is int for value in noisy.ravel().tolist())
    limits = np.iinfo(np.int64)
    fits = integral and (noisy.size == 0 or (int(noisy.min()) >= limits.min and int(noisy.max()) <= limits.max))
    return noisy.astype(np.int64) if fits else noisy
