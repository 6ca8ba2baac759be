"""One agent as a process: read the site's file, train with the neighbors, leave model and report on disk.

OUTPUT/model.npz          for peerlearn predict; no pickle in it
OUTPUT/report.json        how it was trained, and what was sent
OUTPUT/status.json        state, round, residual and bytes while it runs
OUTPUT/agent.log
OUTPUT/checkpoints/       from which the same command goes on after a kill
"""

from __future__ import annotations

import json
import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import FrameType

from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.data import tables
from peerlearn.errors import InputError
from peerlearn.experiments.files import result_folder, write
from peerlearn.models import archive
from peerlearn.network.peers.network import PeerNetwork
from peerlearn.network.peers.papers import Identity
from peerlearn.sites.description import Site, read_site
from peerlearn.sites.refusals import refusals_in_the_log
from peerlearn.sites.training import make_model

log = logging.getLogger("peerlearn.peers")

STATUS_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class Done:
    """What an agent's run ended with."""

    model: Path
    report: str
    again: bool = False  # it was finished before: nothing was trained now


def run_agent(file: Path, *, insecure_loopback: bool = False, give_up_after: float | None = None) -> Done:
    """Train as the site's file says, together with the neighbors, to the end."""
    site = read_site(file)
    if give_up_after is not None:
        site = replace(site, patience=replace(site.patience, give_up_after=give_up_after))
    identity = None if insecure_loopback else _identity(site, file)
    table = tables.read(site.data, site.target or "y")
    output = result_folder(site.output)
    with _logged(output / "agent.log"), refusals_in_the_log(), _signals() as stops:
        log.info("agent %s: %d rows, %d columns of %s", site.name, len(table.X), len(table.columns), site.data.name)
        with PeerNetwork(
            site.graph,
            site.number,
            site.weights,
            listen=site.address,
            addresses=site.addresses,
            identity=identity,
            insecure_loopback=insecure_loopback,
            names=site.agents,
            run=site.run,
            settings={
                "the columns": list(table.columns),
                "the target": site.target or "y",
                "scale": site.scale,
                "the model": site.model,
            },
            own_settings={"data file": sha256(site.data.read_bytes()).hexdigest()[:16]},
            checkpoints=output / "checkpoints",
            patience=site.patience,
        ) as network:
            stops(network.interrupt)
            if network.finished:
                log.info("this run was finished before; its model is %s", output / "model.npz")
                return Done(output / "model.npz", _report(output), again=True)
            with _status(network, output / "status.json"):
                return _train(site, network, table, output)


def _train(site: Site, network: PeerNetwork, table: tables.Table, output: Path) -> Done:
    X, center, scale = table.X, None, None
    if site.scale:
        mean, deviation = mean_and_deviation(network, [X])
        center, scale = mean[0], deviation[0]
        X = (X - center) / scale
    model = make_model(site.model, network).fit(X, table.y)
    report = model.report_
    archive.save(
        model, output / "model.npz", columns=table.columns, center=center, scale=scale, target=site.target or "y"
    )
    write(output / "report.json", json.dumps({"agent": site.name, "rows": len(X), **asdict(report)}, indent=2) + "\n")
    write(output / "report.txt", f"{report}\n")
    log.info("trained with %s; the model is %s", report.solver, output / "model.npz")
    return Done(output / "model.npz", str(report))


def _identity(site: Site, file: Path) -> Identity:
    if site.certificates is None:
        raise InputError(
            f"{file} has no [certificates], and nothing is sent without: make some with peerlearn certs, or try things "
            "out on one machine with --insecure-loopback"
        )
    return Identity.load(*site.certificates, site.name)


def _report(output: Path) -> str:
    try:
        return (output / "report.txt").read_text(encoding="utf-8").rstrip("\n")
    except OSError:
        return "no report was left"


@contextmanager
def _logged(path: Path) -> Iterator[None]:
    """What the network says goes to the agent's log file as well."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    logger = logging.getLogger("peerlearn")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()


@contextmanager
def _signals() -> Iterator[Callable[[Callable[[str], None]], None]]:
    """Ctrl-C and SIGTERM stop at the next round, with a checkpoint; a second one, or one before the start, at once."""
    stop: list[Callable[[str], None]] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if not stop:
            raise KeyboardInterrupt
        stop.pop()(f"stopped by {signal.Signals(number).name}; start again with the same command to go on")

    if threading.current_thread() is not threading.main_thread():
        yield stop.append
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop.append
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _status(network: PeerNetwork, path: Path) -> Iterator[None]:
    """A file that says how far this agent is, written anew now and then; whoever watches reads it."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(STATUS_EVERY):
            _write_status(network, path)

    teller = threading.Thread(target=tell, name="peerlearn-status", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        _write_status(network, path)


def _write_status(network: PeerNetwork, path: Path) -> None:
    residual = network.residual
    status = {
        "state": network.state,
        "round": network.round,
        "residual": residual if residual is not None and math.isfinite(residual) else None,
        "bytes": network.bytes_sent,
    }
    with suppress(InputError):  # a full disk must not end the run: the next one may have room
        write(path, json.dumps(status) + "\n")
