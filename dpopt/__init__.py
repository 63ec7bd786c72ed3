"""dpopt: optimal noise for differential privacy, with answers that are proved.

A question is a declarative `Problem`; any backend may answer it; what comes back is a pmf with exact integer weights,
every constraint proved in exact arithmetic, and a certificate that anyone can re-check without a solver.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# Public names and where they live. They are imported when first used, so that `import dpopt` is light and verifying a
# certificate loads no solving path. No module is named like a public function: importing it would hide the function.
_PUBLIC = {
    "dpopt.accounting": ("to_dp_accounting",),
    "dpopt.arithmetic": ("Enclosure", "exact"),
    "dpopt.backends.base": ("Backend", "Claim", "Claimed"),
    "dpopt.backends.registry": ("available_backends", "backend_names", "get_backend", "register_backend"),
    "dpopt.distributions": (
        "Discretisation", "Distribution", "StaircaseForm", "exponential", "gaussian", "geometric", "laplace",
        "optimal_staircase", "point", "poisson", "staircase", "table", "truncated_geometric", "uniform",
    ),
    "dpopt.errors": ("BackendError", "CertificateError", "DpoptError", "InputError", "NotVerifiedError"),
    "dpopt.family.profile": ("family_delta", "family_rate"),
    "dpopt.lattice_function": ("LatticeFunction",),
    "dpopt.mechanisms.calibration": ("Calibrated", "Mechanism", "calibrate"),
    "dpopt.mechanisms.conditions": (
        "CutGuarantee", "LeastEpsilon", "SufficientDelta", "cut_guarantee", "least_epsilon", "sufficient_delta",
    ),
    "dpopt.mechanisms.optimal": ("Moment", "best_r", "staircase_moment"),
    "dpopt.mechanisms.paper": ("PaperGuarantee", "paper_guarantee"),
    "dpopt.mechanisms.side_by_side": ("MechanismTable", "mechanism_table"),
    "dpopt.mechanisms.truncated": ("TruncatedLaplace", "truncated_laplace"),
    "dpopt.pmf": ("Pmf", "Tails"),
    "dpopt.privacy.decision": ("is_private",),
    "dpopt.privacy.divergence": ("delta", "delta_between"),
    "dpopt.privacy.profile": ("Profile", "epsilon", "privacy_profile"),
    "dpopt.problem.constraints": (
        "ApproxDP", "Expectation", "Forbidden", "Mean", "Probability", "PureDP", "SecondMoment", "Symmetric",
        "Unimodal", "Variance",
    ),
    "dpopt.problem.files": ("load",),
    "dpopt.problem.objectives": (
        "MaxEntropy", "MinDelta", "MinExpectedCost", "MinWasserstein", "MinWassersteinRelaxation",
    ),
    "dpopt.problem.parts": (
        "Check", "Constraint", "Objective", "Setting", "register_constraint", "register_objective",
    ),
    "dpopt.problem.problem": ("Problem", "tablebuilder", "wasserstein"),
    "dpopt.problem.support": ("Integers", "Lattice", "Support"),
    "dpopt.problem.target": ("Family", "Target", "Then", "target"),
    "dpopt.problem.families.base": ("TermCheck",),
    "dpopt.problem.families.cost": ("CostTerm",),
    "dpopt.problem.families.expectation": ("ExpectationTerm",),
    "dpopt.problem.families.zero": ("ZeroTerm",),
    "dpopt.checker.verdict": ("Verdict", "verify"),
    "dpopt.proof.prove": ("Verified",),
    "dpopt.release.apply": ("Overflow", "add_noise"),
    "dpopt.release.gap_estimates": ("GapEstimates", "combine_gaps"),
    "dpopt.release.law_audit": ("LawAudit", "audit_laws"),
    "dpopt.release.randomness": ("InsecureRandomness", "Randomness", "SystemRandomness"),
    "dpopt.release.samplers": (
        "sample", "sample_bernoulli", "sample_bernoulli_exp", "sample_discrete_gaussian", "sample_discrete_laplace",
        "sample_geometric", "sample_permutation", "sample_truncated_geometric", "sample_uniform",
    ),
    "dpopt.release.selection_design": ("Chosen", "SelectionDesign", "least_selection_epsilon"),
    "dpopt.release.selection_law": ("Fit", "Outcome", "SelectionLaw", "selection_law"),
    "dpopt.release.top_k": ("Ties", "TopK", "noisy_max", "noisy_top_k", "noisy_top_k_ids"),
    "dpopt.study.compare": ("Comparison", "Row", "compare"),
    "dpopt.study.figures": ("Figure", "delta_against_epsilon", "design_against_epsilon", "study_of_key_sizes"),
    "dpopt.study.noise_figures": (
        "optimal_noise", "optimal_noise_for_inputs", "pmfs_of_exponential_noise", "pmfs_of_gaussian_noise",
        "pmfs_of_laplace_and_uniform_noise", "pmfs_of_staircase_noise", "wasserstein_against_epsilon",
        "wasserstein_against_sensitivity",
    ),
    "dpopt.study.noise_simulation": ("Simulation", "simulate", "simulated_wasserstein"),
    "dpopt.study.utility": ("Utility", "optimum_beside_relaxation", "relaxation_problems", "utility"),
    "dpopt.solution": ("Certificate", "Design", "Solution"),
    "dpopt.tables.costs": ("Distance",),
    "dpopt.tables.key_table": ("KeyTable",),
    "dpopt.tables.lookup": ("Negatives", "Zeros", "cell_keys", "noise", "perturb", "random_record_keys"),
    "dpopt.tables.optimal": ("TableSolution", "optimal_table"),
    "dpopt.tables.pairs": ("BothDirections", "PrivacyPairs"),
    "dpopt.tables.quantise": ("Rule", "key_table"),
    "dpopt.tables.sizes": ("KeySizeSearch", "Refutation", "smallest_key_size"),
    "dpopt.designing.frontier": ("Frontier", "FrontierPoint", "frontier"),
    "dpopt.designing.inverse": ("LeastVariance", "best_epsilon", "least_variance"),
    "dpopt.designing.side_by_side": (
        "Designs", "FamilyDesign", "FamilyOptimum", "PaperRanges", "best_rate", "designs", "paper_ranges",
    ),
    "dpopt.work": ("Limits", "limits"),
    "dpopt.designing.targeting": ("solve",),  # dispatches on problems and targets
}  # fmt: skip
logging.getLogger(__name__).addHandler(logging.NullHandler())  # a library's log goes where its user sends it

_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605  # a list of names, computed once from the table above


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpopt' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = [name for name in globals() if name.startswith("__")]
    return sorted({*own, *__all__})
