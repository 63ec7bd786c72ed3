"""Repair: from a solver's floats to an exact pmf that meets every constraint, changing as little as needed.

The ladder: the floats as they are; then, with ever larger steps, pure DP made slightly stricter (least majorant) and a
mixture with a strictly feasible pmf; half-way up, the tail's dust swept to zero. On each rung the equalities are
corrected exactly on a few heavy points. The first rung on which every constraint checks exactly wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from flint import fmpq, fmpq_mat

from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.patience import checkpoint
from dpopt.pmf import Pmf
from dpopt.problem.parts import Check
from dpopt.program.formulate import Formulation, chain_owner
from dpopt.proof.weights import to_weights

__all__ = ["RepairFailed", "Repaired", "repair"]

_MASS_TOLERANCE = 1e-2  # a claim farther than this from a pmf is not one
_NEGATIVE_TOLERANCE = 1e-4
_MAX_ACTIVE = 60  # rows of an exact rational elimination in Python
_UNSEEN = 1e-200
_INTERIOR_EXPONENT = -11  # the rung from which a tiny delta may be left to the edges alone
_SWEEP_EXPONENT = (
    -8
)  # the rung at which masses below 1e-9 may be dropped: real tails are kept while less change will do


class RepairFailed(Exception):
    """No rung of the ladder gave a pmf that meets every constraint; the message says what stood in the way."""


@dataclass(frozen=True)
class Repaired:
    """An exact pmf that meets every constraint.

    Parameters
    ----------
    mass_moved : float
        Total variation distance between the solver's floats (normalised) and the pmf.
    mixed : float
        Weight of the strictly feasible pmf that was mixed in.
    """

    pmf: Pmf
    checks: tuple[Check, ...]
    mass_moved: float
    mixed: float


def sanitised(formulation: Formulation, x: np.ndarray) -> np.ndarray:
    """The pmf part of a claim as non-negative floats, or `RepairFailed` when it is not close to a pmf."""
    program, size = formulation.program, formulation.core.size
    p = x[:size]
    if not np.all(np.isfinite(p)):
        raise RepairFailed(f"the backend returned {int(np.sum(~np.isfinite(p)))} values that are not finite")
    if p.min() < -_NEGATIVE_TOLERANCE:
        raise RepairFailed(
            f"the backend returned the negative mass {p.min():.3g} at index {formulation.core.first + int(p.argmin())}"
        )
    p = np.where(program.upper[:size] > 0, np.maximum(p, 0.0), 0.0)
    mass = float((program.rows[[0]] @ np.concatenate([p, np.zeros(x.size - size)]))[0])
    if abs(mass - 1) > _MASS_TOLERANCE:
        raise RepairFailed(f"the backend's pmf has total mass {mass:.6g}, not 1")
    return p


def repair(formulation: Formulation, x: np.ndarray, centre: Callable[[], np.ndarray | None]) -> Repaired:
    """Turn a claimed point into an exact pmf that meets every constraint of the problem.

    Parameters
    ----------
    x : array, shape (n,)
        The claim, in the formulation's coordinates.
    centre : callable
        Gives a strictly feasible point's pmf (floats over the core), or None; called only when needed.

    Raises
    ------
    RepairFailed
    """
    p = sanitised(formulation, x)
    reason, needed = "nothing was tried", 0.0
    for rung in _rungs(formulation, p, centre):
        checkpoint()
        if 0 < rung.mixed < needed:
            continue
        try:
            pmf = _exact_pmf(formulation, rung)
        except (RepairFailed, InputError) as error:
            reason = str(error)
            continue
        checks = formulation.problem.check(pmf)
        if all(c.holds for c in checks):
            return Repaired(pmf, checks, _distance(formulation, p, pmf), rung.mixed)
        failed = min((c for c in checks if not c.holds), key=lambda c: c.margin)
        reason = f"constraint '{failed.constraint}' is missed by {float(-failed.margin):.3g}"
        if rung.mixed == 0 and not rung.interior and needed == 0:
            needed = _mixture_needed(formulation, checks, centre())
    raise RepairFailed(f"the pmf could not be repaired: {reason}")


def _mixture_needed(formulation: Formulation, checks: tuple[Check, ...], inner: np.ndarray | None) -> float:
    """How much of the strictly feasible pmf makes up for the expectations that are missed (their margins are linear).

    Privacy is made up for much sooner than a straight line says: the mixture's ratios gain room at once.
    """
    if inner is None:
        return 0.0
    try:
        room = formulation.problem.check(_exact_pmf(formulation, _Rung(inner)))
    except (RepairFailed, InputError):
        return 0.0
    needed = 0.0
    for terms, here, there in zip(formulation.problem.terms, checks, room, strict=True):
        if all(term.is_linear for term in terms) and not here.holds and there.margin > 0:
            needed = max(needed, float(-here.margin / (there.margin - here.margin)))
    return needed


@dataclass(frozen=True)
class _Rung:
    """One attempt: masses over the core, how much stricter pure DP is read, and what was mixed in.

    `interior` reads an (epsilon, delta) constraint as pure DP inside the core, which leaves delta to the edges alone:
    for a delta below a solver's resolution nothing else can be exact. `tight` treats inequalities that the claim meets
    with equality as equalities: where nothing is strictly feasible, the solution of the active rows is all there is.
    """

    masses: np.ndarray
    strictness: Fraction = Fraction(0)
    mixed: float = 0.0
    interior: bool = False
    tight: bool = False


def _rungs(formulation: Formulation, p: np.ndarray, centre: Callable[[], np.ndarray | None]) -> Iterator[_Rung]:
    """From least to most change."""
    terms = formulation.problem.all_terms
    private, tiny = any(t.has_majorant for t in terms), any(t.leaves_edges for t in terms)
    if private:
        p = np.where(
            p < _UNSEEN, 0.0, p
        )  # no solver can have meant these; the majorant puts the least there that is private
    yield _Rung(p)
    inner = centre()
    variants: tuple[bool, ...] = (False,)
    for exponent in range(-15, -1):
        step = Fraction(10) ** exponent
        if exponent == _INTERIOR_EXPONENT and tiny:
            variants = (False, True)
            yield _Rung(p, interior=True)
        if exponent == _SWEEP_EXPONENT and not private:
            yield _Rung(np.where(p < 1e-9 * p.max(), 0.0, p))
        if inner is not None:
            for part in (1, 3):
                weight = part * float(step)
                for interior in variants:
                    yield _Rung((1 - weight) * p + weight * inner, step / 1000, weight, interior)
        elif private:
            yield _Rung(p, step)
    yield _Rung(np.where(p < 1e-9 * p.max(), 0.0, p), tight=True)


def _exact_pmf(formulation: Formulation, rung: _Rung) -> Pmf:
    """Weights made private, symmetric and exactly balanced."""
    problem, core = formulation.problem, formulation.core
    terms, owner = problem.all_terms, chain_owner(problem)
    weights = to_weights(rung.masses, depth=max((term.depth(core.size) for term in terms), default=0.0))
    mirror = any(term.mirrors for term in terms)
    if mirror:
        weights = _mirrored(formulation, weights)
    start, tails = core.first, None
    for i, group in enumerate(problem.terms):
        for term in group:
            tail = term.tail if i == owner else None
            beyond = 0 if tail is None else tail.period - 1
            weights = term.enforced(weights, strictness=rung.strictness, beyond=beyond)
            start -= beyond
            tails = tails if tail is None else tail.tails
    if rung.interior:
        for term in terms:
            weights = term.inside(weights)
    banned = frozenset[int]().union(*(term.zeros for term in terms))
    weights = [0 if k in banned else w for k, w in enumerate(weights, start)] if banned else weights
    if not any(weights):
        raise RepairFailed("the backend's pmf has no mass")
    pmf = Pmf(start, weights, problem.support.step, tails)
    return _balanced(pmf, _equalities(formulation, pmf if rung.tight else None), mirror)


def _mirrored(formulation: Formulation, weights: list[int]) -> list[int]:
    """Each point with the average of itself and its mirror image (doubled, to stay integer)."""
    first, last = formulation.core.first, formulation.core.last
    at = dict(zip(range(first, last + 1), weights, strict=True))
    return [at[k] + at[-k] if -k in at else 0 for k in range(first, last + 1)]


# --- equalities ------------------------------------------------------------------------------------------------------


def _equalities(formulation: Formulation, active_at: Pmf | None) -> list[LatticeFunction]:
    """The functions whose weighted sums must vanish: f - b for each ``E f = b``, and for the active inequalities."""
    terms, core = formulation.problem.all_terms, formulation.core
    found = [function for term in terms for function in term.equalities]
    if active_at is not None:
        found += [f for term in terms for f in term.active(active_at, core.first, core.last) if f not in found]
    if len(found) > _MAX_ACTIVE:
        raise RepairFailed(f"nothing is strictly feasible, and {len(found)} active rows are too many to solve exactly")
    return found


def _balanced(pmf: Pmf, equalities: list[LatticeFunction], mirror: bool) -> Pmf:
    """The pmf with its equalities made exact by changing the weights of a few heavy points."""
    residuals = [pmf.weighted_sum(f) for f in equalities]
    if not any(residuals):
        return pmf
    orbits = _heavy_orbits(pmf, mirror, 4 * len(equalities) + 8)
    matrix = [[sum((f(k) for k in orbit), Fraction(0)) for orbit in orbits] for f in equalities]
    top = max(pmf.weights)
    change = _solve(matrix, [-r for r in residuals], [pmf.weights[orbit[0] - pmf.start] / top for orbit in orbits])
    unit = lcm(*(value.denominator for value in change))
    weights = [w * unit for w in pmf.weights]
    for orbit, value in zip(orbits, change, strict=True):
        for k in orbit:
            weights[k - pmf.start] += int(value * unit)
    if min(weights) < 0:
        raise RepairFailed("the equalities need more mass moved than the heavy points have")
    return Pmf(pmf.start, weights, pmf.step, pmf.tails)


def _heavy_orbits(pmf: Pmf, mirror: bool, count: int) -> list[tuple[int, ...]]:
    """The heaviest points outside the tail blocks, each with its mirror image where symmetry must be kept."""
    inset = pmf.tails.period if pmf.tails is not None and len(pmf.weights) > 2 * pmf.tails.period else 0
    inner = range(pmf.start + inset, pmf.end - inset + 1)
    heaviest = sorted((k for k in inner if pmf.weights[k - pmf.start]), key=lambda k: -pmf.weights[k - pmf.start])
    if not mirror:
        return [(k,) for k in heaviest[:count]]
    right = [k for k in heaviest if k >= 0 and pmf.start <= -k <= pmf.end][:count]
    orbits: list[tuple[int, ...]] = [(k, -k) if k else (k,) for k in right]
    return orbits


def _solve(matrix: list[list[Fraction]], wanted: list[Fraction], weight: list[float]) -> list[Fraction]:
    """An exact solution of ``matrix @ change = wanted`` with few non-zeros, on heavy columns of large coefficients."""
    size = [w * max(abs(float(row[c])) for row in matrix) for c, w in enumerate(weight)]
    order = sorted(range(len(weight)), key=lambda c: -size[c])
    table = [[fmpq(v.numerator, v.denominator) for v in [*(row[c] for c in order), side]]
             for row, side in zip(matrix, wanted, strict=True)]  # fmt: skip
    reduced, rank = fmpq_mat(table).rref()  # the first columns that do are its pivots
    change = [Fraction(0)] * len(order)
    for r in range(rank):
        pivot = next(c for c in range(len(order) + 1) if reduced[r, c] != 0)
        if pivot == len(order):
            raise RepairFailed("the equalities contradict each other on the points that carry mass")
        value = reduced[r, len(order)]
        change[order[pivot]] = Fraction(int(value.p), int(value.q))
    return change


def _distance(formulation: Formulation, p: np.ndarray, pmf: Pmf) -> float:
    """Total variation distance over the core between the normalised floats and the exact pmf."""
    core, exact = formulation.core, pmf.probabilities()
    offset = core.first - pmf.start
    inside = exact[offset : offset + core.size]
    mass = float(formulation.program.rows[[0]].toarray().ravel()[: core.size] @ p)
    return float(0.5 * np.abs(p / mass - inside).sum())
