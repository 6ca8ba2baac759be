"""Algorithms that agents run together, one file per method."""

from peerlearn.public_names import lazy

__getattr__, __dir__ = lazy(__name__)
