"""Error against megabytes, one curve per solver, labelled where it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

Curve = Sequence[tuple[float, float]]  # MB, error

FLOOR = 1e-7  # errors below are drawn here, pointing down
COLOURS = {  # Okabe and Ito: told apart also by the colour-blind
    "ADMM as printed": "#000000",
    "ADMM": "#D55E00",
    "Consensus": "#CC79A7",
    "Gram": "#009E73",
    "CG synthetic": "#0072B2",
    "CG local": "#56B4E9",
    "CG bare": "#E69F00",
}


def draw(panels: Mapping[str, Mapping[str, Curve]], target: float, folder: Path) -> Path:
    figure = Figure(figsize=(10, 10.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        _panel(ax, title, curves, target)
    axes[-1].set_xlabel("MB sent, all 50 agents together, Erdős-Rényi graph")
    figure.supylabel("relative distance of the worst agent to the centralised coefficients")
    # the layout must stand before labels can be moved out of each other's way
    figure.draw_without_rendering()
    for ax in axes:
        _spread([text for text in ax.texts if isinstance(text, Annotation)], _markers(ax))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "communication.png"
    figure.savefig(path, dpi=120)
    return path


def _panel(ax: Axes, title: str, curves: Mapping[str, Curve], target: float) -> None:
    ax.set(xscale="log", yscale="log", ylim=(FLOOR / 6, 3))
    ax.set_title(
        f"{title}: dashed with squares over a tree, solid with circles by gossip",
        loc="left",
        fontsize=11,
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.axhline(target, color="0.7", linewidth=0.8, zorder=0)
    ax.text(
        0.005, target * 1.2, "target", color="0.4", fontsize=9, transform=ax.get_yaxis_transform()
    )
    for name, curve in curves.items():
        _curve(ax, name, curve)
    ax.margins(x=0.07)


def _curve(ax: Axes, name: str, curve: Curve) -> None:
    family, on_tree = name.split(",")[0], name.endswith("tree")
    colour, marker = COLOURS[family], "s" if on_tree else "o"
    x, y = [mb for mb, _ in curve], [max(error, FLOOR) for _, error in curve]
    ax.plot(x, y, color=colour, linestyle="--" if on_tree else "-", linewidth=1.6)
    for mb, error in curve:
        below = error < FLOOR
        ax.plot(
            mb,
            max(error, FLOOR),
            "v" if below else marker,
            color=colour,
            markersize=7 if below else 5,
        )
    label = f"{family}: exact" if on_tree and curve[-1][1] < 1e-10 else family
    ax.annotate(
        label,
        (x[-1], y[-1]),
        xytext=(0, -9),
        textcoords=("offset points"),
        color=colour,
        fontsize=9.5,
        ha="center",
        va="top",
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _markers(ax: Axes) -> list[Bbox]:
    lines = [line for line in ax.lines if line.get_marker() != "None"]
    places = [ax.transData.transform(line.get_xydata())[0] for line in lines]
    return [Bbox.from_extents(x - 4, y - 4, x + 4, y + 4) for x, y in places]


def _spread(labels: Sequence[Annotation], taken: list[Bbox]) -> None:
    """Lower each label until it is clear of the markers and of the labels already placed."""
    for label in sorted(labels, key=lambda text: -text.get_window_extent().y0):
        while any(label.get_window_extent().overlaps(other) for other in taken):
            x, y = label.get_position()
            label.set_position((x, y - 2))
        taken.append(label.get_window_extent())
