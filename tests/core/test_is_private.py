"""Whether noise is (epsilon, delta)-DP, decided exactly: closed forms, boundaries, and the definition itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import is_at_most_exp

HALF = Fraction(1, 2)
TWO_SIDED = dp.Pmf(0, (1,), tails=dp.Tails(1, HALF, HALF))  # p(k) = 2^-|k| / 3: the least epsilon is ln 2 a step
LN2 = Fraction("0.6931471805599453094172321214581765680755001343602552")  # below ln 2, and right to 2e-53
A_BIT = Fraction(1, 10**52)


@pytest.mark.parametrize("epsilon", ["0.1", "1/3", "0.7", "1.1", "1/2", "1", "2"])
def test_an_optimum_is_private_at_the_epsilon_it_was_made_for_and_at_no_smaller_one(epsilon: str) -> None:
    solution = dp.solve(dp.wasserstein(input=dp.poisson(3), epsilon=epsilon, sensitivity=2))
    assert dp.is_private(solution.pmf, epsilon, sensitivity=2) is True
    assert dp.is_private(solution, epsilon, sensitivity=2) is True  # what has a pmf
    assert dp.is_private(solution, Fraction(epsilon) - Fraction(1, 10**30), sensitivity=2) is False
    written = "0.5" if epsilon == "1/2" else epsilon
    assert f"epsilon {written}, delta 0 at sensitivity 2" in str(solution)
    if epsilon != "1/3":  # not a decimal
        profile = dp.privacy_profile(solution, sensitivity=2)
        assert str(profile).startswith(
            f"privacy profile at sensitivity 2, 200 epsilons; delta 0 from epsilon {written} on"
        )
        assert profile.decimal_epsilon(0) == Fraction(epsilon)


@pytest.mark.parametrize("shift", [1, 2, 7])
def test_pure_privacy_of_geometric_tails_turns_at_ln_two_a_step(shift: int) -> None:
    for delta in (0, Fraction(1, 10**90)):
        assert not dp.is_private(TWO_SIDED, shift * LN2, delta, sensitivity=shift)
    assert dp.is_private(TWO_SIDED, shift * (LN2 + A_BIT), sensitivity=shift)


def test_delta_exactly_attained() -> None:
    # delta(epsilon) = floor whatever epsilon, attained: uniform noise moved by m loses m of its N points
    uniform = dp.uniform(0, 9)
    for epsilon in (0, "0.3", 5):
        assert dp.is_private(uniform, epsilon, Fraction(3, 10), sensitivity=3)
        assert not dp.is_private(uniform, epsilon, Fraction(3, 10) - Fraction(1, 10**40), sensitivity=3)
    # at epsilon 0 delta is the total variation distance, a rational number
    coin = dp.Pmf(-1, (1, 3, 1))
    assert dp.is_private(coin, 0, Fraction(3, 5)) and not dp.is_private(coin, 0, Fraction(3, 5) - Fraction(1, 10**40))
    assert dp.is_private(TWO_SIDED, 0, Fraction(1, 3)) and not dp.is_private(TWO_SIDED, 0, Fraction(333, 1000))
    assert dp.is_private(coin, 0, 1) and dp.is_private(uniform, 0, 1, sensitivity=50)


def test_in_between_delta_is_told_apart_from_a_multiple_of_e() -> None:
    # one pair counts at epsilon 1/2 on (1, 3, 1)/5: delta = 1/5 + (3 - e^(1/2)) / 5
    coin, e = dp.Pmf(-1, (1, 3, 1)), Fraction("1.648721270700128146848650787814163571653776100710")  # below e^(1/2)
    delta = (4 - e) / 5
    assert dp.is_private(coin, "1/2", delta)  # above the least by 1e-49 or so
    assert not dp.is_private(coin, "1/2", delta - Fraction(1, 10**48))


def test_one_sided_noise_is_judged_in_both_directions() -> None:
    right = dp.Pmf(0, (1,), tails=dp.Tails(1, right=HALF))  # p(k) = 2^-(k+1): moved up, its first point is alone
    assert dp.is_private(right, 0, HALF) and not dp.is_private(right, 5, Fraction(499, 1000))
    assert not dp.is_private(right, 100)


def test_long_sensitivities_are_decided_too() -> None:
    assert dp.is_private(TWO_SIDED, 100, "0.999999999", sensitivity=10**5) is False
    assert dp.is_private(TWO_SIDED, 100, 1, sensitivity=10**5) is True
    wide = dp.laplace(1000)
    assert dp.is_private(wide, 30, sensitivity=30_000) and not dp.is_private(wide, "29.9", sensitivity=30_000)
    assert dp.is_private(wide, "29.9", "0.1", sensitivity=30_000)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((object(), 1), "pmf"), ((TWO_SIDED, "x"), "epsilon"), ((TWO_SIDED, -1), "epsilon"),
        ((TWO_SIDED, 701), "epsilon"),
        ((TWO_SIDED, 1, 2), "delta"), ((TWO_SIDED, 1, -1), "delta"), ((TWO_SIDED, 1, None), "delta"),
        ((TWO_SIDED, 1, 0, 0), "sensitivity"), ((TWO_SIDED, 1, 0, HALF), "sensitivity"),
        ((TWO_SIDED, 1, 0, 10**8), "sensitivity"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: tuple, named: str) -> None:
    with pytest.raises(dp.InputError) as caught:
        dp.is_private(*arguments)
    assert caught.value.location == named


# --- the definition: for every event and every shift, P(A) <= e^epsilon Q(A) + delta -------------------------------


def by_definition(weights: list[int], shift: int, epsilon: Fraction, delta: Fraction) -> bool:
    size, total = len(weights), sum(weights)
    p = {k: Fraction(w, total) for k, w in enumerate(weights)}
    for moved in (m for s in range(1, shift + 1) for m in (s, -s)):
        points = range(-shift, size + shift)
        for event in chain.from_iterable(combinations(points, r) for r in range(len(points) + 1)):
            mass = sum(p.get(k, Fraction(0)) for k in event) - delta
            other = sum(p.get(k - moved, Fraction(0)) for k in event)
            if mass > 0 and (other == 0 or not is_at_most_exp(mass / other, epsilon)):
                return False
    return True


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any),
    st.integers(1, 2),
    st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(2)]),
    st.fractions(0, 1, max_denominator=12),
)
def test_every_event_is_covered(weights: list[int], shift: int, epsilon: Fraction, delta: Fraction) -> None:
    assert dp.is_private(dp.Pmf(0, weights), epsilon, delta, shift) == by_definition(weights, shift, epsilon, delta)
