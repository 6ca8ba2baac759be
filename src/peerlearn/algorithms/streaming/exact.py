"""Exact streaming: the equations of new rows are added up over the network.

    G <- f G + sum_k H_k'H_k,   c <- f c + sum_k H_k'Y_k      over the network, new rows only
    b = (G + alpha I)^-1 c                                    alone

After any chunk all agents have the centralised coefficients. f is the forgetting factor per chunk,
1 to forget nothing. alpha I may be any diagonal matrix: a constant among the features, with a
penalty of 0, gives an intercept. On a tree the rows' R factors travel up, which for few rows is
little more than coefficients; the root keeps G and c, solves, and only b travels down (see
gram.py). By gossip every agent keeps its own G and c, and B (B + 1) / 2 numbers travel in every
round.

Errors of G and c are bounded as they grow, and b is certified after every chunk: certificate.py.

Rows can be computed from the sums of a chunk, because all agents know the random features: always
if the chunk has a single row. `StreamConsensus` sends coefficients only.

Under secrecy the sum of a chunk is a secret total at the root. The sum of one agent's rows would be
that agent's, so there must be more:

    n = number of agents with rows that wait      secret total, at all agents
    if n >= t + 2:  add up all rows that wait     secret total, at the root; t: colluders
    else:           they wait for the next chunk

Rows that wait are remembered as their H'H and H'Y, with forgetting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    CUT_OFF,
    TOO_CLOSE_TO_SINGULAR,
    U,
    certify_equations,
    loss_reason,
    receive_bound,
    sum_with_errors,
)
from peerlearn.algorithms.iteration import Certificate
from peerlearn.algorithms.readout.gram import merge_equations, ridge_if_any
from peerlearn.algorithms.readout.secret_gram import Columns, sum_gram, total_units
from peerlearn.algorithms.secret_sums import session_of
from peerlearn.algorithms.streaming.learner import check_forgetting
from peerlearn.algorithms.sums import broadcast_from_root, everyone, sum_everywhere
from peerlearn.arrays import HUGE, Array, Indices, product, sendable
from peerlearn.local.chunks import Chunk
from peerlearn.local.normal_equations import NormalEquations, sum_units, undetermined_error
from peerlearn.local.recursive import State
from peerlearn.network.base import Network
from peerlearn.secret.fixed_point import decode_entries
from peerlearn.secret.keys import Words
from peerlearn.secret.statement import ONLY_TOTALS

__all__ = ["StreamExact"]

Penalties = float | Array  # ridge penalty: one number, or one per feature


@dataclass(frozen=True)
class StreamExact:
    """Stream learner that has the centralised ridge coefficients after every chunk.

    Agents send the equations of their new rows. Single rows can be computed from these.

    Parameters
    ----------
    forgetting : float, default 1.0
        Weight of the past per chunk; below 1 for data that drift.
    averaging : Averaging or str, default "auto"
        How agents add up: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import RVFLClassifier, SimulatedNetwork, StreamExact, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(20, stream=StreamExact(), network=network, random_state=0)
    >>> for rows in (slice(0, 150, 2), slice(1, 150, 2)):
    ...     model = model.partial_fit(iris.X[rows], iris.y[rows], classes=[0, 1, 2])
    >>> first, last = model.coefficients_[0], model.coefficients_[-1]
    >>> first.tobytes() == last.tobytes()  # all agents have the same bits
    True
    """

    name: ClassVar = "exact"
    exact: ClassVar = True
    claim: ClassVar = ONLY_TOTALS
    takes_intercept: ClassVar = True

    forgetting: float = 1.0
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_forgetting(self.forgetting)
        Averaging.of(self.averaging)

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        """Return the state before the first chunk, for B x M coefficients."""
        agents = len(network.hosted)
        B, M = shape
        # accuracy: |Y|^2, units of rounding, number of additions, error of G and c, and the bound.
        Averaging.of(self.averaging).rounds_on(network)  # refuses networks that lose messages
        state = {
            "b": np.zeros((agents, B, M)),
            "G": np.zeros((agents, B, B)),
            "c": np.zeros((agents, B, M)),
            "accuracy": np.zeros((agents, 5)),
        }
        if network.secrecy is not None:
            state |= {
                "waiting_G": np.zeros((agents, B, B)),
                "waiting_c": np.zeros((agents, B, M)),
                "waiting_squares": np.zeros((agents, M)),
                "waiting_rows": np.zeros((agents, 1)),
            }
        return state

    def learn(
        self, network: Network, state: State, chunks: Sequence[Chunk], alpha: Penalties
    ) -> State:
        """Return the state after one more chunk at every agent."""
        averaging = Averaging.of(self.averaging, tolerance=1e-13)  # errors of all chunks add up
        if network.secrecy is not None:
            return self._in_secret(network, state, chunks, alpha)
        if averaging.exact_on(network):
            return state | {"b": self._on_a_tree(network, state, chunks, alpha)}
        return state | {"b": self._by_gossip(network, state, chunks, alpha, averaging)}

    def add_outputs(self, state: State, places: Indices, outputs: int) -> State:
        """Return the state with more outputs, whose targets were 0 in all rows so far.

        places: where the outputs of before are among them.
        """
        wider = dict(state)
        for name in ("b", "c"):
            before = state[name]
            wider[name] = np.zeros((*before.shape[:2], outputs))
            wider[name][:, :, places] = before
        return wider

    def certify(self, network: Network, state: State, chunks: int) -> Certificate:
        """Return the certificate of the hosted agents' coefficients after so many chunks."""
        bound = max(state["accuracy"][:, -1].tolist())  # of the hosted agents, for their report
        averaging = Averaging.of(self.averaging)
        if not averaging.suffices_on(network):
            return receive_bound(HUGE, CUT_OFF)
        failure = min(1.0, chunks * averaging.failure_on(network))
        return receive_bound(bound, loss_reason(failure) if failure else TOO_CLOSE_TO_SINGULAR)

    def _on_a_tree(
        self, network: Network, state: State, chunks: Sequence[Chunk], alpha: Penalties
    ) -> Array:
        b = state["b"]
        rows = np.zeros((len(b), b[0].size + 2))
        new = {}
        sums = merge_equations(network, _equations(chunks, len(b), b.shape[1:]))
        for k, agent in enumerate(network.hosted):
            if agent == network.tree.root:
                new[k] = sums[k]
                rows[k] = _answer(self._add_to_past(state, k, new[k]), alpha)
        answer: Array = broadcast_from_root(network, rows)
        return self._keep(state, new, answer, alpha)

    def _in_secret(
        self, network: Network, state: State, chunks: Sequence[Chunk], alpha: Penalties
    ) -> State:
        """Return the state after a chunk; rows of too few agents wait."""
        waiting = self._wait(state, chunks)
        session = session_of(network)
        session.expect_new_rows()
        has_rows = (waiting["waiting_rows"] > 0).astype(np.int64)
        count = int(session.count("agents with new rows", has_rows)[0, 0])
        if count < network.colluders + 2:
            past = {name: self.forgetting * state[name] for name in ("G", "c")}
            accuracy = state["accuracy"].copy()
            accuracy[:, 0] *= self.forgetting
            accuracy[:, 2] += 1
            return state | waiting | past | {"accuracy": accuracy}
        B, M = state["b"].shape[1:]
        columns = Columns(B, M, intercept=False)
        grams = [columns.of_parts(*parts) for parts in zip(*waiting.values(), strict=True)]
        squares = np.stack([np.diagonal(own) for own in grams])
        total, e, _ = sum_gram(session, columns, squares, grams, network.size)
        new = {}

        def compute(found: Words) -> Array:
            k = network.hosted.index(network.tree.root)
            S = columns.matrix(decode_entries(found[:, 0], e))
            new[k] = NormalEquations(
                (B, M),
                G=S[1 : 1 + B, 1 : 1 + B],
                P=S[1 : 1 + B, 1 + B :],
                squares=float(np.trace(S[1 + B :, 1 + B :])),
                units=total_units(S[0, 0], network.size),
            )
            return _answer(self._add_to_past(state, k, new[k]), alpha)

        answer = session.answer(total, B * M + 2, compute)
        nothing = {name: np.zeros_like(array) for name, array in waiting.items()}
        return state | nothing | {"b": self._keep(state, new, answer, alpha)}

    def _wait(self, state: State, chunks: Sequence[Chunk]) -> State:
        """Return H'H, H'Y, sums of squares of Y and number of all rows that wait."""
        names = ("waiting_G", "waiting_c", "waiting_squares")
        waiting = {name: self.forgetting * state[name] for name in names}
        rows = state["waiting_rows"].copy()  # rounding depends on their number, not their weight
        for chunk in chunks:
            for k, n, H, Y in zip(chunk.agents, chunk.rows, chunk.H, chunk.Y, strict=True):
                waiting["waiting_G"][k] += product(H[:n].T, H[:n])
                waiting["waiting_c"][k] += product(H[:n].T, Y[:n])
                waiting["waiting_squares"][k] += np.add.reduce(Y[:n] ** 2, axis=0)
                rows[k] += n
        return waiting | {"waiting_rows": rows}

    def _keep(
        self, state: State, new: Mapping[int, NormalEquations], answer: Array, alpha: Penalties
    ) -> Array:
        """Change the state after a chunk, and return b of each hosted agent.

        new: equations of the new rows of all agents, by the position of the root if it is hosted
        here. answer: what the root sent to each hosted agent.
        """
        if not answer[0, -2]:  # all agents raise the error that the root found
            raise undetermined_error(_number(alpha))
        # The state changes last: the network may fail before.
        for k, equations in new.items():
            whole = self._add_to_past(state, k, equations)
            state["G"][k], state["c"][k] = whole.gram()
            units = max(state["accuracy"][k, 1], equations.gram_units)
            state["accuracy"][k, :2] = whole.squares, units
        state["accuracy"][:, 2] += 1
        state["accuracy"][:, -1] = answer[:, -1]
        return answer[:, :-2].reshape(state["b"].shape)

    def _by_gossip(
        self,
        network: Network,
        state: State,
        chunks: Sequence[Chunk],
        alpha: Penalties,
        averaging: Averaging,
    ) -> Array:
        agents, B, M = state["b"].shape
        equations_here = _equations(chunks, agents, (B, M))
        own = np.stack([equations.numbers() for equations in equations_here])
        rounding = np.array([equations.rounding_error for equations in equations_here])
        sums, errors, _ = sum_with_errors(network, own, rounding, averaging, sum_everywhere)
        accuracy = state["accuracy"].copy()
        b = np.empty_like(state["b"])
        found = np.empty(agents)
        seen = []
        for k, row in enumerate(sums):
            new = NormalEquations.of_numbers(row, (B, M))
            seen.append(self._add_to_past(state, k, new))
            b[k], found[k], penalty = _solve(seen[k], alpha)
            G, P = seen[k].gram()
            added = 4 * U * (float(np.linalg.norm(G)) + float(np.linalg.norm(P)))
            # Entries beside the diagonal of G occur twice.
            change = self.forgetting * accuracy[k, 3] + 2 * float(errors[k]) + added
            bound = math.inf
            if found[k]:
                exact = replace(seen[k], units=0.0)
                bound = certify_equations(exact, penalty, b[k], change).bound
            accuracy[k] = sendable(np.array([0.0, 0.0, accuracy[k, 2] + 1, change, bound]))
        if not everyone(network, found):
            raise undetermined_error(_number(alpha))
        for k, equations in enumerate(seen):
            state["G"][k], state["c"][k] = equations.gram()
        state["accuracy"][:] = accuracy
        return b

    def _add_to_past(self, state: State, k: int, new: NormalEquations) -> NormalEquations:
        """Return hosted agent k's equations of all rows, the new ones included."""
        G, c = new.gram()
        squares, units, additions = state["accuracy"][k, :3].tolist()
        return NormalEquations(
            new.shape,
            G=self.forgetting * state["G"][k] + G,
            P=self.forgetting * state["c"][k] + c,
            squares=self.forgetting * squares + new.squares_of_targets,
            # A product with the forgetting factor, and an addition, are rounded in every chunk.
            units=max(units, new.gram_units) + sum_units(2 * (additions + 1)),
        )


def _answer(equations: NormalEquations, alpha: Penalties) -> Array:
    """Return what the root sends: b, whether there is one, and its bound."""
    b = np.zeros(equations.shape)
    b[:], found, penalty = _solve(equations, alpha)
    bound = certify_equations(equations, penalty, b).bound if found else math.inf
    return sendable(np.append(b, [found, bound]))


def _solve(equations: NormalEquations, alpha: Penalties) -> tuple[Array | float, float, Penalties]:
    """Return b, 1 and the penalties; or 0, 0 and the penalties if there is no b.

    A feature that has no penalty, and is 0 in all rows, gets the coefficient 0: that is the
    constant before the first row. Any penalty does so.
    """
    G, _ = equations.gram()
    empty = (np.diagonal(G) == 0) & (np.asarray(alpha) == 0)
    if np.count_nonzero(empty):
        alpha = np.where(empty, 1.0, alpha)
    return *ridge_if_any(equations, alpha), alpha


def _number(alpha: Penalties) -> float:
    """Return the penalty of all features, except of a constant, which is the first one."""
    return float(np.ravel(alpha)[-1])


def _equations(
    chunks: Sequence[Chunk], agents: int, shape: tuple[int, int]
) -> list[NormalEquations]:
    """Return the equations of each agent's new rows; empty ones for an agent without new rows."""
    equations = [NormalEquations.of_rows(np.zeros((0, sum(shape))), shape)] * agents
    for chunk in chunks:
        for k, n, H, Y in zip(chunk.agents, chunk.rows, chunk.H, chunk.Y, strict=True):
            equations[k] = NormalEquations.of_rows(np.hstack([H, Y])[:n], shape)
    return equations
