"""From JSON to exact data: text, numbers, objects and lists, then points and functions of a lattice.

Every exact number is a string: ``"3"``, ``"3/8"``, ``"0.5"``. A JSON number is refused (a float would already be
rounded), and so are unknown keys, duplicate keys and sizes that no check could finish. A reader is told *where* in
the JSON its value stands, and every error begins with that place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any, NoReturn

from dpopt.arithmetic import exact, exp_enclosure
from dpopt.errors import CertificateError, InputError
from dpopt.lattice_function import LatticeFunction

__all__ = [
    "MAX_POINTS",
    "Lattice",
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
    "read_type",
    "reject",
    "text",
]

MAX_POINTS = 5_000_000  # lattice points of anything stored point by point
_MAX_INDEX = 10**15  # of a lattice point, and of a sensitivity in steps
_MAX_DEGREE = 64  # of a polynomial cost
_MAX_LENGTH = 50_000_000  # of a list without a limit of its own
_MAX_DIGITS = 100_000  # of one number
_PRINTABLE_DIGITS = 640  # Python's own conversion may be limited to this many; beyond, `Decimal` converts exactly
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_QUOTIENT = re.compile(r"(0|-?[1-9][0-9]*)/([1-9][0-9]*)")


# --- text --------------------------------------------------------------------------------------------------------


def reject(where: str, problem: str) -> NoReturn:
    """The error that every reader raises."""
    raise CertificateError(f"{where}: {problem if len(problem) <= 200 else problem[:197] + '...'}")


def brief(value: object) -> str:
    """`value` in at most sixty characters."""
    if isinstance(value, Fraction):
        value = f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    shown = value if isinstance(value, str) else repr(value) if not isinstance(value, int) else text(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def text(number: Fraction | int) -> str:
    """The canonical text of a rational of any length: lowest terms, no blanks."""
    if isinstance(number, int):
        return str(number) if number.bit_length() < 2000 else str(Decimal(number))
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
    return int(literal) if len(literal) <= _PRINTABLE_DIGITS else int(Decimal(literal))


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
    return read_integer(value, where, -_MAX_INDEX, _MAX_INDEX)


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
    return tuple(read_rational(v, f"{where}[{i}]") for i, v in enumerate(read_list(value, where, most)))


# --- points and functions of a lattice ---------------------------------------------------------------------------


def _span(points: Collection[int], where: str) -> tuple[int, int]:
    """The least and the greatest of the points, which a table will hold one by one."""
    low, high = min(points), max(points)
    if high - low >= MAX_POINTS:
        reject(where, f"spans more than {MAX_POINTS} points")
    return low, high


def read_function(source: object, where: str) -> LatticeFunction:
    """A function that is written out in lattice indices: a table and two polynomials."""
    data = read_object(source, where, ("start", "table", "left", "right"))
    start = read_index(data["start"], f"{where}.start")
    left, right = (read_rationals(data[side], f"{where}.{side}", _MAX_DEGREE + 1) for side in ("left", "right"))
    return LatticeFunction(start, read_rationals(data["table"], f"{where}.table", MAX_POINTS), left, right)


@dataclass(frozen=True)
class Lattice:
    """The support: index k is the point ``k * step``, within `window` if there is one.

    A problem speaks of points and distances in data units. What the methods read of it comes out in indices.
    """

    step: Fraction
    window: tuple[int, int] | None

    @classmethod
    def of(cls, data: object, where: str) -> Lattice:
        """The lattice of a support; that of the integers for None."""
        if data is None:
            return cls(Fraction(1), None)
        kind = read_type(data, where)
        if kind not in ("integers", "lattice"):
            reject(f"{where}.type", f"must be 'integers' or 'lattice', not {brief(kind)}")
        record = read_object(data, where, ("type", "step") if kind == "lattice" else ("type",), ("low", "high"))
        step = read_rational(record["step"], f"{where}.step") if kind == "lattice" else Fraction(1)
        if step <= 0:
            reject(f"{where}.step", f"must be positive, not {brief(step)}")
        ends = [record.get(end) for end in ("low", "high")]
        if ends == [None, None]:
            return cls(step, None)
        low, high = (
            read_rational(end, f"{where}.{name}") / step for end, name in zip(ends, ("low", "high"), strict=True)
        )
        if low.denominator != 1 or high.denominator != 1:
            reject(where, f"low and high must be multiples of the step {brief(step)}")
        if max(abs(low), abs(high)) > _MAX_INDEX:
            reject(where, f"has an end more than {_MAX_INDEX} steps from 0")
        if not low <= high < low + MAX_POINTS:
            reject(where, f"must have from 1 to {MAX_POINTS} points, not low {brief(low)} and high {brief(high)}")
        return cls(step, (low.numerator, high.numerator))

    def needs_window(self, kind: str, where: str) -> None:
        """Refuse all lattice points for what has no answer there."""
        if self.window is None:
            reject(where, f"{kind} needs a finite support")

    def index(self, value: object, where: str) -> int:
        """The index of a point."""
        index = read_rational(value, where) / self.step
        if index.denominator != 1:
            reject(where, f"must be a multiple of the step {brief(self.step)}, not {brief(value)}")
        if abs(index) > _MAX_INDEX:
            reject(where, f"lies more than {_MAX_INDEX} steps from 0")
        return index.numerator

    def points(self, values: object, where: str) -> frozenset[int]:
        """The indices of a list of points."""
        values = read_list(values, where, MAX_POINTS)
        return frozenset(self.index(v, f"{where}[{i}]") for i, v in enumerate(values))

    def shift(self, data: Mapping[str, Any], where: str) -> int:
        """The sensitivity in whole lattice steps."""
        shift = floor(read_rational(data.get("sensitivity", "1"), f"{where}.sensitivity") / self.step)
        if shift < 1:
            step = brief(self.step)
            reject(f"{where}.sensitivity", f"must be at least the step {step}: no two outputs would be compared")
        if shift > _MAX_INDEX:
            reject(f"{where}.sensitivity", f"makes more than {_MAX_INDEX} steps")
        return shift

    def function(self, form: object, where: str) -> LatticeFunction:
        """A cost form such as ``"absolute"`` or ``{"power": "3"}`` as a function of the lattice index."""
        step = self.step
        named = {
            "absolute": LatticeFunction(0, (), (Fraction(0), -step), (Fraction(0), step)),
            "square": LatticeFunction.polynomial((0, 0, step**2)),
            "error": LatticeFunction(0, (Fraction(0),), (Fraction(1),), (Fraction(1),)),
            "value": LatticeFunction.polynomial((Fraction(0), step)),
        }
        if isinstance(form, str):
            if form not in named:
                reject(where, f"must be one of {', '.join(named)} or an object, not {brief(form)}")
            return named[form]
        data = read_object(form, where, (), ("power", "polynomial", "table", "outside"))
        if set(data) == {"power"}:
            power = read_integer(data["power"], f"{where}.power", 0, _MAX_DEGREE)
            lead = (Fraction(0),) * power
            return LatticeFunction(0, (), (*lead, (-step) ** power), (*lead, step**power))
        if set(data) == {"polynomial"}:
            coefficients = read_rationals(data["polynomial"], f"{where}.polynomial", _MAX_DEGREE + 1)
            return LatticeFunction.polynomial([c * step**i for i, c in enumerate(coefficients)])
        if "table" not in data or "power" in data or "polynomial" in data:
            reject(where, "must have exactly one of 'power', 'polynomial' and 'table'")
        return self._table(data, where)

    def _table(self, data: Mapping[str, Any], where: str) -> LatticeFunction:
        rows = data["table"]
        if not isinstance(rows, Mapping) or not rows:
            reject(f"{where}.table", f"must be an object with at least one point, not {brief(rows)}")
        found = {self.index(point, f"{where}.table"): read_rational(v, f"{where}.table.{brief(point)}")
                 for point, v in rows.items()}  # fmt: skip
        if len(found) < len(rows):
            reject(f"{where}.table", "names a point twice")
        low, high = _span(found, f"{where}.table")
        if "outside" in data:
            outside = read_rational(data["outside"], f"{where}.outside")
        elif self.window is not None and all(k in found for k in range(self.window[0], self.window[1] + 1)):
            outside = Fraction(0)  # outside the support: never used
        else:
            reject(where, "must have 'outside', or a finite support all of whose points are in the table")
        table = tuple(found.get(k, outside) for k in range(low, high + 1))
        return LatticeFunction(low, table, (outside,), (outside,))

    def indicator(self, of: object, where: str) -> LatticeFunction:
        """1 on a list of points, or on a range ``{"from": .., "to": ..}`` with one end or two, and 0 elsewhere."""
        one = (Fraction(1),)
        if isinstance(of, list | tuple):
            points = self.points(of, where)
            if not points:
                return LatticeFunction()
            low, high = _span(points, where)
            return LatticeFunction(low, tuple(Fraction(k in points) for k in range(low, high + 1)))
        data = read_object(of, where, (), ("from", "to"))
        ends = [
            None if data.get(k) is None else read_rational(data[k], f"{where}.{k}") / self.step for k in ("from", "to")
        ]
        first = None if ends[0] is None else ceil(ends[0])
        last = None if ends[1] is None else floor(ends[1])
        if first is not None and last is not None:
            if last - first >= MAX_POINTS:
                reject(where, f"covers more than {MAX_POINTS} points")
            return LatticeFunction(first, one * max(last - first + 1, 0))
        if first is not None:
            return LatticeFunction(first, (), (), one)
        if last is not None:
            return LatticeFunction(last + 1, (), one, ())
        reject(where, "must be a list of points, or have 'from' or 'to'")
