"""The export to dp_accounting: never below the truth, equal to it on a matched grid, and what its own grid does."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pytest
from dp_accounting.pld import privacy_loss_distribution as library
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.accounting import to_dp_accounting

FAR = 40  # points beyond the core that the sums of these tests write out


def factor(epsilon: float) -> tuple[Fraction, Fraction]:
    """Rationals on both sides of e^epsilon for the float as it is."""
    with ctx.workprec(200):
        power = (arb(epsilon).exp() * arb(2) ** 150).floor().unique_fmpz()
    assert power is not None
    return Fraction(int(power), 1 << 150), Fraction(int(power) + 1, 1 << 150)


def masses(pmf: dp.Pmf, by: int = 0) -> dict[int, Fraction]:
    """The probabilities of noise + by at the points that these tests write out, zeros left out."""
    margin = FAR if pmf.tails is not None else 0
    points = range(pmf.start - margin, pmf.end + margin + 1)
    return {k + by: pmf.probability(k) for k in points if pmf.probability(k)}


def excess(output: Mapping[int, Fraction], neighbour: Mapping[int, Fraction], times: Fraction) -> Fraction:
    """The hockey-stick divergence, point by point."""
    return sum((max(p - times * neighbour.get(k, Fraction(0)), Fraction(0)) for k, p in output.items()), Fraction(0))


def shifts(reach: int) -> Iterator[int]:
    """All moves of a neighbour, in both directions."""
    return (sign * s for s in range(1, reach + 1) for sign in (1, -1))


def worst(pmf: dp.Pmf, reach: int, epsilon: float) -> Fraction:
    """A lower bound of the largest divergence at e^epsilon over all shifts: tight but for far-out tails."""
    here = masses(pmf)
    there = [masses(pmf, s) for s in shifts(reach)]
    inside = {k for k in here if pmf.tails is None or pmf.start - FAR + reach <= k <= pmf.end + FAR - reach}
    output = {k: p for k, p in here.items() if k in inside}
    return max(excess(output, moved, factor(epsilon)[1]) for moved in there)


# --- never below -----------------------------------------------------------------------------------------------------

finite_pmfs = st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(lambda w: sum(map(bool, w)) >= 2)
ratios = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)])
tailed_pmfs = st.builds(
    lambda weights, left, right: dp.Pmf(0, weights, tails=dp.Tails(len(weights), left, right)),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    ratios,
    ratios,
)
pmfs = st.builds(lambda weights: dp.Pmf(-1, weights), finite_pmfs) | tailed_pmfs
epsilons = st.floats(1e-3, 4) | st.sampled_from([0.0, math.log(2), math.log(1.5), 2 * math.log(3), 0.1, 1.0])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(pmf=pmfs, reach=st.integers(1, 3), interval=st.sampled_from([None, 0.25, "0.1", math.log(2)]), epsilon=epsilons)
def test_delta_is_never_below_the_truth(pmf: dp.Pmf, reach: int, interval: object, epsilon: float) -> None:
    """Not by one unit in the last place: at any float epsilon, all shifts, both directions, with and without zeros."""
    if dp.privacy_profile(pmf, [0], sensitivity=reach).floor == 1:
        with pytest.raises(dp.InputError, match="sensitivity: must be smaller"):
            to_dp_accounting(pmf, reach)
        return
    found = to_dp_accounting(pmf, reach, value_discretization_interval=interval)
    reported = Fraction(float(found.get_delta_for_epsilon(epsilon)))
    assert reported >= dp.delta(pmf, Fraction(epsilon), reach).upper
    assert reported >= worst(pmf, reach, epsilon)
    # E < 1 never matters on its own, but it does in compositions
    assert float(found.get_delta_for_epsilon(-epsilon)) * (1 + 1e-14) >= worst(pmf, reach, -epsilon)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(pmf=pmfs, reach=st.integers(1, 2), interval=st.sampled_from([0.25, "0.1"]), data=st.data())
def test_compositions_dominate_every_combination_of_moves(
    pmf: dp.Pmf, reach: int, interval: object, data: st.DataObject
) -> None:
    """Three runs, each of whose inputs moves in a direction of its own: pairs of outputs, point by point."""
    if dp.privacy_profile(pmf, [0], sensitivity=reach).floor == 1:
        return
    composed = to_dp_accounting(pmf, reach, value_discretization_interval=interval).self_compose(3)
    moves = [data.draw(st.sampled_from([0, *shifts(reach)])) for _ in range(3)]
    pairs: Counter[tuple[Fraction, Fraction]] = Counter({(Fraction(1), Fraction(1)): 1})
    for move in moves:
        here, there = masses(pmf), masses(pmf, move)
        kept = [(here[k], there.get(k, Fraction(0))) for k in sorted(here, key=lambda k: -here[k])[:12]]
        grown: Counter[tuple[Fraction, Fraction]] = Counter()
        for (p, q), count in pairs.items():
            for a, b in kept:
                grown[p * a, q * b] += count
        pairs = grown
    epsilon = data.draw(st.sampled_from([0.0, 0.5, 1.0, math.log(2), 2.5]))
    high = factor(epsilon)[1]
    true = sum(count * max(p - high * q, Fraction(0)) for (p, q), count in pairs.items())
    assert Fraction(float(composed.get_delta_for_epsilon(epsilon))) >= true


@pytest.mark.parametrize(
    ("pmf", "reach"),
    [
        (dp.Pmf(0, (1,), tails=dp.Tails(1, Fraction(2, 3), Fraction(2, 3))), 1),
        (dp.Pmf(0, (1,), tails=dp.Tails(1, Fraction(2, 3), Fraction(1, 3))), 1),
        (dp.Pmf(-1, (1, 3, 2)), 1),
        (dp.Pmf(-2, (1, 4, 9, 4, 1)), 2),
    ],
    ids=["geometric", "lopsided", "three-points", "five-points"],
)
@pytest.mark.parametrize("interval", [None, 0.05])
def test_ten_compositions_are_never_below_the_exact_delta(pmf: dp.Pmf, reach: int, interval: float | None) -> None:
    """The exact law of ten losses: outputs with the same ratio together, multiplied out as rationals."""
    composed = to_dp_accounting(pmf, reach, value_discretization_interval=interval).self_compose(10)
    for move in (reach, -reach):
        law, lost = _ratios(pmf, move)
        tenth, kept = {Fraction(1): Fraction(1)}, (1 - lost) ** 10
        for _ in range(10):
            grown: dict[Fraction, Fraction] = {}
            for ratio, mass in tenth.items():
                for other, share in law.items():
                    grown[ratio * other] = grown.get(ratio * other, Fraction(0)) + mass * share
            tenth = grown
        for epsilon in (0.0, 0.3, 1.0, 2.0, 3.5, 6.0):
            high = factor(epsilon)[1]
            true = 1 - kept + sum(mass * max(1 - high / ratio, Fraction(0)) for ratio, mass in tenth.items())
            reported = Fraction(float(composed.get_delta_for_epsilon(epsilon)))
            assert reported >= true
            if interval is None and pmf.is_symmetric:  # else both directions together are worse than either
                assert reported <= true * Fraction("1.01") + Fraction(1, 10**14)


def _ratios(pmf: dp.Pmf, move: int) -> tuple[dict[Fraction, Fraction], Fraction]:
    """The exact law of p(k) / p(k - move), and the mass at which it is infinite; tails of period 1 in closed form."""
    law: Counter[Fraction] = Counter()
    lost = Fraction(0)
    margin = abs(move) + 1
    for k in range(pmf.start - margin, pmf.end + margin + 1):
        here, there = pmf.probability(k), pmf.probability(k - move)
        if here and there:
            law[here / there] += here
        elif here:
            lost += here
    if pmf.tails is not None:
        for end, ratio, out in (
            (pmf.end + margin, pmf.tails.right, 1),
            (pmf.start - margin, pmf.tails.left, -1),
        ):
            assert ratio is not None
            law[pmf.probability(end + out) / pmf.probability(end + out - move)] += (
                pmf.probability(end) * ratio / (1 - ratio)
            )
    assert sum(law.values()) + lost == 1
    return dict(law), lost


@pytest.mark.parametrize("index", [i for i in range(1, 200) if Fraction(i * 0.1) < i * Fraction(0.1)][:8])
def test_a_loss_that_the_library_rounds_down(index: int) -> None:
    """index * 0.1 in floats lies below the product: at that very epsilon the loss still counts."""
    with ctx.workprec(300):
        power = ((arb(0.1) * -index).exp() * arb(2) ** 200).floor().unique_fmpz()
    ratio = Fraction(int(power or 0), 1 << 200)
    pmf = dp.Pmf(0, (1,), tails=dp.Tails(1, ratio, ratio))
    true = dp.delta(pmf, Fraction(index * 0.1)).lower
    found = to_dp_accounting(pmf, value_discretization_interval=0.1)
    assert Fraction(float(found.get_delta_for_epsilon(index * 0.1))) >= true > 0


# --- equal on a matched grid -----------------------------------------------------------------------------------------


@cache
def matched(kind: str) -> tuple[dp.Profile, int]:
    """Noise whose losses are multiples of epsilon (staircase) or of epsilon / m (geometric), with its profile."""
    if kind == "staircase":
        pmf, reach = dp.solve(dp.wasserstein(input=dp.point(0), epsilon=2, sensitivity=15)).pmf, 15
    else:
        ratio = Fraction(math.exp(-1 / 8))
        pmf, reach = dp.Pmf(0, (1,), tails=dp.Tails(1, ratio, ratio)), 2
    largest = float(dp.epsilon(pmf, 0, reach).upper)
    return dp.privacy_profile(pmf, [Fraction(largest * i / 41) for i in range(41)], sensitivity=reach), reach


@pytest.mark.parametrize(
    ("kind", "interval"),
    [(kind, interval) for kind, last in (("staircase", 2), ("geometric", "0.25")) for interval in (None, last, "1e-3")]
    + [("staircase", "2/15"), ("staircase", "0.5"), ("geometric", "0.125")],
)
def test_a_matched_grid_is_exact_up_to_rounding(kind: str, interval: object) -> None:
    profile, reach = matched(kind)
    found = to_dp_accounting(profile.pmf, reach, value_discretization_interval=interval)
    for epsilon, true in zip(profile.epsilons, profile.upper, strict=True):
        reported = Fraction(float(found.get_delta_for_epsilon(float(epsilon))))
        assert true <= reported <= true * (1 + Fraction(1, 10**12))
    largest = 2 if kind == "staircase" else 0.25
    beyond = float(found.get_delta_for_epsilon(largest * (1 + 1e-12)))
    assert beyond <= 1e-13
    if interval is None or (kind, interval) == ("staircase", 2):  # no mass beyond the largest loss
        assert beyond == 0 and found.get_epsilon_for_delta(0.0) == pytest.approx(largest, rel=1e-13)


def test_a_finite_support_has_an_infinite_loss() -> None:
    for pmf, reach, floor in [
        (dp.uniform(0, 9), 3, Fraction(3, 10)),
        (dp.Pmf(0, (5, 1, 4)), 1, Fraction(1, 2)),
        (dp.Pmf(0, (1, 8, 2)), 2, Fraction(10, 11)),
    ]:
        found = to_dp_accounting(pmf, reach)
        for epsilon in (10.0, 600.0):
            reported = Fraction(float(found.get_delta_for_epsilon(epsilon)))
            assert floor <= reported <= floor * (1 + Fraction(1, 10**14))
        assert found.get_epsilon_for_delta(float(floor) * 0.999) == math.inf


def test_losses_beyond_what_a_float_can_exponentiate_are_infinite() -> None:
    pmf = dp.Pmf(0, (1, 10**400, 1, 1))
    found = to_dp_accounting(pmf, 1)
    assert found.get_delta_for_epsilon(800.0) >= 0.999999
    assert Fraction(float(found.get_delta_for_epsilon(650.0))) >= dp.delta(pmf, 650).upper


# --- the grid of the library itself ----------------------------------------------------------------------------------


def test_at_a_breakpoint_the_librarys_own_grid_is_ten_million_times_too_large() -> None:
    """The truncated discrete Laplace of scale 20 on 1,001 points at epsilon = 1/20: the true delta is 3.47e-13."""
    pmf = _truncated_laplace()
    true = dp.delta(pmf, Fraction(0.05)).upper
    assert float(true) == pytest.approx(3.4712628e-13, rel=1e-6)
    logs = {k: math.log(pmf.probability(k)) for k in range(-500, 501)}
    moved = {k + 1: value for k, value in logs.items()}
    theirs = library.from_two_probability_mass_functions(moved, logs).get_delta_for_epsilon(0.05)
    assert theirs > 1e7 * float(true)
    for interval in (None, "1e-4", "0.05"):
        ours = to_dp_accounting(pmf, value_discretization_interval=interval).get_delta_for_epsilon(0.05)
        assert true <= Fraction(float(ours)) <= true * Fraction("1.001")


def _truncated_laplace() -> dp.Pmf:
    weights = []
    with ctx.workprec(400):
        for k in range(501):
            weight = ((arb(-k) / 20).exp() * arb(2) ** 300).floor().unique_fmpz()
            assert weight is not None
            weights.append(int(weight))
    return dp.Pmf(-500, [*reversed(weights[1:]), *weights])


def test_it_composes_with_the_librarys_own_mechanisms() -> None:
    """The interval is the float that was asked for, to the last bit: the library insists on that."""
    geometric = to_dp_accounting(
        dp.Pmf(0, (1,), tails=dp.Tails(1, Fraction(1, 2), Fraction(1, 2))), value_discretization_interval=0.01
    )
    gaussian = library.from_gaussian_mechanism(2.0, value_discretization_interval=0.01)
    both = geometric.compose(gaussian)
    alone = [plain.get_delta_for_epsilon(0.5) for plain in (geometric, gaussian)]
    assert max(alone) < both.get_delta_for_epsilon(0.5) < sum(alone) + 0.2
    curve = [float(both.get_delta_for_epsilon(0.1 * i)) for i in range(30)]
    assert all(a >= b for a, b in pairwise(curve))


def test_a_step_and_anything_that_has_a_pmf() -> None:
    """Sensitivities are in data units, and a solution or a distribution stands for its pmf."""
    half = dp.Pmf(0, (1, 2, 1), step=Fraction(1, 2))
    whole = dp.Pmf(0, (1, 2, 1))
    deltas = [to_dp_accounting(pmf, m).get_delta_for_epsilon(0.2) for pmf, m in ((half, "1/2"), (whole, 1))]
    assert deltas[0] == deltas[1]
    law = dp.poisson(3)
    assert to_dp_accounting(law).get_delta_for_epsilon(1.0) == to_dp_accounting(law.pmf).get_delta_for_epsilon(1.0)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value_discretization_interval": 0}, "value_discretization_interval: must be above 0"),
        ({"value_discretization_interval": -1}, "value_discretization_interval: must be above 0"),
        ({"value_discretization_interval": 701}, "must be above 0 and at most 700, not 701"),
        ({"value_discretization_interval": "1e-9"}, "value_discretization_interval: must be at least 1.05e-06"),
        ({"value_discretization_interval": "x"}, "value_discretization_interval: must be a number"),
        ({"sensitivity": 0}, "sensitivity: must be positive"),
        ({"sensitivity": 3}, "sensitivity: must be smaller"),
    ],
)
def test_errors(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(dp.InputError, match=message):
        to_dp_accounting(dp.Pmf(-1, (1, 3, 1)), **arguments)


def test_not_a_pmf() -> None:
    with pytest.raises(dp.InputError, match="pmf: must be a Pmf or have one as its attribute 'pmf', not list"):
        to_dp_accounting([1, 2, 1])


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(dp.BackendError, match=r"pip install 'dpopt\[accounting\]'"):
        to_dp_accounting(dp.Pmf(0, (1, 1)))
