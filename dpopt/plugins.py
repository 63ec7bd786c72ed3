"""Plugins: a user's Python file whose import registers constraints, objectives or backends."""

from __future__ import annotations

import contextlib
import sys
import traceback
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from dpopt.errors import InputError

__all__ = ["load_plugin", "raised_by_plugin"]

_loaded: dict[Path, ModuleType] = {}


def load_plugin(path: str | Path) -> ModuleType:
    """Import a Python file by its path, once a process.

    Parameters
    ----------
    path : path
        The file; what it prints while it is imported goes to standard error.

    Raises
    ------
    InputError
        The file is missing, is not Python, or raises while it is imported; the message gives the line.
    """
    given, path = str(path), Path(path).resolve()
    if path in _loaded:
        return _loaded[path]
    if not path.is_file():
        raise InputError(given, "there is no such plugin file")
    name = f"dpopt_plugin_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"  # two files may share a stem
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(given, "must be a Python file whose name ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up by name
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = error.lineno if isinstance(error, SyntaxError) else _line_in(error, {path})
        where = given if line is None else f"{given}:{line}"
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(where, f"the plugin cannot be loaded ({type(error).__name__}: {said})") from error
    _loaded[path] = module
    return module


def raised_by_plugin(error: BaseException) -> str | None:
    """``file:line`` of the plugin that an exception came out of, None when no plugin had part in it."""
    for path in _loaded:
        line = _line_in(error, {path})
        if line is not None:
            return f"{path}:{line}"
    return None


def _line_in(error: BaseException, paths: set[Path]) -> int | None:
    """The innermost line of these files in the error's traceback."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() in paths]
    return lines[-1] if lines else None
