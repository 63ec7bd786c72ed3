"""Proving that nothing is feasible, naming the conflict, finding strictly feasible points: small linear programs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpopt.backends.base import Backend, ask
from dpopt.backends.registry import get_backend
from dpopt.patience import checkpoint
from dpopt.problem.problem import Problem
from dpopt.program.formulate import Formulation, chain_owner, formulate
from dpopt.program.reductions import Reduction, elastic, reduce
from dpopt.proof.prove import Outcome, Verified, farkas

__all__ = ["conflicts", "strictly_feasible"]

log = logging.getLogger(__name__)

_NEAR = 1e-6  # far below the room that is left
_ROOMS = (Fraction(1, 8), Fraction(1, 64), Fraction(1, 1024), Fraction(1, 1 << 20))


def conflicts(formulation: Formulation, backend: Backend) -> Iterator[Outcome]:
    """Proofs that the constraints contradict each other, of ever smaller sets; the last one is irreducible.

    Deletion filter: a constraint leaves the set when the rest is still proved infeasible. A variance is centred at the
    mean that another constraint fixes, and so leaves with it. There is none where the first proof is not found.
    """
    problem = formulation.problem
    kept = list(range(len(problem.constraints)))
    certificate = _proof(formulation, kept, backend)
    if certificate is None:
        return
    yield _outcome(problem, kept, certificate)
    centred = {i for i, constraint in enumerate(problem.constraints) if constraint.is_centred}
    for index in list(kept):
        leaving = {index} | (centred if index == problem.centring else set())
        rest = [i for i in kept if i not in leaving]
        smaller = _proof(formulation, rest, backend) if index in kept else None
        if smaller is not None:
            kept = rest
            yield _outcome(problem, kept, smaller)


def _outcome(problem: Problem, kept: Sequence[int], certificate: dict[str, Any]) -> Outcome:
    """A proof in words: which constraints exclude each other."""
    conflict = tuple(problem.constraint_names[i] for i in kept)
    if not conflict:
        reason = "no pmf exists on this support"
    else:
        listed = ", ".join(f"'{name}'" for name in conflict)
        reason = f"no pmf meets {listed} together" if len(conflict) > 1 else f"no pmf meets {listed} on this support"
    return Outcome(Verified.INFEASIBLE, reason, certificate, conflict=conflict)


def _proof(formulation: Formulation, keep: Collection[int], backend: Backend) -> dict[str, Any] | None:
    """A Farkas certificate from the elastic phase 1 over the kept constraints."""
    core = formulation.core
    if core.closure is not None and chain_owner(formulation.problem) not in keep:
        core = replace(core, closure=None)
    phase = formulate(formulation.problem, core, keep=keep, with_objective=False)
    if not np.any(phase.program.upper[: core.size] > 0):
        return farkas(phase, np.zeros(phase.program.row_lower.size))  # no point may have mass: nothing to combine
    for scaled in (True, False):  # multipliers from a steep envelope lose small digits; plain rows lose small masses
        reduction = reduce(phase, scaled=scaled)
        program = elastic(reduction.program)
        solver = backend if backend.supports(program).supported else get_backend("highs")
        checkpoint()
        claim = ask(solver, program, {})
        if claim.y.size and claim.objective > 1e-12:
            certificate = farkas(phase, reduction.multipliers(claim.y))
            if certificate is not None:
                return certificate
    return None


def strictly_feasible(formulation: Formulation, backend: Backend) -> np.ndarray | None:
    """The pmf part of a point with room in every inequality, the most of a few steps; None if there is none.

    It is the optimum of the tightened program, so that mixing a little of it in costs little.
    """
    for room in _ROOMS:
        checkpoint()
        inner = formulate(formulation.problem, formulation.core, tighten=room)
        found = _met(inner, reduce(inner), backend)
        if found is None:  # any point with room will do: a linear program without cost, from a solver we know
            inner = formulate(formulation.problem, formulation.core, tighten=room, with_objective=False)
            found = _met(inner, reduce(inner), get_backend("highs"))
        if found is not None:
            return found
    return None


def _met(formulation: Formulation, reduction: Reduction, backend: Backend) -> np.ndarray | None:
    """The pmf part of a backend's point, if it nearly meets the program (whatever the backend says about it)."""
    claim = ask(backend, reduction.program, {})
    if not claim.has_point or reduction.program.violation(claim.x) > _NEAR:
        return None
    return np.maximum(reduction.point(claim.x)[: formulation.core.size], 0.0)
