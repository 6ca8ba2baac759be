"""Who is whose neighbor: connected, undirected networkx graphs with agents 0..n-1 and no self-loops.

A random graph is reproducible from its seed. One that is not connected is thrown away whole and
drawn again: patching it, or keeping its links for the next draw, would give another distribution
than the one asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array
from scipy.spatial import KDTree

from peerlearn.arrays import Array, Indices
from peerlearn.errors import GraphError

EXACT_UP_TO = 2000  # agents; above, the distances of all pairs cost more than a bound is worth
MOST_DRAWS = 100_000  # ER(0.2) with 5 agents connects in 8 % of draws: a small cap would refuse what is merely rare
MOST_WORK = 2e8  # agents and links drawn before giving up: some ten seconds
HOPELESS = (
    30.0  # isolated agents expected in a draw: none at all then has a probability of about exp(-30)
)


def erdos_renyi(n: int, p: float, seed: int = 0) -> nx.Graph:
    """Every possible link with probability p, redrawn whole until connected (Gilbert, Random graphs, 1959).

    The number of links is Binomial(n(n-1)/2, p), and all choices of so many links are equally
    likely: drawn in this order, the cost is that of the links there are, not of the pairs there
    could be.
    """
    n, p = _count(n), _real(p, "the link probability p")
    pairs, isolated, random = n * (n - 1) // 2, n * (1 - p) ** (n - 1), np.random.default_rng(seed)
    for _ in range(_draws(n + p * pairs, isolated)):
        count = random.binomial(pairs, p)
        if count < n - 1:
            continue
        chosen = random.choice(pairs, count, replace=False, shuffle=False)
        larger = ((1 + np.sqrt(1 + 8 * chosen)) // 2).astype(np.intp)
        links = np.column_stack([chosen - larger * (larger - 1) // 2, larger])
        if _connects(n, links):
            return _graph(n, links)
    raise GraphError(
        f"an Erdős-Rényi graph of {n} agents with p = {p:g} leaves {isolated:.3g} agents without a link on average and "
        f"is practically never connected: raise p to log(n)/n = {math.log(n) / n:.2g} or more"
    )


def linear(n: int, k: int = 1) -> nx.Graph:
    """Agents in a row, each linked to its next k successors, the last agents to those that remain."""
    n, k = _count(n), _count(k, "the number of successors k")
    return _graph(n, [(i, j) for i in range(n) for j in range(i + 1, min(i + k, n - 1) + 1)])


line = linear  # the common name


def ring(n: int) -> nx.Graph:
    """Agents in a circle, each linked to the one before and the one after; two agents share a single link."""
    return _graph(n, [(i, (i + 1) % n) for i in range(n)]) if _count(n) > 2 else linear(n)


def small_world(n: int, k: int, rewire: float, seed: int = 0) -> nx.Graph:
    """A ring with k neighbors per side, each link rewired with probability `rewire`, redrawn whole until connected.

    Watts and Strogatz, Collective dynamics of small-world networks, 1998. Their k counts both
    sides: it is 2k here.
    """
    n, k, rewire = (
        _count(n),
        _count(k, "the neighbors per side k"),
        _real(rewire, "the probability rewire"),
    )
    if n <= 2 * k:
        raise GraphError(
            f"a small world with k = {k} per side needs more than {2 * k} agents, not {n}: lower k"
        )
    random = np.random.default_rng(seed)
    for _ in range(
        _draws(50.0 * n * k)
    ):  # networkx rewires in Python: a link costs as much as fifty of numpy's
        links = np.array(nx.watts_strogatz_graph(n, 2 * k, rewire, seed=random).edges)
        if _connects(n, links):
            return _graph(n, links)
    raise GraphError(
        f"a small world of {n} agents with k = {k} per side and rewire = {rewire:g} is practically never connected: "
        "raise k or lower rewire"
    )


def scale_free(n: int, m: int, seed: int = 0) -> nx.Graph:
    """Each new agent links to m earlier ones, preferring those with many links: m(n - m) links, always connected.

    Barabási and Albert, Emergence of scaling in random networks, 1999; it grows from a star of m +
    1 agents.
    """
    n, m = _count(n), _count(m, "the number of links per new agent m")
    if n <= m:
        raise GraphError(
            f"a scale-free graph with m = {m} needs more than {m} agents, not {n}: lower m"
        )
    return _graph(n, list(nx.barabasi_albert_graph(n, m, seed=np.random.default_rng(seed)).edges))


def complete(n: int) -> nx.Graph:
    """Everybody is everybody's neighbor."""
    return _graph(n, np.column_stack(np.triu_indices(_count(n), 1)))


def star(n: int) -> nx.Graph:
    """Agent 0 is the hub, the other n - 1 agents have no neighbor but the hub."""
    return _graph(n, [(0, k) for k in range(1, _count(n))])


def grid(rows: int, columns: int) -> nx.Graph:
    """A rectangle, numbered row by row; each agent linked to those beside, above and below."""
    shape = _count(rows, "the number of rows"), _count(columns, "the number of columns")
    agents = np.arange(math.prod(shape)).reshape(shape)
    sides = (agents[:, :-1], agents[:, 1:]), (agents[:-1], agents[1:])
    return _graph(
        agents.size, np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in sides])
    )


def geometric(n: int, radius: float, seed: int = 0) -> nx.Graph:
    """Agents scattered over the unit square, linked up to distance `radius`, redrawn whole until connected.

    Positions stay as the attribute "pos" (Gilbert, Random plane networks, 1961).
    """
    n, radius, random = (
        _count(n),
        _real(radius, "the radius", math.inf),
        np.random.default_rng(seed),
    )
    covered = min(1.0, math.pi * radius**2)
    isolated = n * (1 - covered) ** (n - 1)
    for _ in range(_draws(n + covered * n * n / 2, isolated)):
        places = random.random((n, 2))
        links = KDTree(places).query_pairs(radius, output_type="ndarray")
        if _connects(n, links):
            graph = _graph(n, links)
            nx.set_node_attributes(graph, dict(enumerate(map(tuple, places.tolist()))), "pos")
            return graph
    raise GraphError(
        f"{n} agents linked up to radius {radius:g} leave {isolated:.3g} agents without a link on average and are "
        f"practically never connected: raise the radius to {math.sqrt(2 * math.log(n) / (math.pi * n)):.2g} or more"
    )


GENERATORS: dict[str, Callable[..., nx.Graph]] = {
    "erdos_renyi": erdos_renyi,
    "line": line,
    "linear": linear,
    "ring": ring,
    "small_world": small_world,
    "scale_free": scale_free,
    "complete": complete,
    "star": star,
    "grid": grid,
    "geometric": geometric,
}


def from_file(path: str | Path) -> nx.Graph:
    """The checked graph of a file: GraphML by its suffix .graphml, else two agents per line and # for comments."""
    path = Path(path)
    graphml = path.suffix.lower() == ".graphml"
    try:
        graph = nx.read_graphml(path) if graphml else _edge_list(path)
    except FileNotFoundError:
        raise GraphError(
            f"there is no graph file {path}: check the path, seen from {Path.cwd()}"
        ) from None
    except (
        OSError,
        ParseError,
        nx.NetworkXError,
        UnicodeDecodeError,
        KeyError,
        TypeError,
    ) as error:
        kind = "GraphML" if graphml else "a list of links"
        raise GraphError(
            f"the graph file {path} cannot be read as {kind} ({error}): write it anew"
        ) from error
    if not graph:
        raise GraphError(
            f"the graph file {path} holds no agents: write one link per line, as in '0 1'"
        )
    return checked(_with_numbers(graph))


def checked(graph: nx.Graph) -> nx.Graph:
    """The graph as a network needs it: a new networkx.Graph with agents 0..n-1 in order, attributes kept.

    Harmless differences are ironed out: labels become their rank (and stay as the attribute "name"
    unless there is
    one), parallel links become one, and so do the two directions of a link. All else is refused
    with its reason.
    """
    if not isinstance(graph, nx.Graph):
        raise GraphError(
            f"a graph has to be a networkx.Graph, not {type(graph).__name__}: see peerlearn.graphs"
        )
    if not graph:
        raise GraphError("the graph has no agents: a network needs at least one")
    if loops := list(nx.nodes_with_selfloops(graph)):
        raise GraphError(
            f"agents linked to themselves: {_some(loops)}; remove the self-loops, they mean nothing here"
        )
    if graph.is_directed() and (
        one_way := [(a, b) for a, b in graph.edges() if not graph.has_edge(b, a)]
    ):
        raise GraphError(
            f"links go one way only: {_some(one_way)}; add the way back, or pass graph.to_undirected()"
        )
    labels = _ordered(graph)
    undirected = _renumbered(graph, labels)
    parts = sorted(nx.connected_components(undirected), key=len, reverse=True)
    if len(parts) > 1:
        apart = " and ".join(f"[{_some([labels[k] for k in sorted(part)])}]" for part in parts[1:4])
        more = f" and {len(parts) - 4} more parts" if len(parts) > 4 else ""
        raise GraphError(
            f"the graph is not connected: agents {apart}{more} cannot reach the other {len(parts[0])}; link the parts, "
            "or keep the largest, graph.subgraph(max(networkx.connected_components(graph), key=len))"
        )
    return undirected


def diameter(graph: nx.Graph) -> int:
    """Rounds after which a flooded value has reached everybody: the longest of all shortest paths.

    Exact up to EXACT_UP_TO agents. Above, twice the height h of the spanning tree, which is safe
    for counting rounds and at most twice the diameter: h <= diameter <= 2h.
    """
    links = _adjacency(checked(graph))
    if links.shape[0] <= EXACT_UP_TO:
        return int(_eccentricities(links).max())
    return 2 * int(_distances(links, _centre(links)).max())


def spanning_tree(graph: nx.Graph) -> tuple[Indices, Indices]:
    """Parent and depth of every agent in the breadth-first tree from the graph's centre; the root is its own parent.

    The centre has the smallest eccentricity (above EXACT_UP_TO agents: lies midway between two far
    ends). Among several possible roots or parents the lowest number is taken: every agent that
    knows the graph finds the same tree.
    """
    links = _adjacency(checked(graph))
    root = _centre(links)
    depth = _distances(links, root)
    child, above = links.nonzero()
    up = depth[above] == depth[child] - 1
    parent = np.full(len(depth), len(depth), dtype=np.intp)
    np.minimum.at(parent, child[up], above[up])
    parent[root] = root
    return parent, depth


def _eccentricities(links: csr_array) -> Indices:
    """Distance from each agent to the farthest other one."""
    blocks = np.array_split(
        np.arange(links.shape[0]), -(-links.shape[0] // 256)
    )  # memory: never all pairs at once
    return np.concatenate([_distances(links, block).max(axis=1) for block in blocks])


def _centre(links: csr_array) -> int:
    """The agent with the smallest eccentricity; in large graphs the middle of a path found by a double sweep."""
    if links.shape[0] <= EXACT_UP_TO:
        return int(_eccentricities(links).argmin())
    one_end = int(_distances(links, 0).argmax())
    from_one = _distances(links, one_end)
    from_other = _distances(links, int(from_one.argmax()))
    between = from_one + from_other == from_one.max()
    return int(np.flatnonzero(between & (from_one == from_one.max() // 2))[0])


def _distances(links: csr_array, sources: int | Indices) -> Indices:
    """Number of links from the sources to every agent."""
    lengths: Array = csgraph.dijkstra(links, unweighted=True, indices=sources)
    return lengths.astype(np.intp)


def _adjacency(graph: nx.Graph) -> csr_array:
    return csr_array(
        nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), weight=None, dtype=np.float64)
    )


def _graph(n: int, links: Any) -> nx.Graph:
    graph = nx.empty_graph(n)
    graph.add_edges_from(np.asarray(links, dtype=np.intp).reshape(-1, 2).tolist())
    return graph


def _connects(n: int, links: Indices) -> bool:
    """Whether these links connect all n agents."""
    if n == 1:
        return True
    if len(links) < n - 1 or np.bincount(links.ravel(), minlength=n).min() == 0:
        return False  # the common failure of a sparse draw, found at a tenth of the cost
    joined = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(n, n))
    return bool(csgraph.connected_components(joined, directed=False, return_labels=False) == 1)


def _draws(work: float, isolated: float = 0.0) -> int:
    """How many draws, each of this work, are worth trying."""
    return 0 if isolated > HOPELESS else int(min(MOST_DRAWS, max(100.0, MOST_WORK / work)))


def _renumbered(graph: nx.Graph, labels: list[Any]) -> nx.Graph:
    """A new undirected graph in which the agent labels[k] is k."""
    number = {label: k for k, label in enumerate(labels)}
    renumbered = nx.Graph()
    renumbered.graph.update(graph.graph)
    for k, label in enumerate(labels):
        renumbered.add_node(k)
        renumbered.nodes[k].update(({} if label == k else {"name": label}) | graph.nodes[label])
    renumbered.add_edges_from((number[a], number[b], data) for a, b, data in graph.edges(data=True))
    return renumbered


def _ordered(graph: nx.Graph) -> list[Any]:
    """The labels sorted, or as they appear where they cannot be compared."""
    try:
        return sorted(graph)
    except TypeError:
        return list(graph)


def _edge_list(path: Path) -> nx.Graph:
    """Two labels per line; what networkx.write_edgelist appends in braces is allowed, and ignored."""
    graph = nx.Graph()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        said = line.partition("#")[0].strip()
        ends = said.partition("{")[0].replace(",", " ").split()
        if said and len(ends) != 2:
            raise GraphError(
                f"line {number} of {path} reads {said!r}: write the two agents of one link, as in '0 1'"
            )
        graph.add_edges_from([ends] if said else [])
    return graph


def _with_numbers(graph: nx.Graph) -> nx.Graph:
    """Labels read from text as whole numbers where all of them are, so that 10 comes after 9."""
    try:
        numbers = {label: int(label) for label in graph}
    except ValueError:
        return graph
    return nx.relabel_nodes(graph, numbers) if len(set(numbers.values())) == len(numbers) else graph


def _count(value: Any, what: str = "the number of agents") -> int:
    if not isinstance(value, Integral) or int(value) < 1:
        raise GraphError(f"{what} is {value!r}: give a whole number of at least 1")
    return int(value)


def _real(value: Any, what: str, most: float = 1.0) -> float:
    if not isinstance(value, Real) or not 0 <= float(value) <= most:
        raise GraphError(f"{what} is {value!r}: give a number between 0 and {most:g}")
    return float(value)


def _some(items: Iterable[Any], most: int = 6) -> str:
    """The first few, for a sentence that stays readable with ten thousand agents."""
    items = list(items)
    return ", ".join(map(str, items[:most])) + (
        f", ... ({len(items)} in all)" if len(items) > most else ""
    )
