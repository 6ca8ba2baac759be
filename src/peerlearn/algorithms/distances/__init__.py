"""Ways to share how far rows are from each other, one file per way."""

from peerlearn.algorithms.distances.choice import DISTANCES, Distances, describe_draws, distances_of
from peerlearn.algorithms.distances.exchange import Exchange
from peerlearn.algorithms.distances.landmarks import Landmarks
from peerlearn.algorithms.distances.partial_matrix import Known, Mask
from peerlearn.algorithms.distances.row_index import Places

__all__ = [
    "DISTANCES",
    "Distances",
    "Exchange",
    "Known",
    "Landmarks",
    "Mask",
    "Places",
    "describe_draws",
    "distances_of",
]
