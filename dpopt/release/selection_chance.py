"""The chance that noisy scores keep the true top k: integrals that are polynomials in ``u = e^(-x t)``.

Selection compares ``s_i = b_i + E_i`` with independent exponential E_i of rate x (the gap paper's Algorithm 1 on
rounded scores, whose selection the discrete algorithm has exactly). At a level t above all other scores,
``P(s_j < t) = 1 - e^(-x (t - b_j))`` is linear in u, and so is the density of a winner.

The product over the others is cut twice. With ``a_j = e^(-x (last - b_j))`` and S their sum:

- *In degree.* Its coefficient of ``u^p`` is at most ``S^p / p!``, and what is left out after degree p lies between 0
  and the next term, with alternating sign (Bonferroni). A million scores far below the k-th cost no more than a few.
- *In range.* The product is at most ``e^(-S u)``, so that among many close scores (sparse counts, where most are 0) all
  but a little of the integral lies at ``u < U``, a few times k / S. The polynomial is in ``v = u / U``, and what lies
  beyond is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import ceil, comb, exp, factorial, isqrt, perm, prod
from typing import NamedTuple

from flint import arb, arb_poly, arb_series

from dpopt.arithmetic import ball
from dpopt.balls import at_precision, working_precision

__all__ = ["Field", "chance_of_order", "chance_of_set"]


class Field(NamedTuple):
    """The winners in descending order, and the others as pairs of a score and how many have it, descending too."""

    winners: list[int]
    others: list[tuple[int, int]]

    @classmethod
    def of(cls, values: Iterable[int], k: int) -> Field:
        """The k largest values against the rest."""
        ordered = sorted(values, reverse=True)
        return cls(ordered[:k], list(Counter(ordered[k:]).items()))

    def is_certain(self, ordered: bool) -> bool:
        """Whether any selection is a top k: all scores are equal, or all items are selected, in whatever order."""
        least = self.others[-1][0] if self.others else self.winners[-1]
        return least == self.winners[0] or not (self.others or ordered)

    def ways_of_set(self) -> int:
        """How many sets are a top k: choices among those that tie with the last winner."""
        last = self.winners[-1]
        inside = self.winners.count(last)
        return comb(inside + self._tied(), inside)

    def ways_of_order(self) -> int:
        """How many orders of items are a top k in descending order."""
        last, ways = self.winners[-1], 1
        for value, inside in Counter(self.winners).items():
            ways *= perm(inside + self._tied(), inside) if value == last else factorial(inside)
        return ways

    def _tied(self) -> int:
        return self.others[0][1] if self.others and self.others[0][0] == self.winners[-1] else 0


class _Range(NamedTuple):
    """Where to integrate: up to U, with bits to spare for what cancels; beyond it floats choose, and balls bound."""

    reach: Fraction
    spare: int

    @classmethod
    def of(cls, field: Field, rate: Fraction, *, lost: int) -> _Range:
        """U = 1, or so far that about ``e^-precision`` of the integral is left out.

        `lost` is how many times the bits of S U are lost to a result that is much smaller than the sums it comes from.
        """
        last, x, bits = field.winners[-1], float(min(rate, Fraction(10**9))), working_precision()
        expected = sum(many * exp(-min(x * min(last - value, 10**12), 700.0)) for value, many in field.others)
        k = len(field.winners)
        enough = k + isqrt(2 * k * bits) + bits  # S u there: the integrand is like e^(-S u) u^(k - 1)
        reach = Fraction(enough, ceil(expected)) if expected > enough else Fraction(1)
        seen = min(enough, int(expected))
        return cls(reach, 3 * seen + lost * seen.bit_length())


def chance_of_set(field: Field, rate: Fraction) -> arb:
    """P(every winner's noisy score is above that of all others).

    The integral over 0 < u < 1 of Q(u) dg(u), with ``Q = P(all others < t)`` and ``g = P(all winners > t)``, which is
    the product of ``min(1, c_i u)``; u = 1 at the least winner's score.
    """
    reach, spare = _Range.of(field, rate, lost=isqrt(len(field.winners)))
    return at_precision(working_precision() + spare, lambda: _chance_of_set(field, rate, reach))


def _chance_of_set(field: Field, rate: Fraction, reach: Fraction) -> arb:
    last = field.winners[-1]
    below = _all_below(field.others, last, rate, reach)
    pieces = sorted(Counter(field.winners).items())  # from u = 1, where the least winner starts to fail, to u = 0
    ends = [(_power(rate, value - last) / ball(reach)).min(arb(1)) for value, _ in pieces] + [arb(0)]
    total, active, height = arb(0), 0, 0
    for place, (value, many) in enumerate(pieces):
        active, height = active + many, height + many * (value - last)
        if not ends[place + 1] >= 1:
            inside = below.polynomial.left_shift(active - 1).integral()
            lead = active * _power(rate, -height) * ball(reach) ** active
            total += lead * (inside(ends[place]) - inside(ends[place + 1]))
    # Beyond U, g' is at most m g(U) / U (u / U)^(m - 1), where m winners may fail at U.
    failing = [factor for factor in _factors(field.winners, rate, reach) if not factor >= 1]
    return total + below.beyond(len(failing)) * len(failing) * prod(failing, start=arb(1))


def chance_of_order(field: Field, rate: Fraction) -> arb:
    """P(the winners' noisy scores descend in the order given, above those of all others).

    From the last winner to the first, P(s_i < t, s_i > s_{i+1} > ... > all others) is the integral of the one before
    against the density of s_i. It is needed from b_{i-1} >= b_i upward only, where it is one polynomial in u.
    """
    reach, spare = _Range.of(field, rate, lost=len(field.winners))
    return at_precision(working_precision() + spare, lambda: _chance_of_order(field, rate, reach))


def _chance_of_order(field: Field, rate: Fraction, reach: Fraction) -> arb:
    winners = field.winners
    below = _all_below(field.others, winners[-1], rate, reach)
    factors = _factors(winners, rate, reach)  # winner i's own u is factor * v
    chance, total = below.polynomial, arb(0)
    for factor in reversed(factors):
        sums = factor * chance.integral()
        total = sums((1 / factor).min(arb(1)))
        chance = arb_poly([total]) - sums
    # Beyond U, P(s_1 > ... > s_{k-1} > t) / u^(k - 1) falls in u; at U, winners that tie are in any order.
    orders = prod(map(factorial, Counter(winners[:-1]).values()))
    above = prod((factor.min(arb(1)) for factor in factors[:-1]), start=arb(1)) / orders
    return total + below.beyond(len(winners)) * above * ball(reach)


class _Below(NamedTuple):
    """P(all others < t) as a polynomial in ``v = u / U`` for 0 <= v <= 1, and ``S U``."""

    polynomial: arb_poly
    expected: arb
    is_all: bool

    def beyond(self, power: int) -> arb:
        """From 0 to a bound of the integral of ``P(all others < t) v^(power - 1)`` over v from 1 to 1 / U.

        It is at most that of ``e^(-S U v) v^(power - 1)``, whose logarithm falls from 1 on by ``S U - power + 1``.
        """
        if self.is_all:
            return arb(0)
        falls = self.expected - power + 1
        return arb(0).union((-self.expected).exp() / falls if falls > 0 else arb.pos_inf())


def _all_below(others: list[tuple[int, int]], last: int, rate: Fraction, reach: Fraction) -> _Below:
    """The product of ``1 - a_j U v``, up to an error of 2^-precision, which its first coefficient has."""
    shares = [(ball(reach) * _power(rate, last - value), many) for value, many in others]
    count = sum(many for _, many in others)
    expected = sum((many * share for share, many in shares), arb(0))
    allowed, term, degree = arb(2) ** -working_precision(), arb(1), 0
    while degree < count and not term < allowed:
        degree += 1
        term = term * expected / degree  # at least the coefficient of v^degree
    # The logarithm of the product is -(S_1 v + S_2 v^2 / 2 + ...), with power sums S_p of the a_j U.
    sums = _power_sums(shares, expected, degree)
    logarithm = [arb(0), *(-power_sum / p for p, power_sum in enumerate(sums, 1))]
    coefficients = _exponential(logarithm)
    if degree < count:
        coefficients[0] += (-term).union(term)
    return _Below(arb_poly(coefficients), expected, reach == 1)


def _power_sums(shares: list[tuple[arb, int]], expected: arb, most: int) -> list[arb]:
    """The sums of the first powers of falling shares; those that no longer matter stand as a bound."""
    sums, powers, left = [], [many * share for share, many in shares], len(shares)
    sizes, negligible = [_log2(share) for share, _ in shares], -working_precision() - 32
    for p in range(1, most + 1):
        while left and p > 1 and (p - 1) * sizes[left - 1] < negligible:
            left -= 1
        if p > 1:
            powers = [power * share for power, (share, _) in zip(powers[:left], shares, strict=False)]
        total = sum(powers, arb(0))
        if left < len(shares):  # the rest is at most its largest share, to the power p - 1, times its sum
            total += arb(0).union(shares[left][0] ** (p - 1) * expected)
        sums.append(total)
    return sums


def _log2(share: arb) -> float:
    """About the logarithm of a positive ball, however small."""
    mantissa, exponent = (int(part) for part in share.mid().man_exp())
    return float(max(exponent + mantissa.bit_length(), -(10**15)))


def _exponential(series: list[arb]) -> list[arb]:
    """``e`` to a power series, to as many terms; halved first, and squared again: the plain way loses all digits."""
    terms = len(series)
    halvings = ceil(float(abs(series[1]).upper())).bit_length() if terms > 1 else 0
    halved = [term / 2**halvings for term in series]
    small = at_precision(working_precision(), lambda: arb_series(halved, prec=terms).exp(), terms=terms)
    # What a series leaves out would count as exactly 0.
    found = arb_poly(small.coeffs() if small.prec >= terms else _term_by_term(halved))
    for _ in range(halvings):
        found = (found * found).truncate(terms)
    return found.coeffs() + [arb(0)] * (terms - found.length())


def _term_by_term(series: list[arb]) -> list[arb]:
    """``e`` to a power series without a constant term, slowly: should a stranger's thread cut python-flint's short."""
    found = [arb(1)]
    for n in range(1, len(series)):
        found.append(sum((k * series[k] * found[n - k] for k in range(1, n + 1)), arb(0)) / n)
    return found


def _factors(winners: list[int], rate: Fraction, reach: Fraction) -> list[arb]:
    """What turns v into each winner's own ``u = e^(-x (t - b_i))``."""
    return [ball(reach) * _power(rate, winners[-1] - value) for value in winners]


def _power(rate: Fraction, distance: int) -> arb:
    """``e^(-x distance)``."""
    return ball(-rate * distance).exp()
