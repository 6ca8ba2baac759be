"""ESNRegressor.partial_fit: sequences that run on from call to call, learned by every learner;
saved and taken up.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import ESNRegressor, SimulatedNetwork, graphs
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import DataError, InputError, NetworkError
from peerlearn.models import archive
from peerlearn.models.stream_archive import resume_stream, save_stream
from tests.support.archives import changed
from tests.support.readout_problems import distance
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
RING = graphs.ring(4)
FEEDBACK = {"feedback_scaling": 0.4, "teacher_scaling": 0.3, "leak": 0.7}


def signals(length):
    """What four sensors see: a random walk each, and what it was two samples before times what it
    is.
    """
    x = [np.sin(np.cumsum(RNG.normal(0.2, 0.3, length)))[:, None] for _ in range(4)]
    return x, [one[:, 0] * np.concatenate([[0, 0], one[:-2, 0]]) for one in x]


X, Y = signals(120)


def chunks(sizes, X=X, Y=Y):
    """The next samples of each agent, so many at agent k in call n: sizes[n][k]."""
    ends = np.cumsum(sizes, axis=0)
    for n, here in enumerate(sizes):
        yield [
            (X[k][ends[n][k] - m : ends[n][k]], Y[k][ends[n][k] - m : ends[n][k]])
            for k, m in enumerate(here)
        ]


def streamed(sizes, **settings):
    options = {
        "n_reservoir": 15,
        "washout": 10,
        "alpha": 0.1,
        "random_state": 0,
        "network": SimulatedNetwork(RING),
    }
    model = ESNRegressor(**options | settings)
    for shares in chunks(sizes):
        model.partial_fit(shares)
    return model


RAGGED = [
    (7, 1, 0, 30),
    (0, 0, 0, 0),
    (1, 21, 6, 10),
    (60, 8, 60, 3),
    (52, 90, 54, 77),
]  # all of the 120 samples
STATES = ("reservoir", "teacher", "samples", "largest")


@pytest.mark.parametrize("settings", [{}, FEEDBACK, {"noise": 1e-3}, {"washout": 0}], ids=str)
def test_exactly_what_fit_finds_however_samples_are_cut(settings):
    stream = streamed(RAGGED, stream="exact", **settings)
    fitted = ESNRegressor(
        15, **{"washout": 10, **settings}, alpha=0.1, random_state=0, network=SimulatedNetwork(RING)
    )
    fitted.fit([*zip(X, Y, strict=True)])
    assert distance(stream.coefficients_, fitted.coefficients_[0]) < 1e-8
    if not stream.noise:  # which is in the state of a stream
        np.testing.assert_allclose(stream.forecast(5), fitted.forecast(5), atol=1e-8)
    assert "a stream of 480 rows so far" in stream.report_.note


@pytest.mark.parametrize("learner", list(learners()))
def test_every_learner(learner):
    """One sample at a time, or many: the same states, so that only the learner's own ways
    differ.
    """
    fine = streamed([(1,) * 4] * 40, stream=learner, noise=1e-3, **FEEDBACK)
    coarse = streamed([(40,) * 4], stream=learner, noise=1e-3, **FEEDBACK)
    for name in STATES:
        np.testing.assert_allclose(fine._stream.state[name], coarse._stream.state[name], atol=1e-12)
    assert np.isfinite(fine.coefficients_).all()
    assert np.abs(fine.coefficients_).max() > 0


@pytest.mark.parametrize(("learner", "gap"), [("consensus", 1.15), ("rls", 1.3), ("exact", 1.0001)])
def test_a_long_stream_comes_close_to_fit(learner, gap):
    x, d = signals(1500)
    settings = {
        "n_reservoir": 30,
        "washout": 20,
        "random_state": 0,
        "network": SimulatedNetwork(RING),
    }
    model = ESNRegressor(**settings, stream=learner)
    errors = []
    for shares in chunks([(50,) * 4] * 30, x, d):
        model.partial_fit(shares)
        errors.append(model.agent_nrmse(x, d).max())
    fitted = ESNRegressor(**settings).fit([*zip(x, d, strict=True)]).nrmse(x, d)
    assert errors[0] > errors[-1]
    assert errors[-1] < gap * fitted


def test_the_washout_counts_samples_not_calls():
    model = streamed([(4, 4, 4, 4)] * 2)
    assert not model.coefficients_.any()
    assert model.partial_fit(
        [(X[k][8 : 10 + (k == 2)], Y[k][8 : 10 + (k == 2)]) for k in range(4)]
    ).coefficients_.any()


def test_an_agent_that_has_seen_nothing_has_nothing_to_go_on_from(tmp_path):
    model = streamed([(0, 30, 20, 40)], stream="exact")
    archive.save(model, tmp_path / "m.npz")
    loaded = archive.load(tmp_path / "m.npz").model
    for each in (model, loaded):
        with pytest.raises(
            DataError, match=r"the first hosted agent has no samples yet.*call forecast\(n, X\)"
        ):
            each.forecast(5)
    assert np.array_equal(loaded.forecast(5, X[1], Y[1]), model.forecast(5, X[1], Y[1]))
    assert np.array_equal(loaded.predict(X[1]), model.predict(X[1]))


def test_outputs_are_far_only_from_the_targets_of_all_agents(tmp_path):
    """The first hosted agent has seen one sample, of nearly nothing."""
    model = streamed([(0, 60, 60, 60)], stream="exact")
    still = [
        (X[0][:1] * 0, Y[0][:1] * 0 + 1e-9),
        *((X[k][60:70], Y[k][60:70]) for k in range(1, 4)),
    ]
    model.partial_fit(still)
    assert 1e-7 < np.abs(model.forecast(5)).max() < 10
    archive.save(model, tmp_path / "m.npz")
    assert np.array_equal(archive.load(tmp_path / "m.npz").model.forecast(5), model.forecast(5))


def test_agents_apart_learn_as_they_do_together():
    together = streamed(RAGGED, **FEEDBACK, noise=1e-3)

    def alone(network, k):
        model = ESNRegressor(
            15, washout=10, alpha=0.1, random_state=0, network=network, **FEEDBACK, noise=1e-3
        )
        for shares in chunks(RAGGED):
            model.partial_fit(*shares[k])
        return model

    for k, own in enumerate(run_apart(RING, alone)):
        np.testing.assert_allclose(own.coefficients_[0], together.coefficients_[k], atol=1e-9)


def test_a_refused_chunk_changes_nothing():
    model, untouched = (streamed(RAGGED[:3], **FEEDBACK, noise=1e-3) for _ in range(2))
    rounds = model.network.ledger.rounds
    bad = [(x[:3], y[:3].copy()) for x, y in zip(X, Y, strict=True)]
    bad[2][1][1] = np.nan
    for shares, sentence in [
        (bad, "the share of agent 2: y has NaN .* the first is time 1"),
        (
            [(x[:3], y[:2]) for x, y in zip(X, Y, strict=True)],
            "the share of agent 0: X has 3 samples and y has 2",
        ),
        ([(np.hstack([x, x])[:3], y[:3]) for x, y in zip(X, Y, strict=True)], "X has 2 features"),
        (
            [(x[:3], np.stack([y, y], axis=1)[:3]) for x, y in zip(X, Y, strict=True)],
            r"y has shape \(3, 2\), but earlier",
        ),
    ]:
        with pytest.raises(DataError, match=sentence):
            model.partial_fit(shares)
    assert model.network.ledger.rounds == rounds
    for each in (model, untouched):
        each.partial_fit([(X[k][:4], Y[k][:4]) for k in range(4)])
    assert np.array_equal(model.coefficients_, untouched.coefficients_)


def test_a_network_that_fails_leaves_the_states_where_they_were(monkeypatch):
    model, untouched = (streamed(RAGGED[:3], stream="rls") for _ in range(2))
    shares = [(X[k][:4], Y[k][:4]) for k in range(4)]

    def fails(x):
        raise NetworkError("the link to agent 1 is down")

    with monkeypatch.context() as broken:
        broken.setattr(model.network, "mix", fails)
        with pytest.raises(NetworkError):
            model.partial_fit(shares)
    for each in (model, untouched):
        each.partial_fit(shares)
    assert np.array_equal(model.coefficients_, untouched.coefficients_)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"penalty": "lasso"}, "a stream needs penalty='ridge', not 'lasso'"),
        ({"alpha": 0.0}, "a stream needs alpha above 0"),
        ({"stream": "newton"}, "stream 'newton' is not known"),
        ({"washout": -1}, "washout"),
    ],
)
def test_settings_that_no_stream_can_have(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        streamed([(5,) * 4], **settings)


def test_settings_stay_while_a_stream_is_under_way():
    model = streamed([(5,) * 4])
    with pytest.raises(
        InputError, match=r"washout was changed from 10 to 3 while a stream is under way"
    ):
        model.set_params(washout=3).partial_fit([(X[k][5:6], Y[k][5:6]) for k in range(4)])


def test_fit_ends_a_stream_and_a_stream_begins_anew():
    model = streamed([(30,) * 4])
    model.fit([*zip(X, Y, strict=True)])
    assert not hasattr(model, "_stream")
    with pytest.warns(UserWarning, match="partial_fit begins a stream of its own"):
        model.partial_fit([(X[k][:30], Y[k][:30]) for k in range(4)])
    assert np.array_equal(model.coefficients_, streamed([(30,) * 4]).coefficients_)


ALIKE = {  # what all agents must have alike: two values, and how it is named
    "n_reservoir": (8, 9, "n_reservoir, from 8 to 9"),
    "spectral_radius": (0.9, 0.8, "spectral_radius, from 0.8 to 0.9"),
    "density": (0.25, 0.5, "density, from 0.25 to 0.5"),
    "input_scaling": (0.5, 0.6, "input_scaling, from 0.5 to 0.6"),
    "feedback_scaling": (0.0, 0.1, "feedback_scaling, from 0 to 0.1"),
    "teacher_scaling": (1.0, 0.5, "teacher_scaling, from 0.5 to 1"),
    "leak": (1.0, 0.5, "leak, from 0.5 to 1"),
    "noise": (0.0, 1e-3, "noise, from 0 to 0.001"),
    "washout": (10, 11, "washout, from 10 to 11"),
    "alpha": (0.1, 0.2, "alpha, from 0.1 to 0.2"),
    "penalty": ("ridge", "lasso", "penalty"),
    "fit_intercept": (True, False, "fit_intercept, from 0 to 1"),
    "random_state": (0, 1, "the seed of the reservoir"),
    "solver": ("gram", "cg", "solver"),
    "stream": ("rls", "exact", "stream"),
}


def test_nothing_that_agents_must_have_alike_is_left_out():
    assert {*ALIKE, "network"} == {*ESNRegressor().get_params(deep=False)}


@pytest.mark.parametrize(
    ("call", "name"),
    [("fit", name) for name in ALIKE if name != "stream"]
    + [
        ("partial_fit", name)
        for name in ALIKE
        if name not in ("solver", "penalty", "fit_intercept")
    ],
)
def test_agents_that_do_not_fit_together_all_say_so(call, name):
    *values, named = ALIKE[name]

    def caught(network, k):
        model = ESNRegressor(
            **{"n_reservoir": 8, "random_state": 0, name: values[k == 2]}, network=network
        )
        with pytest.raises(InputError) as error:
            getattr(model, call)(X[k], Y[k])
        return str(error.value)

    said = set(run_apart(RING, caught))
    assert len(said) == 1
    assert said.pop().startswith(f"agents disagree on {named}")


class TestSaved:
    @pytest.mark.parametrize("learner", list(learners()))
    def test_goes_on_with_the_same_bits(self, tmp_path, learner):
        settings = {"stream": learner, "noise": 1e-3, **FEEDBACK}
        model = streamed(RAGGED[:3], **settings)
        save_stream(model, tmp_path / "s.npz")
        again = resume_stream(tmp_path / "s.npz", SimulatedNetwork(RING))
        for shares in list(chunks(RAGGED))[3:]:
            model.partial_fit(shares)
            again.partial_fit(shares)
        assert np.array_equal(model.coefficients_, again.coefficients_)
        assert np.array_equal(model.forecast(3), again.forecast(3))
        assert again.report_.note == model.report_.note

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"drop": ["W_fb"]}, "it has no array 'W_fb'"),
            ({"W": np.zeros((15, 14))}, r"W has shape \(15, 14\), which is not \(15, 15\)"),
            ({"drop": ["state teacher"]}, "it has no array 'state teacher'"),
            (
                {"state reservoir": np.zeros((4, 14))},
                r"state reservoir has shape \(4, 14\), which is not \(4, 15\)",
            ),
            ({"state samples": np.full(4, np.nan)}, "state samples has NaN or infinite values"),
            (
                {"state samples": np.array([1.0, -5, 1, 1])},
                "state samples are not whole numbers of 0 or more",
            ),
            (
                {"state samples": np.array([1.0, 0.5, 1, 1])},
                "state samples are not whole numbers of 0 or more",
            ),
            ({"state samples": np.full(4, 1e300)}, r"state samples has values up to 1\.0e\+300"),
            ({"state largest": np.array([1.0, 1, 1, -1])}, "state largest is below 0"),
            (
                {"state teacher": np.full((4, 1), 1e200)},
                r"state teacher has values up to 1\.0e\+200",
            ),
            (
                {"state reservoir": np.full((4, 15), -1e200)},
                r"state reservoir has values up to 1\.0e\+200",
            ),
            ({"about": {"seed": "x"}}, "its seed is 'x', which is no int"),
            ({"about": {"seed": -1}}, "its seed is -1, which is not between"),
            (
                {"about": {"parameters": {"alpha": 0.1, "noise": "loud"}}},
                "noise must be an instance of",
            ),
        ],
    )
    def test_files_that_do_not_fit(self, tmp_path, change, sentence):
        save_stream(streamed(RAGGED[:3], **FEEDBACK), tmp_path / "s.npz")
        path = changed(tmp_path / "s.npz", tmp_path / "t.npz", **change)
        with pytest.raises(
            DataError, match=rf"t\.npz holds no stream that can be resumed, because .*{sentence}"
        ):
            resume_stream(path, SimulatedNetwork(RING))
