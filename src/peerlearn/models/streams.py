"""`partial_fit`: one more chunk of a stream, checked, and learned by the network together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.streaming.learner import Learner, learner_of
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.recursive import State
from peerlearn.models.labels import stream_classes
from peerlearn.models.shares import Shares
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


@dataclass(frozen=True)
class Rows:
    """What a call brings: the new rows of each hosted agent, checked."""

    inputs: list[Array]
    outputs: list[Array]  # rows x M


def learn_chunk(model: Any, X: Any, y: Any, classes: Any = None) -> None:
    """One chunk: everything is checked before the network is asked, and nothing is changed before it has answered.

    The model says what was given (_new_rows), what the learner sees of it, and what the model itself remembers
    (_chunks; before the first row, _memory).
    """
    if hasattr(model, "_stream"):
        stream: Stream = model._stream
        must_be_unchanged(model, stream, classes)
        rows, _ = model._new_rows(stream.network, X, y, classes, stream)
        mark = stream.network.ledger.mark()
    else:
        stream, rows, mark = _begun(model, X, y, classes)
    chunks, memory = model._chunks(stream, rows)
    # Learners change arrays in place: those of a model that was loaded as read-only memory are copied first.
    state = {name: np.require(array, requirements=["C", "W"]) for name, array in stream.state.items()}
    stream.state = stream.learner.learn(stream.network, state, chunks, float(model.alpha)) | memory
    stream.chunks += 1
    stream.rows += sum(map(len, rows.outputs))
    stream.sent += stream.network.ledger.since(mark)
    model._stream, model.coefficients_, model.report_ = stream, stream.state["b"], stream.report()


def _begun(model: Any, X: Any, y: Any, classes: Any) -> tuple[Stream, Rows, Counts]:
    network, _, seed, _ = model._settings()
    if not model.alpha > 0:
        raise InputError("a stream needs alpha above 0: its first rows alone do not determine the coefficients")
    if hasattr(model, "coefficients_"):
        warn_caller(
            "partial_fit begins a stream of its own: rows that fit has seen are not part of it, and the coefficients "
            "that it found are replaced; to learn from them as well, give them to partial_fit as the first chunk"
        )
    mark = network.ledger.mark()
    learner = learner_of(model.stream)
    rows, fixed = model._new_rows(network, X, y, classes, None)
    width = model._draw_features(model.n_features_in_, seed)
    model._must_be_alike(network, rows.inputs, rows.outputs, seed, {"stream": learner, **fixed})
    state = fresh_state(model, learner, network, (width, rows.outputs[0].shape[1]))
    return Stream(learner, network, settings_of(model), state), rows, mark


def fresh_state(model: Any, learner: Learner, network: Network, shape: tuple[int, int]) -> State:
    """Before the first row: what the learner remembers, and what the model does."""
    own: State = model._memory(len(network.hosted))
    return learner.start(network, shape, float(model.alpha)) | own


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


def outputs_of(model: Any, shares: Shares) -> list[Array]:
    """Each hosted agent's targets as numbers."""
    if shares.together is None:
        return [
            model._encoded_chunk(y, f"the chunk of agent {agent}: ")
            for agent, y in zip(shares.agents, shares.targets, strict=True)
        ]
    whole = model._encoded_chunk(shares.together, "")
    return [whole[own] for own in shares.rows]
