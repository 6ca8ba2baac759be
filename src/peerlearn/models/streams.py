"""`partial_fit`: one more chunk of a stream, checked, and learned by the network together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.streaming.learner import Learner
from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import Setup
from peerlearn.models.fitted_model import Answer, FittedModel
from peerlearn.models.labels import stream_classes
from peerlearn.models.restored_on_error import restored_on_error
from peerlearn.network.base import Counts, Network

PART = "stream"  # the parameter that says how a model learns from streams
NOT_OF_STREAMS = ("solver",)  # parameters that may change while a stream is under way


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
            kept, chances = (
                self.state["silences"].sum(),
                self.chunks // getattr(self.learner, "every", 1),
            )
            note += (
                f"; agents kept silent {kept:,.0f} of {chances * len(self.network.hosted):,} times"
            )
        return Report(type(self.learner).__name__, enough, self.chunks, (), self.sent, note)


@dataclass(frozen=True)
class Rows:
    """What a call brings: the new rows of each hosted agent, checked."""

    inputs: list[Array]
    outputs: list[Array]  # rows x M


class StreamModel(FittedModel):
    """Base class of models with a linear readout that learn from streams as well.

    They have the parameters alpha and stream, which is one of their parts, of the family STREAMING.
    """

    alpha: float
    _stream: Stream  # the one under way, if any

    # What a model says of its streams
    # --------------------------------------------------------------------------------

    @abstractmethod
    def new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, Mapping[str, Any]]:
        """Check what partial_fit was given; return it, and what all agents must have alike when a stream begins.

        stream: the one under way; None if this is the first chunk.
        """

    @abstractmethod
    def chunks_of(self, stream: Stream, rows: Rows) -> tuple[list[Chunk], State]:
        """Return what the learner sees of new rows, and what the model itself remembers after them."""

    @abstractmethod
    def memory(self, agents: int) -> State:
        """Return what the model itself remembers before the first row, beside what the learner does."""

    @property
    @abstractmethod
    def row_width(self) -> int:
        """How many features a row has for the readout: B in the formulas."""

    @abstractmethod
    def stream_to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return arrays beside the state, and plain values beside those of `to_archive`, by name."""

    @abstractmethod
    def stream_from_archive(self, reader: ArchiveReader, agents: int) -> tuple[int, int]:
        """Set all that a stream needs, checked; return the shape of the coefficients.

        Parameters and n_features_in_ are set already.
        """

    # What all of them do
    # ---------------------------------------------------------------------------------------------

    def learn(self, setup: Setup, *given: Any) -> Answer:
        """As for every model. A stream that was under way ends here."""
        others = {name: part for name, part in setup.parts.items() if name != PART}
        answer = super().learn(replace(setup, parts=others), *given)
        self.__dict__.pop("_stream", None)
        return answer

    @property
    def stream_under_way(self) -> Stream | None:
        return getattr(self, "_stream", None)

    def go_on(self, stream: Stream) -> Self:
        """Be where the stream is."""
        self._stream, self.coefficients_, self.report_ = stream, stream.state["b"], stream.report()
        return self

    def learn_chunk(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn one chunk: what `partial_fit` does.

        Everything is checked before the network is asked, and nothing is changed before it has
        answered.
        """
        with restored_on_error(self), one_blas_thread():
            stream = self.stream_under_way
            if stream is None:
                stream, rows, mark = self._begin(X, y, classes)
            else:
                self.check_unchanged(stream, classes)
                rows, _ = self.new_rows(stream.network, X, y, classes, stream)
                mark = stream.network.ledger.mark()
            chunks, memory = self.chunks_of(stream, rows)
            # Learners change arrays in place: those of a model that was loaded as read-only memory
            # are copied first.
            state = {
                name: np.require(array, requirements=["C", "W"])
                for name, array in stream.state.items()
            }
            stream.state = (
                stream.learner.learn(stream.network, state, chunks, float(self.alpha)) | memory
            )
            stream.chunks += 1
            stream.rows += sum(map(len, rows.outputs))
            stream.sent += stream.network.ledger.since(mark)
            return self.go_on(stream)

    def _begin(self, X: Any, y: Any, classes: Any) -> tuple[Stream, Rows, Counts]:
        setup = self.check_settings()
        if not self.alpha > 0:
            raise InputError(
                "a stream needs alpha above 0: its first rows alone do not determine the coefficients"
            )
        if hasattr(self, "coefficients_"):
            warn_caller(
                "partial_fit begins a stream of its own: rows that fit has seen are not part of it, and the "
                "coefficients that it found are replaced; to learn from them as well, give them to partial_fit as the "
                "first chunk"
            )
        network, learner = setup.network, setup.parts[PART]
        mark = network.ledger.mark()
        rows, fixed = self.new_rows(network, X, y, classes, None)
        outputs = rows.outputs[0].shape[1]
        setup = replace(setup, parts={PART: learner})  # the solver has no say
        self.draw_and_compare(setup, self.n_features_in_, outputs, more=fixed)
        state = self.fresh_state(learner, network, (self.row_width, outputs))
        return Stream(learner, network, self.stream_settings(), state), rows, mark

    def fresh_state(self, learner: Learner, network: Network, shape: tuple[int, int]) -> State:
        """Return what the learner and the model remember before the first row, for B x M coefficients."""
        return learner.start(network, shape, float(self.alpha)) | self.memory(len(network.hosted))

    def stream_settings(self) -> dict[str, Any]:
        """Return the parameters that must not change while a stream is under way."""
        given: dict[str, Any] = self.get_params(deep=False)
        return {name: value for name, value in given.items() if name not in NOT_OF_STREAMS}

    def check_unchanged(self, stream: Stream, classes: Any = None) -> None:
        """Refuse parameters and classes that are not those that the stream began with."""
        known: Any = getattr(self, "classes_", None)
        same = classes is None or (isinstance(classes, list) and classes == known.tolist())
        if not same and not np.array_equal(stream_classes(classes), known):
            raise DataError(
                f"classes {np.asarray(classes).tolist()!r:.100} are not those that the stream began with, "
                f"{known.tolist()!r:.100}: give the same, or leave them out after the first call"
            )
        for name, before in stream.settings.items():
            value = getattr(self, name)
            if (
                value is before
                or value == before
                or (name == PART and self.part(PART) == stream.learner)
            ):
                continue
            raise InputError(
                f"{name} was changed from {before!r:.60} to {value!r:.60} while a stream is under way: set it back, or "
                "begin a new stream with sklearn.base.clone(model)"
            )
