"""Scores as integers: every type, rounding down exactly, and what is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt.errors import InputError
from dpopt.release.scores import read_scores

UNITS = [1, 2, 10, 1000, 3, 10**9 + 7, 2**40, 10**17]


def by_definition(values: list[Any], units: int) -> list[int]:
    plain = [int(value) if isinstance(value, np.integer) else value for value in values]
    return [math.floor(Fraction(value) * units) for value in plain]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integer_arrays_of_every_type(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, 0, 1, 7, limits.max], dtype=dtype)
    for units in UNITS:
        found = read_scores(values, units)
        assert [int(v) for v in found] == [int(v) * units for v in values]
        fits = max(abs(int(limits.min)), int(limits.max)) * units < 2**62
        assert found.dtype == (np.int64 if fits else object)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, -3],
        [Fraction(1, 3), Fraction(-1, 3), 4],
        [Decimal("0.15"), Decimal("-0.15")],
        ["0.15", "-1/7", "1e3"],
        [2**70, -(2**70), 1],
        [np.int32(4), np.uint8(200), 5],
        (9, 8),
        range(4),
    ],
)
def test_exact_numbers(values: Any) -> None:
    for units in UNITS:
        assert read_scores(values, units).tolist() == by_definition(list(values), units)
        as_objects = np.array([*values], dtype=object)
        assert read_scores(as_objects, units).tolist() == by_definition(list(values), units)


def test_where_64_bits_end() -> None:
    """Half of the range is left to the noise."""
    assert read_scores([2**62 - 1, 1 - 2**62], 1).dtype == np.int64
    for beyond in (2**62, -(2**62), 2**63, 2**64, -(2**63)):
        found = read_scores([beyond, 3], 1)
        assert found.dtype == object
        assert found.tolist() == [beyond, 3]


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.integers(-(10**6), 10**6).map(lambda n: n / 10)
        | st.integers(-1000, 1000).map(float)
        | st.integers(-(10**4), 10**4).flatmap(lambda n: st.sampled_from([math.nextafter(n / 10, 9e9), n / 1000])),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(UNITS),
)
def test_floats_are_the_binary_numbers_they_are(values: list[float], units: int) -> None:
    for given_as in (values, np.array(values), [*values, Fraction(0)]):
        found = read_scores(given_as, units, round_down=True).tolist()
        assert found[: len(values)] == by_definition(values, units)


def test_floats_next_to_a_multiple_of_the_resolution() -> None:
    """One bit below, on, and above k/10: the product rounds to an integer, the floor must not."""
    tenths = [k / 10 for k in range(-3000, 3000)]
    values = [v for t in tenths for v in (math.nextafter(t, -9e9), t, math.nextafter(t, 9e9))]
    assert read_scores(np.array(values), 10, round_down=True).tolist() == by_definition(values, 10)
    assert sum(math.floor(v * 10) != w for v, w in zip(values, by_definition(values, 10), strict=True)) > 1000


@pytest.mark.parametrize("value", [5e-324, -5e-324, 2.0**-1000, -(2.0**-950), 1e308, -1e308, 2.0**53, 2.0**62, -0.0])
def test_floats_at_the_ends_of_their_range(value: float) -> None:
    for units in UNITS:
        assert read_scores([value, 0.5], units, round_down=True).tolist() == by_definition([value, 0.5], units)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_other_floats(dtype: Any) -> None:
    values = np.array([0.1, -0.1, 3.0, 0.7], dtype=dtype)
    exactly = [Fraction(*map(int, v.as_integer_ratio())) for v in values]
    assert read_scores(values, 10, round_down=True).tolist() == by_definition(exactly, 10)
    assert read_scores([values[0], 1], 10, round_down=True).tolist() == [*by_definition(exactly[:1], 10), 10]


class Column:
    """What data frames offer."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([4, 5])


def test_a_column_of_a_data_frame() -> None:
    assert read_scores(Column(), 2).tolist() == [8, 10]
    assert read_scores(np.ma.masked_array([4, 5], mask=[False, False]), 2).tolist() == [8, 10]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "scores: must hold at least one score"),
        (np.array([], dtype=int), "scores: must hold at least one score"),
        ([True, 2], r"scores\[0\]: must be a number .*truth value"),
        (np.array([True, False]), "scores: must be numbers, not an array of bool"),
        (np.array([1j]), "scores: must be numbers, not an array of complex128"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "scores: must be numbers, not an array of datetime64"),
        (np.ones((2, 2), dtype=int), r"scores: must be one-dimensional, not of shape \(2, 2\)"),
        (np.array(5), r"scores: must be one-dimensional, not of shape \(\)"),
        ([[1, 2], [3, 4]], r"scores: must be one-dimensional, but scores\[0\] is a list"),
        ([1, None], r"scores\[1\]: must be a number"),
        ([1, "x"], r"scores\[1\]: must be a number"),
        ([1, "nan"], r"scores\[1\]: must be a number"),
        ([Decimal("NaN")], r"scores\[0\]: must be finite"),
        ([Decimal("Infinity")], r"scores\[0\]: must be finite"),
        ("12", "scores: must be a sequence or an array of numbers, not str"),
        ({1: 2}, "not dict"),
        ({1, 2}, "not set"),
        ({1: 2}.keys(), "not dict_keys"),
        (bytearray(b"12"), "not bytearray"),
        (7, "not int"),
        (None, "not NoneType"),
        (np.ma.masked_array([1, 2], mask=[False, True]), "scores: must not have masked entries"),
    ],
)
def test_what_is_refused(scores: Any, message: str) -> None:
    for round_down in (False, True):
        with pytest.raises(InputError, match=message):
            read_scores(scores, 10, round_down=round_down)


@pytest.mark.parametrize(
    "scores", [[0.5], np.array([0.5]), [1, 0.5], [np.float32(0.5), 2], np.array([1, 0.5], dtype=object)]
)
def test_floats_have_to_be_allowed(scores: Any) -> None:
    with pytest.raises(InputError, match=r"not floats; pass round_down=True"):
        read_scores(scores, 10)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_floats_must_be_finite(wrong: float) -> None:
    for scores in ([1.0, wrong], np.array([1.0, wrong]), [1, wrong], np.array([1, wrong], dtype=np.float32)):
        with pytest.raises(InputError, match=r"scores\[1\]: must be finite"):
            read_scores(scores, 10, round_down=True)


def test_rounding_down_is_true_or_false() -> None:
    assert read_scores([0.55], 10, round_down=np.True_).tolist() == [5]
    for wrong in ("false", "", 2, 1, 0, None, [True]):
        with pytest.raises(InputError, match="round_down: must be True or False, not"):
            read_scores([1, 2], 10, round_down=wrong)  # type: ignore[arg-type]
