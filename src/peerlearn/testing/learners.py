"""The check of learners of streams: what holds for all of them, and what each promises.

of all             alone, after every chunk it has the ridge solution of all rows so far; or the
                   penalty has no effect, and it finds the truth of rows without noise. Agents in
                   threads compute what simulated ones do
exact = True       after every chunk all agents have the ridge solution of all rows so far, on
                   several graphs
exact = False      all agents find the truth of rows without noise, and the rows of every agent
                   count at every agent
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.streaming.learner import Learner
from peerlearn.arrays import Array
from peerlearn.local.chunks import Chunk
from peerlearn.network.base import Network
from peerlearn.testing.comparing import check_threads
from peerlearn.testing.problems import ALPHA, GRAPHS, distance, ridge

FEATURES = 6
OUTPUTS = 2
EXACT = 1e-7  # what rounding and inexact sums may leave
NEAR = 0.05  # of the truth, after many chunks
FAINT = 1e-6  # a penalty that leaves the truth nearly as it is
ALIGNED = 0.5  # cosine between the effect of an agent's rows and what it would be in one place
LEAST = 0.05  # of an even share: what an agent's rows must count for

Chunks = list[tuple[list[Array], list[Array]]]  # of each chunk, features and targets of every agent


def check_learner(learner: Learner) -> None:
    """Check that a learner of streams keeps its promises.

    Parameters
    ----------
    learner : Learner
        An object with `start`, `learn`, `name` and `exact`.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong.

    Examples
    --------
    >>> from peerlearn import StreamExact
    >>> check_learner(StreamExact())
    """
    name = type(learner).__name__
    _check_alone(learner, name)
    for where, graph in GRAPHS.items():
        if learner.exact:
            _check_exact(learner, name, where)
        else:
            _check_everybody_counts(learner, name, where)
        _check_empty_chunks(learner, name, where, len(graph))
    _check_threads(learner, name)


def learn(
    learner: Learner,
    network: Network,
    chunks: Chunks,
    alpha: float,
    after: Callable[[Array], None] | None = None,
) -> Array:
    """Return the coefficients of the hosted agents after all chunks.

    after: called with the coefficients after each chunk.
    """
    state = learner.start(network, (FEATURES, OUTPUTS), alpha)
    for H, Y in chunks:
        own = Chunk.of_rows([H[k] for k in network.hosted], [Y[k] for k in network.hosted])
        state = learner.learn(network, state, own, alpha)
        if after is not None:
            after(state["b"].copy())
    return state["b"].copy()


def draw_chunks(agents: int, count: int, *, noise: float, seed: int = 0) -> tuple[Array, Chunks]:
    """Return the truth, and chunks of unequal sizes, some of them empty."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((FEATURES, OUTPUTS))
    chunks = []
    for _ in range(count):
        sizes = rng.integers(0, 9, agents)
        H = [rng.standard_normal((rows, FEATURES)) for rows in sizes]
        Y = [h @ truth + noise * rng.standard_normal((len(h), OUTPUTS)) for h in H]
        chunks.append((H, Y))
    return truth, chunks


def _solve_pooled(chunks: Chunks, alpha: float) -> Array:
    """Return the ridge solution of the rows of all agents and chunks."""
    H = [own for features, _ in chunks for own in features]
    Y = [own for _, targets in chunks for own in targets]
    return ridge(np.vstack(H), np.vstack(Y), alpha)


def _check_alone(learner: Learner, name: str) -> None:
    one = graphs.complete(1)
    _, chunks = draw_chunks(1, 12, noise=0.3)
    history: list[Array] = []
    learn(learner, SimulatedNetwork(one), chunks, ALPHA, history.append)
    away = []
    for n, b in enumerate(history):
        rows = chunks[n][0][0]
        if len(rows):
            away.append(distance(b, _solve_pooled(chunks[: n + 1], ALPHA)))
    if max(away) <= EXACT:
        return
    other = learn(learner, SimulatedNetwork(one), chunks, 10 * ALPHA)
    assert np.array_equal(other, history[-1]), (
        f"{name} alone is {max(away):.1e} away from the ridge solution of its rows, and the "
        "penalty has an effect on it"
    )
    truth, clean = draw_chunks(1, 200, noise=0.0)
    far = distance(learn(learner, SimulatedNetwork(one), clean, ALPHA), truth)
    assert far <= NEAR, (
        f"{name} alone does not find the truth of 200 chunks without noise: it is {far:.1e} away"
    )


def _check_exact(learner: Learner, name: str, where: str) -> None:
    graph = GRAPHS[where]
    _, chunks = draw_chunks(len(graph), 6, noise=0.3)
    history: list[Array] = []
    learn(learner, SimulatedNetwork(graph), chunks, ALPHA, history.append)
    for n, b in enumerate(history):
        away = distance(b, _solve_pooled(chunks[: n + 1], ALPHA))
        assert away <= EXACT, (
            f"{name} on {where} is {away:.1e} away from the ridge solution after chunk {n + 1}"
        )


def _check_everybody_counts(learner: Learner, name: str, where: str) -> None:
    """Change the truth at each agent in turn: it must have an effect at all agents."""
    graph = GRAPHS[where]
    truth, chunks = draw_chunks(len(graph), 20, noise=0.0)
    before = learn(learner, SimulatedNetwork(graph), chunks, FAINT)
    far = distance(before, truth)
    assert far <= NEAR, (
        f"{name} on {where} does not find the truth of 20 chunks without noise: it is {far:.1e} "
        "away"
    )
    change = np.random.default_rng(1).standard_normal(truth.shape)
    for changed in range(len(graph)):
        other = [_change_agent(chunk, changed, change) for chunk in chunks]
        effects = learn(learner, SimulatedNetwork(graph), other, FAINT) - before
        for agent, effect in enumerate(effects):
            size = float(np.sum(effect * change) / np.sum(change * change))
            length = max(float(np.linalg.norm(effect)), 1e-300)
            cosine = size * float(np.linalg.norm(change)) / length
            assert cosine >= ALIGNED, (
                f"{name} on {where}: the rows of agent {changed} do not count at agent {agent} as "
                f"they should (cosine {cosine:.2f} with their effect in one place)"
            )
            assert size >= LEAST / len(graph), (
                f"{name} on {where}: the rows of agent {changed} count for {size:.1e} at agent "
                f"{agent}"
            )


def _change_agent(
    chunk: tuple[list[Array], list[Array]], agent: int, change: Array
) -> tuple[list[Array], list[Array]]:
    """Return the chunk with other targets of one agent: those of the truth plus `change`."""
    H, Y = chunk
    targets = list(Y)
    targets[agent] = Y[agent] + H[agent] @ change
    return H, targets


def _check_empty_chunks(learner: Learner, name: str, where: str, agents: int) -> None:
    """Check that chunks without any rows change nothing once agents agree."""
    _, chunks = draw_chunks(agents, 3, noise=0.3)
    nothing = ([np.zeros((0, FEATURES))] * agents, [np.zeros((0, OUTPUTS))] * agents)
    sixty = [*chunks, *[nothing] * 60]
    graph = GRAPHS[where]
    before = learn(learner, SimulatedNetwork(graph), sixty, ALPHA)
    after = learn(learner, SimulatedNetwork(graph), [*sixty, nothing], ALPHA)
    moved = distance(after, before[0])
    assert moved <= NEAR, (
        f"{name} on {where} goes on to change after 60 chunks without rows, by {moved:.1e}"
    )


def _check_threads(learner: Learner, name: str) -> None:
    where, graph = next(iter(GRAPHS.items()))
    _, chunks = draw_chunks(len(graph), 6, noise=0.3)
    check_threads(
        f"{name} on {where}",
        graph,
        lambda network: {"coefficients": learn(learner, network, chunks, ALPHA)},
    )
