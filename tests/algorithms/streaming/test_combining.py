"""Censored talk: where nothing is new, agents agree and fall silent."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import DiffusionRLS, SimulatedNetwork, StreamConsensus, graphs
from peerlearn.algorithms.streaming import combining
from tests.algorithms.streaming.test_learner import states, stream_of

GRAPHS = {
    "ring": graphs.ring(6),
    "random": graphs.erdos_renyi(20, 0.3, seed=0),
    "line": graphs.line(4),
    "complete": graphs.complete(8),
    "star": graphs.star(10),
}


def talk(network, threshold, rounds, news=0.0):
    """b after so many rounds of combining, and the share of agents that spoke in each round."""
    rng = np.random.default_rng(0)
    b = 5.0 + rng.standard_normal((network.size, 4, 1))
    state = combining.memory(network, (4, 1), threshold)
    shares = []
    for _ in range(rounds):
        before = state["silences"]
        b = b + news * rng.standard_normal(b.shape)
        b = combining.combine(network, state, b, threshold)
        shares.append(1 - np.mean(state["silences"] - before))
    return b, np.array(shares)


@pytest.mark.parametrize("threshold", [0.3, 0.1, 1e-2])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_agents_agree_and_fall_silent_where_nothing_is_new(graph, threshold):
    network = SimulatedNetwork(graph)
    start, _ = talk(network, threshold, 0)
    b, shares = talk(network, threshold, 600)
    assert np.abs(b - start.mean(axis=0)).max() < 1e-8
    assert shares.mean() < 0.5
    assert shares[-50:].max() == 0


def test_news_that_keeps_coming_keeps_the_threshold(monkeypatch):
    network = SimulatedNetwork(GRAPHS["random"])
    found = talk(network, 0.1, 400, news=0.01)
    monkeypatch.setattr(combining, "DECAY", 1.0)
    fixed = talk(network, 0.1, 400, news=0.01)
    np.testing.assert_array_equal(found[0], fixed[0])
    np.testing.assert_array_equal(found[1], fixed[1])


def test_news_after_silence_is_sent_by_the_agent_that_has_it():
    network = SimulatedNetwork(graphs.ring(6))
    state = combining.memory(network, (2, 1), 0.1)
    b = np.ones((6, 2, 1))
    for _ in range(300):
        b = combining.combine(network, state, b, 0.1)
    quiet = state["silences"].copy()
    b[2] += 1.0
    combining.combine(network, state, b, 0.1)
    assert (state["silences"] - quiet).tolist() == [1, 1, 0, 1, 1, 1]
    assert state["factors"][2] == 1.0


@pytest.mark.parametrize("learner", [StreamConsensus, DiffusionRLS])
def test_a_stream_that_ends(learner):
    """Chunks without rows follow those with rows: the last are learned, and then all agree."""
    _, stream = stream_of(8, 60)
    nothing = ([H[:0] for H in stream[0][0]], [Y[:0] for Y in stream[0][1]])
    network = SimulatedNetwork(graphs.erdos_renyi(8, 0.4, seed=0))
    *_, before, last = states(learner(threshold=0.1), network, stream + 600 * [nothing])
    spread = np.ptp(last["b"], axis=0).max() / np.abs(last["b"]).max()
    assert spread < 1e-8
    np.testing.assert_array_equal(last["silences"], before["silences"] + 1)
