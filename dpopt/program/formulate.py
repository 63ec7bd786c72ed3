"""Problem -> program: the columns of a core and one block of rows for every exact term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpopt.arithmetic import exp_enclosure
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.problem.families.base import Tail, Term
from dpopt.problem.problem import Problem
from dpopt.program.assembly import INF, Assembly
from dpopt.program.core import Closure, Core, floats
from dpopt.program.program import Program
from dpopt.program.rows import Block, MassBlock, Place, write
from dpopt.work import Work, require

_FARTHEST = 10**12  # lattice indices are 64-bit integers, and floats to the last unit, in a program
_FAR_OUT = 10**6  # where a polynomial has the sign that it keeps
_WIDEST_HELD = 2000  # lattice points on a side
_FARTHEST_TAIL = 2000  # an exact tail that reaches back to 0 carries e^epsilon to this power
_ROW_BYTES = 250  # of a row of two or three entries, in the program and in a solver

__all__ = ["Formulation", "chain_owner", "core_for", "expected_centre", "formulate", "grown"]


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
    centre, tail = expected_centre(problem), chain_tail(problem)
    reach = max([_held_reach(problem), *(term.reach for term in problem.all_terms)])
    if tail is None:
        half = max(reach, 4) + abs(centre)
        return Core(centre - half, centre + half)
    if abs(centre) > _FARTHEST_TAIL * tail.period:
        raise InputError(
            "constraints",
            f"put the mean at lattice index {centre:.3g}, more than {_FARTHEST_TAIL} sensitivities from 0, "
            "where the exact sums over the tails would not fit: shift the question so that the mean is near 0",
        )
    half = max(2 * tail.period, reach, 2)
    ratio = 1 / float(exp_enclosure(tail.epsilon, 64).upper)
    return Core(centre - half, centre + half, Closure(tail.period, ratio))


def _held_reach(problem: Problem) -> int:
    """How far out mass may pay where the cost falls and a bounded moment holds it: to four times where the bound lies.

    0 where the cost falls nowhere.
    """
    cost = problem.objective_term.cost
    if min(cost(-_FAR_OUT), cost(_FAR_OUT)) >= 0:
        return 0
    held, steps = [], range(1, _WIDEST_HELD)
    for term in (bound for part in problem.all_terms for bound in part.expectations):
        for bound, sign in ((term.at_most, 1), (term.at_least, -1)):
            if bound is not None and min(sign * term.of(-_FAR_OUT), sign * term.of(_FAR_OUT)) > 0:
                ends = ((sign * term.of(k), sign * term.of(-k)) for k in steps)
                held.append(next((k for k, end in zip(steps, ends, strict=True) if min(end) >= 16 * abs(bound)), 0))
    return min(filter(None, held), default=0)


def expected_centre(problem: Problem) -> int:
    """Where the mass is expected: the nearest that the bounds on the mean allow to where the cost is least."""
    bounds = [term.mean_bounds for term in problem.all_terms]
    lows, highs = (
        ([side for side in sides if side is not None] for sides in zip(*bounds, strict=True)) if bounds else ([], [])
    )
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
    """The constraint whose chains close the tails on all integers: the one with the least epsilon / period.

    No tail may decay faster than the least of these rates.
    """
    if problem.support.is_finite:
        return None
    found = [(term.tail.rate, i) for i, group in enumerate(problem.terms) for term in group if term.tail is not None]
    return min(found)[1] if found else None


def chain_tail(problem: Problem) -> Tail | None:
    """The tail that the owner of the chains allows."""
    owner = chain_owner(problem)
    return None if owner is None else next(term.tail for term in problem.terms[owner] if term.tail is not None)


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
    assembly, infinite = Assembly(core), not problem.support.is_finite
    kept = [(i, term) for i, group in enumerate(problem.terms) if keep is None or i in keep for term in group]
    objective = problem.objective_term
    cost = core.coefficients(objective.cost) if with_objective else np.zeros(core.size)
    assembly.add_columns(cost, upper=np.where(_possible(core, [term for _, term in kept]), INF, 0.0))
    blocks: list[Block | None] = [MassBlock.write(assembly, core.coefficients(LatticeFunction.constant(1)))]
    if with_objective:
        blocks.append(write(assembly, objective, Place(-1, problem.objective.type, infinite)))
    parts: Counter[int] = Counter()
    for owner, term in kept:
        place = Place(owner, problem.constraint_names[owner], infinite, parts[owner])
        blocks.append(write(assembly, term.tightened(tighten) if tighten else term, place))
        parts[owner] += len(term.expectations)
    program = assembly.program(with_objective and objective.has_entropy)
    return Formulation(problem, core, program, tuple(block for block in blocks if block is not None))


def _possible(core: Core, terms: list[Term]) -> np.ndarray:
    """Where mass is possible at all: not forbidden, and not excluded by an expectation bounded at its extreme.

    ``E f <= min f`` leaves only the points where f is least; a solver would need infinite multipliers to say so.
    """
    alive = np.ones(core.size, dtype=bool)
    for term in terms:
        alive[[k - core.first for k in term.zeros if core.first <= k <= core.last]] = False
    if core.closure is not None:
        return alive
    bounded, known = [bound for term in terms for bound in term.expectations], -1
    while alive.any() and alive.sum() != known:
        known = alive.sum()
        for term in bounded:
            values = floats(term.of, core.first, core.last)
            for side, sign in ((term.at_most, 1.0), (term.at_least, -1.0)):
                least = float((sign * values[alive]).min(initial=INF))
                if side is not None and abs(sign * float(side) - least) <= 1e-12 * (1 + abs(least)):
                    alive &= _attains(term.of, side, core, alive)
    return alive


def _attains(function: LatticeFunction, side: Fraction, core: Core, alive: np.ndarray) -> np.ndarray:
    """Where the function is exactly the bound, if the bound is its extreme over the points alive; else everywhere."""
    values, unit = function.integers(core.first, core.last)
    wanted = side * unit
    here = [v for v, possible in zip(values, alive.tolist(), strict=True) if possible]
    if wanted not in (min(here), max(here)):
        return np.ones(core.size, dtype=bool)
    return np.array([v == wanted for v in values])


def program_rows(problem: Problem, core: Core) -> int:
    """About how many rows and columns the program of a problem has over a core."""
    return core.size + sum(term.row_count(core.size) for term in (problem.objective_term, *problem.all_terms))


def program_work(problem: Problem, core: Core) -> Work:
    """What the program of a problem takes over a core, in the arrays and in a solver."""
    return Work(bytes=_ROW_BYTES * program_rows(problem, core))


def _refuse_what_does_not_fit(problem: Problem, core: Core) -> None:
    """An estimate before anything is built."""
    require(
        "support",
        program_work(problem, core),
        f"makes a program of about {program_rows(problem, core):.2g} rows over {core.size} points",
        "give a smaller support, a smaller sensitivity or a coarser lattice",
    )
