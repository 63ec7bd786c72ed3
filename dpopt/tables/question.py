"""What an optimal key table has to be, stated and checked on integers.

A `Question` holds nothing but integers and rationals: which points need a key, the second moment that a variance
bound allows, and the hockey-stick sums that (epsilon, delta) allows. Solvers see offsets and floats; whether a table
is right is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpopt.pmf import Pmf
from dpopt.privacy.divergence import worst_hockey_stick

__all__ = ["Privacy", "Question", "TableCheck"]


@dataclass(frozen=True)
class TableCheck:
    """One exact finding on a table; the margin is positive when it holds with room (0 for an equality that holds)."""

    name: str
    holds: bool
    margin: Fraction


@dataclass(frozen=True)
class Privacy:
    """(epsilon, delta) for every shift up to `shift`, with both ends of the enclosure of e^epsilon.

    What holds with the lower end holds with e^epsilon: tables are checked with it. What is excluded with the upper
    end is excluded with e^epsilon: bounds and refutations use that one. The relative distance is 2^-128.
    """

    epsilon: Fraction
    delta: Fraction
    shift: int
    factor: Fraction
    factor_above: Fraction

    @property
    def signed_shifts(self) -> tuple[int, ...]:
        """1, -1, 2, -2, ...: both directions."""
        return tuple(sign * s for s in range(1, self.shift + 1) for sign in (1, -1))


@dataclass(frozen=True)
class Question:
    """The constraints on the counts of a key table.

    Parameters
    ----------
    ideal : Pmf
        Finite, with step 1. A point of mass 0 gets no key; every other point gets at least one (full support).
    key_size : int
        The counts sum to it.
    second_moment : int
        The largest sum of z^2 n_z: floor(V K). With bias 0 this is "variance at most V", exactly.
    privacy : Privacy or None
    """

    ideal: Pmf
    key_size: int
    second_moment: int
    privacy: Privacy | None = None

    @property
    def points(self) -> range:
        """The noise values."""
        return range(self.ideal.start, self.ideal.end + 1)

    @property
    def wanted(self) -> tuple[bool, ...]:
        """Which points must have a key."""
        return tuple(w > 0 for w in self.ideal.weights)

    @property
    def largest_count(self) -> int:
        """No count can be larger: every other wanted point has a key."""
        return self.key_size - (sum(self.wanted) - 1)

    def floors(self) -> list[int]:
        """floor(p K), at least 1 where a key is needed: what offsets are counted from."""
        total = sum(self.ideal.weights)
        return [max(w * self.key_size // total, 1) if w else 0 for w in self.ideal.weights]

    def moments(self, counts: Sequence[int]) -> tuple[int, int, int]:
        """Sum of n, of z n and of z^2 n."""
        pairs = list(zip(self.points, counts, strict=True))
        return sum(counts), sum(z * n for z, n in pairs), sum(z * z * n for z, n in pairs)

    def checks(self, counts: Sequence[int]) -> tuple[TableCheck, ...]:
        """Every constraint on the counts, exactly."""
        total, first, second = self.moments(counts)
        key_size = self.key_size
        support = all((n >= 1) if needed else (n == 0) for n, needed in zip(counts, self.wanted, strict=True))
        room = Fraction(min(n for n, needed in zip(counts, self.wanted, strict=True) if needed) - 1, key_size)
        found = [
            TableCheck("counts sum to the key size", total == key_size, Fraction(-abs(total - key_size))),
            TableCheck("full support", support, room if support else Fraction(-1, key_size)),
            TableCheck("bias 0", first == 0, Fraction(-abs(first), key_size)),
            TableCheck("variance", second <= self.second_moment, Fraction(self.second_moment - second, key_size)),
        ]
        if self.privacy is not None and min(counts) >= 0 and any(counts):
            reached = worst_hockey_stick(Pmf(self.ideal.start, counts), self.privacy.factor, self.privacy.shift)
            margin = self.privacy.delta - reached
            found.append(TableCheck("approx-dp", margin >= 0, margin))
        return tuple(found)

    def holds(self, counts: Sequence[int]) -> bool:
        """Whether a table answers the question."""
        return min(counts) >= 0 and all(check.holds for check in self.checks(counts))

    def excluded(self, counts: Sequence[int]) -> bool:
        """Whether a table is proved not to answer; neither this nor `holds` between the two ends of e^epsilon."""
        if self.privacy is None or self.holds(counts):
            return not self.holds(counts)
        return not replace(self, privacy=replace(self.privacy, factor=self.privacy.factor_above)).holds(counts)

    def refutation(self) -> str | None:
        """Why no table at all can answer, where a line of arithmetic shows it; None when none does.

        Full support gives every wanted point a key: K is at least their number, the second moment at least that of
        one key each (points at 0 take the rest at no cost), and an end point has a mass of at least 1/K that no
        epsilon hides. Bias 0 needs points on both sides, or 0 alone.
        """
        values = [z for z, needed in zip(self.points, self.wanted, strict=True) if needed]
        size = self.key_size
        if size < len(values):
            return f"full support needs at least {len(values)} keys, and the key size is {size}"
        if values != [0] and not values[0] < 0 < values[-1]:
            return "a bias of 0 needs noise on both sides of 0"
        if (least := sum(z * z for z in values)) > self.second_moment:
            return f"full support needs a second moment of {least}/{size}, and {self.second_moment}/{size} is allowed"
        if self.privacy is not None:
            reach = self.privacy.shift
            ends = Fraction(max(sum(self.wanted[:reach]), sum(self.wanted[-reach:])), size)
            if self.privacy.delta < ends:
                return f"delta is at least {ends} with full support: the end points have a key each"
            if reason := _chain(self.points, self.privacy):
                return reason
        return None


def _chain(points: range, privacy: Privacy) -> str | None:
    """The chain bound at sensitivity 1: no pmf on these points has a smaller delta, whatever the key size.

    T_t <= delta + e^epsilon T_{t+1} for the upper tails, the same for the lower ones; the two chains that meet
    between the points add up to 1 <= delta (sum of both geometric sums). Any shift up to m includes the shift 1.
    """
    size, factor = len(points), privacy.factor_above
    upper = [Fraction(0)]
    for _ in range(size):
        upper.append(1 + factor * upper[-1])
    best = max(1 / (upper[t] + upper[size - t]) for t in range(size + 1))
    if privacy.delta < best:
        return f"no pmf on {size} consecutive points has a delta below {float(best):.9g}"
    return None
