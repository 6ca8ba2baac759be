"""The processes that benchmarks/engines.py and averaging_processes.py start: not for people to
call.

    peer K N FOLDER      agent K of a ring of N over PeerNetwork      raw-grpc K N FOLDER   the same
    over bare grpc.aio mpi                  one agent per rank of a ring, beside bare mpi4py in the
    same job average-peer K N FOLDER      average-mpi      averages on erdos_renyi(50, 0.2), 1000
    numbers each, to 1e-6

Peers and bare gRPC read lines "width rounds way" from standard input and answer with the seconds
that the rounds took: both are there at the same time and take turns, so that a slow moment of the
machine hits both.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from peerlearn import MPINetwork, Network, PeerNetwork, average, graphs
from peerlearn.arrays import Array
from peerlearn.network.peers.identity import Identity

PLAIN = [1.0, 0.0, 0.0]  # one plain round of `recur`
AGENTS, NUMBERS = 50, 1000  # of the averages


def rounds(network: Network, width: int, number: int, way: str) -> float:
    """Seconds of so many plain rounds, one call each ("mix") or all in one call ("recur")."""
    x = np.random.default_rng(network.hosted[0]).standard_normal((len(network.hosted), width))
    start = time.perf_counter()
    if way == "recur":
        network.recur(x, np.tile(PLAIN, (number, 1)))
    else:
        for _ in range(number):
            x = network.mix(x)
    return time.perf_counter() - start


def in_turns(work: Callable[[int, int, str], float]) -> None:
    """Answer every line of standard input with seconds."""
    print("ready", flush=True)
    for line in sys.stdin:
        width, number, way = line.split()
        print(work(int(width), int(number), way), flush=True)


@contextmanager
def peer(agent: int, graph: object, folder: Path) -> Iterator[PeerNetwork]:
    ports = json.loads((folder / "ports.json").read_text())
    name = f"agent-{agent}"
    identity = Identity.load(
        folder / "authority.pem", folder / f"{name}.pem", folder / f"{name}.key", name
    )
    addresses = {k: f"127.0.0.1:{port}" for k, port in enumerate(ports)}
    with PeerNetwork(
        graph, agent, listen=addresses[agent], addresses=addresses, identity=identity
    ) as network:
        yield network


def ring_peer(agent: int, agents: int, folder: Path) -> None:
    with peer(agent, graphs.ring(agents), folder) as network:
        in_turns(lambda width, number, way: rounds(network, width, number, way))


def raw_grpc(agent: int, agents: int, folder: Path) -> None:
    """What anybody would write first: both neighbors' streams, written and read together, and the
    mean of three.
    """
    import grpc

    loop = asyncio.new_event_loop()
    ports = json.loads((folder / "raw_ports.json").read_text())
    root, own, key = (
        (folder / name).read_bytes()
        for name in ("authority.pem", f"agent-{agent}.pem", f"agent-{agent}.key")
    )
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    neighbors = sorted({(agent - 1) % agents, (agent + 1) % agents})
    streams: dict[int, object] = {}
    kept: list[object] = []  # what nobody holds is closed

    async def accept(_: object, context: object) -> None:
        streams[
            int(context.auth_context()["x509_common_name"][0].decode().removeprefix("agent-"))
        ] = context
        await asyncio.Event().wait()

    async def connect() -> None:
        server = grpc.aio.server(options=unlimited)
        method = grpc.stream_stream_rpc_method_handler(accept)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("Raw", {"Talk": method}),)
        )
        trust = grpc.ssl_server_credentials([(key, own)], root, True)
        server.add_secure_port(f"127.0.0.1:{ports[agent]}", trust)
        await server.start()
        kept.append(server)
        for other in neighbors:
            if other > agent:
                named = ("grpc.ssl_target_name_override", f"agent-{other}")
                credentials = grpc.ssl_channel_credentials(root, key, own)
                address = f"127.0.0.1:{ports[other]}"
                channel = grpc.aio.secure_channel(address, credentials, options=[*unlimited, named])
                kept.append(channel)
                streams[other] = channel.stream_stream("/Raw/Talk")(wait_for_ready=True)
                await streams[other].write(b"hello")
        while len(streams) < len(neighbors):
            await asyncio.sleep(0.01)
        for other in neighbors:
            if other < agent:
                await streams[other].read()

    async def talk(width: int, number: int) -> float:
        x = np.random.default_rng(agent).standard_normal(width)
        both = [streams[other] for other in neighbors]
        start = time.perf_counter()
        for _ in range(number):
            sent = x.tobytes()
            _, _, *heard = await asyncio.gather(
                *(each.write(sent) for each in both), *(each.read() for each in both)
            )
            x = (x + np.frombuffer(heard[0]) + np.frombuffer(heard[1])) / 3
        return time.perf_counter() - start

    loop.run_until_complete(connect())
    in_turns(lambda width, number, way: loop.run_until_complete(talk(width, number)))


def mpi(cases: str) -> None:
    """Lines "width rounds way ours raw" of every turn, from rank 0."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    with MPINetwork(graphs.ring(world.size)) as network:
        for case in cases.split(";"):
            width, number, way, turns = case.split(",")
            for turn in range(int(turns) + 1):  # the first is not counted
                world.Barrier()
                ours = rounds(network, int(width), int(number), way)
                world.Barrier()
                raw = raw_mpi(MPI, int(width), int(number))
                if world.rank == 0 and turn:
                    print(width, number, way, ours, raw, flush=True)


def raw_mpi(MPI: object, width: int, number: int) -> float:
    """A neighborhood collective per round, and the mean of three."""
    world = MPI.COMM_WORLD
    others = sorted({(world.rank - 1) % world.size, (world.rank + 1) % world.size})
    ring = world.Create_dist_graph_adjacent(others, others, reorder=False)
    x = np.random.default_rng(world.rank).standard_normal(width)
    heard = np.empty((2, width))
    counts, places = np.array([width, width]), np.array([0, width])
    receive = [heard, (counts, places), MPI.DOUBLE]
    start = time.perf_counter()
    for _ in range(number):
        ring.Neighbor_alltoallv([x, (counts, np.zeros(2, int)), MPI.DOUBLE], receive)
        x = (x + heard[0] + heard[1]) / 3
    seconds = time.perf_counter() - start
    ring.Free()
    return seconds


def averages(network: Network) -> dict[str, float]:
    """Seconds of an average to 1e-6 by each method, after the agents have met; each is checked."""
    everything = np.random.default_rng(0).standard_normal((AGENTS, NUMBERS))
    truth, own = everything.mean(axis=0), everything[list(network.hosted)]
    seconds = {}
    for method in ("plain", "chebyshev", "tree"):
        average(
            network, own[:, :1], method=method
        )  # compiled kernels and tables of the graph are not measured
        start = time.perf_counter()
        agreed: Array = average(network, own, tolerance=1e-6, method=method)
        seconds[method] = time.perf_counter() - start
        spread = np.linalg.norm(everything - truth)
        assert np.abs(agreed - truth).max() <= 1e-6 * spread
    return seconds


def main() -> None:
    mode, *rest = sys.argv[1:]
    with threadpool_limits(1):
        if mode == "mpi":
            mpi(*rest)
        elif mode == "average-mpi":
            with MPINetwork(graphs.erdos_renyi(AGENTS, 0.2)) as network:
                seconds = averages(network)
                if network.comm.rank == 0:
                    print(json.dumps(seconds), flush=True)
        elif mode == "average-peer":
            with peer(int(rest[0]), graphs.erdos_renyi(AGENTS, 0.2), Path(rest[2])) as network:
                print(json.dumps(averages(network)), flush=True)
        else:
            {"peer": ring_peer, "raw-grpc": raw_grpc}[mode](
                int(rest[0]), int(rest[1]), Path(rest[2])
            )


if __name__ == "__main__":
    main()
