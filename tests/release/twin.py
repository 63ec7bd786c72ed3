"""The slow twin of every fast draw: the same bits, integers wide enough to hold every digit, no table.

A law is its survival function T(1) > T(2) > ..., each enclosed between two integers over 2^512; an infinite binary
fraction U is the outcome k with T(k+1) <= U < T(k). The twin reads 16 bits, then 48 of a word, then 64 at a time, and
stops as soon as every continuation of what it has read has the same outcome.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, product
from math import isqrt

import numpy as np
from flint import arb, ctx, fmpq

from dpopt.pmf import Pmf
from dpopt.release.randomness import Randomness

WIDE = 512
JUNK = 0xA5C3  # the 16 bits of a word that are dropped


class Replay(Randomness):
    """Bytes written down beforehand; running out of them is an error."""

    def __init__(self, data: bytes) -> None:
        self.data, self.used = data, 0

    def read(self, count: int) -> bytes:
        assert self.used + count <= len(self.data), "the replayed bytes have run out"
        self.used += count
        return self.data[self.used - count : self.used]


class Law:
    """T(k) for k = 1, 2, ... as integers over 2^512: from below and from above."""

    def __init__(self, enclosures: Sequence[tuple[int, int]], *, endless: bool = False) -> None:
        self.enclosures, self.endless = list(enclosures), endless
        self._from_below = [-low for low, _ in self.enclosures]  # ascending
        self._from_above = [-high for _, high in self.enclosures]

    def decided(self, read: int, bits: int) -> int | None:
        """The outcome of all U that begin with these bits, if it is one."""
        first, end = read << (WIDE - bits), (read + 1) << (WIDE - bits)
        surely_above = bisect_left(self._from_below, -end + 1)  # T(k) >= end: U < T(k)
        maybe_above = bisect_left(self._from_above, -first)  # T(k) > first
        if self.endless and read == 0:
            return None
        return surely_above if surely_above == maybe_above else None


def rational(weights: Sequence[int | Fraction]) -> Law:
    """Positive weights of any rational kind."""
    total, pairs = sum(weights), []
    for suffix in list(accumulate(reversed(weights)))[-2::-1]:
        value = Fraction(suffix) / total * 2**WIDE
        pairs.append((value.__floor__(), value.__ceil__()))
    return Law(pairs)


def balls(values: Callable[[], list[arb]], *, endless: bool = False) -> Law:
    """Numbers that balls of 1,200 bits enclose."""
    with ctx.workprec(1200):
        scaled = [value * arb(2) ** WIDE for value in values()]
        ends = [(value.lower().floor(), value.upper().ceil()) for value in scaled]
        pairs = [(int(low.unique_fmpz()), int(high.unique_fmpz())) for low, high in ends]
    return Law(pairs, endless=endless)


def exponential(x: Fraction) -> arb:
    """e^-x."""
    return arb(fmpq(-x.numerator, x.denominator)).exp()


def truncated(x: Fraction, unit: int, base: int) -> Law:
    """0..base - 1 with probability proportional to e^(-x unit j)."""
    return balls(
        lambda: [
            (exponential(x * unit * k) - exponential(x * unit * base)) / (1 - exponential(x * unit * base))
            for k in range(1, base)
        ]
    )


def at_least(x: Fraction, unit: int, length: int) -> Law:
    """min(V, length) of a geometric V with ratio e^(-x unit)."""
    return balls(lambda: [exponential(x * unit * k) for k in range(1, length + 1)])


def gaussian(variance: Fraction) -> Law:
    """0, 1, -1, 2, -2, ...: e^(-j^2 / (2 variance)) up to a point beyond which less than 2^-540 remains."""
    last = isqrt(int(2 * variance * 400)) + 2

    def values() -> list[arb]:
        terms = [exponential(j * j / (2 * variance)) for j in range(last + 1)]
        masses = [terms[0]] + [term for term in terms[1:] for _ in range(2)]
        suffixes = list(accumulate(reversed(masses), initial=arb(0, 2.0**-540)))
        return [suffix / suffixes[-1] for suffix in suffixes[-2:0:-1]]

    return balls(values, endless=True)


def invert(law: Law, source: Randomness) -> int:
    """One draw."""
    if not law.enclosures:
        return 0
    read, bits = source.integer(16), 16
    while (outcome := law.decided(read, bits)) is None:
        new = source.integer(64)
        read, bits = (read << 48 | new >> 16, 64) if bits == 16 else (read << 64 | new, bits + 64)
    return outcome


def invert_all(law: Law, count: int, source: Randomness) -> list[int]:
    """Many draws: all prefixes come first, then a word for each undecided draw, then what the last ones need."""
    prefixes = [source.integer(16) for _ in range(count)]
    outcomes = [law.decided(prefix, 16) for prefix in prefixes]
    undecided = [i for i, outcome in enumerate(outcomes) if outcome is None]
    keys = {i: prefixes[i] << 48 | source.integer(64) >> 16 for i in undecided}
    for i in undecided:
        read, bits = keys[i], 64
        while (outcome := law.decided(read, bits)) is None:
            read, bits = read << 64 | source.integer(64), bits + 64
        outcomes[i] = outcome
    return [outcome for outcome in outcomes if outcome is not None]


def written(key: int, *further: int) -> bytes:
    """A U of 64 bits and more as the bytes in which it is read."""
    word = (key & (1 << 48) - 1) << 16 | JUNK
    return (key >> 48).to_bytes(2, "little") + b"".join(part.to_bytes(8, "little") for part in (word, *further))


def boundary_bytes(law: Law) -> Iterator[bytes]:
    """Prefixes, keys and third words on each boundary, one below and one above, and random bytes behind them."""
    generator = np.random.default_rng(len(law.enclosures))
    whole = (1 << 64) - 1
    for low, _ in law.enclosures:
        key, third = low >> (WIDE - 64), low >> (WIDE - 128) & whole
        keys = {min(max(key + move, 0), whole) for move in (-1, 0, 1, -(1 << 48), 1 << 48)}
        for one, other in product(sorted(keys), (-1, 0, 1)):
            yield written(one, third + other & whole) + generator.bytes(400)


# --- the samplers that consist of several draws ----------------------------------------------------------------------


def digits(x: Fraction, bits: int) -> list[tuple[int, Law]]:
    """The truncated geometric digits of V modulo 2^bits: at most 8 bits each, as even as possible."""
    count, below, found = -(-bits // 8), 0, []
    for i in range(count):
        width = bits // count + (i < bits % count)
        found.append((below, truncated(x, 1 << below, 1 << width)))
        below += width
    return found


def geometric(x: Fraction) -> Callable[[Randomness], int]:
    """A geometric of rate x: digits until 1/32 is reached, then a table that is entered again from its end."""
    shift = 0
    while x * 2**shift < Fraction(1, 32):
        shift += 1
    shift = max(shift, 2) if shift else 0
    low, length = digits(x, shift) if shift else [], int(12 / (x * 2**shift)) + 1
    high = at_least(x, 1 << shift, length)

    def draw(source: Randomness) -> int:
        total = sum(invert(law, source) << below for below, law in low)
        part = length
        while part == length:
            part = invert(high, source)
            total += part << shift
        return total

    return draw


def tailed(pmf: Pmf) -> Callable[[Randomness], int]:
    """A pmf with rational tails of quickly falling ratio: core, twelve e-foldings of each tail, and the sides."""
    assert pmf.tails is not None
    period = pmf.tails.period
    sides = [
        (pmf.tails.right, pmf.weights[-period:], pmf.end + 1, 1),
        (pmf.tails.left, pmf.weights[period - 1 :: -1], pmf.start - 1, -1),
    ]
    live = [side for side in sides if side[0] is not None and any(side[1])]
    points = [(pmf.start + i, Fraction(w)) for i, w in enumerate(pmf.weights)]
    rests = []
    for ratio, block, first, outward in live:
        blocks = int(12 / (1 - ratio)) + 1
        for n in range(blocks):
            points += [(first + outward * (n * period + i), w * ratio ** (n + 1)) for i, w in enumerate(block)]
        place = rational([w for w in block if w])
        rests.append((sum(block) * ratio ** (blocks + 1) / (1 - ratio), first, outward, blocks, place, block, ratio))
    points = [(k, w) for k, w in points if w]
    law = rational([w for _, w in points] + [rest[0] for rest in rests])

    def draw(source: Randomness) -> int:
        outcome = invert(law, source)
        if outcome < len(points):
            return points[outcome][0]
        _, first, outward, blocks, place, block, ratio = rests[outcome - len(points)]
        length, more, n = int(12 / (1 - ratio)) + 1, 0, 0
        reach = rational([*(ratio**j * (1 - ratio) for j in range(length)), ratio**length])
        while (more := invert(reach, source)) == length:
            n += more
        inside = [i for i, w in enumerate(block) if w][invert(place, source)]
        return first + outward * ((blocks + n + more) * period + inside)

    return draw
