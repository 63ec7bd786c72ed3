"""The smallest power of two for the key size: full support, and a wanted (epsilon, delta), each smaller one refuted."""

from __future__ import annotations

from dataclasses import dataclass

from dpopt.arithmetic import Number, exact, exact_integer
from dpopt.backends.registry import require_backend
from dpopt.errors import InputError, NotVerifiedError
from dpopt.proof.prove import Verified
from dpopt.record import Record
from dpopt.tables.ideal import Ideal, read_ideal
from dpopt.tables.key_table import KeyTable
from dpopt.tables.optimal import optimal_table
from dpopt.tables.quantise import Rule, key_table, read_rule

__all__ = ["KeySizeSearch", "Refutation", "smallest_key_size"]


@dataclass(frozen=True, repr=False)
class Refutation(Record):
    """Why a key size does not do; `proved` is False where the optimal table could be neither found nor excluded."""

    key_size: int
    reason: str
    proved: bool = True


@dataclass(frozen=True, repr=False)
class KeySizeSearch(Record):
    """The smallest power of two that does, its table, and a refutation of every smaller one.

    `found` is None when none up to the largest one does.
    """

    rule: Rule
    found: KeyTable | None
    refutations: tuple[Refutation, ...]

    @property
    def table(self) -> KeyTable:
        """The table of the smallest key size; raises `NotVerifiedError` when there is none."""
        if self.found is None:
            last = self.refutations[-1]
            raise NotVerifiedError(f"no key size up to {last.key_size} does; at the largest: {last.reason}")
        return self.found

    @property
    def key_size(self) -> int:
        """The smallest key size; raises `NotVerifiedError` when there is none."""
        return self.table.key_size

    @property
    def is_proved(self) -> bool:
        """Whether every smaller power of two is refuted exactly."""
        return all(refutation.proved for refutation in self.refutations)

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        lines = [f"{r.key_size}: {r.reason}{'' if r.proved else ' (not proved)'}" for r in self.refutations]
        last = "none does" if self.found is None else f"{self.found.key_size}: does, rule {self.rule}"
        return "\n".join([*lines, last])


def smallest_key_size(
    pmf: Ideal,
    epsilon: Number | None = None,
    delta: Number | None = None,
    *,
    sensitivity: Number = 1,
    rule: Rule | str = Rule.CEILING,
    largest: int = 1 << 64,
    backend: str = "highs",
) -> KeySizeSearch:
    """The smallest power of two K whose table keeps full support and, when wanted, is (epsilon, delta)-DP.

    Parameters
    ----------
    pmf : Pmf or (D, gamma)
    epsilon, delta : number, optional
        Both or none. Privacy is that of the integers, both directions, every shift up to `sensitivity`.
    rule : Rule or str
        How each table is made; with "optimal" a key size does when *any* table with full support, bias 0 and at most
        the pmf's variance keeps (epsilon, delta).
    largest : int
        Where the search ends.

    Examples
    --------
    >>> result = smallest_key_size((11, "1/21"))
    >>> result.key_size, len(result.refutations), result.refutations[-1].reason
    (4096, 12, 'the noise 11 is lost: no key yields it')
    """
    ideal, chosen = read_ideal(pmf), read_rule(rule)
    require_backend(backend)
    limit = exact_integer(largest, "largest", at_least=1)
    if (epsilon is None) != (delta is None):
        missing = "epsilon" if epsilon is None else "delta"
        raise InputError(missing, "must be given as well: (epsilon, delta) are wanted together")
    if delta is not None and not 0 <= exact(delta, "delta") <= 1:
        raise InputError("delta", f"must lie between 0 and 1, not {exact(delta, 'delta')}")
    question = (ideal, epsilon, delta, sensitivity)
    refutations: list[Refutation] = []
    size = 1
    while size <= limit:
        table = _optimal(*question, size, backend) if chosen is Rule.OPTIMAL else _rounded(*question, size, chosen)
        if isinstance(table, KeyTable):
            return KeySizeSearch(chosen, table, tuple(refutations))
        refutations.append(table)
        size *= 2
    return KeySizeSearch(chosen, None, tuple(refutations))


def _rounded(
    ideal: Ideal, epsilon: Number | None, delta: Number | None, sensitivity: Number, size: int, rule: Rule
) -> KeyTable | Refutation:
    """The table by a rounding rule, or what is wrong with it."""
    wanted = _has_mass(ideal)
    if size < sum(wanted):
        return Refutation(size, f"fewer keys than the {sum(wanted)} noise values")
    try:
        table = key_table(ideal, size, rule=rule)
    except InputError as error:
        if error.location != "key_size":
            raise
        return Refutation(size, error.problem)
    lost = [table.start + i for i, (n, needed) in enumerate(zip(table.counts, wanted, strict=True)) if needed and not n]
    if lost:
        return Refutation(size, f"the noise {', '.join(map(str, lost))} is lost: no key yields it")
    if epsilon is None or delta is None:
        return table
    reached, mass = table.delta(epsilon, sensitivity).worst, exact(delta, "delta")
    if reached.upper <= mass:
        return table
    proved = reached.lower > mass
    return Refutation(size, f"delta is {float(reached.upper):.9g} at epsilon {epsilon}, more than {delta}", proved)


def _optimal(
    ideal: Ideal, epsilon: Number | None, delta: Number | None, sensitivity: Number, size: int, backend: str
) -> KeyTable | Refutation:
    """The optimal table, or why there is none."""
    solution = optimal_table(ideal, size, epsilon=epsilon, delta=delta, sensitivity=sensitivity, backend=backend)
    if solution.verified in (Verified.OPTIMAL, Verified.FEASIBLE):
        return solution.table
    return Refutation(size, solution.message, solution.verified is Verified.INFEASIBLE)


def _has_mass(ideal: Ideal) -> list[bool]:
    """Which points of the support have mass: the family has it everywhere."""
    if isinstance(ideal, tuple):
        return [True] * (2 * ideal[0] + 1)
    return [w > 0 for w in ideal.weights]
