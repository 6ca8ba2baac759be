"""Figures, drawn from result files or plain arrays, so that they can be drawn again: the one place of matplotlib."""

from __future__ import annotations

from peerlearn.experiments.figures.demo import draw_demo
from peerlearn.experiments.figures.filters import draw_filters
from peerlearn.experiments.figures.graph import draw_graph

__all__ = ["draw_demo", "draw_filters", "draw_graph"]
