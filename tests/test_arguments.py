"""Every argument of every public function and constructor, given the wrong type in turn: an `InputError` names it.

The walk goes over `dpopt.__all__`, so that a public name without an example here fails. What is made by dpopt alone
(results) and what is no call (enums, errors, protocols) is listed by kind.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

import dpopt as dp
from dpopt.backends.registry import unregister_backend

WRONG: dict[str, Any] = {
    "object": object(),
    "text": "nonsense",
    "list": [1],
    "mapping": {"a": 1},
    "none": None,
    "bytes": b"x",
    "true": True,
    "nan": float("nan"),
}

# results: their maker fills them in, nobody else calls them
RESULTS = {
    "BothDirections", "Calibrated", "Certificate", "Check", "Claim", "Comparison", "CutGuarantee", "Design", "Designs",
    "Enclosure", "FamilyDesign", "FamilyOptimum", "Figure", "Fit", "Frontier", "FrontierPoint", "GapEstimates",
    "KeySizeSearch", "LawAudit", "LeastEpsilon", "LeastVariance", "MechanismTable", "Outcome", "PaperGuarantee",
    "PaperRanges", "PrivacyPairs", "Profile", "Refutation", "Row", "SelectionLaw", "Setting", "Simulation", "Solution",
    "SufficientDelta", "TableSolution", "TermCheck", "TopK", "TruncatedLaplace", "Utility", "Verdict",
}  # fmt: skip
# bases to extend; they take nothing
BASES = {"Backend", "Constraint", "Distribution", "MaxEntropy", "Objective", "Randomness", "Support", "Symmetric",
         "SystemRandomness", "available_backends", "backend_names"}  # fmt: skip


@dataclass(frozen=True)
class MeanOfFive(dp.Constraint):
    """A plugin's constraint."""

    type = "test-arguments-five"


@dataclass(frozen=True)
class NoCost(dp.Objective):
    """A plugin's objective."""

    type = "test-arguments-no-cost"


NOISE = dp.Pmf(-1, (1, 2, 1))
TABLE = dp.KeyTable(-1, (1, 2, 1), 4)
WINDOW = dp.tablebuilder(D=2, V=1)
RANDOM = dp.InsecureRandomness(1)
LAW = {"a": "1/2", "b": "1/2"}
FIGURE = {"epsilon": 1, "sensitivity": 1, "reach": 3}

EXAMPLES: dict[str, Mapping[str, Any]] = {
    # --- questions
    "ApproxDP": {"epsilon": 1, "delta": "1e-3", "sensitivity": 1},
    "Expectation": {"of": "absolute", "at_most": 1},
    "Forbidden": {"values": [1, 2]},
    "Integers": {"low": -1, "high": 1},
    "Lattice": {"step": 1, "low": -1, "high": 1},
    "Mean": {"equals": 0},
    "MinDelta": {"epsilon": 1, "sensitivity": 1},
    "MinExpectedCost": {"cost": "absolute"},
    "MinWasserstein": {"input": dp.poisson(1)},
    "MinWassersteinRelaxation": {"input": dp.poisson(1), "cut": {"from": 0, "to": 1}},
    "Probability": {"of": [0], "at_least": "1/2"},
    "Problem": {"support": dp.Integers(-1, 1), "objective": dp.MaxEntropy(), "constraints": [dp.Mean(0)], "name": "n"},
    "PureDP": {"epsilon": 1, "sensitivity": 1, "boundary": "exact"},
    "SecondMoment": {"at_most": 1},
    "Target": {"epsilon": 1, "delta": "1e-3", "family": "any", "sensitivity": 1, "then": "min-delta", "name": "n"},
    "Unimodal": {"mode": 0},
    "Variance": {"at_most": 1},
    "load": {"path": "problems/tablebuilder-d2-v1.toml"},
    "tablebuilder": {"D": 2, "V": 1, "name": "n"},
    "target": {"epsilon": 1, "delta": "1e-3", "family": "any", "sensitivity": 1, "then": "min-delta", "name": "n"},
    "wasserstein": {"input": dp.poisson(1), "epsilon": 1, "sensitivity": 1, "name": "n"},
    # --- what an extension is made of
    "CostTerm": {"of": dp.LatticeFunction.constant(1)},
    "ExpectationTerm": {"of": dp.LatticeFunction.constant(1), "at_least": 0, "at_most": 2},
    "LatticeFunction": {"start": 0, "table": (1, 2), "left": (0,), "right": (0,)},
    "ZeroTerm": {"indices": (1, 2)},
    "get_backend": {"name": "highs"},
    "register_backend": {"backend": dp.get_backend("highs"), "name": "test-arguments", "replace": True},
    "register_constraint": {"cls": MeanOfFive},
    "register_objective": {"cls": NoCost},
    # --- laws
    "Pmf": {"start": 0, "weights": (1, 2), "step": 1, "tails": dp.Tails(1, right="1/2")},
    "Tails": {"period": 1, "left": "1/2", "right": "1/2"},
    "exact": {"value": 1, "argument": "value"},
    "exponential": {"rate": 1, "step": 1},
    "gaussian": {"mean": 0, "sd": 1, "step": 2, "discretisation": "round"},
    "geometric": {"rate": 1, "step": 1},
    "laplace": {"scale": 1, "mean": 0, "step": 1, "discretisation": "round"},
    "optimal_staircase": {"epsilon": 1, "sensitivity": 2, "r": 1, "step": 1},
    "point": {"at": 0},
    "poisson": {"rate": 1},
    "staircase": {"width": 3, "height": "1/2", "step": 1, "form": "centred"},
    "table": {"low": 0, "weights": [1, 2]},
    "truncated_geometric": {"rate": 1, "half_width": 2, "step": 1},
    "uniform": {"low": 0, "high": 2, "step": 1},
    # --- privacy
    "cut_guarantee": {"pmf": dp.geometric(1), "cut": 2, "sensitivity": 1, "centre": 0},
    "delta": {"pmf": NOISE, "epsilon": 1, "sensitivity": 1, "bits": 128},
    "delta_between": {"output": NOISE, "neighbour": NOISE, "epsilon": 1, "bits": 128},
    "epsilon": {"pmf": NOISE, "delta": "1/2", "sensitivity": 1},
    "family_delta": {"D": 3, "gamma": "1/2", "epsilon": 1, "sensitivity": 1},
    "family_rate": {"D": 3, "V": 1},
    "is_private": {"pmf": NOISE, "epsilon": 1, "delta": "1/2", "sensitivity": 1},
    "least_epsilon": {"pmf": NOISE, "sensitivity": 1},
    "paper_guarantee": {"noise": dp.geometric(1), "sensitivity": 1, "epsilon": 1},
    "privacy_profile": {"pmf": NOISE, "epsilons": [1], "sensitivity": 1, "bits": 128},
    "sufficient_delta": {"pmf": NOISE, "epsilon": 1, "sensitivity": 1},
    "to_dp_accounting": {"pmf": NOISE, "sensitivity": 1, "value_discretization_interval": "1e-4"},
    # --- answers
    "compare": {"problem": WINDOW, "backends": ["newton"], "options": {"newton": {}}},
    "solve": {"problem": WINDOW, "backend": "newton", "options": {}},
    "verify": {"source": dp.solve(WINDOW).certificate},
    # --- designs
    "best_epsilon": {"D": 3, "V": 1, "delta": "1/10", "sensitivity": 1},
    "best_r": {"epsilon": 1, "sensitivity": 2, "step": 1, "cost": "absolute"},
    "best_rate": {"D": 3, "epsilon": 1, "sensitivity": 1},
    "calibrate": {"mechanism": "staircase", "epsilon": 1, "delta": 0, "sensitivity": 2, "step": 1, "width": 3,
                  "cost": "absolute"},
    "designs": {"epsilon": 1, "delta": "1/10", "sensitivity": 1, "backend": "auto"},
    "frontier": {"epsilon": 1, "delta": "1/10", "sensitivity": 1, "family": "tablebuilder", "points": 1,
                 "backend": "auto"},
    "least_variance": {"D": 3, "epsilon": 1, "delta": "1/10", "sensitivity": 1, "family": "tablebuilder",
                       "backend": "auto"},
    "mechanism_table": {"epsilon": 1, "sensitivity": 2, "delta": 0, "step": 1, "widths": [3]},
    "paper_ranges": {"epsilon": 1, "D": 3},
    "staircase_moment": {"epsilon": 1, "sensitivity": 2, "r": 1, "step": 1, "cost": "absolute"},
    "truncated_laplace": {"epsilon": 1, "delta": "1e-3", "sensitivity": 1},
    # --- tables
    "KeyTable": {"start": -1, "counts": (1, 2, 1), "key_size": 4},
    "cell_keys": {"record_keys": [1, 2], "cells": [0, 1], "key_size": 4, "n_cells": 2},
    "key_table": {"pmf": NOISE, "key_size": 4, "rule": "ceiling"},
    "noise": {"table": TABLE, "keys": [1, 2]},
    "optimal_table": {"pmf": NOISE, "key_size": 4, "variance": "1/2", "epsilon": 1, "delta": "1/2", "sensitivity": 1,
                      "distance": "total-variation", "backend": "highs", "options": {}},
    "perturb": {"counts": [5, 6], "keys": [1, 2], "table": TABLE, "negatives": "error", "zeros": "keep"},
    "Limits": {"bit_operations": 10**9, "bytes": 10**9},
    "limits": {"bit_operations": 10**9, "bytes": 10**9},
    "random_record_keys": {"size": 2, "key_size": 4, "randomness": dp.InsecureRandomness(1)},
    "smallest_key_size": {"pmf": NOISE, "epsilon": 1, "delta": "1/2", "sensitivity": 1, "rule": "ceiling",
                          "largest": 2**10, "backend": "highs"},
    # --- release
    "InsecureRandomness": {"seed": 1},
    "SelectionDesign": {"k": 1, "epsilon": 1, "resolution": "1/10", "sensitivity": 1, "monotonic": False},
    "add_noise": {"values": [1, 2], "noise": NOISE, "overflow": "error", "randomness": RANDOM},
    "audit_laws": {"law": LAW, "neighbour": LAW, "epsilon": 1},
    "combine_gaps": {"measurements": [3, 2], "gaps": [1], "variances": 1, "gap_variance": 1, "gap_covariance": 0,
                     "gap_bias": 0},
    "least_selection_epsilon": {"scores": [5, 0], "k": 1, "chance": "1/2", "chosen": "set", "resolution": "1/10",
                                "sensitivity": 1, "monotonic": True, "round_down": False},
    "noisy_max": {"scores": [5, 0], "epsilon": 1, "resolution": "1/10", "sensitivity": 1, "monotonic": True,
                  "ties": "permutation", "round_down": False, "randomness": RANDOM},
    "noisy_top_k": {"scores": [5, 0], "k": 1, "epsilon": 1, "resolution": "1/10", "sensitivity": 1, "monotonic": True,
                    "ties": "permutation", "round_down": False, "randomness": RANDOM},
    "noisy_top_k_ids": {"scores": [5, 0], "k": 1, "epsilon": 1, "resolution": "1/10", "sensitivity": 1,
                        "monotonic": True, "ties": "permutation", "round_down": False, "randomness": RANDOM},
    "sample": {"pmf": NOISE, "size": 2, "randomness": RANDOM},
    "sample_bernoulli": {"p": "1/2", "size": 2, "randomness": RANDOM},
    "sample_bernoulli_exp": {"x": "1/2", "size": 2, "randomness": RANDOM},
    "sample_discrete_gaussian": {"sigma": 1, "size": 2, "randomness": RANDOM},
    "sample_discrete_laplace": {"scale": 1, "size": 2, "randomness": RANDOM},
    "sample_geometric": {"x": 1, "size": 2, "randomness": RANDOM},
    "sample_permutation": {"n": 3, "randomness": RANDOM},
    "sample_truncated_geometric": {"x": 1, "below": 3, "size": 2, "randomness": RANDOM},
    "sample_uniform": {"below": 3, "size": 2, "randomness": RANDOM},
    "selection_law": {"scores": [5, 0], "k": 1, "epsilon": 1, "resolution": "1/10", "sensitivity": 1, "monotonic": True,
                      "round_down": False},
    # --- studies
    "delta_against_epsilon": {"members": [(3, 1)], "epsilons": [1], "sensitivity": 1},
    "design_against_epsilon": {"half_widths": [3], "epsilons": [1]},
    "optimal_noise": {"input": dp.poisson(1), "backend": "auto", **FIGURE},
    "optimal_noise_for_inputs": {"inputs": [dp.poisson(1)], "backend": "auto", **FIGURE},
    "optimum_beside_relaxation": {"input": dp.poisson(1), "epsilon": 1, "sensitivity": 1, "half_width": 4,
                                  "backend": "auto"},
    "pmfs_of_exponential_noise": {"rates": [1], "reach": 3},
    "pmfs_of_gaussian_noise": {"deviations": [1], "reach": 3},
    "pmfs_of_laplace_and_uniform_noise": {"scales": [1], "half_widths": [2], "reach": 3},
    "pmfs_of_staircase_noise": {"widths": [1], **FIGURE},
    "relaxation_problems": {"input": dp.poisson(1), "epsilon": 1, "sensitivity": 1, "half_width": 4},
    "simulate": {"input": dp.poisson(1), "epsilon": 1, "sensitivity": 1, "size": 10, "runs": 1, "widths": [1],
                 "backend": "auto", "randomness": RANDOM},
    "simulated_wasserstein": {"settings": [(1, 1)], "input": dp.poisson(1), "size": 10, "runs": 1, "bins": 2,
                              "widths": [1], "backend": "auto", "randomness": RANDOM},
    "study_of_key_sizes": {"D": 2, "epsilon": 1, "bits": [8], "rules": ["ceiling"]},
    "utility": {"noise": NOISE, "input": dp.poisson(1)},
    "wasserstein_against_epsilon": {"epsilons": [1], "sensitivity": 1, "inputs": [dp.poisson(1)], "widths": [1],
                                    "backend": "auto"},
    "wasserstein_against_sensitivity": {"sensitivities": [1], "epsilon": 1, "inputs": [dp.poisson(1)], "widths": [1],
                                        "backend": "auto"},
}  # fmt: skip


def is_called(name: str) -> bool:
    found = getattr(dp, name)
    enums_and_errors = isinstance(found, type) and issubclass(found, enum.Enum | Exception)
    return callable(found) and not enums_and_errors and name not in RESULTS | BASES


def test_every_public_call_has_an_example() -> None:
    assert {name for name in dp.__all__ if is_called(name)} == set(EXAMPLES)


# --- what is right after all -----------------------------------------------------------------------------------------

LISTS = {"bits", "counts", "deviations", "epsilons", "gaps", "half_widths", "indices", "keys", "left", "measurements",
         "of", "rates", "record_keys", "right", "scales", "scores", "sensitivities", "table", "values", "weights",
         "widths"}  # fmt: skip
FLAGS = {"monotonic", "replace", "round_down"}
MAPPINGS = {("audit_laws", "law"), ("audit_laws", "neighbour"), ("verify", "source")}
WORDS = {"exact": "argument"}  # a location, whatever it is: it is only ever printed
NOT_LISTS = {("noise", "table"), ("perturb", "table"), ("table", "low")}  # the same word for another thing

# one of several arguments has to be there or to agree: the error names the one that says so
ELSEWHERE = {
    **{(name, side, "none"): "equals" for name in ("Expectation", "Mean", "Probability", "SecondMoment", "Variance")
       for side in ("at_least", "at_most", "equals")},
    ("Problem", "support", "none"): "objective",
    ("load", "path", "text"): "nonsense",  # a file is named by its path
    ("cell_keys", "record_keys", "list"): "cells",
    ("perturb", "counts", "list"): "keys",
    ("noisy_top_k", "scores", "list"): "k",
    **{("sample_discrete_gaussian", "variance", label): "sigma" for label in WRONG},
}  # fmt: skip


def is_right(name: str, argument: str, label: str) -> bool:
    """Whether the wrong value is none for this argument."""
    default = inspect.signature(getattr(dp, name)).parameters[argument].default
    return (
        (label == "none" and default is None)
        or (label == "list" and argument in LISTS and (name, argument) not in NOT_LISTS)
        or (label == "true" and argument in FLAGS)
        or (label == "text" and argument == "name" and name != "get_backend")
        or (label == "mapping" and (name, argument) in MAPPINGS)
        or (label == "bytes" and (name, argument) == ("verify", "source"))  # the content of a file
        or WORDS.get(name) == argument
    )


def names(error: dp.InputError, argument: str) -> bool:
    return error.location == argument or error.location.startswith((f"{argument}.", f"{argument}["))


@pytest.fixture(autouse=True)
def _no_registration_is_left() -> Iterator[None]:
    before = dp.backend_names()
    yield
    for name in set(dp.backend_names()) - set(before):
        unregister_backend(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_wrong_type_is_an_input_error_that_names_the_argument(name: str) -> None:
    call, example = getattr(dp, name), EXAMPLES[name]
    call(**example)
    for argument, (label, wrong) in product(inspect.signature(call).parameters, WRONG.items()):
        at = f"{name}({argument}={label})"
        try:
            call(**{**example, argument: wrong})
        except dp.InputError as error:
            elsewhere = ELSEWHERE.get((name, argument, label), argument)
            assert names(error, argument) or names(error, elsewhere), f"{at}: {error}"
            assert error.problem[:1].islower() or error.problem.startswith(("=", "'")), f"{at}: {error}"
        except dp.BackendError as error:  # the right type, but no backend has that name
            assert label == "text" and argument in ("backend", "name"), f"{at}: {error}"
            assert "'nonsense'" in str(error)
        else:
            assert is_right(name, argument, label), f"{at} was accepted"


def test_an_unknown_keyword_names_the_function() -> None:
    for question in (WINDOW, dp.target(epsilon=1, delta="1/10", family="any")):
        with pytest.raises(TypeError, match=r"^solve\(\) got an unexpected keyword argument 'warm_start'"):
            dp.solve(question, warm_start=1)
    assert dp.solve(problem=WINDOW).verified is dp.Verified.OPTIMAL
