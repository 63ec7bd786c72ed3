"""Questions that have no finite exact answer are refused, each by the part that makes it so, with its way out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.problem.families.base import Asked, ObjectiveTerm, Term
from dpopt.problem.support import Support

__all__ = ["refuse_what_has_no_finite_answer"]

_LARGEST = 10**300


def refuse_what_has_no_finite_answer(
    support: Support, objective: ObjectiveTerm, terms: Sequence[tuple[Term, ...]]
) -> None:
    """Raise `InputError` for a question whose answer is not a finite object, naming what would make it one."""
    placed = [(f"constraints[{i}]", term) for i, group in enumerate(terms) for term in group]
    asked = Asked(support, objective.cost, tuple(term for _, term in placed))
    _refuse_what_floats_cannot_hold("objective", objective.cost, ())
    for where, term in placed:
        for bound in term.expectations:
            _refuse_what_floats_cannot_hold(where, bound.of, (bound.at_least, bound.at_most))
    for where, term in placed:
        _refused(where, term, asked)
    _refused("objective", objective, asked)


def _refused(where: str, part: Term | ObjectiveTerm, asked: Asked) -> None:
    try:
        part.refuse(asked)
    except InputError as error:
        raise error.inside(where) from None


def _refuse_what_floats_cannot_hold(where: str, function: LatticeFunction, sides: Sequence[Fraction | None]) -> None:
    """A solver is told floats: numbers beyond 1e300 would overflow on the way."""
    numbers = [*function.table, *function.left, *function.right, *(side for side in sides if side is not None)]
    if max((abs(number) for number in numbers), default=0) > _LARGEST:
        raise InputError(where, "holds a number beyond 1e300, more than any solver can be told: use other units")
