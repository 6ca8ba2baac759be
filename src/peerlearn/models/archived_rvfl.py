"""RVFL networks in a file.

W, b            the hidden layer: inputs x hidden units, and hidden units
coefficients    features x outputs

The text has activation and direct_links, and of a regressor single_output: whether y had one column or no second axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.data.dataset import AnyArray
from peerlearn.local.features import ACTIVATIONS, RandomFeatures
from peerlearn.models.contents import Contents
from peerlearn.models.rvfl import RVFLClassifier, RVFLRegressor

Model = RVFLClassifier | RVFLRegressor


def arrays(model: Model) -> dict[str, AnyArray]:
    return {"W": model.features_.W, "b": model.features_.b}


def entries(model: Model) -> dict[str, Any]:
    return {
        "activation": model.features_.activation,
        "direct_links": bool(model.features_.direct_links),
        "single_output": isinstance(model, RVFLRegressor) and model._single_output,
    }


def restore(model: Model, contents: Contents) -> None:
    b, activation = contents.numbers("b", None), contents.one_of("activation", ACTIVATIONS)
    W, links = contents.numbers("W", model.n_features_in_, len(b)), contents.entry("direct_links", bool)
    model.features_ = RandomFeatures(W, b, activation, links)
    coefficients = contents.numbers("coefficients", model.features_.width, None)
    model.coefficients_ = coefficients[None]
    if isinstance(model, RVFLClassifier):
        model.classes_ = contents.classes(coefficients.shape[1])
        return
    model._single_output = contents.entry("single_output", bool)
    if model._single_output and coefficients.shape[1] > 1:
        raise contents.wrong(f"it should have one output, but coefficients are for {coefficients.shape[1]}")


def stream_parts(model: Model) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    classes = {"classes": model.classes_} if isinstance(model, RVFLClassifier) else {}
    return {"W": model.features_.W, "bias": model.features_.b, **classes}, {}


def resume(model: Model, contents: Contents, agents: int) -> tuple[int, int]:
    bias = contents.numbers("bias", None)
    W = np.ascontiguousarray(contents.numbers("W", model.n_features_in_, len(bias)))
    activation, links = contents.one_of("activation", ACTIVATIONS), contents.entry("direct_links", bool)
    model.features_ = RandomFeatures(W, bias, activation, links)
    outputs = contents.numbers("state b", agents, model.features_.width, None).shape[2]
    if isinstance(model, RVFLClassifier):
        model.classes_ = contents.classes(outputs)
    else:
        model._single_output, model._n_outputs = contents.entry("single_output", bool), outputs
    return model.features_.width, outputs
