"""Entropy over the pmfs with few linear rows: the dual function and a safeguarded Newton method for it.

Minimise ``cost @ x + sum x ln x`` over ``x >= 0`` with ``sum x = mass`` and ``low <= A x <= high``. The minimiser is
``x = mass * exp(theta) / Z`` with ``theta = A^T y - cost``, and y minimises

    f(y) = mass * ln Z(y) - sum over rows of (low_i y_i if y_i >= 0 else high_i y_i),

which is convex with one variable a row and a kink at 0 where the two sides differ. Its gradient is the activity minus
the active side, its Hessian the covariance of the rows under x.

Each row is centred at its active side before anything is summed. Then the gradient is one sum ``sum x_k (a_k - side)``
without a large number to subtract, and how well it cancels, ``|sum| / sum of absolute values``, is a measure of
convergence that does not depend on any scale. At a boundary, where the multipliers run to infinity, it stays at 1.

What millions of columns cost is memory traffic, so that it is counted. One evaluation reads each row once and writes x
once; everything between happens on parts that stay in the cache. The multipliers come from a thinned problem, where an
evaluation is 63 times cheaper; for smooth rows they need no step on all columns, and one evaluation confirms them. With
n columns and m rows besides the mass row, in passes of 8 n bytes: 1 each to see that entropy, lower, upper, cost and
the mass row are what they have to be; m + 1 for the evaluation; 2 to normalise x. With two rows that is 10, beside 2 of
``exp`` itself. The evaluation's arithmetic in the cache, about a dozen operations a column, takes as long again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpopt.backends._newton_rows import DualResult, FewRows, Stop
from dpopt.patience import checkpoint

__all__ = ["minimise_dual", "minimise_thinned"]

BALANCED = 1e-15
"""Cancellation at which nothing is left to gain."""

ACCEPTED = 1e-11
"""Cancellation that counts as converged once steps stop improving it."""

SETTLED = 1e-14
"""Cancellation at which given multipliers are left alone, and beyond which sums of many terms may not get."""

VANISHED = 1e-16
"""Mass away from a row's side below which an unbalanced row says that the optimum is at a boundary."""

FARKAS = 1e-9
"""Share of its terms by which a combination of the rows has to be negative before it is called a Farkas combination."""

SLIM = 4
"""Rows up to which plain loops are faster than the matrix products of BLAS."""

DIRECT = 1 << 14
"""Columns up to which the problem is not thinned first."""

THINNING = 63
"""Columns that one column of the thinned problem stands for; odd, so that it is the middle one."""

WARM_STEPS = 20
"""Steps from the thinned problem's multipliers after which the method starts anew without them."""

RIDGE = 1e-14
"""Added to the correlation matrix, so that repeated rows do not stop the method."""


@dataclass(frozen=True, eq=False)
class _State:
    """Everything about one y; `side` is the active side of each row and `excess` the activity minus that side.

    The pmf is `raw` times one of the `factors` in each part of the columns: only the last state needs the product.
    """

    problem: FewRows
    y: np.ndarray
    raw: np.ndarray
    factors: np.ndarray
    log_z: float
    value: float
    side: np.ndarray
    excess: np.ndarray
    least_spread: np.ndarray
    peak: float

    @cached_property
    def spread(self) -> np.ndarray:
        """The sums of the absolute values of each row's terms, in a pass of their own: few states need them."""
        spread, part_of = np.zeros(self.y.size), np.empty(self.y.size)
        for (part, rows, free), factor in zip(self.problem.blocks(), self.factors, strict=True):
            np.subtract(rows, self.side[:, None], out=free)
            np.abs(free, out=free)
            _sums(free, self.raw[part], part_of)
            spread += factor * part_of
        return spread

    @cached_property
    def imbalance(self) -> np.ndarray:
        """By how much each row fails to cancel, between 0 and 1; 0 for a row that is constantly at its side."""
        return self._share(self.spread)

    @property
    def most_imbalance(self) -> np.ndarray:
        """No less than the imbalance, and free: a sum over a part is no larger than its terms' absolute values."""
        return self._share(self.least_spread)

    def _share(self, spread: np.ndarray) -> np.ndarray:
        share: np.ndarray = np.abs(self.excess) / np.where(spread > 0, spread, 1.0)
        return share


def minimise_thinned(problem: FewRows, iterations: int) -> DualResult:
    """Minimise the dual from the multipliers of a thinned problem where there are many columns, else from 0.

    Rows that are smooth along the columns have nearly the same multipliers in both. Other rows may not, and then the
    start is poor or there is none; what the columns say decides alone, and without success the start is 0 after all.
    """
    start = np.zeros(problem.low.size)
    if problem.cost.size <= DIRECT:
        return minimise_dual(problem, start, iterations)
    guess = minimise_thinned(_thinned(problem), iterations)
    if guess.stop is Stop.CONVERGED:
        result = minimise_dual(problem, guess.y, min(iterations, WARM_STEPS))
        if result.stop in (Stop.CONVERGED, Stop.INFEASIBLE):
            return replace(result, iterations=guess.iterations + result.iterations)
    return minimise_dual(problem, start, iterations)


def _thinned(problem: FewRows) -> FewRows:
    """The middle column of every `THINNING` ones, with the weight of all of them: ``w exp(-c) = exp(ln w - c)``.

    For smooth sums that is the midpoint rule, whose error comes from the slopes at the two ends; the weights of the
    three columns next to each end take it away.
    """
    first = np.arange(0, problem.cost.size, THINNING)
    count = np.minimum(problem.cost.size - first, THINNING)
    middle, weight = first + count // 2, count.astype(float)
    whole = problem.cost.size // THINNING
    if whole >= 6:
        slope = 1 + (1 - THINNING**-2) * np.array([1 / 12, -1 / 8, 1 / 24])
        weight[:3] *= slope
        weight[whole - 3 : whole] *= slope[::-1]
    return FewRows(problem.take(middle), problem.low, problem.high, problem.cost[middle] - np.log(weight))


def minimise_dual(problem: FewRows, start: np.ndarray, iterations: int) -> DualResult:
    """Minimise the dual from `start`; every outcome has finite numbers."""
    state = _evaluate(problem, _signed(problem, start))
    stop, steps, best = Stop.LIMIT, 0, np.inf
    while steps < iterations:
        checkpoint()
        violated = _violated(problem, state)
        enough = SETTLED if steps == 0 or problem.cost.size > DIRECT else BALANCED
        imbalance = _imbalance(state, violated, enough)
        if imbalance <= enough or (imbalance <= ACCEPTED and imbalance >= best / 2):
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
    return _result(problem, state, stop, steps)


def _result(problem: FewRows, state: _State, stop: Stop, steps: int) -> DualResult:
    """What the last state says; its pmf is normalised in place."""
    imbalance = _imbalance(state, _violated(problem, state), SETTLED)
    if stop is Stop.LIMIT and imbalance <= ACCEPTED:
        stop = Stop.CONVERGED
    for part, factor in zip(problem.parts, state.factors, strict=True):
        state.raw[part] *= factor
    # ln x = A^T y - cost - ln Z, so that the logarithms need not be taken one by one.
    value = float(state.y @ state.excess) - state.value
    return DualResult(stop, state.raw, state.y, state.log_z, imbalance, steps, value)


def _imbalance(state: _State, violated: np.ndarray, enough: float) -> float:
    """The largest imbalance of the rows that count; a bound on it when that is enough already."""
    bound = float(np.max(state.most_imbalance, where=violated, initial=0.0))
    return bound if bound <= enough else float(np.max(state.imbalance, where=violated, initial=0.0))


def _signed(problem: FewRows, y: np.ndarray) -> np.ndarray:
    """Multipliers with the sign that their rows allow; a missing side allows none of its sign."""
    y = np.where(np.isfinite(problem.low), y, np.minimum(y, 0.0))
    signed: np.ndarray = np.where(np.isfinite(problem.high), y, np.maximum(y, 0.0))
    return signed


def _evaluate(problem: FewRows, y: np.ndarray) -> _State:
    """The pmf, the dual value and the gradient at `y`, in one pass over the columns.

    Only a row with two sides and the multiplier 0 has to know its activity to know its side; the pass is repeated
    where the guess was wrong.
    """
    side = _active_side(problem, y, np.where(np.isfinite(problem.low), problem.low, problem.high))
    state = _pass(problem, y, side)
    nearer = _active_side(problem, y, side + state.excess)
    return state if np.array_equal(side, nearer) else _pass(problem, y, nearer)


def _pass(problem: FewRows, y: np.ndarray, side: np.ndarray) -> _State:
    """All sums at `y` about given sides; each part of the columns is scaled by its own largest exponential."""
    parts = problem.parts
    raw, spare = np.empty(problem.cost.size), np.empty(parts[0].stop)
    tops, totals, peaks = np.empty((3, len(parts)))
    excess = np.empty((len(parts), y.size))
    for i, (part, rows, free) in enumerate(problem.blocks()):
        x = raw[part]
        _combine(y, rows, x, spare[: x.size])
        if problem.has_cost:
            peaks[i] = x.max()
            x -= problem.cost[part]
        tops[i] = x.max()
        x -= tops[i]
        np.exp(x, out=x)
        totals[i] = x.sum()
        np.subtract(rows, side[:, None], out=free)
        _sums(free, x, excess[i])
    top = float(tops.max())
    share = np.exp(tops - top)
    total = float(share @ totals)
    log_z, offset, share = top + float(np.log(total)), float(y @ side), share / total
    peak = (float(peaks.max()) if problem.has_cost else top) - offset
    least_spread = share @ np.abs(excess)
    return _State(problem, y, raw, share, log_z, log_z - offset, side, share @ excess, least_spread, peak)


def _combine(y: np.ndarray, rows: np.ndarray, out: np.ndarray, spare: np.ndarray) -> None:
    """Write ``y @ rows`` to `out`."""
    if not 0 < y.size <= SLIM:
        np.matmul(y, rows, out=out)
        return
    np.multiply(rows[0], y[0], out=out)
    for row, factor in zip(rows[1:], y[1:], strict=True):
        np.multiply(row, factor, out=spare)
        out += spare


def _sums(rows: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Write ``rows @ x`` to `out`; few rows without BLAS, whose threads cost more than they save on short parts."""
    if out.size > SLIM:
        np.matmul(rows, x, out=out)
    else:
        np.einsum("ij,j->i", rows, x, out=out)


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
        nearest = np.inf
        for _, rows, _ in problem.blocks():
            distance = np.abs(rows[row] - state.side[row])
            nearest = min(nearest, float(np.min(distance, where=distance > 0, initial=np.inf)))
        if state.spread[row] <= VANISHED * nearest:
            return True
    return False


def _covariance(problem: FewRows, state: _State) -> np.ndarray:
    """The covariance of the rows under x, from rows centred at their sides."""
    size = state.y.size
    moment, column = np.zeros((size, size)), np.empty(size)
    for (part, rows, centred), factor in zip(problem.blocks(), state.factors, strict=True):
        x = state.raw[part]
        np.subtract(rows, state.side[:, None], out=centred)
        if size > SLIM:
            moment += factor * ((centred * x) @ centred.T)
            continue
        for i, row in enumerate(centred):
            _sums(centred, row * x, column)
            moment[i] += factor * column
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
    entry = np.maximum(problem.largest, np.abs(state.side))
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
