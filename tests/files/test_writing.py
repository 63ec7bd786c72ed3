"""Writing a file: all of it or nothing, permissions kept, and the process's umask left alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dpopt as dp
from dpopt.errors import InputError
from dpopt.files.writing import create_file, write_file

Write = Callable[..., None]
WRITERS = [
    write_file,
    lambda path, text: dp.KeyTable(-1, (1, 2, 1), 4).to_csv(path),
    lambda path, text: dp.Certificate({"kind": "solution"}).save(path),
]


@pytest.fixture
def loose() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("bits", [0o600, 0o640, 0o664, 0o777])
def test_permissions_are_handed_down(tmp_path: Path, write: Write, bits: int) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(bits)
    write(path, "new")
    assert mode(path) == bits and path.read_text() != "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("write", [*WRITERS, create_file])
def test_a_new_file_follows_the_umask(tmp_path: Path, loose: None, write: Write) -> None:
    write(tmp_path / "out", "new")
    assert mode(tmp_path / "out") == 0o640
    assert os.umask(0o027) == 0o027


def test_the_umask_is_never_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to the process: another thread would see it."""
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask was set"))
    write_file(tmp_path / "a", "x")
    create_file(tmp_path / "b", "x")


@pytest.mark.parametrize(("bits", "left"), [(0o640, 0o600), (0o664, 0o644), (0o600, 0o600), (0o644, 0o644)])
def test_another_group_may_do_no_more_than_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int, left: int
) -> None:
    """Where the group cannot be kept; the group of the new file is the process's own."""
    (tmp_path / "out").write_text("old")
    (tmp_path / "out").chmod(bits)
    stated = os.stat(tmp_path / "out")
    other = os.stat_result([*stated[:5], stated.st_gid + 1, *stated[6:10]])

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(Path, "stat", lambda path, **_: other if path.name == "out" else os.stat(path))
    write_file(tmp_path / "out", "new")
    monkeypatch.undo()
    assert mode(tmp_path / "out") == left


def test_links_and_long_names(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "to-nothing").symlink_to("new")
    for name, target in (("link", "target"), ("to-nothing", "new")):
        write_file(tmp_path / name, "content")
        assert (tmp_path / name).is_symlink() and (tmp_path / target).read_text() == "content"
    write_file(tmp_path / ("n" * 255), "x")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="cannot be written"):
        write_file(tmp_path / "loop", "x")


@pytest.mark.parametrize("write", [*WRITERS, create_file])
def test_what_is_no_file_stays(tmp_path: Path, write: Write) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(InputError, match="cannot be written"):
            write(path, "x")
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write(tmp_path / "no" / "place", "x")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("write", [*WRITERS, create_file])
@pytest.mark.parametrize("fails", ["fsync", "chmod" if os.name == "nt" else "open"])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, fails: str
) -> None:
    (tmp_path / "out").write_text("old")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write(tmp_path / "out", "new")
    monkeypatch.undo()
    assert (tmp_path / "out").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "out", "new")
    assert not list(tmp_path.iterdir())


def test_creating_never_overwrites(tmp_path: Path) -> None:
    """Of many that create one file at once, one does."""
    done: list[str] = []

    def create(text: str) -> None:
        try:
            create_file(tmp_path / "out", text)
        except InputError:
            return
        done.append(text)

    threads = [threading.Thread(target=create, args=[str(i)]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1 and (tmp_path / "out").read_text() == done[0]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    create_file(tmp_path / "out", "first")
    with pytest.raises(InputError, match="cannot be written"):
        create_file(tmp_path / "out", "second")
    assert (tmp_path / "out").read_text() == "first"


def test_a_file_that_may_not_be_written(tmp_path: Path) -> None:
    """As an ordinary user; the superuser may write anywhere, so the system's answer is stood in for."""
    (tmp_path / "out").write_text("old")
    code = (
        "import os, sys; os.access = lambda *_: False\n"
        "from dpopt.files.writing import write_file\n"
        "try: write_file(sys.argv[1], 'new')\n"
        "except ValueError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "out"], capture_output=True, text=True, timeout=60)
    assert "cannot be written: Permission denied" in ran.stdout
    assert (tmp_path / "out").read_text() == "old"
