"""Named input laws: each weight is the nearest integer to 2^128 times a mass computed without the package."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

import dpopt as dp
from dpopt.errors import InputError

from .series import decimal, exp_between

UNIT = 1 << 128


def nearest(low: Fraction, high: Fraction) -> int:
    """floor(2^128 x + 1/2) of a number between two rationals, which have to agree on it."""
    found = {math.floor(side * UNIT + Fraction(1, 2)) for side in (low, high)}
    assert len(found) == 1, "the second method is not fine enough"
    return found.pop()


def survival(x: Decimal) -> Decimal:
    """P(N > x) of the standard normal by the series of erf, in 150 digits (absolute error far below 2^-128)."""
    if x < 0:
        return 1 - survival(-x)
    if x > 16:
        return Decimal(0)  # below 1e-57
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** -140:
        n += 1
        term = term * -x * x / (2 * n)
        total += term / (2 * n + 1)
    return Decimal("0.5") - total / (2 * pi()).sqrt()


def pi() -> Decimal:
    """Machin's formula."""

    def arctan_inverse(n: int) -> Decimal:
        term = total = Decimal(1) / n
        k = 1
        while abs(term) > Decimal(10) ** -155:
            term /= -n * n
            k += 2
            total += term / k
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239))


@pytest.mark.parametrize("rate", ["10", "1/3", "1e-6", "97.5"])
def test_poisson_weights(rate: str) -> None:
    """e^-rate rate^k / k! by the Taylor series of e^rate: every weight, and no mass left out on either side."""
    value, pmf = Fraction(rate), dp.poisson(rate).pmf
    below, above = exp_between(-value, 400)
    for k in {
        0,
        1,
        2,
        int(value),
        int(value) + 1,
        pmf.start,
        pmf.end,
        pmf.start + 3,
        pmf.end - 3,
        pmf.end + 1,
        pmf.start - 1,
    }:
        if k < 0:
            continue
        mass = value**k / math.factorial(k)
        wanted = nearest(mass * below, mass * above)
        assert pmf.weight(k) == wanted, k
        assert (wanted > 0) == (pmf.start <= k <= pmf.end)
    assert abs(pmf.total - UNIT) <= len(pmf.weights)
    assert float(pmf.mean) == pytest.approx(float(value), rel=1e-30 + 1e-14)
    assert float(pmf.variance) == pytest.approx(float(value), rel=1e-13)


@pytest.mark.parametrize(
    ("mean", "sd"), [("0", "5"), ("0.3", "1"), ("-7/2", "2"), ("1000000", "0.7"), ("1/2", "1/100")]
)
def test_gaussian_weights(mean: str, sd: str) -> None:
    """Phi((k + 1/2 - mean)/sd) - Phi((k - 1/2 - mean)/sd) by the error function's series, out to the last weight."""
    pmf = dp.gaussian(mean, sd).pmf
    with localcontext() as context:
        context.prec = 160
        centre, spread = decimal(Fraction(mean)), decimal(Fraction(sd))
        middle = round(Fraction(mean))
        for k in {middle - 1, middle, middle + 1, pmf.start, pmf.end, pmf.end - 1, pmf.start - 1, pmf.end + 1}:
            near, far = ((k + side - centre) / spread for side in (Decimal("-0.5"), Decimal("0.5")))
            mass = survival(near) - survival(far)
            low, high = (Fraction(mass + error * Decimal(10) ** -55) for error in (-1, 1))
            wanted = nearest(low, high)
            assert pmf.weight(k) == wanted, k
            assert (wanted > 0) == (pmf.start <= k <= pmf.end)
    assert abs(pmf.total - UNIT) <= len(pmf.weights)


@pytest.mark.parametrize("sd", ["1/1000", "0.4", "1", "5", "33"])
def test_gaussian_is_symmetric_about_its_mean(sd: str) -> None:
    """Exactly, for means on the lattice and half-way between: the tails are survival functions on both sides."""
    assert dp.gaussian(0, sd).pmf.is_symmetric
    around = dp.gaussian("5/2", sd).pmf
    assert around.weights == around.weights[::-1] and around.start + around.end == 5
    moved = dp.gaussian(-40, sd).pmf
    assert moved.weights == dp.gaussian(0, sd).pmf.weights and moved.mean == -40


def test_gaussian_without_spread_is_a_point() -> None:
    """A standard deviation far below the lattice leaves one point, or two at a tie."""
    assert dp.gaussian(3, "1e-9").pmf == dp.Pmf(3, (UNIT,))
    assert dp.gaussian("1/2", "1e-9").pmf == dp.Pmf(0, (UNIT // 2, UNIT // 2))


def test_far_tails_keep_their_digits() -> None:
    """sd = 5, at 60 = 12 sd: 1.4e-34 by Mills' ratio to a part in a hundred, where 1 - Phi in floats is 0."""
    pmf = dp.gaussian(0, 5).pmf
    x = 59.5 / 5
    tail = math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / (x + 1 / x)
    found = float(sum(pmf.probability(k) for k in range(60, pmf.end + 1)))
    assert found == pytest.approx(tail, rel=1e-2)
    assert 0.5 * math.erfc(-x / math.sqrt(2)) == 1.0, "the case has lost its point"


def test_simple_laws() -> None:
    """Uniform, point and table by hand; a table loses its outer zeros and its fractions."""
    assert dp.uniform(-1, 2).pmf == dp.Pmf(-1, (1, 1, 1, 1))
    assert dp.uniform(4, 4).pmf == dp.point(4).pmf == dp.Pmf(4, (1,))
    assert dp.table(-3, [0, 0, "1/2", 0, "0.25", 0]).pmf == dp.Pmf(-1, (2, 0, 1))
    assert dp.table(0, (w for w in (1, 2))).pmf == dp.Pmf(0, (1, 2))
    assert dp.table("2", [10**30, 1]).pmf == dp.Pmf(2, (10**30, 1))


@pytest.mark.parametrize(
    "law", [dp.poisson(3), dp.gaussian(0, 2), dp.uniform(0, 3), dp.point(1), dp.table(0, [1, 2])], ids=lambda x: x.type
)
def test_laws_are_values(law: dp.Distribution) -> None:
    """Equal, hashable, pickled and copied with and without the cached pmf."""
    for _ in range(2):
        for other in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
            assert other == law and hash(other) == hash(law) and other.pmf == law.pmf
    assert dp.poisson("3") == dp.poisson(3.0) != dp.poisson(4)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: dp.poisson(0), "rate: must be positive, not 0"),
    (lambda: dp.poisson(-1), "rate: must be positive, not -1"),
    (lambda: dp.poisson("ten"), "rate: must be a number"),
    (lambda: dp.poisson(100_001), "rate: must be at most 100000"),
    (lambda: dp.gaussian(0, 0), "sd: must be positive, not 0"),
    (lambda: dp.gaussian(math.nan, 1), "mean: must be finite"),
    (lambda: dp.gaussian(0, 10**6), "sd: must be at most 100000"),
    (lambda: dp.uniform(3, 2), "high: must be at least low = 3, not 2"),
    (lambda: dp.uniform(0.5, 2), "low: must be an integer"),
    (lambda: dp.uniform(0, 10**9), "high: makes more than"),
    (lambda: dp.point(1.5), "at: must be an integer, not 1.5"),
    (lambda: dp.table(0, []), "weights: must hold at least one positive weight"),
    (lambda: dp.table(0, [0, 0]), "weights: must hold at least one positive weight"),
    (lambda: dp.table(0, [1, -1]), "weights[1]: must not be negative, not -1"),
    (lambda: dp.table(0, "12"), "weights: must be a list of numbers"),
    (lambda: dp.table(0, 3), "weights: must be a list of numbers"),
    (lambda: dp.table(0, [1, "x"]), "weights[1]: must be a number"),
    (lambda: dp.table(None, [1]), "low: must be a number"),
])  # fmt: skip
def test_what_is_wrong_is_said(build: Callable[[], Any], message: str) -> None:
    """Wrong rates, spreads, ends and weights are named before a pmf is built."""
    with pytest.raises(InputError) as caught:
        build()
    assert str(caught.value).startswith(message)
