"""The laws of the samplers: exactly, by enumerating what bits do, and by chi-square tests that see usual mistakes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import permutations
from math import exp, expm1
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.errors import InputError
from dpopt.pmf import Pmf, Tails
from dpopt.release import integers
from dpopt.release.digits import ExponentialRatio, GeometricDraws
from dpopt.release.drawing import drawn
from dpopt.release.lazy import CHUNK, BallSurvival, LazyTable, RationalSurvival
from dpopt.release.pmf_sampler import pmf_draws
from dpopt.release.randomness import InsecureRandomness, Randomness
from dpopt.release.samplers import (
    sample,
    sample_bernoulli,
    sample_bernoulli_exp,
    sample_discrete_gaussian,
    sample_discrete_laplace,
    sample_geometric,
    sample_permutation,
    sample_truncated_geometric,
    sample_uniform,
)

from .goodness import gaussian_law, geometric_law, laplace_law, normalised, p_value
from .twin import Replay, written

few = settings(derandomize=True, max_examples=30, deadline=None)
HALF = Fraction(1, 2)
MANY = 1_000_000
LIKELY = 1e-4  # every p-value of a right law here is above this, with seeds that are fixed


def seeded(seed: int = 1) -> Randomness:
    return InsecureRandomness(seed)


# --- exact laws, by enumeration --------------------------------------------------------------------------------------


def measures(draw: Callable[[int, Randomness], Any]) -> dict[int, Fraction]:
    """The length of the set of U that yield each outcome, exact but for the 64-bit words on boundaries.

    All 65,536 prefixes are drawn at once with the least and with the largest continuation. The outcome does not rise
    with U, so that a prefix with one outcome at both ends has no other; in the rest the changes are bisected.
    """
    prefixes = np.arange(1 << 16, dtype="<u2").tobytes()
    least = np.asarray(draw(1 << 16, Replay(prefixes + bytes(8 << 16) + bytes([1] * 999))))
    most = np.asarray(draw(1 << 16, Replay(prefixes + b"\xff" * (9 << 16))))
    found: dict[int, Fraction] = {}
    values, counts = np.unique(least[least == most], return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        found[value] = Fraction(count, 1 << 16)

    def at(key: int) -> int:
        return int(draw(1, Replay(written(key) + bytes([255] * 99)))[0])

    for prefix in np.flatnonzero(least != most).tolist():
        first, end = prefix << 48, (prefix + 1) << 48
        while first < end:
            outcome, low, high = at(first), first, end
            while high - low > 1:  # at(low) is this outcome, at(high) another or the end
                middle = (low + high) // 2
                low, high = (middle, high) if at(middle) == outcome else (low, middle)
            found[outcome] = found.get(outcome, Fraction(0)) + Fraction(high - first, 1 << 64)
            first = high
    return found


def matches(found: dict[int, Fraction], law: dict[int, Fraction]) -> bool:
    """Every outcome has its probability, up to the one word in 2^64 on each of its two boundaries."""
    return found.keys() == {k for k, p in law.items() if p} and all(
        abs(found[k] - p) <= Fraction(2, 1 << 64) for k, p in law.items() if p
    )


def of_pmf(pmf: Pmf) -> Callable[[int, Randomness], Any]:
    return lambda count, source: sample(pmf, count, randomness=source)


@pytest.mark.parametrize("weights", [(1, 2, 1), (1, 2, 3, 5), (5, 0, 0, 2, 0), (1, 0, 2**40), (3**30, 1, 3**29)])
def test_measure_of_pmfs(weights: tuple[int, ...]) -> None:
    """The public sampler, every prefix: each weight over the total, nothing on a weight of 0."""
    pmf = Pmf(-1, weights)
    assert matches(measures(of_pmf(pmf)), {k: pmf.probability(k) for k in range(-1, len(weights) - 1)})


def test_measure_of_dyadic_weights_is_equal() -> None:
    """With a total of 2^20 there are no words on boundaries: equality."""
    pmf = Pmf(0, (1, 7, 2**19 - 8, 2**19 - 1000, 1000))
    assert measures(of_pmf(pmf)) == {k: pmf.probability(k) for k in range(5)}


@pytest.mark.parametrize("p", ["1/2", "1/4", "3/4", "1/3", "1e-5"])
def test_measure_of_coins(p: str) -> None:
    """Bernoulli(p)."""
    chance = Fraction(p)
    found = measures(lambda count, source: sample_bernoulli(p, count, randomness=source))
    assert matches(found, {0: 1 - chance, 1: chance})


def test_measure_of_a_two_sided_geometric() -> None:
    """Ratio 1/3 on both sides, the written part of the tails included; what is beyond restarts, with its own draws."""
    pmf = Pmf(0, (1,), tails=Tails(1, Fraction(1, 3), Fraction(1, 3)))
    codes = measures(pmf_draws(pmf)._table.draw)
    points = pmf_draws(pmf)._points
    inside = len(points) - 2
    assert all(abs(codes[i] - pmf.probability(int(points[i]))) <= Fraction(2, 1 << 64) for i in range(inside))
    beyond = Fraction(1, 3) ** (inside // 2 + 1) / (1 - Fraction(1, 3)) / pmf.total
    assert abs(codes[inside] - beyond) <= Fraction(2, 1 << 64)
    assert abs(codes[inside + 1] - beyond) <= Fraction(2, 1 << 64)


@pytest.mark.parametrize("mutant", ["no second stage", "one cell off"])
def test_measure_finds_mutants(mutant: str) -> None:
    """The enumeration fails for a table without refinement, and for one that is a cell off."""
    table, law = LazyTable(RationalSurvival([1, 2, 3, 5])), [Fraction(w, 11) for w in (1, 2, 3, 5)]
    assert matches(measures(table.draw), dict(enumerate(law)))
    if mutant == "one cell off":
        table._cells = np.where(np.roll(table._cells, 1) < 0, table._cells, np.roll(table._cells, 1))
    else:
        table._cells = np.where(table._cells < 0, np.roll(table._cells, 1), table._cells)
    assert not matches(measures(table.draw), dict(enumerate(law)))


# --- laws, by chi-square ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["1", "3", "4", "10", "10/10", "2/6", "100", "250"])
def test_discrete_laplace(scale: str) -> None:
    """Table and tails; 3, 4, 10 and fractions that share factors went wrong elsewhere."""
    draws = sample_discrete_laplace(scale, MANY, randomness=seeded())
    assert p_value(draws, laplace_law(float(Fraction(scale)))) > LIKELY


def test_discrete_laplace_has_the_mass_of_the_two_sided_geometric_at_0() -> None:
    """0.462 at scale 1, not the 0.393 of a rounded continuous variable, which fails the test."""
    draws = sample_discrete_laplace(1, MANY, randomness=seeded(2))
    assert abs(np.mean(draws == 0) - 0.46211715726) < 0.003
    rounded = {0: 1 - exp(-0.5)} | {s * k: exp(-k) * (exp(0.5) - exp(-0.5)) / 2 for k in range(1, 40) for s in (-1, 1)}
    assert abs(rounded[0] - 0.393) < 0.001
    assert p_value(draws, rounded) < 1e-12


def test_chi_square_sees_a_slight_bias() -> None:
    """A scale of 3.03 in place of 3, and one value moved by a hundredth of its chance."""
    draws = sample_discrete_laplace(3, 4 * MANY, randomness=seeded(3))
    assert p_value(draws, laplace_law(3)) > LIKELY
    assert p_value(draws, laplace_law(3.03)) < 1e-9
    law = laplace_law(3)
    law[1], law[2] = law[1] + law[1] / 100, law[2] - law[1] / 100
    assert p_value(draws, law) < 1e-9


@pytest.mark.parametrize("sigma", ["1/3", "1", "10", "100"])
def test_discrete_gaussian(sigma: str) -> None:
    """By table."""
    draws = sample_discrete_gaussian(sigma, MANY, randomness=seeded())
    assert p_value(draws, gaussian_law(float(Fraction(sigma)))) > LIKELY


def test_discrete_gaussian_by_rejection() -> None:
    """Beyond the largest table; a second method with the same law as the table's."""
    draws = sample_discrete_gaussian(600, MANY, randomness=seeded())
    assert p_value(draws // 50, _grouped(gaussian_law(600), 50)) > LIKELY
    assert p_value(draws // 50, _grouped(gaussian_law(610), 50)) < 1e-9
    by_variance = sample_discrete_gaussian(variance=360_000, size=1000, randomness=seeded())
    assert by_variance.tolist() == sample_discrete_gaussian(600, 1000, randomness=seeded()).tolist()


def _grouped(law: dict[int, float], width: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for k, p in law.items():
        found[k // width] = found.get(k // width, 0.0) + p
    return found


@pytest.mark.parametrize("x", ["3", "1", "1/10", "1/40", "1/500"])
def test_geometric(x: str) -> None:
    """One table, and digits below it."""
    draws = sample_geometric(x, MANY, randomness=seeded())
    assert p_value(draws, geometric_law(float(Fraction(x)))) > LIKELY


@pytest.mark.parametrize("x", ["1e-17", "1e-30", "1e-100"])
def test_geometric_of_a_tiny_rate(x: str) -> None:
    """Python integers with mean 1/x, exponential to the eye: x V in twenty cells of equal chance."""
    draws = sample_geometric(x, 20_000, randomness=seeded())
    assert draws.dtype == object and all(type(value) is int for value in draws)
    cells = [int(-20 * expm1(-float(Fraction(x) * value))) for value in draws.tolist()]
    assert p_value(cells, dict.fromkeys(range(20), 0.05)) > LIKELY
    last_digits = [value % 8 for value in draws.tolist()]
    assert p_value(last_digits, dict.fromkeys(range(8), 0.125)) > LIKELY


def test_geometric_without_refinement_fails() -> None:
    """The chi-square test sees the dropped second stage where cells hold many outcomes."""
    length = 121
    table = LazyTable(BallSurvival(lambda _: [ExponentialRatio(Fraction(1, 10)).power(k) for k in range(1, length)]))
    law = geometric_law(0.1)
    assert p_value(table.draw(MANY, seeded()), law) > LIKELY
    table._cells = np.where(table._cells < 0, np.roll(table._cells, -1), table._cells)
    table._cells[table._cells < 0] = 0
    assert p_value(table.draw(MANY, seeded()), law) < 1e-9


@pytest.mark.parametrize("x, below", [("1/2", 3), ("1/50", 100), ("1/100000", 300), ("1/200", 1000)])
def test_truncated_geometric(x: str, below: int) -> None:
    """A table, digits that are drawn again, and a remainder."""
    draws = sample_truncated_geometric(x, below, MANY, randomness=seeded())
    rate = float(Fraction(x))
    assert p_value(draws, normalised(lambda j: exp(-rate * j), range(below))) > LIKELY


@pytest.mark.parametrize("below", [2, 6, 1000, 5000])
def test_uniform(below: int) -> None:
    """Bounds for 16 and 32 bits."""
    assert p_value(sample_uniform(below, MANY, randomness=seeded()), dict.fromkeys(range(below), 1 / below)) > LIKELY


@pytest.mark.parametrize("below", [10**15, 2**63, 2**64 + 1, 10**40])
def test_uniform_of_large_bounds(below: int) -> None:
    """Twenty cells of equal length; the dtype follows from the bound."""
    draws = sample_uniform(below, 20_000, randomness=seeded())
    assert draws.dtype == (np.int64 if below <= 2**63 else object)
    cells = [20 * int(value) // below for value in draws]
    assert p_value(cells, dict.fromkeys(range(20), 0.05)) > LIKELY


@pytest.mark.parametrize("x", ["1/1000", "1", "5/2"])
def test_bernoulli_exp(x: str) -> None:
    """e^-x."""
    p = exp(-float(Fraction(x)))
    assert p_value(sample_bernoulli_exp(x, MANY, randomness=seeded()), {0: 1 - p, 1: p}) > LIKELY


def test_permutations_are_uniform() -> None:
    """All 24 orders of four, and where each of 2,000 places sends the first and the last one."""
    source = seeded()
    orders = [tuple(sample_permutation(4, randomness=source).tolist()) for _ in range(20_000)]
    number = {order: i for i, order in enumerate(permutations(range(4)))}
    assert p_value([number[order] for order in orders], dict.fromkeys(range(24), 1 / 24)) > LIKELY
    long = sample_permutation(2000, randomness=source)
    assert sorted(long.tolist()) == list(range(2000)) and long.tolist() != list(range(2000))


SPIKE = Pmf(-1, (1, 2, 1))


def probabilities(pmf: Pmf, left: int, right: int) -> dict[int, float]:
    """The core and so many points of each tail, a period times its ratio as a float after the other."""
    found = {k: float(pmf.probability(k)) for k in range(pmf.start, pmf.end + 1)}
    if pmf.tails is not None:
        period = pmf.tails.period
        for k in range(pmf.end + 1, pmf.end + 1 + right):
            found[k] = found[k - period] * float(pmf.tails.right or 0)
        for k in range(pmf.start - 1, pmf.start - 1 - left, -1):
            found[k] = found[k + period] * float(pmf.tails.left or 0)
    return found


@pytest.mark.parametrize(
    "pmf",
    [
        SPIKE,
        Pmf(5, (1, 0, 3, 0, 0, 9)),
        Pmf(0, (1,), tails=Tails(1, HALF, HALF)),
        Pmf(-2, (4, 0, 1, 5, 2), tails=Tails(2, Fraction(4, 5), None)),
        Pmf(-2, (4, 0, 1, 5, 2), tails=Tails(3, Fraction(1, 3), Fraction(9, 10))),
        Pmf(0, (7, 1, 1), tails=Tails(3, None, Fraction(2**128 - 2**120, 2**128 + 1))),
    ],
    ids=["spike", "zeros", "geometric", "left", "both", "slow"],
)
def test_pmfs(pmf: Pmf) -> None:
    """Core, written tails, and sides: a ratio near 1 sends half of the draws beyond the table."""
    law = probabilities(pmf, 200, 9000)
    draws = sample(pmf, MANY, randomness=seeded())
    assert draws.dtype == np.int64
    assert p_value(draws, law) > LIKELY
    shifted = {k + 1: p for k, p in law.items()}
    assert p_value(draws, shifted) < 1e-12


def test_a_tail_beyond_64_bits() -> None:
    """A ratio of 1 - 2^-80: Python integers, periods of three, the place in the period by the weights."""
    ratio = 1 - Fraction(1, 2**80)
    pmf = Pmf(0, (1, 0, 3), tails=Tails(3, None, ratio))
    draws = sample(pmf, 20_000, randomness=seeded())
    assert draws.dtype == object
    assert p_value([value % 3 for value in draws], {0: 0.25, 2: 0.75}) > LIKELY
    cells = [int(-20 * expm1(-value / 3 / 2**80)) for value in draws]
    assert p_value(cells, dict.fromkeys(range(20), 0.05)) > LIKELY


@given(st.lists(st.sampled_from([0, 1, 5, 2**70]), min_size=1, max_size=7).filter(any), st.integers(0, 5))
@few
def test_weights_of_zero_are_never_drawn(weights: list[int], seed: int) -> None:
    """Whatever the bits: random ones, all zeros, all ones."""
    pmf = Pmf(-3, weights)
    sources = [seeded(seed), Replay(b"\xff" * 9000), Replay(bytes(3000) + b"\1" * 9000)]
    for draws in (sample(pmf, 300, randomness=source) for source in sources):
        assert all(pmf.weight(int(k)) > 0 for k in draws)


def test_a_category_of_weight_zero_in_ten_million_draws() -> None:
    """A weight of 2^200 beside a weight of 0."""
    draws = sample(Pmf(0, (0, 2**200, 0, 2**199, 0)), 10_000_000, randomness=seeded())
    assert np.unique(draws).tolist() == [1, 3]


# --- the integer-only draws have the same laws -----------------------------------------------------------------------


def slow(draw: Callable[..., int], *arguments: Any, count: int = 4000) -> list[int]:
    source = seeded(4)
    return [draw(*arguments, source) for _ in range(count)]


@pytest.mark.slow
def test_integer_draws() -> None:
    """Each slow draw against its law: a method without tables, by the same test."""
    assert p_value(slow(integers.uniform_below, 6), dict.fromkeys(range(6), 1 / 6)) > LIKELY
    assert p_value(slow(integers.bernoulli, "1/3"), {0: 2 / 3, 1: 1 / 3}) > LIKELY
    assert p_value(slow(integers.bernoulli_exp, "5/2"), {0: 1 - exp(-2.5), 1: exp(-2.5)}) > LIKELY
    assert p_value(slow(integers.geometric, "3/7"), geometric_law(3 / 7)) > LIKELY
    assert p_value(slow(integers.discrete_laplace, "2/6"), laplace_law(1 / 3)) > LIKELY
    assert p_value(slow(integers.discrete_laplace, "10"), laplace_law(10)) > LIKELY
    assert p_value(slow(integers.discrete_gaussian, "5/2"), gaussian_law(2.5)) > LIKELY
    truncated = normalised(lambda j: exp(-j / 2), range(3))
    assert p_value(slow(integers.truncated_geometric, "1/2", 3), truncated) > LIKELY
    orders = [tuple(integers.permutation(3, source)) for source in [seeded()] for _ in range(3000)]
    number = {order: i for i, order in enumerate(permutations(range(3)))}
    assert p_value([number[order] for order in orders], dict.fromkeys(range(6), 1 / 6)) > LIKELY


def test_integer_draws_of_pmfs() -> None:
    """Tails on both sides, periods, zeros."""
    pmf = Pmf(-2, (4, 0, 1, 5, 2), tails=Tails(3, Fraction(1, 3), Fraction(3, 5)))
    law = {k: float(pmf.probability(k)) for k in range(-60, 90)}
    assert p_value(slow(integers.categorical, pmf), law) > LIKELY


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda s: integers.uniform_below(0, s), "below: must be at least 1, not 0"),
        (lambda s: integers.bernoulli(2, s), r"p: must lie in \[0, 1\], not 2"),
        (lambda s: integers.bernoulli_exp("-1/2", s), "x: must not be negative, not -1/2"),
        (lambda s: integers.geometric(0, s), "x: must be positive, not 0"),
        (lambda s: integers.truncated_geometric(1, 0, s), "below: must be at least 1, not 0"),
        (lambda s: integers.permutation(-2, s), "n: must be at least 0, not -2"),
        (lambda s: integers.discrete_laplace(0, s), "scale: must be positive, not 0"),
        (lambda s: integers.discrete_gaussian(-1, s), "sigma: must be positive, not -1"),
        (lambda s: integers.discrete_gaussian(1, s, variance=1), "sigma: must be given, or else the variance"),
        (lambda s: integers.uniform_below(3, 1), "randomness: must be"),
    ],
)
def test_errors_of_integer_draws(call: Callable[[Randomness], Any], message: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(InputError, match=message):
        call(Replay(b""))


# --- shapes, types, sources ------------------------------------------------------------------------------------------

EVERY: list[Callable[..., Any]] = [
    lambda size, source: sample(SPIKE, size, randomness=source),
    lambda size, source: sample_uniform(10, size, randomness=source),
    lambda size, source: sample_bernoulli("1/3", size, randomness=source),
    lambda size, source: sample_bernoulli_exp(1, size, randomness=source),
    lambda size, source: sample_geometric("1/100", size, randomness=source),
    lambda size, source: sample_truncated_geometric("1/100", 1000, size, randomness=source),
    lambda size, source: sample_discrete_laplace(3, size, randomness=source),
    lambda size, source: sample_discrete_gaussian(3, size, randomness=source),
    lambda size, source: sample_discrete_gaussian(10**4, size, randomness=source),
]


@pytest.mark.parametrize("draw", EVERY)
def test_shapes_and_sources(draw: Callable[..., Any]) -> None:
    """One Python number, empty arrays, shapes; the same seed the same draws; the system's bits by default."""
    assert type(draw(None, seeded())) is int
    assert draw(0, seeded()).shape == (0,) and draw((2, 0), None).shape == (2, 0)
    assert draw((2, 3), None).shape == (2, 3) and draw(np.int64(4), None).dtype == np.int64
    assert draw((50, 2), seeded()).ravel().tolist() == draw(100, seeded()).tolist()
    assert draw(200, None).tolist() != draw(200, None).tolist()


@pytest.mark.parametrize("draw", EVERY)
@pytest.mark.parametrize("size", [-1, (2, -1), 2.0, "3", True, [2, 3], (1, False)])
@pytest.mark.filterwarnings("error")
def test_sizes_that_are_none(draw: Callable[..., Any], size: Any) -> None:
    """Refused before anything is read."""
    with pytest.raises(InputError, match="size: must"):
        draw(size, Replay(b""))


@pytest.mark.parametrize("source", [1, np.random.default_rng(1), np.random, "os", 0])
@pytest.mark.parametrize("draw", EVERY)
def test_bare_sources_are_refused(draw: Callable[..., Any], source: Any) -> None:
    """A seed or a generator says by its wrapper that it is not secure."""
    with pytest.raises(InputError, match=r"randomness: must be .* dp\.InsecureRandomness"):
        draw(3, source)


@pytest.mark.slow
def test_first_and_last_element_have_the_law() -> None:
    """Of an array of several chunks and a bit, the ends of every chunk too; of a short one by itself."""
    size = 2 * CHUNK + 3
    places = [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK - 1, 2 * CHUNK, size - 1]
    source = seeded()
    for draw in (lambda n: sample_geometric(1, n, randomness=source), of_half_open(source)):
        long = np.array([draw(size)[places] for _ in range(60)])
        short = np.array([draw(3) for _ in range(20_000)])
        assert p_value(long.ravel(), geometric_law(1)) > LIKELY
        for column in (0, 1, 2):
            assert p_value(short[:, column], geometric_law(1)) > LIKELY


def of_half_open(source: Randomness) -> Callable[[int], Any]:
    """A geometric of rate 1 as the remainder of a pmf with tails: e^-1 to 2^-128."""
    ratio = Fraction(round(exp(-1) * 2**53), 2**53)
    pmf = Pmf(0, (1,), tails=Tails(1, None, ratio))
    return lambda count: sample(pmf, count, randomness=source)


def test_chunks_follow_each_other() -> None:
    """A long array reads what its chunks read one after the other."""
    left, right = seeded(), seeded()
    whole = sample(SPIKE, CHUNK + 7, randomness=left)
    parts = [sample(SPIKE, CHUNK, randomness=right), sample(SPIKE, 7, randomness=right)]
    assert np.array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda s: sample(3, 1, randomness=s), "pmf: must be a Pmf or have one as its attribute 'pmf', not int"),
        (lambda s: sample_uniform(0, 1, randomness=s), "below: must be at least 1, not 0"),
        (lambda s: sample_uniform("1/2", 1, randomness=s), "below: must be an integer"),
        (lambda s: sample_bernoulli("3/2", 1, randomness=s), r"p: must lie in \[0, 1\], not 3/2"),
        (lambda s: sample_bernoulli(-1, 1, randomness=s), r"p: must lie in \[0, 1\], not -1"),
        (lambda s: sample_bernoulli_exp(-1, 1, randomness=s), "x: must not be negative, not -1"),
        (lambda s: sample_geometric(0, 1, randomness=s), "x: must be positive, not 0"),
        (lambda s: sample_geometric(float("nan"), 1, randomness=s), "x: must be finite, not nan"),
        (lambda s: sample_truncated_geometric(1, 0, 1, randomness=s), "below: must be at least 1, not 0"),
        (lambda s: sample_truncated_geometric(-1, 5, 1, randomness=s), "x: must be positive, not -1"),
        (lambda s: sample_permutation(-1, randomness=s), "n: must be at least 0, not -1"),
        (lambda s: sample_discrete_laplace(0, 1, randomness=s), "scale: must be positive, not 0"),
        (lambda s: sample_discrete_gaussian(0, 1, randomness=s), "sigma: must be positive, not 0"),
        (lambda s: sample_discrete_gaussian(size=1, randomness=s), "sigma: must be given, or else the variance"),
        (lambda s: sample_discrete_gaussian(1, 1, variance=1, randomness=s), "sigma: must be given, or else"),
        (lambda s: sample_discrete_gaussian(variance=-2, randomness=s), "variance: must be positive, not -2"),
    ],
)
def test_errors_before_anything_is_drawn(call: Callable[[Randomness], Any], message: str) -> None:
    """The source is empty: reading from it would fail otherwise."""
    with pytest.raises(InputError, match=message):
        call(Replay(b""))


def test_types_follow_from_the_parameters() -> None:
    """The last parameter of int64 and the first of Python integers, as documented; empty arrays show it as well."""
    for size in (0, 5):
        assert sample_geometric(Fraction(1, 2**51), size).dtype == np.int64
        assert sample_geometric(Fraction(1, 2**51 + 1), size).dtype == object
        assert sample_discrete_laplace(2**50, size).dtype == np.int64
        assert sample_discrete_laplace(2**50 + 1, size).dtype == object
        assert sample_discrete_gaussian(2**50 - 1, size).dtype == np.int64
        assert sample_discrete_gaussian(2**50, size).dtype == object
        for x in ("1e-30", "1e-15", "1"):
            assert sample_truncated_geometric(x, 2**62, size).dtype == np.int64
            assert sample_truncated_geometric(x, 2**62 + 1, size).dtype == object
        assert sample_uniform(2**63, size).dtype == np.int64
        assert sample_uniform(2**63 + 1, size).dtype == object


def test_extreme_parameters() -> None:
    """Scales of 10^-4000, exponents of 10^4000, sigma of 10^200: an answer, not float garbage."""
    tiny, huge = Fraction(1, 10**4000), 10**4000
    assert sample_discrete_laplace(tiny, 5, randomness=seeded()).tolist() == [0] * 5
    assert sample_discrete_gaussian(tiny, 5, randomness=seeded()).tolist() == [0] * 5
    assert sample_bernoulli_exp(huge, 5, randomness=seeded()).tolist() == [0] * 5
    assert sample_geometric(huge, 5, randomness=seeded()).tolist() == [0] * 5
    wide = sample_discrete_gaussian(10**200, 300, randomness=seeded())
    assert 0.8 < float(sum(Fraction(int(z), 10**200) ** 2 for z in wide) / 300) < 1.25
    assert max(abs(sample_discrete_laplace("1e17", 50, randomness=seeded()))) > 10**16


def test_draws_that_leave_64_bits_against_all_odds() -> None:
    """A table that is left 2^40 times in a row would do it; here it says so by itself. Nothing wraps."""

    class Far(LazyTable):
        def draw(self, count: int, randomness: Randomness) -> Any:
            return np.full(count, 2**50, dtype=np.int64)

    draws = GeometricDraws(ExponentialRatio(Fraction(1, 2**40)))
    assert not draws.wide and draws.draw(3, seeded()).dtype == np.int64
    draws._high = Far(RationalSurvival([1, 1]))
    beyond = drawn(draws, (2, 2), seeded())
    assert beyond.dtype == object and all(2**85 <= value < 2**86 for value in beyond.ravel())
    pmf = Pmf(0, (1, 1), tails=Tails(2, None, 1 - Fraction(1, 2**40)), step=2**20)
    sampler = pmf_draws(pmf)
    assert not sampler.wide
    periods, sampler._sides[0]._periods = sampler._sides[0]._periods, draws
    try:
        beyond = sample(pmf, 300, randomness=seeded())
    finally:
        sampler._sides[0]._periods = periods
    assert beyond.dtype == object and max(beyond) > 2**100 and all(value % 2**20 == 0 for value in beyond)


# --- what a pmf stands for -------------------------------------------------------------------------------------------


def test_steps() -> None:
    """An integer step gives integers, any other exact fractions: the lattice of the output is that of the pmf."""
    half = sample(Pmf(-1, (1, 2, 1), step="1/2"), (40, 2), randomness=seeded())
    assert half.dtype == object and set(half.ravel()) == {Fraction(-1, 2), Fraction(0), Fraction(1, 2)}
    assert all(type(value) is Fraction for value in half.ravel())
    three = sample(Pmf(-1, (1, 2, 1), step=3), 40, randomness=seeded())
    assert three.dtype == np.int64 and set(three.tolist()) == {-3, 0, 3}
    wide = sample(Pmf(-1, (1, 2, 1), step=2**70), 40, randomness=seeded())
    assert wide.dtype == object and set(wide.tolist()) == {-(2**70), 0, 2**70}
    assert sample(Pmf(7, (1,), step="1/3"), randomness=seeded()) == Fraction(7, 3)
    assert sample(Pmf(7, (1,), step=2), randomness=seeded()) == 14
    far = sample(Pmf(2**70, (1, 1)), 40, randomness=seeded())
    assert far.dtype == object and set(far.tolist()) == {2**70, 2**70 + 1}


def test_what_has_a_pmf() -> None:
    """Distributions and solutions are drawn from as their pmf is."""
    counts = dp.poisson(10)
    assert sample(counts, 9, randomness=seeded()).tolist() == sample(counts.pmf, 9, randomness=seeded()).tolist()
    noise = dp.solve(dp.tablebuilder(D=11, V=4))
    law = {k: float(noise.pmf.probability(k)) for k in range(-11, 12)}
    assert p_value(sample(noise, MANY, randomness=seeded()), law) > LIKELY


def test_an_unproved_solution_is_not_drawn_from() -> None:
    """`pmf` raises, and so does `sample`."""
    impossible = dp.Problem(
        support=dp.Integers(-2, 2), objective=dp.MaxEntropy(), constraints=[dp.Mean(0), dp.SecondMoment(at_least=9)]
    )
    with pytest.raises(dp.NotVerifiedError):
        sample(dp.solve(impossible), 3, randomness=Replay(b""))


@pytest.mark.parametrize("x", [1, "1e-5", "1e30"])
def test_a_truncated_geometric_below_any_bound(x: Any) -> None:
    """Beyond 64 bits as well, where a geometric draw is seldom as large as the bound."""
    for below in (2**62 - 1, 2**62 + 1, 2**63 - 1, 2**63, 2**64, 10**100):
        drawn = sample_truncated_geometric(x, below, 3, randomness=InsecureRandomness(1))
        assert all(0 <= int(v) < below for v in drawn)
        assert (drawn.dtype == object) == (below > 2**62)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: sample_uniform(6, 10**30), "size: must ask for at most"),
        (lambda: sample_uniform(6, (10**10, 10**10)), "size: must ask for at most"),
        (lambda: sample_permutation(10**30), "n: must be at most 1000000000"),
        (lambda: sample_geometric("1e-400"), "x: must be at least 1e-300"),
        (lambda: sample_truncated_geometric("1e-400", 10**400), "x: must be at least 1e-300"),
        (lambda: sample_discrete_laplace("1e500"), "scale: must be at most 1e300"),
        (lambda: sample_discrete_gaussian("1e301"), "sigma: must be at most 1e300"),
        (lambda: sample_discrete_gaussian(1, variance=1), "one of the two, not both"),
        (lambda: sample_discrete_gaussian(), "one of the two, not neither"),
    ],
)
def test_what_would_take_minutes_is_refused(ask: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ask()


# --- the second draw from a pmf ---------------------------------------------------------------------------------------


class Watched(tuple[int, ...]):
    """Weights that must not be looked at any more once it is `closed`."""

    closed = False

    def _look(self) -> None:
        assert not Watched.closed, "the weights were looked at again"

    def __hash__(self) -> int:
        self._look()
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        self._look()
        return super().__eq__(other)

    def __iter__(self) -> Any:
        self._look()
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        self._look()
        return super().__getitem__(place)


@pytest.mark.parametrize("tails", [None, Tails(1, right="1/2")])
@pytest.mark.parametrize("step", [1, 3, "1/2"])
def test_the_weights_are_looked_at_once(tails: Tails | None, step: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second draw reads the table alone: it costs the same from three points as from millions."""
    for remake in (lambda pmf: pmf, copy.deepcopy, lambda pmf: pickle.loads(pickle.dumps(pmf))):
        pmf = remake(Pmf(0, range(1, 50), step=step, tails=tails))
        object.__setattr__(pmf, "weights", Watched(pmf.weights))
        first = sample(pmf, 5, randomness=seeded())
        monkeypatch.setattr(Watched, "closed", True)
        assert sample(pmf, 5, randomness=seeded()).tolist() == first.tolist()  # type: ignore[union-attr]
        sample(pmf)
        dp.add_noise(6, pmf)
        monkeypatch.setattr(Watched, "closed", False)


def test_equal_pmfs_share_a_table() -> None:
    one, other = (Pmf(0, range(1, 60)) for _ in range(2))
    assert pmf_draws(one) is pmf_draws(other) is pmf_draws(one)
    assert pmf_draws(Pmf(1, range(1, 60))) is not pmf_draws(one)


def test_threads_that_come_first_all_draw_from_the_law() -> None:
    pmf = Pmf(7, (0, 0, 1, 0))
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: sample(pmf), range(200))) == {9}


def test_a_variance_beyond_reach_is_named_as_such() -> None:
    with pytest.raises(InputError, match="^variance: must be at most 1e600"):
        sample_discrete_gaussian(variance="1e601")
    with pytest.raises(InputError, match="^sigma: must be at most 1e300"):
        sample_discrete_gaussian("1e301")
