"""Series and DataFrames of pandas and Polars: their columns as exact arrays, and back with the labels that they had.

Neither library is imported unless an object of its own is given.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from dpopt.errors import InputError

__all__ = ["arrays_of", "is_frame", "like", "numbered_like", "require_same_labels", "series_array"]

_LIBRARIES = ("pandas", "polars")
_FRAMES = ("Series", "DataFrame", "LazyFrame")
_WIDE = ("Int128", "UInt128")


def is_frame(values: object) -> bool:
    """Whether this is a Series or DataFrame of pandas or Polars.

    Examples
    --------
    >>> import pandas
    >>> is_frame(pandas.Series([1])), is_frame([1])
    (True, False)
    """
    return _library(values) != ""


def arrays_of(values: Any, argument: str, kinds: Collection[str] = "iu") -> list[np.ndarray]:
    """The columns as NumPy arrays of these kinds, or of Python objects; integers of any width as they are.

    Raises
    ------
    InputError
        A column holds another kind, or a value is missing.

    Examples
    --------
    >>> import pandas
    >>> arrays_of(pandas.Series([2**62 + 1, 3], dtype="Int64"), "counts")
    [array([4611686018427387905,                   3])]
    """
    columns = _columns(values, argument)
    read = _pandas_array if _library(values) == "pandas" else _polars_array
    if _is_series(values):
        return [read(values, argument, kinds)]
    return [read(column, f"{argument}[{column.name!r}]", kinds) for column in columns]


def series_array(values: Any, argument: str, kinds: Collection[str] = "iu") -> np.ndarray:
    """The array of a Series; a DataFrame is an error."""
    if not _is_series(values):
        raise InputError(argument, f"must be one Series, not a {type(values).__name__}: pass one of its columns")
    return arrays_of(values, argument, kinds)[0]


def like(values: Any, columns: Sequence[np.ndarray]) -> Any:
    """The same kind with the same labels, and other columns of the same lengths.

    Integers keep to the kind of type that was there (NumPy's, nullable, Arrow's), in their own width; Python objects
    make a column of objects.

    Examples
    --------
    >>> import pandas
    >>> like(pandas.Series([5, 7], index=["a", "b"], name="count"), [np.array([6, 6])]).to_dict()
    {'a': 6, 'b': 6}
    """
    old = _columns(values, "values")
    if _library(values) == "polars":
        series = [_polars_series(column, new) for column, new in zip(old, columns, strict=True)]
        return series[0] if _is_series(values) else type(values)(series)
    cells = [_pandas_cells(column.dtype, new) for column, new in zip(old, columns, strict=True)]
    if _is_series(values):
        return type(values)(cells[0], index=values.index, name=values.name)
    frame = type(values)(dict(enumerate(cells)), index=values.index)
    frame.columns = values.columns  # names may occur twice
    return frame


def numbered_like(values: Any, array: np.ndarray, index_name: Any) -> Any:
    """A Series of the same library and name, for things that are numbered 0, 1, 2, ..."""
    if _library(values) == "polars":
        return _polars_series(values, array)
    index = import_module("pandas").RangeIndex(array.size, name=index_name)
    return type(values)(_pandas_cells(values.dtype, array), index=index, name=values.name)


def require_same_labels(values: Any, others: Any, argument: str, what: str) -> None:
    """Refuse two frames whose places do not stand for the same things."""
    if _library(values) != _library(others) or _is_series(values) != _is_series(others):
        raise InputError(argument, f"must be a {_named(values)}, as {what} is, not a {_named(others)}")
    if _library(values) == "polars":
        same = _is_series(values) or values.columns == others.columns
    else:
        same = values.index.equals(others.index) and (_is_series(values) or values.columns.equals(others.columns))
    if not same:
        raise InputError(argument, f"must have the labels of {what}, in their order: bring one into the other's order")


# --- what is held ----------------------------------------------------------------------------------------------------


def _library(values: object) -> str:
    for kind in type(values).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in _LIBRARIES and kind.__name__ in _FRAMES:
            return library
    return ""


def _is_series(values: object) -> bool:
    return any(kind.__name__ == "Series" for kind in type(values).__mro__)


def _named(values: object) -> str:
    return f"{_library(values)} {'Series' if _is_series(values) else 'DataFrame'}"


def _columns(values: Any, argument: str) -> list[Any]:
    if _is_series(values):
        return [values]
    if any(kind.__name__ == "LazyFrame" for kind in type(values).__mro__):
        raise InputError(argument, "must not be a LazyFrame: collect() it first")
    if _library(values) == "polars":
        return list(values.get_columns())
    return [values.iloc[:, place] for place in range(values.shape[1])]


def _refuse_missing(argument: str, missing: np.ndarray) -> None:
    places = np.flatnonzero(missing)
    if places.size:
        raise InputError(
            f"{argument}[{places[0]}]", "is missing: fill missing values, or leave them out (dropna, drop_nulls)"
        )


def _refuse_type(argument: str, dtype: Any, *, missing: bool) -> NoReturn:
    way = "; missing values turn integers into floats: read them as a nullable type such as Int64" if missing else ""
    raise InputError(argument, f"must hold integers, not {dtype}{way}; of a DataFrame pass the columns that do")


# --- pandas ----------------------------------------------------------------------------------------------------------


def _pandas_array(series: Any, argument: str, kinds: Collection[str]) -> np.ndarray:
    dtype, missing = series.dtype, series.isna().to_numpy()
    objects = isinstance(dtype, np.dtype) and dtype.kind == "O"
    if not objects and getattr(dtype, "kind", "") not in kinds:
        _refuse_type(argument, dtype, missing=bool(missing.any()))
    _refuse_missing(argument, missing)
    return series.to_numpy(dtype=_numpy_type(dtype))


def _numpy_type(dtype: Any) -> Any:
    """The NumPy type of a nullable, Arrow or sparse one; one of NumPy is its own."""
    return getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))


def _pandas_cells(dtype: Any, array: np.ndarray) -> Any:
    """An array as the same kind of type holds it."""
    if array.dtype == object or isinstance(dtype, np.dtype) or not hasattr(dtype, "numpy_dtype"):
        return array
    if array.dtype == dtype.numpy_dtype:
        kept = dtype
    elif type(dtype).__name__ == "ArrowDtype":
        kept = f"{array.dtype.name}[pyarrow]"
    else:
        kept = array.dtype.name.replace("uint", "UInt").replace("int", "Int")
    return import_module("pandas").array(array, dtype=kept)


# --- Polars ----------------------------------------------------------------------------------------------------------


def _polars_array(series: Any, argument: str, kinds: Collection[str]) -> np.ndarray:
    dtype = series.dtype
    held = "O" if str(dtype) == "Object" else "i" if dtype.is_integer() else "f" if dtype.is_float() else ""
    if held not in ("O", *kinds):
        _refuse_type(argument, dtype, missing=series.null_count() > 0)
    _refuse_missing(argument, series.is_null().to_numpy())
    if held == "O" or str(dtype) in _WIDE:
        array = np.empty(len(series), dtype=object)
        array[:] = series.to_list()
        return array
    return np.asarray(series.to_numpy())


def _polars_series(series: Any, array: np.ndarray) -> Any:
    polars = import_module("polars")
    if array.dtype != object:
        return polars.Series(series.name, array)
    values = array.tolist()
    if str(series.dtype) in _WIDE and all(-(1 << 127) <= value < 1 << 127 for value in values):
        return polars.Series(series.name, values, dtype=series.dtype)
    return polars.Series(series.name, values, dtype=polars.Object)
