"""Starting the processes of the engine benchmarks: certificates, ports, pipes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from peerlearn.network.peers.certificates import make

WORKERS = Path(__file__).with_name("engine_workers.py")
# More ranks than cores, and possibly a root user, as in a container.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def prepare(folder: Path, agents: int) -> None:
    """Certificates and free ports for so many agents, and for as many bare rivals."""
    make(folder, [f"agent-{k}" for k in range(agents)])
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2 * agents)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    (folder / "ports.json").write_text(json.dumps(ports[:agents]))
    (folder / "raw_ports.json").write_text(json.dumps(ports[agents:]))


def start(mode: str, agent: int, agents: int, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WORKERS, mode, str(agent), str(agents), folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"a process of the benchmark ended early, with exit code {process.wait()}")
    return line.strip()


def turn(processes: list[subprocess.Popen[str]], width: int, rounds: int, way: str) -> float:
    """Seconds of so many rounds, by the slowest of the processes."""
    for process in processes:
        assert process.stdin is not None
        print(width, rounds, way, file=process.stdin, flush=True)
    return max(float(answer(process)) for process in processes)


def mpi_job(ranks: int, *arguments: str) -> str:
    """What a job of so many ranks prints."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    command = [
        mpiexec if mpiexec.exists() else "mpiexec",
        "-n",
        str(ranks),
        sys.executable,
        WORKERS,
        *arguments,
    ]
    return subprocess.run(
        command, env={**os.environ, **MPI}, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
