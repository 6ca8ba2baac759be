"""What a model of sequences is given, turned into checked sequences of each hosted agent.

    one array, time x inputs                  one sequence; over a network one stretch of it per agent
    a list of them, or a 3-D array            many sequences, of different lengths; dealt evenly to the agents
    shares: a list of (X_k, y_k)              each hosted agent's own, X_k in either form

Time counts: a value that is missing in the middle cannot be left out as a row can, and is named by
sequence and time.
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
from peerlearn.models.shares import axes_of, given_as_shares
from peerlearn.models.targets import LARGEST
from peerlearn.network.base import Network

Pair = tuple[Array, Array]  # time x inputs, and y of as many samples


@dataclass(frozen=True)
class Sequences:
    """All sequences of the hosted agents, one agent after another."""

    inputs: list[Array]  # T_j x D
    targets: list[Array]  # T_j x M
    owners: list[int]  # the place of their agent among the hosted ones, ascending
    numbers: list[int]  # and their number at that agent
    last: int  # the one whose end is the end of what was given
    single: bool  # whether y had one axis

    @classmethod
    def of_agents(cls, pairs: Sequence[Sequence[Pair]], last: tuple[int, int]) -> Sequences:
        """From each hosted agent's own; last: at which agent, and which of its sequences."""
        flat = [(k, j, x, y) for k, own in enumerate(pairs) for j, (x, y) in enumerate(own)]
        owners, numbers = [k for k, _, _, _ in flat], [j for _, j, _, _ in flat]
        targets = [y.reshape(len(y), int(np.prod(y.shape[1:]))) for _, _, _, y in flat]
        places = list(zip(owners, numbers, strict=True))
        return cls(
            [x for _, _, x, _ in flat],
            targets,
            owners,
            numbers,
            places.index(last),
            flat[0][3].ndim == 1,
        )


class _Checks:
    """One sequence after another: all must be like the first, or like what the model was fitted on."""

    def __init__(
        self,
        model: BaseEstimator,
        *,
        first: bool,
        axes: tuple[int, ...] | None,
        washout: int = 0,
        may_be_empty: bool = False,
    ) -> None:
        self.model, self.first, self.axes = model, first, axes
        self.washout, self.may_be_empty = washout, may_be_empty

    def pairs(self, X: Any, y: Any, whose: str) -> list[Pair]:
        """One agent's sequences. Where it may have none, a table of 0 rows stands for that."""
        if not are_many(X):
            return [self.pair(X, y, whose)]
        many, targets = list(X), as_many(y, len(X), whose, "y")
        names = [_named(whose, j) for j in range(len(many))]
        return [
            self.pair(x_j, y_j, name, one_of_many=True)
            for x_j, y_j, name in zip(many, targets, names, strict=True)
        ]

    def pair(self, x: Any, y: Any, whose: str, *, one_of_many: bool = False) -> Pair:
        may_be_empty = self.may_be_empty and not one_of_many
        x = inputs_of(self.model, x, whose, first=self.first, may_be_empty=may_be_empty)
        y = self._targets(y, whose)
        if len(x) != len(y):
            raise DataError(
                f"{_whose(whose)}X has {len(x)} samples and y has {len(y)}: give one output, or one row of outputs, "
                "per time step"
            )
        if len(x) <= self.washout and not (may_be_empty and len(x) == 0):
            raise DataError(
                f"{_whose(whose)}n_samples={len(x)}, which is not more than the washout of {self.washout}: give "
                "longer sequences, leave this one out, or set a smaller washout"
            )
        self.first = False
        return x, y

    def _targets(self, y: Any, whose: str) -> Array:
        checked = outputs_of(y, whose, "y")
        if self.axes is None:
            self.axes = checked.shape[1:]
        if checked.shape[1:] != self.axes:
            raise DataError(
                f"{_whose(whose)}y has shape {checked.shape}, where {_shape(self.axes)} is what came before: give "
                "all sequences, and all chunks, the same outputs"
            )
        return checked


def sequences_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, *, washout: int, seed: int
) -> Sequences:
    """Checked sequences of each hosted agent, from fit(X, y) or from fit(shares).

    An agent among others may have none: a table of 0 rows.
    """
    checks = _Checks(model, first=True, axes=None, washout=washout, may_be_empty=network.size > 1)
    if given_as_shares(model, network, X, y, "fit"):
        own = [
            checks.pairs(X[k][0], X[k][1], f"the share of agent {agent}")
            for k, agent in enumerate(network.hosted)
        ]
        return Sequences.of_agents(own, (0, len(own[0]) - 1))
    pairs = checks.pairs(X, y, "")
    if len(network.hosted) == 1:  # the whole network, or this agent's own share
        return Sequences.of_agents([pairs], (0, len(pairs) - 1))
    if are_many(X):
        return _dealt(pairs, network.size, seed)
    return _stretches(*pairs[0], network.size, washout)


def chunk_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, axes: tuple[int, ...] | None
) -> Sequences:
    """The next samples of each hosted agent's one sequence, some of them none; axes: those of y in chunks before."""
    checks = _Checks(model, first=axes is None, axes=axes, may_be_empty=True)
    if not given_as_shares(model, network, X, y, "partial_fit") and len(network.hosted) > 1:
        raise InputError(
            f"each of {len(network.hosted)} agents has a running sequence of its own, which (X, y) cannot be dealt to: "
            "call partial_fit(shares) with a list of (X_k, y_k), the next samples of each"
        )
    shares = X if y is None else [(X, y)]
    if any(are_many(X_k) for X_k, _ in shares):
        raise DataError(
            "partial_fit takes the next samples of one running sequence per agent, not many sequences: give each "
            "agent's as one array, time x inputs"
        )
    names = [f"the share of agent {agent}" for agent in network.hosted] if y is None else [""]
    return Sequences.of_agents(
        [[checks.pair(X_k, y_k, name)] for (X_k, y_k), name in zip(shares, names, strict=True)],
        (0, 0),
    )


def pairs_of(
    model: BaseEstimator, X: Any, y: Any, *, washout: int, axes: tuple[int, ...]
) -> list[Pair]:
    """Sequences to compare a fitted model with."""
    checks = _Checks(model, first=False, axes=axes, washout=washout)
    return [(x, d.reshape(len(d), -1)) for x, d in checks.pairs(X, y, "")]


def many_inputs(model: BaseEstimator, X: Any) -> list[Array]:
    """Sequences to predict."""
    if not are_many(X):
        return [inputs_of(model, X, "")]
    return [inputs_of(model, x, _named("", j)) for j, x in enumerate(X)]


def known_outputs(y: Any, x: Sequence[Array], many: bool, axes: tuple[int, ...]) -> list[Array]:
    """The outputs of the first samples of each of these sequences, samples x M."""
    known = []
    for j, (own, inputs) in enumerate(
        zip(as_many(y, len(x), "", "y_known") if many else [y], x, strict=True)
    ):
        whose = _named("", j) if many else ""
        d = outputs_of(own, whose, "y_known")
        if d.shape[1:] != axes or len(d) > len(inputs):
            raise DataError(
                f"{_whose(whose)}y_known has shape {d.shape}, where {_shape(axes)} is expected with {len(inputs)} "
                "samples at most: give the known outputs of the first samples of each sequence"
            )
        known.append(d.reshape(len(d), int(np.prod(axes))))
    return known


def are_many(X: Any) -> bool:
    """Whether X are many sequences, a list of tables or a 3-D array; else it is one table."""
    if not isinstance(X, list | tuple):
        return axes_of(X) == 3
    if any(getattr(x, "ndim", 0) == 1 for x in X):
        where = next(j for j, x in enumerate(X) if getattr(x, "ndim", 0) == 1)
        raise DataError(
            f"sequence {where} of X has one axis, and a sequence is an array of time x inputs: of one input give "
            "x[:, None]"
        )
    return any(axes_of(x) == 2 for x in X)


def as_many(y: Any, count: int, whose: str, what: str) -> list[Any]:
    """The y of so many sequences: a list, or an array whose first axis they are; what: its name."""
    if not hasattr(y, "__len__") or getattr(y, "ndim", 1) == 0:
        raise DataError(
            f"{_whose(whose)}{what} is {y!r:.60}: give a list with the outputs of each of {count} sequences"
        )
    if len(y) != count:
        raise DataError(
            f"{_whose(whose)}X has {count} sequences and {what} has {len(y)}: give outputs to each of them"
        )
    return list(
        np.asarray(y) if hasattr(y, "iloc") else y
    )  # rows of a data frame, which itself gives columns


def inputs_of(
    model: BaseEstimator, X: Any, whose: str, *, first: bool = False, may_be_empty: bool = False
) -> Array:
    """One sequence of inputs, time x D."""
    _must_be_a_table(X, whose)
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
        way_out = (
            " Give all sequences, and all agents, the same columns."
            if "is expecting" in str(error)
            else ""
        )
        raise DataError(f"{_whose(whose)}{error}{way_out}") from error
    _must_be_finite(x, "X", whose)
    return x


def _must_be_a_table(X: Any, whose: str) -> None:
    """What has fewer than two axes is no sequence; of sparse tables the checks that follow speak."""
    if isinstance(X, list | tuple) and len(X) == 0:
        raise DataError(
            f"{_whose(whose)}X is empty: give an array of time x inputs, or a list of them; for an agent that has no "
            "samples a table of 0 rows, x[:0]"
        )
    if (axes := axes_of(X)) == 0:
        raise DataError(
            f"{_whose(whose)}X is of type {type(X).__name__}: give an array of time x inputs, or a list of them (of "
            "what is made one by one, list(X))"
        )
    if axes == 1:
        raise DataError(
            f"{_whose(whose)}X has one axis, and a sequence is an array of time x inputs. Reshape your data: of one "
            "input give x[:, None], of one sample x[None]"
        )


def outputs_of(y: Any, whose: str, what: str) -> Array:
    """The outputs of one sequence: as many as time steps, or time x M."""
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
            f"{_whose(whose)}{what} must hold numbers, one or one row per time step ({error})"
        ) from error
    if checked.ndim == 0:
        raise DataError(
            f"{_whose(whose)}{what} is {y!r:.60}: give one output, or one row of outputs, per time step"
        )
    _must_be_finite(checked, what, whose)
    return checked


def _must_be_finite(values: Array, what: str, whose: str) -> None:
    largest = np.abs(values).max(initial=0.0)
    if largest <= LARGEST:
        return
    rows = np.abs(values).reshape(len(values), -1).max(axis=1)
    if np.isfinite(largest):
        raise DataError(
            f"{_whose(whose)}{what} has values up to {largest:.1e} (at time {rows.argmax()}), whose squares are beyond "
            "all numbers: scale them"
        )
    bad = np.flatnonzero(~np.isfinite(rows))
    raise DataError(
        f"{_whose(whose)}{what} has NaN or inf (infinite) values at {len(bad)} of {len(values)} time steps, the first "
        f"is time {bad[0]}: fill in the values, or cut the sequence in two there"
    )


def _dealt(pairs: Sequence[Pair], agents: int, seed: int) -> Sequences:
    if len(pairs) < agents:
        raise DataError(
            f"{len(pairs)} sequences cannot be dealt to {agents} agents, one each at least: give more sequences, one "
            "array (which is cut into a stretch per agent), or a network of fewer agents"
        )
    dealt = [
        np.sort(own).tolist()
        for own in partition.even_rows(len(pairs), agents, np.random.default_rng(seed))
    ]
    last = next(k for k, own in enumerate(dealt) if own[-1] == len(pairs) - 1)
    return Sequences.of_agents(
        [[pairs[j] for j in own] for own in dealt], (last, len(dealt[last]) - 1)
    )


def _stretches(x: Array, y: Array, agents: int, washout: int) -> Sequences:
    if len(x) // agents <= washout:
        raise DataError(
            f"n_samples={len(x)}, cut into one stretch per agent, leaves {len(x) // agents} samples to some of "
            f"{agents} agents, which is not more than the washout of {washout}: give a longer sequence, a smaller "
            "washout, or a network of fewer agents"
        )
    pairs = list(zip(np.array_split(x, agents), np.array_split(y, agents), strict=True))
    return Sequences.of_agents([[pair] for pair in pairs], (agents - 1, 0))


def _shape(axes: tuple[int, ...]) -> str:
    return f"(samples, {axes[0]})" if axes else "(samples,)"


def _named(whose: str, j: int) -> str:
    return f"{whose}, sequence {j}" if whose else f"sequence {j}"


def _whose(whose: str) -> str:
    return f"{whose}: " if whose else ""
