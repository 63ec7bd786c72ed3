"""What noise does to an input, and what the noise paper's programs yield: P1, its relaxation P2, and their windows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpopt.arithmetic import Enclosure, Number, exact, exact_integer
from dpopt.distributions import Distribution, gaussian
from dpopt.pmf import Pmf, read_pmf
from dpopt.privacy.profile import privacy_profile
from dpopt.problem.constraints import PureDP
from dpopt.problem.objectives import MinWasserstein, MinWassersteinRelaxation
from dpopt.problem.parts import Objective, Setting
from dpopt.problem.problem import Problem
from dpopt.problem.support import Integers, Lattice, Support
from dpopt.record import Record
from dpopt.solution import Solution
from dpopt.solving import solve
from dpopt.study.figure_table import Cell, Figure, Panel, input_text, number_text

__all__ = ["Utility", "optimum_beside_relaxation", "relaxation_problems", "utility"]


@dataclass(frozen=True, repr=False)
class Utility(Record):
    """What noise does to an input, in data units; all but W1 is about the noise alone.

    Parameters
    ----------
    wasserstein : Enclosure
        W1 between the input and input plus noise, enclosed.
    mean_absolute : Fraction
        E|Z|, which no W1 exceeds.
    mean : Fraction
        E Z, whose size no W1 falls below.
    variance : Fraction
        In squared data units.
    """

    wasserstein: Enclosure
    mean_absolute: Fraction
    mean: Fraction
    variance: Fraction

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        return (
            f"W1 {self.wasserstein}, E|Z| {float(self.mean_absolute):.12g}, "
            f"mean {float(self.mean):.6g}, variance {float(self.variance):.12g}"
        )


def utility(noise: Pmf | Distribution | Solution, input: Distribution | Pmf) -> Utility:  # noqa: A002  # the paper's word
    """W1 between an input and input plus noise, beside E|Z|, the mean and the variance of the noise.

    Parameters
    ----------
    noise : Pmf
        Or anything with a `pmf` attribute, such as a solution. Its step must be 1 or 1/n.
    input : Distribution or Pmf
        The input's law: finite, on the integers.

    Raises
    ------
    InputError
        The input is not finite or not on the integers, or the noise's lattice does not hold the integers.

    Examples
    --------
    >>> from dpopt.distributions import point
    >>> print(utility(Pmf(-1, (1, 2, 1)), point(3)))
    W1 0.5, E|Z| 0.5, mean 0, variance 0.5
    """
    pmf = read_pmf(noise, "noise")
    support: Support = Integers() if pmf.step == 1 else Lattice(pmf.step)
    term = MinWasserstein(input).term(Setting(support, None))  # type: ignore[arg-type]  # reads a Pmf as well
    return Utility(term.value(pmf), pmf.absolute_moment(1), pmf.mean, pmf.variance)


# --- the programs ----------------------------------------------------------------------------------------------------

_COLUMNS = ("program", "objective", "W1", "E|Z|", "mean", "variance", "epsilon", "delta at epsilon")


def relaxation_problems(
    input: Distribution | Pmf,  # noqa: A002  # the paper's word
    *,
    epsilon: Number,
    sensitivity: Number,
    half_width: int,
) -> tuple[Problem, ...]:
    """The noise paper's programs for one input: P1 and P2 on all integers, and on the window [-D, D].

    On a window the privacy rows compare points inside it only, as the paper's finite programs do. P2 has its sum over
    the cuts k either whole or cut to [-D, D] as well.

    Examples
    --------
    >>> problems = relaxation_problems(gaussian(0, 5), epsilon=2, sensitivity=15, half_width=30)
    >>> [problem.name for problem in problems]
    ['P1', 'P2', 'P1, window', 'P2, window', 'P2, window, cuts in it']
    """
    half = exact_integer(half_width, "half_width", at_least=0)
    optimum = MinWasserstein(input)  # type: ignore[arg-type]  # reads a Pmf as well
    relaxed = MinWassersteinRelaxation(optimum.input)
    cut_off = MinWassersteinRelaxation(optimum.input, cut={"from": -half, "to": half})
    everywhere, window = Integers(), Integers(Fraction(-half), Fraction(half))
    programs: list[tuple[str, Objective, Support]] = [
        ("P1", optimum, everywhere),
        ("P2", relaxed, everywhere),
        ("P1, window", optimum, window),
        ("P2, window", relaxed, window),
        ("P2, window, cuts in it", cut_off, window),
    ]
    rows: dict[Support, PureDP] = {
        everywhere: PureDP(epsilon, sensitivity),  # type: ignore[arg-type]  # reads any exact number
        window: PureDP(epsilon, sensitivity, boundary="window"),  # type: ignore[arg-type]
    }
    return tuple(
        Problem(support=support, objective=objective, constraints=[rows[support]], name=name)
        for name, objective, support in programs
    )


def optimum_beside_relaxation(
    input: Distribution | Pmf | None = None,  # noqa: A002  # the paper's word
    *,
    epsilon: Number = 3,
    sensitivity: Number = 15,
    half_width: int = 30,
    backend: str = "auto",
) -> Figure:
    """What P1, P2 and their windows yield on W1, E|Z| and the variance, and which privacy their noise really has.

    `W1` is that of the noise found, against the whole input. `epsilon` is the least one of that noise, empty where none
    will do: on a window an output next to the edge is possible for one neighbour only. `delta at epsilon` is its tight
    delta at the epsilon asked for.

    Parameters
    ----------
    input : Distribution or Pmf, optional
        A rounded normal with mean 0 and sd 5 when left out.
    epsilon, sensitivity : number
    half_width : int
        The D of the windows [-D, D].
    backend : str

    Raises
    ------
    NotVerifiedError
        A program has no proved answer.

    Examples
    --------
    >>> figure = optimum_beside_relaxation(epsilon=3)
    >>> [f"{w:.6f}" for w in figure.column("W1")[:2]]  # the noise of P2 costs 6 % more
    ['1.726808', '1.826065']
    """
    law = gaussian(0, 5) if input is None else input
    problems = relaxation_problems(law, epsilon=epsilon, sensitivity=sensitivity, half_width=half_width)
    rows = [_row(solve(problem, backend), law, exact(epsilon, "epsilon"), sensitivity) for problem in problems]
    title = (
        f"P1, P2 and their windows [-{half_width}, {half_width}]: input {input_text(law)}, "
        f"epsilon = {number_text(epsilon)}, sensitivity {number_text(sensitivity)}"
    )
    panels = (Panel("what the programs yield", "program", ("objective", "W1", "E|Z|"), "data units"),)
    return Figure("noise-programs", title, _COLUMNS, tuple(rows), panels)


def _row(solution: Solution, law: Distribution | Pmf, epsilon: Fraction, sensitivity: Number) -> tuple[Cell, ...]:
    found = utility(solution, law)
    profile = privacy_profile(solution.pmf, [epsilon], sensitivity=sensitivity)
    return (
        solution.problem.name,
        float(solution.value),
        float(found.wasserstein),
        float(found.mean_absolute),
        float(found.mean),
        float(found.variance),
        None if profile.floor else float(profile.plateau_start),
        float(profile.upper[0]),
    )
