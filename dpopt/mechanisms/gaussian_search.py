"""The least standard deviation at which Gaussian noise on a lattice is (epsilon, delta)-DP, on a grid.

The rounded normal is log-concave, so at a sensitivity of m steps the worst event is a tail:
delta = max over t of P(Z >= t) - e^epsilon P(Z >= t + m). Any t gives a lower bound, decided here in balls. What the
search returns is proved on the pmf itself, and the grid point below it is refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from dpopt.arithmetic import ball, sign
from dpopt.distributions import LatticeGaussian, gaussian
from dpopt.distributions.base import BITS
from dpopt.distributions.inputs import Gaussian
from dpopt.errors import InputError
from dpopt.privacy.divergence import delta as delta_at
from dpopt.searching import first_that

__all__ = ["GRID", "least_gaussian"]

GRID = 1000  # standard deviations are multiples of step / GRID
_MOST = 100_000 * GRID
_LEAST_DELTA = Fraction(1, 10**29)  # masses are multiples of 2^-128 and add up to millions of units


def least_gaussian(epsilon: Fraction, delta: Fraction, shift: int, step: Fraction) -> Gaussian | LatticeGaussian:
    """The Gaussian noise with the least sd on the grid of step/1000 that is proved to be (epsilon, delta)-DP.

    The grid point below it is refuted: by a tail of the ideal law, or, where masses below 2^-128 would have to count
    (an epsilon above 80 or so), by the pmf. Where delta falls with sd, it is thus the least of the whole grid.

    Examples
    --------
    >>> print(least_gaussian(Fraction(1), Fraction(1, 100_000), 1, Fraction(1)).sd)
    373/100
    """
    if delta < _LEAST_DELTA:
        raise InputError("delta", "must be at least 1e-29 for gaussian noise, whose masses are multiples of 2^-128")

    def reaches(count: int) -> bool:
        noise = gaussian(0, count * step / GRID, step=step)
        return delta_at(noise.pmf, epsilon, shift * step).upper <= delta

    count = _least_above(0, lambda count: not _fails(count, epsilon, delta, shift))
    if not reaches(count):
        guess = _least_above(count, lambda count: _rounded_delta(count, epsilon, shift) <= delta)
        # masses are slow to make: two of them confirm a guess, forty find it
        count = guess if reaches(guess) and not reaches(guess - 1) else _least_above(count, reaches)
    return gaussian(0, count * step / GRID, step=step)


def _least_above(low: int, does: Callable[[int], bool]) -> int:
    """The least count above `low` that does, by doubling the distance and halving it again."""
    distance = 1
    while not does(low + distance):
        low, distance = low + distance, 2 * distance
        if low + distance > _MOST:
            raise InputError(
                "epsilon", f"asks for gaussian noise with an sd beyond {_MOST // GRID} steps; laplace goes on"
            )
    return first_that(does, low, low + distance)


def _fails(count: int, epsilon: Fraction, delta: Fraction, shift: int) -> bool:
    """Whether one tail proves that sd = count / GRID steps is not (epsilon, delta)-DP."""
    if delta >= 1:
        return False
    sd = Fraction(count, GRID)
    crossing = sd * sd * epsilon / shift - Fraction(shift, 2)  # there the density falls by e^epsilon over the shift
    around = math.floor(crossing)
    return any(_is_above(t, sd, epsilon, delta, shift) for t in range(around - 1, around + 3))


def _rounded_delta(count: int, epsilon: Fraction, shift: int) -> float:
    """delta of the rounded normal in floats, whose masses end where they fall below 2^-129: for guesses only."""
    sd = count / GRID
    end = math.floor(sd * math.sqrt(2 * math.log(2.0 ** (BITS + 1) / (sd * math.sqrt(2 * math.pi)))))

    def above(k: float) -> float:
        return math.erfc((k - 0.5) / (sd * math.sqrt(2))) / 2

    crossing = math.floor(sd * sd * float(epsilon) / shift - shift / 2) + 1
    if crossing > end - shift:  # what is compared with it has no mass any more
        return above(end - shift + 1)
    seen = above(crossing + shift) - above(end + 1)
    return above(crossing) - (math.exp(float(epsilon) + math.log(seen)) if seen > 0 else 0.0)


def _is_above(t: int, sd: Fraction, epsilon: Fraction, delta: Fraction, shift: int) -> bool:
    """Whether P(Z >= t) - e^epsilon P(Z >= t + shift) > delta for the ideal rounded normal."""

    def above(k: int) -> arb:
        return (ball((k - Fraction(1, 2)) / sd) / arb(2).sqrt()).erfc() / 2

    return sign(lambda: above(t) - ball(epsilon).exp() * above(t + shift) - ball(delta)) > 0
