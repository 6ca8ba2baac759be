"""Adaptive filters, sample by sample, compiled.

    s = w'x,   y = phi(s),   e = d - y                     x: the last inputs, the newest first
    h = [phi'(s) x, dphi/dq],   theta = [w, q]             gradient of y; local/splines.py

    w <- w + mu e phi'(s) x,   q <- q + mu_q e dphi/dq     LMS
    the same over max(h'h, 0.01 r)                         NLMS: stable with steps below 2
    r <- r + (h'h - r) / min(n + 1, 10,000)                mean of the latest h'h
    g = P h / (f + h'P h)                                  RLS: Gauss-Newton on both parts at once
    theta <- theta + g e,   P <- (P - g h'P) / f

Without a spline phi(s) = s, and these are the usual LMS, NLMS and RLS. With one, (a w, phi(s / a))
is the same filter for any a: P[0] is small, so that all agents stay near the one that they start
with. What was learned while slopes were wrong is forgotten: f = (1 - fade) forgetting, with a fade
that decays. If f is below 1, P grows in directions that nobody visits; no variance may grow beyond
that in P[0]. If a sensor falls silent, d is noise, which a tiny h'h would amplify: hence the floor
of NLMS, a part of the mean, which one outlier hardly changes. With a spline there is no floor,
because b'b is never small.

Scarpiniti, Comminiello, Parisi and Uncini, Nonlinear spline adaptive filtering, 2013; thesis,
section 10.2; Ljung and Soderstrom, Theory and practice of recursive identification, 1983
(Gauss-Newton, and memory that grows).

To add an update rule, add: a constant beside LMS, NLMS and RLS; a branch of `advance` that changes
theta[k] and nothing of other agents; what it remembers, as an array in Task (task.py) and in
Shape.start (diffusion.py); its name in UPDATES (models/adaptive_filter.py); default steps in
_steps, or P[0] in _priors (models/filters.py); the advice if it diverges (divergence.py); and its
formula in tests/support/filters_by_hand.py.

All compiled code is in this one file: numba caches machine code by the file of its function, and
does not notice that another file that it calls has changed. Every agent is computed by itself, in
one order, so that its bits do not depend on which other agents are hosted here.
"""

from __future__ import annotations

import numpy as np

from peerlearn.algorithms.filtering.task import Design, Rounds
from peerlearn.arrays import Array, Indices
from peerlearn.compiled import compiled

LMS, NLMS, RLS = range(3)
SOUND = -1  # in place of the number of an agent that has diverged
FADING = 0.997  # factor of the fade, per sample
OF_LATE = 10_000  # latest samples in the mean h'h of NLMS
FLOOR = 0.01  # least h'h of NLMS, as a part of that mean


@compiled
def advance(
    design: Design,
    B: Array,
    prior: Array,
    theta: Array,
    P: Array,
    fade: Array,
    strain: Array,
    loudness: Array,
    x: Array,
    d: Array,
    steps: Array,
    w0: Array,
    f0: Array,
    record: Array,
    visited: Indices,
    stopped: Indices,
    work: Array,
    rounds: Rounds,
    C: Array,
    done: Indices,
    first: int,
    last: int,
) -> None:
    """Filter samples first, .., last - 1 of all agents; end when one diverges.

    C: the weights, if all agents are here: the loop then does their rounds as well, as diffusion.py
    does for any network. Otherwise 0 x 0: each agent adapts alone. done: output, how often agents
    have combined.
    """
    order, Q, _, update, forgetting = design
    every, clock, before, spans = rounds
    b = work[0]
    c = work[1]
    mixed = np.empty_like(theta)
    w = np.empty((len(theta), order))
    psi = np.empty((len(theta), order))
    left = every - (clock + first) % every
    for n in range(first, last):
        if len(C) > 0 and before and left == every and clock + n > 0:
            if spans:
                _mix(C, theta, w, psi)
                visit(design, theta, x, visited, n)
                _mix_spans(C, theta, order, visited, mixed)
            else:
                _mix(C, theta, theta, mixed)
            done[0] += 1
        now = n + order - 1
        for k in range(len(theta)):
            if len(w0) > 0:
                _deviate(design, B, theta, w0, f0, record, visited, b, c, k, n)
            s = 0.0
            w_part = 0.0
            slope = 1.0
            at = order
            for j in range(order):
                s += theta[k, j] * x[k, now - j]
                w_part += x[k, now - j] * x[k, now - j]
            y = s
            if Q > 0:
                _locate(s, design, B, b, c, visited, k)
                y = 0.0
                slope = 0.0
                at = order + visited[k]
                for t in range(4):
                    y += b[t] * theta[k, at + t]
                    slope += c[t] * theta[k, at + t]
            record[0, k, n] = y
            e = d[k, n] - y
            changed = order
            if update == RLS:
                f = forgetting * (1.0 - fade[k])
                fade[k] *= FADING
                _gauss_newton(design, f, prior, theta, P, x, work, now, at, slope, e, k)
                changed = order + Q
            else:  # here, not in a function of its own: a call takes as long as all of this
                mu = steps[k, 0] * e * slope
                mu_q = steps[k, 1] * e
                q_part = 0.0
                w_part *= slope * slope
                if Q > 0:
                    for t in range(4):
                        q_part += b[t] * b[t]
                if update == LMS:
                    share = steps[k, 0] * w_part + steps[k, 1] * q_part
                    strain[k] = max(0.0, strain[k] + min(share - 2.0, 1.0))
                    if strain[k] > order and abs(e) > steps[k, 3]:
                        mu = np.nan
                        stopped[2] = 1
                else:
                    size = w_part + q_part
                    if Q == 0:
                        loudness[k] += (size - loudness[k]) / min(clock + n + 1, OF_LATE)
                        size = max(size, FLOOR * loudness[k])
                    if size > 0.0:
                        mu /= size
                        mu_q /= size
                for j in range(order):
                    theta[k, j] += mu * x[k, now - j]
                if Q > 0:
                    for t in range(4):
                        theta[k, at + t] += mu_q * b[t]
            sound = True
            bound = steps[k, 2]
            for j in range(changed):
                sound &= abs(theta[k, j]) <= bound
            if Q > 0:
                for t in range(4):
                    sound &= abs(theta[k, at + t]) <= bound
            if not sound:  # NaN is not sound either
                stopped[0] = k
                stopped[1] = n
                return
        left -= 1
        if left == 0:
            left = every
            if len(C) > 0 and not before:
                if spans:
                    _mix(C, theta, w, psi)
                    _mix_spans(C, theta, order, visited, mixed)
                else:
                    _mix(C, theta, theta, mixed)
                done[0] += 1


@compiled
def visit(design: Design, theta: Array, x: Array, visited: Indices, n: int) -> None:
    """Find the span of every agent's sample n, before anything is learned from it."""
    for k in range(len(theta)):
        s = 0.0
        now = n + design.order - 1
        for j in range(design.order):
            s += theta[k, j] * x[k, now - j]
        z = s * design.density + 0.5 * (design.Q - 1)
        visited[k] = int(min(max(z, 1.0), design.Q - 3.0)) - 1


@compiled
def _mix(C: Array, theta: Array, part: Array, mixed: Array) -> None:
    """Mix the first columns of theta, as many as `part` has.

    part: theta itself, or memory for these columns.
    """
    for k in range(len(part)):
        for j in range(part.shape[1]):
            part[k, j] = theta[k, j]
    np.dot(C, part, mixed)
    for k in range(len(part)):
        for j in range(part.shape[1]):
            theta[k, j] = mixed[k, j]


@compiled
def _mix_spans(C: Array, theta: Array, order: int, visited: Indices, xi: Array) -> None:
    """Mix the span that each agent visits, of its own q and its neighbors'.

    Four sums, which stay in registers.
    """
    for k in range(len(theta)):
        at = order + visited[k]
        a0 = 0.0
        a1 = 0.0
        a2 = 0.0
        a3 = 0.0
        for j in range(len(theta)):
            a0 += C[k, j] * theta[j, at]
            a1 += C[k, j] * theta[j, at + 1]
            a2 += C[k, j] * theta[j, at + 2]
            a3 += C[k, j] * theta[j, at + 3]
        xi[k, 0] = a0
        xi[k, 1] = a1
        xi[k, 2] = a2
        xi[k, 3] = a3
    for k in range(len(theta)):
        for t in range(4):
            theta[k, order + visited[k] + t] = xi[k, t]


@compiled
def _locate(
    s: float, design: Design, B: Array, b: Array, c: Array, visited: Indices, k: int
) -> None:
    """Compute `Spline.rows` of one s: its rows b and c, and its span as visited[k]."""
    Q = design.Q
    z = s * design.density + 0.5 * (Q - 1)
    beyond = 0.0
    if z < 1.0:
        i = 0
        u = 0.0
        beyond = z - 1.0
    elif z >= Q - 2:
        i = Q - 4
        u = 1.0
        beyond = z - (Q - 2)
    else:
        i = int(z) - 1
        u = z - int(z)
    for t in range(4):
        slope = (3.0 * B[0, t] * u + 2.0 * B[1, t]) * u + B[2, t]
        b[t] = ((B[0, t] * u + B[1, t]) * u + B[2, t]) * u + B[3, t] + beyond * slope
        c[t] = slope * design.density
    visited[k] = i


@compiled
def _gauss_newton(
    design: Design,
    f: float,
    prior: Array,
    theta: Array,
    P: Array,
    x: Array,
    work: Array,
    now: int,
    at: int,
    slope: float,
    e: float,
    k: int,
) -> None:
    """Update theta and P of agent k by recursive least squares.

    Only order + 4 entries of h are not zero. P loses the square of a vector, so that it stays
    symmetric.
    """
    b = work[0]
    Ph = work[2]
    width = theta.shape[1]
    size = f
    growth = 1.0 / f
    Ph[:width] = 0.0
    for j in range(design.order):
        h = slope * x[k, now - j]
        for i in range(width):
            Ph[i] += h * P[k, j, i]
    if design.Q > 0:
        for t in range(4):
            for i in range(width):
                Ph[i] += b[t] * P[k, at + t, i]
    for j in range(design.order):
        size += slope * x[k, now - j] * Ph[j]
    if design.Q > 0:
        for t in range(4):
            size += b[t] * Ph[at + t]
    gain = np.nan  # if P is not positive any more
    root = 0.0
    if size > 0.0:
        gain = e / size
        root = 1.0 / np.sqrt(size)
    for i in range(width):
        theta[k, i] += gain * Ph[i]
        Ph[i] *= root
    for i in range(width):
        for j in range(width):
            P[k, i, j] = growth * (P[k, i, j] - Ph[i] * Ph[j])
    if f < 1.0:
        for i in range(width):
            if P[k, i, i] > prior[i]:
                shrink = np.sqrt(prior[i] / P[k, i, i])
                for j in range(width):
                    P[k, i, j] *= shrink
                    P[k, j, i] *= shrink


@compiled
def _deviate(
    design: Design,
    B: Array,
    theta: Array,
    w0: Array,
    f0: Array,
    record: Array,
    visited: Indices,
    b: Array,
    c: Array,
    k: int,
    n: int,
) -> None:
    """Record how far agent k's filter is from the true one.

    |w0 - a w|^2 and the sum of (phi(t / a) - f0(t))^2 over usable knots t, with the a that brings
    a w nearest to w0.
    """
    order = design.order
    size = 0.0
    both = 0.0
    deviation = 0.0
    for j in range(order):
        size += theta[k, j] * theta[k, j]
        both += theta[k, j] * w0[j]
    a = both / size if both != 0.0 else 1.0
    for j in range(order):
        deviation += (w0[j] - a * theta[k, j]) ** 2
    record[1, k, n] = deviation
    deviation = 0.0
    for j in range(len(f0)):
        s = (j + 1 - 0.5 * (design.Q - 1)) / (a * design.density)
        _locate(s, design, B, b, c, visited, k)
        value = 0.0
        for t in range(4):
            value += b[t] * theta[k, order + visited[k] + t]
        deviation += (value - f0[j]) ** 2
    record[2, k, n] = deviation
