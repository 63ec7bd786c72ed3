"""The third question: a search over D, proved at both ends.

Bisection is valid for all three families (their best delta falls as D grows), but nothing rests on that: the
certificate shows that the design works and that no design of its family with one step less does. Where the search
looks is guessed in floats (`guessed_rate`); what it finds is decided in balls, and a wrong guess only costs time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import inf, log
from typing import Any

from dpopt import checker
from dpopt.arithmetic import Enclosure, exp_enclosure
from dpopt.backends.base import Claimed, read_options
from dpopt.backends.registry import read_backend
from dpopt.checker.statement import FORMAT
from dpopt.checker.target import design_problem, member_pmf, precision, refutation_problem
from dpopt.errors import CertificateError, InputError
from dpopt.family.members import analytic_rate, breakpoints, delta_exceeds, masses_work, reaching_rate, worst_tail
from dpopt.patience import Phase, Stopped, checkpoint, in_force, tell_interrupted
from dpopt.pmf import Pmf
from dpopt.problem.parts import Check
from dpopt.problem.problem import Problem
from dpopt.problem.target import Family, Target, Then
from dpopt.proof.closed_form import (
    certificate_bits,
    certificate_work,
    smallest_delta_certificate,
    some_pmf_reaches,
)
from dpopt.proof.prove import Verified
from dpopt.searching import first_that
from dpopt.solution import Certificate, Design, Solution
from dpopt.solving import answer, solve
from dpopt.text import brief
from dpopt.work import Work, require

__all__ = ["design_work", "guessed_rate", "log_delta", "outermost_rate", "search_work", "solve", "solve_target"]

_CLOSED_FORM = "closed form"
_LARGEST = 1_000_000  # D
_MOST_BITS = 13_000  # of a number in a certificate: Python reads and writes 4,300 digits
_MEMBERS = 60  # of a search: bisections over D, and over the rates of each


@answer.register
def solve_target(target: Target, backend: Any, *, options: dict[str, Any]) -> Solution:
    """Answer a target: the smallest D of its family, and the design that `then` asks for."""
    chosen = read_backend(backend)
    read_options(chosen, options)
    name, patience = backend if isinstance(backend, str) else backend.name, in_force()
    search = _Search(target, backend, options)
    try:
        certificate, verified_by = search.certificate_of_all()
    except (_NoDesign, CertificateError) as error:
        return _failed(target, name, str(error), patience.seconds, Claimed.ERROR)
    except Stopped as stop:
        reason = f"{stop} ended the search while {patience.doing}, before anything was proved"
        return _failed(target, name, reason, patience.seconds, Claimed.LIMIT)
    except KeyboardInterrupt as interrupt:
        tell_interrupted(interrupt, f"proved by then: nothing ({patience.doing})")
        raise
    return _solution(target, certificate, verified_by, patience.seconds)


class _NoDesign(Exception):
    """The search ended without a design; the message says why."""


class _Search:
    """The state of one search."""

    def __init__(self, target: Target, backend: Any, options: Mapping[str, Any] | None) -> None:
        self.target, self.backend, self.options = target, backend, options
        self.epsilon, self.shift, self.delta = target.epsilon, target.shift, target.delta
        require(
            "delta",
            search_work(target),
            f"= {brief(target.delta)} asks for supports of about {2 * _expected(target)} points",
            "give a larger delta or epsilon",
        )

    def certificate_of_all(self) -> tuple[dict[str, Any], str]:
        """The certificate, and who answered."""
        if self.target.family is Family.ANY:
            statement, verified_by = self.any_pmf()
        else:
            statement, verified_by = self.member(), _CLOSED_FORM
        in_force().tell(Phase.SEARCH, f"proving that D = {statement['D']} is the smallest")
        return checker.certify(statement), verified_by

    # --- members of the family -----------------------------------------------------------------------------------

    def member(self) -> dict[str, Any]:
        """The statement for families `analytic` and `tablebuilder`."""
        if self.target.family is Family.ANALYTIC:
            half_width = least(lambda d: self.analytic_rate_that_works(d) is not None, _first_guess(self.target))
            rate, refuted = self.analytic_rate_that_works(half_width), None
        else:
            half_width, rate, refuted = self.best_member()
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

    def analytic_rate_that_works(self, half_width: int) -> Fraction | None:
        """The rate of the paper's rule at this D, if it reaches the target."""
        rate = analytic_rate(half_width, self.epsilon, self.shift)
        if rate is None or delta_exceeds(half_width, rate, self.epsilon, self.shift, self.delta):
            return None
        return rate

    def best_member(self) -> tuple[int, Fraction, Fraction | None]:
        """The least D of the family with a rate that works, that `then` asks for, and the failing one beside it."""
        question = self.epsilon, self.shift, self.delta
        wanted = log(self.delta.numerator) - log(self.delta.denominator)

        def works(half_width: int) -> bool:
            return log_delta(half_width, guessed_rate(half_width, *question[:2]), *question[:2]) <= wanted

        half_width = least(works, _first_guess(self.target))
        while (rate := reaching_rate(half_width, *question)) is None:
            half_width += 1
        while half_width and (smaller := reaching_rate(half_width - 1, *question)) is not None:
            half_width, rate = half_width - 1, smaller
        if self.target.then in (None, Then.MIN_DELTA):
            return half_width, self.least_delta(half_width, rate), None
        return half_width, *outermost_rate(half_width, *question, rate, upward=self.target.then is Then.MIN_VARIANCE)

    def least_delta(self, half_width: int, rate: Fraction) -> Fraction:
        """The breakpoint with the smallest delta, to a millionth of it."""
        better: Fraction | None = guessed_rate(half_width, self.epsilon, self.shift)
        seen: set[Fraction] = set()
        while better is not None and better not in seen:  # to meet one again would be a fault, which the checker shows
            rate = better
            seen.add(rate)
            level = _proved_delta(half_width, rate, self.target) * (1 - Fraction(1, 10**6))
            better = reaching_rate(half_width, self.epsilon, self.shift, level)
        return rate

    # --- any pmf -------------------------------------------------------------------------------------------------

    def any_pmf(self) -> tuple[dict[str, Any], str]:
        """The statement for family `any`, and who answered."""
        half_width = least(self.works, _first_guess(self.target))
        certified = self.smallest_delta if self.target.then in (None, Then.MIN_DELTA) else self.solved
        design, who = certified(design_problem(self.target, half_width), half_width)
        refutation = None
        if half_width > 0:
            refutation, _ = self.smallest_delta(refutation_problem(self.target, half_width), half_width - 1)
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
        if self.shift == 1:
            return some_pmf_reaches(half_width, self.epsilon, self.delta)
        smallest = refutation_problem(self.target, half_width + 1)
        certificate, _ = self.smallest_delta(smallest, half_width)
        return Fraction(certificate["derived"]["value"][1]) <= self.delta

    def smallest_delta(self, problem: Mapping[str, Any], half_width: int) -> tuple[dict[str, Any], str]:
        """The certificate of the least delta: in closed form at sensitivity 1, else from a solver."""
        if self.shift != 1:
            return self.solved(problem, half_width)
        if certificate_bits(half_width, self.epsilon) > _MOST_BITS:
            raise InputError("delta", f"= {brief(self.delta)} is too small for a certificate's decimals")
        require(
            "delta",
            certificate_work(half_width, self.epsilon),
            f"= {brief(self.delta)} asks for a certificate on [-{half_width}, {half_width}]",
            "give a larger delta or epsilon",
        )
        return smallest_delta_certificate(problem, half_width, self.epsilon), _CLOSED_FORM

    def solved(self, problem: Mapping[str, Any], half_width: int) -> tuple[dict[str, Any], str]:
        """The certificate of an ordinary problem, and who answered."""
        require(
            "delta",
            design_work(half_width, self.shift),
            f"asks for a solver's design on [-{half_width}, {half_width}] at sensitivity {self.shift}",
            "give a larger delta or epsilon, or take family 'tablebuilder'",
        )
        solution = solve(Problem.from_dict(problem), self.backend, options=self.options)
        checkpoint()
        if solution.verified not in (Verified.OPTIMAL, Verified.FEASIBLE):
            raise _NoDesign(f"at D = {half_width}: {solution.message}")
        return dict(solution.certificate.data), solution.backend


def search_work(target: Target) -> Work:
    """What the search takes: some sixty members near the guessed D, with masses that delta is made of."""
    bits = 128 + target.delta.denominator.bit_length() - target.delta.numerator.bit_length()
    one = masses_work(_expected(target), bits)
    return Work(_MEMBERS * one.bit_operations, one.bytes)


def design_work(half_width: int, shift: int) -> Work:
    """What a solver takes for a design on [-D, D], and its proof: about a millisecond for each row.

    Examples
    --------
    >>> design_work(1000, 1).bit_operations
    60030000000
    """
    points = 2 * half_width + 1
    return Work(bit_operations=points * (1 + 2 * min(shift, points)) * 10**7)


# --- members of the family, guessed and bracketed --------------------------------------------------------------------


def log_delta(half_width: int, rate: Fraction, epsilon: Fraction, shift: int) -> float:
    """ln delta of the ideal member in floats, to nearly full precision at any depth: a sum of terms >= 0, scaled.

    Examples
    --------
    >>> round(log_delta(11, Fraction(1, 21), Fraction(1), 1), 9) == round(log(3.87356823686600e-4), 9)
    True
    """
    import numpy as np

    checkpoint()
    gamma = float(rate)
    start = worst_tail(half_width, rate, epsilon, shift)
    z = np.arange(start, half_width + 1, dtype=float)
    depth = gamma * max(start, 0) ** 2
    share = np.ones_like(z)
    inner = z[:-shift] if shift < z.size else z[:0]
    share[: inner.size] = np.maximum(-np.expm1(float(epsilon) - gamma * shift * (shift + 2 * inner)), 0)
    excess = float(np.sum(np.exp(depth - gamma * z * z) * share))
    total = 1 + 2 * float(np.sum(np.exp(-gamma * np.arange(1, half_width + 1, dtype=float) ** 2)))
    return log(excess) - depth - log(total) if excess > 0 else -inf


def guessed_rate(half_width: int, epsilon: Fraction, shift: int) -> Fraction:
    """The breakpoint with the smallest delta, as floats see it, taken to fall and then to rise along the breakpoints.

    Examples
    --------
    >>> guessed_rate(11, Fraction(1), 1)
    Fraction(1, 19)
    """
    if epsilon == 0 or shift > half_width:  # the uniform pmf wins for m > D, and never otherwise
        return Fraction(0)
    low, high = shift // 2 + 1, half_width  # the index j of epsilon / (m (2j - m))

    def at(j: int) -> float:
        return log_delta(half_width, epsilon / (shift * (2 * j - shift)), epsilon, shift)

    best = first_that(lambda j: at(j) <= at(j + 1), low - 1, high)
    return epsilon / (shift * (2 * best - shift))


def outermost_rate(
    half_width: int, epsilon: Fraction, shift: int, delta: Fraction, rate: Fraction, *, upward: bool
) -> tuple[Fraction, Fraction | None]:
    """The largest (`upward`) or smallest rate that reaches (epsilon, delta), and a failing one just beyond it.

    Every member from the failing one on fails, which is proved. None stands for it where the uniform pmf works.

    Parameters
    ----------
    rate : Fraction
        A rate that works.

    Examples
    --------
    >>> inner, outer = outermost_rate(17, Fraction(1), 1, Fraction(1, 10**5), Fraction(1, 29), upward=True)
    >>> f"{float(inner):.9f} {float(outer):.9f}"
    '0.034524521 0.034524521'
    """

    def works(candidate: Fraction) -> bool:
        return not delta_exceeds(half_width, candidate, epsilon, shift, delta)

    if not upward and works(Fraction(0)):
        return Fraction(0), None
    reached: Fraction | None = rate
    while reached is not None:
        points = breakpoints(half_width, epsilon, shift)
        inner, outer = _bracket(points, reached, works, upward, Fraction(1, (half_width**2 + 1) << 34))
        ends = (outer, None) if upward else (Fraction(0), outer)
        reached = reaching_rate(half_width, epsilon, shift, delta, *ends)
    return inner, outer


def _bracket(
    points: list[Fraction], inner: Fraction, works: Callable[[Fraction], bool], upward: bool, smallest: Fraction
) -> tuple[Fraction, Fraction]:
    """A working and a failing rate, 2^-34 or `smallest` apart, within one piece, beyond `inner` which works."""
    beyond = [p for p in points if p > inner] if upward else [p for p in reversed(points) if p < inner]
    # beyond[high - 1] works or is `inner`, beyond[high] fails or does not exist
    high = first_that(lambda i: not works(beyond[i]), -1, len(beyond))
    inner = beyond[high - 1] if high else inner
    outer = beyond[high] if high < len(beyond) else 2 * inner or Fraction(1)
    while high == len(beyond) and works(outer):
        inner, outer = outer, 2 * outer
    while (apart := abs(outer - inner)) * (1 << 34) > max(inner, outer) and apart > smallest:
        middle_rate = _short((inner + outer) / 2, min(inner, outer), max(inner, outer))
        if works(middle_rate):
            inner = middle_rate
        else:
            outer = middle_rate
    return inner, outer


# --- the search over D -----------------------------------------------------------------------------------------------


def least(works: Callable[[int], bool], guess: int) -> int:
    """The least D >= 0 that works, for a property that stays once it holds; `guess` only saves steps."""

    def tried(half_width: int) -> bool:
        checkpoint()
        in_force().tell(Phase.SEARCH, f"looking for the smallest D, at {half_width}")
        return works(half_width)

    high = max(guess, 1)
    while not tried(high):
        high *= 2
        if high > _LARGEST:
            raise _NoDesign(
                f"no support up to [-{_LARGEST}, {_LARGEST}] reaches the target; choose a larger epsilon or delta"
            )
    low = -1
    step = 1
    while high - step > low and tried(high - step):  # gallop downwards from a guess that is usually close
        high -= step
        step *= 2
    return first_that(tried, max(low, high - step), high)


def _first_guess(target: Target) -> int:
    """Where the search begins."""
    return min(_expected(target), 100_000)


def _expected(target: Target) -> int:
    """About where the analytic rule lands: 2 ln(1/delta) / epsilon, half of it for any pmf."""
    epsilon, shift = float(target.epsilon), target.shift
    spread = log(target.delta.denominator) - log(target.delta.numerator)
    if epsilon * 1e6 < spread:
        return int(min(shift / target.delta, Fraction(999))) + 1
    factor = 1 if target.family is Family.ANY else 2
    return int(min(shift * (factor * Fraction(spread) / Fraction(epsilon) + 1), Fraction(_LARGEST)))


def _proved_delta(half_width: int, rate: Fraction, target: Target) -> Fraction:
    from dpopt.privacy.divergence import worst_hockey_stick

    lower = exp_enclosure(target.epsilon, precision(target)).lower
    return worst_hockey_stick(member_pmf(target, half_width, rate), lower, target.shift)


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
        pmf, rate = Pmf.from_dict(certificate["design"]["laws"][0]), None
    else:
        rate = Fraction(certificate["gamma"])
        pmf = member_pmf(target, half_width, rate)
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


def _failed(target: Target, backend: str, reason: str, seconds: float, claimed: Claimed) -> Solution:
    return Solution(
        problem=target,
        backend=backend,
        backend_reason="",
        claimed=claimed,
        verified=Verified.FAILED,
        message=reason,
        certificate=Certificate({}),
        timings={"search": seconds},
    )
