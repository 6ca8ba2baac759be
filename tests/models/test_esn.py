"""ESNRegressor: states and readouts against formulas written out here, closed loops, forecasts, and
what is refused.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso as ScikitLasso
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

from peerlearn import ADMM, ConjugateGradient, ESNRegressor, Gram, SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.local.readouts import outputs
from tests.support.readout_problems import closed_form, distance

RNG = np.random.default_rng(0)
RING = graphs.ring(4)
X = [RNG.uniform(-1, 1, (n, 2)) for n in (40, 90, 61, 33, 57)]
Y = [np.column_stack([np.roll(x[:, 0], 1) * x[:, 1], x.sum(axis=1)]) for x in X]
FEEDBACK = {"feedback_scaling": 0.5, "teacher_scaling": 0.3, "leak": 0.6}


def net(graph=RING, **options):
    return SimulatedNetwork(graph, **options)


def states(model, x, d=None, w=0):
    """Rows [1, x[n], h[n]], one time step after another, as the formula has it."""
    r, s = model.reservoir_, model.teacher_scaling
    h, y, rows = np.zeros(len(r.W)), np.zeros(r.W_fb.shape[1]), []
    for n in range(len(x)):
        z = r.W_in @ np.concatenate([[1], x[n]]) + r.W @ h + r.W_fb @ y
        h = (1 - model.leak) * h + model.leak * np.tanh(z)
        rows.append(np.concatenate([[1], x[n], h]))
        if d is not None:
            y = s * np.atleast_1d(d[n])
    return np.array(rows)[w:]


def all_states(model, X, Y):
    w = model.washout
    H = np.vstack([states(model, x, d, w) for x, d in zip(X, Y, strict=True)])
    return H, model.teacher_scaling * np.concatenate([d.reshape(len(d), -1)[w:] for d in Y])


class TestReadouts:
    @pytest.mark.parametrize(
        "settings", [{}, FEEDBACK, {"leak": 0.3, "washout": 7, "density": 0.1}], ids=str
    )
    def test_centralised_is_the_ridge_of_all_states(self, settings):
        model = ESNRegressor(30, alpha=0.01, random_state=0, **{"washout": 3, **settings}).fit(X, Y)
        H, D = all_states(model, X, Y)
        assert H.shape == (sum(map(len, X)) - 5 * model.washout, 33)
        assert distance(model.coefficients_, closed_form(H, D, 0.01, free=1)) < 1e-9
        assert model.report_.sent.messages == 0

    @pytest.mark.parametrize(
        "solver", [ADMM(tolerance=1e-7), Gram(), ConjugateGradient(1e-7), "auto"], ids=str
    )
    @pytest.mark.parametrize("units", [12, 60], ids=["many rows", "fewer rows than units"])
    def test_every_solver_reaches_the_centralised_readout(self, graph, solver, units):
        rng = np.random.default_rng(1)
        agents = graph.number_of_nodes()
        x = [
            rng.uniform(-1, 1, (rng.integers(15, 50), 1)) + 0.05 * k for k in range(agents)
        ]  # unlike agents
        d = [np.sin(3 * np.roll(one[:, 0], 1)) for one in x]
        settings = {"n_reservoir": units, "alpha": 1.0, "washout": 5, "random_state": 0}
        central = ESNRegressor(**settings).fit(x, d)
        model = ESNRegressor(**settings, solver=solver, network=net(graph)).fit(
            [*zip(x, d, strict=True)]
        )
        assert distance(model.coefficients_, central.coefficients_[0]) < 1e-6
        assert model.report_.converged
        H, D = all_states(central, x, d)
        assert distance(central.coefficients_, closed_form(H, D, 1.0, free=1)) < 1e-9

    def test_dealt_sequences_are_learned_as_if_in_one_place(self):
        central = ESNRegressor(20, random_state=0, **FEEDBACK).fit(X, Y)
        model = ESNRegressor(20, random_state=0, network=net(), solver="gram", **FEEDBACK).fit(X, Y)
        assert model.coefficients_.shape == (4, 23, 2)
        assert distance(model.coefficients_, central.coefficients_[0]) < 1e-8

    def test_alone_is_worse_than_together(self):
        together, alone = (
            ESNRegressor(20, network=net(), solver=solver, random_state=0).fit(X, Y)
            for solver in ("auto", "local")
        )
        assert alone.report_.sent.megabytes < together.report_.sent.megabytes
        assert np.ptp(alone.agent_nrmse(X, Y)) > 0
        assert alone.agent_nrmse(X, Y).mean() > 1.1 * together.agent_nrmse(X, Y).mean()

    def test_noise_is_each_sequences_own_and_only_in_training(self):
        def fit(shares, network=None, noise=1e-2):
            return ESNRegressor(
                20, noise=noise, solver="gram", network=network, random_state=0
            ).fit(shares)

        shares = [(X[0], Y[0]), (X[1:3], Y[1:3]), (X[3], Y[3]), (X[4], Y[4])]
        model = fit(shares, net())
        rows = []
        for (k, j), x, d in zip([(0, 0), (1, 0), (1, 1), (2, 0), (3, 0)], X, Y, strict=True):
            rng = np.random.default_rng((model._seed, k, j))
            h, own = np.zeros(20), []
            for v, sample in zip(rng.uniform(-1e-2, 1e-2, (len(x), 20)), x, strict=True):
                h = np.tanh(model.reservoir_.W_in @ [1, *sample] + model.reservoir_.W @ h + v)
                own.append([1, *sample, *h])
            rows.append((own, d))
        H, D = (np.vstack(part) for part in zip(*rows, strict=True))
        assert distance(model.coefficients_, closed_form(H, D, 1e-3, free=1)) < 1e-8
        assert not np.allclose(
            model.coefficients_, fit(shares, net(), 0.0).coefficients_, rtol=1e-3
        )
        np.testing.assert_allclose(
            model.predict(X[0]), states(model, X[0]) @ model.coefficients_[0], atol=1e-12
        )

    def test_nobody_can_make_up_states(self):
        for solver in ("cg", ConjugateGradient(1e-4)):
            model = ESNRegressor(10, solver=solver, network=net(), random_state=0).fit(X, Y)
            assert "preconditioner local" in model.report_.note
        with pytest.raises(InputError, match="'synthetic' needs the inputs and the feature map"):
            ESNRegressor(
                10,
                solver=ConjugateGradient(preconditioner="synthetic"),
                network=net(),
                random_state=0,
            ).fit(X, Y)


class TestLasso:
    @pytest.mark.parametrize(
        "network", [None, net(), net(graphs.star(5), exact_order=True)], ids=["alone", "4", "5"]
    )
    def test_as_scikit_learn_on_the_same_states(self, network):
        model = ESNRegressor(25, alpha=0.3, penalty="lasso", network=network, random_state=0).fit(
            X, Y
        )
        H, D = all_states(model, X, Y)
        scikit = ScikitLasso(0.3 / len(H), tol=1e-14, max_iter=1_000_000).fit(H[:, 1:], D)
        b = np.vstack([scikit.intercept_, scikit.coef_.T])
        assert distance(model.coefficients_, b) < 1e-5
        assert np.array_equal(model.coefficients_[0] == 0, b == 0)
        assert 0.2 < model.sparsity_ == np.mean(b == 0) < 0.98

    def test_by_admm(self):
        settings = {"n_reservoir": 15, "alpha": 0.3, "penalty": "lasso", "random_state": 0}
        exact = ESNRegressor(**settings).fit(X, Y)
        model = ESNRegressor(**settings, solver=ADMM(tolerance=1e-7), network=net()).fit(X, Y)
        assert distance(model.coefficients_, exact.coefficients_[0]) < 1e-3
        assert model.sparsity_ == exact.sparsity_

    def test_other_solvers_refuse_it(self):
        with pytest.raises(
            InputError,
            match="ConjugateGradient solves ridge problems only: for a Lasso penalty use",
        ):
            ESNRegressor(5, penalty="lasso", solver="cg", network=net(), random_state=0).fit(X, Y)

    def test_ridge_has_no_zeros(self):
        assert ESNRegressor(5, random_state=0).fit(X, Y).sparsity_ == 0


class TestPredictions:
    def test_without_feedback_outputs_are_the_readout_of_states(self):
        model = ESNRegressor(15, random_state=0, teacher_scaling=0.2, leak=0.5).fit(
            X, [d[:, 0] for d in Y]
        )
        wanted = states(model, X[1]) @ model.coefficients_[0][:, 0] / 0.2
        np.testing.assert_allclose(model.predict(X[1]), wanted, atol=1e-12)
        both = model.predict(X[:2])
        assert isinstance(both, list)
        assert np.array_equal(both[1], model.predict(X[1]))
        assert np.array_equal(
            model.predict(X[1], X[0][:2, 0]), model.predict(X[1])
        )  # known outputs change nothing

    @pytest.mark.parametrize("known", [0, 1, 20, 40])
    def test_with_feedback_known_outputs_are_forced_and_then_its_own(self, known):
        model = ESNRegressor(15, random_state=0, **FEEDBACK).fit(X, Y)
        r, s, b = model.reservoir_, model.teacher_scaling, model.coefficients_[0]
        h, y, wanted = np.zeros(15), np.zeros(2), []
        for n, sample in enumerate(X[0]):
            h = 0.4 * h + 0.6 * np.tanh(r.W_in @ [1, *sample] + r.W @ h + r.W_fb @ (s * y))
            wanted.append(b.T @ [1, *sample, *h] / s)
            y = Y[0][n] if n < known else wanted[-1]
        np.testing.assert_allclose(model.predict(X[0], Y[0][:known]), wanted, atol=1e-10)
        lists = model.predict(X[:2], [Y[0][:known], Y[1][:7]])
        np.testing.assert_allclose(lists[0], wanted, atol=1e-10)
        assert lists[1].shape == (90, 2)

    def test_nrmse_and_score_are_one_number_read_two_ways(self):
        model = ESNRegressor(15, washout=10, network=net(), solver="local", random_state=0).fit(
            X, [d[:, 1] for d in Y]
        )
        d = [one[:, 1] for one in Y]
        D, P = (np.concatenate([one[10:] for one in many]) for many in (d, model.predict(X)))
        wanted = np.sqrt(np.sum((P - D) ** 2) / (len(D) * D.var()))
        assert model.nrmse(X, d) == pytest.approx(wanted, rel=1e-12)
        assert model.score(X, d) == pytest.approx(r2_score(D, P), rel=1e-12)
        assert model.agent_nrmse(X, d).shape == (4,)
        assert model.agent_nrmse(X, d)[0] == model.nrmse(X, d)
        np.testing.assert_allclose(model.agent_scores(X, d), 1 - model.agent_nrmse(X, d) ** 2)
        assert len(set(model.agent_nrmse(X, d))) == 4

    def test_many_outputs_are_counted_together(self):
        model = ESNRegressor(15, washout=5, random_state=0, **FEEDBACK).fit(X, Y)
        P = np.concatenate([p[5:] for p in model.predict(X, [d[:5] for d in Y])])
        D = np.concatenate([d[5:] for d in Y])
        wanted = np.linalg.norm(P - D) / np.linalg.norm(D - D.mean(axis=0))
        assert model.nrmse(X, Y) == pytest.approx(wanted, rel=1e-12)

    def test_each_agent_feeds_back_its_own_outputs(self):
        model = ESNRegressor(
            15, washout=5, network=net(), solver="local", random_state=0, **FEEDBACK
        ).fit(X, Y)
        for k, found in enumerate(model.agent_nrmse(X, Y)):
            own = ESNRegressor(15, washout=5, random_state=0, **FEEDBACK).fit(X, Y)
            own.coefficients_ = model.coefficients_[k : k + 1]
            assert found == pytest.approx(own.nrmse(X, Y), rel=1e-9)

    @pytest.mark.parametrize("settings", [{}, FEEDBACK], ids=["open", "feedback"])
    def test_agents_that_have_the_same_coefficients_are_run_once(self, settings, monkeypatch):
        model = ESNRegressor(
            15, washout=5, network=net(), solver="local", random_state=0, **settings
        ).fit(X, Y)
        model.coefficients_ = np.repeat(model.coefficients_[1:2], 4, axis=0)
        apart, asked = model._nrmse(X, Y, slice(None)), []

        def counted(reservoir, b, *rest):
            asked.append(len(b))
            return outputs(reservoir, b, *rest)

        monkeypatch.setattr("peerlearn.models.reservoir_predictor.outputs", counted)
        assert model.agent_nrmse(X, Y).tobytes() == apart.tobytes()
        model.coefficients_[3] += 1e-9
        assert len(set(model.agent_nrmse(X, Y))) == 2
        assert asked == [1, 4]

    def test_cross_validation_leaves_sequences_out(self):
        assert np.all(
            cross_val_score(ESNRegressor(30, washout=5, random_state=0), X, Y, cv=3) > 0.5
        )

    @pytest.mark.parametrize(
        ("settings", "call", "sentence"),
        [
            (
                FEEDBACK,
                lambda m: m.predict(X[0]),
                r"earlier outputs, which are not known: call predict\(X, y_known\)",
            ),
            (
                FEEDBACK,
                lambda m: m.predict(X[0], np.ones((41, 2))),
                r"y_known has shape \(41, 2\), where .* with 40 samp",
            ),
            (
                FEEDBACK,
                lambda m: m.predict(X[0], np.ones(9)),
                r"y_known has shape \(9,\), where \(samples, 2\) is expec",
            ),
            (FEEDBACK, lambda m: m.predict(X[:2], [Y[0]]), "X has 2 sequences and y_known has 1"),
            (
                FEEDBACK,
                lambda m: m.predict(X[:2], 3.0),
                "y_known is 3.0: give a list with the outputs of each of 2",
            ),
            (
                FEEDBACK,
                lambda m: m.predict(X[0], [[np.nan, 1]]),
                "y_known has NaN or inf .* the first is time 0",
            ),
            (FEEDBACK, lambda m: m.predict(X[0], ["a"]), "y_known must hold numbers"),
            (
                FEEDBACK,
                lambda m: m.forecast(3, X[0]),
                "the state after X depends on them: give y of X as well",
            ),
            ({}, lambda m: m.predict([x[:, :1] for x in X]), "sequence 0: X has 1 features"),
            (
                {},
                lambda m: m.predict([X[0], np.full((4, 2), np.nan)]),
                "sequence 1: X has NaN .* the first is time 0",
            ),
            ({}, lambda m: m.forecast(3, X), "a forecast continues one sequence"),
            (
                {"washout": 30},
                lambda m: m.nrmse(X[0][:30], Y[0][:30]),
                "n_samples=30, which is not more than the washo",
            ),
            (
                {},
                lambda m: m.score(X[0], np.ones((40, 2))),
                "samples after the washout are all alike",
            ),
            (
                {},
                lambda m: m.nrmse(
                    np.tile(X[0], (8, 1)), np.full((320, 2), 0.1)
                ),  # whose mean is not quite 0.1
                "the 320 samples after the washout are all alike",
            ),
            (
                {},
                lambda m: m.forecast(3, y=Y[0]),
                r"y are the outputs of X, which was not given: call forecast\(n, X",
            ),
        ],
    )
    def test_refused(self, settings, call, sentence):
        model = ESNRegressor(10, random_state=0, **settings).fit(X, Y)
        with pytest.raises(DataError, match=sentence):
            call(model)

    def test_feedback_that_leaves_all_bounds(self):
        model = ESNRegressor(15, random_state=0, **FEEDBACK).fit(X, Y)
        model.coefficients_ = 1e4 * model.coefficients_
        with pytest.warns(
            UserWarning,
            match="the closed loop is not stable; train with some noise or a larger alpha",
        ):
            model.predict(X[0], Y[0][:5])
        model.coefficients_ = 1e120 * model.coefficients_
        with pytest.raises(
            DataError, match=r"sequence 1: .* diverges, after 7 samples they are above 1e\+100"
        ):
            model.predict(X[:2], [Y[0], Y[1][:7]])


def test_what_is_refused_leaves_the_model_as_it_was():
    model = ESNRegressor(10, random_state=0).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(DataError):
        model.fit(X, Y[:1])
    assert vars(model) == before
