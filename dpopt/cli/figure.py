"""`dpopt figure`: the papers' figures and studies, as tables and as plots."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from dpopt.cli.door import Result, app
from dpopt.cli.files import STANDARD, Csv, Force, Outputs
from dpopt.cli.shared import Json, json_text, progress
from dpopt.errors import InputError

__all__: list[str] = []  # the command registers itself

_MAKERS = {
    "1": ("figures", "delta_against_epsilon"),
    "2": ("figures", "design_against_epsilon"),
    "keys": ("figures", "study_of_key_sizes"),
    "noise-1": ("noise_figures", "pmfs_of_gaussian_noise"),
    "noise-2": ("noise_figures", "pmfs_of_laplace_and_uniform_noise"),
    "noise-3": ("noise_figures", "pmfs_of_staircase_noise"),
    "noise-5": ("noise_figures", "pmfs_of_exponential_noise"),
    "noise-6": ("noise_figures", "optimal_noise"),
    "noise-7": ("noise_figures", "optimal_noise_for_inputs"),
    "noise-8": ("noise_figures", "wasserstein_against_epsilon"),
    "noise-9": ("noise_figures", "wasserstein_against_sensitivity"),
    "noise-10": ("noise_simulation", "simulated_wasserstein"),
    "noise-programs": ("utility", "optimum_beside_relaxation"),
}
_KINDS = ("png", "pdf", "svg")
_SIMULATED = "noise-10"


@app.command()
def figure(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="1, 2 (TableBuilder), keys (over KEYSIZE), noise-1, -2, -3, -5 to -10 (the noise paper), "
            "noise-programs (its programs P1 and P2).",
        ),
    ],
    csv: Csv = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", readable=False, help="Draw it here (png, pdf or svg; - prints a png)."),
    ] = None,
    size: Annotated[int | None, typer.Option(metavar="N", help="Records in the data set of noise-10.")] = None,
    runs: Annotated[int | None, typer.Option(metavar="N", help="Runs of noise-10.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> Result:
    """A figure of the papers, or a study: as a table, and as a plot."""
    if name not in _MAKERS:
        raise InputError("NAME", f"must be one of {', '.join(_MAKERS)}, not {name!r}")
    given = {key: value for key, value in (("size", size), ("runs", runs)) if value is not None}
    if given and name != _SIMULATED:
        raise InputError(f"--{next(iter(given))}", f"is for {_SIMULATED}, not for {name}")
    outputs = Outputs({"--csv": csv, "--plot": plot}, force=force, as_json=as_json)
    kind = "" if plot is None else _kind_of(plot)
    module, function = _MAKERS[name]
    with progress(f"computing figure {name}"):
        found = getattr(import_module(f"dpopt.study.{module}"), function)(**given)
    if plot is not None:
        from dpopt.plot import draw

        outputs.save("--plot", draw(found, kind))
    outputs.save("--csv", found.to_csv())
    return outputs.result(json_text(found.to_dict()) if as_json else found.text())


def _kind_of(plot: Path) -> str:
    """The format that a plot's name asks for; refused before any time is spent where it cannot be drawn."""
    kind = "png" if plot == STANDARD else plot.suffix[1:].lower()
    if kind not in _KINDS:
        raise InputError("--plot", f"must end in .{', .'.join(_KINDS)}, not {plot.name!r}")
    from dpopt.plot import require_matplotlib

    require_matplotlib()
    return kind
