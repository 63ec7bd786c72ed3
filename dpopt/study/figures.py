"""The figures of the ABS paper, and the study over KEYSIZE, as tables: every delta in them is proved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpopt.arithmetic import Enclosure, Number, exact, exact_integer
from dpopt.designing.side_by_side import best_rate, paper_ranges
from dpopt.errors import InputError
from dpopt.family.members import analytic_rate, family_pmf
from dpopt.family.profile import family_rate
from dpopt.privacy.profile import privacy_profile
from dpopt.reading import read_choice, read_integers, read_list
from dpopt.study.figure_table import Cell, Figure, Panel, nearest, read_axis
from dpopt.tables.key_table import KeyTable
from dpopt.tables.quantise import Rule, key_table

__all__ = ["Figure", "Panel", "delta_against_epsilon", "design_against_epsilon", "study_of_key_sizes"]

# --- Fig. 1 ----------------------------------------------------------------------------------------------------------


def delta_against_epsilon(
    members: Sequence[tuple[int, Number]] = ((11, 4), (11, 10), (15, 4), (15, 10)),
    epsilons: Iterable[Number] | None = None,
    *,
    sensitivity: Number = 1,
) -> Figure:
    """Fig. 1: delta against epsilon for TableBuilder noise with some (D, V), in both directions.

    Parameters
    ----------
    members : sequence of (D, V)
    epsilons : iterable of numbers, optional
        0 to 4 in steps of 0.05 by default.
    sensitivity : number

    Examples
    --------
    >>> print(delta_against_epsilon([(11, 4), (11, 10)], [1, 3]))
    Fig. 1: delta against epsilon, sensitivity 1
    <BLANKLINE>
    epsilon  D=11, V=4       D=11, V=10
    -------  --------------  --------------
    1        0.00724877798   0.000342799357
    3        5.38489771e-08  0.000303923516
    """
    chosen = _epsilons(epsilons, Fraction(0), Fraction(4))
    names, curves = [], []
    for i, member in enumerate(read_list(members, "members", "pairs (D, V)")):
        D, V = _read_member(member, f"members[{i}]")  # noqa: N806
        pmf = family_pmf(D, family_rate(D, V).upper)
        profile = privacy_profile(pmf, chosen, sensitivity=sensitivity)
        names.append(f"D={D}, V={V}")
        curves.append([nearest(Enclosure(*ends)) for ends in zip(profile.lower, profile.upper, strict=True)])
    rows = zip(map(float, chosen), *curves, strict=True)
    return Figure(
        "1",
        f"Fig. 1: delta against epsilon, sensitivity {float(exact(sensitivity, 'sensitivity')):g}",
        ("epsilon", *names),
        tuple(tuple(row) for row in rows),
        (Panel("delta(epsilon) of TableBuilder noise", "epsilon", tuple(names), "delta", log_y=True),),
    )


def _read_member(member: object, argument: str) -> tuple[int, Fraction]:
    pair = read_list(member, argument, "two numbers, (D, V)")
    if len(pair) != 2:
        raise InputError(argument, f"must be a pair (D, V), not {member!r}")
    return exact_integer(pair[0], f"{argument}[0]", at_least=0), exact(pair[1], f"{argument}[1]")


# --- Fig. 2 ----------------------------------------------------------------------------------------------------------

_DESIGN = (
    "D", "epsilon", "gamma analytic", "V analytic", "delta analytic", "gamma best", "j", "V best", "delta best",
    "times the best",
)  # fmt: skip


def design_against_epsilon(half_widths: Sequence[int] = (11, 15), epsilons: Iterable[Number] | None = None) -> Figure:
    """Fig. 2: the paper's rule (28), (29) against the best gamma, and its V, for some D (sensitivity 1).

    The paper scans a grid of gamma; here the best one is proved over all gamma, as in `dpopt.best_rate`.

    Parameters
    ----------
    half_widths : sequence of int
        The values of D.
    epsilons : iterable of numbers, optional
        0.25 to 4 in steps of 0.05 by default; each above 0.

    Examples
    --------
    >>> figure = design_against_epsilon([11], [1, 3])
    >>> [f"{delta:.6g}" for delta in figure.column("delta analytic")]
    ['0.000387357', '6.63416e-09']
    >>> figure.column("j")
    [1, 0]
    """
    chosen = _epsilons(epsilons, Fraction(1, 4), Fraction(4))
    if min(chosen) <= 0:
        raise InputError("epsilons", "must be above 0: at 0 the best noise is uniform")
    rows = [
        _design_row(D, epsilon) for D in read_integers(half_widths, "half_widths", at_least=1) for epsilon in chosen
    ]
    panels = (
        Panel(
            "delta: the paper's rule and the best",
            "epsilon",
            ("delta analytic", "delta best"),
            "delta",
            "D",
            log_y=True,
        ),
        Panel("variance of the paper's rule", "epsilon", ("V analytic",), "V", "D"),
    )
    return Figure("2", "Fig. 2: the paper's rule against the best gamma, sensitivity 1", _DESIGN, tuple(rows), panels)


def _design_row(half_width: int, epsilon: Fraction) -> tuple[Cell, ...]:
    ranges, best = paper_ranges(epsilon, half_width), best_rate(half_width, epsilon)
    delta = ranges.delta[0]
    return (
        half_width,
        float(epsilon),
        float(ranges.gamma[1]),
        nearest(ranges.V[0]),
        nearest(delta),
        float(best.gamma),
        best.j,
        nearest(best.V),
        nearest(best.delta),
        float(sum(delta) / sum(best.delta)),
    )


# --- the study over KEYSIZE ------------------------------------------------------------------------------------------

_KEYS = (
    "rule", "bits", "lost", "bias", "variance", "paper epsilon", "paper delta", "holds", "true forward", "true reverse",
    "corrected epsilon", "corrected delta", "delta at epsilon",
)  # fmt: skip


def study_of_key_sizes(
    D: int = 11,  # noqa: N803
    epsilon: Number = 1,
    bits: Iterable[int] = range(8, 33),
    rules: Sequence[Rule | str] = (Rule.CEILING, Rule.SYMMETRIC),
) -> Figure:
    """The study over KEYSIZE = 2^bits: the paper's pair (45)-(46), what is true at its epsilon, and the corrected pair.

    The noise is the paper's design, gamma = epsilon / (2D - 1); the sensitivity is 1.

    Parameters
    ----------
    D : int
    epsilon : number
    bits : iterable of int
    rules : sequence of Rule or str
        Rule "optimal" takes seconds for each key size.

    Examples
    --------
    >>> figure = study_of_key_sizes(bits=[12, 16], rules=["ceiling"])
    >>> figure.column("holds"), [f"{delta:.5e}" for delta in figure.column("true reverse")]
    ([False, False], ['5.49316e-04', '4.21964e-04'])
    """
    half, value = exact_integer(D, "D", at_least=1), exact(epsilon, "epsilon")
    if value <= 0:
        raise InputError("epsilon", f"must be above 0, not {value}")
    rate = analytic_rate(half, value, 1)
    assert rate is not None
    sizes = read_integers(bits, "bits", at_least=0)
    chosen = [read_choice(Rule, rule, f"rules[{i}]") for i, rule in enumerate(read_list(rules, "rules", "rules"))]
    rows = []
    for rule in chosen:
        for power in sizes:
            try:
                table = key_table((half, rate), 1 << power, rule=rule)
            except InputError as error:
                if error.location != "key_size":  # too small for this rule: no row
                    raise
                continue
            rows.append((str(rule), power, *_table_cells(table, value)))
    x = "bits"
    panels = (
        Panel("epsilon", x, ("paper epsilon", "corrected epsilon"), "epsilon", "rule"),
        Panel("delta", x, ("paper delta", "true reverse", "delta at epsilon"), "delta", "rule", log_y=True),
    )
    title = f"Key sizes 2^bits for D = {half}, epsilon = {float(value):g}, sensitivity 1"
    return Figure("keys", title, _KEYS, tuple(rows), panels)


def _table_cells(table: KeyTable, epsilon: Fraction) -> tuple[Cell, ...]:
    pairs = table.privacy_pairs()
    return (
        len(table.counts) - len(table.effective_support),
        float(table.bias),
        float(table.variance),
        nearest(pairs.paper_epsilon),
        float(pairs.paper_delta),
        pairs.paper_holds,
        nearest(pairs.delta_forward),
        nearest(pairs.delta_reverse),
        nearest(pairs.corrected_epsilon),
        nearest(pairs.corrected_delta),
        nearest(table.delta(epsilon).worst),
    )


def _epsilons(given: Iterable[Number] | None, first: Fraction, last: Fraction) -> tuple[Fraction, ...]:
    """What was given, read; else the range in steps of 0.05."""
    if given is not None:
        return read_axis(given, "epsilons")
    step = Fraction(1, 20)
    return tuple(first + i * step for i in range(int((last - first) / step) + 1))
