"""A bound on an expectation: the linear family, with one member a side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpopt.arithmetic import exact
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.families.base import (
    GIVE_A_SUPPORT,
    Asked,
    Cut,
    Term,
    TermCheck,
    Window,
    require_function,
    stated_function,
)

__all__ = ["ExpectationTerm"]

_NEAR = Fraction(1, 10**9)  # of 1 and a bound's size: a claim that is so near to it meets it with equality


@dataclass(frozen=True)
class ExpectationTerm(Term):
    """``at_least <= E of(Z) <= at_most``; None leaves a side open, equal sides make an equality.

    A witness is a side: 1 for the upper one, -1 for the lower one.
    """

    of: LatticeFunction
    at_least: Fraction | None = None
    at_most: Fraction | None = None
    is_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_function(self.of, "of")
        for side in ("at_least", "at_most"):
            if getattr(self, side) is not None:
                object.__setattr__(self, side, exact(getattr(self, side), side))

    # --- what it means

    def check(self, pmf: Pmf, window: Window) -> TermCheck:
        margin = min((-cut.excess(pmf) for cut in map(self.function, self._sides)), default=Fraction(0))
        return TermCheck(margin >= 0, margin)

    def cuts(self, pmf: Pmf, window: Window) -> tuple[int, ...]:
        return tuple(sorted(self._sides, key=lambda side: -self.function(side).excess(pmf)))

    def function(self, witness: int) -> Cut:
        bound = self.at_most if witness > 0 else self.at_least
        if bound is None:
            raise ValueError(f"there is no bound on side {witness}")
        return Cut(self.of if witness > 0 else self.of.scaled(-1), witness * bound)

    def stated(self) -> dict[str, Any]:
        function = stated_function(self.of)
        return {"term": "linear", "function": function, "at_least": self.at_least, "at_most": self.at_most}

    @property
    def _sides(self) -> tuple[int, ...]:
        return tuple(side for side, bound in ((1, self.at_most), (-1, self.at_least)) if bound is not None)

    # --- how it is solved

    @property
    def expectations(self) -> tuple[ExpectationTerm, ...]:
        return (self,)

    def refuse(self, asked: Asked) -> None:
        """A bound that far-out mass can meet at vanishing cost is not attained (theory of infinite supports, 7)."""
        if asked.support.is_finite or (self.at_least == self.at_most == 0 and self.of.is_odd and asked.cost.is_even):
            return  # the mirror image costs the same: mass far out never helps a zero mean
        for function, price in zip(self.of.outward, asked.cost.outward, strict=True):
            if len(function) <= max(len(price), 1):
                continue
            if (self.at_least is not None and function[-1] > 0) or (self.at_most is not None and function[-1] < 0):
                raise InputError(
                    "",
                    "mass escapes far out: this bound can be met by ever less mass ever farther away, so no optimum is "
                    f"attained. Bound it from the other side, use a cost that grows as fast, or {GIVE_A_SUPPORT}",
                )

    @property
    def is_equality(self) -> bool:
        """Whether the two sides are one."""
        return self.at_least is not None and self.at_least == self.at_most

    @property
    def reach(self) -> int:
        return self.of.reach

    @property
    def mean_bounds(self) -> tuple[Fraction | None, Fraction | None]:
        if self.of.table or self.of.left != self.of.right or len(self.of.right) != 2:
            return None, None
        level, slope = self.of.right  # the expectation is level + slope * E k
        below, above = (None if side is None else (side - level) / slope for side in (self.at_least, self.at_most))
        return (below, above) if slope > 0 else (above, below)

    @property
    def is_symmetric(self) -> bool:
        return self.of.is_even or (self.of.is_odd and self.at_least == self.at_most == 0)

    def tightened(self, by: Fraction) -> Self:
        if self.is_equality:
            return self
        low, high = self.at_least, self.at_most
        side = abs(low or high or Fraction(0))
        room = by * (high - low if low is not None and high is not None else side or Fraction(1))
        return replace(
            self, at_least=None if low is None else low + room, at_most=None if high is None else high - room
        )

    # --- how a pmf is repaired

    def active(self, pmf: Pmf, first: int, last: int) -> list[LatticeFunction]:
        value = pmf.expectation(self.of)
        sides = {side for side in (self.at_least, self.at_most) if side is not None}
        return [self._less(side) for side in sides if abs(value - side) <= (1 + abs(side)) * _NEAR]

    @property
    def equalities(self) -> list[LatticeFunction]:
        return [self._less(self.at_least)] if self.is_equality and self.at_least is not None else []

    def _less(self, side: Fraction) -> LatticeFunction:
        return self.of - LatticeFunction.constant(side)
