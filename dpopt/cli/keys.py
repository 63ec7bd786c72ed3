"""`dpopt keys`: a key table for a key size, or the smallest power of two that does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpopt.cli.door import NOT_PROVED, PROVED, Result, app
from dpopt.cli.files import Csv, Force, Outputs
from dpopt.cli.shared import Json, is_proved, json_text, progress
from dpopt.cli.sources import (
    Backend,
    Gamma,
    HalfWidth,
    Noise,
    Sensitivity,
    Source,
    Variance,
    float_of,
    read_moves,
    read_noise,
)
from dpopt.errors import InputError

if TYPE_CHECKING:
    from dpopt.tables.key_table import KeyTable

__all__: list[str] = []  # the command registers itself

_MOST_BITS = 4096
_SHOWN = 101  # rows of the table that are printed
_POWER = re.compile(r"2(?:\^|\*\*)([0-9]{1,6})")


@app.command()
def keys(
    source: Source = None,
    half_width: HalfWidth = None,
    variance: Variance = None,
    gamma: Gamma = None,
    key_size: Annotated[
        str | None, typer.Option(metavar="K", help="KEYSIZE, such as 65536 or 2^32; the smallest 2^k by default.")
    ] = None,
    rule: Annotated[
        str, typer.Option(metavar="NAME", help="ceiling (the paper's), symmetric, cumulative or optimal.")
    ] = "ceiling",
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="Wanted, with --delta, of the integers.")] = None,
    delta: Annotated[str | None, typer.Option(metavar="DELTA", help="Wanted, with --epsilon.")] = None,
    sensitivity: Sensitivity = "1",
    variance_limit: Annotated[
        str | None, typer.Option("--variance", metavar="V", help="Wanted at most (optimal: that of the noise).")
    ] = None,
    backend: Backend = "highs",
    csv: Csv = None,
    force: Force = False,
    as_json: Json = False,
) -> Result:
    """How many keys yield each noise value, and what these integers guarantee in both directions."""
    wanted = _Wanted.of(epsilon, delta, sensitivity, variance_limit, rule)
    outputs = Outputs({"--csv": csv}, force=force, inputs=[source], as_json=as_json)
    noise = read_noise(source, half_width, variance, gamma)
    with progress("making the key table"):
        if key_size is not None:
            found = _at(noise, _key_size(key_size), wanted, backend)
        elif variance_limit is not None:
            raise InputError("--variance", "needs --key-size: the smallest key size is searched without it")
        else:
            found = _smallest(noise, wanted, backend)
    note = ""
    if found.table is not None and found.holds:
        outputs.save("--csv", found.table.to_csv())
    elif csv is not None:
        note = outputs.not_written("--csv", "no table holds what was asked")
    text = json_text(found.plain(noise, wanted)) if as_json else found.text(noise, wanted)
    return outputs.result(text, PROVED if found.holds else NOT_PROVED, note)


def _key_size(text: str) -> int:
    from dpopt.arithmetic import exact_integer

    power = _POWER.fullmatch(text.strip())
    if power and int(power[1]) <= _MOST_BITS:
        return 1 << int(power[1])
    size = None if power else exact_integer(text, "key_size", at_least=1)
    if size is None or size > 1 << _MOST_BITS:
        raise InputError("key_size", f"must be at most 2^{_MOST_BITS}")
    return size


# --- what is asked and what is found ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wanted:
    """What the integers have to hold."""

    rule: str
    epsilon: Fraction | None
    delta: Fraction | None
    sensitivity: Fraction
    variance: Fraction | None

    @classmethod
    def of(cls, epsilon: str | None, delta: str | None, sensitivity: str, variance: str | None, rule: str) -> _Wanted:
        """Read and refused before anything is computed."""
        from dpopt.arithmetic import exact, read_epsilon
        from dpopt.tables.quantise import read_rule

        if (epsilon is None) != (delta is None):
            missing = "--epsilon" if epsilon is None else "--delta"
            raise InputError(missing, "must be given as well: (epsilon, delta) are wanted together")
        mass = None if delta is None else exact(delta, "delta")
        if mass is not None and not 0 <= mass <= 1:
            raise InputError("delta", f"must lie between 0 and 1, not {mass}")
        limit = None if variance is None else exact(variance, "variance")
        if limit is not None and limit < 0:
            raise InputError("variance", f"must be at least 0, not {limit}")
        moved = read_moves(sensitivity)
        if moved < 1:
            raise InputError("sensitivity", f"must be at least 1 (counts move by integers), not {moved}")
        return cls(str(read_rule(rule)), None if epsilon is None else read_epsilon(epsilon), mass, moved, limit)

    def moves(self, values: int) -> Fraction:
        """The sensitivity, cut at the number of noise values: from there on nothing overlaps and delta is 1."""
        return min(self.sensitivity, Fraction(values))

    def checks(self, table: KeyTable, support: list[bool]) -> dict[str, bool]:
        """Each wanted property, decided on the integers."""
        found = {"full support": all(n > 0 for n, needed in zip(table.counts, support, strict=True) if needed)}
        if self.variance is not None:
            found["variance"] = table.variance <= self.variance
        if self.epsilon is not None and self.delta is not None:
            found["approx-dp"] = table.keeps(self.epsilon, self.delta, self.moves(len(table.counts)))
        return found


@dataclass(frozen=True)
class _Found:
    """A table or none, what was checked on it, and the words that go with it."""

    verified: str
    message: str
    table: KeyTable | None
    checks: Mapping[str, bool]
    refuted: tuple[tuple[int, str], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether there is a table that holds all that was asked."""
        return self.table is not None and all(self.checks.values())

    def plain(self, noise: Noise, wanted: _Wanted) -> dict[str, Any]:
        """The JSON object of the command line: counts as text, nearest floats otherwise."""
        table = self.table
        return {
            "source": noise.name,
            "rule": wanted.rule,
            "verified": self.verified,
            "message": self.message,
            "checks": [{"constraint": name, "holds": holds} for name, holds in self.checks.items()],
            "key_table": None if table is None else table.to_dict(),
            "bias": None if table is None else float_of(table.bias),
            "variance": None if table is None else float_of(table.variance),
            "support": None if table is None else [table.effective_support[0], table.effective_support[-1]],
            "lost": None if table is None else len(table.counts) - len(table.effective_support),
            **(_pairs_plain(table) if table is not None else {"paper": None, "corrected": None}),
            "privacy": None if table is None else _delta_plain(table, wanted),
            "refuted": [{"key_size": str(size), "reason": reason} for size, reason in self.refuted],
        }

    def text(self, noise: Noise, wanted: _Wanted) -> str:
        """For people."""
        lines = [f"{noise.name}, rule {wanted.rule}"]
        if self.message:
            lines.append(f"{'verified':<16} {self.verified}: {self.message}")
        lines += [f"{'refuted':<16} {size}: {reason}" for size, reason in self.refuted[-3:]]
        if self.table is not None:
            lines += _table_lines(self.table, wanted, self.checks)
        return "\n".join(lines)


# --- making tables ---------------------------------------------------------------------------------------------------


def _at(noise: Noise, size: int, wanted: _Wanted, backend: str) -> _Found:
    """The table for one key size."""
    from dpopt.tables.optimal import optimal_table
    from dpopt.tables.quantise import key_table

    if wanted.rule != "optimal":
        table = key_table(noise.ideal, size, rule=wanted.rule)
        checks = wanted.checks(table, [w > 0 for w in noise.pmf.weights])
        return _Found("feasible" if all(checks.values()) else "failed", "", table, checks)
    solution = optimal_table(
        noise.ideal,
        size,
        variance=wanted.variance,
        epsilon=wanted.epsilon,
        delta=wanted.delta,
        sensitivity=wanted.moves(len(noise.pmf.weights)),
        backend=backend,
    )
    proved = solution.proved_table if is_proved(solution.verified) else None
    return _Found(solution.verified.value, solution.message, proved, {c.name: c.holds for c in solution.checks})


def _smallest(noise: Noise, wanted: _Wanted, backend: str) -> _Found:
    """The smallest power of two that does, each smaller one refuted."""
    from dpopt.tables.sizes import smallest_key_size

    search = smallest_key_size(
        noise.ideal,
        wanted.epsilon,
        wanted.delta,
        sensitivity=wanted.moves(len(noise.pmf.weights)),
        rule=wanted.rule,
        backend=backend,
    )
    refuted = tuple((r.key_size, r.reason + ("" if r.proved else " (not proved)")) for r in search.refutations)
    if search.found is None:
        return _Found("infeasible" if search.is_proved else "failed", "no key size up to 2^64 does", None, {}, refuted)
    known = "each smaller one is refuted" if search.is_proved else "not every smaller one is refuted"
    checks = wanted.checks(search.found, [w > 0 for w in noise.pmf.weights])
    words = f"{search.found.key_size} is the smallest power of two that does; {known}"
    return _Found("optimal" if search.is_proved else "feasible", words, search.found, checks, refuted)


# --- showing them ----------------------------------------------------------------------------------------------------


def _table_lines(table: KeyTable, wanted: _Wanted, checks: Mapping[str, bool]) -> list[str]:
    from dpopt.text import aligned, decimal_text

    lost = len(table.counts) - len(table.effective_support)
    low, high = table.effective_support[0], table.effective_support[-1]
    lines = [
        f"{'key size':<16} {table.key_size}",
        f"{'support':<16} [{low}, {high}]" + (f", {lost} of {len(table.counts)} values lost" if lost else ""),
        f"{'bias':<16} {decimal_text(table.bias, 9, up=None)}",
        f"{'variance':<16} {decimal_text(table.variance, 12, up=None)}",
        *str(table.privacy_pairs()).splitlines(),
    ]
    if wanted.epsilon is not None:
        both = table.delta(wanted.epsilon, wanted.moves(len(table.counts)))
        forward, reverse = (decimal_text(side.upper, 9, up=True) for side in (both.forward, both.reverse))
        at = f"epsilon {float(wanted.epsilon):.12g}, sensitivity {float(wanted.sensitivity):g}"
        lines.append(f"{'delta':<16} forward {forward}, reverse {reverse} at {at}")
    lines += [f"{'check':<16} {name}: {'holds' if holds else 'FAILS'}" for name, holds in checks.items()]
    rows = list(zip(range(table.start, table.end + 1), table.counts, table.cumulative, strict=True))
    if len(rows) > _SHOWN:
        return [*lines, f"{'table':<16} {len(rows)} rows; --csv writes them"]
    return [*lines, *aligned([("noise", "keys", "cumulative"), *(tuple(map(str, row)) for row in rows)])]


def _pairs_plain(table: KeyTable) -> dict[str, Any]:
    pairs = table.privacy_pairs()
    return {
        "paper": {
            "epsilon": float_of(pairs.paper_epsilon),
            "delta": float(pairs.paper_delta),
            "holds": pairs.paper_holds,
            "delta_forward": float_of(pairs.delta_forward),
            "delta_reverse": float_of(pairs.delta_reverse),
        },
        "corrected": {"epsilon": float_of(pairs.corrected_epsilon), "delta": float_of(pairs.corrected_delta)},
    }


def _delta_plain(table: KeyTable, wanted: _Wanted) -> dict[str, Any] | None:
    if wanted.epsilon is None:
        return None
    both = table.delta(wanted.epsilon, wanted.moves(len(table.counts)))
    return {
        "epsilon": float(wanted.epsilon),
        "sensitivity": float(wanted.sensitivity),
        "delta_forward": float(both.forward.upper),
        "delta_reverse": float(both.reverse.upper),
    }
