"""report.html: one page that needs nothing else, says everything, and takes no name for markup."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from itertools import product

import pytest

from peerlearn import graphs
from peerlearn.errors import InputError, MissingExtra
from peerlearn.lab.description.specs import (
    Expectation,
    FigureSpec,
    Layout,
    StatisticsSpec,
    TableSpec,
)
from peerlearn.lab.report import about
from peerlearn.lab.report.build import make_report, report_of
from tests.support.lab_rows import graph_of, results_of, row, usual

HOSTILE = """<script>alert("x")</script><img src=x onerror='y'>&lt;"""
VOID = {"meta", "link", "img", "br"}


class Reader(HTMLParser):
    """Every element is closed by its own end, and everything that could be fetched is known."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.references, self.words, self.ids = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        known = dict(attributes)
        self.references += [
            known[name] for name in ("src", "href", "srcset", "data", "action") if name in known
        ]
        self.ids += [known["id"]] if "id" in known else []
        assert not [name for name in known if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read(page):
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


def made(folder, rows, layout=None, swept=("agents",), **facts):
    results_of(folder, rows, layout, swept, **facts)
    return read(make_report(folder)[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def page(folder):
    rows = usual(runs=6)
    rows += [
        row("G50C", "SVR", status="not applicable", failure="it measures, and targets are classes"),
        row(
            "G50C",
            "KNN",
            fold=0,
            status="failed",
            failure="ValueError: too few",
            traceback="Traceback\n  line 1",
        ),
        row(
            "G50C",
            "KNN",
            fold=1,
            status="failed",
            failure="ValueError: too few",
            traceback="Traceback\n  line 1",
        ),
    ]
    layout = Layout(
        title="Learning together",
        about="What it is.\n\nHow it is done.",
        figures=(FigureSpec("e", "lines", "error", "agents"), FigureSpec("none", "bars", "mae")),
        statistics=(StatisticsSpec("error", over=("data", "agents")),),
        expectations=(
            Expectation("error", {"data": "G50C", "model": "C-RVFL"}, "table 1", 0.06, 0.01),
            Expectation("error", {"data": "G50C", "model": "C-RVFL"}, "table 2", 0.5, 0.01),
        ),
        missing={"Sylva": "not at hand: get it from the challenge's page"},
        size="quick",
    )
    networks = [graph_of(folder, "ER", graphs.ring(5), agents=5)]
    return made(
        folder,
        rows,
        layout,
        graphs=networks,
        folds=3,
        repetitions=2,
        protocol={"name": "rows", "deal": "even"},
    )


def test_nothing_is_fetched(folder, page):
    assert page.references
    for reference in page.references:
        assert reference.startswith(("data:", "#"))
    assert {reference[1:] for reference in page.references if reference[0] == "#"} <= set(page.ids)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search(
        r"url\(|@import|https?://(?!www\.w3\.org)", re.sub(r'"data:[^"]*"', "", text)
    )
    assert not {"script", "iframe", "object", "embed", "form", "base"} & set(page.tags)


def test_everything_is_told(page):
    for words in (
        "Learning together",
        "How it is done.",
        "156 done, 2 failed, 1 not applicable",
        "Folds 3 Repetitions 2 Seed 1",
        'Made at the size "quick"',
        "Sylva : not at hand: get it from the challenge's page",
        "Misclassification error, %",
        "The figure 'none' is not drawn, for no run has measured mae",
        "Friedman's test over 8 blocks",
        "within table 1 error: G50C, C-RVFL 0.06 ± 0.01",
        "Where ours differs table 2, error: G50C, C-RVFL is",
        "KNN on G50C, 2 of 2 runs: ValueError: too few Traceback of the first Traceback line 1",
        "Did not converge ADMM-RVFL on G50C, 4 of 24 runs",
        "SVR on G50C, 1 of 1 run: it measures, and targets are classes",
        "rows deal even",
        "G50C scale unit; alpha 1",
        "ER graph ring; agents 5, 10, 20, 40; weights metropolis",
        "python 3.11.0, peerlearn 0.5.0, numpy 2.0.0, platform Linux",
        "numpy 2.0.0: delete runs/ to run them again.",
    ):
        assert words in page.text, words
    assert page.tags.count("img") == 3  # lines, ranks, networks
    assert "1 within , 1 outside" in page.text


def test_names_are_no_markup(tmp_path):
    rows = usual(data=(HOSTILE,), models={HOSTILE: 0.1, "C-" + HOSTILE: 0.2}, runs=2)
    rows.append(
        row(
            HOSTILE,
            "z",
            status="failed",
            failure=HOSTILE,
            traceback=HOSTILE,
            note=HOSTILE,
            warnings=HOSTILE,
        )
    )
    layout = Layout(
        HOSTILE,
        HOSTILE,
        missing={HOSTILE: HOSTILE},
        text=HOSTILE,
        tables=(TableSpec(HOSTILE, "error"),),
    )
    page = made(tmp_path, rows, layout)
    assert "script" not in page.tags
    assert page.text.count(HOSTILE) > 10


def test_a_page_of_almost_nothing(tmp_path):
    page = made(tmp_path, [row("A", "x", error=0.1)], Layout(), ())
    assert page.text.startswith("A comparison A comparison")
    nothing = made(tmp_path, [row("A", "x", status="failed", failure="no")], Layout(), ())
    assert "x on A, 1 of 1 run: no" in nothing.text
    assert "Misclassification error, %" in nothing.text  # named in the file, and no run has it


def test_made_again_it_is_the_same(folder, page):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    made_again = make_report(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert made_again[-1] == folder / "report.html"
    assert all(path in before for path in made_again)


def test_what_an_earlier_report_made_does_not_stay(tmp_path):
    rows = [row("A", model, fold=fold, error=0.1 + fold) for model in "xy" for fold in range(4)]
    for kind, layout in (
        (
            "old",
            Layout(
                tables=(TableSpec("old", "error", ("data",)),),
                figures=(FigureSpec("old", "bars", "error"),),
            ),
        ),
        (
            "new",
            Layout(
                tables=(TableSpec("new", "error", ("data",)),),
                figures=(FigureSpec("new", "bars", "error"),),
            ),
        ),
    ):
        made(tmp_path, rows, layout, ())
        assert sorted(
            path.name for place in ("tables", "figures") for path in (tmp_path / place).iterdir()
        ) == [
            *(["mine.csv"] if kind == "new" else []),
            *(f"{kind}.{ending}" for ending in ("csv", "md", "png", "svg", "tex")),
        ]
        (tmp_path / "tables" / "mine.csv").touch()  # whoever wrote it


@pytest.mark.parametrize("kind", ["lines", "boxes", "bars", "curves"])
def test_a_logarithm_of_zero_is_drawn_linear_and_said(tmp_path, kind):
    def told(value):
        curve = {"curve.c": [value, 1.0], "curve.c.at": [1.0, 2.0]}
        rows = [row("A", "x", "N", agents=agents, error=value, **curve) for agents in (5, 10)]
        x, y = ("agents" if kind == "lines" else ""), ("curve.c" if kind == "curves" else "error")
        page = made(tmp_path, rows, Layout(figures=(FigureSpec("f", kind, y, x, log="y"),)))
        return "The axis of y is linear, because it has values of zero or less." in page.text

    assert told(0.0)
    assert not told(0.5)


def test_runs_that_are_not_drawn_are_told_below_the_figure(tmp_path):
    rows = [row("A", model, fold=fold, error=0.1 + fold) for model in "xy" for fold in range(4)]
    rows[1] = row("A", "x", fold=1, status="failed", failure="no")
    rows[6] = row("A", "y", fold=2, error=float("inf"))
    page = made(tmp_path, rows, Layout(figures=(FigureSpec("f", "boxes", "error"),)), ())
    assert "Of x on A 1 of 4 runs failed and are left out." in page.text
    assert "Of y on A 1 of 4 runs have no finite value." in page.text


def test_a_figure_that_was_asked_for_and_is_not_drawn_is_told(tmp_path):
    rows = [row("A", model, error=error) for model, error in (("x", 0.1), ("y", 0.2))]
    why = "blocks with values of all 2 models are 1, and at least 6 are needed at level 0.05"
    for tests in ((), (StatisticsSpec("error"),)):
        results_of(
            tmp_path, rows, Layout(figures=(FigureSpec("cd", "ranks", "error"),), statistics=tests)
        )
        made = report_of(tmp_path)
        assert made.said == [f"The figure 'cd' is not drawn: Friedman's test is not made: {why}."]
        assert made.said[0] in read(made.files[-1]).text
    results_of(tmp_path, rows[:1], Layout(figures=(FigureSpec("cd", "ranks", "error"),)))
    alone = "There is nothing to test: x alone has misclassification error."
    assert report_of(tmp_path).said == [f"The figure 'cd' is not drawn: {alone}"]
    results_of(tmp_path, rows, Layout(statistics=(StatisticsSpec("error"),)))
    assert report_of(tmp_path).said == []  # nobody asked for it


def test_runs_that_did_not_converge_are_told_by_what_was_swept(tmp_path):
    key, rows = "solver.max_iterations", []
    for steps, agents, fold in product((20, 100), (4, 8), (0, 1)):
        said = {
            "converged": steps > 20 and fold == 1,
            "warnings": f"stopped after {steps} iterations",
        }
        settings = {"solver": {"name": "admm", "max_iterations": steps}}
        rows.append(
            row(
                "A",
                "M",
                "N",
                agents=agents,
                fold=fold,
                settings=settings,
                error=0.1,
                **{key: steps},
                **said,
            )
        )
    page = made(tmp_path, rows, swept=(key, "agents"))
    assert (
        "M, solver.max_iterations = 20, on A, 4 of 4 runs: stopped after 20 iterations" in page.text
    )
    assert (
        "M, solver.max_iterations = 100, on A, 2 of 4 runs: stopped after 100 iterations"
        in page.text
    )
    assert "Did not converge : 6 runs of M." in page.text
    assert report_of(tmp_path).said == ["Did not converge: 6 runs of M"]


def test_notes_that_differ_in_numbers_are_one(tmp_path):
    said = ("rho = 0.5", "rho = 1.2e-03", "rho = 11", "sums by tree")
    results = results_of(
        tmp_path, [row("A", f"m{k % 2}", fold=k, note=note) for k, note in enumerate(said)]
    )
    assert about.notes(results) == [
        ("rho = 0.5", "m0, m1; 2 more with other numbers"),
        ("sums by tree", "m1"),
    ]


def test_only_files_of_reports_are_removed(tmp_path):
    rows = [row("A", "x", error=0.1)]
    (tmp_path / "mine.csv").touch()
    (tmp_path / ".report").write_text("mine.csv\ntables/../mine.csv\nresults.parquet\n")
    made(tmp_path, rows, Layout(), ())
    assert (tmp_path / "mine.csv").exists()
    assert (tmp_path / "results.parquet").exists()


def test_without_jinja(tmp_path, monkeypatch):
    results_of(tmp_path, [row("A", "x", error=0.1)])
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"pip install pyarrow jinja2 joblib$"):
        make_report(tmp_path)


def test_a_folder_without_results(tmp_path):
    with pytest.raises(InputError, match="does not hold results"):
        make_report(tmp_path)


def test_settings_that_differ_are_all_told(tmp_path):
    """But for the digest of code of one's own."""
    solvers = ({"name": "admm", "max_iterations": steps, "own": "f7"} for steps in (5, 10))
    settings = ({"solver": solver, "alpha": 1.0, "own": "c3"} for solver in solvers)
    rows = [
        row("A", "M", "N", settings=own, **{"solver.max_iterations": k})
        for k, own in enumerate(settings)
    ]
    results = results_of(tmp_path, rows, swept=("solver.max_iterations",))
    (told,) = about.entries(results, "model")
    assert told == (
        "M",
        "kind RVFL; where network; solver.name admm; solver.max_iterations 5, 10; alpha 1",
    )


def test_versions_that_differ_are_all_told(tmp_path):
    rows = [row("A", "x"), row("A", "y")]
    rows[1]["versions"] = json.dumps({"numpy": "2.1"})
    assert ("numpy", "2.0.0 and 2.1") in about.versions(results_of(tmp_path, rows))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3.14, "3.1 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds, words):
    assert about.duration(seconds) == words


def test_the_page_begins_with_what_the_tests_found(tmp_path):
    errors = {"good": 0.1, "also good": 0.101, "bad": 0.5}
    rows = []
    for fold, (model, error) in product(range(20), errors.items()):
        noise = 0.001 * fold * (-1) ** (fold + len(model))
        rows.append(row(model=model, fold=fold, error=error + noise))
    results_of(tmp_path, rows, Layout(statistics=(StatisticsSpec("error"),)))
    text = read(make_report(tmp_path)[-1]).text
    found = text.index("By misclassification error, good is first: ")
    assert found < text.index("Statistics Misclassification")
    assert "significantly better than bad" in text[found : found + 160]
    assert "not significantly different from also good" in text[found : found + 160]
