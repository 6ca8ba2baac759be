"""A stream under way as one .npz file, so that it can be taken up again: numbers and a text, nothing that runs code.

about            JSON: version, class, parameters, learner, network, and what has passed
W, bias          the hidden layer, by which a stream began without random_state goes on with the same features; or
W_in, W, W_fb    the reservoir
classes          of a classifier
state NAME       what the learner, and the model, remember: hosted agents x ..

It holds what these agents have learned from their own rows, which their neighbors are not meant to see: keep it at its
site. `peerlearn.models.archive` saves the coefficients alone, for predictions.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.streaming.learner import Learner, learner_of, learners
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import InputError
from peerlearn.models import archived_esn, archived_rvfl
from peerlearn.models.archive import about_model, read_contents, write_arrays
from peerlearn.models.contents import Contents
from peerlearn.models.esn import ESNRegressor
from peerlearn.models.rvfl import RVFLClassifier, RVFLRegressor
from peerlearn.models.settings import network_of
from peerlearn.models.streams import Stream, fresh_state, must_be_unchanged, settings_of
from peerlearn.network.base import Counts, Network

Model = RVFLClassifier | RVFLRegressor | ESNRegressor


class Form(Protocol):
    """What a file archived_*.py knows of a stream."""

    def stream_parts(self, model: Any) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Arrays beside the state, and what the text says beside what it says of all."""
        ...

    def resume(self, model: Any, contents: Contents, agents: int) -> tuple[int, int]:
        """All that a stream needs, checked; the shape of the coefficients. Parameters and n_features_in_ are known."""
        ...


FORMS: dict[type[Model], Form] = {
    RVFLClassifier: archived_rvfl,
    RVFLRegressor: archived_rvfl,
    ESNRegressor: archived_esn,
}
MODELS: dict[str, type[Model]] = {kind.__name__: kind for kind in FORMS}
WAY_OUT = "give the file that save_stream wrote for these agents, and the network that they had"


def save_stream(model: Model, path: str | os.PathLike[str]) -> None:
    """Write where the stream is, at once, so that the file is whole or not there."""
    if type(model) not in FORMS or not hasattr(model, "_stream"):
        raise InputError("only a model that learns from a stream can be saved as one: call partial_fit first")
    stream = model._stream
    must_be_unchanged(model, stream)
    if type(stream.learner) not in learners().values():
        raise InputError(
            f"a stream that {type(stream.learner).__name__} learns from cannot be saved: it is not built in"
        )
    settings: Any = stream.learner
    about = about_model(model) | {
        "learner": {"name": stream.learner.name, **asdict(settings)},
        "network": _network(stream.network),
        "passed": {"chunks": stream.chunks, "rows": stream.rows, "sent": asdict(stream.sent)},
        "columns": [str(name) for name in getattr(model, "feature_names_in_", ())],
    }
    arrays, entries = FORMS[type(model)].stream_parts(model)
    about |= entries
    arrays |= {f"state {name}": array for name, array in stream.state.items()}
    arrays["about"] = np.array(json.dumps(about))
    way_out = "leave it as partial_fit made it"
    _resumed(Contents.of_file(arrays, "the stream cannot be saved", way_out), model.network)  # what is written is read
    write_arrays(Path(path).expanduser(), arrays)


def resume_stream(path: str | os.PathLike[str], network: Network | None = None) -> Model:
    """The model as it was: its next partial_fit gives what it would have given then."""
    return _resumed(read_contents(path, "stream", "go on", WAY_OUT), network)


def _resumed(contents: Contents, network: Network | None) -> Model:
    here = network_of(network)
    _must_be_the_network(contents, here)
    learner = _learner(contents)
    kind = MODELS[contents.one_of("class", MODELS)]
    parameters = {"stream": learner, **contents.parameters(kind().get_params()), "network": network}
    alpha = parameters.get("alpha")
    if not isinstance(alpha, int | float) or not 0 < alpha < np.inf:
        raise contents.wrong(f"its alpha is {alpha!r:.60}, which is no number above 0")
    model = kind(**parameters)
    model.n_features_in_ = contents.entry("n_features", int)
    if columns := contents.columns(model.n_features_in_):
        model.feature_names_in_ = np.array(columns, dtype=object)
    shape = FORMS[kind].resume(model, contents, len(here.hosted))
    shapes = _state_shapes(model, learner, here, *shape)
    # In the order of axes in which a learner changes them in place.
    state = {name: np.ascontiguousarray(contents.numbers(f"state {name}", *axes)) for name, axes in shapes.items()}
    chunks, rows, sent = _passed(contents)
    model._stream = Stream(learner, here, settings_of(model), state, chunks, rows, sent)
    model.coefficients_, model.report_ = state["b"], model._stream.report()
    return model


def _state_shapes(model: Model, learner: Learner, network: Network, B: int, M: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a fresh state for B x M coefficients, found without making one, because B is what a file claims.

    A matrix of B x B numbers may be far larger than the file. So three small states are made: an axis that is longer
    where there is one more feature is B, one that is longer where there is one more output is M, and others are fixed.
    """
    small, taller, wider = (fresh_state(model, learner, network, shape) for shape in ((1, 1), (2, 1), (1, 2)))
    return {
        name: tuple(
            B if more > length else M if many > length else length
            for length, more, many in zip(x.shape, taller[name].shape, wider[name].shape, strict=True)
        )
        for name, x in small.items()
    }


def _network(network: Network) -> dict[str, Any]:
    """Who is hosted, and a checksum of who listens to whom: where sums are kept depends on it."""
    C = network.mixing
    checksum = crc32(C.indptr.tobytes() + C.indices.tobytes() + C.data.tobytes())
    return {"size": network.size, "hosted": list(network.hosted), "checksum": checksum}


def _must_be_the_network(contents: Contents, network: Network) -> None:
    saved, here = contents.entry("network", dict), _network(network)
    for name, what in (("size", "number of agents"), ("hosted", "agents hosted"), ("checksum", "links or weights")):
        if saved.get(name) != here[name]:
            raise contents.wrong(
                f"its {what} are not those of this network ({saved.get(name)!r:.60}, {here[name]!r:.60})"
            )


def _learner(contents: Contents) -> Learner:
    settings = dict(contents.entry("learner", dict))
    try:
        kind = type(learner_of(str(settings.pop("name", ""))))
        if isinstance(settings.get("averaging"), dict):
            settings["averaging"] = Averaging(**settings["averaging"])
        return kind(**settings)
    except (InputError, TypeError) as error:
        raise contents.wrong(f"its learner cannot be made ({error})") from error


def _passed(contents: Contents) -> tuple[int, int, Counts]:
    passed = contents.entry("passed", dict)
    sent = passed.get("sent")
    try:
        counts = Counts(**{name: int(value) for name, value in dict(sent or {}).items()})
        return int(passed["chunks"]), int(passed["rows"]), counts
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise contents.wrong(f"what has passed is not counted ({error!r:.60})") from error
