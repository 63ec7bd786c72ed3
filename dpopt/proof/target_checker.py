"""The checker's part for targeted designs: the design works, and no design of its family with one step less does.

A target certificate holds the target, D, and either a rate gamma (families `analytic` and `tablebuilder`: the exact
pmf is the canonical member, recomputed here) or two ordinary certificates (family `any`: the design's, and one whose
proved lower bound on delta refutes D - 1). Nothing here imports a solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, log
from typing import Any

from dpopt.arithmetic import exp_enclosure
from dpopt.errors import CertificateError, InputError
from dpopt.family.members import analytic_rate, breakpoints, delta_exceeds, family_pmf, reaching_rate
from dpopt.pmf import Pmf
from dpopt.privacy.divergence import worst_hockey_stick
from dpopt.problem.target import Family, Target, Then

__all__ = ["derive_target", "design_problem", "member_pmf", "precision", "refutation_problem"]

Derive = Callable[[Mapping[str, Any]], dict[str, Any]]

PRECISION = 128


def precision(target: Target) -> int:
    """Bits of the enclosure of e^epsilon: where delta is tiny, enough to resolve 2^-64 of it.

    A pmf whose neighbouring masses all have the ratio e^epsilon shows every error of the enclosure in its delta.
    """
    depth = target.delta.denominator.bit_length() - target.delta.numerator.bit_length()
    return max(PRECISION, depth + 64)


def member_pmf(target: Target, half_width: int, rate: Fraction) -> Pmf:
    """The canonical member, with 2^-64 of its delta resolved: the rounding of a mass counts e^epsilon times."""
    return family_pmf(half_width, rate, max(0, ceil(float(target.epsilon) / log(2)) - 64))


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
    try:
        target = Target.from_dict({"target": statement.get("target")})
    except InputError as error:
        raise CertificateError(str(error)) from None
    half_width = _integer(statement, "D")
    if target.family is Family.ANY:
        return _derive_any(statement, target, half_width, derive)
    return _derive_member(statement, target, half_width)


# --- any pmf ---------------------------------------------------------------------------------------------------------


def design_problem(target: Target, half_width: int) -> dict[str, Any]:
    """The ordinary problem whose optimum is the design at this D, in TOML form with numbers as strings."""
    privacy = _privacy(target)
    support = {"type": "integers", "low": str(-half_width), "high": str(half_width)}
    if target.then in (None, Then.MIN_DELTA):
        return {"support": support, "objective": {"type": "min-delta", **privacy}, "constraints": []}
    objective: dict[str, Any] = {"type": "max-entropy"}
    if target.then is Then.MIN_VARIANCE:
        objective = {"type": "min-expected-cost", "cost": "square"}
    constraints = [{"type": "mean", "equals": "0"}, {"type": "approx-dp", **privacy, "delta": str(target.delta)}]
    return {"support": support, "objective": objective, "constraints": constraints}


def refutation_problem(target: Target, half_width: int) -> dict[str, Any]:
    """The min-delta problem one step below; a bound above the wanted delta refutes it."""
    support = {"type": "integers", "low": str(1 - half_width), "high": str(half_width - 1)}
    return {"support": support, "objective": {"type": "min-delta", **_privacy(target)}, "constraints": []}


def _privacy(target: Target) -> dict[str, Any]:
    """epsilon and sensitivity as a problem writes them: a sensitivity of 1 is left out."""
    widened = {} if target.sensitivity == 1 else {"sensitivity": str(target.sensitivity)}
    return {"epsilon": str(target.epsilon), **widened}


def _derive_any(statement: Mapping[str, Any], target: Target, half_width: int, derive: Derive) -> dict[str, Any]:
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
    pmf = Pmf.from_dict(statement["design"]["pmf"])
    derived = _derived(target, half_width, pmf)
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


def _derive_member(statement: Mapping[str, Any], target: Target, half_width: int) -> dict[str, Any]:
    for key in ("design", "refutation"):
        if statement.get(key) is not None:
            raise CertificateError(f"{key}: must be null for family '{target.family}'")
    rate = _rational(statement, "gamma")
    if rate < 0:
        raise CertificateError("gamma: must be at least 0")
    if target.family is Family.ANALYTIC and rate != analytic_rate(half_width, target.epsilon, target.shift):
        raise CertificateError("gamma: is not the rate that the analytic rule gives for this D")
    try:
        pmf = member_pmf(target, half_width, rate)
    except InputError as error:
        raise CertificateError(str(error)) from None
    derived = _derived(target, half_width, pmf)
    _refute_smaller(target, half_width)
    bracket = _check_choice(statement, target, half_width, rate)
    tight = bracket is None or bracket["refuted_gamma"] is None or _is_tight(rate, Fraction(bracket["refuted_gamma"]))
    return {**derived, "then": bracket, "verified": "optimal" if tight else "feasible"}


def _is_tight(rate: Fraction, refuted: Fraction) -> bool:
    return abs(refuted - rate) * 10**6 <= max(rate, refuted)


def _refute_smaller(target: Target, half_width: int) -> None:
    """No member of the family on [1 - D, D - 1] reaches the target."""
    smaller = half_width - 1
    if smaller < 0:
        return
    if target.family is Family.TABLEBUILDER:
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
    statement: Mapping[str, Any], target: Target, half_width: int, rate: Fraction
) -> dict[str, Any] | None:
    """The choice among the designs at D, for `tablebuilder`.

    min-delta: no member has a smaller delta. min-variance (max-entropy): `refuted_gamma` lies above (below) gamma, and
    every member from there on fails.
    """
    refuted = statement.get("refuted_gamma")
    if target.family is Family.ANALYTIC or target.then in (None, Then.MIN_DELTA):
        if refuted is not None:
            raise CertificateError("refuted_gamma: must be null here")
        if target.family is Family.TABLEBUILDER:
            _check_least(target, half_width, rate)
        return None
    if refuted is None and target.then is Then.MAX_ENTROPY and rate == 0:
        return {"gamma": str(rate), "refuted_gamma": None}  # nothing has more entropy than the uniform pmf
    beyond = _rational(statement, "refuted_gamma")
    upward = target.then is Then.MIN_VARIANCE
    if (beyond <= rate) if upward else not 0 <= beyond < rate:
        raise CertificateError("refuted_gamma: must lie on the other side of gamma from what 'then' wants")
    points = [b for b in breakpoints(half_width, target.epsilon, target.shift) if (b > rate if upward else b < rate)]
    if any((beyond > b) if upward else (beyond < b) for b in points):
        raise CertificateError("refuted_gamma: must lie within the piece next to gamma")
    ends = (beyond, None) if upward else (Fraction(0), beyond)
    reached = reaching_rate(half_width, target.epsilon, target.shift, target.delta, *ends)
    if reached is not None:
        raise CertificateError(f"refuted_gamma: gamma = {reached} reaches the target as well")
    return {"gamma": str(rate), "refuted_gamma": str(beyond)}


def _check_least(target: Target, half_width: int, rate: Fraction) -> None:
    """No member's delta is below the chosen one's by more than a millionth."""
    points = breakpoints(half_width, target.epsilon, target.shift)
    if rate not in points:
        raise CertificateError("gamma: is not one of the breakpoints among which the smallest delta lies")
    lower = exp_enclosure(target.epsilon, precision(target)).lower
    chosen = worst_hockey_stick(member_pmf(target, half_width, rate), lower, target.shift)
    level = chosen * (1 - Fraction(1, 10**6))
    other = reaching_rate(half_width, target.epsilon, target.shift, level)
    if other is not None:
        raise CertificateError(f"gamma: the breakpoint {other} has a smaller delta")


def _derived(target: Target, half_width: int, pmf: Pmf) -> dict[str, Any]:
    low, high = exp_enclosure(target.epsilon, precision(target))
    upper = worst_hockey_stick(pmf, low, target.shift)
    lower = worst_hockey_stick(pmf, high, target.shift)
    if upper > target.delta:
        raise CertificateError(
            f"design: delta is {float(upper):.12g}, which exceeds the wanted {float(target.delta):.12g}"
        )
    return {
        "value": [str(half_width)] * 2,
        "bound": str(half_width),
        "D": str(half_width),
        "V": str(pmf.variance),
        "delta": [str(lower), str(upper)],
        "checks": [{"constraint": "approx-dp", "holds": True, "margin": str(target.delta - upper)}],
    }


def _integer(statement: Mapping[str, Any], key: str) -> int:
    number = _rational(statement, key)
    if number.denominator != 1 or not 0 <= number <= 1_000_000:
        raise CertificateError(f"{key}: must be an integer from 0 to a million")
    return number.numerator


def _rational(statement: Mapping[str, Any], key: str) -> Fraction:
    value = statement.get(key)
    if not isinstance(value, str) or len(value) > 4000:
        raise CertificateError(f"{key}: must be a rational number as text")
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise CertificateError(f"{key}: must be a rational number as text, not {value[:40]!r}") from None
