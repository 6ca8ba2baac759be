"""Graphs of agents: connected, undirected networkx graphs with agents 0..n-1 and no self-loops.

A random graph is reproducible from its seed. A draw that is not connected is discarded as a whole
and drawn again. Adding links to it, or keeping its links for the next draw, would give another
distribution than the one asked for. How many draws are worth trying is decided by `_draws`: at most
MOST_DRAWS, fewer where a draw is large, and none where nearly every draw has isolated agents.
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

# Above this many agents the distances of all pairs cost more than an exact diameter is worth.
EXACT_UP_TO = 2000
# ER(0.2) with 5 agents connects in 8 % of draws: a small limit would refuse what is merely rare.
MOST_DRAWS = 100_000
MOST_WORK = 2e8  # agents and links drawn before giving up: about ten seconds
# Expected number of isolated agents in a draw. With 30, a draw without any has a probability of
# about exp(-30).
HOPELESS = 30.0


def erdos_renyi(n: int, p: float, seed: int = 0) -> nx.Graph:
    """Return a random graph in which every pair is linked with probability p.

    It is redrawn as a whole until it is connected (Gilbert, Random graphs, 1959). The number of
    links is Binomial(n(n-1)/2, p), and all choices of that many links are equally likely. So the
    number is drawn first and the links second: the cost is that of the links, not of all pairs.

    Parameters
    ----------
    n : int
        Number of agents.
    p : float
        Probability of a link, from 0 to 1.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Raises
    ------
    GraphError
        If a graph with this p is practically never connected.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> graph = graphs.erdos_renyi(20, 0.3, seed=1)
    >>> len(graph), graph.number_of_edges()
    (20, 50)
    """
    n = _count(n)
    p = _real(p, "the link probability p")
    pairs = n * (n - 1) // 2
    isolated = n * (1 - p) ** (n - 1)
    random = np.random.default_rng(seed)
    for _ in range(_draws(n + p * pairs, isolated)):
        count = random.binomial(pairs, p)
        if count < n - 1:
            continue
        chosen = random.choice(pairs, count, replace=False, shuffle=False)
        # Pair number j (j - 1) / 2 + i is the pair of i and j, i < j.
        larger = ((1 + np.sqrt(1 + 8 * chosen)) // 2).astype(np.intp)
        smaller = chosen - larger * (larger - 1) // 2
        links = np.column_stack([smaller, larger])
        if _connects(n, links):
            return _graph(n, links)
    raise GraphError(
        f"an Erdős-Rényi graph of {n} agents with p = {p:g} leaves {isolated:.3g} agents without "
        "a link on average and is practically never connected: "
        f"raise p to log(n)/n = {math.log(n) / n:.2g} or more"
    )


def linear(n: int, k: int = 1) -> nx.Graph:
    """Return agents in a row, each linked to its next k successors.

    The last agents have fewer than k successors and are linked to those. `line` is the same
    function.

    Parameters
    ----------
    n : int
        Number of agents.
    k : int, default 1
        Number of successors that an agent is linked to.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> list(graphs.linear(4).edges)
    [(0, 1), (1, 2), (2, 3)]
    >>> list(graphs.linear(4, 2).edges)
    [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    """
    n = _count(n)
    k = _count(k, "the number of successors k")
    links = []
    for i in range(n):
        last = min(i + k, n - 1)
        links += [(i, j) for j in range(i + 1, last + 1)]
    return _graph(n, links)


line = linear  # the common name


def ring(n: int) -> nx.Graph:
    """Return agents in a circle, each linked to the one before and the one after.

    Two agents share a single link.

    Parameters
    ----------
    n : int
        Number of agents.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> list(graphs.ring(4).edges)
    [(0, 1), (0, 3), (1, 2), (2, 3)]
    """
    if _count(n) <= 2:
        return linear(n)
    return _graph(n, [(i, (i + 1) % n) for i in range(n)])


def small_world(n: int, k: int, rewire: float, seed: int = 0) -> nx.Graph:
    """Return a ring with k neighbors per side in which links are rewired at random.

    It is redrawn as a whole until it is connected (Watts and Strogatz, Collective dynamics of
    small-world networks, 1998). Their k counts the neighbors of both sides and is 2k here.

    Parameters
    ----------
    n : int
        Number of agents, more than 2k.
    k : int
        Neighbors per side before rewiring.
    rewire : float
        Probability that a link is rewired, from 0 to 1.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Raises
    ------
    GraphError
        If there are too few agents, or if such a graph is practically never connected.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> graph = graphs.small_world(20, 2, 0.1)
    >>> len(graph), graph.number_of_edges()
    (20, 40)
    """
    n = _count(n)
    k = _count(k, "the neighbors per side k")
    rewire = _real(rewire, "the probability rewire")
    if n <= 2 * k:
        raise GraphError(
            f"a small world with k = {k} per side needs more than {2 * k} agents, not {n}: lower k"
        )
    random = np.random.default_rng(seed)
    # networkx rewires in Python, where a link costs as much as fifty links drawn by numpy.
    for _ in range(_draws(50.0 * n * k)):
        links = np.array(nx.watts_strogatz_graph(n, 2 * k, rewire, seed=random).edges)
        if _connects(n, links):
            return _graph(n, links)
    raise GraphError(
        f"a small world of {n} agents with k = {k} per side and rewire = {rewire:g} is "
        "practically never connected: raise k or lower rewire"
    )


def scale_free(n: int, m: int, seed: int = 0) -> nx.Graph:
    """Return a graph in which each new agent links to m earlier ones, preferably to linked ones.

    It grows from a star of m + 1 agents, has m(n - m) links and is always connected (Barabási and
    Albert, Emergence of scaling in random networks, 1999).

    Parameters
    ----------
    n : int
        Number of agents, more than m.
    m : int
        Number of links that a new agent brings.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> graph = graphs.scale_free(20, 2)
    >>> len(graph), graph.number_of_edges()
    (20, 36)
    """
    n = _count(n)
    m = _count(m, "the number of links per new agent m")
    if n <= m:
        raise GraphError(
            f"a scale-free graph with m = {m} needs more than {m} agents, not {n}: lower m"
        )
    grown = nx.barabasi_albert_graph(n, m, seed=np.random.default_rng(seed))
    return _graph(n, list(grown.edges))


def complete(n: int) -> nx.Graph:
    """Return a graph in which every agent is linked to every other.

    Parameters
    ----------
    n : int
        Number of agents.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> list(graphs.complete(3).edges)
    [(0, 1), (0, 2), (1, 2)]
    """
    return _graph(n, np.column_stack(np.triu_indices(_count(n), 1)))


def star(n: int) -> nx.Graph:
    """Return a hub, agent 0, and n - 1 agents that are linked to the hub only.

    Parameters
    ----------
    n : int
        Number of agents, the hub included.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> list(graphs.star(4).edges)
    [(0, 1), (0, 2), (0, 3)]
    """
    return _graph(n, [(0, k) for k in range(1, _count(n))])


def grid(rows: int, columns: int) -> nx.Graph:
    """Return a rectangle of agents, each linked to those beside, above and below it.

    Agents are numbered row by row.

    Parameters
    ----------
    rows : int
        Number of rows.
    columns : int
        Number of columns.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> list(graphs.grid(2, 2).edges)
    [(0, 1), (0, 2), (1, 3), (2, 3)]
    """
    shape = (
        _count(rows, "the number of rows"),
        _count(columns, "the number of columns"),
    )
    agents = np.arange(math.prod(shape)).reshape(shape)
    across = np.column_stack([agents[:, :-1].ravel(), agents[:, 1:].ravel()])
    down = np.column_stack([agents[:-1].ravel(), agents[1:].ravel()])
    return _graph(agents.size, np.concatenate([across, down]))


def geometric(n: int, radius: float, seed: int = 0) -> nx.Graph:
    """Return agents scattered over the unit square and linked where they are near each other.

    It is redrawn as a whole until it is connected (Gilbert, Random plane networks, 1961). The
    positions are kept as the node attribute "pos".

    Parameters
    ----------
    n : int
        Number of agents.
    radius : float
        Largest distance of two linked agents.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    networkx.Graph
        A connected graph.

    Raises
    ------
    GraphError
        If a graph with this radius is practically never connected.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> graph = graphs.geometric(20, 0.4)
    >>> len(graph), len(graph.nodes[0]["pos"])
    (20, 2)
    """
    n = _count(n)
    radius = _real(radius, "the radius", math.inf)
    random = np.random.default_rng(seed)
    covered = min(1.0, math.pi * radius**2)
    isolated = n * (1 - covered) ** (n - 1)
    for _ in range(_draws(n + covered * n * n / 2, isolated)):
        places = random.random((n, 2))
        links = KDTree(places).query_pairs(radius, output_type="ndarray")
        if _connects(n, links):
            graph = _graph(n, links)
            positions = {k: tuple(place) for k, place in enumerate(places.tolist())}
            nx.set_node_attributes(graph, positions, "pos")
            return graph
    enough = math.sqrt(2 * math.log(n) / (math.pi * n))
    raise GraphError(
        f"{n} agents linked up to radius {radius:g} leave {isolated:.3g} agents without a link on "
        f"average and are practically never connected: raise the radius to {enough:.2g} or more"
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
    """Read a graph from a file and check it.

    Parameters
    ----------
    path : str or pathlib.Path
        A GraphML file if it ends in .graphml. Else a text file with the two agents of one link per
        line; # starts a comment.

    Returns
    -------
    networkx.Graph
        The graph as `checked` returns it.

    Raises
    ------
    GraphError
        If the file cannot be read, or if the graph cannot be used.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from peerlearn import graphs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "links.txt")
    ...     _ = file.write_text("Rome Turin  # by night train\\nTurin Genoa")
    ...     graph = graphs.from_file(file)
    >>> dict(graph.nodes(data="name"))
    {0: 'Genoa', 1: 'Rome', 2: 'Turin'}
    """
    path = Path(path)
    graphml = path.suffix.lower() == ".graphml"
    try:
        graph = nx.read_graphml(path) if graphml else _read_links(path)
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
    return checked(_number_labels(graph))


def checked(graph: nx.Graph) -> nx.Graph:
    """Return a copy of a graph in the form that networks need, or raise an error.

    Harmless differences are removed. Labels become their rank in sorted order; the label is kept as
    the node attribute "name", unless the node has that attribute already. Parallel links become
    one, and so do the two directions of a link. Other attributes are kept.

    Parameters
    ----------
    graph : networkx.Graph
        Any graph of networkx.

    Returns
    -------
    networkx.Graph
        A new undirected graph with agents 0..n-1 in order.

    Raises
    ------
    GraphError
        If the graph is empty or not connected, or has self-loops or links that go one way only.

    Examples
    --------
    >>> import networkx
    >>> from peerlearn import graphs
    >>> graph = graphs.checked(networkx.Graph([("b", "a"), ("b", "c")]))
    >>> list(graph.edges), graph.nodes[1]
    ([(0, 1), (1, 2)], {'name': 'b'})
    """
    if not isinstance(graph, nx.Graph):
        raise GraphError(
            f"a graph has to be a networkx.Graph, not {type(graph).__name__}: see peerlearn.graphs"
        )
    if not graph:
        raise GraphError("the graph has no agents: a network needs at least one")
    loops = list(nx.nodes_with_selfloops(graph))
    if loops:
        raise GraphError(
            f"agents linked to themselves: {_some(loops)}; remove the self-loops, they mean "
            "nothing here"
        )
    if graph.is_directed():
        _check_both_ways(graph)
    labels = _sort_labels(graph)
    undirected = _renumber(graph, labels)
    _check_connected(undirected, labels)
    return undirected


def diameter(graph: nx.Graph) -> int:
    """Return the number of rounds after which a flooded value has reached every agent.

    It is the longest of all shortest paths, and exact up to EXACT_UP_TO (2000) agents. Above, it is
    twice the height h of the spanning tree. That is safe for counting rounds and at most twice the
    diameter, since h <= diameter <= 2h.

    Parameters
    ----------
    graph : networkx.Graph
        A connected graph.

    Returns
    -------
    int
        Number of rounds.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> graphs.diameter(graphs.ring(10))
    5
    """
    links = _adjacency(checked(graph))
    if links.shape[0] <= EXACT_UP_TO:
        return int(_eccentricities(links).max())
    return 2 * int(_distances(links, _centre(links)).max())


def spanning_tree(graph: nx.Graph) -> tuple[Indices, Indices]:
    """Return parent and depth of every agent in the breadth-first tree from the graph's centre.

    The centre is the agent with the smallest eccentricity; above EXACT_UP_TO (2000) agents, an
    agent midway between two far ends. Among several possible roots or parents the lowest number is
    taken, so every agent that knows the graph finds the same tree.

    Parameters
    ----------
    graph : networkx.Graph
        A connected graph.

    Returns
    -------
    parent : ndarray of int
        Parent of every agent. The root is its own parent.
    depth : ndarray of int
        Number of links between every agent and the root.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> parent, depth = graphs.spanning_tree(graphs.linear(5))
    >>> parent.tolist(), depth.tolist()
    ([1, 2, 2, 2, 3], [2, 1, 0, 1, 2])
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


def _check_both_ways(graph: nx.DiGraph) -> None:
    one_way = [(a, b) for a, b in graph.edges() if not graph.has_edge(b, a)]
    if one_way:
        raise GraphError(
            f"links go one way only: {_some(one_way)}; add the way back, or pass "
            "graph.to_undirected()"
        )


def _check_connected(graph: nx.Graph, labels: list[Any]) -> None:
    parts = sorted(nx.connected_components(graph), key=len, reverse=True)
    if len(parts) == 1:
        return
    apart = " and ".join(f"[{_some([labels[k] for k in sorted(part)])}]" for part in parts[1:4])
    more = f" and {len(parts) - 4} more parts" if len(parts) > 4 else ""
    raise GraphError(
        f"the graph is not connected: agents {apart}{more} cannot reach the other "
        f"{len(parts[0])}; link the parts, or keep the largest, "
        "graph.subgraph(max(networkx.connected_components(graph), key=len))"
    )


def _eccentricities(links: csr_array) -> Indices:
    """Return the distance from each agent to the farthest other one."""
    # In blocks, because the distances of all pairs at once would take too much memory.
    blocks = np.array_split(np.arange(links.shape[0]), -(-links.shape[0] // 256))
    return np.concatenate([_distances(links, block).max(axis=1) for block in blocks])


def _centre(links: csr_array) -> int:
    """Return the agent with the smallest eccentricity.

    In large graphs, return the middle of a path found by a double sweep: from any agent to the
    farthest one, and from there to the farthest one again.
    """
    if links.shape[0] <= EXACT_UP_TO:
        return int(_eccentricities(links).argmin())
    one_end = int(_distances(links, 0).argmax())
    from_one = _distances(links, one_end)
    from_other = _distances(links, int(from_one.argmax()))
    between = from_one + from_other == from_one.max()
    return int(np.flatnonzero(between & (from_one == from_one.max() // 2))[0])


def _distances(links: csr_array, sources: int | Indices) -> Indices:
    """Return the number of links from the sources to every agent."""
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
    """Return whether these links connect all n agents."""
    if n == 1:
        return True
    # The common failure of a sparse draw, found at a tenth of the cost.
    if len(links) < n - 1 or np.bincount(links.ravel(), minlength=n).min() == 0:
        return False
    matrix = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(n, n))
    return bool(csgraph.connected_components(matrix, directed=False, return_labels=False) == 1)


def _draws(work: float, isolated: float = 0.0) -> int:
    """Return how many draws are worth trying, if each takes this work."""
    if isolated > HOPELESS:
        return 0
    return int(min(MOST_DRAWS, max(100.0, MOST_WORK / work)))


def _renumber(graph: nx.Graph, labels: list[Any]) -> nx.Graph:
    """Return a new undirected graph in which agent labels[k] is k."""
    number = {label: k for k, label in enumerate(labels)}
    renumbered = nx.Graph()
    renumbered.graph.update(graph.graph)
    for k, label in enumerate(labels):
        name = {} if label == k else {"name": label}
        renumbered.add_node(k)
        renumbered.nodes[k].update(name | graph.nodes[label])
    renumbered.add_edges_from((number[a], number[b], data) for a, b, data in graph.edges(data=True))
    return renumbered


def _sort_labels(graph: nx.Graph) -> list[Any]:
    """Return the labels in order, or as they appear if they cannot be compared."""
    try:
        return sorted(graph)
    except TypeError:
        return list(graph)


def _read_links(path: Path) -> nx.Graph:
    """Read two labels per line. Ignore the braces that networkx.write_edgelist appends."""
    graph = nx.Graph()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        ends = text.partition("{")[0].replace(",", " ").split()
        if len(ends) != 2:
            raise GraphError(
                f"line {number} of {path} reads {text!r}: write the two agents of one link, as in "
                "'0 1'"
            )
        graph.add_edge(*ends)
    return graph


def _number_labels(graph: nx.Graph) -> nx.Graph:
    """Turn labels read from text into whole numbers if all of them are: 10 comes after 9 then."""
    try:
        numbers = {label: int(label) for label in graph}
    except ValueError:
        return graph
    if len(set(numbers.values())) < len(numbers):
        return graph
    return nx.relabel_nodes(graph, numbers)


def _count(value: Any, what: str = "the number of agents") -> int:
    if not isinstance(value, Integral) or int(value) < 1:
        raise GraphError(f"{what} is {value!r}: give a whole number of at least 1")
    return int(value)


def _real(value: Any, what: str, most: float = 1.0) -> float:
    if not isinstance(value, Real) or not 0 <= float(value) <= most:
        raise GraphError(f"{what} is {value!r}: give a number between 0 and {most:g}")
    return float(value)


def _some(items: Iterable[Any], most: int = 6) -> str:
    """Return the first few items, so that a sentence about many agents stays readable."""
    items = list(items)
    text = ", ".join(map(str, items[:most]))
    if len(items) > most:
        text += f", ... ({len(items)} in all)"
    return text
