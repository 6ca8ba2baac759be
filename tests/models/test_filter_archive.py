"""Filters that are saved and resumed: the same bits as if they had never stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from peerlearn import LMSFilter, RVFLClassifier, SimulatedNetwork, SplineFilter, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.models import archive
from peerlearn.models.stream_archive import resume_stream, save_stream
from tests.support.archives import changed
from tests.support.filters_by_hand import learned, wave

GRAPH = graphs.erdos_renyi(6, 0.5, seed=2)
X, D = wave(6, 600)
MODELS = {
    "rls": lambda network: SplineFilter(network=network),
    "seldom": lambda network: SplineFilter(every=7, threshold=0.01, network=network),
    "lms": lambda network: SplineFilter(
        update="lms", step_size=np.full(6, 0.01), exchange="span", network=network
    ),
    "linear": lambda network: LMSFilter(update="nlms", order=1, network=network),
    "linear rls": lambda network: LMSFilter(update="rls", network=network),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("stop", [1, 100, 128, 250, 530])
@pytest.mark.parametrize("name", MODELS)
def test_goes_on_as_if_never_stopped(name, stop, exact, tmp_path):
    path = tmp_path / "filter.npz"
    through = MODELS[name](SimulatedNetwork(GRAPH, exact_order=exact))
    through.step(X[:, :stop], D[:, :stop])
    save_stream(through, path)
    resumed = resume_stream(path, SimulatedNetwork(GRAPH, exact_order=exact))
    assert type(resumed) is type(through)
    assert np.array_equal(resumed.predict(X), through.predict(X))
    outputs = [model.step(X[:, stop:], D[:, stop:]) for model in (through, resumed)]
    assert outputs[0].tobytes() == outputs[1].tobytes()
    assert learned(resumed).tobytes() == learned(through).tobytes()
    assert str(resumed.report_) == str(through.report_)


def test_alone(tmp_path):
    model = SplineFilter()
    model.run(X[0], D[0])
    save_stream(model, tmp_path / "one.npz")
    resumed = resume_stream(tmp_path / "one.npz")
    assert resumed.step(X[1], D[1]).tobytes() == model.step(X[1], D[1]).tobytes()


@pytest.fixture
def saved(tmp_path):
    model = MODELS["rls"](SimulatedNetwork(GRAPH))
    model.run(X, D)
    path = tmp_path / "filter.npz"
    save_stream(model, path)
    return path


def parameters(path, **others):
    with np.load(path) as arrays:
        held = json.loads(arrays["about"].item())["parameters"]
    return {"parameters": held | others}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: {"about": parameters(p, order=10**15)}, "28 coefficients|29 coefficients"),
        (lambda p: {"about": parameters(p, order="five")}, "cannot be created"),
        (lambda p: {"about": parameters(p, knots=-1.0)}, "cannot be created"),
        (lambda p: {"about": parameters(p, update="kalman")}, "cannot be created"),
        (lambda p: {"about": parameters(p, colour=1)}, "it has the parameter 'colour'"),
        (lambda p: {"about": {"class": "Pipeline"}}, "its class is 'Pipeline'"),
        (lambda p: {"about": {"sent": {"rounds": "many"}}}, "'sent' are not valid"),
        (lambda p: {"about": {"sent": []}}, "its sent is"),
        (lambda p: {"state P": np.zeros((6, 2, 2))}, r"state P has shape \(6, 2, 2\)"),
        (lambda p: {"state clock": np.full(6, 0.5)}, "its clock is no number of samples"),
        (lambda p: {"state theta": np.full((6, 29), np.nan)}, "state theta has NaN"),
        (lambda p: {"drop": ["state watch"]}, "it has no array 'state watch'"),
    ],
)
def test_files_that_are_wrong_are_refused(saved, tmp_path, change, says):
    wrong = changed(saved, tmp_path / "wrong.npz", **change(saved))
    with pytest.raises(DataError, match=says):
        resume_stream(wrong, SimulatedNetwork(GRAPH))


def test_another_network_is_refused(saved):
    with pytest.raises(DataError, match="links or weights are not those of this network"):
        resume_stream(saved, SimulatedNetwork(graphs.ring(6)))


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="learned from no samples yet"):
        save_stream(SplineFilter(), tmp_path / "m.npz")
    model = LMSFilter()
    model.run(X[0], D[0])
    with pytest.raises(InputError, match="order was changed"):
        save_stream(model.set_params(order=3), tmp_path / "m.npz")
    with pytest.raises(InputError, match="call partial_fit first"):
        save_stream(RVFLClassifier(alpha=1.0, activation="sigmoid"), tmp_path / "m.npz")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_predicts_and_begins_anew(name, tmp_path):
    path = tmp_path / "model.npz"
    model = MODELS[name](SimulatedNetwork(GRAPH))
    with pytest.raises(NotFittedError, match="has learned from no samples yet"):
        archive.save(model, path)
    model.run(X, D)
    archive.save(model, path, columns=["pressure"])
    loaded = archive.load(path)
    expected = model.predict(np.tile(X[0], (6, 1)))[0]
    assert loaded.predict(X[0][:, None]).tobytes() == expected.tobytes()
    assert loaded.about["report"]["iterations"] == 600
    for refused in (lambda: loaded.model.report_, lambda: save_stream(loaded.model, path)):
        with pytest.raises(NotFittedError, match="loaded for predictions"):
            refused()
    archive.save(loaded.model, path)
    assert archive.load(path).predict(X[0][:, None]).tobytes() == expected.tobytes()
    fresh = clone(loaded.model)
    assert loaded.model.step(X[0], D[0]).tobytes() == fresh.step(X[0], D[0]).tobytes()
    assert loaded.model.report_.iterations == 600


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: {"about": parameters(p, order=10**15)}, "29 coefficients, but an order of 10"),
        (lambda p: {"about": parameters(p, bias=False)}, "29 coefficients, but an order of 5"),
        (lambda p: {"about": parameters(p, update="kalman")}, "cannot be created"),
        (lambda p: {"about": {"n_features": 2}}, "has 2 columns, and a signal is one"),
    ],
)
def test_a_model_file_is_not_trusted(change, says, tmp_path):
    path = tmp_path / "model.npz"
    model = MODELS["rls"](SimulatedNetwork(GRAPH))
    model.run(X, D)
    archive.save(model, path)
    with pytest.raises(DataError, match=says):
        archive.load(changed(path, tmp_path / "other.npz", **change(path)))
