"""Tied scores: the law of their ranking by enumeration, the selection they are found with, and the work they cost."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cases import ties as benchmark
from dpopt.release import leading
from dpopt.release.leading import _best_ranked, _largest
from dpopt.release.randomness import InsecureRandomness, Randomness
from dpopt.release.scores import Wide, WideFloats
from dpopt.release.selection_law import Outcome, SelectionLaw
from dpopt.release.top_k import Ties, noisy_top_k
from dpopt.release.uniform import UniformDraws, first_shuffled

from .goodness import p_value


class Counting(InsecureRandomness):
    """Counts the bytes that are read."""

    used = 0

    def read(self, count: int) -> bytes:
        self.used += count
        return super().read(count)


# --- the ranking ------------------------------------------------------------------------------------------------------


def by_one_ranking(order: tuple[int, ...], ahead: list[bool], places: int) -> list[int]:
    """The definition: everybody has a rank; those ahead and the best ranked of the others, the highest rank first."""
    tied = [item for item in order if not ahead[item]][: places - sum(ahead)]
    return [item for item in order if ahead[item] or item in tied]


def by_a_part_of_it(order: tuple[int, ...], ahead: list[bool], places: int) -> list[int]:
    """The same from what is drawn: the highest ranks, and the order of those ahead that have none of them."""
    left = [item for item in order[places:] if ahead[item]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leading, "first_shuffled", lambda count, total, source: np.array(order[:count]))
        patch.setattr(
            leading, "shuffled", lambda count, source: np.array([sorted(left).index(i) for i in left], dtype=int)
        )
        chosen, ranks = _best_ranked(np.array(ahead), places, InsecureRandomness(0))
    return [int(item) for item in chosen[np.argsort(-ranks)]]


@pytest.mark.parametrize("items", [2, 3, 4, 5])
def test_a_part_of_a_ranking_is_enough(items: int) -> None:
    """For each of the orders, which are equally likely: the two draws are uniform and independent, as its parts are."""
    for order in permutations(range(items)):
        for number in range(items - 1):
            ahead = [item < number for item in range(items)]
            for places in range(number + 1, items):
                assert by_a_part_of_it(order, ahead, places) == by_one_ranking(order, ahead, places)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "k", "rate"), [((1, 0, 0, 0, 0), 1, "2"), ((1, 1, 0, 0), 2, "3"), ((0,) * 4, 2, "4")]
)
@pytest.mark.parametrize("ties", Ties)
def test_many_ties_at_the_last_place_have_the_exact_law(values: tuple[int, ...], k: int, rate: str, ties: Ties) -> None:
    source = InsecureRandomness(1)
    counts: Counter[Outcome] = Counter()
    for _ in range(3000):
        top = noisy_top_k(list(values), k, 2 * k * Fraction(rate), resolution=1, ties=ties, randomness=source)
        counts[Outcome(top.ids, top.gaps_in_units)] += 1
    found = SelectionLaw(values, k, Fraction(rate)).fit(counts, 2)
    assert found.p_value > 1e-3, found


@pytest.mark.parametrize(("count", "total"), [(1, 4), (2, 5), (3, 4)])
def test_the_first_of_a_random_order_are_uniform(count: int, total: int) -> None:
    source, law = InsecureRandomness(3), dict.fromkeys(permutations(range(total), count), 0.0)
    drawn = [tuple(first_shuffled(count, total, source).tolist()) for _ in range(4000)]
    number = {outcome: i for i, outcome in enumerate(law)}
    assert p_value([number[found] for found in drawn], dict.fromkeys(range(len(law)), 1 / len(law))) > 1e-3


def test_repeats_are_dropped_in_the_order_of_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [[7, 3, 7], [3], [3], [0]]
    monkeypatch.setattr(UniformDraws, "draw", lambda self, count, source: np.array(script.pop(0)))
    assert first_shuffled(3, 9, InsecureRandomness(0)).tolist() == [7, 3, 0]
    assert not script


# --- the selection ----------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 5, 8193, 20_000, 60_001]),
    st.sampled_from([1, 2, 3, 50, 10**4, 2**62]),
    st.floats(0, 1),
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_the_value_at_a_place(seed: int, size: int, spread: int, where: float) -> None:
    """As sorting finds it: of skewed values, with heavy ties at either end, sorted or not."""
    generator = np.random.default_rng(seed)
    cells = generator.integers(0, spread, size)
    cells = np.where(generator.random(size) < generator.choice([0, 0.5, 0.9999]), generator.integers(0, spread), cells)
    cells = [cells, np.sort(cells), np.sort(cells)[::-1]][seed % 3].astype(np.int64)
    place = 1 + int(where * (size - 1))
    wanted = int(np.sort(cells)[size - place])
    assert _largest(cells.copy(), place) == wanted
    assert _largest(cells.astype(object), place) == wanted


def test_a_sample_that_misleads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pivots that never split: sorting ends it after a fixed number of rounds."""
    cells = np.arange(50_000)
    monkeypatch.setattr(leading, "_MARGIN", 1 << 30)  # the ends of the sample
    assert [_largest(cells, place) for place in (1, 25_000, 50_000)] == [49_999, 25_000, 0]


# --- the work ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1", "100", "1e4", "1e9"])
def test_ties_take_no_further_bits(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes a score for the noise and a few for the places, however many tie; no order of all that tie is made."""
    longest: list[int] = []
    plain = leading.shuffled

    def watched(count: int, source: Randomness) -> np.ndarray:
        longest.append(count)
        return plain(count, source)

    monkeypatch.setattr(leading, "shuffled", watched)
    used = {}
    for name, scores in (("distinct", np.arange(100_000) * 1000), ("equal", np.zeros(100_000, dtype=np.int64))):
        source = Counting(1)
        noisy_top_k(scores, 3, epsilon, randomness=source)
        used[name] = source.used
    assert used["equal"] <= 1.05 * used["distinct"]
    assert max(longest, default=0) <= 4


def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """At a small size, where its demands say nothing."""
    monkeypatch.setattr("gc.collect", lambda: 0)
    assert benchmark.main(repeat=1, size=40, of=(Ties.PERMUTATION,)) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * len(benchmark.settings(40))
    assert all("times that: " in line and "demand: at most 10" in line for line in lines)


# --- scores too far apart for 64 bits --------------------------------------------------------------------------------

EXTREMES = [-(2**63), 2**63 - 1, -(2**62), 2**62, 0]
far_apart = st.lists(
    st.one_of(st.sampled_from(EXTREMES), st.integers(-(2**63), 2**63 - 1), st.integers(-6, 6)), min_size=2, max_size=12
)


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(far_apart, st.data(), st.integers(0, 50), st.sampled_from(list(Ties)), st.sampled_from([1, 3, 10, 2**40]))
def test_moving_what_no_noise_bridges_changes_nothing(
    scores: list[int], data: st.DataObject, seed: int, ties: Ties, units: int
) -> None:
    """64-bit arithmetic on scores as far apart as they like is that of integers, draw by draw, gaps included."""
    k = data.draw(st.integers(1, len(scores) - 1))
    rate = data.draw(st.sampled_from([Fraction(1, 3), Fraction(1, 10**4), Fraction(1, 10**17)]))

    def found(values: object) -> tuple[list[int], list[int], list[int]]:
        source = InsecureRandomness(seed)
        lead = leading.ranked_items if ties is Ties.PERMUTATION else leading.refined_items
        more = () if ties is Ties.PERMUTATION else (2,)
        here = lead(values, k + 1, rate, *more, source)
        return here.items.tolist(), list(map(int, here.cells.tolist())), here.ranks.tolist()

    integers = np.array([score * units for score in scores], dtype=object)
    assert found(Wide(np.array(scores, dtype=np.int64), units)) == found(integers)


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.floats(-20, 20),
            st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from([1e18, -1e300, 1.7e308, 2.0**62]),
        ),
        min_size=2,
        max_size=10,
    ),
    st.data(), st.integers(0, 50), st.sampled_from([1, 3, 10, 2**40]),
)  # fmt: skip
def test_the_same_of_floats(scores: list[float], data: st.DataObject, seed: int, units: int) -> None:
    """Rounded down to units exactly, however large."""
    k = data.draw(st.integers(1, len(scores) - 1))
    rate = data.draw(st.sampled_from([Fraction(1, 3), Fraction(1, 10**4), Fraction(1, 10**17), Fraction(1, 10**40)]))
    integers = np.array([floor(Fraction(score) * units) for score in scores], dtype=object)
    pairs = []
    for values in (WideFloats(np.array(scores), units), integers):
        here = leading.ranked_items(values, k + 1, rate, InsecureRandomness(seed))
        pairs.append((here.items.tolist(), list(map(int, here.cells.tolist())), here.ranks.tolist()))
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_wide_arrays_and_integers_give_the_same_selection(dtype: type) -> None:
    """From the front door: an array with the largest score that it can hold, and the same scores as Python integers."""
    scores = np.array([5, 9, np.iinfo(dtype).max, 7, 9, np.iinfo(dtype).max - 1, 0], dtype=dtype)
    for k in range(1, 6):
        pairs = [
            noisy_top_k(given, k, 2, randomness=InsecureRandomness(k)) for given in (scores, np.array(scores, object))
        ]
        assert pairs[0].ids == pairs[1].ids and pairs[0].gaps == pairs[1].gaps
        assert set(pairs[0].ids[:2]) <= {2, 5} or k == 1


def test_one_score_far_out_leaves_the_others_in_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No array of Python integers is made of all scores."""
    kinds: list[str] = []
    cut = leading._leading
    monkeypatch.setattr(
        leading, "_leading", lambda cells, places: (kinds.append(cells.dtype.kind), cut(cells, places))[1]
    )
    scores = np.arange(10_000)
    scores[17] = 2**63 - 1
    top = noisy_top_k(scores, 2, 1, randomness=InsecureRandomness(1))
    assert top.ids[0] == 17 and top.gaps[0] > 2**62 and kinds == ["i"]


def test_scores_are_gone_through_once() -> None:
    """What can be gone through only once is read like a list of the same."""
    for scores in ([5, 9, 7], [5, 2**63 - 1, 7], ["1/2", 3, 7], [5, 2**80, 7]):
        found = [noisy_top_k(given, 1, 9, randomness=InsecureRandomness(2)) for given in (iter(scores), scores)]
        assert found[0] == found[1]
