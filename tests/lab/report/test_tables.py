"""Tables: numbers by hand, what is missing told apart, and names that mean something to LaTeX or
Markdown.
"""

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

from peerlearn.lab.analysis.cells import Cells
from peerlearn.lab.description.specs import Layout, TableSpec
from peerlearn.lab.report.build import make_report
from peerlearn.lab.report.table_text import as_csv, as_latex, as_markdown, latex, plain
from peerlearn.lab.report.tables import show, table_of, tables_of
from tests.support.lab_rows import results_of, row, usual

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
        row("A", "one", error=0.1),
        row("A", "one", error=0.2, fold=1),
        row("A", "one", error=0.3, fold=2),
        row("A", "two", "N", error=0.05),
        row("A", "two", "N", fold=1, status="failed", failure=("it was too big")),
        row("A", "three", "N", status="not applicable", failure="it classifies"),
        row("B", "one", error=0.5),
        row("B", "two", "N", status="failed", failure="no"),
        row("B", "two", "N", status="failed", failure="no"),
        row("B", "four", "N", error=0.5),
    ]
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
    assert table.notes == ("Mean ± standard deviation over 1 to 3 runs.", "-: not run.")
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
    assert [line.place for line in table.lines] == [
        (20, 0.5),
        (20, 0.25),
        (5, 0.5),
        (5, 0.25),
    ]  # the file's order
    assert texts(table)[1] == ["0.1000", "0.2000", "0.2500"]
    only = table_of(results, TableSpec("t", "error", ("data",), where={"agents": 5, "p": [0.5]}))
    assert texts(only) == [["0.1000", "0.0500", "0.5000"]]
    assert only.notes[0] == "Only agents = 5, p = 0.5."
    mixed = table_of(results, TableSpec("t", "error", ("data",), where={"model": "E"}))
    assert mixed.lines[0].entries[0].cell.mean == pytest.approx(0.375)
    assert mixed.notes[2:] == (
        "Means run over agents as well: 20, 5.",
        "Means run over p as well: 0.5, 0.25.",
    )


def best_of(table):
    return [[entry.best for entry in line.entries] for line in table.lines]


def test_only_models_beside_each_other_are_marked(tmp_path):
    rows = [
        row("A", m, "N", agents=k, mcc=v)
        for m, k, v in (("x", 5, 0.1), ("y", 5, 0.2), ("x", 9, 0.3), ("y", 9, 0.1))
    ]
    results = results_of(tmp_path, rows, swept=("agents",))
    assert best_of(table_of(results, TableSpec("t", "mcc", ("agents",)))) == [
        [False, True],
        [True, False],
    ]
    lying = table_of(results, TableSpec("t", "mcc", ("data", "model"), "agents"))
    assert best_of(lying) == [[False, False], [False, False]]
    assert lying.marks == ""


def test_no_mark_where_a_model_stands_in_other_lines(tmp_path):
    """Each of two models has a key of its own; between them and a third no line has all."""
    rows = [row("A", "x", p=p, error=0.1) for p in (1, 2)] + [
        row("A", "y", q=q, error=0.2) for q in (3, 4)
    ]
    rows += [row("A", "z", error=0.3)]
    table = table_of(
        results_of(tmp_path, rows, swept=("p", "q")), TableSpec("t", "error", ("p", "q"))
    )
    assert texts(table)[-1] == ["-", "0.200", "0.300"]
    assert not any(map(any, best_of(table)))
    alone = table_of(
        results_of(tmp_path, rows[:2] + rows[4:], swept=("p",)), TableSpec("t", "error", ("p",))
    )
    assert best_of(alone) == [[True, False], [True, False]]


def test_every_form_says_what_a_mark_is(tmp_path):
    rows = [
        row("A", "x", "N", error=0.1, mcc=0.5, bytes=9),
        row("A", "y", "N", error=0.2, mcc=0.6, bytes=12),
    ]
    rows += [row("A", "z", "N", error=0.3, mcc=0.1)]
    specs = tuple(TableSpec(metric, metric, ("data",)) for metric in ("error", "mcc", "bytes"))
    results = results_of(tmp_path, rows, Layout("x", tables=specs))
    page = make_report(tmp_path)[-1].read_text(encoding="utf-8")
    said = ("smallest mean", "largest mean", "smallest mean of models that send")
    for table, which in zip(tables_of(results), said, strict=True):
        marks = f"the best of its line, which is the {which}"
        assert table.marks == marks
        assert f"- Bold: {marks}.\n" in as_markdown(table)
        assert f". Bold: {marks}. One run each.}}" in as_latex(table)
        assert f"Bold, with a dot: {marks}.<" in page
        assert f"* {marks}\n" in printed(results)
    alike = [row("A", "x", error=0.1), row("A", "y", error=0.1)]
    assert "Bold" not in as_markdown(table_of(results_of(tmp_path, alike), specs[0]))


def test_a_better_mean_of_fewer_runs_is_passed_over_and_said(tmp_path):
    rows = [
        row("A", model, fold=k, error=error)
        for model, error in (("x", 0.2), ("y", 0.3))
        for k in range(2)
    ]
    rows += [row("A", "z", error=0.1), row("A", "z", fold=1, status="failed")]
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "error", ("data",)))
    assert best_of(table) == [[True, False, False]]
    assert table.marks.endswith(
        "the smallest mean, but for models that have fewer runs than others"
    )


def test_who_is_not_applicable_to_a_data_set_has_fewer_runs(tmp_path):
    rows = [
        row(data, "x", fold=k, error=error)
        for data, error in (("A", 0.1), ("B", 0.7))
        for k in range(2)
    ]
    rows += [row("A", "y", fold=k, error=0.2) for k in range(2)]
    rows += [row("B", "y", fold=k, status="not applicable") for k in range(2)]
    rows += [row(data, "z", fold=k, error=0.5) for data in "AB" for k in range(2)]
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "error", ("fold",)))
    assert best_of(table) == [[True, False, False]] * 2
    assert table.marks.endswith("but for models that have fewer runs than others")


def test_settings_that_a_search_chose_are_not_better_or_worse(tmp_path):
    rows = [row("A", model, **{"best.k": value}) for model, value in (("x", 1.0), ("y", 25.0))]
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "best.k", ("data",)))
    assert (best_of(table), table.marks) == ([[False, False]], "")


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
        rows += [
            row("A", "some", "N", agents=agents, error=0.05),
            row("A", "some", "N", fold=1, status="failed"),
        ]
    (line,) = table_of(
        results_of(tmp_path, rows, swept=("agents",)), TableSpec("t", "error", ("data",))
    ).lines
    assert [entry.best for entry in line.entries] == [True, False, False]


def test_infinite_values_are_counted_and_zeros_are_short(tmp_path):
    values = {
        "inf": (math.inf, 1.0, 2.0),
        "nan": (math.nan, math.inf, 1.0),
        "zero": (0.0,) * 3,
        "one": (1.0, 1.5, 2.0),
    }
    rows = [
        row("A", name, fold=k, rmse=value)
        for name, own in values.items()
        for k, value in enumerate(own)
    ]
    rows += [row("A", "huge", fold=k, rmse=1e200 * k) for k in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = table_of(results_of(tmp_path, rows), TableSpec("t", "rmse", ("data",)))
    assert texts(table) == [
        ["inf (1 of 3 runs)", "nan (2 of 3 runs)", "0", "1.50 ± 0.50", "1.00e200"]
    ]


def test_captions_have_all_notes_but_failures(tmp_path):
    rows = [*usual(), row("G50C", "L-RVFL", "ER", status="failed", failure="too big")]
    table = table_of(
        results_of(tmp_path, rows, swept=("agents",)), TableSpec("t", "error", ("data",))
    )
    (caption,) = re.findall(r"\\caption.*", as_latex(table))
    assert "Means run over agents as well: 5, 10, 20, 40." in caption
    assert "too big" not in caption


def test_who_sends_nothing_is_not_the_best(tmp_path):
    rows = [
        row("A", "C", bytes=0),
        row("A", "alone", "N", bytes=0),
        row("A", "x", "N", bytes=2_000_000),
    ]
    rows.append(row("A", "y", "N", bytes=5_500_000))
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "bytes", ("data",), unit="MB"))
    assert table.title == "MB sent"
    assert (table.names, texts(table)) == (("alone", "x", "y"), [["0.00", "2.00", "5.50"]])
    assert [entry.best for entry in table.lines[0].entries] == [False, True, False]


def test_without_a_layout_there_is_a_table_per_metric(tmp_path):
    results = results_of(tmp_path, usual(), swept=("agents",))
    tables = tables_of(results)
    assert [table.spec.name for table in tables] == ["error", "seconds", "bytes"]
    assert tables[0].heads == ("Data set", "agents")
    values = [
        each["error"]
        for each in results.rows
        if (each["data"], each["model"], each["agents"]) == ("G50C", "L-RVFL", 10)
    ]
    cell = tables[0].lines[1].entries[1].cell
    assert (cell.mean, cell.spread) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert cell.mean == results.where({"data": "G50C", "model": "L-RVFL", "agents": 10}).mean(
        "error"
    )


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
    assert "No run has measured mae." in printed(
        results_of(tmp_path, rows, Layout("x", tables=(empty.spec,)))
    )


def test_a_failure_does_not_bring_a_line_of_the_other_task(tmp_path):
    rows = [row("A", model, error=0.1) for model in "xyz"]
    rows += [
        row("B", "x", rmse=2.0),
        row("B", "y", status="not applicable"),
        row("B", "z", status="failed"),
    ]
    rows += [
        row("C", "x", status="failed"),
        row("C", "y", status="not applicable"),
        row("C", "z", status="failed"),
    ]
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "error", ("data",)))
    assert [line.labels for line in table.lines] == [("A",), ("C",)]  # of C nobody knows
    assert not any("on B" in text or "to B" in text for text in table.failures)


def test_who_has_nobody_to_send_to_has_no_column(tmp_path):
    rows = [
        row("A", "x", "N", bytes=5),
        row("A", "y", "N", bytes=7),
        row("A", "z", status="failed"),
    ]
    table = table_of(results_of(tmp_path, rows), TableSpec("t", "bytes", ("data",)))
    assert (table.names, best_of(table)) == (("x", "y"), [[True, False]])


def test_what_is_missing_is_said_once(tmp_path):
    rows = [row("A", "x", error=0.1, mcc=0.2), row("A", "y", status="failed", failure="too big")]
    rows += [row("A", "z", status="not applicable", failure="it measures")]
    specs = tuple(TableSpec(metric, metric, ("data",)) for metric in ("error", "mcc", "seconds"))
    text = printed(results_of(tmp_path, rows, Layout("x", tables=specs)))
    assert text.count("1 run of y on A failed: too big\n") == 1
    assert text.count("z is not applicable to A: it measures\n") == 1
    page = make_report(tmp_path)[-1].read_text(encoding="utf-8")
    assert page.count("too big") == page.count("it measures") == 1


def test_csv_has_plain_numbers(tmp_path):
    table = table_of(by_hand(tmp_path), TableSpec("t", "error", ("data",), unit="%"))
    lines = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert len(lines) == 8
    first = lines[0]
    assert (first["data"], first["model"], first["metric"], first["status"]) == (
        "A",
        "one",
        "error",
        "done",
    )
    assert float(first["mean"]) == np.mean([0.1, 0.2, 0.3])
    assert float(first["spread"]) == np.std([0.1, 0.2, 0.3], ddof=1)
    assert first["runs"] == "3"
    assert [
        (line["mean"], line["spread"], line["failed"], line["status"]) for line in lines[1:4]
    ] == [
        ("0.05", "", "1", "done"),
        ("", "", "0", "not applicable"),
        ("", "", "0", "not run"),
    ]


def unescaped(text):
    """LaTeX as it is read: no special letter is left that would act."""
    known = (
        r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}"
        r"|\\[#$%&_{}]|\$\\pm\$"
    )
    return re.sub(known, "", text)


def test_latex_is_whole_and_names_are_escaped(tmp_path):
    rows = [
        row(HOSTILE, model, error=value, fold=fold)
        for model, value in (("x_1", 0.1), ("y", 2e-9))
        for fold in (0, 1)
    ]
    text = as_latex(
        table_of(results_of(tmp_path, rows), TableSpec("my_table 1", "error", ("data",)))
    )
    assert not set(unescaped(latex(HOSTILE))) & set(r"#$%&_{}^~\<>|")
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert r"\label{tab:my-table-1}" in text
    assert r"\toprule" in text
    body = text.split("\\midrule\n")[1].split("\n\\bottomrule")[0]
    assert re.sub(r"\\&", "", body).count("&") == 2
    assert r"\textbf{2.00$\cdot10^{-9}$ $\pm$ 0}" in body
    below = as_latex(
        table_of(results_of(tmp_path, [row("A", "x", mcc=-0.5)]), TableSpec("t", "mcc", ("data",)))
    )
    assert r"A & $-$0.500 \\" in below
    assert latex("β-RVFL, λ and ö") == r"$\beta$-RVFL, $\lambda$ and ö"
    braces = re.sub(r"\\[{}]", "", text)
    assert braces.count("{") == braces.count("}")
    commands = set(re.findall(r"\\([a-zA-Z]+)", text))
    packages = {
        "toprule",
        "midrule",
        "bottomrule",
        "addlinespace",
        "resizebox",
    }  # which the first line names
    assert text.startswith("% \\usepackage{booktabs,graphicx}\n")
    assert commands <= packages | {
        "usepackage",
        "smallskip",
        "ifdim",
        "width",
        "linewidth",
        "else",
        "fi",
        "begin",
        "end",
        "centering",
        "caption",
        "label",
        "textbf",
        "pm",
        "cdot",
        "textbackslash",
        "textasciitilde",
        "textasciicircum",
        "textless",
        "textgreater",
        "textbar",
    }


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
    models = {
        f"model {letter} of many": 0.1 + k / 100
        for k, letter in enumerate(string.ascii_lowercase[:9])
    }
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


def test_words_are_whole_in_the_terminal(tmp_path):
    rows = [
        row("A", "x", "N", error=0.1, **{"solver.max_iterations": k, "n_estimators": k})
        for k in (5, 10)
    ]
    results = results_of(tmp_path, rows, swept=("solver.max_iterations", "n_estimators"))
    table = table_of(
        results,
        TableSpec("t", "error", ("data", "solver.max_iterations"), title="Misclassification" * 2),
    )
    assert table.heads == ("Data set", "solver.max_iterations")
    text = printed(
        results_of(
            tmp_path, rows, Layout("x", tables=(table.spec,)), swept=("solver.max_iterations",)
        ),
        34,
    )
    assert "MisclassificationMisclassification\n" in text
    assert re.search(r"^ +solver\. +\nData set +max_iterations +x $", text, re.MULTILINE)
    long = [row("A", "extraordinarily_long", error=0.1)]
    assert "extraordinarily_long \n" in printed(results_of(tmp_path, long), 60)


def test_brackets_in_names_are_no_markup(tmp_path):
    results = results_of(
        tmp_path, [row("[bold]A[/]", "[red]x", error=0.1), row("[bold]A[/]", "y", error=0.2)]
    )
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
    assert Cells.of(results, "error", ("model", "agents")).mixed() == {
        "data": ["G50C", "Garageband"]
    }
