"""Exact samplers beside other exact ones, and beside floats that are neither exact nor secure.

    python -m benchmarks.cases.sampling

Our draws come from the operating system's generator, tables warm; peers that add noise to data add it to zeros. Rates
are draws a second of processor time: every sampler here runs on one core.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import measure
from benchmarks.release_peers import (
    diffprivlib_geometric,
    installed,
    opendp_noise,
    unsafe_choice,
    unsafe_rounded_normal,
    unsafe_two_sided_geometric,
)
from dpopt.family.members import family_pmf
from dpopt.release.samplers import sample, sample_discrete_gaussian, sample_discrete_laplace, sample_geometric

COUNT = 1_000_000
SLOW_COUNT = 20_000  # of a peer that makes about 1e5 draws a second
TIMES_OPENDP = 100.0
LEAST_RATE = 1e7  # draws a second from a pmf of 23 points
MOST_MILLISECONDS = 30.0  # for 10^6 geometric draws of rate 1/2000


@dataclass(frozen=True)
class Question:
    """One law, who draws from it, and what is demanded of ours."""

    name: str
    ours: Callable[[], Any]
    peers: Mapping[str, tuple[int, Callable[[], Callable[[], Any]]]]
    times_opendp: bool = False
    at_least: float = 0.0


def questions() -> list[Question]:
    """The laws: a small pmf, both discrete noises at two scales, a slow geometric."""
    generator = np.random.default_rng(1)
    pmf = family_pmf(11, Fraction(1, 9))
    found = [
        Question(
            "pmf of 23 points",
            lambda: sample(pmf, COUNT),
            {"numpy": (COUNT, lambda: partial(unsafe_choice, _floats(pmf), COUNT, generator))},
            at_least=LEAST_RATE,
        )
    ]
    for scale in (1, 10):
        peers = {
            "opendp": (SLOW_COUNT, partial(opendp_noise, "laplace", float(scale), SLOW_COUNT)),
            "diffprivlib": (SLOW_COUNT, partial(diffprivlib_geometric, 1 / scale, SLOW_COUNT)),
            "numpy": (COUNT, partial(_numpy, unsafe_two_sided_geometric, scale, generator)),
        }
        ours = partial(sample_discrete_laplace, scale, COUNT)
        found.append(Question(f"discrete Laplace, scale {scale}", ours, peers, times_opendp=True))
    for sigma in (1, 10):
        peers = {
            "opendp": (SLOW_COUNT, partial(opendp_noise, "gaussian", float(sigma), SLOW_COUNT)),
            "numpy": (COUNT, partial(_numpy, unsafe_rounded_normal, sigma, generator)),
        }
        ours = partial(sample_discrete_gaussian, sigma, COUNT)
        found.append(Question(f"discrete Gaussian, sigma {sigma}", ours, peers, times_opendp=True))
    slow = partial(sample_geometric, Fraction(1, 2000), COUNT)
    peer = (COUNT, lambda: partial(generator.geometric, -np.expm1(-1 / 2000), COUNT))
    rate = 1000 * COUNT / MOST_MILLISECONDS
    return [*found, Question("geometric, rate 1/2000", slow, {"numpy": peer}, at_least=rate)]


def _numpy(draw: Callable[..., Any], scale: int, generator: np.random.Generator) -> Callable[[], Any]:
    return partial(draw, scale, COUNT, generator)


def _floats(pmf: Any) -> np.ndarray:
    """Probabilities that add up to 1 as floats, which `choice` insists on."""
    p = pmf.probabilities()
    return p / p.sum()


def rate_of(set_up: Callable[[], Callable[[], Any]], count: int, repeat: int) -> float:
    """Draws a second of processor time, median."""
    times, _ = measure(set_up, repeat)
    return count / times.cpu_median


def main(repeat: int = 5) -> int:
    """Print a line for each law; status 1 where a demand is not met, or cannot be judged without its peer."""
    failed = 0
    for question in questions():
        ours = rate_of(lambda question=question: question.ours, COUNT, repeat)  # type: ignore[misc]
        line = [f"sampling [{question.name}] {ours:.2e} draws a second"]
        ratios = {}
        for peer, (count, set_up) in question.peers.items():
            if not installed(peer):
                line.append(f"{peer} is not installed (pip install 'dpopt[bench]')")
                continue
            ratios[peer] = ours / rate_of(set_up, count, repeat)
            line.append(f"{ratios[peer]:.3g} times {peer}")
        met = ours >= question.at_least and (not question.times_opendp or ratios.get("opendp", 0.0) >= TIMES_OPENDP)
        demand = f"{TIMES_OPENDP:g} times opendp" if question.times_opendp else f"{question.at_least:.2e} a second"
        line.append(f"demand: {demand}: {'met' if met else 'NOT MET'}")
        sys.stdout.write("; ".join(line) + "\n")
        failed += not met
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
