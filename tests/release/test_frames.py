"""Series and DataFrames of pandas and Polars: the same kind out, labels and types kept, no integer through a float."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpopt as dp
from dpopt.errors import InputError

from .twin import Replay

UP = dp.Pmf(1, (1,))
TABLE = dp.KeyTable(-1, (64, 128, 64), 256)
LARGE = [2**62 + 1, -(2**62) - 1, 2**53 + 1, 0]
PANDAS = ["int8", "uint64", "int64", "Int8", "UInt64", "Int64", "int8[pyarrow]", "uint64[pyarrow]", "int64[pyarrow]"]
POLARS = [pl.Int8, pl.Int16, pl.Int64, pl.UInt8, pl.UInt64, pl.Int128]


def labels(values: Any) -> tuple[Any, ...]:
    """Everything of a pandas object besides its values."""
    if isinstance(values, pd.Series):
        return values.index.tolist(), values.index.names, values.name, values.dtype
    return values.index.tolist(), values.index.names, values.columns.tolist(), values.columns.names, list(values.dtypes)


@pytest.mark.parametrize("dtype", PANDAS)
def test_pandas_series(dtype: str) -> None:
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["area", None])
    counts = pd.Series([5, 0, 100], index=index, name="count", dtype=dtype)
    noisy = dp.add_noise(counts, UP)
    assert type(noisy) is pd.Series and noisy.tolist() == [6, 1, 101] and labels(noisy) == labels(counts)
    assert counts.tolist() == [5, 0, 100]
    assert dp.add_noise(counts.iloc[:0], UP).dtype == counts.dtype
    if "8" not in dtype and not dtype.lower().startswith("u"):
        assert dp.add_noise(pd.Series(LARGE, dtype=dtype), UP).tolist() == [value + 1 for value in LARGE]
    if dtype.lower().startswith("uint64"):
        assert dp.add_noise(pd.Series([2**64 - 2], dtype=dtype), UP).tolist() == [2**64 - 1]
    top = int(np.iinfo(dtype.lower().removesuffix("[pyarrow]")).max)
    with pytest.raises(InputError, match="do not all fit"):
        dp.add_noise(pd.Series([top], dtype=dtype), UP)
    wide = dp.add_noise(pd.Series([top], dtype=dtype), UP, overflow="exact")
    assert wide.dtype == object and wide.tolist() == [top + 1]


@pytest.mark.parametrize("dtype", POLARS)
def test_polars_series(dtype: Any) -> None:
    counts = pl.Series("count", [5, 0, 100], dtype=dtype)
    noisy = dp.add_noise(counts, UP)
    assert isinstance(noisy, pl.Series) and (noisy.name, noisy.dtype) == ("count", dtype)
    assert noisy.to_list() == [6, 1, 101]
    assert dp.add_noise(counts[:0], UP).dtype == dtype
    if dtype in (pl.Int64, pl.Int128):
        assert dp.add_noise(pl.Series(LARGE, dtype=dtype), UP).to_list() == [value + 1 for value in LARGE]
    if dtype == pl.Int128:
        assert dp.add_noise(pl.Series([2**100], dtype=dtype), UP).to_list() == [2**100 + 1]
    else:
        with pytest.raises(InputError, match="do not all fit"):
            dp.add_noise(_top(dtype), UP)


def _top(dtype: Any) -> pl.Series:
    bits, signed = int(str(dtype).strip("UInt")), not str(dtype).startswith("U")
    return pl.Series([2 ** (bits - signed) - 1], dtype=dtype)


def test_frames_keep_columns_index_and_types() -> None:
    """Also where names occur twice; every column gets draws of its own."""
    frame = pd.DataFrame([[1, 2**60, 3], [4, 5, 6]], index=pd.Index(["x", "y"], name="area"))
    frame.columns = pd.Index(["n", "m", "n"], name="measure")
    frame = frame.astype({"m": "Int64"})
    noisy = dp.add_noise(frame, UP)
    assert type(noisy) is pd.DataFrame and labels(noisy) == labels(frame)
    assert noisy.to_numpy().tolist() == [[2, 2**60 + 1, 4], [5, 6, 7]]
    other = pl.DataFrame({"b": [1, 2], "a": [2**60, 4]}, schema={"b": pl.Int8, "a": pl.Int64})
    found = dp.add_noise(other, UP)
    assert isinstance(found, pl.DataFrame) and found.schema == other.schema
    assert found.rows() == [(2, 2**60 + 1), (3, 5)]
    assert dp.add_noise(frame.iloc[:, :0], UP).index.equals(frame.index)
    wide = dp.add_noise(pd.DataFrame(np.zeros((50, 40), dtype=np.int64)), dp.Pmf(-1, (1, 2, 1)))
    assert len({tuple(wide[name]) for name in wide}) == 40


def test_objects_and_fractions() -> None:
    """Python integers of any size stay what they are; a fractional step gives fractions."""
    counts = pd.Series([1, 2**70], dtype=object, name="n")
    noisy = dp.add_noise(counts, UP)
    assert noisy.dtype == object and noisy.tolist() == [2, 2**70 + 1] and noisy.name == "n"
    half = dp.Pmf(1, (1,), step="1/2")
    assert dp.add_noise(pd.Series([1, 2], dtype="Int64"), half).tolist() == [Fraction(3, 2), Fraction(5, 2)]
    assert dp.add_noise(pl.Series("n", [1, 2]), half).to_list() == [Fraction(3, 2), Fraction(5, 2)]
    assert dp.add_noise(pl.Series("n", [1, 2**70], dtype=pl.Object), UP).to_list() == [2, 2**70 + 1]


class Counts(pd.Series):
    """A Series of a user's own."""


def test_subclasses() -> None:
    assert type(dp.add_noise(Counts([1], name="n"), UP)) is Counts


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pd.Series([1, None], dtype="Int64"), r"values\[1\]: is missing: fill missing values, or leave them out"),
        (pd.Series([1, None], dtype="int64[pyarrow]"), r"values\[1\]: is missing"),
        (pd.Series([1, None], dtype=object), r"values\[1\]: is missing"),
        (pd.Series([1, None]), "must hold integers, not float64; missing values turn integers into floats"),
        (pd.Series([1.0]), "must hold integers, not float64; of a DataFrame pass the columns that do"),
        (pd.Series([True]), "must hold integers, not bool"),
        (pd.Series(["1"]), "must hold integers, not str"),
        (pd.Series([1], dtype="category"), "must hold integers, not category"),
        (pd.Series(pd.interval_range(0, 2)), "must hold integers, not interval"),
        (pd.Series([1, 2.5], dtype=object), r"values\[1\]: must be an integer or a fraction, not a float"),
        (pd.DataFrame({"area": ["x"], "n": [1]}), r"values\['area'\]: must hold integers, not str"),
        (pl.Series([1, None]), r"values\[1\]: is missing"),
        (pl.Series([1.0]), "must hold integers, not Float64"),
        (pl.Series(["1"]), "must hold integers, not String"),
        (pl.Series([True]), "must hold integers, not Boolean"),
        (pl.DataFrame({"area": ["x"], "n": [1]}), r"values\['area'\]: must hold integers, not String"),
        (pl.LazyFrame({"n": [1]}), r"values: must not be a LazyFrame: collect\(\) it first"),
    ],
)  # fmt: skip
def test_refused_before_anything_is_drawn(values: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        dp.add_noise(values, dp.Pmf(-1, (1, 2, 1)), randomness=Replay(b""))


def test_a_column_that_is_refused_comes_before_any_draw() -> None:
    """The last of three columns, and the draws of the first two have not happened."""
    frame = pd.DataFrame({"a": [5], "b": [5], "c": [6]})
    with pytest.raises(InputError, match="must be a multiple of the lattice step 5"):
        dp.add_noise(frame, dp.Pmf(-1, (1, 2, 1), step=5), randomness=Replay(b""))


# --- cell keys -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint64[pyarrow]"])
def test_perturbing_pandas(dtype: str) -> None:
    """As arrays of the same numbers, with the labels of the counts."""
    index = pd.Index(["a", "b", "c"], name="area")
    counts = pd.Series([5, 0, 7], index=index, name="count", dtype=dtype)
    keys = pd.Series([0, 0, 255], index=index, name="key", dtype=dtype)
    noisy = dp.perturb(counts, keys, TABLE)
    assert noisy.to_dict() == {"a": 4, "b": 0, "c": 8} and (noisy.name, noisy.index.name) == ("count", "area")
    assert noisy.dtype == (dtype if dtype != "uint64[pyarrow]" else "int64[pyarrow]")
    drawn = dp.noise(TABLE, keys)
    assert drawn.tolist() == [-1, -1, 1] and drawn.index.equals(index)
    frame, both = pd.DataFrame({"x": counts, "y": counts}), pd.DataFrame({"x": keys, "y": keys})
    assert dp.perturb(frame, both, TABLE).to_numpy().tolist() == [[4, 4], [0, 0], [8, 8]]
    for other in (keys[::-1], keys.reset_index(drop=True), both[["y", "x"]], pl.Series([0, 0, 255]), [0, 0, 255]):
        with pytest.raises(InputError, match="keys: must"):
            dp.perturb(frame if isinstance(other, pd.DataFrame) else counts, other, TABLE)
    with pytest.raises(InputError, match=r"keys\[0\]: is missing"):
        dp.noise(TABLE, pd.Series([None, 3], dtype="Int64"))


def test_perturbing_polars() -> None:
    counts, keys = pl.Series("count", [5, 0, 7]), pl.Series("key", [0, 0, 255], dtype=pl.UInt8)
    noisy = dp.perturb(counts, keys, TABLE)
    assert isinstance(noisy, pl.Series) and noisy.name == "count" and noisy.to_list() == [4, 0, 8]
    assert dp.noise(TABLE, keys).to_list() == [-1, -1, 1]
    frame = dp.perturb(pl.DataFrame({"n": counts}), pl.DataFrame({"n": keys}), TABLE)
    assert isinstance(frame, pl.DataFrame) and frame["n"].to_list() == [4, 0, 8]
    with pytest.raises(InputError, match="must have the labels of counts"):
        dp.perturb(pl.DataFrame({"n": counts}), pl.DataFrame({"m": keys}), TABLE)


def test_cell_keys_of_series() -> None:
    """Sums by cell; the cell is the index."""
    records, cells = [200, 100, 7], [0, 0, 2]
    found = dp.cell_keys(pd.Series(records, name="key"), pd.Series(cells, name="cell"), 256)
    assert found.to_dict() == {0: 44, 1: 0, 2: 7} and (found.name, found.index.name) == ("key", "cell")
    assert dp.cell_keys(records, pd.Series(cells, dtype="Int64"), 256).tolist() == [44, 0, 7]
    assert dp.cell_keys(pl.Series("key", records), pl.Series(cells), 256).to_list() == [44, 0, 7]
    big = dp.cell_keys(pd.Series([2**70, 2**70], dtype=object), pd.Series([0, 0]), 2**70 + 1)
    assert big.tolist() == [2**70 - 1]
    with pytest.raises(InputError, match="cells: must have the labels of record_keys"):
        dp.cell_keys(pd.Series(records), pd.Series(cells, index=[2, 1, 0]), 256)
    with pytest.raises(InputError, match="record_keys: must be one Series, not a DataFrame"):
        dp.cell_keys(pd.DataFrame({"key": records}), cells, 256)


# --- scores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scores",
    [
        pd.Series([1, 900, 2, 700], index=list("abcd"), dtype="Int64"),
        pd.Series([1, 900, 2, 700], dtype="int64[pyarrow]"),
        pd.Series([1, Fraction(1801, 2), 2, 700], dtype=object),
        pl.Series([1, 900, 2, 700]),
    ],
)
def test_scores(scores: Any) -> None:
    assert dp.noisy_top_k(scores, 2, epsilon=1000).ids == (1, 3)
    assert dp.noisy_top_k_ids(scores, 1, epsilon=1000) == (1,)


def test_scores_that_are_refused() -> None:
    assert dp.noisy_top_k(pd.Series([0.5, 9.5, 1.5]), 1, epsilon=1000, round_down=True).ids == (1,)
    for scores, said in (
        (pd.Series([1, None], dtype="Int64"), r"scores\[1\]: is missing"),
        (pl.Series([None, 1]), r"scores\[0\]: is missing"),
        (pd.DataFrame({"a": [1, 2]}), "scores: must be one Series, not a DataFrame"),
        (pd.Series([0.5, 1.5]), "float"),
    ):
        with pytest.raises(InputError, match=said):
            dp.noisy_top_k(scores, 1, epsilon=1)


def test_neither_library_is_imported_unasked() -> None:
    code = (
        "import sys, numpy, dpopt as dp; up = dp.Pmf(1, (1,)); dp.add_noise([1], up);"
        "dp.add_noise(numpy.array([1]), up);"
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == "[]", ran.stderr
