"""Our solvers of the linear readout on hard problems, against the centralised answer; see also
test_checks.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Lasso as SklearnLasso

from peerlearn import (
    ADMM,
    Averaging,
    ConjugateGradient,
    Consensus,
    Faults,
    Gram,
    Local,
    SimulatedNetwork,
    graphs,
)
from peerlearn.algorithms.readout.auto import Auto, solver_of, solvers
from peerlearn.errors import DataError, InputError, NetworkError, NotConverged
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge
from tests.support.readout_problems import closed_form, distance, ragged_problem

OURS = {
    "admm": ADMM,
    "auto": Auto,
    "cg": ConjugateGradient,
    "consensus": Consensus,
    "gram": Gram,
    "local": Local,
}
EXACT = {name: solver for name, solver in OURS.items() if solver.exact}
VARIANTS = [
    *((name, {}) for name in EXACT),
    ("admm", {"averaging": "chebyshev"}),
    ("gram", {"averaging": "chebyshev"}),
    *(
        ("cg", {"preconditioner": kind, "averaging": method})
        for kind in ("synthetic", "local", "none")
        for method in ("tree", "chebyshev")
    ),
    ("cg", {"averaging": "plain"}),
]


def solve(solver, graph, problems, alpha, **network_options):
    return solver.solve(SimulatedNetwork(graph, **network_options), problems, Ridge(alpha))


@pytest.mark.parametrize(("hidden", "outputs"), [(20, 1), (20, 10), (200, 1)])
@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_exact_solvers_reach_the_closed_form(graph, name, options, hidden, outputs):
    problems, H, Y = ragged_problem(len(graph), hidden, outputs)
    solution = solve(EXACT[name](tolerance=1e-6, **options), graph, problems, alpha=1.0)
    assert solution.report.converged
    assert distance(solution.coefficients, closed_form(H, Y, 1.0)) <= 1e-6


@pytest.mark.parametrize("alpha", [1e-3, 1e-1, 10.0, 1e3])
@pytest.mark.parametrize("name", [name for name in EXACT if name != "admm"])
def test_exact_solvers_whatever_the_penalty(name, alpha):
    graph = graphs.erdos_renyi(20, 0.2)
    problems, H, Y = ragged_problem(len(graph), 100, 2, seed=3)
    solution = solve(EXACT[name](tolerance=1e-6), graph, problems, alpha)
    assert distance(solution.coefficients, closed_form(H, Y, alpha)) <= 1e-6


def test_solvers_are_found_by_their_names():
    assert OURS.items() <= solvers().items()


@pytest.mark.parametrize("hidden", [20, 200])
def test_consensus_is_the_weighted_mean_of_local_solutions(graph, hidden):
    problems, _, _ = ragged_problem(len(graph), hidden, 2)
    N = problems.rows.sum()
    local = problems.ridge(5.0 * problems.rows / N)
    expected = np.tensordot(problems.rows / N, local, axes=1)
    assert distance(solve(Consensus(), graph, problems, 5.0).coefficients, expected) <= 1e-10
    thesis = problems.ridge(np.full(problems.agents, 5.0)).mean(axis=0)
    assert (
        distance(solve(Consensus(variant="thesis"), graph, problems, 5.0).coefficients, thesis)
        <= 1e-10
    )


def test_weighting_by_rows_is_nearer_to_the_centralised_answer_than_the_thesis(graph):
    problems, H, Y = ragged_problem(len(graph), 50, 1)
    answer = closed_form(H, Y, 5.0)
    weighted, thesis = (
        distance(solve(Consensus(variant=v), graph, problems, 5.0).coefficients, answer)
        for v in ("weighted", "thesis")
    )
    assert weighted < thesis


def test_local_talks_to_nobody(graph):
    problems, _, _ = ragged_problem(len(graph), 30, 2)
    network = SimulatedNetwork(graph)
    solution = Local().solve(network, problems, Ridge(2.0))
    assert network.ledger.since().rounds == network.ledger.messages == 0
    np.testing.assert_allclose(solution.coefficients, problems.ridge(np.full(problems.agents, 2.0)))


def test_the_report_is_the_ledgers_share():
    problems, _, _ = ragged_problem(10, 30, 1)
    network = SimulatedNetwork(graphs.ring(10))
    network.mix(np.zeros((10, 1)))
    for name, make in OURS.items():
        mark = network.ledger.mark()
        report = make().solve(network, problems, Ridge(1.0)).report
        assert report.sent == network.ledger.since(mark), name
        assert "converged     yes" in str(report)
        assert report.residuals == () or report.residuals[-1] <= report.residuals[0]


def test_admm_averages_only_coefficients_and_the_thesis_variant_is_biased():
    """Errata 4.4: with inexact averages the printed algorithm solves another problem."""
    graph = graphs.ring(10)
    problems, H, Y = ragged_problem(10, 20, 1, largest=40)
    answer, five_rounds = closed_form(H, Y, 1.0), Averaging("plain", tolerance=1e-9, max_rounds=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        ours = solve(ADMM(1e-9, 3000, averaging=five_rounds), graph, problems, 1.0)
        thesis = solve(
            ADMM(1e-9, 3000, averaging=five_rounds, variant="thesis"), graph, problems, 1.0
        )
    assert distance(ours.coefficients, answer) < 1e-6
    assert distance(thesis.coefficients, answer) > 1e-2


def test_the_thesis_variant_is_right_where_averages_are_exact():
    problems, H, Y = ragged_problem(10, 20, 1, largest=40)
    solution = solve(
        ADMM(1e-6, rho=3.0, averaging="tree", variant="thesis"), graphs.ring(10), problems, 1.0
    )
    assert distance(solution.coefficients, closed_form(H, Y, 1.0)) <= 1e-6


@pytest.mark.parametrize("alpha", [2.0, 1e4])
def test_admm_with_a_lasso_penalty_is_scikit_learns_lasso(graph, alpha):
    problems, H, Y = ragged_problem(len(graph), 20, 2)
    network = SimulatedNetwork(graph)
    solution = ADMM(1e-7).solve(network, problems, Lasso(alpha))
    assert solution.report.converged
    rival = SklearnLasso(
        alpha=alpha / len(H), fit_intercept=False, tol=1e-12, max_iter=1_000_000
    ).fit(H, Y)
    np.testing.assert_allclose(solution.coefficients[0], rival.coef_.T, atol=1e-5)
    assert ((solution.coefficients[0] == 0) == (rival.coef_.T == 0)).all()
    assert (
        rival.coef_ == 0
    ).any()  # some zeros with the small penalty, nothing else with the large one
    assert (rival.coef_ == 0).all() == (alpha > 100)


def test_consensus_and_conjugate_gradients_take_no_lasso():
    problems, _, _ = ragged_problem(5, 10, 1)
    for solver in (Consensus(), ConjugateGradient()):
        with pytest.raises(
            InputError,
            match=r"solves ridge problems only: for a Lasso penalty use solver='gram' or",
        ):
            solver.solve(SimulatedNetwork(graphs.ring(5)), problems, Lasso(1.0))


def test_gram_sends_a_triangle_by_gossip_and_less_on_a_tree():
    problems, _, _ = ragged_problem(20, 200, 1, largest=10)
    graph = graphs.erdos_renyi(20, 0.2)
    gossip, tree = SimulatedNetwork(graph), SimulatedNetwork(graph)
    Gram(averaging="chebyshev").solve(gossip, problems, Ridge(1.0))
    Gram(averaging="tree").solve(tree, problems, Ridge(1.0))
    links, numbers = 2 * graph.number_of_edges(), 200 * 201 // 2 + 200
    # Before it a flood finds the accuracy needed; after it b is broadcast and gradients are summed.
    by_triangles = gossip.ledger.bytes / (links * numbers * 8)
    assert 0.3 * gossip.ledger.rounds <= by_triangles < gossip.ledger.rounds
    assert tree.ledger.rounds == 2 * tree.tree.height
    assert (
        tree.ledger.bytes < 19 * (numbers + 200) * 8 / 3
    )  # 19 triangles up and 19 answers down would be so much


def test_solvers_survive_lost_messages():
    graph, faults = graphs.erdos_renyi(10, 0.5), Faults(0.1, seed=0)
    problems, H, Y = ragged_problem(10, 20, 1)
    answer = closed_form(H, Y, 1.0)
    for solver, within in ((ConjugateGradient(1e-5), 1e-4), (ADMM(1e-4), 1e-3), (Gram(1e-4), 1e-3)):
        solution = solve(solver, graph, problems, 1.0, faults=faults)
        assert distance(solution.coefficients, answer) <= within, solver


def test_one_agent_is_the_centralised_case():
    problems, H, Y = ragged_problem(1, 30, 2)
    for name, make in OURS.items():
        solution = solve(make(), graphs.complete(1), problems, 1.0)
        assert solution.report.sent.bytes == 0, name
        if make.exact or make in (Local, Consensus):
            assert distance(solution.coefficients, closed_form(H, Y, 1.0)) <= 1e-4, name


def test_targets_of_zero_are_solved_by_zero():
    _problems, H, Y = ragged_problem(6, 15, 2)
    nothing = LeastSquares.of_rows([H[:10]] * 6, [0 * Y[:10]] * 6)
    for make in (ADMM, Gram, lambda: ConjugateGradient(preconditioner="local")):
        solution = solve(make(), graphs.ring(6), nothing, 1.0)
        assert solution.report.converged
        assert (solution.coefficients == 0).all()


def test_auto_chooses_what_sends_less_and_says_so():
    """By features, outputs, graph and way of summing: the choice is checked against what both
    really send.
    """
    chosen = set()
    for graph in (graphs.erdos_renyi(12, 0.4), graphs.linear(12)):
        for averaging in ("tree", "chebyshev"):
            for hidden, outputs, largest in ((10, 10, 200), (150, 1, 8), (400, 1, 200)):
                problems, _, _ = ragged_problem(12, hidden, outputs, largest=largest)
                sent = {
                    kind: solve(
                        kind(1e-6, averaging=averaging), graph, problems, 1.0
                    ).report.sent.bytes
                    for kind in (Gram, ConjugateGradient)
                }
                report = solve(Auto(1e-6, averaging=averaging), graph, problems, 1.0).report
                other = {"Gram": ConjugateGradient, "ConjugateGradient": Gram}[report.solver]
                assert report.sent.bytes <= 2 * sent[other], (graph, averaging, hidden)
                assert "chosen because Gram should send" in report.note
                chosen.add((report.solver, averaging))
    assert len(chosen) == 4


def test_not_converging_warns_with_the_residual_and_what_to_change():
    problems, _, _ = ragged_problem(10, 100, 1)
    with pytest.warns(
        NotConverged,
        match=r"ADMM stopped after 20 iterations at a distance .* where 1e-09 was asked for: raise",
    ):
        report = solve(ADMM(1e-9, max_iterations=20), graphs.ring(10), problems, 1.0).report
    assert not report.converged
    assert "converged     NO" in str(report)
    with pytest.warns(
        NotConverged,
        match=r"ConjugateGradient stopped after 3 iterations .* choose preconditioner='local'",
    ):
        assert not solve(
            ConjugateGradient(1e-9, max_iterations=3), graphs.ring(10), problems, 1.0
        ).report.converged


def test_synthetic_needs_inputs():
    _, H, Y = ragged_problem(4, 10, 1)
    bare = LeastSquares.of_rows(
        [H[:20], H[20:40], H[40:60], H[60:]], [Y[:20], Y[20:40], Y[40:60], Y[60:]]
    )
    with pytest.raises(InputError, match="use preconditioner='local'"):
        solve(ConjugateGradient(preconditioner="synthetic"), graphs.ring(4), bare, 1.0)
    solution = solve(ConjugateGradient(), graphs.ring(4), bare, 1.0)
    assert "preconditioner local" in solution.report.note
    assert distance(solution.coefficients, closed_form(H, Y, 1.0)) <= 1e-6


@pytest.mark.parametrize(
    "solver", [ADMM(), ConjugateGradient(), ConjugateGradient(preconditioner="local")]
)
def test_alpha_of_zero_is_left_to_gram(solver):
    problems, H, Y = ragged_problem(4, 5, 1)
    with pytest.raises(
        InputError, match=r"cannot tell whether the data determine .* use solver='gram', which can"
    ):
        solve(solver, graphs.ring(4), problems, 0.0)
    for can in (Gram(), Auto(), Gram(averaging="chebyshev")):
        assert (
            distance(solve(can, graphs.ring(4), problems, 0.0).coefficients, closed_form(H, Y, 0.0))
            <= 1e-6
        )


def test_alpha_of_zero_needs_enough_rows_where_agents_solve_alone():
    few, _, _ = ragged_problem(4, 5, 1)
    with pytest.raises(
        DataError, match="the 1 rows of agent 0 do not determine 5 coefficients when alpha is 0"
    ):
        solve(Local(), graphs.ring(4), few, 0.0)
    with pytest.raises(DataError, match="some agents have fewer rows than the 5 coefficients"):
        solve(Consensus(), graphs.ring(4), few, 0.0)
    _, H, Y = ragged_problem(1, 5, 1, largest=80)
    enough = LeastSquares.of_rows([H[:40], H[40:]], [Y[:40], Y[40:]])
    for solver in (Local(), Consensus()):
        b = solve(solver, graphs.ring(2), enough, 0.0).coefficients
        own = [closed_form(H[:40], Y[:40], 0.0), closed_form(H[40:], Y[40:], 0.0)]
        np.testing.assert_allclose(
            b, own if isinstance(solver, Local) else [np.mean(own, axis=0)] * 2, rtol=1e-6
        )


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("alpha", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("averaging", ["tree", "chebyshev"])
def test_conjugate_gradients_do_not_believe_a_bad_preconditioner(activation, alpha, averaging):
    """Inputs far from Gaussian: the synthetic matrix is then nothing like the true one."""
    rng = np.random.default_rng(0)
    features = RandomFeatures.draw(6, 60, seed=0, activation=activation)
    X = [rng.choice([-1.0, 1.0], (30, 6)) for _ in range(10)]
    Y = [
        np.column_stack([np.sin(x.sum(axis=1)), x[:, 0] * x[:, 1]])
        + 0.1 * rng.standard_normal((30, 2))
        for x in X
    ]
    answer = closed_form(features(np.vstack(X)), np.vstack(Y), alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        solver = ConjugateGradient(1e-6, averaging=averaging)
        solution = solve(solver, graphs.ring(10), LeastSquares.of_inputs(features, X, Y), alpha)
    away = distance(solution.coefficients, answer)
    assert away <= 1e-6 or (away <= 1e-2 and not solution.report.converged)
    assert solution.report.converged or alpha == 1e-5


def test_cut_off_averages_are_not_called_converged():
    problems, _, _ = ragged_problem(10, 20, 1)
    few = Averaging("chebyshev", 1e-6, max_rounds=3)
    for solver in (
        Consensus(few),
        Gram(averaging=few),
        ConjugateGradient(averaging=few),
        ADMM(averaging=few),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            report = solve(solver, graphs.ring(10), problems, 1.0).report
        assert not report.converged, solver
    with pytest.warns(
        NotConverged, match=r"Gram stopped after 1 iterations .* give the averaging a tolerance of"
    ):
        loose = solve(Gram(1e-6, Averaging("chebyshev", 1e-3)), graphs.ring(10), problems, 1.0)
    assert not loose.report.converged
    with pytest.warns(NotConverged, match="ADMM stopped"):
        printed = solve(ADMM(1e-4, 300, variant="thesis"), graphs.ring(10), problems, 1.0)
    assert not printed.report.converged


def test_nothing_that_is_not_a_number_is_called_converged():
    _, H, Y = ragged_problem(6, 15, 1)
    bad = np.where(np.arange(10) == 3, np.nan, 0.0)[:, None]
    broken = LeastSquares.of_rows([H[:10]] * 6, [*[Y[:10]] * 4, Y[:10] + bad, Y[:10]])
    for averaging in ("tree", "chebyshev"):
        for solver in (
            ADMM(averaging=averaging),
            ConjugateGradient(preconditioner="local", averaging=averaging),
        ):
            with pytest.raises(NetworkError, match="agent 4 computed numbers that are not finite"):
                solve(solver, graphs.ring(6), broken, 1.0)
    alone = LeastSquares.of_rows(
        [H[:10]], [Y[:10] + bad]
    )  # who has nobody to tell is only not converged
    for solver in (ADMM(), ConjugateGradient(preconditioner="local")):
        with pytest.warns(
            NotConverged,
            match=rf"{type(solver).__name__} stopped after \d+ iterations at a distance",
        ):
            assert not solve(solver, graphs.complete(1), alone, 1.0).report.converged


def test_solvers_answer_to_their_names():
    for name in (
        "admm",
        "ADMM",
        "ConjugateGradient",
        "conjugate_gradient",
        "conjugate-gradient",
        "cg",
        "Gram",
    ):
        assert hasattr(solver_of(name), "solve")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ADMM(tolerance=0), "tolerance of ADMM must be a number of 1e-12 or more, not 0"),
        (lambda: ADMM(rho=-1.0), "rho must be a finite number above 0"),
        (lambda: ADMM(relaxation=2.5), "relaxation must lie between 0 and 2"),
        (lambda: ADMM(max_iterations=0), "must be 1 or more"),
        (lambda: ADMM(variant="x"), "variant 'x' is not known: ADMM has"),
        (lambda: Consensus(variant="x"), "variant 'x' is not known: Consensus has"),
        (lambda: Gram(tolerance=-1), "tolerance of Gram must be"),
        (lambda: Gram(averaging="magic"), "method 'magic' is not known"),
        (lambda: Auto(tolerance=1e-16), "double precision reaches no further"),
        (
            lambda: ConjugateGradient(tolerance="1e-6"),
            "tolerance of ConjugateGradient must be a number",
        ),
        (lambda: ConjugateGradient(max_iterations=0), "max_iterations must be 1 or more"),
        (
            lambda: ConjugateGradient(preconditioner="x"),
            "choose one of auto, synthetic, local, none",
        ),
        (
            lambda: Ridge(-1.0),
            "alpha, the weight of the penalty, must be a finite number of 0 or more, not -1.0",
        ),
        (lambda: Lasso(float("nan")), "alpha, the weight of the penalty"),
        (lambda: solver_of("adm"), "solver 'adm' is not known, did you mean 'admm'"),
        (
            lambda: solver_of(3),
            "solver must be one of admm, auto, .* or an object with a solve method, not int",
        ),
        (lambda: solver_of(ADMM), r"solver is the class ADMM: give an object, ADMM\(\)"),
    ],
)
def test_bad_settings_get_their_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
