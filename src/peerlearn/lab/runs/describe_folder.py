"""Files of a result folder before the first run: comparison.json and graphs of networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import networkx as nx

from peerlearn.errors import InputError, PeerlearnError
from peerlearn.lab.description.comparison import Comparison, Net
from peerlearn.lab.description.identity import describe_value
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.results.comparison_file import COMPARISON, description, read_description
from peerlearn.lab.results.parquet import ROWS
from peerlearn.lab.results.results import PAGE
from peerlearn.lab.runs.swept_columns import order_of
from peerlearn.lab.training.networks import graph_of
from peerlearn.system.files import file_name, result_folder, write

GRAPHS = "graphs"


def describe(
    folder: Path,
    comparison: Comparison,
    trials: Sequence[Trial],
    columns: Sequence[Mapping[str, Any]],
) -> None:
    """Write everything but the rows.

    Rows of another description are no longer results, though they stay in runs/.
    """
    protocol = comparison.protocol
    keys = list(columns[0])
    facts = {
        "seed": comparison.seed,
        "folds": comparison.folds,
        "test_fraction": comparison.test_fraction,
        "repetitions": comparison.repetitions,
        "metrics": list(comparison.metrics),
        "protocol": {"name": protocol.name, **describe_value(protocol)},
        "search": describe_value(comparison.search),
        "swept": keys,
        "runs": len(trials),
        "words": {**protocol.measures, **protocol.curves},
        "graphs": _graphs(folder, trials),
    }
    file = folder / COMPARISON
    text = description(comparison.layout, order_of(trials, columns, keys), facts)
    if file.exists() and file.read_bytes() == text.encode():
        return
    for made_of_them in (ROWS, PAGE):
        (folder / made_of_them).unlink(missing_ok=True)
    for left in set(_names_of_graphs(file)) - {each["file"] for each in facts["graphs"]}:
        (folder / left).unlink(missing_ok=True)
    write(file, text)


def _names_of_graphs(file: Path) -> list[str]:
    """Return the graphs that an earlier description names; none of a foreign file."""
    try:
        found = read_description(file.parent)[2].get("graphs", ())
    except InputError:
        return []
    return [each["file"] for each in found if Path(each["file"]).parent == Path(GRAPHS)]


def _graphs(folder: Path, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Write graphs/NAME.graphml of every network, as in the first repetition."""
    seeds: dict[int, tuple[Net, int]] = {}
    for trial in trials:
        if trial.network is not None and id(trial.network) not in seeds:
            seeds[id(trial.network)] = trial.network, trial.seed("graph")
    found = []
    for network, seed in seeds.values():
        swept = describe_value(network.swept)
        name = file_name(
            " ".join([network.name, *(f"{key} {value}" for key, value in swept.items())])
        )
        with suppress(PeerlearnError):  # of a graph that cannot be drawn, the runs say why
            lines = nx.generate_graphml(_bare(graph_of(network, seed)))
            write(result_folder(folder / GRAPHS) / f"{name}.graphml", "\n".join(lines) + "\n")
            found.append(
                {"file": f"{GRAPHS}/{name}.graphml", "network": network.name, "swept": swept}
            )
    return found


def _bare(graph: nx.Graph) -> nx.Graph:
    """Return agents and links alone: GraphML cannot hold every attribute."""
    bare = nx.Graph()
    bare.add_nodes_from(list(graph))
    bare.add_edges_from(graph.edges())
    return bare
