"""The auditor: compared with exact arithmetic, with recorded messages and with brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, islice
from math import comb

import networkx as nx
import numpy as np
import pytest

from peerlearn import SimulatedNetwork, average, graphs, iterates, total
from peerlearn.errors import InputError, NotConverged
from peerlearn.privacy import audit
from peerlearn.privacy.auditor import RANK, mask_graph

RANDOM = graphs.erdos_renyi(20, 0.2, seed=0)
SMALL = {
    "pair": graphs.complete(2),
    "line": graphs.linear(7),
    "ring": graphs.ring(6),
    "star": graphs.star(6),
    "complete": graphs.complete(5),
    "grid": graphs.grid(2, 4),
    **{f"random {seed}": graphs.erdos_renyi(8, 0.3, seed=seed) for seed in range(6)},
}


def sizes(most):
    """Return small graphs with coalitions of up to this size that leave somebody honest."""
    return [(name, t) for name in SMALL for t in range(1, min(most + 1, len(SMALL[name])))]


class Recorder(SimulatedNetwork):
    """A network that keeps all messages: (round, receiver, content).

    If agent k starts with the k-th unit vector, a message shows itself as a linear map of all
    initial values.
    """

    def __init__(self, graph):
        super().__init__(graph, exact_order=True)
        self.sent = []
        self.rounds = 0

    def recur(self, x, steps):
        before = x
        for a, b, c in steps:
            self._keep(x, [(j, k) for k in self.graph for j in sorted(self.graph[k])])
            latest = a * (self.mixing @ x) + b * x + c * before
            before, x = x, latest
        return x

    def pass_on(self, x, senders, receivers, *, add):
        self._keep(x, zip(senders.tolist(), receivers.tolist(), strict=True))
        super().pass_on(x, senders, receivers, add=add)

    def _keep(self, x, links):
        self.rounds += 1
        self.sent += [(self.rounds, k, x[j].copy()) for j, k in links]

    def seen_by(self, coalition, rounds):
        """What a coalition knows after these rounds: its own values, and what it received."""
        own = np.eye(self.size)[list(coalition)]
        got = [what for n, k, what in self.sent if k in coalition and n <= rounds]
        return [*own, *got]


class Space:
    """The span of rows of fractions, in exact arithmetic: one reduced row per leading column."""

    def __init__(self, rows):
        self.leading = {}
        for row in rows:
            left = self.reduce([Fraction(entry) for entry in row])
            column = next((j for j, entry in enumerate(left) if entry), None)
            if column is not None:
                self.leading[column] = [entry / left[column] for entry in left]

    def reduce(self, row):
        """Return the row without what the span has of it; zeros if it is in the span."""
        for column in range(len(row)):
            if row[column] and column in self.leading:
                factor = row[column]
                pairs = zip(row, self.leading[column], strict=True)
                row = [a - factor * b for a, b in pairs]
        return row


def determined(rows, values):
    """Which of the first values are determined by rows, in exact arithmetic."""
    space = Space(rows)
    width = len(rows[0])
    return {
        i
        for i in range(values)
        if not any(space.reduce([Fraction(int(i == j)) for j in range(width)]))
    }


def first_rounds(seen, coalition, agents, rounds):
    """The first round after which each value is determined; seen(n): rows known after n rounds."""
    first = {}
    for n in range(1, rounds + 1):
        for i in determined(seen(n), agents) - set(coalition):
            first.setdefault(i, n)
    return first


def metropolis(graph):
    """Metropolis weights as fractions: as doubles, equal ones differ in the last bit."""
    C = [[Fraction(0)] * len(graph) for _ in graph]
    for a, b in graph.edges:
        C[a][b] = C[b][a] = Fraction(1, 1 + max(graph.degree[a], graph.degree[b]))
    for k in graph:
        C[k][k] = 1 - sum(C[k])
    return C


def powers_of(C, count):
    """The powers 0, 1, .. of a matrix of fractions."""
    agents = range(len(C))
    power = [[Fraction(int(i == j)) for j in agents] for i in agents]
    for _ in range(count):
        yield power
        power = [[sum(power[i][k] * C[k][j] for k in agents) for j in agents] for i in agents]


def compare_with(found, by_brute_force):
    """Compare an audit with the first rounds of values by coalition."""
    for each in found.exposures:
        rounds = {
            coalition: first[each.agent]
            for coalition, first in by_brute_force.items()
            if each.agent in first
        }
        assert each.coalitions == len(rounds)
        assert each.rounds == min(rounds.values(), default=None)
        if rounds:
            assert any(set(each.by) <= set(coalition) for coalition in rounds)
    if found.views is not None:
        assert {(k,): view for k, view in enumerate(found.views)} == by_brute_force


def test_a_curious_agent_computes_17_of_19_values_after_6_rounds():
    found = audit(RANDOM, method="plain", rounds=6)
    assert sorted(found.computes) == [1, 1, 2, 2, *[17] * 15, 19]
    assert all(each.rounds == 1 for each in found.exposures)  # neighbors get values as they are
    rejected, accepted = found.rank_margin
    assert rejected < 1e-3 * RANK < 1e3 * RANK < accepted


@pytest.mark.parametrize(("name", "t"), sizes(2))
def test_gossip_agrees_with_exact_arithmetic(name, t):
    graph = SMALL[name]
    L = len(graph)
    powers = list(powers_of(metropolis(graph), L))
    by_brute_force = {}
    for coalition in combinations(range(L), t):
        heard = {j for k in coalition for j in graph[k]}
        own = [powers[0][k] for k in coalition]

        def seen(n, heard=heard, own=own):
            return own + [powers[m][j] for m in range(n) for j in heard]

        by_brute_force[coalition] = first_rounds(seen, coalition, L, L)
    compare_with(audit(graph, method="plain", colluders=t), by_brute_force)
    for rounds in (1, 2):
        cut = {
            coalition: {i: n for i, n in first.items() if n <= rounds}
            for coalition, first in by_brute_force.items()
        }
        compare_with(audit(graph, method="chebyshev", colluders=t, rounds=rounds), cut)


@pytest.mark.parametrize(("name", "t"), sizes(3))
def test_a_tree_agrees_with_its_recorded_messages(name, t):
    graph = SMALL[name]
    L = len(graph)
    network = Recorder(graph)
    total(network, np.eye(L), method="tree")
    by_brute_force = {
        coalition: first_rounds(
            lambda n, coalition=coalition: network.seen_by(coalition, n),
            coalition,
            L,
            network.rounds,
        )
        for coalition in combinations(range(L), t)
    }
    compare_with(audit(graph, method="tree", colluders=t), by_brute_force)


def test_a_trees_leaves_are_exposed_to_their_parents_and_to_nobody_else():
    tree = SimulatedNetwork(RANDOM).tree
    found = audit(RANDOM, method="tree")
    leaves = set(range(20)) - set(tree.parent.tolist())
    assert {each.agent for each in found.exposed} == leaves
    assert all(each.by == (tree.parent[each.agent],) for each in found.exposed)
    assert all(each.coalitions == 1 for each in found.exposed)


@pytest.mark.parametrize("seed", range(8))
def test_masks_agree_with_brute_force_over_all_coalitions(seed):
    """What is sent is x_i and the masks of i's links, which only their two ends know."""
    rng = np.random.default_rng(seed)
    L = int(rng.integers(4, 11))
    masks = nx.gnp_random_graph(L, float(rng.uniform(0.3, 0.9)), seed=seed)
    for t in range(1, L):
        found = audit(graphs.ring(L), masks=masks, colluders=t)
        pieces = []
        exposed = dict.fromkeys(range(L), 0)
        for coalition in combinations(range(L), t):
            honest = [i for i in range(L) if i not in coalition]
            left = masks.subgraph(honest)
            links = list(left.edges)
            columns = np.zeros((len(honest), len(honest) + len(links)), dtype=int)
            columns[:, : len(honest)] = np.eye(len(honest))
            for m, (a, b) in enumerate(links, len(honest)):
                columns[honest.index(a), m] = 1
                columns[honest.index(b), m] = -1
            alone = {honest[i] for i in determined(columns, len(honest))}
            pieces.append(nx.number_connected_components(left))
            for i in alone:
                exposed[i] += 1
        assert {e.agent: e.coalitions for e in found.exposures} == exposed
        if t < L - 1:  # one honest agent alone is always connected
            assert (found.connectivity > t) == (max(pieces) == 1)


@pytest.mark.parametrize(("agents", "t"), [(5, 1), (5, 3), (200, 50), (201, 1), (201, 5)])
def test_masks_of_all_pairs_hide_all_values(agents, t):
    found = audit(graphs.ring(agents), masks="sums", colluders=t)
    assert found.exposed == ()
    assert found.connectivity > t
    assert nx.node_connectivity(mask_graph(201, 5)) == 6


def test_the_only_honest_agent_has_no_secret():
    for given in ({"method": "tree"}, {"masks": "sums"}, {"method": "plain"}):
        found = audit(graphs.complete(4), colluders=3, **given)
        assert [each.coalitions for each in found.exposures] == [1, 1, 1, 1]


def test_values_that_are_sent_are_known_to_their_receivers():
    found = audit(graphs.ring(6), method="neighbors", colluders=2)
    assert {each.coalitions for each in found.exposures} == {comb(5, 2) - comb(3, 2)}
    assert audit(graphs.ring(6), method="neighbors").computes == (2,) * 6
    assert audit(graphs.ring(6), method="everyone").computes == (5,) * 6
    assert audit(graphs.ring(6), method="nothing").exposed == ()


@pytest.mark.parametrize("method", ["plain", "chebyshev"])
@pytest.mark.parametrize("graph", [RANDOM, graphs.linear(30), graphs.ring(20)])
def test_digits_are_those_of_an_attack_in_float64(graph, method):
    """Least squares on the messages of a run of the library, each in float64."""
    L = len(graph)
    found = audit(graph, method=method)
    network = Recorder(graph)
    with pytest.warns(NotConverged):
        average(network, np.eye(L), method=method, max_rounds=L, tolerance=1e-300)
    x = np.random.default_rng(0).standard_normal(L)
    sent = [x, *islice(iterates(SimulatedNetwork(graph), x, method), L - 1)]
    for k, view in enumerate(found.views):
        values = [x[k], *(now[j] for now in sent for j in sorted(graph[k]))]
        U, s, V = np.linalg.svd(np.array(network.seen_by([k], L)), full_matrices=False)
        estimate = V.T @ (s / (s**2 + 1e-32) * (U.T @ values))
        error = max(abs(estimate - x)[list(view)])
        assert error < 10.0 ** (2 - found.digits[k])
        if 0 < found.digits[k] < 12:
            assert error > 10.0 ** (-4 - found.digits[k])


def test_chebyshev_shows_more_digits_than_plain_gossip():
    line = graphs.linear(50)
    assert min(audit(line, method="plain").digits) == 0
    assert min(audit(line, method="chebyshev").digits) >= 13


def test_what_is_said():
    assert audit(graphs.linear(5)).summary() == (
        "By sums over a tree, single agents can compute the values of 2 of 5 agents. "
        "Agent 1 computes most: 1, within 1 round."
    )
    assert audit(graphs.linear(5), masks="sums", colluders=2).summary() == (
        "By masked sums, no 2 agents together can compute the value of another."
    )
    assert audit(graphs.star(4), colluders=2).summary() == (
        "By sums over a tree, 2 agents together can compute the values of 3 of 4 agents."
    )
    named = audit(graphs.star(3), names=["a", "b", "c"])
    assert [each.name for each in named.exposed] == ["b", "c"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colluders": 0}, "1 to 4 can be curious"),
        ({"colluders": 5}, "1 to 4 can be curious"),
        ({"method": "flood"}, "choose one of plain"),
        ({"method": "plain", "rounds": 0}, "give 1 or more"),
        ({"names": ["a"]}, "give one for each"),
        ({"masks": graphs.ring(4)}, "give a graph of the same agents"),
    ],
)
def test_refusals(given, said):
    with pytest.raises(InputError, match=said):
        audit(graphs.ring(5), **given)


def test_more_coalitions_than_can_be_tried_are_refused():
    with pytest.raises(InputError, match="ask for fewer colluders"):
        audit(graphs.ring(100), method="plain", colluders=5)
    assert len(audit(graphs.ring(100), method="tree", colluders=5).exposed) == 100
