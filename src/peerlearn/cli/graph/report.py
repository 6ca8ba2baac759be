"""The cost of a graph: how fast it mixes under each weighting, and what an average sends.

>>> from peerlearn import graphs
>>> report = describe(graphs.ring(12), payload=100)
>>> report.diameter, report.tree_rounds, report.bytes_per_round
(6, 12, 19200)
>>> [(each.weights, each.plain_rounds, each.chebyshev_rounds) for each in report.weightings[:2]]
[('max-degree', 148, 28), ('metropolis', 148, 28)]

Rounds are counted for the worst start (`peerlearn.rounds`). How far apart agents are in between
depends on the start; shown is x = I, where each agent has something that no other has. Of its
distance to the average there is left, with 1 = l_1 > l_2 >= .. >= l_L the eigenvalues of the
weights,

    ( sum_i>1  l_i^(2n) / (L - 1) )^(1/2)                  after n rounds, plain
    ( sum_i>1  (T_n(m_i) / T_n(xi))^2 / (L - 1) )^(1/2)    chebyshev

where m_i is the place of l_i when [l_L, l_2] is [-1, 1],
and the same on average over starts from independent values of equal variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np
from scipy.sparse import csr_array

from peerlearn import graphs
from peerlearn import weights as weightings
from peerlearn.arrays import Array
from peerlearn.errors import GraphError, InputError, MissingExtra, WeightsError
from peerlearn.rounds import ROUNDING, chebyshev_interval, chebyshev_rounds, plain_rounds

PAYLOAD = 500  # numbers per message, if nobody says how many: a hidden layer such as the demo's
NUMBER = 8  # bytes of one
FASTEST_UP_TO = 50  # agents, which take seconds; more have to be asked for
STEPS = len(weightings.NAMES) + 1  # the figure is the last
POINTS = 200  # of a curve, at most
Watch = Callable[[str, int, int], None]  # what is running now, steps done, steps in all


@dataclass(frozen=True)
class Weighting:
    """Speed and cost of an average with one choice of weights: a line of weightings.csv."""

    weights: str
    contraction: float
    plain_rounds: int
    chebyshev_rounds: int
    plain_megabytes: float  # sent by all agents together for one average
    chebyshev_megabytes: float


@dataclass(frozen=True)
class Disagreement:
    """Distance between agents after a round, 1 before the first: a line of disagreement.csv."""

    weights: str
    method: str
    round: int
    disagreement: float


@dataclass(frozen=True)
class GraphReport:
    """A graph and what `describe` computed about it."""

    graph: nx.Graph
    weights: str  # those that are drawn
    mixing: csr_array  # their matrix
    payload: int
    accuracy: float
    diameter: int
    height: int  # of the spanning tree
    weightings: list[Weighting]
    skipped: dict[str, str]  # weights that are not among them, and why
    disagreement: list[Disagreement]

    @property
    def links(self) -> int:
        return int(self.graph.number_of_edges())

    @property
    def degrees(self) -> tuple[int, float, int]:
        """The fewest neighbors of an agent, the mean, and the most."""
        degrees = [degree for _, degree in self.graph.degree]
        return min(degrees), sum(degrees) / len(degrees), max(degrees)

    @property
    def bytes_per_round(self) -> int:
        """Bytes of one round: every link carries a message each way."""
        return NUMBER * self.payload * 2 * self.links

    @property
    def tree_rounds(self) -> int:
        return 2 * self.height

    @property
    def tree_megabytes(self) -> float:
        """Megabytes of a tree: each of its links carries one message up and one down."""
        return NUMBER * self.payload * 2 * (len(self.graph) - 1) / 1e6


def describe(
    graph: nx.Graph,
    *,
    weights: str = "metropolis",
    payload: int = PAYLOAD,
    accuracy: float = 1e-6,
    watch: Watch | None = None,
) -> GraphReport:
    """Compute how agents on this graph agree to `accuracy` under all weightings, and its cost.

    weights: the weighting to be drawn. payload: numbers in a message. The fastest weights of more
    than FASTEST_UP_TO agents are skipped unless they are the ones to be drawn.
    """
    check(graph, weights, payload, accuracy)
    graph = graphs.checked(graph)
    chosen = weights.lower().replace("_", "-")
    matrices, skipped = _matrices(graph, chosen, watch)
    messages = 2 * graph.number_of_edges()
    found = [
        _weighting(name, C, accuracy, NUMBER * payload * messages / 1e6)
        for name, C in matrices.items()
    ]
    return GraphReport(
        graph,
        chosen,
        matrices[chosen],
        payload,
        accuracy,
        graphs.diameter(graph),
        int(graphs.spanning_tree(graph)[1].max()),
        found,
        skipped,
        [point for each in found for point in _falling(each, matrices[each.weights], accuracy)],
    )


def check(graph: nx.Graph, weights: str, payload: int, accuracy: float) -> None:
    """Refuse what cannot be described, before any work is done."""
    if len(graphs.checked(graph)) == 1:
        raise GraphError("the graph has 1 agent, who has nobody to talk to: give at least 2")
    if payload < 1:
        raise InputError(f"a payload of {payload} numbers is no message: give at least 1")
    if not 0 < accuracy < 1:
        raise InputError(f"accuracy is {accuracy:g}: give a number between 0 and 1, such as 1e-6")
    # On one agent this shows at once whether the weights are known and installed.
    weightings.named(weights, graphs.complete(1))


def _matrices(
    graph: nx.Graph, chosen: str, watch: Watch | None
) -> tuple[dict[str, csr_array], dict[str, str]]:
    """Return the mixing matrix of every weighting, or the reason why there is none."""
    matrices: dict[str, csr_array] = {}
    skipped: dict[str, str] = {}
    for done, (name, weighting) in enumerate(weightings.NAMES.items()):
        if watch is not None:
            watch(f"{name} weights of {len(graph)} agents", done, STEPS)
        if name == "fastest" and name != chosen and len(graph) > FASTEST_UP_TO:
            long = f"weights='fastest' can take minutes or more for {len(graph):,} agents"
            skipped[name] = f"{long}: ask for them by name, --weights fastest"
            continue
        try:
            matrices[name] = weighting(graph)
        except (MissingExtra, WeightsError) as error:
            if name == chosen:
                raise
            skipped[name] = str(error)
    return matrices, skipped


def _weighting(name: str, C: csr_array, accuracy: float, megabytes: float) -> Weighting:
    """Return speed and cost of one weighting. megabytes: what one round sends."""
    spectrum = weightings.spectrum(C)
    contraction = max(map(abs, spectrum))
    plain = plain_rounds(contraction, accuracy)
    chebyshev = chebyshev_rounds(*spectrum, accuracy)
    return Weighting(name, contraction, plain, chebyshev, plain * megabytes, chebyshev * megabytes)


def _falling(found: Weighting, C: csr_array, accuracy: float) -> Iterator[Disagreement]:
    """Yield both curves of one weighting, down to the accuracy."""
    others = np.linalg.eigvalsh(C.toarray())[:-1]  # without the 1 of the average
    for method, needed in (("plain", found.plain_rounds), ("chebyshev", found.chebyshev_rounds)):
        for n in (0, *np.unique(np.rint(np.geomspace(1, needed, POINTS)).astype(int)).tolist()):
            left = others**n if method == "plain" else _chebyshev(n, others)
            disagreement = float(np.linalg.norm(left) / np.sqrt(len(left)))
            yield Disagreement(found.weights, method, n, disagreement)
            if disagreement <= accuracy:
                break


def _chebyshev(n: int, eigenvalues: Array) -> Array:
    """Return T_n(m) / T_n(xi) at each of the ascending eigenvalues."""
    scale, shift, inverse_xi = chebyshev_interval(float(eigenvalues[-1]), float(eigenvalues[0]))
    if inverse_xi < ROUNDING:  # all are equal, and one round takes them to zero
        return np.full_like(eigenvalues, n == 0)
    m = np.clip((scale * eigenvalues + shift) / inverse_xi, -1, 1)
    at: Array = np.cos(n * np.arccos(m)) / np.cosh(n * np.arccosh(1 / inverse_xi))
    return at
