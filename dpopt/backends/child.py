"""A solver in a process of its own, for solvers that nothing but the end of their process stops.

The process is this interpreter with this module; programs and claims go through its standard streams as pickles. It is
kept for the outermost call, which may ask it several times, and ended with its own children (CBC) when that is over.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import IO, Any

from dpopt.backends.waiting import wait_for
from dpopt.patience import limited

__all__ = ["ElsewhereError", "ask_child", "serve"]

_BEGIN = """
import pickle, sys
sys.path[:], folder = pickle.load(sys.stdin.buffer)
from dpopt.backends.child import serve
serve(folder)
"""


def ask_child(backend: Any, program: Any, options: Mapping[str, Any]) -> Any:
    """What ``backend.solve(program, options)`` returns in a process of its own, or the exception that it raises.

    The exception is a `ChildProcessError` if the process ended without an answer, as after a crash of the solver.

    Raises
    ------
    ElsewhereError
        The process does not know the backend, as one from a script or a plugin.
    Stopped
        The time was up.
    """
    try:
        packed = pickle.dumps(backend)
    except Exception as error:  # a foreign object may raise anything
        raise ElsewhereError(str(error)) from None
    with limited() as patience:
        child = patience.kept.get(_Child)
        if child is None or not child.is_alive:
            child = patience.closing.enter_context(contextlib.closing(_Child()))
            patience.kept[_Child] = child
        answer = wait_for(lambda: child.ask(packed, program, options), stop=child.close)
    if isinstance(answer, ElsewhereError):
        raise answer
    return answer


class ElsewhereError(Exception):
    """A backend cannot be had in another process."""


class _Child:
    """One process, its two pipes, and the directory of its temporary files."""

    def __init__(self) -> None:
        self.folder = TemporaryDirectory(prefix="dpopt-", ignore_cleanup_errors=True)
        places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self.folder.name)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **places},
            start_new_session=True,  # Ctrl-C in a terminal is ours to handle, and CBC is in the same group
        )
        self.closed = False
        with contextlib.suppress(OSError):
            _send((sys.path, self.folder.name), self.process.stdin)

    @property
    def is_alive(self) -> bool:
        """Whether it can still be asked."""
        return not self.closed and self.process.poll() is None

    def ask(self, packed: bytes, program: Any, options: Mapping[str, Any]) -> Any:
        """One question and its answer, or the exception that the backend raised."""
        try:
            _send((packed, program, dict(options)), self.process.stdin)
            assert self.process.stdout is not None
            answer = pickle.load(self.process.stdout)  # from our own process
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            self.close()
            words = f"the solver's process ended without an answer (status {self.process.returncode})"
            return ChildProcessError(words)
        return answer

    def close(self) -> None:
        """End the process with everything that it started, and remove its files."""
        if self.closed:
            return
        self.closed = True
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.folder.cleanup()


def _send(something: Any, pipe: IO[bytes] | None) -> None:
    assert pipe is not None
    pickle.dump(something, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()


# --- in the process --------------------------------------------------------------------------------------------------


def serve(folder: str) -> None:
    """Answer questions from standard input until it ends: the parent closed it, or is no more.

    `folder` is the directory that the parent made for the temporary files of this process.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a solver prints is not an answer
    questions: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(questions, folder), daemon=True).start()
    while True:
        _send(_answer(*questions.get()), answers)


def _answer(packed: bytes, program: Any, options: Mapping[str, Any]) -> Any:
    """A claim, or the exception in its place."""
    try:
        backend = pickle.loads(packed)  # from our own parent
    except Exception as error:  # of whatever type: its module is not here, or its class is not in it
        return ElsewhereError(str(error))
    try:
        return backend.solve(program, options)
    except Exception as error:
        return error


def _read(questions: SimpleQueue[Any], folder: str) -> None:
    """Read ahead, in order to notice the end of the parent while a solver works; then nothing is left behind."""
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            questions.put(pickle.load(sys.stdin.buffer))
    shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # CBC as well
    os._exit(0)
