"""Results in Python: names that there are, a short text, a data frame, and what a search chose."""

from __future__ import annotations

import sys

import pytest

from peerlearn.errors import InputError
from peerlearn.lab import Comparison, Data, Model, Search, run
from peerlearn.lab.description.specs import Expectation, Layout, StatisticsSpec
from peerlearn.lab.report.build import make_report
from peerlearn.lab.runs.run import make_runs
from tests.support.lab_tiny import tiny

EXPECTED = Expectation("elsewhere", {"solver.steps": 5}, "table 1", 0.5, 0.1)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    layout = Layout(expectations=(EXPECTED,))
    return make_runs(
        tiny("m", "fails", layout=layout), tmp_path_factory.mktemp("small") / "mine", jobs=1
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            lambda results: results.mean("drw"),
            "drw is no metric of these results: did you mean draw?",
        ),
        (
            lambda results: results.spread("eror"),
            "eror is no metric of these results: did you mean error?",
        ),
        (
            lambda results: results.values("curve.wlk"),
            "curve.wlk is no metric of these results: did you mean curve.walk?",
        ),
        (
            lambda results: results.where({"modle": "m"}),
            "modle is no column of these results: did you mean model?",
        ),
        (
            lambda results: results.where({"model": "?"}).mean("drw"),
            "drw is no metric of these results: did you mean",
        ),
        (
            lambda results: results.mean("model"),
            "model is text and has no numbers: name a metric",
        ),
    ],
)
def test_a_name_that_no_run_has(results, asked, said):
    with pytest.raises(InputError) as refused:
        asked(results)
    assert str(refused.value).startswith(said)


def test_names_of_the_description_may_have_no_number(results):
    """A smaller size may lack what the file speaks of, and no run need have measured it."""
    for metric in ("elsewhere", "error", "common"):
        assert len(results.where({"model": "?"}).values(metric)) == 0
    assert results.where({"solver.steps": 5}).rows == []


def test_a_short_text_and_a_length(results):
    assert (repr(results), len(results)) == ("Results(60 runs of mine: 52 done, 8 failed)", 60)
    one = results.where({"model": "m", "data": "a", "agents": 4, "fold": 0, "repetition": 0})
    assert (repr(one), len(one)) == ("Results(1 run of mine: 1 done)", 1)
    none = results.where({"model": "?"})
    assert (repr(none), len(none)) == ("Results(0 runs of mine)", 0)


def test_a_data_frame(results, monkeypatch):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = results.to_pandas()
    assert list(frame.columns) == list(results.rows[0])
    assert frame["draw"].mean() == pytest.approx(results.mean("draw"))
    assert list(results.where({"model": "?"}).frame().columns) == list(frame.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        InputError,
        match="a data frame needs the package pandas, which is not installed: pip install",
    ):
        results.to_pandas()


@pytest.mark.parametrize("layout", [Layout(), Layout(statistics=(StatisticsSpec("error"),))])
def test_what_a_search_chose_is_shown_whatever_else_is(tmp_path, layout):
    models = tuple(Model(name, "RVFL", "centralised", {"n_hidden": 5}) for name in "ab")
    search = Search({"alpha": [0.1, 1.0]}, folds=2)
    found = run(
        Comparison((Data("iris"),), models, folds=2, search=search, layout=layout), tmp_path, jobs=1
    )

    assert "best.alpha" in found.facts["metrics"]
    make_report(tmp_path)
    assert (tmp_path / "tables/best.alpha.csv").exists()
