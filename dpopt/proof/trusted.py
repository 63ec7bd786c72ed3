"""What a certificate takes on trust: the rows that stand for constraints and objectives that dpopt does not ship.

The checker cannot know what a custom type means; it believes the stored rows. Whoever has the definition, as a plugin,
can have the rows derived from it again and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpopt.errors import CertificateError, InputError
from dpopt.pmf import Pmf
from dpopt.problem.problem import Problem

__all__ = ["as_text", "confirm", "trusted_rows"]

_SHIPPED = "dpopt.problem."  # constraints and objectives defined elsewhere are stated by their rows


def trusted_rows(problem: Problem) -> dict[str, Any]:
    """The exact rows of constraints and objectives that dpopt does not ship; empty when it ships them all."""
    trusted: dict[str, Any] = {}
    if not type(problem.objective).__module__.startswith(_SHIPPED):
        stated = problem.objective_term.stated()
        trusted |= {} if stated is None else {"objective": stated}
    rows = {
        str(i): [term.stated() for term in terms]
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
