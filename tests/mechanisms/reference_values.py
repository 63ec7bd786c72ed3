"""Independent reference values for named noise (reference.json), and how many digits of them are printed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))


def is_to_the_digits(found: Fraction, printed: str) -> bool:
    """Within one unit of the last digit that is printed."""
    mantissa, _, exponent = printed.partition("e")
    unit = Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(found - Fraction(printed)) <= unit
