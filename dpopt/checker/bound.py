"""The bound that the witnesses of a statement prove, by weak duality.

The witnesses with their multipliers, whatever these are, give every lattice point a reduced cost d (`reduced_cost`).
Every feasible pmf p has ``objective >= constant + sum d p``, and since p sums to 1 and is 0 at the points that are
forbidden, ``sum d p >= lambda``, the largest number that a theorem allows: the least reduced cost of the points that
are left (`_least`), or, on all integers with a chain, more (`_chain_limit`). An objective that is not linear makes its
own bound of the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain as chained
from math import comb, lcm

from dpopt.checker.effort import afford, gcd_work
from dpopt.checker.reading import brief
from dpopt.checker.reduced_cost import ReducedCost, Total
from dpopt.checker.stated import Chain, Enclosures, Family
from dpopt.checker.statement import Statement
from dpopt.checker.sums import values_work
from dpopt.errors import CertificateError
from dpopt.lattice_function import LatticeFunction, Polynomial, geometric_moments, shifted
from dpopt.patience import checkpoint, patiently
from dpopt.work import STEP, Work

__all__ = ["proved_bound"]

_MAX_HORIZON = 1 << 21  # points beyond the tables at which a tail polynomial is evaluated one by one


def proved_bound(statement: Statement, enclosures: Enclosures) -> Fraction | None:
    """The bound that the witnesses prove; None if they prove none.

    Raises
    ------
    CertificateError
        An infeasibility proof proves nothing, or no point is left at all.
    """
    window, infeasible = statement.lattice.window, statement.infeasible
    cost = ReducedCost(enclosures, statement.precision, statement.scale)
    if not infeasible:
        statement.objective.add_cost(cost)
    for witness in statement.witnesses:
        witness.add_to(cost)
    zeros = frozenset(chained.from_iterable(family.zeros for family in statement.constraints))
    ends = (end for chain in statement.chains for end in (chain.low, chain.high))
    total = cost.total(window, [*zeros, *ends])
    allowed = _allowed(total, window, zeros, statement.constraints)
    if window is not None and not allowed:
        if infeasible:
            return None  # nothing is left to carry the mass
        raise CertificateError("problem.constraints: every point of the support is forbidden")

    def linear() -> Fraction | None:
        """The constant and lambda."""
        if statement.chains:
            (chain,) = statement.chains
            least = _chain_limit(total, chain, cost.growth(chain.epsilon), cost.fine)
        else:
            least = _least(total, allowed, infinite=window is None)
        return None if least is None else total.constant + least

    if not infeasible:
        return statement.objective.bound(total, allowed, linear)
    bound = linear()
    if bound is None or bound <= 0:
        shown = "no bound at all" if bound is None else f"the bound {brief(bound)}, which is not above 0"
        raise CertificateError(f"witnesses: do not prove infeasibility; they give {shown}")
    return bound


def _allowed(
    total: Total, window: tuple[int, int] | None, zeros: frozenset[int], constraints: Iterable[Family]
) -> list[int]:
    """The reduced costs of the points that may have mass; one constraint's zeros may narrow the next one's points."""
    alive: Sequence[int] = [k for k in range(total.low, total.low + len(total.values)) if k not in zeros]
    known = -1
    while window is not None and len(alive) != known:
        checkpoint()
        known = len(alive)
        for family in constraints:  # each pass costs as much as the first, and is put on the account by the families
            alive = family.narrowed(alive)
    return [total.values[k - total.low] for k in alive]


def _least(total: Total, allowed: Sequence[int], *, infinite: bool) -> Fraction | None:
    """The least reduced cost of the points that are allowed: ``sum d p >= lambda`` since p sums to 1."""
    limits: list[Fraction | None] = [Fraction(min(allowed), total.unit)] if allowed else []
    if infinite:
        limits.append(_infimum(total.right, total.low + len(total.values)))
        limits.append(_infimum(shifted(total.left, 0, step=-1), 1 - total.low))
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
    afford(expansions_work(polynomial, first), "takes the least value of a polynomial beyond all tables")
    horizon, stride = first, 1
    while any(c < 0 for c in shifted(polynomial, horizon)[1:]):
        horizon += stride
        stride *= 2
        if stride > _MAX_HORIZON:
            return None
    function = LatticeFunction.polynomial(polynomial)
    afford(values_work(function, first, horizon), f"takes the values of a polynomial at {horizon - first + 1} points")
    numerators, denominator = function.integers(first, horizon)
    return Fraction(min(numerators), denominator)


def expansions_work(polynomial: Polynomial, about: int) -> Work:
    """The polynomial's expansions about points ever further out, until one has no negative coefficient."""
    size, reach = len(polynomial), (abs(about) + _MAX_HORIZON).bit_length()
    above = max((c.numerator.bit_length() for c in polynomial), default=0) + size * reach
    below = lcm(*(c.denominator for c in polynomial)).bit_length() + 64
    return Work(_MAX_HORIZON.bit_length() * size**2 * (4 * STEP + (above + below) * below // 40))


# --- chains --------------------------------------------------------------------------------------------------------


def _chain_limit(total: Total, chain: Chain, growth: int, fine: int) -> Fraction | None:
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
    shift, first, unit, rest = chain.shift, total.low, total.unit, growth - fine
    afford(chain_work(total, chain, growth), f"takes the sums of a chain over {len(total.values)} points")
    start, stop = chain.high - shift + 1, chain.low + shift - 1  # where the last blocks begin, going outward
    sides = (
        _chain_sums(total.values[start - first :], shifted(total.right, start), unit, shift, fine, growth),
        _chain_sums(
            total.values[: stop - first + 1][::-1], shifted(total.left, stop, step=-1), unit, shift, fine, growth
        ),
    )
    limits: list[Fraction | None] = []
    for sums, beyond in sides:
        limits.append(Fraction(min(sums) * rest, unit * fine))
        limits.append(None if beyond is None else beyond * rest / fine)
    raised = total.values[chain.low - first : chain.high - first + 1]
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


def chain_work(total: Total, chain: Chain, growth: int) -> Work:
    """On either side a sum of fractions for the tail, and a product and a quotient for each point."""
    count, size, fine = 2 * len(total.values), max(len(total.left), len(total.right)), growth.bit_length()
    coefficients = (*total.left, *total.right)
    longest = max((c.denominator.bit_length() + c.numerator.bit_length() for c in coefficients), default=0)
    tail = longest + 2 * size * fine + size * chain.shift.bit_length()
    values = Work.on_integers(2 * count, total.unit.bit_length() + max(map(abs, total.values)).bit_length(), steps=2)
    sums = values.bit_operations // STEP * fine + chain.shift * size * (STEP + tail)
    return values.plus(Work(sums + size**2 * (4 * STEP + gcd_work(tail)), chain.shift * tail // 4))


def _chain_sums(
    outward: Sequence[int], tail: Polynomial, unit: int, shift: int, fine: int, growth: int
) -> tuple[list[int], Fraction | None]:
    """S at the places 0, 1, ... of `outward`, rounded down to multiples of 1/unit, and its infimum beyond them.

    `outward` is d * unit from the beginning of a last block outward, `tail` the polynomial that continues it.
    """
    # sum over t >= 1 of a^t tail(x + t m), by the binomial theorem a polynomial in x
    moments = geometric_moments(len(tail), Fraction(fine, growth))
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
