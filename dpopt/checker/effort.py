"""What checking one certificate may take in all: every step is estimated and put on one account before it starts.

A few hundred bytes can ask for more than any machine has. The readers refuse what no limit allows by its form; whatever
has a size that the certificate chooses says beforehand what it takes, by a pure function beside it, and calls `afford`.
The limits are those of `dpopt.work`; of bit operations they hold for everything that one certificate asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isqrt

from dpopt.work import Work, require

__all__ = ["afford", "common_work", "gcd_work", "one_account", "product_work"]

_spent: ContextVar[list[int] | None] = ContextVar("dpopt_checker_spent", default=None)


@contextmanager
def one_account() -> Iterator[None]:
    """Everything inside counts together; what stands within another account goes onto that one."""
    token = _spent.set(_spent.get() or [0])
    try:
        yield
    finally:
        _spent.reset(token)


def afford(work: Work, what: str) -> None:
    """Put a step on the account, or refuse it.

    Raises
    ------
    InputError
        Without a location: whoever knows the place adds it.
    """
    spent = _spent.get()
    before = spent[0] if spent else 0
    also = " after what was checked before" if before > work.bit_operations else ""
    require("", Work(before + work.bit_operations, work.bytes), what + also)
    if spent:
        spent[0] += work.bit_operations


# --- integers of many digits -----------------------------------------------------------------------------------------


def product_work(bits: int) -> int:
    """Bit operations of one product of two integers of so many bits, or of one power of that length.

    >>> product_work(10_000)
    100000
    """
    return bits * isqrt(bits) // 10


def gcd_work(bits: int) -> int:
    """Bit operations of bringing one fraction of so many bits to lowest terms."""
    return bits * bits // 40


def common_work(denominators: Iterable[int]) -> Work:
    """Finding the common denominator of numbers: at worst the product of those that differ.

    >>> common_work([3, 3, 3, 7]).bytes
    1
    """
    bits = sum(d.bit_length() for d in set(denominators))
    return Work(gcd_work(bits), -(-bits // 8))
