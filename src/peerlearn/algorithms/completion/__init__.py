"""Completions: all distances from some, computed together. One file per method."""

from peerlearn.algorithms.completion.block import BlockCompletion
from peerlearn.algorithms.completion.completed import (
    COMPLETION,
    Completed,
    Completion,
    completion_of,
)
from peerlearn.algorithms.completion.diffusion import DiffusionCompletion

__all__ = [
    "COMPLETION",
    "BlockCompletion",
    "Completed",
    "Completion",
    "DiffusionCompletion",
    "completion_of",
]
