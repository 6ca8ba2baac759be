"""Cases of single calls: what one round of a network gives, and what is counted for it.

They come before all algorithms. An engine that fails here fails in a few rounds, and the name of
the case says which call is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.network.base import Network
from peerlearn.testing.cases.case import Arrays, Case

SHAPES = ((), (1,), (5,), (3, 4))  # of one agent's entry
STEPS = np.array([[0.6, 0.5, 0.0], [1.2, 0.1, -0.3], [0.9, -0.2, 0.3], [1.1, 0.2, -0.3]])
SILENT = 1  # the agent with nothing to say in `exchange`


def cases() -> dict[str, Case]:
    """Return a case for every call of the contract, by name."""
    return {
        "call mix": partial(_each_shape, call="mix"),
        "call recur": _recur,
        "call flood": partial(_each_shape, call="flood"),
        "call mix_and_flood": _mix_and_flood,
        "call mix_speaking": _mix_speaking,
        "call pass_on": _pass_on,
        "call pass_on of integers": _pass_on_integers,
        "call exchange": _exchange,
    }


def entries(hosted: Sequence[int], shape: tuple[int, ...]) -> Array:
    """Return an entry of this shape for each of these agents."""
    own = []
    for agent in hosted:
        rng = np.random.default_rng((agent, len(shape)))
        own.append(rng.standard_normal(shape))
    return np.stack(own)


def _each_shape(network: Network, call: str) -> Arrays:
    return {str(shape): getattr(network, call)(entries(network.hosted, shape)) for shape in SHAPES}


def _recur(network: Network) -> Arrays:
    found = {str(shape): network.recur(entries(network.hosted, shape), STEPS) for shape in SHAPES}
    return found | {"no steps": network.recur(entries(network.hosted, (2,)), STEPS[:0])}


def _mix_and_flood(network: Network) -> Arrays:
    mixed, largest = network.mix_and_flood(
        entries(network.hosted, (3, 4)), entries(network.hosted, (2,))
    )
    return {"mixed": mixed, "largest": largest}


def _mix_speaking(network: Network) -> Arrays:
    speaking = [agent % 2 == 0 for agent in network.hosted]
    return {"x": network.mix_speaking(entries(network.hosted, (3,)), speaking)}


def _pass_on(network: Network) -> Arrays:
    """Along all links at once, outwards and along the tree, to be added and to be taken over."""
    found: Arrays = {}
    for name, (senders, receivers) in _routes(network).items():
        for add in (True, False):
            x = entries(network.hosted, (2, 3))
            network.pass_on(x, senders, receivers, add=add)
            found[f"{name}, {'added' if add else 'taken over'}"] = x
    return found


def _pass_on_integers(network: Network) -> Arrays:
    """Numbers up to the largest there are: float64 cannot hold them, and sums wrap around."""
    found: Arrays = {}
    senders, receivers = _routes(network)["all links"]
    for kind in (np.int64, np.uint64):
        for add in (True, False):
            x = integers(network.hosted, kind)
            network.pass_on(x, senders, receivers, add=add)
            found[f"{kind.__name__}, {'added' if add else 'taken over'}"] = x
    return found


def integers(hosted: Sequence[int], kind: type[Any]) -> Any:
    """Return integers of any size for each of these agents."""
    limits = np.iinfo(kind)
    own = []
    for agent in hosted:
        rng = np.random.default_rng(agent)
        own.append(rng.integers(limits.min, limits.max, (2, 3), kind))
    return np.stack(own)


def _routes(network: Network) -> dict[str, tuple[Any, Any]]:
    edges = np.array(network.graph.edges, dtype=np.intp).reshape(-1, 2)
    links = np.vstack([edges, edges[:, ::-1]])
    # In the order of `rings`: where an agent takes over one of several rows, it is the last.
    links = links[np.lexsort((links[:, 0], links[:, 1]))]
    leaves = network.tree.levels[-1]
    return {
        "all links": (links[:, 0], links[:, 1]),
        "outwards": network.rings[0],
        "up the tree": (leaves, network.tree.parent[leaves]),
    }


def _exchange(network: Network) -> Arrays:
    hosted = network.hosted
    letters = [_letter(agent) for agent in hosted]
    last = [sorted(network.graph[agent])[-1:] for agent in hosted]
    return {
        "to all": _as_text(network.exchange(letters)),
        "to the last neighbor": _as_text(network.exchange(letters, last)),
        "nothing said": _as_text(network.exchange([{} for _ in hosted])),
    }


def _letter(agent: int) -> Arrays:
    """Return arrays of a size and kind of the agent's own."""
    if agent == SILENT:
        return {}
    numbers = np.arange(agent * 3, dtype=np.float64).reshape(agent, 3) / 7
    marks = np.arange(agent + 1, dtype=np.int8)
    return {"numbers": numbers, "marks": marks, "one": np.array(agent > 2)}


def _as_text(inboxes: Iterable[Mapping[int, Mapping[str, Any]]]) -> np.ndarray[Any, Any]:
    """Return one text per agent: sender, name, type, shape and bits of every array it received."""
    texts = [
        " ".join(
            f"{sender} {name} {array.dtype.str} {array.shape} {array.tobytes().hex()}"
            for sender in sorted(inbox)
            for name, array in inbox[sender].items()
        )
        for inbox in inboxes
    ]
    return np.array(texts, dtype="<U4000")
