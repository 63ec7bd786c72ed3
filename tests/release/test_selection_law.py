"""The exact law of noisy top-k with gap: printed values, sums that must be 1, a second enumeration, and audits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.arithmetic import Enclosure
from dpopt.errors import InputError
from dpopt.pmf import Pmf, Tails
from dpopt.release.law_audit import audit_laws
from dpopt.release.selection_law import Outcome, SelectionLaw, _chance_of_carries, selection_law

# values.json, group selection: scores (1, 0, 0), k = 1, epsilon = 1, resolution 1/2
LAW_K1 = [
    (0, "0.0927197171784", "0.0535196127673"),
    (1, "0.0900427701661", "0.0416811163328"),
    (2, "0.0737330723095", "0.0324612860393"),
]
MARGINAL = "0.516095820677845"
TWO_ITEMS = ["0.1105996084643", "0.086135061679386", "0.067082053485809", "0.052243555784786"]
CONVERGENCE = [(2, "6.8e-2", "1.4e-2"), (4, "1.7e-2", "3.4e-3"), (6, "4.3e-3", "8.6e-4")]  # depth, unresolved, largest


def digits(text: str) -> int:
    """How many decimals a printed value has."""
    return len(text.partition(".")[2])


@pytest.mark.parametrize(("gap", "first", "others"), LAW_K1)
def test_printed_law(gap: int, first: str, others: str) -> None:
    law = selection_law([1, 0, 0], 1, 1, resolution="1/2")
    for item, printed in enumerate((first, others, others)):
        assert f"{float(law.probability([item], [gap])):.13f}" == printed
    assert law.probability([1], [gap]) == law.probability([2], [gap])


def test_printed_marginal() -> None:
    """The printed value carries 12 sound digits; the exact one is E (1 - e^(-x s))^2 with s = 2 + E, x = 1/4."""
    found = selection_law([1, 0, 0], 1, 1, resolution="1/2").chance_of([0])
    assert abs(float(found) - float(MARGINAL)) < 3e-15
    assert float(found) == pytest.approx(1 - math.exp(-1 / 2) + math.exp(-1) / 3, rel=1e-15)
    assert found.width < Fraction(1, 1 << 55)


@pytest.mark.parametrize(("gap", "printed"), list(enumerate(TWO_ITEMS)))
def test_two_equal_items_in_closed_form(gap: int, printed: str) -> None:
    """(r^g - r^(g + 1)) / 2 with r = e^-x, for any x."""
    found = SelectionLaw((0, 0), 1, Fraction(1, 4)).probability([1], [gap])
    assert f"{float(found):.{digits(printed)}f}" == printed
    for x in (Fraction(1, 100), Fraction(3), Fraction(60)):
        here = float(SelectionLaw((5, 5), 1, x).probability([0], [gap]))
        assert here == pytest.approx(math.exp(-float(x) * gap) * -math.expm1(-float(x)) / 2, rel=1e-14)


def by_all_cells(values: tuple[int, ...], k: int, x: float, reach: int, below: int) -> Counter[Outcome]:
    """A second method: every combination of cells, and every order of all remainders."""
    found: Counter[Outcome] = Counter()
    mass = [math.exp(-x * j) * -math.expm1(-x) for j in range(reach)]
    orders = list(permutations(range(len(values))))
    for noise in product(range(reach), repeat=len(values)):
        cells = [value + j for value, j in zip(values, noise, strict=True)]
        weight = math.prod(mass[j] for j in noise) / len(orders)
        for remainders in orders:
            ranked = sorted(range(len(values)), key=lambda i: (cells[i], remainders[i]), reverse=True)
            gaps = tuple(
                cells[a] - cells[b] - (remainders[a] < remainders[b])
                for a, b in zip(ranked[:k], ranked[1:], strict=False)
            )
            if max(gaps) < below:
                found[Outcome(tuple(ranked[:k]), gaps)] += weight  # type: ignore[assignment]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "k", "x"),
    [((0, 0, 0), 1, 1), ((2, 0, 1), 2, 2), ((3, 0, 0), 2, 1), ((1, 0), 1, 1), ((0, 1, 1, 0), 2, 4)],
)
def test_against_the_enumeration_of_all_cells(values: tuple[int, ...], k: int, x: int) -> None:
    reach = {1: 26, 2: 16, 4: 8}[x]
    law = SelectionLaw(values, k, Fraction(x))
    found = by_all_cells(values, k, x, reach, 3)
    for outcome, chance in law.table(3).items():
        assert float(chance) == pytest.approx(found[outcome], abs=3 * len(values) * math.exp(-x * (reach - 3)))


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=4), st.integers(1, 3), st.sampled_from(["1/3", "1", "5/2"]))
@settings(max_examples=25, deadline=None)
def test_the_selections_make_up_all(values: list[int], k: int, x: str) -> None:
    law = SelectionLaw(tuple(values), min(k, len(values) - 1), Fraction(x))
    chances = [law.chance_of(ids) for ids in permutations(range(len(values)), law.k)]
    assert sum(c.lower for c in chances) <= 1 <= sum(c.upper for c in chances)
    assert sum(c.width for c in chances) < Fraction(1, 1 << 50)


@given(st.lists(st.integers(-2, 2), min_size=2, max_size=4), st.data())
@settings(max_examples=15, deadline=None)
def test_the_gaps_make_up_a_selection(values: list[int], data: st.DataObject) -> None:
    law = SelectionLaw(tuple(values), data.draw(st.integers(1, min(2, len(values) - 1))), Fraction(3))
    ids = data.draw(st.permutations(range(len(values))))[: law.k]
    reach = 13 if law.k == 1 else 11
    some = sum(float(law.probability(ids, gaps)) for gaps in product(range(reach), repeat=law.k))
    assert float(law.chance_of(ids)) == pytest.approx(some, abs=1e-9)


@pytest.mark.parametrize("tied", range(3))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_carries_are_counted_right(k: int, tied: int) -> None:
    """Every order of k + 1 remainders and of those of tied items, one by one."""
    seen: Counter[tuple[int, ...]] = Counter()
    for order in permutations(range(k + 1 + tied)):
        if all(order[k] > lower for lower in order[k + 1 :]):
            seen[tuple(int(order[i] < order[i + 1]) for i in range(k))] += 1
    for carries in product((0, 1), repeat=k):
        assert _chance_of_carries(carries, tied) == Fraction(seen[carries], math.factorial(k + 1 + tied))


@pytest.mark.slow
def test_the_loop_converges_to_the_law() -> None:
    """Algorithm 4 cut at a depth, enumerated: n = 3, k = 1, M = 2."""
    table = selection_law([1, 0, 0], 1, 1, resolution="1/2").table(20)
    printed = {depth: (unresolved, largest) for depth, unresolved, largest in CONVERGENCE}
    seen = {}
    for depth, (found, left) in enumerate(cut_loop((2, 0, 0), 0.25, max(printed))):
        if depth in printed:
            worst = max(abs(float(chance) - found[outcome]) for outcome, chance in table.items())
            seen[depth] = tuple(f"{number:.1e}".replace("e-0", "e-") for number in (left, worst))
    assert seen == printed


def cut_loop(values: tuple[int, ...], x: float, deepest: int) -> Iterator[tuple[Counter[Outcome], float]]:
    """The law of the loop without what is still tied after 0, 1, ... refinements, and the mass of that."""
    states: Counter[tuple[int, ...]] = Counter()
    for noise in product(range(45), repeat=3):
        states[_apart(value + j for value, j in zip(values, noise, strict=True))] += math.exp(-x * sum(noise))  # type: ignore[assignment]
    scale = math.fsum(states.values())
    found: Counter[Outcome] = Counter()
    for level in range(deepest + 1):
        tied = {cells: weight for cells, weight in states.items() if len(set(cells)) < 3}
        for cells, weight in states.items():
            if cells in tied:
                continue
            first, second, _ = sorted(range(3), key=cells.__getitem__, reverse=True)
            for smaller in (0, 1):
                gap = (cells[first] - cells[second] - smaller) // 2**level
                found[Outcome((first,), (gap,))] += weight / scale / 2  # type: ignore[assignment]
        yield found, math.fsum(tied.values()) / scale
        chances = [math.exp(-x / 2 ** (level + 1) * j) for j in range(2)]
        states = Counter()
        for cells, weight in tied.items():
            for steps in product(range(2), repeat=3):
                part = weight * math.prod(chances[j] for j in steps) / sum(chances) ** 3
                states[_apart(2 * c + j for c, j in zip(cells, steps, strict=True))] += part  # type: ignore[assignment]


def _apart(cells: Iterable[int]) -> tuple[int, ...]:
    """Differences decide."""
    found = tuple(cells)
    return tuple(c - min(found) for c in found)


BOTH_WAYS = [([1, 0], [0, 1]), ([1, 0, 0], [0, 1, 1]), ([1, 1, 0], [0, 0, 1])]
ONE_WAY = [([1, 1], [0, 1]), ([1, 0, 0], [0, 0, 0]), ([1, 1, 0], [0, 0, 0])]


@pytest.mark.parametrize(("here", "there"), BOTH_WAYS)
def test_the_loss_is_epsilon_when_scores_move_both_ways(here: list[int], there: list[int]) -> None:
    """values.json: 1.0000000000, tight."""
    laws = [selection_law(scores, 1, 1, resolution="1/2").table(9) for scores in (here, there)]
    audit = audit_laws(*laws, 1)
    assert not audit.rejected
    assert 1 - Fraction(1, 10**12) < audit.loss.lower <= 1 <= audit.loss.upper < 1 + Fraction(1, 10**12)


@pytest.mark.parametrize(("here", "there"), ONE_WAY)
def test_the_loss_is_half_of_it_when_all_move_the_same_way(here: list[int], there: list[int]) -> None:
    """values.json: 0.5000000000; so that monotonic scores may have half the noise."""
    laws = [selection_law(scores, 1, 1, resolution="1/2").table(9) for scores in (here, there)]
    assert float(audit_laws(*laws, 1).loss) == pytest.approx(0.5, abs=1e-12)
    half = [selection_law(scores, 1, 1, resolution="1/2", monotonic=True).table(9) for scores in (here, there)]
    assert float(audit_laws(*half, 1).loss) == pytest.approx(1, abs=1e-12)


def test_half_the_noise_is_rejected_for_other_scores() -> None:
    laws = [selection_law(scores, 1, 1, resolution=1, monotonic=True).table(4) for scores in ([1, 0], [0, 1])]
    audit = audit_laws(*laws, 1)
    assert audit.rejected
    assert float(audit.loss) == pytest.approx(2, abs=1e-12)


def with_ties(values: tuple[int, ...], x: float) -> dict[tuple[int, int, bool], float]:
    """The law of (item, gap, whether any two of three cells tie, so that the loop runs)."""
    found: Counter[tuple[int, int, bool]] = Counter()
    orders = list(permutations(range(3)))
    for noise in product(range(24), repeat=3):
        cells = [value + j for value, j in zip(values, noise, strict=True)]
        for order in orders:
            first, second, _ = sorted(range(3), key=lambda i, c=cells, o=order: (-c[i], -o[i]))
            gap = cells[first] - cells[second] - (order[first] < order[second])
            if gap < 6:
                found[first, gap, len(set(cells)) < 3] += math.exp(-x * sum(noise))  # type: ignore[assignment]
    return dict(found)


def test_whether_the_loop_runs_is_not_covered_by_epsilon() -> None:
    """At x = 1/2 and one unit (epsilon = 1), items and gaps lose at most 1, and with the loops 2: it is never shown."""
    here, there = (with_ties(values, 0.5) for values in ((5, 1, 0), (4, 2, 1)))

    def loss(a: dict[Any, float], b: dict[Any, float]) -> float:
        return max(abs(math.log(a[key] / b[key])) for key in a.keys() & b.keys())

    assert loss(here, there) == pytest.approx(2, abs=0.01)
    released = []
    for law in (here, there):
        shown: Counter[tuple[int, int]] = Counter()
        for (item, gap, _), weight in law.items():
            shown[item, gap] += weight  # type: ignore[assignment]
        released.append(dict(shown))
    assert loss(*released) < 1.001


def test_two_selected_items_cost_epsilon_as_well() -> None:
    laws = [selection_law(scores, 2, 1, resolution=1).table(4) for scores in ([1, 1, 0], [0, 0, 1])]
    audit = audit_laws(*laws, 1)
    assert not audit.rejected
    assert float(audit.loss) == pytest.approx(1, abs=1e-12)


# --- mechanisms that are known to be wrong ----------------------------------------------------------------------------

RATIO = Fraction(3, 5)  # of two-sided geometric noise: a loss of ln(5/3) = 0.5108 for each unit


def two_sided(ratio: Fraction) -> Pmf:
    return Pmf(0, (1,), tails=Tails(1, left=ratio, right=ratio))


def noisy_max_with_value(scores: list[int]) -> dict[tuple[int, int], Fraction]:
    """The law of (item, noisy value) of a strict maximum under two-sided geometric noise."""
    noise = two_sided(RATIO)
    total = noise.total
    below = {z: sum((noise.weight(j) for j in range(-40, z)), Fraction(0)) for z in range(-9, 10)}
    rest = noise.weight(-41) / (1 - RATIO)  # beyond -40
    law = {}
    for item, score in enumerate(scores):
        for value in range(-6, 7):
            others = [(below[value - other] + rest) / total for i, other in enumerate(scores) if i != item]
            law[item, value] = noise.probability(value - score) * math.prod(others)
    return law


def test_a_noisy_maximum_released_with_its_value_is_rejected() -> None:
    """Its items alone cost 2 ln(5/3) = 1.0217; with the value every other item adds to the loss."""
    claim = "1.03"
    items = [
        {item: sum(p for (i, _), p in law.items() if i == item) for item in range(4)}
        for law in map(noisy_max_with_value, ([1, 0, 0, 0], [0, 1, 1, 1]))
    ]
    assert not audit_laws(*items, claim).rejected
    audit = audit_laws(noisy_max_with_value([1, 0, 0, 0]), noisy_max_with_value([0, 1, 1, 1]), claim)
    assert audit.rejected
    assert float(audit.loss) > 1.9
    assert str(audit).startswith("epsilon = 103/100 rejected: largest loss ")


def test_a_maximum_with_one_sided_noise_and_its_value_is_rejected_at_every_epsilon() -> None:
    """The least possible value tells the score."""
    law = {score: {j + score: Fraction(1, 2) ** (j + 1) for j in range(20)} for score in (0, 1)}
    with pytest.raises(InputError, match="neighbour: must list 0 as the other law does .*mass 9.54e-7 is missing"):
        audit_laws(law[0], law[1], 500)
    law[1][0], law[0][20] = Fraction(0), Fraction(1, 2) ** 21
    audit = audit_laws(law[0], law[1], 500)
    assert audit.missing == (Fraction(1, 2) ** 21, Fraction(1, 2) ** 20)
    assert audit.one_sided
    assert audit.rejected
    assert audit.worst == 0
    assert "infinite" in str(audit)


def test_a_histogram_with_the_reciprocal_scale_is_rejected() -> None:
    """epsilon = 1/2 with scale 1/2 in place of 2: r = 1/7 is a loss of 1.95."""
    right, wrong = Fraction(60654, 100000), Fraction(1, 7)  # 0.60653 < e^-0.5 < 0.60654
    for ratio, rejected in ((right, False), (wrong, True)):
        noise = two_sided(ratio)
        here, there = ({j: noise.probability(j - count) for j in range(-5, 7)} for count in (0, 1))
        assert audit_laws(here, there, "1/2").rejected is rejected


def test_an_audit_needs_sensible_laws() -> None:
    with pytest.raises(InputError, match="epsilon: must be at least 0"):
        audit_laws({0: 1}, {0: 1}, -1)
    with pytest.raises(InputError, match="law: must hold at least one outcome"):
        audit_laws({}, {0: 1}, 1)
    with pytest.raises(InputError, match="must be a probability known to be 0 or positive"):
        audit_laws({0: Enclosure(Fraction(0), Fraction(1, 2))}, {0: 1}, 1)
    with pytest.raises(InputError, match="must be a probability"):
        audit_laws({0: 2}, {0: 1}, 1)


def test_an_audit_names_the_law_that_is_wrong() -> None:
    half = Fraction(1, 2)
    with pytest.raises(InputError, match=r"neighbour\['a'\]: must be a probability"):
        audit_laws({"a": 1}, {"a": 2}, 1)
    for wrong, message in (
        (None, "must be a mapping from outcomes to probabilities, not None"),
        ([1], "must be a mapping"),
        ({}, "must hold at least one outcome"),
        ({"a": 0}, "must give some outcome a probability above 0"),
        ({"a": half, "b": Fraction(501, 1000)}, "must have probabilities that sum to at most 1, not 1.001"),
        ({"a": "x"}, ""),
    ):
        for argument, laws in (("law", (wrong, {"a": 1})), ("neighbour", ({"a": 1}, wrong))):
            with pytest.raises(InputError, match=f"^{argument}.*{message}"):
                audit_laws(*laws, 1)  # type: ignore[arg-type]


def test_an_audit_says_what_it_has_not_looked_at() -> None:
    """Two thirds of a law are a part of it: what is missing may be anything, and is not 0."""
    third = Fraction(1, 3)
    part, whole = {"a": third, "b": third}, {"a": third, "b": third, "c": third}
    audit = audit_laws(part, {"a": third, "b": Fraction(2, 3)}, 1)
    assert audit.missing == (third, 0)
    assert audit.text().endswith("; not looked at: mass 0.333 of the law, 0 of its neighbour")
    with pytest.raises(InputError, match="^law: must list 'c' as the other law does .* mass 0.333 is missing"):
        audit_laws(part, whole, 1)
    assert not audit_laws(whole, part | {"c": Fraction(1, 4)}, 1).rejected
    assert audit_laws(whole, {"a": third, "b": Fraction(2, 3)}, 1).one_sided  # all of it: c has probability 0
    assert "not looked at" not in str(audit_laws(whole, whole, 1))
    around = Enclosure(Fraction(33, 100), Fraction(34, 100))  # upper ends that reach 1 are all of a law
    assert audit_laws(dict.fromkeys("abc", around), whole, 1).missing == (0, 0)
    table = selection_law([1, 0, 0], 1, 1).table(9)
    assert 0 < audit_laws(table, table, 1).missing[0] == 1 - sum(chance.upper for chance in table.values())


def test_outcomes_next_to_impossible_are_bounded() -> None:
    law = SelectionLaw((0, 0, 0), 2, Fraction(1))
    nothing = Enclosure(Fraction(0), Fraction(1, 1 << 8192))
    for far in (10**30, 10**3000):
        assert law.probability([0, 1], [far, far]) == nothing
        assert SelectionLaw((far, 0, 0), 1, Fraction(1)).chance_of([1]) == nothing
        assert SelectionLaw((far, 0, 0), 2, Fraction(1)).chance_of([1, 0]) == nothing
        assert float(SelectionLaw((far, 0, -far), 2, Fraction(1)).chance_of([0, 1])) == 1
        assert float(SelectionLaw((-far, 0, -far), 1, Fraction(1)).chance_of([1])) == 1
    near = law.probability([0, 1], [4_000, 1_000])  # about e^-6000: small, and narrow
    assert 0 < near.lower <= near.upper < near.lower * (1 + Fraction(1, 1 << 55))
    ratio = law.probability([0, 1], [500, 20]).lower / law.probability([0, 1], [501, 20]).lower
    assert float(ratio) == pytest.approx(math.e, rel=1e-12)
    far_scores = SelectionLaw((2 * 10**30, 10**30, 0), 1, Fraction(1)).probability([0], [10**30])  # gaps as the scores
    assert float(far_scores) == pytest.approx(
        float(SelectionLaw((2000, 1000, 0), 1, Fraction(1)).probability([0], [1000]))
    )


@pytest.mark.parametrize("odd", [None, 3, "01", {0, 1}, {0: 1, 1: 0}])
def test_what_is_no_sequence_is_refused(odd: Any) -> None:
    law = SelectionLaw((0, 0, 0), 2, Fraction(1))
    with pytest.raises(InputError, match="gaps: must be a list of integers"):
        law.probability([0, 1], odd)
    with pytest.raises(InputError, match="ids: must be a list of integers"):
        law.chance_of(odd)
    with pytest.raises(InputError, match="ids: must be a list of integers"):
        law.probability(odd, [0, 1])
    with pytest.raises(InputError, match="values: must be a list of integers"):
        SelectionLaw(odd, 2, Fraction(1))


def test_a_law_by_hand_is_validated() -> None:
    for arguments, message in (
        (((0, 0), 2, 1), "values: must be more than k = 2 and at most 12, not 2"),
        (((0, 0), 0, 1), "k: must be at least 1"),
        (((0, 0), 1, 0), "rate: must be positive, not 0"),
        (((0, 0.5), 1, 1), r"values\[1\]: must be an integer"),
        (((0,) * 13, 1, 1), "at most 12, not 13"),
    ):
        with pytest.raises(InputError, match=message):
            SelectionLaw(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="below: must be at least 1, not 0"):
        SelectionLaw((0, 0), 1, Fraction(1)).table(0)
    with pytest.raises(InputError, match="counts: must be a mapping"):
        SelectionLaw((0, 0), 1, Fraction(1)).fit(None, 2)  # type: ignore[arg-type]


def test_what_the_law_refuses() -> None:
    law = SelectionLaw((0, 0, 0), 2, Fraction(1))
    for ids in ([0], [0, 0], [0, 3], [0, 1, 2]):
        with pytest.raises(InputError, match="ids: must be k = 2 different items below 3"):
            law.chance_of(ids)
    with pytest.raises(InputError, match=r"gaps: must be k = 2 integers, not 1"):
        law.probability([0, 1], [0])
    with pytest.raises(InputError, match=r"gaps\[1\]: must be at least 0"):
        law.probability([0, 1], [0, -1])
    with pytest.raises(InputError, match="scores: must be more than k = 3 and at most 12, not 3"):
        selection_law([0, 0, 0], 3, 1)
    with pytest.raises(InputError, match="at most 12, not 13"):
        selection_law([0] * 13, 3, 1)
    with pytest.raises(InputError, match="counts: must be of more draws"):
        law.fit({}, 2)


def test_selection_laws_are_audited_as_they_are() -> None:
    """The same as by their tables; what is not looked at is next to nothing, and said."""
    laws = [selection_law(scores, 1, 1, resolution="1/2") for scores in ([2, 0, 0], [1, 1, 1])]
    audit, by_table = audit_laws(*laws, "1/2"), audit_laws(*(law.table(60) for law in laws), "1/2")
    assert audit.rejected and audit.worst == by_table.worst and float(audit.loss) == pytest.approx(1, abs=1e-12)
    assert not audit_laws(*laws, 1).rejected
    assert 0 < max(audit.missing) < Fraction(1, 2**60)
    shown = {outcome: laws[0].probability(*outcome) for outcome in [((0,), (0,)), ((1,), (3,))]}
    assert audit_laws(shown, laws[0], 0).loss.lower == 0 and not audit_laws(laws[0], shown, 0).rejected
    assert audit_laws(shown, laws[1], "1/10").rejected


def test_selection_laws_that_cannot_be_compared() -> None:
    one, wide = SelectionLaw((1, 0, 0), 1, Fraction(1)), SelectionLaw(tuple(range(12)), 6, Fraction(1))
    for laws, message in (
        ((one, SelectionLaw((1, 0, 0), 2, Fraction(1))), "neighbour: must select as the law does: k 1, not 2"),
        ((one, SelectionLaw((1, 0), 1, Fraction(1))), "neighbour: must select as the law does: items 3, not 2"),
        ((wide, wide), "law: has too many outcomes with 12 items and k = 6: pass the chances of those"),
        ((one, {"a": 1}), r"neighbour: must list outcomes \(ids, gaps\) beside a SelectionLaw, not 'a'"),
        (({"a": 1}, one), "law: must list outcomes"),
        ((one, None), "law: must hold at least one outcome|neighbour: must be a mapping"),
    ):
        with pytest.raises(InputError, match=f"^({message})"):
            audit_laws(*laws, 1)  # type: ignore[arg-type]
