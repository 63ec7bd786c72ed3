"""The constraints that dpopt ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

from dpopt.arithmetic import exact, read_epsilon
from dpopt.errors import InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.privacy.shifts import positive_sensitivity
from dpopt.problem.costs import Cost, indicator, plain_number, read_cost
from dpopt.problem.families.base import Term
from dpopt.problem.families.expectation import ExpectationTerm
from dpopt.problem.families.hockey_stick import HockeyStickTerm
from dpopt.problem.families.mirror import MirrorTerm
from dpopt.problem.families.order import OrderTerm
from dpopt.problem.families.ratio import RatioTerm
from dpopt.problem.families.zero import ZeroTerm
from dpopt.problem.parts import AskedPrivacy, Constraint, Setting, register_constraint
from dpopt.reading import read_list, read_numbers

__all__ = [
    "ApproxDP",
    "Boundary",
    "Expectation",
    "Forbidden",
    "Mean",
    "Probability",
    "PureDP",
    "SecondMoment",
    "Symmetric",
    "Unimodal",
    "Variance",
]


def _set(part: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(part, name, value)


def read_sensitivity(value: object) -> Fraction:
    """A sensitivity in data units: exact and positive."""
    return positive_sensitivity(value)


@dataclass(frozen=True)
class _Bounded(Constraint):
    """An expectation with ``equals``, or ``at_least`` and / or ``at_most``."""

    equals: Fraction | None = None
    _: KW_ONLY
    at_least: Fraction | None = None
    at_most: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("equals", "at_least", "at_most"):
            if getattr(self, name) is not None:
                _set(self, **{name: exact(getattr(self, name), name)})
        if self.equals is None and self.at_least is None and self.at_most is None:
            raise InputError("equals", "is missing: give equals, at_least or at_most")
        if self.equals is not None and not (self.at_least is None and self.at_most is None):
            raise InputError("equals", "excludes at_least and at_most: give one or the other")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise InputError("at_least", f"must not exceed at_most = {self.at_most}, not {self.at_least}")

    def function(self, setting: Setting) -> LatticeFunction:
        """The function whose expectation is bounded, on lattice indices."""
        raise TypeError(f"{type(self).__name__} must override function(setting)")

    def terms(self, setting: Setting) -> tuple[Term, ...]:
        low = self.at_least if self.equals is None else self.equals
        high = self.at_most if self.equals is None else self.equals
        return (ExpectationTerm(self.function(setting), low, high),)


@register_constraint
@dataclass(frozen=True)
class Expectation(_Bounded):
    """``at_least <= E of(Z) <= at_most``: the general linear constraint.

    Parameters
    ----------
    equals, at_least, at_most : number, optional
        Exact, in the units of `of`.
    of : cost form
        ``"absolute"``, ``"square"``, ``"error"``, ``"value"``, ``{"power": p}``, ``{"polynomial": [...]}`` or
        ``{"table": {...}, "outside": ...}``; a function of the noise value in data units.

    Examples
    --------
    >>> Expectation(of="absolute", at_most=2).plain()
    {'type': 'expectation', 'at_most': 2, 'of': 'absolute'}
    """

    of: Cost | str | Mapping[str, Any] = "absolute"
    type: ClassVar[str] = "expectation"

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, of=read_cost(self.of, "of"))

    def plain(self) -> dict[str, Any]:
        """The TOML form; `of` is always written."""
        return {**super().plain(), "of": self.cost.plain()}

    @property
    def cost(self) -> Cost:
        """`of`, validated."""
        return read_cost(self.of, "of")

    def function(self, setting: Setting) -> LatticeFunction:
        return self.cost.on(setting.support)


@register_constraint
@dataclass(frozen=True)
class Mean(_Bounded):
    """Bounds on E Z.

    Examples
    --------
    >>> Mean(0).plain()
    {'type': 'mean', 'equals': 0}
    """

    type: ClassVar[str] = "mean"

    @property
    def fixed_mean(self) -> Fraction | None:
        return self.equals

    def function(self, setting: Setting) -> LatticeFunction:
        return read_cost("value", "of").on(setting.support)


@register_constraint
@dataclass(frozen=True)
class SecondMoment(_Bounded):
    """Bounds on E Z^2.

    Examples
    --------
    >>> SecondMoment(at_most=4).at_most
    Fraction(4, 1)
    """

    type: ClassVar[str] = "second-moment"

    def function(self, setting: Setting) -> LatticeFunction:
        return read_cost("square", "of").on(setting.support)


@register_constraint
@dataclass(frozen=True)
class Variance(_Bounded):
    """Bounds on the variance, in a problem that fixes the mean (the variance of a free mean is not convex).

    The row is E (Z - c)^2 with c the fixed mean.

    Examples
    --------
    >>> Variance(at_most=4).plain()
    {'type': 'variance', 'at_most': 4}
    """

    type: ClassVar[str] = "variance"
    is_centred: ClassVar[bool] = True

    def function(self, setting: Setting) -> LatticeFunction:
        centre = setting.fixed_mean
        if centre is None:
            raise InputError(
                "variance", "needs a fixed mean (it is not convex without one): add a mean with equals, or symmetric"
            )
        return read_cost({"polynomial": [centre**2, -2 * centre, 1]}, "of").on(setting.support)


@register_constraint
@dataclass(frozen=True)
class Probability(_Bounded):
    """Bounds on P(Z in set); the set is a list of values or ``{"from": a, "to": b}`` with either end open.

    Examples
    --------
    >>> Probability(of=[0], at_least="1/2").plain()
    {'type': 'probability', 'at_least': '1/2', 'of': [0]}
    """

    of: Any = None  # a list of values or {from, to}; a tuple or a range once validated
    type: ClassVar[str] = "probability"

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "must be a list of values or {from = a, to = b}"
        if isinstance(self.of, Mapping):
            if not self.of or not set(self.of) <= {"from", "to"}:
                raise InputError("of", f"{wanted}, not {dict(self.of)!r}")
            ends = tuple(exact(self.of[k], f"of.{k}") if k in self.of else None for k in ("from", "to"))
            if None not in ends and ends[0] > ends[1]:  # type: ignore[operator]  # both are numbers here
                raise InputError("of.from", f"must not exceed of.to = {ends[1]}, not {ends[0]}")
            _set(self, of=_Range(*ends))
        elif isinstance(self.of, _Range):
            return
        else:
            values = read_numbers(read_list(self.of, "of", "values or {from = a, to = b}"), "of")
            if not values:
                raise InputError("of", "must name at least one value")
            _set(self, of=values)

    def plain(self) -> dict[str, Any]:
        """The TOML form."""
        return {**super().plain(), "of": self._plain_set()}

    def _plain_set(self) -> Any:
        if isinstance(self.of, _Range):
            ends = (("from", self.of.low), ("to", self.of.high))
            return {key: plain_number(end) for key, end in ends if end is not None}
        return [plain_number(v) for v in self.of]

    def function(self, setting: Setting) -> LatticeFunction:
        support = setting.support
        if not isinstance(self.of, _Range):
            return indicator([support.index(v, "of") for v in self.of])
        one, step = (Fraction(1),), support.step
        low = None if self.of.low is None else -int(-self.of.low // step)
        high = None if self.of.high is None else int(self.of.high // step)
        if low is None and high is None:
            return LatticeFunction.constant(1)
        if high is None:
            return LatticeFunction(low or 0, (), right=one)
        if low is None:
            return LatticeFunction(high + 1, (), left=one)
        return LatticeFunction(low, one * max(high - low + 1, 0))


@dataclass(frozen=True)
class _Range:
    """A closed interval, open where an end is None."""

    low: Fraction | None
    high: Fraction | None


@register_constraint
@dataclass(frozen=True)
class Forbidden(Constraint):
    """No mass at these values (data units).

    Examples
    --------
    >>> Forbidden([1, -1]).values
    (Fraction(-1, 1), Fraction(1, 1))
    """

    values: tuple[Fraction, ...]
    type: ClassVar[str] = "forbidden"

    def __post_init__(self) -> None:
        values = tuple(sorted(set(read_numbers(self.values, "values"))))
        if not values:
            raise InputError("values", "must name at least one value")
        _set(self, values=values)

    def terms(self, setting: Setting) -> tuple[Term, ...]:
        return (ZeroTerm(tuple(setting.support.index(v, "values") for v in self.values)),)


@register_constraint
@dataclass(frozen=True)
class Symmetric(Constraint):
    """p(-z) = p(z) for all z; it fixes the mean at 0.

    Examples
    --------
    >>> Symmetric().plain()
    {'type': 'symmetric'}
    """

    type: ClassVar[str] = "symmetric"

    @property
    def fixed_mean(self) -> Fraction | None:
        return Fraction(0)

    def terms(self, setting: Setting) -> tuple[Term, ...]:
        return (MirrorTerm(),)


@register_constraint
@dataclass(frozen=True)
class Unimodal(Constraint):
    """Non-decreasing up to the mode and non-increasing after it. Never imposed unless asked.

    Examples
    --------
    >>> Unimodal().mode
    Fraction(0, 1)
    """

    mode: Fraction = Fraction(0)
    type: ClassVar[str] = "unimodal"

    def __post_init__(self) -> None:
        _set(self, mode=exact(self.mode, "mode"))

    def terms(self, setting: Setting) -> tuple[Term, ...]:
        return (OrderTerm(setting.support.index(self.mode, "mode")),)


class Boundary(StrEnum):
    """How pure DP reads the ends of a support."""

    EXACT = "exact"
    WINDOW = "window"


@register_constraint
@dataclass(frozen=True)
class PureDP(Constraint):
    """``p(i) <= e^epsilon p(j)`` for all points i, j at most `sensitivity` apart (noise paper, Theorem 1).

    ``boundary="window"`` compares points inside a finite support only, as the paper's finite programs do; such noise
    is not epsilon-DP, and its solution reports the (epsilon, delta) it really has.

    Examples
    --------
    >>> PureDP(epsilon=1, sensitivity=5).plain()
    {'type': 'pure-dp', 'epsilon': 1, 'sensitivity': 5}
    """

    epsilon: Fraction
    sensitivity: Fraction = Fraction(1)
    boundary: Boundary = Boundary.EXACT
    type: ClassVar[str] = "pure-dp"

    @property
    def asked_privacy(self) -> AskedPrivacy:
        return AskedPrivacy(self.epsilon, self.sensitivity, self.boundary is Boundary.EXACT)

    def __post_init__(self) -> None:
        _set(self, epsilon=read_epsilon(self.epsilon), sensitivity=read_sensitivity(self.sensitivity))
        if not isinstance(self.boundary, str) or self.boundary not in set(Boundary):
            raise InputError("boundary", f"must be 'exact' or 'window', not {self.boundary!r}")
        _set(self, boundary=Boundary(self.boundary))

    def terms(self, setting: Setting) -> tuple[Term, ...]:
        shift = setting.shift(self.sensitivity)
        return (RatioTerm(self.epsilon, shift, inside_window=self.boundary is Boundary.WINDOW),)


@register_constraint
@dataclass(frozen=True)
class ApproxDP(Constraint):
    """``sum (p(k) - e^epsilon p(k - s))+ <= delta`` for all shifts up to the sensitivity, both directions.

    Examples
    --------
    >>> ApproxDP(epsilon=1, delta="1e-6").delta
    Fraction(1, 1000000)
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction = Fraction(1)
    type: ClassVar[str] = "approx-dp"

    @property
    def asked_privacy(self) -> AskedPrivacy:
        return AskedPrivacy(self.epsilon, self.sensitivity)

    def __post_init__(self) -> None:
        number = exact(self.delta, "delta")
        if not 0 < number <= 1:
            raise InputError("delta", f"must lie between 0 and 1, not {number}; for delta = 0 ask for pure-dp")
        _set(self, epsilon=read_epsilon(self.epsilon), delta=number, sensitivity=read_sensitivity(self.sensitivity))

    def terms(self, setting: Setting) -> tuple[Term, ...]:
        shift = setting.shift(self.sensitivity)
        return (HockeyStickTerm(self.epsilon, shift, self.delta),)
