"""Approximate differential privacy: for every shift, ``sum over k of (p(k) - e^epsilon p(k - s))+ <= delta``.

A witness is a shift with an event's weights in 0..y: ``sum_k w(k) (p(k) - e^epsilon p(k - s)) <= y delta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpopt.checker.law import Law
from dpopt.checker.reading import brief, read_epsilon, read_object, read_rational, reject
from dpopt.checker.stated import Enclosures, Family, Setting, family
from dpopt.checker.sums import room, short, worst_hockey_stick
from dpopt.checker.witness import Event, read_event


@family("approx-dp")
@dataclass(frozen=True)
class _ApproxDP(Family):
    epsilon: Fraction
    delta: Fraction
    shift: int

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type", "epsilon", "delta"), ("sensitivity",))
        epsilon = read_epsilon(data["epsilon"], f"{where}.epsilon")
        delta = read_rational(data["delta"], f"{where}.delta")
        if not 0 <= delta <= 1:
            reject(f"{where}.delta", f"must lie in 0..1, not {brief(delta)}")
        return cls(epsilon, delta, setting.lattice.shift(data, where))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        return (self.epsilon,)

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        """delta less the largest divergence, which E_lo makes no smaller than it is."""
        divergence = worst_hockey_stick(law, enclosures[self.epsilon].lower, self.shift)
        return short(room(self.delta - divergence, "the hockey-stick divergence")).lower

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> Event:
        """``shift``, the multiplier ``y``, and the event's weights from ``start``, constant outside."""
        return read_event(data, where, "y", self.shift, self.epsilon, self.delta)
