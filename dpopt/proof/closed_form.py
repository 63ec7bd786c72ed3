"""The smallest delta of any pmf on [-D, D] at sensitivity 1, with its multipliers in closed form: no solver needed.

The truncated discrete Laplace law p(z) proportional to e^(-epsilon |z|) attains it. From the other side, the event
{Z >= t} gives T_t <= delta + e^epsilon T_(t+1) for the upper tails, T_(D+1) = 0, and likewise below; adding the chain
for t = 0..D above to the one for t = 1..D below bounds delta by 1 / (2 (1 + e^epsilon + ...) + e^(D epsilon)).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from flint import arb

from dpopt import checker
from dpopt.arithmetic import ball, exp_enclosure, sign
from dpopt.checker.statement import FORMAT
from dpopt.pmf import Pmf
from dpopt.work import Work

__all__ = ["certificate_bits", "certificate_work", "smallest_delta_certificate", "some_pmf_reaches"]


def some_pmf_reaches(half_width: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the smallest delta of any pmf on [-D, D] at sensitivity 1 is at most `delta`: no certificate is built.

    The smallest is (E - 1) / (E^D (E + 1) - 2) with E = e^epsilon, and 1 / (2D + 1) at epsilon = 0. It is irrational
    for any other rational epsilon, so balls decide.

    Examples
    --------
    >>> [some_pmf_reaches(d, Fraction(1), Fraction(1, 10**6)) for d in (13, 14)]
    [False, True]
    """
    if epsilon == 0 or half_width == 0:
        return delta * (2 * half_width + 1) >= 1

    def room() -> arb:
        growth = ball(epsilon).exp()
        return ball(delta) * ((ball(epsilon * half_width)).exp() * (growth + 1) - 2) - (growth - 1)

    return sign(room) > 0


def certificate_bits(half_width: int, epsilon: Fraction) -> int:
    """The precision of its numbers: about log2 of 1/delta, and 128 more."""
    return 128 + ceil(float(epsilon) * half_width / 0.69)


def certificate_work(half_width: int, epsilon: Fraction) -> Work:
    """What it takes to write and to check: weights and two chains of events, in decimal.

    Examples
    --------
    >>> certificate_work(100, Fraction(1)).bit_operations
    328146000
    """
    count, bits = 6 * half_width + 1, certificate_bits(half_width, epsilon)
    return Work(bit_operations=2000 * count * bits, bytes=count * (200 + bits // 2))


def smallest_delta_certificate(problem: Mapping[str, Any], half_width: int, epsilon: Fraction) -> dict[str, Any]:
    """The certificate of ``min-delta`` on [-D, D] at sensitivity 1; `problem` is its TOML form."""
    bits = certificate_bits(half_width, epsilon)
    factor = exp_enclosure(epsilon, bits)
    pmf = _truncated_laplace(half_width, factor.lower, bits)
    witnesses = _chains(half_width, factor.upper, bits)
    return checker.certify(
        {
            "format": FORMAT,
            "kind": "solution",
            "problem": dict(problem),
            "laws": [pmf.to_dict()],
            "precision": str(bits),
            "scale": str(bits),
            "witnesses": witnesses,
            "chains": [],
        }
    )


def _truncated_laplace(half_width: int, factor: Fraction, bits: int) -> Pmf:
    """Weights from the edge inwards: each the floor of its outer neighbour times the factor: ratios stay below it."""
    weight, side = 1 << bits, []
    for _ in range(half_width):
        side.append(weight)
        weight = weight * factor.numerator // factor.denominator
    return Pmf(-half_width, [*side, weight, *reversed(side)])


def _chains(half_width: int, factor: Fraction, bits: int) -> list[dict[str, Any]]:
    """Event weights: cumulative sums of e^(t epsilon) over the two chains, scaled to shares that sum to at most 1."""
    # Fixed point at 2^-bits, rounded down: the powers need not be exact, only equal on both sides of the bound.
    one, growth = 1 << bits, factor.numerator * (1 << bits) // factor.denominator
    powers = [one]
    for _ in range(half_width):
        powers.append(powers[-1] * growth >> bits)
    total = 2 * sum(powers[:-1]) + powers[-1]
    above = _cumulative([p * one // total for p in powers])
    below = _cumulative([p * one // total for p in powers[:-1]])
    witnesses = [_event(-1, 0, above)]
    if half_width > 0:
        witnesses.append(_event(1, -half_width, below[::-1]))
    return witnesses


def _cumulative(values: list[int]) -> list[int]:
    total, found = 0, []
    for value in values:
        total += value
        found.append(total)
    return found


def _event(shift: int, start: int, weights: list[int]) -> dict[str, Any]:
    numbers = {"row": 0, "shift": shift, "theta": max(weights), "start": start, "left": 0, "right": 0}
    texts = {key: str(number) for key, number in numbers.items()}
    return {"of": "objective", **texts, "weights": [str(w) for w in weights]}
