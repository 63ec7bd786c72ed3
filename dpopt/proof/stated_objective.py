"""Reading the objective that a certificate states: what it costs, in lattice indices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal

from dpopt.distributions import Distribution, Gaussian, Point, Poisson, Table, Uniform
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.proof.reading import (
    MAX_POINTS,
    Lattice,
    brief,
    read_epsilon,
    read_function,
    read_index,
    read_object,
    read_rational,
    read_rationals,
    read_type,
    reject,
)

__all__ = ["Objective", "ObjectiveReader"]


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
class ObjectiveReader:
    """The methods turn an objective's data into lattice indices."""

    lattice: Lattice

    def read(self, data: object, trusted: object, where: str) -> Objective:
        """The objective; a custom one costs what its trusted function says."""
        kind = read_type(data, where)
        assert isinstance(data, Mapping)
        readers = {
            "max-entropy": self._max_entropy,
            "min-expected-cost": self._min_cost,
            "min-wasserstein": self._min_wasserstein,
            "min-wasserstein-relaxation": self._min_relaxation,
            "min-delta": self._min_delta,
        }
        if kind in readers:
            if trusted is not None:
                reject("trusted.objective", f"must be absent: {kind!r} is not a custom type")
            return readers[kind](data, where)
        if trusted is None:
            reject(where, f"has the custom type {brief(kind)}, whose cost must be given in trusted.objective")
        term = read_object(trusted, "trusted.objective", ("term", "function"))
        if term["term"] != "cost":
            reject("trusted.objective.term", f"must be 'cost', not {brief(term['term'])}")
        return Objective(kind, "linear", read_function(term["function"], "trusted.objective.function"))

    def _max_entropy(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type",))
        self.lattice.needs_window("max-entropy", where)
        return Objective("max-entropy", "entropy")

    def _min_cost(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type", "cost"))
        return Objective("min-expected-cost", "linear", self.lattice.function(data["cost"], f"{where}.cost"))

    def _min_wasserstein(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type", "input"))
        start, weights = self._input(data["input"], f"{where}.input")
        return Objective("min-wasserstein", "wasserstein", start=start, weights=weights)

    def _min_relaxation(self, data: Mapping[str, Any], where: str) -> Objective:
        """E of the sum over the cuts k of |F(k) - F(k - Z)|: |Z| when all cuts count."""
        kind = "min-wasserstein-relaxation"
        read_object(data, where, ("type", "input"), ("cut",))
        start, weights = self._input(data["input"], f"{where}.input")
        if data.get("cut") is None:
            return Objective(kind, "linear", self.lattice.function("absolute", where))
        where = f"{where}.cut"
        cut, step = read_object(data["cut"], where, ("from", "to")), self.lattice.step
        low, high = (read_rational(cut[end], f"{where}.{end}") for end in ("from", "to"))
        first, last = math.ceil(low / step), math.floor(high / step)
        if low > high or max(last - start, start + len(weights) - first) > MAX_POINTS:
            reject(where, f"must go upward and end within {MAX_POINTS} lattice points of the input")
        return Objective(kind, "linear", _cost_of_cuts(start, weights, first, last, step))

    def _input(self, data: object, where: str) -> tuple[int, tuple[int, ...]]:
        """The input's weights on the lattice, from the first mass to the last, and the index of the first."""
        if self.lattice.step.numerator != 1:
            reject(where, f"needs the integers, which the lattice of step {brief(self.lattice.step)} does not contain")
        fine = self.lattice.step.denominator  # lattice points from one integer to the next
        try:
            pmf = _distribution(data, where).pmf
        except InputError as error:
            raise error.inside(where) from None
        if len(pmf.weights) * fine > MAX_POINTS:
            reject(where, f"makes more than {MAX_POINTS} lattice points")
        weights = [0] * ((len(pmf.weights) - 1) * fine + 1)
        weights[::fine] = pmf.weights
        first = next(i for i, w in enumerate(weights) if w)
        last = max(i for i, w in enumerate(weights) if w)
        return pmf.start * fine + first, tuple(weights[first : last + 1])

    def _min_delta(self, data: Mapping[str, Any], where: str) -> Objective:
        read_object(data, where, ("type", "epsilon"), ("sensitivity",))
        self.lattice.needs_window("min-delta", where)
        epsilon = read_epsilon(data["epsilon"], f"{where}.epsilon")
        return Objective("min-delta", "delta", epsilon=epsilon, shift=self.lattice.shift(data, where))


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


def _cost_of_cuts(start: int, weights: Sequence[int], first: int, last: int, step: Fraction) -> LatticeFunction:
    """The step times the sum over k = first..last of |F(k) - F(k - j)|, by its increments in j from 0 outward."""
    below = [0, *accumulate(weights)]

    def crossed(k: int) -> int:
        """The weight of the points k - (last - first)..k."""
        upto, before = (min(max(i - start + 1, 0), len(weights)) for i in (k, k - (last - first) - 1))
        return below[upto] - below[before]

    right, left = max(last - start + 1, 0), max(start + len(weights) - first, 0)  # no increments beyond these
    outward = list(accumulate((crossed(last - j) for j in range(right)), initial=0))
    inward = list(accumulate((crossed(last + j) for j in range(1, left + 1)), initial=0))
    scale = step / below[-1]
    table = tuple(scale * value for value in [*reversed(inward[1:]), *outward])
    return LatticeFunction(-left, table, (scale * inward[-1],), (scale * outward[-1],))
