"""Masks cancel in the total, and hide everything else."""

from __future__ import annotations

import os
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from peerlearn.errors import InputError
from peerlearn.secret import wide
from peerlearn.secret.keys import SessionKey, SumContext, derive_pair_key
from peerlearn.secret.masks import mask, mask_graph


def pair_keys(graph, session=b"i" * 32):
    """The keys of all agents, by agent and partner."""
    own = [SessionKey(os.urandom(32)) for _ in graph]
    return [
        {
            j: derive_pair_key(own[i].agree(own[j].public, str(j)), session, i, j)
            for j in sorted(graph[i])
        }
        for i in sorted(graph)
    ]


@pytest.mark.parametrize("limbs", [1, 2, 4])
@pytest.mark.parametrize("agents", [3, 4, 11])
def test_masks_cancel(agents, limbs):
    context = SumContext(0, 3, "gram", (5, 2), limbs, b"", b"")
    masks = [mask(i, keys, context) for i, keys in enumerate(pair_keys(mask_graph(agents, 1)))]
    assert all(own.shape == (10, limbs) for own in masks)
    total = masks[0]
    for own in masks[1:]:
        total = wide.add(total, own)
    assert not total.any()


def test_masks_of_fewer_agents_do_not_cancel():
    context = SumContext(0, 3, "gram", (1,), 1, b"", b"")
    masks = [mask(i, keys, context) for i, keys in enumerate(pair_keys(mask_graph(5, 1)))]
    for count in range(1, 5):
        for some in combinations(masks, count):
            assert np.sum(some, axis=0).any()


def test_masks_of_another_history_do_not_cancel():
    keys = pair_keys(mask_graph(3, 1))
    contexts = [SumContext(0, 3, "gram", (1,), 1, b"", history) for history in (b"", b"", b"x")]
    masks = [mask(i, own, contexts[i]) for i, own in enumerate(keys)]
    assert np.sum(masks, axis=0).any()


def test_masks_on_a_harary_graph_cancel():
    graph = mask_graph(230, 2)
    assert max(dict(graph.degree).values()) == 3
    context = SumContext(0, 0, "count", (2,), 1, b"", b"")
    masks = [mask(i, keys, context) for i, keys in enumerate(pair_keys(graph))]
    assert not np.sum(masks, axis=0).any()
    assert all(own.any() for own in masks)


@pytest.mark.parametrize(("agents", "colluders"), [(201, 1), (201, 2), (230, 5), (203, 200)])
def test_the_graph_of_masks_stays_connected_without_the_colluders(agents, colluders):
    graph = mask_graph(agents, colluders)
    assert sorted(graph) == list(range(agents))
    assert nx.node_connectivity(graph) >= colluders + 1


def test_brute_force_over_all_coalitions_of_a_few_agents():
    """The complete graph of 7 agents, and a Harary graph of 9, as it is used above 200."""
    for graph, colluders in ((mask_graph(7, 5), 5), (nx.hkn_harary_graph(4, 9), 3)):
        for coalition in combinations(graph, colluders):
            assert nx.is_connected(graph.subgraph(set(graph) - set(coalition)))


@pytest.mark.parametrize("agents", [1, 2])
def test_two_agents_have_no_secrets(agents):
    with pytest.raises(InputError, match="needs 3 agents"):
        mask_graph(agents, 1)


@pytest.mark.parametrize("colluders", [0, 4, -1, 1.0, True, "1"])
def test_a_number_of_colluders_that_leaves_no_secret_is_refused(colluders):
    with pytest.raises(InputError, match="from 1 to 3"):
        mask_graph(5, colluders)
