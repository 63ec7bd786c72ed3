"""The staircases of Geng and Viswanath as candidates: where a solver's floats leave a gap, one of them may be better.

For pure DP on all integers and a symmetric cost that does not fall away from 0, one of them is optimal (Geng and
Viswanath, arXiv 1212.1186); for the Wasserstein objective it was in every symmetric case tried. Nothing of that is
relied on here: a candidate takes the place of a solver's pmf when it is proved to cost less, or is the answer when a
bound proves it optimal. The latter saves time at large sensitivities: the bound comes from the rows that the candidate
meets with equality, a quarter of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from dpopt import checker
from dpopt.distributions import optimal_staircase
from dpopt.errors import CertificateError, InputError
from dpopt.patience import checkpoint
from dpopt.pmf import Pmf
from dpopt.problem.families.base import Tail
from dpopt.problem.problem import Problem
from dpopt.program.formulate import Formulation
from dpopt.proof.multipliers import multipliers, statement
from dpopt.proof.prove import Outcome, Verified
from dpopt.proof.repair import Repaired

__all__ = ["best_staircase", "prove_staircase", "slow_without_staircase", "with_best_staircase"]

_ALL = 12  # staircases up to which each is tried
_SLOW = 40  # sensitivity in lattice steps from which a linear program takes seconds


def with_best_staircase(problem: Problem, outcome: Outcome, staircase: Callable[[], Pmf | None]) -> Outcome:
    """The outcome, or the best staircase with the outcome's bound, where that is proved to cost less.

    `staircase` is asked for it only where the outcome has a gap.
    """
    if outcome.verified is not Verified.FEASIBLE or outcome.repaired is None:
        return outcome
    found = staircase()
    if found is None or problem.objective_term.value(found).upper >= outcome.value:
        return outcome
    certificate = checker.certify({**_statement(outcome.certificate), "laws": [found.to_dict()]})
    moved = outcome.repaired.mass_moved + _distance(found, outcome.repaired.pmf)
    return replace(
        outcome,
        verified=Verified(certificate["derived"]["verified"]),
        reason="a staircase in closed form costs less than what the solver's digits allow, and took its place",
        certificate=certificate,
        repaired=Repaired(found, problem.check(found), moved, 0.0),
    )


def slow_without_staircase(problem: Problem) -> bool:
    """Whether a staircase is worth a try before the whole program is solved: its rows grow with the sensitivity."""
    private = _privacy(problem)
    return private is not None and private.period >= _SLOW


def prove_staircase(formulation: Formulation, found: Pmf, y: np.ndarray) -> Outcome | None:
    """The staircase with the bound of these multipliers, if that proves it optimal; else None."""
    started = perf_counter()
    problem = formulation.problem
    try:
        certificate = checker.certify(statement(problem, found, multipliers(formulation, y)))
    except CertificateError:
        return None
    if certificate["derived"]["verified"] != Verified.OPTIMAL.value:
        return None
    repaired = Repaired(found, problem.check(found), 0.0, 0.0)
    return Outcome(Verified.OPTIMAL, "", certificate, repaired, seconds={"bound": perf_counter() - started})


def best_staircase(problem: Problem) -> Pmf | None:
    """The staircase with the least objective; None where there is none to compare with.

    Beyond 12 steps a search that takes the objective to fall and then rise with r: what it finds is a guess, and is
    proved or dropped.
    """
    private, step = _privacy(problem), problem.support.step
    if private is None:
        return None
    shift = private.period

    @cache
    def noise(r: int) -> Pmf:
        return optimal_staircase(private.epsilon, shift * step, r, step=step).pmf

    @cache
    def cost(r: int) -> Fraction:
        return problem.objective_term.value(noise(r)).upper

    low, high = 1, shift
    try:
        while high - low >= _ALL:
            checkpoint()
            left, right = low + (high - low) // 3, high - (high - low) // 3
            low, high = (low, right) if cost(left) <= cost(right) else (left, high)
        return noise(min(range(low, high + 1), key=cost))
    except InputError:  # an epsilon or a sensitivity that no exact pmf of the kind holds
        return None


def _privacy(problem: Problem) -> Tail | None:
    """What a problem asks for that is about the cheapest noise under pure DP on all integers and nothing else."""
    tail = problem.all_terms[0].tail if len(problem.all_terms) == 1 and not problem.support.is_finite else None
    return tail if tail is not None and tail.epsilon > 0 else None


def _statement(certificate: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in certificate.items() if key != "derived"}


def _distance(one: Pmf, other: Pmf) -> float:
    """Total variation over both cores, in floats: for information."""
    first, last = min(one.start, other.start), max(one.end, other.end)
    return float(sum(abs(one.probability(k) - other.probability(k)) for k in range(first, last + 1)) / Fraction(2))
