"""Linear constraints: an expectation E h(Z) between two bounds, and what is one with a function h of its own.

The witness is the row itself, and its multiplier is free: positive for the bound from below, negative for the one from
above. For every feasible law, y > 0 gives ``y (E h - at_least) >= 0`` and y < 0 gives ``y (E h - at_most) >= 0``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpopt.checker.effort import afford
from dpopt.checker.law import Law
from dpopt.checker.reading import brief, read_integer, read_object, read_rational, read_sides, reject
from dpopt.checker.reduced_cost import ReducedCost
from dpopt.checker.stated import Enclosures, Family, Setting, family
from dpopt.checker.sums import expected, room, short, values_work
from dpopt.lattice_function import LatticeFunction

__all__ = ["Line", "Lines"]


@dataclass(frozen=True)
class Line:
    """One linear row ``at_least <= E h(Z) <= at_most`` with `function` h of the lattice index."""

    function: LatticeFunction
    at_least: Fraction | None = None
    at_most: Fraction | None = None


@dataclass(frozen=True)
class _Weighed:
    """A row with its multiplier and the bound that its sign is for."""

    part: int
    y: int
    function: LatticeFunction
    side: Fraction

    @property
    def key(self) -> str:
        return f"part {self.part}"

    def add_to(self, cost: ReducedCost) -> None:
        y = Fraction(self.y, cost.one)
        cost.add_constant(y * self.side)
        cost.add_function(self.function, -y)


@dataclass(frozen=True)
class Lines(Family):
    """Linear rows; `part` of a witness is the place of its row."""

    lines: tuple[Line, ...] = ()

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        """The least room on either side of a row."""
        margins: list[Fraction] = []
        for line in self.lines:
            found = expected(law, line.function)
            if line.at_least is not None:
                margins.append(room(found - line.at_least, f"the value {brief(found)}"))
            if line.at_most is not None:
                margins.append(room(line.at_most - found, f"the value {brief(found)}"))
        return short(min(margins, default=Fraction(0))).lower

    def narrowed(self, alive: Sequence[int]) -> Sequence[int]:
        """``E h <= min h`` allows only where h is least; no finite multiplier says so much."""
        for line in self.lines:
            for side, extreme in ((line.at_most, min), (line.at_least, max)):
                if not alive or side is None:
                    continue
                afford(values_work(line.function, alive[0], alive[-1]), "takes the values of a function at all points")
                values, unit = line.function.integers(alive[0], alive[-1])
                best = extreme(values[k - alive[0]] for k in alive)
                if side * unit == best:
                    alive = [k for k in alive if values[k - alive[0]] == best]
        return alive

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> _Weighed:
        """``part`` and ``y``."""
        read_object(data, where, ("of", "part", "y"))
        part = read_integer(data["part"], f"{where}.part", 0)
        if part >= len(self.lines):
            reject(f"{where}.part", f"must be below {len(self.lines)}, the number of linear rows of {self.kind!r}")
        y, line = read_integer(data["y"], f"{where}.y"), self.lines[part]
        side = line.at_least if y > 0 else line.at_most
        if y and side is None:
            reject(f"{where}.y", "has the sign of a bound that the constraint does not have")
        return _Weighed(part, y, line.function, side or Fraction(0))


@family("expectation")
@dataclass(frozen=True)
class _Expectation(Lines):
    with_function: ClassVar[tuple[str, ...]] = ("of",)

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type", *cls.with_function), ("equals", "at_least", "at_most"))
        return cls((Line(cls.function(data, where, setting), *read_sides(data, where)),))

    @classmethod
    def function(cls, data: Mapping[str, Any], where: str, setting: Setting) -> LatticeFunction:
        return setting.lattice.function(data["of"], f"{where}.of")


@family("probability")
@dataclass(frozen=True)
class _Probability(_Expectation):
    @classmethod
    def function(cls, data: Mapping[str, Any], where: str, setting: Setting) -> LatticeFunction:
        return setting.lattice.indicator(data["of"], f"{where}.of")


@family("mean")
@dataclass(frozen=True)
class _Mean(_Expectation):
    with_function = ()

    @classmethod
    def function(cls, data: Mapping[str, Any], where: str, setting: Setting) -> LatticeFunction:
        return setting.lattice.function("value", where)

    @classmethod
    def mean_of(cls, data: Mapping[str, Any], where: str) -> Fraction | None:
        equals = data.get("equals")
        return None if equals is None else read_rational(equals, f"{where}.equals")


@family("second-moment")
@dataclass(frozen=True)
class _SecondMoment(_Expectation):
    with_function = ()

    @classmethod
    def function(cls, data: Mapping[str, Any], where: str, setting: Setting) -> LatticeFunction:
        return setting.lattice.function("square", where)


@family("variance")
@dataclass(frozen=True)
class _Variance(_Expectation):
    with_function = ()

    @classmethod
    def function(cls, data: Mapping[str, Any], where: str, setting: Setting) -> LatticeFunction:
        """The square of the distance to the mean, which another constraint has to fix."""
        centre, step = setting.fixed_mean(), setting.lattice.step
        if centre is None:
            reject(where, f"{cls.name} needs a fixed mean: another constraint has to leave one mean only")
        return LatticeFunction.polynomial((centre**2, -2 * centre * step, step**2))
