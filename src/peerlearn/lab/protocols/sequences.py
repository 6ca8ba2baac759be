"""Sequences: rows are times, and agents have whole sequences (thesis, chapter 9).

    network        sequences are dealt, and an echo state network is trained over the network
    centralised    all training sequences in one place
    alone          every agent trains on its own

Folds are over whole sequences. Errors are of all samples after the washout of the test sequences,
of every agent's own readout; where outputs are fed back, those of the washout are known and after
it the model's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from peerlearn import graphs, partition
from peerlearn.arrays import Array, is_whole
from peerlearn.data.series import Series
from peerlearn.errors import InputError
from peerlearn.lab.description import metrics
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import SERIES, options_of, source_of
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.lab.description.trial import Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, kind_of, settings_of, what_it_takes
from peerlearn.lab.training.loading import Fold, fold_key
from peerlearn.lab.training.networks import network_of
from peerlearn.lab.training.outcomes import (
    CURVES,
    MEASURES,
    Trained,
    compute_centre,
    outcome_of,
    time_fit,
)
from peerlearn.lab.training.primal_residuals import watch_solver
from peerlearn.lab.training.search import best_settings
from peerlearn.lab.training.splitting import Rows, split
from peerlearn.network import SimulatedNetwork
from peerlearn.network.base import Counts

KEPT = 4  # sets of series in memory at a time
NO_ROWS: Array = np.empty((0, 0))


@dataclass(frozen=True)
class Sequences:
    """Whole sequences dealt to agents, evenly many each."""

    name: ClassVar = "sequences"
    searches: ClassVar = True
    measures: ClassVar[Mapping[str, str]] = {
        **MEASURES,
        "sparsity": "share of coefficients that are zero",
    }
    curves: ClassVar[Mapping[str, str]] = {
        **CURVES,
        "primal_residual": "mean distance of agents to their agreement",
    }

    def refuses(self, data: Data, model: Model) -> str:
        if source_of(data) not in SERIES or data.given is not None:
            return "learns sequences, and these are none: give a source such as narma10"
        if data.prepare or data.scale not in ("as loaded", "none"):
            return "learns sequences as they are: leave out scale and prepare"
        kind = kind_of(model, "regression")
        if what_it_takes(kind) != "sequences":
            return "learns rows, and these are sequences"
        settings = settings_of(data, model, kind)
        length = options_of(data)["length"]
        washout = settings.get("washout", 0)
        if is_whole(washout) and washout >= length:
            raise InputError(
                f"washout is {washout}, and sequences of {data.name} have {length} samples: give a "
                "smaller one"
            )
        return ""

    def run(self, trial: Trial) -> Outcome:
        train, test = fold_of(trial)
        network = network_of(trial)
        best = best_settings(trial)
        model: Any = estimator_of(trial, network, **best)
        if trial.model.where == "alone":
            model.set_params(**model.alone)
        observed = watch_solver(model.solver)
        if observed is not None:
            model.set_params(solver=observed)
        shares = [train] if network is None else deal_sequences(trial, train, network.size)
        seconds = time_fit(model, shares)
        found = Trained(
            seconds,
            _predict_all(model, test),
            model.coefficients_,
            _distances(trial, model, shares),
            model.report_,
            getattr(model.solver, "vote_every", 1),
        )
        targets = np.concatenate([d[model.washout :] for d in test[1]])
        outcome = outcome_of(
            trial, Fold("regression", NO_ROWS, NO_ROWS, NO_ROWS, targets), found, best
        )
        zeros = np.mean(model.coefficients_ == 0, axis=(1, 2))
        return replace(
            outcome,
            values={**outcome.values, "sparsity": float(zeros.mean())},
            agents={**outcome.agents, "sparsity": zeros.tolist()},
            sent=Counts()
            if trial.model.where == "alone"
            else outcome.sent,  # but for the check that all are set alike
            curves={
                **outcome.curves,
                **({} if observed is None else {"primal_residual": observed.curve}),
            },
        )


def fold_of(trial: Trial) -> tuple[Series, Series]:
    """Return training and test sequences; the same for every model and network."""
    series = _all(trial) if trial.within is None else fold_of(trial.within)[0]
    train, test = split(trial, np.arange(len(series[0])), stratify=False)
    return _some(series, train), _some(series, test)


def _all(trial: Trial) -> Series:
    source = source_of(trial.data)
    options = options_of(trial.data)
    seed = trial.seed("data")
    return _draw_sequences(Asked(key_of(source, options, seed), (source, options, seed)))


@lru_cache(maxsize=KEPT)
def _draw_sequences(asked: Asked[tuple[str, dict[str, Any], int]]) -> Series:
    source, options, seed = asked.about
    series: Series = SERIES[source](**options, seed=seed)
    return series


def _some(series: Series, which: Rows) -> Series:
    return [series[0][j] for j in which], [series[1][j] for j in which]


def deal_sequences(trial: Trial, train: Series, agents: int) -> list[Series]:
    """Return each agent's sequences, evenly many."""
    rows = partition.even_rows(len(train[0]), agents, np.random.default_rng(trial.seed("deal")))
    return [_some(train, np.sort(own)) for own in rows]


def _distances(trial: Trial, model: Any, shares: list[Series]) -> list[float]:
    """Return how far agents are from the readout of all their states in one place: Gram's."""
    if "distance" not in trial.comparison.metrics or trial.network is None:
        return []
    exact = clone(model).set_params(
        solver="gram", network=SimulatedNetwork(graphs.complete(len(shares)))
    )
    key = key_of(fold_key(trial), {**exact.get_params(deep=False), "network": len(shares)})
    b = compute_centre(Asked(key, lambda: exact.fit(shares).coefficients_[0]))
    return metrics.distances(model.coefficients_, b)


def _predict_all(model: Any, test: Series) -> Array:
    """Return what agents predict of all samples after the washout: agents x samples."""
    x, y = test
    w = model.washout
    b = model.coefficients_
    known = [d[:w] for d in y]
    if (b == b[:1]).all():  # one closed loop tells it of all
        said = np.concatenate([one[w:] for one in model.predict(x, known)])
        return np.repeat(said[None], len(b), axis=0)
    return np.concatenate([own[:, w:] for own in model.agent_predictions(x, known)], axis=1)
