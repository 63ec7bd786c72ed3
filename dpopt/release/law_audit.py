"""An audit of a mechanism by its exact law: the largest privacy loss over the outcomes of two neighbouring inputs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpopt.arithmetic import Enclosure, Number, as_enclosure, ball, exact
from dpopt.errors import InputError

__all__ = ["LawAudit", "audit_laws"]

Law = Mapping[Hashable, Enclosure | Fraction | int]


@dataclass(frozen=True)
class LawAudit:
    """What two laws show about a claimed epsilon.

    Parameters
    ----------
    epsilon : Fraction
        The claim.
    loss : Enclosure
        The largest ``|ln(P / P')|`` over the outcomes that both laws give mass.
    worst : object
        An outcome with that loss, or one that only one of the laws gives mass.
    one_sided : bool
        There is an outcome of the latter kind: no finite epsilon holds.
    """

    epsilon: Fraction
    loss: Enclosure
    worst: Hashable
    one_sided: bool

    @property
    def rejected(self) -> bool:
        """Whether the claim is proved wrong. That it is not proves nothing about outcomes and inputs not looked at."""
        return self.one_sided or self.loss.lower > self.epsilon

    def __str__(self) -> str:
        loss = "infinite" if self.one_sided else str(self.loss)
        verdict = "rejected" if self.rejected else "not rejected"
        return f"epsilon = {self.epsilon} {verdict}: largest loss {loss} at {self.worst}"


def audit_laws(law: Law, neighbour: Law, epsilon: Number) -> LawAudit:
    """Compare the laws of a mechanism at two neighbouring inputs with the epsilon that it claims.

    Parameters
    ----------
    law, neighbour : mapping of outcome to probability
        Exact numbers or enclosures. An outcome that is missing has probability 0.
    epsilon : number
        The claim, at least 0.

    Examples
    --------
    Randomised response that tells the truth three times out of four has epsilon = ln 3 = 1.0986:

    >>> truth = {"yes": Fraction(3, 4), "no": Fraction(1, 4)}
    >>> lie = {"yes": Fraction(1, 4), "no": Fraction(3, 4)}
    >>> print(audit_laws(truth, lie, 1))
    epsilon = 1 rejected: largest loss 1.09861228867 at yes
    >>> audit_laws(truth, lie, "1.1").rejected
    False
    """
    claim = exact(epsilon, "epsilon")
    if claim < 0:
        raise InputError("epsilon", f"must be at least 0, not {claim}")
    if not law or not neighbour:
        raise InputError("neighbour" if law else "law", "must hold at least one outcome")
    loss, worst = Enclosure(Fraction(0), Fraction(0)), next(iter(law))
    for outcome in dict.fromkeys([*law, *neighbour]):
        here, there = _read(law, outcome), _read(neighbour, outcome)
        if here.upper == 0 and there.upper == 0:
            continue
        if here.upper == 0 or there.upper == 0:
            return LawAudit(claim, loss, outcome, one_sided=True)
        found = _loss(here, there)
        if found.lower > loss.lower:
            worst = outcome
        loss = Enclosure(max(loss.lower, found.lower), max(loss.upper, found.upper))
    return LawAudit(claim, loss, worst, one_sided=False)


def _read(law: Law, outcome: Hashable) -> Enclosure:
    chance = law.get(outcome, 0)
    found = chance if isinstance(chance, Enclosure) else Enclosure(*2 * (exact(chance, f"law[{outcome!r}]"),))
    if not 0 <= found.lower <= found.upper <= 1 or (found.lower == 0 and found.upper > 0):
        raise InputError(f"law[{outcome!r}]", f"must be a probability known to be 0 or positive, not {chance}")
    return found


def _loss(here: Enclosure, there: Enclosure) -> Enclosure:
    """``|ln(here / there)|``."""
    ends = [ball(here.lower / there.upper).log(), ball(here.upper / there.lower).log()]
    found = as_enclosure(ends[0].union(ends[1]))
    if found.lower >= 0:
        return found
    if found.upper <= 0:
        return Enclosure(-found.upper, -found.lower)
    return Enclosure(Fraction(0), max(-found.lower, found.upper))
