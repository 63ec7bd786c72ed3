"""Hockey-stick divergences of infinite noise at any shift, between two numbers that are as close as wanted.

The exact sum over geometric tails carries their ratio to the power of the shift, millions of digits where a sensitivity
is thousands of times the scale of the noise. Masses in fixed point do as well: floor(2^bits p(k)) is 0 beyond a window
whose width does not depend on the shift, and what the floors lose is bounded. More bits are taken until it is little.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, log, log1p, log2
from typing import NamedTuple

from dpopt.arithmetic import Enclosure
from dpopt.pmf import Pmf
from dpopt.privacy.shifts import deciding_shifts, is_unimodal
from dpopt.work import Work, require

__all__ = ["enclosed_delta", "is_long", "window_points", "window_work"]

_GUARD = 64  # bits below the fixed point, for the floors of a tail's recursion
_ACCURATE = 64  # bits of a delta that are right
_MOST_BITS = 1 << 13
_MOST_BITS_OF_NOTHING = 1 << 10  # where the divergence may be 0, and is at most 2^-1000 or so
_LONG = 1 << 13  # bits that exact tails may add to a weight
_SLACK = 2  # 2^bits p(k) lies between its floor and less than this above it


def is_long(pmf: Pmf, shift: int) -> bool:
    """Whether tails written out to three times the shift would need weights of more than 8,192 bits."""
    if pmf.tails is None:
        return False
    blocks = 3 * shift // pmf.tails.period + 1
    return any(
        ratio is not None and blocks * ratio.denominator.bit_length() > _LONG
        for ratio in (pmf.tails.left, pmf.tails.right)
    )


def enclosed_delta(pmf: Pmf, growth: Enclosure, shift: int, *, accurate: int = _ACCURATE) -> Enclosure:
    """The largest divergence over all shifts up to `shift`, both directions, at e^epsilon enclosed by `growth`.

    `accurate` bits of it are right where `growth` is as narrow as that.

    Examples
    --------
    >>> from dpopt.pmf import Tails
    >>> half = Fraction(1, 2)
    >>> noise = Pmf(0, (1,), tails=Tails(1, half, half))
    >>> print(enclosed_delta(noise, Enclosure(Fraction(3), Fraction(3)), 10**6))
    1
    """
    bits = 128 + accurate + growth.upper.numerator.bit_length() - growth.upper.denominator.bit_length()
    while True:
        low, high = _at(pmf, growth, shift, bits)
        if (high - low) << accurate <= high or bits > (_MOST_BITS if low > 0 else _MOST_BITS_OF_NOTHING):
            unit = 1 << bits
            return Enclosure(Fraction(max(low, 0), unit), min(Fraction(high, unit), Fraction(1)))
        bits *= 2


class _Window(NamedTuple):
    """Floors of 2^bits p(k) from `start` on, and a bound on 2^bits times the mass outside."""

    start: int
    floors: list[int]
    outside: int


def window_points(pmf: Pmf, bits: int) -> int:
    """About how many points have at least 2^-bits of the mass, by the tail ratios alone."""
    assert pmf.tails is not None
    blocks = 0
    for ratio in (pmf.tails.left, pmf.tails.right):
        if ratio is not None:
            halving = -log2(ratio) if ratio < Fraction(1, 2) else -log1p(-float(1 - ratio)) / log(2)
            blocks += ceil(bits / halving) + 1 if halving else 1 << 60
    return len(pmf.weights) + blocks * pmf.tails.period


def window_work(pmf: Pmf, bits: int, shift: int) -> Work:
    """What both bounds take at one precision."""
    points = window_points(pmf, bits)
    shifts = 1 if is_unimodal(pmf) else min(shift, points)
    terms = Work.on_integers(points, bits + _GUARD, steps=3 + 4 * shifts * (1 if pmf.is_symmetric else 2))
    return Work(terms.bit_operations, 2 * terms.bytes)


def _at(pmf: Pmf, growth: Enclosure, shift: int, bits: int) -> tuple[int, int]:
    """Integers below and above 2^bits times the divergence."""
    require(
        "sensitivity",
        window_work(pmf, bits, shift),
        f"takes the masses of such long tails to 2^-{bits}, at shifts up to {shift}",
        "use a coarser step",
    )
    window = _window(pmf, bits)
    width = len(window.floors)
    shifts = deciding_shifts(pmf, min(shift, width))  # from the width of the window on, the bounds are the same
    directions = (1,) if pmf.is_symmetric else (1, -1)
    low = high = 0
    for moved in (sign * s for s in shifts for sign in directions):
        low = max(low, _excess(window, moved, growth.upper, _SLACK))
        high = max(high, _excess(window, moved, growth.lower, 0))
    return low, high + window.outside


def _excess(window: _Window, moved: int, factor: Fraction, slack: int) -> int:
    """The sum of (p(k) - E p(k - moved))+ over the window: from below with slack for p(k - moved), else from above."""
    numerator, denominator = factor.numerator, factor.denominator
    width, total = len(window.floors), 0
    raised = _SLACK - slack
    for k, here in enumerate(window.floors):
        there = window.floors[k - moved] if 0 <= k - moved < width else 0
        term = (here + raised) * denominator - (there + slack) * numerator
        if term > 0:
            total += term
    return total // denominator if slack else -(-total // denominator)


def _window(pmf: Pmf, bits: int) -> _Window:
    scale, total = bits + _GUARD, pmf.total
    unit = (1 << scale) * total.denominator
    core = [w * unit // total.numerator for w in pmf.weights]
    tails, outside, beyond = pmf.tails, 0, []
    assert tails is not None
    period = tails.period
    for ratio, block in ((tails.left, core[:period][::-1]), (tails.right, core[-period:])):
        found: list[int] = []
        if ratio is not None:
            found = list(_outward(block, ratio))
            last = [value + (1 << _GUARD) for value in (found or block)[-period:]]
            outside += (int(sum(last) * ratio / (1 - ratio)) >> _GUARD) + 1
        beyond.append(found)
    left, right = beyond
    floors = [value >> _GUARD for value in (*reversed(left), *core, *right)]
    return _Window(pmf.start - len(left), floors, outside)


def _outward(block: list[int], ratio: Fraction) -> Iterator[int]:
    """The masses of a tail, period by period, each from the one before and rounded down, until a period is 0.

    A floor is off by less than the number of periods so far, in units of 2^-64: less than `_SLACK` in all.
    """
    while any(value >> _GUARD for value in block):
        block = [value * ratio.numerator // ratio.denominator for value in block]
        yield from block
