"""`dpopt sample` and `dpopt add-noise`: draws from a proved pmf, by themselves or added to a column of counts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from dpopt.cli.data import (
    Decimal,
    Delimiter,
    Encoding,
    InsecureSeed,
    found_in,
    heading_of,
    marked,
    read_data,
    read_seed,
    warning_of,
)
from dpopt.cli.door import Result, app
from dpopt.cli.files import STANDARD, Csv, Force, Outputs
from dpopt.cli.shared import Json, json_text, progress
from dpopt.cli.sources import Gamma, HalfWidth, Noise, Source, Variance, read_noise
from dpopt.errors import InputError
from dpopt.files.csv_table import csv_text

__all__: list[str] = []  # the commands register themselves

_MOST = 10**7  # draws that are printed or written as text


@app.command()
def sample(
    source: Source = None,
    half_width: HalfWidth = None,
    variance: Variance = None,
    gamma: Gamma = None,
    size: Annotated[int, typer.Option(metavar="N", help="How many draws.")] = 1,
    insecure_seed: InsecureSeed = None,
    csv: Csv = None,
    force: Force = False,
    as_json: Json = False,
) -> Result:
    """Draw from a noise: its law is exactly the proved pmf, tails included."""
    if not 1 <= size <= _MOST:
        raise InputError("--size", f"must lie between 1 and {_MOST}, not {size}")
    outputs = Outputs({"--csv": csv}, force=force, inputs=[source], as_json=as_json)
    randomness = read_seed(insecure_seed)
    noise = _checked_noise(source, half_width, variance, gamma)
    from dpopt.release.samplers import sample as draw

    with progress(f"drawing {size} values"):
        found: Any = draw(noise.pmf, size, randomness=randomness)  # an array, since there is a size
        values = [_plain(value) for value in found.tolist()]
    if csv is not None:
        outputs.save("--csv", csv_text((heading_of("noise", randomness),), ((value,) for value in values)))
    if as_json:
        text = json_text({"source": noise.name, "secure": randomness.secure, "values": values})
    else:
        text = marked("\n".join(map(str, values)), randomness)
    return outputs.result(text, note=warning_of(randomness))


@app.command("add-noise")
def add_noise(
    data: Annotated[Path, typer.Argument(metavar="DATA.csv", readable=False, help="Table with a column of counts.")],
    source: Source = None,
    half_width: HalfWidth = None,
    variance: Variance = None,
    gamma: Gamma = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="The column that the noise is added to.")] = "count",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    insecure_seed: InsecureSeed = None,
    csv: Csv = STANDARD,
    force: Force = False,
) -> Result:
    """Add an independent draw of a noise to every count of a column, and keep the other columns as they are."""
    outputs = Outputs({"--csv": csv}, force=force, inputs=[data, source])
    randomness = read_seed(insecure_seed)
    noise = _checked_noise(source, half_width, variance, gamma)
    table = read_data(data, delimiter, encoding, decimal)
    place = table.place(column, "--column")
    read = table.numbers(place)  # all of it before anything is drawn
    counts = read.numbers
    for row, count in enumerate(counts):
        if (count / noise.pmf.step).denominator != 1:
            step = noise.pmf.step
            needed = "an integer" if step == 1 else f"a multiple of the lattice step {step} of the noise"
            raise InputError(table.where(row, place), f"must be {needed}, not {count}")
    from dpopt.release.apply import Overflow
    from dpopt.release.apply import add_noise as add

    with progress(f"adding noise to {len(counts)} counts"):
        noisy = add(counts, noise.pmf, overflow=Overflow.EXACT, randomness=randomness)
    cells = [str(_plain(value)) for value in noisy.tolist()]
    released = table.with_column(place, cells, heading_of(table.heading[place], randomness))
    outputs.save("--csv", released.to_bytes())
    note = "; ".join(filter(None, (found_in(table, read), warning_of(randomness))))
    return outputs.result(marked(f"{len(counts)} rows written to {csv}", randomness), note=note)


def _checked_noise(source: Path | None, half_width: str | None, variance: str | None, gamma: str | None) -> Noise:
    """The noise to draw from; a certificate has to hold first."""
    noise = read_noise(source, half_width, variance, gamma)
    if noise.certificate is not None:
        from dpopt.checker import verify

        with progress(f"checking {noise.name}"):
            verdict = verify(noise.certificate)
        if not verdict.holds:
            raise InputError(noise.name, f"the certificate does not hold, and nothing was drawn: {verdict.reason}")
    return noise


def _plain(value: int | Fraction) -> int | str:
    """A draw as text and JSON write it without rounding: 3, or "3/2"."""
    return int(value) if value.denominator == 1 else str(value)
