"""Claim: RVFLClassifier() over ten agents is as good as scikit-learn's defaults in one place.

Setting: columns standardised, five folds, repeated; the rows to learn from are dealt to ten agents
on a ring, and their model has no settings except a seed. Rivals, at their defaults and with all
rows in one place: logistic regression, a support vector machine, a random forest and histogram
gradient boosting. At most 4,000 rows of a set, drawn at random. Errors in percent, and ranks: the
mean over all sets of a model's place among the five. A set whose file is missing is left out.
Limit: the mean rank is the first, or less than one standard error behind it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import console, holds, show
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs
from peerlearn.arrays import Array
from peerlearn.errors import DataError

FOLDS = 5
AGENTS = 10
MOST_ROWS = 4_000
SETS = (
    "iris",
    "wine",
    "breast-cancer",
    "digits",
    "two-moons",
    "G50C",
    "Garageband",
    "Artist20",
    "BCI",
    "Adult_substitute",
    "Skin_substitute",
    "GTZAN_substitute",
    "Sylva",
)
NAMES = ("RVFL, 10 agents", "LogReg", "SVC", "Forest", "Boosting")


def models(seed: int) -> list[Any]:
    """Return our model and its rivals, in the order of NAMES."""
    network = SimulatedNetwork(graphs.ring(AGENTS))
    return [
        RVFLClassifier(network=network, random_state=seed),
        LogisticRegression(),
        SVC(),
        RandomForestClassifier(random_state=seed),
        HistGradientBoostingClassifier(random_state=seed),
    ]


def load_rows(name: str) -> tuple[Array, Any]:
    """Return the rows and labels of a set, at most MOST_ROWS of them."""
    found = data.load(name, scaled=False)
    rows = np.random.default_rng(0).permutation(len(found.y))[:MOST_ROWS]
    return found.X[rows], found.y[rows]


def runs(X: Array, y: Any, repetitions: int) -> Iterator[tuple[int, Array, Array]]:
    """Yield a seed, the training rows and the test rows of every repetition and fold."""
    for repetition in range(repetitions):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repetition)
        for fold, (train, test) in enumerate(folds.split(X, y)):
            yield repetition * FOLDS + fold, train, test


def errors_of(name: str, repetitions: int) -> tuple[Array, list[str]]:
    """Return runs x models errors in percent, and what our model chose."""
    X, y = load_rows(name)
    table = []
    notes = []
    for seed, train, test in runs(X, y, repetitions):
        line = []
        for model in models(seed):
            pipeline = make_pipeline(StandardScaler(), model).fit(X[train], y[train])
            line.append(100 * (1 - pipeline.score(X[test], y[test])))
            if isinstance(model, RVFLClassifier):
                notes.append(model.report_.note.split("; ")[-1].split(" by ")[0])
        table.append(line)
    return np.array(table), notes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=3, help="of the five folds; default: 3")
    parser.add_argument("--sets", nargs="*", default=SETS, help="names of data sets")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of LogisticRegression at its defaults
    rows = []
    ranks = []
    for name in given.sets:
        try:
            errors, notes = errors_of(name, given.repetitions)
        except DataError as error:
            console.print(f"{name} is left out: {error}")
            continue
        means = errors.mean(axis=0)
        ranks.append(rankdata(np.round(means, 6)))
        rows.append([name, *(f"{mean:.1f}" for mean in means), max(set(notes), key=notes.count)])
        console.print(*rows[-1])
    places = np.array(ranks)
    mean_ranks = places.mean(axis=0)
    rows.append(["mean rank", *(f"{rank:.2f}" for rank in mean_ranks), ""])
    title = f"error in percent, {FOLDS} folds x {given.repetitions}"
    show(title, ["set", *NAMES, "chosen most often"], rows)
    behind = mean_ranks[0] - mean_ranks.min()
    spread = places.std(axis=0, ddof=1).mean() / np.sqrt(len(places))
    console.print(f"behind the first mean rank by {behind:.2f}: {holds(behind, spread)}")


if __name__ == "__main__":
    main()
