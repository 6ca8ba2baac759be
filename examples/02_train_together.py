"""Eight agents with their own rows train one classifier; nobody's rows move."""

from sklearn.model_selection import train_test_split

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs, partition

digits = data.load("digits")
X, X_test, y, y_test = train_test_split(
    digits.X, digits.y, test_size=0.25, stratify=digits.y, random_state=0
)
shares = partition.dirichlet(
    X, y, 8, concentration=0.3, seed=0
)  # unequal, and most agents lack some digits
print("rows per agent:", [len(labels) for _, labels in shares])

network = SimulatedNetwork(graphs.erdos_renyi(8, 0.3, seed=0))
for solver in ("local", "consensus", "auto"):
    model = RVFLClassifier(300, alpha=0.5, solver=solver, network=network, random_state=0).fit(
        shares
    )
    print(
        f"{solver:>9}: {100 * model.agent_scores(X_test, y_test).mean():.1f} % right, {model.report_.sent}"
    )

centralised = RVFLClassifier(300, alpha=0.5, random_state=0).fit(X, y)
print(f"one place: {100 * centralised.score(X_test, y_test):.1f} % right")
print(model.report_)
