"""Claim: agents that learn from a stream without showing their rows err as often as if all rows
came to one place.

Setting: chapter 5. Features to [-1, 1], 8 agents on erdos_renyi(8, 0.2), 10 folds, training rows
twice over, a stream
in chunks of 20 rows for the whole network, features and alpha of the thesis's table 5.2. LMD is not
to be had: GTZAN stands in for it, with its settings. Errors of all agents on the test rows after
the last chunk. `local`: recursions that never talk. `thesis`: S-CONS-RVFL as printed, plain
averages by its rule. Rival: the centralised model. Limits: the default stream within two points of
it on the thesis's own data sets, the exact one within a tenth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import console, holds, show
from rich.progress import track
from sklearn.model_selection import StratifiedKFold

from peerlearn import Averaging, RVFLClassifier, SimulatedNetwork, StreamConsensus, data, graphs
from peerlearn.arrays import Array
from peerlearn.data import DataSet
from peerlearn.data.scaling import Scaling
from peerlearn.errors import DataError

FOLDS, AGENTS, CHUNK = 10, 8, 20
LIMITS = {"consensus": 2.0, "exact": 0.1}  # points above the centralised error
AS_PRINTED = Averaging("plain", tolerance=1e-4, max_rounds=300, stopping="thesis")
NEVER = 10**9
# hidden units, alpha, and the thesis's errors of the centralised, local and S-CONS model, in
# percent
SETS = {
    "Garageband": (300, 2.0**-3, (40, 45, 40)),
    "Artist20": (200, 2.0**-4, (37, 47, 37)),
    "GTZAN_substitute": (400, 2.0**-2, (25, 31, 26)),
}
STREAMS = {
    "centralised": None,
    "local": StreamConsensus(every=NEVER, variant="thesis"),
    "thesis": StreamConsensus(averaging=AS_PRINTED, variant="thesis"),
    "consensus": "consensus",
    "every 5 chunks": StreamConsensus(every=5),
    "news above 30 %": StreamConsensus(threshold=0.3),
    "rls": "rls",
    "lms": "lms",
    "exact": "exact",
}
THESIS = {"centralised": 0, "local": 1, "thesis": 2}


def load(name: str, folder: Path | None) -> DataSet:
    """Garageband has all its 49 columns in chapter 5."""
    found = data.load(name, folder, scaled=False)
    X = found.extras.get("X49", found.X)
    scaling = Scaling.of(X, (-1.0, 1.0))
    return DataSet(found.name, scaling.apply(X), found.y, found.task, found.source, scaling)


def runs(dataset: DataSet, repetitions: int) -> Iterator[tuple[int, Array, Array]]:
    """Every repetition and fold: a seed, the training rows twice over in random order, and the test
    rows.
    """
    for repetition in range(repetitions):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repetition)
        for fold, (train, test) in enumerate(folds.split(dataset.X, dataset.y)):
            seed = repetition * FOLDS + fold
            yield seed, np.random.default_rng(seed).permutation(np.tile(train, 2)), test


def run(
    stream: object, dataset: DataSet, seed: int, train: Array, test: Array
) -> tuple[float, float]:
    """The mean error of all agents in percent, and the MB that they sent."""
    hidden, alpha, _ = SETS[dataset.name]
    model = RVFLClassifier(
        hidden, alpha, fit_intercept=False, random_state=seed, activation="sigmoid"
    )
    if stream is None:
        model.fit(dataset.X[train], dataset.y[train])
    else:
        model.set_params(
            network=SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.2, seed=seed)), stream=stream
        )
        classes = np.unique(dataset.y)
        for start in range(0, len(train), CHUNK):
            rows = train[start : start + CHUNK]
            model.partial_fit(dataset.X[rows], dataset.y[rows], classes)
    scores = model.agent_scores(dataset.X[test], dataset.y[test])
    return 100 * (1 - float(np.mean(scores))), model.report_.sent.megabytes


def row(
    name: str, found: Array, centralised: float, printed: tuple[int, ...], limit: float | None
) -> list[str]:
    errors, megabytes = found[:, 0], float(found[:, 1].mean())
    thesis = f"{printed[THESIS[name]]}" if name in THESIS else ""
    cells = [name, f"{errors.mean():.1f} ± {errors.std():.1f}", thesis, f"{megabytes:,.3g}"]
    away = float(errors.mean()) - centralised
    return [*cells, "", ""] if limit is None else [*cells, f"+ {limit:g}", holds(away, limit)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, help="folder of the .npz files; default: the variable PEERLEARN_DATA"
    )
    parser.add_argument(
        "--repetitions", type=int, default=1, help="of all folds; the thesis has 50"
    )
    options = parser.parse_args()
    for name, (_, _, printed) in SETS.items():
        try:
            dataset = load(name, options.folder)
        except DataError as error:
            console.print(f"{name} is left out: {error}", highlight=False)
            continue
        every = track(list(runs(dataset, options.repetitions)), name, console=console)
        table = np.array(
            [[run(stream, dataset, *each) for stream in STREAMS.values()] for each in every]
        )
        centralised = float(table[:, 0, 0].mean())
        limits = {"exact": LIMITS["exact"]} if name.endswith("substitute") else LIMITS
        rows = [
            row(kind, table[:, i], centralised, printed, limits.get(kind))
            for i, kind in enumerate(STREAMS)
        ]
        title = f"{name}: error in percent, {FOLDS} folds x {options.repetitions}"
        show(title, ["stream", "error", "thesis", "MB sent", "limit", ""], rows)


if __name__ == "__main__":
    main()
