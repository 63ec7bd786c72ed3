"""The statement of a certificate: the problem, a pmf, and multipliers that bound the objective.

Plain JSON data comes in, checked exact data goes out. Multipliers are refused where the problem has no such row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpopt.proof.reading import (
    MAX_POINTS,
    brief,
    read_index,
    read_integer,
    read_integers,
    read_list,
    read_object,
    reject,
)
from dpopt.proof.stated_law import Law, read_law
from dpopt.proof.stated_objective import Objective
from dpopt.proof.stated_problem import Constraint, ProblemReader

__all__ = ["Chain", "Entry", "Events", "Multipliers", "Statement", "read_statement"]

FORMAT = "dpopt-certificate/1"


# --- what is read ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Events:
    """Multipliers w of one hockey-stick row: weights from `start`, constant outside, all in 0..bound."""

    shift: int
    bound: int
    start: int
    weights: Sequence[int]
    left: int
    right: int


@dataclass(frozen=True)
class Entry:
    """The multipliers of one constraint, as integers over ``2**scale``."""

    values: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int, int], ...] = ()
    events: tuple[Events, ...] = ()


@dataclass(frozen=True)
class Chain:
    """The core ``low..high`` from whose ends the multipliers of a pure-DP constraint run out to infinity."""

    constraint: int
    low: int
    high: int


@dataclass(frozen=True)
class Multipliers:
    """All multipliers; `slopes` start at the first cut of the input's range."""

    slopes: tuple[int, ...] = ()
    events: tuple[Events, ...] = ()
    entries: Mapping[int, Entry] = field(default_factory=dict)
    chain: Chain | None = None


@dataclass(frozen=True)
class Statement:
    """A whole statement: the question (`window` None: all integers), the pmf and the multipliers."""

    infeasible: bool
    step: Fraction
    window: tuple[int, int] | None
    objective: Objective
    constraints: tuple[Constraint, ...]
    law: Law | None
    precision: int
    scale: int
    multipliers: Multipliers

    @property
    def forbidden(self) -> frozenset[int]:
        """The indices at which a constraint sets the probability to 0."""
        return frozenset().union(*(c.zeros for c in self.constraints))


# --- the whole ---------------------------------------------------------------------------------------------------


def read_statement(source: object) -> Statement:
    """Read a certificate's statement.

    Raises
    ------
    CertificateError
        Naming the location in the JSON and what is wrong there.
    """
    required = ("format", "kind", "problem", "pmf", "precision", "scale", "multipliers")
    data = read_object(source, "certificate", required, ("trusted", "derived"))
    if data["format"] != FORMAT:
        reject("format", f"must be {FORMAT!r}, not {brief(data['format'])}")
    if data["kind"] not in ("solution", "infeasible"):
        reject("kind", f"must be 'solution' or 'infeasible', not {brief(data['kind'])}")
    infeasible = data["kind"] == "infeasible"
    reader = ProblemReader.of(data["problem"], data.get("trusted"))
    lattice = reader.lattice
    precision = read_integer(data["precision"], "precision", 32, 8192)
    scale = read_integer(data["scale"], "scale", 0, 4096)
    if infeasible != (data["pmf"] is None):
        reject("pmf", "must be null exactly when kind is 'infeasible'")
    law = None if infeasible else read_law(data["pmf"], lattice)
    objective, constraints = reader.objective(), reader.constraints()
    multipliers = _MultiplierReader(lattice.window, objective, constraints, scale, infeasible).read(data["multipliers"])
    return Statement(
        infeasible, lattice.step, lattice.window, objective, constraints, law, precision, scale, multipliers
    )


# --- the multipliers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _MultiplierReader:
    """Reads multipliers and refuses every row that the problem does not have."""

    window: tuple[int, int] | None
    objective: Objective
    constraints: tuple[Constraint, ...]
    scale: int
    infeasible: bool

    def read(self, source: object) -> Multipliers:
        data = read_object(source, "multipliers", ("objective", "constraints", "chain"))
        slopes, events = self._objective(data["objective"], "multipliers.objective")
        where = "multipliers.constraints"
        entries = read_object(data["constraints"], where, (), {str(i) for i in range(len(self.constraints))})
        read = {int(i): self._entry(entry, self.constraints[int(i)], f"{where}.{i}") for i, entry in entries.items()}
        return Multipliers(slopes, events, read, self._chain(data["chain"], "multipliers.chain"))

    def _objective(self, source: object, where: str) -> tuple[tuple[int, ...], tuple[Events, ...]]:
        objective = self.objective
        if source is None:
            return (), ()
        if self.infeasible or objective.form not in ("wasserstein", "delta"):
            kind = "an infeasibility proof" if self.infeasible else repr(objective.type)
            reject(where, f"must be null: the objective of {kind} has no multipliers")
        if objective.form == "wasserstein":
            data = read_object(
                read_object(source, where, ("slopes",))["slopes"], f"{where}.slopes", ("start", "values")
            )
            if read_integer(data["start"], f"{where}.slopes.start") != objective.start:
                reject(f"{where}.slopes.start", f"must be the input's first point, index {objective.start}")
            one = 1 << self.scale  # a slope is at most 1 in absolute value
            cuts = len(objective.weights) - 1
            return tuple(read_integers(data["values"], f"{where}.slopes.values", -one, one, cuts)), ()
        events = self._events(read_object(source, where, ("shifts",))["shifts"], objective.shift, f"{where}.shifts")
        if sum(e.bound for e in events) > 1 << self.scale:
            reject(f"{where}.shifts", "has bounds with a sum above 1")
        return (), events

    def _entry(self, source: object, constraint: Constraint, where: str) -> Entry:
        if constraint.type == "forbidden":
            reject(where, "must be absent: forbidden points have no multipliers")
        if constraint.form == "terms":
            values = read_list(read_object(source, where, ("values",))["values"], f"{where}.values")
            if len(values) != len(constraint.terms):
                reject(f"{where}.values", f"must have {len(constraint.terms)} entries, not {len(values)}")
            return Entry(values=tuple(read_integers(values, f"{where}.values")))
        if constraint.form == "approx-dp":
            shifts = read_object(source, where, ("shifts",))["shifts"]
            return Entry(events=self._events(shifts, constraint.shift, f"{where}.shifts"))
        pairs = read_list(read_object(source, where, ("pairs",))["pairs"], f"{where}.pairs")
        return Entry(pairs=tuple(self._pairs(pairs, constraint, f"{where}.pairs")))

    def _pairs(self, source: Sequence[Any], constraint: Constraint, where: str) -> Iterator[tuple[int, int, int]]:
        free = constraint.form == "symmetric"
        for at, row in enumerate(source):
            if not isinstance(row, list | tuple) or len(row) != (2 if free else 3):
                reject(f"{where}[{at}]", "must be a list [k, y]" if free else "must be a list [i, j, y]")
            numbers = [read_integer(number, f"{where}[{at}]") for number in row]
            i, j, y = (numbers[0], -numbers[0], numbers[1]) if free else (numbers[0], numbers[1], numbers[2])
            if y < 0 and not free:
                reject(f"{where}[{at}]", f"has the negative multiplier {brief(y)}")
            if not self._legal(constraint, i, j):
                reject(f"{where}[{at}]", f"is not a row of {constraint.type!r}: indices {brief(i)} and {brief(j)}")
            yield i, j, y

    def _legal(self, constraint: Constraint, i: int, j: int) -> bool:
        low, high = self.window if self.window is not None else (min(i, j), max(i, j))
        if constraint.form == "symmetric":
            return i > 0 and (low <= i <= high or low <= j <= high)
        if not (low <= i <= high and low <= j <= high):
            return False
        if constraint.form == "unimodal":
            return j - i == (1 if i < constraint.mode else -1) and i != constraint.mode
        return 1 <= abs(i - j) <= constraint.shift

    def _events(self, source: object, most: int, where: str) -> tuple[Events, ...]:
        found: dict[int, Events] = {}
        for i, part in enumerate(read_list(source, where)):
            at = f"{where}[{i}]"
            data = read_object(part, at, ("shift", "bound", "start", "events", "left", "right"))
            shift = read_integer(data["shift"], f"{at}.shift", -most, most)
            if shift == 0 or shift in found:
                reject(f"{at}.shift", "must not be 0" if shift == 0 else f"has {shift} for the second time")
            bound = read_integer(data["bound"], f"{at}.bound", 0)
            left, right = (read_integer(data[side], f"{at}.{side}", 0, bound) for side in ("left", "right"))
            weights = read_integers(data["events"], f"{at}.events", 0, bound, MAX_POINTS)
            found[shift] = Events(shift, bound, read_index(data["start"], f"{at}.start"), weights, left, right)
        return tuple(found.values())

    def _chain(self, source: object, where: str) -> Chain | None:
        if source is None:
            return None
        data = read_object(source, where, ("constraint", "low", "high"))
        index = read_integer(data["constraint"], f"{where}.constraint", 0, len(self.constraints) - 1)
        constraint = self.constraints[index]
        if constraint.form != "pure-dp" or self.window is not None:
            reject(where, "must name a pure-dp constraint on an infinite support")
        if constraint.epsilon == 0:
            reject(where, "needs epsilon above 0: with ratio 1 its sums do not converge")
        low, high = read_index(data["low"], f"{where}.low"), read_index(data["high"], f"{where}.high")
        if not constraint.shift <= high - low + 1 <= MAX_POINTS:
            points = brief(high - low + 1)
            reject(where, f"must have a core of {constraint.shift} to {MAX_POINTS} points, not {points}")
        return Chain(index, low, high)
