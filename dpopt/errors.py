"""The errors users meet: each says what happened, where, and how to fix it."""

from __future__ import annotations

from dpopt.text import shortened

__all__ = ["BackendError", "CertificateError", "DpoptError", "InputError", "NotVerifiedError"]


class DpoptError(Exception):
    """Base class of every error that dpopt raises on purpose."""


class InputError(DpoptError, ValueError):
    """An argument, or an entry of a problem file, is not what it has to be.

    Parameters
    ----------
    location : str
        The argument or TOML location, such as ``"epsilon"`` or ``"constraints[2].epsilon"``.
    problem : str
        What is wrong and what would be right, in one sentence without the location.

    Examples
    --------
    >>> error = InputError("epsilon", "must be at least 0, not -1")
    >>> print(error)
    epsilon: must be at least 0, not -1
    >>> print(error.inside("constraints[2]"))
    constraints[2].epsilon: must be at least 0, not -1
    """

    def __init__(self, location: str, problem: str) -> None:
        self.location = shortened(location)
        self.problem = shortened(problem)  # a number of thousands of digits in it helps nobody
        super().__init__(f"{self.location}: {self.problem}" if location else self.problem)

    def inside(self, outer: str) -> InputError:
        """The same error with its location prefixed by the part that contains it."""
        joined = f"{outer}.{self.location}" if self.location and outer else outer or self.location
        return InputError(joined, self.problem)

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str]]:
        return type(self), (self.location, self.problem)


class BackendError(DpoptError, RuntimeError):
    """A backend is unknown, not installed, or cannot take this program or option."""


class CertificateError(DpoptError, ValueError):
    """A certificate cannot be read, or what it states does not follow from what it shows."""


class NotVerifiedError(DpoptError, RuntimeError):
    """A solution was asked for something that it could not prove."""
