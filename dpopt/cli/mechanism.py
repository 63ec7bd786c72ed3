"""`dpopt mechanism`: the parameters of named noise for a wanted (epsilon, delta), one kind or all side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpopt.cli.door import Result, app
from dpopt.cli.files import Csv, Force, Outputs
from dpopt.cli.shared import Json, json_text, progress
from dpopt.cli.sources import Sensitivity, read_moves
from dpopt.errors import InputError
from dpopt.files.csv_table import csv_text

if TYPE_CHECKING:
    from dpopt.mechanisms.calibration import Calibrated

__all__: list[str] = []  # the command registers itself

_ALL = "all"
_COLUMNS = (
    "mechanism", "parameters", "epsilon", "delta", "theorem2_delta", "mean", "mean_absolute", "variance",
    "paper_epsilon", "paper_delta", "paper_holds",
)  # fmt: skip


@app.command()
def mechanism(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="laplace, geometric, staircase, optimal-staircase, gaussian, truncated-geometric, uniform, "
            "exponential, or all.",
        ),
    ],
    epsilon: Annotated[str, typer.Option(metavar="E", help="The epsilon wanted.")],
    delta: Annotated[str, typer.Option(metavar="D", help="The delta wanted.")] = "0",
    sensitivity: Sensitivity = "1",
    step: Annotated[str, typer.Option(metavar="S", help="The lattice step.")] = "1",
    width: Annotated[
        list[int] | None,
        typer.Option("--width", metavar="A", help="Lattice points in a stair; repeatable with all (5 and 20)."),
    ] = None,
    cost: Annotated[
        str | None, typer.Option(metavar="COST", help="absolute or square: what the optimal staircase is optimal for.")
    ] = None,
    csv: Csv = None,
    pmf: Annotated[
        Path | None,
        typer.Option(metavar="OUT", readable=False, help="Write the noise here, for privacy, sample and add-noise."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> Result:
    """Parameters of named noise for a wanted (epsilon, delta), with what is proved of it and what it costs."""
    from dpopt.mechanisms.calibration import calibrate
    from dpopt.mechanisms.side_by_side import PAPER_WIDTHS, mechanism_table

    outputs = Outputs({"--csv": csv, "--pmf": pmf}, force=force, as_json=as_json)
    moved = read_moves(sensitivity)
    if name == _ALL:
        for option, value in (("--cost", cost), ("--pmf", pmf)):
            if value is not None:
                raise InputError(option, "goes with one mechanism, not with all")
        with progress("calibrating"):
            table = mechanism_table(epsilon, moved, delta=delta, step=step, widths=width or PAPER_WIDTHS)
            text = json_text(table.to_dict()) if as_json else table.text()
        rows = table.rows
    else:
        if name == "staircase" and len(width or ()) != 1:
            raise InputError("--width", "is needed once with staircase: the lattice points in a stair")
        chosen: dict[str, Any] = {"width": width[0]} if width else {}
        if cost is not None:
            chosen["cost"] = cost
        with progress("calibrating"):
            found = calibrate(name, epsilon=epsilon, delta=delta, sensitivity=moved, step=step, **chosen)
            text = json_text(found.to_dict()) if as_json else found.text()
        rows = (found,)
        outputs.save("--pmf", json_text(found.pmf.to_dict()) + "\n")
    outputs.save("--csv", csv_text(_COLUMNS, [_cells(row) for row in rows]))
    return outputs.result(text)


def _cells(row: Calibrated) -> tuple[Any, ...]:
    """A row of the CSV: what `to_dict` has, the parameters in one cell."""
    plain = row.to_dict()
    named = "; ".join(f"{name} = {value!r}" for name, value in plain["parameters"].items())
    claim = plain["paper"]
    numbers = (plain[name] for name in _COLUMNS[2:8])
    return (plain["mechanism"], named, *numbers, claim["epsilon"], claim["delta"], claim["holds"])
