"""Claim: models that four hospitals train together on their raw tables are as accurate as those of
FLamby in one place (.795) and more than those of its FedAvg (.748), on FLamby's test rows.

Setting: FedHeart (FedHeart.npz in the folder that PEERLEARN_DATA names) as four raw tables with
gaps and categories, prepared and learned over a ring of four agents: the answers that `peerlearn
up` and four `peerlearn agent` give, which send the same sums. FLamby's split: of each hospital's
rows without gaps in ten columns, 34 % are test rows (486 and 254 rows). Nothing is chosen by hand:
LogisticClassifier() has its default penalty, and RVFLClassifier() chooses features and penalty by
sums. Published numbers are means of FLamby's own models, which are logistic regression too, over
seeds of their training; here a seed draws another split. Accuracy is that of all test rows, and the
mean over the four hospitals. FLamby leaves out the three columns with most gaps, as the last rows
do. Alone: models of each hospital's own rows, tested on all test rows.

    python benchmarks/fedheart.py [splits]
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from common import console, holds, show, spread
from sklearn.base import clone

from peerlearn import (
    LogisticClassifier,
    RVFLClassifier,
    SimulatedNetwork,
    TablePreparer,
    graphs,
)
from peerlearn.data.site_tables import SITES, site_tables
from peerlearn.errors import InputError

HOSPITALS = SITES["fedheart"]
CATEGORIES = dict.fromkeys(("sex", "cp", "fbs", "restecg", "exang", "slope", "thal"), "category")
COMPLETE = (
    "age",
    "sex",
    "cp",
    "trestbps",
    "chol",
    "fbs",
    "restecg",
    "thalach",
    "exang",
    "oldpeak",
)
POOLED, FEDAVG = 0.795, 0.748
FLAMBY = 43  # the seed of its split
TEN = {**CATEGORIES, **dict.fromkeys(("slope", "ca", "thal"), "drop")}
MODELS = {
    "LogisticClassifier()": (LogisticClassifier(), CATEGORIES),
    "RVFLClassifier()": (RVFLClassifier(random_state=0), CATEGORIES),
    "LogisticClassifier(), ten columns": (LogisticClassifier(), TEN),
}
Tables = Mapping[str, pd.DataFrame]


def read_tables(folder: Path, seed: int) -> Tables:
    texts = site_tables(
        "FedHeart",
        folder=folder,
        target="disease",
        test_fraction=0.34,
        seed=seed,
        complete=COMPLETE,
    )
    return {name: pd.read_csv(io.StringIO(text)) for name, text in texts.items()}


def shares_of(tables: Tables, ending: str = "") -> list[tuple[pd.DataFrame, np.ndarray]]:
    own = [tables[name + ending] for name in HOSPITALS]
    return [(each.drop(columns="disease"), each["disease"].to_numpy()) for each in own]


def accuracies(described, network, training, tests) -> list[float]:
    """Accuracy on all test rows, and on those of each hospital."""
    model, columns = described
    preparer = TablePreparer(columns, network=network)
    fitted = clone(model).set_params(network=network).fit(preparer.fit_transform(training))
    right = [fitted.predict(preparer.transform(X)) == y for X, y in tests]
    return [float(np.concatenate(right).mean()), *(float(each.mean()) for each in right)]


def score(model, tables: Tables) -> dict[str, float]:
    """Accuracies of one model on one split."""
    training, tests = shares_of(tables), shares_of(tables, "-test")
    together = accuracies(model, SimulatedNetwork(graphs.ring(4)), training, tests)
    pooled = [(pd.concat(X for X, _ in training), np.concatenate([y for _, y in training]))]
    alone = []
    for own in training:
        try:
            alone.append(accuracies(model, None, [own], tests)[0])
        except InputError:  # a column without any value at this hospital
            continue
    return {
        "together": together[0],
        "mean of hospitals": float(np.mean(together[1:])),
        "in one place": accuracies(model, None, pooled, tests)[0],
        "alone": float(np.mean(alone)),
    }


def main() -> None:
    folder = os.environ.get("PEERLEARN_DATA")
    if not folder or not (Path(folder) / "FedHeart.npz").exists():
        sys.exit("There is no FedHeart.npz: set PEERLEARN_DATA to the folder that has it.")
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rows = []
    for name, model in MODELS.items():
        fixed = score(model, read_tables(Path(folder), FLAMBY))
        many = [score(model, read_tables(Path(folder), seed)) for seed in range(splits)]
        for what, value in fixed.items():
            drawn = np.array([each[what] for each in many])
            compared = what in ("together", "mean of hospitals")
            verdict = holds(POOLED, value) if compared else ""
            interval = f"{drawn.mean():.3f} +- {1.96 * spread(drawn):.3f}"
            rows.append([name, what, f"{value:.3f}", verdict, interval])
    columns = ["", "accuracy", "FLamby's split", ">= .795", f"{splits} splits, 95 %"]
    show("FedHeart: 486 rows of four hospitals, 254 test rows", columns, rows)
    console.print(f"Published by FLamby: pooled {POOLED}, FedAvg {FEDAVG}.", highlight=False)


if __name__ == "__main__":
    main()
