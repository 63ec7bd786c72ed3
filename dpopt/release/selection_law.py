"""The exact law of noisy top-k with gap, for tests and audits of small cases: every probability is an enclosure.

The reference is the gap paper's Algorithm 2 (arXiv 2308.08057): ``s_i = b_i + E_i`` with the rounded score b_i and an
exponential E_i of rate x, in units of the resolution; the k largest in order, each gap to the next one rounded down.
A cell ``floor(s_i)`` is b_i plus a geometric number, the remainders come in a uniformly random order independent of
all cells, and an outcome fixes the winners' cells but for the cell of the (k+1)-th item and the carries of the gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import permutations, product
from typing import Any, NamedTuple

from flint import arb, arb_poly, fmpq, fmpq_poly

from dpopt.arithmetic import Enclosure, Number, ball, enclosed, exact, exact_integer
from dpopt.errors import InputError
from dpopt.reading import read_integers
from dpopt.record import Record
from dpopt.release.scores import read_scores
from dpopt.release.selection_design import SelectionDesign

__all__ = ["Fit", "Outcome", "SelectionLaw", "selection_law"]

_MOST_ITEMS = 12  # an outcome sums over the subsets of carries and the powers of every other item
_LEAST_EXPONENT = 8_000  # e^-8000 times the number of terms is below 2^-8192: what is smaller is only bounded
_NEXT_TO_NOTHING = Enclosure(Fraction(0), Fraction(1, 1 << 8192))
_LEAST_EXPECTED = 5  # draws, in a cell of a chi-square test


class Outcome(NamedTuple):
    """What is released: the selected items in order, and the gap of each to the next one in units."""

    ids: tuple[int, ...]
    gaps: tuple[int, ...]


class _Part(NamedTuple):
    """What has the probability ``(1 - e^-x)^(k+1) e^(-x start)`` times a sum over the cells of the (k+1)-th item."""

    start: int  # units of noise that its first term takes
    depths: tuple[int, ...]  # how far that cell is above the other scores
    carries: tuple[int, ...]


class Fit(NamedTuple):
    """Pearson's chi-square of draws against a law, and the chance that the right law does as badly."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, repr=False)
class SelectionLaw(Record):
    """The law of the outcomes of a noisy top-k with gap.

    Parameters
    ----------
    values : tuple of int
        The scores in units of the resolution, at most 12.
    k : int
        At least 1 and less than the number of scores.
    rate : Fraction
        x of the geometric noise, in one unit; positive.

    Raises
    ------
    InputError
        A parameter is out of range, or an outcome asked for is none.

    Examples
    --------
    >>> law = SelectionLaw((2, 0, 0), 1, Fraction(1, 4))
    >>> round(float(law.probability([0], [1])), 12)
    0.090042770166
    >>> round(float(law.chance_of([0])), 12)
    0.516095820678
    """

    values: tuple[int, ...]
    k: int
    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_integers(self.values, "values"))
        object.__setattr__(self, "k", exact_integer(self.k, "k", at_least=1))
        object.__setattr__(self, "rate", exact(self.rate, "rate"))
        if not self.k < len(self.values) <= _MOST_ITEMS:
            raise InputError(
                "values", f"must be more than k = {self.k} and at most {_MOST_ITEMS}, not {len(self.values)}"
            )
        if self.rate <= 0:
            raise InputError("rate", f"must be positive, not {self.rate}")

    def outcomes(self, below: int) -> Iterator[Outcome]:
        """Every outcome whose gaps are all less than `below` units."""
        most = exact_integer(below, "below", at_least=1)
        for ids in permutations(range(len(self.values)), self.k):
            for gaps in product(range(most), repeat=self.k):
                yield Outcome(ids, gaps)

    def table(self, below: int) -> dict[Outcome, Enclosure]:
        """The probability of every outcome whose gaps are all less than `below` units."""
        return {outcome: self.probability(*outcome) for outcome in self.outcomes(below)}

    def probability(self, ids: Sequence[int], gaps: Sequence[int]) -> Enclosure:
        """The probability of this outcome; one below ``2^-8192`` is given as between 0 and that.

        Parameters
        ----------
        ids : sequence of int
            k different items, the largest first.
        gaps : sequence of int
            In units of the resolution, at least 0.
        """
        order = self._ids(ids)
        steps = read_integers(gaps, "gaps", at_least=0)
        if len(steps) != self.k:
            raise InputError("gaps", f"must be k = {self.k} integers, not {len(steps)}")
        parts = list(self._parts(order, steps))
        if self.rate * min(part.start for part in parts) > _LEAST_EXPONENT:  # each is at most e^(-x start)
            return _NEXT_TO_NOTHING
        return enclosed(lambda: sum(map(self._of_part, parts), arb(0)))

    def _parts(self, ids: tuple[int, ...], gaps: tuple[int, ...]) -> Iterator[_Part]:
        """An outcome by its (k+1)-th item and the carries of its gaps."""
        others = [item for item in range(len(self.values)) if item not in ids]
        for following, carries in product(others, product((0, 1), repeat=self.k)):
            rest = [self.values[item] for item in others if item != following]
            scores = [*(self.values[item] for item in ids), self.values[following]]
            above = [sum(gaps[i:]) + sum(carries[i:]) for i in range(self.k)] + [0]  # cells over that of `following`
            least = max([*rest, *(score - up for score, up in zip(scores, above, strict=True))])
            start = sum(least + up - score for score, up in zip(scores, above, strict=True))
            yield _Part(start, tuple(least - value for value in rest), carries)

    def _of_part(self, part: _Part) -> arb:
        lead = ball(-self.rate * part.start).exp() * (1 - self._power(1)) ** (self.k + 1)
        return lead * self._sum_over_cells(part.depths, part.carries)

    def _sum_over_cells(self, depths: tuple[int, ...], carries: tuple[int, ...]) -> arb:
        """The sum over the cells T of the (k+1)-th item, from the least one on, relative to its first term's lead.

        With ``w = e^(-x (T - least))`` another item lies in a lower cell with probability ``1 - a w``, and in the same
        cell with ``a w (1 - e^-x)``; there its remainder has to be below u, the remainder of the (k+1)-th item.
        """
        same = 1 - self._power(1)
        by_tied = [arb_poly([1])]  # polynomials in w, by the number of items in the same cell
        for depth in depths:
            a = self._power(depth)
            lower, equal = arb_poly([1, -a]), arb_poly([0, a * same])
            grown = [arb_poly([0])] * (len(by_tied) + 1)
            for tied, polynomial in enumerate(by_tied):
                grown[tied] = grown[tied] + polynomial * lower
                grown[tied + 1] = grown[tied + 1] + polynomial * equal
            by_tied = grown
        total = arb(0)
        for tied, polynomial in enumerate(by_tied):
            weight = ball(_chance_of_carries(carries, tied))
            for power, coefficient in enumerate(polynomial.coeffs(), self.k + 1):
                total += weight * coefficient / (1 - self._power(power))
        return total

    def _power(self, exponent: int) -> arb:
        """``e^(-x exponent)``."""
        return ball(-self.rate * exponent).exp()

    def chance_of(self, ids: Sequence[int]) -> Enclosure:
        """The probability that these items are selected in this order, whatever the gaps; bounded where next to 0."""
        order = self._ids(ids)
        least, most = self.values[order[0]], 0  # an item m below a later one is ahead of it with e^(-x m) / 2
        for item in order[1:]:
            least, most = min(least, self.values[item]), max(most, self.values[item] - least)
        most = max(most, *(value - least for item, value in enumerate(self.values) if item not in order))
        if self.rate * most > _LEAST_EXPONENT:
            return _NEXT_TO_NOTHING
        return enclosed(lambda: self._chance_of(order))

    def _chance_of(self, ids: tuple[int, ...]) -> arb:
        """P(s_1 > s_2 > ... > all others), integrated between neighbouring scores, where all is polynomial."""
        outside = [value for item, value in enumerate(self.values) if item not in ids]
        levels = [value for value in self._levels if value >= max(outside)]
        widths = [self._power(right - left) for left, right in zip(levels, levels[1:], strict=False)] + [arb(0)]
        # below[l] is P(s_i < t, s_i > s_{i+1} > ... > others) for t above levels[l], as a polynomial in
        # u = e^(-x (t - levels[l])); first for no winner at all, then for one after the other.
        below = []
        for level in levels:
            polynomial = arb_poly([1])
            for value in outside:
                polynomial = polynomial * arb_poly([1, -self._power(level - value)])
            below.append(polynomial)
        so_far = arb(0)
        for item in reversed(ids):
            so_far = arb(0)
            grown = []
            for level, width, polynomial in zip(levels, widths, below, strict=True):
                if level >= self.values[item]:
                    sums = polynomial.integral() * self._power(level - self.values[item])
                    piece = arb_poly([so_far + sums(arb(1))]) - sums
                else:
                    piece = arb_poly([0])
                so_far = piece(width)
                grown.append(piece)
            below = grown
        return so_far

    @cached_property
    def _levels(self) -> list[int]:
        return sorted(set(self.values))

    def fit(self, counts: Mapping[Outcome, int], below: int) -> Fit:
        """Pearson's chi-square test of drawn outcomes, with a cell for each likely outcome and one for the rest.

        Parameters
        ----------
        counts : mapping of Outcome to int
            How often each outcome was drawn. One that the law excludes, a negative gap, counts among the rest.
        below : int
            Outcomes whose gaps are all less than this get a cell, when at least 5 draws are expected in it.

        Examples
        --------
        >>> law = SelectionLaw((0, 0), 1, Fraction(2))
        >>> wrong = {Outcome((0,), (0,)): 900, Outcome((1,), (0,)): 100}
        >>> law.fit(wrong, 3).p_value < 1e-9
        True
        """
        from scipy.special import gammaincc

        if not isinstance(counts, Mapping):
            raise InputError("counts", f"must be a mapping from outcomes to numbers of draws, not {counts!r}")
        draws = sum(counts.values())
        statistic, cells, seen, expected = 0.0, 0, 0, 0.0
        for outcome, chance in self.table(below).items():
            mean = draws * float(chance)
            if mean < _LEAST_EXPECTED:
                continue
            drawn = counts.get(outcome, 0)
            statistic += (drawn - mean) ** 2 / mean
            cells, seen, expected = cells + 1, seen + drawn, expected + mean
        rest = draws - expected
        if rest >= _LEAST_EXPECTED:
            statistic += (draws - seen - rest) ** 2 / rest
            cells += 1
        if cells < 2:
            raise InputError("counts", f"must be of more draws: {draws} expect 5 of one outcome only")
        return Fit(statistic, cells - 1, float(gammaincc((cells - 1) / 2, statistic / 2)))

    def _ids(self, ids: Sequence[int]) -> tuple[int, ...]:
        order = read_integers(ids, "ids", at_least=0)
        if len(order) != self.k or len(set(order)) != self.k or max(order) >= len(self.values):
            raise InputError("ids", f"must be k = {self.k} different items below {len(self.values)}, not {list(order)}")
        return order


def selection_law(
    scores: Any,
    k: int,
    epsilon: Number,
    *,
    resolution: Number = Fraction(1, 10),
    sensitivity: Number = 1,
    monotonic: bool = False,
    round_down: bool = False,
) -> SelectionLaw:
    """The exact law of ``noisy_top_k`` with the same arguments, for at most 12 scores.

    Examples
    --------
    >>> law = selection_law([1, 0, 0], 1, 1, resolution="1/2")
    >>> round(float(law.probability([1], [2])), 12)
    0.032461286039
    """
    design = SelectionDesign(
        k,
        epsilon,  # type: ignore[arg-type]  # read by the constructor
        resolution=resolution,  # type: ignore[arg-type]
        sensitivity=sensitivity,  # type: ignore[arg-type]
        monotonic=monotonic,
    )
    values = tuple(map(int, read_scores(scores, design.units, round_down=round_down)))
    if not design.k < len(values) <= _MOST_ITEMS:
        raise InputError("scores", f"must be more than k = {design.k} and at most {_MOST_ITEMS}, not {len(values)}")
    return SelectionLaw(values, design.k, design.rate)


@lru_cache(maxsize=1024)
def _chance_of_carries(carries: tuple[int, ...], tied: int) -> Fraction:
    """P(u_i < u_{i+1} exactly where carry i is 1, and `tied` more remainders lie below the last), uniform order.

    Independent uniform u_1, ..., u_{k+1} in place of the order: one integral after the other, all polynomial.
    """
    density = fmpq_poly([1])
    for carry in carries:
        below = density.integral()
        density = below if carry else fmpq_poly([below(fmpq(1))]) - below
    total = (density * fmpq_poly([0] * tied + [1])).integral()(fmpq(1))
    return Fraction(int(total.p), int(total.q))
