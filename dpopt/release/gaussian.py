"""The discrete Gaussian: P(z) proportional to e^(-z^2 / (2 sigma^2)) on the integers.

A small sigma has a table, with the normaliser enclosed by balls and the infinite rest of its sum bounded. A large one
is drawn by rejection from a discrete Laplace law (Canonne, Kamath and Steinke 2020, algorithm 3): a proposal y is kept
with probability p = e^(-(|y| - sigma^2/t)^2 / (2 sigma^2)), t = floor(sigma) + 1. Whether a uniform number lies below p
is decided in floats where it lies 2^-32 away, and by balls otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb

from dpopt.arithmetic import ball
from dpopt.balls import working_precision
from dpopt.release.digits import ExponentialRatio, draw_again
from dpopt.release.lazy import BallSurvival, LazyTable
from dpopt.release.randomness import Randomness
from dpopt.release.tailed import Tail, TailedDraws, TailedLaw

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["gaussian_draws", "laplace_draws"]

_LARGEST_TABLE = Fraction(1 << 18)  # sigma^2: about 9,400 boundaries
_FLOAT_SIGMA = 1 << 500  # beyond, the floats of the acceptance could overflow
_MARGIN = 2.0**-32


class GaussianTable:
    """The law as one table over 0, 1, -1, 2, -2, ..."""

    def __init__(self, variance: Fraction) -> None:
        self._variance = variance
        self._table = LazyTable(BallSurvival(self._survival))
        self.wide = False

    def _survival(self, bits: int) -> list[arb]:
        """Sums of e^(-j^2 / (2 sigma^2)) from the far end, over their total.

        The ratio of neighbouring terms falls with j, so that all terms from j = last on weigh less than the first of
        them over 1 - e^(-(2 last + 1) / (2 sigma^2)).
        """
        twice = 2 * self._variance
        enough = bits + working_precision()  # e^-enough is less than any digit in use
        last = isqrt(int(twice * enough)) + 2
        terms = [ball(-j * j / twice).exp() for j in range(last + 1)]
        rest = (2 * terms[last] / -ball(-(2 * last + 1) / twice).expm1()).upper()
        beyond = arb(rest / 2, rest / 2)  # the ball from 0 to the bound
        masses = [terms[0]] + [term for term in terms[1:last] for _ in "+-"]
        suffixes = list(accumulate(reversed(masses), initial=beyond))
        total = suffixes[-1]
        return [suffix / total for suffix in suffixes[-2:0:-1]]

    def draw(self, count: int, randomness: Randomness) -> NDArray[np.int64]:
        """`count` independent draws."""
        order = self._table.draw(count, randomness).astype(np.int64)
        size = (order + 1) >> 1
        return np.where(order & 1, size, -size)


class GaussianRejection:
    """The law by rejection from the discrete Laplace law of scale floor(sigma) + 1."""

    def __init__(self, variance: Fraction) -> None:
        self._variance = variance
        self._scale = isqrt(int(variance)) + 1
        self._proposals = laplace_draws(Fraction(self._scale))
        self.wide = self._proposals.wide
        self._floats = variance < _FLOAT_SIGMA**2

    def draw(self, count: int, randomness: Randomness) -> NDArray[Any]:
        """`count` independent draws."""
        return draw_again(self._proposals.draw, lambda drawn: self._kept(drawn, randomness), count, randomness)

    def _kept(self, drawn: NDArray[Any], randomness: Randomness) -> NDArray[np.bool_]:
        words = randomness.words(len(drawn))
        kept = np.zeros(len(drawn), dtype=bool)
        close = np.arange(len(drawn))
        if self._floats:
            # The floats are within 2^-44 of the real numbers: |y| / sigma and sigma / t have relative errors of a few
            # 2^-53, and e^(-d^2/2) (d + 1) (d + 2) < 4 bounds what they move; `exp` and the word add less than 2^-50.
            sigma = float(self._scale) * float(self._variance / self._scale**2) ** 0.5
            distance = np.abs(drawn).astype(float) / sigma - sigma / float(self._scale)
            room = np.exp(-distance * distance / 2) - words.astype(float) * 2.0**-64
            kept = room > 0
            close = np.flatnonzero(np.abs(room) <= _MARGIN)
        for place in close.tolist():
            kept[place] = self._below(int(words[place]), abs(int(drawn[place])), randomness)
        return kept

    def _below(self, read: int, size: int, randomness: Randomness) -> bool:
        """Whether the uniform number that begins with the 64 bits `read` lies below p."""
        exponent = (size - self._variance / self._scale) ** 2 / (2 * self._variance)
        if exponent == 0:
            return True
        bits = 64
        while True:
            floor, _ = BallSurvival(lambda _: [ball(-exponent).exp()]).floors(bits)[0]
            if read != floor:
                return read < floor
            read, bits = read << 64 | randomness.integer(64), bits + 64


@lru_cache(maxsize=32)
def laplace_draws(scale: Fraction) -> TailedDraws:
    """Draws of z with probability proportional to e^(-|z| / scale), tables kept for the next call."""
    tail = Tail((1,), ExponentialRatio(1 / scale))
    return TailedDraws(TailedLaw(0, (1,), left=tail, right=tail))


@lru_cache(maxsize=32)
def gaussian_draws(variance: Fraction) -> GaussianTable | GaussianRejection:
    """Draws of the discrete Gaussian of parameter sigma^2, tables kept for the next call."""
    return GaussianTable(variance) if variance <= _LARGEST_TABLE else GaussianRejection(variance)
