"""Statements written by hand: what the tests of the checker state and then alter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

FORMAT = "dpopt-certificate/2"
SCALE = 96
ONE = 1 << SCALE  # the scale of the multipliers
ABSOLUTE = {"type": "min-expected-cost", "cost": "absolute"}


def integers(low: int, high: int) -> dict[str, Any]:
    """A finite support."""
    return {"type": "integers", "low": str(low), "high": str(high)}


def law(
    start: int, weights: Iterable[int], period: int = 1, left: object = None, right: object = None
) -> dict[str, Any]:
    """A pmf, with tails where there is a ratio."""
    tails = {"period": str(period), "left": left and str(left), "right": right and str(right)}
    return {
        "start": str(start),
        "weights": [str(w) for w in weights],
        "step": "1",
        "tails": None if left is right is None else tails,
    }


def function(start: str, table: list[str], left: list[str], right: list[str]) -> list[dict[str, Any]]:
    """A function on (row, index), written out for the only row."""
    return [{"row": "0", "start": start, "table": table, "left": left, "right": right}]


def part(y: int | str, number: int = 0) -> dict[str, Any]:
    """The witness of a linear row."""
    return {"part": str(number), "y": str(y)}


def pairs(*rows: Iterable[int | str]) -> dict[str, Any]:
    """The witness of pairs of points."""
    return {"row": "0", "pairs": [[str(number) for number in row] for row in rows]}


def event(shift: int, most: int, start: int, weights: Iterable[int], left: int = 0, right: int = 0) -> dict[str, Any]:
    """The witness of an event, for a constraint."""
    numbers = {"row": 0, "shift": shift, "y": most, "start": start, "left": left, "right": right}
    return {key: str(number) for key, number in numbers.items()} | {"weights": [str(w) for w in weights]}


def share(witness: Mapping[str, Any]) -> dict[str, Any]:
    """The same event as a share of a worst-case objective."""
    return {"theta" if key == "y" else key: value for key, value in witness.items()}


def chain(low: int, high: int, constraint: int = 0) -> dict[str, Any]:
    """A chain from a core outward."""
    return {"constraint": str(constraint), "row": "0", "low": str(low), "high": str(high)}


def statement(
    pmf: Mapping[str, Any] | None,
    *constraints: Mapping[str, Any],
    support: Mapping[str, Any] | None = None,
    objective: Mapping[str, Any] = ABSOLUTE,
    entries: Mapping[str, Any] | None = None,
    chains: Iterable[Mapping[str, Any]] = (),
    **others: Any,
) -> dict[str, Any]:
    """A whole statement; `entries` has the witness, or the witnesses, of each constraint and of "objective"."""
    return {
        "format": FORMAT,
        "kind": "infeasible" if pmf is None else "solution",
        "problem": {"support": support, "objective": objective, "constraints": list(constraints)},
        "laws": None if pmf is None else [pmf],
        "precision": "128",
        "scale": str(SCALE),
        "witnesses": list(_witnesses(entries or {})),
        "chains": list(chains),
    } | others


def _witnesses(entries: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for of, found in entries.items():
        for witness in [found] if isinstance(found, Mapping) else found:
            yield {"of": of, **witness}
