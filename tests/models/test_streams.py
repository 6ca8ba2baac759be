"""`partial_fit`: chunks of any form and size, what is reported, and bad chunks, which change
nothing.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from peerlearn import Averaging, RVFLClassifier, RVFLRegressor, SimulatedNetwork, graphs
from peerlearn.algorithms.streaming import DiffusionLMS, DiffusionRLS, StreamConsensus, StreamExact
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import DataError, InputError, PeerlearnError
from tests.support.readout_problems import closed_form
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 4))
NEW = RNG.standard_normal((30, 4))
THIRDS = np.digitize(X[:, 0], [-0.4, 0.4])
LABELS = {
    "two": np.where(X[:, 0] > 0, 7, -7),
    "three": THIRDS,
    "real": THIRDS.astype(float),
    "truths": X[:, 0] > 0,
    "text": np.array(["low", "mid", "höher"])[THIRDS],
    "objects": np.array(["low", "mid", "höher"], dtype=object)[THIRDS],
}
CUTS = [
    0,
    1,
    1,
    2,
    9,
    9,
    30,
    31,
    80,
    120,
]  # of the rows above: chunks of one row and of none among them
PARTS = [slice(*ends) for ends in pairwise(CUTS)]


def model(kind=RVFLClassifier, agents=4, **options):
    network = SimulatedNetwork(graphs.ring(agents)) if agents else None
    fixed = {"n_hidden": 12, "activation": "sigmoid", "alpha": 1.0, "random_state": 0}
    return kind(**{**fixed, "network": network, **options})


def streamed(learner, y, parts=PARTS, **first):
    for part in parts:
        learner.partial_fit(X[part], y[part], **first)
        first = {}
    return learner


def turns(part, agents=4):
    """Which rows of a part of the stream each agent takes."""
    numbers = np.arange(len(X))[part]
    return [numbers[numbers % agents == k] for k in range(agents)]


class TestForms:
    @pytest.mark.parametrize("stream", list(learners()))
    def test_rows_are_dealt_in_turns_across_chunks(self, stream):
        tables, shares = model(stream=stream), model(stream=stream)
        for part in PARTS:
            tables.partial_fit(X[part], THIRDS[part], classes=[0, 1, 2])
            shares.partial_fit([(X[own], THIRDS[own]) for own in turns(part)], classes=[0, 1, 2])
            np.testing.assert_array_equal(tables.coefficients_, shares.coefficients_)

    def test_single_rows_go_round(self):
        alone = model(
            RVFLRegressor, stream=StreamConsensus(every=1000)
        )  # nobody speaks: each learns from its own rows
        for row in range(40):
            alone.partial_fit(X[row : row + 1], X[row : row + 1, 0])
        for k in range(4):
            H = alone.features_(X[k:40:4])
            np.testing.assert_allclose(
                alone.coefficients_[k], closed_form(H, X[k:40:4, :1], 1.0), atol=1e-10
            )

    def test_a_process_with_one_agent_gives_its_own_rows(self):
        graph = graphs.ring(4)
        together = model(network=SimulatedNetwork(graph, exact_order=True))
        for part in PARTS:
            together.partial_fit([(X[own], THIRDS[own]) for own in turns(part)], classes=[0, 1, 2])

        def alone(network, k):
            own = model(network=network)
            for part in PARTS:
                rows = turns(part)[k]
                own.partial_fit(X[rows], THIRDS[rows], classes=[0, 1, 2])
            return own

        for k, own in enumerate(run_apart(graph, alone, exact_order=True)):
            np.testing.assert_array_equal(own.coefficients_[0], together.coefficients_[k])
            assert own._stream.rows == len(X[k::4])
            assert own.report_.iterations == len(PARTS)

    def test_without_a_network_it_is_the_centralised_ridge(self):
        for stream in ("consensus", "exact", "rls"):
            alone = streamed(
                model(agents=0, alpha=2.0, stream=stream), LABELS["two"], classes=[-7, 7]
            )
            intercept = stream == "exact"
            fitted = model(agents=0, alpha=2.0, fit_intercept=intercept).fit(X, LABELS["two"])
            np.testing.assert_allclose(alone.coefficients_, fitted.coefficients_, atol=1e-10)

    def test_a_network_that_sums_learns_what_one_place_would(self, graph):
        together = model(network=SimulatedNetwork(graph), stream="exact")
        streamed(together, THIRDS, classes=[0, 1, 2])
        fitted = model(agents=0).fit(X, THIRDS)
        np.testing.assert_allclose(
            together.coefficients_, np.tile(fitted.coefficients_, (len(graph), 1, 1)), atol=1e-8
        )

    @pytest.mark.parametrize("y", list(LABELS))
    def test_labels_of_any_kind(self, y):
        classes = np.unique(LABELS[y])[::-1]
        learner = streamed(model(stream="exact", alpha=0.1), LABELS[y], classes=classes)
        assert learner.classes_.tolist() == sorted(set(LABELS[y].tolist()))
        assert learner.coefficients_.shape[2] == (1 if len(classes) == 2 else 3)
        assert set(learner.predict(X)) <= set(classes)
        assert learner.score(X, LABELS[y].astype(learner.classes_.dtype)) > 0.7

    @pytest.mark.parametrize("outputs", [(), (1,), (3,)])
    def test_regressors_with_one_and_several_outputs(self, outputs):
        y = np.sin(X @ np.ones((4, *outputs)))
        learner = streamed(model(RVFLRegressor, stream="exact"), y)
        assert learner.predict(NEW).shape == (30, *outputs)
        np.testing.assert_allclose(
            learner.predict(NEW), model(RVFLRegressor, agents=0).fit(X, y).predict(NEW)
        )

    def test_pandas_in(self):
        frame, labels = pd.DataFrame(X, columns=list("abcd")), pd.Series(LABELS["text"])
        learner = model(stream="exact")
        for part in PARTS:
            learner.partial_fit(frame[part], labels[part], classes=["low", "mid", "höher"])
        assert list(learner.feature_names_in_) == list("abcd")
        bare = streamed(model(stream="exact"), LABELS["text"], classes=["low", "mid", "höher"])
        np.testing.assert_array_equal(learner.coefficients_, bare.coefficients_)
        with pytest.raises(DataError, match="feature names should match"):
            learner.partial_fit(frame[list("dcba")], labels)

    def test_a_clone_begins_anew(self):
        learner = streamed(model(), THIRDS, classes=[0, 1, 2])
        again = clone(learner)
        assert not hasattr(again, "coefficients_")
        streamed(again, THIRDS, classes=[0, 1, 2])
        np.testing.assert_array_equal(again.coefficients_, learner.coefficients_)

    def test_coefficients_handed_out_do_not_change(self):
        for stream in learners():
            learner = model(stream=stream).partial_fit(X[:50], THIRDS[:50], classes=[0, 1, 2])
            first = learner.coefficients_
            before = first.copy()
            learner.partial_fit(X[50:], THIRDS[50:])
            np.testing.assert_array_equal(first, before)


class TestReport:
    def test_holds_all_that_the_stream_sent(self):
        for stream in learners():
            learner = model(stream=stream)
            for n, part in enumerate(PARTS, start=1):
                learner.partial_fit(X[part], THIRDS[part], classes=[0, 1, 2])
                assert learner.report_.sent == learner.network.ledger.mark()
                assert learner.report_.iterations == n
            assert learner.report_.solver == type(learner._stream.learner).__name__
            assert learner.report_.converged
            assert "a stream of 120 rows so far" in str(learner.report_)

    @pytest.mark.parametrize("every", [1, 3])
    def test_says_how_often_agents_kept_silent(self, every):
        learner = streamed(
            model(stream=DiffusionRLS(threshold=0.3, every=every)), THIRDS, classes=[0, 1, 2]
        )
        silences, times = int(learner._stream.state["silences"].sum()), 4 * (len(PARTS) // every)
        assert 0 < silences < times
        assert learner.report_.note.endswith(f"; agents kept silent {silences} of {times} times")

    def test_says_where_averages_are_cut_off(self):
        learner = model(
            agents=8, stream=StreamConsensus(averaging=Averaging("plain", 1e-6, max_rounds=2))
        )
        with pytest.warns(UserWarning, match="2 rounds are allowed, but"):
            learner.partial_fit(X, THIRDS, classes=[0, 1, 2])
        assert not learner.report_.converged


class TestFitAndPartialFit:
    def test_a_stream_after_fit_begins_anew_and_says_so(self):
        learner = model().fit(X, THIRDS)
        with pytest.warns(
            UserWarning, match=r"partial_fit begins a stream of its own: .* as the first chunk"
        ) as said:
            learner.partial_fit(X[:50], THIRDS[:50])
        assert said[0].filename == __file__
        fresh = model().partial_fit(X[:50], THIRDS[:50], classes=[0, 1, 2])
        np.testing.assert_array_equal(learner.coefficients_, fresh.coefficients_)

    def test_fit_ends_a_stream(self):
        learner = streamed(model(), THIRDS, classes=[0, 1, 2]).fit(X, LABELS["two"])
        assert learner.classes_.tolist() == [-7, 7]
        np.testing.assert_array_equal(
            learner.coefficients_, model().fit(X, LABELS["two"]).coefficients_
        )
        with pytest.warns(UserWarning, match="begins a stream of its own"):
            learner.partial_fit(X, LABELS["two"])
        assert learner.report_.iterations == 1

    def test_a_fit_that_fails_leaves_the_stream(self):
        learner, other = (
            model().partial_fit(X[:50], THIRDS[:50], classes=[0, 1, 2]) for _ in range(2)
        )
        with pytest.raises(DataError):
            learner.fit(X * np.nan, THIRDS)
        for each in (learner, other):
            each.partial_fit(X[50:], THIRDS[50:])
        np.testing.assert_array_equal(learner.coefficients_, other.coefficients_)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("alpha", 2.0),
            ("stream", "exact"),
            ("n_hidden", 13),
            ("random_state", 1),
            ("network", None),
        ],
    )
    def test_parameters_may_not_change_under_way(self, name, value):
        learner = model().partial_fit(X, THIRDS, classes=[0, 1, 2])
        before = learner.get_params()[name]
        learner.set_params(**{name: value})
        with pytest.raises(
            InputError,
            match=rf"{name} was changed from .* while a stream is under way: set it back",
        ):
            learner.partial_fit(X, THIRDS)
        learner.set_params(**{name: before, "solver": "cg"}).partial_fit(
            X, THIRDS
        )  # a solver is for fit alone
        assert learner.report_.iterations == 2

    def test_classes_are_given_with_the_first_chunk(self):
        with pytest.raises(
            ValueError, match="classes must be passed on the first call to partial_fit"
        ):
            model().partial_fit(X, THIRDS)
        learner = model().partial_fit(X[:1], THIRDS[:1], classes=[2, 0, 1])
        learner.partial_fit(X, THIRDS, classes=[0, 1, 2])
        with pytest.raises(ValueError, match="classes"):  # as in scikit-learn
            learner.partial_fit(X, THIRDS, classes=[0, 1, 2, 3])

    def test_classes_that_are_none(self):
        with pytest.raises(
            DataError, match=r"classes has only \[1\]: a classifier needs two or more"
        ):
            model().partial_fit(X, THIRDS, classes=[1, 1])
        with pytest.raises(
            DataError, match=r"not all numbers or all texts: give labels of one kind"
        ):
            model().partial_fit(X, THIRDS, classes=np.array(["a", 1.5, None], dtype=object))

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (
                {"alpha": 0.0},
                (
                    "a stream needs alpha above 0: its first rows alone do not determine the "
                    "coefficients"
                ),
            ),
            ({"alpha": -1.0}, "alpha"),
            ({"stream": "consensu"}, "stream 'consensu' is not known, did you mean 'consensus'"),
        ],
    )
    def test_settings(self, options, sentence):
        learner = model(**options)
        with pytest.raises(InputError, match=sentence):
            learner.partial_fit(X, THIRDS, classes=[0, 1, 2])
        with pytest.raises(NotFittedError):
            check_is_fitted(learner)


ROW = np.arange(120)
BAD = {
    "a new class": (
        X,
        np.where(ROW == 5, 3, THIRDS),
        "row 5 has the label 3, which is not among the classes that",
    ),
    "labels of another type": (
        X,
        LABELS["text"],
        "y has labels like 'mid', but the stream began with classes like 0",
    ),
    "another number of columns": (
        X[:, :3],
        THIRDS,
        "X has 3 features, but RVFLClassifier is expecting 4 features",
    ),
    "no number": (
        np.where(X[7, 1] == X, np.inf, X),
        THIRDS,
        r"X has NaN or inf .* in 1 of 120 rows, .* is row 7",
    ),
    "no label": (
        X,
        np.where(ROW == 9, np.nan, THIRDS),
        r"y has NaN, .* missing values .* first is row 9: remove",
    ),
    "y of another shape": (X, np.eye(3)[THIRDS], "should be a 1d array"),
    "y of another length": (X, THIRDS[:-1], "inconsistent numbers of samples"),
    "y left out": (X, None, "requires y to be passed"),
    "shares for fewer agents": (
        [(X, THIRDS)] * 3,
        None,
        "3 shares were given, but this process hosts 4 agents",
    ),
    "a bad share": (
        [(X, THIRDS)] * 3 + [(X, THIRDS + 1)],
        None,
        r"the chunk of agent 3: row \d+ has the label 3",
    ),
}
REGRESSION = {
    "outputs in a column": (X, X[:, :1], r"y has shape \(120, 1\), but the stream began with"),
    "more outputs": (
        X,
        X[:, :2],
        r"y has shape \(120, 2\), but the stream began with 1 outputs per row: give every",
    ),
    "texts": (X, LABELS["text"], "y must hold numbers"),
    "no number": (X, np.full(120, np.inf), "y has NaN, inf"),
    "a bad share": (
        [(X, X[:, 0])] * 3 + [(X, X[:, :2])],
        None,
        r"the chunk of agent 3: y has shape \(120, 2\)",
    ),
}
GOOD = {RVFLClassifier: (X[40:77], THIRDS[40:77]), RVFLRegressor: (X[40:77], X[40:77, 1])}
OTHERS = [StreamConsensus(threshold=0.1, forgetting=0.9), StreamExact(averaging="plain")]
STREAMS = [*(make() for make in learners().values()), *OTHERS]


def everything(learner):
    """All that a stream has come to, copied."""
    kept = {
        name: value
        for name, value in vars(learner).items()
        if name not in ("coefficients_", "_stream")
    }
    stream = learner._stream
    arrays = {**stream.state, "coefficients_": learner.coefficients_}
    return {name: array.copy() for name, array in arrays.items()}, (
        kept,
        stream.chunks,
        stream.rows,
        stream.sent,
    )


class TestBadChunks:
    """Each gets its sentence, and the stream goes on as if it had not come."""

    def refused(self, learner, twin, X, y, error, sentence):
        arrays, others = everything(learner)
        with pytest.raises(error, match=sentence):
            learner.partial_fit(X, y)
        now, others_now = everything(learner)
        assert others_now == others
        assert now.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(now[name], array, err_msg=name)
        for each in (learner, twin):
            each.partial_fit(*GOOD[type(each)])
        np.testing.assert_array_equal(learner.coefficients_, twin.coefficients_)
        assert learner.report_ == twin.report_

    @pytest.mark.parametrize("stream", STREAMS, ids=str)
    @pytest.mark.parametrize("what", list(BAD))
    def test_of_a_classifier(self, what, stream):
        pair = [
            model(stream=stream).partial_fit(X[:33], THIRDS[:33], classes=[0, 1, 2])
            for _ in range(2)
        ]
        self.refused(*pair, *BAD[what][:2], ValueError, BAD[what][2])
        assert pair[0].network.ledger.mark() == pair[1].network.ledger.mark()

    @pytest.mark.parametrize("what", list(REGRESSION))
    def test_of_a_regressor(self, what):
        pair = [model(RVFLRegressor).partial_fit(X[:33], X[:33, 0]) for _ in range(2)]
        self.refused(*pair, *REGRESSION[what][:2], DataError, REGRESSION[what][2])

    @pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
    @pytest.mark.parametrize(("scale", "rows"), [(1e200, 1), (1e200, 60), (1e12, 60)])
    @pytest.mark.parametrize(
        "stream", [stream for stream in STREAMS if stream != DiffusionLMS()], ids=str
    )
    def test_numbers_that_are_too_large(self, stream, scale, rows):
        """Their squares overflow, or leave nothing of the penalty: a learner finds out while it
        learns.
        """
        options = {"stream": stream, "activation": "relu"}
        pair = [model(RVFLRegressor, **options).partial_fit(X[:33], X[:33, 0]) for _ in range(2)]
        same = np.zeros(rows, dtype=int)
        self.refused(
            *pair, scale * X[same], X[same, 0], PeerlearnError, "scale the inputs|raise alpha"
        )

    @pytest.mark.parametrize("what", [what for what in BAD if what != "another number of columns"])
    def test_a_bad_first_chunk_leaves_a_model_unfitted(self, what):
        learner = model()
        before = dict(vars(learner))
        with pytest.raises(ValueError, match=BAD[what][2]):
            learner.partial_fit(*BAD[what][:2], classes=[0, 1, 2])
        assert vars(learner) == before
        assert learner.network.ledger.rounds == 0
        learner.partial_fit(X, THIRDS, classes=[0, 1, 2])


class TestAgentsThatDoNotFitTogether:
    GRAPH = graphs.erdos_renyi(6, 0.4, seed=2)

    def sentences(self, **options):
        def caught(network, k):
            given = {name: values[k == 3] for name, values in options.items()}
            classes = given.pop("classes", [0, 1, 2])
            with pytest.raises(PeerlearnError) as error:
                model(network=network, **given).partial_fit(
                    X[k:9], np.zeros(9 - k), classes=classes
                )
            return str(error.value)

        return set(run_apart(self.GRAPH, caught))

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("stream", ("consensus", "exact")),
            ("stream", (StreamConsensus(), StreamConsensus(every=2))),
            ("stream", (DiffusionLMS(), DiffusionLMS(0.4))),
            ("classes", ([0, 1, 2], [0, 1, 3])),
            ("classes", ([0, 1, 2], [0.0, 1.0, 2.0])),
            ("alpha", (1.0, 2.0)),
        ],
    )
    def test_all_say_the_same(self, name, values):
        said = self.sentences(**{name: values})
        assert len(said) == 1
        assert f"agents disagree on {name}" in said.pop()
