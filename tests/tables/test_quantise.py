"""Rounding rules against the reference values, exact ceilings against float ones, and key size searches."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.errors import InputError, NotVerifiedError
from dpopt.tables.key_table import KeyTable
from dpopt.tables.quantise import Rule, key_table
from dpopt.tables.sizes import smallest_key_size

VALUES = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))["quantisation"]


def cases(kind: str) -> list[dict[str, Any]]:
    """The reference cases of one kind."""
    return [case for case in VALUES if case["kind"] == kind]


def agrees(found: float | Fraction, printed: str) -> bool:
    """To the digits printed, one unit in the last."""
    return math.isclose(float(found), float(Fraction(printed)), rel_tol=1e-12)


def gamma(case: dict[str, Any]) -> Fraction:
    return Fraction(case["epsilon"]) / (2 * case["D"] - 1)


@pytest.mark.parametrize("case", cases("row"), ids=lambda c: f"{c['epsilon']}-{c['D']}-{c['key_size']}")
def test_ceiling_rows(case: dict[str, Any]) -> None:
    table = key_table((case["D"], case["gamma"]), case["key_size"], rule="ceiling")
    assert table.has_full_support == case["full_support"]
    assert table.bias == Fraction(case["bias"])
    assert table.variance == Fraction(case["variance_exact"])
    if "counts" in case:
        assert list(table.counts) == case["counts"]
        assert list(table.cumulative) == case["cumulative"]
    pairs, nominal = table.privacy_pairs(), table.delta(case["epsilon"])
    assert agrees(nominal.forward.upper, case["delta_nominal_forward"])
    assert agrees(nominal.reverse.upper, case["delta_nominal_reverse"])
    assert pairs.paper_delta == Fraction(case["delta_eq46"])
    if case["epsilon_eq45"] == "inf":
        assert pairs.paper_epsilon is None
        assert pairs.corrected_epsilon is None
        return
    assert pairs.forward_ratio == Fraction(case["ratio_eq45"])
    assert pairs.reverse_ratio == Fraction(case["ratio_reverse"])
    assert pairs.paper_epsilon is not None
    assert pairs.corrected_epsilon is not None
    assert agrees(float(pairs.paper_epsilon), case["epsilon_eq45"])
    assert agrees(float(pairs.corrected_epsilon), case["epsilon_reverse"])
    assert pairs.delta_forward is not None
    assert pairs.delta_reverse is not None
    assert agrees(pairs.delta_forward, case["delta_at_eq45_forward"])
    assert agrees(pairs.delta_reverse, case["delta_at_eq45_reverse"])


def test_lost_support() -> None:
    (case,) = cases("row_lost_support")
    table = key_table((case["D"], case["gamma"]), case["key_size"], rule=Rule.CEILING)
    assert list(table.cumulative) == case["cumulative"]
    assert list(table.counts) == case["counts"]
    assert not table.has_full_support
    assert table.bias == Fraction(case["bias"])
    assert table.variance == Fraction(case["variance_exact"])


@pytest.mark.parametrize("case", cases("symmetric_rounding"), ids=lambda c: str(c["D"]))
def test_symmetric_rounding(case: dict[str, Any]) -> None:
    table = key_table((case["D"], case["gamma"]), case["key_size"], rule="symmetric")
    assert list(table.counts) == [*reversed(case["n"]), case["n0"], *case["n"]]
    assert table.bias == 0


@pytest.mark.parametrize(
    "case", cases("smallest_power_of_two_with_full_support"), ids=lambda c: f"{c['epsilon']}-{c['D']}"
)
def test_smallest_key_size_with_full_support(case: dict[str, Any]) -> None:
    result = smallest_key_size((case["D"], gamma(case)))
    assert result.key_size == 2 ** case["log2_key_size"]
    assert [r.key_size for r in result.refutations] == [2**k for k in range(case["log2_key_size"])]
    assert result.is_proved


@pytest.mark.parametrize(
    "case", [c for c in cases("ptable_row_rounding") if c["i"] == c["D"]], ids=lambda c: f"{c['D']}-{c['key_size']}"
)
def test_symmetric_rows_keep_the_total(case: dict[str, Any]) -> None:
    """K1, K2: nearest rounding of every point may give K - 1 or K + 1; the rest at 0 always gives K."""
    pmf = dp.solve(dp.tablebuilder(D=case["D"], V=case["V"])).pmf
    table = key_table(pmf, case["key_size"], rule="symmetric")
    nearest = list(case["nearest_counts"])
    nearest[case["D"]] += case["key_size"] - case["nearest_total"]
    assert list(table.counts) == nearest
    assert table.bias == 0
    assert table.largest_noise == case["largest_reachable_noise"]


@pytest.mark.parametrize("case", cases("ptable_row_rounding"), ids=lambda c: f"{c['D']}-{c['i']}-{c['key_size']}")
def test_rows_of_any_shape_by_their_cumulative(case: dict[str, Any]) -> None:
    """K1: rounding the cumulative always gives K, where rounding each probability gives 255 or 257."""
    row = dp.Problem(
        support=dp.Integers(-case["i"], case["D"]),
        objective=dp.MaxEntropy(),
        constraints=[dp.Mean(0), dp.Variance(case["V"])],
    )
    pmf, size = dp.solve(row).pmf, case["key_size"]
    nearest = [math.floor(pmf.probability(z) * size + Fraction(1, 2)) for z in range(-case["i"], case["D"] + 1)]
    assert nearest == case["nearest_counts"] and sum(nearest) == case["nearest_total"]
    table = key_table(pmf, size, rule="cumulative")
    assert list(table.counts) == case["cumulative_rounding_counts"]
    assert float(table.bias) == pytest.approx(float(case["cumulative_rounding_mean"]), abs=1e-6)
    assert float(table.variance) == pytest.approx(float(case["cumulative_rounding_variance"]), abs=1e-6)


def test_the_float_ceiling_slips_where_the_exact_one_does_not() -> None:
    """K10: in floats the last cumulative entry is K + 1 in about a quarter of designs; here it is K in all."""
    slips = wrong = designs = 0
    for half_width in range(2, 32):
        for epsilon in ("0.1", "0.5", "1", "2"):
            rate = Fraction(epsilon) / (2 * half_width - 1)
            weights = [math.exp(-float(rate) * z * z) for z in range(-half_width, half_width + 1)]
            total = sum(weights)
            floats = list(accumulate(w / total for w in weights))
            for bits in (8, 16, 32):
                rounded = [math.ceil(c * 2**bits) for c in floats]
                exact = list(key_table((half_width, rate), 2**bits, rule="ceiling").cumulative)
                assert exact[-1] == 2**bits
                designs += 1
                slips += rounded[-1] == 2**bits + 1
                wrong += rounded != exact
    assert designs == 360
    assert 0.15 * designs < slips < 0.4 * designs
    assert wrong >= slips


@pytest.mark.parametrize("rule", ["ceiling", "symmetric", "optimal"])
def test_key_size_of_64_bits(rule: str) -> None:
    table = key_table((11, "1/21"), 2**64, rule=rule)
    assert sum(table.counts) == 2**64
    assert table.has_full_support
    assert abs(table.variance - Fraction("10.447307369")) < Fraction(1, 10**8)
    assert table.bias == (Fraction(-11, 2**64) if rule == "ceiling" else 0)


FAMILY = st.tuples(
    st.integers(1, 8), st.fractions(min_value=Fraction(1, 40), max_value=Fraction(1, 2), max_denominator=40)
)


@given(FAMILY, st.integers(1, 2**20))
def test_identities_of_the_ceiling(ideal: tuple[int, Fraction], size: int) -> None:
    """c(z) + c(-z-1) = K + 1, so that the bias is -D/K, and all but the end counts are symmetric."""
    half_width = ideal[0]
    table = key_table(ideal, size, rule="ceiling")
    cumulative = table.cumulative
    assert all(cumulative[i] + cumulative[-i - 2] == size + 1 for i in range(2 * half_width))
    assert table.bias == Fraction(-half_width, size)
    assert table.counts[1:-1] == table.counts[1:-1][::-1]
    assert table.counts[0] == table.counts[-1] + 1
    assert list(cumulative) == sorted(cumulative)


@given(FAMILY, st.integers(64, 2**64))
def test_balls_agree_with_the_exact_member(ideal: tuple[int, Fraction], size: int) -> None:
    from dpopt.family.members import family_pmf

    for rule in ("ceiling", "symmetric"):
        assert key_table(ideal, size, rule=rule) == key_table(family_pmf(*ideal), size, rule=rule)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=7).filter(any), st.integers(1, 1000))
def test_ceilings_of_an_exact_pmf(weights: list[int], size: int) -> None:
    table = key_table(dp.Pmf(-2, weights), size, rule="ceiling")
    total = sum(weights)
    assert list(table.cumulative) == [math.ceil(Fraction(c * size, total)) for c in accumulate(weights)]


def test_an_exact_product_is_not_rounded_up() -> None:
    assert key_table((1, 0), 3, rule="ceiling").counts == (1, 1, 1)
    assert key_table(dp.Pmf(-1, (1, 2, 1)), 256, rule="ceiling").cumulative == (64, 192, 256)
    assert key_table((0, 1), 5, rule="ceiling") == KeyTable(0, (5,), 5)


@settings(max_examples=20, deadline=None)
@given(FAMILY, st.integers(6, 24))
def test_symmetric_rounding_has_no_bias(ideal: tuple[int, Fraction], bits: int) -> None:
    table = key_table(ideal, 2**bits, rule="symmetric")
    assert table.bias == 0
    assert table.counts == table.counts[::-1]
    assert table.pmf.is_symmetric


def test_a_tiny_mass_is_still_decided() -> None:
    """gamma D^2 = 20,000: the outermost mass is e^-20000 and its ceiling is 1."""
    table = key_table((100, 2), 2**64, rule="ceiling")
    assert table.counts[0] == 1
    assert table.counts[-1] == 0
    assert sum(table.counts) == 2**64


@pytest.mark.slow
def test_a_wanted_delta_is_reached_and_each_smaller_size_refuted() -> None:
    sizes = {}
    for rule in Rule:
        result = smallest_key_size((11, "1/21"), 1, "4e-4", rule=rule)
        assert result.is_proved
        assert result.table.keeps(1, "4e-4")
        assert result.table.has_full_support
        assert [r.key_size for r in result.refutations] == [2**k for k in range(result.key_size.bit_length() - 1)]
        sizes[rule] = result.key_size
        assert "does, rule" in str(result)
    assert sizes == {Rule.CEILING: 2**16, Rule.SYMMETRIC: 2**15, Rule.CUMULATIVE: 2**15, Rule.OPTIMAL: 2**12}
    for size in (2**k for k in range(12, 16)):  # the reasons are true
        table = key_table((11, "1/21"), size, rule="ceiling")
        assert not (table.has_full_support and table.delta(1).worst.lower <= Fraction("4e-4"))


def test_no_key_size_does() -> None:
    """The ideal delta is 3.8736e-4: every table of up to 2^20 keys is refuted, the optimal ones by a proof."""
    for rule, largest in ((Rule.CEILING, 2**20), (Rule.OPTIMAL, 2**14)):
        result = smallest_key_size((11, "1/21"), 1, "1e-6", rule=rule, largest=largest)
        assert result.is_proved
        assert result.found is None
        with pytest.raises(NotVerifiedError, match="no key size up to"):
            _ = result.key_size


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((11, "1/21"), 0, "ceiling"), "key_size: must be at least 1"),
        (((11, "1/21"), True, "ceiling"), "key_size.*truth value"),
        (((11, "1/21"), 2.5, "ceiling"), "key_size: must be an integer"),
        (((11, "1/21"), float("nan"), "ceiling"), "key_size: must be finite"),
        (((11, "1/21"), 256, "nearest"), "rule: must be one of ceiling, symmetric, cumulative, optimal"),
        (((11, -1), 256, "ceiling"), "gamma: must be at least 0"),
        (((-1, 1), 256, "ceiling"), "D: must be at least 0"),
        (((1, 2, 3), 256, "ceiling"), "pair"),
        (("pmf", 256, "ceiling"), "must be a Pmf or a pair"),
        ((dp.Pmf(0, (1,), tails=dp.Tails(1, right=Fraction(1, 2))), 256, "ceiling"), "finite support"),
        ((dp.Pmf(0, (1,), step=2), 256, "ceiling"), "lattice step 1"),
        ((dp.Pmf(0, (1, 2)), 256, "symmetric"), "must be symmetric"),
        (((2, 0), 3, "symmetric"), "too small for symmetric rounding"),
    ],
)
def test_wrong_input_is_named(arguments: tuple[Any, Any, Any], words: str) -> None:
    pmf, size, rule = arguments
    with pytest.raises(InputError, match=words):
        key_table(pmf, size, rule=rule)


def test_wrong_search_input() -> None:
    with pytest.raises(InputError, match="delta: must be given as well"):
        smallest_key_size((2, 1), 1)
    with pytest.raises(InputError, match="delta: must lie between"):
        smallest_key_size((2, 1), 1, 2)
    with pytest.raises(InputError, match="symmetric"):
        smallest_key_size(dp.Pmf(-1, (1, 3, 2)), rule="symmetric")
