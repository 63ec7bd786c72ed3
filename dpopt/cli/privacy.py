"""`dpopt privacy`: what a noise guarantees, as a curve, at given epsilons, or at given deltas."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpopt.cli.door import Result, app
from dpopt.cli.files import Csv, Force, Outputs
from dpopt.cli.shared import Json, json_text, progress
from dpopt.cli.sources import Gamma, HalfWidth, Noise, Sensitivity, Source, Variance, float_of, read_moves, read_noise
from dpopt.errors import InputError
from dpopt.files.csv_table import csv_text

if TYPE_CHECKING:
    from dpopt.arithmetic import Enclosure
    from dpopt.privacy.profile import Profile

__all__: list[str] = []  # the command registers itself

_MOST_POINTS = 100_000


@app.command()
def privacy(
    source: Source = None,
    half_width: HalfWidth = None,
    variance: Variance = None,
    gamma: Gamma = None,
    sensitivity: Sensitivity = "1",
    epsilon: Annotated[
        list[str] | None, typer.Option("--epsilon", metavar="E", help="delta at this epsilon; repeatable.")
    ] = None,
    delta: Annotated[
        list[str] | None, typer.Option("--delta", metavar="D", help="The least epsilon at this delta; repeatable.")
    ] = None,
    points: Annotated[int | None, typer.Option(metavar="N", help="Points of the curve; 200 by default.")] = None,
    csv: Csv = None,
    force: Force = False,
    as_json: Json = False,
) -> Result:
    """The privacy profile of a noise: delta(epsilon) in both directions, proved from its pmf alone."""
    if points is not None and epsilon:
        raise InputError("--points", "is for the curve without --epsilon: drop one of the two")
    if points is not None and not 2 <= points <= _MOST_POINTS:
        raise InputError("--points", f"must lie between 2 and {_MOST_POINTS}, not {points}")
    outputs = Outputs({"--csv": csv}, force=force, inputs=[source], as_json=as_json)
    moved = read_moves(sensitivity)
    noise = read_noise(source, half_width, variance, gamma)
    curve = bool(epsilon) or not delta or points is not None or csv is not None
    with progress("sorting privacy losses"):
        profile = _profile(noise, moved, epsilon, points, curve=curve)
        least = [(text, profile.epsilon(text)) for text in delta or ()]
    if as_json:
        text = json_text(_plain(noise, profile, curve, least))
    else:
        text = _text(noise, profile, bool(epsilon), curve, least)
    if csv is not None:
        columns = ("epsilon", "delta_lower", "delta_upper")
        outputs.save("--csv", csv_text(columns, zip(*_columns(profile), strict=True)))
    return outputs.result(text)


def _profile(
    noise: Noise, sensitivity: Fraction, epsilon: list[str] | None, points: int | None, *, curve: bool
) -> Profile:
    """The profile at the epsilons asked for; at 0 alone where no curve is wanted."""
    from dpopt.privacy.profile import privacy_profile

    if epsilon or not curve:
        return privacy_profile(noise.pmf, epsilon or [0], sensitivity=sensitivity)
    if points is None:
        return privacy_profile(noise.pmf, sensitivity=sensitivity)
    default = privacy_profile(noise.pmf, sensitivity=sensitivity).epsilons
    step = Fraction(default[-1], points - 1)
    return privacy_profile(noise.pmf, [i * step for i in range(points)], sensitivity=sensitivity)


def _columns(profile: Profile) -> tuple[list[float], list[float], list[float]]:
    """epsilon, and delta rounded outwards, as plain floats."""
    epsilons, lower, upper = profile.floats()
    return epsilons.tolist(), lower.tolist(), upper.tolist()


def _plain(noise: Noise, profile: Profile, curve: bool, least: list[tuple[str, Enclosure]]) -> dict[str, Any]:
    rows = zip(*_columns(profile), strict=True) if curve else ()
    return {
        "source": noise.name,
        "sensitivity": float_of(profile.sensitivity),
        "floor": float(profile.floor),
        "plateau_start": float(profile.plateau_start),
        "curve": [{"epsilon": e, "delta_lower": low, "delta_upper": high} for e, low, high in rows],
        "least_epsilon": [{"delta": float(Fraction(text)), "epsilon": float(found)} for text, found in least],
    }


def _text(noise: Noise, profile: Profile, listed: bool, curve: bool, least: list[tuple[str, Enclosure]]) -> str:
    from dpopt.text import aligned, decimal_text

    lines = [str(noise)]
    whole = str(profile).splitlines()
    if listed:
        rows = [("epsilon", "delta (at most, proved)")]
        for epsilon, delta in zip(profile.epsilons, profile.upper, strict=True):
            rows.append((decimal_text(epsilon, 12, up=None), decimal_text(delta, 6, up=True)))
        lines += [whole[0], *aligned(rows)]
    elif curve:
        lines += whole
    if least:
        rows = [("delta", "least epsilon (at most, proved)")]
        rows += [(text.strip(), decimal_text(found.upper, 12, up=True)) for text, found in least]
        lines += aligned(rows)
    return "\n".join(lines)
