"""Agents that live apart compute the same numbers as agents simulated together: every algorithm,
every method.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import (
    ADMM,
    Averaging,
    ConjugateGradient,
    Faults,
    Gram,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    average,
    data,
    everyone,
    graphs,
    maximum,
    partition,
    total,
)
from peerlearn.algorithms.agreement import union
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.sums import broadcast_from_center
from peerlearn.errors import PeerlearnError
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge
from tests.support.split_network import run_apart

GRAPH = graphs.erdos_renyi(6, 0.4, seed=2)
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((6, 4))
FEATURES = RandomFeatures.draw(3, 15, seed=0)
X = [RNG.standard_normal((n, 3)) for n in (1, 4, 9, 16, 25, 2)]
Y = [np.sin(x[:, :2]) for x in X]


@pytest.mark.parametrize("stopping", ["bound", "messages"])
@pytest.mark.parametrize("method", ["plain", "chebyshev", "tree"])
def test_averages(method, stopping):
    options = {"method": method, "stopping": stopping, "tolerance": 1e-7}
    together = average(SimulatedNetwork(GRAPH), ROWS, **options)
    apart = run_apart(GRAPH, lambda network, k: average(network, ROWS[k : k + 1], **options)[0])
    np.testing.assert_allclose(apart, together, atol=1e-12)


@pytest.mark.parametrize("operation", [total, maximum, broadcast_from_center])
def test_other_agreements(operation):
    together = operation(SimulatedNetwork(GRAPH), ROWS)
    apart = run_apart(GRAPH, lambda network, k: operation(network, ROWS[k : k + 1])[0])
    np.testing.assert_allclose(apart, together, atol=1e-12)


def test_votes():
    assert run_apart(GRAPH, lambda network, k: everyone(network, [k != 3])) == [False] * 6
    assert run_apart(GRAPH, lambda network, k: everyone(network, [True])) == [True] * 6


CASES = [
    *((make(), Ridge(0.5), {}) for make in solvers().values()),
    (ADMM(averaging="chebyshev"), Ridge(0.5), {}),
    (ADMM(), Lasso(0.5), {}),
    (ADMM(averaging="tree", variant="thesis", rho=1.0), Ridge(0.5), {}),
    (Gram(averaging="chebyshev"), Ridge(0.5), {}),
    *(
        (ConjugateGradient(preconditioner=kind, averaging=how), Ridge(0.5), {})
        for kind in ("synthetic", "local", "none")
        for how in ("tree", "chebyshev", Averaging("chebyshev", 1e-9, stopping="messages"))
    ),
    (Gram(), Ridge(0.0), {}),
    (ConjugateGradient(1e-4), Ridge(0.5), {"faults": Faults(0.1, seed=1)}),
]


@pytest.mark.processes  # one thread per agent
@pytest.mark.parametrize(("solver", "penalty", "options"), CASES, ids=str)
def test_solvers(solver, penalty, options):
    together = solver.solve(
        SimulatedNetwork(GRAPH, **options), LeastSquares.of_inputs(FEATURES, X, Y), penalty
    )

    def alone(network, k):
        return solver.solve(
            network, LeastSquares.of_inputs(FEATURES, X[k : k + 1], Y[k : k + 1]), penalty
        )

    apart = run_apart(GRAPH, alone, **options)
    size = np.abs(together.coefficients).max()
    for k, own in enumerate(apart):
        np.testing.assert_allclose(own.coefficients[0], together.coefficients[k], atol=1e-10 * size)
        assert own.report.iterations == together.report.iterations
        assert own.report.converged


@pytest.mark.parametrize("model", [RVFLClassifier, RVFLRegressor])
def test_models(model):
    digits = data.load("digits")
    shares = partition.dirichlet(digits.X[:400], digits.y[:400], 6, concentration=0.2, seed=1)
    options = {"n_hidden": 25, "random_state": 3}
    together = model(network=SimulatedNetwork(GRAPH), **options).fit(shares)
    apart = run_apart(GRAPH, lambda network, k: model(network=network, **options).fit(*shares[k]))
    for k, own in enumerate(apart):
        np.testing.assert_allclose(own.coefficients_[0], together.coefficients_[k], atol=1e-8)
        assert (own.predict(digits.X[400:500]) == together.predict(digits.X[400:500])).mean() > 0.99


class TestAgentsThatDoNotFitTogether:
    """What differs between agents is said by all of them, with the same sentence, before anything
    is learned.
    """

    def sentences(self, work):
        def caught(network, k):
            with pytest.raises(PeerlearnError) as error:
                work(network, k)
            return str(error.value)

        return set(run_apart(GRAPH, caught))

    def fit(self, network, k, model=RVFLClassifier, X=None, y=None, **options):
        rng = np.random.default_rng(k)
        X = rng.standard_normal((8, 3)) if X is None else X
        y = np.arange(8) % 2 if y is None else y
        usual = {"n_hidden": 6, "alpha": 1.0, "activation": "sigmoid", "random_state": 0}
        return model(**{**usual, **options}, network=network).fit(X, y)

    @pytest.mark.parametrize(
        ("name", "values", "named"),
        [
            ("n_hidden", (6, 7), "n_hidden, from 6 to 7"),
            ("alpha", (1.0, 2.0), "alpha, from 1 to 2"),
            ("solver", ("gram", "cg"), "solver"),
            ("random_state", (0, 1), "the seed of the features"),
        ],
    )
    def test_settings(self, name, values, named):
        said = self.sentences(lambda network, k: self.fit(network, k, **{name: values[k == 3]}))
        assert len(said) == 1
        assert f"agents disagree on {named}" in said.pop()

    def test_columns(self):
        said = self.sentences(lambda network, k: self.fit(network, k, X=np.ones((8, 3 - (k == 2)))))
        assert said == {
            "agents disagree on the number of columns of X, from 2 to 3: give all of them the same"
        }

    def test_outputs(self):
        said = self.sentences(
            lambda network, k: self.fit(network, k, RVFLRegressor, y=np.ones((8, 1 + (k == 2))))
        )
        assert said == {
            "agents disagree on the number of outputs, from 1 to 2: give all of them the same"
        }

    def test_kinds_of_labels(self):
        y = [np.arange(8) % 2] * 5 + [np.array(list("abababab"))]
        said = self.sentences(lambda network, k: self.fit(network, k, y=y[k]))
        assert said == {"labels must be of one kind at all agents, but there are numbers and text"}

    def test_data_that_determine_nothing(self):
        options = {
            "X": np.tile([[1.0, 2.0, 3.0]], (8, 1)),
            "y": np.ones(8),
            "alpha": 0.0,
            "solver": "gram",
        }
        said = self.sentences(lambda network, k: self.fit(network, k, RVFLRegressor, **options))
        assert len(said) == 1
        assert "linearly dependent" in said.pop()

    def test_one_agent_that_could_not_fit_alone(self):
        rows = [2 if k == 4 else 30 for k in range(6)]

        def work(network, k):
            X = np.random.default_rng(k).standard_normal((rows[k], 3))
            return self.fit(
                network, k, RVFLRegressor, X=X, y=X[:, 0], alpha=0.0, solver="consensus"
            )

        said = self.sentences(work)
        assert len(said) == 1
        assert "some agents have fewer rows than the 6 coefficients" in said.pop()


@pytest.mark.parametrize(
    ("some", "others", "expected"),
    [
        ([True, False], [0, 1, 2], [0, 1, 2]),
        (np.array([1, 2], dtype=np.int8), [300], [1, 2, 300]),
        ([2**53, 2**53 + 1], [2**53 + 2], [2**53, 2**53 + 1, 2**53 + 2]),
        ([True], [False], [False, True]),
        ([1.5], [1], [1.0, 1.5]),
        (["long name"], np.array(["x"], dtype=object), ["long name", "x"]),
    ],
    ids=str,
)
def test_types_of_labels_agree_at_every_agent(some, others, expected):
    labels = [np.asarray(some)] * 3 + [np.asarray(others)] * 3
    together = union(SimulatedNetwork(GRAPH), labels)
    np.testing.assert_array_equal(together, expected)
    assert together.dtype.kind == np.asarray(expected).dtype.kind
    for apart in run_apart(GRAPH, lambda network, k: union(network, labels[k : k + 1])):
        np.testing.assert_array_equal(apart, expected)
        assert apart.dtype == together.dtype
