"""Problem -> program: the columns of a core and one block of rows for every exact term."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, expm1, log1p

import numpy as np

from dpopt.arithmetic import exp_enclosure
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.problem.problem import Problem
from dpopt.problem.terms import (
    EntropyTerm,
    ExpectationTerm,
    HockeyStickTerm,
    MinDeltaTerm,
    MirrorTerm,
    OrderTerm,
    RatioTerm,
    Term,
    WassersteinTerm,
    ZeroTerm,
)
from dpopt.program.assembly import INF, Assembly
from dpopt.program.blocks import (
    Block,
    ExpectationBlock,
    HockeyStickBlock,
    MassBlock,
    MirrorBlock,
    OrderBlock,
    RatioBlock,
    WassersteinBlock,
)
from dpopt.program.core import Closure, Core, floats
from dpopt.program.program import Program

_FARTHEST = 10**12  # lattice indices are 64-bit integers, and floats to the last unit, in a program
_FAR_OUT = 10**6  # where a polynomial has the sign that it keeps
_WIDEST_HELD = 2000  # lattice points on a side
_FARTHEST_TAIL = 2000  # an exact tail that reaches back to 0 carries e^epsilon to this power
_MAX_ROWS = 2e7  # about 5 GB in a solver

__all__ = ["Formulation", "chain_owner", "core_for", "expected_centre", "formulate", "grown", "tightened"]


@dataclass(frozen=True, eq=False)
class Formulation:
    """A problem as a program over a core.

    Parameters
    ----------
    program : Program
        The first ``core.size`` columns are the pmf, the rest auxiliaries of the blocks.
    core : Core
    blocks : tuple of Block
        In the order of the rows: mass, objective, constraints.
    problem : Problem
    """

    problem: Problem
    core: Core
    program: Program
    blocks: tuple[Block, ...]


def core_for(problem: Problem) -> Core:
    """The core to start with: the finite support, or a window wide enough for most optima.

    Under pure DP a few shifts around the mean suffice (theory of infinite supports, section 2); under
    (epsilon, delta) the window has to hold the optimum's whole support.
    """
    window = problem.support.window
    if window is not None:
        return Core(*window)
    flat = [term for group in problem.terms for term in group]
    centre = expected_centre(problem)
    owner = chain_owner(problem)
    reach = max([t.function.reach for t in flat if isinstance(t, ExpectationTerm)], default=0)
    reach = max(reach, _held_reach(problem.objective_term.cost, flat))
    if owner is not None:
        ratio = next(t for t in problem.terms[owner] if isinstance(t, RatioTerm))
        closure = Closure(ratio.shift, 1 / float(exp_enclosure(ratio.epsilon, 64).upper))
        half = max(2 * ratio.shift, reach, 2)
        if abs(centre) > _FARTHEST_TAIL * ratio.shift:
            raise InputError(
                "constraints",
                f"put the mean at lattice index {centre:.3g}, more than {_FARTHEST_TAIL} sensitivities from 0, "
                "where the exact sums over the tails would not fit: shift the question so that the mean is near 0",
            )
        return Core(centre - half, centre + half, closure)
    half = max([_approximate_reach(t) for t in flat if isinstance(t, HockeyStickTerm)], default=0)
    half = max(half, reach, 4) + abs(centre)
    return Core(centre - half, centre + half)


def _held_reach(cost: LatticeFunction, flat: Sequence[Term]) -> int:
    """How far out mass may pay where the cost falls and a bounded moment holds it: to four times where the bound lies.

    0 where the cost falls nowhere.
    """
    if min(cost(-_FAR_OUT), cost(_FAR_OUT)) >= 0:
        return 0
    held = []
    for term in flat:
        if isinstance(term, ExpectationTerm):
            for bound, sign in ((term.at_most, 1), (term.at_least, -1)):
                grows = min(sign * term.function(-_FAR_OUT), sign * term.function(_FAR_OUT)) > 0
                if bound is not None and grows:
                    steps = range(1, _WIDEST_HELD)
                    ends = ((sign * term.function(k), sign * term.function(-k)) for k in steps)
                    held.append(next((k for k, end in zip(steps, ends, strict=True) if min(end) >= 16 * abs(bound)), 0))
    return min(filter(None, held), default=0)


def expected_centre(problem: Problem) -> int:
    """Where the mass is expected: the nearest that the bounds on the mean allow to where the cost is least."""
    terms = [t for group in problem.terms for t in group if isinstance(t, ExpectationTerm)]
    lows, highs = [], []
    for term in terms:
        function = term.function
        if function.table or function.left != function.right or len(function.right) != 2:
            continue
        level, slope = function.right  # the expectation is level + slope * E k
        ends = [None if side is None else (side - level) / slope for side in (term.at_least, term.at_most)]
        below, above = ends if slope > 0 else ends[::-1]
        lows += [] if below is None else [below]
        highs += [] if above is None else [above]
    cheapest = Fraction(_cheapest(problem.objective_term.cost))
    centre = round(min([max([cheapest, *lows]), *highs]))
    if abs(centre) > _FARTHEST:
        raise InputError(
            "constraints", f"put the mean at lattice index {centre:.3g}, beyond {_FARTHEST:.0e}: shift the question"
        )
    return centre


def _cheapest(cost: LatticeFunction) -> int:
    """The index of least cost among 0, the table and the turning points of quadratic tails, nearest to 0."""
    candidates = {0, *range(cost.start, cost.end)}
    for side in (cost.left, cost.right):
        if len(side) == 3 and side[2] > 0:
            candidates.add(round(-side[1] / (2 * side[2])))
    return min(candidates, key=lambda k: (cost(k), abs(k)))


def grown(core: Core) -> Core:
    """A core about half as long again on each side, by whole tail periods under a closure."""
    by = core.closure.shift if core.closure else 1
    more = max(by, core.size // 4 // by * by)
    return Core(core.first - more, core.last + more, core.closure)


def chain_owner(problem: Problem) -> int | None:
    """The pure-DP constraint whose chains close the tails on all integers: the one with the least epsilon / shift.

    No tail may decay faster than the least of these rates.
    """
    if problem.support.is_finite:
        return None
    found = [
        (t.epsilon / t.shift, i) for i, group in enumerate(problem.terms) for t in group if isinstance(t, RatioTerm)
    ]
    return min(found)[1] if found else None


def _approximate_reach(term: HockeyStickTerm) -> int:
    """Half-width of the optimum's support at (epsilon, delta), from the truncated geometric law, with some room."""
    if term.delta == 0:
        return 64 * term.shift
    epsilon, delta = float(term.epsilon), float(term.delta)
    steps = log1p(expm1(min(epsilon, 500.0)) / (2 * delta)) / epsilon if epsilon > 0 else 1 / (2 * delta)
    return ceil(term.shift * (min(steps, 100_000) + 2))


def tightened(term: Term, by: Fraction) -> Term:
    """The term with a little less room, so that what meets it meets the original strictly. Equalities stay."""
    if isinstance(term, RatioTerm):
        return replace(term, epsilon=term.epsilon * (1 - by))
    if isinstance(term, HockeyStickTerm):
        return replace(term, epsilon=term.epsilon * (1 - by), delta=term.delta * (1 - by))
    if isinstance(term, OrderTerm):
        return replace(term, share=term.share * (1 - by))
    if isinstance(term, ExpectationTerm) and term.at_least != term.at_most:
        low, high = term.at_least, term.at_most
        side = abs(low or high or Fraction(0))
        room = by * (high - low if low is not None and high is not None else side or Fraction(1))
        return replace(
            term, at_least=None if low is None else low + room, at_most=None if high is None else high - room
        )
    return term


def formulate(
    problem: Problem,
    core: Core,
    *,
    keep: Collection[int] | None = None,
    tighten: Fraction = Fraction(0),
    with_objective: bool = True,
) -> Formulation:
    """The program of a problem over a core.

    Parameters
    ----------
    keep : collection of int, optional
        Only these constraints (for finding a conflict).
    tighten : Fraction
        Leave every inequality this relative room (for strictly feasible points).
    with_objective : bool
        False for a pure question of feasibility: cost zero, no entropy.
    """
    _refuse_what_does_not_fit(problem, core)
    assembly = Assembly(core)
    kept = [(i, term) for i, group in enumerate(problem.terms) if keep is None or i in keep for term in group]
    objective = problem.objective_term
    cost = core.coefficients(objective.cost) if with_objective else np.zeros(core.size)
    assembly.add_columns(cost, upper=np.where(_possible(core, [term for _, term in kept]), INF, 0.0))
    blocks: list[Block] = [MassBlock.write(assembly, core.coefficients(LatticeFunction.constant(1)))]
    if with_objective and isinstance(objective, WassersteinTerm):
        blocks.append(WassersteinBlock.write(assembly, objective))
    if with_objective and isinstance(objective, MinDeltaTerm):
        blocks.append(HockeyStickBlock.write(assembly, -1, "min-delta", objective))
    for owner, term in kept:
        name = problem.constraint_names[owner]
        block = _write(
            assembly, owner, name, tightened(term, tighten) if tighten else term, not problem.support.is_finite
        )
        if block is not None:
            blocks.append(block)
    entropy = with_objective and isinstance(objective, EntropyTerm)
    return Formulation(problem, core, assembly.program(entropy), tuple(blocks))


def _possible(core: Core, terms: list[Term]) -> np.ndarray:
    """Where mass is possible at all: not forbidden, and not excluded by an expectation bounded at its extreme.

    ``E f <= min f`` leaves only the points where f is least; a solver would need infinite multipliers to say so.
    """
    alive = np.ones(core.size, dtype=bool)
    for term in terms:
        if isinstance(term, ZeroTerm):
            alive[[k - core.first for k in term.indices if core.first <= k <= core.last]] = False
    if core.closure is not None:
        return alive
    bounded, known = [t for t in terms if isinstance(t, ExpectationTerm)], -1
    while alive.any() and alive.sum() != known:
        known = alive.sum()
        for term in bounded:
            values = floats(term.function, core.first, core.last)
            for side, sign in ((term.at_most, 1.0), (term.at_least, -1.0)):
                least = float((sign * values[alive]).min(initial=INF))
                if side is not None and abs(sign * float(side) - least) <= 1e-12 * (1 + abs(least)):
                    alive &= _attains(term.function, side, core, alive)
    return alive


def _attains(function: LatticeFunction, side: Fraction, core: Core, alive: np.ndarray) -> np.ndarray:
    """Where the function is exactly the bound, if the bound is its extreme over the points alive; else everywhere."""
    values, unit = function.integers(core.first, core.last)
    wanted = side * unit
    here = [v for v, possible in zip(values, alive.tolist(), strict=True) if possible]
    if wanted not in (min(here), max(here)):
        return np.ones(core.size, dtype=bool)
    return np.array([v == wanted for v in values])


def _refuse_what_does_not_fit(problem: Problem, core: Core) -> None:
    """A memory estimate before anything is built."""
    terms = [problem.objective_term, *(t for group in problem.terms for t in group)]
    rows = core.size
    for term in terms:
        if isinstance(term, RatioTerm | HockeyStickTerm | MinDeltaTerm):
            rows += 2 * min(term.shift, core.size) * core.size
        if isinstance(term, WassersteinTerm):
            rows += len(term.cuts) * core.size // 2
    if rows > _MAX_ROWS:
        raise InputError(
            "support",
            f"makes a program of about {rows:.2g} rows over {core.size} points, more than {_MAX_ROWS:.2g}: give "
            "a smaller support, a smaller sensitivity or a coarser lattice",
        )


def _write(assembly: Assembly, owner: int, name: str, term: Term, infinite: bool) -> Block | None:
    match term:
        case ExpectationTerm():
            return ExpectationBlock.write(assembly, owner, name, term)
        case RatioTerm():
            return RatioBlock.write(assembly, owner, name, term)
        case HockeyStickTerm():
            return HockeyStickBlock.write(assembly, owner, name, term, infinite=infinite)
        case OrderTerm():
            return OrderBlock.write(assembly, owner, name, term)
        case MirrorTerm():
            return MirrorBlock.write(assembly, owner, name, term)
    return None  # a zero term is a column bound
