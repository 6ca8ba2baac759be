"""Agents ask their neighbors for the part of the spline that they visit.

    i_k to all neighbors                                            over the network: the request, one round
    [q_i, .., q_{i+3}] of agent j, for the i_k that k asked for     over the network: the answers, one neighbor a round
    xi_k = sum_j C_kj [q_i, .., q_{i+3}] of agent j                 alone

(thesis, section 10.3, q-diffusion; nobody knows the span of a neighbor, so that it must be asked
for.) In a round an agent says the same to all that it speaks to, and answers differ: there are as
many rounds as the agent with most neighbors has. That makes five numbers per link instead of Q, and
what nobody visits is never combined.
"""

from __future__ import annotations

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.errors import WireError
from peerlearn.local.splines import SPAN
from peerlearn.network.base import Message, Network


def mix_spans(network: Network, q: Array, visited: Indices) -> Array:
    """For each hosted agent the span that it visits, mixed: hosted agents x 4."""
    hosted, spans = network.hosted, q.shape[1] - SPAN + 1
    requests = network.exchange([{"span": np.array([i], dtype=np.int64)} for i in visited])
    asked = [
        {sender: _span(heard, sender, spans) for sender, heard in sorted(box.items())}
        for box in requests
    ]
    answers: list[dict[int, Array]] = [
        {agent: _of(q[k], int(visited[k]))} for k, agent in enumerate(hosted)
    ]
    for turn in range(answer_rounds(network)):
        outbox: list[Message] = []
        to: list[list[int]] = []
        for k, questions in enumerate(asked):
            whom = list(questions)[turn : turn + 1]
            outbox.append({"q": _of(q[k], questions[whom[0]])} if whom else {})
            to.append(whom)
        for own, box in zip(answers, network.exchange(outbox, to), strict=True):
            own.update({sender: _answer(heard, sender) for sender, heard in box.items()})
    mixed = np.zeros((len(hosted), SPAN))
    for k, agent in enumerate(hosted):
        for sender in sorted(answers[k]):
            mixed[k] += network.mixing[agent, sender] * answers[k][sender]
    return mixed


def answer_rounds(network: Network) -> int:
    """As many as the agent with most neighbors has."""
    return int(max(neighbors for _, neighbors in network.graph.degree))


def count_mixed_spans(network: Network, rounds: int) -> None:
    """Enter what `mix_spans` would have sent, for rounds that a compiled loop has done."""
    links = network.mixing.nnz - network.size
    network.ledger.count(
        rounds=rounds * (1 + answer_rounds(network)),
        messages=2 * rounds * links,
        bytes=8 * rounds * links * (1 + SPAN),
    )


def _of(q: Array, i: int) -> Array:
    return q[i : i + SPAN].copy()


def _span(heard: Message, sender: int, spans: int) -> int:
    span = heard.get("span")
    if span is None or span.shape != (1,) or span.dtype != np.int64 or not 0 <= span[0] < spans:
        raise WireError(
            f"agent {sender} asked for no span from 0 to {spans - 1}: it runs something else"
        )
    return int(span[0])


def _answer(heard: Message, sender: int) -> Array:
    answer = heard.get("q")
    if answer is None or answer.shape != (SPAN,) or answer.dtype != np.float64:
        raise WireError(
            f"agent {sender} sent no {SPAN} control points where they were due: it runs something else"
        )
    return answer
