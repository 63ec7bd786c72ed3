"""A key table: how many of the K cell keys yield each noise value, and what these integers guarantee.

The table is what is released, so everything is read off the integers: bias and variance (equations (43), (44) of the
ABS paper), the support that is left, and the privacy in *both* directions. The paper's pair (45)-(46) looks at
p(z)/p(z-1) only; after a ceiling the table is not symmetric, the larger ratio sits at the other edge, and the pair
overstates the privacy. It is reported beside the corrected one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from dpopt.arithmetic import Enclosure, Number, exact, exact_integer, exp_enclosure
from dpopt.errors import InputError
from dpopt.files.csv_table import CsvFormat, csv_text, read_csv
from dpopt.files.writing import write_file
from dpopt.pmf import Pmf
from dpopt.privacy.divergence import hockey_stick
from dpopt.privacy.profile import epsilon as least_epsilon
from dpopt.privacy.shifts import deciding_shifts, lattice_shift
from dpopt.record import Record
from dpopt.tables.pairs import BothDirections, PrivacyPairs, privacy_pairs
from dpopt.text import quoted

__all__ = ["KeyTable"]

TYPE = "key-table"
FORMAT = 1
_COLUMNS = ["noise", "count", "cumulative"]
_SHOWN = 15


@dataclass(frozen=True, repr=False)
class KeyTable(Record):
    """How many of the keys 0..K-1 yield each of the noise values start, start + 1, ...

    The keys are dealt out in ascending noise: with c(z) the number of keys that yield at most z (equation (39)),
    the noise is z + 1 exactly when c(z) <= key < c(z + 1), equation (40). Every key yields exactly one value.

    Parameters
    ----------
    start : int
        The smallest noise value, -D.
    counts : sequence of int
        Keys for each value, >= 0; they sum to `key_size`. A count of 0 is a lost value, and the table says so.
    key_size : int
        K, the number of keys (KEYSIZE).

    Examples
    --------
    >>> table = KeyTable(-2, (23, 62, 87, 62, 22), 256)
    >>> table.cumulative, table.bias, table.variance
    ((23, 85, 172, 234, 256), Fraction(-1, 128), Fraction(19455, 16384))
    >>> table.privacy_pairs().paper_holds
    False
    """

    start: int
    counts: tuple[int, ...]
    key_size: int

    def __init__(self, start: int, counts: Iterable[int], key_size: int) -> None:
        if isinstance(counts, str | bytes | Mapping) or not isinstance(counts, Iterable):
            raise InputError("counts", f"must be a sequence of integers, not {quoted(counts)}")
        read = tuple(exact_integer(n, f"counts[{i}]", at_least=0) for i, n in enumerate(counts))
        object.__setattr__(self, "start", exact_integer(start, "start"))
        object.__setattr__(self, "counts", read)
        object.__setattr__(self, "key_size", exact_integer(key_size, "key_size", at_least=1))
        if sum(read) != self.key_size:
            raise InputError("counts", f"must sum to key_size {self.key_size}, not {sum(read)}")

    # --- the support ---------------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The largest noise value, D."""
        return self.start + len(self.counts) - 1

    @cached_property
    def effective_support(self) -> tuple[int, ...]:
        """The noise values that some key yields, ascending."""
        return tuple(self.start + i for i, n in enumerate(self.counts) if n)

    @property
    def has_full_support(self) -> bool:
        """Whether every value start..end is yielded by some key."""
        return all(self.counts)

    @property
    def largest_noise(self) -> int:
        """The largest |z| that some key yields."""
        return max(map(abs, self.effective_support))

    @cached_property
    def cumulative(self) -> tuple[int, ...]:
        """c(z) of equation (39): the number of keys that yield at most z; the last is K."""
        return tuple(accumulate(self.counts))

    # --- moments -------------------------------------------------------------------------------------------------

    @cached_property
    def pmf(self) -> Pmf:
        """The pmf that is released, equation (42): count / K."""
        return Pmf(self.start, self.counts)

    @property
    def bias(self) -> Fraction:
        """E Z, equation (43)."""
        return self.pmf.mean

    @property
    def variance(self) -> Fraction:
        """E Z^2 - (E Z)^2, equation (44)."""
        return self.pmf.variance

    # --- privacy -------------------------------------------------------------------------------------------------

    def delta(self, epsilon: Number, sensitivity: Number = 1) -> BothDirections:
        """delta(epsilon) of the integers, both directions, as exact enclosures (over all shifts up to `sensitivity`).

        Examples
        --------
        >>> found = KeyTable(-1, (1, 2, 1), 4).delta(1)
        >>> found.forward.upper, found.reverse.upper
        (Fraction(1, 4), Fraction(1, 4))
        """
        value = exact(epsilon, "epsilon")
        if value < 0:
            raise InputError("epsilon", f"must be at least 0, not {value}")
        shifts = deciding_shifts(self.pmf, lattice_shift(sensitivity, Fraction(1)))
        low, high = exp_enclosure(value)

        def side(sign: int) -> Enclosure:
            worst = [max(hockey_stick(self.pmf, factor, sign * s) for s in shifts) for factor in (high, low)]
            return Enclosure(*worst)

        return BothDirections(side(1), side(-1))

    def keeps(self, epsilon: Number, delta: Number, sensitivity: Number = 1) -> bool:
        """Whether the table is proved (epsilon, delta)-DP.

        >>> KeyTable(-1, (1, 2, 1), 4).keeps(1, "1/4")
        True
        """
        return self.delta(epsilon, sensitivity).worst.upper <= exact(delta, "delta")

    def epsilon(self, delta: Number, sensitivity: Number = 1) -> Enclosure:
        """The least epsilon at which the table is (epsilon, delta)-DP, both directions; see `dpopt.epsilon`.

        >>> round(float(KeyTable(-1, (1, 2, 1), 4).epsilon("1/4")), 9)
        0.693147181
        """
        return least_epsilon(self.pmf, delta, sensitivity)

    def privacy_pairs(self) -> PrivacyPairs:
        """The paper's pair (45)-(46), what is true at its epsilon, and the corrected pair (sensitivity 1).

        Examples
        --------
        >>> print(KeyTable(-1, (2, 4, 1), 7).privacy_pairs())
        paper (45)-(46)  epsilon 0.69314718056, delta 0.285714286: does not hold
          true delta     forward 0.285714286, reverse 0.428571429
        corrected        epsilon 1.38629436112, delta 0.285714286
        """
        return privacy_pairs(self.pmf)

    # --- text ----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with its type and format number; integers as strings, since K may exceed 2^53."""
        return {
            "type": TYPE,
            "format": FORMAT,
            "start": str(self.start),
            "counts": [str(n) for n in self.counts],
            "key_size": str(self.key_size),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KeyTable:
        """Read what `to_dict` wrote; another type or format is an error that names it.

        >>> table = KeyTable(-1, (1, 2, 1), 4)
        >>> KeyTable.from_dict(table.to_dict()) == table
        True
        """
        if not isinstance(data, Mapping):
            raise InputError("table", f"must be a mapping with type '{TYPE}', not {type(data).__name__}")
        if data.get("type") != TYPE:
            raise InputError("type", f"must be '{TYPE}', not {quoted(data.get('type'))}")
        if data.get("format") != FORMAT:
            raise InputError(
                "format", f"must be {FORMAT}, not {quoted(data.get('format'))}: another version wrote this table"
            )
        wanted = {"type", "format", "start", "counts", "key_size"}
        if set(data) != wanted:
            odd = sorted(map(str, set(data) ^ wanted))
            raise InputError("table", f"must have the entries {', '.join(sorted(wanted))} (see {', '.join(odd)})")
        if not isinstance(data["counts"], list | tuple):
            raise InputError("counts", f"must be a list, not {quoted(data['counts'])}")
        return cls(data["start"], data["counts"], data["key_size"])

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV text (comma, decimal point, one header line).

        With a `path` it is written there as well, over an older file.

        >>> print(KeyTable(-1, (1, 2, 1), 4).to_csv().strip())
        noise,count,cumulative
        -1,1,1
        0,2,3
        1,1,4
        """
        rows = zip(range(self.start, self.end + 1), self.counts, self.cumulative, strict=True)
        text = csv_text(_COLUMNS, rows)
        if path is not None:
            write_file(path, text)
        return text

    @classmethod
    def from_csv(
        cls, source: str | bytes | Path, *, delimiter: str | None = None, encoding: str | None = None
    ) -> KeyTable:
        """Read a table from CSV text (a string with a line break, or bytes) or from a file.

        The noise values must be consecutive and the cumulative column must agree with the counts: a line that is
        missing, doubled or out of order is an error. Delimiter and encoding are found where they are not given: the
        heading is known.

        >>> KeyTable.from_csv("noise,count,cumulative\\n-1,1,1\\n0,2,3\\n1,1,4\\n").counts
        (1, 2, 1)
        """
        content, where = _read(source)
        if not content.strip():
            raise InputError(where, f"must begin with the line '{','.join(_COLUMNS)}'")
        read = read_csv(content, where, CsvFormat(delimiter, encoding))  # integers: a decimal sign is an error
        if read.heading != _COLUMNS:
            raise InputError(where, f"must begin with the line '{','.join(_COLUMNS)}', not {','.join(read.heading)}")
        counts: list[int] = []
        start = running = 0
        for line, row in zip(read.lines, read.rows, strict=True):
            noise, count, total = (
                exact_integer(cell, f"{where}, line {line}, {name}") for cell, name in zip(row, _COLUMNS, strict=True)
            )
            start = noise if not counts else start
            if noise != start + len(counts):
                raise InputError(f"{where}, line {line}", f"must hold noise {start + len(counts)}, not {noise}")
            counts.append(count)
            running += count
            if total != running:
                raise InputError(f"{where}, line {line}", f"must have the cumulative count {running}, not {total}")
        return cls(start, counts, running)

    def __repr__(self) -> str:
        shown = str(self.counts) if len(self.counts) <= _SHOWN else f"<{len(self.counts)} counts>"
        return f"KeyTable(start={self.start}, counts={shown}, key_size={self.key_size})"

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        support = f"[{self.start}, {self.end}]"
        if not self.has_full_support:
            lost = len(self.counts) - len(self.effective_support)
            support += f", {lost} values lost, largest noise {self.largest_noise}"
        lines = [
            f"key table on {support}: key size {self.key_size}",
            f"bias             {self.bias} ({float(self.bias):.6g})",
            f"variance         {float(self.variance):.12g}",
            str(self.privacy_pairs()),
        ]
        if len(self.counts) <= _SHOWN:
            lines += [
                f"{z:>5} {n:>12} keys below {c}"
                for z, n, c in zip(range(self.start, self.end + 1), self.counts, self.cumulative, strict=True)
            ]
        return "\n".join(lines)


def _read(source: str | bytes | Path) -> tuple[bytes, str]:
    """The content of CSV text or of a file, and how to name it in a message."""
    if isinstance(source, bytes):
        return source, "csv"
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        return source.encode(), "csv"
    try:
        return Path(source).read_bytes(), str(source)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(str(source), f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
