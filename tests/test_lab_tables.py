"""Tables: numbers by hand, what is missing told apart, and names that mean something to LaTeX or Markdown."""

from __future__ import annotations

import csv
import io
import math
import re
import string
import warnings

import numpy as np
import pytest
from rich.console import Console

from peerlearn.experiments.lab.layout import Layout, TableSpec
from peerlearn.experiments.lab.report.cells import Cells
from peerlearn.experiments.lab.report.table_text import as_csv, as_latex, as_markdown, latex, plain
from peerlearn.experiments.lab.report.tables import show, table_of, tables_of
from peerlearn.experiments.lab.report.whole import make_report
from tests.lab_rows import results_of, row, usual

HOSTILE = r"a_b & 100% #1 ^~\{x} <b>|`*[c](d)$e$"


def texts(table):
    return [[plain(entry) for entry in line.entries] for line in table.lines]


def printed(results, width=100):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(console, results)
    return console.file.getvalue()


def by_hand(tmp_path, **more):
    """Two data sets and three models, with everything that may be missing."""
    rows = [
        row("A", "one", error=0.1), row("A", "one", error=0.2, fold=1), row("A", "one", error=0.3, fold=2),
        row("A", "two", "N", error=0.05), row("A", "two", "N", fold=1, status="failed", failure="it was too big"),
        row("A", "three", "N", status="not applicable", failure="it classifies"),
        row("B", "one", error=0.5),
        row("B", "two", "N", status="failed", failure="no"), row("B", "two", "N", status="failed", failure="no"),
        row("B", "four", "N", error=0.5),
    ]  # fmt: skip
    return results_of(tmp_path, rows, **more)


def test_cells_by_hand(tmp_path):
    table = table_of(by_hand(tmp_path), TableSpec("t", "error", ("data",), unit="%"))
    assert table.title == "Misclassification error, %"
    assert table.names == ("one", "two", "three", "four")
    assert texts(table) == [
        ["20.00 ± 10.00", "5.00 (1 failed)", "n/a", "-"],
        ["50.00", "failed (2)", "-", "50.00"],
    ]
    assert [[entry.best for entry in line.entries] for line in table.lines] == [
        [False] * 4,  # two is better, but on one fold of three
        [False] * 4,
    ]
    assert table.notes == ("Mean ± standard deviation over 1 to 3 runs.",)
    assert table.failures == (
        "1 run of two on A failed: it was too big",
        "three is not applicable to A: it classifies",
        "2 runs of two on B failed: no",
    )


def test_a_centralised_model_stands_beside_every_network_and_a_sweep_beside_who_has_it(tmp_path):
    rows = [row("A", "C", error=0.1)]
    rows += [row("A", "D", "N", agents=k, error=k / 100) for k in (20, 5)]
    rows += [row("A", "E", "N", agents=k, p=p, error=p) for k in (20, 5) for p in (0.5, 0.25)]
    results = results_of(tmp_path, rows, swept=("agents", "p"))
    table = table_of(results, TableSpec("t", "error", ("agents", "p")))
    assert [line.place for line in table.lines] == [(20, 0.5), (20, 0.25), (5, 0.5), (5, 0.25)]  # the file's order
    assert texts(table)[1] == ["0.1000", "0.2000", "0.2500"]
    only = table_of(results, TableSpec("t", "error", ("data",), where={"agents": 5, "p": [0.5]}))
    assert texts(only) == [["0.1000", "0.0500", "0.5000"]]
    assert only.notes[0] == "Only agents = 5, p = 0.5."
    mixed = table_of(results, TableSpec("t", "error", ("data",), where={"model": "E"}))
    assert mixed.lines[0].entries[0].cell.mean == pytest.approx(0.375)
    assert mixed.notes[2:] == ("Means run over agents as well: 20, 5.", "Means run over p as well: 0.5, 0.25.")


def test_models_in_lines_are_compared_within_their_column(tmp_path):
    rows = [
        row("A", m, "N", agents=k, mcc=v) for m, k, v in (("x", 5, 0.1), ("y", 5, 0.2), ("x", 9, 0.3), ("y", 9, 0.1))
    ]
    table = table_of(results_of(tmp_path, rows, swept=("agents",)), TableSpec("t", "mcc", ("data", "model"), "agents"))
    assert [[entry.best for entry in line.entries] for line in table.lines] == [[False, True], [True, False]]


def test_decimals_follow_the_size_of_numbers(tmp_path):
    def written(*means, metric="rmse"):
        rows = [row("A", f"m{k}", "N", **{metric: mean}) for k, mean in enumerate(means)]
        return texts(table_of(results_of(tmp_path, rows), TableSpec("t", metric, ("data",))))[0]

    assert written(0.0583, 0.142) == ["0.0583", "0.1420"]
    assert written(12.3456, 1.5) == ["12.35", "1.50"]
    assert written(1234.5, 999.4) == ["1,234", "999"]
    assert written(3, 12) == ["3", "12"]
    assert written(1e-15, 0.3) == ["1.00e-15", "0.300"]
    assert written(0.0, 0.25) == ["0.000", "0.250"]
    assert written(-50.2, -3.0) == ["-50.20", "-3.00"]
    assert written(2e9, 1.0) == ["2.00e9", "1"]
    assert written(math.inf, 1.5) == ["inf", "1.50"]
    assert written(1_500_000, 3_000_000, metric="bytes") == ["1,500,000", "3,000,000"]


def test_the_best_of_those_that_have_the_same_runs(tmp_path):
    """One place is as good a rival as three networks, and who failed is none."""
    rows = [row("A", "one place", fold=fold, error=0.1) for fold in range(2)]
    for agents in (5, 10, 20):
        rows += [row("A", "all", "N", agents=agents, fold=fold, error=0.2) for fold in range(2)]
        rows += [row("A", "some", "N", agents=agents, error=0.05), row("A", "some", "N", fold=1, status="failed")]
    (line,) = table_of(results_of(tmp_path, rows, swept=("agents",)), TableSpec("t", "error", ("data",))).lines
    assert [entry.best for entry in line.entries] == [True, False, False]


def test_infinite_values_are_counted_and_zeros_are_short(tmp_path):
    values = {"inf": (math.inf, 1.0, 2.0), "nan": (math.nan, math.inf, 1.0), "zero": (0.0,) * 3, "one": (1.0, 1.5, 2.0)}
    rows = [row("A", name, fold=k, rmse=value) for name, own in values.items() for k, value in enumerate(own)]
    rows += [row("A", "huge", fold=k, rmse=1e200 * k) for k in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = table_of(results_of(tmp_path, rows), TableSpec("t", "rmse", ("data",)))
    assert texts(table) == [["inf (1 of 3 runs)", "nan (2 of 3 runs)", "0", "1.50 ± 0.50", "1.00e200"]]


def test_captions_have_all_notes_but_failures(tmp_path):
    rows = [*usual(), row("G50C", "L-RVFL", "ER", status="failed", failure="too big")]
    table = table_of(results_of(tmp_path, rows, swept=("agents",)), TableSpec("t", "error", ("data",)))
    (caption,) = re.findall(r"\\caption.*", as_latex(table))
    assert "Means run over agents as well: 5, 10, 20, 40." in caption
    assert "too big" not in caption


def test_who_sends_nothing_is_not_the_best(tmp_path):
    rows = [row("A", "C", bytes=0), row("A", "alone", "N", bytes=0), row("A", "x", "N", bytes=2_000_000)]
    rows.append(row("A", "y", "N", bytes=5_500_000))
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "bytes", ("data",), unit="MB"))
    assert table.title == "MB sent"
    assert (table.names, texts(table)) == (("alone", "x", "y"), [["0.00", "2.00", "5.50"]])
    assert [entry.best for entry in table.lines[0].entries] == [False, True, False]


def test_without_a_layout_there_is_a_table_per_metric(tmp_path):
    results = results_of(tmp_path, usual(), swept=("agents",))
    tables = tables_of(results)
    assert [table.spec.name for table in tables] == ["error", "seconds", "bytes"]
    assert tables[0].heads == ("Data set", "Agents")
    values = [
        each["error"]
        for each in results.rows
        if (each["data"], each["model"], each["agents"]) == ("G50C", "L-RVFL", 10)
    ]
    cell = tables[0].lines[1].entries[1].cell
    assert (cell.mean, cell.spread) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert cell.mean == results.where({"data": "G50C", "model": "L-RVFL", "agents": 10}).mean("error")


def test_lines_and_columns_without_anything_are_left_out(tmp_path):
    rows = [
        row("A", "x", error=0.1),
        row("B", "x", rmse=2.0),
        row("A", "y", error=0.2),
        row("B", "y", status="not applicable"),
    ]
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "error", ("data",)))
    assert [line.labels for line in table.lines] == [("A",)]
    empty = table_of(results_of(tmp_path, rows), TableSpec("t", "mae", ("data",)))
    assert (empty.lines, empty.notes[0]) == ((), "No run has measured mae.")
    for form in (as_csv, as_markdown, as_latex):
        assert form(empty)
    assert "No run has measured mae." in printed(results_of(tmp_path, rows, Layout("x", tables=(empty.spec,))))


def test_csv_has_plain_numbers(tmp_path):
    table = table_of(by_hand(tmp_path), TableSpec("t", "error", ("data",), unit="%"))
    lines = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert len(lines) == 8
    first = lines[0]
    assert (first["data"], first["model"], first["metric"], first["status"]) == ("A", "one", "error", "done")
    assert float(first["mean"]) == np.mean([0.1, 0.2, 0.3])
    assert float(first["spread"]) == np.std([0.1, 0.2, 0.3], ddof=1)
    assert first["runs"] == "3"
    assert [(line["mean"], line["spread"], line["failed"], line["status"]) for line in lines[1:4]] == [
        ("0.05", "", "1", "done"),
        ("", "", "0", "not applicable"),
        ("", "", "0", "not run"),
    ]


def unescaped(text):
    """LaTeX as it is read: no special letter is left that would act."""
    known = r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}|\\[#$%&_{}]|\$\\pm\$"
    return re.sub(known, "", text)


def test_latex_is_whole_and_names_are_escaped(tmp_path):
    rows = [
        row(HOSTILE, model, error=value, fold=fold) for model, value in (("x_1", 0.1), ("y", 2e-9)) for fold in (0, 1)
    ]
    text = as_latex(table_of(results_of(tmp_path, rows), TableSpec("my_table 1", "error", ("data",))))
    assert not set(unescaped(latex(HOSTILE))) & set(r"#$%&_{}^~\<>|")
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert r"\label{tab:my-table-1}" in text
    assert r"\toprule" in text
    body = text.split("\\midrule\n")[1].split("\n\\bottomrule")[0]
    assert re.sub(r"\\&", "", body).count("&") == 2
    assert r"\textbf{2.00$\cdot10^{-9}$ $\pm$ 0}" in body
    braces = re.sub(r"\\[{}]", "", text)
    assert braces.count("{") == braces.count("}")
    commands = set(re.findall(r"\\([a-zA-Z]+)", text))
    booktabs = {"toprule", "midrule", "bottomrule", "addlinespace"}
    assert commands <= booktabs | {
        "begin", "end", "centering", "caption", "label", "textbf", "pm", "cdot", "textbackslash", "textasciitilde",
        "textasciicircum", "textless", "textgreater", "textbar",
    }  # fmt: skip


def test_markdown_keeps_its_columns(tmp_path):
    rows = [row(HOSTILE, "x|y", error=0.1), row(HOSTILE, "z", error=0.2)]
    text = as_markdown(table_of(results_of(tmp_path, rows), TableSpec("t", "error", ("data",))))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 3
    for line in lines:
        assert re.sub(r"\\.", "", line).count("|") == 4
    assert "**0.100**" in text
    assert not re.search(r"(?<!\\)[<`]", text)


def test_the_terminal_shows_all_columns_in_any_width(tmp_path):
    models = {f"model {letter} of many": 0.1 + k / 100 for k, letter in enumerate(string.ascii_lowercase[:9])}
    results = results_of(tmp_path, usual(models=models, agents=(5, 10)), swept=("agents",))
    for width in (40, 80, 200):
        text = printed(results, width)
        table = text.split("Seconds of training")[0]
        assert max(map(len, table.splitlines())) <= width
        words = " ".join(table.split())
        for letter in string.ascii_lowercase[:9]:
            assert re.search(rf"\bmodel\b.*\b{letter}\b", words)
        assert table.count("±") == 9 * 4 + 1
        assert "* the best" in text


def test_brackets_in_names_are_no_markup(tmp_path):
    results = results_of(tmp_path, [row("[bold]A[/]", "[red]x", error=0.1), row("[bold]A[/]", "y", error=0.2)])
    text = printed(results)
    assert "[bold]A[/]" in text
    assert "[red]x" in text


def test_tables_are_files(tmp_path):
    results_of(tmp_path, usual(), Layout("x", tables=(TableSpec("a/b c", "error"),)), ("agents",))
    made = make_report(tmp_path)
    tables = sorted(path.name for path in made if path.parent.name == "tables")
    assert tables == ["a-b-c.csv", "a-b-c.md", "a-b-c.tex"]
    assert all(path.stat().st_size for path in made)
    assert not list(tmp_path.rglob("*.tmp"))


def test_what_is_mixed_is_known(tmp_path):
    results = results_of(tmp_path, usual(), swept=("agents",))
    assert Cells.of(results, "error", ("data", "model", "agents")).mixed() == {}
    assert Cells.of(results, "error", ("model", "agents")).mixed() == {"data": ["G50C", "Garageband"]}
