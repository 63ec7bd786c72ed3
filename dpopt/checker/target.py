"""The checker's part for targeted designs: the design works, and no design of its family with one step less does.

A target certificate holds the target, D, and either a rate gamma (families `analytic` and `tablebuilder`: the exact
pmf is the canonical member, recomputed here) or two ordinary certificates (family `any`: the design's, and one whose
proved lower bound on delta refutes D - 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil, log
from typing import Any, Protocol

from dpopt.arithmetic import exp_enclosure
from dpopt.checker.effort import afford, product_work
from dpopt.checker.lattice import Lattice
from dpopt.checker.law import Law, read_law
from dpopt.checker.reading import MAX_INDEX, brief, read_epsilon, read_integer, read_object, read_rational, reject, text
from dpopt.checker.sums import worst_hockey_stick
from dpopt.errors import CertificateError, InputError
from dpopt.family.members import analytic_rate, breakpoints, delta_exceeds, family_pmf, masses_work, reaching_rate
from dpopt.pmf import Pmf
from dpopt.text import listed
from dpopt.work import STEP, Work

__all__ = ["Wanted", "derive_target", "design_problem", "member_pmf", "precision", "refutation_problem"]

Derive = Callable[[Mapping[str, Any]], dict[str, Any]]

PRECISION = 128
_LARGEST = 1_000_000  # D
_MOST_BITS = 1 << 16  # of a member's weights


class Competing(StrEnum):
    """Which pmfs on [-D, D] compete."""

    ANALYTIC = "analytic"
    TABLEBUILDER = "tablebuilder"
    ANY = "any"


class Choice(StrEnum):
    """What to choose by among the designs with the smallest D."""

    MIN_DELTA = "min-delta"
    MIN_VARIANCE = "min-variance"
    MAX_ENTROPY = "max-entropy"


class Wanted(Protocol):
    """A target: as this file reads it from a certificate, or as the question that somebody asked."""

    @property
    def epsilon(self) -> Fraction:
        """At least 0."""
        ...

    @property
    def delta(self) -> Fraction:
        """Strictly between 0 and 1."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """At least 1."""
        ...

    @property
    def family(self) -> str:
        """Which pmfs on [-D, D] compete."""
        ...

    @property
    def then(self) -> str | None:
        """What to choose by; None for what is chosen when nothing is said."""
        ...

    @property
    def shift(self) -> int:
        """The sensitivity in integers."""
        ...


@dataclass(frozen=True)
class _Stated:
    """The target of a certificate."""

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    family: Competing
    then: Choice | None

    @property
    def shift(self) -> int:
        return int(self.sensitivity)


def _read_target(source: object) -> _Stated:
    data = read_object(source, "target", ("epsilon", "delta", "family"), ("sensitivity", "then"))
    epsilon, delta = read_epsilon(data["epsilon"], "target.epsilon"), read_rational(data["delta"], "target.delta")
    if not 0 < delta < 1:
        reject("target.delta", f"must lie strictly between 0 and 1, not {brief(delta)}")
    sensitivity = read_rational(data.get("sensitivity", "1"), "target.sensitivity")
    if not 1 <= sensitivity <= MAX_INDEX:
        reject("target.sensitivity", f"must lie in 1..{MAX_INDEX}, not {brief(sensitivity)}")
    if data["family"] not in list(Competing):
        reject("target.family", f"must be one of {listed(Competing)}, not {brief(data['family'])}")
    family, then = Competing(data["family"]), data.get("then")
    if then is not None and (family is Competing.ANALYTIC or then not in list(Choice)):
        known = "absent for this family" if family is Competing.ANALYTIC else f"one of {listed(Choice)}"
        reject("target.then", f"must be {known}, not {brief(then)}")
    return _Stated(epsilon, delta, sensitivity, family, None if then is None else Choice(then))


def precision(target: Wanted) -> int:
    """Bits of the enclosure of e^epsilon: where delta is tiny, enough to resolve 2^-64 of it.

    A pmf whose neighbouring masses all have the ratio e^epsilon shows every error of the enclosure in its delta.
    """
    depth = target.delta.denominator.bit_length() - target.delta.numerator.bit_length()
    return max(PRECISION, depth + 64)


def member_pmf(target: Wanted, half_width: int, rate: Fraction) -> Pmf:
    """The canonical member, with 2^-64 of its delta resolved: the rounding of a mass counts e^epsilon times."""
    return family_pmf(half_width, rate, max(0, ceil(float(target.epsilon) / log(2)) - 64))


def _member_law(target: Wanted, half_width: int, rate: Fraction) -> Law:
    pmf = member_pmf(target, half_width, rate)
    return Law(pmf.start, pmf.weights)


def member_work(target: Wanted, half_width: int, rate: Fraction) -> Work:
    """The exact member, whose weights are exponentials, and the breakpoints and members that a refutation looks at.

    It bisects the breakpoints, and each member is a sum of balls at a precision that tells its delta from the wanted.
    """
    decay = rate * half_width**2 * Fraction(3, 2) + 64 + Fraction(3, 2) * target.epsilon  # in bits
    bits = 128 + min(int(decay), _MOST_BITS)
    exact = Work.on_integers(4 * half_width + 4, bits, steps=2)
    exact = exact.plus(Work((half_width + 1) * (60 * STEP + 20 * product_work(bits))))
    if target.family == Competing.ANALYTIC:
        return exact.plus(masses_work(half_width, precision(target)))
    pieces = Work((half_width + 1) * (60 * STEP + 2 * rate.denominator.bit_length()), 400 * (half_width + 1))
    member = masses_work(half_width, precision(target))
    looked_at = 2 * half_width.bit_length() + 4
    return exact.plus(pieces).plus(Work(looked_at * member.bit_operations, 6 * member.bytes))


def derive_target(statement: Mapping[str, Any], derive: Derive) -> dict[str, Any]:
    """What a target statement proves; `derive` checks the ordinary certificates inside it.

    Raises
    ------
    CertificateError
        The design does not reach the target, or a smaller one is not refuted.
    """
    allowed = {"format", "kind", "target", "D", "gamma", "refuted_gamma", "design", "refutation", "derived"}
    for key in statement:
        if key not in allowed:
            raise CertificateError(f"{key}: is not a key of a target certificate")
    target = _read_target(statement.get("target"))
    half_width = read_integer(statement.get("D"), "D", 0, _LARGEST)
    if target.family == Competing.ANY:
        return _derive_any(statement, target, half_width, derive)
    return _derive_member(statement, target, half_width)


# --- any pmf ---------------------------------------------------------------------------------------------------------


def design_problem(target: Wanted, half_width: int) -> dict[str, Any]:
    """The ordinary problem whose optimum is the design at this D, in TOML form with numbers as strings."""
    privacy = _privacy(target)
    support = {"type": "integers", "low": str(-half_width), "high": str(half_width)}
    if target.then in (None, Choice.MIN_DELTA):
        return {"support": support, "objective": {"type": "min-delta", **privacy}, "constraints": []}
    objective: dict[str, Any] = {"type": "max-entropy"}
    if target.then == Choice.MIN_VARIANCE:
        objective = {"type": "min-expected-cost", "cost": "square"}
    constraints = [{"type": "mean", "equals": "0"}, {"type": "approx-dp", **privacy, "delta": text(target.delta)}]
    return {"support": support, "objective": objective, "constraints": constraints}


def refutation_problem(target: Wanted, half_width: int) -> dict[str, Any]:
    """The min-delta problem one step below; a bound above the wanted delta refutes it."""
    support = {"type": "integers", "low": str(1 - half_width), "high": str(half_width - 1)}
    return {"support": support, "objective": {"type": "min-delta", **_privacy(target)}, "constraints": []}


def _privacy(target: Wanted) -> dict[str, Any]:
    """epsilon and sensitivity as a problem writes them: a sensitivity of 1 is left out."""
    widened = {} if target.sensitivity == 1 else {"sensitivity": text(target.sensitivity)}
    return {"epsilon": text(target.epsilon), **widened}


def _derive_any(statement: Mapping[str, Any], target: Wanted, half_width: int, derive: Derive) -> dict[str, Any]:
    for key in ("gamma", "refuted_gamma"):
        if statement.get(key) is not None:
            raise CertificateError(f"{key}: must be null for family 'any'")
    design = _inner(statement, "design", design_problem(target, half_width), derive)
    if half_width > 0:
        refutation = _inner(statement, "refutation", refutation_problem(target, half_width), derive)
        bound = refutation["bound"]
        if bound is None or Fraction(bound) <= target.delta:
            raise CertificateError(f"refutation: proves delta >= {bound} only, which does not exceed {target.delta}")
    elif statement.get("refutation") is not None:
        raise CertificateError("refutation: must be null, since no support is smaller than a point")
    window = Lattice(Fraction(1), (-half_width, half_width))
    derived = _derived(target, half_width, read_law(statement["design"]["laws"][0], window, "design.laws[0]"))
    gap = {"value": design["value"], "bound": design["bound"]}
    return {**derived, "then": gap, "verified": design["verified"]}


def _inner(statement: Mapping[str, Any], key: str, problem: Mapping[str, Any], derive: Derive) -> dict[str, Any]:
    inner = statement.get(key)
    if not isinstance(inner, Mapping) or inner.get("kind") != "solution":
        raise CertificateError(f"{key}: must be a certificate of kind 'solution'")
    if inner.get("problem") != problem:
        raise CertificateError(f"{key}.problem: is not the problem that the target poses at this D")
    expected = derive(inner)
    if inner.get("derived") != expected:
        raise CertificateError(f"{key}.derived: differs from what its statement proves")
    return expected


# --- members of the family -------------------------------------------------------------------------------------------


def _derive_member(statement: Mapping[str, Any], target: Wanted, half_width: int) -> dict[str, Any]:
    for key in ("design", "refutation"):
        if statement.get(key) is not None:
            raise CertificateError(f"{key}: must be null for family '{target.family}'")
    rate = read_rational(statement.get("gamma"), "gamma")
    if rate < 0:
        raise CertificateError("gamma: must be at least 0")
    if target.family == Competing.ANALYTIC and rate != analytic_rate(half_width, target.epsilon, target.shift):
        raise CertificateError("gamma: is not the rate that the analytic rule gives for this D")
    try:
        afford(member_work(target, half_width, rate), f"takes members of the family on [-{half_width}, {half_width}]")
    except InputError as error:
        raise error.inside("D") from None
    law = _member_law(target, half_width, rate)
    derived = _derived(target, half_width, law)
    _refute_smaller(target, half_width)
    bracket = _check_choice(statement, target, half_width, rate)
    tight = bracket is None or bracket["refuted_gamma"] is None or _is_tight(rate, Fraction(bracket["refuted_gamma"]))
    return {**derived, "then": bracket, "verified": "optimal" if tight else "feasible"}


def _is_tight(rate: Fraction, refuted: Fraction) -> bool:
    return abs(refuted - rate) * 10**6 <= max(rate, refuted)


def _refute_smaller(target: Wanted, half_width: int) -> None:
    """No member of the family on [1 - D, D - 1] reaches the target."""
    smaller = half_width - 1
    if smaller < 0:
        return
    if target.family == Competing.TABLEBUILDER:
        reached = reaching_rate(smaller, target.epsilon, target.shift, target.delta)
    else:
        reached = analytic_rate(smaller, target.epsilon, target.shift)
        if reached is not None and delta_exceeds(smaller, reached, target.epsilon, target.shift, target.delta):
            reached = None
    if reached is not None:
        raise CertificateError(
            f"D: the smaller support [-{smaller}, {smaller}] reaches the target at gamma = {reached}"
        )


def _check_choice(
    statement: Mapping[str, Any], target: Wanted, half_width: int, rate: Fraction
) -> dict[str, Any] | None:
    """The choice among the designs at D, for `tablebuilder`.

    min-delta: no member has a smaller delta. min-variance (max-entropy): `refuted_gamma` lies above (below) gamma, and
    every member from there on fails.
    """
    refuted = statement.get("refuted_gamma")
    if target.family == Competing.ANALYTIC or target.then in (None, Choice.MIN_DELTA):
        if refuted is not None:
            raise CertificateError("refuted_gamma: must be null here")
        if target.family == Competing.TABLEBUILDER:
            _check_least(target, half_width, rate)
        return None
    if refuted is None and target.then == Choice.MAX_ENTROPY and rate == 0:
        return {"gamma": text(rate), "refuted_gamma": None}  # nothing has more entropy than the uniform pmf
    beyond = read_rational(statement.get("refuted_gamma"), "refuted_gamma")
    upward = target.then == Choice.MIN_VARIANCE
    if (beyond <= rate) if upward else not 0 <= beyond < rate:
        raise CertificateError("refuted_gamma: must lie on the other side of gamma from what 'then' wants")
    points = [b for b in breakpoints(half_width, target.epsilon, target.shift) if (b > rate if upward else b < rate)]
    if any((beyond > b) if upward else (beyond < b) for b in points):
        raise CertificateError("refuted_gamma: must lie within the piece next to gamma")
    ends = (beyond, None) if upward else (Fraction(0), beyond)
    reached = reaching_rate(half_width, target.epsilon, target.shift, target.delta, *ends)
    if reached is not None:
        raise CertificateError(f"refuted_gamma: gamma = {reached} reaches the target as well")
    return {"gamma": text(rate), "refuted_gamma": text(beyond)}


def _check_least(target: Wanted, half_width: int, rate: Fraction) -> None:
    """No member's delta is below the chosen one's by more than a millionth."""
    points = breakpoints(half_width, target.epsilon, target.shift)
    if rate not in points:
        raise CertificateError("gamma: is not one of the breakpoints among which the smallest delta lies")
    lower = exp_enclosure(target.epsilon, precision(target)).lower
    chosen = worst_hockey_stick(_member_law(target, half_width, rate), lower, target.shift)
    level = chosen * (1 - Fraction(1, 10**6))
    other = reaching_rate(half_width, target.epsilon, target.shift, level)
    if other is not None:
        raise CertificateError(f"gamma: the breakpoint {other} has a smaller delta")


def _derived(target: Wanted, half_width: int, law: Law) -> dict[str, Any]:
    low, high = exp_enclosure(target.epsilon, precision(target))
    upper = worst_hockey_stick(law, low, target.shift)
    lower = worst_hockey_stick(law, high, target.shift)
    if upper > target.delta:
        raise CertificateError(
            f"design: delta is {float(upper):.12g}, which exceeds the wanted {float(target.delta):.12g}"
        )
    points = range(law.start, law.end + 1)
    first, second = (sum(k**power * w for k, w in zip(points, law.weights, strict=True)) for power in (1, 2))
    total = sum(law.weights)  # a member has no tails
    return {
        "value": [str(half_width)] * 2,
        "bound": str(half_width),
        "D": str(half_width),
        "V": text(Fraction(second * total - first**2, total**2)),
        "delta": [text(lower), text(upper)],
        "checks": [{"constraint": "approx-dp", "holds": True, "margin": text(target.delta - upper)}],
    }
