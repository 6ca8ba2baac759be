"""Secret sums between processes: the bits of a simulation, kills, changes, and what is said."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from peerlearn import SimulatedNetwork
from peerlearn.network.peers import certificates
from tests.support import mpi_jobs, peer_processes, secret_agents
from tests.support.conformance import FOUR, SEVEN

pytestmark = pytest.mark.processes


def expected(graph, kind):
    network = SimulatedNetwork(graph, exact_order=True, secrecy="sums", colluders=2)
    model = secret_agents.fit(network, kind)
    plain = secret_agents.fit(SimulatedNetwork(graph), kind)
    np.testing.assert_allclose(model.coefficients_, plain.coefficients_, atol=1e-6)
    return np.append(model.coefficients_[0].ravel(), model.intercept_[0])


def check_saved(folder, graph, kind="gram"):
    numbers = expected(graph, kind)
    for agent in range(len(graph)):
        np.testing.assert_array_equal(np.load(folder / f"agent-{agent}.npy"), numbers)


def run_peers(folder, **settings):
    certificates.make(folder / "certs", [f"agent-{k}" for k in range(4)])
    ports = peer_processes.free_ports(4)
    given = [ports, str(folder / "certs"), str(folder), json.dumps(settings)]
    programs = [["-m", "tests.support.secret_agents", "peer", str(k), *given] for k in range(4)]
    peer_processes.run(programs, folder)


@pytest.mark.parametrize("kind", secret_agents.MODELS)
def test_ranks_of_a_job_have_the_bits_of_a_simulation(tmp_path, kind):
    mpi_jobs.run(3, "-m", "tests.support.secret_agents", "mpi", str(tmp_path), kind)
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
