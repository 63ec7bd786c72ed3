"""From a program's multipliers to the statement that the checker derives a bound from."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.problem import Problem
from dpopt.problem.terms import CostTerm, ExpectationTerm, Term, ZeroTerm
from dpopt.program.blocks import ExpectationBlock, MassBlock
from dpopt.program.formulate import Formulation, chain_owner
from dpopt.proof.statement import FORMAT

__all__ = ["FORMAT", "multipliers", "statement"]

PRECISION = 128  # bits of every enclosure of e^epsilon
SCALE = 128  # multipliers are integers over 2^SCALE

_SHIPPED = "dpopt.problem."  # constraints and objectives defined elsewhere are stated by their rows, taken on trust


def multipliers(formulation: Formulation, y: np.ndarray, *, with_objective: bool = True) -> dict[str, Any]:
    """The multipliers of all blocks in the certificate's form."""
    objective: dict[str, Any] | None = None
    constraints: dict[str, Any] = {}
    for block in formulation.blocks:
        if isinstance(block, MassBlock):
            continue
        entry = block.entry(y, SCALE)
        if block.owner < 0:
            objective = entry if with_objective else None
        elif isinstance(block, ExpectationBlock) and str(block.owner) in constraints:
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
    trusted = _trusted(problem)
    if trusted:
        found["trusted"] = trusted
    return _as_text(found)


def _as_text(value: Any) -> Any:
    """Every exact number as a string: JSON readers may not keep large integers."""
    if isinstance(value, Mapping):
        return {str(k): _as_text(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(v) for v in value]
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return str(value)
    return value


def _trusted(problem: Problem) -> dict[str, Any]:
    """The exact rows of constraints and objectives that dpopt does not ship."""
    trusted: dict[str, Any] = {}
    if not type(problem.objective).__module__.startswith(_SHIPPED):
        term = problem.objective_term
        if isinstance(term, CostTerm):
            trusted["objective"] = {"term": "cost", "function": _function(term.function)}
    rows = {
        str(i): [_term(term) for term in terms]
        for i, (constraint, terms) in enumerate(zip(problem.constraints, problem.terms, strict=True))
        if not type(constraint).__module__.startswith(_SHIPPED)
    }
    if rows:
        trusted["constraints"] = rows
    return trusted


def _term(term: Term) -> dict[str, Any]:
    if isinstance(term, ExpectationTerm):
        function = _function(term.function)
        return {"term": "expectation", "function": function, "at_least": term.at_least, "at_most": term.at_most}
    if isinstance(term, ZeroTerm):
        return {"term": "zero", "indices": list(term.indices)}
    raise TypeError(f"a custom constraint must consist of expectation and zero terms, not {type(term).__name__}")


def _function(function: LatticeFunction) -> dict[str, Any]:
    return {"start": function.start, "table": function.table, "left": function.left, "right": function.right}
