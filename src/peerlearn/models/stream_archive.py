"""A stream under way as one .npz file, so that it can be taken up again: numbers and a text, nothing that runs code.

about            JSON: version, class, parameters, learner, network, and what has passed
W, bias          the hidden layer, by which a stream began without random_state goes on with the same features; or
W_in, W, W_fb    the reservoir
classes          of a classifier
state NAME       what the learner, and the model, remember: hosted agents x ..

It holds what these agents have learned from their own rows, which their neighbors are not meant to
see: keep it at its
site. `peerlearn.models.archive` saves the coefficients alone, for predictions.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.streaming.learner import STREAMING, Learner
from peerlearn.errors import InputError
from peerlearn.models.archive import describe, read_archive, write_arrays
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.registry import models
from peerlearn.models.settings import network_of
from peerlearn.models.streams import PART, Stream, StreamModel
from peerlearn.network.base import Counts, Network

WAY_OUT = "give the file that save_stream wrote for these agents, and the network that they had"


def save_stream(model: StreamModel, path: str | os.PathLike[str]) -> None:
    """Write where the stream is, at once, so that the file is whole or not there."""
    stream = model.stream_under_way if type(model) in _stream_models().values() else None
    if stream is None:
        raise InputError(
            "only a model that learns from a stream can be saved as one: call partial_fit first"
        )
    model.check_unchanged(stream)
    if type(stream.learner) not in STREAMING.kinds().values():
        raise InputError(
            f"a stream that {type(stream.learner).__name__} learns from cannot be saved: it is not built in"
        )
    settings: Any = stream.learner
    arrays, entries = model.stream_to_archive()
    about = {
        **describe(model),
        **model.to_archive()[1],
        "learner": {"name": stream.learner.name, **asdict(settings)},
        "network": _describe_network(stream.network),
        "passed": {"chunks": stream.chunks, "rows": stream.rows, "sent": asdict(stream.sent)},
        "columns": [str(name) for name in getattr(model, "feature_names_in_", ())],
        **entries,
    }
    arrays |= {f"state {name}": array for name, array in stream.state.items()}
    arrays["about"] = np.array(json.dumps(about))
    way_out = "leave it as partial_fit made it"
    reader = ArchiveReader.of_file(arrays, "the stream cannot be saved", way_out)
    _resume(reader, model.network)  # what is written can be read
    write_arrays(Path(path).expanduser(), arrays)


def resume_stream(path: str | os.PathLike[str], network: Network | None = None) -> Any:
    """Return the model as it was: its next partial_fit gives what it would have given then."""
    return _resume(read_archive(path, "stream", "go on", WAY_OUT), network)


def _stream_models() -> dict[str, type[StreamModel]]:
    return {name: kind for name, kind in models().items() if issubclass(kind, StreamModel)}


def _resume(reader: ArchiveReader, network: Network | None) -> StreamModel:
    here, known = network_of(network), _stream_models()
    _check_network(reader, here)
    learner = _read_learner(reader)
    kind = known[reader.one_of("class", known)]
    parameters = {PART: learner, **reader.parameters(kind().get_params()), "network": network}
    alpha = parameters.get("alpha")
    if not isinstance(alpha, int | float) or not 0 < alpha < np.inf:
        raise reader.wrong(f"its alpha is {alpha!r:.60}, which is no number above 0")
    model = kind(**parameters)
    model.n_features_in_ = reader.entry("n_features", int)
    if columns := reader.columns(model.n_features_in_):
        model.feature_names_in_ = np.array(columns, dtype=object)
    shape = model.stream_from_archive(reader, len(here.hosted))
    shapes = _state_shapes(model, learner, here, *shape)
    # In the order of axes in which a learner changes them in place.
    state = {
        name: np.ascontiguousarray(reader.numbers(f"state {name}", *axes))
        for name, axes in shapes.items()
    }
    chunks, rows, sent = _read_passed(reader)
    return model.go_on(Stream(learner, here, model.stream_settings(), state, chunks, rows, sent))


def _state_shapes(
    model: StreamModel, learner: Learner, network: Network, B: int, M: int
) -> dict[str, tuple[int, ...]]:
    """The shapes of a fresh state for B x M coefficients, found without making one, because B is what a file claims.

    A matrix of B x B numbers may be far larger than the file. So three small states are made: an
    axis that is longer where there is one more feature is B, one that is longer where there is one
    more output is M, and others are fixed.
    """
    small, taller, wider = (
        model.fresh_state(learner, network, shape) for shape in ((1, 1), (2, 1), (1, 2))
    )
    return {
        name: tuple(
            B if more > length else M if many > length else length
            for length, more, many in zip(
                x.shape, taller[name].shape, wider[name].shape, strict=True
            )
        )
        for name, x in small.items()
    }


def _describe_network(network: Network) -> dict[str, Any]:
    """Who is hosted, and a checksum of who listens to whom: where sums are kept depends on it."""
    C = network.mixing
    checksum = crc32(C.indptr.tobytes() + C.indices.tobytes() + C.data.tobytes())
    return {"size": network.size, "hosted": list(network.hosted), "checksum": checksum}


def _check_network(reader: ArchiveReader, network: Network) -> None:
    saved, here = reader.entry("network", dict), _describe_network(network)
    for name, what in (
        ("size", "number of agents"),
        ("hosted", "agents hosted"),
        ("checksum", "links or weights"),
    ):
        if saved.get(name) != here[name]:
            raise reader.wrong(
                f"its {what} are not those of this network ({saved.get(name)!r:.60}, {here[name]!r:.60})"
            )


def _read_learner(reader: ArchiveReader) -> Learner:
    settings = dict(reader.entry("learner", dict))
    try:
        kind = type(STREAMING.of(str(settings.pop("name", ""))))
        if isinstance(settings.get("averaging"), dict):
            settings["averaging"] = Averaging(**settings["averaging"])
        return kind(**settings)
    except (InputError, TypeError) as error:
        raise reader.wrong(f"its learner cannot be made ({error})") from error


def _read_passed(reader: ArchiveReader) -> tuple[int, int, Counts]:
    passed = reader.entry("passed", dict)
    sent = passed.get("sent")
    try:
        counts = Counts(**{name: int(value) for name, value in dict(sent or {}).items()})
        return int(passed["chunks"]), int(passed["rows"]), counts
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise reader.wrong(f"what has passed is not counted ({error!r:.60})") from error
