"""What a constraint or an objective says exactly, in lattice steps: a family of linear statements.

A constraint is ``E f_w <= b_w`` for every witness w: a pair of points for pure DP, an event for (epsilon, delta), a
side for an expectation. A family knows its exact check, its worst witnesses at a pmf, and the function of a witness.
What else it tells is for the code that solves and repairs, which knows no family by name; each member has a default
that is right, if not clever, for a family that says nothing. Float rows for a solver are in `dpopt.program.rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from dpopt.arithmetic import Enclosure, exp_enclosure
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf, Tails
from dpopt.problem.support import Support

if TYPE_CHECKING:
    from dpopt.problem.families.expectation import ExpectationTerm

__all__ = [
    "GIVE_A_SUPPORT",
    "ROW",
    "Asked",
    "Cut",
    "Decay",
    "Guarantee",
    "ObjectiveTerm",
    "Tail",
    "Term",
    "TermCheck",
    "Window",
    "pair_count",
    "require_function",
    "stated_function",
]

GIVE_A_SUPPORT = "give a support such as [support] type = 'integers', low = -100, high = 100"

ROW = 0  # of the only law that a problem has

Window = tuple[int, int] | None  # the lattice indices of a finite support; None for all points


def require_function(function: object, argument: str) -> None:
    """Refuse what is no function of the lattice index."""
    if not isinstance(function, LatticeFunction):
        raise InputError(argument, f"must be a LatticeFunction of the lattice index, not {function!r}")


def pair_count(shift: int, size: int) -> int:
    """The ordered pairs of different points, at most a shift apart, among `size` neighbours.

    >>> pair_count(2, 4), pair_count(9, 4)
    (10, 12)
    """
    longest = min(shift, size - 1)
    return longest * (2 * size - longest - 1)


def stated_function(function: LatticeFunction) -> list[dict[str, Any]]:
    """A function of (row, lattice index) as a certificate states it."""
    return [
        {"row": ROW, "start": function.start, "table": function.table, "left": function.left, "right": function.right}
    ]


class TermCheck(NamedTuple):
    """Whether a family holds, and a rational lower bound of the margin it holds by (negative when it does not)."""

    holds: bool
    margin: Fraction


class Cut(NamedTuple):
    """One member of a family: ``E function <= side``."""

    function: LatticeFunction
    side: Fraction

    def excess(self, pmf: Pmf) -> Fraction:
        """By how much a pmf misses it, exactly; negative where there is room."""
        return pmf.expectation(self.function) - self.side


class Tail(NamedTuple):
    """How fast a pmf on all integers may fall at most: ``p(k + period) >= e^-epsilon p(k)``, outward."""

    period: int
    epsilon: Fraction

    @property
    def rate(self) -> Fraction:
        """Decay a lattice step."""
        return self.epsilon / self.period

    @property
    def tails(self) -> Tails:
        """The fastest such tails that are private for sure."""
        ratio = 1 / exp_enclosure(self.epsilon).lower
        return Tails(self.period, ratio, ratio)


class Decay(NamedTuple):
    """What is expected of an optimum: ``p(k) ~ max(e^(-rate |k - centre|), floor)``.

    Where one family is `strict` (no pmf falls faster), the others' expectations do not count.
    """

    rate: float
    floor: float = 0.0
    is_strict: bool = False


class Asked(NamedTuple):
    """The question that a family stands in: its support, the linear part of its objective, all that constrains it."""

    support: Support
    cost: LatticeFunction
    terms: tuple[Term, ...]


class Guarantee(NamedTuple):
    """The privacy that is asked for: delta 0 for pure DP, None where it is the objective; shifts in lattice steps."""

    epsilon: Fraction
    delta: Fraction | None
    shift: int
    inside_window: bool = False


@dataclass(frozen=True)
class _Described:
    """What constraints and objectives alike tell about themselves."""

    @property
    def decay(self) -> Decay | None:
        """How an optimum is expected to fall off, if it says anything about that."""
        return None

    @property
    def guarantee(self) -> Guarantee | None:
        """The privacy that it asks for, if any."""
        return None

    @property
    def is_symmetric(self) -> bool:
        """Whether a pmf's mirror image about 0 does as well as the pmf, and folding a program in two is worth it."""
        return False

    def refuse(self, asked: Asked) -> None:
        """Raise `InputError` where no finite exact answer exists because of it, with the way out."""

    def row_count(self, size: int) -> int:
        """About how many rows it makes in a program over `size` points."""
        return 1


@dataclass(frozen=True)
class Term(_Described):
    """Base of the families of constraints."""

    is_linear: ClassVar[bool] = False  # whether the margin is linear in the pmf
    has_majorant: ClassVar[bool] = False  # whether `enforced` meets it for sure
    mirrors: ClassVar[bool] = False  # whether only symmetric pmfs meet it

    # --- what it means

    def check(self, pmf: Pmf, window: Window) -> TermCheck:
        """Check `pmf` exactly."""
        raise TypeError(f"{type(self).__name__} does not say how it is checked")

    def cuts(self, pmf: Pmf, window: Window) -> tuple[Any, ...]:
        """The witnesses that are worst at `pmf`, the worst first."""
        raise TypeError(f"{type(self).__name__} does not say which witnesses it has")

    def function(self, witness: Any) -> Cut:
        """The exact member of a witness, rounded so that it never claims more than the family does."""
        raise TypeError(f"{type(self).__name__} does not say what its witnesses mean")

    def stated(self) -> dict[str, Any]:
        """The rows that a certificate states for it where the constraint is not one of dpopt's own."""
        kind = type(self).__name__
        raise TypeError(f"a custom constraint must consist of expectation and zero terms, not {kind}")

    # --- how it is solved

    @property
    def expectations(self) -> tuple[ExpectationTerm, ...]:
        """The bounds on expectations that it consists of, where it consists of such."""
        return ()

    @property
    def reach(self) -> int:
        """How far from index 0 it has something to say that a few sensitivities do not cover."""
        return 0

    @property
    def tail(self) -> Tail | None:
        """How fast a pmf on all integers may fall, if it says so."""
        return None

    @property
    def zeros(self) -> frozenset[int]:
        """The indices at which it allows no mass."""
        return frozenset()

    @property
    def mean_bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """What it says about the mean in lattice steps, if it is a bound on the mean."""
        return None, None

    def tightened(self, by: Fraction) -> Self:
        """With this relative room less, so that what meets it meets the original strictly. Equalities stay."""
        return self

    # --- how a pmf is repaired

    def depth(self, size: int) -> float:
        """How many powers of e its tail falls over a core of `size` points."""
        return 0.0

    def enforced(self, weights: Sequence[int], *, strictness: Fraction, beyond: int) -> list[int]:
        """Integer weights that meet it, changed as little as possible, continued `beyond` points past either end."""
        return list(weights)

    @property
    def leaves_edges(self) -> bool:
        """Whether its slack is so small that only the edges of a pmf can use it (see `inside`)."""
        return False

    def inside(self, weights: Sequence[int]) -> list[int]:
        """Weights that meet it exactly but for the two edges."""
        return list(weights)

    def active(self, pmf: Pmf, first: int, last: int) -> list[LatticeFunction]:
        """Functions whose expectations vanish where its members that `pmf` nearly attains are attained."""
        return []

    @property
    def equalities(self) -> list[LatticeFunction]:
        """Functions whose expectations vanish at every pmf that meets it."""
        return []


@dataclass(frozen=True)
class ObjectiveTerm(_Described):
    """Base of the families of objectives."""

    maximise: ClassVar[bool] = False
    has_entropy: ClassVar[bool] = False

    def stated(self) -> dict[str, Any] | None:
        """What a certificate states for it where the objective is not one of dpopt's own; None where nothing can."""
        return None

    def value(self, pmf: Pmf) -> Enclosure:
        """The objective of `pmf`, enclosed."""
        raise TypeError(f"{type(self).__name__} does not say what its value is")

    @property
    def cost(self) -> LatticeFunction:
        """The part of the objective that is linear in the pmf."""
        return LatticeFunction()

    @property
    def is_symmetric(self) -> bool:
        return self.cost.is_even

    def refuse(self, asked: Asked) -> None:
        """A cost that falls without bound has no least expectation, unless a bounded moment holds it."""
        if asked.support.is_finite:
            return
        for side, name in enumerate(("left", "right")):
            price = self.cost.outward[side]
            if len(price) <= 1 or price[-1] > 0 or _is_held(side, len(price), asked.terms):
                continue
            why = "falls without bound, and no constraint holds it"
            if _is_held(side, len(price) - 1, asked.terms):
                why = "falls as fast as a bounded moment grows, so that mass may escape and no optimum need be attained"
            raise InputError(
                "", f"the cost {why} on the {name}: bound a moment that grows faster from above, or {GIVE_A_SUPPORT}"
            )


def _is_held(side: int, size: int, terms: Iterable[Term]) -> bool:
    """Whether a bounded moment grows faster on this side than a polynomial of so many coefficients falls.

    Then no mass escapes, and the optimum is attained. The moment itself must not fall on either side, where mass far
    out would pay for it.
    """
    for term in (bound for part in terms for bound in part.expectations):
        ends = term.of.outward
        for bound, sign in ((term.at_most, 1), (term.at_least, -1)):
            rises = all(len(end) <= 1 or sign * end[-1] > 0 for end in ends)
            if bound is not None and rises and len(ends[side]) > size:
                return True
    return False
