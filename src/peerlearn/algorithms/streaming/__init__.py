"""Learners of streams: agents learn together while data arrive. One file per method."""

from peerlearn.algorithms.streaming.consensus import StreamConsensus
from peerlearn.algorithms.streaming.diffusion_lms import DiffusionLMS
from peerlearn.algorithms.streaming.diffusion_rls import DiffusionRLS
from peerlearn.algorithms.streaming.exact import StreamExact
from peerlearn.algorithms.streaming.learner import Learner

__all__ = ["DiffusionLMS", "DiffusionRLS", "Learner", "StreamConsensus", "StreamExact"]
