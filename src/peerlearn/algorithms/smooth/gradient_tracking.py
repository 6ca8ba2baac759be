"""Gradient tracking: descent along the gradient of the whole network, which agents estimate.

    p_k = -(N v_k + alpha w_k)                                alone; the rest is in tracked.py

Nedic, Olshevsky and Shi, Achieving geometric convergence for distributed optimization over
time-varying graphs, 2017; Qu and Li, Harnessing smoothness to accelerate distributed optimization,
2018. By default an iteration mixes a few times, accelerated, as many times as the graph asks for
(mixing.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.smooth.minimum import Minimum, check_alpha, check_limits
from peerlearn.algorithms.smooth.mixing import check_mixing
from peerlearn.algorithms.smooth.steps import StepRule, check_step
from peerlearn.algorithms.smooth.tracked import TrackingRun
from peerlearn.arrays import Array
from peerlearn.local.losses import Losses
from peerlearn.network.base import Network

__all__ = ["GradientTracking"]


@dataclass(frozen=True)
class GradientTracking:
    """Minimisation of smooth losses by gradient tracking.

    Needs gradients only, and works by gossip. Every message must arrive.

    Parameters
    ----------
    mixing : {"chebyshev", "plain"}, default "chebyshev"
        "chebyshev" needs far fewer rounds on badly connected graphs. "plain" is one round per
        iteration, and may be enough on good ones.
    step : StepRule or None, default None
        Steps by a rule. None chooses them by the curvature that the iteration shows.
    tolerance : float, default 1e-5
        Size of |grad F| at which to stop.
    max_iterations : int, default 10000
        Limit of iterations; a solution that needs more warns.

    Examples
    --------
    >>> from peerlearn import GradientTracking, S3VMClassifier, SimulatedNetwork, graphs
    >>> X, y = [[0.0], [1.0], [0.1], [0.9], [0.2], [0.8]], [0, 1, 0, 1, -1, -1]  # -1: no label
    >>> network = SimulatedNetwork(graphs.ring(3))
    >>> solver = GradientTracking(tolerance=1e-2)
    >>> model = S3VMClassifier(solver=solver, network=network, random_state=0).fit(X, y)
    >>> model.report_.converged
    True
    """

    name: ClassVar = "tracking"

    mixing: Literal["chebyshev", "plain"] = "chebyshev"
    step: StepRule | None = None
    tolerance: float = 1e-5
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        check_mixing(self.mixing)
        check_step(self.step)
        check_limits(self.tolerance, self.max_iterations, "GradientTracking")

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        """Return a minimum of the losses of all agents and the penalty."""
        check_alpha(alpha)
        # As long as a step may be where h bends upwards.
        largest_step = 1 / alpha if alpha > 0 else np.inf
        return TrackingRun(
            network,
            losses,
            alpha,
            "GradientTracking",
            direction=lambda w, G: -G,
            metric=1.0,
            largest_step=largest_step,
            step=self.step,
            mixing=self.mixing,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        ).minimise(start)
