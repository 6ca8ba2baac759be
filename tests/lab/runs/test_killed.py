"""Runs that are killed, and files that are damaged: nothing is lost but the runs under way."""

from __future__ import annotations

import logging

import pytest

from peerlearn.lab.report.build import make_report
from peerlearn.lab.results.results import Results, counts
from peerlearn.lab.runs.run import make_runs as run
from tests.support.lab_tiny import kept, started, table, tiny, wait_for, watched

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(tiny(), tmp_path_factory.mktemp("undisturbed"), jobs=1)


@pytest.mark.parametrize(("jobs", "kills"), [(1, (20,)), (2, (10, 40))])
def test_killed_again_and_again_and_resumed_it_is_the_same_table(
    undisturbed, tmp_path, jobs, kills
):
    for rows in kills:
        with started(tmp_path, jobs) as process:
            wait_for(
                lambda rows=rows, process=process: (
                    kept(tmp_path) >= rows or process.poll() is not None
                )
            )
            assert process.poll() is None
    found, (told, watch) = kept(tmp_path), watched()
    results = run(tiny(), tmp_path, jobs=1, watch=watch)
    assert told == {"kept": found, "done": len(results.rows) - found, "failed": 0}
    assert kills[-1] <= found < len(results.rows)
    assert table(results) == table(undisturbed)
    assert {path.name[:6] for path in (tmp_path / "runs").iterdir()} == {"batch-"}


def test_killed_it_leaves_what_can_be_shown(tmp_path):
    """All but the last moments; given again, the command has all of it before it begins."""
    with started(tmp_path, 1, pause=0.1) as process:
        wait_for(lambda: kept(tmp_path) >= 25 or process.poll() is not None)
    partly = Results.read(tmp_path)
    assert 5 < len(partly.rows) < 60
    assert f"60 runs: {len(partly.rows)} done, {60 - len(partly.rows)} not made yet" == counts(
        partly
    )
    make_report(tmp_path)
    first = []
    run(
        tiny(),
        tmp_path,
        jobs=1,
        watch=lambda progress: first.append(len(Results.read(tmp_path).rows)),
    )
    assert first[0] >= 25


def test_a_damaged_file_is_named_and_its_runs_are_made_again(undisturbed, tmp_path, caplog):
    with started(tmp_path, 1) as process:
        wait_for(lambda: kept(tmp_path) >= 3 or process.poll() is not None)
    first, second = sorted((tmp_path / "runs").glob("*.parquet"))[:2]
    first.write_bytes(first.read_bytes()[:-100])
    second.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        results = run(tiny(), tmp_path, jobs=1)
    assert table(results) == table(undisturbed)
    for file in (first, second):
        assert f"{file} is not a readable .parquet file" in caplog.text
        assert file.with_suffix(".damaged").exists()
    caplog.clear()
    run(tiny(), tmp_path, jobs=1)
    assert caplog.text == ""
