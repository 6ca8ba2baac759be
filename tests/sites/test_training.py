"""[model] of all kinds, and sites whose rows mostly have no label: what is trained there predicts
alone.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from peerlearn import NetworkSearchCV, SimulatedNetwork, graphs
from peerlearn.algorithms import ConjugateGradient
from peerlearn.algorithms.smooth import LBFGS, NEXT, GradientTracking, StepRule
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.cli import main
from peerlearn.errors import InputError
from peerlearn.models import archive
from peerlearn.network.peers import certificates
from peerlearn.sites.plan import read_plan
from peerlearn.sites.training import (
    classifies,
    learns_in_order,
    make_model,
    may_lack_labels,
    read_model,
    settings_to_compare,
)
from peerlearn.toml_reader import TomlTable, toml
from tests.support.site_processes import run, write_sites

S3VM = {"kind": "S3VMClassifier", "random_state": 0}
ANCHORS = {"kind": "AnchorLapClassifier", "random_state": 0}
ESN = {"kind": "ESNRegressor", "random_state": 0, "n_reservoir": 20, "washout": 5}
NAMES = ["north", "south", "west"]
COLUMNS = ["age", "dose", "score"]
RNG = np.random.default_rng(5)
ILL = RNG.permutation(np.arange(150) % 3 == 0)
X = RNG.standard_normal((150, 3)) * [10, 1, 1] + np.where(ILL[:, None], [25, 2, 0], [-15, -1, 0])
KNOWN = RNG.random(150) < 0.2
SHARES = dict(zip(NAMES, np.split(np.arange(150), [60, 100]), strict=True))


def test_models_of_all_kinds():
    model = make_model({**S3VM, "C1": 2, "positive_share": 0.25})
    assert (model.C1, model.C2, model.positive_share, model.solver) == (2, 1.0, 0.25, LBFGS())
    model = make_model({**ANCHORS, "width": 0.5, "n_anchors": 30})
    assert (model.width, model.n_anchors, model.rank) == (0.5, 30, None)
    model = make_model({**ESN, "penalty": "lasso", "solver": "cg", "leak": 0.5})
    assert (model.penalty, model.leak, model.solver) == ("lasso", 0.5, ConjugateGradient())
    kinds = (
        "RVFLClassifier",
        "RVFLRegressor",
        "S3VMClassifier",
        "AnchorLapClassifier",
        "ESNRegressor",
    )
    assert [classifies({"kind": kind}) for kind in kinds] == [True, False, True, True, False]
    assert [may_lack_labels({"kind": kind}) for kind in kinds] == [False, False, True, True, False]
    assert [learns_in_order({"kind": kind}) for kind in kinds] == [False, False, False, False, True]
    assert not may_lack_labels({})


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        ("tracking", GradientTracking()),
        (
            {"name": "next", "tolerance": 1e-3, "surrogate": "linear"},
            NEXT(tolerance=1e-3, surrogate="linear"),
        ),
        ({"name": "next", "step": {"alpha0": 0.6, "delta": 0.8}}, NEXT(step=StepRule(0.6, 0.8))),
    ],
)
def test_solvers_by_name_or_table(solver, expected):
    assert make_model({**S3VM, "solver": solver}).solver == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {**S3VM, "random_state": "0"},
            "random_state has to be a whole number, the same at every site",
        ),
        ({"kind": "AnchorLapClassifier"}, "random_state has to be a whole number"),
        ({**S3VM, "C3": 1.0}, "C3 is not a parameter of S3VMClassifier: "),
        ({**S3VM, "network": 1}, "network is not a parameter of S3VMClassifier"),
        ({**S3VM, "C1": 0}, "C1 is 0: give a number above 0"),
        ({**S3VM, "positive_share": 2}, "positive_share is 2: give a number between 0 and 1"),
        ({**S3VM, "solver": "admm"}, "solver 'admm' is not known"),
        (
            {**S3VM, "solver": {"name": "next", "tolerence": 1}},
            "tolerence is not a setting of NEXT: did you mean tol",
        ),
        (
            {**S3VM, "solver": {"name": "next", "step": {"alpha": 1}}},
            "alpha is not a setting of StepRule: did you",
        ),
        ({**S3VM, "solver": {"name": "next", "step": 3}}, "step is 3: give a StepRule"),
        ({**ANCHORS, "solver": "auto"}, "solver is not a parameter of AnchorLapClassifier: "),
        ({**ANCHORS, "width": "wide"}, "width "),
        ({**ANCHORS, "rank": 9, "n_anchors": 3}, "rank=9 is more than n_anchors=3 allow"),
        ({**ESN, "density": 0}, "density is 0: give a number from"),
        (
            {**ESN, "penalty": "lasso", "solver": "cg"},
            "ConjugateGradient solves ridge problems only: for a Lasso penal",
        ),
        (
            {**ESN, "alpha": 0, "solver": {"name": "admm"}},
            "ADMM cannot tell whether the data determine the coeffi",
        ),
        (
            {**ESN, "feedback_scaling": 0.1},
            "feedback_scaling is 0.1, and a model whose outputs are fed back cannot",
        ),
        ({**ESN, "feedback_scaling": "much"}, "feedback_scaling must be an instance of"),
        (
            {"kind": "S3VM", "random_state": 0},
            "kind 'S3VM' is not known: did you mean S3VMClassifier?",
        ),
        ({"kind": ["S3VM"]}, r"kind ['S3VM'] is not known: there are AnchorLapClassifier, ESNR"),
        (
            {"kind": "LapKRRClassifier"},
            "kind LapKRRClassifier has no place in a file, because nobody can predict alone",
        ),
        (
            {"kind": "VerticalRVFLClassifier"},
            "train and predict by a script over PeerNetwork that all sites run",
        ),
    ],
)
def test_models_that_cannot_be_used(tmp_path, settings, said):
    with pytest.raises(InputError) as raised:
        read_model(TomlTable(settings, tmp_path / "site.toml", "model."))
    assert f"[model] in {tmp_path / 'site.toml'} cannot be used: " in str(raised.value)
    assert said in str(raised.value)


SEARCH = {"kind": "RVFLClassifier", "random_state": 0, "n_hidden": 15, "activation": "tanh"}
GRID = {"grid": {"alpha": [0.1, 50.0]}, "cv": 3}


def test_a_search_is_made_from_its_table():
    search = make_model({**SEARCH, "search": {**GRID, "scoring": "accuracy"}})
    assert isinstance(search, NetworkSearchCV)
    assert (search.estimator.n_hidden, search.cv, search.random_state) == (15, 3, 0)
    search.check_settings()
    assert classifies({**SEARCH, "search": GRID})
    told = settings_to_compare({**SEARCH, "search": GRID})
    assert told["model.kind"] == "RVFLClassifier"
    assert told["model.search"] == '{"cv": 3, "grid": {"alpha": [0.1, 50.0]}}'
    assert "model.search" not in settings_to_compare(SEARCH)


@pytest.mark.parametrize(
    ("model", "search", "said"),
    [
        (SEARCH, {"cv": 3}, "search needs a table grid with lists of values"),
        (SEARCH, {"grid": 3}, "search needs a table grid"),
        (SEARCH, {**GRID, "folds": 3}, "folds is not a setting of search"),
        (SEARCH, {"grid": {"alpha": 3.0}}, "param_grid cannot be used"),
        (SEARCH, {"grid": {"alpha": [-3.0]}}, "alpha"),
        (SEARCH, {**GRID, "scoring": "r2"}, "scoring is 'r2'"),
        ({**SEARCH, "solver": "admm"}, GRID, "needs training by sums"),
        (S3VM, {"grid": {"C1": [1.0, 2.0]}}, "S3VMClassifier is none"),
    ],
)
def test_searches_that_cannot_be_used(tmp_path, model, search, said):
    with pytest.raises(InputError, match=re.escape(said)):
        read_model(TomlTable({**model, "search": search}, tmp_path / "site.toml", "model."))


@pytest.mark.processes
def test_sites_search_for_settings(tmp_path):
    labels = np.where(ILL, "ill", "well")
    for name, own in SHARES.items():
        table = pd.DataFrame(X[own], columns=COLUMNS)
        table.assign(state=labels[own]).to_csv(tmp_path / f"{name}.csv", index=False)
    certificates.make(tmp_path / "papers", NAMES)
    rows = {name: {"file": f"{name}.csv", "target": "state"} for name in NAMES}
    write_sites(tmp_path, NAMES, {**SEARCH, "search": GRID}, data=rows)
    done = run(*(("agent", f"{name}.toml") for name in NAMES), folder=tmp_path)
    assert [code for code, _ in done] == [0, 0, 0], done
    assert all("by 3-fold cross-validation of 2 candidates" in said for _, said in done)
    scale = X.std(axis=0)
    rows_here = (X - X.mean(axis=0)) / scale
    search = make_model({**SEARCH, "search": GRID}, SimulatedNetwork(graphs.complete(3))).fit(
        [(rows_here[own], labels[own]) for own in SHARES.values()]
    )
    for name in NAMES:
        saved = archive.load(tmp_path / name / "model.npz")
        assert saved.model.alpha == search.best_params_["alpha"]
        np.testing.assert_allclose(
            saved.model.coefficients_[0], search.coefficients_[0], rtol=1e-6, atol=1e-9
        )


def test_settings_that_sites_compare():
    told = settings_to_compare(S3VM)
    assert told == settings_to_compare({**S3VM, "C1": 1, "solver": {"name": "lbfgs"}})
    assert told["model.solver"] == repr(LBFGS())
    assert told != settings_to_compare({**S3VM, "solver": "tracking"})
    assert settings_to_compare({**ANCHORS, "power": 3})["model.power"] == 3
    assert set(settings_to_compare(ANCHORS)) == {
        f"model.{key}" for key in make_model(ANCHORS).get_params(deep=False)
    } - {"model.network"} | {"model.kind"}


def frame(rows, known=KNOWN):
    labels = np.where(known, np.where(ILL, "ill", "well"), None)
    return pd.DataFrame(X[rows], columns=COLUMNS).assign(outcome=labels[rows])


def sites(folder, model):
    """One with empty cells, one with missing values, and one with no label at all; what each learns
    from.
    """
    frame(SHARES["north"]).to_csv(folder / "north.csv", index=False)
    frame(SHARES["south"]).to_parquet(folder / "south.parquet")
    bare = frame(SHARES["west"], np.zeros(150, bool))
    np.savez(
        folder / "west.npz",
        X=bare[COLUMNS].to_numpy(),
        y=np.full(len(bare), -1),
        columns=np.array(COLUMNS),
    )
    files = dict(zip(NAMES, ["north.csv", "south.parquet", "west.npz"], strict=True))
    data = {name: {"file": file, "target": "outcome"} for name, file in files.items()}
    write_sites(folder, NAMES, model, certificates=False, data=data)
    labels = [frame(SHARES[name]).outcome.fillna("-1").to_numpy(dtype=str) for name in NAMES[:2]]
    return [*labels, np.full(len(bare), -1)]


@pytest.mark.processes
def test_sites_with_few_labels(tmp_path):
    targets = sites(tmp_path, ANCHORS)
    done = run(
        *(("agent", f"{name}.toml", "--insecure-loopback") for name in NAMES), folder=tmp_path
    )
    assert [code for code, _ in done] == [0, 0, 0], done
    network = SimulatedNetwork(graphs.linear(3))
    mean, deviation = mean_and_deviation(network, [X[SHARES[name]] for name in NAMES])
    scaled = [(X[SHARES[name]] - mean[0]) / deviation[0] for name in NAMES]
    wanted = make_model(ANCHORS, network).fit(list(zip(scaled, targets, strict=True)))
    for k, name in enumerate(NAMES):
        saved = archive.load(tmp_path / name / "model.npz")
        assert np.allclose(saved.model.coefficients_[0], wanted.coefficients_[k], rtol=0, atol=1e-9)
        assert saved.model.classes_.tolist() == ["ill", "well"]
        known = np.count_nonzero(KNOWN[SHARES[name]]) if name != "west" else 0
        assert (
            f"agent {name}: {known} rows have a label\n"
            in (tmp_path / name / "agent.log").read_text()
        )
    frame(slice(None), np.arange(150) < 100).to_csv(tmp_path / "all.csv", index=False)
    told = CliRunner().invoke(
        main, ["predict", str(tmp_path / "west" / "model.npz"), str(tmp_path / "all.csv")]
    )
    assert told.exit_code == 0, told.stderr
    assert "on 100 rows" in told.stderr
    assert float(told.stderr.split()[1]) > 0.95


@pytest.mark.processes
def test_sites_whose_rows_are_times(tmp_path):
    """A site's table is one sequence, in the order of its rows; what is saved there predicts the
    next rows.
    """
    times = {name: np.arange(60 + 20 * k) for k, name in enumerate(NAMES[:2])}
    for name, t in times.items():
        wave = np.sin(0.3 * t + len(name))
        pd.DataFrame({"now": 40 + 3 * wave, "next": np.append(wave[1:], 0)}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    data = {name: {"file": f"{name}.csv", "target": "next"} for name in times}
    write_sites(tmp_path, [*times], ESN, certificates=False, data=data)
    done = run(
        *(("agent", f"{name}.toml", "--insecure-loopback") for name in times), folder=tmp_path
    )
    assert [code for code, _ in done] == [0, 0], done
    tables = [pd.read_csv(tmp_path / f"{name}.csv") for name in times]
    network = SimulatedNetwork(graphs.linear(2))
    mean, deviation = mean_and_deviation(network, [table[["now"]].to_numpy() for table in tables])
    shares = [
        ((table[["now"]].to_numpy() - mean[0]) / deviation[0], table["next"].to_numpy())
        for table in tables
    ]
    wanted = make_model(ESN, network).fit(shares)
    for k, name in enumerate(times):
        saved = archive.load(tmp_path / name / "model.npz")
        assert np.allclose(saved.model.coefficients_[0], wanted.coefficients_[k], rtol=0, atol=1e-8)
    told = CliRunner().invoke(
        main, ["predict", str(tmp_path / "south/model.npz"), str(tmp_path / "north.csv")]
    )
    assert told.exit_code == 0, told.stderr
    assert float(told.stderr.split()[1]) > 0.9
    assert "on 55 rows after the washout of 5" in told.stderr


def test_rows_in_time_are_not_dealt_at_random(tmp_path):
    with pytest.raises(
        InputError, match="the model learns from rows in their order, and they are dealt at random"
    ):
        read_plan(network_file(tmp_path, ESN))


def network_file(folder, model, **data):
    frame(slice(None)).to_csv(folder / "rows.csv", index=False)
    values = {
        "run": "few",
        "output": "out",
        "network": {"agents": 2, "graph": "linear"},
        "data": {"file": "rows.csv", "target": "outcome", "split": "stratified", **data},
        "model": model,
    }
    (folder / "network.toml").write_text(toml(values))
    return folder / "network.toml"


def test_rows_that_nobody_trains_on_have_labels(tmp_path):
    plan = read_plan(network_file(tmp_path, ANCHORS, test_fraction=0.5))
    X_test, y_test = plan.rows.test
    assert len(X_test) == len(y_test) == -(-np.count_nonzero(KNOWN) // 2)
    assert set(y_test) == {"ill", "well"}
    dealt = np.concatenate([y for _, y in plan.rows.shares])
    assert len(dealt) == 150 - len(y_test)
    assert np.count_nonzero(dealt == "-1") == np.count_nonzero(~KNOWN)
    assert sorted(
        map(tuple, np.vstack([X_test, *(share for share, _ in plan.rows.shares)]))
    ) == sorted(map(tuple, X))


@pytest.mark.processes
def test_a_whole_network_with_few_labels(tmp_path):
    network_file(tmp_path, {**S3VM, "positive_share": 0.67}, test_fraction=0.5)
    ((code, words),) = run(("up", "network.toml"), folder=tmp_path)
    assert code == 0, words
    lines = [line.split() for line in words.splitlines() if line.strip().startswith("agent-")]
    assert [line[:2] for line in lines] == [["agent-0", "done"], ["agent-1", "done"]]
    assert all(float(line[-2]) > 90 for line in lines), words
    models = [archive.load(tmp_path / "out" / f"agent-{k}" / "model.npz").model for k in range(2)]
    assert np.allclose(models[0].coefficients_, models[1].coefficients_, rtol=0, atol=1e-4)
    assert models[0].positive_share_ == 0.67
