"""Secret sums between processes: the bits of a simulation, kills, changes, and what is said."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from peerlearn import SimulatedNetwork
from peerlearn.network.peers import certificates
from peerlearn.network.peers.chain_file import read_chain
from tests.support import mpi_jobs, peer_processes, secret_agents
from tests.support.conformance import FOUR, SEVEN

pytestmark = pytest.mark.processes


def expected(graph, kind="gram", **settings):
    network = SimulatedNetwork(graph, exact_order=True, secrecy="sums", colluders=2)
    model = secret_agents.fit(network, kind, **settings)
    plain = secret_agents.fit(SimulatedNetwork(graph), kind, **settings)
    near = 1e-10 if kind == "gram" else 1e-6
    np.testing.assert_allclose(model.coefficients_, plain.coefficients_, atol=near)
    return np.append(model.coefficients_[0].ravel(), model.intercept_[0])


def check_saved(folder, graph, kind="gram", **settings):
    numbers = expected(graph, kind, **settings)
    for agent in range(len(graph)):
        np.testing.assert_array_equal(np.load(folder / f"agent-{agent}.npy"), numbers)


def run_peers(folder, **settings):
    if not (folder / "certs").exists():
        certificates.make(folder / "certs", [f"agent-{k}" for k in range(4)])
    ports = peer_processes.free_ports(4)
    given = [ports, str(folder / "certs"), str(folder), json.dumps(settings)]
    programs = [["-m", "tests.support.secret_agents", "peer", str(k), *given] for k in range(4)]
    peer_processes.run(programs, folder)


@pytest.mark.parametrize("kind", secret_agents.MODELS)
def test_ranks_of_a_job_have_the_bits_of_a_simulation(tmp_path, kind):
    settings = json.dumps({"kind": kind})
    mpi_jobs.run(3, "-m", "tests.support.secret_agents", "mpi", str(tmp_path), settings)
    check_saved(tmp_path, SEVEN, kind)


@pytest.mark.parametrize("kind", secret_agents.MODELS)
def test_agents_over_tls_have_the_bits_of_a_simulation_and_keep_no_keys(tmp_path, kind):
    run_peers(tmp_path, kind=kind, checkpoints=str(tmp_path / "kept"))
    check_saved(tmp_path, FOUR, kind)
    assert (tmp_path / "kept" / "0").is_dir()
    assert not list(tmp_path.rglob("secrets.jsonl"))


# Settings are compared in calls 0 and 1; then there are keys, signatures, a vote, the diagonal,
# scales, the Gram matrix, coefficients and a comparison of what was received.
@pytest.mark.parametrize(
    ("end_at", "save_every"),
    [(4, 60.0), (8, 60.0), (13, 60.0), (17, 0.001), (19, 60.0), (21, 60.0)],
)
def test_an_agent_that_is_killed_goes_on_to_the_same_bits(tmp_path, end_at, save_every):
    kept = str(tmp_path / "kept")
    run_peers(tmp_path, checkpoints=kept, end_at=end_at, save_every=save_every)
    check_saved(tmp_path, FOUR)


@pytest.mark.parametrize(("end_at", "save_every"), [(25, 60.0), (31, 0.001), (35, 60.0)])
def test_an_agent_that_is_killed_in_further_sums_goes_on_to_the_same_bits(
    tmp_path, end_at, save_every
):
    """Means of columns, and the sums about them."""
    kept = str(tmp_path / "kept")
    run_peers(tmp_path, checkpoints=kept, end_at=end_at, save_every=save_every, far=True)
    check_saved(tmp_path, FOUR, far=True)


# With earlier totals there are also their ids, a count and a vote, before the diagonal.
@pytest.mark.parametrize("end_at", [10, 19])
def test_an_agent_with_earlier_totals_that_is_killed_goes_on_to_the_same_bits(tmp_path, end_at):
    run_peers(tmp_path, checkpoints=str(tmp_path / "first"))
    run_peers(tmp_path, checkpoints=str(tmp_path / "second"), end_at=end_at, save_every=60.0)
    check_saved(tmp_path, FOUR)
    for agent in range(4):
        for name, length in (("totals", 2), ("left", None)):
            entries = read_chain(tmp_path / f"records-{agent}" / f"{name}.jsonl").entries
            assert length in (None, len(entries))


# Products of conjugate gradients take 4 calls each.
@pytest.mark.parametrize("end_at", [13, 15, 20, 23, 40])
def test_an_agent_that_is_killed_in_conjugate_gradients_goes_on_to_the_same_bits(tmp_path, end_at):
    kept = str(tmp_path / "kept")
    run_peers(tmp_path, kind="cg", checkpoints=kept, end_at=end_at, save_every=60.0)
    check_saved(tmp_path, FOUR, "cg")


@pytest.mark.parametrize("end_at", [15])
def test_an_agent_whose_data_changed_after_a_kill_sends_nothing(tmp_path, end_at):
    """Killed before the first checkpoint. A mask would cover two contents."""
    settings = {"checkpoints": str(tmp_path / "kept"), "end_at": end_at, "save_every": 60.0}
    with pytest.raises(AssertionError) as raised:
        run_peers(tmp_path, **settings, changed=True)
    said = str(raised.value)
    assert "computed other numbers for a secret sum" in said
    assert not list(tmp_path.glob("agent-*.npy"))


def private_numbers(graph):
    network = SimulatedNetwork(graph, secrecy="sums", colluders=2)
    model = secret_agents.fit(network, private=True, seed=5)
    return np.append(model.coefficients_[0].ravel(), model.intercept_[0])


def test_the_same_noise_gives_the_same_bits_on_all_engines(tmp_path):
    settings = {"private": True, "seed": 5}
    mpi = tmp_path / "mpi"
    mpi.mkdir()
    given = ["mpi", str(mpi), json.dumps(settings)]
    mpi_jobs.run(3, "-m", "tests.support.secret_agents", *given)
    run_peers(tmp_path, **settings)
    for folder, graph in ((mpi, SEVEN), (tmp_path, FOUR)):
        for agent in range(len(graph)):
            found = np.load(folder / f"agent-{agent}.npy")
            np.testing.assert_array_equal(found, private_numbers(graph))


@pytest.mark.parametrize("end_at", [8, 15, 17])
def test_an_agent_that_is_killed_adds_the_same_noise_again(tmp_path, end_at):
    """Before and after its masked sum; drawn anew, the noise would have another digest."""
    kept = str(tmp_path / "kept")
    run_peers(tmp_path, checkpoints=kept, end_at=end_at, save_every=60.0, private=True)
    found = [np.load(tmp_path / f"agent-{agent}.npy") for agent in range(4)]
    assert all((each == found[0]).all() for each in found)
    assert (found[0] != private_numbers(FOUR)).any()


def test_neighbors_are_not_told_why_an_agent_failed(tmp_path):
    with pytest.raises(AssertionError):
        run_peers(tmp_path, huge=True)
    said = [(tmp_path / f"process-{k}.txt").read_text() for k in range(4)]
    assert re.search("column 11 of features and targets has a sum of squares of", said[2])
    for other in (0, 1, 3):
        assert "agent agent-2 ended the run (code 9: its own log says why)" in said[other]
        # Lines of source in a traceback may have the word "columns".
        assert "column 11" not in said[other]
        assert "sum of squares of" not in said[other]
