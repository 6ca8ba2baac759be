"""Auditor: whose values a coalition of curious agents can compute from the messages it gets.

Every agent k has one number x_k, such as an entry of its Gram matrix. The coalition K follows the
protocol and keeps its messages. It knows the graph and the weights, as all agents do. Nothing is
sent here: all of this is computed from the graph.

plain, chebyshev. In round n an agent sends p_n(C)_j x, where p_n is a polynomial of degree n in the
weights C. What K knows after n rounds is spanned by the rows

    S_1 = e_j of all j in K and its neighbors,        S_n+1 = S_n + S_n C

so both methods tell the same. The value of i is known if e_i is in this space. The space has an
orthonormal basis that grows round by round; directions shorter than RANK are no new ones.

tree. A parent gets the sum of each child's subtree, and all agents get the total. Without K the
tree falls into pieces, and K knows the sum of each piece. The value of i is known if i is a piece
of its own: if K has all of its neighbors in the tree.

neighbors. Agents send their own values to their neighbors, as methods do that mix coefficients.
everyone. All agents get all values.
nothing. Nothing is sent.

masks. Pairs of agents add masks that cancel in the total. Without K the graph of these
pairs falls into pieces, and K may learn the sum of each piece. There is one piece, the total, if
the vertex connectivity of that graph is above the size of K. Here K is given all messages, on
whatever links they travel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, islice
from math import comb, log10
from typing import Any, Literal

import networkx as nx
import numpy as np

from peerlearn.algorithms.averaging import combine_rounds, recurrence
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.network.base import Network
from peerlearn.network.simulated import SimulatedNetwork

Way = Literal["plain", "chebyshev", "tree", "neighbors", "everyone", "nothing"]
WAYS = ("plain", "chebyshev", "tree", "neighbors", "everyone", "nothing")
GOSSIP = ("plain", "chebyshev")
RANK = 1e-8  # length below which a direction is rounding; rows of the basis have length 1
HIDDEN = 1e-12  # squared length of the part of a unit vector outside a space that contains it
ROUNDING = 2.0**-52  # relative error of the numbers in a message
COMPLETE_UP_TO = 200  # agents whose masks are shared by all pairs
MOST_COALITIONS = 20_000  # of gossip, each of which takes milliseconds
LARGEST_GOSSIP = 500  # agents: time grows with the fourth power
DIGITS_UP_TO = 200  # agents: the messages of all rounds are held in memory


@dataclass(frozen=True)
class Exposure:
    """Who can compute the value of one agent.

    Parameters
    ----------
    agent : int
        Number of the agent.
    name : str
        Name of the agent.
    coalitions : int
        Number of coalitions of other agents that can compute its value.
    of : int
        Number of coalitions of that size.
    rounds : int or None
        Rounds after which the first of them can; None if none ever can.
    by : tuple of int
        Agents without which the first coalition could not. Empty if none can.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.privacy import audit
    >>> audit(graphs.star(5), method="tree").exposures[3]
    Exposure(agent=3, name='3', coalitions=1, of=4, rounds=1, by=(0,))
    """

    agent: int
    name: str
    coalitions: int
    of: int
    rounds: int | None
    by: tuple[int, ...]


@dataclass(frozen=True)
class Audit:
    """What `audit` found.

    Parameters
    ----------
    method : str
        How values travel.
    masks : bool
        Whether values are masked.
    colluders : int
        Size of the coalitions.
    exposures : tuple of Exposure
        One for each agent.
    views : tuple of dict or None, default None
        For each agent, whose values it computes alone, and after how many rounds. None for
        larger coalitions and for masks.
    digits : tuple of int or None, default None
        Decimal digits of the least exact of these values, from messages in float64. Gossip only,
        up to 200 agents.
    connectivity : int or None, default None
        Vertex connectivity of the graph of masks: so many colluders can take it apart.
    rank_margin : tuple of float or None, default None
        Longest direction that was taken for rounding, and shortest that was not. Gossip only. The
        limit between them is 1e-8.
    warnings : tuple of str, default ()
        What this computation does not see.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.privacy import audit
    >>> found = audit(graphs.linear(5), method="tree")
    >>> [each.agent for each in found.exposed]
    [0, 4]
    """

    method: str
    masks: bool
    colluders: int
    exposures: tuple[Exposure, ...]
    views: tuple[dict[int, int], ...] | None = None
    digits: tuple[int, ...] | None = None
    connectivity: int | None = None
    rank_margin: tuple[float, float] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def exposed(self) -> tuple[Exposure, ...]:
        """The agents whose value some coalition can compute."""
        return tuple(each for each in self.exposures if each.coalitions > 0)

    @property
    def computes(self) -> tuple[int, ...] | None:
        """Number of others whose value each agent computes alone."""
        return None if self.views is None else tuple(map(len, self.views))

    @property
    def title(self) -> str:
        """How values travel, in words."""
        if self.masks:
            return "masked sums"
        return f"{self.method} gossip" if self.method in GOSSIP else TITLES[self.method]

    def summary(self) -> str:
        """Return the result in one sentence."""
        t = self.colluders
        if not self.exposed:
            who = "no agent" if t == 1 else f"no {t} agents together"
            return f"By {self.title}, {who} can compute the value of another."
        who = "single agents" if t == 1 else f"{t} agents together"
        text = f"By {self.title}, {who} can compute the values of {len(self.exposed)} of "
        text += f"{len(self.exposures)} agents"
        if self.views is None:
            return f"{text}."
        most = max(self.exposures, key=lambda each: len(self._view(each.agent)))
        view = self._view(most.agent)
        rounds = max(view.values())
        unit = "round" if rounds == 1 else "rounds"
        return f"{text}. Agent {most.name} computes most: {len(view)}, within {rounds} {unit}."

    def _view(self, agent: int) -> dict[int, int]:
        return self.views[agent] if self.views is not None else {}

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for a JSON file."""
        return {"summary": self.summary(), **asdict(self)}


TITLES = {
    "tree": "sums over a tree",
    "neighbors": "values sent to neighbors",
    "everyone": "values sent to all agents",
    "nothing": "training alone",
}


def audit(
    graph: nx.Graph,
    weights: Any = "metropolis",
    *,
    method: Way = "tree",
    masks: Literal["sums"] | nx.Graph | None = None,
    colluders: int = 1,
    rounds: int | None = None,
    names: Sequence[str] | None = None,
    warnings: Iterable[str] = (),
) -> Audit:
    """Return which agents' values a coalition of curious agents can compute. Nothing is sent.

    Parameters
    ----------
    graph : networkx.Graph
        The graph of the agents, numbered from 0.
    weights : str or matrix, default "metropolis"
        Weights of gossip, as for a network.
    method : {"tree", "plain", "chebyshev", "neighbors", "everyone", "nothing"}, default "tree"
        How values travel: sums over a tree, rounds of gossip, or values of single agents that are
        sent to neighbors or to all.
    masks : "sums", networkx.Graph or None, default None
        "sums" audits masked sums, as secrecy="sums" of a network makes them: all pairs of agents
        share masks, above 200 agents as few pairs as the coalition allows. A graph says which pairs
        share masks.
    colluders : int, default 1
        Size of the coalition.
    rounds : int or None, default None
        Rounds of gossip; None for as many as tell something new.
    names : list of str or None, default None
        Names of the agents; None for their numbers.
    warnings : iterable of str, default ()
        Sentences to keep with the result.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.privacy import audit
    >>> graph = graphs.erdos_renyi(20, 0.2, seed=0)
    >>> print(audit(graph, method="tree").summary())
    By sums over a tree, single agents can compute the values of 11 of 20 agents. Agent 0 computes
    most: 3, within 3 rounds.
    >>> sorted(audit(graph, method="plain", rounds=6).computes)
    [1, 1, 2, 2, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 19]
    >>> audit(graph, masks="sums", colluders=18).exposed
    ()
    """
    network = SimulatedNetwork(graph, weights)
    if method not in WAYS:
        raise InputError(f"method {method!r} is not known: choose one of {', '.join(WAYS)}")
    if network.size < 2:
        raise InputError("an agent alone sends nothing: give a graph of 2 agents or more")
    if not 1 <= colluders < network.size:
        raise InputError(
            f"colluders is {colluders}: of {network.size} agents, 1 to {network.size - 1} can be "
            "curious"
        )
    if rounds is not None and rounds < 1:
        raise InputError(f"rounds is {rounds}: give 1 or more")
    labels = list(network.names) if names is None else list(names)
    if len(labels) != network.size:
        raise InputError(f"{len(labels)} names do not fit {network.size} agents: give one for each")
    t = colluders
    if masks is not None:
        partners = mask_graph(network.size, t) if isinstance(masks, str) else masks
        exposures, more = _by_masks(network, t, labels, partners)
    elif method in GOSSIP:
        exposures, more = _by_gossip(network, t, labels, method, rounds)
    elif method == "tree":
        exposures, more = _by_tree(network, t, labels)
    else:
        exposures, more = _by_sending(network, t, labels, method)
    return Audit(method, masks is not None, t, tuple(exposures), warnings=tuple(warnings), **more)


def mask_graph(agents: int, colluders: int) -> nx.Graph:
    """Return which pairs of agents share masks: all pairs, or above 200 agents as few as suffice.

    A Harary graph of connectivity t + 1 stays connected without any t agents.
    """
    if agents <= COMPLETE_UP_TO or colluders + 1 >= agents - 1:
        return nx.complete_graph(agents)
    return nx.hkn_harary_graph(colluders + 1, agents)


Found = tuple[list[Exposure], dict[str, Any]]


def _by_tree(network: Network, t: int, names: Sequence[str]) -> Found:
    tree = network.tree
    links = [(k, parent) for k, parent in enumerate(tree.parent.tolist()) if k != parent]
    partners = nx.Graph(links)
    # The deepest agents send in round 1. The root's own value takes the total, which comes last.
    rounds = (tree.height - tree.depth + 1).tolist()
    exposures = [
        _if_all(network, t, names, agent, set(partners[agent]), rounds[agent])
        for agent in range(network.size)
    ]
    views: list[dict[int, int]] = [{} for _ in exposures]
    for each in exposures:
        if len(each.by) == 1:
            views[each.by[0]][each.agent] = rounds[each.agent]
    return exposures, {"views": tuple(views)} if t == 1 else {}


def _by_masks(network: Network, t: int, names: Sequence[str], partners: nx.Graph) -> Found:
    if set(partners) != set(range(network.size)):
        raise InputError(
            f"the graph of masks has other agents than 0 to {network.size - 1}: give a graph of "
            "the same agents"
        )
    rounds = 2 * network.tree.height
    exposures = [
        _if_all(network, t, names, agent, set(partners[agent]), rounds)
        for agent in range(network.size)
    ]
    complete = nx.density(partners) == 1
    connectivity = network.size - 1 if complete else int(nx.node_connectivity(partners))
    return exposures, {"connectivity": connectivity}


def _if_all(
    network: Network, t: int, names: Sequence[str], agent: int, partners: set[int], rounds: int
) -> Exposure:
    """Return the exposure of an agent to coalitions that have all of its partners."""
    others = network.size - 1
    spare = t - len(partners)
    if spare < 0:
        return Exposure(agent, names[agent], 0, comb(others, t), None, ())
    coalitions = comb(others - len(partners), spare)
    by = tuple(sorted(partners))
    return Exposure(agent, names[agent], coalitions, comb(others, t), rounds, by)


def _by_sending(network: Network, t: int, names: Sequence[str], method: Way) -> Found:
    """Audit methods by which a value is known to those that it is sent to, and to nobody else."""
    agents = set(range(network.size))
    receivers = {
        "neighbors": [set(network.graph[agent]) for agent in range(network.size)],
        "everyone": [agents - {agent} for agent in range(network.size)],
        "nothing": [set() for _ in range(network.size)],
    }[method]
    others = network.size - 1
    count = comb(others, t)
    exposures = []
    views: list[dict[int, int]] = [{} for _ in agents]
    for agent, known_to in enumerate(receivers):
        coalitions = count - comb(others - len(known_to), t)
        first = tuple(sorted(known_to)[:1])
        rounds = 1 if first else None
        exposures.append(Exposure(agent, names[agent], coalitions, count, rounds, first))
        for k in known_to:
            views[k][agent] = 1
    return exposures, {"views": tuple(views)} if t == 1 else {}


def _by_gossip(
    network: Network, t: int, names: Sequence[str], method: Way, rounds: int | None
) -> Found:
    L = network.size
    if comb(L, t) > MOST_COALITIONS or L > LARGEST_GOSSIP:
        raise InputError(
            f"{L} agents have {comb(L, t):,} coalitions of {t}. Gossip is audited for "
            f"{MOST_COALITIONS:,} coalitions and {LARGEST_GOSSIP} agents at most: ask for fewer "
            "colluders, or for method='tree'"
        )
    C = network.mixing.toarray()
    limit = L if rounds is None else min(rounds, L)
    counts = [0] * L
    first: dict[int, tuple[int, tuple[int, ...]]] = {}
    views = []
    rejected = 0.0
    accepted = 1.0
    for coalition in combinations(range(L), t):
        space = _Knowledge.after(C, _hearing(network, coalition), limit)
        rejected = max(rejected, space.longest_rejected)
        accepted = min(accepted, space.shortest_accepted)
        others = {i: n for i, n in space.known.items() if i not in coalition}
        views.append(others)
        for i, n in others.items():
            counts[i] += 1
            if i not in first or n < first[i][0]:
                first[i] = n, coalition
    exposures = []
    for i in range(L):
        exposures.append(
            Exposure(i, names[i], counts[i], comb(L - 1, t), *first.get(i, (None, ())))
        )
    more: dict[str, Any] = {"rank_margin": (rejected, accepted)}
    if t == 1:
        more["views"] = tuple(views)
        if L <= DIGITS_UP_TO:
            more["digits"] = _digits(network, method, limit, views)
    return exposures, more


def _hearing(network: Network, coalition: Iterable[int]) -> list[int]:
    """Return the agents whose messages a coalition has: its neighbors and itself."""
    members = set(coalition)
    return sorted(members.union(*(network.graph[k] for k in members)))


@dataclass(frozen=True)
class _Knowledge:
    """What can be computed: the first round of each value, and how clear the ranks were."""

    known: dict[int, int]
    longest_rejected: float
    shortest_accepted: float

    @classmethod
    def after(cls, C: Array, heard: list[int], rounds: int) -> _Knowledge:
        """Return what the messages of some agents tell after this many rounds of gossip."""
        new = basis = np.eye(len(C))[heard]
        hidden = 1.0 - np.square(basis).sum(axis=0)
        known = dict.fromkeys(heard, 1)
        rejected = 0.0
        accepted = 1.0
        for n in range(2, rounds + 1):
            outside = _remove(_remove(new @ C, basis), basis)
            _, lengths, directions = np.linalg.svd(outside, full_matrices=False)
            rank = int(np.count_nonzero(lengths > RANK))
            rejected = max(rejected, *lengths[rank:], 0.0)
            accepted = min(accepted, *lengths[:rank], 1.0)
            if rank == 0:
                break
            new = np.linalg.qr(_remove(directions[:rank], basis).T)[0].T
            basis = np.vstack([basis, new])
            hidden -= np.square(new).sum(axis=0)
            for agent in np.flatnonzero(hidden < HIDDEN).tolist():
                known.setdefault(agent, n)
        return cls(known, float(rejected), float(accepted))


def _remove(rows: Array, basis: Array) -> Array:
    """Return rows without their parts in the space of an orthonormal basis."""
    return rows - (rows @ basis.T) @ basis


def _digits(
    network: Network, method: Way, rounds: int, views: Sequence[Mapping[int, int]]
) -> tuple[int, ...]:
    """Return the digits of the least exact value that each agent computes.

    If values are independent and of size 1, and messages S x have errors of size e, then the best
    estimate of x has the covariance (I + S'S / e^2)^-1 = V diag(e^2 / (s^2 + e^2)) V'.
    """
    L = network.size
    now = before = np.eye(L)
    sent = [now]
    for a, b, c in islice(recurrence(network, chebyshev=method == "chebyshev"), rounds - 1):
        latest = combine_rounds(a, network.mixing @ now, b, now, c, before)
        before = now
        now = latest
        sent.append(now)
    messages = np.stack(sent)
    found = []
    for k, view in enumerate(views):
        S = messages[:, _hearing(network, [k])].reshape(-1, L)
        square = np.zeros((L, L))
        R = np.linalg.qr(S, mode="r")
        square[: len(R)] = R
        _, s, V = np.linalg.svd(square)
        errors = np.sqrt(np.square(ROUNDING / np.hypot(s, ROUNDING)) @ np.square(V))
        found.append(int(-log10(max(errors[list(view)], default=1.0))))
    return tuple(found)
