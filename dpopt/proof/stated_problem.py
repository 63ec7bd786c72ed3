"""Reading the problem that a certificate states; its objective and the pmf have files of their own.

Nothing here comes from the solving path: what a problem *means* is written down a second time, in lattice indices,
so that a mistake in one of the two readings shows up as a disagreement. A type that is not one of dpopt's own means
what the rows in ``"trusted"`` say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from dpopt.lattice_function import LatticeFunction
from dpopt.proof.reading import (
    MAX_POINTS,
    Lattice,
    brief,
    read_epsilon,
    read_function,
    read_index,
    read_list,
    read_object,
    read_rational,
    read_type,
    reject,
)
from dpopt.proof.stated_objective import Objective, ObjectiveReader

__all__ = ["Constraint", "ProblemReader", "Term"]

_MAX_ROWS = 10_000  # constraints, and rows of one custom constraint
_SIDES = ("equals", "at_least", "at_most")


# --- what is read ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """One linear row ``at_least <= E h(Z) <= at_most`` with `function` h of the lattice index."""

    function: LatticeFunction
    at_least: Fraction | None = None
    at_most: Fraction | None = None


@dataclass(frozen=True)
class Constraint:
    """One constraint in lattice indices: linear terms and forbidden points, or one of the structured forms."""

    type: str
    form: Literal["terms", "symmetric", "unimodal", "pure-dp", "approx-dp"]
    terms: tuple[Term, ...] = ()
    zeros: frozenset[int] = frozenset()
    mode: int = 0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    shift: int = 0

    @property
    def private(self) -> bool:
        """Whether it bounds a privacy loss, so that its multipliers meet e^epsilon."""
        return self.form in ("pure-dp", "approx-dp")


# --- the problem -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProblemReader:
    """The data of a problem with its lattice; the methods turn data units into lattice indices."""

    lattice: Lattice
    problem: Mapping[str, Any]
    trusted: Mapping[str, Any]

    @classmethod
    def of(cls, problem: object, trusted: object) -> ProblemReader:
        """Read the outer objects and the support."""
        problem = read_object(problem, "problem", ("objective", "constraints"), ("name", "support"))
        if not isinstance(problem.get("name", ""), str | None):
            reject("problem.name", f"must be a string, not {brief(problem['name'])}")
        trusted = {} if trusted is None else read_object(trusted, "trusted", (), ("objective", "constraints"))
        return cls(Lattice.of(problem.get("support"), "problem.support"), problem, trusted)

    def objective(self) -> Objective:
        """The objective."""
        data, trusted = self.problem["objective"], self.trusted.get("objective")
        return ObjectiveReader(self.lattice).read(data, trusted, "problem.objective")

    # --- the constraints

    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, in the order of the problem."""
        parts = read_list(self.problem["constraints"], "problem.constraints", _MAX_ROWS)
        trusted = self.trusted.get("constraints")
        trusted = {} if trusted is None else trusted
        read_object(trusted, "trusted.constraints", (), {str(i) for i in range(len(parts))})
        return tuple(self._constraint(part, i, trusted.get(str(i))) for i, part in enumerate(parts))

    def _constraint(self, data: object, index: int, trusted: object) -> Constraint:
        where = f"problem.constraints[{index}]"
        kind = read_type(data, where)
        assert isinstance(data, Mapping)
        readers = {
            "mean": self._moment,
            "second-moment": self._moment,
            "variance": self._moment,
            "expectation": self._moment,
            "probability": self._moment,
            "forbidden": self._forbidden,
            "symmetric": self._symmetric,
            "unimodal": self._unimodal,
            "pure-dp": self._pure_dp,
            "approx-dp": self._approx_dp,
        }
        if kind in readers:
            if trusted is not None:
                reject(f"trusted.constraints.{index}", f"must be absent: {kind!r} is not a custom type")
            return readers[kind](data, where)
        if trusted is None:
            reject(where, f"has the custom type {brief(kind)}, whose rows must be given in trusted.constraints")
        return _trusted_terms(kind, trusted, f"trusted.constraints.{index}")

    def _moment(self, data: Mapping[str, Any], where: str) -> Constraint:
        """E h(Z) between two bounds, for the named functions h."""
        kind: str = data["type"]
        with_form = ("type", "of") if kind in ("expectation", "probability") else ("type",)
        read_object(data, where, with_form, _SIDES)
        if kind == "mean":
            function = self.lattice.function("value", where)
        elif kind == "second-moment":
            function = self.lattice.function("square", where)
        elif kind == "variance":
            centre, step = self._centre(where), self.lattice.step
            function = LatticeFunction.polynomial((centre**2, -2 * centre * step, step**2))
        elif kind == "expectation":
            function = self.lattice.function(data["of"], f"{where}.of")
        else:
            function = self.lattice.indicator(data["of"], f"{where}.of")
        return Constraint(kind, "terms", (Term(function, *_two_sides(data, where)),))

    def _centre(self, where: str) -> Fraction:
        """The mean that a variance is taken about: it has to be fixed by another constraint."""
        parts = [(i, part) for i, part in enumerate(self.problem["constraints"]) if isinstance(part, Mapping)]
        for i, part in parts:
            if part.get("type") == "mean" and part.get("equals") is not None:
                return read_rational(part["equals"], f"problem.constraints[{i}].equals")
        if not any(part.get("type") == "symmetric" for _, part in parts):
            reject(where, "variance needs a fixed mean: a mean constraint with equals, or symmetric")
        return Fraction(0)

    def _forbidden(self, data: Mapping[str, Any], where: str) -> Constraint:
        read_object(data, where, ("type", "values"))
        return Constraint("forbidden", "terms", zeros=self.lattice.points(data["values"], f"{where}.values"))

    def _symmetric(self, data: Mapping[str, Any], where: str) -> Constraint:
        read_object(data, where, ("type",))
        return Constraint("symmetric", "symmetric")

    def _unimodal(self, data: Mapping[str, Any], where: str) -> Constraint:
        read_object(data, where, ("type",), ("mode",))
        self.lattice.needs_window("unimodal", where)
        return Constraint("unimodal", "unimodal", mode=self.lattice.index(data.get("mode", "0"), f"{where}.mode"))

    def _pure_dp(self, data: Mapping[str, Any], where: str) -> Constraint:
        read_object(data, where, ("type", "epsilon"), ("sensitivity", "boundary"))
        boundary = data.get("boundary", "exact")
        if boundary not in ("exact", "window"):
            reject(f"{where}.boundary", f"must be 'exact' or 'window', not {brief(boundary)}")
        if self.lattice.window is not None and boundary == "exact":
            reject(where, "pure-dp is impossible on a finite support (an output beyond an edge tells inputs apart)")
        if self.lattice.window is None and boundary == "window":
            reject(f"{where}.boundary", "needs a finite support")
        epsilon = read_epsilon(data["epsilon"], f"{where}.epsilon")
        return Constraint("pure-dp", "pure-dp", epsilon=epsilon, shift=self.lattice.shift(data, where))

    def _approx_dp(self, data: Mapping[str, Any], where: str) -> Constraint:
        read_object(data, where, ("type", "epsilon", "delta"), ("sensitivity",))
        epsilon = read_epsilon(data["epsilon"], f"{where}.epsilon")
        delta = read_rational(data["delta"], f"{where}.delta")
        if not 0 <= delta <= 1:
            reject(f"{where}.delta", f"must lie in 0..1, not {brief(delta)}")
        return Constraint("approx-dp", "approx-dp", epsilon=epsilon, delta=delta, shift=self.lattice.shift(data, where))


# --- pieces of a problem -----------------------------------------------------------------------------------------


def _two_sides(data: Mapping[str, Any], where: str) -> tuple[Fraction | None, Fraction | None]:
    """The bounds ``at_least`` and ``at_most``; ``equals`` is both."""
    equals, low, high = (
        None if data.get(side) is None else read_rational(data[side], f"{where}.{side}") for side in _SIDES
    )
    if equals is not None and (low is not None or high is not None):
        reject(where, "has equals beside at_least or at_most")
    if equals is not None:
        return equals, equals
    if low is None and high is None:
        reject(where, "needs equals, at_least or at_most")
    if low is not None and high is not None and low > high:
        reject(where, f"has at_least {brief(low)} above at_most {brief(high)}")
    return low, high


def _trusted_terms(kind: str, source: object, where: str) -> Constraint:
    """The stored rows of a custom constraint; a `zero` row keeps its place among the terms, without bounds."""
    terms: list[Term] = []
    zeros: set[int] = set()
    for i, part in enumerate(read_list(source, where, _MAX_ROWS)):
        at = f"{where}[{i}]"
        name = part.get("term") if isinstance(part, Mapping) else None
        if name == "zero":
            indices = read_list(read_object(part, at, ("term", "indices"))["indices"], f"{at}.indices", MAX_POINTS)
            zeros.update(read_index(k, f"{at}.indices[{j}]") for j, k in enumerate(indices))
            terms.append(Term(LatticeFunction()))
        elif name == "expectation":
            read_object(part, at, ("term", "function", "at_least", "at_most"))
            sides = _two_sides({k: part[k] for k in ("at_least", "at_most")}, at)
            terms.append(Term(read_function(part["function"], f"{at}.function"), *sides))
        else:
            reject(at, "must be an object with term 'expectation' or 'zero'")
    return Constraint(kind, "terms", tuple(terms), frozenset(zeros))
