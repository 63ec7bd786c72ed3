"""Question 3: the smallest support for a wanted (epsilon, delta).

A target poses no linear program at sensitivity 1, so it has no phases to register. What is registered is the program
that its closed form saves: the least delta of any pmf on [-D, D]. The targets themselves are timed by

    python -m benchmarks.cases.targeting
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dpopt as dp
from benchmarks.measure import Verb, measure
from benchmarks.registry import Case, register
from dpopt.family.members import family_pmf

TARGETS = {"eps1-1e-5": (1, "1e-5"), "eps0.1-1e-9": ("0.1", "1e-9"), "eps0.01-1e-12": ("0.01", "1e-12")}


def least_delta(half_width: int) -> dp.Problem:
    """The smallest delta of any pmf on [-D, D] at epsilon = 22/D: delta stays near 1e-9, as D grows."""
    return dp.Problem(
        support=dp.Integers(-half_width, half_width),
        objective=dp.MinDelta(epsilon=f"22/{half_width}"),
        constraints=[],
    )


register(
    Case(
        name="min-delta",
        text="least delta of any pmf on [-D, D] at epsilon 22/D, which a target has in closed form; size: D",
        make=least_delta,
        sizes=(22, 220, 880),
    )
)


def _afresh(verb: Verb) -> Callable[[], Verb]:
    """A set-up that forgets the members which earlier calls remembered."""

    def set_up() -> Verb:
        family_pmf.cache_clear()
        return verb

    return set_up


def measure_targets(repeat: int = 3) -> list[dict[str, Any]]:
    """Median seconds of `dpopt.solve` and of verifying the saved certificate, for each family and target."""
    rows = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "certificate.json"
        for name, (epsilon, delta) in TARGETS.items():
            for family in dp.Family:
                target = dp.target(epsilon=epsilon, delta=delta, family=family)
                times, solution = measure(_afresh(partial(dp.solve, target)), repeat)
                solution.require_verified().certificate.save(file)
                verify_times, verdict = measure(_afresh(partial(dp.verify, file)), repeat)
                rows.append(
                    {
                        "target": name,
                        "family": str(family),
                        "D": solution.design.D,
                        "verified": verdict.verified,
                        "solve": round(times.median, 4),
                        "verify": round(verify_times.median, 4),
                    }
                )
    return rows


if __name__ == "__main__":
    sys.stdout.write("\n".join(json.dumps(row) for row in measure_targets()) + "\n")
