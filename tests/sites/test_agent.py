"""One agent per site, as real processes: from its file of rows to a model that all sites have."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.cli import main
from peerlearn.models import archive
from peerlearn.network.peers import certificates
from peerlearn.network.peers.chain_file import read_chain
from peerlearn.sites.training import make_model
from peerlearn.toml_reader import toml
from tests.support.pages import ROOT
from tests.support.site_processes import ends as all_ended
from tests.support.site_processes import run, started, status, wait_for, wait_for_round, write_sites
from tests.support.waiting import PATIENCE

NAMES = ["north", "south", "west"]
IRIS = data.load("iris", scaled=False)
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]
ORDER = np.random.default_rng(0).permutation(150)
SHARES = dict(zip(NAMES, np.split(ORDER, [30, 95]), strict=True))  # of different sizes
MODEL = {
    "kind": "RVFLClassifier",
    "n_hidden": 25,
    "alpha": 1.0,
    "activation": "sigmoid",
    "random_state": 0,
    "solver": {"name": "gram", "tolerance": 1e-12},
}
LONG = {  # some thousand rounds
    **MODEL,
    "solver": {
        "name": "admm",
        "tolerance": 1e-9,
        "rho": 120.0,
        "averaging": {"method": "plain", "tolerance": 1e-4},
    },
}


def frame(rows):
    table = pd.DataFrame(IRIS.X[rows], columns=COLUMNS)
    return table.assign(species=np.array(["setosa", "versicolor", "virginica"])[IRIS.y[rows]])


def csv_of(folder, names, **other):
    """A file of rows for each agent, and what a site says of it."""
    for name in names:
        frame(SHARES[name]).to_csv(folder / f"{name}.csv", index=False)
    return {name: {"file": f"{name}.csv", "target": "species", **other} for name in names}


def call(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Three sites that have trained, two from .csv and one from .parquet."""
    folder = tmp_path_factory.mktemp("sites")
    certificates.make(folder / "papers", NAMES)
    rows = csv_of(folder, NAMES[:2])
    frame(SHARES["west"]).to_parquet(folder / "west.parquet")
    write_sites(
        folder, NAMES, MODEL, data={**rows, "west": {"file": "west.parquet", "target": "species"}}
    )
    done = run(*(("agent", f"{name}.toml") for name in NAMES), folder=folder)
    assert [code for code, _ in done] == [0, 0, 0], done
    return folder, [said for _, said in done]


@pytest.mark.processes
def test_the_model_is_the_centralised_one(trained):
    folder, said = trained
    scale = IRIS.X.std(axis=0)
    wanted = RVFLClassifier(25, random_state=0, alpha=1.0, activation="sigmoid").fit(
        (IRIS.X - IRIS.X.mean(axis=0)) / scale, frame(slice(None)).species
    )
    for name, words in zip(NAMES, said, strict=True):
        saved = archive.load(folder / name / "model.npz")
        assert np.allclose(saved.model.coefficients_[0], wanted.coefficients_[0], rtol=0, atol=1e-8)
        assert np.allclose(saved.center, IRIS.X.mean(axis=0), rtol=1e-12)
        assert np.allclose(saved.scale, scale, rtol=1e-12)
        assert (saved.columns, saved.target) == (tuple(COLUMNS), "species")
        assert saved.model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        assert "converged     yes" in words
        assert words.endswith(f"Model {name}/model.npz\n")


@pytest.mark.processes
def test_files_that_a_run_leaves(trained):
    folder, _ = trained
    for name in NAMES:
        report = json.loads((folder / name / "report.json").read_text())
        assert (report["agent"], report["rows"], report["converged"]) == (
            name,
            len(SHARES[name]),
            True,
        )
        assert 0 < report["bound"] <= 1e-6
        words = (folder / name / "report.txt").read_text()
        assert words.startswith("solver ")
        assert f"error bound   {report['bound']:.2e}" in words
        assert status(folder / name)["state"] == "done"
        assert status(folder / name)["bytes"] > 0
        assert (
            f"agent {name}: {len(SHARES[name])} rows, 4 columns of {name}."
            in (folder / name / "agent.log").read_text()
        )
        assert report["left"]["head"] == read_chain(folder / name / "left.jsonl").head
    done = call("privacy", "--left", folder)
    assert done.exit_code == 0, done.output
    assert "Gram matrices or R" in done.output
    assert sum(left_counts(folder / name) for name in NAMES)[0] > 0


def left_counts(folder):
    """Messages and bytes that left an agent, as its ledger has them."""
    return np.sum(list(read_chain(folder / "left.jsonl").entries[-1]["counts"].values()), axis=0)


@pytest.mark.processes
def test_the_model_predicts(trained):
    folder, _ = trained
    frame(slice(None)).to_csv(folder / "all.csv", index=False)
    done = call("predict", folder / "south" / "model.npz", folder / "all.csv")
    assert done.exit_code == 0, done.stderr
    assert float(done.stderr.split()[1]) > 0.95


@pytest.mark.processes
def test_a_finished_run_says_so(trained):
    folder, _ = trained
    before = [(folder / name / "model.npz").read_bytes() for name in NAMES]
    done = run(*(("agent", f"{name}.toml") for name in NAMES), folder=folder)
    for code, words in done:
        assert code == 0, words
        assert "This run was finished before; empty the checkpoints folder to train anew." in words
        assert "solver        Gram" in words
    assert [(folder / name / "model.npz").read_bytes() for name in NAMES] == before


@pytest.mark.parametrize("of", ["north", "south"])
def test_papers_are_checked_before_anything_is_opened(tmp_path, of):
    certificates.make(tmp_path / "papers", ["north", "south"])
    write_sites(tmp_path, ["north", "south"], MODEL, data=csv_of(tmp_path, ["north", "south"]))
    site, key = tmp_path / f"{of}.toml", tmp_path / "papers" / f"{of}.key"
    key.chmod(0o644)
    shown = call("agent", site)
    key.unlink()
    missing = call("agent", site)
    edit(site, "[certificates]", "[certificate]")
    misspelt = call("agent", site)
    edit(site, "[certificate]", "[certificates]")
    edit(site, f"papers/{of}", "papers/authority")
    strange = call("agent", site)
    for done, said in [
        (shown, f"the key {key} can be read by other users of this machine: chmod 600"),
        (missing, f"{key} is not there: copy it from the folder that peerlearn certs made"),
        (misspelt, f"[certificate] in {site} is not known: did you mean certificates?"),
        (strange, f"is for no name that TLS knows, but this agent is {of}: give the files of {of}"),
    ]:
        assert (done.exit_code, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr
    assert not (tmp_path / of).exists()


def test_without_certificates_nothing_leaves_this_machine(tmp_path):
    write_sites(
        tmp_path,
        ["north", "south"],
        MODEL,
        certificates=False,
        data=csv_of(tmp_path, ["north", "south"]),
    )
    site = tmp_path / "north.toml"
    done = call("agent", site)
    assert done.exit_code == 2
    assert (
        f"{site} has no [certificates], and nothing is sent without certificates: make some"
        in done.stderr
    )
    assert not (tmp_path / "north").exists()
    for old, new in [
        ('address = "127.0.0.1', 'address = "0.0.0.0'),
        ('south = "127.0.0.1', 'south = "south.example'),
    ]:
        before = site.read_text()
        edit(site, old, new)
        done = call("agent", site, "--insecure-loopback")
        assert done.exit_code == 2
        assert (
            "is not of this machine, and without certificates nothing may leave it" in done.stderr
        )
        site.write_text(before)


def test_rows_that_cannot_be_used(tmp_path):
    certificates.make(tmp_path / "papers", ["north", "south"])
    write_sites(tmp_path, ["north", "south"], MODEL, data=csv_of(tmp_path, ["north", "south"]))
    (tmp_path / "north.csv").write_text("a,species\n1,x\nmany,y\n")
    (tmp_path / "south.csv").unlink()
    for name, said in [("north", "'many'"), ("south", "there is no file")]:
        done = call("agent", tmp_path / f"{name}.toml")
        assert done.exit_code == 2
        assert said in done.stderr
        assert f"{name}.csv" in done.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    ("key", "values", "file", "old", "new"),
    [
        (
            "data columns",
            ("petal width", "petal breadth"),
            "south.csv",
            "petal width",
            "petal breadth",
        ),
        (
            "model.alpha",
            ("1 at north", "2.5 at south"),
            "south.toml",
            "alpha = 1.0",
            "alpha = 2.5",
        ),
        ("data.target", ("species at north", "kind at south"), "south.*", "species", "kind"),
    ],
)
def test_settings_that_differ_end_both_agents(tmp_path, key, values, file, old, new):
    certificates.make(tmp_path / "papers", ["north", "south"])
    write_sites(tmp_path, ["north", "south"], MODEL, data=csv_of(tmp_path, ["north", "south"]))
    for path in tmp_path.glob(file):
        edit(path, old, new)
    for code, words in run(("agent", "north.toml"), ("agent", "south.toml"), folder=tmp_path):
        last = words.splitlines()[-1]
        assert code == 2, words
        assert last.startswith("peerlearn: agents ")
        assert f" disagree on {key}: " in last
        assert all(value in last for value in values)


@pytest.mark.processes
def test_scripts_see_nothing_of_what_grpc_writes(tmp_path):
    """A port in use, and then a stranger that speaks no TLS: only our own words are on standard
    error.
    """
    certificates.make(tmp_path / "papers", ["north"])
    script = """
import os, socket, sys
from pathlib import Path
from peerlearn import PeerNetwork, graphs
from peerlearn.network.peers.identity import Identity

papers = [Path("papers", name) for name in ("authority.pem", "north.pem", "north.key")]
given = dict(addresses={}, names=["north"], identity=Identity.load(*papers, "north"))
with socket.create_server(("127.0.0.1", 0)) as taken:
    try:
        PeerNetwork(graphs.complete(1), 0, listen=f"127.0.0.1:{taken.getsockname()[1]}", **given)
    except Exception as error:
        print(error)
with PeerNetwork(graphs.complete(1), 0, listen="127.0.0.1:0", **given) as network:
    with socket.create_connection(("127.0.0.1", network.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
        print(len(stranger.recv(1000)), "GRPC_VERBOSITY" in os.environ)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout.startswith("this agent cannot listen on 127.0.0.1:"), done.stderr
    assert done.stdout.endswith(" False\n")
    assert (done.returncode, done.stderr) == (0, "")


def listening(port):
    """Addresses on which somebody listens on a port, as Linux writes them."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return [
        line[1].split(":")[0]
        for line in lines
        if line[3] == "0A" and int(line[1].split(":")[1], 16) == port
    ]


@pytest.mark.processes
def test_a_port_in_use_is_one_sentence(tmp_path):
    """What gRPC's core writes about it is in the agent's log, and not on the terminal."""
    write_sites(
        tmp_path,
        ["north", "south"],
        MODEL,
        certificates=False,
        data=csv_of(tmp_path, ["north", "south"]),
    )
    port = int((tmp_path / "south.toml").read_text().split("127.0.0.1:")[1].split('"')[0])
    with socket.create_server(("127.0.0.1", port)):
        ((code, words),) = run(("agent", "south.toml", "--insecure-loopback"), folder=tmp_path)
    first, last = words.splitlines()
    assert code == 2
    assert first.endswith("agent south: 65 rows, 4 columns of south.csv")
    assert (
        last
        == f"peerlearn: this agent cannot listen on 127.0.0.1:{port}: the port is in use, or the "
        "address is not of this machine"
    )
    log = (tmp_path / "south" / "agent.log").read_text()
    assert "gRPC: " in log
    assert "Address already in use" in log


@pytest.mark.processes
def test_an_agent_that_gives_up_can_be_started_again(tmp_path):
    """It listens on this machine alone, waits for its neighbor, and stops."""
    write_sites(
        tmp_path,
        ["north", "south"],
        MODEL,
        certificates=False,
        data=csv_of(tmp_path, ["north", "south"]),
    )
    port = int((tmp_path / "south.toml").read_text().split("127.0.0.1:")[1].split('"')[0])
    command = ("agent", "south.toml", "--insecure-loopback", "--give-up-after", 2)
    edit(tmp_path / "south.toml", "[model]", "[patience]\nsilence = 0.5\n[model]")
    with started(command, folder=tmp_path) as running:
        wait_for(lambda: listening(port), "listening", running)
        assert listening(port) in (
            ["0100007F"],
            ["0000000000000000FFFF00000100007F"],
        )  # 127.0.0.1, of both kinds
        assert status(tmp_path / "south") == {"state": "connecting"}
        second = call(*command[:1], tmp_path / "south.toml", *command[2:])
        ((code, words),) = all_ended(running, tmp_path)
    assert second.exit_code == 2
    assert (
        f"agent south runs in {tmp_path / 'south'} already, as process {running[0].pid}: "
        "wait for it"
    ) in second.stderr
    assert code == 3
    last = words.splitlines()[-1]
    assert last.startswith("peerlearn: gave up after agent north had been silent for ")
    assert last.endswith("; the same command goes on where this ended")
    assert last.removeprefix("peerlearn: ") in (tmp_path / "south" / "agent.log").read_text()


@pytest.mark.processes
def test_stopped_in_the_middle_and_started_again(tmp_path):
    """SIGTERM to one and Ctrl-C to the other: the coefficients are those of agents that nobody
    stopped.
    """
    names = NAMES[:2]
    write_sites(
        tmp_path,
        names,
        LONG,
        certificates=False,
        data=csv_of(tmp_path, names),
        patience={"save_every": 0.2},
    )
    commands = [("agent", f"{name}.toml", "--insecure-loopback") for name in names]
    with started(*commands, folder=tmp_path) as running:
        wait_for_round(tmp_path / "south", 100, running)
        running[1].send_signal(signal.SIGTERM)
        running[1].wait()
        running[0].send_signal(signal.SIGINT)
        done = all_ended(running, tmp_path)
    for (code, words), wanted, by, name in zip(
        done, (130, 143), ("Ctrl-C", "SIGTERM"), names, strict=True
    ):
        assert code == wanted, words
        assert words.endswith(
            f"peerlearn: stopped by {by}; the same command goes on where this ended\n"
        )
        assert status(tmp_path / name)["state"] == "stopped"
        assert list((tmp_path / name / "checkpoints").glob("checkpoint-*.bin"))
        assert not (tmp_path / name / "model.npz").exists()
    stopped = status(tmp_path / "south")["round"]
    again = run(*commands, folder=tmp_path)
    assert [code for code, _ in again] == [0, 0], again
    assert all(
        "going on from the checkpoint of round" in (tmp_path / n / "agent.log").read_text()
        for n in names
    )
    assert status(tmp_path / "south")["round"] > stopped
    network = SimulatedNetwork(graphs.linear(2))
    shares = [IRIS.X[SHARES[name]] for name in names]
    mean, deviation = mean_and_deviation(network, shares)
    targets = [frame(SHARES[name]).species.to_numpy(dtype=str) for name in names]
    wanted = make_model(LONG, network).fit(
        [((X - mean[0]) / deviation[0], y) for X, y in zip(shares, targets, strict=True)]
    )
    for k, name in enumerate(names):
        found = archive.load(tmp_path / name / "model.npz").model.coefficients_[0]
        assert np.allclose(found, wanted.coefficients_[k], rtol=0, atol=1e-12)
    sent = network.ledger
    assert sum(left_counts(tmp_path / name) for name in names).tolist() == [
        sent.messages,
        sent.bytes,
    ]


def test_a_model_that_was_taken_away_is_not_claimed(tmp_path):
    """One agent alone is a network too: trained, and then asked again after its model was
    deleted.
    """
    certificates.make(tmp_path / "papers", ["north"])
    write_sites(tmp_path, ["north"], {**MODEL, "alpha": 2}, data=csv_of(tmp_path, ["north"]))
    edit(tmp_path / "north.toml", toml({"links": []}), "links = []\n")
    site = tmp_path / "north.toml"
    assert call("agent", site).exit_code == 0
    (tmp_path / "north" / "model.npz").unlink()
    done = call("agent", site)
    assert done.exit_code == 2
    assert (
        f"its files in {tmp_path / 'north'} are gone or damaged: bring them back, or empty the"
        in done.stderr
    )
