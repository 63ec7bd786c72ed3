"""What the user gets: the proved pmf, what the solver had claimed, and the certificate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpopt.arithmetic import Enclosure
from dpopt.backends.base import Claimed
from dpopt.errors import InputError, NotVerifiedError
from dpopt.files.writing import write_file
from dpopt.pmf import Pmf
from dpopt.problem.parts import Check
from dpopt.problem.problem import Problem
from dpopt.problem.target import Target
from dpopt.proof.prove import Verified
from dpopt.record import Record

__all__ = ["Certificate", "Design", "Repair", "Solution"]


@dataclass(frozen=True, repr=False)
class Certificate(Record):
    """What is proved and what proves it, as plain data; `dpopt.verify` re-checks it without a solver."""

    data: Mapping[str, Any] = field(hash=False)

    def save(self, path: str | Path) -> None:
        """Write the certificate as JSON, over an older file (in one step: a failure leaves what was there)."""
        write_file(path, self.to_json())

    def to_json(self) -> str:
        """The text that `save` writes."""
        if not self.data:
            raise InputError("certificate", "there is none to save: nothing was proved")
        return json.dumps(self.data, indent=1) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The data, which are plain already."""
        return dict(self.data)

    def __bool__(self) -> bool:
        return bool(self.data)


@dataclass(frozen=True, repr=False)
class Repair(Record):
    """What it took to make the solver's floats an exact pmf that meets every constraint.

    Parameters
    ----------
    mass_moved : float
        Total variation distance between the solver's pmf and the proved one.
    objective_paid : float
        Value of the proved pmf minus the solver's own objective, in the direction that is worse; a negative number
        is what the solver's answer was too good by, were it private.
    mixed : float
        Weight of a strictly feasible pmf that was mixed in.
    """

    mass_moved: float
    objective_paid: float
    mixed: float


@dataclass(frozen=True, repr=False)
class Design(Record):
    """A targeted design: the half-width D of the support, the variance V, the rate gamma where it has one, delta."""

    D: int
    V: Fraction
    delta: Enclosure
    gamma: Fraction | None = None


@dataclass(frozen=True, repr=False)
class Solution(Record):
    """The answer to a problem, with what was claimed and what is proved kept apart.

    Two solutions are equal where all of it is, timings and versions apart.

    Parameters
    ----------
    problem : Problem or Target
    backend : str
        Who answered; `backend_reason` says why it was chosen.
    claimed : Claimed
        What the solver said.
    verified : Verified
        What dpopt proved.
    message : str
        The reason where nothing, or infeasibility, was proved.
    value : Enclosure
        The objective of the proved pmf (raises when there is none); for a target, D.
    bound : Fraction or None
        No pmf does better than this.
    checks : tuple of Check
        One exact finding for each constraint.
    timings : dict
        Seconds by phase: formulate, reduce, solve, repair, bound.
    """

    problem: Problem | Target
    backend: str
    backend_reason: str
    claimed: Claimed
    verified: Verified
    message: str
    certificate: Certificate
    checks: tuple[Check, ...] = ()
    conflict: tuple[str, ...] = ()
    repair: Repair | None = None
    solver_message: str = ""
    solver_version: str = field(default="", compare=False)
    tolerances: Mapping[str, float] = field(default_factory=dict, hash=False)
    timings: Mapping[str, float] = field(default_factory=dict, compare=False)
    proved_pmf: Pmf | None = None
    design: Design | None = None

    @property
    def pmf(self) -> Pmf:
        """The proved pmf; raises `NotVerifiedError` when there is none."""
        if self.proved_pmf is None:
            raise NotVerifiedError(f"there is no proved pmf ({self.verified.value}): {self.message}")
        return self.proved_pmf

    @property
    def value(self) -> Enclosure:
        """The objective of the proved pmf; raises `NotVerifiedError` when there is none."""
        _ = self.pmf
        low, high = self.certificate.data["derived"]["value"]
        return Enclosure(Fraction(low), Fraction(high))

    @property
    def bound(self) -> Fraction | None:
        """The proved bound: no pmf that meets the constraints has a better objective. None when nothing bounds it."""
        bound = self.certificate.data.get("derived", {}).get("bound") if self.proved_pmf is not None else None
        return None if bound is None else Fraction(bound)

    @property
    def gap(self) -> Fraction | None:
        """The largest possible distance between value and bound; None when there is no bound."""
        if self.bound is None:
            return None
        return max(abs(self.value.lower - self.bound), abs(self.value.upper - self.bound))

    def require_verified(self) -> Solution:
        """This solution, if it is proved optimal or feasible; else `NotVerifiedError` with the whole summary."""
        if self.verified not in (Verified.OPTIMAL, Verified.FEASIBLE):
            raise NotVerifiedError(str(self))
        return self

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        from dpopt.report import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``dpopt solve --json``: nearest floats; the exact numbers are in the certificate."""
        from dpopt.report import solution_json

        return solution_json(self)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        value = f", value={self.value}" if self.proved_pmf is not None else ""
        return f"Solution(claimed={self.claimed.value}, verified={self.verified.value}{value})"
