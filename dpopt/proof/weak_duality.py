"""The bound that the multipliers of a statement prove, by weak duality.

The multipliers y, whatever they are, give every lattice point k the reduced cost ``d(k) = cost(k) - sum y h(k) + ...``
with E_hi for e^epsilon. Every feasible pmf p has ``objective >= constant + sum d p``, and since p sums to 1 and is
0 at the points that are forbidden, ``sum d p >= lambda``, the largest number that a theorem allows: the least reduced
cost of the points that are left (`_least`), or, on all integers with a chain, more (`_chain_limit`). The entropy is
bounded from above instead (`_entropy_bound`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import comb, lcm
from typing import TYPE_CHECKING

from dpopt.arithmetic import Enclosure, ball, floor_scaled
from dpopt.errors import CertificateError
from dpopt.lattice_function import LatticeFunction, Polynomial, geometric_sum, shifted
from dpopt.patience import checkpoint, patiently
from dpopt.proof.pmf_checks import BITS, affordable, convolution, outer_cost
from dpopt.proof.reading import MAX_POINTS, brief
from dpopt.proof.stated_objective import Objective
from dpopt.proof.statement import Chain, Events, Statement

if TYPE_CHECKING:
    from flint import arb

__all__ = ["proved_bound"]

_MAX_HORIZON = 1 << 21  # points beyond the tables at which a tail polynomial is evaluated one by one


def proved_bound(statement: Statement, enclosures: Mapping[Fraction, Enclosure]) -> Fraction | None:
    """The bound that the multipliers prove; None if they prove none.

    Raises
    ------
    CertificateError
        An infeasibility proof proves nothing, a multiplier belongs to no bound, or no point is left at all.
    """
    chain = statement.multipliers.chain
    upper = {epsilon: int(ends.upper * (1 << statement.precision)) for epsilon, ends in enclosures.items()}
    parts = _parts(statement, upper)
    reduced, forbidden = _reduced(statement, parts), statement.forbidden | _implied_zeros(statement)
    allowed = [v for k, v in enumerate(reduced.values, reduced.low) if k not in forbidden]
    if statement.window is not None and not allowed:
        if statement.infeasible:
            return None  # nothing is left to carry the mass
        raise CertificateError("problem.constraints: every point of the support is forbidden")
    if statement.objective.form == "entropy" and not statement.infeasible:
        return _entropy_bound(reduced, allowed, parts.constant)
    if chain is None:
        least = _least(statement, reduced, allowed)
    else:
        growth = upper[statement.constraints[chain.constraint].epsilon]
        least = _chain_limit(statement, reduced, chain, growth)
    bound = None if least is None else parts.constant + least
    if statement.infeasible and (bound is None or bound <= 0):
        shown = "no bound at all" if bound is None else f"the bound {brief(bound)}, which is not above 0"
        raise CertificateError(f"multipliers: do not prove infeasibility; they give {shown}")
    return bound


# --- the reduced cost ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """What the multipliers add up: d = sum of functions + pairs + events; each factor is E_hi * 2^precision."""

    constant: Fraction
    functions: list[tuple[LatticeFunction, Fraction]]
    pairs: list[tuple[Sequence[tuple[int, int, int]], int]]
    events: list[tuple[Events, int]]


def _parts(statement: Statement, upper: Mapping[Fraction, int]) -> _Parts:
    """Collect the contributions; the constant is ``sum y b - sum mu delta``."""
    one, multipliers = 1 << statement.scale, statement.multipliers
    constant, functions = Fraction(0), _objective_functions(statement)
    pairs: list[tuple[Sequence[tuple[int, int, int]], int]] = []
    events = [(event, upper[statement.objective.epsilon]) for event in multipliers.events]
    for index, entry in multipliers.entries.items():
        constraint = statement.constraints[index]
        for i, (y, term) in enumerate(zip(entry.values, constraint.terms, strict=True)):
            if y == 0:
                continue
            side = term.at_least if y > 0 else term.at_most
            if side is None:
                where = f"multipliers.constraints.{index}.values[{i}]"
                raise CertificateError(f"{where}: has the sign of a bound that the constraint does not have")
            constant += Fraction(y, one) * side
            functions.append((term.function, Fraction(-y, one)))
        constant -= constraint.delta * Fraction(sum(event.bound for event in entry.events), one)
        factor = upper[constraint.epsilon] if constraint.private else 1 << statement.precision
        pairs.append((entry.pairs, factor))
        events += [(event, factor) for event in entry.events]
    return _Parts(constant, functions, pairs, events)


def _objective_functions(statement: Statement) -> list[tuple[LatticeFunction, Fraction]]:
    """The cost itself; an infeasibility proof has none."""
    objective = statement.objective
    if statement.infeasible or objective.form in ("entropy", "delta"):
        return []
    if objective.form == "linear":
        return [(objective.cost, Fraction(1))]
    inner = _inner_cost(objective, statement.multipliers.slopes, 1 << statement.scale)
    return [(outer_cost(objective), statement.step), (inner, statement.step)]


def _inner_cost(objective: Objective, slopes: Sequence[int], one: int) -> LatticeFunction:
    """j -> sum over the cuts k in a..b-1 of ``slope_k / one * (F_x(k) - F_x(k - j))``."""
    weights = objective.weights
    total, width = sum(weights), len(weights) - 1
    unit = total * one
    padded = [*slopes, *(0,) * (width - len(slopes))]
    own = sum(s * f for s, f in zip(padded, accumulate(weights), strict=False))
    positive = convolution([max(s, 0) for s in padded], weights[::-1])
    negative = convolution([max(-s, 0) for s in padded], weights[::-1])
    # sum_k s_k F(k - j) grows by step(j) = sum_k s_k x(k - j) from j + 1 to j, and is 0 from j = width on
    steps = [p - n for p, n in zip(positive, negative, strict=True)]  # steps[j + width] is step(j)
    sums = list(accumulate(reversed(steps)))[::-1]  # sums[j + width] is sum_k s_k F(k - j)
    table = tuple(Fraction(own - sums[j + width], unit) for j in range(1 - width, width))
    return LatticeFunction(1 - width, table, (Fraction(own - sum(padded) * total, unit),), (Fraction(own, unit),))


@dataclass(frozen=True)
class _Reduced:
    """The reduced cost: ``values[k - low] / unit`` at index k, polynomials in k left and right of the values."""

    low: int
    values: list[int]
    unit: int
    left: Polynomial = ()
    right: Polynomial = ()


def _reduced(statement: Statement, parts: _Parts) -> _Reduced:
    """Add up d over the window, or over all tables (`_hull`) and in the tails."""
    low, high = statement.window or _hull(statement, parts)
    fine = 1 << statement.precision
    small = fine << statement.scale  # 1 / small is the unit of pairs and events
    unit = lcm(small, *(f.integers(0, -1)[1] * factor.denominator for f, factor in parts.functions))
    affordable(unit.bit_length(), high - low + 1)
    values = [0] * (high - low + 1)
    for pairs, growth in parts.pairs:
        for i, j, y in pairs:
            if low <= i <= high:  # a symmetric pair may have one point outside a window
                values[i - low] += y * fine
            if low <= j <= high:
                values[j - low] -= y * growth
    for event, growth in parts.events:
        checkpoint()
        here, ahead = _spread(event, low, len(values)), _spread(event, low + event.shift, len(values))
        values = [v + fine * w - growth * x for v, w, x in zip(values, here, ahead, strict=True)]
    values = [v * (unit // small) for v in values]
    for function, factor in parts.functions:
        checkpoint()
        numerators, denominator = function.integers(low, high)
        weight = factor.numerator * (unit // (denominator * factor.denominator))
        values = [v + n * weight for v, n in zip(values, numerators, strict=True)]
    left, right = ([(getattr(f, side), factor) for f, factor in parts.functions] for side in ("left", "right"))
    for event, growth in parts.events:
        left.append(((Fraction(event.left),), Fraction(fine - growth, small)))
        right.append(((Fraction(event.right),), Fraction(fine - growth, small)))
    return _Reduced(low, values, unit, _combined(left), _combined(right))


def _implied_zeros(statement: Statement) -> frozenset[int]:
    """Points of a window that a constraint leaves without mass: ``E h <= min h`` allows only where h is least.

    No finite multiplier says so much. One constraint's zeros may sharpen the next one's minimum.
    """
    if statement.window is None:
        return frozenset()
    low, high = statement.window
    bounded = [t for c in statement.constraints if c.form == "terms" for t in c.terms]
    alive, known = [k for k in range(low, high + 1) if k not in statement.forbidden], -1
    while alive and len(alive) != known:
        known = len(alive)
        checkpoint()
        for term in bounded:
            values, unit = term.function.integers(low, high)
            for side, extreme in ((term.at_most, min), (term.at_least, max)):
                if alive and side is not None and side * unit == (best := extreme(values[k - low] for k in alive)):
                    alive = [k for k in alive if values[k - low] == best]
    left = set(alive)
    return frozenset(k for k in range(low, high + 1) if k not in left)


def _hull(statement: Statement, parts: _Parts) -> tuple[int, int]:
    """The least range beyond which nothing has a table entry, so that d is a polynomial on either side."""
    firsts, lasts = [0], [-1]
    for function, _ in parts.functions:
        firsts.append(function.start)
        lasts.append(function.end - 1)
    for pairs, _ in parts.pairs:
        indices = [k for i, j, _ in pairs for k in (i, j)]
        firsts += indices
        lasts += indices
    for event, _ in parts.events:
        firsts += [event.start, event.start - event.shift]
        lasts += [event.start + len(event.weights) - 1 - shift for shift in (0, event.shift)]
    if (chain := statement.multipliers.chain) is not None:
        firsts.append(chain.low)
        lasts.append(chain.high)
    firsts += statement.forbidden
    lasts += statement.forbidden
    low, high = min(firsts), max(lasts)
    if high - low >= MAX_POINTS:
        raise CertificateError(f"multipliers: span more than {MAX_POINTS} lattice points")
    return low, high


def _spread(event: Events, first: int, count: int) -> list[int]:
    """The weights of an event at ``first, first + 1, ...``."""
    before = min(max(event.start - first, 0), count)
    after = min(max(first + count - event.start - len(event.weights), 0), count)
    middle = event.weights[max(first - event.start, 0) : max(first + count - event.start, 0)]
    return [event.left] * before + list(middle) + [event.right] * after


def _combined(parts: Iterable[tuple[Polynomial, Fraction]]) -> Polynomial:
    """The sum of polynomials, each times its factor."""
    result: list[Fraction] = []
    for polynomial, factor in parts:
        result += [Fraction(0)] * (len(polynomial) - len(result))
        for degree, coefficient in enumerate(polynomial):
            result[degree] += coefficient * factor
    while result and result[-1] == 0:
        result.pop()
    return tuple(result)


# --- what it proves ------------------------------------------------------------------------------------------------


def _least(statement: Statement, reduced: _Reduced, allowed: Sequence[int]) -> Fraction | None:
    """The least reduced cost of the points that are allowed: ``sum d p >= lambda`` since p sums to 1."""
    limits: list[Fraction | None] = [Fraction(min(allowed), reduced.unit)] if allowed else []
    if statement.window is None:
        limits.append(_infimum(reduced.right, reduced.low + len(reduced.values)))
        limits.append(_infimum(shifted(reduced.left, 0, step=-1), 1 - reduced.low))
    return _minimum(limits)


def _minimum(limits: Iterable[Fraction | None]) -> Fraction | None:
    """The least limit; None, for no lower bound at all, is below every number."""
    found = list(limits)
    known = [limit for limit in found if limit is not None]
    return min(known) if len(known) == len(found) else None


def _infimum(polynomial: Polynomial, first: int) -> Fraction | None:
    """The infimum over the integers ``k >= first``; None if it is -infinity or out of reach.

    Where the expansion about a point has no negative coefficient but the constant one, the polynomial rises from
    there on for good. Up to that horizon it is evaluated point by point.

    >>> _infimum((Fraction(0), Fraction(-7), Fraction(1)), 0)
    Fraction(-12, 1)
    """
    if polynomial and len(polynomial) > 1 and polynomial[-1] < 0:
        return None
    horizon, stride = first, 1
    while any(c < 0 for c in shifted(polynomial, horizon)[1:]):
        horizon += stride
        stride *= 2
        if stride > _MAX_HORIZON:
            return None
    numerators, denominator = LatticeFunction.polynomial(polynomial).integers(first, horizon)
    return Fraction(min(numerators), denominator)


def _chain_limit(statement: Statement, reduced: _Reduced, chain: Chain, growth: int) -> Fraction | None:
    """The largest lambda with ``sum d p >= lambda`` for every pmf on all integers that is epsilon-DP.

    Let m be the shift, E = E_hi = growth / fine, a = 1/E, and give the row p(k) <= E p(k + m) (outward) of every
    chain point k, which is one of the last m core points of a side or lies beyond them, the multiplier

        f(k) = S(k) - lambda a / (1 - a),     S(k) = sum over t >= 1 of a^t d(k + t m).

    Since S(k - m) = a (d(k) + S(k)), the reduced cost d - lambda + f(k) - E f(k - m) of every point beyond the core
    is 0. So if f >= 0 at *all* chain points, and d - lambda + (f on the last blocks) >= 0 at all core points, then
    sum d p >= lambda: summed up to a horizon, only -f(k) p(k) on the outermost m points remains, and this vanishes as
    the horizon grows, because f(k) p(k) is at most the rest of a convergent sum.

    S is rounded down in each step of the recursion, so that numbers do not grow. The multipliers need not be the
    f above: with S(k - m) <= a (d(k) + S(k)), all that is lost is that a point beyond the core has a reduced cost
    >= 0 instead of 0. Beyond the tables S is a polynomial, and its infimum is known exactly.
    """
    shift, fine = statement.constraints[chain.constraint].shift, 1 << statement.precision
    first, unit, rest = reduced.low, reduced.unit, growth - fine
    start, stop = chain.high - shift + 1, chain.low + shift - 1  # where the last blocks begin, going outward
    sides = (
        _chain_sums(reduced.values[start - first :], shifted(reduced.right, start), unit, shift, fine, growth),
        _chain_sums(
            reduced.values[: stop - first + 1][::-1], shifted(reduced.left, stop, step=-1), unit, shift, fine, growth
        ),
    )
    limits: list[Fraction | None] = []
    for sums, beyond in sides:
        limits.append(Fraction(min(sums) * rest, unit * fine))
        limits.append(None if beyond is None else beyond * rest / fine)
    raised = reduced.values[chain.low - first : chain.high - first + 1]
    blocks = [0] * len(raised)
    for x in range(shift):
        for place, (sums, _) in zip((start - chain.low + x, shift - 1 - x), sides, strict=True):
            raised[place] += sums[x]
            blocks[place] += 1
    for count in (0, 1, 2):
        core = [v for v, found in zip(raised, blocks, strict=True) if found == count]
        if core:  # v / unit - lambda (1 + count a / (1 - a)) >= 0
            limits.append(Fraction(min(core) * rest, unit * (rest + count * fine)))
    return _minimum(limits)


def _chain_sums(
    outward: Sequence[int], tail: Polynomial, unit: int, shift: int, fine: int, growth: int
) -> tuple[list[int], Fraction | None]:
    """S at the places 0, 1, ... of `outward`, rounded down to multiples of 1/unit, and its infimum beyond them.

    `outward` is d * unit from the beginning of a last block outward, `tail` the polynomial that continues it.
    """
    # sum over t >= 1 of a^t tail(x + t m), by the binomial theorem a polynomial in x
    moments = [geometric_sum((Fraction(0),) * i + (Fraction(1),), Fraction(fine, growth)) for i in range(len(tail))]
    moments[:1] = [moment - 1 for moment in moments[:1]]  # only t = 0 of the power 0 is too much
    further = [Fraction(0)] * len(tail)
    for degree, coefficient in enumerate(tail):
        for power in range(degree + 1):
            weight = comb(degree, power) * shift ** (degree - power) * moments[degree - power]
            further[power] += coefficient * weight
    count = len(outward)
    numerators, denominator = LatticeFunction.polynomial(further).integers(count - shift, count - 1)
    sums = [0] * (count - shift) + [n * unit // denominator for n in numerators]
    for x in patiently(reversed(range(count - shift))):
        sums[x] = fine * (outward[x + shift] + sums[x + shift]) // growth
    return sums, _infimum(tuple(further), count)


def _entropy_bound(reduced: _Reduced, allowed: Sequence[int], constant: Fraction) -> Fraction:
    """``ln(sum exp(-d)) - constant`` rounded up to 2^-64: above the entropy of every feasible pmf.

    By Lindemann and Weierstrass it is irrational unless a single point is allowed.
    """
    least = min(allowed)
    offset = -Fraction(least, reduced.unit) - constant  # taken out of the sum, so that its largest term is 1
    if len(allowed) == 1:
        return Fraction(-(-offset * (1 << BITS) // 1), 1 << BITS)

    def compute() -> arb:
        unit = ball(-reduced.unit)
        return ball(offset) + sum(((ball(v - least) / unit).exp() for v in patiently(allowed)), ball(0)).log()

    return Fraction(floor_scaled(compute, BITS) + 1, 1 << BITS)
