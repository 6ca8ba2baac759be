"""One agent as a process: read the site's file, train with the neighbors, write the model.

    OUTPUT/model.npz                  for peerlearn predict; no pickle in it
    OUTPUT/report.json, report.txt    how it was trained, and what was sent
    OUTPUT/status.json                state, round, residual and bytes while it runs
    OUTPUT/agent.log
    OUTPUT/checkpoints/               from which the same command resumes after a kill
    OUTPUT/left.jsonl                 ledger of what left the site, in all runs

Only their owner can read these files.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from peerlearn.algorithms.secret_sums import one_session
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.data import table_file
from peerlearn.errors import InputError, NotConverged, Stopped
from peerlearn.models import archive
from peerlearn.models.unlabelled import is_unlabelled
from peerlearn.network.peers.door import allow_many_files
from peerlearn.network.peers.identity import Identity
from peerlearn.network.peers.left_ledger import NAME as LEFT
from peerlearn.network.peers.link import Left
from peerlearn.network.peers.network import Interrupted, PeerNetwork
from peerlearn.preparing.prepared_model import PreparedModel
from peerlearn.private_files import open_private
from peerlearn.sites.description import Site, read_site
from peerlearn.sites.refusals import refusals_in_the_log
from peerlearn.sites.training import (
    fit_model,
    make_model,
    make_preparer,
    may_lack_labels,
    settings_to_compare,
)
from peerlearn.system.files import result_folder, write
from peerlearn.system.folder_lock import lock_folder
from peerlearn.system.stop_signals import stop_on_signals

log = logging.getLogger("peerlearn.peers")


@dataclass(frozen=True)
class Done:
    """Result of an agent's run."""

    model: Path
    report: str
    again: bool = False  # whether it was finished before, so that nothing was trained now


def run_agent(
    file: Path, *, insecure_loopback: bool = False, give_up_after: float | None = None
) -> Done:
    """Train as the site's file describes, together with the neighbors, to the end."""
    with stop_on_signals() as stops:
        allow_many_files()
        site = read_site(file)
        if give_up_after is not None:
            site = replace(site, patience=replace(site.patience, give_up_after=give_up_after))
        identity = None if insecure_loopback else _identity(site, file)
        table = read_rows(site)
        output = result_folder(site.output, private=True)
        with (
            lock_folder(output, f"agent {site.name}", private=True),
            _log_to_file(output / "agent.log") as note,
            refusals_in_the_log(note),
        ):
            log.info(
                "agent %s: %d rows, %d columns of %s",
                site.name,
                len(table.X),
                len(table.columns),
                site.data.name,
            )
            if may_lack_labels(site.model):
                log.info(
                    "agent %s: %d rows have a label",
                    site.name,
                    np.count_nonzero(~is_unlabelled(table.y)),
                )
            try:
                return _run(
                    site,
                    table,
                    output,
                    stops,
                    identity=identity,
                    insecure_loopback=insecure_loopback,
                )
            except Interrupted:
                raise
            except Left as error:
                raise Stopped(
                    f"{error}; once that is put right, the same command goes on"
                ) from None
            except Stopped as error:
                raise Stopped(f"{error}; the same command goes on where this ended") from None


def _run(
    site: Site,
    table: table_file.DataTable,
    output: Path,
    stops: Callable[[Callable[[str], None]], None],
    **security: Any,
) -> Done:
    with (
        keep_status_file(output / "status.json") as watch,
        PeerNetwork(
            site.graph,
            site.number,
            site.weights,
            listen=site.address,
            addresses=site.addresses,
            names=site.agents,
            run=site.run,
            settings={
                "data columns": list(table.columns),
                "data.target": site.target,
                "data.scale": site.scale,
                "columns": json.dumps(site.columns, sort_keys=True),
                **settings_to_compare(site.model),
            },
            own_settings={"data file": sha256(site.data.read_bytes()).hexdigest()[:16]},
            checkpoints=output / "checkpoints",
            patience=site.patience,
            records=output,
            **site.secrets,
            **security,
        ) as network,
    ):
        stops(network.interrupt)
        watch(network)
        if not network.finished:
            with one_session(network):
                return _train(site, network, table, output)
        return _load_finished_run(output)


def _train(site: Site, network: PeerNetwork, table: table_file.DataTable, output: Path) -> Done:
    X = table.X
    center = scale = None
    preparer = None
    names: Sequence[str] = table.columns
    if site.columns is not None:
        preparer = make_preparer(site.model, site.columns, names, network)
        X = preparer.fit_transform(X)
        names = preparer.get_feature_names_out().tolist()
    elif site.scale:
        mean, deviation = mean_and_deviation(network, [X])
        center = mean[0]
        scale = deviation[0]
        X = (X - center) / scale
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NotConverged)
        model = fit_model(make_model(site.model, network), X, table.y, names)
    for each in caught:
        log.warning("%s", each.message)
    report = model.report_
    path = output / "model.npz"
    if preparer is not None:
        PreparedModel(preparer, model, site.target).save(path)
    else:
        archive.save(
            model, path, columns=table.columns, center=center, scale=scale, target=site.target
        )
    about = {
        "agent": site.name,
        "rows": len(X),
        **report.for_json(),
        "left": {"file": LEFT, "head": network.record_left()},
    }
    write(output / "report.json", json.dumps(about, indent=2) + "\n", private=True)
    write(output / "report.txt", f"{report}\n", private=True)
    log.info("trained with %s; the model is %s", report.solver, path)
    return Done(path, str(report))


def _load_finished_run(output: Path) -> Done:
    """Return the result of a run that was finished before."""
    try:
        archive.load(output / "model.npz")
        report = (output / "report.txt").read_text(encoding="utf-8").rstrip("\n")
    except (OSError, InputError):
        raise InputError(
            f"this run was finished before, but its files in {output} are gone or damaged: bring "
            "them back, or empty the checkpoints folders of all agents to train anew"
        ) from None
    log.info("this run was finished before; its model is %s", output / "model.npz")
    return Done(output / "model.npz", report, again=True)


def _identity(site: Site, file: Path) -> Identity:
    if site.certificates is None:
        raise InputError(
            f"{file} has no [certificates], and nothing is sent without certificates: make some "
            "with peerlearn certs, or try things out on one machine with --insecure-loopback"
        )
    return Identity.load(*site.certificates, site.name)


def read_rows(site: Site) -> table_file.DataTable:
    """Read the site's table. In .npz files the target may be y, whatever its name elsewhere."""
    is_npz = site.data.suffix.lower() == ".npz"
    called_y = is_npz and site.target not in table_file.read_header(site.data)
    return table_file.read(
        site.data,
        "y" if called_y else site.target,
        partly_labelled=may_lack_labels(site.model),
        raw=site.columns is not None,
    )


@contextmanager
def _log_to_file(path: Path) -> Iterator[Callable[[str], None]]:
    """Write the log, and the error that ends the run, to a file as well.

    Yields a function that writes to the file alone.
    """
    with open(path, "a", encoding="utf-8", opener=open_private) as file:
        handler = logging.StreamHandler(file)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
        logger = logging.getLogger("peerlearn")
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)

        def note(text: str, level: int = logging.INFO) -> None:
            handler.handle(logging.LogRecord(log.name, level, __file__, 0, "%s", (text,), None))

        try:
            yield note
        except BaseException as error:
            note(f"ended: {str(error) or type(error).__name__}", logging.ERROR)
            raise
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)


STATUS_EVERY = 0.5  # seconds between two writes of the status file


@contextmanager
def keep_status_file(path: Path) -> Iterator[Callable[[PeerNetwork], None]]:
    """Write the status to this file twice a second, until the block ends.

    Yields a function that takes the network when it has been made. The state is that of the
    network, and at the end "done" or "stopped".
    """
    networks: list[PeerNetwork] = []
    over = threading.Event()

    def write_status(state: str | None = None) -> None:
        status: dict[str, Any] = {"state": state or "connecting"}
        for network in networks:
            residual = network.residual
            status = {
                "state": state or network.state,
                "round": network.round,
                "residual": residual if residual is not None and math.isfinite(residual) else None,
                "bytes": network.bytes_sent,
            }
            if state is None and (waiting := network.waiting) is not None:
                since = datetime.fromtimestamp(waiting.since, UTC).isoformat(timespec="seconds")
                status["waiting"] = {"for": list(waiting.names), "since": since}
        with suppress(InputError):  # a full disk must not end the run
            write(path, json.dumps(status) + "\n", private=True)

    def repeat() -> None:
        while not over.wait(STATUS_EVERY):
            write_status()

    write_status()
    writer = threading.Thread(target=repeat, name="peerlearn-status", daemon=True)
    writer.start()
    end = "stopped"
    try:
        yield networks.append
        end = "done"
    finally:
        over.set()
        writer.join()
        write_status(end)
