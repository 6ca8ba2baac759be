"""Every solver over columns against the centralised answer, on several graphs; new ones
are found.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from peerlearn import Averaging, Faults, SimulatedNetwork, data, graphs, partition
from peerlearn.algorithms.columns import (
    AutoColumns,
    ColumnEnsemble,
    DualConjugateGradient,
    LocalColumns,
    SharingADMM,
    SketchedConjugateGradient,
    column_solver_of,
    column_solvers,
)
from peerlearn.algorithms.columns.sketches import MIXED
from peerlearn.arrays import one_blas_thread
from peerlearn.errors import DataError, InputError, NetworkError, NotConverged
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps
from tests.support.readout_problems import closed_form
from tests.support.split_network import run_apart

EXACT = {name: solver for name, solver in column_solvers().items() if solver.exact}
VARIANTS = [
    *((name, {"averaging": method}) for name in EXACT for method in ("tree", "chebyshev", "plain")),
    *(("sketched", {"sketch": "inputs", "averaging": method}) for method in ("tree", "chebyshev")),
]


class Problem:
    """Agents with 1 to 4 columns and some hidden units each; the rows of all of them in
    one place.
    """

    def __init__(self, agents, rows=120, outputs=1, hidden=None, seed=0):
        rng = np.random.default_rng(seed)
        inputs = rng.integers(2, 5, agents)
        inputs[0] = 1
        hidden = rng.integers(3, 12, agents) if hidden is None else np.broadcast_to(hidden, agents)
        common = rng.standard_normal((rows, 3))
        self.X = [
            common @ rng.standard_normal((3, d)) * 0.5 + rng.standard_normal((rows, d))
            for d in inputs
        ]
        self.Y = np.sin(np.hstack(self.X) @ rng.standard_normal((inputs.sum(), outputs)))
        self.Y += 0.1 * rng.standard_normal(self.Y.shape)
        self.maps = FeatureMaps(tuple(hidden.tolist()), seed)
        self.H = np.hstack([self.maps.draw(k, x.shape[1])(x) for k, x in enumerate(self.X)])

    def blocks(self, hosted=None):
        hosted = range(len(self.X)) if hosted is None else hosted
        return ColumnBlocks.of_inputs(self.maps, hosted, [self.X[k] for k in hosted])

    def solve(self, solver, graph, alpha=1.0, **options):
        return solver.solve_columns(
            SimulatedNetwork(graph, **options), self.blocks(), self.Y, alpha
        )

    def distance(self, coefficients, alpha=1.0):
        answer = closed_form(self.H, self.Y, alpha)
        return np.linalg.norm(np.vstack(coefficients) - answer) / np.linalg.norm(answer)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rows", [20, 300])  # fewer and more than features: 20 agents have some 140
@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_exact_solvers_reach_the_centralised_block_ridge(graph, name, options, rows, outputs):
    problem = Problem(len(graph), rows, outputs)
    solution = problem.solve(EXACT[name](tolerance=1e-6, **options), graph)
    assert solution.report.converged
    assert len({len(b) for b in solution.coefficients}) > 1  # widths differ
    assert problem.distance(solution.coefficients) <= 1e-6


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("hidden", [2, 40])  # per agent, where there are 30 rows
@pytest.mark.parametrize("name", EXACT)
def test_wide_and_tall_blocks_whatever_the_penalty(name, hidden, alpha):
    problem = Problem(5, 30, 2, hidden)
    tolerance = 1e-6 if name != "sharing" or alpha > 0.1 else 1e-2
    solution = problem.solve(EXACT[name](tolerance=tolerance), graphs.ring(5), alpha)
    assert problem.distance(solution.coefficients, alpha) <= tolerance


def test_solvers_are_found_by_their_names():
    ours = {
        "auto": AutoColumns,
        "dual": DualConjugateGradient,
        "ensemble": ColumnEnsemble,
        "local": LocalColumns,
        "sharing": SharingADMM,
        "sketched": SketchedConjugateGradient,
    }
    assert column_solvers() == ours
    assert (
        column_solver_of("DualConjugateGradient")
        == column_solver_of("dual")
        == DualConjugateGradient()
    )


@pytest.fixture(scope="module")
def g50c():
    """As in the thesis, section 6.2: 8 agents, 500 / 8 hidden units each, alpha 8."""
    loaded = data.load("g50c")
    X = partition.columns(loaded.X, 8, seed=0)
    return ColumnBlocks.of_inputs(FeatureMaps((63,) * 8, 0), range(8), X), loaded.y[:, None].astype(
        float
    )


def test_dual_conjugate_gradients_on_g50c_take_at_most_30_totals(g50c):
    blocks, Y = g50c
    network = SimulatedNetwork(graphs.erdos_renyi(8, 0.6, seed=0))
    solution = DualConjugateGradient(1e-4).solve_columns(network, blocks, Y, 8.0)
    H = np.hstack([blocks.block(k) for k in range(8)])
    answer = closed_form(H, Y, 8.0)
    assert np.linalg.norm(np.vstack(solution.coefficients) - answer) <= 1e-4 * np.linalg.norm(
        answer
    )
    totals = solution.report.iterations
    assert totals <= 30
    assert network.ledger.bytes == totals * 2 * 7 * 8 * (
        len(Y) + 3
    )  # up and down 7 links, and three numbers ride
    sharing = SharingADMM(1e-4).solve_columns(SimulatedNetwork(network.graph), blocks, Y, 8.0)
    assert (
        5 * totals < sharing.report.iterations < 600
    )  # 596 with the thesis's rho = 0.1 and no relaxation


def test_the_penalty_chosen_by_rule_is_nearly_the_best(g50c):
    blocks, Y = g50c
    network = SimulatedNetwork(graphs.complete(8))
    by_rule = SharingADMM(1e-3).solve_columns(network, blocks, Y, 8.0).report
    rho = float(by_rule.note.split()[2].strip(","))
    for factor in (0.3, 0.6, 1.6, 3.0):
        other = SharingADMM(1e-3, rho=factor * rho).solve_columns(network, blocks, Y, 8.0).report
        assert by_rule.iterations <= 1.2 * other.iterations


def test_sharing_sends_one_average_per_iteration():
    problem = Problem(6, 80, 2)
    network = SimulatedNetwork(graphs.ring(6))
    report = (
        SharingADMM(1e-5, vote_every=7)
        .solve_columns(network, problem.blocks(), problem.Y, 1.0)
        .report
    )
    floods, votes = network.diameter * 12 * 8, len(report.residuals) * 2 * 10 * 8
    certificate = 10 * (80 * 2 + 2) * 8 + 10 * 2 * 8
    sums = report.iterations * 10 * 80 * 2 * 8
    assert report.sent.bytes == sums + floods + votes + certificate


def test_sketched_sends_rows_and_features_in_every_iteration():
    problem = Problem(6, 400, 2)
    network, B = SimulatedNetwork(graphs.ring(6)), problem.H.shape[1]
    report = (
        SketchedConjugateGradient(1e-6)
        .solve_columns(network, problem.blocks(), problem.Y, 1.0)
        .report
    )
    buckets = min(2 * B, 400 // MIXED)
    assert report.note.startswith(f"{buckets} sums of {400 // buckets} rows' features")
    floods = network.diameter * 12 * 2 * 6 * 8
    numbers = buckets * B + 2 * B + 1 + report.iterations * (400 * 2 + 2 * B + 1)
    assert report.sent.bytes == floods + 10 * 8 * numbers


def test_the_printed_update_solves_another_problem():
    """Errata 6.1: without rho before the bracket the coefficients are those of another penalty,
    eleven times ours.
    """
    problem = Problem(8, 60, 1, 10)
    blocks, Y, alpha, L, rho = problem.blocks(), problem.Y, 0.5, 8, 0.1
    nearest = blocks.ridge_map(alpha / rho)
    z = t = m = np.zeros_like(Y)
    Hb = np.zeros((8, *Y.shape))
    for _ in range(4000):
        b = nearest(Hb + z - m - t)
        Hb = blocks.outputs(b)
        m = Hb.mean(axis=0)
        z = (Y + m + t) / (L + rho)
        t = t + m - z
    printed, c = np.vstack(blocks.separate(b)), (L + rho - 1) / L
    elsewhere = closed_form(problem.H, Y, alpha / (rho * c)) / c
    np.testing.assert_allclose(printed, elsewhere, atol=1e-6)
    assert problem.distance([printed], alpha) > 0.1
    assert alpha / (rho * c) == pytest.approx(11.27 * alpha, rel=1e-3)
    ours = problem.solve(SharingADMM(1e-6, rho=rho), graphs.complete(8), alpha)
    assert problem.distance(ours.coefficients, alpha) <= 1e-6


@pytest.mark.parametrize("method", ["tree", "chebyshev"])
@pytest.mark.parametrize("name", column_solvers())
def test_agents_apart_compute_the_same_bits(name, method):
    """Widths are such that one process alone would stack the blocks otherwise."""
    problem, graph = Problem(6, 50, 2), graphs.erdos_renyi(6, 0.4, seed=2)
    make = column_solvers()[name]
    solver = make(averaging=method) if hasattr(make, "averaging") else make()
    with one_blas_thread():
        together = problem.solve(solver, graph, exact_order=True)
        apart = run_apart(
            graph,
            lambda network, k: solver.solve_columns(network, problem.blocks([k]), problem.Y, 1.0),
            exact_order=True,
        )
    for own, alone in zip(together.coefficients, apart, strict=True):
        np.testing.assert_array_equal(own, alone.coefficients[0])
        assert alone.report.residuals == together.report.residuals


def test_the_baselines_talk_to_nobody():
    problem = Problem(5, 60, 2)
    for solver in (LocalColumns(), ColumnEnsemble()):
        network = SimulatedNetwork(graphs.ring(5))
        solution = solver.solve_columns(network, problem.blocks(), problem.Y, 2.0)
        assert network.ledger.rounds == 0
        for k, b in enumerate(solution.coefficients):
            H = problem.blocks().block(k)
            np.testing.assert_allclose(b, closed_form(H, problem.Y, 2.0), atol=1e-10)


def test_auto_chooses_what_sends_less_and_says_so():
    """By rows, features, outputs and penalty: the choice is checked against what the others really
    send.
    """
    chosen = set()
    for rows, hidden, outputs, alpha in (
        (60, 20, 1, 10.0),
        (1500, 4, 1, 1e-3),
        (1500, 40, 1, 1e-2),
        (400, 5, 5, 1.0),
    ):
        problem = Problem(6, rows, outputs, hidden)
        sent = {}
        for kind in (
            DualConjugateGradient(1e-4),
            SketchedConjugateGradient(1e-4),
            SketchedConjugateGradient(1e-4, sketch="inputs"),
        ):
            sent[kind] = problem.solve(kind, graphs.ring(6), alpha).report.sent.bytes
        report = problem.solve(AutoColumns(1e-4), graphs.ring(6), alpha).report
        assert report.sent.bytes <= 2 * min(sent.values()), (rows, hidden, outputs, alpha)
        assert "chosen because these should send: DualConjugateGradient" in report.note
        chosen.add(report.solver)
    assert chosen == {"DualConjugateGradient", "SketchedConjugateGradient"}


def test_one_agent_is_the_centralised_case():
    problem = Problem(1, 60, 2, 20)
    for name, make in column_solvers().items():
        solution = problem.solve(make(), graphs.complete(1))
        assert solution.report.sent.bytes == 0, name
        assert problem.distance(solution.coefficients) <= 1e-4, name
    assert (
        "one agent has all columns" in problem.solve(AutoColumns(), graphs.complete(1)).report.note
    )


def test_an_agent_without_columns_adds_nothing():
    problem = Problem(4, 60, 2)
    answer = np.hstack([problem.H])
    problem.X.append(np.zeros((60, 0)))
    problem.maps = FeatureMaps((*problem.maps.hidden, 9), problem.maps.seed)
    for name, make in column_solvers().items():
        solution = problem.solve(make(), graphs.ring(5))
        assert solution.coefficients[-1].shape == (0, 2), name
        if make.exact:
            b = np.vstack(solution.coefficients)
            assert np.linalg.norm(b - closed_form(answer, problem.Y, 1.0)) <= 1e-4 * np.linalg.norm(
                b
            ), name


def test_targets_of_zero_are_solved_by_zero():
    problem = Problem(4, 40, 2)
    problem.Y *= 0.0
    for name, make in EXACT.items():
        solution = problem.solve(make(), graphs.ring(4))
        assert solution.report.converged, name
        assert not np.vstack(solution.coefficients).any(), name


def test_solvers_survive_lost_messages():
    problem = Problem(8, 50, 1)
    for solver, within in (
        (DualConjugateGradient(1e-5), 1e-4),
        (SketchedConjugateGradient(1e-5), 1e-4),
        (SharingADMM(1e-3), 1e-2),
    ):
        solution = problem.solve(solver, graphs.erdos_renyi(8, 0.6), faults=Faults(0.1, seed=0))
        assert problem.distance(solution.coefficients) <= within, solver


@pytest.mark.parametrize("averaging", ["tree", "chebyshev"])
@pytest.mark.parametrize(
    ("make", "way_out"),
    [
        (DualConjugateGradient, "use solver='sketched'"),
        (SketchedConjugateGradient, "use solver='dual'"),
        (SharingADMM, "use solver='dual'"),
    ],
)
def test_not_converging_warns_with_the_distance_and_what_to_change(make, way_out, averaging):
    problem = Problem(6, 50, 1)
    with pytest.warns(
        NotConverged,
        match=(
            rf"{make.__name__} stopped after 3 iterations at .* where 1e-09 was asked for: "
            rf"raise .*, or {way_out}"
        ),
    ):
        report = problem.solve(
            make(1e-9, max_iterations=3, averaging=averaging), graphs.ring(6)
        ).report
    assert not report.converged


def test_what_the_bound_says_is_never_too_little():
    """Cut short anywhere, solvers are at most as far from the answer as they say; by gossip too."""
    problem = Problem(6, 50, 2)
    for make in (DualConjugateGradient, SketchedConjugateGradient, SharingADMM):
        for averaging in ("tree", "chebyshev"):
            for tolerance in (1e-1, 1e-3, 1e-5):
                solution = problem.solve(
                    make(tolerance, averaging=averaging), graphs.linear(6), 0.3
                )
                away = problem.distance(solution.coefficients, 0.3)
                assert away <= 1.1 * solution.report.residuals[-1] <= 1.1 * tolerance


def test_cut_off_and_loose_averages_are_not_called_converged():
    problem = Problem(8, 50, 1)
    few = Averaging("chebyshev", 1e-6, max_rounds=2)
    for make in (DualConjugateGradient, SketchedConjugateGradient, SharingADMM):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            assert not problem.solve(
                make(averaging=few, max_iterations=300), graphs.linear(8)
            ).report.converged
    loose = SharingADMM(1e-6, 300, averaging=Averaging("chebyshev", 1e-4))
    with pytest.warns(NotConverged, match="SharingADMM stopped"):
        assert not problem.solve(loose, graphs.linear(8)).report.converged


def test_nothing_that_is_not_a_number_is_called_converged():
    problem = Problem(5, 40, 1)
    problem.Y[3] = np.nan
    for make in (DualConjugateGradient, SketchedConjugateGradient, SharingADMM):
        with pytest.raises(NetworkError, match=r"agent \d computed numbers that are not finite"):
            problem.solve(make(), graphs.ring(5))


def test_a_sketch_of_inputs_needs_their_features_seeds():
    problem = Problem(4, 60, 1)
    bare = ColumnBlocks.of_features([problem.blocks().block(k) for k in range(4)])
    network = SimulatedNetwork(graphs.ring(4))
    with pytest.raises(
        InputError, match=r"needs the inputs and the seeds .* use sketch='features'"
    ):
        SketchedConjugateGradient(sketch="inputs").solve_columns(network, bare, problem.Y, 1.0)
    for solver in (SketchedConjugateGradient(), AutoColumns()):
        assert (
            problem.distance(solver.solve_columns(network, bare, problem.Y, 1.0).coefficients)
            <= 1e-6
        )


def test_no_sum_of_a_sketch_shows_a_row():
    """Buckets are of equal size and never smaller than said, whatever is asked for."""
    for rows in (5, 17, 100, 1000):
        problem = Problem(3, rows, 1, 30)
        note = problem.solve(SketchedConjugateGradient(1e-3), graphs.ring(3)).report.note
        assert int(note.split()[3]) >= min(MIXED, rows)


def test_no_penalty():
    problem = Problem(4, 60, 1, 5)
    for name in EXACT:
        with pytest.raises(
            InputError,
            match=r"cannot tell whether the columns .* when alpha is 0: set alpha above 0",
        ):
            problem.solve(EXACT[name](), graphs.ring(4), 0.0)
    local = problem.solve(LocalColumns(), graphs.ring(4), 0.0)
    H = problem.blocks().block(1)
    np.testing.assert_allclose(
        local.coefficients[1], np.linalg.lstsq(H, problem.Y, rcond=None)[0], atol=1e-6
    )
    with pytest.raises(
        DataError,
        match="the 4 rows do not determine the coefficients of an agent with more features",
    ):
        Problem(4, 4, 1, 5).solve(LocalColumns(), graphs.ring(4), 0.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: SharingADMM(tolerance=0),
            "tolerance of SharingADMM must be a number of 1e-12 or more, not 0",
        ),
        (lambda: SharingADMM(rho=-1.0), "rho must be a finite number above 0"),
        (lambda: SharingADMM(relaxation=2.5), "relaxation must lie between 0 and 2"),
        (lambda: SharingADMM(vote_every=0), "must be 1 or more"),
        (
            lambda: DualConjugateGradient(max_iterations=0),
            "max_iterations must be 1 or more, not 0",
        ),
        (lambda: DualConjugateGradient(averaging="magic"), "method 'magic' is not known"),
        (
            lambda: SketchedConjugateGradient(max_iterations=0),
            "max_iterations must be 1 or more, not 0",
        ),
        (
            lambda: SketchedConjugateGradient(sketch="x"),
            "sketch 'x' is not known: choose one of features, inputs",
        ),
        (lambda: AutoColumns(tolerance=1e-16), "double precision reaches no further"),
        (lambda: column_solver_of("dul"), "solver 'dul' is not known, did you mean 'dual'"),
        (lambda: column_solver_of("gram"), "solver 'gram' is not known"),
        (lambda: column_solver_of(3), "or an object with a solve_columns method, not int"),
    ],
)
def test_bad_settings_get_their_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_auto_goes_over_to_dual_where_a_sketch_cannot_certify():
    """Targets that columns fit: the residual is small, and that of the dual bounds the distance."""
    H = 100 * np.random.default_rng(0).standard_normal((400, 12))
    Y = H @ np.ones((12, 1))
    network = SimulatedNetwork(graphs.ring(4))
    blocks = ColumnBlocks.of_features(np.array_split(H, 4, axis=1))
    solver = SketchedConjugateGradient()
    with pytest.warns(NotConverged):
        report = solver.solve_columns(network, blocks, Y, 1e-6).report
    assert report.bound > 1e-6
    found = AutoColumns().solve_columns(network, blocks, Y, 1e-6)
    assert found.report.solver == "DualConjugateGradient"
    assert found.report.converged
    assert "but its bound was" in found.report.note
    np.testing.assert_allclose(np.vstack(found.coefficients), 1.0, rtol=1e-6)
