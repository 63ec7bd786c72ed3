"""Reading the problem and the pmf that a certificate states.

Nothing here comes from the solving path: what a problem *means* is written down a second time, in lattice indices,
so that a mistake in one of the two readings shows up as a disagreement. A type that is not one of dpopt's own means
what the rows in ``"trusted"`` say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from dpopt.arithmetic import exp_enclosure
from dpopt.distributions import Distribution, Gaussian, Point, Poisson, Table, Uniform
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.proof.reading import (
    MAX_POINTS,
    Lattice,
    brief,
    read_function,
    read_index,
    read_integer,
    read_integers,
    read_list,
    read_long_rational,
    read_object,
    read_rational,
    read_rationals,
    read_type,
    reject,
)

__all__ = ["Constraint", "Law", "Objective", "ProblemReader", "Term", "read_law"]

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


@dataclass(frozen=True)
class Objective:
    """The objective: entropy, a linear cost, the distance to an input (weights from index `start`), or a delta."""

    type: str
    form: Literal["entropy", "linear", "wasserstein", "delta"]
    cost: LatticeFunction = field(default_factory=LatticeFunction)
    start: int = 0
    weights: tuple[int, ...] = ()
    epsilon: Fraction = Fraction(0)
    shift: int = 0


@dataclass(frozen=True)
class Law:
    """A pmf: integer weights from index `start`, ratio 0 for no tail on a side."""

    start: int
    weights: Sequence[int]
    period: int = 1
    left: Fraction = Fraction(0)
    right: Fraction = Fraction(0)

    @property
    def end(self) -> int:
        """Index of the last weight of the core."""
        return self.start + len(self.weights) - 1

    @cached_property
    def left_mass(self) -> Fraction:
        """The mass of the left tail in units of the weights: ratio + ratio^2 + ... times the first block."""
        return self.left / (1 - self.left) * sum(self.weights[: self.period])

    @cached_property
    def right_mass(self) -> Fraction:
        """The mass of the right tail in units of the weights."""
        return self.right / (1 - self.right) * sum(self.weights[-self.period :])

    @cached_property
    def total(self) -> Fraction:
        """The mass of everything in units of the weights: the probability at a core point is weight / total."""
        return sum(self.weights) + (self.left_mass + self.right_mass)


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

    def _needs_window(self, kind: str, where: str) -> None:
        if self.lattice.window is None:
            reject(where, f"{kind} needs a finite support")

    # --- the objective

    def objective(self) -> Objective:
        """The objective; a custom one costs what its trusted function says."""
        where, data = "problem.objective", self.problem["objective"]
        kind = read_type(data, where)
        readers = {
            "max-entropy": self._max_entropy,
            "min-expected-cost": self._min_cost,
            "min-wasserstein": self._min_wasserstein,
            "min-delta": self._min_delta,
        }
        term = self.trusted.get("objective")
        if kind in readers:
            if term is not None:
                reject("trusted.objective", f"must be absent: {kind!r} is not a custom type")
            return readers[kind](data, where)
        if term is None:
            reject(where, f"has the custom type {brief(kind)}, whose cost must be given in trusted.objective")
        term = read_object(term, "trusted.objective", ("term", "function"))
        if term["term"] != "cost":
            reject("trusted.objective.term", f"must be 'cost', not {brief(term['term'])}")
        return Objective(kind, "linear", read_function(term["function"], "trusted.objective.function"))

    def _max_entropy(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type",))
        self._needs_window("max-entropy", where)
        return Objective("max-entropy", "entropy")

    def _min_cost(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type", "cost"))
        return Objective("min-expected-cost", "linear", self.lattice.function(data["cost"], f"{where}.cost"))

    def _min_wasserstein(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type", "input"))
        where = f"{where}.input"
        if self.lattice.step.numerator != 1:
            reject(where, f"needs the integers, which the lattice of step {brief(self.lattice.step)} does not contain")
        fine = self.lattice.step.denominator  # lattice points from one integer to the next
        try:
            pmf = _distribution(data["input"], where).pmf
        except InputError as error:
            raise error.inside(where) from None
        if len(pmf.weights) * fine > MAX_POINTS:
            reject(where, f"makes more than {MAX_POINTS} lattice points")
        weights = [0] * ((len(pmf.weights) - 1) * fine + 1)
        weights[::fine] = pmf.weights
        first = next(i for i, w in enumerate(weights) if w)
        last = max(i for i, w in enumerate(weights) if w)
        trimmed = tuple(weights[first : last + 1])
        return Objective("min-wasserstein", "wasserstein", start=pmf.start * fine + first, weights=trimmed)

    def _min_delta(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type", "epsilon"), ("sensitivity",))
        self._needs_window("min-delta", where)
        epsilon = _epsilon(data["epsilon"], f"{where}.epsilon")
        return Objective("min-delta", "delta", epsilon=epsilon, shift=self.lattice.shift(data, where))

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
        self._needs_window("unimodal", where)
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
        epsilon = _epsilon(data["epsilon"], f"{where}.epsilon")
        return Constraint("pure-dp", "pure-dp", epsilon=epsilon, shift=self.lattice.shift(data, where))

    def _approx_dp(self, data: Mapping[str, Any], where: str) -> Constraint:
        read_object(data, where, ("type", "epsilon", "delta"), ("sensitivity",))
        epsilon = _epsilon(data["epsilon"], f"{where}.epsilon")
        delta = read_rational(data["delta"], f"{where}.delta")
        if not 0 <= delta <= 1:
            reject(f"{where}.delta", f"must lie in 0..1, not {brief(delta)}")
        return Constraint("approx-dp", "approx-dp", epsilon=epsilon, delta=delta, shift=self.lattice.shift(data, where))


# --- pieces of a problem -----------------------------------------------------------------------------------------


def _epsilon(value: object, where: str) -> Fraction:
    """A privacy parameter whose exponential is within reach."""
    epsilon = read_rational(value, where)
    if epsilon < 0:
        reject(where, f"must be at least 0, not {brief(epsilon)}")
    try:
        exp_enclosure(epsilon, 1)
    except InputError as error:
        reject(where, error.problem)
    return epsilon


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


def _distribution(data: object, where: str) -> Distribution:
    """The input of a Wasserstein objective."""
    kind = read_type(data, where)
    if kind == "poisson":
        data = read_object(data, where, ("type", "rate"))
        return Poisson(read_rational(data["rate"], f"{where}.rate"))
    if kind == "gaussian":
        data = read_object(data, where, ("type", "mean", "sd"))
        return Gaussian(read_rational(data["mean"], f"{where}.mean"), read_rational(data["sd"], f"{where}.sd"))
    if kind == "uniform":
        data = read_object(data, where, ("type", "low", "high"))
        return Uniform(read_index(data["low"], f"{where}.low"), read_index(data["high"], f"{where}.high"))
    if kind == "point":
        data = read_object(data, where, ("type", "at"))
        return Point(read_index(data["at"], f"{where}.at"))
    if kind != "table":
        reject(f"{where}.type", f"must be poisson, gaussian, uniform, point or table, not {brief(kind)}")
    data = read_object(data, where, ("type", "low", "weights"))
    weights = read_rationals(data["weights"], f"{where}.weights", MAX_POINTS)
    return Table(read_index(data["low"], f"{where}.low"), weights)


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


# --- the pmf -----------------------------------------------------------------------------------------------------


def read_law(source: object, lattice: Lattice) -> Law:
    """The pmf, spread over the whole window when the support is finite."""
    data = read_object(source, "pmf", ("start", "weights", "step", "tails"))
    if read_rational(data["step"], "pmf.step") != lattice.step:
        reject("pmf.step", f"must be the support's step {brief(lattice.step)}, not {brief(data['step'])}")
    start = read_index(data["start"], "pmf.start")
    weights = read_integers(data["weights"], "pmf.weights", 0, most=MAX_POINTS)
    if not any(weights):
        reject("pmf.weights", "must hold a positive weight")
    if data["tails"] is None:
        return Law(start, weights) if lattice.window is None else _windowed(start, weights, *lattice.window)
    if lattice.window is not None:
        reject("pmf.tails", "must be null on a finite support")
    tails = read_object(data["tails"], "pmf.tails", ("period", "left", "right"))
    period = read_integer(tails["period"], "pmf.tails.period", 1, len(weights))
    left, right = (_tail_ratio(tails[side], f"pmf.tails.{side}") for side in ("left", "right"))
    if left == right == 0:
        reject("pmf.tails", "must be null when there is a tail on neither side")
    return Law(start, weights, period, left, right)


def _windowed(start: int, weights: Sequence[int], low: int, high: int) -> Law:
    """The pmf with a weight for every point of the window ``low..high``."""
    spread = [0] * (high - low + 1)
    for i, weight in enumerate(weights):
        if weight:
            if not low <= start + i <= high:
                reject(f"pmf.weights[{i}]", f"puts mass at index {start + i}, outside the support {low}..{high}")
            spread[start + i - low] = weight
    return Law(low, spread)


def _tail_ratio(value: object, where: str) -> Fraction:
    """The ratio of a tail, 0 for none; 1/E_lo of a high precision is a long number."""
    if value is None:
        return Fraction(0)
    ratio = read_long_rational(value, where)
    if not 0 < ratio < 1:
        reject(where, f"must lie strictly between 0 and 1, not {brief(ratio)}")
    return ratio
