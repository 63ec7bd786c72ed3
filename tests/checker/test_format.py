"""The checker as a reader of hostile files: every altered field, wrong type or impossible size is a verdict."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.arithmetic import exp_enclosure
from dpopt.checker import Verdict, certify, derive, verify
from dpopt.errors import CertificateError, InputError

from .statements import (
    ABSOLUTE,
    ONE,
    chain,
    event,
    function,
    integers,
    law,
    pairs,
    part,
    share,
    statement,
)


def certificates() -> dict[str, dict[str, Any]]:
    """One sound certificate of each kind, small enough to alter everywhere."""
    low, small = exp_enclosure(Fraction(1)).lower, integers(-1, 1)
    geometric, coin = law(0, [1], left=1 / low, right=1 / low), law(-1, [1, 2, 1])
    dp: dict[str, Any] = {"type": "pure-dp", "epsilon": "1"}
    near = event(1, 5, -1, [5, 4])

    def one(pmf: Any, objective: Any, constraints: list[Any], entries: Any, **others: Any) -> dict[str, Any]:
        found = statement(pmf, *constraints, objective=objective, entries=entries, **others)
        return certify(found | {"problem": {"name": "test", **found["problem"]}})

    window = dp | {"boundary": "window", "sensitivity": "3/2"}
    rows = [
        {"type": "mean", "equals": "0"},
        {"type": "variance", "at_most": "1/2"},
        {"type": "approx-dp", "epsilon": "1/2", "delta": "1/2"},
        {"type": "unimodal"},
        {"type": "symmetric"},
        {"type": "forbidden", "values": ["2"]},
        {"type": "expectation", "of": {"table": {"0": "1"}, "outside": "0"}, "at_least": "1/4"},
        {"type": "probability", "of": {"from": "0", "to": "1"}, "at_least": "1/4"},
    ]
    entries = {"0": part(3), "1": part(-4), "2": near, "3": pairs((-1, 0, 3)), "4": pairs((1, -3))}
    plugin = {"type": "mine", "whatever": ["x", {"y": None}]}
    written = function("0", ["1", "1/2"], ["0", "-1"], ["0", "1"])
    terms = [
        {"term": "zero", "row": "0", "indices": ["2"]},
        {"term": "linear", "function": written, "at_least": None, "at_most": "9"},
    ]
    trusted = {"objective": {"term": "cost", "function": written}, "constraints": {"0": terms}}
    few = {"type": "expectation", "of": "absolute", "at_most": "1/2"}
    wasserstein = {"type": "min-wasserstein", "input": {"type": "uniform", "low": "0", "high": "2"}}
    slopes = {"start": "0", "slopes": ["-9", str(ONE)]}
    core = [chain(0, 0)]
    return {
        "geometric": one(geometric, ABSOLUTE, [dp], {"0": pairs((1, 0, 7), (0, 1, 0))}, chains=core),
        "entropy": one(coin, {"type": "max-entropy"}, rows, entries, support=integers(-1, 2)),
        "window": one(coin, {"type": "min-expected-cost", "cost": {"power": "3"}}, [window], {}, support=small),
        "delta": one(coin, {"type": "min-delta", "epsilon": "1"}, [], {"objective": share(near)}, support=small),
        "wasserstein": one(geometric, wasserstein, [dp], {"objective": slopes}, chains=core),
        "custom": one(coin, plugin, [plugin], {"0": part(-1)}, support=integers(-1, 2), trusted=trusted),
        "infeasible": one(
            None, {"type": "max-entropy"}, [few, {"type": "forbidden", "values": ["0"]}],
            {"0": part(-ONE)}, support=integers(-2, 2),
        ),
    }  # fmt: skip


CERTIFICATES = certificates()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all nodes of JSON data, containers included."""
    yield path
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))


def altered(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    whole = copy.deepcopy(data)
    if not path:
        return value
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return whole


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_sound_certificate_holds_as_data_and_as_a_file(name: str, tmp_path: Path) -> None:
    certificate = CERTIFICATES[name]
    verdict = verify(certificate)
    assert verdict and verdict.holds and verdict.verified == certificate["derived"]["verified"]
    assert (name == "infeasible") == (verdict.verified == "infeasible")
    trusted = "; taken on trust: the stored rows of constraint 0, the objective"
    assert verdict.reason == f"the certificate proves: {verdict.verified}{trusted if name == 'custom' else ''}"
    path = tmp_path / "noise.json"
    path.write_text(json.dumps(certificate))
    assert verify(path) == verify(str(path)) == verdict
    assert pickle.loads(pickle.dumps(verdict)) == verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", CERTIFICATES)
def test_every_altered_derived_field_is_named(name: str) -> None:
    certificate = CERTIFICATES[name]
    for path in leaves(certificate["derived"]):
        now = certificate
        for key in ("derived", *path):
            now = now[key]
        for value in ("1/7", None, True, 1, 0.5, [], {}, {"x": "1"}, ["1", "1"], "optimal", str(now) + "0"):
            if value == now and type(value) is type(now):
                continue
            verdict = verify(altered(certificate, ("derived", *path), value))
            place = "derived" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
            assert not verdict and verdict.reason.startswith(place), (path, value, verdict)
            assert verdict.verified == "failed"


def test_a_feasible_solution_cannot_call_itself_optimal() -> None:
    certificate = CERTIFICATES["window"]
    assert certificate["derived"]["verified"] == "feasible"
    verdict = verify(altered(certificate, ("derived", "verified"), "optimal"))
    assert verdict.reason == "derived.verified: states optimal, but feasible follows from the statement"


HOSTILE: tuple[Any, ...] = (
    None, True, 0, 1, -1, 0.5, float("nan"), 10**5000, "", "x", "-0", "01", "1/0", "1e9", "1e99999", "nan", "inf",
    "0.1", "-1", "-5/3", "9" * 700, "9" * 5000, "9" * 200_000, "1/" + "7" * 5000, "٣", "1_0", " 1", "20000",
    "987654321987654321", [], ["1"], [["1"]], [None], {}, {"type": "poisson"}, {"": ""}, {"type": "integers"},
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CERTIFICATES)
def test_no_altered_statement_does_anything_but_fail_or_hold(name: str) -> None:
    stated = {key: value for key, value in CERTIFICATES[name].items() if key != "derived"}
    for path in leaves(stated):
        for value in HOSTILE:
            try:
                derive(altered(stated, path, value))
            except CertificateError as error:
                assert str(error) and len(str(error)) < 400
            # the verdict of an altered statement is never reached by another exception
            whole = altered(CERTIFICATES[name], path, value) if path else {"format": value}
            assert "not a readable" not in verify(whole).reason


@pytest.mark.parametrize("name", CERTIFICATES)
def test_missing_and_unknown_keys_are_refused(name: str) -> None:
    certificate = CERTIFICATES[name]
    optional = {"name", "trusted", "sensitivity", "support", "mode", "whatever", "from", "to"}
    for path in leaves(certificate):
        inner = certificate
        for key in path:
            inner = inner[key]
        if not isinstance(inner, dict) or "whatever" in path or (inner.get("type") == "mine"):
            continue
        verdict = verify(altered(certificate, path, inner | {"surprise": "1"}))
        assert not verdict, path
        for key in inner:
            cut = {k: v for k, v in inner.items() if k != key}
            found = verify(altered(certificate, path, cut))
            assert not found or key in optional, (path, key)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[]", "certificate: must be an object"),
        (b'"x"', "certificate: must be an object"),
        (b"null", "certificate: must be an object"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"format": 1}', "the number 1 must be written as a string"),
        (b'{"a": NaN}', "the number NaN must be written as a string"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "must be written as a string"),
        (b'{"a": "1", "b": "2", "a": "3"}', "the key a occurs twice"),
        (b'{"x": {"y": "1", "y": "1"}}', "the key y occurs twice"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 50_000 + b'"1"' + b"}" * 50_000, "nested too deeply"),
        (b"{}", "lacks the key 'format'"),
    ],
)
def test_a_bad_file_is_a_verdict(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    verdict = verify(path)
    assert not verdict.holds and message in verdict.reason


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(InputError, match="source: cannot be read"):
            verify(path)


def test_a_certificate_without_its_derived_part_does_not_hold() -> None:
    bare = {key: value for key, value in CERTIFICATES["entropy"].items() if key != "derived"}
    assert verify(bare) == Verdict(False, "certificate: lacks the key 'derived'", "failed")
    assert certify(bare) == CERTIFICATES["entropy"]


def test_integers_beyond_the_digit_limit_of_python_are_read_and_written() -> None:
    weights = [str(10**1000)] * 4 + ["7" + "0" * 4000]
    stated = copy.deepcopy(CERTIFICATES["window"])
    stated["problem"] |= {"constraints": [], "support": integers(0, 4)}
    stated["laws"][0] |= {"start": "0", "weights": [*weights[:3], "1" + "1" * 6000, "3"]}
    done = certify(stated)
    low, high = map(Fraction, done["derived"]["value"])  # too long to be written out: its neighbours at 2^-128
    mass = [*map(int, weights[:3]), (10**6001 - 1) // 9, 3]
    exact = Fraction(sum(k**3 * w for k, w in enumerate(mass)), sum(mass))
    assert low < exact < high == low + Fraction(1, 1 << 128) and verify(done).holds
    done["derived"]["value"][0] = done["derived"]["value"][0][:-1] + "0"
    assert verify(done).reason.startswith("derived.value[0]: states ")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "dpopt-certificate/3", "format: must be 'dpopt-certificate/2', not dpopt-certificate/3"),
        (("kind",), "proof", "kind: must be"),
        (("kind",), "infeasible", "laws: must be null"),
        (("precision",), "31", "precision: must be at least 32"),
        (("precision",), "8193", "precision: must be at most 8192"),
        (("scale",), "4097", "scale: must be at most 4096"),
        (("scale",), 96, "scale: must be an integer written as a string, not 96"),
        (("laws", 0, "weights"), ["0"], "laws[0].weights: must hold a positive weight"),
        (("laws", 0, "weights", 0), "-1", "laws[0].weights[0]: must be at least 0"),
        (("laws", 0, "weights", 0), "1.0", "laws[0].weights[0]: must be an integer"),
        (("laws", 0, "tails", "left"), "1", "laws[0].tails.left: must lie strictly between 0 and 1"),
        (("laws", 0, "tails", "period"), "2", "laws[0].tails.period: must be at most 1"),
        (("problem", "name"), None, "problem.name: must be a string, not None"),
        (("problem", "constraints", 0, "epsilon"), "-1", "problem.constraints[0].epsilon: must be at least 0"),
        (("problem", "constraints", 0, "epsilon"), "2001", "problem.constraints[0].epsilon: must be at most"),
        (("problem", "constraints", 0, "epsilon"), 1, "problem.constraints[0].epsilon: must be a number written as"),
        (
            ("problem", "constraints", 0, "type"),
            "zcdp",
            "custom type zcdp, whose meaning must be given in trusted.constraints.0",
        ),
        (("problem", "objective", "type"), "mine", "whose meaning must be given in trusted.objective"),
        (("problem", "objective"), {"type": "max-entropy"}, "max-entropy needs a finite support"),
        (("problem", "objective"), {"type": "min-delta", "epsilon": "1"}, "min-delta needs a finite support"),
        (("problem", "constraints", 0), {"type": "unimodal"}, "unimodal needs a finite support"),
        (("problem", "constraints", 0), {"type": "mean"}, "needs equals, at_least or at_most"),
        (("problem", "constraints", 0), {"type": "mean", "equals": "0", "at_most": "1"}, "equals beside"),
        (("laws",), [], "laws: must hold one law, the only one that a problem has, not 0"),
        (("laws",), [law(0, [1])] * 2, "laws: must hold one law, the only one that a problem has, not 2"),
        (("laws",), law(0, [1]), "laws: must be a list"),
        (("witnesses", 0, "of"), "1", "of: must be 'objective' or the index of one of the 1 constraints"),
        (("witnesses", 0, "of"), "00", "of: must be 'objective' or the index of one of the 1 constraints"),
        (("witnesses", 0, "of"), "-1", "of: must be 'objective' or the index of one of the 1 constraints"),
        (
            ("witnesses", 0, "of"),
            ["0"],
            "of: must be 'objective' or the index of one of the 1 constraints",
        ),
        (("witnesses", 0, "of"), "objective", "witnesses[0]: must be absent: 'min-expected-cost' has no multipliers"),
        (("witnesses", 0, "row"), "1", "witnesses[0].row: must be '0', the only row that a problem has, not 1"),
        (("witnesses", 0, "pairs", 0), ["2", "0", "1"], "is not a row of 'pure-dp'"),
        (("witnesses", 0, "pairs", 0), ["0", "0", "1"], "is not a row of 'pure-dp'"),
        (("witnesses", 0, "pairs", 0), ["1", "0", "-1"], "negative multiplier -1"),
        (("witnesses", 0, "pairs", 0), ["1", "0"], "must be a list [i, j, y]"),
        (("witnesses", 0), {"of": "0", "part": "0", "y": "1"}, "witnesses[0]: has the unknown key part"),
        (("witnesses",), {}, "witnesses: must be a list"),
        (("witnesses",), ["x"], "witnesses[0]: must be an object"),
        (("chains", 0, "constraint"), "1", "constraint: must be the index of one of the 1 constraints"),
        (
            ("chains", 0, "constraint"),
            "objective",
            "constraint: must be the index of one of the 1 constraints",
        ),
        (("chains", 0, "row"), "1", "chains[0].row: must be '0'"),
        (("chains", 0, "high"), "-1", "must have a core of 1 to"),
        (("chains",), [chain(0, 0)] * 2, "chains[1]: is a second chain in the same row, and no chain may feed another"),
        (("chains",), None, "chains: must be a list"),
        (("trusted",), {"constraints": {"0": []}}, "'pure-dp' is not a custom type"),
        (("trusted",), {"objective": {"term": "cost"}}, "'min-expected-cost' is not a custom type"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(path: tuple[Any, ...], value: Any, message: str) -> None:
    verdict = verify(altered(CERTIFICATES["geometric"], path, value))
    assert not verdict.holds and message in verdict.reason


def test_rows_that_a_window_does_not_have_are_refused() -> None:
    entropy = CERTIFICATES["entropy"]
    mean, variance, near, order, mirror = range(5)  # the places of the witnesses
    for at, value, message in (
        ((order, "pairs", 0), ["0", "1", "1"], "not a row of 'unimodal'"),  # away from the mode
        ((order, "pairs", 0), ["-2", "-1", "1"], "not a row of 'unimodal'"),  # outside the support
        ((order, "pairs", 0), ["-1", "0", "-3"], "negative multiplier -3"),
        ((mirror, "pairs", 0), ["0", "1"], "not a row of 'symmetric'"),
        ((mirror, "pairs", 0), ["-1", "1"], "not a row of 'symmetric'"),
        ((mirror, "pairs", 0), ["3", "1"], "not a row of 'symmetric'"),
        ((mirror, "pairs", 0), ["1", "-1", "1"], "must be a list [k, y]"),
        ((near, "shift"), "2", "at most 1"),
        ((near, "shift"), "0", "must not be 0"),
        ((near, "y"), "4", "weights[0]: must be at most 4"),
        ((near, "y"), "-1", "y: must be at least 0"),
        ((near, "weights", 0), "6", "must be at most 5"),
        ((near, "weights", 0), "-1", "must be at least 0"),
        ((near, "left"), "-1", "must be at least 0"),
        ((near, "right"), "6", "must be at most 5"),
        ((near, "row"), "1", "must be '0'"),
        ((mean,), {"of": "5", "part": "0", "y": "1"}, "'forbidden' has no multipliers"),
        ((mean,), {"of": "objective", "part": "0", "y": "1"}, "'max-entropy' has no multipliers"),
        ((mean,), {"of": "8", "part": "0", "y": "1"}, "index of one of the 8 constraints"),
        ((mean, "part"), "1", "part: must be below 1, the number of linear rows of 'mean'"),
        ((mean, "part"), "-1", "part: must be at least 0"),
        ((variance, "y"), "4", "sign of a bound that the constraint does not have"),
    ):
        verdict = verify(altered(entropy, ("witnesses", *at), value))
        assert not verdict.holds and message in verdict.reason, verdict


@pytest.mark.parametrize("name", ["geometric", "entropy", "delta", "wasserstein", "custom", "infeasible"])
def test_a_witness_is_stated_once(name: str) -> None:
    """Also with another multiplier: a shift, a part, a list of pairs has one place."""
    stated = CERTIFICATES[name]
    for witness in stated["witnesses"]:
        again = altered(stated, ("witnesses",), [*stated["witnesses"], witness])
        assert "for the second time" in verify(again).reason


def test_rows_stored_on_trust_have_their_own_parts() -> None:
    """A row without mass is no part; what is stored for row 1, or twice for row 0, is refused."""
    custom = CERTIFICATES["custom"]
    assert (
        "below 1, the number of linear rows of 'mine'" in verify(altered(custom, ("witnesses", 0, "part"), "1")).reason
    )
    assert "sign of a bound" in verify(altered(custom, ("witnesses", 0, "y"), "1")).reason
    place = ("trusted", "objective", "function")
    (cost,) = custom["trusted"]["objective"]["function"]
    assert "row: must be '0'" in verify(altered(custom, place, [cost | {"row": "1"}])).reason
    assert "row: is row 0 for the second time" in verify(altered(custom, place, [cost, cost])).reason
    assert "row: must be '0'" in verify(altered(custom, ("trusted", "constraints", "0", 0, "row"), "1")).reason
    terms = [custom["trusted"]["constraints"]["0"][1] | {"term": "expectation"}]
    assert "with term 'linear' or 'zero'" in verify(altered(custom, ("trusted", "constraints", "0"), terms)).reason


def test_a_chain_needs_an_infinite_pure_dp_with_a_ratio_below_one() -> None:
    geometric, window, entropy = (CERTIFICATES[name] for name in ("geometric", "window", "entropy"))
    zero = altered(geometric, ("problem", "constraints", 0, "epsilon"), "0")
    assert "needs epsilon above 0" in verify(zero).reason
    finite = verify(altered(window, ("chains",), [chain(-1, 1)])).reason
    assert finite == "chains[0]: must be of a constraint on an infinite support"
    for index, constraint in enumerate(entropy["problem"]["constraints"]):
        reason = verify(altered(entropy, ("chains",), [chain(-1, 1, index)])).reason
        wanted = "must be of a constraint whose rows run on to infinity"
        assert reason == f"chains[0]: {wanted}; those of {constraint['type']!r} do not"


@pytest.mark.parametrize("kind", ["solution", "infeasible", "target"])
def test_an_earlier_format_is_refused_with_the_way_out(kind: str) -> None:
    """The whole sentence: what the file is, and the two things that can be done with it."""
    stated = {"format": "dpopt-certificate/1", "kind": kind, "problem": {}, "pmf": None, "multipliers": {}}
    wanted = (
        "format: is 'dpopt-certificate/1', of an earlier version: solve the problem again "
        "(dpopt solve FILE --certificate OUT), or check this certificate with dpopt 0.1"
    )
    assert verify(stated) == Verdict(False, wanted, "failed")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("problem", "constraints", 0, "sensitivity"), "1" + "0" * 30),
        (("chains", 0, "high"), "1" + "0" * 30),
        (("problem", "objective", "cost"), {"table": {"0": "1", "1e30": "2"}, "outside": "0"}),
        (("problem", "objective", "cost"), {"power": "65"}),
        (("problem", "support"), {"type": "integers", "low": "0", "high": "1" + "0" * 30}),
        (
            ("problem", "objective"),
            {"type": "min-wasserstein", "input": {"type": "uniform", "low": "0", "high": "1" * 30}},
        ),
        (("problem", "constraints", 0), {"type": "approx-dp", "epsilon": "1", "delta": "1", "sensitivity": "1" * 30}),
    ],
)
def test_sizes_that_no_check_could_finish_are_refused_at_once(path: tuple[Any, ...], value: Any) -> None:
    verdict = verify(altered(CERTIFICATES["geometric"], path, value))
    assert not verdict.holds and "not a readable" not in verdict.reason


numbers = st.sampled_from(["1", "0", "-1", "1/2"])
keys = st.sampled_from(["type", "low", "pairs", "x"])
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_random_alterations_never_escape(data: st.DataObject) -> None:
    certificate = CERTIFICATES[data.draw(st.sampled_from(sorted(CERTIFICATES)))]
    path = data.draw(st.sampled_from(list(leaves(certificate))[1:]))
    verdict = verify(altered(certificate, path, data.draw(json_values)))
    assert isinstance(verdict, Verdict) and "not a readable" not in verdict.reason
