"""A law as the checker holds it, and how it is read from a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpopt.checker.effort import afford, gcd_work
from dpopt.checker.lattice import Lattice
from dpopt.checker.reading import (
    MAX_POINTS,
    brief,
    read_index,
    read_integer,
    read_integers,
    read_long_rational,
    read_object,
    read_rational,
    reject,
)
from dpopt.errors import InputError
from dpopt.work import Work

__all__ = ["Law", "mass_work", "read_law"]


@dataclass(frozen=True)
class Law:
    """A pmf: integer weights from index `start`, ratio 0 for no tail on a side."""

    start: int
    weights: Sequence[int]
    period: int = 1
    left: Fraction = Fraction(0)
    right: Fraction = Fraction(0)

    @property
    def end(self) -> int:
        """Index of the last weight of the core."""
        return self.start + len(self.weights) - 1

    @cached_property
    def left_mass(self) -> Fraction:
        """The mass of the left tail in units of the weights: ratio + ratio^2 + ... times the first block."""
        return self.left / (1 - self.left) * sum(self.weights[: self.period]) if self.left else self.left

    @cached_property
    def right_mass(self) -> Fraction:
        """The mass of the right tail in units of the weights."""
        return self.right / (1 - self.right) * sum(self.weights[-self.period :]) if self.right else self.right

    @cached_property
    def total(self) -> Fraction:
        """The mass of everything in units of the weights: the probability at a core point is weight / total."""
        return sum(self.weights) + (self.left_mass + self.right_mass)


def read_law(source: object, lattice: Lattice, where: str) -> Law:
    """The pmf, spread over the whole window when the support is finite."""
    data = read_object(source, where, ("start", "weights", "step", "tails"))
    if read_rational(data["step"], f"{where}.step") != lattice.step:
        reject(f"{where}.step", f"must be the support's step {brief(lattice.step)}, not {brief(data['step'])}")
    start = read_index(data["start"], f"{where}.start")
    weights = read_integers(data["weights"], f"{where}.weights", 0, most=MAX_POINTS)
    if not any(weights):
        reject(f"{where}.weights", "must hold a positive weight")
    if data["tails"] is None:
        return Law(start, weights) if lattice.window is None else _windowed(start, weights, *lattice.window, where)
    if lattice.window is not None:
        reject(f"{where}.tails", "must be null on a finite support")
    tails = read_object(data["tails"], f"{where}.tails", ("period", "left", "right"))
    period = read_integer(tails["period"], f"{where}.tails.period", 1, len(weights))
    left, right = (_tail_ratio(tails[side], f"{where}.tails.{side}") for side in ("left", "right"))
    if left == right == 0:
        reject(f"{where}.tails", "must be null when there is a tail on neither side")
    law = Law(start, weights, period, left, right)
    try:
        afford(mass_work(law), "takes the mass of tails with long ratios")
    except InputError as error:
        raise error.inside(f"{where}.tails") from None
    return law


def mass_work(law: Law) -> Work:
    """The masses of both tails, and the total: fractions of the ratios' length together."""
    bits = sum(2 * ratio.denominator.bit_length() for ratio in (law.left, law.right))
    return Work(6 * gcd_work(bits + max(law.weights).bit_length()), bits)


def _windowed(start: int, weights: Sequence[int], low: int, high: int, where: str) -> Law:
    """The pmf with a weight for every point of the window ``low..high``."""
    spread = [0] * (high - low + 1)
    for i, weight in enumerate(weights):
        if weight:
            if not low <= start + i <= high:
                reject(f"{where}.weights[{i}]", f"puts mass at index {start + i}, outside the support {low}..{high}")
            spread[start + i - low] = weight
    return Law(low, spread)


def _tail_ratio(value: object, where: str) -> Fraction:
    """The ratio of a tail, 0 for none; 1/E_lo of a high precision is a long number."""
    if value is None:
        return Fraction(0)
    ratio = read_long_rational(value, where)
    if not 0 < ratio < 1:
        reject(where, f"must lie strictly between 0 and 1, not {brief(ratio)}")
    return ratio
