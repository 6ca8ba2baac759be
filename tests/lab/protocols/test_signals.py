"""Runs over signals against filters written by hand: what they hear, how they step, and how powers
are averaged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, graphs
from peerlearn.data import wiener
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net, protocol_named
from peerlearn.local.splines import Spline

AGENTS, SAMPLES = 4, 620
STEPS = (0.01, 0.05)
PROTOCOL = {"steps": STEPS, "window": 50, "tail": 200, "early": 560}
ENTRY = Data("strong", "wiener", {"samples": SAMPLES, "nonlinearity": "strong", "order": 3})
MODELS = (
    Model("NC-LMS", "LMSFilter", "alone", {"order": 3}),
    Model(
        "D-SAF",
        "SplineFilter",
        settings={"order": 3, "update": "lms", "cooperation": "combine-then-adapt"},
    ),
    Model("RLS", "SplineFilter", settings={"order": 3}),
    Model(
        "still",
        "SplineFilter",
        settings={"order": 3, "update": "lms", "step_size": 0.0, "spline_step_size": 0.0},
    ),
)


def trial_of(name, repetition=0, entry=ENTRY, **more):
    networks = (Net("random", "erdos_renyi", AGENTS, {"p": 0.6, "seed": 3}),)
    given = {"protocol": protocol_named("signals", **PROTOCOL), "repetitions": 3, "seed": 5}
    trials = Comparison((entry,), MODELS, networks, **(given | more)).trials()
    return next(t for t in trials if t.model.name == name and t.repetition == repetition)


def run(name, **more):
    return (trial := trial_of(name, **more)).comparison.protocol.run(trial)


def heard(repetition=0, name="NC-LMS", samples=SAMPLES):
    seed = trial_of(name).seed("data")
    return wiener(AGENTS, samples, order=3, nonlinearity="strong", seed=seed, signals=repetition)


def steps(name="NC-LMS"):
    return np.random.default_rng(trial_of(name).seed("data")).uniform(*STEPS, AGENTS)


def filtered(model, repetition=0):
    signals = heard(repetition)
    truth = (
        signals.coefficients if isinstance(model, LMSFilter) else (signals.coefficients, signals.f0)
    )
    return model.run(signals.x, signals.d, truth=truth), signals


def network():
    return SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.6, seed=3))


def decibels(powers):
    return 10 * np.log10(np.mean(powers))


def lone_lms(x, d, mu):
    """Errors of one agent, from the formula alone."""
    w, buffer, errors = np.array([1.0, 0.0, 0.0]), np.zeros(3), []
    for now, wanted in zip(x, d, strict=True):
        buffer = np.array([now, *buffer[:2]])
        errors.append(wanted - w @ buffer)
        w = w + mu * errors[-1] * buffer
    return np.array(errors)


@pytest.mark.parametrize("repetition", [0, 2])
def test_a_lone_filter_is_the_one_of_the_formula(repetition):
    outcome, signals = run("NC-LMS", repetition=repetition), heard(repetition)
    errors = np.array([lone_lms(*each) for each in zip(signals.x, signals.d, steps(), strict=True)])
    assert outcome.values["mse_db"] == pytest.approx(decibels(errors[:, -200:] ** 2), abs=1e-9)
    excess = (signals.d - errors - signals.clean) ** 2
    assert outcome.values["excess_db"] == pytest.approx(decibels(excess[:, -200:]), abs=1e-9)
    assert outcome.values["early_excess_db"] == pytest.approx(decibels(excess[:, 60:560]), abs=1e-9)
    assert outcome.values["worst_excess_db"] == pytest.approx(
        max(map(decibels, excess[:, -200:])), abs=1e-9
    )
    np.testing.assert_allclose(
        outcome.agents["mse_db"], [decibels(own[-200:] ** 2) for own in errors], atol=1e-9
    )
    at, mse = outcome.curves["mse"]
    assert at == [50.0 * n for n in range(1, 13)]  # the last 20 samples fill no window
    np.testing.assert_allclose(
        mse, [np.mean(errors[:, n : n + 50] ** 2) for n in range(0, 600, 50)], rtol=1e-9
    )
    assert outcome.sent.messages == 0


def test_powers_are_averaged_and_decibels_are_not():
    outcome = run("RLS")
    assert outcome.values["mse_db"] > np.mean(outcome.agents["mse_db"]) + 0.1
    assert outcome.values["mse_db"] == pytest.approx(
        decibels(10 ** (np.array(outcome.agents["mse_db"]) / 10))
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "D-SAF",
            {
                "update": "lms",
                "step_size": steps(),
                "spline_step_size": steps(),
                "cooperation": "combine-then-adapt",
            },
        ),
        ("RLS", {}),
    ],
)
def test_over_a_network_it_is_the_run_by_hand(name, settings):
    outcome = run(name)
    found, signals = filtered(model := SplineFilter(3, network=network(), **settings))
    for measure, powers in {
        "mse_db": found.mse,
        "excess_db": found.excess(signals.clean),
        "msd_db": found.msd,
        "msd_spline_db": found.msd_spline,
    }.items():
        assert outcome.values[measure] == pytest.approx(decibels(powers[:, -200:]), abs=1e-9)
    assert outcome.sent == found.sent
    assert outcome.sent.bytes > 0
    worst = found.excess(signals.clean)[:, -200:].mean(axis=1).argmax()
    w, w0 = model.coefficients_[worst], signals.coefficients
    scale = (w @ w) / (w @ w0)
    s, phi = outcome.curves["worst_spline"]
    expected = Spline(2.2, 0.2).value(scale * np.array(s), model.control_points_[worst])
    np.testing.assert_allclose(phi, expected, atol=1e-9)


@pytest.mark.parametrize(("early", "first"), [(100, 0), (560, 60)])
def test_the_fastest_agent_is_the_one_with_the_smallest_early_error(early, first):
    outcome = run("D-SAF", protocol=protocol_named("signals", **PROTOCOL | {"early": early}))
    settings = {
        "update": "lms",
        "step_size": steps(),
        "spline_step_size": steps(),
        "cooperation": "combine-then-adapt",
    }
    found, signals = filtered(SplineFilter(3, network=network(), **settings))
    fastest = (
        found.excess(signals.clean)[:, first:early].mean(axis=1).argmin()
    )  # another one in each of the two
    for name, powers in {"msd": found.msd, "msd_spline": found.msd_spline}.items():
        at, own = outcome.curves[f"fastest_{name}"]
        assert at == outcome.curves[name][0]
        np.testing.assert_allclose(
            own, powers[fastest, :600].reshape(12, 50).mean(axis=1), rtol=1e-9
        )


def test_a_filter_that_does_not_learn_shows_the_identity():
    outcome, signals = run("still"), heard()
    s, best = map(np.array, outcome.curves["best_spline"])
    np.testing.assert_allclose(
        best, s / signals.coefficients[0], atol=1e-9
    )  # a w = w0[0] (1, 0, 0) is nearest w0
    away = (s / signals.coefficients[0] - signals.f0(s)) ** 2
    np.testing.assert_allclose(outcome.curves["spline_deviation"][1], away, atol=1e-9)
    assert outcome.values["excess_db"] == pytest.approx(
        decibels((signals.x - signals.clean)[:, -200:] ** 2), abs=1e-9
    )


def test_a_linear_filter_has_no_spline():
    outcome = run("NC-LMS")
    assert set(outcome.curves) == {"mse", "excess", "msd", "fastest_msd"}
    assert "msd_spline_db" not in outcome.values


def test_recordings_differ_and_the_system_does_not():
    first, second = heard(0), heard(1)
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    assert run("RLS").values != run("RLS", repetition=1).values
    assert run("RLS").values == run("RLS").values


@pytest.mark.parametrize(
    "wrong", [{"steps": (0.1,)}, {"steps": (0.2, 0.1)}, {"window": 0}, {"tail": 2.5}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        protocol_named("signals", **wrong)


def test_what_is_no_signal_or_no_filter_is_refused():
    protocol = protocol_named("signals", **PROTOCOL)
    assert not protocol.refuses(ENTRY, MODELS[0])
    assert "wiener" in protocol.refuses(Data("g50c"), MODELS[0])
    assert "leave out scale" in protocol.refuses(replace(ENTRY, scale="standard"), MODELS[0])
    assert "option agents" in protocol.refuses(replace(ENTRY, options={"agents": 4}), MODELS[0])
    assert "no filter" in protocol.refuses(ENTRY, Model("R", "RVFL"))
    assert "agents" in protocol.refuses(ENTRY, Model("C", "LMSFilter", "centralised"))
    assert "500 samples" in protocol.refuses(replace(ENTRY, options={"samples": 500}), MODELS[0])
