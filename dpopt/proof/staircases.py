"""The staircases of Geng and Viswanath as candidates: where a solver's floats leave a gap, one of them may be better.

For pure DP on all integers and a symmetric cost that does not fall away from 0, one of them is optimal (Geng and
Viswanath, arXiv 1212.1186); for the Wasserstein objective it was in every symmetric case tried. Nothing of that is
relied on here: a candidate takes the place of a solver's pmf when it is proved to cost less.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpopt.distributions import optimal_staircase
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.problem.constraints import PureDP
from dpopt.problem.problem import Problem
from dpopt.problem.terms import CostTerm, WassersteinTerm
from dpopt.proof import checker
from dpopt.proof.prove import Outcome, Verified
from dpopt.proof.repair import Repaired

__all__ = ["with_best_staircase"]

_MOST = 64  # staircases that are tried


def with_best_staircase(problem: Problem, outcome: Outcome) -> Outcome:
    """The outcome, or the best staircase with the outcome's bound, where that is proved to cost less.

    Only for problems whose one constraint is pure DP on all integers, at a sensitivity of at most 64 steps.
    """
    if outcome.verified is not Verified.FEASIBLE or outcome.repaired is None:
        return outcome
    found = _best(problem)
    if found is None or problem.objective_term.value(found).upper >= outcome.value:
        return outcome
    statement = {key: value for key, value in outcome.certificate.items() if key != "derived"}
    certificate = checker.certify({**statement, "pmf": found.to_dict()})
    moved = outcome.repaired.mass_moved + _distance(found, outcome.repaired.pmf)
    return replace(
        outcome,
        verified=Verified(certificate["derived"]["verified"]),
        reason="a staircase in closed form costs less than what the solver's digits allow, and took its place",
        certificate=certificate,
        repaired=Repaired(found, problem.check(found), moved, 0.0),
    )


def _best(problem: Problem) -> Pmf | None:
    """The staircase with the least objective; None where there is none to compare with."""
    if (
        problem.support.is_finite
        or not problem.constraints
        or not isinstance(problem.objective_term, CostTerm | WassersteinTerm)
    ):
        return None
    private, step = problem.constraints[0], problem.support.step
    if len(problem.constraints) != 1 or not isinstance(private, PureDP):
        return None
    shift = int(private.sensitivity // step)
    if shift > _MOST or private.epsilon == 0:
        return None
    try:
        noise = [optimal_staircase(private.epsilon, shift * step, r, step=step).pmf for r in range(1, shift + 1)]
    except InputError:  # an epsilon that no exact pmf of the kind holds
        return None
    return min(noise, key=lambda pmf: problem.objective_term.value(pmf).upper)


def _distance(one: Pmf, other: Pmf) -> float:
    """Total variation over both cores, in floats: for information."""
    first, last = min(one.start, other.start), max(one.end, other.end)
    return float(sum(abs(one.probability(k) - other.probability(k)) for k in range(first, last + 1)) / Fraction(2))
