"""Result folders made by hand: rows whose numbers are known, as a run would have left them."""

from __future__ import annotations

import json
from itertools import product

import networkx as nx
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from peerlearn.lab.description.specs import Layout
from peerlearn.lab.results.comparison_file import description
from peerlearn.lab.results.results import Results

VERSIONS = json.dumps(
    {"python": "3.11.0", "peerlearn": "0.5.0", "numpy": "2.0.0", "platform": "Linux"}
)
STANDARD = ("data", "model", "network")


def row(
    data="A",
    model="M",
    network="",
    *,
    agents=None,
    repetition=0,
    fold=0,
    status="done",
    settings=None,
    **more,
):
    """One run; `settings`: of its model."""
    found = {
        "run": "",
        "data": data,
        "model": model,
        "network": network,
        "agents": agents or (5 if network else 1),
        "repetition": repetition,
        "fold": fold,
        "seed": 1,
        "status": status,
        "failure": "",
        "traceback": "",
        "warnings": "",
        "note": "",
        "seconds": 0.1,
        "total_seconds": 0.2,
        "rounds": 0,
        "messages": 0,
        "bytes": 0,
        "iterations": None,
        "converged": None,
        "versions": VERSIONS,
        **more,
    }
    if status != "done":
        found.update(dict.fromkeys(("seconds", "rounds", "messages", "bytes")))
    identity = {
        "seed": 1,
        "protocol": {"name": "rows"},
        "data": {
            "name": data,
            "source": "",
            "options": {},
            "scale": "unit",
            "prepare": [],
            "settings": {"alpha": 1.0},
        },
        "model": {
            "name": model,
            "kind": "RVFL",
            "where": "network" if network else "centralised",
            "settings": settings or {},
            "estimator": None,
        },
        "network": network
        and {
            "name": network,
            "graph": "ring",
            "agents": found["agents"],
            "parameters": {},
            "weights": "metropolis",
            "fixed": None,
        },
        "repetition": repetition,
        "fold": fold,
    }
    key = f"{hash(json.dumps(identity)) & (2**64 - 1):020x}"[:20]
    return {**found, "run": key, "settings": json.dumps(identity)}


def order_of(rows, swept=()):
    """Values as they come."""
    return {
        column: list(
            dict.fromkeys(each[column] for each in rows if each.get(column) not in (None, ""))
        )
        for column in (*STANDARD, *swept)
    }


def results_of(folder, rows, layout=None, swept=(), **facts):
    """Written to the folder and read again."""
    folder.mkdir(parents=True, exist_ok=True)
    names = dict.fromkeys(name for each in rows for name in each)
    whole = [{name: each.get(name) for name in names} for each in rows]
    parquet.write_table(pa.Table.from_pylist(whole), folder / "results.parquet")
    told = {
        "seed": 1,
        "folds": 3,
        "repetitions": 2,
        "metrics": ["error"],
        "swept": list(swept),
        "runs": len(rows),
        "words": {},
        "graphs": [],
        **facts,
    }
    text = description(layout or Layout("By hand"), order_of(rows, swept), told)
    (folder / "comparison.json").write_text(text, encoding="utf-8")
    return Results.read(folder)


def graph_of(folder, name, graph, **swept):
    """A network's picture to be: its file, and the entry of it in comparison.json."""
    (folder / "graphs").mkdir(parents=True, exist_ok=True)
    file = f"{name}-{len(graph)}.graphml"
    nx.write_graphml(graph, folder / "graphs" / file)
    return {"file": f"graphs/{file}", "network": name, "swept": swept}


def usual(
    seed=0,
    *,
    data=("G50C", "Garageband"),
    models=None,
    agents=(5, 10, 20, 40),
    runs=6,
    metric="error",
):
    """Runs of one centralised model and some over networks of several sizes, with
    plausible errors.
    """
    rng = np.random.default_rng(seed)
    models = models or {"C-RVFL": 0.06, "L-RVFL": 0.16, "CONS-RVFL": 0.062, "ADMM-RVFL": 0.06}
    rows = []
    for (k, name), (model, error), run in product(enumerate(data), models.items(), range(runs)):
        place = {"repetition": run // 3, "fold": run % 3}
        if model.startswith("C-"):
            value = error * (1 + k) + 0.004 * rng.standard_normal()
            rows.append(row(name, model, **place, **{metric: value}))
            continue
        for size in agents:
            grows = 1 + (0.02 * size if model.startswith("L-") else 0.001 * size)
            value = error * (1 + k) * grows + 0.004 * rng.standard_normal()
            sent = {
                "rounds": 10 * size,
                "messages": 40 * size,
                "bytes": 20_000 * size**2,
                "seconds": 0.01 * size,
            }
            extra = {"converged": run != 1 or model != "ADMM-RVFL", "iterations": 25}
            rows.append(
                row(name, model, "ER", agents=size, **place, **{metric: value}, **sent, **extra)
            )
    return rows
