"""The one bisection over integers."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["first_that"]


def first_that(works: Callable[[int], bool], above: int, upto: int) -> int:
    """The least integer in ``above < n <= upto`` that works, for a property that stays once it holds.

    `upto` is taken to work and is not asked. (The standard library's bisection is for ranges below 2^63.)

    Examples
    --------
    >>> first_that(lambda n: n * n >= 10**40, 0, 10**40)
    100000000000000000000
    """
    while upto - above > 1:
        middle = (above + upto) // 2
        above, upto = (above, middle) if works(middle) else (middle, upto)
    return upto
