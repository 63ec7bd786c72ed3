"""A probability mass function with exact integer weights on a lattice, optionally with geometric tails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Any, Protocol

from flint import arb, fmpz, fmpz_poly

from dpopt.arithmetic import Enclosure, Number, ball, exact, exact_integer, floor_scaled
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.reading import read_integers, read_list
from dpopt.text import brief, quoted
from dpopt.work import Work, require

if TYPE_CHECKING:
    import numpy as np

_MOST_POWER = 64  # as of a cost

__all__ = ["HasPmf", "Pmf", "Tails", "extension_bits", "extension_work", "read_pmf"]


@dataclass(frozen=True)
class Tails:
    """Geometric tails: beyond the core, ``p(k + period) = ratio * p(k)`` outward.

    Parameters
    ----------
    period : int
        Tail period T in lattice steps, at most the length of the core.
    left, right : Fraction or None
        Tail ratio on each side, strictly between 0 and 1; None for no tail on that side.
    """

    period: int
    left: Fraction | None = None
    right: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", exact_integer(self.period, "period", at_least=1))
        for side in ("left", "right"):
            ratio = getattr(self, side)
            if ratio is None:
                continue
            ratio = exact(ratio, side)
            if not 0 < ratio < 1:
                raise InputError(side, f"must lie strictly between 0 and 1, not {ratio}")
            object.__setattr__(self, side, ratio)
        if self.left is None and self.right is None:
            raise InputError(
                "left",
                "is missing, and so is right: give a ratio on at least one side (no tails at all for a finite support)",
            )


@dataclass(frozen=True)
class Pmf:
    """Exact integer weights on the lattice ``step * (start + i)``, with optional geometric tails.

    Parameters
    ----------
    start : int
        Lattice index of the first weight: that point is ``start * step`` in data units.
    weights : sequence of int
        Weights >= 0 of the core; a probability is its weight over the (rational) total.
    step : number, optional
        Lattice step in data units.
    tails : Tails, optional
        Describes an infinite support by finitely many numbers.

    Raises
    ------
    InputError
        A weight is negative or not an integer, the total is 0, or the tail period exceeds the core.

    Examples
    --------
    >>> coin = Pmf(-1, (1, 2, 1))
    >>> coin.mean, coin.variance, coin.probabilities().tolist()
    (Fraction(0, 1), Fraction(1, 2), [0.25, 0.5, 0.25])
    >>> geometric = Pmf(0, (1,), tails=Tails(1, left=Fraction(1, 2), right=Fraction(1, 2)))
    >>> geometric.total, geometric.probability(3)
    (Fraction(3, 1), Fraction(1, 24))
    """

    start: int
    weights: tuple[int, ...]
    step: Fraction = Fraction(1)
    tails: Tails | None = None

    def __init__(self, start: int, weights: Iterable[int], step: Number = 1, tails: Tails | None = None) -> None:
        weights = read_list(weights, "weights", "integers >= 0")
        if not weights:
            raise InputError("weights", "must hold at least one weight")
        if not all(type(w) is int for w in weights):
            weights = tuple(exact_integer(w, f"weights[{i}]") for i, w in enumerate(weights))
        if min(weights) < 0:
            place = next(i for i, w in enumerate(weights) if w < 0)
            raise InputError(f"weights[{place}]", f"must not be negative, not {brief(weights[place])}")
        if not any(weights):
            raise InputError("weights", "must not all be 0")
        if tails is not None and not isinstance(tails, Tails):
            raise InputError("tails", f"must be a Tails or None, not {tails!r}")
        if tails is not None and tails.period > len(weights):
            raise InputError("tails.period", f"must be at most the core length {len(weights)}, not {tails.period}")
        object.__setattr__(self, "start", exact_integer(start, "start"))
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "step", exact(step, "step"))
        object.__setattr__(self, "tails", tails)
        if self.step <= 0:
            raise InputError("step", f"must be positive, not {self.step}")

    # --- the support ---------------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """Lattice index of the last weight of the core."""
        return self.start + len(self.weights) - 1

    @property
    def low(self) -> Fraction:
        """The first point of the core, in data units."""
        return self.start * self.step

    @property
    def high(self) -> Fraction:
        """The last point of the core, in data units."""
        return self.end * self.step

    @cached_property
    def total(self) -> Fraction:
        """The sum of all weights, tails included."""
        return self.weighted_sum(LatticeFunction.constant(1))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether p(-k) = p(k) for every k, however the core lies."""
        tails = self.tails
        mirrored_tails = tails is None or tails.left == tails.right
        if self.start == -self.end and mirrored_tails and self.weights == self.weights[::-1]:
            return True
        if tails is None:
            used = [k for k, w in enumerate(self.weights) if w]
            first, last = used[0], used[-1]
            centred = self.start + first == -(self.start + last)
            return centred and self.weights[first : last + 1] == self.weights[first : last + 1][::-1]
        # two periods beyond the longer arm compare the blocks that the tails grow from, and their ratios
        reach = max(abs(self.start), abs(self.end)) + 2 * tails.period
        return all(self.weight(k) == self.weight(-k) for k in range(1, reach + 1))

    # --- masses --------------------------------------------------------------------------------------------------

    def weight(self, k: int) -> Fraction:
        """The exact weight at lattice index `k`, in the tails as well."""
        if self.start <= k <= self.end:
            return Fraction(self.weights[k - self.start])
        if self.tails is None:
            return Fraction(0)
        ratio = self.tails.right if k > self.end else self.tails.left
        if ratio is None:
            return Fraction(0)
        distance = k - self.end if k > self.end else self.start - k
        blocks = -(-distance // self.tails.period)
        inside = k - blocks * self.tails.period if k > self.end else k + blocks * self.tails.period
        return self.weights[inside - self.start] * ratio**blocks

    def probability(self, k: int) -> Fraction:
        """The exact probability of lattice index `k`."""
        return self.weight(k) / self.total

    def probabilities(self) -> np.ndarray:
        """The nearest floats of the probabilities over the core, low to high; shape ``(len(weights),)``."""
        import numpy as np

        numerator, denominator = self.total.numerator, self.total.denominator
        return np.array([w * denominator / numerator for w in self.weights], dtype=float)

    def points(self) -> np.ndarray:
        """The points of the core in data units, as floats; shape ``(len(weights),)``."""
        import numpy as np

        return np.arange(self.start, self.end + 1) * float(self.step)

    def cumulative(self) -> tuple[int, ...]:
        """Running sums of the core's weights."""
        return tuple(accumulate(self.weights))

    # --- expectations --------------------------------------------------------------------------------------------

    def weighted_sum(self, function: LatticeFunction | str | Mapping[str, Any]) -> Fraction:
        """The sum of weight times `function` over the whole support, tails in closed form."""
        function = self._function(function)
        values, unit = function.integers(self.start, self.end)
        result = Fraction(sum(map(mul, self.weights, values)), unit)
        if self.tails is None:
            return result
        period, (left, right) = self.tails.period, (self.tails.left, self.tails.right)
        if right is not None:
            result += function.block_tail_sum(self.weights[-period:], self.end - period + 1, period, right)
        if left is not None:
            result += function.block_tail_sum(self.weights[:period], self.start, -period, left)
        return result

    def _function(self, given: LatticeFunction | str | Mapping[str, Any]) -> LatticeFunction:
        """A function of the lattice index, or the form of a cost as one."""
        if isinstance(given, LatticeFunction):
            return given
        from dpopt.problem.costs import TableCost, read_cost  # costs belong to problems, which are made of pmfs
        from dpopt.problem.support import Lattice

        cost, support = read_cost(given, "function"), Lattice(self.step)
        if isinstance(cost, TableCost) and cost.outside is None and self.tails is None:
            support = Lattice(self.step, self.low, self.high)
        return cost.on(support)

    def expectation(self, function: LatticeFunction | str | Mapping[str, Any]) -> Fraction:
        """The exact expectation of a function.

        Parameters
        ----------
        function : LatticeFunction, str or dict
            A function of the lattice index, or a cost in data units as objectives have it: "absolute", "square",
            "error", "value", ``{"power": 3}``, ``{"table": {...}, "outside": ...}``.

        Raises
        ------
        InputError
            `function` is none of these.

        Examples
        --------
        >>> Pmf(-1, (1, 2, 1), step="1/2").expectation("square")
        Fraction(1, 8)
        >>> Pmf(-1, (1, 2, 1)).expectation(LatticeFunction(0, (), left=(0, -1), right=(0, 1)))
        Fraction(1, 2)
        """
        return self.weighted_sum(function) / self.total

    def absolute_moment(self, power: int) -> Fraction:
        """E|Z|^power in data units, exactly."""
        power = exact_integer(power, "power", at_least=0)
        if power > _MOST_POWER:
            raise InputError("power", f"must be at most {_MOST_POWER}, not {brief(power)}")
        monomial = (*(Fraction(0),) * power, Fraction(1))
        left = (*monomial[:-1], Fraction((-1) ** power))
        return self.step**power * self.expectation(LatticeFunction(0, (), left, monomial))

    @cached_property
    def mean(self) -> Fraction:
        """E Z in data units."""
        return self.step * self.expectation(LatticeFunction.polynomial((0, 1)))

    @cached_property
    def variance(self) -> Fraction:
        """E Z^2 - (E Z)^2 in squared data units."""
        return self.absolute_moment(2) - self.mean**2

    @cached_property
    def entropy(self) -> Enclosure:
        """The entropy in nats, enclosed to 2^-64: ``ln W - sum(w ln w) / W``, tails in closed form."""
        if sum(w > 0 for w in self.weights) == 1 and not any(any(block) for _, block in self._tail_blocks()):
            return Enclosure(Fraction(0), Fraction(0))
        low = floor_scaled(self._entropy_ball, 64)
        return Enclosure(Fraction(low, 1 << 64), Fraction(low + 1, 1 << 64))

    def _entropy_ball(self) -> arb:
        total = ball(self.total)
        spread = arb(0)
        for weight in self.weights:
            if weight > 1:
                spread += arb(fmpz(weight)) * arb(fmpz(weight)).log()
        for ratio, block in self._tail_blocks():
            # sum over t >= 1 of w r^t (ln w + t ln r) = w ln w r/(1-r) + w ln r r/(1-r)^2
            mass, slope = ball(ratio / (1 - ratio)), ball(ratio / (1 - ratio) ** 2) * ball(ratio).log()
            for weight in block:
                if weight:
                    spread += arb(fmpz(weight)) * (arb(fmpz(weight)).log() * mass + slope)
        return total.log() - spread / total

    def _tail_blocks(self) -> list[tuple[Fraction, tuple[int, ...]]]:
        if self.tails is None:
            return []
        period, found = self.tails.period, []
        if self.tails.left is not None:
            found.append((self.tails.left, self.weights[:period]))
        if self.tails.right is not None:
            found.append((self.tails.right, self.weights[-period:]))
        return found

    # --- other pmfs ----------------------------------------------------------------------------------------------

    def convolve(self, other: Pmf) -> Pmf:
        """The law of the sum of two independent variables.

        At most one of the two may have tails: the sum of two infinite tails is not geometric.

        Examples
        --------
        >>> Pmf(0, (1, 1)).convolve(Pmf(0, (1, 1)))
        Pmf(start=0, weights=(1, 2, 1))
        """
        if self.step != other.step:
            raise InputError("other.step", f"must equal this pmf's step {self.step}, not {other.step}")
        if self.tails is not None and other.tails is not None:
            raise InputError("other.tails", "must be None when this pmf has tails: the sum's tails are not geometric")
        infinite, finite = (self, other) if self.tails is not None else (other, self)
        # Beyond core + range of the finite one, every term lies in a tail: extend the core by that range first.
        wide = infinite.extended(len(finite.weights) - 1) if infinite.tails is not None else infinite
        product = fmpz_poly(list(wide.weights)) * fmpz_poly(list(finite.weights))
        weights = [int(c) for c in product.coeffs()]
        weights += [0] * (len(wide.weights) + len(finite.weights) - 1 - len(weights))
        start = wide.start + finite.start
        if wide.tails is None:
            return Pmf(start, weights, self.step)
        margin = len(finite.weights) - 1  # entries that miss contributions from beyond the extended core
        cut_left = margin if wide.tails.left is not None else 0
        cut_right = margin if wide.tails.right is not None else 0
        kept = weights[cut_left : len(weights) - cut_right]
        return Pmf(start + cut_left, kept, self.step, wide.tails)

    def extended(self, by: int) -> Pmf:
        """The same pmf with a core at least `by` points longer on each side that has a tail."""
        if self.tails is None or by <= 0:
            return self
        require("by", extension_work(self, by), f"writes out {by} points of each tail")
        blocks = -(-by // self.tails.period)
        sides = [self.tails.left, self.tails.right]
        unit = 1  # the core's weights are multiplied by it, so that a tail's blocks stay integers
        for ratio in sides:
            unit *= 1 if ratio is None else ratio.denominator**blocks
        left, right = (self._blocks_outward(side, blocks, unit) for side in (-1, 1))
        weights = [*left, *(w * unit for w in self.weights), *right]
        return Pmf(self.start - len(left), weights, self.step, self.tails)

    def _blocks_outward(self, side: int, blocks: int, unit: int) -> list[int]:
        """The first `blocks` periods of a tail times `unit`, in the order of the lattice."""
        assert self.tails is not None
        ratio, period = (self.tails.right, self.tails.period) if side > 0 else (self.tails.left, self.tails.period)
        if ratio is None:
            return []
        block = self.weights[-period:] if side > 0 else self.weights[:period]
        factors = []
        for _ in range(blocks):
            unit = unit // ratio.denominator * ratio.numerator  # exactly: the unit holds the power of the denominator
            factors.append(unit)
        return [w * factor for factor in factors[::side] for w in block]

    # --- text ----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data with every exact number as a string, for JSON."""
        tails = None
        if self.tails is not None:
            left, right = self.tails.left, self.tails.right
            tails = {
                "period": str(self.tails.period),
                "left": None if left is None else str(left),
                "right": None if right is None else str(right),
            }
        return {
            "start": str(self.start),
            "weights": [str(w) for w in self.weights],
            "step": str(self.step),
            "tails": tails,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Pmf:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            An entry is missing, or is not what it has to be.
        """
        _need(data, "pmf", ("weights", "start"))
        tails = data.get("tails")
        if tails is not None:
            _need(tails, "tails", ("period",))
            try:
                tails = Tails(tails["period"], tails.get("left"), tails.get("right"))
            except InputError as error:
                raise error.inside("tails") from None
        weights = read_integers(data["weights"], "weights")
        return cls(data["start"], weights, data.get("step", 1), tails)

    def __repr__(self) -> str:
        step = "" if self.step == 1 else f", step={self.step}"
        tails = "" if self.tails is None else ", tails=..."
        if len(self.weights) <= 9 and max(self.weights) < 10**9:
            return f"Pmf(start={self.start}, weights={self.weights}{step}{tails})"
        return f"Pmf(start={self.start}, <{len(self.weights)} weights>{step}{tails})"

    def __str__(self) -> str:
        support = f"[{self.low}, {self.high}]" + (" and geometric tails" if self.tails is not None else "")
        return f"pmf on {support}: mean {float(self.mean):.6g}, variance {float(self.variance):.6g}"


def _need(data: object, where: str, names: tuple[str, ...]) -> None:
    """Refuse what is no mapping with these entries."""
    if not isinstance(data, Mapping):
        raise InputError(where, f"must be a mapping with the entries {', '.join(names)}, not {quoted(data)}")
    for name in names:
        if name not in data:
            raise InputError(where, f"lacks the entry {name!r}")


def extension_work(pmf: Pmf, by: int) -> Work:
    """What `Pmf.extended` takes: weights of the core and of whole periods beyond, over one denominator.

    Examples
    --------
    >>> extension_work(Pmf(0, (1,), tails=Tails(1, Fraction(1, 2), Fraction(1, 2))), 1000)
    Work(bit_operations=100170030, bytes=1141710)
    """
    if pmf.tails is None or by <= 0:
        return Work()
    sides = (pmf.tails.left is not None) + (pmf.tails.right is not None)
    points = len(pmf.weights) + sides * (by + pmf.tails.period)
    return Work.on_integers(points, max(pmf.weights).bit_length() + extension_bits(pmf, by), steps=10)


def extension_bits(pmf: Pmf, by: int) -> int:
    """The bits that `Pmf.extended` adds to the weights."""
    if pmf.tails is None:
        return 0
    ratios = [ratio for ratio in (pmf.tails.left, pmf.tails.right) if ratio is not None]
    return -(-by // pmf.tails.period) * sum(ratio.denominator.bit_length() for ratio in ratios)


class HasPmf(Protocol):
    """What holds a pmf: a `Solution`, a `Distribution`, a `KeyTable`."""

    @property
    def pmf(self) -> Pmf:
        """The exact pmf."""
        ...


def read_pmf(given: object, argument: str) -> Pmf:
    """The pmf, or the pmf of what has one.

    Raises
    ------
    InputError
        There is none. (What holds an unproved one raises as its `pmf` does.)

    Examples
    --------
    >>> read_pmf(Pmf(0, (1, 1)), "noise")
    Pmf(start=0, weights=(1, 1))
    """
    pmf = getattr(given, "pmf", given)
    if not isinstance(pmf, Pmf):
        raise InputError(argument, f"must be a Pmf or have one as its attribute 'pmf', not {type(given).__name__}")
    return pmf
