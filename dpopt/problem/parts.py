"""Parts of a problem: frozen data that validate themselves, and the registries that give each a type name.

A new constraint or objective is one class in anyone's file and one registration. Its dataclass fields are its TOML
keys and its Python arguments; nothing else needs to know about it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from typing import Any, ClassVar, NamedTuple, TypeVar

from dpopt.arithmetic import Number
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.privacy.shifts import lattice_shift
from dpopt.problem.costs import Cost, plain_number
from dpopt.problem.families.base import ObjectiveTerm, Term, TermCheck
from dpopt.problem.support import Support
from dpopt.record import Record
from dpopt.text import closest, listed

__all__ = [
    "Check",
    "Constraint",
    "Objective",
    "Part",
    "Setting",
    "constraint_types",
    "objective_types",
    "register_constraint",
    "register_objective",
]


@dataclass(frozen=True, repr=False)
class Check(Record):
    """The exact finding about one constraint.

    Parameters
    ----------
    constraint : str
        Type of the constraint, with its position where a type occurs twice.
    holds : bool
    margin : Fraction
        By how much it holds, in the constraint's own units (negative: by how much it fails).
    """

    constraint: str
    holds: bool
    margin: Fraction


@dataclass(frozen=True)
class Setting:
    """What a constraint may need to know of the problem it stands in: the support, and the mean if it is fixed."""

    support: Support
    fixed_mean: Fraction | None = None

    def shift(self, sensitivity: Number) -> int:
        """The largest shift in lattice steps that has something to say of its own, for a sensitivity in data units.

        Shifts as long as a finite support and more separate it from itself alike: all of them are one shift.

        Examples
        --------
        >>> from dpopt.problem.support import Integers
        >>> Setting(Integers(-3, 3)).shift(10**20), Setting(Integers(-3, 3)).shift(2), Setting(Integers()).shift(9)
        (7, 2, 9)
        """
        steps, window = lattice_shift(sensitivity, self.support.step), self.support.window
        return steps if window is None else min(steps, window[1] - window[0] + 1)


class AskedPrivacy(NamedTuple):
    """An epsilon at a sensitivity in data units, with delta 0 (`is_pure`) or with some delta."""

    epsilon: Fraction
    sensitivity: Fraction
    is_pure: bool = False


@dataclass(frozen=True)
class Part:
    """Base of everything that has a `type` name and dataclass fields as its keys."""

    type: ClassVar[str] = ""

    @property
    def asked_privacy(self) -> AskedPrivacy | None:
        """The privacy that it asks for, if any."""
        return None

    def plain(self) -> dict[str, Any]:
        """The TOML form: the type and every field that differs from its default."""
        table: dict[str, Any] = {"type": self.type}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                table[field.metadata.get("key", field.name)] = plain_value(value)
        return table


@dataclass(frozen=True)
class Constraint(Part):
    """Base of the constraints.

    A linear constraint overrides `terms` and gets its check for free. A constraint that is not linear gives the
    solver what it can in `terms` and overrides `check`.
    """

    is_centred: ClassVar[bool] = False  # whether it means nothing without a fixed mean

    @property
    def fixed_mean(self) -> Fraction | None:
        """The mean that it fixes, in data units; None where it fixes none."""
        return None

    def terms(self, setting: Setting) -> tuple[Term, ...]:
        """The exact rows, in lattice steps."""
        raise TypeError(f"{type(self).__name__} must override terms(setting)")

    def check(self, pmf: Pmf, setting: Setting) -> TermCheck:
        """Whether `pmf` meets the constraint, and by which margin, in exact arithmetic."""
        found = [term.check(pmf, setting.support.window) for term in self.terms(setting)]
        return TermCheck(all(f.holds for f in found), min((f.margin for f in found), default=Fraction(0)))


@dataclass(frozen=True)
class Objective(Part):
    """Base of the objectives: one term, minimised or maximised."""

    label: ClassVar[str] = ""  # what its value is called; its type when there is no other name

    def term(self, setting: Setting) -> ObjectiveTerm:
        """The exact objective, in lattice steps."""
        raise TypeError(f"{type(self).__name__} must override term(setting)")


def plain_value(value: object) -> Any:
    """A field's value as TOML writes it."""
    if isinstance(value, bool | str | int):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, Fraction):
        return plain_number(value)
    if isinstance(value, Cost | Part):
        return value.plain()
    if isinstance(value, tuple):
        return [plain_value(v) for v in value]
    if dataclasses.is_dataclass(value):
        present = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        fields = {name: plain_value(v) for name, v in present.items() if v is not None}
        return {"type": value.type, **fields} if hasattr(value, "type") else fields
    raise InputError("", f"{value!r} has no TOML form")


C = TypeVar("C", bound=type[Constraint])
O = TypeVar("O", bound=type[Objective])  # noqa: E741  # the second letter of its word

_constraints: dict[str, type[Constraint]] = {}
_objectives: dict[str, type[Objective]] = {}
_loaded_entry_points = False  # all of them; threads that meet here each load them, since a lock would meet import's
_thread = threading.local()  # of the one that loads: a package may ask for the types meanwhile, and gets what there is


def register_constraint(cls: C) -> C:
    """Class decorator: make a constraint known to Python, TOML and the command line by its `type` name."""
    return _register(cls, Constraint, _constraints)


def register_objective(cls: O) -> O:
    """Class decorator: make an objective known to Python, TOML and the command line by its `type` name."""
    return _register(cls, Objective, _objectives)


def _register(cls: Any, base: type[Part], table: dict[str, Any]) -> Any:
    if not (isinstance(cls, type) and issubclass(cls, base) and dataclasses.is_dataclass(cls)):
        raise InputError("cls", f"must be a frozen dataclass that extends {base.__name__}, not {cls!r}")
    name = cls.type
    if not name or name != name.lower() or " " in name:
        raise InputError("type", f"must be a name in kebab case, such as 'at-most-two', not {name!r}")
    known = table.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InputError("type", f"{name!r} is already registered by {known.__module__}.{known.__qualname__}")
    table[name] = cls
    return cls


def constraint_types() -> Mapping[str, type[Constraint]]:
    """All registered constraints by type name, entry points included."""
    _load_entry_points()
    return dict(_constraints)


def objective_types() -> Mapping[str, type[Objective]]:
    """All registered objectives by type name, entry points included."""
    _load_entry_points()
    return dict(_objectives)


def _load_entry_points() -> None:
    global _loaded_entry_points  # noqa: PLW0603  # once a process: packages do not appear while it runs
    if _loaded_entry_points or getattr(_thread, "loads_entry_points", False):
        return
    _thread.loads_entry_points = True
    try:
        for group, register in (("dpopt.constraints", register_constraint), ("dpopt.objectives", register_objective)):
            for entry in metadata.entry_points(group=group):
                register(entry.load())
    finally:
        _thread.loads_entry_points = False
    _loaded_entry_points = True


def build(kind: str, types: Mapping[str, Any], table: object, location: str) -> Any:
    """Make a part from its TOML table; every error names the location, what was found and what would be right."""
    if not isinstance(table, Mapping):
        raise InputError(location, f"must be a table with a type, not {table!r}")
    name = table.get("type")
    if not isinstance(name, str):
        raise InputError(location, f"needs type = one of {listed(types)}")
    if name not in types:
        raise InputError(f"{location}.type", f"{name!r} is not a known {kind}{closest(name, types)}")
    cls = types[name]
    keys = {f.metadata.get("key", f.name): f for f in dataclasses.fields(cls)}
    arguments = {}
    for key, value in table.items():
        if key == "type":
            continue
        if key not in keys:
            known = closest(str(key), keys) if keys else "; it takes no keys"
            raise InputError(f"{location}.{key}", f"is not a key of {kind} '{name}'{known}")
        arguments[keys[key].name] = value
    for key, field in keys.items():
        no_default = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if no_default and field.name not in arguments:
            raise InputError(f"{location}.{key}", f"is missing ({kind} '{name}' needs it)")
    try:
        return cls(**arguments)
    except InputError as error:
        raise error.inside(location) from None
