"""What noise costs: epsilon and delta of releases with Gaussian noise, by dp-accounting.

Computed from Renyi divergences. Those of the discrete Gaussian are at most those of the continuous
one, in any number of dimensions (Canonne, Kamath and Steinke, The discrete Gaussian for
differential privacy, 2020), and those of several releases add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from peerlearn.errors import MissingExtra

ORDERS = (1 + 2.0 ** np.linspace(-8, 20, 281)).tolist()  # of divergences; the best one counts


def compute_epsilon(multipliers: Sequence[float], delta: float) -> float:
    """Return the epsilon of several releases together.

    multipliers: deviations of their noise, each relative to what one row can change.
    """
    accounting, accountant = _accountant()
    for multiplier in multipliers:
        accountant.compose(accounting.GaussianDpEvent(multiplier))
    return float(accountant.get_epsilon(delta))


@cache
def find_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least noise multiplier with which one release costs no more than epsilon."""
    accounting, _ = _accountant()
    found = accounting.calibrate_dp_mechanism(
        lambda: _accountant()[1], accounting.GaussianDpEvent, epsilon, delta
    )
    return float(found)


def _accountant() -> tuple[Any, Any]:
    """Return the package dp-accounting, and an accountant of Renyi divergences."""
    try:
        import dp_accounting
        from dp_accounting import rdp
    except ImportError:
        raise MissingExtra("differential privacy", "dp-accounting", "privacy") from None
    return dp_accounting, rdp.RdpAccountant(orders=ORDERS)
