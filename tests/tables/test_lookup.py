"""Record keys to cell keys to noise: one half-open convention, every boundary, every wrong type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt.errors import InputError
from dpopt.release.randomness import InsecureRandomness
from dpopt.tables.key_table import KeyTable
from dpopt.tables.lookup import Negatives, Zeros, cell_keys, noise, perturb, random_record_keys
from dpopt.tables.quantise import key_table

TABLE = KeyTable(-2, (23, 62, 87, 62, 22), 256)
SIZES = [1, 7, 256, 4096, 257, 10**12 + 39, 2**63, 2**64, 2**64 - 59, 2**80]


def by_definition(table: KeyTable, key: int) -> int:
    """Equation (40), read aloud: S = z + 1 when c(z) <= key < c(z + 1)."""
    lower = (0, *table.cumulative[:-1])
    (found,) = [z for z, (a, b) in enumerate(zip(lower, table.cumulative, strict=True), table.start) if a <= key < b]
    return found


def test_every_key_yields_exactly_one_value() -> None:
    found = noise(TABLE, np.arange(256))
    assert found.dtype == np.int64
    assert found.tolist() == [by_definition(TABLE, key) for key in range(256)]
    values, counts = np.unique(found, return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == dict(
        zip(range(-2, 3), TABLE.counts, strict=True)
    )


@pytest.mark.parametrize("size", [2**16, 2**32, 2**63, 2**64, 2**64 - 59, 2**80])
def test_boundary_keys(size: int) -> None:
    """K3: a key on a bound belongs to the value above it, the one before to the value below."""
    table = key_table((6, "1/11"), size, rule="ceiling")
    for z, bound in enumerate(table.cumulative[:-1], table.start):
        assert noise(table, bound) == z + 1
        assert noise(table, bound - 1) == z
    assert noise(table, 0) == -6
    assert noise(table, size - 1) == 6
    keys = [0, *table.cumulative[:-1], size - 1]
    assert noise(table, keys).tolist() == [noise(table, key) for key in keys]
    for outside in (-1, size, size + 1):
        with pytest.raises(InputError, match=rf"keys: must lie in 0..{size - 1}"):
            noise(table, outside)
        with pytest.raises(InputError, match="must lie in"):
            noise(table, [0, outside])


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any), st.data())
def test_lost_values_are_never_drawn(counts: list[int], data: st.DataObject) -> None:
    """V2: a count of 0, inside or at an end, is skipped."""
    table = KeyTable(-3, counts, sum(counts))
    key = data.draw(st.integers(0, table.key_size - 1))
    assert noise(table, key) == noise(table, [key])[0] == by_definition(table, key)
    assert counts[noise(table, key) + 3] > 0


def test_lost_top_of_a_64_bit_table() -> None:
    table = KeyTable(0, (2**64, 0, 0), 2**64)
    assert noise(table, np.array([0, 2**64 - 1], dtype=np.uint64)).tolist() == [0, 0]


@pytest.mark.parametrize("size", SIZES)
def test_cell_keys_are_the_sums_modulo_the_key_size(size: int) -> None:
    keys = random_record_keys(500, size, randomness=InsecureRandomness(3))
    cells = np.random.default_rng(1).integers(0, 9, 500)
    found = cell_keys(keys, cells, size, n_cells=12)
    wanted = [sum(int(k) for k, c in zip(keys, cells, strict=True) if c == cell) % size for cell in range(12)]
    assert found.tolist() == wanted
    assert found[9:].tolist() == [0, 0, 0]  # empty cells have the key 0
    order = np.random.default_rng(2).permutation(500)
    assert cell_keys(keys[order], cells[order], size, 12).tolist() == wanted
    assert cell_keys(keys.tolist(), cells.tolist(), size, 12).tolist() == wanted


def test_the_largest_keys_do_not_overflow() -> None:
    for size in SIZES:
        top = [size - 1] * 1000
        assert cell_keys(top, [0] * 1000, size).tolist() == [-1000 % size]


def test_noise_of_other_cells_stays_when_a_record_leaves() -> None:
    """K7: keys belong to records, not to the data set."""
    keys, cells = random_record_keys(50, 256, randomness=InsecureRandomness(9)), np.arange(50) % 5
    before = noise(TABLE, cell_keys(keys, cells, 256))
    after = noise(TABLE, cell_keys(keys[1:], cells[1:], 256))
    assert before[1:].tolist() == after[1:].tolist()


def test_degenerate_data() -> None:
    """K8: no record at all, one cell, counts all 0 or all 1."""
    assert cell_keys([], [], 256).tolist() == []
    assert cell_keys([], [], 256, n_cells=3).tolist() == [0, 0, 0]
    assert cell_keys([5], [0], 256).tolist() == [5]
    assert perturb([0, 0, 0], [0, 100, 255], TABLE).tolist() == [0, 0, 0]
    assert perturb([1, 1], [30, 100], TABLE).tolist() == [0, 1]
    assert perturb([], [], TABLE).tolist() == []
    assert perturb(np.ones((2, 2), dtype=np.int8), np.full((2, 2), 100), TABLE).tolist() == [[1, 1], [1, 1]]
    assert noise(TABLE, []).tolist() == []


def test_frequencies_over_all_keys_are_the_pmf() -> None:
    """Uniform record keys make uniform cell keys: over all pairs of keys each value has its exact share."""
    small = KeyTable(-1, (3, 5, 2), 10)
    pairs = np.array([(a + b) % 10 for a in range(10) for b in range(10)])
    assert np.bincount(noise(small, pairs) + 1).tolist() == [30, 50, 20]


def test_negative_results_are_an_error_or_clamped_by_choice() -> None:
    with pytest.raises(InputError, match=r"counts: 1 \(place 1\) would become -1"):
        perturb([5, 1], [0, 0], TABLE)
    assert perturb([5, 1], [0, 0], TABLE, negatives=Negatives.CLAMP).tolist() == [3, 0]
    assert perturb([5, 1], [0, 0], TABLE, negatives="clamp").tolist() == [3, 0]


def test_zeros_are_kept_unless_asked() -> None:
    assert perturb([0], [255], TABLE).tolist() == [0]
    assert perturb([0], [255], TABLE, zeros=Zeros.PERTURB).tolist() == [2]
    with pytest.raises(InputError, match="would become -2"):
        perturb([0], [0], TABLE, zeros="perturb")


def test_counts_near_the_integer_limit() -> None:
    top = 2**63 - 1
    assert perturb([top - 2], [255], TABLE).tolist() == [top]
    for too_large in ([top - 1], [2**63], [2**70]):
        with pytest.raises(InputError, match="64 bits"):
            perturb(too_large, [0], TABLE)
    assert perturb(np.array([200], dtype=np.uint8), np.array([255], dtype=np.uint8), TABLE).tolist() == [202]


@pytest.mark.parametrize("width", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "object"])
def test_every_integer_type_is_taken(width: str) -> None:
    keys = np.array([0, 23, 100, 127], dtype=width)
    assert noise(TABLE, keys).tolist() == [-2, -1, 0, 0]
    assert cell_keys(keys, np.zeros(4, dtype=width), 256).tolist() == [250]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: noise(TABLE, np.array([0.5])), "keys: must be integers, not real numbers"),
        (lambda: noise(TABLE, [1.0]), r"keys\[0\]: must be an integer, not 1.0"),
        (lambda: noise(TABLE, [float("nan")]), r"keys\[0\]: must be an integer, not nan"),
        (lambda: noise(TABLE, np.array([np.nan])), "not real numbers"),
        (lambda: noise(TABLE, [True]), r"keys\[0\]: must be an integer, not True"),
        (lambda: noise(TABLE, np.array([True])), "not truth values"),
        (lambda: noise(TABLE, True), "keys: must be a sequence of integers, not True"),
        (lambda: noise(TABLE, 1.0), "keys: must be a sequence"),  # type: ignore[call-overload]
        (lambda: noise(TABLE, None), "keys: must be a sequence"),  # type: ignore[call-overload]
        (lambda: noise(TABLE, "12"), "keys: must be a sequence"),  # type: ignore[call-overload]
        (lambda: noise(TABLE, ["1"]), r"keys\[0\]: must be an integer"),  # type: ignore[list-item]
        (lambda: noise(TABLE, [1, 2**70]), "keys: must lie in 0..255"),
        (lambda: noise((23, 62), 1), "table: must be a KeyTable or have one as its attribute 'table', not tuple"),  # type: ignore[call-overload]
        (lambda: cell_keys([1], [0, 1], 256), "cells: must give one cell for each of the 1 record keys"),
        (lambda: cell_keys([256], [0], 256), "record_keys: must lie in 0..255"),
        (lambda: cell_keys([-1], [0], 256), "record_keys: must lie in 0..255"),
        (lambda: cell_keys([0.1], [0], 256), r"record_keys\[0\]: must be an integer"),
        (lambda: cell_keys([1], [-1], 256), "cells: must not be negative"),
        (lambda: cell_keys([1], [3], 256, n_cells=3), "n_cells: must be at least 4"),
        (lambda: cell_keys([1], [0], 0), "key_size: must be at least 1"),
        (lambda: perturb([1, 2], [1], TABLE), "keys: must have the shape"),
        (lambda: perturb([-1], [1], TABLE), "counts: must not be negative"),
        (lambda: perturb([1.0], [1], TABLE), r"counts\[0\]: must be an integer"),
        (lambda: perturb([1], [256], TABLE), "keys: must lie in 0..255"),
        (lambda: perturb([1], [1], TABLE, negatives="zero"), "negatives: must be one of error, clamp"),
        (lambda: perturb([1], [1], TABLE, zeros=True), "zeros: must be one of keep, perturb"),  # type: ignore[arg-type]
        (lambda: random_record_keys(-1, 256), "size: must be at least 0"),
    ],
)
def test_wrong_input_is_named(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_record_keys_are_reproducible_without_a_global_generator() -> None:
    """K9."""
    import random

    random.seed(1)
    state = random.getstate()
    first, second = (random_record_keys(20, 10, randomness=InsecureRandomness(5)) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert random.getstate() == state
    secure = random_record_keys(1000, 3)
    assert set(secure.tolist()) == {0, 1, 2}
    assert random_record_keys(2, 2**80).dtype == object
