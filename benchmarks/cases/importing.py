"""What it costs to have dpopt at hand, and to have only its checker."""

from __future__ import annotations

from benchmarks.registry import ImportCase, register

register(
    ImportCase(
        name="import",
        text="import time in a fresh interpreter, its own start-up left out",
        statements=("import numpy", "import dpopt", "from dpopt import verify", "from dpopt import solve"),
        absent=("cvxpy", "highspy", "pulp"),
    )
)
