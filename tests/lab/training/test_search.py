"""Grid search inside the training rows: by hand, shared or not, and never of a test row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import check_random_state

from peerlearn.data import DataSet
from peerlearn.errors import InputError
from peerlearn.lab.checking.comparison import check_comparison
from peerlearn.lab.description.search import Search
from peerlearn.lab.description.trial import Outcome, Trial
from peerlearn.lab.runs.attempt import attempt
from peerlearn.lab.training.loading import prepare, table_of
from peerlearn.lab.training.search import _search_grid as searches
from peerlearn.lab.training.search import best_settings
from peerlearn.lab.training.splitting import split
from tests.support.lab_given import RING, classes, comparison, model, numbers, ran

KNN = model("KNN", "sklearn.neighbors.KNeighborsClassifier", "centralised")
GRID = {"n_neighbors": [1, 5, 9, 15]}


def firsts(whole):
    """One run per model, of the first fold."""
    return [trial for trial in whole.trials() if trial.fold == 0 and trial.repetition == 0]


def test_the_best_is_that_of_folds_by_hand():
    table = classes(noise=2.0)
    whole = comparison(table, KNN, search=Search(GRID, folds=4), data={"scale": "unit"})
    found = []
    for trial in whole.trials():
        train, _ = split(trial, table.y, stratify=True)
        X, y, entry = table.X[train], table.y[train], replace(trial.data, scale="unit")
        folds = list(StratifiedKFold(4, shuffle=True, random_state=trial.seed("split")).split(X, y))
        errors = []
        for k in GRID["n_neighbors"]:
            scores = []
            for fit, score in folds:
                X_fit, X_score = prepare(entry, X[fit], X[score])
                scores.append(
                    1 - KNeighborsClassifier(k).fit(X_fit, y[fit]).score(X_score, y[score])
                )
            errors.append(np.mean(scores))
        best = best_settings(trial)
        assert best == {"n_neighbors": GRID["n_neighbors"][int(np.argmin(errors))]}
        found.append(best["n_neighbors"])
        assert whole.protocol.run(trial).values["best.n_neighbors"] == best["n_neighbors"]
    assert max(found) > 1


@dataclass(frozen=True)
class Told:
    """A protocol whose metrics are a function of the settings, and which remembers what it was
    asked.
    """

    name: ClassVar = "told"
    measures: ClassVar = {}
    curves: ClassVar = {}
    asked: ClassVar[list[Trial]] = []

    def refuses(self, data, model):
        return ""

    def run(self, trial: Trial) -> Outcome:
        self.asked.append(trial)
        value = trial.model.settings["n_neighbors"]
        return Outcome(0.0, {name: float(abs(value - 5) > 4) for name in ("error", "mcc")})


def told(*models, **more):
    Told.asked.clear()
    searches.cache_clear()
    return replace(comparison(classes(), *models, search=Search(GRID, **more)), protocol=Told())


def test_the_first_of_equals_is_taken_and_mcc_is_better_when_larger():
    assert best_settings(firsts(told(KNN))[0]) == {"n_neighbors": 1}
    assert best_settings(firsts(told(KNN, metric="mcc"))[0]) == {"n_neighbors": 15}


def test_a_candidate_without_a_number_is_not_taken():
    class Partly(Told):
        def run(self, trial):
            return Outcome(
                0.0, {"error": np.nan if trial.model.settings["n_neighbors"] == 1 else 0.3}
            )

    assert best_settings(firsts(replace(told(KNN), protocol=Partly()))[0]) == {"n_neighbors": 5}


def test_a_search_is_done_once_per_fold_and_shared():
    other = replace(KNN, name="other", where="alone", settings={"weights": "distance"})
    whole = told(
        KNN, other, model("NB", "sklearn.naive_bayes.GaussianNB", "alone"), model="KNN", folds=2
    )
    for trial in [*whole.trials(), *whole.trials()]:
        expected = (
            {} if trial.model.name == "NB" else {"n_neighbors": 1}
        )  # who has no such setting has no use for it
        assert best_settings(trial) == expected
    asked = whole.protocol.asked
    assert len(asked) == 3 * 2 * len(GRID["n_neighbors"])
    assert {trial.model.name for trial in asked} == {"KNN"}
    assert {"weights"}.isdisjoint(key for trial in asked for key in trial.model.settings)


def test_each_model_searches_for_itself_unless_told_otherwise():
    other = replace(KNN, name="other", settings={"weights": "distance"})
    whole = told(KNN, other, folds=2)
    for trial in firsts(whole):
        best_settings(trial)
    assert [
        trial.model.name for trial in whole.protocol.asked[:: 2 * len(GRID["n_neighbors"])]
    ] == ["KNN", "other"]


@pytest.mark.parametrize("where", ["centralised", "network"])
def test_where_candidates_are_trained(where):
    one, together = replace(KNN, name="one"), replace(KNN, name="together", where="network")
    whole = told(one, together, where=where, model="together")
    for trial in firsts(whole):
        best_settings(trial)
    networks = [trial.network for trial in whole.protocol.asked]
    per_search = 3 * len(GRID["n_neighbors"])
    if where == "centralised":
        assert networks == [None] * per_search  # the same for both
        assert {trial.model.where for trial in whole.protocol.asked} == {"centralised"}
    else:
        assert networks == [None] * per_search + [RING] * per_search
        assert {trial.model.where for trial in whole.protocol.asked[per_search:]} == {"network"}


def test_each_network_has_a_search_of_its_own():
    together = replace(KNN, name="together", where="network")
    whole = told(together, where="network", folds=2)
    other = replace(RING, name="other")
    for trial in replace(whole, networks=(RING, other)).trials():
        best_settings(trial)
    per_network = 3 * 2 * len(GRID["n_neighbors"])
    assert [trial.network for trial in whole.protocol.asked].count(RING) == per_network
    assert [trial.network for trial in whole.protocol.asked].count(other) == per_network


def test_candidates_never_see_test_rows_nor_the_scaling_of_them():
    """The transformer knows the targets of the rows that it was fitted on: shown others, it would
    make no error.
    """
    rng = np.random.default_rng(0)
    table = DataSet(
        "noise", rng.standard_normal((300, 3)), np.tile([0, 1], 150), "classification", "made", None
    )
    leaky = {"scale": "none", "prepare": ({"kind": "tests.support.lab_given.Oracle"},)}
    whole = comparison(table, KNN, search=Search({"n_neighbors": [1]}), data=leaky)
    trial = firsts(whole)[0]
    scores = []

    class Watched(type(whole.protocol)):
        def run(self, trial):
            outcome = super().run(trial)
            scores.append(
                (outcome.values["error"], len(table_of(trial).y), trial.comparison.search)
            )
            return outcome

    best_settings(replace(trial, comparison=replace(whole, protocol=Watched())))
    assert len(scores) == 3
    for error, rows, search in scores:
        assert error == pytest.approx(0.5, abs=0.15)
        assert rows == 200  # the training rows of a fold in three
        assert search is None


def test_settings_within_a_solver_and_words_are_found_too():
    grid = {"activation": ["sine", "sigmoid"], "solver.variant": ["thesis", "weighted"]}
    whole = comparison(
        classes(),
        model(n_hidden=10, solver="consensus"),
        search=Search(grid, where="network"),
        folds=2,
    )
    for trial, outcome in ran(whole):
        best = best_settings(trial)
        assert set(best) == set(grid)
        assert f"best activation: {best['activation']}" in outcome.note
        assert f"best solver.variant: {best['solver.variant']}" in outcome.note


def test_regression_goes_by_its_own_metric():
    whole = comparison(
        numbers(), model(where="centralised", n_hidden=20), search=Search({"alpha": [1e6, 1e-3]})
    )
    assert best_settings(firsts(whole)[0]) == {"alpha": 1e-3}
    whole = replace(whole, search=Search({"alpha": [1e6, 1e-3]}, metric="error"))
    with pytest.raises(
        InputError,
        match=r"^search.metric in the comparison is 'error', but numbers is a regression: leave it",
    ):
        check_comparison(whole)


def test_without_a_search_nothing_is_found():
    assert best_settings(firsts(comparison(classes(), KNN))[0]) == {}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"grid": {}}, "a search needs a grid"),
        ({"grid": {"alpha": []}}, r"grid.alpha is \[\]: give a list"),
        ({"grid": {"alpha": 3}}, "grid.alpha is 3: give a list"),
        ({"folds": 1}, "folds of the search is 1: give a whole number, 2 or more"),
        ({"metric": "eror"}, "metric of the search is 'eror': did you mean error"),
        ({"where": "here"}, "where of the search is 'here': choose"),
    ],
)
def test_a_search_that_cannot_be_is_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Search(**{"grid": GRID, **settings})


def test_settings_of_the_data_set_belong_to_the_question():
    whole = told(KNN)
    entries = [replace(whole.data[0], settings={"p": p}) for p in (1, 2)]
    for entry in entries:
        best_settings(replace(firsts(whole)[0], data=entry))
    assert [trial.model.settings["p"] for trial in whole.protocol.asked] == [1] * 12 + [2] * 12


def test_each_model_searches_what_it_has():
    both = Search(
        {"n_neighbors": [3, 5], "solver.tolerance": [1e-2, 1e-4], "alpha": [0.1, 1.0]}, folds=2
    )
    ours = [
        model("cg", where="centralised", n_hidden=5, solver={"name": "cg"}),
        model("plain", where="centralised"),
    ]
    whole = comparison(
        classes(),
        KNN,
        *ours,
        model("NB", "sklearn.naive_bayes.GaussianNB", "centralised"),
        search=both,
    )
    found = {trial.model.name: set(best_settings(trial)) for trial in firsts(whole)}
    assert found == {
        "KNN": {"n_neighbors"},
        "cg": {"solver.tolerance", "alpha"},
        "plain": {"alpha"},
        "NB": set(),
    }


def test_what_is_drawn_without_a_seed_does_not_hang_on_a_search_done_before():
    rival = model("R", "tests.support.lab_given.Guess", "centralised")
    whole = comparison(classes(), rival, search=Search({"offset": [0, 1]}, folds=2))
    searches.cache_clear()
    fresh = [attempt(trial) for trial in whole.trials()]
    kept = [attempt(trial) for trial in whole.trials()]
    assert [row["error"] for row in fresh] == [row["error"] for row in kept]
    first = fresh[0]["best.offset"]
    searches.cache_clear()
    check_random_state(None).seed(7)  # whoever drew before does not matter either
    assert best_settings(firsts(whole)[0])["offset"] == first
