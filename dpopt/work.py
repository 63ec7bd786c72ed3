"""Work before the estimate: what a computation may cost, and how it is refused before it starts.

Whoever builds or sums something whose size a caller chooses says beforehand what that takes, in bit operations and in
bytes, and calls `require`. Estimates are pure functions beside the code that they describe. The limits are named; they
hold for the current thread or task, and a user raises them with `limits` or with ``dpopt --limit NAME=VALUE``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from dpopt.errors import InputError
from dpopt.text import brief, closest

__all__ = ["STEP", "Limits", "Work", "current_limits", "limits", "require", "set_limits"]

STEP = 1000  # bit operations of one step of a Python loop over short integers, whatever it does
_LARGEST = 10**18


class Work(NamedTuple):
    """What something takes: bit operations, and bytes that are held at the same time.

    About 10^10 bit operations take a second. `Work` adds up with ``plus``.

    Examples
    --------
    >>> Work(bytes=10).plus(Work(bit_operations=5, bytes=1))
    Work(bit_operations=5, bytes=11)
    """

    bit_operations: int = 0
    bytes: int = 0

    def plus(self, other: Work) -> Work:
        """Both together."""
        return Work(self.bit_operations + other.bit_operations, self.bytes + other.bytes)

    @classmethod
    def on_integers(cls, count: int, bits: int, *, steps: int = 1) -> Work:
        """Holding `count` integers of so many bits, in `steps` passes over them.

        A Python integer is 28 bytes and one for each 7.5 bits, its place in a list 8 more.

        Examples
        --------
        >>> Work.on_integers(10**6, 300)
        Work(bit_operations=1300000000, bytes=76000000)
        """
        return cls(steps * count * (STEP + bits), count * (36 + -(-bits * 2 // 15)))


@dataclass(frozen=True)
class Limits:
    """The most that one computation may take before it is refused.

    Parameters
    ----------
    bit_operations : int
        Of exact arithmetic; the default is about 20 seconds.
    bytes : int
        Of memory; the default is 2 GB.

    Examples
    --------
    >>> Limits().bytes
    2000000000
    """

    bit_operations: int = 2 * 10**11
    bytes: int = 2 * 10**9

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _LARGEST:
                raise InputError(field.name, f"must be an integer from 1 to {_LARGEST:.0e}, not {brief(value)}")


_limits: ContextVar[Limits] = ContextVar("dpopt_limits", default=Limits())  # noqa: B039  # frozen


def current_limits() -> Limits:
    """The limits that hold here."""
    return _limits.get()


def limits(*, bit_operations: int | None = None, bytes: int | None = None) -> AbstractContextManager[Limits]:  # noqa: A002
    """Raise or lower limits for what is done inside a ``with`` statement, in this thread or task alone.

    Parameters
    ----------
    bit_operations : int, optional
        About 10^10 a second; 2 * 10^11 unless it is given.
    bytes : int, optional
        2 * 10^9 unless it is given.

    Raises
    ------
    InputError
        A value is no positive integer.

    Examples
    --------
    >>> import dpopt as dp
    >>> with dp.limits(bytes=8 * 10**9) as raised:
    ...     raised
    Limits(bit_operations=200000000000, bytes=8000000000)
    """
    given = {"bit_operations": bit_operations, "bytes": bytes}
    return _within(_changed({name: value for name, value in given.items() if value is not None}, "limits"))


@contextmanager
def _within(changed: Limits) -> Iterator[Limits]:
    token = _limits.set(changed)
    try:
        yield changed
    finally:
        _limits.reset(token)


def set_limits(values: dict[str, int]) -> None:
    """Change limits for the rest of the current context (the command line's, which is one command long)."""
    _limits.set(_changed(values, "--limit"))


def _changed(values: dict[str, int], where: str) -> Limits:
    known = [field.name for field in fields(Limits)]
    for name in values:
        if name not in known:
            raise InputError(where, f"{name!r} is no limit{closest(name, known)}")
    return replace(_limits.get(), **values)


def require(argument: str, work: Work, what: str, instead: str = "") -> None:
    """Refuse what would take more than the limits allow.

    Parameters
    ----------
    argument : str
        Where the size comes from: the location of the error.
    work : Work
        The estimate.
    what : str
        What the argument asks for, as in "makes a program of 10 rows".
    instead : str, optional
        What would do: "give a coarser step".

    Raises
    ------
    InputError
        With what would be needed, the limit, and how to raise it.

    Examples
    --------
    >>> require("sensitivity", Work(bytes=3 * 10**9), "spans 10^8 points", "give a coarser step")
    Traceback (most recent call last):
        ...
    dpopt.errors.InputError: sensitivity: spans 10^8 points: about 3e9 bytes, more than the limit bytes = 2e9; give a
    coarser step, or raise the limit (dpopt.limits(bytes=...), dpopt --limit bytes=...)
    """
    for name, needed, limit in zip(Work._fields, work, _in_order(), strict=True):
        if needed > limit:
            raise InputError(
                argument,
                f"{what}: about {_rounded(needed)} {name.replace('_', ' ')}, more than the limit {name} = "
                f"{_rounded(limit)}; {instead + ', or ' if instead else ''}raise the limit "
                f"(dpopt.limits({name}=...), dpopt --limit {name}=...)",
            )


def _in_order() -> tuple[int, int]:
    found = _limits.get()
    return found.bit_operations, found.bytes


def _rounded(number: int) -> str:
    """Two digits are enough of an estimate.

    >>> _rounded(2 * 10**9), _rounded(10**400), _rounded(123), _rounded(99_900_000)
    ('2e9', '1e400', '123', '1e8')
    """
    if number < 10**6:
        return str(number)
    exponent = math.floor(math.log10(number) + 1e-9)
    mantissa = f"{10 ** (math.log10(number) - exponent):.1f}".removesuffix(".0")
    return f"1e{exponent + 1}" if mantissa == "10" else f"{mantissa}e{exponent}"
