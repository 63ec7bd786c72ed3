"""The third question: a search over D, proved at both ends.

Bisection is valid for all three families (their best delta falls as D grows), but nothing rests on that: the
certificate shows that the design works and that no design of its family with one step less does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from time import perf_counter
from typing import Any

from dpopt.arithmetic import Enclosure, exp_enclosure
from dpopt.backends.base import Claimed
from dpopt.errors import CertificateError
from dpopt.family import analytic_rate, breakpoints, delta_exceeds, family_pmf
from dpopt.pmf import Pmf
from dpopt.problem.parts import Check
from dpopt.problem.problem import Problem
from dpopt.problem.target import Family, Target, Then
from dpopt.proof import checker
from dpopt.proof.closed_form import smallest_delta_certificate
from dpopt.proof.multipliers import FORMAT
from dpopt.proof.prove import Verified
from dpopt.proof.target_checker import design_problem, refutation_problem
from dpopt.solution import Certificate, Design, Solution
from dpopt.solving import solve

__all__ = ["solve", "solve_target"]

_CLOSED_FORM = "closed form"


@solve.register
def solve_target(target: Target, backend: Any = "auto", *, options: Mapping[str, Any] | None = None) -> Solution:
    """Answer a target: the smallest D of its family, and the design that `then` asks for."""
    started = perf_counter()
    search = _Search(target, backend, options)
    try:
        if target.family is Family.ANY:
            statement, verified_by = search.any_pmf()
        else:
            statement, verified_by = search.member(), _CLOSED_FORM
        certificate = checker.certify(statement)
    except (_NoDesign, CertificateError) as error:
        name = backend if isinstance(backend, str) else backend.name
        return _failed(target, name, str(error), perf_counter() - started)
    return _solution(target, certificate, verified_by, perf_counter() - started)


class _NoDesign(Exception):
    """The search ended without a design; the message says why."""


class _Search:
    """The state of one search."""

    def __init__(self, target: Target, backend: Any, options: Mapping[str, Any] | None) -> None:
        self.target, self.backend, self.options = target, backend, options
        self.epsilon, self.shift, self.delta = target.epsilon, target.shift, target.delta

    # --- members of the family -----------------------------------------------------------------------------------

    def member(self) -> dict[str, Any]:
        """The statement for families `analytic` and `tablebuilder`."""
        half_width = least(lambda d: self.rate_that_works(d) is not None, _first_guess(self.target))
        rate = self.rate_that_works(half_width)
        assert rate is not None
        refuted = None
        if self.target.family is Family.TABLEBUILDER:
            rate, refuted = self.chosen_rate(half_width)
        return {
            "format": FORMAT,
            "kind": "target",
            "target": _as_text(self.target.plain()),
            "D": str(half_width),
            "gamma": str(rate),
            "refuted_gamma": None if refuted is None else str(refuted),
            "design": None,
            "refutation": None,
        }

    def rate_that_works(self, half_width: int) -> Fraction | None:
        """A rate of the family that reaches the target at this D, if one does."""
        if self.target.family is Family.ANALYTIC:
            rate = analytic_rate(half_width, self.epsilon, self.shift)
            return rate if rate is not None and self.reaches(half_width, rate) else None
        points = breakpoints(half_width, self.epsilon, self.shift)
        # the paper's rule is the second entry and usually among the best: try it, then its neighbours
        return next((rate for rate in (*points[1:], points[0]) if self.reaches(half_width, rate)), None)

    def reaches(self, half_width: int, rate: Fraction) -> bool:
        """Whether the ideal member's delta is at most the wanted one."""
        return not delta_exceeds(half_width, rate, self.epsilon, self.shift, self.delta)

    def chosen_rate(self, half_width: int) -> tuple[Fraction, Fraction | None]:
        """The rate that `then` asks for, and the failing one that brackets it (none for min-delta)."""
        points = breakpoints(half_width, self.epsilon, self.shift)
        working = [rate for rate in points if self.reaches(half_width, rate)]
        if self.target.then in (None, Then.MIN_DELTA):
            return min(working, key=lambda rate: _proved_delta(half_width, rate, self.target)), None
        upward = self.target.then is Then.MIN_VARIANCE
        inner = max(working) if upward else min(working)
        if upward:
            outer = min((p for p in points if p > inner), default=2 * inner)
            while not points or self.reaches(half_width, outer):
                outer *= 2
        else:
            below = [p for p in points if p < inner]
            if not below:
                return inner, None
            outer = max(below)
        while abs(outer - inner) * (1 << 34) > max(inner, outer):
            middle = _short((inner + outer) / 2, min(inner, outer), max(inner, outer))
            if self.reaches(half_width, middle):
                inner = middle
            else:
                outer = middle
        return inner, outer

    # --- any pmf -------------------------------------------------------------------------------------------------

    def any_pmf(self) -> tuple[dict[str, Any], str]:
        """The statement for family `any`, and who answered."""
        half_width = least(self.works, _first_guess(self.target))
        design, who = self.certificate(design_problem(self.target, half_width), half_width)
        refutation = None
        if half_width > 0:
            refutation, _ = self.certificate(refutation_problem(self.target, half_width), half_width - 1)
        statement = {
            "format": FORMAT,
            "kind": "target",
            "target": _as_text(self.target.plain()),
            "D": str(half_width),
            "gamma": None,
            "refuted_gamma": None,
            "design": design,
            "refutation": refutation,
        }
        return statement, who

    def works(self, half_width: int) -> bool:
        """Whether some pmf on [-D, D] reaches the target, by its min-delta certificate."""
        if 2 * half_width < self.shift:
            return False
        smallest = refutation_problem(self.target, half_width + 1)
        certificate, _ = self.certificate(smallest, half_width)
        return Fraction(certificate["derived"]["value"][1]) <= self.delta

    def certificate(self, problem: Mapping[str, Any], half_width: int) -> tuple[dict[str, Any], str]:
        """A certificate of an ordinary problem: closed form at sensitivity 1, else a solve."""
        if self.shift == 1 and problem["objective"]["type"] == "min-delta":
            return smallest_delta_certificate(problem, half_width, self.epsilon), _CLOSED_FORM
        solution = solve(Problem.from_dict(problem), self.backend, options=self.options)
        if solution.verified not in (Verified.OPTIMAL, Verified.FEASIBLE):
            raise _NoDesign(f"at D = {half_width}: {solution.message}")
        return dict(solution.certificate.data), solution.backend


def least(works: Callable[[int], bool], guess: int) -> int:
    """The least D >= 0 that works, for a property that stays once it holds; `guess` only saves steps."""
    high = max(guess, 1)
    while not works(high):
        high *= 2
        if high > 1_000_000:
            raise _NoDesign("no support up to [-1000000, 1000000] reaches the target; choose a larger epsilon or delta")
    low = -1
    step = 1
    while high - step > low and works(high - step):  # gallop downwards from a guess that is usually close
        high -= step
        step *= 2
    low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        if works(middle):
            high = middle
        else:
            low = middle
    return high


def _first_guess(target: Target) -> int:
    """About where the analytic rule lands: 2 ln(1/delta) / epsilon, half of it for any pmf."""
    from math import log

    epsilon, shift = float(target.epsilon), target.shift
    spread = log(1 / float(target.delta)) if target.delta > Fraction(1, 10**300) else 700.0
    if epsilon * 1e6 < spread:
        return min(int(shift / float(target.delta)) + 1, 1000)
    factor = 1 if target.family is Family.ANY else 2
    return min(int(shift * (factor * spread / epsilon + 1)), 100_000)


def _proved_delta(half_width: int, rate: Fraction, target: Target) -> Fraction:
    from dpopt.privacy import worst_hockey_stick

    return worst_hockey_stick(family_pmf(half_width, rate), exp_enclosure(target.epsilon).lower, target.shift)


def _short(number: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """A dyadic number near `number` and strictly between: bisection must not grow the denominators."""
    bits = 8
    while not low < (short := Fraction(round(number * (1 << bits)), 1 << bits)) < high:
        bits += 8
    return short


def _as_text(table: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in table.items()}


def _solution(target: Target, certificate: dict[str, Any], backend: str, seconds: float) -> Solution:
    derived = certificate["derived"]
    half_width = int(derived["D"])
    if target.family is Family.ANY:
        pmf, rate = Pmf.from_dict(certificate["design"]["pmf"]), None
    else:
        rate = Fraction(certificate["gamma"])
        pmf = family_pmf(half_width, rate)
    lower, upper = map(Fraction, derived["delta"])
    checks = tuple(Check(c["constraint"], c["holds"], Fraction(c["margin"])) for c in derived["checks"])
    return Solution(
        problem=target,
        backend=backend,
        backend_reason="no solver is needed" if backend == _CLOSED_FORM else "for the design problem at the smallest D",
        claimed=Claimed.OPTIMAL,
        verified=Verified(derived["verified"]),
        message="",
        certificate=Certificate(certificate),
        checks=checks,
        timings={"search": seconds},
        proved_pmf=pmf,
        design=Design(half_width, pmf.variance, Enclosure(lower, upper), rate),
    )


def _failed(target: Target, backend: str, reason: str, seconds: float) -> Solution:
    return Solution(
        problem=target,
        backend=backend,
        backend_reason="",
        claimed=Claimed.ERROR,
        verified=Verified.FAILED,
        message=reason,
        certificate=Certificate({}),
        timings={"search": seconds},
    )
