"""The check of adaptive filters that agents learn together.

of all         the system that made the signals is found, alone and over a network; an agent that
               hears silence learns it from its neighbors; sample by sample gives what a recording
               gives; agents in threads compute what simulated ones do, and send what is counted
alone          with the settings that the class calls `alone` nothing is sent, an agent that hears
               silence learns nothing, and the others find the system
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from peerlearn import SimulatedNetwork, graphs
from peerlearn.arrays import Array
from peerlearn.models.adaptive_filter import AdaptiveFilter
from peerlearn.testing.cases.case import Arrays
from peerlearn.testing.cases.models import over
from peerlearn.testing.comparing import check_threads, quiet
from peerlearn.testing.model_settings import make_small
from peerlearn.testing.problems import GRAPHS

W0 = np.array([0.8, -0.4, 0.2])  # the system: d = w0'x, without a nonlinearity
SAMPLES = 3000
FEW = 520  # samples for comparisons of bits: the scale is estimated after 128 and 512
SILENT = 2  # the agent that hears nothing
FOUND = 0.05  # relative distance to the system that counts as found
CLOSE = 1e-9  # between a recording and its samples one by one

__all__ = ["check_filter"]


def check_filter(model: AdaptiveFilter | type[AdaptiveFilter]) -> None:
    """Check that an adaptive filter finds the system behind the signals, together and alone.

    Parameters
    ----------
    model : AdaptiveFilter or type
        A class, or a filter of order 3 or more that has not heard any signal.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong.

    Examples
    --------
    >>> from peerlearn import LMSFilter
    >>> check_filter(LMSFilter)
    """
    filters = make_small(model) if isinstance(model, type) else clone(model)
    name = type(filters).__name__
    with quiet():
        _check_finds_system(
            f"{name} alone", filters, SimulatedNetwork(graphs.complete(1)), silent=False
        )
        for where, graph in GRAPHS.items():
            network = SimulatedNetwork(graph, exact_order=True)
            _check_finds_system(f"{name} on {where}", filters, network, silent=True)
            _check_alone(f"{name} on {where}", filters, len(graph))
    _check_samples(name, filters)
    graph = GRAPHS["a ring of 5"]
    check_threads(name, graph, lambda network: _listen(over(network, filters)))


def draw_signals(agent: int, samples: int) -> tuple[Array, Array]:
    """Return an agent's inputs, within the knots of a spline, and the outputs of the system."""
    x = np.random.default_rng((agent, 4)).uniform(-1, 1, samples)
    d: Array = np.convolve(x, W0)[:samples]
    return x, d


def _stack(agents: Any, samples: int, silent: bool) -> tuple[Array, Array]:
    signals = [draw_signals(agent, samples) for agent in agents]
    x = np.stack([own for own, _ in signals])
    d = np.stack([own for _, own in signals])
    if silent:
        heard = np.array([agent != SILENT for agent in agents])[:, None]
        return x * heard, d * heard
    return x, d


def _off(filters: Any) -> Array:
    """Return how far each agent's filter is from the system, by what it makes of new signals."""
    x, d = _stack(range(100, 100 + len(filters.coefficients_)), 200, silent=False)
    error = filters.predict(x) - d
    off: Array = np.sqrt((error**2).mean(axis=1) / (d**2).mean(axis=1))
    return off


def _check_finds_system(
    what: str, filters: Any, network: SimulatedNetwork, *, silent: bool
) -> None:
    own = over(network, filters)
    x, d = _stack(network.hosted, SAMPLES, silent)
    run = own.run(x, d)
    assert run.sent == network.ledger.since(), (
        f"{what} reports {run.sent}, but the ledger has {network.ledger.since()}"
    )
    for agent, off in enumerate(_off(own)):
        heard = "which hears silence, " if silent and agent == SILENT else ""
        assert off <= FOUND, (
            f"{what}: agent {agent}, {heard}is {off:.1e} off the system after {SAMPLES} samples"
        )


def _check_alone(what: str, filters: Any, agents: int) -> None:
    """Check that agents that are to learn alone do."""
    network = SimulatedNetwork(graphs.ring(agents))
    own = over(network, filters).set_params(**filters.alone)
    x, d = _stack(network.hosted, SAMPLES, silent=True)
    own.run(x, d)
    assert network.ledger.messages == 0, (
        f"{what} sends {network.ledger.messages} messages with {dict(filters.alone)}"
    )
    off = _off(own)
    others = np.delete(off, SILENT)
    assert others.max() <= FOUND, (
        f"{what}: an agent alone is {others.max():.1e} off the system after {SAMPLES} samples"
    )
    assert off[SILENT] > FOUND, (
        f"{what}: agent {SILENT} hears silence, is alone, and knows the system all the same"
    )


def _check_samples(name: str, filters: Any) -> None:
    """Check that samples one by one give what the recording gives."""
    graph = GRAPHS["a ring of 5"]
    x, d = _stack(range(5), FEW, silent=False)
    recorded = over(SimulatedNetwork(graph, exact_order=True), filters)
    expected = recorded.run(x, d).outputs
    live = over(SimulatedNetwork(graph, exact_order=True), filters)
    found = np.column_stack([live.step(x[:, n], d[:, n]) for n in range(FEW)])
    away = float(np.abs(found - expected).max())
    assert away <= CLOSE, (
        f"{name}: samples one by one give outputs that are {away:.1e} away from the recording's"
    )


def _listen(filters: Any) -> Arrays:
    x, d = _stack(filters.network.hosted, FEW, silent=False)
    run = filters.run(x, d)
    return {"outputs": run.outputs, "coefficients": filters.coefficients_}
