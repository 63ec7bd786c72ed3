"""Small counts, which the ABS paper leaves open: noise that depends on the count, clamping, and the zero row."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

import dpopt as dp

# values.json, group delta_curves: kinds per_count_pair (D = 5, V = 2, epsilon = 1), clamp_bias, zero_row_floor
PAIRS = [
    (0, "0", "0.512015130914"),
    (1, "0.060823494924", "0.019146468374"),
    (2, "0.0638017073329", "0.0105536973561"),
    (3, "0.0479132379547", "0.0362250863196"),
    (4, "0.0435827864865", "0.0418417071025"),
    (5, "0.04278388643", "0.04278388643"),
]
BIASES = ["0.54024629", "0.18121502", "0.041826128", "0.0062871318", "0.00054857467", "0"]
ZERO_ROWS = [(2, 1, "0.601935289"), (3, 1, "0.61856692"), (5, 2, "0.479617847"), (10, 4, "0.397575809")]


def unit(text: str) -> float:
    """One unit of the last digit shown."""
    return 10.0 ** int(Decimal(text).as_tuple().exponent)


def row(count: int, half_width: int, variance: int, *, equals: bool = False) -> dp.Pmf:
    """Max-entropy noise on [-min(count, D), D] with mean 0 and the variance bounded, or exact."""
    spread = dp.Variance(variance) if equals else dp.Variance(at_most=variance)
    question = dp.Problem(
        support=dp.Integers(-min(count, half_width), half_width),
        objective=dp.MaxEntropy(),
        constraints=[dp.Mean(0), spread],
    )
    return dp.solve(question).require_verified().pmf


def output(count: int) -> dp.Pmf:
    """The law of the published count."""
    noise = row(count, 5, 2)
    return dp.Pmf(noise.start + count, noise.weights)


@pytest.mark.parametrize(("count", "forward", "reverse"), PAIRS)
def test_neighbouring_rows_in_both_directions(count: int, forward: str, reverse: str) -> None:
    """Noise that depends on the count is not one additive noise: each pair (n, n + 1) has its own two deltas."""
    here, there = output(count), output(count + 1)
    assert float(dp.delta_between(here, there, 1)) == pytest.approx(float(forward), abs=unit(forward))
    assert float(dp.delta_between(there, here, 1)) == pytest.approx(float(reverse), abs=unit(reverse))


@pytest.mark.parametrize("count", range(6))
def test_clamping_biases_small_counts(count: int) -> None:
    """max(0, n + Z) keeps (epsilon, delta) but moves the mean."""
    noise = row(5, 5, 2)
    bias = sum((max(0, count + z) - count) * noise.probability(z) for z in range(-5, 6))
    assert float(bias) == pytest.approx(
        float(BIASES[count]), abs=max(unit(BIASES[count]), 1e-15) if count < 5 else 1e-15
    )


@pytest.mark.parametrize(("half_width", "variance", "floor"), ZERO_ROWS)
def test_the_zero_row_kills_privacy(half_width: int, variance: int, floor: str) -> None:
    """0 is never perturbed: between counts 0 and 1, delta is at least P(output is not 0 | count 1) at every epsilon."""
    noise = row(1, half_width, variance, equals=True)
    one = dp.Pmf(noise.start + 1, noise.weights)
    leaves = 1 - one.probability(0)
    assert float(leaves) == pytest.approx(float(floor), abs=unit(floor))
    assert dp.delta_between(one, dp.Pmf(0, (1,)), 300).lower >= leaves - Fraction(1, 10**100)


def test_wrong_laws_are_refused() -> None:
    """Tails and other lattices have no place here."""
    half = Fraction(1, 2)
    for wrong in (dp.Pmf(0, (1,), tails=dp.Tails(1, right=half)), dp.Pmf(0, (1,), step=half)):
        with pytest.raises(dp.InputError, match="neighbour: must have"):
            dp.delta_between(dp.Pmf(0, (1,)), wrong, 1)
    with pytest.raises(dp.InputError, match="epsilon: must be at least 0"):
        dp.delta_between(dp.Pmf(0, (1,)), dp.Pmf(0, (1,)), -1)
