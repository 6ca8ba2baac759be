"""Smooth problems over a network: the centralised answer, the printed formulas, honest stops,
agents apart.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.smooth import (
    LBFGS,
    NEXT,
    Diffusion,
    GradientTracking,
    Newton,
    StepRule,
    smooth_solver_of,
    smooth_solvers,
)
from peerlearn.algorithms.smooth.mixing import Mixing
from peerlearn.algorithms.smooth.steps import AutomaticSteps
from peerlearn.errors import InputError, NetworkError, NotConverged
from peerlearn.local import surrogates
from peerlearn.local.margin_losses import LogisticLosses
from peerlearn.testing.cases.smooth import cases
from tests.support.smooth_problems import (
    ALPHA,
    GRAPH,
    g50c_over,
    logistic_gradient,
    logistic_value,
    quiet,
    rows,
    s3vm_gradient,
)
from tests.support.split_network import run_apart

SOLVERS = [
    NEXT(),
    NEXT("exact"),
    NEXT("linear"),
    NEXT(mixing="plain"),
    GradientTracking(),
    GradientTracking("plain"),
    LBFGS(),
    Newton(),
    Diffusion(tolerance=0.05),
    Diffusion("combine-then-adapt", tolerance=0.05),
]


# The answer
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_logistic_regression_reaches_the_centralised_minimum(solver, graph):
    X, y = rows(graph.number_of_nodes())
    everything = np.vstack(X), np.concatenate(y)
    answer = minimize(logistic_value, np.zeros(4), everything, jac=logistic_gradient, tol=1e-12).x
    network = SimulatedNetwork(graph)
    found = solver.minimise(network, LogisticLosses(X, y), ALPHA)
    assert found.report.converged
    assert found.report.sent.rounds == network.ledger.rounds
    for w in found.coefficients:
        size = np.linalg.norm(logistic_gradient(w, *everything))
        assert size <= solver.tolerance * 1.0001
        said = found.report.residuals[-1]
        if isinstance(solver, Newton):
            assert size <= said * 1.001, "nobody evaluates after its last step"
        else:
            assert size == pytest.approx(said, rel=1e-3)
        assert np.linalg.norm(w - answer) <= solver.tolerance / ALPHA


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("solver", SOLVERS[:8], ids=str)
def test_s3vm_reaches_a_stationary_point(solver, skewed, graph):
    losses, everything = g50c_over(graph.number_of_nodes(), skewed)
    found = solver.minimise(SimulatedNetwork(graph), losses, 1.0)
    assert found.report.converged
    assert (
        max(np.linalg.norm(s3vm_gradient(w, *everything)) for w in found.coefficients) <= 1.0001e-5
    )


@pytest.mark.parametrize(
    ("edges", "limit"), [(graphs.erdos_renyi(25, 0.25, seed=1), 100), (graphs.ring(25), 350)]
)
def test_few_rounds_are_enough(edges, limit):
    losses, _ = g50c_over(25)
    network = SimulatedNetwork(edges)
    assert NEXT().minimise(network, losses, 1.0).report.converged
    assert network.ledger.rounds <= limit


class Wells:
    """h_k(w) = sum_j (w_j^2 - c_kj)^2 / N: a saddle at 0, and minima where w_j^2 is the mean of
    c_kj over agents.
    """

    def __init__(self, agents):
        self.agents, self.dimension = agents, 3
        self.c = 1.0 + np.linspace(-0.5, 0.5, agents)[:, None] * [1.0, -1.0, 0.5]

    def value(self, w):
        return ((w**2 - self.c) ** 2).sum(axis=1) / self.agents

    def gradient(self, w):
        return 4 * w * (w**2 - self.c) / self.agents


def test_agents_that_start_apart_leave_a_saddle_and_need_no_penalty(graph):
    agents = graph.number_of_nodes()
    start = [1e-4, -1e-5, 30.0] * np.random.default_rng(0).uniform(
        0.5, 1.5, (agents, 3)
    )  # near the saddle, and far
    found = GradientTracking().minimise(SimulatedNetwork(graph), Wells(agents), 0.0, start)
    np.testing.assert_allclose(
        found.coefficients, np.tile([1.0, -1.0, 1.0], (agents, 1)), atol=1e-5
    )


class Cliff:
    """h_k(w) = (exp(20 (w - c_k)) - w) / N: flat as far as one can see, then steeper than numbers
    can say.
    """

    def __init__(self, agents):
        self.agents, self.dimension, self.c = agents, 1, 1 + np.linspace(0, 0.1, agents)[:, None]

    def value(self, w):
        return ((np.exp(20 * (w - self.c)) - w) / self.agents)[:, 0]

    def gradient(self, w):
        return (20 * np.exp(20 * (w - self.c)) - 1) / self.agents


def test_agents_come_back_from_where_numbers_end():
    losses = Cliff(7)
    found = GradientTracking(max_iterations=300).minimise(SimulatedNetwork(GRAPH), losses, 0.01)
    bottom = brentq(lambda w: losses.gradient(np.full((7, 1), w)).sum() + 0.01 * w, 0, 1)
    np.testing.assert_allclose(found.coefficients, bottom, atol=1e-5)
    assert max(found.report.residuals) >= 1e100  # they were there


def test_a_gradient_that_grows_is_no_trouble_and_a_value_that_rises_is():
    steps = AutomaticSteps(sigma=0.5, largest=1.0)
    steps.begin(10.0)
    assert steps.judge(1.0, 5.0, 0.0) == "better"
    before = steps.now
    assert steps.judge(50.0, 4.9, 0.0) == "better"
    assert steps.judge(50.0, 5.1, 0.0) == "worse"
    assert steps.now == before
    assert steps.judge(1.5, 5.6, 0.0) == "lost"
    assert steps.now == before / 2


def test_one_agent_is_a_network_too():
    X, y = rows(1)
    for solver in SOLVERS:
        found = solver.minimise(SimulatedNetwork(graphs.complete(1)), LogisticLosses(X, y), ALPHA)
        assert (
            np.linalg.norm(logistic_gradient(found.coefficients[0], X[0], y[0])) <= solver.tolerance
        )
        assert found.report.sent.messages == 0


# The formulas, in a few rounds by hand
# -----------------------------------------------------------------------------


def by_hand():
    X, y = rows(5, seed=3)
    network = SimulatedNetwork(graphs.ring(5))
    start = np.random.default_rng(4).standard_normal((5, 4))

    def own(w):
        return np.stack(
            [logistic_gradient(u, x, t) - ALPHA * u for x, t, u in zip(X, y, w, strict=True)]
        )

    return network, LogisticLosses(X, y), start, network.mixing.toarray(), own


def test_diffusion_follows_the_formula():
    for order in ("adapt-then-combine", "combine-then-adapt"):
        network, losses, w, C, own = by_hand()
        found = quiet(
            Diffusion(order, StepRule(0.5, 0.55), max_iterations=4), network, losses, start=w
        )
        for n in range(4):
            a = 0.5 / (n + 1) ** 0.55
            if order == "adapt-then-combine":
                w = C @ (w - a * (own(w) + ALPHA / 5 * w))
            else:
                w = C @ w
                w = w - a * (own(w) + ALPHA / 5 * w)
        np.testing.assert_allclose(found.coefficients, w, atol=1e-12)


@pytest.mark.parametrize("surrogate", ["exact", "linear", "newton"])
def test_next_follows_the_formula(surrogate, monkeypatch):
    """Algorithm 8.2 with pi_k of the others' losses, its surrogates minimised by scipy."""
    monkeypatch.setattr(surrogates, "EXACT_ACCURACY", 1e-10)
    monkeypatch.setattr(surrogates, "NEWTON_ACCURACY", 1e-10)
    network, losses, w, C, own = by_hand()
    found = quiet(NEXT(surrogate, StepRule(0.6, 0.8), max_iterations=4), network, losses, start=w)
    v = own(w)
    for n in range(4):
        pi = 5 * v - own(w)
        best = np.stack(
            [surrogate_minimum(surrogate, losses, k, w, pi[k], own(w)[k]) for k in range(5)]
        )
        z = w + 0.6 / (n + 1) ** 0.8 * (best - w)
        w, old = C @ z, w
        v = C @ v + own(w) - own(old)
    np.testing.assert_allclose(found.coefficients, w, atol=1e-6)


def surrogate_minimum(surrogate, losses, k, w, pi, slope):
    """argmin of s_k(u) + pi'(u - w_k) + alpha/2 |u|^2"""

    def on_row(u):
        return np.where(np.arange(5)[:, None] == k, u, 0.0)

    def value(u):
        move = u - w[k]
        if surrogate == "exact":
            kept = losses.value(on_row(u))[k]
        else:
            kept = slope @ move + (
                5 / 2 * move @ bend(on_row(move))[k] if surrogate == "newton" else 0.0
            )
        return kept + pi @ move + ALPHA / 2 * u @ u

    bend = losses.curvature(w)
    return minimize(value, w[k], options={"gtol": 1e-9}).x


def test_tracking_follows_the_formula():
    network, losses, w, C, own = by_hand()
    found = quiet(
        GradientTracking("plain", StepRule(0.1), max_iterations=5), network, losses, start=w
    )
    v = own(w)
    for _ in range(5):
        w, old = C @ (w - 0.1 * (5 * v + ALPHA * w)), w
        v = C @ v + own(w) - own(old)
    np.testing.assert_allclose(found.coefficients, w, atol=1e-12)


def test_mixing_shrinks_by_what_it_says(graph):
    for kind in ("plain", "chebyshev"):
        network = SimulatedNetwork(graph)
        mix, N = Mixing.of(network, kind), network.size
        matrix, heard = mix(network, np.eye(N), np.arange(float(N)))
        assert np.linalg.norm(matrix - 1 / N, 2) == pytest.approx(mix.sigma, rel=0.3)
        assert np.linalg.norm(matrix - 1 / N, 2) <= mix.sigma * (1 + 1e-9)
        assert network.ledger.rounds == len(mix.rounds)
        assert (heard >= np.arange(N)).all()


# Stops that are honest
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [NEXT(), GradientTracking("plain"), Diffusion()], ids=str)
def test_a_run_cut_short_says_so(solver):
    X, y = rows(7)
    with pytest.warns(NotConverged, match=f"{type(solver).__name__} stopped after 3 iterations"):
        found = replace(solver, max_iterations=3).minimise(
            SimulatedNetwork(GRAPH), LogisticLosses(X, y), ALPHA
        )
    assert not found.report.converged
    assert found.report.iterations == 3
    assert found.report.residuals[-1] > solver.tolerance


def test_a_step_that_is_too_long_is_reported():
    for solver in (NEXT("linear", StepRule(1e3)), Diffusion(step=StepRule(1e3))):
        with pytest.warns(NotConverged, match="another step|raise max_iterations"):
            found = minimise(solver, start=np.ones((7, 3)))
        assert found.report.iterations < 1000  # noticed, not waited for


@pytest.mark.parametrize("case", cases())
def test_agents_apart_have_the_same_bits(case):
    with warnings.catch_warnings(action="ignore", category=NotConverged):
        network = SimulatedNetwork(GRAPH, exact_order=True)
        together = cases()[case](network)
        apart = run_apart(GRAPH, lambda network, k: cases()[case](network), exact_order=True)
    for key, found in together.items():
        np.testing.assert_array_equal(np.concatenate([own[key] for own in apart]), found)


@pytest.mark.parametrize(
    "solver", [NEXT(), GradientTracking(), LBFGS(), Newton(), Diffusion(tolerance=0.5)], ids=str
)
def test_agents_apart_stop_in_the_same_round(solver):
    """Also when sums have other bits than in simulation. Different calls in one round would fail in
    run_apart.
    """
    X, y = rows(7)
    apart = run_apart(
        GRAPH, lambda network, k: solver.minimise(network, LogisticLosses([X[k]], [y[k]]), ALPHA)
    )
    assert len({(own.report.iterations, own.report.residuals) for own in apart}) == 1
    together = solver.minimise(SimulatedNetwork(GRAPH), LogisticLosses(X, y), ALPHA)
    np.testing.assert_allclose(
        np.vstack([own.coefficients for own in apart]), together.coefficients, atol=1e-10
    )


def test_where_messages_get_lost():
    X, y = rows(7)
    lossy = SimulatedNetwork(GRAPH, faults=Faults(0.1, seed=1))
    for solver in (NEXT(), GradientTracking(), LBFGS(), Newton()):
        with pytest.raises(
            NetworkError, match="needs every message to arrive, and this network loses some"
        ):
            solver.minimise(lossy, LogisticLosses(X, y), ALPHA)
    found = Diffusion(step=StepRule(0.5, 0.7), tolerance=0.3).minimise(
        lossy, LogisticLosses(X, y), ALPHA
    )
    for w in found.coefficients:
        assert np.linalg.norm(logistic_gradient(w, np.vstack(X), np.concatenate(y))) <= 0.3001


# Settings
# --------------------------------------------------------------------------------------------------


def test_solvers_are_found_by_name():
    assert set(smooth_solvers()) == {"diffusion", "lbfgs", "newton", "next", "tracking"}
    assert smooth_solver_of("NEXT") == NEXT()
    assert smooth_solver_of(Diffusion(tolerance=0.5)).tolerance == 0.5
    with pytest.raises(InputError, match="did you mean 'tracking'"):
        smooth_solver_of("trackin")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: NEXT("cubic"),
            "surrogate 'cubic' is not known: choose one of newton, exact, linear",
        ),
        (lambda: NEXT(mixing="tree"), "mixing 'tree' is not known"),
        (lambda: GradientTracking(step=0.1), "step is 0.1: give a StepRule"),
        (lambda: Diffusion("adapt"), "order 'adapt' is not known"),
        (lambda: Diffusion(tolerance=0), "tolerance of Diffusion must be a number"),
        (
            lambda: NEXT(max_iterations=0),
            "max_iterations of NEXT must be a whole number of 1 or more, not 0",
        ),
        (lambda: StepRule(0.0), "alpha0 of a StepRule is 0.0: give a number above 0"),
        (lambda: StepRule(1.0, -1), "delta of a StepRule is -1: give a number of 0 or more"),
        (lambda: minimise(NEXT("linear"), alpha=0.0), "only if alpha is above 0, not 0.0"),
        (
            lambda: minimise(GradientTracking(), alpha=-1.0),
            "must be a finite number of 0 or more, not -1.0",
        ),
        (lambda: minimise(NEXT()), "needs losses with a curvature method, and Wells has none"),
        (
            lambda: minimise(NEXT("exact")),
            "needs losses with a convex_gradient method, and Wells has none",
        ),
        (lambda: minimise(Diffusion(), agents=5), "losses of 5 agents, but 7 are hosted here"),
        (
            lambda: minimise(Diffusion(), start=np.ones((7, 2))),
            "start must be 7 agents x 3 finite numbers",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def minimise(solver, alpha=1.0, agents=7, start=None):
    return solver.minimise(SimulatedNetwork(GRAPH), Wells(agents), alpha, start)
