"""Questions that have no finite exact answer are refused here, each with its way out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction, Polynomial
from dpopt.problem.constraints import PureDP
from dpopt.problem.parts import Constraint
from dpopt.problem.support import Support
from dpopt.problem.terms import (
    EntropyTerm,
    ExpectationTerm,
    HockeyStickTerm,
    MinDeltaTerm,
    ObjectiveTerm,
    OrderTerm,
    RatioTerm,
    Term,
    ZeroTerm,
)

__all__ = ["refuse_what_has_no_finite_answer"]

_LARGEST = 10**300
_LEAST_EPSILON = Fraction(1, 10**6)
_SUPPORT = "give a support such as [support] type = 'integers', low = -100, high = 100"


def refuse_what_has_no_finite_answer(
    support: Support, objective: ObjectiveTerm, terms: Sequence[tuple[Term, ...]], constraints: Sequence[Constraint]
) -> None:
    """Raise `InputError` for a question whose answer is not a finite object, naming what would make it one."""
    flat = [(f"constraints[{i}]", term) for i, group in enumerate(terms) for term in group]
    _refuse_what_floats_cannot_hold(objective, flat)
    if support.is_finite:
        _refuse_on_finite(support, constraints, flat)
    else:
        _refuse_on_infinite(objective, flat)


def _refuse_what_floats_cannot_hold(objective: ObjectiveTerm, flat: list[tuple[str, Term]]) -> None:
    """A solver is told floats: numbers beyond 1e300 would overflow on the way."""
    stated: list[tuple[str, LatticeFunction, list[Fraction | None]]] = [("objective", objective.cost, [])]
    for where, term in flat:
        if isinstance(term, ExpectationTerm):
            stated.append((where, term.function, [term.at_least, term.at_most]))
    for where, function, sides in stated:
        numbers = [*function.table, *function.left, *function.right, *(side for side in sides if side is not None)]
        if max((abs(number) for number in numbers), default=0) > _LARGEST:
            raise InputError(where, "holds a number beyond 1e300, more than any solver can be told: use other units")


def _refuse_on_finite(support: Support, constraints: Sequence[Constraint], flat: list[tuple[str, Term]]) -> None:
    for i, constraint in enumerate(constraints):
        if isinstance(constraint, PureDP) and constraint.boundary == "exact":
            raise InputError(
                f"constraints[{i}]",
                "pure-dp is impossible on a finite support (an output next to the edge tells the neighbours apart). "
                "Ways out: drop low and high; ask for approx-dp with a delta; or set boundary = 'window' to compare "
                "points inside the support only, and read the true (epsilon, delta) off the solution",
            )
    first, last = support.window or (0, 0)
    for where, term in flat:
        if isinstance(term, OrderTerm) and not first <= term.mode <= last:
            raise InputError(f"{where}.mode", f"must lie in the support, not {term.mode * support.step}")


def _refuse_on_infinite(objective: ObjectiveTerm, flat: list[tuple[str, Term]]) -> None:
    if isinstance(objective, EntropyTerm):
        raise InputError(
            "objective", f"max-entropy on all integers has Gaussian tails, not a finite description: {_SUPPORT}"
        )
    if isinstance(objective, MinDeltaTerm):
        raise InputError(
            "objective", f"min-delta on all integers has no minimum (spreading out always helps): {_SUPPORT}"
        )
    ratios = [term for _, term in flat if isinstance(term, RatioTerm)]
    for where, term in flat:
        if isinstance(term, RatioTerm) and term.epsilon < _LEAST_EPSILON:
            raise InputError(
                f"{where}.epsilon",
                f"must be at least {_LEAST_EPSILON} on all integers (nothing there is 0-DP, and the noise would be "
                f"wider than any solver resolves): {_SUPPORT}",
            )
        if isinstance(term, OrderTerm):
            raise InputError(where, f"unimodal on all integers has no proof yet: {_SUPPORT}")
        if isinstance(term, RatioTerm) and term.inside_window:
            raise InputError(f"{where}.boundary", f"'window' needs a finite support: {_SUPPORT}, or leave boundary out")
        if isinstance(term, ZeroTerm) and ratios:
            raise InputError(
                where, "forbidden contradicts pure-dp: epsilon-DP noise has mass at every integer; drop one"
            )
        if isinstance(term, HockeyStickTerm):
            _refuse_hockey_stick(where, objective.cost, ratios)
        if isinstance(term, ExpectationTerm):
            _refuse_escaping_mass(where, term, objective.cost)
    for side, polynomial in (("left", _outward_left(objective.cost)), ("right", objective.cost.right)):
        if len(polynomial) > 1 and polynomial[-1] < 0 and not _is_held(side, len(polynomial), flat):
            if _is_held(side, len(polynomial) - 1, flat):
                why = "falls as fast as a bounded moment grows, so that mass may escape and no optimum need be attained"
            else:
                why = "falls without bound, and no constraint holds it"
            raise InputError(
                "objective",
                f"the cost {why} on the {side}: bound a moment that grows faster from above, or {_SUPPORT}",
            )


def _is_held(side: str, terms: int, flat: list[tuple[str, Term]]) -> bool:
    """Whether a bounded moment grows faster on this side than the cost falls: then no mass escapes, and it is attained.

    The moment itself must not fall on either side, where mass far out would pay for it.
    """
    for _, term in flat:
        if not isinstance(term, ExpectationTerm):
            continue
        ends = {"left": _outward_left(term.function), "right": term.function.right}
        for bound, sign in ((term.at_most, 1), (term.at_least, -1)):
            rises = all(len(end) <= 1 or sign * end[-1] > 0 for end in ends.values())
            if bound is not None and rises and len(ends[side]) > terms:
                return True
    return False


def _refuse_hockey_stick(where: str, cost: LatticeFunction, ratios: list[RatioTerm]) -> None:
    if ratios:
        raise InputError(where, f"approx-dp beside pure-dp needs a finite support or one of the two alone: {_SUPPORT}")
    if len(cost.right) <= 1 or len(cost.left) <= 1:
        raise InputError(where, f"approx-dp with a bounded cost on all integers has no attained optimum: {_SUPPORT}")


def _refuse_escaping_mass(where: str, term: ExpectationTerm, cost: LatticeFunction) -> None:
    """A bound that far-out mass can meet at vanishing cost is not attained (theory of infinite supports, 7)."""
    both = term.at_least is not None and term.at_least == term.at_most
    if both and term.at_least == 0 and term.function.is_odd and cost.is_even:
        return  # the mirror image costs the same: mass far out never helps a zero mean
    sides = ((_outward_left(term.function), _outward_left(cost)), (term.function.right, cost.right))
    for function, price in sides:
        grows_faster = len(function) > max(len(price), 1)
        if not grows_faster:
            continue
        helps = (term.at_least is not None and function[-1] > 0) or (term.at_most is not None and function[-1] < 0)
        if helps:
            raise InputError(
                where,
                "mass escapes far out: this bound can be met by ever less mass ever farther away, so no optimum is "
                f"attained. Bound it from the other side, use a cost that grows as fast, or {_SUPPORT}",
            )


def _outward_left(function: LatticeFunction) -> Polynomial:
    """The left polynomial as a function of the distance from 0."""
    return tuple(c * (-1) ** i for i, c in enumerate(function.left)) or (Fraction(0),)[:0]
