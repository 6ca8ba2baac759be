"""Figures from rows: what is drawn is what was measured, nothing is cut off, and no letters run
into each other.
"""

from __future__ import annotations

import itertools
import math

import matplotlib.style
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Annotation, Text
from PIL import Image

from peerlearn import graphs
from peerlearn.errors import InputError
from peerlearn.lab.description.specs import FigureSpec, Layout, StatisticsSpec, TableSpec
from peerlearn.lab.figures.boxes import bars_figure, boxes_figure
from peerlearn.lab.figures.curves import curves_figure, mean_curve
from peerlearn.lab.figures.draw import KINDS, draw_figure
from peerlearn.lab.figures.ends import spread
from peerlearn.lab.figures.lines import lines_figure
from peerlearn.lab.figures.looks import look
from peerlearn.lab.figures.networks import MOST, distinct, draw_networks
from peerlearn.lab.figures.ranks import ranks_figure
from peerlearn.lab.figures.style import STYLE
from peerlearn.lab.report.build import make_report
from peerlearn.lab.report.defaults import figures_to_show
from tests.support.lab_rows import graph_of, results_of, row, usual

LONG = "a_rather long name_with $dollars$, 5 % & more of everything that a name may have in it"


def drawn(make, results, spec):
    """The figure with everything in its place."""
    with matplotlib.style.context(["default", STYLE]):
        figure = make(results, spec)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    return figure, canvas.get_renderer()


def letters(figure, renderer):
    """The boxes of all that is written, in pixels."""
    hidden = {
        id(tick.label1)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in _unused(axis)
    }
    found = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden:
            if isinstance(text, Annotation):
                text.update_positions(renderer)
            found.append(
                (text.get_text(), Text.get_window_extent(text, renderer))
            )  # of an annotation, without its leader
    return found


def _unused(axis):
    """Ticks that matplotlib keeps, and does not draw since they are outside of the axis."""
    low, high = sorted(axis.get_view_interval())
    return [
        tick
        for tick in (*axis.majorTicks, *axis.minorTicks)
        if not low <= tick.get_loc() <= high or not axis.axes.axison
    ]


def assert_readable(figure, renderer, inches=0.9):
    """inches: of a panel's shorter side, at least."""
    boxes = letters(figure, renderer)
    assert boxes
    for axes in figure.axes:
        box = axes.get_window_extent(renderer)
        assert min(box.width, box.height) > inches * figure.dpi, "letters leave no room for a panel"
    width, height = figure.bbox.width, figure.bbox.height
    for name, box in boxes:
        inside = (box.x0 >= -1, box.x1 <= width + 1, box.y0 >= -1, box.y1 <= height + 1)
        assert all(inside), f"{name!r} is cut off"
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide < 1.5 or high < 1.5, f"{one!r} runs into {other!r}"


def several(tmp_path, series, panels):
    models = {f"{LONG} {k}" if k % 2 else f"m_{k}": 0.05 * (k % 4 + 1) for k in range(series)}
    rows = usual(
        data=[f"data_{k}" for k in range(panels)], models=models, agents=(5, 10, 20), runs=2
    )
    for number, each in enumerate(rows):
        each["curve.loss"] = list(np.exp(-np.arange(30) / (5 + number % 7)))
        each["curve.loss.at"] = list(range(1, 31))
    return results_of(tmp_path, rows, Layout("x"), ("agents",))


SIZES = [(1, 1), (2, 2), (5, 4), (8, 1), (12, 6)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("make", "spec"),
    [
        (
            lines_figure,
            FigureSpec("f", "lines", "error", "agents", unit="%", title="A title of the figure"),
        ),
        (lines_figure, FigureSpec("f", "lines", "seconds", "agents", log="xy")),
        (boxes_figure, FigureSpec("f", "boxes", "error", where={"agents": 10})),
        (bars_figure, FigureSpec("f", "bars", "error", unit="%", where={"agents": 10})),
        (
            curves_figure,
            FigureSpec("f", "curves", "loss", log="y", xlabel="iterations", where={"agents": 10}),
        ),
    ],
    ids=["lines", "log lines", "boxes", "bars", "curves"],
)
def test_nothing_is_cut_off_or_runs_into_another(tmp_path, make, spec, size):
    assert_readable(
        *drawn(make, several(tmp_path, *size), spec),
        2.0 if spec.kind in ("lines", "curves") else 0.9,
    )


def test_groups_of_boxes_and_few_ranks_are_readable(tmp_path):
    results = several(tmp_path, 4, 2)
    assert_readable(*drawn(boxes_figure, results, FigureSpec("f", "boxes", "error", "agents")))
    assert_readable(
        *drawn(bars_figure, results, FigureSpec("f", "bars", "error", "agents", panels=""))
    )


@pytest.mark.parametrize("models", [2, 3, 7, 12])
def test_ranks_are_readable(tmp_path, models):
    assert_readable(
        *drawn(ranks_figure, several(tmp_path, models, 6), FigureSpec("f", "ranks", "error"))
    )


@pytest.mark.parametrize("log", ["", "x"])
def test_ticks_of_close_values_are_left_out(tmp_path, log):
    rows = [row("A", "m", "N", agents=k, error=0.1) for k in (100, 101, 102, 150, 200, 1000)]
    spec = FigureSpec("f", "lines", "error", "agents", log=log)
    figure, renderer = drawn(lines_figure, results_of(tmp_path, rows, swept=("agents",)), spec)
    assert_readable(figure, renderer)
    ticks = figure.axes[0].get_xticks()
    assert {100, 1000} <= set(ticks) <= {100, 101, 102, 150, 200, 1000}


def test_dollars_are_letters(tmp_path):
    results = results_of(tmp_path, [row("$x^2$", f"m${k}$", error=0.1, fold=k) for k in range(2)])
    figure, renderer = drawn(boxes_figure, results, FigureSpec("f", "boxes", "error"))
    written = [text for text, _ in letters(figure, renderer)]
    assert {r"\$x^2\$", r"m\$0\$", r"m\$1\$"} <= set(written)


def test_lines_are_the_means(tmp_path):
    results = results_of(tmp_path, usual(), Layout("x"), ("agents",))
    spec = FigureSpec("f", "lines", "error", "agents", unit="%", panels="", where={"data": "G50C"})
    figure, _ = drawn(lines_figure, results, spec)
    (axes,) = figure.axes
    level, *others = axes.lines
    mean = 100 * results.where({"data": "G50C", "model": "C-RVFL"}).mean("error")
    assert np.allclose(level.get_ydata(), mean)
    assert level.get_xdata()[0] < 5
    assert level.get_xdata()[1] > 40
    for line, model in zip(others, ("L-RVFL", "CONS-RVFL", "ADMM-RVFL"), strict=True):
        assert list(line.get_xdata()) == [5, 10, 20, 40]
        rows = [
            results.where({"data": "G50C", "model": model, "agents": k}) for k in (5, 10, 20, 40)
        ]
        assert np.allclose(line.get_ydata(), [100 * each.mean("error") for each in rows])
        assert {text.get_text() for text in axes.texts} >= {model}
    band = axes.collections[1].get_paths()[0].vertices
    local = results.where({"data": "G50C", "model": "L-RVFL", "agents": 40})
    assert band[:, 1].max() == pytest.approx(100 * (local.mean("error") + local.spread("error")))
    assert axes.get_ylabel() == "misclassification error, %"


def test_series_look_the_same_in_all_figures_and_no_two_alike(tmp_path):
    results = results_of(tmp_path, usual(), Layout("x"), ("agents",))
    whole = lines_figure(results, FigureSpec("f", "lines", "error", "agents"))
    part = lines_figure(
        results, FigureSpec("f", "lines", "error", "agents", where={"model": "ADMM-RVFL"})
    )
    assert part.axes[0].lines[0].get_color() == whole.axes[0].lines[3].get_color()
    assert len({(look(k).colour, str(look(k).line), look(k).marker) for k in range(28)}) == 28
    assert len({look(k).marker for k in range(12)}) == 12


def test_numbers_as_series_say_what_they_are(tmp_path):
    results = results_of(tmp_path, usual(), Layout("x"), ("agents",))
    spec = FigureSpec("f", "boxes", "error", series="agents", where={"model": "L-RVFL"})
    figure, _ = drawn(boxes_figure, results, spec)
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert names == [f"agents = {k}" for k in (5, 10, 20, 40)]


def test_boxes_are_quartiles_and_missing_ones_are_told(tmp_path):
    values = np.array([1.0, 2.0, 3.0, 4.0, 50.0])
    rows = [row("A", "x", error=value, fold=k) for k, value in enumerate(values)]
    rows += [
        row("A", "y", status="not applicable"),
        row("A", "z", status="failed"),
        row("A", "w", error=2.0),
    ]
    figure, _ = drawn(boxes_figure, results_of(tmp_path, rows), FigureSpec("f", "boxes", "error"))
    (axes,) = figure.axes
    box = axes.patches[0]
    assert (box.get_x(), box.get_width()) == (2.0, 2.0)
    assert axes.lines[1].get_xdata().tolist() == [4.0, 4.0]  # upper whisker: 50 is too far out
    assert [text.get_text() for text in axes.texts] == ["n/a", "failed"]


def test_curves_are_averaged_where_runs_differ():
    rows = [
        {"status": "done", "curve.e": [4.0, 2.0, 0.0], "curve.e.at": [0, 2, 4]},
        {"status": "done", "curve.e": [2.0, 2.0], "curve.e.at": [0.0, 1.0]},  # ends, and stays
        {"status": "failed", "curve.e": None},
    ]
    curve = mean_curve(rows, "curve.e", FigureSpec("f", "curves", "e"))
    assert curve.x.tolist() == [0, 1, 2, 4]
    assert curve.mean.tolist() == [3, 2.5, 2, 1]
    assert curve.high[0] - curve.mean[0] == pytest.approx(math.sqrt(2))
    powers = mean_curve(rows, "curve.e", FigureSpec("f", "curves", "e", unit="dB"))
    assert powers.mean[:2] == pytest.approx(10 * np.log10([3, 2.5]))
    assert mean_curve(rows[2:], "curve.e", FigureSpec("f", "curves", "e")) is None


def test_bands_on_logarithmic_axes_are_percentiles_of_the_runs(tmp_path):
    values = 10.0 ** -np.arange(11)  # one standard deviation below their mean there is nothing
    rows = [
        row("A", "x", "N", agents=k, fold=f, error=v, **{"curve.e": [v, v]})
        for k in (5, 9)
        for f, v in enumerate(values)
    ]
    results = results_of(tmp_path, rows, Layout("x"), ("agents",))
    low, high = values[9], values[1]  # the 10th and the 90th percentile of eleven
    plain, steep = (
        mean_curve(rows[:11], "curve.e", FigureSpec("f", "curves", "e", log=log))
        for log in ("", "y")
    )
    assert steep.mean == pytest.approx(plain.mean)
    assert (steep.low[0], steep.high[0]) == pytest.approx((low, high))
    assert plain.high[0] - plain.mean[0] == pytest.approx(np.std(values, ddof=1))
    decibels = mean_curve(rows[:11], "curve.e", FigureSpec("f", "curves", "e", unit="dB"))
    assert (decibels.low[0], decibels.mean[0], decibels.high[0]) == pytest.approx(
        (-90, 10 * np.log10(values.mean()), -10)
    )
    figure, _ = drawn(lines_figure, results, FigureSpec("f", "lines", "error", "agents", log="y"))
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((low, high))
    for log, said in (
        ("", "one standard deviation to either side"),
        ("y", "the 10th to 90th percentile of the runs"),
    ):
        results_of(
            tmp_path,
            rows,
            Layout(figures=(FigureSpec("f", "bars", "error", log=log),)),
            ("agents",),
        )
        assert f"ean over runs, and {said}." in make_report(tmp_path)[-1].read_text(
            encoding="utf-8"
        )


def test_long_curves_are_thinned(tmp_path):
    rows = [
        row("A", "x", **{"curve.e": list(np.arange(10_000.0)), "curve.e.at": list(range(10_000))})
    ]
    figure, _ = drawn(curves_figure, results_of(tmp_path, rows), FigureSpec("f", "curves", "e"))
    x = figure.axes[0].lines[0].get_xdata()
    assert len(x) <= 400
    assert (x[0], x[-1]) == (0, 9999)


def test_ranks_are_where_they_belong(tmp_path):
    rows = [
        row(f"d{k}", model, error=value + k)
        for k in range(6)
        for model, value in (("a", 3), ("b", 1), ("c", 2))
    ]
    figure, _ = drawn(ranks_figure, results_of(tmp_path, rows), FigureSpec("f", "ranks", "error"))
    words = [text.get_text() for text in figure.axes[0].texts]
    assert {"b  (1.00)", "c  (2.00)", "(3.00)  a"} <= set(words)
    cd = 2.343 * math.sqrt(3 * 4 / (6 * 6))
    assert f"critical difference {cd:.2f}" in words


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_drawn_is_said(tmp_path, kind):
    results = results_of(tmp_path, [row("A", "x", error=0.1), row("A", "y", error=0.2)])
    with pytest.raises(InputError, match=r"no run has|not drawn"):
        draw_figure(
            results, FigureSpec("f", kind, "mae", "agents" if kind == "lines" else ""), tmp_path
        )


def test_lines_need_an_x(tmp_path):
    results = results_of(tmp_path, [row("A", "x", error=0.1)])
    with pytest.raises(InputError, match="does not say what x is"):
        draw_figure(results, FigureSpec("f", "lines", "error"), tmp_path)
    with pytest.raises(InputError, match="no run has a value of agents"):
        draw_figure(results, FigureSpec("f", "lines", "error", "agents"), tmp_path)


def test_files_are_the_same_when_drawn_again(tmp_path):
    results = several(tmp_path, 3, 2)
    spec = FigureSpec("a figure", "lines", "error", "agents")
    png, svg = draw_figure(results, spec, tmp_path)
    assert (png.name, svg.name) == ("a-figure.png", "a-figure.svg")
    before = png.read_bytes(), svg.read_bytes()
    draw_figure(results, spec, tmp_path)
    assert (png.read_bytes(), svg.read_bytes()) == before
    with Image.open(png) as image:
        assert image.width > 1000
        assert len(image.convert("RGB").getcolors(1 << 24)) > 100


def test_networks_are_drawn_from_their_files(tmp_path):
    entries = [graph_of(tmp_path, "ring", graphs.ring(n), agents=n) for n in range(3, 19)]
    results = results_of(tmp_path, usual(), graphs=entries)
    (png, svg), told = draw_networks(results, tmp_path)
    assert png.exists()
    assert svg.exists()
    assert told == f"{16 - MOST} more of the networks' graphs are in the folder graphs."
    few = results_of(
        tmp_path, usual(), graphs=[graph_of(tmp_path, "one", graphs.complete(1)), entries[0]]
    )
    assert draw_networks(few, tmp_path)[1] == ""
    assert draw_networks(results_of(tmp_path, usual(), graphs=[]), tmp_path) == (None, "")


def test_the_same_graph_is_drawn_once(tmp_path):
    entries = [
        graph_of(tmp_path, "ring", graphs.ring(agents), weights=weights, agents=agents)
        for agents, weights in itertools.product((4, 6), ("metropolis", "fastest"))
    ]
    results = results_of(tmp_path, usual(), graphs=entries)
    known, same = distinct(results)
    assert [(entry["swept"], len(graph)) for entry, graph in known] == [
        ({"agents": 4}, 4),
        ({"agents": 6}, 6),
    ]
    assert same == {"weights": ["metropolis", "fastest"]}
    told = draw_networks(results, tmp_path)[1]
    assert told == "They are the same for these values of weights: metropolis, fastest."


def test_a_figure_for_each_swept_key_of_who_has_it(tmp_path):
    """A forest of several sizes, and agents of several numbers: neither is a mean over the values
    of the other.
    """
    rows = [
        row("A", "forest", fold=f, n_estimators=n, error=0.1 / n) for n in (5, 50) for f in (0, 1)
    ]
    rows += [row("A", "in one place", fold=f, error=0.1 + f) for f in (0, 1)]
    for k, weights, f in itertools.product((4, 8), ("a", "b"), (0, 1)):
        sent = {"bytes": 9 * k + f, "error": 0.01 * k + f, "seconds": 0.1}
        rows.append(row("A", "together", "N", agents=k, weights=weights, fold=f, **sent))
    results = results_of(tmp_path, rows, swept=("n_estimators", "agents", "weights"))
    assert [(each.name, each.kind, each.where) for each in figures_to_show(results)] == [
        ("error-against-agents", "lines", {"model": ["in one place", "together"]}),
        ("error-against-n_estimators", "lines", {"model": ["forest", "in one place"]}),
        ("seconds", "boxes", {}),
        ("bytes-against-agents", "lines", {"model": ["in one place", "together"]}),
    ]


def test_figures_where_the_layout_has_none(tmp_path):
    swept = figures_to_show(several(tmp_path, 2, 1))
    assert [(each.name, each.kind) for each in swept] == [
        ("error-against-agents", "lines"),
        ("seconds-against-agents", "lines"),
        ("bytes-against-agents", "lines"),
        ("loss", "curves"),
    ]
    nets = [row("A", "m", name, error=0.1) for name in ("N1", "N 2")]
    two = figures_to_show(results_of(tmp_path, nets, metrics=[]))
    assert [(each.name, each.where) for each in two[:2]] == [
        ("error-N1", {"network": "N1"}),
        ("error-N 2", {"network": "N 2"}),
    ]
    rows = usual(agents=(5,), runs=6)
    tests = Layout("x", statistics=(StatisticsSpec("error"),))
    assert [each.kind for each in figures_to_show(results_of(tmp_path, rows, tests))] == [
        "boxes"
    ] * 3 + ["ranks"]
    assert [
        each.kind for each in figures_to_show(results_of(tmp_path, usual(agents=(5,), runs=2)))
    ] == ["bars"] * 3


def test_a_figure_has_the_unit_of_the_table(tmp_path):
    figures = (FigureSpec("f", "bars", "error"), FigureSpec("g", "bars", "bytes", unit="kB"))
    rows = [row("A", "x", error=0.1)]
    assert [
        each.unit for each in figures_to_show(results_of(tmp_path, rows, Layout(figures=figures)))
    ] == ["%", "kB"]
    plain = Layout(figures=figures[:1], tables=(TableSpec("t", "error"),))
    assert [each.unit for each in figures_to_show(results_of(tmp_path, rows, plain))] == [""]


def test_names_at_the_ends_of_lines_stay_apart_and_in_order():
    wished = np.array([0.1, 0.11, 0.12, 0.9])
    room = np.full(4, 0.06)
    places = spread(wished, room)
    assert (np.diff(places) >= 0.06 - 1e-12).all()
    assert places[:3].mean() == pytest.approx(0.11)
    assert places[3] == pytest.approx(0.9)
    crowded = spread(np.zeros(5), np.full(5, 0.1))
    assert crowded == pytest.approx([0.05, 0.15, 0.25, 0.35, 0.45])
