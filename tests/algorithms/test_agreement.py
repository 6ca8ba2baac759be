"""Agents whose releases or machines differ: what they draw or compute differently is named by all
of them.

One of four agents, each in a thread of its own, draws or computes otherwise than the others.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import peerlearn
from peerlearn import (
    AnchorLapClassifier,
    ESNRegressor,
    LapKRRClassifier,
    RandomProjection,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SimulatedNetwork,
    VerticalRVFLClassifier,
    VerticalRVFLRegressor,
    graphs,
)
from peerlearn.algorithms.agreement import MARGIN, check_coefficients, check_same_settings
from peerlearn.algorithms.columns import column_solvers
from peerlearn.algorithms.distances import landmarks
from peerlearn.algorithms.readout import preconditioners
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.smooth import smooth_solvers
from peerlearn.errors import InputError, Mismatch
from peerlearn.local import features as features_file
from peerlearn.local.anchor_graph import AnchorGraph
from peerlearn.local.features import RandomFeatures
from peerlearn.local.reservoir import Reservoir
from peerlearn.testing.cases import readout, smooth
from tests.support.split_network import run_apart

RING = graphs.ring(4)
ODD = 2
_here = threading.local()


def is_odd() -> bool:
    """Whether the agent that calls is the one that differs."""
    return getattr(_here, "odd", False)


def apart(work):
    """Each agent's result of work(network, k), while one of them is odd."""

    def agent(network, k):
        _here.odd = k == ODD
        return work(network, k)

    return run_apart(RING, agent)


def said(work):
    """The one sentence that every agent raises."""

    def caught(network, k):
        with pytest.raises(Mismatch) as error:
            work(network, k)
        return str(error.value)

    sentences = set(apart(caught))
    assert len(sentences) == 1
    return sentences.pop()


def rows(k, n=12):
    return np.random.default_rng(k).standard_normal((n, 3))


def labels(k, n=12):
    return np.arange(n) % 2


def partly(k):
    """A label for every third row."""
    return np.where(np.arange(12) % 3 == 0, labels(k), -1)


def fit_rvfl(network, k, kind=RVFLClassifier, **settings):
    usual = {"n_hidden": 6, "alpha": 1.0, "activation": "sigmoid", "random_state": 0}
    return kind(**{**usual, **settings}, network=network).fit(rows(k), labels(k))


def stream_rvfl(network, k):
    return RVFLRegressor(
        6, random_state=0, network=network, alpha=1.0, activation="sigmoid"
    ).partial_fit(rows(k), labels(k))


def fit_esn(network, k, **settings):
    return ESNRegressor(8, feedback_scaling=0.1, random_state=0, network=network, **settings).fit(
        rows(k), rows(k)[:, 0]
    )


def stream_esn(network, k):
    return ESNRegressor(8, random_state=0, network=network).partial_fit(rows(k), rows(k)[:, 0])


def fit_vertical(network, k, kind=VerticalRVFLClassifier, **settings):
    return kind(6, random_state=0, network=network, **settings).fit(rows(k), labels(k))


def fit_lapkrr(network, k, **settings):
    return LapKRRClassifier(random_state=0, network=network, **settings).fit(rows(k), partly(k))


def fit_s3vm(network, k, **settings):
    return S3VMClassifier(network=network, **settings).fit(rows(k), partly(k))


def fit_anchors(network, k):
    return AnchorLapClassifier(random_state=0, network=network).fit(rows(k), partly(k))


# every model of which agents draw something alike, each in every way that it is trained
DRAWING = {
    "RVFLClassifier": fit_rvfl,
    "RVFLRegressor": lambda network, k: fit_rvfl(network, k, RVFLRegressor),
    "RVFLRegressor.partial_fit": stream_rvfl,
    "ESNRegressor": fit_esn,
    "ESNRegressor.partial_fit": stream_esn,
    "VerticalRVFLClassifier": fit_vertical,
    "VerticalRVFLRegressor": lambda network, k: fit_vertical(network, k, VerticalRVFLRegressor),
    "LapKRRClassifier": fit_lapkrr,
}
PREPARING = {"NetworkEncoder", "NetworkImputer", "NetworkScaler", "TablePreparer"}
NOTHING_DRAWN_ALIKE = PREPARING | {
    "AnchorLapClassifier",
    "GLMRegressor",
    "LMSFilter",
    "LogisticClassifier",
    "NetworkSearchCV",
    "S3VMClassifier",
    "SplineFilter",
}


def test_every_model_is_here():
    kinds = {name for name in peerlearn.__all__ if name not in ("MPINetwork", "PeerNetwork")}
    kinds = {
        name
        for name in kinds
        if isinstance(kind := getattr(peerlearn, name), type) and issubclass(kind, BaseEstimator)
    }
    assert kinds == NOTHING_DRAWN_ALIKE | {name.split(".")[0] for name in DRAWING}


@pytest.fixture
def untrained(monkeypatch):
    """Fails where something is trained."""

    def never(*given, **settings):
        raise AssertionError("trained although agents differ")

    for kind in [*solvers().values(), *column_solvers().values()]:
        monkeypatch.setattr(kind, "solve" if hasattr(kind, "solve") else "solve_columns", never)
    monkeypatch.setattr(LapKRRClassifier, "_solve_together", never)
    monkeypatch.setattr(ESNRegressor, "chunks_of", never)
    monkeypatch.setattr(RVFLRegressor, "chunks_of", never)


class TestDraws:
    """Before anything is trained."""

    @pytest.mark.parametrize("work", DRAWING.values(), ids=DRAWING)
    def test_another_stream_of_random_numbers(self, work, monkeypatch, untrained):
        usual = np.random.default_rng

        def default_rng(seed):
            return np.random.Generator(np.random.PCG64DXSM(seed)) if is_odd() else usual(seed)

        data = [rows(k) for k in range(4)]  # which do not differ
        monkeypatch.setattr("tests.algorithms.test_agreement.rows", lambda k: data[k])
        monkeypatch.setattr(np.random, "default_rng", default_rng)
        assert said(work).startswith(
            "agents disagree on the random numbers drawn from the same seed: their releases"
        )

    @pytest.mark.parametrize(
        "work", [fit_rvfl, stream_rvfl, fit_vertical], ids=lambda work: work.__name__
    )
    def test_one_weight_of_the_features(self, work, monkeypatch, untrained):
        draw = RandomFeatures.draw

        def drawn(*given, **settings):
            features = draw(*given, **settings)
            features.W[0, 0] += 1e-6 * is_odd()
            return features

        monkeypatch.setattr(RandomFeatures, "draw", drawn)
        assert said(work).startswith(
            "agents disagree on the random features drawn from the same seed: "
        )

    @pytest.mark.parametrize("activation", features_file.ACTIVATIONS)
    @pytest.mark.parametrize("work", [fit_rvfl, fit_vertical], ids=lambda work: work.__name__)
    def test_an_activation(self, work, activation, monkeypatch, untrained):
        usual = features_file.ACTIVATIONS[activation]

        def wrong(z, b):
            usual(z, b)
            z *= 1 + 1e-7 * is_odd()

        monkeypatch.setitem(features_file.ACTIVATIONS, activation, wrong)
        sentence = said(lambda network, k: work(network, k, activation=activation))
        assert sentence.startswith(
            "agents disagree on what they compute from the random features, by 1.0e-07 of its "
        )

    @pytest.mark.parametrize("work", [fit_esn, stream_esn], ids=lambda work: work.__name__)
    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda W: W.T, "the reservoir drawn from the same seed: "),
            (lambda W: W * (1 + 1e-6), "what they compute from the reservoir, by "),
        ],
    )
    def test_a_reservoir(self, work, change, says, monkeypatch, untrained):
        draw = Reservoir.draw

        def drawn(*given, **settings):
            reservoir = draw(*given, **settings)
            return replace(reservoir, W=change(reservoir.W)) if is_odd() else reservoir

        monkeypatch.setattr(Reservoir, "draw", drawn)
        assert said(work).startswith(f"agents disagree on {says}")

    def test_landmarks_that_point_the_other_way(self, monkeypatch, untrained):
        usual = landmarks.orthonormal
        monkeypatch.setattr(
            landmarks, "orthonormal", lambda d, seed: usual(d, seed) * (-1 if is_odd() else 1)
        )
        assert said(fit_lapkrr).startswith(
            "agents disagree on what they compute from the landmarks, by "
        )

    def test_a_transform_of_rows(self, untrained):
        @dataclass(frozen=True)
        class Projection(RandomProjection):
            def drawn(self, d, seed):
                transform = super().drawn(d, seed)
                return lambda X: transform(X) * (1 + 1e-7 * is_odd())

        sentence = said(lambda network, k: fit_lapkrr(network, k, privacy=Projection(2)))
        assert sentence.startswith(
            "agents disagree on what they compute from the transform of rows, by 1.0e-07 of its"
        )

    def test_a_model_that_was_fitted_before_is_unharmed(self, monkeypatch):
        def work(network, k):
            model = fit_rvfl(network, k)
            before = dict(vars(model))
            _here.other = is_odd()
            with pytest.raises(Mismatch):
                model.fit(rows(k), labels(k))
            return vars(model) == before

        draw = RandomFeatures.draw

        def drawn(*given, seed, **settings):
            return draw(*given, seed=seed + getattr(_here, "other", False), **settings)

        monkeypatch.setattr(RandomFeatures, "draw", drawn)
        assert all(apart(work))

    def test_what_differs_in_the_last_bits_does_no_harm(self, monkeypatch):
        usual, draw = features_file.ACTIVATIONS["tanh"], Reservoir.draw

        def rounded(z, b):
            usual(z, b)
            z *= 1 + 2.0**-52 * is_odd()

        def drawn(*given, **settings):
            reservoir = draw(*given, **settings)
            return replace(reservoir, W=reservoir.W * (1 + 2.0**-52 * is_odd()))

        monkeypatch.setitem(features_file.ACTIVATIONS, "tanh", rounded)
        monkeypatch.setattr(Reservoir, "draw", drawn)
        for work in (fit_rvfl, fit_vertical):
            apart(lambda network, k, work=work: work(network, k, activation="tanh"))
        apart(fit_esn)
        for solver in solvers():
            apart(
                lambda network, k, solver=solver: fit_rvfl(
                    network, k, activation="tanh", solver=solver
                )
            )

    def test_settings_are_named_first(self):
        """Agents with other settings draw other features as well."""
        with pytest.raises(InputError, match="agents disagree on n_hidden, from 6 to 7"):
            apart(lambda network, k: fit_rvfl(network, k, n_hidden=6 + is_odd()))


ALL_ALIKE = [
    *((fit_rvfl, kind, {"solver": name}) for name, kind in solvers().items()),
    (fit_esn, solvers()["auto"], {"penalty": "lasso"}),
    *(
        (fit_s3vm, kind, {"solver": name})
        for name, kind in smooth_solvers().items()
        if name != "diffusion"
    ),
    (fit_s3vm, smooth_solvers()["diffusion"], {"solver": peerlearn.Diffusion(tolerance=0.1)}),
]


class TestCoefficients:
    """After training, where the solver gives all agents the same."""

    @pytest.mark.parametrize(
        ("work", "kind", "settings"), ALL_ALIKE, ids=lambda one: getattr(one, "__name__", None)
    )
    def test_each_solver(self, work, kind, settings, monkeypatch):
        method = "solve" if hasattr(kind, "solve") else "minimise"
        usual = getattr(kind, method)

        def spoilt(*given, **options):
            found = usual(*given, **options)
            return replace(found, coefficients=found.coefficients * (1 + 1e-4 * is_odd()))

        monkeypatch.setattr(kind, method, spoilt)
        if kind.name == "local":
            assert len(apart(lambda network, k: work(network, k, **settings))) == 4
            return
        sentence = said(lambda network, k: work(network, k, **settings))
        assert sentence.startswith("agents end with coefficients that differ")
        assert (
            "the model is as it was before: their releases or machines differ; install" in sentence
        )

    def test_one_bit(self, monkeypatch):
        usual = solvers()["gram"].solve

        def spoilt(*given):
            found = usual(*given)
            return replace(
                found,
                coefficients=np.nextafter(
                    found.coefficients, np.inf if is_odd() else found.coefficients
                ),
            )

        monkeypatch.setattr(solvers()["gram"], "solve", spoilt)
        assert said(lambda network, k: fit_rvfl(network, k, solver="gram")).startswith(
            "agents end with coefficients that differ, where"
        )

    def test_anchors(self, monkeypatch):
        usual = AnchorGraph.coefficients
        monkeypatch.setattr(
            AnchorGraph, "coefficients", lambda *given: usual(*given) * (1 + 1e-4 * is_odd())
        )
        assert said(fit_anchors).startswith(
            "agents end with coefficients that differ, by 1.0e-04 of their size"
        )

    @pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
    def test_eigenvectors_that_point_the_other_way(self, monkeypatch):
        """What a preconditioner is made of after training began differs: agents' copies of the
        answer part.
        """
        usual = np.linalg.eigh

        def eigh(A):
            values, vectors = usual(A)
            return values, vectors * (-1 if is_odd() else 1)

        monkeypatch.setattr(preconditioners.np.linalg, "eigh", eigh)
        assert said(
            lambda network, k: fit_rvfl(network, k, n_hidden=30, alpha=1e-4, solver="cg")
        ).startswith("agents end with coefficients that differ, by ")

    def test_an_unfitted_model_stays_unfitted(self, monkeypatch):
        usual = solvers()["gram"].solve

        def spoilt(*given):
            found = usual(*given)
            return replace(found, coefficients=found.coefficients + is_odd())

        def work(network, k):
            model = RVFLRegressor(
                6, solver="gram", network=network, random_state=0, alpha=1.0, activation="sigmoid"
            )
            with pytest.raises(Mismatch):
                model.fit(rows(k), labels(k))
            return hasattr(model, "coefficients_")

        monkeypatch.setattr(solvers()["gram"], "solve", spoilt)
        assert not any(apart(work))


@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
class TestWhatSolversPromise:
    """`apart` of a solution is true of its coefficients, on a network where all agents
    can be seen.
    """

    def check(self, solutions):
        promised = set()
        for name, solution in solutions.items():
            promised.add(None if solution.apart is None else solution.apart == 0)
            if solution.apart == 0:
                assert len({own.tobytes() for own in solution.coefficients}) == 1, name
            elif solution.apart is not None:
                mean = solution.coefficients.mean(axis=0)
                far = max(np.linalg.norm(own - mean) for own in solution.coefficients)
                assert far <= solution.apart * np.linalg.norm(mean), name
        return promised

    def test_of_readouts(self):
        network, solutions = SimulatedNetwork(graphs.erdos_renyi(7, 0.35, seed=0)), {}
        problems = readout.readout(range(7))
        kinds = {
            **dict(readout.all_settings(solvers().values())),
            "long ADMM": peerlearn.ADMM(averaging="plain"),
        }
        for name, solver in kinds.items():
            for penalty in readout.PENALTIES:
                if readout.runs_apart(solver, penalty):
                    solutions[f"{name} {penalty}"] = solver.solve(network, problems, penalty)
        assert self.check(solutions) == {None, True, False}

    def test_of_smooth_losses(self):
        network = SimulatedNetwork(graphs.erdos_renyi(7, 0.35, seed=0))
        losses = smooth.s3vm(network)
        made = [kind(max_iterations=n) for kind in smooth_solvers().values() for n in (7, 5000)]
        assert self.check(
            {str(solver): solver.minimise(network, losses, 1.0) for solver in made}
        ) == {None, True}


class TestWhatIsSent:
    def test_draws_ride_along_and_coefficients_take_one_flood(self):
        network = SimulatedNetwork(RING)
        X, y = np.vstack([rows(k) for k in range(4)]), np.concatenate([labels(k) for k in range(4)])
        d, h, links = network.diameter, network.tree.height, 2 * RING.number_of_edges()
        alone = (
            RVFLRegressor(
                6, solver="local", network=network, random_state=0, alpha=1.0, activation="sigmoid"
            )
            .fit(X, y)
            .report_.sent
        )
        assert (alone.rounds, alone.bytes) == (d, d * links * 8 * 2 * (11 + 2 * 2 + 1))
        gram = (
            RVFLRegressor(
                6, solver="gram", network=network, random_state=0, alpha=1.0, activation="sigmoid"
            )
            .fit(X, y)
            .report_.sent
        )
        assert gram.rounds == d + 2 * h + 2 * h + d  # the means, then the matrices

    def test_one_agent_asks_nobody(self):
        one = SimulatedNetwork(graphs.complete(1))
        check_coefficients(one, np.ones((1, 3, 1)), 0.0)
        check_same_settings(one, {"alpha": 1.0})
        assert one.ledger.messages == 0

    def test_the_order_of_coefficients_matters(self):
        b = np.tile(np.arange(5.0), (4, 1))
        b[ODD] = b[ODD, ::-1]
        with pytest.raises(Mismatch):
            check_coefficients(SimulatedNetwork(RING), b, 1e-6)

    def test_the_tolerance_has_a_margin(self):
        network, b = SimulatedNetwork(RING), np.ones((4, 5, 1))
        b[ODD] += 0.9 * MARGIN * 1e-6
        check_coefficients(network, b, 1e-6)
        b[ODD] += 0.2 * MARGIN * 1e-6
        with pytest.raises(Mismatch, match=r"by 1\.1e-05 of their size"):
            check_coefficients(network, b, 1e-6)
