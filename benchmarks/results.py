"""What a run finds: one result a case and size, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import Times, fresh_interpreter, measure
from benchmarks.peers import PeerClaim, exp_once, plain_highs
from benchmarks.phases import PHASES, Subject, decades_below_tolerance
from benchmarks.registry import Case, Demand, ImportCase, Peer, Size

__all__ = ["GROUPS", "Ratio", "Result", "run"]

GROUPS = {
    "formulate+reduce": ("formulate", "reduce", "reduce again"),
    "solve": ("solve", "solve again"),
    "repair+check+bound": ("repair", "check", "bound", "bound again"),
    "all proof": ("repair", "check", "bound", "solve again", "bound again"),
    "verify": ("verify",),
    "whole": ("whole",),
}
"""What is divided by the peer's time; a phase that did not happen counts nothing. A second solve is asked for by the
proof alone, so "all proof" has it."""


@dataclass(frozen=True)
class Ratio:
    """Phases over the peer, within one run, and the demand on them, if there is one (medians of wall time decide)."""

    name: str
    by_median: float
    by_least: float
    by_cpu: float
    demand: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Result:
    """A case at one size: times by phase, the peer's time, ratios, and what was claimed and verified."""

    case: str
    size: Size
    axis: str
    text: str
    phases: Mapping[str, Times]
    peer: str
    peer_times: Times
    ratios: tuple[Ratio, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def run(case: Case | ImportCase, repeat: int, sizes: tuple[Size, ...] | None = None) -> Iterator[Result]:
    """Measure a case at its sizes, or at some of them."""
    if isinstance(case, ImportCase):
        yield _imports(case, repeat)
        return
    for size in case.sizes if sizes is None else sizes:
        yield _problem(case, size, repeat)


def _problem(case: Case, size: Size, repeat: int) -> Result:
    with TemporaryDirectory(prefix="dpopt-benchmark-") as folder:
        return _measured(Subject(case, size, Path(folder)), repeat)


def _measured(subject: Subject, repeat: int) -> Result:
    case, size = subject.case, subject.size
    formulation = subject.attempt.formulation
    if case.peer is Peer.HIGHS:
        peer_set_up = plain_highs(formulation.program, formulation.core.size)
    else:
        peer_set_up = exp_once(formulation.core.size)
    peer_times, peer_claim = measure(peer_set_up, repeat)
    phases = {name: measure(partial(PHASES[name], subject), repeat)[0] for name in subject.phases}
    demands = [demand for demand in case.demands if demand.size == size]
    facts = _facts(subject, peer_claim if isinstance(peer_claim, PeerClaim) else None)
    ratios = _ratios(phases, peer_times, demands)
    return Result(case.name, size, case.axis, case.text, phases, case.peer, peer_times, ratios, facts)


def _ratios(phases: Mapping[str, Times], peer: Times, demands: list[Demand]) -> tuple[Ratio, ...]:
    ratios = []
    for name, group in GROUPS.items():
        parts = [part for part in group if part in phases]
        if not parts:
            continue
        by_median = sum(phases[part].median for part in parts) / peer.median
        by_least = sum(phases[part].least for part in parts) / peer.least
        by_cpu = sum(phases[part].cpu_least for part in parts) / peer.cpu_least
        asked = next((demand for demand in demands if demand.group == name), None)
        text = "" if asked is None else f"{asked.name} under {asked.at_most:g}"
        met = None if asked is None else by_median < asked.at_most
        ratios.append(Ratio(name, by_median, by_least, by_cpu, text, met))
    return tuple(ratios)


def _facts(subject: Subject, peer: PeerClaim | None) -> dict[str, Any]:
    solution, attempt = subject.solution, subject.attempt
    facts: dict[str, Any] = {
        "backend": solution.backend,
        "claimed": solution.claimed.value,
        "verified": solution.verified.value,
        "rows": attempt.formulation.program.rows.shape[0],
        "columns": attempt.formulation.program.rows.shape[1],
        "reduced_rows": attempt.reduced[0],
        "reduced_columns": attempt.reduced[1],
        "cores_tried": subject.cores_tried,
    }
    if solution.proved_pmf is None:
        facts["message"] = solution.message
    else:
        bound, gap = solution.bound, solution.gap
        facts |= {
            "value": float(solution.value.lower),
            "bound": None if bound is None else float(bound),
            "gap": None if gap is None else float(gap),
            "decades_below_tolerance": decades_below_tolerance(solution.pmf),
            "tails_closed": solution.pmf.tails is not None,
            "certificate_bytes": subject.certificate_file.stat().st_size if subject.proves else None,
        }
    if peer is not None:
        facts |= {"peer_claimed": peer.status, "peer_objective": peer.objective, "peer_zero_masses": peer.zeros}
    return facts


def _imports(case: ImportCase, repeat: int) -> Result:
    measured = {statement: fresh_interpreter(statement, repeat) for statement in case.statements}
    peer, *others = case.statements
    peer_times = measured[peer][0]
    phases = {statement: measured[statement][0] for statement in others}
    ratios = tuple(
        Ratio(s, t.median / peer_times.median, t.least / peer_times.least, t.cpu_least / peer_times.cpu_least)
        for s, t in phases.items()
    )
    loaded = {s: sorted({"numpy", *case.absent} & measured[s][1]) for s in others}
    return Result(case.name, "-", "-", case.text, phases, peer, peer_times, ratios, {"loaded": loaded})
