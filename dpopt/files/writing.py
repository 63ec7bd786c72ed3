"""Writing a result: the whole file or nothing, and never in the place of something that is no file."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

from dpopt.errors import InputError

__all__ = ["create_file", "write_file"]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)  # a file system without hard links


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file in one step, in the place of an older one: a failure leaves what was there.

    A file that is replaced hands down its permissions, and its owner and group where the system lets us; a new one
    gets what the process's umask leaves. A symbolic link keeps pointing where it points.

    Raises
    ------
    InputError
        `path` names a directory, a device or another thing that is no regular file, or it cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "a.txt", "whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    with _whole(path, content) as (partial, target):
        partial.replace(target)


def create_file(path: str | Path, content: str | bytes) -> None:
    """Write a file that is not there yet, in one step; as `write_file`, but an older file is an error, however late
    it came.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     create_file(Path(folder) / "a.txt", "first")
    ...     create_file(Path(folder) / "a.txt", "second")
    Traceback (most recent call last):
    ...
    dpopt.errors.InputError: ...a.txt: cannot be written: File exists
    """
    with _whole(path, content) as (partial, target):
        try:
            target.hardlink_to(partial)  # the one call that never replaces
        except OSError as error:
            if error.errno not in _NO_LINKS or target.exists():
                raise
            partial.replace(target)


@contextlib.contextmanager
def _whole(path: str | Path, content: str | bytes) -> Iterator[tuple[Path, Path]]:
    """A complete file beside the place where it goes; gone afterwards unless it was moved there."""
    partial = None
    try:
        target = Path(path).resolve()  # a link keeps pointing where it points
        if target.exists() and not target.is_file():
            raise InputError(str(path), "cannot be written: it is not a regular file")
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        partial = target.parent / f".dpopt-{secrets.token_hex(8)}"
        _write(partial, content.encode() if isinstance(content, str) else content, target)
        yield partial, target
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise InputError(str(path), f"cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _write(partial: Path, content: bytes, old: Path) -> None:
    """Fill a new file, on the disk before it is named; private until it has the owner of the one that it replaces."""
    replaces = old.exists()
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if replaces else 0o666)
    with open(descriptor, "wb") as file:
        if replaces:
            _inherit(partial, old)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _inherit(partial: Path, old: Path) -> None:
    """Owner, group, permissions and extended attributes of the file that is replaced."""
    was = old.stat()
    bits = S_IMODE(was.st_mode)
    for owner, group in ((was.st_uid, was.st_gid), (-1, was.st_gid)):
        with contextlib.suppress(OSError, AttributeError):  # not ours to give away, or no owners on this system
            os.chown(partial, owner, group)
            break
    shutil.copystat(old, partial)
    if partial.stat().st_gid != was.st_gid:  # another group may do no more than the others
        partial.chmod(bits & ~0o070 | (bits & 0o007) << 3 & bits)
