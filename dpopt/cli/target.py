"""`dpopt target`: D and V for a wanted (epsilon, delta), and the questions the other way round."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpopt.cli.door import NOT_PROVED, PROVED, Result, app
from dpopt.cli.files import Force, Outputs
from dpopt.cli.shared import (
    Json,
    TimeLimit,
    Verbose,
    is_proved,
    json_text,
    not_written,
    progress,
    solution_result,
)
from dpopt.cli.sources import Backend, Sensitivity, read_half_width, read_moves
from dpopt.errors import InputError

if TYPE_CHECKING:
    from dpopt.arithmetic import Enclosure

__all__: list[str] = []  # the command registers itself

_MOST_POINTS = 1000


@app.command()
def target(
    delta: Annotated[str, typer.Option("--delta", metavar="DELTA", help="The delta wanted.")],
    epsilon: Annotated[str | None, typer.Option("--epsilon", metavar="EPSILON", help="The epsilon wanted.")] = None,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="analytic, tablebuilder or any; all three by default.")
    ] = None,
    then: Annotated[
        str | None, typer.Option(metavar="WHAT", help="At the least D: min-delta, min-variance or max-entropy.")
    ] = None,
    sensitivity: Sensitivity = "1",
    half_width: Annotated[
        str | None, typer.Option("--D", metavar="D", help="For a given D: the least V, or with --V the least epsilon.")
    ] = None,
    variance: Annotated[str | None, typer.Option("--V", metavar="V", help="With --D and without --epsilon.")] = None,
    frontier: Annotated[
        int | None, typer.Option(metavar="N", help="The variances that do, for N values of D from the least on.")
    ] = None,
    backend: Backend = "auto",
    certificate: Annotated[
        Path | None, typer.Option(metavar="OUT", readable=False, help="Write one family's certificate here.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    time_limit: TimeLimit = None,
    verbose: Verbose = False,
) -> Result:
    """The smallest D, and V, that reach (epsilon, delta): three families side by side, or one with its certificate."""
    import dpopt

    asked = _Asked(epsilon, delta, sensitivity, family, backend, verbose, time_limit)
    for option, given in (("--then", then), ("--certificate", certificate)):
        if given is not None and (family is None or half_width is not None or frontier is not None):
            raise InputError(option, "goes with the design of one family: add --family, without --D and --frontier")
    if frontier is not None and frontier > _MOST_POINTS:
        raise InputError("--frontier", f"must be at most {_MOST_POINTS}, not {frontier}")
    read_moves(sensitivity)
    outputs = Outputs({"--certificate": certificate}, force=force, as_json=as_json)
    if half_width is not None or variance is not None:
        return asked.inverse(half_width, variance, frontier, as_json)
    if epsilon is None:
        raise InputError("--epsilon", "is missing (it may be left out with --D and --V)")
    if frontier is not None:
        return asked.frontier(frontier, as_json)
    if family is None:
        return asked.side_by_side(as_json)
    question = dpopt.target(epsilon=epsilon, delta=delta, family=family, sensitivity=sensitivity, then=then)
    with asked.patiently("searching for the smallest support"), not_written(certificate):
        solution = dpopt.solve(question, backend)
    return solution_result(solution, outputs, as_json)


class _Asked:
    """The question, and an answer for each way to put it."""

    def __init__(
        self,
        epsilon: str | None,
        delta: str,
        sensitivity: str,
        family: str | None,
        backend: str,
        verbose: bool,
        time_limit: float | None,
    ) -> None:
        self.epsilon, self.delta, self.sensitivity, self.family = epsilon, delta, sensitivity, family
        self.backend = backend
        self.verbose, self.time_limit = verbose, time_limit

    def patiently(self, what: str) -> contextlib.AbstractContextManager[Any]:
        """A spinner and the time limit."""
        return progress(what, self.verbose, self.time_limit)

    def side_by_side(self, as_json: bool) -> Result:
        """The three designs; where one is not proved, its reason instead of the table."""
        import dpopt

        assert self.epsilon is not None
        with self.patiently("searching for the smallest supports"):
            found = dpopt.designs(self.epsilon, self.delta, self.sensitivity, backend=self.backend)
            for row in found.rows:
                if not is_proved(row.solution.verified):
                    return Result(f"family '{row.family}': not proved: {row.solution.message}", NOT_PROVED)
            return Result(json_text(found.to_dict()) if as_json else found.text())

    def frontier(self, points: int, as_json: bool) -> Result:
        """The variances for some values of D."""
        import dpopt

        assert self.epsilon is not None
        family = self.family or "tablebuilder"
        with self.patiently("searching for the frontier"):
            found = dpopt.frontier(
                self.epsilon, self.delta, self.sensitivity, family=family, points=points, backend=self.backend
            )
            return Result(json_text(found.to_dict()) if as_json else found.text())

    def inverse(self, half_width: str | None, variance: str | None, frontier: int | None, as_json: bool) -> Result:
        """The least epsilon of (D, V), or the least V on [-D, D]."""
        import dpopt

        if half_width is None or (variance is None) == (self.epsilon is None) or frontier is not None:
            raise InputError("--D", "goes with --V (the least epsilon) or with --epsilon (the least V), one of them")
        D = read_half_width(half_width)  # noqa: N806
        question = {"D": D, "delta": self.delta, "sensitivity": self.sensitivity}
        if variance is not None:
            if self.family is not None:
                raise InputError("--family", "does not go with --V: D and V name the noise")
            least = dpopt.best_epsilon(D=D, V=variance, delta=self.delta, sensitivity=self.sensitivity)
            return _answer({**question, "V": variance}, "epsilon", least, as_json)
        assert self.epsilon is not None
        family = self.family or "tablebuilder"
        with self.patiently("searching for the least variance"):
            found = dpopt.least_variance(
                D=D,
                epsilon=self.epsilon,
                delta=self.delta,
                sensitivity=self.sensitivity,
                family=family,
                backend=self.backend,
            )
        return _answer({**question, "epsilon": self.epsilon, "family": family}, "V", found.V, as_json)


def _answer(question: dict[str, Any], name: str, least: Enclosure, as_json: bool) -> Result:
    from dpopt.text import decimal_text

    if as_json:
        return Result(json_text({**question, name: float(least.upper)}), PROVED)
    given = ", ".join(f"{key} {value}" for key, value in question.items())
    return Result(f"least {name} {decimal_text(least.upper, 12, up=True)} (proved) for {given}", PROVED)
