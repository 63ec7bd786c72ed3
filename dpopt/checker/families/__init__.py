"""The constraints that the checker knows, one file a family, and how one is read by its type.

A new family is a file with a class that `dpopt.checker.stated.family` registers, and its module's name in the import
below. A type that no file registers means what its rows in ``"trusted"`` say.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpopt.checker.families import approx_dp, expectation, forbidden, pure_dp, symmetric, unimodal  # noqa: F401
from dpopt.checker.families.trusted import Trusted
from dpopt.checker.reading import read_type
from dpopt.checker.stated import FAMILIES, Family, Setting, read_part

__all__ = ["read_family", "read_mean"]


def read_family(data: object, where: str, setting: Setting, trusted: object, trusted_where: str) -> Family:
    """The constraint of a problem's data; a custom one is its trusted rows."""
    return read_part(FAMILIES, Trusted.of, data, where, setting, trusted, trusted_where)


def read_mean(data: object, where: str) -> Fraction | None:
    """The mean that a constraint fixes, None if it fixes none."""
    kind = read_type(data, where)
    assert isinstance(data, Mapping)
    return FAMILIES[kind].mean_of(data, where) if kind in FAMILIES else None
