"""Input of models of sequences: the arguments of `fit` and others become checked sequences.

    one array, time x inputs             one sequence; each agent of a network gets one stretch
    a list of arrays, or a 3-D array     many sequences, of any lengths; dealt evenly to the agents
    shares: a list of (X_k, y_k)         the sequences of each hosted agent, X_k in either form

A missing value in a sequence cannot be left out as a row can, because time would jump. Error
messages name its sequence and time. `whose` in this file is the beginning of an error message,
such as "the share of agent 1", or empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from peerlearn import partition
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.models.row_model import are_given_as_shares, axes_of
from peerlearn.models.targets import LARGEST
from peerlearn.network.base import Network

Pair = tuple[Array, Array]  # time x inputs, and y of as many samples


@dataclass(frozen=True)
class Sequences:
    """All sequences of the hosted agents, one agent after another.

    inputs, targets: T_j x D and T_j x M for each sequence.
    owners: for each sequence, the index of its agent among the hosted ones, ascending.
    numbers: for each sequence, its number at that agent.
    last: the sequence after which forecasts begin.
    single: whether y had one axis.
    """

    inputs: list[Array]
    targets: list[Array]
    owners: list[int]
    numbers: list[int]
    last: int
    single: bool

    @classmethod
    def of_agents(cls, pairs: Sequence[Sequence[Pair]], last: tuple[int, int]) -> Sequences:
        """Return the sequences of all hosted agents, from a list for each.

        last: the agent and the number of the last sequence.
        """
        inputs = []
        targets = []
        places = []
        for k, own in enumerate(pairs):
            for j, (x, y) in enumerate(own):
                inputs.append(x)
                outputs = int(np.prod(y.shape[1:]))
                targets.append(y.reshape(len(y), outputs))
                places.append((k, j))
        owners = [k for k, _ in places]
        numbers = [j for _, j in places]
        first_y = next(y for own in pairs for _, y in own)
        return cls(inputs, targets, owners, numbers, places.index(last), first_y.ndim == 1)


class _Checks:
    """Checks that all sequences are like the first, or like those the model was fitted on.

    first: whether the next sequence decides which inputs there are; else the model knows them.
    axes: the shape of y at one time step; None if the next sequence decides it.
    may_be_empty: whether an agent may have a table of 0 rows, which stands for no samples.
    """

    def __init__(
        self,
        model: BaseEstimator,
        *,
        first: bool,
        axes: tuple[int, ...] | None,
        washout: int = 0,
        may_be_empty: bool = False,
    ) -> None:
        self.model = model
        self.first = first
        self.axes = axes
        self.washout = washout
        self.may_be_empty = may_be_empty

    def pairs(self, X: Any, y: Any, whose: str) -> list[Pair]:
        """Return the checked sequences of one agent."""
        if not are_many(X):
            return [self.pair(X, y, whose)]
        targets = split_outputs(y, len(X), whose, "y")
        pairs = []
        for j, (x_j, y_j) in enumerate(zip(list(X), targets, strict=True)):
            pairs.append(self.pair(x_j, y_j, _name_sequence(whose, j), one_of_many=True))
        return pairs

    def pair(self, x: Any, y: Any, whose: str, *, one_of_many: bool = False) -> Pair:
        """Return one checked sequence. One of many sequences must not be empty."""
        may_be_empty = self.may_be_empty and not one_of_many
        x = inputs_of(self.model, x, whose, first=self.first, may_be_empty=may_be_empty)
        y = self._targets(y, whose)
        if len(x) != len(y):
            raise DataError(
                f"{_prefix(whose)}X has {len(x)} samples and y has {len(y)}: give one output, or "
                "one row of outputs, per time step"
            )
        if len(x) <= self.washout and not (may_be_empty and len(x) == 0):
            raise DataError(
                f"{_prefix(whose)}n_samples={len(x)}, which is not more than the washout of "
                f"{self.washout}: give longer sequences, leave this one out, or set a smaller "
                "washout"
            )
        self.first = False
        return x, y

    def _targets(self, y: Any, whose: str) -> Array:
        checked = outputs_of(y, whose, "y")
        if self.axes is None:
            self.axes = checked.shape[1:]
        if checked.shape[1:] != self.axes:
            raise DataError(
                f"{_prefix(whose)}y has shape {checked.shape}, but earlier sequences had "
                f"{_describe_shape(self.axes)}: give all sequences, and all chunks, the same "
                "outputs"
            )
        return checked


def sequences_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, *, washout: int, seed: int
) -> Sequences:
    """Return the sequences of each hosted agent, from the arguments of `fit`.

    An agent of a larger network may have no samples, and then has a table of 0 rows.
    """
    checks = _Checks(model, first=True, axes=None, washout=washout, may_be_empty=network.size > 1)
    if are_given_as_shares(model, network, X, y, "fit"):
        own = [
            checks.pairs(X[k][0], X[k][1], f"the share of agent {agent}")
            for k, agent in enumerate(network.hosted)
        ]
        return Sequences.of_agents(own, (0, len(own[0]) - 1))
    pairs = checks.pairs(X, y, "")
    if len(network.hosted) == 1:  # the only agent of the network, or of this process
        return Sequences.of_agents([pairs], (0, len(pairs) - 1))
    if are_many(X):
        return _deal(pairs, network.size, seed)
    return _cut(*pairs[0], network.size, washout)


def chunk_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, axes: tuple[int, ...] | None
) -> Sequences:
    """Return the next samples of each hosted agent, from the arguments of `partial_fit`.

    axes: the shape of y at one time step in earlier chunks; None for the first chunk.
    """
    checks = _Checks(model, first=axes is None, axes=axes, may_be_empty=True)
    if not are_given_as_shares(model, network, X, y, "partial_fit") and len(network.hosted) > 1:
        raise InputError(
            f"each of {len(network.hosted)} agents has a running sequence of its own, so that "
            "(X, y) cannot be dealt to them: call partial_fit(shares) with a list of (X_k, y_k), "
            "the next samples of each"
        )
    shares = X if y is None else [(X, y)]
    if any(are_many(X_k) for X_k, _ in shares):
        raise DataError(
            "partial_fit takes the next samples of one running sequence per agent, not many "
            "sequences: give each agent's samples as one array, time x inputs"
        )
    names = [f"the share of agent {agent}" for agent in network.hosted] if y is None else [""]
    pairs = []
    for (X_k, y_k), name in zip(shares, names, strict=True):
        pairs.append([checks.pair(X_k, y_k, name)])
    return Sequences.of_agents(pairs, (0, 0))


def pairs_of(
    model: BaseEstimator, X: Any, y: Any, *, washout: int, axes: tuple[int, ...]
) -> list[Pair]:
    """Return the sequences that a fitted model is scored on, with y as samples x M."""
    checks = _Checks(model, first=False, axes=axes, washout=washout)
    pairs = checks.pairs(X, y, "")
    return [(x, d.reshape(len(d), -1)) for x, d in pairs]


def many_inputs(model: BaseEstimator, X: Any) -> list[Array]:
    """Return the sequences to predict."""
    if not are_many(X):
        return [inputs_of(model, X, "")]
    return [inputs_of(model, x, _name_sequence("", j)) for j, x in enumerate(X)]


def read_known_outputs(
    y: Any, x: Sequence[Array], many: bool, axes: tuple[int, ...]
) -> list[Array]:
    """Return the known outputs of the first samples of each sequence, samples x M."""
    known = []
    each = split_outputs(y, len(x), "", "y_known") if many else [y]
    for j, (own, inputs) in enumerate(zip(each, x, strict=True)):
        whose = _name_sequence("", j) if many else ""
        d = outputs_of(own, whose, "y_known")
        if d.shape[1:] != axes or len(d) > len(inputs):
            raise DataError(
                f"{_prefix(whose)}y_known has shape {d.shape}, where {_describe_shape(axes)} is "
                f"expected with {len(inputs)} samples at most: give the known outputs of the first "
                "samples of each sequence"
            )
        known.append(d.reshape(len(d), int(np.prod(axes))))
    return known


def are_many(X: Any) -> bool:
    """Return whether X has many sequences: a list of tables, or an array with three axes."""
    if not isinstance(X, list | tuple):
        return axes_of(X) == 3
    if any(getattr(x, "ndim", 0) == 1 for x in X):
        where = next(j for j, x in enumerate(X) if getattr(x, "ndim", 0) == 1)
        raise DataError(
            f"sequence {where} of X has one axis, and a sequence is an array of time x inputs: for "
            "one input give x[:, None]"
        )
    return any(axes_of(x) == 2 for x in X)


def split_outputs(y: Any, count: int, whose: str, what: str) -> list[Any]:
    """Return the outputs of `count` sequences as a list. `what` is their name, such as y."""
    if not hasattr(y, "__len__") or getattr(y, "ndim", 1) == 0:
        raise DataError(
            f"{_prefix(whose)}{what} is {y!r:.60}: give a list with the outputs of each of {count} "
            "sequences"
        )
    if len(y) != count:
        raise DataError(
            f"{_prefix(whose)}X has {count} sequences and {what} has {len(y)}: give outputs for "
            "each of them"
        )
    # The list of a data frame would be its columns, not its rows.
    return list(np.asarray(y) if hasattr(y, "iloc") else y)


def inputs_of(
    model: BaseEstimator, X: Any, whose: str, *, first: bool = False, may_be_empty: bool = False
) -> Array:
    """Return the checked inputs of one sequence, time x D."""
    _check_axes(X, whose)
    fewest = 0 if may_be_empty else 1
    try:
        x: Array = validate_data(
            model,
            X,
            dtype=np.float64,
            ensure_all_finite=False,
            reset=first,
            ensure_min_samples=fewest,
        )
    except ValueError as error:
        way_out = ""
        if "is expecting" in str(error):
            way_out = " Give all sequences, and all agents, the same columns."
        raise DataError(f"{_prefix(whose)}{error}{way_out}") from error
    _check_finite(x, "X", whose)
    return x


def _check_axes(X: Any, whose: str) -> None:
    """Refuse input with fewer than two axes. Sparse tables are refused by later checks."""
    if isinstance(X, list | tuple) and len(X) == 0:
        raise DataError(
            f"{_prefix(whose)}X is empty: give an array of time x inputs, or a list of them; for "
            "an agent that has no samples a table of 0 rows, x[:0]"
        )
    axes = axes_of(X)
    if axes == 0:
        raise DataError(
            f"{_prefix(whose)}X is of type {type(X).__name__}: give an array of time x inputs, or "
            "a list of them (for a generator, list(X))"
        )
    if axes == 1:
        raise DataError(
            f"{_prefix(whose)}X has one axis, and a sequence is an array of time x inputs. Reshape "
            "your data: for one input give x[:, None], for one sample x[None]"
        )


def outputs_of(y: Any, whose: str, what: str) -> Array:
    """Return the checked outputs of one sequence: one number or one row per time step."""
    try:
        checked: Array = check_array(
            y,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite=False,
            ensure_min_samples=0,
            input_name=what,
        )
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{_prefix(whose)}{what} must hold numbers, one or one row per time step ({error})"
        ) from error
    if checked.ndim == 0:
        raise DataError(
            f"{_prefix(whose)}{what} is {y!r:.60}: give one output, or one row of outputs, per "
            "time step"
        )
    _check_finite(checked, what, whose)
    return checked


def _check_finite(values: Array, what: str, whose: str) -> None:
    largest = np.abs(values).max(initial=0.0)
    if largest <= LARGEST:
        return
    rows = np.abs(values).reshape(len(values), -1).max(axis=1)
    if np.isfinite(largest):
        raise DataError(
            f"{_prefix(whose)}{what} has values up to {largest:.1e} (at time {rows.argmax()}), "
            "whose squares overflow float64: scale them"
        )
    bad = np.flatnonzero(~np.isfinite(rows))
    raise DataError(
        f"{_prefix(whose)}{what} has NaN or inf (infinite) values at {len(bad)} of {len(values)} "
        f"time steps, the first is time {bad[0]}: fill in the values, or cut the sequence in two "
        "there"
    )


def _deal(pairs: Sequence[Pair], agents: int, seed: int) -> Sequences:
    """Return many sequences, dealt evenly to the agents at random."""
    if len(pairs) < agents:
        raise DataError(
            f"{len(pairs)} sequences cannot be dealt to {agents} agents, one each at least: give "
            "more sequences, one array (which is cut into a stretch per agent), or a network of "
            "fewer agents"
        )
    blocks = partition.even_rows(len(pairs), agents, np.random.default_rng(seed))
    hands = [np.sort(block).tolist() for block in blocks]
    last = next(k for k, hand in enumerate(hands) if hand[-1] == len(pairs) - 1)
    own = [[pairs[j] for j in hand] for hand in hands]
    return Sequences.of_agents(own, (last, len(hands[last]) - 1))


def _cut(x: Array, y: Array, agents: int, washout: int) -> Sequences:
    """Return one sequence, cut into one stretch per agent."""
    if len(x) // agents <= washout:
        raise DataError(
            f"n_samples={len(x)}, cut into one stretch per agent, leaves {len(x) // agents} "
            f"samples to some of {agents} agents, which is not more than the washout of {washout}: "
            "give a longer sequence, a smaller washout, or a network of fewer agents"
        )
    inputs = np.array_split(x, agents)
    outputs = np.array_split(y, agents)
    pairs = [[pair] for pair in zip(inputs, outputs, strict=True)]
    return Sequences.of_agents(pairs, (agents - 1, 0))


def _describe_shape(axes: tuple[int, ...]) -> str:
    return f"(samples, {axes[0]})" if axes else "(samples,)"


def _name_sequence(whose: str, j: int) -> str:
    return f"{whose}, sequence {j}" if whose else f"sequence {j}"


def _prefix(whose: str) -> str:
    return f"{whose}: " if whose else ""
