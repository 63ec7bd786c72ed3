"""Whether noise is (epsilon, delta)-DP: yes or no, decided exactly.

An enclosure of the least epsilon cannot say it: its upper end is rounded outward, beyond an epsilon that the noise was
made for. But delta is piecewise linear in E = e^epsilon with rational pieces, so that the least E at which the noise
reaches a delta is a rational number, and a rational number differs from e^epsilon unless epsilon is 0 (Lindemann): the
two are always told apart.
"""

from __future__ import annotations

from fractions import Fraction

from dpopt.arithmetic import Number, exact, exact_nonnegative, exp_enclosure, is_at_most_exp, log_enclosure
from dpopt.errors import InputError
from dpopt.pmf import Pmf, read_pmf
from dpopt.privacy.divergence import is_pure
from dpopt.privacy.enclosed import enclosed_delta, is_long
from dpopt.privacy.losses import Losses
from dpopt.privacy.shifts import lattice_shift
from dpopt.text import decimal_text

__all__ = ["is_private", "is_within", "least_decimal", "read_delta"]

_BITS = 128  # at which privacy losses are sorted; what it decides is exact
_MOST_BITS = 1 << 10  # of a delta between two ends, where it has no exact form that can be written out


def is_private(pmf: Pmf, epsilon: Number, delta: Number = 0, sensitivity: Number = 1) -> bool:
    """Whether noise is (epsilon, delta)-DP, decided exactly: for every shift up to the sensitivity, in both directions.

    Parameters
    ----------
    pmf : Pmf
        The noise, or anything with a `pmf` attribute.
    epsilon : number
        At least 0, exact.
    delta : number
        From 0, which asks for pure epsilon-DP, to 1.
    sensitivity : number
        In data units; all shifts up to ``floor(sensitivity / step)`` lattice steps count.

    Raises
    ------
    InputError
        The sensitivity is thousands of times the scale of noise with tails: its exact ratio has more than a million
        bits, or `delta` is within 2^-1000 of the least.

    Examples
    --------
    >>> coin = Pmf(-1, (1, 2, 1))  # its outermost mass is 1/4
    >>> is_private(coin, "0.6931", delta="1/4"), is_private(coin, "0.6932", delta="1/4")  # from ln 2 on
    (False, True)
    >>> is_private(coin, 100)
    False
    """
    pmf = read_pmf(pmf, "pmf")
    epsilon, delta = exact_nonnegative(epsilon, "epsilon"), read_delta(delta)
    exp_enclosure(epsilon)  # one that is too large is refused, whatever the noise
    shift = lattice_shift(sensitivity, pmf.step)
    if delta == 0:
        return is_pure(pmf, epsilon, shift)
    if is_long(pmf, shift):
        return _is_enclosed(pmf, epsilon, delta, shift)
    return is_within(Losses(pmf, shift, _BITS), epsilon, delta)


def is_within(losses: Losses, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the largest of the curves is at most `delta` at e^epsilon."""
    return losses.floor <= delta and is_at_most_exp(losses.least_factor(delta), epsilon)


def least_decimal(factor: Fraction, digits: int = 12) -> Fraction:
    """The least decimal with `digits` significant digits that is at least ln `factor`, decided exactly.

    What a least epsilon may be rounded to: an epsilon that the noise was made for is its own least decimal.

    Examples
    --------
    >>> least_decimal(Fraction(2), 4), least_decimal(exp_enclosure(Fraction(1, 10)).lower)
    (Fraction(1733, 2500), Fraction(1, 10))
    """
    low, high = log_enclosure(factor)
    nearest = Fraction(decimal_text(low, digits, up=True))
    return nearest if is_at_most_exp(factor, nearest) else Fraction(decimal_text(high, digits, up=True))


def read_delta(given: object) -> Fraction:
    """A probability that privacy may fail with."""
    delta = exact(given, "delta")
    if not 0 <= delta <= 1:
        raise InputError("delta", f"must lie between 0 and 1, not {delta}")
    return delta


def _is_enclosed(pmf: Pmf, epsilon: Fraction, delta: Fraction, shift: int) -> bool:
    """The decision where delta is only enclosed, ever more narrowly: two numbers that differ are told apart."""
    if delta == 1:
        return True
    bits = 64
    while bits <= _MOST_BITS:
        low, high = enclosed_delta(pmf, exp_enclosure(epsilon, 2 * bits), shift, accurate=bits)
        if low > delta or high <= delta:
            return high <= delta
        bits *= 2
    raise InputError("delta", f"is too close to the least delta of this noise to tell them apart at {shift} steps")
