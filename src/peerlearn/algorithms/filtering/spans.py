"""Agents ask their neighbors for the part of the spline that they visit.

    i_k to all neighbors                               over the network: the request, one round
    [q_i, .., q_{i+3}] of agent j, for k's i_k         over the network: answers, several rounds
    xi_k = sum_j C_kj [q_i, .., q_{i+3}] of agent j    alone

q-diffusion, thesis, section 10.3. No agent knows the span of a neighbor, so it must be asked for.
In a round an agent sends the same to all that it addresses, and answers differ: an agent answers
one neighbor per round, so there are as many rounds as the largest number of neighbors. That makes
five numbers per link instead of Q. Spans that nobody visits are never combined.
"""

from __future__ import annotations

import numpy as np

from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import Array, Indices
from peerlearn.local.splines import SPAN
from peerlearn.network.base import Message, Network


def mix_spans(network: Network, q: Array, visited: Indices) -> Array:
    """Return the mixed span that each hosted agent visits: hosted agents x 4."""
    hosted = network.hosted
    spans = q.shape[1] - SPAN + 1
    requests = network.exchange([{"span": np.array([i], dtype=np.int64)} for i in visited])
    asked = [
        {sender: _read_request(message, sender, spans) for sender, message in sorted(box.items())}
        for box in requests
    ]
    answers: list[dict[int, Array]] = [
        {agent: _cut(q[k], int(visited[k]))} for k, agent in enumerate(hosted)
    ]
    for turn in range(answer_rounds(network)):
        outbox: list[Message] = []
        to: list[list[int]] = []
        for k, questions in enumerate(asked):
            receiver = list(questions)[turn : turn + 1]
            outbox.append({"q": _cut(q[k], questions[receiver[0]])} if receiver else {})
            to.append(receiver)
        for own, box in zip(answers, network.exchange(outbox, to), strict=True):
            for sender, message in box.items():
                own[sender] = _read_answer(message, sender)
    mixed = np.zeros((len(hosted), SPAN))
    for k, agent in enumerate(hosted):
        for sender in sorted(answers[k]):
            mixed[k] += network.mixing[agent, sender] * answers[k][sender]
    return mixed


def answer_rounds(network: Network) -> int:
    """Return how many rounds of answers there are: the largest number of neighbors."""
    return int(max(neighbors for _, neighbors in network.graph.degree))


def count_mixed_spans(network: Network, rounds: int) -> None:
    """Enter what `mix_spans` would have sent, for rounds that a compiled loop has done."""
    links = network.mixing.nnz - network.size
    network.ledger.count(
        rounds=rounds * (1 + answer_rounds(network)),
        messages=2 * rounds * links,
        bytes=8 * rounds * links * (1 + SPAN),
    )


def _cut(q: Array, i: int) -> Array:
    return q[i : i + SPAN].copy()


def _read_request(message: Message, sender: int, spans: int) -> int:
    span = message.get("span")
    if span is None or span.shape != (1,) or span.dtype != np.int64 or not 0 <= span[0] < spans:
        raise unexpected_message(sender, f"a span from 0 to {spans - 1}")
    return int(span[0])


def _read_answer(message: Message, sender: int) -> Array:
    answer = message.get("q")
    if answer is None or answer.shape != (SPAN,) or answer.dtype != np.float64:
        raise unexpected_message(sender, f"{SPAN} control points")
    return answer
