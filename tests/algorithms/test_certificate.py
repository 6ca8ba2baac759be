"""Every bound that a solver reports holds: a part of benchmarks/certified.py, and hard problems."""

from __future__ import annotations

import importlib.util
import math
import sys
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from peerlearn import (
    ADMM,
    Averaging,
    ConjugateGradient,
    Consensus,
    DualConjugateGradient,
    ESNRegressor,
    Gram,
    Local,
    RVFLClassifier,
    RVFLRegressor,
    SharingADMM,
    SimulatedNetwork,
    SketchedConjugateGradient,
    StreamExact,
    graphs,
)
from peerlearn.algorithms.certificate import (
    certificate_of,
    intercept_effect,
    sum_error,
    sum_with_errors,
    with_intercept,
)
from peerlearn.algorithms.columns import LocalColumns
from peerlearn.algorithms.readout import gram
from peerlearn.algorithms.readout.auto import Auto
from peerlearn.algorithms.sums import sum_everywhere
from peerlearn.errors import DataError, NotConverged
from peerlearn.local.chunks import Chunk
from peerlearn.local.column_blocks import ColumnBlocks, subtract_means
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares, Lengths
from peerlearn.local.normal_equations import NormalEquations, product_units
from peerlearn.local.penalties import Lasso, Ridge
from tests.support.readout_problems import ragged_problem

FILE = Path(__file__).parents[2] / "benchmarks" / "certified.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("certified", FILE)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "certified", module)
        spec.loader.exec_module(module)
        yield module


def breast_cancer(alpha):
    """Return the problems of raw breast cancer data at 8 agents, and the features and targets."""
    raw = load_breast_cancer()
    features = RandomFeatures.draw(30, 60, seed=0, activation="relu", direct_links=True)
    Y = np.where(raw.target > 0, 1.0, -1.0)[:, None]
    X = np.array_split(raw.data, 8)
    return LeastSquares.of_inputs(features, X, np.array_split(Y, 8)), features(raw.data), Y


def relative_distance(b, truth):
    return float(np.linalg.norm((b - truth).astype(float)) / np.linalg.norm(truth.astype(float)))


@pytest.mark.parametrize("start", [0, 44])
def test_no_claim_is_false(benchmark, start):
    """44 solvers with ways of averaging, twice."""
    assert len(benchmark.SOLVERS | benchmark.UNDER_LOSS) == 44
    found = list(benchmark.claims(range(start, start + 44)))
    assert len(found) >= 40
    assert [claim for claim in found if claim.false] == []
    for claim in found:
        report = claim.report
        assert (report.bound == math.inf) <= bool(report.bound_reason)


@pytest.mark.parametrize("alpha", [1.0, 1e-6, 1e-8])
def test_raw_columns_are_solved_by_factors(benchmark, alpha):
    """Condition x eps is far beyond the tolerance: the Gram matrix alone is off by .21 at 1e-6."""
    problems, H, Y = breast_cancer(alpha)
    truth = benchmark.true_answer(H, Y, alpha)
    network = SimulatedNetwork(graphs.erdos_renyi(8, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        found = Gram().solve(network, problems, Ridge(alpha))
    distance = relative_distance(found.coefficients[0], truth)
    assert distance <= found.report.bound
    assert distance <= 1e-4
    assert found.report.converged == (found.report.bound <= 1e-6)
    assert network.ledger.rounds == 4 * network.tree.height  # twice up and down


def test_without_a_penalty_factors_reach_what_gram_cannot(benchmark):
    rng = np.random.default_rng(0)
    U, _, V = np.linalg.svd(rng.standard_normal((300, 20)), full_matrices=False)
    H = U * np.logspace(0, -6.5, 20) @ V
    Y = H @ rng.standard_normal((20, 1))
    problems = LeastSquares.of_rows(np.array_split(H, 5), np.array_split(Y, 5))
    found = Gram().solve(SimulatedNetwork(graphs.ring(5)), problems, Ridge(0.0))
    assert found.report.converged
    distance = relative_distance(found.coefficients[0], benchmark.true_answer(H, Y, 0.0))
    assert distance <= found.report.bound
    twice = [np.hstack([h, h]) for h in np.array_split(H, 5)]
    problems = LeastSquares.of_rows(twice, np.array_split(Y, 5))
    with pytest.raises(DataError, match="linearly dependent"):
        Gram().solve(SimulatedNetwork(graphs.ring(5)), problems, Ridge(0.0))


def test_sites_with_offsets_are_not_certified_by_the_iterations_own_operator(benchmark):
    rng = np.random.default_rng(0)
    offsets = np.where(np.arange(20) % 2, 1e4, -1e4)
    H = [rng.standard_normal((30, 10)) + offset for offset in offsets]
    Y = [h[:, :1] + rng.standard_normal((30, 1)) for h in H]
    problems = LeastSquares.of_rows(H, Y)
    truth = benchmark.true_answer(np.vstack(H), np.vstack(Y), 1.0)
    for solver in (
        ConjugateGradient(averaging="chebyshev", max_iterations=100),
        Gram(averaging="chebyshev"),
        ADMM(averaging="chebyshev", max_iterations=50),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            found = solver.solve(SimulatedNetwork(graphs.ring(20)), problems, Ridge(1.0))
        for b in found.coefficients:
            assert relative_distance(b, truth) <= found.report.bound, solver


def test_certainty_costs_no_round_and_no_percent_on_a_tree():
    """Figures of release 0.6, which certified nothing: 8 agents, 60 features, one output."""
    problems, _, _ = ragged_problem(8, 60, 1, seed=1)
    before = {"Gram": (4, 93_168), "ConjugateGradient": (76, 129_696)}  # rounds, bytes
    for solver in (Gram(), ConjugateGradient(1e-6, preconditioner="none")):
        network = SimulatedNetwork(graphs.erdos_renyi(8, 0.4, seed=0))
        report = solver.solve(network, problems, Ridge(10.0)).report
        rounds, sent = before[report.solver]
        assert report.converged
        assert report.sent.rounds <= rounds
        assert report.sent.bytes <= 1.01 * sent


def test_factors_cost_one_more_pass_as_large_as_the_first():
    problems, _, _ = breast_cancer(1e-6)
    network = SimulatedNetwork(graphs.erdos_renyi(8, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        sent = Gram().solve(network, problems, Ridge(1e-6)).report.sent
    numbers = 90 * 91 // 2 + 90 + 2  # a Gram matrix, |Y|^2 and the units of rounding
    down = 90 + 2
    assert sent.rounds == 4 * network.tree.height
    assert sent.bytes <= 1.01 * 7 * 8 * 2 * (numbers + down)


@pytest.mark.parametrize(
    ("solver", "before"),
    [
        (Gram(averaging="chebyshev"), (44, 11_794_400)),
        (ADMM(averaging="chebyshev"), (4115, 38_040_800)),
        (ConjugateGradient(averaging="chebyshev"), (293, 2_295_120)),
        (ConjugateGradient(averaging="chebyshev", preconditioner="none"), (602, 4_896_080)),
    ],
)
def test_certainty_costs_one_sum_and_one_flood_by_gossip(solver, before):
    """before: rounds and bytes without certificates."""
    problems, _, _ = ragged_problem(10, 60, 1, seed=1)
    network = SimulatedNetwork(graphs.ring(10))
    report = solver.solve(network, problems, Ridge(10.0)).report
    assert report.converged
    one_sum = Averaging("chebyshev", 1e-15).rounds_on(network)
    one_flood = network.flood_rounds
    rounds, sent = before
    assert report.sent.rounds <= rounds + one_sum + one_flood
    row = 8 * 20 * (60 + 2)
    assert report.sent.bytes <= 1.01 * sent + (one_sum + one_flood) * row


def test_cut_off_sums_have_no_bound():
    problems, _, _ = ragged_problem(10, 20, 1)
    averaging = Averaging("plain", 1e-12, max_rounds=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        report = (
            Gram(1e-6, averaging)
            .solve(SimulatedNetwork(graphs.ring(10)), problems, Ridge(1.0))
            .report
        )
    assert report.bound == math.inf
    assert "cut off" in report.bound_reason
    assert "error bound   none: sums were cut off" in str(report)
    assert report.for_json()["bound"] is None


def test_lasso_has_no_bound_and_says_why():
    problems, _, _ = ragged_problem(5, 20, 1)
    report = Gram().solve(SimulatedNetwork(graphs.ring(5)), problems, Lasso(1.0)).report
    assert report.converged
    assert report.bound == math.inf
    assert report.bound_reason


@pytest.mark.parametrize("outputs", [1, 2])
def test_rounding_of_columns_with_few_values_is_bounded(outputs):
    """Rounding errors do not cancel there. By products of matrix and vector they are too large."""
    units = []
    for rows in (254, 20_000, 100_000):
        for value in (0.1, 0.3, 0.7, 0.9):
            H = np.full((rows, 6), value)
            P = NormalEquations.of_rows(np.hstack([H[:, :5], H[:, :outputs]]), (5, outputs)).P
            exact = rows * Fraction(value) ** 2
            error = abs((Fraction(float(P[0, 0])) - exact) / exact)
            units.append(float(error) * 2**53 / product_units(rows))
    assert max(units) <= 1


@pytest.mark.parametrize("forgetting", [1.0, 0.7])
@pytest.mark.parametrize("averaging", ["tree", "chebyshev"])
def test_streams_carry_a_bound_that_holds(benchmark, averaging, forgetting):
    """Columns with conditions up to 1e12, so that rounding and inexact sums are seen."""
    rng = np.random.default_rng(0)
    learner = StreamExact(forgetting, averaging)
    for power in (0, 4, 6):
        network = SimulatedNetwork(graphs.ring(5))
        state = learner.start(network, (6, 1), 1e-3)
        seen_H = np.zeros((0, 6))
        seen_Y = np.zeros((0, 1))
        for count in range(1, 6):
            H = [rng.standard_normal((8, 6)) * np.logspace(0, power, 6) for _ in range(5)]
            Y = [h @ np.ones((6, 1)) + rng.standard_normal((8, 1)) for h in H]
            state = learner.learn(network, state, Chunk.of_rows(H, Y), 1e-3)
            root = np.sqrt(np.longdouble(forgetting))
            seen_H = np.vstack([root * seen_H, *H])
            seen_Y = np.vstack([root * seen_Y, *Y])
            truth = benchmark.true_answer(seen_H, seen_Y, 1e-3)
            bound = learner.certify(network, state, count).bound
            for b in state["b"]:
                assert relative_distance(b, truth) <= bound
            assert power > 0 or bound <= 1e-6


def test_reports_of_streams_have_the_bound():
    iris = load_iris()
    network = SimulatedNetwork(graphs.ring(3))
    model = RVFLClassifier(10, stream=StreamExact(), network=network, random_state=0)
    report = model.partial_fit(iris.data, iris.target, classes=[0, 1, 2]).report_
    assert report.converged == (report.bound <= 1e-6)
    assert 0 < report.bound < math.inf
    other = RVFLClassifier(10, stream="consensus", network=network, random_state=0)
    report = other.partial_fit(iris.data, iris.target, classes=[0, 1, 2]).report_
    assert report.bound == math.inf
    assert "does not promise" in report.bound_reason


def test_solvers_that_promise_something_else_have_a_gradient_or_a_reason():
    problems, H, Y = ragged_problem(5, 20, 1)
    found = Consensus().solve(SimulatedNetwork(graphs.ring(5)), problems, Ridge(1.0))
    pooled_H = np.vstack(H)
    gradient = pooled_H.T @ (pooled_H @ found.coefficients[0] - np.vstack(Y))
    gradient += found.coefficients[0]
    assert found.report.gradient == pytest.approx(np.linalg.norm(gradient), rel=1e-8)
    assert found.report.bound == math.inf
    assert f"gradient      {found.report.gradient:.2e}" in str(found.report)
    network = SimulatedNetwork(graphs.ring(5))
    report = Local().solve(network, problems, Ridge(1.0)).report
    assert network.ledger.bytes == 0  # its promise, so it can know nothing of other agents
    assert report.gradient is None
    assert "of the pooled one nothing is known" in str(report)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("stopping", ["bound", "messages", "oracle"])
def test_consensus_by_gossip_bounds_the_gradient_at_every_agent(stopping, tolerance):
    problems, H, Y = ragged_problem(12, 20, 2)
    averaging = Averaging("plain", tolerance, stopping=stopping)
    network = SimulatedNetwork(graphs.ring(12))
    found = Consensus(averaging).solve(network, problems, Ridge(1.0))
    gradients = H.T @ (H @ found.coefficients - Y) + found.coefficients
    largest = np.linalg.norm(gradients, axis=(1, 2)).max()
    assert largest <= found.report.gradient
    if stopping != "messages":  # which ends earlier than it could
        spread = np.linalg.norm(found.coefficients - found.coefficients.mean(axis=0))
        assert found.report.gradient <= largest + 2 * np.vdot(H, H) * spread
    network = SimulatedNetwork(graphs.ring(12))
    thesis = Consensus(averaging, "thesis").solve(network, problems, Ridge(1.0)).report
    assert thesis.gradient is None
    assert "sends nothing for a gradient" in thesis.bound_reason
    assert thesis.sent.rounds < found.report.sent.rounds


def test_a_gradient_whose_sum_was_cut_off_is_not_reported():
    problems, _, _ = ragged_problem(12, 20, 2)
    averaging = Averaging("plain", 1e-6, max_rounds=5)
    network = SimulatedNetwork(graphs.ring(12))
    with pytest.warns(NotConverged):
        report = Consensus(averaging).solve(network, problems, Ridge(1.0)).report
    assert report.gradient is None
    assert "cut off" in report.bound_reason


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
@pytest.mark.parametrize(
    "solver",
    [
        Gram(),
        Gram(averaging="chebyshev"),
        ConjugateGradient(),
        ConjugateGradient(averaging="chebyshev"),
        ADMM(1e-3, averaging="tree"),
        None,
    ],
    ids=str,
)
def test_bounds_cover_the_intercept(benchmark, solver, far):
    """Coefficients alone, and coefficients and intercept together, whatever is far from zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) + far
    y = X[:, 0] - X[:, 1] + rng.standard_normal(200) + 10 * far
    model = RVFLRegressor(5, 1.0, activation="relu", direct_links=True, random_state=0)
    if solver is not None:
        model.set_params(solver=solver, network=SimulatedNetwork(graphs.ring(5)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        model.fit(X, y)
    truth = benchmark.true_centred_answer(model.features_(X), y[:, None], 1.0)
    bound = model.report_.bound
    for b, c in zip(model.coefficients_, model.intercept_, strict=True):
        assert relative_distance(b, truth[1:]) <= bound
        assert relative_distance(np.vstack([c, b]), truth) <= bound
    if solver in (None, Gram()):
        assert bound <= 1e-8


def test_an_error_of_coefficients_is_larger_in_the_intercept():
    """Along the means, an error of b moves the intercept by |m| times as much."""
    lengths = Lengths(np.ones(2), 1.0, np.ones(1), np.array([1e3, 1e3, 0.0]), np.zeros(3), 10.0)
    b = np.array([[1.0], [-1.0]])
    for error in (1e-9, 1e-6):
        truth = b + error
        own = certificate_of(error * math.sqrt(2), float(np.linalg.norm(b)))
        found = with_intercept(own, b, lengths)
        both = np.vstack([b, -1e3 * np.sum(b, axis=0)])
        true_both = np.vstack([truth, -1e3 * np.sum(truth, axis=0)])
        distance = relative_distance(both, true_both)
        assert distance <= found.bound <= 1.1 * distance
        assert distance > 1000 * own.bound
        factor, _ = intercept_effect(lengths, b)
        assert found.bound <= 1.01 * factor * own.bound + 1e-12
        # A large intercept makes no error of b smaller.
        far = replace(lengths, means=np.array([0.0, 0.0, 1e9]))
        assert with_intercept(own, b, far).bound == own.bound


def test_bounds_cover_the_constant_of_a_readout_of_states(benchmark):
    x = np.sin(0.3 * np.arange(301))[:, None]
    model = ESNRegressor(20, alpha=1e-3, washout=10, network=SimulatedNetwork(graphs.ring(3)))
    model.fit(x[:-1], x[1:] + 1e3)
    inputs = np.array_split(x[:-1], 3)
    rows = np.vstack([h[10:] for h in model.reservoir_.harvest(inputs, None)])
    targets = np.vstack([part[10:] for part in np.array_split(x[1:] + 1e3, 3)])
    truth = benchmark.true_centred_answer(rows[:, 1:], targets, 1e-3)
    for b in model.coefficients_:
        assert relative_distance(b, truth) <= model.report_.bound
        assert relative_distance(b[1:], truth[1:]) <= model.report_.bound
    assert model.report_.converged


def test_bounds_of_streams_are_not_hidden_behind_a_large_intercept(benchmark):
    """An error that is small beside the intercept may be large beside the coefficients."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = X[:, 0] + 1e9
    model = RVFLRegressor(
        20, stream="exact", network=SimulatedNetwork(graphs.ring(3)), random_state=0
    )
    model.partial_fit(X, y)
    truth = benchmark.true_centred_answer(model.features_(X), y[:, None], 1.0)
    for b, c in zip(model.coefficients_, model.intercept_, strict=True):
        assert relative_distance(b, truth[1:]) <= model.report_.bound
        assert relative_distance(np.vstack([c, b]), truth) <= model.report_.bound


def test_columns_far_from_zero_lose_no_digits(benchmark):
    rng = np.random.default_rng(0)
    H = rng.standard_normal((200, 6)) + 1e12
    Y = H @ np.ones((6, 1)) + rng.standard_normal((200, 1))
    truth = benchmark.true_centred_answer(H, Y, 1.0)[1:]
    for solver in (DualConjugateGradient(), SketchedConjugateGradient(), SharingADMM(1e-6)):
        blocks = ColumnBlocks.of_features(np.array_split(H, 3, axis=1))
        blocks.centre()
        targets = Y.copy()
        subtract_means(targets)
        network = SimulatedNetwork(graphs.ring(3))
        found = solver.solve_columns(network, blocks, targets, 1.0)
        assert relative_distance(np.vstack(found.coefficients), truth) <= found.report.bound
        assert found.report.converged


@pytest.mark.parametrize("alpha", [1e-3, 1e-9])
def test_an_answer_in_one_place_has_a_bound(benchmark, alpha):
    """A single agent sends nothing, but has all rows. The second one needs its factor."""
    _, H, Y = breast_cancer(1.0)
    truth = benchmark.true_answer(H, Y, alpha)
    network = SimulatedNetwork(graphs.complete(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        by_rows = Local().solve(network, LeastSquares.of_rows([H], [Y]), Ridge(alpha))
        by_columns = LocalColumns().solve_columns(network, ColumnBlocks.of_features([H]), Y, alpha)
    for found in (by_rows, by_columns):
        away = relative_distance(found.coefficients[0], truth)
        assert away <= found.report.bound <= 1e4 * away
        assert found.report.converged == (found.report.bound <= 1e-6)
    assert by_rows.report.converged == (alpha == 1e-3)


def test_errors_of_gram_matrices_beside_large_moments_are_bounded():
    """Moments alternate and soon agree. The rule looks at whole rows: too early for H'H."""
    same = 1 + 0.1 * np.random.default_rng(0).standard_normal((20, 2))
    scales = np.repeat([1.0, 3.0], 10)
    H = [scale * same for scale in scales]
    Y = [np.full((20, 1), 1e9 * (-1) ** k / scale) for k, scale in enumerate(scales)]
    averaging = Averaging("plain", 1e-3, stopping="messages")
    network = SimulatedNetwork(graphs.ring(20))
    sums, errors = gram.sum_equations(network, LeastSquares.of_rows(H, Y), averaging)
    G = np.vstack(H).T @ np.vstack(H)
    changes = np.array([np.linalg.norm(equations.gram()[0] - G) for equations in sums])
    assert (changes <= errors).all()
    assert changes.max() > sum_error(network, averaging) * np.trace(G)


def test_auto_falls_back_to_gram_where_conjugate_gradients_cannot_certify():
    problems, _, _ = breast_cancer(1.0)
    report = Auto(1e-6).solve(SimulatedNetwork(graphs.ring(8)), problems, Ridge(1.0)).report
    assert report.converged
    assert report.solver == "Gram"


@pytest.mark.parametrize("method", ["plain", "chebyshev", "tree"])
def test_the_error_of_an_inexact_sum_is_bounded(method):
    network = SimulatedNetwork(graphs.ring(10))
    own = np.random.default_rng(0).standard_normal((10, 6)) + np.arange(10)[:, None]
    averaging = Averaging(method, 1e-4)
    sums, errors, _ = sum_with_errors(network, own, np.zeros(10), averaging, sum_everywhere)
    off = np.linalg.norm(sums - own.sum(axis=0), axis=1)
    assert (off <= errors).all()
    assert errors.max() <= 0.1 * np.linalg.norm(own.sum(axis=0))


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 30.0])
def test_the_objective_of_a_lasso_is_bounded_by_its_duality_gap(alpha):
    """Coefficients have no bound: there may be many answers. The objective has one."""
    problems, H, Y = ragged_problem(5, 20, 2)
    network = SimulatedNetwork(graphs.ring(5))
    found = Gram().solve(network, problems, Lasso(alpha))
    assert found.report.bound == math.inf
    assert "its objective is within" in found.report.bound_reason
    equations = NormalEquations.of_rows(np.hstack([H, Y]), (20, 2))

    def objective(b):
        return np.sum((H @ b - Y) ** 2) / 2 + alpha * np.abs(b).sum()

    best = found.coefficients[0]
    assert equations.lasso_gap(best, alpha) <= 1e-8
    rng = np.random.default_rng(0)
    for size in (1e-6, 1e-3, 1e-1):
        b = best + size * rng.standard_normal(best.shape)
        above = objective(b) / objective(best) - 1
        assert above <= equations.lasso_gap(b, alpha)
    one = LeastSquares.of_rows([H], [Y])
    alone = Local().solve(SimulatedNetwork(graphs.complete(1)), one, Lasso(alpha))
    assert "its objective is within" in alone.report.bound_reason
    by_gossip = Gram(averaging="chebyshev").solve(network, problems, Lasso(alpha))
    assert by_gossip.report.bound_reason == "a lasso problem may have many answers"
