"""A whole privacy profile: 1,000 epsilons of one pmf, every point a proved enclosure.

    python -m benchmarks.cases.profile

It is no problem with phases, and so not a `Case`: it runs by itself, under the same stopwatch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np

from benchmarks.measure import Verb, measure
from dpopt.family.members import family_pmf
from dpopt.pmf import Pmf
from dpopt.privacy.profile import privacy_profile

SIZES = (1_001, 10_001, 100_001)
DEMAND = 1.0  # seconds, at the largest size and sensitivity 1

Question = tuple[Pmf, list[Fraction]]


def gaussian(points: int) -> Question:
    """A TableBuilder member 100 nats deep, up to the start of its plateau; its losses come sorted."""
    half = points // 2
    gamma = Fraction(100, half * half)
    return family_pmf(half, gamma), _even((2 * half - 1) * gamma)


def scattered(points: int) -> Question:
    """Weights of 128 bits without any order: both directions count, and there is something to sort."""
    random = Random(points)
    return Pmf(-(points // 2), [random.getrandbits(128) + 1 for _ in range(points)]), _even(Fraction(3))


def _even(last: Fraction) -> list[Fraction]:
    return [last * i / 999 for i in range(1000)]


def whole_curve(make: Callable[[int], Question], points: int) -> Verb:
    """Set up a pmf that remembers nothing; the verb is the curve."""
    pmf, epsilons = make(points)
    fresh = Pmf(pmf.start, pmf.weights)
    return lambda: privacy_profile(fresh, epsilons)


def float_curve(make: Callable[[int], Question], points: int) -> Verb:
    """The peer: the same curve of one direction in floats, which prove nothing."""
    pmf, epsilons = make(points)
    p, factors = pmf.probabilities(), np.exp(np.array([float(value) for value in epsilons]))

    def verb() -> np.ndarray:
        ratio = p[1:] / p[:-1]
        order = np.argsort(ratio)
        first = np.searchsorted(ratio[order], factors)
        above, below = (np.append(np.cumsum(q[order][::-1])[::-1], 0.0) for q in (p[1:], p[:-1]))
        return p[0] + above[first] - factors * below[first]

    return verb


def main(repeat: int = 5) -> int:
    """Print seconds for each pmf and size; status 1 where the demand is not met."""
    worst = 0.0
    for make in (gaussian, scattered):
        for points in SIZES:
            ours, _ = measure(partial(whole_curve, make, points), repeat)
            peer, _ = measure(partial(float_curve, make, points), repeat)
            worst = max(worst, ours.median) if points == SIZES[-1] else worst
            line = f"profile [{make.__name__}, {points} points] median {1000 * ours.median:.1f} ms, "
            line += f"cpu {1000 * ours.cpu_median:.1f} ms; {ours.median / peer.median:.1f} times floats"
            sys.stdout.write(line + "\n")
    sys.stdout.write(f"demand: {SIZES[-1]} points under {DEMAND:g} s: {'met' if worst < DEMAND else 'NOT MET'}\n")
    return int(worst >= DEMAND)


if __name__ == "__main__":
    sys.exit(main())
