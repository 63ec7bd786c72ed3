"""`dpopt figure`: the paper's figures and the study over KEYSIZE, as tables and as plots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpopt.cli.door import Result, app
from dpopt.cli.shared import Csv, Json, json_text, progress, require_writable, save
from dpopt.errors import InputError

__all__: list[str] = []  # the command registers itself

_MAKERS = {"1": "delta_against_epsilon", "2": "design_against_epsilon", "keys": "study_of_key_sizes"}
_KINDS = (".png", ".pdf", ".svg")


@app.command()
def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1, 2 (the paper's figures) or keys (over KEYSIZE).")],
    csv: Csv = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.png", readable=False, help="Draw it here (png, pdf or svg).")
    ] = None,
    as_json: Json = False,
) -> Result:
    """The paper's Fig. 1 and Fig. 2, and the study over KEYSIZE: as a table, and as a plot."""
    if name not in _MAKERS:
        raise InputError("NAME", f"must be one of {', '.join(_MAKERS)}, not {name!r}")
    require_writable("--csv", csv)
    require_writable("--plot", plot)
    if plot is not None:
        if plot.suffix.lower() not in _KINDS:
            raise InputError("--plot", f"must end in {', '.join(_KINDS)}, not {plot.name!r}")
        if csv is not None and csv.resolve() == plot.resolve():
            raise InputError("--plot", f"{plot} is where the table goes")
        from dpopt.plot import require_matplotlib

        require_matplotlib()
    from dpopt.study import figures

    with progress(f"computing figure {name}"):
        found = getattr(figures, _MAKERS[name])()
    if plot is not None:
        from dpopt.plot import draw

        save(plot, draw(found, plot.suffix[1:].lower()))
    if csv is not None:
        save(csv, found.to_csv())
    return Result(json_text(found.to_dict()) if as_json else str(found))
