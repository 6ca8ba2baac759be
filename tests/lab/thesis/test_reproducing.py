"""Every reproduction of the thesis, at its smallest size and on made-up data: read, run, reported
and judged.
"""

from __future__ import annotations

import tomllib

import pytest
from sklearn import datasets

from peerlearn.lab.analysis.expectations import VERDICTS
from peerlearn.lab.checking.read import read
from peerlearn.lab.description import data_facts as facts
from peerlearn.lab.thesis.files import chapter_of, reproductions
from peerlearn.lab.thesis.reproducing import reproduce
from tests.support.made_up_data import write_made_up
from tests.support.pages import ROOT

KNOWN = reproductions()
FILES = sorted(path.stem for path in (ROOT / "experiments").glob("*.toml"))


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made up")
    write_made_up(folder)
    return folder


@pytest.fixture(autouse=True)
def only_made_up_data(made_up, monkeypatch):
    def fetch_openml(**asked):
        raise AssertionError(f"a test has gone online: {asked}")

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    monkeypatch.setenv("PEERLEARN_DATA", str(made_up))
    _forget()
    yield
    _forget()


def _forget():
    """Data sets are kept by their names, and those of other tests are others."""
    facts._load_facts.cache_clear()
    facts._load.cache_clear()


def test_every_file_is_a_reproduction_and_every_chapter_with_results_has_some():
    assert sorted(each.name for each in KNOWN) == FILES
    assert {chapter_of(each.name) for each in KNOWN} == {4, 5, 6, 7, 8, 9, 10}
    assert [chapter_of(each.name) for each in KNOWN] == sorted(
        chapter_of(each.name) for each in KNOWN
    )


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_it_says_what_it_shows_and_what_it_expects(known):
    comparison = read(known.path, size="tiny")
    assert comparison.layout.tables or comparison.layout.figures
    assert len(comparison.layout.expectations) == known.expected >= 1
    assert comparison.layout.about
    assert known.shows
    for each in comparison.layout.expectations:
        assert (each.value is None) == bool(each.to)
        assert each.relation is not None or each.spread is not None


@pytest.mark.processes
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_it_runs_from_the_file_to_the_verdicts(known, tmp_path):
    done = reproduce(known, tmp_path, size="tiny", jobs=1)
    assert not done.failed
    assert not done.missing
    statuses = {row["status"] for row in done.results.rows}
    assert "done" in statuses
    assert statuses <= {"done", "not applicable"}
    assert len(done.results.rows) == done.results.facts["runs"]
    assert len(done.judgements) == known.expected == sum(done.counts.values())
    for each in done.judgements:
        assert each.verdict in VERDICTS
        assert each.expectation.source in each.sentence
        assert (each.ours is None) == (each.verdict == "not run") == (each.runs == 0)
    assert "<html" in (done.folder / "report.html").read_text(encoding="utf-8")


def models_in(value):
    """Every table that describes a model, however deep in a file."""
    if isinstance(value, dict):
        if "kind" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from models_in(each)


@pytest.mark.parametrize("name", FILES)
def test_readouts_of_the_thesis_have_no_free_constant(name):
    described = tomllib.loads((ROOT / "experiments" / f"{name}.toml").read_text())
    for model in models_in(described):
        if "RVFL" in model["kind"] or "ESN" in model["kind"]:
            assert model["fit_intercept"] is False, model
