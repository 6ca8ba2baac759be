"""scikit-learn estimators whose training is spread over a network of agents."""

from peerlearn.models.rvfl import RVFLClassifier, RVFLRegressor
from peerlearn.models.vertical import VerticalRVFLClassifier, VerticalRVFLRegressor

__all__ = ["RVFLClassifier", "RVFLRegressor", "VerticalRVFLClassifier", "VerticalRVFLRegressor"]
