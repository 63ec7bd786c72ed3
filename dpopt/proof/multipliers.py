"""From a program's multipliers to witnesses, and to the statement that the checker derives a bound from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpopt.checker.statement import FORMAT
from dpopt.pmf import Pmf
from dpopt.problem.problem import Problem
from dpopt.program.formulate import Formulation, chain_owner
from dpopt.proof.trusted import ROW, as_text, trusted_rows

__all__ = ["multipliers", "statement"]

PRECISION = 128  # bits of every enclosure of e^epsilon
SCALE = 128  # multipliers are integers over 2^SCALE


def multipliers(formulation: Formulation, y: np.ndarray, *, with_objective: bool = True) -> dict[str, Any]:
    """The witnesses that the multipliers of all blocks weigh, and the chains that complete them."""
    witnesses: list[dict[str, Any]] = []
    parts: Counter[int] = Counter()  # linear rows of each constraint so far
    owners = set()
    for block in formulation.blocks:
        if not block.is_stated or (block.owner < 0 and not with_objective):
            continue
        owners.add(block.owner)
        of = "objective" if block.owner < 0 else str(block.owner)
        entry = block.entry(y, SCALE)
        witnesses += ({"of": of, **fields} for fields in _witnesses(entry, of, parts[block.owner]))
        parts[block.owner] += "values" in entry
    core, owner = formulation.core, chain_owner(formulation.problem)
    chains = []
    if core.closure is not None and owner in owners:
        chains.append({"constraint": owner, "row": ROW, "low": core.first, "high": core.last})
    return {"witnesses": witnesses, "chains": chains}


def _witnesses(entry: Mapping[str, Any], of: str, part: int) -> Iterator[dict[str, Any]]:
    """A block's multipliers as witnesses; those with multiplier 0 say nothing."""
    for y in entry.get("values", ()):
        if y:
            yield {"part": part, "y": y}
    if entry.get("pairs"):
        yield {"row": ROW, "pairs": entry["pairs"]}
    for shift in entry.get("shifts", ()):
        outside = {key: shift[key] for key in ("shift", "start", "left", "right")}
        weighed = "theta" if of == "objective" else "y"
        yield {"row": ROW, **outside, weighed: shift["bound"], "weights": shift["events"]}
    if "slopes" in entry:
        yield {"start": entry["slopes"]["start"], "slopes": entry["slopes"]["values"]}


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
