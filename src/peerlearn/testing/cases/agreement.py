"""Cases of agreement: averages, sums, votes and common labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from peerlearn import Averaging, everyone, maximum, total
from peerlearn.algorithms.agreement import union
from peerlearn.algorithms.averaging import METHODS, STOPPINGS
from peerlearn.algorithms.sums import broadcast_from_center
from peerlearn.network.base import Network
from peerlearn.testing.cases.calls import SHAPES, entries, integers
from peerlearn.testing.cases.case import Arrays, Case

COLORS = ("amber", "blue", "cyan", "dun")
TOLERANCE = 1e-8
OUTVOTED = 2  # the agent that votes against


def cases() -> dict[str, Case]:
    """Return the cases of every way to average, and of what else agents agree on."""
    found: dict[str, Case] = {}
    for averaging in _averagings():
        name = f"{averaging.method} by {averaging.stopping}"
        found[f"average {name}"] = partial(_average, averaging=averaging)
        found[f"total {name}"] = partial(_total, averaging=averaging)
    for operation in (total, maximum, broadcast_from_center):
        found[operation.__name__] = partial(_each_shape, operation=operation)
    return found | {"total of integers": _integers, "everyone": _votes, "union": _labels}


def _averagings() -> list[Averaging]:
    """Return each method with each rule to stop that does not look at all agents at once."""
    rules: list[Any] = [rule for rule in STOPPINGS if rule not in ("oracle", "thesis")]
    methods: list[Any] = list(METHODS)
    return [Averaging(method, TOLERANCE, stopping=rule) for method, rule in product(methods, rules)]


def _average(network: Network, averaging: Averaging) -> Arrays:
    # Agents that stop by messages see at once that they agree already.
    alike = averaging.average(network, np.ones((len(network.hosted), 2)))
    return {"alike": alike} | _each_shape(network, averaging.average)


def _total(network: Network, averaging: Averaging) -> Arrays:
    return {"sum": averaging.total(network, entries(network.hosted, (3, 2)))}


def _each_shape(network: Network, operation: Callable[..., Any]) -> Arrays:
    return {str(shape): operation(network, entries(network.hosted, shape)) for shape in SHAPES}


def _integers(network: Network) -> Arrays:
    """Sums wrap around."""
    return {
        kind.__name__: total(network, integers(network.hosted, kind))
        for kind in (np.int64, np.uint64)
    }


def _votes(network: Network) -> Arrays:
    hosted = network.hosted
    ballots = {
        "all": [True for _ in hosted],
        "all but one": [agent != OUTVOTED for agent in hosted],
    }
    return {name: np.full(len(hosted), everyone(network, votes)) for name, votes in ballots.items()}


def _labels(network: Network) -> Arrays:
    hosted = network.hosted
    text = union(network, [_two_colors(agent) for agent in hosted])
    numbers = union(network, [np.arange(agent, agent + 2) for agent in hosted])
    return {"text": np.tile(text, (len(hosted), 1)), "numbers": np.tile(numbers, (len(hosted), 1))}


def _two_colors(agent: int) -> np.ndarray[Any, Any]:
    """Return two of the four colors, never the same two at agents with consecutive numbers."""
    return np.array([COLORS[agent % 4], COLORS[(agent + 1) % 4]])
