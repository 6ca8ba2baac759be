"""What `peerlearn up` ends with: scores alone, together and in one place, on rows that nobody
trained on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from peerlearn import RVFLClassifier, RVFLRegressor
from peerlearn.models import archive
from peerlearn.sites.outcome import Scores, measure
from peerlearn.sites.plan import read_plan
from peerlearn.toml_reader import toml

KINDS = {"iris": (RVFLClassifier, accuracy_score), "diabetes": (RVFLRegressor, r2_score)}


def plan_of(folder, name, kind):
    values = {
        "run": "r",
        "output": "out",
        "network": {"agents": 3, "graph": "ring"},
        "data": {"name": name, "test_fraction": 0.4},
        "model": {"kind": kind.__name__, "n_hidden": 15, "random_state": 0},
    }
    (folder / "network.toml").write_text(toml(values))
    return read_plan(folder / "network.toml")


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def trained(plan, kind):
    """A model in every agent's folder that has learned from all rows."""
    X, y = (np.concatenate(parts) for parts in zip(*plan.rows.shares, strict=True))
    model = kind(15, random_state=0).fit(standardised(X), y)
    for name in plan.agents:
        plan.folder(name).mkdir(parents=True)
        archive.save(
            model, plan.folder(name) / "model.npz", center=X.mean(axis=0), scale=X.std(axis=0)
        )


@pytest.mark.parametrize("name", list(KINDS))
def test_scores_are_those_of_models_trained_by_hand(name, tmp_path):
    kind, metric = KINDS[name]
    plan = plan_of(tmp_path, name, kind)
    trained(plan, kind)
    outcome = measure(plan)
    X_test, y_test = plan.rows.test
    assert outcome.test_rows == len(y_test)
    for agent, (X, y) in zip(plan.agents, plan.rows.shares, strict=True):
        found = (
            kind(15, random_state=0)
            .fit(standardised(X), y)
            .predict((X_test - X.mean(axis=0)) / X.std(axis=0))
        )
        assert outcome.alone[agent] == pytest.approx(metric(y_test, found), abs=1e-9)
    X, y = (np.concatenate(parts) for parts in zip(*plan.rows.shares, strict=True))
    found = (
        kind(15, random_state=0)
        .fit(standardised(X), y)
        .predict((X_test - X.mean(axis=0)) / X.std(axis=0))
    )
    assert outcome.in_one_place == pytest.approx(metric(y_test, found), abs=1e-9)
    assert list(outcome.together.values()) == pytest.approx([outcome.in_one_place] * 3, abs=1e-9)
    assert len(set(outcome.alone.values())) > 1


def test_an_agent_that_cannot_learn_alone_is_counted(tmp_path):
    plan = plan_of(tmp_path, "iris", RVFLClassifier)
    trained(plan, RVFLClassifier)
    X, y = plan.rows.shares[1]
    one_class = (X[y == y[0]], y[y == y[0]])
    shares = [plan.rows.shares[0], one_class, plan.rows.shares[2]]
    outcome = measure(replace(plan, rows=replace(plan.rows, shares=shares)))
    assert list(outcome.alone) == ["agent-0", "agent-2"]
    assert outcome.lines()[1].endswith("; 1 of 3 agents cannot learn from their own rows")


def test_what_is_shown():
    together = dict.fromkeys("ab", 0.94)
    assert Scores(True, 1450, {"a": 0.518, "b": 0.704}, together, 0.9401).lines() == [
        "Test accuracy (1,450 rows)",
        "  alone         61.1 % on average, 51.8 % to 70.4 %",
        "  together      94.0 %",
        "  in one place  94.0 %",
    ]
    assert Scores(False, 10, {}, together, 0.95).lines() == [
        "Test R2 (10 rows)",
        "  alone         2 of 2 agents cannot learn from their own rows",
        "  together      0.9400",
        "  in one place  0.9500",
    ]
