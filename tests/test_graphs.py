"""Generators give what they promise, checks say what is wrong, distances and trees agree with
networkx.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn import graphs
from peerlearn.errors import GraphError, InputError

quick = settings(deadline=None, max_examples=30)

GENERATED: dict[str, Callable[[int], nx.Graph]] = {
    "erdos_renyi": lambda seed: graphs.erdos_renyi(12, 0.2, seed),
    "linear": lambda seed: graphs.linear(9, 3),
    "ring": lambda seed: graphs.ring(9),
    "small_world": lambda seed: graphs.small_world(20, 2, 0.4, seed),
    "scale_free": lambda seed: graphs.scale_free(20, 2, seed),
    "complete": lambda seed: graphs.complete(6),
    "star": lambda seed: graphs.star(6),
    "grid": lambda seed: graphs.grid(3, 5),
    "geometric": lambda seed: graphs.geometric(20, 0.35, seed),
}
RANDOM = ["erdos_renyi", "small_world", "scale_free", "geometric"]


def links(graph: nx.Graph) -> set[tuple[int, ...]]:
    return {tuple(sorted(link)) for link in graph.edges}


@pytest.mark.parametrize("name", GENERATED)
@quick
@given(seed=st.integers(0, 1000))
def test_generated_graphs_are_as_a_network_needs_them(name: str, seed: int) -> None:
    graph = GENERATED[name](seed)
    assert type(graph) is nx.Graph
    assert list(graph) == list(range(len(graph)))
    assert all(type(agent) is int for link in graph.edges for agent in link)
    assert nx.is_connected(graph)
    assert nx.number_of_selfloops(graph) == 0
    assert links(GENERATED[name](seed)) == links(graph)
    assert links(graphs.checked(graph)) == links(graph)


@pytest.mark.parametrize("name", RANDOM)
def test_another_seed_gives_another_graph(name: str) -> None:
    assert len({frozenset(links(GENERATED[name](seed))) for seed in range(8)}) > 4


def test_seeds_may_be_any_whole_number() -> None:
    for make in (graphs.erdos_renyi, graphs.geometric):
        assert links(make(12, 0.5, 3)) == links(make(12, 0.5, np.int64(3)))
    assert links(graphs.small_world(12, 2, 0.5, 3)) == links(
        graphs.small_world(12, 2, 0.5, np.int64(3))
    )
    assert links(graphs.scale_free(12, 2, 3)) == links(graphs.scale_free(12, 2, np.int64(3)))


def test_erdos_renyi_is_the_distribution_given_that_it_connects() -> None:
    """Four agents, p = 0.3: of the 38 connected graphs, those with m links come in proportion p^m
    (1-p)^(6-m).
    """
    draws, p = 4000, 0.3
    seen = np.bincount(
        [graphs.erdos_renyi(4, p, seed).number_of_edges() for seed in range(draws)], minlength=7
    )
    connected = np.array([0, 0, 0, 16, 15, 6, 1])
    share = connected * p ** np.arange(7) * (1 - p) ** (6 - np.arange(7))
    expected = draws * share / share.sum()
    assert np.all(np.abs(seen - expected) < 4 * np.sqrt(expected + 1))
    assert np.all(seen[connected == 0] == 0)


def test_erdos_renyi_reaches_every_pair_equally() -> None:
    counts = np.zeros((5, 5))
    for seed in range(2000):
        counts += nx.to_numpy_array(graphs.erdos_renyi(5, 0.6, seed))
    pairs = counts[np.triu_indices(5, 1)] / 2000
    assert np.ptp(pairs) < 0.08


@pytest.mark.parametrize(("n", "p"), [(1, 0.0), (1, 0.5), (2, 0.3), (5, 0.2), (8, 0.2), (7, 1.0)])
def test_erdos_renyi_finds_rare_connected_draws(n: int, p: float) -> None:
    for seed in range(20):
        graph = graphs.erdos_renyi(n, p, seed)
        assert len(graph) == n
        assert nx.is_connected(graph)
    assert p < 1 or graph.number_of_edges() == n * (n - 1) // 2


def test_erdos_renyi_of_ten_thousand_agents() -> None:
    graph = graphs.erdos_renyi(10_000, 0.0015)
    assert graph.number_of_edges() == pytest.approx(0.0015 * 10_000 * 9_999 / 2, rel=0.02)
    assert nx.is_connected(graph)


@pytest.mark.parametrize(("n", "p"), [(5, 0), (20, 0.03), (2, 0.0), (10_000, 1e-4)])
def test_erdos_renyi_gives_up_where_it_is_hopeless(n: int, p: float) -> None:
    with pytest.raises(
        GraphError,
        match=rf"{n} agents with p = .* agents without a link .* raise p to log\(n\)/n = 0",
    ):
        graphs.erdos_renyi(n, p)


def test_a_line_is_a_linear_graph() -> None:
    assert links(graphs.line(4, k=2)) == links(graphs.linear(4, 2))
    assert graphs.GENERATORS["line"] is graphs.GENERATORS["linear"]


def test_linear_links_successors() -> None:
    assert links(graphs.linear(4)) == {(0, 1), (1, 2), (2, 3)}
    assert links(graphs.linear(4, 2)) == {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)}
    assert links(graphs.linear(3, 7)) == links(graphs.complete(3))
    assert graphs.linear(50, 4).number_of_edges() == 50 * 4 - 10


def test_ring_star_complete_and_single_agents() -> None:
    assert links(graphs.ring(2)) == {(0, 1)}
    assert links(graphs.ring(4)) == {(0, 1), (1, 2), (2, 3), (0, 3)}
    assert links(graphs.star(4)) == {(0, 1), (0, 2), (0, 3)}
    assert graphs.complete(7).number_of_edges() == 21
    alone = [
        graphs.ring(1),
        graphs.star(1),
        graphs.linear(1),
        graphs.complete(1),
        graphs.grid(1, 1),
    ]
    assert all(list(graph) == [0] for graph in [*alone, graphs.geometric(1, 0.1)])


def test_small_world_has_k_neighbors_per_side() -> None:
    assert set(dict(graphs.small_world(50, 6, 0.0).degree).values()) == {12}
    rewired = graphs.small_world(50, 6, 0.15, seed=2)
    assert rewired.number_of_edges() == 300
    assert len(links(rewired) - links(graphs.small_world(50, 6, 0.0))) == pytest.approx(45, abs=25)


def test_small_world_redraws_until_connected() -> None:
    assert all(nx.is_connected(graphs.small_world(30, 1, 0.9, seed)) for seed in range(10))


def test_small_world_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_connects", lambda n, links: False)
    monkeypatch.setattr(graphs, "MOST_WORK", 1.0)
    with pytest.raises(
        GraphError, match=r"small world of 9 agents with k = 1 .* 0\.5 .* raise k or lower"
    ):
        graphs.small_world(9, 1, 0.5)


def test_scale_free_is_preferential() -> None:
    """The richest of 400 agents has far more links than a random attachment (about log n) would
    give it.
    """
    most = [max(dict(graphs.scale_free(400, 2, seed).degree).values()) for seed in range(5)]
    assert graphs.scale_free(400, 2).number_of_edges() == 2 * 398
    assert np.mean(most) > 25


@quick
@given(rows=st.integers(1, 6), columns=st.integers(1, 6))
def test_grid_is_numbered_row_by_row(rows: int, columns: int) -> None:
    reference = nx.grid_2d_graph(rows, columns)
    assert links(graphs.grid(rows, columns)) == {
        tuple(sorted((a * columns + b, c * columns + d))) for (a, b), (c, d) in reference.edges
    }


def test_geometric_links_what_is_near() -> None:
    graph = graphs.geometric(40, 0.3, seed=5)
    places = np.array([graph.nodes[k]["pos"] for k in range(40)])
    near = np.linalg.norm(places[:, None] - places[None], axis=2) <= 0.3
    np.testing.assert_array_equal(nx.to_numpy_array(graph), near & ~np.eye(40, dtype=bool))


def test_geometric_gives_up() -> None:
    with pytest.raises(
        GraphError, match=r"10000 agents linked up to radius 0.001 .* raise the radius to 0.0"
    ):
        graphs.geometric(10_000, 0.001)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: graphs.erdos_renyi(0, 0.5),
            "number of agents is 0: give a whole number of at least 1",
        ),
        (lambda: graphs.erdos_renyi(2.5, 0.5), "number of agents is 2.5"),
        (
            lambda: graphs.erdos_renyi(5, 1.5),
            "link probability p is 1.5: give a number between 0 and 1",
        ),
        (lambda: graphs.erdos_renyi(5, math.nan), "link probability p is nan"),
        (lambda: graphs.erdos_renyi(5, "0.2"), "link probability p is '0.2'"),
        (lambda: graphs.linear(5, 0), "number of successors k is 0"),
        (lambda: graphs.linear(-3), "number of agents is -3"),
        (lambda: graphs.ring(0), "number of agents is 0"),
        (lambda: graphs.star(0), "number of agents is 0"),
        (lambda: graphs.complete(0), "number of agents is 0"),
        (lambda: graphs.grid(0, 3), "number of rows is 0"),
        (lambda: graphs.grid(3, 0), "number of columns is 0"),
        (
            lambda: graphs.small_world(12, 6, 0.1),
            "k = 6 per side needs more than 12 agents, not 12: lower k",
        ),
        (lambda: graphs.small_world(12, 2, -0.1), "probability rewire is -0.1"),
        (lambda: graphs.scale_free(3, 3), "m = 3 needs more than 3 agents, not 3: lower m"),
        (lambda: graphs.scale_free(3, 0), "number of links per new agent m is 0"),
        (lambda: graphs.geometric(5, -1.0), "radius is -1.0"),
    ],
)
def test_generators_say_what_is_wrong(make: Callable[[], nx.Graph], sentence: str) -> None:
    with pytest.raises(GraphError) as caught:
        make()
    assert sentence in str(caught.value)
    assert isinstance(caught.value, InputError)


def test_edge_list_round_trip(tmp_path: Path) -> None:
    graph = graphs.erdos_renyi(14, 0.3, seed=1)
    nx.write_edgelist(graph, tmp_path / "with_braces.txt")
    nx.write_edgelist(graph, tmp_path / "bare.edges", data=False)
    nx.write_edgelist(graph, tmp_path / "comma.csv", data=False, delimiter=",")
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    for file in tmp_path.iterdir():
        read = graphs.from_file(str(file))
        assert list(read) == list(range(14))
        assert links(read) == links(graph)
        assert not any("name" in data for _, data in read.nodes(data=True))


def test_edge_list_with_comments_and_names(tmp_path: Path) -> None:
    (tmp_path / "sites.txt").write_text(
        "# our sites\nrome  paris # fast\n\nparis oslo\n", encoding="utf-8"
    )
    graph = graphs.from_file(tmp_path / "sites.txt")
    assert [graph.nodes[k]["name"] for k in graph] == ["oslo", "paris", "rome"]
    assert links(graph) == {(0, 1), (1, 2)}


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        (
            "a.txt",
            "0 1\n1 2 3\n",
            r"line 2 of .*a\.txt reads '1 2 3': write the two agents of one link, as in '0 1'",
        ),
        ("a.txt", "0 1\n\n# 2\n7\n", r"line 4 of .*a\.txt reads '7'"),
        ("a.txt", "# nothing\n", r"a\.txt holds no agents"),
        ("a.txt", "", r"a\.txt holds no agents"),
        ("a.txt", "0 0\n0 1\n", r"agents linked to themselves: 0;"),
        ("a.txt", "0 1\n2 3\n", r"not connected: agents \[2, 3\] cannot reach the other 2"),
        ("a.graphml", "", r"a\.graphml cannot be read as GraphML \(.*\): write it anew"),
        ("a.graphml", "<graphml></nothing>", r"a\.graphml cannot be read as GraphML"),
        ("a.graphml", "<graphml/>", r"a\.graphml cannot be read as GraphML"),
    ],
)
def test_unreadable_files_get_a_sentence(
    tmp_path: Path, file: str, text: str, sentence: str
) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(GraphError, match=sentence):
        graphs.from_file(tmp_path / file)


def test_missing_folder_and_binary_files_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(GraphError, match=r"there is no graph file .*none\.txt: check the path"):
        graphs.from_file(tmp_path / "none.txt")
    with pytest.raises(GraphError, match=r"there is no graph file .*none\.graphml"):
        graphs.from_file(tmp_path / "none.graphml")
    with pytest.raises(GraphError, match="cannot be read as a list of links"):
        graphs.from_file(tmp_path)
    with pytest.raises(GraphError, match="binary cannot be read as a list of links"):
        graphs.from_file(tmp_path / "binary")


@quick
@given(labels=st.lists(st.integers(-50, 50), min_size=1, max_size=12, unique=True))
def test_checked_relabels_in_sorted_order(labels: list[int]) -> None:
    given_graph = nx.path_graph(labels)
    given_graph.add_node(labels[0], color="red")
    before = nx.to_dict_of_dicts(given_graph), dict(given_graph.nodes(data=True))
    graph = graphs.checked(given_graph)
    rank = {label: k for k, label in enumerate(sorted(labels))}
    assert list(graph) == list(range(len(labels)))
    assert links(graph) == {tuple(sorted((rank[a], rank[b]))) for a, b in given_graph.edges}
    assert all(graph.nodes[rank[label]].get("name", rank[label]) == label for label in labels)
    assert graph.nodes[rank[labels[0]]]["color"] == "red"
    assert (nx.to_dict_of_dicts(given_graph), dict(given_graph.nodes(data=True))) == before


def test_checked_keeps_names_attributes_and_its_input_apart() -> None:
    given_graph = nx.Graph([(1, 0), (2, 1)], title="three")
    given_graph.edges[0, 1]["cable"] = "copper"
    graph = graphs.checked(given_graph)
    graph.nodes[0]["new"] = True
    graph.add_edge(0, 2)
    assert "new" not in given_graph.nodes[0]
    assert not given_graph.has_edge(0, 2)
    assert list(graph) == [0, 1, 2]
    assert (graph.graph["title"], graph.edges[0, 1]["cable"]) == ("three", "copper")
    twice = graphs.checked(graphs.checked(nx.path_graph("abcd")).subgraph([1, 2, 3]))
    assert [twice.nodes[k]["name"] for k in twice] == ["b", "c", "d"]


def test_checked_accepts_what_is_harmless() -> None:
    both_ways = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 1)])
    parallel = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    for graph in (
        both_ways,
        parallel,
        nx.MultiDiGraph(both_ways),
        nx.freeze(nx.path_graph(3)),
        nx.path_graph(3),
    ):
        accepted = graphs.checked(graph)
        assert type(accepted) is nx.Graph
        assert not nx.is_frozen(accepted)
        assert links(accepted) == {(0, 1), (1, 2)}
    mixed = graphs.checked(nx.Graph([("b", 3), (3, "a")]))
    assert [mixed.nodes[k]["name"] for k in mixed] == ["b", 3, "a"]
    assert all(type(k) is int for k in graphs.checked(nx.path_graph(np.arange(3.0))))


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (np.eye(3), "a graph has to be a networkx.Graph, not ndarray"),
        (nx.Graph(), "the graph has no agents"),
        (nx.DiGraph([(0, 1), (1, 2), (2, 1)]), "links go one way only: (0, 1); add the way back"),
        (
            nx.Graph([(0, 1), (1, 1), (2, 1), (2, 2)]),
            "agents linked to themselves: 1, 2; remove the self-loops",
        ),
        (
            nx.Graph([("a", "b"), ("b", "c"), ("x", "y")]),
            "agents [x, y] cannot reach the other 3; link the parts",
        ),
        (
            nx.disjoint_union(nx.path_graph(20), nx.path_graph(10)),
            "[20, 21, 22, 23, 24, 25, ... (10 in all)] cannot",
        ),
        (
            nx.empty_graph(8),
            "agents [1] and [2] and [3] and 4 more parts cannot reach the other 1;",
        ),
    ],
)
def test_checked_says_what_is_wrong(graph: nx.Graph, sentence: str) -> None:
    with pytest.raises(GraphError) as caught:
        graphs.checked(graph)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", GENERATED)
@quick
@given(seed=st.integers(0, 1000))
def test_diameter_and_tree_agree_with_networkx(name: str, seed: int) -> None:
    graph = GENERATED[name](seed)
    assert graphs.diameter(graph) == nx.diameter(graph)
    parent, depth = graphs.spanning_tree(graph)
    root = int(np.flatnonzero(parent == np.arange(len(graph))).item())
    assert root == min(nx.center(graph))
    distances = nx.single_source_shortest_path_length(graph, root)
    assert depth.tolist() == [distances[k] for k in graph]
    for k in set(graph) - {root}:
        assert parent[k] == min(j for j in graph[k] if distances[j] == distances[k] - 1)


@pytest.mark.parametrize("name", GENERATED)
@quick
@given(seed=st.integers(0, 1000))
def test_above_the_exact_size_the_diameter_is_bounded(name: str, seed: int) -> None:
    graph = GENERATED[name](seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphs, "EXACT_UP_TO", 1)
        bound, (parent, depth) = graphs.diameter(graph), graphs.spanning_tree(graph)
    assert nx.diameter(graph) <= bound <= 2 * nx.diameter(graph)
    assert bound == 2 * depth.max()
    assert np.count_nonzero(depth == 0) == 1
    others = np.flatnonzero(depth)
    np.testing.assert_array_equal(depth[others], depth[parent[others]] + 1)
    assert all(graph.has_edge(k, parent[k]) for k in others)


def test_the_middle_of_long_graphs_is_found_without_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graphs, "EXACT_UP_TO", 1)
    assert graphs.spanning_tree(graphs.linear(101))[0][50] == 50
    assert graphs.diameter(graphs.linear(101)) == 100


def test_blocks_of_sources_do_not_change_the_diameter() -> None:
    assert graphs.diameter(graphs.ring(700)) == 350
    assert graphs.spanning_tree(graphs.linear(601))[0][300] == 300


def test_one_agent_is_its_own_tree() -> None:
    parent, depth = graphs.spanning_tree(graphs.ring(1))
    assert (parent.tolist(), depth.tolist(), graphs.diameter(graphs.ring(1))) == ([0], [0], 0)
    assert parent.dtype == depth.dtype == np.intp


def test_trees_refuse_disconnected_graphs() -> None:
    with pytest.raises(GraphError, match="not connected"):
        graphs.spanning_tree(nx.empty_graph(3))
    with pytest.raises(GraphError, match="not connected"):
        graphs.diameter(nx.empty_graph(3))
