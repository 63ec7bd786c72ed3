"""The chance that noisy scores keep the true top k: integrals that are polynomials in ``u = e^(-x t)``.

Selection compares ``s_i = b_i + E_i`` with independent exponential E_i of rate x (the gap paper's Algorithm 1 on
rounded scores, whose selection the discrete algorithm has exactly). At a level t above all other scores,
``P(s_j < t) = 1 - e^(-x (t - b_j))`` is linear in u, and so is the density of a winner.

The product over the others is cut to the degree that matters: with ``a_j = e^(-x (last - b_j))`` and S their sum, its
coefficient of ``u^p`` is at most ``S^p / p!``, and what is left out after degree p lies between 0 and the next term,
with alternating sign (Bonferroni). A million scores far below the k-th largest cost no more than a few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import comb, exp, factorial, perm
from typing import NamedTuple

from flint import arb, arb_poly, ctx

from dpopt.arithmetic import ball

__all__ = ["Field", "chance_of_order", "chance_of_set"]

_MOST = 200.0  # expected number of others above the k-th largest score, beyond which a bound has to do


class Field(NamedTuple):
    """The winners in descending order, and the others as pairs of a score and how many have it, descending too."""

    winners: list[int]
    others: list[tuple[int, int]]

    @classmethod
    def of(cls, values: Iterable[int], k: int) -> Field:
        """The k largest values against the rest."""
        ordered = sorted(values, reverse=True)
        return cls(ordered[:k], list(Counter(ordered[k:]).items()))

    def nearest(self, rate: Fraction) -> Field:
        """With the others that can be looked at together, from the largest on: all, or as many as `_MOST` lets."""
        last, x = self.winners[-1], float(min(rate, Fraction(10**9)))
        expected, found = 0.0, []
        for value, many in self.others:  # floats will do: the chance is right for whichever others are left out
            share = exp(-min(x * min(last - value, 10**12), 700.0))
            if expected + many * share > _MOST:
                found.append((value, int((_MOST - expected) / share)))
                break
            expected += many * share
            found.append((value, many))
        return Field(self.winners, found)

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


def chance_of_set(field: Field, rate: Fraction) -> arb:
    """P(every winner's noisy score is above that of all others).

    The integral over 0 < u < 1 of Q(u) dg(u), with ``Q = P(all others < t)`` and ``g = P(all winners > t)``, which is
    the product of ``min(1, c_i u)``; u = 1 at the least winner's score.
    """
    last = field.winners[-1]
    polynomial = _all_below(field.others, last, rate)
    pieces = sorted(Counter(field.winners).items())  # from u = 1, where the least winner starts to fail, to u = 0
    total, active, height = arb(0), 0, 0
    for place, (value, many) in enumerate(pieces):
        active, height = active + many, height + many * (value - last)
        start = _power(rate, value - last)
        end = _power(rate, pieces[place + 1][0] - last) if place + 1 < len(pieces) else arb(0)
        inside = polynomial.left_shift(active - 1).integral()
        total += active * _power(rate, -height) * (inside(start) - inside(end))
    return total


def chance_of_order(field: Field, rate: Fraction) -> arb:
    """P(the winners' noisy scores descend in the order given, above those of all others).

    From the last winner to the first, P(s_i < t, s_i > s_{i+1} > ... > all others) is the integral of the one before
    against the density of s_i. It is needed from b_{i-1} >= b_i upward only, where it is one polynomial in u.
    """
    winners = field.winners
    below = _all_below(field.others, winners[-1], rate)
    for place in range(len(winners) - 1, 0, -1):
        sums = below.integral()
        below = _scaled(arb_poly([sums(arb(1))]) - sums, _power(rate, winners[place - 1] - winners[place]))
    sums = below.integral()
    return sums(arb(1)) - sums(arb(0))


def _all_below(others: list[tuple[int, int]], last: int, rate: Fraction) -> arb_poly:
    """The product of ``1 - a_j u`` for 0 <= u <= 1, up to an error of 2^-precision, which its first coefficient has."""
    shares = [(_power(rate, last - value), many) for value, many in others]
    count = sum(many for _, many in others)
    expected = sum((many * share for share, many in shares), arb(0))
    allowed, term, degree = arb(2) ** -ctx.prec, arb(1), 0
    while degree < count and not term < allowed:
        degree += 1
        term = term * expected / degree  # at least the coefficient of u^degree
    # Newton's identities: p e_p = e_{p-1} S_1 - e_{p-2} S_2 + ..., with power sums S_i of the a_j.
    sums, powers = [], [arb(1)] * len(shares)
    for _ in range(degree):
        powers = [power * share for power, (share, _) in zip(powers, shares, strict=True)]
        sums.append(sum((many * power for power, (_, many) in zip(powers, shares, strict=True)), arb(0)))
    signed = [arb(1)]  # (-1)^p e_p
    for p in range(1, degree + 1):
        signed.append(-sum((signed[p - i] * sums[i - 1] for i in range(1, p + 1)), arb(0)) / p)
    if degree < count:
        signed[0] += (-term).union(term)
    return arb_poly(signed)


def _power(rate: Fraction, distance: int) -> arb:
    """``e^(-x distance)``."""
    return ball(-rate * distance).exp()


def _scaled(polynomial: arb_poly, factor: arb) -> arb_poly:
    """``p(factor * u)``."""
    power, scaled = arb(1), []
    for coefficient in polynomial.coeffs():
        scaled.append(coefficient * power)
        power *= factor
    return arb_poly(scaled)
