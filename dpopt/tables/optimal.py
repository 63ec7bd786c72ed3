"""The optimal key table: integer counts, closest to a pmf among those that keep what a release must keep.

A mixed integer program over offsets proposes (any backend that takes one); integers decide: the counts are checked
exactly, slips of the solver are repaired, and the optimum is proved by weak duality and an enumeration of what it
leaves open (`dpopt.tables.bound`), without the solver's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpopt.arithmetic import Enclosure, Number, exact, exact_integer, exp_enclosure
from dpopt.backends.base import Claimed, read_given
from dpopt.backends.registry import read_backend
from dpopt.errors import InputError, NotVerifiedError
from dpopt.privacy.shifts import lattice_shift
from dpopt.proof.prove import Verified
from dpopt.reading import read_choice
from dpopt.record import Record
from dpopt.tables.bound import Lagrangian, search
from dpopt.tables.costs import Distance, TableCost, table_cost
from dpopt.tables.elastic import impossible
from dpopt.tables.ideal import Ideal, ideal_pmf, read_ideal
from dpopt.tables.key_table import KeyTable
from dpopt.tables.offsets import Dual
from dpopt.tables.proposal import Proposer
from dpopt.tables.question import Privacy, Question, TableCheck

__all__ = ["TableSolution", "optimal_table"]

_BUDGET = 2_000_000  # a few seconds
_SOLVER_SECONDS = 20.0  # for one integer program, unless the options say otherwise: the proof does not need its end
_RELATIVE_GAP = Fraction(1, 10**6)
_SHRINK = (1.0, 0.98, 0.9, 0.7)  # smaller multipliers cost a part of the bound and leave no price flat


@dataclass(frozen=True, repr=False)
class TableSolution(Record):
    """The answer for a key table, with what was claimed and what is proved kept apart.

    Parameters
    ----------
    distance : Distance
        What was made least.
    key_size : int
    backend : str
    claimed : Claimed
        What the solver said about the integer program.
    verified : Verified
        OPTIMAL: every constraint proved, and no table is closer (gap at most 1e-6 of the value). FEASIBLE: every
        constraint proved, larger gap. INFEASIBLE: proved that no table exists. FAILED: nothing was proved.
    message : str
        How the bound was proved, or why there is none.
    bound : Fraction or None
        No table that meets the constraints is closer than this.
    checks : tuple of TableCheck
        Each constraint, on the integers.
    repaired : int
        Keys in which the table differs from the solver's answer: slips repaired, and what the enumeration improved.
    """

    distance: Distance
    key_size: int
    backend: str
    claimed: Claimed
    verified: Verified
    message: str
    proved_table: KeyTable | None = None
    proved_value: Enclosure | None = None
    bound: Fraction | None = None
    checks: tuple[TableCheck, ...] = ()
    repaired: int = 0
    solver_message: str = ""

    @property
    def table(self) -> KeyTable:
        """The proved table; raises `NotVerifiedError` when there is none."""
        if self.proved_table is None:
            raise NotVerifiedError(f"there is no proved key table ({self.verified.value}): {self.message}")
        return self.proved_table

    @property
    def value(self) -> Enclosure:
        """The distance of the proved table from the ideal pmf; raises `NotVerifiedError` when there is none."""
        _ = self.table
        assert self.proved_value is not None
        return self.proved_value

    @property
    def gap(self) -> Fraction | None:
        """The largest possible distance between value and bound; None when there is no bound."""
        return None if self.bound is None or self.proved_value is None else self.value.upper - self.bound

    def require_verified(self) -> TableSolution:
        """This solution, if its table is proved; else `NotVerifiedError` with the summary."""
        if self.verified not in (Verified.OPTIMAL, Verified.FEASIBLE):
            raise NotVerifiedError(str(self))
        return self

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        lines = [
            f"key table, key size {self.key_size}, least {self.distance}",
            f"verified         {self.verified.value} (claimed: {self.claimed.value}, backend {self.backend})",
            f"reason           {self.message}",
        ]
        if self.proved_table is not None:
            bound = "none" if self.bound is None else f"{float(self.bound):.12g}"
            lines += [f"value            {self.value}", f"bound            {bound}"]
            lines += [f"check            {c.name}: {'holds' if c.holds else 'fails'}" for c in self.checks]
            lines.append(str(self.table))
        return "\n".join(lines)

    def __repr__(self) -> str:
        value = "" if self.proved_value is None else f", value={self.value}"
        return f"TableSolution(claimed={self.claimed.value}, verified={self.verified.value}{value})"


def optimal_table(
    pmf: Ideal,
    key_size: int,
    *,
    variance: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    sensitivity: Number = 1,
    distance: Distance | str = Distance.TOTAL_VARIATION,
    backend: str = "highs",
    options: Mapping[str, Any] | None = None,
) -> TableSolution:
    """The key table closest to a pmf: counts that sum to K, full support, bias exactly 0, variance at most V.

    Parameters
    ----------
    pmf : Pmf or (D, gamma)
        The ideal noise. ``(D, gamma)`` stands for the canonical exact member of the family, which differs from the
        irrational one by less than 2^-126.
    key_size : int
        K, also 2^64 and beyond: solvers see offsets from floor(p K) only.
    variance : number, optional
        V; by default the pmf's own variance.
    epsilon, delta : number, optional
        Both or none: the (epsilon, delta) that the integers must keep, in both directions.
    sensitivity : number
        Every shift up to it counts.
    distance : Distance or str
        Total variation, or the Kullback-Leibler divergence of the table from the pmf.
    backend : str
        Any backend for mixed integer programs: "highs", "scipy", "pulp" (CBC).
    options : mapping, optional
        The backend's options; one integer program is stopped after 20 seconds unless ``time_limit`` says otherwise.

    Examples
    --------
    >>> solution = optimal_table((2, "1/3"), 256)
    >>> solution.verified.value, solution.table.counts, solution.table.bias
    ('optimal', (22, 62, 88, 62, 22), Fraction(0, 1))
    """
    question = _question(pmf, key_size, variance, epsilon, delta, sensitivity)
    chosen = read_choice(Distance, distance, "distance")
    solver = read_backend(backend)
    if reason := question.refutation():
        return TableSolution(chosen, question.key_size, solver.name, Claimed.INFEASIBLE, Verified.INFEASIBLE, reason)
    limit = {"time_limit": _SOLVER_SECONDS} if "time_limit" in solver.options else {}
    given = {**limit, **read_given(options)}
    run = Proposer(question, table_cost(chosen, question.ideal, question.key_size), solver, given)
    found = run.propose()
    return _prove(question, run, chosen, found)


def _question(
    pmf: object,
    key_size: object,
    variance: Number | None,
    epsilon: Number | None,
    delta: Number | None,
    sensitivity: Number,
) -> Question:
    """The arguments, read and checked."""
    ideal, size = ideal_pmf(read_ideal(pmf)), exact_integer(key_size, "key_size", at_least=1)
    limit = ideal.variance if variance is None else exact(variance, "variance")
    if limit < 0:
        raise InputError("variance", f"must be at least 0, not {limit}")
    if (epsilon is None) != (delta is None):
        missing = "epsilon" if epsilon is None else "delta"
        raise InputError(missing, "must be given as well: (epsilon, delta) are wanted together")
    privacy = None
    if epsilon is not None and delta is not None:
        loss, mass = exact(epsilon, "epsilon"), exact(delta, "delta")
        if loss < 0:
            raise InputError("epsilon", f"must be at least 0, not {loss}")
        if not 0 <= mass <= 1:
            raise InputError("delta", f"must lie between 0 and 1, not {mass}")
        shift = min(lattice_shift(sensitivity, Fraction(1)), len(ideal.weights))  # longer ones separate alike
        privacy = Privacy(loss, mass, shift, *exp_enclosure(loss))
    moment = limit * size
    return Question(ideal, size, moment.numerator // moment.denominator, privacy)


def _prove(question: Question, run: Proposer, distance: Distance, found: list[int] | None) -> TableSolution:
    """Bound what the solver proposed, look for what is better, and say what is proved."""
    claim = run.claim
    claimed = Claimed.ERROR if claim is None else claim.status
    empty = TableSolution(distance, question.key_size, run.solver.name, claimed, Verified.FAILED, "")
    empty = replace(empty, solver_message="" if claim is None else claim.message, repaired=run.repaired)
    dual = run.dual()
    if found is None:
        if impossible(question, run.solver, run.options):
            return replace(empty, verified=Verified.INFEASIBLE, message=_BY_DUALITY)
        verdict, rescued = _rescue(Lagrangian(question, run.cost, dual, run.base))
        if rescued is None:
            return replace(empty, verified=verdict, message=_REASONS[verdict])
        found = list(rescued)
    best, bound, how = _close(run, dual, tuple(found))
    value = run.cost.value(best)
    proved = value.upper - bound <= _RELATIVE_GAP * max(value.upper, bound)
    moved = sum(abs(a - b) for a, b in zip(best, found, strict=True))
    return replace(
        empty,
        verified=Verified.OPTIMAL if proved else Verified.FEASIBLE,
        message=how,
        proved_table=KeyTable(question.ideal.start, best, question.key_size),
        proved_value=value,
        bound=bound,
        checks=question.checks(best),
        repaired=run.repaired + moved,
    )


_BY_DUALITY = "no real table meets the constraints, by an exact combination of them; so no integer one does"
_REASONS = {
    Verified.INFEASIBLE: "every table was enumerated and none meets the constraints",
    Verified.FAILED: (
        "the solver found no table that meets the constraints, and there are too many to enumerate; "
        "allow a larger key size, variance or delta"
    ),
}


def _rescue(lagrangian: Lagrangian) -> tuple[Verified, tuple[int, ...] | None]:
    """Without a proposal: enumerate all tables, if they are few enough, cheapest first."""
    question = lagrangian.question
    ends = (1, question.largest_count)
    spans = [
        max(lagrangian.reduced(i, n) for n in ends) - lagrangian.least[i]
        for i, needed in enumerate(question.wanted)
        if needed
    ]
    everything = sum(spans)
    gap = lagrangian.cost.scale * lagrangian.denominator
    while True:
        gap = min(gap, everything)
        found = search(lagrangian, gap, _BUDGET)
        if found.counts is not None:
            return Verified.FEASIBLE, found.counts
        if not found.finished:
            return Verified.FAILED, None
        if gap == everything:
            return Verified.INFEASIBLE, None
        gap *= 8


def _close(run: Proposer, dual: Dual, found: tuple[int, ...]) -> tuple[tuple[int, ...], Fraction, str]:
    """The best table known, a bound that holds for every table, and how it was proved."""
    cost, bound = run.cost, Fraction(0)
    value = cost.value(found)
    for factor in _SHRINK:
        lagrangian = Lagrangian(run.question, cost, dual.scaled(factor), found)
        bound = max(bound, lagrangian.value)
        if value.upper - bound <= _RELATIVE_GAP * max(value.upper, bound):
            return found, bound, "meets the bound of the continuous relaxation, by weak duality"
        gap = _units(value.upper - lagrangian.value, lagrangian) + 4 * cost.slack * lagrangian.denominator
        outcome = search(lagrangian, gap, _BUDGET)
        if not outcome.crowded:
            break
    if outcome.finished:
        other = outcome.counts or found
        best = other if cost.value(other).upper < value.upper else found  # the solver's own stays at a tie
        proved = min(cost.value(other).lower, value.lower)
        return best, proved, "every table that could be closer was enumerated, after weak duality"
    return _partial(cost, lagrangian, found, gap, bound)


def _units(amount: Fraction, lagrangian: Lagrangian) -> int:
    """An amount of distance in the Lagrangian's integers, rounded up."""
    units = amount * lagrangian.denominator / lagrangian.cost.unit
    return -(-units.numerator // units.denominator)


def _partial(
    cost: TableCost, lagrangian: Lagrangian, found: tuple[int, ...], gap: int, bound: Fraction
) -> tuple[tuple[int, ...], Fraction, str]:
    """A part of the gap that can be enumerated: a smaller bound, or a table that is closer after all."""
    words = "bound by weak duality and a partial enumeration"
    for part in (2, 4, 8, 16, 32):
        outcome = search(lagrangian, gap // part, _BUDGET // 4)
        if not outcome.finished:
            continue
        reached = lagrangian.value + gap // part * cost.unit / lagrangian.denominator
        if outcome.counts is None:
            return found, max(bound, reached), words
        best = min((found, outcome.counts), key=lambda counts: cost.value(counts).upper)
        return best, max(bound, min(cost.value(outcome.counts).lower, reached)), words
    return found, bound, "bound by weak duality alone: the enumeration would take too many steps"
