"""Writer of the folders of a network on this machine: each agent gets the files of a real site.

    OUTPUT/certificates/    OUTPUT/test.npz    OUTPUT/NAME/site.toml    OUTPUT/NAME/share.npz

With [columns] rows are written as test.csv and share.csv.
Keys, rows and site.toml are private to their owner.
"""

from __future__ import annotations

import csv
import io
import random
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from peerlearn.errors import InputError
from peerlearn.network.peers import certificates
from peerlearn.partition import Share
from peerlearn.sites.plan import Plan
from peerlearn.system.files import result_folder, write
from peerlearn.toml_reader import toml

PORTS = range(10_000, 32_768)  # below those that systems give to outgoing connections
TRIES = 1000


def write_site_folders(plan: Plan, say: Callable[[str], None] = lambda doing: None) -> None:
    """Write the files that the agents of a plan need. Certificates and checkpoints stay."""
    folder = plan.output / "certificates"
    missing = [name for name in plan.agents if not (folder / f"{name}.pem").exists()]
    if missing:
        say("making certificates")
        certificates.make(folder, missing)
    say("writing the shares")
    rows = plan.rows
    ending = ".npz" if plan.columns is None else ".csv"
    _write_rows(plan, plan.output / f"test{ending}", rows.test)
    ports = free_ports(len(plan.agents))
    for number, (name, share) in enumerate(zip(plan.agents, rows.shares, strict=True)):
        folder = result_folder(plan.folder(name), private=True)
        _write_rows(plan, folder / f"share{ending}", share)
        write(folder / "site.toml", toml(_site(plan, number, ports)), private=True)


def _site(plan: Plan, number: int, ports: list[int]) -> dict[str, Any]:
    """Return the content of an agent's site.toml."""
    agents = plan.agents
    name = agents[number]
    return {
        "run": plan.run,
        "name": name,
        "address": f"127.0.0.1:{ports[number]}",
        "output": ".",
        "network": {
            "agents": list(agents),
            "links": [[agents[a], agents[b]] for a, b in plan.graph.edges],
            "weights": plan.weights,
            **plan.secrets,
        },
        "neighbors": {
            agents[k]: f"127.0.0.1:{ports[k]}" for k in sorted(plan.graph[number]) if k > number
        },
        "certificates": {
            "authority": "../certificates/authority.pem",
            "certificate": f"../certificates/{name}.pem",
            "key": f"../certificates/{name}.key",
        },
        "data": {
            "file": "share.npz" if plan.columns is None else "share.csv",
            "target": plan.rows.target,
        },
        **({} if plan.columns is None else {"columns": plan.columns}),
        "model": plan.model,
        "patience": vars(plan.patience),
    }


def _write_rows(plan: Plan, path: Path, share: Share) -> None:
    """Write rows as arrays, or as CSV if their cells may be texts and gaps."""
    X, y = share
    if plan.columns is None:
        content = _npz(X=X, y=y, columns=np.array(plan.rows.columns))
        write(path, content, private=True)
        return
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*plan.rows.columns, plan.rows.target])
    for cells, label in zip(X.tolist(), y.tolist(), strict=True):
        lines.writerow([*cells, label])
    write(path, text.getvalue(), private=True)


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now.

    Each is kept open until all are found, so none is found twice.
    """
    found: list[int] = []
    with ExitStack() as open_ports:
        for port in random.Random().sample(PORTS, TRIES):
            if len(found) == count:
                break
            try:
                open_ports.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
            except OSError:
                continue
    if len(found) < count:
        raise InputError(
            f"this machine has no {count} free ports: close something, or take fewer agents"
        )
    return found
