"""The type of a case that all engines must agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from peerlearn.network.base import Network

Arrays = dict[str, np.ndarray[Any, Any]]
Case = Callable[[Network], Arrays]  # named arrays whose leading axis is the hosted agents
