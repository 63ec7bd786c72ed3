"""One draw at a time from pmfs of growing support, beside one from a pmf of three points, in one run.

    python -m benchmarks.cases.single_draws

It is no problem with phases, and so not a `Case`: it runs by itself, under the same stopwatch.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable

from benchmarks.measure import measure
from dpopt.pmf import Pmf
from dpopt.release.samplers import sample

SIZES = (1_000, 100_000, 1_000_000)
DRAWS = 200  # in one verb
AT_MOST = 30.0  # times the small one: a large table is out of the cache, and a draw reads 80 bits in place of 16


def drawing(pmf: Pmf) -> Callable[[], Callable[[], None]]:
    """Single draws, the table made before."""

    def verb() -> None:
        for _ in range(DRAWS):
            sample(pmf)

    def set_up() -> Callable[[], None]:
        sample(pmf)
        return verb

    return set_up


def main(repeat: int = 7, sizes: tuple[int, ...] = SIZES) -> int:
    """Print microseconds and ratios; status 1 where a demand is not met."""
    small = measure(drawing(Pmf(0, (1, 2, 1))), repeat)[0].cpu_least
    met = True
    for size in sizes:
        pmf = Pmf(0, [1 + i % 7 for i in range(size)])
        for kind, law in (("as made", pmf), ("unpickled", pickle.loads(pickle.dumps(pmf)))):
            own = measure(drawing(law), repeat)[0].cpu_least
            met &= own <= AT_MOST * small
            verdict = "met" if own <= AT_MOST * small else "NOT MET"
            line = (
                f"single-draws [{size} points, {kind}] {1e6 * own / DRAWS:.1f} us a draw, {own / small:.1f} times three"
            )
            sys.stdout.write(f"{line} points; demand: at most {AT_MOST:g}: {verdict}\n")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
