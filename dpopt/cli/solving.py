"""The commands about problem files: solve, verify, compare, and the list of backends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpopt.cli.door import NOT_PROVED, PROVED, Result, app
from dpopt.cli.files import Force, Outputs, name_of, read_input, require_one_standard_input
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
    solution_result,
)
from dpopt.errors import CertificateError, InputError

if TYPE_CHECKING:
    from dpopt.checker import Verdict

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
    force: Force = False,
    time_limit: TimeLimit = None,
    verbose: Verbose = False,
    plugin: Plugins = None,
) -> Result:
    """Solve a problem or target and print what is proved."""
    import dpopt

    load_plugins(plugin)
    options = read_options(option or [])
    outputs = Outputs({"--certificate": certificate}, force=force, inputs=[file], as_json=as_json)
    question = read_question(file)
    tell_of = progress(f"solving {name_of(file)} with {backend}", verbose, time_limit)
    with tell_of as tell, not_written(certificate):
        solution = dpopt.solve(question, backend, options=options, time_limit=time_limit, progress=tell)
    return solution_result(solution, outputs, as_json)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", readable=False, help="Certificate written by solve.")],
    as_json: Json = False,
    plugin: Plugins = None,
) -> Result:
    """Check a certificate without any solver."""
    import dpopt
    from dpopt.files.kinds import FileKind, unexpected

    load_plugins(plugin)
    content = read_input(certificate)
    with progress(f"checking {name_of(certificate)}"):
        verdict = dpopt.verify(content)
        if not verdict.holds and (error := unexpected(content, name_of(certificate), (FileKind.CERTIFICATE,))):
            raise error
        if plugin and verdict.holds:
            verdict = _with_definitions(verdict, content)
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
        lines = [f"{name_of(certificate)}: {'holds' if verdict.holds else 'does not hold'}: {verdict.reason}"]
        text = "\n".join([*lines, *_proved_numbers(verdict)])
    return Result(text, PROVED if verdict.holds else NOT_PROVED)


def _with_definitions(verdict: Verdict, content: bytes) -> Verdict:
    """The verdict once the plugins' definitions have given the trusted rows again, so that none is left on trust."""
    from dpopt.proof.trusted import confirm

    try:
        confirm(json.loads(content))
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
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="NAME=VALUE", help="Option of the backends that know it, or of one: highs.NAME=VALUE."
        ),
    ] = None,
    as_json: Json = False,
    time_limit: TimeLimit = None,
    verbose: Verbose = False,
    plugin: Plugins = None,
) -> Result:
    """Put problems to several backends: what each claims, and what dpopt proves from it; a time limit is for each."""
    import dpopt

    load_plugins(plugin)
    names = [name.strip() for name in backends.split(",") if name.strip()] or None
    require_one_standard_input(files)
    problems = [(file, read_question(file)) for file in files]  # a bad file stops before any solve
    for file, question in problems:
        if isinstance(question, dpopt.Target):
            raise InputError(str(file), f"holds a target, which has no single program: dpopt solve {file} answers it")
    options = _options_by_backend(read_options(option or []), names)
    found = []
    for file, problem in problems:
        with progress(f"comparing backends on {name_of(file)}", verbose, time_limit) as tell:
            try:
                found.append(dpopt.compare(problem, names, options, time_limit=time_limit, progress=tell))
            except InputError as error:
                raise error.inside(name_of(file)) from None
    proved = all(any(is_proved(row.verified) for row in comparison.rows) for comparison in found)
    if as_json:
        text = json_text({"comparisons": [comparison.to_dict() for comparison in found]})
    else:
        text = "\n\n\n".join(comparison.text() for comparison in found)
    return Result(text, PROVED if proved else NOT_PROVED)


def _options_by_backend(given: Mapping[str, Any], names: list[str] | None) -> dict[str, dict[str, Any]]:
    """What ``--option`` gave, for each backend that it is for: the one that is named, or all that know the option."""
    from dpopt.backends.registry import backend_names, get_backend

    found: dict[str, dict[str, Any]] = {}
    if not given:
        return found
    chosen = list(names or backend_names())
    for key, value in given.items():
        name, dot, rest = key.partition(".")
        if dot and name not in chosen:
            raise InputError("--option", f"names the backend {name!r}, which is none of {', '.join(chosen)}")
        option = rest if dot else key
        knowing = [name] if dot else [other for other in chosen if _knows(get_backend(other), option)]
        if not knowing:
            raise InputError("--option", f"gives {option!r}, which no backend of the comparison knows")
        for other in knowing:
            found.setdefault(other, {})[option] = value
    return found


def _knows(backend: Any, option: str) -> bool:
    return option in backend.options


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
