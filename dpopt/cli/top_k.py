"""`dpopt top-k`: the items of a CSV file with the largest noisy scores, and the gap of each to the next."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dpopt.cli.data import (
    Decimal,
    Delimiter,
    Encoding,
    InsecureSeed,
    found_in,
    marked,
    read_data,
    read_seed,
    warning_of,
)
from dpopt.cli.door import Result, app
from dpopt.cli.shared import Json, json_text, progress
from dpopt.errors import InputError
from dpopt.files.csv_table import Column, CsvTable

__all__: list[str] = []  # the command registers itself


@app.command()
def top_k(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", readable=False, help="One item a line, after a heading.")],
    k: Annotated[int, typer.Option("--k", metavar="K", help="How many items to select.")],
    epsilon: Annotated[str, typer.Option(metavar="E", help="The privacy loss of the whole release.")],
    resolution: Annotated[str, typer.Option(metavar="G", help="The unit of scores and gaps, 1 over an integer.")] = (
        "1/10"
    ),
    sensitivity: Annotated[str, typer.Option(metavar="S", help="The most that one person changes a score by.")] = "1",
    scores: Annotated[
        str | None, typer.Option("--scores", metavar="COLUMN", help="The column of scores, where there are several.")
    ] = None,
    names: Annotated[
        str | None, typer.Option("--names", metavar="COLUMN", help="The column of names; line numbers by default.")
    ] = None,
    monotonic: Annotated[
        bool, typer.Option("--monotonic", help="One person moves all scores the same way (counts): half the noise.")
    ] = False,
    round_down: Annotated[
        bool, typer.Option("--round-down", help="Round scores down to the resolution where they are no multiples.")
    ] = False,
    no_gaps: Annotated[
        bool, typer.Option("--no-gaps", help="The items alone, for the same epsilon; K may be all items.")
    ] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    insecure_seed: InsecureSeed = None,
    as_json: Json = False,
) -> Result:
    """The K items with the largest noisy scores, and how far each is ahead of the next: differentially private."""
    from dpopt.release.selection_design import SelectionDesign
    from dpopt.release.top_k import noisy_top_k, noisy_top_k_ids

    options = {"resolution": resolution, "sensitivity": sensitivity, "monotonic": monotonic}
    design = SelectionDesign(k, epsilon, **options)  # type: ignore[arg-type]  # read by the constructor
    source = read_seed(insecure_seed)
    items = _read(read_data(file, delimiter, encoding, decimal), scores, names)
    if not round_down:
        _require_multiples(items, design.units)
    gaps: list[Fraction] = []
    with progress("drawing noise"):
        if no_gaps:
            ids = noisy_top_k_ids(items.scores, k, epsilon, randomness=source, **options)  # type: ignore[arg-type]
        else:
            top = noisy_top_k(items.scores, k, epsilon, randomness=source, **options)  # type: ignore[arg-type]
            ids, gaps = top.ids, list(top.gaps)
    chosen = [items.names[place] for place in ids]
    if as_json:
        text = json_text(_plain(design, ids, chosen, gaps, source.secure))
    else:
        text = marked(_text(design, items, chosen, gaps), source)
    note = "; ".join(filter(None, (found_in(items.table, items.column), warning_of(source))))
    return Result(text, note=note)


class _Items(NamedTuple):
    """What the file holds, in its order."""

    table: CsvTable
    place: int
    label: str
    names: list[str]
    column: Column

    @property
    def scores(self) -> list[Fraction | int]:
        return self.column.numbers


def _read(table: CsvTable, scores: str | None, names: str | None) -> _Items:
    place = table.place(scores, "--scores")
    found = _Items(table, place, "line", list(map(str, table.lines)), table.numbers(place))
    if names is None:
        return found
    named = table.place(names, "--names")
    if named == place:
        raise InputError("--names", f"{names!r} is the column of the scores, whose values must not be released")
    cells, seen = table.cells(named), dict[str, int]()
    for row, name in enumerate(cells):
        if name in seen:
            again = f"is the name {name!r} again, as on line {table.lines[seen[name]]}"
            raise InputError(table.where(row, named), again)
        seen[name] = row
    return found._replace(label="item", names=cells)


def _require_multiples(items: _Items, units: int) -> None:
    for row, score in enumerate(items.scores):
        if (score * units).denominator != 1:
            where = items.table.where(row, items.place)
            raise InputError(
                where, f"{score} is no multiple of the resolution 1/{units}; pass --round-down, or a finer --resolution"
            )


def _plain(design: Any, ids: Sequence[int], chosen: list[str], gaps: list[Fraction], secure: bool) -> dict[str, Any]:
    """What `TopK.from_dict` reads, with exact numbers as strings, and the names."""
    found = {"ids": list(ids), "gaps": [str(gap) for gap in gaps] or None, **design.to_dict(), "secure": secure}
    return {"items": chosen, **found}


def _text(design: Any, items: _Items, chosen: list[str], gaps: list[Fraction]) -> str:
    from dpopt.text import aligned, decimal_text

    kind = "monotonic " if design.monotonic else ""
    lines = [
        f"top {design.k} of {len(items.scores)}: epsilon = {design.epsilon}, {kind}sensitivity {design.sensitivity}, "
        f"resolution {design.resolution}"
    ]
    if not gaps:
        places = [("place", items.label), *((str(i), name) for i, name in enumerate(chosen, 1))]
        return "\n".join([*lines, *aligned(places)])
    rows = [("place", items.label, "ahead of the next by")]
    for place, (name, gap) in enumerate(zip(chosen, gaps, strict=True), 1):
        rows.append((str(place), name, decimal_text(gap, 15, up=None)))
    return "\n".join([*lines, *aligned(rows)])
