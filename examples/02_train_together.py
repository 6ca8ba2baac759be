"""
Train one classifier together
=============================

Eight agents hold different digits, and unequally many. Together they train one classifier; no row
leaves its agent. "auto" gives the accuracy of a model that is trained in one place.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs, partition

digits = data.load("digits")
X, X_test, y, y_test = train_test_split(digits.X, digits.y, stratify=digits.y, random_state=0)
shares = partition.dirichlet(X, y, 8, concentration=0.3, seed=0)  # most agents lack some digits
print("rows per agent:", [len(labels) for _, labels in shares])

network = SimulatedNetwork(graphs.erdos_renyi(8, 0.3, seed=0))
settings = {"n_hidden": 300, "alpha": 0.5, "activation": "sigmoid", "random_state": 0}
right = {}
for solver in ("local", "consensus", "auto"):
    model = RVFLClassifier(solver=solver, network=network, **settings).fit(shares)
    right[solver] = 100 * model.agent_scores(X_test, y_test).mean()
    print(f"{solver:>9}: {right[solver]:.1f} % right, {model.report_.sent}")
print(model.report_)

centralised = RVFLClassifier(**settings).fit(X, y)
right["in one place"] = 100 * centralised.score(X_test, y_test)

figure, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
bars = axes.barh(list(right), list(right.values()), color=["#D55E00", "#0072B2", "#0072B2", "0.6"])
axes.bar_label(bars, fmt="%.1f %%", label_type="center", color="white", weight="bold")
axes.set(xlabel="test digits right, %", xlim=(0, 100), title="Eight agents with unequal shares")
plt.show()
