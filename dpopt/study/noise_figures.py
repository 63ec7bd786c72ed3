"""The figures of the noise paper as tables: the noise pmfs, the optimum, and W1 against epsilon and the sensitivity.

The paper states epsilon, the sensitivity and the widths of the stairs, but not the parameters of its inputs and pmfs.
Ours are in the titles: the inputs are a rounded normal with mean 0 and sd 5, and Poisson counts with rate 10. Every W1
is that of an exact pmf which is proved to be private, and every optimum is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpopt.arithmetic import Number, exact
from dpopt.distributions import Distribution, exponential, gaussian, laplace, poisson, uniform
from dpopt.errors import InputError, NotVerifiedError
from dpopt.mechanisms.calibration import calibrate
from dpopt.pmf import Pmf
from dpopt.problem.objectives import MinWasserstein
from dpopt.problem.parts import Setting
from dpopt.problem.problem import Problem, wasserstein
from dpopt.problem.support import Integers
from dpopt.proof.prove import Verified
from dpopt.reading import read_integers, read_list
from dpopt.solution import Solution
from dpopt.solving import solve
from dpopt.study.figure_table import Cell, Figure, Panel, input_text, number_text, read_axis, read_reach

__all__ = [
    "optimal_noise",
    "optimal_noise_for_inputs",
    "pmfs_of_exponential_noise",
    "pmfs_of_gaussian_noise",
    "pmfs_of_laplace_and_uniform_noise",
    "pmfs_of_staircase_noise",
    "private_noises",
    "proved_optimum",
    "shipped_problems",
    "wasserstein_against_epsilon",
    "wasserstein_against_sensitivity",
]

EPSILON, SENSITIVITY, WIDTHS = 2, 15, (5, 20)  # the paper's
_EPSILONS: tuple[Number, ...] = ("0.25", "0.5", "0.75", 1, "1.25", "1.5", "1.75", 2, "2.5", 3, "3.5", 4)
_SENSITIVITIES: tuple[Number, ...] = (1, 2, 3, 5, 8, 10, 12, 15, 18, 20, 21, 25, 30)


def default_inputs() -> tuple[Distribution, Distribution]:
    """The inputs of the figures: Gaussian and Poisson, the paper's kinds with parameters of ours."""
    return gaussian(0, 5), poisson(10)


def read_inputs(inputs: Sequence[Distribution | Pmf] | None) -> tuple[Distribution | Pmf, ...]:
    """The inputs given, or the default ones."""
    if inputs is None:
        return default_inputs()
    laws = read_list(inputs, "inputs", "distributions")
    for i, law in enumerate(laws):
        try:
            MinWasserstein(law)
        except InputError as error:
            raise InputError(f"inputs[{i}]", error.problem) from None
    return laws


# --- Figs. 1, 2, 3, 5: noise pmfs ------------------------------------------------------------------------------------


def pmfs_of_gaussian_noise(deviations: Iterable[Number] = (1, 3, 5), *, reach: int = 15) -> Figure:
    """Fig. 1: pmfs of Gaussian noise, a normal density rounded to the integers, for some standard deviations.

    Examples
    --------
    >>> figure = pmfs_of_gaussian_noise([3])
    >>> f"{figure.column('sd = 3')[15]:.9f}"  # at 0: Phi(1/6) - Phi(-1/6)
    '0.132367665'
    """
    chosen = read_axis(deviations, "deviations")
    curves = {f"sd = {number_text(sd)}": gaussian(0, sd).pmf for sd in chosen}
    return _pmf_figure("noise-1", "Fig. 1: Gaussian noise, mean 0", curves, _around(reach))


def pmfs_of_laplace_and_uniform_noise(
    scales: Iterable[Number] = (1, 3, "7.5"), half_widths: Iterable[int] = (10,), *, reach: int = 15
) -> Figure:
    """Fig. 2: pmfs of Laplace noise, a density rounded to the integers, and of uniform noise, which has zeros.

    A scale of 7.5 is (2, 0)-DP at sensitivity 15. Uniform noise has no epsilon: its zeros lie beside masses.

    Examples
    --------
    >>> figure = pmfs_of_laplace_and_uniform_noise(["7.5"], [10])
    >>> [f"{mass:.9f}" for mass in figure.column("Laplace, scale 7.5")[15:17]]
    ['0.064493015', '0.058388116']
    >>> figure.column("uniform on -10..10")[4:6]
    [0.0, 0.047619047619047616]
    """
    curves = {f"Laplace, scale {number_text(s)}": laplace(s).pmf for s in read_axis(scales, "scales")}
    for half in read_integers(half_widths, "half_widths", at_least=0):
        curves[f"uniform on -{half}..{half}"] = uniform(-half, half).pmf
    return _pmf_figure("noise-2", "Fig. 2: Laplace and uniform noise, mean 0", curves, _around(reach))


def pmfs_of_staircase_noise(
    widths: Sequence[int] = WIDTHS, *, epsilon: Number = EPSILON, sensitivity: Number = SENSITIVITY, reach: int = 60
) -> Figure:
    """Fig. 3: pmfs of stairs of equal width a, with the height rho that makes them epsilon-DP at the sensitivity.

    Examples
    --------
    >>> figure = pmfs_of_staircase_noise()
    >>> [f"{figure.column(name)[60]:.9f}" for name in figure.columns[1:]]
    ['0.051147014', '0.022094220']
    """
    curves = {}
    for width in read_integers(widths, "widths", at_least=1):
        found = calibrate("staircase", epsilon=epsilon, sensitivity=sensitivity, width=width)
        height = dict(found.parameters)["height"]
        curves[f"a = {width}, rho = {float(height):.6f}"] = found.pmf
    title = f"Fig. 3: staircase noise, {_privacy_text(epsilon, sensitivity)}"
    return _pmf_figure("noise-3", title, curves, _around(reach))


def pmfs_of_exponential_noise(rates: Iterable[Number] = ("0.1", "0.25", "0.5"), *, reach: int = 30) -> Figure:
    """Fig. 5: pmfs of exponential noise, (1 - e^-eta) e^(-eta k) for k >= 0.

    Below 0 there is no mass, so that the noise has no epsilon, unlike what the paper says.

    Examples
    --------
    >>> figure = pmfs_of_exponential_noise(["0.1"])
    >>> [f"{mass:.9f}" for mass in figure.column("eta = 0.1")[:7]]
    ['0.000000000', '0.000000000', '0.000000000', '0.000000000', '0.000000000', '0.095162582', '0.086106665']
    """
    curves = {f"eta = {number_text(rate)}": exponential(rate).pmf for rate in read_axis(rates, "rates")}
    return _pmf_figure("noise-5", "Fig. 5: exponential noise", curves, range(-5, read_reach(reach) + 1))


def _around(reach: int) -> range:
    return range(-read_reach(reach), read_reach(reach) + 1)


def _pmf_figure(name: str, title: str, curves: dict[str, Pmf], points: range) -> Figure:
    rows = [(k, *(float(pmf.probability(k)) for pmf in curves.values())) for k in points]
    panel = Panel("pmf", "noise", tuple(curves), "probability", steps=True)
    return Figure(name, title, ("noise", *curves), tuple(rows), (panel,))


# --- Figs. 6 and 7: the optimum --------------------------------------------------------------------------------------


def optimal_noise(
    input: Distribution | Pmf | None = None,  # noqa: A002  # the paper's word
    *,
    epsilon: Number = EPSILON,
    sensitivity: Number = SENSITIVITY,
    reach: int = 60,
    backend: str = "auto",
) -> Figure:
    """Fig. 6: the pmf of the optimal noise for an input, beside the noise that minimises E|Z| (the paper's P2).

    Both are staircases of two levels in each stretch of sensitivity points, P2's with the widths that no input changes.

    Parameters
    ----------
    input : Distribution or Pmf, optional
        A rounded normal with mean 0 and sd 5 when left out.
    epsilon, sensitivity : number
    reach : int
        Noise from -reach to reach is shown.
    backend : str

    Raises
    ------
    NotVerifiedError
        No optimum was proved.

    Examples
    --------
    >>> figure = optimal_noise(epsilon=3, reach=5)
    >>> [f"{mass:.6f}" for mass in figure.column("optimal")[5:]]  # 0 to 5: inner stairs of 4
    ['0.116661', '0.116661', '0.116661', '0.116661', '0.005808', '0.005808']
    >>> [f"{mass:.6f}" for mass in figure.column("least E|Z|")[5:]]  # of 3
    ['0.152164', '0.152164', '0.152164', '0.007576', '0.007576', '0.007576']
    """
    law = default_inputs()[0] if input is None else input
    found = proved_optimum(law, epsilon, sensitivity, backend)
    least = calibrate("optimal-staircase", epsilon=epsilon, sensitivity=sensitivity)
    title = f"Fig. 6: optimal noise, input {input_text(law)}, {_privacy_text(epsilon, sensitivity)}"
    curves = {"optimal": found.pmf, "least E|Z|": least.pmf}
    return _pmf_figure("noise-6", title, curves, _around(reach))


def optimal_noise_for_inputs(
    inputs: Sequence[Distribution | Pmf] | None = None,
    *,
    epsilon: Number = EPSILON,
    sensitivity: Number = SENSITIVITY,
    reach: int = 60,
    backend: str = "auto",
) -> Figure:
    """Fig. 7: the pmfs of the optimal noise for several inputs side by side; Gaussian and Poisson by default.

    Examples
    --------
    >>> figure = optimal_noise_for_inputs(reach=2)
    >>> figure.columns
    ('noise', 'gaussian(0, 5)', 'poisson(10)')
    """
    laws = read_inputs(inputs)
    curves = {input_text(law): proved_optimum(law, epsilon, sensitivity, backend).pmf for law in laws}
    title = f"Fig. 7: optimal noise by input, {_privacy_text(epsilon, sensitivity)}"
    return _pmf_figure("noise-7", title, curves, _around(reach))


def proved_optimum(law: Distribution | Pmf, epsilon: Number, sensitivity: Number, backend: str = "auto") -> Solution:
    """The optimal noise for an input on all integers (P1); an error unless it is proved to be optimal."""
    solution = solve(wasserstein(input=law, epsilon=epsilon, sensitivity=sensitivity), backend)
    if solution.verified is not Verified.OPTIMAL:
        where = f"{input_text(law)}, {_privacy_text(epsilon, sensitivity)}"
        raise NotVerifiedError(f"no optimum was proved for {where}: {solution.message or solution.verified.value}")
    return solution


# --- Figs. 8 and 9: W1 of four mechanisms ----------------------------------------------------------------------------


def wasserstein_against_epsilon(
    epsilons: Iterable[Number] = _EPSILONS,
    *,
    sensitivity: Number = SENSITIVITY,
    inputs: Sequence[Distribution | Pmf] | None = None,
    widths: Sequence[int] = WIDTHS,
    backend: str = "auto",
) -> Figure:
    """Fig. 8: W1 against epsilon for the optimal, the Laplace and the staircase mechanisms.

    `gap` is what a better optimum could still gain at most; all else is exact.

    Parameters
    ----------
    epsilons : iterable of numbers
        0.25 to 4 by default.
    sensitivity : number
    inputs : sequence of Distribution or Pmf, optional
        A rounded normal with mean 0 and sd 5, and Poisson counts with rate 10, when left out.
    widths : sequence of int
        The widths a of the staircase mechanisms.
    backend : str

    Raises
    ------
    NotVerifiedError
        An optimum was not proved.

    Examples
    --------
    >>> figure = wasserstein_against_epsilon([2, 4], inputs=[gaussian(0, 5)])
    >>> [f"{w:.6f}" for w in figure.column("optimal")]
    ['3.936374', '0.810286']
    >>> [f"{w:.6f}" for w in figure.column("Laplace")]
    ['4.736522', '1.670599']
    """
    chosen, moved = read_axis(epsilons, "epsilons"), exact(sensitivity, "sensitivity")
    title = f"Fig. 8: W1 against epsilon, sensitivity {number_text(moved)}"
    points = [(epsilon, epsilon, moved) for epsilon in chosen]
    return _comparison("noise-8", title, "epsilon", points, inputs, widths, backend)


def wasserstein_against_sensitivity(
    sensitivities: Iterable[Number] = _SENSITIVITIES,
    *,
    epsilon: Number = EPSILON,
    inputs: Sequence[Distribution | Pmf] | None = None,
    widths: Sequence[int] = WIDTHS,
    backend: str = "auto",
) -> Figure:
    """Fig. 9: W1 against the sensitivity m for the optimal, the Laplace and the staircase mechanisms.

    Stairs of width 20 are the same for all m up to 20 and jump at 21: their height has ceil(m / 20) in it.

    Parameters
    ----------
    sensitivities : iterable of numbers
        1 to 30 by default.
    epsilon : number
    inputs, widths, backend
        As in `wasserstein_against_epsilon`.

    Examples
    --------
    >>> figure = wasserstein_against_sensitivity([20, 21], inputs=[poisson(10)])
    >>> [f"{w:.6f}" for w in figure.column("staircase 20")]
    ['10.628152', '19.137333']
    """
    chosen, rate = read_axis(sensitivities, "sensitivities"), exact(epsilon, "epsilon")
    title = f"Fig. 9: W1 against the sensitivity, epsilon = {number_text(rate)}"
    points = [(moved, rate, moved) for moved in chosen]
    return _comparison("noise-9", title, "sensitivity", points, inputs, widths, backend)


def private_noises(epsilon: Number, sensitivity: Number, widths: Sequence[int] = WIDTHS) -> dict[str, Pmf]:
    """The mechanisms that the optimum is compared with, by column: Laplace, and stairs of the given widths (Table V).

    Examples
    --------
    >>> noises = private_noises(2, 15)
    >>> {name: round(float(pmf.absolute_moment(1)), 6) for name, pmf in noises.items()}
    {'Laplace': 7.494447, 'staircase 5': 7.647874, 'staircase 20': 12.909411}
    """
    found = {"Laplace": calibrate("laplace", epsilon=epsilon, sensitivity=sensitivity).pmf}
    for width in read_integers(widths, "widths", at_least=1):
        noise = calibrate("staircase", epsilon=epsilon, sensitivity=sensitivity, width=width)
        found[f"staircase {width}"] = noise.pmf
    return found


def _comparison(
    name: str,
    title: str,
    axis: str,
    points: Sequence[tuple[Fraction, Fraction, Fraction]],
    inputs: Sequence[Distribution | Pmf] | None,
    widths: Sequence[int],
    backend: str,
) -> Figure:
    """One row for each input and each point (place on the axis, epsilon, sensitivity)."""
    laws = read_inputs(inputs)
    noises = [private_noises(epsilon, sensitivity, widths) for _, epsilon, sensitivity in points]
    rows: list[tuple[Cell, ...]] = []
    for law in laws:
        term = MinWasserstein(law).term(Setting(Integers(), None))  # type: ignore[arg-type]  # reads a Pmf as well
        for (place, epsilon, sensitivity), others in zip(points, noises, strict=True):
            best = proved_optimum(law, epsilon, sensitivity, backend)
            distances = (float(term.value(pmf)) for pmf in others.values())
            rows.append((input_text(law), float(place), float(best.value), *distances, float(best.gap or 0)))
    drawn = ("optimal", *noises[0])
    panels = tuple(
        Panel(f"input {name}", axis, drawn, "W1", only=(("input", name),), log_y=True) for name in map(input_text, laws)
    )
    return Figure(name, title, ("input", axis, *drawn, "gap"), tuple(rows), panels)


# --- problem files ---------------------------------------------------------------------------------------------------


def shipped_problems() -> dict[str, Problem]:
    """The optimisation behind Figs. 6 to 9, by the stem of its file in ``problems/figures``: one problem a curve.

    Examples
    --------
    >>> shipped_problems()["noise-6"].objective.plain()
    {'type': 'min-wasserstein', 'input': {'type': 'gaussian', 'mean': 0, 'sd': 5}}
    """
    laws = dict(zip(("gaussian", "poisson"), default_inputs(), strict=True))

    def problem(figure: int, kind: str, epsilon: Number, sensitivity: Number) -> Problem:
        name = f"Fig. {figure}: optimal noise, {input_text(laws[kind])}, {_privacy_text(epsilon, sensitivity)}"
        return wasserstein(input=laws[kind], epsilon=epsilon, sensitivity=sensitivity, name=name)

    found = {"noise-6": problem(6, "gaussian", EPSILON, SENSITIVITY)}
    for kind in laws:
        found[f"noise-7-{kind}"] = problem(7, kind, EPSILON, SENSITIVITY)
        found[f"noise-8-{kind}"] = problem(8, kind, 4, SENSITIVITY)
        found[f"noise-9-{kind}"] = problem(9, kind, EPSILON, 30)
    return found


def _privacy_text(epsilon: Number, sensitivity: Number) -> str:
    return f"epsilon = {number_text(epsilon)}, sensitivity {number_text(sensitivity)}"
