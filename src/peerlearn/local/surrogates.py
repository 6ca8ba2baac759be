"""What an agent computes of its own smooth loss h_k alone: how strongly it bends, and the minima of its surrogates.

All agents are worked on together, and each stops by itself: what one finds does not depend on those
beside it.
"""

from __future__ import annotations

import numpy as np

from peerlearn.arrays import Array, dots, norms
from peerlearn.local.losses import CurvedLosses, PartlyConvexLosses, Product

POWER_STEPS = 5  # for a bound that is a first guess
NUDGE = 1e-4  # far enough apart for differences of gradients to have eight digits
NEWTON_ACCURACY = (
    1e-6  # relative: with less, steps jump when they take one product more, and look like curvature
)
EXACT_ACCURACY = 1e-3
INNER_ITERATIONS = 100
GROWTH = 1.5


def largest_curvatures(gradient: Product, w: Array) -> Array:
    """About the largest eigenvalue, in size, of each agent's second derivative at w: by the power method.

    A product with it is a difference of gradients.
    """
    here = gradient(w)
    bend, sizes = (
        here + 1.0,
        np.zeros(len(w)),
    )  # where the gradient is zero, any direction will do to begin with
    for _ in range(POWER_STEPS):
        length = norms(bend)
        towards = np.divide(
            bend, length[:, None], out=np.zeros_like(bend), where=length[:, None] > 0
        )
        bend = (gradient(w + NUDGE * towards) - here) / NUDGE
        sizes = np.maximum(sizes, norms(bend))
    return sizes


def newton_steps(losses: CurvedLosses, w: Array, G: Array, agents: int, alpha: float) -> Array:
    """p_k = -(N P_k + alpha I)^-1 G_k, P_k the curvature of h_k at w_k: N agents like this one make up the network.

    By conjugate gradients, each agent on its own: no d x d matrix, and as many products as few rows
    ask for.
    """
    bent = losses.curvature(w)
    return _conjugate_gradients(lambda p: agents * bent(p) + alpha * p, -G)


def surrogate_minima(losses: PartlyConvexLosses, w: Array, G: Array, alpha: float) -> Array:
    """u_k = argmin of  l_k(u) + alpha/2 |u|^2 + q_k'u,  l_k the convex part of h_k, q_k all else linearised at w_k.

    Its gradient at w_k is G_k, hence  q_k = G_k - grad l_k(w_k) - alpha w_k.  By gradient descent whose steps follow
    the curvature met on the way (Malitsky and Mishchenko, Adaptive gradient descent without
    descent, 2020).
    """
    q = G - losses.convex_gradient(w) - alpha * w
    u, slope = w, G
    goal, going = EXACT_ACCURACY * norms(G), norms(G) > 0
    bound = alpha + largest_curvatures(losses.convex_gradient, w)
    a = np.divide(1.0, bound, out=np.zeros_like(bound), where=bound > 0)
    for _ in range(INNER_ITERATIONS):
        if not going.any():
            break
        new = np.where(going[:, None], u - a[:, None] * slope, u)
        slope_there = losses.convex_gradient(new) + alpha * new + q
        moved, changed = norms(new - u), norms(slope_there - slope)
        bend = np.divide(changed, moved, out=np.zeros_like(moved), where=moved > 0)
        a = np.where(
            bend > 0, np.minimum(GROWTH * a, 1 / np.where(bend > 0, bend, 1.0)), GROWTH * a
        )
        u, slope = new, slope_there
        going = going & (norms(slope) > goal)
    return u


def _conjugate_gradients(product: Product, right: Array) -> Array:
    """x_k with A_k x_k = right_k to NEWTON_ACCURACY, A_k positive definite (Hestenes and Stiefel, 1952)."""
    x, r, d = np.zeros_like(right), right, right
    rr = dots(r, r)
    goal, going = NEWTON_ACCURACY**2 * rr, rr > 0
    for _ in range(INNER_ITERATIONS):
        if not going.any():
            break
        q = product(d)
        curvature = dots(d, q)
        s = np.divide(rr, curvature, out=np.zeros_like(rr), where=going & (curvature > 0))[:, None]
        x, r = x + s * d, r - s * q
        new = dots(r, r)
        d = r + np.divide(new, rr, out=np.zeros_like(rr), where=rr > 0)[:, None] * d
        rr, going = new, going & (new > goal)
    return x
