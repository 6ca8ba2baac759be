"""A graph described, and its files and figure written into a folder."""

from __future__ import annotations

import json
import os
from numbers import Real
from pathlib import Path
from typing import Any

import networkx as nx

from peerlearn.cli.graph.report import PAYLOAD, STEPS, GraphReport, Watch, check, describe
from peerlearn.system.files import result_folder, write, write_table

DIGITS = 12  # in files: how far a contraction is from 1 is what matters


def run_graph(
    output: str | os.PathLike[str],
    graph: nx.Graph,
    *,
    weights: str = "metropolis",
    payload: int = PAYLOAD,
    accuracy: float = 1e-6,
    watch: Watch | None = None,
) -> GraphReport:
    """Describe a graph, and write the files and the figure into the output folder."""
    check(graph, weights, payload, accuracy)
    folder = result_folder(output)
    report = describe(graph, weights=weights, payload=payload, accuracy=accuracy, watch=watch)
    if watch is not None:
        watch("drawing the figure", STEPS - 1, STEPS)
    save(report, folder)
    return report


def save(report: GraphReport, folder: Path) -> None:
    """Write the files of a report, and the figure drawn from them."""
    from peerlearn.cli.graph.figure import draw_graph

    write(folder / "summary.json", json.dumps(_summary(report), indent=2) + "\n")
    write(folder / "graph.graphml", "\n".join(nx.generate_graphml(_weight_links(report))) + "\n")
    write_table(folder / "weightings.csv", report.weightings, DIGITS)
    write_table(folder / "disagreement.csv", report.disagreement)
    draw_graph(folder)


def _weight_links(report: GraphReport) -> nx.Graph:
    """Return the graph with the attributes that are drawn; GraphML cannot hold all others."""
    C = report.mixing
    weighted = nx.Graph()
    for agent, known in report.graph.nodes(data=True):
        at = known.get("pos", (known.get("x"), known.get("y")))
        is_place = len(at) == 2 and all(isinstance(each, Real) for each in at)
        place = {"x": float(at[0]), "y": float(at[1])} if is_place else {}
        name = {"name": str(known["name"])} if "name" in known else {}
        weighted.add_node(agent, self_weight=float(C[agent, agent]), **name, **place)
    weighted.add_weighted_edges_from((a, b, float(C[a, b])) for a, b in report.graph.edges)
    return weighted


def _summary(report: GraphReport) -> dict[str, Any]:
    least, mean, most = report.degrees
    return {
        "agents": len(report.graph),
        "links": report.links,
        "degrees": {"least": least, "mean": mean, "most": most},
        "diameter": report.diameter,
        "weights": report.weights,
        "payload": report.payload,
        "accuracy": report.accuracy,
        "bytes_per_round": report.bytes_per_round,
        "tree_rounds": report.tree_rounds,
        "tree_megabytes": report.tree_megabytes,
        "skipped": report.skipped,
    }
