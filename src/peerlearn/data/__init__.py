"""Data sets by name: generated, bundled with scikit-learn, read from .npz files, or fetched.

>>> from peerlearn.data import load
>>> print(load("g50c"))
g50c: 550 rows, 50 columns, classification; generated, seed 0; each of 50 columns scaled from its
own range to [-1, 1]
"""

from __future__ import annotations

from peerlearn.data.catalogue import DataInfo, available, is_a_file, is_at_hand, known_range, load
from peerlearn.data.dataset import DataSet
from peerlearn.data.fetching import fetch, fetch_missing
from peerlearn.data.generated import g50c, two_moons
from peerlearn.data.hospitals import HOSPITAL_COLUMNS, hospital_tables
from peerlearn.data.scaling import Scaling
from peerlearn.data.series import extended_polynomial, lorenz, mackey_glass, narma10
from peerlearn.data.wiener import WienerSignals, wiener

__all__ = [
    "HOSPITAL_COLUMNS",
    "DataInfo",
    "DataSet",
    "Scaling",
    "WienerSignals",
    "available",
    "extended_polynomial",
    "fetch",
    "fetch_missing",
    "g50c",
    "hospital_tables",
    "is_a_file",
    "is_at_hand",
    "known_range",
    "load",
    "lorenz",
    "mackey_glass",
    "narma10",
    "two_moons",
    "wiener",
]
