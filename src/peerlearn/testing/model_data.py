"""A small problem for any model, by what its class takes: rows, columns, sequences or signals.

What an agent has depends on its number alone, and agents are as different as possible: one has a
single row, some have fewer rows than coefficients. Where rows may lack a label, most do, all of
some agents and none of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from peerlearn.arrays import Array

AnyArray = np.ndarray[Any, Any]

ROWS = (1, 30, 4, 25, 7, 13, 18)
METALS = np.array(["iron", "lead", "tin"])
SHARED = np.random.default_rng(5).standard_normal((30, 5))  # correlated with all agents' columns
# Of each agent's sequences. After a washout of 5 some are short.
LENGTHS = ((8,), (60, 13, 300), (7, 9), (40, 40, 40, 41), (6,), (270,), (20, 80))
CHUNKS = (0, 3, 1, 20, 2)
SAMPLES = 520  # filters take their scale from 128, and estimate it again after 512
TRUE_FILTER = np.array([0.6, -0.5, 0.4])


def fit(
    model: Any,
    hosted: Sequence[int],
    two_classes: bool = False,
    form: Any = np.asarray,
    empty: Sequence[int] = (),
    changed: int | None = None,
    weighted: bool = False,
) -> Any:
    """Fit a model to what these agents have.

    form: of their rows. empty: agents with none. changed: an agent with other targets. weighted:
    whether rows have weights.
    """
    if model.takes == "columns":
        common = targets_of_all(is_classifier(model))
        orders = [order(agent) for agent in hosted]
        tables = [columns(agent) for agent in hosted]
        return model.fit(tables, [common[own] for own in orders], ids=orders)
    if model.takes == "signals":
        model.run(*np.stack([signals(agent) for agent in hosted], axis=1))
        return model
    shares: list[tuple[Any, Any]] = []
    for agent in hosted:
        X: Any = form(rows(agent))
        y: Any = targets(model, agent, two_classes)
        if model.takes == "sequences":
            X, y = sequences(agent)
        if agent == changed:
            y = [-one for one in y] if isinstance(y, list) else _other_targets(y)
        if agent in empty:
            if isinstance(X, list):  # sequences
                X = X[0]
                y = y[0]
            X = X[:0]
            y = y[:0]
        shares.append((X, y))
    if weighted:
        return model.fit(shares, sample_weight=[weights(agent) for agent in hosted])
    return model.fit(shares)


def weights(agent: int) -> Array:
    """Return weights of an agent's rows; some are 0."""
    return np.arange(ROWS[agent], dtype=np.float64) % 4 * (1 + agent)


def _other_targets(y: AnyArray) -> AnyArray:
    """Return other numbers, or the label that comes next for every label; -1 stays."""
    if y.dtype.kind == "f":
        return 1 / y if (y > 0).all() else -y
    known = sorted({label for label in y.tolist() if label != -1})
    after = dict(zip(known, known[1:] + known[:1], strict=True))
    return np.array([after.get(label, label) for label in y.tolist()], dtype=y.dtype)


def fit_in_one_place(model: Any, agents: Sequence[int]) -> Any:
    """Fit a model of rows or sequences to what all these agents have together."""
    if model.takes == "sequences":
        shares = [sequences(agent) for agent in agents]
        x = [one for inputs, _ in shares for one in inputs]
        outputs = [one for _, own in shares for one in own]
        return model.fit(x, outputs)
    X = np.vstack([rows(agent) for agent in agents])
    y = np.concatenate([targets(model, agent) for agent in agents])
    return model.fit(X, y)


# Rows


def rows(agent: int) -> Array:
    """Return rows from three clouds in four dimensions, with a third of the entries zero."""
    rng = np.random.default_rng((agent, 9))
    centres = 2.0 * np.eye(3, 4)
    X = rng.standard_normal((ROWS[agent], 4)) + centres[_clouds(agent)]
    return np.where(rng.random(X.shape) < 1 / 3, 0.0, X)


def _clouds(agent: int) -> AnyArray:
    return (np.arange(ROWS[agent]) + agent) % 3


def targets(model: Any, agent: int, two_classes: bool = False) -> AnyArray:
    """Return targets such as the model learns."""
    if not is_classifier(model):
        wanted = get_tags(model).target_tags
        y = numbers(agent) if wanted.multi_output else numbers(agent)[:, 0]
        return np.exp(y) if wanted.positive_only else y
    many = get_tags(model).classifier_tags.multi_class and not two_classes
    classes = 3 if many else 2
    if model.partly_labelled:
        return few_labels(agent, classes)
    return labels(agent, classes)


def labels(agent: int, classes: int) -> AnyArray:
    """Return the label of every row."""
    return METALS[np.minimum(_clouds(agent), classes - 1)]


def few_labels(agent: int, classes: int) -> AnyArray:
    """Return labels, and -1 for most rows: for all of agents 0 and 3, for none of agent 2."""
    y = labels(agent, classes).astype(object)
    known = np.arange(len(y)) % 4 == 0
    if agent in (0, 3):
        known[:] = False
    if agent == 2:
        known[:] = True
    y[~known] = -1
    return y


def numbers(agent: int) -> Array:
    """Return two outputs for every row."""
    outputs: Array = np.sin(rows(agent)[:, :2]) + 0.1 * agent
    return outputs


# Columns


def columns(agent: int) -> Array:
    """Return one to three columns of rows in an order of the agent's own: see `order`."""
    width = 1 + agent % 3
    noise = np.random.default_rng(agent).standard_normal((len(SHARED), width))
    table: Array = (SHARED[:, :width] + noise)[order(agent)]
    return table


def order(agent: int) -> AnyArray:
    """Return the identifiers of an agent's rows, in its order."""
    return np.random.default_rng(agent).permutation(len(SHARED))


def targets_of_all(classifies: bool) -> AnyArray:
    """Return the targets of all rows, which every agent knows."""
    if not classifies:
        return SHARED[:, 4]
    smallest = np.argsort(SHARED[:, :3], axis=1)[:, 0]
    return METALS[smallest]


# Sequences


def sequences(agent: int) -> tuple[list[Array], list[Array]]:
    """Return one to four sequences of different lengths, of two inputs and two outputs."""
    x = [sequence(agent, length, j) for j, length in enumerate(LENGTHS[agent])]
    return x, [outputs_in_time(one) for one in x]


def sequence(agent: int, length: int, number: int = 0) -> Array:
    """Return the inputs of one sequence."""
    rng = np.random.default_rng((agent, length, number, 9))
    return rng.uniform(-1, 1, (length, 2)) + 0.1 * agent


def outputs_in_time(x: Array) -> Array:
    """Return outputs that depend on the inputs now and one step before."""
    before = np.vstack([np.zeros((1, 2)), x[:-1]])
    outputs: Array = np.tanh(x[:, ::-1] * before + 0.3 * before)
    return outputs


def chunk_in_time(agent: int, n: int) -> tuple[Array, Array]:
    """Return the n-th chunk of a stream; some have no samples."""
    x = sequence(agent, CHUNKS[(agent + n) % len(CHUNKS)], n)
    return x, outputs_in_time(x)


# Signals


def signals(agent: int) -> tuple[Array, Array]:
    """Return x and d = tanh(w'x) + noise; some of it is beyond the knots of a spline."""
    rng = np.random.default_rng((agent, 10))
    x = 1.5 * rng.standard_normal(SAMPLES)
    clean = np.tanh(np.convolve(x, TRUE_FILTER)[:SAMPLES])
    noise = 0.1 * rng.standard_normal(SAMPLES)
    return x, clean + noise
