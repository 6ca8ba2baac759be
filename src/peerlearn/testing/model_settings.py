"""The settings that models are tried with: every algorithm and every choice of a model class.

Nothing here names a model. A new one is found, with the algorithms of its families, the choices
that its signature names, and those of the settings below that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from inspect import signature
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.registry import Family
from peerlearn.errors import InputError
from peerlearn.models.base import NetworkModel
from peerlearn.network.base import Network

Settings = Mapping[str, Any]

REFUSALS = ("solves ridge problems only",)  # a setting rules the algorithm out
SMALL: Settings = {  # for models that have such a parameter
    "alpha": 2.0,
    "n_hidden": 10,
    "n_reservoir": 12,
    "n_neighbors": 4,
    "order": 3,
    "power": 2,
    "random_state": 3,
    "rows": "intersection",
    "washout": 5,
}
FEW: Settings = {  # for algorithms: differences do not vanish in an answer that all would reach
    "C": 1e-3,
    "entries": 0.1,
    "entry_rounds": 4,
    "iterations": 23,
    "m": 3,
    "max_iterations": 12,
    "pattern_rounds": 6,
    "patterns": 0.3,
    "t": 50,
}
OTHERS: Mapping[str, Settings] = {  # further cases of models that have all these parameters
    "linked": {"direct_links": True},
    "without intercept": {"fit_intercept": False},
    "balanced": {"class_weight": "balanced"},
    "with probabilities": {"probability": True},
    "chosen from the data": {"alpha": "auto", "features": "auto"},
    "fixed": {"features": "fixed"},
    "columns": {"features": "columns", "n_hidden": None},
    "function": {"features": np.cos, "n_hidden": None},
    "chosen alpha": {"alpha": "auto", "n_reservoir": 12},
    "feedback": {"feedback_scaling": 0.4, "teacher_scaling": 0.3, "noise": 1e-3, "leak": 0.7},
    "sparse reservoir": {"n_reservoir": 120, "density": 0.03, "noise": 1e-2},
    "counts": {"family": "poisson", "alpha": 0.0},
    "counts and lasso": {"family": "poisson", "penalty": "lasso"},
    "positive numbers": {"family": "gamma", "alpha": 0.0},
    "known share": {"positive_share": 0.4},
    "few anchors": {"n_anchors": 9, "n_local": 5, "n_nearest": 3, "rank": 7, "gamma_I": 0.5},
    "lms": {"update": "lms"},
    "nlms": {"update": "nlms"},
    "rls every 2": {"update": "rls", "every": 2},
    "before": {"cooperation": "combine-then-adapt"},
    "censored": {"update": "rls", "threshold": 0.02, "forgetting": 0.98},
    "smoother": {
        "update": "nlms",
        "basis": "bspline",
        "every": 4,
        "cooperation": "combine-then-adapt",
    },
    "span": {"update": "lms", "exchange": "span", "every": 3},
    "span before": {"update": "lms", "exchange": "span", "cooperation": "combine-then-adapt"},
}


def make_small(
    kind: type[NetworkModel], settings: Settings | None = None, network: Network | None = None
) -> Any:
    """Return a model that is trained in no time."""
    small = {name: value for name, value in SMALL.items() if name in signature(kind).parameters}
    return kind(**{**small, **(settings or {}), "network": network})


def variants(kind: type[NetworkModel]) -> Iterator[tuple[str, Settings]]:
    """Yield, by name, every algorithm, every choice that the signature names, and OTHERS."""
    choices: dict[str, Any] = {
        name: _algorithms(kind, name, family)
        for name, family in kind.parts.items()
        if name != "stream"
    }
    for name, hint in get_type_hints(kind.__init__).items():
        if get_origin(hint) is Literal:
            choices[name] = get_args(hint)
    for chosen in product(*choices.values()):
        settings = dict(zip(choices, chosen, strict=True))
        if _accepts(kind, settings):
            words = [one if isinstance(one, str) else type(one).__name__ for one in chosen if one]
            yield ", ".join(words), settings
    if kind.alone:
        yield "alone", kind.alone
    for name, others in OTHERS.items():
        if set(others) <= set(signature(kind).parameters):
            yield name, others


def stream_variants(kind: type[NetworkModel]) -> Iterator[tuple[str, Settings]]:
    """Yield every learner of streams that a model may have, with its name."""
    for name in kind.parts["stream"].kinds() if "stream" in kind.parts else ():
        yield name, {"stream": name}
        if "noise" in signature(kind).parameters:
            yield f"{name} feedback", {"stream": name, **OTHERS["feedback"]}


def _algorithms(kind: type[NetworkModel], name: str, family: Family[Any]) -> list[Any]:
    """Return one of each kind of the family, cut short; and None where that is the default."""
    found = [
        each(**{field.name: FEW[field.name] for field in fields(each) if field.name in FEW})
        for each in family.kinds().values()
    ]
    return [None, *found] if signature(kind).parameters[name].default is None else found


def _accepts(kind: type[NetworkModel], settings: Settings) -> bool:
    network = SimulatedNetwork(graphs.complete(2))
    try:
        make_small(kind, settings, network).check_settings()
    except InputError as error:
        if not any(sentence in str(error) for sentence in REFUSALS):
            raise
        return False
    return True
