"""Noisy top-k with gap: exact and from the secure source, against unsafe floats, an integer-only loop, and OpenDP.

    python -m benchmarks.cases.top_k

It is no problem with phases, and so not a `Case`: it runs by itself, under the same stopwatch.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.measure import Verb, measure
from benchmarks.release_peers import installed, opendp_top_k, unsafe_top_k
from dpopt.release.integer_top_k import integer_top_k
from dpopt.release.selection_design import SelectionDesign
from dpopt.release.top_k import noisy_top_k, noisy_top_k_ids

SIZE, K, EPSILON = 1_000_000, 100, 1
FEW, FOR_OPENDP = 1_000, 10_000  # scores that the slow ones are given; they are compared by the score
OVER_FLOATS, OVER_INTEGERS = 5.0, 300.0  # the demands: at most, and at least
MEMORY = 4.0  # peak bytes over those of the scores, at most

DESIGN = SelectionDesign(K, EPSILON)  # type: ignore[arg-type]  # resolution 1/10


def skewed(size: int) -> np.ndarray:
    """Counts with a heavy tail, as item frequencies have."""
    return (np.random.default_rng(size).pareto(1.5, size) * 50).astype(np.int64)


def flat(size: int) -> np.ndarray:
    """Small counts without any structure: many ties."""
    return np.random.default_rng(size).integers(0, 50, size)


def ours(scores: np.ndarray) -> Verb:
    """Items and gaps, from the operating system's generator."""
    return lambda: noisy_top_k(scores, K, EPSILON)


def ours_without_gaps(scores: np.ndarray) -> Verb:
    """Items alone, which is what OpenDP returns."""
    return lambda: noisy_top_k_ids(scores, K, EPSILON)


def floats(scores: np.ndarray) -> Verb:
    """The unsafe peer, with a generator that is seeded once."""
    generator, scale = np.random.default_rng(1), float(DESIGN.scale)
    return lambda: unsafe_top_k(scores, K, scale, generator)


def integers(scores: np.ndarray) -> Verb:
    """One Python integer after the other: as the paper's own implementation does."""
    values = [DESIGN.units * int(score) for score in scores]
    return lambda: integer_top_k(values, K, DESIGN.rate)


def opendp(scores: np.ndarray) -> Verb:
    """OpenDP, its measurement set up untimed."""
    return opendp_top_k(scores.tolist(), K, float(DESIGN.scale))


def seconds(verb: Callable[[np.ndarray], Verb], scores: np.ndarray, repeat: int) -> float:
    """Processor seconds of the repetition that others disturbed least."""
    return measure(partial(verb, scores), repeat)[0].cpu_least


def peak_memory(scores: np.ndarray) -> float:
    """Peak bytes that the release allocates, over the bytes of the scores."""
    verb = ours(scores)
    verb()  # tables are made once
    tracemalloc.start()
    verb()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / scores.nbytes


def main(repeat: int = 7, size: int = SIZE) -> int:
    """Print seconds and ratios for skewed and flat scores; status 1 where a demand is not met."""
    met = True
    for make in (skewed, flat):
        scores, few = make(size), make(FEW)
        own, unsafe = seconds(ours, scores, repeat), seconds(floats, scores, repeat)
        slow = seconds(integers, few, max(repeat // 3, 1)) / FEW * size
        memory = peak_memory(scores)
        _say(f"top-k [{make.__name__}, {size} scores, k = {K}] {1000 * own:.1f} ms cpu, {memory:.2f} times the scores")
        met &= _demand(f"times unsafe floats ({1000 * unsafe:.1f} ms)", own / unsafe, at_most=OVER_FLOATS)
        met &= _demand(f"times an integer-only loop ({slow:.2f} s at {FEW})", own / slow, at_most=1 / OVER_INTEGERS)
        met &= _demand("times the memory of the scores", memory, at_most=MEMORY)
        _compare_with_opendp(make, repeat)
    return int(not met)


def _demand(what: str, ratio: float, *, at_most: float) -> bool:
    holds = ratio <= at_most
    _say(f"  {ratio:.4g} {what}; demand: at most {at_most:.4g}: {'met' if holds else 'NOT MET'}")
    return holds


def _compare_with_opendp(make: Callable[[int], np.ndarray], repeat: int) -> None:
    if not installed("opendp"):
        _say("  OpenDP is not installed: not compared")
        return
    scores = make(FOR_OPENDP)
    own, theirs = seconds(ours_without_gaps, scores, repeat), seconds(opendp, scores, max(repeat // 3, 1))
    line = f"  OpenDP without gaps, {FOR_OPENDP} scores: {1000 * theirs:.1f} ms, ours {1000 * own:.2f} ms"
    _say(f"{line}: {theirs / own:.3g} times faster")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
