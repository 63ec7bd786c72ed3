"""The ideal that a key table approximates: a finite pmf, or an exact member of the TableBuilder family."""

from __future__ import annotations

from fractions import Fraction

from dpopt.arithmetic import Number, exact, exact_integer
from dpopt.errors import InputError
from dpopt.family.members import family_pmf, require_half_width
from dpopt.pmf import Pmf

__all__ = ["Ideal", "ideal_pmf", "read_ideal"]

Ideal = Pmf | tuple[int, Number]
"""A pmf with a finite support, or (D, gamma): the ideal member C e^(-gamma z^2) on [-D, D], equation (6)."""


def read_ideal(pmf: object) -> Pmf | tuple[int, Fraction]:
    """What may be made a key table: a finite pmf of step 1 or (D, gamma) with gamma > 0, else an error.

    The uniform member, gamma = 0, is rational and comes back as a pmf, as does D = 0.
    """
    if isinstance(pmf, tuple) and not hasattr(pmf, "pmf"):
        if len(pmf) != 2:
            raise InputError("pmf", f"must be a Pmf or a pair (D, gamma), not {pmf!r}")
        half_width, rate = exact_integer(pmf[0], "D", at_least=0), exact(pmf[1], "gamma")
        require_half_width(half_width)
        if rate < 0:
            raise InputError("gamma", f"must be at least 0, not {rate}")
        return (half_width, rate) if rate and half_width else Pmf(-half_width, (1,) * (2 * half_width + 1))
    found = getattr(pmf, "pmf", pmf)
    if not isinstance(found, Pmf):
        raise InputError("pmf", f"must be a Pmf or a pair (D, gamma), not {type(pmf).__name__}")
    if found.tails is not None:
        raise InputError("pmf", "must have a finite support: finitely many keys cannot yield its tails")
    if found.step != 1:
        raise InputError("pmf", f"must have the lattice step 1, not {found.step}: a key table holds integer noise")
    return found


def ideal_pmf(ideal: Pmf | tuple[int, Fraction]) -> Pmf:
    """The pmf itself, or the canonical exact member of the family (its smallest mass has 128 significant bits)."""
    return ideal if isinstance(ideal, Pmf) else family_pmf(*ideal)
