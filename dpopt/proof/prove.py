"""From a claim to a fact: repair, exact checks, the bound from the other side, or a proof that nothing is feasible.

Nothing here trusts a solver. What comes out has passed the independent checker, or says why it has not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from dpopt import checker
from dpopt.errors import CertificateError
from dpopt.patience import Phase, checkpoint, in_force
from dpopt.program.formulate import Formulation
from dpopt.program.program import BlockKind
from dpopt.proof.multipliers import multipliers, statement
from dpopt.proof.repair import Repaired, RepairFailed, repair, sanitised

__all__ = ["Outcome", "Verified", "prove_point"]

log = logging.getLogger(__name__)

_NEAR = 1e-3  # a claim that misses a row by more answers another question


class Verified(Enum):
    """What dpopt has proved; compare `Claimed`, which is another type on purpose.

    OPTIMAL: every constraint proved, and the gap is at most 1e-6 of the value or bound. FEASIBLE: every constraint
    proved, larger gap. INFEASIBLE: proved that no pmf meets the constraints. FAILED: nothing was proved.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """What was proved, with its certificate (empty when nothing was)."""

    verified: Verified
    reason: str = ""
    certificate: Mapping[str, Any] = field(default_factory=dict)
    repaired: Repaired | None = None
    conflict: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def bound(self) -> Fraction | None:
        """The proved bound on the objective, None when there is none."""
        bound = self.certificate.get("derived", {}).get("bound")
        return None if bound is None else Fraction(bound)

    @property
    def value(self) -> Fraction:
        """The upper end of the proved objective (only where a pmf is proved)."""
        return Fraction(self.certificate["derived"]["value"][1])

    @property
    def lower(self) -> Fraction:
        """The lower end of the proved objective."""
        return Fraction(self.certificate["derived"]["value"][0])

    @property
    def gap(self) -> Fraction | None:
        """The largest possible distance between value and bound."""
        value, bound = self.certificate.get("derived", {}).get("value"), self.bound
        if value is None or bound is None:
            return None
        return max(abs(Fraction(value[0]) - bound), abs(Fraction(value[1]) - bound))

    def is_better_than(self, other: Outcome) -> bool:
        """Whether more is proved here: a better status, or a gap that is smaller by a tenth."""
        rank = {Verified.FAILED: 0, Verified.FEASIBLE: 1, Verified.INFEASIBLE: 2, Verified.OPTIMAL: 3}
        if rank[self.verified] != rank[other.verified]:
            return rank[self.verified] > rank[other.verified]
        if self.gap is None or other.gap is None:
            return self.gap is not None
        return self.gap < other.gap * Fraction(9, 10)


def prove_point(
    formulation: Formulation, x: np.ndarray, y: np.ndarray, centre: Callable[[], np.ndarray | None]
) -> Outcome:
    """Prove what a claimed point and its multipliers are worth.

    Parameters
    ----------
    x, y : array
        The claim in the formulation's coordinates; `y` may be empty (then the bound is what zero multipliers give).
    centre : callable
        A strictly feasible pmf over the core, or None.
    """
    started = perf_counter()
    in_force().tell(Phase.REPAIR, "making the pmf exact")
    try:
        x, y = _polished(formulation, x, y)
        repaired = repair(formulation, x, centre)
    except RepairFailed as error:
        return Outcome(Verified.FAILED, str(error), seconds={"repair": perf_counter() - started})
    middle = perf_counter()
    in_force().tell(Phase.BOUND, "proving")
    certificate = _certified(formulation, repaired, y)
    seconds = {"repair": middle - started, "bound": perf_counter() - middle}
    if isinstance(certificate, str):
        return Outcome(Verified.FAILED, certificate, repaired=repaired, seconds=seconds)
    return Outcome(Verified(certificate["derived"]["verified"]), "", certificate, repaired, seconds=seconds)


def better_bound(formulation: Formulation, outcome: Outcome, y: np.ndarray) -> Outcome:
    """The outcome with the bound that other multipliers give, if it is the tighter one."""
    if outcome.repaired is None:
        return outcome
    started = perf_counter()
    certificate = _certified(formulation, outcome.repaired, y)
    seconds = {"bound": perf_counter() - started}
    if not isinstance(certificate, str):
        verified = Verified(certificate["derived"]["verified"])
        other = Outcome(verified, "", certificate, outcome.repaired, seconds=seconds)
        if other.gap is not None and (outcome.gap is None or other.gap < outcome.gap):
            return other
    return replace(outcome, seconds=seconds)


def _certified(formulation: Formulation, repaired: Repaired, y: np.ndarray) -> dict[str, Any] | str:
    """The certificate, or the checker's reason against it.

    The checker is written independently of the checks that the repair used: where the two disagree, nothing is proved.
    """
    zeros = np.zeros(formulation.program.row_lower.size)
    try:
        certificate = _certify(formulation, repaired, y if y.size == zeros.size else zeros)
        bound = certificate["derived"]["bound"]
        if bound is not None and Fraction(bound) >= 0:
            return certificate
    except CertificateError as error:
        log.info("the stated multipliers prove nothing: %s", error)
        certificate = None
    checkpoint()
    try:  # no multipliers at all: the least cost, which no objective that is never negative falls below
        plain = _certify(formulation, repaired, zeros)
    except CertificateError as error:
        return certificate or f"the independent checker rejects the repaired pmf: {error}"
    return plain if certificate is None or _tighter(plain, certificate) else certificate


def _certify(formulation: Formulation, repaired: Repaired, y: np.ndarray) -> dict[str, Any]:
    return checker.certify(statement(formulation.problem, repaired.pmf, multipliers(formulation, y)))


def _tighter(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the bound on a minimum is larger; entropies have bounds above 0 and never come here."""
    mine, theirs = one["derived"]["bound"], other["derived"]["bound"]
    return mine is not None and (theirs is None or Fraction(mine) > Fraction(theirs))


def farkas(formulation: Formulation, y: np.ndarray) -> dict[str, Any] | None:
    """A certificate that no pmf meets the formulation's constraints, if these multipliers prove it."""
    stated = multipliers(formulation, y, with_objective=False)
    try:
        certificate = checker.certify(statement(formulation.problem, None, stated))
    except CertificateError as error:
        log.info("not a proof of infeasibility: %s", error)
        return None
    return certificate


def _polished(formulation: Formulation, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A max-entropy claim moved onto its exponential family by a few Newton steps on the dual.

    Only when the rows touch the pmf alone, are few, and the claim nearly meets them: a polish must not turn an answer
    to another question into an answer to this one.
    """
    program = formulation.program
    few = all(rows.kind in (BlockKind.MASS, BlockKind.EXPECTATION) for rows in program.blocks)
    if not program.has_entropy or not few or y.size != program.row_lower.size:
        return x, y
    sanitised(formulation, x)
    if program.violation(x) > _NEAR:
        return x, y
    from dpopt.backends.newton import polish

    better_x, better_y = polish(program, y)
    if np.all(np.isfinite(better_y)) and program.violation(better_x) <= _NEAR:
        return better_x, better_y
    return x, y
