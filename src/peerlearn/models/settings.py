"""What every model is told and must agree on before any work is done: its network, and seeds that all agents share."""

from __future__ import annotations

from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from peerlearn import graphs
from peerlearn.arrays import is_whole
from peerlearn.errors import InputError
from peerlearn.network import Network, SimulatedNetwork


@cache
def one_agent() -> Network:
    """All data in one place: the centralised case."""
    return SimulatedNetwork(graphs.complete(1))


def network_of(given: Any) -> Network:
    """The network of a model; None is the centralised case, a network of one agent."""
    if given is None:
        return one_agent()
    if not isinstance(given, Network):
        raise InputError(
            f"network must be a peerlearn Network such as SimulatedNetwork(graph), or None, not {type(given).__name__}"
        )
    return given


def number_between(value: Any, name: str, least: float, most: float) -> None:
    """Refuse what is no number, or out of range; NaN is."""
    check_scalar(value, name, Real)
    plain = (
        value.item() if isinstance(value, np.generic) else value
    )  # bounds may be beyond what a float32 can say
    if not least <= plain <= most:
        raise InputError(f"{name} is {value}: give a number from {least:g} to {most:g}")


def whole_from(value: Any, name: str, least: int) -> None:
    """Refuse what is no whole number, or too small; truth values are none."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name} is {value!r:.60}: give a whole number, {least} or more")


def network_fitted_over(given: Any, agents: int, hosted: tuple[int, ...], why: str) -> Network:
    """The network to predict over; `why` says what each agent has that the others lack."""
    network = network_of(given)
    if network.size != agents or network.hosted != hosted:
        raise InputError(
            f"this model was fitted over {agents} agents and has the coefficients of {', '.join(map(str, hosted))}; "
            f"each agent has {why} of its own, so that nobody can predict alone: set network to the one it was fitted "
            "over, and let all agents predict at the same time"
        )
    return network


def seeds_of(random_state: Any, network: Network, count: int) -> list[int]:
    """Seeds that every agent computes alike, so that what is drawn from them is never sent."""
    if random_state is None and len(network.hosted) < network.size:
        raise InputError(
            "random_state must be a whole number, the same at every agent: what is random is drawn from it by each "
            "agent and never sent"
        )
    seeds: list[int] = (
        check_random_state(random_state).randint(np.iinfo(np.int32).max, size=count).tolist()
    )
    return seeds
