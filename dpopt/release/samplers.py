"""Exact samplers at the speed of floats: every outcome has exactly its stated probability, given fair bits.

No float decides anything but the far sides of one comparison in a discrete Gaussian of large sigma, with a margin; see
`dpopt.release.lazy` for the method. Rates and scales are exact rationals: 0.1 is one tenth. Arrays are int64, or Python
integers in an object array where outcomes beyond 64 bits are to be expected, which the parameters decide. Tables are
kept for the next call with the same parameters. The bits come from the operating system unless a study asks otherwise.

How long a draw takes depends on the outcome, as it does in every sampler that is fast: timing is outside the proof.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpopt.arithmetic import Number, ball, exact, exact_integer, exact_positive
from dpopt.errors import InputError
from dpopt.pmf import HasPmf, Pmf, read_pmf
from dpopt.release.digits import ExponentialRatio, geometric_draws, truncated_draws
from dpopt.release.drawing import Size, drawn, read_size
from dpopt.release.gaussian import gaussian_draws, laplace_draws
from dpopt.release.integers import read_variance
from dpopt.release.lazy import BallSurvival, LazyTable, RationalSurvival
from dpopt.release.pmf_sampler import in_data_units, pmf_draws
from dpopt.release.randomness import Randomness, read_randomness
from dpopt.release.uniform import UniformDraws, shuffled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDEST = 10**300  # of a law, in lattice points: it has a table of 256 entries for each eight bits
_LONGEST = 10**9  # permutation, of 8 GB

__all__ = [
    "WIDEST",
    "sample",
    "sample_bernoulli",
    "sample_bernoulli_exp",
    "sample_discrete_gaussian",
    "sample_discrete_laplace",
    "sample_geometric",
    "sample_permutation",
    "sample_truncated_geometric",
    "sample_uniform",
]


def sample(
    pmf: Pmf | HasPmf, size: Size = None, *, randomness: Randomness | None = None
) -> int | Fraction | NDArray[Any]:
    """Independent noise from a pmf, in data units, with exactly the probabilities of its weights.

    A weight of 0 is never drawn, a tail is drawn as far as it reaches. The table of a pmf is kept for the next call.

    Parameters
    ----------
    pmf : Pmf, or anything with a `pmf`
        Such as a `Solution` (an unproved one raises), a distribution or a key table.
    size : int or tuple of int, optional
        The shape of the array; without it, one Python number.
    randomness : Randomness, optional
        The operating system's generator by default.

    Returns
    -------
    array, or int or Fraction
        A pmf whose step is an integer: int64, or Python integers in an object array where the support or its tails
        reach beyond 62 bits, which the pmf decides. Any other step: exact fractions in an object array, since no float
        of the nearest value keeps the lattice that the privacy of an output rests on.

    Raises
    ------
    InputError
        Before anything is drawn: `pmf` holds none, `size` is no shape, or `randomness` is not marked as such.

    Examples
    --------
    >>> from dpopt.pmf import Tails
    >>> from dpopt.release.randomness import InsecureRandomness
    >>> sample(Pmf(-1, (1, 2, 1)), 6, randomness=InsecureRandomness(1))
    array([-1,  0,  0,  0,  0, -1])
    >>> sample(Pmf(0, (1,), tails=Tails(1, right="1/2"))) >= 0
    True
    >>> sample(Pmf(3, (1,), step="1/2"))
    Fraction(3, 2)
    """
    law, shape, source = read_pmf(pmf, "pmf"), read_size(size), read_randomness(randomness)
    return in_data_units(drawn(pmf_draws(law), shape, source), law)


def sample_uniform(below: int, size: Size = None, *, randomness: Randomness | None = None) -> Any:
    """Uniform integers in 0..below - 1, for a bound of any size.

    Parameters
    ----------
    below : int
        At least 1.
    size : int or tuple of int, optional
        The shape of the array; without it, one Python integer.
    randomness : Randomness, optional
        The operating system's generator by default.

    Returns
    -------
    int, or array
        int64; Python integers when `below` exceeds 2^63.

    Examples
    --------
    >>> from dpopt.release.randomness import InsecureRandomness
    >>> sample_uniform(6, 5, randomness=InsecureRandomness(1))
    array([3, 2, 3, 2, 0])
    """
    draws = UniformDraws(exact_integer(below, "below", at_least=1))
    return drawn(draws, read_size(size), read_randomness(randomness))


def sample_bernoulli(p: Number, size: Size = None, *, randomness: Randomness | None = None) -> Any:
    """1 with probability p, any rational in [0, 1], and 0 otherwise.

    Parameters and result are as for `sample_uniform`.

    Examples
    --------
    >>> sample_bernoulli("1/3", 0).shape, sample_bernoulli(1)
    ((0,), 1)
    """
    chance = exact(p, "p")
    if not 0 <= chance <= 1:
        raise InputError("p", f"must lie in [0, 1], not {chance}")
    return drawn(_coin(chance), read_size(size), read_randomness(randomness))


def sample_bernoulli_exp(x: Number, size: Size = None, *, randomness: Randomness | None = None) -> Any:
    """1 with probability e^-x, any rational x >= 0, and 0 otherwise.

    Parameters and result are as for `sample_uniform`.

    Examples
    --------
    >>> sample_bernoulli_exp(0, 3)
    array([1, 1, 1])
    """
    exponent = exact(x, "x")
    if exponent < 0:
        raise InputError("x", f"must not be negative, not {exponent}")
    return drawn(_exponential_coin(exponent), read_size(size), read_randomness(randomness))


def sample_geometric(x: Number, size: Size = None, *, randomness: Randomness | None = None) -> Any:
    """Integers j >= 0 with probability (1 - e^-x) e^(-x j).

    Parameters
    ----------
    x : number, positive
        The rate: 1/1000 has mean 999.5, and 1e-30 works as well.
    size, randomness
        As for `sample_uniform`.

    Returns
    -------
    int, or array
        int64 where x is at least 2^-51, Python integers below. (A draw beyond 62 bits of the former has a probability
        below e^-1000; it would make the array one of Python integers.)

    Examples
    --------
    >>> sample_geometric("1e-30", 3).dtype, sample_geometric(1, (2, 2)).dtype
    (dtype('O'), dtype('int64'))
    """
    rate = exact_positive(x, "x")
    _require_narrow(1 / rate, "x", "at least 1e-300")
    draws = geometric_draws(ExponentialRatio(rate))
    return drawn(draws, read_size(size), read_randomness(randomness))


def sample_truncated_geometric(
    x: Number, below: int, size: Size = None, *, randomness: Randomness | None = None
) -> Any:
    """Integers 0 <= j < below with probability proportional to e^(-x j): a geometric modulo `below`.

    Parameters
    ----------
    x : number, positive
    below : int
        At least 1.
    size, randomness
        As for `sample_uniform`.

    Returns
    -------
    int, or array
        int64; Python integers when `below` exceeds 2^62.

    Examples
    --------
    >>> sample_truncated_geometric(1, 1, 3)
    array([0, 0, 0])
    """
    rate, limit = exact_positive(x, "x"), exact_integer(below, "below", at_least=1)
    _require_narrow(min(1 / rate, Fraction(limit)), "x", "at least 1e-300, or below at most 1e300")
    draws = truncated_draws(ExponentialRatio(rate), limit)
    return drawn(draws, read_size(size), read_randomness(randomness))


def sample_permutation(n: int, *, randomness: Randomness | None = None) -> np.ndarray:
    """A uniformly random order of 0..n - 1; int64, shape (n,).

    Examples
    --------
    >>> sorted(sample_permutation(4).tolist())
    [0, 1, 2, 3]
    """
    count = exact_integer(n, "n", at_least=0)
    if count > _LONGEST:
        raise InputError("n", f"must be at most {_LONGEST}, not {n}")
    return shuffled(count, read_randomness(randomness))


def sample_discrete_laplace(scale: Number, size: Size = None, *, randomness: Randomness | None = None) -> Any:
    """Integers z with probability proportional to e^(-|z| / scale).

    This is the two-sided geometric law, P(0) = (1 - q) / (1 + q) with q = e^(-1/scale), and no rounded continuous
    Laplace variable. For counts of sensitivity m, scale m / epsilon gives epsilon-DP.

    Parameters
    ----------
    scale : number, positive
    size, randomness
        As for `sample_uniform`.

    Returns
    -------
    int, or array
        int64 up to a scale of about 2^50, Python integers beyond.

    Examples
    --------
    >>> sample_discrete_laplace("1/1000", 3)
    array([0, 0, 0])
    """
    width = exact_positive(scale, "scale")
    _require_narrow(width, "scale", "at most 1e300")
    draws = laplace_draws(width)
    return drawn(draws, read_size(size), read_randomness(randomness))


def sample_discrete_gaussian(
    sigma: Number | None = None,
    size: Size = None,
    *,
    variance: Number | None = None,
    randomness: Randomness | None = None,
) -> Any:
    """Integers z with probability proportional to e^(-z^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : number, positive
        The parameter of the law; its standard deviation is at most that.
    size, randomness
        As for `sample_uniform`.
    variance : number, positive
        sigma^2 in place of sigma, where that is the rational one.

    Returns
    -------
    int, or array
        int64 up to a sigma of about 2^50, Python integers beyond.

    Examples
    --------
    >>> sample_discrete_gaussian("1/100", 3), sample_discrete_gaussian(variance=2, size=3).shape
    (array([0, 0, 0]), (3,))
    """
    square = read_variance(sigma, variance)
    if square > WIDEST**2:
        argument, most = ("sigma", "1e300") if variance is None else ("variance", "1e600")
        raise InputError(argument, f"must be at most {most}")
    draws = gaussian_draws(square)
    return drawn(draws, read_size(size), read_randomness(randomness))


@lru_cache(maxsize=32)
def _coin(p: Fraction) -> LazyTable | _Certain:
    if p in (0, 1):
        return _Certain(int(p))
    return LazyTable(RationalSurvival([p.denominator - p.numerator, p.numerator]))


@lru_cache(maxsize=32)
def _exponential_coin(x: Fraction) -> LazyTable | _Certain:
    return LazyTable(BallSurvival(lambda _: [ball(-x).exp()])) if x else _Certain(1)


class _Certain:
    """An outcome without a choice: no bits are read."""

    wide = False

    def __init__(self, outcome: int) -> None:
        self._outcome = outcome

    def draw(self, count: int, randomness: Randomness) -> np.ndarray:
        import numpy as np

        return np.full(count, self._outcome, dtype=np.int64)


def _require_narrow(width: Fraction, argument: str, allowed: str) -> None:
    """Refuse a law whose tables would take minutes."""
    if width > WIDEST:
        raise InputError(argument, f"must be {allowed}")
