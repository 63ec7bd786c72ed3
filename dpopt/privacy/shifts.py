"""How far a count may move: shifts in lattice steps, which of them decide, and a pmf written out that far."""

from __future__ import annotations

from fractions import Fraction

from dpopt.arithmetic import Number, exact, exact_positive
from dpopt.errors import InputError
from dpopt.pmf import Pmf, extension_work
from dpopt.work import Work, require

__all__ = [
    "deciding_shifts",
    "explicit_weights",
    "explicit_work",
    "is_unimodal",
    "lattice_shift",
    "positive_sensitivity",
]


def lattice_shift(sensitivity: Number, step: Fraction, argument: str = "sensitivity") -> int:
    """The largest shift in lattice steps, ``floor(sensitivity / step)``; an error when no lattice point is reached."""
    value = positive_sensitivity(sensitivity, argument)
    if value < step:
        raise InputError(
            argument, f"must be at least the lattice step {step} (smaller moves do not exist), not {value}"
        )
    return int(value // step)


def positive_sensitivity(given: object, argument: str = "sensitivity") -> Fraction:
    """A sensitivity in data units: exact and positive."""
    if exact(given, argument) == 0:
        raise InputError(
            argument,
            "must be positive, not 0: where nobody moves a count, no noise is needed, and that is dpopt.point(0)",
        )
    return exact_positive(given, argument)


def explicit_weights(pmf: Pmf, margin: int) -> tuple[int, list[int], Fraction]:
    """Integer weights over the core and `margin` points on either side, tail points written out.

    On a side without a tail they are 0. Returns the first index, the weights, and the pmf's total in the same unit.
    """
    require(
        "sensitivity",
        explicit_work(pmf, margin),
        f"takes weights written out to {margin} points beyond the core",
        "give a coarser step or a smaller sensitivity",
    )
    wide = pmf.extended(margin)
    left, right = pmf.start - margin - wide.start, wide.end - (pmf.end + margin)
    weights = list(wide.weights)
    weights = weights[left:] if left >= 0 else [0] * -left + weights
    weights = weights[: len(weights) - right] if right >= 0 else weights + [0] * -right
    return pmf.start - margin, weights, wide.total


def explicit_work(pmf: Pmf, margin: int) -> Work:
    """What `explicit_weights` takes: the tails, or zeros in their place."""
    zeros = Work.on_integers(2 * margin, 0)
    return zeros.plus(extension_work(pmf, margin))


def deciding_shifts(pmf: Pmf, shift: int) -> range:
    """The shifts among 1..`shift`, in both directions, that can have the largest hockey-stick divergence.

    Of a unimodal pmf the last alone: for E >= 1 each (p(k) - E p(k + s))+ grows with |s|. Where k is at the mode or
    right of it, p(k + s) falls as s grows from 0. Where k is left of it, p(k + s) >= p(k) until k + s has passed the
    mode, so that the term is 0, and from there on p(k + s) falls. Negative s likewise. Of a finite pmf all shifts from
    its length on separate it from itself alike.

    Examples
    --------
    >>> deciding_shifts(Pmf(0, (1, 2, 1)), 2), deciding_shifts(Pmf(0, (2, 1, 2)), 9)
    (range(2, 3), range(1, 4))
    """
    last = shift if pmf.tails is not None else min(shift, len(pmf.weights))
    return range(last if last > 1 and is_unimodal(pmf) else 1, last + 1)


def is_unimodal(pmf: Pmf) -> bool:
    """Whether p rises up to a mode and falls from there.

    A tail repeats the steps of its last period and the step onto it: with a tail on the right none of these may rise.
    """
    weights: list[Fraction | int] = [pmf.weight(pmf.start - 1), *pmf.weights, pmf.weight(pmf.end + 1)]
    signs = [(b > a) - (b < a) for a, b in zip(weights, weights[1:], strict=False)]
    period = 0 if pmf.tails is None else pmf.tails.period
    if pmf.tails is not None and pmf.tails.right is not None and max(signs[-period:]) > 0:
        return False
    if pmf.tails is not None and pmf.tails.left is not None and min(signs[:period]) < 0:
        return False
    moves = [-sign for sign in signs if sign]
    return moves == sorted(moves)
