"""Better estimates from the gaps of a selection: least squares with later, independent measurements of its items.

A gap between two selected items measures the difference of their scores, at no privacy cost beyond that of the
selection. Measured again with fresh noise (at a cost of its own), the items have two sources of information, which
the best linear unbiased estimator weighs by their variances. The covariance matrix of everything is tridiagonal in
the gaps, so that one pass down and one pass up do, in integers: over a common denominator, every entry of the solution
and of the inverse is made of leading and trailing minors, with nothing to reduce before the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import cos, floor, lcm, pi
from numbers import Rational
from typing import NamedTuple

from flint import fmpz

from dpopt.arithmetic import Number, exact
from dpopt.errors import InputError
from dpopt.reading import read_numbers
from dpopt.record import Record
from dpopt.release.randomness import NOT_FOR_RELEASE
from dpopt.text import aligned, decimal_text

__all__ = ["GapEstimates", "combine_gaps"]


@dataclass(frozen=True, init=False, repr=False)
class GapEstimates(Record):
    """Estimates of the selected scores from measurements and gaps.

    Parameters
    ----------
    estimates : tuple of Fraction
    variances : tuple of Fraction
        Of the estimates.
    measured : tuple of Fraction
        The variances of the measurements alone.
    secure : bool
        False where the gaps are those of a `TopK` that is not secure. `dataclasses.replace` leaves False.
    """

    estimates: tuple[Fraction, ...]
    variances: tuple[Fraction, ...]
    measured: tuple[Fraction, ...]
    secure: bool = field(init=False)

    def __init__(
        self,
        estimates: tuple[Fraction, ...],
        variances: tuple[Fraction, ...],
        measured: tuple[Fraction, ...],
        secure: bool = False,
    ) -> None:
        for part, value in zip(fields(self), (estimates, variances, measured, secure), strict=True):
            object.__setattr__(self, part.name, value)

    @property
    def gain(self) -> Fraction:
        """The part of the total variance that the gaps have taken away."""
        return 1 - _total(self.variances) / _total(self.measured)

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        columns = zip(self.estimates, self.variances, self.measured, strict=True)
        rows = [tuple(map(_rounded, row)) for row in columns]
        mark = [] if self.secure else [NOT_FOR_RELEASE]
        return "\n".join([*mark, *aligned([("estimate", "variance", "measured alone"), *rows])])


def combine_gaps(
    measurements: Sequence[Number],
    gaps: Sequence[Number],
    *,
    variances: Number | Sequence[Number],
    gap_variance: Number,
    gap_covariance: Number | None = None,
    gap_bias: Number = 0,
) -> GapEstimates:
    """The best linear unbiased estimates of the selected scores, given the variances.

    Exact numbers in, exact numbers out. `TopK.combine` calls this with the variances of its own gaps.

    What is proved holds for gaps with mean ``q_i - q_{i+1} + gap_bias``: of scores so far apart that the noise has not
    decided their order. Being selected, and being selected in this order, is information: among scores that are close
    to each other in terms of the noise, gaps are too large on average (equal scores have positive gaps), and so are
    then the differences of the estimates. The measurements, drawn afterwards, have no such bias.

    Parameters
    ----------
    measurements : sequence of number
        One unbiased measurement of each selected item, in the order of the selection, independent of it and of each
        other.
    gaps : sequence of number
        The gaps between neighbours, one fewer than measurements; one more, to the item that is not selected, tells
        nothing about those that are, and is left out.
    variances : number or sequence of number
        Of the measurements; one for all, or one for each; positive.
    gap_variance : number
        The variance of each gap.
    gap_covariance : number, optional
        The covariance of gaps that share an item; half the variance with a minus sign by default, as for a difference
        of independent noises. With n gaps it lies within ``gap_variance / (2 cos(pi / (n + 1)))`` of 0, decided
        exactly: no noise has others.
    gap_bias : number
        The mean error of a gap: minus half a unit for gaps that are rounded down.

    Raises
    ------
    InputError
        The lengths do not fit, numbers come without an order (a set, a dict), a variance is not positive, or no noise
        has such covariances.

    Examples
    --------
    Two items measured as 50 and 44, each with variance 8; their gap, of variance 16, says 10:

    >>> found = combine_gaps([50, 44], [10], variances=8, gap_variance=16)
    >>> found.estimates, found.variances
    ((Fraction(51, 1), Fraction(43, 1)), (Fraction(6, 1), Fraction(6, 1)))
    >>> found.gain
    Fraction(1, 4)
    """
    measured = read_numbers(measurements, "measurements")
    count = len(measured)
    if not count:
        raise InputError("measurements", "must hold at least one measurement")
    steps = read_numbers(gaps, "gaps")
    if len(steps) not in (count - 1, count):
        raise InputError("gaps", f"must be {count - 1} or {count} for {count} measurements, not {len(steps)}")
    single = isinstance(variances, str) or not isinstance(variances, Iterable)
    spread = (exact(variances, "variances"),) * count if single else read_numbers(variances, "variances")
    if len(spread) != count:
        raise InputError("variances", f"must be one number, or one for each of the {count} measurements")
    own = exact(gap_variance, "gap_variance")
    shared = -own / 2 if gap_covariance is None else exact(gap_covariance, "gap_covariance")
    for name, value in [("gap_variance", own), *(("variances", value) for value in spread)]:
        if value <= 0:
            raise InputError(name, f"must be positive, not {value}")
    _require_covariance(own, shared, len(steps))
    bias = exact(gap_bias, "gap_bias")
    if count == 1:
        return GapEstimates(tuple(measured), tuple(spread), tuple(spread), secure=True)
    surprise = [measured[i] - measured[i + 1] - steps[i] + bias for i in range(count - 1)]
    estimates, after = _least_squares(measured, spread, surprise, own, shared)
    return GapEstimates(estimates, after, tuple(spread), secure=True)


def _require_covariance(own: Fraction, shared: Fraction, count: int) -> None:
    """Refuse what is no covariance of `count` gaps in a row: ``2 |shared| cos(pi / (count + 1)) > own``.

    Decided by the leading minors of their matrix, in units of `own`: 1, 1 - r, 1 - 2 r, ... with r = (shared / own)^2.
    The last one may be 0.
    """
    ratio = (shared / own) ** 2
    if 4 * ratio <= 1:
        return
    top, bottom = fmpz(ratio.numerator), fmpz(ratio.denominator)
    before, minor = fmpz(1), fmpz(1)
    for size in range(2, count + 1):
        before, minor = bottom * minor, bottom * minor - top * before  # both times `bottom`, each time
        if minor < 0 or (minor == 0 and size < count):
            most = decimal_text(own * Fraction(1 / (2 * cos(pi / (count + 1)))), 6, up=None)
            raise InputError(
                "gap_covariance",
                f"must lie within about {most} of 0 for {count} gaps of variance {own} in a row, not {shared}",
            )


def _least_squares(
    measured: Sequence[Fraction], spread: Sequence[Fraction], surprise: list[Fraction], own: Fraction, shared: Fraction
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """The estimates ``a - T D' y`` and their variances, of ``T - T D' S^-1 D T``.

    T has the variances of the measurements a, D takes the differences of neighbours, ``S = D T D' + C`` with the gaps'
    covariances C is the covariance of the surprise ``D a - g``, and ``S y`` is that.
    """
    pairs = len(surprise)
    system = _Tridiagonal.of(
        [spread[i] + spread[i + 1] + own for i in range(pairs)],
        [shared - spread[i + 1] for i in range(pairs - 1)],
    )
    unit = lcm(*(number.denominator for number in [*measured, *surprise]))
    pulls = system.solve([int(number * unit) for number in surprise])
    diagonal, beside = system.inverse()
    pulls, inner, outer = ([fmpz(0), *part, fmpz(0)] for part in (pulls, diagonal, beside))
    estimates, after = [], []
    for i, (value, variance) in enumerate(zip(measured, spread, strict=True)):
        top, whole = variance.numerator, variance.denominator * system.determinant
        estimates.append(int(value * unit) * whole - top * (pulls[i + 1] - pulls[i]))
        after.append(whole - top * (inner[i] + inner[i + 1] - 2 * outer[i]))
    return (
        tuple(
            ratio / (unit * variance.denominator)
            for ratio, variance in zip(_over(estimates, system.determinant), spread, strict=True)
        ),
        tuple(
            ratio * variance / variance.denominator
            for ratio, variance in zip(_over(after, system.determinant), spread, strict=True)
        ),
    )


class _Tridiagonal:
    """A symmetric positive definite tridiagonal matrix, by integers: each row times what its denominators need.

    Everything asked for is an integer over the determinant of these rows. With d on the diagonal, `after` beside it on
    the right and `before` on the left, leading minors are ``M_i = d_i M_{i-1} - before_i after_{i-1} M_{i-2}``.
    """

    def __init__(self, scales: list[int], diagonal: list[fmpz], before: list[fmpz], after: list[fmpz]) -> None:
        self.scales, self.before, self.after = scales, before, after
        products = [low * high for low, high in zip(before, after, strict=True)]
        self.leading = _minors(diagonal, products)
        self.trailing = _minors(diagonal[::-1], products[::-1])[::-1]
        self.determinant = self.leading[-1]

    @classmethod
    def of(cls, diagonal: list[Fraction], beside: list[Fraction]) -> _Tridiagonal:
        """The matrix with these entries on the diagonal and beside it."""
        rows = list(zip([Fraction(0), *beside], diagonal, [*beside, Fraction(0)], strict=True))
        scales = [lcm(*(entry.denominator for entry in row)) for row in rows]
        before, middle, after = (
            [fmpz(int(row[place] * scale)) for row, scale in zip(rows, scales, strict=True)] for place in range(3)
        )
        return cls(scales, middle, before[1:], after[:-1])

    def solve(self, right: list[int]) -> list[fmpz]:
        """Forward elimination and back substitution without fractions; every division comes out even."""
        forward: list[fmpz] = []
        for i, (value, scale) in enumerate(zip(right, self.scales, strict=True)):
            entry = value * scale * self.leading[i]
            forward.append(entry - self.before[i - 1] * forward[-1] if forward else entry)
        found = [forward[-1]]
        for i in reversed(range(len(forward) - 1)):
            rest = forward[i] * self.determinant - self.after[i] * self.leading[i] * found[-1]
            found.append(rest // self.leading[i + 1])
        return found[::-1]

    def inverse(self) -> tuple[list[fmpz], list[fmpz]]:
        """The diagonal of the inverse, and the entries beside it."""
        up, down = self.leading, self.trailing
        diagonal = [up[i] * down[i + 1] * scale for i, scale in enumerate(self.scales)]
        beside = [-up[i] * down[i + 2] * off * self.scales[i + 1] for i, off in enumerate(self.after)]
        return diagonal, beside


def _minors(diagonal: list[fmpz], products: list[fmpz]) -> list[fmpz]:
    """The determinants of the first 0, 1, 2, ... rows."""
    found = [fmpz(1), diagonal[0]]
    for entry, product in zip(diagonal[1:], products, strict=True):
        found.append(entry * found[-1] - product * found[-2])
    return found


class _Reduced(NamedTuple):
    """A ratio in lowest terms, which `Fraction` takes over as it is: it would look for a common divisor otherwise."""

    numerator: int
    denominator: int


Rational.register(_Reduced)


def _over(tops: list[fmpz], bottom: fmpz) -> list[Fraction]:
    """Large integers over the same one, in lowest terms: the primes that any of them shares with it are found once."""
    product = fmpz(1)
    for top in tops:
        product = product * top % bottom
    part, grown = fmpz(1), product.gcd(bottom)
    while part != grown:  # until it has those primes as often as `bottom`
        part, grown = grown, (grown * grown).gcd(bottom)
    found = []
    for top in tops:
        divisor = (top % part).gcd(part)
        found.append(Fraction(_Reduced(int(top // divisor), int(bottom // divisor))))  # type: ignore[call-overload]
    return found


def _total(numbers: tuple[Fraction, ...]) -> Fraction:
    """The sum over the least common denominator, in one go."""
    common = fmpz(1)
    for number in numbers:
        common = common.lcm(number.denominator)
    top = sum((common // number.denominator * number.numerator for number in numbers), fmpz(0))
    return _over([top], common)[0]


def _rounded(number: Fraction) -> str:
    """Six digits; of thousands, 64 bits decide nearly always what to round them to."""
    shift = 64 - number.numerator.bit_length() + number.denominator.bit_length()
    scale = Fraction(2) ** shift
    low = floor(number * scale)
    texts = {decimal_text(end / scale, 6, up=None) for end in (Fraction(low), Fraction(low + 1))}
    return texts.pop() if len(texts) == 1 else decimal_text(number, 6, up=None)
