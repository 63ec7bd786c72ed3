"""`dpopt privacy`: what a noise guarantees, as a curve, at given epsilons, or at given deltas."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpopt.cli.door import Result, app
from dpopt.cli.files import Csv, Force, Outputs
from dpopt.cli.shared import Json, json_text, progress
from dpopt.cli.sources import Gamma, HalfWidth, Noise, Sensitivity, Source, Variance, float_of, read_moves, read_noise
from dpopt.errors import InputError
from dpopt.files.csv_table import csv_text

if TYPE_CHECKING:
    from dpopt.privacy.profile import Profile

__all__: list[str] = []  # the command registers itself

_MOST_POINTS = 100_000
_Least = tuple[str, Fraction | None]  # a delta as it was typed, and the least epsilon
_Decided = tuple[str, str, bool]  # an epsilon and a delta as they were typed, and whether the noise is private


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
    """The privacy profile of a noise: delta(epsilon) in both directions, proved from its pmf alone.

    With --epsilon and --delta, whether the noise is private for each pair of them, decided exactly.
    """
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
        decided = [(*pair, profile.is_private(*pair)) for pair in product(epsilon or (), delta or ())]
        least = [(text, _least(profile, text, decided=bool(decided))) for text in delta or ()]
    if as_json:
        text = json_text(_plain(noise, profile, curve, least, decided))
    else:
        text = _text(noise, profile, bool(epsilon), curve, least, decided)
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


def _least(profile: Profile, delta: str, *, decided: bool) -> Fraction | None:
    """The least epsilon at a delta; where none reaches it, None beside decisions, which say no, else an error."""
    from dpopt.arithmetic import exact

    unreachable = decided and exact(delta, "delta") < profile.floor
    return None if unreachable else profile.decimal_epsilon(delta)


def _plain(noise: Noise, profile: Profile, curve: bool, least: list[_Least], decided: list[_Decided]) -> dict[str, Any]:
    rows = zip(*_columns(profile), strict=True) if curve else ()
    return {
        "source": noise.name,
        "sensitivity": float_of(profile.sensitivity),
        "floor": float(profile.floor),
        "plateau_start": float(profile.plateau_start),
        "curve": [{"epsilon": e, "delta_lower": low, "delta_upper": high} for e, low, high in rows],
        "least_epsilon": [
            {"delta": float(Fraction(text)), "epsilon": None if found is None else float(profile.epsilon(text))}
            for text, found in least
        ],
        "private": [{"epsilon": float(Fraction(e)), "delta": float(Fraction(d)), "private": is_private}
                    for e, d, is_private in decided],
    }  # fmt: skip


def _text(
    noise: Noise, profile: Profile, listed: bool, curve: bool, least: list[_Least], decided: list[_Decided]
) -> str:
    from dpopt.text import aligned, decimal_text

    lines = [str(noise)]
    whole = profile.text().splitlines()
    if listed:
        rows = [("epsilon", "delta (at most, proved)")]
        for epsilon, delta in zip(profile.epsilons, profile.upper, strict=True):
            rows.append((decimal_text(epsilon, 12, up=None), decimal_text(delta, 6, up=True)))
        lines += [whole[0], *aligned(rows)]
    elif curve:
        lines += whole
    if least:
        rows = [("delta", "least epsilon (at most, proved)")]
        rows += [(text.strip(), "none" if e is None else decimal_text(e, 12, up=True)) for text, e in least]
        lines += aligned(rows)
    for e, d, is_private in decided:
        lines.append(f"({e.strip()}, {d.strip()})-DP: {'yes' if is_private else 'no'}, decided exactly")
    return "\n".join(lines)
