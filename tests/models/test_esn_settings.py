"""ESNRegressor's settings: what is refused, before any message where no message is needed to tell,
and warned of.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import ADMM, ESNRegressor, SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.models import archive

RNG = np.random.default_rng(0)
RING = graphs.ring(4)
X = [RNG.uniform(-1, 1, (n, 2)) for n in (40, 90, 61, 33)]
Y = [np.column_stack([np.roll(x[:, 0], 1) * x[:, 1], x.sum(axis=1)]) for x in X]
SHARES = [*zip(X, Y, strict=True)]


WRONG = [
    ({"n_reservoir": 0}, "n_reservoir"),
    ({"washout": -1}, "washout"),
    ({"spectral_radius": -0.1}, "spectral_radius is -0.1: give a number from 0"),
    ({"spectral_radius": np.nan}, "spectral_radius is nan"),
    ({"density": 0.0}, "density is 0.0: give a number from 1e-100 to 1"),
    ({"density": 1.5}, "density is 1.5"),
    ({"leak": 0.0}, "leak is 0.0"),
    ({"leak": 1.01}, "leak is 1.01"),
    ({"input_scaling": np.inf}, "input_scaling is inf"),
    ({"feedback_scaling": -1.0}, "feedback_scaling is -1.0"),
    ({"teacher_scaling": 0.0}, "teacher_scaling is 0.0"),
    ({"noise": np.nan}, "noise is nan"),
    ({"n_reservoir": True}, "n_reservoir is True: give a whole number, 1 or more"),
    ({"n_reservoir": 2.0}, "n_reservoir is 2.0: give a whole number"),
    ({"washout": "abc"}, "washout is 'abc': give a whole number, 0 or more"),
    (
        {"alpha": None},
        "alpha, the weight of the penalty, must be a finite number of 0 or more, not None",
    ),
    ({"alpha": "1"}, "must be a finite number of 0 or more, not '1'"),
    ({"alpha": np.float32(np.inf)}, "must be a finite number of 0 or more"),
    ({"alpha": 10**400}, "must be a finite number of 0 or more"),
    ({"alpha": -1.0}, "alpha, the weight of the penalty, must be a finite number of 0 or more"),
    ({"penalty": "l2"}, "penalty is 'l2': choose one of ridge, lasso"),
    ({"solver": "newton"}, "solver 'newton' is not known"),
    ({"stream": "newton"}, "stream 'newton' is not known"),
    ({"network": "ring"}, "network must be a peerlearn Network"),
    (
        {"alpha": 0.0, "n_reservoir": 500},
        "samples of the whole network after the washout do not determine 503 coeff",
    ),
]


@pytest.mark.parametrize(("settings", "sentence"), WRONG, ids=str)
def test_wrong_settings(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        ESNRegressor(**{"random_state": 0, **settings}).fit(X, Y)


@pytest.mark.parametrize(
    ("radius", "sentence"), [(0, "forget at once"), (1.2, "states may never forget where they")]
)
def test_spectral_radii_that_are_warned_of(radius, sentence):
    with pytest.warns(UserWarning, match=f"with a spectral radius of {radius:g} .*{sentence}"):
        model = ESNRegressor(20, radius, random_state=0).fit(X, Y)
    assert np.abs(np.linalg.eigvals(model.reservoir_.W)).max() == pytest.approx(radius, abs=1e-9)
    assert np.isfinite(model.nrmse(X, Y))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"penalty": "lasso", "solver": "cg"},
            "ConjugateGradient solves ridge problems only: for a Lasso penalty use",
        ),
        ({"penalty": "lasso", "solver": "consensus"}, "Consensus solves ridge problems only"),
        (
            {"alpha": 0.0, "solver": ADMM()},
            "ADMM cannot tell whether the data determine the coefficients when alpha",
        ),
        ({"alpha": 0.0, "solver": "cg"}, "ConjugateGradient cannot tell whether"),
        ({"density": 1e-4}, "10 units of density 0.0001 were drawn without a loop"),
    ],
)
def test_what_no_solver_or_reservoir_can_do_is_said_before_the_first_message(settings, sentence):
    network = SimulatedNetwork(RING)
    with pytest.raises(InputError, match=sentence):
        ESNRegressor(**{"n_reservoir": 10, "random_state": 0, **settings}, network=network).fit(
            SHARES
        )
    assert network.ledger.rounds == 0


def test_a_stream_is_refused_a_reservoir_before_the_first_message():
    network = SimulatedNetwork(RING)
    with pytest.raises(InputError, match="were drawn without a loop"):
        ESNRegressor(10, density=1e-4, network=network, random_state=0).partial_fit(SHARES)
    assert network.ledger.rounds == 0


@pytest.mark.parametrize("solver", ["cg", "consensus", "admm"])
def test_alone_every_solver_is_the_same(solver):
    model = ESNRegressor(10, penalty="lasso", alpha=0.1, solver=solver, random_state=0).fit(X, Y)
    assert 0 < model.sparsity_ < 1


@pytest.mark.parametrize(
    ("samples", "said"), [(6, "the 6 samples .* do not determine 7 coefficients"), (7, None)]
)
def test_without_a_penalty_samples_must_be_as_many_as_coefficients(samples, said):
    model = ESNRegressor(5, alpha=0.0, random_state=0, input_scaling=2.0)
    if said is None:
        assert (
            model.fit(X[0][:samples, :1], Y[0][:samples]).score(X[0][:samples, :1], Y[0][:samples])
            > 1 - 1e-6
        )
        return
    with pytest.raises(DataError, match=said):
        model.fit(X[0][:samples, :1], Y[0][:samples])


def test_states_that_are_alike():
    still = [np.zeros_like(x) for x in X]
    with pytest.raises(
        DataError,
        match=r"linearly dependent.*raise alpha, or use fewer units \(n_hidden, or n_reserv",
    ):
        ESNRegressor(10, alpha=0.0, random_state=0).fit(still, Y)


def test_numbers_of_half_the_precision(tmp_path):
    names = (
        "spectral_radius",
        "density",
        "input_scaling",
        "feedback_scaling",
        "teacher_scaling",
        "leak",
        "alpha",
    )
    settings = dict(
        zip(names, np.array([0.9, 0.3, 0.4, 0.2, 0.7, 0.1, 0.01], dtype=np.float32), strict=True)
    )
    short, plain = (
        ESNRegressor(10, random_state=0, **{name: form(x) for name, x in settings.items()}).fit(
            X, Y
        )
        for form in (np.float32, float)
    )
    assert short.coefficients_.tobytes() == plain.coefficients_.tobytes()
    archive.save(short, tmp_path / "m.npz")
    assert np.array_equal(archive.load(tmp_path / "m.npz").model.forecast(5), plain.forecast(5))


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_a_warning_names_the_line_that_called(call):
    model = ESNRegressor(10, 1.2, random_state=0)
    with pytest.warns(UserWarning, match=r"with a spectral radius of 1\.2") as caught:
        getattr(model, call)(X[0], Y[0])
    assert [one.filename for one in caught] == [__file__]


def test_a_stream_after_a_fit_is_warned_of_where_it_begins():
    model = ESNRegressor(10, random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="partial_fit begins a stream of its own") as caught:
        model.partial_fit(X[0], Y[0])
    assert [one.filename for one in caught] == [__file__]
