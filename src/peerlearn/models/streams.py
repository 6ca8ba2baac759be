"""`partial_fit`: one more chunk of a stream, checked, and learned by the network together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peerlearn.algorithms.consensus import Averaging
from peerlearn.algorithms.solution import Report
from peerlearn.algorithms.streaming.learner import Learner, learner_of
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.models.labels import stream_classes
from peerlearn.models.shares import Shares, chunk_of
from peerlearn.network.base import Counts, Network


@dataclass
class Stream:
    """Where a stream is: what learns, what it remembers, and what has passed."""

    learner: Learner
    network: Network
    settings: dict[str, Any]  # the model's parameters when the stream began
    state: State = field(repr=False)
    chunks: int = 0
    rows: int = 0  # of the hosted agents
    sent: Counts = field(default_factory=Counts)

    def report(self) -> Report:
        averaging = getattr(self.learner, "averaging", None)
        enough = averaging is None or Averaging.of(averaging).suffices_on(self.network)
        note = f"a stream of {self.rows:,} rows so far"
        if "silences" in self.state:
            kept, chances = self.state["silences"].sum(), self.chunks // getattr(self.learner, "every", 1)
            note += f"; agents kept silent {kept:,.0f} of {chances * len(self.network.hosted):,} times"
        return Report(type(self.learner).__name__, enough, self.chunks, (), self.sent, note)


def learn_chunk(model: Any, X: Any, y: Any, classes: Any) -> None:
    """One chunk: everything is checked before the network is asked, and nothing is changed before it has answered."""
    if hasattr(model, "_stream"):
        stream: Stream = model._stream
        must_be_unchanged(model, stream, classes)
        shares = chunk_of(model, stream.network, X, y, turn=stream.rows, first=False)
        outputs = _outputs(model, shares)
        mark = stream.network.ledger.mark()
    else:
        stream, shares, outputs, mark = _begun(model, X, y, classes)
    chunks = Chunk.of_inputs(model.features_, shares.inputs, outputs)
    # Learners change arrays in place: those of a model that was loaded as read-only memory are copied first.
    state = {name: np.require(array, requirements=["C", "W"]) for name, array in stream.state.items()}
    stream.state = stream.learner.learn(stream.network, state, chunks, float(model.alpha))
    stream.chunks += 1
    stream.rows += sum(map(len, outputs))
    stream.sent += stream.network.ledger.since(mark)
    model._stream, model.coefficients_, model.report_ = stream, stream.state["b"], stream.report()


def _begun(model: Any, X: Any, y: Any, classes: Any) -> tuple[Stream, Shares, list[Array], Counts]:
    network, _, feature_seed, _ = model._settings()
    if not model.alpha > 0:
        raise InputError("a stream needs alpha above 0: its first rows alone do not determine the coefficients")
    if hasattr(model, "coefficients_"):
        warnings.warn(
            "partial_fit begins a stream of its own: rows that fit has seen are not part of it, and the coefficients "
            "that it found are replaced; to learn from them as well, give them to partial_fit as the first chunk",
            UserWarning,
            stacklevel=5,
        )
    mark = network.ledger.mark()
    learner = learner_of(model.stream)
    shares = chunk_of(model, network, X, y, turn=0, first=True)
    fixed = model._begin_stream(shares.targets, classes)
    outputs = _outputs(model, shares)
    model._must_be_alike(network, shares.inputs, outputs, feature_seed, {"stream": learner, **fixed})
    model._draw_features(model.n_features_in_, feature_seed)
    state = learner.start(network, (model.features_.width, outputs[0].shape[1]), float(model.alpha))
    return Stream(learner, network, settings_of(model), state), shares, outputs, mark


def settings_of(model: Any) -> dict[str, Any]:
    """The parameters that matter to a stream."""
    given: dict[str, Any] = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name != "solver"}


def must_be_unchanged(model: Any, stream: Stream, classes: Any = None) -> None:
    """Refuse parameters and classes that are not those that the stream began with."""
    same = classes is None or (isinstance(classes, list) and classes == model.classes_.tolist())
    if not same and not np.array_equal(stream_classes(classes), model.classes_):
        raise DataError(
            f"classes {np.asarray(classes).tolist()!r:.100} are not those that the stream began with, "
            f"{model.classes_.tolist()!r:.100}: give the same, or leave them out after the first call"
        )
    for name, before in stream.settings.items():
        value = getattr(model, name)
        if value is not before and value != before and not (name == "stream" and learner_of(value) == stream.learner):
            raise InputError(
                f"{name} was changed from {before!r:.60} to {value!r:.60} while a stream is under way: set it back, or "
                "begin a new stream with sklearn.base.clone(model)"
            )


def _outputs(model: Any, shares: Shares) -> list[Array]:
    """Each hosted agent's targets as numbers."""
    if shares.together is None:
        return [
            model._encoded_chunk(y, f"the chunk of agent {agent}: ")
            for agent, y in zip(shares.agents, shares.targets, strict=True)
        ]
    whole = model._encoded_chunk(shares.together, "")
    return [whole[own] for own in shares.rows]
