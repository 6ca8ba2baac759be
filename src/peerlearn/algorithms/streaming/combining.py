"""One round of mixing of what agents have learned: for all of them, or only for those with news.

    b_k <- sum_j C_kj b_j                                     over the network, every so many chunks

With a threshold agents send nothing while little changes (censoring). s_j is what agent j last
sent:

    if |b_k - s_k| > f_k threshold |b_k|:  s_k <- b_k         decided alone, sent over the network
    b_k <- b_k + sum_j C_kj (s_j - s_k)                       alone
    f_k <- min(1, max(0.95 f_k, n_k))                         alone

The differences keep the network's mean in every round. (Mixing b_k itself with old values of
neighbors would pull it back to where it was, and does harm.) An agent sends the change of s_k, so
agent k need only remember the sum m_k = sum_j C_kj s_j.

With f_k = 1 always, agents would never agree when nothing is new: their spread would stay just
below the threshold, and they would go on sending. n_k is the news of agent k in the last round,
relative to threshold |b_k|: 1000 times the change of b_k that it learned, or 0.9 times the change
of m_k that it received, whichever is larger. Where there is no news, the threshold decays, agents
agree to 1e-10, and fall silent. An agent that learns a thousandth of the threshold per round keeps
it as it was given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.arrays import Array, is_real, is_whole, norms
from peerlearn.errors import InputError
from peerlearn.local.recursive import State
from peerlearn.network.base import Network

DECAY = 0.95  # of the threshold, per round without news
QUIET = 1e-3  # change per round for which the threshold is as given, relative to the threshold
HEARD = 0.9  # weight of what was received: below 1, or agents would keep up each other's threshold
AGREED = 1e-12  # relative change that is never worth a message
AT_REST = 1e-11  # relative difference m_k - s_k that moves b_k no more
LONGEST = 2**62  # compiled code counts with 64-bit integers


def check_combining(every: Any, threshold: Any, of: str = "chunks") -> None:
    """Check the settings of combining. of: what `every` counts, for the error message."""
    if not is_whole(every) or not 1 <= every <= LONGEST:
        raise InputError(
            f"every is {every!r}: agents combine after every 1, 2, 3, .. {of}; "
            "give a whole number up to 2**62"
        )
    if threshold is not None and not (is_real(threshold) and 0 <= threshold < np.inf):
        raise InputError(
            f"threshold is {threshold!r}: give the relative change that is worth a message, "
            "such as 0.01, or None"
        )


def clock(agents: int) -> State:
    """Return the state that counts chunks: the same number at every agent."""
    return {"chunks": np.zeros(agents)}


def is_due(state: State, every: int) -> bool:
    """Count one more chunk, and return whether agents combine after it."""
    state["chunks"] = state["chunks"] + 1
    return int(state["chunks"][0]) % every == 0


def memory(network: Network, shape: tuple[int, int], threshold: float | None) -> State:
    """Return the state of censoring, before anything was sent; empty without a threshold.

    sent: what each agent last sent. heard: the mixture of what it received. silences: how often it
    sent nothing. before: b after the last round. factors: f above.
    """
    if threshold is None:
        return {}
    network.must_hear_everybody()
    agents = len(network.hosted)
    return {
        "sent": np.zeros((agents, *shape)),
        "heard": np.zeros((agents, *shape)),
        "silences": np.zeros(agents),
        "before": np.zeros((agents, *shape)),
        "factors": np.ones(agents),
    }


def combine(network: Network, state: State, b: Array, threshold: float | None) -> Array:
    """Return b after one round in which all agents send, or those with news."""
    if network.size == 1:
        return b
    if threshold is None:
        return network.mix(b)
    size = norms(b)
    s = state["sent"]
    f = state["factors"]
    worth = np.maximum(f * threshold, min(threshold, AGREED)) * size
    speaking = norms(b - s) > worth
    change = np.where(speaking[:, None, None], b - s, 0.0)
    s = s + change
    received = network.mix_speaking(change, speaking)
    m = state["heard"] + received
    news = np.maximum(norms(b - state["before"]) / QUIET, HEARD * norms(received))
    given = threshold * size
    f_of_news = np.divide(news, given, out=np.zeros_like(f), where=given > 0)
    state["factors"] = np.minimum(np.maximum(DECAY * f, f_of_news), 1.0)
    state["sent"] = s
    state["heard"] = m
    state["silences"] = state["silences"] + ~speaking
    combined = b + m - s
    # Otherwise b moves on by the same small difference until it is worth a message again.
    rests = (norms(m - s) <= min(threshold, AT_REST) * size) & (threshold > 0)
    combined = np.where(rests[:, None, None], b, combined)
    state["before"] = combined.copy()  # the caller may change it
    return combined
