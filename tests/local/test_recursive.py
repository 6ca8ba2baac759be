"""What one agent learns from a stream by itself: recursive least squares in both forms against
batch, and LMS.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, StreamConsensus, graphs
from peerlearn.arrays import one_blas_thread
from peerlearn.errors import DataError
from peerlearn.local import recursive
from peerlearn.local.chunks import Chunk
from peerlearn.local.features import ACTIVATIONS, RandomFeatures
from tests.support.readout_problems import closed_form
from tests.support.streams_alone import AGENTS, NEVER, B, M, rows_of, stream_of

QUARTER = B // 4  # up to so many rows P is brought up to date, with more the equations are solved
SIZES = {
    "one row each": [1],
    "few rows": range(1, QUARTER + 1),
    "around a quarter of the columns": [QUARTER - 1, QUARTER, QUARTER + 1],
    "more rows than columns": range(B, 3 * B),
    "ragged": [0, 0, 1, 1, 2, QUARTER, QUARTER + 1, B - 1, B, B + 1, 70],
}


@pytest.fixture(autouse=True, scope="module")
def as_models_do():
    with one_blas_thread():
        yield


def learned(stream, alpha=0.5, forgetting=1.0, agents=AGENTS, width=B):
    """The state after every chunk."""
    state = recursive.start(agents, (width, M), alpha, forgetting)
    for H, Y in stream:
        b = absorbed(state, Chunk.of_rows(H, Y), alpha, forgetting)
        state = state | {"b": b}
        yield state


def all_rows(stream, agent):
    return tuple(np.vstack([chunk[part][agent] for chunk in stream]) for part in (0, 1))


def assert_same_bits(state, other, agent, place):
    for name in state:
        np.testing.assert_array_equal(state[name][agent], other[name][place], err_msg=name)


def absorbed(state, chunks, alpha, forgetting):
    """What agents know after a chunk, and keep."""
    b, keep = recursive.absorb(state, chunks, alpha, forgetting)
    keep()
    return b


class TestRecursiveIsBatch:
    @pytest.mark.parametrize("sizes", SIZES.values(), ids=list(SIZES))
    def test_after_every_chunk(self, sizes):
        stream = stream_of(sizes, 60)
        for n, state in enumerate(learned(stream), start=1):
            for k in range(AGENTS):
                answer = closed_form(*all_rows(stream[:n], k), 0.5)
                assert np.linalg.norm(state["b"][k] - answer) <= 1e-10 * max(
                    np.linalg.norm(answer), 1e-3
                ), (n, k)

    def test_both_forms_are_used_and_give_the_same(self):
        for sizes, brought_up_to_date in ((range(1, QUARTER + 1), True), ([QUARTER + 1, B], False)):
            *_, state = learned(stream_of(sizes, 10))
            assert (state["age"] < recursive.STALE).all() == brought_up_to_date
        H, Y = rows_of([4 * QUARTER] * AGENTS)
        *_, at_once = learned([(H, Y)])
        parts = [slice(i, i + QUARTER) for i in range(0, 4 * QUARTER, QUARTER)]
        *_, in_parts = learned([([h[part] for h in H], [y[part] for y in Y]) for part in parts])
        np.testing.assert_allclose(in_parts["b"], at_once["b"], atol=1e-12)
        np.testing.assert_allclose(
            *(recursive.symmetrise(state["A"]) for state in (in_parts, at_once)), atol=1e-12
        )

    def test_agents_without_rows_stay_where_they_are(self):
        rows, none = rows_of([3, 30, 0, 0, 1]), rows_of([0] * AGENTS)
        first, second = (
            {name: array.copy() for name, array in state.items()}
            for state in learned([rows, none, none][:2])
        )
        assert (first["b"][2:4] == 0).all()
        for k in range(AGENTS):
            assert_same_bits(first, second, k, k)

    def test_what_was_handed_out_before_does_not_change(self):
        states = learned(stream_of(SIZES["ragged"], 2))
        first = next(states)["b"]
        before = first.copy()
        next(states)
        np.testing.assert_array_equal(first, before)


class TestTenThousandChunks:
    """Sums keep their digits, differences lose them: by renewing P from A both stay symmetric and
    definite.
    """

    @pytest.mark.parametrize("sizes", [[0, 1], [0, 1, 2, 3, 4, 9]], ids=["single rows", "ragged"])
    def test_keep_symmetry_and_definiteness(self, sizes):
        width, alpha = 8, 1e-2
        stream = [*stream_of(sizes, 10_000, agents=2, width=width), rows_of([1, 1], width)]
        *_, state = learned(stream, alpha, agents=2, width=width)
        A, P = recursive.symmetrise(state["A"]), recursive.symmetrise(state["P"])
        for k in range(2):
            H, Y = all_rows(stream, k)
            truth = H.T @ H + alpha * np.eye(width)
            assert (A[k] == A[k].T).all()
            assert (P[k] == P[k].T).all()
            np.testing.assert_allclose(A[k], truth, atol=1e-11 * np.linalg.norm(truth))
            assert np.linalg.eigvalsh(A[k])[0] > 0
            assert np.linalg.eigvalsh(P[k])[0] > 0
            np.testing.assert_allclose(P[k] @ A[k], np.eye(width), atol=1e-10)
            np.testing.assert_allclose(state["b"][k], closed_form(H, Y, alpha), atol=1e-10)

    def test_and_with_forgetting(self):
        width, alpha, f = 8, 1e-2, 0.99
        stream = stream_of([0, 1], 10_000, agents=2, width=width)
        *_, state = learned(stream, alpha, f, agents=2, width=width)
        A = recursive.symmetrise(state["A"])
        for k in range(2):
            ages = f ** np.repeat(np.arange(10_000)[::-1], [len(H[k]) for H, _ in stream])
            H, _ = all_rows(stream, k)
            np.testing.assert_allclose(
                A[k], alpha * np.eye(width) + H.T @ (ages[:, None] * H), atol=1e-10
            )
            assert (A[k] == A[k].T).all()
            assert np.linalg.eigvalsh(A[k])[0] >= alpha

    def test_an_error_of_the_covariance_does_not_last(self):
        state = recursive.start(1, (B, M), 1.0, 1.0)
        H, Y = rows_of([(recursive.RENEWED_AFTER + 2) * B])
        for n in range(len(H[0])):
            absorbed(state, Chunk.of_rows([H[0][n : n + 1]], [Y[0][n : n + 1]]), 1.0, 1.0)
            if n == B:
                state["P"] *= 1.01
                wrong = recursive.symmetrise(state["P"])[0] @ recursive.symmetrise(state["A"])[0]
                assert np.abs(wrong - np.eye(B)).max() > 1e-3
        right = recursive.symmetrise(state["P"])[0] @ recursive.symmetrise(state["A"])[0]
        np.testing.assert_allclose(right, np.eye(B), atol=1e-10)
        assert state["age"][0] <= recursive.RENEWED_AFTER * B + 1

    def test_only_lower_triangles_are_used(self):
        stream = stream_of(SIZES["ragged"], 12)
        *_, clean = learned(stream)
        for n, state in enumerate(learned(stream)):
            if n < 11:
                for name in ("A", "P"):
                    state[name][:, *np.triu_indices(B, 1)] = 1e6
        for name in ("A", "P"):
            np.testing.assert_array_equal(
                recursive.symmetrise(state[name]), recursive.symmetrise(clean[name])
            )
        np.testing.assert_array_equal(state["b"], clean["b"])


class TestForgetting:
    @pytest.mark.parametrize("sizes", [SIZES["ragged"], [0, 1]], ids=["ragged", "single rows"])
    @pytest.mark.parametrize("f", [0.9, 0.5])
    def test_is_its_formula(self, sizes, f):
        alpha, stream = 0.7, stream_of(sizes, 30)
        A, b = [alpha * np.eye(B)] * AGENTS, [np.zeros((B, M))] * AGENTS
        for (H, Y), state in zip(stream, learned(stream, alpha, f), strict=True):
            for k in range(AGENTS):
                A[k] = f * A[k] + (1 - f) * alpha * np.eye(B) + H[k].T @ H[k]
                b[k] = b[k] + np.linalg.solve(A[k], H[k].T @ (Y[k] - H[k] @ b[k]))
            np.testing.assert_allclose(recursive.symmetrise(state["A"]), A, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(state["b"], b, atol=1e-10)

    def test_what_is_not_seen_any_more_is_forgotten_down_to_the_penalty(self):
        stream = [rows_of([30] * AGENTS), *[rows_of([0] * AGENTS)] * 1000]
        *_, state = learned(stream, 0.7, 0.9)
        np.testing.assert_allclose(
            recursive.symmetrise(state["A"]), [0.7 * np.eye(B)] * AGENTS, atol=1e-15
        )

    def test_keeps_no_covariance(self):
        assert "P" not in recursive.start(2, (B, M), 1.0, 0.9)


class TestStacks:
    @pytest.mark.parametrize("f", [1.0, 0.9])
    def test_the_bits_of_an_agent_do_not_depend_on_the_others(self, f):
        stream = stream_of(SIZES["ragged"], 25, agents=12)
        *_, together = learned(stream, forgetting=f, agents=12)
        for some in ([0], [7], [11], [2, 3, 9]):
            own = [([H[k] for k in some], [Y[k] for k in some]) for H, Y in stream]
            *_, apart = learned(own, forgetting=f, agents=len(some))
            for place, k in enumerate(some):
                assert_same_bits(together, apart, k, place)

    @pytest.mark.parametrize("activation", list(ACTIVATIONS))
    def test_nor_do_its_features(self, activation):
        rng = np.random.default_rng(0)
        features = RandomFeatures.draw(3, 20, seed=0, activation=activation, direct_links=True)
        X = [rng.standard_normal((n, 3)) for n in (9, 10, 10, 0, 1, 300, 1, 9)]
        for chunk in Chunk.of_inputs(features, X, X):
            for i, k in enumerate(chunk.agents):
                (alone,) = Chunk.of_inputs(features, [X[k]], [X[k]])
                np.testing.assert_array_equal(chunk.H[i], alone.H[0])
                np.testing.assert_allclose(chunk.H[i, : len(X[k])], features(X[k]), rtol=1e-13)
                assert not chunk.H[i, len(X[k]) :].any()
                assert not chunk.Y[i, len(X[k]) :].any()

    def test_every_agent_with_rows_is_in_one_stack(self):
        sizes = [0, 1, 9, 10, 0, 33, 1, 70]
        chunks = Chunk.of_rows(*rows_of(sizes))
        assert sorted(np.concatenate([chunk.agents for chunk in chunks])) == [1, 2, 3, 5, 6, 7]
        assert {
            k: n for c in chunks for k, n in zip(c.agents.tolist(), c.rows.tolist(), strict=True)
        } == {k: n for k, n in enumerate(sizes) if n}
        assert Chunk.of_rows(*rows_of([0, 0])) == []

    @pytest.mark.parametrize("rows", [3, 30])
    def test_rows_of_zeros_change_nothing(self, rows):
        H, Y = rows_of([rows])
        filled = Chunk(
            np.array([0]), np.array([rows]), np.zeros((1, rows + 2, B)), np.zeros((1, rows + 2, M))
        )
        filled.H[0, :rows], filled.Y[0, :rows] = H[0], Y[0]
        (bare,) = Chunk.of_rows(H, Y)
        states = [recursive.start(1, (B, M), 1.0, 1.0) for _ in range(2)]
        b = [
            absorbed(state, [c], 1.0, 1.0) for state, c in zip(states, (bare, filled), strict=True)
        ]
        np.testing.assert_allclose(b[1], b[0], atol=1e-14)
        for name in ("A", "P", "age"):
            np.testing.assert_allclose(states[1][name], states[0][name], atol=1e-14)


class TestEquationsBeyondDoublePrecision:
    SENTENCE = (
        r"the rows that agent 1 has seen outweigh the ridge penalty beyond double precision, "
        r".* raise alpha, or"
    )

    def learn(self, rows, scale, alpha, forgetting=1.0):
        """Features of rank 3 at agent 1, so that nothing but the penalty holds its equations up."""
        rng = np.random.default_rng(0)
        network, learner = (
            SimulatedNetwork(graphs.complete(2)),
            StreamConsensus(every=NEVER, forgetting=forgetting),
        )
        low_rank, state = scale * rng.standard_normal((3, B)), learner.start(network, (B, M), alpha)
        for _ in range(20 * B):
            H = [np.zeros((1, B)), rng.standard_normal((rows, 3)) @ low_rank]
            chunks = Chunk.of_rows(H, [np.ones((len(h), M)) for h in H])
            state = learner.learn(network, state, chunks, alpha)

    @pytest.mark.parametrize("rows", [1, QUARTER, QUARTER + 1, B])
    @pytest.mark.parametrize(("scale", "alpha"), [(1.0, 1e-15), (1e9, 1.0)])
    def test_are_refused_in_a_sentence(self, rows, scale, alpha):
        with pytest.raises(DataError, match=self.SENTENCE):
            self.learn(rows, scale, alpha)

    def test_also_while_forgetting(self):
        with pytest.raises(DataError, match=self.SENTENCE):
            self.learn(4, 1.0, 1e-20, 0.99)
