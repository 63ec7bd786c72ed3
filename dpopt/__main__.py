"""`python -m dpopt`, and the command `dpopt`, are the command line as a process."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

__all__ = ["run"]


def run() -> NoReturn:
    """Run the command line and end the process with its exit status.

    A solver that was abandoned may still be at work in a thread: it must not meet an interpreter that is being torn
    down, which some native libraries answer with a crash.
    """
    try:
        from dpopt.cli import main

        status = main()
    except KeyboardInterrupt:  # while the command line was still being imported
        status = 130
    waiting = sys.modules.get("dpopt.backends.waiting")
    if waiting is not None and waiting.abandoned():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    run()
