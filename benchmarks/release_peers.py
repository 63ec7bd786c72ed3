"""What the release is compared with: unsafe NumPy, and other libraries where they are installed.

Nothing here may be used for a release. Floating-point noise leaks its input in the low bits (Mironov 2012), and NumPy's
generators are predictable; these are references for tests, and yardsticks for speed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import numpy as np

__all__ = [
    "diffprivlib_geometric",
    "installed",
    "opendp_noise",
    "opendp_top_k",
    "unsafe_choice",
    "unsafe_rounded_normal",
    "unsafe_rounded_top_k",
    "unsafe_top_k",
    "unsafe_two_sided_geometric",
]


def installed(library: str) -> bool:
    """Whether a peer can be imported."""
    return find_spec(library) is not None


# --- sampling ---------------------------------------------------------------------------------------------------------


def opendp_noise(kind: str, scale: float, count: int) -> Callable[[], list[int]]:
    """OpenDP's exact discrete noise added to a vector of zeros; `kind` is "laplace" or "gaussian"."""
    opendp = import_module("opendp.prelude")
    opendp.enable_features("contrib")
    metric = opendp.l1_distance(T=int) if kind == "laplace" else opendp.l2_distance(T=int)
    make = opendp.m.make_laplace if kind == "laplace" else opendp.m.make_gaussian
    measurement = make(opendp.vector_domain(opendp.atom_domain(T=int)), metric, scale=scale)
    zeros = [0] * count
    return lambda: measurement(zeros)


def diffprivlib_geometric(epsilon: float, count: int) -> Callable[[], list[int]]:
    """diffprivlib's geometric mechanism, which goes through floats, one value a call."""
    mechanism = import_module("diffprivlib.mechanisms").Geometric(epsilon=epsilon, sensitivity=1)
    return lambda: [mechanism.randomise(0) for _ in range(count)]


def unsafe_two_sided_geometric(scale: float, count: int, generator: np.random.Generator) -> np.ndarray:
    """The difference of two of NumPy's geometric draws, UNSAFE."""
    p = -np.expm1(-1 / scale)
    return generator.geometric(p, count) - generator.geometric(p, count)


def unsafe_rounded_normal(sigma: float, count: int, generator: np.random.Generator) -> np.ndarray:
    """A rounded normal variable, which is not the discrete Gaussian, UNSAFE."""
    return np.rint(generator.normal(0, sigma, count)).astype(np.int64)


def unsafe_choice(probabilities: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """NumPy's draw from a table of float probabilities, UNSAFE."""
    return generator.choice(probabilities.size, count, p=probabilities)


# --- noisy top-k ------------------------------------------------------------------------------------------------------


def unsafe_top_k(
    scores: np.ndarray, k: int, scale: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The continuous noisy top-k with gap in floats: the gap paper's Algorithm 1, UNSAFE.

    Returns the k items in order, and the gap of each to the next.
    """
    noisy = scores + generator.exponential(scale, scores.size)
    last = scores.size - (k + 1)
    leading = np.argpartition(noisy, last)[last:]
    leading = leading[np.argsort(noisy[leading])[::-1]]
    ordered = noisy[leading]
    return leading[:k], ordered[:-1] - ordered[1:]


def unsafe_rounded_top_k(
    values: np.ndarray, k: int, rate: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Scores in units of the resolution, gaps rounded down to units: Algorithm 2 in floats, UNSAFE."""
    items, gaps = unsafe_top_k(values, k, 1 / rate, generator)
    return items, np.floor(gaps).astype(np.int64)


def opendp_top_k(scores: list[int], k: int, scale: float) -> Callable[[], list[int]]:
    """OpenDP's noisy top-k without gaps, set up for integer scores of sensitivity 1; the verb runs it once."""
    opendp = import_module("opendp.prelude")  # without type information, and seldom installed
    opendp.enable_features("contrib")
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    metric = opendp.linf_distance(T="i64", monotonic=False)
    measurement = opendp.m.make_noisy_top_k(domain, metric, opendp.max_divergence(), k=k, scale=scale)
    return lambda: measurement(scores)
