"""A small problem for any model, by what its class says that it takes.

What an agent has depends on its number alone, and agents are as unlike as can be: one has a single
row, some have fewer
rows than coefficients. Where rows may lack a label, most do, all of some agents and none of
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

ROWS = (1, 30, 4, 25, 7, 13, 18)
METALS = np.array(["iron", "lead", "tin"])
SHARED = np.random.default_rng(5).standard_normal(
    (30, 5)
)  # what the columns of all agents have to do with
LENGTHS = (
    (8,),
    (60, 13, 300),
    (7, 9),
    (40, 40, 40, 41),
    (6,),
    (270,),
    (20, 80),
)  # after a washout of 5, some short
CHUNKS = (0, 3, 1, 20, 2)
SAMPLES = 19
TRUE_FILTER = np.array([0.6, -0.5, 0.4])


def fit(
    model: Any, hosted: Sequence[int], two_classes: bool = False, form: Any = np.asarray
) -> Any:
    """Fit a model to what these agents have; form: of their rows."""
    if model.takes == "sequences":
        return model.fit([sequences(agent) for agent in hosted])
    if model.takes == "columns":
        y, orders = targets_of_all(is_classifier(model)), [order(agent) for agent in hosted]
        return model.fit(
            [columns(agent) for agent in hosted], [y[own] for own in orders], ids=orders
        )
    return model.fit([(form(rows(agent)), targets(model, agent, two_classes)) for agent in hosted])


# Rows
# --------------------------------------------------------------------------------------------------------------


def rows(agent: int) -> np.ndarray:
    """Three clouds in four dimensions, a third of the entries zero."""
    rng = np.random.default_rng((agent, 9))
    X = rng.standard_normal((ROWS[agent], 4)) + 2.0 * np.eye(3, 4)[clouds(agent)]
    return np.where(rng.random(X.shape) < 1 / 3, 0.0, X)


def clouds(agent: int) -> np.ndarray:
    return (np.arange(ROWS[agent]) + agent) % 3


def targets(model: Any, agent: int, two_classes: bool = False) -> np.ndarray:
    """Such as the model learns."""
    if not is_classifier(model):
        return numbers(agent)
    many = get_tags(model).classifier_tags.multi_class and not two_classes
    return (few_labels if model.partly_labelled else labels)(agent, 3 if many else 2)


def labels(agent: int, classes: int) -> np.ndarray:
    return METALS[np.minimum(clouds(agent), classes - 1)]


def few_labels(agent: int, classes: int) -> np.ndarray:
    """Every third row has its label; all of agent 2 have, none of agents 0 and 3. The texts are objects beside -1."""
    y = labels(agent, classes).astype(object)
    known = {0: np.zeros(len(y), bool), 2: np.ones(len(y), bool), 3: np.zeros(len(y), bool)}
    y[~known.get(agent, np.arange(len(y)) % 4 == 0)] = -1
    return y


def numbers(agent: int) -> np.ndarray:
    """Two outputs."""
    return np.sin(rows(agent)[:, :2]) + 0.1 * agent


# Columns
# -----------------------------------------------------------------------------------------------------------


def columns(agent: int) -> np.ndarray:
    """One to three of them, of rows in an order of the agent's own: see `order`."""
    noise = np.random.default_rng(agent).standard_normal((len(SHARED), 1 + agent % 3))
    return (SHARED[:, : 1 + agent % 3] + noise)[order(agent)]


def order(agent: int) -> np.ndarray:
    return np.random.default_rng(agent).permutation(len(SHARED))


def targets_of_all(classifies: bool) -> np.ndarray:
    """What all agents know of the rows."""
    return METALS[np.argsort(SHARED[:, :3], axis=1)[:, 0]] if classifies else SHARED[:, 4]


# Sequences
# ---------------------------------------------------------------------------------------------------------


def sequences(agent: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """One to four of unlike lengths, of two inputs and two outputs."""
    x = [sequence(agent, length, j) for j, length in enumerate(LENGTHS[agent])]
    return x, [outputs_in_time(one) for one in x]


def sequence(agent: int, length: int, number: int = 0) -> np.ndarray:
    return (
        np.random.default_rng((agent, length, number, 9)).uniform(-1, 1, (length, 2)) + 0.1 * agent
    )


def outputs_in_time(x: np.ndarray) -> np.ndarray:
    """They depend on what was."""
    before = np.vstack([np.zeros((1, 2)), x[:-1]])
    return np.tanh(x[:, ::-1] * before + 0.3 * before)


def chunk_in_time(agent: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The n-th chunk of a stream: some have no samples."""
    x = sequence(agent, CHUNKS[(agent + n) % len(CHUNKS)], n)
    return x, outputs_in_time(x)


# Signals
# -----------------------------------------------------------------------------------------------------------


def signals(agent: int) -> tuple[np.ndarray, np.ndarray]:
    """x and d = tanh(w'x) + noise; some of it beyond the knots of a spline."""
    rng = np.random.default_rng((agent, 10))
    x = 1.5 * rng.standard_normal(SAMPLES)
    return x, np.tanh(np.convolve(x, TRUE_FILTER)[:SAMPLES]) + 0.1 * rng.standard_normal(SAMPLES)


def stacked(hosted: Any, work: Any) -> list[np.ndarray]:
    """Each array that work(agent) gives, of all these agents."""
    return [np.stack(each) for each in zip(*map(work, hosted), strict=True)]
