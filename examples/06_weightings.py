"""What a stream costs under four weightings (thesis, section 5.3), the fastest of which needs the extra sdp."""

from itertools import islice

import numpy as np

from peerlearn import RVFLRegressor, SimulatedNetwork, data, graphs, weights
from peerlearn.algorithms import Averaging, iterates
from peerlearn.algorithms.streaming import StreamConsensus

THESIS = Averaging(
    "plain", tolerance=1e-6, stopping="thesis"
)  # until no agent's squared update is above tolerance


def learn(network, X, y, chunks, every=1):
    """The rounds that each chunk took, and the agents' coefficients after the last."""
    stream = StreamConsensus(every, averaging=THESIS, variant="thesis")
    model, rounds = RVFLRegressor(50, alpha=1.0, stream=stream, network=network, random_state=0), []
    for start in range(0, 20 * chunks, 20):
        before = network.ledger.mark()
        model.partial_fit(X[start : start + 20], y[start : start + 20])
        rounds.append(network.ledger.since(before).rounds)
    return rounds, model.coefficients_


held = {info.name for info in data.available()}
for name in ("g50c", "CCPP" if "CCPP" in held else "diabetes"):
    rows = data.load(name)
    print(
        f"\n{rows}",
        "(instead of CCPP: PEERLEARN_DATA names no folder with it)" if name == "diabetes" else "",
    )
    order = np.random.default_rng(0).permutation(len(rows.X))
    X, y = rows.X[order], (rows.y[order] - rows.y.mean()) / rows.y.std()
    print(
        "rounds of chunks 2, 5, 10, 20, and relative network disagreement after 5, 10, 20 rounds of one average"
    )
    for weighting in weights.NAMES:
        networks = [
            SimulatedNetwork(graphs.erdos_renyi(8, 0.5, seed=seed), weighting) for seed in range(5)
        ]
        rounds = np.mean([learn(network, X, y, 20)[0] for network in networks], axis=0)
        apart = 0.0  # sums over agents and graphs, not a mean of ratios: an agent may start at the average
        for network in networks:
            b = learn(network, X, y, 1, every=2)[1]  # what each learned alone from the first chunk
            apart += np.array(
                [((x - b.mean(axis=0)) ** 2).sum() for x in (b, *islice(iterates(network, b), 20))]
            )
        print(
            f"{weighting:>12}",
            rounds[[1, 4, 9, 19]],
            *(f"{left:.0e}" for left in (apart / apart[0])[[5, 10, 20]]),
        )
