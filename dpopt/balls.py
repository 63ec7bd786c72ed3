"""The one door to ball arithmetic: a stated precision, for one thread at a time.

python-flint keeps the working precision, and the number of terms of its power series, in one context for the whole
process. Two threads that set it in turn compute at each other's precision; where a series is cut short in this way,
what is cut counts as exactly 0, and an enclosure misses the truth. So nothing in dpopt but this module touches the
context, and every ball is computed by a function that `at_precision` calls, under a lock.

It takes a function and is no ``with`` block: a lock cannot be held across a ``yield``, nor be left locked by Ctrl-C.
What is computed inside is balls and what decides about them. It may be called again, and it must not wait for another
thread (up to Python 3.11 a `cached_property` is a lock too: one that uses this door is not to be asked for inside).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from flint import ctx

from dpopt.patience import checkpoint

__all__ = ["at_precision", "decided", "working_precision"]

Found = TypeVar("Found")

_ATTEMPTS = 30  # at a computation that a stranger disturbs every time

_door = threading.RLock()
_bits = 0  # that whoever holds the door computes with; 0 when nobody does

if hasattr(os, "register_at_fork"):  # a child begins with a door that nobody holds, and with the context as it was
    os.register_at_fork(before=_door.acquire, after_in_parent=_door.release, after_in_child=_door.release)


def at_precision(bits: int, compute: Callable[[], Found], *, terms: int | None = None) -> Found:
    """What `compute` finds with balls of `bits` bits and power series of `terms` terms; both are put back afterwards.

    Calls may nest: the inner ones have their own precision, and without `terms` the outer one's. Other threads of
    dpopt wait meanwhile, and so does a fork.

    A program that uses python-flint in a thread of its own is not held back, and two things can happen. Its changes of
    the context are noticed at the end of a computation here: then `compute` is called again, and what the program set
    stays set. What it changes and puts back in between goes unnoticed: those operations had another precision, which
    makes their balls wider or narrower, never wrong, and their series other lengths. So who computes with series looks
    at the length that a series itself states. The other way round, the program may see the precision of a computation
    here; run such code through this function as well, and neither happens.

    Parameters
    ----------
    bits : int
        At least 2.
    compute : callable
        Without arguments, and without effects: it may be called more than once.
    terms : int, optional
        For arithmetic of power series, at least 1.

    Raises
    ------
    RuntimeError
        Another thread changes python-flint's precision at every attempt.

    Examples
    --------
    >>> from flint import arb
    >>> at_precision(200, lambda: arb(2).sqrt().rel_accuracy_bits()) >= 198
    True
    """
    global _bits  # noqa: PLW0603  # the context is the process's
    left = _ATTEMPTS
    with _door:
        while left:
            left -= 1
            bits_before, terms_before, bits_outside = ctx.prec, ctx.cap, _bits
            terms_here = terms or terms_before
            try:
                ctx.prec, ctx.cap, _bits = bits, terms_here, bits
                found = compute()
            finally:  # nothing is called here, so that Ctrl-C finds no place between
                _bits = bits_outside
                own_bits, own_terms = ctx.prec == bits, ctx.cap == terms_here
                if own_bits:
                    ctx.prec = bits_before
                if own_terms:
                    ctx.cap = terms_before
            if own_bits and (own_terms or not left):
                return found
    raise RuntimeError(
        "another thread keeps changing python-flint's precision (flint.ctx), which is one for the whole process; "
        "run its computations within dpopt.balls.at_precision"
    )


def working_precision() -> int:
    """The bits of the innermost `at_precision` that this thread is in.

    Raises
    ------
    RuntimeError
        It is in none: outside, no precision may be relied on.

    Examples
    --------
    >>> at_precision(100, lambda: (at_precision(64, working_precision), working_precision()))
    (64, 100)
    """
    with _door:  # so that these are ours, or nobody's
        bits = _bits
    if not bits:
        raise RuntimeError("balls are computed within dpopt.balls.at_precision only")
    return bits


def decided(compute: Callable[[], Found | None], bits: int, *, most: int, undecided: str) -> Found:
    """What `compute` finds at the first precision that decides it: `bits`, twice that, and so on up to `most`.

    Parameters
    ----------
    compute : callable
        As for `at_precision`; None where its balls are too wide.
    undecided : str
        What to say when no precision decides.

    Raises
    ------
    ArithmeticError
        With that message.

    Examples
    --------
    >>> from flint import arb
    >>> decided(lambda: arb.pi().floor().unique_fmpz(), 4, most=64, undecided="pi is a mystery")
    3
    """
    while True:
        checkpoint()
        found = at_precision(bits, compute)
        if found is not None:
            return found
        if bits >= most:
            raise ArithmeticError(undecided)
        bits *= 2
