"""Figures, drawn from result files alone, so that they can be drawn again: the one place where matplotlib is used."""

from __future__ import annotations

from peerlearn.experiments.figures.demo import draw_demo
from peerlearn.experiments.figures.graph import draw_graph

__all__ = ["draw_demo", "draw_graph"]
