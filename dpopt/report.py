"""A solution in words for people, and as plain data for programs.

Every number that is rounded for people is rounded against the claim it supports: the value of a minimum and every
epsilon and delta upwards, a bound on a minimum downwards, a gap upwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpopt.errors import InputError
from dpopt.mechanisms.conditions import least_epsilon
from dpopt.pmf import Pmf
from dpopt.privacy.decision import is_private, least_decimal
from dpopt.privacy.divergence import delta
from dpopt.privacy.shifts import deciding_shifts, lattice_shift
from dpopt.problem.problem import Problem
from dpopt.problem.target import Target
from dpopt.text import decimal_text

if TYPE_CHECKING:
    from dpopt.solution import Solution

__all__ = ["histogram", "solution_json", "summary", "title"]

_MOST_DIGITS = 21  # values are enclosed to 2^-64
_LINES = 21  # of a histogram, and a few more where each point then gets its own
_WIDTH = 40  # of its longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LOG_BELOW = Fraction(1, 1000)  # masses this far below the largest are invisible on a linear scale
_AFFORDABLE = 20_000_000  # multiplications that a summary may spend on a hockey-stick divergence


# --- for people ------------------------------------------------------------------------------------------------------


def summary(solution: Solution, *, plain: bool = False) -> str:
    """The solution as compact text.

    Parameters
    ----------
    solution : Solution
    plain : bool
        ASCII only, for terminals that cannot show block characters.

    Examples
    --------
    >>> import dpopt as dp
    >>> print(summary(dp.solve(dp.tablebuilder(D=2, V=1))).splitlines()[1])
      verified       optimal (claimed: optimal)
    """
    lines = [title(solution.problem), *_table(_facts(solution))]
    if solution.proved_pmf is not None:
        lines += ["", *("  " + line for line in histogram(solution.proved_pmf, plain=plain))]
    return "\n".join(lines)


def title(question: Problem | Target) -> str:
    """The name of a problem or target, or what it asks for."""
    if question.name:
        return question.name
    return question.objective.type if isinstance(question, Problem) else f"target, family {question.family}"


def _facts(solution: Solution) -> list[tuple[str, str]]:
    """Label and text of every line above the histogram."""
    facts = [("verified", f"{solution.verified.value} (claimed: {solution.claimed.value})")]
    if solution.message:
        facts.append(("reason", solution.message))
    if solution.conflict:
        facts.append(("conflict", ", ".join(solution.conflict)))
    reason = f" ({solution.backend_reason})" if solution.backend_reason else ""  # none was chosen yet
    facts += [("backend", f"{solution.backend}{reason}")]
    words = ", ".join(text for text in (solution.solver_version, solution.solver_message) if text)
    facts += [("solver", words)] if words else []
    if solution.proved_pmf is not None:
        facts += _design_facts(solution) if isinstance(solution.problem, Target) else _objective_facts(solution)
        facts += _privacy_facts(solution, solution.proved_pmf)
        facts.append(("noise", _noise_text(solution.proved_pmf)))
    facts += [
        ("check", f"{c.constraint}: {'holds' if c.holds else 'FAILS'}, margin {_rounded(c.margin)}")
        for c in solution.checks
    ]
    if solution.repair is not None:
        moved, paid = solution.repair.mass_moved, solution.repair.objective_paid
        facts.append(("repair", f"moved mass {moved:.2g}, paid {paid:.2g} of the objective"))
    facts.append(("seconds", _seconds_text(solution.timings)))
    return facts


def _objective_facts(solution: Solution) -> list[tuple[str, str]]:
    """Value, bound and gap, each rounded to the side on which it stays true."""
    assert isinstance(solution.problem, Problem)
    maximise = solution.problem.objective_term.maximise
    label = solution.problem.objective.label or solution.problem.objective.type
    value, digits = solution.value, _digits(solution)
    proved = decimal_text(value.lower, digits, up=False) if maximise else decimal_text(value.upper, digits, up=True)
    facts = [(label, f"{proved} ({'at least' if maximise else 'at most'}, proved)")]
    if solution.bound is None or solution.gap is None:
        return [*facts, ("bound", "none proved")]
    bound = decimal_text(solution.bound, digits, up=maximise)
    side = "above" if maximise else "below"
    return [*facts, ("bound", f"{bound} (no pmf that meets the constraints lies {side} it)"),
            ("gap", decimal_text(solution.gap, 2, up=True))]  # fmt: skip


def _design_facts(solution: Solution) -> list[tuple[str, str]]:
    """The design of a target, and what is proved about D and about the choice among the designs with that D."""
    target, design = solution.problem, solution.design
    assert isinstance(target, Target) and design is not None
    least = f"no design of the family '{target.family}' with a smaller D reaches the target"
    known = f"{least}, proved" if solution.gap == 0 else "not proved to be the least"
    facts = [("D", f"{design.D} ({known})"), ("V", _rounded(design.V, 14))]
    if design.gamma is not None:
        facts.append(("gamma", _rounded(design.gamma, 14)))
    then = solution.certificate.data.get("derived", {}).get("then") or {}
    if target.then is not None and "value" in then:
        low, high, bound = (Fraction(text) for text in (*then["value"], then["bound"]))
        gap = max(abs(low - bound), abs(high - bound))
        facts.append((str(target.then), f"{_rounded(high, 12)}, gap {decimal_text(gap, 2, up=True)} at this D"))
    elif target.then is not None:
        facts.append((str(target.then), "the best gamma at this D is bracketed in the certificate"))
    return facts


def _digits(solution: Solution) -> int:
    """As many digits as value and bound agree in, and two more."""
    gap, size = solution.gap, max(abs(solution.value.lower), abs(solution.value.upper))
    if gap is None or not size:
        return 15
    return _MOST_DIGITS if not gap else min(max(math.ceil(_log10(size) - _log10(gap)) + 2, 6), _MOST_DIGITS)


def _privacy_facts(solution: Solution, pmf: Pmf) -> list[tuple[str, str]]:
    """The true epsilon and delta of the proved pmf for each privacy constraint, or a yardstick where there is none."""
    problem = solution.problem
    parts = (problem,) if isinstance(problem, Target) else (*problem.constraints, problem.objective)
    asked = [part.asked_privacy for part in parts if part.asked_privacy is not None]
    if not asked:
        sensitivity = max(Fraction(1), pmf.step)  # smaller moves do not exist on the lattice
        return [("privacy", f"{_delta_text(pmf, Fraction(1), sensitivity)} (nothing asked for)")]
    facts = []
    for epsilon, sensitivity, is_pure in asked:
        text = _epsilon_text(pmf, epsilon, sensitivity) if is_pure else _delta_text(pmf, epsilon, sensitivity)
        facts.append(("privacy", text))
    return facts


def _epsilon_text(pmf: Pmf, wanted: Fraction, sensitivity: Fraction) -> str:
    """The least epsilon of the pmf, never rounded past a `wanted` one at which it is private."""
    where = f"at sensitivity {_exact_text(sensitivity)}"
    try:
        least = least_epsilon(pmf, sensitivity)
        if not least.is_finite:
            return f"epsilon is infinite {where} ({least})"
        rounded = least_decimal(least.ratio)
        text = _exact_text(wanted if wanted < rounded and is_private(pmf, wanted, 0, sensitivity) else rounded)
    except InputError as error:
        return f"epsilon is costly here: {error}"
    return f"epsilon {text}, delta 0 {where}"


def _delta_text(pmf: Pmf, at: Fraction, sensitivity: Fraction) -> str:
    """The delta of the pmf at an epsilon."""
    where = f"epsilon {_exact_text(at)}, sensitivity {_exact_text(sensitivity)}"
    if len(deciding_shifts(pmf, lattice_shift(sensitivity, pmf.step))) * len(pmf.weights) > _AFFORDABLE:
        return f"delta at {where} is costly here: dpopt.delta computes it"
    return f"delta {decimal_text(delta(pmf, at, sensitivity).upper, 6, up=True)} at {where}"


def _noise_text(pmf: Pmf) -> str:
    """Support, mean and variance."""
    tails = " and geometric tails beyond" if pmf.tails is not None else ""
    step = "" if pmf.step == 1 else f" in steps of {_exact_text(pmf.step)}"
    support = f"support [{_exact_text(pmf.low)}, {_exact_text(pmf.high)}]{step}{tails}"
    zeros = pmf.weights.count(0)
    empty = f", no mass at {zeros} of its {len(pmf.weights)} points" if zeros else ""
    return f"{support}{empty}; mean {_rounded(pmf.mean, 6)}, variance {_rounded(pmf.variance, 9)}"


def _seconds_text(timings: Mapping[str, float]) -> str:
    """The total and every phase."""
    phases = ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in timings.items())
    return f"{sum(timings.values()):.3f} ({phases})"


def histogram(pmf: Pmf, *, plain: bool = False, lines: int = _LINES) -> list[str]:
    """The pmf over its core as horizontal bars, one line a point or a range of points, with a title line.

    Examples
    --------
    >>> histogram(Pmf(-1, (1, 2, 1)))[2][:10]
    ' 0 ███████'
    """
    bins = _bins(pmf, lines)
    masses = [mass for _, mass in bins]
    largest, least = max(masses), min(m for m in masses if m)
    logarithmic = least < largest * _LOG_BELOW
    floor = math.floor(_log10(least)) if logarithmic else 0
    width = max(len(label) for label, _ in bins)
    scale = f"log scale from 1e{floor}" if logarithmic else "linear scale"
    found = [f"pmf, {scale}"]
    for label, mass in bins:
        if not mass:
            length = 0.0
        elif logarithmic:
            length = (_log10(mass) - floor) / (_log10(largest) - floor)
        else:
            length = float(mass / largest)
        found.append(f"{label:>{width}} {_bar(length, plain):<{_WIDTH}} {_rounded(mass, 3)}")
    if pmf.tails is not None:
        found[0] += f"; the tails hold {_rounded(1 - Fraction(sum(pmf.weights)) / pmf.total, 3)}"
    return found


def _bins(pmf: Pmf, lines: int) -> list[tuple[str, Fraction]]:
    """Ranges of lattice points with their exact masses: equal, of odd length, the middle one at the core's middle."""
    count = len(pmf.weights)
    size = 1 if count <= lines + 4 else -(-count // lines) | 1
    middle = (count - 1) // 2 - size // 2
    found, edge = [], middle % size
    for first in (*((0,) if edge else ()), *range(edge, count, size)):
        part = pmf.weights[first : edge if first < edge else first + size]
        low, high = (pmf.start + first) * pmf.step, (pmf.start + first + len(part) - 1) * pmf.step
        label = _rounded(low, 6) if len(part) == 1 else f"{_rounded(low, 6)}..{_rounded(high, 6)}"
        found.append((label, sum(part) / pmf.total))
    return found


def _bar(length: float, plain: bool) -> str:
    """A bar of `length` times the full width."""
    if plain:
        return "#" * round(length * _WIDTH)
    eighths = round(length * _WIDTH * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _log10(mass: Fraction) -> float:
    """log10 of a positive rational, however small."""
    return (math.log2(mass.numerator) - math.log2(mass.denominator)) * math.log10(2)


# --- for programs ----------------------------------------------------------------------------------------------------


def solution_json(solution: Solution) -> dict[str, Any]:
    """The solution as the JSON object of the command line: nearest floats, null where there is no value.

    Examples
    --------
    >>> import dpopt as dp
    >>> found = solution_json(dp.solve(dp.tablebuilder(D=2, V=1)))
    >>> found["verified"], found["low"], found["high"], found["tail"], found["design"]
    ('optimal', -2.0, 2.0, None, None)
    """
    pmf, design = solution.proved_pmf, solution.design
    proved = pmf is not None
    return {
        "name": solution.problem.name,
        "backend": solution.backend,
        "claimed": solution.claimed.value,
        "verified": solution.verified.value,
        "value": _middle(solution.value) if proved else None,
        "bound": _float(solution.bound),
        "gap": _float(solution.gap),
        "low": _float(pmf.low) if pmf else None,
        "high": _float(pmf.high) if pmf else None,
        "step": _float(pmf.step) if pmf else None,
        "probabilities": [float(p) for p in pmf.probabilities()] if pmf else None,
        "tail": _tail_json(pmf) if pmf else None,
        "mean": _float(pmf.mean) if pmf else None,
        "variance": _float(pmf.variance) if pmf else None,
        "checks": [{"constraint": c.constraint, "holds": c.holds, "margin": _float(c.margin)} for c in solution.checks],
        "design": None if design is None else {
            "D": design.D, "V": _float(design.V), "gamma": _float(design.gamma), "delta": _middle(design.delta),
        },
        "timings": {phase: float(seconds) for phase, seconds in solution.timings.items()},
        "message": solution.message,
    }  # fmt: skip


def _tail_json(pmf: Pmf) -> dict[str, Any] | None:
    if pmf.tails is None:
        return None
    return {"period": pmf.tails.period, "ratio_left": _float(pmf.tails.left), "ratio_right": _float(pmf.tails.right)}


def _middle(enclosure: Sequence[Fraction]) -> float | None:
    """The float nearest to the middle of an enclosure."""
    return _float((enclosure[0] + enclosure[1]) / 2)


def _float(number: Fraction | int | None) -> float | None:
    """The nearest float; None for what no finite float is near to."""
    try:
        return None if number is None else float(number)
    except OverflowError:
        return None


# --- text ------------------------------------------------------------------------------------------------------------


def _rounded(number: Fraction, digits: int = 3) -> str:
    """A number for orientation, to nearest."""
    return decimal_text(number, digits, up=None)


def _exact_text(number: Fraction) -> str:
    """A given number as its giver would write it: a decimal where that is exact, else a fraction."""
    text = decimal_text(number, 12, up=None)
    return text if Fraction(text) == number else str(number)


def _table(facts: Sequence[tuple[str, str]]) -> list[str]:
    """Label and text in two columns; a repeated label is printed once."""
    lines, last = [], ""
    for label, text in facts:
        lines.append(f"  {label if label != last else '':<14} {text}")
        last = label
    return lines
