"""Signals for filters: one row of samples per hosted agent, checked before the network is asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.models.targets import LARGEST
from peerlearn.network.base import Network


def signals_of(network: Network, *, live: bool = False, **given: Any) -> tuple[Array, ...]:
    """Each signal as hosted agents x samples. live: one number per agent is one sample."""
    rows = [_rows(network, name, signal, live) for name, signal in given.items()]
    for name, signal in zip(given, rows, strict=True):
        if signal.shape != rows[0].shape:
            first = next(iter(given))
            raise DataError(
                f"{name} has {signal.shape[1]} samples, but {first} has {rows[0].shape[1]}: give one for each"
            )
        _must_be_numbers(network, name, signal)
    return tuple(rows)


def _rows(network: Network, name: str, signal: Any, live: bool) -> Array:
    array = real_array(signal)
    if array is None:
        raise DataError(
            f"{name} is no array of real numbers: give hosted agents x samples, the same number of samples for each"
        )
    agents = len(network.hosted)
    if agents == 1 and array.ndim < 2 and (array.ndim == 1 or live):
        array = array.reshape(1, -1)
    elif live and array.ndim == 1 and len(array) == agents:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or len(array) != agents:
        one = ", or one number each" if live else ""
        raise DataError(
            f"{name} has shape {np.shape(signal)}, but this process hosts {agents} agents: give one row of samples for "
            f"each of them{one}"
        )
    if array.shape[1] == 0:
        raise DataError(f"{name} has no samples: give one or more")
    return array


def _must_be_numbers(network: Network, name: str, signal: Array) -> None:
    fine = np.abs(signal) <= LARGEST
    if np.count_nonzero(fine) < fine.size:
        k, n = np.argwhere(~fine)[0].tolist()
        raise DataError(
            f"{name} of agent {network.hosted[k]} is {signal[k, n]:g} at sample {n}: a filter remembers what it hears, "
            f"so that every sample must be a number up to {LARGEST:g}; leave such samples out, or fill them in"
        )


def steps_of(network: Network, name: str, given: Any, default: float, limit: float) -> Array:
    """One step per hosted agent, from a number or one for each; limit: from there on all diverge."""
    agents, value = len(network.hosted), default if given is None else given
    steps = real_array(value)
    if (
        steps is None
        or steps.ndim > 1
        or (steps.ndim == 1 and len(steps) != agents)
        or isinstance(value, bool)
    ):
        raise InputError(
            f"{name} is {value!r:.60}: give a number, or one for each of the {agents} agents hosted here"
        )
    steps = np.broadcast_to(steps, (agents,))
    for agent, step in zip(network.hosted, steps.tolist(), strict=True):
        if not 0 <= step < np.inf:
            raise InputError(f"the {name} of agent {agent} is {step:g}: give a number of 0 or more")
        if step >= limit:
            raise InputError(
                f"the {name} of agent {agent} is {step:g}: filters diverge with {limit:.3g} or more, whatever they hear"
            )
    return steps


def real_array(given: Any) -> Array | None:
    """An array of its own, if real numbers are what was given. Texts are none, though numpy would read them."""
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "biufO" or any(
            isinstance(each, str | bytes) for each in _objects(array)
        ):
            return None
        return np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        return None


def _objects(array: Any) -> Any:
    return array.flat if array.dtype.kind == "O" else ()


def numbers_or_none(given: Any) -> Array | None:
    """An array of numbers, if that is what was given."""
    array = real_array(given)
    return array if array is not None and np.isfinite(array).all() else None


def true_coefficients(order: int, w0: Any) -> Array:
    """The coefficients that signals were made with."""
    coefficients = numbers_or_none(w0)
    if coefficients is None or coefficients.shape != (order,) or not coefficients.any():
        raise DataError(
            f"the true coefficients must be {order} numbers, as the filter has, not all 0: not {w0!r:.60}"
        )
    return coefficients
