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
from dpopt.errors import CertificateError, InputError
from dpopt.proof.checker import Verdict, certify, derive, verify

ONE = 1 << 96


def integers(low: int, high: int) -> dict[str, Any]:
    return {"type": "integers", "low": str(low), "high": str(high)}


def certificates() -> dict[str, dict[str, Any]]:
    """One sound certificate of each kind, small enough to alter everywhere."""
    low, small = exp_enclosure(Fraction(1)).lower, integers(-1, 1)
    tails = {"period": "1", "left": str(1 / low), "right": str(1 / low)}
    geometric: dict[str, Any] = {"start": "0", "weights": ["1"], "step": "1", "tails": tails}
    dp: dict[str, Any] = {"type": "pure-dp", "epsilon": "1"}
    chain = {"constraint": "0", "low": "0", "high": "0"}
    coin = {"start": "-1", "weights": ["1", "2", "1"], "step": "1", "tails": None}
    shift = {"shift": "1", "bound": "5", "start": "-1", "events": ["5", "4"], "left": "0", "right": "0"}

    def one(pmf: Any, objective: Any, constraints: list[Any], entries: Any, **others: Any) -> dict[str, Any]:
        support = others.pop("support", None)
        multipliers = {"objective": others.pop("own", None), "constraints": entries, "chain": others.pop("chain", None)}
        problem = {"name": "test", "support": support, "objective": objective, "constraints": constraints}
        whole: dict[str, Any] = {"format": "dpopt-certificate/1", "kind": "infeasible" if pmf is None else "solution"}
        whole |= {"problem": problem, "pmf": pmf, "precision": "128", "scale": "96", "multipliers": multipliers}
        return certify(whole | others)

    pairs = {"pairs": [["1", "0", "7"], ["0", "1", "0"]]}
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
    entries = {
        "0": {"values": ["3"]},
        "1": {"values": ["-4"]},
        "2": {"shifts": [shift]},
        "3": {"pairs": [["-1", "0", "3"]]},
        "4": {"pairs": [["1", "-3"]]},
    }
    plugin = {"type": "mine", "whatever": ["x", {"y": None}]}
    function = {"start": "0", "table": ["1", "1/2"], "left": ["0", "-1"], "right": ["0", "1"]}
    terms = [
        {"term": "expectation", "function": function, "at_least": None, "at_most": "9"},
        {"term": "zero", "indices": ["2"]},
    ]
    trusted = {"objective": {"term": "cost", "function": function}, "constraints": {"0": terms}}
    few = {"type": "expectation", "of": "absolute", "at_most": "1/2"}
    wasserstein = {"type": "min-wasserstein", "input": {"type": "uniform", "low": "0", "high": "2"}}
    return {
        "geometric": one(geometric, {"type": "min-expected-cost", "cost": "absolute"}, [dp], {"0": pairs}, chain=chain),
        "entropy": one(coin, {"type": "max-entropy"}, rows, entries, support=integers(-1, 2)),
        "window": one(coin, {"type": "min-expected-cost", "cost": {"power": "3"}}, [window], {}, support=small),
        "delta": one(coin, {"type": "min-delta", "epsilon": "1"}, [], {}, support=small, own={"shifts": [shift]}),
        "wasserstein": one(
            geometric, wasserstein, [dp], {}, chain=chain, own={"slopes": {"start": "0", "values": ["-9", str(ONE)]}}
        ),
        "custom": one(coin, plugin, [plugin], {"0": {"values": ["-1", "0"]}}, support=integers(-1, 2), trusted=trusted),
        "infeasible": one(
            None, {"type": "max-entropy"}, [few, {"type": "forbidden", "values": ["0"]}],
            {"0": {"values": [str(-ONE)]}}, support=integers(-2, 2),
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
    statement = {key: value for key, value in CERTIFICATES[name].items() if key != "derived"}
    for path in leaves(statement):
        for value in HOSTILE:
            try:
                derive(altered(statement, path, value))
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
            harmless = path[:1] == ("multipliers",) and (key.isdigit() or isinstance(path[-1], int))
            assert not found or key in optional or harmless, (path, key)


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
    statement = copy.deepcopy(CERTIFICATES["window"])
    statement["problem"] |= {"constraints": [], "support": integers(0, 4)}
    statement["pmf"] |= {"start": "0", "weights": [*weights[:3], "1" + "1" * 6000, "3"]}
    done = certify(statement)
    low, high = map(Fraction, done["derived"]["value"])  # too long to be written out: its neighbours at 2^-128
    mass = [*map(int, weights[:3]), (10**6001 - 1) // 9, 3]
    exact = Fraction(sum(k**3 * w for k, w in enumerate(mass)), sum(mass))
    assert low < exact < high == low + Fraction(1, 1 << 128) and verify(done).holds
    done["derived"]["value"][0] = done["derived"]["value"][0][:-1] + "0"
    assert verify(done).reason.startswith("derived.value[0]: states ")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "dpopt-certificate/2", "format: must be"),
        (("kind",), "proof", "kind: must be"),
        (("kind",), "infeasible", "pmf: must be null"),
        (("precision",), "31", "precision: must be at least 32"),
        (("precision",), "8193", "precision: must be at most 8192"),
        (("scale",), "4097", "scale: must be at most 4096"),
        (("scale",), 96, "scale: must be an integer written as a string, not 96"),
        (("pmf", "weights"), ["0"], "pmf.weights: must hold a positive weight"),
        (("pmf", "weights", 0), "-1", "pmf.weights[0]: must be at least 0"),
        (("pmf", "weights", 0), "1.0", "pmf.weights[0]: must be an integer"),
        (("pmf", "tails", "left"), "1", "pmf.tails.left: must lie strictly between 0 and 1"),
        (("pmf", "tails", "period"), "2", "pmf.tails.period: must be at most 1"),
        (("problem", "constraints", 0, "epsilon"), "-1", "problem.constraints[0].epsilon: must be at least 0"),
        (("problem", "constraints", 0, "epsilon"), "2001", "problem.constraints[0].epsilon: must be at most"),
        (("problem", "constraints", 0, "epsilon"), 1, "problem.constraints[0].epsilon: must be a number written as"),
        (("problem", "constraints", 0, "type"), "zcdp", "custom type zcdp, whose rows must be given"),
        (("problem", "objective", "type"), "mine", "whose cost must be given in trusted.objective"),
        (("problem", "objective"), {"type": "max-entropy"}, "max-entropy needs a finite support"),
        (("problem", "objective"), {"type": "min-delta", "epsilon": "1"}, "min-delta needs a finite support"),
        (("problem", "constraints", 0), {"type": "unimodal"}, "unimodal needs a finite support"),
        (("problem", "constraints", 0), {"type": "mean"}, "needs equals, at_least or at_most"),
        (("problem", "constraints", 0), {"type": "mean", "equals": "0", "at_most": "1"}, "equals beside"),
        (("multipliers", "constraints", "0", "pairs", 0), ["2", "0", "1"], "is not a row of 'pure-dp'"),
        (("multipliers", "constraints", "0", "pairs", 0), ["0", "0", "1"], "is not a row of 'pure-dp'"),
        (("multipliers", "constraints", "0", "pairs", 0), ["1", "0", "-1"], "negative multiplier -1"),
        (("multipliers", "constraints", "0", "pairs", 0), ["1", "0"], "must be a list [i, j, y]"),
        (("multipliers", "constraints"), {"1": {"pairs": []}}, "unknown key 1"),
        (("multipliers", "constraints"), {"00": {"pairs": []}}, "unknown key 00"),
        (("multipliers", "chain", "constraint"), "1", "multipliers.chain.constraint: must be at most 0"),
        (("multipliers", "chain", "high"), "-1", "must have a core of 1 to"),
        (("multipliers", "objective"), {"slopes": {}}, "multipliers.objective: must be null"),
        (("trusted",), {"constraints": {"0": []}}, "'pure-dp' is not a custom type"),
        (("trusted",), {"objective": {"term": "cost"}}, "'min-expected-cost' is not a custom type"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(path: tuple[Any, ...], value: Any, message: str) -> None:
    verdict = verify(altered(CERTIFICATES["geometric"], path, value))
    assert not verdict.holds and message in verdict.reason


def test_rows_that_a_window_does_not_have_are_refused() -> None:
    entropy = CERTIFICATES["entropy"]
    rows = ("multipliers", "constraints")
    for at, row, message in (
        (("3", "pairs", 0), ["0", "1", "1"], "not a row of 'unimodal'"),  # away from the mode
        (("3", "pairs", 0), ["-2", "-1", "1"], "not a row of 'unimodal'"),  # outside the support
        (("4", "pairs", 0), ["0", "1"], "not a row of 'symmetric'"),
        (("4", "pairs", 0), ["3", "1"], "not a row of 'symmetric'"),
        (("2", "shifts", 0, "shift"), "2", "at most 1"),
        (("2", "shifts", 0, "shift"), "0", "must not be 0"),
        (("2", "shifts", 0, "events", 0), "6", "must be at most 5"),
        (("2", "shifts", 0, "left"), "-1", "must be at least 0"),
        (("5",), {"values": []}, "forbidden points have no multipliers"),
        (("0", "values"), ["1", "2"], "must have 1 entries, not 2"),
    ):
        verdict = verify(altered(entropy, (*rows, *at), row))
        assert not verdict.holds and message in verdict.reason, verdict
    twice = [entropy["multipliers"]["constraints"]["2"]["shifts"][0]] * 2
    assert "for the second time" in verify(altered(entropy, (*rows, "2", "shifts"), twice)).reason
    assert "does not have" in verify(altered(entropy, (*rows, "1", "values", 0), "4")).reason


def test_a_chain_needs_an_infinite_pure_dp_with_a_ratio_below_one() -> None:
    geometric, window = CERTIFICATES["geometric"], CERTIFICATES["window"]
    zero = altered(geometric, ("problem", "constraints", 0, "epsilon"), "0")
    assert "needs epsilon above 0" in verify(zero).reason
    chain = {"constraint": "0", "low": "-1", "high": "1"}
    assert "must name a pure-dp constraint" in verify(altered(window, ("multipliers", "chain"), chain)).reason


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("problem", "constraints", 0, "sensitivity"), "1" + "0" * 30),
        (("multipliers", "chain", "high"), "1" + "0" * 30),
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


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_random_alterations_never_escape(data: st.DataObject) -> None:
    certificate = CERTIFICATES[data.draw(st.sampled_from(sorted(CERTIFICATES)))]
    path = data.draw(st.sampled_from(list(leaves(certificate))[1:]))
    verdict = verify(altered(certificate, path, data.draw(json_values)))
    assert isinstance(verdict, Verdict) and "not a readable" not in verdict.reason
