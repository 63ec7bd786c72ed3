"""The privacy profile: delta(epsilon) of a pmf as a curve, proved at every point, and its exact inverse.

The curve is the largest of a few convex piecewise linear functions of e^epsilon (`dpopt.privacy.losses`), evaluated in
integers at both ends of the enclosure of e^epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpopt.arithmetic import (
    MAX_EXPONENT,
    Enclosure,
    Number,
    exact,
    exact_integer,
    exp_enclosure,
    log_enclosure,
    read_bits,
    read_epsilon,
)
from dpopt.errors import InputError
from dpopt.pmf import Pmf, read_pmf
from dpopt.privacy.decision import is_within, least_decimal, read_delta
from dpopt.privacy.losses import Losses
from dpopt.privacy.shifts import lattice_shift
from dpopt.reading import read_list
from dpopt.record import Record

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Profile", "epsilon", "privacy_profile"]

_POINTS = 200  # of the default grid
_ROWS = 11  # of the printed table


@dataclass(frozen=True, repr=False)
class Profile(Record):
    """delta(epsilon) of a pmf, as a proved enclosure at each of a list of epsilons. Made by `privacy_profile`.

    Parameters
    ----------
    pmf : Pmf
    sensitivity : Fraction
        In data units; all shifts up to it count, in both directions.
    epsilons : tuple of Fraction
    lower, upper : tuple of Fraction
        ``lower[i] <= delta(epsilons[i]) <= upper[i]``.
    bits : int
        Bits of the enclosures of e^epsilon.
    """

    pmf: Pmf
    sensitivity: Fraction
    epsilons: tuple[Fraction, ...]
    lower: tuple[Fraction, ...]
    upper: tuple[Fraction, ...]
    bits: int = 128

    @cached_property
    def _losses(self) -> Losses:
        return Losses(self.pmf, lattice_shift(self.sensitivity, self.pmf.step), self.bits)

    def at(self, epsilon: Number) -> Enclosure:
        """delta at any epsilon, one of the list or not: exactly what `dpopt.delta` returns.

        Examples
        --------
        >>> privacy_profile(Pmf(0, (1,) * 10), [0]).at("1/3").upper
        Fraction(1, 10)
        """
        lower, upper = _enclosures(self._losses, [read_epsilon(epsilon)])
        return Enclosure(lower[0], upper[0])

    @cached_property
    def floor(self) -> Fraction:
        """The limit of delta for large epsilon, exactly: the mass, for the worst shift, that one neighbour never sees.

        0 where every ratio is bounded; for the TableBuilder noise p(D).
        """
        return self._losses.floor

    @cached_property
    def plateau_start(self) -> Enclosure:
        """The least epsilon from which on delta stays at its floor: (2D - 1) gamma for the TableBuilder noise.

        Where the floor is 0, this is the largest privacy loss.
        """
        return log_enclosure(self._losses.least_factor(self.floor))

    def is_private(self, epsilon: Number, delta: Number = 0) -> bool:
        """Whether the pmf is (epsilon, delta)-DP, exactly: what `dpopt.is_private` says.

        Examples
        --------
        >>> privacy_profile(Pmf(0, (1,) * 10), [0]).is_private(0, "1/10")
        True
        """
        return is_within(self._losses, read_epsilon(epsilon), read_delta(delta))

    def epsilon(self, delta: Number) -> Enclosure:
        """The least epsilon at which the pmf is (epsilon, delta)-DP, to 2^-64: the exact inverse of the curve.

        The crossing is solved on the linear piece of delta as a function of e^epsilon, so that only the last
        logarithm is rounded.

        Raises
        ------
        InputError
            No epsilon reaches `delta`: it lies below the floor.

        Examples
        --------
        >>> from dpopt.pmf import Tails
        >>> laplace = Pmf(0, (1,), tails=Tails(1, Fraction(1, 2), Fraction(1, 2)))
        >>> print(privacy_profile(laplace).epsilon(0))
        0.69314718056
        """
        return log_enclosure(_least_factor(self._losses, delta))

    def decimal_epsilon(self, delta: Number, digits: int = 12) -> Fraction:
        """The least decimal with so many significant digits at which the pmf is (epsilon, delta)-DP, exactly.

        Raises
        ------
        InputError
            No epsilon reaches `delta`.

        Examples
        --------
        >>> privacy_profile(Pmf(-1, (1, 2, 1))).decimal_epsilon("1/4", 3)
        Fraction(347, 500)
        """
        return least_decimal(_least_factor(self._losses, delta), exact_integer(digits, "digits", at_least=1))

    def floats(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """epsilon (nearest floats), lower (rounded down) and upper (rounded up), each of shape ``(len(epsilons),)``."""
        import numpy as np

        lower = [_outward(value, -math.inf) for value in self.lower]
        upper = [_outward(value, math.inf) for value in self.upper]
        return np.array([float(value) for value in self.epsilons]), np.array(lower), np.array(upper)

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        from dpopt.text import aligned, decimal_text

        count = len(self.epsilons)
        chosen = sorted({round(i * (count - 1) / (_ROWS - 1)) for i in range(_ROWS)})
        rows = [("epsilon", "delta (at most, proved)")]
        rows += [(decimal_text(self.epsilons[i], 12, up=None), decimal_text(self.upper[i], 6, up=True)) for i in chosen]
        floor = decimal_text(self.floor, 6, up=True)
        start = decimal_text(self.decimal_epsilon(self.floor), 12, up=True)
        sensitivity = decimal_text(self.sensitivity, 12, up=None)
        head = f"privacy profile at sensitivity {sensitivity}, {count} epsilons; delta {floor} from epsilon {start} on"
        return "\n".join([head, *aligned(rows)])

    def __reduce__(self) -> tuple[type[Profile], tuple[Any, ...]]:
        # without the sorted losses, which are quickly sorted again
        return type(self), (self.pmf, self.sensitivity, self.epsilons, self.lower, self.upper, self.bits)

    def __repr__(self) -> str:
        return f"Profile({self.pmf!r}, sensitivity={self.sensitivity}, <{len(self.epsilons)} epsilons>)"


def privacy_profile(
    pmf: Pmf, epsilons: Iterable[Number] | None = None, *, sensitivity: Number = 1, bits: int = 128
) -> Profile:
    """delta(epsilon) of a pmf as a curve: the worst over all shifts up to the sensitivity, in both directions.

    Parameters
    ----------
    pmf : Pmf
        The noise, or anything with a `pmf` attribute.
    epsilons : iterable of numbers, optional
        Each at least 0 and exact; by default 200 evenly spaced ones, from 0 to a little beyond where delta stays at its
        floor.
    sensitivity : number
        In data units; all shifts up to ``floor(sensitivity / step)`` lattice steps count, in both directions.
    bits : int
        Bits of the enclosures of e^epsilon.

    Examples
    --------
    >>> from dpopt.family.members import family_pmf
    >>> profile = privacy_profile(family_pmf(11, Fraction(1, 8)), [0, 1, 2, 3])
    >>> [f"{float(delta):.6g}" for delta in profile.upper]
    ['0.199471', '0.00724878', '1.07612e-05', '5.38488e-08']
    >>> print(profile.plateau_start, f"{float(profile.floor):.6g}")
    2.625 5.38488e-08
    """
    losses = _losses_of(pmf, sensitivity, read_bits(bits))
    values = _default_epsilons(losses) if epsilons is None else _read_epsilons(epsilons)
    lower, upper = _enclosures(losses, values)
    sensitivity = exact(sensitivity, "sensitivity")
    profile = Profile(losses.pmf, sensitivity, tuple(values), tuple(lower), tuple(upper), losses.bits)
    profile.__dict__["_losses"] = losses  # sorted already
    return profile


def epsilon(pmf: Pmf, delta: Number = 0, sensitivity: Number = 1) -> Enclosure:
    """The least epsilon at which the pmf is (epsilon, delta)-DP: a proved enclosure, 2^-64 wide.

    Raises
    ------
    InputError
        No epsilon reaches `delta`: a finite support leaves at least its outermost mass at every epsilon.

    Examples
    --------
    >>> print(epsilon(Pmf(-1, (1, 3, 1)), "0.2"))
    1.09861228867
    """
    return log_enclosure(_least_factor(_losses_of(pmf, sensitivity, 128), delta))


def _losses_of(pmf: Pmf, sensitivity: Number, bits: int) -> Losses:
    pmf = read_pmf(pmf, "pmf")
    return Losses(pmf, lattice_shift(sensitivity, pmf.step), bits)


def _least_factor(losses: Losses, delta: Number) -> Fraction:
    """e^epsilon of the least epsilon, exactly."""
    wanted = read_delta(delta)
    if wanted < losses.floor:
        mass = f"{float(losses.floor):.6g}"
        raise InputError(
            "delta", f"must be at least {mass}: that mass has a zero within the sensitivity, whatever epsilon"
        )
    return losses.least_factor(wanted)


def _enclosures(losses: Losses, epsilons: Sequence[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """Lower and upper ends of delta at each epsilon: f falls, so the upper end of e^epsilon gives the lower one."""
    scale, unit = 1 << losses.bits, losses.unit
    factors = []
    for epsilon in epsilons:
        low, high = exp_enclosure(epsilon, losses.bits)
        factors += [int(high * scale), int(low * scale)]
    worst = losses.worst(factors)
    deltas = [Fraction(excess * unit.denominator, unit.numerator * scale) for excess in worst]
    return deltas[::2], deltas[1::2]


def _default_epsilons(losses: Losses) -> list[Fraction]:
    """Evenly spaced short decimals from 0 to at least 2 % beyond the start of the plateau."""
    end = log_enclosure(losses.least_factor(losses.floor)).upper or Fraction(1)
    step = min(end * Fraction(51, 50), Fraction(MAX_EXPONENT)) / (_POINTS - 1)
    place = Fraction(10) ** (math.floor(math.log10(step)) - 1)  # two significant digits
    step = min(math.ceil(step / place) * place, Fraction(MAX_EXPONENT, _POINTS - 1))
    return [i * step for i in range(_POINTS)]


def _read_epsilons(epsilons: Iterable[Number]) -> list[Fraction]:
    values = [
        read_epsilon(value, f"epsilons[{i}]") for i, value in enumerate(read_list(epsilons, "epsilons", "numbers"))
    ]
    if not values:
        raise InputError("epsilons", "must hold at least one number")
    return values


def _outward(value: Fraction, towards: float) -> float:
    """The float nearest to `value` on the side of `towards`."""
    nearest = float(value)
    on_that_side = nearest >= value if towards > 0 else nearest <= value
    return nearest if on_that_side else math.nextafter(nearest, towards)
