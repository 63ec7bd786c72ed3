"""What is true of a stated pmf: every constraint with the margin it is met by, and the value of the objective.

A pmf with tails is infinite, but its sums are finite sums and geometric series. All of them are exact integers over
common denominators; only logarithms, which are irrational, are rounded, to multiples of 2^-64.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import lcm
from operator import mul
from typing import TYPE_CHECKING

from dpopt.arithmetic import Enclosure, ball, floor_scaled
from dpopt.errors import CertificateError
from dpopt.lattice_function import LatticeFunction
from dpopt.patience import checkpoint, patiently
from dpopt.proof.reading import MAX_POINTS, brief
from dpopt.proof.stated_law import Law
from dpopt.proof.stated_objective import Objective
from dpopt.proof.stated_problem import Constraint

if TYPE_CHECKING:
    from flint import arb

__all__ = ["BITS", "affordable", "convolution", "margin", "objective_value", "outer_cost"]

BITS = 64  # logarithms are rounded to multiples of 2^-64
_LONGEST = 4096  # bits of a denominator that is still written out
_MAX_BITS = 8_000_000_000  # of all integers of one computation together (1 GB)
_MAX_STEPS = 5_000_000_000  # comparisons of hockey-stick sums


# --- what the certificate states -----------------------------------------------------------------------------------


def margin(law: Law, constraint: Constraint, enclosures: Mapping[Fraction, Enclosure], *, infinite: bool) -> Fraction:
    """By how much the pmf meets `constraint`, at least; the support is `infinite` or the range of the pmf.

    Raises
    ------
    CertificateError
        It does not.
    """
    if constraint.form == "terms":
        found = _terms_margin(law, constraint)
    elif constraint.form == "symmetric":
        found = _symmetric_margin(law)
    elif constraint.form == "unimodal":
        found = _unimodal_margin(law, constraint.mode)
    elif constraint.form == "pure-dp":
        found = _pure_margin(law, constraint.epsilon, constraint.shift, infinite=infinite)
    else:
        divergence = _divergence(law, constraint.shift, enclosures[constraint.epsilon].lower)
        found = _room(constraint.delta - divergence, "the hockey-stick divergence")
    return _short(found).lower


def objective_value(
    law: Law, objective: Objective, enclosures: Mapping[Fraction, Enclosure], step: Fraction
) -> Enclosure:
    """The objective at the pmf."""
    if objective.form == "entropy":
        return _entropy(law)
    if objective.form == "delta":
        ends = enclosures[objective.epsilon]
        lower, upper = (_short(_divergence(law, objective.shift, end)) for end in (ends.upper, ends.lower))
        return Enclosure(lower.lower, upper.upper)
    if objective.form == "linear":
        return _short(_expectation(law, objective.cost))
    return _short(step * _wasserstein(law, objective))


def _short(exact: Fraction) -> Enclosure:
    """The number itself, or its neighbours at 2^-128 where it is too long to be written down.

    A tail ratio to the power of a wide input's range makes exact values of a hundred thousand digits.
    """
    if exact.denominator.bit_length() <= _LONGEST:
        return Enclosure(exact, exact)
    low = (exact.numerator << 128) // exact.denominator
    return Enclosure(Fraction(low, 1 << 128), Fraction(low + 1, 1 << 128))


def _room(left: Fraction, what: str) -> Fraction:
    """What is left up to a limit; an error if it is less than nothing."""
    if left < 0:
        raise CertificateError(f"{what} is beyond its limit by {brief(-left)}")
    return left


# --- sums over a pmf -----------------------------------------------------------------------------------------------


def affordable(bits: int, count: int) -> None:
    """Raise unless `count` integers of so many bits fit into the memory."""
    if bits * count > _MAX_BITS:
        raise CertificateError("too large to check: the exact numbers involved would fill the memory")


def _expectation(law: Law, function: LatticeFunction) -> Fraction:
    """E h(Z), exactly."""
    values, unit = function.integers(law.start, law.end)
    result = Fraction(sum(map(mul, law.weights, values)), unit)
    period = law.period
    for ratio, first, step, beyond in (
        (law.right, law.end - period + 1, period, function.end - law.end),
        (law.left, law.start, -period, law.start - function.start),
    ):
        if ratio:
            affordable(max(beyond, 0) // period * ratio.denominator.bit_length(), max(beyond, 0) + period)
            block = law.weights[first - law.start : first - law.start + period]
            result += function.block_tail_sum(block, first, step, ratio)
    return result / law.total


def _stretched(law: Law, by: int) -> tuple[list[int], int]:
    """The weights on ``start - by .. end + by`` as integers over one denominator.

    >>> _stretched(Law(0, [3], left=Fraction(1, 2)), 2)
    ([3, 6, 12, 0, 0], 4)
    """
    period, blocks = law.period, -(-by // law.period)
    scale = lcm(law.left.denominator, law.right.denominator) ** blocks
    affordable(scale.bit_length() + max(law.weights).bit_length(), len(law.weights) + 2 * by)
    core = [w * scale for w in law.weights]
    left = _continued(core[:period][::-1], law.left, blocks, period)[:by][::-1]
    right = _continued(core[-period:], law.right, blocks, period)[:by]
    return left + core + right, scale


def _continued(block: list[int], ratio: Fraction, blocks: int, period: int) -> list[int]:
    """`blocks` further blocks outward, each `ratio` times the one before (the divisions are exact)."""
    if ratio == 0:
        return [0] * (blocks * period)
    result: list[int] = []
    for _ in range(blocks):
        block = [w * ratio.numerator // ratio.denominator for w in block]
        result += block
    return result


# --- the constraints -----------------------------------------------------------------------------------------------


def _terms_margin(law: Law, constraint: Constraint) -> Fraction:
    """The least room on either side of the terms; a forbidden point leaves none."""
    margins: list[Fraction] = []
    for term in constraint.terms:
        if term.at_least is None and term.at_most is None:
            continue
        found = _expectation(law, term.function)
        margins += [] if term.at_least is None else [_room(found - term.at_least, f"the value {brief(found)}")]
        margins += [] if term.at_most is None else [_room(term.at_most - found, f"the value {brief(found)}")]
    for k in constraint.zeros:
        if not _is_zero(law, k):
            raise CertificateError(f"the probability at index {k} is not 0")
    return Fraction(0) if constraint.zeros or not margins else min(margins)


def _is_zero(law: Law, k: int) -> bool:
    """Whether there is no mass at index k, in the core or in a tail (which repeats the block it grows from)."""
    if k < law.start:
        return law.left == 0 or law.weights[(k - law.start) % law.period] == 0
    if k > law.end:
        return law.right == 0 or law.weights[-1 - (law.end - k) % law.period] == 0
    return law.weights[k - law.start] == 0


def _symmetric_margin(law: Law) -> Fraction:
    """Equal on one whole period beyond the longer arm of the core: then the tails agree for good.

    That period is one block of either tail, and the blocks it grows from agree too: so do the ratios, or all is 0.
    """
    reach = max(abs(law.start), abs(law.end)) + law.period
    if reach > MAX_POINTS:
        raise CertificateError(f"the core reaches beyond {MAX_POINTS} points from 0")
    by = max(law.start + reach, reach - law.end)
    weights, _ = _stretched(law, by)
    first = -reach - (law.start - by)
    middle = weights[first : first + 2 * reach + 1]
    for k, (left, right) in enumerate(zip(middle[reach::-1], middle[reach:], strict=True)):
        if left != right:
            raise CertificateError(f"the probabilities at indices {-k} and {k} differ")
    return Fraction(0)


def _unimodal_margin(law: Law, mode: int) -> Fraction:
    """The least rise towards the mode from one point to the next."""
    weights, peak = law.weights, mode - law.start
    rises = [weights[i + 1] - weights[i] if i < peak else weights[i] - weights[i + 1] for i in range(len(weights) - 1)]
    least = min(rises, default=0)
    if least < 0:
        place = law.start + rises.index(least)
        raise CertificateError(f"the probability falls towards the mode between indices {place} and {place + 1}")
    return least / law.total


def _pure_margin(law: Law, epsilon: Fraction, shift: int, *, infinite: bool) -> Fraction:
    """``epsilon - ln R`` rounded down, R the largest ratio of two masses at most `shift` apart.

    With tails it is enough to look at the core and `shift` points beyond either end: a pair further out moves inward
    by one period with its ratio unchanged. A zero is always beside a positive mass somewhere, and R is infinite.
    """
    weights = _stretched(law, shift)[0] if infinite else law.weights
    if not all(weights):
        place = next(i for i, w in enumerate(weights) if not w) + law.start - (shift if infinite else 0)
        raise CertificateError(f"the probability at index {place} is 0 but others are not: the ratio is infinite")
    top, bottom = weights[0], weights[0]
    for weight, smallest in zip(patiently(weights), _sliding_minimum(weights, shift), strict=True):
        if weight * bottom > top * smallest:
            top, bottom = weight, smallest
    if epsilon == 0 or top == bottom:
        if top > bottom:
            raise CertificateError(f"the probability ratio {brief(Fraction(top, bottom))} is above e^0 = 1")
        return Fraction(epsilon * (1 << BITS) // 1, 1 << BITS)
    # epsilon and R are rational and R is not 1, so epsilon - ln R is irrational and its floor is always found.
    ratio = Fraction(top, bottom)
    least = floor_scaled(lambda: ball(epsilon) - ball(ratio).log(), BITS)
    return _room(Fraction(least, 1 << BITS), f"the privacy loss of a probability ratio {brief(ratio)}")


def _sliding_minimum(values: Sequence[int], reach: int) -> Iterator[int]:
    """For every place the least value at most `reach` places away.

    >>> list(_sliding_minimum([3, 1, 4, 1, 5, 9], 1))
    [1, 1, 1, 1, 1, 5]
    """
    waiting: deque[int] = deque()  # places of ever larger values: the first is the least of the window
    ahead = 0
    for i in range(len(values)):
        while ahead <= min(i + reach, len(values) - 1):
            while waiting and values[waiting[-1]] >= values[ahead]:
                waiting.pop()
            waiting.append(ahead)
            ahead += 1
        while waiting[0] < i - reach:
            waiting.popleft()
        yield values[waiting[0]]


def _divergence(law: Law, shift: int, factor: Fraction) -> Fraction:
    """The largest ``sum over k of (p(k) - factor * p(k - s))+`` of the shifts s with ``1 <= abs(s) <= shift``.

    Beyond the core and s further points both masses lie in one tail, and so the terms repeat every period, times
    the ratio: the last block of terms stands for its whole tail.
    """
    n, period = len(law.weights), law.period
    if law.left == law.right == 0:
        shift = min(shift, n)  # from a shift of n on, the two laws have no point in common
    if 2 * shift * (n + shift) > _MAX_STEPS:
        raise CertificateError(f"too large to check: {shift} shifts of {n} weights")
    weights, scale = _stretched(law, shift)
    ours, theirs = [w * factor.denominator for w in weights], [w * factor.numerator for w in weights]
    left, right = law.left, law.right
    left_rest, right_rest = left.denominator - left.numerator, right.denominator - right.numerator
    worst = 0
    for s in range(1, shift + 1):
        checkpoint()
        forward = ours[shift : shift + n + s], theirs[shift - s : shift + n]
        backward = ours[shift - s : shift + n], theirs[shift : shift + n + s]
        for here, there in (forward, backward):
            excess = [a - b if a > b else 0 for a, b in zip(here, there, strict=True)]
            found = sum(excess) * left_rest * right_rest
            if left or right:
                found += sum(excess[:period]) * left.numerator * right_rest
                found += sum(excess[-period:]) * right.numerator * left_rest
            worst = max(worst, found)
    return worst / (scale * factor.denominator * left_rest * right_rest * law.total)


# --- the objective -------------------------------------------------------------------------------------------------


def _entropy(law: Law) -> Enclosure:
    """``ln W - sum(w ln w) / W`` to 2^-64. It is 0 for a single point and irrational for any other pmf."""
    weights = [w for w in law.weights if w]
    if len(weights) == 1:
        return Enclosure(Fraction(0), Fraction(0))
    total, counts = sum(weights), Counter(weights)  # mirror images share a logarithm

    def compute() -> arb:
        balls = ((ball(w), n) for w, n in patiently(counts.items()) if w > 1)
        return ball(total).log() - sum((b * n * b.log() for b, n in balls), ball(0)) / ball(total)

    low = floor_scaled(compute, BITS)
    return Enclosure(Fraction(low, 1 << BITS), Fraction(low + 1, 1 << BITS))


def _wasserstein(law: Law, objective: Objective) -> Fraction:
    """The sum over all cuts k of ``abs(F_x(k) - F_{x+Z}(k))``, in lattice steps.

    Beyond the input's range a..b the sign is known and the sum is the expectation of the outer cost. Within it,
    ``F_{x+Z}(k) = sum_j p(j) F_x(k - j)`` is the flow of the core and of both tails, the left one mirrored.
    """
    outer = _expectation(law, outer_cost(objective))
    mass, period = sum(objective.weights), law.period
    cdf = list(accumulate(objective.weights))[:-1]
    survival = [mass - c for c in reversed(cdf)]  # the mirrored input's distribution function
    core, _ = _flow(law.weights, law.start, None, cdf, mass)
    right, right_unit = _flow(law.weights[-period:], law.end - period + 1, law.right, cdf, mass)
    left, left_unit = _flow(law.weights[:period][::-1], 1 - law.start - period, law.left, survival, mass)
    unit = lcm(right_unit, left_unit, law.total.denominator, law.left_mass.denominator)
    left_mass = int(unit * law.left_mass) * mass  # all of it, less what survives a cut
    whole, right_weight, left_weight = int(unit * law.total), unit // right_unit, unit // left_unit
    cuts = 0
    for own, c, r, s in zip(patiently(cdf), core, right, reversed(left), strict=True):
        cuts += abs(own * whole - c * unit - r * right_weight - left_mass + s * left_weight)
    return outer + Fraction(cuts, whole * mass)


def _flow(
    block: Sequence[int], first: int, ratio: Fraction | None, cdf: Sequence[int], mass: int
) -> tuple[list[int], int]:
    """At the cuts k = 0, 1, ... of an input: ``sum_j p(j) F(k - j)`` as integers, and the denominator of these.

    F is `cdf` from 0 on, 0 before and `mass` after it. Without a ratio p is the block itself, at ``first, first + 1,
    ...``; with one, p is what continues the block to the right: by ratio, ratio^2, ... every len(block) places.
    """
    width, period = len(cdf), len(block)
    lump = 0
    if ratio is None and first < -width:  # these points move the whole input beyond every cut
        lump, block, first = sum(block[: -width - first]) * mass, block[-width - first :], -width
    count = width - first
    if count <= 0:
        return [lump] * width, 1
    steps = convolution(block[:count], [*cdf[:count], *(mass,) * (count - width)])[:count]
    steps += [0] * (count - len(steps))
    unit = 1
    if ratio is not None:
        unit = ratio.denominator ** (count // period)
        affordable(unit.bit_length(), count)
        flow = [0] * count  # flow(v) = ratio * (steps(v - period) + flow(v - period)); the divisions are exact
        for v in patiently(range(period, count)):
            flow[v] = ratio.numerator * (steps[v - period] * unit + flow[v - period]) // ratio.denominator
        steps = flow
    return [lump + (steps[u - first] if u >= first else 0) for u in range(width)], unit


def outer_cost(objective: Objective) -> LatticeFunction:
    """j -> E(a - j - X)+ + E(X + j - b)+ for an input X on a..b: the cuts outside a..b when Z = j."""
    weights = objective.weights
    total, width = sum(weights), len(weights) - 1
    mean = Fraction(sum(i * w for i, w in enumerate(weights)), total)
    rising = [0, *accumulate(accumulate(reversed(weights)))]  # E(X + j - b)+ at j = 0, 1, ..., times total
    falling = [0, *accumulate(accumulate(weights))]  # E(a - j - X)+ at j = 0, -1, ..., times total
    table = [*reversed(falling[1:width]), *rising[:width]]
    entries = tuple(Fraction(v, total) for v in table)
    return LatticeFunction(1 - width if width else 0, entries, (-mean, Fraction(-1)), (mean - width, Fraction(1)))


def convolution(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """All sums of products of two lists of integers >= 0, by one product of two long integers.

    >>> convolution([1, 2], [3, 4, 5])
    [3, 10, 13, 10]
    """
    if not first or not second:
        return []
    bits = max(first).bit_length() + max(second).bit_length() + min(len(first), len(second)).bit_length()
    size = bits // 8 + 1
    affordable(8 * size, len(first) + len(second))
    packed = (b"".join(v.to_bytes(size, "little") for v in side) for side in (first, second))
    one, two = (int.from_bytes(side, "little") for side in packed)
    count = len(first) + len(second) - 1
    product = (one * two).to_bytes(count * size, "little")
    return [int.from_bytes(product[i * size : (i + 1) * size], "little") for i in range(count)]
