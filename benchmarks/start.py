"""How soon peerlearn starts, and how much memory it takes: CPU seconds and megabytes of whole
processes.

    python benchmarks/start.py

The rival of an import and of --help is `import numpy`, that of an agent is scikit-learn's base
class, without which no model is an estimator. An agent is one of two that train a small model over
TLS, from its start to its end. CPU seconds are user and system time of the process; megabytes are
the most that were in memory at once.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from common import console, holds, show

TURNS = 5
SITE = """
run = "start"
name = "{name}"
address = "127.0.0.1:{port}"
output = "{name}"
[network]
agents = ["north", "south"]
links = [["north", "south"]]
[certificates]
authority = "certificates/authority.pem"
certificate = "certificates/{name}.pem"
key = "certificates/{name}.key"
[data]
file = "{name}.csv"
target = "y"
[model]
n_hidden = 50
random_state = 0
"""


LAUNCHER = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
sys.exit(status != 0)
"""


@dataclass(frozen=True)
class Used:
    """What a process took."""

    seconds: float  # of CPU time
    megabytes: float


MORE_THAN_NUMPY = 0.35  # CPU seconds of an import and of --help, at most
AGENT = Used(1.6, 240.0)  # at most


def used(*processes: subprocess.Popen[str]) -> Used:
    """Wait for the processes; return the most that one of them took."""
    found = []
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == 0, f"{process.args} failed"
        found.append(Used(*map(float, output.split()[-2:])))
    return max(found, key=lambda each: each.seconds)


def python(*arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start Python from a small process, which prints what it took.

    Linux counts the memory of the process that starts another as memory of that other.
    """
    command = [sys.executable, "-S", "-c", LAUNCHER, sys.executable, *arguments]
    return subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def lay_out(folder: Path) -> None:
    """Write the files of two sites."""
    names = [word for name in ("north", "south") for word in ("--name", name)]
    used(python("-m", "peerlearn", "certs", "certificates", *names, cwd=folder))
    rng = np.random.default_rng(0)
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    for name, port in zip(("north", "south"), ports, strict=True):
        X = rng.standard_normal((100, 5))
        table = np.column_stack([X, X[:, 0] > 0])
        np.savetxt(folder / f"{name}.csv", table, delimiter=",", header="a,b,c,d,e,y", comments="")
        text = SITE.format(name=name, port=port)
        calls = f'[neighbors]\nsouth = "127.0.0.1:{ports[1]}"\n' if name == "north" else ""
        (folder / f"{name}.toml").write_text(text + calls)


def agents() -> Used:
    """Return what one of two agents took, from its start to its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lay_out(folder)
        return used(
            *(
                python("-m", "peerlearn", "agent", f"{site}.toml", cwd=folder)
                for site in ("north", "south")
            )
        )


def median(runs: list[Used]) -> Used:
    """Return the median of seconds and that of megabytes."""
    return Used(
        float(np.median([each.seconds for each in runs])),
        float(np.median([each.megabytes for each in runs])),
    )


def row(name: str, took: Used, rival: Used, limit: Used | None) -> list[str]:
    """Return a line of the table: what a process took, and whether that is within its limit."""
    cells = [name, f"{took.seconds:.2f}", f"{took.megabytes:.0f}"]
    cells.append(f"{took.seconds / rival.seconds:.2f}")
    if limit is None:
        return [*cells, "-", ""]
    excess = max(took.seconds / limit.seconds, took.megabytes / limit.megabytes)
    memory = "" if limit.megabytes == inf else f", {limit.megabytes:.0f} MB"
    return [*cells, f"{limit.seconds:.2f} s{memory}", holds(excess, 1.0)]


def main() -> None:
    tasks = {
        "import numpy": lambda: used(python("-c", "import numpy")),
        "import sklearn.base": lambda: used(python("-c", "import sklearn.base")),
        "import peerlearn": lambda: used(python("-c", "import peerlearn")),
        "peerlearn --help": lambda: used(python("-m", "peerlearn", "--help")),
        "an agent": agents,
    }
    found: dict[str, Used] = {}
    for name, task in tasks.items():
        task()  # fills caches
        found[name] = median([task() for _ in range(TURNS)])
    numpy, base = found["import numpy"], found["import sklearn.base"]
    light = Used(numpy.seconds + MORE_THAN_NUMPY, inf)
    limits = {"import peerlearn": light, "peerlearn --help": light, "an agent": AGENT}
    rows = [
        row(name, each, base if name == "an agent" else numpy, limits.get(name))
        for name, each in found.items()
    ]
    show("What starting takes", ["process", "CPU s", "MB", "CPU / rival", "limit", ""], rows)
    console.print(
        "The rival is import numpy; of an agent it is import sklearn.base.", highlight=False
    )


if __name__ == "__main__":
    main()
