"""Every fast draw equals the twin's, bit for bit, on random bits and on bits that sit on the boundaries."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.pmf import Pmf, Tails
from dpopt.release.digits import (
    Digits,
    ExponentialRatio,
    GeometricDraws,
    RationalRatio,
    TruncatedDraws,
    geometric_draws,
)
from dpopt.release.gaussian import GaussianRejection, GaussianTable, laplace_draws
from dpopt.release.lazy import BallSurvival, LazyTable, RationalSurvival
from dpopt.release.pmf_sampler import pmf_draws
from dpopt.release.randomness import InsecureRandomness, Randomness
from dpopt.release.samplers import sample_bernoulli, sample_bernoulli_exp
from dpopt.release.uniform import UniformDraws, shuffled

from . import twin
from .twin import Law, Replay

few = settings(derandomize=True, max_examples=25, deadline=None)
EIGHTH, HALF = Fraction(1, 8), Fraction(1, 2)


def gaussian_code(z: int) -> int:
    """0, 1, -1, 2, -2, ... by number."""
    return 2 * z - 1 if z > 0 else -2 * z


def disagreement(draw: Callable[[int, Randomness], Any], law: Law) -> bytes | None:
    """Boundary bytes on which a table and its twin differ in the outcome, or in how much they read."""
    for data in twin.boundary_bytes(law):
        fast, slow = Replay(data), Replay(data)
        if int(draw(1, fast)[0]) != twin.invert(law, slow) or fast.used != slow.used:
            return data
    return None


def powers(x: Fraction, length: int) -> BallSurvival:
    """min(V, length) of a geometric V of rate x."""
    return BallSurvival(lambda _: [ExponentialRatio(x).power(k) for k in range(1, length + 1)])


WEIGHTS: list[list[int]] = [
    [1, 2, 1],
    [1, 2, 3, 5],
    [1, 1],
    [7],
    [2**200, 1],
    [1, 2**200],
    [1, 2**64 - 1],
    [2**64 - 1, 1, 2**64],
    [1, 2**16 - 2, 1],
    [3**k for k in range(60)],
    [1 + k * k % 7 for k in range(500)],
]


@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda w: f"{len(w)}-{w[0].bit_length()}")
def test_tables_of_integers(weights: list[int]) -> None:
    """Dyadic boundaries, boundaries that share a word, weights of 2^200 beside 1."""
    assert disagreement(LazyTable(RationalSurvival(weights)).draw, twin.rational(weights)) is None


@pytest.mark.parametrize("x", [Fraction(1), Fraction(1, 3), EIGHTH, Fraction(50), Fraction(1000)])
def test_tables_of_a_geometric(x: Fraction) -> None:
    """Irrational boundaries, most of them in one word when x is large."""
    assert disagreement(LazyTable(powers(x, 40)).draw, twin.at_least(x, 1, 40)) is None


@pytest.mark.parametrize("x, base", [(Fraction(1), 4), (Fraction(1, 1000), 64), (Fraction(1, 10**30), 16)])
def test_tables_of_a_truncated_geometric(x: Fraction, base: int) -> None:
    """With a rate of 1e-30 the boundaries lie 1e-30 away from multiples of 1/16."""
    draws = TruncatedDraws(ExponentialRatio(x), base)
    assert disagreement(draws.draw, twin.truncated(x, 1, base)) is None


@pytest.mark.parametrize("ratio, below", [(Fraction(1, 3), 2), (HALF, 2), (Fraction(3, 5), 2), (Fraction(2, 3), 9)])
def test_tables_of_a_rational_truncated_geometric(ratio: Fraction, below: int) -> None:
    """The ratio 1/3 below 2 is a coin of 1/4: its boundary is dyadic, and 16 bits decide."""
    law = twin.rational([ratio**j for j in range(below)])
    assert disagreement(TruncatedDraws(RationalRatio(ratio), below).draw, law) is None


@pytest.mark.parametrize("variance", [Fraction(1, 10**6), Fraction(1, 7), Fraction(1), Fraction(25)])
def test_tables_of_a_gaussian(variance: Fraction) -> None:
    """The normaliser is an infinite sum; the outcomes have no end."""
    table, law = GaussianTable(variance), twin.gaussian(variance)

    def draw(count: int, source: Randomness) -> list[int]:
        return [gaussian_code(int(z)) for z in table.draw(count, source)]

    assert disagreement(draw, law) is None
    assert gaussian_code(-3) == 6 and gaussian_code(3) == 5


@pytest.mark.parametrize("weights", [[1, 2, 3, 5], [3**k for k in range(60)]], ids=["4", "60"])
def test_batches_read_in_stages(weights: list[int]) -> None:
    """Many draws at once: prefixes first, then words in the order of the undecided draws."""
    data = InsecureRandomness(5).read(1 << 17)
    # every twentieth prefix is put where a boundary is, so that many draws need a word
    law = twin.rational(weights)
    cells = [low >> (twin.WIDE - 16) for low, _ in law.enclosures]
    halves = np.frombuffer(data[:40_000], dtype="<u2").copy()
    halves[::20] = np.resize(np.array(cells, dtype="<u2"), 1000)
    data = halves.tobytes() + data[40_000:]
    fast, slow = Replay(data), Replay(data)
    assert LazyTable(RationalSurvival(weights)).draw(20_000, fast).tolist() == twin.invert_all(law, 20_000, slow)
    assert fast.used == slow.used > 40_000 + 8 * 900


# --- samplers of several draws ---------------------------------------------------------------------------------------


def same(draws: Any, slow: Callable[[Randomness], int], data: list[bytes]) -> bool:
    for one in data:
        left, right = Replay(one), Replay(one)
        if int(draws.draw(1, left)[0]) != slow(right) or left.used != right.used:
            return False
    return True


def random_bytes(seed: int, count: int, size: int = 2000) -> list[bytes]:
    """Random ones, and ones that begin with the least and largest numbers, where tables are left."""
    found = [InsecureRandomness(1000 * seed + i).read(size) for i in range(count)]
    return found + [bytes([byte]) * 6 + one for one in found[:5] for byte in (0, 255)]


@pytest.mark.slow
@pytest.mark.parametrize("x", ["1/40", "1/2000", "1/3", "20", "1e-17", "1e-30"])
def test_geometric_digits(x: str) -> None:
    """Every digit, the part above them, and the way past the end of its table."""
    rate = Fraction(x)
    draws, slow = geometric_draws(ExponentialRatio(rate)), twin.geometric(rate)
    data = random_bytes(1, 150)
    assert same(draws, slow, data)
    for below, law in twin.digits(rate, 20)[:1]:
        assert below == 0
        assert same(Digits(ExponentialRatio(rate), 20), _joined(twin.digits(rate, 20)), list(twin.boundary_bytes(law)))


def _joined(parts: list[tuple[int, Law]]) -> Callable[[Randomness], int]:
    return lambda source: sum(twin.invert(law, source) << below for below, law in parts)


def test_geometric_past_the_end_of_its_table() -> None:
    """The least U leaves the table; what follows starts at its end."""
    draws, slow = GeometricDraws(ExponentialRatio(Fraction(1, 4))), twin.geometric(Fraction(1, 4))
    for repeats in (1, 2, 3):
        data = twin.written(7) * repeats + InsecureRandomness(repeats).read(400)
        left, right = Replay(data), Replay(data)
        drawn = int(draws.draw(1, left)[0])
        assert drawn == slow(right) and left.used == right.used
        assert drawn >= 49 * repeats


@pytest.mark.parametrize("below", [257, 1000, 4096, 10**6])
def test_truncated_geometric_by_digits(below: int) -> None:
    """Digits of the next power of two, all drawn again when they reach the bound."""
    x = Fraction(1, 10**9)
    parts = _joined(twin.digits(x, (below - 1).bit_length()))

    def slow(source: Randomness) -> int:
        while (drawn := parts(source)) >= below:
            pass
        return drawn

    assert same(TruncatedDraws(ExponentialRatio(x), below), slow, random_bytes(2, 150))


def test_truncated_geometric_by_remainder() -> None:
    """A long bound: the geometric's remainder."""
    x = Fraction(1, 300)
    slow = twin.geometric(x)
    assert same(TruncatedDraws(ExponentialRatio(x), 1000), lambda source: slow(source) % 1000, random_bytes(3, 150))


laws = st.builds(
    lambda start, weights, period, left, right: Pmf(
        start, weights, tails=Tails(min(period, len(weights)), *((left, right) if left or right else (HALF, None)))
    ),
    st.integers(-9, 9),
    st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any),
    st.integers(1, 3),
    st.sampled_from([None, HALF, Fraction(1, 3), Fraction(2, 7), Fraction(9, 10)]),
    st.sampled_from([None, HALF, Fraction(1, 5), Fraction(3, 4)]),
)


@given(laws)
@few
def test_pmfs_with_tails(pmf: Pmf) -> None:
    """Random cores with zeros, periods and sides; the least U walks out into the tails."""
    assert same(pmf_draws(pmf), twin.tailed(pmf), random_bytes(4, 40))


@pytest.mark.parametrize("scale", ["3", "4", "10", "10/10", "2/6", "1/100"])
def test_discrete_laplace(scale: str) -> None:
    """Scales whose fractions share factors, against the two-sided law written out."""
    t = Fraction(scale)
    reach = int(12 * t) + 1
    order = [0, *range(1, reach + 1), *range(-1, -reach - 1, -1)]

    def survival() -> list[Any]:
        q = twin.exponential(1 / t)
        masses = [q ** abs(z) for z in order] + [q ** (reach + 1) / (1 - q)] * 2
        return [sum(masses[k:]) * (1 - q) / (1 + q) for k in range(1, len(masses))]

    law, far = twin.balls(survival), twin.geometric(1 / t)

    def slow(source: Randomness) -> int:
        outcome = twin.invert(law, source)
        if outcome < len(order):
            return order[outcome]
        return (reach + 1 + far(source)) * (1 if outcome == len(order) else -1)

    assert same(laplace_draws(t), slow, list(twin.boundary_bytes(law))[:: 1 + len(order) // 20] + random_bytes(5, 40))


def test_gaussian_rejection() -> None:
    """Acceptance words on, below and above the acceptance probability, for proposals of every size."""
    variance, scale = Fraction(101, 4), 6
    draws, far = GaussianRejection(variance), laplace_draws(Fraction(scale))

    def chance(z: int) -> tuple[int, int]:
        exponent = (abs(z) - variance / scale) ** 2 / (2 * variance)
        return twin.balls(lambda: [twin.exponential(exponent)]).enclosures[0]

    def slow(source: Randomness) -> int:
        while True:
            z = int(far.draw(1, source)[0])
            read, bits = source.integer(64), 64
            low, high = chance(z)
            while True:
                if (read + 1) << (twin.WIDE - bits) <= low:
                    return z
                if read << (twin.WIDE - bits) >= high:
                    break
                read, bits = read << 64 | source.integer(64), bits + 64

    data = random_bytes(6, 60)
    for seed in range(40):
        proposal = InsecureRandomness(seed).read(10)
        used = Replay(proposal + bytes(100))
        low, _ = chance(int(far.draw(1, used)[0]))
        key, third = low >> (twin.WIDE - 64), low >> (twin.WIDE - 128) & (1 << 64) - 1
        for move in (-1, 0, 1, 1 << 30, -(1 << 30)):
            for other in (-1, 0, 1):
                words = (min(max(key + move, 0), 2**64 - 1), min(max(third + other, 0), 2**64 - 1))
                forced = b"".join(word.to_bytes(8, "little") for word in words)
                data.append((proposal + bytes(100))[: used.used] + forced + InsecureRandomness(seed).read(2000))
    assert same(draws, slow, data)


# --- coins, bounded integers, permutations ---------------------------------------------------------------------------


def coin_of(p: Fraction, *words: int) -> int:
    """The coin when U begins with these 64-bit parts."""
    data = twin.written(*words)
    return int(sample_bernoulli(p, 1, randomness=Replay(data + bytes(200)))[0])


@pytest.mark.parametrize("p", [HALF, Fraction(1, 4), Fraction(3, 4), Fraction(1, 3), 1 - Fraction(1, 2**53)])
def test_coins(p: Fraction) -> None:
    """One side is exactly U < p."""
    law = twin.rational([1 - p, p])
    assert disagreement(lambda n, source: sample_bernoulli(p, n, randomness=source), law) is None


def test_a_coin_of_the_smallest_double() -> None:
    """p = 2^-1074: sixteen words of zeros and then the bit of weight 2^-1074 decides, and nothing before it."""
    p = Fraction(1, 2**1074)
    zeros = (0,) * 16  # 1,024 bits; the next bits have weights 2^-1025, ..., so that p is the fiftieth of them
    assert coin_of(p, *zeros, (1 << 14) - 1) == 1
    assert coin_of(p, *zeros, 1 << 14) == 0
    assert coin_of(p, 1) == 0


def test_certain_coins_read_nothing() -> None:
    """p = 0 and p = 1, e^-0."""
    assert sample_bernoulli(0, 4, randomness=Replay(b"")).tolist() == [0] * 4
    assert sample_bernoulli(1, 4, randomness=Replay(b"")).tolist() == [1] * 4
    assert sample_bernoulli_exp(0, 4, randomness=Replay(b"")).tolist() == [1] * 4


@pytest.mark.parametrize("x", ["1/1000", "1", "7/3", "44", "100"])
def test_exponential_coins(x: str) -> None:
    """Any x, also where e^-x has no bit among the first 64."""
    law = twin.balls(lambda: [twin.exponential(Fraction(x))])
    assert disagreement(lambda n, source: sample_bernoulli_exp(x, n, randomness=source), law) is None


@pytest.mark.parametrize(
    "below, width", [(6, 16), (4096, 16), (4097, 32), (10**8, 32), (10**15, 64), (2**60 + 1, 61), (10**30, 100)]
)
def test_uniform(below: int, width: int) -> None:
    """Words from the largest multiple of the bound on are drawn again; the others are reduced."""

    def word(source: Randomness) -> int:
        if width <= 32:
            return source.integer(width)
        parts = [min(64, width - start) for start in range(0, width, 64)]
        return sum((source.integer(64) >> 64 - part) << 64 * i for i, part in enumerate(parts))

    limit = (1 << width) // below * below

    def slow(source: Randomness) -> int:
        while (drawn := word(source)) >= limit:
            pass
        return drawn % below

    edges = [edge for edge in (0, below - 1, below, limit - 1, limit, (1 << width) - 1) if edge < 1 << width]
    size = 4 if width == 32 else width // 8
    data = [edge.to_bytes(size, "little") + bytes(range(200)) for edge in edges] if width in (16, 32, 64) else []
    assert same(UniformDraws(below), slow, data + random_bytes(7, 100, 400))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
def test_permutations(n: int) -> None:
    """Fisher and Yates with the words in the order of the exchanges; a word beyond the last multiple is drawn again."""
    whole = (1 << 64) - 1
    for data in [*random_bytes(8, 20), *(whole.to_bytes(8, "little") * k + bytes(range(256)) * 8 for k in range(4))]:
        fast, slow = Replay(data), Replay(data)
        words = [slow.integer(64) for _ in range(n - 1)]
        bounds = list(range(n, 1, -1))
        while refused := [i for i, b in enumerate(bounds) if words[i] >= 2**64 // b * b]:
            for i in refused:
                words[i] = slow.integer(64)
        order = list(range(n))
        for b, word in zip(bounds, words, strict=True):
            order[b - 1], order[word % b] = order[word % b], order[b - 1]
        assert shuffled(n, fast).tolist() == order
        assert fast.used == slow.used


# --- what is wrong is found ------------------------------------------------------------------------------------------


class NoSecondStage(LazyTable):
    """Takes an undecided prefix for its own least continuation."""

    def _second_stage(self, prefixes: Any, randomness: Randomness) -> Any:
        keys = prefixes.astype(np.uint64) << np.uint64(48)
        randomness.words(len(prefixes))
        return len(self._thresholds) - np.searchsorted(self._thresholds, keys, side="right")


class NoThirdStage(LazyTable):
    """Takes 64 bits for all of U."""

    def _third_stage(self, read: int, randomness: Randomness) -> int:
        randomness.integer(64)
        return int(len(self._thresholds) - np.searchsorted(self._thresholds, np.uint64(read), side="right"))


class OneCellOff(LazyTable):
    """The first stage looks one prefix too low."""

    def _first_stage(self) -> Any:
        return np.roll(super()._first_stage(), 1)


class RoundedUp(LazyTable):
    """Thresholds are ceilings."""

    def __init__(self, survival: Any) -> None:
        super().__init__(survival)
        self._thresholds = self._thresholds + self._inexact.astype(np.uint64)


@pytest.mark.parametrize("mutant", [NoSecondStage, NoThirdStage, OneCellOff, RoundedUp])
def test_mutants_disagree_with_the_twin(mutant: type[LazyTable]) -> None:
    """Each shortcut that a table could take is caught by the boundary bits, rational and irrational."""
    weights = [1, 2, 3, 5]
    assert disagreement(mutant(RationalSurvival(weights)).draw, twin.rational(weights)) is not None
    assert disagreement(mutant(powers(EIGHTH, 40)).draw, twin.at_least(EIGHTH, 1, 40)) is not None


def test_a_weight_off_by_one_in_2_to_the_80_disagrees() -> None:
    """The twin tells laws apart that no number of draws would."""
    weights = [2**80, 2**80, 2**80]
    law = twin.rational([2**80 + 1, 2**80, 2**80])
    assert disagreement(LazyTable(RationalSurvival(weights)).draw, twin.rational(weights)) is None
    assert disagreement(LazyTable(RationalSurvival(weights)).draw, law) is not None


def test_floors_decrease_and_refine() -> None:
    """Floors at 128 bits begin with those at 64."""
    for survival in (RationalSurvival([1, 2, 3, 5]), GaussianTable(Fraction(2))._table._survival):
        coarse, fine = survival.floors(64), survival.floors(128)
        assert all(a >= b for (a, _), (b, _) in pairwise(coarse))
        assert [a for a, _ in coarse] == [b >> 64 for b, _ in fine[: len(coarse)]]
