"""Runs over sequences against the same runs by hand, against the centralised readout, and against
ADMM's formulas.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from peerlearn import ADMM, ESNRegressor, SimulatedNetwork, data, graphs, partition
from peerlearn.errors import InputError, NotConverged
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net, protocol_named
from peerlearn.lab.description.search import Search
from peerlearn.lab.protocols.sequences import fold_of
from peerlearn.lab.training.primal_residuals import WatchedADMM, watch_solver
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge

OPTIONS = {"sequences": 9, "length": 120, "variant": "product"}
ESN = {"n_reservoir": 25, "washout": 30, "noise": 1e-3, "alpha": 1e-2, "teacher_scaling": 0.5}
SOLVER = {
    "name": "admm",
    "rho": 0.5,
    "max_iterations": 12,
    "relaxation": 1.0,
    "averaging": "tree",
    "vote_every": 5,
}
MODELS = (
    Model("C", "ESNRegressor", "centralised"),
    Model("L", "ESNRegressor", "alone"),
    Model("gram", "ESNRegressor", settings={"solver": "gram"}),
    Model("admm", "ESNRegressor", settings={"solver": SOLVER}),
)
ASKED = ("nrmse", "rmse", "distance", "disagreement", "seconds_per_agent")


def comparison(settings=ESN, models=MODELS, **more):
    entry = Data("N10", "narma10", OPTIONS, settings=settings)
    network = Net("random", "erdos_renyi", 3, {"p": 0.5})
    given = {
        "protocol": protocol_named("sequences"),
        "folds": 3,
        "repetitions": 2,
        "seed": 7,
        "metrics": ASKED,
    }
    return Comparison((entry,), models, (network,), **(given | more))


def trial_of(model, repetition=0, fold=1, **more):
    trials = comparison(**more).trials()
    return next(
        t for t in trials if (t.model.name, t.repetition, t.fold) == (model, repetition, fold)
    )


def run(model, **more):
    with pytest.warns(NotConverged) if model == "admm" else nullcontext():
        return (trial := trial_of(model, **more)).comparison.protocol.run(trial)


def sequences(trial):
    """Training and test sequences, from the generator and scikit-learn's folds."""
    x, y = data.narma10(**OPTIONS, seed=trial.seed("data"))
    folds = KFold(3, shuffle=True, random_state=trial.seed("split")).split(x)
    train, test = list(folds)[trial.fold]
    return [([x[j] for j in rows], [y[j] for j in rows]) for rows in (train, test)]


def by_hand(trial, settings=ESN, **more):
    train, test = sequences(trial)
    network = None
    if trial.network is not None:
        network = SimulatedNetwork(graphs.erdos_renyi(3, 0.5, seed=trial.seed("graph")))
        dealt = partition.even_rows(len(train[0]), 3, np.random.default_rng(trial.seed("deal")))
        train = [
            ([train[0][j] for j in sorted(own)], [train[1][j] for j in sorted(own)])
            for own in dealt
        ]
    model = ESNRegressor(**settings, **more, network=network, random_state=trial.seed("model"))
    return (model.fit(*train) if network is None else model.fit(train)), test


@pytest.mark.parametrize("feedback", [0.0, 0.3])
def test_in_one_place_it_is_the_run_by_hand(feedback):
    settings = {**ESN, "feedback_scaling": feedback}
    outcome = run("C", settings=settings)
    model, test = by_hand(trial_of("C"), settings)
    assert outcome.values["nrmse"] == pytest.approx(model.nrmse(*test), rel=1e-12)
    spread = np.std(np.concatenate([d[30:] for d in test[1]]))
    assert outcome.values["rmse"] == pytest.approx(model.nrmse(*test) * spread, rel=1e-10)
    assert (outcome.sent.messages, outcome.converged) == (0, True)
    assert not {"distance", "disagreement"} & set(outcome.values)


@pytest.mark.parametrize("feedback", [0.0, 0.3])
@pytest.mark.parametrize(("name", "solver"), [("L", "local"), ("gram", "gram")])
def test_over_a_network_it_is_the_run_by_hand(name, solver, feedback):
    settings = {**ESN, "feedback_scaling": feedback}
    outcome = run(name, settings=settings)
    model, test = by_hand(trial_of(name), settings, solver=solver)
    np.testing.assert_allclose(outcome.agents["nrmse"], model.agent_nrmse(*test), rtol=1e-12)
    assert outcome.values["nrmse"] == pytest.approx(model.agent_nrmse(*test).mean(), rel=1e-12)
    assert outcome.values["seconds_per_agent"] == pytest.approx(outcome.seconds / 3)
    assert (outcome.sent.bytes > 0) == (name == "gram")


def test_distances_are_to_the_readout_of_everybodys_states():
    settings = {**ESN, "noise": 0.0}  # so that states are those of the centralised network
    model, _ = by_hand(trial_of("C"), settings)
    (centre,) = model.coefficients_
    for name, solver in (
        ("L", "local"),
        ("admm", ADMM(**{k: v for k, v in SOLVER.items() if k != "name"})),
    ):
        with pytest.warns(NotConverged) if name == "admm" else nullcontext():
            b = by_hand(trial_of(name), settings, solver=solver)[0].coefficients_
        away = [np.linalg.norm(own - centre) / np.linalg.norm(centre) for own in b]
        outcome = run(name, settings=settings)
        np.testing.assert_allclose(outcome.agents["distance"], away, rtol=1e-6)
        assert outcome.values["distance"] == max(outcome.agents["distance"]) > 0.01
    assert run("gram", settings=settings).values["distance"] < 1e-9


def test_noise_is_in_the_states_that_distances_are_told_by():
    assert run("gram").values["distance"] < 1e-9
    assert run("gram", settings={**ESN, "noise": 0.05}).values["distance"] < 1e-9


def test_agents_agree_or_not():
    assert run("gram").values["disagreement"] < 1e-12
    b = by_hand(trial_of("L"), solver="local")[0].coefficients_
    expected = np.sqrt(np.mean(np.sum((b - b.mean(axis=0)) ** 2, axis=(1, 2)))) / np.linalg.norm(
        b.mean(axis=0)
    )
    assert run("L").values["disagreement"] == pytest.approx(expected, rel=1e-10)


def test_sparsity_is_the_share_of_zeros():
    settings = {**ESN, "penalty": "lasso"}
    outcome = run("L", settings=settings)
    b = by_hand(trial_of("L"), settings, solver="local")[0].coefficients_
    assert outcome.agents["sparsity"] == [np.count_nonzero(own == 0) / own.size for own in b]
    assert outcome.values["sparsity"] == pytest.approx(np.mean(outcome.agents["sparsity"]))
    assert 0.1 < outcome.values["sparsity"] < 1
    assert (
        run("L", settings={**ESN, "alpha": 1e6}).values["sparsity"] == 0
    )  # coefficients that are small, and not zero


def test_the_same_run_has_the_same_numbers_and_others_differ():
    first, again = run("C"), run("C")
    assert first.values["nrmse"] == again.values["nrmse"]
    assert (
        run("C", repetition=1).values["nrmse"]
        != first.values["nrmse"]
        != run("C", fold=2).values["nrmse"]
    )


def solved(H, Y, alpha, penalty, iterations, rho):
    """Consensus ADMM with exact averages: the primal residual after every iteration."""
    agents, B = len(H), H[0].shape[1]
    z, u, found = np.zeros((B, 1)), [np.zeros((B, 1))] * agents, []
    for _ in range(iterations):
        b = [
            np.linalg.solve(h.T @ h + rho * np.eye(B), h.T @ y + rho * (z - v))
            for h, y, v in zip(H, Y, u, strict=True)
        ]
        v = np.mean(b, axis=0) + np.mean(u, axis=0)
        if penalty == "lasso":
            z = np.sign(v) * np.maximum(np.abs(v) - alpha / (rho * agents), 0)
        else:
            z = rho * agents * v / (alpha + rho * agents)
        u = [own + each - z for own, each in zip(u, b, strict=True)]
        found.append(np.mean([np.linalg.norm(each - z) for each in b]))
    return found


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("variant", ["coefficients", "thesis"])
@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
def test_primal_residuals_are_those_of_the_iterations(penalty, variant):
    rng = np.random.default_rng(0)
    H, Y = (
        [rng.standard_normal((n, 6)) for n in (4, 9, 12)],
        [rng.standard_normal((n, 1)) for n in (4, 9, 12)],
    )
    solver = ADMM(
        1e-12, 8, rho=0.7, relaxation=1.0, averaging="tree", vote_every=8, variant=variant
    )
    network, problems = SimulatedNetwork(graphs.ring(3)), LeastSquares.of_rows(H, Y)
    chosen = (Ridge if penalty == "ridge" else Lasso)(0.9)
    observed = watch_solver(solver)
    seen = observed.solve(network, problems, chosen)
    np.testing.assert_allclose(observed.residuals, solved(H, Y, 0.9, penalty, 8, 0.7), rtol=1e-9)
    unseen = solver.solve(SimulatedNetwork(graphs.ring(3)), problems, chosen)
    np.testing.assert_array_equal(seen.coefficients, unseen.coefficients)
    assert seen.report == unseen.report


def test_only_steps_that_tell_are_watched():
    assert watch_solver("admm") is None
    assert watch_solver(ADMM()) is None  # over-relaxed
    assert isinstance(watch_solver(ADMM(relaxation=1.0)), WatchedADMM)
    assert isinstance(
        watch_solver(ADMM(variant="thesis")), WatchedADMM
    )  # whose relaxation is 1 whatever is given


def test_curves_stand_at_their_iterations():
    curves = run("admm").curves
    assert curves["primal_residual"][0] == [*range(1, 13)]
    assert curves["primal_residual"][1][-1] < 0.3 * curves["primal_residual"][1][0]
    assert curves["residual"][0] == [5, 10, 12]
    assert "primal_residual" not in run("gram").curves


def test_what_is_no_sequence_or_learns_none_is_refused():
    protocol, entry = protocol_named("sequences"), Data("N10", "narma10", OPTIONS)
    assert not protocol.refuses(entry, MODELS[0])
    assert "sequences" in protocol.refuses(Data("g50c"), MODELS[0])
    assert "leave out scale" in protocol.refuses(replace(entry, scale="unit"), MODELS[0])
    assert "learns rows" in protocol.refuses(entry, Model("R", "RVFL"))


def test_a_washout_of_all_samples_is_refused():
    protocol, entry = (
        protocol_named("sequences"),
        Data("N10", "narma10", OPTIONS, settings={"washout": 120}),
    )
    with pytest.raises(
        InputError,
        match="washout is 120, and sequences of N10 have 120 samples: give a smaller one",
    ):
        protocol.refuses(entry, MODELS[0])


def test_a_search_sees_the_training_sequences_and_no_other():
    for outer in (trial_of("C", fold=fold) for fold in range(3)):
        (x, _), _ = sequences(outer)
        for fold in range(2):
            whole = replace(outer.comparison, folds=2)
            train, test = fold_of(replace(outer, comparison=whole, fold=fold, within=outer))
            assert sorted(each.tobytes() for each in (*train[0], *test[0])) == sorted(
                each.tobytes() for each in x
            )
            assert len(test[0]) == 3


def test_a_search_is_over_folds_of_the_training_sequences():
    """By hand; what one model found serves the others."""
    grid = {"spectral_radius": [0.1, 0.9], "alpha": [1e-4, 10.0]}
    search = Search(grid, folds=2, model="C")
    for fold in range(3):
        trial = trial_of("C", fold=fold, search=search)
        (x, y), test = sequences(trial)
        candidates = [
            {"spectral_radius": a, "alpha": b}
            for a in grid["spectral_radius"]
            for b in grid["alpha"]
        ]
        errors = np.zeros(len(candidates))
        for n, (fit, held) in enumerate(
            KFold(2, shuffle=True, random_state=trial.seed("split")).split(x)
        ):
            seed = replace(trial, fold=n).seed("model")
            for c, each in enumerate(candidates):
                model = ESNRegressor(**{**ESN, **each}, random_state=seed).fit(
                    [x[j] for j in fit], [y[j] for j in fit]
                )
                errors[c] += model.nrmse([x[j] for j in held], [y[j] for j in held])
        best = candidates[int(errors.argmin())]
        outcome = run("C", fold=fold, search=search)
        assert {key: outcome.values[f"best.{key}"] for key in grid} == best
        model = ESNRegressor(**{**ESN, **best}, random_state=trial.seed("model")).fit(x, y)
        assert outcome.values["nrmse"] == pytest.approx(model.nrmse(*test), rel=1e-9)
        assert run("gram", fold=fold, search=search).values["best.alpha"] == best["alpha"]
