"""Waiting for a solver without being its prisoner: it works in a thread of its own, and the caller only waits.

A native solver on the caller's thread sees no Ctrl-C and no time limit but its own. Here the caller wakes up every few
hundredths of a second, and so notices both. When it leaves, the patience of the work is cancelled, which HiGHS, Newton
and every backend with a checkpoint notice; what does not end soon is abandoned: a daemon thread keeps no process alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from dpopt.patience import Stopped, in_force, running

__all__ = ["abandoned", "wait_for"]

T = TypeVar("T")

_NAP = 0.05  # seconds: on Windows no signal ends a longer wait
_GRACE = 0.5  # seconds in which cancelled work may still end on its own


class _Task(Generic[T]):
    """One piece of work, and what became of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.work, self.context = work, copy_context()
        self.patience = in_force().for_worker()
        self.done = threading.Event()
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """In the worker's thread: do it, under its own patience."""
        try:
            self.result = self.context.run(self._patiently)
        except BaseException as error:  # whatever it is, it is raised where somebody waits
            self.error = error
        finally:
            self.done.set()

    def _patiently(self) -> T:
        with running(self.patience):
            return self.work()


class _Worker:
    """A daemon thread that does one task after another: starting one for each would cost HiGHS its own threads."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[_Task[Any] | None] = SimpleQueue()  # None is the end
        self.thread = threading.Thread(target=self._run, name="dpopt-solver", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (task := self.tasks.get()) is not None:
            task.run()
            del task  # or its result would live until the next one comes


_idle: list[_Worker] = []
_abandoned: list[_Task[Any]] = []


def wait_for(work: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """What `work` returns; the caller's interrupts and time limit hold while it lasts.

    Parameters
    ----------
    work : callable
        Runs in a thread of its own with a copy of the caller's context.
    stop : callable, optional
        Called when the work is not wanted any more, where a cancelled patience is not enough to end it.

    Raises
    ------
    Stopped
        The time was up, and the work did not end by itself.
    BaseException
        Whatever the work raised, or the listener who hears of the progress.
    """
    patience, task = in_force(), _Task(work)
    worker = _free_worker()
    try:
        worker.tasks.put(task)
        while not task.done.wait(min(_NAP, patience.remaining)) and not patience.is_over:
            if patience.is_heard:
                patience.tick()
    finally:
        if not task.done.is_set():
            _end(task, stop)
        if task.done.is_set():
            _idle.append(worker)
        else:
            _abandoned.append(task)
            worker.tasks.put(None)
    if not task.done.is_set():
        raise Stopped(patience.reason)
    if task.error is not None:
        raise task.error
    return task.result  # type: ignore[return-value]  # there is one, as there is no error


def abandoned() -> bool:
    """Whether work that was abandoned is still going on."""
    _abandoned[:] = [task for task in _abandoned if not task.done.is_set()]
    return bool(_abandoned)


def _end(task: _Task[Any], stop: Callable[[], None] | None) -> None:
    """Ask the work to end, and give it a moment to."""
    task.patience.cancel()
    if stop is not None:
        stop()
    task.done.wait(_GRACE)


def _free_worker() -> _Worker:
    while _idle:
        worker = _idle.pop()
        if worker.thread.is_alive():  # not so in the child of a fork
            return worker
    return _Worker()
