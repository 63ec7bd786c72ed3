"""Entropy over the pmfs with few linear rows: the dual function and a safeguarded Newton method for it.

Minimise ``cost @ x + sum x ln x`` over ``x >= 0`` with ``sum x = mass`` and ``low <= A x <= high``. The minimiser is
``x = mass * exp(theta) / Z`` with ``theta = A^T y - cost``, and y minimises

    f(y) = mass * ln Z(y) - sum over rows of (low_i y_i if y_i >= 0 else high_i y_i),

which is convex with one variable a row and a kink at 0 where the two sides differ. Its gradient is the activity minus
the active side, its Hessian the covariance of the rows under x.

Each row is centred at its active side before anything is summed. Then the gradient is one sum ``sum x_k (a_k - side)``
without a large number to subtract, and how well it cancels, ``|sum| / sum of absolute values``, is a measure of
convergence that does not depend on any scale. At a boundary, where the multipliers run to infinity, it stays at 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

__all__ = ["DualResult", "FewRows", "Stop", "minimise_dual"]

BALANCED = 1e-15
"""Cancellation at which nothing is left to gain."""

ACCEPTED = 1e-11
"""Cancellation that counts as converged once steps stop improving it."""

VANISHED = 1e-16
"""Mass away from a row's side below which an unbalanced row says that the optimum is at a boundary."""

FARKAS = 1e-9
"""Share of its terms by which a combination of the rows has to be negative before it is called a Farkas combination."""

CHUNK = 1 << 16
"""Columns handled at once where a rows-by-columns product is needed; it stays in the cache."""

RIDGE = 1e-14
"""Added to the correlation matrix, so that repeated rows do not stop the method."""


class Stop(Enum):
    """Why the method stopped."""

    CONVERGED = "converged"
    BOUNDARY = "the optimum is at a boundary, where multipliers run to infinity"
    INFEASIBLE = "the multipliers are a Farkas combination: no pmf satisfies the rows"
    STALLED = "no step improves the dual any further"
    LIMIT = "the iteration limit was reached"


@dataclass(frozen=True, eq=False)
class FewRows:
    """The problem without its mass row: dense rows over the columns that may be positive.

    Parameters
    ----------
    matrix : array, shape (m, n)
    low, high : array, shape (m,)
        Sides of the rows for ``x`` of total 1.
    cost : array, shape (n,)
    """

    matrix: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cost: np.ndarray


@dataclass(frozen=True, eq=False)
class DualResult:
    """Where the method ended: ``x`` of total 1, the multipliers, ``ln Z``, and how far from balance."""

    stop: Stop
    x: np.ndarray
    y: np.ndarray
    log_z: float
    imbalance: float
    iterations: int


@dataclass(frozen=True, eq=False)
class _State:
    """Everything about one y; `side` is the active side of each row and `excess` the activity minus that side."""

    y: np.ndarray
    x: np.ndarray
    log_z: float
    value: float
    side: np.ndarray
    excess: np.ndarray
    spread: np.ndarray
    peak: float

    @property
    def imbalance(self) -> np.ndarray:
        """By how much each row fails to cancel, between 0 and 1; 0 for a row that is constantly at its side."""
        share: np.ndarray = np.abs(self.excess) / np.where(self.spread > 0, self.spread, 1.0)
        return share


def minimise_dual(problem: FewRows, start: np.ndarray, iterations: int) -> DualResult:
    """Minimise the dual from `start`; every outcome has finite numbers."""
    state = _evaluate(problem, _signed(problem, start))
    stop, steps, best = Stop.LIMIT, 0, np.inf
    while steps < iterations:
        violated = _violated(problem, state)
        imbalance = float(np.max(state.imbalance, where=violated, initial=0.0))
        if imbalance <= BALANCED or (imbalance <= ACCEPTED and imbalance >= best / 2):
            stop = Stop.CONVERGED
            break
        best = min(best, imbalance)
        if _is_farkas(state):
            stop = Stop.INFEASIBLE
            break
        if _is_boundary(problem, state, violated):
            stop = Stop.BOUNDARY
            break
        following = _advance(problem, state, violated)
        if following is None:
            stop = Stop.CONVERGED if imbalance <= ACCEPTED else Stop.STALLED
            break
        state = following
        steps += 1
    violated = _violated(problem, state)
    imbalance = float(np.max(state.imbalance, where=violated, initial=0.0))
    if stop is Stop.LIMIT and imbalance <= ACCEPTED:
        stop = Stop.CONVERGED
    return DualResult(stop, state.x, state.y, state.log_z, imbalance, steps)


def _signed(problem: FewRows, y: np.ndarray) -> np.ndarray:
    """Multipliers with the sign that their rows allow; a missing side allows none of its sign."""
    y = np.where(np.isfinite(problem.low), y, np.minimum(y, 0.0))
    signed: np.ndarray = np.where(np.isfinite(problem.high), y, np.maximum(y, 0.0))
    return signed


def _evaluate(problem: FewRows, y: np.ndarray) -> _State:
    """The pmf, the dual value and the gradient at `y`, in a few passes over the columns."""
    matrix = problem.matrix
    theta = y @ matrix - problem.cost
    top = float(theta.max())
    x = np.exp(theta - top)
    total = float(x.sum())
    x /= total
    log_z = top + float(np.log(total))
    side = _active_side(problem, y, matrix @ x)
    excess, spread = np.zeros(y.size), np.zeros(y.size)
    for first in range(0, x.size, CHUNK):
        part = slice(first, first + CHUNK)
        centred = matrix[:, part] - side[:, None]
        excess += centred @ x[part]
        spread += np.abs(centred) @ x[part]
    offset = float(y @ side)
    peak = (float((theta + problem.cost).max()) if np.any(problem.cost) else top) - offset
    return _State(y, x, log_z, log_z - offset, side, excess, spread, peak)


def _active_side(problem: FewRows, y: np.ndarray, activity: np.ndarray) -> np.ndarray:
    """The side that each row pulls at: by the sign of y, and at y = 0 the nearer one; 0 for a row without sides."""
    nearer_low = np.abs(activity - problem.low) <= np.abs(problem.high - activity)
    use_low = np.where(y == 0, nearer_low, y > 0)
    side = np.where(use_low, problem.low, problem.high)
    return np.where(np.isfinite(side), side, 0.0)


def _violated(problem: FewRows, state: _State) -> np.ndarray:
    """The rows whose excess has to become 0: those with a multiplier, and those beyond their side."""
    equal = problem.low == problem.high
    beyond = np.where(state.side == problem.low, state.excess < 0, state.excess > 0)
    both = np.isfinite(problem.low) | np.isfinite(problem.high)
    violated: np.ndarray = both & (equal | (state.y != 0) | beyond)
    return violated


def _is_farkas(state: _State) -> bool:
    """Whether ``y @ (a_k - side) < 0`` for all k: no pmf can have ``y @ (A x - side) >= 0``, which its rows say."""
    size = float(np.sum(np.abs(state.y) * state.spread))
    return state.peak < -FARKAS * max(size, 1.0)


def _is_boundary(problem: FewRows, state: _State, violated: np.ndarray) -> bool:
    """Whether some row's side is an extreme value of the row and nearly all mass is there already.

    Then all of its terms have one sign and never cancel, while the multiplier grows by about 1 a step for ever.
    """
    for row in np.flatnonzero(violated & (state.imbalance > 1 - 1e-9)):
        distance = np.abs(problem.matrix[row] - state.side[row])
        nearest = float(np.min(distance, where=distance > 0, initial=np.inf))
        if state.spread[row] <= VANISHED * nearest:
            return True
    return False


def _covariance(problem: FewRows, state: _State) -> np.ndarray:
    """The covariance of the rows under x, from rows centred at their sides."""
    size = state.y.size
    moment = np.zeros((size, size))
    for first in range(0, state.x.size, CHUNK):
        part = slice(first, first + CHUNK)
        centred = problem.matrix[:, part] - state.side[:, None]
        moment += (centred * state.x[part]) @ centred.T
    return moment - np.outer(state.excess, state.excess)


def _advance(problem: FewRows, state: _State, violated: np.ndarray) -> _State | None:
    """One step: a Newton direction on the rows that matter, a line search, and no multiplier beyond 0."""
    direction = _direction(problem, state, violated)
    slope = float(state.excess @ direction)
    if not np.all(np.isfinite(direction)) or slope >= 0:
        return None
    crossing = (state.y * direction < 0) & (problem.low != problem.high)
    ratios = np.full(direction.shape, np.inf)
    ratios[crossing] = -state.y[crossing] / direction[crossing]
    longest = min(1.0, float(ratios.min(initial=np.inf)))
    # Differences of the value drown in rounding before the gradient does; then full steps are Newton's to judge.
    noise = 8 * np.finfo(float).eps * (1.0 + abs(state.log_z) + abs(state.value))
    length = longest
    while length > 1e-12 * longest:
        y = state.y + length * direction
        y[ratios <= length] = 0.0
        following = _evaluate(problem, y)
        if following.value <= state.value + 1e-4 * length * slope + noise:
            return following
        length /= 2
    return None


def _direction(problem: FewRows, state: _State, violated: np.ndarray) -> np.ndarray:
    """Newton's direction; rows at 0 that it would push to the wrong sign are left out, one by one at worst."""
    covariance = _covariance(problem, state)
    entry = np.maximum(np.max(np.abs(problem.matrix), axis=1, initial=0.0), np.abs(state.side))
    scale = np.sqrt(np.maximum(np.diag(covariance), (1e-150 * np.maximum(entry, 1.0)) ** 2))
    correlation = covariance / np.outer(scale, scale)
    held = (problem.low == problem.high) | (state.y != 0)
    moving = violated.copy()
    while True:
        direction = _newton(correlation, scale, state.excess, moving)
        wrong = moving & ~held & (direction * state.excess >= 0)
        if not np.any(wrong):
            break
        moving &= ~wrong
    released = violated & ~held
    settled = float(np.max(state.imbalance, where=held & violated, initial=0.0)) <= ACCEPTED
    if settled and np.any(released) and not np.any(moving & released):
        moving = held.copy()
        moving[int(np.argmax(np.where(released, state.imbalance, -1.0)))] = True
        direction = _newton(correlation, scale, state.excess, moving)
    return direction


def _newton(correlation: np.ndarray, scale: np.ndarray, excess: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """Solve the Newton system on the `moving` rows, in units in which the Hessian has a unit diagonal."""
    index = np.flatnonzero(moving)
    direction = np.zeros(moving.size)
    if index.size:
        matrix = correlation[np.ix_(index, index)] + RIDGE * np.eye(index.size)
        right = -excess[index] / scale[index]
        try:
            direction[index] = np.linalg.solve(matrix, right) / scale[index]
        except np.linalg.LinAlgError:
            direction[index] = np.linalg.lstsq(matrix, right, rcond=None)[0] / scale[index]
    return direction
