"""Work before the estimate: huge numbers, long shifts and deep files are answered or refused at once, in few words.

A watchdog of 20 s stands over every case. Estimates are held against what was counted.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt as dp
from dpopt.arithmetic import exact
from dpopt.cli import main
from dpopt.distributions.inputs import gaussian_points
from dpopt.pmf import extension_bits
from dpopt.privacy.enclosed import _window, window_points
from dpopt.privacy.shifts import explicit_weights, explicit_work
from dpopt.program.formulate import core_for, formulate, program_rows
from dpopt.text import brief
from dpopt.work import Work, current_limits, require

pytestmark = pytest.mark.timeout(20)

LONGEST_MESSAGE = 400
HUGE: dict[str, Any] = {
    "5001 digits": "1" + "1" * 5000,
    "digits and exponent": "1" * 50 + "e4000",
    "exponent": "1e999999999999",
    "small exponent": "1e-999999999999",
    "integer": 10**5000,
    "negative": -(10**5000),
    "fraction": Fraction(10**5000 + 1, 10**4990),
    "tiny fraction": Fraction(1, 10**5000 + 1),
    "float": 1e308,
    "large": "1e3999",
    "small": "1e-3999",
}

PMF = dp.Pmf(-3, (1, 2, 3, 5, 3, 2, 1))
LAPLACE = dp.laplace(3)

TAKES_A_NUMBER: dict[str, Callable[[Any], Any]] = {
    "laplace scale": lambda x: dp.laplace(x),
    "laplace step": lambda x: dp.laplace(1, step=x),
    "gaussian sd": lambda x: dp.gaussian(0, x),
    "gaussian mean": lambda x: dp.gaussian(x, 1),
    "geometric": lambda x: dp.geometric(x),
    "exponential": lambda x: dp.exponential(x),
    "poisson": lambda x: dp.poisson(x),
    "uniform": lambda x: dp.uniform(0, x),
    "point": lambda x: dp.point(x),
    "table low": lambda x: dp.table(x, [1]),
    "table weight": lambda x: dp.table(0, [1, x]),
    "truncated geometric rate": lambda x: dp.truncated_geometric(x, 5),
    "truncated geometric width": lambda x: dp.truncated_geometric(1, x),
    "staircase width": lambda x: dp.staircase(x, "1/2"),
    "staircase height": lambda x: dp.staircase(1, x),
    "optimal staircase epsilon": lambda x: dp.optimal_staircase(x, 1, 1),
    "optimal staircase sensitivity": lambda x: dp.optimal_staircase(1, x, 1),
    "pmf start": lambda x: dp.Pmf(x, (1,)),
    "pmf weight": lambda x: dp.Pmf(0, (1, x)),
    "pmf step": lambda x: dp.Pmf(0, (1,), step=x),
    "tail period": lambda x: dp.Tails(x, "1/2"),
    "tail ratio": lambda x: dp.Tails(1, x),
    "moment": lambda x: PMF.absolute_moment(x),
    "lattice function": lambda x: dp.LatticeFunction(0, (x,)),
    "exact": lambda x: dp.exact(x, "x"),
    "delta epsilon": lambda x: dp.delta(PMF, x),
    "delta sensitivity": lambda x: dp.delta(PMF, 1, x),
    "delta sensitivity, tails": lambda x: dp.delta(LAPLACE, 1, x),
    "delta bits": lambda x: dp.delta(PMF, 1, bits=x),
    "epsilon delta": lambda x: dp.epsilon(PMF, x),
    "epsilon sensitivity": lambda x: dp.epsilon(PMF, "1/2", x),
    "profile epsilon": lambda x: dp.privacy_profile(PMF, [x]),
    "profile sensitivity": lambda x: dp.privacy_profile(PMF, sensitivity=x),
    "profile sensitivity, tails": lambda x: dp.privacy_profile(LAPLACE, [1], sensitivity=x),
    "profile bits": lambda x: dp.privacy_profile(PMF, bits=x),
    "delta between": lambda x: dp.delta_between(PMF, PMF, x),
    "least epsilon": lambda x: dp.least_epsilon(PMF, x),
    "least epsilon, tails": lambda x: dp.least_epsilon(LAPLACE, x),
    "paper guarantee": lambda x: dp.paper_guarantee(LAPLACE, x),
    "sufficient delta": lambda x: dp.sufficient_delta(PMF, 1, x),
    "sufficient delta, tails": lambda x: dp.sufficient_delta(LAPLACE, 1, x),
    "cut": lambda x: dp.cut_guarantee(LAPLACE, x),
    "cut sensitivity": lambda x: dp.cut_guarantee(LAPLACE, 30, x),
    "low": lambda x: dp.Integers(x, 5),
    "high": lambda x: dp.Integers(0, x),
    "lattice": lambda x: dp.Lattice(x, 0, x),
    "mean": lambda x: dp.Mean(x),
    "mean at least": lambda x: dp.Mean(at_least=x, at_most=1),
    "variance": lambda x: dp.Variance(at_most=x),
    "probability from": lambda x: dp.Probability(of={"from": x, "to": 0}, at_least="1/2"),
    "probability of": lambda x: dp.Probability(of=[x], at_least=x),
    "forbidden": lambda x: dp.Forbidden([x]),
    "unimodal": lambda x: dp.Unimodal(x),
    "pure epsilon": lambda x: dp.PureDP(x, 1),
    "pure sensitivity": lambda x: dp.PureDP(1, x),
    "approx epsilon": lambda x: dp.ApproxDP(x, "1/2"),
    "approx delta": lambda x: dp.ApproxDP(1, x),
    "approx sensitivity": lambda x: dp.ApproxDP(1, "1/2", x),
    "power": lambda x: dp.Expectation(of={"power": x}, at_most=1),
    "polynomial": lambda x: dp.Expectation(of={"polynomial": [x, 1]}, at_most=1),
    "cost point": lambda x: dp.MinExpectedCost({"table": {x: 1}, "outside": 1}),
    "cost value": lambda x: dp.MinExpectedCost({"table": {0: x}, "outside": x}),
    "min delta epsilon": lambda x: dp.MinDelta(x),
    "min delta sensitivity": lambda x: dp.MinDelta(1, x),
    "cuts": lambda x: dp.MinWassersteinRelaxation(dp.poisson(1), cut={"from": x, "to": 1}),
    "tablebuilder D": lambda x: dp.tablebuilder(D=x, V=1),
    "tablebuilder V": lambda x: dp.tablebuilder(D=3, V=x),
    "wasserstein epsilon": lambda x: dp.wasserstein(input=dp.poisson(1), epsilon=x),
    "wasserstein sensitivity": lambda x: dp.wasserstein(input=dp.poisson(1), epsilon=1, sensitivity=x),
    "target epsilon": lambda x: dp.target(epsilon=x, delta="1e-5", family="any"),
    "target delta": lambda x: dp.target(epsilon=1, delta=x, family="any"),
    "target sensitivity": lambda x: dp.target(epsilon=1, delta="1e-5", family="any", sensitivity=x),
    "family delta D": lambda x: dp.family_delta(x, 1, 1),
    "family delta gamma": lambda x: dp.family_delta(11, x, 1),
    "family delta epsilon": lambda x: dp.family_delta(11, 1, x),
    "family delta sensitivity": lambda x: dp.family_delta(11, 1, 1, x),
    "family rate D": lambda x: dp.family_rate(x, 1),
    "family rate V": lambda x: dp.family_rate(11, x),
    "calibrate epsilon": lambda x: dp.calibrate("laplace", epsilon=x),
    "calibrate delta": lambda x: dp.calibrate("gaussian", epsilon=1, delta=x),
    "calibrate sensitivity": lambda x: dp.calibrate("gaussian", epsilon=1, delta="1e-5", sensitivity=x),
    "best r": lambda x: dp.best_r(x),
    "truncated laplace": lambda x: dp.truncated_laplace(x, "1e-5"),
    "mechanism table": lambda x: dp.mechanism_table(x),
    "key size": lambda x: dp.key_table((3, "1/5"), x, rule="ceiling"),
    "ideal": lambda x: dp.key_table((3, x), 16, rule="ceiling"),
    "ideal D": lambda x: dp.key_table((x, 1), 16, rule="ceiling"),
    "table epsilon": lambda x: dp.optimal_table(PMF, 8, epsilon=x),
    "best rate": lambda x: dp.best_rate(11, x),
    "best rate D": lambda x: dp.best_rate(x, 1),
    "best epsilon D": lambda x: dp.best_epsilon(D=x, V=1, delta="1e-5"),
    "best epsilon V": lambda x: dp.best_epsilon(D=5, V=x, delta="1e-2"),
    "least variance": lambda x: dp.least_variance(D=x, epsilon=1, delta="1e-5"),
    "paper ranges": lambda x: dp.paper_ranges(x, 3),
    "designs": lambda x: dp.designs(x, "1e-2"),
    "bernoulli": lambda x: dp.sample_bernoulli(x),
    "bernoulli exp": lambda x: dp.sample_bernoulli_exp(x),
    "discrete gaussian": lambda x: dp.sample_discrete_gaussian(x),
    "discrete laplace": lambda x: dp.sample_discrete_laplace(x),
    "sample geometric": lambda x: dp.sample_geometric(x),
    "sample uniform": lambda x: dp.sample_uniform(x),
    "sample truncated geometric": lambda x: dp.sample_truncated_geometric(1, x),
    "top k epsilon": lambda x: dp.noisy_top_k([5, 6], 1, x),
    "top k": lambda x: dp.noisy_top_k([5, 6], x, 1),
    "top k resolution": lambda x: dp.noisy_top_k([5, 6], 1, 1, resolution=x),
    "selection": lambda x: dp.least_selection_epsilon([1, 5, 9], 1, x),
    "limit": lambda x: dp.Limits(bytes=x),
}


# --- huge numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TAKES_A_NUMBER)
def test_huge_numbers_are_refused_in_few_words(name: str) -> None:
    """Or answered: nothing hangs, no message floods, and Python's own limit on digits is never met."""
    for label, number in HUGE.items():
        try:
            TAKES_A_NUMBER[name](number)
        except dp.InputError as error:
            assert len(str(error)) <= LONGEST_MESSAGE, (label, str(error)[:500])
        except TypeError as error:  # a signature's own words
            assert "argument" not in str(error), (label, error)


@pytest.mark.parametrize("number", HUGE.values(), ids=list(HUGE))
def test_a_brief_number_is_brief(number: Any) -> None:
    """At most one clause of a sentence, whatever the number."""
    assert len(brief(number)) <= 60


def test_brief_numbers_are_right() -> None:
    """Short ones are themselves; of long ones the leading digits and the size."""
    assert brief(10**29) == "1" + "0" * 29
    assert brief(-(10**456)) == "-1.00e456 (457 digits)"
    assert brief(99_999 * 10**100) == "1.00e105 (106 digits)"
    assert brief(Fraction(2 * 10**400, 3)) == "about 6.67e399"


def test_a_results_terms_may_be_as_long_as_python_prints() -> None:
    """4,000 digits are read, in every form; one more is refused, in every form."""
    assert exact("9" * 4000, "x") == exact(10**4000 - 1, "x") == 10**4000 - 1
    assert exact(Fraction(1, 10**4000 - 1), "x").denominator == 10**4000 - 1
    for number in ("9" * 4001, 10**4001, Fraction(1, 10**4001), "1e4001", "0." + "0" * 4001 + "1"):
        with pytest.raises(dp.InputError, match="x: has more than 4000 digits: "):
            exact(number, "x")


# --- shifts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", [7, 10**6, 10**12, 10**20, 10**3000])
def test_shifts_as_long_as_the_support_are_one_shift(sensitivity: int) -> None:
    """On [-3, 3] a shift of 7 separates the noise from itself, and so does every longer one."""
    support = dp.Integers(-3, 3)
    least = dp.solve(dp.Problem(support=support, objective=dp.MinDelta(1, sensitivity)))
    assert least.verified is dp.Verified.OPTIMAL and least.value.upper == 1
    free = dp.solve(
        dp.Problem(support=support, objective=dp.MaxEntropy(), constraints=[dp.ApproxDP(1, 1, sensitivity)])
    )
    assert free.verified is dp.Verified.OPTIMAL and float(free.value) == pytest.approx(1.9459101490553, abs=1e-9)
    inside = dp.PureDP(1, sensitivity, boundary="window")
    cheap = dp.solve(dp.Problem(support=support, objective=dp.MinExpectedCost("absolute"), constraints=[inside]))
    assert cheap.verified is dp.Verified.OPTIMAL and float(cheap.value) == pytest.approx(1.26999258653588, rel=1e-12)
    assert "costly" not in str(least)


@pytest.mark.parametrize("pmf", [PMF, dp.Pmf(0, (2, 1, 2, 9))], ids=["unimodal", "not"])
def test_guarantees_of_finite_noise_at_any_sensitivity(pmf: dp.Pmf) -> None:
    """delta, epsilon, the profile and the theorems, at shifts of 1e20 as at the length of the support."""
    far, near = 10**20, len(pmf.weights)
    assert dp.delta(pmf, 1, far) == dp.delta(pmf, 1, near) == dp.Enclosure(Fraction(1), Fraction(1))
    assert dp.epsilon(pmf, 1, far) == dp.epsilon(pmf, 1, near)
    assert dp.privacy_profile(pmf, sensitivity=far).upper == dp.privacy_profile(pmf, sensitivity=near).upper
    assert dp.least_epsilon(pmf, far).is_finite is dp.least_epsilon(pmf, near).is_finite is False
    assert dp.sufficient_delta(pmf, 1, far).sufficient == dp.sufficient_delta(pmf, 1, near).sufficient == 1


# --- estimates against counts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 10, 31])
@pytest.mark.parametrize("shift", [1, 4, 100])
@pytest.mark.parametrize("make", [lambda m: dp.ApproxDP(1, "1/3", m), lambda m: dp.PureDP(1, m, boundary="window")])
def test_rows_are_as_many_as_estimated(make: Any, size: int, shift: int) -> None:
    """Within a factor of two above, and never below the rows that are written."""
    problem = dp.Problem(
        support=dp.Integers(0, size - 1), objective=dp.MinExpectedCost("absolute"), constraints=[make(shift)]
    )
    core = core_for(problem)
    written = formulate(problem, core).program
    assert written.row_upper.size <= program_rows(problem, core) <= 2 * written.row_upper.size + 2 * core.size


@pytest.mark.parametrize("margin", [0, 1, 17, 400])
@pytest.mark.parametrize("noise", [PMF, LAPLACE.pmf, dp.geometric(1).pmf, dp.exponential("0.1").pmf])
def test_weights_written_out_are_as_large_as_estimated(noise: dp.Pmf, margin: int) -> None:
    """Bits and bytes of the integers that are made."""
    _, weights, _ = explicit_weights(noise, margin)
    bits = max(weights).bit_length()
    assert bits - max(noise.weights).bit_length() <= extension_bits(noise, margin) <= 2 * bits
    held = sys.getsizeof(weights) + sum(map(sys.getsizeof, weights))
    estimate = explicit_work(noise, margin).bytes
    assert noise.tails is None or (held / 3 <= estimate + 1000 and estimate <= 6 * held)


@pytest.mark.parametrize("bits", [100, 1000])
@pytest.mark.parametrize("noise", [LAPLACE.pmf, dp.laplace(300).pmf, dp.geometric(2).pmf])
def test_the_window_of_a_divergence_is_as_wide_as_estimated(noise: dp.Pmf, bits: int) -> None:
    """Points above the fixed point."""
    counted = len(_window(noise, bits).floors)
    assert counted / 2 <= window_points(noise, bits) <= 2 * counted


@pytest.mark.parametrize("sd", ["1/2", 5, 40])
def test_the_points_of_a_rounded_normal_are_as_many_as_estimated(sd: Any) -> None:
    """Masses of at least 2^-129."""
    counted = len(dp.gaussian(0, sd).pmf.weights)
    assert counted / 1.3 <= gaussian_points(Fraction(sd)) <= 1.3 * counted + 3


# --- limits ----------------------------------------------------------------------------------------------------------


def test_limits_are_raised_by_name_and_come_back() -> None:
    """The message says what would be needed, the limit, and how to raise it; doing so lets the work begin."""
    big = Work(bytes=3 * 10**9)
    with pytest.raises(
        dp.InputError, match=r"x: is: about 3e9 bytes, more than the limit bytes = 2e9; raise the limit"
    ):
        require("x", big, "is")
    with dp.limits(bytes=4 * 10**9) as raised:
        require("x", big, "is")
        assert raised.bytes == 4 * 10**9
    assert current_limits() == dp.Limits()


def test_limits_hold_in_their_own_thread() -> None:
    """What one thread raises, another does not see."""
    seen: list[dp.Limits] = []
    with dp.limits(bit_operations=1):
        thread = threading.Thread(target=lambda: seen.append(current_limits()))
        thread.start()
        thread.join()
    assert seen == [dp.Limits()]


def test_a_lower_limit_refuses_a_problem_before_it_is_built() -> None:
    """Every builder asks."""
    problem = dp.Problem(support=dp.Integers(-50, 50), objective=dp.MinDelta(1, 20))
    with dp.limits(bytes=100_000), pytest.raises(dp.InputError, match="support: makes a program of about"):
        dp.solve(problem)
    with dp.limits(bit_operations=1000), pytest.raises(dp.InputError, match="sensitivity: takes exact divergences"):
        dp.delta(PMF, 1)
    with dp.limits(bit_operations=1000), pytest.raises(dp.InputError, match="sensitivity: takes the sorted privacy"):
        dp.privacy_profile(PMF)
    with dp.limits(bit_operations=1000), pytest.raises(dp.InputError, match="sd: makes about"):
        _ = dp.gaussian(0, 5).pmf
    with dp.limits(bit_operations=1000), pytest.raises(dp.InputError, match="D: makes sums over 11 points"):
        dp.family_rate(11, 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--limit", "bytes"], "--limit: must be NAME=VALUE, such as bytes=8e9, not bytes"),
        (["--limit", "byte=1e9"], "--limit: 'byte' is no limit; did you mean 'bytes'?"),
        (["--limit", "bytes=x"], "--limit bytes: must be a number"),
        (["--limit", "bytes=0"], "bytes: must be an integer from 1 to 1e+18, not 0"),
        (["--limit", "bytes=1e9", "--limit", "bytes=2e9"], "--limit: gives 'bytes' twice"),
        (["--limit", "bit_operations=1000"], "the limit bit_operations = 1000"),
    ],
)
def test_limits_on_the_command_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One option before any command; it ends with the command."""
    assert main([*words, "privacy", "--D", "11", "--V", "4"]) == 2
    assert message in capsys.readouterr().err
    assert current_limits() == dp.Limits()
    assert main(["--limit", "bytes=8e9", "privacy", "--D", "3", "--V", "1", "--epsilon", "1"]) == 0


@pytest.mark.parametrize("words", [["privacy", "--D", "3", "--V", "1"], ["backends"], ["keys", "--D", "3", "--V", "1"]])
def test_limit_after_the_command_is_told_its_place(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Not that there is no such option, with --time-limit in its place."""
    assert main([*words, "--limit", "bytes=8e9"]) == 2
    wanted = "dpopt: error: --limit: stands before the command, as in: dpopt --limit bytes=8e9 solve FILE\n"
    assert capsys.readouterr().err == wanted


# --- what took minutes -----------------------------------------------------------------------------------------------


def test_a_design_that_no_solver_finishes_is_refused() -> None:
    """D = 50,000 at an epsilon of next to nothing: a linear program of 300,000 rows."""
    with pytest.raises(
        dp.InputError, match=r"delta: asks for a solver's design on \[-50000, 50000\] at sensitivity 1: "
    ):
        dp.solve(dp.target(epsilon="1e-320", delta="1e-5", family="any", then="min-variance"))


def test_the_best_rate_at_an_epsilon_of_next_to_nothing() -> None:
    """Deltas that differ after 300 digits are told apart."""
    tiny = dp.best_rate(11, "1e-300")
    assert tiny.j == dp.best_rate(11, "1e-3").j


@pytest.mark.parametrize("family", ["analytic", "tablebuilder", "any"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"),
    [("1", "1e-5", 10**5), ("1", "1e-5", 10**20), ("1", "1e-3999", 1), ("1e-2", "1e-300", 1)],
)
def test_targets_far_out_are_refused_at_once(family: str, epsilon: str, delta: str, sensitivity: int) -> None:
    """A million points, or thousands of digits at each of thousands: a message about delta."""
    with pytest.raises(dp.InputError, match="^delta: = "):
        dp.solve(dp.target(epsilon=epsilon, delta=delta, sensitivity=sensitivity, family=family))


@pytest.mark.parametrize("sensitivity", [3, 10**20])
def test_key_tables_at_any_sensitivity(sensitivity: int) -> None:
    """A table on three points separates what moves by three or more."""
    table = dp.KeyTable(-1, (4, 8, 4), 16)
    assert table.delta(1, sensitivity).worst.upper == 1
    noise = dp.Pmf(-1, (1, 2, 1))
    impossible = dp.optimal_table(noise, 16, epsilon=1, delta="1/2", sensitivity=sensitivity)
    assert impossible.verified is dp.Verified.INFEASIBLE


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_gaussian_noise_for_a_long_way() -> None:
    """epsilon = 100 at 10,000 steps: the least sd is found with two pmfs, and is the least on its grid."""
    found = dp.calibrate("gaussian", epsilon=100, delta="1e-12", sensitivity=10**4)
    assert found.noise.sd == Fraction(70231, 40)


@pytest.mark.parametrize("scale", ["1e20", "1e140"])
def test_the_first_draw_of_very_wide_noise(scale: str) -> None:
    """Its tables have thousands of entries at hundreds of bits."""
    drawn = dp.sample(dp.laplace(scale), 100)
    assert float(scale) / 10 < sum(map(abs, drawn.tolist())) / 100 < float(scale) * 10


# --- files and command lines -----------------------------------------------------------------------------------------

TEMPLATE = """
name = "fuzz"
[support]
type = "integers"
low = {low}
high = {high}
[objective]
type = "min-delta"
epsilon = {epsilon}
sensitivity = {sensitivity}
[[constraints]]
type = "approx-dp"
epsilon = {epsilon}
delta = {delta}
sensitivity = {sensitivity}
[[constraints]]
type = "probability"
of = {{ from = {low}, to = {high} }}
at_least = {delta}
"""
ORDINARY = {"low": "-3", "high": "3", "epsilon": "1", "sensitivity": "1", "delta": "0.5"}


def strange(source: random.Random) -> str:
    """A number as nobody means it, as TOML may write it."""
    digits = "".join(source.choices("0123456789", k=source.choice([1, 5, 60, 4300, 6000])))
    number = source.choice(["", "-", "+"]) + source.choice("123456789") + digits
    exponent = source.choice(["", "", f"e{source.choice(['', '-'])}{source.choice([9, 400, 4000, 10**9, 10**30])}"])
    fraction = source.choice(["", f".{digits}", f"/{digits}"])
    return source.choice(["{}", '"{}"']).format(number + (fraction if not exponent else "") + exponent)


def one_line(capsys: pytest.CaptureFixture[str], status: int) -> str:
    """What was said on standard error: nothing, or one short line that is no traceback and no fault of ours."""
    said = capsys.readouterr().err
    assert status in (0, 1, 2) and said.count("\n") <= 1 and len(said) <= 600, said[:1000]
    assert "internal error" not in said and "Exceeds the limit" not in said
    return said


@pytest.mark.parametrize("seed", range(40))
def test_problem_files_with_strange_numbers(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One or two entries are strange: an answer, or one line and exit status 2."""
    source = random.Random(seed)
    entries = ORDINARY | {key: strange(source) for key in source.sample(list(ORDINARY), source.choice([1, 2]))}
    file = tmp_path / "p.toml"
    file.write_text(TEMPLATE.format(**entries))
    one_line(capsys, main(["solve", str(file)]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000 + "]" * 5000,
        "a = " + "{b = " * 5000 + "1" + "}" * 5000,
        ".".join("a" * 5000) + " = 1",
        "[" + ".".join("a" * 5000) + "]",
        "\n".join("[" + ".".join("a" * n) + "]" for n in range(1, 400)),
        "a = " + "1" * 100_000,
        "a = 1e" + "9" * 100_000,
        '[target]\nepsilon = 1\ndelta = "1e-999999999"\nfamily = "any"',
        '[target]\nepsilon = "1e-999999999"\ndelta = "1e-5"\nfamily = "tablebuilder"',
        '[target]\nepsilon = "1e-3999"\ndelta = "1e-3999"\nfamily = "tablebuilder"',
        '[target]\nepsilon = 1\ndelta = "1e-5"\nsensitivity = 1e300\nfamily = "analytic"',
    ],
    ids=range(11),
)
def test_deep_and_long_files(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nesting and digits beyond all use."""
    file = tmp_path / "p.toml"
    file.write_text(text)
    status = main(["solve", str(file)])
    assert one_line(capsys, status) if status == 2 else status == 1


COMMANDS = [
    ["privacy", "--D", "{}", "--V", "4"],
    ["privacy", "--D", "11", "--V", "{}"],
    ["privacy", "--D", "11", "--gamma", "{}"],
    ["privacy", "--D", "11", "--V", "4", "--sensitivity", "{}"],
    ["privacy", "--D", "11", "--V", "4", "--epsilon", "{}"],
    ["privacy", "--D", "11", "--V", "4", "--delta", "{}"],
    ["target", "--epsilon", "{}", "--delta", "1e-3"],
    ["target", "--epsilon", "1", "--delta", "{}"],
    ["target", "--epsilon", "1", "--delta", "1e-3", "--sensitivity", "{}"],
    ["keys", "--D", "5", "--V", "2", "--key-size", "{}"],
    ["mechanism", "laplace", "--epsilon", "{}"],
    ["mechanism", "gaussian", "--epsilon", "1", "--delta", "{}"],
    ["mechanism", "laplace", "--epsilon", "1", "--sensitivity", "{}"],
    ["--limit", "bytes={}", "privacy", "--D", "3", "--V", "1"],
]


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:60])
def test_command_lines_with_strange_numbers(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is typed for a number: an answer of readable length, or one line."""
    source = random.Random(repr(words))
    typed = [strange(source).strip('"') for _ in range(4)] + ["1" * 5000, "1" * 4000, "1e3999", "1e-3999"]
    for number in typed:
        status = main([word.replace("{}", number) for word in words])
        captured = capsys.readouterr()
        assert status in (0, 1, 2) and captured.err.count("\n") <= 1 and len(captured.err) <= 600, number[:60]
        assert "internal error" not in captured.err and "Exceeds the limit" not in captured.err, captured.err
        assert max(map(len, captured.out.splitlines()), default=0) <= 600, (number[:60], captured.out[:300])
