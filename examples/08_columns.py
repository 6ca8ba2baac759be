"""
Different columns of the same patients
======================================

Three hospitals know different things about the same patients. Their lists are in different orders,
and each lacks some patients. They learn from the patients that all of them know.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from peerlearn import SimulatedNetwork, VerticalRVFLClassifier, graphs, partition

X, y = load_breast_cancer(return_X_y=True)
tables = partition.columns(StandardScaler().fit_transform(X), 3, seed=0)  # ten columns each
patients = np.array([f"patient {i}" for i in range(len(X))])
rng = np.random.default_rng(0)
known = [rng.permutation(len(X))[:540] for _ in tables]
train = [rows[rows < 400] for rows in known]
test = np.arange(400, len(X))
network = SimulatedNetwork(graphs.line(3))

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for place, solver in enumerate(("local", "ensemble", "auto")):
    settings = {"solver": solver, "rows": "intersection", "random_state": 0}
    model = VerticalRVFLClassifier(40, network=network, **settings)
    own = [table[rows] for table, rows in zip(tables, train, strict=True)]
    ids = [patients[rows] for rows in train]  # only keyed hashes of these travel
    model.fit(own, [y[rows] for rows in train], ids=ids)
    scores = model.agent_scores([table[test] for table in tables], y[test])
    print(f"{solver:9} {len(model.kept_rows_[0])} common rows, accuracy: {scores.round(3)}")
    axes.bar(np.arange(3) + 4 * place, 100 * scores, color=["#0072B2", "#D55E00", "0.6"])
print(model.report_)
axes.set(ylabel="right, %", ylim=(90, 100), title="Accuracy of each of three hospitals")
axes.set_xticks([1, 5, 9], ["each alone", "by a vote", "together"])
plt.show()
