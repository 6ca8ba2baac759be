"""Agents without rows: exact solvers give the centralised answer over the rows there are, and
nothing crashes.
"""

from __future__ import annotations

import warnings
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from peerlearn import (
    AnchorLapClassifier,
    Averaging,
    Consensus,
    ESNRegressor,
    Gram,
    LapKRRClassifier,
    Local,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SimulatedNetwork,
    VerticalRVFLRegressor,
    graphs,
)
from peerlearn.algorithms.columns.auto import COLUMNS
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.readout.preconditioners import PRECONDITIONERS
from peerlearn.algorithms.readout.solver import must_take
from peerlearn.algorithms.smooth.minimum import smooth_solvers
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.cli import main
from peerlearn.errors import DataError, InputError, NotConverged
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge
from peerlearn.models import archive
from peerlearn.models.registry import models
from peerlearn.testing import model_data
from peerlearn.testing.model_settings import make_small, stream_variants, variants
from tests.support.site_processes import write_sites
from tests.support.split_network import run_apart

GRAPHS = {"ring": graphs.ring(4), "star": graphs.star(4), "line": graphs.line(4)}
EMPTY = {"the first": (0,), "another": (2,), "all but one": (0, 1, 3)}
# Where agent 0 has one row, agent 2 four, and some have no labels.
EMPTY_OF_CASES = {"the first": (0,), "another": (2,), "all but one": (0, 2, 3)}
FEATURES = RandomFeatures.draw(3, 12, seed=0)
TABLES = [
    np.random.default_rng(k).standard_normal((rows, 3)) for k, rows in enumerate((15, 40, 7, 20))
]


def shares(empty, kind="numbers"):
    rng, found = np.random.default_rng(0), []
    for agent in range(4):
        X = rng.standard_normal((0 if agent in empty else 40, 3))
        y = X[:, 0] * 2 + 0.1 * X[:, 1] if kind == "numbers" else (X[:, 0] > 0).astype(int)
        found.append((X, np.where(np.arange(len(y)) % 4 < 2, y, -1) if kind == "few labels" else y))
    return found


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        yield


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("solver", sorted(solvers()))
class TestSolvers:
    def test_regression(self, solver, graph, empty):
        given = shares(EMPTY[empty])
        X, y = (np.concatenate(parts) for parts in zip(*given, strict=True))
        together = RVFLRegressor(
            10,
            solver=solver,
            network=SimulatedNetwork(GRAPHS[graph]),
            random_state=0,
            alpha=1.0,
            activation="sigmoid",
        ).fit(given)
        centralised = RVFLRegressor(10, random_state=0, alpha=1.0, activation="sigmoid").fit(X, y)
        assert np.isfinite(together.coefficients_).all()
        if solvers()[solver].exact:
            wanted = np.broadcast_to(centralised.coefficients_, together.coefficients_.shape)
            np.testing.assert_allclose(
                together.coefficients_, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max()
            )

    def test_classification(self, solver, graph, empty):
        given = shares(EMPTY[empty], "labels")
        model = RVFLClassifier(
            10,
            solver=solver,
            network=SimulatedNetwork(GRAPHS[graph]),
            random_state=0,
            alpha=1.0,
            activation="sigmoid",
        ).fit(given)
        X, y = (np.concatenate(parts) for parts in zip(*given, strict=True))
        if solver != "local":  # alone, an agent without rows knows nothing
            assert model.agent_scores(X, y).min() > 0.8


def fields_of(kind):
    return {field.name for field in fields(kind)}


def settings():
    """Every solver, with every way to average, to precondition, and every variant that it has."""
    found = []
    for _, kind in sorted(solvers().items()):
        choices = {
            "averaging": [Averaging("plain", 1e-9), Averaging("chebyshev", 1e-9)],
            "preconditioner": PRECONDITIONERS,
            "variant": ["thesis"],
        }
        found.append(kind())
        found += [
            kind(**{name: one})
            for name in choices
            if name in fields_of(kind)
            for one in choices[name]
        ]
    return found


def takes(solver, penalty):
    try:
        must_take(solver, penalty)
    except InputError:
        return False
    return True


CASES = [
    (solver, penalty)
    for solver in settings()
    for penalty in (Ridge(1.0), Lasso(0.5))
    if takes(solver, penalty)
]


def problems_of(tables):
    return LeastSquares.of_inputs(FEATURES, tables, [np.sin(X[:, :2]) for X in tables])


def objective(b, tables, penalty):
    X = np.vstack(tables)
    size = np.abs(b).sum() if isinstance(penalty, Lasso) else 0.5 * (b**2).sum()
    return 0.5 * ((FEATURES(X) @ b - np.sin(X[:, :2])) ** 2).sum() + penalty.alpha * size


@pytest.mark.parametrize(("solver", "penalty"), CASES, ids=str)
class TestSolversThemselves:
    def solve(self, solver, graph, tables, penalty):
        return solver.solve(SimulatedNetwork(graph), problems_of(tables), penalty).coefficients

    @pytest.mark.parametrize("graph", [*GRAPHS, "two"])
    def test_whichever_agent_is_empty(self, solver, graph, penalty):
        network = GRAPHS.get(graph) or graphs.complete(2)
        exact = type(solver).exact and getattr(solver, "variant", "") != "thesis"
        last = len(network) - 1
        # Others are only shown to work, and take long.
        for empty in range(last + 1) if exact else [last // 2]:
            tables = [TABLES[k][: 0 if k == empty else None] for k in range(len(network))]
            b = self.solve(solver, network, tables, penalty)
            assert np.isfinite(b).all()
            if exact:
                best = Gram().solve(
                    SimulatedNetwork(graphs.complete(1)), problems_of([np.vstack(tables)]), penalty
                )
                least = objective(best.coefficients[0], tables, penalty)
                assert max(objective(own, tables, penalty) for own in b) <= 1.001 * least

    def test_nobody_has_rows(self, solver, penalty):
        b = self.solve(solver, graphs.ring(4), [X[:0] for X in TABLES], penalty)
        assert np.count_nonzero(b) == 0


@pytest.mark.parametrize("solver", sorted(solvers()))
def test_agents_apart_make_the_same_calls(solver):
    """Whoever skipped one for lack of rows would leave the others waiting."""
    tables = [X[: 0 if k == 2 else None] for k, X in enumerate(TABLES)]
    together = solvers()[solver]().solve(
        SimulatedNetwork(graphs.line(4)), problems_of(tables), Ridge(1.0)
    )
    apart = run_apart(
        graphs.line(4),
        lambda network, k: (
            solvers()[solver]()
            .solve(network, problems_of(tables[k : k + 1]), Ridge(1.0))
            .coefficients[0]
        ),
    )
    np.testing.assert_allclose(apart, together.coefficients, atol=1e-10)


def test_consensus_over_those_who_have_rows():
    """An agent without rows has no say: as if it were not there."""
    tables = [X[: 0 if k == 1 else None] for k, X in enumerate(TABLES)]
    with_it = (
        Consensus()
        .solve(SimulatedNetwork(graphs.ring(4)), problems_of(tables), Ridge(1.0))
        .coefficients
    )
    without = (
        Consensus()
        .solve(
            SimulatedNetwork(graphs.ring(3)), problems_of([X for X in tables if len(X)]), Ridge(1.0)
        )
        .coefficients
    )
    np.testing.assert_allclose(with_it, np.broadcast_to(without[0], with_it.shape), rtol=1e-9)


def test_alone_an_agent_without_rows_has_learned_nothing():
    tables = [X[: 0 if k == 1 else None] for k, X in enumerate(TABLES)]
    b = (
        Local()
        .solve(SimulatedNetwork(graphs.ring(4)), problems_of(tables), Ridge(1.0))
        .coefficients
    )
    assert [bool(own.any()) for own in b] == [True, False, True, True]
    with pytest.raises(
        DataError, match=r"the 0 rows of agent 1 do not determine 12 coefficients when alpha is 0"
    ):
        Local().solve(SimulatedNetwork(graphs.ring(4)), problems_of(tables), Ridge(0.0))


def test_columns_are_scaled_by_the_rows_there_are():
    tables = [X[: 0 if k == 1 else None] for k, X in enumerate(TABLES)]
    mean, deviation = mean_and_deviation(SimulatedNetwork(graphs.ring(4)), tables)
    np.testing.assert_allclose(mean[1], np.vstack(tables).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(deviation[1], np.vstack(tables).std(axis=0), atol=1e-12)
    with pytest.raises(
        DataError, match="no agent of the network has a row: give rows to one of them at least"
    ):
        mean_and_deviation(SimulatedNetwork(graphs.ring(4)), [X[:0] for X in TABLES])


@pytest.mark.parametrize("stream", sorted(learners()))
def test_a_stream_may_begin_with_nothing(stream):
    """The first rows come later, and are learned as if they came first."""
    models = [
        RVFLRegressor(
            6,
            stream=stream,
            network=SimulatedNetwork(graphs.ring(4)),
            random_state=0,
            alpha=1.0,
            activation="sigmoid",
        )
        for _ in "ab"
    ]
    models[0].partial_fit(shares(range(4)))
    assert np.count_nonzero(models[0].coefficients_) == 0
    for model in models:
        model.partial_fit(shares((1,)))
    np.testing.assert_allclose(models[0].coefficients_, models[1].coefficients_, atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1e-6])
@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("solver", sorted(solvers()))
def test_sequences(solver, empty, noise, tmp_path):
    given = shares(EMPTY[empty])
    network = SimulatedNetwork(graphs.star(4))
    model = ESNRegressor(
        8, washout=3, noise=noise, solver=solver, network=network, random_state=0
    ).fit(given)
    assert np.isfinite(model.coefficients_).all()
    if solvers()[solver].exact:
        some = [(X, y) for X, y in given if len(X)]
        one = ESNRegressor(8, washout=3, noise=noise, random_state=0).fit(
            [X for X, _ in some], [y for _, y in some]
        )
        for own in model.coefficients_:
            np.testing.assert_allclose(
                own, one.coefficients_[0], atol=1e-3 * np.abs(one.coefficients_).max()
            )
    archive.save(model, tmp_path / "model.npz")
    assert archive.load(tmp_path / "model.npz").predict(
        given[2 if empty != "another" else 0][0]
    ).shape == (40,)


def test_sequences_of_agents_apart():
    given = shares((2,))

    def fitted(network, share):
        return ESNRegressor(8, washout=3, network=network, random_state=0).fit(share).coefficients_

    together = fitted(SimulatedNetwork(graphs.line(4)), given)
    apart = run_apart(graphs.line(4), lambda network, k: fitted(network, given[k : k + 1])[0])
    np.testing.assert_allclose(apart, together, atol=1e-10)


def test_a_forecast_needs_an_agent_with_samples():
    """It goes on from the end of what the first hosted agent has."""
    y = np.sin(0.3 * np.arange(90))
    given = [(np.zeros((0, 1)), y[:0]), (y[:-1, None], y[1:]), (y[:-1, None], y[1:])]
    model = ESNRegressor(
        8, washout=3, network=SimulatedNetwork(graphs.ring(3)), random_state=0
    ).fit(given)
    with pytest.raises(DataError, match="no samples"):
        model.forecast(5)


def test_sequences_that_are_too_short_are_named():
    X, y = shares(())[0]
    model = ESNRegressor(8, washout=5, network=SimulatedNetwork(graphs.ring(3)), random_state=0)
    with pytest.raises(
        DataError,
        match=r"the share of agent 1: n_samples=4, which is not more than the washout of 5",
    ):
        model.fit([(X, y), (X[:4], y[:4]), (X, y)])
    with pytest.raises(DataError, match=r"the share of agent 1, sequence 0: .*0 sample"):
        model.fit([(X, y), ([X[:0], X], [y[:0], y]), (X, y)])
    with pytest.raises(
        DataError,
        match=r"the share of agent 1: X is empty: .* has no samples a table of 0 rows, x\[:0\]",
    ):
        model.fit([(X, y), ([], []), (X, y)])


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("stream", sorted(learners()))
def test_streams(stream, empty):
    model = RVFLRegressor(
        6,
        stream=stream,
        network=SimulatedNetwork(graphs.ring(4)),
        random_state=0,
        alpha=1.0,
        activation="sigmoid",
    )
    for _ in range(3):
        model.partial_fit(shares(EMPTY[empty]))
    assert np.isfinite(model.coefficients_).all()


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize(
    "model",
    [
        AnchorLapClassifier(),
        LapKRRClassifier(),
        *(S3VMClassifier(solver=name) for name in sorted(smooth_solvers())),
    ],
    ids=repr,
)
def test_few_labels(model, empty):
    given = shares(EMPTY[empty], "few labels")
    model.set_params(network=SimulatedNetwork(graphs.ring(4)), random_state=0).fit(given)
    X = np.concatenate([own for own, _ in given])
    assert np.mean(model.predict(X) == (X[:, 0] > 0)) > 0.75


@pytest.mark.parametrize(
    "model",
    [
        RVFLRegressor,
        ESNRegressor,
        RVFLClassifier,
        AnchorLapClassifier,
        S3VMClassifier,
        LapKRRClassifier,
    ],
)
def test_nobody_has_rows(model):
    given = shares(range(4), "numbers" if model in (RVFLRegressor, ESNRegressor) else "labels")
    with pytest.raises(
        DataError,
        match=r"no agent of the network has a row|no row of the whole network has a label",
    ):
        model(network=SimulatedNetwork(graphs.ring(4)), random_state=0).fit(given)


VARIANTS = [
    pytest.param(kind, settings, id=f"{name} {words}")
    for name, kind in models().items()
    if kind.takes in ("rows", "sequences")
    for words, settings in variants(kind)
    if "n_anchors" not in settings  # more anchors than one agent has rows are refused
]
STREAMS = [
    pytest.param(kind, settings, id=f"{name} {words}")
    for name, kind in models().items()
    for words, settings in stream_variants(kind)
]


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize(("kind", "settings"), VARIANTS)
def test_every_model_with_every_algorithm(kind, settings, empty):
    """Agents without rows train with the others, and have coefficients like them."""
    for form in (np.asarray, sp.csr_array):
        model = make_small(kind, settings, SimulatedNetwork(graphs.ring(4)))
        if form is sp.csr_array and not get_tags(model).input_tags.sparse:
            continue
        model_data.fit(model, range(4), two_classes=True, form=form, empty=EMPTY_OF_CASES[empty])
        assert len(model.coefficients_) == 4
        for own in model.coefficients_:
            assert np.isfinite(own).all()


@pytest.mark.parametrize(("kind", "settings"), STREAMS)
def test_every_stream_whose_first_chunk_is_empty(kind, settings):
    answers = []
    for nothing_first in (True, False):
        model = make_small(kind, settings, SimulatedNetwork(graphs.ring(4)))
        first = {"classes": model_data.METALS} if is_classifier(model) else {}
        given = [
            model_data.sequences(k) if kind.takes == "sequences" else model_data.rows(k)
            for k in range(4)
        ]
        if kind.takes == "sequences":
            given = [(x[0], y[0]) for x, y in given]
        else:
            given = [(X, model_data.targets(model, k)) for k, X in enumerate(given)]
        if nothing_first:
            model.partial_fit([(X[:0], y[:0]) for X, y in given], **first)
        given[2] = tuple(part[:0] for part in given[2])
        answers.append(model.partial_fit(given, **first).coefficients_)
    np.testing.assert_allclose(*answers, atol=1e-12)


@pytest.mark.parametrize("solver", sorted(COLUMNS.kinds()))
def test_agents_without_columns(solver):
    """Agents with columns have the same rows: one of them may have no columns."""
    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((60, columns)) for columns in (2, 0, 1, 3)]
    y = tables[0][:, 0] + 10
    network = SimulatedNetwork(graphs.ring(4))
    model = VerticalRVFLRegressor(10, solver=solver, network=network, random_state=0)
    assert all(np.isfinite(own).all() for own in model.fit(tables, y).coefficients_)
    assert np.isfinite(model.predict(tables)).all()


@pytest.mark.parametrize("model", [RVFLRegressor, ESNRegressor])
def test_one_place_needs_rows(model):
    with pytest.raises(DataError, match="0 sample"):
        model(random_state=0).fit(np.empty((0, 3)), np.empty(0))


@pytest.mark.parametrize("name", ["rows.csv", "rows.npz"])
def test_a_site_whose_file_has_no_rows_is_told_before_anything_is_sent(tmp_path, name):
    """At a site an empty file is a mistake more often than a wish: the agent does not begin."""
    (tmp_path / "rows.csv").write_text("a,b,y\n")
    np.savez(tmp_path / "rows.npz", X=np.empty((0, 2)), y=np.empty(0))
    model, data = {"kind": "RVFLRegressor", "random_state": 0}, {"file": name, "target": "y"}
    write_sites(
        tmp_path, ["north", "south"], model, certificates=False, data={"north": data, "south": data}
    )
    done = CliRunner().invoke(
        main, ["agent", str(tmp_path / "north.toml"), "--insecure-loopback", "--give-up-after", "3"]
    )
    assert done.exit_code == 2
    assert done.stderr.startswith("peerlearn: ")
    assert str(tmp_path / name) in done.stderr
    assert "no rows" in done.stderr or "needs a row" in done.stderr
    assert not (tmp_path / "north").exists()
