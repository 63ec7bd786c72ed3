"""The objectives that dpopt ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpopt.arithmetic import exact, read_epsilon
from dpopt.distributions import Distribution, Gaussian, Point, Poisson, Table, Uniform
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.constraints import read_sensitivity
from dpopt.problem.costs import Cost, plain_number, read_cost
from dpopt.problem.families.base import ObjectiveTerm
from dpopt.problem.families.cost import CostTerm, EntropyTerm
from dpopt.problem.families.hockey_stick import MinDeltaTerm
from dpopt.problem.families.wasserstein import WassersteinTerm
from dpopt.problem.parts import AskedPrivacy, Objective, Setting, build, register_objective

__all__ = [
    "INPUT_TYPES",
    "Cut",
    "MaxEntropy",
    "MinDelta",
    "MinExpectedCost",
    "MinWasserstein",
    "MinWassersteinRelaxation",
]

INPUT_TYPES: Mapping[str, type[Distribution]] = {cls.type: cls for cls in (Poisson, Gaussian, Uniform, Point, Table)}


@register_objective
@dataclass(frozen=True)
class MaxEntropy(Objective):
    """Maximise the entropy, in nats (ABS paper, equation (4)).

    Examples
    --------
    >>> MaxEntropy().plain()
    {'type': 'max-entropy'}
    """

    type: ClassVar[str] = "max-entropy"
    label: ClassVar[str] = "entropy"

    def term(self, setting: Setting) -> ObjectiveTerm:
        return EntropyTerm()


@register_objective
@dataclass(frozen=True)
class MinExpectedCost(Objective):
    """Minimise E cost(Z).

    Parameters
    ----------
    cost : cost form
        See `Expectation`; a function of the noise value in data units.

    Examples
    --------
    >>> MinExpectedCost("absolute").plain()
    {'type': 'min-expected-cost', 'cost': 'absolute'}
    """

    cost: Cost | str | Mapping[str, Any]
    type: ClassVar[str] = "min-expected-cost"
    label: ClassVar[str] = "expected cost"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", read_cost(self.cost, "cost"))

    def term(self, setting: Setting) -> ObjectiveTerm:
        return CostTerm(read_cost(self.cost, "cost").on(setting.support))


@register_objective
@dataclass(frozen=True)
class MinWasserstein(Objective):
    """Minimise the 1-Wasserstein distance between the input and input plus noise, in data units.

    This is the noise paper's P1, solved exactly: it is convex. (Its relaxation P2 is `MinWassersteinRelaxation`.)

    Parameters
    ----------
    input : Distribution or Pmf
        The input's law on the integers.

    Examples
    --------
    >>> from dpopt.distributions import poisson
    >>> MinWasserstein(poisson(10)).plain()
    {'type': 'min-wasserstein', 'input': {'type': 'poisson', 'rate': 10}}
    """

    input: Distribution
    type: ClassVar[str] = "min-wasserstein"
    label: ClassVar[str] = "Wasserstein"

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", _read_input(self.input))

    def term(self, setting: Setting) -> ObjectiveTerm:
        return WassersteinTerm(_on_lattice(self.input.pmf, setting.support.step))


@dataclass(frozen=True)
class Cut:
    """The cuts k from `low` to `high`, in data units: as far as a sum over cuts goes."""

    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@register_objective
@dataclass(frozen=True)
class MinWassersteinRelaxation(Objective):
    """Minimise P2, the noise paper's linear relaxation of W1 (equations (32), (33)): E of sum_k |F(k) - F(k - Z)|.

    F does not fall, so the sum over all cuts k is |j| at Z = j whatever the input: P2 is E|Z|. With `cut` only the cuts
    from..to are summed, as in a program that is cut to a window; the cost of j then levels off, at the sum of F for
    large j and of 1 - F for large -j, and P2 depends on the input and no longer bounds W1 from above.

    Parameters
    ----------
    input : Distribution or Pmf
        The input's law on the integers.
    cut : mapping, optional
        ``{"from": a, "to": b}`` in data units; all cuts when left out.

    Examples
    --------
    >>> from dpopt.distributions import gaussian
    >>> from dpopt.problem.support import Integers
    >>> cut = MinWassersteinRelaxation(gaussian(0, 5), cut={"from": -20, "to": 20})
    >>> cost = cut.term(Setting(Integers(), None)).cost
    >>> [round(float(cost(j)), 2) for j in (15, 30, 60)]
    [14.72, 20.93, 21.0]
    """

    input: Distribution
    cut: Any = None  # {from, to}; a Cut once validated
    type: ClassVar[str] = "min-wasserstein-relaxation"
    label: ClassVar[str] = "relaxation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", _read_input(self.input))
        object.__setattr__(self, "cut", _read_cut(self.cut))

    def plain(self) -> dict[str, Any]:
        """The TOML form."""
        table = {key: value for key, value in super().plain().items() if key != "cut"}
        if self.cut is not None:
            table["cut"] = {"from": plain_number(self.cut.low), "to": plain_number(self.cut.high)}
        return table

    def term(self, setting: Setting) -> ObjectiveTerm:
        step = setting.support.step
        pmf = _on_lattice(self.input.pmf, step)
        if self.cut is None:
            return CostTerm(read_cost("absolute", "cost").on(setting.support))
        first, last = -int(-self.cut.low // step), int(self.cut.high // step)
        if max(last - pmf.start, pmf.end - first) > _FARTHEST_CUT:
            raise InputError("cut", f"must end within {_FARTHEST_CUT} lattice points of the input, not at {self.cut}")
        return CostTerm(_cost_of_cuts(pmf, first, last))


_FARTHEST_CUT = 100_000  # the cost is a table over noise values that reach from the input to the cuts


def _read_cut(given: object) -> Cut | None:
    if given is None or isinstance(given, Cut):
        return given
    if not isinstance(given, Mapping) or set(given) != {"from", "to"}:
        raise InputError("cut", f"must be {{from = a, to = b}}, not {given!r}")
    low, high = exact(given["from"], "cut.from"), exact(given["to"], "cut.to")
    if low > high:
        raise InputError("cut.from", f"must not exceed cut.to = {high}, not {low}")
    return Cut(low, high)


def _cost_of_cuts(pmf: Pmf, first: int, last: int) -> LatticeFunction:
    """The step times the sum over k = first..last of |F(k) - F(k - j)|, as a function of the noise index j.

    With S the running sum of F, the sum is S over first..last less S over first - j..last - j, up to the sign of j.
    """
    start, end, step = pmf.start, pmf.end, pmf.step / pmf.total
    running = [0]  # of F at start, start + 1, ..., end - 1; F is 0 before them and 1 after
    for value in pmf.cumulative()[:-1]:
        running.append(running[-1] + value)
    full = pmf.total.numerator

    def below(k: int) -> int:
        """The sum of F over all points up to k, in units of the total."""
        inside = running[min(max(k - start + 1, 0), len(running) - 1)]
        return inside + full * max(k - end + 1, 0)

    here = below(last) - below(first - 1)
    lowest, highest = first - end, last - start  # F(k - j) is 1 for all cuts at j <= lowest, 0 for j > highest
    table = [step * abs(here - below(last - j) + below(first - 1 - j)) for j in range(lowest, highest + 1)]
    count = (last - first + 1) * full
    return LatticeFunction(lowest, tuple(table), (step * (count - here),), (step * here,))


def _read_input(given: object) -> Distribution:
    """An input law: a distribution, a finite pmf on the integers, or the TOML form of one."""
    if isinstance(given, Distribution) and given.type not in INPUT_TYPES:
        given = given.pmf  # named noise: a table where it is finite and on the integers
    if isinstance(given, Pmf):
        if given.tails is not None or given.step != 1:
            raise InputError(
                "input",
                "must be finite and on the integers (step 1, no tails): give a table of its masses on a window, or "
                "gaussian, poisson or uniform",
            )
        given = Table(given.start, given.weights)  # type: ignore[arg-type]  # reads any exact numbers
    elif isinstance(given, Mapping):
        given = build("input", INPUT_TYPES, given, "input")
    if not isinstance(given, Distribution):
        raise InputError("input", f"must be a distribution such as dpopt.poisson(10) or a Pmf, not {given!r}")
    return given


def _on_lattice(pmf: Pmf, step: Fraction) -> Pmf:
    """An input on the integers, written on the indices of a lattice that holds them."""
    if step == 1:
        return pmf
    if step.numerator != 1:
        raise InputError("input", f"lives on the integers, which must be lattice points: the step {step} must be 1/n")
    spread = step.denominator  # an integer point i has index i * n
    weights = [0] * ((len(pmf.weights) - 1) * spread + 1)
    weights[::spread] = pmf.weights
    return Pmf(pmf.start * spread, weights, step)


@register_objective
@dataclass(frozen=True)
class MinDelta(Objective):
    """Minimise the delta at which the noise is (epsilon, delta)-DP.

    Examples
    --------
    >>> MinDelta(epsilon="1/2").plain()
    {'type': 'min-delta', 'epsilon': '1/2'}
    """

    epsilon: Fraction
    sensitivity: Fraction = Fraction(1)
    type: ClassVar[str] = "min-delta"
    label: ClassVar[str] = "delta"

    @property
    def asked_privacy(self) -> AskedPrivacy:
        return AskedPrivacy(self.epsilon, self.sensitivity)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "sensitivity", read_sensitivity(self.sensitivity))

    def term(self, setting: Setting) -> ObjectiveTerm:
        return MinDeltaTerm(self.epsilon, setting.shift(self.sensitivity))
