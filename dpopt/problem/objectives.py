"""The objectives that dpopt ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpopt.distributions import Distribution, Gaussian, Point, Poisson, Table, Uniform
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.privacy.divergence import lattice_shift
from dpopt.problem.constraints import read_epsilon, read_sensitivity
from dpopt.problem.costs import Cost, read_cost
from dpopt.problem.parts import Objective, Setting, build, register_objective
from dpopt.problem.terms import CostTerm, EntropyTerm, MinDeltaTerm, ObjectiveTerm, WassersteinTerm

__all__ = ["INPUT_TYPES", "MaxEntropy", "MinDelta", "MinExpectedCost", "MinWasserstein"]

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", read_cost(self.cost, "cost"))

    def term(self, setting: Setting) -> ObjectiveTerm:
        return CostTerm(read_cost(self.cost, "cost").on(setting.support))


@register_objective
@dataclass(frozen=True)
class MinWasserstein(Objective):
    """Minimise the 1-Wasserstein distance between the input and input plus noise, in data units.

    This is the noise paper's P1, solved exactly: it is convex. (Its relaxation P2 is E|Z| on all integers.)

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

    def __post_init__(self) -> None:
        given: object = self.input
        if isinstance(given, Pmf):
            if given.tails is not None or given.step != 1:
                raise InputError("input", "must be a finite pmf on the integers (step 1, no tails)")
            given = Table(given.start, given.weights)  # type: ignore[arg-type]  # reads any exact numbers
        elif isinstance(given, Mapping):
            given = build("input", INPUT_TYPES, given, "input")
        if not isinstance(given, Distribution):
            raise InputError("input", f"must be a distribution such as dpopt.poisson(10) or a Pmf, not {given!r}")
        object.__setattr__(self, "input", given)

    def term(self, setting: Setting) -> ObjectiveTerm:
        pmf, step = self.input.pmf, setting.support.step
        if step == 1:
            return WassersteinTerm(pmf)
        if step.numerator != 1:
            raise InputError(
                "input", f"lives on the integers, which must be lattice points: the step {step} must be 1/n"
            )
        spread = step.denominator  # an integer point i has index i * n
        weights = [0] * ((len(pmf.weights) - 1) * spread + 1)
        weights[::spread] = pmf.weights
        return WassersteinTerm(Pmf(pmf.start * spread, weights, step))


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "sensitivity", read_sensitivity(self.sensitivity))

    def term(self, setting: Setting) -> ObjectiveTerm:
        return MinDeltaTerm(self.epsilon, lattice_shift(self.sensitivity, setting.support.step))
