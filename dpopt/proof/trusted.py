"""What a certificate takes on trust: the rows that stand for constraints and objectives that dpopt does not ship.

The checker cannot know what a custom type means; it believes the stored rows. Whoever has the definition, as a plugin,
can have the rows derived from it again and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpopt.errors import CertificateError, InputError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf
from dpopt.problem.families.base import Term
from dpopt.problem.families.cost import CostTerm
from dpopt.problem.families.expectation import ExpectationTerm
from dpopt.problem.families.zero import ZeroTerm
from dpopt.problem.problem import Problem

__all__ = ["ROW", "as_text", "confirm", "trusted_rows"]

ROW = 0  # of the only law that a problem has

_SHIPPED = "dpopt.problem."  # constraints and objectives defined elsewhere are stated by their rows


def trusted_rows(problem: Problem) -> dict[str, Any]:
    """The exact rows of constraints and objectives that dpopt does not ship; empty when it ships them all."""
    trusted: dict[str, Any] = {}
    if not type(problem.objective).__module__.startswith(_SHIPPED):
        term = problem.objective_term
        if isinstance(term, CostTerm):
            trusted["objective"] = {"term": "cost", "function": _function(term.of)}
    rows = {
        str(i): [_term(term) for term in terms]
        for i, (constraint, terms) in enumerate(zip(problem.constraints, problem.terms, strict=True))
        if not type(constraint).__module__.startswith(_SHIPPED)
    }
    if rows:
        trusted["constraints"] = rows
    return trusted


def confirm(certificate: Mapping[str, Any]) -> None:
    """Derive the trusted rows again from the types that are registered here, and ask every constraint's own check.

    Parameters
    ----------
    certificate : mapping
        The data of a certificate that `dpopt.verify` has accepted.

    Raises
    ------
    CertificateError
        A type is not registered, its rows are not the stored ones, or its own check refuses the pmf.

    Examples
    --------
    >>> import dpopt as dp
    >>> confirm(dp.solve(dp.tablebuilder(D=2, V=1)).certificate.data)
    """
    if certificate.get("kind") == "target":
        return  # targets know shipped types only
    try:
        problem = Problem.from_dict(certificate["problem"])
    except InputError as error:
        raise CertificateError(f"problem.{error}") from None
    if as_text(trusted_rows(problem)) != (certificate.get("trusted") or {}):
        raise CertificateError("trusted: the stored rows are not the ones that these definitions give")
    if certificate.get("laws") is None:
        return
    for check in problem.check(Pmf.from_dict(certificate["laws"][0])):
        if not check.holds:
            raise CertificateError(f"problem.constraints: the pmf does not meet '{check.constraint}'")


def as_text(value: Any) -> Any:
    """Every exact number as a string: JSON readers may not keep large integers."""
    if isinstance(value, Mapping):
        return {str(k): as_text(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_text(v) for v in value]
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return str(value)
    return value


def _term(term: Term) -> dict[str, Any]:
    if isinstance(term, ExpectationTerm):
        function = _function(term.of)
        return {"term": "linear", "function": function, "at_least": term.at_least, "at_most": term.at_most}
    if isinstance(term, ZeroTerm):
        return {"term": "zero", "row": ROW, "indices": list(term.indices)}
    raise TypeError(f"a custom constraint must consist of expectation and zero terms, not {type(term).__name__}")


def _function(function: LatticeFunction) -> list[dict[str, Any]]:
    """A function on (row, index): a problem has row 0 alone."""
    parts = {name: getattr(function, name) for name in ("start", "table", "left", "right")}
    return [{"row": ROW, **parts}]
