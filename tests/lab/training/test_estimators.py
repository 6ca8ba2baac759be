"""What a comparison describes, made: estimators with their settings, and the networks of runs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.svm import SVC

from peerlearn import (
    ADMM,
    NEXT,
    Averaging,
    BlockCompletion,
    Exchange,
    LapKRRClassifier,
    RandomProjection,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SharingADMM,
    StepRule,
    StreamConsensus,
    TanhTransform,
    VerticalRVFLClassifier,
    data,
    graphs,
    weights,
)
from peerlearn.errors import InputError
from peerlearn.lab import Comparison, Data, Model, Net
from peerlearn.lab.training.estimators import estimator_of, import_class, kind_of
from peerlearn.lab.training.networks import network_of
from peerlearn.models import registry

RING = Net("ring", "ring", 4)


def trial_of(model, *, entry=None, net=None, **more):
    whole = Comparison((entry or Data("g50c"),), (model,), (net or RING,), **more)
    return next(iter(whole.trials()))


@pytest.mark.parametrize(
    ("kind", "task", "expected"),
    [
        ("RVFL", "classification", "RVFLClassifier"),
        ("RVFL", "regression", "RVFLRegressor"),
        ("VerticalRVFL", "regression", "VerticalRVFLRegressor"),
        ("RVFLClassifier", "regression", "RVFLClassifier"),
        ("ESN", "regression", "ESNRegressor"),
        ("S3VM", "regression", "S3VMClassifier"),
        ("LMSFilter", "regression", "LMSFilter"),
        ("sklearn.svm.SVC", "regression", "SVC"),
    ],
)
def test_a_family_follows_the_task(kind, task, expected):
    assert kind_of(Model("m", kind), task).__name__ == expected


def test_settings_of_the_data_then_of_the_model_then_of_the_run():
    entry = Data("g50c", settings={"n_hidden": 10, "alpha": 3.0, "width": 1.0})
    trial = trial_of(Model("m", "RVFL", settings={"alpha": 2.0, "activation": "tanh"}), entry=entry)
    model = estimator_of(trial)
    assert type(model) is RVFLClassifier
    assert (model.n_hidden, model.alpha, model.activation, model.network) == (10, 2.0, "tanh", None)
    assert model.random_state == trial.seed("model")
    assert estimator_of(trial, alpha=1.0, gamma=5.0).alpha == 1.0


def test_settings_within_a_solver_from_a_search():
    trial = trial_of(Model("m", "RVFL", settings={"solver": {"name": "admm", "rho": 2.0}}))
    assert estimator_of(trial, **{"solver.max_iterations": 3}).solver == ADMM(
        rho=2.0, max_iterations=3
    )
    by_name = trial_of(Model("m", "RVFL", settings={"solver": "admm"}))
    assert estimator_of(by_name, **{"solver.max_iterations": 3}).solver == ADMM(max_iterations=3)


def test_models_see_the_same_random_numbers_unless_they_have_their_own():
    one, two = (
        trial_of(Model(name, "RVFL", settings={"alpha": a}))
        for name, a in (("one", 1.0), ("two", 2.0))
    )
    assert estimator_of(one).random_state == estimator_of(two).random_state
    assert (
        estimator_of(trial_of(Model("m", "RVFL", settings={"random_state": 5}))).random_state == 5
    )
    assert (
        estimator_of(
            trial_of(
                Model(
                    "m", estimator=RVFLClassifier(random_state=6, alpha=1.0, activation="sigmoid")
                )
            )
        ).random_state
        == 6
    )
    assert estimator_of(
        trial_of(Model("m", estimator=RVFLClassifier(alpha=1.0, activation="sigmoid")))
    ).random_state == one.seed("model")


def test_an_estimator_that_is_given_is_copied():
    given = RVFLRegressor(30, solver=ADMM(rho=1.0), alpha=1.0, activation="sigmoid")
    trial = trial_of(
        Model("m", estimator=given, settings={"alpha": 0.25}),
        entry=Data("diabetes", settings={"n_hidden": 7}),
    )
    made = estimator_of(trial, network_of(trial))
    assert made is not given
    assert (made.n_hidden, made.alpha, made.solver, made.network.size) == (
        7,
        0.25,
        ADMM(rho=1.0),
        4,
    )
    assert (given.n_hidden, given.network) == (30, None)


def test_rivals_by_import_path_and_those_within_them():
    settings = {"n_estimators": 3, "estimator": {"kind": "sklearn.svm.SVC", "C": 2.0}}
    trial = trial_of(Model("m", "sklearn.ensemble.BaggingClassifier", "centralised", settings))
    made = estimator_of(trial)
    assert isinstance(made, BaggingClassifier)
    assert isinstance(made.estimator, SVC)
    assert (made.n_estimators, made.estimator.C, made.random_state) == (3, 2.0, trial.seed("model"))
    assert network_of(trial) is None


@pytest.mark.parametrize(
    ("kind", "parameter", "given", "expected"),
    [
        (RVFLClassifier, "solver", "admm", ADMM()),
        (
            RVFLClassifier,
            "solver",
            {"name": "ADMM", "averaging": {"method": "plain"}},
            ADMM(averaging=Averaging("plain")),
        ),
        (RVFLClassifier, "stream", {"name": "consensus", "every": 5}, StreamConsensus(every=5)),
        (VerticalRVFLClassifier, "solver", {"name": "sharing", "rho": 2.0}, SharingADMM(rho=2.0)),
        (
            S3VMClassifier,
            "solver",
            {"name": "next", "step": {"alpha0": 0.5}},
            NEXT(step=StepRule(0.5)),
        ),
        (
            LapKRRClassifier,
            "distances",
            {"name": "exchange", "patterns": 0.1},
            Exchange(patterns=0.1),
        ),
        (LapKRRClassifier, "completion", {"name": "block", "rank": 3}, BlockCompletion(rank=3)),
        (LapKRRClassifier, "privacy", {"name": "projection", "m": 4}, RandomProjection(4)),
        (
            LapKRRClassifier,
            "privacy",
            {"name": "TanhTransform", "m": 4, "t": 50},
            TanhTransform(4, 50),
        ),
    ],
)
def test_algorithms_from_plain_values(kind, parameter, given, expected):
    assert registry.part(kind, parameter, given) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "projection"}, "RandomProjection needs m: give it in the same table as the name"),
        (
            {"name": "projektion", "m": 3},
            "privacy 'projektion' is not known, did you mean 'projection'?",
        ),
        (
            {"name": "tanh", "m": 3, "s": 1},
            "s is not a setting of TanhTransform: there are C, Q, a, b, m, t",
        ),
        ({"m": 3}, "privacy is {'m': 3}: give a name, or a table with a name and settings"),
        (3, "privacy is 3: give a name, or a table"),
    ],
)
def test_algorithms_that_are_described_wrongly(given, said):
    with pytest.raises(InputError) as refused:
        registry.part(LapKRRClassifier, "privacy", given)
    assert str(refused.value).startswith(said)


def test_a_graph_is_drawn_anew_in_every_repetition_and_the_same_for_all_models():
    net = Net("ER", "erdos_renyi", 12, {"p": 0.3})
    models = (Model("one", "RVFL"), Model("two", "RVFL"))
    trials = list(Comparison((Data("g50c"),), models, (net,), folds=2, repetitions=2).trials())
    drawn = {
        (trial.model.name, trial.fold, trial.repetition): network_of(trial) for trial in trials
    }
    links = {key: sorted(network.graph.edges) for key, network in drawn.items()}
    by_repetition = [
        {tuple(found) for key, found in links.items() if key[2] == repetition}
        for repetition in (0, 1)
    ]
    assert [len(found) for found in by_repetition] == [1, 1]
    assert by_repetition[0] != by_repetition[1]


def test_a_seed_or_a_fixed_graph_stays_the_same():
    seeded = Net("ER", "erdos_renyi", 12, {"p": 0.3, "seed": 5})
    fixed = Net("mine", fixed=graphs.erdos_renyi(12, 0.3, seed=5))
    assert fixed.agents == 12
    models = (Model("one", "RVFL"),)
    for trial in Comparison((Data("g50c"),), models, (seeded, fixed), repetitions=2).trials():
        assert sorted(network_of(trial).graph.edges) == sorted(fixed.fixed.edges)


@pytest.mark.parametrize("name", ["max-degree", "fastest"])
def test_weights_of_a_network(name):
    trial = trial_of(Model("m", "RVFL"), net=Net("r", "ring", 6, weights=name))
    if name == "fastest":
        pytest.importorskip("cvxpy")
    expected = weights.named(name, graphs.ring(6)).toarray()
    np.testing.assert_allclose(network_of(trial).mixing.toarray(), expected, atol=1e-6)


def test_a_data_set_that_is_given():
    table = data.load("iris")
    trial = trial_of(Model("m", "RVFL"), entry=Data("mine", given=table))
    assert type(estimator_of(trial)) is RVFLClassifier


@pytest.mark.parametrize("body", ["raise RuntimeError('no GPU')", "def (", "raise SystemExit(3)"])
def test_a_rival_whose_module_cannot_be_imported_is_refused_with_what_it_said(
    body, tmp_path, monkeypatch
):
    name = f"rival_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError,
        match=rf"^{name}.Model cannot be imported \((Runtime|Syntax|System).*: mend {name}",
    ):
        import_class(f"{name}.Model")
