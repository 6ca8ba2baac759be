"""The cases that every engine must agree on, from the code: every way to average, solver, learner and model there is.

A case takes a network and the agents hosted there, and gives named arrays whose leading axis is
those agents. What an agent has depends on its number alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from peerlearn import Averaging, everyone, graphs, maximum, total
from peerlearn.algorithms.agreement import union
from peerlearn.algorithms.averaging import METHODS, STOPPINGS
from peerlearn.algorithms.columns import column_solvers
from peerlearn.algorithms.flooding import broadcast_from_center
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import NotConverged, PeerlearnError
from peerlearn.local.chunks import Chunk
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.network.base import Network
from tests import cases_distances, cases_models, cases_smooth
from tests.split_network import run_apart

Case = Callable[[Network, Sequence[int]], dict[str, np.ndarray]]
Arrays = dict[str, np.ndarray]

ROWS = (1, 40, 3, 25, 7, 13, 18)  # of each agent, for 12 features: some have fewer, some more
FEATURES = RandomFeatures.draw(3, 12, seed=0)
SIZES = (0, 3, 1, 20, 2)  # rows of a chunk: with 12 features, both forms of the recursion
SHARED = np.random.default_rng(5).standard_normal(
    (30, 5)
)  # what the columns of all agents have to do with
SHAPES = ((), (1,), (5,), (3, 4))  # of one agent's entry
COLORS = ("amber", "blue", "cyan", "dun")
REFUSALS = ("solves ridge problems only", "which only a simulation can")
ITERATIONS = 12  # most are far from converged: nothing hides in an answer that all would reach
PENALTIES = (
    Ridge(20.0),
    Lasso(0.05),
)  # with less, conjugate gradients make 1e-9 of what rounding makes 1e-16


# What an agent has
# -------------------------------------------------------------------------------------------------


def inputs(agent: int) -> np.ndarray:
    return np.random.default_rng(agent).standard_normal((ROWS[agent], 3)) + 0.1 * agent


def targets(agent: int) -> np.ndarray:
    return np.sin(inputs(agent)[:, :2]) + 0.1 * agent


def labels(agent: int) -> np.ndarray:
    """Two of the four colors at most, and never the same two at neighbors in number."""
    own = np.array([COLORS[agent % 4], COLORS[(agent + 1) % 4]])
    return own[(inputs(agent)[:, 0] > 0.1 * agent).astype(int)]


def entries(hosted: Sequence[int], shape: tuple[int, ...]) -> np.ndarray:
    return np.stack(
        [np.random.default_rng((agent, len(shape))).standard_normal(shape) for agent in hosted]
    )


# The cases, from the code
# ------------------------------------------------------------------------------------------


def cases() -> dict[str, Case]:
    others = (cases_distances, cases_models, cases_smooth)
    found = {**averages(), **agreements(), **solutions(), **streams(), **columns()}
    return found | {name: case for file in others for name, case in file.cases().items()}


def averages() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], averaging: Averaging) -> Arrays:
        alike = averaging.average(
            network, np.ones((len(hosted), 2))
        )  # by messages, agents see at once that they are
        return {
            "alike": alike,
            **{str(shape): averaging.average(network, entries(hosted, shape)) for shape in SHAPES},
        }

    return {
        f"average {name(averaging)}": partial(case, averaging=averaging)
        for averaging in all_averagings()
    }


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
        return {
            name: np.full(len(hosted), everyone(network, flags)) for name, flags in ballots.items()
        }

    def integers(network: Network, hosted: Sequence[int]) -> Arrays:
        """Up to the largest there are, so that sums go round; and one round along links, to be kept."""
        found = {}
        for kind in (np.int64, np.uint64):
            limits = np.iinfo(kind)
            own = [
                np.random.default_rng(agent).integers(limits.min, limits.max, (2, 3), kind)
                for agent in hosted
            ]
            found[f"sum of {kind.__name__}"] = total(network, np.stack(own))
            kept = np.stack(own)
            network.pass_on(kept, *network.rings[0], add=False)
            found[f"kept {kind.__name__}"] = kept
        return found

    def all_labels(network: Network, hosted: Sequence[int]) -> Arrays:
        text = union(network, [labels(agent) for agent in hosted])
        numbers = union(network, [np.arange(agent, agent + 2) for agent in hosted])
        return {
            "text": np.tile(text, (len(hosted), 1)),
            "numbers": np.tile(numbers, (len(hosted), 1)),
        }

    def letters(network: Network, hosted: Sequence[int]) -> Arrays:
        to_all = network.exchange([letter(agent) for agent in hosted])
        to_last = network.exchange(
            [letter(agent) for agent in hosted], [sorted(network.graph[k])[-1:] for k in hosted]
        )
        to_none = network.exchange([{} for _ in hosted])
        return {"to all": read(to_all), "to the last": read(to_last), "nothing said": read(to_none)}

    return {
        **{
            operation.__name__: partial(each_shape, operation=operation)
            for operation in (total, maximum, broadcast_from_center)
        },
        **{
            f"total {name(averaging)}": partial(sums, averaging=averaging)
            for averaging in all_averagings()
        },
        "integers": integers,
        "everyone": votes,
        "union": all_labels,
        "exchange": letters,
    }


def letter(agent: int) -> Arrays:
    """Arrays of a size and kind of the agent's own; agent 1 has nothing to say."""
    if agent == 1:
        return {}
    numbers = np.arange(agent * 3, dtype=np.float64).reshape(agent, 3) / 7
    return {
        "numbers": numbers,
        "marks": np.arange(agent + 1, dtype=np.int8),
        "one": np.array(agent > 2),
    }


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
        named = (
            {field.name: hints[field.name] for field in fields(kind)} if is_dataclass(kind) else {}
        )
        choices = {
            key: get_args(hint) for key, hint in named.items() if get_origin(hint) is Literal
        }
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

    return {
        name: partial(case, learner=learner) for name, learner in all_settings(learners().values())
    }


def chunk(agent: int, n: int) -> np.ndarray:
    return np.random.default_rng((agent, n)).standard_normal((SIZES[(agent + n) % len(SIZES)], 3))


def columns() -> dict[str, Case]:
    """Every solver over columns, where agents have one to three of each row."""

    def case(network: Network, hosted: Sequence[int], solver: Any) -> Arrays:
        maps = FeatureMaps(tuple(5 + agent for agent in range(network.size)), seed=1)
        blocks = ColumnBlocks.of_inputs(maps, hosted, [columns_of(agent) for agent in hosted])
        solution = solver.solve_columns(network, blocks, np.sin(SHARED[:, :2]), 100.0)
        widest = 5 + network.size
        return {
            "coefficients": np.stack(
                [np.pad(b, ((0, widest - len(b)), (0, 0))) for b in solution.coefficients]
            )
        }

    return {
        f"columns {name}": partial(case, solver=solver)
        for name, solver in all_settings(column_solvers().values())
    }


def columns_of(agent: int) -> np.ndarray:
    return SHARED[:, : 1 + agent % 3] + np.random.default_rng(agent).standard_normal(
        (len(SHARED), 1 + agent % 3)
    )


def name(averaging: Averaging) -> str:
    return f"{averaging.method} by {averaging.stopping}"
