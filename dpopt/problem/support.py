"""Supports: the points where the noise may have mass."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpopt.arithmetic import exact, exact_integer
from dpopt.errors import InputError

__all__ = ["Integers", "Lattice", "Support"]

_FARTHEST = 10**12  # steps from 0: lattice indices are 64-bit integers, and exact as floats, in a program
_MAX_POINTS = 5_000_000  # about 2 GB of exact weights: beyond it a problem would exhaust a machine, not be solved


@dataclass(frozen=True)
class Support:
    """Base of the supports. `first` and `last` are lattice indices; the point of index k is ``k * step``."""

    type: ClassVar[str] = "support"

    @property
    def step(self) -> Fraction:
        """The lattice step in data units."""
        return Fraction(1)

    @property
    def is_finite(self) -> bool:
        """Whether the support has two ends."""
        return getattr(self, "low", None) is not None

    @property
    def first(self) -> int:
        """Lattice index of the lowest point (finite supports only)."""
        return int(self.low / self.step)  # type: ignore[attr-defined]

    @property
    def last(self) -> int:
        """Lattice index of the highest point (finite supports only)."""
        return int(self.high / self.step)  # type: ignore[attr-defined]

    @property
    def window(self) -> tuple[int, int] | None:
        """``(first, last)``, or None for an infinite support."""
        return (self.first, self.last) if self.is_finite else None

    def index(self, point: object, argument: str) -> int:
        """The lattice index of a point given in data units."""
        value = exact(point, argument) / self.step
        if value.denominator != 1:
            raise InputError(argument, f"must be a point of the lattice with step {self.step}, not {point}")
        return value.numerator

    def _check_ends(self, low: Fraction | None, high: Fraction | None) -> None:
        if (low is None) != (high is None):
            missing = "high" if high is None else "low"
            raise InputError(
                missing, "is missing: give both low and high for a finite support, or neither for all points"
            )
        if low is None or high is None:
            return
        for name, end in (("low", low), ("high", high)):
            if (end / self.step).denominator != 1:
                raise InputError(name, f"must be a multiple of the step {self.step}, not {end}")
            if abs(end / self.step) > _FARTHEST:
                raise InputError(name, f"must lie within {_FARTHEST:.0e} steps of 0")
        if high < low:
            raise InputError("high", f"must be at least low = {low}, not {high}")
        if (high - low) / self.step >= _MAX_POINTS:
            raise InputError("high", f"makes a support of more than {_MAX_POINTS} points")


@dataclass(frozen=True)
class Integers(Support):
    """All integers, or the integers low..high.

    Examples
    --------
    >>> Integers(-11, 11).window
    (-11, 11)
    >>> Integers().is_finite
    False
    """

    low: Fraction | None = None
    high: Fraction | None = None
    type: ClassVar[str] = "integers"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Fraction(exact_integer(getattr(self, name), name)))
        self._check_ends(self.low, self.high)


@dataclass(frozen=True)
class Lattice(Support):
    """The multiples of `step`, all of them or those in low..high (data units).

    Examples
    --------
    >>> Lattice("1/2", -2, 2).window
    (-4, 4)
    """

    step: Fraction = Fraction(1)  # a field here, a constant in the base
    low: Fraction | None = None
    high: Fraction | None = None
    type: ClassVar[str] = "lattice"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", exact(self.step, "step"))
        if self.step <= 0:
            raise InputError("step", f"must be positive, not {self.step}")
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, exact(getattr(self, name), name))
        self._check_ends(self.low, self.high)
