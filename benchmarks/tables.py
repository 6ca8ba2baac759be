"""Claim: models over ten agents, without any setting, are as good as scikit-learn's in one place.

Ours: RVFLClassifier() and LogisticClassifier() over ten agents on a ring. RVFLClassifier() gets the
columns as they are. LogisticClassifier() gets columns that NetworkScaler standardised over the
network. Rivals, at their defaults and with all rows in one place: logistic regression, a support
vector machine, a random forest and histogram gradient boosting; their columns are standardised.
Two sets have categories and gaps: TablePreparer prepares them for our models, and medians,
indicators of gaps and one-hot columns for the rivals. Five folds, repeated; every preparation
learns from the training rows only. At most --rows rows of a set, drawn at random; half as many
of the three sets in HALVED, which take longest.

Limit 1: the mean rank of RVFLClassifier() is the first, or within the critical difference of it.
Limit 2: RVFLClassifier() is at most two standard errors behind the best model of each set. A set
that misses it is explained on the page docs/tables.md.

All sets were named here before the first run. Files that are not in the folder --data are left out.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import console, holds, show, spread
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from peerlearn import (
    LogisticClassifier,
    NetworkScaler,
    RVFLClassifier,
    SimulatedNetwork,
    TablePreparer,
    data,
    graphs,
)
from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.lab.analysis.statistics import friedman
from peerlearn.lab.figures.ranks import draw_ranks

FOLDS = 5
AGENTS = 10
LEVEL = 0.05
BUILT_IN = ("iris", "wine", "breast-cancer", "digits", "two-moons")
FILES = (
    "G50C",
    "Garageband",
    "Artist20",
    "BCI",
    "GTZAN_substitute",
    "FMA8genre_substitute",
    "MSDSubsetYear_substitute",
    "Adult_substitute",
    "Skin_substitute",
    "Sylva",
)
MIXED = ("hospitals", "FedHeart")
HALVED = ("FMA8genre_substitute", "MSDSubsetYear_substitute", "Sylva")
SETS = (*BUILT_IN, *FILES, *MIXED)
OURS = "RVFL, 10 agents"
RIVALS: Mapping[str, Callable[[int], Any]] = {
    "LogReg": lambda seed: LogisticRegression(),
    "SVC": lambda seed: SVC(),
    "Forest": lambda seed: RandomForestClassifier(random_state=seed),
    "Boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
NAMES = (OURS, "Logistic, 10 agents", *RIVALS)


@dataclass(frozen=True)
class Table:
    """Rows and labels.

    categories: places of columns that are no numbers.
    gaps: whether the table has gaps and categories.
    """

    X: Any
    y: Any
    categories: tuple[int, ...] = ()
    gaps: bool = False

    def some_rows(self, most: int) -> Table:
        """Return at most so many rows, drawn at random."""
        rows = np.random.default_rng(0).permutation(len(self.y))[:most]
        return Table(self.X[rows], self.y[rows], self.categories, self.gaps)


def load_table(name: str, folder: Path | None) -> Table:
    """Return all rows of a set."""
    if name == "hospitals":
        return _hospitals()
    if name == "FedHeart":
        return _fed_heart(folder)
    found = data.load(name, folder, scaled=False)
    return Table(found.X, found.y)


def _hospitals() -> Table:
    """Return the tables of ten generated hospitals, with days instead of dates."""
    sites = data.hospital_tables(AGENTS, rows=150, seed=0)
    X = np.concatenate([rows for rows, _ in sites])
    y = np.concatenate([labels for _, labels in sites])
    names = list(data.HOSPITAL_COLUMNS)
    day = names.index("admitted")
    X[:, day] = np.array(X[:, day], dtype="datetime64[D]").astype(np.int64).tolist()
    categories = tuple(names.index(column) for column in ("sex", "pain", "smoker"))
    return Table(X, y, categories, gaps=True)


def _fed_heart(folder: Path | None) -> Table:
    """Return the rows of four hospitals, with None for gaps and texts for categories."""
    path = Path(folder or ".") / "FedHeart.npz"
    if not path.exists():
        raise DataError(f"there is no file {path}: name its folder by --data")
    with np.load(path) as file:
        found = file["X"]
        y = file["y"]
        names = file["columns"].tolist()
        categories = tuple(names.index(name) for name in file["categorical"].tolist())
    X = found.astype(object)
    X[:, categories] = [[f"{code:g}" for code in row] for row in found[:, categories]]
    X[np.isnan(found)] = None
    return Table(X, y, categories, gaps=True)


def models(table: Table, seed: int) -> dict[str, Any]:
    """Return our models and their rivals, each with what prepares its rows."""
    network = SimulatedNetwork(graphs.ring(AGENTS))
    rvfl = RVFLClassifier(network=network, random_state=seed)
    logistic = LogisticClassifier(network=network, random_state=seed)
    if table.gaps:
        found = [make_pipeline(_preparer(table, network, seed), own) for own in (rvfl, logistic)]
    else:
        found = [rvfl, make_pipeline(NetworkScaler(network=network, random_state=seed), logistic)]
    for make in RIVALS.values():
        found.append(make_pipeline(_rival_preparation(table), make(seed)))
    return dict(zip(NAMES, found, strict=True))


def _preparer(table: Table, network: SimulatedNetwork, seed: int) -> TablePreparer:
    columns = {f"x{place}": "category" for place in table.categories}
    return TablePreparer(columns, network=network, random_state=seed)


def _rival_preparation(table: Table) -> Any:
    """Return what prepares the rows of rivals, as scikit-learn's pages do it."""
    if not table.gaps:
        return StandardScaler()
    numbers = [place for place in range(table.X.shape[1]) if place not in table.categories]
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [("numbers", filled, numbers), ("categories", one_hot, list(table.categories))]
    )


def runs(table: Table, repetitions: int) -> Iterator[tuple[int, Array, Array]]:
    """Yield a seed, the training rows and the test rows of every repetition and fold."""
    for repetition in range(repetitions):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repetition)
        for fold, (train, test) in enumerate(folds.split(table.X, table.y)):
            yield repetition * FOLDS + fold, train, test


def measure(name: str, table: Table, repetitions: int) -> Iterator[list[str]]:
    """Yield a line for each run and model: set, seed, model, error in percent, what it chose."""
    for seed, train, test in runs(table, repetitions):
        for model_name, model in models(table, seed).items():
            model.fit(table.X[train], table.y[train])
            error = 100 * (1 - model.score(table.X[test], table.y[test]))
            chosen = _choice(model) if model_name == OURS else ""
            yield [name, str(seed), model_name, f"{error:.6f}", chosen]


def _choice(model: Any) -> str:
    """Return what RVFLClassifier() chose."""
    rvfl = model if isinstance(model, RVFLClassifier) else model[-1]
    note: str = rvfl.report_.note
    return note.split("; ")[-1].split(" features")[0]


def read_lines(path: Path) -> dict[str, list[list[str]]]:
    """Return the lines of sets that were measured before, by set."""
    found: dict[str, list[list[str]]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for line in csv.reader(file):
                found.setdefault(line[0], []).append(line)
    return found


def errors_of(lines: list[list[str]]) -> Array:
    """Return runs x models errors."""
    seeds = sorted({int(line[1]) for line in lines})
    table = np.full((len(seeds), len(NAMES)), np.nan)
    for _, seed, model, error, _ in lines:
        table[seeds.index(int(seed)), NAMES.index(model)] = float(error)
    return table


def summarise(found: Mapping[str, list[list[str]]], picture: Path | None) -> None:
    """Print the table of errors and ranks, and draw the diagram."""
    rows = []
    means = []
    for name, lines in found.items():
        errors = errors_of(lines)
        mean = errors.mean(axis=0)
        means.append(mean)
        best = int(np.argmin(mean))
        behind = errors[:, 0] - errors[:, best]
        far = behind.mean() / spread(behind) if best and spread(behind) else 0.0
        chosen = [line[4] for line in lines if line[4]]
        usual = max(sorted(set(chosen)), key=chosen.count)
        rows.append([name, *(f"{each:.1f}" for each in mean), f"{far:.1f}", usual])
    result = friedman(NAMES, np.array(means), LEVEL)
    ranks = result.ranks
    rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranks), "", ""])
    heads = ["set", *(name.split(",")[0] for name in NAMES), "behind", "chosen most often"]
    show(f"error in percent, {FOLDS} folds; behind the best, in standard errors", heads, rows)
    behind = ranks[0] - min(ranks)
    difference = result.difference
    console.print(
        f"behind the first mean rank by {behind:.2f}, critical difference {difference:.2f}: "
        f"{holds(behind, difference)}"
    )
    missed = [row[0] for row in rows[:-1] if float(row[-2]) > 2]
    console.print(f"more than two standard errors behind: {', '.join(missed) or 'nowhere'}")
    if picture is not None:
        title = f"Mean ranks by error, 1 the best: {len(means)} sets"
        draw_ranks(result, title).savefig(picture, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=3, help="of the five folds; default: 3")
    parser.add_argument("--rows", type=int, default=3_000, help="most rows of a set; default: 3000")
    parser.add_argument("--data", type=Path, help="folder with the files of data sets")
    parser.add_argument("--sets", nargs="*", default=SETS, help="names of data sets")
    parser.add_argument("--lines", type=Path, default=Path("tables.csv"), help="errors of all runs")
    parser.add_argument("--picture", type=Path, help="file for the diagram")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of LogisticRegression at its defaults
    found = read_lines(given.lines)
    for name in given.sets:
        if name in found:
            continue
        try:
            most = given.rows // 2 if name in HALVED else given.rows
            table = load_table(name, given.data).some_rows(most)
        except DataError as error:
            console.print(f"{name} is left out: {error}", highlight=False)
            continue
        found[name] = list(measure(name, table, given.repetitions))
        with given.lines.open("a", newline="") as file:
            csv.writer(file).writerows(found[name])
        console.print(name, errors_of(found[name]).mean(axis=0).round(2), highlight=False)
    summarise({name: found[name] for name in SETS if name in found}, given.picture)


if __name__ == "__main__":
    main()
