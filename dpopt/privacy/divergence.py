"""What a pmf guarantees: its hockey-stick divergence, and delta at an epsilon.

Adding noise Z to a count that may change by up to m moves the pmf by a shift s, 1 <= |s| <= m. Every function here
answers for all shifts in both directions; sums over geometric tails are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from dpopt.arithmetic import Enclosure, Number, exact_nonnegative, exp_enclosure, is_at_most_exp, read_bits
from dpopt.errors import InputError
from dpopt.patience import patiently
from dpopt.pmf import Pmf, extension_bits, read_pmf
from dpopt.privacy.enclosed import enclosed_delta, is_long
from dpopt.privacy.ratios import is_too_long, largest_ratio_pair
from dpopt.privacy.shifts import deciding_shifts, explicit_weights, lattice_shift
from dpopt.work import Work, require

__all__ = ["delta", "delta_between", "divergence_work", "hockey_stick", "is_pure", "worst_hockey_stick"]


def hockey_stick(pmf: Pmf, factor: Fraction, shift: int) -> Fraction:
    """The sum over all integers k of ``max(p(k) - factor * p(k - shift), 0)``, exactly, for a signed shift.

    `factor` stands for e^epsilon: with a lower end of its enclosure this is an upper bound of the divergence.
    """
    numerator, denominator = factor.numerator, factor.denominator
    return _pair_sum(pmf, shift, lambda w, v: max(w * denominator - v * numerator, 0)) / denominator


def _pair_sum(pmf: Pmf, shift: int, term: Callable[[int, int], int]) -> Fraction:
    """The sum of ``term(p(k), p(k - shift))`` over all integers, for a term that scales with its arguments.

    ``term(0, v)`` must be 0. The term repeats outward with a tail's period and ratio from where both points lie in the
    tail or in the block that it grows from, which is twice the shift beyond the core at most.
    """
    if pmf.tails is None:
        return sum(map(term, pmf.weights, _moved(pmf.weights, shift))) / pmf.total
    reach, period = abs(shift), pmf.tails.period
    _, weights, unit = explicit_weights(pmf, 2 * reach)
    terms = [term(weights[i], weights[i - shift]) for i in range(reach, len(weights) - reach)]
    total = Fraction(sum(terms))
    for ratio, block in ((pmf.tails.left, terms[:period]), (pmf.tails.right, terms[-period:])):
        if ratio is not None:
            total += sum(block) * ratio / (1 - ratio)
    return total / unit


def _moved(weights: Sequence[int], shift: int) -> list[int]:
    """``weights[k - shift]`` for each k, 0 outside."""
    size = len(weights)
    if abs(shift) >= size:
        return [0] * size
    if shift >= 0:
        return [0] * shift + list(weights[: size - shift])
    return list(weights[-shift:]) + [0] * -shift


def worst_hockey_stick(pmf: Pmf, factor: Fraction, shift: int) -> Fraction:
    """The largest hockey-stick divergence over all shifts 1..`shift`, both directions."""
    shifts = deciding_shifts(pmf, shift)
    require(
        "sensitivity",
        divergence_work(pmf, factor, shifts),
        f"takes exact divergences at {len(shifts)} shifts, up to {shifts[-1]} lattice steps",
        "give a coarser step or a smaller sensitivity",
    )
    directions = (1,) if pmf.is_symmetric else (1, -1)
    return max(hockey_stick(pmf, factor, sign * s) for s in patiently(shifts, every=1) for sign in directions)


def divergence_work(pmf: Pmf, factor: Fraction, shifts: range) -> Work:
    """What `worst_hockey_stick` takes: a term for each point of the core and of the tails within twice the shift."""
    directions = 1 if pmf.is_symmetric else 2
    reach = 0 if pmf.tails is None else 2 * shifts[-1]
    longest = max(pmf.weights).bit_length()
    if pmf.tails is not None:
        longest += extension_bits(pmf, reach)
    bits = longest + factor.numerator.bit_length() + factor.denominator.bit_length()
    terms = Work.on_integers(len(pmf.weights) + 2 * reach, bits, steps=2)
    return Work(terms.bit_operations * directions * len(shifts), 2 * terms.bytes)


def delta(pmf: Pmf, epsilon: Number, sensitivity: Number = 1, *, bits: int = 128) -> Enclosure:
    """The tight delta at `epsilon`: a proved enclosure of the worst hockey-stick divergence.

    Parameters
    ----------
    pmf : Pmf
        The noise, or anything with a `pmf` attribute.
    epsilon : number
        At least 0, exact.
    sensitivity : number
        In data units; all shifts up to ``floor(sensitivity / step)`` lattice steps count, in both directions.
    bits : int
        Bits of the enclosure of e^epsilon.

    Examples
    --------
    >>> delta(Pmf(0, (1,) * 10), 1).upper
    Fraction(1, 10)
    """
    pmf = read_pmf(pmf, "pmf")
    value = exact_nonnegative(epsilon, "epsilon")
    shift = lattice_shift(sensitivity, pmf.step)
    growth = exp_enclosure(value, read_bits(bits))
    if pmf.tails is not None and not is_too_long(pmf, shift) and is_pure(pmf, value, shift):
        return Enclosure(Fraction(0), Fraction(0))
    if is_long(pmf, shift):
        return enclosed_delta(pmf, growth, shift)
    upper = worst_hockey_stick(pmf, growth.lower, shift)
    return Enclosure(worst_hockey_stick(pmf, growth.upper, shift) if growth.width else upper, upper)


def is_pure(pmf: Pmf, epsilon: Fraction, shift: int) -> bool:
    """Whether delta is 0 at `epsilon`, exactly: the largest ratio is at most e^epsilon (noise paper, Theorem 1)."""
    pair = largest_ratio_pair(pmf, shift)
    return pair.denominator != 0 and is_at_most_exp(Fraction(pair.numerator, pair.denominator), epsilon)


def delta_between(output: Pmf, neighbour: Pmf, epsilon: Number, *, bits: int = 128) -> Enclosure:
    """The hockey-stick divergence of two output laws, one direction: sum of ``max(p(k) - e^epsilon q(k), 0)``.

    For noise that depends on the count, the rows of a p-table for counts n and n + 1 moved to n and n + 1, every pair
    of neighbouring rows has to be looked at, in both directions.

    Parameters
    ----------
    output, neighbour : Pmf
        Or anything with a `pmf` attribute; without tails, on the same lattice.

    Examples
    --------
    >>> delta_between(Pmf(0, (1, 1)), Pmf(1, (1, 1)), 1).upper
    Fraction(1, 2)
    """
    output, neighbour = read_pmf(output, "output"), read_pmf(neighbour, "neighbour")
    value, bits = exact_nonnegative(epsilon, "epsilon"), read_bits(bits)
    if output.tails is not None or neighbour.tails is not None:
        raise InputError("neighbour", "must have a finite support, and so must output")
    if output.step != neighbour.step:
        raise InputError("neighbour", f"must have the step {output.step}, not {neighbour.step}")

    def excess(factor: Fraction) -> Fraction:
        parts = (output.probability(k) - factor * neighbour.probability(k) for k in range(output.start, output.end + 1))
        return sum((part for part in parts if part > 0), Fraction(0))

    low, high = exp_enclosure(value, read_bits(bits))
    return Enclosure(excess(high), excess(low))
