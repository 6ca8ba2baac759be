"""Computations of agents on their own smooth losses h_k: curvatures, and minima of surrogates.

All agents are computed together, and each stops by itself: the result of one does not depend on the
others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peerlearn.arrays import Array, dots, norms
from peerlearn.local.losses import CurvedLosses, PartlyConvexLosses, Product

POWER_STEPS = 5  # for a bound that is a first guess
NUDGE = 1e-4  # large enough for differences of gradients to have eight digits
# Relative. With less accuracy, a step jumps when it takes one product more, which looks like
# curvature.
NEWTON_ACCURACY = 1e-6
EXACT_ACCURACY = 1e-3
INNER_ITERATIONS = 100
GROWTH = 1.5


def largest_curvatures(gradient: Product, w: Array) -> Array:
    """Return about the largest |eigenvalue| of each agent's Hessian at w, by the power method.

    A product with the Hessian is a difference of gradients.
    """
    here = gradient(w)
    bend = here + 1.0  # if the gradient is zero, any direction will do to begin with
    sizes = np.zeros(len(w))
    for _ in range(POWER_STEPS):
        length = norms(bend)[:, None]
        towards = _divide(bend, length, length > 0)
        bend = (gradient(w + NUDGE * towards) - here) / NUDGE
        sizes = np.maximum(sizes, norms(bend))
    return sizes


def newton_steps(
    losses: CurvedLosses,
    w: Array,
    G: Array,
    agents: int,
    alpha: float,
) -> Array:
    """Return p_k = -(N P_k + alpha I)^-1 G_k, with P_k the curvature of h_k at w_k.

    It is a Newton step under the assumption that all N agents are like this one. By conjugate
    gradients, each agent on its own: there is no d x d matrix, and few rows need few products.
    """
    curvature = losses.curvature(w)
    return _conjugate_gradients(lambda p: agents * curvature(p) + alpha * p, -G)


def surrogate_minima(
    losses: PartlyConvexLosses,
    w: Array,
    G: Array,
    alpha: float,
) -> Array:
    """Return u_k = argmin of  l_k(u) + alpha/2 |u|^2 + q_k'u.

    l_k is the convex part of h_k, and q_k is all else, linearised at w_k. The gradient at w_k is
    G_k, hence  q_k = G_k - grad l_k(w_k) - alpha w_k.  By gradient descent whose steps follow the
    curvature found on the way (Malitsky and Mishchenko, Adaptive gradient descent without descent,
    2020).
    """
    q = G - losses.convex_gradient(w) - alpha * w
    u = w
    slope = G
    goal = EXACT_ACCURACY * norms(G)
    going = norms(G) > 0
    bound = alpha + largest_curvatures(losses.convex_gradient, w)
    a = _divide(np.ones_like(bound), bound, bound > 0)
    for _ in range(INNER_ITERATIONS):
        if not going.any():
            break
        new = np.where(going[:, None], u - a[:, None] * slope, u)
        slope_there = losses.convex_gradient(new) + alpha * new + q
        distance = norms(new - u)
        change = norms(slope_there - slope)
        bend = _divide(change, distance, distance > 0)
        curved = bend > 0
        longest = 1 / np.where(curved, bend, 1.0)
        a = GROWTH * a
        a = np.where(curved, np.minimum(a, longest), a)
        u = new
        slope = slope_there
        going = going & (norms(slope) > goal)
    return u


def _conjugate_gradients(product: Product, right: Array) -> Array:
    """Return x_k with A_k x_k = right_k to NEWTON_ACCURACY, for positive definite A_k.

    Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, 1952.
    """
    x = np.zeros_like(right)
    r = right
    d = right
    rr = dots(r, r)
    goal = NEWTON_ACCURACY**2 * rr
    going = rr > 0
    for _ in range(INNER_ITERATIONS):
        if not going.any():
            break
        q = product(d)
        curvature = dots(d, q)
        s = _divide(rr, curvature, going & (curvature > 0))[:, None]
        x = x + s * d
        r = r - s * q
        new = dots(r, r)
        ratio = _divide(new, rr, rr > 0)[:, None]
        d = r + ratio * d
        rr = new
        going = going & (new > goal)
    return x


def _divide(numerator: Array, denominator: Array, where: NDArray[np.bool_]) -> Array:
    """Return the quotient, and 0 where `where` is false."""
    quotient = np.zeros_like(numerator)
    np.divide(numerator, denominator, out=quotient, where=where)
    return quotient
