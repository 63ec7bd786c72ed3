"""Where the random bits come from: the operating system, or, for tests and studies, a seeded generator.

Every draw of a release reads one source, whose bytes are taken as independent fair bits. What is exact about a sampler
is its law given such bits; that they are unpredictable is the source's part. There is no global state and no buffer:
a source reads what is asked for, so that forked processes and threads never see the same bits twice.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from numbers import Integral
from typing import TYPE_CHECKING, final

import numpy as np

from dpopt.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["INSECURE", "NOT_FOR_RELEASE", "InsecureRandomness", "Randomness", "SystemRandomness", "read_randomness"]

INSECURE = "insecure seed"
"""The mark, in a heading, of what was drawn from another source than the operating system's."""
NOT_FOR_RELEASE = f"{INSECURE}: for tests only, not for release"
"""The same as a printed line."""

_BLOCK = 1 << 20  # bytes asked from the operating system at once


class Randomness(ABC):
    """Base of the sources of random bits: a source says how to `read` bytes.

    It does not say that it is secure: only the operating system's source is, as `SystemRandomness` reads it.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "secure" in vars(cls):
            raise InputError(f"{cls.__name__}.secure", "is not for a source to say: leave it out")

    @final
    @property
    def secure(self) -> bool:
        """Whether these are the operating system's bits, as they come; a class derived from that source is not."""
        return type(self) is SystemRandomness

    @abstractmethod
    def read(self, count: int) -> bytes:
        """The next `count` random bytes."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` uniform 64-bit integers; shape ``(count,)``."""
        return np.frombuffer(self._exactly(8 * count), dtype="<u8")

    def halves(self, count: int) -> NDArray[np.uint16]:
        """The next `count` uniform 16-bit integers; shape ``(count,)``."""
        return np.frombuffer(self._exactly(2 * count), dtype="<u2")

    def integer(self, bits: int) -> int:
        """A uniform integer of `bits` bits, from the fewest whole bytes; its spare high bits are dropped."""
        size = -(-bits // 8)
        return int.from_bytes(self._exactly(size), "little") & ((1 << bits) - 1)

    def _exactly(self, count: int) -> bytes:
        found = self.read(count)
        if len(found) != count:
            raise RuntimeError(f"{self!r} returned {len(found)} bytes, not the {count} it was asked for")
        return found


class SystemRandomness(Randomness):
    """The operating system's cryptographic generator: the source of every release, and the default everywhere.

    Examples
    --------
    >>> SystemRandomness().secure, SystemRandomness().words(3).shape
    (True, (3,))
    """

    __slots__ = ()  # no instance has a `read` of its own

    def read(self, count: int) -> bytes:
        """The next `count` bytes of ``os.urandom``."""
        if count <= _BLOCK:
            return os.urandom(count)
        return b"".join(os.urandom(min(_BLOCK, count - done)) for done in range(0, count, _BLOCK))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return "SystemRandomness()"


class InsecureRandomness(Randomness):
    """Reproducible bits for tests and studies. Never release what was drawn from it: the seed undoes the noise.

    What is drawn from it says so where it can: results have ``secure`` False, which nothing sets; files and printed
    output carry a mark. Arrays cannot; there the call says it, by this name.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        At least 0. A Generator is used as it is and moves on as bits are read. A pickle holds the state.

    Raises
    ------
    InputError
        `seed` is of another type, or negative.

    Examples
    --------
    >>> InsecureRandomness(1)
    InsecureRandomness(PCG64)
    >>> InsecureRandomness(1).secure, InsecureRandomness(1).read(2) == InsecureRandomness(1).read(2)
    (False, True)
    """

    def __init__(self, seed: int | np.random.Generator) -> None:
        if isinstance(seed, np.random.Generator):
            self._generator = seed
            return
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise InputError("seed", f"must be an integer or a numpy.random.Generator, not {seed!r}")
        if seed < 0:
            raise InputError("seed", f"must not be negative, not {seed}")
        self._generator = np.random.Generator(np.random.PCG64(int(seed)))

    def read(self, count: int) -> bytes:
        """The next `count` bytes of the generator."""
        return self._generator.bytes(count)

    def __repr__(self) -> str:
        return f"InsecureRandomness({type(self._generator.bit_generator).__name__})"


def read_randomness(randomness: Randomness | None) -> Randomness:
    """The source to draw from: the operating system's for None; a bare seed or Generator is refused.

    Raises
    ------
    InputError
        `randomness` is no `Randomness`: what is not secure has to say so by its name.
    """
    if randomness is None:
        return SystemRandomness()
    if isinstance(randomness, Randomness):
        return randomness
    kind = type(randomness).__name__
    way_out = "None draws from the operating system, and dp.InsecureRandomness(...) marks seeds and numpy generators"
    raise InputError("randomness", f"must be a Randomness or None, not a bare {kind}: {way_out}")
