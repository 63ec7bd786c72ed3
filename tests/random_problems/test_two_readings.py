"""Two independent readings of one problem: what the checker finds of a law, and what the solving side finds of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt as dp
from dpopt.arithmetic import exp_enclosure
from dpopt.checker.families import read_family
from dpopt.checker.lattice import Lattice
from dpopt.checker.law import Law, read_law
from dpopt.checker.objectives import read_objective
from dpopt.checker.stated import Setting
from dpopt.checker.sums import expected, worst_hockey_stick
from dpopt.errors import CertificateError
from dpopt.lattice_function import LatticeFunction
from dpopt.pmf import Pmf, Tails
from dpopt.privacy import divergence
from dpopt.proof.trusted import as_text, trusted_rows

from .drawing import BOUNDED, finite_problems, infinite_problems

NEAR = Fraction(1, 1 << 60)  # privacy losses are rounded to multiples of 2^-64
RATIOS = [Fraction(1, 2), Fraction(1, 3), Fraction(3, 5), Fraction(1, 20)]


@st.composite
def laws(draw: st.DrawFn, low: int, high: int, step: Fraction, infinite: bool) -> Pmf:
    """A pmf on low..high in lattice steps, at times symmetric or unimodal, at times with tails."""
    weights = draw(st.lists(st.integers(0, 6), min_size=1, max_size=high - low + 1).filter(any))
    shape = draw(st.sampled_from(["any", "mirrored", "positive", "hill"]))
    if shape == "mirrored":
        weights = [*weights[:0:-1], *weights]
        start = 1 - len(weights) // 2 - 1
        if not (low <= start and start + len(weights) - 1 <= high):
            weights, start = weights[:1], 0
        weights = weights if any(weights) else [1]
    else:
        start = draw(st.integers(low, high - len(weights) + 1))
    if shape == "positive":
        weights = [w + 1 for w in weights]
    if shape == "hill":
        top = draw(st.integers(0, len(weights)))
        weights = [*sorted(weights[:top]), *sorted(weights[top:], reverse=True)]
    tails = None
    if infinite and draw(st.booleans()):
        right = draw(st.sampled_from(RATIOS))
        left = right if shape == "mirrored" else draw(st.sampled_from([*RATIOS, None]))
        tails = Tails(draw(st.integers(1, len(weights))), left, right)
    return Pmf(start, weights, step, tails)


def compare(table: dict[str, Any], data: st.DataObject) -> None:
    """Every constraint and the objective, decided on both sides."""
    try:
        problem = dp.Problem.from_dict(table)
        _ = problem.terms, problem.objective_term
    except dp.InputError:
        return
    support = problem.support
    low, high = (int(support.low / support.step), int(support.high / support.step)) if support.is_finite else (-9, 9)
    pmf = data.draw(laws(low, high, support.step, not support.is_finite))
    stated, stored = as_text(problem.to_dict()), as_text(trusted_rows(problem)).get("constraints", {})
    lattice = Lattice.of(stated.get("support"), "support")
    law = read_law(pmf.to_dict(), lattice, "law")
    setting = Setting(lattice, lambda: problem.setting.fixed_mean)
    for i, check in enumerate(problem.check(pmf)):
        family = read_family(stated["constraints"][i], "constraint", setting, stored.get(str(i)), "trusted")
        try:
            margin = family.margin(law, {e: exp_enclosure(e) for e in family.epsilons})
        except CertificateError:
            assert not check.holds, (stated["constraints"][i], pmf)
            continue
        assert check.holds, (stated["constraints"][i], pmf)
        assert margin >= 0 and abs(margin - check.margin) <= NEAR
    objective = read_objective(stated["objective"], "objective", setting, None, "trusted")
    mine = objective.value(law, {e: exp_enclosure(e) for e in objective.epsilons})
    theirs = problem.objective_term.value(pmf)
    assert mine.lower - NEAR <= theirs.upper and theirs.lower <= mine.upper + NEAR
    assert mine.upper - mine.lower <= NEAR


@pytest.mark.slow
@BOUNDED
@given(finite_problems(), st.data())
def test_a_law_on_a_finite_support(table: dict[str, Any], data: st.DataObject) -> None:
    compare(table, data)


@pytest.mark.slow
@BOUNDED
@given(infinite_problems(), st.data())
def test_a_law_on_all_integers(table: dict[str, Any], data: st.DataObject) -> None:
    compare(table, data)


@BOUNDED
@given(laws(-8, 8, Fraction(1), True), st.integers(1, 6), st.sampled_from(["0", "1/3", "2"]))
def test_hockey_stick_sums_and_expectations_to_the_last_digit(pmf: Pmf, shift: int, epsilon: str) -> None:
    tails = pmf.tails or Tails(1, None, Fraction(1, 2))
    ends = (tails.left or 0, tails.right or 0) if pmf.tails else (0, 0)
    law = Law(pmf.start, pmf.weights, tails.period, *map(Fraction, ends))
    for factor in exp_enclosure(Fraction(epsilon)):
        assert worst_hockey_stick(law, factor, shift) == divergence.worst_hockey_stick(pmf, factor, shift)
    sides = (Fraction(1), Fraction(-2)), (Fraction(0), Fraction(1), Fraction(1), Fraction(1))
    bent = LatticeFunction(-3, tuple(map(Fraction, (5, -1, 2, 7))), *sides)
    assert expected(law, bent) == pmf.expectation(bent)
    assert law.total == pmf.total
