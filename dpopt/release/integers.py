"""Exact draws, one at a time, by integer arithmetic alone: slow, short, and easy to check by eye.

Each function reads random bits and compares integers; no float and no table is involved. They are the second method
that the fast samplers are tested against, and what a loop of few draws may use. Rates and scales are exact rationals.

Sources: Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (2020), for the alternating
series of Bernoulli(e^-x) and for the geometric, discrete Laplace and discrete Gaussian laws built on it.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from dpopt.arithmetic import Number, exact, exact_integer, exact_positive
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.release.randomness import Randomness, read_randomness

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "permutation",
    "truncated_geometric",
    "uniform_below",
]

_ONE = Fraction(1)


def uniform_below(below: int, randomness: Randomness | None = None) -> int:
    """A uniform integer in 0..below - 1, by rejection.

    Examples
    --------
    >>> uniform_below(1)
    0
    """
    return _uniform(exact_integer(below, "below", at_least=1), read_randomness(randomness))


def bernoulli(p: Number, randomness: Randomness | None = None) -> int:
    """1 with probability p, 0 <= p <= 1, and 0 otherwise.

    Examples
    --------
    >>> bernoulli(0), bernoulli(1)
    (0, 1)
    """
    chance = exact(p, "p")
    if not 0 <= chance <= 1:
        raise InputError("p", f"must lie in [0, 1], not {chance}")
    return _bernoulli(chance, read_randomness(randomness))


def bernoulli_exp(x: Number, randomness: Randomness | None = None) -> int:
    """1 with probability e^-x, x >= 0, and 0 otherwise.

    Examples
    --------
    >>> bernoulli_exp(0)
    1
    """
    rate = exact(x, "x")
    if rate < 0:
        raise InputError("x", f"must not be negative, not {rate}")
    return _bernoulli_exp(rate, read_randomness(randomness))


def geometric(x: Number, randomness: Randomness | None = None) -> int:
    """An integer j >= 0 with probability (1 - e^-x) e^(-x j), x > 0.

    Examples
    --------
    >>> geometric(1) >= 0
    True
    """
    return _geometric(exact_positive(x, "x"), read_randomness(randomness))


def truncated_geometric(x: Number, below: int, randomness: Randomness | None = None) -> int:
    """The law of `geometric` given that the outcome is less than `below`: its remainder modulo `below`.

    Examples
    --------
    >>> truncated_geometric(1, 1)
    0
    """
    rate, limit = exact_positive(x, "x"), exact_integer(below, "below", at_least=1)
    return _geometric(rate, read_randomness(randomness)) % limit


def permutation(n: int, randomness: Randomness | None = None) -> list[int]:
    """A uniformly random order of 0..n - 1, by the exchanges of Fisher and Yates.

    Examples
    --------
    >>> sorted(permutation(3))
    [0, 1, 2]
    """
    count, source = exact_integer(n, "n", at_least=0), read_randomness(randomness)
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        j = _uniform(i + 1, source)
        order[i], order[j] = order[j], order[i]
    return order


def discrete_laplace(scale: Number, randomness: Randomness | None = None) -> int:
    """An integer z with probability proportional to e^(-|z| / scale), scale > 0.

    Examples
    --------
    >>> abs(discrete_laplace("1/1000"))
    0
    """
    return _discrete_laplace(1 / exact_positive(scale, "scale"), read_randomness(randomness))


def discrete_gaussian(
    sigma: Number | None = None, randomness: Randomness | None = None, *, variance: Number | None = None
) -> int:
    """An integer z with probability proportional to e^(-z^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : number, positive
    randomness : Randomness, optional
    variance : number, optional
        sigma^2 in place of sigma.

    Examples
    --------
    >>> discrete_gaussian("1/1000")
    0
    """
    square = read_variance(sigma, variance)
    source = read_randomness(randomness)
    scale = isqrt(int(square)) + 1
    while True:
        z = _discrete_laplace(Fraction(1, scale), source)
        if _bernoulli_exp((abs(z) - square / scale) ** 2 / (2 * square), source):
            return z


def categorical(pmf: Pmf, randomness: Randomness | None = None) -> int:
    """A lattice index with its probability under `pmf`, tails included.

    Beyond the core one success of probability ratio moves the draw outward by one period, so that a draw far out in a
    tail takes long.

    Examples
    --------
    >>> categorical(Pmf(7, (1,)))
    7
    """
    source = read_randomness(randomness)
    unit = pmf.total.denominator
    drawn = _uniform(pmf.total.numerator, source)
    for index, weight in enumerate(pmf.weights, pmf.start):
        drawn -= weight * unit
        if drawn < 0:
            return index
    assert pmf.tails is not None  # the core has all the mass otherwise
    period, left, right = pmf.tails.period, pmf.tails.left, pmf.tails.right
    if right is not None:
        drawn -= int(sum(pmf.weights[-period:]) * right / (1 - right) * unit)
        if drawn < 0:
            return pmf.end + 1 + _beyond(pmf.weights[-period:], right, source)
    assert left is not None
    return pmf.start - 1 - _beyond(pmf.weights[period - 1 :: -1], left, source)


def read_variance(sigma: Number | None, variance: Number | None) -> Fraction:
    """sigma^2 from the one of the two that is given."""
    if (sigma is None) == (variance is None):
        given = "neither" if sigma is None else "both"
        raise InputError("sigma", f"must be given, or else the variance: one of the two, not {given}")
    return exact_positive(variance, "variance") if sigma is None else exact_positive(sigma, "sigma") ** 2


def _uniform(below: int, source: Randomness) -> int:
    bits = (below - 1).bit_length()
    while (drawn := source.integer(bits)) >= below:
        pass
    return drawn


def _bernoulli(p: Fraction, source: Randomness) -> int:
    return int(_uniform(p.denominator, source) < p.numerator)


def _bernoulli_exp(x: Fraction, source: Randomness) -> int:
    """e^-x as a product: one factor e^-1 for each whole unit, and the rest."""
    for _ in range(int(x)):
        if not _series(_ONE, source):
            return 0
    return _series(x - int(x), source)


def _series(x: Fraction, source: Randomness) -> int:
    """e^-x for x <= 1: of successes of probability x/1, x/2, ... the first j all happen with x^j / j!."""
    k = 1
    while _bernoulli(x / k, source):
        k += 1
    return k % 2


def _geometric(x: Fraction, source: Randomness) -> int:
    """At rate 1/denominator: a remainder and the successes of e^-1; then whole steps of the numerator."""
    steps, unit = x.numerator, x.denominator
    while True:
        remainder = _uniform(unit, source)
        if _series(Fraction(remainder, unit), source):
            break
    whole = 0
    while _series(_ONE, source):
        whole += 1
    return (remainder + unit * whole) // steps


def _discrete_laplace(x: Fraction, source: Randomness) -> int:
    """A geometric size and a fair sign; minus zero is drawn again, so that zero does not count twice."""
    while True:
        negative, size = source.integer(1), _geometric(x, source)
        if not (negative and size == 0):
            return -size if negative else size


def _beyond(outward: tuple[int, ...], ratio: Fraction, source: Randomness) -> int:
    """The distance beyond the first tail point, for the tail that repeats the block `outward`, moving away."""
    periods = 0
    while _bernoulli(ratio, source):
        periods += 1
    drawn = _uniform(sum(outward), source)
    for place, weight in enumerate(outward):
        drawn -= weight
        if drawn < 0:
            return periods * len(outward) + place
    raise AssertionError("unreachable: the weights sum to the bound of the draw")
