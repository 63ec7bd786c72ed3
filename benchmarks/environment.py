"""Versions and the kind of machine, without names or paths."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import dpopt

__all__ = ["LIMITATIONS", "environment"]

_PACKAGES = ("numpy", "scipy", "highspy", "cvxpy", "clarabel", "scs", "pulp", "python-flint")

LIMITATIONS = (
    "Only ratios within one run mean something: other work on the machine moves every absolute time.",
    "A peer of microseconds makes ratios jump; where wall and CPU time differ by much, something else was running.",
    "The phases are those of the last core; on all integers dpopt.solve may have tried shorter ones (see 'whole').",
    "Repair and bound contain their own exact checks: repair+check+bound is more than a user waits for.",
    "An infeasibility proof, a target's search and rendering are not measured.",
)


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {package: metadata.version(package) for package in _PACKAGES}
    return {
        "python": platform.python_version(),
        "dpopt": dpopt.__version__,
        **versions,
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": cores,
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
