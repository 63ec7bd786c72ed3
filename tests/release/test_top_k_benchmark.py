"""The benchmark of noisy top-k runs, and its unsafe float peer has the law it is a reference for. Never a time."""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))  # benchmarks/ is beside the package, not in it

from benchmarks.cases.top_k import main  # noqa: E402
from benchmarks.release_peers import unsafe_rounded_top_k, unsafe_top_k  # noqa: E402
from dpopt.release.selection_law import Outcome, SelectionLaw  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize(("values", "k", "x"), [((2, 0, 0), 1, "1/4"), ((6, 3, 0), 2, "2"), ((1, 1, 0, 0), 2, "2")])
def test_the_continuous_algorithm_rounded_at_the_end_has_the_exact_law(values: tuple[int, ...], k: int, x: str) -> None:
    """Algorithm 2 by definition, in floats: a second way to the law, without cells, ties or permutations."""
    generator, rate = np.random.default_rng(12), Fraction(x)
    scores, law = np.array(values), SelectionLaw(values, k, rate)
    counts: Counter[Outcome] = Counter()
    for _ in range(20_000):
        items, gaps = unsafe_rounded_top_k(scores, k, float(rate), generator)
        counts[Outcome(tuple(items.tolist()), tuple(gaps.tolist()))] += 1
    found = law.fit(counts, 8 if k == 2 else 30)
    assert found.p_value > 1e-3, found


def test_the_continuous_algorithm_without_noise() -> None:
    items, gaps = unsafe_top_k(np.array([4.0, 9.0, 1.0, 7.5]), 2, 1e-12, np.random.default_rng(1))
    assert items.tolist() == [1, 3]
    np.testing.assert_allclose(gaps, [1.5, 3.5], atol=1e-9)


@pytest.mark.slow
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """At a small size, where its demands say nothing."""
    assert main(repeat=1, size=2000) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert sum("times unsafe floats" in line for line in lines) == 2
    assert sum("times an integer-only loop" in line for line in lines) == 2
    assert sum("OpenDP" in line for line in lines) == 2
