"""The independent checker: from a certificate's statement to what it proves, with no solver in sight.

The statement gives a problem, an exact pmf and integer multipliers. Nothing else is believed: the constraints are
checked on the pmf itself, and the multipliers are put through weak duality, which turns *any* numbers into a rigorous
bound (bad ones only make it weak). The steps:

1. e^epsilon is enclosed between two rationals E_lo <= e^epsilon <= E_hi;
2. every constraint is decided on the pmf, with the margin it is met by;
3. the multipliers y give the reduced cost ``d = cost - sum y h + ...`` of every lattice point, with E_hi for
   e^epsilon, and ``objective >= constant + lambda`` where lambda is the largest number that a theorem allows
   (the least reduced cost; on all integers with a chain, the theorem at `_chain_bound`);
4. value and bound together say optimal, feasible or infeasible.

Everything is integer arithmetic over common denominators; balls are used for logarithms only.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from math import comb, lcm
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpopt.arithmetic import Enclosure, ball, exp_enclosure, floor_scaled
from dpopt.errors import CertificateError, InputError
from dpopt.lattice_function import LatticeFunction, Polynomial, geometric_sum, shifted
from dpopt.proof.statement import (
    MAX_POINTS,
    Chain,
    Constraint,
    Events,
    Law,
    Objective,
    Statement,
    brief,
    parse_json,
    read_statement,
    text,
)

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Verdict", "certify", "derive", "verify"]

BITS = 64  # logarithms are rounded to multiples of 2^-64
OPTIMAL_GAP = Fraction(1, 10**6)
_LONGEST = 4096  # bits of a denominator that is still written out
_MAX_BITS = 8_000_000_000  # of all integers of one computation together (1 GB)
_MAX_STEPS = 5_000_000_000  # comparisons of hockey-stick sums
_MAX_HORIZON = 1 << 21  # points beyond the tables at which a tail polynomial is evaluated one by one


# --- the three doors ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What `verify` found: whether the certificate holds, why not, and what it then proves.

    `verified` is ``"optimal"``, ``"feasible"``, ``"infeasible"``, or ``"failed"`` when the certificate does not hold.
    """

    holds: bool
    reason: str
    verified: str

    def __bool__(self) -> bool:
        return self.holds


def derive(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that a statement proves, as canonical JSON data.

    Parameters
    ----------
    statement : mapping
        The certificate's JSON data; its ``"derived"`` entry, if any, is ignored.

    Returns
    -------
    dict
        ``enclosures``, ``value``, ``bound``, ``verified`` and ``checks``, numbers as canonical strings.

    Raises
    ------
    CertificateError
        The statement is malformed, a constraint does not hold, or an infeasibility proof proves nothing.
    """
    try:
        if isinstance(statement, Mapping) and statement.get("kind") == "target":
            from dpopt.proof.target_checker import derive_target  # reads targets, which only these certificates hold

            return derive_target(statement, derive)
        return _Derivation.of(read_statement(statement)).result()
    except InputError as error:
        message = str(error)
        raise CertificateError(message if len(message) <= 300 else message[:297] + "...") from error
    except (ArithmeticError, MemoryError) as error:
        raise CertificateError(f"cannot be decided: {error or type(error).__name__}") from error


def certify(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The statement with its ``"derived"`` entry filled in: a certificate."""
    return {**statement, "derived": derive(statement)}


def verify(source: str | Path | Mapping[str, Any]) -> Verdict:
    """Check a certificate: the path of its file, or its data.

    Raises
    ------
    InputError
        The file cannot be read. Whatever the file contains, the answer is a verdict.
    """
    try:
        data = parse_json(_content(Path(source))) if isinstance(source, str | Path) else source
        expected = derive(data)  # type: ignore[arg-type]  # reading begins by checking that this is an object
        if not isinstance(data, Mapping) or "derived" not in data:
            raise CertificateError("certificate: lacks the key 'derived'")
        _same(data["derived"], expected, "derived")
        reason = f"the certificate proves: {expected['verified']}{_trusted(data)}"
    except CertificateError as error:
        return Verdict(False, str(error), "failed")
    except InputError:
        raise
    except Exception as error:  # whatever a hostile file manages to do, it is not a proof
        return Verdict(False, f"not a readable certificate ({type(error).__name__}: {brief(str(error))})", "failed")
    return Verdict(True, reason, expected["verified"])


def _trusted(data: Mapping[str, Any]) -> str:
    """What a verdict rests on besides proof: the rows that stand for custom types."""
    trusted = data.get("trusted") or {}
    parts = [f"constraint {i}" for i in trusted.get("constraints") or {}]
    parts += ["the objective"] if trusted.get("objective") else []
    return f"; taken on trust: the stored rows of {', '.join(parts)}" if parts else ""


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError("source", f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise CertificateError("not a JSON file: it is not UTF-8 text") from None


def _same(given: object, expected: object, where: str) -> None:
    """Raise unless the two JSON values are equal, naming the first field that differs."""
    if isinstance(expected, dict):
        if not isinstance(given, Mapping) or set(given) != set(expected):
            raise CertificateError(f"{where}: must have exactly the keys {', '.join(expected)}")
        for key, value in expected.items():
            _same(given[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        if not isinstance(given, list | tuple) or len(given) != len(expected):
            raise CertificateError(f"{where}: must be a list of {len(expected)} entries")
        for i, value in enumerate(expected):
            _same(given[i], value, f"{where}[{i}]")
    elif type(given) is not type(expected) or given != expected:
        raise CertificateError(f"{where}: states {brief(given)}, but {brief(expected)} follows from the statement")


@dataclass(frozen=True)
class _Derivation:
    """A statement with the enclosures of its e^epsilon; the methods follow the steps of the module's docstring."""

    statement: Statement
    enclosures: Mapping[Fraction, Enclosure]

    @classmethod
    def of(cls, statement: Statement) -> _Derivation:
        found = [c.epsilon for c in statement.constraints if c.form in ("pure-dp", "approx-dp")]
        found += [statement.objective.epsilon] if statement.objective.form == "delta" else []
        return cls(statement, {epsilon: exp_enclosure(epsilon, statement.precision) for epsilon in found})

    def result(self) -> dict[str, Any]:
        """The canonical derived data."""
        checks = self.checks()
        value = self.value()
        bound = self.bound()
        return {
            "enclosures": {text(e): [text(x.lower), text(x.upper)] for e, x in self.enclosures.items()},
            "value": None if value is None else [text(value.lower), text(value.upper)],
            "bound": None if bound is None else text(bound),
            "verified": "infeasible" if value is None else self.verified(value, bound),
            "checks": checks,
        }

    def checks(self) -> list[dict[str, Any]]:
        """Decide every constraint on the pmf; the first that fails is an error."""
        law, found = self.statement.law, []
        if law is None:
            return []
        total = _total(law)
        for i, constraint in enumerate(self.statement.constraints):
            try:
                margin = self.margin(law, total, constraint)
            except CertificateError as error:
                raise CertificateError(f"problem.constraints[{i}] ({brief(constraint.type)}): {error}") from None
            found.append({"constraint": constraint.type, "holds": True, "margin": text(_short(margin).lower)})
        return found

    def margin(self, law: Law, total: Fraction, constraint: Constraint) -> Fraction:
        """By how much `constraint` holds, at least; an error if it does not."""
        if constraint.form == "terms":
            return _terms_margin(law, total, constraint)
        if constraint.form == "symmetric":
            return _symmetric_margin(law)
        if constraint.form == "unimodal":
            return _unimodal_margin(law, total, constraint.mode)
        if constraint.form == "pure-dp":
            return _pure_margin(law, constraint.epsilon, constraint.shift, infinite=self.statement.window is None)
        lower = self.enclosures[constraint.epsilon].lower
        return _room(constraint.delta - _divergence(law, total, constraint.shift, lower), "the hockey-stick divergence")

    def value(self) -> Enclosure | None:
        """The objective at the pmf."""
        law, objective = self.statement.law, self.statement.objective
        if law is None:
            return None
        total = _total(law)
        if objective.form == "entropy":
            return _entropy(law)
        if objective.form == "delta":
            ends = self.enclosures[objective.epsilon]
            lower, upper = (_divergence(law, total, objective.shift, e) for e in (ends.upper, ends.lower))
            return Enclosure(_short(lower).lower, _short(upper).upper)
        if objective.form == "linear":
            return _short(_expectation(law, total, objective.cost))
        return _short(self.statement.step * _wasserstein(law, total, objective))

    def bound(self) -> Fraction | None:
        """The bound that the multipliers prove; None if they prove none."""
        statement, chain = self.statement, self.statement.multipliers.chain
        upper = {epsilon: int(ends.upper * (1 << statement.precision)) for epsilon, ends in self.enclosures.items()}
        parts = _parts(statement, upper)
        reduced, forbidden = _reduced(statement, parts), statement.forbidden | _implied_zeros(statement)
        allowed = [v for k, v in enumerate(reduced.values, reduced.low) if k not in forbidden]
        if statement.window is not None and not allowed:
            if statement.infeasible:
                return None  # nothing is left to carry the mass
            raise CertificateError("problem.constraints: every point of the support is forbidden")
        if statement.objective.form == "entropy" and not statement.infeasible:
            return _entropy_bound(reduced, allowed, parts.constant)
        if chain is None:
            least = _least(statement, reduced, allowed)
        else:
            growth = upper[statement.constraints[chain.constraint].epsilon]
            least = _chain_limit(statement, reduced, chain, growth)
        bound = None if least is None else parts.constant + least
        if statement.infeasible and (bound is None or bound <= 0):
            shown = "no bound at all" if bound is None else f"the bound {brief(bound)}, which is not above 0"
            raise CertificateError(f"multipliers: do not prove infeasibility; they give {shown}")
        return bound

    def verified(self, value: Enclosure, bound: Fraction | None) -> str:
        """`optimal` if value and bound are equal, or close when both are read at their unfavourable ends."""
        if bound is None:
            return "feasible"
        maximise = self.statement.objective.form == "entropy"
        gap = bound - value.lower if maximise else value.upper - bound
        if gap < 0:
            raise CertificateError("value: lies beyond its own bound, so that one of the two is wrong")
        smallest = min(abs(value.lower), abs(value.upper)) if value.lower * value.upper > 0 else Fraction(0)
        return "optimal" if gap <= OPTIMAL_GAP * max(smallest, abs(bound)) else "feasible"


# --- the pmf: sums over it, tails in closed form -------------------------------------------------------------------


def _tail_factor(ratio: Fraction) -> Fraction:
    """The mass of a tail over that of the last block of the core: the sum of ratio^t over t >= 1."""
    return ratio / (1 - ratio)


def _total(law: Law) -> Fraction:
    tails = _tail_factor(law.left) * sum(law.weights[: law.period])
    tails += _tail_factor(law.right) * sum(law.weights[-law.period :])
    return sum(law.weights) + tails


def _expectation(law: Law, total: Fraction, function: LatticeFunction) -> Fraction:
    """E h(Z), exactly."""
    values, unit = function.integers(law.start, law.end)
    result = Fraction(sum(map(mul, law.weights, values)), unit)
    period = law.period
    for ratio, first, step, beyond in (
        (law.right, law.end - period + 1, period, function.end - law.end),
        (law.left, law.start, -period, law.start - function.start),
    ):
        if ratio:
            _affordable(max(beyond, 0) // period * ratio.denominator.bit_length(), max(beyond, 0) + period)
            for k in range(first, first + period):
                if weight := law.weights[k - law.start]:
                    result += weight * ratio * function.tail_sum(k + step, step, ratio)
    return result / total


def _stretched(law: Law, by: int) -> tuple[list[int], int]:
    """The weights on ``start - by .. end + by`` as integers over one denominator.

    >>> _stretched(Law(0, [3], left=Fraction(1, 2)), 2)
    ([3, 6, 12, 0, 0], 4)
    """
    period, blocks = law.period, -(-by // law.period)
    scale = lcm(law.left.denominator, law.right.denominator) ** blocks
    _affordable(scale.bit_length() + max(law.weights).bit_length(), len(law.weights) + 2 * by)
    core = [w * scale for w in law.weights]
    left = _continued(core[:period][::-1], law.left, blocks, period)[:by][::-1]
    right = _continued(core[-period:], law.right, blocks, period)[:by]
    return left + core + right, scale


def _continued(block: list[int], ratio: Fraction, blocks: int, period: int) -> list[int]:
    """`blocks` further blocks outward, each `ratio` times the one before (the divisions are exact)."""
    if ratio == 0:
        return [0] * (blocks * period)
    result: list[int] = []
    for _ in range(blocks):
        block = [w * ratio.numerator // ratio.denominator for w in block]
        result += block
    return result


def _affordable(bits: int, count: int) -> None:
    if bits * count > _MAX_BITS:
        raise CertificateError("too large to check: the exact numbers involved would fill the memory")


# --- the checks ----------------------------------------------------------------------------------------------------


def _short(exact: Fraction) -> Enclosure:
    """The number itself, or its neighbours at 2^-128 where it is too long to be written down.

    A tail ratio to the power of a wide input's range makes exact values of a hundred thousand digits.
    """
    if exact.denominator.bit_length() <= _LONGEST:
        return Enclosure(exact, exact)
    low = (exact.numerator << 128) // exact.denominator
    return Enclosure(Fraction(low, 1 << 128), Fraction(low + 1, 1 << 128))


def _room(margin: Fraction, what: str) -> Fraction:
    if margin < 0:
        raise CertificateError(f"{what} is beyond its limit by {brief(-margin)}")
    return margin


def _terms_margin(law: Law, total: Fraction, constraint: Constraint) -> Fraction:
    margins: list[Fraction] = []
    for term in constraint.terms:
        if term.at_least is None and term.at_most is None:
            continue
        found = _expectation(law, total, term.function)
        margins += [] if term.at_least is None else [_room(found - term.at_least, f"the value {brief(found)}")]
        margins += [] if term.at_most is None else [_room(term.at_most - found, f"the value {brief(found)}")]
    for k in constraint.zeros:
        if law.start <= k <= law.end:
            inside: int | None = k - law.start
        elif k > law.end:
            inside = len(law.weights) - 1 - (law.end - k) % law.period if law.right else None
        else:
            inside = (k - law.start) % law.period if law.left else None
        if inside is not None and law.weights[inside]:
            raise CertificateError(f"the probability at index {k} is not 0")
    return Fraction(0) if constraint.zeros or not margins else min(margins)


def _symmetric_margin(law: Law) -> Fraction:
    """Equal on one whole period beyond the longer arm of the core: then the tails agree for good.

    That period is one block of either tail, and the blocks it grows from agree too: so do the ratios, or all is 0.
    """
    reach = max(abs(law.start), abs(law.end)) + law.period
    if reach > MAX_POINTS:
        raise CertificateError(f"the core reaches beyond {MAX_POINTS} points from 0")
    by = max(law.start + reach, reach - law.end)
    weights, _ = _stretched(law, by)
    first = -reach - (law.start - by)
    middle = weights[first : first + 2 * reach + 1]
    for k, (left, right) in enumerate(zip(middle[reach::-1], middle[reach:], strict=True)):
        if left != right:
            raise CertificateError(f"the probabilities at indices {-k} and {k} differ")
    return Fraction(0)


def _unimodal_margin(law: Law, total: Fraction, mode: int) -> Fraction:
    """The least rise towards the mode from one point to the next."""
    weights, peak = law.weights, mode - law.start
    rises = [weights[i + 1] - weights[i] if i < peak else weights[i] - weights[i + 1] for i in range(len(weights) - 1)]
    least = min(rises, default=0)
    if least < 0:
        place = law.start + rises.index(least)
        raise CertificateError(f"the probability falls towards the mode between indices {place} and {place + 1}")
    return least / total


def _pure_margin(law: Law, epsilon: Fraction, shift: int, *, infinite: bool) -> Fraction:
    """``epsilon - ln R`` rounded down, R the largest ratio of two masses at most `shift` apart.

    With tails it is enough to look at the core and `shift` points beyond either end: a pair further out moves inward
    by one period with its ratio unchanged. A zero is always beside a positive mass somewhere, and R is infinite.
    """
    weights = _stretched(law, shift)[0] if infinite else law.weights
    if not all(weights):
        place = next(i for i, w in enumerate(weights) if not w) + law.start - (shift if infinite else 0)
        raise CertificateError(f"the probability at index {place} is 0 but others are not: the ratio is infinite")
    top, bottom = weights[0], weights[0]
    for weight, least in zip(weights, _sliding_minimum(weights, shift), strict=True):
        if weight * bottom > top * least:
            top, bottom = weight, least
    if epsilon == 0 or top == bottom:
        if top > bottom:
            raise CertificateError(f"the probability ratio {brief(Fraction(top, bottom))} is above e^0 = 1")
        return Fraction(epsilon * (1 << BITS) // 1, 1 << BITS)
    # epsilon and R are rational and R is not 1, so epsilon - ln R is irrational and its floor is always found.
    ratio = Fraction(top, bottom)
    margin = Fraction(floor_scaled(lambda: ball(epsilon) - ball(ratio).log(), BITS), 1 << BITS)
    return _room(margin, f"the privacy loss of a probability ratio {brief(ratio)}")


def _sliding_minimum(values: Sequence[int], reach: int) -> Iterator[int]:
    """For every place the least value at most `reach` places away.

    >>> list(_sliding_minimum([3, 1, 4, 1, 5, 9], 1))
    [1, 1, 1, 1, 1, 5]
    """
    waiting: deque[int] = deque()  # places of ever larger values: the first is the least of the window
    ahead = 0
    for i in range(len(values)):
        while ahead <= min(i + reach, len(values) - 1):
            while waiting and values[waiting[-1]] >= values[ahead]:
                waiting.pop()
            waiting.append(ahead)
            ahead += 1
        while waiting[0] < i - reach:
            waiting.popleft()
        yield values[waiting[0]]


def _divergence(law: Law, total: Fraction, shift: int, factor: Fraction) -> Fraction:
    """The largest ``sum over k of (p(k) - factor * p(k - s))+`` of the shifts s with ``1 <= abs(s) <= shift``.

    Beyond the core and s further points both masses lie in one tail, and so the terms repeat every period, times
    the ratio: the last block of terms stands for its whole tail.
    """
    n, period = len(law.weights), law.period
    if law.left == law.right == 0:
        shift = min(shift, n)  # from a shift of n on, the two laws have no point in common
    if 2 * shift * (n + shift) > _MAX_STEPS:
        raise CertificateError(f"too large to check: {shift} shifts of {n} weights")
    weights, scale = _stretched(law, shift)
    ours, theirs = [w * factor.denominator for w in weights], [w * factor.numerator for w in weights]
    left, right = law.left, law.right
    left_rest, right_rest = left.denominator - left.numerator, right.denominator - right.numerator
    worst = 0
    for s in range(1, shift + 1):
        forward = ours[shift : shift + n + s], theirs[shift - s : shift + n]
        backward = ours[shift - s : shift + n], theirs[shift : shift + n + s]
        for here, there in (forward, backward):
            excess = [a - b if a > b else 0 for a, b in zip(here, there, strict=True)]
            found = sum(excess) * left_rest * right_rest
            if left or right:
                found += sum(excess[:period]) * left.numerator * right_rest
                found += sum(excess[-period:]) * right.numerator * left_rest
            worst = max(worst, found)
    return worst / (scale * factor.denominator * left_rest * right_rest * total)


# --- the objective at the pmf --------------------------------------------------------------------------------------


def _entropy(law: Law) -> Enclosure:
    """``ln W - sum(w ln w) / W`` to 2^-64. It is 0 for a single point and irrational for any other pmf."""
    weights = [w for w in law.weights if w]
    if len(weights) == 1:
        return Enclosure(Fraction(0), Fraction(0))
    total = sum(weights)

    counts = Counter(weights)  # mirror images share a logarithm

    def compute() -> arb:
        balls = ((ball(w), n) for w, n in counts.items() if w > 1)
        return ball(total).log() - sum((b * n * b.log() for b, n in balls), ball(0)) / ball(total)

    low = floor_scaled(compute, BITS)
    return Enclosure(Fraction(low, 1 << BITS), Fraction(low + 1, 1 << BITS))


def _wasserstein(law: Law, total: Fraction, objective: Objective) -> Fraction:
    """The sum over all cuts k of ``abs(F_x(k) - F_{x+Z}(k))``, in lattice steps.

    Beyond the input's range a..b the sign is known and the sum is the expectation of the outer cost. Within it,
    ``F_{x+Z}(k) = sum_j p(j) F_x(k - j)`` is the flow of the core and of both tails, the left one mirrored.
    """
    outer = _expectation(law, total, _outer_cost(objective))
    mass, period = sum(objective.weights), law.period
    cdf = list(accumulate(objective.weights))[:-1]
    survival = [mass - c for c in reversed(cdf)]  # the mirrored input's distribution function
    core, _ = _flow(law.weights, law.start, None, cdf, mass)
    right, right_unit = _flow(law.weights[-period:], law.end - period + 1, law.right, cdf, mass)
    block = law.weights[:period][::-1]
    left, left_unit = _flow(block, 1 - law.start - period, law.left, survival, mass)
    unit = lcm(right_unit, left_unit, total.denominator, (1 - law.left).numerator)
    left_mass = int(unit * _tail_factor(law.left) * sum(block)) * mass  # all of it, less what survives a cut
    whole, right_weight, left_weight = int(unit * total), unit // right_unit, unit // left_unit
    cuts = 0
    for own, c, r, s in zip(cdf, core, right, reversed(left), strict=True):
        cuts += abs(own * whole - c * unit - r * right_weight - left_mass + s * left_weight)
    return outer + Fraction(cuts, whole * mass)


def _flow(
    block: Sequence[int], first: int, ratio: Fraction | None, cdf: Sequence[int], mass: int
) -> tuple[list[int], int]:
    """At the cuts k = 0, 1, ... of an input: ``sum_j p(j) F(k - j)`` as integers, and the denominator of these.

    F is `cdf` from 0 on, 0 before and `mass` after it. Without a ratio p is the block itself, at ``first, first + 1,
    ...``; with one, p is what continues the block to the right: by ratio, ratio^2, ... every len(block) places.
    """
    width, period = len(cdf), len(block)
    lump = 0
    if ratio is None and first < -width:  # these points move the whole input beyond every cut
        lump, block, first = sum(block[: -width - first]) * mass, block[-width - first :], -width
    count = width - first
    if count <= 0:
        return [lump] * width, 1
    steps = _convolution(block[:count], [*cdf[:count], *(mass,) * (count - width)])[:count]
    steps += [0] * (count - len(steps))
    unit = 1
    if ratio is not None:
        unit = ratio.denominator ** (count // period)
        _affordable(unit.bit_length(), count)
        flow = [0] * count  # flow(v) = ratio * (steps(v - period) + flow(v - period)); the divisions are exact
        for v in range(period, count):
            flow[v] = ratio.numerator * (steps[v - period] * unit + flow[v - period]) // ratio.denominator
        steps = flow
    return [lump + (steps[u - first] if u >= first else 0) for u in range(width)], unit


def _outer_cost(objective: Objective) -> LatticeFunction:
    """j -> E(a - j - X)+ + E(X + j - b)+ for an input X on a..b: the cuts outside a..b when Z = j."""
    weights = objective.weights
    total, width = sum(weights), len(weights) - 1
    mean = Fraction(sum(i * w for i, w in enumerate(weights)), total)
    rising = [0, *accumulate(accumulate(reversed(weights)))]  # E(X + j - b)+ at j = 0, 1, ..., times total
    falling = [0, *accumulate(accumulate(weights))]  # E(a - j - X)+ at j = 0, -1, ..., times total
    table = [*reversed(falling[1:width]), *rising[:width]]
    entries = tuple(Fraction(v, total) for v in table)
    return LatticeFunction(1 - width if width else 0, entries, (-mean, Fraction(-1)), (mean - width, Fraction(1)))


def _inner_cost(objective: Objective, slopes: Sequence[int], one: int) -> LatticeFunction:
    """j -> sum over the cuts k in a..b-1 of ``slope_k / one * (F_x(k) - F_x(k - j))``."""
    weights = objective.weights
    total, width = sum(weights), len(weights) - 1
    padded = [*slopes, *(0,) * (width - len(slopes))]
    own = sum(s * f for s, f in zip(padded, accumulate(weights), strict=False))
    positive = _convolution([max(s, 0) for s in padded], weights[::-1])
    negative = _convolution([max(-s, 0) for s in padded], weights[::-1])
    # sum_k s_k F(k - j) grows by step(j) = sum_k s_k x(k - j) from j + 1 to j, and is 0 from j = width on
    steps = [p - n for p, n in zip(positive, negative, strict=True)]  # steps[j + width] is step(j)
    shifted_sums = list(accumulate(reversed(steps)))[::-1]
    table = tuple(Fraction(own - shifted_sums[j + width], total * one) for j in range(1 - width, width))
    unit = total * one
    return LatticeFunction(1 - width, table, (Fraction(own - sum(padded) * total, unit),), (Fraction(own, unit),))


def _convolution(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """All sums of products of two lists of integers >= 0, by one product of two long integers.

    >>> _convolution([1, 2], [3, 4, 5])
    [3, 10, 13, 10]
    """
    if not first or not second:
        return []
    bits = max(first).bit_length() + max(second).bit_length() + min(len(first), len(second)).bit_length()
    size = bits // 8 + 1
    _affordable(8 * size, len(first) + len(second))
    packed = (b"".join(v.to_bytes(size, "little") for v in side) for side in (first, second))
    one, two = (int.from_bytes(side, "little") for side in packed)
    count = len(first) + len(second) - 1
    product = (one * two).to_bytes(count * size, "little")
    return [int.from_bytes(product[i * size : (i + 1) * size], "little") for i in range(count)]


# --- weak duality --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """What the multipliers add up: d = sum of functions + pairs + events; each factor is E_hi * 2^precision."""

    constant: Fraction
    functions: list[tuple[LatticeFunction, Fraction]]
    pairs: list[tuple[Sequence[tuple[int, int, int]], int]]
    events: list[tuple[Events, int]]


def _parts(statement: Statement, upper: Mapping[Fraction, int]) -> _Parts:
    """Collect the contributions; the constant is ``sum y b - sum mu delta``."""
    one, multipliers = 1 << statement.scale, statement.multipliers
    constant = Fraction(0)
    parts = _Parts(constant, _objective_functions(statement), [], [])
    parts.events.extend((event, upper[statement.objective.epsilon]) for event in multipliers.events)
    for index, entry in multipliers.entries.items():
        constraint = statement.constraints[index]
        for i, (y, term) in enumerate(zip(entry.values, constraint.terms, strict=constraint.form == "terms")):
            if y == 0:
                continue
            side = term.at_least if y > 0 else term.at_most
            if side is None:
                where = f"multipliers.constraints.{index}.values[{i}]"
                raise CertificateError(f"{where}: has the sign of a bound that the constraint does not have")
            constant += Fraction(y, one) * side
            parts.functions.append((term.function, Fraction(-y, one)))
        constant -= constraint.delta * Fraction(sum(event.bound for event in entry.events), one)
        factor = upper[constraint.epsilon] if constraint.form in ("pure-dp", "approx-dp") else 1 << statement.precision
        parts.pairs.append((entry.pairs, factor))
        parts.events.extend((event, factor) for event in entry.events)
    return replace(parts, constant=constant)


def _objective_functions(statement: Statement) -> list[tuple[LatticeFunction, Fraction]]:
    objective = statement.objective
    if statement.infeasible or objective.form in ("entropy", "delta"):
        return []
    if objective.form == "linear":
        return [(objective.cost, Fraction(1))]
    inner = _inner_cost(objective, statement.multipliers.slopes, 1 << statement.scale)
    return [(_outer_cost(objective), statement.step), (inner, statement.step)]


@dataclass(frozen=True)
class _Reduced:
    """The reduced cost: ``values[k - low] / unit`` at index k, polynomials in k left and right of the values."""

    low: int
    values: list[int]
    unit: int
    left: Polynomial = ()
    right: Polynomial = ()


def _reduced(statement: Statement, parts: _Parts) -> _Reduced:
    """Add up d over the window, or over all tables (`_hull`) and in the tails."""
    low, high = statement.window or _hull(statement, parts)
    fine = 1 << statement.precision
    small = fine << statement.scale  # 1 / small is the unit of pairs and events
    unit = lcm(small, *(f.integers(0, -1)[1] * factor.denominator for f, factor in parts.functions))
    _affordable(unit.bit_length(), high - low + 1)
    values = [0] * (high - low + 1)
    for pairs, growth in parts.pairs:
        for i, j, y in pairs:
            if low <= i <= high:  # a symmetric pair may have one point outside a window
                values[i - low] += y * fine
            if low <= j <= high:
                values[j - low] -= y * growth
    for event, growth in parts.events:
        here, ahead = _spread(event, low, len(values)), _spread(event, low + event.shift, len(values))
        values = [v + fine * w - growth * x for v, w, x in zip(values, here, ahead, strict=True)]
    values = [v * (unit // small) for v in values]
    for function, factor in parts.functions:
        numerators, denominator = function.integers(low, high)
        weight = factor.numerator * (unit // (denominator * factor.denominator))
        values = [v + n * weight for v, n in zip(values, numerators, strict=True)]
    left, right = ([(getattr(f, side), factor) for f, factor in parts.functions] for side in ("left", "right"))
    for event, growth in parts.events:
        left.append(((Fraction(event.left),), Fraction(fine - growth, small)))
        right.append(((Fraction(event.right),), Fraction(fine - growth, small)))
    return _Reduced(low, values, unit, _combined(left), _combined(right))


def _implied_zeros(statement: Statement) -> frozenset[int]:
    """Points of a window that a constraint leaves without mass: ``E h <= min h`` allows only where h is least.

    No finite multiplier says so much. One constraint's zeros may sharpen the next one's minimum.
    """
    if statement.window is None:
        return frozenset()
    low, high = statement.window
    bounded = [t for c in statement.constraints if c.form == "terms" for t in c.terms]
    alive, known = [k for k in range(low, high + 1) if k not in statement.forbidden], -1
    while alive and len(alive) != known:
        known = len(alive)
        for term in bounded:
            values, unit = term.function.integers(low, high)
            for side, extreme in ((term.at_most, min), (term.at_least, max)):
                if alive and side is not None and side * unit == (best := extreme(values[k - low] for k in alive)):
                    alive = [k for k in alive if values[k - low] == best]
    left = set(alive)
    return frozenset(k for k in range(low, high + 1) if k not in left)


def _hull(statement: Statement, parts: _Parts) -> tuple[int, int]:
    """The least range beyond which nothing has a table entry, so that d is a polynomial on either side."""
    firsts, lasts = [0], [-1]
    for function, _ in parts.functions:
        firsts.append(function.start)
        lasts.append(function.end - 1)
    for pairs, _ in parts.pairs:
        indices = [k for i, j, _ in pairs for k in (i, j)]
        firsts += indices
        lasts += indices
    for event, _ in parts.events:
        firsts += [event.start, event.start - event.shift]
        lasts += [event.start + len(event.weights) - 1 - shift for shift in (0, event.shift)]
    if (chain := statement.multipliers.chain) is not None:
        firsts.append(chain.low)
        lasts.append(chain.high)
    firsts += statement.forbidden
    lasts += statement.forbidden
    low, high = min(firsts), max(lasts)
    if high - low >= MAX_POINTS:
        raise CertificateError(f"multipliers: span more than {MAX_POINTS} lattice points")
    return low, high


def _spread(event: Events, first: int, count: int) -> list[int]:
    """The weights of an event at ``first, first + 1, ...``."""
    before = min(max(event.start - first, 0), count)
    after = min(max(first + count - event.start - len(event.weights), 0), count)
    middle = event.weights[max(first - event.start, 0) : max(first + count - event.start, 0)]
    return [event.left] * before + list(middle) + [event.right] * after


def _combined(parts: Iterable[tuple[Polynomial, Fraction]]) -> Polynomial:
    result: list[Fraction] = []
    for polynomial, factor in parts:
        result += [Fraction(0)] * (len(polynomial) - len(result))
        for degree, coefficient in enumerate(polynomial):
            result[degree] += coefficient * factor
    while result and result[-1] == 0:
        result.pop()
    return tuple(result)


def _least(statement: Statement, reduced: _Reduced, allowed: Sequence[int]) -> Fraction | None:
    """The least reduced cost of the points that are allowed: ``sum d p >= lambda`` since p sums to 1."""
    limits: list[Fraction | None] = [Fraction(min(allowed), reduced.unit)] if allowed else []
    if statement.window is None:
        limits.append(_infimum(reduced.right, reduced.low + len(reduced.values)))
        limits.append(_infimum(shifted(reduced.left, 0, step=-1), 1 - reduced.low))
    return _minimum(limits)


def _minimum(limits: Iterable[Fraction | None]) -> Fraction | None:
    """The least limit; None, for no lower bound at all, is below every number."""
    found = list(limits)
    known = [limit for limit in found if limit is not None]
    return min(known) if len(known) == len(found) else None


def _infimum(polynomial: Polynomial, first: int) -> Fraction | None:
    """The infimum over the integers ``k >= first``; None if it is -infinity or out of reach.

    Where the expansion about a point has no negative coefficient but the constant one, the polynomial rises from
    there on for good. Up to that horizon it is evaluated point by point.

    >>> _infimum((Fraction(0), Fraction(-7), Fraction(1)), 0)
    Fraction(-12, 1)
    """
    if polynomial and len(polynomial) > 1 and polynomial[-1] < 0:
        return None
    horizon, stride = first, 1
    while any(c < 0 for c in shifted(polynomial, horizon)[1:]):
        horizon += stride
        stride *= 2
        if stride > _MAX_HORIZON:
            return None
    numerators, denominator = LatticeFunction.polynomial(polynomial).integers(first, horizon)
    return Fraction(min(numerators), denominator)


def _chain_limit(statement: Statement, reduced: _Reduced, chain: Chain, growth: int) -> Fraction | None:
    """The largest lambda with ``sum d p >= lambda`` for every pmf on all integers that is epsilon-DP.

    Let m be the shift, E = E_hi = growth / fine, a = 1/E, and give the row p(k) <= E p(k + m) (outward) of every
    chain point k, which is one of the last m core points of a side or lies beyond them, the multiplier

        f(k) = S(k) - lambda a / (1 - a),     S(k) = sum over t >= 1 of a^t d(k + t m).

    Since S(k - m) = a (d(k) + S(k)), the reduced cost d - lambda + f(k) - E f(k - m) of every point beyond the core
    is 0. So if f >= 0 at *all* chain points, and d - lambda + (f on the last blocks) >= 0 at all core points, then
    sum d p >= lambda: summed up to a horizon, only -f(k) p(k) on the outermost m points remains, and this vanishes as
    the horizon grows, because f(k) p(k) is at most the rest of a convergent sum.

    S is rounded down in each step of the recursion, so that numbers do not grow. The multipliers need not be the
    f above: with S(k - m) <= a (d(k) + S(k)), all that is lost is that a point beyond the core has a reduced cost
    >= 0 instead of 0. Beyond the tables S is a polynomial, and its infimum is known exactly.
    """
    shift, fine = statement.constraints[chain.constraint].shift, 1 << statement.precision
    first, unit, rest = reduced.low, reduced.unit, growth - fine
    start, stop = chain.high - shift + 1, chain.low + shift - 1  # where the last blocks begin, going outward
    sides = (
        _chain_sums(reduced.values[start - first :], shifted(reduced.right, start), unit, shift, fine, growth),
        _chain_sums(
            reduced.values[: stop - first + 1][::-1], shifted(reduced.left, stop, step=-1), unit, shift, fine, growth
        ),
    )
    limits: list[Fraction | None] = []
    for sums, beyond in sides:
        limits.append(Fraction(min(sums) * rest, unit * fine))
        limits.append(None if beyond is None else beyond * rest / fine)
    raised = reduced.values[chain.low - first : chain.high - first + 1]
    blocks = [0] * len(raised)
    for x in range(shift):
        for place, (sums, _) in zip((start - chain.low + x, shift - 1 - x), sides, strict=True):
            raised[place] += sums[x]
            blocks[place] += 1
    for count in (0, 1, 2):
        core = [v for v, found in zip(raised, blocks, strict=True) if found == count]
        if core:  # v / unit - lambda (1 + count a / (1 - a)) >= 0
            limits.append(Fraction(min(core) * rest, unit * (rest + count * fine)))
    return _minimum(limits)


def _chain_sums(
    outward: Sequence[int], tail: Polynomial, unit: int, shift: int, fine: int, growth: int
) -> tuple[list[int], Fraction | None]:
    """S at the places 0, 1, ... of `outward`, rounded down to multiples of 1/unit, and its infimum beyond them.

    `outward` is d * unit from the beginning of a last block outward, `tail` the polynomial that continues it.
    """
    # sum over t >= 1 of a^t tail(x + t m), by the binomial theorem a polynomial in x
    moments = [geometric_sum((Fraction(0),) * i + (Fraction(1),), Fraction(fine, growth)) for i in range(len(tail))]
    moments[:1] = [moment - 1 for moment in moments[:1]]  # only t = 0 of the power 0 is too much
    further = [Fraction(0)] * len(tail)
    for degree, coefficient in enumerate(tail):
        for power in range(degree + 1):
            weight = comb(degree, power) * shift ** (degree - power) * moments[degree - power]
            further[power] += coefficient * weight
    count = len(outward)
    numerators, denominator = LatticeFunction.polynomial(further).integers(count - shift, count - 1)
    sums = [0] * (count - shift) + [n * unit // denominator for n in numerators]
    for x in reversed(range(count - shift)):
        sums[x] = fine * (outward[x + shift] + sums[x + shift]) // growth
    return sums, _infimum(tuple(further), count)


def _entropy_bound(reduced: _Reduced, allowed: Sequence[int], constant: Fraction) -> Fraction:
    """``ln(sum exp(-d)) - constant`` rounded up to 2^-64: above the entropy of every feasible pmf.

    By Lindemann and Weierstrass it is irrational unless a single point is allowed.
    """
    least = min(allowed)
    offset = -Fraction(least, reduced.unit) - constant  # taken out of the sum, so that its largest term is 1
    if len(allowed) == 1:
        return Fraction(-(-offset * (1 << BITS) // 1), 1 << BITS)

    def compute() -> arb:
        unit = ball(-reduced.unit)
        return ball(offset) + sum(((ball(v - least) / unit).exp() for v in allowed), ball(0)).log()

    return Fraction(floor_scaled(compute, BITS) + 1, 1 << BITS)
