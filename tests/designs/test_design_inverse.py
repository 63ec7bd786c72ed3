"""Best epsilon and least variance, proved again by other means."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt as dp
from dpopt.designing.inverse import best_epsilon, least_variance
from dpopt.errors import InputError
from dpopt.family.members import delta_exceeds, family_pmf, reaching_rate

CURVES: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parent.parent / "core" / "delta_curves.json").read_text(encoding="utf-8")
)
ON_THE_SLOPE = [row for row in CURVES["curve"] if "V" in row and float(row["epsilon"]) > 0]


@pytest.mark.parametrize("row", ON_THE_SLOPE, ids=lambda r: f"D{r['D']}-V{r['V']}-m{r['sensitivity']}-{r['epsilon']}")
def test_the_curves_inverted(row: dict[str, Any]) -> None:
    """delta(epsilon) of the reference gives epsilon back, or less on the plateau; a floor below it is refused."""
    question = {"D": row["D"], "V": row["V"], "sensitivity": row["sensitivity"]}
    found = best_epsilon(**question, delta=Fraction(row["delta"]) * (1 + Fraction(1, 10**9)))
    assert found.width < Fraction(1, 10**30)
    assert float(found) <= float(row["epsilon"]) + 1e-12
    starts = {(p["D"], p["V"]): float(p["epsilon"]) for p in CURVES["plateau_start"]}
    if row["sensitivity"] == 1 and float(row["epsilon"]) < starts.get((row["D"], row["V"]), 0):
        assert float(found) == pytest.approx(float(row["epsilon"]), abs=2e-7)


@given(
    st.integers(1, 10), st.fractions(Fraction(1, 50), 1, max_denominator=50), st.fractions("0.0001", "0.9999"),
    st.integers(1, 4),
)  # fmt: skip
@settings(derandomize=True, max_examples=60, deadline=None)
def test_best_epsilon_by_the_pmf(half: int, gamma: Fraction, delta: Fraction, m: int) -> None:
    """`dpopt.epsilon` searches the exact pmf; the closed form agrees, and refuses where there is none."""
    pmf = family_pmf(half, gamma)
    try:
        expected = dp.epsilon(pmf, delta, m)
    except InputError:
        with pytest.raises(InputError, match=r"^delta: must be at least"):
            best_epsilon(D=half, V=pmf.variance, delta=delta, sensitivity=m)
        return
    found = best_epsilon(D=half, V=pmf.variance, delta=delta, sensitivity=m)
    assert expected.lower - Fraction(1, 10**15) <= found.lower <= found.upper <= expected.upper + Fraction(1, 10**15)


def test_uniform_noise() -> None:
    """From V = D (D + 1) / 3 on: one delta, m / (2D + 1), at every epsilon; exactly on the edge as well."""
    assert best_epsilon(D=5, V=10, delta="1/11") == (0, 0)
    assert best_epsilon(D=5, V=99, delta="2/11", sensitivity=2) == (0, 0)
    with pytest.raises(InputError, match=r"^delta: must be at least 0.090909"):
        best_epsilon(D=5, V=10, delta=Fraction(1, 11) - Fraction(1, 10**40))


@given(
    st.integers(1, 14), st.fractions("0.2", 4, max_denominator=10), st.fractions("0.0001", "0.9"), st.integers(1, 3)
)  # fmt: skip
@settings(derandomize=True, max_examples=60, deadline=None)
def test_least_variance_of_the_family(half: int, epsilon: Fraction, delta: Fraction, m: int) -> None:
    """gamma works; nothing with a gamma a millionth larger does; where no gamma works, it is refused."""
    if reaching_rate(half, epsilon, m, delta) is None:
        with pytest.raises(InputError, match=r"^D: = \d+ is too small"):
            least_variance(D=half, epsilon=epsilon, delta=delta, sensitivity=m)
        return
    found = least_variance(D=half, epsilon=epsilon, delta=delta, sensitivity=m)
    assert found.gamma is not None and not delta_exceeds(half, found.gamma, epsilon, m, delta)
    beyond = found.gamma * (1 + Fraction(1, 10**6)) + Fraction(1, 10**9)
    assert all(delta_exceeds(half, beyond + Fraction(i, 20), epsilon, m, delta) for i in range(20))
    assert found.V.lower <= family_pmf(half, found.gamma).variance + Fraction(1, 10**30)
    assert found.V.width <= found.V.upper / 10**6


def test_least_variance_of_all() -> None:
    """No family: the linear program's proved answer, at most the family's, and the library's value."""
    anyone = least_variance(D=11, epsilon=1, delta="1e-5", family="any")
    assert float(anyone.V) == pytest.approx(1.839616820422, rel=1e-9)
    assert dp.delta(anyone.solution.pmf, 1).upper <= Fraction(1, 10**5)
    analytic = least_variance(D=18, epsilon=1, delta="1e-5", family="analytic")
    assert analytic.gamma == Fraction(1, 35) and float(analytic.V) == pytest.approx(17.496636849498314, rel=1e-12)
    member = least_variance(D=18, epsilon=1, delta="1e-5")
    assert anyone.V.upper < member.V.lower < analytic.V.lower
    with pytest.raises(InputError, match=r"^D: = 9 has no proved answer \(infeasible\)"):
        least_variance(D=9, epsilon=1, delta="1e-5", family="any")
    with pytest.raises(InputError, match=r"^D: = 17 is too small: no member of 'analytic'"):
        least_variance(D=17, epsilon=1, delta="1e-5", family="analytic")


@pytest.mark.parametrize(("call", "message"), [
    (lambda: best_epsilon(D=3, V=0, delta="0.1"), "V: must be above 0, not 0"),
    (lambda: best_epsilon(D=3, V=1, delta=0), "delta: must lie strictly between 0 and 1"),
    (lambda: least_variance(D=3, epsilon=1, delta="0.1", family="gauss"), "family: must be one of"),
])  # fmt: skip
def test_bad_input(call: Any, message: str) -> None:
    """One line that names the argument."""
    with pytest.raises(InputError, match=f"^{message}"):
        call()
