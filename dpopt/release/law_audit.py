"""An audit of a mechanism by its exact law: the largest privacy loss over the outcomes of two neighbouring inputs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, perm
from typing import Any, NamedTuple

from dpopt.arithmetic import Enclosure, Number, exact, log_enclosure
from dpopt.errors import InputError
from dpopt.record import Record
from dpopt.release.selection_law import SelectionLaw
from dpopt.text import decimal_text

__all__ = ["LawAudit", "audit_laws"]

_WORK, _MOST_WORK = 10**5, 10**6  # steps of a probability, about 10 microseconds each: a second, and ten of them
_NEGLIGIBLE = 50  # e-foldings of a gap: what lies beyond has less than 2^-64

Law = Mapping[Hashable, Enclosure | Fraction | int] | SelectionLaw


@dataclass(frozen=True, repr=False)
class LawAudit(Record):
    """What two laws show about a claimed epsilon.

    Parameters
    ----------
    epsilon : Fraction
        The claim.
    loss : Enclosure
        The largest ``|ln(P / P')|`` over the outcomes that both laws give mass, of those looked at.
    worst : object
        An outcome with that loss, or one that only one of the laws gives mass.
    one_sided : bool
        There is an outcome of the latter kind: no finite epsilon holds.
    missing : tuple of Fraction
        The mass that the law and its neighbour leave out for certain: what the outcomes not looked at have. A
        violation that is found stays one; among these outcomes there may be worse ones.
    """

    epsilon: Fraction
    loss: Enclosure
    worst: Hashable
    one_sided: bool
    missing: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))

    @property
    def rejected(self) -> bool:
        """Whether the claim is proved wrong. That it is not proves nothing about outcomes and inputs not looked at."""
        return self.one_sided or self.loss.lower > self.epsilon

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        loss = "infinite" if self.one_sided else str(self.loss)
        verdict = "rejected" if self.rejected else "not rejected"
        found = f"epsilon = {self.epsilon} {verdict}: largest loss {loss} at {self.worst}"
        if not any(self.missing):
            return found
        here, there = (decimal_text(mass, 3, up=None) for mass in self.missing)
        return f"{found}; not looked at: mass {here} of the law, {there} of its neighbour"


def audit_laws(law: Law, neighbour: Law, epsilon: Number) -> LawAudit:
    """Compare the laws of a mechanism at two neighbouring inputs with the epsilon that it claims.

    Parameters
    ----------
    law, neighbour : mapping of outcome to probability, or SelectionLaw
        Exact numbers or enclosures. A law is all of it, and what it does not list has probability 0, unless the upper
        ends of its probabilities sum to less than 1. Then it is a part (of infinitely many outcomes, say): it must
        list every outcome that the other law gives mass, with 0 where that is what is meant. A `SelectionLaw` beside a
        mapping is asked about the outcomes of that one. Two of them are compared on the outcomes whose gaps are all
        below as many units as a second or few allow, and `missing` says how much mass the others have; for another
        bound pass ``law.table(below)`` of both.
    epsilon : number
        The claim, at least 0.

    Raises
    ------
    InputError
        A law is no mapping, has no mass or more than 1, or is a part that leaves an outcome of the other open; two
        selection laws differ in k or in the number of items, or have too many outcomes.

    Examples
    --------
    Randomised response that tells the truth three times out of four has epsilon = ln 3 = 1.0986:

    >>> truth = {"yes": Fraction(3, 4), "no": Fraction(1, 4)}
    >>> lie = {"yes": Fraction(1, 4), "no": Fraction(3, 4)}
    >>> audit = audit_laws(truth, lie, 1)
    >>> audit.rejected, audit.worst, round(float(audit.loss), 9)
    (True, 'yes', 1.098612289)
    >>> audit_laws(truth, lie, "1.1").rejected
    False

    Noisy top-k at inputs that differ by 1 in every score, up and down: the claim that made it, and half of that.

    >>> from dpopt.release.selection_law import selection_law
    >>> laws = [selection_law(scores, 1, epsilon=2, resolution="1/2") for scores in ([2, 0, 0], [1, 1, 1])]
    >>> audit_laws(*laws, 2).rejected
    False
    >>> audit = audit_laws(*laws, 1)
    >>> audit.rejected, audit.worst, round(float(audit.loss), 9), max(audit.missing) < 1e-22
    (True, Outcome(ids=(0,), gaps=(4,)), 2.0, True)
    """
    claim = exact(epsilon, "epsilon")
    if claim < 0:
        raise InputError("epsilon", f"must be at least 0, not {claim}")
    here, there = (_Law.of(found, name) for found, name in zip(_listed(law, neighbour), _NAMES, strict=True))
    loss, worst = Enclosure(Fraction(0), Fraction(0)), next(iter(here.chances))
    for outcome in dict.fromkeys([*here.chances, *there.chances]):
        chances = here.chance(outcome), there.chance(outcome)
        if all(chance.upper == 0 for chance in chances):
            continue
        if any(chance.upper == 0 for chance in chances):
            return LawAudit(claim, loss, outcome, one_sided=True, missing=(here.missing, there.missing))
        found = _loss(*chances)
        if found.lower > loss.lower:
            worst = outcome
        loss = Enclosure(max(loss.lower, found.lower), max(loss.upper, found.upper))
    return LawAudit(claim, loss, worst, one_sided=False, missing=(here.missing, there.missing))


_NAMES = ("law", "neighbour")
_Listed = Mapping[Hashable, Enclosure | Fraction | int]


def _listed(law: Law, neighbour: Law) -> tuple[_Listed, _Listed]:
    """Both laws outcome by outcome."""
    if isinstance(law, SelectionLaw) and isinstance(neighbour, SelectionLaw):
        outcomes = list(law.outcomes(_bound(law, neighbour)))
        return _asked(law, outcomes), _asked(neighbour, outcomes)
    if isinstance(law, SelectionLaw):
        return _asked(law, _outcomes(neighbour, "neighbour")), neighbour  # type: ignore[return-value]
    if isinstance(neighbour, SelectionLaw):
        return law, _asked(neighbour, _outcomes(law, "law"))
    return law, neighbour


def _bound(law: SelectionLaw, neighbour: SelectionLaw) -> int:
    """The number of units that gaps stay below."""
    for what, here, there in (("k", law.k, neighbour.k), ("items", len(law.values), len(neighbour.values))):
        if here != there:
            raise InputError("neighbour", f"must select as the law does: {what} {here}, not {there}")
    items, k = len(law.values), law.k
    step = perm(items, k) * (items - k) * 2**k * items**2  # for gaps of one value each
    if step > _MOST_WORK:
        many = f"has too many outcomes with {items} items and k = {k}"
        raise InputError("law", f"{many}: pass the chances of those to look at, in a dict")
    most = max(max(here.values) - min(here.values) + ceil(_NEGLIGIBLE / here.rate) for here in (law, neighbour))
    below = 1
    while below < most and step * (below + 1) ** k <= _WORK:
        below += 1
    return below


def _outcomes(listed: object, argument: str) -> list[Any]:
    """The outcomes of a law that is compared with a selection's."""
    found = list(listed) if isinstance(listed, Mapping) else []  # what is no mapping is refused when it is read
    for outcome in found:
        if not (isinstance(outcome, tuple) and len(outcome) == 2):
            raise InputError(argument, f"must list outcomes (ids, gaps) beside a SelectionLaw, not {outcome!r}")
    return found


def _asked(law: SelectionLaw, outcomes: list[Any]) -> _Listed:
    return {outcome: law.probability(*outcome) for outcome in outcomes}


class _Law(NamedTuple):
    """A law as it was read."""

    argument: str
    chances: dict[Hashable, Enclosure]
    missing: Fraction

    @classmethod
    def of(cls, law: Law, argument: str) -> _Law:
        """Every probability, and what they leave out."""
        if not isinstance(law, Mapping):
            raise InputError(argument, f"must be a mapping from outcomes to probabilities, not {law!r}")
        if not law:
            raise InputError(argument, "must hold at least one outcome")
        chances = {outcome: _read(chance, f"{argument}[{outcome!r}]") for outcome, chance in law.items()}
        least, most = (sum((chance[end] for chance in chances.values()), Fraction(0)) for end in (0, 1))
        if most == 0:
            raise InputError(argument, "must give some outcome a probability above 0")
        if least > 1:
            raise InputError(
                argument, f"must have probabilities that sum to at most 1, not {decimal_text(least, 6, up=True)}"
            )
        return cls(argument, chances, max(1 - most, Fraction(0)))

    def chance(self, outcome: Hashable) -> Enclosure:
        """0 for an outcome that is not listed, where all is."""
        if outcome not in self.chances and self.missing:
            raise InputError(
                self.argument,
                f"must list {outcome!r} as the other law does (with 0 if it is impossible), "
                f"since mass {decimal_text(self.missing, 3, up=None)} is missing",
            )
        return self.chances.get(outcome, Enclosure(Fraction(0), Fraction(0)))


def _read(chance: object, argument: str) -> Enclosure:
    ends = chance if isinstance(chance, Enclosure) else (chance, chance)
    found = Enclosure(*(exact(end, argument) for end in ends))
    if not 0 <= found.lower <= found.upper <= 1 or (found.lower == 0 and found.upper > 0):
        raise InputError(argument, f"must be a probability known to be 0 or positive, not {chance}")
    return found


def _loss(here: Enclosure, there: Enclosure) -> Enclosure:
    """``|ln(here / there)|``."""
    least, most = log_enclosure(here.lower / there.upper), log_enclosure(here.upper / there.lower)
    found = Enclosure(least.lower, most.upper)
    if found.lower >= 0:
        return found
    if found.upper <= 0:
        return Enclosure(-found.upper, -found.lower)
    return Enclosure(Fraction(0), max(-found.lower, found.upper))
