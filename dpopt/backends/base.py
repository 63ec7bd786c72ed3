"""What a backend is, and what it answers: a claim, never a fact."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module, metadata
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dpopt.backends.child import ElsewhereError, ask_child
from dpopt.backends.waiting import wait_for
from dpopt.errors import BackendError, InputError
from dpopt.patience import Stopped, in_force
from dpopt.program.program import Program

__all__ = [
    "Availability",
    "Backend",
    "Claim",
    "Claimed",
    "Estimating",
    "Option",
    "Support",
    "ask",
    "installed",
    "read_given",
    "read_options",
]

_SECONDS = 1.0  # estimated, from which a solver that cannot be stopped gets a process of its own
_SOON = 1e-3  # seconds: some solvers take 0 for no limit

log = logging.getLogger(__name__)


class Claimed(Enum):
    """What a solver says about its answer; compare `Verified`, which is another type on purpose."""

    OPTIMAL = "optimal"
    INACCURATE = "inaccurate"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"
    ERROR = "error"


class Availability(NamedTuple):
    """Whether a backend can run here; `reason` says what is missing, or names the versions found."""

    available: bool
    reason: str


class Support(NamedTuple):
    """Whether a backend can take a program, and why not."""

    supported: bool
    reason: str


@dataclass(frozen=True)
class Option:
    """One option of a backend: its type, default and meaning (validation and documentation in one place)."""

    kind: type
    default: Any
    text: str


@dataclass(frozen=True, eq=False)
class Claim:
    """A solver's answer in the program's own coordinates.

    Parameters
    ----------
    status : Claimed
    x : array, shape (n,), or (0,) when the solver gave no point
    y : array, shape (m,), or (0,) when it gave no multipliers
        Lagrange multipliers of the rows, in the convention ``L(x, y) = objective(x) - y @ (rows @ x - side)``: y is
        the derivative of the optimum by the active side; >= 0 where the lower side is active, <= 0 where the upper
        side is.
    objective : float
        The solver's own objective value, nan when it gave none.
    message : str
        The solver's own words.
    tolerances : dict
        Every tolerance that was in force, by the solver's name for it.
    seconds : float
        Wall time inside the solver call.
    """

    status: Claimed
    backend: str
    version: str
    message: str
    x: np.ndarray = field(default_factory=lambda: np.zeros(0))
    y: np.ndarray = field(default_factory=lambda: np.zeros(0))
    objective: float = float("nan")
    tolerances: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def has_point(self) -> bool:
        """Whether the solver gave a point."""
        return self.x.size > 0


@runtime_checkable
class Backend(Protocol):
    """One solver. Anything with these members can be registered; `dpopt.backends.conformance` tests it.

    `solve` runs in a thread of its own, and its caller may leave: because of Ctrl-C, or because the time of the call is
    up. A backend notices by `dpopt.patience.checkpoint()` in its loops, or by ``in_force().is_over`` in a callback of
    its solver. One that does not notice is abandoned and goes on in the background; see also `Estimating`.
    """

    name: ClassVar[str]
    requires: ClassVar[tuple[str, ...]]
    options: ClassVar[Mapping[str, Option]]

    def availability(self) -> Availability:
        """Whether the backend can run in this environment, and if not why."""
        ...

    def supports(self, program: Program) -> Support:
        """Whether the backend can answer this program, and if not why."""
        ...

    def solve(self, program: Program, options: Mapping[str, Any]) -> Claim:
        """Answer the program. Unknown options raise `InputError`; a solver's failure is a claim, not an exception."""
        ...


@runtime_checkable
class Estimating(Protocol):
    """A backend whose solver cannot be stopped from within, and which says beforehand how long it may take.

    Above a second it is asked in a process of its own, which can be ended. It is sent there as a pickle; one that this
    process cannot load, such as a class of a script, is asked in a thread.
    """

    def seconds(self, program: Program, options: Mapping[str, Any]) -> float:
        """About how many seconds the solver will take."""
        ...


def installed(modules: tuple[str, ...]) -> Availability:
    """Availability by importing `modules`; the reason names versions, or the import error and the way out."""
    versions = []
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            return Availability(False, f"{module} cannot be imported ({error}); install it with: pip install {module}")
        try:
            versions.append(f"{module} {metadata.version(module)}")
        except metadata.PackageNotFoundError:
            versions.append(module)
    return Availability(True, ", ".join(versions))


def read_given(options: object, argument: str = "options") -> dict[str, Any]:
    """The options that a caller gave, before a backend has looked at them."""
    if options is not None and not isinstance(options, Mapping):
        raise InputError(argument, f"must be a mapping of option names to values, not {options!r}")
    return dict(options or {})


def read_options(backend: Backend, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options in force: defaults overlaid by `given`; unknown names and wrong types are errors."""
    known = backend.options
    values = {name: option.default for name, option in known.items()}
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise InputError(f"options.{name}", f"is not an option of backend '{backend.name}' (known: {listed})")
        kind = known[name].kind
        accepted = kind | int if kind is float else kind
        if (isinstance(value, bool) and kind is not bool) or not isinstance(value, accepted):
            raise InputError(f"options.{name}", f"must be of type {kind.__name__}, not {value!r}")
        values[name] = kind(value)
    return values


def ask(backend: Backend, program: Program, options: Mapping[str, Any]) -> Claim:
    """Call a backend, and turn whatever comes back into a claim of the right shape.

    A solver's own exception, an answer that is no claim, or arrays that do not fit the program are claims of failure,
    with the reason: nothing behind this door has to ask again. The backend has what is left of the call's time, by its
    own option ``time_limit`` if it has one; when that is over, or the caller is interrupted, it is stopped or left.

    Raises
    ------
    InputError, BackendError
        The options are wrong, or the backend cannot take the program.
    """
    patience = in_force()
    if patience.is_over:
        return _stopped(backend)
    if "time_limit" in backend.options and math.isfinite(patience.remaining):
        options = {**options, "time_limit": min(patience.remaining or _SOON, options.get("time_limit", math.inf))}
    try:
        answer = _answer(backend, program, options)
    except Stopped:
        return _stopped(backend)
    if isinstance(answer, InputError | BackendError):
        raise answer
    if isinstance(answer, Exception):  # of whatever type: a solver's exception is its answer
        if patience.is_over:  # what ended it was us
            return _stopped(backend)
        log.warning("backend %s raised", backend.name, exc_info=answer)
        return Claim(Claimed.ERROR, backend.name, "", f"{type(answer).__name__}: {answer}")
    if not isinstance(answer, Claim) or not isinstance(answer.status, Claimed):
        return Claim(
            Claimed.ERROR, backend.name, "", f"the backend returned {type(answer).__name__}, not a Claim with a status"
        )
    try:
        x, y = _vector(answer.x, program.cost.size), _vector(answer.y, program.row_lower.size)
        objective, tolerances = float(answer.objective), dict(answer.tolerances)
        seconds, words = float(answer.seconds), (str(answer.backend), str(answer.version), str(answer.message))
    except (TypeError, ValueError) as error:
        return Claim(Claimed.ERROR, backend.name, str(answer.version), f"the backend's numbers cannot be read: {error}")
    if x is None:
        reason = f"the backend returned {np.size(answer.x)} values for {program.cost.size} columns"
        return Claim(Claimed.ERROR, backend.name, str(answer.version), reason)
    y = np.zeros(0) if y is None else y
    return Claim(answer.status, *words, x, y, objective, tolerances, seconds)


def _answer(backend: Backend, program: Program, options: Mapping[str, Any]) -> Any:
    """What the backend returns, or its exception: from a thread, or a process where it may last and cannot be stopped.

    An exception that is raised here is not the backend's but that of a listener who hears of the progress.
    """

    def work() -> Any:
        try:
            return backend.solve(program, options)
        except Exception as error:
            return error

    if isinstance(backend, Estimating) and backend.seconds(program, options) > _SECONDS:
        with contextlib.suppress(ElsewhereError):  # a thread will have to do
            return ask_child(backend, program, options)
    return wait_for(work)


def _stopped(backend: Backend) -> Claim:
    """What a backend said by the time that nobody waited any more."""
    return Claim(Claimed.LIMIT, backend.name, "", f"stopped by dpopt at the end of {in_force().reason}")


def _vector(values: Any, size: int) -> np.ndarray | None:
    """A float vector of the given size or empty; None for any other shape."""
    if np.iscomplexobj(values):
        raise TypeError("they are complex")
    vector = np.asarray(values, dtype=float)
    return vector if vector.shape in ((size,), (0,)) else None
