"""The check of solvers of smooth problems: the gradient vanishes where they end.

    |sum_k grad h_k(w) + alpha w| <= tolerance       at every agent, computed here from all rows

on a convex problem (logistic regression) and on one that is not (a sigmoid loss), on several
graphs. Agents in threads compute what simulated ones do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.smooth.minimum import Minimum, SmoothSolver
from peerlearn.arrays import Array
from peerlearn.errors import NotConverged
from peerlearn.local.losses import Product
from peerlearn.network.base import Network
from peerlearn.testing.comparing import check_threads
from peerlearn.testing.problems import GRAPHS

ALPHA = 4.0
INPUTS = 4


@dataclass(frozen=True)
class MarginLosses:
    """Losses h_k(w) = sum over agent k's rows of phi(w'z), where z = y x.

    convex: phi(m) = log(1 + exp(-m)), else phi(m) = 1 / (1 + exp(m)).
    """

    rows: Sequence[Array]
    convex: bool

    @property
    def agents(self) -> int:
        return len(self.rows)

    @property
    def dimension(self) -> int:
        return int(self.rows[0].shape[1])

    def value(self, w: Array) -> Array:
        sums = []
        for z, own in zip(self.rows, w, strict=True):
            sums.append(_phi(z @ own, self.convex).sum())
        return np.array(sums)

    def gradient(self, w: Array) -> Array:
        gradients = []
        for z, own in zip(self.rows, w, strict=True):
            gradients.append(_slope(z @ own, self.convex) @ z)
        return np.stack(gradients)

    def convex_gradient(self, w: Array) -> Array:
        return self.gradient(w) if self.convex else np.zeros_like(w)

    def curvature(self, w: Array) -> Product:
        bends = []
        for z, own in zip(self.rows, w, strict=True):
            bends.append(np.maximum(_bend(z @ own, self.convex), 0.0))

        def product(p: Array) -> Array:
            products = []
            for z, c, own in zip(self.rows, bends, p, strict=True):
                products.append(z.T @ (c * (z @ own)))
            return np.stack(products)

        return product


def check_smooth_solver(solver: SmoothSolver) -> None:
    """Check that a solver of smooth problems keeps its promises.

    Parameters
    ----------
    solver : SmoothSolver
        An object with `minimise` and `name`.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong.

    Examples
    --------
    >>> from peerlearn import LBFGS
    >>> check_smooth_solver(LBFGS())
    """
    name = type(solver).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the report says it too
        for convex in (True, False):
            for where, graph in {"one agent": graphs.complete(1), **GRAPHS}.items():
                rows = _draw(len(graph))
                network = SimulatedNetwork(graph)
                found = solver.minimise(network, MarginLosses(rows, convex), ALPHA)
                _check_stationary(solver, f"{name} on {where}", rows, found, convex)
                sent = network.ledger.since()
                assert found.report.sent == sent, (
                    f"{name} on {where} reports {found.report.sent}, not {sent}"
                )
        _check_threads(solver, name)


def _check_stationary(
    solver: SmoothSolver, what: str, rows: list[Array], found: Minimum, convex: bool
) -> None:
    assert found.report.converged, f"{what} does not converge on an easy problem"
    tolerance = float(getattr(solver, "tolerance", 1e-5))
    everybody = np.vstack(rows)
    for agent, w in enumerate(found.coefficients):
        gradient = _slope(everybody @ w, convex) @ everybody + ALPHA * w
        size = float(np.linalg.norm(gradient))
        assert size <= 1.01 * tolerance, (
            f"{what} ends, at agent {agent}, where the gradient of the whole problem is "
            f"{size:.1e}, not {tolerance:g}"
        )


def _check_threads(solver: SmoothSolver, name: str) -> None:
    where, graph = next(iter(GRAPHS.items()))
    rows = _draw(len(graph))

    def minimise(network: Network) -> dict[str, Array]:
        own = MarginLosses([rows[k] for k in network.hosted], convex=True)
        return {"coefficients": solver.minimise(network, own, ALPHA).coefficients}

    check_threads(f"{name} on {where}", graph, minimise)


def _draw(agents: int, seed: int = 0) -> list[Array]:
    """Return unequal numbers of rows, which lean towards one side."""
    rng = np.random.default_rng(seed)
    sizes = rng.permutation(np.linspace(5, 30, agents).astype(int))
    rows = []
    for n in sizes:
        spread = rng.standard_normal((n, INPUTS))
        rows.append(spread + 0.1 * rng.standard_normal(INPUTS) + 0.3)
    return rows


def _phi(m: Array, convex: bool) -> Array:
    values: Array = np.logaddexp(0.0, -m) if convex else _sigmoid(-m)
    return values


def _slope(m: Array, convex: bool) -> Array:
    return -_sigmoid(-m) if convex else -_sigmoid(m) * _sigmoid(-m)


def _bend(m: Array, convex: bool) -> Array:
    both = _sigmoid(m) * _sigmoid(-m)
    return both if convex else both * (_sigmoid(m) - _sigmoid(-m))


def _sigmoid(m: Array) -> Array:
    values: Array = 0.5 * (1.0 + np.tanh(0.5 * m))
    return values
