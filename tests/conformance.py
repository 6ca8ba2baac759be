"""Every consensus method and every solver, found in the code, on any network: what simulation and other engines share.

    python -m tests.conformance mpi OUT.npz [RANKS]                      under mpiexec; rank r writes OUT-r.npz
    python -m tests.conformance peer K PORTS CERTS OUT.npz [CHECKPOINTS] one agent of four; writes OUT-K.npz

A case takes a network and the agents hosted there, and gives named arrays whose leading axis is those agents. What an
agent has depends on its number alone. With every case stands what it sent: rounds, messages, bytes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from peerlearn import Averaging, RVFLClassifier, RVFLRegressor, SimulatedNetwork, everyone, graphs, maximum, total
from peerlearn.algorithms.agreement import union
from peerlearn.algorithms.choice import solvers
from peerlearn.algorithms.consensus import METHODS, STOPPINGS, follow
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import NotConverged, PeerlearnError
from peerlearn.local.chunks import Chunk
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.local.threads import one_blas_thread
from peerlearn.network.base import Network
from tests.split_network import run_apart

Case = Callable[[Network, Sequence[int]], dict[str, np.ndarray]]
Arrays = dict[str, np.ndarray]

FOUR = graphs.ring(4)  # few rounds to agreement: a round over TLS costs milliseconds when cores are few
SEVEN = graphs.erdos_renyi(7, 0.35, seed=0)  # two and four ranks get unequal parts of it

ROWS = (1, 40, 3, 25, 7, 13, 18)  # of each agent, for 12 features: some have fewer, some more
FEATURES = RandomFeatures.draw(3, 12, seed=0)
SIZES = (0, 3, 1, 20, 2)  # rows of a chunk: with 12 features, both forms of the recursion
SHAPES = ((), (1,), (5,), (3, 4))  # of one agent's entry
COLORS = ("amber", "blue", "cyan", "dun")
REFUSALS = ("solves ridge problems only", "which only a simulation can")
ITERATIONS = 12  # most are far from converged: nothing hides in an answer that all would reach
PENALTIES = (Ridge(20.0), Lasso(0.05))  # with less, conjugate gradients make 1e-9 of what rounding makes 1e-16


# What an agent has -------------------------------------------------------------------------------------------------


def inputs(agent: int) -> np.ndarray:
    return np.random.default_rng(agent).standard_normal((ROWS[agent], 3)) + 0.1 * agent


def targets(agent: int) -> np.ndarray:
    return np.sin(inputs(agent)[:, :2]) + 0.1 * agent


def labels(agent: int) -> np.ndarray:
    """Two of the four colors at most, and never the same two at neighbors in number."""
    own = np.array([COLORS[agent % 4], COLORS[(agent + 1) % 4]])
    return own[(inputs(agent)[:, 0] > 0.1 * agent).astype(int)]


def entries(hosted: Sequence[int], shape: tuple[int, ...]) -> np.ndarray:
    return np.stack([np.random.default_rng((agent, len(shape))).standard_normal(shape) for agent in hosted])


# The cases, from the code ------------------------------------------------------------------------------------------


def cases() -> dict[str, Case]:
    return {**averages(), **agreements(), **solutions(), **streams(), **models()}


def averages() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], averaging: Averaging) -> Arrays:
        alike = averaging.average(network, np.ones((len(hosted), 2)))  # by messages, agents see at once that they are
        return {"alike": alike, **{str(shape): averaging.average(network, entries(hosted, shape)) for shape in SHAPES}}

    return {f"average {name(averaging)}": partial(case, averaging=averaging) for averaging in all_averagings()}


def all_averagings(tolerance: float = 1e-8) -> list[Averaging]:
    """Each method with each rule to stop that does not look at all agents at once."""
    rules = [rule for rule in STOPPINGS if rule not in ("oracle", "thesis")]
    return [Averaging(method, tolerance, stopping=rule) for method, rule in product(METHODS, rules)]


def agreements() -> dict[str, Case]:
    def each_shape(network: Network, hosted: Sequence[int], operation: Any) -> Arrays:
        return {str(shape): operation(network, entries(hosted, shape)) for shape in SHAPES}

    def sums(network: Network, hosted: Sequence[int], averaging: Averaging) -> Arrays:
        return {"sum": averaging.total(network, entries(hosted, (3, 2)))}

    def votes(network: Network, hosted: Sequence[int]) -> Arrays:
        ballots = {"all": [True for _ in hosted], "but one": [agent != 2 for agent in hosted]}
        return {name: np.full(len(hosted), everyone(network, flags)) for name, flags in ballots.items()}

    def all_labels(network: Network, hosted: Sequence[int]) -> Arrays:
        text = union(network, [labels(agent) for agent in hosted])
        numbers = union(network, [np.arange(agent, agent + 2) for agent in hosted])
        return {"text": np.tile(text, (len(hosted), 1)), "numbers": np.tile(numbers, (len(hosted), 1))}

    def letters(network: Network, hosted: Sequence[int]) -> Arrays:
        to_all = network.exchange([letter(agent) for agent in hosted])
        to_last = network.exchange([letter(agent) for agent in hosted], [sorted(network.graph[k])[-1:] for k in hosted])
        to_none = network.exchange([{} for _ in hosted])
        return {"to all": read(to_all), "to the last": read(to_last), "nothing said": read(to_none)}

    return {
        **{operation.__name__: partial(each_shape, operation=operation) for operation in (total, maximum, follow)},
        **{f"total {name(averaging)}": partial(sums, averaging=averaging) for averaging in all_averagings()},
        "everyone": votes,
        "union": all_labels,
        "exchange": letters,
    }


def letter(agent: int) -> Arrays:
    """Arrays of a size and kind of the agent's own; agent 1 has nothing to say."""
    if agent == 1:
        return {}
    numbers = np.arange(agent * 3, dtype=np.float64).reshape(agent, 3) / 7
    return {"numbers": numbers, "marks": np.arange(agent + 1, dtype=np.int8), "one": np.array(agent > 2)}


def read(inbox: Iterable[Mapping[int, Mapping[str, np.ndarray]]]) -> np.ndarray:
    """What each agent received, as one row of text: sender, name, kind, shape and bits of every array."""
    told = [
        " ".join(
            f"{sender} {name} {array.dtype.str} {array.shape} {array.tobytes().hex()}"
            for sender in sorted(box)
            for name, array in box[sender].items()
        )
        for box in inbox
    ]
    return np.array(told, dtype="<U4000")


def solutions() -> dict[str, Case]:
    return {
        f"{name} {type(penalty).__name__}": partial(solved, solver=solver, penalty=penalty)
        for (name, solver), penalty in product(all_settings(solvers().values()), PENALTIES)
        if runs_apart(solver, penalty)
    }


def solved(network: Network, hosted: Sequence[int], solver: Any, penalty: Penalty) -> Arrays:
    problems = LeastSquares.of_inputs(FEATURES, [*map(inputs, hosted)], [*map(targets, hosted)])
    solution = solver.solve(network, problems, penalty)
    return {
        "coefficients": solution.coefficients,
        "iterations": np.full(len(hosted), solution.report.iterations),
        "converged": np.full(len(hosted), solution.report.converged),
    }


def all_settings(kinds: Iterable[type]) -> Iterator[tuple[str, Any]]:
    """Each of these with every way to average and every choice that its settings name."""
    for kind in kinds:
        hints = get_type_hints(kind)
        named = {field.name: hints[field.name] for field in fields(kind)} if is_dataclass(kind) else {}
        choices = {key: get_args(hint) for key, hint in named.items() if get_origin(hint) is Literal}
        if "averaging" in named:
            choices["averaging"] = METHODS
        if "threshold" in named:
            choices["threshold"] = (None, 0.3)
        few = {"max_iterations": ITERATIONS} if "max_iterations" in named else {}
        if "tolerance" in named and not few:
            few = {"tolerance": 0.1}
        for chosen in product(*choices.values()):
            settings = dict(zip(choices, chosen, strict=True))
            yield f"{kind.__name__}({', '.join(map(str, chosen))})", kind(**few, **settings)


@cache
def runs_apart(solver: Any, penalty: Penalty) -> bool:
    """Whether it takes the penalty and needs no oracle that sees all agents: tried on two agents, refused in words."""
    try:
        with warnings.catch_warnings(action="ignore", category=NotConverged):  # they are cut short
            run_apart(graphs.complete(2), lambda network, k: solved(network, [k], solver, penalty))
    except PeerlearnError as error:
        if not any(sentence in str(error) for sentence in REFUSALS):
            raise
        return False
    return True


def streams() -> dict[str, Case]:
    """Every learner on chunks of unlike sizes, some of them empty: what each agent knows after each."""

    def case(network: Network, hosted: Sequence[int], learner: Any) -> Arrays:
        state, found = learner.start(network, (FEATURES.width, 2), 20.0), {}
        for n in range(len(SIZES)):
            rows = [chunk(agent, n) for agent in hosted]
            chunks = Chunk.of_inputs(FEATURES, rows, [np.sin(X[:, :2]) + 0.1 * n for X in rows])
            state = learner.learn(network, state, chunks, 20.0)
            found[f"after {n}"] = state["b"]
        return found

    return {name: partial(case, learner=learner) for name, learner in all_settings(learners().values())}


def chunk(agent: int, n: int) -> np.ndarray:
    return np.random.default_rng((agent, n)).standard_normal((SIZES[(agent + n) % len(SIZES)], 3))


def models() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], model: Any, own: Any) -> Arrays:
        shares = [(inputs(agent), own(agent)) for agent in hosted]
        fitted = model(10, network=network, random_state=3, direct_links=True).fit(shares)
        return {"coefficients": fitted.coefficients_}

    def stream(network: Network, hosted: Sequence[int], model: Any, own: Any, **first: Any) -> Arrays:
        learning = model(10, network=network, random_state=3)
        for part in (slice(0, 5), slice(5, 6), slice(6, None)):  # agent 0 has one row: nothing later
            learning.partial_fit([(inputs(agent)[part], own(agent)[part]) for agent in hosted], **first)
        return {"coefficients": learning.coefficients_}

    return {
        "RVFLClassifier stream": partial(stream, model=RVFLClassifier, own=labels, classes=COLORS),
        "RVFLRegressor stream": partial(stream, model=RVFLRegressor, own=targets),
        "RVFLClassifier": partial(case, model=RVFLClassifier, own=labels),
        "RVFLRegressor": partial(case, model=RVFLRegressor, own=targets),
    }


def name(averaging: Averaging) -> str:
    return f"{averaging.method} by {averaging.stopping}"


# What they give ----------------------------------------------------------------------------------------------------


def run_all(network: Network) -> Arrays:
    """Every array of every case as "case/array", and what each case sent as "case/sent"."""
    found: Arrays = {"hosted": np.array(network.hosted)}
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # that answers are the same is the question, not that they do
        for case, work in cases().items():
            mark = network.ledger.mark()
            found.update({f"{case}/{key}": array for key, array in work(network, network.hosted).items()})
            sent = network.ledger.since(mark)
            found[f"{case}/sent"] = np.array([sent.rounds, sent.messages, sent.bytes])
    return found


def reference(graph: Any, *, exact_order: bool = True) -> Arrays:
    return run_all(SimulatedNetwork(graph, exact_order=exact_order))


def put_together(parts: Sequence[Mapping[str, np.ndarray]]) -> Arrays:
    """What processes found apart, as one process would have: rows by agent, and the sum of what was sent."""
    order = np.argsort(np.concatenate([part["hosted"] for part in parts]))
    return {key: _put_together(key, [part[key] for part in parts], order) for key in parts[0]}


def _put_together(key: str, found: list[np.ndarray], order: np.ndarray) -> np.ndarray:
    if not key.endswith("/sent"):
        return np.concatenate(found)[order]
    rounds = {int(sent[0]) for sent in found}
    assert len(rounds) == 1, f"{key}: processes count different rounds, {sorted(rounds)}"
    return np.array([rounds.pop(), *np.sum(found, axis=0)[1:]])


def different_bits(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> list[str]:
    """The names under which something else stands, in whatever bit."""
    assert list(found) == list(expected)
    return [
        f"{key}: {found[key].dtype} {found[key].shape}, {array.dtype} {array.shape}, {_distance(found[key], array)}"
        for key, array in expected.items()
        if (found[key].dtype, found[key].shape) != (array.dtype, array.shape) or found[key].tobytes() != array.tobytes()
    ]


def further_apart(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float) -> list[str]:
    """The names under which numbers differ by more than the tolerance, relative to the largest; or anything else."""
    assert list(found) == list(expected)
    distances = {key: _distance(found[key], array) for key, array in expected.items()}
    return [f"{key}: {distance:.1e}" for key, distance in distances.items() if not distance <= tolerance]


def _distance(found: np.ndarray, expected: np.ndarray) -> float:
    if found.shape != expected.shape:
        return np.inf
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else np.inf
    return float(np.abs(found - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-300))


# As a process ------------------------------------------------------------------------------------------------------


def save(out: str | Path, process: int, found: Mapping[str, np.ndarray]) -> None:
    """Names hold slashes and brackets, which are no names of files: they are kept in a list."""
    np.savez(part_of(out, process), names=np.array(list(found)), **{f"a{i}": a for i, a in enumerate(found.values())})


def load(out: str | Path, processes: int) -> list[Arrays]:
    """What each process saved."""
    parts = []
    for process in range(processes):
        with np.load(part_of(out, process), allow_pickle=False) as file:
            parts.append({str(name): file[f"a{i}"] for i, name in enumerate(file["names"])})
    return parts


def part_of(out: str | Path, process: int) -> Path:
    return Path(out).with_name(f"{Path(out).stem}-{process}.npz")


def peer(agent: int, ports: str, certs: str, graph: Any = FOUR, **options: Any) -> Any:
    """One agent; ports: of all agents, "7101,7102,.."; certs: the folder of their papers, or "" to do without."""
    from peerlearn import PeerNetwork

    addresses = [f"127.0.0.1:{port}" for port in ports.split(",")]
    papers = {"identity": identity(certs, agent)} if certs else {"insecure_loopback": True}
    return PeerNetwork(graph, agent, listen=addresses[agent], addresses=dict(enumerate(addresses)), **papers, **options)


def identity(certs: str | Path, agent: int) -> Any:
    from peerlearn.network.peers.certificates import Identity

    name = f"agent-{agent}"
    return Identity.load(*(Path(certs, file) for file in ("authority.pem", f"{name}.pem", f"{name}.key")), name=name)


def main(mode: str, *given: str) -> None:
    if mode == "mpi":
        from peerlearn import MPINetwork

        out, ranks = given[0], [int(rank) for rank in given[1].split(",")] if given[1:] else None
        with MPINetwork(SEVEN, ranks=ranks) as network:
            save(out, network.comm.rank, run_all(network))
    elif mode == "peer":
        agent, ports, certs, out, *checkpoints = given
        with peer(int(agent), ports, certs, checkpoints=Path(*checkpoints) if checkpoints else None) as network:
            save(out, int(agent), run_all(network))


if __name__ == "__main__":
    main(*sys.argv[1:])
