"""Adaptive filters in plain numpy, agent by agent and formula by formula: what compiled filters
must equal.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from peerlearn.local.splines import Spline

OPENING = 128  # samples of which the scale is taken
REFINED = (512, 1024, 2048)  # samples after which it is taken again
ALONE = 512  # samples after which an agent alone starts once more


def alone_by_hand(x, d, update, **settings):
    """As `by_hand`, of scaled filters of agents alone: after 512 samples they start once more."""
    y, theta = by_hand(x[:, :ALONE], d[:, :ALONE], update, **settings)
    if x.shape[1] < ALONE:
        return y, theta
    later, theta = by_hand(x, d, update, opening=ALONE, **settings)
    return np.hstack([y, later[:, ALONE:]]), theta


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
    bias=False,
    scale=False,
    robust=False,
    opening=OPENING,
):
    """Outputs and [w, bias, q] of every agent. C: the weights, None for agents alone. steps: of
    w and q.
    """
    agents, samples = x.shape
    order, Q = 5, spline.size if spline else 0
    taps = order + bias
    begin = np.concatenate([np.eye(taps)[0], spline.knots if spline else []])
    variances = np.repeat([0.3, 0.1, 0.1] if spline else [100.0, 100.0, 0.0], [order, int(bias), Q])
    scales = [(1.0, 0.0, 1.0, 0.0, 1.0)] * agents
    if scale:
        scales = scales_by_hand(x[:, :opening], d[:, :opening], C is not None)
    start, units, priors = [], [], []
    for A, m_x, D, m_d, *_ in scales:
        own = begin.copy()
        own[:order] /= A
        own[order:taps] = -m_x / A
        own[taps:] = D * own[taps:] + m_d
        unit = np.repeat([1 / (A * D) ** 2, 1 / D**2, 1.0], [order, int(bias), Q])
        start.append(own)
        units.append(unit)
        priors.append(variances * unit)
    theta = np.array(start)
    P = [np.diag(prior) for prior in priors]
    padded = np.hstack([np.zeros((agents, order - 1)), x])
    y, fade = np.empty_like(x), np.full(agents, 0.02 if spline else 0.0)
    visited, said = np.zeros(agents, dtype=int), theta.copy()
    last, factors = np.zeros_like(theta), np.ones(agents)
    squares = np.zeros(x.shape)
    # The usual power of errors, CUSUM, and number of errors.
    p = [D**2 if scale else 0.0 for _, _, D, *_ in scales]
    c, a = np.zeros(agents), np.full(agents, 20 if scale else 0)

    def combine(n):
        if threshold is not None:
            size = np.linalg.norm(theta, axis=1)
            speaking = np.linalg.norm(theta - said, axis=1) > factors * threshold * size
            change = np.where(speaking[:, None], theta - said, 0.0)
            said[:] += change
            news = np.maximum(
                1000 * np.linalg.norm(theta - last, axis=1),
                0.9 * np.linalg.norm(C @ change, axis=1),
            )
            factors[:] = np.minimum(1, np.maximum(0.95 * factors, news / threshold / size))
            theta[:] += C @ said - said
            last[:] = theta
            return
        theta[:, : taps if spans else None] = C @ theta[:, : taps if spans else None]
        if not spans:
            return
        old = theta.copy()
        for k in range(agents):
            i = visited[k]
            if before:
                u = np.concatenate([padded[k, n : n + order][::-1], np.ones(int(bias))])
                i = spline.rows([theta[k, :taps] @ u])[0][0]
            theta[k, taps + i : taps + i + 4] = C[k] @ old[:, taps + i : taps + i + 4]

    for n in range(samples):
        if C is not None and before and n > 0 and n % every == 0:
            combine(n)
        for k in range(agents):
            u = np.concatenate([padded[k, n : n + order][::-1], np.ones(int(bias))])
            s = theta[k, :taps] @ u
            y[k, n], h = s, np.concatenate([u, np.zeros(Q)])
            if spline:
                (i,), (b,), (slopes,) = spline.rows([s])
                span = slice(taps + i, taps + i + 4)
                visited[k], y[k, n], slope = i, b @ theta[k, span], slopes @ theta[k, span]
                h[:taps] *= slope
                h[span] = b
            e = d[k, n] - y[k, n]
            if update == "rls":
                weight, changed = 1.0, False
                if robust and a[k] < 20:
                    a[k] += 1
                    p[k] += (e**2 - p[k]) / a[k]
                elif robust:
                    z = e**2 / p[k]
                    a[k] += 1
                    p[k] *= 1 + (min(z, 6) - 1) / min(a[k], 500)
                    c[k] = max(0, c[k] + min(z, 6) - 2.5)
                    weight, changed = min(1, 16 / z), c[k] > 40 + 6 * order
                f = forgetting * (1 - fade[k])
                g = P[k] @ h / (f / weight + h @ P[k] @ h)
                theta[k] += g * e
                P[k] = capped((P[k] - np.outer(g, h @ P[k])) / f, priors[k] if f < 1 else None)
                fade[k] *= 0.997
                if changed:
                    theta[k], P[k], fade[k] = start[k], np.diag(priors[k]), 0.02 if spline else 0.0
                    p[k] = c[k] = a[k] = 0
            else:
                scaled = h * units[k] * h
                squares[k, n] = scaled.sum()
                floor = 0.0 if spline else 0.01 * squares[k, : n + 1].mean()
                size = max(squares[k, n], floor) if update == "nlms" and (h.any() or floor) else 1.0
                theta[k] += np.repeat(steps, [taps, Q]) * units[k] * h * e / size
        if C is not None and not before and (n + 1) % every == 0:
            combine(n)
        if scale and n + 1 in REFINED and n + 1 > opening:
            spreads = [(r_x, m_x) for _, m_x, _, _, r_x in scales]
            now = sizes_by_hand(x[:, : n + 1], spreads, C is not None)
            for k, (A, m_x, D, m_d, r_x) in enumerate(scales):
                f = now[k] / A
                J = np.eye(taps + Q) / f
                R, stretched = (
                    np.stack([spline.value(g * spline.knots, e) for e in np.eye(Q)], axis=1)
                    for g in (1.0, f)
                )
                J[taps:, taps:] = np.linalg.solve(R, stretched)
                for vectors in (theta, said, last, start):
                    vectors[k] = J @ vectors[k]
                P[k] = J @ P[k] @ J.T
                fade[k] = max(fade[k], min(0.02, 0.1 * abs(np.log(f))))
                D *= f
                scales[k] = (A * f, m_x, D, m_d, r_x)
                units[k] = np.repeat([1 / (A * f * D) ** 2, 1 / D**2, 1.0], [order, int(bias), Q])
                priors[k] = variances * units[k]
    if scale:
        y[:, :OPENING] = x[:, :OPENING]  # nothing is learned before the scale is known
    return y, theta


def scales_by_hand(x, d, together):
    """A, the offset of x, D, the offset of d and the spread of x, of every agent."""
    found = []
    samples = x.shape[1]
    for signal in (x, d):
        middle = np.sort(signal, axis=1)[:, samples // 2]
        spread = np.sort(np.abs(signal - middle[:, None]), axis=1)[
            :, int(0.8 * samples)
        ] / norm.ppf(0.9)
        low, high = middle, middle
        if together:
            low, high = (np.full(len(x), edge) for edge in (middle.min(), middle.max()))
            spread = np.full(len(x), spread.max())
        offset = (low + high) / 2
        found += [spread, np.where(np.abs(offset) > 2 * spread, offset, 0.0)]
    r_x, m_x, r_d, m_d = found
    A = sizes_by_hand(x, list(zip(r_x, m_x, strict=True)), together)
    D = A * 10.0 ** np.round(np.log10(r_d / r_x))
    return list(zip(A, m_x, D, m_d, r_x, strict=True))


def sizes_by_hand(x, spreads, together):
    """A of every agent, for knots up to 2.2. spreads: r and m of x."""
    u = np.stack([(row - m) / r for row, (r, m) in zip(x, spreads, strict=True)])
    p = np.minimum(u**2, 16).mean(axis=1)
    power = (p**2).sum() / p.sum() if together else p
    return np.array([r for r, _ in spreads]) * np.sqrt(power)


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
            *([model.bias_[:, None]] if model.bias_.any() else []),
            getattr(model, "control_points_", np.zeros((len(model.coefficients_), 0))),
        ]
    )


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
