"""The part of the support that a program has columns for, and what lies beyond it.

On a finite support the core is the support. On all integers it is a window [first, last]; beyond it the pmf is zero,
or, under pure epsilon-DP, continues geometrically: p(k + shift) = ratio * p(k) outward (tail closure). A column of the
last block on a side then carries its whole chain: mass 1/(1 - ratio), cost sum of ratio^t f(k + t shift).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from dpopt.lattice_function import LatticeFunction, Polynomial

__all__ = ["Closure", "Core", "floats"]


@dataclass(frozen=True)
class Closure:
    """Geometric continuation beyond the core: period and ratio of both tails."""

    shift: int
    ratio: float


@dataclass(frozen=True)
class Core:
    """The lattice indices first..last that a program has columns for, and how the pmf continues."""

    first: int
    last: int
    closure: Closure | None = None

    @property
    def size(self) -> int:
        """Number of columns for the pmf."""
        return self.last - self.first + 1

    @property
    def is_symmetric(self) -> bool:
        """Whether the core is symmetric about index 0."""
        return self.first == -self.last

    @property
    def indices(self) -> np.ndarray:
        """first..last as integers; shape (size,)."""
        return np.arange(self.first, self.last + 1)

    def coefficients(self, function: LatticeFunction) -> np.ndarray:
        """What one unit of each column contributes to E f, its tail chain included; shape (size,)."""
        values = floats(function, self.first, self.last)
        if self.closure is None:
            return values
        shift, ratio = self.closure.shift, self.closure.ratio
        values[-shift:] += _chain_sums(function, self.last - shift + 1, shift, ratio)
        mirrored = function.mirrored()
        values[:shift] += _chain_sums(mirrored, -(self.first + shift - 1), shift, ratio)[::-1]
        return values


def floats(function: LatticeFunction, low: int, high: int) -> np.ndarray:
    """The nearest floats of the function at low..high; shape (high - low + 1,)."""
    k = np.arange(low, high + 1, dtype=float)
    values = np.where(k < function.start, _polynomial(function.left, k), _polynomial(function.right, k))
    first, last = max(low, function.start), min(high + 1, function.end)
    if first < last:
        table = function.table[first - function.start : last - function.start]
        values[first - low : last - low] = [float(v) for v in table]
    return values


def _polynomial(coefficients: Polynomial, k: np.ndarray) -> np.ndarray:
    value = np.zeros_like(k)
    for coefficient in reversed(coefficients):
        value = value * k + float(coefficient)
    return value


def _chain_sums(function: LatticeFunction, first: int, shift: int, ratio: float) -> np.ndarray:
    """sum over t >= 1 of ratio^t f(k + t shift) for the `shift` points k = first, first + 1, ...

    Explicit down to the end of the table, closed form beyond it.
    """
    blocks = max(-(-(function.end - first) // shift), 0)
    k = np.arange(first + blocks * shift, first + (blocks + 1) * shift, dtype=float)
    sums = np.zeros(shift)
    powers = _geometric_powers(len(function.right), ratio)
    for degree, coefficient in enumerate(function.right):
        # sum over t >= 1 of ratio^t (k + t shift)^degree by the binomial theorem
        for power in range(degree + 1):
            weight = float(coefficient) * comb(degree, power) * float(shift) ** power * powers[power]
            sums += weight * k ** (degree - power)
    for block in range(blocks, 0, -1):
        at = first + block * shift
        sums = ratio * (floats(function, at, at + shift - 1) + sums)
    return sums


def _geometric_powers(count: int, ratio: float) -> list[float]:
    """sum over t >= 1 of ratio^t t^j for j < count."""
    from_zero: list[float] = []
    for j in range(count):
        if j == 0:
            from_zero.append(1 / (1 - ratio))
        else:
            from_zero.append(ratio / (1 - ratio) * sum(comb(j, i) * from_zero[i] for i in range(j)))
    return [s - 1 if j == 0 else s for j, s in enumerate(from_zero)]
