"""What filters learn over a network, and the results that they give."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, decibels, graphs
from peerlearn.data import wiener
from peerlearn.local.splines import Spline
from tests.support.filters_by_hand import close, learned, wave

GRAPH = graphs.erdos_renyi(6, 0.5, seed=2)
BEFORE, AFTER = "combine-then-adapt", "adapt-then-combine"


class TestLearning:
    def test_normalised_steps_find_a_system_that_points_the_other_way(self):
        system = wiener(agents=8, samples=5000, seed=100)  # w0[0] < 0, where filters begin with 1
        network = SimulatedNetwork(graphs.erdos_renyi(8, 0.6, seed=0))
        run = SplineFilter(update="nlms", network=network).run(system.x, system.d)
        assert decibels(run.excess(system.clean), 500)[-1] < -25

    @pytest.mark.parametrize("exact", [False, True])
    def test_a_sensor_that_falls_silent_ruins_nobody(self, exact):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((6, 1500))
        x[3, 500:1000] *= 1e-6
        d = np.stack(
            [np.convolve(row, [0.5, -0.3])[:1500] for row in x]
        ) + 0.1 * rng.standard_normal(x.shape)
        model = LMSFilter(update="nlms", network=SimulatedNetwork(GRAPH, exact_order=exact))
        run = model.run(x, d)
        assert run.mse[:, 400:].mean(axis=1).max() < 0.02
        live = clone(model)
        parts = [live.step(x[:, a:b], d[:, a:b]) for a, b in ((0, 700), (700, 701), (701, 1500))]
        assert np.array_equal(np.hstack(parts), run.outputs)

    @pytest.mark.parametrize(
        ("kind", "outlier"),
        [(LMSFilter, 1000.0), (partial(SplineFilter, scale=False), 4000.0)],
    )
    def test_one_outlier_does_not_make_normalised_steps_slow(self, kind, outlier):
        x, _ = wave(1, 4000)
        x[0, 1000] = outlier
        w = np.where(np.arange(4000)[:, None] < 2000, [0.5, -0.3], [-0.5, 0.3])
        d = (w * np.stack([x[0], np.roll(x[0], 1)], axis=1)).sum(axis=1)
        assert kind(update="nlms").run(x[0], d).mse[0, -500:].mean() < 1e-3

    @pytest.mark.parametrize(("agents", "kind"), [(10, "mild"), (15, "strong")])
    def test_joint_recursion_and_rare_rounds_beat_the_thesis(self, agents, kind):
        network = SimulatedNetwork(graphs.erdos_renyi(agents, 0.6, seed=0))
        system = wiener(agents=agents, samples=5000, nonlinearity=kind)
        mu = np.random.default_rng(0).uniform(0.001, 0.01, agents)
        thesis = SplineFilter(
            update="lms", step_size=mu, spline_step_size=mu, cooperation=BEFORE, exchange="span"
        )
        settings = {"thesis": thesis, "rls": SplineFilter(), "rare": SplineFilter(every=256)}
        runs = {
            name: model.set_params(network=network).run(system.x, system.d)
            for name, model in settings.items()
        }
        excess = {name: decibels(run.excess(system.clean), 500)[-1] for name, run in runs.items()}
        assert excess["rls"] < excess["thesis"] - 12
        assert excess["rare"] < excess["thesis"]
        assert 50 * runs["rare"].sent.bytes < runs["thesis"].sent.bytes

    def test_together_is_better_than_every_lone_filter(self):
        network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0))
        system = wiener(agents=10, samples=4000)
        together, alone = (
            SplineFilter(network=network, cooperation=how)
            .run(system.x, system.d)
            .excess(system.clean)[:, -1000:]
            for how in (AFTER, "none")
        )
        assert (
            decibels(together.mean(axis=1).max()[None])[0]
            < decibels(alone.mean(axis=1).min()[None])[0]
        )

    @pytest.mark.parametrize("settings", [{"forgetting": 0.98, "robust": False}, {}])
    def test_follows_a_system_that_changes(self, settings):
        x, d = wave(1, 4000)
        d[:, 2000:] = np.convolve(x[0], [-0.2, 0.9])[2000:4000]
        still, model = (LMSFilter(update="rls", **own) for own in ({"robust": False}, settings))
        late = [each.run(x, d).mse[:, -500:].mean() for each in (still, model)]
        assert late[1] < 0.01 * late[0]

    @pytest.mark.parametrize("cooperation", [AFTER, "none"])
    def test_the_size_of_signals_does_not_matter(self, cooperation):
        network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0))
        signals = wiener(agents=10, samples=3000)
        found = []
        for size in (1.0, 0.01, 0.3, 1.7, 3.0, 8.0, 100.0):
            model = SplineFilter(network=network, cooperation=cooperation)
            run = model.run(size * signals.x, size * signals.d)
            excess = run.excess(size * signals.clean)[:, -500:].mean() / size**2
            found.append(decibels(excess[None])[0])
        assert max(found) - min(found) < 0.1

    @pytest.mark.parametrize("harm", ["none", "change", "small", "large", "outlier", "offset"])
    @pytest.mark.parametrize("cooperation", [AFTER, "none"])
    def test_defaults_do_no_harm(self, harm, cooperation):
        network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0))
        first, second = (wiener(agents=10, samples=3000, seed=seed) for seed in (0, 7))
        last = second if harm == "change" else first
        x, d, clean = first.x, first.d, first.clean
        plain = SplineFilter(
            bias=False, scale=False, robust=False, network=network, cooperation=cooperation
        )
        alike = plain.run(last.x, last.d).excess(last.clean)
        limit = decibels(alike[:, -500:].mean()[None])[0] + 4
        size = {"small": 0.01, "large": 100.0}.get(harm, 1.0)
        x, d, clean = size * x, size * d, size * clean
        if harm == "change":
            x, d, clean = (
                np.hstack([getattr(each, name) for each in (first, second)])
                for name in ("x", "d", "clean")
            )
        elif harm == "outlier":
            x[3, 2000] = d[5, 1500] = 1e4
        elif harm == "offset":
            d, clean = d + 5, clean + 5
        run = SplineFilter(network=network, cooperation=cooperation).run(x, d)
        excess = run.excess(clean)[:, -500:].mean() / size**2
        assert decibels(excess[None])[0] < limit

    def test_silence_is_no_change(self):
        x, d = wave(1, 6000)
        x[:, 2000:5000], d[:, 2000:5000] = 0.0, 0.0
        model = LMSFilter(update="rls")
        model.run(x[:, :2000], d[:, :2000])
        before = model._filter_state.state["watch"].copy()
        model.step(x[:, 2005:5000], d[:, 2005:5000])
        after = model._filter_state.state["watch"]
        assert after[0, 2] - before[0, 2] <= 5  # errors that were judged


class TestResults:
    def test_deviations_do_not_depend_on_the_scale_of_w(self):
        x, d = wave(1, 50)
        model = SplineFilter(update="lms", step_size=0.0, spline_step_size=0.0)
        run = model.run(
            x, d, truth=([-0.25, 0.0, 0.0, 0.0, 0.0], lambda s: -4.0 * s)
        )  # the identity in other words
        close(run.msd, 0.0)
        close(run.msd_spline, 0.0)

    def test_deviations_by_hand(self):
        x, d = wave(1, 50)
        w0, q0 = np.array([2.0, 1.0, 0.0, 0.0, 0.0]), 3 * Spline(2.2, 0.2).knots
        run = SplineFilter(update="lms", step_size=0.0, spline_step_size=0.0).run(
            x, d, truth=(w0, q0)
        )
        close(run.msd, 1.0)  # a = 2
        close(run.msd_spline, np.sum((q0[1:-1] - q0[1:-1] / 6) ** 2))
        linear = LMSFilter(step_size=0.0).run(x, d, truth=w0)
        close(linear.msd, 1.0)
        assert linear.msd_spline is None

    def test_deviation_of_a_filter_that_is_zero(self):
        run = LMSFilter(order=1, step_size=1.0).run(np.ones(5), np.zeros(5), truth=[1.0])
        assert run.msd.tolist() == [[0.0, 1.0, 1.0, 1.0, 1.0]]

    def test_what_was_learned_does_not_depend_on_settings_changed_since(self):
        x, d = wave(1, 20)
        model = SplineFilter()
        model.run(x, d)
        before = learned(model), str(model.report_)
        model.set_params(order=3, update="lms")
        assert model.control_points_.shape == (1, 23)
        assert np.array_equal(learned(model), before[0])
        assert str(model.report_) == before[1]

    def test_run_without_truth(self):
        x, d = wave(1, 20)
        run = SplineFilter().run(x, d)
        assert run.msd is None
        assert np.array_equal(run.errors, d - run.outputs)
        assert np.array_equal(run.mse, run.errors**2)
        close(run.excess(d), run.mse)

    def test_decibels_average_powers(self):
        powers = np.array([[[1.0, 10.0], [100.0, 10.0]]])
        close(decibels(powers), [10 * np.log10(50.5), 10.0])
        close(decibels(powers, window=2), [10 * np.log10(30.25)])

    def test_predict_is_a_signal_of_its_own(self):
        x, d = wave(6, 100)
        model = LMSFilter(update="rls", bias=False, network=SimulatedNetwork(GRAPH))
        model.run(x, d)
        before, sent = model.coefficients_, model.report_.sent
        expected = [np.convolve(row, w)[:100] for row, w in zip(x, before, strict=True)]
        close(model.predict(x), expected)
        assert np.array_equal(model.coefficients_, before)
        assert model.report_.sent == sent

    def test_scikit_learn_parameters(self):
        model = SplineFilter(update="lms", step_size=[0.1], every=3)
        assert clone(model).get_params() == model.get_params()
        assert "every=3" in repr(model)
        with pytest.raises(NotFittedError, match="learned from no samples"):
            model.predict([1.0])
        assert not hasattr(model, "coefficients_")
