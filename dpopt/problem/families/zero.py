"""No mass at given points."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.families.base import ROW, Asked, Cut, Term, TermCheck, Window
from dpopt.reading import read_integers

__all__ = ["ZeroTerm"]


@dataclass(frozen=True)
class ZeroTerm(Term):
    """``p(k) = 0`` at the given lattice indices. A witness is one of them."""

    indices: tuple[int, ...]
    is_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", read_integers(self.indices, "indices"))

    def check(self, pmf: Pmf, window: Window) -> TermCheck:
        mass = sum((pmf.weight(k) for k in self.indices), Fraction(0)) / pmf.total
        return TermCheck(mass == 0, -mass)

    def cuts(self, pmf: Pmf, window: Window) -> tuple[int, ...]:
        return tuple(sorted(self.indices, key=lambda k: -pmf.weight(k)))

    def function(self, witness: int) -> Cut:
        return Cut(LatticeFunction(witness, (Fraction(1),)), Fraction(0))

    def stated(self) -> dict[str, Any]:
        return {"term": "zero", "row": ROW, "indices": list(self.indices)}

    def refuse(self, asked: Asked) -> None:
        if not asked.support.is_finite and any(term.tail is not None for term in asked.terms):
            raise InputError("", "forbidden contradicts pure-dp: epsilon-DP noise has mass at every integer; drop one")

    def row_count(self, size: int) -> int:
        return 0  # bounds of columns

    @property
    def zeros(self) -> frozenset[int]:
        return frozenset(self.indices)

    @property
    def is_symmetric(self) -> bool:
        return self.zeros == {-k for k in self.indices}
