"""What ESNRegressor may be given: all forms of sequences, and a sentence for everything else,
before any message.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from peerlearn import ESNRegressor, RVFLRegressor, SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.models.sequence_shares import Sequences, chunk_of, sequences_of
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
LENGTHS = (30, 20, 41, 25, 33)
X = [RNG.standard_normal((n, 2)) for n in LENGTHS]
Y = [x[:, 0] + x[:, 1] for x in X]


def dealt(X, y=None, agents=1, washout=0, seed=0) -> Sequences:
    return sequences_of(
        ESNRegressor(), SimulatedNetwork(graphs.complete(agents)), X, y, washout=washout, seed=seed
    )


def with_bad(sequences, j, n, value):
    changed = [one.copy() for one in sequences]
    changed[j][n] = value
    return changed


class TestForms:
    def test_one_array_stays_whole_at_one_agent(self):
        found = dealt(X[0], Y[0])
        assert np.array_equal(found.inputs[0], X[0])
        assert np.array_equal(found.targets[0], Y[0][:, None])
        assert (found.owners, found.numbers, found.last, found.single) == ([0], [0], 0, True)

    def test_one_array_is_cut_into_stretches_of_time(self):
        found = dealt(X[2], np.column_stack([Y[2], Y[2]]), agents=4)
        assert [len(x) for x in found.inputs] == [11, 10, 10, 10]
        assert np.array_equal(np.vstack(found.inputs), X[2])
        assert np.array_equal(np.vstack(found.targets)[:, 1], Y[2])
        assert (found.owners, found.numbers, found.last, found.single) == (
            [0, 1, 2, 3],
            [0] * 4,
            3,
            False,
        )

    def test_many_are_dealt_evenly_and_none_is_lost(self):
        found = dealt(X, Y, agents=2, seed=3)
        assert sorted(found.owners) == found.owners
        assert np.bincount(found.owners).tolist() == [3, 2]
        assert found.numbers == [0, 1, 2, 0, 1]
        assert sorted(len(x) for x in found.inputs) == sorted(LENGTHS)
        for x, y in zip(found.inputs, found.targets, strict=True):
            assert np.array_equal(y[:, 0], x[:, 0] + x[:, 1])
        assert len(found.inputs[found.last]) == LENGTHS[-1]
        orders = {
            tuple(len(x) for x in dealt(X, Y, agents=2, seed=seed).inputs) for seed in range(5)
        }
        assert len(orders) > 1

    @pytest.mark.parametrize(
        "form", [list, tuple, np.stack, lambda many: [x.tolist() for x in many]]
    )
    def test_lists_and_arrays_of_three_axes(self, form):
        x, y = [one[:20] for one in X], [one[:20] for one in Y]
        found = dealt(form(x), form(y))
        assert all(np.array_equal(a, b) for a, b in zip(found.inputs, x, strict=True))
        assert all(np.array_equal(a[:, 0], b) for a, b in zip(found.targets, y, strict=True))

    def test_a_table_as_lists_of_numbers_is_one_sequence(self):
        assert np.array_equal(dealt(X[0].tolist(), Y[0].tolist()).inputs[0], X[0])

    def test_a_table_of_two_columns_as_pairs_is_one_sequence(self):
        pairs = [*map(tuple, X[0].tolist())]
        assert np.array_equal(dealt(pairs, Y[0]).inputs[0], X[0])
        assert np.array_equal(ESNRegressor(5, random_state=0).fit(X, Y).predict(pairs).shape, (30,))
        rvfl = RVFLRegressor(5, random_state=0, alpha=1.0, activation="sigmoid")
        assert np.array_equal(
            rvfl.fit(pairs, Y[0]).coefficients_, rvfl.fit(X[0], Y[0]).coefficients_
        )

    def test_data_frames(self):
        frames = [pd.DataFrame(x, columns=["a", "b"]) for x in X]
        model = ESNRegressor(5, random_state=0).fit(frames, [pd.Series(y) for y in Y])
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert np.array_equal(
            model.coefficients_, ESNRegressor(5, random_state=0).fit(X, Y).coefficients_
        )
        assert np.array_equal(model.predict(frames[1]), model.predict(frames)[1])
        table = pd.DataFrame(np.stack([y[:20] for y in Y]))  # a row per sequence
        assert np.array_equal(dealt([x[:20] for x in X], table).targets[3][:, 0], Y[3][:20])

    def test_shares_have_one_sequence_or_many(self):
        found = dealt([(X[0], Y[0]), (X[1:3], Y[1:3]), (X[3:], Y[3:])], agents=3)
        assert (found.owners, found.numbers, found.last) == ([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], 0)
        assert all(np.array_equal(a, b) for a, b in zip(found.inputs, X, strict=True))

    def test_an_agent_apart_gives_its_own(self):
        graph, model = graphs.ring(3), {"n_reservoir": 5, "random_state": 0, "solver": "gram"}
        together = ESNRegressor(**model, network=SimulatedNetwork(graph)).fit(
            [(X[k], Y[k]) for k in range(3)]
        )
        apart = run_apart(
            graph, lambda network, k: ESNRegressor(**model, network=network).fit(X[k], Y[k])
        )
        for k, own in enumerate(apart):
            np.testing.assert_allclose(own.coefficients_[0], together.coefficients_[k], atol=1e-12)


ONE, TWO = (X[0], Y[0]), (X[1], Y[1])
REFUSED = [
    # what was given, how many agents, the washout, and what is said
    ((X, Y[:4]), 1, 0, "X has 5 sequences and y has 4: give outputs for each of them"),
    ((X, 3.0), 1, 0, "y is 3.0: give a list with the outputs of each of 5 sequences"),
    (
        (X, [Y[0], Y[1][:-1], *Y[2:]]),
        1,
        0,
        "sequence 1: X has 20 samples and y has 19: give one output",
    ),
    (
        (X, Y),
        1,
        25,
        "sequence 1: n_samples=20, which is not more than the washout of 25: give longer sequences",
    ),
    (
        (X, Y),
        6,
        0,
        (
            "5 sequences cannot be dealt to 6 agents, one each at least: give more sequences, "
            "one array"
        ),
    ),
    (
        (X[0], Y[0]),
        4,
        7,
        "n_samples=30, cut into one stretch per agent, leaves 7 samples to some of 4 agents, which",
    ),
    ((X[0], Y[0]), 31, 0, "leaves 0 samples to some of 31 agents"),
    (
        ([x[:, 0] for x in X], Y),
        1,
        0,
        r"sequence 0 of X has one axis.*for one input give x\[:, None\]",
    ),
    (([X[0], X[1][:, 0]], Y[:2]), 1, 0, "sequence 1 of X has one axis"),
    (
        (X[0][:, 0], Y[0]),
        1,
        0,
        r"X has one axis, .* Reshape your data: for one input give x\[:, None\], for one sample",
    ),
    (
        ([(X[0][:, 0], Y[0]), TWO], None),
        2,
        0,
        r"the share of agent 0: X has one axis, .* give x\[:, None\]",
    ),
    (
        ((x for x in X), Y),
        1,
        0,
        "X is of type generator: give an array of time x inputs, or a list of them",
    ),
    ((map(np.asarray, X), Y), 1, 0, r"X is of type map: .*for a generator, list\(X\)"),
    (({"x": X[0]}, Y[0]), 1, 0, "X is of type dict: give an array of time x inputs"),
    (
        ([X[0], None], Y[:2]),
        1,
        0,
        "sequence 1: X is of type NoneType: give an array of time x inputs",
    ),
    ((None, Y[0]), 1, 0, "X is of type NoneType: give an array of time x inputs"),
    (([], []), 1, 0, "X is empty: give an array of time x inputs, or a list of them"),
    (([([], []), TWO], None), 2, 0, "the share of agent 0: X is empty"),
    (
        ([*X[:2], X[2][:, :1]], Y[:3]),
        1,
        0,
        "sequence 2: X has 1 features.* is expecting 2 .*Give all sequences, and",
    ),
    (
        (X, [*Y[:4], np.column_stack([Y[4], Y[4]])]),
        1,
        0,
        r"sequence 4: y has shape \(33, 2\), but earlier sequences had \(samples,\)",
    ),
    (
        (X[0], np.zeros((30, 0))),
        1,
        0,
        r"y must hold numbers, one or one row per time step \(Found array with 0 feature",
    ),
    ((X[0], 3.0), 1, 0, r"y is 3\.0: give one output, or one row of outputs, per time step"),
    (
        (X[0], np.zeros((30, 2, 2))),
        1,
        0,
        r"y must hold numbers, one or one row per time step \(Found array with dim 3",
    ),
    (
        (X[0], ["a"] * 30),
        1,
        0,
        r"y must hold numbers, one or one row per time step \(could not convert",
    ),
    (
        (with_bad(X, 2, (17, 1), np.nan), Y),
        1,
        0,
        "sequence 2: X has NaN or inf .* at 1 of 41 .* the first is time 17",
    ),
    (
        (X, with_bad(Y, 3, 5, np.inf)),
        2,
        0,
        "sequence 3: y has NaN or inf .* the first is time 5: fill in the values",
    ),
    (
        (with_bad(X, 0, 3, -1e120), Y),
        1,
        0,
        r"sequence 0: X has values up to 1\.0e\+120 \(at time 3\), whose squares",
    ),
    (
        (X[0], None),
        1,
        0,
        r"requires y to be passed, but the target y is None: call fit\(X, y\), or fit\(shares\)",
    ),
    (
        ([ONE, TWO], Y),
        2,
        0,
        r"shares bring their own targets, \(X_k, y_k\) each: call fit\(shares\) without y",
    ),
    (([ONE, TWO], None), 3, 0, "2 shares were given, but this process hosts 3 agents"),
    (([ONE, (X[1][:, :1], Y[1])], None), 2, 0, "the share of agent 1: X has 1 features"),
    (([ONE, (X[1:3], Y[1:2])], None), 2, 0, "the share of agent 1: X has 2 sequences and y has 1"),
    (
        ([ONE, (X[1:3], [Y[1], Y[2][1:]])], None),
        2,
        0,
        "the share of agent 1, sequence 1: X has 41 samples and y has",
    ),
    (
        ([ONE, (X[1:3], Y[1:3])], None),
        2,
        22,
        "the share of agent 1, sequence 0: n_samples=20, which is not more than",
    ),
    (
        ([ONE, (with_bad(X, 1, 4, np.nan), Y)], None),
        2,
        0,
        "the share of agent 1, sequence 1: X has NaN.* is time 4",
    ),
    (
        ([(X[0], Y[0][:, None]), TWO], None),
        2,
        0,
        r"the share of agent 1: y has shape \(20,\), but earlier sequences had \(samples, 1\)",
    ),
]


@pytest.mark.parametrize(
    ("what", "agents", "washout", "sentence"), REFUSED, ids=range(len(REFUSED))
)
def test_refused_with_a_sentence_before_any_message(what, agents, washout, sentence):
    network = SimulatedNetwork(graphs.complete(agents))
    model = ESNRegressor(5, washout=washout, network=network, random_state=0)
    with pytest.raises(DataError, match=sentence):
        model.fit(*what)
    assert network.ledger.rounds == 0
    assert not hasattr(model, "n_features_in_")


def test_rows_that_are_sparse():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        ESNRegressor().fit(sparse.csr_array(X[0]), Y[0])


class TestChunks:
    def chunk(self, X, y=None, agents=2, axes=None):
        model = ESNRegressor()
        if axes is not None:
            model.n_features_in_ = 2
        return chunk_of(model, SimulatedNetwork(graphs.complete(agents)), X, y, axes)

    def test_one_sample_many_or_none(self):
        found = self.chunk([(X[0][:1], Y[0][:1]), (X[1][:0], Y[1][:0])], axes=())
        assert [len(x) for x in found.inputs] == [1, 0]
        assert [y.shape for y in found.targets] == [(1, 1), (0, 1)]
        assert np.array_equal(self.chunk(X[0], Y[0], agents=1).inputs[0], X[0])

    @pytest.mark.parametrize(
        ("given", "axes", "sentence"),
        [
            (
                ([(X[:2], Y[:2]), TWO],),
                None,
                "partial_fit takes the next samples of one running sequence per agent",
            ),
            (
                ([ONE, TWO],),
                (2,),
                (
                    r"the share of agent 0: y has shape \(30,\), but earlier sequences had "
                    r"\(samples, 2\)"
                ),
            ),
            (
                ([ONE, ([], [])],),
                (),
                r"the share of agent 1: X is empty: .* no samples a table of 0 rows, x\[:0\]",
            ),
            (([ONE, (X[1], Y[1][:3])],), (), "the share of agent 1: X has 20 samples and y has 3"),
            (([(X[0][:, :1], Y[0]), TWO],), (), "the share of agent 0: X has 1 features"),
            (
                ([ONE, (X[1], with_bad(Y, 1, 2, np.nan)[1])],),
                (),
                "the share of agent 1: y has NaN .* is time 2",
            ),
        ],
    )
    def test_refused(self, given, axes, sentence):
        with pytest.raises(DataError, match=sentence):
            self.chunk(*given, axes=axes)

    def test_one_table_cannot_be_dealt_in_time(self):
        with pytest.raises(
            InputError,
            match=r"each of 2 agents has a running sequence of its own.*partial_fit\(shares",
        ):
            self.chunk(X[0], Y[0])


def test_some_agents_of_a_larger_network_give_shares():
    class Some(SimulatedNetwork):
        hosted = (0, 1)

    for call in ("fit", "partial_fit"):
        model = ESNRegressor(network=Some(graphs.ring(4)), random_state=0)
        with pytest.raises(
            InputError, match=rf"this process hosts 2 of 4 agents: call {call}\(shares\) with one"
        ):
            getattr(model, call)(X[0], Y[0])
