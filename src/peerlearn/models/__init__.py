"""scikit-learn faces over the algorithms."""

from peerlearn.models.rvfl import RVFLClassifier, RVFLRegressor

__all__ = ["RVFLClassifier", "RVFLRegressor"]
