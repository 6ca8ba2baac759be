"""Echo state networks that learn from streams: each agent has one sequence, which goes on from call to call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.models import sequences as given
from peerlearn.models.reservoir_predictor import ReservoirPredictor
from peerlearn.models.streams import Rows, Stream, StreamModel
from peerlearn.network import Network


class ReservoirStream(StreamModel, ReservoirPredictor):
    """Base class of echo state networks, with all that `partial_fit` needs."""

    noise: float
    penalty: str
    _seed: int  # of reservoir and noise
    _end: tuple[Array, Array] | None  # state and outputs at the last sample that fit has seen
    _largest_fitted: float

    def _latest(self) -> tuple[Array, Array] | None:
        stream = self.stream_under_way
        if stream is None:
            return self._end
        state = stream.state
        return (
            (state["reservoir"][0], state["teacher"][0] / self._scaling)
            if state["samples"][0]
            else None
        )

    def _largest(self) -> float:
        stream = self.stream_under_way
        return self._largest_fitted if stream is None else float(stream.state["largest"].max())

    def new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, Mapping[str, Any]]:
        if stream is None and self.penalty != "ridge":
            raise InputError(
                f"a stream is learned with penalty='ridge', not {self.penalty!r}: set it, or use fit"
            )
        chunk = given.chunk_of(self, network, X, y, None if stream is None else self._axes)
        self._single_output, self._n_outputs = chunk.single, chunk.targets[0].shape[1]
        return Rows(chunk.inputs, chunk.targets), {}

    def memory(self, agents: int) -> State:
        return {
            "reservoir": np.zeros((agents, self.reservoir_.units)),  # the last states
            "teacher": np.zeros((agents, self._n_outputs)),  # the last outputs, scaled
            "samples": np.zeros(agents),  # how many have passed
            "largest": np.zeros(agents),  # of the targets, in size
        }

    @property
    def row_width(self) -> int:
        return self.reservoir_.width

    def chunks_of(self, stream: Stream, rows: Rows) -> tuple[list[Chunk], State]:
        memory = {name: stream.state[name].copy() for name in self.memory(0)}
        H = [np.empty((0, self.row_width)) for _ in rows.inputs]
        teachers = [self._scaling * d for d in rows.outputs]
        here = [k for k, x in enumerate(rows.inputs) if len(x)]
        harvest = self.reservoir_.harvest(
            [rows.inputs[k] for k in here],
            [teachers[k] for k in here],
            noise=self._noise_of(stream, here) if self.noise else None,
            amplitude=self.noise,
            h0=memory["reservoir"][here],
            y0=memory["teacher"][here],
        )
        for k, states in zip(here, harvest, strict=True):
            waiting = max(self.washout - int(memory["samples"][k]), 0)
            H[k], d = states[waiting:], teachers[k]
            memory["reservoir"][k], memory["teacher"][k] = (
                states[-1, -self.reservoir_.units :],
                d[-1],
            )
            memory["samples"][k] += len(d)
            memory["largest"][k] = max(memory["largest"][k], np.abs(rows.outputs[k]).max())
        return Chunk.of_rows(
            H, [d[len(d) - len(h) :] for h, d in zip(H, teachers, strict=True)]
        ), memory

    def _noise_of(self, stream: Stream, here: list[int]) -> list[np.random.Generator]:
        """Of each agent's one sequence after so many samples: the same however they were cut into chunks."""
        found = []
        for k in here:
            bits = np.random.PCG64((self._seed, stream.network.hosted[k], 0))
            passed = int(stream.state["samples"][k])
            found.append(np.random.Generator(bits.advance(passed * self.reservoir_.units)))
        return found
