"""Three hospitals know different things about the same patients, whom they list in different orders."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from peerlearn import SimulatedNetwork, VerticalRVFLClassifier, graphs, partition

X, y = load_breast_cancer(return_X_y=True)
X, patients = StandardScaler().fit_transform(X), np.array([f"patient {i}" for i in range(len(X))])
tables = partition.columns(X, 3, seed=0)  # ten columns each

network = SimulatedNetwork(graphs.linear(3))
rng = np.random.default_rng(0)
known = [rng.permutation(len(X))[:540] for _ in tables]  # each lacks some patients
train = [rows[rows < 400] for rows in known]
test = np.arange(400, len(X))

for solver in ("local", "ensemble", "auto"):
    model = VerticalRVFLClassifier(
        40, solver=solver, network=network, rows="intersection", random_state=0
    )
    model.fit(
        [table[rows] for table, rows in zip(tables, train, strict=True)],
        [y[rows] for rows in train],
        ids=[patients[rows] for rows in train],  # what travels are keyed hashes of these
    )
    scores = model.agent_scores([table[test] for table in tables], y[test])
    print(f"{solver:9} {len(model.kept_rows_[0])} common rows, accuracy of each: {scores.round(3)}")
print(model.report_)
