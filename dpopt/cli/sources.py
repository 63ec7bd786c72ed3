"""Where the noise of `dpopt privacy` and `dpopt keys` comes from: a file, or a member of the TableBuilder family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from dpopt.cli.files import name_of, read_input
from dpopt.errors import DpoptError, InputError
from dpopt.files.kinds import FileKind, unexpected
from dpopt.text import brief

if TYPE_CHECKING:
    from dpopt.arithmetic import Enclosure
    from dpopt.pmf import Pmf

__all__ = [
    "Backend",
    "Gamma",
    "HalfWidth",
    "Noise",
    "Sensitivity",
    "Source",
    "Variance",
    "float_of",
    "read_half_width",
    "read_moves",
    "read_noise",
]

_SOURCES = (FileKind.CERTIFICATE, FileKind.PMF, FileKind.KEY_TABLE, FileKind.KEY_TABLE_CSV)
_LARGEST = 10**6  # of D and of a sensitivity: what is larger takes minutes and gigabytes

Source = Annotated[
    Path | None,
    typer.Argument(metavar="[SOURCE]", readable=False, help="Certificate, pmf (JSON) or key table (JSON or CSV)."),
]
HalfWidth = Annotated[str | None, typer.Option("--D", metavar="D", help="Noise exp(-gamma z^2) on [-D, D] ...")]
Variance = Annotated[str | None, typer.Option("--V", metavar="V", help="... with at most this variance,")]
Gamma = Annotated[str | None, typer.Option("--gamma", metavar="GAMMA", help="... or with this gamma, such as 1/21.")]
Sensitivity = Annotated[str, typer.Option(metavar="M", help="The most that one person changes a count by.")]
Backend = Annotated[str, typer.Option(metavar="NAME", help="The solver, where one is needed.")]


class Noise(NamedTuple):
    """The noise and how it was named; its (D, gamma) where it is a member of the family, its certificate if any."""

    name: str
    pmf: Pmf
    member: tuple[int, Fraction] | None = None
    certificate: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        from dpopt.text import decimal_text

        low, high, mean, variance = (
            decimal_text(number, 6, up=None)
            for number in (self.pmf.low, self.pmf.high, self.pmf.mean, self.pmf.variance)
        )
        tails = "" if self.pmf.tails is None else " and geometric tails"
        return f"{self.name}: support [{low}, {high}]{tails}, mean {mean}, variance {variance}"

    @property
    def ideal(self) -> Pmf | tuple[int, Fraction]:
        """What becomes a key table: the member itself rather than its weights."""
        return self.member or self.pmf


def read_noise(source: Path | None, half_width: str | None, variance: str | None, gamma: str | None) -> Noise:
    """The noise of a file, or of ``--D`` with ``--V`` or ``--gamma``."""
    if source is not None:
        for option, value in (("--D", half_width), ("--V", variance), ("--gamma", gamma)):
            if value is not None:
                raise InputError(option, f"cannot stand beside the file {source}")
        return _of_file(source)
    if half_width is None:
        raise InputError("SOURCE", "is missing: name a certificate or pmf file, or give --D with --V or --gamma")
    if (variance is None) == (gamma is None):
        raise InputError("--D", "needs --V or --gamma beside it, one of them")
    return _of_family(half_width, variance, gamma)


def read_half_width(text: str) -> int:
    """``--D``, within what can be computed."""
    from dpopt.arithmetic import exact_integer

    half = exact_integer(text, "D", at_least=0)
    if half > _LARGEST:
        raise InputError("D", f"must be at most {_LARGEST}, not {text.strip()}")
    return half


def read_moves(text: str) -> Fraction:
    """``--sensitivity``, within what can be computed; the library says what else is wrong with it."""
    from dpopt.arithmetic import exact

    moved = exact(text, "sensitivity")
    if moved > _LARGEST:
        raise InputError("sensitivity", f"must be at most {_LARGEST}, not {text.strip()}")
    return moved


def float_of(number: Fraction | Enclosure | None) -> float | None:
    """The nearest float; None where no finite float is near."""
    try:
        return None if number is None else float(number)
    except OverflowError:
        return None


def _of_family(half_width: str, variance: str | None, gamma: str | None) -> Noise:
    from dpopt.arithmetic import exact
    from dpopt.family.members import family_pmf
    from dpopt.family.profile import family_rate

    half = read_half_width(half_width)
    if variance is not None:
        rate = family_rate(half, variance).upper  # the end whose variance is at most V
        return Noise(f"D = {half}, V = {brief(variance)}", family_pmf(half, rate), (half, rate))
    rate = exact(gamma, "gamma")
    if rate < 0:
        raise InputError("gamma", f"must be at least 0, not {rate}")
    return Noise(f"D = {half}, gamma = {brief(gamma)}", family_pmf(half, rate), (half, rate))


def _of_file(path: Path) -> Noise:
    content, name = read_input(path), name_of(path)
    try:
        return _of_content(content, name)
    except InputError as error:
        raise unexpected(content, name, _SOURCES) or error from None


def _of_content(content: bytes, name: str) -> Noise:
    try:
        if content.lstrip()[:1] not in b"{[":
            from dpopt.tables.key_table import KeyTable

            return Noise(name, KeyTable.from_csv(content).pmf)
        data = json.loads(content, parse_constant=_refuse_constant)
        return Noise(name, _of_data(data), certificate=data if "kind" in data else None)
    except json.JSONDecodeError as error:
        raise InputError(name, f"is not JSON: {error}") from None
    except RecursionError:
        raise InputError(name, "is nested too deeply") from None
    except DpoptError as error:
        raise InputError(name, str(error)) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        wrong = (
            f"an entry has the wrong form ({error})" if isinstance(error, TypeError | AttributeError) else str(error)
        )
        words = f"lacks the entry {error}" if isinstance(error, KeyError) else wrong
        raise InputError(name, f"is no certificate, pmf or key table: {words}") from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _of_data(data: Any) -> Pmf:
    """The pmf in a certificate (of a solution or a target), of a key table, or in `Pmf.to_dict` form."""
    from dpopt.pmf import Pmf

    if not isinstance(data, Mapping):
        raise InputError("", f"must hold a JSON object, not {type(data).__name__}")
    if data.get("type") == "key-table":
        from dpopt.tables.key_table import KeyTable

        return KeyTable.from_dict(data).pmf
    kind = data.get("kind")
    if kind == "target":
        return _of_target(data)
    found = data.get("pmf", data) if kind is None else _certified(data)
    if not isinstance(found, Mapping) or isinstance(found.get("weights"), str):
        raise InputError("pmf", "must be an object with 'start' and a list 'weights'")
    return Pmf.from_dict(found)


def _certified(data: Mapping[str, Any]) -> Any:
    """The law of a certificate."""
    from dpopt.checker.statement import read_format

    laws = read_format(data).get("laws")
    if laws is None:
        raise InputError("laws", "are missing: this certificate proves that there are none")
    if not isinstance(laws, list) or len(laws) != 1:
        raise InputError("laws", "must be a list of one pmf")
    return laws[0]


def _of_target(data: Mapping[str, Any]) -> Pmf:
    """The design of a target's certificate: its own pmf, or the canonical member of the family."""
    from dpopt.arithmetic import exact, exact_integer
    from dpopt.checker.target import member_pmf
    from dpopt.pmf import Pmf
    from dpopt.problem.target import Target

    if data.get("design") is not None:
        return Pmf.from_dict(_certified(data["design"]))
    half, rate = exact_integer(data["D"], "D", at_least=0), exact(data["gamma"], "gamma")
    if half > _LARGEST or rate < 0:
        raise InputError("D" if half > _LARGEST else "gamma", "is out of range")
    return member_pmf(Target.from_dict({"target": data.get("target")}), half, rate)
