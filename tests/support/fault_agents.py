"""Five real agents in a ring, over TLS, that can be killed, stopped, cut off and started again.

Agents are forked from a server that has imported and compiled everything but gRPC, which does not
survive a fork: an
agent is there in half a second.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from peerlearn import ADMM, SimulatedNetwork, average, graphs, total
from peerlearn.algorithms.agreement import union
from peerlearn.errors import NotConverged, PeerlearnError, Stopped
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Ridge
from peerlearn.network.base import Network
from peerlearn.network.peers.certificates import make
from peerlearn.sites.refusals import refusals_in_the_log
from tests.support.peer_processes import free_ports
from tests.support.waiting import PATIENCE

AGENTS = 5
GRAPH = graphs.ring(AGENTS)
LONG = 800  # rounds of one long call
FEATURES = RandomFeatures.draw(3, 12, seed=0)
GAVE_UP, FAILED = 3, 1  # exit codes


def work(network: Network, shorter: int = 0, last: bool = True) -> dict[str, np.ndarray]:
    """All kinds of calls, one of them long, and a solver that makes many short ones.

    For agents that run another program than the others: rounds by which the long call is shorter,
    and whether the last
    call is made.
    """
    rng = [np.random.default_rng(agent) for agent in network.hosted]
    X = [
        each.standard_normal((20 + 5 * agent, 3))
        for agent, each in zip(network.hosted, rng, strict=True)
    ]
    steps = np.tile(
        [0.9, 0.3, -0.2], (LONG - shorter, 1)
    )  # with memory of the round before; keeps the average
    labels = union(network, [np.array([f"ward {agent}"]) for agent in network.hosted])
    solver = ADMM(tolerance=1e-10, averaging="chebyshev", max_iterations=60)
    problems = LeastSquares.of_inputs(FEATURES, X, [np.sin(x[:, :2]) for x in X])
    with warnings.catch_warnings(
        action="ignore", category=NotConverged
    ):  # it is cut short on purpose
        solution = solver.solve(network, problems, Ridge(0.5))
    mixed = network.recur(np.stack([each.standard_normal(300) for each in rng]), steps)
    return {
        "labels": np.tile(labels, (len(network.hosted), 1)),
        "coefficients": solution.coefficients,
        "mixed": mixed,
        "average": average(network, mixed, method="plain", stopping="messages", tolerance=1e-9),
        "total": total(network, mixed[:, :4], method="tree") if last else mixed[:, :4],
    }


def expected() -> tuple[dict[str, np.ndarray], tuple[int, int, int]]:
    """What every run must end with, bit for bit, and what all agents together must have sent."""
    network = SimulatedNetwork(GRAPH, exact_order=True)
    done = work(network)
    return done, (network.ledger.rounds, network.ledger.messages, network.ledger.bytes)


def agent(number: int, folder: Path, ports: list[int], options: dict[str, Any]) -> None:
    """The life of one agent: in a process of its own."""
    from peerlearn.network.peers.identity import Identity
    from peerlearn.network.peers.network import PeerNetwork
    from peerlearn.network.peers.timeouts import Timeouts

    name, own = f"agent-{number}", folder / options.get("folder", f"agent-{number}")
    own.mkdir(exist_ok=True)
    os.dup2(os.open(own / "output.txt", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), 2)
    handler = logging.FileHandler(own / "agent.log")
    logging.getLogger("peerlearn").addHandler(handler)
    logging.getLogger("peerlearn").setLevel(logging.INFO)
    if options.get("file_limit"):  # no file can grow beyond this: what a full disk is like
        resource.setrlimit(resource.RLIMIT_FSIZE, (options["file_limit"], resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if options.get("mischief"):
        disturb_writing(number)
    identity = Identity.load(
        folder / "authority.pem", folder / f"{name}.pem", folder / f"{name}.key", name
    )
    if options.get("open_files"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (options["open_files"],) * 2)
    longest = options.get("longest_round", 3600.0)
    patience = Timeouts(
        options.get("silence", 2.0), options.get("give_up_after", 60.0), 0.2, longest
    )
    addresses = {k: f"127.0.0.1:{port}" for k, port in enumerate(ports)}
    listen = options.get("listen", addresses[number])
    addresses |= options.get("addresses", {})
    code = 0
    try:
        with (
            refusals_in_the_log(),
            PeerNetwork(
                GRAPH,
                number,
                listen=listen,
                addresses=addresses,
                identity=identity,
                checkpoints=own / "checkpoints",
                settings=options.get("settings"),
                patience=patience,
            ) as network,
        ):
            signal.signal(signal.SIGTERM, lambda *_: network.interrupt("stopped by SIGTERM"))
            threading.Thread(target=tell, args=(network, own / "round.txt"), daemon=True).start()
            if options.get("hang_at"):
                hang(network, options["hang_at"])
            if not network.finished:
                done = work(network, **options.get("program", {}))
                sent = network.ledger
                np.savez(own / "done.npz", sent=[sent.rounds, sent.messages, sent.bytes], **done)
    except Stopped as error:
        logging.getLogger("peerlearn").error("stopped: %s", error)
        code = GAVE_UP
    except PeerlearnError as error:
        logging.getLogger("peerlearn").error("failed: %s", error)
        code = FAILED
    handler.close()
    os._exit(code)  # a forked process need not run what its parent registered for the end


def hang(network: Any, round: int) -> None:
    """Let the algorithm stand still before this round; the connections live on."""
    swap, forever = network._swap, threading.Event()

    def swap_or_hang(*arguments: Any) -> None:
        if network.round >= round:
            forever.wait()
        swap(*arguments)

    network._swap = swap_or_hang


def tell(network: Any, path: Path) -> None:
    while True:
        path.write_text(f"{network.round} {network.state}")
        deleted = {neighbor: link.outbox.dropped for neighbor, link in network._neighbors.items()}
        path.with_name("deleted.json").write_text(json.dumps(deleted))
        time.sleep(0.02)


def disturb_writing(seed: int) -> None:
    """Frames are sent twice, late, and in another order: one in ten is held back until after the
    next.
    """
    from peerlearn.network.peers.streams import Wire

    put, luck = Wire.put, random.Random(seed)
    held: dict[int, list[bytes]] = {}

    def disturbed(self: Any, frames: Any) -> None:
        frames = [frame for frame in frames for _ in range(luck.choice((1, 1, 2)))]
        luck.shuffle(frames)
        late = held.pop(id(self), [])
        if frames and not late and luck.random() < 0.1:
            held[id(self)] = [frames.pop()]
        put(self, [*frames, *late])

    Wire.put = disturbed


def settings_of(graph: Any) -> dict[str, str]:
    """What agents of this graph tell each other to compare."""
    from peerlearn.network.peers.network import describe, settings_as_text

    return settings_as_text(
        describe(SimulatedNetwork(graph), [f"agent-{k}" for k in range(len(graph))])
    )


def warmed_up() -> None:
    """Compile and load what every agent needs, once, in the server that they are forked from."""
    SimulatedNetwork(graphs.ring(3), exact_order=True).mix(np.zeros((3, 2)))


class Ring:
    """The five agents: started, disturbed, and compared with what they must end with."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder, self.options = folder / "ring", options
        make(self.folder, [f"agent-{k}" for k in range(AGENTS)])
        self.ports = [int(port) for port in free_ports(AGENTS).split(",")]
        self.processes: dict[int, Any] = {}
        self.seconds: list[Any] = []

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.processes.values(), *self.seconds]:
            process.kill()
            process.join()

    def start(self, *agents: int, **options: Any) -> None:
        for number in agents or range(AGENTS):
            given = self.folder, self.ports, {**self.options, **options}
            process = FORKS.Process(target=agent, args=(number, *given), daemon=True)
            process.start()
            self.processes[number] = process

    def start_again(self, number: int, folder: str, **more: Any) -> None:
        """A second process of an agent that runs, in this folder."""
        options = {**self.options, "folder": folder, "listen": "127.0.0.1:0", **more}
        self.seconds.append(
            FORKS.Process(
                target=agent, args=(number, self.folder, self.ports, options), daemon=True
            )
        )
        self.seconds[-1].start()

    def kill(self, *agents: int) -> None:
        for number in agents:
            os.kill(self.processes[number].pid, signal.SIGKILL)
            self.processes[number].join()

    def signal(self, number: int, which: int) -> None:
        os.kill(self.processes[number].pid, which)

    def wait_for_round(self, number: int, agent: int = 0) -> None:
        self.wait_until(
            lambda: self.round(agent) >= number, f"agent {agent} to come to round {number}"
        )

    def wait_until_deleted(self, neighbor: int) -> None:
        """Wait until all agents beside this one have deleted some of the rounds they sent to it."""
        for agent in GRAPH[neighbor]:
            self.wait_until(
                lambda agent=agent: self.deleted(agent, neighbor) > 0,
                f"agent {agent} to delete what agent {neighbor} has saved",
            )

    def wait_for_log(self, agent: int, words: str) -> None:
        self.wait_until(lambda: words in self.log(agent), f"agent {agent} to say {words!r}")

    def wait_until(self, ready: Any, what: str, seconds: float = PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"waited in vain for {what}\n{self.logs()}"
            time.sleep(0.01)

    def ends(self, seconds: float = PATIENCE, but: tuple[int, ...] = ()) -> list[int]:
        """The exit codes of all agents, except some that need not end."""
        deadline = time.monotonic() + seconds
        for number, process in self.processes.items():
            if number not in but:
                process.join(max(deadline - time.monotonic(), 0.1))
                assert process.exitcode is not None, f"not all agents ended\n{self.logs()}"
        return [self.processes[number].exitcode for number in sorted(self.processes)]

    def must_end_as_expected(self) -> None:
        """All agents end well, with the bits of an undisturbed simulation, and nothing was counted
        twice.
        """
        assert self.ends() == [0] * AGENTS, self.logs()
        answer, (rounds, messages, size) = EXPECTED()
        sent = np.zeros(3, dtype=np.int64)
        for number in range(AGENTS):
            with np.load(self.path(number) / "done.npz") as done:
                for name, array in answer.items():
                    np.testing.assert_array_equal(
                        done[name][0], array[number], err_msg=f"{name} of agent {number}"
                    )
                assert done["sent"][0] == rounds
                sent += done["sent"]
        assert sent[1:].tolist() == [messages, size]

    def path(self, agent: int) -> Path:
        return self.folder / f"agent-{agent}"

    def round(self, agent: int) -> int:
        try:
            return int((self.path(agent) / "round.txt").read_text().partition(" ")[0])
        except (OSError, ValueError):
            return 0

    def deleted(self, agent: int, neighbor: int) -> int:
        """Return up to which round the agent has deleted what it sent to the neighbor."""
        try:
            deleted = json.loads((self.path(agent) / "deleted.json").read_text())
        except (OSError, ValueError):  # not yet there, or just being written
            return 0
        return int(deleted[str(neighbor)])

    def state(self, agent: int) -> str:
        return (self.path(agent) / "round.txt").read_text().partition(" ")[2]

    def log(self, agent: int) -> str:
        path = self.path(agent) / "agent.log"
        return path.read_text() if path.exists() else ""

    def logs(self) -> str:
        return "\n".join(
            f"agent {number}, round {self.round(number)}:\n{self.log(number)}"
            for number in range(AGENTS)
        )


EXPECTED = cache(expected)
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.support.fault_agents"])
if multiprocessing.current_process().name == "forkserver" or "forkserver" in " ".join(sys.argv):
    warmed_up()
