"""Pure differential privacy: ``p(i) <= e^epsilon p(j)`` for all points at most the sensitivity apart.

A witness is such a pair with a multiplier y >= 0. On all integers the rows run on: a chain completes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpopt.arithmetic import ball, floor_scaled
from dpopt.checker.effort import afford, gcd_work, product_work
from dpopt.checker.lattice import Lattice
from dpopt.checker.law import Law
from dpopt.checker.reading import MAX_POINTS, brief, read_epsilon, read_object, reject
from dpopt.checker.stated import Chain, Enclosures, Family, Setting, family
from dpopt.checker.sums import BITS, room, stretched, stretched_bits
from dpopt.checker.witness import Pairs, read_inequalities
from dpopt.errors import CertificateError
from dpopt.patience import patiently
from dpopt.work import STEP, Work


@family("pure-dp")
@dataclass(frozen=True)
class _PureDP(Family):
    lattice: Lattice
    epsilon: Fraction
    shift: int

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, setting: Setting) -> Self:
        read_object(data, where, ("type", "epsilon"), ("sensitivity", "boundary"))
        boundary, window = data.get("boundary", "exact"), setting.lattice.window
        if boundary not in ("exact", "window"):
            reject(f"{where}.boundary", f"must be 'exact' or 'window', not {brief(boundary)}")
        if window is not None and boundary == "exact":
            reject(where, f"{cls.name} is impossible on a finite support (an output beyond an edge tells inputs apart)")
        if window is None and boundary == "window":
            reject(f"{where}.boundary", "needs a finite support")
        epsilon = read_epsilon(data["epsilon"], f"{where}.epsilon")
        return cls(setting.lattice, epsilon, setting.lattice.shift(data, where))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        return (self.epsilon,)

    def margin(self, law: Law, enclosures: Enclosures) -> Fraction:
        """``epsilon - ln R`` rounded down, R the largest ratio of two masses at most the sensitivity apart.

        With tails it is enough to look at the core and that many points beyond either end: a pair further out moves
        inward by one period with its ratio unchanged. On all integers a zero is always beside a positive mass
        somewhere, and R is infinite.
        """
        beyond = self.shift if self.lattice.window is None else 0
        afford(ratios_work(law, beyond), "takes the largest ratio of two masses")
        weights = stretched(law, beyond)[0]
        if not all(weights):
            place = law.start - beyond + weights.index(0)
            raise CertificateError(f"the probability at index {place} is 0 but others are not: the ratio is infinite")
        top, bottom = weights[0], weights[0]
        for weight, smallest in zip(patiently(weights), _sliding_minimum(weights, self.shift), strict=True):
            if weight * bottom > top * smallest:
                top, bottom = weight, smallest
        if self.epsilon == 0 or top == bottom:
            if top > bottom:
                raise CertificateError(f"the probability ratio {brief(Fraction(top, bottom))} is above e^0 = 1")
            return Fraction(self.epsilon * (1 << BITS) // 1, 1 << BITS)
        # epsilon and R are rational and R is not 1, so epsilon - ln R is irrational and its floor is always found.
        ratio = Fraction(top, bottom)
        least = floor_scaled(lambda: ball(self.epsilon) - ball(ratio).log(), BITS)
        return room(Fraction(least, 1 << BITS), f"the privacy loss of a probability ratio {brief(ratio)}")

    def witness(self, data: Mapping[str, Any], where: str, one: int) -> Pairs:
        """``pairs`` of i, j and y."""
        return read_inequalities(data, where, self.kind, self._has, self.epsilon)

    def _has(self, i: int, j: int) -> bool:
        return 1 <= abs(i - j) <= self.shift and self.lattice.holds(i) and self.lattice.holds(j)

    def chain(self, low: int, high: int, where: str) -> Chain:
        """The chain of the rows p(k) <= e^epsilon p(k + m), m the sensitivity, on all integers."""
        if self.lattice.window is not None:
            reject(where, "must be of a constraint on an infinite support")
        if self.epsilon == 0:
            reject(where, "needs epsilon above 0: with ratio 1 its sums do not converge")
        if not self.shift <= high - low + 1 <= MAX_POINTS:
            points = brief(high - low + 1)
            reject(where, f"must have a core of {self.shift} to {MAX_POINTS} points, not {points}")
        return Chain(low, high, self.shift, self.epsilon)


def ratios_work(law: Law, beyond: int) -> Work:
    """Two products for every point, and the logarithm of the largest ratio."""
    bits = stretched_bits(law, beyond)
    points = len(law.weights) + 2 * beyond
    return Work(points * (4 * STEP + 2 * product_work(bits)) + gcd_work(bits) + 100 * product_work(bits))


def _sliding_minimum(values: Sequence[int], reach: int) -> Iterator[int]:
    """For every place the least value at most `reach` places away.

    >>> list(_sliding_minimum([3, 1, 4, 1, 5, 9], 1))
    [1, 1, 1, 1, 1, 5]
    """
    waiting: deque[int] = deque()  # places of ever larger values: the first is the least of the window
    ahead = 0
    for i in range(len(values)):
        while ahead <= min(i + reach, len(values) - 1):
            while waiting and values[waiting[-1]] >= values[ahead]:
                waiting.pop()
            waiting.append(ahead)
            ahead += 1
        while waiting[0] < i - reach:
            waiting.popleft()
        yield values[waiting[0]]
