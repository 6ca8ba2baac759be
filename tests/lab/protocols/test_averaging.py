"""The protocol `averaging` against loops written out by hand, with the mixing matrix and nothing
else.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from peerlearn import Consensus, RVFLClassifier, RVFLRegressor, SimulatedNetwork, graphs
from peerlearn.algorithms import ADMM, Averaging, Local
from peerlearn.data import DataSet
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net
from peerlearn.lab.protocols.averaging import Averages, disagreements
from peerlearn.lab.training.loading import fold_of
from peerlearn.lab.training.networks import graph_of

L, B = 9, 6
LINE = Net("line", fixed=graphs.linear(L), weights="max-degree")
RULE = Averaging("plain", 1e-3, stopping="thesis")


def table(seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(90) % 3
    return DataSet(
        "points", rng.normal(size=(90, 4)) + y[:, None], y, "classification", "made here", None
    )


def trial_of(averaging, protocol, net=LINE, **more):
    model = Model(
        "m",
        estimator=RVFLClassifier(
            B,
            0.5,
            fit_intercept=False,
            solver=Consensus(averaging, variant="thesis"),
            activation="sigmoid",
        ),
    )
    return next(
        Comparison((Data("points", given=table()),), (model,), (net,), protocol, 3, **more).trials()
    )


def readouts(trial, rows=None):
    """What each agent finds alone, from the rows that a model of this seed deals to it."""
    fold = fold_of(trial)
    chosen = np.random.default_rng(trial.seed("deal")).permutation(len(fold.y))[:rows]
    network = SimulatedNetwork(graphs.complete(L))
    model = RVFLClassifier(
        B,
        0.5,
        fit_intercept=False,
        solver=Local(),
        network=network,
        random_state=trial.seed("model"),
        activation="sigmoid",
    )
    return model.fit(fold.X[chosen], fold.y[chosen]).coefficients_


def mixed(x, rounds):
    """x before the first round, after it, and so on, on a line with max-degree weights: a third to
    either neighbor.
    """
    C = np.diag([2.0, *[1.0] * (L - 2), 2.0]) / 3 + (np.eye(L, k=1) + np.eye(L, k=-1)) / 3
    found = [x.reshape(L, -1)]
    for _ in range(rounds):
        found.append(C @ found[-1])
    return found


def away(x):
    return np.linalg.norm(x - x.mean(axis=0))


@pytest.mark.parametrize("rows", [0, 30])
def test_the_printed_rule_round_by_round(rows):
    protocol = Averages(rows=rows, watched=12)
    trial = trial_of(RULE, protocol)
    steps = mixed(readouts(trial, rows or None), 200)
    stopped = next(
        n for n in range(1, 200) if (((steps[n] - steps[n - 1]) ** 2).sum(axis=1) < 1e-3).all()
    )
    outcome = protocol.run(trial)
    assert 2 < stopped == outcome.sent.rounds
    assert (outcome.sent.messages, outcome.sent.bytes) == (16 * stopped, 16 * stopped * 8 * B * 3)
    end, truth = steps[stopped], steps[0].mean(axis=0)
    assert outcome.values["left"] == pytest.approx(away(end) / away(steps[0]))
    assert outcome.values["off"] == pytest.approx(
        np.linalg.norm(end - truth, axis=1).max() / np.linalg.norm(truth)
    )
    assert outcome.curves["disagreement"][0] == [float(n) for n in range(13)]
    assert outcome.curves["disagreement"][1] == pytest.approx(
        [away(x) / away(steps[0]) for x in steps[:13]]
    )
    assert outcome.converged is False  # small updates, and a tenth of the disagreement left


def test_an_oracle_stops_in_the_first_round_that_is_near_enough():
    trial = trial_of(Averaging("plain", 1e-2, stopping="oracle"), Averages(watched=0))
    steps = mixed(readouts(trial), 300)
    near = [away(x) <= 1e-2 * away(steps[0]) for x in steps].index(True)
    outcome = trial.comparison.protocol.run(trial)
    assert (outcome.sent.rounds, outcome.converged, outcome.curves) == (near, True, {})
    assert outcome.values["left"] <= 1e-2


def test_a_tree_is_exact_once_all_have_heard():
    trial = trial_of("tree", Averages())
    outcome = trial.comparison.protocol.run(trial)
    x, half = readouts(trial).reshape(L, -1), L // 2
    assert outcome.sent.rounds == 2 * half
    assert outcome.values["left"] < 1e-14
    # Until the sum is at the root nobody has it; then the root has, then those beside it, and so
    # on.
    heard = [0] * half + [1 + 2 * n for n in range(half + 1)]
    outwards = np.argsort(abs(np.arange(L) - half), kind="stable")
    left = [np.linalg.norm((x - x.mean(axis=0))[outwards[n:]]) / away(x) for n in heard]
    assert outcome.curves["disagreement"][1] == pytest.approx(left, abs=1e-14)


def test_random_numbers_in_place_of_readouts():
    protocol = Averages("random", watched=5)
    trial = trial_of(RULE, protocol)
    rng = np.random.default_rng(trial.seed("deal"))
    rng.permutation(len(table().y) - 23)  # the training rows, a quarter of all left out
    steps = mixed(rng.standard_normal((L, B, 3)), 5)
    expected = [away(x) / away(steps[0]) for x in steps]
    assert protocol.run(trial).curves["disagreement"][1] == pytest.approx(expected)


def test_chebyshev_is_watched_as_it_averages():
    trial = trial_of(Averaging("chebyshev", 1e-6, stopping="oracle"), Averages(watched=60))
    outcome = trial.comparison.protocol.run(trial)
    curve = outcome.curves["disagreement"][1]
    assert curve[outcome.sent.rounds] == pytest.approx(outcome.values["left"], rel=1e-6)
    assert curve[outcome.sent.rounds - 1] > 1e-6 >= curve[outcome.sent.rounds]


def test_who_agrees_from_the_start_stays_so():
    network = SimulatedNetwork(graphs.ring(4))
    for method in ("plain", "tree"):
        assert list(islice(disagreements(network, np.ones((4, 2)), method), 4)) == [0.0] * 4


def test_weightings_are_compared_on_the_same_graphs():
    nets = [Net(name, "erdos_renyi", 8, {"p": 0.5}, name) for name in ("metropolis", "laplacian")]
    whole = Comparison(
        (Data("points", given=table()),), (Model("m", "RVFL"),), tuple(nets), repetitions=2
    )
    drawn = [graph_of(trial.network, trial.seed("graph")) for trial in whole.trials()]
    assert len(drawn) == 4
    assert set(drawn[0].edges) == set(drawn[1].edges) != set(drawn[2].edges) == set(drawn[3].edges)


def test_the_solver_takes_the_rounds_that_are_told():
    """Also by the printed rule, which looks at the size of updates: they are those of the
    coefficients.
    """
    trial = trial_of(RULE, Averages())
    fold = fold_of(trial)
    order = np.random.default_rng(trial.seed("deal")).permutation(len(fold.y))
    rounds = {}
    for solver in (Local(), Consensus(RULE, variant="thesis")):
        network = SimulatedNetwork(LINE.fixed, "max-degree")
        model = RVFLClassifier(
            B,
            0.5,
            fit_intercept=False,
            solver=solver,
            network=network,
            random_state=trial.seed("model"),
            activation="sigmoid",
        )
        rounds[solver.name] = model.fit(fold.X[order], fold.y[order]).report_.sent.rounds
    assert rounds["consensus"] - rounds["local"] == trial.comparison.protocol.run(trial).sent.rounds


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (Model("m", "RVFL", settings={"solver": "consensus"}), ""),
        (
            Model(
                "m",
                "RVFL",
                settings={"solver": {"name": "consensus", "averaging": {"method": "plain"}}},
            ),
            "",
        ),
        (Model("m", "RVFL", "centralised", {"solver": "consensus"}), "has nobody to agree with"),
        (Model("m", "RVFL"), "does not average readouts: solver = 'consensus' does"),
        (
            Model("m", estimator=RVFLClassifier(solver=ADMM(), alpha=1.0, activation="sigmoid")),
            "does not average readouts: solver = 'consensus' does",
        ),
        (
            Model("m", "sklearn.svm.SVC", "network"),
            "does not average readouts: solver = 'consensus' does",
        ),
        (
            Model(
                "m", estimator=RVFLRegressor(solver=Consensus(), alpha=1.0, activation="sigmoid")
            ),
            "predicts numbers, and the targets are classes",
        ),
    ],
)
def test_whose_readouts_are_averaged(model, why):
    assert Averages().refuses(Data("points", given=table()), model) == why


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"start": "zeros"}, "start is 'zeros': choose readouts or random"),
        ({"rows": -1}, "rows is -1: give the number of training rows, or 0 for all"),
        ({"watched": 1.5}, "watched is 1.5: give the number of rounds, or 0 for no curve"),
    ],
)
def test_settings_are_checked(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Averages(**settings)
