"""The Wasserstein distance from an input to the input plus noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpopt.arithmetic import Enclosure
from dpopt.distance import wasserstein_distance
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.families.base import ObjectiveTerm

__all__ = ["WassersteinTerm"]


@dataclass(frozen=True)
class WassersteinTerm(ObjectiveTerm):
    """Minimise W1 between the input and input plus noise (noise paper, equations (25)-(31)).

    With F the input's distribution function, W1 is the step times the sum over cuts k of |E g_k(Z)|,
    g_k(j) = F(k) - F(k - j). Only for min <= k < max of the input is the sign open; the other cuts add up to the
    linear cost E(min - j - X)+ + E(X + j - max)+.
    """

    input: Pmf  # on lattice indices

    @property
    def open_cuts(self) -> range:
        """The cuts whose sign is open."""
        return range(self.input.start, self.input.end)

    @cached_property
    def distribution(self) -> tuple[Fraction, ...]:
        """F at the points of the input's support."""
        return tuple(Fraction(c) / self.input.total for c in self.input.cumulative())

    def crossing(self, k: int) -> LatticeFunction:
        """g_k times the step, as a function of the noise index j."""
        step, here = self.input.step, self.distribution[k - self.input.start]
        # j from k - max to k - min: F(k - j) runs through the distribution from its last entry to its first
        table = tuple(step * (here - f) for f in reversed(self.distribution))
        return LatticeFunction(k - self.input.end, table, (step * (here - 1),), (step * here,))

    @cached_property
    def cost(self) -> LatticeFunction:
        """The linear cost of all the other cuts."""
        start, end, step = self.input.start, self.input.end, self.input.step
        mean = self.input.mean / step
        below = [Fraction(0)]  # sum of F over the points before index i: E(i - X)+
        for f in self.distribution[:-1]:
            below.append(below[-1] + f)
        reach = end - start
        table = []
        for j in range(-reach, reach + 1):
            left = below[-j] if j < 0 else Fraction(0)  # E(start - j - X)+
            # E(X + j - end)+ = (mean + j - end) + E(end - j - X)+
            right = mean + j - end + below[reach - j] if j > 0 else Fraction(0)
            table.append(step * (left + right))
        return LatticeFunction(-reach, tuple(table), (step * (start - mean), -step), (step * (mean - end), step))

    def value(self, pmf: Pmf) -> Enclosure:
        """W1 in data units, enclosed; see `dpopt.distance.wasserstein_distance`."""
        return wasserstein_distance(self.input, pmf, pmf.expectation(self.cost))

    def row_count(self, size: int) -> int:
        return len(self.open_cuts) * size // 2  # dense ones: what they weigh in rows of a few entries

    @property
    def is_symmetric(self) -> bool:
        return False  # its rows flip sign under reflection
