"""Codes of columns at all agents: a sum shows whether agents differ, and a second one who does.

    n_jc = sum_k [code of column j at agent k is c]           over the network, columns x codes
    code of column j at every agent                           over the network, if it is in dispute

So all agents refuse the same column with the same sentence, and nobody waits for an agent that
refused alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peerlearn.algorithms.summed_histograms import add_counts
from peerlearn.network.base import Network

Codes = NDArray[np.int64]


def count_codes(network: Network, codes: Codes, known: int) -> Codes:
    """Return how many agents have each code in each column: columns x `known` codes.

    codes: hosted agents x columns, from 0 to known - 1.
    """
    one_hot = np.eye(known, dtype=np.int64)[codes]
    return add_counts(network, one_hot, "agents with each kind of column")


def codes_of_all(network: Network, codes: Codes, columns: list[int]) -> Codes:
    """Return the codes of these columns at every agent: agents x columns."""
    own = np.zeros((len(network.hosted), network.size, len(columns)), dtype=np.int64)
    for k, agent in enumerate(network.hosted):
        own[k, agent] = codes[k, columns]
    return add_counts(network, own, None)


def name_agents(network: Network, agents: list[int]) -> str:
    """Return 'agent 2' or 'agents north and south', for error messages."""
    names = [network.names[agent] for agent in agents]
    if len(names) == 1:
        return f"agent {names[0]}"
    shown = names if len(names) <= 8 else [*names[:7], f"{len(names) - 7} more"]
    return f"agents {', '.join(shown[:-1])} and {shown[-1]}"
