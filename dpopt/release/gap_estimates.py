"""Better estimates from the gaps of a selection: least squares with later, independent measurements of its items.

A gap between two selected items measures the difference of their scores, at no privacy cost beyond that of the
selection. Measured again with fresh noise (at a cost of its own), the items have two sources of information, which
the best linear unbiased estimator weighs by their variances. The covariance matrix of everything is tridiagonal in
the gaps, so that exact rationals take one pass down and one pass up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from flint import fmpq

from dpopt.arithmetic import Number, exact
from dpopt.errors import InputError
from dpopt.text import aligned, decimal_text

__all__ = ["GapEstimates", "combine_gaps"]


@dataclass(frozen=True)
class GapEstimates:
    """Estimates of the selected scores from measurements and gaps.

    Parameters
    ----------
    estimates : tuple of Fraction
    variances : tuple of Fraction
        Of the estimates.
    measured : tuple of Fraction
        The variances of the measurements alone.
    """

    estimates: tuple[Fraction, ...]
    variances: tuple[Fraction, ...]
    measured: tuple[Fraction, ...]

    @property
    def gain(self) -> Fraction:
        """The part of the total variance that the gaps have taken away."""
        return 1 - sum(self.variances, Fraction(0)) / sum(self.measured, Fraction(0))

    def __str__(self) -> str:
        columns = zip(self.estimates, self.variances, self.measured, strict=True)
        rows = [tuple(decimal_text(number, 6, up=None) for number in row) for row in columns]
        return "\n".join(aligned([("estimate", "variance", "measured alone"), *rows]))


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
        of independent noises.
    gap_bias : number
        The mean error of a gap: minus half a unit for gaps that are rounded down.

    Raises
    ------
    InputError
        The lengths do not fit, a variance is not positive, or no noise has such covariances.

    Examples
    --------
    Two items measured as 50 and 44, each with variance 8; their gap, of variance 16, says 10:

    >>> found = combine_gaps([50, 44], [10], variances=8, gap_variance=16)
    >>> found.estimates, found.variances
    ((Fraction(51, 1), Fraction(43, 1)), (Fraction(6, 1), Fraction(6, 1)))
    >>> found.gain
    Fraction(1, 4)
    """
    measured = _numbers(measurements, "measurements")
    count = len(measured)
    if not count:
        raise InputError("measurements", "must hold at least one measurement")
    steps = _numbers(gaps, "gaps")
    if len(steps) not in (count - 1, count):
        raise InputError("gaps", f"must be {count - 1} or {count} for {count} measurements, not {len(steps)}")
    single = isinstance(variances, str) or not isinstance(variances, Iterable)
    spread = [exact(variances, "variances")] * count if single else _numbers(variances, "variances")
    if len(spread) != count:
        raise InputError("variances", f"must be one number, or one for each of the {count} measurements")
    own = exact(gap_variance, "gap_variance")
    shared = -own / 2 if gap_covariance is None else exact(gap_covariance, "gap_covariance")
    for name, value in [("gap_variance", own), *(("variances", value) for value in spread)]:
        if value <= 0:
            raise InputError(name, f"must be positive, not {value}")
    bias = exact(gap_bias, "gap_bias")
    if count == 1:
        return GapEstimates(tuple(measured), tuple(spread), tuple(spread))
    # With y = S^-1 (D a - g), S = D T D' + C and D the differences of neighbours, the estimate is a - T D' y.
    system = _Tridiagonal(
        [_rational(spread[i] + spread[i + 1] + own) for i in range(count - 1)],
        [_rational(shared - spread[i + 1]) for i in range(count - 2)],
    )
    surprise = [_rational(measured[i] - measured[i + 1] - steps[i] + bias) for i in range(count - 1)]
    pull = [fmpq(0), *system.solve(surprise), fmpq(0)]
    diagonal, beside = system.inverse()
    inner, outer = [fmpq(0), *diagonal, fmpq(0)], [fmpq(0), *beside, fmpq(0)]
    estimates, after = [], []
    for i, (value, variance) in enumerate(zip(measured, map(_rational, spread), strict=True)):
        estimates.append(_fraction(_rational(value) - variance * (pull[i + 1] - pull[i])))
        after.append(_fraction(variance - variance**2 * (inner[i] + inner[i + 1] - 2 * outer[i])))
    return GapEstimates(tuple(estimates), tuple(after), tuple(spread))


class _Tridiagonal:
    """A symmetric positive definite tridiagonal matrix, by its pivots from above and from below."""

    def __init__(self, diagonal: list[fmpq], beside: list[fmpq]) -> None:
        self.diagonal, self.beside = diagonal, beside
        self.down = self._pivots(diagonal, beside)
        self.up = self._pivots(diagonal[::-1], beside[::-1])[::-1]

    @staticmethod
    def _pivots(diagonal: list[fmpq], beside: list[fmpq]) -> list[fmpq]:
        pivots: list[fmpq] = []
        for entry, off in zip(diagonal, chain([fmpq(0)], beside), strict=True):
            pivot = entry - off**2 / pivots[-1] if pivots else entry
            if pivot <= 0:
                raise InputError("gap_covariance", "must be a covariance of noises with this variance: it is too large")
            pivots.append(pivot)
        return pivots

    def solve(self, right: list[fmpq]) -> list[fmpq]:
        """Forward elimination and back substitution."""
        found = list(right)
        for i in range(1, len(found)):
            found[i] -= self.beside[i - 1] / self.down[i - 1] * found[i - 1]
        for i in reversed(range(len(found))):
            after = self.beside[i] * found[i + 1] if i + 1 < len(found) else fmpq(0)
            found[i] = (found[i] - after) / self.down[i]
        return found

    def inverse(self) -> tuple[list[fmpq], list[fmpq]]:
        """The diagonal of the inverse, and the entries beside it."""
        inner = [1 / (down + up - entry) for down, up, entry in zip(self.down, self.up, self.diagonal, strict=True)]
        outer = [-off * entry / up for off, entry, up in zip(self.beside, inner, self.up[1:], strict=False)]
        return inner, outer


def _numbers(values: object, argument: str) -> list[Fraction]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(argument, f"must be a sequence of numbers, not {values!r}")
    return [exact(value, f"{argument}[{i}]") for i, value in enumerate(values)]


def _rational(number: Fraction) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def _fraction(number: fmpq) -> Fraction:
    return Fraction(int(number.p), int(number.q))
