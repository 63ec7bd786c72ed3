"""Noisy top-k with gap against its exact law, its slow twin, its own mistakes, and every awkward input."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

from dpopt.errors import InputError
from dpopt.release import leading, top_k
from dpopt.release.integer_top_k import integer_top_k
from dpopt.release.integers import geometric, permutation, truncated_geometric
from dpopt.release.leading import Leading, refined_items
from dpopt.release.randomness import InsecureRandomness, Randomness
from dpopt.release.selection_design import SelectionDesign
from dpopt.release.selection_law import Fit, Outcome, SelectionLaw
from dpopt.release.top_k import Ties, TopK, noisy_max, noisy_top_k, noisy_top_k_ids

FITS, FAILS = 1e-3, 1e-9  # p-values: what a right sampler has (the seeds are fixed), and what a wrong one has not

Drawn = tuple[tuple[int, ...], tuple[int, ...]]  # items and gaps
Draw = Callable[[tuple[int, ...], int, Fraction, Randomness], Drawn]

# scores in units, k, rate, gaps below which every outcome has a cell of the chi-square test
CASES = {
    "printed": ((2, 0, 0), 1, Fraction(1, 4), 30),
    "last-largest": ((0, 0, 2), 1, Fraction(1, 4), 30),
    "two-of-four": ((2, 1, 1, 0), 2, Fraction(1, 2), 6),
    "coarse": ((6, 3, 0), 2, Fraction(2), 7),  # n = k + 1, cells that seldom tie: the correction decides
    "coarse-ties": ((1, 1, 0, 0), 2, Fraction(2), 5),
    "all-equal": ((5, 5, 5), 1, Fraction(1), 10),
    "negative": ((-7, -9, -7), 1, Fraction(1), 10),
    "huge": ((2**70, 2**70 - 2, 2**70 - 2), 1, Fraction(1, 4), 30),
}


def fast(values: tuple[int, ...], k: int, rate: Fraction, source: Randomness) -> Drawn:
    """The public function, at resolution 1."""
    found = noisy_top_k(list(values), k, 2 * k * rate, resolution=1, randomness=source)
    return found.ids, found.gaps_in_units


def refined(values: tuple[int, ...], k: int, rate: Fraction, source: Randomness) -> Drawn:
    """The public function by Algorithm 4's loop."""
    found = noisy_top_k(list(values), k, 2 * k * rate, resolution=1, ties="refinement", randomness=source)
    return found.ids, found.gaps_in_units


def slow(values: tuple[int, ...], k: int, rate: Fraction, source: Randomness) -> Drawn:
    """The integer-only twin."""
    return integer_top_k(values, k, rate, randomness=source)[:2]


def fit(draw: Draw, case: str, draws: int, seed: int = 1) -> Fit:
    """The chi-square test of a sampler, at one case."""
    values, k, rate, below = CASES[case]
    source = InsecureRandomness(seed)
    counts = Counter(Outcome(*draw(values, k, rate, source)) for _ in range(draws))
    return SelectionLaw(values, k, rate).fit(counts, below)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [fast, refined])
@pytest.mark.parametrize("case", CASES)
def test_the_fast_paths_have_the_exact_law(case: str, draw: Draw) -> None:
    found = fit(draw, case, 4000)
    assert found.p_value > FITS, found
    assert found.degrees >= 5


@pytest.mark.slow
@pytest.mark.parametrize("case", ["printed", "two-of-four", "coarse"])
def test_the_integer_twin_has_the_exact_law(case: str) -> None:
    found = fit(slow, case, 2000)
    assert found.p_value > FITS, found


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2, 3, 1000, 2**70])
def test_the_refinement_factor_changes_no_law(factor: int) -> None:
    def draw(values: tuple[int, ...], k: int, rate: Fraction, source: Randomness) -> Any:
        found = refined_items(np.array(values), k + 1, rate, factor, source)
        return tuple(found.items[:k].tolist()), found.gaps()

    found = fit(draw, "coarse-ties", 2000)
    assert found.p_value > FITS, found


# --- the same test fails for the usual mistakes -----------------------------------------------------------------------


def patched_gaps(gaps: Callable[[Leading], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(Leading, "gaps", gaps)


def no_correction(found: Leading) -> tuple[int, ...]:
    return tuple(((found.cells[:-1] - found.cells[1:]) // found.fineness).tolist())


def always_corrected(found: Leading) -> tuple[int, ...]:
    return tuple(((found.cells[:-1] - found.cells[1:] - 1) // found.fineness).tolist())


COINS = random.Random(4)


def a_coin_for_each_gap(found: Leading) -> tuple[int, ...]:
    coins = np.array([COINS.getrandbits(1) for _ in found.ranks[1:]])
    return tuple(((found.cells[:-1] - found.cells[1:] - coins) // found.fineness).tolist())


def ties_by_order(patch: pytest.MonkeyPatch) -> None:
    """Tied items as a stable sort leaves them: unranked, and unrefined."""
    patch.setattr(leading, "_ordered", lambda cells, ranks: np.argsort(-cells, kind="stable"))
    patch.setattr(leading, "_has_ties", lambda cells: False)
    plain = leading._leading

    def cut(cells: np.ndarray, places: int) -> tuple[np.ndarray, np.ndarray]:
        kept, cells = plain(cells, places)
        order = np.sort(np.argsort(-cells, kind="stable")[:places])
        return kept[order], cells[order]

    patch.setattr(leading, "_leading", cut)


def a_second_permutation_for_the_gaps(patch: pytest.MonkeyPatch) -> None:
    """Ties ranked by one order of the remainders, gaps rounded by another."""
    right = leading.ranked_items

    def wrong(values: np.ndarray, places: int, rate: Fraction, source: Randomness) -> Leading:
        found = right(values, places, rate, source)
        return Leading(found.items, found.cells, np.array(permutation(places, source)))

    patch.setattr(top_k, "ranked_items", wrong)


def twice_the_noise(patch: pytest.MonkeyPatch) -> None:
    right = leading.sample_geometric
    patch.setattr(
        leading, "sample_geometric", lambda rate, size, randomness: right(rate / 2, size, randomness=randomness)
    )


MISTAKES = [
    ("no-correction", patched_gaps(no_correction), "coarse"),
    ("always-corrected", patched_gaps(always_corrected), "coarse"),
    ("independent-coins", patched_gaps(a_coin_for_each_gap), "coarse"),
    ("ties-by-order", ties_by_order, "coarse-ties"),
    ("ties-by-order-equal", ties_by_order, "all-equal"),
    ("twice-the-noise", twice_the_noise, "printed"),
]
ONLY_RANKED = [("second-permutation", a_second_permutation_for_the_gaps, "coarse-ties")]
CAUGHT = [(draw, *row) for draw in (fast, refined) for row in MISTAKES] + [(fast, *row) for row in ONLY_RANKED]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "mistake", "case"), [pytest.param(d, m, c, id=f"{d.__name__}-{name}") for d, name, m, c in CAUGHT]
)
def test_a_mistake_in_a_fast_path_fails_the_same_test(
    draw: Draw, mistake: Callable[[pytest.MonkeyPatch], None], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    monkeypatch.setattr(TopK, "__post_init__", lambda self: None)  # it refuses the negative gaps that some make
    found = fit(draw, case, 2500)
    assert found.p_value < FAILS, found


def gaps_of_the_first_cells(values: tuple[int, ...], k: int, rate: Fraction, source: Randomness) -> Drawn:
    """The order from refined cells, the gaps from the coarse ones."""
    coarse = [value + geometric(rate, source) for value in values]
    cells = coarse
    while len(set(cells)) < len(cells):
        rate /= 10
        cells = [10 * cell + truncated_geometric(rate, 10, source) for cell in cells]
    order = sorted(range(len(cells)), key=cells.__getitem__, reverse=True)
    rest = permutation(k + 1, source)
    gaps = [coarse[order[i]] - coarse[order[i + 1]] - (rest[i] < rest[i + 1]) for i in range(k)]
    return tuple(order[:k]), tuple(gaps)


def test_gaps_of_the_first_cells_fail_the_same_test() -> None:
    """Negative gaps appear, which no cell of the law holds."""
    found = fit(gaps_of_the_first_cells, "coarse-ties", 800)
    assert found.p_value < FAILS, found


# --- selections without gaps ------------------------------------------------------------------------------------------


def chi_square(counts: Counter[Any], chances: dict[Any, float]) -> float:
    """The p-value of drawn counts; everything unlikely in one cell."""
    draws = sum(counts.values())
    likely = {key: chance for key, chance in chances.items() if draws * chance >= 5}
    cells = [(counts[key], draws * chance) for key, chance in likely.items()]
    rest = draws - sum(mean for _, mean in cells)
    if rest > 1:
        cells.append((draws - sum(seen for seen, _ in cells), rest))
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in cells)
    return float(gammaincc((len(cells) - 1) / 2, statistic / 2))


@pytest.mark.slow
@pytest.mark.parametrize(("values", "k"), [((2, 0, 0), 1), ((1, 1, 0, 0), 2), ((3, 1, 0, 0), 3)])
def test_the_items_without_gaps_have_the_law_of_those_with_gaps(values: tuple[int, ...], k: int) -> None:
    law, source = SelectionLaw(values, k, Fraction(1, 2)), InsecureRandomness(2)
    chances = {ids: float(law.chance_of(ids)) for ids in permutations(range(len(values)), k)}
    drawn = Counter(noisy_top_k_ids(values, k, k, resolution=1, randomness=source) for _ in range(3000))
    assert chi_square(drawn, chances) > FITS


def test_the_order_of_all_items() -> None:
    """k = n has no gap and is allowed here: the last place decides itself."""
    law, source = SelectionLaw((2, 1, 0), 2, Fraction(1, 2)), InsecureRandomness(3)
    chances = {ids: float(law.chance_of(ids[:2])) for ids in permutations(range(3))}
    drawn = Counter(noisy_top_k_ids([2, 1, 0], 3, 3, resolution=1, randomness=source) for _ in range(3000))
    assert chi_square(drawn, chances) > FITS
    assert noisy_top_k_ids([7], 1, 1) == (0,)


def test_equal_scores_are_drawn_uniformly() -> None:
    source = InsecureRandomness(5)
    drawn = Counter(noisy_max([5, 5, 5], 1, randomness=source) for _ in range(1500))
    assert chi_square(drawn, dict.fromkeys(range(3), 1 / 3)) > FITS
    drawn_first = Counter(noisy_top_k([5, 5, 5], 1, 1000, randomness=source).ids[0] for _ in range(1500))
    assert chi_square(drawn_first, dict.fromkeys(range(3), 1 / 3)) > FITS


def test_it_is_the_maximum_and_not_the_minimum() -> None:
    """With hardly any noise, in every position and sign."""
    for scores in ([0, 1, 2, 100], [100, 2, 1, 0], [-5, -100, -6], [-1, -3, -2], [2**80, 5, -(2**80)]):
        order = sorted(range(len(scores)), key=lambda i: -scores[i])
        assert noisy_max(scores, "1e6") == order[0]
        assert noisy_top_k_ids(scores, len(scores), "1e6") == tuple(order)
        top = noisy_top_k(scores, len(scores) - 1, "1e6")
        assert top.ids == tuple(order[:-1])
        for gap, a, b in zip(top.gaps, order, order[1:], strict=False):
            assert abs(gap - (scores[a] - scores[b])) <= Fraction(1, 10)


def test_the_first_and_the_last_item_can_win() -> None:
    for n in (2, 3, 1000):
        for place in (0, n - 1):
            scores = np.zeros(n, dtype=np.int64)
            scores[place] = 10**6
            assert noisy_max(scores, 1) == place
            assert noisy_top_k(scores, 1, 1).ids == (place,)


# --- exact arithmetic -------------------------------------------------------------------------------------------------


class Script:
    """Scripted noise in place of the samplers; the same sequence for both of those who read it."""

    def __init__(self, seed: int, largest: int, factor: int) -> None:
        self.random, self.largest, self.factor = random.Random(seed), largest, factor

    def noise(self, count: int) -> list[int]:
        return [self.random.randint(0, self.largest) for _ in range(count)]

    def remainders(self, count: int) -> list[int]:
        return [self.random.randrange(self.factor) for _ in range(count)]


def packed(values: list[int]) -> np.ndarray:
    """int64 where the values are, as samplers do."""
    if max(values) < 2**63:
        return np.array(values, dtype=np.int64)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def plain_leading(values: list[int], places: int, script: Script) -> tuple[list[int], list[int], int]:
    """The loop in Python integers, absolute cells, pruning at the last place."""
    kept, level = list(range(len(values))), 1
    cells = dict(zip(kept, [v + g for v, g in zip(values, script.noise(len(values)), strict=True)], strict=True))
    while True:
        threshold = sorted(cells.values())[-places]
        kept = [i for i in kept if cells[i] >= threshold]
        cells = {i: cells[i] for i in kept}
        if len(kept) == places and len(set(cells.values())) == places:
            break
        level *= script.factor
        cells = {i: script.factor * cells[i] + r for i, r in zip(kept, script.remainders(len(kept)), strict=True)}
    order = sorted(kept, key=cells.__getitem__, reverse=True)
    return order, [cells[i] - cells[order[-1]] for i in order], level


@given(
    st.lists(st.integers(-3, 3) | st.sampled_from([2**62 - 1, 1 - 2**62, 2**61]), min_size=1, max_size=12),
    st.sampled_from([0, 2, 50, 2**62, 2**63 - 1, 2**63, 2**90]),
    st.sampled_from([2, 10, 2**31, 2**62, 2**63, 2**70]),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_no_number_is_too_large(values: list[int], largest: int, factor: int, data: st.DataObject) -> None:
    """64-bit arithmetic where it fits and Python integers beyond give what Python integers alone give."""
    places = data.draw(st.integers(1, len(values)))
    seed = data.draw(st.integers(0, 10**6))
    script = Script(seed, largest, factor)
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="raise"):
        patch.setattr(leading, "sample_geometric", lambda rate, size, randomness: packed(script.noise(size)))
        patch.setattr(
            leading,
            "sample_truncated_geometric",
            lambda rate, below, size, randomness: packed(script.remainders(size)),
        )
        found = refined_items(packed(values), places, Fraction(1), factor, InsecureRandomness(0))
        noise = Script(seed, largest, factor).noise(len(values))
        patch.setattr(leading, "sample_geometric", lambda rate, size, randomness: packed(list(noise)))
        ranked = leading.ranked_items(packed(values), places, Fraction(1), InsecureRandomness(0))
    sums = sorted((v + g for v, g in zip(values, noise, strict=True)), reverse=True)[:places]
    assert [int(c) + sums[-1] for c in ranked.cells] == sums
    assert all(values[i] + noise[i] == total for i, total in zip(ranked.items.tolist(), sums, strict=True))
    order, cells, level = plain_leading(values, places, Script(seed, largest, factor))
    assert found.items.tolist() == order
    assert [int(c) for c in found.cells] == cells
    assert found.fineness == level


def test_gaps_of_huge_cells() -> None:
    """The floor of a difference beyond 64 bits, and of one that is not."""
    for fineness in (1, 10, 10**30):
        cells = [7 * 10**40, 10**40, 11, 1]
        order = [2, 3, 1, 0]
        found = Leading(np.arange(4), packed(cells), np.array(order), fineness)
        wanted = [(a - b - (x < y)) // fineness for a, b, x, y in zip(cells, cells[1:], order, order[1:], strict=False)]
        assert found.gaps() == tuple(wanted)
    assert Leading(np.arange(3), np.array([25, 13, 2]), np.array([0, 1, 2]), 10**30).gaps() == (0, 0)


@pytest.mark.parametrize("ties", Ties)
@pytest.mark.parametrize("epsilon", ["1e-30", "1e-3", 1, "1e4", "1e30"])
def test_every_size_of_epsilon(epsilon: Any, ties: Ties) -> None:
    """Noise beyond 64 bits, and none to speak of."""
    top = noisy_top_k([3, 3, 2, 1], 2, epsilon, ties=ties, randomness=InsecureRandomness(1))
    assert len(set(top.ids)) == 2
    assert min(top.gaps) >= 0
    if epsilon == "1e30":
        assert set(top.ids) == {0, 1}


@pytest.mark.parametrize("ties", Ties)
def test_a_hundred_thousand_equal_scores(ties: Ties) -> None:
    """Ties everywhere: it ends, with different items and gaps that are not negative."""
    source = InsecureRandomness(9)
    for scores in (np.zeros(100_000, dtype=np.int64), [2**70] * 3000):
        top = noisy_top_k(scores, 5, 1, ties=ties, randomness=source)
        assert len(set(top.ids)) == 5
        assert max(top.ids) < len(scores)
        assert min(top.gaps) >= 0


def test_all_but_one_of_many_equal_scores() -> None:
    """Every neighbour among 3,000 has to be told apart, far beyond 64 bits where M is large."""
    for factor in (2, 10, 10**9):
        found = refined_items(np.full(3000, 40), 3000, Fraction(1, 12000), factor, InsecureRandomness(7))
        assert sorted(found.items.tolist()) == list(range(3000))
        assert min(found.gaps()) >= 0
        assert found.fineness >= factor
    top = noisy_top_k([4] * 3000, 2999, 5, randomness=InsecureRandomness(7))
    assert len(set(top.ids)) == 2999
    assert min(top.gaps) >= 0


def test_one_more_score_than_selected() -> None:
    """The authors' code has no (k+2)-th item there and ends with an IndexError."""
    for scores, k in (([5, 5], 1), ([1, 2, 3], 2), ([1, 2], 1)):
        top = noisy_top_k(scores, k, 1)
        assert (len(top.ids), len(top.gaps)) == (k, k)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "factor", "printed"), [("printed", 10, 0.291), ("two-of-four-at-1/4", 3, 0.630)])
def test_the_mean_number_of_loops(case: str, factor: int, printed: float) -> None:
    """theory-selection.md, 7: it depends on the law of the ties."""
    values, k = ((2, 0, 0), 1) if case == "printed" else ((4, 2, 2, 0), 2)
    source = InsecureRandomness(6)
    loops = [
        round(log(refined_items(np.array(values), k + 1, Fraction(1, 4), factor, source).fineness, factor))
        for _ in range(3000)
    ]
    assert abs(np.mean(loops) - printed) < 4 * np.std(loops) / np.sqrt(len(loops))
    slow_loops = [
        integer_top_k(values, k, Fraction(1, 4), refinement=factor, randomness=source).loops for _ in range(800)
    ]
    assert abs(np.mean(slow_loops) - printed) < 4 * np.std(slow_loops) / np.sqrt(len(slow_loops))


# --- the result, and the door -----------------------------------------------------------------------------------------


def test_the_result() -> None:
    top = noisy_top_k([40, 30, "20.55"], 2, "1/2", resolution="1/5", sensitivity=2, randomness=InsecureRandomness(1))
    assert (top.k, top.epsilon, top.resolution) == (2, Fraction(1, 2), Fraction(1, 5))
    assert top.gaps == tuple(Fraction(gap, 5) for gap in top.gaps_in_units)
    assert all(type(number) is int for number in (*top.ids, *top.gaps_in_units))
    assert pickle.loads(pickle.dumps(top)) == top
    assert not top.secure
    assert noisy_top_k([1, 2], 1, 1).secure
    data = json.loads(json.dumps(top.to_dict()))
    assert data["gaps"] == [str(gap) for gap in top.gaps]
    assert (data["epsilon"], data["sensitivity"], data["secure"]) == ("1/2", "2", False)
    with pytest.raises(AttributeError):
        top.ids = ()  # type: ignore[misc]


def test_a_selection_is_kept_and_read_again() -> None:
    """Selected today, as JSON in between, measured and combined later: the same answer."""
    for options in ({"resolution": "1/7"}, {"sensitivity": 3, "monotonic": True}):
        top = noisy_top_k([90, 2**80, 30, 10], 3, "0.3", randomness=InsecureRandomness(3), **options)  # type: ignore[arg-type]
        again = TopK.from_dict(json.loads(json.dumps(top.to_dict())))
        assert again == top
        assert again.combine([9, 5, 4], 7) == top.combine([9, 5, 4], 7)
        assert SelectionDesign.from_dict(json.loads(json.dumps(top.design.to_dict()))) == top.design
    by_hand = TopK(np.array([4, 1]), ["3", 2.0], SelectionDesign(2, 1), np.True_)  # type: ignore[arg-type]
    assert by_hand == TopK((4, 1), (3, 2), SelectionDesign(2, 1), secure=True)
    assert {type(number) for number in (*by_hand.ids, *by_hand.gaps_in_units)} == {int}


def test_an_insecure_selection_stays_marked() -> None:
    """Through replacing, copying, pickling, JSON, and what is made of its gaps."""
    top = noisy_top_k([90, 30, 10], 2, 1, randomness=InsecureRandomness(3))
    with pytest.raises(ValueError, match="secure"):
        replace(top, secure=True)
    copies = [replace(top), copy.deepcopy(top), pickle.loads(pickle.dumps(top)), TopK.from_dict(top.to_dict())]
    assert copies == [top] * 4 and not any(again.secure for again in copies)
    secure = noisy_top_k([90, 30, 10], 2, 1)
    assert secure.secure and pickle.loads(pickle.dumps(secure)).secure and TopK.from_dict(secure.to_dict()).secure
    assert not replace(secure, ids=(2, 1)).secure  # nobody has drawn that
    found, right = (made.combine([80, 33], 4) for made in (top, secure))
    assert (found.secure, right.secure) == (False, True)
    with pytest.raises(ValueError, match="secure"):
        replace(found, secure=True)
    assert not replace(found, estimates=right.estimates).secure
    assert str(found).splitlines()[0] == "insecure seed: for tests only, not for release"
    assert "insecure" not in str(right)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ids": (1,)}, "ids: must be k = 2 integers, not 1"),
        ({"ids": (1, 1)}, r"ids: must be k = 2 different positions, not \[1, 1\]"),
        ({"ids": (1, -1)}, r"ids\[1\]: must be at least 0"),
        ({"ids": {1, 2}}, "ids: must be a list of integers"),
        ({"ids": None}, "ids: must be a list of integers"),
        ({"gaps_in_units": (1, 2, 3)}, "gaps_in_units: must be k = 2 integers, not 3"),
        ({"gaps_in_units": (1, 2.5)}, r"gaps_in_units\[1\]: must be an integer, not 2.5"),
        ({"gaps_in_units": (1, -2)}, r"gaps_in_units\[1\]: must be at least 0, not -2"),
        ({"design": None}, "design: must be a SelectionDesign, not None"),
        ({"secure": "yes"}, "secure: must be True or False, not 'yes'"),
    ],
)
def test_a_selection_by_hand_is_validated(changed: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {"ids": (3, 0), "gaps_in_units": (5, 1), "design": SelectionDesign(2, 1), "secure": True}
    with pytest.raises(InputError, match=message):
        TopK(**{**right, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gaps": ["0.05", "1"]}, r"gaps\[0\]: must be a multiple of the resolution 1/10, not 0.05"),
        ({"gaps": "12"}, "gaps: must be a list"),
        ({"gaps": ["x", "1"]}, r"gaps\[0\]: must be a number"),
        ({"k": 3}, "ids: must be k = 3 integers, not 2"),
        ({"items": ["a", "b"]}, "selection: must have the entries ids, gaps, k, .*'items' is unknown"),
        ({"monotonic": "false"}, "monotonic: must be True or False"),
        ({"epsilon": "0"}, "epsilon: must be positive"),
    ],
)
def test_what_reading_a_selection_refuses(changed: dict[str, Any], message: str) -> None:
    data = TopK((3, 0), (5, 1), SelectionDesign(2, 1), secure=True).to_dict()
    with pytest.raises(InputError, match=message):
        TopK.from_dict({**data, **changed})
    for odd in (None, [data], "x"):
        with pytest.raises(InputError, match="selection: must be a mapping with the entries ids, gaps"):
            TopK.from_dict(odd)  # type: ignore[arg-type]
    del data["secure"]
    with pytest.raises(InputError, match="'secure' is missing"):
        TopK.from_dict(data)


def test_a_seed_repeats_and_the_system_does_not() -> None:
    scores = list(range(50))
    first, second = (noisy_top_k(scores, 20, 1, randomness=InsecureRandomness(8)) for _ in range(2))
    assert first == second
    assert noisy_top_k(scores, 20, 1) != noisy_top_k(scores, 20, 1)


class Unreadable(Randomness):
    """A source that must not be read."""

    def read(self, count: int) -> bytes:
        raise AssertionError("a random bit was drawn")


BAD = [
    ({"k": 0}, "k: must be at least 1, not 0"),
    ({"k": 3}, r"k: must be less than the 3 scores \(each item's gap is to a next one\), not 3"),
    ({"k": 4}, "k: must be less than the 3 scores"),
    ({"epsilon": 0}, "epsilon: must be positive, not 0"),
    ({"epsilon": "x"}, "epsilon: must be a number"),
    ({"resolution": "3/10"}, "resolution: must be 1 over an integer, not 3/10"),
    ({"sensitivity": "1/3"}, "sensitivity: must be an integer multiple of the resolution 1/10, not 1/3"),
    ({"monotonic": "yes"}, "monotonic: must be True or False, not 'yes'"),
    ({"round_down": "false"}, "round_down: must be True or False, not 'false'"),
    ({"round_down": 2}, "round_down: must be True or False, not 2"),
    ({"round_down": None}, "round_down: must be True or False, not None"),
    ({"ties": "coin"}, "ties: must be one of permutation, refinement, not 'coin'"),
    ({"ties": None}, "ties: must be one of permutation, refinement, not None"),
    ({"scores": []}, "scores: must hold at least one score"),
    ({"scores": [1, 2, float("nan")], "round_down": True}, r"scores\[2\]: must be finite, not nan"),
    ({"scores": [1.0, 2.5, 3.0]}, "pass round_down=True to round floats down"),
    ({"scores": [[1, 2], [3, 4]]}, "scores: must be one-dimensional"),
    ({"scores": [True, False, True]}, r"scores\[0\]: must be a number"),
]


WIDE = [
    ({"epsilon": "1e-300"}, "epsilon: must be at least 2e-299 with k = 1, resolution 0.1, sensitivity 1: noise"),
    ({"epsilon": "1e-4000"}, "epsilon: must be at least 2e-299 with"),
    ({"resolution": "1e-400"}, "resolution: must be at least 2e-300 with k = 1, epsilon 1, sensitivity 1"),
    ({"sensitivity": "1e400"}, "sensitivity: must be at most 5e298 with"),
    ({"sensitivity": "1e200", "epsilon": "1e-150"}, "sensitivity: must be at most 5e148 with"),
    ({"monotonic": True, "epsilon": "1e-300"}, "epsilon: must be at least 1e-299 with"),
]


@pytest.mark.parametrize(("given", "message"), WIDE)
def test_noise_that_is_too_wide_names_what_is_far_out(given: dict[str, Any], message: str) -> None:
    """And what it allows is allowed."""
    for draw in (noisy_top_k, noisy_top_k_ids):
        with pytest.raises(InputError, match=f"^{message}"):
            draw([5, 6], 1, **{"epsilon": 1, "randomness": Unreadable(), **given})
    name, allowed = message.split(":")[0], message.split()[5]
    if name == "epsilon":
        top_k._require_narrow(SelectionDesign(1, **{**given, name: allowed}))


@pytest.mark.parametrize(("changed", "message"), BAD)
def test_bad_input_is_refused_before_anything_is_drawn(changed: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"scores": [1, 2, 3], "k": 1, "epsilon": 1, "randomness": Unreadable(), **changed}
    with pytest.raises(InputError, match=message):
        noisy_top_k(**arguments)
    if "k" not in changed:
        with pytest.raises(InputError, match=message):
            noisy_top_k_ids(**arguments)
        del arguments["k"]
        with pytest.raises(InputError, match=message):
            noisy_max(**arguments)


def test_more_items_than_scores_are_refused_without_gaps_as_well() -> None:
    with pytest.raises(InputError, match="k: must be at most the 3 scores, not 4"):
        noisy_top_k_ids([1, 2, 3], 4, 1, randomness=Unreadable())


@pytest.mark.parametrize("bare", [1, np.random.default_rng(1), np.random])
def test_a_bare_generator_is_refused(bare: Any) -> None:
    with pytest.raises(InputError, match="randomness: must be a Randomness or None"):
        noisy_top_k([1, 2], 1, 1, randomness=bare)


def test_one_source_for_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise, remainders and permutation from the source that was given; nothing from elsewhere, global state least."""

    def forbidden(*arguments: Any) -> Any:
        raise AssertionError("another source was read")

    state = np.random.get_state()[1].tolist()  # type: ignore[index, union-attr]
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", forbidden)
        patch.setattr(random, "getrandbits", forbidden)
        found = [noisy_top_k([1, 1, 1, 0], 3, 1, randomness=InsecureRandomness(seed)) for seed in range(20)]
    assert len({(top.ids, top.gaps) for top in found}) > 10
    assert np.random.get_state()[1].tolist() == state  # type: ignore[index, union-attr]


def test_rounding_down_comes_before_the_noise() -> None:
    """Scores that agree after rounding have the same draws."""
    exactly = noisy_top_k(["0.3", "0.1", "0.2"], 2, 1, randomness=InsecureRandomness(2))
    assert noisy_top_k(["0.39", "0.1999", "0.25"], 2, 1, randomness=InsecureRandomness(2)) == exactly
    floats = noisy_top_k([0.35, 0.15, 0.25], 2, 1, round_down=True, randomness=InsecureRandomness(2))
    assert floats == exactly
