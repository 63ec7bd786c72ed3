"""The paper's pair (45)-(46) of a quantised pmf beside the corrected one, and delta in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpopt.arithmetic import Enclosure, log_enclosure
from dpopt.pmf import Pmf
from dpopt.privacy.divergence import hockey_stick
from dpopt.record import Record

__all__ = ["BothDirections", "PrivacyPairs", "privacy_pairs"]


@dataclass(frozen=True, repr=False)
class BothDirections(Record):
    """delta(epsilon) for adding 1..m to the count (`forward`: p(z) against p(z - s)) and for taking away (`reverse`).

    Each is an exact enclosure, the largest over the shifts; only `worst` is a guarantee.
    """

    forward: Enclosure
    reverse: Enclosure

    @property
    def worst(self) -> Enclosure:
        """The larger of the two directions."""
        return Enclosure(
            max(self.forward.lower, self.reverse.lower),
            max(self.forward.upper, self.reverse.upper),
        )


@dataclass(frozen=True, repr=False)
class PrivacyPairs(Record):
    """The paper's pair (45)-(46) and the corrected pair of a key table, exactly.

    A largest ratio of neighbouring probabilities is rational, so delta *at* epsilon = ln(ratio) is rational as well
    and the pair is tested without rounding. None stands for an infinite ratio: a value within the support is lost.

    Parameters
    ----------
    forward_ratio : Fraction or None
        The largest p(z)/p(z-1) inside the support, (45): e to the paper's epsilon.
    reverse_ratio : Fraction or None
        The largest p(z-1)/p(z), which the paper does not look at.
    end_mass : Fraction
        (46), max(p(-D), p(D)): the mass that has no neighbour in one direction or the other.
    delta_forward, delta_reverse : Fraction or None
        The true delta at the paper's epsilon, in both directions.
    corrected_delta : Fraction or None
        The true delta at the corrected epsilon, the logarithm of the larger ratio.
    """

    forward_ratio: Fraction | None
    reverse_ratio: Fraction | None
    end_mass: Fraction
    delta_forward: Fraction | None
    delta_reverse: Fraction | None
    corrected_delta: Fraction | None

    @property
    def paper_epsilon(self) -> Enclosure | None:
        """epsilon of (45), with "at most" for its "less than"; None when infinite."""
        return None if self.forward_ratio is None else log_enclosure(max(self.forward_ratio, Fraction(1)))

    @property
    def paper_delta(self) -> Fraction:
        """delta of (46)."""
        return self.end_mass

    @property
    def paper_holds(self) -> bool:
        """Whether the table is (epsilon, delta)-DP with the paper's pair; proved either way."""
        if self.delta_forward is None or self.delta_reverse is None:
            return False
        return max(self.delta_forward, self.delta_reverse) <= self.end_mass

    @property
    def corrected_ratio(self) -> Fraction | None:
        """The larger of the two ratios: e to the corrected epsilon."""
        if self.forward_ratio is None or self.reverse_ratio is None:
            return None
        return max(self.forward_ratio, self.reverse_ratio, Fraction(1))

    @property
    def corrected_epsilon(self) -> Enclosure | None:
        """The least epsilon at which nothing but the end masses contributes, in both directions; None: infinite."""
        return None if self.corrected_ratio is None else log_enclosure(self.corrected_ratio)

    def text(self) -> str:
        """All of it for people; what is printed is cut to a screen."""
        word = "holds" if self.paper_holds else "does not hold"
        lines = [
            f"paper (45)-(46)  epsilon {_or_infinite(self.paper_epsilon)}, delta {float(self.end_mass):.9g}: {word}"
        ]
        if self.delta_forward is not None and self.delta_reverse is not None:
            forward, reverse = float(self.delta_forward), float(self.delta_reverse)
            lines.append(f"  true delta     forward {forward:.9g}, reverse {reverse:.9g}")
        delta = "unknown" if self.corrected_delta is None else f"{float(self.corrected_delta):.9g}"
        lines.append(f"corrected        epsilon {_or_infinite(self.corrected_epsilon)}, delta {delta}")
        return "\n".join(lines)


def _or_infinite(number: Enclosure | None) -> str:
    return "infinite" if number is None else str(number)


def privacy_pairs(pmf: Pmf) -> PrivacyPairs:
    """The pairs of a finite pmf at sensitivity 1.

    >>> privacy_pairs(Pmf(-1, (2, 4, 1))).paper_holds
    False
    """
    masses = pmf.weights
    forward = _largest(zip(masses[1:], masses, strict=False))
    reverse = _largest(zip(masses, masses[1:], strict=False))
    at_paper = None if forward is None else max(forward, Fraction(1))
    corrected = None if forward is None or reverse is None else max(forward, reverse, Fraction(1))

    def worst(factor: Fraction) -> Fraction:
        return max(hockey_stick(pmf, factor, 1), hockey_stick(pmf, factor, -1))

    return PrivacyPairs(
        forward_ratio=forward,
        reverse_ratio=reverse,
        end_mass=max(masses[0], masses[-1]) / pmf.total,
        delta_forward=None if at_paper is None else hockey_stick(pmf, at_paper, 1),
        delta_reverse=None if at_paper is None else hockey_stick(pmf, at_paper, -1),
        corrected_delta=None if corrected is None else worst(corrected),
    )


def _largest(pairs: Iterable[tuple[int, int]]) -> Fraction | None:
    """The largest ratio of the pairs, 0/0 left out; 0 when there is none and None when infinite."""
    best = Fraction(0)
    for over, under in pairs:
        if under == 0:
            if over:
                return None
            continue
        best = max(best, Fraction(over, under))
    return best
