"""What filters refuse, with a sentence: signals and settings."""

from __future__ import annotations

import re

import numpy as np
import pytest

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, decibels, graphs
from peerlearn.errors import DataError, InputError, WireError
from tests.support.filters_by_hand import wave
from tests.support.split_network import run_apart

GRAPH = graphs.erdos_renyi(6, 0.5, seed=2)
NETWORK = SimulatedNetwork(GRAPH)
X, D = wave(6, 40)


def with_value(signal, k, n, value):
    changed = signal.copy()
    changed[k, n] = value
    return changed


class TestSignals:
    @pytest.mark.parametrize(
        ("x", "d", "says"),
        [
            (with_value(X, 3, 17, np.nan), D, "x of agent 3 is nan at sample 17"),
            (X, with_value(D, 5, 0, np.inf), "d of agent 5 is inf at sample 0"),
            (X, with_value(D, 1, 39, -1e200), r"d of agent 1 is -1e\+200 at sample 39"),
            (X[:5], D, r"x has shape \(5, 40\), but this process hosts 6 agents"),
            (X, D[:, :30], "d has 30 samples, but x has 40"),
            (X[0], D[0], r"x has shape \(40,\), but this process hosts 6 agents"),
            (X[:, :, None], D, r"x has shape \(6, 40, 1\)"),
            (X[:, :0], D[:, :0], "x has no samples"),
            (X + 1j, D, "x is no array of real numbers"),
            ([["a"] * 40] * 6, D, "x is no array of real numbers"),
            (X.astype(str).astype(object), D, "x is no array of real numbers"),
            (np.full((6, 40), 10**400), D, "x is no array of real numbers"),
            ([[1.0, 2.0], [1.0]], D, "x is no array of real numbers"),
            (None, D, "x has shape"),
        ],
    )
    @pytest.mark.parametrize("kind", [SplineFilter, LMSFilter])
    def test_bad(self, kind, x, d, says):
        mark = NETWORK.ledger.mark()
        with pytest.raises(DataError, match=says):
            kind(network=NETWORK).run(x, d)
        assert NETWORK.ledger.since(mark).rounds == 0

    def test_bad_in_live_use_leaves_the_filter_as_it_was(self):
        model = SplineFilter(network=NETWORK)
        model.run(X[:, :30], D[:, :30])
        before = model.coefficients_
        ragged = [[1.0, 2.0], *[[1.0]] * 5]
        for x, d in (
            (X[:, 30:] * np.nan, D[:, 30:]),
            (X[:3, 30], D[:3, 30]),
            (0.5, 0.5),
            (ragged, ragged),
        ):
            with pytest.raises(
                DataError, match=r"of agent 0 is nan|one number each|x is no array of real numbers"
            ):
                model.step(x, d)
        with pytest.raises(DataError, match="x is no array of real numbers"):
            model.predict(ragged)
        assert np.array_equal(model.coefficients_, before)
        model.step(X[:, 30:], D[:, 30:])

    @pytest.mark.parametrize("kind", [SplineFilter, LMSFilter])
    def test_no_sample_now(self, kind):
        model = kind(network=NETWORK)
        for empty in ([], np.zeros((6, 0))):
            assert model.step(empty, empty).shape == np.shape(empty)
        model.step(X, D)
        before, sent = model.coefficients_, model.report_.sent
        assert model.step(X[:, :0], D[:, :0]).shape == (6, 0)
        assert np.array_equal(model.coefficients_, before)
        assert (model.report_.sent, model.report_.iterations) == (sent, 40)
        assert kind().step([], []).shape == (0,)
        with pytest.raises(DataError, match="d has 1 samples, but x has 0"):
            model.step([], D[:, 0])

    def test_whole_numbers_and_lists_are_signals(self):
        model = LMSFilter()
        assert model.run([1, 2, 3], [True, False, True]).outputs.shape == (1, 3)
        model.step(1, 2)
        assert model.report_.iterations == 4

    def test_agents_with_unlike_signals_or_settings(self):
        def samples(network, k):
            SplineFilter(network=network).run(X[k, : 40 - k], D[k, : 40 - k])

        def orders(network, k):
            SplineFilter(3 + (k == 4), network=network).step(X[k, 0], D[k, 0])

        for work, says in (
            (samples, "the number of samples, from 35 to 40"),
            (orders, "order, from 3 to 4"),
        ):
            with pytest.raises(InputError, match=f"agents disagree on {says}"):
                run_apart(GRAPH, work)

    @pytest.mark.parametrize(
        ("truth", "says"),
        [
            (np.ones(5), r"must be \(w0, f0\)"),
            (([1.0, 2.0], np.tanh), "must be 5 numbers"),
            (("a", np.tanh), "must be 5 numbers"),
            ((np.zeros(5), np.tanh), "not all 0"),
            ((np.ones(5), "f0"), "must be 23 true control points"),
            ((np.ones(5), np.ones(21)), "must be 23 true control points"),
            ((np.ones(5), lambda s: 1.0), "one finite number at each of the 21"),
            ((np.ones(5), lambda s: s / 0.0 * 0.0), "one finite number at each"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_bad_truth(self, truth, says):
        with pytest.raises(DataError, match=says):
            SplineFilter(network=NETWORK).run(X, D, truth)

    def test_a_linear_filter_has_no_true_nonlinearity(self):
        with pytest.raises(DataError, match="must be 5 numbers"):
            LMSFilter(network=NETWORK).run(X, D, (np.ones(5), np.tanh))

    def test_bad_curves(self):
        run = LMSFilter().run(X[0], D[0])
        for clean in (D[:2], D[0, :20], 0.0):
            with pytest.raises(
                DataError, match=rf"clean has shape {re.escape(str(np.shape(clean)))}"
            ):
                run.excess(clean)
        assert np.array_equal(run.excess(D[0]), run.mse)
        with pytest.raises(DataError, match="clean is no array of real numbers"):
            run.excess([D[0], D[0, :20]])
        for window in (0, 41, 1.5):
            with pytest.raises(InputError, match="window of"):
                decibels(run.mse, window)
        for powers in ([[1.0, 2.0], [1.0]], ["1", "2"], np.array(["1"], dtype=object)):
            with pytest.raises(InputError, match=r"powers are .*give an array of numbers"):
                decibels(powers)


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"order": 0}, "order is 0"),
            ({"order": 2.5}, "order is 2.5"),
            ({"order": True}, "order is True"),
            ({"update": "kalman"}, "update is 'kalman': give one of 'lms', 'nlms', 'rls'"),
            ({"cooperation": "sometimes"}, "cooperation is 'sometimes'"),
            ({"every": 0}, "every is 0"),
            ({"every": 1.5}, "every is 1.5: agents combine after every 1, 2, 3, .. samples"),
            ({"every": True}, "every is True"),
            ({"every": 10**30}, "every is 10{30}: .*give a whole number up to"),
            ({"threshold": True}, "threshold is True"),
            ({"threshold": -0.1}, "threshold is -0.1"),
            ({"threshold": "much"}, "threshold is 'much'"),
            ({"forgetting": 0.0}, "forgetting is 0.0"),
            ({"forgetting": 1.1}, "forgetting is 1.1"),
            ({"forgetting": True}, "forgetting is True"),
            (
                {"update": "lms", "forgetting": 0.9},
                "update='lms' has no forgetting: leave it 1, or give update='rls'",
            ),
            ({"update": "nlms", "forgetting": 0.9}, "update='nlms' has no forgetting"),
            ({"order": 10_000, "update": "rls"}, "more than the 2,000 coefficients"),
            ({"update": "lms", "step_size": -0.1}, "the step_size of agent 0 is -0.1"),
            ({"update": "lms", "step_size": np.nan}, "the step_size of agent 0 is nan"),
            (
                {"update": "lms", "step_size": [0.1, 0.1, -1.0, 0.1, 0.1, 0.1]},
                "the step_size of agent 2 is -1",
            ),
            ({"update": "lms", "step_size": [0.1, 0.2]}, "one for each of the 6 agents"),
            ({"update": "lms", "step_size": "small"}, "step_size is 'small'"),
            ({"update": "lms", "step_size": ["0.1"] * 6}, "step_size is .'0.1'"),
            (
                {"update": "nlms", "step_size": 2.0},
                "the step_size of agent 0 is 2: filters diverge with 2 or more",
            ),
            ({"update": "rls", "step_size": 0.1}, "update='rls' has no step_size"),
            ({"bias": 1}, "bias is 1: give True or False"),
            ({"robust": None}, "robust is None: give True or False"),
            ({"network": "ring"}, "network must be a peerlearn Network"),
        ],
    )
    @pytest.mark.parametrize("kind", [SplineFilter, LMSFilter])
    def test_bad(self, kind, settings, says):
        for listen in ("run", "step"):
            with pytest.raises(InputError, match=says):
                getattr(kind(**{"network": NETWORK, **settings}), listen)(X, D)

    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"knots": 2.1}, "knots=2.1 must be a whole number of times"),
            ({"spacing": -1}, "spacing is -1"),
            ({"scale": "auto"}, "scale is 'auto': give True or False"),
            ({"basis": "bezier"}, "basis is 'bezier'"),
            ({"exchange": "half"}, "exchange is 'half'"),
            ({"exchange": "span"}, "recursive least squares changes all control points"),
            ({"exchange": "span", "update": "lms", "threshold": 0.1}, "give exchange='full'"),
            ({"update": "lms", "spline_step_size": -1.0}, "the spline_step_size of agent 0 is -1"),
            ({"spline_step_size": 0.1}, "update='rls' has no spline_step_size"),
            (
                {"update": "lms", "spline_step_size": [0.1, 3.2, 0.1, 0.1, 0.1, 0.1]},
                "agent 1 is 3.2: .* 3.12 or more",
            ),
            (
                {"update": "lms", "spline_step_size": 4.4, "basis": "bspline"},
                "agent 0 is 4.4: .* 4.35 or more",
            ),
        ],
    )
    def test_bad_spline(self, settings, says):
        mark = NETWORK.ledger.mark()
        with pytest.raises(InputError, match=says):
            SplineFilter(network=NETWORK, **settings).run(X, D)
        assert NETWORK.ledger.since(mark).rounds == 0

    def test_settings_changed_while_it_listens(self):
        model = SplineFilter(update="lms", network=NETWORK)
        model.step(X[:, 0], D[:, 0])
        model.set_params(step_size=0.001).step(X[:, 1], D[:, 1])
        with pytest.raises(
            InputError, match="every was changed from 1 to 2 while the filter learns"
        ):
            model.set_params(every=2).step(X[:, 2], D[:, 2])
        with pytest.raises(InputError, match="network was changed"):
            model.set_params(every=1, network=SimulatedNetwork(GRAPH)).step(X[:, 2], D[:, 2])
        model.run(X, D)  # begins anew

    def test_what_a_neighbor_should_not_send(self):
        class Strange(SimulatedNetwork):
            said: list

            def exchange(self, outbox, to=None):
                return [{0: self.said[to is not None]} for _ in outbox]

        model = SplineFilter(
            update="lms",
            exchange="span",
            scale=False,
            network=Strange(GRAPH, exact_order=True),
        )
        fine = {"span": np.array([3])}
        for said, says in (
            ([{"span": np.array([20])}, {}], "expected a span from 0 to 19"),
            ([{"span": np.array([-1])}, {}], "expected a span"),
            ([{"span": np.array([0.5])}, {}], "expected a span"),
            ([{}, {}], "expected a span"),
            ([fine, {"q": np.ones(3)}], "expected 4 control points"),
            ([fine, {}], "expected 4 control points"),
        ):
            model.network.said = said
            with pytest.raises(WireError, match=f"agent 0 sent an unexpected message .{says}"):
                model.run(X, D)
