"""Count false claims: the true distance of every solver's answer beside the bound it reports.

Random problems, as mean as possible: 1 to 200 agents on paths, rings, stars and random graphs, 0 to
300 rows per agent, conditions up to 1e14, alphas from 1e-8 to 1e5, sites with offsets, skewed
labels, collinear, duplicated and constant columns. Every problem is solved by one exact solver
with one way of averaging, in turn. The true answer is a Householder QR of all rows in extended
precision. Problems with an intercept are false if the coefficients alone, or the coefficients and
the intercept together, are further away than the bound. Newton and L-BFGS solve logistic
regression; its true answer is refined by gradients in extended precision.

    python benchmarks/certified.py             2,000 problems, some minutes
    python benchmarks/certified.py 100         fewer

Printed: claims, false ones (distance > bound), how many converged, and the median of bound /
distance where the condition is below 1e8 and the distance above 1e-13. The last line is HOLDS or
MISSED.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np

from peerlearn import (
    ADMM,
    LBFGS,
    Averaging,
    ConjugateGradient,
    DualConjugateGradient,
    Faults,
    Gram,
    Local,
    Newton,
    SharingADMM,
    SimulatedNetwork,
    SketchedConjugateGradient,
    StreamExact,
    graphs,
)
from peerlearn.algorithms.columns import LocalColumns
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.readout.auto import Auto
from peerlearn.algorithms.readout.means import common_means
from peerlearn.arrays import Array
from peerlearn.errors import DataError, NotConverged
from peerlearn.local.centred import FewRows, ManyRows, UncentredProblems, intercepts
from peerlearn.local.chunks import Chunk
from peerlearn.local.column_blocks import ColumnBlocks, subtract_means
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.margin_losses import LogisticLosses
from peerlearn.local.penalties import Ridge

PROBLEMS = 2000
CHUNKS = 3
STREAM_TOLERANCE = 1e-6
MOST_COLUMNS = 24
# Rows in all: the extended precision of the true answer is slow.
MOST_ROWS = 3000
SMALLEST_DISTANCE = 1e-13
LARGEST_CONDITION = 1e8
LARGEST_RATIO = 100.0
EXTENDED = 4 * float(np.finfo(np.longdouble).eps)
CLAIMS_FAIL = 1e-3  # of the claims under loss
REFINEMENTS = 60  # of a logistic answer, at most
SETTLED = 1e-17  # relative size of the last of them


@dataclass(frozen=True)
class Problem:
    """Rows of every agent, the graph that connects them, and the penalty."""

    graph: nx.Graph
    H: list[Array]
    Y: list[Array]
    alpha: float

    @property
    def condition(self) -> float:
        """Condition of H'H + alpha I."""
        s = np.linalg.svd(np.vstack(self.H), compute_uv=False)
        B = self.H[0].shape[1]
        smallest = s[-1] ** 2 if len(s) == B else 0.0
        with np.errstate(divide="ignore"):
            return float((s[0] ** 2 + self.alpha) / (smallest + self.alpha))


@dataclass(frozen=True)
class Claim:
    """What a solver reports, beside the truth."""

    name: str
    problem: int
    distance: float
    report: Report
    condition: float

    @property
    def false(self) -> bool:
        # The true answer has errors too: extended precision times the condition of H.
        known_to = EXTENDED * np.sqrt(self.condition)
        return bool(self.distance > self.report.bound + known_to)


def draw_problem(seed: int, most_agents: int = 200) -> Problem:
    """Draw one problem."""
    rng = np.random.default_rng(seed)
    L = round(most_agents ** rng.uniform())
    B = int(rng.integers(1, MOST_COLUMNS + 1))
    M = int(rng.integers(1, 4))
    rows = rng.integers(0, 1 + int(300 ** rng.uniform()), L)
    rows = (rows * min(1.0, MOST_ROWS / max(rows.sum(), 1))).astype(int)
    rows[rng.integers(L)] += 1 + B * rng.integers(0, 2)
    N = int(rows.sum())
    H = rng.standard_normal((N, B))
    kind = rng.integers(8)
    if kind == 1:  # condition by columns
        H *= np.logspace(0, rng.uniform(0, 7), B)
    elif kind == 2:  # condition by directions
        U, _, V = np.linalg.svd(H, full_matrices=False)
        H = U * np.logspace(0, -rng.uniform(0, 7), len(V)) @ V
    elif kind == 3:  # columns that are nearly the same
        H[:, B // 2] = H[:, 0] + 10.0 ** -rng.uniform(1, 12) * H[:, B // 2]
    elif kind == 4:  # twice the same column, and a constant
        H[:, B // 2] = H[:, 0]
        H[:, -1] = rng.uniform(0, 1)
    elif kind == 5:  # positive features
        H = np.abs(H) + rng.uniform(0, 100)
    elif kind == 6:  # columns that are mostly zero
        H *= rng.uniform(size=H.shape) < 0.1
    H *= 10.0 ** rng.uniform(-3, 3)
    owner = np.repeat(np.arange(L), rows)
    if rng.uniform() < 0.3:  # sites with offsets
        H += 10.0 ** rng.uniform(0, 4) * rng.choice([-1.0, 1.0], L)[owner][:, None]
    Y = H @ rng.standard_normal((B, M)) + rng.standard_normal((N, M))
    if rng.uniform() < 0.3:  # skewed labels
        Y = np.sign(Y + 3 * rng.standard_normal(L)[owner][:, None])
    if rng.uniform() < 0.1:
        Y += 10.0 ** rng.uniform(0, 6)
    parts = np.cumsum(rows)[:-1]
    alpha = 10.0 ** rng.uniform(-8, 5)
    return Problem(_draw_graph(rng, L), np.split(H, parts), np.split(Y, parts), alpha)


def _draw_graph(rng: np.random.Generator, L: int) -> nx.Graph:
    if L < 3:
        return graphs.complete(L)
    kind = rng.integers(4)
    if kind == 0 and L <= 30:
        return graphs.linear(L)
    if kind == 1 and L <= 30:
        return graphs.ring(L)
    if kind == 2:
        return graphs.star(L)
    return graphs.erdos_renyi(L, max(0.3, min(1.0, 8.0 / L)), seed=int(rng.integers(1000)))


def true_answer(H: Array, Y: Array, alpha: float) -> Array:
    """Return the ridge coefficients by Householder's QR in extended precision."""
    n, B = H.shape
    R = np.zeros((n + B, B + Y.shape[1]), np.longdouble)
    R[:n, :B] = H
    R[:n, B:] = Y
    R[n:, :B].flat[:: B + 1] = np.sqrt(np.longdouble(alpha))
    for j in range(B):
        x = R[j:, j].copy()
        x[0] += np.copysign(np.sqrt(x @ x), x[0])
        length = x @ x
        if length > 0:
            R[j:, j:] -= np.outer(x * (2 / length), x @ R[j:, j:])
    b = np.zeros((B, Y.shape[1]), np.longdouble)
    if not H.any():
        return b  # exactly
    for j in range(B - 1, -1, -1):
        b[j] = (R[j, B:] - R[j, j + 1 : B] @ b[j + 1 :]) / R[j, j]
    return b


def true_centred_answer(H: Array, Y: Array, alpha: float) -> Array:
    """Return the intercept and the ridge coefficients below it, in extended precision."""
    rows = H.astype(np.longdouble)
    targets = Y.astype(np.longdouble)
    m = rows.mean(axis=0)
    q = targets.mean(axis=0)
    b = true_answer(rows - m, targets - q, alpha)
    return np.vstack([q - m @ b, b])


def true_logistic_answer(H: Array, y: Array, alpha: float, start: Array) -> Array | None:
    """Return the logistic coefficients, or None if refinement does not settle."""
    rows = H.astype(np.longdouble)
    w = start.astype(np.longdouble)
    for _ in range(REFINEMENTS):
        with np.errstate(over="ignore"):
            left = 1 / (1 + np.exp(y * (rows @ w)))
        gradient = alpha * w - rows.T @ (y * left)
        curvature = (left * (1 - left)).astype(np.float64)
        hessian = (H.T * curvature) @ H + alpha * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient.astype(np.float64))
        w = w - step
        if np.linalg.norm(step) <= SETTLED * float(np.linalg.norm(w.astype(np.float64))):
            return w[:, None]
    return None


Solve = Callable[[Problem], tuple[list[Array], Report]]


def by_rows(solver: object, faults: float = 0.0) -> Solve:
    """Return what solves a problem whose agents have rows."""

    def solve(problem: Problem) -> tuple[list[Array], Report]:
        options = {"faults": Faults(faults, seed=0)} if faults else {}
        network = SimulatedNetwork(problem.graph, **options)
        problems = LeastSquares.of_rows(problem.H, problem.Y)
        found = solver.solve(network, problems, Ridge(problem.alpha))
        return list(found.coefficients), found.report

    return solve


def with_intercept(solver: object) -> Solve:
    """Return what solves a problem about the means of all rows; the intercept comes first."""

    def solve(problem: Problem) -> tuple[list[Array], Report]:
        whole = isinstance(solver, Local)
        H = [np.vstack(problem.H)] if whole else problem.H
        Y = [np.vstack(problem.Y)] if whole else problem.Y
        network = SimulatedNetwork(graphs.complete(1) if whole else problem.graph)
        uncentred = _uncentred(H, Y)
        means = common_means(network, solver, uncentred)
        found = solver.solve(network, uncentred.about(means), Ridge(problem.alpha))
        constants = intercepts(means.centre, found.coefficients)
        pairs = zip(constants, found.coefficients, strict=True)
        return [np.vstack([c, b]) for c, b in pairs], found.report

    return solve


def _uncentred(H: list[Array], Y: list[Array]) -> UncentredProblems:
    agents: list[FewRows | ManyRows] = []
    shape = (H[0].shape[1], Y[0].shape[1])
    for own, targets in zip(H, Y, strict=True):
        if len(own) < shape[0]:
            agents.append(FewRows(own, targets))
            continue
        sums = ManyRows(*shape)
        half = len(own) // 2
        sums.add(own[:half], targets[:half])
        sums.add(own[half:], targets[half:])
        agents.append(sums)

    def read() -> Iterator[tuple[int, Array, None]]:
        for k, (own, targets) in enumerate(zip(H, Y, strict=True)):
            yield k, np.hstack([own, targets]), None

    return UncentredProblems(agents, [len(own) for own in H], shape, read)


def by_logistic_loss(solver: object) -> Solve:
    """Return what solves logistic regression on the signs of the first target."""

    def solve(problem: Problem) -> tuple[list[Array], Report]:
        losses = LogisticLosses(problem.H, [_signs(own) for own in problem.Y])
        found = solver.minimise(SimulatedNetwork(problem.graph), losses, problem.alpha)
        return [w[:, None] for w in found.coefficients], found.report

    return solve


def _signs(Y: Array) -> Array:
    return np.where(Y[:, 0] > 0, 1.0, -1.0)


def by_columns(solver: object, *, centred: bool = False) -> Solve:
    """Return what solves a problem whose agents have columns: as many agents as columns at most.

    centred: whether means are subtracted, as for an intercept.
    """

    def solve(problem: Problem) -> tuple[list[Array], Report]:
        H = np.vstack(problem.H)
        L = 1 if isinstance(solver, LocalColumns) else min(H.shape[1], len(problem.graph))
        network = SimulatedNetwork(graphs.ring(L) if L > 2 else graphs.complete(L))
        blocks = ColumnBlocks.of_features(np.array_split(H, L, axis=1))
        Y = np.vstack(problem.Y)
        if centred:
            blocks.centre()
            subtract_means(Y)
        found = solver.solve_columns(network, blocks, Y, problem.alpha)
        return [np.vstack(found.coefficients)], found.report

    return solve


def by_stream(learner: StreamExact) -> Solve:
    """Return what solves a problem whose rows come in three chunks."""

    def solve(problem: Problem) -> tuple[list[Array], Report]:
        network = SimulatedNetwork(problem.graph)
        shape = (problem.H[0].shape[1], problem.Y[0].shape[1])
        state = learner.start(network, shape, problem.alpha)
        for i in range(CHUNKS):
            H = [np.array_split(own, CHUNKS)[i] for own in problem.H]
            Y = [np.array_split(own, CHUNKS)[i] for own in problem.Y]
            state = learner.learn(network, state, Chunk.of_rows(H, Y), problem.alpha)
        found = learner.certify(network, state, CHUNKS)
        converged = found.bound <= STREAM_TOLERANCE
        about = {"bound": found.bound, "bound_reason": found.reason}
        return list(state["b"]), Report("StreamExact", converged, CHUNKS, (), **about)

    return solve


MESSAGES = Averaging("plain", 1e-12, stopping="messages")
ROUGH_MESSAGES = Averaging("chebyshev", 1e-6, stopping="messages")
MATRIX = (
    "gram tree",
    "auto tree",
    "gram chebyshev",
    "gram messages",
    "stream tree",
    "gram tree intercept",
    "auto tree intercept",
    "gram chebyshev intercept",
    "one place intercept",
    "one place centred",
)
SOLVERS: dict[str, Solve] = {
    "gram tree": by_rows(Gram()),
    "auto tree": by_rows(Auto()),
    "gram chebyshev": by_rows(Gram(averaging="chebyshev")),
    "gram messages": by_rows(Gram(averaging=MESSAGES)),
    "gram rough messages": by_rows(Gram(averaging=ROUGH_MESSAGES)),
    "stream tree": by_stream(StreamExact()),
    "stream chebyshev": by_stream(StreamExact(averaging="chebyshev")),
    "cg tree": by_rows(ConjugateGradient(max_iterations=200)),
    "cg tree none": by_rows(ConjugateGradient(max_iterations=200, preconditioner="none")),
    "cg messages": by_rows(ConjugateGradient(max_iterations=60, averaging=MESSAGES)),
    "cg chebyshev": by_rows(ConjugateGradient(max_iterations=60, averaging="chebyshev")),
    "admm tree": by_rows(ADMM(max_iterations=300)),
    "admm chebyshev": by_rows(ADMM(max_iterations=100, averaging="chebyshev")),
    "admm messages": by_rows(ADMM(max_iterations=60, averaging=ROUGH_MESSAGES)),
    "dual tree": by_columns(DualConjugateGradient(max_iterations=200)),
    "dual chebyshev": by_columns(DualConjugateGradient(max_iterations=60, averaging="chebyshev")),
    "sketched tree": by_columns(SketchedConjugateGradient(max_iterations=100)),
    "sketched chebyshev": by_columns(
        SketchedConjugateGradient(max_iterations=40, averaging="chebyshev")
    ),
    "sharing tree": by_columns(SharingADMM(max_iterations=200)),
    "sharing chebyshev": by_columns(SharingADMM(max_iterations=60, averaging="chebyshev")),
    "dual messages": by_columns(DualConjugateGradient(max_iterations=60, averaging=MESSAGES)),
    "sharing messages": by_columns(SharingADMM(max_iterations=60, averaging=ROUGH_MESSAGES)),
    "gram tree intercept": with_intercept(Gram()),
    "auto tree intercept": with_intercept(Auto()),
    "gram chebyshev intercept": with_intercept(Gram(averaging="chebyshev")),
    "one place intercept": with_intercept(Local()),
    "cg tree intercept": with_intercept(ConjugateGradient(max_iterations=200)),
    "cg chebyshev intercept": with_intercept(
        ConjugateGradient(max_iterations=60, averaging="chebyshev")
    ),
    "admm tree intercept": with_intercept(ADMM(max_iterations=200)),
    "dual tree centred": by_columns(DualConjugateGradient(max_iterations=200), centred=True),
    "sketched tree centred": by_columns(
        SketchedConjugateGradient(max_iterations=100), centred=True
    ),
    "sharing tree centred": by_columns(SharingADMM(max_iterations=200), centred=True),
    "one place centred": by_columns(LocalColumns(), centred=True),
    "newton tree": by_logistic_loss(Newton(1e-8)),
    "lbfgs tree": by_logistic_loss(LBFGS(max_iterations=300)),
}
LOGISTIC = ("newton tree", "lbfgs tree")
UNDER_LOSS: dict[str, Solve] = {
    f"{name} loss {loss}": by_rows(solver, loss)
    for loss in (0.05, 0.15, 0.3)
    for name, solver in (
        ("gram", Gram(1e-4)),
        ("cg", ConjugateGradient(1e-4, max_iterations=30)),
        ("admm", ADMM(1e-3, max_iterations=50)),
    )
}
# Gossip takes as many rounds as a long path needs: such problems have few agents.
MOST_AGENTS_OF_GOSSIP = 200


def claims(problems: range, solvers: dict[str, Solve] | None = None) -> Iterator[Claim]:
    """Yield one claim for each problem, by one solver after the other."""
    chosen = list((solvers or SOLVERS | UNDER_LOSS).items())
    for number in problems:
        name, solve = chosen[number % len(chosen)]
        problem = draw_problem(number, 200 if "tree" in name else MOST_AGENTS_OF_GOSSIP)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            try:
                found, report = solve(problem)
            except DataError:
                continue  # a refusal claims nothing
        H = np.vstack(problem.H)
        Y = np.vstack(problem.Y)
        if name in LOGISTIC:
            truth = true_logistic_answer(H, _signs(Y), problem.alpha, found[0][:, 0])
        elif name.endswith("intercept"):
            truth = true_centred_answer(H, Y, problem.alpha)
        elif name.endswith("centred"):
            truth = true_centred_answer(H, Y, problem.alpha)[1:]
        else:
            truth = true_answer(H, Y, problem.alpha)
        if truth is None:
            continue
        distance = relative_distance(found, truth)
        if name.endswith("intercept"):
            without = relative_distance([b[1:] for b in found], truth[1:])
            distance = max(distance, without)
        yield Claim(name, number, distance, report, problem.condition)


def relative_distance(found: list[Array], truth: Array) -> float:
    """Return the largest distance of all agents to the truth, relative to its size."""
    size = float(np.linalg.norm(truth.astype(np.float64)))
    gaps = [float(np.linalg.norm((b - truth).astype(np.float64))) for b in found]
    return max(gaps) / size if size else float(max(gaps) > 0)


def median_ratio(found: list[Claim]) -> float:
    """Return the median of bound / distance of solvers that have the Gram matrix or a factor."""
    ratios = [
        claim.report.bound / claim.distance
        for claim in found
        if claim.name in MATRIX
        and claim.report.solver != "ConjugateGradient"
        and claim.condition < LARGEST_CONDITION
        and claim.distance > SMALLEST_DISTANCE
    ]
    return float(np.median(ratios)) if ratios else 0.0


def main() -> None:
    """Print the table and the verdict."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PROBLEMS
    found = list(claims(range(count)))
    names = dict.fromkeys(claim.name for claim in found)
    print(f"{'solver':24}{'claims':>8}{'false':>7}{'converged':>11}{'infinite':>10}")
    for name in names:
        own = [claim for claim in found if claim.name == name]
        false = sum(claim.false for claim in own)
        converged = sum(claim.report.converged for claim in own)
        infinite = sum(claim.report.bound == np.inf for claim in own)
        print(f"{name:24}{len(own):8}{false:7}{converged:11}{infinite:10}")
        for claim in own:
            if claim.false:
                print(f"  problem {claim.problem}: {claim.distance:.2e} > {claim.report.bound:.2e}")
    lossy = [claim for claim in found if claim.name in UNDER_LOSS]
    certain = [claim for claim in found if claim.name not in UNDER_LOSS]
    false_certain = sum(claim.false for claim in certain)
    false_lossy = sum(claim.false for claim in lossy)
    ratio = median_ratio(found)
    print(
        f"{false_certain} false of {len(certain)} claims; {false_lossy} of {len(lossy)} under loss"
    )
    print(f"median of bound / distance with a matrix or factor: {ratio:.1f}")
    holds = (
        false_certain == 0
        and false_lossy <= max(1.0, CLAIMS_FAIL * len(lossy))
        and ratio <= LARGEST_RATIO
    )
    print("HOLDS" if holds else "MISSED")


if __name__ == "__main__":
    main()
