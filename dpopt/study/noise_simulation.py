"""The noise paper's simulation (Fig. 10): the empirical W1 of private data, run after run, for four mechanisms.

As in the paper the data stay the same and only the noise is drawn anew. Its sample size is not known; ours is a
parameter. The data are the input's quantiles at (i + 1/2) / size, the data set that lies closest to the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpopt.arithmetic import Number, exact, exact_integer
from dpopt.distributions import Distribution, gaussian
from dpopt.errors import InputError
from dpopt.pmf import Pmf
from dpopt.reading import read_integers, read_list
from dpopt.record import Record
from dpopt.release.randomness import INSECURE, Randomness, read_randomness
from dpopt.release.samplers import sample
from dpopt.study.figure_table import Cell, Figure, Panel, input_text, number_text
from dpopt.study.noise_figures import WIDTHS, private_noises, proved_optimum

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Simulation", "empirical_wasserstein", "quantile_data", "simulate", "simulated_wasserstein"]

_SETTINGS: tuple[tuple[Number, Number], ...] = (("0.5", 15), (2, 5), (2, 15), (4, 15))
_MOST_RECORDS = 10_000_000


@dataclass(frozen=True, repr=False)
class Simulation(Record):
    """Empirical W1 of each mechanism in each run, exactly. Made by `simulate`.

    Parameters
    ----------
    epsilon, sensitivity : Fraction
    size : int
        Records in the data set.
    distances : tuple of (str, tuple of Fraction)
        The mechanisms by name, each with one W1 a run.
    secure : bool
        Whether the noise came from the operating system's generator; figures of what is not say so in their title.
    """

    epsilon: Fraction
    sensitivity: Fraction
    size: int
    distances: tuple[tuple[str, tuple[Fraction, ...]], ...]
    secure: bool = False

    @property
    def smallest(self) -> dict[str, Fraction]:
        """The share of the runs in which each mechanism has the smallest W1; ties count for each."""
        least = [min(run) for run in zip(*(found for _, found in self.distances), strict=True)]
        return {
            name: Fraction(sum(here == best for here, best in zip(found, least, strict=True)), len(found))
            for name, found in self.distances
        }

    def frequencies(self, bins: int = 20) -> tuple[tuple[Fraction, ...], dict[str, tuple[Fraction, ...]]]:
        """The edges of equal bins from the least W1 to the largest, and each mechanism's share of runs in each bin."""
        bins = exact_integer(bins, "bins", at_least=1)
        every = [distance for _, found in self.distances for distance in found]
        low, width = min(every), (max(every) - min(every)) / bins
        edges = tuple(low + i * width for i in range(bins + 1))
        shares = {}
        for name, found in self.distances:
            counts = [0] * bins
            for distance in found:
                counts[min(int((distance - low) / width), bins - 1) if width else 0] += 1
            shares[name] = tuple(Fraction(count, len(found)) for count in counts)
        return edges, shares


def simulate(
    input: Distribution | Pmf,  # noqa: A002  # the paper's word
    *,
    epsilon: Number,
    sensitivity: Number,
    size: int = 1000,
    runs: int = 100,
    widths: Sequence[int] = WIDTHS,
    backend: str = "auto",
    randomness: Randomness | None = None,
) -> Simulation:
    """Add noise to the same data run after run, and measure W1 between the data and the private data.

    Parameters
    ----------
    input : Distribution or Pmf
        The law that the data follow.
    epsilon, sensitivity : number
    size : int
        Records in the data set.
    runs : int
    widths : sequence of int
        The widths a of the staircase mechanisms.
    backend : str
        Who finds the optimal noise.
    randomness : Randomness, optional
        The operating system's generator by default; `dpopt.InsecureRandomness` for runs that can be repeated.

    Raises
    ------
    NotVerifiedError
        The optimum was not proved.

    Examples
    --------
    >>> from dpopt.release.randomness import InsecureRandomness
    >>> found = simulate(gaussian(0, 5), epsilon=2, sensitivity=15, runs=20, randomness=InsecureRandomness(1))
    >>> [name for name, _ in found.distances]
    ['optimal', 'Laplace', 'staircase 5', 'staircase 20']
    >>> found.smallest["staircase 20"]
    Fraction(0, 1)
    """
    records = exact_integer(size, "size", at_least=1)
    if records > _MOST_RECORDS:
        raise InputError("size", f"must be at most {_MOST_RECORDS}, not {records}")
    count, source = exact_integer(runs, "runs", at_least=1), read_randomness(randomness)
    data = quantile_data(input, records)
    widths = read_integers(widths, "widths", at_least=1)
    noises = {"optimal": proved_optimum(input, epsilon, sensitivity, backend).pmf}
    noises |= private_noises(epsilon, sensitivity, widths)
    distances = []
    for name, pmf in noises.items():
        found = (empirical_wasserstein(data, data + sample(pmf, records, randomness=source)) for _ in range(count))
        distances.append((name, tuple(found)))
    claim, most = exact(epsilon, "epsilon"), exact(sensitivity, "sensitivity")
    return Simulation(claim, most, records, tuple(distances), source.secure)


def quantile_data(law: Distribution | Pmf, size: int) -> np.ndarray:
    """The quantiles of a finite law at (i + 1/2) / size, ascending: int64, shape ``(size,)``.

    Examples
    --------
    >>> quantile_data(Pmf(0, (1, 2, 1)), 8).tolist()
    [0, 0, 1, 1, 1, 1, 2, 2]
    """
    import numpy as np

    pmf = getattr(law, "pmf", law)
    if not isinstance(pmf, Pmf) or pmf.tails is not None or pmf.step != 1:
        raise InputError("input", f"must be a finite law on the integers, such as dpopt.poisson(10), not {law!r}")
    # record i is at most k where (i + 1/2) / size <= F(k): that many records are at most k
    total = pmf.total.numerator
    upto = [0, *((2 * size * here + total) // (2 * total) for here in pmf.cumulative())]
    counts = [beyond - before for before, beyond in pairwise(upto)]
    return np.repeat(np.arange(pmf.start, pmf.end + 1, dtype=np.int64), counts)


def empirical_wasserstein(data: Any, private: Any) -> Fraction:
    """W1 between two samples of integers of the same size, exactly: the mean difference of their sorted values.

    Examples
    --------
    >>> empirical_wasserstein([3, 1, 2], [1, 2, 5])
    Fraction(2, 3)
    """
    import numpy as np

    here, there = np.sort(np.asarray(data)), np.sort(np.asarray(private))
    if here.shape != there.shape or here.ndim != 1 or not here.size:
        raise InputError("private", f"must have as many records as data, {here.shape}, not {there.shape}")
    return Fraction(int(np.abs(there - here).sum()), here.size)


# --- Fig. 10 ---------------------------------------------------------------------------------------------------------


def simulated_wasserstein(
    settings: Sequence[tuple[Number, Number]] = _SETTINGS,
    *,
    input: Distribution | Pmf | None = None,  # noqa: A002  # the paper's word
    size: int = 1000,
    runs: int = 100,
    bins: int = 20,
    widths: Sequence[int] = WIDTHS,
    backend: str = "auto",
    randomness: Randomness | None = None,
) -> Figure:
    """Fig. 10: the empirical W1 of four mechanisms over many runs: average, least, largest, and frequencies.

    For each (epsilon, sensitivity) the rows are the average, minimum and maximum over the runs, the share of the runs
    in which the mechanism has the smallest W1, and then the share of the runs in each bin; `W1` is a bin's centre.

    Parameters
    ----------
    settings : sequence of (epsilon, sensitivity)
    input : Distribution or Pmf, optional
        A rounded normal with mean 0 and sd 5 when left out.
    size, runs, bins : int
        Records in the data set, runs, and bins of the frequencies.
    widths, backend, randomness
        As in `simulate`.

    Examples
    --------
    >>> figure = simulated_wasserstein([(2, 15)], size=200, runs=10, bins=4)
    >>> figure.column("what")
    ['average', 'minimum', 'maximum', 'smallest', 'frequency', 'frequency', 'frequency', 'frequency']
    """
    law = gaussian(0, 5) if input is None else input
    pairs = read_list(settings, "settings", "pairs (epsilon, sensitivity)")
    if not pairs or not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs):
        raise InputError("settings", f"must be a list of pairs (epsilon, sensitivity), not {settings!r}")
    found = [
        simulate(
            law, epsilon=e, sensitivity=m, size=size, runs=runs, widths=widths, backend=backend, randomness=randomness
        )
        for e, m in pairs
    ]
    rows = [row for simulation in found for row in _rows(simulation, bins)]
    mechanisms = tuple(name for name, _ in found[0].distances)
    panels = tuple(_panel(simulation, mechanisms) for simulation in found)
    title = f"Fig. 10: W1 of {found[0].size} records in {runs} runs, input {input_text(law)}"
    if not found[0].secure:
        title += f" ({INSECURE})"
    return Figure("noise-10", title, ("epsilon", "sensitivity", "what", "W1", *mechanisms), tuple(rows), panels)


def _panel(simulation: Simulation, mechanisms: tuple[str, ...]) -> Panel:
    """The frequencies of one setting."""
    e, m = simulation.epsilon, simulation.sensitivity
    only = (("epsilon", float(e)), ("sensitivity", float(m)))
    title = f"epsilon = {number_text(e)}, m = {number_text(m)}"
    return Panel(title, "W1", mechanisms, "share of runs", only=only)


def _rows(simulation: Simulation, bins: int) -> list[tuple[Cell, ...]]:
    """The rows of one setting."""
    setting = (float(simulation.epsilon), float(simulation.sensitivity))
    runs = [found for _, found in simulation.distances]
    rows: list[tuple[Cell, ...]] = [
        (*setting, name, None, *(float(of(found)) for found in runs))
        for name, of in (("average", mean), ("minimum", min), ("maximum", max))
    ]
    rows.append((*setting, "smallest", None, *map(float, simulation.smallest.values())))
    edges, shares = simulation.frequencies(bins)
    for i, (low, high) in enumerate(pairwise(edges)):
        rows.append((*setting, "frequency", float((low + high) / 2), *(float(share[i]) for share in shares.values())))
    return rows
