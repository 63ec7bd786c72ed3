"""The same problem put to several backends: what each says on its own, beside what dpopt can prove from it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter1d

from dpopt.backends.base import Backend, Claim, Claimed, ask, read_given
from dpopt.backends.registry import backend_names, read_backend
from dpopt.errors import BackendError, InputError
from dpopt.patience import (
    Phase,
    Progress,
    Stopped,
    checkpoint,
    in_force,
    limited,
    read_time_limit,
    tell_interrupted,
)
from dpopt.problem.families.base import Guarantee
from dpopt.problem.problem import Problem
from dpopt.problem.target import Target
from dpopt.program.formulate import Formulation, core_for, formulate
from dpopt.proof.prove import Verified
from dpopt.reading import read_list
from dpopt.record import Record
from dpopt.report import title
from dpopt.solving import read_limit, solve
from dpopt.text import aligned

__all__ = ["Comparison", "Row", "compare"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Row(Record):
    """One backend's two answers: to the plain program on its own (raw), and through `dpopt.solve` (proved).

    Parameters
    ----------
    backend : str
    claimed : Claimed or None
        What the backend said of the raw answer; None when it could not be asked.
    raw_epsilon : float or None
        The true epsilon of the raw answer over the core, for problems with pure DP: infinite when a zero stands beside
        a mass. The worst of several constraints, measured by its excess.
    raw_delta : float or None
        The true delta of the raw answer, for problems with (epsilon, delta): the worst by its excess.
    raw_violation : float or None
        The largest violation of any row or bound of the plain program by the raw answer.
    raw_objective : float or None
        The objective that the backend claims.
    raw_seconds : float or None
        Wall time of the raw solve.
    verified : Verified or None
        What dpopt proved; `value`, `bound`, `gap` are None where there is none. The same for `timings` by phase.
    message : str
        Why there is no answer, or the solver's words.
    """

    backend: str
    claimed: Claimed | None = None
    raw_epsilon: float | None = None
    raw_delta: float | None = None
    raw_violation: float | None = None
    raw_objective: float | None = None
    raw_seconds: float | None = field(default=None, compare=False)
    verified: Verified | None = None
    value: float | None = None
    bound: float | None = None
    gap: float | None = None
    timings: Mapping[str, float] = field(default_factory=dict, compare=False)
    message: str = ""


@dataclass(frozen=True, repr=False)
class Comparison(Record):
    """The rows of a comparison; prints as a table."""

    problem: Problem
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for strict JSON: what is not there is null, and an infinite number is the string ``"inf"``."""
        return {"name": self.problem.name, "rows": [_row_plain(row) for row in self.rows]}

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        truth = _truth_heading(self.problem)
        heading = ("backend", "claimed", f"raw {truth}", "raw value", "verified", "value", "bound", "gap")
        table = [heading, *(_cells(row, truth) for row in self.rows)]
        phases = list(dict.fromkeys(phase for row in self.rows for phase in row.timings))
        times = [("backend", "raw solve", *phases, "total"), *(_time_cells(row, phases) for row in self.rows)]
        notes = [f"{row.backend}: {row.message}" for row in self.rows if row.message]
        return "\n".join(
            [title(self.problem), "", *aligned(table), "", "seconds", *aligned(times), "", *notes]
        ).rstrip()


def compare(
    problem: Problem,
    backends: Iterable[str | Backend] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Put a problem to several backends, each asked twice.

    First naively: the plain program over the core, unfolded and unscaled, with the tolerances that dpopt sets (tighter
    than the solver's own). Its answer is measured as it is: nothing is clipped or normalised. Then through `solve`.

    Parameters
    ----------
    problem : Problem
    backends : iterable of str or Backend, optional
        All registered ones by default. One that is unavailable or cannot take the program gets a row that says why.
    options : mapping, optional
        Options by backend name; ``time_limit`` among them is for each of that backend's two answers.
    time_limit : float, optional
        Seconds for the whole comparison; a backend whose turn does not come gets a row that says so.
    progress : callable, optional
        Hears how far it is, as in `solve`.

    Raises
    ------
    InputError
        `problem` is not a problem, an option is unknown, or `time_limit` is not a number above 0.
    BackendError
        A name is not registered.

    Examples
    --------
    >>> import dpopt as dp
    >>> rows = compare(dp.tablebuilder(D=2, V=1), backends=["newton", "highs"]).rows
    >>> [(row.backend, row.verified and row.verified.value) for row in rows]
    [('newton', 'optimal'), ('highs', None)]
    """
    if not isinstance(problem, Problem):
        way_out = "; dpopt.solve(target, backend=...) answers it" if isinstance(problem, Target) else ""
        raise InputError(
            "problem", f"must be a Problem (a target has no single program), not {type(problem).__name__}{way_out}"
        )
    if isinstance(backends, str):
        raise InputError("backends", f"must be a list of names, such as [{backends!r}]")
    named = backends is not None
    chosen = read_list(backends, "backends", "names") if named else backend_names()
    given = {name: read_given(one, f"options.{name}") for name, one in read_given(options).items()}
    # a wrong name stops before any solve
    found: list[Backend | Row] = [_found(backend, f"backends[{i}]", named) for i, backend in enumerate(chosen)]
    names = [entry if isinstance(entry, str) else entry.name for entry in chosen]
    for name in given:
        if name not in names:
            raise InputError(f"options.{name}", f"names no backend of the comparison ({', '.join(names)})")
    rows: list[Row] = []
    with limited(read_time_limit(time_limit), progress):
        try:
            formulation = formulate(problem, core_for(problem))
            for entry in found:
                rows.append(entry if isinstance(entry, Row) else _row(problem, formulation, entry, given))
        except Stopped as stop:
            rows += [Row(name, message=f"not asked: {stop} was over") for name in names[len(rows) :]]
        except KeyboardInterrupt as interrupt:
            tell_interrupted(interrupt, f"compared by then: {', '.join(names[: len(rows)]) or 'nothing'}")
            raise
    return Comparison(problem, tuple(rows))


def _found(backend: str | Backend, argument: str, named: bool) -> Backend | Row:
    """The backend, or a row that says why it cannot be loaded (unless the user named it)."""
    try:
        return read_backend(backend, argument)
    except BackendError as error:
        if named:
            raise
        return Row(str(backend), message=str(error))


def _row(problem: Problem, formulation: Formulation, backend: Backend, given: Mapping[str, Mapping[str, Any]]) -> Row:
    """Ask one backend both ways."""
    checkpoint()
    in_force().tell(Phase.SOLVE, f"asking {backend.name}")
    options = given.get(backend.name, {})
    available = backend.availability()
    if not available.available:
        return Row(backend.name, message=f"not available: {available.reason}")
    supported = backend.supports(formulation.program)
    if not supported.supported:
        return Row(backend.name, message=f"not supported: {supported.reason}")
    claim, seconds = _asked(formulation, backend, options)
    row = replace(_measured(problem, formulation, claim), backend=backend.name, raw_seconds=seconds)
    try:
        solution = solve(problem, backend, options=options)
    except BackendError as error:
        return replace(row, message=str(error))
    return replace(
        row,
        verified=solution.verified,
        value=float(solution.value) if solution.proved_pmf is not None else None,
        bound=None if solution.bound is None else float(solution.bound),
        gap=None if solution.gap is None else float(solution.gap),
        timings=dict(solution.timings),
        message="; ".join(text for text in (claim.message, solution.message) if text),
    )


def _asked(formulation: Formulation, backend: Backend, options: Mapping[str, Any]) -> tuple[Claim, float]:
    """The backend's claim about the plain program, with its wall time (inside the solver where the claim says so)."""
    rest, limit = read_limit(options, None)
    started = perf_counter()
    with limited(limit):
        claim = ask(backend, formulation.program, rest)
    return claim, claim.seconds or perf_counter() - started


# --- measuring a raw answer ------------------------------------------------------------------------------------------


def _measured(problem: Problem, formulation: Formulation, claim: Claim) -> Row:
    """The raw half of a row: the floats as the solver left them."""
    sign = -1.0 if problem.objective_term.maximise else 1.0
    objective = sign * claim.objective if math.isfinite(claim.objective) else None
    row = Row(claim.backend, claim.status, raw_objective=objective, message=claim.message)
    if claim.x.shape != formulation.program.cost.shape:
        return row
    p = claim.x[: formulation.core.size]
    return replace(
        row,
        raw_epsilon=_true_epsilon(problem, p),
        raw_delta=_true_delta(problem, p),
        raw_violation=_largest_violation(formulation, claim.x),
    )


def _true_epsilon(problem: Problem, p: np.ndarray) -> float | None:
    """The largest log ratio of masses within the sensitivity, over the core; the worst by its excess."""
    wanted = [g for g in _guarantees(problem) if g.delta == 0]
    if not wanted:
        return None
    found = [(_largest_log_ratio(p, guarantee.shift), float(guarantee.epsilon)) for guarantee in wanted]
    return max(found, key=lambda pair: pair[0] - pair[1])[0]


def _guarantees(problem: Problem) -> list[Guarantee]:
    """What privacy the problem asks for, the constraints first."""
    asked = [part.guarantee for part in (*problem.all_terms, problem.objective_term)]
    return [guarantee for guarantee in asked if guarantee is not None]


def _largest_log_ratio(p: np.ndarray, shift: int) -> float:
    """max ln(p_i / p_j) over |i - j| <= shift; infinite where a mass stands beside none, or beside a negative one."""
    if not np.all(np.isfinite(p)):
        return math.inf
    nearby = maximum_filter1d(p, 2 * min(shift, p.size) + 1, mode="constant", cval=0.0)
    bare = p <= 0
    if np.any(nearby[bare] > 0) or not np.any(p > 0):
        return math.inf
    kept = ~bare
    return float(np.max(np.log(nearby[kept]) - np.log(p[kept])))


def _true_delta(problem: Problem, p: np.ndarray) -> float | None:
    """The worst hockey-stick divergence of the floats, with nothing beyond the core; of the worst constraint."""
    wanted = [(g, float(g.delta or 0)) for g in _guarantees(problem) if g.delta != 0]
    if not wanted or not np.all(np.isfinite(p)):
        return None
    found = [(_hockey_stick(p, float(g.epsilon), g.shift), delta) for g, delta in wanted]
    return max(found, key=lambda pair: pair[0] - pair[1])[0]


def _hockey_stick(p: np.ndarray, epsilon: float, shift: int) -> float:
    """max over shifts of sum (p(k) - e^epsilon p(k - s))+."""
    factor, worst = math.exp(min(epsilon, 700.0)), 0.0
    for s in range(1, shift + 1):
        moved = np.concatenate([np.zeros(min(s, p.size)), p[: max(p.size - s, 0)]])
        back = np.concatenate([p[s:], np.zeros(min(s, p.size))])
        worst = max(worst, *(float(np.maximum(p - factor * other, 0.0).sum()) for other in (moved, back)))
    return worst


def _largest_violation(formulation: Formulation, x: np.ndarray) -> float:
    """The largest violation of a row or a bound, in the row's own units; infinite when something is not finite."""
    program = formulation.program
    if not np.all(np.isfinite(x)):
        return math.inf
    activity = program.rows @ x
    sides = (program.row_lower - activity, activity - program.row_upper, program.lower - x, x - program.upper)
    return max(float(np.max(side, initial=0.0)) for side in sides)


# --- text ------------------------------------------------------------------------------------------------------------


def _truth_heading(problem: Problem) -> str:
    """Which measure of the raw answer the table shows, with what was wanted."""
    first = next(iter(_guarantees(problem)), None)
    if first is None:
        return "violation"
    if first.delta is None:
        return "delta"
    return f"epsilon (wanted {_short(first.epsilon)})" if first.delta == 0 else f"delta (wanted {_short(first.delta)})"


def _cells(row: Row, truth: str) -> tuple[str, ...]:
    measure = truth.split(" ", 1)[0]
    raw = {"epsilon": row.raw_epsilon, "delta": row.raw_delta, "violation": row.raw_violation}[measure]
    claimed, verified = row.claimed.value if row.claimed else "-", row.verified.value if row.verified else "-"
    gap = "-" if row.gap is None else f"{row.gap:.1e}"
    truth_text = _number(raw, 3 if measure == "violation" else 12)
    numbers = (_number(row.value), _number(row.bound), gap)
    return (row.backend, claimed, truth_text, _number(row.raw_objective), verified, *numbers)


def _time_cells(row: Row, phases: list[str]) -> tuple[str, ...]:
    seconds = [row.raw_seconds, *(row.timings.get(phase) for phase in phases), sum(row.timings.values()) or None]
    return (row.backend, *("-" if s is None else f"{s:.3f}" for s in seconds))


def _number(value: float | None, digits: int = 12) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def _short(number: Fraction) -> str:
    return f"{float(number):.6g}"


def _row_plain(row: Row) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name in Row.__dataclass_fields__:
        value = getattr(row, name)
        if isinstance(value, Claimed | Verified):
            value = value.value
        elif isinstance(value, float) and not math.isfinite(value):
            value = "inf" if value > 0 else "-inf" if value < 0 else None
        plain[name] = dict(value) if isinstance(value, Mapping) else value
    return plain
