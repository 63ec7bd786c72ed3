"""What a constraint and an objective are to the checker: the whole of what reading, checks and bound ask of them.

Each has one file, in `families` or `objectives`, with a frozen class registered under its kebab name. The statement,
the checks and the bound are then written once, and no other file knows any of them. A class that gives a wrong answer
here makes a wrong proof: these files are trusted, and say why what they return is true.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, TypeVar

from dpopt.arithmetic import Enclosure
from dpopt.checker.lattice import Lattice
from dpopt.checker.law import Law
from dpopt.checker.reading import brief, read_type, reject
from dpopt.checker.reduced_cost import ReducedCost, Total

__all__ = [
    "FAMILIES",
    "OBJECTIVES",
    "Chain",
    "Enclosures",
    "Family",
    "Objective",
    "Setting",
    "Stated",
    "Witness",
    "family",
    "objective",
    "read_part",
]

Enclosures = Mapping[Fraction, Enclosure]  # of e^epsilon, for every epsilon that a part of the problem names


@dataclass(frozen=True)
class Setting:
    """What a part may know of the problem: the lattice, and the mean that the constraints fix."""

    lattice: Lattice
    fixed_mean: Callable[[], Fraction | None]


@dataclass(frozen=True)
class Chain:
    """The core ``low..high`` from whose ends the multipliers of a constraint's rows run out to infinity.

    The rows are p(k) <= e^epsilon p(k + shift), outward.
    """

    low: int
    high: int
    shift: int
    epsilon: Fraction


class Witness(Protocol):
    """A witness with its multiplier, already read and found to belong to its constraint or objective."""

    @property
    def key(self) -> Hashable:
        """What tells it from others of the same constraint: of two with one key the second is refused."""
        ...

    def add_to(self, cost: ReducedCost) -> None:
        """Add the multiplier times what the witness says of every feasible law."""
        ...


@dataclass(frozen=True)
class Stated:
    """What constraints and objectives have in common."""

    name: ClassVar[str] = ""

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        """The part of a problem with this data, in lattice indices."""
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """The type that the problem states."""
        return self.name

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Those whose exponential it needs."""
        return ()

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> Witness:
        """Read a witness, with its multiplier in units of 1/`one`, and refuse what does not belong here."""
        reject(where, f"must be absent: {self.kind!r} has no multipliers")


@dataclass(frozen=True)
class Family(Stated):
    """A constraint."""

    @classmethod
    def mean_of(cls, data: Mapping[str, Any], where: str) -> Fraction | None:
        """The mean, in data units, that a constraint with this data leaves as the only one; None if it leaves many."""
        return None

    @property
    def zeros(self) -> frozenset[int]:
        """The indices at which it sets the probability to 0."""
        return frozenset()

    def narrowed(self, alive: Sequence[int]) -> Sequence[int]:
        """Of the ascending indices of a finite support that may have mass, those to which it leaves some."""
        return alive

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        """By how much the law meets it, at least; raises a CertificateError where it does not."""
        raise NotImplementedError

    def chain(self, low: int, high: int, where: str) -> Chain:
        """The chain of its rows from a core outward."""
        reject(where, f"must be of a constraint whose rows run on to infinity; those of {self.kind!r} do not")


@dataclass(frozen=True)
class Objective(Stated):
    """An objective: minimised, unless it says otherwise."""

    maximise: ClassVar[bool] = False

    def value(self, law: Law, enclosures: Enclosures) -> Enclosure:
        """What it is at a law."""
        raise NotImplementedError

    def add_cost(self, cost: ReducedCost) -> None:
        """Add what it is at least, at every law, before any witness of its own."""

    def check_witnesses(self, witnesses: Sequence[Any], one: int) -> None:
        """Refuse witnesses of this objective that may not stand together."""

    def bound(self, total: Total, allowed: Sequence[int], linear: Callable[[], Fraction | None]) -> Fraction | None:
        """What no feasible law can beat; None if nothing is proved.

        Parameters
        ----------
        total : Total
            The reduced costs.
        allowed : sequence of int
            Those of the points of a finite support that may have mass, in units of 1/`total.unit`; not empty.
        linear : callable
            What ``constant + sum d p`` is at least.
        """
        return linear()


# --- the tables ----------------------------------------------------------------------------------------------------

FAMILIES: dict[str, type[Family]] = {}
OBJECTIVES: dict[str, type[Objective]] = {}

_Part = TypeVar("_Part", bound=Stated)


def family(name: str) -> Callable[[type[Family]], type[Family]]:
    """Register a class as the constraint of type `name`."""
    return _registered(FAMILIES, name)


def objective(name: str) -> Callable[[type[Objective]], type[Objective]]:
    """Register a class as the objective of type `name`."""
    return _registered(OBJECTIVES, name)


def read_part(
    table: Mapping[str, type[_Part]],
    custom: Callable[[str, object, str], _Part],
    data: object,
    where: str,
    setting: Setting,
    trusted: object,
    trusted_where: str,
) -> _Part:
    """A part of a problem by its type; one that the table does not have is what is stored of it, by `custom`."""
    kind = read_type(data, where)
    assert isinstance(data, Mapping)
    if kind in table:
        if trusted is not None:
            reject(trusted_where, f"must be absent: {kind!r} is not a custom type")
        return table[kind].read(data, where, setting)
    if trusted is None:
        reject(where, f"has the custom type {brief(kind)}, whose meaning must be given in {trusted_where}")
    return custom(kind, trusted, trusted_where)


def _registered(table: dict[str, type[_Part]], name: str) -> Callable[[type[_Part]], type[_Part]]:
    def register(part: type[_Part]) -> type[_Part]:
        part.name = name
        table[name] = part
        return part

    return register
