"""Noisy top-k with gap, free of floating point: the selected items, and how far each is ahead of the next.

The release has exactly the law of an ideal algorithm on real numbers: exponential noise of scale 2 k s / epsilon on
every score, the k largest in order, each gap rounded down to the resolution (Ding, Kifer and co-authors, A
Floating-Point Secure Implementation of the Report Noisy Max with Gap Mechanism, arXiv 2308.08057, Algorithms 2 and 4).

The proof covers the items and the gaps, and nothing else that can be observed: how long a call takes depends on the
scores, as `noisy_top_k` says in numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpopt.arithmetic import Number, exact
from dpopt.errors import InputError
from dpopt.reading import read_choice, read_flag, read_integers, read_numbers
from dpopt.record import Record
from dpopt.release.leading import Leading, ranked_items, refined_items
from dpopt.release.randomness import Randomness, read_randomness
from dpopt.release.samplers import WIDEST
from dpopt.release.scores import read_wide_scores
from dpopt.release.selection_design import SelectionDesign, entries
from dpopt.text import decimal_text, quoted

if TYPE_CHECKING:
    from dpopt.release.gap_estimates import GapEstimates

__all__ = ["Ties", "TopK", "noisy_max", "noisy_top_k", "noisy_top_k_ids"]

_TENTH = Fraction(1, 10)
_FACTOR = 10  # M, as in the gap paper's experiments; any gives the same law


class Ties(StrEnum):
    """How items of equal noisy scores are told apart: one law, two ways to draw from it.

    PERMUTATION orders all items still in the race by one random permutation, which also rounds the gaps. REFINEMENT
    is the gap paper's Algorithm 4: finer and finer noise, in a loop whose length depends on the scores (seconds for
    10^6 of them where nearly all are selected and tie).
    """

    PERMUTATION = "permutation"
    REFINEMENT = "refinement"


@dataclass(frozen=True, init=False, repr=False)
class TopK(Record):
    """The released selection.

    Parameters
    ----------
    ids : tuple of int
        Positions of the selected scores, the noisy largest first.
    gaps_in_units : tuple of int
        How far each is ahead of the next one, in units of the resolution; the last gap is to the best item that was
        not selected.
    design : SelectionDesign
        k, epsilon, resolution, sensitivity, monotonic.
    secure : bool
        Whether every draw came from the operating system's secure generator. `dataclasses.replace` cannot say so, and
        what it changes is not what was drawn: its result has False.

    Raises
    ------
    InputError
        Not k different positions, not k gaps in whole units, or a design that is none.

    Examples
    --------
    >>> top = TopK((4, 0), (100, 31), SelectionDesign(2, 1), secure=True)
    >>> top.gaps
    (Fraction(10, 1), Fraction(31, 10))
    >>> TopK.from_dict(top.to_dict()) == top  # select today, combine later
    True
    """

    ids: tuple[int, ...]
    gaps_in_units: tuple[int, ...]
    design: SelectionDesign
    secure: bool = field(init=False)

    def __init__(
        self, ids: Sequence[int], gaps_in_units: Sequence[int], design: SelectionDesign, secure: bool = False
    ) -> None:
        for part, value in zip(fields(self), (ids, gaps_in_units, design, secure), strict=True):
            object.__setattr__(self, part.name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        if not isinstance(self.design, SelectionDesign):
            raise InputError("design", f"must be a SelectionDesign, not {self.design!r}")
        for name in ("ids", "gaps_in_units"):
            found = read_integers(getattr(self, name), name, at_least=0)
            if len(found) != self.k:
                raise InputError(name, f"must be k = {self.k} integers, not {len(found)}")
            object.__setattr__(self, name, found)
        if len(set(self.ids)) != self.k:
            raise InputError("ids", f"must be k = {self.k} different positions, not {list(self.ids)}")
        object.__setattr__(self, "secure", read_flag(self.secure, "secure"))

    @property
    def k(self) -> int:
        """How many items are selected."""
        return self.design.k

    @property
    def epsilon(self) -> Fraction:
        """The privacy loss of the whole release."""
        return self.design.epsilon

    @property
    def resolution(self) -> Fraction:
        """The unit of the gaps."""
        return self.design.resolution

    @property
    def gaps(self) -> tuple[Fraction, ...]:
        """The gaps in units of the scores, exactly."""
        return tuple(gap * self.resolution for gap in self.gaps_in_units)

    def combine(self, measurements: Sequence[Number], variances: Number | Sequence[Number]) -> GapEstimates:
        """Estimates of the selected scores from later, independent measurements and these gaps.

        The gaps' variance and covariance are those of far-apart scores, rounded to 9 digits: the estimates are unbiased
        whatever the weights. See `combine_gaps` for what selection does to gaps of scores that are close.

        Parameters
        ----------
        measurements : sequence of number
            One for each item of `ids`, in that order.
        variances : number or sequence of number
            Of the measurements.

        Raises
        ------
        InputError
            There are not k measurements, or they come without an order: of a dict by position, pass
            ``[measured[i] for i in top.ids]``.

        Examples
        --------
        >>> top = TopK((4, 0), (100, 31), SelectionDesign(2, 1), secure=True)
        >>> print(top.combine([50, 44], variances=8))
        estimate  variance  measured alone
        --------  --------  --------------
        50.675    6.66669   8
        43.325    6.66669   8
        """
        from dpopt.release.gap_estimates import GapEstimates, combine_gaps

        measured = read_numbers(measurements, "measurements")
        if len(measured) != self.k:
            raise InputError(
                "measurements", f"must be {self.k} numbers, one for each of the selected items, not {len(measured)}"
            )
        square = self.resolution**2
        variance, covariance = (
            square * ((ends.lower + ends.upper) / 2 / square).limit_denominator(10**9)
            for ends in (self.design.gap_variance, self.design.gap_covariance)
        )
        found = combine_gaps(
            measured,
            self.gaps,
            variances=variances,
            gap_variance=variance,
            gap_covariance=covariance,
            gap_bias=self.design.gap_bias,
        )
        return GapEstimates(found.estimates, found.variances, found.measured, self.secure)

    def to_dict(self) -> dict[str, Any]:
        """Plain data with every exact number as a string, for JSON."""
        return {
            "ids": list(self.ids),
            "gaps": [str(gap) for gap in self.gaps],
            **self.design.to_dict(),
            "secure": self.secure,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TopK:
        """Read what `to_dict` wrote; an entry that is missing, unknown or no multiple of the resolution is an error."""
        design = ("k", "epsilon", "resolution", "sensitivity", "monotonic")
        found = entries(data, "selection", ("ids", "gaps", *design, "secure"))
        made = SelectionDesign.from_dict({name: found[name] for name in design})
        gaps = found["gaps"]
        if not isinstance(gaps, list | tuple):
            raise InputError("gaps", f"must be a list, not {quoted(gaps)}")
        units = [exact(gap, f"gaps[{i}]") * made.units for i, gap in enumerate(gaps)]
        for i, unit in enumerate(units):
            if unit.denominator != 1:
                raise InputError(f"gaps[{i}]", f"must be a multiple of the resolution {made.resolution}, not {gaps[i]}")
        return cls(found["ids"], tuple(int(unit) for unit in units), made, found["secure"])


def noisy_top_k(
    scores: Any,
    k: int,
    epsilon: Number,
    *,
    resolution: Number = _TENTH,
    sensitivity: Number = 1,
    monotonic: bool = False,
    ties: Ties | str = Ties.PERMUTATION,
    round_down: bool = False,
    randomness: Randomness | None = None,
) -> TopK:
    """The k items with the largest noisy scores, in order, with the gap of each to the next: epsilon-DP as a whole.

    The time is linear in the number of scores, and depends on them: any ties, any order and any spread take at most 4
    times as long as distinct small scores in an array of 64-bit integers, and up to 10 times in one of floats (measured
    with 10^6 scores, from k = 1 to n - 1). Integers beyond 64 bits, fractions and strings are handled one by one.

    Parameters
    ----------
    scores : sequence, one-dimensional array, or Series (pandas, Polars) of number
        More than k of them. Integers of any size, fractions, decimals, strings; rounded down to the resolution before
        the noise, which keeps the sensitivity. Floats only with `round_down`.
    k : int
        At least 1.
    epsilon : number
        Positive and exact.
    resolution : number
        1 over an integer: the unit of scores and gaps.
    sensitivity : number
        The most that one person changes any score by; an integer multiple of the resolution.
    monotonic : bool
        One person moves all scores in the same direction (as for counts): half the noise for the same epsilon.
    ties : Ties or str
        How tied items are told apart; it changes no law. See `Ties`.
    round_down : bool
        Allow floats, each read as the binary number it is and rounded down to the resolution.
    randomness : Randomness, optional
        The operating system's generator by default. One source for every draw.

    Raises
    ------
    InputError
        Anything of this is not as it has to be; nothing has been drawn then.

    Examples
    --------
    >>> top = noisy_top_k([310, 25, 1000, 17], 2, epsilon=5)
    >>> top.ids, len(top.gaps), top.secure
    ((2, 0), 2, True)
    """
    design = _design(k, epsilon, resolution, sensitivity, monotonic)
    ready = _Ready(scores, design, ties, round_down, randomness)
    if ready.values.size <= design.k:
        raise InputError(
            "k", f"must be less than the {ready.values.size} scores (each item's gap is to a next one), not {design.k}"
        )
    found = ready.leading(design.k + 1)
    return TopK(_ids(found, design.k), found.gaps(), design, ready.source.secure)


def noisy_top_k_ids(
    scores: Any,
    k: int,
    epsilon: Number,
    *,
    resolution: Number = _TENTH,
    sensitivity: Number = 1,
    monotonic: bool = False,
    ties: Ties | str = Ties.PERMUTATION,
    round_down: bool = False,
    randomness: Randomness | None = None,
) -> tuple[int, ...]:
    """The k items with the largest noisy scores, in order, without gaps: the ids of `noisy_top_k`, also for all items.

    Parameters
    ----------
    scores : sequence, one-dimensional array, or Series (pandas, Polars) of number
        At least k of them.
    k, epsilon, resolution, sensitivity, monotonic, ties, round_down, randomness
        As for `noisy_top_k`.

    Examples
    --------
    >>> noisy_top_k_ids([310, 25, 1000], 3, epsilon=5)
    (2, 0, 1)
    """
    design = _design(k, epsilon, resolution, sensitivity, monotonic)
    ready = _Ready(scores, design, ties, round_down, randomness)
    if ready.values.size < design.k:
        raise InputError("k", f"must be at most the {ready.values.size} scores, not {design.k}")
    return _ids(ready.leading(design.k), design.k)


def noisy_max(
    scores: Any,
    epsilon: Number,
    *,
    resolution: Number = _TENTH,
    sensitivity: Number = 1,
    monotonic: bool = False,
    ties: Ties | str = Ties.PERMUTATION,
    round_down: bool = False,
    randomness: Randomness | None = None,
) -> int:
    """The item with the largest noisy score: report noisy max.

    Parameters
    ----------
    scores, epsilon, resolution, sensitivity, monotonic, ties, round_down, randomness
        As for `noisy_top_k_ids`, with k = 1.

    Examples
    --------
    >>> noisy_max([-5, 3, 900], epsilon=1)
    2
    """
    (item,) = noisy_top_k_ids(
        scores,
        1,
        epsilon,
        resolution=resolution,
        sensitivity=sensitivity,
        monotonic=monotonic,
        ties=ties,
        round_down=round_down,
        randomness=randomness,
    )
    return item


class _Ready:
    """Everything read and found right, before anything is drawn."""

    def __init__(
        self, scores: Any, design: SelectionDesign, ties: Ties | str, round_down: bool, randomness: Randomness | None
    ) -> None:
        self.design = design
        self.ties = read_choice(Ties, ties, "ties")
        self.source = read_randomness(randomness)
        self.values = read_wide_scores(scores, design.units, round_down=round_down)

    def leading(self, places: int) -> Leading:
        _require_narrow(self.design)
        if self.ties is Ties.PERMUTATION:
            return ranked_items(self.values, places, self.design.rate, self.source)
        return refined_items(self.values, places, self.design.rate, _FACTOR, self.source)


def _design(k: int, epsilon: Number, resolution: Number, sensitivity: Number, monotonic: bool) -> SelectionDesign:
    return SelectionDesign(
        k,
        epsilon,  # type: ignore[arg-type]  # read by the constructor
        resolution=resolution,  # type: ignore[arg-type]
        sensitivity=sensitivity,  # type: ignore[arg-type]
        monotonic=monotonic,
    )


def _require_narrow(design: SelectionDesign) -> None:
    """Refuse noise that no table reaches, by the parameter that is furthest from 1."""
    excess = 1 / (design.rate * WIDEST)
    if excess <= 1:
        return
    away = {"epsilon": 1 / design.epsilon, "resolution": 1 / design.resolution, "sensitivity": design.sensitivity}
    argument = max(away, key=away.__getitem__)
    if argument == "sensitivity":
        allowed = f"at most {decimal_text(design.sensitivity / excess, 3, up=False)}"
    else:
        allowed = f"at least {decimal_text(getattr(design, argument) * excess, 3, up=True)}"
    others = [f"{name} {decimal_text(getattr(design, name), 3, up=None)}" for name in away if name != argument]
    given = ", ".join([f"k = {design.k}", *others])
    raise InputError(argument, f"must be {allowed} with {given}: noise has at most a scale of 1e300 resolutions")


def _ids(found: Leading, k: int) -> tuple[int, ...]:
    return tuple(found.items[:k].tolist())
