"""The command line: a thin door. Parse, call a public function, print, and take the exit status from what was verified.

`door` holds the application and how anything ends, `shared` what the commands have in common, the others the commands.
"""

from __future__ import annotations

from dpopt.cli import (  # noqa: F401  # each registers its commands
    figure,
    keys,
    mechanism,
    privacy,
    release,
    solving,
    target,
    top_k,
)
from dpopt.cli.door import app, main

__all__ = ["app", "main"]
