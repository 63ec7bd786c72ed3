"""Points that may have no mass. They need no witness: the bound leaves their reduced costs out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpopt.checker.law import Law
from dpopt.checker.reading import read_object
from dpopt.checker.stated import Enclosures, Family, Setting, family
from dpopt.checker.sums import refuse_mass


@family("forbidden")
@dataclass(frozen=True)
class _Forbidden(Family):
    points: frozenset[int]

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type", "values"))
        return cls(setting.lattice.points(data["values"], f"{where}.values"))

    @property
    def zeros(self) -> frozenset[int]:
        return self.points

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        refuse_mass(law, self.points)
        return Fraction(0)
