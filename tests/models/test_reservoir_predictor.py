"""Forecasts: closed loops of a trained reservoir, from where it was left or from a history, against
the formula.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import ESNRegressor, SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
NEXT = np.roll(X, -1, axis=0)
FEEDBACK = {"feedback_scaling": 0.5, "teacher_scaling": 0.3, "leak": 0.6}


class TestSignals:
    t = 0.2 * np.arange(900)
    wave, lagged = (np.sin(t) + 0.5 * np.sin(2.3 * t) for t in (t, t - 1))

    def fitted(self, last=700, outputs=1, **settings):
        x = np.column_stack([self.wave, self.lagged])[:, :outputs]
        model = ESNRegressor(
            80, input_scaling=0.1, washout=100, alpha=1e-8, random_state=0, **settings
        )
        return model.fit(x[: last - 1], x[1:last, 0] if outputs == 1 else x[1:last]), x

    @pytest.mark.parametrize(
        "settings",
        [{}, {"feedback_scaling": 0.2, "noise": 1e-5}, {"teacher_scaling": 0.1}],
        ids=str,
    )
    @pytest.mark.parametrize("outputs", [1, 2])
    def test_a_signal_goes_on(self, settings, outputs):
        model, x = self.fitted(outputs=outputs, **settings)
        found = model.forecast(60).reshape(60, outputs)
        assert np.abs(found - x[700:760]).max() < 0.02

    def test_from_a_history(self):
        model, x = self.fitted()
        after = model.forecast(
            60, x[200:400]
        )  # what is the last of a history is the first that is forecast
        assert np.abs(after - self.wave[400:460]).max() < 0.02
        assert after[0] == pytest.approx(model.predict(x[200:400])[-1], abs=1e-12)
        known = model.forecast(60, x[200:400], self.wave[201:401])
        assert np.abs(known - self.wave[401:461]).max() < 0.02
        assert np.array_equal(model.forecast(1, x[200:400]), after[:1])
        np.testing.assert_allclose(
            model.forecast(100), model.forecast(100, x[:699], self.wave[1:700]), atol=1e-10
        )

    def test_over_a_network_it_goes_on_from_the_end_of_what_was_given(self):
        model, x = self.fitted(network=SimulatedNetwork(graphs.ring(4)))
        assert np.abs(model.forecast(50) - self.wave[700:750]).max() < 0.02
        ends = [(0, 150), (150, 300), (300, 450), (450, 600), (550, 699)]
        model.fit([x[a:b] for a, b in ends], [self.wave[a + 1 : b + 1] for a, b in ends])
        assert np.abs(model.forecast(50) - self.wave[700:750]).max() < 0.02

    def test_outputs_that_are_no_inputs(self):
        with pytest.raises(
            InputError,
            match="there are 1 outputs and 2 inputs: train with the next inputs as outputs",
        ):
            ESNRegressor(5, random_state=0).fit(X, NEXT[:, 0]).forecast(3)

    def test_a_loop_that_diverges(self):
        model, _ = self.fitted(last=300)
        model.coefficients_ = model.coefficients_.copy()
        model.coefficients_[0, 1] = 3.0  # of the input
        with pytest.warns(
            UserWarning,
            match="reach .* where those in training were at most 1.5e.00: the closed loop is",
        ):
            model.forecast(20)
        with pytest.raises(
            DataError,
            match=r"the forecast: .* diverges, after \d+ samples they are above 1e\+100",
        ):
            model.forecast(400)


@pytest.mark.parametrize("settings", [{}, FEEDBACK], ids=["open", "feedback"])
def test_after_a_history_with_its_outputs_it_is_the_formula(settings):
    model = ESNRegressor(15, random_state=0, **settings).fit(X, NEXT)
    r, s, a, b = model.reservoir_, model.teacher_scaling, model.leak, model.coefficients_[0]

    def after(h, x, y):
        return (1 - a) * h + a * np.tanh(r.W_in @ [1, *x] + r.W @ h + r.W_fb @ (s * y))

    h, y = np.zeros(15), np.zeros(2)
    for x, d in zip(X[:25], NEXT[:25], strict=True):
        h, y = after(h, x, y), d
    wanted = []
    for _ in range(10):
        h, x = after(h, y, y), y
        y = b.T @ [1, *x, *h] / s
        wanted.append(y)
    np.testing.assert_allclose(model.forecast(10, X[:25], NEXT[:25]), wanted, atol=1e-11)


def test_what_was_learned_from_may_be_changed_afterwards():
    x, y = X.copy(), NEXT.copy()
    model = ESNRegressor(15, random_state=0, **FEEDBACK).fit(x, y)
    before = model.forecast(3)
    x[:], y[:] = 7.0, 7.0
    assert np.array_equal(model.forecast(3), before)


@pytest.mark.parametrize("network", [None, SimulatedNetwork(graphs.ring(3))], ids=["alone", "3"])
def test_the_state_at_the_end_is_without_noise(network):
    model = ESNRegressor(15, noise=0.1, random_state=0, network=network, **FEEDBACK).fit(X, NEXT)
    own = slice(0 if network is None else 40, None)  # the last agent's stretch
    assert np.array_equal(model.forecast(5), model.forecast(5, X[own], NEXT[own]))


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_targets_below_zero_are_large_as_well(call):
    """What is warned of is an output far beyond the targets: not one as large as they are."""
    x = -2 - np.sin(0.3 * np.arange(80))[:, None]
    model = getattr(ESNRegressor(15, random_state=0), call)(x[:-1], x[1:])
    assert np.abs(model.forecast(3)).max() < 10


def test_a_warning_names_the_line_that_asked():
    model = ESNRegressor(15, washout=5, random_state=0, **FEEDBACK).fit(X, NEXT)
    model.coefficients_ = 1e4 * model.coefficients_
    for ask in (
        lambda: model.predict(X, NEXT[:5]),
        lambda: model.nrmse(X, NEXT),
        lambda: model.score(X, NEXT),
        lambda: model.agent_scores(X, NEXT),
        lambda: model.forecast(5),
    ):
        with pytest.warns(UserWarning, match="the closed loop is not stable") as caught:
            ask()
        assert (caught[0].filename, caught[0].lineno) == (__file__, ask.__code__.co_firstlineno)
