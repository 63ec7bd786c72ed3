"""The one way to solve: phases, growing cores, wrong arguments, and everything a solution can be asked."""

from __future__ import annotations

import copy
import json
import logging
import math
import pickle
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dpopt as dp
import dpopt.solving
from dpopt.backends.base import Availability, Option, Support
from dpopt.backends.registry import get_backend
from dpopt.program.core import Core
from dpopt.program.formulate import core_for
from dpopt.program.program import Program

ABSOLUTE = dp.MinExpectedCost("absolute")
PURE = dp.Problem(objective=ABSOLUTE, constraints=[dp.PureDP(1, 5)], name="min E|Z|")
ROW = dp.tablebuilder(D=3, V=1)
WINDOWED = dp.Problem(
    support=dp.Integers(-1, 1), objective=dp.MinExpectedCost("error"), constraints=[dp.PureDP(1, 1, boundary="window")]
)
IMPOSSIBLE = dp.Problem(support=dp.Integers(-1, 1), objective=dp.MaxEntropy(), constraints=[dp.Mean(2)])
PHASES = {"formulate", "reduce", "solve", "repair", "bound"}


class Recorder:
    """Asks highs and keeps what it was asked."""

    name: ClassVar[str] = "recorder"
    requires: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {"depth": Option(int, 3, "nothing")}

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.given: list[dict[str, Any]] = []

    def availability(self) -> Availability:
        """Here."""
        return Availability(True, "")

    def supports(self, program: Program) -> Support:
        """Linear ones."""
        return Support(not program.has_entropy, "it has an entropy")

    def solve(self, program: Program, options: Mapping[str, Any]) -> dp.Claim:
        """By highs."""
        self.programs.append(program)
        self.given.append(dict(options))
        return replace(get_backend("highs").solve(program, {}), backend=self.name)


# --- phases and cores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [PURE, ROW, IMPOSSIBLE], ids=["pure", "row", "impossible"])
def test_timings_by_phase(problem: dp.Problem) -> None:
    """Seconds of every phase, none negative, all together no more than the call took."""
    solution = dp.solve(problem)
    assert set(solution.timings) >= PHASES
    assert all(seconds >= 0 for seconds in solution.timings.values())
    assert solution.timings["formulate"] > 0 and solution.timings["solve"] > 0


def test_the_reduced_program_goes_to_the_backend() -> None:
    """Folded and scaled, once, when the first core is enough; options are passed through."""
    backend = Recorder()
    solution = dp.solve(PURE, backend, options={"depth": 7})
    assert solution.verified is dp.Verified.OPTIMAL and solution.backend == "recorder"
    assert solution.backend_reason == "asked for"
    assert len(backend.programs) == 1 and backend.given == [{"depth": 7}]
    program, core = backend.programs[0], core_for(PURE)
    assert program.cost.size == core.last + 1
    assert abs(program.rows).max() <= 1 + 1e-12


@pytest.mark.parametrize(("constraints", "value"), [
    ([dp.PureDP(1, 5), dp.Mean(10)], 10.647753), ([dp.PureDP(1, 5)], 4.7862842989968850205),
    ([dp.ApproxDP(1, "0.001")], 0.8429840433536),
])  # fmt: skip
def test_cores_grow_until_both_sides_close(constraints: Any, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a core that is too small (mean 10 is infeasible on it, or its value is no bound) to the optimum."""
    sizes: list[int] = []
    problem = dp.Problem(objective=ABSOLUTE, constraints=constraints)
    closure = core_for(problem).closure
    half = 5 if closure is not None else 3
    grow = dpopt.solving.grown

    def noted(core: Core) -> Core:
        sizes.append(core.size)
        return grow(core)

    monkeypatch.setattr(dpopt.solving, "core_for", lambda p: Core(-half, half, closure))
    monkeypatch.setattr(dpopt.solving, "grown", noted)
    solution = dp.solve(problem)
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert float(solution.value) == pytest.approx(value, abs=5e-7)
    assert sizes == sorted(set(sizes))
    if value != 4.7862842989968850205:
        assert sizes, "the case has lost its point: the first core was enough"


def test_a_finite_support_is_tried_once() -> None:
    """There is nothing to grow: one formulation, and the pmf stays inside."""
    backend = Recorder()
    problem = dp.Problem(
        support=dp.Integers(-2, 2), objective=ABSOLUTE, constraints=[dp.PureDP(1, 1, boundary="window")]
    )
    solution = dp.solve(problem, backend)
    assert solution.pmf.tails is None and (solution.pmf.start, solution.pmf.end) == (-2, 2)
    assert len(backend.programs) == 1


def test_value_bound_gap_repair() -> None:
    """The bound is on its side, the gap is their distance, the repair says what it took."""
    solution = dp.solve(PURE, "highs")
    low, high = solution.value
    assert solution.bound <= low <= high
    assert solution.gap == max(abs(low - solution.bound), abs(high - solution.bound)) <= high / 10**6
    assert solution.repair is not None and 0 <= solution.repair.mass_moved <= 1e-6
    assert abs(solution.repair.objective_paid) <= 1e-6 and solution.repair.mixed >= 0
    upward = dp.solve(ROW)
    assert upward.bound >= upward.value.upper >= upward.value.lower


@pytest.mark.parametrize(("problem", "backend", "paid"), [(ROW, "newton", 0.5), (WINDOWED, "highs", math.exp(-1))])
def test_a_solver_that_boasts_has_its_boast_paid_back(problem: dp.Problem, backend: str, paid: float) -> None:
    """What a repair costs counts against the claim, whichever way the objective goes: more entropy, or less cost."""
    solver = get_backend(backend)

    class Boaster:
        name, requires, options = "boaster", (), {}
        availability, supports = solver.availability, solver.supports

        def solve(self, program: Any, options: Any) -> dp.Claim:
            claim = solver.solve(program, options)
            return replace(claim, objective=claim.objective - 0.5)  # of a minimum; WINDOWED is scaled by 2/e

    repair = dp.solve(problem, Boaster()).repair
    assert repair is not None
    assert repair.objective_paid == pytest.approx(paid, abs=1e-6)


def test_nothing_is_logged_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A plain solve is quiet."""
    with caplog.at_level(logging.WARNING):
        dp.solve(PURE)
    assert not caplog.records


# --- wrong arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem", ["x", None, 3, {"objective": {"type": "max-entropy"}}, dp.Problem, Path("x.toml"), [ROW]]
)
def test_what_is_no_problem(problem: Any) -> None:
    """dp.solve('x') says what a problem is and how to read one from a file."""
    with pytest.raises(
        dp.InputError, match=r"^problem: must be a Problem or a Target \(dpopt\.load reads one from a file\), not "
    ):
        dp.solve(problem)


@pytest.mark.parametrize("backend", [3, None, Recorder, object(), ["highs"]])
def test_what_is_no_backend(backend: Any) -> None:
    """A class, a number, anything without the members of a backend."""
    with pytest.raises(dp.InputError, match=r"^backend: must be a registered name, 'auto' or a backend object, not "):
        dp.solve(PURE, backend)


def test_unknown_backends() -> None:
    """The close name is offered, for problems and targets."""
    for question in (PURE, dp.target(epsilon=1, delta="0.1", family="any", sensitivity=2)):
        with pytest.raises(dp.BackendError, match="hihgs"):
            dp.solve(question, "hihgs")


def test_unsupported_programs() -> None:
    """A linear solver cannot take an entropy, newton no linear program: said with the reason."""
    for name in ("highs", "scipy", "pulp"):
        with pytest.raises(dp.BackendError, match=f"backend '{name}' cannot take this program: "):
            dp.solve(ROW, name)
    with pytest.raises(dp.BackendError, match="backend 'newton' cannot take this program: "):
        dp.solve(PURE, "newton")
    with pytest.raises(dp.BackendError, match="cannot take this program: it has an entropy"):
        dp.solve(ROW, Recorder())


def test_unavailable_backends() -> None:
    """A backend whose solver is missing is refused with what is missing."""

    class Missing(Recorder):
        name: ClassVar[str] = "missing"

        def availability(self) -> Availability:
            return Availability(False, "gurobipy cannot be imported")

    with pytest.raises(dp.BackendError, match="backend 'missing' cannot run here: gurobipy cannot be imported"):
        dp.solve(PURE, Missing())


@pytest.mark.parametrize(("options", "message"), [
    ({"depth": 3}, r"^options\.depth: is not an option of backend 'highs'"), ({"": 1}, r"^options\.: is not an option"),
])  # fmt: skip
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    """Unknown ones are errors that list the known ones."""
    with pytest.raises(dp.InputError, match=message):
        dp.solve(PURE, "highs", options=options)


@pytest.mark.parametrize("options", [3, "depth", [1]])
def test_options_have_to_be_a_table(options: Any) -> None:
    """Anything but a mapping is bad input, not a TypeError from inside."""
    with pytest.raises(dp.InputError, match=r"^options: "):
        dp.solve(PURE, "highs", options=options)


def test_options_are_not_changed() -> None:
    """What the caller passes is left as it was."""
    given = {"depth": 4}
    dp.solve(PURE, Recorder(), options=given)
    assert given == {"depth": 4}


# --- solutions -------------------------------------------------------------------------------------------------------


def test_require_verified() -> None:
    """A proved solution is passed on; an infeasible one raises with the summary."""
    solution = dp.solve(PURE)
    assert solution.require_verified() is solution
    refuted = dp.solve(IMPOSSIBLE)
    with pytest.raises(dp.NotVerifiedError, match="infeasible") as caught:
        refuted.require_verified()
    assert str(refuted) in str(caught.value)
    for attribute in ("pmf", "value"):
        with pytest.raises(dp.NotVerifiedError, match="there is no proved pmf"):
            getattr(refuted, attribute)
    assert refuted.bound is None and refuted.gap is None and refuted.conflict == ("mean",)


@pytest.mark.parametrize("problem", [PURE, ROW, IMPOSSIBLE], ids=["pure", "row", "impossible"])
def test_printing(problem: dp.Problem) -> None:
    """Claimed and verified are both named; the notebook form is the same text, escaped; the short form is one line."""
    solution = dp.solve(problem)
    text = str(solution)
    assert solution.claimed.value in text and solution.verified.value in text
    assert solution.backend in text
    html = solution._repr_html_()
    assert html.startswith("<pre>") and html.endswith("</pre>")
    assert "<" not in html[5:-6] and ("E|Z|" in html or problem is not PURE)
    assert repr(solution).startswith("Solution(claimed=") and "\n" not in repr(solution)
    if problem.name:
        assert problem.name in text


def test_html_is_escaped() -> None:
    """A name with markup in it stays text."""
    solution = dp.solve(dp.tablebuilder(D=1, V=1, name="<script>alert(1)</script>"))
    assert "<script>" not in solution._repr_html_() and "&lt;script&gt;" in solution._repr_html_()


@pytest.mark.parametrize("problem", [PURE, ROW, IMPOSSIBLE], ids=["pure", "row", "impossible"])
def test_pickle_and_copy(problem: dp.Problem) -> None:
    """Everything comes back, exact numbers and all."""
    solution = dp.solve(problem)
    for other in (pickle.loads(pickle.dumps(solution)), copy.deepcopy(solution)):
        assert (other.problem, other.verified, other.claimed) == (solution.problem, solution.verified, solution.claimed)
        assert other.certificate == solution.certificate and str(other) == str(solution)
        assert (other.bound, other.checks, dict(other.timings)) == (
            solution.bound,
            solution.checks,
            dict(solution.timings),
        )
        if solution.proved_pmf is not None:
            assert other.pmf == solution.pmf and other.value == solution.value
        assert dp.verify(other.certificate.data).holds


@pytest.mark.parametrize("problem", [PURE, ROW, IMPOSSIBLE], ids=["pure", "row", "impossible"])
def test_certificates_are_saved_and_verified(problem: dp.Problem, tmp_path: Path) -> None:
    """JSON that says only what is proved; written in one step; a directory or a missing folder is bad input."""
    solution = dp.solve(problem)
    path = tmp_path / "noise.json"
    path.write_text("old", encoding="utf-8")
    solution.certificate.save(path)
    solution.certificate.save(str(path))
    assert [p.name for p in tmp_path.iterdir()] == ["noise.json"]
    verdict = dp.verify(path)
    assert verdict.holds and bool(verdict) and verdict.verified == solution.verified.value
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data == json.loads(json.dumps(solution.certificate.data))
    assert not {"timings", "backend", "version", "claimed"} & set(data)
    assert bool(solution.certificate)
    for wrong in (tmp_path, tmp_path / "no" / "folder.json"):
        with pytest.raises(dp.InputError, match="cannot be written"):
            solution.certificate.save(wrong)
    assert [p.name for p in tmp_path.iterdir()] == ["noise.json"]


def test_a_certificate_belongs_to_its_problem() -> None:
    """Read from the certificate, problem and pmf are those of the solution."""
    solution = dp.solve(PURE)
    data = solution.certificate.data
    assert dp.Pmf.from_dict(data["laws"][0]) == solution.pmf
    stated = {**data["problem"]}
    assert dp.Problem.from_dict(stated) == PURE


def test_a_solver_that_fails_is_failed_with_its_words() -> None:
    """No point, no proof of infeasibility: the solver's own message is the reason."""

    class Broken(Recorder):
        def solve(self, program: Program, options: Mapping[str, Any]) -> dp.Claim:
            return dp.Claim(dp.Claimed.ERROR, self.name, "1", "out of memory")

    solution = dp.solve(PURE, Broken())
    assert solution.verified is dp.Verified.FAILED and solution.claimed is dp.Claimed.ERROR
    assert "out of memory" in solution.message and "recorder" in solution.message
    assert not solution.certificate
    with pytest.raises(dp.NotVerifiedError, match="out of memory"):
        solution.require_verified()


def test_multipliers_are_optional() -> None:
    """A backend without multipliers still has its pmf proved; zero multipliers bound E|Z| by 0."""

    class Silent(Recorder):
        def solve(self, program: Program, options: Mapping[str, Any]) -> dp.Claim:
            return replace(super().solve(program, options), y=np.zeros(0))

    solution = dp.solve(PURE, Silent())
    assert solution.verified is dp.Verified.FEASIBLE, solution.message
    assert float(solution.value) == pytest.approx(4.7862842989968850205, rel=1e-9)
    assert solution.bound is None or solution.bound <= solution.value.lower
    assert all(check.holds for check in solution.checks)
    assert solution.checks[0].constraint == "pure-dp" and solution.checks[0].margin >= Fraction(0)
