"""What a notebook shows: reports and results as tables, and the notebook of the site runs."""

from __future__ import annotations

import re
from html import unescape

import nbformat
import pytest
from nbclient import NotebookClient

from peerlearn.algorithms import Report
from peerlearn.lab.results import results as lab_results
from peerlearn.network.base import Counts
from tests.support.lab_rows import results_of, row
from tests.support.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs").glob("tutorials/*.ipynb"))


def cells(html):
    return [unescape(text) for text in re.findall(r"<t[hd]>(.*?)</t[hd]>", html)]


def test_a_report_is_a_table_with_the_lines_of_its_text():
    report = Report("Gram", True, 1200, (0.5, 1e-7), Counts(3, 4, 5_000_000), note="by <b>tree</b>")
    html = report._repr_html_()
    shown = cells(html)
    lines = [f"{name:<14}{value}" for name, value in zip(shown[::2], shown[1::2], strict=True)]
    assert "\n".join(lines) == str(report)
    assert html.startswith("<table>")
    assert "<b>" not in html


def test_results_are_a_table_of_means(tmp_path):
    rows = [
        row("A", "<script>x</script>", error=0.25),
        row("A", "<script>x</script>", fold=1, error=0.75),
        row("A", "together", "ring", error=0.5),
        row("A", "broken", status="failed"),
    ]
    html = results_of(tmp_path / "r", rows)._repr_html_()
    assert "<script>" not in html
    assert cells(html) == [
        *("data", "model", "network", "runs", "error"),
        *("A", "<script>x</script>", "", "2", "0.5 ± 0.35"),
        *("A", "together", "ring", "1", "0.5 ± 0"),
        *("A", "broken", "", "1", "n/a"),
    ]
    assert "4 runs of r: 3 done, 1 failed" in html


def test_long_results_are_cut_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(lab_results, "MOST_SHOWN", 2)
    rows = [row("A", f"model {number}", error=0.1) for number in range(5)]
    html = results_of(tmp_path, rows)._repr_html_()
    assert html.count("<tr>") == 3
    assert html.endswith("<p>and 3 more lines: .to_pandas() has all runs</p>")


@pytest.mark.processes
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_show_what_is_kept_in_them(path, tmp_path, monkeypatch):
    """The tables in the file are those of a new run; texts are not compared, pictures are
    counted.
    """
    monkeypatch.setenv("PYTHONPATH", str(path.parents[2] / "src"))
    kept = nbformat.read(path, as_version=4)
    found = NotebookClient(
        nbformat.from_dict(kept), timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert tables(found) == tables(kept) != []
    assert pictures(found) == pictures(kept) > 0


def outputs(notebook, kind):
    parts = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [part.data[kind] for part in parts if kind in part.get("data", {})]


def tables(notebook):
    """The tables, without error bounds: their digits depend on how a processor rounds."""
    bound = re.compile(r"(error bound</th><td>)[^<]*")
    return [bound.sub(r"\1", html) for html in outputs(notebook, "text/html")]


def pictures(notebook):
    return len(outputs(notebook, "image/png"))


def test_there_is_a_notebook():
    assert NOTEBOOKS
