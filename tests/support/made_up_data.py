"""Small tables under the names of the thesis's files: the right classes and kinds of columns, and
made-up numbers.
"""

from __future__ import annotations

import numpy as np

ROWS = 120
FOLDS = 10  # each must have a row of each class
SIGNS, BITS = (-1, 1), (0, 1)
# name -> columns (at most as many as the file has), and classes or the range of a number
TABLES = {
    "G50C": (50, SIGNS),
    "Garageband": (44, range(9)),
    "Skills": (18, range(1, 8)),
    "Sylva": (216, SIGNS),
    "Artist20": (30, range(20)),
    "YearPredictionMSD": (90, BITS),
    "2Moons": (2, SIGNS),
    "BCI": (117, SIGNS),
    "COIL20": (64, range(20)),
    "COIL2": (64, SIGNS),
    "PCMAC": (80, SIGNS),
    "GTZAN_substitute": (57, range(10)),
    "FMA8genre_substitute": (42, range(8)),
    "MSDSubsetYear_substitute": (90, BITS),
    "Skin_substitute": (3, SIGNS),
    "Adult_substitute": (63, SIGNS),
}


def write_made_up(folder):
    """A file for each of them; classes differ in their means, so that there is something
    to learn.
    """
    rng = np.random.default_rng(0)
    for name, (columns, classes) in TABLES.items():
        y = np.resize(np.array(classes, dtype=np.int8), max(ROWS, FOLDS * len(classes)))
        X = rng.normal(size=(len(y), columns)) + 0.8 * rng.normal(size=(128, columns))[y]
        np.savez(folder / f"{name}.npz", X=(X - X.min()) / np.ptp(X), y=y)
    X = rng.uniform(0, 40, (ROWS, 4))
    np.savez(folder / "CCPP.npz", X=X, y=500 - X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=ROWS))
    y = np.resize(np.arange(10, dtype=np.uint8), ROWS)
    images = (rng.integers(0, 100, (ROWS, 32, 32, 3)) + 12 * y[:, None, None, None]).astype(
        np.uint8
    )
    np.savez(folder / "CIFAR10.npz", X=images, y=y, X_test=images[:40], y_test=y[:40])
