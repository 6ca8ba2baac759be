"""Algorithms that agents run together, one file per method."""

from peerlearn.algorithms.averaging import Averaging, average, iterates, total
from peerlearn.algorithms.columns import (
    DualConjugateGradient,
    SharingADMM,
    SketchedConjugateGradient,
)
from peerlearn.algorithms.completion import BlockCompletion, DiffusionCompletion
from peerlearn.algorithms.distances import Exchange, Landmarks
from peerlearn.algorithms.flooding import everyone, maximum
from peerlearn.algorithms.readout.admm import ADMM
from peerlearn.algorithms.readout.auto import Auto
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.readout.consensus import Consensus
from peerlearn.algorithms.readout.gram import Gram
from peerlearn.algorithms.readout.local import Local
from peerlearn.algorithms.readout.solver import Solution, Solver
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.smooth import LBFGS, NEXT, Diffusion, GradientTracking, StepRule
from peerlearn.algorithms.streaming import DiffusionLMS, DiffusionRLS, StreamConsensus, StreamExact

__all__ = [
    "ADMM",
    "LBFGS",
    "NEXT",
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
    "Exchange",
    "GradientTracking",
    "Gram",
    "Landmarks",
    "Local",
    "Report",
    "SharingADMM",
    "SketchedConjugateGradient",
    "Solution",
    "Solver",
    "StepRule",
    "StreamConsensus",
    "StreamExact",
    "average",
    "everyone",
    "iterates",
    "maximum",
    "total",
]
