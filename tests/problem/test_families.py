"""Each family's witnesses: the worst one's function says by how much a pmf misses the family, and no witness more."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import exp_enclosure
from dpopt.lattice_function import LatticeFunction
from dpopt.problem.families.base import ObjectiveTerm, Term
from dpopt.problem.families.expectation import ExpectationTerm
from dpopt.problem.families.hockey_stick import Event, HockeyStickTerm
from dpopt.problem.families.mirror import MirrorTerm
from dpopt.problem.families.order import OrderTerm
from dpopt.problem.families.ratio import RatioTerm
from dpopt.problem.families.zero import ZeroTerm
from dpopt.problem.parts import Constraint, Objective

WINDOW = (-3, 4)
HALF = Fraction(1, 2)

masses = st.lists(st.integers(0, 9), min_size=8, max_size=8).filter(any)
tails = st.one_of(
    st.none(), st.sampled_from([dp.Tails(1, HALF, HALF), dp.Tails(2, HALF, Fraction(1, 3)), dp.Tails(3, None, HALF)])
)
linear = st.sampled_from([
    ExpectationTerm(LatticeFunction.polynomial((0, 1)), Fraction(0), Fraction(1)),
    ExpectationTerm(LatticeFunction.polynomial((0, 0, 1)), None, Fraction(3)),
    ExpectationTerm(LatticeFunction(0, (Fraction(1),)), HALF, HALF),
    ZeroTerm((-2, 3)), MirrorTerm(), OrderTerm(-1), OrderTerm(1, Fraction(3, 4)), OrderTerm(0),
])  # fmt: skip


@settings(derandomize=True, deadline=None, database=None)
@given(linear, masses)
def test_the_worst_member_of_a_linear_family_is_its_margin(family: Term, weights: list[int]) -> None:
    """Margin = room in the worst member; all other members have as much room or more."""
    pmf = dp.Pmf(WINDOW[0], weights)
    found = family.check(pmf, WINDOW)
    rooms = [-family.function(witness).excess(pmf) for witness in family.cuts(pmf, WINDOW)]
    assert family.is_linear
    if isinstance(family, ZeroTerm):  # its margin is of all points together
        assert found == (sum(rooms) == 0, sum(rooms))
    else:
        assert rooms[0] == min(rooms)
        assert found.margin == (0 if found.holds and isinstance(family, MirrorTerm) else rooms[0])
        assert found.holds == (rooms[0] >= 0)


@settings(derandomize=True, deadline=None, database=None)
@given(masses, tails)
def test_symmetry_in_the_tails(weights: list[int], beyond: Any) -> None:
    """Symmetric means equal to the mirror image far out as well, and the worst point shows the difference."""
    pmf = dp.Pmf(WINDOW[0], weights, tails=beyond)
    reach = 40
    differences = [pmf.probability(k) - pmf.probability(-k) for k in range(1, reach)]
    found = MirrorTerm().check(pmf, None)
    assert found.holds == (not any(differences))
    assert found.margin == -max(map(abs, differences))


@settings(derandomize=True, deadline=None, database=None)
@given(masses, st.sampled_from(["1/2", "1", "2"]), st.integers(1, 3), st.booleans())
def test_pairs(weights: list[int], epsilon: str, shift: int, window: bool) -> None:
    """The worst pair misses its row just when the family fails; no pair of points misses its row by more."""
    family = RatioTerm(Fraction(epsilon), shift, inside_window=window)
    pmf = dp.Pmf(WINDOW[0], weights, tails=None if window else dp.Tails(1, HALF, HALF))
    low, high = exp_enclosure(Fraction(epsilon))
    worst = family.function(family.cuts(pmf, WINDOW)[0])
    margin = 0 if window else shift
    points = range(WINDOW[0] - margin, WINDOW[1] + margin + 1)
    pairs = [(i, j) for i in points for j in points if 0 < abs(i - j) <= shift]
    exact = max(pmf.probability(i) - low * pmf.probability(j) for i, j in pairs)
    assert family.check(pmf, WINDOW).holds == (exact <= 0)
    assert exact - (high - low) <= worst.excess(pmf) <= exact


@pytest.mark.slow
@settings(derandomize=True, deadline=None, database=None, max_examples=40)
@given(
    st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any),
    st.sampled_from(["0", "1/2", "1"]),
    st.integers(1, 3),
)
def test_events(weights: list[int], epsilon: str, shift: int) -> None:
    """The worst event gives the divergence; no event of all subsets gives more."""
    family = HockeyStickTerm(Fraction(epsilon), shift, Fraction(1, 10))
    pmf = dp.Pmf(-2, weights)
    worst = family.function(family.cuts(pmf, None)[0]).excess(pmf)
    points = [k for k, w in enumerate(weights, -2) if w]
    sets = [frozenset(s) for n in range(len(points) + 1) for s in combinations(points, n)]
    shifts = [s for s in range(-shift, shift + 1) if s]
    assert worst == max(family.function(Event(s, event)).excess(pmf) for s in shifts for event in sets)
    divergence = dp.delta(pmf, epsilon, shift)
    assert divergence.lower <= worst + family.delta <= divergence.upper
    assert family.check(pmf, None).holds == (divergence.upper <= family.delta)


def test_a_side_without_a_bound_has_no_member() -> None:
    """A witness that the family does not have."""
    family = ExpectationTerm(LatticeFunction.polynomial((0, 1)), at_most=Fraction(1))
    assert family.cuts(dp.Pmf(0, (1,)), None) == (1,)
    with pytest.raises(ValueError, match="no bound"):
        family.function(-1)


@pytest.mark.parametrize("mode", [-2, -1, 0, 1])
def test_only_a_mode_at_zero_survives_reflection(mode: int) -> None:
    """A program with a mode on either side of 0 is not folded: its symmetric part has no such mode."""
    assert OrderTerm(mode).is_symmetric == (mode == 0)
    weights = [1, 2, 3, 2, 1] if mode == 0 else [1 + (k == mode) for k in range(-2, 3)]
    question = dp.Problem(
        support=dp.Integers(-2, 2), objective=dp.MinExpectedCost("square"),
        constraints=[dp.Unimodal(mode), dp.Probability(of=[mode], at_least="1/2")],
    )  # fmt: skip
    solution = dp.solve(question)
    assert solution.verified is dp.Verified.OPTIMAL
    assert all(c.holds for c in question.check(solution.pmf))
    assert OrderTerm(mode).check(dp.Pmf(-2, weights), (-2, 2)).holds


# --- nobody asks which family it is ----------------------------------------------------------------------------------

PACKAGE = Path(dp.__file__).parent
QUESTIONS = {"problem/constraints.py", "problem/objectives.py"}


def family_classes() -> dict[str, type]:
    """Every family, constraint and objective by its class name."""
    modules = [importlib.import_module(f"dpopt.problem.{name}") for name in ("constraints", "objectives")]
    path = str(PACKAGE / "problem" / "families")
    modules += [importlib.import_module(m.name) for m in pkgutil.walk_packages([path], "dpopt.problem.families.")]
    found = {name: kind for module in modules for name, kind in vars(module).items() if isinstance(kind, type)}
    bases = (Term, ObjectiveTerm, Constraint, Objective)
    return {n: k for n, k in found.items() if issubclass(k, bases) and k not in bases and not n.startswith("_")}


def dispatches(tree: ast.Module, classes: set[str], kinds: set[str]) -> Iterator[str]:
    """Where a file asks of what class a thing is, or compares its type with a name in kebab case."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
            asked = list(node.args)
        for part in (leaf for expression in asked for leaf in ast.walk(expression)):
            if isinstance(part, ast.Name) and part.id in classes:
                yield f"{node.lineno}: {part.id}"
            if isinstance(part, ast.Constant) and part.value in kinds:
                yield f"{node.lineno}: {part.value}"


@pytest.mark.slow
def test_no_file_dispatches_on_a_family() -> None:
    """Neither on its class nor on its name in kebab case: what differs between families is asked of the family."""
    classes = family_classes()
    kinds = {kind.type for kind in classes.values() if getattr(kind, "type", "")}
    assert len(classes) >= 25 and {"pure-dp", "approx-dp", "max-entropy", "mean"} <= kinds
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if name in QUESTIONS or name.startswith(
            ("problem/families/", "program/rows/", "checker/families/", "checker/objectives/")
        ):
            continue
        lines = list(dispatches(ast.parse(file.read_text(encoding="utf-8")), set(classes), kinds))
        if lines:
            found[name] = lines
    assert found == {}
