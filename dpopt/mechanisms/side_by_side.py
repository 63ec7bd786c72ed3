"""All mechanisms for one wanted (epsilon, delta) side by side: the noise paper's Table V with numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpopt.arithmetic import Number, exact
from dpopt.errors import InputError
from dpopt.mechanisms.calibration import Calibrated, Mechanism, calibrate
from dpopt.reading import read_integers
from dpopt.record import Record

__all__ = ["MechanismTable", "mechanism_table"]

PAPER_WIDTHS = (5, 20)  # of the stairs in the paper's simulations


@dataclass(frozen=True, repr=False)
class MechanismTable(Record):
    """What each mechanism needs for the same privacy, and what it costs. Made by `mechanism_table`.

    Parameters
    ----------
    epsilon, delta, sensitivity, step : Fraction
        As they were asked for.
    rows : tuple of Calibrated
    missing : tuple of (Mechanism, str)
        The mechanisms that cannot reach that privacy, and why.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    step: Fraction
    rows: tuple[Calibrated, ...]
    missing: tuple[tuple[Mechanism, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: names and nearest floats."""
        return {
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "sensitivity": float(self.sensitivity),
            "step": float(self.step),
            "mechanisms": [row.to_dict() for row in self.rows],
            "missing": [{"mechanism": str(name), "reason": why} for name, why in self.missing],
        }

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        from dpopt.text import aligned, decimal_text

        def plain(number: Fraction, digits: int = 8) -> str:
            return decimal_text(number, digits, up=None)

        cells = [("mechanism", "epsilon", "delta", "Theorem 2", "E|Z|", "variance")]
        said = []
        for row in self.rows:
            named = ", ".join(f"{name} {plain(value)}" for name, value in row.parameters)
            claim = row.paper
            costs = (plain(row.mean_absolute), plain(row.variance))
            proved = (decimal_text(row.proved_epsilon.upper, 8, up=True), _bound(row.proved_delta.upper))
            wrong = "" if claim.holds else ", which is wrong"
            said.append(f"{row.mechanism}, {named}: closed form {claim.formula}{wrong}")
            cells.append((str(row.mechanism), *proved, _bound(row.sufficient.sufficient), *costs))
        numbers = (self.epsilon, self.delta, self.sensitivity, self.step)
        asked = zip(("epsilon", "delta", "sensitivity", "step"), numbers, strict=True)
        named = ", ".join(f"{name} {plain(value)}" for name, value in asked)
        head = f"noise for {named}; least epsilon and tight delta, proved"
        return "\n".join([head, *aligned(cells), *said, *(f"{name}: {why}" for name, why in self.missing)])


def _bound(delta: Fraction) -> str:
    from dpopt.text import decimal_text

    return decimal_text(delta, 6, up=True)


def mechanism_table(
    epsilon: Number,
    sensitivity: Number = 1,
    *,
    delta: Number = 0,
    step: Number = 1,
    widths: Iterable[int] = PAPER_WIDTHS,
) -> MechanismTable:
    """Every mechanism calibrated for the same (epsilon, delta) and sensitivity.

    Parameters
    ----------
    epsilon, delta : number
        The privacy wanted; Gaussian, uniform and exponential noise need a delta above 0.
    sensitivity, step : number
        In data units.
    widths : iterable of int
        Of the equal-width staircases, in lattice points.

    Examples
    --------
    >>> found = mechanism_table(2, 15)
    >>> [(row.mechanism.value, round(float(row.mean_absolute), 4)) for row in found.rows[:3]]
    [('laplace', 7.4944), ('geometric', 7.4778), ('staircase', 7.6479)]
    >>> [name.value for name, why in found.missing]
    ['gaussian', 'truncated-geometric', 'uniform', 'exponential']
    """
    asked: dict[str, Number] = {"epsilon": epsilon, "delta": delta, "sensitivity": sensitivity, "step": step}
    rows: list[Calibrated] = []
    missing = []
    numbers = {name: exact(value, name) for name, value in asked.items()}
    stairs = _read_widths(widths)
    for mechanism in Mechanism:
        choices = [{"width": width} for width in stairs] if mechanism is Mechanism.STAIRCASE else [{}]
        try:
            rows += [calibrate(mechanism, **asked, **choice) for choice in choices]  # type: ignore[arg-type]
        except InputError as error:
            if error.location not in ("epsilon", "delta"):
                raise
            missing.append((mechanism, str(error)))
    if not rows:
        raise InputError("epsilon", f"{epsilon} with delta {delta} is reached by no mechanism ({missing[0][1]})")
    return MechanismTable(rows=tuple(rows), missing=tuple(missing), **numbers)


def _read_widths(widths: object) -> tuple[int, ...]:
    found = read_integers(widths, "widths", at_least=1)
    if len(set(found)) < len(found):
        raise InputError("widths", f"must not name a width twice, as {list(found)} does")
    return found
