"""The third question as data: the smallest support, and its variance, that reach a wanted (epsilon, delta)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

from dpopt.arithmetic import Number, exact, read_epsilon
from dpopt.errors import InputError
from dpopt.problem.constraints import read_sensitivity
from dpopt.problem.costs import plain_number
from dpopt.problem.parts import AskedPrivacy, build
from dpopt.reading import read_choice, read_text

__all__ = ["Family", "Target", "Then", "target"]


class Family(StrEnum):
    """Which pmfs on [-D, D] compete.

    ANALYTIC: the ABS paper's rule, p(z) proportional to e^(-gamma z^2) with gamma = epsilon / (2D - 1) (for a
    sensitivity m: epsilon / (m (2D - m))). TABLEBUILDER: the same family with the best gamma for each D. ANY: all pmfs.
    """

    ANALYTIC = "analytic"
    TABLEBUILDER = "tablebuilder"
    ANY = "any"


class Then(StrEnum):
    """What to choose by among the designs with the smallest D."""

    MIN_DELTA = "min-delta"
    MIN_VARIANCE = "min-variance"
    MAX_ENTROPY = "max-entropy"


@dataclass(frozen=True)
class Target:
    """The smallest D, and then the best design on [-D, D], that is (epsilon, delta)-DP at a sensitivity.

    Parameters
    ----------
    epsilon, delta : number
        epsilon >= 0 and 0 < delta < 1 (the ABS paper's "1 < delta < 1" is a slip).
    sensitivity : number
        On the integers: shifts up to its floor count.
    family : Family or str
    then : Then or str, optional
        ``"min-delta"`` when left out; the analytic family has one design for each D and takes none.

    Examples
    --------
    >>> Target(epsilon=1, delta="1e-5", family="analytic").plain()
    {'epsilon': 1, 'delta': '1/100000', 'family': 'analytic'}
    """

    epsilon: Fraction
    delta: Fraction
    family: Family
    sensitivity: Fraction = Fraction(1)
    then: Then | None = None
    name: str = ""
    type: ClassVar[str] = "target"

    def __post_init__(self) -> None:
        wanted = exact(self.delta, "delta")
        if not 0 < wanted < 1:
            raise InputError("delta", f"must lie strictly between 0 and 1, not {wanted}")
        sensitivity = read_sensitivity(self.sensitivity)
        if sensitivity < 1:
            raise InputError("sensitivity", f"must be at least 1 (counts move by integers), not {sensitivity}")
        family = read_choice(Family, self.family, "family")
        then = None if self.then is None else read_choice(Then, self.then, "then")
        if family is Family.ANALYTIC and then is not None:
            raise InputError("then", f"is not for family 'analytic': its rule leaves no choice; drop then = '{then}'")
        read_text(self.name, "name")
        values = {
            "epsilon": read_epsilon(self.epsilon),
            "delta": wanted,
            "sensitivity": sensitivity,
            "family": family,
            "then": then,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def asked_privacy(self) -> AskedPrivacy:
        """(epsilon, delta) as a summary states it."""
        return AskedPrivacy(self.epsilon, self.sensitivity)

    @property
    def shift(self) -> int:
        """The largest shift in integers."""
        return int(self.sensitivity)

    def plain(self) -> dict[str, Any]:
        """The [target] table."""
        table: dict[str, Any] = {"epsilon": plain_number(self.epsilon), "delta": plain_number(self.delta)}
        if self.sensitivity != 1:
            table["sensitivity"] = plain_number(self.sensitivity)
        table["family"] = str(self.family)
        if self.then is not None:
            table["then"] = str(self.then)
        return table

    def to_dict(self) -> dict[str, Any]:
        """The TOML form as plain data."""
        named = {"name": self.name} if self.name else {}
        return {**named, "target": self.plain()}

    def to_toml(self) -> str:
        """The target as a TOML document that `load` reads back without loss."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Target:
        """Build a target from its TOML form; errors name the location."""
        for key in table:
            if key not in ("name", "target"):
                raise InputError(str(key), "cannot stand beside [target] (known: name, target)")
        entry = table["target"]
        if isinstance(entry, Mapping):
            if "name" in entry:
                raise InputError("target.name", "is not a key of a target; the name stands above [target]")
            entry = {"type": cls.type, "name": table.get("name", ""), **entry}
        found: Target = build("target", {cls.type: cls}, entry, "target")
        return found


def target(
    *,
    epsilon: Number,
    delta: Number,
    family: Family | str,
    sensitivity: Number = 1,
    then: Then | str | None = None,
    name: str = "",
) -> Target:
    """The (epsilon, delta)-targeted choice of D and V. See `Target`.

    Examples
    --------
    >>> target(epsilon=1, delta="1e-6", family="any").shift
    1
    """
    return Target(epsilon, delta, family, sensitivity, then, name)  # type: ignore[arg-type]  # read by the constructor
