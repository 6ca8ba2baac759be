"""peerlearn: agents that hold their own data learn one model by talking to their neighbors in a graph."""

from peerlearn import data, graphs, partition, weights
from peerlearn.algorithms import (
    ADMM,
    Auto,
    Averaging,
    ConjugateGradient,
    Consensus,
    Gram,
    Local,
    average,
    everyone,
    maximum,
    total,
)
from peerlearn.models import RVFLClassifier, RVFLRegressor
from peerlearn.network import Faults, Network, SimulatedNetwork

__version__ = "0.1.0"

__all__ = [
    "ADMM",
    "Auto",
    "Averaging",
    "ConjugateGradient",
    "Consensus",
    "Faults",
    "Gram",
    "Local",
    "Network",
    "RVFLClassifier",
    "RVFLRegressor",
    "SimulatedNetwork",
    "average",
    "data",
    "everyone",
    "graphs",
    "maximum",
    "partition",
    "total",
    "weights",
]
