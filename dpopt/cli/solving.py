"""The commands about problem files: solve, verify, compare, and the list of backends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpopt.cli.door import NOT_PROVED, PROVED, Result, app
from dpopt.cli.shared import (
    Json,
    Plugins,
    TimeLimit,
    Verbose,
    is_proved,
    json_text,
    load_plugins,
    not_written,
    progress,
    read_options,
    read_question,
    require_writable,
    solution_result,
)
from dpopt.errors import CertificateError, InputError

if TYPE_CHECKING:
    from dpopt.proof.checker import Verdict

__all__: list[str] = []  # the commands register themselves


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(metavar="FILE", readable=False, help="Problem file (TOML).")],
    backend: Annotated[str, typer.Option(metavar="NAME", help="A backend, or auto; see: dpopt backends.")] = "auto",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="Option of the backend; repeatable.")
    ] = None,
    as_json: Json = False,
    certificate: Annotated[
        Path | None, typer.Option(metavar="OUT", readable=False, help="Write the certificate here.")
    ] = None,
    time_limit: TimeLimit = None,
    verbose: Verbose = False,
    plugin: Plugins = None,
) -> Result:
    """Solve a problem or target and print what is proved."""
    import dpopt

    load_plugins(plugin)
    options = read_options(option or [])
    require_writable("--certificate", certificate, file)
    question = read_question(file)
    with progress(f"solving {file.name} with {backend}", verbose, time_limit) as tell, not_written(certificate):
        solution = dpopt.solve(question, backend, options=options, time_limit=time_limit, progress=tell)
    return solution_result(solution, certificate, as_json)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", readable=False, help="Certificate written by solve.")],
    as_json: Json = False,
    plugin: Plugins = None,
) -> Result:
    """Check a certificate without any solver."""
    import dpopt

    load_plugins(plugin)
    with progress(f"checking {certificate.name}"):
        try:
            verdict = dpopt.verify(certificate)
        except InputError as error:
            raise InputError(str(certificate), error.problem) from None
        if plugin and verdict.holds:
            verdict = _with_definitions(verdict, certificate)
    if as_json:
        text = json_text(
            {
                "holds": verdict.holds,
                "verified": verdict.verified,
                "value": None if verdict.value is None else float(verdict.value),
                "bound": None if verdict.bound is None else float(verdict.bound),
                "reason": verdict.reason,
            }
        )
    else:
        lines = [f"{certificate}: {'holds' if verdict.holds else 'does not hold'}: {verdict.reason}"]
        text = "\n".join([*lines, *_proved_numbers(verdict)])
    return Result(text, PROVED if verdict.holds else NOT_PROVED)


def _with_definitions(verdict: Verdict, certificate: Path) -> Verdict:
    """The verdict once the plugins' definitions have given the trusted rows again, so that none is left on trust."""
    from dpopt.proof.trusted import confirm

    try:
        confirm(json.loads(certificate.read_text(encoding="utf-8")))
    except CertificateError as error:
        return replace(verdict, holds=False, verified="failed", reason=str(error), value=None, bound=None)
    proved, _, trusted = verdict.reason.partition("; taken on trust: ")
    return replace(verdict, reason=f"{proved}; derived again from the plugin: {trusted}" if trusted else proved)


def _proved_numbers(verdict: Verdict) -> list[str]:
    """Value and bound, each rounded to the side on which it stays true."""
    from dpopt.text import decimal_text

    if verdict.value is None:
        return []
    low, high = verdict.value.lower, verdict.value.upper
    maximise = verdict.bound is not None and verdict.bound > high
    value = decimal_text(low if maximise else high, 12, up=not maximise)
    bound = "none proved" if verdict.bound is None else decimal_text(verdict.bound, 12, up=maximise)
    return [f"  value  {value}", f"  bound  {bound}"]


@app.command()
def compare(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", readable=False, help="Problem files (TOML).")],
    backends: Annotated[str, typer.Option(metavar="A,B", help="Backends to compare; all by default.")] = "",
    as_json: Json = False,
    time_limit: TimeLimit = None,
    verbose: Verbose = False,
    plugin: Plugins = None,
) -> Result:
    """Put problems to several backends: what each claims, and what dpopt proves from it; a time limit is for each."""
    import dpopt

    load_plugins(plugin)
    names = [name.strip() for name in backends.split(",") if name.strip()] or None
    problems = [(file, read_question(file)) for file in files]  # a bad file stops before any solve
    found = []
    for file, problem in problems:
        with progress(f"comparing backends on {file.name}", verbose, time_limit) as tell:
            try:
                found.append(dpopt.compare(problem, names, time_limit=time_limit, progress=tell))
            except InputError as error:
                raise error.inside(str(file)) from None
    proved = all(any(is_proved(row.verified) for row in comparison.rows) for comparison in found)
    if as_json:
        text = json_text({"comparisons": [comparison.to_dict() for comparison in found]})
    else:
        text = "\n\n\n".join(str(comparison) for comparison in found)
    return Result(text, PROVED if proved else NOT_PROVED)


@app.command("backends")
def list_backends(as_json: Json = False, plugin: Plugins = None) -> Result:
    """List the backends: whether each can run here, and its options."""
    from dpopt.backends.registry import backend_availability, get_backend
    from dpopt.text import aligned

    load_plugins(plugin)
    with progress("importing the solvers"):
        answers = backend_availability()
    options = {name: _options_of(get_backend(name)) if answer.available else [] for name, answer in answers.items()}
    if as_json:
        entries = [
            {"name": name, "available": answer.available, "reason": answer.reason, "options": options[name]}
            for name, answer in answers.items()
        ]
        return Result(json_text({"backends": entries}))
    table = [("backend", "available", "versions, or what is missing")]
    table += [(name, "yes" if answer.available else "no", answer.reason) for name, answer in answers.items()]
    listed = [("backend", "option", "default", "meaning")]
    for name, entry in [(name, entry) for name, found in options.items() for entry in found]:
        default = "none" if entry["default"] is None else json.dumps(entry["default"])
        listed.append((name, entry["name"], default, entry["text"]))
    return Result("\n".join([*aligned(table), "", *aligned(listed)]))


def _options_of(backend: Any) -> list[dict[str, Any]]:
    """A backend's options as plain data; a default that is not finite means there is none."""
    found = []
    for name, option in backend.options.items():
        default = None if option.default in (float("inf"), float("-inf")) else option.default
        found.append({"name": name, "type": option.kind.__name__, "default": default, "text": option.text})
    return found
