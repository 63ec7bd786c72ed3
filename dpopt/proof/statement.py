"""Reading the statement of a certificate: plain JSON data in, checked exact data out.

Every exact number is a string: ``"3"``, ``"3/8"``, ``"0.5"``. A JSON number is refused (a float would already be
rounded), and so are unknown keys, duplicate keys, illegal rows and sizes that no check could finish. Nothing here
comes from the solving path: what a problem *means* is written down a second time, in lattice indices (index k is the
point ``k * step``), so that a mistake in one of the two readings shows up as a disagreement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal, NoReturn

from dpopt.arithmetic import exact, exp_enclosure
from dpopt.distributions import Distribution, Gaussian, Point, Poisson, Table, Uniform
from dpopt.errors import CertificateError, InputError
from dpopt.lattice_function import LatticeFunction

__all__ = [
    "Chain",
    "Constraint",
    "Entry",
    "Events",
    "Law",
    "Multipliers",
    "Objective",
    "Statement",
    "Term",
    "brief",
    "parse_json",
    "read_statement",
    "text",
]

FORMAT = "dpopt-certificate/1"
MAX_POINTS = 5_000_000  # lattice points of anything stored point by point
MAX_INDEX = 10**15  # of a lattice point, and of a sensitivity in steps
MAX_DEGREE = 64  # of a polynomial cost
_MAX_DIGITS = 100_000  # of one number
_PRINTABLE_DIGITS = 640  # Python's own conversion may be limited to this many; beyond, `Decimal` converts exactly
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_QUOTIENT = re.compile(r"(0|-?[1-9][0-9]*)/([1-9][0-9]*)")
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


# --- numbers, objects and lists ----------------------------------------------------------------------------------


def _reject(where: str, problem: str) -> NoReturn:
    raise CertificateError(f"{where}: {problem if len(problem) <= 200 else problem[:197] + '...'}")


def brief(value: object) -> str:
    """`value` in at most sixty characters."""
    if isinstance(value, Fraction):
        value = f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
    shown = value if isinstance(value, str) else repr(value) if not isinstance(value, int) else text(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def text(number: Fraction | int) -> str:
    """The canonical text of a rational of any length: lowest terms, no blanks."""
    if isinstance(number, int):
        return str(number) if number.bit_length() < 2000 else str(Decimal(number))
    return text(number.numerator) if number.denominator == 1 else f"{text(number.numerator)}/{text(number.denominator)}"


def _digits(literal: str) -> int:
    return int(literal) if len(literal) <= _PRINTABLE_DIGITS else int(Decimal(literal))


def _integer(value: object, where: str, low: int | None = None, high: int | None = None) -> int:
    if not isinstance(value, str) or _INTEGER.fullmatch(value) is None:
        _reject(where, f"must be an integer written as a string, not {brief(value)}")
    if len(value) > _MAX_DIGITS:
        _reject(where, f"has more than {_MAX_DIGITS} digits")
    number = _digits(value)
    if low is not None and number < low:
        _reject(where, f"must be at least {low}, not {brief(number)}")
    if high is not None and number > high:
        _reject(where, f"must be at most {high}, not {brief(number)}")
    return number


def _rational(value: object, where: str) -> Fraction:
    if not isinstance(value, str):
        _reject(where, f"must be a number written as a string, not {brief(value)}")
    return exact(value, where)


def _place(value: object, where: str) -> int:
    """A lattice index."""
    return _integer(value, where, -MAX_INDEX, MAX_INDEX)


def _object(value: object, where: str, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _reject(where, f"must be an object, not {brief(value)}")
    for key in value:
        if key not in required and key not in optional:
            _reject(where, f"has the unknown key {brief(key)}")
    for key in required:
        if key not in value:
            _reject(where, f"lacks the key {key!r}")
    return value


def _list(value: object, where: str, most: int = 50_000_000) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        _reject(where, f"must be a list, not {brief(value)}")
    if len(value) > most:
        _reject(where, f"has more than {most} entries")
    return value


def parse_json(source: str) -> object:
    """Read JSON text strictly: no number outside a string, no key twice."""

    def number(literal: str) -> NoReturn:
        raise CertificateError(f"the number {brief(literal)} must be written as a string")

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise CertificateError(f"the key {brief(next(k for k in keys if keys.count(k) > 1))} occurs twice")
        return found

    try:
        return json.loads(source, object_pairs_hook=record, parse_int=number, parse_float=number, parse_constant=number)
    except json.JSONDecodeError as error:
        raise CertificateError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise CertificateError("not a certificate: nested too deeply") from None


# --- the whole ---------------------------------------------------------------------------------------------------


def read_statement(source: object) -> Statement:
    """Read a certificate's statement.

    Raises
    ------
    CertificateError
        Naming the location in the JSON and what is wrong there.
    """
    required = ("format", "kind", "problem", "pmf", "precision", "scale", "multipliers")
    data = _object(source, "certificate", required, ("trusted", "derived"))
    if data["format"] != FORMAT:
        _reject("format", f"must be {FORMAT!r}, not {brief(data['format'])}")
    if data["kind"] not in ("solution", "infeasible"):
        _reject("kind", f"must be 'solution' or 'infeasible', not {brief(data['kind'])}")
    infeasible = data["kind"] == "infeasible"
    reader = _Reader.of(data["problem"], data.get("trusted"))
    precision = _integer(data["precision"], "precision", 32, 8192)
    scale = _integer(data["scale"], "scale", 0, 4096)
    if infeasible != (data["pmf"] is None):
        _reject("pmf", "must be null exactly when kind is 'infeasible'")
    law = None if infeasible else reader.law(data["pmf"])
    objective, constraints = reader.objective(), reader.constraints()
    multipliers = _MultiplierReader(reader.window, objective, constraints, scale, infeasible).read(data["multipliers"])
    return Statement(infeasible, reader.step, reader.window, objective, constraints, law, precision, scale, multipliers)


@dataclass(frozen=True)
class _Reader:
    """The problem's data with its lattice; `read` methods turn data units into lattice indices."""

    step: Fraction
    window: tuple[int, int] | None
    problem: Mapping[str, Any]
    trusted: Mapping[str, Any]

    @classmethod
    def of(cls, problem: object, trusted: object) -> _Reader:
        problem = _object(problem, "problem", ("objective", "constraints"), ("name", "support"))
        if not isinstance(problem.get("name", ""), str | None):
            _reject("problem.name", f"must be a string, not {brief(problem['name'])}")
        trusted = {} if trusted is None else _object(trusted, "trusted", (), ("objective", "constraints"))
        step, window = _support(problem.get("support"), "problem.support")
        return cls(step, window, problem, trusted)

    # --- the pmf

    def law(self, source: object) -> Law:
        """The pmf, spread over the whole window when the support is finite."""
        data = _object(source, "pmf", ("start", "weights", "step", "tails"))
        if _rational(data["step"], "pmf.step") != self.step:
            _reject("pmf.step", f"must be the support's step {brief(self.step)}, not {brief(data['step'])}")
        start = _place(data["start"], "pmf.start")
        source_weights = _list(data["weights"], "pmf.weights", MAX_POINTS)
        weights = [_integer(w, f"pmf.weights[{i}]", 0) for i, w in enumerate(source_weights)]
        if not any(weights):
            _reject("pmf.weights", "must hold a positive weight")
        if data["tails"] is None:
            return Law(start, weights) if self.window is None else self._windowed(start, weights)
        if self.window is not None:
            _reject("pmf.tails", "must be null on a finite support")
        tails = _object(data["tails"], "pmf.tails", ("period", "left", "right"))
        period = _integer(tails["period"], "pmf.tails.period", 1, len(weights))
        left, right = (_tail_ratio(tails[side], f"pmf.tails.{side}") for side in ("left", "right"))
        if left == right == 0:
            _reject("pmf.tails", "must be null when there is a tail on neither side")
        return Law(start, weights, period, left, right)

    def _windowed(self, start: int, weights: list[int]) -> Law:
        assert self.window is not None
        low, high = self.window
        for i, weight in enumerate(weights):
            if weight and not low <= start + i <= high:
                _reject(f"pmf.weights[{i}]", f"puts mass at index {start + i}, outside the support {low}..{high}")
        spread = [0] * (high - low + 1)
        for i, weight in enumerate(weights):
            if weight:
                spread[start + i - low] = weight
        return Law(low, spread)

    # --- the objective

    def objective(self) -> Objective:
        where, data = "problem.objective", self.problem["objective"]
        kind = _type(data, where)
        readers = {
            "max-entropy": self._max_entropy,
            "min-expected-cost": self._min_cost,
            "min-wasserstein": self._min_wasserstein,
            "min-delta": self._min_delta,
        }
        term = self.trusted.get("objective")
        if kind in readers:
            if term is not None:
                _reject("trusted.objective", f"must be absent: {kind!r} is not a custom type")
            return readers[kind](data, where)
        if term is None:
            _reject(where, f"has the custom type {brief(kind)}, whose cost must be given in trusted.objective")
        term = _object(term, "trusted.objective", ("term", "function"))
        if term["term"] != "cost":
            _reject("trusted.objective.term", f"must be 'cost', not {brief(term['term'])}")
        return Objective(kind, "linear", _stored_function(term["function"], "trusted.objective.function"))

    def _max_entropy(self, data: Mapping[str, Any], where: str) -> Objective:
        _object(data, where, ("type",))
        if self.window is None:
            _reject(where, "max-entropy needs a finite support")
        return Objective("max-entropy", "entropy")

    def _min_cost(self, data: Mapping[str, Any], where: str) -> Objective:
        _object(data, where, ("type", "cost"))
        return Objective("min-expected-cost", "linear", self.function(data["cost"], f"{where}.cost"))

    def _min_wasserstein(self, data: Mapping[str, Any], where: str) -> Objective:
        _object(data, where, ("type", "input"))
        where = f"{where}.input"
        if self.step.numerator != 1:
            _reject(where, f"needs the integers, which the lattice of step {brief(self.step)} does not contain")
        fine = self.step.denominator
        try:
            pmf = _distribution(data["input"], where).pmf
        except InputError as error:
            raise error.inside(where) from None
        if len(pmf.weights) * fine > MAX_POINTS:
            _reject(where, f"makes more than {MAX_POINTS} lattice points")
        weights = [0] * ((len(pmf.weights) - 1) * fine + 1)
        weights[::fine] = pmf.weights
        first = next(i for i, w in enumerate(weights) if w)
        last = max(i for i, w in enumerate(weights) if w)
        trimmed = tuple(weights[first : last + 1])
        return Objective("min-wasserstein", "wasserstein", start=pmf.start * fine + first, weights=trimmed)

    def _min_delta(self, data: Mapping[str, Any], where: str) -> Objective:
        _object(data, where, ("type", "epsilon"), ("sensitivity",))
        if self.window is None:
            _reject(where, "min-delta needs a finite support")
        epsilon = _epsilon(data["epsilon"], f"{where}.epsilon")
        return Objective("min-delta", "delta", epsilon=epsilon, shift=self._shift(data, where))

    # --- the constraints

    def constraints(self) -> tuple[Constraint, ...]:
        parts = _list(self.problem["constraints"], "problem.constraints", 10_000)
        trusted = self.trusted.get("constraints")
        trusted = {} if trusted is None else trusted
        _object(trusted, "trusted.constraints", (), [str(i) for i in range(len(parts))])
        return tuple(self._constraint(part, i, trusted.get(str(i))) for i, part in enumerate(parts))

    def _constraint(self, data: object, index: int, trusted: object) -> Constraint:
        where = f"problem.constraints[{index}]"
        kind = _type(data, where)
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
                _reject(f"trusted.constraints.{index}", f"must be absent: {kind!r} is not a custom type")
            return readers[kind](data, where)
        if trusted is None:
            _reject(where, f"has the custom type {brief(kind)}, whose rows must be given in trusted.constraints")
        return _trusted_terms(kind, trusted, f"trusted.constraints.{index}")

    def _moment(self, data: Mapping[str, Any], where: str) -> Constraint:
        """E h(Z) between two bounds, for the named functions h."""
        kind: str = data["type"]
        with_form = ("type", "of") if kind in ("expectation", "probability") else ("type",)
        _object(data, where, with_form, _SIDES)
        if kind == "mean":
            function = self.function("value", where)
        elif kind == "second-moment":
            function = self.function("square", where)
        elif kind == "variance":
            centre = self._centre(where)
            function = LatticeFunction.polynomial((centre**2, -2 * centre * self.step, self.step**2))
        elif kind == "expectation":
            function = self.function(data["of"], f"{where}.of")
        else:
            function = self._indicator(data["of"], f"{where}.of")
        return Constraint(kind, "terms", (Term(function, *_two_sides(data, where)),))

    def _centre(self, where: str) -> Fraction:
        """The mean that a variance is taken about: it has to be fixed by another constraint."""
        parts = [part for part in self.problem["constraints"] if isinstance(part, Mapping)]
        for i, part in enumerate(self.problem["constraints"]):
            if isinstance(part, Mapping) and part.get("type") == "mean" and part.get("equals") is not None:
                return _rational(part["equals"], f"problem.constraints[{i}].equals")
        if any(part.get("type") == "symmetric" for part in parts):
            return Fraction(0)
        _reject(where, "variance needs a fixed mean: a mean constraint with equals, or symmetric")

    def _indicator(self, of: object, where: str) -> LatticeFunction:
        one = (Fraction(1),)
        if isinstance(of, list | tuple):
            points = self._points(of, where)
            if not points:
                return LatticeFunction()
            low, high = _span(points, where)
            return LatticeFunction(low, tuple(Fraction(k in points) for k in range(low, high + 1)))
        data = _object(of, where, (), ("from", "to"))
        ends = [None if data.get(k) is None else _rational(data[k], f"{where}.{k}") / self.step for k in ("from", "to")]
        first = None if ends[0] is None else ceil(ends[0])
        last = None if ends[1] is None else floor(ends[1])
        if first is not None and last is not None:
            if last - first >= MAX_POINTS:
                _reject(where, f"covers more than {MAX_POINTS} points")
            return LatticeFunction(first, one * max(last - first + 1, 0))
        if first is not None:
            return LatticeFunction(first, (), (), one)
        if last is not None:
            return LatticeFunction(last + 1, (), one, ())
        _reject(where, "must be a list of points, or have 'from' or 'to'")

    def _forbidden(self, data: Mapping[str, Any], where: str) -> Constraint:
        _object(data, where, ("type", "values"))
        return Constraint("forbidden", "terms", zeros=self._points(data["values"], f"{where}.values"))

    def _symmetric(self, data: Mapping[str, Any], where: str) -> Constraint:
        _object(data, where, ("type",))
        return Constraint("symmetric", "symmetric")

    def _unimodal(self, data: Mapping[str, Any], where: str) -> Constraint:
        _object(data, where, ("type",), ("mode",))
        if self.window is None:
            _reject(where, "unimodal needs a finite support")
        return Constraint("unimodal", "unimodal", mode=self._index(data.get("mode", "0"), f"{where}.mode"))

    def _pure_dp(self, data: Mapping[str, Any], where: str) -> Constraint:
        _object(data, where, ("type", "epsilon"), ("sensitivity", "boundary"))
        boundary = data.get("boundary", "exact")
        if boundary not in ("exact", "window"):
            _reject(f"{where}.boundary", f"must be 'exact' or 'window', not {brief(boundary)}")
        if self.window is not None and boundary == "exact":
            _reject(where, "pure-dp is impossible on a finite support (an output beyond an edge tells inputs apart)")
        if self.window is None and boundary == "window":
            _reject(f"{where}.boundary", "needs a finite support")
        epsilon = _epsilon(data["epsilon"], f"{where}.epsilon")
        return Constraint("pure-dp", "pure-dp", epsilon=epsilon, shift=self._shift(data, where))

    def _approx_dp(self, data: Mapping[str, Any], where: str) -> Constraint:
        _object(data, where, ("type", "epsilon", "delta"), ("sensitivity",))
        epsilon = _epsilon(data["epsilon"], f"{where}.epsilon")
        delta = _rational(data["delta"], f"{where}.delta")
        if not 0 <= delta <= 1:
            _reject(f"{where}.delta", f"must lie in 0..1, not {brief(delta)}")
        return Constraint("approx-dp", "approx-dp", epsilon=epsilon, delta=delta, shift=self._shift(data, where))

    # --- data units to lattice indices

    def _index(self, value: object, where: str) -> int:
        index = _rational(value, where) / self.step
        if index.denominator != 1:
            _reject(where, f"must be a multiple of the step {brief(self.step)}, not {brief(value)}")
        if abs(index) > MAX_INDEX:
            _reject(where, f"lies more than {MAX_INDEX} steps from 0")
        return index.numerator

    def _points(self, values: object, where: str) -> frozenset[int]:
        values = _list(values, where, MAX_POINTS)
        return frozenset(self._index(v, f"{where}[{i}]") for i, v in enumerate(values))

    def _shift(self, data: Mapping[str, Any], where: str) -> int:
        """The sensitivity in whole lattice steps."""
        shift = floor(_rational(data.get("sensitivity", "1"), f"{where}.sensitivity") / self.step)
        if shift < 1:
            step = brief(self.step)
            _reject(f"{where}.sensitivity", f"must be at least the step {step}: no two outputs would be compared")
        if shift > MAX_INDEX:
            _reject(f"{where}.sensitivity", f"makes more than {MAX_INDEX} steps")
        return shift

    def function(self, form: object, where: str) -> LatticeFunction:
        """A cost form such as ``"absolute"`` or ``{"power": "3"}`` as a function of the lattice index."""
        step = self.step
        named = {
            "absolute": LatticeFunction(0, (), (Fraction(0), -step), (Fraction(0), step)),
            "square": LatticeFunction.polynomial((0, 0, step**2)),
            "error": LatticeFunction(0, (Fraction(0),), (Fraction(1),), (Fraction(1),)),
            "value": LatticeFunction.polynomial((Fraction(0), step)),
        }
        if isinstance(form, str):
            if form not in named:
                _reject(where, f"must be one of {', '.join(named)} or an object, not {brief(form)}")
            return named[form]
        data = _object(form, where, (), ("power", "polynomial", "table", "outside"))
        if set(data) == {"power"}:
            power = _integer(data["power"], f"{where}.power", 0, MAX_DEGREE)
            lead = (Fraction(0),) * power
            return LatticeFunction(0, (), (*lead, (-step) ** power), (*lead, step**power))
        if set(data) == {"polynomial"}:
            coefficients = _list(data["polynomial"], f"{where}.polynomial", MAX_DEGREE + 1)
            read = [_rational(c, f"{where}.polynomial[{i}]") for i, c in enumerate(coefficients)]
            return LatticeFunction.polynomial([c * step**i for i, c in enumerate(read)])
        if "table" not in data or "power" in data or "polynomial" in data:
            _reject(where, "must have exactly one of 'power', 'polynomial' and 'table'")
        return self._table(data, where)

    def _table(self, data: Mapping[str, Any], where: str) -> LatticeFunction:
        rows = data["table"]
        if not isinstance(rows, Mapping) or not rows:
            _reject(f"{where}.table", f"must be an object with at least one point, not {brief(rows)}")
        found = {self._index(point, f"{where}.table"): _rational(v, f"{where}.table.{brief(point)}")
                 for point, v in rows.items()}  # fmt: skip
        if len(found) < len(rows):
            _reject(f"{where}.table", "names a point twice")
        low, high = _span(found, f"{where}.table")
        if "outside" in data:
            outside = _rational(data["outside"], f"{where}.outside")
        elif self.window is not None and all(k in found for k in range(self.window[0], self.window[1] + 1)):
            outside = Fraction(0)  # outside the support: never used
        else:
            _reject(where, "must have 'outside', or a finite support all of whose points are in the table")
        table = tuple(found.get(k, outside) for k in range(low, high + 1))
        return LatticeFunction(low, table, (outside,), (outside,))


# --- pieces of a problem -----------------------------------------------------------------------------------------


def _type(data: object, where: str) -> str:
    if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
        _reject(where, "must be an object with a 'type'")
    kind: str = data["type"]
    return kind


def _support(data: object, where: str) -> tuple[Fraction, tuple[int, int] | None]:
    if data is None:
        return Fraction(1), None
    kind = _type(data, where)
    if kind not in ("integers", "lattice"):
        _reject(f"{where}.type", f"must be 'integers' or 'lattice', not {brief(kind)}")
    record = _object(data, where, ("type", "step") if kind == "lattice" else ("type",), ("low", "high"))
    step = _rational(record["step"], f"{where}.step") if kind == "lattice" else Fraction(1)
    if step <= 0:
        _reject(f"{where}.step", f"must be positive, not {brief(step)}")
    ends = [record.get(end) for end in ("low", "high")]
    if ends == [None, None]:
        return step, None
    low, high = (_rational(end, f"{where}.{name}") / step for end, name in zip(ends, ("low", "high"), strict=True))
    if low.denominator != 1 or high.denominator != 1:
        _reject(where, f"low and high must be multiples of the step {brief(step)}")
    if max(abs(low), abs(high)) > MAX_INDEX:
        _reject(where, f"has an end more than {MAX_INDEX} steps from 0")
    if not low <= high < low + MAX_POINTS:
        _reject(where, f"must have from 1 to {MAX_POINTS} points, not low {brief(low)} and high {brief(high)}")
    return step, (low.numerator, high.numerator)


def _epsilon(value: object, where: str) -> Fraction:
    epsilon = _rational(value, where)
    if epsilon < 0:
        _reject(where, f"must be at least 0, not {brief(epsilon)}")
    try:
        exp_enclosure(epsilon, 1)
    except InputError as error:
        _reject(where, error.problem)
    return epsilon


def _tail_ratio(value: object, where: str) -> Fraction:
    if value is None:
        return Fraction(0)
    # a ratio 1/E_lo of high precision has more digits than `exact` reads
    quotient = _QUOTIENT.fullmatch(value) if isinstance(value, str) and len(value) <= _MAX_DIGITS else None
    ratio = Fraction(_digits(quotient[1]), _digits(quotient[2])) if quotient else _rational(value, where)
    if not 0 < ratio < 1:
        _reject(where, f"must lie strictly between 0 and 1, not {brief(ratio)}")
    return ratio


def _two_sides(data: Mapping[str, Any], where: str) -> tuple[Fraction | None, Fraction | None]:
    equals, low, high = (
        None if data.get(side) is None else _rational(data[side], f"{where}.{side}") for side in _SIDES
    )
    if equals is not None and (low is not None or high is not None):
        _reject(where, "has equals beside at_least or at_most")
    if equals is not None:
        return equals, equals
    if low is None and high is None:
        _reject(where, "needs equals, at_least or at_most")
    if low is not None and high is not None and low > high:
        _reject(where, f"has at_least {brief(low)} above at_most {brief(high)}")
    return low, high


def _span(points: Mapping[int, object] | frozenset[int], where: str) -> tuple[int, int]:
    low, high = min(points), max(points)
    if high - low >= MAX_POINTS:
        _reject(where, f"spans more than {MAX_POINTS} points")
    return low, high


def _distribution(data: object, where: str) -> Distribution:
    kind = _type(data, where)
    if kind == "poisson":
        data = _object(data, where, ("type", "rate"))
        return Poisson(_rational(data["rate"], f"{where}.rate"))
    if kind == "gaussian":
        data = _object(data, where, ("type", "mean", "sd"))
        return Gaussian(_rational(data["mean"], f"{where}.mean"), _rational(data["sd"], f"{where}.sd"))
    if kind == "uniform":
        data = _object(data, where, ("type", "low", "high"))
        return Uniform(_place(data["low"], f"{where}.low"), _place(data["high"], f"{where}.high"))
    if kind == "point":
        data = _object(data, where, ("type", "at"))
        return Point(_place(data["at"], f"{where}.at"))
    if kind == "table":
        data = _object(data, where, ("type", "low", "weights"))
        weights = _list(data["weights"], f"{where}.weights", MAX_POINTS)
        read = tuple(_rational(w, f"{where}.weights[{i}]") for i, w in enumerate(weights))
        return Table(_place(data["low"], f"{where}.low"), read)
    _reject(f"{where}.type", f"must be poisson, gaussian, uniform, point or table, not {brief(kind)}")


def _stored_function(source: object, where: str) -> LatticeFunction:
    """A function that is written out in lattice indices: a table and two polynomials."""
    data = _object(source, where, ("start", "table", "left", "right"))

    def numbers(key: str, most: int) -> tuple[Fraction, ...]:
        entries = _list(data[key], f"{where}.{key}", most)
        return tuple(_rational(v, f"{where}.{key}[{i}]") for i, v in enumerate(entries))

    start = _place(data["start"], f"{where}.start")
    sides = numbers("left", MAX_DEGREE + 1), numbers("right", MAX_DEGREE + 1)
    return LatticeFunction(start, numbers("table", MAX_POINTS), *sides)


def _trusted_terms(kind: str, source: object, where: str) -> Constraint:
    """The stored rows of a custom constraint; a `zero` row keeps its place among the terms, without bounds."""
    terms: list[Term] = []
    zeros: set[int] = set()
    for i, part in enumerate(_list(source, where, 10_000)):
        at = f"{where}[{i}]"
        name = part.get("term") if isinstance(part, Mapping) else None
        if name == "zero":
            indices = _list(_object(part, at, ("term", "indices"))["indices"], f"{at}.indices", MAX_POINTS)
            zeros.update(_place(k, f"{at}.indices[{j}]") for j, k in enumerate(indices))
            terms.append(Term(LatticeFunction()))
        elif name == "expectation":
            _object(part, at, ("term", "function", "at_least", "at_most"))
            sides = _two_sides({k: part[k] for k in ("at_least", "at_most")}, at)
            terms.append(Term(_stored_function(part["function"], f"{at}.function"), *sides))
        else:
            _reject(at, "must be an object with term 'expectation' or 'zero'")
    return Constraint(kind, "terms", tuple(terms), frozenset(zeros))


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
        data = _object(source, "multipliers", ("objective", "constraints", "chain"))
        slopes, events = self._objective(data["objective"], "multipliers.objective")
        where = "multipliers.constraints"
        entries = _object(data["constraints"], where, (), [str(i) for i in range(len(self.constraints))])
        read = {int(i): self._entry(entry, self.constraints[int(i)], f"{where}.{i}") for i, entry in entries.items()}
        return Multipliers(slopes, events, read, self._chain(data["chain"], "multipliers.chain"))

    def _objective(self, source: object, where: str) -> tuple[tuple[int, ...], tuple[Events, ...]]:
        objective = self.objective
        if source is None:
            return (), ()
        if self.infeasible or objective.form not in ("wasserstein", "delta"):
            kind = "an infeasibility proof" if self.infeasible else repr(objective.type)
            _reject(where, f"must be null: the objective of {kind} has no multipliers")
        if objective.form == "wasserstein":
            data = _object(_object(source, where, ("slopes",))["slopes"], f"{where}.slopes", ("start", "values"))
            if _integer(data["start"], f"{where}.slopes.start") != objective.start:
                _reject(f"{where}.slopes.start", f"must be the input's first point, index {objective.start}")
            values = _list(data["values"], f"{where}.slopes.values", len(objective.weights) - 1)
            one = 1 << self.scale  # a slope is at most 1 in absolute value
            read = (_integer(v, f"{where}.slopes.values[{i}]", -one, one) for i, v in enumerate(values))
            return tuple(read), ()
        events = self._events(_object(source, where, ("shifts",))["shifts"], objective.shift, f"{where}.shifts")
        if sum(e.bound for e in events) > 1 << self.scale:
            _reject(f"{where}.shifts", "has bounds with a sum above 1")
        return (), events

    def _entry(self, source: object, constraint: Constraint, where: str) -> Entry:
        if constraint.type == "forbidden":
            _reject(where, "must be absent: forbidden points have no multipliers")
        if constraint.form == "terms":
            values = _list(_object(source, where, ("values",))["values"], f"{where}.values")
            if len(values) != len(constraint.terms):
                _reject(f"{where}.values", f"must have {len(constraint.terms)} entries, not {len(values)}")
            return Entry(values=tuple(_integer(v, f"{where}.values[{i}]") for i, v in enumerate(values)))
        if constraint.form == "approx-dp":
            shifts = _object(source, where, ("shifts",))["shifts"]
            return Entry(events=self._events(shifts, constraint.shift, f"{where}.shifts"))
        pairs = _list(_object(source, where, ("pairs",))["pairs"], f"{where}.pairs")
        return Entry(pairs=tuple(self._pairs(pairs, constraint, f"{where}.pairs")))

    def _pairs(self, source: Sequence[Any], constraint: Constraint, where: str) -> Iterator[tuple[int, int, int]]:
        free = constraint.form == "symmetric"
        for at, row in enumerate(source):
            if not isinstance(row, list | tuple) or len(row) != (2 if free else 3):
                _reject(f"{where}[{at}]", "must be a list [k, y]" if free else "must be a list [i, j, y]")
            numbers = [_integer(number, f"{where}[{at}]") for number in row]
            i, j, y = (numbers[0], -numbers[0], numbers[1]) if free else (numbers[0], numbers[1], numbers[2])
            if y < 0 and not free:
                _reject(f"{where}[{at}]", f"has the negative multiplier {brief(y)}")
            if not self._legal(constraint, i, j):
                _reject(f"{where}[{at}]", f"is not a row of {constraint.type!r}: indices {brief(i)} and {brief(j)}")
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
        for i, part in enumerate(_list(source, where)):
            at = f"{where}[{i}]"
            data = _object(part, at, ("shift", "bound", "start", "events", "left", "right"))
            shift = _integer(data["shift"], f"{at}.shift", -most, most)
            if shift == 0 or shift in found:
                _reject(f"{at}.shift", "must not be 0" if shift == 0 else f"has {shift} for the second time")
            bound = _integer(data["bound"], f"{at}.bound", 0)
            left, right = (_integer(data[side], f"{at}.{side}", 0, bound) for side in ("left", "right"))
            weights = _list(data["events"], f"{at}.events", MAX_POINTS)
            read = [_integer(w, f"{at}.events[{k}]", 0, bound) for k, w in enumerate(weights)]
            found[shift] = Events(shift, bound, _place(data["start"], f"{at}.start"), read, left, right)
        return tuple(found.values())

    def _chain(self, source: object, where: str) -> Chain | None:
        if source is None:
            return None
        data = _object(source, where, ("constraint", "low", "high"))
        index = _integer(data["constraint"], f"{where}.constraint", 0, len(self.constraints) - 1)
        constraint = self.constraints[index]
        if constraint.form != "pure-dp" or self.window is not None:
            _reject(where, "must name a pure-dp constraint on an infinite support")
        if constraint.epsilon == 0:
            _reject(where, "needs epsilon above 0: with ratio 1 its sums do not converge")
        low, high = _place(data["low"], f"{where}.low"), _place(data["high"], f"{where}.high")
        if not constraint.shift <= high - low + 1 <= MAX_POINTS:
            points = brief(high - low + 1)
            _reject(where, f"must have a core of {constraint.shift} to {MAX_POINTS} points, not {points}")
        return Chain(index, low, high)
