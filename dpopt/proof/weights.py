"""From a solver's floats to exact integer weights."""

from __future__ import annotations

from math import ceil, log, log2

import numpy as np

from dpopt.program.assembly import integers

__all__ = ["BIT_CAP", "to_weights"]

BIT_CAP = 4096  # weights stay printable, and no mass that a constraint could care about is finer
_RELATIVE_BITS = 96


def to_weights(p: np.ndarray, *, depth: float = 0.0) -> list[int]:
    """Integer weights proportional to `p` (>= 0), with 96 significant bits for the smallest positive mass, capped.

    `depth` is how many powers of e below 1 the tail will reach that a majorant is going to fill in.

    Floats are multiples of powers of two: within the cap the weights are exactly the floats.
    """
    positive = p[p > 0]
    bits = ceil(max(-log2(float(positive.min(initial=1.0))), depth / log(2))) + _RELATIVE_BITS
    return integers(p, min(max(bits, 128), BIT_CAP))
