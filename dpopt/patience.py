"""How long a call may still take, who wants to stop it, and word of how far it is.

One `Patience` is in force for each call that has a time limit, and everything beneath it shares it without being
handed it: it is a context variable, so that each thread has its own and a worker thread gets a copy of its caller's.
Loops that can last call `checkpoint`, which raises `Stopped` when the time is up; the call that began the patience
turns it into the best that is proved by then. `Stopped` is no error, and derives from `BaseException` for the same
reason as `KeyboardInterrupt`: code that takes every exception for a failure of its own must not take this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Any, TypeVar

from dpopt.errors import InputError

__all__ = [
    "Patience",
    "Phase",
    "Progress",
    "Stopped",
    "checkpoint",
    "in_force",
    "limited",
    "patiently",
    "read_time_limit",
    "running",
    "tell_interrupted",
]

_TICK = 0.1  # seconds between two words of progress within one phase
_OURS = "dpopt:"

T = TypeVar("T")


class Phase(StrEnum):
    """What a call is doing; the same names as in `Solution.timings`."""

    FORMULATE = "formulate"
    REDUCE = "reduce"
    SOLVE = "solve"
    REPAIR = "repair"
    BOUND = "bound"
    SEARCH = "search"


@dataclass(frozen=True)
class Progress:
    """How far a call is: what a `progress` callback gets at every change of phase and about ten times a second.

    Parameters
    ----------
    phase : Phase
        The phases of `Solution.timings`; a conflict among the constraints is looked for in phase ``bound``.
    seconds : float
        Wall time since the call began.
    doing : str
        The same for people, such as ``"solving with highs (7154 rows)"``.
    proved : str
        What is proved so far, such as ``"feasible, value at most 4.5733, bound 4.5730"``; empty when nothing is.
    value, bound : float or None
        The proved value and bound so far, to the nearest float; None where there is none.
    """

    phase: Phase
    seconds: float
    doing: str
    proved: str = ""
    value: float | None = None
    bound: float | None = None

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s: {self.doing}" + (f"; proved so far: {self.proved}" if self.proved else "")


class Stopped(BaseException):
    """The work is not wanted any more: its time is up, or whoever waits for it has left."""


class Patience:
    """What is left of one call's time, whether it is still wanted, and who hears how far it is."""

    def __init__(
        self,
        limit: float = math.inf,
        progress: Callable[[Progress], None] | None = None,
        outer: Patience | None = None,
        *,
        silent: bool = False,
    ) -> None:
        self.started = perf_counter()
        self.outer = outer
        self.limit, self.deadline = limit, self.started + limit
        if outer is not None and outer.deadline < self.deadline:
            self.limit, self.deadline = outer.limit, outer.deadline
        self.cancelled = False
        self.progress = progress
        self.is_heard: bool = progress is not None or (outer is not None and outer.is_heard and not silent)
        # what is kept open for the whole of the outermost call
        self.closing: ExitStack = ExitStack() if outer is None else outer.closing
        self.kept: dict[object, Any] = {} if outer is None else outer.kept
        self._last: Progress = Progress(Phase.FORMULATE, 0.0, "beginning") if outer is None else outer._last
        self._told = -math.inf

    @property
    def remaining(self) -> float:
        """Seconds left, not below 0; infinite without a limit."""
        return max(self.deadline - perf_counter(), 0.0)

    @property
    def seconds(self) -> float:
        """Seconds since the call began."""
        return perf_counter() - self.started

    @property
    def is_over(self) -> bool:
        """Whether the time is up or nobody waits any more."""
        return self.cancelled or perf_counter() >= self.deadline

    @property
    def reason(self) -> str:
        """Why it is over, as the subject of a sentence."""
        return "an interrupt" if self.cancelled else f"the time limit of {self.limit:g} s"

    @property
    def doing(self) -> str:
        """What was told last."""
        return self._last.doing

    def for_worker(self) -> Patience:
        """The same time for a thread of its own, which can be cancelled without the caller and tells nobody."""
        return Patience(outer=self, silent=True)

    def cancel(self) -> None:
        """Stop the work at its next checkpoint."""
        self.cancelled = True

    def tell(self, phase: Phase, doing: str) -> None:
        """A new phase has begun."""
        self._last = Progress(phase, self.seconds, doing, self._last.proved, self._last.value, self._last.bound)
        self._send()

    def tell_proved(self, proved: str, value: float | None, bound: float | None) -> None:
        """More is proved than before."""
        self._last = Progress(self._last.phase, self.seconds, self._last.doing, proved, value, bound)
        self._send()

    def tick(self) -> None:
        """Say again how far it is, if the last word is old."""
        if perf_counter() - self._told >= _TICK:
            last = self._last
            self._last = Progress(last.phase, self.seconds, last.doing, last.proved, last.value, last.bound)
            self._send()

    def _send(self) -> None:
        self._told = perf_counter()
        if self.progress is not None:
            self.progress(self._last)
        elif self.is_heard and self.outer is not None:  # a part of a longer call, whose own proofs count
            self.outer.tell(self._last.phase, self._last.doing)


_NO_END = Patience()
_in_force: ContextVar[Patience] = ContextVar("dpopt_patience", default=_NO_END)


def in_force() -> Patience:
    """The patience of the call that this code runs for; one without an end outside every call."""
    return _in_force.get()


def checkpoint() -> None:
    """Raise `Stopped` if the time of the call is up; for loops that can last, a backend's included.

    Examples
    --------
    >>> with limited(0.0):
    ...     try:
    ...         checkpoint()
    ...     except Stopped as stop:
    ...         print(stop)
    the time limit of 0 s
    """
    patience = _in_force.get()
    if patience.is_over:
        raise Stopped(patience.reason)
    if patience.is_heard:
        patience.tick()


def patiently(items: Iterable[T], *, every: int = 256) -> Iterator[T]:
    """The items themselves, with a `checkpoint` before the first of `every` so many."""
    for count, item in enumerate(items):
        if count % every == 0:
            checkpoint()
        yield item


@contextmanager
def limited(limit: float = math.inf, progress: Callable[[Progress], None] | None = None) -> Iterator[Patience]:
    """A patience for what is done within; the limit of a call that this one is part of holds as well."""
    if progress is not None and not callable(progress):
        raise InputError("progress", f"must be a function that takes a Progress, not {progress!r}")
    outer = _in_force.get()
    nested = outer if outer is not _NO_END else None
    patience = Patience(limit, progress, nested)
    token = _in_force.set(patience)
    try:
        yield patience
    finally:
        _in_force.reset(token)
        if nested is None:
            patience.closing.close()


@contextmanager
def running(patience: Patience) -> Iterator[None]:
    """A given patience for what is done within: a worker thread's."""
    token = _in_force.set(patience)
    try:
        yield
    finally:
        _in_force.reset(token)


def read_time_limit(given: object, location: str = "time_limit") -> float:
    """Seconds from an argument; None is no limit.

    Examples
    --------
    >>> read_time_limit(None), read_time_limit(5)
    (inf, 5.0)
    >>> read_time_limit(-1)
    Traceback (most recent call last):
    ...
    dpopt.errors.InputError: time_limit: must be a number of seconds above 0, not -1
    """
    if given is None:
        return math.inf
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise InputError(location, f"must be a number of seconds above 0, not {given!r}")
    return float(given)


def tell_interrupted(interrupt: KeyboardInterrupt, found: str) -> None:
    """Have an interrupt say how long the call had lasted and what it had found; an outer call has the last word.

    Examples
    --------
    >>> with limited():
    ...     tell_interrupted(stop := KeyboardInterrupt(), "proved by then: nothing")
    >>> stop.__notes__
    ['dpopt: interrupted after 0 s; proved by then: nothing']
    """
    notes = [note for note in getattr(interrupt, "__notes__", ()) if not note.startswith(_OURS)]
    interrupt.__notes__ = notes
    interrupt.add_note(f"{_OURS} interrupted after {in_force().seconds:.0f} s; {found}")
