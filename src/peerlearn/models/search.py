"""Grid search by K-fold cross-validation over a network, folds within sites.

    fold of each row, within each agent                              alone, from the seed
    a model of the rows outside each fold, for every candidate       over the network
    counts or errors of an agent's own rows of the fold              alone
    their sums, and from these the scores of all candidates          over the network
    the best candidate, on all rows                                  over the network

The scores are those of all rows in one place with the same folds, because training is sums and so
are the scores. Candidates that differ in alpha alone share one sum of Gram matrices per fold, where
a model can do that (`fit_folds`). Other models of every fold are trained one after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_scalar, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from peerlearn.algorithms.agreement import check_same_settings
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.readout.means import common_sums
from peerlearn.arrays import Array, Indices, one_blas_thread
from peerlearn.errors import DataError, InputError
from peerlearn.models.base import (
    DEALING,
    FittedModel,
    RandomState,
    Setup,
    network_of,
    restored_on_error,
    seeds_of,
)
from peerlearn.models.row_model import shares_of
from peerlearn.models.scores import SCORES, Score
from peerlearn.models.sequence_folds import divide_sequences, pick, statistics_of
from peerlearn.models.sequence_shares import are_many
from peerlearn.network import Network
from peerlearn.network.base import Counts
from peerlearn.secret.refusals import secret_error

__all__ = ["NetworkSearchCV"]

Shares = list[tuple[Any, Any]]
Settings = Mapping[str, Any]
ELSEWHERE = (
    "search over a comparison's [search], or with scikit-learn's GridSearchCV over all rows in one "
    "place"
)


def _best_has(name: str) -> Any:
    """Return a check whether the best estimator, or the one to search with, has a method."""

    def check(search: Any) -> bool:
        if hasattr(search, "best_estimator_"):
            return hasattr(search.best_estimator_, name)
        first = next(iter(ParameterGrid(search.param_grid)))  # parameters may decide what it has
        return hasattr(clone(search.estimator).set_params(**first), name)

    return check


class NetworkSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Exact grid search by K-fold cross-validation; rows stay at their agents.

    It is scikit-learn's GridSearchCV for models whose training is sums: RVFL models and
    `ESNRegressor` with the solvers "auto", "gram" and "cg", `LogisticClassifier` and `GLMRegressor`
    with "newton" and "lbfgs". Each agent divides its own rows into folds and scores its own
    held-out rows; sums of these scores are all that is sent besides the training. Of an
    `ESNRegressor`, folds have whole sequences, or stretches of time of an agent's only sequence.

    Parameters
    ----------
    estimator : estimator
        The model. Its settings are those of all candidates, except what the grid has.
    param_grid : dict of str to list, or list of them
        Values to try, by parameter.
    cv : int, default 5
        Number of folds.
    scoring : {"accuracy", "neg_log_loss", "r2", "neg_mean_squared_error"} or None, default None
        What is to be large. None is "accuracy" for classifiers and "r2" for regressors.
    refit : bool, default True
        Whether to train the best candidate on all rows.
    network : Network or None, default None
        The graph of agents. None takes the estimator's network, and without one all rows are in one
        place.
    random_state : int, RandomState or None, default None
        Seed of the folds, and of the estimator if that has none. Agents in several processes must
        all give the same whole number.

    Attributes
    ----------
    best_params_ : dict
        Settings of the best candidate; of equally good ones, the first.
    best_score_ : float
        Its mean score over folds.
    best_index_ : int
        Its place among the candidates.
    best_estimator_ : estimator
        The best candidate, trained on all rows. `archive.save` of the search saves this one.
    cv_results_ : dict of str to array
        Scores of all candidates, as scikit-learn names them, without times.
    folds_ : list of ndarray
        The fold of each row, sequence or stretch of each hosted agent.
    scorer_ : str
        Name of the score.
    report_ : Report
        What the solver did with the best candidate, and what was sent in all.

    Examples
    --------
    >>> from peerlearn import NetworkSearchCV, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(50, activation="tanh", network=network)
    >>> grid = {"alpha": [1e-2, 1.0, 100.0]}
    >>> search = NetworkSearchCV(model, grid, random_state=0).fit(iris.X, iris.y)
    >>> search.best_params_
    {'alpha': 1.0}
    >>> search.cv_results_["mean_test_score"].round(2)
    array([0.96, 0.97, 0.9 ])
    """

    best_params_: dict[str, Any]
    best_score_: float
    best_index_: int
    best_estimator_: Any
    cv_results_: dict[str, Any]
    folds_: list[Indices]
    scorer_: str
    report_: Report

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        cv: int = 5,
        scoring: str | None = None,
        refit: bool = True,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.network = network
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Score all candidates, and train the best one on all rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows or sequences, as the estimator's `fit` takes them.
        y : array-like of shape (n_rows,), default None
            The targets of the rows; None if X is a list of shares.

        Returns
        -------
        self : NetworkSearchCV
        """
        with restored_on_error(self), one_blas_thread():
            base, seed = self._seeded()
            candidates = self._candidates()
            setup = self._check(base, candidates)
            network = setup.network
            mark = network.ledger.mark()
            score = SCORES[self._scoring(base)]
            shares = self._shares(base, setup, candidates, X, y)
            self.n_features_in_ = base.n_features_in_
            self._compare(setup, candidates, score, seed, shares)
            self.folds_ = [
                draw_folds(y_k, self.cv, is_classifier(base), (seed, agent))
                for agent, (_, y_k) in zip(network.hosted, shares, strict=True)
            ]
            point = score.common_point(setup, [_joined(y_k) for _, y_k in shares])
            statistics = self._score(self._for_folds(base, score), candidates, shares, score, point)
            sums = common_sums(network, setup.parts["solver"], statistics)[0]
            self._rank(candidates, score, sums)
            best = _with(base, self.best_params_)
            if self.refit:
                given = (X, y) if base.takes == "sequences" else (shares,)  # not as they were cut
                self.best_estimator_ = best.fit(*given)
                self.report_ = self._report(best.report_, network.ledger.since(mark))
        return self

    def _shares(
        self, base: Any, setup: Setup, candidates: Sequence[Settings], X: Any, y: Any
    ) -> Shares:
        """Return the rows of each hosted agent, or its sequences."""
        if base.takes == "sequences":
            washout = max(candidate.get("washout", base.washout) for candidate in candidates)
            return [*divide_sequences(base, setup, X, y, folds=self.cv, washout=washout)]
        inputs, targets, _ = shares_of(base, setup.network, X, y, seed=setup.seeds[DEALING])
        if is_classifier(base):
            targets = [column_or_1d(y_k, warn=True) for y_k in targets]
        return list(zip(inputs, targets, strict=True))

    def check_settings(self) -> Setup:
        """Check all parameters and candidates, and return the first one's setup. Send nothing."""
        return self._check(self._seeded()[0], self._candidates())

    def check_use_in_files(self) -> None:
        """Refuse an estimator that could not predict from the rows of a file."""
        self.estimator.check_use_in_files()

    def _seeded(self) -> tuple[Any, int]:
        """Return a copy of the estimator with network and random_state, and the seed of folds."""
        base = self.estimator
        if not isinstance(base, FittedModel) or not base.sum_solvers:
            raise InputError(
                f"NetworkSearchCV searches with models of peerlearn that learn rows by sums, and "
                f"{type(base).__name__} is none: {ELSEWHERE}"
            )
        network = base.network if self.network is None else self.network
        base = clone(base).set_params(network=network)
        folds, own = seeds_of(self.random_state, network_of(network), 2)
        if not isinstance(base.random_state, int | np.integer):
            base.set_params(random_state=own)
        return base, folds

    def _candidates(self) -> list[dict[str, Any]]:
        try:
            candidates = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"param_grid cannot be used ({error}): give a dict of lists, such as "
                "{'alpha': [0.1, 1.0]}"
            ) from error
        for candidate in candidates:
            for name in ("network", "random_state"):
                if name in candidate:
                    raise InputError(f"param_grid has {name}, which all candidates must share")
        return candidates

    def _check(self, base: Any, candidates: Sequence[Settings]) -> Setup:
        check_scalar(self.cv, "cv", int, min_val=2)
        if not isinstance(self.refit, bool | np.bool_):
            raise InputError(f"refit is {self.refit!r:.60}: give True or False")
        self._scoring(base)
        setups: list[Setup] = []
        if network_of(base.network).secrecy is not None:
            raise secret_error(
                "NetworkSearchCV",
                "would make many totals over parts of the rows",
                "search at one site",
            )
        for candidate in candidates:
            model = _with(base, candidate)
            setup = model.check_settings()
            if setup.network.secrecy is not None:
                raise InputError(
                    "this network keeps sums secret, and a search would send sums over parts of "
                    "single agents' rows: choose the settings yourself, or use a network without "
                    "secrecy; nothing was sent"
                )
            solver = setup.parts["solver"]
            if setup.network.size > 1 and not isinstance(solver, model.sum_solvers):
                raise InputError(
                    f"NetworkSearchCV needs training by sums, and {type(model).__name__} with "
                    f"{type(solver).__name__} is not: use {_name(model.sum_solvers)}, or "
                    f"{ELSEWHERE}"
                )
            setups.append(setup)
        return setups[0]

    def _scoring(self, base: Any) -> str:
        """Return the name of the score, if the estimator has what it needs."""
        classifies = is_classifier(base)
        known = [name for name, score in SCORES.items() if score.classifies == classifies]
        name = known[0] if self.scoring is None else self.scoring
        if name not in known:
            raise InputError(
                f"scoring is {name!r:.60}: for {type(base).__name__} give one of "
                f"{', '.join(map(repr, known))}"
            )
        given = base.get_params(deep=False).get("probability", True)
        needs = SCORES[name].needs
        if needs and (given is False or not hasattr(type(base), needs)):
            raise InputError(
                f"scoring is {name!r}, which needs {needs}, and {type(base).__name__} has none "
                "here: use another score, or probability=True"
            )
        return str(name)

    def _compare(
        self,
        setup: Setup,
        candidates: Sequence[Settings],
        score: Score,
        seed: int,
        shares: Shares,
    ) -> None:
        """Check that all agents search for the same, and that there are rows for every fold."""
        settings = {
            "cv": self.cv,
            "scoring": score.name,
            "refit": bool(self.refit),
            "param_grid": repr(candidates),
            "the seed of the folds": seed,
            "the number of columns of X": self.n_features_in_,
        }
        rows = np.array([[len(y)] for _, y in shares], dtype=np.float64)
        check_same_settings(setup.network, settings, rows=rows[:, 0].astype(int).tolist())
        count = round(float(common_sums(setup.network, setup.parts["solver"], rows)[0, 0]))
        if count < self.cv:
            what = "sequences" if self.estimator.takes == "sequences" else "rows"
            raise DataError(
                f"n_samples={count} {what} of the whole network cannot make {self.cv} folds: give "
                f"more {what}, or a smaller cv"
            )

    def _for_folds(self, base: Any, score: Score) -> Any:
        """Return the estimator of the folds, with probabilities only if the score needs them."""
        if "probability" not in base.get_params(deep=False):
            return base
        return _with(base, {"probability": bool(score.needs)})

    def _score(
        self,
        base: Any,
        candidates: Sequence[Settings],
        shares: Shares,
        score: Score,
        point: Array,
    ) -> Array:
        """Return the statistics of all candidates and folds, of each hosted agent."""
        found = np.zeros((len(shares), len(candidates), self.cv, score.width(point)))
        for places in _differ_in_alpha(candidates):
            settings = [candidates[place] for place in places]
            for fold, n, model in self._models(base, settings, shares):
                for k, share in enumerate(shares):
                    held_out = self.folds_[k] == fold
                    if held_out.any():
                        rows = pick(share, held_out)
                        statistics = statistics_of(score, of_agent(model, k), *rows, point)
                        found[k, places[n], fold] = statistics
        return found.reshape(len(shares), -1)

    def _models(
        self, base: Any, settings: Sequence[Settings], shares: Shares
    ) -> Iterator[tuple[int, int, Any]]:
        """Yield a fold, the place of a candidate, and its model of the rows outside the fold."""
        if "alpha" in settings[0] and hasattr(base, "fit_folds"):
            model = _with(base, settings[0])
            alphas = [candidate["alpha"] for candidate in settings]
            models = model.fit_folds(shares, self.folds_, self.cv, alphas)
            if models is not None:
                yield from models
                return
        for fold in range(self.cv):
            rest = []
            for share, own in zip(shares, self.folds_, strict=True):
                rest.append(pick(share, own != fold))
            for n, candidate in enumerate(settings):
                yield fold, n, _with(base, candidate).fit(rest)

    def _rank(self, candidates: Sequence[dict[str, Any]], score: Score, sums: Array) -> None:
        """Set scores and the best candidate, from the sums of all agents."""
        table = sums.reshape(len(candidates), self.cv, -1)
        values = np.full(table.shape[:2], np.nan)
        for place in np.ndindex(*values.shape):
            if table[place][0] > 0:  # some agent has rows of this fold
                values[place] = score.value(table[place])
        means = np.nanmean(values, axis=1)
        self.scorer_ = score.name
        self.cv_results_ = _results(candidates, values, means)
        self.best_index_ = int(np.argmax(np.nan_to_num(means, nan=-np.inf)))
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = candidates[self.best_index_]

    def _report(self, report: Report, sent: Counts) -> Report:
        """Return the report of the best candidate, with what was chosen and sent in all."""
        chosen = ", ".join(f"{name} {value}" for name, value in self.best_params_.items())
        note = (
            f"{chosen} by {self.cv}-fold cross-validation of {len(self.cv_results_['params'])} "
            f"candidates, {self.scorer_} {self.best_score_:.4g}"
        )
        return replace(report, sent=sent, note="; ".join(filter(None, [report.note, note])))

    def _fitted(self) -> Any:
        check_is_fitted(self, "cv_results_")
        if not self.refit:
            raise InputError(
                "refit is False, so that no model was trained on all rows: set refit to True, or "
                "train one with best_params_"
            )
        return self.best_estimator_

    @property
    def classes_(self) -> Any:
        """All labels that occur anywhere in the network."""
        return self._fitted().classes_

    @property
    def coefficients_(self) -> Any:
        """Coefficients of the best estimator, of each hosted agent."""
        return self._fitted().coefficients_

    def predict(self, X: ArrayLike) -> Any:
        """Return the predictions of the best estimator."""
        return self._fitted().predict(X)

    def agent_predictions(self, X: ArrayLike) -> Any:
        """Return the predictions of every hosted agent by the best estimator."""
        return self._fitted().agent_predictions(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probabilities of the best estimator."""
        probabilities: Array = self._fitted().predict_proba(X)
        return probabilities

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> Array:
        """Return f(x) of the best estimator."""
        outputs: Array = self._fitted().decision_function(X)
        return outputs

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the score of the best estimator on these rows, by the score of the search."""
        best = self._fitted()
        score = SCORES[self.scorer_]
        many = best.takes == "sequences" and are_many(X)
        given: Any = y
        targets = list(given) if many else np.asarray(given)
        point = score.own_point(_joined(targets))
        return score.value(statistics_of(score, best, X, targets, point))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.three_d_array = inner.input_tags.three_d_array
        tags.non_deterministic = inner.non_deterministic
        return tags


def draw_folds(y: Any, folds: int, by_class: bool, seed: tuple[int, int]) -> Indices:
    """Return the fold of each row of one agent, at random and as even as possible.

    by_class: whether the rows of each class are divided evenly. The fold of the first row is drawn,
    so that agents with few rows do not all have them in the same fold.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    if by_class and len(y):
        _, codes = np.unique(y[order], return_inverse=True)
        order = order[np.argsort(codes, kind="stable")]
    found = np.empty(len(y), dtype=np.intp)
    found[order] = (rng.integers(folds) + np.arange(len(y))) % folds
    return found


def _joined(y: Any) -> Any:
    """Return the targets of rows, or of all samples of several sequences."""
    return np.concatenate(y) if isinstance(y, list) else y


def of_agent(model: Any, k: int) -> Any:
    """Return the model as hosted agent k has it: its own coefficients come first."""
    one = copy.copy(model)
    for name in ("coefficients_", "intercept_", "probability_scale_"):
        if getattr(model, name, None) is not None:
            setattr(one, name, getattr(model, name)[k : k + 1])
    return one


def _with(base: Any, settings: Settings) -> Any:
    """Return a copy of the estimator with these settings."""
    return clone(base).set_params(**settings)


def _differ_in_alpha(candidates: Sequence[Settings]) -> list[list[int]]:
    """Return the places of candidates, those together that differ in alpha alone."""
    groups: list[tuple[Settings, list[int]]] = []
    for place, candidate in enumerate(candidates):
        others = {name: None if name == "alpha" else candidate[name] for name in candidate}
        same = [places for known, places in groups if known == others]
        if same:
            same[0].append(place)
        else:
            groups.append((others, [place]))
    return [places for _, places in groups]


def _results(candidates: Sequence[Settings], values: Array, means: Array) -> dict[str, Any]:
    """Return the scores of all candidates and folds, by the names that scikit-learn has."""
    found: dict[str, Any] = {}
    for name in sorted({name for candidate in candidates for name in candidate}):
        column = np.empty(len(candidates), dtype=object)
        column[:] = [candidate.get(name) for candidate in candidates]
        missing = [name not in candidate for candidate in candidates]
        found[f"param_{name}"] = np.ma.MaskedArray(column, mask=missing)
    found["params"] = list(candidates)
    for fold, scores in enumerate(values.T):
        found[f"split{fold}_test_score"] = scores
    found["mean_test_score"] = means
    found["std_test_score"] = np.nanstd(values, axis=1)
    worst_last = np.nan_to_num(-means, nan=np.inf)
    found["rank_test_score"] = rankdata(worst_last, method="min").astype(np.int32)
    return found


def _name(kinds: Sequence[type[Any]]) -> str:
    """Return the names of solvers, for error messages."""
    return " or ".join(f"solver={kind.name!r}" for kind in kinds) or "another model"
