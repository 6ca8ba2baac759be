"""Smooth losses and a lasso penalty over a tree: the root solves, and all evaluate where it looks.

    w                                            down the tree: where to look next
    h_k(w), grad h_k(w), Hessian of h_k at w     alone
    their sums                                   up the tree
    the next w                                   alone, at the root (local/proximal_newton.py)

Only the root decides, as in `Newton`, whose settings are used. All agents have the same zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.minimum import (
    Minimum,
    check_start,
    largest_sent,
    slopes_and_values,
)
from peerlearn.algorithms.smooth.newton import LARGEST, Newton
from peerlearn.algorithms.sums import broadcast_from_root, sum_to_root
from peerlearn.arrays import Array, sendable
from peerlearn.errors import InputError, NetworkError
from peerlearn.local.losses import Losses, hessians
from peerlearn.local.proximal_newton import RELATIVE, ProximalNewton
from peerlearn.network.base import Network

NO_BOUND = "a lasso has no certified distance: `converged` is about the gradient, penalty included"
CHANGE = "raise tolerance or alpha, or raise max_iterations if all of them were used"


def minimise_with_lasso(
    network: Network,
    losses: Losses,
    settings: Newton,
    begin: Callable[[Array], ProximalNewton],
    start: Array,
) -> Minimum:
    """Return a minimum of the losses of all agents and a lasso penalty.

    begin: returns the search from a start, with its penalty; called at the root alone.
    """
    if not network.reliable:
        raise NetworkError(
            "a lasso needs every message to arrive, and this network loses some: use "
            "penalty='ridge' with solver='diffusion'"
        )
    if losses.dimension > LARGEST:
        raise InputError(
            f"a lasso sums Hessians, which is for up to {LARGEST} coefficients, and there are "
            f"{losses.dimension}: use penalty='ridge' with solver='lbfgs'"
        )
    loop = Iterations(
        network, "Newton", settings.tolerance, settings.max_iterations, measure="gradient"
    )
    w = check_start(network, losses, 0.0, start)
    d = losses.dimension
    root = network.tree.root
    leader = network.hosted.index(root) if root in network.hosted else None
    search = None if leader is None else begin(w[leader])
    for _ in loop:
        own = sendable(_evaluate(network, losses, w), largest_sent(network))
        sums = sum_to_root(network, own, "values, gradients and Hessians of losses")
        rows = np.zeros((len(w), d + 2))
        if search is not None and leader is not None:
            _tell(search, sums[leader], d)
            if loop.exhausted and not search.over:
                search.finish()
            rows[leader] = [*search.w, float(search.over), search.size]
        rows = broadcast_from_root(network, sendable(rows))
        w = rows[:, :d].copy()
        over, size = rows[0, d:].tolist()  # the same at every agent
        loop.record(size)
        if over:
            loop.stop()
    small = max(settings.tolerance, RELATIVE * loop.residuals[0])
    last = loop.residuals[-1]
    report = loop.report(CHANGE, residual=0.0 if last <= small else last)
    return Minimum(w, replace(report, bound_reason=NO_BOUND), apart=0.0)


def _evaluate(network: Network, losses: Losses, w: Array) -> Array:
    rows, columns = np.triu_indices(losses.dimension)
    # Hessians first: some losses compute values and gradients on the way.
    upper = hessians(losses, w)[:, rows, columns]
    return np.column_stack([slopes_and_values(network, losses, w), upper])


def _tell(search: ProximalNewton, sums: Array, d: int) -> None:
    """Give sums at its w to the search."""
    A = np.empty((d, d))
    upper = np.triu_indices(d)
    A[upper] = sums[d + 1 :]
    A.T[upper] = sums[d + 1 :]
    search.look(float(sums[d]), sums[:d], A)
