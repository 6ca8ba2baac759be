"""When filters diverge, whom they name, and what they advise; and what is no divergence."""

from __future__ import annotations

import re

import numpy as np
import pytest

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, graphs
from peerlearn.algorithms.filtering.divergence import explain_divergence
from peerlearn.algorithms.filtering.kernels import LMS, NLMS, RLS
from peerlearn.algorithms.filtering.task import Design
from peerlearn.errors import InputError
from peerlearn.local.splines import Spline
from tests.support.filters_by_hand import wave
from tests.support.split_network import run_apart

GRAPH = graphs.erdos_renyi(6, 0.5, seed=2)
NETWORK = SimulatedNetwork(GRAPH)
NEIGHBOR = "it may be that a neighbor's signals or steps are too large"


class TestDivergence:
    x, d = wave(6, 3000, seed=1)
    steps = np.array([0.01, 0.01, 0.01, 1.5, 0.01, 0.01])  # agent 3 is too quick

    def sentence(self, kind, network, hosted=slice(None), **settings):
        steps = {
            "step_size": self.steps[hosted],
            **({} if kind is LMSFilter else {"spline_step_size": 0.01}),
        }
        model = kind(update="lms", network=network, **(steps | settings))
        with pytest.raises(InputError, match="diverged") as raised:
            model.run(self.x[hosted], self.d[hosted])
        assert not hasattr(model, "coefficients_")
        return str(raised.value)

    @pytest.mark.parametrize("kind", [SplineFilter, LMSFilter])
    @pytest.mark.parametrize("settings", [{}, {"every": 5}, {"cooperation": "none"}])
    def test_names_the_agent_alike_on_every_network(self, kind, settings):
        compiled, exact = SimulatedNetwork(GRAPH), SimulatedNetwork(GRAPH, exact_order=True)
        says = self.sentence(kind, compiled, **settings)
        assert says.startswith("the filter of agent 3 diverged at sample ")
        assert self.sentence(kind, exact, **settings) == says
        assert compiled.ledger.mark() == exact.ledger.mark()

        def apart(network, k):
            quick = {} if kind is LMSFilter else {"spline_step_size": 0.01}
            kind(update="lms", network=network, step_size=self.steps[k], **quick, **settings).run(
                self.x[k], self.d[k]
            )

        with pytest.raises(InputError, match=re.escape(says)):
            run_apart(GRAPH, apart)

    def test_suggested_steps_do_not_diverge(self):
        (step,) = self.suggested(self.sentence(LMSFilter, NETWORK))
        np.testing.assert_allclose(step, 1 / (5 * np.abs(self.x[3]).max() ** 2), rtol=0.05)
        LMSFilter(step_size=step, network=NETWORK).run(self.x, self.d)
        step, spline_step = self.suggested(
            self.sentence(SplineFilter, NETWORK, spline_step_size=1.5)
        )
        assert 0 < spline_step < 0.5
        SplineFilter(
            update="lms", step_size=step, spline_step_size=spline_step, network=NETWORK
        ).run(self.x, self.d)

    def suggested(self, says):
        return [float(step) for step in re.findall(r"step_size of (\S+) or less", says)]

    def test_an_outlier_is_no_divergence(self):
        x = self.x[0].copy()
        x[500] = 100.0
        LMSFilter(step_size=0.01).run(x, self.d[0])

    def test_a_loud_stretch_is_no_divergence(self):
        rng = np.random.default_rng(0)
        x = rng.standard_normal(3000)
        x[500:520] = 8 * np.sign(
            x[500:520]
        )  # every share is 3.2 there, and what was learned is right
        d = np.convolve(x, [0.5, -0.3])[:3000] + 0.1 * rng.standard_normal(3000)
        errors = LMSFilter(step_size=0.01).run(x, d).mse[0]
        assert errors[-500:].mean() < 0.012

    def test_a_long_sound_past_excuses_nothing(self):
        model = LMSFilter(order=1, step_size=0.1)
        model.run(np.ones(1000), np.full(1000, 0.5))
        # e = -1, 1.5, -2.25: the third is beyond X + D, and the strain beyond 1
        with pytest.raises(InputError, match="diverged at sample 1002,"):
            model.set_params(step_size=2.5).step(np.ones(50), np.full(50, -0.5))

    def test_coefficients_are_watched_wherever_they_change(self):
        still = {"update": "lms", "step_size": 0.0, "spline_step_size": 0.0}
        for settings, j in (
            (still, 5 + 10),
            ({"update": "rls"}, 5 + 20),
        ):  # in the span of 0; and far from it
            model = SplineFilter(scale=False, **settings)
            model.run([1, 0, 0, 0, 0], [1, 0, 0, 0, 0])
            model._filter_state.state["theta"][0, j] = 1e7
            with pytest.raises(InputError, match="diverged at sample 5,"):
                model.step(0.0, 0.0)

    def test_sizes_are_those_of_all_signals_so_far(self):
        model = LMSFilter(update="rls")
        x = 0.1 * self.x[0]
        model.run(x, 1e6 * np.convolve(x, [1e2, 5e1])[:3000])
        model.step(
            x[:5], np.zeros(5)
        )  # a coefficient of 1e8 would be none of signals that are all so small

    def test_one_agent_in_silence(self):
        for x in (np.zeros(50), 1e-200 * self.x[0], 1e-160 * self.x[0]):
            with pytest.raises(
                InputError, match=r"give a spline_step_size of 0\.5 or less, not 3, or"
            ) as raised:
                SplineFilter(update="lms", spline_step_size=3.0, scale=False).run(
                    x, np.ones(len(x))
                )
            assert NEIGHBOR not in str(raised.value)
        LMSFilter().run(1e-310 * self.x[0], self.d[0])

    @pytest.mark.parametrize("cooperation", ["adapt-then-combine", "none"])
    def test_trouble_that_came_from_a_neighbor(self, cooperation):
        d = self.d.copy()
        d[3] *= 1e12
        alone = cooperation == "none"
        with pytest.raises(InputError, match=f"agent {3 if alone else 0} diverged") as raised:
            SplineFilter(update="lms", network=NETWORK, cooperation=cooperation, scale=False).run(
                self.x, d
            )
        assert str(raised.value).endswith(NEIGHBOR) != alone

    def test_a_linear_filter_under_strain_has_itself_to_blame(self):
        assert NEIGHBOR not in self.sentence(
            LMSFilter, NETWORK, step_size=[0.01] * 3 + [0.3] + [0.01] * 2
        )
        assert self.sentence(SplineFilter, NETWORK).endswith(
            NEIGHBOR
        )  # its slopes are its neighbors' as well

    @pytest.mark.parametrize(
        ("update", "spline", "forgetting", "says"),
        [
            (
                LMS,
                True,
                1.0,
                "its steps are small enough for inputs up to 2, but its spline got too steep; give",
            ),
            (
                LMS,
                False,
                1.0,
                (
                    "its steps are small enough for inputs up to 2; give smaller ones, or "
                    "update='nlms'"
                ),
            ),
            (
                NLMS,
                True,
                1.0,
                "since: give a step_size and a spline_step_size well below 1, leave out",
            ),
            (NLMS, False, 1.0, "since: give a step_size well below 1, leave out"),
            (RLS, True, 1.0, "since: scale its signals to the size of the knots$"),
            (RLS, False, 0.9, "since: scale its signals, or bring forgetting nearer to 1$"),
        ],
    )
    def test_sentences_name_what_the_filter_has(self, update, spline, forgetting, says):
        design = Design(5, 23 if spline else 0, 5.0, update, forgetting)
        curve, steps = Spline(2.2, 0.2) if spline else None, np.array([1e-3, 1e-3])
        for by_neighbor in (False, True):
            sentence = str(
                explain_divergence(4, 7, design, curve, 2.0, steps, by_neighbor=by_neighbor)
            )
            assert re.search(says, sentence.removesuffix(f"; {NEIGHBOR}"))
            assert sentence.endswith(NEIGHBOR) == by_neighbor

    @pytest.mark.parametrize("exact", [False, True])
    def test_nothing_of_it_reaches_others(self, exact):
        network = SimulatedNetwork(GRAPH, exact_order=exact)
        model = LMSFilter(step_size=0.01, network=network, every=100)
        model.step(self.x[:, :450], self.d[:, :450])
        before, rounds = model.coefficients_, network.ledger.rounds
        with pytest.raises(InputError, match=r"agent 3 diverged at sample 4\d\d"):
            model.set_params(step_size=self.steps).step(self.x[:, 450:], self.d[:, 450:])
        assert network.ledger.rounds == rounds
        assert np.array_equal(model.coefficients_, before)

    def test_a_filter_of_large_signals_is_sound(self):
        model = LMSFilter(update="rls")
        model.run(0.1 * self.x[0], 1e6 * np.convolve(self.x[0], [1.0, 0.5])[:3000])
        np.testing.assert_allclose(model.coefficients_[0, :2], [1e7, 5e6], rtol=1e-3)

    def test_suggested_steps_are_those_of_scaled_signals(self):
        model = SplineFilter(update="lms", step_size=1.5, network=NETWORK)
        found = []
        for size in (1.0, 100.0):
            with pytest.raises(InputError, match="diverged") as raised:
                model.run(size * self.x, size * self.d)
            found.append(self.suggested(str(raised.value)))
        assert found[0] == found[1]

    def test_recursions_say_what_they_can(self):
        with pytest.raises(InputError, match="scale its signals to the size of the knots"):
            SplineFilter().run(1e60 * self.x[0], 1e80 * self.d[0])
