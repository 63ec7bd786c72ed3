"""The pmf against long truncated sums, closed forms, brute-force convolution, and its own text."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf, Tails

from .series import decimal, laws, written_out

bounded = settings(derandomize=True, max_examples=80, deadline=None)
HALF = Fraction(1, 2)


def geometric(r: Fraction) -> Pmf:
    """p(k) proportional to r^|k|."""
    return Pmf(0, (1,), tails=Tails(1, r, r))


def staircase(m: int, r: int, b: Fraction) -> Pmf:
    """The discrete staircase: |i| = k m + j has mass b^k for j < r and b^(k+1) beyond."""
    levels = [b.denominator if j < r else b.numerator for j in range(m)]
    return Pmf(1 - m, [*reversed(levels[1:]), *levels], tails=Tails(m, b, b))


def truncated(pmf: Pmf, function: Callable[[int], Any]) -> Fraction:
    """Sum of weight times function over the core and 150 periods, exactly."""
    return sum((w * function(k) for k, w in written_out(pmf, 150).items()), Fraction(0))


def close(a: Fraction, b: Fraction) -> bool:
    """Equal up to what 150 periods of a ratio of at most 1/2 leave."""
    return abs(a - b) <= Fraction(1, 2**100)


# --- masses and moments ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(laws())
@bounded
def test_weights_moments_and_total(pmf: Pmf) -> None:
    """Every weight by repeated multiplication; total, mean, variance and moments against long sums."""
    explicit = written_out(pmf, 6)
    for k in range(pmf.start - 12, pmf.end + 13):
        if k in explicit or pmf.tails is None:
            assert pmf.weight(k) == explicit.get(k, 0)
    total = truncated(pmf, lambda k: 1)
    assert close(pmf.total, total)
    mean = truncated(pmf, lambda k: k) / total
    assert close(pmf.mean, mean)
    assert close(pmf.variance, truncated(pmf, lambda k: k * k) / total - mean**2)
    for power in range(5):
        assert close(pmf.absolute_moment(power), truncated(pmf, lambda k, n=power: abs(k) ** n) / total)


@given(laws(), st.integers(-9, 9), st.lists(st.integers(-5, 5), max_size=4), st.integers(-3, 3), st.integers(-3, 3))
@bounded
def test_expectation_of_any_function(pmf: Pmf, start: int, table: list[int], left: int, right: int) -> None:
    """A table inside, another polynomial on each side: the table may lie in a tail."""
    f = LatticeFunction(start, tuple(map(Fraction, table)), (Fraction(1), Fraction(left)), (Fraction(right), 0, HALF))
    assert close(pmf.expectation(f), truncated(pmf, f) / pmf.total)


@pytest.mark.slow
@given(laws())
@bounded
def test_entropy_is_a_long_sum(pmf: Pmf) -> None:
    """-sum p ln p in 40-digit decimals lies in the enclosure, which is 2^-64 wide (or a point for a point mass)."""
    with localcontext() as context:
        context.prec = 50
        masses = [decimal(w / pmf.total) for w in written_out(pmf, 150).values() if w]
        wanted = -sum(p * p.ln() for p in masses)
        low, high = pmf.entropy
        assert decimal(low) - Decimal("1e-38") <= wanted <= decimal(high) + Decimal("1e-38")
    assert high - low in (0, Fraction(1, 1 << 64))


@pytest.mark.parametrize("r", ["1/2", "1/3", "9/10", "999/1000", "1/1000000"])
def test_geometric_law(r: str) -> None:
    """E|Z| = 2r/(1-r^2), Var = 2r/(1-r)^2, H = -ln((1-r)/(1+r)) - E|Z| ln r."""
    q = Fraction(r)
    pmf = geometric(q)
    assert pmf.total == (1 + q) / (1 - q)
    assert (pmf.mean, pmf.is_symmetric) == (0, True)
    assert pmf.absolute_moment(1) == 2 * q / (1 - q * q)
    assert pmf.variance == 2 * q / (1 - q) ** 2
    assert pmf.probability(7) == pmf.probability(-7) == (1 - q) / (1 + q) * q**7
    entropy = -math.log((1 - q) / (1 + q)) - float(2 * q / (1 - q * q)) * math.log(q)
    assert float(pmf.entropy) == pytest.approx(entropy, rel=1e-12)


@pytest.mark.parametrize("ratio", ["1/3", "2/7", "99/100"])
@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_staircase(m: int, ratio: str) -> None:
    """Both closed forms of E|Z| and the one of E Z^2, exactly, for every width r."""
    b = Fraction(ratio)
    c = 1 - b
    for r in range(1, m + 1):
        pmf = staircase(m, r, b)
        assert pmf.probability(0) == c / (2 * r + 2 * b * (m - r) - c)
        u, q = r - HALF + m * b / c, m * m * b / c**2 - Fraction(1, 4)
        assert pmf.absolute_moment(1) == (u + q / u) / 2
        s0 = r + b * (m - r)
        s1 = (c * r * (r - 1) + b * m * (m - 1)) / 2
        s2 = c * (r - 1) * r * (2 * r - 1) / 6 + b * (m - 1) * m * (2 * m - 1) / 6
        assert pmf.absolute_moment(1) == 2 * (m * b / c * s0 + s1) / (2 * s0 - c)
        assert pmf.absolute_moment(2) == 2 * (m * m * b * (1 + b) * s0 / c**2 + 2 * m * b * s1 / c + s2) / (2 * s0 - c)
        assert pmf.variance == pmf.absolute_moment(2)


def test_one_sided_tail() -> None:
    """The geometric law on 0, 1, ...: mean r/(1-r), variance r/(1-r)^2, nothing on the left."""
    r = Fraction(2, 5)
    pmf = Pmf(0, (1,), tails=Tails(1, right=r))
    assert (pmf.mean, pmf.variance, pmf.weight(-1)) == (r / (1 - r), r / (1 - r) ** 2, 0)
    mirror = Pmf(0, (1,), tails=Tails(1, left=r))
    assert (mirror.mean, mirror.variance, mirror.weight(1)) == (-r / (1 - r), r / (1 - r) ** 2, 0)


def test_far_out_in_the_tail() -> None:
    """One closed form, not ten thousand steps, and no underflow: p(10^4) of the geometric law with ratio 1/3."""
    pmf = geometric(Fraction(1, 3))
    assert pmf.probability(10**4) == Fraction(1, 2) / 3 ** (10**4)
    periodic = Pmf(0, (3, 5), tails=Tails(2, right=HALF))
    assert periodic.weight(2 * 5000 + 1) == Fraction(5, 2**5000)


def test_a_step_scales_the_data_units() -> None:
    """Points, mean, variance and moments are in data units; masses belong to indices."""
    unit, fine = Pmf(-1, (1, 2, 5)), Pmf(-1, (1, 2, 5), step="1/4")
    assert (fine.low, fine.high) == (Fraction(-1, 4), Fraction(1, 4))
    assert fine.mean == unit.mean / 4
    assert fine.variance == unit.variance / 16
    assert fine.absolute_moment(3) == unit.absolute_moment(3) / 64
    assert fine.points().tolist() == [-0.25, 0.0, 0.25]
    assert fine.entropy == unit.entropy
    assert fine.cumulative() == (1, 3, 8)


@pytest.mark.parametrize("pmf", [
    Pmf(0, (3,)), Pmf(-2, (0, 0, 7, 0)), Pmf(0, (1, 0), tails=Tails(1, right=HALF)),
    Pmf(0, (3, 0), tails=Tails(1, right=HALF)),
    Pmf(0, (0, 6, 0), tails=Tails(1, left="1/3", right="1/7")),
])  # fmt: skip
def test_a_point_mass_has_no_entropy(pmf: Pmf) -> None:
    """All mass at one point, also where an empty tail is described: the entropy is 0, and deciding it ends."""
    low, high = pmf.entropy
    assert low <= 0 <= high
    assert pmf.variance == 0


@pytest.mark.parametrize("weights", [(1, 1), (5, 0, 5), (1 << 200, 1 << 200), (1 << 4095, 1)])
def test_entropy_of_two_points(weights: tuple[int, ...]) -> None:
    """ln 2 for equal weights however large; next to nothing for 4,096 bits against 1."""
    low, high = Pmf(0, weights).entropy
    wanted = math.log(2) if weights[0] == weights[-1] else 0.0
    assert float(low) - 1e-15 <= wanted <= float(high) + 1e-15


def test_weights_of_4096_bits() -> None:
    """Probabilities are the nearest floats, sums are exact, the text comes back."""
    top = (1 << 4096) - 1
    pmf = Pmf(-1, (1, top, 3))
    assert pmf.probabilities().tolist() == [0.0, 1.0, 0.0]
    assert pmf.probability(-1) == Fraction(1, top + 4)
    assert pmf.mean == Fraction(2, top + 4)
    assert Pmf.from_dict(json.loads(json.dumps(pmf.to_dict()))) == pmf
    near = Pmf(0, (top // 3, top - top // 3))
    assert near.probabilities().tolist() == [(top // 3) / top, (top - top // 3) / top]


@given(laws())
@bounded
def test_symmetry_flag(pmf: Pmf) -> None:
    """A pmf that is called symmetric is; the mirror image added to it makes one."""
    explicit = written_out(pmf, 8)
    if pmf.is_symmetric:
        assert all(w == explicit.get(-k, 0) for k, w in explicit.items())
        assert pmf.mean == 0


@pytest.mark.parametrize("pmf", [
    Pmf(-1, (1, 2, 1, 0)), Pmf(-2, (0, 1, 2, 1)), Pmf(0, (4, 2), tails=Tails(1, left=HALF, right=HALF)),
])  # fmt: skip
def test_symmetry_is_of_masses_not_of_cores(pmf: Pmf) -> None:
    """p(-k) = p(k) for every k, although the core is not centred."""
    assert all(pmf.weight(k) == pmf.weight(-k) for k in range(20))
    assert pmf.is_symmetric


# --- sums of independent variables -----------------------------------------------------------------------------------


@given(laws(longest=5), laws(longest=5, tails=False), st.booleans())
@bounded
def test_convolution_is_the_double_sum(infinite: Pmf, finite: Pmf, swap: bool) -> None:
    """p(k) of the sum is the sum over j of p(j) q(k - j), exactly, in the core and far into both tails."""
    found = finite.convolve(infinite) if swap else infinite.convolve(finite)
    for k in range(found.start - 12, found.end + 13):
        wanted = sum(
            (finite.probability(j) * infinite.probability(k - j) for j in range(finite.start, finite.end + 1)),
            Fraction(0),
        )
        assert found.probability(k) == wanted, k
    assert found.mean == infinite.mean + finite.mean
    assert found.variance == infinite.variance + finite.variance


def test_convolution_refusals() -> None:
    """Different lattices, and two infinite laws."""
    with pytest.raises(InputError, match=r"^other\.step: must equal this pmf's step 1, not 1/2$"):
        Pmf(0, (1,)).convolve(Pmf(0, (1,), step="1/2"))
    with pytest.raises(InputError, match=r"^other\.tails: must be None"):
        geometric(HALF).convolve(geometric(HALF))


@given(laws(), st.integers(0, 9))
@bounded
def test_a_longer_core_is_the_same_law(pmf: Pmf, by: int) -> None:
    """Extending the core into the tails changes no probability and reaches as far as asked."""
    longer = pmf.extended(by)
    assert all(longer.probability(k) == pmf.probability(k) for k in range(pmf.start - 15, pmf.end + 16))
    if pmf.tails is not None and pmf.tails.left is not None:
        assert longer.start <= pmf.start - by
    if pmf.tails is not None and pmf.tails.right is not None:
        assert longer.end >= pmf.end + by


# --- objects and text ------------------------------------------------------------------------------------------------


@given(laws())
@bounded
def test_text_pickle_copy_hash(pmf: Pmf) -> None:
    """Through JSON, pickle and copy comes an equal pmf with the same hash and the same printed form."""
    _ = pmf.entropy  # a filled cache must not show
    for other in (
        Pmf.from_dict(json.loads(json.dumps(pmf.to_dict()))),
        pickle.loads(pickle.dumps(pmf)),
        copy.deepcopy(pmf),
    ):
        assert other == pmf and hash(other) == hash(pmf) and repr(other) == repr(pmf) and str(other) == str(pmf)
        assert other.mean == pmf.mean
    assert pmf != Pmf(pmf.start + 1, pmf.weights, pmf.step, pmf.tails)
    assert pmf != pmf.weights


def test_printed_forms() -> None:
    """Short ones in full, long ones by their length; one line for people."""
    assert repr(Pmf(-1, (1, 2, 1))) == "Pmf(start=-1, weights=(1, 2, 1))"
    assert (
        repr(Pmf(0, (1,), step="1/2", tails=Tails(1, right=HALF))) == "Pmf(start=0, weights=(1,), step=1/2, tails=...)"
    )
    assert repr(Pmf(0, (1,) * 10)) == "Pmf(start=0, <10 weights>)"
    assert repr(Pmf(0, (10**9,))) == "Pmf(start=0, <1 weights>)"
    assert str(Pmf(-1, (1, 2, 1))) == "pmf on [-1, 1]: mean 0, variance 0.5"
    assert str(geometric(HALF)) == "pmf on [0, 0] and geometric tails: mean 0, variance 4"


def test_frozen() -> None:
    """Nothing of a pmf can be assigned, and the list it was made of is not kept."""
    weights = [1, 2]
    pmf = Pmf(0, weights)
    weights[0] = 9
    assert pmf.weights == (1, 2)
    for name in ("start", "weights", "step", "tails"):
        with pytest.raises(AttributeError):
            setattr(pmf, name, None)


def test_what_counts_as_a_weight() -> None:
    """Integers of every kind, as Python integers; numpy arrays as well."""
    for weights in (
        (1, 2, 1),
        np.array([1, 2, 1]),
        ["1", "2", "1"],
        [1.0, 2.0, 1.0],
        (w for w in (1, 2, 1)),
        [Fraction(1), 2, 1],
    ):
        pmf = Pmf(-1, weights)
        assert pmf == Pmf(-1, (1, 2, 1)) and all(type(w) is int for w in pmf.weights)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: Pmf(0, ()), "weights: must hold at least one weight"),
    (lambda: Pmf(0, (1, -2)), "weights[1]: must not be negative, not -2"),
    (lambda: Pmf(0, (0, 0)), "weights: must not all be 0"),
    (lambda: Pmf(0, (1, 0.5)), "weights[1]: must be an integer, not 0.5"),
    (lambda: Pmf(0, (1, True)), "weights[1]: must be a number"),
    (lambda: Pmf(0, (1, math.nan)), "weights[1]: must be finite, not nan"),
    (lambda: Pmf(0, "1a"), "weights: must be a list of integers"),
    (lambda: Pmf("x", (1,)), "start: must be a number"),
    (lambda: Pmf(0.5, (1,)), "start: must be an integer, not 0.5"),
    (lambda: Pmf(0, (1,), 0), "step: must be positive, not 0"),
    (lambda: Pmf(0, (1,), "-1/2"), "step: must be positive, not -1/2"),
    (lambda: Pmf(0, (1,), tails=0.5), "tails: must be a Tails or None, not 0.5"),
    (lambda: Pmf(0, (1, 1), tails=Tails(3, HALF, HALF)), "tails.period: must be at most the core length 2, not 3"),
    (lambda: Tails(0, HALF), "period: must be at least 1, not 0"),
    (lambda: Tails(1.5, HALF), "period: must be an integer, not 1.5"),
    (lambda: Tails(1, 0), "left: must lie strictly between 0 and 1, not 0"),
    (lambda: Tails(1, right=1), "right: must lie strictly between 0 and 1, not 1"),
    (lambda: Tails(1, right="-1/2"), "right: must lie strictly between 0 and 1, not -1/2"),
    (lambda: Tails(1, right="half"), "right: must be a number"),
    (lambda: Tails(1), "left: is missing, and so is right: give a ratio on at least one side"),
    (lambda: Pmf(0, (1,)).absolute_moment(-1), "power: must be at least 0, not -1"),
    (lambda: Pmf(0, (1,)).absolute_moment(1.5), "power: must be an integer, not 1.5"),
])  # fmt: skip
def test_what_is_wrong_is_said(build: Callable[[], Any], message: str) -> None:
    """Each constructor error names the argument, what was found and what would be right."""
    with pytest.raises(InputError) as caught:
        build()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("weights", [5, None, 0.5])
def test_weights_have_to_be_many(weights: Any) -> None:
    """A number in place of the list of weights is bad input like any other."""
    with pytest.raises(InputError, match=r"^weights: "):
        Pmf(0, weights)


@pytest.mark.parametrize(
    "pmf", [Pmf(-3, (1, 0, 2, 5, 1), "1/2"), Pmf(10**40, (1, 2)), Pmf(0, (3, 1), tails=Tails(1, right=HALF))]
)
def test_costs_by_name_have_expectations(pmf: Pmf) -> None:
    """In data units, as their definitions say."""
    assert pmf.expectation("square") == pmf.absolute_moment(2) == pmf.variance + pmf.mean**2
    assert pmf.expectation("absolute") == pmf.expectation({"power": 1}) == pmf.absolute_moment(1)
    assert pmf.expectation("value") == pmf.mean
    assert pmf.expectation("error") == 1 - pmf.probability(0)
    assert pmf.expectation({"table": {"0": 1}, "outside": 3}) == 3 - 2 * pmf.probability(0)
    for wrong in ("squre", 3, None, abs):
        with pytest.raises(InputError, match="^function: must be one of 'absolute', 'square', 'error', 'value'"):
            pmf.expectation(wrong)  # type: ignore[arg-type]
