"""A running stream as one .npz file, from which it can be resumed. Loading it runs no code from it.

about            JSON text: version, class, parameters, learner, network, and counts so far
W, bias          the hidden layer of an RVFL network (it may not follow from random_state), or
W_in, W, W_fb    the reservoir of an echo state network
classes          of a classifier
state NAME       what the learner and the model remember: hosted agents x ..

An adaptive filter is saved in the same way (filter_archive.py).

The file holds what these agents have learned from their own rows. Their neighbors are not meant to
see it: keep it at its site. `peerlearn.models.archive` saves only the coefficients, for
predictions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.streaming.learner import STREAMING, Learner
from peerlearn.arrays import HUGE, Array
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import InputError
from peerlearn.local.recursive import State
from peerlearn.models.adaptive_filter import AdaptiveFilter
from peerlearn.models.archive import describe, read_archive, write_arrays
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import network_of
from peerlearn.models.filter_archive import filter_from_archive, filter_to_arrays
from peerlearn.models.given_features import features_of, give_features
from peerlearn.models.registry import models
from peerlearn.models.streams import PART, Stream, StreamModel
from peerlearn.network.base import Counts, Network

WAY_OUT = "give the file that save_stream wrote for these agents, and the network that they had"
# What stands for arrays that files of 0.6 do not have. Their streams have no bound, and thresholds
# that have not begun to decay.
MISSING_BEFORE: dict[str, Callable[[State, tuple[int, ...]], Array]] = {
    "accuracy": lambda _, axes: np.full(axes, HUGE),
    "before": lambda state, _: state["b"].copy(),
    "factors": lambda _, axes: np.ones(axes),
}


def save_stream(model: StreamModel | AdaptiveFilter, path: str | os.PathLike[str]) -> None:
    """Write the running stream of a model to a file. It appears only when it is complete.

    Parameters
    ----------
    model : estimator
        A model after `partial_fit`, or an adaptive filter after `run` or `step`.
    path : str or path
        The file, by convention with the ending .npz.
    """
    if isinstance(model, AdaptiveFilter):
        arrays, about = filter_to_arrays(model)
        about["network"] = _describe_network(model.network_in_use)
        _check_and_write(arrays, about, model.network, "leave it as run or step made it", path)
        return
    stream = model.stream_under_way if type(model) in _stream_models().values() else None
    if stream is None:
        raise InputError(
            "only a model that learns from a stream can be saved as one: call partial_fit first"
        )
    model.check_unchanged(stream)
    if type(stream.learner) not in STREAMING.kinds().values():
        raise InputError(
            f"a stream that {type(stream.learner).__name__} learns from cannot be saved: it is not "
            "built in"
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
    way_out = "leave it as partial_fit made it"
    _check_and_write(arrays, about, model.network, way_out, path, features_of(model))


def _check_and_write(
    arrays: dict[str, AnyArray],
    about: dict[str, Any],
    network: Network | None,
    way_out: str,
    path: str | os.PathLike[str],
    features: Any = None,
) -> None:
    """Write the file, after reading it, so that no file is written that cannot be read."""
    arrays["about"] = np.array(json.dumps(about))
    reader = ArchiveReader.of_file(arrays, "the stream cannot be saved", way_out)
    _resume(reader, network, features)
    write_arrays(Path(path).expanduser(), arrays)


def resume_stream(
    path: str | os.PathLike[str], network: Network | None = None, *, features: Any = None
) -> Any:
    """Return the model of a saved stream. Its next partial_fit continues the stream exactly.

    An adaptive filter continues with `step`.

    Parameters
    ----------
    path : str or path
        The file that `save_stream` wrote.
    network : Network or None, default None
        The network of the stream, with the same agents, links and weights as before.
    features : function or fitted transformer, default None
        What the model was given as features, if it was: see `peerlearn.models.archive.load`.
    """
    return _resume(read_archive(path, "stream", "be resumed", WAY_OUT), network, features)


def _stream_models() -> dict[str, type[StreamModel]]:
    return {name: kind for name, kind in models().items() if issubclass(kind, StreamModel)}


def _resume(
    reader: ArchiveReader, network: Network | None, features: Any
) -> StreamModel | AdaptiveFilter:
    here = network_of(network)
    filters = {name: kind for name, kind in models().items() if issubclass(kind, AdaptiveFilter)}
    known = _stream_models()
    _check_network(reader, here)
    chosen = reader.one_of("class", [*known, *filters])
    if chosen in filters:
        return filter_from_archive(filters[chosen], reader, network, len(here.hosted))
    learner = _read_learner(reader)
    kind = known[chosen]
    given = reader.parameters(kind().get_params(deep=False))
    parameters = {**kind.before_files, PART: learner, **given, "network": network}
    model = kind(**parameters)
    give_features(model, reader, features)
    alpha = model.stream_alpha
    if not isinstance(alpha, int | float) or not 0 < alpha < np.inf:
        raise reader.wrong(f"its alpha is {alpha!r:.60}, which is no number above 0")
    model.n_features_in_ = reader.entry("n_features", int)
    columns = reader.columns(model.n_features_in_)
    if columns:
        model.feature_names_in_ = np.array(columns, dtype=object)
    shape = model.stream_from_archive(reader, len(here.hosted))
    shapes = _state_shapes(model, learner, here, *shape)
    state: State = {}
    for name, axes in shapes.items():
        if name in MISSING_BEFORE and f"state {name}" not in reader.arrays:
            state[name] = MISSING_BEFORE[name](state, axes)
            continue
        # Learners change arrays in place, and expect them in C order.
        state[name] = np.ascontiguousarray(reader.numbers(f"state {name}", *axes))
    chunks, rows, sent = _read_counts(reader)
    return model.continue_from(
        Stream(learner, here, model.stream_settings(), state, chunks, rows, sent)
    )


def _state_shapes(
    model: StreamModel, learner: Learner, network: Network, B: int, M: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a fresh state for B x M coefficients, without creating that state.

    B comes from the file, which may claim anything, and a matrix of B x B numbers may be far larger
    than the file. So three small states are created instead. An axis that grows with one more
    feature has length B, one that grows with one more output has length M, and others are fixed.
    """
    small = model.fresh_state(learner, network, (1, 1))
    taller = model.fresh_state(learner, network, (2, 1))
    wider = model.fresh_state(learner, network, (1, 2))
    shapes = {}
    for name, array in small.items():
        shape = list(array.shape)
        for axis, length in enumerate(array.shape):
            if taller[name].shape[axis] > length:
                shape[axis] = B
            elif wider[name].shape[axis] > length:
                shape[axis] = M
        shapes[name] = tuple(shape)
    return shapes


def _describe_network(network: Network) -> dict[str, Any]:
    """Return size, hosted agents, and a checksum of links and weights.

    The state of a learner belongs to these links and weights.
    """
    C = network.mixing
    checksum = crc32(C.indptr.tobytes() + C.indices.tobytes() + C.data.tobytes())
    return {"size": network.size, "hosted": list(network.hosted), "checksum": checksum}


def _check_network(reader: ArchiveReader, network: Network) -> None:
    """Refuse a network that differs from the one of the file."""
    saved = reader.entry("network", dict)
    here = _describe_network(network)
    words = {"size": "number of agents", "hosted": "agents hosted", "checksum": "links or weights"}
    for name, what in words.items():
        if saved.get(name) != here[name]:
            raise reader.wrong(
                f"its {what} are not those of this network "
                f"({saved.get(name)!r:.60}, {here[name]!r:.60})"
            )


def _read_learner(reader: ArchiveReader) -> Learner:
    settings = dict(reader.entry("learner", dict))
    try:
        kind = type(STREAMING.of(str(settings.pop("name", ""))))
        if isinstance(settings.get("averaging"), dict):
            settings["averaging"] = Averaging(**settings["averaging"])
        return kind(**settings)
    except (InputError, TypeError) as error:
        raise reader.wrong(f"its learner cannot be created ({error})") from error


def _read_counts(reader: ArchiveReader) -> tuple[int, int, Counts]:
    """Return the numbers of chunks and rows so far, and what was sent."""
    passed = reader.entry("passed", dict)
    sent = passed.get("sent")
    try:
        numbers = {name: int(value) for name, value in dict(sent or {}).items()}
        counts = Counts(**numbers)
        return int(passed["chunks"]), int(passed["rows"]), counts
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise reader.wrong(f"its counts 'passed' are not valid ({error!r:.60})") from error
