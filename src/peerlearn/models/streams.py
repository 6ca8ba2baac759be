"""Models that learn from streams: `partial_fit` takes one more chunk.

    check      the new rows, and that no parameter has changed               alone
    compare    settings, with the first chunk only                           over the network
    learn      one step of the learner on the new rows                       over the network
    keep       the new state in `Stream`, its coefficients in the model

The learner (`peerlearn.algorithms.streaming`) updates the coefficients. The model turns rows into
features, and may remember something itself, as a reservoir does. Both kinds of memory are in
`Stream.state`, where the coefficients are called b.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.secret_sums import one_session, session_of
from peerlearn.algorithms.streaming.learner import Learner
from peerlearn.arrays import Array, Indices, one_blas_thread
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import FittedModel, Intercept, restored_on_error
from peerlearn.models.labels import stream_classes
from peerlearn.network.base import Counts, Network
from peerlearn.secret.statement import SecrecyStatement

PART = "stream"  # the parameter that is the learner
TOLERANCE = 1e-6  # relative distance within which an exact stream counts as converged
NOT_EXACT = "this stream does not promise the coefficients of all rows in one place"
NOT_OF_STREAMS = ("solver",)  # parameters that may change while a stream is under way


@dataclass
class Stream:
    """State of a running stream.

    settings: the model's parameters when the stream began.
    state: the arrays that learner and model remember.
    chunks: number of chunks so far.
    rows: number of rows of the hosted agents so far.
    sent: what was sent so far.
    secrecy: what agents learned in secret sums so far; None without secrecy.
    """

    learner: Learner
    network: Network
    settings: dict[str, Any]
    state: State = field(repr=False)
    chunks: int = 0
    rows: int = 0
    sent: Counts = field(default_factory=Counts)
    secrecy: SecrecyStatement | None = None

    def report(self) -> Report:
        """Return the report of the stream so far."""
        averaging = getattr(self.learner, "averaging", None)
        enough = averaging is None or Averaging.of(averaging).suffices_on(self.network)
        note = f"a stream of {self.rows:,} rows so far"
        if "silences" in self.state:
            silences = self.state["silences"].sum()
            combinations = self.chunks // getattr(self.learner, "every", 1)
            chances = combinations * len(self.network.hosted)
            note += f"; agents kept silent {silences:,.0f} of {chances:,} times"
        if "waiting_rows" in self.state:
            waiting = self.state["waiting_rows"].sum()
            needed = self.network.colluders + 2
            note += f"; {waiting:,.0f} of them wait until {needed} agents have new rows"
        name = type(self.learner).__name__
        if not self.learner.exact or not hasattr(self.learner, "certify"):
            return Report(name, enough, self.chunks, (), self.sent, note, bound_reason=NOT_EXACT)
        found = self.learner.certify(self.network, self.state, self.chunks)
        enough = found.bound <= TOLERANCE
        report = Report(name, enough, self.chunks, (), self.sent, note, found.bound, found.reason)
        return replace(report, secrecy=self.secrecy)


@dataclass(frozen=True)
class Rows:
    """Checked new rows of each hosted agent, with outputs of rows x M.

    places: where the outputs of before are among the M; None if there are no more than before.
    """

    inputs: list[Array]
    outputs: list[Array]
    places: Indices | None = None


class StreamModel(FittedModel):
    """Base class of models with a linear readout that can also learn from streams.

    They have the parameters alpha, fit_intercept and stream. The latter is one of their parts, of
    the family STREAMING. A subclass implements the abstract methods, which come first.

    Attributes
    ----------
    adds_constant: whether a stream with an intercept has one more feature than row_width, a
        constant before all others. If not, the first feature is a constant already.
    """

    adds_constant: ClassVar[bool] = True
    begins_stream: bool = False  # True while the settings of a stream are checked
    only_in_streams: ClassVar = (PART,)
    before_files: ClassVar = {"fit_intercept": False}

    alpha: Any  # a number above 0 when a stream begins
    fit_intercept: Intercept
    _stream: Stream  # not set if no stream is running

    @abstractmethod
    def new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, Mapping[str, Any]]:
        """Check the arguments of partial_fit. Return the rows, and settings that agents must share.

        The settings are needed with the first chunk only.

        stream: the running stream; None if this is the first chunk.
        """

    @abstractmethod
    def chunks_of(self, stream: Stream, rows: Rows) -> tuple[list[Chunk], State]:
        """Return new rows as features for the learner, and the model's own memory after them."""

    @abstractmethod
    def memory(self, agents: int) -> State:
        """Return the model's own memory before the first row. The learner's is separate."""

    @property
    @abstractmethod
    def row_width(self) -> int:
        """Number of features of a row for the readout, B in the formulas."""

    @abstractmethod
    def stream_to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return what a saved stream needs besides the state and the entries of `to_archive`.

        It is a pair of arrays and plain values, by name.
        """

    @abstractmethod
    def stream_from_archive(self, reader: ArchiveReader, agents: int) -> tuple[int, int]:
        """Check what a file has, set all attributes that a stream needs, and return (B, M).

        Parameters and n_features_in_ are set already.
        """

    @property
    def stream_under_way(self) -> Stream | None:
        """The running stream, if any."""
        return getattr(self, "_stream", None)

    def continue_from(self, stream: Stream) -> Self:
        """Set the running stream, and coefficients and report from it."""
        self._stream = stream
        self.coefficients_ = stream.state["b"]
        self.report_ = stream.report()
        return self

    def learn_chunk(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from one chunk, as `partial_fit` does.

        The input is checked before anything is sent. The model changes only after the network has
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
            state = {}
            for name, array in stream.state.items():
                # Learners change arrays in place. A read-only array, such as one of a model that
                # was loaded from mapped memory, is copied first.
                state[name] = np.require(array, requirements=["C", "W"])
            if rows.places is not None:
                learner: Any = stream.learner
                state = learner.add_outputs(state, rows.places, rows.outputs[0].shape[1])
            penalties = self._penalties(stream)
            secrecy = stream.secrecy
            with one_session(stream.network):  # of this chunk: a copy of the model has none
                new_state = stream.learner.learn(stream.network, state, chunks, penalties)
                if stream.network.secrecy is not None:
                    secrecy = session_of(stream.network).describe(self.claim).after(secrecy)
            stream.secrecy = secrecy
            stream.state = new_state | memory
            stream.chunks += 1
            stream.rows += sum(map(len, rows.outputs))
            stream.sent += stream.network.ledger.since(mark)
            return self.continue_from(stream)

    def _begin(self, X: Any, y: Any, classes: Any) -> tuple[Stream, Rows, Counts]:
        """Return a new stream, the rows of its first chunk, and a mark of what was sent before."""
        self.begins_stream = True
        try:
            setup = self.check_settings()
        finally:
            del self.begins_stream
        if not self.stream_alpha > 0:
            raise InputError(
                "a stream needs alpha above 0: its first rows alone do not determine the "
                "coefficients"
            )
        learner = self.part(PART)
        if self.fit_intercept not in (False, "auto") and not self.stream_has_intercept(learner):
            raise InputError(
                f"fit_intercept is True, but the stream {type(learner).__name__} keeps no sums of "
                "all rows, without which there are no means: use stream='exact', or set "
                "fit_intercept to 'auto' or False"
            )
        if hasattr(self, "coefficients_"):
            warn_caller(
                "partial_fit begins a stream of its own: the rows of fit are not part of it, and "
                "the coefficients of fit are replaced; to learn from those rows as well, give them "
                "to partial_fit as the first chunk"
            )
        network = setup.network
        mark = network.ledger.mark()
        rows, fixed = self.new_rows(network, X, y, classes, None)
        outputs = rows.outputs[0].shape[1]
        setup = replace(setup, parts={PART: learner})  # streams do not use the solver
        self.draw_and_compare(setup, self.n_features_in_, outputs, more=fixed)
        width = self.row_width
        if self.adds_constant and self.stream_has_intercept(learner):
            width += 1
        state = self.fresh_state(learner, network, (width, outputs))
        return Stream(learner, network, self.stream_settings(), state), rows, mark

    @property
    def stream_alpha(self) -> Any:
        """The ridge penalty of a stream."""
        return self.alpha

    def stream_has_intercept(self, learner: Learner) -> bool:
        """Return whether the first coefficient of a stream is a constant without a penalty."""
        return bool(self.fit_intercept) and getattr(learner, "takes_intercept", False)

    def _penalties(self, stream: Stream) -> Any:
        """Return the ridge penalty: one number, or one per feature if the first has none."""
        alpha = float(self.stream_alpha)
        if not self.stream_has_intercept(stream.learner):
            return alpha
        penalties = np.full(stream.state["b"].shape[1], alpha)
        penalties[0] = 0.0
        return penalties

    def fresh_state(self, learner: Learner, network: Network, shape: tuple[int, int]) -> State:
        """Return the memory of learner and model before the first row, for B x M coefficients."""
        return learner.start(network, shape, float(self.stream_alpha)) | self.memory(
            len(network.hosted)
        )

    def stream_settings(self) -> dict[str, Any]:
        """Return the parameters that must not change while a stream is running."""
        given: dict[str, Any] = self.get_params(deep=False)
        return {name: value for name, value in given.items() if name not in NOT_OF_STREAMS}

    def check_unchanged(self, stream: Stream, classes: Any = None) -> None:
        """Refuse parameters and classes that differ from those that the stream began with."""
        known: Any = getattr(self, "classes_", None)
        # A quick comparison first, because most calls repeat the same list.
        same = classes is None or (isinstance(classes, list) and classes == known.tolist())
        if not same and not np.array_equal(stream_classes(classes), known):
            raise DataError(
                f"classes {np.asarray(classes).tolist()!r:.100} are not those that the stream "
                f"began with, {known.tolist()!r:.100}: give the same, or leave them out after the "
                "first call"
            )
        for name, before in stream.settings.items():
            value = getattr(self, name)
            if value is before or value == before:
                continue
            if name == PART and self.part(PART) == stream.learner:
                continue
            raise InputError(
                f"{name} was changed from {before!r:.60} to {value!r:.60} while a stream is under "
                "way: set it back, or begin a new stream with sklearn.base.clone(model)"
            )
