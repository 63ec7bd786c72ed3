"""Cost forms: the functions of the noise value z that an objective or an expectation may use, in data units."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpopt.arithmetic import exact, exact_integer
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.problem.support import Support
from dpopt.reading import read_numbers

__all__ = ["Cost", "NamedCost", "PolynomialCost", "PowerCost", "TableCost", "indicator", "plain_number", "read_cost"]


_MAX_SPAN = 2_000_000  # a table is stored point by point


def plain_number(value: Fraction) -> int | str:
    """An exact number as TOML and JSON write it: an integer where it is one, else a fraction string."""
    if value.denominator == 1 and abs(value.numerator) < 1 << 63:
        return value.numerator
    return str(value)


class Name(StrEnum):
    """The costs that have a name."""

    ABSOLUTE = "absolute"
    SQUARE = "square"
    ERROR = "error"
    VALUE = "value"


class Cost:
    """Base of the cost forms."""

    def on(self, support: Support) -> LatticeFunction:
        """The cost as a function of the lattice index."""
        raise TypeError(f"{type(self).__name__} does not say what it is on a lattice")

    def plain(self) -> Any:
        """The TOML form."""
        raise TypeError(f"{type(self).__name__} has no TOML form")


@dataclass(frozen=True)
class NamedCost(Cost):
    """|z|, z^2, 1[z != 0] or z itself."""

    name: Name

    def on(self, support: Support) -> LatticeFunction:
        step = support.step
        match self.name:
            case Name.ABSOLUTE:
                return LatticeFunction(0, (), (0, -step), (0, step))  # type: ignore[arg-type]
            case Name.SQUARE:
                return LatticeFunction.polynomial((0, 0, step**2))
            case Name.ERROR:
                return LatticeFunction(0, (Fraction(0),), (Fraction(1),), (Fraction(1),))
            case Name.VALUE:
                return LatticeFunction.polynomial((0, step))

    def plain(self) -> str:
        return str(self.name)


@dataclass(frozen=True)
class PowerCost(Cost):
    """|z|^power for an integer power >= 0."""

    power: int

    def on(self, support: Support) -> LatticeFunction:
        lead = support.step**self.power
        right = (*(Fraction(0),) * self.power, lead)
        return LatticeFunction(0, (), (*right[:-1], lead * (-1) ** self.power), right)

    def plain(self) -> dict[str, Any]:
        return {"power": self.power}


@dataclass(frozen=True)
class PolynomialCost(Cost):
    """c0 + c1 z + c2 z^2 + ..."""

    coefficients: tuple[Fraction, ...]

    def on(self, support: Support) -> LatticeFunction:
        return LatticeFunction.polynomial([c * support.step**i for i, c in enumerate(self.coefficients)])

    def plain(self) -> dict[str, Any]:
        return {"polynomial": [plain_number(c) for c in self.coefficients]}


@dataclass(frozen=True)
class TableCost(Cost):
    """A value at each listed point and `outside` everywhere else."""

    entries: tuple[tuple[Fraction, Fraction], ...]
    outside: Fraction | None = None

    def on(self, support: Support) -> LatticeFunction:
        values = {support.index(point, f"table.{point}"): value for point, value in self.entries}
        if self.outside is None:
            self._check_complete(values, support)
        rest = self.outside or Fraction(0)
        first, last = _span(values, "table")
        table = tuple(values.get(k, rest) for k in range(first, last + 1))
        return LatticeFunction(first, table, (rest,), (rest,))

    @staticmethod
    def _check_complete(values: Mapping[int, Fraction], support: Support) -> None:
        if support.window is None:
            raise InputError("outside", "is missing: on an infinite support a table needs its value everywhere else")
        first, last = support.window
        missing = next((k for k in range(first, last + 1) if k not in values), None)
        if missing is not None:
            raise InputError("table", f"has no value at {missing * support.step}; list it or give outside = ...")

    def plain(self) -> dict[str, Any]:
        table = {str(point): plain_number(value) for point, value in self.entries}
        rest = {} if self.outside is None else {"outside": plain_number(self.outside)}
        return {"table": table, **rest}


def indicator(indices: list[int]) -> LatticeFunction:
    """1 on the given lattice indices, 0 elsewhere."""
    inside = set(indices)
    first, last = _span(inside, "of")
    return LatticeFunction(first, tuple(Fraction(k in inside) for k in range(first, last + 1)))


def _span(indices: Collection[int], argument: str) -> tuple[int, int]:
    first, last = min(indices), max(indices)
    if last - first > _MAX_SPAN:
        raise InputError(argument, f"spans {last - first + 1} lattice points, more than {_MAX_SPAN}")
    return first, last


def read_cost(value: object, argument: str) -> Cost:
    """Read a cost form: a name, ``{power = 3}``, ``{polynomial = [...]}``, ``{table = {...}, outside = ...}``.

    Examples
    --------
    >>> read_cost("absolute", "cost")
    NamedCost(name=<Name.ABSOLUTE: 'absolute'>)
    >>> read_cost({"power": 3}, "cost")
    PowerCost(power=3)
    """
    names = ", ".join(f"'{n}'" for n in Name)
    wanted = f"must be one of {names}, or {{power = p}}, {{polynomial = [...]}}, {{table = {{...}}, outside = ...}}"
    if isinstance(value, Cost):
        return value
    if isinstance(value, str):
        if value not in set(Name):
            raise InputError(argument, f"{wanted}, not {value!r}")
        return NamedCost(Name(value))
    if not isinstance(value, Mapping):
        raise InputError(argument, f"{wanted}, not {value!r}")
    keys = set(value)
    if keys == {"power"}:
        power = exact_integer(value["power"], f"{argument}.power", at_least=0)
        if power > 64:
            raise InputError(f"{argument}.power", f"must be at most 64, not {power}")
        return PowerCost(power)
    if keys == {"polynomial"}:
        return PolynomialCost(read_numbers(value["polynomial"], f"{argument}.polynomial"))
    if keys in ({"table"}, {"table", "outside"}):
        return _read_table(value, argument)
    raise InputError(argument, f"{wanted}, not a table with the keys {sorted(map(str, keys))}")


def _read_table(value: Mapping[str, Any], argument: str) -> TableCost:
    table = value["table"]
    if not isinstance(table, Mapping) or not table:
        raise InputError(
            f"{argument}.table", f'must be a table of points and values, such as {{"-1" = 2}}, not {table!r}'
        )
    entries = {}
    for point, cost in table.items():
        at = exact(point, f"{argument}.table")
        if at in entries:
            raise InputError(f"{argument}.table", f"lists the point {at} twice")
        entries[at] = exact(cost, f"{argument}.table.{point}")
    outside = exact(value["outside"], f"{argument}.outside") if "outside" in value else None
    return TableCost(tuple(sorted(entries.items())), outside)
