"""How well counts fit a law: Pearson's chi-square on cells of at least ten expected draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import exp
from typing import Any

import numpy as np
from scipy.stats import chi2


def p_value(draws: Any, law: Mapping[int, float]) -> float:
    """The chance that draws of `law` fit it no better; outcomes outside the mapping share what it leaves."""
    values, counts = np.unique(np.asarray(draws), return_counts=True)
    found = {int(value): int(count) for value, count in zip(values, counts, strict=True)}
    total = sum(found.values())
    cells = [(found.get(k, 0), total * p) for k, p in law.items() if total * p >= 10]
    observed, expected = (np.array(column, dtype=float) for column in zip(*cells, strict=True))
    rest = total - expected.sum()
    if rest > 1e-6 * total:
        observed, expected = np.append(observed, total - observed.sum()), np.append(expected, rest)
    elif observed.sum() < total:
        return 0.0  # outcomes that cannot be
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1))


def normalised(weight: Callable[[int], float], support: Iterable[int]) -> dict[int, float]:
    """A law proportional to `weight`."""
    found = {k: weight(k) for k in support}
    total = sum(found.values())
    return {k: w / total for k, w in found.items()}


def laplace_law(scale: float) -> dict[int, float]:
    """P(z) proportional to e^(-|z| / scale), far out."""
    reach = int(40 * scale) + 3
    return normalised(lambda z: exp(-abs(z) / scale), range(-reach, reach + 1))


def gaussian_law(sigma: float) -> dict[int, float]:
    """P(z) proportional to e^(-z^2 / (2 sigma^2)), far out."""
    reach = int(12 * sigma) + 3
    return normalised(lambda z: exp(-z * z / (2 * sigma * sigma)), range(-reach, reach + 1))


def geometric_law(x: float) -> dict[int, float]:
    """P(j) = (1 - e^-x) e^(-x j), far out."""
    return normalised(lambda j: exp(-x * j), range(int(40 / x) + 3))
