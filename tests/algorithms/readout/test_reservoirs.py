"""Solvers on the states of reservoirs: badly conditioned, with fewer rows than units, and from
agents that differ.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from peerlearn import ADMM, Averaging, ConjugateGradient, Gram, SimulatedNetwork, graphs
from peerlearn.algorithms.krylov import _Directions
from peerlearn.algorithms.readout.auto import Auto
from peerlearn.algorithms.readout.preconditioners import PRECONDITIONERS
from peerlearn.data import mackey_glass
from peerlearn.errors import InputError, NotConverged
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Ridge
from tests.support.readout_problems import distance, ragged_problem
from tests.support.reservoirs import reservoir
from tests.support.split_network import run_apart

ROWS = (5, 10, 20, 40, 80, 120, 160, 200, 250, 300, 350, 400)
GRAPH = graphs.erdos_renyi(12, 0.3, seed=0)


@pytest.fixture(scope="module")
def unlike():
    """Agents with 5 to 400 rows of 302 columns, and inputs of sizes from 0.3 to 3."""
    x, y = mackey_glass(12, 500, seed=1)
    sizes = np.linspace(0.3, 3, 12)
    states = reservoir(300).harvest([size * one for size, one in zip(sizes, x, strict=True)])
    H = [h[100 : 100 + rows] for h, rows in zip(states, ROWS, strict=True)]
    Y = [size * d[100 : 100 + rows, None] for size, d, rows in zip(sizes, y, ROWS, strict=True)]
    return H, Y


@pytest.fixture(scope="module")
def alike():
    """Agents with 400 rows each of 302 columns, and rows to test on."""
    x, y = mackey_glass(30, 500, seed=0)
    noise = [np.random.default_rng(j) for j in range(30)]
    H = [h[100:] for h in reservoir(300).harvest(x, noise=noise, amplitude=5e-4)]
    return (
        H[:25],
        [d[100:, None] for d in y[:25]],
        np.vstack(H[25:]),
        np.concatenate([d[100:, None] for d in y[25:]]),
    )


def centralised(H, Y, alpha):
    """By QR, which squares no condition number."""
    rows, targets = np.vstack(H), np.vstack(Y)
    width = rows.shape[1]
    Q, R = np.linalg.qr(np.vstack([rows, np.sqrt(alpha) * np.eye(width)]))
    return np.linalg.solve(R, Q.T @ np.vstack([targets, np.zeros((width, targets.shape[1]))]))


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
@pytest.mark.parametrize(
    "solver",
    [ConjugateGradient(), ConjugateGradient(averaging="chebyshev"), Gram(), Auto()],
    ids=str,
)
def test_agents_that_differ_and_have_few_rows_reach_the_centralised_readout(unlike, solver, alpha):
    problems = LeastSquares.of_rows(*unlike)
    solution = solver.solve(SimulatedNetwork(GRAPH), problems, Ridge(alpha))
    assert solution.report.converged
    away = distance(solution.coefficients, centralised(*unlike, alpha))
    assert away <= solution.report.bound <= 1e-6


def test_auto_goes_over_to_gram_where_iterations_get_too_many():
    """Inputs of sizes from 0.03 to 10: conjugate gradients would send three times as much
    as Gram.
    """
    x, y = mackey_glass(12, 500, seed=1)
    sizes = np.logspace(-1.5, 1, 12)
    H = [
        h[100:]
        for h in reservoir(300).harvest([size * one for size, one in zip(sizes, x, strict=True)])
    ]
    Y = [size * d[100:, None] for size, d in zip(sizes, y, strict=True)]
    sent = {}
    for solver in (Auto(), ConjugateGradient(), Gram()):
        problems = LeastSquares.of_rows(H, Y)
        solution = solver.solve(SimulatedNetwork(GRAPH), problems, Ridge(1e-3))
        assert solution.report.converged
        assert distance(solution.coefficients, centralised(H, Y, 1e-3)) <= 1e-6
        sent[type(solver).__name__] = solution.report.sent.bytes
        if isinstance(solver, Auto):
            assert "iterations did not reach it" in solution.report.note
            assert solution.report.solver == "Gram"
    assert sent["Auto"] < 2.2 * sent["Gram"]
    assert sent["ConjugateGradient"] > 2.2 * sent["Gram"]


def test_what_admm_makes_of_them(unlike):
    """Why it is not the default: 400 iterations leave it far away."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        b = ADMM(max_iterations=400).solve(
            SimulatedNetwork(GRAPH), LeastSquares.of_rows(*unlike), Ridge(1e-3)
        )
    assert distance(b.coefficients, centralised(*unlike, 1e-3)) > 0.1


def test_a_few_sums_are_enough(alike):
    """Right side, row counts, products and preconditioning all counted: 6 sums to the error of the
    centralised one.
    """
    H, Y, tested, targets = alike
    network = SimulatedNetwork(graphs.erdos_renyi(25, 0.25, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        solution = ConjugateGradient(max_iterations=3).solve(
            network, LeastSquares.of_rows(H, Y), Ridge(1e-3)
        )

    def error(b):
        return np.linalg.norm(tested @ b - targets)

    assert solution.report.sent.rounds == 6 * 2 * network.tree.height
    best = error(centralised(H, Y, 1e-3))
    assert all(abs(error(b) / best - 1) <= 0.01 for b in solution.coefficients)


def test_an_iteration_costs_two_sums_and_the_last_step_none():
    _, H, Y = ragged_problem(10, 30, 2)
    bare = LeastSquares.of_rows(np.array_split(H, 10), np.array_split(Y, 10))
    away = []
    for n in (1, 2, 3):
        network = SimulatedNetwork(graphs.ring(10))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            solution = ConjugateGradient(1e-12, max_iterations=n).solve(network, bare, Ridge(1.0))
        assert network.ledger.rounds == 2 * n * 2 * network.tree.height
        away.append(distance(solution.coefficients, np.linalg.solve(H.T @ H + np.eye(30), H.T @ Y)))
    assert away[0] > 3 * away[1] > 9 * away[2]


def test_the_report_says_which_preconditioner_was_taken(unlike):
    known, _, _ = ragged_problem(12, 30, 1)
    for problems, kind in ((known, "synthetic"), (LeastSquares.of_rows(*unlike), "local")):
        note = (
            ConjugateGradient(0.1).solve(SimulatedNetwork(GRAPH), problems, Ridge(1.0)).report.note
        )
        assert note.startswith(f"preconditioner {kind}, ")


def test_what_is_missing_is_said_before_the_first_message(unlike):
    network = SimulatedNetwork(GRAPH)
    with pytest.raises(InputError, match="use preconditioner='local'"):
        ConjugateGradient(preconditioner="synthetic").solve(
            network, LeastSquares.of_rows(*unlike), Ridge(1.0)
        )
    assert network.ledger.rounds == 0


def test_the_average_of_inverses_is_never_less_than_the_inverse(unlike):
    """P >= A^-1, whatever the agents have: so that r'P r bounds the distance."""
    problems, alpha = LeastSquares.of_rows(*unlike), 1e-2
    kind, everyone = PRECONDITIONERS["local"], SimulatedNetwork(GRAPH)
    extra = kind.extra_numbers(everyone, problems, alpha)
    sums = np.repeat(extra.sum(axis=0)[None], 12, axis=0)
    P = kind.prepare(problems, alpha, lambda x: np.repeat(x.sum(axis=0)[None], 12, axis=0), sums)
    A = sum(h.T @ h for h in unlike[0]) + alpha * np.eye(302)
    rng = np.random.default_rng(0)
    for _ in range(5):
        r = rng.standard_normal((302, 1))
        exact = float((r.T @ np.linalg.solve(A, r)).item())
        z = P(np.repeat(r[None], 12, axis=0))[3]
        assert float((r.T @ z).item()) >= (1 - 1e-9) * exact


def test_directions_stay_conjugate_where_conditions_are_bad():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((60, 60)))
    A = (Q * np.logspace(0, 10, 60)) @ Q.T
    past, d = _Directions((60, 1)), rng.standard_normal((60, 1))
    kept = []
    for _ in range(30):
        q = A @ d
        past.add(d, q, d.T @ q)
        kept.append(d / np.sqrt((d.T @ q).item()))
        d = past.conjugate(rng.standard_normal((60, 1)))
    stacked = np.hstack(kept)
    assert np.abs(stacked.T @ A @ stacked - np.eye(30)).max() <= 1e-8


def test_of_directions_that_do_not_fit_the_last_are_kept(monkeypatch):
    monkeypatch.setattr("peerlearn.algorithms.krylov.KEPT", 18)
    past = _Directions((6, 1))
    for j in range(5):
        d = np.zeros((6, 1))
        d[j] = 1.0
        past.add(d, d, np.ones((1, 1)))
    np.testing.assert_array_equal(past.conjugate(np.ones((6, 1)))[:, 0], [1, 1, 0, 0, 0, 1])


def test_every_agent_alone_has_the_bits_of_the_simulation():
    x, y = mackey_glass(6, 120, seed=2)
    H, Y = [h[20:] for h in reservoir(40).harvest(x)], [d[20:, None] for d in y]
    H[2], Y[2] = H[2][:7], Y[2][:7]
    graph = graphs.ring(6)

    def one(network, k):
        return ConjugateGradient(1e-8).solve(
            network, LeastSquares.of_rows(H[k : k + 1], Y[k : k + 1]), Ridge(1e-3)
        )

    apart = np.concatenate(
        [solution.coefficients for solution in run_apart(graph, one, exact_order=True)]
    )
    together = ConjugateGradient(1e-8).solve(
        SimulatedNetwork(graph, exact_order=True), LeastSquares.of_rows(H, Y), Ridge(1e-3)
    )
    assert together.report.converged
    assert np.array_equal(apart, together.coefficients)


@pytest.mark.parametrize("alpha", [1e-7, 1e-4])
def test_directions_that_are_used_up_are_forgotten(alpha):
    """Columns have sizes from 1e-6 to 1e3. With alpha = 1e-7 a gradient cannot certify 1e-6."""
    rng = np.random.default_rng(3)
    H = [rng.standard_normal((30, 20)) * 10.0 ** rng.uniform(-6, 3, 20) for _ in range(4)]
    Y = [rng.standard_normal((30, 1)) for _ in range(4)]
    solver = ConjugateGradient(preconditioner="local")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = solver.solve(
            SimulatedNetwork(graphs.ring(4)), LeastSquares.of_rows(H, Y), Ridge(alpha)
        )
    assert solution.report.converged == (alpha == 1e-4)
    assert len(caught) == int(alpha == 1e-7)
    assert solution.report.iterations < 40
    b = np.linalg.solve(
        sum(h.T @ h for h in H) + alpha * np.eye(20),
        sum(h.T @ y for h, y in zip(H, Y, strict=True)),
    )
    assert np.linalg.norm(solution.coefficients[0] - b) < 1e-10 * np.linalg.norm(b)


def test_an_agent_without_rows_says_nothing():
    rng = np.random.default_rng(0)
    H = [rng.standard_normal((n, 8)) for n in (0, 5, 10, 20)]
    problems = LeastSquares.of_rows(H, [h[:, :1] for h in H])
    solution = ConjugateGradient(preconditioner="local").solve(
        SimulatedNetwork(graphs.ring(4)), problems, Ridge(1.0)
    )
    G, c = sum(h.T @ h for h in H), sum(h.T @ h[:, :1] for h in H)
    np.testing.assert_allclose(
        solution.coefficients[0], np.linalg.solve(G + np.eye(8), c), atol=1e-6
    )


def test_auto_does_not_blame_iterations_for_rounds_that_are_too_few():
    rng = np.random.default_rng(0)
    H = [rng.standard_normal((40, 60)) for _ in range(5)]
    problems = LeastSquares.of_rows(H, [h[:, :1] for h in H])
    solver = Auto(averaging=Averaging("plain", 1e-8, max_rounds=10))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = solver.solve(SimulatedNetwork(graphs.ring(5)), problems, Ridge(100.0)).report
    assert (report.solver, report.converged) == ("ConjugateGradient", False)
    assert any("give the averaging more max_rounds" in str(warning.message) for warning in caught)
    assert "too few" not in report.note
