"""The problem room: every part validates itself, names what is wrong, and survives text, pickle and comparison."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt as dp
from dpopt.problem.parts import constraint_types, objective_types

ABSOLUTE = dp.MinExpectedCost("absolute")

# Every registered part at least once, with the arguments that its TOML form has to carry.
CONSTRAINTS: dict[str, list[dp.Constraint]] = {
    "mean": [dp.Mean(0), dp.Mean(at_least="-1/3", at_most="0.25"), dp.Mean(at_most=-2)],
    "variance": [dp.Variance(at_most=4), dp.Variance("1/7")],
    "second-moment": [dp.SecondMoment(at_least=1, at_most=Decimal("2.5"))],
    "expectation": [
        dp.Expectation(of="absolute", at_most=2),
        dp.Expectation(of="value", equals=0),
        dp.Expectation(of={"power": 3}, at_most=30),
        dp.Expectation(of={"polynomial": [0, "1/2", -1]}, at_least=-4),
        dp.Expectation(of={"table": {"-1": 2, "0": 0, "1": "1/3"}, "outside": 5}, at_most=3),
    ],
    "probability": [
        dp.Probability(of=[0, -1], at_least="1/2"),
        dp.Probability(of={"from": -1, "to": 1}, equals="0.9"),
        dp.Probability(of={"from": 2}, at_most="0.01"),
        dp.Probability(of={"to": -2}, at_most="0.01"),
    ],
    "forbidden": [dp.Forbidden([1, -1])],
    "symmetric": [dp.Symmetric()],
    "unimodal": [dp.Unimodal(), dp.Unimodal(mode=-2)],
    "pure-dp": [dp.PureDP(1, boundary="window"), dp.PureDP("0.1", 3, boundary="window")],
    "approx-dp": [dp.ApproxDP(1, "1e-10"), dp.ApproxDP(0, 1, "5/2")],
}
OBJECTIVES: dict[str, list[dp.Objective]] = {
    "max-entropy": [dp.MaxEntropy()],
    "min-expected-cost": [
        dp.MinExpectedCost(c)
        for c in ("absolute", "square", "error", "value", {"power": 0}, {"power": 5}, {"polynomial": [1, 2, "3/4"]},
                  {"table": {"0": 0, "-2": "1/3"}, "outside": 1})
    ],
    "min-wasserstein": [
        dp.MinWasserstein(d)
        for d in (dp.poisson(10), dp.poisson("2.5"), dp.gaussian(0, 5), dp.uniform(-3, 3), dp.point(7),
                  dp.table(-1, [1, "1/2", 0, 3]), dp.Pmf(2, (1, 2, 3)))
    ],
    "min-wasserstein-relaxation": [
        dp.MinWassersteinRelaxation(dp.poisson(10)),
        dp.MinWassersteinRelaxation(dp.gaussian(0, 5), cut={"from": "-1/2", "to": 20}),
    ],
    "min-delta": [dp.MinDelta("1/2"), dp.MinDelta(1, 2)],
}  # fmt: skip
SHIPPED_CONSTRAINTS = [(name, i) for name, parts in CONSTRAINTS.items() for i in range(len(parts))]
SHIPPED_OBJECTIVES = [(name, i) for name, parts in OBJECTIVES.items() for i in range(len(parts))]


def around(constraint: dp.Constraint) -> dp.Problem:
    """A problem that holds this constraint."""
    fixed = [dp.Mean(0)] if isinstance(constraint, dp.Variance) else []
    return dp.Problem(support=dp.Integers(-4, 6), objective=ABSOLUTE, constraints=[*fixed, constraint], name="a name")


def written(problem: dp.Problem, folder: Path) -> dp.Problem:
    """The problem, written as TOML and loaded again."""
    path = folder / "problem.toml"
    path.write_text(problem.to_toml(), encoding="utf-8")
    return dp.load(path)


def test_every_shipped_part_is_here() -> None:
    """No constraint or objective of the package is missing from these tests."""
    shipped = {name for name, cls in constraint_types().items() if cls.__module__.startswith("dpopt.")}
    assert shipped == set(CONSTRAINTS)
    assert {n for n, cls in objective_types().items() if cls.__module__.startswith("dpopt.")} == set(OBJECTIVES)


@pytest.mark.parametrize(("name", "i"), SHIPPED_CONSTRAINTS)
def test_constraint_is_a_value(name: str, i: int, tmp_path: Path) -> None:
    """TOML without loss, pickle, copy, equality and hash, and frozen."""
    constraint = CONSTRAINTS[name][i]
    problem = around(constraint)
    again = written(problem, tmp_path)
    assert again == problem
    assert again.constraints[-1] == constraint
    assert constraint.plain()["type"] == name == constraint.type
    for twin in (pickle.loads(pickle.dumps(constraint)), copy.deepcopy(constraint), again.constraints[-1]):
        assert twin == constraint
        assert hash(twin) == hash(constraint)
    assert len({constraint, pickle.loads(pickle.dumps(constraint))}) == 1
    for field in dataclasses.fields(constraint):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(constraint, field.name, 1)


@pytest.mark.parametrize(("name", "i"), SHIPPED_OBJECTIVES)
def test_objective_is_a_value(name: str, i: int, tmp_path: Path) -> None:
    """TOML without loss, pickle, equality and hash, on a finite and, where it is allowed, an infinite support."""
    objective = OBJECTIVES[name][i]
    problems = [dp.Problem(support=dp.Integers(-4, 6), objective=objective)]
    if name in ("min-wasserstein",):
        problems.append(dp.Problem(objective=objective, constraints=[dp.PureDP(1)]))
    for problem in problems:
        again = written(problem, tmp_path)
        assert again == problem
        assert hash(again) == hash(problem)
        assert pickle.loads(pickle.dumps(problem)) == problem
    assert objective.plain()["type"] == name


@pytest.mark.parametrize("support", [
    dp.Integers(), dp.Integers(-3, 4), dp.Integers(0, 0), dp.Lattice("1/2"), dp.Lattice("1/3", -1, "4/3"),
    dp.Lattice(2, -4, 4), dp.Lattice("0.1", "-0.5", "0.5"),
])  # fmt: skip
def test_support_is_a_value(support: dp.Support, tmp_path: Path) -> None:
    """TOML without loss for every support; all integers are the default and are not written."""
    sensitivity = support.step
    constraint = dp.ApproxDP(1, "0.1", sensitivity)
    problem = dp.Problem(support=support, objective=ABSOLUTE, constraints=[constraint])
    again = written(problem, tmp_path)
    assert again == problem
    assert again.support.window == support.window
    assert ("support" in problem.to_dict()) is (support != dp.Integers())


def test_exact_numbers_stay_exact(tmp_path: Path) -> None:
    """TOML floats and strings keep their digits: 0.1 is one tenth on the way in and out."""
    path = tmp_path / "exact.toml"
    text = """
        [support]
        type = "integers"
        low = -2
        high = 2
        [objective]
        type = "max-entropy"
        [[constraints]]
        type = "mean"
        equals = 0.1
        [[constraints]]
        type = "variance"
        at_most = "1000000000000000000000000000001/1000000000000000000000000000000"
        [[constraints]]
        type = "expectation"
        of = "absolute"
        at_most = 1_000.000_000_000_000_000_000_000_1
    """
    path.write_text(text, encoding="utf-8")
    problem = dp.load(path)
    mean, variance, expectation = problem.constraints
    assert mean.equals == Fraction(1, 10)
    assert variance.at_most == 1 + Fraction(1, 10**30)
    assert expectation.at_most == 1000 + Fraction(1, 10**22)
    assert written(problem, tmp_path) == problem


def test_problems_compare_by_value() -> None:
    """Equal questions are equal whichever numbers spelled them; a change of any part makes another question."""
    base = dp.tablebuilder(D=3, V="1/2", name="x")
    assert base == dp.tablebuilder(D=3, V=0.5, name="x")
    assert base == dp.tablebuilder(D=3.0, V=Decimal("0.5"), name="x")
    assert hash(base) == hash(dp.tablebuilder(D=np.int64(3), V=Fraction(1, 2), name="x"))
    others = {
        dp.tablebuilder(D=4, V="1/2", name="x"), dp.tablebuilder(D=3, V="1/3", name="x"),
        dp.tablebuilder(D=3, V="1/2", name="y"),
        dp.Problem(support=base.support, objective=ABSOLUTE, constraints=base.constraints, name="x"),
        dp.Problem(support=base.support, objective=base.objective, constraints=base.constraints[:1], name="x"),
    }  # fmt: skip
    assert len(others) == 5
    assert base not in others


def test_problem_is_frozen() -> None:
    """A problem cannot be changed after it was checked."""
    problem = dp.tablebuilder(D=2, V=1)
    with pytest.raises((AttributeError, TypeError)):
        problem.name = "other"
    with pytest.raises((AttributeError, TypeError)):
        del problem.support
    assert isinstance(problem.constraints, tuple)


@pytest.mark.parametrize(
    "wrong", [True, None, [], {}, "one", "1/0", "", float("nan"), float("inf"), 1j, b"1", object()]
)
@pytest.mark.parametrize(("make", "argument"), [
    (lambda v: dp.Mean(v) if v is not None else dp.Mean([]), "equals"),
    (lambda v: dp.Mean(at_most=v) if v is not None else dp.Mean(at_most=[]), "at_most"),
    (lambda v: dp.PureDP(v), "epsilon"), (lambda v: dp.PureDP(1, v), "sensitivity"),
    (lambda v: dp.ApproxDP(v, "0.1"), "epsilon"), (lambda v: dp.ApproxDP(1, v), "delta"),
    (lambda v: dp.ApproxDP(1, "0.1", v), "sensitivity"), (lambda v: dp.MinDelta(v), "epsilon"),
    (lambda v: dp.Unimodal(v), "mode"), (lambda v: dp.Lattice(v), "step"),
    (lambda v: dp.Forbidden([0, v]), "values[1]"),
    (lambda v: dp.Probability(of=[v], at_most=1), "of[0]"), (lambda v: dp.poisson(v), "rate"),
    (lambda v: dp.gaussian(v, 1), "mean"), (lambda v: dp.gaussian(0, v), "sd"), (lambda v: dp.point(v), "at"),
    (lambda v: dp.uniform(v, 3), "low"), (lambda v: dp.uniform(0, v), "high"), (lambda v: dp.table(v, [1]), "low"),
    (lambda v: dp.table(0, [1, v]), "weights[1]"), (lambda v: dp.MinExpectedCost({"power": v}), "cost.power"),
    (lambda v: dp.MinExpectedCost({"table": {"0": v}}), "cost.table.0"),
    (lambda v: dp.MinExpectedCost({"polynomial": [v]}), "cost.polynomial[0]"),
    (lambda v: dp.Integers(v if v is not None else [], 3), "low"),
])  # fmt: skip
def test_wrong_numbers_name_the_argument(make: Any, argument: str, wrong: object) -> None:
    """Whatever is no number is refused in one line that begins with the argument."""
    with pytest.raises(dp.InputError) as caught:
        make(wrong)
    assert str(caught.value).startswith(f"{argument}: ")
    assert caught.value.location == argument
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("make", "message"), [
    # signs and ranges
    (lambda: dp.PureDP(-1), r"epsilon: must be at least 0, not -1"),
    (lambda: dp.PureDP(1, 0), r"sensitivity: must be positive"),
    (lambda: dp.PureDP(1, -2), r"sensitivity: must be positive"),
    (lambda: dp.PureDP("1e9"), r"epsilon: must be at most"),
    (lambda: dp.PureDP(1, 1, boundary="edge"), r"boundary: must be 'exact' or 'window', not 'edge'"),
    (lambda: dp.PureDP(1, 1, boundary=None), r"boundary"),
    (lambda: dp.ApproxDP(1, "-0.1"), r"delta: must lie between 0 and 1"),
    (lambda: dp.ApproxDP(1, "1.1"), r"delta: must lie between 0 and 1"),
    (lambda: dp.Lattice(0), r"step: must be positive"),
    (lambda: dp.Lattice("-1/2"), r"step: must be positive"),
    (lambda: dp.Lattice("1/2", "1/3", 2), r"low: must be a multiple of the step 1/2, not 1/3"),
    (lambda: dp.Integers(3, 2), r"high: must be at least low = 3, not 2"),
    (lambda: dp.Integers(0), r"high: is missing"),
    (lambda: dp.Integers(high=1), r"low: is missing"),
    (lambda: dp.Integers(0, "1/2"), r"high: must be an integer"),
    (lambda: dp.Integers(0, 10**12), r"high: makes a support of more than"),
    (lambda: dp.poisson(0), r"rate: must be positive"),
    (lambda: dp.poisson(-3), r"rate: must be positive"),
    (lambda: dp.poisson(10**9), r"rate: must be at most"),
    (lambda: dp.gaussian(0, 0), r"sd: must be positive"),
    (lambda: dp.uniform(3, 1), r"high: must be at least low = 3, not 1"),
    (lambda: dp.point("1/2"), r"at: must be an integer"),
    (lambda: dp.table(0, [1, -1]), r"weights\[1\]: must not be negative, not -1"),
    (lambda: dp.table(0, []), r"weights: must hold at least one positive weight"),
    (lambda: dp.table(0, [0, 0]), r"weights: must hold at least one positive weight"),
    (lambda: dp.table(0, "123"), r"weights: must be a list"),
    # bounds
    (lambda: dp.Mean(), r"equals: is missing: give equals, at_least or at_most"),
    (lambda: dp.Mean(0, at_most=1), r"equals: excludes at_least and at_most"),
    (lambda: dp.Mean(at_least=2, at_most=1), r"at_least: must not exceed at_most = 1, not 2"),
    # sets and functions
    (lambda: dp.Probability(of=[], at_most=1), r"of: must name at least one value"),
    (lambda: dp.Probability(at_most=1), r"of: must be a list of values or"),
    (lambda: dp.Probability(of="abc", at_most=1), r"of: must be a list of values or"),
    (lambda: dp.Probability(of={"from": 2, "to": 1}, at_most=1), r"of\.from: must not exceed of\.to = 1, not 2"),
    (lambda: dp.Probability(of={"since": 2}, at_most=1), r"of: must be a list of values or"),
    (lambda: dp.Forbidden([]), r"values: must name at least one value"),
    (lambda: dp.Forbidden(3), r"values: must be a list of numbers"),
    (lambda: dp.Forbidden("12"), r"values: must be a list of numbers"),
    (lambda: dp.Expectation(of="cubic", at_most=1), r"of: must be one of 'absolute', 'square'"),
    (lambda: dp.Expectation(of={"power": -1}, at_most=1), r"of\.power: must be at least 0"),
    (lambda: dp.Expectation(of={"power": 65}, at_most=1), r"of\.power: must be at most 64"),
    (lambda: dp.Expectation(of={"power": "5/2"}, at_most=1), r"of\.power: must be an integer"),
    (lambda: dp.Expectation(of={}, at_most=1), r"of: must be one of"),
    (lambda: dp.Expectation(of={"table": {}}, at_most=1), r"of\.table: must be a table of points and values"),
    (lambda: dp.Expectation(of={"table": {"x": 1}}, at_most=1), r"of\.table: must be a number"),
    (lambda: dp.Expectation(of={"table": {"1": 1, "1.0": 2}}, at_most=1), r"of\.table: lists the point 1 twice"),
    (lambda: dp.MinExpectedCost(3), r"cost: must be one of"),
    (lambda: dp.MinExpectedCost(None), r"cost: must be one of"),
    # whole problems
    (lambda: dp.Problem(objective=dp.Mean(0)), r"objective: must be an objective such as MaxEntropy\(\)"),
    (lambda: dp.Problem(objective=dp.MaxEntropy, support=dp.Integers(0, 1)), r"objective: must be an objective"),
    (lambda: dp.Problem(objective=ABSOLUTE, support=(0, 1)), r"support: must be Integers"),
    (lambda: dp.Problem(objective=ABSOLUTE, constraints=dp.Mean(0)), r"constraints: must be a list of constraints"),
    (lambda: dp.Problem(objective=ABSOLUTE, constraints=[dp.Mean(0), 3]), r"constraints\[1\]: must be a constraint"),
    (lambda: dp.Problem(objective=ABSOLUTE, constraints=3), r"constraints: must be a list"),
    (lambda: dp.Problem(objective=ABSOLUTE, name=3), r"name: must be text, not 3"),
    (lambda: dp.Problem(objective=ABSOLUTE, support=dp.Integers(0, 3), constraints=[dp.Forbidden(["1/2"])]),
     r"constraints\[0\]\.values: must be a point of the lattice"),
    (lambda: dp.Problem(objective=ABSOLUTE, support=dp.Integers(0, 3), constraints=[dp.Unimodal(9)]),
     r"constraints\[0\]\.mode: must lie in the support, not 9"),
    (lambda: dp.Problem(objective=dp.MinExpectedCost({"table": {"0": 1}}), support=dp.Integers(0, 1)),
     r"objective\.table: has no value at 1"),
    (lambda: dp.Problem(objective=dp.MinWasserstein(dp.point(0)), support=dp.Lattice("2/3", 0, 2)),
     r"objective\.input: lives on the integers"),
    (lambda: dp.MinWasserstein("poisson"), r"input: must be a distribution such as dpopt\.poisson\(10\)"),
    (lambda: dp.MinWasserstein({"type": "poison", "rate": 1}),
     r"input\.type: 'poison' is not a known input.*'poisson'"),
    (lambda: dp.MinWasserstein(dp.Pmf(0, (1,), tails=dp.Tails(1, right="1/2"))), r"input: must be finite and on the"),
    (lambda: dp.MinWasserstein(dp.laplace(3)), r"input: must be finite .*: give a table of its masses"),
    (lambda: dp.MinWasserstein(dp.gaussian(0, 2, step="1/2")), r"input: must be finite and on the integers"),
    (lambda: dp.MinWassersteinRelaxation(dp.geometric(1)), r"input: must be finite and on the integers"),
])  # fmt: skip
def test_errors_say_what_and_where(make: Any, message: str) -> None:
    """Wrong sign, range, shape or combination: the argument, what was found, what would be right, in one line."""
    with pytest.raises(dp.InputError, match=f"^{message}") as caught:
        make()
    assert "\n" not in str(caught.value)


BASE = '[support]\ntype = "integers"\nlow = -3\nhigh = 3\n[objective]\ntype = "min-expected-cost"\ncost = "absolute"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"objective: is missing"),
        ("[[constraint]]\n" + BASE, r"constraint: is not a key of a problem; did you mean 'constraints'\?"),
        ("colour = 1\n" + BASE, r"colour: is not a key of a problem \(known: .*constraints.*\)"),
        ("objective = 3", r"objective: must be a table with a type, not 3"),
        ("[objective]\n", r"objective: needs type = one of .*'max-entropy'"),
        ("[objective]\ntype = 3", r"objective: needs type"),
        (
            '[objective]\ntype = "max-entropie"',
            r"objective\.type: 'max-entropie' is not a known objective; did you mean 'max-entropy'\?",
        ),
        (
            '[objective]\ntype = "max-entropy"\ncost = 1',
            r"objective\.cost: is not a key of objective 'max-entropy'; it takes no keys",
        ),
        ('[objective]\ntype = "min-delta"', r"objective\.epsilon: is missing \(objective 'min-delta' needs it\)"),
        (
            '[objective]\ntype = "min-delta"\nepsilom = 1',
            r"objective\.epsilom: is not a key .*did you mean 'epsilon'\?",
        ),
        ('[objective]\ntype = "min-wasserstein"\ninput = { type = "poisson" }', r"objective\.input\.rate: is missing"),
        (
            '[objective]\ntype = "min-wasserstein"\ninput = { type = "poisson", rate = -1 }',
            r"objective\.input\.rate: must be positive",
        ),
        (
            '[objective]\ntype = "min-wasserstein"\ninput = { type = "gaussian", mean = 0, sigma = 1 }',
            r"objective\.input\.sigma: is not a key",
        ),
        ('[objective]\ntype = "min-wasserstein"\ninput = "poisson"', r"objective\.input: must be"),
        (BASE.replace("-3", "4"), r"support\.high: must be at least low = 4, not 3"),
        (BASE.replace("-3", '"x"'), r"support\.low: must be a number"),
        (
            BASE.replace("integers", "lattice").replace("low = -3", 'step = "2/5"\nlow = -3'),
            r"support\.low: must be a multiple of the step 2/5, not -3",
        ),
        (BASE.replace("low", "lo"), r"support\.lo: is not a key of support 'integers'; did you mean 'low'\?"),
        (BASE + "[constraints]\n", r"constraints: must be a list of tables"),
        ("constraints = [1]\n" + BASE, r"constraints\[0\]: must be a table with a type, not 1"),
        (BASE + '[[constraints]]\ntype = "mean"\n', r"constraints\[0\]\.equals: is missing"),
        (
            BASE + '[[constraints]]\ntype = "mean"\nequal = 0\n',
            r"constraints\[0\]\.equal: is not a key of constraint 'mean'; did you mean 'equals'\?",
        ),
        (
            BASE + '[[constraints]]\ntype = "mean"\nequals = 0\n[[constraints]]\ntype = "pure-dp"\n',
            r"constraints\[1\]\.epsilon: is missing",
        ),
        (
            BASE + '[[constraints]]\ntype = "pure-dp"\nepsilon = -1\n',
            r"constraints\[0\]\.epsilon: must be at least 0, not -1",
        ),
        (BASE + '[[constraints]]\ntype = "pure-dp"\nepsilon = true\n', r"constraints\[0\]\.epsilon: must be a number"),
        (BASE + '[[constraints]]\ntype = "pure-dp"\nepsilon = nan\n', r"constraints\[0\]\.epsilon: must be"),
        (
            BASE + '[[constraints]]\ntype = "pure-dp"\nepsilon = 1979-05-27\n',
            r"constraints\[0\]\.epsilon: must be a number",
        ),
        (
            BASE + '[[constraints]]\ntype = "pure-dp"\nepsilon = 1\n',
            r"constraints\[0\]: pure-dp is impossible on a finite support",
        ),
        (BASE + '[[constraints]]\ntype = "variance"\nat_most = 1\n', r"constraints\[0\]\.variance: needs a fixed mean"),
        ("name = 3\n" + BASE, r"name: must be text, not 3"),
    ],
)
def test_errors_give_the_toml_location(text: str, message: str, tmp_path: Path) -> None:
    """The location in the file, what was found, and what would be right."""
    path = tmp_path / "problem.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(dp.InputError, match=message) as caught:
        dp.load(path)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing file, folder, not TOML, not UTF-8: the file is named."""
    with pytest.raises(dp.InputError, match=r"nowhere\.toml: there is no such problem file"):
        dp.load(tmp_path / "nowhere.toml")
    with pytest.raises(dp.InputError, match="cannot be read"):
        dp.load(tmp_path)
    for name, content, message in (
        ("broken.toml", b"[objective\n", "is not TOML"),
        ("latin.toml", b'name = "\xe9"\n', "must be UTF-8"),
        ("twice.toml", b"name = 'a'\nname = 'b'\n", "is not TOML"),
        ("deep.toml", b"a = " + b"[" * 5000 + b"]" * 5000, "cannot be read as TOML"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dp.InputError, match=message) as caught:
            dp.load(tmp_path / name)
        assert name in str(caught.value)
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + BASE.encode())
    assert dp.load(tmp_path / "bom.toml").support == dp.Integers(-3, 3)


CSV_PROBLEM = """
[objective]
type = "min-wasserstein"
input = { type = "csv", file = "counts.csv", value = "visits", count = "people" }
[[constraints]]
type = "pure-dp"
epsilon = 1
"""


def test_csv_input(tmp_path: Path) -> None:
    """Values and counts in any order, other columns, repeated values and gaps; embedded, so the file may go away."""
    (tmp_path / "counts.csv").write_text("people,place,visits\n3,a,2\n1,b,0\n\n4,c,2\n0,d,7\n", encoding="utf-8")
    path = tmp_path / "problem.toml"
    path.write_text(CSV_PROBLEM, encoding="utf-8")
    problem = dp.load(path)
    (tmp_path / "counts.csv").unlink()
    law = problem.objective.input.pmf
    assert [law.probability(k) for k in range(4)] == [Fraction(1, 8), 0, Fraction(7, 8), 0]
    assert written(problem, tmp_path) == problem
    assert dp.solve(problem).verified is dp.Verified.OPTIMAL


@pytest.mark.parametrize(("content", "message"), [
    (None, r"counts\.csv: there is no such CSV file"),
    ("", r"counts\.csv: needs a line of column names"),
    ("visits,persons\n1,2\n",
     r"objective\.input\.count: .*counts\.csv has no column 'people'; its columns are visits, persons"),
    ("visits,people\n1.5,2\n", r"counts\.csv:2: visits: must be an integer"),
    ("visits,people\n1,two\n", r"counts\.csv:2: people: must be a number"),
    ("visits,people\n1,2\n2,-1\n", r"counts\.csv:3: has the negative count -1"),
    ("visits,people\n1,2\n3\n", r"counts\.csv:3: has 1 cells, but there are 2 columns"),
    ("visits,people\n1,0\n", r"counts\.csv: has no positive count"),
    ("visits,people\n", r"counts\.csv: needs a line of column names and at least one row below it"),
    ("visits,people\n0,1\n9999999,1\n", r"counts\.csv: spans 10000000 values"),
    ("visits;people\n1;2\n", r'objective\.input\.delimiter: is missing: .*counts\.csv seems to need delimiter = ";"'),
])  # fmt: skip
def test_csv_errors(content: str | None, message: str, tmp_path: Path) -> None:
    """Every defect of the data names the file and line, or the key of the problem file."""
    if content is not None:
        (tmp_path / "counts.csv").write_text(content, encoding="utf-8")
    path = tmp_path / "problem.toml"
    path.write_text(CSV_PROBLEM, encoding="utf-8")
    with pytest.raises(dp.InputError, match=message) as caught:
        dp.load(path)
    assert "\n" not in str(caught.value)


def test_shorthands_are_the_problems_they_stand_for() -> None:
    """tablebuilder and wasserstein build what the long form builds."""
    assert dp.tablebuilder(D=11, V=4, name="n") == dp.Problem(
        support=dp.Integers(-11, 11),
        objective=dp.MaxEntropy(),
        constraints=[dp.Mean(0), dp.Variance(at_most=4)],
        name="n",
    )
    assert dp.wasserstein(input=dp.poisson(10), epsilon=2, sensitivity=15) == dp.Problem(
        objective=dp.MinWasserstein(dp.poisson(10)), constraints=[dp.PureDP(2, 15)]
    )


def test_checks_are_exact() -> None:
    """A check is true or false in exact arithmetic, with its margin in the constraint's own units."""
    problem = dp.Problem(
        support=dp.Integers(-1, 1),
        objective=dp.MaxEntropy(),
        constraints=[dp.Mean(0), dp.Variance(at_most="1/2"), dp.Probability(of=[0], at_least="1/3"), dp.Symmetric(),
                     dp.Unimodal(), dp.ApproxDP(1, "1/4")],
    )  # fmt: skip
    good = problem.check(dp.Pmf(-1, (1, 2, 1)))
    assert [c.holds for c in good] == [True] * 6
    assert [c.margin for c in good[:3]] == [0, 0, Fraction(1, 6)]
    assert [c.constraint for c in good] == ["mean", "variance", "probability", "symmetric", "unimodal", "approx-dp"]
    huge = 10**40  # one unit in the 40th digit off: no float could see it
    off = problem.check(dp.Pmf(-1, (huge, 2 * huge, huge + 1)))
    assert [c.holds for c in off[:4]] == [False, False, True, False]
    assert -Fraction(1, 10**39) < off[0].margin < 0


def test_fixed_mean_counts_for_variance() -> None:
    """A variance refers to the mean that the problem fixes, by `mean` or by `symmetric`."""
    pmf = dp.Pmf(1, (1, 0, 1))  # 1 or 3: mean 2, variance 1
    shifted = dp.Problem(support=dp.Integers(0, 4), objective=ABSOLUTE, constraints=[dp.Variance(1), dp.Mean(2)])
    assert [c.holds for c in shifted.check(pmf)] == [True, True]
    symmetric = dp.Problem(
        support=dp.Integers(-4, 4), objective=ABSOLUTE, constraints=[dp.Symmetric(), dp.Variance(at_most=1)]
    )
    assert [c.holds for c in symmetric.check(dp.Pmf(-1, (1, 0, 1)))] == [True, True]
    assert not symmetric.check(dp.Pmf(-1, (1, 1, 2)))[0].holds


def test_finite_named_noise_is_an_input_as_a_table() -> None:
    """Floor-discretised Gaussian noise has no TOML form as an input; its masses have."""
    noise = dp.gaussian(0, 1, discretisation="floor")
    objective = dp.MinWasserstein(noise)
    assert objective.plain()["input"]["type"] == "table"
    assert objective.input.pmf == noise.pmf
