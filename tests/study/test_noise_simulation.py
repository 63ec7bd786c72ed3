"""The simulation of Fig. 10: data, empirical W1, frequencies, and what the runs show."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.release.randomness import InsecureRandomness
from dpopt.study.noise_simulation import (
    Simulation,
    empirical_wasserstein,
    quantile_data,
    simulate,
    simulated_wasserstein,
)
from dpopt.study.utility import utility


def seeded(seed: int = 7) -> InsecureRandomness:
    return InsecureRandomness(seed)


# --- data and distance -----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(weights=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), size=st.integers(1, 40))
def test_the_data_are_the_quantiles(weights: list[int], size: int) -> None:
    """Record i is the least k with F(k) >= (i + 1/2) / size; of multiples of the total, exactly the input's shares."""
    law = dp.Pmf(-2, weights)
    data = quantile_data(law, size)
    assert data.dtype == np.int64 and data.shape == (size,)
    for i, record in enumerate(data.tolist()):
        place = Fraction(2 * i + 1, 2 * size)
        upto = sum((law.probability(k) for k in range(-2, record + 1)), Fraction(0))
        assert upto >= place > upto - law.probability(record)
    exact = quantile_data(law, 2 * sum(weights))
    assert [2 * w for w in weights] == [int((exact == k - 2).sum()) for k in range(len(weights))]


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=6))
def test_empirical_wasserstein_is_the_cheapest_matching(pairs: list[tuple[int, int]]) -> None:
    """Over all matchings of the records, and as the area between the two empirical distribution functions."""
    here, there = [a for a, _ in pairs], [b for _, b in pairs]
    found = empirical_wasserstein(here, there)
    cheapest = min(sum(abs(a - b) for a, b in zip(here, chosen, strict=True)) for chosen in permutations(there))
    assert found == Fraction(cheapest, len(pairs))
    area = sum(abs(sum(a <= k for a in here) - sum(b <= k for b in there)) for k in range(-10, 11))
    assert found == Fraction(area, len(pairs))


def test_distances_beyond_int64_and_of_unlike_samples() -> None:
    assert empirical_wasserstein(np.array([0, 1], object), np.array([2**80, 1], object)) == 2**79
    with pytest.raises(dp.InputError, match="private: must have as many records"):
        empirical_wasserstein([1, 2], [1])


@pytest.mark.parametrize("law", [dp.Pmf(0, (1,), tails=dp.Tails(1, right="1/2")), dp.Pmf(0, (1, 1), step=2), "x"])
def test_only_finite_inputs_on_the_integers(law: object) -> None:
    with pytest.raises(dp.InputError, match="input: must be a finite law on the integers"):
        quantile_data(law, 10)  # type: ignore[arg-type]


# --- runs ------------------------------------------------------------------------------------------------------------


def test_runs_scatter_about_the_exact_distance() -> None:
    """With 4,000 records the mean of the runs is W1 of the law within a few per cent, in the same order."""
    law = dp.gaussian(0, 5)
    found = simulate(law, epsilon=2, sensitivity=15, size=4000, runs=20, randomness=seeded())
    expected = {
        "optimal": 3.9363744036,
        "Laplace": 4.7365217477,
        "staircase 5": 4.8281064949,
        "staircase 20": 9.4808369895,
    }
    assert [name for name, _ in found.distances] == list(expected)
    for name, distances in found.distances:
        assert len(distances) == 20
        assert all((4000 * distance).denominator == 1 for distance in distances)
        assert float(sum(distances) / 20) == pytest.approx(expected[name], rel=0.04)
        assert min(distances) < max(distances)
    assert found.smallest["optimal"] == 1 and found.smallest["staircase 20"] == 0


def test_the_same_randomness_gives_the_same_runs() -> None:
    runs = [simulate(dp.poisson(3), epsilon=1, sensitivity=2, size=60, runs=4, randomness=seeded(3)) for _ in range(2)]
    other = simulate(dp.poisson(3), epsilon=1, sensitivity=2, size=60, runs=4, randomness=seeded(4))
    assert runs[0] == runs[1] != other
    assert len({distance for _, found in runs[0].distances for distance in found}) > 4


def test_an_unmarked_seed_is_refused() -> None:
    for randomness in (1, np.random.default_rng(1)):
        with pytest.raises(dp.InputError, match="InsecureRandomness"):
            simulate(dp.poisson(3), epsilon=1, sensitivity=2, size=5, runs=1, randomness=randomness)  # type: ignore[arg-type]


def test_runs_that_are_all_alike() -> None:
    """One bin of no width holds them all, and each mechanism is the best in every run."""
    same = (Fraction(1, 3),) * 4
    found = Simulation(Fraction(1), Fraction(1), 3, (("a", same), ("b", same)))
    edges, shares = found.frequencies(4)
    assert edges == same[:1] * 5 and all(share == (1, 0, 0, 0) for share in shares.values())
    assert found.smallest == {"a": 1, "b": 1}


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12),
    bins=st.integers(1, 7),
)
def test_frequencies_and_shares_add_up(values: list[tuple[int, int]], bins: int) -> None:
    first, second = (tuple(Fraction(pair[i], 7) for pair in values) for i in (0, 1))
    found = Simulation(Fraction(1), Fraction(1), 7, (("a", first), ("b", second)))
    edges, shares = found.frequencies(bins)
    assert len(edges) == bins + 1 and edges[0] == min(first + second) and edges[-1] == max(first + second)
    for name, distances in found.distances:
        assert sum(shares[name]) == 1
        for i in range(bins - 1):
            inside = sum(edges[i] <= d < edges[i + 1] for d in distances)
            assert shares[name][i] * len(values) == (inside if edges[0] < edges[-1] else len(values) * (i == 0))
    ties = sum(a == b for a, b in values)
    assert sum(found.smallest.values()) == 1 + Fraction(ties, len(values))


# --- Fig. 10 ---------------------------------------------------------------------------------------------------------


def test_the_figure_has_its_rows() -> None:
    settings_ = [("0.5", 5), (2, 5)]
    figure = simulated_wasserstein(settings_, size=1000, runs=12, bins=6, randomness=seeded())
    assert figure.title == "Fig. 10: W1 of 1000 records in 12 runs, input gaussian(0, 5) (insecure seed)"
    assert len(figure.rows) == 2 * (4 + 6)
    again = [
        simulate(dp.gaussian(0, 5), epsilon=e, sensitivity=m, size=1000, runs=12, randomness=source)
        for source in [seeded()]
        for e, m in settings_
    ]
    for i, simulation in enumerate(again):
        block = [dict(zip(figure.columns, row, strict=True)) for row in figure.rows[10 * i : 10 * (i + 1)]]
        assert {(row["epsilon"], row["sensitivity"]) for row in block} == {(float(settings_[i][0]), 5.0)}
        average, least, largest, smallest, *frequencies = block
        for name, distances in simulation.distances:
            assert average[name] == pytest.approx(float(sum(distances) / 12), rel=1e-15)
            assert (least[name], largest[name]) == (float(min(distances)), float(max(distances)))
            assert sum(row[name] for row in frequencies) == pytest.approx(1)
            assert smallest[name] == float(simulation.smallest[name])
        centres = [row["W1"] for row in frequencies]
        assert all(a < b for a, b in zip(centres, centres[1:], strict=False))
        assert average["W1"] is None
        # what the paper says of its figure: the optimum is best in most runs, and by far best on average at epsilon = 2
        best = utility(
            dp.solve(dp.wasserstein(input=dp.gaussian(0, 5), epsilon=settings_[i][0], sensitivity=5)), dp.gaussian(0, 5)
        )
        assert average["optimal"] == pytest.approx(float(best.wasserstein), rel=0.25)
    assert smallest["optimal"] > 0.5


@pytest.mark.parametrize(
    ("arguments", "location"),
    [
        ({"size": 0}, "size"),
        ({"size": 10**8}, "size"),
        ({"runs": 0}, "runs"),
        ({"bins": 0}, "bins"),
        ({"settings": []}, "settings"),
        ({"settings": [(0, 1)]}, "epsilon"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], location: str) -> None:
    with pytest.raises(dp.InputError) as caught:
        simulated_wasserstein(**{"settings": [(1, 1)], "input": dp.point(0), "size": 5, "runs": 2} | arguments)
    assert caught.value.location.endswith(location)
