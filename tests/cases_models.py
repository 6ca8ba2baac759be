"""The cases of models that every engine must agree on: every model of the package, with every algorithm it may have.

Nothing here names a model. A new one is found, with the algorithms of its families, the choices
that its signature names, and the other settings below that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from inspect import signature
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.registry import Family
from peerlearn.errors import InputError
from peerlearn.models.base import NetworkModel
from peerlearn.models.registry import models
from peerlearn.network.base import Network
from tests import model_problems as given

Arrays = dict[str, np.ndarray]
Case = Callable[[Network, Sequence[int]], Arrays]
Settings = Mapping[str, Any]

TWO = SimulatedNetwork(graphs.complete(2))
MOST = 40  # rows of any agent, and coefficients of any that differ in how many they have
HEARD = 14  # samples of a recording; what is left comes sample by sample
REFUSALS = ("solves ridge problems only",)  # an algorithm that a setting rules out
SMALL: Settings = {  # for whoever has such a parameter
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
FEW: Settings = {  # of algorithms: most are far from converged, so that nothing hides in an answer that all would reach
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
OTHERS: Mapping[str, Settings] = {  # further cases of whoever has all these parameters
    "linked": {"direct_links": True},
    "feedback": {"feedback_scaling": 0.4, "teacher_scaling": 0.3, "noise": 1e-3, "leak": 0.7},
    "sparse reservoir": {"n_reservoir": 120, "density": 0.03, "noise": 1e-2},
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


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, kind in models().items():
        for number, (words, settings) in enumerate(variants(kind)):
            ways = dict(ways_of(make(kind, settings)))
            for way in list(ways)[: None if number == 0 else 1]:  # all ways with the first settings
                found[" ".join(filter(None, (name, words, way)))] = partial(
                    ways[way], model=(kind, settings)
                )
        for words, settings in streams(kind):
            learn = {"rows": stream_rows, "sequences": stream_sequences}[kind.takes]
            found[f"{name} stream {words}"] = partial(learn, model=(kind, settings))
    return found


# What there is to try
# ----------------------------------------------------------------------------------------------


def variants(kind: type[NetworkModel]) -> Iterator[tuple[str, Settings]]:
    """Every algorithm that it may be trained with, every choice that its signature names, and OTHERS."""
    hints = get_type_hints(kind.__init__)
    choices = {
        name: algorithms(kind, name, family)
        for name, family in kind.parts.items()
        if name != "stream"
    }
    choices |= {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}
    for chosen in product(*choices.values()):
        settings = dict(zip(choices, chosen, strict=True))
        if is_taken(kind, settings):
            yield (
                ", ".join(
                    each if isinstance(each, str) else type(each).__name__
                    for each in chosen
                    if each
                ),
                settings,
            )
    if kind.alone:
        yield "alone", kind.alone
    for words, settings in OTHERS.items():
        if set(settings) <= set(signature(kind).parameters):
            yield words, settings


def algorithms(kind: type[NetworkModel], name: str, family: Family[Any]) -> list[Any]:
    """One of each kind of the family, with few iterations; and nothing, where that is what a model usually has."""
    found = [
        each(**{f.name: FEW[f.name] for f in fields(each) if f.name in FEW})
        for each in family.kinds().values()
    ]
    return [None, *found] if signature(kind).parameters[name].default is None else found


def is_taken(kind: type[NetworkModel], settings: Settings) -> bool:
    try:
        make(kind, settings, TWO).check_settings()
    except InputError as error:
        if not any(sentence in str(error) for sentence in REFUSALS):
            raise
        return False
    return True


def streams(kind: type[NetworkModel]) -> Iterator[tuple[str, Settings]]:
    for name in kind.parts["stream"].kinds() if "stream" in kind.parts else ():
        yield name, {"stream": name}
        if "noise" in signature(kind).parameters:
            yield f"{name} feedback", {"stream": name, **OTHERS["feedback"]}


def make(kind: type[NetworkModel], settings: Settings, network: Network | None = None) -> Any:
    small = {name: value for name, value in SMALL.items() if name in signature(kind).parameters}
    return kind(**{**small, **settings, "network": network})


# What is tried
# -----------------------------------------------------------------------------------------------------


def ways_of(model: Any) -> Iterator[tuple[str, Any]]:
    """By name, the usual one first."""
    if model.takes == "signals":
        yield "", listen
        return
    yield "", fit
    tags = get_tags(model)
    if (
        model.takes == "rows"
        and tags.classifier_tags is not None
        and tags.classifier_tags.multi_class
    ):
        yield "of two classes", partial(fit, two_classes=True)
    if tags.input_tags.sparse:
        yield "of sparse rows", partial(fit, form=sp.csr_array)


def fit(
    network: Network,
    hosted: Sequence[int],
    model: Any,
    form: Any = np.asarray,
    two_classes: bool = False,
) -> Arrays:
    fitted = given.fit(make(*model, network), hosted, two_classes, form)
    return found_by(fitted) | predicted_by(fitted, hosted, form)


def stream_rows(network: Network, hosted: Sequence[int], model: Any) -> Arrays:
    learning = make(*model, network)
    first = {"classes": given.METALS} if is_classifier(learning) else {}
    for part in (slice(0, 5), slice(5, 6), slice(6, None)):  # agent 0 has one row: nothing later
        shares = [
            (given.rows(agent)[part], given.targets(learning, agent)[part]) for agent in hosted
        ]
        learning.partial_fit(shares, **first)
    return found_by(learning) | learning.stream_under_way.state


def stream_sequences(network: Network, hosted: Sequence[int], model: Any) -> Arrays:
    learning = make(*model, network)
    for n in range(len(given.CHUNKS)):
        learning.partial_fit([given.chunk_in_time(agent, n) for agent in hosted])
    return found_by(learning) | learning.stream_under_way.state


def listen(network: Network, hosted: Sequence[int], model: Any) -> Arrays:
    filters = make(*model, network)
    if filters.update != "rls":
        filters.set_params(step_size=[0.01 * (1 + agent) for agent in hosted])
    x, d = given.stacked(hosted, given.signals)
    run = filters.run(x[:, :HEARD], d[:, :HEARD], filters.truth_of(given.TRUE_FILTER, np.tanh))
    after = filters.step(x[:, HEARD:], d[:, HEARD:])
    found = {
        "outputs": run.outputs,
        "deviations": run.msd,
        "after": after,
        "predictions": filters.predict(x),
    }
    return {"coefficients": filters.coefficients_, **found}


def found_by(model: Any) -> Arrays:
    """Coefficients, with zeros where some agents have fewer, and how they were found."""
    b = model.coefficients_
    if isinstance(b, list):
        b = np.stack([np.pad(own, ((0, MOST - len(own)), (0, 0))) for own in b])
    return {"coefficients": b, "iterations": np.full(len(b), model.report_.iterations)}


def predicted_by(model: Any, hosted: Sequence[int], form: Any) -> Arrays:
    """What each agent makes of the same new input; it does not know what others host."""
    if model.takes == "sequences":
        new = [given.sequence(0, length) for length in (30, 9)]
        return {"scores": model.agent_scores(new, [given.outputs_in_time(x) for x in new])}
    if model.takes == "columns":
        tables = [given.columns(agent) for agent in hosted]
        return {
            "outputs": model.agent_outputs(tables, ids=[np.arange(len(tables[0]))] * len(hosted))
        }
    X = form(given.rows(1))
    if not model.predicts_alone:  # all agents at the same time
        return {"outputs": np.stack(model.agent_outputs(X))}
    each = [model.agent_outputs(X, slice(k, k + 1))[0] for k in range(len(hosted))]
    return {"outputs": np.stack(each)}
