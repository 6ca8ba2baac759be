"""Cases of models: every model of the package, with every algorithm it may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from peerlearn.algorithms.differential_privacy import DifferentialPrivacy
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient
from peerlearn.models.registry import models
from peerlearn.network.base import Network
from peerlearn.testing import model_data as data
from peerlearn.testing.cases.case import Arrays, Case, in_secret
from peerlearn.testing.model_settings import make_small, stream_variants, variants

MOST = 40  # rows of any agent, and coefficients of any where agents have different numbers
RECORDED = 140  # samples of a recording, more than those that give a filter its scale
LONG = 510  # of filters that soon estimate it again; a round per sample takes milliseconds
LATER = 10  # samples that come in a block after it
PARTS = (slice(0, 5), slice(5, 6), slice(6, None))  # agent 0 has one row: nothing later
Way = Callable[..., Arrays]
FIXED = {"features": "fixed", "solver": "gram"}
LABELS = {"classes": data.METALS.tolist()}
IN_SECRET: dict[str, dict[str, Any]] = {
    "RVFLClassifier": {**FIXED, **LABELS, "class_weight": "balanced"},
    "RVFLRegressor": FIXED,
    "RVFLRegressor without intercept, with weights,": {**FIXED, "fit_intercept": False},
    "ESNRegressor": {"solver": "gram"},
    "RVFLClassifier cg": {**FIXED, **LABELS, "solver": "cg"},
    "RVFLRegressor cg without preconditioner": {
        **FIXED,
        "solver": ConjugateGradient(preconditioner="none"),
    },
    "RVFLRegressor consensus": {**FIXED, "solver": "consensus"},
    "LogisticClassifier": LABELS,
    "GLMRegressor": {"alpha": 0.0},
}


def cases() -> dict[str, Case]:
    """Return the cases of every model of the package, by name."""
    found: dict[str, Case] = {}
    for name, kind in models().items():
        for number, (words, settings) in enumerate(variants(kind)):
            model = make_small(kind, settings)
            ways = list(_ways(model))
            # All ways with the first settings, the usual one with others.
            for way, work in ways if number == 0 else ways[:1]:
                key = " ".join(filter(None, (name, words, way)))
                found[key] = partial(work, model=model)
        for words, settings in stream_variants(kind):
            learn = {"rows": _stream_rows, "sequences": _stream_sequences}[kind.takes]
            model = make_small(kind, settings)
            found[f"{name} stream {words}"] = partial(learn, model=model)
            if is_classifier(model) and hasattr(model.part("stream"), "add_outputs"):
                found[f"{name} stream {words}, new classes"] = partial(
                    _stream_rows, model=model, are_known=False
                )
    for name, settings in IN_SECRET.items():
        model = make_small(models()[name.split()[0]], settings)
        case = partial(_fit_readout, model=model, weighted="weights" in name)
        found[f"{name} in secret"] = partial(in_secret, case=case)
    settings = {"solver": "gram", "features": "columns", "alpha": 1e-4, "n_hidden": None}
    far = make_small(models()["RVFLRegressor"], settings)
    found["RVFLRegressor of far columns, in secret"] = partial(
        in_secret, case=partial(_fit_far, model=far)
    )
    private: dict[str, tuple[dict[str, Any], Any]] = {
        "RVFLClassifier": (LABELS, None),
        "RVFLRegressor": ({"fit_intercept": False}, (-5.0, 5.0)),
    }
    for name, (settings, bounds) in private.items():
        noise = DifferentialPrivacy(20.0, target_bounds=bounds)
        model = make_small(models()[name], {**FIXED, **settings, "differential_privacy": noise})
        case = partial(_fit_readout, model=model, weighted=False)
        found[f"{name} with noise"] = partial(in_secret, case=case)
    return found


def usual_case(model: Any) -> Case:
    """Return the case of training this model in the usual way."""
    _, work = next(_ways(model))
    return partial(work, model=model)


def over(network: Network, model: Any) -> Any:
    """Return a copy of an untrained model that talks over this network."""
    return clone(model).set_params(network=network)


def _ways(model: Any) -> Iterator[tuple[str, Way]]:
    """Yield ways to train this model by name, the usual one first."""
    if model.takes == "signals":
        yield "", _listen
        return
    # The share of positive rows is a setting for two classes only.
    has_share = getattr(model, "positive_share", None) is not None
    yield "", partial(_fit, two_classes=True) if has_share else _fit
    tags = get_tags(model)
    many_classes = tags.classifier_tags is not None and tags.classifier_tags.multi_class
    if model.takes == "rows" and many_classes:
        yield "of two classes", partial(_fit, two_classes=True)
    if tags.input_tags.sparse:
        yield "of sparse rows", partial(_fit, form=sp.csr_array)
    if "sample_weight" in signature(model.fit).parameters:
        yield "of rows with weights", partial(_fit, weighted=True)
    if "offset" in signature(model.fit).parameters:
        yield "of rows with offsets", _fit_with_offsets


def _fit(
    network: Network,
    model: Any,
    form: Any = np.asarray,
    two_classes: bool = False,
    weighted: bool = False,
) -> Arrays:
    fitted = data.fit(over(network, model), network.hosted, two_classes, form, weighted=weighted)
    return answer_of(fitted) | predictions_of(fitted, network, form)


def _fit_with_offsets(network: Network, model: Any) -> Arrays:
    fitted = over(network, model)
    shares = []
    offsets = []
    for agent in network.hosted:
        X = data.rows(agent)
        shape = (len(X), 3) if is_classifier(fitted) else (len(X),)
        shares.append((X, data.targets(fitted, agent)))
        offsets.append(0.3 * np.random.default_rng((agent, 4)).standard_normal(shape))
    return answer_of(fitted.fit(shares, offset=offsets))


def _fit_readout(network: Network, model: Any, weighted: bool) -> Arrays:
    fitted = data.fit(over(network, model), network.hosted, weighted=weighted)
    if fitted.takes == "sequences":
        return answer_of(fitted)
    return answer_of(fitted) | {"intercepts": fitted.intercept_}


def _fit_far(network: Network, model: Any) -> Arrays:
    """Fit columns that are far from zero and nearly dependent, so that refinement is needed."""
    shares = []
    for agent in network.hosted:
        X = data.rows(agent)
        last = X.sum(axis=1, keepdims=True) + 1e-4 * X[:, :1] ** 2
        shares.append((100 * np.hstack([X + 1e3, last]), data.numbers(agent)))
    fitted = over(network, model).fit(shares)
    return answer_of(fitted) | {"intercepts": fitted.intercept_}


def _stream_rows(network: Network, model: Any, are_known: bool = True) -> Arrays:
    learning = over(network, model)
    first = {"classes": data.METALS} if is_classifier(learning) and are_known else {}
    for part in PARTS:
        shares = [
            (data.rows(agent)[part], data.targets(learning, agent)[part])
            for agent in network.hosted
        ]
        learning.partial_fit(shares, **first)
    state: Arrays = learning.stream_under_way.state
    return answer_of(learning) | state


def _stream_sequences(network: Network, model: Any) -> Arrays:
    learning = over(network, model)
    for n in range(len(data.CHUNKS)):
        learning.partial_fit([data.chunk_in_time(agent, n) for agent in network.hosted])
    state: Arrays = learning.stream_under_way.state
    return answer_of(learning) | state


def _listen(network: Network, model: Any) -> Arrays:
    filters = over(network, model)
    if filters.update != "rls":
        filters.set_params(step_size=[0.01 * (1 + agent) for agent in network.hosted])
    signals = [data.signals(agent) for agent in network.hosted]
    x = np.stack([own for own, _ in signals])
    d = np.stack([own for _, own in signals])
    truth = filters.truth_of(data.TRUE_FILTER, np.tanh)
    scaled = getattr(filters, "scale", False)
    recorded = LONG if scaled and filters.update == "rls" else RECORDED
    later = slice(recorded, recorded + LATER)
    run = filters.run(x[:, :recorded], d[:, :recorded], truth)
    return {
        "outputs": run.outputs,
        "deviations": run.msd,
        "after": filters.step(x[:, later], d[:, later]),
        "predictions": filters.predict(x),
        "coefficients": filters.coefficients_,
    }


def answer_of(model: Any) -> Arrays:
    """Return coefficients, padded with zeros where agents have fewer, and iterations.

    A classifier with probabilities also has the factor that makes them of its outputs.
    """
    b = model.coefficients_
    if isinstance(b, list):
        b = np.stack([np.pad(own, ((0, MOST - len(own)), (0, 0))) for own in b])
    answer = {"coefficients": b, "iterations": np.full(len(b), model.report_.iterations)}
    scales = getattr(model, "probability_scale_", None)
    return answer if scales is None else {**answer, "probability scales": scales}


def predictions_of(model: Any, network: Network, form: Any = np.asarray) -> Arrays:
    """Return what each hosted agent predicts for the same new input."""
    hosted = network.hosted
    if model.takes == "sequences":
        new = [data.sequence(0, length) for length in (30, 9)]
        return {"scores": model.agent_scores(new, [data.outputs_in_time(x) for x in new])}
    if model.takes == "columns":
        tables = [data.columns(agent) for agent in hosted]
        ids = [np.arange(len(tables[0]))] * len(hosted)
        return {"outputs": model.agent_outputs(tables, ids=ids)}
    X = form(data.rows(1))
    if not model.predicts_alone:
        return {"outputs": np.stack(model.agent_outputs(X))}  # all agents at the same time
    each = [model.agent_outputs(X, slice(k, k + 1))[0] for k in range(len(hosted))]
    return {"outputs": np.stack(each)}
