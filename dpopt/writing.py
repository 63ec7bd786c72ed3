"""Writing a result: the whole file or nothing, and never in the place of something that is no file."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from dpopt.errors import InputError

__all__ = ["write_file"]


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file in one step: a failure leaves no half-written one.

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
    path = Path(path).resolve()  # a link keeps pointing where it points
    if path.exists() and not path.is_file():
        raise InputError(str(path), "cannot be written: it is not a regular file")
    partial = None
    try:
        with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            partial = Path(file.name)
            file.write(content.encode() if isinstance(content, str) else content)
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except OSError as error:
        if partial is not None:
            partial.unlink(missing_ok=True)
        raise InputError(str(path), f"cannot be written: {error.strerror}") from None


def _umask() -> int:
    """The process's umask (reading it means setting it): temporary files are private, a result need not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
