"""Checks of single parameters, the network of a model, and the seeds that all agents share."""

from __future__ import annotations

from functools import cache
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from peerlearn import graphs
from peerlearn.arrays import is_whole
from peerlearn.errors import InputError
from peerlearn.network import Network, SimulatedNetwork

RandomState = int | np.random.RandomState | None  # what a user may give as random_state
Intercept = bool | Literal["auto"]  # what a user may give as fit_intercept


@cache
def one_agent() -> Network:
    """Return the network of one agent, which stands for all data in one place."""
    return SimulatedNetwork(graphs.complete(1))


def network_of(given: Any) -> Network:
    """Return the network of a model. None is the centralised case, a network of one agent."""
    if given is None:
        return one_agent()
    if not isinstance(given, Network):
        raise InputError(
            "network must be a peerlearn Network such as SimulatedNetwork(graph), or None, "
            f"not {type(given).__name__}"
        )
    return given


def number_between(value: Any, name: str, least: float, most: float) -> None:
    """Check that the value is a number from `least` to `most`. NaN is refused."""
    check_scalar(value, name, Real)
    # Compared as a Python number, because a float32 cannot represent every bound.
    plain = value.item() if isinstance(value, np.generic) else value
    if not least <= plain <= most:
        raise InputError(f"{name} is {value}: give a number from {least:g} to {most:g}")


def check_intercept(value: Any) -> None:
    """Check that the value can be fit_intercept."""
    if not isinstance(value, bool | np.bool_) and value != "auto":
        raise InputError(f"fit_intercept is {value!r:.60}: give True, False or 'auto'")


def check_whole_number(value: Any, name: str, least: int) -> None:
    """Check that the value is a whole number of `least` or more. True and False are refused."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name} is {value!r:.60}: give a whole number, {least} or more")


def network_fitted_over(given: Any, agents: int, hosted: tuple[int, ...], why: str) -> Network:
    """Return the network to predict over, if it is the one that the model was fitted over.

    `why` names what each agent has that the others lack. It is used in the error message.
    """
    network = network_of(given)
    if network.size != agents or network.hosted != hosted:
        raise InputError(
            f"this model was fitted over {agents} agents and has the coefficients of "
            f"{', '.join(map(str, hosted))}; each agent has {why} of its own, so that nobody can "
            "predict alone: set network to the one it was fitted over, and let all agents predict "
            "at the same time"
        )
    return network


def seeds_of(random_state: Any, network: Network, count: int) -> list[int]:
    """Return seeds that every agent computes alike, so that random numbers are never sent."""
    if random_state is None and len(network.hosted) < network.size:
        raise InputError(
            "random_state must be a whole number, the same at every agent: each agent draws its "
            "random numbers from it, and they are never sent"
        )
    generator = check_random_state(random_state)
    seeds: list[int] = generator.randint(np.iinfo(np.int32).max, size=count).tolist()
    return seeds
