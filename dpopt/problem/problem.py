"""The question: support, objective, constraints, name. Data, with no method that solves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpopt.arithmetic import exact, exact_integer
from dpopt.distributions import Distribution
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.problem.constraints import Mean, PureDP, Variance
from dpopt.problem.costs import plain_number
from dpopt.problem.families.base import ObjectiveTerm, Term, TermCheck
from dpopt.problem.objectives import MaxEntropy, MinWasserstein
from dpopt.problem.parts import Check, Constraint, Objective, Setting, build, constraint_types, objective_types
from dpopt.problem.refusals import refuse_what_has_no_finite_answer
from dpopt.problem.support import Integers, Lattice, Support
from dpopt.reading import read_list, read_text
from dpopt.text import brief, closest

__all__ = ["Problem", "tablebuilder", "wasserstein"]

SUPPORT_TYPES: Mapping[str, type[Support]] = {cls.type: cls for cls in (Integers, Lattice)}


@dataclass(frozen=True)
class Problem:
    """A question about noise: which pmf on `support` meets the `constraints` at the best `objective`?

    Parameters
    ----------
    support : Support, optional
        `Integers` or `Lattice`; all integers when left out.
    objective : Objective
    constraints : sequence of Constraint
    name : str, optional

    Raises
    ------
    InputError
        A part is of the wrong type, or the question has no finite exact answer; the message names the way out.

    Examples
    --------
    >>> from dpopt.problem.constraints import Mean, Variance
    >>> from dpopt.problem.objectives import MaxEntropy
    >>> question = Problem(support=Integers(-11, 11), objective=MaxEntropy(),
    ...                    constraints=[Mean(0), Variance(at_most=4)])
    >>> question == Problem.from_dict(question.to_dict())
    True
    """

    support: Support
    objective: Objective
    constraints: tuple[Constraint, ...]
    name: str

    def __init__(
        self,
        *,
        objective: Objective,
        constraints: Iterable[Constraint] = (),
        support: Support | None = None,
        name: str = "",
    ) -> None:
        support = Integers() if support is None else support
        if not isinstance(support, Support):
            raise InputError("support", f"must be Integers(...) or Lattice(...), not {support!r}")
        if not isinstance(objective, Objective):
            raise InputError("objective", f"must be an objective such as MaxEntropy(), not {objective!r}")
        constraints = read_list(constraints, "constraints", "constraints")
        for i, constraint in enumerate(constraints):
            if not isinstance(constraint, Constraint):
                raise InputError(f"constraints[{i}]", f"must be a constraint such as Mean(0), not {constraint!r}")
        read_text(name, "name")
        for field, value in (
            ("support", support),
            ("objective", objective),
            ("constraints", constraints),
            ("name", name),
        ):
            object.__setattr__(self, field, value)
        refuse_what_has_no_finite_answer(self.support, self.objective_term, self.terms)

    # --- the exact question --------------------------------------------------------------------------------------

    @cached_property
    def setting(self) -> Setting:
        """What the constraints may know of each other: the support and the fixed mean."""
        centring = self.centring
        return Setting(self.support, None if centring is None else self.constraints[centring].fixed_mean)

    @property
    def centring(self) -> int | None:
        """The index of the constraint that fixes the mean: the first that does."""
        return next((i for i, c in enumerate(self.constraints) if c.fixed_mean is not None), None)

    @cached_property
    def objective_term(self) -> ObjectiveTerm:
        """The exact objective, in lattice steps."""
        try:
            found = self.objective.term(self.setting)
        except InputError as error:
            raise error.inside("objective") from None
        if not isinstance(found, ObjectiveTerm):
            raise InputError(
                "objective", _returned(self.objective, "term", "an objective term such as CostTerm", found)
            )
        return found

    @cached_property
    def terms(self) -> tuple[tuple[Term, ...], ...]:
        """The exact terms of each constraint, in lattice steps."""
        found = []
        for i, constraint in enumerate(self.constraints):
            try:
                terms = constraint.terms(self.setting)
            except InputError as error:
                raise error.inside(f"constraints[{i}]") from None
            if not isinstance(terms, tuple | list) or not all(isinstance(term, Term) for term in terms):
                wanted = "a tuple of terms such as (ExpectationTerm(function, at_most=1),)"
                raise InputError(f"constraints[{i}]", _returned(constraint, "terms", wanted, terms))
            found.append(tuple(terms))
        return tuple(found)

    @property
    def all_terms(self) -> tuple[Term, ...]:
        """The terms of all constraints, in their order."""
        return tuple(term for group in self.terms for term in group)

    @cached_property
    def constraint_names(self) -> tuple[str, ...]:
        """A name for each constraint: its type, numbered where a type occurs more than once."""
        count, seen, names = Counter(c.type for c in self.constraints), Counter[str](), []
        for constraint in self.constraints:
            seen[constraint.type] += 1
            number = f" {seen[constraint.type]}" if count[constraint.type] > 1 else ""
            names.append(constraint.type + number)
        return tuple(names)

    def check(self, pmf: Pmf) -> tuple[Check, ...]:
        """Check every constraint on `pmf`, exactly.

        Examples
        --------
        >>> from dpopt.problem.constraints import Mean
        >>> from dpopt.problem.objectives import MaxEntropy
        >>> question = Problem(support=Integers(-1, 1), objective=MaxEntropy(), constraints=[Mean(0)])
        >>> question.check(Pmf(-1, (1, 2, 1)))[0].holds
        True
        """
        found = []
        for i, (name, constraint) in enumerate(zip(self.constraint_names, self.constraints, strict=True)):
            result = constraint.check(pmf, self.setting)
            if not isinstance(result, TermCheck) or not isinstance(result.holds, bool):
                wanted = "a TermCheck(holds, margin)"
                raise InputError(f"constraints[{i}]", _returned(constraint, "check", wanted, result))
            found.append(Check(name, result.holds, result.margin))
        return tuple(found)

    # --- as text -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The TOML form as plain data."""
        table: dict[str, Any] = {"name": self.name} if self.name else {}
        if self.support != Integers():
            table["support"] = _support_plain(self.support)
        table["objective"] = self.objective.plain()
        if self.constraints:
            table["constraints"] = [c.plain() for c in self.constraints]
        return table

    def to_toml(self) -> str:
        """The problem as a TOML document that `load` reads back without loss."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Problem:
        """Build a problem from its TOML form; errors name the location."""
        known = {"name", "support", "objective", "constraints"}
        for key in table:
            if key not in known:
                raise InputError(str(key), f"is not a key of a problem{closest(str(key), known)}")
        if "objective" not in table:
            raise InputError("objective", "is missing: a problem needs [objective] with a type")
        entries = table.get("constraints", [])
        if not isinstance(entries, list):
            raise InputError("constraints", f"must be a list of tables ([[constraints]]), not {entries!r}")
        support = build("support", SUPPORT_TYPES, table["support"], "support") if "support" in table else None
        objective = build("objective", objective_types(), table["objective"], "objective")
        types = constraint_types()
        constraints = [build("constraint", types, e, f"constraints[{i}]") for i, e in enumerate(entries)]
        return cls(objective=objective, constraints=constraints, support=support, name=table.get("name", ""))


def _returned(part: object, method: str, wanted: str, found: object) -> str:
    """What an extension's method should have returned."""
    return f"{type(part).__name__}.{method} must return {wanted}, not {found!r}"


def _support_plain(support: Support) -> dict[str, Any]:
    table: dict[str, Any] = {"type": support.type}
    for key in ("step", "low", "high"):
        value = getattr(support, key)
        if value is not None and not (key == "step" and support.type == Integers.type):
            table[key] = plain_number(value)
    return table


def tablebuilder(D: int, V: object, *, name: str = "") -> Problem:  # noqa: N803  # the paper's letters
    """Max-entropy TableBuilder noise: support [-D, D], zero mean, variance at most V (ABS paper, (4)-(5)).

    Examples
    --------
    >>> tablebuilder(D=11, V=4).constraint_names
    ('mean', 'variance')
    """
    half = exact_integer(D, "D", at_least=0)
    bound = exact(V, "V")
    if bound < 0:
        raise InputError("V", f"must be at least 0, not {bound}")
    return Problem(
        support=Integers(Fraction(-half), Fraction(half)),
        objective=MaxEntropy(),
        constraints=[Mean(Fraction(0)), Variance(at_most=bound)],
        name=read_text(name, "name") or f"TableBuilder noise, D = {half}, V = {brief(bound)}",
    )


def wasserstein(
    *,
    input: Distribution | Pmf,  # noqa: A002  # the TOML key
    epsilon: object,
    sensitivity: object = 1,
    name: str = "",  # TOML key
) -> Problem:
    """The Wasserstein-minimising epsilon-DP noise on all integers for an input law (noise paper, P1).

    Examples
    --------
    >>> from dpopt.distributions import poisson
    >>> wasserstein(input=poisson(10), epsilon=2, sensitivity=15).support.is_finite
    False
    """
    return Problem(
        objective=MinWasserstein(input),  # type: ignore[arg-type]  # the constructor reads a Pmf as well
        constraints=[PureDP(epsilon, sensitivity)],  # type: ignore[arg-type]  # reads any exact number
        name=name,
    )
