"""Results as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.measure import Times
from benchmarks.phases import TOLERANCE
from benchmarks.results import Ratio, Result

__all__ = ["as_text", "header"]


def header(environment: Mapping[str, Any], repeat: int) -> str:
    """Versions, machine, and how often each verb was timed."""
    return ", ".join(f"{key} {value}" for key, value in environment.items()) + f"; {repeat} repetitions after a warm-up"


def as_text(result: Result) -> str:
    """One result as a block of lines."""
    lines = ["", f"{result.case}  [{result.size}]  {result.text}", *_facts(result.facts)]
    lines.append(f"  {'':<26}{'median ms':>12}{'min ms':>12}{'min cpu ms':>12}")
    lines += [_times(name, times) for name, times in result.phases.items()]
    lines.append(_times("peer", result.peer_times))
    lines.append(f"  over the peer, {result.peer}:")
    lines += [_ratio(ratio) for ratio in result.ratios]
    return "\n".join(lines)


def _times(name: str, times: Times) -> str:
    columns = (times.median, times.least, times.cpu_least)
    return f"  {name:<26}" + "".join(f"{1000 * seconds:>12.3f}" for seconds in columns)


def _ratio(ratio: Ratio) -> str:
    line = f"    {ratio.name:<24}{ratio.by_median:>12.3g}{ratio.by_least:>12.3g}{ratio.by_cpu:>12.3g}"
    if ratio.met is not None:
        line += f"   demand: {ratio.demand}: {'met' if ratio.met else 'NOT MET'}"
    return line


def _facts(facts: Mapping[str, Any]) -> list[str]:
    if "loaded" in facts:
        loaded = facts["loaded"].items()
        return [f"  {statement}: loads {', '.join(names) or 'no numpy, no solver'}" for statement, names in loaded]
    said = f"  claimed {facts['claimed']} ({facts['backend']}), verified {facts['verified']}"
    if "value" in facts:
        bound = "none" if facts["bound"] is None else f"{facts['bound']:.12g}"
        gap = "" if facts["gap"] is None else f", gap {facts['gap']:.1e}"
        said += f"; value {facts['value']:.12g}, bound {bound}{gap}"
    else:
        said += f": {facts['message']}"
    lines = [said]
    if "peer_claimed" in facts:
        zeros = f"{facts['peer_zero_masses']} masses at zero"
        lines.append(f"  the peer claims {facts['peer_claimed']}, {facts['peer_objective']:.12g}, with {zeros}")
    reduced = f"reduced {facts['reduced_rows']}, {facts['reduced_columns']}"
    size = f"  {facts['rows']} rows, {facts['columns']} columns; {reduced}"
    if "value" in facts:
        ends = ", then closed geometric tails" if facts["tails_closed"] else ""
        depth = facts["decades_below_tolerance"]
        size += f"; least mass {abs(depth):.1f} decades {'below' if depth > 0 else 'above'} {TOLERANCE:g}{ends}"
    lines.append(size + (f"; {facts['cores_tried']} cores" if facts["cores_tried"] > 1 else ""))
    return lines
