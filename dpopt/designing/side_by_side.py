"""Choosing D and V for a wanted (epsilon, delta): the three families side by side, and the best gamma for a D.

Everything returned is proved: D by a certificate, real numbers as enclosures, optima over gamma by the lemma of
`dpopt.family.members`. All functions take the sensitivity m; the ABS paper has m = 1.

The paper's routine (its section III-D, equations (33)-(36)) in its four steps, with two slips corrected: its step 1
prints "1 < delta < 1", where 0 < delta < 1 is meant, and its (33) prints gamma = epsilon / (2D - 1) - iota with
iota < 0, which lies outside its own range (23); the sign must be +, and iota = 0 is admissible.

1. Start with the wanted epsilon > 0 and 0 < delta < 1.

   >>> epsilon, delta = 1, "1e-3"

2. Take the smallest D at which (29), the delta of gamma = epsilon / (2D - 1), is small enough. The paper counts up from
   D = 1; delta falls as D grows, so dpopt bisects, and proves D: this one reaches delta, one less does not.

   >>> from dpopt.problem.target import target
   >>> from dpopt.designing.targeting import solve
   >>> solution = solve(target(epsilon=epsilon, delta=delta, family="analytic"))
   >>> solution.design.D, solution.verified.value, float(solution.design.delta)
   (10, 'optimal', 0.0006707463323772308)

3. The variance that belongs to it is (28).

   >>> round(float(solution.design.V), 9)
   9.424888062

4. The noise is p(z) proportional to e^(-gamma z^2) on [-D, D], equation (33) with iota = 0, as exact integer weights.

   >>> solution.design.gamma, round(float(solution.pmf.probability(0)), 9)
   (Fraction(1, 19), 0.129514603)

The rule is not the best of its family, and its family is not the best of all: see `designs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpopt.arithmetic import Enclosure, Number, as_enclosure, exact_integer
from dpopt.balls import at_precision
from dpopt.designing.targeting import guessed_rate, solve
from dpopt.distributions.base import width_bits
from dpopt.family.members import IdealMember, breakpoints, reaching_rate, require_half_width
from dpopt.problem.target import Family, Target
from dpopt.record import Record
from dpopt.solution import Solution

__all__ = [
    "Designs",
    "FamilyDesign",
    "FamilyOptimum",
    "PaperRanges",
    "best_rate",
    "designs",
    "member_variance",
    "paper_ranges",
    "read_question",
    "text_table",
    "working_bits",
]

_BITS = 192  # working precision of enclosures that are shown, beside what a long sum loses


def working_bits(half_width: int) -> int:
    return _BITS + 2 * half_width.bit_length()


def member_variance(half_width: int, rate: Fraction) -> Enclosure:
    """The variance of the ideal member, equation (24)."""
    return at_precision(working_bits(half_width), lambda: as_enclosure(IdealMember(half_width, rate).variance()))


def read_question(epsilon: Number, sensitivity: Number, delta: Number = "1/2") -> Target:
    """epsilon, delta and the sensitivity, read and refused as a target reads and refuses them."""
    return Target(epsilon, delta, Family.TABLEBUILDER, sensitivity)  # type: ignore[arg-type]  # read by the constructor


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Right-aligned columns; the first is left-aligned."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.rjust(w) if i else text.ljust(w) for i, (text, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )


# --- the best gamma for a given D ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class FamilyOptimum(Record):
    """The member of the family on [-D, D] with the smallest delta at an epsilon, over all gamma >= 0.

    Parameters
    ----------
    gamma : Fraction
        ``epsilon / (m (2 (D - j) - m))``; 0 for the uniform pmf.
    j : int or None
        Which breakpoint: 0 is the paper's choice; None for the uniform pmf.
    delta, V : Enclosure
        Of the ideal member; no other member has a delta as small.
    """

    D: int
    gamma: Fraction
    j: int | None
    delta: Enclosure
    V: Enclosure


def best_rate(D: int, epsilon: Number, sensitivity: Number = 1) -> FamilyOptimum:  # noqa: N803
    """The gamma with the smallest delta for a support [-D, D] and an epsilon: proved over all gamma >= 0.

    The paper scans a grid (its Fig. 2). Here every other breakpoint is shown to have a larger delta, range by range
    with the lemma of `dpopt.family.members`; between breakpoints delta is at least its smaller end.

    Examples
    --------
    >>> best = best_rate(11, 1)
    >>> best.gamma, best.j, float(best.delta), round(float(best.V), 6)
    (Fraction(1, 19), 1, 0.0002889875194172079, 9.474428)
    """
    half_width = exact_integer(D, "D", at_least=0)
    require_half_width(half_width, 16)
    read = read_question(epsilon, sensitivity)
    question = half_width, read.epsilon, read.shift
    points = breakpoints(*question)
    best: Fraction | None = guessed_rate(*question)
    while best is not None:
        gamma, delta = best, _member_delta(half_width, best, read)
        place = points.index(gamma)
        below = reaching_rate(*question, delta.upper, Fraction(0), points[place - 1]) if place else None
        above = None
        if below is None and place + 1 < len(points):
            above = reaching_rate(*question, delta.upper, points[place + 1], None)
        best = above if below is None else below
    delta = Enclosure(max(delta.lower, Fraction(0)), min(delta.upper, Fraction(1)))
    return FamilyOptimum(half_width, gamma, place - 1 if place else None, delta, member_variance(half_width, gamma))


def _member_delta(half_width: int, rate: Fraction, read: Target) -> Enclosure:
    """The ideal member's delta at the epsilon and the shift of a question."""
    # two breakpoints differ by a part of epsilon, and so do their deltas
    bits = working_bits(half_width) + 2 * width_bits(read.epsilon)
    return at_precision(bits, lambda: as_enclosure(IdealMember(half_width, rate).delta(read.epsilon, read.shift)))


@dataclass(frozen=True, repr=False)
class PaperRanges(Record):
    """The two ends of each of the paper's ranges, low end first; the ends are numbers, which `gamma` has exactly."""

    gamma: tuple[Fraction, Fraction]
    V: tuple[Enclosure, Enclosure]
    C: tuple[Enclosure, Enclosure]
    delta: tuple[Enclosure, Enclosure]


def paper_ranges(epsilon: Number, D: int) -> PaperRanges:  # noqa: N803
    """The paper's ranges (23) of gamma, (25) of V, (26) of C = p(0) and (27) of delta, at sensitivity 1.

    They keep z* = -D, so that delta = p(D). V and delta fall and C grows along gamma: what gamma's upper end gives is
    the lower end of V and of delta. The paper leaves out the upper end of gamma; since the borderline term is 0 there,
    it belongs to the range (29 is attained), and it is the best choice within it.

    Examples
    --------
    >>> found = paper_ranges(1, 11)
    >>> [str(g) for g in found.gamma], [str(v) for v in found.V]
    (['1/23', '1/21'], ['10.4473073733', '11.4039203194'])
    >>> [str(c) for c in found.C], [str(d) for d in found.delta]
    (['0.117719994416', '0.123161410575'], ['0.000387356823687', '0.000611059655163'])
    """
    half_width = exact_integer(D, "D", at_least=1)
    require_half_width(half_width, 2)
    value = read_question(epsilon, 1).epsilon
    rates = value / (2 * half_width + 1), value / (2 * half_width - 1)

    def ranges() -> PaperRanges:
        low, high = (IdealMember(half_width, rate) for rate in rates)
        variances = as_enclosure(high.variance()), as_enclosure(low.variance())
        centres = as_enclosure(1 / low.total), as_enclosure(1 / high.total)
        deltas = as_enclosure(high.masses[-1] / high.total), as_enclosure(low.masses[-1] / low.total)
        return PaperRanges(rates, variances, centres, deltas)

    return at_precision(working_bits(half_width), ranges)


# --- the three families side by side ---------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class FamilyDesign(Record):
    """One family's smallest support for a wanted (epsilon, delta), and what its noise costs."""

    family: Family
    solution: Solution

    @cached_property
    def facts(self) -> dict[str, Any]:
        """D, V, gamma, delta, entropy (nats), and costs: standard deviation, E|Z| and the share of changed counts."""
        design, pmf = self.solution.require_verified().design, self.solution.pmf
        assert design is not None
        return {
            "family": str(self.family),
            "D": design.D,
            "V": float(design.V),
            "gamma": None if design.gamma is None else float(design.gamma),
            "delta": float(design.delta.upper),
            "entropy": float(pmf.entropy),
            "standard_deviation": float(design.V) ** 0.5,
            "mean_absolute": float(pmf.absolute_moment(1)),
            "changed": float(1 - pmf.probability(0)),
        }


@dataclass(frozen=True, repr=False)
class Designs(Record):
    """The families `analytic`, `tablebuilder` and `any` for one (epsilon, delta); prints as a table."""

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    rows: tuple[FamilyDesign, ...]

    def __getitem__(self, family: Family | str) -> Solution:
        return {str(row.family): row.solution for row in self.rows}[str(family)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: exact numbers of the question as text, the nearest floats of the answers."""
        question = {"epsilon": str(self.epsilon), "delta": str(self.delta), "sensitivity": str(self.sensitivity)}
        return {**question, "designs": [dict(row.facts) for row in self.rows]}

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        header = ("family", "D", "V", "gamma", "delta", "entropy", "sd", "E|Z|", "P(Z != 0)")
        keys = ("family", "D", "V", "gamma", "delta", "entropy", "standard_deviation", "mean_absolute", "changed")
        rows = ([_cell(row.facts[key]) for key in keys] for row in self.rows)
        return text_table(header, rows)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def designs(epsilon: Number, delta: Number, sensitivity: Number = 1, *, backend: Any = "auto") -> Designs:
    """The smallest support that each family needs for (epsilon, delta), side by side, each proved.

    `analytic` is the paper's rule, `tablebuilder` the best gamma for each D, `any` the bound that no noise beats. A
    smaller support, variance, E|Z| and share of changed counts cost less utility; more entropy hides more.

    Parameters
    ----------
    epsilon, delta, sensitivity : number
        As in `dpopt.target`.
    backend : str or Backend
        Solves the linear programs of family `any` at a sensitivity above 1; otherwise nothing is solved.

    Examples
    --------
    >>> print(designs(1, "1e-3"))
    family         D        V      gamma        delta  entropy       sd      E|Z|  P(Z != 0)
    analytic      10  9.42489  0.0526316  0.000670746  2.54001     3.07   2.43198   0.870485
    tablebuilder   9  7.45187  0.0666667  0.000913481  2.42269  2.72981   2.15669   0.854256
    any            7  1.80566          -  0.000421603  1.61857  1.34375  0.847124   0.537656
    """
    read = read_question(epsilon, sensitivity, delta)
    rows = [
        FamilyDesign(family, solve(Target(read.epsilon, read.delta, family, read.sensitivity), backend))
        for family in (Family.ANALYTIC, Family.TABLEBUILDER, Family.ANY)
    ]
    return Designs(read.epsilon, read.delta, read.sensitivity, tuple(rows))
