"""An adaptive filter as arrays and plain values, from which it goes on exactly.

about            JSON text: version, class, parameters, network, and what was sent so far
NAME             a step size with one number for each hosted agent
state NAME       what the filters remember: hosted agents x ..

The file is written and read by `peerlearn.models.stream_archive`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from peerlearn.data.dataset import AnyArray
from peerlearn.models.adaptive_filter import STEPS, AdaptiveFilter
from peerlearn.models.archive_reader import VERSION, ArchiveReader
from peerlearn.network.base import Counts, Network


def filter_to_arrays(model: AdaptiveFilter) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return the arrays of a filter's file, and the entries of its text except the network."""
    state, sent = model.state_under_way()
    arrays: dict[str, AnyArray] = {
        f"state {name}": array for name, array in state.items() if array.size
    }
    plain = {}
    for name, value in model.get_params(deep=False).items():
        if name == "network":
            continue
        if name in STEPS and np.ndim(value) > 0:
            arrays[name] = np.asarray(value, dtype=np.float64)
        else:
            plain[name] = value.item() if isinstance(value, np.generic) else value
    about = {
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": plain,
        "sent": asdict(sent),
    }
    return arrays, about


def filter_from_archive(
    kind: type[Any], reader: ArchiveReader, network: Network | None, agents: int
) -> AdaptiveFilter:
    """Return the filter of a file, over the network that it had."""
    model: AdaptiveFilter = kind(**reader.parameters(kind().get_params()), network=network)
    for name in STEPS:
        if name in reader.arrays:
            model.set_params(**{name: reader.numbers(name, agents)})
    width = reader.numbers("state theta", agents, None).shape[1]
    fresh = model.fresh_state(reader, width)
    state = {}
    for name, array in fresh.items():
        state[name] = array
        if array.size:
            # Compiled code changes arrays in place, and expects them in C order.
            state[name] = np.array(reader.numbers(f"state {name}", *array.shape), order="C")
    clock = state["clock"]
    if not 0 <= clock[0] < 2**53 or clock[0] != int(clock[0]) or (clock != clock[0]).any():
        raise reader.wrong("its clock is no number of samples that all agents share")
    counts = reader.entry("sent", dict)
    try:
        numbers = {name: int(value) for name, value in counts.items()}
        sent = Counts(**numbers)
    except (OverflowError, TypeError, ValueError) as error:
        raise reader.wrong(f"its counts 'sent' are not valid ({error!r:.60})") from error
    return model.continue_from(state, sent)
