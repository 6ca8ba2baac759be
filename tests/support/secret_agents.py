"""Processes that train under secrecy on their engine, and save what they learned.

python -m tests.support.secret_agents mpi FOLDER [SETTINGS]                   under mpiexec
python -m tests.support.secret_agents peer K PORTS CERTS FOLDER [SETTINGS]    one agent of four

SETTINGS is JSON: "kind", what is trained: see `MODELS`. "checkpoints", a folder. "end_at", the
number of the network call before which the process ends as if it was killed, to be started again.
"save_every", seconds between checkpoints. "changed", whether the data change when it is started
again. "huge", whether agent 2 has numbers that are refused. "far", whether all columns are far from
zero, which takes more sums. "private", whether noise is added. "seed", of the noise; without it,
the system's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from peerlearn import (
    DifferentialPrivacy,
    GLMRegressor,
    LogisticClassifier,
    RVFLRegressor,
    S3VMClassifier,
)
from peerlearn.network.peers.timeouts import Timeouts
from tests.support.conformance import FOUR, SEVEN, peer

KILLED = 9
ODD = 2  # the agent that ends, changes its data, or has huge numbers
RIDGE = {"alpha": 0.1, "features": "fixed", "random_state": 0}
MODELS: dict[str, Any] = {
    "gram": RVFLRegressor(10, solver="gram", **RIDGE),
    "cg": RVFLRegressor(10, solver="cg", **RIDGE),
    "consensus": RVFLRegressor(10, solver="consensus", **RIDGE),
    "stream": RVFLRegressor(10, stream="exact", **RIDGE),
    "logistic": LogisticClassifier(classes=[0, 1]),
    "glm": GLMRegressor(alpha=0.0),
    "s3vm": S3VMClassifier(classes=[0, 1]),
}


def share(agent: int, *, changed: bool = False, huge: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(agent)
    X = rng.standard_normal((3 + 5 * agent, 3))
    y = X.sum(axis=1) + rng.standard_normal(len(X))
    if changed:
        y[0] += 1.0
    return X, y * 1e30 if huge else y


def fit(
    network: Any,
    kind: str = "gram",
    *,
    far: bool = False,
    private: bool = False,
    seed: int | None = None,
    **settings: Any,
) -> Any:
    model = clone(MODELS[kind]).set_params(network=network)
    if private:
        model.differential_privacy = DifferentialPrivacy(50.0, target_bounds=(-5, 5))
        network.noise_seed = seed
    shares = [share(agent, **(settings if agent == ODD else {})) for agent in network.hosted]
    if far:
        model.set_params(n_hidden=None, features="columns", alpha=1e-3)
        shares = [(X + 1e6, y) for X, y in shares]
    if kind in ("logistic", "s3vm"):
        shares = [(X, (y > 0).astype(int)) for X, y in shares]
    if kind == "s3vm":
        shares = [(X, np.where(np.arange(len(X)) < 3, y, -1)) for X, y in shares]
    if kind != "stream":
        return model.fit(shares)
    # The second chunk has no rows of agent 0, and waits for the third.
    for part in (slice(0, 1), slice(3, 5), slice(1, 3)):
        model.partial_fit([(X[part], y[part]) for X, y in shares])
    return model


def save(network: Any, folder: str, kind: str = "gram", **settings: Any) -> None:
    model = fit(network, kind, **settings)
    for k, agent in enumerate(network.hosted):
        numbers = np.append(model.coefficients_[k].ravel(), model.intercept_[k])
        np.save(Path(folder) / f"agent-{agent}.npy", numbers)


def run_mpi(folder: str, settings: str = "{}") -> None:
    from peerlearn import MPINetwork

    with MPINetwork(SEVEN, secrecy="sums", colluders=2) as network:
        save(network, folder, **json.loads(settings))


def run_peer(agent: str, ports: str, certs: str, folder: str, settings: str = "{}") -> None:
    given = json.loads(settings)
    checkpoints = Path(given["checkpoints"]) if "checkpoints" in given else None
    end_at = given.pop("end_at", None)
    if end_at is not None and int(agent) == ODD:
        first = [sys.executable, "-m", "tests.support.secret_agents", "end", str(end_at)]
        code = subprocess.run([*first, agent, ports, certs, folder, settings]).returncode
        assert code == KILLED, code
    keys = ("kind", "changed", "huge", "far", "private", "seed")
    data = {key: given[key] for key in keys if key in given}
    with connect(int(agent), ports, certs, checkpoints, given.get("save_every")) as network:
        save(network, folder, **data)


def end(end_at: str, agent: str, ports: str, certs: str, folder: str, settings: str) -> None:
    """Train until a network call, and end without a word."""
    given = json.loads(settings)
    place = Path(given["checkpoints"])
    network = connect(int(agent), ports, certs, place, given.get("save_every"))
    left = int(end_at)
    for name in ("flood", "pass_on", "exchange"):
        original = getattr(network, name)

        def call(*args: Any, original: Any = original, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(KILLED)
            return original(*args, **options)

        setattr(network, name, call)
    with network:
        given = {key: given[key] for key in ("kind", "far", "private") if key in given}
        fit(network, **given)


def connect(
    agent: int, ports: str, certs: str, checkpoints: Path | None, save_every: float | None
) -> Any:
    place = None if checkpoints is None else checkpoints / str(agent)
    patience = Timeouts() if save_every is None else Timeouts(save_every=save_every)
    return peer(
        agent,
        ports,
        certs,
        FOUR,
        checkpoints=place,
        patience=patience,
        records=None if checkpoints is None else checkpoints.parent / f"records-{agent}",
        secrecy="sums",
        colluders=2,
    )


if __name__ == "__main__":
    {"mpi": run_mpi, "peer": run_peer, "end": end}[sys.argv[1]](*sys.argv[2:])
