"""Adaptive filters, sample by sample, compiled.

    s = w'x,   y = phi(s),   e = d - y                     x: the last inputs, the newest first
    h = [phi'(s) x, dphi/dq],   theta = [w, q]             gradient of y; local/splines.py

    w <- w + mu e phi'(s) x,   q <- q + mu_q e dphi/dq     LMS
    the same over max(h'h, 0.01 r)                         NLMS: stable with steps below 2
    r <- r + (h'h - r) / min(n + 1, 10,000)                mean of the latest h'h
    g = P h / (f / v + h'P h)                              RLS: Gauss-Newton on both parts at once
    theta <- theta + g e,   P <- (P - g h'P) / f

    z = e^2 / p,   v = min(1, 16 / z)                      robust RLS; else v = 1
    p <- p + p (min(z, 6) - 1) / min(a, 500)               usual power of errors; a: their number
    c <- max(0, c + min(z, 6) - 2.5)                       CUSUM (Page, 1954)
    if c > 40 + 6 order: theta, P, fade as in the beginning; p, c, a <- 0

Without a spline phi(s) = s, and these are the usual LMS, NLMS and RLS. With one, (a w, phi(s / a))
is the same filter for any a: P[0] is small, so that all agents stay near the one that they start
with. What was learned while slopes were wrong is forgotten: f = (1 - fade) forgetting, with a fade
that decays. If f is below 1, P grows in directions that nobody visits; no variance may grow beyond
that in P[0]. If a sensor falls silent, d is noise, which a tiny h'h would amplify: hence the floor
of NLMS, a part of the mean, which one outlier hardly changes. With a spline there is no floor,
because b'b is never small.

A bias weight is one more weight of w, whose input is always 1. Signals of another size than the
knots are dealt with by opening.py: it gives each agent other first coefficients and variances, and
factors of its steps.

Robust RLS. One large error may be an outlier, and loses its weight v. Many of them mean that the
system has changed. P is then too small to learn it, and the spline that was learned would fold on
the way to another one, so the agent begins anew. An outlier in x stays for `order` samples, which
raises c by less than 6 order. The first 20 errors give p by their plain mean, with v = 1. Samples
without any input change nothing of p, c and a, and p is at least (1e-8 D)^2, with D the largest |d|
so far.

Scarpiniti, Comminiello, Parisi and Uncini, Nonlinear spline adaptive filtering, 2013; thesis,
section 10.2; Ljung and Soderstrom, Theory and practice of recursive identification, 1983
(Gauss-Newton, and memory that grows); Page, Continuous inspection schemes, 1954.

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
FADE = 0.02  # first fade of the memory of a spline filter
FADING = 0.997  # factor of the fade, per sample
LEARNED = 20  # errors after which their usual power is known
RECENT = 500  # latest errors in their usual power
EXACT = 1e-8  # errors of this part of the largest |d| are rounding
LIMIT = 16.0  # e^2 / p above which an error gets less weight
LEAP = 6.0  # largest e^2 / p that counts as a sign of a change
DRIFT = 2.5  # mean of them that is no change
ALARM = 40.0  # sum of them beyond the drift that is a change, and a leap for each remembered input
OF_LATE = 10_000  # latest samples in the mean h'h of NLMS
FLOOR = 0.01  # least h'h of NLMS, as a part of that mean


@compiled
def advance(
    design: Design,
    B: Array,
    start: Array,
    prior: Array,
    units: Array,
    theta: Array,
    P: Array,
    fade: Array,
    watch: Array,
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
    order, Q, _, update, forgetting, bias, robust = design
    every, clock, before, spans = rounds
    taps = order + bias
    b = work[0]
    c = work[1]
    u = work[3]
    mixed = np.empty_like(theta)
    w = np.empty((len(theta), taps))
    psi = np.empty((len(theta), taps))
    left = every - (clock + first) % every
    for n in range(first, last):
        if len(C) > 0 and before and left == every and clock + n > 0:
            if spans:
                _mix(C, theta, w, psi)
                visit(design, theta, x, visited, n)
                _mix_spans(C, theta, taps, visited, mixed)
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
            at = taps
            for j in range(order):
                u[j] = x[k, now - j]
                s += theta[k, j] * u[j]
                w_part += u[j] * u[j]
            loud = w_part > 0.0
            w_part *= units[k, 0]
            if bias > 0:
                u[order] = 1.0
                s += theta[k, order]
                w_part += units[k, 1]
            y = s
            if Q > 0:
                _locate(s, design, B, b, c, visited, k)
                y = 0.0
                slope = 0.0
                at = taps + visited[k]
                for t in range(4):
                    y += b[t] * theta[k, at + t]
                    slope += c[t] * theta[k, at + t]
            record[0, k, n] = y
            e = d[k, n] - y
            changed = taps
            if update == RLS:
                weight = 1.0
                if robust:
                    weight = _weigh(watch, e, d[k, n], loud, k)
                f = forgetting * (1.0 - fade[k])
                fade[k] *= FADING
                _gauss_newton(design, f, weight, prior, theta, P, work, at, slope, e, k)
                if robust and watch[k, 1] > ALARM + LEAP * order:
                    _forget(start, prior, theta, P, fade, watch, Q, k)
                changed = taps + Q
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
                    theta[k, j] += mu * units[k, 0] * u[j]
                if bias > 0:
                    theta[k, order] += mu * units[k, 1]
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
                    _mix_spans(C, theta, taps, visited, mixed)
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
        if design.bias > 0:
            s += theta[k, design.order]
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
def _mix_spans(C: Array, theta: Array, taps: int, visited: Indices, xi: Array) -> None:
    """Mix the span that each agent visits, of its own q and its neighbors'.

    Four sums, which stay in registers.
    """
    for k in range(len(theta)):
        at = taps + visited[k]
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
            theta[k, taps + visited[k] + t] = xi[k, t]


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
def _weigh(watch: Array, e: float, d: float, heard: bool, k: int) -> float:
    """Return the weight of agent k's error e, and update p, c, a and D, by which it is judged.

    heard: whether there was any input. Silence says nothing about the usual size of errors.
    """
    square = e * e
    watch[k, 3] = max(watch[k, 3], abs(d))
    if watch[k, 2] < LEARNED:
        if heard:
            watch[k, 2] += 1.0
            watch[k, 0] += (square - watch[k, 0]) / watch[k, 2]
        return 1.0
    p = max(watch[k, 0], (EXACT * watch[k, 3]) ** 2)
    z = square / p if p > 0.0 else 0.0
    if heard:
        watch[k, 2] += 1.0
        watch[k, 0] = p + p * (min(z, LEAP) - 1.0) / min(watch[k, 2], RECENT)
        watch[k, 1] = max(0.0, watch[k, 1] + min(z, LEAP) - DRIFT)
    return 1.0 if z <= LIMIT else LIMIT / z


@compiled
def _forget(
    start: Array,
    prior: Array,
    theta: Array,
    P: Array,
    fade: Array,
    watch: Array,
    Q: int,
    k: int,
) -> None:
    """Make agent k as uncertain as it was in the beginning, because the system has changed."""
    theta[k] = start[k]
    P[k] = 0.0
    for i in range(P.shape[1]):
        P[k, i, i] = prior[k, i]
    if Q > 0:
        fade[k] = FADE
    watch[k, :3] = 0.0


@compiled
def _gauss_newton(
    design: Design,
    f: float,
    weight: float,
    prior: Array,
    theta: Array,
    P: Array,
    work: Array,
    at: int,
    slope: float,
    e: float,
    k: int,
) -> None:
    """Update theta and P of agent k by recursive least squares.

    Only order + bias + 4 entries of h are not zero. P loses the square of a vector, so that it
    stays symmetric.
    """
    b = work[0]
    Ph = work[2]
    u = work[3]
    taps = design.order + design.bias
    width = theta.shape[1]
    size = f / weight
    growth = 1.0 / f
    Ph[:width] = 0.0
    for j in range(taps):
        h = slope * u[j]
        for i in range(width):
            Ph[i] += h * P[k, j, i]
    if design.Q > 0:
        for t in range(4):
            for i in range(width):
                Ph[i] += b[t] * P[k, at + t, i]
    for j in range(taps):
        size += slope * u[j] * Ph[j]
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
            if P[k, i, i] > prior[k, i]:
                shrink = np.sqrt(prior[k, i] / P[k, i, i])
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
        if design.bias > 0:
            s += theta[k, order]
        _locate(s, design, B, b, c, visited, k)
        value = 0.0
        for t in range(4):
            value += b[t] * theta[k, order + design.bias + visited[k] + t]
        deviation += (value - f0[j]) ** 2
    record[2, k, n] = deviation
