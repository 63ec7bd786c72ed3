"""From a pmf and a key size to a key table: the paper's ceilings, symmetric rounding, or the optimal table.

The products c(z) K are never floats. For a `Pmf` they are rationals; for the ideal TableBuilder family (D, gamma)
they are irrational (Lindemann-Weierstrass), so that balls of growing precision decide every ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate

from flint import arb

from dpopt.arithmetic import ball, exact_integer
from dpopt.balls import decided
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.reading import read_choice
from dpopt.tables.ideal import Ideal, ideal_pmf, read_ideal
from dpopt.tables.key_table import KeyTable

__all__ = ["Rule", "key_table", "read_rule"]

_MAX_PRECISION = 1 << 22
_ALIKE_BITS = 40


class Rule(StrEnum):
    """How a pmf becomes integers.

    CEILING: the paper's c(z) = ceil(P(Z <= z) K), equation (39). SYMMETRIC: the nearest integer to p(z) K for z = 1..D,
    mirrored, and the rest at 0: bias exactly 0. CUMULATIVE: the nearest integers to P(Z <= z) K, for rows of any shape:
    the total is always K, where rounding each p(z) K may miss it. OPTIMAL: the table that is closest to the pmf in
    total variation among those with full support, bias exactly 0 and a variance that is not larger; see
    `optimal_table` for more choices.
    """

    CEILING = "ceiling"
    SYMMETRIC = "symmetric"
    CUMULATIVE = "cumulative"
    OPTIMAL = "optimal"


def read_rule(rule: Rule | str) -> Rule:
    """A rule or its name, as a rule.

    >>> read_rule("ceiling").name
    'CEILING'
    """
    return read_choice(Rule, rule, "rule")


def key_table(pmf: Ideal, key_size: int, *, rule: Rule | str = Rule.CEILING) -> KeyTable:
    """The key table of a pmf for K = `key_size` keys.

    Parameters
    ----------
    pmf : Pmf, (D, gamma), or anything with a `pmf` attribute
        A finite support with lattice step 1. ``(D, gamma)`` is the ideal family with gamma >= 0, decided by balls.
    key_size : int
        K, any integer >= 1 (2^64 and beyond included).
    rule : Rule or str
        The paper's rule when left out.

    Returns
    -------
    KeyTable
        Its counts sum to K by definition: the last cumulative entry is K, never K + 1 (equation (39) in floats
        makes it K + 1 in a quarter of designs). It may have lost values: see `KeyTable.has_full_support`.

    Examples
    --------
    >>> key_table((2, "1/3"), 256, rule="ceiling").cumulative
    (23, 85, 172, 234, 256)
    >>> key_table((2, "1/3"), 256, rule=Rule.SYMMETRIC).counts
    (23, 62, 86, 62, 23)
    """
    ideal = read_ideal(pmf)
    size = exact_integer(key_size, "key_size", at_least=1)
    chosen = read_rule(rule)
    if chosen in (Rule.CEILING, Rule.CUMULATIVE):
        cumulative = _ceilings(ideal, size) if chosen is Rule.CEILING else _nearest_cumulative(ideal_pmf(ideal), size)
        counts = [cumulative[0], *(b - a for b, a in zip(cumulative[1:], cumulative, strict=False))]
        return KeyTable(_start(ideal), counts, size)
    if chosen is Rule.SYMMETRIC:
        half = _nearest(ideal, size)
        middle = size - 2 * sum(half)
        if middle < 0:
            raise InputError("key_size", f"= {size} is too small for symmetric rounding: {middle} keys are left for 0")
        return KeyTable(-len(half), [*reversed(half), middle, *half], size)
    from dpopt.tables.optimal import optimal_table  # a solver is loaded only when one is asked

    return optimal_table(ideal, size).require_verified().table


def _start(ideal: Pmf | tuple[int, Fraction]) -> int:
    return ideal.start if isinstance(ideal, Pmf) else -ideal[0]


def _ceilings(ideal: Pmf | tuple[int, Fraction], size: int) -> list[int]:
    """ceil(c(z) K) for each z of the support, equation (39); the last is K by definition."""
    if isinstance(ideal, Pmf):
        total = sum(ideal.weights)
        return [-(-c * size // total) for c in accumulate(ideal.weights)]
    half_width, rate = ideal

    def below() -> list[arb]:
        masses, total = _masses(half_width, rate)
        return [c * size / total for c in accumulate(masses[:0:-1])]

    # No c(z) K with z < D is an integer for rational gamma > 0, so that a ceiling is a floor plus 1, and by symmetry
    # the ceilings of c(z) and of c(-z-1) = 1 - c(z) add up to K + 1: the half near 1 needs no digits of its own.
    left = [floor + 1 for floor in _decided_floors(below, size)]
    return [*left, *(size + 1 - c for c in reversed(left)), size]


def _nearest_cumulative(pmf: Pmf, size: int) -> list[int]:
    """floor(c(z) K + 1/2) for each z of the support."""
    total = sum(pmf.weights)
    return [(2 * c * size + total) // (2 * total) for c in accumulate(pmf.weights)]


def _nearest(ideal: Pmf | tuple[int, Fraction], size: int) -> list[int]:
    """floor(p(z) K + 1/2) for z = 1..D of a symmetric pmf."""
    if isinstance(ideal, Pmf):
        return _nearest_rational(ideal, size)
    half_width, rate = ideal

    def shifted() -> list[arb]:
        masses, total = _masses(half_width, rate)
        return [masses[z] * size / total + ball(Fraction(1, 2)) for z in range(1, half_width + 1)]

    return _decided_floors(shifted, size)


def _nearest_rational(pmf: Pmf, size: int) -> list[int]:
    """floor(p(z) K + 1/2) for z = 1..D, with p(z) the mean of both sides.

    A solved pmf may differ from its mirror by the last bits that made its moments exact; more is an error.
    """
    total, pairs = sum(pmf.weights), list(zip(pmf.weights, reversed(pmf.weights), strict=True))
    if pmf.start != -pmf.end or any(abs(a - b) << _ALIKE_BITS > total for a, b in pairs):
        raise InputError("pmf", "must be symmetric about 0 for rule 'symmetric'; use 'ceiling' or 'optimal'")
    return [((a + b) * size + total) // (2 * total) for a, b in pairs[pmf.end + 1 :]]


def _masses(half_width: int, rate: Fraction) -> tuple[list[arb], arb]:
    """e^(-gamma z^2) for z = 0..D, each with its own relative precision, and their sum over [-D, D]."""
    masses = [(-ball(rate * z * z)).exp() for z in range(half_width + 1)]
    half = arb(0)
    for mass in reversed(masses[1:]):
        half += mass
    return masses, masses[0] + 2 * half


def _decided_floors(compute: Callable[[], list[arb]], size: int) -> list[int]:
    """The floors of irrational numbers of the order of `size`, at a precision that is raised until all are decided."""

    def all_floors() -> list[int] | None:
        floors = []
        for number in compute():
            floor = number.floor().unique_fmpz()
            if floor is None:
                return None
            floors.append(int(floor))
        return floors

    return decided(
        all_floors,
        size.bit_length() + 64,
        most=_MAX_PRECISION,
        undecided="a product of the cumulative function and the key size could not be separated from an integer",
    )
