"""Exact numbers from outside: what is read and what is refused, and enclosures against Taylor series in integers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.arithmetic import (
    Enclosure,
    ball,
    exact,
    exact_integer,
    exp_enclosure,
    floor_scaled,
    log_enclosure,
    round_scaled,
)
from dpopt.errors import InputError

from .series import exp_between

exponents = st.fractions(min_value=-20, max_value=20, max_denominator=1000)


@pytest.mark.parametrize(("value", "wanted"), [
    (3, 3), (-7, -7), (10**60, 10**60), (0.1, "1/10"), (-0.0, 0), (5e-324, Fraction(5, 10**324)),
    (1.7976931348623157e308, 17976931348623157 * 10**292), (Fraction(2, 4), "1/2"),
    (Decimal("1e-30"), "1/" + "1" + "0" * 30),
    (Decimal("2.50"), "5/2"), ("1e-6", "1/1000000"), ("2/4", "1/2"), ("-2/4", "-1/2"), ("+3", 3), (".5", "1/2"),
    ("1.", 1),
    ("  7 ", 7), ("007", 7), ("0/5", 0), ("1E3", 1000), ("1e+3", 1000), ("-1.25e-2", "-1/80"), ("0.30", "3/10"),
    ("1e4000", 10**4000), ("1e-4000", Fraction(1, 10**4000)),
    (np.float64(0.1), "1/10"), (np.float32(0.5), "1/2"), (np.int64(-3), -3), (np.uint8(200), 200),
    (np.str_("1/3"), "1/3"),
])  # fmt: skip
def test_what_is_read(value: Any, wanted: Any) -> None:
    """Each kind of number is the rational that its shortest text says."""
    found = exact(value, "x")
    assert type(found) is Fraction
    assert found == Fraction(wanted)


@pytest.mark.parametrize("value", [
    "", " ", "\t", "1 2", "1 / 2", "1/-2", "--1", "0x10", "1_000", "1e", "e5", "1e1.5", "1/2/3", ".", "½", "١", "inf",
    "nan",
    "Infinity", "1,5", "1\u00a0", "1\x00", None, [1], (1, 2), {}, b"1", 1j, object, np.array([1, 2]),
    np.datetime64("2020"),
])  # fmt: skip
def test_what_is_no_number(value: Any) -> None:
    """Anything else is an error of one line that names the argument and says what would be right."""
    with pytest.raises(InputError, match=r"^delta: must be a number \(an integer, a fraction such as '1/3'") as caught:
        exact(value, "delta")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_truth_values_are_no_numbers(value: Any) -> None:
    """True is not one."""
    with pytest.raises(InputError, match="truth value"):
        exact(value, "V")


@pytest.mark.parametrize("value", [
    math.inf, -math.inf, math.nan, np.float64("nan"), np.float32("inf"), Decimal("NaN"), Decimal("Infinity"),
    Decimal("-Infinity"),
])  # fmt: skip
def test_what_is_not_finite(value: Any) -> None:
    """Not-a-number and infinity are named as such."""
    with pytest.raises(InputError, match=r"^V: must be finite, not"):
        exact(value, "V")


def test_a_signalling_nan_is_bad_input() -> None:
    """The decimal that raises when it is looked at must not escape as another exception."""
    with pytest.raises(InputError, match=r"^V: "):
        exact(Decimal("sNaN"), "V")


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1e3999"])
def test_decimals_beyond_floats_are_finite(text: str) -> None:
    """A Decimal is read by its digits, as the same text is: no detour through a float, which overflows."""
    assert exact(Decimal(text), "V") == exact(text, "V") == Fraction(text)


@pytest.mark.parametrize(
    "text", ["1e4001", "1e-4001", "1e999999999999", "9" * 4001, "1/" + "9" * 4000, Decimal("1e-5000")]
)
def test_too_many_digits(text: Any) -> None:
    """A number that Python could not print is refused before it is built (1e999999999999 would fill the memory)."""
    with pytest.raises(InputError, match="more than 4000 digits"):
        exact(text, "V")


@pytest.mark.parametrize("text", ["1/0", "0/0", " -1/000 "])
def test_division_by_zero(text: str) -> None:
    """A zero denominator is bad input, not a ZeroDivisionError."""
    with pytest.raises(InputError, match="divides by zero"):
        exact(text, "V")


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_a_float_comes_back(value: float) -> None:
    """Reading a float loses nothing: the nearest float of what was read is the float."""
    assert float(exact(value, "x")) == value


@given(st.fractions())
@settings(derandomize=True, max_examples=100, deadline=None)
def test_a_fractions_own_text_comes_back(value: Fraction) -> None:
    """As problem files and certificates hold it: without blanks, and read as the same number."""
    text = str(value)
    assert exact(text, "x") == value and " " not in text


@pytest.mark.parametrize(
    ("value", "wanted"), [(3, 3), ("3", 3), (3.0, 3), ("6/2", 3), (Decimal("3.00"), 3), (np.int8(3), 3)]
)
def test_integers(value: Any, wanted: int) -> None:
    """Whatever equals an integer is one."""
    found = exact_integer(value, "low")
    assert found == wanted and type(found) is int


def test_integers_refused() -> None:
    """Halves and integers below the least allowed one."""
    with pytest.raises(InputError, match=r"^low: must be an integer, not 2\.5$"):
        exact_integer(2.5, "low")
    with pytest.raises(InputError, match=r"^D: must be at least 0, not -2$"):
        exact_integer(-2, "D", at_least=0)


@pytest.mark.parametrize("value", [-(10**5000), Fraction(10**5000, 3)], ids=["negative", "fraction"])
def test_unprintable_integers_are_named_all_the_same(value: Any) -> None:
    """An integer beyond the digits that Python prints is refused with the argument's name, not by the printing."""
    with pytest.raises(InputError, match=r"^D: "):
        exact_integer(value, "D", at_least=0)


# --- enclosures ------------------------------------------------------------------------------------------------------


@given(exponents, st.integers(1, 400))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_exp_is_the_floor_and_the_ceiling(exponent: Fraction, bits: int) -> None:
    """The canonical enclosure of e^x: floor and ceiling at 2^-bits of what the Taylor series says."""
    low, high = exp_enclosure(exponent, bits)
    if exponent == 0:
        assert low == high == 1
        return
    below, above = exp_between(exponent, bits + 200)
    assert math.floor(below * 2**bits) == math.floor(above * 2**bits), "the series is not fine enough"
    assert low == Fraction(math.floor(below * 2**bits), 2**bits)
    assert high - low == Fraction(1, 2**bits)


@pytest.mark.parametrize(
    "exponent", [Fraction(1, 10**50), Fraction(-1, 10**50), Fraction(700), Fraction(-700), Fraction(699999, 1000)]
)
def test_exp_at_the_ends(exponent: Fraction) -> None:
    """Exponents next to 0 and at the limit are enclosed all the same."""
    low, high = exp_enclosure(exponent, 128)
    below, above = exp_between(exponent, 1400)
    assert low <= below < above <= high
    assert high - low == Fraction(1, 2**128)


@pytest.mark.parametrize("exponent", [Fraction(701), Fraction(-701), Fraction(70001, 100), Fraction(10**30)])
def test_exp_beyond_floats_is_refused(exponent: Fraction) -> None:
    """More privacy loss than a float's exponent is refused in words."""
    with pytest.raises(InputError, match=r"^epsilon: must be at most 700"):
        exp_enclosure(exponent)


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6).filter(lambda x: x > 0),
    st.integers(4, 200),
)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_log_is_the_floor_and_the_ceiling(number: Fraction, bits: int) -> None:
    """The exponentials of both ends lie on either side of the number, one unit apart."""
    low, high = log_enclosure(number, bits)
    if number == 1:
        assert low == high == 0
        return
    assert high - low == Fraction(1, 2**bits) and (low * 2**bits).denominator == 1
    assert exp_between(low, bits + 100)[0] <= number <= exp_between(high, bits + 100)[1]
    assert exp_between(low, bits + 100)[1] < number or exp_between(high, bits + 100)[0] > number


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=999), st.integers(-6, 90))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_floors_and_rounding_of_rationals(number: Fraction, bits: int) -> None:
    """Down for the floor, also below 0 and for units above 1; the nearest multiple for rounding."""
    scaled = number * Fraction(2) ** bits
    if scaled.denominator != 1:
        assert floor_scaled(lambda: ball(number), bits) == math.floor(scaled)
    if (scaled + Fraction(1, 2)).denominator != 1:
        assert round_scaled(lambda: ball(number), bits) == math.floor(scaled + Fraction(1, 2))


@pytest.mark.parametrize(("number", "wanted"), [("1/2", 1), ("-1/2", 0), ("3/2", 2), ("5/2", 3), ("-3/2", -1)])
def test_ties_round_upwards(number: str, wanted: int) -> None:
    """A tie goes up, whatever its sign."""
    assert round_scaled(lambda: ball(Fraction(number)), 0) == wanted


def test_a_ball_that_never_decides_is_an_error() -> None:
    """A ball around a multiple of the unit is given up at some precision, not refined for ever."""
    with pytest.raises(ArithmeticError, match="separated"):
        floor_scaled(lambda: arb(0, 1), 4)


def test_enclosures_print_and_measure() -> None:
    """The width is exact, the float is the middle."""
    half = Enclosure(Fraction(1, 4), Fraction(3, 4))
    assert half.width == Fraction(1, 2) and float(half) == 0.5
    assert str(half) == "0.25..0.75"  # never the middle, which nobody has proved
    third = Fraction(1, 3)
    assert str(Enclosure(third, third + Fraction(1, 10**6))) == "0.33333"  # the digits that both ends share
    assert str(Enclosure(third, third)) == "0.333333333333"
    assert str(Enclosure(Fraction(0), Fraction(1))) == "0..1"
    assert repr(Enclosure(Fraction(1, 10**5000), Fraction(1, 3))) == "Enclosure(<1e-5000..0.334>)"


@pytest.mark.parametrize(
    "wrong", [lambda e: e + e, lambda e: 2 * e, lambda e: e - 1, lambda e: e < 1, lambda e: e >= e]
)
def test_an_enclosure_has_no_arithmetic_and_no_order(wrong) -> None:
    """A tuple would join, repeat or compare lower ends first; each is refused with the way out."""
    with pytest.raises(TypeError, match=r"use \.lower or \.upper"):
        wrong(Enclosure(Fraction(1, 3), Fraction(1, 2)))
