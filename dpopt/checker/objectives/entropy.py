"""The entropy in nats, maximised. Its witness is a law q: H(p) <= E_p[-ln q], and the best q is eliminated.

For reduced costs d with ``0 >= constant + sum d p``, the law q proportional to e^-d gives
``H(p) <= sum d p + ln(sum e^-d) <= ln(sum e^-d) - constant`` (Gibbs).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dpopt.arithmetic import Enclosure, ball, floor_scaled
from dpopt.checker.effort import afford, product_work
from dpopt.checker.law import Law
from dpopt.checker.reading import read_object
from dpopt.checker.reduced_cost import Total
from dpopt.checker.stated import Enclosures, Objective, Setting, objective
from dpopt.checker.sums import BITS
from dpopt.patience import patiently
from dpopt.work import STEP, Work

if TYPE_CHECKING:
    from flint import arb

_FARTHEST = 4096  # nats


def balls_work(count: int, bits: int) -> Work:
    """`count` logarithms or exponentials of numbers of so many bits, at about their precision and 64 bits more.

    A number this long is at most about as near to a multiple of 2^-64 as its length says, so that two rounds decide.
    """
    return Work(2 * count * (20 * STEP + bits + 10 * product_work(bits + 4 * BITS)), count * 120)


@objective("max-entropy")
@dataclass(frozen=True)
class _MaxEntropy(Objective):
    maximise: ClassVar[bool] = True

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type",))
        setting.lattice.needs_window(cls.name, where)
        return cls()

    def value(self, law: Law, enclosures: Enclosures) -> Enclosure:
        """``ln W - sum(w ln w) / W`` to 2^-64. It is 0 for a single point and irrational for any other pmf."""
        weights = [w for w in law.weights if w]
        if len(weights) == 1:
            return Enclosure(Fraction(0), Fraction(0))
        total, counts = sum(weights), Counter(weights)  # mirror images share a logarithm
        afford(balls_work(len(counts), total.bit_length()), f"takes the logarithms of {len(counts)} weights")

        def compute() -> arb:
            balls = ((ball(w), n) for w, n in patiently(counts.items()) if w > 1)
            return ball(total).log() - sum((b * n * b.log() for b, n in balls), ball(0)) / ball(total)

        low = floor_scaled(compute, BITS)
        return Enclosure(Fraction(low, 1 << BITS), Fraction(low + 1, 1 << BITS))

    def bound(self, total: Total, allowed: Sequence[int], linear: Callable[[], Fraction | None]) -> Fraction:
        """``ln(sum exp(-d)) - constant`` rounded up to 2^-64: above the entropy of every feasible pmf.

        By Lindemann and Weierstrass it is irrational unless a single point is allowed. A point whose term is below
        e^-4096 of the largest counts as much as that: the bound stays one, and no precision runs away to see the rest.
        """
        least = min(allowed)
        most = least + _FARTHEST * total.unit
        offset = -Fraction(least, total.unit) - total.constant  # taken out of the sum: its largest term is 1
        if len(allowed) == 1:
            return Fraction(-(-offset * (1 << BITS) // 1), 1 << BITS)
        longest = total.unit.bit_length() + offset.denominator.bit_length()
        afford(balls_work(len(allowed), longest), f"takes the exponentials of {len(allowed)} reduced costs")

        def compute() -> arb:
            unit = ball(-total.unit)
            return (
                ball(offset)
                + sum(((ball(min(v, most) - least) / unit).exp() for v in patiently(allowed)), ball(0)).log()
            )

        return Fraction(floor_scaled(compute, BITS) + 1, 1 << BITS)
