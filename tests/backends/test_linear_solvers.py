"""What is special to HiGHS, SciPy, PuLP and cvxpy: options, refusals, small numbers, silence."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dpopt.backends import Claimed, get_backend
from dpopt.backends._scaling import tame
from dpopt.errors import InputError
from dpopt.program.program import Program

from .programs import INF, linear, max_entropy

EASY = linear([1, 2], [[1, 1]], [(1, 1)])
TINY = linear([0, -1], [[-1e-13, 1], [1, 0]], [(-INF, 0), (-INF, 1e9)])
INTEGER = linear([-5, -4], [[6, 4], [1, 2]], [(-INF, 24), (-INF, 6)], integer=np.array([True, True]))


@pytest.mark.parametrize(
    ("backend", "options", "message"),
    [
        ("highs", {"nope": 1}, r"options.nope: is not an option of backend 'highs' \(known: dual_"),
        ("highs", {"primal_feasibility_tolerance": 1e-12}, "HiGHS refuses 1e-12; in force would stay 1e-07"),
        ("highs", {"solver": "magic"}, "options.solver: HiGHS refuses 'magic'; in force would stay 'choose'"),
        ("highs", {"time_limit": -1}, "options.time_limit: HiGHS refuses -1.0"),
        ("highs", {"time_limit": "soon"}, "must be of type float, not 'soon'"),
        ("highs", {"threads": 2}, "is not an option"),
        ("scipy", {"primal_feasibility_tolerance": 1e-12}, "SciPy refuses one of"),
        ("scipy", {"method": "simplex"}, "options.method: must be highs, highs-ds or highs-ipm, not 'simplex'"),
        ("scipy", {"presolve": 1}, "must be of type bool"),
        ("pulp", {"solver": "NOBODY"}, "options.solver: PuLP does not find 'NOBODY'"),
        ("pulp", {"solver": "HiGHS"}, "prints a banner"),
        ("cvxpy", {"solver": "NOBODY"}, "options.solver: cvxpy does not find 'NOBODY'"),
        ("cvxpy", {"solver": "HIGHS"}, "prints a banner"),
        ("cvxpy", {"solver": "OSQP"}, "use 'CLARABEL' or 'SCS'"),
        ("cvxpy", {"tolerance": -1e-3}, "at least 0"),
        ("cvxpy", {"solver": "SCIPY", "tolerance": 1e-3}, "cannot be set for solver 'SCIPY'"),
    ],
)
def test_bad_options_are_refused(
    backend: str, options: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=message):
        get_backend(backend).solve(EASY, options)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("highs", {"solver": "simplex"}),
        ("highs", {"solver": "ipm", "presolve": "off"}),
        ("highs", {"primal_feasibility_tolerance": 1e-8, "time_limit": 60}),
        ("scipy", {"method": "highs-ds"}),
        ("scipy", {"method": "highs-ipm", "presolve": False}),
        ("pulp", {"time_limit": 60.0}),
        ("cvxpy", {"solver": "SCS"}),
        ("cvxpy", {"solver": "SCIPY"}),
        ("cvxpy", {"tolerance": 1e-8, "iterations": 90, "time_limit": 60}),
    ],
)
def test_options_do_not_change_the_answer(
    backend: str, options: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    claim = get_backend(backend).solve(EASY, options)
    assert claim.status is Claimed.OPTIMAL
    assert claim.x == pytest.approx([1, 0], abs=1e-6)
    assert claim.y == pytest.approx([1], abs=1e-6)
    assert claim.seconds >= 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("backend", "name", "value"),
    [
        ("highs", "primal_feasibility_tolerance", 1e-10),
        ("highs", "small_matrix_value", 1e-12),
        ("scipy", "dual_feasibility_tolerance", 1e-10),
        ("pulp", "printed_relative_precision", 1e-8),
        ("cvxpy", "tol_gap_rel", 1e-10),
    ],
)
def test_tolerances_are_in_the_claim(backend: str, name: str, value: float) -> None:
    claim = get_backend(backend).solve(EASY, {})
    assert claim.tolerances[name] == value
    assert claim.version.startswith({"highs": "highspy 1", "cvxpy": "cvxpy 1"}.get(backend, backend))


def test_two_solves_with_different_options_do_not_disturb_each_other() -> None:
    highs = get_backend("highs")
    assert highs.solve(EASY, {"primal_feasibility_tolerance": 1e-6}).tolerances["primal_feasibility_tolerance"] == 1e-6
    assert highs.solve(EASY, {}).tolerances["primal_feasibility_tolerance"] == 1e-10


@pytest.mark.parametrize("backend", ["highs", "scipy", "pulp"])
def test_coefficients_too_small_for_the_solver_are_scaled(backend: str) -> None:
    claim = get_backend(backend).solve(TINY, {})
    assert claim.objective == pytest.approx(-1e-4, rel=1e-6)
    assert claim.y == pytest.approx([-1, -1e-13], rel=1e-6)
    assert "scaled by powers of two" in claim.message


def test_what_scaling_cannot_help_is_said() -> None:
    # Integer columns keep their unit, and a row can only be moved as a whole.
    program = linear([0, -1], [[-1e-30, 1]], [(-INF, 0)], upper=np.array([9.0, 9.0]), integer=np.ones(2, dtype=bool))
    _, scaling = tame(program, threshold=1e-12)
    assert scaling.dropped == 1
    claim = get_backend("highs").solve(program, {})
    assert claim.status is not Claimed.OPTIMAL
    assert "1 coefficients of at most 1e-12 were dropped" in claim.message


def test_scaling_is_exact_and_goes_back() -> None:
    random = np.random.default_rng(5)
    matrix = random.normal(size=(6, 4)) * 10.0 ** random.integers(-14, 9, size=(6, 4))
    program = linear(random.normal(size=4).tolist(), matrix.tolist(), [(-1.0, 2.0)] * 6)
    scaled, scaling = tame(program, threshold=1e-12)
    assert scaling.rows is not None
    assert scaling.columns is not None
    back = scaled.rows.toarray() / scaling.rows[:, None] / scaling.columns
    assert np.array_equal(back, matrix)
    assert tame(EASY, threshold=1e-12)[0] is EASY


@pytest.mark.parametrize("backend", ["highs", "scipy", "pulp", "cvxpy"])
def test_nan_is_an_error_claim(backend: str) -> None:
    program = linear([np.nan], [[1]], [(1, 2)], upper=np.ones(1))
    claim = get_backend(backend).solve(program, {})
    assert claim.status is Claimed.ERROR
    assert not claim.has_point
    assert claim.message


@pytest.mark.parametrize("backend", ["highs", "pulp"])
def test_a_time_limit_is_a_limit(backend: str) -> None:
    random = np.random.default_rng(1)
    size = 120
    rows = random.integers(1, 999, size=(40, size))
    sides = [(-INF, row.sum() / 3) for row in rows]
    program = linear(
        (-random.integers(1, 60, size=size)).tolist(),
        rows.tolist(),
        sides,
        upper=np.ones(size),
        integer=np.ones(size, dtype=bool),
    )
    claim = get_backend(backend).solve(program, {"time_limit": 0.01 if backend == "highs" else 0.1})
    assert claim.status is Claimed.LIMIT


def test_integer_programs_in_cvxpy_need_a_solver_for_them() -> None:
    support = get_backend("cvxpy").supports(INTEGER)
    assert not support.supported
    assert "solver='SCIPY'" in support.reason
    claim = get_backend("cvxpy").solve(INTEGER, {"solver": "SCIPY"})
    assert claim.status is Claimed.OPTIMAL
    assert claim.x == pytest.approx([4, 0], abs=1e-6)


def test_milp_in_scipy_takes_no_tolerances() -> None:
    with pytest.raises(InputError, match="cannot be set for integer programs in SciPy"):
        get_backend("scipy").solve(INTEGER, {"primal_feasibility_tolerance": 1e-9})
    assert get_backend("scipy").solve(INTEGER, {}).tolerances["mip_feasibility_tolerance"] == 1e-6


def test_pulp_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    get_backend("pulp").solve(EASY, {})
    assert list(tmp_path.iterdir()) == []


def test_scs_says_when_it_is_inaccurate_and_how_negative_it_is() -> None:
    claim = get_backend("cvxpy").solve(max_entropy(11, -INF, 4.0), {"solver": "SCS", "iterations": 200})
    assert claim.status in (Claimed.INACCURATE, Claimed.LIMIT, Claimed.OPTIMAL)
    assert np.isfinite(claim.objective)
    if np.any(claim.x < 0):
        assert "below their bound 0" in claim.message


def test_highs_takes_many_rows_as_arrays() -> None:
    size = 20_000
    rows = sp.csr_array(sp.diags_array([np.ones(size), np.full(size - 1, -0.5)], offsets=[0, -1]))
    side = np.zeros(size)
    side[0] = 1.0
    program = Program(np.ones(size), rows, side, np.full(size, INF), np.zeros(size), np.full(size, INF))
    claim = get_backend("highs").solve(program, {})
    assert claim.status is Claimed.OPTIMAL
    assert claim.x[:4] == pytest.approx([1, 0.5, 0.25, 0.125], abs=1e-9)
    assert claim.objective == pytest.approx(2.0, abs=1e-6)
