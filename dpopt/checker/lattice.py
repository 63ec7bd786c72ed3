"""The lattice that a problem lives on: its points, distances, costs and events in lattice indices.

A problem speaks in data units. That every index, shift and function is turned into lattice steps here, and nowhere
else, is what the rest of the checker builds on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from dpopt.checker.reading import (
    MAX_DEGREE,
    MAX_INDEX,
    MAX_POINTS,
    brief,
    read_integer,
    read_list,
    read_object,
    read_rational,
    read_rationals,
    read_type,
    reject,
)
from dpopt.lattice_function import LatticeFunction

__all__ = ["Lattice"]


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
        if max(abs(low), abs(high)) > MAX_INDEX:
            reject(where, f"has an end more than {MAX_INDEX} steps from 0")
        if not low <= high < low + MAX_POINTS:
            reject(where, f"must have from 1 to {MAX_POINTS} points, not low {brief(low)} and high {brief(high)}")
        return cls(step, (low.numerator, high.numerator))

    def holds(self, index: int) -> bool:
        """Whether an index lies in the support."""
        return self.window is None or self.window[0] <= index <= self.window[1]

    def needs_window(self, kind: str, where: str) -> None:
        """Refuse all lattice points for what has no answer there."""
        if self.window is None:
            reject(where, f"{kind} needs a finite support")

    def index(self, value: object, where: str) -> int:
        """The index of a point."""
        index = read_rational(value, where) / self.step
        if index.denominator != 1:
            reject(where, f"must be a multiple of the step {brief(self.step)}, not {brief(value)}")
        if abs(index) > MAX_INDEX:
            reject(where, f"lies more than {MAX_INDEX} steps from 0")
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
        if self.window is None and shift > MAX_INDEX:  # on a finite support all shifts from its length on are alike
            reject(f"{where}.sensitivity", f"makes more than {MAX_INDEX} steps")
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
            power = read_integer(data["power"], f"{where}.power", 0, MAX_DEGREE)
            lead = (Fraction(0),) * power
            return LatticeFunction(0, (), (*lead, (-step) ** power), (*lead, step**power))
        if set(data) == {"polynomial"}:
            coefficients = read_rationals(data["polynomial"], f"{where}.polynomial", MAX_DEGREE + 1)
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
        if last is None:
            reject(where, "must be a list of points, or have 'from' or 'to'")
        return LatticeFunction(last + 1, (), one, ())


def _span(points: Collection[int], where: str) -> tuple[int, int]:
    """The least and the greatest of the points, which a table will hold one by one."""
    low, high = min(points), max(points)
    if high - low >= MAX_POINTS:
        reject(where, f"spans more than {MAX_POINTS} points")
    return low, high
