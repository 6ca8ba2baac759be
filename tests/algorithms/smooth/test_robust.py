"""Smooth solvers where it is not easy: losses of any level and shape, columns of any unit, steps
that are too long.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, check_gradient, graphs
from peerlearn.algorithms.smooth import (
    LBFGS,
    NEXT,
    Diffusion,
    GradientTracking,
    Newton,
    StepRule,
)
from peerlearn.errors import InputError, NotConverged
from peerlearn.local.margin_losses import LogisticLosses
from tests.support.smooth_problems import GRAPH, rows
from tests.support.split_network import run_apart


class Bowls:
    """h_k(w) = 1/2 |w|^2 - b_k'w + constant: 0 at the start, or far from it."""

    def __init__(self, agents, constant):
        self.agents, self.dimension, self.constant = agents, 3, constant
        self.b = np.random.default_rng(0).standard_normal((agents, 3))

    def value(self, w):
        return (w * w / 2 - self.b * w).sum(axis=1) + self.constant

    def gradient(self, w):
        return w - self.b

    def curvature(self, w):
        return lambda p: p


@pytest.mark.parametrize("constant", [0.0, 5.0, 1e6])
@pytest.mark.parametrize("solver", [NEXT(), NEXT("linear"), GradientTracking(), LBFGS()], ids=str)
def test_the_level_of_a_loss_decides_nothing(solver, constant, graph):
    losses = Bowls(graph.number_of_nodes(), constant)
    found = solver.minimise(SimulatedNetwork(graph), losses, 1.0)
    assert found.report.converged
    np.testing.assert_allclose(
        found.coefficients[0], losses.b.sum(axis=0) / (losses.agents + 1), atol=1e-5
    )


@pytest.mark.parametrize("solver", [NEXT(), LBFGS()], ids=str)
def test_a_column_in_another_unit(solver):
    X, y = rows(7)
    X = [own * np.array([1000.0, 1.0, 1.0, 0.1]) for own in X]
    assert solver.minimise(SimulatedNetwork(GRAPH), LogisticLosses(X, y), 1.0).report.converged


@pytest.mark.parametrize("order", ["adapt-then-combine", "combine-then-adapt"])
def test_what_diverges_stays_a_number(order):
    class Quartic(Bowls):
        def gradient(self, w):
            with np.errstate(over="ignore"):
                return 4 * w**3

    start = np.full((7, 3), 10.0)
    with pytest.warns(NotConverged):
        found = Diffusion(order, StepRule(1.0)).minimise(
            SimulatedNetwork(GRAPH), Quartic(7, 0.0), 1.0, start
        )
    assert np.isfinite(found.coefficients).all()


@pytest.mark.parametrize(
    ("method", "wrong", "shape"),
    [
        ("gradient", lambda losses, w: w[:, :1], r"\(7, 1\) instead of \(7, 3\)"),
        ("gradient", lambda losses, w: w[0], r"\(3,\) instead of \(7, 3\)"),
        ("value", lambda losses, w: 0.0, r"\(\) instead of \(7,\)"),
    ],
)
@pytest.mark.parametrize(
    "solver", [NEXT("linear"), GradientTracking(), Diffusion(), LBFGS()], ids=str
)
def test_losses_of_other_shapes_are_refused(solver, method, wrong, shape):
    kind = type("Mine", (Bowls,), {method: wrong})
    with pytest.raises(InputError, match=rf"Mine\.{method} returns an array of shape {shape}"):
        solver.minimise(SimulatedNetwork(GRAPH), kind(7, 0.0), 1.0)


@pytest.mark.parametrize("solver", [NEXT(), NEXT("exact"), GradientTracking(), LBFGS()], ids=str)
def test_many_columns_have_the_same_bits_apart(solver):
    """More than numpy sums at once."""
    rng = np.random.default_rng(0)
    X, y = (
        [rng.standard_normal((3, 9000)) / 100 for _ in range(4)],
        [np.array([1.0, -1.0, 1.0])] * 4,
    )
    solver = type(solver)(**{**vars(solver), "max_iterations": 8})
    with warnings.catch_warnings(action="ignore", category=NotConverged):
        network = SimulatedNetwork(graphs.ring(4), exact_order=True)
        together = solver.minimise(network, LogisticLosses(X, y), 1.0)
        apart = run_apart(
            graphs.ring(4),
            lambda network, k: solver.minimise(network, LogisticLosses([X[k]], [y[k]]), 1.0),
            exact_order=True,
        )
    np.testing.assert_array_equal(
        np.vstack([own.coefficients for own in apart]), together.coefficients
    )
    assert {own.report.residuals for own in apart} == {together.report.residuals}


def test_numbers_of_numpy_are_numbers():
    assert StepRule(np.float32(0.5), np.int64(1))(1) == 0.25
    assert StepRule(1.0, 200)(10_000) == 0.0
    for bad in (True, "1", None, np.nan, np.inf):
        with pytest.raises(InputError, match="alpha0 of a StepRule"):
            StepRule(bad)
    with pytest.raises(InputError, match="must be a finite number"):
        GradientTracking().minimise(SimulatedNetwork(GRAPH), Bowls(7, 0.0), "1")


class Huber:
    """Losses of Huber regression, with columns and targets in any unit."""

    def __init__(self, X, y, delta=1.0):
        self.X, self.y, self.delta = X, y, delta
        self.agents, self.dimension = len(X), X[0].shape[1]

    def residuals(self, w):
        return [x @ u - t for x, t, u in zip(self.X, self.y, w, strict=True)]

    def value(self, w):
        delta = self.delta
        return np.array(
            [
                np.where(np.abs(r) <= delta, r**2 / 2, delta * (np.abs(r) - delta / 2)).sum()
                for r in self.residuals(w)
            ]
        )

    def gradient(self, w):
        clipped = [np.clip(r, -self.delta, self.delta) for r in self.residuals(w)]
        return np.stack([x.T @ r for x, r in zip(self.X, clipped, strict=True)])


def test_a_gradient_is_small_in_the_unit_of_the_losses():
    """Huber regression of unscaled columns: rounding leaves more than 1e-5 of the gradient."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((30, 3)) * [1e6, 1e5, 1e6] + 1e6 for _ in range(7)]
    y = [x @ [3.0, -2.0, 1.0] + 1e5 * rng.standard_normal(30) for x in X]
    found = LBFGS().minimise(SimulatedNetwork(GRAPH), Huber(X, y, delta=1e5), 1.0)
    assert found.report.converged
    assert found.report.residuals[-1] > 1e-5
    assert found.report.residuals[-1] <= 1e-10 * found.report.residuals[0]


EVERY = [NEXT("linear"), GradientTracking(), Diffusion(), LBFGS(), Newton()]


@pytest.mark.parametrize("method", ["value", "gradient"])
@pytest.mark.parametrize("solver", EVERY, ids=str)
def test_nan_at_the_start_is_named_with_its_agent(solver, method):
    def spoil(losses, w):
        found = getattr(Bowls, method)(losses, w)
        found[4] = np.nan
        return found

    kind = type("Mine", (Bowls,), {method: spoil})
    with pytest.raises(InputError, match=rf"agent 4: Mine\.{method} is NaN or infinite at the sta"):
        solver.minimise(SimulatedNetwork(GRAPH), kind(7, 0.0), 1.0)


@pytest.mark.parametrize("solver", [NEXT("linear"), GradientTracking(), LBFGS()], ids=str)
def test_nan_on_the_way_is_named_with_its_agent(solver):
    class Mine(Bowls):
        def gradient(self, w):
            slopes = super().gradient(w)
            slopes[2][np.abs(w[2]) > 1e-3] = np.nan
            return slopes

    with pytest.raises(InputError, match=r"agent 2: Mine\.gradient is NaN or infinite on the way"):
        solver.minimise(SimulatedNetwork(GRAPH), Mine(7, 0.0), 1.0)


class SmallNetworks:
    """h_k of a network of 3 hidden units: its gradient vanishes where all weights are 0."""

    def __init__(self, agents):
        rng = np.random.default_rng(0)
        self.agents, self.dimension = agents, 9
        self.X = rng.standard_normal((agents, 10, 2))
        self.y = np.tanh(self.X[:, :, 0] - self.X[:, :, 1])

    def layers(self, w):
        A = w[:, :6].reshape(-1, 2, 3)
        H = np.tanh(self.X @ A)
        return H, (H @ w[:, 6:, None])[:, :, 0] - self.y

    def value(self, w):
        return (self.layers(w)[1] ** 2).sum(axis=1) / (2 * self.agents)

    def gradient(self, w):
        H, r = self.layers(w)
        B = (H.mT @ r[:, :, None])[:, :, 0]
        A = self.X.mT @ ((1 - H**2) * r[:, :, None] * w[:, None, 6:])
        return np.hstack([A.reshape(len(w), 6), B]) / self.agents

    def hessian(self, w):
        e = 1e-5
        units = np.eye(9)
        columns = [(self.gradient(w + e * u) - self.gradient(w - e * u)) / (2 * e) for u in units]
        return np.stack(columns, axis=2)


@pytest.mark.parametrize(
    "solver",
    [
        NEXT("linear", tolerance=1e-3),
        GradientTracking(tolerance=1e-3),
        Diffusion(tolerance=1e-2),
        LBFGS(1e-4),
        Newton(1e-4),
    ],
    ids=str,
)
def test_a_start_where_the_gradient_vanishes_is_left(solver):
    losses = SmallNetworks(7)
    assert np.abs(losses.gradient(np.zeros((7, 9)))).max() == 0
    found = solver.minimise(SimulatedNetwork(GRAPH), losses, 1e-2)
    assert found.report.converged
    assert losses.value(found.coefficients).sum() < 0.3 * losses.value(np.zeros((7, 9))).sum()


def test_agents_apart_leave_a_start_alike():
    everybody = SmallNetworks(7)

    def work(network, k):
        own = SmallNetworks(7)
        own.X, own.y = everybody.X[k : k + 1], everybody.y[k : k + 1]
        own.agents = 1
        return GradientTracking(tolerance=1e-2).minimise(network, own, 1e-2)

    apart = run_apart(GRAPH, work)
    assert len({own.report.residuals for own in apart}) == 1


def test_a_convex_problem_stays_where_its_minimum_is():
    X, y = rows(7)
    flat = LogisticLosses([0 * own for own in X], y)
    found = LBFGS().minimise(SimulatedNetwork(GRAPH), flat, 1.0)
    np.testing.assert_array_equal(found.coefficients, 0.0)
    assert found.report.bound == 0


@pytest.mark.parametrize("losses", [SmallNetworks(3), Bowls(4, 1.0), LogisticLosses(*rows(5))])
def test_gradients_are_checked(losses):
    assert check_gradient(losses) < 1e-7
    assert check_gradient(losses, np.zeros((losses.agents, losses.dimension))) < 1e-7


@pytest.mark.parametrize("wrong", [1.001, -1.0, np.nan])
def test_a_wrong_gradient_is_named(wrong):
    class Mine(SmallNetworks):
        def gradient(self, w):
            slopes = super().gradient(w)
            slopes[1, 7] *= wrong
            return slopes

    with pytest.raises(InputError, match=r"Mine\.gradient is wrong: at agent 1 entry 7 is"):
        check_gradient(Mine(3))
    with pytest.raises(InputError, match=r"returns an array of shape \(4, 2\) instead of \(4, 3\)"):
        check_gradient(type("Short", (Bowls,), {"gradient": lambda own, w: w[:, :2]})(4, 0.0))
