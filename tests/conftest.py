"""Nothing is skipped in silence: a skipped test fails the session unless its reason is listed here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flint import ctx

ALLOWED_REASONS: tuple[str, ...] = (
    "root may write anywhere",  # permission tests mean nothing to the superuser
)
"""Beginnings of the reasons for which a test may be skipped. A backend that is not installed is none of them."""


@pytest.fixture(autouse=True)
def useless_precision() -> Iterator[None]:
    """Outside of `dpopt.balls.at_precision` there are 2 bits and no series: what is computed there shows in every test.

    And what a test did not put back fails it.
    """
    ctx.prec, ctx.cap = 2, 1
    yield
    assert (ctx.prec, ctx.cap) == (2, 1), "python-flint's precision was changed and not put back"


_skipped: list[tuple[str, str]] = []


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = words.removeprefix("Skipped: ")
    if not reason.startswith(ALLOWED_REASONS):
        _skipped.append((report.nodeid, reason))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a skipped test."""
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a skipped module."""
    _note(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session that would have passed with tests left out; a worker tells the session that started it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["skipped"] = _skipped
    elif _skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Modules are skipped where they are collected, in every worker: take over what each noted, once."""
    for entry in getattr(node, "workeroutput", {}).get("skipped", ()):
        if tuple(entry) not in _skipped:
            _skipped.append(tuple(entry))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every test that was left out."""
    if _skipped:
        terminalreporter.section("skipped tests count as failures", red=True)
        for name, reason in _skipped:
            terminalreporter.line(f"{name}: {reason}")
