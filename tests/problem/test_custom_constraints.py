"""A new constraint is one class in the user's own file and one registration: Python, TOML and plugin files."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

import dpopt as dp
from dpopt.lattice_function import LatticeFunction
from dpopt.problem.parts import constraint_types, objective_types

ABSOLUTE = dp.MinExpectedCost("absolute")


@dp.register_constraint
@dataclass(frozen=True)
class OddNoise(dp.Constraint):
    """P(Z is odd) is at most this much: linear, so its check comes for free."""

    at_most: Fraction
    type: ClassVar[str] = "test-odd-noise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", dp.exact(self.at_most, "at_most"))

    def terms(self, setting: dp.Setting) -> tuple[Any, ...]:
        """One expectation of an indicator on the finite support."""
        first, last = setting.support.window
        table = tuple(Fraction(abs(k) % 2) for k in range(first, last + 1))
        return (dp.ExpectationTerm(LatticeFunction(first, table), None, self.at_most),)


@dp.register_constraint
@dataclass(frozen=True)
class LargestMass(dp.Constraint):
    """No point has more mass than this: not one row but one a point, with its own exact check."""

    at_most: Fraction = field(metadata={"key": "limit"})
    type: ClassVar[str] = "test-largest-mass"

    def terms(self, setting: dp.Setting) -> tuple[Any, ...]:
        """One expectation a point."""
        first, last = setting.support.window
        return tuple(
            dp.ExpectationTerm(LatticeFunction(k, (Fraction(1),)), None, Fraction(self.at_most))
            for k in range(first, last + 1)
        )

    def check(self, pmf: dp.Pmf, setting: dp.Setting) -> dp.TermCheck:
        """The margin of the heaviest point."""
        margin = Fraction(self.at_most) - max(pmf.weights) / pmf.total
        return dp.TermCheck(margin >= 0, margin)


@dp.register_constraint
@dataclass(frozen=True)
class QuietCentre(dp.Constraint):
    """No mass at 0, and E|Z| at least this much: points without mass beside linear rows, before and after them."""

    at_least: Fraction
    type: ClassVar[str] = "test-quiet-centre"

    def terms(self, setting: dp.Setting) -> tuple[Any, ...]:
        """A zero between two rows, of which the second is the one that binds."""
        loose = dp.ExpectationTerm(LatticeFunction.constant(1), None, Fraction(2))
        absolute = LatticeFunction(0, (), (Fraction(0), Fraction(-1)), (Fraction(0), Fraction(1)))
        return (loose, dp.ZeroTerm((0,)), dp.ExpectationTerm(absolute, Fraction(self.at_least), None))


def odd(at_most: object = "1/10") -> dp.Problem:
    """Max entropy with little odd noise: each parity class spreads its mass evenly."""
    return dp.Problem(support=dp.Integers(-4, 4), objective=dp.MaxEntropy(), constraints=[OddNoise(at_most)])


def test_from_python() -> None:
    """Solved, proved and checked like a shipped constraint; the optimum is known in closed form."""
    solution = dp.solve(odd())
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert [c.constraint for c in solution.checks] == ["test-odd-noise"]
    assert solution.checks[0].holds
    for k in range(-4, 5):  # 4 odd points share 1/10, 5 even points share 9/10
        wanted = Fraction(1, 40) if k % 2 else Fraction(9, 50)
        assert abs(solution.pmf.probability(k) - wanted) <= Fraction(1, 10**9)


def test_from_toml(tmp_path: Path) -> None:
    """Its TOML keys are its fields, its errors have its location, and it survives the round trip."""
    path = tmp_path / "odd.toml"
    path.write_text(odd().to_toml(), encoding="utf-8")
    assert "test-odd-noise" in path.read_text(encoding="utf-8")
    again = dp.load(path)
    assert again == odd()
    assert pickle.loads(pickle.dumps(again)) == again
    path.write_text(odd().to_toml().replace('"1/10"', '"a tenth"'), encoding="utf-8")
    with pytest.raises(dp.InputError, match=r"constraints\[0\]\.at_most: must be a number"):
        dp.load(path)
    path.write_text(odd().to_toml().replace("at_most", "at_least"), encoding="utf-8")
    with pytest.raises(dp.InputError, match=r"constraints\[0\]\.at_least: is not a key of constraint 'test-odd-noise'"):
        dp.load(path)


@pytest.mark.parametrize("backend", ["highs", "scipy", "pulp", "cvxpy"])
def test_every_backend(backend: str) -> None:
    """A custom constraint needs nothing from a backend: least E|Z| with no point heavier than 1/5."""
    problem = dp.Problem(support=dp.Integers(-4, 4), objective=ABSOLUTE, constraints=[LargestMass(Fraction(1, 5))])
    solution = dp.solve(problem, backend)
    assert solution.verified in (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE), solution.message
    assert abs(solution.value.upper - Fraction(6, 5)) <= Fraction(2, 10**6)  # 1/5 at each of -2..2
    assert solution.checks[0].margin >= 0
    assert max(solution.pmf.weights) <= solution.pmf.total / 5


def test_infeasible_with_its_name() -> None:
    """A custom constraint is named in a conflict like any other."""
    problem = dp.Problem(
        support=dp.Integers(-4, 4),
        objective=ABSOLUTE,
        constraints=[dp.Mean(0), OddNoise(0), dp.Probability(of=[1, -1], at_least="1/2")],
    )
    solution = dp.solve(problem)
    assert solution.verified is dp.Verified.INFEASIBLE
    assert solution.conflict == ("test-odd-noise", "probability")


def test_points_without_mass_beside_linear_rows() -> None:
    """The least E Z^2 with E|Z| >= 3/2 and nothing at 0 is half at distance 1, half at 2: proved, by its row."""
    problem = dp.Problem(
        support=dp.Integers(-4, 4), objective=dp.MinExpectedCost("square"), constraints=[QuietCentre(Fraction(3, 2))]
    )
    solution = dp.solve(problem)
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert abs(solution.value.upper - Fraction(5, 2)) <= Fraction(1, 10**6)
    assert [(w["of"], w["part"]) for w in solution.certificate.data["witnesses"]] == [("0", "1")]
    assert dp.verify(solution.certificate.data).holds


def test_field_with_its_own_key() -> None:
    """A field may have another key in TOML than in Python."""
    problem = dp.Problem(support=dp.Integers(-4, 4), objective=ABSOLUTE, constraints=[LargestMass(Fraction(1, 5))])
    assert problem.to_dict()["constraints"] == [{"type": "test-largest-mass", "limit": "1/5"}]
    again = dp.Problem.from_dict(problem.to_dict())
    assert Fraction(again.constraints[0].at_most) == Fraction(1, 5)


def test_certificate_says_what_is_taken_on_trust(tmp_path: Path) -> None:
    """The certificate verifies without the class, and marks the constraint's definition as taken on trust."""
    solution = dp.solve(odd())
    path = tmp_path / "odd.json"
    solution.certificate.save(path)
    verdict = dp.verify(path)
    assert verdict.holds
    assert "trust" in (path.read_text(encoding="utf-8") + str(verdict)).lower()
    assert "test-odd-noise" in path.read_text(encoding="utf-8")


PLUGIN = '''
"""A plugin file, as `--plugin FILE.py` takes it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import dpopt as dp


@dp.register_constraint
@dataclass(frozen=True)
class NoStay(dp.Constraint):
    """The cell never stays as it is."""

    type: ClassVar[str] = "test-no-stay"

    def terms(self, setting):
        return (dp.ZeroTerm((0,)),)


@dp.register_objective
@dataclass(frozen=True)
class Upward(dp.Objective):
    """Negative noise is ten times as bad."""

    factor: Fraction = Fraction(10)
    type: ClassVar[str] = "test-upward"

    def __post_init__(self):
        object.__setattr__(self, "factor", dp.exact(self.factor, "factor"))

    def term(self, setting):
        return dp.CostTerm(dp.LatticeFunction(0, (), (0, -self.factor), (0, Fraction(1))))
'''

PLUGIN_PROBLEM = """
[support]
type = "integers"
low = -3
high = 3
[objective]
type = "test-upward"
factor = 5
[[constraints]]
type = "test-no-stay"
[[constraints]]
type = "mean"
equals = 0
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The plugin file, loaded the way a command line loads it."""
    path = tmp_path_factory.mktemp("plugin") / "my_plugin.py"
    path.write_text(PLUGIN, encoding="utf-8")
    specification = importlib.util.spec_from_file_location("my_plugin", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["my_plugin"] = module
    specification.loader.exec_module(module)
    return module


def test_plugin_file(plugin: ModuleType, tmp_path: Path) -> None:
    """A constraint and an objective from a file of the user's: loaded, solved, proved. Optimum 1/2 (5 + 1) by hand."""
    assert constraint_types()["test-no-stay"] is plugin.NoStay
    assert objective_types()["test-upward"] is plugin.Upward
    path = tmp_path / "problem.toml"
    path.write_text(PLUGIN_PROBLEM, encoding="utf-8")
    problem = dp.load(path)
    assert dp.Problem.from_dict(problem.to_dict()) == problem
    solution = dp.solve(problem)
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert abs(solution.value.upper - 3) <= Fraction(1, 10**9)
    assert solution.pmf.probability(0) == 0


def test_without_the_plugin_the_type_is_unknown(tmp_path: Path) -> None:
    """The error names the location and the closest known types."""
    path = tmp_path / "problem.toml"
    path.write_text(PLUGIN_PROBLEM.replace("test-no-stay", "test-never-loaded").replace("test-upward", "max-entropy")
                    .replace("factor = 5\n", ""), encoding="utf-8")  # fmt: skip
    with pytest.raises(dp.InputError, match=r"constraints\[0\]\.type: 'test-never-loaded' is not a known constraint"):
        dp.load(path)


def test_registration_twice_is_the_same() -> None:
    """Registering the same class again is harmless (a module that is imported twice)."""
    assert dp.register_constraint(OddNoise) is OddNoise


@dataclass(frozen=True)
class _Impostor(dp.Constraint):
    type: ClassVar[str] = "mean"


@dataclass(frozen=True)
class _Nameless(dp.Constraint):
    pass


@dataclass(frozen=True)
class _Shouting(dp.Constraint):
    type: ClassVar[str] = "Not Kebab"


class _NoDataclass:
    type = "test-plain"


@pytest.mark.parametrize(("thing", "message"), [
    (_Impostor, "'mean' is already registered"), (_Nameless, "kebab case"), (_Shouting, "kebab case"),
    (_NoDataclass, "frozen dataclass that extends Constraint"), (3, "frozen dataclass"),
    (OddNoise(0), "frozen dataclass"),
    (dp.MaxEntropy, "frozen dataclass that extends Constraint"),
])  # fmt: skip
def test_registration_refuses(thing: Any, message: str) -> None:
    """What cannot be a constraint type is refused at registration, and the registry stays as it was."""
    before = dict(constraint_types())
    with pytest.raises(dp.InputError, match=message):
        dp.register_constraint(thing)
    assert dict(constraint_types()) == before


@dp.register_constraint
@dataclass(frozen=True)
class _Unfinished(dp.Constraint):
    """Forgets to say what its rows are."""

    type: ClassVar[str] = "test-unfinished"


def test_unfinished_constraint_says_what_is_missing() -> None:
    """A class without terms fails with the method that it must override."""
    with pytest.raises(TypeError, match=r"_Unfinished must override terms\(setting\)"):
        dp.Problem(support=dp.Integers(0, 1), objective=ABSOLUTE, constraints=[_Unfinished()])
