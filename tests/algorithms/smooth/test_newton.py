"""Newton's method over a tree: the pooled answer, what travels, and what its bound certifies."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.certificate import relative_bound
from peerlearn.algorithms.smooth import LBFGS, NEXT, GradientTracking, Newton
from peerlearn.algorithms.smooth import newton as module
from peerlearn.errors import InputError, NotConverged, WireError
from peerlearn.local.losses import hessians
from peerlearn.local.margin_losses import LogisticLosses
from tests.support.smooth_problems import ALPHA, GRAPH, g50c_over, rows, s3vm_gradient
from tests.support.split_network import run_apart


def pooled_newton(X, y, alpha):
    """Return the answer of textbook Newton on all rows, without any safeguard."""
    w = np.zeros(X.shape[1])
    for _ in range(50):
        p = expit(y * (X @ w))
        g = -X.T @ (y * (1 - p)) + alpha * w
        H = (X.T * (p * (1 - p))) @ X + alpha * np.eye(len(w))
        w = w - np.linalg.solve(H, g)
    return w


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 30.0])
def test_logistic_regression_is_the_pooled_one_to_1e_10(alpha, graph):
    X, y = rows(graph.number_of_nodes(), d=5, seed=1)
    X[2] = X[2][:0]  # an agent without rows
    y[2] = y[2][:0]
    everything = np.vstack(X), np.concatenate(y)
    found = Newton(1e-10).minimise(SimulatedNetwork(graph), LogisticLosses(X, y), alpha)
    answer = pooled_newton(*everything, alpha)
    sklearn = LogisticRegression(
        C=1 / alpha, fit_intercept=False, tol=1e-14, solver="newton-cholesky"
    ).fit(*everything)
    assert found.report.converged
    assert found.report.bound <= 1e-10
    for w in found.coefficients:
        np.testing.assert_allclose(w, answer, rtol=0, atol=1e-10 * np.linalg.norm(answer))
        np.testing.assert_allclose(w, sklearn.coef_[0], rtol=0, atol=1e-10 * np.linalg.norm(w))


def test_seven_sums_where_lbfgs_takes_a_hundred_rounds():
    X, y = rows(25, d=20, seed=1)
    edges = graphs.erdos_renyi(25, 0.2, seed=0)
    network = SimulatedNetwork(edges)
    report = Newton(1e-5).minimise(network, LogisticLosses(X, y), 1.0).report
    assert report.iterations <= 7
    d, links, height = 20, 24, network.tree.height
    up, down = d + 3 + d * (d + 1) // 2, d + 4
    assert report.sent.rounds == (2 * report.iterations + 1) * height
    assert report.sent.bytes == 8 * links * (report.iterations * (up + down) + down)
    other = LBFGS(1e-5).minimise(SimulatedNetwork(edges), LogisticLosses(X, y), 1.0).report
    assert 2 * report.sent.rounds < other.sent.rounds


def test_bounds_hold_for_every_solver_and_tolerance():
    """Also where alpha is small, columns have other units, or agents differ a lot."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        alpha = 10.0 ** rng.uniform(-4, 2)
        scales = 10.0 ** rng.uniform(-1, 2, 4)
        X, y = rows(7, seed=seed, unlike=rng.uniform(0, 3))
        X = [own * scales for own in X]
        answer = pooled_reference(np.vstack(X), np.concatenate(y), alpha)
        losses = LogisticLosses(X, y)
        for solver in (
            Newton(1e-3),
            Newton(1e-9),
            LBFGS(1e-3),
            LBFGS(1e-7),
            NEXT(tolerance=1e-2, max_iterations=2000),
        ):
            with warnings.catch_warnings(action="ignore", category=NotConverged):
                found = solver.minimise(SimulatedNetwork(GRAPH), losses, alpha)
            distance = np.linalg.norm(found.coefficients[0] - answer) / np.linalg.norm(answer)
            assert distance <= found.report.bound
            assert found.report.converged == (found.report.bound <= solver.tolerance)


def pooled_reference(X, y, alpha):
    """Return the pooled answer by Newton's method in higher precision."""
    network = SimulatedNetwork(graphs.complete(1))
    with warnings.catch_warnings(action="ignore", category=NotConverged):
        first = Newton(1e-12).minimise(network, LogisticLosses([X], [y]), alpha)
    u = first.coefficients[0].astype(np.longdouble)
    X, y = X.astype(np.longdouble), y.astype(np.longdouble)
    for _ in range(5):
        p = 1 / (1 + np.exp(-y * (X @ u)))
        g = -X.T @ (y * (1 - p)) + alpha * u
        H = (X.T * (p * (1 - p))) @ X + alpha * np.eye(len(u))
        u = u - np.linalg.solve(H.astype(np.float64), g.astype(np.float64))
    return u.astype(np.float64)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
def test_the_last_step_is_certified_before_it_is_evaluated(tolerance, monkeypatch):
    X, y = rows(7, seed=3)
    everything = np.vstack(X), np.concatenate(y)
    answer = pooled_reference(*everything, 0.1)
    losses = LogisticLosses(X, y)
    found = Newton(tolerance).minimise(SimulatedNetwork(GRAPH), losses, 0.1)
    w = found.coefficients[0]
    pooled = losses.gradient(found.coefficients).sum(axis=0) + 0.1 * w
    assert np.linalg.norm(pooled) <= found.report.residuals[-1]
    distance = np.linalg.norm(w - answer) / np.linalg.norm(answer)
    assert distance <= found.report.bound <= tolerance
    monkeypatch.setattr(module._Search, "_foresee", lambda self, point, p: None)
    longer = Newton(tolerance).minimise(SimulatedNetwork(GRAPH), losses, 0.1)
    assert longer.report.iterations > found.report.iterations


class BadSample(LogisticLosses):
    """Losses with a sample whose Hessians are too small by a factor, so that steps are too long."""

    factor = 1e-3

    def sample(self):
        return Flattened(self, self.factor)


class Flattened:
    def __init__(self, losses, factor):
        self.losses = losses
        self.agents = losses.agents
        self.dimension = losses.dimension
        self.factor = factor
        self.value = losses.value
        self.gradient = losses.gradient

    def hessian(self, w):
        return self.factor * hessians(self.losses, w)


def test_a_step_by_a_bad_sample_is_taken_back():
    X, y = rows(7, seed=3)
    plain = Newton(1e-9).minimise(SimulatedNetwork(GRAPH), LogisticLosses(X, y), 0.0)
    found = Newton(1e-9).minimise(SimulatedNetwork(GRAPH), BadSample(X, y), 0.0)
    assert found.report.converged
    assert found.report.iterations == plain.report.iterations + 2
    np.testing.assert_allclose(found.coefficients, plain.coefficients, rtol=1e-8)


def test_agents_apart_use_their_samples():
    X, y = rows(7, seed=3)

    class Near(BadSample):
        factor = 1.1

    whole = Newton(1e-11).minimise(SimulatedNetwork(GRAPH, exact_order=True), Near(X, y), ALPHA)
    plain = Newton(1e-11).minimise(
        SimulatedNetwork(GRAPH, exact_order=True), LogisticLosses(X, y), ALPHA
    )
    assert whole.report.residuals[1] != plain.report.residuals[1]
    links, columns = 6, 4
    numbers = columns * (columns + 1) // 2 + 2 * columns + 7
    at_most = 8 * links * (whole.report.iterations * numbers + columns + 4)
    assert whole.report.sent.bytes < at_most  # the Hessian was not summed everywhere
    found = run_apart(
        GRAPH, lambda network, k: Newton(1e-11).minimise(network, Near([X[k]], [y[k]]), ALPHA)
    )
    for own in found:
        np.testing.assert_array_equal(own.coefficients, whole.coefficients[:1])
        assert own.report.residuals == whole.report.residuals


def test_a_bound_without_penalty_comes_from_the_hessian():
    X, y = rows(7, seed=2)
    answer = pooled_newton(np.vstack(X), np.concatenate(y), 0.0)
    found = Newton(1e-8).minimise(SimulatedNetwork(GRAPH), LogisticLosses(X, y), 0.0)
    assert np.linalg.norm(found.coefficients[0] - answer) <= 1e-8 * np.linalg.norm(answer)
    assert found.report.converged
    other = GradientTracking().minimise(SimulatedNetwork(GRAPH), LogisticLosses(X, y), 0.0)
    assert other.report.bound == np.inf
    assert other.report.bound_reason.startswith("no lower bound of the curvature is known")


def test_a_convex_answer_that_cannot_be_certified_is_not_converged():
    X, y = rows(7)
    X = [1e4 * own for own in X]
    with pytest.warns(NotConverged, match="at a distance .* use solver='newton'"):
        found = LBFGS().minimise(SimulatedNetwork(GRAPH), LogisticLosses(X, y), 1e-9)
    assert not found.report.converged
    assert found.report.bound > 1e-5


@pytest.mark.parametrize(
    ("settings", "bound"),
    [
        ({"size": 1.0, "length": 2.0, "alpha": 1.0}, 1.0),
        ({"size": 1.0, "length": 2.0, "alpha": 0.0, "mu": 1.0, "R": 0.0}, 1.0),
        ({"size": 1.0, "length": 1.0, "alpha": 1.0}, np.inf),
        ({"size": 1.0, "length": 9.0, "alpha": 0.0, "mu": 1.0, "R": 1.0}, np.inf),
        ({"size": 0.5, "length": 9.0, "alpha": 0.0, "mu": 1.0, "R": 1.0}, 0.08345),
        ({"size": 0.0, "length": 0.0, "alpha": 1.0}, 0.0),
        ({"size": 1e-9, "length": 1.0, "alpha": 0.0}, np.inf),
    ],
)
def test_the_formula_of_the_bound(settings, bound):
    assert relative_bound(**settings) == pytest.approx(bound, rel=1e-3)


def test_what_is_not_convex_has_a_gradient_and_no_bound(graph):
    losses, everything = g50c_over(graph.number_of_nodes())
    report = (found := Newton().minimise(SimulatedNetwork(graph), losses, 1.0)).report
    assert report.converged
    assert report.bound == np.inf
    assert np.linalg.norm(s3vm_gradient(found.coefficients[0], *everything)) <= 1.0001e-6


class Saddles:
    """h_k(w) = (w_1^2 - 1)^2 / N + w_2^2: a saddle at 0, with the whole Hessian."""

    def __init__(self, agents):
        self.agents, self.dimension = agents, 2

    def value(self, w):
        return (w[:, 0] ** 2 - 1) ** 2 / self.agents + w[:, 1] ** 2

    def gradient(self, w):
        return np.column_stack([4 * w[:, 0] * (w[:, 0] ** 2 - 1) / self.agents, 2 * w[:, 1]])

    def hessian(self, w):
        matrices = np.zeros((self.agents, 2, 2))
        matrices[:, 0, 0] = (12 * w[:, 0] ** 2 - 4) / self.agents
        matrices[:, 1, 1] = 2
        return matrices


@pytest.mark.parametrize("start", [[0.0, 0.0], [0.0, 3.0], [0.3, -2.0], [40.0, 1e5]])
def test_saddles_are_left_and_bends_downwards_are_safe(start):
    found = Newton().minimise(
        SimulatedNetwork(graphs.ring(4)), Saddles(4), 0.0, np.tile(start, (4, 1))
    )
    assert found.report.converged
    np.testing.assert_allclose(np.abs(found.coefficients), [[1.0, 0.0]] * 4, atol=1e-6)


def test_hessians_come_from_products():
    X, y = rows(3, seed=5)
    losses = LogisticLosses(X, y)
    w = np.random.default_rng(0).standard_normal((3, 4))
    for k, (own, labels) in enumerate(zip(X, y, strict=True)):
        p = expit(labels * (own @ w[k]))
        np.testing.assert_allclose(
            hessians(losses, w)[k], (own.T * (p * (1 - p))) @ own, atol=1e-14
        )


def test_only_the_root_decides(monkeypatch):
    X, y = rows(7)
    calls = []
    real = module.np.linalg.eigh
    monkeypatch.setattr(module.np.linalg, "eigh", lambda A: calls.append(1) or real(A))
    found = run_apart(
        GRAPH, lambda network, k: Newton().minimise(network, LogisticLosses([X[k]], [y[k]]), ALPHA)
    )
    assert len(calls) == found[0].report.iterations
    for own in found:
        np.testing.assert_array_equal(own.coefficients, found[0].coefficients)
        assert own.report.residuals == found[0].report.residuals
        assert own.report.bound == found[0].report.bound


def test_a_root_that_never_ends_is_refused(monkeypatch):
    X, y = rows(7)
    root = SimulatedNetwork(GRAPH).tree.root

    def endless(search, w):
        while True:
            search._evaluate(w, module.ON)

    def work(network, k):
        if k == root:
            monkeypatch.setattr(module._Search, "steer", endless)
        return Newton(max_iterations=5).minimise(network, LogisticLosses([X[k]], [y[k]]), ALPHA)

    with pytest.raises(WireError, match=f"agent {root} does not end its search"):
        run_apart(GRAPH, work)


def test_what_newton_cannot_do_is_refused():
    many = LogisticLosses([np.ones((1, 1001))] * 7, [np.ones(1)] * 7)
    with pytest.raises(
        InputError, match=r"up to 1000 coefficients, and there are 1001: use .*lbfgs"
    ):
        Newton().minimise(SimulatedNetwork(GRAPH), many, 1.0)

    class Plain:
        agents, dimension = 7, 2

        def value(self, w):
            return (w**2).sum(axis=1)

        def gradient(self, w):
            return 2 * w

    with pytest.raises(InputError, match="hessian or a curvature method, and Plain has neither"):
        Newton().minimise(SimulatedNetwork(GRAPH), Plain(), 1.0)


def test_agents_that_stopped_at_different_points_have_no_bound():
    X, y = rows(7)
    losses = LogisticLosses(X, y)
    with pytest.warns(NotConverged, match="the agents stopped at different points"):
        found = GradientTracking(tolerance=1e-9, max_iterations=30).minimise(
            SimulatedNetwork(graphs.ring(7)), losses, 1.0
        )
    assert len({w.tobytes() for w in found.coefficients}) > 1
    assert found.report.bound == np.inf
