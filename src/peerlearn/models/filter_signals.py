"""Input of filters: signals, step sizes and true coefficients, checked before anything is sent.

A signal has one row of samples per hosted agent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.models.targets import LARGEST
from peerlearn.network.base import Network


def signals_of(network: Network, *, live: bool = False, **given: Any) -> tuple[Array, ...]:
    """Return each of the signals given by name as hosted agents x samples.

    live: whether one number per agent is accepted as one sample, and no sample at all.
    """
    rows = [_as_rows(network, name, signal, live) for name, signal in given.items()]
    for name, signal in zip(given, rows, strict=True):
        if signal.shape != rows[0].shape:
            first = next(iter(given))
            raise DataError(
                f"{name} has {signal.shape[1]} samples, but {first} has {rows[0].shape[1]}: give "
                "both the same number of samples"
            )
        _check_samples(network, name, signal)
    return tuple(rows)


def _as_rows(network: Network, name: str, signal: Any, live: bool) -> Array:
    array = real_array(signal)
    if array is None:
        raise DataError(
            f"{name} is no array of real numbers: give hosted agents x samples, the same number of "
            "samples for each"
        )
    agents = len(network.hosted)
    if agents == 1 and array.ndim < 2 and (array.ndim == 1 or live):
        array = array.reshape(1, -1)
    elif live and array.ndim == 1 and len(array) in (0, agents):
        array = array.reshape(agents, -1)
    if array.ndim != 2 or len(array) != agents:
        one = ", or one number each" if live else ""
        raise DataError(
            f"{name} has shape {np.shape(signal)}, but this process hosts {agents} agents: give "
            f"one row of samples for each of them{one}"
        )
    if array.shape[1] == 0 and not live:
        raise DataError(f"{name} has no samples: give one or more")
    return array


def _check_samples(network: Network, name: str, signal: Array) -> None:
    fine = np.abs(signal) <= LARGEST
    if np.count_nonzero(fine) < fine.size:
        k, n = np.argwhere(~fine)[0].tolist()
        raise DataError(
            f"{name} of agent {network.hosted[k]} is {signal[k, n]:g} at sample {n}: every sample "
            f"must be a number up to {LARGEST:g}, because a filter remembers it; leave such "
            "samples out, or fill them in"
        )


def steps_of(network: Network, name: str, given: Any, default: float, limit: float) -> Array:
    """Return one step size per hosted agent, from a number or one number for each.

    limit: step sizes of this or more always diverge, and are refused.
    """
    agents = len(network.hosted)
    value = default if given is None else given
    steps = real_array(value)
    fits = steps is not None and (steps.ndim == 0 or steps.shape == (agents,))
    if steps is None or not fits or isinstance(value, bool):
        raise InputError(
            f"{name} is {value!r:.60}: give a number, or one for each of the {agents} agents "
            "hosted here"
        )
    steps = np.broadcast_to(steps, (agents,))
    for agent, step in zip(network.hosted, steps.tolist(), strict=True):
        if not 0 <= step < np.inf:
            raise InputError(f"the {name} of agent {agent} is {step:g}: give a number of 0 or more")
        if step >= limit:
            raise InputError(
                f"the {name} of agent {agent} is {step:g}: filters diverge with {limit:.3g} or "
                "more, whatever the signals: give a smaller one"
            )
    return steps


def real_array(given: Any) -> Array | None:
    """Return a new array of real numbers, or None if something else was given.

    Texts are refused, although numpy would convert them.
    """
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "biufO":
            return None
        if array.dtype.kind == "O" and any(isinstance(each, str | bytes) for each in array.flat):
            return None
        return np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        return None


def numbers_or_none(given: Any) -> Array | None:
    """Return an array of finite numbers, or None if something else was given."""
    array = real_array(given)
    return array if array is not None and np.isfinite(array).all() else None


def true_coefficients(order: int, w0: Any) -> Array:
    """Return the coefficients that signals were made with, checked."""
    coefficients = numbers_or_none(w0)
    if coefficients is None or coefficients.shape != (order,) or not coefficients.any():
        raise DataError(
            f"the true coefficients must be {order} numbers, as the filter has, and not all 0; "
            f"given was {w0!r:.60}"
        )
    return coefficients
