"""Second methods without the package: e^x by its Taylor series in integers, long decimals, random laws with tails."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import strategies as st

from dpopt.pmf import Pmf, Tails

DIGITS = 120


def exp_between(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals on either side of e^x, relative distance about 2^-bits: partial sums and their remainder."""
    if x < 0:
        low, high = exp_between(-x, bits)
        return 1 / high, 1 / low
    halvings = max(0, (x.numerator // x.denominator + 1).bit_length())
    small = x / (1 << halvings)  # at most 1: the remainder after n terms is below twice the next term
    precision = bits + 4 * halvings + 16
    one = 1 << precision
    total, term, n = 0, Fraction(1), 0
    while term * one > 1:
        total += term.numerator * one // term.denominator
        n += 1
        term = term * small / n
        term = Fraction(-(-term.numerator * 4 * one // term.denominator), 4 * one)  # rounded up, keeps terms short
    low, high = Fraction(total - n * (n + 3), one), Fraction(total + n + 4, one)
    for _ in range(halvings):
        low, high = low * low, high * high
        low = Fraction(low.numerator * one // low.denominator, one)
        high = Fraction(-(-high.numerator * one // high.denominator), one)
    return low, high


def decimal(x: Fraction) -> Decimal:
    """A rational as a decimal of the working precision."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def gauss_weights(half: int, gamma: Fraction, bits: int = 300) -> Pmf:
    """The pmf proportional to e^(-gamma z^2) on [-half, half], from decimal exponentials: a second method."""
    with localcontext() as context:
        context.prec = DIGITS
        rate, unit = decimal(gamma), Decimal(2) ** bits
        side = [int((-rate * z * z).exp() * unit) for z in range(half + 1)]
    return Pmf(-half, [*reversed(side[1:]), *side])


ratios = st.fractions(min_value=Fraction(1, 9), max_value=Fraction(1, 2), max_denominator=9)


@st.composite
def laws(draw: st.DrawFn, *, positive: bool = False, longest: int = 6, tails: bool | None = None) -> Pmf:
    """A pmf with a short core, and perhaps geometric tails of any period on one side or both."""
    least = 1 if positive else 0
    weights = draw(st.lists(st.integers(least, 9), min_size=1, max_size=longest).filter(any))
    start = draw(st.integers(-8, 8))
    if tails is False or (tails is None and draw(st.booleans())):
        return Pmf(start, weights)
    left, right = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    period = draw(st.integers(1, len(weights)))
    closure = Tails(period, draw(ratios) if left else None, draw(ratios) if right else None)
    return Pmf(start, weights, tails=closure)


def written_out(pmf: Pmf, blocks: int) -> dict[int, Fraction]:
    """Every weight of the core and of that many periods on each side with a tail, one multiplication at a time."""
    found = {pmf.start + i: Fraction(w) for i, w in enumerate(pmf.weights)}
    if pmf.tails is None:
        return found
    period, length = pmf.tails.period, len(pmf.weights)
    for n in range(1, blocks * period + 1):
        if pmf.tails.right is not None:
            found[pmf.start + length - 1 + n] = found[pmf.start + length - 1 + n - period] * pmf.tails.right
        if pmf.tails.left is not None:
            found[pmf.start - n] = found[pmf.start - n + period] * pmf.tails.left
    return found
