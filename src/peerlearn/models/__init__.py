"""scikit-learn estimators whose training is spread over a network of agents."""

from peerlearn.models.anchor_lap import AnchorLapClassifier
from peerlearn.models.esn import ESNRegressor
from peerlearn.models.filters import LMSFilter, SplineFilter
from peerlearn.models.lapkrr import LapKRRClassifier
from peerlearn.models.rvfl import RVFLClassifier, RVFLRegressor
from peerlearn.models.s3vm import S3VMClassifier
from peerlearn.models.vertical import VerticalRVFLClassifier, VerticalRVFLRegressor

__all__ = [
    "AnchorLapClassifier",
    "ESNRegressor",
    "LMSFilter",
    "LapKRRClassifier",
    "RVFLClassifier",
    "RVFLRegressor",
    "S3VMClassifier",
    "SplineFilter",
    "VerticalRVFLClassifier",
    "VerticalRVFLRegressor",
]
