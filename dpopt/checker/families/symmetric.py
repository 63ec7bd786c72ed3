"""Symmetry about 0: ``p(k) = p(-k)``. A witness is k > 0, and its multiplier is free.

A point of a finite support whose mirror image lies outside has no mass; its row is then ``p(k) = 0``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpopt.checker.lattice import Lattice
from dpopt.checker.law import Law
from dpopt.checker.reading import MAX_POINTS, brief, read_object, reject
from dpopt.checker.stated import Enclosures, Family, Setting, family
from dpopt.checker.sums import stretched
from dpopt.checker.witness import Pairs, read_pairs
from dpopt.errors import CertificateError


@family("symmetric")
@dataclass(frozen=True)
class _Symmetric(Family):
    lattice: Lattice

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type",))
        return cls(setting.lattice)

    @classmethod
    def mean_of(cls, data: Mapping[str, Any], where: str) -> Fraction | None:
        return Fraction(0)

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        """Equal on one whole period beyond the longer arm of the core: then the tails agree for good.

        That period is one block of either tail, and the blocks it grows from agree too: so do the ratios, or all is 0.
        """
        reach = max(abs(law.start), abs(law.end)) + law.period
        if reach > MAX_POINTS:
            raise CertificateError(f"the core reaches beyond {MAX_POINTS} points from 0")
        by = max(law.start + reach, reach - law.end)
        weights, _ = stretched(law, by)
        first = -reach - (law.start - by)
        middle = weights[first : first + 2 * reach + 1]
        for k, (left, right) in enumerate(zip(middle[reach::-1], middle[reach:], strict=True)):
            if left != right:
                raise CertificateError(f"the probabilities at indices {-k} and {k} differ")
        return Fraction(0)

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> Pairs:
        """``pairs`` of k and y: the equality of the masses at k and -k."""
        row, found = read_pairs(data, where, 2)
        for i, (k, _) in enumerate(found):
            if k <= 0 or not (self.lattice.holds(k) or self.lattice.holds(-k)):
                reject(f"{where}.pairs[{i}]", f"is not a row of {self.kind!r}: index {brief(k)}")
        return Pairs(row, tuple((k, -k, y) for k, y in found))
