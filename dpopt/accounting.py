"""Export to `dp_accounting`, Google's library for composition: a privacy loss distribution that errs on the safe side.

One privacy loss distribution has to stand for every pair of neighbours, whichever way each of the composed mechanisms
moves. Write H(E) for the largest hockey-stick divergence at E = e^epsilon over all shifts up to the sensitivity, in
both directions. H is a maximum of convex falling functions with H(0) = 1 and H(E) >= 1 - E, so it is the profile of a
pair of laws, and that pair dominates every pair of neighbours, under composition as well (Zhu, Dong and Wang, "Optimal
accounting of differential privacy via characteristic function", 2022). Between grid points H lies below its chords, so
joining its exact values at the grid points gives a profile on the grid that dominates H (Doroshenko et al., "Connect
the dots: tighter discrete approximations of privacy loss distributions", 2022). All is rational up to the last rounding
to floats, which goes upward.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpopt.arithmetic import MAX_EXPONENT, Number, ball, exact, floor_scaled, log_enclosure
from dpopt.errors import BackendError, InputError
from dpopt.pmf import Pmf, read_pmf
from dpopt.privacy.losses import Losses
from dpopt.privacy.shifts import lattice_shift

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["require_dp_accounting", "to_dp_accounting"]

_BITS = 192  # of the grid points e^loss
_POINTS = 1000  # losses on either side of 0, at least, on the default grid
_MOST_POINTS = 1 << 20
_SLACK = Fraction(1, 1 << 50)  # relative: covers the rounding of index times interval, also in sums of losses
_UNIT = Fraction(1, 1 << 53)  # half a unit in the last place of 1.0
_LEAST = 1e-290  # smaller masses are raised to this one: nothing computed from them underflows


def require_dp_accounting() -> Any:
    """The module of `dp_accounting`'s privacy loss distributions; else an error that says how to install it.

    Raises
    ------
    BackendError
        dp_accounting is not installed.
    """
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError:
        message = "the export needs dp-accounting, which is not installed: pip install 'dpopt[accounting]'"
        raise BackendError(message) from None
    return privacy_loss_distribution


def to_dp_accounting(
    pmf: Pmf, sensitivity: Number = 1, *, value_discretization_interval: Number | None = None
) -> PrivacyLossDistribution:
    """The noise as a `dp_accounting` privacy loss distribution: a pessimistic estimate, for composition.

    At every float epsilon >= 0 its ``get_delta_for_epsilon(epsilon)`` is at least the true delta: the losses and masses
    are rounded outward by more than its own float arithmetic can lose. That holds for one epsilon at a time (a list of
    them is summed by subtraction there, with errors around 1e-16). Composition by FFT errs by about as much; what its
    `tail_mass_truncation` (1e-15) adds is more than that in practice, which is no proof.

    Where every privacy loss of the noise is a multiple of the interval the estimate is exact up to these roundings.
    Elsewhere it is exact at the multiples themselves, and too large between them. `dp_accounting`'s own constructor
    rounds every loss up to its grid (1e-4): at a breakpoint of the profile, where optimal designs sit, the delta that
    it then reports can be 10^7 times too large.

    Parameters
    ----------
    pmf : Pmf
        The noise, or anything with a `pmf` attribute. A finite support leaves an infinite loss its mass.
    sensitivity : number
        In data units; all shifts up to ``floor(sensitivity / step)`` lattice steps count, in both directions.
    value_discretization_interval : number, optional
        The distance of the losses, taken as the nearest float. Mechanisms compose in `dp_accounting` only when theirs
        are equal. By default the largest finite loss over a multiple of the largest shift, 1,000 or more, rounded up:
        a staircase, a geometric or a discrete Laplace pmf has all its losses there.

    Raises
    ------
    BackendError
        dp_accounting is not installed.
    InputError
        The interval is not positive, or so small that there would be more than a million losses; or the neighbours have
        no output in common, so that delta is 1 at every epsilon.

    Examples
    --------
    >>> from dpopt.pmf import Tails
    >>> geometric = Pmf(0, (1,), tails=Tails(1, Fraction(1, 2), Fraction(1, 2)))
    >>> twice = to_dp_accounting(geometric).self_compose(2)
    >>> print(f"{twice.get_delta_for_epsilon(1.0):.6f}")  # 4/9 (1 - e/4): both losses are ln 2
    0.142413
    """
    library = require_dp_accounting()
    pmf = read_pmf(pmf, "pmf")
    losses = Losses(pmf, lattice_shift(sensitivity, pmf.step), _BITS)
    if losses.floor == 1:
        raise InputError("sensitivity", "must be smaller: no output is possible for both neighbours, delta is always 1")
    largest = min(log_enclosure(losses.least_factor(losses.floor), _BITS).upper, Fraction(MAX_EXPONENT))
    interval = _interval(value_discretization_interval, largest, losses.shift)
    slack = Fraction(0) if _has_exact_multiples(interval) else _SLACK
    count = _count(largest, Fraction(interval) * (1 - slack))
    outward = _grid(Fraction(interval) * (1 - slack), count, up=False)
    inward = _grid(Fraction(interval) * (1 + slack), count, up=True)
    masses, infinite = _masses(losses, outward, inward)
    return library.PrivacyLossDistribution.create_from_rounded_probability(
        *_rounded_up(masses, infinite), interval, pessimistic_estimate=True
    )


# --- the grid --------------------------------------------------------------------------------------------------------


def _interval(given: Number | None, largest: Fraction, shift: int) -> float:
    if given is not None:
        interval = float(exact(given, "value_discretization_interval"))
        if not 0 < interval <= MAX_EXPONENT:
            raise InputError(
                "value_discretization_interval", f"must be above 0 and at most {MAX_EXPONENT}, not {given}"
            )
        return interval
    if largest == 0:  # every loss is 0 or infinite
        return 1e-4  # the default of dp_accounting
    parts = shift * -(-_POINTS // shift)
    return _float_above(largest / parts * (1 + 2 * _SLACK))  # the last grid point is not below the largest loss


def _has_exact_multiples(interval: float) -> bool:
    """Whether index times interval is computed without rounding, for all indices up to 2^30."""
    return Fraction(interval).numerator.bit_length() <= 23


def _count(largest: Fraction, spacing: Fraction) -> int:
    """The least number of grid points that reaches the largest loss, and stays where e^loss is within reach."""
    count = max(min(math.ceil(largest / spacing), int(MAX_EXPONENT / spacing)), 1)
    if count > _MOST_POINTS:
        raise InputError(
            "value_discretization_interval",
            f"must be at least {float(largest) / _MOST_POINTS:.3g} for losses up to {float(largest):.6g}: more than "
            f"{_MOST_POINTS} of them would be stored",
        )
    return count


def _grid(spacing: Fraction, count: int, *, up: bool) -> list[int]:
    """2^bits e^(i spacing) for i = 0..count, in integers, each at most (`up`: at least) that number."""
    factor = floor_scaled(lambda: ball(spacing).exp(), _BITS) + up
    powers = [1 << _BITS]
    for _ in range(count):
        product = powers[-1] * factor
        powers.append(-(-product >> _BITS) if up else product >> _BITS)
    return powers


# --- the masses ------------------------------------------------------------------------------------------------------


def _masses(losses: Losses, outward: list[int], inward: list[int]) -> tuple[dict[int, Fraction], Fraction]:
    """The exact mass at each index of the grid, and the mass of an infinite loss, of the chords of H.

    The corners of the chords are at E = outward[i] / 2^bits for i >= 0 and 2^bits / inward[i] for -i, each at most
    e^(i interval). H looks at both directions, so that H(1/E) = 1 - 1/E + H(E) / E: below 1 lie the chords of H between
    the points of `inward`, turned over, with their masses divided by E.
    """
    above, slope_above, infinite = _chords(losses, outward)
    below, slope_below, _ = _chords(losses, inward)
    centre = 1 - Fraction(losses.worst([1 << _BITS])[0], 1 << _BITS) / losses.unit - slope_above - slope_below
    masses = {-i: mass / Fraction(inward[i], 1 << _BITS) for i, mass in below.items()}
    return masses | ({0: centre} if centre else {}) | above, infinite


def _chords(losses: Losses, corners: list[int]) -> tuple[dict[int, Fraction], Fraction, Fraction]:
    """The masses at the corners beyond the first, the slope of the first chord, downward, and the last height.

    Left of a corner a profile has the slope -sum of mass / E over it and all beyond: a mass is E times the change of
    slope at its corner.
    """
    heights = losses.worst(corners)  # in units of 2^-bits / unit
    falls = [here - beyond for here, beyond in zip(heights, heights[1:], strict=False)]
    runs = [beyond - here for here, beyond in zip(corners, corners[1:], strict=False)]
    steps = zip(corners[1:], falls, runs, [*falls[1:], 0], [*runs[1:], 1], strict=True)
    masses = {}
    for i, (corner, fall, run, next_fall, next_run) in enumerate(steps, 1):
        if change := fall * next_run - next_fall * run:
            masses[i] = Fraction(corner * change, (run * next_run) << _BITS) / losses.unit
    return masses, Fraction(falls[0], runs[0]) / losses.unit, Fraction(heights[-1], 1 << _BITS) / losses.unit


def _rounded_up(masses: dict[int, Fraction], infinite: Fraction) -> tuple[dict[int, float], float]:
    """Floats above the masses by more than is lost when those at positive losses are weighted and summed in floats."""
    inflation = 1 + (sum(i > 0 for i in masses) + 32) * _UNIT
    finite = {i: max(_float_above(mass * inflation), _LEAST) for i, mass in masses.items()}
    return finite, min(_float_above(infinite * (1 + 4 * _UNIT)), 1.0)


def _float_above(value: Fraction) -> float:
    """The least float that is not below `value`."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)
