"""The door to ball arithmetic: nothing else touches python-flint's context, and nothing else computes with balls."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import arb, arb_series, ctx

import dpopt
from dpopt.backends._quiet import quiet
from dpopt.balls import at_precision, decided, working_precision
from dpopt.release import selection_chance
from dpopt.release.selection_design import SelectionDesign

HOUSE = Path(dpopt.__file__).parent
NUMBER_TYPE = re.compile(r"(arb|acb|fmpz|fmpq)(_poly|_mat|_series)?")  # of python-flint: none is the context
WATCHDOG = 60  # seconds: more is a hang


def context() -> tuple[int, int]:
    """What every thread sees."""
    return ctx.prec, ctx.cap


def in_a_thread(act: Callable[[], Any]) -> threading.Thread:
    """`act`, running beside us."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


# --- nobody else ------------------------------------------------------------------------------------------------------


CHANGES = {"catch_warnings", "simplefilter", "filterwarnings"}  # of what all threads share
CHANGES |= {"seterr", "seterrcall", "setcontext", "set_printoptions", "seed", "set_int_max_str_digits"}


def slips(path: Path) -> Iterator[str]:
    """Where a module could reach python-flint's context or change other state of the process."""
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in {"flint", *CHANGES}):
        return
    for node in ast.walk(ast.parse(text)):
        where = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flint":
            yield from (f"{where} imports {a.name}" for a in node.names if not NUMBER_TYPE.fullmatch(a.name))
        if isinstance(node, ast.Import):
            yield from (f"{where} imports {a.name}" for a in node.names if a.name.split(".")[0] == "flint")
        if isinstance(node, ast.Constant) and node.value == "flint":
            yield f"{where} names flint"
        if isinstance(node, ast.Attribute) and node.attr in CHANGES:
            yield f"{where} uses {node.attr}"


def test_one_module_touches_the_context_and_one_the_filters() -> None:
    found = [slip for path in sorted(HOUSE.rglob("*.py")) for slip in slips(path)]
    allowed = {("balls.py", "imports ctx"), ("_quiet.py", "catch_warnings"), ("_quiet.py", "simplefilter")}
    allowed |= {("door.py", "uses simplefilter")}  # the command line, which has its process to itself
    others = [s for s in found if not any(s.startswith(f"{f}:") and s.endswith(what) for f, what in allowed)]
    assert not others
    assert len(found) > len(others)  # the search finds what is there


def test_the_search_finds_every_way_in(tmp_path: Path) -> None:
    ways = ["from flint import ctx as c", "import flint", "import flint.types", "import_module('flint')"]
    ways += ["from flint import showgood", "np.seterr(all='ignore')", "np.random.seed(1)"]
    for way in ways:
        (tmp_path / "way.py").write_text(way)
        assert list(slips(tmp_path / "way.py")), way


# --- one thread -------------------------------------------------------------------------------------------------------


def test_precision_and_terms_are_as_asked_and_put_back() -> None:
    before = context()

    def outer() -> list[tuple[int, int]]:
        seen = [context()]
        seen.append(at_precision(30, context))
        seen.append(at_precision(40, context, terms=3))
        with pytest.raises(ZeroDivisionError):
            at_precision(50, lambda: 1 // 0, terms=4)
        return [*seen, context()]

    assert at_precision(100, outer, terms=7) == [(100, 7), (30, 7), (40, 3), (100, 7)]
    assert context() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ArithmeticError])
def test_whatever_is_raised_the_door_is_open_afterwards(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    before, entered = context(), threading.Event()
    with pytest.raises(error):
        at_precision(99, lambda: at_precision(77, fail, terms=5))
    assert context() == before
    in_a_thread(lambda: at_precision(64, entered.set))
    assert entered.wait(WATCHDOG)
    with pytest.raises(RuntimeError, match="at_precision only"):
        working_precision()


def test_the_working_precision_is_that_of_the_door_and_of_no_one_else() -> None:
    with pytest.raises(RuntimeError, match="at_precision only"):
        working_precision()
    assert at_precision(300, lambda: (at_precision(64, working_precision), working_precision())) == (64, 300)

    said: list[str] = []

    def ask() -> None:
        try:
            working_precision()
        except RuntimeError as error:
            said.append(str(error))

    other = at_precision(300, lambda: in_a_thread(ask))
    other.join(WATCHDOG)
    assert len(said) == 1


def test_a_precision_that_flint_refuses_changes_nothing() -> None:
    before = context()
    with pytest.raises(ValueError):
        at_precision(0, context)
    assert context() == before


def test_what_no_precision_decides_is_said_so() -> None:
    tried: list[int] = []
    with pytest.raises(ArithmeticError, match="who knows"):
        decided(lambda: tried.append(working_precision()), 10, most=65, undecided="who knows")
    assert tried == [10, 20, 40, 80]
    assert decided(lambda: arb.pi().floor().unique_fmpz(), 4, most=100, undecided="who knows") == 3


# --- other threads ----------------------------------------------------------------------------------------------------


def test_another_thread_waits_at_the_door() -> None:
    entered = threading.Event()

    def inside() -> tuple[threading.Thread, list[tuple[int, int]]]:
        other = in_a_thread(lambda: at_precision(30, entered.set, terms=3))
        seen = []
        for _ in range(5):
            assert not entered.wait(0.01)
            seen.append(context())
        return other, seen

    other, seen = at_precision(100, inside, terms=7)
    assert seen == [(100, 7)] * 5
    other.join(WATCHDOG)
    assert entered.is_set()


def chance_beside(stranger: Callable[[], None], monkeypatch: pytest.MonkeyPatch, times: int) -> Any:
    """The chance that one score stays ahead of thirty, with a stranger in the middle of the series, `times` times."""
    left = [times]

    def series(*arguments: Any, **options: Any) -> Any:
        if left[0]:
            left[0] -= 1
            in_a_thread(stranger).join(WATCHDOG)
        return arb_series(*arguments, **options)

    monkeypatch.setattr(selection_chance, "arb_series", series)
    return SelectionDesign(1, Fraction(2, 5), resolution=Fraction(1)).chance([1, *[0] * 30])


def true_chance() -> Fraction:
    """The integral of x e^(-x t) (1 - a e^(-x t))^30, a = e^-x, x = 1/5: (1 - (1 - a)^31) / (31 a), in decimals."""
    with localcontext() as decimals:
        decimals.prec = 100
        a = (Decimal(-1) / 5).exp()
        return Fraction((1 - (1 - a) ** 31) / (31 * a))


def reset_terms() -> None:
    ctx.cap = 10


def test_a_chance_is_enclosed(monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = chance_beside(reset_terms, monkeypatch, times=0)
    assert low <= true_chance() <= high
    assert high - low < Fraction(1, 10**30)


def test_terms_that_a_stranger_resets_in_mid_call_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that was: ctx.cap back at 10 in mid-call, lost terms counted as 0, and the truth lay outside."""
    undisturbed = chance_beside(reset_terms, monkeypatch, times=0)
    try:
        assert chance_beside(reset_terms, monkeypatch, times=1) == undisturbed
        assert ctx.cap == 10  # what a stranger sets stays set
        low, high = chance_beside(reset_terms, monkeypatch, times=10**9)
        assert low <= true_chance() <= high < low + Fraction(1, 10**30)
    finally:
        ctx.cap = 1


def test_terms_that_a_stranger_takes_and_puts_back_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.series = arb_series(*arguments, **options)

        def exp(self) -> Any:
            cap, ctx.cap = ctx.cap, 10
            try:
                return self.series.exp()
            finally:
                ctx.cap = cap

    monkeypatch.setattr(selection_chance, "arb_series", Cut)
    low, high = SelectionDesign(1, Fraction(2, 5), resolution=Fraction(1)).chance([1, *[0] * 30])
    assert low <= true_chance() <= high < low + Fraction(1, 10**30)


def test_a_precision_that_a_stranger_sets_is_noticed_and_kept() -> None:
    seen: list[int] = []

    def compute() -> int:
        seen.append(ctx.prec)
        if len(seen) == 1:
            in_a_thread(lambda: setattr(ctx, "prec", 77)).join(WATCHDOG)
        return ctx.prec

    try:
        assert at_precision(100, compute) == 100
        assert (seen, ctx.prec) == ([100, 100], 77)
        with pytest.raises(RuntimeError, match="keeps changing python-flint's precision"):
            at_precision(100, lambda: in_a_thread(lambda: setattr(ctx, "prec", 77)).join(WATCHDOG))
    finally:
        ctx.prec = 2


FORK = """
import os, threading, time
from dpopt.balls import at_precision, ctx
inside = threading.Event()

def slow():
    inside.set()
    time.sleep(0.3)
    return ctx.prec

ctx.prec = 40
threading.Thread(target=lambda: at_precision(1000, slow)).start()
inside.wait()
child = os.fork()
if child == 0:
    fine = ctx.prec == 40 and at_precision(64, lambda: ctx.prec) == 64
    beside = threading.Thread(target=lambda: at_precision(64, lambda: None), daemon=True)
    beside.start()
    beside.join(20)
    os._exit(0 if fine and not beside.is_alive() else 1)
assert at_precision(50, lambda: ctx.prec) == 50
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_finds_the_door_open() -> None:
    """A child that is forked while another thread computes has no such thread, but its lock."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], timeout=WATCHDOG, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_warning_filters_survive_two_threads_that_leave_in_the_order_they_came() -> None:
    """Each with its own `catch_warnings`, the last to leave would put the first one's filters back, for good."""
    before, first_in, second_in, first_out = list(warnings.filters), *(threading.Event() for _ in range(3))
    refused: list[str] = []

    def first() -> None:
        with quiet():
            first_in.set()
            second_in.wait(WATCHDOG)
        first_out.set()

    def second() -> None:
        first_in.wait(WATCHDOG)
        with quiet(DeprecationWarning):
            second_in.set()
            first_out.wait(WATCHDOG)
            warnings.warn("not shown", UserWarning, stacklevel=1)
            try:
                warnings.warn("old", DeprecationWarning, stacklevel=1)
            except DeprecationWarning as warning:
                refused.append(str(warning))

    threads = [in_a_thread(first), in_a_thread(second)]
    for thread in threads:
        thread.join(WATCHDOG)
    assert list(warnings.filters) == before
    assert refused == ["old"]
