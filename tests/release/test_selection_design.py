"""The variance of gaps, and the chance of the true top k, against enumeration, simulation and the exact law."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from dpopt.arithmetic import Enclosure
from dpopt.errors import InputError
from dpopt.release import selection_chance
from dpopt.release.selection_design import Chosen, SelectionDesign, least_selection_epsilon
from dpopt.release.selection_law import SelectionLaw
from dpopt.text import decimal_text

RATES = ["1/40", "1/3", "1", "7/2"]


def design_of(rate: Fraction | str, k: int = 1, resolution: str = "1") -> SelectionDesign:
    """The design whose noise has this rate, in one unit."""
    return SelectionDesign(k, 2 * k * Fraction(rate) / Fraction(resolution), resolution=resolution)  # type: ignore[arg-type]


# --- parameters -------------------------------------------------------------------------------------------------------


def test_the_rate_is_the_papers() -> None:
    """x = epsilon g / (2 k s), twice that for monotonic scores."""
    design = SelectionDesign(3, "0.6", resolution="1/5", sensitivity=2)  # type: ignore[arg-type]
    assert design.rate == Fraction(6, 10) * Fraction(1, 5) / (2 * 3 * 2) == 1 / (5 * design.scale)
    assert SelectionDesign(3, "0.6", resolution="1/5", sensitivity=2, monotonic=True).rate == 2 * design.rate  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(design)) == design


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "k: must be at least 1, not 0"),
        ({"k": "1.5"}, "k: must be an integer"),
        ({"epsilon": 0}, "epsilon: must be positive, not 0"),
        ({"epsilon": -1}, "epsilon: must be positive"),
        ({"epsilon": float("nan")}, "epsilon: must be finite"),
        ({"resolution": "3/10"}, "resolution: must be 1 over an integer, not 3/10"),
        ({"resolution": 2}, "resolution: must be 1 over an integer, not 2"),
        ({"resolution": 0}, "resolution: must be positive"),
        ({"sensitivity": "1/4"}, "sensitivity: must be an integer multiple of the resolution 1/10, not 1/4"),
        ({"sensitivity": 0}, "sensitivity: must be positive"),
        ({"monotonic": 1}, "monotonic: must be True or False, not 1"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SelectionDesign(**{"k": 1, "epsilon": 1, **changed})


# --- gaps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_the_moments_of_a_gap_by_summation(rate: str) -> None:
    """G - G' - [r < r'] of two far-apart scores, point by point: P(G - G' = d) = (1 - r) r^|d| / (1 + r)."""
    r = math.exp(-float(Fraction(rate)))
    reach = math.ceil(45 / float(Fraction(rate)))
    law = {d: (1 - r) / (1 + r) * r ** abs(d) for d in range(-reach, reach + 1)}
    gap = {g: (law.get(g, 0) + law.get(g + 1, 0)) / 2 for g in range(-reach - 1, reach + 1)}
    mean = math.fsum(p * g for g, p in gap.items())
    variance = math.fsum(p * g * g for g, p in gap.items()) - mean**2
    for resolution in ("1", "1/10"):
        unit, design = float(Fraction(resolution)), design_of(rate, resolution=resolution)
        assert float(design.gap_bias) == pytest.approx(mean * unit, rel=1e-12)
        assert float(design.gap_variance) == pytest.approx(variance * unit**2, rel=1e-12)


@pytest.mark.parametrize("rate", ["1", "7/2"])
def test_the_covariance_of_neighbouring_gaps_by_enumeration(rate: str) -> None:
    """Three cells and six orders of remainders."""
    x = float(Fraction(rate))
    reach = math.ceil(32 / x)
    orders = list(permutations(range(3)))
    first = second = both = 0.0
    for cells in product(range(reach), repeat=3):
        weight = math.prod(math.exp(-x * c) * -math.expm1(-x) for c in cells) / 6
        for order in orders:
            a = cells[0] - cells[1] - (order[0] < order[1])
            b = cells[1] - cells[2] - (order[1] < order[2])
            first, second, both = first + weight * a, second + weight * b, both + weight * a * b
    assert float(design_of(rate).gap_covariance) == pytest.approx(both - first * second, rel=1e-9)


def test_the_variance_of_a_gap_from_the_exact_law() -> None:
    """Scores 30 units apart at x = 1: the order is certain to 1e-13."""
    law, design = SelectionLaw((30, 0), 1, Fraction(1)), design_of("1")
    chances = {gap: float(law.probability([0], [gap])) for gap in range(70)}
    mean = math.fsum(gap * p for gap, p in chances.items())
    assert mean - 30 == pytest.approx(-0.5, abs=1e-9)
    variance = math.fsum((gap - mean) ** 2 * p for gap, p in chances.items())
    assert variance == pytest.approx(float(design.gap_variance), rel=1e-9)


# --- chances ----------------------------------------------------------------------------------------------------------


def right_sets(values: list[int], k: int) -> float:
    """The chance of a top k, as a sum of the exact law's selections whose scores are the k largest."""
    law = SelectionLaw(tuple(values), k, Fraction(1, 2))
    best = sorted(values, reverse=True)[:k]
    chosen = permutations(range(len(values)), k)
    return sum(float(law.chance_of(ids)) for ids in chosen if sorted((values[i] for i in ids), reverse=True) == best)


def right_orders(values: list[int], k: int) -> float:
    law = SelectionLaw(tuple(values), k, Fraction(1, 2))
    best = sorted(values, reverse=True)[:k]
    chosen = permutations(range(len(values)), k)
    return sum(float(law.chance_of(ids)) for ids in chosen if [values[i] for i in ids] == best)


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=5), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_against_the_exact_law(values: list[int], k: int) -> None:
    """Two ways to integrate: one polynomial a winner, or one between any two scores. Ties are frequent here."""
    k = min(k, len(values) - 1)
    design = design_of("1/2", k)
    for chosen, by_law in ((Chosen.SET, right_sets), (Chosen.ORDER, right_orders)):
        found = design.chance(values, chosen)
        assert float(found) == pytest.approx(by_law(values, k), abs=1e-13)
        assert found.width < Fraction(1, 1 << 55)


@pytest.mark.parametrize("monotonic", [False, True])
def test_against_simulation(monotonic: bool) -> None:
    rng = np.random.default_rng(5)
    scores = np.array([60, 52, 52, 40, 33, 30, 25, 11, 4, 0])
    design = SelectionDesign(4, "1.5", monotonic=monotonic)  # type: ignore[arg-type]
    noisy = scores + rng.exponential(float(design.scale), (200_000, 10))
    picked = scores[np.argsort(-noisy, axis=1)[:, :4]]
    as_set = np.mean(np.all(np.sort(picked, axis=1)[:, ::-1] == scores[:4], axis=1))
    in_order = np.mean(np.all(picked == scores[:4], axis=1))
    for chosen, seen in (("set", as_set), ("order", in_order)):
        chance = float(design.chance(scores, chosen))
        assert 0.05 < chance < 0.99
        assert abs(seen - chance) < 4.5 * math.sqrt(chance * (1 - chance) / 200_000)


def test_equal_scores_by_counting() -> None:
    """Any choice among ties is right; with distinct scores and no information left, one in C(n, k) or n!/(n-k)!."""
    spread = SelectionDesign(2, Fraction(1, 10**12))
    assert float(spread.chance([5, 4, 3, 2, 1])) == pytest.approx(1 / math.comb(5, 2), rel=1e-9)
    assert float(spread.chance([5, 4, 3, 2, 1], "order")) == pytest.approx(1 / 20, rel=1e-9)


def test_all_items_and_one_item() -> None:
    assert float(SelectionDesign(3, 1).chance([3, 2, 1])) == 1
    assert float(SelectionDesign(1, 1).chance([3])) == 1
    order = float(SelectionDesign(2, 4).chance([3, 1], "order"))  # two items: 1 - e^(-x d) / 2
    assert order == pytest.approx(1 - math.exp(-2) / 2, rel=1e-13)


def test_items_far_below_change_nothing_that_is_not_counted() -> None:
    """A thousand items 10^4 below leave the enclosure proved, and as narrow."""
    near = SelectionDesign(2, 1).chance([40, 30, 10, 0])
    both = SelectionDesign(2, 1).chance([40, 30, 10, 0] + [-10_000] * 1000)
    assert abs(float(near) - float(both)) < 1e-15
    assert both.lower <= near.upper
    assert both.width < Fraction(1, 1 << 55)


def test_a_thousand_scores() -> None:
    """One winner ahead of n - 1 equal scores: the integral of (1 - a u)^(n - 1) is (1 - (1 - a)^n) / (n a)."""
    n, a = 1000, math.exp(-150 / 20)
    wanted = -math.expm1(n * math.log1p(-a)) / (n * a)
    found = design_of("1/20").chance([150] + [0] * (n - 1))
    assert float(found) == pytest.approx(wanted, rel=1e-12)


def test_a_million_scores() -> None:
    """Far below and many: 1 - (1 - a)^n over n a again, in a fraction of the time that a million factors take."""
    n, distance = 1_000_000, 300
    for rate in ("1/20", "1/25"):  # 0.3 and 6 expected above the winner's score
        a = math.exp(-distance * float(Fraction(rate)))
        found = design_of(rate).chance(np.append(np.zeros(n - 1, dtype=int), distance))
        assert float(found) == pytest.approx(-math.expm1(n * math.log1p(-a)) / (n * a), rel=1e-9)
        assert found.width < Fraction(1, 1 << 55)


def test_scores_that_tie_with_the_last_winner_are_no_competitors() -> None:
    """Any of them is as right: the chance is that one item far ahead stays in front of all but one of them."""
    for ties in (100, 199, 200, 201, 202, 1000, 100_000):
        found = SelectionDesign(2, 1).chance([100] + [0] * ties)
        any_ahead = math.exp(-25) * ties  # at least the chance that one of them is ahead of the first item
        assert 1 - any_ahead < found.lower <= found.upper <= 1, ties
        assert found.width < Fraction(1, 1 << 55)
    assert float(SelectionDesign(2, 10).chance([9] + [5] * 1000 + [0] * 5)) == pytest.approx(0.99966446942, abs=1e-10)
    assert SelectionDesign(2, 10).chance([9, 5, 5], "set").upper > 0.999


def by_quadrature(rate: float, above: list[int], tied: int, below: list[tuple[int, int]]) -> float:
    """The chance of a set by integration by parts, in floats: over the level of the largest of those not selected.

    One of `tied` items of score 0 is selected, beside those above.
    """
    rest = [(0, tied - 1), *below]

    def integrand(u: float) -> float:
        none_higher = math.exp(math.fsum(many * math.log1p(-u * math.exp(rate * value)) for value, many in rest))
        density = math.fsum(many / (math.exp(-rate * value) - u) for value, many in rest)
        return none_higher * density * u * math.prod(min(1.0, u * math.exp(rate * value)) for value in above)

    kinks = [math.exp(-rate * value) for value in above]
    ends = sorted({0.0, *(10.0**-power for power in range(7)), *kinks})
    pairs = zip(ends, ends[1:], strict=False)
    return tied * math.fsum(quad(integrand, low, high, epsabs=1e-18, epsrel=1e-11)[0] for low, high in pairs)


@pytest.mark.parametrize(
    ("above", "tied", "below"),
    [
        ([40], 1000, []),
        ([90], 1000, [(-3, 500), (-9, 4000)]),
        ([30, 30, 75], 300, [(-1, 20_000)]),
        ([5], 2, [(-1, 999)]),
        ([2, 1], 50_000, [(-40, 10**6)]),
    ],
)
def test_many_close_scores_by_quadrature(above: list[int], tied: int, below: list[tuple[int, int]]) -> None:
    scores = np.concatenate([above, np.zeros(tied, dtype=int), *(np.full(many, value) for value, many in below)])
    found = design_of("1/20", len(above) + 1).chance(scores)
    assert float(found) == pytest.approx(by_quadrature(0.05, above, tied, below), rel=1e-8)
    assert 0 < found.lower <= found.upper < found.lower * (1 + Fraction(1, 1 << 55))


@pytest.mark.parametrize("n", [150, 1000, 1_000_000])
@pytest.mark.parametrize("distance", [1, 20])
def test_one_winner_among_many_close_scores_in_closed_form(n: int, distance: int) -> None:
    """(1 - (1 - a)^n) / (n a): sparse counts, where everything but one is 0."""
    a = math.exp(-distance / 20)
    wanted = -math.expm1(n * math.log1p(-a)) / (n * a)
    for chosen in ("set", "order"):
        found = design_of("1/20").chance(np.append(np.zeros(n - 1, dtype=int), distance), chosen)
        assert float(found) == pytest.approx(wanted, rel=1e-12)
        assert found.upper < found.lower * (1 + Fraction(1, 1 << 55))


@pytest.mark.parametrize("chosen", ["set", "order"])
@pytest.mark.parametrize(
    "scores", [[9, 7, 7, 2, 1, 1] + [0] * 600, [40, 30, 1, 0, 0] + [0] * 500 + [-3] * 300, [1] * 6 + [0] * 400]
)
def test_what_is_cut_off_is_bounded(scores: list[int], chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same integral over all of its range, with the bits that this takes, lies in the enclosure."""
    design = design_of("1/20", 5)
    found = design.chance(scores, chosen)
    whole = selection_chance._Range(Fraction(1), 3 * len(scores) + 200)
    monkeypatch.setattr(selection_chance._Range, "of", lambda field, rate, lost: whole)
    again = design.chance(scores, chosen)
    assert max(found.lower, again.lower) <= min(found.upper, again.upper)
    assert again.upper < again.lower * (1 + Fraction(1, 1 << 55))


def test_scores_of_any_size() -> None:
    """Nothing overflows, and what is out of reach changes nothing."""
    for far in (10**15, 10**40, 10**3000):
        for chosen in ("set", "order"):
            alone = SelectionDesign(1, 1).chance([1, 0], chosen)
            assert SelectionDesign(1, 1).chance([1, 0, -far], chosen).upper >= alone.lower
            assert float(SelectionDesign(1, 1).chance([far, 0, 0], chosen)) == 1
            ahead = SelectionDesign(2, 1).chance([far, 1, 0], chosen)
            assert float(ahead) == pytest.approx(float(SelectionDesign(1, "0.5").chance([1, 0])), rel=1e-14)


@pytest.mark.slow
def test_many_winners_among_many_more() -> None:
    """100 of a million and 100 that hardly differ: one in C(n, k), times at most e^(k x) for scores one unit higher."""
    scores = np.append(np.zeros(1_000_000, dtype=int), [1] * 100)
    least = Fraction(1, math.comb(1_000_100, 100))
    for chosen in ("set", "order"):
        found = design_of("1/1000", 100).chance(scores, chosen)
        assert least < found.lower <= found.upper < least * Fraction("1.1052")  # e^0.1 = 1.10517


def test_a_certain_selection_has_the_chance_1() -> None:
    sure = Enclosure(Fraction(1), Fraction(1))
    for scores in ([1] * 1000, [4, 4]):
        assert SelectionDesign(2, 1).chance(scores) == sure
        assert SelectionDesign(2, 1).chance(scores, "order") == sure
    assert SelectionDesign(3, 1).chance([7, 1, 3]) == sure
    assert SelectionDesign(1, 1).chance([7], "order") == sure
    assert SelectionDesign(2, 1).chance([7, 1], "order").upper < 1
    assert least_selection_epsilon([1] * 1000, 2, "0.9").lower == 0


def test_the_scores_are_rounded_down_first() -> None:
    design = SelectionDesign(1, 1)
    assert design.chance(["1.09", "1.0"]) == design.chance([1, 1])
    assert design.chance([1.09, 1.0], round_down=True) == design.chance([1, 1])
    with pytest.raises(InputError, match="round_down=True"):
        design.chance([1.09, 1.0])


def test_what_a_chance_refuses() -> None:
    design = SelectionDesign(3, 1)
    with pytest.raises(InputError, match="scores: must be at least k = 3, not 2"):
        design.chance([1, 2])
    with pytest.raises(InputError, match="chosen: must be one of set, order, not 'all'"):
        design.chance([1, 2, 3], "all")


@given(st.lists(st.integers(0, 30), min_size=3, max_size=6), st.sampled_from(["set", "order"]))
@settings(max_examples=15, deadline=None)
def test_the_least_epsilon_reaches_it_and_less_does_not(scores: list[int], chosen: str) -> None:
    found = least_selection_epsilon(scores, 2, "0.9", chosen=chosen)
    assert SelectionDesign(2, found.upper).chance(scores, chosen).lower >= Fraction(9, 10)
    if found.lower == 0:
        assert SelectionDesign(2, Fraction(1, 10**15)).chance(scores, chosen).lower >= Fraction(9, 10)
    else:
        assert SelectionDesign(2, found.lower).chance(scores, chosen).lower < Fraction(9, 10)
        assert found.upper / found.lower < 1 + Fraction(1, 10**9)


def test_the_least_epsilon_in_closed_form() -> None:
    """Two items d apart: 1 - e^(-epsilon d / 2) / 2 = 0.99 at epsilon = 2 ln(50) / d."""
    found = least_selection_epsilon([13, 3], 1, "0.99")
    assert float(found) == pytest.approx(2 * math.log(50) / 10, rel=1e-9)
    counts = least_selection_epsilon([13, 3], 1, "0.99", monotonic=True)
    assert float(counts) == pytest.approx(math.log(50) / 10, rel=1e-9)


def test_the_least_epsilon_for_sparse_counts() -> None:
    """What ties with the second item is no competitor, and a small chance among a thousand close scores is decided."""
    sparse = [100] + [0] * 1000
    found = least_selection_epsilon(sparse, 2, "0.99")
    assert SelectionDesign(2, found.upper).chance(sparse).lower >= Fraction(99, 100)
    assert SelectionDesign(2, found.lower).chance(sparse).upper < Fraction(99, 100)
    assert least_selection_epsilon([1] + [0] * 998, 1, "1e-3").lower == 0  # one in 999 without any information
    close = least_selection_epsilon([1] + [0] * 998, 1, "1e-2")
    a = math.exp(-float(close.upper) / 2)
    assert -math.expm1(999 * math.log1p(-a)) / (999 * a) == pytest.approx(0.01, rel=1e-8)


def test_the_upper_end_rounded_up_reaches_the_chance() -> None:
    sales = [8120, 40, 7350, 3, 5990, 2210, 2190, 610, 5, 300]
    upper = least_selection_epsilon(sales, 3, "0.99", monotonic=True).upper
    for digits in (3, 6, 12):
        short = Fraction(decimal_text(upper, digits, up=True))
        assert SelectionDesign(3, short, monotonic=True).chance(sales).lower >= Fraction(99, 100)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"units": 10}, "design: must have the entries k, epsilon, .*'units' is unknown"),
        ({"k": 0}, "k: must be at least 1"),
        ({"resolution": "2/3"}, "resolution: must be 1 over an integer"),
        ({"monotonic": 0}, "monotonic: must be True or False, not 0"),
    ],
)
def test_a_design_is_kept_and_read_again(changed: dict[str, Any], message: str) -> None:
    design = SelectionDesign(3, "0.3", resolution="1/7", sensitivity=2, monotonic=np.True_)  # type: ignore[arg-type]
    assert design.monotonic is True
    data = json.loads(json.dumps(design.to_dict()))
    assert SelectionDesign.from_dict(data) == design
    with pytest.raises(InputError, match=message):
        SelectionDesign.from_dict({**data, **changed})
    with pytest.raises(InputError, match="'k' is missing"):
        SelectionDesign.from_dict({name: entry for name, entry in data.items() if name != "k"})
    with pytest.raises(InputError, match="design: must be a mapping"):
        SelectionDesign.from_dict(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("chance", [0, 1, "1.5", -1])
def test_a_chance_lies_between_0_and_1(chance: Any) -> None:
    with pytest.raises(InputError, match="chance: must lie strictly between 0 and 1"):
        least_selection_epsilon([2, 1], 1, chance)
