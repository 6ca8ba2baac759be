"""What a curious agent computes from the messages that reach it: locality is not secrecy.

The curious agent follows the protocol and keeps what it receives. Beside that it knows what every
agent knows: the graph, the weights, the settings and the seed. It uses no rows of its own. Each
test backs a statement of docs/deploy.md ("What other agents learn") or docs/privacy.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import chi2

from peerlearn import (
    AnchorLapClassifier,
    ConjugateGradient,
    Consensus,
    LogisticClassifier,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SimulatedNetwork,
    average,
    data,
    graphs,
    total,
)
from peerlearn.algorithms.distances import Landmarks
from peerlearn.algorithms.distances.landmarks import orthonormal
from peerlearn.algorithms.readout import conjugate_gradient
from peerlearn.algorithms.readout.secret_gram import Columns
from peerlearn.algorithms.secret_sums import open_session
from peerlearn.arrays import one_blas_thread
from peerlearn.errors import NetworkError, NotConverged
from peerlearn.local.anchor_graph import AnchorGraph, projection
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.network.peers.session_file import SessionFile
from peerlearn.privacy import audit
from peerlearn.secret import wide
from peerlearn.secret.fixed_point import (
    decode_entries,
    encode_diagonal,
    entry_exponents,
    exponents_of,
)
from peerlearn.secret.keys import SumContext, digest
from peerlearn.secret.masks import mask
from tests.support import attacks

GRAPH = graphs.erdos_renyi(20, 0.2, seed=0)
TREE = SimulatedNetwork(GRAPH).tree
LEAF = next(k for k in range(20) if k not in TREE.parent)  # its messages hold its own numbers alone
PARENT = int(TREE.parent[LEAF])  # the root
G50C = data.load("g50c")


class Tapped(SimulatedNetwork):
    """A network that keeps what one agent receives: (call, sender, content), as it arrives."""

    def __init__(self, curious, **secrecy):
        super().__init__(GRAPH, exact_order=True, **secrecy)  # round by round, as between sites
        self.curious, self.received = curious, []

    def recur(self, x, steps):
        for step in steps:
            assert step[2] == 0.0, "plain rounds only: this recorder keeps no round before"
            self._keep("mix", sorted(self.graph[self.curious]), x)
            x = super().recur(x, step[None])
        return x

    def flood(self, largest):
        self._keep("flood", sorted(self.graph[self.curious]), largest)
        return super().flood(largest)

    def pass_on(self, x, senders, receivers, *, add):
        self._keep("pass_on", senders[receivers == self.curious], x)
        super().pass_on(x, senders, receivers, add=add)

    def exchange(self, outbox, to=None):
        inbox = super().exchange(outbox, to)
        self.received += [("exchange", j, message) for j, message in inbox[self.curious].items()]
        return inbox

    def _keep(self, call, senders, x):
        self.received += [(call, int(j), x[j].copy()) for j in senders]

    def of(self, call, sender=None):
        """Contents that came by this call, from one sender or from any."""
        return [what for kind, j, what in self.received if kind == call and sender in (None, j)]


def away(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def test_landmarks_give_every_row_to_an_agent_without_rows():
    shares = np.array_split(G50C.X, 19)
    shares.insert(LEAF, np.empty((0, 50)))
    network = Tapped(LEAF)
    Landmarks().share(network, shares, seed=7)

    c = network.of("pass_on")[-1] / 550  # the sum of all rows, on its way down the tree
    s = np.max(network.of("flood"))
    T = network.of("exchange")[-1]["table"]  # squared distances of all rows to the landmarks
    found = attacks.invert_landmarks(c, s, T, orthonormal(50, seed=7))
    assert away(found, np.vstack(shares)) < 1e-13


def test_six_rounds_of_gossip_give_values_of_agents_that_are_not_neighbors():
    """A value is certain if its unit vector is in the row space of the mixtures that were seen."""
    x = np.random.default_rng(0).standard_normal(20)
    computed = []
    for curious in range(20):
        network = Tapped(curious)
        with pytest.warns(NotConverged, match="6 rounds are allowed"):
            average(network, x, method="plain", max_rounds=6)

        C, neighbors = network.mixing.toarray(), sorted(GRAPH[curious])
        mixtures = [np.linalg.matrix_power(C, n)[neighbors] for n in range(6)]
        seen = np.vstack([np.eye(20)[curious], *mixtures])
        found, certain = attacks.solve_gossip(seen, [x[curious], *network.of("mix")])
        assert np.allclose(found[certain], x[certain], rtol=0, atol=1e-9)
        computed.append(np.count_nonzero(certain) - 1)  # of 19 others
    assert sorted(computed) == [1, 1, 2, 2, *[17] * 15, 19]


def test_the_auditor_names_the_values_that_recorded_messages_give():
    """Least squares on recorded messages: right for the values that it names, wrong for others."""
    x = np.random.default_rng(0).standard_normal(20)
    found = audit(GRAPH, method="plain", rounds=6)
    for curious, view in enumerate(found.views):
        network = Tapped(curious)
        with pytest.warns(NotConverged):
            average(network, x, method="plain", max_rounds=6)
        C, neighbors = network.mixing.toarray(), sorted(GRAPH[curious])
        seen = [np.eye(20)[curious]]
        seen += [row for n in range(6) for row in np.linalg.matrix_power(C, n)[neighbors]]
        guess = np.linalg.lstsq(np.array(seen), [x[curious], *network.of("mix")], rcond=1e-10)[0]
        named = sorted(view)
        others = sorted(set(range(20)) - {curious} - set(view))
        assert np.allclose(guess[named], x[named], rtol=0, atol=1e-9)
        assert np.all(abs(guess - x)[others] > 1e-3)
        assert len(named) + len(others) == 19


def test_the_auditor_names_the_leaves_whose_rows_a_parent_reads():
    """A leaf's first message over the tree is its own value, and no other agent gets it so."""
    x = np.random.default_rng(0).standard_normal(20)
    found = audit(GRAPH, method="tree")
    for curious, view in enumerate(found.views):
        network = Tapped(curious)
        total(network, x, method="tree")
        received = network.of("pass_on")
        assert {i for i in range(20) if i != curious and x[i] in received} == set(view)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_messages_of_gram_give_the_rows_of_their_sender(intercept):
    """H'H = sum_i h(x_i) h(x_i)' of fewer rows than features has a null space N: N'h(x) = 0 for
    each row.

    From nearly every start Newton's method ends at one of the rows. Its part is taken from H'H, and
    the next one found. With an intercept features are centred. The sums that were sent for their
    means, and the means, which all agents know, undo that.
    """
    cancer = data.load("breast-cancer")
    X = (cancer.X - cancer.X.mean(axis=0)) / cancer.X.std(axis=0)
    parts = np.array_split(np.arange(180, 569), 19)
    parts.insert(LEAF, np.arange(180))
    network = Tapped(PARENT)
    model = RVFLClassifier(
        300,
        solver="gram",
        fit_intercept=intercept,
        network=network,
        random_state=0,
        alpha=1.0,
        activation="sigmoid",
    )
    model.fit([(X[part], cancer.y[part]) for part in parts])

    message = network.of("exchange", LEAF)[-1]
    R = NormalEquations.unpack(message, (300, 1)).R[:, :300]
    G = R.T @ R
    if intercept:
        n, s = network.of("pass_on", LEAF)[0][:1], network.of("pass_on", LEAF)[0][1:301]
        own = model.features_(X[parts[PARENT]])
        from_children = sum(network.of("pass_on"))
        m = (own.sum(axis=0) + from_children[1:301]) / (len(own) + from_children[0])
        G += np.outer(m, s) + np.outer(s, m) - n * np.outer(m, m)
    with one_blas_thread():  # many small products: threads would only wait for each other
        found = attacks.rows_behind(G, 180, model.features_)
    assert len(found) == 180
    assert max(min(away(x, row) for x in found) for row in X[:180]) < 1e-10


@pytest.mark.processes  # it takes as long
def test_under_secrecy_what_a_leaf_sends_gives_nothing():
    """The same rows, the same attack on the same message; and its bytes are those of random ones.

    The sum of all agents is known to the root. Without its masks the leaf's message would have the
    leaf's own part of that sum.
    """
    cancer = data.load("breast-cancer")
    X = (cancer.X - cancer.X.mean(axis=0)) / cancer.X.std(axis=0)
    parts = np.array_split(np.arange(180, 569), 19)
    parts.insert(LEAF, np.arange(180))
    network = Tapped(PARENT, secrecy="sums")
    model = RVFLClassifier(
        300,
        solver="gram",
        network=network,
        random_state=0,
        alpha=1.0,
        activation="sigmoid",
        classes=np.unique(cancer.y).tolist(),
    )
    model.fit([(X[part], cancer.y[part]) for part in parts])

    sent = network.of("exchange", LEAF)
    diagonal, gram = [message["masked"] for message in sent if "masked" in message]
    columns = Columns(300, 1, intercept=True)
    rows, places = columns.entries
    H = np.hstack([np.ones((180, 1)), model.features_(X[:180])])
    own = H.T @ H
    p = exponents_of(encode_diagonal(np.append(np.diagonal(own), 180.0), 1))
    e = entry_exponents(p[rows], p[places])
    S = np.zeros((302, 302))
    S[rows, places] = decode_entries(gram[:-1, 0], e)
    G = (S + np.triu(S, 1).T)[1:301, 1:301]
    with one_blas_thread():
        assert not attacks.rows_behind(G, 180, model.features_, tries=20)
    # Not even close: numbers of the message and of the leaf have nothing in common.
    true = own[rows[places < 301], places[places < 301]]
    found = S[rows[places < 301], places[places < 301]]
    assert abs(np.corrcoef(true, found)[0, 1]) < 0.03
    for words in (diagonal, gram):
        counts = np.bincount(words.view(np.uint8).ravel(), minlength=256)
        expected = words.nbytes / 256
        assert chi2.sf(np.sum((counts - expected) ** 2 / expected), 255) > 1e-6
    assert {name for message in sent for name in message} == {"masked", "public"}
    assert {call for call, *_ in network.received} == {"exchange", "flood"}  # this is the root


def tap(solver, **secrecy):
    """Train over a network that keeps what PARENT receives. The leaf has 30 of 600 rows."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((600, 4))
    targets = np.sin(rows @ rng.standard_normal((4, 3)))
    parts = np.array_split(np.arange(30, 600), 19)
    parts.insert(LEAF, np.arange(30))
    network = Tapped(PARENT, **secrecy)
    fixed = {"features": "fixed", "fit_intercept": False, "random_state": 0}
    model = RVFLRegressor(12, 0.1, solver=solver, network=network, **fixed)
    model.fit([(rows[part], targets[part]) for part in parts])
    return network, model, rows[:30], targets[:30]


def check_words(network):
    """What the leaf sent: keys, settings that all have, and words like random ones."""
    sent = network.of("exchange", LEAF)
    assert {name for message in sent for name in message} == {"masked", "public"}
    words = np.concatenate([message["masked"].ravel() for message in sent if "masked" in message])
    counts = np.bincount(words.view(np.uint8), minlength=256)
    expected = words.nbytes / 256
    assert chi2.sf(np.sum((counts - expected) ** 2 / expected), 255) > 1e-6
    assert len(np.unique(words)) == len(words)
    assert all(what.dtype == np.uint64 for what in network.of("pass_on", LEAF))


@pytest.mark.parametrize("preconditioner", ["none", "synthetic"])
def test_products_of_conjugate_gradients_give_h_h_of_their_sender_unless_they_are_secret(
    preconditioner, monkeypatch
):
    """All agents know the directions, and products with enough of them give all of H'H."""
    directions = []
    product = conjugate_gradient._NormalEquations.product

    def record(self, d, extra, averaging):
        directions.append(d[PARENT])
        return product(self, d, extra, averaging)

    monkeypatch.setattr(conjugate_gradient._NormalEquations, "product", record)
    solver = ConjugateGradient(1e-9, preconditioner=preconditioner)
    network, model, rows, targets = tap(solver)
    H = model.features_(rows)
    sent = network.of("pass_on", LEAF)
    np.testing.assert_allclose(sent[0][:36].reshape(12, 3), H.T @ targets)
    products = [numbers[:36].reshape(12, 3) for numbers in sent if len(numbers) == 37]
    found = np.hstack(products) @ np.linalg.pinv(np.hstack(directions), rcond=1e-9)
    assert away(found, H.T @ H) < 1e-5

    network, *_ = tap(solver, secrecy="sums")
    check_words(network)


def test_the_coefficients_of_a_leaf_are_read_by_its_parent_unless_they_are_secret():
    network, model, rows, targets = tap(Consensus())
    H = model.features_(rows)
    alone = np.linalg.solve(H.T @ H + 0.1 * 30 / 600 * np.eye(12), H.T @ targets)
    own_rows, weighted, *_ = network.of("pass_on", LEAF)
    np.testing.assert_allclose(weighted / 20 * 600 / own_rows, alone, rtol=1e-9)

    network, *_ = tap(Consensus(), secrecy="sums")
    check_words(network)


def test_a_new_row_is_read_from_a_stream_unless_its_sum_is_secret():
    """R of a single row is the row, and the target beside it."""
    rng = np.random.default_rng(0)
    chunks = [[(rng.standard_normal((n, 3)), rng.standard_normal(n))] * 20 for n in (8, 1)]

    def learn(**secrecy):
        network = Tapped(PARENT, **secrecy)
        model = RVFLRegressor(10, stream="exact", network=network, random_state=0)
        for chunk in chunks:
            network.received.clear()
            model.partial_fit(chunk)
        return network, model

    network, model = learn()
    (x,), (y,) = chunks[1][LEAF]
    R = network.of("exchange", LEAF)[-1]["R"]
    found = R[:-1] * np.sign(R[0])  # without the units of rounding
    np.testing.assert_allclose(found, [1.0, *model.features_(x[None])[0], y])

    network, _ = learn(secrecy="sums")
    check_words(network)


def test_the_only_row_of_a_leaf_is_read_from_a_logistic_regression_unless_sums_are_secret():
    """Sums for means and spreads of columns are those of the row."""
    shares = [
        (X[:1], y[:1]) for X, y in zip(np.split(G50C.X, 50), np.split(G50C.y, 50), strict=False)
    ][:20]
    shares[0] = (G50C.X[:50], G50C.y[:50])

    def learn(**secrecy):
        network = Tapped(PARENT, **secrecy)
        LogisticClassifier(classes=[-1, 1], network=network).fit(shares)
        return network

    sums = learn().of("pass_on", LEAF)[0]  # count, weight, exposure, targets, columns, squares
    np.testing.assert_array_equal(sums[4:54], shares[LEAF][0][0])

    check_words(learn(secrecy="sums"))


def test_two_totals_that_differ_by_one_agent_give_its_numbers():
    """With and without secrecy: this is a limit of every exact sum."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, 1000, (5, 40))
    graph = graphs.complete(5)
    totals = []
    for numbers in (own, np.vstack([own[:4], np.zeros((1, 40), dtype=np.int64)])):
        session = open_session(SimulatedNetwork(graph, secrecy="sums"))
        totals.append(session.count("numbers", numbers)[0])
    np.testing.assert_array_equal(attacks.subtract_totals(*totals), own[4])


def test_a_mask_that_covers_two_contents_gives_their_difference_and_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, 1000, (2, 40)).astype(np.uint64)[:, :, None]
    context = SumContext(0, 0, "numbers", (40,), 1, b"", b"")
    own = mask(0, {1: b"p" * 32, 2: b"q" * 32}, context)
    found = attacks.unmask_twice(wide.add(before, own), wide.add(after, own))
    np.testing.assert_array_equal(found, after[:, 0].astype(np.int64) - before[:, 0].astype(int))
    file = SessionFile(tmp_path)
    file.commit("session 0 0", digest(context.encode(), before.tobytes()))
    with pytest.raises(NetworkError, match="nothing was sent"):
        file.commit("session 0 0", digest(context.encode(), after.tobytes()))
    # Another number of the sum is another mask, and the difference is random.
    other = mask(0, {1: b"p" * 32, 2: b"q" * 32}, SumContext(0, 1, "numbers", (40,), 1, b"", b""))
    found = attacks.unmask_twice(wide.add(before, own), wide.add(after, other))
    assert np.median(np.abs(found.astype(float))) > 2.0**60


class TestOneLabelledRow:
    """An agent with 28 rows, one of which has a label."""

    @pytest.fixture
    def shares(self):
        rows, labels = np.array_split(G50C.X, 20), np.array_split((G50C.y > 0).astype(int), 20)
        few = [1 if k == LEAF else 5 for k in range(20)]
        return [
            (X, np.where(np.arange(len(X)) < n, y, -1))
            for X, y, n in zip(rows, labels, few, strict=True)
        ]

    def test_leaks_from_the_first_gradient_of_s3vm(self, shares):
        """At w = 0 all f are b: unlabelled rows enter by their sum, which was sent before."""
        network = Tapped(PARENT)
        model = S3VMClassifier(positive_share=0.5, network=network, random_state=0).fit(shares)

        (_, positive, others), unlabelled, slope = network.of("pass_on", LEAF)[:3]
        L, U = 1 + 19 * 5, 550 - 96  # told to all agents
        m, b, y = model.mean_[PARENT], 2 * model.positive_share_ - 1, 2 * positive - 1
        of_others = (
            -model.C2 * model.s / U * np.exp(-model.s * b**2) * b * (unlabelled - others * m)
        )
        found = m - (slope[:-1] - of_others) * L / (model.C1 * y * (1 - y * b))
        assert away(found, shares[LEAF][0][0]) < 1e-13

    def test_leaks_where_s3vm_estimates_the_share_of_positives(self, shares):
        """The sum of an agent's labelled rows is sent: here it is the row."""
        network = Tapped(PARENT)
        S3VMClassifier(network=network, random_state=0).fit(shares)
        _, _, labelled = network.of("pass_on", LEAF)[:3]
        np.testing.assert_array_equal(labelled[:-1], shares[LEAF][0][0])

    def test_does_not_leak_from_s3vm_under_secrecy(self, shares):
        network = Tapped(PARENT, secrecy="sums")
        S3VMClassifier(classes=[0, 1], network=network, random_state=0).fit(shares)
        check_words(network)

    def test_leaks_from_the_sums_of_anchor_lap(self, shares):
        """The sum over labelled rows of phi(x) y is +-phi(x): the first of phi shows the sign."""
        network = Tapped(PARENT)
        few = {"n_anchors": 100, "n_nearest": 10, "rank": 60}
        model = AnchorLapClassifier(**few, network=network, random_state=0).fit(shares)

        P = projection(model.anchors_, model.width_, 60)
        graph = AnchorGraph(model.anchors_, P, model.width_, nearest=10)
        (sums,) = network.of("pass_on", LEAF)
        phi = sums[-60:] * np.sign(sums[-60] * np.sum(P[:, 0]))
        start = np.mean(model.anchors_, axis=0)
        found = least_squares(lambda x: graph.features(x[None])[0] - phi, start, method="lm").x
        assert away(found, shares[LEAF][0][0]) < 1e-12
