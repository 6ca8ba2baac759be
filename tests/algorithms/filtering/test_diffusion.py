"""Filters over the network against slow ones, written once more from the formulas: no span, no
kernel, no engine.

A slow filter knows the spline as cubic Hermite interpolation with the slopes of the neighbors'
chords, which is what Catmull-Rom means, and takes phi's derivatives to all control points from its
being linear in them.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, graphs
from peerlearn.data import wiener
from peerlearn.lab.figures.ends import spread
from peerlearn.lab.figures.filters import draw_filters

AGENTS, SAMPLES, ORDER = 4, 400, 3
APART = 0.068  # between names at the ends of lines, of a panel's height
KNOTS = np.linspace(-2.2, 2.2, 23)
EYE = np.eye(len(KNOTS))
CARDINAL = CubicHermiteSpline(KNOTS[1:-1], EYE[1:-1], (EYE[2:] - EYE[:-2]) / 0.4)
SLOPE = CARDINAL.derivative()


def spline_rows(s):
    """b and c with phi(s) = b'q and phi'(s) = c'q; beyond the second and the last but one knot
    along the tangent.
    """
    within = np.clip(s, KNOTS[1], KNOTS[-2])
    c = SLOPE(within)
    return CARDINAL(within) + (s - within) * c, c


def buffers(signal, order=ORDER):
    """x_n = (x[n], ..., x[n - order + 1]) of one agent, for every n."""
    return np.stack(
        [np.concatenate([np.zeros(j), signal[: len(signal) - j]]) for j in range(order)], axis=1
    )


def mixing(graph):
    """Metropolis weights, from the degrees."""
    C = np.zeros((len(graph), len(graph)))
    for k, j in graph.edges:
        C[k, j] = C[j, k] = 1 / (1 + max(graph.degree[k], graph.degree[j]))
    return C + np.diag(1 - C.sum(axis=1))


def slow_lms(x, d, C, mu):
    """psi = C w, then w_k = psi_k + mu_k e_k x_k: outputs and final coefficients."""
    w, y = np.zeros((len(x), ORDER)), np.zeros_like(x)
    w[:, 0] = 1.0
    U = [buffers(signal) for signal in x]
    for n in range(x.shape[1]):
        psi = np.array([sum(C[k, j] * w[j] for j in range(len(x))) for k in range(len(x))])
        for k in range(len(x)):
            y[k, n] = psi[k] @ U[k][n]
            w[k] = psi[k] + mu[k] * (d[k, n] - y[k, n]) * U[k][n]
    return y, w


def slow_spline(x, d, C, mu_w, mu_q, *, span=False):
    """D-SAF, combine-then-adapt; span: only the four control points around s are exchanged."""
    L = len(x)
    w, q, y = np.zeros((L, ORDER)), np.tile(KNOTS, (L, 1)), np.zeros_like(x)
    w[:, 0] = 1.0
    U = [buffers(signal) for signal in x]
    for n in range(x.shape[1]):
        psi, mixed, xi = C @ w, C @ q, q.copy()
        for k in range(L):
            s = psi[k] @ U[k][n]
            first = int(np.clip(np.floor(s / 0.2 + 11) - 1, 0, 19))
            own = slice(first, first + 4) if span else slice(None)
            xi[k, own] = mixed[k, own]
            b, c = spline_rows(s)
            y[k, n] = b @ xi[k]
            e = d[k, n] - y[k, n]
            w[k] = psi[k] + mu_w[k] * e * (c @ xi[k]) * U[k][n]
            q[k] = xi[k] + mu_q[k] * e * b
    return y, w, q


@pytest.fixture(scope="module")
def graph():
    return nx.path_graph(AGENTS)  # unequal degrees, and two agents that are no neighbors


@pytest.fixture(scope="module")
def drawn():
    return wiener(AGENTS, SAMPLES, order=ORDER, nonlinearity="strong", seed=4)


STEPS = np.array([0.002, 0.02, 0.05, 0.01])


def slow_rls(x, d, C, forgetting):
    """Recursive Gauss-Newton on [w, q] with dense matrices, then combine: g = P h / (f + h'P h), P
    <- (P - g h'P) / f.

    Memory is shorter at first, f[n] = forgetting (1 - 0.02 0.997^n), and no variance grows beyond
    what it began with.
    """
    L, prior = len(x), np.repeat([0.3, 0.1], [ORDER, len(KNOTS)])
    theta, y = np.tile(np.concatenate([np.eye(ORDER)[0], KNOTS]), (L, 1)), np.zeros_like(x)
    P = np.tile(np.diag(prior), (L, 1, 1))
    U = [buffers(signal) for signal in x]
    for n in range(x.shape[1]):
        f = forgetting * (1 - 0.02 * 0.997**n)
        for k in range(L):
            w, q = theta[k, :ORDER], theta[k, ORDER:]
            b, c = spline_rows(w @ U[k][n])
            y[k, n] = b @ q
            h = np.concatenate([(c @ q) * U[k][n], b])
            g = P[k] @ h / (f + h @ P[k] @ h)
            theta[k] = theta[k] + g * (d[k, n] - y[k, n])
            P[k] = (np.eye(len(h)) - np.outer(g, h)) @ P[k] / f
            D = np.diag(np.sqrt(np.minimum(1, prior / np.diag(P[k]))))
            P[k] = D @ P[k] @ D
        theta = C @ theta
    return y, theta


def spline_filter(graph, **settings):
    plain = {"bias": False, "scale": False, "robust": False}
    return SplineFilter(ORDER, network=SimulatedNetwork(graph), **plain, **settings)


@pytest.mark.parametrize("exchange", ["full", "span"])
def test_the_diffusion_spline_filter_is_the_one_of_the_formulas(graph, drawn, exchange):
    mu_q = STEPS[::-1]
    model = spline_filter(
        graph,
        update="lms",
        step_size=STEPS,
        spline_step_size=mu_q,
        cooperation="combine-then-adapt",
        exchange=exchange,
    )
    run = model.run(drawn.x, drawn.d)
    y, w, q = slow_spline(drawn.x, drawn.d, mixing(graph), STEPS, mu_q, span=exchange == "span")
    assert np.abs(KNOTS - q).max() > 0.1  # something was learned
    np.testing.assert_allclose(run.outputs, y, atol=1e-10)
    np.testing.assert_allclose(model.coefficients_, w, atol=1e-10)
    np.testing.assert_allclose(model.control_points_, q, atol=1e-10)


def test_signals_leave_the_knots_here(drawn):
    """Else the tangents would not be tested."""
    s = np.array([buffers(signal) @ drawn.coefficients for signal in drawn.x])
    assert np.mean(np.abs(s) > 2) > 0.01


def test_diffusion_lms_is_the_one_of_the_formulas(graph, drawn):
    model = LMSFilter(
        ORDER, step_size=STEPS, cooperation="combine-then-adapt", network=SimulatedNetwork(graph)
    )
    run = model.run(drawn.x, drawn.d)
    y, w = slow_lms(drawn.x, drawn.d, mixing(graph), STEPS)
    np.testing.assert_allclose(run.outputs, y, atol=1e-12)
    np.testing.assert_allclose(model.coefficients_, w, atol=1e-12)


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_joint_rls_is_the_one_of_the_formulas(graph, drawn, forgetting):
    model = spline_filter(graph, forgetting=forgetting)
    run = model.run(drawn.x, drawn.d)
    y, theta = slow_rls(drawn.x, drawn.d, mixing(graph), forgetting)
    np.testing.assert_allclose(run.outputs, y, atol=1e-10)
    np.testing.assert_allclose(
        np.hstack([model.coefficients_, model.control_points_]), theta, atol=1e-10
    )


def test_deviations_are_from_the_filter_that_gave_the_output(graph, drawn):
    """Aligned by hand, for the filter after all but the last sample."""
    settings = {"update": "lms", "step_size": STEPS, "spline_step_size": STEPS}
    model = spline_filter(graph, **settings)
    run = model.run(drawn.x, drawn.d, truth=(drawn.coefficients, drawn.f0))
    before = spline_filter(graph, **settings)
    before.run(drawn.x[:, :-1], drawn.d[:, :-1])
    for k in range(AGENTS):
        w, q = before.coefficients_[k], before.control_points_[k]
        a = w @ drawn.coefficients / (w @ w)
        assert run.msd[k, -1] == pytest.approx(((drawn.coefficients - a * w) ** 2).sum(), abs=1e-12)
        apart = [spline_rows(t / a)[0] @ q - drawn.f0(t) for t in KNOTS[1:-1]]
        assert run.msd_spline[k, -1] == pytest.approx(np.square(apart).sum(), abs=1e-10)
    points = model.run(drawn.x, drawn.d, truth=(drawn.coefficients, drawn.control_points))
    np.testing.assert_allclose(points.msd_spline, run.msd_spline, atol=1e-12)


def level(powers):
    return 10 * np.log10(powers.mean())


def test_agents_hear_better_together_and_sooner_by_joint_recursion():
    """Each agent on its own signal: in the end by diffusion, with the thesis's steps, and long
    before by joint RLS.
    """
    drawn, network = wiener(10, 20_000), SimulatedNetwork(graphs.erdos_renyi(10, 0.6))
    mu = np.random.default_rng(0).uniform(0.001, 0.01, 10)
    saf = {"update": "lms", "step_size": mu, "spline_step_size": mu, "network": network}
    runs = {
        "alone": SplineFilter(cooperation="none", **saf),
        "D-SAF": SplineFilter(cooperation="combine-then-adapt", **saf),
        "RLS": SplineFilter(network=network),
        "seldom": SplineFilter(every=256, network=network),
    }
    excess = {name: model.run(drawn.x, drawn.d).excess(drawn.clean) for name, model in runs.items()}
    early = {name: level(powers[:, 4500:5000]) for name, powers in excess.items()}
    assert early["D-SAF"] < early["alone"] - 5
    assert early["RLS"] < early["D-SAF"] - 12
    assert early["seldom"] < early["D-SAF"] - 12
    end = {name: powers[:, -2000:].mean(axis=1) for name, powers in excess.items()}
    assert (end["D-SAF"] < end["alone"]).all()
    assert end["RLS"].max() < end["alone"].min() / 10


def test_steady_errors_are_those_of_the_thesis():
    """-12 dB for linear filters with the mild nonlinearity and -5 dB with the strong one; splines
    reach the noise.
    """
    network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6))
    for nonlinearity, thesis in (("mild", -12), ("strong", -5)):
        drawn = wiener(10, 10_000, nonlinearity=nonlinearity)
        linear = LMSFilter(step_size=0.005, network=network).run(drawn.x, drawn.d)
        assert level(linear.mse[:, -5000:]) == pytest.approx(thesis, abs=1)
        spline = SplineFilter(network=network).run(drawn.x, drawn.d)
        assert level(spline.mse[:, -5000:]) == pytest.approx(level(drawn.noise_power), abs=0.2)


def test_bytes_counted_by_hand(graph):
    """Three links, both ways: six messages a round. Before the first sample agents compare their
    settings.
    """
    drawn = wiener(AGENTS, 512, order=ORDER)
    compared = spline_filter(graph, every=513).run(drawn.x, drawn.d).sent
    full = spline_filter(graph, every=256).run(drawn.x, drawn.d).sent - compared
    assert (full.rounds, full.messages, full.bytes) == (2, 12, 12 * 8 * (ORDER + 23))
    lms = {"update": "lms", "exchange": "span", "cooperation": "combine-then-adapt"}
    span = spline_filter(graph, **lms).run(drawn.x, drawn.d).sent - compared
    # all begin alike, so not before the first sample: w, the request, and the answers to two
    # neighbors
    combined = 511
    assert (span.rounds, span.messages) == (combined * (1 + 1 + 2), combined * 6 * 3)
    assert span.bytes == combined * 6 * 8 * (ORDER + 1 + 4)
    lone = spline_filter(graph, cooperation="none").run(drawn.x, drawn.d).sent
    assert (lone.rounds, lone.messages, lone.bytes) == (0, 0, 0)


def test_names_at_the_ends_of_lines_keep_their_order_and_do_not_touch():
    far = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(spread(far, np.full(3, APART)), far)
    close = np.array([0.0, 0.01, 0.02, 0.5, 0.505, 0.9])
    placed = spread(close, np.full(6, APART))
    assert (np.diff(placed) > APART - 1e-12).all()
    assert placed[0] > 0
    assert placed[-1] == pytest.approx(0.9)
    np.testing.assert_allclose(placed[3:5], [0.5025 - APART / 2, 0.5025 + APART / 2])


def test_the_figure_is_drawn_from_plain_arrays(tmp_path):
    falling = -10 * np.log10(np.arange(100, 3001.0))
    curves = {"alone": falling, "together": 2 * falling, "rival": falling / 2}
    png, svg = draw_filters("Together is better", curves, 100, tmp_path)
    assert png.stat().st_size > 20_000
    text = svg.read_text()
    for words in ("Together is better", *curves):
        assert text.count(f"<!-- {words} -->") == 1
    assert (
        draw_filters("Together is better", curves, 100, tmp_path, "again")[0].read_bytes()
        == png.read_bytes()
    )
