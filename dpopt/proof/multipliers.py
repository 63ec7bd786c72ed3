"""From a program's multipliers to the statement that the checker derives a bound from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpopt.pmf import Pmf
from dpopt.problem.problem import Problem
from dpopt.program.formulate import Formulation, chain_owner
from dpopt.proof.statement import FORMAT
from dpopt.proof.trusted import as_text, trusted_rows

__all__ = ["FORMAT", "multipliers", "statement"]

PRECISION = 128  # bits of every enclosure of e^epsilon
SCALE = 128  # multipliers are integers over 2^SCALE


def multipliers(formulation: Formulation, y: np.ndarray, *, with_objective: bool = True) -> dict[str, Any]:
    """The multipliers of all blocks in the certificate's form."""
    objective: dict[str, Any] | None = None
    constraints: dict[str, Any] = {}
    for block in formulation.blocks:
        if not block.is_stated:
            continue
        entry = block.entry(y, SCALE)
        if block.owner < 0:
            objective = entry if with_objective else None
        elif str(block.owner) in constraints and "values" in entry:
            constraints[str(block.owner)]["values"] += entry["values"]
        else:
            constraints[str(block.owner)] = entry
    chain = None
    owner = chain_owner(formulation.problem)
    if formulation.core.closure is not None and owner is not None and str(owner) in constraints:
        chain = {"constraint": owner, "low": formulation.core.first, "high": formulation.core.last}
    return {"objective": objective, "constraints": constraints, "chain": chain}


def statement(problem: Problem, pmf: Pmf | None, stated: Mapping[str, Any]) -> dict[str, Any]:
    """What a certificate states before anything is derived; `pmf` is None for a proof of infeasibility."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "kind": "infeasible" if pmf is None else "solution",
        "problem": {"constraints": [], **problem.to_dict()},
        "pmf": None if pmf is None else pmf.to_dict(),
        "precision": PRECISION,
        "scale": SCALE,
        "multipliers": dict(stated),
    }
    trusted = trusted_rows(problem)
    if trusted:
        found["trusted"] = trusted
    return as_text(found)
