"""From a program's multipliers to witnesses, and to the statement that the checker derives a bound from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpopt.checker.statement import FORMAT
from dpopt.pmf import Pmf
from dpopt.problem.families.base import ROW
from dpopt.problem.problem import Problem
from dpopt.program.formulate import Formulation, chain_owner
from dpopt.proof.trusted import as_text, trusted_rows

__all__ = ["multipliers", "statement"]

PRECISION = 128  # bits of every enclosure of e^epsilon
SCALE = 128  # multipliers are integers over 2^SCALE


def multipliers(formulation: Formulation, y: np.ndarray, *, with_objective: bool = True) -> dict[str, Any]:
    """The witnesses that the multipliers of all blocks weigh, and the chains that complete them."""
    witnesses, owners = [], set()
    for block in formulation.blocks:
        if block.is_stated and (block.owner >= 0 or with_objective):
            owners.add(block.owner)
            of = "objective" if block.owner < 0 else str(block.owner)
            witnesses += [{"of": of, **witness} for witness in block.witnesses(y, SCALE)]
    core, owner = formulation.core, chain_owner(formulation.problem)
    chains = []
    if core.closure is not None and owner in owners:
        chains.append({"constraint": owner, "row": ROW, "low": core.first, "high": core.last})
    return {"witnesses": witnesses, "chains": chains}


def statement(problem: Problem, pmf: Pmf | None, stated: Mapping[str, Any]) -> dict[str, Any]:
    """What a certificate states before anything is derived; `pmf` is None for a proof of infeasibility."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "kind": "infeasible" if pmf is None else "solution",
        "problem": {"constraints": [], **problem.to_dict()},
        "laws": None if pmf is None else [pmf.to_dict()],
        "precision": PRECISION,
        "scale": SCALE,
        **stated,
    }
    trusted = trusted_rows(problem)
    if trusted:
        found["trusted"] = trusted
    return as_text(found)
