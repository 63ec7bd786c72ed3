"""The programs of the conformance suite, each with an optimum that no solver was asked for."""

from __future__ import annotations

from dpopt.backends._conformance_case import Case
from dpopt.backends._conformance_entropy import entropy_cases
from dpopt.backends._conformance_linear import linear_cases

__all__ = ["CASES"]

CASES: tuple[Case, ...] = (*linear_cases(), *entropy_cases())
"""All cases of the suite."""
