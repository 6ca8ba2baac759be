"""Filters over a network: against plain numpy, closed forms, each other, and on every way to run
them.
"""

from __future__ import annotations

import re
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from peerlearn import Faults, LMSFilter, SimulatedNetwork, SplineFilter, decibels, graphs
from peerlearn.algorithms.filtering.diffusion import outputs
from peerlearn.data import wiener
from peerlearn.errors import NetworkError
from peerlearn.local.splines import Spline
from tests.support.filters_by_hand import alone_by_hand, by_hand, close, learned, wave

GRAPH = graphs.erdos_renyi(6, 0.5, seed=2)
BEFORE, AFTER = "combine-then-adapt", "adapt-then-combine"
STEPS = {"lms": (0.02, 0.01), "nlms": (0.2, 0.3), "rls": (None, None)}


PLAIN = {"bias": False, "robust": False}  # and scale=False, of a spline filter


def filter_of(update, spline=True, network=None, **settings):
    mu, mu_q = STEPS[update]
    settings = PLAIN | settings
    if spline:
        settings = {"scale": False, "spline_step_size": mu_q} | settings
        return SplineFilter(update=update, step_size=mu, network=network, **settings)
    return LMSFilter(update=update, step_size=mu, network=network, **settings)


class TestAgainstPlainNumpy:
    @pytest.mark.parametrize(
        ("update", "basis"), list(product(STEPS, ("catmull-rom", "bspline", None)))
    )
    def test_one_agent(self, update, basis):
        x, d = wave(1, 400)
        settings = {"basis": basis} if basis else {}
        model = filter_of(update, bool(basis), **settings)
        run = model.run(x, d)
        spline = Spline(2.2, 0.2, basis) if basis else None
        y, theta = by_hand(x, d, update, steps=STEPS[update], spline=spline)
        close(run.outputs, y, 1e-9)
        close(learned(model), theta, 1e-9)

    @pytest.mark.parametrize("spline", [True, False])
    def test_forgetting(self, spline):
        x, d = wave(1, 400)
        model = filter_of("rls", spline, forgetting=0.97)
        y, theta = by_hand(
            x, d, "rls", spline=Spline(2.2, 0.2) if spline else None, forgetting=0.97
        )
        close(model.run(x, d).outputs, y, 1e-8)
        close(learned(model), theta, 1e-8)

    @pytest.mark.parametrize(
        ("before", "spans", "every"), list(product((True, False), (True, False), (1, 3)))
    )
    def test_a_network(self, before, spans, every):
        x, d = wave(6, 200)
        network = SimulatedNetwork(GRAPH)
        how = {
            "cooperation": BEFORE if before else AFTER,
            "exchange": "span" if spans else "full",
            "every": every,
        }
        model = filter_of("lms", network=network, **how)
        C, spline = network.weights.toarray(), Spline(2.2, 0.2)
        settings = {"before": before, "spans": spans, "every": every, "steps": STEPS["lms"]}
        y, theta = by_hand(x, d, "lms", C=C, spline=spline, **settings)
        close(model.run(x, d).outputs, y, 1e-10)
        close(learned(model), theta, 1e-10)

    @pytest.mark.parametrize(("before", "every"), list(product((True, False), (1, 3))))
    def test_censoring(self, before, every):
        x, d = wave(6, 200)
        network = SimulatedNetwork(GRAPH)
        model = filter_of(
            "lms",
            network=network,
            cooperation=BEFORE if before else AFTER,
            every=every,
            threshold=0.03,
        )
        how = {
            "before": before,
            "every": every,
            "threshold": 0.03,
            "steps": STEPS["lms"],
            "spline": Spline(2.2, 0.2),
        }
        y, theta = by_hand(x, d, "lms", C=network.weights.toarray(), **how)
        close(model.run(x, d).outputs, y, 1e-10)
        close(learned(model), theta, 1e-10)
        chances = 6 * ((199 if before else 200) // every)
        kept = int(
            re.search(rf"kept silent (\S+) of {chances:,} times", model.report_.note)[1].replace(
                ",", ""
            )
        )
        assert 0 < kept < chances

    @pytest.mark.parametrize("basis", ["catmull-rom", None])
    def test_normalised_steps_of_a_sensor_that_is_silent_and_then_quiet(self, basis):
        x, d = wave(1, 400)
        x[:, :20], x[:, 100:300] = 0.0, 1e-6 * x[:, 100:300]
        model = filter_of("nlms", bool(basis), **({"basis": basis} if basis else {}))
        y, theta = by_hand(
            x, d, "nlms", steps=STEPS["nlms"], spline=Spline(2.2, 0.2, basis) if basis else None
        )
        close(model.run(x, d).outputs, y, 1e-9)
        close(learned(model), theta, 1e-9)

    def test_joint_recursion_over_a_network(self):
        x, d = wave(6, 200)
        network = SimulatedNetwork(GRAPH)
        model = filter_of("rls", network=network, every=5)
        y, theta = by_hand(
            x, d, "rls", C=network.weights.toarray(), every=5, spline=Spline(2.2, 0.2)
        )
        close(model.run(x, d).outputs, y, 1e-9)
        close(learned(model), theta, 1e-9)


class TestDefaults:
    """Bias, scale, robust errors and changes, against plain numpy."""

    @pytest.mark.parametrize(
        ("update", "spline", "factors"),
        [
            ("rls", True, (1.0, 1.0)),
            ("rls", True, (1e-4, 30.0)),
            ("rls", False, (1.0, 1.0)),
            ("nlms", True, (0.1, 10.0)),
            ("nlms", False, (1.0, 1.0)),
            ("lms", True, (0.02, 500.0)),
            ("lms", False, (1.0, 1.0)),
        ],
    )
    def test_one_agent(self, update, spline, factors):
        x, d = changing(1) if update == "rls" else wave(1, 600)
        offsets = (3.0, -4.0) if update == "rls" else (0.0, 0.0)
        x, d = factors[0] * (x + offsets[0]), factors[1] * (d + offsets[1])
        settings = {"bias": True, "robust": update == "rls"} | ({"scale": True} if spline else {})
        model = filter_of(update, spline, **settings)
        run = model.run(x, d)
        spline = Spline(2.2, 0.2) if spline else None
        expected = alone_by_hand if spline else by_hand
        y, theta = expected(x, d, update, steps=STEPS[update], spline=spline, **settings)
        close(run.outputs / factors[1], y / factors[1], 1e-5)
        alike(learned(model), theta)

    @pytest.mark.parametrize(
        ("exact", "how"),
        list(
            product(
                (False, True),
                (
                    {"update": "rls"},
                    {"update": "rls", "every": 5},
                    {"update": "rls", "before": True},
                    {"update": "rls", "threshold": 0.03},
                    {"update": "lms", "before": True, "spans": True},
                ),
            )
        ),
    )
    def test_a_network(self, exact, how):
        x, d = changing(6) if how["update"] == "rls" else wave(6, 300)
        x, d = 0.01 * x, 300.0 * d
        network = SimulatedNetwork(GRAPH, exact_order=exact)
        how = dict(how)
        update = how.pop("update")
        on = {"bias": True, "scale": True, "robust": update == "rls"}
        given = {
            "cooperation": BEFORE if how.get("before") else AFTER,
            "exchange": "span" if how.get("spans") else "full",
            "every": how.get("every", 1),
            "threshold": how.get("threshold"),
        }
        model = filter_of(update, network=network, **given, **on)
        C, spline = network.weights.toarray(), Spline(2.2, 0.2)
        y, theta = by_hand(x, d, update, C=C, spline=spline, steps=STEPS[update], **how, **on)
        close(model.run(x, d).outputs / 300.0, y / 300.0, 1e-7)
        alike(learned(model), theta)

    def test_compiled_and_engine_neutral_loops_agree(self):
        x, d = changing(6)
        runs = [
            SplineFilter(network=SimulatedNetwork(GRAPH, exact_order=exact)).run(x, d)
            for exact in (False, True)
        ]
        close(runs[0].outputs, runs[1].outputs)
        assert runs[0].sent == runs[1].sent

    @pytest.mark.parametrize("cooperation", [AFTER, "none"])
    def test_blocks_of_any_length_are_one_recording(self, cooperation):
        x, d = changing(6)
        model = SplineFilter(network=SimulatedNetwork(GRAPH), cooperation=cooperation)
        whole = model.run(x, d)
        live = clone(model)
        edges = [0, 1, 40, 40, 127, 128, 129, 300, 511, 511, 513, 600]
        parts = [live.step(x[:, a:b], d[:, a:b]) for a, b in pairwise(edges)]
        assert np.array_equal(np.hstack(parts), whole.outputs)
        assert np.array_equal(learned(live), learned(model))
        assert live.report_.sent.rounds == model.report_.sent.rounds

    @pytest.mark.parametrize(("samples", "sums"), [(150, 1), (600, 2), (5000, 4)])
    def test_a_scale_costs_one_flood_and_few_sums(self, samples, sums):
        x, d = wave(6, samples)
        network = SimulatedNetwork(GRAPH)
        scaled, plain = (
            SplineFilter(network=network, scale=scale, bias=False).run(x, d).sent.rounds
            for scale in (True, False)
        )
        assert scaled - plain == network.flood_rounds + sums * 2 * network.tree.height

    def test_silent_agents_do_not_set_the_scale(self):
        x, d = wave(6, 800)
        x[2:], d[2:] = 0.0, 0.0
        small = SplineFilter(network=SimulatedNetwork(GRAPH))
        large = clone(small)
        small.run(x, d)
        large.run(1e4 * x, 1e4 * d)
        close(1e4 * large.coefficients_, small.coefficients_, 1e-6)
        SplineFilter().run(np.zeros(150), np.zeros(150))  # nobody has a scale


def alike(found, expected):
    """Relative to the largest of w and of the bias and the control points."""
    for part in (slice(5), slice(5, None)):
        size = np.abs(expected[:, part]).max()
        close(found[:, part] / size, expected[:, part] / size, 1e-5)


def changing(agents, samples=600):
    """Signals with an outlier in each, of a system that changes half-way."""
    x, d = wave(agents, samples)
    x[:, 180] = 40.0
    d[0, 200] = 1e4
    d[:, samples // 2 :] = 1.0 - 0.7 * x[:, samples // 2 :]
    return x, d


class TestGradients:
    """What one LMS step changes is the step times the error times the derivative of the output, by
    differences.
    """

    @pytest.mark.parametrize(
        ("basis", "size"), list(product(("catmull-rom", "bspline"), (0.5, 6.0)))
    )
    def test_both_parts(self, basis, size):
        x, d = wave(1, 60)
        model = SplineFilter(
            update="lms", step_size=0.02, spline_step_size=0.03, basis=basis, scale=False
        )
        model.run(x, d)
        shape, theta = model._filter_state.shape, model._filter_state.state["theta"].copy()
        recent = np.concatenate([x[0, -4:], [size]])[
            None
        ]  # the last inputs, of which the newest decides how far out

        def output(changed):
            return outputs(shape, changed, recent)[0, -1]

        slope = np.array(
            [
                output(theta + 1e-6 * row) - output(theta - 1e-6 * row)
                for row in np.eye(theta.shape[1])
            ]
        )
        y = model.step(size, 1.0)
        change = learned(model)[0] - theta[0]
        expected = np.repeat([0.02, 0.03], [5, 23]) * (1.0 - y) * slope / 2e-6
        np.testing.assert_allclose(change, expected, rtol=1e-6, atol=1e-8)
        assert 5 < np.count_nonzero(change) <= 9  # of q only the span


class TestSpecialCases:
    @pytest.mark.parametrize("network", [None, SimulatedNetwork(GRAPH)])
    def test_a_spline_that_stays_on_the_diagonal_is_lms(self, network):
        x, d = wave(1 if network is None else 6, 2000)
        linear = LMSFilter(step_size=0.01, network=network)
        still = SplineFilter(
            update="lms", step_size=0.01, spline_step_size=0.0, network=network, scale=False
        )
        close(still.run(x, d).outputs, linear.run(x, d).outputs)
        close(still.coefficients_, linear.coefficients_)
        assert (np.abs(x) > 2.2).any()  # also beyond the knots

    def test_linear_rls_is_ridge_regression(self):
        x, d = wave(1, 300)
        model = LMSFilter(update="rls", **PLAIN)
        model.run(x, d)
        padded = np.concatenate([np.zeros(4), x[0]])
        H = np.stack([padded[n : n + 5][::-1] for n in range(300)])
        answer = np.linalg.solve(H.T @ H + np.eye(5) / 100, H.T @ d[0] + np.eye(5)[0] / 100)
        close(model.coefficients_[0], answer, 1e-9)

    @pytest.mark.parametrize(
        ("when", "compiled", "exchange"), list(product((BEFORE, AFTER), (1, 0), ("full", "span")))
    )
    def test_weights_of_one_are_no_cooperation(self, when, compiled, exchange):
        class Deaf(SimulatedNetwork):
            mixing_here = sp.csr_array(np.eye(6)) if compiled else None
            mixing = sp.csr_array(np.eye(6))

            def mix(self, x):
                return x.copy()

            def exchange(self, outbox, to=None):
                return [{} for _ in outbox]

        x, d = wave(6, 200)
        together = filter_of("lms", network=Deaf(GRAPH), cooperation=when, exchange=exchange)
        alone = filter_of("lms", network=SimulatedNetwork(GRAPH), cooperation="none")
        close(together.run(x, d).outputs, alone.run(x, d).outputs)
        close(learned(together), learned(alone))

    @pytest.mark.parametrize(("update", "every"), list(product(STEPS, (1, 4))))
    def test_before_and_after_are_one_recursion(self, update, every):
        x, d = wave(6, 200)
        before, after = (
            filter_of(update, network=SimulatedNetwork(GRAPH), cooperation=when, every=every)
            .run(x, d)
            .outputs
            for when in (BEFORE, AFTER)
        )
        close(before, after)

    @pytest.mark.parametrize("spline", [True, False])
    def test_alone_nothing_is_sent(self, spline):
        x, d = wave(6, 50)
        assert (
            filter_of("rls", spline, SimulatedNetwork(GRAPH), cooperation="none")
            .run(x, d)
            .sent.rounds
            == 0
        )
        assert filter_of("rls", spline).run(x[:1], d[:1]).sent.rounds == 0


WAYS = [
    (update, spline, when, every, exchange)
    for update, spline, when, every, exchange in product(
        STEPS, (True, False), (BEFORE, AFTER), (1, 7), ("full", "span")
    )
    if exchange == "full" or (spline and update != "rls")
]


class TestWaysToRun:
    @pytest.mark.parametrize(("update", "spline", "when", "every", "exchange"), WAYS)
    def test_the_compiled_loop_equals_rounds_on_any_network(
        self, update, spline, when, every, exchange
    ):
        x, d = wave(6, 300)
        truth = (np.array([0.7, -0.5, 0.4, 0.2, -0.1]), np.tanh)
        how = {"cooperation": when, "every": every} | ({"exchange": exchange} if spline else {})
        models, runs = [], []
        for exact in (False, True):
            models.append(
                filter_of(update, spline, SimulatedNetwork(GRAPH, exact_order=exact), **how)
            )
            runs.append(models[-1].run(x, d, truth if spline else truth[0]))
        close(runs[0].outputs, runs[1].outputs)
        close(learned(models[0]), learned(models[1]))
        close(runs[0].msd, runs[1].msd)
        assert runs[0].sent == runs[1].sent
        assert runs[0].sent.rounds > 300 // every - 1

    @pytest.mark.parametrize(("exact", "exchange"), list(product((False, True), ("full", "span"))))
    def test_blocks_are_one_run(self, exact, exchange):
        x, d = wave(6, 60)
        whole = filter_of(
            "lms", network=SimulatedNetwork(GRAPH, exact_order=exact), every=4, exchange=exchange
        )
        y = whole.run(x, d).outputs
        for when in (BEFORE, AFTER):
            live = clone(whole).set_params(cooperation=when)
            parts = [
                live.step(x[:, a:b], d[:, a:b]) for a, b in ((0, 3), (3, 4), (4, 30), (30, 60))
            ]
            again = whole if when == AFTER else clone(live)
            expected = y if when == AFTER else again.run(x, d).outputs
            assert np.array_equal(np.hstack(parts), expected)
            sent, at_once = (
                live.report_.sent,
                again.report_.sent,
            )  # of which a run has one number more: of its samples
            assert (sent.rounds, sent.messages) == (at_once.rounds, at_once.messages)

    def test_one_sample_at_a_time_and_after_a_run(self):
        x, d = wave(6, 40)
        whole, live = (
            filter_of("rls", network=SimulatedNetwork(GRAPH), threshold=0.01) for _ in range(2)
        )
        y = whole.run(x, d).outputs
        live.run(x[:, :10], d[:, :10])
        steps = [live.step(x[:, n], d[:, n]) for n in range(10, 40)]
        assert steps[0].shape == (6,)
        close(np.stack(steps, axis=1), y[:, 10:], 1e-12)
        assert live.report_.iterations == 40
        assert "kept silent" in str(live.report_)

    def test_one_agent_takes_numbers_and_rows(self):
        x, d = wave(1, 12)
        y = LMSFilter().run(x[0], d[0]).outputs[0]
        model = LMSFilter()
        assert np.shape(model.step(x[0, 0], d[0, 0])) == ()
        assert np.array_equal(model.step(x[0, 1:], d[0, 1:]), y[1:])

    def test_many_agents(self):
        x, d = wave(210, 20)
        many, exact = (
            filter_of("nlms", network=SimulatedNetwork(graphs.ring(210), exact_order=e))
            for e in (0, 1)
        )
        close(many.run(x, d).outputs, exact.run(x, d).outputs)

    def test_many_agents_that_ask_for_spans(self):
        class Compiled(SimulatedNetwork):
            def exchange(self, outbox, to=None):
                raise AssertionError("a round for each neighbor takes long")

        x, d = wave(70, 4)
        compiled, exact = (
            Compiled(graphs.ring(70)),
            SimulatedNetwork(graphs.ring(70), exact_order=True),
        )
        runs = [
            filter_of("lms", network=network, exchange="span").run(x, d)
            for network in (compiled, exact)
        ]
        close(runs[0].outputs, runs[1].outputs)
        assert runs[0].sent == runs[1].sent

    def test_lost_messages(self):
        x, d = wave(6, 300)
        lossy = SimulatedNetwork(GRAPH, faults=Faults(loss=0.2, seed=0))
        errors = filter_of("rls", network=lossy).run(x, d).mse
        alone = filter_of("rls", network=SimulatedNetwork(GRAPH), cooperation="none").run(x, d).mse
        assert errors[:, 100:].mean() < alone[:, 100:].mean()
        for settings in ({"exchange": "span", "update": "lms"}, {"threshold": 0.1}):
            with pytest.raises(NetworkError, match="loses some"):
                SplineFilter(network=lossy, **settings).run(x, d)


class TestCensoring:
    def test_a_threshold_of_zero_is_plain_mixing(self):
        x, d = wave(6, 200)
        plain, all_speak = (
            filter_of("rls", network=SimulatedNetwork(GRAPH), threshold=t) for t in (None, 0.0)
        )
        close(all_speak.run(x, d).outputs, plain.run(x, d).outputs, 1e-10)

    def test_a_high_threshold_silences_all_from_the_start(self):
        x, d = wave(6, 50)
        model = filter_of("lms", network=SimulatedNetwork(GRAPH), threshold=0.9)
        run = model.run(x, d)
        alone = filter_of("lms", network=SimulatedNetwork(GRAPH), cooperation="none").run(x, d)
        close(run.outputs, alone.outputs)
        assert "kept silent 300 of 300" in str(model.report_)

    def test_fewer_messages_keep_most_of_the_gain(self):
        system = wiener(agents=10, samples=3000)
        network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0))
        model = SplineFilter(update="nlms", step_size=0.03, spline_step_size=0.2, network=network)
        runs = {
            t: clone(model).set_params(threshold=t).run(system.x, system.d) for t in (None, 0.03)
        }
        alone = clone(model).set_params(cooperation="none").run(system.x, system.d)
        excess = [
            decibels(run.excess(system.clean), 500)[-1] for run in (runs[None], runs[0.03], alone)
        ]
        assert excess[0] < excess[1] < excess[2] - 1.0
        assert runs[0.03].sent.messages < 0.7 * runs[None].sent.messages
