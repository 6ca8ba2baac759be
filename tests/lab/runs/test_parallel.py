"""Runs in other processes: the same table, little to send, and one that is killed takes no other
with it.
"""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from joblib import parallel_config

from peerlearn.data import DataSet
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net
from peerlearn.lab.results.store import Store
from peerlearn.lab.runs import run as running
from peerlearn.lab.runs.run import make_runs as run
from peerlearn.lab.runs.shared_comparison import Shared
from tests.support.lab_tiny import Tiny, table, tiny


@pytest.mark.processes
def test_two_jobs_make_the_same_table(tmp_path):
    one, two = (
        run(tiny("m", "fails", "warns"), tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2)
    )
    assert table(one) == table(two)
    assert len(one.rows) == 84


def test_the_back_end_that_the_user_has_chosen(tmp_path, monkeypatch):
    """Threads are in this process; others would not be."""
    monkeypatch.setenv("TINY_NOTE", "yes")
    jobs = []
    with parallel_config(backend="threading", n_jobs=3):
        results = run(
            tiny(data=["a"], folds=1), tmp_path, watch=lambda progress: jobs.append(progress.jobs)
        )
    assert {row["note"] for row in results.rows} == {str(os.getpid())}
    assert set(jobs) == {3}


def test_all_cores_unless_told_otherwise(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(running, "effective_n_jobs", lambda jobs: asked.append(jobs) or 1)
    run(tiny(data=["a"], folds=1), tmp_path)
    with parallel_config(n_jobs=5):
        run(tiny(data=["a"], folds=1), tmp_path)
    run(tiny(data=["a"], folds=1), tmp_path, jobs=7)
    assert asked == [-1, 5, 7]


def test_a_data_set_is_not_sent_with_every_run(tmp_path):
    rows = DataSet("mine", np.zeros((1000, 50)), np.zeros(1000), "regression", "given", None)
    comparison = Comparison(
        (Data("mine", given=rows),), (Model("m"),), (Net("ring", "ring", 3),), Tiny()
    )
    shared = Shared(comparison, Store.at(tmp_path))
    shared.send()
    sent = pickle.dumps(shared)
    assert len(sent) < 400
    there = pickle.loads(sent)
    assert [trial.key for trial in there.trials] == shared.keys
    assert pickle.loads(sent) is there
    assert pickle.dumps(there) == sent  # as Dask does, who sends things on
    shared.close()
    assert list(shared.store.folder.iterdir()) == []


@pytest.mark.processes
def test_a_process_that_is_killed_takes_no_other_run_with_it(tmp_path, caplog):
    comparison = tiny("killed", "m", data=["a"], agents=[4], repetitions=1)
    results = run(comparison, tmp_path, jobs=2)
    killed = [row for row in results.rows if row["model"] == "killed" and row["fold"] == 1]
    assert [row["status"] for row in killed] == ["failed"]
    assert "ended from outside, twice" in killed[0]["failure"]
    assert all(row["status"] == "done" for row in results.rows if row not in killed)
    assert "a, killed, ring, agents 4, fold 2 of 3" in caplog.text
