"""What every result has in common: it prints within a screen, compares, copies, pickles, and is plain data."""

from __future__ import annotations

import copy
import json
import pickle
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt as dp
from dpopt.backends.base import Availability, Support
from dpopt.backends.registry import get_backend
from dpopt.record import Record

COLUMNS, LINES, DIGITS = 100, 40, 12
KEY_SIZES = {str(2**power) for power in range(128)}  # which name a table, digit for digit
TABLE = dp.KeyTable(-1, (1, 2, 1), 4)
LONG = "a constraint of a name that goes on and on " * 8


@cache
def solved() -> dp.Solution:
    return dp.solve(dp.tablebuilder(D=11, V=4))


@cache
def compared() -> dp.Comparison:
    window = dp.Problem(
        support=dp.Integers(-10, 10), objective=dp.MinExpectedCost("absolute"),
        constraints=[dp.PureDP(1, 1, boundary="window")], name=LONG,
    )  # fmt: skip
    return dp.compare(window, ["highs", "scipy", "cvxpy", "newton"])


LAW = {"a": Fraction(1, 3), "b": Fraction(2, 3)}
MAKERS: dict[str, Callable[[], Any]] = {
    "BothDirections": lambda: TABLE.delta(1),
    "Calibrated": lambda: dp.calibrate("exponential", epsilon=1, delta="1e-3", sensitivity=3),
    "Certificate": lambda: solved().certificate,
    "Check": lambda: replace(solved().checks[0], constraint=LONG),
    "Comparison": compared,
    "CutGuarantee": lambda: dp.cut_guarantee(dp.gaussian(0, 3), 9),
    "Design": lambda: dp.solve(dp.target(epsilon=1, delta="1e-3", family="analytic")).design,
    "Designs": lambda: dp.designs(1, "1e-3"),
    "FamilyDesign": lambda: dp.designs(1, "1e-3").rows[0],
    "FamilyOptimum": lambda: dp.best_rate(11, 1),
    "Figure": lambda: dp.study_of_key_sizes(),
    "Frontier": lambda: dp.frontier(1, "1e-3", points=50, family="analytic"),
    "FrontierPoint": lambda: dp.frontier(1, "1e-3", points=1).points[0],
    "GapEstimates": lambda: dp.combine_gaps(list(range(99, 0, -1)), ["1/3"] * 98, variances="1/7", gap_variance=1),
    "KeySizeSearch": lambda: dp.smallest_key_size((11, "1/21"), 1, 0, largest=2**90),
    "KeyTable": lambda: dp.key_table((2000, "1/3000000"), 2**64),
    "LawAudit": lambda: dp.audit_laws(LAW, {"a": Fraction(2, 3), "b": Fraction(1, 3)}, "1/3"),
    "LeastEpsilon": lambda: dp.least_epsilon(dp.laplace("10/3")),
    "LeastVariance": lambda: dp.least_variance(D=11, epsilon=1, delta="1e-3", family="any"),
    "MechanismTable": lambda: dp.mechanism_table(1, 3, delta="1e-3"),
    "PaperGuarantee": lambda: dp.paper_guarantee(dp.gaussian(0, 3)),
    "PaperRanges": lambda: dp.paper_ranges(1, 11),
    "PrivacyPairs": lambda: dp.key_table((11, "1/21"), 2**16).privacy_pairs(),
    "Profile": lambda: dp.privacy_profile(solved()),
    "Refutation": lambda: dp.smallest_key_size((11, "1/21")).refutations[-1],
    "Row": lambda: compared().rows[0],
    "SelectionLaw": lambda: dp.selection_law([1, 0, 0], 1, 1),
    "Simulation": lambda: dp.simulate(dp.poisson(3), epsilon=1, sensitivity=1, size=20, runs=30),
    "Solution": solved,
    "SufficientDelta": lambda: dp.sufficient_delta(dp.gaussian(0, 3), "0.5"),
    "TableSolution": lambda: dp.optimal_table((2, "1/3"), 256),
    "TopK": lambda: dp.noisy_top_k(range(500), 200, 1),
    "TruncatedLaplace": lambda: dp.truncated_laplace(1, "1e-3"),
    "Utility": lambda: dp.utility(dp.laplace("10/3"), dp.poisson(3)),
    "Verdict": lambda: dp.verify(solved()),
}  # fmt: skip


@cache
def made(name: str) -> Any:
    return MAKERS[name]()


def test_every_public_result_is_made_here() -> None:
    public = {
        name for name in dp.__all__ if isinstance(getattr(dp, name), type) and issubclass(getattr(dp, name), Record)
    }
    assert public == set(MAKERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_printed_fits_a_screen(name: str) -> None:
    result = made(name)
    assert type(result).__name__ == name
    for text in (str(result), repr(result)):
        lines = text.splitlines()
        assert lines and len(lines) <= LINES, text
        assert max(map(len, lines)) <= COLUMNS, text
        if name != "Solution":  # whose value and bound have as many digits as agree
            numbers = [n for n in re.findall(r"(?<![\w.])\d+\.?\d*", text) if n not in KEY_SIZES]
            assert all(len(n.replace(".", "").lstrip("0")) <= DIGITS for n in numbers), text
        assert "Fraction(" not in text and "object at 0x" not in text
    assert len(repr(result).splitlines()) == 1


@pytest.mark.parametrize("name", MAKERS)
def test_plain_data_are_strict_json(name: str) -> None:
    plain = made(name).to_dict()
    assert isinstance(plain, dict) and plain
    assert json.loads(json.dumps(plain, allow_nan=False)) is not None
    assert "Fraction(" not in json.dumps(plain) and "object at 0x" not in json.dumps(plain)


@pytest.mark.parametrize("name", MAKERS)
def test_results_pickle_copy_compare_and_hash(name: str) -> None:
    result = made(name)
    for twin in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert twin == result
        assert hash(twin) == hash(result)
        assert str(twin) == str(result)
    assert result != object()


@pytest.mark.parametrize(
    "question",
    [
        dp.tablebuilder(D=3, V=1),
        dp.wasserstein(input=dp.poisson(3), epsilon=1),
        dp.target(epsilon=1, delta="1e-3", family="any"),
    ],
)  # fmt: skip
def test_identical_solves_are_equal_and_different_ones_are_not(question: Any) -> None:
    one, two = dp.solve(question), dp.solve(question)
    assert one == two and hash(one) == hash(two) and one.timings != two.timings
    assert one.certificate == two.certificate
    assert one != dp.solve(dp.tablebuilder(D=4, V=1))


def test_exact_numbers_on_request() -> None:
    found = made("CutGuarantee")
    plain = found.to_dict()
    assert Fraction(plain["ratio"]) == found.ratio and Fraction(plain["tight"]) == found.tight
    assert tuple(map(Fraction, plain["epsilon"].values())) == found.epsilon
    assert Fraction(made("SufficientDelta").to_dict()["sufficient"]) == made("SufficientDelta").sufficient
    assert len(made("SufficientDelta").to_dict()["points"]) == len(made("SufficientDelta").points)
    assert made("Figure").text().count("\n") > LINES  # what print leaves out is there as well


# --- enclosures ------------------------------------------------------------------------------------------------------


def test_a_value_is_formatted_and_rounded_like_a_number() -> None:
    value = solved().value
    assert (
        f"{value:.4f}|{value:>10.2f}|{value:.3e}|{value:f}|{value:.2%}" == "2.1121|      2.11|2.112e+0|2.112086|211.21%"
    )
    assert round(value, 3) == Fraction("2.112") and round(value) == 2
    assert f"{value}" == str(value)


def test_digits_that_are_not_known_are_not_made_up() -> None:
    wide = dp.Enclosure(Fraction(1, 3), Fraction(1, 2))
    assert f"{wide:.3f}" == "0.333..0.500"
    assert f"{wide:.0f}" == "0" and round(wide) == 0
    with pytest.raises(ValueError, match=r"not known to 1 decimals"):
        round(wide, 1)
    with pytest.raises(ValueError):
        f"{wide:d}"


@given(st.fractions(-1000, 1000), st.integers(0, 30))
def test_formatting_is_correctly_rounded(number: Fraction, places: int) -> None:
    text = f"{dp.Enclosure(number, number):.{places}f}"
    assert abs(Fraction(text) - number) <= Fraction(1, 2 * 10**places)
    assert round(dp.Enclosure(number, number), places) == round(number, places)


# --- mistakes of an extension ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Three(dp.Objective):
    """An objective whose term is no term."""

    type = "test-results-three"

    def term(self, setting: dp.Setting) -> Any:
        return 3


@dataclass(frozen=True)
class Rubbish(dp.Constraint):
    """A constraint that returns what it is told to."""

    rows: Any = ()
    finding: Any = None
    type = "test-results-rubbish"

    def terms(self, setting: dp.Setting) -> Any:
        return self.rows

    def check(self, pmf: dp.Pmf, setting: dp.Setting) -> Any:
        return self.finding


def test_what_an_extension_returns_wrongly_is_named() -> None:
    with pytest.raises(dp.InputError, match=r"^objective: Three\.term must return an objective term.*, not 3$"):
        dp.Problem(support=dp.Integers(-1, 1), objective=Three())
    for rows in (3, None, "rows", (3,), dp.ZeroTerm((1,))):
        with pytest.raises(dp.InputError, match=r"^constraints\[0\]: Rubbish\.terms must return a tuple of terms"):
            dp.Problem(support=dp.Integers(-1, 1), objective=dp.MaxEntropy(), constraints=[Rubbish(rows)])
    question = dp.Problem(support=dp.Integers(-1, 1), objective=dp.MaxEntropy(), constraints=[Rubbish()])
    with pytest.raises(dp.InputError, match=r"^constraints\[0\]: Rubbish\.check must return a TermCheck"):
        dp.solve(question)


# --- bounded problems ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MostSpread(dp.Objective):
    """Minimise -E|Z|."""

    type = "test-results-most-spread"

    def term(self, setting: dp.Setting) -> dp.CostTerm:
        return dp.CostTerm(dp.LatticeFunction(0, (), left=(0, 1), right=(0, -1)))


def most_spread(*constraints: dp.Constraint) -> dp.Problem:
    return dp.Problem(objective=MostSpread(), constraints=list(constraints))


@pytest.fixture
def registered() -> None:
    dp.register_objective(MostSpread)


@pytest.mark.usefixtures("registered")
def test_a_cost_that_a_bounded_moment_holds_is_not_unbounded() -> None:
    solution = dp.solve(most_spread(dp.SecondMoment(at_most=4)))
    assert solution.verified is dp.Verified.OPTIMAL
    assert solution.value.lower >= -2 - Fraction(1, 10**9)  # E|Z| <= sqrt(E Z^2), attained at +-2
    assert abs(solution.value.upper + 2) < Fraction(1, 10**9)
    assert dp.verify(solution).holds


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("epsilon", "shift", "moment"), [("1", 1, 4), ("1/2", 1, 20), ("1/2", 2, 400)])
def test_private_noise_as_far_from_zero_as_a_second_moment_allows(epsilon: str, shift: int, moment: int) -> None:
    solution = dp.solve(most_spread(dp.SecondMoment(at_most=moment), dp.PureDP(epsilon, shift)))
    assert solution.verified is dp.Verified.OPTIMAL
    assert dp.is_private(solution, epsilon, sensitivity=shift) and solution.pmf.absolute_moment(2) <= moment
    assert Fraction(1) < -solution.value.lower and solution.value.lower**2 <= moment
    # a second method: the same question on a long window, which is a relaxation
    window = dp.Problem(
        support=dp.Integers(-150, 150), objective=MostSpread(),
        constraints=[dp.SecondMoment(at_most=moment), dp.PureDP(epsilon, shift, boundary="window")],
    )  # fmt: skip
    relaxed = dp.solve(window)
    assert relaxed.bound is not None
    assert float(solution.value) == pytest.approx(float(relaxed.value), rel=1e-5)


def test_what_is_unbounded_or_not_attained_says_which() -> None:
    with pytest.raises(dp.InputError, match="falls without bound, and no constraint holds it"):
        most_spread(dp.PureDP(1, 1))
    with pytest.raises(dp.InputError, match="mass escapes far out"):
        most_spread(dp.SecondMoment(at_least=4))
    with pytest.raises(dp.InputError, match="falls as fast as a bounded moment grows, so that mass may escape"):
        most_spread(dp.Expectation(of="absolute", at_most=3))
    with pytest.raises(dp.InputError, match="mass escapes far out"):  # a third moment falls on the left
        most_spread(dp.Expectation(of={"polynomial": [0, 0, 0, 1]}, at_most=3))


# --- numbers that overflow, ways out ----------------------------------------------------------------------------------


class Huge:
    """A backend with the honest point and multipliers that overflow."""

    name, requires, options = "huge", (), {}

    def __init__(self, size: float) -> None:
        self.size = size

    def availability(self) -> Availability:
        return Availability(True, "")

    def supports(self, program: Any) -> Support:
        return Support(True, "")

    def solve(self, program: Any, options: Any) -> dp.Claim:
        honest = get_backend("highs").solve(program, {})
        return replace(honest, y=np.full_like(honest.y, self.size))


@pytest.mark.parametrize("size", [1e308, -1e308, float("inf")])
@pytest.mark.parametrize(
    "problem",
    [
        dp.Problem(objective=dp.MinExpectedCost("absolute"), constraints=[dp.PureDP(1, 5)]),
        dp.Problem(support=dp.Integers(-5, 5), objective=dp.MinDelta("0.7")),
    ],
)
def test_multipliers_that_overflow_warn_nobody(problem: dp.Problem, size: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = dp.solve(problem, Huge(size))
    assert solution.verified in (dp.Verified.FEASIBLE, dp.Verified.OPTIMAL)
    assert solution.bound is None or solution.bound <= solution.value.upper


def test_refusals_name_the_way_out() -> None:
    for refused in (lambda: dp.poisson(0), lambda: dp.PureDP(1, 0), lambda: dp.delta(dp.geometric(1), 1, 0)):
        with pytest.raises(dp.InputError, match=r"must be positive, not 0.*dpopt\.point\(0\)"):
            refused()
    with pytest.raises(dp.InputError, match=r"^problem: .*target.*dpopt\.solve"):
        dp.compare(dp.target(epsilon=1, delta="1e-3", family="any"))  # type: ignore[arg-type]


def test_one_sided_noise_says_why_it_is_wide() -> None:
    found = dp.calibrate("exponential", epsilon=1, delta="1e-3", sensitivity=3)
    assert "one-sided" in found.text() and "at every epsilon" in found.text()
    assert "geometric noise has E|Z| 2.95" in found.text()  # 2 b / (1 - b^2), b = e^(-1/3)
    assert dp.calibrate("geometric", epsilon=1, sensitivity=3).remark == ""


def test_a_key_table_has_the_paper_s_rule_by_default_and_whatever_has_a_table_perturbs() -> None:
    ideal = (2, "1/3")
    assert dp.key_table(ideal, 256) == dp.key_table(ideal, 256, rule="ceiling")
    solution = dp.optimal_table(ideal, 256)
    keys = [0, 100, 255]
    assert dp.perturb([5, 6, 7], keys, solution).tolist() == dp.perturb([5, 6, 7], keys, solution.table).tolist()
    assert dp.noise(solution, keys).tolist() == dp.noise(solution.table, keys).tolist()
