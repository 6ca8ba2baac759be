"""Saved files of echo state networks.

W_in, W, W_fb   the reservoir: units x (1 + inputs), units x units, units x outputs
coefficients    of the constant, the inputs and the states: (1 + inputs + units) x outputs
state, last     states and outputs at the end of the last training sequence, where a forecast
                begins; missing if the first hosted agent had no samples

The text has the entries leak; scaling, the factor of outputs when they are learned; largest, the
largest absolute output in training; and single_output. The file reveals data of the first hosted
agent: `last` is one of its outputs, and `state` depends on its last samples.
"""

from __future__ import annotations

from typing import Any

from peerlearn.data.dataset import AnyArray
from peerlearn.local.reservoir import Reservoir
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.reservoir_stream import ReservoirStream
from peerlearn.models.targets import LARGEST

MOST = 2.0**53  # largest number of samples: up to here float64 counts exactly


class ReservoirArchive(ReservoirStream):
    """Base class of echo state networks that can be saved."""

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        end = self._latest()
        ended = {} if end is None else {"state": end[0], "last": end[1]}
        entries = {
            "leak": float(self.reservoir_.leak),
            "scaling": self._scaling,
            "largest": self._largest(),
            "single_output": self._single_output,
        }
        return self._weights() | ended, entries

    def from_archive(self, reader: ArchiveReader) -> None:
        width, M = self._restore(reader)
        self.coefficients_ = reader.numbers("coefficients", width, M, largest=LARGEST)[None]
        self._end = None
        self._largest_fitted = _read_number(reader, "largest", 0.0, LARGEST)
        if {"state", "last"} & {*reader.arrays}:
            state = reader.numbers("state", self.reservoir_.units, largest=LARGEST)
            self._end = state, reader.numbers("last", M, largest=LARGEST)
        self._standardised = bool({"center", "scale"} & {*reader.arrays})

    def stream_to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        return self._weights(), {"seed": self._seed}

    def stream_from_archive(self, reader: ArchiveReader, agents: int) -> tuple[int, int]:
        shape = self._restore(reader)
        self._seed = reader.entry("seed", int)
        if not 0 <= self._seed < 2**32:
            raise reader.wrong(f"its seed is {self._seed!r:.60}, which is not between 0 and 2^32")
        reader.numbers("state reservoir", agents, self.reservoir_.units, largest=LARGEST)
        reader.numbers("state teacher", agents, shape[1], largest=LARGEST)
        samples = reader.numbers("state samples", agents, largest=MOST)
        if (samples < 0).any() or (samples % 1).any():
            raise reader.wrong("state samples are not whole numbers of 0 or more")
        if (reader.numbers("state largest", agents, largest=LARGEST) < 0).any():
            raise reader.wrong("state largest is below 0, but it is an absolute value")
        return shape

    def _weights(self) -> dict[str, AnyArray]:
        return {"W_in": self.reservoir_.W_in, "W": self.reservoir_.W, "W_fb": self.reservoir_.W_fb}

    def _restore(self, reader: ArchiveReader) -> tuple[int, int]:
        """Set the reservoir and the form of outputs; return the shape of a readout."""
        try:
            self.check_parameters()  # predictions use the washout, and streams the noise as well
        except (TypeError, ValueError) as error:
            raise reader.wrong(str(error)) from error
        W_in = reader.numbers("W_in", None, 1 + self.n_features_in_, largest=LARGEST)
        W = reader.numbers("W", len(W_in), len(W_in), largest=LARGEST)
        W_fb = reader.numbers("W_fb", len(W_in), None, largest=LARGEST)
        leak = _read_number(reader, "leak", 1 / LARGEST, 1.0)
        M = W_fb.shape[1]
        self.reservoir_ = Reservoir(W_in, W, W_fb, leak)
        self._scaling = _read_number(reader, "scaling", 1 / LARGEST, LARGEST**0.5)
        self._single_output = reader.entry("single_output", bool)
        self._n_outputs = M
        if self._single_output and M > 1:
            raise reader.wrong(f"it should have one output, but W_fb is for {M}")
        return self.reservoir_.width, M


def _read_number(reader: ArchiveReader, name: str, least: float, most: float) -> float:
    value = reader.entry(name, float)
    if not least <= value <= most:
        raise reader.wrong(f"its {name} is {value}, which is not between {least:g} and {most:g}")
    return value
