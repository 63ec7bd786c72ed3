"""Question 2: the cheapest noise in Wasserstein distance for an input distribution, on all integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dpopt as dp
from benchmarks.registry import Case, register

LIBRARY = Path(__file__).resolve().parents[2] / "problems"

INPUTS: dict[str, Callable[[], dp.Problem]] = {
    "poisson(10)": lambda: dp.wasserstein(input=dp.poisson(10), epsilon=2, sensitivity=15),
    "gaussian(0,5)": lambda: dp.wasserstein(input=dp.gaussian(0, 5), epsilon=2, sensitivity=15),
    "doctor-visits": lambda: dp.load(LIBRARY / "wasserstein-doctor-visits.toml"),
}

register(
    Case(
        name="wasserstein",
        text="least W1 on all integers, epsilon 2, sensitivity 15 (doctor visits: 1 and 5); size: the input",
        make=lambda name: INPUTS[name](),
        sizes=tuple(INPUTS),
    )
)
