"""Bounds of problems about means hold: against the answer in longer numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from peerlearn import ADMM, ConjugateGradient, Gram, SimulatedNetwork, graphs
from peerlearn.algorithms.readout.means import common_means
from peerlearn.errors import NotConverged
from peerlearn.local.centred import UncentredProblems
from peerlearn.local.penalties import Ridge

SOLVERS = [
    Gram(),
    Gram(1e-12),
    Gram(averaging="chebyshev"),
    ConjugateGradient(),
    ConjugateGradient(1e-9, averaging="chebyshev"),
    ADMM(max_iterations=300),  # more would take long; cut off, it has a bound less often
]


class Raw:
    """Features that are the inputs themselves."""

    def __init__(self, width):
        self.width = width

    def blocks(self, x):
        for start in range(0, len(x), 16):
            yield slice(start, start + 16), x[start : start + 16]

    def __call__(self, x):
        return x


def problem(seed):
    """Rows of five agents, as unkind as they come: offsets, sorted rows, constants, weights."""
    rng = np.random.default_rng(seed)
    B, M = int(rng.integers(1, 9)), int(rng.integers(1, 3))
    scales = 10.0 ** rng.uniform(-2, 2, B)
    offsets = rng.choice([0.0, 1.0, 1e3, 1e5], B) * rng.standard_normal(B)
    X, Y, weights = [], [], []
    for _ in range(5):
        n = int(rng.choice([0, 1, 3, 20, 60]))
        x = scales * (rng.standard_normal((n, B)) + rng.choice([0.0, 10.0]) * rng.standard_normal())
        x = np.sort(x, axis=0) if rng.random() < 0.3 else x
        x = x + offsets
        if B > 1 and rng.random() < 0.3:
            x[:, 0] = offsets[0]  # a constant column
        X.append(x)
        Y.append(x @ rng.standard_normal((B, M)) + 10.0 ** rng.uniform(-3, 5))
        weights.append(rng.choice([0.0, 1.0, 2.5], n))
    alpha = 10.0 ** rng.uniform(-4, 3)
    return X, Y, weights if rng.random() < 0.4 else None, alpha


def answer(X, Y, weights, alpha):
    """b of the pooled problem with an unpenalised constant, in long double."""
    H = np.vstack(X).astype(np.longdouble)
    T = np.vstack(Y).astype(np.longdouble)
    w = np.ones(len(H)) if weights is None else np.concatenate(weights)
    w = w.astype(np.longdouble)[:, None]
    H = np.sqrt(w) * (H - (w * H).sum(axis=0) / max(w.sum(), 1))
    T = np.sqrt(w) * (T - (w * T).sum(axis=0) / max(w.sum(), 1))
    A = H.T @ H + np.longdouble(alpha) * np.eye(H.shape[1], dtype=np.longdouble)
    return eliminate(A, H.T @ T)


def eliminate(A, P):
    """A^-1 P of a positive definite A."""
    A, P = A.copy(), P.copy()
    for i in range(len(A)):
        for j in range(i + 1, len(A)):
            factor = A[j, i] / A[i, i]
            A[j] -= factor * A[i]
            P[j] -= factor * P[i]
    for i in range(len(A) - 1, -1, -1):
        P[i] = (P[i] - A[i, i + 1 :] @ P[i + 1 :]) / A[i, i]
    return P


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_no_agent_is_further_from_the_answer_than_its_bound(solver):
    finite = 0
    for seed in range(60):
        X, Y, weights, alpha = problem(seed)
        network = SimulatedNetwork(graphs.ring(5))
        problems = UncentredProblems.of_inputs(Raw(X[0].shape[1]), X, Y, weights)
        problems.features = None  # they cannot be drawn, as a preconditioner would
        means = common_means(network, solver, problems)
        with warnings.catch_warnings(action="ignore", category=NotConverged):
            found = solver.solve(network, problems.about(means), Ridge(alpha))
        best = answer(X, Y, weights, alpha)
        size = float(np.sqrt((best**2).sum()))
        distance = float(np.sqrt(((found.coefficients - best) ** 2).sum(axis=(1, 2)).max()))
        bound = found.report.bound
        assert distance <= bound * size * (1 + 1e-9) or np.isinf(bound), f"problem {seed}"
        assert found.report.converged == (bound <= solver.tolerance)
        finite += np.isfinite(bound)
    assert finite > 10
