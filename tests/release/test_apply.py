"""Noise added to data: exact at every size, types kept, nothing drawn for bad input."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.errors import InputError
from dpopt.pmf import Pmf, Tails
from dpopt.release.apply import Overflow, add_noise
from dpopt.release.randomness import InsecureRandomness, Randomness
from dpopt.release.samplers import sample

from .goodness import p_value
from .twin import Replay

some = settings(derandomize=True, max_examples=60, deadline=None)
COIN = Pmf(-1, (1, 2, 1))
UP = Pmf(1, (1,))
HALVES = Pmf(-1, (1, 2, 1), step="1/2")
DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
LAW = {-1: 0.25, 0: 0.5, 1: 0.25}


def seeded(seed: int = 1) -> Randomness:
    return InsecureRandomness(seed)


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_and_shapes_are_kept(dtype: Any) -> None:
    """Any integer type, any number of dimensions, none as well."""
    for shape in ((), (0,), (7,), (2, 3, 4)):
        noisy = add_noise(np.full(shape, 100, dtype=dtype), COIN, randomness=seeded())
        assert isinstance(noisy, np.ndarray) and noisy.dtype == dtype and noisy.shape == shape
    assert type(add_noise(dtype(100), UP)) is dtype
    assert add_noise(np.arange(5, dtype=np.dtype(dtype).newbyteorder()), UP).tolist() == [1, 2, 3, 4, 5]


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: st.tuples(
            st.just(dtype), st.lists(st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)), max_size=6)
        )
    ),
    st.integers(-(2**66), 2**66),
)
@some
def test_sums_are_exact_or_refused(data: tuple[Any, list[int]], noise: int) -> None:
    """Against Python integers, at the ends of every type and beyond, with noise of any size."""
    dtype, values = data
    array, point = np.array(values, dtype=dtype), Pmf(noise, (1,))
    right = [value + noise for value in values]
    limits = np.iinfo(dtype)
    if all(limits.min <= value <= limits.max for value in right):
        noisy = add_noise(array, point)
        assert noisy.dtype == dtype and noisy.tolist() == right
    else:
        with pytest.raises(InputError, match=f"values: with the noise added do not all fit {limits.dtype}"):
            add_noise(array, point)
    wide = add_noise(array, point, overflow="exact")
    assert wide.tolist() == right and add_noise(values, point).tolist() == right
    assert all(type(value) is int for value in wide.tolist())


@pytest.mark.parametrize("value", [2**60, 2**53 + 1, -(2**53) - 1, 2**63 - 2])
def test_large_counts_get_every_offset(value: int) -> None:
    """A sum that went through a double would return the count itself."""
    noisy = add_noise(np.full(4000, value), COIN, randomness=seeded())
    assert p_value([int(v) - value for v in noisy], LAW) > 1e-4
    assert p_value([add_noise(value, COIN, randomness=seeded(i)) - value for i in range(2000)], LAW) > 1e-4


def test_first_and_last_element_get_noise_of_their_own() -> None:
    """Each element by itself, and no two from the same draw."""
    source = seeded()
    noisy = np.array([add_noise(np.zeros(3, dtype=np.int64), COIN, randomness=source) for _ in range(9000)])
    for column in range(3):
        assert p_value(noisy[:, column], LAW) > 1e-4
    pairs = 3 * (noisy[:, 0] + 1) + noisy[:, 2] + 1
    assert p_value(pairs, {3 * (a + 1) + b + 1: LAW[a] * LAW[b] for a in LAW for b in LAW}) > 1e-4


def test_noise_is_what_sample_draws() -> None:
    """Element by element, in order, from the same bits."""
    values = np.arange(-500, 500).reshape(10, 100)
    noisy = add_noise(values, COIN, randomness=seeded(9))
    assert np.array_equal(noisy - values, sample(COIN, (10, 100), randomness=seeded(9)))
    noise = dp.solve(dp.tablebuilder(D=3, V=1))
    assert np.array_equal(
        add_noise(values, noise, randomness=seeded()) - values, sample(noise, (10, 100), randomness=seeded())
    )


def test_lists_and_numbers() -> None:
    """Python integers have no overflow: int64 where all noisy values fit."""
    assert add_noise(5, UP) == 6 and type(add_noise(5, UP)) is int
    assert add_noise(2**63 - 1, UP) == 2**63
    assert add_noise([[1, 2], [3, 4]], UP).tolist() == [[2, 3], [4, 5]]
    assert add_noise((1, np.int8(127)), UP).dtype == np.int64
    assert add_noise([], UP).dtype == np.int64
    fits, wide = add_noise([2**63 - 2], UP), add_noise([2**63 - 1], UP)
    assert fits.dtype == np.int64 and wide.dtype == object and wide.tolist() == [2**63]
    kept = add_noise(np.array([1, 2**70], dtype=object), UP)
    assert kept.dtype == object and kept.tolist() == [2, 2**70 + 1]
    assert all(type(value) is int for value in add_noise(np.array([np.int8(1), 2], dtype=object), UP))


def test_the_type_of_a_list_follows_from_the_noisy_values() -> None:
    """Neighbouring lists on either side of 2^63 give the same type for the same output."""
    down = Pmf(-1, (1,))
    assert add_noise([2**63], down).dtype == add_noise([2**63 - 1], Pmf(0, (1,))).dtype == np.int64


def test_overflow() -> None:
    """An error that says that the draw has happened, and does not say where; Python integers on request."""
    edge = np.array([-128, 0, 127], dtype=np.int8)
    with pytest.raises(InputError) as caught:
        add_noise(edge, UP)
    assert str(caught.value).startswith("values: with the noise added do not all fit int8 (-128..127)")
    assert "the draw has happened" in str(caught.value) and "[2]" not in str(caught.value)
    assert add_noise(edge, UP, overflow=Overflow.EXACT).tolist() == [-127, 1, 128]
    assert add_noise(edge[:2], UP, overflow="exact").dtype == np.int8
    with pytest.raises(InputError, match="do not all fit uint8"):
        add_noise(np.zeros(2, dtype=np.uint8), Pmf(-1, (1,)))
    far = Pmf(0, (1,), tails=Tails(1, None, 1 - Fraction(1, 2**90)))
    with pytest.raises(InputError, match="do not all fit int64"):
        add_noise(np.zeros(9, dtype=np.int64), far, randomness=seeded())
    assert max(add_noise(np.zeros(9, dtype=np.int64), far, overflow="exact", randomness=seeded())) > 2**80


def test_steps() -> None:
    """Values are multiples of the step; a step that is no integer gives fractions."""
    noisy = add_noise([1, Fraction(1, 2), Decimal("2.5"), Fraction(7)], HALVES, randomness=seeded())
    assert noisy.dtype == object and all(type(value) is Fraction and (2 * value).denominator == 1 for value in noisy)
    assert add_noise(np.array([1, 2]), Pmf(1, (1,), step="1/2")).tolist() == [Fraction(3, 2), Fraction(5, 2)]
    assert add_noise(Fraction(1, 2), Pmf(1, (1,), step="1/2")) == 1
    five = Pmf(1, (1,), step=5)
    assert add_noise(np.array([5, -10], dtype=np.int16), five).dtype == np.int16
    assert add_noise([5, Fraction(10)], five).tolist() == [10, 15]
    assert add_noise([4], Pmf(1, (1,), step="4/3")).tolist() == [Fraction(16, 3)]
    assert add_noise(np.array([0, -128], dtype=np.int8), Pmf(0, (1,), step=128)).tolist() == [0, -128]


@pytest.mark.parametrize(
    "values, noise, place",
    [
        ([0, 5, 7], Pmf(0, (1,), step=5), "values[2]"),
        (np.array([[0, 5], [6, 0]]), Pmf(0, (1,), step=5), "values[2]"),
        (np.array([0, 1], dtype=np.int8), Pmf(0, (1,), step=300), "values[1]"),
        ([1, Fraction(1, 3)], HALVES, "values[1]"),
        (Fraction(1, 2), COIN, "values[0]"),
        (np.array([4, 2]), Pmf(0, (1,), step="4/3"), "values[1]"),
    ],
)
def test_between_the_points_of_the_lattice(values: Any, noise: Pmf, place: str) -> None:
    """Refused before anything is drawn, and without the value itself."""
    with pytest.raises(InputError, match="must be a multiple of the lattice step") as caught:
        add_noise(values, noise, randomness=Replay(b""))
    assert caught.value.location == place


@pytest.mark.parametrize(
    "values, message",
    [
        (1.0, "must be an integer or a fraction, not a float: floats keep no lattice"),
        ([1, 2.0], "must be an integer or a fraction, not a float"),
        (np.array([1.0]), "must be integers, not floats: floats keep no lattice: round them to it first"),
        (np.array([True]), "must be integers, not truth values"),
        (np.array([1j]), "must be integers, not complex"),
        (np.array(["1"]), "must be integers, not <U1"),
        (np.array([1, 2.5], dtype=object), "must be an integer or a fraction, not a float"),
        (True, "not the truth value True"),
        ("5", "must be an integer or a fraction, not a str$"),
        (None, "not a NoneType"),
        ({1: 2}, "not a dict"),
        ([[1, 2], [3]], "not a list"),
        ([np.array([1, 2]), np.array([1])], "not a ndarray"),
        ([Decimal("inf")], "must be finite"),
        (np.ma.array([1, 2], mask=[0, 1]), "must not be a masked array"),
    ],
)
def test_values_of_another_kind(values: Any, message: str) -> None:
    """Refused before anything is drawn."""
    with pytest.raises(InputError, match=message):
        add_noise(values, COIN, randomness=Replay(b""))


def test_other_arguments() -> None:
    """Refused before anything is drawn."""
    with pytest.raises(InputError, match="overflow: must be one of error, exact, not 'wrap'"):
        add_noise([1], COIN, overflow="wrap", randomness=Replay(b""))
    with pytest.raises(InputError, match="noise: must be a Pmf or have one as its attribute 'pmf', not list"):
        add_noise([1], [1, 2, 1], randomness=Replay(b""))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="randomness: must be"):
        add_noise([1], COIN, randomness=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [2, 3, 2**70])
@pytest.mark.parametrize("value", [0, -4, 10**30, Fraction(6), Decimal(12)])
def test_one_number_and_an_integer_step(value: Any, step: int) -> None:
    """A single number is an array without a shape, which NumPy arithmetic turns into a scalar."""
    noisy = add_noise(int(value) * step, Pmf(-1, (1, 2, 1), step=step))
    assert abs(noisy - int(value) * step) in (0, step)
    assert type(noisy) is int
