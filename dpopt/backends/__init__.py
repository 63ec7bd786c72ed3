"""The solvers behind one protocol; importing this package imports none of them."""

from dpopt.backends.base import Availability, Backend, Claim, Claimed, Option, Support
from dpopt.backends.registry import (
    available_backends,
    backend_availability,
    backend_names,
    choose_backend,
    get_backend,
    register_backend,
    unregister_backend,
)

__all__ = [
    "Availability",
    "Backend",
    "Claim",
    "Claimed",
    "Option",
    "Support",
    "available_backends",
    "backend_availability",
    "backend_names",
    "choose_backend",
    "get_backend",
    "register_backend",
    "unregister_backend",
]
