"""The folders of a network on this machine: each agent gets the files that a real site has.

OUTPUT/certificates/  OUTPUT/test.npz  OUTPUT/NAME/site.toml  OUTPUT/NAME/share.npz
"""

from __future__ import annotations

import io
import random
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from peerlearn.errors import InputError
from peerlearn.network.peers import certificates
from peerlearn.sites.plan import Plan
from peerlearn.system.files import result_folder, write
from peerlearn.toml_reader import toml

PORTS = range(10_000, 32_768)  # below those that systems give to outgoing connections
TRIES = 1000


def lay_out(plan: Plan, say: Callable[[str], None] = lambda doing: None) -> None:
    """Write what the agents of a plan need; what they have of the same run stays."""
    papers, rows = plan.output / "certificates", plan.rows
    missing = [name for name in plan.agents if not (papers / f"{name}.pem").exists()]
    if missing:
        say("making certificates")
        certificates.make(papers, missing)
    say("writing the shares")
    columns = np.array(rows.columns)
    write(
        plan.output / "test.npz",
        _npz(X=rows.test[0], y=rows.test[1], columns=columns),
        private=True,
    )
    ports = _free_ports(len(plan.agents))
    for number, (name, (X, y)) in enumerate(zip(plan.agents, rows.shares, strict=True)):
        folder = result_folder(plan.folder(name), private=True)
        write(folder / "share.npz", _npz(X=X, y=y, columns=columns), private=True)
        write(folder / "site.toml", toml(_site(plan, number, ports)), private=True)


def _site(plan: Plan, number: int, ports: list[int]) -> dict[str, Any]:
    agents, name = plan.agents, plan.agents[number]
    return {
        "run": plan.run,
        "name": name,
        "address": f"127.0.0.1:{ports[number]}",
        "output": ".",
        "network": {
            "agents": list(agents),
            "links": [[agents[a], agents[b]] for a, b in plan.graph.edges],
            "weights": plan.weights,
        },
        "neighbors": {
            agents[k]: f"127.0.0.1:{ports[k]}" for k in sorted(plan.graph[number]) if k > number
        },
        "certificates": {
            "authority": "../certificates/authority.pem",
            "certificate": f"../certificates/{name}.pem",
            "key": f"../certificates/{name}.key",
        },
        "data": {"file": "share.npz", "target": plan.rows.target},
        "model": plan.model,
        "patience": vars(plan.patience),
    }


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; all are held while they are looked for, so none is found twice."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.Random().sample(PORTS, TRIES):
            if len(found) == count:
                break
            try:
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
            except OSError:
                continue
    if len(found) < count:
        raise InputError(
            f"this machine has no {count} free ports: close something, or take fewer agents"
        )
    return found
