"""Exact numbers: reading them, enclosing e^x and ln x, rounding with a stated direction.

A number that enters dpopt is exact: an integer, a fraction, a decimal, or a string of one of these. A float is
read as the shortest decimal that prints it, so that 0.1 is one tenth. What is irrational is enclosed between
two rationals, and every rounding here says in its name which way it goes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import NamedTuple, NoReturn

from flint import arb, fmpq, fmpz

from dpopt.balls import decided
from dpopt.errors import InputError
from dpopt.text import brief, decimal_text

__all__ = [
    "MAX_EXPONENT",
    "Enclosure",
    "Number",
    "as_enclosure",
    "ball",
    "dyadic",
    "enclosed",
    "exact",
    "exact_integer",
    "exact_nonnegative",
    "exact_positive",
    "exp_enclosure",
    "floor_scaled",
    "is_at_most_exp",
    "log_enclosure",
    "read_bits",
    "read_epsilon",
    "round_scaled",
    "sign",
]

Number = int | float | str | Fraction | Decimal

_LITERAL = re.compile(r"\s*([+-]?)(\d+)/(\d+)\s*|\s*[+-]?(\d+\.?\d*|\.\d+)([eE]([+-]?\d+))?\s*", re.ASCII)
_MAX_DIGITS = 4000  # Python refuses to print integers beyond 4,300 digits; a longer input is a slip, not a number
_MAX_BITS = 13_288  # of as many digits
_MAX_LENGTH = 19  # of an exponent as it is typed, zeros in front included
_MOST_PRECISION = 1 << 16  # bits at which a number is close enough, or is not enclosed at all
_MOST_BITS_APART = 1 << 20  # at which two numbers that differ are told apart, or nothing is decided
_MOST_BITS_OF_FLOOR = 1 << 22  # at which a number is told from a multiple of its rounding unit
MAX_EXPONENT = 700  # e^700 is still a float, so a solver can be told; more privacy loss than that is none at all


class Enclosure(NamedTuple):
    """Two rationals proved to lie on either side of a real number: ``lower <= x <= upper``.

    It unpacks into its ends. It has no arithmetic and no order: compute and compare with the end that keeps your
    statement true.

    Examples
    --------
    >>> low, high = Enclosure(Fraction(1, 3), Fraction(1, 2))
    >>> low, high
    (Fraction(1, 3), Fraction(1, 2))
    """

    lower: Fraction
    upper: Fraction

    def _refused(self, other: object) -> NoReturn:
        raise TypeError("an Enclosure is two numbers: use .lower or .upper, whichever keeps your statement true")

    # what a tuple would do instead, silently: join, repeat, compare the lower ends first
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused  # type: ignore[misc]
    __lt__ = __le__ = __gt__ = __ge__ = _refused  # type: ignore[misc]

    @property
    def width(self) -> Fraction:
        """``upper - lower``."""
        return self.upper - self.lower

    def __float__(self) -> float:
        return float((self.lower + self.upper) / 2)

    def __format__(self, spec: str) -> str:
        """As a float is formatted, where both ends give the same text; else both ends, joined by ``..``.

        >>> enclosure = Enclosure(Fraction(314159, 10**5), Fraction(314160, 10**5))
        >>> f"{enclosure:.3f} {enclosure:.6f}"
        '3.142 3.141590..3.141600'
        """
        if not spec:
            return str(self)
        low, high = (_formatted(end, spec) for end in self)
        return low if low == high else f"{low.rstrip()}..{high.lstrip()}"

    def __round__(self, digits: int | None = None) -> Fraction:
        """The number rounded, exactly, where both ends round alike; the ends themselves say what is known otherwise.

        >>> round(Enclosure(Fraction(314159, 10**5), Fraction(314160, 10**5)), 3)
        Fraction(1571, 500)
        """
        low, high = (Fraction(round(end, digits) if digits is not None else round(end)) for end in self)
        if low != high:
            raise ValueError(
                f"{self} is not known to {digits or 0} decimals: round .lower or .upper, whichever keeps your "
                "statement true"
            )
        return low

    def __repr__(self) -> str:
        try:
            return f"Enclosure(lower={self.lower!r}, upper={self.upper!r})"
        except ValueError:  # Python does not print integers beyond 4,300 digits
            return f"Enclosure(<{self}>)"

    def __str__(self) -> str:
        """The digits that both ends share, at most twelve; both ends where they share none."""
        for digits in range(12, 0, -1):
            low, high = (decimal_text(end, digits, up=None) for end in (self.lower, self.upper))
            if low == high:
                return low
        return f"{decimal_text(self.lower, 3, up=False)}..{decimal_text(self.upper, 3, up=True)}"


def _formatted(number: Fraction, spec: str) -> str:
    """A rational formatted as a decimal: correctly rounded from all of its digits, where a float has lost some."""
    if spec[-1] in "eEfFgG%" and "." not in spec:
        spec = f"{spec[:-1]}.6{spec[-1]}"  # as a float does
    digits = 60 + sum(int(part) for part in re.findall(r"\d{1,4}", spec))
    return format(Decimal(decimal_text(number, digits, up=None)), spec)


def exact(value: object, argument: str) -> Fraction:
    """Read `value` as the exact rational number it stands for.

    Parameters
    ----------
    value : int, Fraction, Decimal, float or str
        A string is a decimal (``"1e-6"``) or a fraction (``"1/3"``). A float is its shortest decimal.
    argument : str
        The name used in the error message.

    Raises
    ------
    InputError
        `value` is of another type, not finite, or not a number.

    Examples
    --------
    >>> exact(0.1, "delta"), exact("1e-6", "delta"), exact("2/4", "delta")
    (Fraction(1, 10), Fraction(1, 1000000), Fraction(1, 2))
    """
    wanted = "must be a number (an integer, a fraction such as '1/3' or a decimal such as '1e-6')"
    if isinstance(value, str):
        return _from_text(value, argument, wanted)
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        raise InputError(argument, f"{wanted}, not the truth value {value!r}")
    if isinstance(value, Rational):
        return _printable(Fraction(int(value.numerator), int(value.denominator)), argument)
    if isinstance(value, Decimal | Real):
        finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
        if not finite:
            raise InputError(argument, f"must be finite, not {brief(value)}")
        text = str(value) if isinstance(value, Decimal) else repr(float(value))
        return _from_text(text, argument, wanted)
    raise InputError(argument, f"{wanted}, not {brief(value)}")


def _from_text(text: str, argument: str, wanted: str) -> Fraction:
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise InputError(argument, f"{wanted}, not {brief(text)}")
    if len(text) > _MAX_DIGITS or len(match[6] or "") > _MAX_LENGTH or abs(int(match[6] or 0)) > _MAX_DIGITS:
        raise InputError(argument, f"has more than {_MAX_DIGITS} digits: {brief(text)}")
    if match[3] is not None and int(match[3]) == 0:
        raise InputError(argument, f"{text.strip()!r} divides by zero")
    return _printable(Fraction(text.strip()), argument)


def _printable(number: Fraction, argument: str) -> Fraction:
    """The number, if Python prints it: it will stand in messages, problem files and certificates."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MAX_BITS:
        raise InputError(argument, f"has more than {_MAX_DIGITS} digits: {brief(number)}")
    return number


def exact_integer(value: object, argument: str, *, at_least: int | None = None) -> int:
    """Read `value` as an integer: ``3``, ``"3"`` and ``3.0`` are three, ``2.5`` is an error.

    Examples
    --------
    >>> exact_integer("3", "low")
    3
    """
    number = exact(value, argument)
    if number.denominator != 1:
        raise InputError(argument, f"must be an integer, not {brief(value)}")
    if at_least is not None and number < at_least:
        raise InputError(argument, f"must be at least {at_least}, not {brief(number)}")
    return number.numerator


def exact_nonnegative(value: object, argument: str) -> Fraction:
    """Read `value` as an exact number that is at least 0.

    Examples
    --------
    >>> exact_nonnegative("0.1", "epsilon")
    Fraction(1, 10)
    """
    number = exact(value, argument)
    if number < 0:
        raise InputError(argument, f"must be at least 0, not {brief(number)}")
    return number


def read_epsilon(value: object, argument: str = "epsilon") -> Fraction:
    """Read `value` as an epsilon: exact, at least 0, and small enough for e^epsilon to be written down.

    Examples
    --------
    >>> read_epsilon("1/3")
    Fraction(1, 3)
    """
    number = exact_nonnegative(value, argument)
    if number > MAX_EXPONENT:
        raise InputError(argument, f"must be at most {MAX_EXPONENT}, not {brief(number)}")
    return number


def exact_positive(value: object, argument: str) -> Fraction:
    """Read `value` as an exact number above 0.

    Examples
    --------
    >>> exact_positive("1/3", "scale")
    Fraction(1, 3)
    """
    number = exact(value, argument)
    if number <= 0:
        raise InputError(argument, f"must be positive, not {brief(number)}")
    return number


def read_bits(value: object, argument: str = "bits") -> int:
    """Read a precision in bits.

    Examples
    --------
    >>> read_bits(128)
    128
    """
    bits = exact_integer(value, argument, at_least=1)
    if bits > _MOST_PRECISION:
        raise InputError(argument, f"must be at most {_MOST_PRECISION}, not {brief(bits)}")
    return bits


def ball(number: Fraction | int) -> arb:
    """`number` as a ball at the working precision: within `dpopt.balls.at_precision`."""
    if number.denominator == 1:
        return arb(fmpz(number.numerator))
    return arb(fmpq(number.numerator, number.denominator))


def floor_scaled(compute: Callable[[], arb], bits: int) -> int:
    """``floor(x * 2**bits)`` of the real number that `compute` encloses, refined until it decides.

    `compute` is called at growing precision. It must not enclose a multiple of ``2**-bits`` at every precision:
    callers exclude the rational special cases first.
    """
    floor = decided(
        lambda: (compute() * arb(2) ** bits).floor().unique_fmpz(),
        max(bits, 0) + 64,
        most=_MOST_BITS_OF_FLOOR,
        undecided="a ball could not be separated from a multiple of its rounding unit",
    )
    return int(floor)


def round_scaled(compute: Callable[[], arb], bits: int) -> int:
    """``floor(x * 2**bits + 1/2)``: the nearest integer multiple of ``2**-bits``, ties upwards."""
    return floor_scaled(lambda: compute() + arb(2) ** (-bits - 1), bits)


def exp_enclosure(exponent: Fraction, bits: int = 128) -> Enclosure:
    """The canonical enclosure of ``e**exponent``: its floor and ceiling at ``2**-bits``.

    Since the exponent of a privacy parameter is not negative, e^x >= 1 and the relative width is at most
    ``2**-bits``. For ``exponent = 0`` both ends are 1; for any other rational e^x is irrational (Lindemann), so
    the floor is always decided.

    Examples
    --------
    >>> low, high = exp_enclosure(Fraction(1), bits=20)
    >>> low, high - low
    (Fraction(2850325, 1048576), Fraction(1, 1048576))
    """
    if abs(exponent) > MAX_EXPONENT:
        raise InputError("epsilon", f"must be at most {MAX_EXPONENT}, not {brief(exponent)}")
    if exponent == 0:
        return Enclosure(Fraction(1), Fraction(1))
    low = floor_scaled(lambda: ball(exponent).exp(), bits)
    return Enclosure(Fraction(low, 1 << bits), Fraction(low + 1, 1 << bits))


def log_enclosure(number: Fraction, bits: int = 64) -> Enclosure:
    """The canonical enclosure of ``ln(number)`` for a positive rational: floor and ceiling at ``2**-bits``.

    Examples
    --------
    >>> log_enclosure(Fraction(1))
    Enclosure(lower=Fraction(0, 1), upper=Fraction(0, 1))
    >>> round(float(log_enclosure(Fraction(2))), 12)
    0.69314718056
    """
    if number == 1:
        return Enclosure(Fraction(0), Fraction(0))
    low = floor_scaled(lambda: ball(number).log(), bits)
    return Enclosure(Fraction(low, 1 << bits), Fraction(low + 1, 1 << bits))


def as_enclosure(number: arb) -> Enclosure:
    """The two ends of a ball, as rationals."""
    return Enclosure(dyadic(number.lower()), dyadic(number.upper()))


def dyadic(number: arb) -> Fraction:
    """A ball of radius 0 as the number that it is."""
    mantissa, exponent = (int(part) for part in number.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def enclosed(compute: Callable[[], arb], bits: int = 64) -> Enclosure:
    """The two ends of the number that `compute` encloses, at growing precision until `bits` of it, or so, are right."""

    def ends() -> Enclosure | None:
        found = compute()
        return as_enclosure(found) if found.is_finite() and found.rel_accuracy_bits() >= bits - 4 else None

    return decided(ends, 2 * bits, most=_MOST_PRECISION, undecided="a number could not be enclosed")


def sign(compute: Callable[[], arb]) -> int:
    """1 or -1, the sign of a number that is not 0 and that `compute` encloses, at growing precision until it shows.

    Examples
    --------
    >>> sign(lambda: ball(Fraction(1)).exp() - ball(Fraction("2.718281828459045235360287471352662498")))
    -1
    """

    def shown() -> int | None:
        found = compute()
        return 1 if found > 0 else -1 if found < 0 else None

    return decided(shown, 128, most=_MOST_BITS_APART, undecided="two numbers could not be told apart")


def is_at_most_exp(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether ``ratio <= e**epsilon``, decided exactly: e^epsilon is irrational unless epsilon is 0."""
    low, high = exp_enclosure(epsilon)
    if ratio <= low or ratio > high or epsilon == 0:
        return ratio <= low
    return sign(lambda: ball(epsilon).exp() - ball(ratio)) > 0
