"""Adaptive filters in plain numpy, agent by agent and formula by formula: what compiled filters
must equal.
"""

from __future__ import annotations

import numpy as np

from peerlearn.local.splines import Spline


def by_hand(
    x,
    d,
    update,
    *,
    C=None,
    before=False,
    spans=False,
    every=1,
    threshold=None,
    steps=(0.0, 0.0),
    spline=None,
    forgetting=1.0,
):
    """Outputs and [w, q] of every agent. C: the weights, None for agents alone. steps: of
    w and q.
    """
    agents, samples = x.shape
    order, Q = 5, spline.size if spline else 0
    theta = np.tile(np.concatenate([np.eye(order)[0], spline.knots if spline else []]), (agents, 1))
    prior = np.repeat([0.3, 0.1] if spline else [100.0, 0.0], [order, Q])
    P = [np.diag(prior)] * agents
    padded = np.hstack([np.zeros((agents, order - 1)), x])
    y, fade = np.empty_like(x), 0.02 if spline else 0.0
    visited, said = np.zeros(agents, dtype=int), theta.copy()
    squares = np.zeros(x.shape)

    def combine(n):
        if threshold is not None:
            speaking = np.linalg.norm(theta - said, axis=1) > threshold * np.linalg.norm(
                theta, axis=1
            )
            said[speaking] = theta[speaking]
            theta[:] += C @ said - said
            return
        theta[:, : order if spans else None] = C @ theta[:, : order if spans else None]
        if not spans:
            return
        old = theta.copy()
        for k in range(agents):
            i = (
                spline.rows([theta[k, :order] @ padded[k, n : n + order][::-1]])[0][0]
                if before
                else visited[k]
            )
            theta[k, order + i : order + i + 4] = C[k] @ old[:, order + i : order + i + 4]

    for n in range(samples):
        if C is not None and before and n > 0 and n % every == 0:
            combine(n)
        for k in range(agents):
            u = padded[k, n : n + order][::-1]
            s = theta[k, :order] @ u
            y[k, n], h = s, np.concatenate([u, np.zeros(Q)])
            if spline:
                (i,), (b,), (c,) = spline.rows([s])
                span = slice(order + i, order + i + 4)
                visited[k], y[k, n], slope = i, b @ theta[k, span], c @ theta[k, span]
                h[:order] *= slope
                h[span] = b
            e = d[k, n] - y[k, n]
            if update == "rls":
                f = forgetting * (1 - fade)
                g = P[k] @ h / (f + h @ P[k] @ h)
                theta[k] += g * e
                P[k] = capped((P[k] - np.outer(g, h @ P[k])) / f, prior if f < 1 else None)
            else:
                squares[k, n] = h @ h
                floor = 0.0 if spline else 0.01 * squares[k, : n + 1].mean()
                size = max(h @ h, floor) if update == "nlms" and (h.any() or floor) else 1.0
                theta[k] += np.repeat(steps, [order, Q]) * h * e / size
        fade *= 0.997
        if C is not None and not before and (n + 1) % every == 0:
            combine(n)
    return y, theta


def capped(P, prior):
    """No variance above that of the prior."""
    if prior is None:
        return P
    shrink = np.sqrt(np.minimum(1.0, prior / np.maximum(np.diag(P), 1e-300)))
    return shrink[:, None] * P * shrink


def wave(agents, samples, seed=0):
    """Signals of a Wiener system that leaves the knots now and then."""
    rng, spline = np.random.default_rng(seed), Spline(2.2, 0.2)
    x = rng.standard_normal((agents, samples)) * 1.3
    s = np.stack([np.convolve(row, [0.7, -0.5, 0.4, 0.2, -0.1])[:samples] for row in x])
    bent = spline.value(s.ravel(), spline.knots + 0.3 * np.sin(3 * spline.knots)).reshape(s.shape)
    return x, bent + 0.1 * rng.standard_normal(x.shape)


def learned(model):
    return np.hstack(
        [
            model.coefficients_,
            getattr(model, "control_points_", np.zeros((len(model.coefficients_), 0))),
        ]
    )


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
