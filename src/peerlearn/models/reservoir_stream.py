"""Echo state networks that learn from streams.

Each agent has one sequence, which continues from call to call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.models import sequence_shares
from peerlearn.models.reservoir_predictor import ReservoirPredictor
from peerlearn.models.streams import Rows, Stream, StreamModel
from peerlearn.network import Network


class ReservoirStream(StreamModel, ReservoirPredictor):
    """Base class of echo state networks with `partial_fit`."""

    noise: float
    penalty: str
    _seed: int  # of reservoir and noise
    _end: tuple[Array, Array] | None  # state and outputs at the last sample of `fit`
    _largest_fitted: float

    def _latest(self) -> tuple[Array, Array] | None:
        stream = self.stream_under_way
        if stream is None:
            return self._end
        state = stream.state
        if state["samples"][0] == 0:
            return None
        return state["reservoir"][0], state["teacher"][0] / self._scaling

    def _largest(self) -> float:
        stream = self.stream_under_way
        return self._largest_fitted if stream is None else float(stream.state["largest"].max())

    def new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, Mapping[str, Any]]:
        if stream is None and self.penalty != "ridge":
            raise InputError(
                f"a stream needs penalty='ridge', not {self.penalty!r}: set it, or use fit"
            )
        axes = None if stream is None else self._axes
        chunk = sequence_shares.chunk_of(self, network, X, y, axes)
        self._single_output = chunk.single
        self._n_outputs = chunk.targets[0].shape[1]
        return Rows(chunk.inputs, chunk.targets), {}

    def memory(self, agents: int) -> State:
        return {
            "reservoir": np.zeros((agents, self.reservoir_.units)),  # the last states
            "teacher": np.zeros((agents, self._n_outputs)),  # the last outputs, scaled
            "samples": np.zeros(agents),  # the number of samples so far
            "largest": np.zeros(agents),  # the largest absolute target so far
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
            d = teachers[k]
            washout_left = max(self.washout - int(memory["samples"][k]), 0)
            H[k] = states[washout_left:]
            memory["reservoir"][k] = states[-1, -self.reservoir_.units :]
            memory["teacher"][k] = d[-1]
            memory["samples"][k] += len(d)
            largest = np.abs(rows.outputs[k]).max()
            memory["largest"][k] = max(memory["largest"][k], largest)
        after_washout = [d[len(d) - len(h) :] for h, d in zip(H, teachers, strict=True)]
        return Chunk.of_rows(H, after_washout), memory

    def _noise_of(self, stream: Stream, here: list[int]) -> list[np.random.Generator]:
        """Return the noise generators of these agents for the next samples.

        They are advanced by the samples so far, so that the noise does not depend on how a stream
        is cut into chunks.
        """
        generators = []
        for k in here:
            bits = np.random.PCG64((self._seed, stream.network.hosted[k], 0))
            passed = int(stream.state["samples"][k])
            bits = bits.advance(passed * self.reservoir_.units)
            generators.append(np.random.Generator(bits))
        return generators
