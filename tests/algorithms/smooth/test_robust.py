"""Smooth solvers where it is not easy: losses of any level and shape, columns of any unit, steps
that are too long.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.smooth import LBFGS, NEXT, Diffusion, GradientTracking, StepRule
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
