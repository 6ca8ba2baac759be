"""What figures share: colours, style, places of agents, and saving.

Colours are four of Okabe and Ito's (Color universal design, 2008) and viridis, which colour-blind
eyes tell apart.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import networkx as nx
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from peerlearn.arrays import Array
from peerlearn.system.files import write

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
ORANGE = "#E69F00"
INK = "#222222"
FAINT = "#9a9a9a"
STYLE = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "svg.hashsalt": "peerlearn",  # the same results give the same file
}
NUMBERED_UP_TO = 30  # agents; more leave no room for a number in each
Rows = list[dict[str, Any]]


def save_figure(draw: Callable[[], Figure], folder: Path, name: str) -> tuple[Path, Path]:
    """Save the drawn figure as name.png and name.svg in the folder."""
    # A context, and no pyplot: whoever calls this keeps their own backend and style.
    with matplotlib.style.context(["default", STYLE]):
        figure = draw()
        FigureCanvasAgg(figure)
        for kind in ("png", "svg"):
            write(folder / f"{name}.{kind}", _render(figure, kind))
    return folder / f"{name}.png", folder / f"{name}.svg"


def _render(figure: Figure, kind: str) -> bytes:
    image = io.BytesIO()
    figure.savefig(image, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)
    return image.getvalue()


def level(graph: nx.Graph) -> Array:
    """Return places of agents: neighbors near each other, the longer side level."""
    drawn = nx.kamada_kawai_layout(graph, weight=None)
    at = np.array([drawn[agent] for agent in range(len(graph))])
    at -= at.mean(axis=0)
    _, lengths, directions = np.linalg.svd(at, full_matrices=False)
    round_already = (
        lengths[0] < 1.02 * lengths[1]
    )  # then rounding errors would choose the direction
    return at if round_already else np.asarray(at @ directions.T)


def readable_on(colour: Sequence[float]) -> str:
    """Return dark ink for light fills and white for dark ones."""
    return INK if np.dot(colour[:3], (0.299, 0.587, 0.114)) > 0.5 else "white"


def column(rows: Rows, name: str) -> Array:
    return np.array([row[name] for row in rows])
