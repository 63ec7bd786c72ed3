"""Figures drawn with matplotlib, which is imported only here and only when something is drawn."""

from __future__ import annotations

import io
import math
import textwrap
from importlib import import_module
from itertools import cycle
from typing import TYPE_CHECKING, Any

from dpopt.errors import BackendError, InputError

if TYPE_CHECKING:
    from dpopt.study.figure_table import Figure, Panel

__all__ = ["draw", "require_matplotlib"]

_FORMATS = ("png", "pdf", "svg")
_STYLES = ("-", "--", ":", "-.", "-")  # of the columns of a panel
_MARKS = ("o", "s", "^", "x", "+")  # the same, where x is a name: nothing lies between two names
_TITLE = 60  # characters of a title over one panel


def require_matplotlib() -> Any:
    """The class of figures that draw without a display; else an error that says how to install it.

    Raises
    ------
    BackendError
        matplotlib is not installed.
    """
    try:
        return import_module("matplotlib.figure").Figure  # its own canvas: no global state, no display
    except ImportError:
        raise BackendError("drawing needs matplotlib, which is not installed: pip install 'dpopt[plot]'") from None


def draw(figure: Figure, kind: str = "png") -> bytes:
    """A figure as the bytes of an image file.

    Parameters
    ----------
    figure : Figure
    kind : str
        "png", "pdf" or "svg".
    """
    if kind not in _FORMATS:
        raise InputError("kind", f"must be one of {', '.join(_FORMATS)}, not {kind!r}")
    across = min(len(figure.panels), 2)
    down = -(-len(figure.panels) // across)
    canvas = require_matplotlib()(figsize=(6.4 * across, 4.8 * down), layout="constrained")
    canvas.suptitle("\n".join(textwrap.wrap(figure.title, _TITLE * len(figure.panels))))
    for place, panel in enumerate(figure.panels, 1):
        _draw_panel(canvas.add_subplot(down, across, place), figure, panel)
    out = io.BytesIO()
    canvas.savefig(out, format=kind)
    return out.getvalue()


def _draw_panel(axes: Any, figure: Figure, panel: Panel) -> None:
    """One curve for each column and each value of the column `by`; gaps where there is no number."""
    kept = [all(cells) for cells in zip(*(_is(figure, *pair) for pair in panel.only), strict=True)]
    kept = kept or [True] * len(figure.rows)
    groups = [None] * len(figure.rows) if panel.by is None else figure.column(panel.by)
    more = {"drawstyle": "steps-mid"} if panel.steps else {}
    for group in dict.fromkeys(group for group, here in zip(groups, kept, strict=True) if here):
        for name, style, mark in zip(panel.y, cycle(_STYLES), cycle(_MARKS), strict=False):
            cells = zip(kept, groups, figure.column(panel.x), figure.column(name), strict=True)
            points = [(x, _height(y, panel.log_y)) for here, found, x, y in cells if here and found == group]
            points = [(x, y) for x, y in points if x is not None]
            label = name if panel.by is None else f"{name}, {_label(panel.by, group)}"
            named = any(isinstance(x, str) for x, _ in points)
            axes.plot([x for x, _ in points], [y for _, y in points], mark if named else style, label=label, **more)
    if panel.log_y:
        axes.set_yscale("log")
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y_label)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


def _is(figure: Figure, column: str, value: Any) -> list[bool]:
    return [cell == value for cell in figure.column(column)]


def _height(cell: Any, log: bool) -> float:
    """A number that can be drawn; NaN leaves a gap."""
    return math.nan if cell is None or (log and cell <= 0) else float(cell)


def _label(column: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{column} = {value}"
