"""Reading what a caller gave that is not one number: lists, choices by name, flags, text.

Each reader returns what it read or raises an `InputError` that names the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeVar

from dpopt.arithmetic import exact, exact_integer
from dpopt.errors import InputError
from dpopt.text import brief, quoted

__all__ = ["read_choice", "read_flag", "read_integers", "read_list", "read_numbers", "read_pairs", "read_text"]

Choice = TypeVar("Choice", bound=StrEnum)


def read_list(values: object, argument: str, of: str = "values") -> tuple[Any, ...]:
    """What comes in an order: anything to go through but text, and but sets and mappings, which have none.

    Examples
    --------
    >>> read_list(range(3), "values")
    (0, 1, 2)
    """
    if isinstance(values, Mapping | Set):
        raise InputError(argument, f"must be a list of {of} in their order, which a {type(values).__name__} has not")
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray):
        try:
            return tuple(values)
        except TypeError:  # an array without a dimension
            pass
    raise InputError(argument, f"must be a list of {of}, not {quoted(values)}")


def read_numbers(values: object, argument: str) -> tuple[Fraction, ...]:
    """A list of exact numbers.

    Examples
    --------
    >>> read_numbers(["1/3", 0.5], "epsilons")
    (Fraction(1, 3), Fraction(1, 2))
    """
    return tuple(exact(value, f"{argument}[{i}]") for i, value in enumerate(read_list(values, argument, "numbers")))


def read_integers(values: object, argument: str, *, at_least: int | None = None) -> tuple[int, ...]:
    """A list of integers.

    Examples
    --------
    >>> read_integers(["3", 4.0], "ids")
    (3, 4)
    """
    found = read_list(values, argument, "integers")
    if set(map(type, found)) == {int} and (at_least is None or min(found) >= at_least):
        return found
    return tuple(exact_integer(value, f"{argument}[{i}]", at_least=at_least) for i, value in enumerate(found))


def read_choice(kind: type[Choice], value: object, argument: str) -> Choice:
    """One of a few names, or the member itself.

    Examples
    --------
    >>> from dpopt.distributions import Discretisation
    >>> read_choice(Discretisation, "floor", "discretisation")
    <Discretisation.FLOOR: 'floor'>
    """
    try:
        return kind(value)  # type: ignore[arg-type]  # anything may have been given
    except ValueError:
        raise InputError(argument, f"must be one of {', '.join(kind)}, not {quoted(value)}") from None


def read_flag(value: object, argument: str) -> bool:
    """True or false, Python's or numpy's; nothing else has a truth that was meant.

    Examples
    --------
    >>> read_flag(True, "monotonic")
    True
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise InputError(argument, f"must be True or False, not {quoted(value)}")


def read_text(value: object, argument: str) -> str:
    """Text such as a name.

    Examples
    --------
    >>> read_text("noise", "name")
    'noise'
    """
    if isinstance(value, str):
        return value
    raise InputError(argument, f"must be text, not {quoted(value)}")


def read_pairs(pairs: Iterable[str], argument: str, such_as: str) -> dict[str, str]:
    """``NAME=VALUE`` pairs of the command line, each name once.

    Examples
    --------
    >>> read_pairs(["solver=CLARABEL"], "--option", "solver=CLARABEL")
    {'solver': 'CLARABEL'}
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InputError(argument, f"must be NAME=VALUE, such as {such_as}, not {brief(pair)}")
        if name in found:
            raise InputError(argument, f"gives {name!r} twice")
        found[name] = text
    return found
