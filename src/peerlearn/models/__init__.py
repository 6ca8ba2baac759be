"""scikit-learn estimators whose training is spread over a network of agents."""

from peerlearn.public_names import lazy

__getattr__, __dir__ = lazy(__name__)
