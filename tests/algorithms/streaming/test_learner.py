"""Learners of streams on networks: against formulas written out in numpy, on several graphs; what
is sent, and when.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import (
    Averaging,
    DiffusionLMS,
    DiffusionRLS,
    Faults,
    RVFLClassifier,
    SimulatedNetwork,
    StreamConsensus,
    StreamExact,
    data,
    graphs,
)
from peerlearn.algorithms.streaming import combining
from peerlearn.algorithms.streaming.learner import learner_of, learners
from peerlearn.arrays import one_blas_thread
from peerlearn.errors import InputError, NetworkError
from peerlearn.local.chunks import Chunk
from tests.support.readout_problems import closed_form, distance
from tests.support.split_network import run_apart

B, M, ALPHA = 10, 2, 0.5
RAGGED = [0, 0, 1, 1, 2, 5, 12, 30]


@pytest.fixture(autouse=True, scope="module")
def as_models_do():
    with one_blas_thread():
        yield


def stream_of(agents, chunks, sizes=RAGGED, noise=0.1, seed=0):
    """Chunks of ragged sizes, the first without any rows, the last agent without any in all of
    them.
    """
    rng = np.random.default_rng(seed)
    truth, stream = rng.standard_normal((B, M)), []
    for n in range(chunks):
        rows = rng.choice(sizes, agents) * (np.arange(agents) < max(agents - 1, 1)) * (n > 0)
        H = [rng.standard_normal((m, B)) for m in rows]
        stream.append((H, [h @ truth + noise * rng.standard_normal((len(h), M)) for h in H]))
    return truth, stream


def states(learner, network, stream, alpha=ALPHA):
    """The state after every chunk, as it was then."""
    state = learner.start(network, (B, M), alpha)
    for H, Y in stream:
        state = learner.learn(network, state, Chunk.of_rows(H, Y), alpha)
        yield {name: array.copy() for name, array in state.items()}


def coefficients(learner, network, stream, alpha=ALPHA):
    *_, last = states(learner, network, stream, alpha)
    return last["b"]


def pooled(stream):
    """All rows in one place, and how many chunks ago each came."""
    H, Y = (np.vstack([part for chunk in stream for part in chunk[i]]) for i in (0, 1))
    return (
        H,
        Y,
        np.repeat(np.arange(len(stream))[::-1], [sum(map(len, chunk[0])) for chunk in stream]),
    )


def test_learners_are_found_by_their_names():
    ours = {
        "consensus": StreamConsensus,
        "exact": StreamExact,
        "lms": DiffusionLMS,
        "rls": DiffusionRLS,
    }
    assert ours.items() <= learners().items()
    for name in ("consensus", "StreamConsensus", "stream_consensus", "stream-consensus"):
        assert learner_of(name) == StreamConsensus()


class TestExact:
    @pytest.mark.parametrize("averaging", ["tree", "chebyshev", "plain"])
    def test_is_the_centralised_ridge_after_every_chunk(self, graph, averaging):
        _, stream = stream_of(len(graph), 100)
        learned = states(StreamExact(averaging=averaging), SimulatedNetwork(graph), stream)
        for n, state in enumerate(learned, start=1):
            H, Y, _ = pooled(stream[:n])
            answer = closed_form(H, Y, ALPHA)
            assert np.abs(state["b"] - answer).max() <= 1e-8 * max(np.abs(answer).max(), 1e-8), n

    @pytest.mark.parametrize("averaging", ["tree", "chebyshev", "plain"])
    def test_forgets_exactly(self, averaging):
        graph, f = graphs.erdos_renyi(8, 0.3), 0.8
        _, stream = stream_of(8, 40)
        learned = states(StreamExact(f, averaging), SimulatedNetwork(graph), stream)
        for n, state in enumerate(learned, start=1):
            H, Y, age = pooled(stream[:n])
            W = f ** age[:, None]
            answer = np.linalg.solve(H.T @ (W * H) + ALPHA * np.eye(B), H.T @ (W * Y))
            np.testing.assert_allclose(state["b"], [answer] * 8, atol=1e-9)

    def test_on_a_tree_only_the_root_keeps_sums(self):
        network = SimulatedNetwork(graphs.erdos_renyi(8, 0.3))
        *_, state = states(StreamExact(), network, stream_of(8, 10)[1])
        for name in ("G", "c"):
            assert [k for k in range(8) if state[name][k].any()] == [network.tree.root]
        assert (state["b"] == state["b"][0]).all()

    def test_lost_messages(self):
        lossy = SimulatedNetwork(graphs.erdos_renyi(8, 0.5), faults=Faults(0.1, seed=0))
        _, stream = stream_of(8, 10)
        H, Y, _ = pooled(stream)
        assert (
            distance(coefficients(StreamExact(), lossy, stream), closed_form(H, Y, ALPHA)) <= 1e-8
        )


class TestOneAgent:
    @pytest.mark.parametrize("name", list(learners()))
    def test_sends_nothing(self, name):
        network = SimulatedNetwork(graphs.complete(1))
        coefficients(learner_of(name), network, stream_of(1, 20)[1])
        assert network.ledger.rounds == 0

    @pytest.mark.parametrize(
        "learner", [StreamExact(), StreamConsensus(), StreamConsensus(every=4), DiffusionRLS()]
    )
    def test_is_the_centralised_case(self, learner):
        _, stream = stream_of(1, 40)
        H, Y, _ = pooled(stream)
        answer = closed_form(H, Y, ALPHA)
        assert (
            distance(coefficients(learner, SimulatedNetwork(graphs.complete(1)), stream), answer)
            <= 1e-10
        )


class TestConsensus:
    def by_hand(self, stream, agents, every, f, thesis):
        """The whole algorithm in plain numpy; coefficients after every chunk."""
        A, b, N = [ALPHA * np.eye(B)] * agents, np.zeros((agents, B, M)), np.zeros(agents)
        for n, (H, Y) in enumerate(stream, start=1):
            b, N = b.copy(), f * N + list(map(len, H))
            for k in range(agents):
                A[k] = f * A[k] + (1 - f) * ALPHA * np.eye(B) + H[k].T @ H[k]
                b[k] += np.linalg.solve(A[k], H[k].T @ (Y[k] - H[k] @ b[k]))
            if n % every == 0 and (thesis or N.any()):
                b[:] = np.average(b, axis=0, weights=None if thesis else N)
            yield b

    @pytest.mark.parametrize("every", [1, 3])
    @pytest.mark.parametrize("f", [1.0, 0.9])
    @pytest.mark.parametrize("variant", ["weighted", "thesis"])
    def test_is_its_formula(self, graph, variant, f, every):
        _, stream = stream_of(len(graph), 30)
        learner = StreamConsensus(every=every, forgetting=f, variant=variant)
        expected = self.by_hand(stream, len(graph), every, f, variant == "thesis")
        for state, b in zip(
            states(learner, SimulatedNetwork(graph), stream), expected, strict=True
        ):
            np.testing.assert_allclose(state["b"], b, atol=1e-10)

    @pytest.mark.parametrize(
        "averaging", ["plain", "chebyshev", Averaging("chebyshev", 1e-6, stopping="messages")]
    )
    def test_averages_by_gossip_are_near(self, averaging):
        network, (_, stream) = SimulatedNetwork(graphs.erdos_renyi(8, 0.3)), stream_of(8, 20)
        *_, expected = self.by_hand(stream, 8, 1, 1.0, False)
        assert (
            distance(
                coefficients(StreamConsensus(averaging=averaging), network, stream), expected[0]
            )
            <= 1e-4
        )

    def test_while_nobody_has_rows_coefficients_are_zero(self):
        _, stream = stream_of(6, 5, sizes=[0])
        for learner in (make() for make in learners().values()):
            assert not coefficients(learner, SimulatedNetwork(graphs.ring(6)), stream).any()

    def test_agents_speak_in_every_third_chunk_only(self, graph):
        network, rounds = SimulatedNetwork(graph), []
        for _ in states(StreamConsensus(every=3), network, stream_of(len(graph), 12)[1]):
            rounds.append(network.ledger.rounds)
        each = 2 * network.tree.height
        assert rounds == [each * (n // 3) for n in range(1, 13)]

    def test_g50c_error_rates(self):
        """Thesis, section 5.3, on generated data. Errata 5.4: the error rate is right, the
        coefficients are not.
        """
        errors, apart = [], []
        for seed in range(4):
            train, test = (
                data.load("g50c", seed=seed),
                data.load("g50c", seed=100 + seed, scaled=False),
            )
            X = train.scaling.apply(test.X)
            network = SimulatedNetwork(graphs.erdos_renyi(8, 0.3, seed))
            whole = RVFLClassifier(200, alpha=8.0, random_state=seed, activation="sigmoid").fit(
                train.X, train.y
            )
            model = RVFLClassifier(
                200, alpha=8.0, random_state=seed, network=network, activation="sigmoid"
            )
            for start in range(0, len(train.y), 20):
                model.partial_fit(
                    train.X[start : start + 20], train.y[start : start + 20], classes=[-1, 1]
                )
            errors.append((1 - model.score(X, test.y), 1 - whole.score(X, test.y)))
            apart.append(distance(model.coefficients_, whole.coefficients_[0]))
        streamed, centralised = np.mean(errors, axis=0)
        assert centralised < 0.09
        assert streamed < centralised + 0.02
        assert min(apart) > 0.1


class TestCensoring:
    @pytest.mark.parametrize("learner", [DiffusionRLS, DiffusionLMS])
    def test_a_threshold_of_zero_is_plain_mixing(self, graph, learner):
        _, stream = stream_of(len(graph), 50)
        pairs = (states(learner(threshold=t), SimulatedNetwork(graph), stream) for t in (None, 0.0))
        for plain, censored in zip(*pairs, strict=True):
            np.testing.assert_allclose(censored["b"], plain["b"], rtol=0, atol=1e-12)

    def test_combining_keeps_the_mean(self, graph):
        rng, network = np.random.default_rng(0), SimulatedNetwork(graph)
        state = combining.memory(network, (B, M), 0.3)
        b = rng.standard_normal((network.size, B, M))
        for _ in range(100):
            b += rng.exponential(0.3, (network.size, 1, 1)) * rng.standard_normal(
                (network.size, B, M)
            )
            mixed = combining.combine(network, state, b, 0.3)
            np.testing.assert_allclose(mixed.mean(axis=0), b.mean(axis=0), atol=1e-12)
            b = mixed
        assert 0 < state["silences"].sum() < 100 * network.size

    @pytest.mark.parametrize("learner", [StreamConsensus, DiffusionRLS, DiffusionLMS])
    def test_the_ledger_counts_those_who_speak(self, graph, learner):
        network, every = SimulatedNetwork(graph), SimulatedNetwork(graph)
        _, stream = stream_of(len(graph), 60)
        degrees, before, messages = (
            np.array([len(graph[k]) for k in range(len(graph))]),
            np.zeros(len(graph)),
            0,
        )
        sent = np.zeros((len(graph), B, M))
        for state in states(learner(threshold=0.1), network, stream):
            spoke = state["silences"] == before
            np.testing.assert_array_equal(spoke, (state["sent"] != sent).any(axis=(1, 2)))
            messages, before, sent = (
                messages + degrees[spoke].sum(),
                state["silences"],
                state["sent"],
            )
            assert (network.ledger.messages, network.ledger.bytes) == (
                messages,
                messages * B * M * 8,
            )
        coefficients(
            learner(threshold=None if learner is not StreamConsensus else 0.0), every, stream
        )
        assert network.ledger.rounds == 60
        assert messages < every.ledger.messages

    @pytest.mark.parametrize("learner", [StreamConsensus, DiffusionRLS])
    def test_agents_become_silent_as_there_is_less_news(self, learner):
        network, (_, stream) = (
            SimulatedNetwork(graphs.erdos_renyi(8, 0.3)),
            stream_of(8, 600, [0, 1, 2], noise=1.0),
        )
        silences = [
            state["silences"].sum() for state in states(learner(threshold=0.01), network, stream)
        ]
        silent = np.diff([0, *silences[99::100]]) / 800
        assert silent[0] < 0.3 < silent[1] < silent[2] < silent[3]
        assert silent[-1] > 0.7

    def test_differences_end_nearer_to_the_mean_than_stale_values(self, graph):
        """To mix what one has with old values of neighbors pulls everybody back to what was sent
        before.
        """
        network, C, threshold = (
            SimulatedNetwork(graph),
            SimulatedNetwork(graph).weights.toarray(),
            0.1,
        )
        rng = np.random.default_rng(0)
        start, learned, own = (
            rng.standard_normal((network.size, B)),
            rng.standard_normal(B) / 50,
            np.diag(C)[:, None],
        )
        b, state = start[:, :, None], combining.memory(network, (B, 1), threshold)
        naive, stale = start, np.zeros_like(start)
        for _ in range(100):
            b, naive = (
                combining.combine(network, state, b + learned[:, None], threshold),
                naive + learned,
            )
            news = np.linalg.norm(naive - stale, axis=1) > threshold * np.linalg.norm(naive, axis=1)
            stale = np.where(news[:, None], naive, stale)
            naive = own * naive + C @ stale - own * stale
        truth = start.mean(axis=0) + 100 * learned
        assert np.linalg.norm(b[:, :, 0] - truth) < 0.2 * np.linalg.norm(naive - truth)

    @pytest.mark.parametrize("learner", [StreamConsensus, DiffusionRLS, DiffusionLMS])
    def test_is_refused_where_messages_get_lost(self, learner):
        lossy = SimulatedNetwork(graphs.ring(4), faults=Faults(0.1))
        with pytest.raises(
            NetworkError, match=r"cannot tell silence from a lost message, .* let all agents speak"
        ):
            coefficients(learner(threshold=0.1), lossy, stream_of(4, 3)[1])
        assert lossy.ledger.messages == 0
        coefficients(learner(), lossy, stream_of(4, 3)[1])


class TestDiffusion:
    @pytest.mark.parametrize(
        "learner",
        [DiffusionLMS(), DiffusionLMS(0.02, normalised=False), DiffusionRLS(forgetting=0.9)],
        ids=str,
    )
    def test_targets_without_noise_are_recovered_by_all_agents(self, graph, learner):
        truth, stream = stream_of(len(graph), 400, noise=0.0)
        assert distance(coefficients(learner, SimulatedNetwork(graph), stream), truth) <= 1e-6

    def test_without_forgetting_a_wrong_start_fades_with_the_rows_seen(self, graph):
        truth, stream = stream_of(len(graph), 800, noise=0.0)
        away = [
            distance(state["b"], truth)
            for state in states(DiffusionRLS(), SimulatedNetwork(graph), stream)
        ]
        assert away[799] < 0.6 * away[399] < 0.36 * away[199]

    def test_on_a_complete_graph_mixing_is_averaging(self):
        """Uniform weights: the same say for all, as in the thesis, and by rows seen where all have
        as many.
        """
        network, (_, stream) = SimulatedNetwork(graphs.complete(6), "max-degree"), stream_of(6, 40)
        np.testing.assert_allclose(network.weights.toarray(), np.full((6, 6), 1 / 6))
        thesis = coefficients(StreamConsensus(variant="thesis"), network, stream)
        np.testing.assert_allclose(
            coefficients(DiffusionRLS(), network, stream), thesis, atol=1e-11
        )
        _, halves = stream_of(12, 40, sizes=[3])
        equal = [(H[:6], Y[:6]) for H, Y in halves]
        weighted = coefficients(StreamConsensus(), network, equal)
        np.testing.assert_allclose(
            coefficients(DiffusionRLS(), network, equal), weighted, atol=1e-11
        )

    def test_an_agent_that_diverges_says_so_before_anything_is_sent(self):
        network, learner = (
            SimulatedNetwork(graphs.ring(4)),
            DiffusionLMS(step=10.0, normalised=False),
        )
        H = [np.ones((n, B)) for n in (1, 2, 400, 0)]
        with pytest.raises(
            NetworkError,
            match="DiffusionLMS: the coefficients of agent 2 overflow: give a smaller step",
        ):
            coefficients(learner, network, [(H, [np.ones((len(h), M)) for h in H])])
        assert network.ledger.rounds == 0


class TestApart:
    """Agents that live apart have the bits of a simulation, and what they send adds up to what it
    counts.
    """

    CASES = (
        *(make() for make in learners().values()),
        *(StreamExact(forgetting=0.9, averaging=method) for method in ("plain", "chebyshev")),
        StreamConsensus(every=2, averaging="chebyshev", forgetting=0.9, variant="thesis"),
        StreamConsensus(averaging=Averaging("plain", 1e-5, stopping="messages")),
        *(make(threshold=0.2, every=2) for make in (StreamConsensus, DiffusionRLS, DiffusionLMS)),
    )

    @pytest.mark.parametrize("learner", CASES, ids=str)
    def test_are_as_together(self, learner):
        graph = graphs.erdos_renyi(6, 0.4, seed=2)
        _, stream = stream_of(6, 7)
        together = SimulatedNetwork(graph, exact_order=True)
        expected = list(states(learner, together, stream))

        def alone(network, k):
            own = [([H[k]], [Y[k]]) for H, Y in stream]
            return list(states(learner, network, own)), network._meeting.together.ledger.mark()

        for k, (found, sent) in enumerate(run_apart(graph, alone, exact_order=True)):
            for state, simulated in zip(found, expected, strict=True):
                for name in state:
                    np.testing.assert_array_equal(state[name][0], simulated[name][k], err_msg=name)
            assert sent == together.ledger.mark()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: StreamConsensus(every=0),
            "every is 0: agents combine after every 1, 2, 3, .. chunks; give a whole",
        ),
        (lambda: DiffusionRLS(every=1.5), "every is 1.5: agents combine"),
        (
            lambda: DiffusionLMS(threshold=-1),
            "threshold is -1: give the relative change that is worth a message",
        ),
        (lambda: StreamConsensus(threshold=float("nan")), "threshold is nan"),
        (
            lambda: StreamConsensus(forgetting=0.0),
            "forgetting is 0.0: give a number above 0 and at most 1, such as",
        ),
        (lambda: DiffusionRLS(forgetting=1.1), "forgetting is 1.1"),
        (lambda: StreamExact(forgetting="x"), "forgetting is 'x'"),
        (lambda: StreamExact(averaging="magic"), "method 'magic' is not known"),
        (lambda: StreamConsensus(averaging="magic"), "method 'magic' is not known"),
        (
            lambda: StreamConsensus(variant="x"),
            "variant 'x' is not known: StreamConsensus has 'weighted' and 'thesis'",
        ),
        (lambda: DiffusionLMS(step=0), "step is 0: give a number above 0"),
        (lambda: DiffusionLMS(step="fast"), "step is 'fast'"),
        (
            lambda: DiffusionLMS(step=2.5),
            "a normalised step of 2.5 diverges: give one below 2, such as 0.5",
        ),
        (
            lambda: learner_of("consensu"),
            "stream 'consensu' is not known, did you mean 'consensus'",
        ),
        (
            lambda: learner_of(3),
            "stream must be one of consensus, exact, lms, rls, or an object with a learn method",
        ),
        (
            lambda: learner_of(DiffusionRLS),
            r"stream is the class DiffusionRLS: give an object, DiffusionRLS\(\)",
        ),
    ],
)
def test_bad_settings_get_their_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
