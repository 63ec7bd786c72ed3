"""Solvers without the warnings of their packages, in any number of threads.

Python's warning filters are one list for the whole process. Where each thread saves and restores it on its own
(`warnings.catch_warnings`), the thread that leaves last may restore what another one had set, for good. So all threads
share one change: the first one in makes it, the last one out puts the list back.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet"]

_lock = threading.Lock()
_changes: list[warnings.catch_warnings[None]] = []  # of the filters: one, while any thread is in
_inside = 0


@contextmanager
def quiet(*refused: type[Warning]) -> Iterator[None]:
    """Ignore all warnings meanwhile, those of the process's other threads too; the `refused` ones are raised."""
    global _inside  # noqa: PLW0603  # the filters are the process's
    with _lock:
        if not _inside:
            _changes.append(warnings.catch_warnings())
            _changes[-1].__enter__()
            warnings.simplefilter("ignore")
        for category in refused:
            warnings.simplefilter("error", category)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _changes.pop().__exit__(None, None, None)
