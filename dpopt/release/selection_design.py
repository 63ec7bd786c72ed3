"""The parameters of a noisy top-k, and what they buy: the variance of a gap, the chance of the true top k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from flint import arb

from dpopt.arithmetic import Enclosure, Number, ball, enclosed, exact, exact_integer, exact_positive
from dpopt.errors import InputError
from dpopt.reading import read_choice, read_flag
from dpopt.release.selection_chance import Field, chance_of_order, chance_of_set

__all__ = ["Chosen", "SelectionDesign", "entries", "least_selection_epsilon"]

_BITS = 64  # of a proved enclosure, relative to what it encloses
_DECIDING_BITS = (24, 64, 256, 1024)  # to compare with a wanted chance: few nearly always do
_STEPS = 30  # bisections: the least epsilon is known to a part in 2^30


class Chosen(StrEnum):
    """What a selection is asked to get right: the k largest as a SET, or in their ORDER as well."""

    SET = "set"
    ORDER = "order"


@dataclass(frozen=True)
class SelectionDesign:
    """How a noisy top-k is made: each score gets exponential noise of scale ``2 k sensitivity / epsilon``.

    For monotonic scores, which a person moves all up or all down (counts, for one), half of that scale suffices.

    Parameters
    ----------
    k : int
        How many items are selected.
    epsilon : number
        The privacy loss of the whole release, gaps included; positive.
    resolution : number
        The unit of the scores and of the gaps, 1 over an integer; scores are rounded down to it before the noise.
    sensitivity : number
        The most that one person changes a score by; an integer multiple of the resolution, so that rounding keeps it.
    monotonic : bool
        One person moves all scores in the same direction.

    Raises
    ------
    InputError
        A parameter is out of range, the resolution is not 1 over an integer, or the sensitivity no multiple of it.

    Examples
    --------
    >>> design = SelectionDesign(2, 1, resolution="1/10")
    >>> design.rate, design.scale
    (Fraction(1, 40), Fraction(4, 1))
    >>> round(float(design.gap_variance), 9)  # far-apart scores; the continuous noise has 2 * 4^2
    32.000833385
    >>> SelectionDesign.from_dict(design.to_dict()) == design
    True
    """

    k: int
    epsilon: Fraction
    _: KW_ONLY
    resolution: Fraction = Fraction(1, 10)
    sensitivity: Fraction = Fraction(1)
    monotonic: bool = False

    def __post_init__(self) -> None:
        for name, value in (
            ("k", exact_integer(self.k, "k", at_least=1)),
            ("epsilon", exact_positive(self.epsilon, "epsilon")),
            ("resolution", exact_positive(self.resolution, "resolution")),
            ("sensitivity", exact_positive(self.sensitivity, "sensitivity")),
        ):
            object.__setattr__(self, name, value)
        if self.resolution.numerator != 1:
            raise InputError("resolution", f"must be 1 over an integer, not {self.resolution}")
        if (self.sensitivity / self.resolution).denominator != 1:
            raise InputError(
                "sensitivity",
                f"must be an integer multiple of the resolution {self.resolution}, not {self.sensitivity}",
            )
        object.__setattr__(self, "monotonic", read_flag(self.monotonic, "monotonic"))

    @property
    def units(self) -> int:
        """Units of the resolution in 1."""
        return self.resolution.denominator

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in units of the scores."""
        return (1 if self.monotonic else 2) * self.k * self.sensitivity / self.epsilon

    @property
    def rate(self) -> Fraction:
        """x: the noise in units of the resolution is geometric, ``P(j) = (1 - e^-x) e^(-x j)``."""
        return self.resolution / self.scale

    # --- text ----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data with every exact number as a string, for JSON."""
        return {
            "k": self.k,
            "epsilon": str(self.epsilon),
            "resolution": str(self.resolution),
            "sensitivity": str(self.sensitivity),
            "monotonic": self.monotonic,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SelectionDesign:
        """Read what `to_dict` wrote; an entry that is missing or unknown is an error that names it."""
        return cls(**entries(data, "design", ("k", "epsilon", "resolution", "sensitivity", "monotonic")))

    # --- gaps ----------------------------------------------------------------------------------------------------

    @property
    def gap_bias(self) -> Fraction:
        """What rounding down takes from a gap in the mean, as a negative number: half a unit.

        A gap of scores that are far apart has the mean ``q_i - q_j + gap_bias``.
        """
        return -self.resolution / 2

    @property
    def gap_variance(self) -> Enclosure:
        """The variance of a gap between scores so far apart that their order is certain.

        In units it is ``G - G' - [r < r']`` with independent geometric G, G' and remainders r, r' in uniformly random
        order: ``2 Var G + 1/4`` with ``Var G = e^-x / (1 - e^-x)^2``.
        """
        return enclosed(lambda: ball(self.resolution**2) * (2 * self._spread() + arb(1) / 4))

    @property
    def gap_covariance(self) -> Enclosure:
        """The covariance of a gap with the next one, which shares an item; gaps that share none are uncorrelated.

        ``-(Var G + 1/12)`` in units: the two corrections are ``[r1 < r2]`` and ``[r2 < r3]``, both 1 in one of six
        orders, so that their covariance is 1/6 - 1/4.
        """
        return enclosed(lambda: -ball(self.resolution**2) * (self._spread() + arb(1) / 12))

    def _spread(self) -> arb:
        """Var G, as ``1 / (4 sinh^2(x / 2))``: no cancellation at small rates."""
        return 1 / (2 * ball(self.rate / 2).sinh()) ** 2

    # --- chances -------------------------------------------------------------------------------------------------

    def chance(self, scores: Any, chosen: Chosen | str = Chosen.SET, *, round_down: bool = False) -> Enclosure:
        """The probability that the k selected items are the k largest scores, proved.

        Scores are compared after rounding down to the resolution, and any of several tied scores is as right as the
        others. The chance tells about the scores: for planning, take scores that are public or made up.

        The enclosure is narrow, to about 60 bits, however many scores are close to the k-th largest one; it is 1
        exactly where nothing can go wrong (all scores are equal, or all items are selected as a set).

        Parameters
        ----------
        scores : sequence or array
            At least k of them; as `noisy_top_k` reads them.
        chosen : Chosen or str
            "set" or "order".
        round_down : bool
            Allow floats.

        Raises
        ------
        InputError
            There are fewer than k scores.

        Examples
        --------
        >>> round(float(SelectionDesign(1, 1, resolution="1/2").chance([1, 0, 0])), 12)
        0.516095820678
        >>> round(float(SelectionDesign(2, 1).chance([40, 30, 10, 0], "order")), 12)
        0.955321414813

        One item ahead of a thousand that tie, of which any may be the second:

        >>> round(float(SelectionDesign(2, 1).chance([60] + [0] * 1000)), 12)
        0.999999984422
        """
        return _chance(self, _field(scores, self, round_down), _chosen(chosen))


def least_selection_epsilon(
    scores: Any,
    k: int,
    chance: Number,
    *,
    chosen: Chosen | str = Chosen.SET,
    resolution: Number = Fraction(1, 10),
    sensitivity: Number = 1,
    monotonic: bool = False,
    round_down: bool = False,
) -> Enclosure:
    """The least epsilon at which the true top k are selected with at least this probability, proved.

    The probability grows with epsilon: where every selected score is at least every other one, a smaller scale of the
    same noise keeps a right selection right. The upper end is proved to reach `chance`, the lower end to miss it (or
    it is 0: any epsilon will do). Take the upper end, and round it up where it has to be short: the nearest decimal
    may miss the chance.

    Parameters
    ----------
    chance : number
        Above 0 and below 1.
    scores, k, chosen, resolution, sensitivity, monotonic, round_down
        As in `SelectionDesign` and its `chance`.

    Raises
    ------
    InputError
        An argument is out of range, or `chance` is so close to what some epsilon gives that 1000 bits do not tell.

    Examples
    --------
    >>> from dpopt.text import decimal_text
    >>> decimal_text(least_selection_epsilon([40, 30, 10, 0], 2, "0.99").upper, 9, up=True)
    '0.808201057'
    >>> SelectionDesign(2, "0.808201057").chance([40, 30, 10, 0]).lower >= Fraction("0.99")
    True
    """
    wanted, kind = exact(chance, "chance"), _chosen(chosen)
    if not 0 < wanted < 1:
        raise InputError("chance", f"must lie strictly between 0 and 1, not {wanted}")
    first = SelectionDesign(
        k,
        Fraction(1),
        resolution=resolution,  # type: ignore[arg-type]  # read by the constructor
        sensitivity=sensitivity,  # type: ignore[arg-type]
        monotonic=monotonic,
    )
    field = _field(scores, first, round_down)

    def reaches(epsilon: Fraction) -> bool:
        for bits in _DECIDING_BITS:
            found = _chance(replace(first, epsilon=epsilon), field, kind, bits)
            if found.lower >= wanted or found.upper < wanted:
                return found.lower >= wanted
        raise InputError("chance", f"{chance} cannot be told from the chance at epsilon = {float(epsilon):.6g}")

    high = Fraction(1)
    if reaches(high):
        while reaches(high / 2):
            high /= 2
            if high < Fraction(1, 1 << 40):  # the chance has a positive limit at epsilon = 0
                return Enclosure(Fraction(0), high)
        low = high / 2
    else:
        while not reaches(2 * high):
            high *= 2
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return Enclosure(low, high)


def _field(scores: Any, design: SelectionDesign, round_down: bool) -> Field:
    """The scores in units, the k largest against the others."""
    from dpopt.release.scores import read_scores

    values = read_scores(scores, design.units, round_down=round_down).tolist()
    if len(values) < design.k:
        raise InputError("scores", f"must be at least k = {design.k}, not {len(values)}")
    return Field.of(values, design.k)


def _chance(design: SelectionDesign, field: Field, chosen: Chosen, bits: int = _BITS) -> Enclosure:
    if field.is_certain(chosen is Chosen.ORDER):
        return Enclosure(Fraction(1), Fraction(1))
    if chosen is Chosen.SET:
        ways, compute = field.ways_of_set(), chance_of_set
    else:
        ways, compute = field.ways_of_order(), chance_of_order
    found = enclosed(lambda: ways * compute(field, design.rate), bits)
    upper = min(found.upper, Fraction(1))
    return Enclosure(min(found.lower, upper), upper)


def _chosen(value: object) -> Chosen:
    return read_choice(Chosen, value, "chosen")


def entries(data: object, argument: str, names: Sequence[str]) -> dict[str, Any]:
    """Read a mapping that has exactly these entries.

    >>> entries({"k": 2}, "design", ["k"])
    {'k': 2}
    """
    if not isinstance(data, Mapping):
        raise InputError(argument, f"must be a mapping with the entries {', '.join(names)}, not {type(data).__name__}")
    for what, odd in (("is missing", set(names) - set(data)), ("is unknown", set(data) - set(names))):
        if odd:
            raise InputError(argument, f"must have the entries {', '.join(names)}: {sorted(map(str, odd))[0]!r} {what}")
    return dict(data)
