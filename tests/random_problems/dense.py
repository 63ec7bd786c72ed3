"""The second method: a dense linear program from a problem's text, with none of the package's blocks, for SciPy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog


class Dense:
    """A dense linear program built from a problem's plain text, the obvious way."""

    def __init__(self, table: dict[str, Any]) -> None:
        support = table["support"]
        self.step = Fraction(support.get("step", 1))
        count = int((support["high"] - support["low"]) / self.step) + 1
        self.z = [support["low"] + i * self.step for i in range(count)]
        self.columns = count
        self.equal: list[tuple[dict[int, float], float]] = [(dict.fromkeys(range(count), 1.0), 1.0)]
        self.less: list[tuple[dict[int, float], float]] = []
        self.free_of_mass: set[int] = set()
        constraints = table["constraints"]
        means = [Fraction(c["equals"]) for c in constraints if c["type"] == "mean" and "equals" in c]
        self.mean = means[0] if means else Fraction(0)
        self.cost = self.objective(table["objective"])
        for constraint in constraints:
            self.add(constraint)

    def new(self, count: int) -> range:
        """More columns, non-negative."""
        self.columns += count
        return range(self.columns - count, self.columns)

    def bounded(self, values: list[Any], constraint: dict[str, Any]) -> None:
        """A row with its bound."""
        row = {i: float(v) for i, v in enumerate(values)}
        if "equals" in constraint:
            self.equal.append((row, float(Fraction(constraint["equals"]))))
        if "at_least" in constraint:
            self.less.append(({i: -v for i, v in row.items()}, -float(Fraction(constraint["at_least"]))))
        if "at_most" in constraint:
            self.less.append((row, float(Fraction(constraint["at_most"]))))

    def add(self, c: dict[str, Any]) -> None:
        """The rows of one constraint."""
        z, n = self.z, len(self.z)
        match c["type"]:
            case "mean":
                self.bounded(list(z), c)
            case "variance":
                self.bounded([(v - self.mean) ** 2 for v in z], c)
            case "second-moment":
                self.bounded([v**2 for v in z], c)
            case "expectation":
                self.bounded([abs(v) for v in z], c)
            case "probability" if isinstance(c["of"], dict):
                self.bounded([c["of"]["from"] <= v <= c["of"]["to"] for v in z], c)
            case "probability":
                self.bounded([v in c["of"] for v in z], c)
            case "random-tail-mass":
                self.bounded([abs(v) >= c["size"] for v in z], {"at_most": c["at_most"]})
            case "forbidden":
                self.free_of_mass |= {i for i, v in enumerate(z) if v in c["values"]}
            case "symmetric":
                for i, v in enumerate(z):
                    if -v in z:
                        if v < 0:
                            self.equal.append(({i: 1.0, z.index(-v): -1.0}, 0.0))
                    else:
                        self.free_of_mass.add(i)
            case "unimodal":
                for i in range(n - 1):
                    rising = z[i] < c["mode"]
                    self.less.append(({i: 1.0 if rising else -1.0, i + 1: -1.0 if rising else 1.0}, 0.0))
            case "pure-dp":
                grow = math.exp(float(Fraction(c["epsilon"])))
                shift = int(c["sensitivity"] / self.step)
                for i in range(n):
                    for j in range(max(0, i - shift), min(n, i + shift + 1)):
                        if i != j:
                            self.less.append(({i: 1.0, j: -grow}, 0.0))
            case "approx-dp":
                self.hockey_sticks(c, None, float(Fraction(c["delta"])))
            case other:
                raise AssertionError(other)

    def hockey_sticks(self, c: dict[str, Any], delta: int | None, limit: float) -> None:
        """For each shift and direction: slacks above p(k) - e^eps p(k - s), their sum at most delta."""
        n, grow = len(self.z), math.exp(float(Fraction(c["epsilon"])))
        shift = int(c["sensitivity"] / self.step)
        for s in (*range(1, shift + 1), *range(-shift, 0)):
            slack = self.new(n)
            for k in range(n):
                row = {k: 1.0, slack[k]: -1.0}
                if 0 <= k - s < n:
                    row[k - s] = -grow
                self.less.append((row, 0.0))
            total = dict.fromkeys(slack, 1.0)
            if delta is not None:
                total[delta] = -1.0
            self.less.append((total, limit))

    def objective(self, o: dict[str, Any]) -> dict[int, float]:
        """The cost of the columns."""
        z = self.z
        match o["type"]:
            case "max-entropy":
                return {}
            case "min-delta":
                (delta,) = self.new(1)
                self.hockey_sticks(o, delta, 0.0)
                return {delta: 1.0}
            case "min-wasserstein":
                return self.wasserstein(o["input"]["weights"])
        cost = o["cost"]
        if cost == "absolute":
            return {i: float(abs(v)) for i, v in enumerate(z)}
        if cost == "square":
            return {i: float(v * v) for i, v in enumerate(z)}
        if cost == "error":
            return {i: float(v != 0) for i, v in enumerate(z)}
        if "power" in cost:
            return {i: float(abs(v) ** cost["power"]) for i, v in enumerate(z)}
        table = {Fraction(k): v for k, v in cost["table"].items()}
        return {i: float(table.get(v, cost["outside"])) for i, v in enumerate(z)}

    def wasserstein(self, weights: list[int]) -> dict[int, float]:
        """One auxiliary for every cut of the whole output range, none left out."""
        mass = [w / sum(weights) for w in weights]
        low, high = self.z[0], self.z[-1] + len(weights) - 1
        cuts = [low + i * self.step for i in range(int((high - low) / self.step) + 1)]
        for cut in cuts:
            (t,) = self.new(1)
            here = sum(m for x, m in enumerate(mass) if x <= cut)
            after = {i: sum(m for x, m in enumerate(mass) if x + v <= cut) for i, v in enumerate(self.z)}
            self.less.append(({**after, t: -1.0}, here))
            self.less.append(({**{i: -v for i, v in after.items()}, t: -1.0}, -here))
            self.last = t
        first = self.last - len(cuts) + 1
        return dict.fromkeys(range(first, self.last + 1), float(self.step))

    def solve(self) -> tuple[str, float]:
        """'infeasible' or 'optimal' with the value, by SciPy's linprog as it comes."""

        def matrix(rows: list[tuple[dict[int, float], float]]) -> tuple[np.ndarray, np.ndarray]:
            dense = np.zeros((len(rows), self.columns))
            for r, (row, _) in enumerate(rows):
                for column, value in row.items():
                    dense[r, column] = value
            return dense, np.array([side for _, side in rows])

        cost = np.zeros(self.columns)
        for column, value in self.cost.items():
            cost[column] = value
        limits = [(0, 0 if i in self.free_of_mass else None) for i in range(self.columns)]
        a_eq, b_eq = matrix(self.equal)
        a_ub, b_ub = matrix(self.less) if self.less else (None, None)
        found = linprog(cost, A_ub=a_ub, b_ub=b_ub, A_eq=a_eq, b_eq=b_eq, bounds=limits)
        if found.status == 2:
            return "infeasible", math.nan
        assert found.status == 0, found.message
        return "optimal", float(found.fun)
