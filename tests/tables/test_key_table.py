"""Key tables: what the integers say, the paper's pair beside the corrected one, text formats, wrong input."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt as dp
from dpopt.errors import InputError
from dpopt.tables.key_table import KeyTable
from dpopt.tables.quantise import key_table

COUNTS = st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(any)


@given(COUNTS, st.integers(-5, 5))
def test_moments_and_cumulative_are_those_of_the_counts(counts: list[int], start: int) -> None:
    table = KeyTable(start, counts, sum(counts))
    size = sum(counts)
    mean = Fraction(sum((start + i) * n for i, n in enumerate(counts)), size)
    assert table.bias == mean
    assert table.variance == Fraction(sum((start + i) ** 2 * n for i, n in enumerate(counts)), size) - mean**2
    assert list(table.cumulative) == sorted(table.cumulative)
    assert table.cumulative[-1] == size
    assert table.has_full_support == (len(table.effective_support) == len(counts))
    assert table.pmf.probability(start) == Fraction(counts[0], size)


@given(COUNTS)
def test_text_round_trips(counts: list[int]) -> None:
    table = KeyTable(-2, counts, sum(counts))
    assert KeyTable.from_dict(table.to_dict()) == table
    assert KeyTable.from_csv(table.to_csv()) == table


@given(COUNTS, st.integers(0, 3), st.integers(1, 3))
def test_delta_is_the_worst_of_both_directions(counts: list[int], epsilon: int, sensitivity: int) -> None:
    table = KeyTable(0, counts, sum(counts))
    assert table.delta(epsilon, sensitivity).worst == dp.delta(table.pmf, epsilon, sensitivity)


def test_the_papers_pair_overstates_the_privacy() -> None:
    """V9: epsilon = 1, D = 11, K = 2^16: (45)-(46) say 3.967e-4; taking a record away needs 4.21964e-4."""
    table = key_table((11, "1/21"), 2**16, rule="ceiling")
    pairs = table.privacy_pairs()
    assert pairs.paper_epsilon is not None
    assert f"{float(pairs.paper_epsilon):.10f}" == "0.9760099666"
    assert pairs.paper_delta == Fraction(26, 65536)
    assert not pairs.paper_holds
    assert pairs.delta_reverse is not None
    assert f"{float(pairs.delta_reverse):.6g}" == "0.000421964"
    assert not table.keeps(pairs.paper_epsilon.lower, pairs.paper_delta)
    # the corrected pair is valid in both directions; below its epsilon more than the end masses contributes
    assert pairs.corrected_epsilon is not None
    assert pairs.corrected_delta == Fraction(26, 65536)
    assert table.keeps(pairs.corrected_epsilon.upper, pairs.corrected_delta)
    below = table.delta(pairs.corrected_epsilon.lower - Fraction(1, 10**6))
    assert below.reverse.lower > Fraction(25, 65536)
    assert table.epsilon(pairs.paper_delta).lower > pairs.paper_epsilon.upper
    assert table.epsilon(pairs.paper_delta).upper <= pairs.corrected_epsilon.upper


def test_the_papers_pair_holds_for_a_symmetric_table() -> None:
    pairs = key_table((11, "1/21"), 2**16, rule="symmetric").privacy_pairs()
    assert pairs.paper_holds
    assert pairs.forward_ratio == pairs.reverse_ratio


def test_a_lost_value_makes_epsilon_infinite() -> None:
    """K2: the support shrinks, the table says so and its privacy is that of the integers."""
    table = key_table(dp.solve(dp.tablebuilder(D=11, V=2)).pmf, 256, rule="symmetric")
    assert table.largest_noise == 4
    assert "lost, largest noise 4" in str(table)
    holed = KeyTable(-2, (1, 0, 5, 1, 1), 8)
    pairs = holed.privacy_pairs()
    assert pairs.paper_epsilon is None
    assert pairs.corrected_epsilon is None
    assert not pairs.paper_holds
    assert "infinite" in str(pairs)


def test_a_single_value() -> None:
    table = KeyTable(0, (7,), 7)
    assert table.privacy_pairs().paper_delta == 1
    assert table.delta(1).worst.upper == 1


def test_csv_file(tmp_path: Path) -> None:
    table = key_table((11, "1/21"), 2**64, rule="ceiling")
    table.to_csv(tmp_path / "table.csv")
    assert KeyTable.from_csv(tmp_path / "table.csv") == table
    semicolons = table.to_csv().replace(",", ";")
    assert KeyTable.from_csv(semicolons) == KeyTable.from_csv(semicolons.encode("utf-16")) == table
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for bad in ("missing.csv", "binary.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            KeyTable.from_csv(tmp_path / bad)
    with pytest.raises(InputError, match="cannot be written"):
        table.to_csv(tmp_path)


HEADER = "noise,count,cumulative\n"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KeyTable(0, (1, 2), 4), "counts: must sum to key_size 4, not 3"),
        (lambda: KeyTable(0, (1, -1), 0), r"counts\[1\]: must be at least 0"),
        (lambda: KeyTable(0, (True, 1), 2), r"counts\[0\].*truth value"),
        (lambda: KeyTable(0, (1.5, 0.5), 2), r"counts\[0\]: must be an integer"),
        (lambda: KeyTable(0, (float("nan"),), 1), "must be finite"),
        (lambda: KeyTable(0, (), 0), "key_size: must be at least 1"),
        (lambda: KeyTable(0, "12", 3), "counts: must be a sequence"),
        (lambda: KeyTable(0, 5, 5), "counts: must be a sequence"),  # type: ignore[arg-type]
        (lambda: KeyTable(0, (1,), 1).delta(-1), "epsilon: must be at least 0"),
        (lambda: KeyTable(0, (1,), 1).delta(1, 0), "sensitivity: must be positive"),
        (lambda: KeyTable.from_csv("\n"), "must begin with the line"),
        (lambda: KeyTable.from_csv("noise count cumulative\n0 1 1\n"), "must begin with the line"),
        (lambda: KeyTable.from_csv(HEADER), "at least one row below it"),
        (lambda: KeyTable.from_csv(HEADER + "0,1,1\n2,1,2\n"), "line 3: must hold noise 1, not 2"),
        (lambda: KeyTable.from_csv(HEADER + "0,1,1\n0,1,2\n"), "line 3: must hold noise 1, not 0"),
        (lambda: KeyTable.from_csv(HEADER + "0,1,2\n"), "cumulative count 1, not 2"),
        (lambda: KeyTable.from_csv(HEADER + "0,1\n"), "csv:2: has 2 cells, but there are 3 columns"),
        (lambda: KeyTable.from_csv(HEADER + "0,x,1\n"), "line 2, count: must be a number"),
        (lambda: KeyTable.from_dict([]), "must be a mapping"),  # type: ignore[arg-type]
        (lambda: KeyTable.from_dict({}), "type: must be 'key-table', not None"),
        (lambda: KeyTable.from_dict({"type": "key-table", "format": 2}), "format: must be 1, not 2"),
        (lambda: KeyTable.from_dict({"type": "key-table", "format": 1}), "must have the entries"),
        (
            lambda: KeyTable.from_dict({**KeyTable(0, (1,), 1).to_dict(), "counts": "1"}),
            "counts: must be a list",
        ),
    ],
)
def test_wrong_input_is_named(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
