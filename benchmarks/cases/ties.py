"""Noisy top-k on the inputs that are worst for it, beside distinct scores of the same number, in one run.

    python -m benchmarks.cases.ties

It is no problem with phases, and so not a `Case`: it runs by itself, under the same stopwatch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import measure
from dpopt.release.top_k import Ties, noisy_top_k

SIZE = 1_000_000
AT_MOST = 10.0  # times distinct scores of the same kind, by permutation; refinement promises nothing


def settings(size: int) -> list[tuple[int, str]]:
    """k and epsilon: noise from wider than the scores to none; few, half, and all but one of the items."""
    few, half = min(100, size // 4), size // 2
    return [
        (1, "1e-3"), (1, "100"), (1, "1e4"),
        (few, "1"), (few, "1e4"), (few, "1e6"),
        (size // 4, "1e9"), (half, "1"), (half, "1e9"), (size - 1, "1"), (size - 1, "1e9"),
    ]  # fmt: skip


def inputs(size: int) -> dict[str, dict[str, Any]]:
    """Ties of every kind and orders of every kind; of each kind of number the first is what the others are compared to.

    Kinds: integers, integers that lie more than 62 bits apart (Python's own), floats.
    """
    generator, half, few = np.random.default_rng(1), size // 2, min(50, size // 4)
    distinct, zeros = generator.permutation(size), np.zeros(size, dtype=np.int64)
    ahead = zeros.copy()
    ahead[generator.choice(size, few, replace=False)] = np.arange(1, few + 1) * 10**9
    ties = {
        "all equal": zeros,
        "two values": generator.integers(0, 2, size),
        "a hundred values": generator.integers(0, 100, size),
        "a few ahead": ahead,
        "a few behind": -ahead,
        "half tied": np.concatenate([zeros[:half], np.arange(size - half)]),
    }
    orders = {
        "ascending": np.arange(size),
        "descending": -np.arange(size),
        "far apart": distinct * 10**11,
        "as sampled": np.where(
            np.arange(size) % max(size >> 12, 1) == 0, -1, distinct
        ),  # what selection looks at first
    }
    wide = {"distinct": distinct, "all equal": zeros, "a few ahead": ahead}
    return {
        "integers": {"distinct": distinct, **ties, **orders},
        "beyond 62 bits": {name: scores.astype(object) * 2**50 for name, scores in wide.items()},
        "floats": {name: scores / 10 for name, scores in {"distinct": distinct, **ties}.items()},
    }


def seconds(scores: Any, k: int, epsilon: str, ties: Ties, repeat: int) -> float:
    """Processor seconds of the repetition that others disturbed least."""

    def set_up() -> Callable[[], Any]:
        return lambda: noisy_top_k(scores, k, epsilon, ties=ties, round_down=True)

    return measure(set_up, repeat)[0].cpu_least


def main(repeat: int = 3, size: int = SIZE, of: tuple[Ties, ...] = tuple(Ties)) -> int:
    """Print the ratios to distinct scores, the largest first; status 1 where a demand is not met."""
    met = True
    for ties in of:
        for k, epsilon in settings(size):
            for kind, scores in inputs(size).items():
                times = {name: seconds(found, k, epsilon, ties, repeat) for name, found in scores.items()}
                own = times.pop("distinct")
                ratios = sorted(((time / own, name) for name, time in times.items()), reverse=True)
                held = ratios[0][0] <= AT_MOST or ties is Ties.REFINEMENT
                met &= held
                shown = ", ".join(f"{name} {ratio:.1f}" for ratio, name in ratios[:3])
                head = f"ties [{ties}, k = {k}, epsilon = {epsilon}, {kind}] distinct {1000 * own:.1f} ms cpu"
                demand = "none" if ties is Ties.REFINEMENT else f"at most {AT_MOST:g}: {'met' if held else 'NOT MET'}"
                sys.stdout.write(f"{head}; times that: {shown}; demand: {demand}\n")
                sys.stdout.flush()
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
