"""What a class states is read everywhere: every model, found in the package, in files, at sites and
in comparisons.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from peerlearn import SimulatedNetwork, graphs
from peerlearn.errors import InputError
from peerlearn.lab import read
from peerlearn.models import archive
from peerlearn.models.base import NetworkModel
from peerlearn.models.registry import models, saved_models
from peerlearn.sites.training import (
    classifies,
    learns_in_order,
    make_model,
    may_lack_labels,
    read_model,
)
from peerlearn.testing import model_data
from peerlearn.testing.model_settings import SMALL, make_small
from peerlearn.toml_reader import TomlTable, toml
from tests.support.archives import tampered, usable_or_refused

DATA = {  # of comparisons
    "rows": {
        "classes": {"name": "iris"},
        "two classes": {"name": "g50c"},
        "numbers": {"name": "diabetes"},
    },
    "sequences": {"name": "n10", "source": "narma10", "options": {"sequences": 6, "length": 60}},
    "signals": {"name": "w", "source": "wiener", "options": {"samples": 300, "order": 3}},
}
PROTOCOLS = {"sequences": {}, "signals": {"window": 50, "tail": 100, "early": 200}}


@pytest.fixture(scope="module", params=saved_models())
def saved(request, tmp_path_factory):
    """A fitted model, and its file, which tests must not change."""
    model = make_small(saved_models()[request.param], {}, SimulatedNetwork(graphs.ring(7)))
    path = tmp_path_factory.mktemp(request.param) / "m.npz"
    model_data.fit(model, range(7))
    archive.save(model, path)
    return model, path


def test_a_file_has_all_that_predictions_need(saved):
    model, path = saved
    loaded = archive.load(path)
    rows = np.random.default_rng(0).standard_normal((20, model.n_features_in_))
    assert type(loaded.model) is type(model)
    if model.takes == "signals":
        expected = model.predict(np.tile(rows.T, (7, 1)))[0]
    else:
        expected = model.predict(rows)
    assert loaded.predict(rows).tobytes() == expected.tobytes()
    if hasattr(model, "decision_function"):
        assert (
            loaded.model.decision_function(rows).tobytes()
            == model.decision_function(rows).tobytes()
        )


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_what_somebody_made_of_a_file_is_refused_or_usable(saved, data):
    usable_or_refused(tampered(saved[1], data))


@pytest.mark.parametrize("kind", [kind for kind in models().values() if not kind.can_be_saved()])
def test_others_are_not_saved(kind, tmp_path):
    with pytest.raises(InputError, match=f"a {kind.__name__} cannot be saved: give a fitted "):
        archive.save(kind(), tmp_path / "m.npz")


@pytest.mark.parametrize("kind", models().values())
def test_a_site_trains_what_can_be_saved_and_fitted(kind, tmp_path):
    given = {"kind": kind.__name__, "random_state": 0}
    table = TomlTable(given, tmp_path / "site.toml", "model.")
    if not kind.can_be_saved() or kind.takes == "signals":
        with pytest.raises(
            InputError,
            match=rf"\[model\] in .* cannot be used: kind {kind.__name__} (has no|cannot)",
        ):
            read_model(table)
        return
    assert read_model(table) == given
    assert type(make_model(given)) is kind
    assert classifies(given) == is_classifier(kind())
    assert may_lack_labels(given) == kind.partly_labelled
    assert learns_in_order(given) == (kind.takes == "sequences")


def comparison_of(kind):
    small = {
        name: value
        for name, value in SMALL.items()
        if name in kind().get_params(deep=False) and name != "rows"
    }
    protocol, data = kind.takes, DATA["rows" if kind.takes == "columns" else kind.takes]
    if protocol in ("rows", "columns"):
        tags = get_tags(kind()).classifier_tags
        data = data["numbers" if tags is None else "classes" if tags.multi_class else "two classes"]
    if kind.partly_labelled:
        protocol = "few-labels"
    return {
        "title": "t",
        "protocol": {"name": protocol, **PROTOCOLS.get(protocol, {})},
        "data": [data],
        "models": [
            {"name": where, "kind": kind.__name__, "where": where, **small}
            for where in ("network", "alone")
        ],
        "networks": [{"name": "ring", "graph": "ring", "agents": 3}],
    }


@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
@pytest.mark.parametrize("kind", models().values())
def test_comparisons_run_it_over_a_network_and_at_each_agent_alone(kind, written):
    comparison = read(written(toml(comparison_of(kind))))
    trials = list(comparison.trials())
    assert [trial.model.where for trial in trials] == ["network", "alone"]
    for trial in trials:
        assert not comparison.protocol.refuses(trial.data, trial.model)
        values = comparison.protocol.run(trial).values.values()
        assert len(values) > 0
        assert np.isfinite([*values]).all()


class TestFinding:
    def test_public_models_of_files_alone(self):
        assert all(
            issubclass(kind, NetworkModel) and kind.__name__ == name
            for name, kind in models().items()
        )
        assert list(models()) == sorted(models())
        assert len(models()) == len(set(models().values())) >= 10

    def test_a_model_states_nothing_that_contradicts_itself(self):
        for kind in models().values():
            parameters = kind().get_params(deep=False)
            assert {*kind.parts, *kind.alone} <= set(parameters), kind
            assert kind.predicts_alone or not kind.can_be_saved(), kind
            assert not kind.partly_labelled or is_classifier(kind()), kind
            assert len(set(kind.seeds)) == len(kind.seeds), kind
            assert ("random_state" in parameters) == bool(kind.seeds), kind
