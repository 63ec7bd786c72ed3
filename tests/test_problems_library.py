"""Every file of the problem library: it loads, survives the round trip, and reaches its best proven value."""

from __future__ import annotations

import csv
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

import dpopt as dp

LIBRARY = Path(__file__).parent.parent / "problems"
FILES = sorted(LIBRARY.glob("*.toml"))
STEMS = [file.stem for file in FILES]
TARGETS = [s for s in STEMS if s.startswith("target-")]
INFEASIBLE = [s for s in STEMS if s.startswith("infeasible-")]
SOLVABLE = [s for s in STEMS if s not in TARGETS and s not in INFEASIBLE]


def best(stem: str) -> str:
    """What the machine-readable line of a file says."""
    lines = re.findall(r"^# best: (.+)$", (LIBRARY / f"{stem}.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 1, f"{stem} needs exactly one '# best:' line"
    return lines[0]


def last_digit(text: str) -> Fraction:
    """One unit of the last digit that is printed."""
    mantissa, _, exponent = text.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(exponent or 0) - places)


@cache
def solved(stem: str) -> dp.Solution:
    """The file's solution by `auto`, computed once."""
    return dp.solve(dp.load(LIBRARY / f"{stem}.toml"))


def test_the_library_is_there() -> None:
    """Guards against an empty parametrisation: the counts that the library promises."""
    assert len(FILES) >= 18
    assert len(INFEASIBLE) >= 3
    assert len(TARGETS) >= 2
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", stem) for stem in STEMS)


@pytest.mark.parametrize("stem", STEMS)
def test_file_begins_with_a_comment(stem: str) -> None:
    """Each file says what it is and where its value is from before it says anything else."""
    lines = (LIBRARY / f"{stem}.toml").read_text(encoding="utf-8").splitlines()
    comments = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    assert len(comments) >= 2
    assert comments[-1].startswith("# best: ")
    if stem not in INFEASIBLE:
        assert any(line.startswith("# Best value") for line in comments)


def test_readme_lists_every_file() -> None:
    """The table of the README has a row with the value of every file, and no row without a file."""
    text = (LIBRARY / "README.md").read_text(encoding="utf-8")
    rows = {line.split("](")[1].split(")")[0]: line for line in text.splitlines() if line.startswith("| [")}
    assert set(rows) == {file.name for file in FILES}
    for stem in STEMS:
        assert rows[f"{stem}.toml"].endswith(f"| {best(stem)} |")


@pytest.mark.parametrize("stem", STEMS)
def test_round_trip(stem: str, tmp_path: Path) -> None:
    """to_toml writes everything that load reads: the reloaded problem is equal and writes the same text."""
    question = dp.load(LIBRARY / f"{stem}.toml")
    copy = tmp_path / "copy.toml"
    copy.write_text(question.to_toml(), encoding="utf-8")
    again = dp.load(copy)
    assert again == question
    assert again.to_toml() == question.to_toml()
    assert question.name


@pytest.mark.parametrize("stem", SOLVABLE)
def test_best_value(stem: str) -> None:
    """Verified optimal at the best proven value (1e-9 relative, or one unit of the last printed digit if coarser)."""
    solution, text = solved(stem), best(stem)
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert all(check.holds for check in solution.checks)
    assert len(solution.checks) == len(solution.problem.constraints)
    wanted = Fraction(text)
    allowed = max(wanted / 10**9, last_digit(text))
    assert abs(solution.value.lower - wanted) <= allowed
    assert abs(solution.value.upper - wanted) <= allowed
    # the bound is on its own side of the truth, up to the digits that the file prints
    assert solution.bound is not None
    if solution.problem.objective.type == "max-entropy":
        assert solution.bound >= wanted - last_digit(text)
    else:
        assert solution.bound <= wanted + last_digit(text)


@pytest.mark.parametrize("stem", INFEASIBLE)
def test_infeasible(stem: str) -> None:
    """Proved infeasible, with exactly the conflict that the file names, and without a pmf or value."""
    solution = solved(stem)
    names = best(stem).removeprefix("infeasible: ").split(", ")
    assert solution.verified is dp.Verified.INFEASIBLE, solution.message
    assert sorted(solution.conflict) == sorted(names)
    assert all(f"'{name}'" in solution.message for name in names)
    with pytest.raises(dp.NotVerifiedError, match="infeasible"):
        _ = solution.pmf
    with pytest.raises(dp.NotVerifiedError, match="infeasible"):
        _ = solution.value


@pytest.mark.parametrize("stem", INFEASIBLE)
def test_conflict_is_irreducible(stem: str) -> None:
    """Without any one of the named constraints the rest of the problem has a proved answer."""
    solution = solved(stem)
    question = solution.problem
    assert solution.conflict
    for dropped in solution.conflict:
        rest = [c for c, n in zip(question.constraints, question.constraint_names, strict=True) if n != dropped]
        if dropped == "mean":  # the row that a variance means in these files, now without a mean to refer to
            rest = [dp.SecondMoment(c.equals) if isinstance(c, dp.Variance) else c for c in rest]
        relaxed = dp.Problem(objective=dp.MinExpectedCost("absolute"), constraints=rest, support=question.support)
        assert dp.solve(relaxed).verified in (dp.Verified.OPTIMAL, dp.Verified.FEASIBLE)


@pytest.mark.parametrize("stem", STEMS)
def test_certificate(stem: str, tmp_path: Path) -> None:
    """The certificate, written and read back, verifies on its own and states what the solution states."""
    solution = solved(stem)
    path = tmp_path / "certificate.json"
    solution.certificate.save(path)
    verdict = dp.verify(path)
    assert verdict.holds, verdict


@pytest.mark.parametrize("stem", TARGETS)
def test_target(stem: str) -> None:
    """The design has the D and V of the file and really is (epsilon, delta)-DP at the target's values."""
    solution = solved(stem)
    wanted = re.fullmatch(r"D = (\d+), V = (\S+)", best(stem))
    assert wanted is not None
    target = solution.problem
    assert solution.verified is dp.Verified.OPTIMAL, solution.message
    assert solution.design is not None
    assert int(wanted[1]) == solution.design.D
    assert abs(solution.design.V - Fraction(wanted[2])) <= Fraction(wanted[2]) / 10**9
    assert solution.design.delta.upper <= target.delta
    assert dp.delta(solution.pmf, target.epsilon, target.sensitivity).upper <= target.delta
    half = solution.design.D
    assert solution.pmf.low == -half
    assert solution.pmf.high == half


def test_targets_of_wider_families_need_no_more() -> None:
    """`tablebuilder` and `any` never need a larger D than `analytic`, checked on the library's own targets."""
    for stem in TARGETS:
        target = dp.load(LIBRARY / f"{stem}.toml")
        widths = {
            family: dp.solve(dp.target(epsilon=target.epsilon, delta=target.delta, family=family)).design.D
            for family in ("analytic", "tablebuilder", "any")
        }
        assert widths["any"] <= widths["tablebuilder"] <= widths["analytic"], (stem, widths)


def test_doctor_visits_data() -> None:
    """The embedded input is the CSV: 20,190 person-years, 6,308 of them without a visit, at most 77 visits."""
    with (LIBRARY / "data" / "rand-hie-doctor-visits.csv").open(encoding="utf-8") as stream:
        rows = [(int(row["value"]), int(row["count"])) for row in csv.DictReader(stream)]
    assert sum(count for _, count in rows) == 20190
    assert dict(rows)[0] == 6308
    assert max(value for value, _ in rows) == 77
    question = dp.load(LIBRARY / "wasserstein-doctor-visits.toml")
    pmf = question.objective.input.pmf
    for value, count in rows:
        assert pmf.probability(value) == Fraction(count, 20190)


@pytest.mark.parametrize("stem", ["wasserstein-doctor-visits", "wasserstein-poisson-10"])
def test_wasserstein_value_by_convolution(stem: str) -> None:
    """A second method for W1: the input convolved with the noise point by point, distribution functions compared.

    The tails beyond 400 points are summed out of reach and bounded by what is left of the mass.
    """
    solution = solved(stem)
    law = solution.problem.objective.input.pmf
    reach = 400
    noise = {k: float(solution.pmf.probability(k)) for k in range(-reach, reach + 1)}
    low, high = law.start - reach, law.end + reach
    output = dict.fromkeys(range(low, high + 1), 0.0)
    for x in range(law.start, law.end + 1):
        weight = float(law.probability(x))
        for k, mass in noise.items():
            output[x + k] += weight * mass
    distance = before = after = 0.0
    for k in range(low, high + 1):
        before += float(law.probability(k))
        after += output[k]
        distance += abs(before - after)
    assert distance == pytest.approx(float(solution.value), rel=1e-9)


def test_mean_constraint_binds() -> None:
    """Without its mean constraint the skewed input gets cheaper, biased noise: the constraint is not decoration."""
    fair = solved("wasserstein-mean-zero")
    free = dp.solve(dp.Problem(objective=fair.problem.objective, constraints=fair.problem.constraints[:1]))
    assert free.verified is dp.Verified.OPTIMAL
    assert free.value.upper < fair.bound
    assert free.pmf.mean != 0
    assert fair.pmf.mean == 0


def test_relaxation_is_dearer_at_epsilon_4() -> None:
    """The noise that minimises E|Z| has W1 = 0.9546931540 for the normal input at epsilon 4 (reference value)."""
    best_w1 = solved("wasserstein-gaussian-eps4")
    relaxed = dp.solve(dp.Problem(objective=dp.MinExpectedCost("absolute"), constraints=best_w1.problem.constraints))
    value = best_w1.problem.objective_term.value(relaxed.pmf)
    assert float(value) == pytest.approx(0.9546931540, abs=2e-10)


def test_non_monotone_optimum() -> None:
    """The (1, 0.2) optimum at sensitivity 2 has p(2) > p(1), to the four published digits."""
    pmf = solved("approx-dp-m2-non-monotone").pmf
    for k, digits in enumerate((0.4089, 0.1100, 0.1504, 0.0352)):
        for sign in (1, -1):
            assert float(pmf.probability(sign * k)) == pytest.approx(digits, abs=6e-5)


@pytest.mark.parametrize(("stem", "probability"), [
    ("tablebuilder-d11-v4", "5.384897705894860349344e-8"),
    ("tablebuilder-d15-v4", "1.217160266525411901462e-13"),
    ("tablebuilder-d2-v1", "0.06382713670644716596975"),
])  # fmt: skip
def test_tablebuilder_tail(stem: str, probability: str) -> None:
    """The end masses, which decide delta, to 1e-9 relative on both sides."""
    pmf = solved(stem).pmf
    for k in (pmf.start, pmf.end):
        assert abs(pmf.probability(k) / Fraction(probability) - 1) <= Fraction(1, 10**9)
