"""The sources of bits: what they say of themselves, what they read, what they refuse."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dpopt as dp
from dpopt.errors import InputError
from dpopt.release.randomness import InsecureRandomness, Randomness, SystemRandomness, read_randomness

from .goodness import p_value
from .twin import Replay


@pytest.mark.parametrize("source", [SystemRandomness(), InsecureRandomness(7)])
def test_words_are_uniform(source: Randomness) -> None:
    """Every byte of words, halves and integers."""
    law = dict.fromkeys(range(256), 1 / 256)
    for data in (source.words(30_000), source.halves(100_000)):
        assert p_value(np.frombuffer(data.tobytes(), dtype=np.uint8), law) > 1e-6
    assert p_value([source.integer(3) for _ in range(8000)], dict.fromkeys(range(8), 0.125)) > 1e-6


def test_little_endian_whatever_the_machine() -> None:
    """The bytes 1, 2, ... as numbers."""
    data = bytes(range(1, 17))
    assert Replay(data).halves(2).tolist() == [0x0201, 0x0403]
    assert Replay(data).words(2).tolist() == [0x0807060504030201, 0x100F0E0D0C0B0A09]
    assert Replay(data).integer(16) == 0x0201
    assert Replay(data).integer(12) == 0x201
    assert Replay(b"").integer(0) == 0


@pytest.mark.parametrize("count", [0, 1, 7, (1 << 20) + 3])
def test_as_many_bytes_as_asked(count: int) -> None:
    """Also beyond one block of the operating system."""
    assert len(SystemRandomness().read(count)) == count
    assert len(InsecureRandomness(1).read(count)) == count


def test_the_last_bytes_of_a_long_read_are_random() -> None:
    """No block is left out or filled up."""
    data = SystemRandomness().read((3 << 20) + 5000)
    assert len(set(data[-5000:])) == 256 and data[:5000] != data[1 << 20 : (1 << 20) + 5000]


def test_secure_is_said() -> None:
    """One source is secure, and the other carries it in its name."""
    assert SystemRandomness().secure and not InsecureRandomness(1).secure
    assert repr(SystemRandomness()) == "SystemRandomness()"
    assert repr(InsecureRandomness(1)) == "InsecureRandomness(PCG64)"
    assert repr(InsecureRandomness(np.random.Generator(np.random.Philox(1)))) == "InsecureRandomness(Philox)"


@pytest.mark.parametrize("source", [SystemRandomness(), InsecureRandomness(5)])
def test_secure_is_not_set(source: Randomness) -> None:
    """Not as an attribute, not past the class's own way of setting one, not in the instance's dictionary."""
    said = source.secure
    for set_it in (setattr, object.__setattr__):
        with pytest.raises(AttributeError):
            set_it(source, "secure", True)
    getattr(source, "__dict__", {})["secure"] = not said
    assert source.secure is said
    with pytest.raises(AttributeError):
        SystemRandomness().read = bytes  # type: ignore[method-assign, assignment]


def test_no_class_says_that_it_is_secure() -> None:
    """A source that derives from the operating system's may read anything."""

    class Weak(SystemRandomness):
        def read(self, count: int) -> bytes:
            return bytes(count)

    assert not Weak().secure
    assert not pickle.loads(pickle.dumps(InsecureRandomness(1))).secure
    for base in (Randomness, SystemRandomness, InsecureRandomness):
        with pytest.raises(InputError, match=r"Mine\.secure: is not for a source to say"):
            type("Mine", (base,), {"secure": True})


def test_no_function_takes_a_bare_seed() -> None:
    """Every public function and method: a seed is an argument of `InsecureRandomness` alone."""
    for name in dp.__all__:
        found = getattr(dp, name)
        if not callable(found) or found is InsecureRandomness:
            continue
        members = [found, *(getattr(found, part) for part in dir(found) if not part.startswith("_"))]
        for member in filter(callable, members):
            try:
                parameters = inspect.signature(member).parameters
            except (TypeError, ValueError):
                continue
            assert not any("seed" in parameter for parameter in parameters), (name, member)


def test_pickles() -> None:
    """The system's source has no state; a seeded one resumes where it was."""
    assert pickle.loads(pickle.dumps(SystemRandomness())) == SystemRandomness()
    assert len({SystemRandomness(), SystemRandomness()}) == 1
    source = InsecureRandomness(3)
    source.read(5)
    copied = pickle.loads(pickle.dumps(source))
    assert copied.read(40) == source.read(40)


def test_a_generator_moves_on() -> None:
    """It is used, not copied."""
    generator = np.random.default_rng(5)
    first = InsecureRandomness(generator).read(8)
    assert InsecureRandomness(generator).read(8) != first
    assert InsecureRandomness(5).read(8) == first


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True, np.random.RandomState(1)])
def test_seeds_that_are_none(seed: Any) -> None:
    """An integer of at least 0 or a Generator."""
    with pytest.raises(InputError, match="seed: must"):
        InsecureRandomness(seed)


def test_reading_the_argument() -> None:
    """None is the operating system; a bare seed or generator is refused with the way out."""
    assert read_randomness(None).secure
    source = InsecureRandomness(1)
    assert read_randomness(source) is source
    for bare in (1, np.random.default_rng(1), SystemRandomness):
        with pytest.raises(InputError, match=r"randomness: must be a Randomness or None, not a bare \w+: None draws"):
            read_randomness(bare)  # type: ignore[arg-type]


def test_a_source_that_falls_short_is_an_error() -> None:
    """Fewer bytes than asked would repeat or pad."""

    class Short(Randomness):
        def read(self, count: int) -> bytes:
            return b"a" * (count - 1)

    for read in (Short().words, Short().halves, Short().integer):
        with pytest.raises(RuntimeError, match="bytes, not the"):
            read(9)


def test_forked_processes_do_not_share_bits() -> None:
    """There is no buffer that a child could inherit."""
    code = (
        "import os\n"
        "from dpopt.release.samplers import sample_uniform\n"
        "from dpopt.release.randomness import SystemRandomness\n"
        "source = SystemRandomness()\n"
        "first = sample_uniform(2**60, randomness=source)\n"
        "child = os.fork()\n"
        "drawn = sample_uniform(2**60, randomness=source)\n"
        "if child: os.waitpid(child, 0)\n"  # the child's line is written by then
        "print(drawn, flush=True)\n"
    )
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(lines) == len(set(lines)) == 2
