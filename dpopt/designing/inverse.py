"""The inverse questions of a targeted design: the best epsilon for D, V, delta, and the least V for D, epsilon, delta.

Both are proved, and returned as enclosures.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from dpopt.arithmetic import Enclosure, Number, as_enclosure, ball, exact, exact_integer
from dpopt.backends.registry import require_backend
from dpopt.balls import at_precision, decided, working_precision
from dpopt.checker.target import design_problem
from dpopt.designing.side_by_side import member_variance, read_question, working_bits
from dpopt.designing.targeting import outermost_rate, solve
from dpopt.errors import InputError
from dpopt.family.members import IdealMember, analytic_rate, delta_exceeds, reaching_rate, require_half_width
from dpopt.problem.problem import Problem
from dpopt.problem.target import Family, Target, Then
from dpopt.record import Record
from dpopt.solution import Solution

__all__ = ["LeastVariance", "best_epsilon", "least_variance", "variances_between"]

_MOST_PRECISION = 1 << 16


def best_epsilon(*, D: int, V: Number, delta: Number, sensitivity: Number = 1) -> Enclosure:  # noqa: N803
    """The least epsilon at which the member with support [-D, D] and variance V is (epsilon, delta)-DP: an enclosure.

    In closed form: delta(epsilon) <= d says T(t) - e^epsilon T(t + m) <= d N for every tail event, so the least
    e^epsilon is the largest (T(t) - d N) / T(t + m), or 1 if that is more.

    Parameters
    ----------
    V : number
        At most V, that is: from D (D + 1) / 3 on the noise is uniform.

    Raises
    ------
    InputError
        No epsilon reaches `delta`: it is below the mass of the m outermost points, the plateau of the paper's Fig. 1.

    Examples
    --------
    >>> print(best_epsilon(D=11, V=4, delta="0.00724877797992120589"))
    1
    >>> best_epsilon(D=11, V=4, delta="1e-8")
    Traceback (most recent call last):
    ...
    dpopt.errors.InputError: delta: must be at least 5.3849e-08: this noise keeps that much at every epsilon
    """
    half_width = exact_integer(D, "D", at_least=0)
    require_half_width(half_width, 16)
    variance = exact(V, "V")
    if variance <= 0 < half_width:
        raise InputError("V", f"must be above 0, not {variance}")
    read = read_question(0, sensitivity, delta)
    if 3 * variance >= half_width * (half_width + 1):  # uniform noise has one delta at every epsilon
        floor = Fraction(min(read.shift, 2 * half_width + 1), 2 * half_width + 1)
        if floor > read.delta:
            raise _plateau(float(floor))
        return Enclosure(Fraction(0), Fraction(0))

    def least_loss() -> Enclosure | None:
        found = _least_growth(IdealMember(half_width, _rate_ball(half_width, variance)), read.shift, read.delta)
        return None if found is None else as_enclosure(found.max(arb(1)).log())

    undecided = "delta could not be separated from the mass at the ends"
    return decided(least_loss, working_bits(half_width), most=_MOST_PRECISION, undecided=undecided)


def _plateau(floor: float) -> InputError:
    return InputError("delta", f"must be at least {floor:.5g}: this noise keeps that much at every epsilon")


def _least_growth(member: IdealMember, shift: int, delta: Fraction) -> arb | None:
    """The least e^epsilon; None where the balls are too wide to tell whether there is one."""
    end, allowed = member.half_width, ball(delta) * member.total
    outermost = member.tail(max(end - shift + 1, -end))
    if outermost > allowed:
        raise _plateau(float(outermost / member.total))
    if not outermost <= allowed:
        return None
    least_growth = arb(0)
    for t in range(max(-(shift // 2), -end), end - shift + 1):
        least_growth = least_growth.max((member.tail(t) - allowed) / member.tail(t + shift))
    return least_growth


def _rate_ball(half_width: int, variance: Fraction) -> arb:
    """A ball around the gamma with this variance, by bisection, Newton's steps, and a proof at its two ends."""
    wanted, precision = ball(variance), working_precision()
    rate = at_precision(64, lambda: _rough_rate(half_width, wanted))
    for _ in range(2 + precision.bit_length()):  # the number of right digits doubles with every step
        member = IdealMember(half_width, rate)
        now = member.variance()
        fourth = 2 * sum((mass * z**4 for z, mass in enumerate(member.masses)), arb(0)) / member.total
        rate = (rate + (now - wanted) / (fourth - now * now)).mid()  # dV/dgamma = V^2 - E Z^4
    radius = rate * arb(2) ** (24 - precision + 4 * half_width.bit_length())
    ends = ((rate - radius).mid(), (rate + radius).mid())
    if not (IdealMember(half_width, ends[0]).variance() > wanted > IdealMember(half_width, ends[1]).variance()):
        raise ArithmeticError("the rate that has this variance could not be enclosed")
    return ends[0].union(ends[1])


def _rough_rate(half_width: int, wanted: arb) -> arb:
    """A rate to start from, by bisection."""
    low, high = arb(0), arb(1)
    while IdealMember(half_width, high).variance() > wanted:
        high *= 2
    for _ in range(24):
        middle = ((low + high) / 2).mid()
        low, high = (middle, high) if IdealMember(half_width, middle).variance() > wanted else (low, middle)
    return high.mid()


@dataclass(frozen=True, repr=False)
class LeastVariance(Record):
    """The least variance that reaches (epsilon, delta) on [-D, D].

    Parameters
    ----------
    V : Enclosure
        The least variance lies within; for family `any`, its upper end is reached by `solution.pmf`.
    gamma : Fraction or None
        A rate that reaches it, next to the least.
    solution : Solution or None
        For family `any`, the proved answer.
    """

    D: int
    family: Family
    V: Enclosure
    gamma: Fraction | None = None
    solution: Solution | None = None


def least_variance(
    *,
    D: int,  # noqa: N803
    epsilon: Number,
    delta: Number,
    sensitivity: Number = 1,
    family: Family | str = Family.TABLEBUILDER,
    backend: Any = "auto",
) -> LeastVariance:
    """The least variance on [-D, D] that reaches (epsilon, delta), within a family, proved.

    V falls as gamma grows, so in the family it belongs to the largest gamma that works.

    Raises
    ------
    InputError
        No member on [-D, D] reaches (epsilon, delta); for family `any`, no pmf (as the solver and its proof say).

    Examples
    --------
    >>> print(least_variance(D=17, epsilon=1, delta="1e-5").V)
    14.481169
    >>> print(least_variance(D=11, epsilon=1, delta="1e-5", family="any").V)
    1.83961682042
    """
    half_width = exact_integer(D, "D", at_least=0)
    require_half_width(half_width, 16)
    read = Target(epsilon, delta, family, sensitivity)  # type: ignore[arg-type]  # read by the constructor
    require_backend(backend)
    if read.family is Family.ANY:
        return _least_of_all(read, half_width, backend)
    if read.family is Family.ANALYTIC:
        inner = analytic_rate(half_width, read.epsilon, read.shift)
        if inner is not None and delta_exceeds(half_width, inner, read.epsilon, read.shift, read.delta):
            inner = None
        outer = inner
    else:
        inner = reaching_rate(half_width, read.epsilon, read.shift, read.delta)
        if inner is not None:
            inner, outer = outermost_rate(half_width, read.epsilon, read.shift, read.delta, inner, upward=True)
    if inner is None or outer is None:
        raise InputError("D", f"= {half_width} is too small: no member of '{read.family}' reaches delta = {read.delta}")
    return LeastVariance(half_width, read.family, variances_between(half_width, outer, inner), inner)


def variances_between(half_width: int, steep: Fraction, flat: Fraction) -> Enclosure:
    """What lies between the variances of two rates, the larger rate first."""
    return Enclosure(member_variance(half_width, steep).lower, member_variance(half_width, flat).upper)


def _least_of_all(read: Target, half_width: int, backend: Any) -> LeastVariance:
    wanted = Target(read.epsilon, read.delta, Family.ANY, read.sensitivity, Then.MIN_VARIANCE)
    solution = solve(Problem.from_dict(design_problem(wanted, half_width)), backend)
    if solution.proved_pmf is None:
        raise InputError("D", f"= {half_width} has no proved answer ({solution.verified.value}): {solution.message}")
    bound = Fraction(0) if solution.bound is None else max(solution.bound, Fraction(0))
    return LeastVariance(half_width, Family.ANY, Enclosure(bound, solution.value.upper), None, solution)
