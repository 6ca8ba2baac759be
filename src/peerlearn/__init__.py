"""peerlearn: agents that hold their own data learn one model by talking to their neighbors in a graph."""

from typing import TYPE_CHECKING, Any

from peerlearn import data, graphs, partition, weights
from peerlearn.algorithms import (
    ADMM,
    LBFGS,
    NEXT,
    Auto,
    Averaging,
    BlockCompletion,
    ConjugateGradient,
    Consensus,
    Diffusion,
    DiffusionCompletion,
    DiffusionLMS,
    DiffusionRLS,
    DualConjugateGradient,
    Exchange,
    GradientTracking,
    Gram,
    Landmarks,
    Local,
    SharingADMM,
    SketchedConjugateGradient,
    StepRule,
    StreamConsensus,
    StreamExact,
    average,
    everyone,
    maximum,
    total,
)
from peerlearn.errors import MissingExtra
from peerlearn.local.privacy import RandomProjection, TanhTransform
from peerlearn.models import (
    AnchorLapClassifier,
    ESNRegressor,
    LapKRRClassifier,
    LMSFilter,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SplineFilter,
    VerticalRVFLClassifier,
    VerticalRVFLRegressor,
)
from peerlearn.models.filters import decibels
from peerlearn.moved import keep_old_paths
from peerlearn.network import Faults, Network, SimulatedNetwork

if TYPE_CHECKING:
    from peerlearn.network.mpi import MPINetwork
    from peerlearn.network.peers.network import PeerNetwork

__version__ = "0.7.0"
keep_old_paths()

__all__ = [
    "ADMM",
    "LBFGS",
    "NEXT",
    "AnchorLapClassifier",
    "Auto",
    "Averaging",
    "BlockCompletion",
    "ConjugateGradient",
    "Consensus",
    "Diffusion",
    "DiffusionCompletion",
    "DiffusionLMS",
    "DiffusionRLS",
    "DualConjugateGradient",
    "ESNRegressor",
    "Exchange",
    "Faults",
    "GradientTracking",
    "Gram",
    "LMSFilter",
    "Landmarks",
    "LapKRRClassifier",
    "Local",
    "MPINetwork",
    "Network",
    "PeerNetwork",
    "RVFLClassifier",
    "RVFLRegressor",
    "RandomProjection",
    "S3VMClassifier",
    "SharingADMM",
    "SimulatedNetwork",
    "SketchedConjugateGradient",
    "SplineFilter",
    "StepRule",
    "StreamConsensus",
    "StreamExact",
    "TanhTransform",
    "VerticalRVFLClassifier",
    "VerticalRVFLRegressor",
    "average",
    "data",
    "decibels",
    "everyone",
    "graphs",
    "maximum",
    "partition",
    "total",
    "weights",
]


def __dir__() -> list[str]:
    """List the public names and submodules, engines that are not imported yet among them."""
    return sorted(
        {*globals(), *__all__} - {"Any", "MissingExtra", "TYPE_CHECKING", "keep_old_paths"}
    )


def __getattr__(name: str) -> Any:
    """Import engines that need more than the core when they are asked for."""
    if name == "MPINetwork":
        from peerlearn.network.mpi import MPINetwork

        return MPINetwork
    if name == "PeerNetwork":
        try:
            from peerlearn.network.peers.network import PeerNetwork
        except MissingExtra as error:
            return _stand_in(name, error)
        return PeerNetwork
    raise AttributeError(f"module 'peerlearn' has no attribute {name!r}")


def _stand_in(name: str, error: MissingExtra) -> type:
    """Return a class that raises the error when it is used: help(peerlearn) works without the packages."""

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    return type(name, (), {"__init__": refuse, "__doc__": str(error)})
