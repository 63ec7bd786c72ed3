"""Functions of the lattice index: every operation point by point, and sums over tails against long sums."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.lattice_function import LatticeFunction, evaluate, geometric_sum, shifted

POINTS = range(-30, 31)
values = st.fractions(min_value=-9, max_value=9, max_denominator=6)
polynomials = st.lists(values, max_size=4).map(tuple)
functions = st.builds(
    LatticeFunction, st.integers(-7, 7), st.lists(values, max_size=6).map(tuple), polynomials, polynomials
)
ratios = st.fractions(min_value=0, max_value=Fraction(1, 2), max_denominator=12)
bounded = settings(derandomize=True, max_examples=80, deadline=None)


@given(functions)
@bounded
def test_a_value_is_the_table_or_a_side(f: LatticeFunction) -> None:
    """Inside the table its entry, outside the polynomial of that side, by the definition."""
    for k in POINTS:
        inside = f.start <= k < f.start + len(f.table)
        side = f.left if k < f.start else f.right
        wanted = (
            f.table[k - f.start] if inside else sum((c * Fraction(k) ** i for i, c in enumerate(side)), Fraction(0))
        )
        assert f(k) == wanted
    assert f.values(-30, 30) == [f(k) for k in POINTS]
    numerators, unit = f.integers(-30, 30)
    assert [Fraction(n, unit) for n in numerators] == [f(k) for k in POINTS]


@pytest.mark.slow
@given(functions, functions, values)
@bounded
def test_arithmetic_is_pointwise(f: LatticeFunction, g: LatticeFunction, factor: Fraction) -> None:
    """Sum, difference, multiple and mirror image, at points far beyond both tables as well."""
    total, difference, multiple, mirrored = f + g, f - g, f.scaled(factor), f.mirrored()
    for k in POINTS:
        assert total(k) == f(k) + g(k)
        assert difference(k) == f(k) - g(k)
        assert multiple(k) == factor * f(k)
        assert mirrored(k) == f(-k)
    assert mirrored.mirrored().equals(f)


@given(functions, st.integers(0, 4), st.integers(0, 4), st.integers(-30, 30))
@bounded
def test_equality_is_of_functions_not_of_tables(f: LatticeFunction, left: int, right: int, at: int) -> None:
    """The same function with a longer table is equal; one value changed is not, wherever it is."""
    low, high = f.start - left, f.end + right
    longer = LatticeFunction(low, tuple(f.values(low, high - 1)), f.left, f.right)
    assert f.equals(longer) and longer.equals(f)
    changed = f + LatticeFunction(at, (Fraction(1, 7),))
    assert not f.equals(changed) and not changed.equals(longer)
    assert f.scaled(-1).equals(f, scale=-1)


@given(functions)
@bounded
def test_parity(f: LatticeFunction) -> None:
    """f(k) + f(-k) is even, f(k) - f(-k) is odd, and the flags agree with the values."""
    assert (f + f.mirrored()).is_even
    assert (f - f.mirrored()).is_odd
    assert f.is_even == all(f(k) == f(-k) for k in POINTS)
    assert f.is_odd == all(f(k) == -f(-k) for k in POINTS)


@given(functions)
@bounded
def test_reach(f: LatticeFunction) -> None:
    """Beyond the reach only the polynomials speak."""
    for k in range(f.reach, 31):
        assert f(k) == evaluate(f.right, k)
    for k in range(f.reach + 1, 31):
        assert f(-k) == evaluate(f.left, -k)


@pytest.mark.slow
@given(functions, st.integers(-15, 15), st.integers(1, 5), st.sampled_from([1, -1]), ratios)
@bounded
def test_tail_sums_are_the_limit_of_long_sums(
    f: LatticeFunction, first: int, step: int, sign: int, ratio: Fraction
) -> None:
    """Sum of r^t f(first + t step) in closed form against 180 terms; what is left is below 2^-100."""
    step *= sign
    found = f.tail_sum(first, step, ratio)
    total, power = Fraction(0), Fraction(1)
    for t in range(180):
        total += power * f(first + t * step)
        power *= ratio
    assert abs(found - total) <= Fraction(1, 2**100)
    assert found == f(first) + ratio * f.tail_sum(first + step, step, ratio)


@given(ratios)
@bounded
def test_geometric_sums_in_closed_form(r: Fraction) -> None:
    """Sums of r^t t^j for j = 0..3 (Eulerian polynomials)."""
    closed = (1 / (1 - r), r / (1 - r) ** 2, r * (1 + r) / (1 - r) ** 3, r * (1 + 4 * r + r * r) / (1 - r) ** 4)
    for power, wanted in enumerate(closed):
        monomial = (*(Fraction(0),) * power, Fraction(1))
        assert geometric_sum(monomial, r) == wanted
    assert geometric_sum(tuple(map(Fraction, (2, -1, 0, 5))), r) == 2 * closed[0] - closed[1] + 5 * closed[3]
    assert geometric_sum((), r) == 0


@given(polynomials, values, values)
@bounded
def test_shifted_polynomials(p: tuple[Fraction, ...], by: Fraction, step: Fraction) -> None:
    """t -> p(by + step t), at some t."""
    moved = shifted(p, by, step=step)
    for t in range(-4, 5):
        assert evaluate(moved, t) == evaluate(p, by + step * t)


def test_a_tail_near_one() -> None:
    """A ratio of 1 - 10^-9 is no trouble for a closed form: sum of r^t (t + 5)."""
    r = 1 - Fraction(1, 10**9)
    absolute = LatticeFunction(0, (), (Fraction(0), Fraction(-1)), (Fraction(0), Fraction(1)))
    assert absolute.tail_sum(5, 1, r) == 5 * 10**9 + r * 10**18
    assert absolute.tail_sum(-5, -1, r) == 5 * 10**9 + r * 10**18


def test_constants_and_polynomials() -> None:
    """The two short constructors, and trailing zeros that do not count."""
    assert [LatticeFunction.constant(3)(k) for k in (-9, 0, 9)] == [3, 3, 3]
    square = LatticeFunction.polynomial((1, 0, 2, 0))
    assert [square(k) for k in (-2, 0, 3)] == [9, 1, 19]
    assert square.right == (1, 0, 2)
    assert LatticeFunction().equals(LatticeFunction.constant(0))
    with pytest.raises(AttributeError):
        square.start = 4  # type: ignore[misc]
