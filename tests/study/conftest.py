"""A stand-in for matplotlib: the tests need none."""

from __future__ import annotations

import sys
import types

import pytest


class StandIn:
    """Notes what is drawn on it."""

    made: list[StandIn]

    def __init__(self, **_: object) -> None:
        self.curves: list[tuple[list[float], list[float], str]] = []
        self.styles: list[tuple[str, str]] = []
        self.title = ""
        self.log = 0

    def suptitle(self, title: str) -> None:
        self.title = title

    def set(self, **_: str) -> None: ...
    def grid(self, **_: object) -> None: ...
    def legend(self) -> None: ...

    def add_subplot(self, *_: int) -> StandIn:
        return self

    def set_yscale(self, kind: str) -> None:
        self.log += kind == "log"

    def plot(self, x: list[float], y: list[float], style: str, *, label: str, drawstyle: str = "") -> None:
        self.curves.append((x, y, label))
        self.styles.append((style, drawstyle))

    def savefig(self, out, *, format: str) -> None:  # noqa: A002
        out.write(format.encode())
        StandIn.made.append(self)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[StandIn]:
    """What was drawn."""
    module = types.ModuleType("matplotlib.figure")
    module.Figure = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", types.ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    StandIn.made = []
    return StandIn.made
