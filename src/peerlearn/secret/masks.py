"""Masks that cancel in the total of all agents, and who has masks in common with whom.

    m_i = sum over partners j > i of stream_ij  -  sum over partners j < i of stream_ij
    sum over all i of m_i = 0                                       modulo 2^(64 w)

Agent i sends x_i + m_i. What a coalition sees of the other agents is a sum over sets of them, each
with masks that the coalition does not know as long as a partner is outside the set. So if the
graph of partners stays connected without the coalition, the coalition learns nothing but the total
of all other agents. (Bonawitz et al., Practical secure aggregation, 2017; Bell et al., Secure
single-server aggregation, 2020.)

Partners are not the neighbors of the network. In a tree a leaf sends to its parent only, and if
the parent were its only partner, it would hide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx
import numpy as np

from peerlearn.arrays import is_whole
from peerlearn.errors import InputError
from peerlearn.secret import wide
from peerlearn.secret.keys import SumContext, Words, derive_sum_key, draw_stream

ALL_PARTNERS = 200  # up to so many agents, all are partners of all


def check_colluders(colluders: int, agents: int) -> None:
    """Refuse a number of colluders against which there are no secrets among so many agents."""
    if agents < 3:
        raise InputError(
            f"{agents} agents have no secrets from each other: from the total and its own numbers "
            "each computes those of the other; secrecy needs 3 agents or more"
        )
    if not is_whole(colluders) or not 1 <= colluders <= agents - 2:
        raise InputError(
            f"colluders is {colluders!r:.60}: among {agents} agents give a whole number from 1 to "
            f"{agents - 2}; two honest agents must be left, or the total shows the only one"
        )


def mask_graph(agents: int, colluders: int) -> nx.Graph:
    """Return who has masks in common with whom: connected without any `colluders` of the agents.

    All are partners of all, up to ALL_PARTNERS agents. Above that, it is a Harary graph of vertex
    connectivity colluders + 1, the fewest partners that suffice in every case. Random partners
    would suffice only with some probability, and the seed is public.
    """
    check_colluders(colluders, agents)
    if agents <= ALL_PARTNERS or colluders + 1 >= agents - 1:
        return nx.complete_graph(agents)
    return nx.hkn_harary_graph(colluders + 1, agents)


def mask(agent: int, pair_keys: Mapping[int, bytes], context: SumContext) -> Words:
    """Return the mask of an agent for one sum: numbers x limbs.

    pair_keys: the key that the agent shares with each of its partners.
    """
    numbers = int(np.prod(context.shape))
    total = np.zeros((numbers, context.limbs), dtype=np.uint64)
    for partner, pair_key in pair_keys.items():
        stream = draw_stream(derive_sum_key(pair_key, context), total.size).reshape(total.shape)
        total = wide.add(total, stream if agent < partner else wide.negate(stream))
    return total
