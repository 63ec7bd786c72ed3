"""The independent checker: from a certificate's statement to what it proves, with no solver in sight.

The statement gives a problem, an exact pmf and integer multipliers. Nothing else is believed: the constraints are
checked on the pmf itself, and the multipliers are put through weak duality, which turns *any* numbers into a rigorous
bound (bad ones only make it weak). The steps, and the files that are trusted to take them:

1. the JSON data is read into exact numbers and lattice indices (`reading`, `stated_objective`, `stated_problem`,
   `stated_law`, `statement`);
2. e^epsilon is enclosed between two rationals E_lo <= e^epsilon <= E_hi;
3. every constraint is decided on the pmf, with the margin it is met by, and the objective is computed
   (`pmf_checks`);
4. the multipliers y give the reduced cost ``d = cost - sum y h + ...`` of every lattice point, with E_hi for
   e^epsilon, and ``objective >= constant + lambda`` where lambda is the largest number that a theorem allows
   (`weak_duality`);
5. value and bound together say optimal, feasible or infeasible (this file).

Everything is integer arithmetic over common denominators; balls are used for logarithms only.

These eight files are the trusted base, with what they stand on: `dpopt.arithmetic` (numbers, e^epsilon, logarithms by
python-flint), `dpopt.lattice_function` (tables with polynomial tails, and their sums), `dpopt.distributions` and
`dpopt.pmf` (the input of a Wasserstein objective) and `dpopt.errors`. None of them knows a solver or the code that
made the certificate. Certificates of kind "target" go through one file more, `target_checker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpopt.arithmetic import Enclosure, exp_enclosure
from dpopt.errors import CertificateError, InputError
from dpopt.proof.pmf_checks import margin, objective_value
from dpopt.proof.reading import brief, parse_json, reject, text
from dpopt.proof.stated_law import Law
from dpopt.proof.statement import FORMAT, Statement, read_statement
from dpopt.proof.weak_duality import proved_bound
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
        if isinstance(statement, Mapping) and statement.get("kind") == "target":
            if statement.get("format") != FORMAT:
                reject("format", f"must be {FORMAT!r}, not {brief(statement.get('format'))}")
            from dpopt.proof.target_checker import derive_target  # reads targets, which only these certificates hold

            return derive_target(statement, derive)
        return _derivation(read_statement(statement))
    except InputError as error:
        message = str(error)
        raise CertificateError(message if len(message) <= 300 else message[:297] + "...") from error
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
    """The canonical derived data, by the steps of the module's docstring."""
    law, enclosures = statement.law, _enclosures(statement)
    checks, value = [], None
    if law is not None:
        checks = _checks(statement, law, enclosures)
        value = objective_value(law, statement.objective, enclosures, statement.step)
    bound = proved_bound(statement, enclosures)
    maximise = statement.objective.form == "entropy"
    return {
        "enclosures": {text(epsilon): _ends(found) for epsilon, found in enclosures.items()},
        "value": None if value is None else _ends(value),
        "bound": None if bound is None else text(bound),
        "verified": "infeasible" if value is None else _verified(value, bound, maximise=maximise),
        "checks": checks,
    }


def _enclosures(statement: Statement) -> dict[Fraction, Enclosure]:
    """e^epsilon, rounded outward to the statement's precision, for every epsilon of the problem."""
    found = [c.epsilon for c in statement.constraints if c.private]
    found += [statement.objective.epsilon] if statement.objective.form == "delta" else []
    return {epsilon: exp_enclosure(epsilon, statement.precision) for epsilon in found}


def _checks(statement: Statement, law: Law, enclosures: Mapping[Fraction, Enclosure]) -> list[dict[str, Any]]:
    """Decide every constraint on the pmf; the first that fails is an error."""
    found = []
    for i, constraint in enumerate(statement.constraints):
        try:
            met = margin(law, constraint, enclosures, infinite=statement.window is None)
        except CertificateError as error:
            raise CertificateError(f"problem.constraints[{i}] ({brief(constraint.type)}): {error}") from None
        found.append({"constraint": constraint.type, "holds": True, "margin": text(met)})
    return found


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
