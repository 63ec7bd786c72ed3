"""From a certificate's statement to what it proves: derive everything again, and compare with what it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpopt.arithmetic import Enclosure, exp_enclosure
from dpopt.checker.bound import proved_bound
from dpopt.checker.effort import one_account
from dpopt.checker.law import Law
from dpopt.checker.reading import brief, parse_json, text
from dpopt.checker.stated import Enclosures
from dpopt.checker.statement import Statement, read_format, read_statement
from dpopt.errors import CertificateError, InputError
from dpopt.record import Record

__all__ = ["Verdict", "certify", "derive", "verify"]

OPTIMAL_GAP = Fraction(1, 10**6)


@dataclass(frozen=True, repr=False)
class Verdict(Record):
    """What `verify` found: whether the certificate holds, why not, and what it then proves.

    `verified` is ``"optimal"``, ``"feasible"``, ``"infeasible"``, or ``"failed"`` when the certificate does not hold.
    `value` encloses the objective of the certified pmf and `bound` is what no other pmf can beat (the D of a target);
    None where nothing of the kind is proved.
    """

    holds: bool
    reason: str
    verified: str
    value: Enclosure | None = None
    bound: Fraction | None = None

    def __bool__(self) -> bool:
        return self.holds


def derive(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that a statement proves, as canonical JSON data.

    Parameters
    ----------
    statement : mapping
        The certificate's JSON data; its ``"derived"`` entry, if any, is ignored.

    Returns
    -------
    dict
        ``enclosures``, ``value``, ``bound``, ``verified`` and ``checks``, numbers as canonical strings.

    Raises
    ------
    CertificateError
        The statement is malformed, a constraint does not hold, or an infeasibility proof proves nothing.
    """
    try:
        with one_account():
            if read_format(statement).get("kind") == "target":
                from dpopt.checker.target import derive_target  # read by these certificates alone

                return derive_target(statement, derive)
            return _derivation(read_statement(statement))
    except InputError as error:
        message = str(error)
        raise CertificateError(message if len(message) <= 400 else message[:397] + "...") from error
    except (ArithmeticError, MemoryError) as error:
        raise CertificateError(f"cannot be decided: {error or type(error).__name__}") from error


def certify(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The statement with its ``"derived"`` entry filled in: a certificate."""
    return {**statement, "derived": derive(statement)}


def verify(source: Any) -> Verdict:
    """Check a certificate: the path of its file, the file's content as bytes, its data, or a solution or certificate
    object that holds them.

    Raises
    ------
    InputError
        `source` is none of these, or the file cannot be read. Whatever the file contains, the answer is a verdict.
    """
    if not isinstance(source, str | Path | bytes | Mapping):
        source = getattr(source, "certificate", source)
        source = getattr(source, "data", source)
        if not isinstance(source, Mapping):
            raise InputError("source", f"must be a certificate, its path or its data, not {type(source).__name__}")
    try:
        if isinstance(source, str | Path):
            source = _content(Path(source))
        data = parse_json(_text(source)) if isinstance(source, bytes) else source
        expected = derive(data)  # type: ignore[arg-type]  # reading begins by checking that this is an object
        if not isinstance(data, Mapping) or "derived" not in data:
            raise CertificateError("certificate: lacks the key 'derived'")
        _same(data["derived"], expected, "derived")
        reason = f"the certificate proves: {expected['verified']}{_trusted(data)}"
    except CertificateError as error:
        return Verdict(False, str(error), "failed")
    except InputError:
        raise
    except Exception as error:  # whatever a hostile file manages to do, it is not a proof
        return Verdict(False, f"not a readable certificate ({type(error).__name__}: {brief(str(error))})", "failed")
    value, bound = expected.get("value"), expected.get("bound")
    return Verdict(
        True,
        reason,
        expected["verified"],
        None if value is None else Enclosure(Fraction(value[0]), Fraction(value[1])),
        None if bound is None else Fraction(bound),
    )


def _trusted(data: Mapping[str, Any]) -> str:
    """What a verdict rests on besides proof: the rows that stand for custom types."""
    trusted = data.get("trusted") or {}
    parts = [f"constraint {i}" for i in trusted.get("constraints") or {}]
    parts += ["the objective"] if trusted.get("objective") else []
    return f"; taken on trust: the stored rows of {', '.join(parts)}" if parts else ""


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError("source", f"cannot be read: {error.strerror or error}") from error


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise CertificateError("not a JSON file: it is not UTF-8 text") from None


def _same(given: object, expected: object, where: str) -> None:
    """Raise unless the two JSON values are equal, naming the first field that differs."""
    if isinstance(expected, dict):
        if not isinstance(given, Mapping) or set(given) != set(expected):
            raise CertificateError(f"{where}: must have exactly the keys {', '.join(expected)}")
        for key, value in expected.items():
            _same(given[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        if not isinstance(given, list | tuple) or len(given) != len(expected):
            raise CertificateError(f"{where}: must be a list of {len(expected)} entries")
        for i, value in enumerate(expected):
            _same(given[i], value, f"{where}[{i}]")
    elif type(given) is not type(expected) or given != expected:
        raise CertificateError(f"{where}: states {brief(given)}, but {brief(expected)} follows from the statement")


# --- the derivation ----------------------------------------------------------------------------------------------


def _derivation(statement: Statement) -> dict[str, Any]:
    """The canonical derived data, by the steps of the package's docstring."""
    law, enclosures = statement.law, _enclosures(statement)
    checks, value = [], None
    if law is not None:
        checks = _checks(statement, law, enclosures)
        with _inside("problem.objective"):
            value = statement.objective.value(law, enclosures)
    with _inside("witnesses"):
        bound = proved_bound(statement, enclosures)
    maximise = statement.objective.maximise
    return {
        "enclosures": {text(epsilon): _ends(found) for epsilon, found in enclosures.items()},
        "value": None if value is None else _ends(value),
        "bound": None if bound is None else text(bound),
        "verified": "infeasible" if value is None else _verified(value, bound, maximise=maximise),
        "checks": checks,
    }


def _enclosures(statement: Statement) -> Enclosures:
    """e^epsilon, rounded outward to the statement's precision, for every epsilon of the problem."""
    parts = (*statement.constraints, statement.objective)
    return {epsilon: exp_enclosure(epsilon, statement.precision) for part in parts for epsilon in part.epsilons}


def _checks(statement: Statement, law: Law, enclosures: Enclosures) -> list[dict[str, Any]]:
    """Decide every constraint on the pmf; the first that fails is an error."""
    found = []
    for i, constraint in enumerate(statement.constraints):
        try:
            met = constraint.margin(law, enclosures)
        except (CertificateError, InputError) as error:
            raise CertificateError(f"problem.constraints[{i}] ({brief(constraint.kind)}): {error}") from None
        found.append({"constraint": constraint.kind, "holds": True, "margin": text(met)})
    return found


@contextmanager
def _inside(where: str) -> Iterator[None]:
    """Say where what is refused for its size comes from."""
    try:
        yield
    except InputError as error:
        raise error.inside(where) from None


def _ends(enclosure: Enclosure) -> list[str]:
    return [text(enclosure.lower), text(enclosure.upper)]


def _verified(value: Enclosure, bound: Fraction | None, *, maximise: bool) -> str:
    """`optimal` if value and bound are equal, or close when both are read at their unfavourable ends."""
    if bound is None:
        return "feasible"
    gap = bound - value.lower if maximise else value.upper - bound
    if gap < 0:
        raise CertificateError("value: lies beyond its own bound, so that one of the two is wrong")
    smallest = min(abs(value.lower), abs(value.upper)) if value.lower * value.upper > 0 else Fraction(0)
    return "optimal" if gap <= OPTIMAL_GAP * max(smallest, abs(bound)) else "feasible"
