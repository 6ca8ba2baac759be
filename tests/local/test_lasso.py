"""The exact lasso from sums: the conditions of a minimum, scikit-learn, and the same zeros at every
agent.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Lasso as SklearnLasso

from peerlearn import ADMM, Averaging, Faults, Gram, Local, SimulatedNetwork, graphs
from peerlearn.algorithms.readout.auto import Auto
from peerlearn.data import mackey_glass, narma10
from peerlearn.errors import DataError, InputError, NotConverged
from peerlearn.local import lasso as module
from peerlearn.local.lasso import TOLERANCE, lasso
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso
from tests.support.readout_problems import distance, ragged_problem
from tests.support.reservoirs import reservoir
from tests.support.split_network import run_apart


def objective(G, P, b, alpha):
    return 0.5 * np.sum(b * (G @ b)) - np.sum(P * b) + alpha * np.abs(b).sum()


def missed(G, P, b, alpha):
    """The conditions of a minimum, written down anew: relative to the largest |P|."""
    g = G @ b - P
    at_work, at_rest = np.abs(g + alpha * np.sign(b))[b != 0], np.abs(g[b == 0]) - alpha
    return max(at_work.max(initial=0.0), at_rest.max(initial=0.0)) / np.abs(P).max()


def states(series, units=80, noise=0.0):
    """Rows [1, x[n], h[n]] of a reservoir and targets: condition numbers of 1e10 and more."""
    x, y = series
    H = reservoir(units).harvest(
        x, noise=[np.random.default_rng(j) for j in range(len(x))], amplitude=noise
    )
    return [h[50:] for h in H], [d[50:, None] for d in y]


@pytest.mark.parametrize("alpha", [0.03, 1.0, 10.0, 1e4])
@pytest.mark.parametrize(("rows", "columns"), [(300, 40), (25, 60)])
def test_lasso_is_scikit_learns(rows, columns, alpha):
    rng = np.random.default_rng(rows)
    H, Y = rng.standard_normal((rows, columns)), rng.standard_normal((rows, 3))
    b, left = lasso(H.T @ H, H.T @ Y, alpha)
    rival = SklearnLasso(
        alpha=alpha / rows, fit_intercept=False, tol=1e-14, max_iter=1_000_000
    ).fit(H, Y)
    np.testing.assert_allclose(b, rival.coef_.T, atol=1e-8)
    assert np.array_equal(b == 0, rival.coef_.T == 0)
    assert left <= 1e-14
    assert (b == 0).all() == (alpha == 1e4)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("draw", [mackey_glass, narma10])
def test_the_states_of_a_reservoir_are_no_difficulty(draw, alpha, noise):
    """Coordinate descent stands still on these; the conditions of a minimum hold to rounding."""
    H, Y = states(draw(1, 700), noise=noise)
    G, P = H[0].T @ H[0], H[0].T @ Y[0]
    b, left = lasso(G, P, alpha)
    assert np.linalg.cond(G) > (1e6 if noise else 1e9)
    assert missed(G, P, b, alpha) <= 1e-10
    assert left <= 1e-10
    support = np.flatnonzero(b[:, 0])
    again = np.linalg.solve(
        G[np.ix_(support, support)], P[support, 0] - alpha * np.sign(b[support, 0])
    )
    assert np.array_equal(np.sign(again), np.sign(b[support, 0]))


def test_lasso_as_scikit_learn_has_it_on_states():
    """Within 1e-5 of coordinate descent, as far as that comes: with an alpha that it can
    cope with.
    """
    H, Y = states(narma10(1, 700), noise=1e-3)
    b, _ = lasso(H[0].T @ H[0], H[0].T @ Y[0], 0.3)
    rival = SklearnLasso(
        alpha=0.3 / len(H[0]), fit_intercept=False, tol=1e-12, max_iter=300_000
    ).fit(H[0], Y[0][:, 0])
    np.testing.assert_allclose(b[:, 0], rival.coef_, atol=1e-5)
    assert np.array_equal(b[:, 0] == 0, rival.coef_ == 0)


def test_nothing_else_is_as_small():
    rng = np.random.default_rng(4)
    H, Y = rng.standard_normal((40, 12)), rng.standard_normal((40, 1))
    G, P = H.T @ H, H.T @ Y
    b, _ = lasso(G, P, 5.0)
    least = objective(G, P, b, 5.0)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(50):
            assert objective(G, P, b + size * rng.standard_normal(b.shape), 5.0) > least


def test_the_best_point_of_a_ray_is_found_exactly():
    """Against a fine grid: the ray passes zeros of several coefficients, and may end on one."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        root = rng.standard_normal((8, 5))
        G, P, b = root.T @ root, 3 * rng.standard_normal(5), rng.standard_normal(5)
        d = np.linalg.solve(G, P - G @ b - np.sign(b))
        slope = float(d @ (G @ b - P + np.sign(b)))
        best = module._best_on_ray(b, d, G @ d, slope, 1.0)
        grid = b + np.linspace(0, 2, 801)[:, None] * d
        values = [objective(G, P, point, 1.0) for point in grid]
        assert objective(G, P, best, 1.0) <= min(values) + 1e-12
        held += int((best == 0).any())
    assert 10 < held < 190


def test_what_is_let_in_moves_as_its_gradient_says():
    """Two columns nearly alike: let in together, the second would be pushed below zero by the
    first.
    """
    G, P = np.array([[1.0, 0.99], [0.99, 1.0]]), np.array([1.0, 0.95])
    s, alpha = np.ones(2), 0.1
    A, d = module._direction(G, -P + alpha * s, s, np.zeros(2, dtype=bool), np.array([0, 1]))
    np.testing.assert_array_equal(A, [0])
    np.testing.assert_allclose(d, [0.9])


def test_columns_that_are_alike_zero_or_too_many():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((30, 60))
    H[:, 5] = 0
    H[:, 30:] = H[:, :30]
    Y = rng.standard_normal((30, 3))
    Y[:, 2] = 0
    G, P = H.T @ H, H.T @ Y
    for alpha in (1e-8, 1e-3, 1.0):
        b, left = lasso(G, P, alpha)
        half, _ = lasso(G[:30, :30], P[:30], alpha)
        assert left <= TOLERANCE
        assert objective(G, P, b, alpha) == pytest.approx(
            objective(G[:30, :30], P[:30], half, alpha), rel=1e-9
        )
        assert not b[5].any()
        assert not b[:, 2].any()


def test_each_column_is_solved_by_itself():
    rng = np.random.default_rng(1)
    H, Y = rng.standard_normal((50, 20)), rng.standard_normal((50, 2)) * [1.0, 1e3]
    G, P = H.T @ H, H.T @ Y
    both, _ = lasso(G, P, 4.0)
    assert np.array_equal(both[:, :1], lasso(G, P[:, :1], 4.0)[0])
    assert np.array_equal(both[:, 1:], lasso(G, P[:, 1:], 4.0)[0])


def test_what_is_no_number_is_not_called_a_minimum():
    G = np.eye(3)
    G[0, 0] = np.nan
    b, left = lasso(G, np.ones((3, 1)), 0.1)
    assert left == 1.0
    assert not b.any()


# Over a network
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("averaging", ["tree", "chebyshev", "plain"])
def test_gram_has_the_centralised_lasso_and_the_same_zeros_everywhere(graph, averaging):
    problems, H, Y = ragged_problem(len(graph), 40, 2)
    solution = Gram(averaging=averaging).solve(SimulatedNetwork(graph), problems, Lasso(3.0))
    exact, _ = lasso(H.T @ H, H.T @ Y, 3.0)
    assert solution.report.converged
    assert distance(solution.coefficients, exact) <= 1e-8
    assert all(np.array_equal(b == 0, exact == 0) for b in solution.coefficients)
    assert len({b.tobytes() for b in solution.coefficients}) == 1
    assert 0.05 < (exact == 0).mean() < 0.95


def test_gram_over_the_states_of_a_reservoir():
    H, Y = states(mackey_glass(7, 130), noise=1e-3)
    problems, everything = LeastSquares.of_rows(H, Y), (np.vstack(H), np.vstack(Y))
    exact, _ = lasso(everything[0].T @ everything[0], everything[0].T @ everything[1], 1e-3)
    for averaging in ("tree", "chebyshev"):
        solution = Gram(averaging=averaging).solve(
            SimulatedNetwork(graphs.ring(7)), problems, Lasso(1e-3)
        )
        assert solution.report.converged
        assert distance(solution.coefficients, exact) <= 1e-5
        assert all(np.array_equal(b == 0, exact == 0) for b in solution.coefficients)


@pytest.mark.parametrize("solver", [Gram(), Gram(averaging="chebyshev"), Auto(), Local()], ids=str)
def test_every_agent_alone_has_the_bits_of_the_simulation(solver):
    H, Y = states(mackey_glass(6, 130), units=40, noise=1e-3)
    H[4], Y[4] = H[4][:9], Y[4][:9]
    graph = graphs.ring(6)

    def one(network, k):
        return solver.solve(
            network, LeastSquares.of_rows(H[k : k + 1], Y[k : k + 1]), Lasso(1e-3)
        ).coefficients[0]

    together = solver.solve(
        SimulatedNetwork(graph, exact_order=True), LeastSquares.of_rows(H, Y), Lasso(1e-3)
    )
    assert np.array_equal(run_apart(graph, one, exact_order=True), together.coefficients)


def test_by_gossip_only_the_answer_is_followed():
    """Sums of all agents travel, but not the sum itself: one agent solves, and its coefficients go
    round. The length of a row travels with it, and a bound with the coefficients.
    """
    problems, _, _ = ragged_problem(10, 40, 1)
    network = SimulatedNetwork(graphs.ring(10))
    Gram(averaging="chebyshev").solve(network, problems, Lasso(3.0))
    rounds = network.ledger.rounds - network.diameter - len(network.rings)
    followed = sum(len(senders) for senders, _ in network.rings) * 42 * 8
    assert (
        network.ledger.bytes
        == 20 * (rounds * (40 * 41 // 2 + 40 + 1) + network.diameter) * 8 + followed
    )


def test_lost_messages_leave_the_zeros_alone():
    problems, H, Y = ragged_problem(10, 20, 1)
    network = SimulatedNetwork(graphs.erdos_renyi(10, 0.5), faults=Faults(0.1, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        b = Gram().solve(network, problems, Lasso(3.0)).coefficients
    assert len({one.tobytes() for one in b}) == 1
    assert distance(b, lasso(H.T @ H, H.T @ Y, 3.0)[0]) <= 1e-3


def test_auto_takes_gram_for_a_lasso():
    problems, H, Y = ragged_problem(6, 15, 2)
    solution = Auto().solve(SimulatedNetwork(graphs.ring(6)), problems, Lasso(3.0))
    assert solution.report.solver == "Gram"
    assert "same zeros everywhere" in solution.report.note
    assert distance(solution.coefficients, lasso(H.T @ H, H.T @ Y, 3.0)[0]) <= 1e-10


def test_local_solves_each_agents_own_lasso():
    problems, _, _ = ragged_problem(6, 15, 2)
    network = SimulatedNetwork(graphs.ring(6))
    solution = Local().solve(network, problems, Lasso(3.0))
    assert network.ledger.messages == 0
    assert solution.report.converged
    for b, equations in zip(solution.coefficients, problems.normal_equations(), strict=True):
        G, P = equations.gram()
        assert missed(G, P, b, 3.0) <= 1e-13


def test_a_lasso_of_alpha_zero_is_least_squares():
    problems, H, Y = ragged_problem(4, 5, 1)
    answer = np.linalg.lstsq(H, Y, rcond=None)[0]
    assert (
        distance(
            Gram().solve(SimulatedNetwork(graphs.ring(4)), problems, Lasso(0.0)).coefficients,
            answer,
        )
        <= 1e-8
    )
    few = LeastSquares.of_rows([H[:1]] * 4, [Y[:1]] * 4)
    for averaging in ("tree", "chebyshev"):
        with pytest.raises(DataError, match="linearly dependent"):
            Gram(averaging=averaging).solve(SimulatedNetwork(graphs.ring(4)), few, Lasso(0.0))
    with pytest.raises(DataError, match="do not determine"):
        Local().solve(SimulatedNetwork(graphs.ring(4)), few, Lasso(0.0))


def test_a_lasso_that_is_cut_off_says_so(monkeypatch):
    monkeypatch.setattr(module, "_best_on_ray", lambda b, *_: b)
    problems, _, _ = ragged_problem(4, 5, 1)
    for solver in (Gram(), Local()):
        with pytest.warns(
            NotConverged,
            match=r"with a gradient of size .* where 1e-10 was asked for: scale the inputs",
        ):
            assert not solver.solve(
                SimulatedNetwork(graphs.ring(4)), problems, Lasso(1.0)
            ).report.converged


def test_a_lasso_of_loose_averages_says_so():
    problems, _, _ = ragged_problem(4, 5, 1)
    loose = Gram(averaging=Averaging("chebyshev", 1e-6))
    with pytest.warns(
        NotConverged, match=r"Gram stopped after 1 iterations .* averaging a tolerance of 1.0e-15"
    ):
        assert not loose.solve(
            SimulatedNetwork(graphs.ring(4)), problems, Lasso(1.0)
        ).report.converged


def test_gram_and_local_refuse_other_penalties():
    class Other:
        alpha, convexity = 1.0, 0.0

        def prox(self, v, step):
            return v

    problems, _, _ = ragged_problem(4, 5, 1)
    for solver in (Gram(), Local()):
        with pytest.raises(
            InputError,
            match="solves ridge and lasso problems only: for a Other penalty use solver='ad",
        ):
            solver.solve(SimulatedNetwork(graphs.ring(4)), problems, Other())
    assert (
        "neither ridge nor lasso"
        in Auto(1.0).solve(SimulatedNetwork(graphs.ring(4)), problems, Other()).report.note
    )


# ADMM
# --------------------------------------------------------------------------------------------------


def well_conditioned(agents):
    rng = np.random.default_rng(7)
    H = [rng.standard_normal((rows, 20)) for rows in rng.integers(15, 60, agents)]
    Y = [h @ np.repeat([[1.0], [0.0]], 10, axis=0) + rng.standard_normal((len(h), 1)) for h in H]
    together = np.vstack(H)
    return LeastSquares.of_rows(H, Y), together.T @ together, together.T @ np.vstack(Y)


def test_admm_reaches_the_exact_lasso():
    """The threshold is element by element, of the scaled dual, with alpha / (rho L): nothing else
    ends here.
    """
    problems, G, P = well_conditioned(10)
    exact, _ = lasso(G, P, 20.0)
    for rho in (None, 3.0, 100.0):
        solution = ADMM(1e-9, rho=rho).solve(
            SimulatedNetwork(graphs.ring(10)), problems, Lasso(20.0)
        )
        assert solution.report.converged
        assert distance(solution.coefficients, exact) <= 1e-5
        assert np.array_equal(solution.coefficients[0] == 0, exact == 0)
        least = objective(G, P, exact, 20.0)
        assert objective(G, P, solution.coefficients[0], 20.0) == pytest.approx(least, rel=1e-8)
    assert 0.2 < (exact == 0).mean() < 0.8


def test_the_printed_thresholds_end_elsewhere():
    """What the thesis prints, run by hand: the unscaled dual, and one threshold for the whole
    vector.
    """
    alpha, rho, L = 20.0, 0.5, 5
    problems, G, P = well_conditioned(L)
    exact, _ = lasso(G, P, alpha)
    least = objective(G, P, exact, alpha)

    def run(threshold):
        z = t = np.zeros((L, 20, 1))
        nearest = problems.proximal(rho)
        for _ in range(4000):
            b = nearest(z - t / rho)
            z = np.repeat(threshold(b.mean(axis=0), t.mean(axis=0))[None], L, axis=0)
            t = t + rho * (b - z)
        return z[0]

    def soft(v, by):
        return np.sign(v) * np.maximum(np.abs(v) - by, 0)

    right = run(lambda b, t: soft(b + t / rho, alpha / (L * rho)))
    unscaled = run(lambda b, t: soft(b + t, alpha / (L * rho)))
    whole = run(
        lambda b, t: max(1 - alpha / (L * rho) / np.linalg.norm(b + t / rho), 0) * (b + t / rho)
    )
    assert objective(G, P, right, alpha) == pytest.approx(least, rel=1e-9)
    assert np.array_equal(right == 0, exact == 0)
    assert objective(G, P, unscaled, alpha) > least + 1e-3 * abs(least)
    assert objective(G, P, whole, alpha) > least + 1e-3 * abs(least)
    assert not (whole == 0).any()


def test_columns_of_very_different_size():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((100, 40)) * 10.0 ** rng.integers(-6, 6, 40)
    y = rng.standard_normal((100, 1))
    b, told = lasso(H.T @ H, H.T @ y, 1e-5)
    assert max(told, missed(H.T @ H, H.T @ y, b, 1e-5)) < 1e-12


def test_what_is_beyond_numbers_ends_with_a_warning():
    H = [np.random.default_rng(k).standard_normal((9, 3)) * 1e-170 for k in range(4)]
    problems = LeastSquares.of_rows(H, [np.ones((9, 1))] * 4)
    with pytest.warns(NotConverged, match="scale the inputs"):
        solution = Gram().solve(SimulatedNetwork(graphs.ring(4)), problems, Lasso(1e-175))
    assert not solution.report.converged
