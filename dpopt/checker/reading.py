"""From JSON to exact data: text, numbers, objects and lists, and functions that are written out.

Every exact number is a string: ``"3"``, ``"3/8"``, ``"0.5"``. A JSON number is refused (a float would already be
rounded), and so are unknown keys, duplicate keys and sizes that no check could finish. A reader is told *where* in
the JSON its value stands, and every error begins with that place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor, log10
from typing import Any, NoReturn

from flint import fmpz

from dpopt.arithmetic import exact, exp_enclosure
from dpopt.checker.effort import afford, common_work
from dpopt.errors import CertificateError, InputError
from dpopt.lattice_function import LatticeFunction

__all__ = [
    "MAX_DEGREE",
    "MAX_INDEX",
    "MAX_POINTS",
    "brief",
    "parse_json",
    "read_epsilon",
    "read_function",
    "read_index",
    "read_integer",
    "read_integers",
    "read_list",
    "read_long_rational",
    "read_object",
    "read_rational",
    "read_rationals",
    "read_row",
    "read_sides",
    "read_type",
    "reject",
    "require_common",
    "text",
]

MAX_POINTS = 5_000_000  # lattice points of anything stored point by point
MAX_INDEX = 10**15  # of a lattice point, and of a sensitivity in steps
MAX_DEGREE = 64  # of a polynomial cost
_MAX_LENGTH = 50_000_000  # of a list without a limit of its own
_MAX_DIGITS = 100_000  # of one number
_PRINTABLE_DIGITS = 640  # Python's own conversion may be limited to this many, and takes their square; flint does not
_PRINTABLE_BITS = 2000
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_QUOTIENT = re.compile(r"(0|-?[1-9][0-9]*)/([1-9][0-9]*)")


# --- text --------------------------------------------------------------------------------------------------------


def reject(where: str, problem: str) -> NoReturn:
    """The error that every reader raises."""
    raise CertificateError(f"{where}: {problem if len(problem) <= 200 else problem[:197] + '...'}")


def brief(value: object) -> str:
    """`value` in at most sixty characters."""
    if isinstance(value, Fraction):
        value = _short(value)
    shown = value if isinstance(value, str) else repr(value) if not isinstance(value, int) else text(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _short(number: Fraction) -> str:
    """Six digits of it.

    >>> _short(Fraction(2, 3)), _short(Fraction(-(10**5000)))
    ('0.666667', '-1.00000e+5000')
    """
    above, below = abs(number.numerator), number.denominator
    if max(above.bit_length(), below.bit_length()) < _PRINTABLE_BITS:
        return f"{Decimal(number.numerator) / Decimal(below):.6g}"
    size = log10(above) - log10(below)  # of a long number to a decimal would take its square
    exponent = floor(size + 1e-9)
    return f"{'-' if number < 0 else ''}{10 ** (size - exponent):.5f}e{exponent:+d}"


def text(number: Fraction | int) -> str:
    """The canonical text of a rational of any length: lowest terms, no blanks."""
    if isinstance(number, int):
        return str(number) if number.bit_length() < _PRINTABLE_BITS else str(fmpz(number))
    return text(number.numerator) if number.denominator == 1 else f"{text(number.numerator)}/{text(number.denominator)}"


def parse_json(source: str) -> object:
    """Read JSON text strictly: no number outside a string, no key twice."""

    def number(literal: str) -> NoReturn:
        raise CertificateError(f"the number {brief(literal)} must be written as a string")

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(key for key, _ in pairs)
            raise CertificateError(f"the key {brief(next(k for k, n in times.items() if n > 1))} occurs twice")
        return found

    try:
        return json.loads(source, object_pairs_hook=record, parse_int=number, parse_float=number, parse_constant=number)
    except json.JSONDecodeError as error:
        raise CertificateError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise CertificateError("not a certificate: nested too deeply") from None


# --- numbers, objects and lists ----------------------------------------------------------------------------------


def _digits(literal: str) -> int:
    """The integer of a literal of any length."""
    return int(literal) if len(literal) <= _PRINTABLE_DIGITS else int(fmpz(literal))


def read_integer(value: object, where: str, low: int | None = None, high: int | None = None) -> int:
    """An integer in ``low..high``."""
    if not isinstance(value, str) or _INTEGER.fullmatch(value) is None:
        reject(where, f"must be an integer written as a string, not {brief(value)}")
    if len(value) > _MAX_DIGITS:
        reject(where, f"has more than {_MAX_DIGITS} digits")
    number = _digits(value)
    if low is not None and number < low:
        reject(where, f"must be at least {low}, not {brief(number)}")
    if high is not None and number > high:
        reject(where, f"must be at most {high}, not {brief(number)}")
    return number


def read_rational(value: object, where: str) -> Fraction:
    """A rational number, as `exact` reads it."""
    if not isinstance(value, str):
        reject(where, f"must be a number written as a string, not {brief(value)}")
    return exact(value, where)


def read_long_rational(value: object, where: str) -> Fraction:
    """A rational number that may have more digits than `exact` reads, if it is written as a quotient."""
    quotient = _QUOTIENT.fullmatch(value) if isinstance(value, str) and len(value) <= _MAX_DIGITS else None
    return Fraction(_digits(quotient[1]), _digits(quotient[2])) if quotient else read_rational(value, where)


def read_epsilon(value: object, where: str) -> Fraction:
    """A privacy parameter whose exponential is within reach."""
    epsilon = read_rational(value, where)
    if epsilon < 0:
        reject(where, f"must be at least 0, not {brief(epsilon)}")
    try:
        exp_enclosure(epsilon, 1)
    except InputError as error:
        reject(where, error.problem)
    return epsilon


def read_index(value: object, where: str) -> int:
    """A lattice index."""
    return read_integer(value, where, -MAX_INDEX, MAX_INDEX)


def read_object(
    value: object, where: str, required: Sequence[str], optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """An object with all the `required` keys and no others but `optional` ones."""
    if not isinstance(value, Mapping):
        reject(where, f"must be an object, not {brief(value)}")
    for key in value:
        if key not in required and key not in optional:
            reject(where, f"has the unknown key {brief(key)}")
    for key in required:
        if key not in value:
            reject(where, f"lacks the key {key!r}")
    return value


def read_type(data: object, where: str) -> str:
    """The ``"type"`` of an object."""
    if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
        reject(where, "must be an object with a 'type'")
    kind: str = data["type"]
    return kind


def read_list(value: object, where: str, most: int = _MAX_LENGTH) -> Sequence[Any]:
    """A list of at most so many entries."""
    if not isinstance(value, list | tuple):
        reject(where, f"must be a list, not {brief(value)}")
    if len(value) > most:
        reject(where, f"has more than {most} entries")
    return value


def read_integers(
    value: object, where: str, low: int | None = None, high: int | None = None, most: int = _MAX_LENGTH
) -> list[int]:
    """A list of integers, each in ``low..high``."""
    return [read_integer(v, f"{where}[{i}]", low, high) for i, v in enumerate(read_list(value, where, most))]


def read_rationals(value: object, where: str, most: int) -> tuple[Fraction, ...]:
    """A list of rational numbers."""
    found = tuple(read_rational(v, f"{where}[{i}]") for i, v in enumerate(read_list(value, where, most)))
    require_common(found, where)
    return found


def require_common(numbers: Iterable[Fraction], where: str) -> None:
    """Refuse numbers whose common denominator takes too much."""
    try:
        afford(common_work(v.denominator for v in numbers), "takes the common denominator of its numbers")
    except InputError as error:
        raise error.inside(where) from None


def read_sides(data: Mapping[str, Any], where: str) -> tuple[Fraction | None, Fraction | None]:
    """The bounds ``at_least`` and ``at_most``; ``equals`` is both."""
    equals, low, high = (
        None if data.get(side) is None else read_rational(data[side], f"{where}.{side}")
        for side in ("equals", "at_least", "at_most")
    )
    if equals is not None and (low is not None or high is not None):
        reject(where, "has equals beside at_least or at_most")
    if equals is not None:
        return equals, equals
    if low is None and high is None:
        reject(where, "needs equals, at_least or at_most")
    if low is not None and high is not None and low > high:
        reject(where, f"has at_least {brief(low)} above at_most {brief(high)}")
    return low, high


# --- functions on (row, index) -----------------------------------------------------------------------------------


def read_row(value: object, where: str) -> int:
    """The row of a law; a problem has one law, which is row 0."""
    if value != "0":
        reject(where, f"must be '0', the only row that a problem has, not {brief(value)}")
    return 0


def read_function(source: object, where: str) -> LatticeFunction:
    """A function on (row, lattice index) that is written out: for each row a table and two polynomials, else 0."""
    found: dict[int, LatticeFunction] = {}
    for i, part in enumerate(read_list(source, where)):
        at = f"{where}[{i}]"
        data = read_object(part, at, ("row", "start", "table", "left", "right"))
        row = read_row(data["row"], f"{at}.row")
        if row in found:
            reject(f"{at}.row", f"is row {row} for the second time")
        start = read_index(data["start"], f"{at}.start")
        left, right = (read_rationals(data[side], f"{at}.{side}", MAX_DEGREE + 1) for side in ("left", "right"))
        found[row] = LatticeFunction(start, read_rationals(data["table"], f"{at}.table", MAX_POINTS), left, right)
    return found.get(0, LatticeFunction())
