"""The statement of a certificate: the problem, its law, and witnesses with multipliers that bound the objective.

Plain JSON data comes in, checked exact data goes out. A witness is refused where it does not belong to the constraint
or the objective that it names. What a problem *means* is written down here and in `families` and `objectives` a second
time, in lattice indices, so that a mistake in one of the two readings shows up as a disagreement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpopt.checker.families import read_family, read_mean
from dpopt.checker.lattice import Lattice
from dpopt.checker.law import Law, read_law
from dpopt.checker.objectives import read_objective
from dpopt.checker.reading import brief, read_index, read_integer, read_list, read_object, read_row, reject
from dpopt.checker.stated import Chain, Family, Objective, Setting, Stated, Witness

__all__ = ["FORMAT", "Statement", "read_format", "read_statement"]

FORMAT = "dpopt-certificate/2"
_EARLIER = "dpopt-certificate/1"
_MAX_CONSTRAINTS = 10_000


@dataclass(frozen=True)
class Statement:
    """A whole statement; there is no law in a proof that nothing is feasible."""

    infeasible: bool
    lattice: Lattice
    objective: Objective
    constraints: tuple[Family, ...]
    law: Law | None
    precision: int
    scale: int
    witnesses: tuple[Witness, ...]
    chains: tuple[Chain, ...]


def read_format(source: object) -> Mapping[str, Any]:
    """The data of a certificate of this format, not of an earlier one."""
    if not isinstance(source, Mapping):
        reject("certificate", f"must be an object, not {brief(source)}")
    if "format" not in source:
        reject("certificate", "lacks the key 'format'")
    if source["format"] == _EARLIER:
        reject(
            "format",
            f"is {_EARLIER!r}, of an earlier version: solve the problem again (dpopt solve FILE --certificate OUT), "
            "or check this certificate with dpopt 0.1",
        )
    if source["format"] != FORMAT:
        reject("format", f"must be {FORMAT!r}, not {brief(source['format'])}")
    return source


def read_statement(source: object) -> Statement:
    """Read a certificate's statement.

    Raises
    ------
    CertificateError
        Naming the location in the JSON and what is wrong there.
    """
    required = ("format", "kind", "problem", "laws", "precision", "scale", "witnesses", "chains")
    data = read_object(read_format(source), "certificate", required, ("trusted", "derived"))
    if data["kind"] not in ("solution", "infeasible"):
        reject("kind", f"must be 'solution' or 'infeasible', not {brief(data['kind'])}")
    infeasible = data["kind"] == "infeasible"
    lattice, objective, constraints = _problem(data["problem"], data.get("trusted"))
    precision = read_integer(data["precision"], "precision", 32, 8192)
    scale = read_integer(data["scale"], "scale", 0, 4096)
    if infeasible != (data["laws"] is None):
        reject("laws", "must be null exactly when kind is 'infeasible'")
    law = None if infeasible else _law(data["laws"], lattice)
    reader = _WitnessReader(objective, constraints, 1 << scale, infeasible)
    witnesses, chains = reader.witnesses(data["witnesses"]), reader.chains(data["chains"])
    return Statement(infeasible, lattice, objective, constraints, law, precision, scale, witnesses, chains)


# --- the problem and its law -------------------------------------------------------------------------------------


def _problem(source: object, trusted: object) -> tuple[Lattice, Objective, tuple[Family, ...]]:
    """The lattice, the objective and the constraints, in the order of the problem."""
    problem = read_object(source, "problem", ("objective", "constraints"), ("name", "support"))
    if not isinstance(problem.get("name", ""), str):
        reject("problem.name", f"must be a string, not {brief(problem['name'])}")
    stored = {} if trusted is None else read_object(trusted, "trusted", (), ("objective", "constraints"))
    lattice = Lattice.of(problem.get("support"), "problem.support")
    parts = read_list(problem["constraints"], "problem.constraints", _MAX_CONSTRAINTS)
    rows = {} if stored.get("constraints") is None else stored["constraints"]
    read_object(rows, "trusted.constraints", (), {str(i) for i in range(len(parts))})

    def fixed_mean() -> Fraction | None:
        means = (read_mean(part, f"problem.constraints[{i}]") for i, part in enumerate(parts))
        return next((mean for mean in means if mean is not None), None)

    setting, places = Setting(lattice, fixed_mean), ("problem.objective", "trusted.objective")
    objective = read_objective(problem["objective"], places[0], setting, stored.get("objective"), places[1])
    constraints = (
        read_family(part, f"problem.constraints[{i}]", setting, rows.get(str(i)), f"trusted.constraints.{i}")
        for i, part in enumerate(parts)
    )
    return lattice, objective, tuple(constraints)


def _law(source: object, lattice: Lattice) -> Law:
    """The law of a problem: the only one in the list."""
    laws = read_list(source, "laws")
    if len(laws) != 1:
        reject("laws", f"must hold one law, the only one that a problem has, not {len(laws)}")
    return read_law(laws[0], lattice, "laws[0]")


# --- the witnesses -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _WitnessReader:
    """Reads witnesses and chains, and refuses those of rows that the problem does not have."""

    objective: Objective
    constraints: tuple[Family, ...]
    one: int
    infeasible: bool

    def witnesses(self, source: object) -> tuple[Witness, ...]:
        """All witnesses; of one constraint each may be there once."""
        found: dict[tuple[Any, ...], Witness] = {}
        for i, data in enumerate(read_list(source, "witnesses")):
            where = f"witnesses[{i}]"
            if not isinstance(data, Mapping):
                reject(where, f"must be an object, not {brief(data)}")
            witness = self._owner(data.get("of"), f"{where}.of").witness(data, where, self.one)
            key = (data["of"], witness.key)
            if key in found:
                reject(where, f"has {witness.key} for the second time")
            found[key] = witness
        own = [witness for (of, _), witness in found.items() if of == "objective"]
        self.objective.check_witnesses(own, self.one)
        return tuple(found.values())

    def _owner(self, of: object, where: str) -> Stated:
        if of != "objective":
            return self._constraint(of, where, "'objective' or ")
        if self.infeasible:
            reject(where, "must be a constraint: an infeasibility proof has no objective")
        return self.objective

    @cached_property
    def _by_index(self) -> dict[str, Family]:
        return {str(i): constraint for i, constraint in enumerate(self.constraints)}

    def _constraint(self, index: object, where: str, or_else: str = "") -> Family:
        if not isinstance(index, str) or index not in self._by_index:
            count = len(self.constraints)
            reject(where, f"must be {or_else}the index of one of the {count} constraints, not {brief(index)}")
        return self._by_index[index]

    def chains(self, source: object) -> tuple[Chain, ...]:
        """The chains: at most one, since no chain feeds another and a problem has one law."""
        found = []
        for i, part in enumerate(read_list(source, "chains")):
            where = f"chains[{i}]"
            data = read_object(part, where, ("constraint", "row", "low", "high"))
            if i:
                reject(where, "is a second chain in the same row, and no chain may feed another")
            read_row(data["row"], f"{where}.row")
            constraint = self._constraint(data["constraint"], f"{where}.constraint")
            low, high = (read_index(data[end], f"{where}.{end}") for end in ("low", "high"))
            found.append(constraint.chain(low, high, where))
        return tuple(found)
