"""Numbers and tables as text: the one way in which dpopt prints for people."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from numbers import Rational

__all__ = ["aligned", "brief", "closest", "decimal_text", "listed", "quoted", "shortened"]

_BRIEF = 30  # characters of a number in a sentence
_INTEGER = re.compile(rf"(?<![\d.])[1-9]\d{{{_BRIEF},}}(?![\d.eE])")
_DIGITS = re.compile(rf"\d{{{_BRIEF + 1},}}")


def decimal_text(number: Fraction, digits: int = 15, *, up: bool | None) -> str:
    """A rational in decimal, rounded up, down, or (None) to nearest, with `digits` significant digits.

    Examples
    --------
    >>> decimal_text(Fraction(2, 3), 3, up=True), decimal_text(Fraction(2, 3), 3, up=False)
    ('0.667', '0.666')
    """
    rounding = ROUND_HALF_EVEN if up is None else ROUND_CEILING if up else ROUND_FLOOR
    size = max(number.numerator.bit_length(), number.denominator.bit_length()) // 3 + 2
    wide = Context(prec=size, Emin=-(10**9), Emax=10**9)  # holds both integers exactly: one rounding, at the division
    context = Context(prec=digits, rounding=rounding, Emin=-(10**9), Emax=10**9)
    quotient = context.divide(wide.create_decimal(number.numerator), wide.create_decimal(number.denominator))
    return _plain_decimal(quotient)


def brief(value: object) -> str:
    """A number as a sentence shows it: itself where that is short, else its size. Anything else: its first characters.

    Examples
    --------
    >>> brief(10**456 + 1), brief(Fraction(1, 3)), brief(Fraction(1, 3**1000)), brief("1e-9")
    ('1.00e456 (457 digits)', '1/3', 'about 7.56e-478', '1e-9')
    """
    if isinstance(value, Rational) and not isinstance(value, bool):
        return _brief_rational(int(value.numerator), int(value.denominator))
    text = str(value) if isinstance(value, Decimal) else value.strip() if isinstance(value, str) else _repr(value)
    short = shortened(text)
    return short if len(short) <= 2 * _BRIEF else short[: 2 * _BRIEF - 3] + "..."


def quoted(value: object) -> str:
    """A value as Python writes it, text in quotes, in at most sixty characters.

    Examples
    --------
    >>> quoted("mean"), quoted([1, 2]), quoted([10**5000])
    ("'mean'", '[1, 2]', 'a list of very long numbers')
    """
    if isinstance(value, str) and len(value) > 2 * _BRIEF:
        return repr(value[: 2 * _BRIEF - 5] + "...")
    if isinstance(value, list | tuple) and len(value) > 2 * _BRIEF:
        return f"a {type(value).__name__} of {len(value)}"
    short = shortened(_repr(value))
    return short if len(short) <= 2 * _BRIEF else short[: 2 * _BRIEF - 3] + "..."


def _brief_rational(numerator: int, denominator: int) -> str:
    if max(numerator.bit_length(), denominator.bit_length()) <= 4 * _BRIEF:
        text = str(Fraction(numerator, denominator))
        if len(text) <= _BRIEF:
            return text
    size = math.log10(abs(numerator)) - math.log10(denominator)
    exponent = math.floor(size)
    mantissa = f"{10 ** (size - exponent):.2f}"
    if mantissa == "10.00":
        mantissa, exponent = "1.00", exponent + 1
    sign = "-" if numerator < 0 else ""
    if denominator == 1:
        return f"{sign}{mantissa}e{exponent} ({exponent + 1} digits)"
    return f"about {sign}{mantissa}e{exponent}"


def _repr(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python does not print integers beyond 4,300 digits
        return f"a {type(value).__name__} of very long numbers"


def shortened(text: str) -> str:
    """A sentence with the long runs of digits in it cut short, so that every message is brief.

    Examples
    --------
    >>> shortened("must be at most 5, not " + "7" * 5000)
    'must be at most 5, not 7.77e4999 (5000 digits)'
    """
    text = _INTEGER.sub(lambda run: f"{run[0][0]}.{run[0][1:3]}e{len(run[0]) - 1} ({len(run[0])} digits)", text)
    return _DIGITS.sub(lambda run: f"{run[0][:8]}...({len(run[0])} digits)", text)


def _plain_decimal(number: Decimal) -> str:
    """Without an exponent where that is readable, and without trailing zeros."""
    number = number.normalize(Context(prec=60, Emin=-(10**9), Emax=10**9))
    if number == 0:
        return "0"
    exponent = number.adjusted()
    if -4 <= exponent < 16:
        return format(number, "f")
    mantissa = number.scaleb(-exponent, Context(prec=60, Emin=-(10**9), Emax=10**9))
    return f"{mantissa:f}e{exponent}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines with aligned columns; the first row is the heading.

    Examples
    --------
    >>> aligned([("name", "seconds"), ("highs", "1")])
    ['name   seconds', '-----  -------', 'highs  1']
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def listed(names: Iterable[str]) -> str:
    """Names in quotes, sorted.

    >>> listed(["b", "a"])
    "'a', 'b'"
    """
    return ", ".join(f"'{name}'" for name in sorted(names))


def closest(name: str, known: Collection[str]) -> str:
    """What an error about an unknown name ends with: the known name that is nearest, or all of them.

    >>> closest("constraint", ["constraints", "objective"])
    "; did you mean 'constraints'?"
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f" (known: {listed(known)})"
