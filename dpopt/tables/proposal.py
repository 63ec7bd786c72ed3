"""What a solver proposes: counts from an integer program near a base, moved there when the base is too far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpopt.backends.base import Backend, Claim, ask
from dpopt.tables.costs import TableCost
from dpopt.tables.offsets import Dual, offset_program
from dpopt.tables.question import Question

__all__ = ["Proposer"]

_REACH = 1 << 10  # keys that an integer column may move from its base; a wider move recentres first
_NEAR = 4  # offsets up to which segments are one key wide, so that their cost is exact
_ROUNDS = 6
_COARSE_BITS, _FINER_BITS = 12, 8
_MOST_REPAIRS = 100_000


@dataclass
class Proposer:
    """The solver's part: programs near a base, and what came back."""

    question: Question
    cost: TableCost
    solver: Backend
    options: Mapping[str, Any]
    claim: Claim | None = None
    base: list[int] = field(default_factory=list)
    repaired: int = 0

    def propose(self) -> list[int] | None:
        """Counts that answer the question, from the integer program; None when it gives none."""
        self.base = self.question.floors()
        found = self._integers()
        far = found is None or max(abs(n - b) for n, b in zip(found, self.base, strict=True)) > _NEAR
        if far and self._recentre():  # far from the base a cost is a chord, and the rows may not be met at all
            again = self._integers()
            if found is None or (again is not None and self.cost.value(again).upper < self.cost.value(found).upper):
                found = again
        return found

    def _integers(self) -> list[int] | None:
        """One integer program around the base; its hockey-stick rows are tightened when the answer misses them."""
        for margin in (0.0, 1e-6, 1e-3):
            program = offset_program(
                self.question, self.cost, self.base, unit=1, reach=_REACH, integer=True, margin=margin
            )
            self.claim = ask(self.solver, program.program, self.options)
            if not self.claim.has_point or not np.all(np.isfinite(self.claim.x)):
                return None
            answer = program.counts(self.claim.x)
            counts = _repair(self.question, self.cost, answer)
            if counts is not None and self.question.holds(counts):
                self.repaired = sum(abs(a - b) for a, b in zip(counts, answer, strict=True))
                return counts
            if self.question.privacy is None:
                return None
        return None

    def _recentre(self) -> bool:
        """Move the base to near the best real table: linear programs in units of 2^j keys, ever finer."""
        bits = max(self.question.key_size.bit_length() - _COARSE_BITS, 0)
        while True:
            for _ in range(_ROUNDS):
                moved = self._relax(1 << bits)
                if moved is None:
                    return False
                if moved <= _NEAR << bits:
                    break
            if bits == 0:
                return True
            bits = max(bits - _FINER_BITS, 0)

    def _relax(self, unit: int) -> int | None:
        """Move the base to the point of one linear program; the longest move, or None when there is no point."""
        reach = 1 << _COARSE_BITS
        program = offset_program(self.question, self.cost, self.base, unit=unit, reach=reach, integer=False)
        claim = ask(self.solver, program.program, self.options)
        if not claim.has_point or not np.all(np.isfinite(claim.x)):
            return None
        before, top = self.base, self.question.largest_count
        answer = zip(program.counts(claim.x), self.question.wanted, strict=True)
        self.base = [min(max(n, 1), top) if needed else 0 for n, needed in answer]
        return max(abs(n - b) for n, b in zip(self.base, before, strict=True))

    def dual(self) -> Dual:
        """Multipliers of the linear relaxation around the base; zeros when the solver gives none."""
        program = offset_program(self.question, self.cost, self.base, unit=1, reach=_REACH, integer=False)
        claim = ask(self.solver, program.program, self.options)
        if claim.y.size == 0 or not np.all(np.isfinite(claim.y)):
            return Dual(0.0, 0.0, 0.0)
        return program.dual(claim.y)


def _repair(question: Question, cost: TableCost, answer: Sequence[int]) -> list[int] | None:
    """The counts with a sum of K and a bias of 0, by moving the cheapest keys; None when that takes too many."""
    counts = [max(n, 1) if needed else 0 for n, needed in zip(answer, question.wanted, strict=True)]
    places = [i for i, needed in enumerate(question.wanted) if needed]
    total, _, _ = question.moments(counts)
    middle = min(places, key=lambda i: abs(i + question.ideal.start))
    counts[middle] += question.key_size - total
    if counts[middle] < 1:
        return None
    _, bias, _ = question.moments(counts)
    if abs(bias) > _MOST_REPAIRS:
        return None
    while bias:
        toward = -1 if bias > 0 else 1
        moves = [
            (
                cost.at(i, counts[i] - 1) + cost.at(j, counts[j] + 1) - cost.at(i, counts[i]) - cost.at(j, counts[j]),
                i,
                j,
            )
            for i, j in (zip(places[1:], places, strict=False) if toward < 0 else zip(places, places[1:], strict=False))
            if counts[i] > 1 and abs(j - i) <= abs(bias)
        ]
        if not moves:
            return None
        _, i, j = min(moves)
        counts[i], counts[j] = counts[i] - 1, counts[j] + 1
        bias += j - i
    return counts
