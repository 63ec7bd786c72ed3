"""The least delta at an epsilon: the largest hockey-stick divergence over all shifts, minimised.

A worst-case objective. A witness is a shift with an event and a share theta of the whole: for every delta that a law
has, ``theta delta >= sum_k w(k) (p(k) - e^epsilon p(k - s))`` with weights w in 0..theta. The shares of all witnesses
sum to at most 1; what is left of 1 is the share of the member ``delta >= 0``, which needs no witness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpopt.arithmetic import Enclosure
from dpopt.checker.law import Law
from dpopt.checker.reading import read_epsilon, read_object, reject
from dpopt.checker.stated import Enclosures, Objective, Setting, objective
from dpopt.checker.sums import short, worst_hockey_stick
from dpopt.checker.witness import Event, read_event


@objective("min-delta")
@dataclass(frozen=True)
class _MinDelta(Objective):
    epsilon: Fraction
    shift: int

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type", "epsilon"), ("sensitivity",))
        setting.lattice.needs_window(cls.name, where)
        return cls(read_epsilon(data["epsilon"], f"{where}.epsilon"), setting.lattice.shift(data, where))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        return (self.epsilon,)

    def value(self, law: Law, enclosures: Enclosures) -> Enclosure:
        """The divergence, between those that E_hi and E_lo give."""
        ends = enclosures[self.epsilon]
        lower, upper = (short(worst_hockey_stick(law, end, self.shift)) for end in (ends.upper, ends.lower))
        return Enclosure(lower.lower, upper.upper)

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> Event:
        """``shift``, the share ``theta``, and the event's weights from ``start``, constant outside."""
        return read_event(data, where, "theta", self.shift, self.epsilon, Fraction(0))

    def check_witnesses(self, witnesses: Sequence[Event], one: int) -> None:
        """The shares are those of a mixture."""
        if sum(event.most for event in witnesses) > one:
            reject("witnesses", f"have shares theta of {self.kind!r} with a sum above 1")
