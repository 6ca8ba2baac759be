"""Sensors learn while data arrive: a stream in chunks, learned in five ways, with what each sent."""

from peerlearn import DiffusionRLS, RVFLClassifier, SimulatedNetwork, StreamConsensus, data, graphs

digits = data.load("digits")
X, y, X_test, y_test = digits.X[:1400], digits.y[:1400], digits.X[1400:], digits.y[1400:]
ways = {
    "averaged after every chunk": "consensus",
    "averaged after every tenth": StreamConsensus(every=10),
    "exact": "exact",
    "mixed once after every chunk": "rls",
    "and only news above 30 %": DiffusionRLS(threshold=0.3),
}

for name, stream in ways.items():
    network = SimulatedNetwork(graphs.erdos_renyi(8, 0.4, seed=0))
    model = RVFLClassifier(n_hidden=200, alpha=0.1, stream=stream, network=network, random_state=0)
    errors = []
    for start in range(0, len(X), 20):  # 20 new rows for the whole network: two or three per agent
        model.partial_fit(X[start : start + 20], y[start : start + 20], classes=range(10))
        errors.append(100 * (1 - model.score(X_test, y_test)))
    halfway = errors[len(errors) // 2]
    print(
        f"{name:30}{halfway:5.1f} % wrong halfway,{errors[-1]:5.1f} % in the end, {network.ledger.since()}"
    )
