"""The type of a case that all engines must agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from peerlearn.network.base import Network

Arrays = dict[str, np.ndarray[Any, Any]]
Case = Callable[[Network], Arrays]  # named arrays whose leading axis is the hosted agents


def in_secret(network: Network, case: Case) -> Arrays:
    """Return what a case finds on a network that keeps sums secret."""
    network.keep_secrets("sums", 1)
    try:
        return case(network)
    finally:
        network.secrecy = None
